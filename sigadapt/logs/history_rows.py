"""The rows of a history, made of what a recorded request says.

Rules:

a. A turn begins where the user speaks after the model or after results, or first.
b. A result answers the latest unanswered call of its id; without an id, the first one of its name.
c. What the model said without a result or an answer in between is one turn of the model.
d. A turn under way that ends with the model stands in the history: nobody has asked since.
e. Instructions inside of the conversation are parts of the question beside them, of the type `instructions`;
   after results, they begin a turn of their own. So they go out in their place again.
"""

from collections.abc import Callable
from itertools import groupby
from typing import Any, TypeAlias

from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.response.typed_calls import typed_calls
from sigadapt.logs.attachments import with_attachments
from sigadapt.logs.unanswered import UnansweredCalls
from sigadapt.providers import CHAT
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.recorded import Question, RecordedResult, Recording
from sigadapt.providers.wire.values import in_paragraphs, join_texts
from sigadapt.schemas.json_values import Json, cut, pointer
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult

_Turn: TypeAlias = tuple[ToolCalls, dict[str, RecordedResult]]
"""What the model said at once, and the results of its calls by their ids."""


class HistoryRows:
    """What was said, on its way to rows of a history."""

    def __init__(self, provider: Provider, recording: Recording) -> None:
        self._provider = provider
        self._sent_ids: dict[str, Any] = {}  # by the ids that the calls have here
        self._first_number = 1  # of the ids that are made here; all before it are taken
        self._turn_count = 0  # of the model
        self._unanswered = UnansweredCalls()
        self.changes: list[Change] = []
        spans: list[tuple[list[Json], list[_Turn]]] = []
        for kind, group in groupby(with_attachments(recording.turns), type):
            items: list[Any] = [*group]
            if kind is Question or not spans:
                spans.append(([], []))
            parts, turns = spans[-1]
            if kind is Question:
                for question in items:
                    parts += question.parts
            elif kind is RecordedResult:
                for result in items:
                    self._answer(result)
            else:
                turns.append((self._said_at_once(items), {}))
                self._turn_count += 1
                calls, answers = turns[-1]
                self._unanswered.begin_turn()
                for call in calls.in_order():  # for the results that follow
                    self._unanswered.add(call, self._sent_ids[call.id], answers)
        self.rows = [self._row(parts, turns) for parts, turns in spans]

    def _said_at_once(self, readings: list[Reading]) -> ToolCalls:
        """Return what the model said between two others, its calls typed."""
        reading = readings[0] if len(readings) == 1 else self._one_reading(readings)
        sent_ids = [sent_id for sent_id, _, _ in reading.calls]
        is_new = all(isinstance(sent_id, str) and sent_id not in self._sent_ids for sent_id in sent_ids)
        earlier_ids = () if is_new else self._sent_ids
        calls = typed_calls(reading, self._id_maker(sent_ids), earlier_ids)
        if calls is None:
            turn = Turn(text=reading.text, reasoning=reading.reasoning, state=reading.state)
            calls = ToolCalls(turn=turn)
        for sent_id, call in zip(sent_ids, calls.in_order(), strict=True):
            self._sent_ids[call.id] = sent_id
        if reading.state is not None and (names := dict.fromkeys(self._provider.extras(reading.state))):
            reason = f"{', '.join(names)} has no neutral form, and stays in the turn's state for its own wire"
            self.changes.append(Change(f"/said/{self._turn_count}", "lowered", reason))
        return calls

    def _one_reading(self, readings: list[Reading]) -> Reading:
        """Return several readings as one."""
        texts: list[str | None] = []
        calls: list[Any] = []
        blocks: list[Json] = []
        state: Json | None = None
        for reading in readings:
            if state is None and reading.state is not None and texts:
                blocks += self._provider.plain_blocks(in_paragraphs(texts), len(calls))
            state = reading.state or state
            if reading.state:
                blocks += reading.state["blocks"]
            elif state is not None:
                blocks += self._provider.plain_blocks(reading.text, len(reading.calls))
            if texts:
                texts.append(None)
            texts.append(reading.text)
            calls += reading.calls
        if state is not None and self._provider is not CHAT:  # whose state is one message
            state = {**state, "blocks": blocks}
        reasoning = join_texts([reading.reasoning for reading in readings])
        return readings[-1]._replace(text=in_paragraphs(texts), reasoning=reasoning, calls=calls, state=state)

    def _id_maker(self, sent_ids: list[Any]) -> Callable[[int], str]:
        """Return a function that makes the next free `call_<n>` for the call at an index of a turn."""
        # `unique_ids` makes the same, but begins at 1 in every turn.
        turn_ids = {sent_id for sent_id in sent_ids if isinstance(sent_id, str)}
        while f"call_{self._first_number}" in self._sent_ids:
            self._first_number += 1
        latest = self._first_number - 1

        def id_for(index: int) -> str:
            nonlocal latest
            latest = max(latest, index) + 1
            while f"call_{latest}" in self._sent_ids or f"call_{latest}" in turn_ids:
                latest += 1
            return f"call_{latest}"

        return id_for

    def _answer(self, result: RecordedResult) -> None:
        """Pair a result with its call."""
        if self._unanswered.answer(result):
            return
        reason = f"a result of call {cut(repr(result.id or result.name))}, which no model made, is left out"
        self.changes.append(Change(pointer(result.where), "dropped", reason))

    def _row(self, parts: list[Json], turns: list[_Turn]) -> Json:
        """Return the row of a question and what the model said to it."""
        row: Json = {}
        if parts:
            is_text = all(part["type"] == "text" for part in parts)
            row["question"] = "\n\n".join(part["text"] for part in parts) if is_text else parts
        rounds: list[Round] = []
        for number, (calls, answers) in enumerate(turns):
            unanswered_ids = [call.id for call in calls.in_order() if call.id not in answers]
            for call_id in unanswered_ids:
                reason = f"call {cut(repr(call_id))} has no result; sent again, it gets a failed one"
                self.changes.append(Change(f"/calls/{call_id}", "healed", reason))
            is_last = number == len(turns) - 1
            if calls and (answers or not is_last):
                results = tuple(_result(call, answers.get(call.id)) for call in calls.in_order())
                rounds.append(Round(calls=calls, results=results))
            elif calls:
                row["calls"] = calls
            elif is_last:
                row["answer"] = calls.text
                if calls.turn.state is not None:
                    row["calls"] = calls
            else:
                text = cut(calls.text or "")
                reason = f"what the model said before a result of no call is left out: {text}"
                self.changes.append(Change(f"/said/{len(rounds)}", "dropped", reason))
        if rounds:
            row["results"] = ToolResults(rounds=tuple(rounds))
        return row


def _result(call: ToolCall | InvalidToolCall, recorded: RecordedResult | None) -> ToolResult:
    if recorded is None:
        return unanswered(call)
    name = call.name or "unnamed"
    if recorded.parts is None:
        return ToolResult(call_id=call.id, name=name, is_error=recorded.failed, value=recorded.value)
    return ToolResult(
        call_id=call.id, name=name, is_error=recorded.failed, value=recorded.parts, is_content=True
    )
