"""The two kinds of cache: by an object, for as long as it lives; by a key, within a budget of bytes.

Neither can keep what one request brought: the first forgets it with the request's objects, the second when
its budget is spent. Both may be used from several threads.
"""

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class WeakCache(Generic[_V]):
    """Values by object, compared by identity; a value goes when its object does.

    A value must not refer to its object, or neither would ever go.

    Example:
        >>> lengths = WeakCache()
        >>> def words(): ...
        >>> lengths.of(words, lambda: 5), lengths.of(words, lambda: 6), len(lengths)
        (5, 5, 1)
        >>> del words
        >>> len(lengths)
        0
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Any], _V]] = {}

    def of(self, key: object, make: Callable[[], _V]) -> _V:
        """Return the object's value, made now if there is none.

        Args:
            key: the object. The value of one that cannot be referred to weakly is made each time.
            make: makes the value.
        """
        known = self._kept.get(id(key))
        if known is not None and known[0]() is key:
            return known[1]
        value = make()
        self.put(key, value)
        return value

    def get(self, key: object) -> _V | None:
        """Return the object's value, or None."""
        known = self._kept.get(id(key))
        return known[1] if known is not None and known[0]() is key else None

    def put(self, key: object, value: _V) -> None:
        """Keep a value for an object, in place of the one before."""
        number = id(key)
        try:
            reference = weakref.ref(key, lambda gone: self._forget(number, gone))
        except TypeError:
            return
        self._kept[number] = (reference, value)

    def _forget(self, number: int, gone: "weakref.ref[Any]") -> None:
        known = self._kept.get(number)
        if known is not None and known[0] is gone:  # another object may have the number by now
            del self._kept[number]

    def __len__(self) -> int:
        return len(self._kept)


class BoundedCache(Generic[_K, _V]):
    """Values by key; the oldest go first once the weights add up to more than the budget.

    Args:
        budget: how many bytes the values may weigh together.

    Example:
        >>> cache = BoundedCache(10)
        >>> for name in ("a", "b", "c"):
        ...     cache.put(name, name.upper(), weight=4)
        >>> cache.get("a"), cache.get("c"), cache.weight
        (None, 'C', 8)
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._kept: dict[_K, tuple[_V, int]] = {}
        self.weight = 0
        """How many bytes the values weigh now."""

    def get(self, key: _K) -> _V | None:
        """Return the key's value, or None."""
        known = self._kept.get(key)
        return None if known is None else known[0]

    def put(self, key: _K, value: _V, *, weight: int) -> None:
        """Keep a value that weighs so many bytes; one heavier than the budget is not kept."""
        if weight > self._budget or key in self._kept:
            return
        self._kept[key] = (value, weight)
        self.weight += weight
        while self.weight > self._budget and self._kept:
            _, gone = self._kept.pop(next(iter(list(self._kept))), (None, 0))  # a list: threads
            self.weight -= gone
