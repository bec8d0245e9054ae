"""Tell whether the process of a run lives: by its beat, a text that it keeps in the store.

No clock of the wall is asked. On one machine a beat has a time of the clock that counts since the machine
started, and the process is looked up, too. Elsewhere, a beat that has stayed the same for the length of the
lease is that of a dead process.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from pydantic_core import from_json, to_json

from sigadapt.schemas.json_values import Json

BEATS_IN_LEASE = 4


def _place() -> str | None:
    """Return what tells this start of this machine, and its processes, from any other; None for nothing."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115  (no path: a name that the kernel makes)
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
