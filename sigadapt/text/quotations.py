"""What is quoted: code, escaped HTML, block quotes, doctests, JSON, and what stands in quotation marks.

Code is in fences, in a line, indented or in HTML. Whatever a quotation holds is no call. Each function takes
the place where a quotation opens and returns the place behind it, as CommonMark has it; a fence that nothing
closes goes on to the end of the text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sigadapt.text.contract import Scan

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
    """A code fence: what its first line says, and where its content and the fence begin and end."""

    info: str  # the words after the opening marks
    content_start: int  # the first character inside
    content_end: int  # the one after the last inside
    end: int  # the one after the closing marks


def closing(run: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what closes the fence that a run opens: one on a line of its own; else, one at a line's end."""
    char = re.escape(run[0])
    end = rf"{char}{{{min(len(run), _LONGEST_RUN)},}}[ \t\r]*(?=\n|\Z)"
    return re.compile(rf"\n[ \t]*{end}"), re.compile(rf"(?<!{char}){end}")


def fence_at(scan: Scan, start: int) -> Fence | None:
    """Return the code fence whose run of backticks or tildes is at a position; None if it opens none."""
    run = _RUN.match(scan.text, start)
    if run is None or not _BEFORE_FENCE.search(scan.text[max(0, start - _LONGEST_INDENT) : start]):
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


def _code_end(scan: Scan, start: int, end: int) -> int:
    """Return the end of inline code on one line; the end of its backticks if nothing closes them."""
    # Markdown lets code go on over lines. Then a stray backtick would pair with one in a call further down,
    # which would be lost; the reader sees backticks directly around a call by itself.
    if end - start > _LONGEST_RUN:
        return end
    close = scan.search(run_of(end - start), end)
    line = scan.search(_LINE_END, end)
    if close and line and close.start() < line.start():
        return close.end()
    return end


def _html_end(scan: Scan, start: int, end: int) -> int:
    """Return the end of an HTML element or comment; `end`, the opening tag's, if a sentence only names it."""
    tag = _TAG.match(scan.text, start)
    if tag is None:
        close = scan.find("-->", end)
        return close + 3 if close >= 0 else len(scan.text)
    close = scan.find(f"{tag[1]}/{tag[2]}", end)
    next_opening = scan.find(tag[0], end)
    if next_opening >= 0 and (close < 0 or next_opening < close):
        return end
    if close < 0:
        return end if is_mention(scan.text, start, end) else len(scan.text)
    closing_tag = scan.search(_TAG_END, close)
    return closing_tag.end() if closing_tag else len(scan.text)


def _quote_end(scan: Scan, start: int, end: int) -> int:
    """Return the end of a quoted line, or of a doctest with its output."""
    pattern = _BLANK_LINE if _DOCTEST.match(scan.text, start) else _LINE_END
    last = scan.search(pattern, start)
    return last.start() if last else len(scan.text)


def _indented_end(scan: Scan, start: int, end: int) -> int:
    """Return the end of the lines of indented code that follow a blank line."""
    lines_start = scan.find("\n", start + 1) + 1
    lines = _INDENTED.match(scan.text, lines_start)
    return lines.end() if lines else lines_start


def _levels(
    text: str, start: int, tokens: re.Pattern[str], limit: int | None = None
) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the strings and brackets from a position on, each with how many brackets are open after it."""
    end = len(text) if limit is None else limit
    level = 0
    for token in tokens.finditer(text, start, end):
        level += (token[0] in "{[") - (token[0] in "}]")
        yield token, level


def json_end(scan: Scan, start: int, end: int) -> int:
    """Return the end of JSON, flaws included; `end`, the bracket's, if no JSON begins there."""
    try:
        value, value_end = scan.value_at(start)
    except ValueError:
        return _flawed_json_end(scan, start, end)
    return value_end if isinstance(value, (dict, list)) else end


def _flawed_json_end(scan: Scan, start: int, end: int) -> int:
    if not _JSON.match(scan.text, start):
        return end
    limit = len(scan.text)
    is_in_sentence = start != scan.content_start and not scan.text.endswith("\n", 0, start)
    if is_in_sentence:
        line = scan.search(_LINE_END, start)
        line_end = line.start() if line else limit
        limit = min(line_end, start + _LONGEST_INLINE)
    for tokens in (_STRINGS_AND_BRACKETS, _BRACKETS):  # quotes inside of a string may not be escaped
        for token, level in _levels(scan.text, start, tokens, limit):
            if level == 0 and token[0] in "}]":
                scan.charge((token.end() - start) // 4)
                return token.end()
        scan.charge((limit - start) // 4)
    return limit if limit == len(scan.text) else end


def is_open(text: str, start: int) -> bool:
    """Return whether the JSON that begins at a position is still open where the text ends."""
    for token, level in _levels(text, start, _STRINGS_AND_BRACKETS):
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


def is_in_marks(text: str, searched_from: int, start: int, end: int) -> bool:
    """Return whether marks stand around a part of a text, directly or in the paragraph since a position."""
    paragraph_start = max(searched_from, text.rfind("\n\n", searched_from, start) + 1)
    lead = text[max(paragraph_start, start - _SENTENCE) : start]
    tail = text[end : end + _SENTENCE].partition("\n\n")[0]
    closers = _OTHER_MARKS.get(lead.rstrip(_GAPS)[-1:])
    if closers and (end == len(text) or tail.lstrip(_GAPS)[:1] in tuple(closers)):
        return True  # an answer that was cut off may end in a quotation
    if start - paragraph_start > _SENTENCE:
        return False
    line = tail.partition("\n")[0]
    for closers in _open_marks(lead):
        for mark in closers:
            searched = line if mark == '"' else tail
            if mark in searched:
                return True
    return False


def _open_marks(lead: str) -> list[str]:
    """Return what closes each of the marks that are still open where a text ends."""
    open_marks = list[str]()
    for char in lead:
        if open_marks and char in open_marks[-1]:
            open_marks.pop()
        elif char in _MARKS:
            open_marks.append(_MARKS[char])
        elif char == "\n":  # straight marks are too often alone to count over lines
            open_marks = [closers for closers in open_marks if closers != '"']
    return open_marks


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


_EXAMPLES = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|such as|like (?:this|so)|forms?|formats?|formatted|syntax"
    r"|schemas?|writes?|shows?|says|templates?|how to|to call|you (?:can|may)|use the following"
    r"|would|could|might|illustrat\w+|placeholder|definitions?|signature|documentation|docs)\b",
    re.IGNORECASE,
)
# Polite questions hold `would` and `could`: before a fence of calls, only words about the call itself count.
_SHOWS = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|like (?:this|so)|looks? like|syntax|templates?|illustrat\w+"
    r"|placeholder|documentation|docs|schemas?|writes?|written|formatted|how (?:to|you|one)|definitions?"
    r"|signature|(?:would|could|might|may|can) (?:be(?=\W{0,9}\Z)|call|look|say|use|write)"
    r"|(?:call|function|tool)'?s? (?:form|format))\b",
    re.IGNORECASE,
)
# A model that quotes what a page told it to run, or says that it does not run it, makes no call. Support
# agents say `not` and `reject` of other things ("the card was rejected, so I look again"): such a word
# counts where its object is the call, or where the sentence ends soon after it.
_NEGATION = r"(?:\b(?:not|never|cannot|without|nor)|n['\u2019]t)\b"
_RUNNING = (
    r"(?:run|runs|running|do|doing|done|make|making|made|use|used|using|obey|send|sent"
    r"|(?:call|execut|invok|perform|follow|comply|trigger)\w*)"
)
_REFUSES = re.compile(
    rf"{_NEGATION}\W{{1,3}}(?:\w+[^\S\n]+){{0,4}}{_RUNNING}\b"
    rf"|{_NEGATION}(?:\W{{1,3}}\w+){{0,2}}\W{{0,9}}\Z"
    r"|\b(?:refus|declin|ignor|reject|avoid)\w*"
    rf"(?:\W{{0,9}}\Z|\W+(?:it|this|that|these|those|such|to|(?:(?:the|its?|your) )?"
    rf"(?:calls?|commands?|code|lines?|instructions?|following|{_RUNNING}))\b)"
    r"|\b(?:forbid|forbad|prohibit|dangerous|malicious|inject|attack|suspicious)"
    r"|\b(?:told|tells?|asked|asks|says|said|wrote|states|stated|claims?|instruct\w*|demand\w*|wants|contains?)\b"
    r"|\b(?:calls?|commands?|code|lines?|instructions?) (?:was|were|is|are|reads?)\b",
    re.IGNORECASE,
)
_NEW_SENTENCE = re.compile(r"[.!?][\"')*]{0,3}\s{1,9}(?=[^a-z\s])")
_PROSE_LENGTH = 160  # characters of prose that are searched for such words


def announces_example(text: str, end: int | None = None) -> bool:
    """Return whether the words before a position, or before the end, announce an example and no call."""
    if end is None:
        end = len(text)
    prose = text[max(0, end - _PROSE_LENGTH) : end].rstrip()
    return bool(_EXAMPLES.search(prose.rpartition("\n\n")[2]))


def shows_call(text: str, end: int) -> bool:
    """Return whether the sentence before a fence of calls shows one, and makes none."""
    prose = text[max(0, end - _PROSE_LENGTH) : end].rstrip().rpartition("\n\n")[2]
    sentence = _NEW_SENTENCE.split(prose)[-1]
    return bool(_SHOWS.search(sentence) or _REFUSES.search(sentence))
