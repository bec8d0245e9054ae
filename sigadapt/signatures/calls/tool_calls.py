"""ToolCalls: the calls of one model turn, as a program gets them.

It is a subclass of `dspy.ToolCalls`, so DSPy's own modules take it. Invalid calls are beside the valid ones,
each with a code (nothing silent).
"""

from collections.abc import Callable, Iterator, Mapping
from operator import is_
from typing import TYPE_CHECKING, Any

import dspy
import pydantic

from sigadapt.display import Displayable, rendered_calls
from sigadapt.errors import InvalidHistory
from sigadapt.json_values import is_mapping, is_sequence, type_of, without_halves
from sigadapt.signatures.calls.input_requests import question_about, request_for
from sigadapt.signatures.calls.reading import fields_of, read_calls
from sigadapt.signatures.calls.tool_call import RefusedToolCall, ToolCall, refused, was_sent
from sigadapt.signatures.calls.turn import NO_TURN, InvalidToolCall, Turn
from sigadapt.signatures.saved_model import BASE_INIT, UNHASHABLE, OwnErrors
from sigadapt.signatures.tool_decls import Sources, awaited_decls, decls_of

if TYPE_CHECKING:  # the door of `run` and `arun`
    from sigadapt.turns import running


class ToolCalls(Displayable, OwnErrors, dspy.ToolCalls):
    """The calls of one turn. `len`, iteration and indexing count the valid calls, in order; truth counts all.

    Args:
        calls: one call or an iterable of calls. Each is a ToolCall, an InvalidToolCall, a
            `dspy.ToolCalls.ToolCall`, a dict with `name` and `args`, or a dict in OpenAI's shape.
        tool_calls: the valid calls. The saved form has this keyword instead of `calls`.
        invalid: the invalid calls, each with its code and raw text.
        turn: what the model said beside the calls; read it through `.text` and `.reasoning`.

    Raises:
        InvalidHistory: `unreadable_history`, if an item is not a call; a pydantic.ValidationError where
            pydantic validates it, as in a field.

    Example:
        >>> calls = ToolCalls(
        ...     [{"name": "now", "args": {}}, {"name": "get_weather", "args": {"city": "Paris"}}]
        ... )
        >>> calls
        ToolCalls([now(), get_weather(city='Paris')])
        >>> len(calls), calls[0].id, calls.invalid, calls.text
        (2, 'call_1', (), None)
        >>> ToolCalls.model_validate_json(calls.model_dump_json()) == calls
        True
    """

    what_to_give = "Give ToolCalls, ToolCall objects, or dicts with `name` and `args`."

    tool_calls: list[ToolCall]  # pyright: ignore[reportIncompatibleVariableOverride]
    invalid: tuple[InvalidToolCall, ...] = ()
    turn: Turn = NO_TURN

    def __init__(self, calls: Any = (), /, **data: Any) -> None:
        fields = fields_of(calls)
        unknown = sorted(data.keys() - type(self).model_fields.keys())
        if unknown or not is_mapping(fields):
            reason = f"ToolCalls has no {unknown[0]!r}" if unknown else f"{type_of(fields)} is not calls"
            raise InvalidHistory(reason, code="unreadable_history", fix=self.what_to_give)
        super().__init__(**{**fields, **data})

    vars(__init__)[BASE_INIT] = True

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: Any, handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of what somebody who writes calls gives; the rest is what a provider adds."""
        call = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "args": {"type": "object"}},
            "required": ["name", "args"],
        }
        calls = {"type": "array", "items": call}
        return {"type": "object", "properties": {"tool_calls": calls}, "required": ["tool_calls"]}

    @property
    def text(self) -> str | None:
        """What the model said beside the calls."""
        return self.turn.text

    @property
    def reasoning(self) -> str | None:
        """The thinking that the provider showed."""
        return self.turn.reasoning

    def __eq__(self, other: object) -> bool:
        """Compare with calls of this package or of DSPy, each as `ToolCall.__eq__` does."""
        # What was said beside the calls is compared only between calls that a model sent.
        if not isinstance(other, dspy.ToolCalls):
            return NotImplemented
        all_calls = [*self.tool_calls, *other.tool_calls]
        if isinstance(other, ToolCalls) and all_calls and all(map(was_sent, all_calls)):
            return super().__eq__(other)
        return (
            self.invalid == getattr(other, "invalid", ())
            and [*self.tool_calls] == [*other.tool_calls]
            and self.tool_call_results == other.tool_call_results
        )

    __hash__ = UNHASHABLE  # its calls are a list

    def __len__(self) -> int:
        return len(self.tool_calls)

    def __bool__(self) -> bool:
        """Whether the model made any call: only bad calls are not nothing."""
        return bool(self.tool_calls or self.invalid)

    def __iter__(self) -> Iterator[ToolCall]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.tool_calls)

    def __getitem__(self, index: int) -> ToolCall:
        return self.tool_calls[index]

    def __str__(self) -> str:
        return ", ".join(map(str, self.in_order())) or "no calls"

    def __repr__(self) -> str:
        return f"ToolCalls([{', '.join(map(repr, self.in_order()))}])"

    _rendering = rendered_calls

    def in_order(self) -> "list[ToolCall | InvalidToolCall]":
        """Return all calls, valid and invalid, in the order in which the provider sent them."""
        return sorted([*self.tool_calls, *self.invalid], key=lambda call: call.index)

    def validated(self, decls: Sources) -> "ToolCalls":
        """Check these calls against the declarations, without running anything.

        Args:
            decls: the tools that were declared for the turn, in any form that ToolDecls accepts.

        Returns:
            ToolCalls in the same order; this object if all calls are valid. A call of an undeclared tool
            becomes an InvalidToolCall with the code `unknown_tool`. If the arguments do not fit the schema,
            the code is `schema_mismatch`, and the call has the path.

        Example:
            >>> from sigadapt import ToolDecls
            >>> calls = ToolCalls([ToolCall(id="call_1", name="rm_rf", args={})])
            >>> calls.validated(ToolDecls([])).invalid[0].code
            'unknown_tool'
        """
        tools = decls_of(decls)
        good: list[ToolCall] = []
        bad = list(self.invalid)
        for call in self.tool_calls:
            if type(call) is RefusedToolCall:
                bad.append(call.as_invalid())
            elif (flaw := tools.flaw_of(call.name, call.args)) is not None:
                bad.append(refused(call, flaw))
            else:
                good.append(call)
        if len(bad) == len(self.invalid):
            return self
        bad.sort(key=lambda call: call.index)
        return self.model_copy(update={"tool_calls": good, "invalid": tuple(bad)})

    def handed_on(self) -> "ToolCalls":
        """Return these calls for a loop that knows only good calls: each bad call fails when it is run.

        Returns:
            ToolCalls whose `.tool_calls` are all calls in order, the bad ones as `RefusedToolCall`s.

        Example:
            >>> from sigadapt import ToolDecls
            >>> calls = ToolCalls([ToolCall(id="call_1", name="rm_rf", args={})]).validated(ToolDecls([]))
            >>> calls.handed_on()[0]
            <unknown_tool: rm_rf({})>
        """
        if not self.invalid:
            return self
        calls = self.in_order()
        for n, call in enumerate(calls):
            if isinstance(call, InvalidToolCall):
                calls[n] = RefusedToolCall.of(call, self.turn)
        return self.model_copy(update={"tool_calls": calls, "invalid": ()})

    def awaiting_confirmation(self, decls: Sources) -> "ToolCalls":
        """Return the calls that a person must approve, each wrapped in a request for confirmation.

        A request is a ToolCall of `sigadapt_request_confirmation`. It shows `request.hint` and
        `request.call`, and can be saved as JSON and answered in another process, with `request.approved()`
        or `request.rejected()`, or by `run(decls, {request.id: True})`.

        Args:
            decls: the tools that were declared for the turn, in any form that ToolDecls accepts.

        Returns:
            One request for each call that needs an approval or whose tool is unknown. Its arguments are
            `call` (the call, with the defaults of missing arguments), `hint`, `payload`, and `pin`, a hash of
            the tool's declaration. Its id is `confirm_` and a hash of the call's id, name and arguments,
            those that were left out too, and of the request that the model answered. It is the same for the
            same call in every process, and another one for any other call or turn.

        Raises:
            InvalidToolDecl: as ToolDecls; `confirmation_failed`, if a `requires_confirmation` function
                raises, or returns neither a boolean nor a Confirmation.

        Example:
            >>> from sigadapt import ToolDecls
            >>> decls = ToolDecls([{"name": "pay", "requires_confirmation": True}])
            >>> calls = ToolCalls([ToolCall(id="call_1", name="pay", args={"eur": 5})])
            >>> request = calls.awaiting_confirmation(decls)[0]
            >>> request.hint, request.call, request.rejected().is_error
            ('Run pay?', pay(eur=5), True)
        """
        tools = decls_of(decls)
        # The turn's words and state stand once, beside the requests: a long turn may have many calls.
        requests: list[ToolCall] = []
        for call in self.tool_calls:
            args, question = question_about(call, tools)
            if question is not None:
                requests.append(request_for(call, args, question, tools))
        turn = self.turn if requests else NO_TURN
        return ToolCalls(tool_calls=requests, turn=turn)

    def run(
        self,
        tools: Sources,
        decisions: Mapping[str, bool | str | ToolCall] | None = None,
        timeout: float | None = None,
        *,
        parallel: bool = True,
    ) -> "running.ToolResults":
        """Run the calls of this turn with the declared functions, side by side.

        Functions that block run in threads, with the context variables of the caller; async functions run on
        one event loop. The results are in the order of the calls.

        Args:
            tools: the tools that were declared for the turn, in with their functions.
            decisions: what a person decided about a call that requires confirmation, by `request.id`: True
                runs it, False rejects it, any text rejects it with that reason (`"yes"` too), and a ToolCall
                of the same id and name runs in its place. All are checked before anything runs.
            timeout: the most seconds for each call; a tool's own `timeout` holds if it is smaller. A function
                that blocks runs on.
            parallel: False to run the calls one by one, in order. A turn with a call of a `sequential` tool
                runs so, too.

        Returns:
            ToolResults with one result for each call, good and bad. That of a call that fails or takes too
            long is a failed one: the type and the message of the exception.

        Raises:
            InvalidHistory: `undecided`, for a call that requires confirmation and has no decision;
                `unknown_decision`, for a decision about no call of this turn, such as an old button's;
                `changed_tool`, for a decision about a tool that is not declared. Nothing has run then.
            InvalidOption: `invalid_decision`, for a decision of another kind, or about another call;
                `blocked_loop`, for a tool of an MCP session on this thread's event loop: use `arun`.
            InvalidToolDecl: `no_function`, for a tool without a function; `confirmation_failed`.
            LimitExceeded: for a turn that would pass a limit of the open `Run`.

        Ctrl-C and whatever else is no `Exception` leave at once.

        Example:
            >>> from sigadapt import ToolDecl, ToolDecls
            >>> def pay(to: str, eur: int = 10) -> str:
            ...     return f"Paid {eur} EUR to {to}."
            >>> decls = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
            >>> calls = ToolCalls([{"name": "pay", "args": {"to": "Ada"}}])
            >>> [request] = calls.awaiting_confirmation(decls)
            >>> [result] = calls.run(decls, {request.id: True})
            >>> result.value
            'Paid 10 EUR to Ada.'
        """
        from sigadapt.turns import jobs, running  # a door: tests/test_repository.py

        jobs.refuse_swapped(tools, decisions, "run")
        return running.run(self, decls_of(tools), decisions, timeout, parallel=parallel)

    async def arun(
        self,
        tools: Sources,
        decisions: Mapping[str, bool | str | ToolCall] | None = None,
        timeout: float | None = None,
        *,
        parallel: bool = True,
    ) -> "running.ToolResults":
        """Run the calls of this turn as `run` does, without blocking the event loop.

        Cancelling this cancels what is async. A function that blocks runs on in its thread.
        """
        from sigadapt.turns import jobs, running  # a door: tests/test_repository.py

        jobs.refuse_swapped(tools, decisions, "arun")
        return await running.arun(self, await awaited_decls(tools), decisions, timeout, parallel=parallel)

    @pydantic.model_validator(mode="before")
    @classmethod
    def validate_input(cls, data: Any) -> Any:
        """Accept ToolCalls, the output of `model_dump`, or a list of calls. Put the turn on every call."""
        if isinstance(data, cls):
            return data
        fields = without_halves(fields_of(data))
        good: object = fields.get("tool_calls") if is_mapping(fields) else None
        if not is_sequence(good):
            raise ValueError("expected calls, a list of calls, or a mapping with a list `tool_calls`")
        bad: object = fields.get("invalid") or ()
        if not is_sequence(bad):
            raise ValueError("`invalid` is a list of calls")
        turn = Turn.model_validate(fields.get("turn") or NO_TURN)
        calls = read_calls(good, bad, turn)
        valid = [call for call in calls if isinstance(call, ToolCall)]
        invalid = tuple(call for call in calls if isinstance(call, InvalidToolCall))
        if turn == NO_TURN and valid:
            turn = valid[0].turn
        content = {**fields, "tool_calls": valid, "turn": turn}
        if invalid:
            content["invalid"] = invalid
        results: object = fields.get("tool_call_results")
        if results is not None:  # DSPy leaves saved ones as they are
            content["tool_call_results"] = dspy.ToolCallResults.model_validate(results)
        return content

    @pydantic.model_serializer()
    def serialize_model(self) -> dict[str, Any]:
        """Return all that `model_validate` needs to build an equal object. The turn is written only once."""
        data: dict[str, Any] = {"tool_calls": [call.saved_beside(self.turn) for call in self.tool_calls]}
        if self.invalid:
            data["invalid"] = [call.model_dump() for call in self.invalid]
        if self.turn != NO_TURN:
            data["turn"] = self.turn.model_dump()
        if self.tool_call_results is not None:
            data["tool_call_results"] = self.tool_call_results.model_dump(mode="json")
        return data


def with_each(calls: ToolCalls, change: Callable[[Any], Any]) -> ToolCalls:
    """Return calls with each, good or bad, as a function changes it; the same calls if it changes none."""
    good = [*map(change, calls.tool_calls)]
    bad = tuple(map(change, calls.invalid))
    if all(map(is_, (*good, *bad), (*calls.tool_calls, *calls.invalid))):
        return calls
    return calls.model_copy(update={"tool_calls": good, "invalid": bad})


def in_turn(calls: ToolCalls, turn: Turn) -> ToolCalls:
    """Return calls as those of another turn."""
    good = [call.model_copy(update={"turn": turn}) for call in calls.tool_calls]
    return calls.model_copy(update={"tool_calls": good, "turn": turn})
