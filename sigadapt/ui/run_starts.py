"""Begin the runs of chats: about a message, or about decisions. The log says first that there is one."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import dspy

from sigadapt.errors import Declined, InputNeeded
from sigadapt.json_values import Json, cut, is_object
from sigadapt.runs.ledger import Limits
from sigadapt.runs.run import Run
from sigadapt.signatures.calls import ToolCall
from sigadapt.turns.decisions import rejection_in
from sigadapt.ui.chat_run import ChatRun
from sigadapt.ui.log.chat import Chat, WaitingRun
from sigadapt.ui.log.chat_log import ChatLog, LogsOfProcess
from sigadapt.ui.page import Page
from sigadapt.ui.page_requests import Approval, Message, PageOutput, PageReply, PageRequest, Payload, Refusal
from sigadapt.ui.program import HISTORY, ChatProgram, ShownRun
from sigadapt.ui.runner import going_on
from sigadapt.ui.writer import ShownCall

_RUNS = "A run is under way in this chat. Wait for its end, or reload the page."
_WAITS = "This chat waits for a decision. Decide first."
_TOOLS_RAN = "Tools ran behind this place, and their effects stay. Ask again in a new message."
_NEVER_WAS = "There is no such message in this chat. Reload the page."
_UNDECIDED = object()
_PAYLOAD = {"approved", "reason"}
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
        deps: as for `Chats`, and so are state and limits.
    """

    def __init__(
        self,
        program: ChatProgram,
        logs: LogsOfProcess,
        *,
        deps: Any,
        state: Mapping[str, Any],
        limits: Limits | None,
    ) -> None:
        self._program = program
        self._logs = logs
        self._deps = deps
        self._state = state
        self._limits = limits
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
            while not log.is_idle:
                self._logs.watch(log)
                news.clear()
                if log.is_idle:
                    return
                await news.wait()
                if log.is_dead:
                    await asyncio.to_thread(log.end_lost_run, self._program.field)

    async def _whole(self, beginning: Coroutine[Any, Any, Result]) -> Result:
        """Begin a run, although the reader may leave meanwhile: a chat that says so has a run."""
        task = asyncio.ensure_future(beginning)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _about_message(
        self, log: ChatLog, page: Page, message: Message, *, again: bool
    ) -> ChatRun | str | None:
        program = self._program
        flaw = None if program.files is None else program.files.flaw_of(message.files)
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
        inputs: dict[str, Any] = {program.field: chat.last.text}
        if program.files is not None:
            inputs |= program.files.inputs(chat.last.files)
        if program.takes_history:
            inputs[HISTORY] = dspy.History(messages=[*chat.earlier_events()])
        page.begin_answer(chat.last.answer_id)
        page.ids = chat.page_ids()
        run.state.update(deepcopy(self._state if chat.state is None else chat.state))
        return await self._start(run, log, page, program.module, inputs)

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
        page.ids = chat.page_ids()
        page.know_waiting_calls(_shown_calls(chat, begun.error), begun.denied)
        run.state.update(deepcopy(chat.state or {}))
        tools = self._program.tools_of(begun.waiting.agent)
        error = chat.saved_run(begun.waiting)
        program = going_on(self._program.module, error, tools, begun.decisions)
        return await self._start(run, log, page, program, {})

    def _new_run(self, owner: str) -> Run:
        """Return a run with the owner's `deps`; whatever fails here fails before anything is written."""
        deps = self._deps(owner) if callable(self._deps) else self._deps
        return Run(self._limits, deps=deps, state={})

    async def _start(
        self, run: Run, log: ChatLog, page: Page, program: dspy.Module, inputs: dict[str, Any]
    ) -> ChatRun:
        page.shown_run = ShownRun(self._program, log.chat.last.text)
        chat_run = ChatRun(log, page, self._program.field, program, run)
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
        row["files"] = [*map(asdict, message.files)]
    if turn is None:
        return _NEVER_WAS if again and chat.turns else [row]
    if chat.has_tools_from(turn):
        return _TOOLS_RAN
    return [{"type": "cut", "turn": turn.number}, row]


def _shown_calls(chat: Chat, error: InputNeeded) -> dict[str, ShownCall]:
    """Return the calls of a turn that waits which have no result yet, as the page has them."""
    calls: dict[str, ShownCall] = {}
    for call in error.calls.in_order():
        page_id = chat.page_id_of(call.id)
        part = chat.last.calls.get(page_id)
        if part is None or not part.is_open:  # no page shows an agent's `submit`
            continue
        calls[call.id] = ShownCall(page_id, call.id, call.name or "unnamed", "ready")
        calls[call.id].input = part.input
    return calls


# What the replies of a page decide about the requests of a run that waits.


def decisions_of(chat: Chat, page_request: PageRequest) -> dict[str, Any]:
    """Return the replies that decide something: none, if the page names a request that was never made."""
    error = chat.error()
    if error is None:
        return {}
    if page_request.named - {request.id for request in error.requests} - chat.last.decided:
        return {}
    decisions: dict[str, Any] = {}
    for request in error.requests:
        reply = page_request.replies.get(request.id)
        if reply is None and request.kind == "result":
            reply = page_request.replies.get(chat.page_id_of(request.call.id))
        decision = _UNDECIDED if reply is None else _decision(request, reply)
        if decision is not _UNDECIDED:
            decisions[request.id] = decision
    return decisions


def _decision(request: ToolCall, reply: PageReply) -> Any:
    """Return the decision that a reply makes about a request; `_UNDECIDED` if it makes none."""
    if request.kind == "approval":
        return _approval(reply)
    if isinstance(reply, (PageOutput, Payload)):
        return reply.value
    if isinstance(reply, Refusal):
        return Declined(reply.reason) if reply.reason else Declined()
    return _UNDECIDED


def _approval(reply: PageReply) -> Any:
    """Return the decision about a call: True, False or a reason; `_UNDECIDED` for anything else."""
    if isinstance(reply, Approval):
        return reply.approved or reply.reason or False
    if isinstance(reply, Refusal):
        return False
    if isinstance(reply, PageOutput) or not is_object(reply.value):
        return _UNDECIDED
    approved: object = reply.value.get("approved")
    reason: object = reply.value.get("reason")
    if not isinstance(approved, bool) or (approved and reply.value.keys() - _PAYLOAD):
        return _UNDECIDED  # a yes to something else, such as to arguments that the page has changed
    return approved or (reason if isinstance(reason, str) and reason.strip() else False)


def flaw_of_replies(error: InputNeeded | None, page_request: PageRequest) -> str | None:
    """Return why a reply to a call that waits for approval decides nothing; None if there is none such."""
    for request in error.requests if error is not None else ():
        reply = page_request.replies.get(request.id)
        if request.kind == "approval" and isinstance(reply, Payload) and _approval(reply) is _UNDECIDED:
            payload = "{'approved': true or false, 'reason': a text}"
            return f"An approval has the payload {payload} and nothing else, not {cut(repr(reply.value))}."
    return None


def reasons_of(requests: Iterable[ToolCall], decisions: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the decided requests: each with the reason of a rejection, or None for any other decision."""
    reasons: dict[str, str | None] = dict.fromkeys(decisions)
    for request in requests:
        if request.id in decisions:
            reasons[request.id] = rejection_in(request, decisions[request.id])
    return reasons


def request_for(error: InputNeeded | None, handle: Any) -> ToolCall | None:
    """Return the request that waits for the result of a handle, or has it as its id."""
    for request in error.requests if error is not None else ():
        if request.kind != "result":
            continue
        if isinstance(handle, str) and handle == request.id:
            return request
        if "pending" in request.args and _is_same_json(request.pending, handle):
            return request
    return None


def _is_same_json(one: Any, other: Any) -> bool:
    try:
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False
