"""Chats: a program on a web page, in one line for each protocol.

A page sends a body; `ai_sdk` and `ag_ui` check it, and return the texts to send back. What a body does
depends on the chat in the store (`chat.py`), never on the history that the page sends:

| the chat | a message | replies to what it waits for |
|---|---|---|
| is idle | is run | decide nothing: the page gets the chat as it is |
| waits | is refused, and the requests are shown again | are carried out, known ones alone |
| runs | is refused; the same message gets the end of its run | get the end of the run |

The same message twice is one. Nothing is taken or run before the iterator is read.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from copy import deepcopy
from typing import Any, Literal

import dspy

from sigadapt.errors import Declined, InputNeeded, InvalidOption
from sigadapt.runs.limits import Limits, check_limits
from sigadapt.runs.run import Run
from sigadapt.schemas.json_values import cut, is_object, is_unicode
from sigadapt.signatures.confirmation import REJECTED
from sigadapt.ui.chat import Chat
from sigadapt.ui.chat_messages import (
    ShownChat,
    ag_ui_messages,
    ai_sdk_messages,
    answer_id,
    earlier_ids,
)
from sigadapt.ui.chat_runs import ChatKeeper, ChatRun, going_on
from sigadapt.ui.chat_store import ChatStore, SqliteChats
from sigadapt.ui.page_requests import (
    Approval,
    PageOutput,
    PageReply,
    PageRequest,
    Payload,
    Refusal,
    read_ag_ui,
    read_ai_sdk,
)
from sigadapt.ui.page_values import ErrorText, type_of_error
from sigadapt.ui.pages import AgUiPage, AiSdkPage, Page
from sigadapt.ui.program_inputs import question_field, takes_history, text_outputs
from sigadapt.ui.program_tools import tools_of_program
from sigadapt.ui.writer import ShownCall, row_text

_RUNS = "A run is under way in this chat. Wait for its end, or reload the page."
_WAITS = "This chat waits for a decision. Decide first."
_LOOK_AGAIN = 0.1
"""How many seconds pass between two looks at a run of another request."""


class Chats:
    """A program's chats with the people of a web page, in a store.

    Args:
        program: an agent, or any module that takes the user's text.
        store: the path of a SQLite file, or a `ChatStore`.
        tools: the tools of the program, if neither it nor an agent inside of it has `.tools`. Of several
            agents, the tools of the one that waits are taken.
        field: the input that takes the user's text; None for the first one.
        deps: an object for the tools (`ToolContext.deps`), or a function of the owner that returns it.
        state: the state (`ToolContext.state`) that a chat begins with, plain JSON. A chat keeps its state.
        limits: what one run may use.
        error_text: returns what the page reads of an error; by default, its type, because the message may
            hold secrets. For a tool that failed it gets an exception of that type without the message.
        lease: after how many seconds without a sign of life a run's process is dead. The chat then continues;
            calls that had begun have results saying it's unknown whether they ran.

    Raises:
        InvalidOption: for an argument of another kind, or a program whose first input is unknown.

    A chat belongs to its owner: the id of one that belongs to another finds nothing. Take the owner from
    your session, never from the body. Set an adapter with `confirm="raise"`, so that calls wait for a yes.

    Example:
        >>> import asyncio, os, tempfile, dspy, sigadapt
        >>> from sigadapt.testing import Answer, LoopbackProvider
        >>> async def post(chats, body):
        ...     return [text async for text in chats.ai_sdk(body, owner="ada")]
        >>> text = {"type": "text", "text": "Hello?"}
        >>> body = {"id": "c1", "messages": [{"id": "m1", "role": "user", "parts": [text]}]}
        >>> folder = tempfile.TemporaryDirectory()
        >>> chats = Chats(dspy.Predict("question -> answer"), os.path.join(folder.name, "chats.db"))
        >>> with LoopbackProvider([Answer(text="[[ ## answer ## ]] Hi.")]) as net:
        ...     with dspy.context(lm=dspy.LM(**net.lm_options("openai")), adapter=sigadapt.ChatAdapter()):
        ...         texts = asyncio.run(post(chats, body))
        >>> [message["parts"][0]["text"] for message in chats.messages("c1", owner="ada")]
        ['Hello?', 'Hi.']
        >>> folder.cleanup()
    """

    def __init__(
        self,
        program: dspy.Module,
        store: "str | os.PathLike[str] | ChatStore",
        *,
        tools: Any = None,
        field: str | None = None,
        deps: Any = None,
        state: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        error_text: ErrorText | None = None,
        lease: float = 30.0,
    ) -> None:
        if not isinstance(program, dspy.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
            reason = f"Chats serves a DSPy module, not a {type(program).__name__}"
            raise InvalidOption(reason, field="program", fix="Give an agent: sigadapt.ReAct(...).")
        if isinstance(lease, bool) or not isinstance(lease, (int, float)) or not lease > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidOption(f"expected seconds above 0, got {lease!r}", field="lease")
        check_limits(limits)
        self._program = program
        self._field = question_field(program, field)
        self._takes_history = takes_history(program)
        self.store: ChatStore = SqliteChats(store) if isinstance(store, (str, os.PathLike)) else store
        self._tools = tools
        self._deps = deps
        self._state = dict(state or {})
        self._limits = limits
        self._error_text = error_text or type_of_error
        self._lease = float(lease)
        self._tasks: set[Any] = set()  # a loop keeps no task alive

    def ai_sdk(self, body: object, owner: str) -> AsyncIterator[str]:
        """Take a body of `useChat`, and return the texts to send back, with `ui.AI_SDK_HEADERS`.

        Args:
            body: the request's JSON.
            owner: whose chat it is: the user of your session.

        Raises:
            InvalidOption: `invalid_body`, at once, for a body that is none: answer with the status 400.
        """
        request = read_ai_sdk(body)
        return self._texts(request, _checked_owner(owner), AiSdkPage(request, self._error_text))

    def ag_ui(self, body: object, owner: str) -> AsyncIterator[str]:
        """Take a `RunAgentInput` of AG-UI, and return the texts to send back. Otherwise as `ai_sdk`."""
        request = read_ag_ui(body)
        return self._texts(request, _checked_owner(owner), AgUiPage(request, self._error_text))

    def messages(
        self, chat_id: str, owner: str, form: Literal["ai_sdk", "ag_ui"] = "ai_sdk"
    ) -> list[dict[str, Any]]:
        """Return a chat as messages of a page, for after a reload; `[]` for a chat that is none yet.

        Args:
            chat_id: the chat.
            owner: whose it is.
            form: `ai_sdk` for messages of `useChat`. `ag_ui` for AG-UI's; what the chat waits for is an
                activity message of the type `interrupt` at the end.
        """
        if form not in {"ai_sdk", "ag_ui"}:
            raise InvalidOption(f"{form!r} is no form of messages", field="form", fix="'ai_sdk' or 'ag_ui'.")
        owner = _checked_owner(owner)
        if not isinstance(chat_id, str) or not is_unicode(chat_id):  # pyright: ignore[reportUnnecessaryIsInstance]
            return []  # a client may send anything as the id of a chat
        chat = ChatKeeper(self.store, chat_id, owner, self._lease).chat
        shown_chat = self._chat_to_show(chat)
        return ai_sdk_messages(shown_chat) if form == "ai_sdk" else ag_ui_messages(shown_chat)

    async def deliver(self, chat_id: str, owner: str, request_id: str, value: Any) -> bool:
        """Bring a result from elsewhere, such as a webhook's, and go on with the run that waits for it.

        Args:
            chat_id: the chat.
            owner: whose it is.
            request_id: the id of the request, or the handle that the tool gave to `Pending`.
            value: the result, or a `ToolResult`, or `Declined`.

        Returns:
            Whether the chat waited for it. It is False the second time, and for a chat that is none.

        The run continues by itself; this returns when it has ended, or waits again.
        """
        owner = _checked_owner(owner)
        page = AiSdkPage(PageRequest(chat_id, message_id=None), self._error_text)
        run: ChatRun | None = None
        while run is None:  # a reply of a page at the same moment may be faster, about another call
            keeper = await self._keeper_when_idle(chat_id, owner)
            error = keeper.chat.error()
            matches = [request for request in error.requests if _is_for(request, request_id)] if error else []
            if not matches:
                return False
            run = await self._whole(self._replies_run(keeper, page, {matches[0].id: value}))
        async for _ in run.feed.texts():
            pass
        return True

    # One body.

    async def _texts(self, request: PageRequest, owner: str, page: Page) -> AsyncIterator[str]:
        """Do what a body asks for, and yield what the page reads."""
        keeper = await asyncio.to_thread(self._keeper, request.chat_id, owner)
        run: ChatRun | None = None
        refusal: str | None = None
        if self._is_new(request, keeper.chat):
            refusal = _refusal(keeper.chat)
            if refusal is None:
                run = await self._whole(self._message_run(keeper, page, request))
        else:
            run = await self._run_of_replies(request, owner, page)
        if run is not None:
            async for text in run.feed.texts():
                yield text
            return
        keeper = await asyncio.to_thread(self._keeper, request.chat_id, owner)
        if refusal is None and self._is_new(request, keeper.chat) and not request.again:
            refusal = _refusal(keeper.chat) or _RUNS  # another request was faster
        if refusal is None:
            refusal = _flaw_of_replies(keeper.chat.error(), request)
        if refusal is None and keeper.chat.is_running():
            keeper = await self._keeper_when_idle(request.chat_id, owner)
        shown_chat = self._chat_to_show(keeper.chat)
        rows = page.as_it_is(shown_chat) if refusal is None else page.refuse(shown_chat, refusal)
        for row in rows:
            yield row_text(row)
        for text in page.writer.closing_texts:
            yield text

    async def _run_of_replies(self, request: PageRequest, owner: str, page: Page) -> ChatRun | None:
        """Begin to carry out replies, when no run is under way; None if they decide nothing then."""
        run: ChatRun | None = None
        while run is None:  # another request may be faster, and decide about another call
            keeper = await self._keeper_when_idle(request.chat_id, owner)
            decisions = self._decisions(keeper.chat, request)
            if not decisions:
                return None
            run = await self._whole(self._replies_run(keeper, page, decisions))
        return run

    def _is_new(self, request: PageRequest, chat: Chat) -> bool:
        """Return whether a body asks for a run about a message."""
        return request.message is not None and (request.again or not chat.has_message(request.message))

    def _keeper(self, chat_id: str, owner: str) -> ChatKeeper:
        """Return a chat. If the process of its run has died, end that run first."""
        keeper = ChatKeeper(self.store, chat_id, owner, self._lease)
        while keeper.chat.run is not None and not keeper.chat.is_running():
            keeper.chat.recover(self._field)
            if keeper.save():
                break
            keeper.load()
        return keeper

    async def _keeper_when_idle(self, chat_id: str, owner: str) -> ChatKeeper:
        """Return a chat when no run is under way."""
        while True:
            keeper = await asyncio.to_thread(self._keeper, chat_id, owner)
            if not keeper.chat.is_running():
                return keeper
            await asyncio.sleep(_LOOK_AGAIN)

    async def _whole(self, beginning: Coroutine[Any, Any, ChatRun | None]) -> ChatRun | None:
        """Begin a run, although the reader may leave meanwhile: a chat that says so has a run."""
        task = asyncio.ensure_future(beginning)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _message_run(self, keeper: ChatKeeper, page: Page, request: PageRequest) -> ChatRun | None:
        """Begin a run about a message; None if another request was faster, or nothing can be run again."""
        chat = keeper.chat
        message = request.message
        if message is None:
            return None
        if not chat.turns:
            chat.state = deepcopy(self._state)
        if not request.again or not chat.has_message(message):  # of a page whose message got lost
            chat.begin_message(message, self._lease)
        elif chat.begin_again(message, self._lease) is None:
            return None
        history = chat.history()
        ids = earlier_ids(chat)
        run = self._new_run(keeper)
        if not await asyncio.to_thread(keeper.save):
            return None
        inputs: dict[str, Any] = {self._field: message.text}
        if self._takes_history:
            inputs["history"] = history
        page.begin_answer(answer_id(message.id))
        page.writer.know_earlier_calls(ids)
        return self._start(run, keeper, page, self._program, inputs)

    async def _replies_run(self, keeper: ChatKeeper, page: Page, decisions: dict[str, Any]) -> ChatRun | None:
        """Begin to carry out decisions; None if another request was faster."""
        chat = keeper.chat
        error = chat.error()
        if error is None:
            return None
        reasons = _reasons_of(error.requests, decisions)
        run = self._new_run(keeper)
        calls: dict[str, ShownCall] = {}
        for call in error.calls.in_order():
            calls[call.id] = ShownCall(chat.page_id_of(call), call.id, call.name or "unnamed", "ready")
        denied: set[str] = set()
        for request in error.requests:
            reason = reasons.get(request.id)
            if reason is not None:
                denied.add(request.call.id)
                chat.turns[-1].denied[calls[request.call.id].page_id] = reason
        chat.begin_replies(reasons, self._lease)
        if not await asyncio.to_thread(keeper.save):
            return None
        page.begin_answer(answer_id(chat.turns[-1].message_id))
        page.writer.know_earlier_calls(earlier_ids(chat))
        page.writer.know_waiting_calls(calls, denied)
        tools = self._tools
        if tools is None:
            tools = tools_of_program(self._program, chat.agent)
        return self._start(run, keeper, page, going_on(self._program, error, tools, decisions), {})

    def _new_run(self, keeper: ChatKeeper) -> Run:
        """Return a run with the owner's `deps` and the chat's state; whatever fails here fails before it."""
        deps = self._deps(keeper.owner) if callable(self._deps) else self._deps
        return Run(self._limits, deps=deps, state=keeper.chat.state)

    def _start(
        self, run: Run, keeper: ChatKeeper, page: Page, program: dspy.Module, inputs: dict[str, Any]
    ) -> ChatRun:
        chat_run = ChatRun(keeper, page.writer, self._field, program, run)
        chat_run.start(inputs, self._tasks)
        return chat_run

    def _decisions(self, chat: Chat, request: PageRequest) -> dict[str, Any]:
        """Return the replies that decide something: none, if the page names a request that was never made."""
        error = chat.error()
        decisions: dict[str, Any] = {}
        if error is not None:
            known = {waiting.id for waiting in error.requests} | {*chat.turns[-1].decided}
            if request.named - known:
                return decisions
        for waiting in error.requests if error is not None else ():
            reply = request.replies.get(waiting.id)
            if reply is None and waiting.kind == "result":
                reply = request.replies.get(chat.page_id_of(waiting.call))
            decision = _UNDECIDED if reply is None else _decision(waiting, reply)
            if decision is not _UNDECIDED:
                decisions[waiting.id] = decision
        return decisions

    def _chat_to_show(self, chat: Chat) -> ShownChat:
        if chat.run is not None and not chat.is_running():
            chat.recover(self._field)
        return ShownChat(chat, text_outputs(self._program), self._error_text)


_UNDECIDED = object()


def _decision(request: Any, reply: PageReply) -> Any:
    """Return the decision that a reply makes about a request; `_UNDECIDED` if it makes none."""
    if request.kind == "approval":
        return _approval(reply)
    if isinstance(reply, (PageOutput, Payload)):
        return reply.value
    if isinstance(reply, Refusal):
        return Declined(reply.reason) if reply.reason else Declined()
    return _UNDECIDED


def _flaw_of_replies(error: InputNeeded | None, request: PageRequest) -> str | None:
    """Return why a reply to a call that waits for approval decides nothing."""
    for waiting in error.requests if error is not None else ():
        reply = request.replies.get(waiting.id)
        if waiting.kind == "approval" and isinstance(reply, Payload) and _approval(reply) is _UNDECIDED:
            return f"An approval has the payload {{'approved': true or false}}, not {cut(repr(reply.value))}."
    return None


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
    if not isinstance(approved, bool):
        return _UNDECIDED
    return approved or (reason if isinstance(reason, str) and reason.strip() else False)


def _reasons_of(requests: Iterable[Any], decisions: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the decided requests: with the reason of a rejection, or None for any other decision."""
    reasons: dict[str, str | None] = dict.fromkeys(decisions)
    for request in requests:
        decision = decisions.get(request.id)
        if request.kind == "approval" and decision is False:
            reasons[request.id] = REJECTED
        elif request.kind == "approval" and isinstance(decision, str):
            reasons[request.id] = decision
    return reasons


def _is_for(request: Any, request_id: str) -> bool:
    return request.kind == "result" and request_id in {request.id, str(request.pending)}


def _refusal(chat: Chat) -> str | None:
    """Return why a chat takes no new message now."""
    if chat.is_running():
        return _RUNS
    return None if chat.waiting is None else _WAITS


def _checked_owner(owner: object) -> str:
    if isinstance(owner, str) and is_unicode(owner):
        return owner
    reason = f"the owner is a text, not {cut(repr(owner))}"
    raise InvalidOption(reason, field="owner", fix="Give the id of the user of your session.")
