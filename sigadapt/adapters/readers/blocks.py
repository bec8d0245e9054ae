"""A stream's content blocks by their index, in the order they were opened."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_B = TypeVar("_B")


class Blocks(Generic[_B]):
    """Blocks in the making. Opening one at an index that has one adds another: none is ever lost.

    Args:
        make: makes an empty block.

    Example:
        >>> blocks = Blocks(list)
        >>> blocks.open(0).append("a")
        >>> blocks.at(0).append("b")
        >>> blocks.open(0).append("c")
        >>> blocks.all
        [['a', 'b'], ['c']]
    """

    def __init__(self, make: Callable[[], _B]) -> None:
        self._make = make
        self._by_index: dict[int | None, _B] = {}
        self.all: list[_B] = []

    def open(self, index: Any) -> _B:
        """A new block at an index; one without an index is the place of all that have none."""
        block = self._by_index[_number(index)] = self._make()
        self.all.append(block)
        return block

    def at(self, index: Any) -> _B:
        """The latest block at an index, opened here where there is none."""
        known = self._by_index.get(_number(index))
        return self.open(index) if known is None else known


def _number(index: Any) -> int | None:
    return index if isinstance(index, int) else None
