"""The two kinds of cache in sigadapt. Neither grows without bound (bounded).

`WeakCache` keeps a value for as long as an object lives. `BoundedCache` keeps values by key, within a budget
of bytes. Both may be used from several threads.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

BUDGET = 4 * 1024 * 1024
"""How many bytes outlive the request that brought them, in the cache of compiled schemas (`checking.py`)."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class WeakCache(Generic[_V]):
    """Keep a value for each object, by identity, until the object is deleted."""

    # A value must not refer to its object, or neither would ever be deleted.
    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Any], _V]] = {}

    def of(self, key: object, make: Callable[[], _V]) -> _V:
        """Return the object's value; make it if there is none."""
        known = self.get(key)
        if known is None:
            known = make()
            self.put(key, known)
        return known

    def get(self, key: object) -> _V | None:
        """Return the object's value; None if there is none."""
        known = self._kept.get(id(key))
        return known[1] if known is not None and known[0]() is key else None

    def put(self, key: object, value: _V) -> None:
        """Set the object's value. Do nothing if Python cannot refer to the object weakly."""
        number = id(key)
        try:
            reference = weakref.ref(key, lambda gone: self._forget(number, gone))
        except TypeError:
            return
        self._kept[number] = (reference, value)

    def _forget(self, number: int, gone: "weakref.ref[Any]") -> None:
        known = self._kept.get(number)
        if known is not None and known[0] is gone:  # another object may have the same id by now
            del self._kept[number]

    def __len__(self) -> int:
        return len(self._kept)


class BoundedCache(Generic[_K, _V]):
    """Keep values by key; delete the oldest when their total weight in bytes exceeds the budget."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._kept: dict[_K, tuple[_V, int]] = {}
        self._lock = threading.RLock()  # a collection inside may put, too
        self.weight = 0

    def get(self, key: _K) -> _V | None:
        """Return the key's value; None if there is none."""
        known = self._kept.get(key)
        return None if known is None else known[0]

    def put(self, key: _K, value: _V, *, weight: int) -> None:
        """Keep a value under a new key. Do nothing if the key is known or the weight is above the budget."""
        if weight > self._budget:
            return
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = (value, weight)
            self.weight += weight
            while self.weight > self._budget:
                _, gone = self._kept.pop(next(iter(self._kept)))
                self.weight -= gone
