"""A page that reads a run which another request began: what it has of the turn, and what is new to it."""

from sigadapt.schemas.json_values import Json
from sigadapt.ui.log.chat import Chat, TextPart
from sigadapt.ui.page.chat_messages import PageCall, ShownChat
from sigadapt.ui.page.page_values import ErrorText
from sigadapt.ui.page.pages import Page


class PageInARun:
    """What such a page has, from what it was written on.

    Args:
        page: what writes its rows.
        chat: the chat, which runs.
        error_text: what the page reads of an error.
    """

    def __init__(self, page: Page, chat: Chat, error_text: ErrorText) -> None:
        self._page = page
        self._error_text = error_text
        self._turn = chat.last
        self._parts = dict.fromkeys(chat.last.parts)
        self._open_calls = {page_id: call for page_id, call in chat.last.calls.items() if call.is_open}

    def news(self, chat: Chat) -> list[Json]:
        """Return the rows of what came since the last look: calls and texts that are whole, and results."""
        is_over = chat.run is None
        shown_chat = ShownChat(chat, self._error_text, turns=())
        rows: list[Json] = []
        for page_id, call in [*self._open_calls.items()]:
            if not call.is_open or is_over:
                del self._open_calls[page_id]
                shown = shown_chat.part(call)
                if isinstance(shown, PageCall):
                    rows += self._page.outcome(shown)
        new_parts = [part for part in self._turn.parts if part not in self._parts]
        self._parts.update(dict.fromkeys(new_parts))
        for part in new_parts:
            rows += self._page.part(shown_chat.part(part))
            if not isinstance(part, TextPart) and part.is_open:
                self._open_calls[part.page_id] = part
        return rows
