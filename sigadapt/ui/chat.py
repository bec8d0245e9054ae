"""Chat: one conversation as the store keeps it, and what each thing that happens makes of it.

A chat is idle, runs, or waits:

- A message begins a run. So does a reply to a run that waits.
- A run ends in an answer or in an error. Both leave the chat idle, with all that the run did in its history.
- A run that needs a person, or a result from elsewhere, leaves the chat waiting.
- A run renews its lease while it lives. One whose lease has ended has died with its process: calls that had
  begun have results that say that it's unknown whether they ran. None of them runs again.
"""

import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import dspy
import pydantic

from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.errors import InputNeeded
from sigadapt.runs.rounds import rounds
from sigadapt.runs.waiting import with_results
from sigadapt.runs.watching import jsonable
from sigadapt.schemas.json_values import is_mapping, without_halves
from sigadapt.signatures.confirmation import REJECTED
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.ui.page_requests import Message

UNKNOWN_OUTCOME = (
    "It is not known whether this ran: the process that ran it has ended. Check before you run it again."
)
_NOT_RUN = "This call was not run: it had no decision when the process that ran the turn ended."

_DEEPEST = 100
"""The depth of an output that is kept. JSON is read to about twice this depth, with what is around it."""

_COLLECTIONS = (Mapping, list, tuple, set, frozenset)
Events = list[dict[str, Any]]


class _StoredModel(pydantic.BaseModel):
    """What the store keeps, with members that a later version has written, which may read it again."""

    model_config = pydantic.ConfigDict(extra="allow")


class OtherCall(_StoredModel):
    """A call that is not in the history: of a second agent, or of a program that runs its calls itself."""

    page_id: str
    call_id: str
    name: str
    args: dict[str, Any] = {}
    result: ToolResult | None = None


class ChatTurn(_StoredModel):
    """A message of the user, and what the program did about it, as events of its history."""

    message_id: str
    text: str
    events: Events = []
    denied: dict[str, str | None] = {}
    """The calls that the user rejected, by their ids on the page, with the reason."""
    error_types: dict[str, str] = {}
    """The types of exceptions that failed calls, by their ids on the page: an agent's history lacks them."""
    decided: list[str] = []
    """The ids of requests that were decided."""
    other_calls: list[OtherCall] = []
    page_ids: dict[str, list[str]] = {}
    """By the ids of good calls: those that the page shows, in order."""

    def calls(self) -> Iterator[Any]:
        """Yield the calls of the turn's history, but for an agent's own `submit`."""
        for turn in rounds(self.events):
            for call in turn.calls.in_order():
                if call.name != SUBMIT:
                    yield call


class RunUnderWay(_StoredModel):
    """A run of the last turn, as far as it has come."""

    id: str
    until: float
    """The end of its lease, in seconds since 1970."""
    decided: dict[str, str | None] = {}
    """By the ids of requests that were decided: the reason of a rejection; None for any other decision."""
    results: list[ToolResult] = []
    """Of the turn that waited, until it is over."""
    has_begun: bool = False
    """Whether the program has begun: the turn has its events as far as they have come."""


class Chat(_StoredModel):
    """One conversation."""

    format: int = 1
    turns: list[ChatTurn] = []
    shortened: Events | None = None
    """The history that the program continues, if it is not that of all turns."""
    waiting: str | None = None
    """The run that waits, or whose decisions are being carried out, as InputNeeded saves it."""
    agent: str | None = None
    """The name of the agent that waits among the program's modules; None if no agent does."""
    page_ids: dict[str, str] = {}
    """The ids on the page of the calls of the turn that waits."""
    run: RunUnderWay | None = None
    state: dict[str, Any] = {}

    def page_id_of(self, call: Any) -> str:
        """Return the id on the page of a call of the turn that waits."""
        call_id: str = call.id
        return self.page_ids.get(call_id, call_id)

    def is_running(self) -> bool:
        """Return whether a run is under way in a process that lives."""
        return self.run is not None and time.time() < self.run.until

    def error(self) -> InputNeeded | None:
        """Return the run that waits."""
        return None if self.waiting is None else InputNeeded.model_validate_json(self.waiting)

    def history(self) -> dspy.History:
        """Return the history that the program continues, before the last turn if that is under way."""
        if self.shortened is not None:
            return dspy.History(messages=[*self.shortened])
        return dspy.History(messages=[event for turn in self.turns for event in turn.events])

    def has_message(self, message: Message) -> bool:
        """Return whether a message is one of the chat: a page may send it twice."""
        return any((turn.message_id, turn.text) == (message.id, message.text) for turn in self.turns)

    # What happens.

    def begin_message(self, message: Message, lease: float) -> RunUnderWay:
        """Begin a run about a message."""
        self.turns.append(ChatTurn(message_id=message.id, text=message.text))
        return self._begin(lease)

    def begin_replies(self, decided: dict[str, str | None], lease: float) -> RunUnderWay:
        """Begin to carry out decisions. The run that waits stays until its turn is over."""
        self.turns[-1].decided += decided
        run = self._begin(lease)
        run.decided = decided
        return run

    def _begin(self, lease: float) -> RunUnderWay:
        self.run = RunUnderWay(id=uuid4().hex, until=time.time() + lease)
        return self.run

    def begin_again(self, message: Message, lease: float) -> RunUnderWay | None:
        """Begin another answer to the last message; None if tools ran for it, which must not run again."""
        last = self.turns[-1] if self.turns else None
        if last is None or last.text != message.text or self.waiting is not None or self.shortened:
            return None
        if last.other_calls or any(last.calls()):
            return None
        self.turns.pop()
        return self.begin_message(message, lease)

    def go_on(self, events: Events, field: str) -> None:
        """Keep how far the program has come."""
        self._keep_events(events, field)
        self.waiting = None
        self.agent = None
        self.page_ids = {}
        if self.run is not None:
            self.run.has_begun = True

    def end_turn(self, events: Events, field: str) -> None:
        """End the run with the history that it left."""
        self.go_on(events, field)
        self.run = None

    def wait(self, error: InputNeeded, agent: str | None, page_ids: dict[str, str], field: str) -> None:
        """End the run with what it waits for, and the name of the agent that does."""
        self._keep_events(error.history.messages, field)
        self.waiting = error.model_dump_json()
        self.agent = agent
        self.page_ids = page_ids
        self.run = None

    def keep_calls(self, calls: Iterable[OtherCall], earlier_ids: Mapping[str, list[str]]) -> None:
        """Keep the ids of a run's calls on the page, and those calls that the turn's history does not have.

        Args:
            calls: the good calls of the run.
            earlier_ids: the `page_ids` of the turn before the run.
        """
        last = self.turns[-1]
        last.page_ids = {call_id: [*page_ids] for call_id, page_ids in earlier_ids.items()}
        for call in calls:
            page_ids = last.page_ids.setdefault(call.call_id, [])
            if call.page_id not in page_ids:
                page_ids.append(call.page_id)
        known = {call.id for call in last.calls()}
        error = self.error()
        if error is not None:
            known |= {call.id for call in error.calls.in_order()}
        kept = {call.page_id: call for call in [*last.other_calls, *calls]}
        last.other_calls = [call for call in kept.values() if call.call_id not in known]

    def put_back(self) -> None:
        """End a run that was refused before anything ran: the decisions are good again."""
        if self.run is not None:
            last = self.turns[-1]
            last.decided = [key for key in last.decided if key not in self.run.decided]
            waiting = {*self.page_ids.values()}
            last.denied = {page_id: why for page_id, why in last.denied.items() if page_id not in waiting}
        self.run = None

    def make_storable(self) -> None:
        """Replace what JSON cannot hold in the events and results by a text that says what it was."""
        for turn in self.turns:
            turn.events = storable(turn.events)
            turn.other_calls = storable(turn.other_calls)
        self.shortened = storable(self.shortened)
        if self.run is not None:
            self.run.results = [
                result.model_copy(update={"value": storable(result.value)}) for result in self.run.results
            ]

    def _keep_events(self, events: Events, field: str) -> None:
        """Keep the last turn's events, which come after those of the history that the program was given."""
        last = self.turns[-1]
        count = _count_of_earlier(self._events_before_last(), events, field, last.text)
        last.events = [*events[count:]]
        whole_length = sum(len(turn.events) for turn in self.turns)
        self.shortened = [*events] if len(events) != whole_length else None

    def _events_before_last(self) -> Events:
        """Return the history before the last turn, as the program had it."""
        events = self.history().messages
        return events[: len(events) - len(self.turns[-1].events)]

    def recover(self, field: str) -> None:
        """End the run of a process that has died."""
        run = self.run
        error = self.error()
        if run is None:
            return
        if run.has_begun:
            self.run = None
        elif error is not None:
            self.end_turn(events_of_lost_turn(error, run), field)
        else:
            self.end_turn([*self.history().messages, {field: self.turns[-1].text}], field)


def storable(value: Any, depth: int = 0) -> Any:
    """Return a value that JSON holds, with its models, and with a text for what is nested too deeply."""
    if isinstance(value, pydantic.BaseModel):
        members = {name: storable(getattr(value, name), depth + 1) for name in type(value).model_fields}
        return value.model_copy(update=members)
    if any(isinstance(value, kind) for kind in _COLLECTIONS):
        return _storable_members(value, depth)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return without_halves(value) if isinstance(value, str) else value


def _storable_members(collection: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return f"a {type(collection).__name__} that is nested too deep"
    if is_mapping(collection):
        return {storable(str(key)): storable(member, depth + 1) for key, member in collection.items()}
    members = [storable(member, depth + 1) for member in collection]
    return tuple(members) if isinstance(collection, tuple) else members


def _count_of_earlier(earlier: Events, events: Events, field: str, text: str) -> int:
    """Return how many events of a history are earlier ones.

    A program may drop those at the front, and change others, such as a long result. A user may write the same
    text twice, so the text of the last turn alone does not say where that begins.
    """
    messages = [event.get(field) for event in events]
    earlier_messages = [event.get(field) for event in earlier]

    def fits(count: int) -> bool:
        return messages[:count] == earlier_messages[len(earlier) - count :]

    counts = [*filter(fits, range(min(len(earlier), len(events)), -1, -1))]
    for count in counts:
        if count and all(map(_is_same, events[:count], earlier[len(earlier) - count :])):
            return count
    return next((count for count in counts if messages[count : count + 1] == [text]), 0)


def _is_same(event: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    """Return whether an event is one that was kept, as JSON has both."""
    return jsonable(event) == jsonable(kept)


def events_of_lost_turn(error: InputNeeded, run: RunUnderWay) -> Events:
    """Return the history of a turn that a process left, each call with what is known of it."""
    by_id = {result.call_id: result for result in [*error.results, *run.results]}
    for request in error.requests:
        reason = run.decided.get(request.id)
        if request.id not in run.decided:
            by_id.setdefault(request.call.id, ToolResult.failed(request.call, _NOT_RUN))
        elif reason is not None:
            by_id.setdefault(request.call.id, ToolResult.failed(request.call, reason or REJECTED))
    for call in error.calls.in_order():
        by_id.setdefault(call.id, ToolResult.failed(call, UNKNOWN_OUTCOME))
    return with_results(error, by_id).messages
