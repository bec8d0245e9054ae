"""The two kinds of cache in sigadapt. Neither grows without bound (bounded).

`WeakCache` keeps a value for as long as an object lives. `BoundedCache` keeps values by key, within a budget
of bytes. Both may be used from several threads.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

BUDGET = 4 * 1024 * 1024
"""How many bytes outlive the request that brought them, in all caches that go by a key."""

SCHEMAS_BUDGET = BUDGET * 3 // 4
"""How many of them are compiled schemas (`schemas/checking.py`)."""

DECLARATIONS_BUDGET = BUDGET // 4
"""How many of them are declarations of dicts (`signatures/sources/fingerprint.py`)."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class WeakCache(Generic[_V]):
    """Keep a value for each object, by identity, until the object is deleted."""

    # A value must not refer to its object, or neither would ever be deleted.
    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], _V]] = {}

    def of(self, key: object, make: Callable[[], _V]) -> _V:
        """Return the object's value; make it if there is none."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def get(self, key: object) -> _V | None:
        """Return the object's value; None if there is none."""
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def put(self, key: object, value: _V) -> None:
        """Set the object's value. Do nothing if Python cannot refer to the object weakly."""
        number = id(key)
        try:
            reference = weakref.ref(key, lambda ref: self._forget(number, ref))
        except TypeError:
            return
        self._entries[number] = (reference, value)

    def _forget(self, number: int, reference: "weakref.ref[Any]") -> None:
        entry = self._entries.get(number)
        if entry is not None and entry[0] is reference:  # another object may have the same id by now
            del self._entries[number]

    def __len__(self) -> int:
        return len(self._entries)


class BoundedCache(Generic[_K, _V]):
    """Keep values by key; delete the oldest when their total weight in bytes exceeds the budget."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._entries: dict[_K, tuple[_V, int]] = {}
        self._lock = threading.RLock()  # a collection inside may put, too
        self.weight = 0

    def get(self, key: _K) -> _V | None:
        """Return the key's value; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: _K, value: _V, *, weight: int) -> None:
        """Keep a value under a new key. Do nothing if the key is known or the weight is above the budget."""
        if weight > self._budget:
            return
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = (value, weight)
            self.weight += weight
            while self.weight > self._budget:
                _, old_weight = self._entries.pop(next(iter(self._entries)))
                self.weight -= old_weight
