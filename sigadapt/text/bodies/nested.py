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

from sigadapt.json_values import Json, is_object, object_of
from sigadapt.schemas.arguments import CutOff
from sigadapt.text.contract import MOST_CALLS, Body, CallSpan, Scan, TextCall, ToolTable, as_written
from sigadapt.text.written_values import literal_at, property_of, types_of, value_of

_MOST_LEVELS = 60
_PART = 3  # characters of a marker that are no text
_BRACES_HEAD = re.compile(r"\s*(?:call)?:\s*(?P<name>[\w.:-]{1,128})\s*(?=\{)")
_KEY = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*"|[^\s:{}\[\],<>"\']{1,200})\s*:', re.DOTALL)
_QUOTED = re.compile(r"""(["'])(?:(?!\1)[^\\]|\\.)*\1""", re.DOTALL)
_WORD_END = re.compile(r"[,\]}\n]")
_MORE = re.compile(r",\s*(?:[\w.-]{1,100}|<\|\"\|>[^<]{1,100}<\|\"\|>)\s*:")


class _ValueReader:
    """Reads the values of one call up to a limit. Raises ValueError for what is no value of the format."""

    def __init__(self, scan: Scan, end: int, string: str, root: Json, marks: tuple[str, str]) -> None:
        self.scan = scan
        self.text = scan.text
        self.end = end
        self.string = string
        self.root = root
        self.call_mark, self.call_end = marks

    def members_at(self, start: int, schema: Any, level: int = 0) -> tuple[Any, int]:
        """Read the object or list whose bracket is at a position."""
        is_list = self.text.startswith("[", start)
        closer = "]" if is_list else "}"
        pairs = list[tuple[str, Any]]()
        cursor = self._space(start + 1)
        while not self.text.startswith(closer, cursor):
            key = ""
            value_schema: Any = schema.get("items") if is_object(schema) else None
            if not is_list:
                key, cursor = self._key(cursor)
                value_schema = property_of(schema, key, self.root)
            value, cursor = self.value_at(cursor, value_schema, level)
            pairs.append((key, value))
            cursor = self._space(cursor)
            if self.text.startswith(",", cursor):
                cursor = self._space(cursor + 1)
            elif cursor >= self.end and not is_list:
                return object_of(pairs), cursor
            elif not self.text.startswith(closer, cursor):
                raise ValueError("expected a comma")
        members: Any = [value for _, value in pairs] if is_list else object_of(pairs)
        return members, cursor + 1

    def _key(self, start: int) -> tuple[str, int]:
        if self.text.startswith(self.string, start):
            text, end = self._string(start + len(self.string))
            colon = self._space(end)
            if not self.text.startswith(":", colon):
                raise ValueError("expected a colon")
            return text, colon + 1
        key = _KEY.match(self.text, start, self.end)
        if key is None:
            raise ValueError("expected a key")
        text = key["key"]
        if text.startswith('"'):
            text = json.loads(text, strict=False)
        return text, key.end()

    def value_at(self, start: int, schema: Any, level: int) -> tuple[Any, int]:
        """Read a value."""
        if level > _MOST_LEVELS:
            raise ValueError("nested too deep")
        value_start = self._space(start)
        if self.text.startswith(self.string, value_start):
            return self._string(value_start + len(self.string))
        if self.text.startswith(("{", "["), value_start):
            return self.members_at(value_start, schema, level + 1)
        if not self.text.startswith(('"', "'"), value_start):
            return self._word(start, schema)
        string = _QUOTED.match(self.text, value_start, self.end)
        if string and self.text.startswith(self.string, string.end()):  # a marker that only closes
            return literal_at(string[0], 0)[0], string.end() + len(self.string)
        value, end = literal_at(self.text, value_start)
        if end > self.end:
            raise ValueError("the call ends in a string")
        return value, end

    def _string(self, start: int) -> tuple[str, int]:
        end = self.scan.find(self.string, start)
        following = self.scan.earliest((self.call_mark,), self.end)
        if 0 <= end < following:  # before the next call: what looks like this one's end is a part of it
            self.end = max(self.end, self.scan.earliest((self.call_end,), end))
            return self.text[start:end], end + len(self.string)
        end = self.end  # never closed: it ends where the call does
        while end > start and self.text[end - 1] in "}] \n":
            end -= 1
            if self.text[end] == "}":
                break
        return self.text[start:end], end

    def _word(self, start: int, schema: Any) -> tuple[Any, int]:
        """Read a value without quotes: a number, a constant, or text that lost its markers."""
        rest = self.text[start : self.end].strip()
        if rest.startswith((self.string[:_PART], ",", "}")) or self.string.startswith(rest):
            raise ValueError("half a marker, or no value")
        stop = _WORD_END.search(self.text, start, self.end)
        end = stop.start() if stop else self.end
        if types_of(schema, self.root) != {"string"}:
            raw = self.text[start:end].strip()
            value = value_of(raw, schema, self.root, is_text=False)
            ends_here = stop is not None and stop[0] != "\n"
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


def braces(call_mark: str, call_end: str, string: str) -> Body:
    """Return the body of calls between two marks, whose strings stand between a mark of their own."""

    def read(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
        calls = list[TextCall]()
        cursor = start + len(call_mark)
        while len(calls) <= MOST_CALLS and (head := _BRACES_HEAD.match(scan.text, cursor)):
            name = tools.name_of(head["name"])
            if name is None:
                break
            end = scan.earliest((call_end,), head.end())
            schema = tools.schema_of(name)
            reader = _ValueReader(scan, end, string, schema, (call_mark, call_end))
            try:
                args, args_end = reader.members_at(head.end(), schema)
                end = reader.end
                is_whole = end < len(scan.text) or scan.text.startswith("}", args_end - 1)
            except ValueError:
                end = args_end = reader.end
                scan.charge((end - cursor) // 4)
                is_whole, args = False, None
            if not is_whole:
                raw = scan.text[head.end() : end]
                call = TextCall(name, raw if end < len(scan.text) else CutOff(raw))
                return CallSpan([*calls, call], end)
            calls.append(TextCall(name, args))
            cursor = args_end
        if not calls:
            return None
        while scan.text.startswith("}", cursor):  # stray braces
            cursor += 1
        return CallSpan(calls, cursor)

    return Body(re.escape(call_mark) + _BRACES_HEAD.pattern, read)


TOKEN = "]<]minimax[>["  # noqa: S105  (a token of a language)
_T = re.escape(TOKEN)
_HEAD = re.compile(rf"{_T}<invoke name=\"(?P<name>[^\"\n]{{1,200}})\">")
_TAG = re.compile(rf"{_T}<(?P<end>/?)(?P<key>[^<>/\n][^<>\n]{{0,200}})>")
_LEVELS = 200


class _Element:
    """An element: its key, where its body begins, the body once it is closed, its children and its text."""

    def __init__(self, key: str, start: int) -> None:
        self.key = key
        self.start = start
        self.body = ""
        self.children: list[_Element] = []
        self.texts: list[str] = []


def read_elements(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read one call."""
    head = _HEAD.match(scan.text, start)
    name = tools.name_of(head["name"]) if head else None
    if head is None or name is None:
        return None
    elements = [_Element("invoke", head.end())]
    text_start = head.end()
    for tag in _TAG.finditer(scan.text, head.end()):
        element = elements[-1]
        element.texts.append(scan.text[text_start : tag.start()])
        text_start = tag.end()
        if not tag["end"]:
            if tag["key"].startswith("invoke ") or len(elements) > _LEVELS:
                break
            elements.append(_Element(tag["key"], tag.end()))
            continue
        if tag["key"] != element.key:
            break
        elements.pop()
        if not elements:
            schema = tools.schema_of(name)
            return CallSpan([TextCall(name, _members(element, schema, schema))], text_start)
        element.body = scan.text[element.start : tag.start()]
        elements[-1].children.append(element)
    end = scan.earliest((f"{TOKEN}</invoke>",), head.end())
    return CallSpan([as_written(scan, name, start, end)], end)


def _members(element: _Element, schema: Any, root: Json) -> Json:
    pairs = list[tuple[str, Any]]()
    values: dict[str, list[Any]] = {}
    for child in element.children:
        value = _value(child, property_of(schema, child.key, root), root)
        values.setdefault(child.key, []).append(value)
    for key, same_key_values in values.items():
        types = types_of(property_of(schema, key, root), root)
        if len(same_key_values) > 1 and (not types or "array" in types):  # elements of one name are a list
            pairs.append((key, same_key_values))
        else:
            pairs.extend((key, value) for value in same_key_values)
    loose_text = "".join(element.texts)
    if loose_text.strip():
        key = "$text"
        while key in values:
            key = f"${key}"
        pairs.append((key, loose_text))
    return object_of(pairs)


def _value(element: _Element, schema: Any, root: Json) -> Any:
    types = types_of(schema, root)
    if not element.children or (types and types <= {"string", "null"}):
        return value_of(element.body, schema, root)
    if "array" not in types or {child.key for child in element.children} != {"item"}:
        return _members(element, schema, root)
    outer: Json = schema if is_object(schema) else {}
    branches: tuple[Any, ...] = (outer, *outer.get("anyOf", ()), *outer.get("oneOf", ()))
    items = next((each["items"] for each in branches if is_object(each) and "items" in each), None)
    return [_value(child, items, root) for child in element.children]


ELEMENTS = Body(_HEAD.pattern, read_elements)
