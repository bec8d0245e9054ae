"""The logs of a store as this process knows them: appended to, read on, and kept alive.

All that happens to one chat in this process shares one `ChatLog`. Its state is brought up to date by reading
from its number. What other processes do is noticed by a look at the number while somebody reads or runs.
"""

import asyncio
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic_core import from_json, to_json

from sigadapt.json_values import Json
from sigadapt.ui.log.chat import Chat
from sigadapt.ui.log.chat_events import apply, without_files
from sigadapt.ui.log.chat_store import ChatStore, text_of
from sigadapt.ui.log.lost_runs import rows_of_lost_run

_LOG = logging.getLogger("sigadapt")
_PAUSES = (0.05, 0.3)
"""How many seconds pass before an append is tried again, where the store failed."""
_BETWEEN_LOOKS = 0.1
_MOST_IDLE_CHATS = 200
"""How many chats that nobody uses are kept in memory."""
_BEATS_IN_LEASE = 4


class LeaseLostError(Exception):
    """Another process has ended this run, because this one did not say in time that it lives."""


# The lease: whether the process of a run lives, by its beat, a text that it keeps in the store. No clock of
# the wall is asked. On one machine a beat has a time of the clock that counts since the machine started, and
# the process is looked up, too. Elsewhere, a beat that has stayed the same for the length of the lease is one
# of a dead process.


def _place() -> str | None:
    """Return what tells this start of this machine, and its processes, from any other; None for nothing."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"  # a name that the kernel makes
    return None


_PLACE = _place()


def _birth(pid: int) -> str | None:
    """Return when a process of this place began; None for one that is no more."""
    with suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *fields = stat.rpartition(")")[2].split()  # the name of a process may hold spaces and brackets
        return None if state in "ZX" else fields[18]
    return None


def beat_of(run: int, length: float) -> str:
    """Return what a run of this process keeps to say that it lives.

    Args:
        run: its number.
        length: for how many seconds this holds.
    """
    pid = os.getpid()
    until = time.monotonic() + length
    return to_json({"run": run, "place": _PLACE, "pid": pid, "born": _birth(pid), "until": until}).decode()


class LeaseWatch:
    """What this process has seen of the beats of one chat."""

    def __init__(self) -> None:
        self._seen: tuple[int, str | None] | None = None
        self._since = 0.0

    def is_alive(self, run: int, text: str | None, length: float) -> bool:
        """Return whether a run lives, by the beat that is in the store now."""
        beat = _beat_in(text)
        if beat.get("run") == run and _PLACE is not None and beat.get("place") == _PLACE:
            is_there = beat["pid"] == os.getpid() or _birth(beat["pid"]) == beat["born"]
            return is_there and time.monotonic() < beat["until"]
        if self._seen != (run, text):
            self._seen = (run, text)
            self._since = time.monotonic()
        return time.monotonic() - self._since < length


def _beat_in(text: str | None) -> Json:
    with suppress(ValueError, TypeError):
        beat: Json = from_json(text or "{}")
        return beat
    return {}


class ChatLog:
    """One chat of the store, and its state after the events that this process has read."""

    def __init__(self, store: ChatStore, chat_id: str, owner: str, lease: float) -> None:
        self._store = store
        self.chat_id = chat_id
        self.owner = owner
        self._lease = lease
        self.lock = threading.RLock()
        self.chat = Chat()
        self._last_text = ""
        self._watch = LeaseWatch()
        self.is_dead = False
        """Whether the process of the run under way has died."""
        self._readers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._lives: Callable[[], bool] | None = None  # of a run of this process
        self._next_beat = 0.0

    def refresh(self) -> Chat:
        """Read what is new, and return the state."""
        with self.lock:
            number = self.chat.number
            rows = self._store.read(self.chat_id, self.owner, max(0, number - 1))
            if number and rows[:1] != [(number, self._last_text)]:  # deleted, and perhaps made again
                self.chat = Chat()
                rows = self._store.read(self.chat_id, self.owner)
            elif number:
                rows = rows[1:]
            self._take(rows)
            return self.chat

    def _take(self, rows: Sequence[tuple[int, str]]) -> None:
        unread = [number for number, text in rows if not apply(self.chat, number, text)]
        if not self.chat.read_waiting():
            unread.append(self.chat.number)
        if unread:
            _LOG.warning("chat %r: the events %s cannot be read, and are left out", self.chat_id, unread)
        if rows:
            self._last_text = rows[-1][1]
            self._wake()

    def append(self, rows: Sequence[Json | str]) -> bool:
        """Append events behind the state; return False, with what is new, if another process was faster.

        Args:
            rows: events, or their texts.
        """
        with self.lock:
            texts = [row if isinstance(row, str) else text_of(row) for row in rows]
            texts = [without_files(self.chat, text) for text in texts]
            number = self.chat.number
            if not self._append(number, texts):
                self.refresh()
                return False
            self._take([*enumerate(texts, number + 1)])
            return True

    def _append(self, number: int, texts: list[str]) -> bool:
        """Append, again if the store fails, since what a tool did would be lost with it."""
        for pause in _PAUSES:
            with suppress(Exception):  # a store of any kind
                return self._store.append(self.chat_id, self.owner, number, texts)
            time.sleep(pause)
            with suppress(Exception):  # it may have failed after it had written
                rows = self._store.read(self.chat_id, self.owner, number)
                if rows:
                    return [text for _, text in rows[: len(texts)]] == texts
        return self._store.append(self.chat_id, self.owner, number, texts)

    def end_lost_run(self, question: str) -> None:
        """End the run under way if its process has died.

        Args:
            question: the input of the program that takes the user's text.
        """
        with self.lock:
            while self.chat.run is not None and not self._is_alive():
                self.append(rows_of_lost_run(self.chat, question))
            self.is_dead = False

    @property
    def is_idle(self) -> bool:
        """Whether no run is under way."""
        return self.chat.run is None

    # Readers.

    @contextmanager
    def reading(self) -> Generator[asyncio.Event]:
        """Yield an event of this loop that is set with each change."""
        news = asyncio.Event()
        with self.lock:
            self._readers[news] = asyncio.get_running_loop()
        try:
            yield news
        finally:
            with self.lock:
                self._readers.pop(news, None)

    def _wake(self) -> None:
        for news, loop in [*self._readers.items()]:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(news.set)

    # The lease.

    @property
    def is_watched(self) -> bool:
        """Whether somebody waits for what other processes do."""
        return bool(self._readers) or self._lives is not None

    def begin_beats(self, lives: Callable[[], bool]) -> None:
        """Say from now on that the run of this process lives, as long as `lives` returns that."""
        self._lives = lives
        self._next_beat = 0.0
        self.look()

    def end_beats(self) -> None:
        """Say it no more."""
        self._lives = None

    def look(self) -> None:
        """Say that the run of this process lives, if that is due, and see what others did."""
        number, text = self._store.beat(self.chat_id, self.owner, self._due_beat())
        if number != self.chat.number:
            self.refresh()
        run = self.chat.run
        if run is not None and not self._watch.is_alive(run.number, text, self._lease):
            self.is_dead = True
            self._wake()

    def _due_beat(self) -> str | None:
        run = self.chat.run
        if run is None or self._lives is None or time.monotonic() < self._next_beat:
            return None
        if not self._lives():
            self._lives = None
            return None
        self._next_beat = time.monotonic() + self._lease / _BEATS_IN_LEASE
        return beat_of(run.number, self._lease)

    def _is_alive(self) -> bool:
        """Return whether the process of the run under way lives."""
        run = self.chat.run
        _, text = self._store.beat(self.chat_id, self.owner)
        return run is not None and self._watch.is_alive(run.number, text, self._lease)


class LogsOfProcess:
    """The logs that this process uses, and one thread that looks after those that somebody waits for."""

    def __init__(self, store: ChatStore, lease: float) -> None:
        self._store = store
        self._lease = lease
        self._lock = threading.Lock()
        self._logs: weakref.WeakValueDictionary[tuple[str, str], ChatLog] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[tuple[str, str], ChatLog] = OrderedDict()
        self._watched: set[ChatLog] = set()
        self._thread: threading.Thread | None = None

    def of(self, chat_id: str, owner: str) -> ChatLog:
        """Return the log of a chat, as far as it was read."""
        key = (owner, chat_id)
        with self._lock:
            log = self._logs.get(key)
            if log is None:
                log = self._logs[key] = ChatLog(self._store, chat_id, owner, self._lease)
            self._recent[key] = log
            self._recent.move_to_end(key)
            while len(self._recent) > _MOST_IDLE_CHATS:
                self._recent.popitem(last=False)
            return log

    def watch(self, log: ChatLog) -> None:
        """Look at a log as long as somebody waits for it."""
        with self._lock:
            self._watched.add(log)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="looks at chats", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        while True:
            with self._lock:
                self._watched = {log for log in self._watched if log.is_watched}
                if not self._watched:
                    self._thread = None
                    return
                logs = [*self._watched]
            for log in logs:
                with suppress(Exception):  # a store of any kind; it may be back before the lease ends
                    log.look()
            time.sleep(min(_BETWEEN_LOOKS, self._lease / 8))
