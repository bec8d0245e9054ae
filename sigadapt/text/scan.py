"""A text that is read once from left to right, with a budget of work (bounded), and the JSON in it.

Formats search for closing tags and decode JSON that may not be there. `find` remembers what it found, so that
a million openers cost one search; `charge` counts the characters that were read for nothing, and ends the
reading with `Spent` when they are many times the text.
"""

import json
import re
from typing import Any

from sigadapt.text.written_values import NoLiteral, literal_at, space

# Models write line breaks into strings.
_DECODE = json.JSONDecoder(strict=False).raw_decode
_TIMES = 16
_LEAST = 1_000_000
_DEEP = 50_000
_PIECE = 2_000
_MARGIN = 16
COMMENT = r"<!--[^<>]{0,200}-->"
_COMMENTS = re.compile(rf"(?:\s*{COMMENT})+")


class Spent(Exception):
    """The budget of work is used up."""


class Members:
    """The members of a JSON object that was written at a place of a text."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.end: int | None = None
        """The place behind the object; None if it is broken."""
        self.fields: dict[str, tuple[Any, int, int]] = {}
        """By key, the decoded value and where its text begins and ends; of a repeated key, the last."""
        self.broken: tuple[str, int] | None = None
        """The key whose value is broken, and where that value begins."""
        self.repeats = False


class Scan:
    """A text, the formats that the caller named, and the one that the model was asked to write in."""

    def __init__(self, text: str, names: frozenset[str] = frozenset(), call_format: str = "") -> None:
        self.text = text
        self.formats = names
        self.call_format = call_format
        self.content_start = 0
        """Where what the model says to the user begins, after its thinking."""
        self._budget = _TIMES * len(text) + _LEAST
        self._places: dict[str, tuple[int, int]] = {}
        self._matches: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}

    def charge(self, characters: int) -> None:
        """Count characters that were looked at. Raises Spent when they are too many."""
        self._budget -= characters
        if self._budget < 0:
            raise Spent("reading the text takes more work than its length allows")

    def find(self, needle: str, at: int) -> int:
        """Return the first place of a needle from `at` on; -1 if there is none."""
        since, place = self._places.get(needle, (len(self.text) + 1, -1))
        if since <= at and (place < 0 or place >= at):
            return place
        place = self.text.find(needle, at)
        self.charge(((place if place >= 0 else len(self.text)) - at) // 64)
        self._places[needle] = (at, place)
        return place

    def search(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """Return the first match of a pattern from `at` on. As with `find`, a text is gone through once."""
        since, match = self._matches.get(pattern, (len(self.text) + 1, None))
        if since <= at and (match is None or match.start() >= at):
            return match
        match = pattern.search(self.text, at)
        self.charge(((match.start() if match else len(self.text)) - at) // 64)
        self._matches[pattern] = (at, match)
        return match

    def space(self, at: int) -> int:
        """Return the place behind white space."""
        return space(self.text, at)

    def gap(self, at: int) -> int:
        """Return the place behind white space and comments, which models write between tags."""
        comments = _COMMENTS.match(self.text, at)
        return self.space(comments.end() if comments else at)

    def value_at(self, at: int) -> tuple[Any, int]:
        """Decode the JSON value at a place; ValueError if there is none."""
        # It is decoded from a piece of the text that grows as long as the value may go on: an error of the
        # decoder counts the lines before it, which would take as long as the text for each error.
        size = _PIECE
        while True:
            piece = self.text[at : at + size]
            rest = len(piece) - _MARGIN if at + size < len(self.text) else len(piece) + 1
            self.charge(len(piece) // 32)
            try:
                value, end = _DECODE(piece)
            except RecursionError:
                self.charge(_DEEP)
                raise ValueError("nested too deep") from None
            except json.JSONDecodeError as error:
                is_open_string = rest < len(piece) and error.msg.startswith("Unterminated string")
                if error.pos < rest and not is_open_string:
                    self.charge(error.pos // 4 + 1)
                    raise
            else:
                if end < rest:
                    return value, at + end
            size *= 16

    def literal_at(self, at: int, *, is_strict: bool = False) -> tuple[Any, int]:
        """Read the Python literal at a place; ValueError if there is none."""
        try:
            value, end = literal_at(self.text, at, is_strict=is_strict)
        except NoLiteral as error:
            self.charge((error.place - at) // 8 + 1)
            raise
        self.charge((end - at) // 8 + 1)
        return value, end

    def members_at(self, at: int) -> Members:
        """Read the JSON object whose brace stands at a place, member by member."""
        members = Members(at)
        place = self.space(at + 1)
        if self.text.startswith("}", place):
            members.end = place + 1
        while members.end is None:
            try:
                key, place = self.value_at(place)
            except ValueError:
                break
            place = self.space(place)
            if not isinstance(key, str) or not self.text.startswith(":", place):
                break
            begin = self.space(place + 1)
            try:
                value, end = self.value_at(begin)
            except ValueError:
                members.broken = key, begin
                break
            members.repeats = members.repeats or key in members.fields
            members.fields[key] = value, begin, end
            place = self.space(end)
            if self.text.startswith("}", place):
                members.end = place + 1
            elif not self.text.startswith(",", place):
                break
            place = self.space(place + 1)
        return members

    def ends_at(self, at: int) -> bool:
        """Return whether nothing but white space follows a place."""
        return self.space(at) >= len(self.text)

    def earliest(self, needles: tuple[str, ...], at: int) -> int:
        """Return the first place of any needle; the text's end if there is none."""
        places = [place for needle in needles if (place := self.find(needle, at)) >= 0]
        return min(places, default=len(self.text))
