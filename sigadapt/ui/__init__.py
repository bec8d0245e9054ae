"""Put a program on a web page: `Chats` serves whole chats, `ai_sdk` and `ag_ui` write one run.

`ai_sdk` writes the UI message stream of the AI SDK (`useChat`), `ag_ui` the events of AG-UI. Both turn
`sigadapt.stream(...)` into an async iterator of texts, and `sigadapt.stream_sync(...)` into an iterator.
`writer.py` has their rules.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, overload
from uuid import uuid4

from sigadapt.runs.events import Event
from sigadapt.ui.ag_ui_page import AgUiPage
from sigadapt.ui.ai_sdk_page import AiSdkPage
from sigadapt.ui.chats import Chats
from sigadapt.ui.log.chat_store import ChatStore
from sigadapt.ui.page import run_texts
from sigadapt.ui.page_requests import PageRequest
from sigadapt.ui.page_values import ErrorText, type_of_error

__all__ = ["AI_SDK_HEADERS", "ChatStore", "Chats", "ag_ui", "ai_sdk"]

AI_SDK_HEADERS = {"Content-Type": "text/event-stream", "x-vercel-ai-ui-message-stream": "v1"}
"""The headers of a response with what `ai_sdk` writes."""


@overload
def ai_sdk(
    events: AsyncIterable[Event], *, message_id: str | None = ..., error_text: ErrorText = ...
) -> AsyncIterator[str]: ...
@overload
def ai_sdk(
    events: Iterable[Event], *, message_id: str | None = ..., error_text: ErrorText = ...
) -> Iterator[str]: ...
def ai_sdk(events: Any, *, message_id: str | None = None, error_text: ErrorText = type_of_error) -> Any:
    """Write a run for `useChat` of the AI SDK (`ai` 6).

    Args:
        events: what `sigadapt.stream` or `stream_sync` returned.
        message_id: the id of the assistant's message; None for a new one.
        error_text: returns what the page reads of an error; by default, its type. For a tool that failed it
            gets an exception of that type without the message.

    Returns:
        The texts to send, with the headers `AI_SDK_HEADERS`. A bad call is a `tool-input-error`. A request
        for approval is a `tool-approval-request` whose `approvalId` is the request's id, after the call's
        whole input. A question of a tool is a call of `ask`, whose id is the request's.

    Example:
        >>> from sigadapt.events import Ended, TextDelta
        >>> events = [TextDelta("Sun", "answer", step=1), Ended(None, step=1)]
        >>> for text in ai_sdk(events, message_id="m1"):
        ...     print(text.strip())
        data: {"type":"start","messageId":"m1"}
        data: {"type":"start-step"}
        data: {"type":"text-start","id":"text-1"}
        data: {"type":"text-delta","id":"text-1","delta":"Sun"}
        data: {"type":"text-end","id":"text-1"}
        data: {"type":"finish-step"}
        data: {"type":"finish"}
        data: [DONE]
    """
    request = PageRequest("", message_id=message_id or f"msg_{uuid4().hex}")
    return run_texts(AiSdkPage(error_text, request), events)


@overload
def ag_ui(
    events: AsyncIterable[Event],
    *,
    thread_id: str | None = ...,
    run_id: str | None = ...,
    error_text: ErrorText = ...,
) -> AsyncIterator[str]: ...
@overload
def ag_ui(
    events: Iterable[Event],
    *,
    thread_id: str | None = ...,
    run_id: str | None = ...,
    error_text: ErrorText = ...,
) -> Iterator[str]: ...
def ag_ui(
    events: Any,
    *,
    thread_id: str | None = None,
    run_id: str | None = None,
    error_text: ErrorText = type_of_error,
) -> Any:
    """Write a run for AG-UI (`@ag-ui/core` 1).

    Args:
        events: what `sigadapt.stream` or `stream_sync` returned.
        thread_id: the id of the conversation, which the page sent; None for a new one.
        run_id: the id of the run, which the page sent; None for a new one.
        error_text: as for `ai_sdk`.

    Returns:
        The texts to send. A run that waits finishes with an interrupt for each request, under the request's
        id, with the call's whole input in `metadata` and a `responseSchema`.

    Example:
        >>> from sigadapt.events import Ended
        >>> for text in ag_ui([Ended(None, step=1)], thread_id="t", run_id="r"):
        ...     print(text.strip())
        data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
    """
    request = PageRequest(thread_id or uuid4().hex, run_id=run_id or uuid4().hex)
    return run_texts(AgUiPage(error_text, request), events)
