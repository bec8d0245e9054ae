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
from functools import partial
from typing import Any

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, RepeatedKeys, is_array, is_object, object_of
from sigadapt.text.contract import MOST_CALLS, Calls, CallsToWrite, TextCall, TextFormat, Tools, closed
from sigadapt.text.formats.bare_json import BARE_OPENER, announces_example
from sigadapt.text.openers import FENCE_OPENER
from sigadapt.text.scan import Scan

_NAME = r"\w(?:[\w.-]|\\_){0,127}"  # models escape underscores for Markdown
_HEAD = re.compile(rf"(?P<name>{_NAME})\s*\(")
_KEY = re.compile(r"\s*(?P<key>(?:[^\W\d]|\\_)(?:[\w-]|\\_){0,127})\s*=(?!=)")
_NEXT = re.compile(r"\s*(?P<mark>[,)])")
_CALL_END = re.compile(rf"\)(?=['\"]?\s*(?:\]|[,;]\s*['\"]?{_NAME}\s*\(|(?:;\s*)?\Z))")
_BEHIND_LIST = re.compile(r"(?:\(\))?[.;]?(?=[ \t\r]*(?:#[^\n]*)?(?:\n|\Z))")
_FENCE = re.compile(r"[ \t]*```tool_(?:code|calls?)[ \t\r]*\n")


def call_at(scan: Scan, at: int, tools: Tools, *, is_sure: bool = False) -> tuple[TextCall, int] | None:
    """Read one call; None if it is none, or of no declared tool."""
    # `is_sure`: a call whose values are no literals is a bad call, and not text.
    head = _HEAD.match(scan.text, at)
    name = tools.name_of(head["name"]) if head else None
    if head is not None and (name is None or name not in tools.schemas):
        name = tools.name_of(head["name"].removesuffix(".call"))  # Llama's built-in tools
    if head is None or name is None:
        return None
    pairs = list[tuple[str, Any]]()
    place = scan.space(head.end())
    while not scan.text.startswith(")", place):
        begin = place
        key = _KEY.match(scan.text, place)
        unpacks = scan.text.startswith("**{", place)  # keys that are no names
        if key is None and not unpacks:
            break
        try:
            value, place = scan.literal_at(key.end() if key else place + 2)
        except ValueError:
            place = key.end() if key else place
            break
        mark = _NEXT.match(scan.text, place)
        if mark is None:
            break
        if key is not None:
            pairs.append((key["key"], value))
        elif is_object(value):
            pairs.extend(value.items())
        else:
            place = begin
            break
        place = scan.space(mark.end()) if mark["mark"] == "," else mark.start("mark")
    else:
        if "\\_" in head[0] or any("\\_" in key for key, _ in pairs):
            pairs = [(key.replace("\\_", "_"), _unescape(value)) for key, value in pairs]
        return TextCall(name, object_of(pairs)), place + 1
    return _broken(scan, at, head, name, place, is_sure=is_sure)


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


def _broken(
    scan: Scan, at: int, head: re.Match[str], name: str, place: int, *, is_sure: bool
) -> tuple[TextCall, int] | None:
    """Return a call that the text ends in, or whose value is a variable or an expression, as written."""
    closing = scan.search(_CALL_END, head.end()) if is_sure else None
    if closing is not None:
        return TextCall(name, scan.text[head.end() : closing.start()]), closing.end()
    place = scan.space(place)
    quote = scan.text[place : place + 1]
    open_string = quote in ("'", '"') and quote and scan.find(quote, place + 1) < 0
    if place < len(scan.text) and not open_string and not is_sure:
        return None
    return TextCall(name, CutOff(scan.text[at:].rstrip())), len(scan.text)


def calls_at(
    scan: Scan, at: int, tools: Tools, *, is_sure: bool = False, may_be_strings: bool = False
) -> tuple[list[TextCall], int, bool] | None:
    """Read a list of calls, or calls with lines or commas between; say at last whether it was a list."""
    is_list = scan.text.startswith("[", at)
    place = scan.space(at + 1) if is_list else at
    calls = list[TextCall]()
    end = place
    while len(calls) <= MOST_CALLS:
        call = call_at(scan, place, tools, is_sure=is_sure and is_list)
        if call is None and may_be_strings and scan.text.startswith(("'", '"'), place):
            call = _string_at(scan, place, tools)
        if call is None:
            break
        calls.append(call[0])
        end = call[1]
        place = scan.space(call[1])
        if scan.text.startswith((",", ";"), place):
            end = place + 1 if scan.text[place] == ";" else end
            place = scan.space(place + 1)
    if not calls:
        return None
    if is_list and not isinstance(calls[-1].arguments, CutOff):
        if scan.text.startswith("]", place):
            return calls, place + 1, True
        return (calls, end, True) if place == len(scan.text) else None
    return calls, end, is_list


def _string_at(scan: Scan, at: int, tools: Tools) -> tuple[TextCall, int] | None:
    """Read a call that is written as a string, whose quotes may be the call's own, or missing at its end."""
    try:
        value, end = scan.literal_at(at)
    except ValueError:
        value = ""
        end = at
    inner = Scan(str(value))
    call = call_at(inner, 0, tools)
    if call is not None and call[1] == len(inner.text) and not isinstance(call[0].arguments, CutOff):
        return call[0], end
    call = call_at(scan, at + 1, tools)
    if call is not None:
        return call[0], call[1] + scan.text.startswith(scan.text[at], call[1])
    call = call_at(inner, 0, tools, is_sure=True)  # one bare word costs no call beside it
    return (call[0], end) if call is not None and not isinstance(call[0].arguments, CutOff) else None


def read(scan: Scan, at: int, tools: Tools, *, marker: re.Pattern[str]) -> Calls | None:
    """Read the calls behind a marker."""
    opener = marker.match(scan.text, at)
    calls = calls_at(scan, scan.space(opener.end()), tools, is_sure=True) if opener else None
    return Calls(calls[0], calls[1]) if calls else None


def read_bare(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read calls without a marker: a list on lines of its own, or the whole answer."""
    whole = at <= scan.content_start
    span = calls_at(
        scan, scan.space(at), tools, is_sure=whole or bool(scan.call_format), may_be_strings=whole
    )
    if span is None:
        return None
    calls, end, is_list = span
    if not is_list and (not whole or not scan.ends_at(end) or isinstance(calls[-1].arguments, CutOff)):
        return None
    behind = _BEHIND_LIST.match(scan.text, end)
    if whole and (scan.ends_at(end) or behind):
        return Calls(calls, behind.end() if behind else end)
    alone = scan.ends_at(end) or scan.text[end] in "\r\n<"
    return Calls(calls, end) if alone and not announces_example(scan.text, at) else None


def read_fence(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read the calls in a fence that says `tool_code`, printed or not."""
    fence = _FENCE.match(scan.text, at)
    if fence is None:
        return None
    place = scan.space(fence.end())
    is_printed = scan.text.startswith("print(", place)
    span = calls_at(scan, place + 6 if is_printed else place, tools)
    if span is None:
        return None
    end = scan.space(span[1])
    return closed(scan, Calls(span[0], end + (is_printed and scan.text.startswith(")", end))), "```")


def write(calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
    """Write calls as a Python list. Strings are in JSON's quotes, which Python reads in the same way."""
    texts: list[str] = []
    for name, args in calls:
        are_names = all(key.isidentifier() and key.isascii() for key in args)
        keywords = ", ".join(f"{key}={_literal(value)}" for key, value in args.items())
        texts.append(f"{name}({keywords if are_names else f'**{_literal(args)}'})")
    return f"[{', '.join(texts)}]" if texts else ""


def _literal(value: Any) -> str:
    if is_object(value):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    if is_array(value):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _format(
    name: str, marker: str, *, reads: str = "With brackets or without, also JSON.", **row: Any
) -> TextFormat:
    head = rf"(?:{marker})\s*(?:\[\s*)?{_HEAD.pattern}"
    return TextFormat(name, marker, partial(read, marker=re.compile(marker)), reads=reads, head=head, **row)


_CALL = 'get_weather(city="Paris")'

FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        "pythonic",
        BARE_OPENER,
        read_bare,
        f"[{_CALL}]",
        "A list at the beginning of a line, or calls that are the whole answer.",
        bare=True,
        write=write,
        head=rf"(?:\[\s*)?['\"]?{_HEAD.pattern}",
    ),
    _format(
        "llama4-pythonic",
        r"<\|python_tag\|>|<\|python_start\|>",
        example=f"<|python_start|>[{_CALL}]<|python_end|>",
        after=("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
    ),
    _format(
        "lfm2-pythonic",
        r"<\|tool_call_start\|>",
        example=f"<|tool_call_start|>[{_CALL}]<|tool_call_end|>",
        after=("<|tool_call_end|>",),
    ),
    _format(
        "olmo3-pythonic",
        r"<function_calls>",
        example=f"<function_calls>{_CALL}</function_calls>",
        after=("</function_calls>",),
        reads="One call a line.",
    ),
    TextFormat(
        "gemma3-tool-code",
        FENCE_OPENER,
        read_fence,
        f"```tool_code\n{_CALL}\n```",
        "A fence that says `tool_code` and is or ends the answer; if named, any. One of Python is code.",
    ),
)
