"""Find the place of a flaw in the text of a call's arguments, for people to look at."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from sigadapt.errors import printable
from sigadapt.schemas.subschemas import key_of

_LONGEST = 100_000  # characters of arguments that are searched
_AROUND = 28  # characters shown on each side of a place
_MOST_MARKED = 36
_UNREAD = 12  # characters marked where JSON could not be read on
_DECODER = json.JSONDecoder()


class Excerpt(NamedTuple):
    """A part of a text around one place, which is empty if it is a point. What does not print is escaped."""

    before: str  # the text up to the fault
    marked: str  # the fault itself
    after: str  # the text that follows


def excerpt_of(text: str, code: str, path: str | None = None) -> Excerpt | None:
    """Return the part of a call's arguments where a flaw is."""
    if not text or len(text) > _LONGEST:
        return None
    span = _span(text, code, path)
    if span is None:
        return None
    start, end = span
    head = text[:start]
    flaw = text[start:end]
    tail = text[end:]
    if len(flaw) > _MOST_MARKED:
        flaw = f"{flaw[:_MOST_MARKED]}…"
        tail = ""
    if len(head) > _AROUND:
        head = f"…{head[-_AROUND:]}"
    if len(tail) > _AROUND:
        tail = f"{tail[:_AROUND]}…"
    return Excerpt(printable(head), printable(flaw), printable(tail))


def _span(text: str, code: str, path: str | None) -> tuple[int, int] | None:
    end = len(text)
    fixed = {"unknown_tool": None, "missing_name": None, "truncated": (end, end), "not_an_object": (0, end)}
    if code in fixed:
        return fixed[code]
    constants: list[str] = []  # NaN and infinities, which JSON does not have
    try:
        if code == "duplicate_key":
            return _second_key(text)
        if path is not None:
            return _value_at(text, path)
        json.loads(text, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        if not constants:
            return error.pos, min(end, error.pos + _UNREAD)
    except (ValueError, IndexError, RecursionError):
        pass
    if not constants:
        return None
    start = text.find(constants[0])
    return start, start + len(constants[0])


def _value_at(text: str, path: str) -> tuple[int, int]:
    """Return where the value of a JSON Pointer is, or the object that lacks a member of it."""
    start = _past_space(text, 0)
    for key in map(key_of, path.split("/")[1:]):
        starts = [value_start for name, _, value_start in _members(text, start) if name == key]
        if not starts:
            break
        start = starts[-1]  # of a key that comes twice, the last one
    return start, _DECODER.raw_decode(text, start)[1]


def _second_key(text: str, start: int = 0) -> tuple[int, int] | None:
    """Return where the first key is that its object has already."""
    names: set[str] = set()
    for name, key_start, value_start in _members(text, _past_space(text, start)):
        if name in names:
            return key_start, _DECODER.raw_decode(text, key_start)[1]
        names.add(name)
        if span := _second_key(text, value_start):
            return span
    return None


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key of each member of an object or array, and where its key and value begin."""
    is_object = text[start] == "{"
    number = 0
    if not is_object and text[start] != "[":
        return
    cursor = _past_space(text, start + 1)
    while text[cursor] not in "}]":
        name = str(number)
        key_start = cursor
        if is_object:
            name, cursor = _DECODER.raw_decode(text, cursor)
            cursor = _past_space(text, _past_space(text, cursor) + 1)
        yield name, key_start, cursor
        number += 1
        cursor = _past_space(text, _DECODER.raw_decode(text, cursor)[1])
        if text[cursor] == ",":
            cursor = _past_space(text, cursor + 1)


def _past_space(text: str, start: int) -> int:
    while text[start] in " \t\n\r":
        start += 1
    return start
