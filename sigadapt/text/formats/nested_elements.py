"""Calls as elements with one element an argument, nested where the argument is: MiniMax M3.

    ]<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>]<]minimax[>[</invoke>

A token stands before each tag, so values may hold anything else. The schema types the leaves, says which
elements are lists (of `item`), and text beside elements goes under `$text`, as the servers do.
"""

import re
from typing import Any

from sigadapt.schemas.json_values import Json, is_object, object_of
from sigadapt.text.contract import Calls, TextCall, TextFormat, Tools, as_written
from sigadapt.text.scan import Scan
from sigadapt.text.written_values import property_of, types_of, value_of

_TOKEN = "]<]minimax[>["  # noqa: S105  (a token of a language)
_T = re.escape(_TOKEN)
_HEAD = re.compile(rf"{_T}<invoke name=\"(?P<name>[^\"\n]{{1,200}})\">")
_TAG = re.compile(rf"{_T}<(?P<end>/?)(?P<key>[^<>/\n][^<>\n]{{0,200}})>")
_LEVELS = 200


class _Element:
    """An element that is open: its key, where its body begins, its children, and its text."""

    def __init__(self, key: str, begin: int) -> None:
        self.key = key
        self.begin = begin
        self.children: list[tuple[_Element, int]] = []
        self.texts: list[str] = []


def read(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read one call."""
    head = _HEAD.match(scan.text, at)
    name = tools.name_of(head["name"]) if head else None
    if head is None or name is None:
        return None
    root = _Element("invoke", head.end())
    elements = [root]
    place = head.end()
    for tag in _TAG.finditer(scan.text, head.end()):
        elements[-1].texts.append(scan.text[place : tag.start()])
        place = tag.end()
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
            return Calls([TextCall(name, _members(root, schema, schema, scan.text))], place)
        elements[-1].children.append((element, tag.start()))
    end = scan.earliest((f"{_TOKEN}</invoke>",), head.end())
    return Calls([as_written(scan, name, at, end)], end)


def _members(element: _Element, schema: Any, root: Json, text: str) -> Json:
    pairs = list[tuple[str, Any]]()
    values: dict[str, list[Any]] = {}
    for child, end in element.children:
        property_schema = property_of(schema, child.key, root)
        values.setdefault(child.key, []).append(_value(child, end, property_schema, root, text))
    for key, several in values.items():
        types = types_of(property_of(schema, key, root), root)
        if len(several) > 1 and (not types or "array" in types):  # elements of one name are a list
            pairs.append((key, several))
        else:
            pairs.extend((key, value) for value in several)
    beside = "".join(element.texts)
    if beside.strip():
        key = "$text"
        while any(key == other for other, _ in pairs):
            key = f"${key}"
        pairs.append((key, beside))
    return object_of(pairs)


def _value(element: _Element, end: int, schema: Any, root: Json, text: str) -> Any:
    types = types_of(schema, root)
    if not element.children or (types and types <= {"string", "null"}):
        return value_of(text[element.begin : end], schema, root)
    if "array" in types and {child.key for child, _ in element.children} == {"item"}:
        outer: Json = schema if is_object(schema) else {}
        schemas = (outer, *outer.get("anyOf", ()), *outer.get("oneOf", ()))
        items = next((each["items"] for each in schemas if is_object(each) and "items" in each), None)
        return [_value(child, behind, items, root, text) for child, behind in element.children]
    return _members(element, schema, root, text)


FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        "minimax-m3",
        rf"{_T}<invoke ",
        read,
        f'{_TOKEN}<tool_call>\n{_TOKEN}<invoke name="get_weather">{_TOKEN}<city>Paris{_TOKEN}</city>'
        f"{_TOKEN}</invoke>\n{_TOKEN}</tool_call>",
        "Nested elements, as objects or lists by the schema.",
        before=(f"{_TOKEN}<tool_call>",),
        after=(f"{_TOKEN}</tool_call>",),
        head=_HEAD.pattern,
    ),
)
