"""What a chat asks of the runner, here alone: to go on, to end before a tool, and how far a run has come.

`RunHistory` is what a run adds to the model's history, as events of the log: what is new, and nothing twice.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import settings
from sigadapt.errors import InputNeeded, LimitExceeded, SigadaptError
from sigadapt.json_values import Json
from sigadapt.runs.run import Run
from sigadapt.runs.stream import runs_in_thread
from sigadapt.runs.watching import AnyCall, ToolGate, Watch
from sigadapt.turns.agent_turn import result_of_row
from sigadapt.ui.log.chat import Chat
from sigadapt.ui.log.chat_store import text_of
from sigadapt.ui.program import name_of_agent

Events = list[dict[str, Any]]
"""Of a model's history."""


class ToolStoppedError(BaseException):
    """Ends a run before a tool begins, because that could not be kept; no `except Exception` goes on."""


class StoppedError(BaseException):
    """Ends a run that a person has stopped, before its next request or tool."""


class _Gate(ToolGate):
    """Keeps that a call begins before its tool does, and ends a run that was stopped."""

    def __init__(self, before_tool: Callable[[AnyCall], None], is_stopped: Callable[[], bool]) -> None:
        self._before_tool = before_tool
        self._is_stopped = is_stopped

    def before_tool(self, call: AnyCall) -> None:
        """Keep that a call begins."""
        if self._is_stopped():
            raise StoppedError
        try:
            self._before_tool(call)
        except Exception as error:
            raise ToolStoppedError from error

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """End a stopped run before it asks again."""
        if self._is_stopped():
            raise StoppedError


def gating(
    before_tool: Callable[[AnyCall], None], is_stopped: Callable[[], bool]
) -> AbstractContextManager[Any]:
    """Run a block whose tools begin when `before_tool` has returned.

    Args:
        before_tool: is called with a call. If it raises, the run ends with `ToolStoppedError`.
        is_stopped: whether the run ends before its next tool or request, with `StoppedError`.
    """
    callbacks: list[BaseCallback] = [*(settings.callbacks or ())]
    return settings.context(callbacks=[*callbacks, _Gate(before_tool, is_stopped)])


class GoingOn(dspy.Module):
    """The program of a chat that goes on with a run that waited: first its turn, then the program."""

    def __init__(
        self, program: dspy.Module, error: InputNeeded, tools: Any, decisions: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.program = program
        self.error = error
        self.resumed: Events | None = None
        """The history with the turn that waited. DSPy's agents append to the one that they are given."""
        self.refusal: SigadaptError | None = None
        """Why the decisions were not carried out: `resume` checks them before it runs anything."""
        self.earlier_turn: Any = None
        """The ledger's turn before the program begins."""
        self._tools_of_turn = tools
        self._decisions = decisions

    def go_on(self) -> Any:
        """Carry out the decisions in sync code, and run the program."""
        with self._noting_refusal():
            history = self.error.resume(self._tools_of_turn, self._decisions, partial=True)
        self._note_turn(history)
        return self.program(history=history)

    async def ago_on(self) -> Any:
        """Carry out the decisions in async code, and run the program."""
        with self._noting_refusal():
            history = await self.error.aresume(self._tools_of_turn, self._decisions, partial=True)
        self._note_turn(history)
        return await self.program.acall(history=history)

    @contextmanager
    def _noting_refusal(self) -> Generator[None]:
        try:
            yield
        except (InputNeeded, LimitExceeded):
            raise
        except SigadaptError as error:
            self.refusal = error
            raise

    def _note_turn(self, history: dspy.History) -> None:
        self.earlier_turn = getattr(current_ledger(), "turn", None)
        self.resumed = [*history.messages]
        watch = settings.send_stream
        if isinstance(watch, Watch):
            event = self.resumed[-1]
            field = self.error.results_field
            if field is not None:
                watch.emit_rest(event[field].rounds[-1].results)
            else:
                rows = event[self.error.field].tool_call_results.tool_call_results
                watch.emit_rest(map(result_of_row, rows))


class _SyncGoingOn(GoingOn):
    def forward(self) -> Any:
        return self.go_on()


class _AsyncGoingOn(GoingOn):
    async def aforward(self) -> Any:
        return await self.ago_on()


def going_on(program: dspy.Module, error: InputNeeded, tools: Any, decisions: Mapping[str, Any]) -> GoingOn:
    """Return the program that goes on; it runs where the program itself would."""
    kind = _SyncGoingOn if runs_in_thread(program) else _AsyncGoingOn
    return kind(program, error, tools, decisions)


class RunProgress:
    """How far a run has come.

    Args:
        program: the program, or a `GoingOn` around it.
        run: the run.
        question: the input that takes the user's text.
        text: that text.
    """

    def __init__(self, program: dspy.Module, run: Run, question: str, text: str) -> None:
        self._program = program
        self._run = run
        self._question = question
        self._text = text
        self._main_turn: Any = None  # the ledger's, of the agent that got the message
        self._asked_turn: Any = None  # the one whose calls were taken last

    @property
    def refusal(self) -> SigadaptError | None:
        """Why the decisions were not carried out."""
        return self._program.refusal if isinstance(self._program, GoingOn) else None

    @property
    def is_going_on(self) -> bool:
        """Whether decisions are being carried out."""
        return isinstance(self._program, GoingOn) and self._program.resumed is None

    @property
    def resumed(self) -> Events | None:
        """The history with the turn that waited; None if none did, or it is not over."""
        return self._program.resumed if isinstance(self._program, GoingOn) else None

    def events(self) -> Events | None:
        """Return the model's history so far; None or an empty one if no agent has begun."""
        program = self._program
        turn = self._run.ledger.turn
        if isinstance(program, GoingOn) and (program.resumed is None or turn is program.earlier_turn):
            return program.resumed
        if turn is None:
            return None
        events: Events = turn.history().messages
        if self._main_turn is None or self.asks(events):
            self._main_turn = turn
            return events
        return self._main_turn.history().messages  # another agent asks now

    def asked_events(self) -> Events | None:
        """Return that history once for each turn whose calls have come; None if it was taken."""
        turn = self._run.ledger.turn
        if turn is None or turn is self._asked_turn or not turn.has_calls:
            return None
        events = self.events()
        if events is None or turn is not self._main_turn:
            return None
        self._asked_turn = turn
        return events

    def asks(self, events: Events) -> bool:
        """Return whether a history has the message that is being answered."""
        return any(event.get(self._question) == self._text for event in reversed(events))

    def waiting_agent(self, before: str | None) -> str | None:
        """Return the name of the agent that waits; None for a loop of the program's own.

        Args:
            before: the agent that waited before. A turn that waits again is of the same one.
        """
        turn = self._run.ledger.turn
        if turn is None or turn.agent is None:
            return before
        if turn.is_over:
            return None
        program = self._program.program if isinstance(self._program, GoingOn) else self._program
        return name_of_agent(program, turn.agent)


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
