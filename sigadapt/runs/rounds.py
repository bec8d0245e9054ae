"""See what happened in a run: `rounds` reads the turns with calls of any history, each with its results."""

from collections.abc import Iterable
from typing import Any

import dspy
import jiter

from sigadapt.adapters.request.orphans import paired_events
from sigadapt.display.rendering import Displayable, Rendering, rendered_rounds
from sigadapt.errors import InvalidHistory
from sigadapt.schemas.json_values import is_mapping, is_sequence, type_of
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round, ToolResults, text_of_result
from sigadapt.signatures.tool_results.tool_result import ToolResult, message_in
from sigadapt.signatures.transcript import Row, answering, later_round, own_round, read, rows_of


class Rounds(Displayable, tuple[Round, ...]):
    """The rounds of a run, the earliest first. They print as a table, in a terminal and in a notebook."""

    __slots__ = ()

    def _rendering(self) -> Rendering:
        return rendered_rounds(
            [[(call, result, text_of_result(result)) for call, result in turn.pairs] for turn in self]
        )

    def __str__(self) -> str:
        return self._rendering().text()

    __repr__ = __str__


def rounds(source: Any) -> Rounds:
    """Return the rounds of a run: each turn with calls, and the results of these calls.

    Args:
        source: a `dspy.History`, what its `model_dump` or `model_dump_json` wrote, the events of one, or an
            object with a `history`, such as the Prediction of an agent, a InputNeeded, or a recorded
            `Conversation`, whose turn under way counts too.

    Returns:
        The rounds in order, those of `submit` too. A round has `.text` (what the model said beside the
        calls), `.calls`, `.results`, and `.pairs` of a call and its result, bad calls included. An
        unanswered call has a failed result that says so. A failed tool's result is the type and the message
        of its exception.

    Raises:
        InvalidHistory: `unreadable_history`, for what is no history and has none.

    Example:
        >>> from sigadapt import ToolCalls, ToolResults
        >>> calls = ToolCalls([{"id": "call_1", "name": "now", "args": {}}])
        >>> event = {"question": "When?", "calls": calls, "results": ToolResults.of(calls, ["noon"])}
        >>> [one] = rounds({"messages": [event]})
        >>> [(call.name, result.value) for call, result in one.pairs]
        [('now', 'noon')]
    """
    events = read(dspy.History, _history_of(source), None).messages
    under_way = getattr(source, "results", None)  # of a Conversation
    if isinstance(under_way, ToolResults):
        events = [*events, {"results": under_way}]
    return Rounds(map(_as_read, _rounds_of(rows_of(paired_events(events)[0]))))


def _history_of(source: Any) -> Any:
    """Return the history of a run, as an object or as JSON."""
    history: Any = source
    if is_sequence(source):
        history = {"messages": source}
    elif isinstance(source, (str, bytes)):
        content = source.encode() if isinstance(source, str) else source
        try:
            history = jiter.from_json(content)
        except ValueError:
            history = None
    elif not isinstance(source, dspy.History) and not (is_mapping(source) and "messages" in source):
        history = getattr(source, "history", None)
    if history is None:
        reason = f"{type_of(source)} is no history, and has none"
        fix = "Give a dspy.History, what it saved as, or the prediction of an agent."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix)
    return history


def _as_read(turn: Round) -> Round:
    """Return a round with failed results as the model reads them."""
    results: list[ToolResult] = []
    for result in turn.results:
        if result.is_error:
            message = message_in(result.value, result.name)
            results.append(result.model_copy(update={"value": message}))
        else:
            results.append(result)
    return turn.model_copy(update={"results": tuple(results)})


def _rounds_of(rows: list[Row]) -> Iterable[Round]:
    for number, (_, calls, rounds) in enumerate(rows):
        last = answering(calls, rounds) if calls else []
        yield from rounds
        if not calls:
            continue
        try:
            yield own_round(calls, last) or later_round(calls, [], (row.rounds for row in rows[number + 1 :]))
        except InvalidHistory as error:
            if error.code != "unanswered_call":
                raise
            yield Round(calls=calls, results=tuple(map(unanswered, calls.in_order())))
