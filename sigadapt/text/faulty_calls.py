"""Faulty calls in the format in which a model was asked to write.

The formats leave a text alone that is no whole call of theirs, because nobody asked for one. Where the prompt
asked, the same text is a call that went wrong: it becomes a bad call with its raw text, as natively, and not
the answer. The formats' own `read` goes first. A format that is not here reads its faulty calls itself.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial

from sigadapt.text.contract import Calls, TextCall, Tools, as_written
from sigadapt.text.formats.json_calls import ARGUMENTS, read_body
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


def read_faulty(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Return the faulty call in the format that was asked for; None if there is none."""
    read = _READS.get(scan.call_format)
    return (read(scan, at, tools) if read is not None else None) or _block(scan, at, tools)


def block_head(call_format: str, names: Iterable[str]) -> str:
    """Return a pattern of how a call begins between the tags of a format that was asked for."""
    opening = _BLOCKS.get(call_format, _NO_BLOCK)[0]
    words = "|".join(map(re.escape, names))
    return rf"{re.escape(opening)}\s*(?:(?<=\n)|[{{\[\"'`]|(?:{words or '(?!)'})(?![\w.-]))"


def begins_block(scan: Scan, at: int) -> bool:
    """Return whether the tags around a call in the format that was asked for open at a place."""
    return scan.text.startswith(_BLOCKS.get(scan.call_format, _NO_BLOCK)[0], at)


def _block(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read what stands between the tags of a call and is no call: its first word may name the tool."""
    opening, closing = _BLOCKS.get(scan.call_format, _NO_BLOCK)
    if scan.text.endswith("[>[", 0, at):
        return None  # MiniMax M3 writes a token before each tag
    begin = at + len(opening)
    end = scan.find(closing, at)
    if end < 0 or not begins_block(scan, at) or 0 <= scan.find(opening, begin) < end:
        return None
    raw = scan.text[begin:end].strip()
    word = _WORD.match(raw)
    name = word[0] if word and word[0] in tools.schemas else ""
    is_call = (
        name or raw.startswith(("{", "[", '"', "'", "`")) or "\n" in scan.text[begin : scan.space(begin)]
    )
    if raw.startswith("<") or not raw or not is_call:
        return None  # a sentence names the tags
    return Calls([TextCall(name, raw[len(name) :].strip() if name else raw)], end + len(closing))


def _plain(scan: Scan, at: int, tools: Tools) -> Calls | None:
    """Read objects that name a tool and hold arguments of any kind."""
    start = scan.space(at + 1) if scan.text.startswith("[", at) else at
    if not scan.text.startswith("{", start):
        return None
    members = scan.members_at(start)
    key = members.broken[0] if members.broken else ""
    if key not in ARGUMENTS and members.fields.keys().isdisjoint(ARGUMENTS):
        return None
    return read_body(scan, at, tools, stops=("\n{", "\n```"))


def _read_fenced(scan: Scan, at: int, tools: Tools) -> Calls | None:
    fence = _FENCE.match(scan.text, at)
    calls = _plain(scan, fence.end(), tools) if fence else None
    if calls is None:
        return None
    closing = _FENCE_END.match(scan.text, calls.end)
    return calls._replace(end=closing.end() if closing else calls.end)


def _between(scan: Scan, at: int, tools: Tools, *, head: re.Pattern[str], closing: str) -> Calls | None:
    """Read what stands between a call's tags in the place of its parameters."""
    opening = head.match(scan.text, at)
    name = tools.name_of(opening["name"]) if opening else None
    if opening is None or name is None:
        return None
    end = scan.earliest((closing, opening[0].strip()), opening.end())
    call = as_written(scan, name, scan.space(opening.end()), end)
    return Calls([call], end + len(closing) if scan.text.startswith(closing, end) else end)


_READS: dict[str, Callable[[Scan, int, Tools], Calls | None]] = {
    "plain-json": _plain,
    "fenced-json": _read_fenced,
    "qwen3-coder-xml": partial(_between, head=_QWEN, closing="</function>"),
    "glm-4.5": partial(_between, head=_GLM, closing="</tool_call>"),
}
