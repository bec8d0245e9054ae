"""What a page gets that reads no run of its own: the chat as it is, a refusal, or the run of another page."""

from collections.abc import Iterator
from typing import TypeAlias

from sigadapt.schemas.json_values import Json
from sigadapt.ui.log.chat import TextPart
from sigadapt.ui.page.ag_ui_writer import AgUiWriter
from sigadapt.ui.page.ai_sdk_writer import AiSdkWriter, request_rows, tool_names
from sigadapt.ui.page.chat_messages import PageCall, PagePart, ShownChat, ag_ui_messages
from sigadapt.ui.page.page_requests import PageRequest
from sigadapt.ui.page.page_values import ErrorText, words_of_value
from sigadapt.ui.page.writer import Rows


class AiSdkPage:
    """A page with `useChat`."""

    shows_last_turn_alone = True
    """Whether what it writes of a chat is the last turn: the page has the others."""

    def __init__(self, request: PageRequest, error_text: ErrorText) -> None:
        self._request = request
        self.writer = AiSdkWriter(error_text, request.message_id or "")
        self._number = 0

    def begin_answer(self, message_id: str) -> None:
        """Name the message that the answer is, if the page has not named one."""
        if self._request.message_id is None:
            self.writer.message_id = message_id

    def as_it_is(self, shown_chat: ShownChat) -> Rows:
        """Write the last turn again: of what the page has already, the outcome of calls alone."""
        parts: list[PagePart] = []
        if shown_chat.turns:
            parts = shown_chat.turns[-1].parts
            self.begin_answer(shown_chat.turns[-1].turn.answer_id)
        yield from self.writer.begin()
        for part in parts:
            if self._shows(part) and isinstance(part, PageCall):
                if part.state == "waiting":  # the button of another tab may have changed the part
                    yield {"type": "tool-input-available", **tool_names(part), "input": part.input}
                yield from self.outcome(part)
        new_parts = [part for part in parts if not self._shows(part)]
        if new_parts:
            yield {"type": "start-step"}
            for part in new_parts:
                yield from self.part(part)
            yield {"type": "finish-step"}
        yield {"type": "finish"}

    def _shows(self, part: PagePart) -> bool:
        if isinstance(part, TextPart):
            return part.text in self._request.shown_texts
        return part.page_id in self._request.shown_calls

    def refuse(self, shown_chat: ShownChat, reason: str) -> Rows:
        """Write why a message was not taken, and what the chat waits for."""
        if self._request.message is not None:
            self.begin_answer(f"{self._request.message.id}-refused")
        return self.writer.refuse(reason, shown_chat.requests)

    def join(self, shown_chat: ShownChat) -> Rows:
        """Begin a stream for a page that has loaded the messages, which leave out the answer under way."""
        self.begin_answer(shown_chat.turns[-1].turn.answer_id)
        yield from self.writer.begin()
        yield {"type": "start-step"}
        for part in shown_chat.turns[-1].parts:
            yield from self.part(part)

    def leave(self, shown_chat: ShownChat) -> Rows:
        """End such a stream."""
        yield {"type": "finish-step"}
        yield {"type": "finish"}

    def part(self, part: PagePart) -> Rows:
        """Write a part that the page does not have."""
        if isinstance(part, PageCall):
            yield {"type": "tool-input-start", **tool_names(part)}
            yield {"type": "tool-input-available", **tool_names(part), "input": part.input}
            yield from self.outcome(part)
            return
        self._number += 1
        text_id = f"text-{self._number}"
        yield {"type": "text-start", "id": text_id}
        yield {"type": "text-delta", "id": text_id, "delta": part.text}
        yield {"type": "text-end", "id": text_id}

    def outcome(self, part: PageCall) -> Iterator[Json]:
        """Write what came of a call that the page has."""
        row: Json = {"toolCallId": part.page_id, "dynamic": True}
        if part.state == "done":
            yield {"type": "tool-output-available", **row, "output": part.output}
        elif part.state == "failed":
            yield {"type": "tool-output-error", **row, "errorText": part.failure}
        elif part.state == "denied":
            yield {"type": "tool-output-denied", "toolCallId": part.page_id}
        for request in part.requests:
            yield from request_rows(request, part.page_id)


class AgUiPage:
    """A page with AG-UI."""

    shows_last_turn_alone = False

    def __init__(self, request: PageRequest, error_text: ErrorText) -> None:
        self.writer = AgUiWriter(error_text, request.chat_id, request.run_id)
        self.writer.message_ids = request.result_ids

    def begin_answer(self, message_id: str) -> None:
        """Do nothing: the ids of messages follow from the log's."""

    def as_it_is(self, shown_chat: ShownChat) -> Rows:
        """Write the whole chat in the place of what the page has."""
        return self.writer.snapshot(ag_ui_messages(shown_chat), shown_chat.asked)

    def refuse(self, shown_chat: ShownChat, reason: str) -> Rows:
        """Write why a message was not taken, and what the chat waits for."""
        if not shown_chat.requests:
            return self.writer.refuse(reason)
        return self.writer.snapshot(ag_ui_messages(shown_chat), shown_chat.asked, reason)

    def join(self, shown_chat: ShownChat) -> Rows:
        """Begin a stream for a page that has loaded the messages."""
        yield from self.writer.begin()
        yield {"type": "MESSAGES_SNAPSHOT", "messages": ag_ui_messages(shown_chat)}

    def leave(self, shown_chat: ShownChat) -> Rows:
        """End such a stream."""
        return self.writer.finish(shown_chat.asked)

    def part(self, part: PagePart) -> Rows:
        """Write a part that the page does not have."""
        if isinstance(part, PageCall):
            yield {"type": "TOOL_CALL_START", "toolCallId": part.page_id, "toolCallName": part.name}
            words = part.input if isinstance(part.input, str) else words_of_value(part.input)
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": part.page_id, "delta": words}
            yield {"type": "TOOL_CALL_END", "toolCallId": part.page_id}
            yield from self.outcome(part)
            return
        row = {"messageId": part.id}
        yield {"type": "TEXT_MESSAGE_START", **row, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", **row, "delta": part.text}
        yield {"type": "TEXT_MESSAGE_END", **row}

    def outcome(self, part: PageCall) -> Iterator[Json]:
        """Write what came of a call that the page has."""
        row = {"messageId": part.result_id, "toolCallId": part.page_id, "role": "tool"}
        if part.state == "done":
            yield {"type": "TOOL_CALL_RESULT", **row, "content": words_of_value(part.output)}
        elif part.state in {"failed", "denied"}:
            yield {"type": "TOOL_CALL_RESULT", **row, "content": part.failure or part.denial}


Page: TypeAlias = AiSdkPage | AgUiPage
"""A page that has sent a body, in the words of its protocol."""
