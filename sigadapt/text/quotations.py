"""What is quoted: code, escaped HTML, block quotes, doctests, JSON, and what stands in quotation marks.

Code is in fences, in a line, indented or in HTML. Whatever a quotation holds is no call. Each function takes
the place where a quotation opens and returns the place behind it, as CommonMark has it; a fence that nothing
closes goes on to the end of the text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sigadapt.text.scan import Scan
from sigadapt.text.thinking import is_mention

ENTITY = r"&(?:amp;)*(?:lt|#60|#x3c);"
"""What stands for `<` in escaped HTML, escaped once or more."""
_RUN = re.compile(r"`+|~+")
_LONGEST_RUN = 32
# A fence may be indented and stand in a list.
_BEFORE_FENCE = re.compile(r"(?:\A|\n)[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*\Z")
_LONGEST_INDENT = 100
_LONGEST_INLINE = 500  # characters of flawed JSON in a sentence
_LINE_END = re.compile(r"\n|\Z")
_BLANK_LINE = re.compile(r"\n[ \t\r]*(?=\n|\Z)|\Z")
_INDENTED = re.compile(r"(?:(?: {4}| {0,3}\t)[^\n]*(?:\n|\Z)|[ \t\r]*\n)*")
_TAG_END = re.compile(r">|gt;|#62;|#x3e;")
_DOCTEST = re.compile(r">>>[ \t]")
_TAG = re.compile(rf"(<|{ENTITY})(\w+)")
_JSON = re.compile(r"\{\s*[\"'}]|\[\s*(?:\[(?! ##)|[{\"'])")  # `[[ ## answer ## ]]` is a header
_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]]', re.DOTALL)
_BRACKETS = re.compile(r"[{}\[\]]")


class Fence(NamedTuple):
    """A code fence: what stands on its first line, and where its content and the fence begin and end."""

    info: str
    inner: int
    close: int
    end: int


def closing(run: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what closes the fence that a run opens: one on a line of its own; else, one at a line's end."""
    char = re.escape(run[0])
    end = rf"{char}{{{min(len(run), _LONGEST_RUN)},}}[ \t\r]*(?=\n|\Z)"
    return re.compile(rf"\n[ \t]*{end}"), re.compile(rf"(?<!{char}){end}")


def fence_at(scan: Scan, at: int) -> Fence | None:
    """Return the code fence whose run of backticks or tildes stands at a place; None if it opens none."""
    run = _RUN.match(scan.text, at)
    if run is None or not _BEFORE_FENCE.search(scan.text[max(0, at - _LONGEST_INDENT) : at]):
        return None
    line = scan.search(_LINE_END, run.end())
    first = line.start() if line else len(scan.text)
    info = scan.text[run.end() : min(first, run.end() + _LONGEST_INDENT)]
    if run[0][0] == "`" and 0 <= scan.find("`", run.end()) < first:
        return None
    own_line, line_end = closing(run[0])
    close = scan.search(own_line, first) or scan.search(line_end, first)
    if close is None:
        return Fence(info.strip(), min(first + 1, len(scan.text)), len(scan.text), len(scan.text))
    return Fence(info.strip(), first + 1, close.start(), close.end())


def run_of(size: int) -> re.Pattern[str]:
    """Return a pattern of a run of so many backticks and no more."""
    return re.compile(rf"(?<!`)`{{{size}}}(?!`)")


def _code_end(scan: Scan, at: int, end: int) -> int:
    """Return the place behind inline code on one line; behind its backticks if nothing closes them."""
    # Markdown lets code go on over lines. Then a stray backtick would pair with one in a call further down,
    # which would be lost; the reader sees backticks directly around a call by itself.
    close = scan.search(run_of(end - at), end) if end - at <= _LONGEST_RUN else None
    line = scan.search(_LINE_END, end)
    return close.end() if close and line and close.start() < line.start() else end


def _html_end(scan: Scan, at: int, end: int) -> int:
    """Return the place behind an HTML element or comment; `end`, the opening tag's, if it is only named."""
    tag = _TAG.match(scan.text, at)
    if tag is None:
        close = scan.find("-->", end)
        return close + 3 if close >= 0 else len(scan.text)
    close = scan.find(f"{tag[1]}/{tag[2]}", end)
    again = scan.find(tag[0], end)
    if again >= 0 and (close < 0 or again < close):
        return end
    if close < 0:
        return end if is_mention(scan.text, at, end) else len(scan.text)
    behind = scan.search(_TAG_END, close)
    return behind.end() if behind else len(scan.text)


def _quote_end(scan: Scan, at: int, end: int) -> int:
    """Return the end of a quoted line, or of a doctest with its output."""
    last = scan.search(_BLANK_LINE if _DOCTEST.match(scan.text, at) else _LINE_END, at)
    return last.start() if last else len(scan.text)


def _indented_end(scan: Scan, at: int, end: int) -> int:
    """Return the place behind the lines of indented code that follow a blank line at a place."""
    begin = scan.find("\n", at + 1) + 1
    lines = _INDENTED.match(scan.text, begin)
    return lines.end() if lines else begin


def _levels(
    text: str, at: int, tokens: re.Pattern[str], limit: int | None = None
) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the strings and brackets from a place on, each with how many brackets are open behind it."""
    level = 0
    for token in tokens.finditer(text, at, len(text) if limit is None else limit):
        level += (token[0] in "{[") - (token[0] in "}]")
        yield token, level


def json_end(scan: Scan, at: int, end: int) -> int:
    """Return the place behind JSON, flaws included; `end`, the bracket's, if no JSON begins there."""
    try:
        value, behind = scan.value_at(at)
    except ValueError:
        if not _JSON.match(scan.text, at):
            return end
        limit = len(scan.text)
        if at != scan.content_start and not scan.text.endswith("\n", 0, at):  # in a sentence
            line = scan.search(_LINE_END, at)
            limit = min(line.start() if line else limit, at + _LONGEST_INLINE)
        for tokens in (_STRINGS_AND_BRACKETS, _BRACKETS):  # quotes inside of a string may not be escaped
            for token, level in _levels(scan.text, at, tokens, limit):
                if level == 0 and token[0] in "}]":
                    scan.charge((token.end() - at) // 4)
                    return token.end()
            scan.charge((limit - at) // 4)
        return limit if limit == len(scan.text) else end
    return behind if isinstance(value, (dict, list)) else end


def is_open(text: str, at: int) -> bool:
    """Return whether the JSON that begins at a place is still open where the text ends."""
    for token, level in _levels(text, at, _STRINGS_AND_BRACKETS):
        word = token[0]
        if word[0] != '"':
            if level == 0:
                return False
        elif token.end() == len(text) and (len(word) == 1 or word[-1] != '"'):
            return True
    return True


def without_closers(raw: str) -> str:
    """Return broken JSON without the brackets at its end that close what is around it."""
    levels = [level for _, level in _levels(raw, 0, _STRINGS_AND_BRACKETS)]
    level = levels[-1] if levels else 0
    end = len(raw)
    while level < 0 and end and (raw[end - 1] in "}]" or raw[end - 1].isspace()):
        level += not raw[end - 1].isspace()
        end -= 1
    return raw[:end].rstrip()


ENDS = {
    "code": _code_end,
    "html": _html_end,
    "escaped": _html_end,
    "quote": _quote_end,
    "indented": _indented_end,
    "json": json_end,
}
"""By the kind of an opener: what finds the end of a quotation, given where its opener begins and ends."""

_MARKS = {
    "“": "”",
    "„": "“”",
    "«": "»",
    "‹": "›",
    '"': '"',
    "＂": "＂",
    "「": "」",
    "『": "』",
    "《": "》",
    "〈": "〉",
    "〝": "〞〟",
}
_OTHER_MARKS = {**_MARKS, "'": "'", "‘": "’", "‚": "‘’", "”": "”", "’": "’", "»": "«»", "›": "‹›"}
"""Marks that close elsewhere, or are apostrophes: they count directly around a call alone."""
_SENTENCE = 160  # characters of the paragraph on each side that are searched for marks
_GAPS = " \t\u00a0\u202f"


def is_in_marks(text: str, since: int, low: int, high: int) -> bool:
    """Return whether marks stand around a part of a text, directly or in the paragraph since a place."""
    begin = max(since, text.rfind("\n\n", since, low) + 1)
    before = text[max(begin, low - _SENTENCE) : low]
    after = text[high : high + _SENTENCE].partition("\n\n")[0]
    closing = _OTHER_MARKS.get(before.rstrip(_GAPS)[-1:])
    if closing and (high == len(text) or after.lstrip(_GAPS)[:1] in tuple(closing)):
        return True  # an answer that was cut off may end in a quotation
    marks = list[str]()
    for char in before if low - begin <= _SENTENCE else "":
        if marks and char in marks[-1]:
            marks.pop()
        elif char in _MARKS:
            marks.append(_MARKS[char])
        elif char == "\n":  # straight marks are too often alone to count over lines
            marks = [each for each in marks if each != '"']
    line = after.partition("\n")[0]
    return any(mark in (line if mark == '"' else after) for closing in marks for mark in closing)
