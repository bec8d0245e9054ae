"""gpt-oss' Harmony: messages with a channel and a recipient. Its cousins: Beam, Muse.

    <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>commentary to=functions.NAME
    <|constrain|>json<|message|>{...}<|call|>

A message to a declared tool is a call. Without a recipient, `analysis` is reasoning and everything else is
said to the user. Servers that drop special tokens leave `analysis...assistantcommentary to=functions.NAME
json{...}`, which is read too.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sigadapt.schemas.arguments import CutOff
from sigadapt.text.contract import TextCall, Tools
from sigadapt.text.formats.json_calls import open_ended
from sigadapt.text.formats.parameters import parameter_tags, parameters_at
from sigadapt.text.scan import Scan

NAME = "harmony"
_MESSAGE = "<|message|>"
_HEADER = re.compile(r"(?:<\|start\|>|<\|channel\|>)")
_TOKEN = re.compile(r"<\|(?:start|end|channel|message|call|return|constrain|eom)\|>")
_ENDS = re.compile(r"<\|(?:start|end|channel|call|return|eom)\|>")
_TO = re.compile(r"\bto=(?P<name>[\w.:/-]{1,200})")
_BEGUN = re.compile(r"\s*(?:assistant\s*)?<\|(?:start|channel|message)\|>")
_INSIDE = re.compile(
    r"""<\|start\|>assistant|(?<![`"'])<\|channel\|>[^<>]{0,300}(?:<\|constrain\|>[^<>]{0,100})?<\|message\|>"""
)
_CLOSERS = re.compile(r"(?:\s*<\|(?:end|call|return|eom)\|>)*")
_STRIPPED = re.compile(
    r"\A\s*(?:assistant)?(?:analysis(?=.*assistant(?:commentary\s+to=|final|analysis))"
    r"|commentary\s+to=functions\.)",
    re.DOTALL,
)
_PART = re.compile(
    r"(?:\A\s*|assistant)(?P<channel>analysis|commentary|final)(?P<to>\s+to=[\w.:-]{1,200}\s*(?:json|code)?\s*)?"
)
_PREFIX = re.compile(r"\A\s*<(?P<prefix>\w{1,20}:)parameter\b")


class Message(NamedTuple):
    """One message: its channel, its recipient (empty for none), its body, and whether something ended it."""

    channel: str
    to: str
    body: str
    ended: bool


def is_harmony(text: str) -> bool:
    """Return whether a text consists of such messages."""
    return bool(_BEGUN.match(text) or _STRIPPED.match(text) or _INSIDE.search(text))


def messages(text: str, most: int) -> Iterator[Message]:
    """Yield the messages of a text, in order; text before the first one, or behind `most`, has no channel."""
    if _MESSAGE not in text and "<|channel|>" not in text:
        text = _PART.sub(
            lambda part: f"<|start|>assistant<|channel|>{part['channel']}{part['to'] or ''}{_MESSAGE}", text
        )
    place = 0
    first = _TOKEN.search(text)
    if first is not None and first.start() and first[0] != _MESSAGE:
        said = text[: first.start()]
        yield Message("", "", "" if said.strip() == "assistant" else said, ended=True)
        place = first.start()
    while place < len(text):
        most -= 1
        if most < 0:
            yield Message("", "", text[place:], ended=False)
            return
        begin = text.find(_MESSAGE, place)
        if begin < 0:
            yield _remaining(text[place:])
            return
        header = text[place:begin]
        body = begin + len(_MESSAGE)
        end = _ENDS.search(text, body)
        behind = end.start() if end else len(text)
        yield Message(_channel(header), _recipient(header), text[body:behind], ended=end is not None)
        place = behind


def _remaining(text: str) -> Message:
    """Return what stands behind the last body: words without a header, or a header that the text ends in."""
    words = text[_CLOSERS.match(text).end() :]  # pyright: ignore[reportOptionalMemberAccess]  # (matches nothing too)
    if words.startswith("<|"):
        return Message(_channel(words), _recipient(words), "", ended=False)
    return Message("", "", words, ended=True)


def _channel(header: str) -> str:
    words = [part.split("<|", 1)[0].split() for part in header.split("<|channel|>")[1:]]
    named = [each[0] for each in words if each]
    return named[-1] if named else ""


def _recipient(header: str) -> str:
    found = _TO.search(header)
    return found["name"] if found else ""


def call_of(message: Message, tools: Tools) -> TextCall | None:
    """Return the call that a message to a declared tool is; None for any other message."""
    name = tools.name_of(message.to) if message.to and message.to not in ("user", "assistant") else None
    if name is None:
        return None
    body = message.body.strip()
    prefix = _PREFIX.match(body)
    if prefix is not None:
        scan = Scan(body)
        args, _, closed = parameters_at(scan, 0, tools.schema_of(name), parameter_tags(prefix["prefix"]))
        return TextCall(name, CutOff(body) if closed is None else args)
    if not body.startswith("<") and (message.ended or not open_ended(body, 0)):
        return TextCall(name, body)
    return None if body.startswith("<") else TextCall(name, CutOff(body))
