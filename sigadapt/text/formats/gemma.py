"""Calls as `call:NAME{key:value,...}`: Gemma 4 and FunctionGemma.

Keys are bare, strings stand between markers (`<|"|>`, `<escape>`), numbers, true, false, null, objects and
lists are written as such. Models lose markers: strings in JSON's or in single quotes and bare words are read
too, typed by the declared schema, and a string whose marker was never closed ends where the call does.
"""

import json
import re
from functools import partial
from typing import Any, NamedTuple

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, is_object, object_of
from sigadapt.text.contract import MOST_CALLS, Calls, TextCall, TextFormat, Tools
from sigadapt.text.scan import Scan
from sigadapt.text.written_values import NO_TEXT, literal_at, property_of, types_of, value_of

_LEVELS = 60
_HEAD = re.compile(r"\s*(?:call)?:\s*(?P<name>[\w.:-]{1,128})\s*(?=\{)")
_KEY = re.compile(r"\s*(?P<key>[^\s:{}\[\],<>\"']{1,200})\s*:")
_QUOTED_KEY = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*")\s*:', re.DOTALL)
_QUOTED = re.compile(r"""(["'])(?:(?!\1)[^\\]|\\.)*\1""", re.DOTALL)
_BARE = re.compile(r"[^,\]}\n]*")
_MORE = re.compile(r",\s*(?:[\w.-]{1,100}|<\|\"\|>[^<]{1,100}<\|\"\|>)\s*:")


class Markers(NamedTuple):
    """The markers of one family member."""

    call: str
    call_end: str
    string: str


class _Broken(ValueError):
    pass


class _Reader:
    """Reads the values of one call up to a limit."""

    def __init__(self, scan: Scan, end: int, markers: Markers) -> None:
        self.scan = scan
        self.text = scan.text
        self.end = end
        self.string = markers.string

    def members_at(self, at: int, schema: Any, root: Json, level: int) -> tuple[Any, int]:
        """Read an object or a list whose bracket stands at a place."""
        is_list = self.text.startswith("[", at)
        close = "]" if is_list else "}"
        items: Any = schema.get("items") if is_object(schema) else None
        pairs = list[tuple[str, Any]]()
        place = self._space(at + 1)
        while not self.text.startswith(close, place):
            key, place = ("", place) if is_list else self._key(place)
            property_schema = items if is_list else property_of(schema, key, root)
            value, place = self.value_at(place, property_schema, root, level)
            pairs.append((key, value))
            place = self._space(place)
            if self.text.startswith(",", place):
                place = self._space(place + 1)
            elif place >= self.end and not is_list:
                return object_of(pairs), place
            elif not self.text.startswith(close, place):
                raise _Broken
        return [value for _, value in pairs] if is_list else object_of(pairs), place + 1

    def _key(self, place: int) -> tuple[str, int]:
        if self.text.startswith(self.string, place):
            end = self.scan.find(self.string, place + len(self.string))
            behind = self._space(end + len(self.string))
            if end < 0 or end > self.end or not self.text.startswith(":", behind):
                raise _Broken
            return self.text[place + len(self.string) : end], behind + 1
        key = _QUOTED_KEY.match(self.text, place) or _KEY.match(self.text, place, self.end)
        if key is None:
            raise _Broken
        text = key["key"]
        return json.loads(text, strict=False) if text.startswith('"') else text, key.end()

    def value_at(self, at: int, schema: Any, root: Json, level: int) -> tuple[Any, int]:
        """Read a value."""
        if level > _LEVELS:
            raise _Broken
        place = self._space(at)
        if self.text.startswith(self.string, place):
            return self._string(place + len(self.string))
        char = self.text[place : place + 1]
        if char in ("{", "["):
            return self.members_at(place, schema, root, level + 1)
        if char not in ('"', "'") or not char:
            return self._word(at, schema, root)
        string = _QUOTED.match(self.text, place, self.end)
        if string and self.text.startswith(self.string, string.end()):  # a marker that only closes
            return literal_at(string[0], 0)[0], string.end() + len(self.string)
        value, end = literal_at(self.text, place)
        if end > self.end:
            raise _Broken
        return value, end

    def _string(self, at: int) -> tuple[str, int]:
        end = self.scan.find(self.string, at)
        if 0 <= end < self.end:
            return self.text[at:end], end + len(self.string)
        end = self.end  # never closed: it ends where the call does
        while end > at and self.text[end - 1] in "}] \n":
            end -= 1
            if self.text[end] == "}":
                break
        return self.text[at:end], end

    def _word(self, at: int, schema: Any, root: Json) -> tuple[Any, int]:
        """Read a value without quotes: a number, a constant, or text that lost its markers."""
        word = _BARE.match(self.text, at, self.end)
        end = word.end() if word else at
        if schema is None or types_of(schema, root) - {"string"}:
            raw = self.text[at:end].strip()
            value = value_of(raw, schema if schema is not None else NO_TEXT, root)
            if not isinstance(value, str) or (raw and end < self.end and self.text[end] != "\n"):
                return value, end
        following = _MORE.search(self.text, at, self.end)
        brace = self.text.rfind("}", at, self.end)
        end = following.start() if following else brace if brace >= 0 else self.end
        return self.text[at:end], end

    def _space(self, at: int) -> int:
        return min(self.scan.space(at), self.end)


def read(scan: Scan, at: int, tools: Tools, *, markers: Markers) -> Calls | None:
    """Read the calls behind a marker."""
    calls = list[TextCall]()
    place = at + len(markers.call)
    while len(calls) <= MOST_CALLS and (head := _HEAD.match(scan.text, place)):
        name = tools.name_of(head["name"])
        if name is None:
            break
        close = scan.find(markers.call_end, head.end())
        end = close if close >= 0 else len(scan.text)
        schema = tools.schema_of(name)
        try:
            args, behind = _Reader(scan, end, markers).members_at(head.end(), schema, schema, 0)
        except (ValueError, RecursionError):
            scan.charge((end - place) // 4)
            raw = scan.text[head.end() : end]
            return Calls([*calls, TextCall(name, raw if close >= 0 else CutOff(raw))], end)
        if close < 0 and not scan.text.startswith("}", behind - 1):
            return Calls([*calls, TextCall(name, CutOff(scan.text[head.end() :]))], end)
        calls.append(TextCall(name, args))
        place = behind
    if not calls:
        return None
    while scan.text.startswith("}", place):  # stray braces
        place += 1
    return Calls(calls, place)


def _format(name: str, markers: Markers, **row: Any) -> TextFormat:
    example = (
        f"{markers.call}call:get_weather{{city:{markers.string}Paris{markers.string}}}{markers.call_end}"
    )
    reads = "Lost markers of strings, JSON's quotes, several calls in one pair."
    opener = re.escape(markers.call)
    reader = partial(read, markers=markers)
    return TextFormat(name, opener, reader, example, reads=reads, head=opener + _HEAD.pattern, **row)


FORMATS: tuple[TextFormat, ...] = (
    _format(
        "gemma4",
        Markers("<|tool_call>", "<tool_call|>", '<|"|>'),
        after=("<tool_call|>", "<|tool_response>"),
    ),
    _format(
        "functiongemma",
        Markers("<start_function_call>", "<end_function_call>", "<escape>"),
        after=("<end_function_call>", "<start_function_response>"),
    ),
)
