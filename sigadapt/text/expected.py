"""Faulty calls in the format in which a model was asked to write.

The formats leave a text alone that is no whole call of theirs, because nobody asked for one. Where the prompt
asked, the same text is a call that went wrong: it becomes a bad call with its raw text, as natively, and not
the answer. The formats' own `read` goes first. A format that is not here reads its faulty calls itself.
"""

import re
from collections.abc import Callable

from sigadapt.schemas.arguments import CutOff
from sigadapt.text.contract import MOST_CALLS, Found, TextCall, Tools
from sigadapt.text.formats.json_calls import ARGUMENTS, read_body
from sigadapt.text.formats.pythonic import call_at
from sigadapt.text.scan import Scan

_FENCE = re.compile(r"```[\w-]*[ \t]*\n?\s*")
_FENCE_END = re.compile(r"\s*```")
_QWEN = re.compile(r"<function=(?P<name>[^<>\n{]{1,200})>")
_GLM = re.compile(r"<tool_call>\s*(?P<name>[^\s<>{}\[\]]{1,128})[ \t]*\n")
_HEAD = re.compile(r"(?P<name>[^\W\d][\w.-]{0,127})\s*\(")
_CALL_END = re.compile(r"\)(?=\s*(?:\]|,\s*[\w.-]+\s*\(|\Z))")


def read_expected(scan: Scan, at: int, tools: Tools) -> Found | None:
    """Return the faulty call in the expected format; None if there is none."""
    read = _READS.get(scan.expected)
    return read(scan, at, tools) if read is not None else None


def _plain(scan: Scan, at: int, tools: Tools) -> Found | None:
    """Read objects that name a tool and hold arguments of any kind."""
    start = scan.space(at + 1) if scan.text.startswith("[", at) else at
    if not scan.text.startswith("{", start):
        return None
    members = scan.members_at(start)
    broken = members.broken[0] if members.broken else ""
    if broken not in ARGUMENTS and members.fields.keys().isdisjoint(ARGUMENTS):
        return None
    return read_body(scan, at, tools, stops=("\n{", "\n```"))


def _fenced(scan: Scan, at: int, tools: Tools) -> Found | None:
    fence = _FENCE.match(scan.text, at)
    found = _plain(scan, fence.end(), tools) if fence else None
    if found is None:
        return None
    closing = _FENCE_END.match(scan.text, found.end)
    return found._replace(end=closing.end() if closing else found.end)


def _between(scan: Scan, at: int, tools: Tools, *, head: re.Pattern[str], closing: str) -> Found | None:
    """Read what stands between a call's tags in the place of its parameters."""
    found = head.match(scan.text, at)
    name = tools.name_of(found["name"]) if found else None
    if found is None or name is None:
        return None
    end = scan.earliest((closing, found[0].strip()), found.end())
    raw = scan.text[found.end() : end].strip()
    if end == len(scan.text):
        return Found([TextCall(name, CutOff(raw))], end)
    closed = scan.text.startswith(closing, end)
    return Found([TextCall(name, raw)], end + len(closing) if closed else end)


def _qwen(scan: Scan, at: int, tools: Tools) -> Found | None:
    return _between(scan, at, tools, head=_QWEN, closing="</function>")


def _glm(scan: Scan, at: int, tools: Tools) -> Found | None:
    return _between(scan, at, tools, head=_GLM, closing="</tool_call>")


def _pythonic(scan: Scan, at: int, tools: Tools) -> Found | None:
    """Read a list of calls of which some are no literals in keywords; their arguments stay as written."""
    if not scan.text.startswith("[", at):
        return None
    calls, place = list[TextCall](), scan.space(at + 1)
    while len(calls) < MOST_CALLS and (head := _HEAD.match(scan.text, place)):
        good = call_at(scan, place, tools)
        call, end = good or _broken(scan, head, tools)
        if call is None:
            return None
        calls.append(call)
        place = scan.space(end)
        if not scan.text.startswith(",", place):
            break
        place = scan.space(place + 1)
    if not calls or not (scan.text.startswith("]", place) or place == len(scan.text)):
        return None
    return Found(calls, min(place + 1, len(scan.text)))


def _broken(scan: Scan, head: re.Match[str], tools: Tools) -> tuple[TextCall | None, int]:
    name = tools.name_of(head["name"])
    closing = _CALL_END.search(scan.text, head.end())
    end = closing.start() if closing else len(scan.text)
    scan.charge(end - head.end())
    if name is None:
        return None, end
    raw = scan.text[head.end() : end]
    return (TextCall(name, raw), end + 1) if closing else (TextCall(name, CutOff(raw.rstrip())), end)


_READS: dict[str, Callable[[Scan, int, Tools], Found | None]] = {
    "plain-json": _plain,
    "fenced-json": _fenced,
    "qwen3-coder-xml": _qwen,
    "glm-4.5": _glm,
    "pythonic": _pythonic,
}
