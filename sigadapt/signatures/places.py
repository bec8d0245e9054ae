"""Find the place of a flaw in the text of a call's arguments, for people to look at."""

import json
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import jiter

from sigadapt.schemas.subschemas import key_of

_LONGEST = 100_000  # characters of arguments that are searched
_AROUND = 28  # characters shown on each side of a place
_MOST_MARKED = 36
_UNREAD = 12  # characters marked where JSON could not be read on
_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()
_SECOND_KEY = re.compile(r"duplicate key .* at line (\d+) column (\d+)$", re.DOTALL)
_KEY_BEFORE = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*.?\Z', re.DOTALL)


class Excerpt(NamedTuple):
    """A part of a text with one place in it. Characters that do not print are written as escapes.

    Args:
        before: what precedes the place.
        marked: the place; empty if it is a point, such as the end of a text that was cut off.
        after: what follows it.
    """

    before: str
    marked: str
    after: str


def excerpt_of(text: str, code: str, path: str | None = None) -> Excerpt | None:
    """Return the part of a call's arguments where a flaw is."""
    if not text or len(text) > _LONGEST:
        return None
    span = _span(text, code, path)
    return None if span is None else _cut(text, *span)


def printable(text: str) -> str:
    """Return a text with escapes for what does not print, such as control characters and bidi overrides."""
    return "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in text)


def _span(text: str, code: str, path: str | None) -> tuple[int, int] | None:
    if code in _WHOLE:
        return _WHOLE[code](text)
    try:
        if path is not None:
            return _value_at(text, [key_of(key) for key in path.split("/")[1:]])
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        return error.pos, min(len(text), error.pos + _UNREAD)
    except _Constant as constant:
        at = text.find(str(constant))
        return at, at + len(str(constant))
    except (ValueError, IndexError, RecursionError):
        pass
    return None


class _Constant(Exception):
    """NaN or an infinity, which JSON does not have."""


def _refuse_constant(name: str) -> NoReturn:
    raise _Constant(name)


def _second_key(text: str) -> tuple[int, int] | None:
    """Return the place of a key that its object has already; jiter says behind it where that is."""
    try:
        jiter.from_json(text.encode(), catch_duplicate_keys=True)
    except ValueError as error:
        said = _SECOND_KEY.search(str(error))
        if said:
            lines = text.encode().split(b"\n")
            row, column = int(said[1]) - 1, int(said[2])
            read = b"\n".join([*lines[:row], lines[row][:column]]).decode(errors="ignore")
            key = _KEY_BEFORE.search(read)
            return (key.start(), key.start() + key[0].rindex('"', 0, key[0].rindex(":")) + 1) if key else None
    return None


_WHOLE: dict[str, Callable[[str], tuple[int, int] | None]] = {
    "unknown_tool": lambda _: None,
    "missing_name": lambda _: None,
    "truncated": lambda text: (len(text), len(text)),
    "not_an_object": lambda text: (0, len(text)),
    "duplicate_key": _second_key,
}
"""Where the flaw is, for codes whose place does not follow from a path."""


def _value_at(text: str, keys: list[str]) -> tuple[int, int]:
    """Return start and end of the value at a pointer; of a key that comes twice, the last one."""
    at = _past_space(text, 0)
    for key in keys:
        found = _member(text, at, key)
        if found is None:  # a required member that is not there: its object is the place
            break
        at = found
    return at, _end_of(text, at)


def _member(text: str, at: int, key: str) -> int | None:
    found: int | None = None
    opened, number = text[at], 0
    if opened not in "{[":
        return None
    at = _past_space(text, at + 1)
    while text[at] not in "}]":
        name = str(number)
        if opened == "{":
            name, at = _DECODER.raw_decode(text, at)
            at = _past_space(text, _past_space(text, at) + 1)
        if name == key:
            found = at
        number += 1
        at = _past_space(text, _end_of(text, at))
        at = _past_space(text, at + 1) if text[at] == "," else at
    return found


def _end_of(text: str, at: int) -> int:
    return _DECODER.raw_decode(text, at)[1]


def _past_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _cut(text: str, start: int, end: int) -> Excerpt:
    before, marked, after = text[:start], text[start:end], text[end:]
    if len(marked) > _MOST_MARKED:
        marked, after = f"{marked[:_MOST_MARKED]}…", ""
    before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
    return Excerpt(printable(before), printable(marked), printable(after))
