"""Begin the runs of chats: about a message, or about decisions. The log says first that there is one."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import dspy

from sigadapt.errors import InputNeeded
from sigadapt.runs.limits import Limits
from sigadapt.runs.run import Run
from sigadapt.schemas.json_values import Json
from sigadapt.ui.log.chat import Chat, WaitingRun
from sigadapt.ui.log.chat_log import ChatLog, LogsOfProcess
from sigadapt.ui.page.page_files import saved_file
from sigadapt.ui.page.page_requests import Message
from sigadapt.ui.page.pages import Page
from sigadapt.ui.page.shown_texts import ShownTexts
from sigadapt.ui.page.writer import ShownCall
from sigadapt.ui.run.chat_runs import ChatRun
from sigadapt.ui.run.decisions import reasons_of
from sigadapt.ui.run.program_files import FilesInput
from sigadapt.ui.run.program_inputs import takes_history
from sigadapt.ui.run.program_tools import tools_of_program
from sigadapt.ui.run.runner import going_on
from sigadapt.ui.run.shown_args import ShownArgs

_RUNS = "A run is under way in this chat. Wait for its end, or reload the page."
_WAITS = "This chat waits for a decision. Decide first."
_TOOLS_RAN = "Tools ran behind this place, and their effects stay. Ask again in a new message."
_NEVER_WAS = "There is no such message in this chat. Reload the page."
Decide = Callable[[Chat], dict[str, Any]]
"""Returns the decisions about the requests of a chat."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Decision:
    """What a run carries out."""

    error: InputNeeded
    waiting: WaitingRun
    decisions: dict[str, Any]
    reasons: dict[str, str | None]

    @property
    def denied(self) -> set[str]:
        """The ids of calls that were rejected."""
        requests = self.error.requests
        return {request.call.id for request in requests if self.reasons.get(request.id) is not None}


class RunStarts:
    """Begins the runs of one program.

    Args:
        program: the program.
        logs: the logs of its chats.
        field: the input that takes the user's text.
        tools: as for `Chats`, and so are deps, state, limits and show.
        files: the input that takes the user's files.
    """

    def __init__(
        self,
        program: dspy.Module,
        logs: LogsOfProcess,
        field: str,
        *,
        tools: Any,
        deps: Any,
        state: Mapping[str, Any],
        limits: Limits | None,
        show: frozenset[str],
        files: FilesInput | None,
    ) -> None:
        self._program = program
        self._logs = logs
        self._field = field
        self._takes_history = takes_history(program)
        self._tools = tools
        self._deps = deps
        self._state = state
        self._limits = limits
        self._show = show
        self._files = files
        self._shown_args = ShownArgs(program, tools)
        self._tasks: set[asyncio.Task[Any]] = set()  # a loop keeps no task alive

    async def about_message(
        self, log: ChatLog, page: Page, message: Message, *, again: bool
    ) -> ChatRun | str | None:
        """Begin a run about a message.

        Args:
            log: the log of the chat.
            page: the page that reads the run.
            message: the message.
            again: whether the page asks for another answer.

        Returns:
            The run; a text that says why there is none; or None for a message that the chat has.
        """
        return await self._whole(self._about_message(log, page, message, again=again))

    async def about_replies(self, log: ChatLog, page: Page, decide: Decide) -> ChatRun | None:
        """Begin to carry out decisions, when no run is under way; None if there are none then."""
        while True:
            await self.until_idle(log)
            begun = await self._whole(self._about_replies(log, page, decide))
            if begun != "runs":
                return None if begun == "none" else begun

    async def until_idle(self, log: ChatLog) -> None:
        """Wait until no run is under way."""
        with log.reading() as news:
            while not _is_idle(log.chat):
                self._logs.watch(log)
                news.clear()
                if _is_idle(log.chat):
                    return
                await news.wait()
                if log.is_dead:
                    await asyncio.to_thread(log.end_lost_run, self._field)

    async def _whole(self, beginning: Coroutine[Any, Any, Result]) -> Result:
        """Begin a run, although the reader may leave meanwhile: a chat that says so has a run."""
        task = asyncio.ensure_future(beginning)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _about_message(
        self, log: ChatLog, page: Page, message: Message, *, again: bool
    ) -> ChatRun | str | None:
        flaw = None if self._files is None else self._files.flaw_of(message.files)
        if flaw is not None:
            return flaw
        run = self._new_run(log.owner)

        def begin() -> str | None:
            with log.lock:
                while True:
                    rows = _rows_of_message(log.chat, message, again=again)
                    if rows is None or isinstance(rows, str):
                        return rows
                    if log.append(rows):
                        return ""

        refusal = await asyncio.to_thread(begin)
        if refusal != "":
            return refusal
        chat = log.chat
        inputs: dict[str, Any] = {self._field: chat.last.text}
        if self._files is not None:
            inputs |= self._files.inputs(chat.last.files)
        if self._takes_history:
            inputs["history"] = dspy.History(messages=[*chat.earlier_events()])
        page.begin_answer(chat.last.answer_id)
        page.writer.know_earlier_calls(chat.page_ids())
        run.state.update(deepcopy(self._state if chat.state is None else chat.state))
        return await self._start(run, log, page, self._program, inputs)

    async def _about_replies(
        self, log: ChatLog, page: Page, decide: Decide
    ) -> ChatRun | Literal["none", "runs"]:
        """Begin to carry out decisions; say if there are none, or a run is under way."""
        run = self._new_run(log.owner)

        def begin() -> _Decision | Literal["none", "runs"]:
            with log.lock:
                while log.chat.run is None:
                    decisions = decide(log.chat)
                    error = log.chat.error()
                    waiting = log.chat.waiting
                    if error is None or waiting is None or not decisions:
                        return "none"
                    reasons = reasons_of(error.requests, decisions)
                    if log.append([{"type": "replies", "decided": reasons}]):
                        return _Decision(error, waiting, decisions, reasons)
                return "runs"

        begun = await asyncio.to_thread(begin)
        if isinstance(begun, str):
            return begun
        chat = log.chat
        page.begin_answer(chat.last.answer_id)
        page.writer.know_earlier_calls(chat.page_ids())
        page.writer.know_waiting_calls(_shown_calls(chat, begun.error), begun.denied)
        run.state.update(deepcopy(chat.state or {}))
        tools = self._tools
        if tools is None:
            tools = tools_of_program(self._program, begun.waiting.agent)
        program = going_on(self._program, chat.fresh_error(begun.waiting), tools, begun.decisions)
        return await self._start(run, log, page, program, {})

    def _new_run(self, owner: str) -> Run:
        """Return a run with the owner's `deps`; whatever fails here fails before anything is written."""
        deps = self._deps(owner) if callable(self._deps) else self._deps
        return Run(self._limits, deps=deps, state={})

    async def _start(
        self, run: Run, log: ChatLog, page: Page, program: dspy.Module, inputs: dict[str, Any]
    ) -> ChatRun:
        page.writer.shown_texts = ShownTexts(self._program, log.chat.last.text, self._show)
        page.writer.args_of = self._shown_args.of
        chat_run = ChatRun(log, page.writer, self._field, program, run)
        await asyncio.to_thread(log.begin_beats, chat_run.lives)
        chat_run.start(inputs, self._tasks)
        self._logs.watch(log)
        return chat_run


def _rows_of_message(chat: Chat, message: Message, *, again: bool) -> list[Json] | str | None:
    """Return the events that begin a run about a message; why not; or None, if the chat has it."""
    turn = chat.turn_of(message.id)
    if turn is not None and turn.text == message.text and not again:
        return None
    if chat.status != "idle":
        return _WAITS if chat.status == "waits" else _RUNS
    row: Json = {"type": "message", "id": message.id, "text": message.text}
    if message.files:
        row["files"] = [*map(saved_file, message.files)]
    if turn is None:
        return _NEVER_WAS if again and chat.turns else [row]
    if chat.has_tools_from(turn):
        return _TOOLS_RAN
    return [{"type": "cut", "turn": turn.number}, row]


def _is_idle(chat: Chat) -> bool:
    return chat.run is None


def _shown_calls(chat: Chat, error: InputNeeded) -> dict[str, ShownCall]:
    """Return the calls of a turn that waits which have no result yet, as the page has them."""
    calls: dict[str, ShownCall] = {}
    for call in error.calls.in_order():
        page_id = chat.page_id_of(call.id)
        part = chat.last.calls.get(page_id)
        if part is not None and not part.is_open:
            continue
        calls[call.id] = ShownCall(page_id, call.id, call.name or "unnamed", "ready")
        calls[call.id].input = None if part is None else part.input
    return calls
