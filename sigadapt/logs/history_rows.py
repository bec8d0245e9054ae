"""The rows of a history, made of what a recorded request says.

Rules:

a. A turn begins where the user speaks after the model or after results, or first.
b. A result answers the latest unanswered call of its id; without an id, the first one of its name.
c. What the model said without a result or an answer in between is one turn of the model.
d. A turn under way that ends with the model stands in the history: nobody has asked since.
e. Instructions inside of the conversation are parts of the question beside them, of the type `instructions`;
   after results, they begin a turn of their own. So they go out in their place again.
f. A file of a result that stands in a message of the user goes back into the result. Most wires have no
   place for an image in a result, so sigadapt sends it after the results of the turn
   (`adapters/passes/results.py`). Read as what a person said, it would begin another question.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.response.typed_calls import typed_calls
from sigadapt.json_values import Json, compact, cut, pointer, without_halves
from sigadapt.providers import CHAT
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.recorded import Question, RecordedResult, Recording
from sigadapt.providers.wire.values import in_paragraphs, join_texts
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_results.content import PLACED, Part, as_content
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
                self._unanswered.add(calls, self._sent_ids, answers)  # for the results that follow
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
        for call in calls.invalid:
            instead = "no arguments" if call.name else "the name 'unnamed'"
            reason = f"{call.message}; sent again, call {cut(repr(call.id))} has {instead}"
            self.changes.append(Change(f"/calls/{call.id}", "lowered", reason))
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
            said = "\n\n".join(part["text"] for part in parts) if is_text else parts
            row["question"] = without_halves(said)
            if row["question"] != said:
                reason = "half of a surrogate pair, which no text can hold, becomes U+FFFD"
                self.changes.append(Change("/question", "lowered", reason))
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


_Key: TypeAlias = tuple[str, Any]


class _Waiting(NamedTuple):
    """A call without a result so far."""

    number: int  # a call of a later turn has a higher one, and of a turn, the first call has the highest
    call_id: str
    answers: dict[str, RecordedResult]  # of its turn, by the calls' ids


class UnansweredCalls:
    """The calls without a result so far. A result takes the first call of the latest turn that it fits.

    It is looked up, because a request may have thousands of calls and of results.
    """

    def __init__(self) -> None:
        self._stacks: dict[_Key, list[_Waiting]] = defaultdict(list)
        self._count = 0

    def add(self, calls: ToolCalls, sent_ids: Mapping[str, Any], answers: dict[str, RecordedResult]) -> None:
        """Add the calls of a turn, with the ids that they had as sent; their results go to `answers`."""
        for call in [*calls.in_order()][::-1]:  # so that the first one is on top
            self._count += 1
            waiting = _Waiting(self._count, call.id, answers)
            sent_id = sent_ids[call.id]
            # A result without an id fits by the name, and so does one with an id if the call had none.
            id_key = ("id", _hashable(sent_id)) if sent_id else ("name of none", call.name)
            self._stacks[id_key].append(waiting)
            self._stacks["name", call.name].append(waiting)

    def answer(self, result: RecordedResult) -> bool:
        """Give a result to its call; return whether there is one."""
        name = _hashable(result.name)
        keys: list[_Key] = [("name", name)]
        if result.id:
            keys = [("id", _hashable(result.id)), ("name of none", name)]
        stacks = [self._stacks.get(key, []) for key in keys]
        for stack in stacks:
            while stack and stack[-1].call_id in stack[-1].answers:
                stack.pop()
        tops = [stack[-1] for stack in stacks if stack]
        if not tops:
            return False
        call = max(tops, key=lambda waiting: waiting.number)
        call.answers[call.call_id] = result
        return True


def _hashable(value: Any) -> Any:
    """Return a text as it is, and any other JSON as its text."""
    return value if isinstance(value, str) or value is None else ("json", compact(value))


# "Attachment 1: image 1 of result 2 (shot)" is a text before each file; Ollama has one text for all files.
_LABEL = re.compile(r"Attachment (\d{1,9}): (.{1,300}?) of result (\d{1,9}) \([^()]{0,200}\)")
# A result names its files, `[image 1, attachment 1 below]`, or `[image 1]` in JSON. Gemini has no labels.
_NAME = re.compile(rf"\[(?:{'|'.join(sorted(PLACED))}) \d{{1,9}}(?:[:,] [^\[\]]{{0,300}})?\]")

_Said: TypeAlias = Question | Reading | RecordedResult


class _Place(NamedTuple):
    """Where a file belongs."""

    result: int  # the index among the turn's results
    name: str  # the text that stands for the file
    label: str = ""


def with_attachments(recorded: Iterable[_Said]) -> list[_Said]:
    """Return the turns of a recording, each result with its files."""
    turns: list[_Said] = []
    results: list[RecordedResult] = []  # those at the end of the turns
    for kind, group in groupby(recorded, type):
        items: list[Any] = [*group]
        if kind is Question and results:
            parts = _other_parts([part for question in items for part in question.parts], results)
            items = [Question(parts)] if parts else []
        turns += results
        results = []
        if kind is RecordedResult:
            results = items
        else:
            turns += items
    return turns + results


def _other_parts(parts: list[Part], results: list[RecordedResult]) -> list[Part]:
    """Put each file that belongs to a result into it, and return the other parts."""
    others: list[Part] = []
    labeled: deque[_Place] = deque()
    unlabeled = deque(_named_places(results))
    for part in parts:
        is_file = part["type"] in PLACED
        labels: list[_Place] = []
        if part["type"] == "text":
            labels = [*_labels_in(part["text"], len(results))]
            unlabeled.clear()  # files without labels follow the results at once
        if labels:
            labeled += labels
        elif is_file and (labeled or unlabeled):
            place = (labeled or unlabeled).popleft()
            results[place.result] = _with_file(results[place.result], part, place.name)
        else:
            others.append(part)
    return [*({"type": "text", "text": place.label} for place in labeled), *others]


def _labels_in(text: str, count: int) -> Iterator[_Place]:
    """Yield the places that a text labels, if it holds nothing but labels of so many results."""
    labels = [*_LABEL.finditer(text)]
    if "".join(label[0] for label in labels) != text:
        return
    if not all(0 < int(label[3]) <= count for label in labels):
        return
    for label in labels:
        yield _Place(int(label[3]) - 1, f"[{label[2]}, attachment {label[1]} below]", label[0])


def _named_places(results: list[RecordedResult]) -> Iterator[_Place]:
    """Yield the places of the files that results name and do not hold."""
    for index, result in enumerate(results):
        if result.parts is None:
            text = result.value if isinstance(result.value, str) else compact(result.value)
            for name in _NAME.findall(text):
                yield _Place(index, name)


def _with_file(result: RecordedResult, file: Part, name: str) -> RecordedResult:
    """Return a result with a file: in its text where the file is named, else at the end."""
    parts = as_content(result.value) if result.parts is None else result.parts
    for n, part in enumerate(parts):
        if part["type"] == "text" and name in part["text"]:
            before, _, after = part["text"].partition(name)
            texts_before = as_content(before.removesuffix("\n") or None)
            texts_after = as_content(after.removeprefix("\n") or None)
            return result._replace(parts=[*parts[:n], *texts_before, file, *texts_after, *parts[n + 1 :]])
    return result._replace(parts=[*parts, file])
