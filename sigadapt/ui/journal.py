"""What a run writes: its events into the log first, then the texts of what they show to the page.

One thread appends, all that has come meanwhile in one go, so a run waits for a store only where it must.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sigadapt.json_values import Json
from sigadapt.ui.log.chat_log import ChatLog, LeaseLostError


class RowFeed:
    """Texts for one reader in a loop, from any thread. What comes after the reader has left is dropped."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_woken = False
        self._is_over = False
        self._is_left = False

    def put(self, *texts: str) -> None:
        """Hand over texts."""
        if texts and not self._is_left:
            self._texts.extend(texts)
            self._wake()

    def close(self) -> None:
        """Say that no more comes."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._is_woken:
            return
        self._is_woken = True  # once for all that comes until the reader looks
        with suppress(RuntimeError):  # the loop is closed, so nobody reads
            self._loop.call_soon_threadsafe(self._news.set)

    async def texts(self) -> AsyncIterator[str]:
        """Yield the texts."""
        try:
            while True:
                self._news.clear()
                self._is_woken = False
                while self._texts:
                    yield self._texts.popleft()
                if self._is_over and not self._texts:
                    return
                await self._news.wait()
        finally:
            self._is_left = True
            self._texts.clear()


@dataclass(frozen=True)
class _JournalEntry:
    """Events, the texts of what they show, and what says that they are kept."""

    rows: Sequence[Json | str]
    texts: Sequence[str]
    done: threading.Event | None = None


class Journal:
    """The writing of one run.

    Args:
        log: the log of the chat.
        number: of the run: nothing is written once the chat has another one, or none.
        feed: what hands texts to the page.
    """

    def __init__(self, log: ChatLog, number: int, feed: RowFeed) -> None:
        self._log = log
        self._number = number
        self._feed = feed
        self._entries: deque[_JournalEntry] = deque()
        self._news = threading.Condition()
        self._is_idle = True
        self._is_closed = False
        self._failure: Exception | None = None
        threading.Thread(target=self._work, name="journal of a chat", daemon=True).start()

    def put(self, rows: Sequence[Json | str], texts: Sequence[str]) -> None:
        """Append events soon, and then write texts. Raises why the events before could not be kept."""
        self._raise_failure()
        with self._news:
            if not rows and self._is_idle and not self._entries:
                self._feed.put(*texts)
                return
            self._entries.append(_JournalEntry(rows, texts))
            self._news.notify()

    def put_now(self, rows: Sequence[Json | str], texts: Sequence[str] = ()) -> None:
        """Append events, and return when they are kept. Raises why they could not be.

        Raises:
            LeaseLostError: the chat has another run, or none.
        """
        done = threading.Event()
        with self._news:
            self._entries.append(_JournalEntry(rows, texts, done))
            self._news.notify()
        done.wait()
        self._raise_failure()

    def close(self) -> None:
        """End the thread, once all is kept."""
        with self._news:
            self._is_closed = True
            self._news.notify()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        while True:
            with self._news:
                self._is_idle = not self._entries
                while not self._entries:
                    if self._is_closed:
                        return
                    self._news.wait()
                self._is_idle = False
                entries = [*self._entries]
                self._entries.clear()
            self._keep(entries)

    def _keep(self, entries: Sequence[_JournalEntry]) -> None:
        try:
            if self._failure is None:
                self._append([row for entry in entries for row in entry.rows])
                self._feed.put(*(text for entry in entries for text in entry.texts))
        except Exception as error:  # noqa: BLE001  (raised where something is put next)
            self._failure = error
        for entry in entries:
            if entry.done is not None:
                entry.done.set()

    def _append(self, rows: Sequence[Json | str]) -> None:
        while rows:
            with self._log.lock:
                run = self._log.chat.run
                if run is None or run.number != self._number:
                    raise LeaseLostError
                if self._log.append(rows):
                    return
