"""The results of a turn's calls: ToolResult, and the ToolResults that continues the conversation.

As an input field, ToolResults carries the turn that made the calls with it, so that the model sees its own
words, calls and thinking again, then one result a call, and nothing after them (rule 8). Bad calls that were
kept get a failed result of their own, with what was wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import dspy
import pydantic

from sigadapt.errors import InvalidHistory
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.wrapping import content, is_failure, is_mcp_result

_MOST_QUOTED = 4_000  # characters of a bad call's arguments, for the model to see what it wrote


class ToolResult(pydantic.BaseModel):
    """What one call gave.

    Args:
        call_id: the id of the call it answers.
        name: the tool's name.
        value: text, or any value that has a JSON form.
        is_error: whether the call failed; `value` then says why.

    Example:
        >>> ToolResult.unanswered(ToolCall(id="call_1", name="search", args={})).is_error
        True
    """

    model_config = pydantic.ConfigDict(frozen=True)

    call_id: str
    name: str
    value: Any
    is_error: bool = False

    @classmethod
    def unanswered(cls, call: ToolCall) -> "ToolResult":
        """Mark a call as not answered: no provider takes a call without a result."""
        return cls(call_id=call.id, name=call.name, value="This call was not answered.", is_error=True)


class Round(pydantic.BaseModel):
    """The calls of one turn and their results, one a call and in the calls' order."""

    model_config = pydantic.ConfigDict(frozen=True)

    calls: ToolCalls
    results: tuple[ToolResult, ...]


class ToolResults(pydantic.BaseModel):
    """The results of one turn's calls, or of several turns' in a row (`first + second`).

    Example:
        >>> calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="now", args={})])
        >>> results = ToolResults.of(calls, ["noon"])
        >>> [(result.call_id, result.value) for result in results]
        [('call_1', 'noon')]
    """

    model_config = pydantic.ConfigDict(frozen=True)

    rounds: tuple[Round, ...]

    @classmethod
    def of(
        cls,
        calls: ToolCalls | Sequence[ToolCall],
        values: Sequence[Any] | Mapping[str, Any],
        errors: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> "ToolResults":
        """Pair each call with what it gave.

        Args:
            calls: the calls of one turn. Bad ones that were kept get a failed result by themselves.
            values: one a good call, in order, or by call id. A ToolResult is taken as it is, an exception
                is a failure that says its message, and an MCP result what it says, failed if it says so.
            errors: one a good call, or by call id: true where the value is the failure's reason, or the
                reason itself (a text or an exception); false or None where the call succeeded.

        Raises:
            InvalidHistory: for a call without a value or a value without a call, naming the id.

        Example:
            >>> calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="now", args={})])
            >>> next(iter(ToolResults.of(calls, [None], errors=["clock broken"]))).value
            'clock broken'
        """
        turn = calls if isinstance(calls, ToolCalls) else ToolCalls.model_validate(list(calls))
        given, reasons = _by_id(turn, values, "value"), _by_id(turn, errors, "error")
        for call in turn:
            if call.id not in given and not reasons.get(call.id):
                raise InvalidHistory(
                    f"call {call.id!r} has no value",
                    code="unanswered_call",
                    tool=call.name,
                    fix="Give one, or ToolResult.unanswered(call).",
                )
        return cls(
            rounds=(
                Round(
                    calls=turn,
                    results=tuple(_result(call, given, reasons) for call in turn.in_order()),
                ),
            )
        )

    def __iter__(self) -> Any:
        return (result for round_ in self.rounds for result in round_.results)

    def __len__(self) -> int:
        return sum(len(round_.results) for round_ in self.rounds)

    def __add__(self, later: "ToolResults") -> "ToolResults":
        return ToolResults(rounds=(*self.rounds, *later.rounds))


def complaint(call: InvalidToolCall) -> str:
    """What is wrong with a call, for the model that made it.

    Example:
        >>> call = InvalidToolCall(
        ...     id="c", name="f", arguments="{", index=0, code="invalid_json", message="not JSON"
        ... )
        >>> print(complaint(call))
        invalid_json: not JSON
        You sent: {
    """
    place = f" at {call.path}" if call.path else ""
    return f"{call.code}{place}: {call.message}\nYou sent: {call.arguments[:_MOST_QUOTED]}"


def _by_id(turn: ToolCalls, given: Any, what: str) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        known = {call.id for call in turn}
        named = cast("Mapping[str, Any]", given)
        for call_id in named:
            if call_id not in known:
                raise InvalidHistory(
                    f"there is a {what} for call {call_id!r}, and no such call", code="unknown_call"
                )
        return dict(named)
    values = list(cast("Iterable[Any]", given))
    if len(values) != len(turn):
        raise InvalidHistory(
            f"{len(values)} {what}s were given for {len(turn)} calls: {', '.join(call.id for call in turn)}",
            code="unanswered_call" if len(values) < len(turn) else "unknown_call",
            fix="Give one a call, in order, or a mapping by call id.",
        )
    return {call.id: value for call, value in zip(turn, values, strict=True)}


def _result(call: ToolCall | InvalidToolCall, values: dict[str, Any], errors: dict[str, Any]) -> ToolResult:
    if isinstance(call, InvalidToolCall):
        return ToolResult(call_id=call.id, name=call.name or "unnamed", value=complaint(call), is_error=True)
    value, failed = _outcome(values.get(call.id), errors.get(call.id))
    return ToolResult(call_id=call.id, name=call.name, value=value, is_error=failed)


def _outcome(value: Any, error: Any) -> tuple[Any, bool]:
    if isinstance(value, (ToolResult, dspy.ToolCallResults.ToolCallResult)):
        return value.value, value.is_error
    if error is True or (not error and isinstance(value, BaseException)):
        error = value
    elif not error:
        return (content(value), is_failure(value)) if is_mcp_result(value) else (value, False)
    return (str(error) or type(error).__name__ if isinstance(error, BaseException) else error), True
