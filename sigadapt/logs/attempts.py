"""Work that may fail in any way: one line, row or conversation must not end the run of a whole log."""

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def attempt(work: Callable[[], _T]) -> _T | Exception:
    """Return what work gives, or why it failed."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (the caller reports it)
        return error
