"""One run of a chat: what happens in it becomes events of the log, and rows for the page that began it.

A run does not end with its reader: a page that is closed or reloaded finds the end in the log. A program
whose tools are all sync runs in a thread, any other as a task of the loop, as `sigadapt.stream` runs it.
"""

import asyncio
import logging
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

import dspy
from pydantic_core import to_jsonable_python

from sigadapt.errors import InputNeeded, InvalidOption, SigadaptError
from sigadapt.json_values import Json
from sigadapt.runs import events as run_events
from sigadapt.runs.events import Event
from sigadapt.runs.run import Run
from sigadapt.runs.stream import runs_in_thread, stream, stream_sync
from sigadapt.runs.watching import AnyCall, jsonable
from sigadapt.schemas.checking import check_json
from sigadapt.signatures.calls import ToolCall, ToolCalls
from sigadapt.signatures.tool_results.tool_output import program_outputs
from sigadapt.ui.ag_ui_page import AgUiPage
from sigadapt.ui.journal import Journal, RowFeed
from sigadapt.ui.log.chat_log import ChatLog, LeaseLostError
from sigadapt.ui.log.chat_store import text_of
from sigadapt.ui.log.lost_runs import rows_of_lost_run
from sigadapt.ui.page import Page, row_text
from sigadapt.ui.runner import Events, RunHistory, RunProgress, StoppedError, ToolStoppedError, gating

_LOG = logging.getLogger("sigadapt")
_MOST_COPIES = 20
Rows = list[Json | str]


class ChatRun:
    """A run whose first event is in the log.

    Args:
        log: the log, whose chat runs.
        page: the page that began it.
        question: the input that takes the user's text.
        program: the program, or one that goes on.
        run: with its limits, deps and state.
    """

    def __init__(self, log: ChatLog, page: Page, question: str, program: dspy.Module, run: Run) -> None:
        chat = log.chat
        self.number = chat.number if chat.run is None else chat.run.number
        self.feed = RowFeed()
        self.refusal: SigadaptError | None = None
        """Why decisions were not carried out."""
        self._log = log
        self._page = page
        self._question = question
        self._program = program
        self._run = run
        self._history = RunHistory(chat, question)
        self._progress = RunProgress(program, run, question, chat.last.text)
        self._state_text = text_of(chat.state or {})
        self._is_resolved = chat.waiting is None
        self._agent = None if chat.waiting is None else chat.waiting.agent
        self._is_over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.RLock()
        self._journal = Journal(log, self.number, self.feed)
        page.events = []
        page.prefix = f"{chat.last.answer_id}-{self.number}"

    def start(self, inputs: dict[str, Any], tasks: "set[asyncio.Task[None]]") -> None:
        """Run the program.

        Args:
            inputs: of the program.
            tasks: holds the task while it runs; a loop alone would forget it.
        """
        if runs_in_thread(self._program):
            context = copy_context()
            target = (self._run_here, inputs)
            threading.Thread(target=context.run, args=target, name="run of a chat", daemon=True).start()
            return
        self._loop = asyncio.get_running_loop()
        task = self._loop.create_task(self._run_in_loop(inputs))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def lives(self) -> bool:
        """Return whether the run goes on: one in a loop that was stopped does not."""
        return not self._is_over and (self._loop is None or self._loop.is_running())

    def _run_here(self, inputs: dict[str, Any]) -> None:
        with self._running():
            for event in stream_sync(self._program, **inputs):
                self._on(event)

    async def _run_in_loop(self, inputs: dict[str, Any]) -> None:
        with self._running():
            async for event in stream(self._program, **inputs):
                if isinstance(event, run_events.Ended):  # waits for the store
                    await asyncio.to_thread(self._on, event)
                else:
                    self._on(event)

    @contextmanager
    def _running(self) -> Generator[None]:
        """Open the run, keep and write how it ends, and close what it wrote to."""
        try:
            self._write(self._page.begin())
            with self._run, gating(self._begin_call, self._is_stopped):
                yield
        except BaseException as error:  # noqa: BLE001  (kept, and written for the page)
            self._fail(error)
        finally:
            self._is_over = True
            self._log.end_beats()
            self._journal.close()
            self.feed.put(*self._page.closing_texts)
            self.feed.close()

    def _is_stopped(self) -> bool:
        run = self._log.chat.run
        return run is not None and run.number == self.number and run.is_stopped

    def _begin_call(self, call: AnyCall) -> None:
        """Keep that a call begins, whose result will follow."""
        with self._lock:
            rows = self._rows_of_progress()
        args = jsonable(call.args) if isinstance(call, ToolCall) else call.arguments
        begun: Json = {"type": "begun", "call_id": call.id, "name": call.name or "unnamed", "input": args}
        self._journal.put_now([*rows, begun])

    def _write(self, page_rows: Iterable[Json], rows: Iterable[Json | str] = ()) -> None:
        """Write rows of the page; what they show is kept first."""
        texts = [*map(row_text, page_rows)]
        self._journal.put([*self._page.take_events(), *rows], texts)

    def _write_page(self, page_rows: Iterable[Json]) -> None:
        """Write rows of the page that show nothing new, once all is kept."""
        self.feed.put(*map(row_text, page_rows))

    def _on(self, event: Event) -> None:
        """Keep what an event changes, and write it."""
        if isinstance(event, (run_events.Failed, run_events.Confirm)):
            return  # raised next, and written when it is kept
        with self._lock:
            rows = self._rows_of_resolved()
            if isinstance(event, run_events.Ended):
                self._end_in_answer(event, rows)
                return
            if isinstance(event, run_events.ResultReady) and event.within is None:
                rows += self._rows_of_progress()
            self._write(self._page.on(event), rows)

    def _end_in_answer(self, event: run_events.Ended, rows: Rows) -> None:
        state = self._rows_of_state()  # which may fail the run
        texts = [*map(row_text, self._page.outputs(event.prediction))]
        rows += self._page.take_events()
        rows += self._history.whole(self._events_after(event.prediction))
        rows += state
        self._journal.put_now([*rows, {"type": "ended", "how": "answer"}], texts)
        self._write_page(self._whole_page())
        self._write_page(self._page.end(None))

    # What the model reads.

    def _rows_of_resolved(self) -> Rows:
        """Return the end of the turn that waited, once, so that its results are in the history."""
        resumed = self._progress.resumed
        if self._is_resolved or resumed is None:
            return []
        self._is_resolved = True
        return [*self._history.grown(resumed), {"type": "resolved"}]

    def _rows_of_progress(self) -> Rows:
        """Return what is new in the history, once for each turn of the agent that has calls."""
        if self._progress.is_going_on:
            return []
        rows = self._rows_of_resolved()
        events = self._progress.asked_events()
        if events is not None:
            rows += self._history.asked(events)
            rows += self._rows_of_state()
        return rows

    def _rows_of_state(self) -> Rows:
        """Return the state, if it has changed.

        Raises:
            InvalidOption: a tool put something into it that JSON cannot hold.
        """
        try:
            state = self._plain_state()
            check_json(state, tool=None)
            text = text_of(state)
        except (SigadaptError, ValueError) as error:
            fix = "Keep plain JSON values in `context.state`."
            reason = f"the state of the chat is no JSON: {error}"
            raise InvalidOption(reason, field="state", fix=fix) from error
        if text == self._state_text:
            return []
        self._state_text = text
        return [{"type": "state", "state": state}]

    def _plain_state(self) -> Any:
        for _ in range(_MOST_COPIES):
            with suppress(RuntimeError):  # tools of other threads may add meanwhile
                return to_jsonable_python({**self._run.state}, fallback=_no_json)
        return to_jsonable_python({**self._run.state}, fallback=_no_json)

    def _events_after(self, prediction: Any) -> Events:
        """Return the history of the chat after a run that ended in an answer."""
        outputs: Json = {}
        if isinstance(prediction, dspy.Prediction):
            items: Any = prediction
            outputs = {name: value for name, value in items.items() if name == "history" or _is_kept(value)}
        history: object = outputs.get("history")
        events = self._progress.events()
        if isinstance(history, dspy.History) and (not events or self._progress.asks(history.messages)):
            return history.messages
        if history is not None:  # of another agent than the one that got the message
            outputs = program_outputs(prediction) or {}
        if events:  # of an agent inside, whose answer the program may have replaced
            return [*events[:-1], {**events[-1], **outputs}]
        chat = self._log.chat
        return [*chat.history().messages, {self._question: chat.last.text, **outputs}]

    # The end of a run without an answer.

    def _fail(self, error: BaseException) -> None:
        """Keep and write how a run ended that has no answer."""
        if isinstance(error, ToolStoppedError) and error.__cause__ is not None:
            error = error.__cause__
        failure = error
        try:
            with self._lock:
                if isinstance(error, InputNeeded):
                    self._wait(error)
                    return
                if isinstance(error, SigadaptError) and error is self._progress.refusal:
                    self._put_back(error)
                elif isinstance(error, StoppedError):
                    self._end("stopped", None)
                    return
                elif not isinstance(error, LeaseLostError):
                    _LOG.error("a run of a chat failed", exc_info=error)
                    self._end("error", error)
                    return
        except Exception as fault:  # noqa: BLE001  (the store failed, or another process has the chat)
            failure = fault
            if fault is not error and not isinstance(fault, LeaseLostError):
                _LOG.error("a run of a chat could not be kept", exc_info=fault)
            self._give_up()
        self._write_page(self._page.end(failure))

    def _put_back(self, refusal: SigadaptError) -> None:
        """Let the requests wait as before: nothing has run."""
        waiting = self._log.chat.error()
        requests = ToolCalls() if waiting is None else waiting.requests
        texts = [*map(row_text, self._page.requests(requests))]
        self._journal.put_now([*self._page.take_events(), {"type": "refused"}], texts)
        self.refusal = refusal

    def _give_up(self) -> None:
        """End the run as one whose process has died, if the store is there again."""
        with suppress(Exception), self._log.lock:
            chat = self._log.refresh()
            if chat.run is not None and chat.run.number == self.number:
                self._log.append(rows_of_lost_run(chat, self._question))

    def _wait(self, error: InputNeeded) -> None:
        """Keep a run that waits, and show what it waits for."""
        self._history.leave_out_asked()
        texts = [*map(row_text, self._page.close())]
        rows = self._page.take_events()
        rows += self._history.grown(error.history.messages)
        page_ids = {call.id: self._page.page_id_of(call.id) for call in error.calls.in_order()}
        for request in error.requests:
            page_id = page_ids[request.call.id]
            if request.kind != "answer" or page_id not in self._page.kept_calls:
                row = {"type": "call", "page_id": page_id, "call_id": request.call.id}
                rows.append({**row, "name": request.call.name, "input": jsonable(request.call.args)})
        if error.state:
            self._run.state.clear()
            self._run.state.update(error.state)
        rows += self._rows_of_state()
        agent = self._progress.waiting_agent(self._agent)
        saved = {"run": _without_history(error), "agent": agent, "page_ids": page_ids}
        self._journal.put_now([*rows, {"type": "waits", **saved}], texts)
        self._page.differs = True  # what is asked about has its defaults
        self._write_page(self._whole_page())
        confirm = run_events.Confirm([*error.requests], step=self._page.last_step)
        self._write_page(self._page.on(confirm))
        self._write_page(self._page.end(error))

    def _whole_page(self) -> Iterable[Json]:
        """Yield what brings a page of AG-UI to where it would be after a reload, if it is not there."""
        if self._page.differs and isinstance(self._page, AgUiPage):
            with self._log.lock:
                messages = self._page.messages(self._log.chat)
            shown = [message for message in messages if message["role"] != "activity"]
            yield {"type": "MESSAGES_SNAPSHOT", "messages": shown}

    def _end(self, how: str, error: BaseException | None) -> None:
        """Keep and write the end of a run that failed, or was stopped."""
        texts = [*map(row_text, self._page.close())]
        rows = self._page.take_events()
        if self._progress.is_going_on:
            self._journal.put_now(rows, texts)
            with self._log.lock:
                rows = [*rows_of_lost_run(self._log.chat, self._question)[:-1]]
            texts = []
        else:
            rows += self._rows_of_end()
        self._journal.put_now([*rows, {"type": "ended", "how": how}], texts)
        self._write_page(self._whole_page())
        self._write_page(self._page.end(error, is_stopped=how == "stopped"))

    def _rows_of_end(self) -> Rows:
        """Return what is left of the model's history and of the state."""
        rows = self._rows_of_resolved()
        events = self._progress.events()
        if events and self._progress.asks(events):
            rows += self._history.whole(events)
        elif self._history.is_empty:
            rows += self._history.question_alone()
        with suppress(InvalidOption):  # the chat keeps the last state that JSON holds
            rows += self._rows_of_state()
        return rows


def _without_history(error: InputNeeded) -> str:
    """Return a run that waits as text, without its history, which is that of the chat."""
    history = error.history
    error.history = dspy.History(messages=[])
    try:
        return error.model_dump_json()
    finally:
        error.history = history


def _no_json(value: Any) -> Any:
    raise ValueError(f"a {type(value).__name__}")


def _is_kept(value: object) -> bool:
    """Return whether JSON holds an output, or its model. The text of any other object is nobody's answer."""
    try:
        to_jsonable_python(value)
    except ValueError:
        return False
    return not isinstance(value, bytes)
