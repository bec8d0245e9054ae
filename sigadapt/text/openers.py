"""The table of openers: everything that can begin in a text, in one regular expression.

    thinking, quotation, calls, tokens that say nothing, JSON

Where several match at one place, the first of this order counts. The reader goes from opener to opener, so a
text is read once, from the outside in. Rules for thinking, by what servers do with each kind:

 a. Tags of plain text open a thinking only at the text's beginning or right behind a thinking or a call;
    later they are text. Tokens that are no text open one anywhere, unless a sentence goes on around them.
 b. Where a prompt has opened the thinking (`starts_in_reasoning`), the first closing tag of any kind ends it.
    A closing token that nothing opened shows the same; the plain `</think>` alone does not.
 c. A thinking that nothing closes goes on to the end, or to the first call that stands in markup: models
    forget the tag. Calls in a closed thinking are only thought of.

The last functions are the trip-wire: markup of no known format that names a declared tool as what is called.

    <|do|>get_weather<|with|>{"city": "Paris"}<|done|>
    <acme:run tool="get_weather"><acme:in key="city">Paris</acme:in></acme:run>
    <get_weather><city>Paris</city></get_weather>

Nobody knows how it is read, so it is a bad call (`unread_call`) with its text, and no answer. A tool's name
in a tag alone says nothing: arguments must follow, as an object or in a tag that has a parameter's name.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from sigadapt.json_values import Json, is_object
from sigadapt.text.contract import Scan, TextFormat, ToolTable
from sigadapt.text.quotations import ENTITY

FENCE_OPENER = r"(?<![^\n])```"
"""The opener of formats that are a code fence. They are asked before a fence is taken for a quotation."""

CALL_LANGUAGES = ("tool_code", "tool_call", "tool_calls")
"""What a fence says that holds calls, and no code: such a fence is a call after words, too."""

LEFTOVER = r"</(?:[\w.]{1,32}:|[｜|]DSML[｜|] ?)?(?:parameter|invoke)>|(?<=\n)<think>"
"""Tags beside those that close calls that may hang behind an answer."""

# Trying every opener at every character is slow. All begin with one of these.
_BEGINS = r"(?=[<\[{&`~>◁\]fAH]|\n[ \t]*\n(?: {4}| {0,3}\t))"
_LINE = r"(?<![^\n])"
_QUOTATIONS = (
    ("fence", r"`{3,}|~{3,}"),
    ("code", r"`{1,2}"),
    ("html", r"<(?i:pre|code|samp|kbd|xmp|textarea|script|style|blockquote)(?=[\s>])[^<>]{0,200}>|<!--"),
    ("escaped", rf"{ENTITY}\w"),
    # `>>>NAME` without a space is Functionary's; with one it is Python's prompt.
    ("quote", rf"(?:{_LINE}|(?<=\n )|(?<=\n  )|(?<=\n   ))>(?!>>\S)"),
    ("indented", r"\n[ \t]*\n(?: {4}| {0,3}\t)"),
)


class Thinking(NamedTuple):
    """One kind of thinking, by regular expressions of what opens and what closes it."""

    opener: str
    closer: str
    anywhere: bool = False  # whether it opens anywhere
    shows: bool = False  # whether a closer that nothing opened shows that the text began in a thinking
    may_be_call: bool = False  # whether its opener may be the header of a call: the format is asked first


_THINKINGS: tuple[Thinking, ...] = (
    Thinking(r"<think>", r"</think>"),
    Thinking(r"<thinking>", r"</thinking>"),
    Thinking(r"<thought>", r"</thought>"),
    Thinking(r"<reasoning>", r"</reasoning>"),
    Thinking(r"<seed:think>", r"</seed:think>", shows=True),
    Thinking(r"<mm:think>", r"</mm:think>", shows=True),
    Thinking(r"<ifm\|think>", r"</ifm\|think>", shows=True),
    Thinking(r"\[THINK\]", r"\[/THINK\]", shows=True),
    Thinking(r"◁think▷", r"◁/think▷", shows=True),
    Thinking(r"<\|channel>(?:thought\b\n?)?", r"<channel\|>", anywhere=True, shows=True),
    Thinking(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>", anywhere=True, shows=True),
    Thinking(r"<\|plamo:begin_think:plamo\|>", r"<\|plamo:end_think:plamo\|>", anywhere=True, shows=True),
    Thinking(r"<\|open\|>think<\|sep\|>", r"<\|close\|>think<\|sep\|>", anywhere=True, shows=True),
    Thinking(
        r"<\|content_thinking\|>",
        r"<\|end_message\|>(?:<\|message_model\|>)?|(?=<\|content_)",
        anywhere=True,
    ),
    Thinking(
        r"(?:<\|(?:start|channel)\|>[^<>]{0,300}){0,3}<\|channel\|>\s*analysis\b[^<>]{0,300}"
        r"(?:<\|constrain\|>[^<>]{0,100})?<\|message\|>",
        r"<\|(?:end|call|return|eom)\|>|(?=<\|(?:start|channel)\|>)",
        anywhere=True,
        may_be_call=True,
    ),
    Thinking(r"Here are my reasoning steps:\n", r"\[BEGIN FINAL RESPONSE\]\n?", shows=True),
)

THINKING_OPENER = "|".join(f"(?:{kind.opener})" for kind in _THINKINGS if not kind.may_be_call)
THINKING_CLOSER = "|".join(kind.closer for kind in _THINKINGS if kind.shows or not kind.anywhere)
ANY_OPENER = re.compile("|".join(f"(?:{kind.opener})" for kind in _THINKINGS))
ANY_CLOSER = re.compile(THINKING_CLOSER)

_PARTIAL_CLOSER = re.compile(r"</?[a-z:]{1,10}\Z|\[/?[A-Z]{1,5}\Z")
_PLAIN_CLOSERS = ("</think>", "</thinking>", "</thought>", "</seed:think>", "</mm:think>", "[/THINK]")


def thinking_at(text: str, start: int) -> Thinking:
    """Return the kind of the thinking that opens at a position."""
    return next(kind for kind in _THINKINGS if re.compile(kind.opener).match(text, start))


def shows_thinking(closer: str) -> bool:
    """Return whether a closing tag that nothing opened shows that the text began in a thinking."""
    return any(kind.shows and re.fullmatch(kind.closer, closer) for kind in _THINKINGS)


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


class Grammar(NamedTuple):
    """The openers of some formats, compiled once."""

    token: re.Pattern[str]  # any opener; its group is the kind, `f<number>` for the formats of that number
    openers: str  # the same as alternatives of a pattern
    formats: tuple[tuple[TextFormat, ...], ...]  # those with the same opener, by number
    fences: tuple[TextFormat, ...]  # those that are a code fence
    markup: re.Pattern[str]  # the openers that are no prose
    heads: dict[str, re.Pattern[str]]  # by name, what every call begins with
    sure: dict[str, re.Pattern[str]]  # by name, what can begin nothing but a call
    bare: tuple[TextFormat, ...]  # those without markup
    opening_tags: tuple[str, ...]  # tags before calls
    closing_tags: re.Pattern[str]  # tags after them
    leftover: re.Pattern[str]  # a tag that says nothing behind an answer


@lru_cache(maxsize=8)
def grammar_of(formats: tuple[TextFormat, ...]) -> Grammar:
    """Return the grammar of some formats, compiled once for each choice of them."""
    by_opener: dict[str, list[TextFormat]] = {}
    for text_format in formats:
        if text_format.opener != FENCE_OPENER:
            by_opener.setdefault(text_format.opener, []).append(text_format)
    alternatives = (
        ("thinking", THINKING_OPENER),
        ("closer", THINKING_CLOSER),
        *_QUOTATIONS,
        *((f"f{number}", opener) for number, opener in enumerate(by_opener)),
        ("silent", SILENT),
        ("json", rf"{_LINE}[{{\[]|\{{\s*[\"']"),
    )
    openers = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in alternatives)
    markup = tuple(text_format for text_format in formats if text_format.opener != FENCE_OPENER)
    closing_tags = _longest_first(text_format.closing_tags for text_format in formats)
    return Grammar(
        # A template's opener, whose row has no example, may begin with any sign.
        token=re.compile(f"{_BEGINS * all(row.example for row in formats)}(?:{openers})", re.DOTALL),
        openers=openers,
        formats=tuple(map(tuple, by_opener.values())),
        fences=tuple(text_format for text_format in formats if text_format.opener == FENCE_OPENER),
        markup=re.compile("|".join(row.opener for row in formats if not row.bare) or r"(?!)"),
        heads={text_format.name: re.compile(text_format.body.head) for text_format in formats},
        sure={row.name: re.compile(row.sure or row.opener) for row in formats},
        bare=tuple(text_format for text_format in markup if text_format.bare),
        opening_tags=_longest_first(text_format.opening_tags for text_format in formats),
        closing_tags=re.compile("|".join(map(re.escape, closing_tags)) or r"(?!)"),
        leftover=re.compile(rf"(?:{LEFTOVER}|{'|'.join(map(re.escape, closing_tags))})\Z"),
    )


def _longest_first(tags: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return each tag once, so that no tag hides a longer one that begins like it."""
    return tuple(sorted({tag for some in tags for tag in some}, key=len, reverse=True))


def formats_number(kind: str | None) -> int | None:
    """Return which of a grammar's `formats` an opener of a kind opens; None for one that opens no call."""
    if kind and kind[1:].isdigit():
        return int(kind[1:])
    return None


ANY_NAME = r"[\w.-]{1,128}"
_TAG = r"<[^<>\n]{1,60}>"
_OBJECT = r"\{\s*[\"}]"
_TAG_NAME = re.compile(r"<([\w:.-]+)")
_INNER_TAG = re.compile(r"<(?!/)[^<>\n]{1,100}")
_WORD = re.compile(r"[\w.-]+")
_TAILS = re.compile(rf"(?:\s*(?:```|{_TAG}))*")


def pattern_of(name: str) -> str:
    """Return a pattern of what may be such a call, of a tool with a name of this pattern."""
    tag = rf"<(?P<tag>{name})>\s*(?={_OBJECT}|<[\w.-]{{1,100}}>)"
    attribute = rf"\b(?:tool|name|function|call)=[\"'](?P<attribute>{name})[\"'][^<>]{{0,100}}>"
    element = rf"<[\w:.-]{{1,60}}\s[^<>]{{0,100}}?{attribute}\s*(?=<|{_OBJECT})"
    word = rf"(?:(?:function|tool|call)\b:?\s*)?(?P<word>{name})\s*(?:{_TAG}\s*)?(?:```\w*\s*)?"
    return rf"{tag}|{element}|{_TAG}\s*{word}(?={_OBJECT})"


_CALL = re.compile(pattern_of(ANY_NAME))


class UnknownCall(NamedTuple):
    """What names a tool, and where it stands."""

    name: str
    start: int
    end: int


def unknown_calls(scan: Scan, tools: ToolTable) -> Iterator[UnknownCall]:
    """Yield each place of a text at which markup calls a declared tool, in whatever form."""
    if "<" not in scan.text:
        return
    for match in _CALL.finditer(scan.text):
        name = tools.name_of(match[match.lastgroup or "word"])
        if name is not None and name in tools.schemas and _has_arguments(scan, match, tools.schemas[name]):
            yield UnknownCall(name, match.start(), _end_of(scan, match))


def _has_arguments(scan: Scan, match: re.Match[str], schema: Json) -> bool:
    """Return whether an object follows, or a tag that has the name of a parameter."""
    if scan.text.startswith("{", match.end()):
        return True
    properties: Any = schema.get("properties")
    tag = _INNER_TAG.match(scan.text, match.end())
    if tag is None or not is_object(properties) or not properties:
        return scan.text.startswith("</", match.end())
    return any(word in properties for word in _WORD.findall(tag[0]))


def _end_of(scan: Scan, match: re.Match[str]) -> int:
    """Return where such a call ends: behind its object and the tags after it, or behind its closing tag."""
    if scan.text.startswith("{", match.end()):
        try:
            _, end = scan.value_at(match.end())
        except ValueError:
            return len(scan.text)
        tails = _TAILS.match(scan.text, end)
        return tails.end() if tails else end
    tag = _TAG_NAME.match(scan.text, match.start())
    closing = scan.find(f"</{tag[1]}>", match.end()) if tag else -1
    return scan.find(">", closing) + 1 if closing >= 0 else len(scan.text)
