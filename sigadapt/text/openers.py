"""The table of openers: everything that can begin in a text, in one regular expression.

    thinking, quotation, calls, tokens that say nothing, JSON

Where several match at one place, the first of this order counts. The reader goes from opener to opener, so a
text is read once, from the outside in.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from sigadapt.text import thinking
from sigadapt.text.contract import TextFormat
from sigadapt.text.quotations import ENTITY

FENCE_OPENER = r"(?<![^\n])```"
"""The opener of formats that are a code fence. They are asked before a fence is taken for a quotation."""

CALL_LANGUAGES = ("tool_code", "tool_call", "tool_calls")
"""What a fence says that holds calls, and no code: such a fence is a call behind words, too."""

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
    heads: dict[str, re.Pattern[str]]  # by name, what every call begins with
    bare: tuple[TextFormat, ...]  # those without markup
    before: tuple[str, ...]  # tags before calls
    after: re.Pattern[str]  # tags behind them


@lru_cache(maxsize=8)
def grammar_of(formats: tuple[TextFormat, ...]) -> Grammar:
    """Return the grammar of some formats, compiled once for each choice of them."""
    by_opener: dict[str, list[TextFormat]] = {}
    for each in formats:
        if each.opener != FENCE_OPENER:
            by_opener.setdefault(each.opener, []).append(each)
    parts = (
        ("thinking", thinking.OPENER),
        ("closer", thinking.CLOSER),
        *_QUOTATIONS,
        *((f"f{number}", opener) for number, opener in enumerate(by_opener)),
        ("silent", thinking.SILENT),
        ("json", rf"{_LINE}[{{\[]|\{{\s*[\"']"),
    )
    openers = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in parts)
    before = sorted({tag for each in formats for tag in each.before}, key=len, reverse=True)
    after = sorted({tag for each in formats for tag in each.after}, key=len, reverse=True)
    return Grammar(
        re.compile(f"{_BEGINS}(?:{openers})"),
        openers,
        tuple(map(tuple, by_opener.values())),
        tuple(each for each in formats if each.opener == FENCE_OPENER),
        {each.name: re.compile(each.head) for each in formats},
        tuple(each for each in formats if each.bare and each.opener != FENCE_OPENER),
        tuple(before),
        re.compile("|".join(map(re.escape, after)) or r"(?!)"),
    )


def opened(kind: str | None) -> int | None:
    """Return which of a grammar's `formats` an opener of a kind opens; None for one that opens no call."""
    return int(kind[1:]) if kind and kind[1:].isdigit() else None
