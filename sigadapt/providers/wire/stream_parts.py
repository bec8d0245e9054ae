"""Put streamed parts together: content blocks by their index, fragments of calls, leaves of arguments.

Servers disagree on how to say which call a fragment belongs to. OpenAI sends the call's `index` with every
fragment, and the id and the name once. Compatible servers omit the index, send 0 for every call, repeat id
and name in each chunk, or count the index up within one call. Two calls must never become one, and one call
never two (whole calls). A fragment therefore starts a new call if any of these holds:

 a. it has an index not seen before, and an id or a name;
 b. it has another id than the call it would continue, and no call has that id;
 c. it has another name than the call it would continue;
 d. it has a name, and either no id or an id that the call lacks, and the call came whole in one fragment.

Some servers send each piece of a call with an id of its own, or the name in pieces. A fragment therefore
continues the call with its index after all if it has a new id and no name, and the call did not come whole.
So does one with another name and no id, if the call has an id and no arguments yet. The first id stays.

Otherwise it continues a call: the one with its index, else the one with its id, else the latest. If a server
says too little for these rules, fragments of two calls end up in one text. That text is invalid JSON, so it
becomes a bad call that holds all of the text, never a good call with wrong arguments.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.providers.wire.values import an_object, json_text, usual_arguments
from sigadapt.schemas.arguments import CutOff, UnreadCall, parse_arguments

_NOTHING: Json = {}


class Block:
    """A streamed block, as far as it has arrived: what opened it, its deltas, and whether it ended."""

    def __init__(self, start: Json) -> None:
        self.start = start
        self.deltas: list[Json] = []
        self.ended = False

    def pieces(self, key: str) -> list[Any]:
        """Return the values of a field in the deltas that have it."""
        return [delta[key] for delta in self.deltas if delta.get(key) is not None]

    def arguments(self, value: Any, *, ended: bool) -> Any:
        """Return arguments, marked as cut off if neither the block nor the answer ended."""
        return value if ended or self.ended else CutOff(value)


class Blocks:
    """The content blocks of a streamed message, in the order in which they were opened."""

    def __init__(self) -> None:
        self.all: list[Block] = []
        self._latest: dict[int | None, Block] = {}

    def open(self, index: Any, start: Any) -> Block:
        """Open a block at an index and return it; a second one there, so that no block is lost."""
        block = Block(an_object(start))
        slot = index if isinstance(index, int) else None
        self._latest[slot] = block
        self.all.append(block)
        return block

    def at(self, index: Any) -> Block:
        """Return the latest block at an index; open one if there is none."""
        slot = index if isinstance(index, int) else None
        block = self._latest.get(slot)
        return self.open(index, {}) if block is None else block

    def add(self, index: Any, delta: Any) -> None:
        """Add a delta to the latest block at an index."""
        self.at(index).deltas.append(an_object(delta))


class CallPieces:
    """A call, as far as its fragments have arrived; or a single fragment, which is still to be added."""

    def __init__(self, head: Json) -> None:
        is_function = isinstance(head.get("function"), dict)
        self.head = head
        self.index: Any = head.get("index")
        self.is_custom = not is_function and isinstance(head.get("custom"), dict)
        self.part: Json = head["function"] if is_function else head["custom"] if self.is_custom else _NOTHING
        self.key = "input" if self.is_custom else "arguments"
        call_id = head.get("id")
        name = self.part.get("name")
        self.id = call_id if isinstance(call_id, str) and call_id else None
        self.name = name if isinstance(name, str) and name else None
        self.piece: Any = self.part.get(self.key)
        if self.key not in self.part:
            piece = usual_arguments(None, self.part)
            self.piece = None if type(piece) is UnreadCall else piece
        self.pieces: list[Any] = []
        self.came_whole = False

    def add(self, fragment: "CallPieces") -> None:
        """Add a fragment of this call."""
        self.id = self.id or fragment.id
        if self.takes_name_of(fragment):
            self.name = f"{self.name}{fragment.name}"
        self.name = self.name or fragment.name
        self.part = {**fragment.part, **self.part}
        piece = fragment.piece
        if piece is not None and piece != "":
            text = json_text([piece]) if not self.pieces else ""
            self.came_whole = text.lstrip()[:1] == "{" and isinstance(parse_arguments(text), dict)
            self.pieces.append(piece)

    def takes_name_of(self, fragment: "CallPieces") -> bool:
        """Return whether a fragment brings a further piece of this call's name."""
        is_other = bool(fragment.name and self.name and fragment.name != self.name)
        return is_other and self.id is not None and fragment.id is None and not self.pieces

    @property
    def arguments(self) -> str:
        """Return the text of the arguments so far."""
        try:
            text = "".join(self.pieces)
        except TypeError:  # a piece that is no text
            return json_text(self.pieces)
        return text if text.isascii() else json_text(self.pieces)

    def whole(self, *, ended: bool) -> Json:
        """Return the call as an entry of an unstreamed message's `tool_calls`."""
        kind = "custom" if self.is_custom else "function"
        arguments = self.arguments if self.pieces else self.part.get(self.key)
        function = {**self.part, "name": self.name, self.key: arguments if ended else CutOff(arguments)}
        return {**self.head, "id": self.id or self.head.get("id"), kind: function}


class Fold:
    """The calls of one message, in the order they were opened, while their fragments arrive."""

    def __init__(self) -> None:
        self.calls: list[CallPieces] = []
        self._by_index: dict[int, CallPieces] = {}
        self._by_id: dict[str, CallPieces] = {}

    def add(self, fragment: Json) -> CallPieces:
        """Add a fragment to its call, a new one if the rules above say so, and return that call."""
        piece = CallPieces(fragment)
        call = self._call_to_continue(piece)
        if call is None:
            call = piece
            self.calls.append(call)
        call.add(piece)
        if isinstance(piece.index, int):
            self._by_index[piece.index] = call
        if call.id is not None:
            self._by_id[call.id] = call
        return call

    def _call_to_continue(self, fragment: CallPieces) -> CallPieces | None:
        """Return the call that a fragment continues; None if it starts a new one."""
        call_id = fragment.id
        name = fragment.name
        latest = self.calls[-1] if self.calls else None
        by_index = isinstance(fragment.index, int)
        call = self._by_index.get(fragment.index) if by_index else self._by_id.get(call_id or "", latest)
        if call is None:
            return None if call_id or name else latest
        if call_id and call.id and call_id != call.id:
            goes_on = by_index and not name and not call.came_whole
            return self._by_id.get(call_id, call if goes_on else None)
        if name and call.name and name != call.name:
            return call if by_index and call.takes_name_of(fragment) else None
        return None if name and call.came_whole and (not call_id or call_id != call.id) else call


def fold(fragments: Iterable[Json], *, ended: bool) -> list[Json]:
    """Return the whole calls that the `tool_calls` fragments of one message make."""
    calls = Fold()
    for fragment in fragments:
        calls.add(fragment)
    return [call.whole(ended=ended) for call in calls.calls]


# Arguments that come leaf by leaf, as Gemini's `partialArgs` on Vertex AI. Each entry names a leaf by a JSON
# path (RFC 9535, `$.foo.bar[0].data`) and holds a string, number, boolean or null; a string may come in
# several. Source: Google's API types (FunctionCall.partialArgs, PartialArg).

_STEP = r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""  # .name, [0], ['name']
_PATH = re.compile(rf"\$(?:{_STEP})+", re.DOTALL)


def whole_arguments(partials: Sequence[Json]) -> Any:
    """Return the arguments object that streamed leaves make; the leaves if they make none."""
    leaves: dict[str, Any] = {}
    for partial in partials:
        path = partial.get("jsonPath")
        values = (partial.get(f"{kind}Value") for kind in ("string", "number", "bool"))
        leaf = next((value for value in values if value is not None), None)
        if not isinstance(path, str):
            return list(partials)
        if isinstance(leaf, str) and isinstance(leaves.get(path, ""), str):
            leaves[path] = leaves.get(path, "") + leaf
        elif path in leaves:
            return list(partials)
        else:
            leaves[path] = leaf
    root: Json = {}
    are_put = all(_put_at(root, path, leaf) for path, leaf in leaves.items())
    return root if are_put else list(partials)


def _put_at(root: Json, path: str, value: Any) -> bool:
    """Put a value at the place of a JSON path, which is made; return whether it was free."""
    steps = [
        int(index) if index else name or re.sub(r"\\(.)", r"\1", string[1:-1])
        for name, index, string in re.findall(_STEP, path, re.DOTALL)
    ]
    at: Any = root
    is_free = False
    for step, following in zip(steps if _PATH.fullmatch(path) else (), [*steps[1:], None], strict=False):
        new: Any = value if following is None else [] if isinstance(following, int) else {}
        if is_object(at) and isinstance(step, str):
            is_free = step not in at
            at = at.setdefault(step, new)
        elif is_array(at) and isinstance(step, int) and step <= len(at):
            is_free = step == len(at)
            at += [new] if is_free else []
            at = at[step]
        else:
            return False
    return is_free
