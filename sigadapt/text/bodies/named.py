"""A tool's name in markup, and its arguments as JSON behind it: Mistral v11, DeepSeek V3, Kimi K2 and kin.

Each row is a pattern of what stands before the JSON, with the name (and an id) in it. Arguments are one JSON
object. If it is broken, what stands up to the closing tag is a bad call; if the text ends in
it, it is cut off.
"""

import re

from sigadapt.schemas.arguments import CutOff
from sigadapt.text.contract import MOST_CALLS, CallSpan, Rule, TextCall, ToolTable, as_written
from sigadapt.text.prose import announces_example
from sigadapt.text.quotations import is_open
from sigadapt.text.scan import Scan

_NO_TAIL = ""
_OPENING = ("[TOOL_CALLS]", ">>>", "<|tool_call_begin|>")
_OBJECT = re.compile(r"\s*(?:[,;]\s*)?\{")


class NameAndObject:
    """What stands before the arguments, with the groups `name` and perhaps `id`, and what stands behind."""

    def __init__(self, head: str, *, tail: str = _NO_TAIL, stops: tuple[str, ...] = ()) -> None:
        self.head = head
        self._head = re.compile(head)
        self._tail = re.compile(tail)
        self._stops = stops  # what ends arguments that are broken

    def read(self, scan: Scan, start: int, tools: ToolTable, /) -> CallSpan | None:
        """Read one call whose head is at a position, and those that follow it at once."""
        calls = list[TextCall]()
        end = start
        while len(calls) <= MOST_CALLS:
            opening = self._head.match(scan.text, end)
            name = tools.name_of(opening["name"]) if opening else None
            if opening is None or name is None:
                break
            call, args_end = self._arguments(scan, opening, name)
            closing = self._tail.match(scan.text, args_end)
            if closing is None and not isinstance(call.arguments, CutOff):  # broken, if anything closes it
                raw = scan.text[opening.end("name") : args_end].strip()
                args_end = scan.space(args_end)
                if not scan.text.startswith(self._stops, args_end):
                    break
                call = call._replace(arguments=raw)
            calls.append(call)
            end = closing.end() if closing else args_end
        return CallSpan(calls, end) if calls else None

    def _arguments(self, scan: Scan, head: re.Match[str], name: str) -> tuple[TextCall, int]:
        start = scan.space(head.end())
        call_id = head.groupdict().get("id")
        try:
            value, end = scan.value_at(start)
        except ValueError:
            end = scan.earliest(self._stops, start)
            return as_written(scan, name, start, end, call_id), end
        if isinstance(value, str) and not scan.call_format:
            return TextCall(name, value, call_id), end
        if not (self._tail.pattern != _NO_TAIL and self._tail.match(scan.text, end)):
            # What stands before the mark that closes them, or another object, is a part of the arguments.
            stop = scan.earliest(self._stops, end)
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
    return _IN_BRACKETS.read(scan, start, tools)


_BARE_HEAD = re.compile(r"(?P<name>[\w.:-]{1,128})(?:\[CALL_ID\]\w+)?(?:\[ARGS\]|\r?\n|(?=\{))\s*(?=\{)")
_IN_BRACKETS = NameAndObject(
    r"\[Calling tool: ?(?P<name>[\w.-]{1,128})\((?=\{)", tail=r"\s*\)\s*\]", stops=(")]",)
)
BARE_NAME = Rule("", read_bare)
BRACKETED = Rule(_IN_BRACKETS.head, read_bracketed)
