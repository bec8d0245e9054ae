"""Calls as Python writes them: `[get_weather(city="Paris"), now()]`, of Llama 4, LFM2, Olmo 3, Gemma 3.

Nothing is evaluated (nothing is executed). A call is a declared name and keyword arguments whose values are
literals (`written_values.literal_at`). Where a list or a marker says that it is a call, one with positional
arguments, variables, nested calls or operators is a bad call with what was written: no value is guessed.
Names may hold dots and dashes. Without markers it counts only as a list at the beginning of a line, or as the
whole answer.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from sigadapt.json_values import Json, RepeatedKeys, is_array, is_object, object_of
from sigadapt.schemas.arguments import CutOff
from sigadapt.text.contract import (
    MOST_CALLS,
    Body,
    CallSpan,
    CallsToWrite,
    Scan,
    TextCall,
    ToolTable,
    with_closer,
)
from sigadapt.text.quotations import announces_example
from sigadapt.text.written_values import NoLiteral

_NAME = r"\w(?:[\w.-]|\\_){0,127}"  # models escape underscores for Markdown
_HEAD = re.compile(rf"(?P<name>{_NAME})\s*\(")
_KEY = re.compile(r"\s*(?P<key>(?:[^\W\d]|\\_)(?:[\w-]|\\_){0,127})\s*=(?!=)")
_CUT_NAME = re.compile(r"['\"]?([\w.-]{0,128})\Z")
_NEXT = re.compile(r"\s*(?P<mark>[,)])")
_CALL_END = re.compile(rf"\)(?=['\"]?\s*(?:\]|[,;]\s*['\"]?{_NAME}\s*\(|(?:;\s*)?\Z))")
_AFTER_LIST = re.compile(r"(?:\(\))?[.;]?(?=[ \t\r]*(?:#[^\n]*)?(?:\n|\Z))")
_PRINT = "print("
_FENCE = re.compile(r"[ \t]*```tool_(?:code|calls?)[ \t\r]*\n")


def call_at(
    scan: Scan, start: int, tools: ToolTable, *, is_sure: bool = False
) -> tuple[TextCall, int] | None:
    """Read one call; None if it is none, or of no declared tool."""
    # `is_sure`: a call whose values are no literals is a bad call, and not text.
    head = _HEAD.match(scan.text, start)
    if head is None:
        return None
    name = tools.name_of(head["name"])
    if name not in tools.schemas:  # Llama's built-in tools, and Gemini's module of tools
        name = tools.name_of(head["name"].removesuffix(".call").removeprefix("default_api."))
    if name is None:
        return None
    try:
        pairs, end = _keywords_at(scan, scan.space(head.end()))
    except NoLiteral as fault:
        return _faulty_call(scan, head, name, fault.position, is_sure=is_sure)
    if "\\_" in head[0] or any("\\_" in key for key, _ in pairs):
        pairs = [(key.replace("\\_", "_"), _unescape(value)) for key, value in pairs]
    return TextCall(name, object_of(pairs)), end


def _keywords_at(scan: Scan, start: int) -> tuple[list[tuple[str, Any]], int]:
    """Read keyword arguments up to `)`; NoLiteral says where reading had to stop."""
    pairs = list[tuple[str, Any]]()
    cursor = start
    while not scan.text.startswith(")", cursor):
        key = _KEY.match(scan.text, cursor)
        if key is None and not scan.text.startswith("**{", cursor):  # keys that are no names
            raise NoLiteral("no keyword", cursor)
        value_start = key.end() if key else cursor + len("**")
        try:
            value, end = scan.literal_at(value_start)
        except ValueError:
            raise NoLiteral("no literal", value_start if key else cursor) from None
        mark = _NEXT.match(scan.text, end)
        if mark is None:
            raise NoLiteral("no comma", end)
        if key is not None:
            pairs.append((key["key"], value))
        elif is_object(value):
            pairs.extend(value.items())
        else:
            raise NoLiteral("no object", cursor)
        cursor = scan.space(mark.end()) if mark["mark"] == "," else mark.start("mark")
    return pairs, cursor + 1


def _unescape(value: Any) -> Any:
    """Return a value without Markdown's backslashes: who escapes the names of a call escapes all of it."""
    if isinstance(value, str):
        return value.replace("\\_", "_")
    if is_array(value):
        return [_unescape(item) for item in value]
    if not is_object(value):
        return value
    pairs = value.pairs if isinstance(value, RepeatedKeys) else value.items()
    return object_of([(_unescape(key), _unescape(item)) for key, item in pairs])


def _faulty_call(
    scan: Scan, head: re.Match[str], name: str, position: int, *, is_sure: bool
) -> tuple[TextCall, int] | None:
    """Return a call that the text ends in, or whose value is a variable or an expression, as written."""
    closing = scan.search(_CALL_END, head.end()) if is_sure else None
    if closing is not None:
        return TextCall(name, scan.text[head.end() : closing.start()]), closing.end()
    position = scan.space(position)
    quote = scan.text[position : position + 1]
    is_open_string = quote in ("'", '"') and quote and scan.find(quote, position + 1) < 0
    if not (is_sure or is_open_string or _CUT_NAME.match(scan.text, position)):
        return None
    return TextCall(name, CutOff(scan.text[head.start() :].rstrip())), len(scan.text)


def calls_at(
    scan: Scan, start: int, tools: ToolTable, *, is_sure: bool = False, may_be_strings: bool = False
) -> tuple[list[TextCall], int, bool] | None:
    """Read a list of calls, or calls with lines or commas between; say at last whether it was a list."""
    is_list = scan.text.startswith("[", start)
    cursor = scan.space(start + 1) if is_list else start
    calls = list[TextCall]()
    end = cursor
    while len(calls) <= MOST_CALLS:
        call = call_at(scan, cursor, tools, is_sure=is_sure and is_list)
        if call is None and may_be_strings and scan.text.startswith(("'", '"'), cursor):
            call = _string_at(scan, cursor, tools)
        if call is None:
            break
        calls.append(call[0])
        end = call[1]
        cursor = scan.space(end)
        if scan.text.startswith((",", ";"), cursor):
            if scan.text[cursor] == ";":
                end = cursor + 1
            cursor = scan.space(cursor + 1)
    if not calls:
        return None
    part = _CUT_NAME.match(scan.text, cursor)
    if part and part[1] and any(name.startswith(part[1]) for name in tools.schemas):
        return [*calls, TextCall(None, CutOff(part[0]))], len(scan.text), is_list
    if not is_list or isinstance(calls[-1].arguments, CutOff):
        return calls, end, is_list
    if scan.text.startswith("]", cursor):
        return calls, cursor + 1, True
    return (calls, len(scan.text), True) if part and not part[1] else None


def _string_at(scan: Scan, start: int, tools: ToolTable) -> tuple[TextCall, int] | None:
    """Read a call that is written as a string, whose quotes may be the call's own, or missing at its end."""
    try:
        value, end = scan.literal_at(start)
    except ValueError:
        value = ""
        end = start
    string_scan = Scan(str(value))
    call = call_at(string_scan, 0, tools)
    if call is not None and call[1] == len(string_scan.text) and not isinstance(call[0].arguments, CutOff):
        return call[0], end
    call = call_at(scan, start + 1, tools)
    if call is not None:
        return call[0], call[1] + scan.text.startswith(scan.text[start], call[1])
    call = call_at(string_scan, 0, tools, is_sure=True)  # one bare word costs no call beside it
    if call is None or isinstance(call[0].arguments, CutOff):
        return None
    return call[0], end


def keywords(marker: str) -> Body:
    """Return the body of calls as Python writes them behind a marker."""
    opening_mark = re.compile(marker)

    def read(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
        opener = opening_mark.match(scan.text, start)
        calls = opener and calls_at(scan, scan.space(opener.end()), tools, is_sure=True)
        return CallSpan(calls[0], calls[1]) if calls else None

    return Body(rf"(?:{marker})\s*(?:\[\s*)?{_HEAD.pattern}", read)


def read_bare(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read calls without a marker: a list that begins a line, or the whole answer."""
    begins_answer = start <= scan.content_start
    is_sure = begins_answer or bool(scan.call_format)
    span = calls_at(scan, scan.space(start), tools, is_sure=is_sure, may_be_strings=begins_answer)
    if span is None:
        return None
    calls, end, is_list = span
    ends_answer = scan.ends_at(end)
    if not is_list and not (begins_answer and ends_answer):
        return None
    if not is_list and isinstance(calls[-1].arguments, CutOff):
        return None
    if begins_answer:
        if tail := _AFTER_LIST.match(scan.text, end):
            return CallSpan(calls, tail.end())
        if ends_answer:
            return CallSpan(calls, end)
    is_alone = ends_answer or scan.text[end] in "\r\n<"
    return CallSpan(calls, end) if is_alone and not announces_example(scan.text, start) else None


def read_fence(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read the calls in a fence that says `tool_code`, printed or not."""
    fence = _FENCE.match(scan.text, start)
    if fence is None:
        return None
    calls_start = scan.space(fence.end())
    is_printed = scan.text.startswith(_PRINT, calls_start)
    if is_printed:
        calls_start += len(_PRINT)
    calls = calls_at(scan, calls_start, tools)
    if calls is None:
        return None
    end = scan.space(calls[1])
    if is_printed and scan.text.startswith(")", end):
        end += 1
    return with_closer(scan, CallSpan(calls[0], end), "```")


def write_keywords(calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
    """Write calls as a Python list. Strings are in JSON's quotes, which Python reads in the same way."""
    texts: list[str] = []
    for name, args in calls:
        are_names = all(key.isidentifier() and key.isascii() for key in args)
        if are_names:
            keywords = ", ".join(f"{key}={_literal(value)}" for key, value in args.items())
        else:
            keywords = f"**{_literal(args)}"
        texts.append(f"{name}({keywords})")
    return f"[{', '.join(texts)}]" if texts else ""


def _literal(value: Any) -> str:
    if is_object(value):
        pairs = (f"{_literal(key)}: {_literal(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if is_array(value):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


BARE_KEYWORDS = Body(rf"(?:\[\s*)?['\"]?{_HEAD.pattern}", read_bare)
FENCED_KEYWORDS = Body("", read_fence)
