"""The openers of all formats and other tokens, put together so that one way through a text finds them all.

A search for many patterns at once would try each of them at every character. So a place where any token may
begin is searched by its first character, and what stands there is matched with the tokens that have it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sigadapt.schemas.caches import BoundedCache
from sigadapt.text import thinking
from sigadapt.text.contract import TextFormat
from sigadapt.text.formats import harmony


class Grammar(NamedTuple):
    """What the openers of some formats are, put together once.

    Args:
        first: finds the places where a token may begin; a search for all tokens at once would be slow.
        tokens: by a token's first character, what it may be.
        formats: the formats by the number in the name of an opener's group.
        bare: those without markup.
        before: tags around calls, before them.
        after: tags behind calls.
        harmony: whether Harmony is read.
    """

    first: re.Pattern[str]
    tokens: Mapping[str, re.Pattern[str]]
    formats: tuple[tuple[TextFormat, ...], ...]
    bare: tuple[TextFormat, ...]
    before: tuple[str, ...]
    after: re.Pattern[str]
    harmony: bool


WORDS = ("functools", "function call", "Action:", "Here are my reasoning steps:\n")
"""Openers that begin with a letter."""
_LINE = r"(?<![^\n])"


def opened(token: re.Match[str]) -> int | None:
    """Return which of a grammar's `formats` a token opens; None for a token that opens no call."""
    kind = token.lastgroup or ""
    return int(kind[1:]) if kind.startswith("f") and kind[1:].isdigit() else None


_KEPT: BoundedCache[tuple[str, ...], Grammar] = BoundedCache(1_000_000)
_WEIGHT = 100_000  # of one grammar, in bytes, about


def grammar_of(formats: tuple[TextFormat, ...]) -> Grammar:
    """Return the grammar of some formats, made once."""
    names = tuple(each.name for each in formats)
    known = _KEPT.get(names)
    if known is None:
        known = _made(formats)
        _KEPT.put(names, known, weight=_WEIGHT)
    return known


def _made(formats: tuple[TextFormat, ...]) -> Grammar:
    by_opener: dict[str, list[TextFormat]] = {}
    for each in formats:
        by_opener.setdefault(each.opener, []).append(each)
    parts = (
        ("think", thinking.ANYWHERE),
        ("plain", thinking.PLAIN),
        ("shown", thinking.SHOWING_CLOSERS),
        ("closed", thinking.PLAIN_CLOSERS),
        *((f"f{number}", opener) for number, opener in enumerate(by_opener)),
        ("fence", r"(?:(?<![^\n])|(?<=\n[ \t])|(?<=\n[ \t]{2})|(?<=\n[ \t]{3}))```"),
        ("code", r"`[^`\n]+`|``[^\n]+?``"),
        ("quote", _LINE + r">[ \t][^\n]*"),
        ("silent", thinking.SILENT),
        ("json", _LINE + r"[{\[]"),
    )
    before = sorted({tag for each in formats for tag in each.before}, key=len, reverse=True)
    after = sorted({tag for each in formats for tag in each.after}, key=len, reverse=True)
    tags = "|".join(re.escape(tag) + r"(?!\w)" * (tag == "```") for tag in after) or r"(?!)"
    return Grammar(
        re.compile("|".join([r"[<\[{`>◁\]]", *map(re.escape, WORDS)])),
        {first: _beginning_with(first, parts) for first in "<[{`>◁]fAH"},
        tuple(map(tuple, by_opener.values())),
        tuple(each for each in formats if each.bare),
        tuple(before),
        re.compile(rf"(?:\s*(?:{tags}))+"),
        any(each.name == harmony.NAME for each in formats),
    )


def _beginning_with(first: str, parts: Iterable[tuple[str, str]]) -> re.Pattern[str]:
    """Return a pattern of the tokens that may begin with a character."""
    kept: list[str] = []
    for kind, pattern in parts:
        branches = [each for each in _branches(pattern) if _may_begin(each, first)]
        if branches:
            kept.append(f"(?P<{kind}>{'|'.join(branches)})")
    return re.compile("|".join(kept) or r"(?!)")


def _branches(pattern: str) -> Iterator[str]:
    """Yield the branches of a regular expression that stand outside of brackets."""
    begin = level = place = 0
    while place < len(pattern):
        char = pattern[place]
        place += 1 + (char == "\\")
        level += (char in "([") - (char in ")]")
        if char == "|" and level == 0:
            yield pattern[begin : place - 1]
            begin = place
    yield pattern[begin:]


_NO_WIDTH = re.compile(r"(?:\\[bA]|\(\?(?:m:\^|<[!=][^()]*)\)|\(\?:(?:\(\?<[!=][^()]*\)\|?)+\))*")


def _may_begin(branch: str, first: str) -> bool:
    """Return whether what a branch matches may begin with a character."""
    if branch == "(?!)":
        return False
    rest = _NO_WIDTH.sub("", branch, count=1)
    while rest.startswith("(?:"):
        rest = rest[3:]
    if rest.startswith("["):
        return first in rest[: rest.index("]", 2) + 1].replace("\\", "")
    return rest.removeprefix("\\")[:1] == first
