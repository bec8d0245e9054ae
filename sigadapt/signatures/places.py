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

    before: str
    marked: str
    after: str


def excerpt_of(text: str, code: str, path: str | None = None) -> Excerpt | None:
    """Return the part of a call's arguments where a flaw is."""
    if not text or len(text) > _LONGEST:
        return None
    span = _span(text, code, path)
    if span is None:
        return None
    before = text[: span[0]]
    place = text[slice(*span)]
    after = text[span[1] :]
    if len(place) > _MOST_MARKED:
        place = f"{place[:_MOST_MARKED]}…"
        after = ""
    before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
    return Excerpt(printable(before), printable(place), printable(after))


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
            at = _past_space(text, 0)
            for key in map(key_of, path.split("/")[1:]):
                places = [place for name, _, place in _members(text, at) if name == key]
                if not places:  # a required member that is not there: its object is the place
                    break
                at = places[-1]  # of a key that comes twice, the last one
            return at, _DECODER.raw_decode(text, at)[1]
        json.loads(text, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        if not constants:
            return error.pos, min(end, error.pos + _UNREAD)
    except (ValueError, IndexError, RecursionError):
        pass
    at = text.find(constants[0]) if constants else 0
    return (at, at + len(constants[0])) if constants else None


def _second_key(text: str, at: int = 0) -> tuple[int, int] | None:
    """Return the place of the first key that its object has already."""
    names: set[str] = set()
    for name, key, value in _members(text, _past_space(text, at)):
        if name in names:
            return key, _DECODER.raw_decode(text, key)[1]
        names.add(name)
        if inner := _second_key(text, value):
            return inner
    return None


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key of each member of the object or array at a place, and where its key and value begin."""
    is_object = text[at] == "{"
    number = 0
    if not is_object and text[at] != "[":
        return
    at = _past_space(text, at + 1)
    while text[at] not in "}]":
        name = str(number)
        key = at
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _past_space(text, _past_space(text, at) + 1)
        yield name, key, at
        number += 1
        at = _past_space(text, _DECODER.raw_decode(text, at)[1])
        at = _past_space(text, at + 1) if text[at] == "," else at


def _past_space(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        at += 1
    return at
