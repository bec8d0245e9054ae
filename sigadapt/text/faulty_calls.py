"""Faulty calls in the format in which a model was asked to write.

The formats leave a text alone that is no whole call of theirs, because nobody asked for one. Where the prompt
asked, the same text is a call that went wrong: it becomes a bad call with its raw text, as natively, and not
the answer. The formats' own `read` goes first. A format that is not here reads its faulty calls itself.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial

from sigadapt.text.bodies.objects import ARGUMENTS, read_body
from sigadapt.text.contract import CallSpan, TextCall, ToolTable, as_written
from sigadapt.text.scan import Scan

_FENCE = re.compile(r"```[\w-]*[ \t\r]*\n?\s*")
_WORD = re.compile(r"[\w.-]+")
_TAGS = ("<tool_call>", "</tool_call>")
_NO_BLOCK = ("\0", "\0")
_BLOCKS = {
    "hermes": _TAGS,
    "qwen3-coder-xml": _TAGS,
    "glm-4.5": _TAGS,
    "deepseek-v3.1": ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
    "kimi-k2": ("<|tool_call_begin|>", "<|tool_call_end|>"),
}
_FENCE_END = re.compile(r"\s*```")
_QWEN = re.compile(r"<function=(?P<name>[^<>\n{]{1,200})>")
_GLM = re.compile(r"<tool_call>\s*(?P<name>[^\s<>{}\[\]]{1,128})[ \t\r]*\n")


def read_faulty(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Return the faulty call in the format that the prompt asked for; None if there is none."""
    read = _READS.get(scan.call_format)
    span = read(scan, start, tools) if read is not None else None
    return span or _block(scan, start, tools)


def block_head(call_format: str, names: Iterable[str]) -> str:
    """Return a pattern of how a call begins between the tags of a format that was asked for."""
    opening = _BLOCKS.get(call_format, _NO_BLOCK)[0]
    words = "|".join(map(re.escape, names))
    return rf"{re.escape(opening)}\s*(?:(?<=\n)|[{{\[\"'`]|(?:{words or '(?!)'})(?![\w.-]))"


def begins_block(scan: Scan, start: int) -> bool:
    """Return whether the tags around a call in the format that was asked for open at a position."""
    return scan.text.startswith(_BLOCKS.get(scan.call_format, _NO_BLOCK)[0], start)


def _block(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read the content of a call's tags that is no call; its first word may name the tool."""
    opening, closing = _BLOCKS.get(scan.call_format, _NO_BLOCK)
    if scan.text.endswith("[>[", 0, start):
        return None  # MiniMax M3 writes a token before each tag
    content_start = start + len(opening)
    end = scan.find(closing, start)
    if end < 0 or not begins_block(scan, start):
        return None
    if 0 <= scan.find(opening, content_start) < end:
        return None
    raw = scan.text[content_start:end].strip()
    if not raw or raw.startswith("<"):
        return None
    word = _WORD.match(raw)
    name = word[0] if word and word[0] in tools.schemas else ""
    has_break = "\n" in scan.text[content_start : scan.space(content_start)]
    if not (name or has_break or raw.startswith(("{", "[", '"', "'", "`"))):
        return None  # a sentence names the tags
    arguments = raw[len(name) :].strip() if name else raw
    return CallSpan([TextCall(name, arguments)], end + len(closing))


def _plain(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    """Read objects that name a tool and hold arguments of any kind."""
    object_start = start
    if scan.text.startswith("[", start):
        object_start = scan.space(start + 1)
    if not scan.text.startswith("{", object_start):
        return None
    members = scan.members_at(object_start)
    key = members.broken_member[0] if members.broken_member else ""
    if key not in ARGUMENTS and members.fields.keys().isdisjoint(ARGUMENTS):
        return None
    return read_body(scan, start, tools, stops=("\n{", "\n```"))


def _read_fenced(scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
    fence = _FENCE.match(scan.text, start)
    span = _plain(scan, fence.end(), tools) if fence else None
    if span is None:
        return None
    closing = _FENCE_END.match(scan.text, span.end)
    return span._replace(end=closing.end()) if closing else span


def _between(
    scan: Scan, start: int, tools: ToolTable, *, head: re.Pattern[str], closing: str
) -> CallSpan | None:
    """Read what a call's tags hold instead of parameters."""
    opening = head.match(scan.text, start)
    name = tools.name_of(opening["name"]) if opening else None
    if opening is None or name is None:
        return None
    end = scan.earliest((closing, opening[0].strip()), opening.end())
    call = as_written(scan, name, scan.space(opening.end()), end)
    if scan.text.startswith(closing, end):
        end += len(closing)
    return CallSpan([call], end)


_READS: dict[str, Callable[[Scan, int, ToolTable], CallSpan | None]] = {
    "plain-json": _plain,
    "fenced-json": _read_fenced,
    "qwen3-coder-xml": partial(_between, head=_QWEN, closing="</function>"),
    "glm-4.5": partial(_between, head=_GLM, closing="</tool_call>"),
}
