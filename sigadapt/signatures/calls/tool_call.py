"""ToolCall: one call that a model made, decoded, as a program gets it.

A RefusedToolCall is a bad call as a loop gets it that knows good calls alone, such as `dspy.ReActV2`.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import dspy
import pydantic
from typing_extensions import Self

from sigadapt.display import Displayable, rendered_call
from sigadapt.errors import CallCode, InvalidHistory, InvalidToolDecl, UnboundToolCall, printable
from sigadapt.json_values import Json, compact, cut, equal_json, is_object, without_halves
from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.signatures.binding import function_arguments
from sigadapt.signatures.calls.turn import NO_TURN, InvalidToolCall, Turn
from sigadapt.signatures.confirmation import REJECTED, request_id
from sigadapt.signatures.saved_model import UNHASHABLE, OwnErrors, in_order_of
from sigadapt.signatures.tool_decl import REQUEST
from sigadapt.signatures.tool_decls import Sources, decls_of
from sigadapt.signatures.tool_functions.open_call import Kind
from sigadapt.signatures.tool_results.tool_result import ToolResult

_WITHOUT_KEYS = {str, int, float, bool, type(None)}


class ToolCall(Displayable, OwnErrors, dspy.ToolCalls.ToolCall):
    """One call that the model made, decoded, and unchanged unless `altered` says otherwise (nothing silent).

    Args:
        id: the provider's id, or a made one (ids).
        name (str): the declared tool's name.
        args (dict): the decoded arguments; `{"input": text}` for a call of a custom tool.
        arguments: the JSON text of the arguments exactly as sent. If the provider sent an object, its compact
            form; for a call of a custom tool, its text.
        index: the position among all calls of the answer, bad ones included, from 0.
        altered: what was changed: `recovered` if the call was read from text, `repaired` or `unwrapped` on
            request, `renumbered` if its id was taken, `unicode` if half of a surrogate pair was read as
            U+FFFD, `repeated` if an answer to a reask repeated the call (the repetition was dropped, see
            `Turn.repeats`).
        turn: what the model said beside the call.

    Example:
        >>> call = ToolCall(name="get_weather", args={"city": "Paris"}, id="call_1")
        >>> call
        get_weather(city='Paris')
        >>> call.arguments
        '{"city":"Paris"}'
    """

    id: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  (ids)
    arguments: str = ""
    index: int = 0
    altered: tuple[str, ...] = ()
    turn: Turn = NO_TURN

    _rendering = rendered_call

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

    def bind(self, decls: Sources) -> dict[str, Any]:
        """Return the arguments as typed Python values, ready for `func(**bound)`. No tool is called.

        Args:
            decls: the tools that were declared for the turn, in any form that ToolDecls accepts.

        Returns:
            The arguments by keyword, each converted by pydantic to its annotation; unchanged if the
            declaration has no Python types. `binding.py` has the details.

        Raises:
            UnboundToolCall: `unknown_tool` or `schema_mismatch`. Its `call` is this call as an
                InvalidToolCall. So `func(**call.bind(decls))` never calls a function with arguments that do
                not fit.

        Example:
            >>> from sigadapt import ToolCalls, ToolDecls
            >>> from pathlib import Path
            >>> def read(path: Path) -> str: ...
            >>> call = ToolCall(id="call_1", name="read", args={"path": "notes.txt"})
            >>> call.bind(ToolDecls(read)) == {"path": Path("notes.txt")}
            True
        """
        tools = decls_of(decls)
        if self.name in tools:
            values = function_arguments(tools[self.name], self.args)
        else:  # without a flaw, it is a tool in a provider's own words
            values = tools.flaw_of(self.name, self.args) or dict(self.args)
        if isinstance(values, Flaw):
            raise UnboundToolCall(refused(self, values))
        return values

    def execute(self, functions: Sources | None = None) -> Any:
        """Run the declared function of this call, with its arguments bound.

        Unlike DSPy's `execute`, it does not look functions up in the caller's variables, because a model
        could name any function there. A call that requires confirmation runs if it came from `approved()` in
        this process. `ToolCalls.run` runs all calls of a turn, with the decisions that came later.

        Returns:
            What the function returns, to be awaited if the function is async. Of a DSPy module, a dict of
            its outputs.

        Args:
            functions: the tools that were declared, in any form that ToolDecls accepts, or functions by name.

        Raises:
            UnboundToolCall: as `bind`.
            InvalidToolDecl: `unknown_source` without tools; `no_function` for a tool without a function;
                `nobody_to_ask` for one that requires confirmation and was not approved.
            InputNeeded: if the tool asks a person, or its result comes from elsewhere.
            TimeoutError: after the `timeout` of the declaration.
            InvalidHistory: `unfit_result`, if the declaration has `check_result=True`.

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
        from sigadapt.turns import running  # a door: tests/test_repository.py

        return running.execute(self, decls_of(functions))

    @property
    def kind(self) -> Kind:
        """What a request asks for: `approval` of a call, an `answer` to a question, or its `result`.

        Raises:
            InvalidHistory: `no_confirmation`, if this call is not a request.
        """
        self._requested_call()
        kind = self.args.get("kind", "approval")
        return kind if kind in ("answer", "result") else "approval"

    @property
    def hint(self) -> str:
        """The question of a request, with control characters escaped, but for line ends.

        Raises:
            InvalidHistory: `no_confirmation`, if this call is not a request.
        """
        return printable(str(self._request_member("hint") or ""), also="\n")

    @property
    def schema(self) -> Json | None:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]  (a deprecated method of pydantic's)
        """The JSON Schema of the answer that a request asks for; None for any other request."""
        return self._request_member("schema")

    @property
    def payload(self) -> Any:
        """What the tool or its policy gives a program that shows the request, as a JSON value."""
        return self._request_member("payload")

    @property
    def pending(self) -> Any:
        """The handle of the result that a request asks for, as the tool gave it: `sigadapt.Pending`."""
        return self._request_member("pending")

    def _request_member(self, name: str) -> Any:
        self._requested_call()
        return self.args.get(name)

    @property
    def call(self) -> "ToolCall":
        """The call that a request is about; one for approval has the arguments as they will run.

        Raises:
            InvalidHistory: `no_confirmation`, if this call is not a request for confirmation.

        Example:
            >>> from sigadapt import ToolCalls, ToolDecl, ToolDecls
            >>> def pay(to: str, eur: int = 10) -> str: ...
            >>> decls = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
            >>> [request] = ToolCalls([{"name": "pay", "args": {"to": "Ada"}}]).awaiting_confirmation(decls)
            >>> request.hint, request.call
            ('Run pay?', pay(to='Ada', eur=10))
        """
        return self._requested_call()

    def approved(self) -> "ToolCall":
        """Answer yes to a request for confirmation: return its call, which `execute` then runs.

        The arguments are those of the original call with defaults, or as somebody edited them in
        `request.args["call"]["args"]`. That a call was approved is known of this object, in this process. It
        is never saved, because a client could write it: after a restart, use `ToolCalls.run` with decisions.

        Raises:
            InvalidHistory: `no_confirmation`, if this call is not a request for confirmation, or if a model
                sent it.

        Example:
            >>> from sigadapt import ToolCalls, ToolDecls
            >>> decls = ToolDecls([{"name": "pay", "requires_confirmation": True}])
            >>> calls = ToolCalls([ToolCall(id="call_1", name="pay", args={"eur": 5})])
            >>> [request] = calls.awaiting_confirmation(decls)
            >>> request.approved() == calls[0]
            True
        """
        call = self._requested_call()
        if self.kind != "approval":
            raise self._no_confirmation()
        pin: object = self.args.get("pin")
        mark_approved(call, pin if isinstance(pin, str) else None)
        return call

    def rejected(self, reason: str = REJECTED) -> ToolResult:
        """Answer no to a request for confirmation: return a failed result of the call, for `ToolResults.of`.

        Args:
            reason: the text of the failed result, which the model reads.

        Raises:
            InvalidHistory: `no_confirmation`, if this call is not a request for confirmation.

        Example:
            >>> from sigadapt import ToolCalls, ToolDecls
            >>> decls = ToolDecls([{"name": "pay", "requires_confirmation": True}])
            >>> calls = ToolCalls([ToolCall(id="call_1", name="pay", args={"eur": 5})])
            >>> result = calls.awaiting_confirmation(decls)[0].rejected("Too expensive.")
            >>> result.call_id, result.value, result.is_error
            ('call_1', 'Too expensive.', True)
        """
        return ToolResult.failed(self._requested_call(), reason)

    def _requested_call(self) -> "ToolCall":
        call = self.args.get("call")
        if self.name == REQUEST and is_object(call) and not was_sent(self):
            with suppress(pydantic.ValidationError):
                return in_agreement(ToolCall.model_validate({"turn": self.turn, **call}))
        raise self._no_confirmation()

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
        if not isinstance(data, Mapping) or "arguments" in data or "args" not in data:
            return handler(data)
        fields: dict[str, Any] = {**data}
        args = in_order_of(fields["args"], fields.pop("text", None))
        call = handler({**fields, "args": args, "arguments": compact(args)})
        call.model_fields_set.discard("arguments")  # which nobody sent: `was_sent` asks for it
        return call

    def __eq__(self, other: object) -> bool:
        """Compare with a call of this package or of DSPy."""
        # Calls that a model sent are equal if everything about them is. A call that somebody wrote, such as
        # an expected one, or one of DSPy's, is equal to a call of the same name, arguments and id; without an
        # id, to one of any id.
        if not isinstance(other, dspy.ToolCalls.ToolCall):
            return NotImplemented
        if was_sent(self) and was_sent(other):
            return super().__eq__(other)
        if hasattr(self, "code") != hasattr(other, "code"):  # a bad call never equals a good one
            return False
        ids = {call.id for call in (self, other) if "id" in call.model_fields_set} - {None}
        return len(ids) < 2 and self.name == other.name and equal_json(self.args, other.args)

    __hash__ = UNHASHABLE  # its arguments are a dict

    def format(self) -> dict[str, Any]:
        """Return the whole call, turn included. `dspy.ToolCalls`, which ReActV2 builds, saves this."""
        return self.saved_beside(NO_TURN)

    @pydantic.model_serializer()
    def serialize_model(self) -> Any:
        """Return the whole call, turn included."""
        return self.saved_beside(NO_TURN)

    def saved_beside(self, turn: Turn) -> dict[str, Any]:
        """Return the call as a dict, with its turn if the collection's is another, as after a reask."""
        fields: dict[str, Any] = {"id": self.id, "name": self.name, "args": self.args}
        if was_sent(self):
            fields["arguments"] = self.arguments
        elif len(self.args) > 1 or not _WITHOUT_KEYS.issuperset(map(type, self.args.values())):
            fields["text"] = self.arguments  # for the order of keys, which storage may change
        fields["index"] = self.index
        if self.altered:
            fields["altered"] = list(self.altered)
        return fields if self.turn == turn else {**fields, "turn": self.turn.model_dump()}

    def __str__(self) -> str:
        arguments = ", ".join(f"{key}={cut(repr(value))}" for key, value in self.args.items())
        shown = cut(arguments) if arguments else ""
        return printable(f"{self.name}({shown})")

    __repr__ = __str__


_APPROVED: WeakValueDictionary[tuple[int, str, str | None], ToolCall] = WeakValueDictionary()
"""The approved calls, by their identity in this process and what was approved. Nothing saves it."""


def mark_approved(call: ToolCall, pin: str | None) -> None:
    """Remember that a person approved this very object, with these arguments, of a tool with this pin."""
    _APPROVED[id(call), id_of_request(call, call.args), pin] = call


def is_approved(call: ToolCall, pin: str | None) -> bool:
    """Return whether a person approved this very object, with these arguments, of a tool with this pin."""
    return _APPROVED.get((id(call), id_of_request(call, call.args), pin)) is call


def copy_of_call(call: ToolCall) -> ToolCall:
    """Return a copy with arguments of its own."""
    return call.model_copy(update={"args": deepcopy(call.args)})


def id_of_request(call: ToolCall, args: Json) -> str:
    """Return the id of the request for confirmation of a call that runs with these arguments."""
    return request_id(call.id, call.name, args, call.turn.request_hash)


def in_agreement(call: ToolCall) -> ToolCall:
    """Return a call whose arguments' text says what its arguments say, which somebody may have edited."""
    if not was_sent(call) or call.is_custom:
        return call
    text = parse_arguments(call.arguments)
    if is_object(text) and equal_json(text, call.args):
        return call
    is_custom = not is_object(text) and call.args.keys() == {"input"}
    arguments = call.args["input"] if is_custom else compact(call.args)
    return call.model_copy(update={"arguments": arguments})


def was_sent(call: object) -> bool:
    """Return whether a call has the text of its arguments from a provider, not only from who wrote it."""
    return isinstance(call, ToolCall) and "arguments" in call.model_fields_set


def refused(call: ToolCall, flaw: Flaw) -> InvalidToolCall:
    """Return a call as an InvalidToolCall with a flaw that was found in it."""
    fields = {name: getattr(call, name) for name in ("id", "name", "arguments", "index", "altered")}
    return InvalidToolCall(**fields, **flaw._asdict())


class RefusedArguments(dict[str, Any]):
    """The arguments of a bad call. Reading a value, `items` and JSON work; `**arguments` raises."""

    def __init__(self, values: dict[str, Any], call: InvalidToolCall) -> None:
        super().__init__(values.items())
        self.call = call

    # Python unpacks a dict whose `__iter__` is its own through `keys`.
    def __iter__(self) -> Iterator[str]:
        raise UnboundToolCall(self.call)

    def keys(self) -> NoReturn:
        """Raise the error that says what is wrong."""
        raise UnboundToolCall(self.call)

    def __bool__(self) -> bool:
        return True  # so that `call.args or {}` does not replace it with an empty dict


class RefusedToolCall(ToolCall):
    """A bad call for a loop that is not sigadapt's own: it fails with its error when the loop runs it."""

    code: CallCode  # as of an InvalidToolCall
    message: str
    path: str | None = None

    def bind(self, decls: Sources) -> NoReturn:
        """Raise the error that says what is wrong."""
        raise UnboundToolCall(self.as_invalid())

    def as_invalid(self) -> InvalidToolCall:
        """Return the call as the InvalidToolCall that it is."""
        return refused(self, Flaw(self.code, self.message, self.path))

    @classmethod
    def of(cls, call: InvalidToolCall, turn: Turn) -> "RefusedToolCall":
        """Return a bad call, with the turn it was made in, for such a loop."""
        args = parse_arguments(call.arguments)
        if not isinstance(args, dict):
            args = {}
        fields = {**dict(call), "name": call.name or "unnamed", "turn": turn, "args": args}
        return cls.model_validate(fields)

    def saved_beside(self, turn: Turn) -> dict[str, Any]:
        """Return the call as a dict, with what is wrong with it."""
        fields = {**super().saved_beside(turn), "args": dict(self.args.items())}
        for name in ("code", "message", "path"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        return fields

    @pydantic.model_validator(mode="after")
    def _refuse_args(self) -> Self:
        vars(self)["args"] = RefusedArguments(self.args, self.as_invalid())
        return self

    def __str__(self) -> str:
        return str(self.as_invalid())

    __repr__ = __str__
