"""The typed calls of one model turn: ToolCall, InvalidToolCall and the ToolCalls that holds them.

`ToolCalls` is a `dspy.ToolCalls`, so DSPy's own modules take it as it is. Two things differ. Bad calls are
kept beside the good ones, each with a code (rule 3). And the turn the calls came from (its text, reasoning
and provider state) rides on every single call, because `dspy.ReActV2` rebuilds the collection from the
calls it got and keeps nothing else (DESIGN section 5).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import dspy
import pydantic

from sigadapt.errors import CallCode
from sigadapt.signatures.arguments import Flaw, compact

if TYPE_CHECKING:
    from sigadapt.signatures.decls import ToolDecls


class Turn(pydantic.BaseModel):
    """What the model said in the turn that made the calls, and what its provider wants back next time.

    Args:
        text: the text beside the calls.
        reasoning: the thinking that the provider showed.
        state: opaque provider data to replay on the next turn, as JSON values.
    """

    model_config = pydantic.ConfigDict(frozen=True)

    text: str | None = None
    reasoning: str | None = None
    state: dict[str, Any] | None = None


NO_TURN = Turn()
"""The turn of calls that came with nothing beside them."""


class ToolCall(dspy.ToolCalls.ToolCall):
    """One call the model made, decoded and never altered unless `altered` says so.

    Args:
        id: the provider's id, or a synthesised `call_<n>` (rule 6).
        name: the declared tool's name.
        args: the decoded arguments.
        arguments: the JSON text exactly as sent; where the provider sent an object, its compact form.
        index: the position among all calls of the answer, bad ones counted.
        altered: what was changed on request: `repaired`, `unwrapped`, `recovered`, `renumbered`.
        turn: what the model said in the turn that made the call.

    Example:
        >>> call = ToolCall(name="get_weather", args={"city": "Paris"}, id="call_1")
        >>> call.arguments
        '{"city":"Paris"}'
    """

    model_config = pydantic.ConfigDict(frozen=True)

    id: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  (rule 6)
    arguments: str = ""
    index: int = 0
    altered: tuple[str, ...] = ()
    turn: Turn = NO_TURN

    def bind(self, decls: "ToolDecls") -> "dict[str, Any] | InvalidToolCall":
        """The arguments as typed Python values, ready for `func(**bound)`; nothing is called.

        Args:
            decls: the tools that were declared for the turn.

        Returns:
            The arguments by keyword, or an InvalidToolCall `unknown_tool` or `schema_mismatch`. Of a
            declaration without Python types, the arguments as they are. `binding.py` has the rules.

        Example:
            >>> from pathlib import Path
            >>> from sigadapt import ToolDecls
            >>> def read(path: Path) -> str: ...
            >>> call = ToolCall(id="call_1", name="read", args={"path": "notes.txt"})
            >>> call.bind(ToolDecls(read)) == {"path": Path("notes.txt")}
            True
        """
        from sigadapt.signatures.binding import bind  # noqa: PLC0415  (it makes calls of this very type)

        return bind(self, decls)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _text_of_args(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "arguments" not in data and "args" in data:
            return {**cast("Mapping[str, Any]", data), "arguments": compact(data["args"])}
        return cast("Any", data)

    def format(self) -> dict[str, Any]:
        """The call whole: `dspy.ToolCalls`, which ReActV2 rebuilds, writes of a call what this gives."""
        return self.serialize_model()

    @pydantic.model_serializer()
    def serialize_model(self) -> Any:
        """The call whole, its turn included."""
        return {**_plain(self), **({} if self.turn == NO_TURN else {"turn": self.turn.model_dump()})}


class InvalidToolCall(pydantic.BaseModel):
    """One call the model made that cannot be used, kept whole.

    Args:
        id: the provider's id, or a synthesised one, so that an error can be sent back for it.
        name: the name the model gave, if it gave one.
        arguments: the arguments' text exactly as sent.
        index: the position among all calls of the answer.
        code: what is wrong (`errors.CallCode`).
        message: the same in a sentence, with the text sent cut to a readable length.
        path: a JSON Pointer into the arguments, where the flaw has a place.
    """

    model_config = pydantic.ConfigDict(frozen=True)

    id: str
    name: str | None
    arguments: str
    index: int
    code: CallCode
    message: str
    path: str | None = None


def refused(call: ToolCall, flaw: Flaw) -> InvalidToolCall:
    """A good call as the bad one that a closer look made of it."""
    return InvalidToolCall(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        index=call.index,
        code=flaw.code,
        message=flaw.message,
        path=flaw.path,
    )


class ToolCalls(dspy.ToolCalls):
    """The calls of one turn. `len`, iteration, indexing and truth are over the good ones, in order.

    Args:
        tool_calls: the good calls.
        invalid: the bad ones, each with its code and raw text.
        turn: what the model said beside them; read it through `.text` and `.reasoning`.

    Example:
        >>> calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="now", args={})])
        >>> len(calls), calls[0].name, calls.invalid, calls.text
        (1, 'now', (), None)
        >>> ToolCalls.model_validate_json(calls.model_dump_json()) == calls
        True
    """

    model_config = pydantic.ConfigDict(frozen=True)

    tool_calls: list[ToolCall]  # pyright: ignore[reportIncompatibleVariableOverride]
    invalid: tuple[InvalidToolCall, ...] = ()
    turn: Turn = NO_TURN

    @property
    def text(self) -> str | None:
        """What the model said beside the calls."""
        return self.turn.text

    @property
    def reasoning(self) -> str | None:
        """The thinking that the provider showed."""
        return self.turn.reasoning

    def __len__(self) -> int:
        return len(self.tool_calls)

    def __iter__(self) -> Iterator[ToolCall]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.tool_calls)

    def __getitem__(self, index: int) -> ToolCall:
        return self.tool_calls[index]

    def in_order(self) -> "list[ToolCall | InvalidToolCall]":
        """All calls, good and bad, as the provider sent them."""
        return sorted([*self.tool_calls, *self.invalid], key=lambda call: call.index)

    def validated(self, decls: "ToolDecls") -> "ToolCalls":
        """These calls checked against the declarations, without running anything.

        Args:
            decls: the tools that were declared for the turn.

        Returns:
            New ToolCalls. A call of no declared tool becomes an InvalidToolCall `unknown_tool`; one whose
            arguments its tool's schema refuses becomes `schema_mismatch`, with the path. Order is kept.

        Example:
            >>> from sigadapt import ToolDecls
            >>> calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="rm_rf", args={})])
            >>> calls.validated(ToolDecls([])).invalid[0].code
            'unknown_tool'
        """
        good: list[ToolCall] = []
        bad = list(self.invalid)
        for call in self.tool_calls:
            flaw = decls.flaw_of(call.name, call.args)
            if flaw is None:
                good.append(call)
            else:
                bad.append(refused(call, flaw))
        if len(bad) == len(self.invalid):
            return self
        bad.sort(key=lambda call: call.index)
        return self.model_copy(update={"tool_calls": good, "invalid": tuple(bad)})

    def awaiting_confirmation(self, decls: "ToolDecls") -> "ToolCalls":
        """Those of these calls that a person must agree to, each wrapped in a virtual call.

        Args:
            decls: the tools that were declared for the turn.

        Returns:
            Calls of `sigadapt_request_confirmation`, which survive JSON; empty where none needs one. Their
            answers are `confirmation.approved(request)` and `confirmation.rejected(request)`.

        Raises:
            InvalidToolDecl: `confirmation_failed`, where a declaration's own function gives no answer.
        """
        from sigadapt.signatures.confirmation import awaiting_confirmation  # noqa: PLC0415  (it makes calls)

        return awaiting_confirmation(self, decls)

    @pydantic.model_validator(mode="before")
    @classmethod
    def validate_input(cls, data: Any) -> Any:
        """Take ToolCalls, what `model_dump` wrote, or a list of calls; the turn goes onto every call."""
        if isinstance(data, cls):
            return data
        if isinstance(data, dspy.ToolCalls):
            data = {"tool_calls": data.tool_calls, "tool_call_results": data.tool_call_results}
        elif not isinstance(data, Mapping) and isinstance(data, Iterable):
            data = {"tool_calls": list(cast("Iterable[Any]", data))}
        if not isinstance(data, Mapping) or not isinstance(data.get("tool_calls"), Sequence):
            raise ValueError(  # noqa: TRY004  (pydantic makes a ValidationError of it)
                "ToolCalls takes a mapping with a list `tool_calls`, or a list of calls"
            )
        known = cast("Mapping[str, Any]", data)
        turn = Turn.model_validate(known.get("turn") or NO_TURN)
        calls = [_call(item, turn, n) for n, item in enumerate(cast("list[Any]", known["tool_calls"]))]
        return {
            **known,
            "tool_calls": calls,
            "turn": turn if turn != NO_TURN or not calls else calls[0].turn,
        }

    @pydantic.model_serializer()
    def serialize_model(self) -> dict[str, Any]:
        """Everything that `model_validate` needs to build an equal object; the turn once, not per call."""
        data: dict[str, Any] = {"tool_calls": [_beside(call, self.turn) for call in self.tool_calls]}
        if self.invalid:
            data["invalid"] = [call.model_dump() for call in self.invalid]
        if self.turn != NO_TURN:
            data["turn"] = self.turn.model_dump()
        if self.tool_call_results is not None:
            data["tool_call_results"] = _jsonable(self.tool_call_results)
        return data


def _beside(call: ToolCall, turn: Turn) -> dict[str, Any]:
    """A call without its turn, where that is the collection's: not so after a reask, which takes two."""
    data = _plain(call)
    return data if call.turn == turn else {**data, "turn": call.turn.model_dump()}


def _plain(call: ToolCall) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": call.id,
        "name": call.name,
        "args": call.args,
        "arguments": call.arguments,
        "index": call.index,
    }
    return {**data, "altered": list(call.altered)} if call.altered else data


def _call(item: Any, turn: Turn, position: int) -> ToolCall:
    if isinstance(item, ToolCall):
        return item if item.turn != NO_TURN or turn == NO_TURN else item.model_copy(update={"turn": turn})
    if isinstance(item, dspy.ToolCalls.ToolCall):
        item = {"id": item.id, "name": item.name, "args": item.args}
    if not isinstance(item, Mapping):
        raise ValueError(  # noqa: TRY004
            f"a call is a mapping with `name` and `args`, not {type(item).__name__}"
        )
    known = cast("Mapping[str, Any]", item)
    return ToolCall.model_validate(
        {
            "index": position,
            **({} if turn == NO_TURN else {"turn": turn}),
            **known,
            "id": known.get("id") or f"call_{position + 1}",
        }
    )


def _jsonable(value: Any) -> Any:
    return pydantic.TypeAdapter[Any](cast("Any", type(value))).dump_python(value, mode="json")
