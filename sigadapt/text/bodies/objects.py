"""Calls as JSON objects behind a marker: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` and kin.

One grammar with thirty markers. Behind the marker stands one object, several (with a comma, a semicolon or a
line between), or a list of them, in a code fence or not. The object names the tool (`name`, `tool_name`,
`function`) and its arguments (`arguments`, `parameters`, `args`), in any order, or is `{NAME: {...}}`. JSON
ends where its braces end, so a closing tag inside of a string closes nothing. A missing closing tag is no
fault: the object says that it is whole.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sigadapt.schemas.arguments import CutOff, Flaw, UnreadCall
from sigadapt.schemas.json_values import Json, RepeatedKeys, cut, is_object
from sigadapt.text.contract import COMMENT, MOST_CALLS, CallSpan, Members, Scan, TextCall, ToolTable
from sigadapt.text.quotations import without_closers

NAMES = ("name", "tool_name", "function_name", "function", "tool")
ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")
IDS = ("id", "tool_call_id")
Fields: TypeAlias = Mapping[str, tuple[Any, int, int]]
"""`Members.fields`."""
_FENCE = re.compile(r"\s*```[\w-]*[ \t\r]*\n?")
_SINGLE = re.compile(r"\{\s*'")
_STRAY = re.compile(r"\s*[\]}]+(?=\s*</)")
# Each run of blanks begins behind a character that is none: runs side by side cost their length squared.
_NEXT_OBJECT = re.compile(r"\s*(?:[\]}]+\s*)?(?:[,;]\s*)?[{\[]")
OBJECT = r"[\[\s]*\{\s*[\"']"
"""How one object, several or a list begin."""
_GAP = 40  # characters between two objects
_OBJECT = re.compile(r'\{\s*"(?:name|tool_name|function)"\s*:\s*"([^"\\\n]{1,128})"')


class Objects:
    """JSON objects behind a marker; `keyed`: a tool's name is the key, and its arguments are the value."""

    def __init__(self, marker: str, *, keyed: bool = False) -> None:
        self.head = rf"(?:{marker})(?:\s*{COMMENT})*(?:\s*```[\w-]*)?{OBJECT}"
        self._marker = re.compile(marker)
        self._keyed = keyed

    def read(self, scan: Scan, start: int, tools: ToolTable, /) -> CallSpan | None:
        """Read the calls after the marker."""
        opener = self._marker.match(scan.text, start)
        if opener is None:
            return None
        content_start = scan.gap(opener.end())
        fence = _FENCE.match(scan.text, content_start)
        body_start = fence.end() if fence else content_start
        opening = scan.text[start : opener.end()].strip()
        span = read_body(scan, body_start, tools, stops=(opening, "\n```"), keyed=self._keyed)
        if span is None:
            return None
        if fence and scan.text.startswith("```", fence_end := scan.space(span.end)):
            return span._replace(end=fence_end + 3)
        if stray := _STRAY.match(scan.text, span.end):
            return span._replace(end=stray.end())
        return _with_stray_object(scan, span, opening, body_start)


def _with_stray_object(scan: Scan, span: CallSpan, opening: str, body_start: int) -> CallSpan:
    """Return the last call as a faulty one if an object that is no call follows it up to the closing tag."""
    if not _NEXT_OBJECT.match(scan.text, span.end):
        return span
    closing = scan.find(f"</{opening[1:]}", span.end)
    if closing < 0 or 0 <= scan.find(opening, span.end) < closing:
        return span
    raw_start = body_start if len(span.calls) == 1 else span.end
    faulty = span.calls[-1]._replace(arguments=scan.text[raw_start:closing].strip())
    return CallSpan([*span.calls[:-1], faulty], closing, span.text_between)


def read_body(
    scan: Scan, start: int, tools: ToolTable, *, stops: Sequence[str], keyed: bool = False
) -> CallSpan | None:
    """Read one object, several or a list; None if no call of a declared tool is among them."""
    calls = list[TextCall]()
    other_objects = list[str]()
    end = cursor = scan.space(start)
    while scan.text.startswith(("{", "["), cursor) and len(calls) <= MOST_CALLS:
        if scan.text[cursor] == "[":
            cursor = scan.space(cursor + 1)
            continue
        members = scan.members_at(cursor)
        if members.end is None:
            faulty = _python_object(scan, cursor, tools)
            faulty = faulty or _broken_object(scan, members, tools, stops, keyed=keyed)
            if faulty is None:
                break
            call, end = faulty
        else:
            call = call_of(scan, members, tools, keyed=keyed)
            if call is None and not _looks_like_call(members):
                break
            end = members.end
        if call is None:
            other_objects.append(scan.text[cursor:end])
        else:
            calls.append(call)
        cursor = scan.gap(end)
        while scan.text.startswith(("]", ",", ";"), cursor):
            if scan.text[cursor] == "]":
                end = cursor + 1
            cursor = scan.gap(cursor + 1)
    return CallSpan(calls, end, "\n".join(other_objects)) if calls else None


def call_of(
    scan: Scan, members: Members, tools: ToolTable, *, keyed: bool = False, must_be_exact: bool = False
) -> TextCall | None:
    """Return the call that a JSON object is; None if it is none, or of no declared tool."""
    # `keyed`: the tool's name is a key, and the arguments are its value. `must_be_exact`: the object must be
    # a call and nothing else, with arguments that are an object.
    if keyed:
        return _keyed_call(scan, members, tools)
    function = members.fields.get("function")
    if function is None or not isinstance(function[0], dict):
        return _named_call(scan, members, tools, must_be_exact=must_be_exact)
    call = call_of(scan, scan.members_at(function[1]), tools, must_be_exact=must_be_exact)
    if call and members.has_repeated_key:
        return _with_duplicate_key(scan, members, call)
    return call


def _named_call(scan: Scan, members: Members, tools: ToolTable, *, must_be_exact: bool) -> TextCall | None:
    """Return the call of an object that names a tool and its arguments beside each other."""
    fields = members.fields
    name_key, name = _name_in(fields, tools)
    args_key = next((key for key in ARGUMENTS if key in fields), None)
    ids = [fields[key][0] for key in IDS if key in fields and isinstance(fields[key][0], str)]
    call_id = ids[0] or None if ids else None
    if args_key is None:
        lacks_call = name is None or must_be_exact or members.broken_member
        return None if lacks_call else TextCall(name, None, call_id)
    value, start, end = fields[args_key]
    arguments = value if isinstance(value, str) else scan.text[start:end]
    call = TextCall(name, arguments, call_id)
    if name is None:  # markup of prompted calling says that it is a call
        return call._replace(name="") if tools.undeclared and not must_be_exact else None
    is_inexact = must_be_exact and not _is_exact(fields, name_key, args_key)
    if is_inexact or _is_declaration(value, tools.schema_of(name)):
        return None
    if members.has_repeated_key or _says_twice(fields, name_key, args_key, tools):
        return _with_duplicate_key(scan, members, call)
    return call


def _is_exact(fields: Fields, name_key: str | None, args_key: str) -> bool:
    """Return whether an object says no more than a call, and its arguments are an object."""
    if not fields.keys() <= {name_key, args_key, "type", *IDS}:
        return False
    value = fields[args_key][0]
    is_object_text = isinstance(value, str) and value.startswith("{")
    return is_object_text or is_object(value)


def _keyed_call(scan: Scan, members: Members, tools: ToolTable) -> TextCall | None:
    """Return the call of an object `{NAME: {...}}`."""
    for key, (value, start, end) in members.fields.items():
        name = tools.name_of(key)
        if name and isinstance(value, dict):
            return TextCall(name, scan.text[start:end])
    return None


def _is_declaration(arguments: Any, schema: Json) -> bool:
    """Return whether the model repeats a tool's schema where its arguments would be."""
    if not is_object(arguments) or arguments.get("type") != "object":
        return False
    if not is_object(arguments.get("properties")):
        return False
    properties: Any = schema.get("properties")
    has_such_parameter = is_object(properties) and "properties" in properties
    return not has_such_parameter


def _says_twice(fields: Fields, name_key: str | None, args_key: str, tools: ToolTable) -> bool:
    """Return whether another key says a call's arguments or a tool's name again."""
    for key in (*NAMES, *ARGUMENTS):
        if key not in fields or key in (name_key, args_key):
            continue
        if key in ARGUMENTS or tools.name_of(fields[key][0]):
            return True
    return False


def _with_duplicate_key(scan: Scan, members: Members, call: TextCall) -> TextCall:
    """Return a call whose object says its name or its arguments twice as a bad one: neither wins."""
    end = None
    if members.broken_member is not None:
        end = members.end or members.broken_member[1]
    raw = scan.text[members.start : end]
    return call._replace(arguments=UnreadCall(raw, Flaw("duplicate_key", f"a key occurs twice: {cut(raw)}")))


def _name_in(fields: Fields, tools: ToolTable) -> tuple[str | None, str | None]:
    """Return the key that names a tool, and the tool; None for each that is not there."""
    for key in NAMES:
        if key in fields and isinstance(fields[key][0], str):
            return key, tools.name_of(fields[key][0])
    return None, None


def _looks_like_call(members: Members) -> bool:
    """Return whether an object has the form of a call, of whatever tool."""
    fields = members.fields
    if any(isinstance(fields[key][0], str) for key in NAMES if key in fields):
        return not fields.keys().isdisjoint(ARGUMENTS)
    return [type(value) for value, _, _ in fields.values()] == [dict]


def _broken_object(
    scan: Scan, members: Members, tools: ToolTable, stops: Sequence[str], *, keyed: bool
) -> tuple[TextCall, int] | None:
    """Return a call whose object is broken or cut off, and where it ends."""
    # The name must have been read, unless markup of prompted calling says that this is a call. The arguments
    # are what stands from their beginning to the closing tag, the next opening one, or the text's end, where
    # the call was cut off.
    start = members.start
    if members.broken_member is not None:
        key, value_start = members.broken_member
        if key == "function" and scan.text.startswith("{", value_start):
            members = scan.members_at(value_start)
    unclosed = _unclosed_call(scan, members, tools, stops)
    if unclosed is not None:
        return unclosed
    _, name = _name_in(members.fields, tools)
    if name is None and members.broken_member and keyed:
        name = tools.name_of(members.broken_member[0])
    if name is None and not tools.undeclared:
        return None
    args_start = _arguments_start(members, start, keyed=keyed)
    closing = (f"</{stop[1:]}" for stop in stops if stop.startswith("<") and not stop.startswith("<|"))
    stop = scan.earliest((*closing, *filter(None, stops), "<|tool_call_end|>"), args_start)
    end = _next_object(scan, args_start, stop, tools)
    raw = scan.text[args_start:end].rstrip()
    if end != stop:
        raw = raw.rstrip(",;")
    raw = without_closers(raw)
    arguments = CutOff(raw) if end >= len(scan.text) else raw
    return TextCall(name or "", arguments), end


def _unclosed_call(
    scan: Scan, members: Members, tools: ToolTable, stops: Sequence[str]
) -> tuple[TextCall, int] | None:
    """Return the call of an object that lacks nothing but its end; None if JSON or prose goes on there."""
    call = call_of(scan, members, tools)
    if call is None or call.arguments is None:
        return None
    end = max(end for _, _, end in members.fields.values())
    next_start = scan.space(end)
    may_follow = ("<", "[", "]", "}", ",", ";", "{", "```", *(stop.strip() for stop in stops if stop))
    if next_start < len(scan.text) and not scan.text.startswith(may_follow, next_start):
        return None
    return call, end


def _arguments_start(members: Members, start: int, *, keyed: bool) -> int:
    """Return where the arguments of a broken object begin; its own start if they are not there."""
    for key in ARGUMENTS:
        if key in members.fields:
            return members.fields[key][1]
    if members.broken_member is not None:
        key, value_start = members.broken_member
        if keyed or key in ARGUMENTS:
            return value_start
    return start


def _next_object(scan: Scan, start: int, end: int, tools: ToolTable) -> int:
    """Return where the next call of a declared tool begins, before a position; else that position."""
    scan.charge((end - start) // 8)
    for call in _OBJECT.finditer(scan.text, start, end):
        gap = scan.text[max(start, call.start() - _GAP) : call.start()]
        if call[1] in tools.schemas and ("\n" in gap or gap.rstrip().endswith((",", ";"))):
            return call.start()
    return end


def _python_object(scan: Scan, start: int, tools: ToolTable) -> tuple[TextCall, int] | None:
    """Read a call whose object is a Python dict, with single quotes."""
    is_python = _SINGLE.match(scan.text, start) is not None
    if not is_python and scan.call_format:
        return None  # the prompt asked for JSON
    try:
        value, end = scan.literal_at(start, is_strict=not is_python)
    except ValueError:
        return None
    fields = value if is_object(value) else {}
    name = next((tools.name_of(fields[key]) for key in NAMES if key in fields), None)
    if name is None:
        return None
    if isinstance(fields, RepeatedKeys):
        return TextCall(name, fields), end
    args = next((fields[key] for key in ARGUMENTS if key in fields), None)
    return TextCall(name, args), end
