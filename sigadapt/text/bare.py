"""JSON calls without any marker: `{"name": "get_weather", "arguments": {...}}` as the answer, or in a fence.

No markup says that this is a call, so JSON answers, examples and echoed declarations are the danger. Rules:

 a. The object must be a call of a declared tool and nothing else: a name, arguments that are an object, and
    at most a type and an id. The schema of a declaration is no arguments.
 b. It counts as the whole answer, at the beginning of a line, or after a colon or the end of a sentence; in
    front of the whole answer no words may announce an example.
 c. A fence counts if it is the answer, or if the caller or the prompt asked for `fenced-json` by name
    (`reader.py`).
"""

import re

from sigadapt.text.bodies.objects import ARGUMENTS, IDS, NAMES, ObjectReader
from sigadapt.text.contract import (
    MOST_CALLS,
    Body,
    CallSpan,
    Members,
    Scan,
    TextCall,
    ToolTable,
    as_written,
    with_closer,
)
from sigadapt.text.openers import CALL_LANGUAGES
from sigadapt.text.quotations import announces_example, is_open

BARE_OPENER = r"(?<![^\n])[\[{]|\{\s*\"(?:name|tool_name|function|type|tool)\"\s*:"
"""Where calls without markup may begin: at a line's beginning, and before an object that names something."""

_FENCE = re.compile(r"[ \t]*```([\w-]*)[ \t\r]*\n?")
_ANY_FENCE = re.compile(r"```[\w-]*[ \t\r]*\n?\s*")
_FENCE_END = re.compile(r"\s*```")
_KEYS = "|".join(("tool_calls", "type", "index", *NAMES, *ARGUMENTS, *IDS))
HEAD = rf"\[?\s*\{{\s*\"(?:{_KEYS})\"\s*:"
"""How an object that is a call and nothing else begins."""
_WRAPPER = re.compile(r'\{\s*"tool_calls"\s*:\s*(?=\[)')
_INLINE = re.compile(r"(?:[:.!?][)\"']?[ \t]+|[:;][ \t]*)\Z")


def read_plain(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read calls that stand in the text as they are."""
    if start <= scan.content_start:
        return _read_wrapped(scan, start, tools, is_whole_answer=True)
    lead = scan.text[max(0, start - 4) : start]
    may_begin = lead.endswith("\n") or _INLINE.search(lead)
    if not may_begin or announces_example(scan.text, start):
        return None
    span = _read_wrapped(scan, start, tools, is_whole_answer=False)
    # Text that goes on with a quote or a backtick talks about a call.
    if span is None or scan.text.startswith(("`", '"', "'"), span.end):
        return None
    return span


def read_fence(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read calls in a code fence."""
    fence = _FENCE.match(scan.text, start)
    if fence is None or fence[1] not in ("", "json", "tool", *CALL_LANGUAGES):
        return None
    span = _read_wrapped(scan, fence.end(), tools, is_whole_answer=True)
    return with_closer(scan, span, "```") if span else None


def _read_wrapped(scan: Scan, start: int, tools: ToolTable, *, is_whole_answer: bool) -> CallSpan | None:
    """Read what `_sequence` does, or `{"tool_calls": [...]}` around it."""
    wrapper = _WRAPPER.match(scan.text, scan.space(start))
    if wrapper is None:
        return _sequence(scan, start, tools, is_whole_answer=is_whole_answer)
    span = _sequence(scan, wrapper.end(), tools, is_whole_answer=is_whole_answer)
    return with_closer(scan, span, "}") if span else span


def _sequence(scan: Scan, start: int, tools: ToolTable, *, is_whole_answer: bool) -> CallSpan | None:
    """Read one object, several or a list, of which each must be a call."""
    cursor = scan.space(start)
    is_list = scan.text.startswith("[", cursor)
    if is_list:
        cursor = scan.space(cursor + 1)
    reader = ObjectReader(scan, tools, must_be_exact=True)
    calls = list[TextCall]()
    end = cursor
    while scan.text.startswith("{", cursor) and len(calls) <= MOST_CALLS:
        members = scan.members_at(cursor)
        call = reader.call_of(members)
        if call is None or members.end is None:
            cut_call = _read_cut_off(reader, members) if is_whole_answer else None
            if cut_call is not None:
                return CallSpan([*calls, cut_call], len(scan.text))
            # A list that holds anything but calls is data.
            if is_list:
                return None
            break
        calls.append(call)
        end = members.end
        cursor = scan.space(end)
        # Small models write `;` between calls, and a comma after the last.
        if scan.text.startswith((",", ";"), cursor):
            cursor = scan.space(cursor + 1)
    if not calls:
        return None
    if not is_list:
        return CallSpan(calls, end)
    if scan.text.startswith("]", cursor):
        return CallSpan(calls, cursor + 1)
    is_cut_list = cursor == len(scan.text) and is_whole_answer
    return CallSpan(calls, end) if is_cut_list else None


def _read_cut_off(reader: ObjectReader, members: Members) -> TextCall | None:
    """Return the call that the text ends in."""
    text = reader.text
    _, name = reader.name_in(members)
    if name is None or name not in reader.tools.schemas or members.broken_member is None:
        return None
    key, args_start = members.broken_member
    is_args_start = key in ARGUMENTS and text.startswith(("{", '"{'), args_start)
    if not is_args_start or not is_open(text, args_start):
        return None
    return as_written(reader.scan, name, args_start, len(text))


def _read_faulty_objects(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read objects that name a tool and hold arguments of any kind, where the prompt asked for them."""
    object_start = start
    if scan.text.startswith("[", start):
        object_start = scan.space(start + 1)
    if not scan.text.startswith("{", object_start):
        return None
    members = scan.members_at(object_start)
    key = members.broken_member[0] if members.broken_member else ""
    if key not in ARGUMENTS and members.fields.keys().isdisjoint(ARGUMENTS):
        return None
    return ObjectReader(scan, tools).sequence(start, ("\n{", "\n```"))


def _read_faulty_fence(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    fence = _ANY_FENCE.match(scan.text, start)
    span = _read_faulty_objects(scan, fence.end(), tools) if fence else None
    if span is None:
        return None
    closing = _FENCE_END.match(scan.text, span.end)
    return span._replace(end=closing.end()) if closing else span


FAULTY = {"plain-json": _read_faulty_objects, "fenced-json": _read_faulty_fence}
"""By the format for which the prompt asked: what reads its calls if they are faulty."""
PLAIN_OBJECTS = Body(HEAD, read_plain)
FENCED_OBJECTS = Body("", read_fence)
