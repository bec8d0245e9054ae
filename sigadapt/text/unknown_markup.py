"""The trip-wire: markup of no known format that names a declared tool as what is called.

    <|do|>get_weather<|with|>{"city": "Paris"}<|done|>
    <acme:run tool="get_weather"><acme:in key="city">Paris</acme:in></acme:run>
    <get_weather><city>Paris</city></get_weather>

Nobody knows how it is read, so it is a bad call (`unread_call`) with its text, and no answer. A tool's name
in a tag alone says nothing: arguments must follow, as an object or in a tag that has a parameter's name.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from sigadapt.json_values import Json, is_object
from sigadapt.text.contract import Scan, ToolTable

ANY_NAME = r"[\w.-]{1,128}"
_TAG = r"<[^<>\n]{1,60}>"
_OBJECT = r"\{\s*[\"}]"
_TAG_NAME = re.compile(r"<([\w:.-]+)")
_INNER_TAG = re.compile(r"<(?!/)[^<>\n]{1,100}")
_WORD = re.compile(r"[\w.-]+")
_TAILS = re.compile(rf"(?:\s*(?:```|{_TAG}))*")


def pattern_of(name: str) -> str:
    """Return a pattern of what may be such a call, of a tool with a name of this pattern."""
    tag = rf"<(?P<tag>{name})>\s*(?={_OBJECT}|<[\w.-]{{1,100}}>)"
    attribute = rf"\b(?:tool|name|function|call)=[\"'](?P<attribute>{name})[\"'][^<>]{{0,100}}>"
    element = rf"<[\w:.-]{{1,60}}\s[^<>]{{0,100}}?{attribute}\s*(?=<|{_OBJECT})"
    word = rf"(?:(?:function|tool|call)\b:?\s*)?(?P<word>{name})\s*(?:{_TAG}\s*)?(?:```\w*\s*)?"
    return rf"{tag}|{element}|{_TAG}\s*{word}(?={_OBJECT})"


_CALL = re.compile(pattern_of(ANY_NAME))


class UnknownCall(NamedTuple):
    """What names a tool, and where it stands."""

    name: str
    start: int
    end: int


def unknown_calls(scan: Scan, tools: ToolTable) -> Iterator[UnknownCall]:
    """Yield each place of a text at which markup calls a declared tool, in whatever form."""
    if "<" not in scan.text:
        return
    for match in _CALL.finditer(scan.text):
        name = tools.name_of(match[match.lastgroup or "word"])
        if name is not None and name in tools.schemas and _has_arguments(scan, match, tools.schemas[name]):
            yield UnknownCall(name, match.start(), _end_of(scan, match))


def _has_arguments(scan: Scan, match: re.Match[str], schema: Json) -> bool:
    """Return whether an object follows, or a tag that has the name of a parameter."""
    if scan.text.startswith("{", match.end()):
        return True
    properties: Any = schema.get("properties")
    tag = _INNER_TAG.match(scan.text, match.end())
    if tag is None or not is_object(properties) or not properties:
        return scan.text.startswith("</", match.end())
    return any(word in properties for word in _WORD.findall(tag[0]))


def _end_of(scan: Scan, match: re.Match[str]) -> int:
    """Return where such a call ends: behind its object and the tags after it, or behind its closing tag."""
    if scan.text.startswith("{", match.end()):
        try:
            _, end = scan.value_at(match.end())
        except ValueError:
            return len(scan.text)
        tails = _TAILS.match(scan.text, end)
        return tails.end() if tails else end
    tag = _TAG_NAME.match(scan.text, match.start())
    closing = scan.find(f"</{tag[1]}>", match.end()) if tag else -1
    return scan.find(">", closing) + 1 if closing >= 0 else len(scan.text)
