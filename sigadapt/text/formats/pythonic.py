"""Calls as Python writes them: `[get_weather(city="Paris"), now()]`, of Llama 4, LFM2, Olmo 3, Gemma 3.

Nothing is evaluated (nothing is executed). A call is a declared name and keyword arguments whose values are
literals (`written_values.literal_at`); positional arguments, variables, nested calls and operators are code
and stay text. Names may hold dots and dashes. Without markers it counts only as a list at the beginning of a
line, or as the whole answer.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, RepeatedKeys
from sigadapt.schemas.written_values import literal_at
from sigadapt.text.contract import MOST_CALLS, Found, Said, TextCall, TextFormat, Tools
from sigadapt.text.formats.bare_json import BARE_OPENER, FENCE_OPENER, announces_example
from sigadapt.text.scan import Scan

_HEAD = re.compile(r"(?P<name>\w[\w.-]{0,127})\s*\(")
_KEY = re.compile(r"\s*(?P<key>[^\W\d][\w-]{0,127})\s*=(?!=)")
_NEXT = re.compile(r"\s*(?P<mark>[,)])")
_FENCE = re.compile(r"[ \t]*```tool_(?:code|calls?)[ \t]*\n")


def call_at(scan: Scan, at: int, tools: Tools) -> tuple[TextCall, int] | None:
    """Read one call; None if it is none, or of no declared tool."""
    head = _HEAD.match(scan.text, at)
    name = tools.name_of(head["name"].removesuffix(".call")) if head else None
    if head is not None and name is None:
        name = tools.name_of(head["name"])
    if head is None or name is None:
        return None
    pairs, place = list[tuple[str, Any]](), scan.space(head.end())
    while not scan.text.startswith(")", place):
        if scan.text.startswith("**{", place):
            place = _unpacked(scan, place + 2, pairs)
            if place < 0:
                return None
            continue
        key = _KEY.match(scan.text, place)
        if key is None:
            return _cut(scan, at, name, place)
        try:
            value, place = literal_at(scan.text, key.end())
        except (ValueError, RecursionError):
            scan.charge((len(scan.text) - at) // 4)
            return _cut(scan, at, name, key.end())
        pairs.append((key["key"], value))
        mark = _NEXT.match(scan.text, place)
        if mark is None:
            return _cut(scan, at, name, place)
        place = scan.space(mark.end()) if mark["mark"] == "," else mark.start("mark")
    scan.charge((place - at) // 8)
    args: Json = dict(pairs)
    return TextCall(name, args if len(args) == len(pairs) else RepeatedKeys(pairs)), place + 1


def _unpacked(scan: Scan, at: int, pairs: list[tuple[str, Any]]) -> int:
    """Read `**{...}`, which holds keys that are no names; return the place behind, or -1."""
    try:
        value, place = literal_at(scan.text, at)
    except (ValueError, RecursionError):
        scan.charge((len(scan.text) - at) // 4)
        return -1
    mark = _NEXT.match(scan.text, place)
    if not isinstance(value, dict) or mark is None:
        return -1
    pairs.extend(cast("Json", value).items())
    return scan.space(mark.end()) if mark["mark"] == "," else mark.start("mark")


def _cut(scan: Scan, at: int, name: str, place: int) -> tuple[TextCall, int] | None:
    """Return the call that the text ends in; only markup makes it one."""
    place = scan.space(place)
    quote = scan.text[place : place + 1]
    open_string = quote in ("'", '"') and quote and scan.find(quote, place + 1) < 0
    if place < len(scan.text) and not open_string:
        return None
    return TextCall(name, CutOff(scan.text[at:].rstrip())), len(scan.text)


def calls_at(scan: Scan, at: int, tools: Tools) -> tuple[list[TextCall], int, bool] | None:
    """Read a list of calls, or calls with lines or commas between; say at last whether it was a list."""
    listed = scan.text.startswith("[", at)
    place = scan.space(at + 1) if listed else at
    calls, end = list[TextCall](), place
    while len(calls) < MOST_CALLS and (found := call_at(scan, place, tools)):
        calls.append(found[0])
        end, place = found[1], scan.space(found[1])
        if scan.text.startswith((",", ";"), place):
            place = scan.space(place + 1)
    if not calls:
        return None
    if listed and not isinstance(calls[-1].arguments, CutOff):
        if scan.text.startswith("]", place):
            return calls, place + 1, True
        return (calls, end, True) if place == len(scan.text) else None
    return calls, end, listed


def read(scan: Scan, at: int, tools: Tools, *, marker: re.Pattern[str]) -> Found | None:
    """Read the calls behind a marker."""
    found = marker.match(scan.text, at)
    calls = calls_at(scan, scan.space(found.end()), tools) if found else None
    return Found(calls[0], calls[1]) if calls else None


def read_bare(scan: Scan, at: int, tools: Tools) -> Found | None:
    """Read calls without a marker: a list on lines of its own, or the whole answer."""
    whole = at <= scan.content_start
    found = calls_at(scan, scan.space(at), tools)
    if found is None:
        return None
    calls, end, listed = found
    if not listed and (not whole or not scan.ends_at(end) or isinstance(calls[-1].arguments, CutOff)):
        return None
    alone = scan.ends_at(end) or scan.text[end] in "\r\n<"
    if (whole and scan.ends_at(end)) or (alone and not announces_example(scan.text, at)):
        return Found(calls, end)
    return None


def read_fence(scan: Scan, at: int, tools: Tools) -> Found | None:
    """Read the calls in a fence that says `tool_code`, printed or not."""
    fence = _FENCE.match(scan.text, at)
    if fence is None:
        return None
    place = scan.space(fence.end())
    printed = scan.text.startswith("print(", place)
    found = calls_at(scan, place + 6 if printed else place, tools)
    if found is None:
        return None
    end = scan.space(found[1])
    end = scan.space(end + 1) if printed and scan.text.startswith(")", end) else end
    if not scan.text.startswith("```", end) and end < len(scan.text):
        return None
    return Found(found[0], min(end + 3, len(scan.text)))


def say(calls: Said, schemas: Mapping[str, Json]) -> str:  # noqa: ARG001  (literals carry their types)
    """Write calls as a Python list. Strings are in JSON's quotes, which Python reads in the same way."""
    listed = [f"{name}({_arguments(args)})" for name, args in calls]
    return f"[{', '.join(listed)}]" if listed else ""


def _arguments(args: Json) -> str:
    if all(key.isidentifier() and key.isascii() for key in args):
        return ", ".join(f"{key}={_literal(value)}" for key, value in args.items())
    return f"**{_literal(args)}"


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        items: Any = value.items()  # pyright: ignore[reportUnknownVariableType]
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in items) + "}"
    if isinstance(value, list):
        members: Any = value  # pyright: ignore[reportUnknownVariableType]
        return f"[{', '.join(map(_literal, members))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _format(name: str, marker: str, **more: Any) -> TextFormat:
    pattern = re.compile(marker)

    def reads(scan: Scan, at: int, tools: Tools) -> Found | None:
        return read(scan, at, tools, marker=pattern)

    known: dict[str, Any] = {"reads": "With brackets or without, also JSON.", **more}
    return TextFormat(name, marker, reads, **known)


_CALL = 'get_weather(city="Paris")'

FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        "pythonic",
        BARE_OPENER,
        read_bare,
        f"[{_CALL}]",
        "Llama 3.2 1B and 3B, Llama 4, ToolACE, LFM2 without its tokens",
        "vLLM `pythonic`, `llama4_pythonic`; any server whose parser is off",
        "A list at the beginning of a line, or calls that are the whole answer.",
        bare=True,
        say=say,
    ),
    _format(
        "llama4-pythonic",
        r"<\|python_tag\|>|<\|python_start\|>",
        example=f"<|python_start|>[{_CALL}]<|python_end|>",
        models="Llama 4, Llama 3.1's built-in tools",
        servers="vLLM `llama4_pythonic`; llama.cpp",
        after=("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
    ),
    _format(
        "lfm2-pythonic",
        r"<\|tool_call_start\|>",
        example=f"<|tool_call_start|>[{_CALL}]<|tool_call_end|>",
        models="LFM2, LFM2.5",
        servers="vLLM `lfm2`; Ollama; llama.cpp; mlx-lm; LocalAI",
        after=("<|tool_call_end|>",),
    ),
    _format(
        "olmo3-pythonic",
        r"<function_calls>",
        example=f"<function_calls>{_CALL}</function_calls>",
        models="Olmo 3",
        servers="vLLM `olmo3`; Ollama",
        after=("</function_calls>",),
        reads="One call a line.",
    ),
    TextFormat(
        "gemma3-tool-code",
        FENCE_OPENER,
        read_fence,
        f"```tool_code\n{_CALL}\n```",
        "Gemma 3, prompted",
        "any server without a parser",
        "A fence that says `tool_code`. One of Python is code.",
    ),
)
