"""What was made of an object before, found by the object itself: for lists of tools, which have no hash."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sigadapt.signatures.bounded import Bounded

_T = TypeVar("_T")
_MOST = 256


class Memo(Generic[_T]):
    """A bounded memory of `make(key)`, by the identity of `key`; a key is kept alive while it is known.

    Example:
        >>> tools = [1, 2, 3]
        >>> total = Memo(sum)
        >>> total(tools), total(tools)
        (6, 6)
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._known = Bounded[int, tuple[Any, _T]](_MOST)

    def __call__(self, key: Any) -> _T:
        """What is made of the key, or was made of it before."""
        known = self._known.get(id(key))
        if known is not None and known[0] is key:
            return known[1]
        made = self._make(key)
        self._known[id(key)] = (key, made)
        return made
