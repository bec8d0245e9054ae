"""What a run adds to the model's history, as events of the log: what is new, and nothing twice."""

from collections.abc import Mapping, Sequence
from typing import Any

from sigadapt.schemas.json_values import Json
from sigadapt.ui.log.chat import Chat
from sigadapt.ui.log.chat_store import text_of
from sigadapt.ui.runner import Events


class RunHistory:
    """The model's history as the log has it, and what a longer one adds.

    Args:
        chat: the chat when the run begins.
        question: the input that takes the user's text.
    """

    def __init__(self, chat: Chat, question: str) -> None:
        self._question = question
        self._text = chat.last.text
        self._earlier: Sequence[Mapping[str, Any]] = chat.earlier_events()
        self._known = [text_of(event) for event in chat.last.events]
        self._is_asked = False  # whether the last known event has calls whose results are to come

    @property
    def is_empty(self) -> bool:
        """Whether the log has nothing of this turn."""
        return not self._known

    def asked(self, events: Events) -> list[Json | str]:
        """Return what is new in a history whose last event has calls without results."""
        begin = max(0, len(self._known) - 1)
        return self._rows(events, begin, is_asked=True)

    def grown(self, events: Events) -> list[Json | str]:
        """Return what is new behind the last event that is known, and in it."""
        return self._rows(events, max(0, len(self._known) - 1))

    def whole(self, events: Events) -> list[Json | str]:
        """Return what is new in all of the history: by its end, its program may have changed any event."""
        start = _count_of_earlier(self._earlier, events, self._question, self._text)
        return [*self._base(events[:start]), *self._turn(events[start:], 0)]

    def question_alone(self) -> list[Json | str]:
        """Return the event of a turn that ended before it brought anything."""
        return [{"type": "round", "at": 0, "event": {self._question: self._text}}]

    def leave_out_asked(self) -> None:
        """Forget the event whose calls wait: it is in the run that waits."""
        if self._is_asked:
            self._known.pop()
            self._is_asked = False

    def _rows(self, events: Events, begin: int, *, is_asked: bool = False) -> list[Json | str]:
        start = self._start_of(events)
        base = [] if start == len(self._earlier) else self._base(events[:start])
        return [*base, *self._turn(events[start:], begin, is_asked=is_asked)]

    def _base(self, events: Events) -> list[Json | str]:
        """Return the event of a program that has changed what stands before the turn."""
        if len(events) == len(self._earlier) and all(map(_is_same, events, self._earlier)):
            return []
        self._earlier = events
        return [{"type": "base", "events": events}]

    def _turn(self, own: Events, begin: int, *, is_asked: bool = False) -> list[Json | str]:
        """Return what is new in the events of the turn, from one of them on."""
        rows: list[Json | str] = []
        for at in range(min(begin, len(own)), len(own)):
            text = text_of(own[at])
            was_asked = self._is_asked and at == len(self._known) - 1
            if at < len(self._known) and self._known[at] == text and not was_asked:
                continue
            self._known[at:] = [text]
            self._is_asked = is_asked and at == len(own) - 1
            kind = "asked" if self._is_asked else "round"
            rows.append(f'{{"type":"{kind}","at":{at},"event":{text}}}')
        return rows

    def _start_of(self, events: Events) -> int:
        """Return which event of a history is the first one of this turn."""
        count = len(self._earlier)
        field = self._question
        follows = len(events) > count and events[count].get(field) == self._text
        if follows and (not count or events[count - 1].get(field) == self._earlier[-1].get(field)):
            return count
        return _count_of_earlier(self._earlier, events, field, self._text)


def _count_of_earlier(earlier: Sequence[Mapping[str, Any]], events: Events, question: str, text: str) -> int:
    """Return how many events of a history are earlier ones, though a program may drop and change some.

    Args:
        earlier: the history before the turn.
        events: the history with the turn.
        question: the input that takes the user's text.
        text: that text.
    """
    messages = [event.get(question) for event in events]
    earlier_messages = [event.get(question) for event in earlier]

    def fits(count: int) -> bool:
        return messages[:count] == earlier_messages[len(earlier) - count :]

    counts = range(min(len(earlier), len(events)), -1, -1)
    for count in filter(fits, counts):
        if count and all(map(_is_same, events[:count], earlier[len(earlier) - count :])):
            return count
    return next((count for count in filter(fits, counts) if messages[count : count + 1] == [text]), 0)


def _is_same(event: Mapping[str, Any], kept: Mapping[str, Any]) -> bool:
    """Return whether an event is one that was kept, as JSON has both."""
    return event == kept or text_of(event) == text_of(kept)
