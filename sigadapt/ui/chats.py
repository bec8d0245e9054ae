"""Chats: a program on a web page, in one line for each protocol.

A page sends a body; `ai_sdk` and `ag_ui` check it, and return the texts to send back. What a body does
depends on the chat in the store (`chat_events.py`), never on the history that the page sends:

| the chat | a message | replies to what it waits for |
|---|---|---|
| is idle | is run | decide nothing: the page gets the chat as it is |
| waits | is refused, and the requests are shown again | are carried out, known ones alone |
| runs | is refused; the same message gets the end of its run | are carried out at its end, if it waits then |

The same message twice is one. Other words under its id, or another answer to it, cut the chat there, unless
tools ran behind that place. Nothing is taken or run before the iterator is read.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Literal

import dspy

from sigadapt.errors import InvalidOption
from sigadapt.json_values import ARGUMENT_LEVELS, cut, fault_in, is_mapping, is_unicode
from sigadapt.runs.ledger import Limits, check_limits
from sigadapt.ui.ag_ui_page import AgUiPage
from sigadapt.ui.ai_sdk_page import AiSdkPage
from sigadapt.ui.chat_run import ChatRun
from sigadapt.ui.log.chat import Chat
from sigadapt.ui.log.chat_log import ChatLog, LogsOfProcess
from sigadapt.ui.log.chat_store import ChatStore, DatabaseChats
from sigadapt.ui.page import Page, row_text
from sigadapt.ui.page_requests import PageRequest, read_ag_ui, read_ai_sdk
from sigadapt.ui.page_values import ErrorText, type_of_error, words_of_error
from sigadapt.ui.program import ChatProgram
from sigadapt.ui.run_starts import RunStarts, decisions_of, flaw_of_replies, request_for

_LOG = logging.getLogger("sigadapt")
Form = Literal["ai_sdk", "ag_ui"]
_PAGES: Mapping[object, type[Page]] = {"ai_sdk": AiSdkPage, "ag_ui": AgUiPage}
_OF_STORES = [name for name in vars(ChatStore) if not name.startswith("_")]
"""The methods of a `ChatStore`."""
_BETWEEN_PIECES = 0.05
"""How many seconds a page that joins a run waits between two looks, so that many such pages cost little."""


class Chats:
    """A program's chats with the people of a web page, in a store.

    Args:
        program: an agent, or any module that takes the user's text.
        store: a path, a URL of SQLAlchemy, or a `ChatStore`.
        tools: the tools of the program, if neither it nor an agent inside of it has `.tools`. Of several
            agents, the tools of the one that waits are taken.
        field: the input that takes the user's text; None for the first one.
        deps: an object for the tools (`ToolContext.deps`), or a function of the owner that returns it.
        state: the state (`ToolContext.state`) that a chat begins with, plain JSON. A chat keeps its state.
        limits: what one run may use.
        error_text: returns what the page reads of an error; by default, its type, because the message may
            hold secrets. For a tool that failed it gets an exception of that type without the message.
        show: fields of inner predictors that the page shows, too. Without it, the page shows the program's
            own outputs, and what the agent says that got the message.
        files: the input that takes a user's files: `dspy.Image`, `dspy.Audio`, `dspy.File`, or a list of one.
            Without it, files are not read, and a warning says so.
        lease: after how many seconds without a sign of life a run's process is dead. The chat then continues;
            calls that had begun have results saying it's unknown whether they ran.

    Raises:
        InvalidOption: for an argument of another kind, a program whose first input is unknown, or one with a
            tool that waits which could not go on then.

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
        show: Iterable[str] | None = None,
        files: str | None = None,
        lease: float = 30.0,
    ) -> None:
        _check_options(program, lease, state, error_text)
        check_limits(limits)
        _check_store(store)
        self.store: ChatStore = DatabaseChats(store) if isinstance(store, (str, os.PathLike)) else store
        self._program = ChatProgram(program, field=field, tools=tools, show=show, files=files)
        self._told: set[str] = set()
        self._error_text = error_text or type_of_error
        self._logs = LogsOfProcess(self.store, float(lease))
        self._starts = RunStarts(self._program, self._logs, deps=deps, state=dict(state or {}), limits=limits)

    def ai_sdk(self, body: object, owner: str) -> AsyncIterator[str]:
        """Take a body of `useChat`, and return the texts to send back, with `ui.AI_SDK_HEADERS`.

        Args:
            body: the request's JSON.
            owner: whose chat it is: the user of your session.

        Raises:
            InvalidOption: `invalid_body`, at once, for a body that is none: answer with the status 400.
            InvalidSignature: `forgotten_adapter`, at once, for a program with tools under DSPy's own adapter.
        """
        self._program.check_adapter()
        request = read_ai_sdk(body, takes_files=self._program.files is not None)
        self._tell_unread(request)
        return self._texts(AiSdkPage(self._error_text, request), _checked_owner(owner))

    def ag_ui(self, body: object, owner: str) -> AsyncIterator[str]:
        """Take a `RunAgentInput` of AG-UI, and return the texts to send back. Otherwise as `ai_sdk`."""
        self._program.check_adapter()
        request = read_ag_ui(body, takes_files=self._program.files is not None)
        self._tell_unread(request)
        return self._texts(AgUiPage(self._error_text, request), _checked_owner(owner))

    def _tell_unread(self, page_request: PageRequest) -> None:
        """Log what the page sends and nothing takes, each kind once."""
        kinds = {name.partition(" (")[0]: name for name in page_request.unread}
        new = [name for kind, name in kinds.items() if kind not in self._told]
        if new:
            self._told.update(kinds)
            _LOG.warning("a page sends what the chats' program does not take: %s", ", ".join(new))

    def messages(self, chat_id: str, owner: str, form: Form = "ai_sdk") -> list[dict[str, Any]]:
        """Return a chat as messages of a page, for after a reload; `[]` for a chat that is none yet.

        While a run is under way, the AI SDK's messages leave its answer to `resume`.
        """
        page = _page_kind(form)(self._error_text, PageRequest(chat_id))
        log = self._log_of(chat_id, owner)
        if log is None:
            return []
        with log.lock:
            return page.messages(log.chat)

    async def resume(self, chat_id: str, owner: str, form: Form = "ai_sdk") -> AsyncIterator[str] | None:
        """Return the texts of the run under way, for a page that has just loaded `messages`.

        Returns:
            The texts; None where nothing runs: answer with the status 204.
        """
        kind = _page_kind(form)
        log = await asyncio.to_thread(self._log_of, chat_id, owner)
        if log is None or log.chat.run is None:
            return None
        request = PageRequest(chat_id, run_id=f"run-{log.chat.run.number}")
        return self._texts_of_run_under_way(log, kind(self._error_text, request))

    async def stop(self, chat_id: str, owner: str) -> bool:
        """End the run under way, in whatever process, after the tools that have begun.

        Returns:
            Whether there was one. A chat that waits stays as it is.
        """
        return await asyncio.to_thread(self._stop, chat_id, owner)

    def _stop(self, chat_id: str, owner: str) -> bool:
        log = self._log_of(chat_id, owner)
        if log is None:
            return False
        with log.lock:
            while log.chat.run is not None:
                if log.chat.run.is_stopped or log.append([{"type": "stop"}]):
                    return True
            return False

    async def deliver(self, chat_id: str, owner: str, handle: Any, value: Any) -> bool:
        """Bring a result from elsewhere, such as a webhook's, and go on with the run that waits for it.

        Args:
            chat_id: the chat.
            owner: whose it is.
            handle: the handle that the tool gave to `Pending`, any JSON; or the id of the request.
            value: the result, or a `ToolResult`, or `Declined`.

        Returns:
            Whether the chat waited for it, and took it.

        Raises:
            SigadaptError: the result was refused, and may be given again.
        """
        page = AiSdkPage(self._error_text, PageRequest(chat_id))

        def decide(chat: Chat) -> dict[str, Any]:
            request = request_for(chat.error(), handle)
            return {} if request is None else {request.id: value}

        log = await asyncio.to_thread(self._log_of, chat_id, owner)
        if log is None:
            return False
        run = await self._starts.about_replies(log, page, decide)
        if run is None:
            return False
        async for _ in run.feed.texts():
            pass
        if run.refusal is not None:
            raise run.refusal
        return True

    # What a page reads.

    async def _texts(self, page: Page, owner: str) -> AsyncIterator[str]:
        """Do what a body asks for, and yield what the page reads."""
        log = await asyncio.to_thread(self._log, page.request.chat_id, owner)
        try:
            begun = await self._begin_run(log, page)
        except Exception as error:  # noqa: BLE001  (such as of `deps`: the page reads it, and nothing has begun)
            _LOG.error("a run of a chat could not begin", exc_info=error)
            begun = words_of_error(error, self._error_text)
        if isinstance(begun, ChatRun):
            async for text in begun.feed.texts():
                yield text
            return
        if begun is None:
            await self._starts.until_idle(log)
        with log.lock:
            rows = page.as_it_is(log.chat) if begun is None else page.refuse_request(log.chat, begun)
            texts = [*map(row_text, rows), *page.closing_texts]
        for text in texts:
            yield text

    async def _begin_run(self, log: ChatLog, page: Page) -> ChatRun | str | None:
        """Begin the run that a body asks for; why not; or None, if the page gets the chat as it is."""
        request = page.request
        if request.message is not None:
            return await self._starts.about_message(log, page, request.message, again=request.again)
        run = await self._starts.about_replies(log, page, lambda chat: decisions_of(chat, request))
        if run is not None:
            return run
        flaw = flaw_of_replies(log.chat.error(), request)
        if flaw is not None:
            _LOG.warning("a page's decision was not taken: %s", flaw)
        return flaw

    async def _texts_of_run_under_way(self, log: ChatLog, page: Page) -> AsyncIterator[str]:
        """Yield what a page reads that joins a run."""
        with log.reading() as news:
            self._logs.watch(log)
            with log.lock:
                rows = page.join(log.chat)
            is_over = False
            while not is_over:
                for row in rows:
                    yield row_text(row)
                with log.lock:
                    news.clear()
                    is_over = log.chat.run is None
                    rows = page.news(log.chat)
                if not rows and not is_over:
                    await news.wait()
                    await asyncio.sleep(_BETWEEN_PIECES)
                    if log.is_dead:
                        await asyncio.to_thread(log.end_lost_run, self._program.field)
        for text in [*map(row_text, rows), *page.closing_texts]:
            yield text

    def _log_of(self, chat_id: object, owner: object) -> ChatLog | None:
        """Return the log of a chat that somebody names; None for an id that no chat has."""
        owner = _checked_owner(owner)
        if isinstance(chat_id, str) and is_unicode(chat_id):
            return self._log(chat_id, owner)
        return None

    def _log(self, chat_id: str, owner: str) -> ChatLog:
        """Return the log of a chat, up to date. If the process of its run has died, that run is ended."""
        log = self._logs.of(chat_id, owner)
        with log.lock:
            log.refresh()
            log.end_lost_run(self._program.field)
        return log


def _check_options(program: object, lease: object, state: object, error_text: object) -> None:
    if not isinstance(program, dspy.Module):
        reason = f"Chats serves a DSPy module, not a {type(program).__name__}"
        raise InvalidOption(reason, field="program", fix="Give an agent: sigadapt.ReAct(...).")
    if isinstance(lease, bool) or not isinstance(lease, (int, float)) or not lease > 0:
        raise InvalidOption(f"expected seconds above 0, got {lease!r}", field="lease")
    if state is not None and not is_mapping(state):
        raise InvalidOption(f"expected a dict, got {cut(repr(state))}", field="state")
    fault = fault_in(dict(state or {}), levels=ARGUMENT_LEVELS)
    if fault is not None:
        fix = "Give plain JSON values, and what else tools need as `deps`."
        raise InvalidOption(f"the state cannot be kept: {fault.reason}", field="state", fix=fix)
    if error_text is not None and not callable(error_text):
        fix = "Give a function of the error, such as error_text=str."
        raise InvalidOption(f"expected a function, got {cut(repr(error_text))}", field="error_text", fix=fix)


def _check_store(store: object) -> None:
    """Refuse what is neither a place nor a store; a place is judged by `Database`."""
    has_methods = all(callable(getattr(store, name, None)) for name in _OF_STORES)
    if isinstance(store, (str, os.PathLike)) or (has_methods and not isinstance(store, type)):
        return
    fix = f"Give a path, a URL, or an object with the methods {', '.join(_OF_STORES)}."
    reason = f"{cut(repr(store))} is no store of chats"
    raise InvalidOption(reason, code="unusable_store", field="store", fix=fix)


def _page_kind(form: object) -> type[Page]:
    if not isinstance(form, str) or form not in _PAGES:
        raise InvalidOption(f"{form!r} is no form of messages", field="form", fix="'ai_sdk' or 'ag_ui'.")
    return _PAGES[form]


def _checked_owner(owner: object) -> str:
    if isinstance(owner, str) and is_unicode(owner):
        return owner
    reason = f"the owner is a text, not {cut(repr(owner))}"
    raise InvalidOption(reason, field="owner", fix="Give the id of the user of your session.")
