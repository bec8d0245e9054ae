"""A tool's name in markup, and its arguments as JSON behind it: Mistral v11, DeepSeek V3, Kimi K2 and kin.

Each row is a pattern of what stands before the JSON, with the name (and an id) in it. Arguments are one JSON
object. If it is broken, what stands up to the closing tag is a bad call; if the text ends in
it, it is cut off.
"""

import re
from functools import partial
from typing import Any

from sigadapt.schemas.arguments import CutOff
from sigadapt.text.contract import MOST_CALLS, CallSpan, TextCall, TextFormat, ToolTable, as_written, writer
from sigadapt.text.formats.bare_json import announces_example
from sigadapt.text.quotations import is_open
from sigadapt.text.scan import Scan

_BAR = "[｜|]"
_LOW = "▁"
_NO_TAIL = ""
_OPENING = ("[TOOL_CALLS]", ">>>", "<|tool_call_begin|>")
_OBJECT = re.compile(r"\s*(?:[,;]\s*)?\{")


def read(
    scan: Scan,
    start: int,
    tools: ToolTable,
    *,
    head: re.Pattern[str],
    tail: re.Pattern[str],
    stops: tuple[str, ...],
) -> CallSpan | None:
    """Read one call whose head is at a position, and those that follow it at once."""
    calls = list[TextCall]()
    end = start
    while len(calls) <= MOST_CALLS:
        opening = head.match(scan.text, end)
        name = tools.name_of(opening["name"]) if opening else None
        if opening is None or name is None:
            break
        call, args_end = _arguments(scan, opening, name, stops, tail)
        closing = tail.match(scan.text, args_end)
        if closing is None and not isinstance(call.arguments, CutOff):  # it is broken, if anything closes it
            raw = scan.text[opening.end("name") : args_end].strip()
            args_end = scan.space(args_end)
            if not scan.text.startswith(stops, args_end):
                break
            call = call._replace(arguments=raw)
        calls.append(call)
        end = closing.end() if closing else args_end
    return CallSpan(calls, end) if calls else None


def _arguments(
    scan: Scan, head: re.Match[str], name: str, stops: tuple[str, ...], tail: re.Pattern[str]
) -> tuple[TextCall, int]:
    start = scan.space(head.end())
    call_id = head.groupdict().get("id")
    try:
        value, end = scan.value_at(start)
    except ValueError:
        end = scan.earliest(stops, start)
        return as_written(scan, name, start, end, call_id), end
    if isinstance(value, str) and not scan.call_format:
        return TextCall(name, value, call_id), end
    if not (tail.pattern != _NO_TAIL and tail.match(scan.text, end)):
        # What stands before the mark that closes them, or another object, is a part of the arguments.
        stop = scan.earliest(stops, end)
        is_closed = stop < len(scan.text) and not scan.text.startswith(_OPENING, stop)
        is_part = is_closed and not scan.text.startswith("<", scan.space(end))
        if is_part or _OBJECT.match(scan.text, end):
            end += len(scan.text[end:stop].rstrip())
    return TextCall(name, scan.text[start:end], call_id), end


def read_bare(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read `NAME[ARGS]{...}` or `NAME{...}` that is the whole answer: markers that a server dropped."""
    calls = list[TextCall]()
    cursor = scan.space(start)
    while len(calls) <= MOST_CALLS and (head := _BARE_HEAD.match(scan.text, cursor)):
        name = head["name"]
        if name not in tools.schemas:
            break
        try:
            value, end = scan.value_at(head.end())
        except ValueError:
            if not is_open(scan.text, head.end()):
                return None
            end = len(scan.text)
            return CallSpan([*calls, as_written(scan, name, head.end(), end)], end)
        if not isinstance(value, dict):
            return None
        calls.append(TextCall(name, scan.text[head.end() : end]))
        cursor = scan.space(end)
    ends = cursor == len(scan.text) or len(calls) > MOST_CALLS
    return CallSpan(calls, cursor) if calls and ends else None


def read_bracketed(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read `[Calling tool: NAME({...})]`, unless the words before it announce an example."""
    if announces_example(scan.text, start):
        return None
    return read(scan, start, tools, head=_BRACKETED, tail=_BRACKETED_TAIL, stops=(")]",))


_BARE_HEAD = re.compile(r"(?P<name>[\w.:-]{1,128})(?:\[CALL_ID\]\w+)?(?:\[ARGS\]|\r?\n|(?=\{))\s*(?=\{)")
_BRACKETED = re.compile(r"\[Calling tool: ?(?P<name>[\w.-]{1,128})\((?=\{)")
_BRACKETED_TAIL = re.compile(r"\s*\)\s*\]")


def _format(
    name: str,
    opener: str,
    head: str,
    *,
    tail: str = _NO_TAIL,
    stops: tuple[str, ...] = (),
    reads: str = "Several calls; lost tags around them.",
    **row: Any,
) -> TextFormat:
    reader = partial(read, head=re.compile(head), tail=re.compile(tail), stops=stops)
    return TextFormat(name, opener, reader, reads=reads, head=head, **row)


_DEEP_BEGIN = rf"<{_BAR}tool{_LOW}call{_LOW}begin{_BAR}>"
_DEEP_SEP = rf"<{_BAR}tool{_LOW}sep{_BAR}>"
_DEEP_WRAPS = tuple(
    f"<{bar}tool▁{word}▁{edge}{bar}>"
    for bar in "｜|"
    for word, edge in (("calls", "begin"), ("calls", "end"), ("call", "end"))
)
_DEEP: dict[str, Any] = {
    "opening_tags": tuple(tag for tag in _DEEP_WRAPS if "begin" in tag),
    "closing_tags": (
        *(tag for tag in _DEEP_WRAPS if "end" in tag),
        "<｜end▁of▁sentence｜>",
        "<|end▁of▁sentence|>",
    ),
    "stops": tuple(tag for tag in _DEEP_WRAPS if "end" in tag),
}
_PLAMO = "<|plamo:{}:plamo|>"

FORMATS: tuple[TextFormat, ...] = (
    _format(
        "mistral-args",
        r"\[TOOL_CALLS\]",
        r"(?:\[TOOL_CALLS\])?\s*(?P<name>[\w.:/-]{1,128})"
        r"(?:\s*\[CALL_ID\](?P<id>\w{1,64}))?(?:\s*\[ARGS\]|(?=\s*\{))",
        stops=("[TOOL_CALLS]",),
        example='[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}',
        reads="With or without `[ARGS]` and `[CALL_ID]`; the marker may be missing before the next call.",
        write=writer("[TOOL_CALLS]{name}[ARGS]{args}", separator=""),
    ),
    TextFormat(
        "mistral-bare",
        r"(?!)",  # it is tried where the answer begins, and nowhere else
        read_bare,
        'get_weather[ARGS]{"city": "Paris"}',
        "Only where it is the whole answer.",
        bare=True,
    ),
    _format(
        "deepseek-v3",
        _DEEP_BEGIN,
        rf"{_DEEP_BEGIN}\s*function\s*{_DEEP_SEP}(?P<name>[^\n`<]{{1,128}}?)\s*```(?:json)?",
        tail=r"\s*```",
        example="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        **_DEEP,
    ),
    _format(
        "deepseek-v3.1",
        _DEEP_BEGIN,
        rf"{_DEEP_BEGIN}\s*(?P<name>[^\s`<][^\n`<]{{0,127}}?)\s*{_DEEP_SEP}",
        example="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        write=writer(
            "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{args}<｜tool▁call▁end｜>",
            separator="",
            prefix="<｜tool▁calls▁begin｜>",
            suffix="<｜tool▁calls▁end｜>",
        ),
        **_DEEP,
    ),
    _format(
        "kimi-k2",
        r"<\|tool_call_begin\|>",
        r"<\|tool_call_begin\|>\s*(?P<id>(?:functions\.)?(?P<name>[^<\s]{1,128}?)(?::\d+)?)\s*"
        r"<\|tool_call_argument_begin\|>",
        stops=("<|tool_call_end|>", "<|tool_call_begin|>", "<|tool_calls_section_end|>"),
        opening_tags=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
        closing_tags=("<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
        example="<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        reads="Ids with and without `functions.`, also without the section's tags. The id is kept.",
        write=writer(
            "<|tool_call_begin|>functions.{name}:{n}<|tool_call_argument_begin|>{args}<|tool_call_end|>",
            separator="",
            prefix="<|tool_calls_section_begin|>",
            suffix="<|tool_calls_section_end|>",
        ),
    ),
    _format(
        "functionary-v3.2",
        r">>>",
        r">>>(?P<name>[\w.-]{1,128})\r?\n(?=\s*\{)",
        stops=(">>>",),
        example='>>>get_weather\n{"city": "Paris"}',
    ),
    _format(
        "plamo3",
        re.escape(_PLAMO.format("begin_tool_name")),
        rf"{re.escape(_PLAMO.format('begin_tool_name'))}(?P<name>[^<]{{1,128}})"
        rf"{re.escape(_PLAMO.format('end_tool_name'))}\s*{re.escape(_PLAMO.format('begin_tool_arguments'))}"
        r"(?:<\|plamo:constrain\|>json)?(?:<\|plamo:msg\|>)?",
        stops=(_PLAMO.format("end_tool_arguments"),),
        opening_tags=(_PLAMO.format("begin_tool_requests"), _PLAMO.format("begin_tool_request")),
        closing_tags=(
            *(_PLAMO.format(f"end_tool_{word}") for word in ("arguments", "request", "requests")),
            "<|plamo:tag|>",
        ),
        example="<|plamo:begin_tool_name:plamo|>get_weather<|plamo:end_tool_name:plamo|>"
        '<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"city": "Paris"}'
        "<|plamo:end_tool_arguments:plamo|>",
    ),
    TextFormat(
        "bracket-calling",
        r"\[Calling tool:",
        read_bracketed,
        '[Calling tool: get_weather({"city": "Paris"})]',
        "Unless an example is announced.",
        head=_BRACKETED.pattern,
    ),
)
