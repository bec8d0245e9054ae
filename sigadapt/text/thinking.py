"""Where a model's thinking begins and ends: `<think>...</think>` and its kin.

Rules, by what servers do with each kind:

 a. Tags of plain text open a thinking only at the text's beginning or right behind a thinking or a call;
    later they are text. Tokens that are no text open one anywhere, unless a sentence goes on around them.
 b. Where a prompt has opened the thinking (`starts_in_reasoning`), the first closing tag of any kind ends it.
    A closing token that nothing opened shows the same; the plain `</think>` alone does not.
 c. A thinking that nothing closes goes on to the end, or to the first call that stands in markup: models
    forget the tag. Calls in a closed thinking are only thought of.
"""

import re
from typing import NamedTuple


class Kind(NamedTuple):
    """One kind of thinking, by regular expressions of what opens and what closes it."""

    opener: str
    closer: str
    anywhere: bool = False  # whether it opens anywhere
    shows: bool = False  # whether a closer that nothing opened shows that the text began in a thinking
    may_be_call: bool = False  # whether its opener may be the header of a call: the format is asked first


KINDS: tuple[Kind, ...] = (
    Kind(r"<think>", r"</think>"),
    Kind(r"<thinking>", r"</thinking>"),
    Kind(r"<thought>", r"</thought>"),
    Kind(r"<reasoning>", r"</reasoning>"),
    Kind(r"<seed:think>", r"</seed:think>", shows=True),
    Kind(r"<mm:think>", r"</mm:think>", shows=True),
    Kind(r"<ifm\|think>", r"</ifm\|think>", shows=True),
    Kind(r"\[THINK\]", r"\[/THINK\]", shows=True),
    Kind(r"◁think▷", r"◁/think▷", shows=True),
    Kind(r"<\|channel>(?:thought\b\n?)?", r"<channel\|>", anywhere=True, shows=True),
    Kind(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>", anywhere=True, shows=True),
    Kind(r"<\|plamo:begin_think:plamo\|>", r"<\|plamo:end_think:plamo\|>", anywhere=True, shows=True),
    Kind(r"<\|open\|>think<\|sep\|>", r"<\|close\|>think<\|sep\|>", anywhere=True, shows=True),
    Kind(
        r"<\|content_thinking\|>",
        r"<\|end_message\|>(?:<\|message_model\|>)?|(?=<\|content_)",
        anywhere=True,
    ),
    Kind(
        r"(?:<\|(?:start|channel)\|>[^<>]{0,300}){0,3}<\|channel\|>\s*analysis\b[^<>]{0,300}"
        r"(?:<\|constrain\|>[^<>]{0,100})?<\|message\|>",
        r"<\|(?:end|call|return|eom)\|>|(?=<\|(?:start|channel)\|>)",
        anywhere=True,
        may_be_call=True,
    ),
    Kind(r"Here are my reasoning steps:\n", r"\[BEGIN FINAL RESPONSE\]\n?", shows=True),
)

OPENER = "|".join(f"(?:{kind.opener})" for kind in KINDS if not kind.may_be_call)
CLOSER = "|".join(kind.closer for kind in KINDS if kind.shows or not kind.anywhere)
ANY_OPENER = re.compile("|".join(f"(?:{kind.opener})" for kind in KINDS))
ANY_CLOSER = re.compile(CLOSER)

_PARTIAL_CLOSER = re.compile(r"</?[a-z:]{1,10}\Z|\[/?[A-Z]{1,5}\Z")
_PLAIN_CLOSERS = ("</think>", "</thinking>", "</thought>", "</seed:think>", "</mm:think>", "[/THINK]")


def opened_at(text: str, start: int) -> Kind:
    """Return the kind of the thinking that opens at a position."""
    return next(kind for kind in KINDS if re.compile(kind.opener).match(text, start))


def shows(closer: str) -> bool:
    """Return whether a closing tag that nothing opened shows that the text began in a thinking."""
    return any(kind.shows and re.fullmatch(kind.closer, closer) for kind in KINDS)


# A sentence names a tag: `I cut the </think> tag off.`, `It ends with <|im_end|>, as you see.`
_SENTENCE_BEFORE = re.compile(r"[\w,;(\"'“-][ \t]+\Z|[(\"'“]\Z")
_SENTENCE_AFTER = re.compile(r"[ \t]+[a-z]|[.,;:?!)\"'”]")
_NOT_ATTACHED = re.compile(r"\s|\Z")


def is_mention(text: str, start: int, end: int, *, on_both_sides: bool = False) -> bool:
    """Return whether a sentence goes on around a tag, which it then only names; `on_both_sides`: on both."""
    goes_on = _SENTENCE_AFTER.match(text, end) is not None
    if goes_on and not on_both_sides:
        return True
    leads_in = _SENTENCE_BEFORE.search(text[max(0, start - 40) : start]) is not None
    return leads_in and (goes_on or _NOT_ATTACHED.match(text, end) is not None)


def without_partial_closer(text: str) -> str:
    """Return a thinking without the beginning of a closing tag that the text ends in."""
    half = _PARTIAL_CLOSER.search(text)
    if half is None or not any(tag.startswith(half[0]) for tag in _PLAIN_CLOSERS):
        return text
    return text[: half.start()]


_K3_TOOLS = r"<\|open\|>tools<\|sep\|>"
_SILENT = (
    r"<\|(?:START|END)_(?:RESPONSE|TEXT)\|>",
    r"<\|CHATBOT_TOKEN\|>|<\|END_OF_TURN_TOKEN\|>|<\|START_OF_TURN_TOKEN\|>",
    r"<\|(?:open|close)\|>(?:response|message)<\|sep\|>",
    rf"{_K3_TOOLS}(?:<\|(?:open|close)\|>call(?: index=\"\d+\")?<\|sep\|>)*<\|close\|>tools<\|sep\|>",
    r"<\|content_(?:text|tool_error)\|>|<\|end_message\|>|<\|message_model\|>",
    r"<[｜|]tool▁outputs?▁(?:begin|end)[｜|]>|<[｜|]end▁of▁sentence[｜|]>",
    r"<\|plamo:tag\|>|<\|role_end\|>|<\|im_end\|>|<\|eot\|>|<\|eot_id\|>|<\|eom_id\|>|<\|endoftext\|>|<\|end_of_text\|>",
    # Harmony's headers of messages to the user, and what ends a message
    r"(?:<\|(?:start|channel|constrain)\|>[^<>\n]{0,300}){1,6}<\|message\|>|<\|message\|>",
    r"<\|channel\|>(?:commentary\?)+(?=<\|end\|>)",
    r"<\|start\|>assistant\s*\Z|<\|channel\|>\w{0,12}\s*\Z|<\|(?:end|call|return|eom)\|>",
    r"(?:</s>|<end_of_turn>|<turn\|>|<eos>|<seed:eos>|<\|observation\|>|<\|user\|>)\s*\Z",
    r"\[e~\[\s*\Z",
    r"\A>>>all\n",
    r"</?tool_calls:\w{2,16}>",
)
SILENT = "|".join(_SILENT)
SILENT_TOKEN = re.compile(SILENT)
"""Tokens that say nothing to the user: they are left out of the text."""
