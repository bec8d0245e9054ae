"""Calls as JSON objects: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` and kin, or no marker.

One grammar with thirty markers. Behind the marker stands one object, several (with a comma, a semicolon or a
line between), or a list of them, in a code fence or not. The object names the tool (`name`, `tool_name`,
`function`) and its arguments (`arguments`, `parameters`, `args`), in any order, or is `{NAME: {...}}`. JSON
ends where its braces end, so a closing tag inside of a string closes nothing. A missing closing tag is no
fault: the object says that it is whole.

Without a marker, as the answer or in a fence, nothing says that an object is a call: JSON answers, examples
and echoed declarations are the danger. Rules:

 a. The object must be a call of a declared tool and nothing else: a name, arguments that are an object, and
    at most a type and an id. The schema of a declaration is no arguments.
 b. It counts as the whole answer, at the beginning of a line, or after a colon or the end of a sentence; in
    front of the whole answer no words may announce an example.
 c. A fence counts if it is the answer, or if the caller or the prompt asked for `fenced-json` by name
    (`reader.py`).
"""

import re
from collections.abc import Sequence
from typing import Any

from sigadapt.json_values import Json, RepeatedKeys, cut, is_object
from sigadapt.schemas.arguments import CutOff, Flaw, UnreadCall
from sigadapt.text.contract import (
    COMMENT,
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
from sigadapt.text.quotations import announces_example, is_open, without_closers

NAMES = ("name", "tool_name", "function_name", "function", "tool")
ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")
IDS = ("id", "tool_call_id", "call_id")
LABELS = ("index", *IDS)
"""Members of a call that are neither its name nor its arguments."""
_KINDS = ("function", "function_call", "tool_call", "tool_use")
_FENCE = re.compile(r"\s*```[\w-]*[ \t\r]*\n?")
_SINGLE = re.compile(r"\{\s*'")
_STRAY = re.compile(r"\s*[\]}]+(?=\s*</)")
# Each run of blanks begins behind a character that is none: runs side by side cost their length squared.
_NEXT_OBJECT = re.compile(r"\s*(?:[\]}]+\s*)?(?:[,;]\s*)?[{\[]")
OBJECT = r"[\[\s]*\{\s*[\"']"
"""How one object, several or a list begin."""
_GAP = 40  # characters between two objects
_OBJECT = re.compile(r'\{\s*"(?:name|tool_name|function)"\s*:\s*"([^"\\\n]{1,128})"')


def objects(marker: str, *, keyed: bool = False) -> Body:
    """Return the body of objects behind a marker; `keyed`: the tool is the key, its arguments the value."""
    opening_mark = re.compile(marker)

    def read(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
        opener = opening_mark.match(scan.text, start)
        if opener is None:
            return None
        content_start = scan.gap(opener.end())
        fence = _FENCE.match(scan.text, content_start)
        body_start = fence.end() if fence else content_start
        opening = opener[0].strip()
        span = ObjectReader(scan, tools, keyed=keyed).sequence(body_start, (opening, "\n```"))
        if span is None:
            return None
        if fence and scan.text.startswith("```", fence_end := scan.space(span.end)):
            return span._replace(end=fence_end + 3)
        if stray := _STRAY.match(scan.text, span.end):
            return span._replace(end=stray.end())
        return _with_stray_object(scan, span, opening, body_start)

    return Body(rf"(?:{marker})(?:\s*{COMMENT})*(?:\s*```[\w-]*)?{OBJECT}", read)


def _with_stray_object(scan: Scan, span: CallSpan, opening: str, body_start: int) -> CallSpan:
    """Return an object that is no call, up to the closing tag, as a bad call or as a part of the only one."""
    if not _NEXT_OBJECT.match(scan.text, span.end):
        return span
    closing = scan.find(f"</{opening[1:]}", span.end)
    if closing < 0 or 0 <= scan.find(opening, span.end) < closing:
        return span
    if span.calls[1:]:
        return CallSpan([*span.calls, as_written(scan, "", scan.space(span.end), closing)], closing)
    return CallSpan([span.calls[0]._replace(arguments=scan.text[body_start:closing].strip())], closing)


class ObjectReader:
    """Reads objects that are calls of declared tools."""

    # `keyed`: as for `objects`. `must_be_exact`: an object must be a call and nothing else, with arguments
    # that are an object.
    def __init__(
        self, scan: Scan, tools: ToolTable, *, keyed: bool = False, must_be_exact: bool = False
    ) -> None:
        self.scan = scan
        self.text = scan.text
        self.tools = tools
        self.keyed = keyed
        self.must_be_exact = must_be_exact

    def sequence(self, start: int, stops: Sequence[str]) -> CallSpan | None:
        """Read one object, several or a list; None if no call of a declared tool is among them."""
        calls = list[TextCall]()
        is_sure = self.tools.undeclared
        self.tools = self.tools.with_undeclared()  # beside a call of a declared tool, any other is one, too
        end = cursor = self.scan.space(start)
        while self.text.startswith(("{", "["), cursor) and len(calls) <= MOST_CALLS:
            if self.text[cursor] == "[":
                cursor = self.scan.space(cursor + 1)
                continue
            members = self.scan.members_at(cursor)
            if members.end is None:
                faulty = self._python_object(cursor) or self._broken_object(members, stops)
                is_glued = {*"\n,;"}.isdisjoint(self.text[end:cursor])
                if calls and is_glued and not faulty[0].name:  # it may be what is left of the arguments
                    break
                call, end = faulty
            else:
                call = self.call_of(members)
                if call is None:
                    break
                end = members.end
            calls.append(call)
            cursor = self.scan.gap(end)
            while self.text.startswith(("]", ",", ";"), cursor):
                if self.text[cursor] == "]":
                    end = cursor + 1
                cursor = self.scan.gap(cursor + 1)
        has_call = calls if is_sure else any(call.name in self.tools.schemas for call in calls)
        return CallSpan(calls, end) if has_call else None

    def call_of(self, members: Members) -> TextCall | None:
        """Return the call that a JSON object is; None if it is none, or of no declared tool."""
        fields = members.fields
        if self.keyed:
            for key, (value, start, end) in fields.items():
                name = self.tools.name_of(key)
                if name and isinstance(value, dict):
                    return self._with_nothing_else(members, TextCall(name, self.text[start:end]), key)
            return None
        inner = fields.get("function")
        if inner is None or not isinstance(inner[0], dict):
            return self._named_call(members)
        call = self.call_of(self.scan.members_at(inner[1]))
        return self._with_nothing_else(members, call, "function") if call else None

    def _named_call(self, members: Members) -> TextCall | None:
        """Return the call of an object that names a tool and its arguments beside each other."""
        fields = members.fields
        name_key, name = self.name_in(members)
        args_key = next((key for key in ARGUMENTS if key in fields), None)
        call = TextCall(name, None)
        if args_key is None:
            lacks_call = name is None or self.must_be_exact or members.end is None
            return None if lacks_call else self._with_nothing_else(members, call, name_key)
        value, start, end = fields[args_key]
        call = call._replace(arguments=value if isinstance(value, str) else self.text[start:end])
        if name is None:  # markup of prompted calling says that it is a call
            if not self.tools.undeclared or self.must_be_exact:
                return None
            return self._with_nothing_else(members, call._replace(name=""), args_key, *NAMES)
        is_like_object = is_object(value) or (isinstance(value, str) and value.startswith("{"))
        is_exact = is_like_object or not self.must_be_exact
        if not is_exact or _is_declaration(value, self.tools.schema_of(name)):
            return None
        return self._with_nothing_else(members, call, name_key, args_key)

    def name_in(self, members: Members) -> tuple[str | None, str | None]:
        """Return the key that names a tool, and the tool; None for each that is not there."""
        for key in NAMES:
            if key in members.fields and isinstance(word := members.fields[key][0], str):
                return key, self.tools.name_of(word)
        return None, None

    def _with_nothing_else(self, members: Members, call: TextCall, *keys: str | None) -> TextCall | None:
        """Return a call whose object has these members alone; a bad one if it has others, or one twice."""
        fields = members.fields
        others = fields.keys() - {*keys, *LABELS}
        others -= {key for key in ("type", "action") if key in fields and fields[key][0] in _KINDS}
        if others and self.must_be_exact:
            return None
        end = members.end or max(end for _, _, end in fields.values())
        raw = self.text[members.start : end]
        says_twice = len(keys) > 1 and not others.isdisjoint((*NAMES, *ARGUMENTS))
        if members.has_repeated_key or says_twice:
            flaw = Flaw("duplicate_key", f"a key occurs twice: {cut(raw)}")
        elif others:
            flaw = Flaw("malformed_call", f"a call has a name and arguments, and nothing else: {cut(raw)}")
        else:
            ids = (call.id, *(fields[key][0] for key in IDS if key in fields))
            return call._replace(id=next((word for word in ids if word and isinstance(word, str)), None))
        return call._replace(arguments=UnreadCall(raw, flaw))

    def _broken_object(self, members: Members, stops: Sequence[str]) -> tuple[TextCall, int]:
        """Return a call whose object is broken or cut off, and where it ends."""
        # The arguments are what stands from their beginning to the closing tag, the next opening one, or the
        # text's end, where the call was cut off.
        start = members.start
        key, value_start = members.broken_member or ("", start)
        if key == "function" and self.text.startswith("{", value_start):
            members = self.scan.members_at(value_start)
            key, value_start = members.broken_member or ("", start)
        fields = members.fields
        call = self.call_of(members)
        if call is not None and call.arguments is not None:  # it may lack nothing but its end
            end = max(end for _, _, end in fields.values())
            may_follow = ("<", "[", "]", "}", ",", ";", "{", "```", *(stop.strip() for stop in stops if stop))
            if self.scan.ends_at(end) or self.text.startswith(may_follow, self.scan.space(end)):
                return call, end
        name = self.name_in(members)[1]
        if name is None and self.keyed:
            name = self.tools.name_of(key)
        args_start = value_start if self.keyed or key in ARGUMENTS else start
        args_start = next((fields[key][1] for key in ARGUMENTS if key in fields), args_start)
        closing = (f"</{stop[1:]}" for stop in stops if stop.startswith("<") and not stop.startswith("<|"))
        stop = self.scan.earliest((*closing, *filter(None, stops), "<|tool_call_end|>"), args_start)
        end = self._next_object(args_start, stop)
        raw = self.text[args_start:end].rstrip()
        raw = without_closers(raw if end == stop else raw.rstrip(",;"))
        return TextCall(name or "", CutOff(raw) if end >= len(self.text) else raw), end

    def _next_object(self, start: int, end: int) -> int:
        """Return where the next call of a declared tool begins, before a position; else that position."""
        self.scan.charge((end - start) // 8)
        for call in _OBJECT.finditer(self.text, start, end):
            gap = self.text[max(start, call.start() - _GAP) : call.start()]
            if call[1] in self.tools.schemas and ("\n" in gap or gap.rstrip().endswith((",", ";"))):
                return call.start()
        return end

    def _python_object(self, start: int) -> tuple[TextCall, int] | None:
        """Read a call whose object is a Python dict, with single quotes."""
        is_python = _SINGLE.match(self.text, start) is not None
        if not is_python and self.scan.call_format:
            return None  # the prompt asked for JSON
        try:
            value, end = self.scan.literal_at(start, is_strict=not is_python)
        except ValueError:
            return None
        members = Members(start)
        members.end = end
        members.fields = {key: (item, start, end) for key, item in value.items()} if is_object(value) else {}
        members.has_repeated_key = isinstance(value, RepeatedKeys)
        name_key, name = self.name_in(members)
        if name is None:
            return None
        args_key = next((key for key in ARGUMENTS if key in members.fields), None)
        call = TextCall(name, members.fields[args_key][0] if args_key else None)
        return self._with_nothing_else(members, call, name_key, args_key) or call, end


def _is_declaration(arguments: Any, schema: Json) -> bool:
    """Return whether the model repeats a tool's schema where its arguments would be."""
    if not is_object(arguments) or arguments.get("type") != "object":
        return False
    properties: Any = schema.get("properties")
    has_such_parameter = is_object(properties) and "properties" in properties
    return is_object(arguments.get("properties")) and not has_such_parameter


BARE_OPENER = r"(?<![^\n])[\[{]|\{\s*\"(?:name|tool_name|function|type|tool)\"\s*:"
"""Where calls without markup may begin: at a line's beginning, and before an object that names something."""

_CALL_FENCE = re.compile(r"[ \t]*```([\w-]*)[ \t\r]*\n?")
_KEYS = "|".join(("tool_calls", "type", *NAMES, *ARGUMENTS, *LABELS))
EXACT_OBJECT = rf"\[?\s*\{{\s*\"(?:{_KEYS})\"\s*:"
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
    fence = _CALL_FENCE.match(scan.text, start)
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
            cut_call = _read_cut_off(reader, members, is_sure=bool(calls)) if is_whole_answer else None
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
    return CallSpan(calls, cursor) if is_cut_list else None


def _read_cut_off(reader: ObjectReader, members: Members, *, is_sure: bool) -> TextCall | None:
    """Return the call that the text ends in; `is_sure`: it is one whatever of it is there."""
    text = reader.text
    name = reader.name_in(members)[1]
    key, start = members.broken_member or ("", members.start)
    is_args_start = key in ARGUMENTS and text.startswith(("{", '"{'), start)
    if name not in reader.tools.schemas or not is_args_start:
        start = members.start
        is_args_start = is_sure and members.end is None
    if not is_args_start or not is_open(text, start):
        return None
    return as_written(reader.scan, name, start, len(text))


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
    fence = _FENCE.match(scan.text, start)
    span = _read_faulty_objects(scan, scan.space(fence.end()), tools) if fence else None
    return span and (with_closer(scan, span, "```") or span)


FAULTY = {"plain-json": _read_faulty_objects, "fenced-json": _read_faulty_fence}
"""By the format for which the prompt asked: what reads its calls if they are faulty."""
PLAIN_OBJECTS = Body(EXACT_OBJECT, read_plain)
FENCED_OBJECTS = Body("", read_fence)
