"""A tool's name in markup, and its arguments behind it: Mistral v11, DeepSeek V3, Kimi K2, Harmony and kin.

    [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}
    <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather
    <|constrain|>json<|message|>{"city": "Paris"}<|call|>

A row of `name_and_object` is a pattern of what stands before the JSON, with the name (and an id) in it.
Arguments are one JSON object. If it is broken, what stands up to the closing tag is a bad call; if the text
ends in it, it is cut off.

gpt-oss' Harmony (its cousins: Beam, Muse) has messages with a channel and a recipient. One to a declared tool
is a call, read where its header begins. The reader takes the header of an `analysis` for the beginning of a
thinking, and any other header for a token that says nothing (`openers.py`). At the beginning of a text a
header may lack its first token, which the prompt holds, and servers that drop special tokens leave
`analysis...assistantcommentary to=functions.NAME json{...}` (`read_headless`).
"""

import re
from contextlib import suppress

from sigadapt.schemas.arguments import CutOff
from sigadapt.text.bodies.tags import PARAMETERS, TagReader
from sigadapt.text.contract import MOST_CALLS, Body, CallSpan, Scan, TextCall, ToolTable, as_written
from sigadapt.text.quotations import announces_example, is_open

_OPENING = ("[TOOL_CALLS]", ">>>", "<|tool_call_begin|>")
_OBJECT = re.compile(r"\s*(?:[,;]\s*)?\{")


def name_and_object(head: str, *, tail: str = "", stops: tuple[str, ...] = ()) -> Body:
    """Return the body of arguments behind a head with the groups `name` and perhaps `id`, and before a tail.

    `stops`: what ends arguments that are broken.
    """
    opening_mark = re.compile(head)
    closing_mark = re.compile(tail)

    def read(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
        calls = list[TextCall]()
        end = start
        while len(calls) <= MOST_CALLS:
            opening = opening_mark.match(scan.text, end)
            name = tools.name_of(opening["name"]) if opening else None
            if opening is None or name is None:
                break
            call, args_end = arguments(scan, opening, name)
            closing = closing_mark.match(scan.text, args_end)
            if closing is None and not isinstance(call.arguments, CutOff):  # broken, if anything closes it
                raw = scan.text[opening.end("name") : args_end].strip()
                args_end = scan.space(args_end)
                if not scan.text.startswith(stops, args_end):
                    break
                call = call._replace(arguments=raw)
            calls.append(call)
            end = closing.end() if closing else args_end
        return CallSpan(calls, end) if calls else None

    def arguments(scan: Scan, opening: re.Match[str], name: str) -> tuple[TextCall, int]:
        start = scan.space(opening.end())
        call_id = opening.groupdict().get("id")
        try:
            value, end = scan.value_at(start)
        except ValueError:
            end = scan.earliest(stops, start)
            return as_written(scan, name, start, end, call_id), end
        if isinstance(value, str) and not scan.call_format:
            return TextCall(name, value, call_id), end
        if not tail or not closing_mark.match(scan.text, end):
            # What stands before the mark that closes them, or another object, is a part of the arguments.
            stop = scan.earliest(stops, end)
            is_closed = stop < len(scan.text) and not scan.text.startswith(_OPENING, stop)
            is_part = is_closed and not scan.text.startswith("<", scan.space(end))
            if is_part or _OBJECT.match(scan.text, end):
                end += len(scan.text[end:stop].rstrip())
        return TextCall(name, scan.text[start:end], call_id), end

    return Body(head, read)


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
_IN_BRACKETS = name_and_object(
    r"\[Calling tool: ?(?P<name>[\w.-]{1,128})\((?=\{)", tail=r"\s*\)\s*\]", stops=(")]",)
)
BARE_NAME = Body("", read_bare)
BRACKETED = Body(_IN_BRACKETS.head, read_bracketed)


HARMONY_OPENER = r"<\|(?:start|channel|message)\|>(?=[^<]{0,300}(?:<|\Z))"
_HEADER = re.compile(r"(?:<\|(?:start|channel|constrain)\|>[^<>]{0,300}){1,6}(?P<message><\|message\|>|\Z)")
_HEADLESS = re.compile(r"\s*to=[\w.:/-]{1,200}[^<>]{0,100}(?=<\|(?:channel|constrain|message)\|>)")
_TO = re.compile(r"\bto=(?P<name>[\w.:/-]{0,200})")
TO_TOOL = (
    r"(?:<\|(?:start|channel|constrain)\|>(?:(?!\bto=)[^<>]){0,300}){1,6}\bto=(?!(?:user|assistant|all)\b)"
)
"""A header that names a recipient."""
_PEOPLE = ("user", "assistant")
_BODY_ENDS = re.compile(r"<\|(?:start|end|channel|call|return|eom)\|>")
_TAILS = re.compile(r"(?:\s*<\|(?:end|call|return|eom)\|>)*")
_PREFIX = re.compile(r"\s*<(?P<prefix>\w{1,20}:)parameter\b")
_MARKUP = re.compile(r"<(?!\|)")
_STRIPPED = re.compile(
    r"\s*(?:assistant)?(?:analysis(?=.*assistant(?:commentary\s+to=|final|analysis))"
    r"|commentary\s+to=functions\.)",
    re.DOTALL,
)
_PART = re.compile(
    r"\s*(?:assistant)?(?P<channel>analysis|commentary|final)"
    r"(?:\s+to=(?P<name>[\w.:-]{1,200})\s*(?:json|code)?\s*)?"
)
_NEXT_PART = re.compile(r"assistant(?=analysis|commentary|final)")


def read_message(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read a message to a declared tool."""
    headless = _HEADLESS.match(scan.text) if start == 0 else None
    header_start = headless.end() if headless else start
    header = _HEADER.match(scan.text, header_start)
    recipients = _TO.findall(scan.text, start, header.end()) if header else []
    recipient = next((name for name in recipients if name not in _PEOPLE), None)
    if header is None or recipient is None:
        return None
    name = tools.name_of(recipient)
    if name is None and tools.undeclared:
        name = ""
    if name is None:
        return None
    if not header["message"]:
        return CallSpan([TextCall(name, CutOff(""))], len(scan.text))
    body_start = scan.space(header.end())
    if _MARKUP.match(scan.text, body_start) and not _PREFIX.match(scan.text, body_start):
        return None  # the body is a call in other markup
    call, end = _call_at(scan, header.end(), name, tools)
    tails = _TAILS.match(scan.text, end)
    if tails is not None:
        end = tails.end()
    return CallSpan([call], end)


def _call_at(scan: Scan, start: int, name: str, tools: ToolTable) -> tuple[TextCall, int]:
    """Return the call whose body begins at a position, and the end of the body."""
    prefix = _PREFIX.match(scan.text, start)
    if prefix is not None:
        args, end = TagReader(scan, PARAMETERS, prefix, tools.schema_of(name)).parameters(start)
        if args is None:
            return TextCall(name, CutOff(scan.text[start:])), end
        return TextCall(name, args), end
    body_start = scan.space(start)
    try:
        _, value_end = scan.value_at(body_start)
    except ValueError:
        value_end = body_start
    # A string of the arguments may hold any token, so the body ends after its JSON.
    body_end = scan.search(_BODY_ENDS, value_end)
    if body_end is not None:
        return TextCall(name, scan.text[body_start : body_end.start()].strip()), body_end.start()
    raw = scan.text[body_start:].strip()
    if is_open(raw, 0):
        return TextCall(name, CutOff(raw)), len(scan.text)
    if value_end > body_start:
        return TextCall(name, scan.text[body_start:value_end]), value_end
    return TextCall(name, raw), len(scan.text)


def read_headless(scan: Scan, tools: ToolTable) -> tuple[list[str], list[TextCall], int] | None:
    """Read a text whose first header lost tokens: thoughts, calls, and where the answer begins."""
    headless = _HEADLESS.match(scan.text)
    if headless is not None:
        span = read_message(scan, 0, tools)
        return ([], span.calls, span.end) if span else ([], [], headless.end())
    if not _STRIPPED.match(scan.text):
        return None
    thoughts = list[str]()
    calls = list[TextCall]()
    cursor = 0
    while message := _PART.match(scan.text, cursor):
        name = tools.name_of(message["name"]) if message["name"] else None
        if name is None and message["channel"] != "analysis":
            return thoughts, calls, message.end()
        if name is not None:
            with suppress(ValueError):
                _, cursor = scan.value_at(message.end())
                calls.append(TextCall(name, scan.text[message.end() : cursor]))
                continue
        following = scan.search(_NEXT_PART, message.end())
        cursor = following.start() if following else len(scan.text)
        body = scan.text[message.end() : cursor]
        if name is None:
            thoughts.append(body)
            continue
        raw = body.strip()
        is_cut = not following and is_open(raw, 0)
        arguments = CutOff(raw) if is_cut else raw
        calls.append(TextCall(name, arguments))
    return thoughts, calls, cursor


HARMONY = Body(
    r"<\|(?:start|channel|message)\|>\s*(?:[^\s<>]{1,200}(?:\s+[^\s<>]{1,200}){0,5}\s*)?(?:<|\Z)",
    read_message,
)
