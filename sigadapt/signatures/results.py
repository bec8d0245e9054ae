"""ToolResults, which continues a conversation, and a result's value as text and as a JSON object.

As an input field, ToolResults carries the turn that made the calls with it, so that the model sees its own
words, calls and thinking again, then one result a call, and nothing after them (rule 8). Bad calls that were
kept get a failed result of their own, with what was wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import dspy
import jiter
import orjson
import pydantic
from dspy.adapters import utils

from sigadapt.errors import InvalidHistory
from sigadapt.schemas.json_values import Json, compact
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.sources.mcp import content, is_failure, is_mcp_result
from sigadapt.signatures.tool_result import ToolResult

_MOST_QUOTED = 4_000  # characters of a bad call's arguments, for the model to see what it wrote
_PLAIN = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


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
                    fix="Give one, or use ToolResult.unanswered(call).",
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
    """Say what is wrong with a call, for the model that made it.

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


def result_text(value: Any) -> str:
    """Write a result's value as text: text as it is, anything else as compact JSON.

    Example:
        >>> result_text({"ok": True}), result_text("fine")
        ('{"ok":true}', 'fine')
    """
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=_PLAIN).decode()
    except TypeError:  # not plain JSON: DSPy builds a pydantic adapter for it
        return compact(utils.serialize_for_json(value))


def result_object(result: ToolResult) -> Json:
    """Write a result as a JSON object, for providers that take nothing else.

    | result | object |
    |---|---|
    | a failure | `{"error": ...}` |
    | what an MCP server's result said | `{"output": ...}` |
    | a dict, a pydantic model, a dataclass | itself |
    | anything else | `{"result": ...}` |

    Source: Gemini's `FunctionResponse`, which gives `output` and `error` a meaning of their own.

    Example:
        >>> result_object(ToolResult(call_id="c", name="f", value=[1, 2]))
        {'result': [1, 2]}
        >>> result_object(ToolResult(call_id="c", name="f", value={"ok": True}))
        {'ok': True}
    """
    value = (
        result.value if isinstance(result.value, str) else jiter.from_json(result_text(result.value).encode())
    )
    if result.is_error:
        return {"error": value}
    if result.is_mcp:
        return {"output": value}
    return cast("Json", value) if isinstance(value, dict) else {"result": value}


class _Outcome(NamedTuple):
    value: Any
    failed: bool = False
    is_mcp: bool = False


def _result(call: ToolCall | InvalidToolCall, values: dict[str, Any], errors: dict[str, Any]) -> ToolResult:
    if isinstance(call, InvalidToolCall):
        return ToolResult(call_id=call.id, name=call.name or "unnamed", value=complaint(call), is_error=True)
    value, failed, is_mcp = _outcome(values.get(call.id), errors.get(call.id))
    return ToolResult(call_id=call.id, name=call.name, value=value, is_error=failed, is_mcp=is_mcp)


def _outcome(value: Any, error: Any) -> _Outcome:
    if isinstance(value, (ToolResult, dspy.ToolCallResults.ToolCallResult)):
        return _Outcome(value.value, value.is_error, isinstance(value, ToolResult) and value.is_mcp)
    if error is True or (not error and isinstance(value, BaseException)):
        error = value
    elif not error:
        if is_mcp_result(value):
            return _Outcome(content(value), is_failure(value), is_mcp=True)
        return _Outcome(value)
    return _Outcome(
        str(error) or type(error).__name__ if isinstance(error, BaseException) else error, failed=True
    )
