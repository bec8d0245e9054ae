"""The table of openers: everything that can begin in a text, in one regular expression.

    thinking, quotation, calls, tokens that say nothing, JSON

Where several match at one place, the first of this order counts. The reader goes from opener to opener, so a
text is read once, from the outside in.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from sigadapt.text import thinking
from sigadapt.text.contract import TextFormat
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
        ("thinking", thinking.OPENER),
        ("closer", thinking.CLOSER),
        *_QUOTATIONS,
        *((f"f{number}", opener) for number, opener in enumerate(by_opener)),
        ("silent", thinking.SILENT),
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
