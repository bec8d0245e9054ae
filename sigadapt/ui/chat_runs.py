"""Run the program of a chat, save how far it has come, and hand its rows to the page, if that still reads.

A run does not end with its reader: a page that is closed or reloaded finds the end in the store. A program
whose tools are all sync runs in a thread, any other as a task of the loop, as `sigadapt.stream` runs it.
Each event that changes what happened is saved before its rows are written, so what a page has seen is in
the store.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import copy_context
from copy import deepcopy
from typing import Any

import dspy
from pydantic_core import from_json, to_jsonable_python

from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import settings
from sigadapt.errors import InputNeeded, InvalidOption, LimitExceeded, SigadaptError
from sigadapt.runs import events as run_events
from sigadapt.runs.events import Event
from sigadapt.runs.run import Run
from sigadapt.runs.stream import runs_in_thread, stream, stream_sync
from sigadapt.runs.watching import ToolGate, Watch
from sigadapt.schemas.checking import check_json
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import InvalidToolCall, ToolCall
from sigadapt.signatures.tool_results.tool_output import program_outputs
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.ui.chat import Chat, Events, OtherCall
from sigadapt.ui.chat_store import ChatStore
from sigadapt.ui.program_tools import name_of_agent
from sigadapt.ui.writer import Rows, Writer, row_text

_PAUSES = (0.05, 0.3)
"""How many seconds pass before a chat is saved again, where its store failed."""
_MOST_COPIES = 20
_SAVED = (run_events.CallReady, run_events.ResultReady)


class LeaseLostError(Exception):
    """Another process has taken the chat, because this one did not renew its lease in time."""


class ToolStoppedError(BaseException):
    """Ends a run before a tool begins, because the chat could not be saved; no `except Exception` goes on."""


class ChatKeeper:
    """One chat of the store, which this process may change: each save replaces the version before it."""

    def __init__(self, store: ChatStore, chat_id: str, owner: str, lease: float) -> None:
        self._store = store
        self._chat_id = chat_id
        self.owner = owner
        self._version = 0
        self._lock = threading.RLock()
        self.lease = lease
        self.chat = Chat()
        self.load()

    def load(self) -> Chat:
        """Read the chat as it is now."""
        with self._lock:
            kept = self._store.load(self._chat_id, self.owner)
            self._version, text = kept or (0, "{}")
            self.chat = Chat.model_validate_json(text)
            return self.chat

    def save(self) -> bool:
        """Write the chat; return False if another process or request has changed it since."""
        with self._lock:
            text = self._text()
            if not self._save(text):
                return False
            self._version += 1
            return True

    def _text(self) -> str:
        """Return the chat as JSON that can be read again, whatever its program has put out."""
        try:
            text = self.chat.model_dump_json(fallback=str)
            from_json(text)
        except ValueError:  # such as bytes, or what is nested deeper than JSON is read
            self.chat.make_storable()
            return self.chat.model_dump_json(fallback=str)
        return text

    def _save(self, text: str) -> bool:
        """Save a text, again if the store fails, since what a tool did would be lost with it."""
        for pause in _PAUSES:
            with suppress(Exception):  # a store of any kind
                return self._store.save(self._chat_id, self.owner, self._version, text)
            time.sleep(pause)
            if self._is_saved(text):
                return True
        return self._store.save(self._chat_id, self.owner, self._version, text)

    def _is_saved(self, text: str) -> bool:
        """Return whether a save that failed has replaced the text nevertheless."""
        with suppress(Exception):
            kept = self._store.load(self._chat_id, self.owner)
            return kept is not None and (kept[0], kept[1]) == (self._version + 1, text)
        return False

    def renew(self) -> bool:
        """Renew the lease of the run under way."""
        with self._lock:
            if self.chat.run is None:
                return True
            self.chat.run.until = time.time() + self.lease
            return self.save()

    def change(self, change: Callable[[], None]) -> None:
        """Change the chat and save it.

        Raises:
            LeaseLostError: another process has changed it.
        """
        with self._lock:
            change()
            if self.chat.run is not None:
                self.chat.run.until = time.time() + self.lease
            if not self.save():
                raise LeaseLostError


class SaveBeforeTools(ToolGate):
    """Saves the chat before a tool begins, so that a process that dies meanwhile leaves the call there."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save

    def before_tool(self) -> None:
        """Save the chat.

        Raises:
            ToolStoppedError: that failed, or another process has the chat.
        """
        try:
            self._save()
        except Exception as error:
            raise ToolStoppedError from error


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
        self._earlier_turn: Any = None  # the ledger's, before the program begins
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

    def is_before(self, turn: Any) -> bool:
        """Return whether the program has not asked yet: then the run has an earlier history.

        Args:
            turn: the turn that the run's ledger is in.
        """
        return self.resumed is None or turn is self._earlier_turn

    def _note_turn(self, history: dspy.History) -> None:
        self._earlier_turn = getattr(current_ledger(), "turn", None)
        self.resumed = [*history.messages]
        watch = settings.send_stream
        if isinstance(watch, Watch):
            watch.emit_rest(results_of_turn(self.error, self.resumed[-1]))


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


class RowFeed:
    """Texts for one reader in a loop, from any thread. What comes after the reader has left is dropped."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._is_left = False

    def put(self, text: str) -> None:
        """Hand over a text."""
        if not self._is_left:
            self._texts.append(text)
            self._wake()

    def close(self) -> None:
        """Say that no more comes."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nobody reads
            self._loop.call_soon_threadsafe(self._news.set)

    async def texts(self) -> AsyncIterator[str]:
        """Yield the texts."""
        try:
            while True:
                self._news.clear()
                while self._texts:
                    yield self._texts.popleft()
                if self._is_over and not self._texts:
                    return
                await self._news.wait()
        finally:
            self._is_left = True
            self._texts.clear()


class ChatRun:
    """One run of a chat."""

    def __init__(
        self, keeper: ChatKeeper, writer: Writer, field: str, program: dspy.Module, run: Run
    ) -> None:
        self._keeper = keeper
        self._writer = writer
        self._field = field
        self._program = program
        self._run = run
        self._results: dict[str, ToolResult] = {}  # of the turn that waited
        self._calls: dict[str, OtherCall] = {}  # by the id of the call: those that came last
        self._good_calls: list[OtherCall] = []
        self._error_types: dict[str, str] = {}  # of calls that failed, by their ids on the page
        self._earlier_ids = deepcopy(keeper.chat.turns[-1].page_ids)
        self._main_turn: Any = None  # the ledger's, of the agent that got the message
        self._is_lost = threading.Event()
        self.feed = RowFeed()

    def start(self, inputs: dict[str, Any], begun: "set[Any]") -> None:
        """Run the program. `begun` holds the task, which a loop alone would forget."""
        threading.Thread(target=self._renew, name="lease of a chat", daemon=True).start()
        if runs_in_thread(self._program):
            context = copy_context()
            work = lambda: context.run(self._run_here, inputs)  # noqa: E731
            threading.Thread(target=work, name="run of a chat", daemon=True).start()
        else:
            task = asyncio.get_running_loop().create_task(self._run_in_loop(inputs))
            begun.add(task)
            task.add_done_callback(begun.discard)

    def _renew(self) -> None:
        """Renew the lease until the run is over."""
        while not self._is_lost.wait(self._keeper.lease / 4):
            with suppress(Exception):  # a store of any kind; it may be back before the lease ends
                if not self._keeper.renew():
                    self._is_lost.set()

    def _run_here(self, inputs: dict[str, Any]) -> None:
        self._write(self._writer.begin())
        try:
            with self._run, self._saving_before_tools():
                for event in stream_sync(self._program, **inputs):
                    self._on(event)
        except BaseException as error:  # noqa: BLE001  (kept, and written for the page)
            self._fail(error)
        finally:
            self._close()

    async def _run_in_loop(self, inputs: dict[str, Any]) -> None:
        self._write(self._writer.begin())
        try:
            with self._run, self._saving_before_tools():
                events = stream(self._program, **inputs)
                async for event in events:
                    if isinstance(event, (*_SAVED, run_events.Ended)):
                        await asyncio.to_thread(self._on, event)
                    else:
                        self._on(event)
        except BaseException as error:  # noqa: BLE001  (as above)
            self._fail(error)
        finally:
            self._close()

    def _saving_before_tools(self) -> AbstractContextManager[None]:
        callbacks: list[Any] = [*(settings.callbacks or ())]
        return settings.context(callbacks=[*callbacks, SaveBeforeTools(self._save_begun_call)])

    def _save_begun_call(self) -> None:
        """Save the history with a call that begins, whose result will follow."""
        if self._is_lost.is_set():
            raise LeaseLostError
        if self._is_going_on():
            return  # the store has what was decided about the turn that waits
        self._keeper.change(self._keep_history)

    def _is_going_on(self) -> bool:
        """Return whether decisions are being carried out."""
        return isinstance(self._program, GoingOn) and self._program.resumed is None

    def _keep_history(self) -> None:
        chat = self._keeper.chat
        events = self._history()
        if events:
            chat.go_on(events, self._field)
        chat.keep_calls(self._good_calls, self._earlier_ids)

    def _close(self) -> None:
        self._is_lost.set()
        for text in self._writer.closing_texts:
            self.feed.put(text)
        self.feed.close()

    def _write(self, rows: Rows) -> None:
        for row in rows:
            self.feed.put(row_text(row))

    def _on(self, event: Event) -> None:
        """Save what an event changes, and write it."""
        if self._is_lost.is_set():
            raise LeaseLostError
        self._note_end_of_turn()
        if isinstance(event, run_events.Failed):
            return  # raised next
        if isinstance(event, run_events.ResultReady) and event.result.error_type:
            self._error_types[self._writer.page_id_of(event.call_id)] = event.result.error_type
        rows: list[Json] = []
        if not isinstance(event, run_events.Confirm):  # written when it is saved
            rows = [*self._writer.on(event)]
        if isinstance(event, run_events.Ended):
            self._keeper.change(lambda: self._end(event.prediction))
        elif isinstance(event, _SAVED) and event.within is None:
            self._note(event)
            self._keeper.change(self._keep_progress)
        self._write(iter(rows))

    def _note(self, event: Event) -> None:
        if isinstance(event, run_events.CallReady):
            self._note_call(event.call)
        elif isinstance(event, run_events.ResultReady):
            self._results[event.call_id] = event.result
            if event.call_id in self._calls:
                self._calls[event.call_id].result = event.result

    def _note_call(self, call: ToolCall | InvalidToolCall) -> None:
        if isinstance(call, InvalidToolCall):
            turned_bad = self._calls.pop(call.id, None)
            if turned_bad is not None and turned_bad.result is None:
                self._good_calls.remove(turned_bad)
            return
        page_id = self._writer.page_id_of(call.id)
        self._calls[call.id] = OtherCall(page_id=page_id, call_id=call.id, name=call.name, args=call.args)
        self._good_calls.append(self._calls[call.id])

    def _note_end_of_turn(self) -> None:
        """Save that the turn which waited is over, so that its results are in the history."""
        program = self._program
        if not isinstance(program, GoingOn) or program.resumed is None or self._keeper.chat.waiting is None:
            return
        events = program.resumed
        self._keeper.change(lambda: self._keeper.chat.go_on(events, self._field))

    def _keep_progress(self) -> None:
        chat = self._keeper.chat
        chat.turns[-1].error_types |= self._error_types
        if self._is_going_on():
            if chat.run is not None:
                chat.run.results = [*self._results.values()]
            return
        self._keep_history()
        chat.state = self._state()

    def _history(self) -> Events | None:
        """Return the history as far as the program has come; None or empty if no agent has."""
        program = self._program
        turn = self._run.ledger.turn
        if isinstance(program, GoingOn) and program.is_before(turn):
            return program.resumed
        if turn is None:
            return None
        events = turn.history().messages
        if self._main_turn is None or self._asks(events):
            self._main_turn = turn
            return events
        return self._main_turn.history().messages  # another agent asks now

    def _asks(self, events: Events) -> bool:
        """Return whether a history has the message that is being answered."""
        text = self._keeper.chat.turns[-1].text
        return any(event.get(self._field) == text for event in events)

    def _state(self) -> Json:
        """Return a copy of the run's state.

        Raises:
            InvalidOption: a tool put something into it that JSON cannot hold.
        """
        state = self._copied_state()
        try:
            check_json(state, tool=None)
        except SigadaptError as error:
            fix = "Keep plain JSON values in `context.state`."
            raise InvalidOption(
                f"the state of the chat is no JSON: {error}", field="state", fix=fix
            ) from error
        return state

    def _copied_state(self) -> Any:
        """Return a copy of the run's state, to which tools of other threads may add meanwhile."""
        for _ in range(_MOST_COPIES):
            with suppress(RuntimeError):  # a dictionary changed its size
                return deepcopy(self._run.state)
        return self._run.state

    def _end(self, prediction: Any) -> None:
        chat = self._keeper.chat
        chat.state = self._state()
        chat.end_turn(self._events_after(prediction), self._field)
        chat.keep_calls(self._good_calls, self._earlier_ids)

    def _events_after(self, prediction: Any) -> list[dict[str, Any]]:
        """Return the history of the chat after a run that ended in an answer."""
        outputs: Json = {}
        if isinstance(prediction, dspy.Prediction):
            items: dict[str, Any] = dict(prediction.items())  # pyright: ignore[reportUnknownArgumentType]
            outputs = {name: value for name, value in items.items() if name == "history" or _is_kept(value)}
        history: object = outputs.get("history")
        events = self._history()
        if isinstance(history, dspy.History) and (not events or self._asks(history.messages)):
            return history.messages
        if history is not None:  # of another agent than the one that got the message
            outputs = program_outputs(prediction) or {}
        if events:  # of an agent inside, whose answer the program may have replaced
            return [*events[:-1], {**events[-1], **outputs}]
        chat = self._keeper.chat
        return [*chat.history().messages, {self._field: chat.turns[-1].text, **outputs}]

    def _fail(self, error: BaseException) -> None:
        """Save and write how a run ended that has no answer."""
        program = self._program
        if isinstance(error, ToolStoppedError) and error.__cause__ is not None:
            error = error.__cause__
        failure: BaseException = error
        try:
            if isinstance(error, InputNeeded):
                self._keeper.change(lambda: self._wait(error))
                self._write(
                    self._writer.on(run_events.Confirm([*error.requests], step=self._writer.last_step))
                )
            elif isinstance(program, GoingOn) and error is program.refusal and not self._results:
                self._keeper.change(self._keeper.chat.put_back)
                self._write(self._writer.requests(program.error.requests))
            elif not isinstance(error, LeaseLostError):
                self._keeper.change(self._end_failed)
        except Exception as fault:  # noqa: BLE001  (the store failed, or another process has the chat)
            failure = fault
            self._end_if_possible(fault)
        self._write(self._writer.end(failure))

    def _end_if_possible(self, fault: Exception) -> None:
        """End a run that could not be saved as one that waits: its chat must go on."""
        if not isinstance(fault, LeaseLostError):
            with suppress(Exception):
                self._keeper.change(self._end_failed)

    def _wait(self, error: InputNeeded) -> None:
        chat = self._keeper.chat
        ids = [call.id for call in error.calls.in_order()]
        page_ids = {call_id: self._writer.page_id_of(call_id) for call_id in ids}
        chat.state = dict(error.state) or self._state()
        chat.wait(error, self._waiting_agent(), page_ids, self._field)
        chat.keep_calls(self._good_calls, self._earlier_ids)

    def _waiting_agent(self) -> str | None:
        """Return the name of the agent that waits; a turn that waits again is of the same one."""
        turn = self._run.ledger.turn
        if turn is None or turn.agent is None:
            return self._keeper.chat.agent
        if turn.is_over:  # what waits is a loop of the program's own, after this agent
            return None
        program = self._program
        if isinstance(program, GoingOn):
            program = program.program
        return name_of_agent(program, turn.agent)

    def _end_failed(self) -> None:
        chat = self._keeper.chat
        messages = self._history()
        if messages:
            chat.end_turn(messages, self._field)
            chat.keep_calls(self._good_calls, self._earlier_ids)
            return
        if chat.run is not None:
            chat.run.results = [*self._results.values()]
        chat.recover(self._field)


def _is_kept(value: object) -> bool:
    """Return whether JSON holds an output, or its model. The text of any other object is nobody's answer."""
    try:
        to_jsonable_python(value)
    except ValueError:
        return False
    return not isinstance(value, bytes)


def results_of_turn(error: InputNeeded, event: Mapping[str, Any]) -> list[ToolResult]:
    """Return the results of the turn that waited, in its event."""
    if error.results_field is not None:
        return [*event[error.results_field].rounds[-1].results]
    rows: list[Any] = event[error.field].tool_call_results.tool_call_results
    results: list[ToolResult] = []
    for row in rows:
        name = row.name or "unnamed"
        is_error = bool(row.is_error)
        results.append(ToolResult(call_id=row.call_id, name=name, value=row.value, is_error=is_error))
    return results
