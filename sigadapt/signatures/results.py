"""ToolResults: the results of a turn's calls, and how a result is written as text or as a JSON object.

As an input field, ToolResults continues the conversation: the next request holds the model's turn again
(text, calls, reasoning), then one result per call, and nothing after them (rule 8). Each invalid call gets a
failed result that says what is wrong with it.
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

_MOST_QUOTED = 4_000  # characters of an invalid call's arguments, for the model to see what it wrote
_PLAIN = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


class Round(pydantic.BaseModel):
    """The calls of one turn and their results: one per call, in the order of the calls.

    Example:
        >>> calls = ToolCalls([ToolCall(id="call_1", name="now", args={})])
        >>> ToolResults.of(calls, ["noon"]).rounds[0].results[0].value
        'noon'
    """

    model_config = pydantic.ConfigDict(frozen=True)

    calls: ToolCalls
    results: tuple[ToolResult, ...]


class ToolResults(pydantic.BaseModel):
    """The results of one turn's calls, or of several turns in a row (`first + second`). Build it with `of`.

    Args:
        rounds: one for each turn, the earliest first.

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
        """Pair each call of a turn with its result.

        Args:
            calls: the calls of one turn. Its invalid calls get a failed result by themselves.
            values: one for each valid call, in order or by call id. An exception becomes a failed result with
                its message. An MCP result becomes its content, and is failed if it says so. Of a ToolResult,
                the value and the failure are taken.
            errors: one for each valid call, in order or by call id. False or None: the call succeeded. True:
                it failed, and its value is the reason. A text or an exception: it failed, for this reason.

        Raises:
            InvalidHistory: `unanswered_call` for a call without a value, `unknown_call` for a value without a
                call.

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
    """Return what is wrong with a call, for the model that made it to read.

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
                    f"got a {what} for the call {call_id!r}, which is not a valid call of this turn",
                    code="unknown_call",
                )
        return dict(named)
    values = list(cast("Iterable[Any]", given))
    if len(values) != len(turn):
        ids = ", ".join(call.id for call in turn) or "none"
        raise InvalidHistory(
            f"got {len(values)} {what}s for {len(turn)} valid calls ({ids})",
            code="unanswered_call" if len(values) < len(turn) else "unknown_call",
            fix="Give one for each valid call, in order, or a mapping by call id.",
        )
    return {call.id: value for call, value in zip(turn, values, strict=True)}


def result_text(value: Any) -> str:
    """Return a result's value as text: text as it is, anything else as compact JSON.

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
    """Return a result as a JSON object, for providers that accept only an object.

    | result | object |
    |---|---|
    | a failure | `{"error": ...}` |
    | the content of an MCP result | `{"output": ...}` |
    | a dict, a pydantic model, a dataclass | itself |
    | anything else | `{"result": ...}` |

    Source: Gemini's `FunctionResponse`, in which the keys `output` and `error` have a meaning.

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
