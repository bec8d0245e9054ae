"""What a page gets where no run is written: the chat as it is, or why a message was not taken."""

from collections.abc import Iterator
from typing import Protocol

from sigadapt.schemas.json_values import Json
from sigadapt.ui.ag_ui_writer import AgUiWriter
from sigadapt.ui.ai_sdk_writer import AiSdkWriter, request_rows, tool_names
from sigadapt.ui.chat_messages import CallPart, Part, ShownChat, ag_ui_messages, answer_id
from sigadapt.ui.page_requests import PageRequest
from sigadapt.ui.page_values import ErrorText
from sigadapt.ui.writer import Rows, Writer


class Page(Protocol):
    """A page that has sent a body, in the words of its protocol."""

    @property
    def writer(self) -> Writer:
        """What writes a run."""
        ...

    def begin_answer(self, message_id: str) -> None:
        """Name the message that the answer is, if the page has not named one."""
        ...

    def as_it_is(self, shown_chat: ShownChat) -> Rows:
        """Write a chat as it is."""
        ...

    def refuse(self, shown_chat: ShownChat, reason: str) -> Rows:
        """Write why a message was not taken, and what the chat waits for."""
        ...


class AiSdkPage:
    """A page with `useChat`."""

    def __init__(self, request: PageRequest, error_text: ErrorText) -> None:
        self._request = request
        self.writer = AiSdkWriter(error_text, request.message_id or "")

    def begin_answer(self, message_id: str) -> None:
        """Name the message that the answer is, if the page has not named one."""
        if self._request.message_id is None:
            self.writer.message_id = message_id

    def as_it_is(self, shown_chat: ShownChat) -> Rows:
        """Write the last turn again: of what the page has already, the outcome of calls alone."""
        parts: list[Part] = []
        if shown_chat.turns:
            parts = shown_chat.turns[-1].parts
            self.begin_answer(shown_chat.turns[-1].answer_id)
        yield from self.writer.begin()
        for part in parts:
            if self._shows(part):
                yield from _known_rows(part)
        new_parts = [part for part in parts if not self._shows(part)]
        if new_parts:
            yield {"type": "start-step"}
            for number, part in enumerate(new_parts):
                yield from _new_rows(part, number)
            yield {"type": "finish-step"}
        yield {"type": "finish"}

    def _shows(self, part: Part) -> bool:
        if isinstance(part, str):
            return part in self._request.shown_texts
        return part.page_id in self._request.shown_calls

    def refuse(self, shown_chat: ShownChat, reason: str) -> Rows:
        """Write why a message was not taken, and what the chat waits for."""
        if self._request.message is not None:
            self.begin_answer(answer_id(self._request.message.id))
        return self.writer.refuse(reason, shown_chat.requests)


class AgUiPage:
    """A page with AG-UI."""

    def __init__(self, request: PageRequest, error_text: ErrorText) -> None:
        self.writer = AgUiWriter(error_text, request.chat_id, request.run_id)

    def begin_answer(self, message_id: str) -> None:
        """Do nothing: the ids of messages follow from the run's."""

    def as_it_is(self, shown_chat: ShownChat) -> Rows:
        """Write the whole chat in the place of what the page has."""
        return self.writer.snapshot(ag_ui_messages(shown_chat), shown_chat.requests)

    def refuse(self, shown_chat: ShownChat, reason: str) -> Rows:
        """Write why a message was not taken, and what the chat waits for."""
        if not shown_chat.requests:
            return self.writer.refuse(reason)
        return self.writer.snapshot(ag_ui_messages(shown_chat), shown_chat.requests, reason)


def _new_rows(part: Part, number: int) -> Iterator[Json]:
    """Write a part of the AI SDK that the page does not have."""
    if isinstance(part, CallPart):
        yield {"type": "tool-input-start", **tool_names(part)}
        yield {"type": "tool-input-available", **tool_names(part), "input": part.input}
        yield from _outcome(part)
        return
    text_id = f"text-{number}"
    yield {"type": "text-start", "id": text_id}
    yield {"type": "text-delta", "id": text_id, "delta": part}
    yield {"type": "text-end", "id": text_id}


def _known_rows(part: Part) -> Iterator[Json]:
    """Write what came of a part that the page has."""
    if not isinstance(part, CallPart):
        return
    if part.state == "waiting":  # the button of another tab may have changed the part
        yield {"type": "tool-input-available", **tool_names(part), "input": part.input}
    yield from _outcome(part)


def _outcome(part: CallPart) -> Iterator[Json]:
    row: Json = {"toolCallId": part.page_id, "dynamic": True}
    if part.state == "done":
        yield {"type": "tool-output-available", **row, "output": part.output}
    elif part.state == "failed":
        yield {"type": "tool-output-error", **row, "errorText": part.failure}
    elif part.state == "denied":
        yield {"type": "tool-output-denied", "toolCallId": part.page_id}
    for request in part.requests:
        yield from request_rows(request, part.page_id)
