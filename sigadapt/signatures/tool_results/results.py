"""ToolResults: the results of a turn's calls, and how a result is written as text or as a JSON object.

As an input field it continues the conversation (the same conversation): the next request holds the model's
turn again, then one result per call. Each invalid call gets a failed result that says what is wrong with it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dspy
import pydantic
from typing_extensions import Self

from sigadapt.display import Displayable, Rendering, rendered_results
from sigadapt.errors import InvalidHistory, printable
from sigadapt.json_values import Json, cut, is_object, type_of
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.saved_model import OwnErrors
from sigadapt.signatures.tool_results.content import json_of, text_of
from sigadapt.signatures.tool_results.pairing import in_order, results_of
from sigadapt.signatures.tool_results.plain_values import result_json, result_text
from sigadapt.signatures.tool_results.tool_result import ToolResult


class Round(OwnErrors):
    """The calls of one turn and their results: one per call, in the order of the calls."""

    calls: ToolCalls
    results: tuple[ToolResult, ...]

    @pydantic.model_validator(mode="after")
    def _pair(self) -> Self:
        object.__setattr__(self, "results", in_order(self.calls, self.results))
        return self

    @property
    def text(self) -> str | None:
        """What the model said beside the calls."""
        return self.calls.text

    @property
    def pairs(self) -> tuple[tuple[ToolCall | InvalidToolCall, ToolResult], ...]:
        """Each call, good or bad, with its result, in the order of the calls."""
        return tuple(zip(self.calls.in_order(), self.results, strict=True))


class ToolResults(Displayable, OwnErrors):
    """The results of one turn's calls, or of several turns in a row (`first + second`). Build it with `of`.

    `ToolResults()` is empty: a loop can start with it and add results.

    Args:
        rounds: one for each turn, the earliest first.

    Example:
        >>> calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="now", args={})])
        >>> results = ToolResults.of(calls, ["noon"])
        >>> [(result.call_id, result.value) for result in results]
        [('call_1', 'noon')]
    """

    # A mapping of call ids to values would otherwise be read as no results at all.
    model_config = pydantic.ConfigDict(extra="forbid")

    what_to_give = "Give ToolResults.of(calls, values)."

    rounds: tuple[Round, ...] = ()

    @classmethod
    def of(
        cls,
        calls: ToolCalls | Sequence[ToolCall],
        values: Sequence[Any] | Mapping[str, Any] | dspy.ToolCallResults,
        errors: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> "ToolResults":
        """Pair each call of a turn with its result.

        Args:
            calls: the calls of one turn. Each bad call gets a failed result automatically.
            values: one for each good call, in order or by call id: text, JSON, images, files and audio, as
                in ToolResult. A ToolResult, DSPy's ToolCallResult, or the saved form of one goes to the call
                whose id it has, wherever it is in the list. An exception is a failure with its message. An
                MCP result is a failure if it says so.
            errors: one for each good call, or by call id: true if the value is the reason of a failure, or
                the reason itself (a string or an exception); false or None if the call succeeded.

        Raises:
            InvalidHistory: `unreadable_history` for calls that are none; else naming the ids and tools:
                `unanswered_call`, `unknown_call`, `repeated_result` for two values of one call, `wrong_tool`
                for a result of another tool than the call's, or `conflicting_result` for a good result and an
                error at once.

        Example:
            >>> calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="now", args={})])
            >>> next(iter(ToolResults.of(calls, [None], errors=["clock broken"]))).value
            'clock broken'
        """
        turn = calls if isinstance(calls, ToolCalls) else ToolCalls(calls)
        return cls(rounds=(Round(calls=turn, results=tuple(results_of(turn, values, errors))),))

    def __str__(self) -> str:
        lines: list[str] = []
        for turn in self.rounds:
            for call, result in turn.pairs:
                mark = "failed:" if result.is_error else "->"
                lines.append(f"{call} {mark} {printable(cut(text_of_result(result)))}")
        return "\n".join(lines) or "no results"

    def _rendering(self) -> Rendering:
        return rendered_results([(result, text_of_result(result)) for result in self])

    def __iter__(self) -> Any:
        return (result for round_ in self.rounds for result in round_.results)

    def __getitem__(self, index: int) -> ToolResult:
        return [*self][index]

    def __len__(self) -> int:
        return sum(len(round_.results) for round_ in self.rounds)

    def __add__(self, later: object) -> "ToolResults":
        if not isinstance(later, ToolResults):
            raise InvalidHistory(
                f"cannot add {type_of(later)} to results",
                code="unreadable_history",
                fix="Add ToolResults.of(calls, values).",
            )
        # A new ToolResults would pair the results of each round again.
        return self.model_copy(update={"rounds": (*self.rounds, *later.rounds)})


def text_of_result(result: ToolResult) -> str:
    """Return a result as text; images, files and audio are named in their places, as in `[image 1]`."""
    text = text_of(result.value) if result.is_content else result_text(result.value)
    return text if result.note is None else f"{text}\n\n{result.note}"


def result_object(result: ToolResult) -> Json:
    """Return a result as a JSON object, for providers that accept only an object."""
    # A failure becomes {"error": ...}, the content of an MCP result {"output": ...}; a dict, a pydantic model
    # and a dataclass stay themselves; anything else becomes {"result": ...}.
    # Source: Gemini's `FunctionResponse`, in which the keys `output` and `error` have a meaning.
    value = json_of(result.value) if result.is_content else result_json(result.value)
    note = {} if result.note is None else {"note": result.note}
    if result.is_error:
        return {"error": value, **note}
    if result.is_mcp:
        return {"output": value, **note}
    if not is_object(value) or (note and "note" in value):
        return {"result": value, **note}
    return {**value, **note}
