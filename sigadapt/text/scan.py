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
_WORK_PER_CHARACTER = 16
_LEAST_WORK = 1_000_000
_DEEP_NESTING_COST = 50_000
_FIRST_PIECE = 2_000
_MARGIN = 16
COMMENT = r"<!--[^<>]{0,200}-->"
_COMMENTS = re.compile(rf"(?:\s*{COMMENT})+")


class WorkLimitError(Exception):
    """The budget of work is used up."""


class Members:
    """The members of a JSON object that was written at a position of a text."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end: int | None = None
        """The position after the object; None if it is broken."""
        self.fields: dict[str, tuple[Any, int, int]] = {}
        """By key, the decoded value and where its text begins and ends; of a repeated key, the last."""
        self.broken_member: tuple[str, int] | None = None
        """The key whose value is broken, and where that value begins."""
        self.has_repeated_key = False


class Scan:
    """A text, the formats that the caller named, and the one that the model was asked to write in."""

    def __init__(self, text: str, names: frozenset[str] = frozenset(), call_format: str = "") -> None:
        self.text = text
        self.formats = names
        self.call_format = call_format
        self.content_start = 0
        """Where what the model says to the user begins, after its thinking."""
        self._work_left = _WORK_PER_CHARACTER * len(text) + _LEAST_WORK
        self._positions: dict[str, tuple[int, int]] = {}
        self._matches: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}

    def charge(self, characters: int) -> None:
        """Count characters that were looked at. Raises Spent when they are too many."""
        self._work_left -= characters
        if self._work_left < 0:
            raise WorkLimitError("reading the text takes more work than its length allows")

    def find(self, needle: str, start: int) -> int:
        """Return the first position of a needle from `start` on; -1 if there is none."""
        searched_from, position = self._positions.get(needle, (len(self.text) + 1, -1))
        if searched_from <= start and (position < 0 or position >= start):
            return position
        position = self.text.find(needle, start)
        searched_to = position if position >= 0 else len(self.text)
        self.charge((searched_to - start) // 64)
        self._positions[needle] = (start, position)
        return position

    def search(self, pattern: re.Pattern[str], start: int) -> re.Match[str] | None:
        """Return the first match from `start` on. As with `find`, a text is gone through once a pattern."""
        searched_from, match = self._matches.get(pattern, (len(self.text) + 1, None))
        if searched_from <= start and (match is None or match.start() >= start):
            return match
        match = pattern.search(self.text, start)
        searched_to = match.start() if match else len(self.text)
        self.charge((searched_to - start) // 64)
        self._matches[pattern] = (start, match)
        return match

    def space(self, start: int) -> int:
        """Return where the white space from a position on ends."""
        return space(self.text, start)

    def gap(self, start: int) -> int:
        """Return where white space and comments end, which models write between tags."""
        comments = _COMMENTS.match(self.text, start)
        if comments is None:
            return self.space(start)
        return self.space(comments.end())

    def value_at(self, start: int) -> tuple[Any, int]:
        """Decode the JSON value at a position; ValueError if there is none."""
        # It is decoded from a piece of the text that grows as long as the value may go on: an error of the
        # decoder counts the lines before it, which would take as long as the text for each error.
        size = _FIRST_PIECE
        while True:
            piece = self.text[start : start + size]
            is_last_piece = start + size >= len(self.text)
            # What the decoder says near the end of a piece may change with the next piece.
            trusted_length = len(piece) + 1 if is_last_piece else len(piece) - _MARGIN
            self.charge(len(piece) // 32)
            try:
                value, length = _DECODE(piece)
            except RecursionError:
                self.charge(_DEEP_NESTING_COST)
                raise ValueError("nested too deep") from None
            except json.JSONDecodeError as error:
                is_open_string = not is_last_piece and error.msg.startswith("Unterminated string")
                if error.pos < trusted_length and not is_open_string:
                    self.charge(error.pos // 4 + 1)
                    raise
            else:
                if length < trusted_length:
                    return value, start + length
            size *= 16

    def literal_at(self, start: int, *, is_strict: bool = False) -> tuple[Any, int]:
        """Read the Python literal at a position; ValueError if there is none."""
        try:
            value, end = literal_at(self.text, start, is_strict=is_strict)
        except NoLiteral as error:
            self.charge((error.position - start) // 8 + 1)
            raise
        self.charge((end - start) // 8 + 1)
        return value, end

    def members_at(self, start: int) -> Members:
        """Read the JSON object whose brace is at a position, member by member."""
        members = Members(start)
        cursor = self.space(start + 1)
        if self.text.startswith("}", cursor):
            members.end = cursor + 1
        while members.end is None:
            try:
                key, cursor = self.value_at(cursor)
            except ValueError:
                break
            cursor = self.space(cursor)
            if not isinstance(key, str) or not self.text.startswith(":", cursor):
                break
            value_start = self.space(cursor + 1)
            try:
                value, value_end = self.value_at(value_start)
            except ValueError:
                members.broken_member = key, value_start
                break
            members.has_repeated_key = members.has_repeated_key or key in members.fields
            members.fields[key] = value, value_start, value_end
            cursor = self.space(value_end)
            if self.text.startswith("}", cursor):
                members.end = cursor + 1
            elif not self.text.startswith(",", cursor):
                break
            cursor = self.space(cursor + 1)
        return members

    def ends_at(self, end: int) -> bool:
        """Return whether nothing but white space follows a position."""
        return self.space(end) >= len(self.text)

    def earliest(self, needles: tuple[str, ...], start: int) -> int:
        """Return the first position of any needle; the text's end if there is none."""
        positions = [self.find(needle, start) for needle in needles]
        return min((position for position in positions if position >= 0), default=len(self.text))
