"""A dict for a cache that must not grow: it forgets everything rather than hold more than so many things."""

from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Bounded(dict[_K, _V]):
    """A dict of at most so many things.

    Example:
        >>> known = Bounded(2)
        >>> for number in (1, 2, 3):
        ...     known[number] = "made"
        >>> known
        {3: 'made'}
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: _K, value: _V) -> None:
        if len(self) >= self._most:
            self.clear()
        super().__setitem__(key, value)
