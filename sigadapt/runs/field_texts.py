"""Split a streamed text into the pieces of its output fields, without what marks the fields.

The three forms are those of DSPy's adapters: a line `[[ ## name ## ]]`, a tag `<name>`, and a key of a JSON
object, which begins the text or a line of it. Text that nothing marks belongs to `default`. If the same field
is marked after such a text, it begins anew: what came before was said beside it. Space after a value waits
until more of it follows.

DSPy's `ReActV2` ends by a call of `submit`, a tool that it adds. Its arguments are the agent's outputs, so a
reader of the run gets them as text, and no event of the call. Rules:

 a. The text of a step's first `submit` is emitted as it comes, decoded. What did not stream of it is emitted
    when the call is whole, if it continues what did.
 b. A further `submit` of the same step, also after a reask, is emitted when it is whole and good: what
    continues the text before it, or all of it if it is another text.
 c. A bad `submit` has no event either. Its text may have streamed; that of a later step replaces it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import dspy

from sigadapt.adapters.listeners import PartialCall, overlap
from sigadapt.dspy_boundary.internals import SUBMIT, is_submit
from sigadapt.json_values import is_sequence, without_halves
from sigadapt.signatures.calls import ToolCall

NOWHERE = ""
"""The name of no field: what belongs to it is not emitted."""


class Piece(NamedTuple):
    """A piece of the text of a field; of words beside calls without one."""

    field: str | None
    text: str
    is_anew: bool = False  # whether the text of the field begins here, whatever came of it before


_LINE = re.compile(r"\n[ \t]*\[\[ ## (\w+) ## \]\]")
_PARTIAL_LINE = re.compile(r"\s*\n[ \t]*(?:\[|\[\[(?: (?:##?(?: (?:\w+(?: (?:##?(?: \]?)?)?)?)?)?)?)?)?\Z")
_SPACE = re.compile(r"\s{1,80}\Z")
# A string's characters, as far as they are whole: the first half of a surrogate pair waits for what follows.
_FIRST_HALF = r"\\u[dD][89abAB][\da-fA-F]{2}"
_AFTER_FIRST_HALF = r"\\u[dD][c-fC-F][\da-fA-F]{2}|(?=[^\\]|\\[^u]|\\u[\da-fA-F]{4})"
_CHARACTERS = re.compile(
    r"(?:[^\"\\\ud800-\udbff]+|[\ud800-\udbff](?!\Z)|\\[\"\\/bfnrt]"
    rf"|{_FIRST_HALF}(?:{_AFTER_FIRST_HALF})|\\u(?![dD][89abAB])[\da-fA-F]{{4}})*"
)
_LONGEST_ESCAPE = 12  # of a surrogate pair
# What an object is made of besides.
_KEY_CHARACTERS = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)
_SIGN = re.compile(r'["{}\[\],:]')
_BEGIN = re.compile(r"\{")
# An object behind words begins a line, and its first key tells it from one that is quoted.
_OBJECT_LINE = re.compile(r'\n[ \t]*(?=\{\s*"(\w+)"\s*:)')
_PARTIAL_OBJECT_LINE = re.compile(r'\s*(?:\n[ \t]*(?:\{\s*(?:"(?:\w+(?:"\s*)?)?)?)?)?\Z')
_LONGEST_BEGIN = 160  # characters of a buffer in which a beginning of either is looked for


class MarkedText:
    """A text whose fields are marked by lines, or by tags."""

    def __init__(self, fields: Mapping[str, Any], marker: str, default: str | None) -> None:
        self._names = text_fields(fields)
        self._field = default
        self._by_lines = marker.startswith("[")
        self._tags = {f"<{name}>": name for name in fields}
        self._tag = ""  # the name of the one that is open
        self._buffer = "\n" if self._by_lines else ""
        self._is_fresh = True
        self._default = default
        self._is_marked = False  # whether a mark has named the field
        self._has_plain_text = False

    def take(self, text: str) -> list[Piece]:
        """Take a piece of the text, and return what may be emitted now."""
        self._buffer += text
        pieces: list[Piece] = []
        while (mark := self._mark()) is not None:
            start, end, field = mark
            self._add(self._buffer[:start].rstrip(), pieces)
            self._buffer = self._buffer[end:]
            self._is_fresh = True
            self._is_marked = True
            self._field = field if field in self._names else NOWHERE
        ready = self._ready_length()
        self._add(self._buffer[:ready], pieces)
        self._buffer = self._buffer[ready:]
        return pieces

    def _ready_length(self) -> int:
        """Return how much of the buffer is neither space at its end nor the beginning of a mark."""
        size = len(self._buffer)
        ready = size - max([0, *(overlap(self._buffer, tag) for tag in self._expected_tags())])
        space = _SPACE.search(self._buffer, 0, ready)
        if space is not None:
            ready = space.start()
        if self._by_lines:
            partial_line = _PARTIAL_LINE.search(self._buffer, max(0, size - _LONGEST_BEGIN))
            if partial_line is not None:
                ready = min(ready, partial_line.start())
        return ready

    def _expected_tags(self) -> list[str]:
        if self._by_lines:
            return []
        return [f"</{self._tag}>"] if self._tag else [*self._tags]

    def _mark(self) -> tuple[int, int, str] | None:
        """Return the start and the end of the next mark, and the name in it."""
        if self._by_lines:
            line = _LINE.search(self._buffer)
            return line and (*line.span(), line[1])
        starts = {tag: self._buffer.find(tag) for tag in self._expected_tags()}
        tags = [tag for tag, start in starts.items() if start >= 0]
        if not tags:
            return None
        tag = min(tags, key=lambda tag: (starts[tag], tag))
        self._tag = self._tags.get(tag, "")
        return starts[tag], starts[tag] + len(tag), self._tag

    def _add(self, text: str, pieces: list[Piece]) -> None:
        text = text.lstrip() if self._is_fresh else text
        if not text:
            return
        self._is_fresh = False
        if self._field == NOWHERE:
            return
        is_anew = self._is_marked and self._has_plain_text and self._field == self._default
        self._has_plain_text = not self._is_marked or (self._has_plain_text and not is_anew)
        pieces.append(Piece(self._field, text, is_anew))


class JsonObjectText:
    """A text that is one JSON object, of which the strings under the fields' names are emitted, decoded."""

    def __init__(self, fields: Mapping[str, Any], marker: str, default: str | None) -> None:
        self._fields = frozenset(fields)
        self._names = text_fields(fields)
        self._default = default
        self._buffer = ""
        self._place: int = 0  # up to which it has been read
        self._is_object: bool | None = None
        self._depth = 0
        self._key = NOWHERE
        self._last_sign = ""
        self._field: str | None = None  # of the string that is being read
        self._key_pieces: list[str] | None = None  # of the key that is being read
        self._is_broken = False
        self._has_plain_text = False

    def take(self, text: str) -> list[Piece]:
        """Take a piece of the text, and return what may be emitted now."""
        if self._is_broken:
            return []
        self._buffer += text
        if self._is_object is None:
            self._buffer = self._buffer.lstrip()
            if not self._buffer:
                return []
            self._is_object = self._buffer[0] in "{[`" or self._default == NOWHERE
        pieces: list[Piece] = []
        if not self._is_object:
            self._read_words(pieces)
        if not self._is_object:
            return pieces
        while self._place < len(self._buffer) and self._read(pieces):
            pass
        # Once for each piece: a whole answer may come as one, and is not copied for each sign in it.
        self._buffer = self._buffer[self._place :]
        self._place = 0
        return pieces

    def _read_words(self, pieces: list[Piece]) -> None:
        """Read the text before an object."""
        buffer = self._buffer
        lines = _OBJECT_LINE.finditer(buffer)
        line = next((line for line in lines if line[1] in self._fields), None)
        if line is not None:
            self._is_object = True
            ready = len(buffer[: line.start()].rstrip())
            rest = line.end()
        else:
            partial_line = _PARTIAL_OBJECT_LINE.search(buffer, max(0, len(buffer) - _LONGEST_BEGIN))
            ready = rest = len(buffer) if partial_line is None else partial_line.start()
        if ready:
            pieces.append(Piece(self._default, buffer[:ready]))
            self._has_plain_text = True
        self._buffer = buffer[rest:]

    def _read(self, pieces: list[Piece]) -> bool:
        """Read the next part of the object, and return whether it was there."""
        if self._field is not None:
            return self._read_string(self._field, pieces)
        if self._key_pieces is not None:
            return self._read_key(self._key_pieces)
        signs = _SIGN if self._depth else _BEGIN
        sign = signs.search(self._buffer, self._place)
        if sign is None:
            self._place = len(self._buffer)
            return False
        self._place = sign.end()
        if sign[0] == '"' and self._depth == 1 and self._last_sign in "{,":
            self._key_pieces = []
        elif sign[0] == '"':
            is_text_field = self._depth == 1 and self._key in self._names
            self._field = self._key if is_text_field else NOWHERE
        else:
            self._depth += (sign[0] in "{[") - (sign[0] in "}]")
            self._last_sign = sign[0]
        return True

    def _read_string(self, field: str, pieces: list[Piece]) -> bool:
        """Read more of a value that is a string, and return whether it ended."""
        characters: Any = _CHARACTERS.match(self._buffer, self._place)
        if characters[0] and field != NOWHERE:
            is_anew = self._has_plain_text and field == self._default
            self._has_plain_text = self._has_plain_text and not is_anew
            pieces.append(Piece(field, _text_of_json(characters[0]), is_anew))
        self._place = characters.end()
        if self._buffer.startswith('"', self._place):
            self._place += 1
            self._field = None
            return True
        # An escape that JSON does not have: no string goes on after it.
        if len(self._buffer) - self._place >= _LONGEST_ESCAPE:
            self._is_broken = True
            self._place = len(self._buffer)
        return False

    def _read_key(self, key: list[str]) -> bool:
        """Read more of a key, and return whether it ended."""
        # A key may never end: what was read of it is not looked at again.
        characters: Any = _KEY_CHARACTERS.match(self._buffer, self._place)
        key.append(characters[0])
        self._place = characters.end()
        if not self._buffer.startswith('"', self._place):
            return False
        self._key = "".join(key)
        self._last_sign = ""
        self._key_pieces = None
        self._place += 1
        return True


def _text_of_json(characters: str) -> str:
    """Return what the characters of a JSON string mean, with U+FFFD for half of a surrogate pair."""
    if "\\" in characters:
        characters = json.loads(f'"{characters}"', strict=False)
    return characters if characters.isascii() else without_halves(characters)


class NoText:
    """A text that a second model reads: nothing of it is emitted."""

    def take(self, text: str) -> list[Piece]:
        """Take a piece of the text."""
        return []


def text_fields(fields: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the fields that hold text. A value of another type is emitted when it is whole."""
    kinds = (str, str | None, dspy.Reasoning, dspy.Reasoning | None)
    return frozenset(name for name, field in fields.items() if field.annotation in kinds)


def field_texts(
    fields: Mapping[str, Any], marker: str, default: str | None
) -> MarkedText | JsonObjectText | NoText:
    """Return the reader of a text in which `marker` (an adapter's `field_marker`) marks the output fields."""
    if not marker:
        return NoText()
    kind = JsonObjectText if marker.startswith('"') else MarkedText
    return kind(fields, marker, default)


class SubmitTexts:
    """The texts that the calls of `submit` in one step hold."""

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self.other_calls: set[int] = set()  # the indexes of calls of other tools
        self._names = text_fields(outputs)
        self._arguments = JsonObjectText(outputs, '"', NOWHERE)
        self._streamed_index: int | None = None  # of the call whose text is emitted as it comes
        self._latest_id: str | None = None  # of the call whose text was emitted last
        self._ids: set[str | None] = set()  # of all whose text was emitted
        self._pieces: dict[str, list[str]] = {}  # of the text of each field
        self._unnamed: dict[int, list[PartialCall]] = {}

    def take(self, part: PartialCall) -> tuple[list[PartialCall], list[Piece]]:
        """Take a part of any call; return parts of other calls, and pieces of text, to emit now."""
        if part.index == self._streamed_index:
            return [], self._read(part.arguments)
        # A name may come in several parts or after the arguments: until it is known, nothing is emitted.
        parts = [*self._unnamed.pop(part.index, ()), part]
        arguments = "".join(each.arguments for each in parts)
        may_become_submit = not arguments and SUBMIT.startswith(part.name or "")
        if part.name is None or may_become_submit:
            self._unnamed[part.index] = parts
            return [], []
        if part.name != SUBMIT:
            self.other_calls.add(part.index)
            return parts, []
        if self._streamed_index is not None:
            return [], []
        self._streamed_index = part.index
        self._latest_id = part.id
        self._ids.add(part.id)
        return [], self._read(arguments)

    def _read(self, arguments: str) -> list[Piece]:
        pieces = self._arguments.take(arguments)
        for piece in pieces:
            self._pieces.setdefault(piece.field or "", []).append(piece.text)
        return pieces

    def rest_of(self, call: ToolCall) -> list[Piece]:
        """Return what was not emitted of a whole call's text."""
        is_new = call.id not in self._ids
        if not is_new and call.id != self._latest_id:
            return []
        self._ids.add(call.id)
        self._latest_id = call.id
        pieces: list[Piece] = []
        for name, value in (call.args or {}).items():
            if name not in self._names or not isinstance(value, str):
                continue
            text = "".join(self._pieces.get(name, ()))
            continues = value.startswith(text)
            if not continues and not is_new:
                continue  # a hook changed the call that streamed, and the reader cannot unread its text
            rest = value[len(text) :] if continues else value
            if rest:
                pieces.append(Piece(name, rest, is_anew=not continues))
                self._pieces[name] = [value]
        return pieces


def submit_texts(agent: Any, predictor: dspy.Module, inputs: Mapping[str, Any]) -> SubmitTexts | None:
    """Return the reader of a predictor's calls of `submit`; None if it is not given the agent's own."""
    tools = [item for value in inputs.values() if is_sequence(value) for item in value]
    is_agents = predictor is agent.react or any(is_submit(getattr(tool, "func", None)) for tool in tools)
    return SubmitTexts(agent.signature.output_fields) if is_agents else None
