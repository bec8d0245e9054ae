"""Chat: the state of one conversation, which its log of events leads to (`chat_events.py`).

What a page sees, what the model reads, what waits and what may be done now follow from the state. A chat is
idle, runs, waits, or carries decisions out: then it waits and runs.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import dspy
from pydantic_core import from_json

from sigadapt.errors import InputNeeded, SigadaptError
from sigadapt.json_values import Json
from sigadapt.ui.log.chat_store import text_of
from sigadapt.ui.page_requests import PageFile

Status = Literal["idle", "runs", "waits", "carries_out"]


@dataclass(eq=False)
class TextPart:
    """Words of an answer, under the id that the stream gave them."""

    id: str
    text: str


@dataclass(eq=False)
class CallPart:
    """A call of an answer, as the page shows it."""

    page_id: str
    call_id: str
    name: str
    input: Any
    result: Json | None = None
    """A ToolResult; None while there is none."""
    bad: str | None = None
    """What is wrong with the call."""
    denial: str | None = None
    """Why the user rejected it; an empty text if they did not say."""
    message_id: str | None = None
    """Of the page's own message with the result, if the page gave one."""

    @property
    def is_open(self) -> bool:
        """Whether its result is to come."""
        return self.result is None and self.bad is None


Part = TextPart | CallPart


@dataclass(eq=False)
class ChatTurn:
    """A message of the user, and what came of it."""

    number: int
    message_id: str
    text: str
    files: list[PageFile] = field(default_factory=list[PageFile])
    """What the user sent with the message."""
    parts: list[Part] = field(default_factory=list[Part])
    calls: dict[str, CallPart] = field(default_factory=dict[str, CallPart])
    """The calls among the parts, by their ids on the page."""
    events: list[Json] = field(default_factory=list[Json])
    """Of the model's history."""
    asked: int | None = None
    """Which of the events has calls whose results are to come."""
    begun: dict[str, Json] = field(default_factory=dict[str, Json])
    """By the ids of calls since that event whose tools have begun: their name and input."""
    results: dict[str, Json] = field(default_factory=dict[str, Json])
    """The results so far, by the ids of calls."""
    decided: set[str] = field(default_factory=set[str])
    """The ids of requests that were decided."""

    @property
    def answer_id(self) -> str:
        """The id of the assistant's message."""
        return f"a{self.number}"


@dataclass(eq=False)
class RunUnderWay:
    """A run, named by the number of its first event."""

    number: int
    decided: dict[str, str | None] | None = None
    """What is carried out: by the ids of requests, why a call was rejected, None for any other."""
    is_stopped: bool = False


@dataclass(eq=False)
class WaitingRun:
    """A run that waits."""

    run: str
    """What `InputNeeded` saves, without its history, which is the chat's."""
    agent: str | None
    """The name of the agent whose tools it needs; None for the first one."""
    page_ids: dict[str, str]
    """By the ids of calls: their ids on the page."""
    error: InputNeeded | None = None
    """The same, once it was read."""


class PageIds:
    """The ids of the calls on a page: each call has its own, whatever ids the model or a server gives them.

    Some servers number calls from 0 in each answer, and prompted models write what they like. On a page, two
    calls of one id are one part, so the second would take the result and the approval of the first. Here the
    first call with the id `x1` is `x1`, the second is `x1-2`, in the order of the chat.

    Example:
        >>> ids = PageIds()
        >>> ids.begin("x1"), ids.end("x1"), ids.begin("x1"), ids.waiting("x1")
        ('x1', 'x1', 'x1-2', 'x1-2')
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}  # by the id of the call
        self._open: dict[str, list[str]] = {}  # ids on the page, of calls without a result

    def begin(self, call_id: str) -> str:
        """Return the id on the page of a call that comes next."""
        number = self._counts.get(call_id, 0) + 1
        page_id = call_id if number == 1 else f"{call_id}-{number}"
        while page_id in self._taken:  # another call has that very id
            number += 1
            page_id = f"{call_id}-{number}"
        self._counts[call_id] = number
        self._taken.add(page_id)
        self._open.setdefault(call_id, []).append(page_id)
        return page_id

    def go_on(self, call_id: str, page_id: str) -> None:
        """Take over a call that waits, which the page shows under an id already."""
        self.take(call_id, page_id)
        self._open.setdefault(call_id, []).append(page_id)

    def take(self, call_id: str, page_id: str) -> None:
        """Count a call that is over, which the page shows under an id already."""
        self._taken.add(page_id)
        self._counts[call_id] = self._counts.get(call_id, 0) + 1

    def give_up(self, call_id: str, page_id: str) -> None:
        """Count a call as answered that nothing else answers, such as a bad one."""
        page_ids = self._open.get(call_id, [])
        if page_id in page_ids:
            page_ids.remove(page_id)

    def waiting(self, call_id: str) -> str | None:
        """Return the id on the page of the earliest call of this id that has no result."""
        page_ids = self._open.get(call_id)
        return page_ids[0] if page_ids else None

    def end(self, call_id: str) -> str | None:
        """Return the same, and count the call as answered."""
        page_ids = self._open.get(call_id)
        return page_ids.pop(0) if page_ids else None


class Chat:
    """One conversation, after the events so far."""

    def __init__(self) -> None:
        self.number = 0
        """Of the last event."""
        self.turns: list[ChatTurn] = []
        self.run: RunUnderWay | None = None
        self.waiting: WaitingRun | None = None
        self.base: list[Json] | None = None
        """The history before the last turn, where the program has shortened it."""
        self.files: dict[str, str] = {}
        """By a short name: the address of each file of a message, which other events have under this name."""
        self.state: Json | None = None
        """What tools keep in `context.state`."""

    @property
    def status(self) -> Status:
        """What the chat does."""
        if self.run is None:
            return "idle" if self.waiting is None else "waits"
        return "runs" if self.waiting is None else "carries_out"

    @property
    def last(self) -> ChatTurn:
        """The turn under way, or the one that ended last."""
        return self.turns[-1]

    def read_waiting(self) -> bool:
        """Read the run that waits; return False, and forget it, if it cannot be read."""
        if self.waiting is not None and self.waiting.error is None:
            try:
                self.waiting.error = self.saved_run(self.waiting)
            except (SigadaptError, ValueError, TypeError):
                self.waiting = None
                return False
        return True

    def error(self) -> InputNeeded | None:
        """Return the run that waits, to look at; None if none does."""
        self.read_waiting()
        return None if self.waiting is None else self.waiting.error

    def saved_run(self, waiting: WaitingRun) -> InputNeeded:
        """Return a run that waits, anew: to resume one changes it."""
        saved = from_json(waiting.run)
        saved["history"] = {"messages": self.history().messages}
        return InputNeeded.model_validate_json(text_of(saved))

    def earlier_events(self) -> list[Json]:
        """Return the model's history before the last turn."""
        if self.base is not None:
            return self.base
        return [event for turn in self.turns[:-1] for event in turn.events]

    def history(self) -> dspy.History:
        """Return the model's history so far."""
        events = [*self.earlier_events(), *self.last.events] if self.turns else []
        return dspy.History(messages=events)

    def turn_of(self, message_id: str) -> ChatTurn | None:
        """Return the turn of a message, or of an answer."""
        for turn in reversed(self.turns):
            if message_id in {turn.message_id, turn.answer_id}:
                return turn
        return None

    def has_tools_from(self, turn: ChatTurn) -> bool:
        """Return whether tools were called for the message of a turn, or for one behind it."""
        return any(each.calls for each in self.turns if each.number >= turn.number)

    def page_ids(self) -> PageIds:
        """Return the ids of calls that the page has, but for those that wait."""
        waiting: set[str] = set() if self.waiting is None else {*self.waiting.page_ids.values()}
        ids = PageIds()
        for turn in self.turns:
            for part in turn.calls.values():
                if part.page_id not in waiting or not part.is_open:
                    ids.take(part.call_id, part.page_id)
        return ids

    def page_id_of(self, call_id: str) -> str:
        """Return the id on the page of a call of the turn that waits."""
        page_ids = {} if self.waiting is None else self.waiting.page_ids
        return page_ids.get(call_id, call_id)
