"""Hold back streamed text that may be a call, until it is known.

Where calls are read from an answer's text, a listener must not see their markup. Text passes as it comes, up
to the first place where markup may begin. What stands there is read at the end of a line or of a tag, as a
whole answer is, and passes if it holds no call. What is held when the answer ends passes as far as the
finished reading has it.
"""

from collections.abc import Collection, Mapping
from typing import Any

from sigadapt.schemas.json_values import Json
from sigadapt.text import FORMATS
from sigadapt.text.openers import grammar_of
from sigadapt.text.reader import TextReading, read_text
from sigadapt.text.unsettled import begins_as_text, is_half_json, next_opener, unsettled

_ENDS = frozenset("\n>]}▷")
"""Characters that end a line, a tag or a value."""
_SEEN = 8
"""How much of what has passed is kept: whether markup begins depends on what stands before it."""
_GROWTH = 8
_SHORT = 2_000
"""Beyond this size, a text is read again only when it has grown by an eighth, so that the work is linear."""


class TextGate:
    """The text of one answer while it streams.

    Args:
        schemas: the schemas of arguments by the names of the declared tools.
        fields: the names of the output fields.
        how: how the finished answer is read (`Calling.reads`).
    """

    def __init__(self, schemas: Mapping[str, Json], fields: Collection[str], **how: Any) -> None:
        self._grammar = grammar_of(FORMATS)
        self._schemas, self._fields, self._how = schemas, fields, how
        self._pieces = list[str]()
        self._passed = list[str]()
        self._near, self._settled = "", 0
        """The end of the text, and the place in it up to which it has passed."""
        self._length = self._next_reading = 0
        self._is_begun = self._lacks = False
        """Whether anything but space has passed; whether what passed lacks something, such as a thinking."""

    def take(self, piece: str) -> str:
        """Take a piece of the answer's text, and return the text that may pass now."""
        self._pieces.append(piece)
        self._length += len(piece)
        self._near += piece
        passing = self._up_to_markup()
        is_held = self._settled < len(self._near)
        if is_held and self._length >= self._next_reading and not _ENDS.isdisjoint(piece):
            self._next_reading = self._length + self._length // _GROWTH * (self._length > _SHORT)
            passing += self._as_read()
        return passing

    def rest(self, said: str | None) -> str:
        """Return what has not passed of the answer's text, as it is finally read."""
        final, passed = said or "", "".join(self._passed)
        for bare in (str, str.lstrip, str.strip):  # the reading takes space away that has passed
            if bare(final).startswith(bare(passed)):
                return bare(final)[len(bare(passed)) :]
        return f"\n{final}"

    def _up_to_markup(self) -> str:
        place = unsettled(self._grammar, self._near, self._settled, fields=self._fields)
        text = self._near[self._settled : place]
        if not self._is_begun and text.strip() and not begins_as_text(text):
            return ""
        return self._pass(text, place)

    def _as_read(self) -> str:
        """Read the text before the next call, and pass it if nothing in it is still open."""
        place = next_opener(self._grammar, self._near, self._settled)
        if place == self._settled or is_half_json(self._near[self._settled : place]):
            return ""
        text = "".join(self._pieces)[: self._length - len(self._near) + place]
        found = self._read(text)
        if found.calls:
            return ""
        said = text
        if found.text != text:
            # With a full stop behind it, a reading shows whether it is still said, and the space before it.
            stopped = self._read(f"{text}.").text or ""
            if not stopped.endswith("."):
                return ""
            said, self._lacks = stopped[:-1], True
        passed = "".join(self._passed)
        if not said.startswith(passed):
            said, passed = said.lstrip(), passed.lstrip()
        if not said.startswith(passed):
            return ""
        news = said[len(passed) :]
        if self._is_begun or news.lstrip()[:1] in ("[", "{") or not text.endswith(news):
            return self._pass(news, place)
        self._settle(place - len(news))
        return self._up_to_markup()

    def _pass(self, text: str, place: int) -> str:
        """Pass a text, after which the answer is settled up to a place."""
        if not self._is_begun:
            text = text.lstrip() if self._lacks else text
            self._is_begun = bool(text.strip())
        self._settle(place)
        self._passed.append(text)
        return text

    def _settle(self, place: int) -> None:
        cut = max(place - _SEEN, 0)
        self._near, self._settled = self._near[cut:], place - cut

    def _read(self, text: str) -> TextReading:
        return read_text(text, self._schemas, FORMATS, **self._how)
