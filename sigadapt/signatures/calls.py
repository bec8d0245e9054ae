"""The typed calls of one model turn: ToolCall, InvalidToolCall, and ToolCalls, which holds both.

`ToolCalls` is a subclass of `dspy.ToolCalls`, so DSPy's own modules accept it. It adds two things. Invalid
calls are kept beside the valid ones, each with a code (nothing silent). And each call carries its turn (the
model's text, reasoning and provider state), because `dspy.ReActV2` builds a new collection from the single
calls and drops everything else.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

import dspy
import orjson
import pydantic
from typing_extensions import Self

from sigadapt.errors import CallCode, InvalidHistory, InvalidToolDecl, UnboundToolCall
from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.schemas.json_values import Json, compact, cut, equal_json, is_unicode, without_halves
from sigadapt.signatures.binding import bound_arguments
from sigadapt.signatures.confirmation import REJECTED, Confirmation, confirmation_for, shown_arguments
from sigadapt.signatures.forgotten_adapter import refuse_own_adapter
from sigadapt.signatures.tool_decl import REQUEST
from sigadapt.signatures.tool_decls import decls_of
from sigadapt.signatures.tool_results.key_order import in_order_of, order_of
from sigadapt.signatures.tool_results.tool_result import ToolResult

if TYPE_CHECKING:
    from sigadapt.signatures.rendering import Rendered

_M = TypeVar("_M", bound=pydantic.BaseModel)
_MISSING: Any = object()


class _Saved(pydantic.BaseModel):
    """A frozen model whose texts JSON can save: half of a surrogate pair in them is read as U+FFFD."""

    model_config = pydantic.ConfigDict(frozen=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _without_halves(cls, data: Any) -> Any:
        return without_halves(data)

    @pydantic.model_serializer()
    def _save(self) -> dict[str, Any]:
        held = vars(self)
        fields = type(self).model_fields
        return {key: held[key] for key in fields if key not in _UNLESS_EMPTY or held[key]}


_UNLESS_EMPTY = frozenset({"altered", "repeats"})


class Repeat(_Saved):
    """A call that an answer to a reask made again, as it goes back with its turn.

    Args:
        id: its own id.
        name: the tool's name.
        arguments: the arguments' text, as the call was taken.
        index: its position among all calls.
        of: the id of the call that was accepted before, whose result it gets.
    """

    id: str
    name: str
    arguments: str
    index: int
    of: str


class Turn(_Saved):
    """What the model said beside its calls, and the provider state to send back on the next turn.

    Args:
        text: the text beside the calls.
        reasoning: the thinking that the provider showed.
        state: opaque provider data to replay on the next turn, as JSON values.
        repeats: calls of the turn that were accepted before and dropped.
    """

    text: str | None = None
    reasoning: str | None = None
    state: dict[str, Any] | None = None
    repeats: tuple[Repeat, ...] = ()

    @pydantic.field_validator("state", mode="before")
    @classmethod
    def _read_state(cls, state: Any) -> Any:
        return orjson.loads(state) if isinstance(state, str) else state  # a ValueError is pydantic's to tell

    @pydantic.model_serializer()
    def _save(self) -> dict[str, Any]:
        # The state as text, because storage that keeps JSON by value would change the order of its keys.
        data = {key: value for key, value in vars(self).items() if value or key != "repeats"}
        return {**data, "state": order_of(self.state) or self.state}


NO_TURN = Turn()
"""The turn of calls that came without text, reasoning and state."""


class ToolCall(dspy.ToolCalls.ToolCall):
    """One call that the model made, decoded, and unchanged unless `altered` says otherwise (nothing silent).

    Args:
        id: the provider's id, or a synthesised `call_<n>` (ids).
        name (str): the declared tool's name.
        args (dict): the decoded arguments; `{"input": text}` for a call of a custom tool.
        arguments: the arguments' JSON text exactly as sent; where the provider sent an object, its compact
            form; for a call of a custom tool, its text.
        index: the position among all calls of the answer, invalid ones counted, from 0.
        altered: what was changed: `recovered` where the call was read from text, `repaired` or `unwrapped` on
            request, `renumbered` where an id came twice,
            `repeated` where an answer to a reask made the call again, which was dropped (`Turn.repeats`).
        turn: what the model said beside the call.

    Example:
        >>> call = ToolCall(name="get_weather", args={"city": "Paris"}, id="call_1")
        >>> call
        get_weather(city='Paris')
        >>> call.arguments
        '{"city":"Paris"}'
    """

    model_config = pydantic.ConfigDict(frozen=True)

    id: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  (ids)
    arguments: str = ""
    index: int = 0
    altered: tuple[str, ...] = ()
    turn: Turn = NO_TURN

    @property
    def is_custom(self) -> bool:
        """Whether this is a call of a custom tool, which takes free text instead of JSON.

        No JSON text equals a text that it holds, so the arguments say it.

        Example:
            >>> call = ToolCall(id="call_1", name="run", args={"input": "1 + 1"}, arguments="1 + 1")
            >>> call.is_custom, ToolCall(id="call_1", name="run", args={"input": "1 + 1"}).is_custom
            (True, False)
        """
        return len(self.args) == 1 and self.args.get("input") == self.arguments

    def bind(self, decls: object) -> dict[str, Any]:
        """Return the arguments as typed Python values, ready for `func(**bound)`. No tool is called.

        Args:
            decls: the tools that were declared for the turn, in any form that ToolDecls takes.

        Returns:
            The arguments by keyword, each as pydantic makes it from JSON for its annotation; unchanged if
            the declaration has no Python types. `binding.py` has the details.

        Raises:
            UnboundToolCall: `unknown_tool` or `schema_mismatch`. Its `call` is this call as an
                InvalidToolCall. `func(**call.bind(decls))` thus never calls a function with anything else
                than arguments that fit it.

        Example:
            >>> from sigadapt import ToolDecls
            >>> from pathlib import Path
            >>> def read(path: Path) -> str: ...
            >>> call = ToolCall(id="call_1", name="read", args={"path": "notes.txt"})
            >>> call.bind(ToolDecls(read)) == {"path": Path("notes.txt")}
            True
        """
        tools = decls_of(decls)
        flaw = tools.flaw_of(self.name, self.args)
        if flaw is None and self.name not in tools:  # a tool in a provider's own words
            return dict(self.args)
        bound = bound_arguments(tools[self.name], self.args) if flaw is None else flaw
        if isinstance(bound, Flaw):
            raise UnboundToolCall(refused(self, bound))
        return bound

    def execute(self, functions: object = None) -> Any:
        """Run the declared function of this call, with its arguments bound.

        Nothing is looked up in the caller's variables, as DSPy's `execute` does: a model could then name any
        function there.

        Args:
            functions: the tools that were declared, in any form that ToolDecls takes, or functions by name.

        Returns:
            What the function returns.

        Raises:
            UnboundToolCall: as `bind`.
            InvalidToolDecl: `unknown_source` without tools; `no_function` for a tool without a function;
                `nobody_to_ask` for one that requires confirmation.

        Example:
            >>> def double(n: int) -> int:
            ...     return 2 * n
            >>> ToolCall(id="call_1", name="double", args={"n": 4}).execute([double])
            8
        """
        if functions is None:
            raise InvalidToolDecl(
                "a call runs only a function that was declared, and no tools are given",
                code="unknown_source",
                tool=self.name,
                fix="Give them: call.execute(decls).",
            )
        decls = decls_of(functions)
        bound = self.bind(decls)
        return cast("Callable[..., Any]", decls[self.name].raw.func)(**bound)

    def approved(self) -> "ToolCall":
        """Answer yes to a request for confirmation.

        Returns:
            The call with the arguments that the request holds, which are what was agreed to: those of the
            original call with defaults, or as somebody edited them in `request.args["call"]["args"]`.

        Raises:
            InvalidHistory: `no_confirmation`, if this call is not a request for confirmation, or if a model
                sent it.

        Example:
            >>> from sigadapt import ToolDecls
            >>> decls = ToolDecls([{"name": "pay", "requires_confirmation": True}])
            >>> calls = ToolCalls([ToolCall(id="call_1", name="pay", args={"eur": 5})])
            >>> [request] = calls.awaiting_confirmation(decls)
            >>> request.approved() == calls[0]
            True
        """
        wrapped = self.args.get("call")
        if self.name != REQUEST or not isinstance(wrapped, dict) or _was_sent(self):
            raise self._no_confirmation()
        try:
            return ToolCall.model_validate(wrapped)
        except pydantic.ValidationError as error:
            raise self._no_confirmation() from error

    def rejected(self, reason: str = REJECTED) -> ToolResult:
        """Answer no to a request for confirmation.

        Args:
            reason: the text of the failed result, which the model reads.

        Returns:
            A failed result of the original call, for `ToolResults.of`.

        Raises:
            InvalidHistory: `no_confirmation`, if this call is not a request for confirmation.

        Example:
            >>> from sigadapt import ToolDecls
            >>> decls = ToolDecls([{"name": "pay", "requires_confirmation": True}])
            >>> calls = ToolCalls([ToolCall(id="call_1", name="pay", args={"eur": 5})])
            >>> result = calls.awaiting_confirmation(decls)[0].rejected("Too expensive.")
            >>> result.call_id, result.value, result.is_error
            ('call_1', 'Too expensive.', True)
        """
        call = self.approved()
        return ToolResult(call_id=call.id, name=call.name, value=reason, is_error=True)

    def _no_confirmation(self) -> InvalidHistory:
        return InvalidHistory(
            f"expected a request for confirmation, got the call {self.id!r} of {self.name!r}",
            code="no_confirmation",
            fix="Use a call that ToolCalls.awaiting_confirmation(decls) returned.",
        )

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _text_of_args(cls, data: Any, handler: pydantic.ModelWrapValidatorHandler[Self]) -> Self:
        data = without_halves(data)
        if not (isinstance(data, Mapping) and "arguments" not in data and "args" in data):
            return handler(data)
        fields = dict(cast("Mapping[str, Any]", data))
        args = in_order_of(fields["args"], fields.pop("text", None))
        made = handler({**fields, "args": args, "arguments": compact(args)})
        made.model_fields_set.discard("arguments")  # which nobody sent: `__eq__` asks for it
        return made

    def __eq__(self, other: object) -> bool:
        """Compare with a call of this package or of DSPy."""
        # Calls that a model sent are equal if everything about them is. A call that somebody wrote, such as
        # an expected one, or one of DSPy's, is equal to a call of the same name, arguments and id; without an
        # id, to one of any id.
        if not isinstance(other, dspy.ToolCalls.ToolCall):
            return NotImplemented
        if _was_sent(self) and _was_sent(other):
            return super().__eq__(other)
        if isinstance(self, RefusedToolCall) != isinstance(other, RefusedToolCall):
            return False
        ids = {_stated_id(self), _stated_id(other)} - {None}
        return len(ids) < 2 and self.name == other.name and equal_json(self.args, other.args)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (its arguments are a dict)

    def format(self) -> dict[str, Any]:
        """Return the whole call, turn included. `dspy.ToolCalls`, which ReActV2 builds, saves this."""
        return self.serialize_model()

    @pydantic.model_serializer()
    def serialize_model(self) -> Any:
        """Return the whole call, turn included."""
        return {**_plain(self), **({} if self.turn == NO_TURN else {"turn": self.turn.model_dump()})}

    def __str__(self) -> str:
        arguments = ", ".join(f"{key}={cut(repr(value))}" for key, value in self.args.items())
        return f"{self.name}({cut(arguments) if arguments else ''})"

    __repr__ = __str__


class InvalidToolCall(_Saved):
    """One call that the model made and that cannot be used, kept exactly as sent (nothing silent).

    Args:
        id: the provider's id, or a synthesised one (ids), so that an error can be sent back for it.
        name: the name that the model gave; None if it gave none.
        arguments: the arguments' text exactly as sent.
        index: the position among all calls of the answer, from 0.
        code: what is wrong (`errors.CallCode`).
        message: what is wrong, in a sentence, with the arguments cut to a readable length.
        path: a JSON Pointer into the arguments; None if the flaw has no place there.
        altered: as for a ToolCall.

    Example:
        >>> InvalidToolCall(id="c", name="f", arguments="{", index=0, code="invalid_json", message="not JSON")
        <invalid_json: f({)>
    """

    id: str
    name: str | None
    arguments: str
    index: int
    code: CallCode
    message: str
    path: str | None = None
    altered: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"<{self.code}: {self.name or '?'}({cut(self.arguments) if self.arguments else ''})>"

    __repr__ = __str__


def _was_sent(call: Any) -> bool:
    """Whether a call has the text of its arguments from a provider, not only from who wrote the call."""
    return isinstance(call, ToolCall) and "arguments" in call.model_fields_set


def _stated_id(call: Any) -> str | None:
    return call.id if not isinstance(call, ToolCall) or "id" in call.model_fields_set else None


def refused(call: ToolCall, flaw: Flaw) -> InvalidToolCall:
    """Return a call as an InvalidToolCall with a flaw that was found in it."""
    return InvalidToolCall(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        index=call.index,
        code=flaw.code,
        message=flaw.message,
        path=flaw.path,
        altered=call.altered,
    )


class RefusedArguments(dict[str, Any]):
    """The arguments of a bad call. Reading a value, `items` and JSON work; `**arguments` raises.

    It is true even if it is empty, because loops write `**(call.args or {})`.

    Args:
        values: the decoded arguments; empty if they could not be decoded.
        call: the bad call, for the error.

    Raises:
        UnboundToolCall: when the arguments are unpacked or iterated.
    """

    def __init__(self, values: dict[str, Any], call: InvalidToolCall) -> None:
        super().__init__(values.items())
        self.call = call

    def _refuse(self) -> NoReturn:
        raise UnboundToolCall(self.call)

    # Python unpacks a dict whose `__iter__` is its own through `keys`.
    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def keys(self) -> NoReturn:
        """Raise the error that says what is wrong."""
        self._refuse()

    def __bool__(self) -> bool:
        return True


class RefusedToolCall(ToolCall):
    """A bad call as a loop gets it that is not sigadapt's own: it fails with its error when it is run.

    Such a loop, as that of `dspy.ReActV2`, knows good calls alone. Unpacking `args` raises `UnboundToolCall`,
    so that no tool runs, and the loop sends the model what is wrong, as the call's failed result.

    Args:
        code: what is wrong (`errors.CallCode`).
        message: what is wrong, in a sentence.
        path: a JSON Pointer into the arguments; None if the flaw has no place there.

    Example:
        >>> call = RefusedToolCall(
        ...     id="c", name="f", args={"a": "x"}, code="schema_mismatch", message="does not fit"
        ... )
        >>> call.args["a"], call
        ('x', <schema_mismatch: f({"a":"x"})>)
    """

    code: CallCode
    message: str
    path: str | None = None

    def bind(self, decls: object) -> NoReturn:
        """Raise the error that says what is wrong.

        Raises:
            UnboundToolCall: always.
        """
        raise UnboundToolCall(self.as_invalid())

    def as_invalid(self) -> InvalidToolCall:
        """Return the call as the InvalidToolCall that it is."""
        return refused(self, Flaw(self.code, self.message, self.path))

    @pydantic.model_validator(mode="after")
    def _refuse_args(self) -> Self:
        vars(self)["args"] = RefusedArguments(self.args, self.as_invalid())
        return self

    def __str__(self) -> str:
        return str(self.as_invalid())

    __repr__ = __str__


class ToolCalls(dspy.ToolCalls):
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

    model_config = pydantic.ConfigDict(frozen=True)

    tool_calls: list[ToolCall]  # pyright: ignore[reportIncompatibleVariableOverride]
    invalid: tuple[InvalidToolCall, ...] = ()
    turn: Turn = NO_TURN

    def __init__(self, calls: Any = _MISSING, /, **data: Any) -> None:
        try:
            if calls is not _MISSING:
                data = {**_listed(calls), **data}
            super().__init__(**data)
        except (pydantic.ValidationError, TypeError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, pydantic.ValidationError) else str(error)
            raise InvalidHistory(
                f"these are not calls: {cut(why)}",
                code="unreadable_history",
                fix="Give ToolCalls, ToolCall objects, or dicts with `name` and `args`.",
            ) from error

    # Without this mark, pydantic would call this constructor to validate saved calls.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]

    @classmethod
    def description(cls) -> str:
        """Return DSPy's description of calls, or refuse DSPy's own adapter, which could not read them.

        Raises:
            InvalidSignature: `forgotten_adapter`, for an output field under DSPy's own adapter.
        """
        refuse_own_adapter("ToolCalls")
        return super().description()

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
        every: list[Any] = [*self.tool_calls, *other.tool_calls]
        if isinstance(other, ToolCalls) and all(map(_was_sent, every)):
            return super().__eq__(other)
        return (
            self.invalid == getattr(other, "invalid", ())
            and cast("list[Any]", self.tool_calls) == other.tool_calls
            and self.tool_call_results == other.tool_call_results
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (its calls are a list)

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
        return ", ".join(map(str, self.in_order()))

    def __repr__(self) -> str:
        return f"ToolCalls([{self}])"

    def _rendered(self) -> "Rendered":
        from sigadapt.signatures.rendering import rendered_calls  # noqa: PLC0415  (only where somebody looks)

        return rendered_calls(self)

    def _repr_html_(self) -> str:
        return self._rendered().html()

    def __rich__(self) -> Any:
        return self._rendered().rich()

    def in_order(self) -> "list[ToolCall | InvalidToolCall]":
        """Return all calls, valid and invalid, in the order in which the provider sent them."""
        return sorted([*self.tool_calls, *self.invalid], key=lambda call: call.index)

    def validated(self, decls: object) -> "ToolCalls":
        """Check these calls against the declarations, without running anything.

        Args:
            decls: the tools that were declared for the turn, in any form that ToolDecls takes.

        Returns:
            ToolCalls in the same order; this object if all calls are valid. A call of an undeclared tool
            becomes an InvalidToolCall `unknown_tool`. One whose arguments do not fit the tool's schema
            becomes `schema_mismatch`, with the path.

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
                continue
            flaw = tools.flaw_of(call.name, call.args)
            if flaw is None:
                good.append(call)
            else:
                bad.append(refused(call, flaw))
        if len(bad) == len(self.invalid):
            return self
        bad.sort(key=lambda call: call.index)
        return self.model_copy(update={"tool_calls": good, "invalid": tuple(bad)})

    def handed_on(self) -> "ToolCalls":
        """Return these calls for a loop that knows good calls alone: each bad one fails when it is run.

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
        every = [_handed_on(call, self.turn) for call in self.in_order()]
        return self.model_copy(update={"tool_calls": every, "invalid": ()})

    def awaiting_confirmation(self, decls: object) -> "ToolCalls":
        """Return the calls that a person must agree to, each wrapped in a request for confirmation.

        A request is a ToolCall of `sigadapt_request_confirmation`. It can be saved as JSON and answered in
        another process, with `request.approved()` or `request.rejected()`.

        Args:
            decls: the tools that were declared for the turn, in any form that ToolDecls takes.

        Returns:
            One request for each call that needs one, or whose tool is not among these. Its arguments are
            `call` (the call, with the defaults of the arguments that it leaves out), `hint` and `payload`;
            its id is `confirm_` and the original's id. If a call of the turn has that id, `confirm_` is put
            before it once more.

        Raises:
            InvalidToolDecl: as ToolDecls; `confirmation_failed`, if a `requires_confirmation` function
                raises, or returns neither a boolean nor a Confirmation.

        Example:
            >>> from sigadapt import ToolDecls
            >>> decls = ToolDecls([{"name": "pay", "requires_confirmation": True}])
            >>> calls = ToolCalls([ToolCall(id="call_1", name="pay", args={"eur": 5})])
            >>> request = calls.awaiting_confirmation(decls)[0]
            >>> request.id, request.args["hint"], request.rejected().is_error
            ('confirm_call_1', 'Run pay?', True)
        """
        tools = decls_of(decls)
        requests: list[ToolCall] = []
        taken = {call.id for call in self.in_order()}
        for call in self.tool_calls:
            if isinstance(call, RefusedToolCall):
                continue  # it cannot run
            shown = call.args
            if call.name in tools:
                asked = confirmation_for(tools[call.name], call.args)
                shown = shown_arguments(tools[call.name], call.args)
            else:
                asked = Confirmation(f"Run {call.name}? It is not among the declared tools.")
            if asked is not None:
                saved = {**call.model_dump(mode="json"), "args": shown}
                request_id = _free(f"confirm_{call.id}", "confirm_", taken)
                args = {"call": saved, "hint": asked.hint, "payload": asked.payload}
                request = {"id": request_id, "name": REQUEST, "args": args, "index": call.index}
                requests.append(ToolCall.model_validate(request))
        return ToolCalls(requests)

    @pydantic.model_validator(mode="before")
    @classmethod
    def validate_input(cls, data: Any) -> Any:
        """Accept ToolCalls, the output of `model_dump`, or a list of calls. Put the turn on every call."""
        if isinstance(data, cls):
            return data
        if isinstance(data, dspy.ToolCalls):
            data = {"tool_calls": data.tool_calls, "tool_call_results": data.tool_call_results}
        elif not isinstance(data, Mapping) and isinstance(data, Iterable):
            data = _listed(cast("Any", data))
        if not isinstance(data, Mapping) or not isinstance(data.get("tool_calls"), Sequence):
            raise ValueError(  # noqa: TRY004  (pydantic makes a ValidationError of it)
                "expected calls, a list of calls, or a mapping with a list `tool_calls`"
            )
        known = cast("Mapping[str, Any]", without_halves(data))
        turn = Turn.model_validate(known.get("turn") or NO_TURN)
        items, kept = cast("list[Any]", known["tool_calls"]), known.get("invalid") or ()
        if not isinstance(kept, (list, tuple)):
            raise ValueError("`invalid` is a list of calls")  # noqa: TRY004
        listed = [*items, *cast("list[Any]", kept)]
        ids, renumbered = unique_ids([_own_id(item) for item in listed])
        marks = [("renumbered",) if n in renumbered else () for n in range(len(listed))]
        calls = [_call(item, turn, n, _Id(ids[n], marks[n])) for n, item in enumerate(items)]
        good = [call for call in calls if not isinstance(call, InvalidToolCall)]
        bad = [call for call in calls if isinstance(call, InvalidToolCall)]
        for n, item in enumerate(cast("list[Any]", kept), len(items)):
            bad.append(_kept(item, _Id(ids[n], marks[n])))
        return {
            **known,
            "tool_calls": good,
            "turn": turn if turn != NO_TURN or not good else good[0].turn,
            **({"invalid": tuple(bad)} if bad else {}),
        }

    @pydantic.model_serializer()
    def serialize_model(self) -> dict[str, Any]:
        """Return all that `model_validate` needs to build an equal object. The turn is written only once."""
        data: dict[str, Any] = {"tool_calls": [_beside(call, self.turn) for call in self.tool_calls]}
        if self.invalid:
            data["invalid"] = [call.model_dump() for call in self.invalid]
        if self.turn != NO_TURN:
            data["turn"] = self.turn.model_dump()
        if self.tool_call_results is not None:
            data["tool_call_results"] = _jsonable(self.tool_call_results)
        return data


_new = object.__new__
# Each model's `model_fields_set`: all fields. Instances share it, because a frozen model never changes it.
_ALL_FIELDS: dict[Any, set[str]] = {
    cls: set(cls.model_fields) for cls in (Turn, Repeat, ToolCall, InvalidToolCall, ToolCalls)
}
# The setters of a pydantic model's slots; `object.__setattr__` would look each up by name.
_put_values, _put_fields_set, _put_extra, _put_private = (
    vars(pydantic.BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def trusted(cls: type[_M], values: dict[str, Any]) -> _M:
    """Build one of these models without validation, from values that are known to be valid."""
    # Validation would take several times as long.
    if values.get("state") is not None:
        values = {**values, "state": without_halves(values["state"])}
    for value in values.values():
        if type(value) is str and not is_unicode(value):
            values = {k: part if k == "turn" else without_halves(part) for k, part in values.items()}
            break
    made = _new(cls)
    _put_values(made, values)
    _put_fields_set(made, _ALL_FIELDS[cls])
    _put_extra(made, None)
    _put_private(made, None)
    return made


def _listed(calls: Any) -> dict[str, Any]:
    """Return one call, several calls or a ToolCalls as keyword arguments of ToolCalls."""
    if isinstance(calls, dspy.ToolCalls) or (isinstance(calls, Mapping) and "tool_calls" in calls):
        made = ToolCalls.model_validate(calls)
        return {name: getattr(made, name) for name in ToolCalls.model_fields}
    single = isinstance(calls, (Mapping, pydantic.BaseModel))
    return {"tool_calls": [calls] if single else list(cast("Iterable[Any]", calls))}


def _free(call_id: str, prefix: str, taken: set[str]) -> str:
    """The id, with the prefix once more as long as it is taken; then it is."""
    while call_id in taken:
        call_id = prefix + call_id
    taken.add(call_id)
    return call_id


def _beside(call: ToolCall, turn: Turn) -> dict[str, Any]:
    """Return a call as a dict, with its turn if the collection's is another, as after a reask."""
    data = _plain(call)
    return data if call.turn == turn else {**data, "turn": call.turn.model_dump()}


_PLAIN = {str, int, float, bool, type(None)}


def _plain(call: ToolCall) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": call.id,
        "name": call.name,
        "args": call.args,
        "arguments": call.arguments,
        "index": call.index,
    }
    if "arguments" not in call.model_fields_set:
        text = data.pop("arguments")  # reading derives it again, with the keys in the order of the text
        data |= (
            {"text": text}
            if len(call.args) > 1 or not _PLAIN.issuperset(map(type, call.args.values()))
            else {}
        )
    if type(call) is RefusedToolCall:
        data |= {"args": dict(call.args.items()), "code": call.code, "message": call.message}
        data |= {"path": call.path} if call.path is not None else {}
    return {**data, "altered": list(call.altered)} if call.altered else data


def _handed_on(call: ToolCall | InvalidToolCall, turn: Turn) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    args = parse_arguments(call.arguments)
    fields = {name: getattr(call, name) for name in InvalidToolCall.model_fields}
    fields |= {"name": call.name or "unnamed", "args": args if isinstance(args, dict) else {}, "turn": turn}
    return RefusedToolCall.model_validate(fields)


class _Id(NamedTuple):
    """The id of a call in its collection, and how it is marked if it had another."""

    value: str
    marks: tuple[str, ...] = ()


def unique_ids(
    own: Sequence[Any], taken: Collection[str] = (), answered: Collection[str] = ()
) -> tuple[list[str], set[int]]:
    """Give each call of a turn an id of its own (ids)."""
    known = [call_id for call_id in own if isinstance(call_id, str) and call_id]
    if len(set(known)) == len(own) and not answered:
        return known, set()
    used = {*known, *taken, *answered}
    kept = set(answered)
    ids: list[str] = []
    renumbered: set[int] = set()
    number = 0
    for index, call_id in enumerate(own):
        if isinstance(call_id, str) and call_id and call_id not in kept:
            kept.add(call_id)
            ids.append(call_id)
            continue
        if isinstance(call_id, str) and call_id:
            renumbered.add(index)
        number = max(number, index) + 1
        while f"call_{number}" in used:
            number += 1
        ids.append(f"call_{number}")
    return ids, renumbered


def _own_id(item: Any) -> Any:
    if isinstance(item, Mapping):
        return cast("Mapping[str, Any]", item).get("id")
    return getattr(item, "id", None)


def _call(item: Any, turn: Turn, position: int, given: _Id) -> ToolCall | InvalidToolCall:
    if isinstance(item, InvalidToolCall):
        return _kept(item, given)
    if isinstance(item, ToolCall):
        changes: dict[str, Any] = {} if item.turn != NO_TURN or turn == NO_TURN else {"turn": turn}
        if item.id != given.value:
            changes |= {"id": given.value, "altered": (*item.altered, *given.marks)}
        return item.model_copy(update=changes) if changes else item
    if isinstance(item, dspy.ToolCalls.ToolCall):
        item = {"id": item.id, "name": item.name, "args": item.args}
    if not isinstance(item, Mapping):
        raise ValueError(  # noqa: TRY004
            f"expected a call or a mapping with `name` and `args`, got a {type(item).__name__}"
        )
    known = dict(cast("Mapping[str, Any]", item))
    function = known.get("function")
    if isinstance(function, Mapping):
        made = _chat_call(given, cast("Mapping[str, Any]", function), turn, position)
        made.model_fields_set.difference_update({"arguments"} if known.get("id") else {"arguments", "id"})
        return made
    custom = known.get("custom")
    if known.get("type") == "custom" and isinstance(custom, Mapping):
        text = cast("Mapping[str, Any]", custom).get("input") or ""
        known = {
            "name": cast("Mapping[str, Any]", custom).get("name"),
            "args": {"input": text},
            "arguments": text,
        }
    beside: dict[str, Any] = {} if turn == NO_TURN else {"turn": turn}
    kind = RefusedToolCall if "code" in known else ToolCall
    call = kind.model_validate({"index": position, **beside, **_identified(known, given)})
    if not known.get("id"):
        call.model_fields_set.discard("id")
    return call


def _kept(item: Any, given: _Id) -> Any:
    """A bad call under its id; pydantic refuses what is none."""
    if isinstance(item, InvalidToolCall):
        if item.id == given.value:
            return item
        return item.model_copy(update={"id": given.value, "altered": (*item.altered, *given.marks)})
    return _identified(dict(cast("Mapping[str, Any]", item)), given) if isinstance(item, Mapping) else item


def _identified(known: dict[str, Any], given: _Id) -> dict[str, Any]:
    """A call as a mapping, under its id. An id of another type than text stays, for pydantic to refuse."""
    if known.get("id") and not isinstance(known["id"], str):
        return known
    marks = known.get("altered")
    if given.marks:
        known["altered"] = (
            *(cast("list[Any]", marks) if isinstance(marks, (list, tuple)) else ()),
            *given.marks,
        )
    return {**known, "id": given.value}


def _chat_call(
    given: _Id, function: Mapping[str, Any], turn: Turn, position: int
) -> ToolCall | InvalidToolCall:
    """Read a call in OpenAI's shape, whose arguments are JSON text."""
    name, sent = function.get("name"), function.get("arguments")
    text = sent if isinstance(sent, str) else compact({} if sent is None else sent)
    args: Json | Flaw = parse_arguments(text)
    if not isinstance(name, str) or not name:
        args = Flaw("missing_name", f"the call has no name; its arguments: {cut(text)}")
    if isinstance(args, Flaw):
        fields = {"id": given.value, "name": name or None, "arguments": text, "index": position}
        fields["altered"] = given.marks
        return InvalidToolCall.model_validate({**fields, **args._asdict()})
    fields = {"id": given.value, "name": name, "args": args, "arguments": text, "index": position}
    return ToolCall.model_validate({**fields, "altered": given.marks, "turn": turn})


def _jsonable(value: Any) -> Any:
    return pydantic.TypeAdapter[Any](cast("Any", type(value))).dump_python(value, mode="json")
