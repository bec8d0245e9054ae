"""Streamed parts put together: content blocks by their index (`Blocks`), and fragments of calls (`Fold`).

Servers disagree on how to say which call a fragment belongs to. OpenAI gives every fragment its call's
`index`, and the id and name once. Compatible servers leave the index out, send 0 for every call, repeat id
and name in each chunk, or count the index up within one call. Two calls must never become one, and one never
two (rule 12), so a fragment opens a call where any of this holds:

 a. it carries an index not seen before, and an id or a name;
 b. it carries an id other than that of the call it would continue, and no call has that id;
 c. it carries a name other than that call's;
 d. it carries a name, but no id or one that the call lacks, and the call came whole in one fragment.

Else it continues a call: the one with its index, or its id, or else the latest. Where a server says less
than that, fragments of two calls end up in one text, which is then no JSON: a bad call with all of the
text, never a good one with the wrong arguments.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from sigadapt.providers.provider import CutOff
from sigadapt.providers.reading import an_object, is_text, json_text
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json

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


class Call:
    """A call as far as its fragments have arrived."""

    def __init__(self, fragment: Json) -> None:
        self.head = fragment
        self.id: str | None = None
        self.name: str | None = None
        self.pieces: list[Any] = []
        self.came_whole = False

    def add(self, fragment: Json) -> None:
        """Take a fragment of this call."""
        self.id = self.id or _id(fragment)
        self.name = self.name or _name(fragment)
        piece = _arguments(fragment)
        if piece is not None and piece != "":
            self.came_whole = not self.pieces and _is_whole(json_text([piece]))
            self.pieces.append(piece)

    @property
    def arguments(self) -> str:
        """The arguments' text so far."""
        return json_text(self.pieces)

    def whole(self, *, ended: bool) -> Json:
        """The call in the form of an unstreamed message's `tool_calls`."""
        kind, key = _place(self.head)
        function = {"name": self.name, key: self.arguments if ended else CutOff(self.arguments)}
        return {**self.head, "id": self.id, kind: function}


class Fold:
    """The calls of one message while its fragments arrive, in the order they were opened."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._by_index: dict[Any, Call] = {}
        self._by_id: dict[str, Call] = {}

    def add(self, fragment: Json) -> Call:
        """Put a fragment to the call it belongs to, which may be a new one; returns that call."""
        index = fragment.get("index")
        slot = index if isinstance(index, int) else None
        latest = self.calls[-1] if self.calls else None
        call = _continued(fragment, slot, self._by_index, self._by_id, latest)
        if call is None:
            call = Call(fragment)
            self.calls.append(call)
        call.add(fragment)
        if slot is not None:
            self._by_index[slot] = call
        if call.id is not None:
            self._by_id[call.id] = call
        return call


def fold(fragments: Iterable[Json], *, ended: bool) -> list[Json]:
    """The whole calls that a message's `tool_calls` fragments amount to.

    Args:
        fragments: the fragments in the order they came.
        ended: whether the answer said that it is over; else each call may lack its end.

    Returns:
        Calls in the form of an unstreamed message's `tool_calls`, in the order they were opened.

    Example:
        >>> fold(
        ...     [
        ...         {"index": 0, "id": "c1", "function": {"name": "now", "arguments": ""}},
        ...         {"index": 0, "function": {"arguments": "{}"}},
        ...     ],
        ...     ended=True,
        ... )
        [{'index': 0, 'id': 'c1', 'function': {'name': 'now', 'arguments': '{}'}}]
    """
    found = Fold()
    for fragment in fragments:
        found.add(fragment)
    return [call.whole(ended=ended) for call in found.calls]


def _continued(
    fragment: Json,
    slot: int | None,
    by_index: dict[Any, Call],
    by_id: dict[str, Call],
    latest: Call | None,
) -> Call | None:
    call_id, name = _id(fragment), _name(fragment)
    call = by_index.get(slot) if slot is not None else by_id.get(call_id or "", latest)
    if call is None:
        return None if call_id or name else latest
    if call_id and call.id and call_id != call.id:
        return by_id.get(call_id)
    if name and call.name and name != call.name:
        return None
    return None if name and call.came_whole and (not call_id or call_id != call.id) else call


def _place(fragment: Json) -> tuple[str, str]:
    """Where a call keeps its name and arguments: custom tools have a place of their own."""
    is_custom = isinstance(fragment.get("custom"), dict) and not isinstance(fragment.get("function"), dict)
    return ("custom", "input") if is_custom else ("function", "arguments")


def _is_whole(text: str) -> bool:
    return text.lstrip()[:1] == "{" and isinstance(parse_arguments(text), dict)


def _id(fragment: Json) -> str | None:
    value = fragment.get("id")
    return value if is_text(value) else None


def _name(fragment: Json) -> str | None:
    value = an_object(fragment.get(_place(fragment)[0])).get("name")
    return value if is_text(value) else None


def _arguments(fragment: Json) -> Any:
    kind, key = _place(fragment)
    return an_object(fragment.get(kind)).get(key)
