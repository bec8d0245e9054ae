"""Arguments that nest as objects do, typed by the declared schema: Gemma's braces, MiniMax M3's elements.

    <|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>

Braces (Gemma 4, FunctionGemma): keys are bare, strings stand between markers (`<|"|>`, `<escape>`), and
numbers, constants, objects and lists are written as in JSON. Models lose markers: strings in JSON's or in
single quotes and bare words are read too, and a string whose marker was never closed ends where the call
does.

Elements: one element an argument. A token stands before each tag, so values may hold anything else. The
schema says which elements are lists (of `item`), and text beside elements goes under `$text`, as the servers
do.
"""

import json
import re
from typing import Any

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, is_object, object_of
from sigadapt.text.contract import MOST_CALLS, CallSpan, Rule, Scan, TextCall, ToolTable, as_written
from sigadapt.text.written_values import NO_TEXT, literal_at, property_of, types_of, value_of

_MOST_LEVELS = 60
_PART = 3  # characters of a marker that are no text
_BRACES_HEAD = re.compile(r"\s*(?:call)?:\s*(?P<name>[\w.:-]{1,128})\s*(?=\{)")
_KEY = re.compile(r"\s*(?P<key>[^\s:{}\[\],<>\"']{1,200})\s*:")
_QUOTED_KEY = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*")\s*:', re.DOTALL)
_QUOTED = re.compile(r"""(["'])(?:(?!\1)[^\\]|\\.)*\1""", re.DOTALL)
_BARE = re.compile(r"[^,\]}\n]*")
_MORE = re.compile(r",\s*(?:[\w.-]{1,100}|<\|\"\|>[^<]{1,100}<\|\"\|>)\s*:")


class _InvalidValue(ValueError):
    """The text between a call's markers is no value of the format."""


class _ValueReader:
    """Reads the values of one call up to a limit."""

    def __init__(self, scan: Scan, end: int, string: str) -> None:
        self.scan = scan
        self.text = scan.text
        self.end = end
        self.string = string

    def members_at(self, start: int, schema: Any, root: Json, level: int) -> tuple[Any, int]:
        """Read the object or list whose bracket is at a position."""
        is_list = self.text.startswith("[", start)
        closer = "]" if is_list else "}"
        item_schema: Any = schema.get("items") if is_object(schema) else None
        pairs = list[tuple[str, Any]]()
        cursor = self._space(start + 1)
        while not self.text.startswith(closer, cursor):
            if is_list:
                key = ""
                value_schema = item_schema
            else:
                key, cursor = self._key(cursor)
                value_schema = property_of(schema, key, root)
            value, cursor = self.value_at(cursor, value_schema, root, level)
            pairs.append((key, value))
            cursor = self._space(cursor)
            if self.text.startswith(",", cursor):
                cursor = self._space(cursor + 1)
            elif cursor >= self.end and not is_list:
                return object_of(pairs), cursor
            elif not self.text.startswith(closer, cursor):
                raise _InvalidValue
        if is_list:
            return [value for _, value in pairs], cursor + 1
        return object_of(pairs), cursor + 1

    def _key(self, start: int) -> tuple[str, int]:
        if self.text.startswith(self.string, start):
            key_start = start + len(self.string)
            end = self.scan.find(self.string, key_start)
            colon = self._space(end + len(self.string))
            if end < 0 or end > self.end or not self.text.startswith(":", colon):
                raise _InvalidValue
            return self.text[key_start:end], colon + 1
        key = _QUOTED_KEY.match(self.text, start) or _KEY.match(self.text, start, self.end)
        if key is None:
            raise _InvalidValue
        text = key["key"]
        if text.startswith('"'):
            text = json.loads(text, strict=False)
        return text, key.end()

    def value_at(self, start: int, schema: Any, root: Json, level: int) -> tuple[Any, int]:
        """Read a value."""
        if level > _MOST_LEVELS:
            raise _InvalidValue
        value_start = self._space(start)
        if self.text.startswith(self.string, value_start):
            return self._string(value_start + len(self.string))
        char = self.text[value_start : value_start + 1]
        if char in ("{", "["):
            return self.members_at(value_start, schema, root, level + 1)
        if char not in ('"', "'") or not char:
            return self._word(start, schema, root)
        string = _QUOTED.match(self.text, value_start, self.end)
        if string and self.text.startswith(self.string, string.end()):  # a marker that only closes
            return literal_at(string[0], 0)[0], string.end() + len(self.string)
        value, end = literal_at(self.text, value_start)
        if end > self.end:
            raise _InvalidValue
        return value, end

    def _string(self, start: int) -> tuple[str, int]:
        end = self.scan.find(self.string, start)
        if 0 <= end < self.end:
            return self.text[start:end], end + len(self.string)
        end = self.end  # never closed: it ends where the call does
        while end > start and self.text[end - 1] in "}] \n":
            end -= 1
            if self.text[end] == "}":
                break
        return self.text[start:end], end

    def _word(self, start: int, schema: Any, root: Json) -> tuple[Any, int]:
        """Read a value without quotes: a number, a constant, or text that lost its markers."""
        rest = self.text[start : self.end].strip()
        if rest.startswith((self.string[:_PART], ",", "}")) or self.string.startswith(rest):
            raise _InvalidValue  # half a marker, or no value
        word = _BARE.match(self.text, start, self.end)
        end = word.end() if word else start
        if schema is None or types_of(schema, root) - {"string"}:
            raw = self.text[start:end].strip()
            value_schema = NO_TEXT if schema is None else schema
            value = value_of(raw, value_schema, root)
            ends_here = end < self.end and self.text[end] != "\n"
            if not isinstance(value, str) or (raw and ends_here):
                return value, end
        if following := _MORE.search(self.text, start, self.end):
            end = following.start()
        else:
            brace = self.text.rfind("}", start, self.end)
            end = brace if brace >= 0 else self.end
        return self.text[start:end], end

    def _space(self, start: int) -> int:
        return min(self.scan.space(start), self.end)


class Braces:
    """Calls between two marks, whose strings stand between a mark of their own."""

    def __init__(self, call: str, call_end: str, string: str) -> None:
        self.head = re.escape(call) + _BRACES_HEAD.pattern
        self._call = call
        self._call_end = call_end
        self._string = string

    def read(self, scan: Scan, start: int, tools: ToolTable, /) -> CallSpan | None:
        """Read the calls after the marker."""
        calls = list[TextCall]()
        cursor = start + len(self._call)
        while len(calls) <= MOST_CALLS and (head := _BRACES_HEAD.match(scan.text, cursor)):
            name = tools.name_of(head["name"])
            if name is None:
                break
            closer = scan.find(self._call_end, head.end())
            is_closed = closer >= 0
            end = closer if is_closed else len(scan.text)
            raw = scan.text[head.end() : end]
            schema = tools.schema_of(name)
            values = _ValueReader(scan, end, self._string)
            try:
                args, args_end = values.members_at(head.end(), schema, schema, 0)
            except (ValueError, RecursionError):
                scan.charge((end - cursor) // 4)
                arguments = raw if is_closed else CutOff(raw)
                return CallSpan([*calls, TextCall(name, arguments)], end)
            if not is_closed and not scan.text.startswith("}", args_end - 1):
                return CallSpan([*calls, TextCall(name, CutOff(raw))], end)
            calls.append(TextCall(name, args))
            cursor = args_end
        if not calls:
            return None
        while scan.text.startswith("}", cursor):  # stray braces
            cursor += 1
        return CallSpan(calls, cursor)


TOKEN = "]<]minimax[>["  # noqa: S105  (a token of a language)
_T = re.escape(TOKEN)
_HEAD = re.compile(rf"{_T}<invoke name=\"(?P<name>[^\"\n]{{1,200}})\">")
_TAG = re.compile(rf"{_T}<(?P<end>/?)(?P<key>[^<>/\n][^<>\n]{{0,200}})>")
_LEVELS = 200


class _Element:
    """An element that is open: its key, where its body begins, its children, and its text."""

    def __init__(self, key: str, start: int) -> None:
        self.key = key
        self.start = start
        self.children: list[tuple[_Element, int]] = []
        self.texts: list[str] = []


def read_elements(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read one call."""
    head = _HEAD.match(scan.text, start)
    name = tools.name_of(head["name"]) if head else None
    if head is None or name is None:
        return None
    root = _Element("invoke", head.end())
    elements = [root]
    text_start = head.end()
    for tag in _TAG.finditer(scan.text, head.end()):
        elements[-1].texts.append(scan.text[text_start : tag.start()])
        text_start = tag.end()
        if not tag["end"]:
            if tag["key"].startswith("invoke ") or len(elements) > _LEVELS:
                break
            elements.append(_Element(tag["key"], tag.end()))
            continue
        if tag["key"] != elements[-1].key:
            break
        element = elements.pop()
        if element is root:
            schema = tools.schema_of(name)
            return CallSpan([TextCall(name, _members(root, schema, schema, scan.text))], text_start)
        elements[-1].children.append((element, tag.start()))
    end = scan.earliest((f"{TOKEN}</invoke>",), head.end())
    return CallSpan([as_written(scan, name, start, end)], end)


def _members(element: _Element, schema: Any, root: Json, text: str) -> Json:
    pairs = list[tuple[str, Any]]()
    values: dict[str, list[Any]] = {}
    for child, end in element.children:
        property_schema = property_of(schema, child.key, root)
        values.setdefault(child.key, []).append(_value(child, end, property_schema, root, text))
    for key, same_key_values in values.items():
        types = types_of(property_of(schema, key, root), root)
        if len(same_key_values) > 1 and (not types or "array" in types):  # elements of one name are a list
            pairs.append((key, same_key_values))
        else:
            pairs.extend((key, value) for value in same_key_values)
    loose_text = "".join(element.texts)
    if loose_text.strip():
        key = "$text"
        while any(key == present for present, _ in pairs):
            key = f"${key}"
        pairs.append((key, loose_text))
    return object_of(pairs)


def _value(element: _Element, end: int, schema: Any, root: Json, text: str) -> Any:
    types = types_of(schema, root)
    if not element.children or (types and types <= {"string", "null"}):
        return value_of(text[element.start : end], schema, root)
    if "array" in types and {child.key for child, _ in element.children} == {"item"}:
        items = _item_schema(schema)
        return [_value(child, child_end, items, root, text) for child, child_end in element.children]
    return _members(element, schema, root, text)


def _item_schema(schema: Any) -> Any:
    """Return the schema of a list's items; None if it has none."""
    outer: Json = schema if is_object(schema) else {}
    for subschema in (outer, *outer.get("anyOf", ()), *outer.get("oneOf", ())):
        if is_object(subschema) and "items" in subschema:
            return subschema["items"]
    return None


ELEMENTS = Rule(_HEAD.pattern, read_elements)
