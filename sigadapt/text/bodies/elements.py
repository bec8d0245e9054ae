"""Calls as elements with one element an argument, nested where the argument is: MiniMax M3.

    ]<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>]<]minimax[>[</invoke>

A token stands before each tag, so values may hold anything else. The schema types the leaves, says which
elements are lists (of `item`), and text beside elements goes under `$text`, as the servers do.
"""

import re
from typing import Any

from sigadapt.schemas.json_values import Json, is_object, object_of
from sigadapt.text.contract import CallSpan, Rule, TextCall, ToolTable, as_written
from sigadapt.text.scan import Scan
from sigadapt.text.written_values import property_of, types_of, value_of

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


def read(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
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


ELEMENTS = Rule(_HEAD.pattern, read)
