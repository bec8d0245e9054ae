"""gpt-oss' Harmony: messages with a channel and a recipient. Its cousins: Beam, Muse.

    <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>commentary to=functions.NAME
    <|constrain|>json<|message|>{...}<|call|>

A message to a declared tool is a call, read where its header begins. The reader takes the header of an
`analysis` for the beginning of a thinking, and any other header for a token that says nothing
(`thinking.py`). At the beginning of a text a header may lack its first token, which the prompt holds, and
servers that drop special tokens leave `analysis...assistantcommentary to=functions.NAME json{...}`
(`read_headless`).
"""

import re
from contextlib import suppress

from sigadapt.schemas.arguments import CutOff
from sigadapt.text.contract import Calls, TextCall, TextFormat, Tools
from sigadapt.text.formats.parameters import parameter_tags, parameters_at
from sigadapt.text.quotations import is_open
from sigadapt.text.scan import Scan

_OPENER = r"<\|(?:start|channel|message)\|>(?=[^<]{0,300}(?:<|\Z))"
_HEADER = re.compile(r"(?:<\|(?:start|channel|constrain)\|>[^<>]{0,300}){1,6}(?P<message><\|message\|>|\Z)")
_HEADLESS = re.compile(r"\s*to=[\w.:/-]{1,200}[^<>]{0,100}(?=<\|(?:channel|constrain|message)\|>)")
_TO = re.compile(r"\bto=(?P<name>[\w.:/-]{1,200})")
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


def read(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read a message to a declared tool."""
    headless = _HEADLESS.match(scan.text) if at == 0 else None
    header = _HEADER.match(scan.text, headless.end() if headless else at)
    to = _TO.search(scan.text, at, header.end()) if header else None
    name = tools.name_of(to["name"]) if to and to["name"] not in _PEOPLE else None
    if header is None or name is None:
        return None
    if not header["message"]:
        return Calls([TextCall(name, CutOff(""))], len(scan.text))
    begin = scan.space(header.end())
    if _MARKUP.match(scan.text, begin) and not _PREFIX.match(scan.text, begin):
        return None  # the body is a call in markup of its own
    call, end = _call_at(scan, header.end(), name, tools)
    tails = _TAILS.match(scan.text, end)
    return Calls([call], tails.end() if tails else end)


def _call_at(scan: Scan, at: int, name: str, tools: Tools) -> tuple[TextCall, int]:
    """Return the call whose body begins at a place, and the end of the body."""
    prefix = _PREFIX.match(scan.text, at)
    if prefix is not None:
        tags = parameter_tags(prefix["prefix"])
        args, end, whole = parameters_at(scan, at, tools.schema_of(name), tags)
        return TextCall(name, CutOff(scan.text[at:]) if whole is None else args), end
    begin = scan.space(at)
    try:
        _, behind = scan.value_at(begin)
    except ValueError:
        behind = begin
    # A string of the arguments may hold any token, so the body ends behind its JSON.
    end = scan.search(_BODY_ENDS, behind)
    raw = scan.text[begin : end.start() if end else len(scan.text)].strip()
    if end is None and is_open(raw, 0):
        return TextCall(name, CutOff(raw)), len(scan.text)
    if end is None and behind > begin:
        return TextCall(name, scan.text[begin:behind]), behind
    return TextCall(name, raw), end.start() if end else len(scan.text)


def read_headless(scan: Scan, tools: Tools) -> tuple[list[str], list[TextCall], int] | None:
    """Read a text whose first header lost tokens: thoughts, calls, and where the answer begins."""
    headless = _HEADLESS.match(scan.text)
    if headless is not None:
        span = read(scan, 0, tools)
        return ([], span.calls, span.end) if span else ([], [], headless.end())
    if not _STRIPPED.match(scan.text):
        return None
    thoughts = list[str]()
    calls = list[TextCall]()
    place = 0
    while part := _PART.match(scan.text, place):
        name = tools.name_of(part["name"]) if part["name"] else None
        if name is None and part["channel"] != "analysis":
            return thoughts, calls, part.end()
        if name is not None:
            with suppress(ValueError):
                _, place = scan.value_at(part.end())
                calls.append(TextCall(name, scan.text[part.end() : place]))
                continue
        following = scan.search(_NEXT_PART, part.end())
        place = following.start() if following else len(scan.text)
        body = scan.text[part.end() : place]
        if name is None:
            thoughts.append(body)
        else:
            raw = body.strip()
            calls.append(TextCall(name, raw if following or not is_open(raw, 0) else CutOff(raw)))
    return thoughts, calls, place


FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        "harmony",
        _OPENER,
        read,
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Paris"}<|call|>',
        "The recipient in the role or in the channel; messages whose special tokens the server dropped.",
        head=r"<\|(?:start|channel|message)\|>\s*(?:[^\s<>]{1,200}(?:\s+[^\s<>]{1,200}){0,5}\s*)?(?:<|\Z)",
    ),
)
