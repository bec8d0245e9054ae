"""Hold back streamed text that may be a call, until it is known.

Where calls are read from an answer's text, a listener must not see their markup. Text passes as it comes, up
to the first place where an opener stands, or may come to stand because the text ends in one. It passes that
place, too, as soon as what follows shows that no call begins there; else the rest is held, and passes when
the answer ends, as far as the finished reading says it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import regex  # unlike `re`, it says where a match may begin that the text ends in

from sigadapt.json_values import Json
from sigadapt.text.bodies.named import TO_TOOL
from sigadapt.text.bodies.objects import EXACT_OBJECT, OBJECT
from sigadapt.text.calls_field import NO_LAYOUT, Layout
from sigadapt.text.contract import Scan, ToolTable
from sigadapt.text.formats import FORMATS
from sigadapt.text.openers import (
    ANY_OPENER,
    CALL_LANGUAGES,
    LEFTOVER,
    SILENT,
    SILENT_TOKEN,
    formats_number,
    grammar_of,
    pattern_of,
    shows_thinking,
    thinking_at,
)
from sigadapt.text.quotations import closing, fence_at, is_mention, run_of
from sigadapt.text.reader import BYTE_ORDER_MARK, PLAIN_TAGS, is_named
from sigadapt.text.written_values import space

_MOST_KEPT = 4_000
_CONTEXT = 300
"""How much of what has passed is kept: whether markup begins depends on what comes before it."""
_LONGEST_DOUBT = 500
"""Text that is still in doubt behind so many characters is held to the end, so that the work is linear."""
_LONGEST_CLOSER = 40
# Trying every opener at every character is slow. All begin with one of these.
_BEGINS = r"(?=[<\[{,&`~>◁\]fAH\n])"
# The mark of an output field; what else may begin a call or stand around one.
_FIELD = r"\[\[ ## (?:{0}) ## \]\]|[{{,]\s*[\"'](?:{0})[\"']|</?(?:{0})>"
_CALL = r"\bAction:\s*`*\Z|\[\s*\{\s*\"(?:name|tool_name|function|type|tool)\""
_NEXT_WORD = re.compile(r"\s*(?:[\w.-]+(?=[^\w.-])|[^\s\w.-])")
_NO_CALLS = r"(?!\s*:\s*(?:null|(?:\{\s*\"tool_calls\"\s*:\s*)?\[\s*\]))"
# A call without markup: a bracket, Harmony without its special tokens, or the name of a tool, which a model
# may write in other ways (`ToolTable.name_of`).
_BARE = (
    r"\s*+(?:</think(?:ing)?>\s*+)?(?!{field})(?:{json}|to=|(?:assistant)?(?:analysis[A-Z]|commentary\s+to=)"
    r"|(?:{tools})(?:\[(?:ARGS|CALL_ID)\]|(?:\n\s*)?\{{)"
    r"|(?:\[\s*)?['\"]?(?:{spelled})\s*\(\s*(?:\)|\*\*\{{|(?:[\w-]|\\_)++\s*=(?!=)))"
)
_SIGN = re.compile(r"[^a-zA-Z0-9-]")
_TAG_SIGN = re.compile("<")
_ANY_NAME = r"(?:[\w.-]|\\_)++"
_HEADER = regex.compile(TO_TOOL)


class FormatsGate:
    """The text of one answer in formats that the caller named: held from an opener to its end."""

    def __init__(self, openers: Iterable[str]) -> None:
        self._openers = regex.compile("|".join(filter(None, openers)) or r"(?!)", regex.DOTALL)
        self._output = list[str]()
        self._text = ""
        self._passed_end = 0
        """The position in `_text` up to which it has passed."""
        self._is_held = False
        """Whether what follows is held to the end."""

    def take(self, piece: str) -> str:
        """Take a piece of the answer's text, and return the text that may pass now."""
        if self._is_held:
            return ""
        if self._passed_end > _MOST_KEPT:
            self._text = self._text[self._passed_end - _CONTEXT :]
            self._passed_end = _CONTEXT
        self._text += piece if self._text else piece.removeprefix(BYTE_ORDER_MARK)
        end = self._free_end()
        text = self._text[self._passed_end : end]
        self._passed_end = end
        self._output.append(text)
        return text

    def remaining(self, answer: str | None) -> str:
        """Return what has not passed of the answer's text, as it is finally read."""
        final = (answer or "").removeprefix(BYTE_ORDER_MARK)
        passed = "".join(self._output)
        for strip in (str, str.lstrip, str.strip):  # the reading takes space away that has passed
            if strip(final).startswith(strip(passed)):
                return strip(final)[len(strip(passed)) :]
        # What passed was thought, as a closing tag shows now, or a reading took space out of its middle.
        words = "".join(passed.split())
        if not words or not "".join(final.split()).startswith(words):
            return f"\n{final}"
        character_ends = [character.end() for character in re.finditer(r"\S", final)]
        return final[character_ends[len(words) - 1] :]

    def _free_end(self) -> int:
        """Return the position up to which the text may pass."""
        opener = self._first_opener(self._passed_end)
        self._is_held = opener is not None and not opener.partial
        return opener.start() if opener else len(self._text)

    def _first_opener(self, start: int) -> regex.Match[str] | None:
        """Return the first opener from a position on, which may be one that the text ends in."""
        opener = self._openers.search(self._text, start, partial=True)
        if opener is None or opener.partial:
            return opener
        # `regex` prefers a whole match to an earlier one that the text ends in: `<x>get_weather` and a fence.
        for sign in _TAG_SIGN.finditer(self._text, start, opener.start()):
            earlier = self._openers.match(self._text, sign.start(), partial=True)
            if earlier is not None:
                return earlier
        return opener


class TextGate(FormatsGate):
    """The text of one answer while it streams, which is then read as `how` says (`Calling.reads`)."""

    def __init__(self, schemas: Mapping[str, Json], fields: Collection[str], **how: Any) -> None:
        layout: Layout = how.get("layout", NO_LAYOUT)
        call_format = str(how.get("call_format", ""))
        is_undeclared = bool(how.get("undeclared"))
        self._grammar = grammar_of(FORMATS)
        self._tools = ToolTable(schemas, undeclared=is_undeclared)
        self._is_asked = any(row.name == call_format for row in self._grammar.fences)
        json = OBJECT if call_format == "plain-json" else EXACT_OBJECT
        heads = (row.body.head or row.opener for row in FORMATS if row not in self._grammar.fences)
        calls_field = _FIELD.format(layout.field or "(?!)")
        self._head = regex.compile("|".join((json, calls_field, *heads)))
        self._sure = regex.compile("|".join(row.sure or row.opener for row in FORMATS if not row.bare))
        other_fields = {*fields} - {layout.field}
        field_mark = rf"(?P<field>{_FIELD.format(_either(other_fields))}|\[\[ ## \w+ ## \]\])"
        tags = _either(tag for tag in self._grammar.opening_tags if tag.strip("</>") not in other_fields)
        call_start = rf"(?P<call>{_CALL}|(?P<around>{tags})|(?:{calls_field}){_NO_CALLS})"
        leftover = rf"{LEFTOVER}|{self._grammar.closing_tags.pattern}"
        self._behind = regex.compile(rf"{leftover}|{SILENT}")
        openers = f"{call_start}|{field_mark}|(?P<leftover>{leftover})|{self._grammar.openers}"
        super().__init__([f"{_BEGINS}(?:{openers}|{pattern_of(_either(schemas))})"])
        spelling = _ANY_NAME
        if not is_undeclared:
            spellings = "|".join(_SIGN.sub(r"\\\\?[^a-zA-Z0-9-]", name) for name in schemas)
            spelling = rf"(?:functions\.)?(?:{spellings or '(?!)'})(?:\.call)?"
        bare = _BARE.format(field=field_mark, tools=_either(schemas), spelled=spelling, json=json)
        self._bare = regex.compile(bare)
        self._closer: re.Pattern[str] | None = None
        """What closes the fence or the thinking that is open."""
        self._is_thought = False
        self._is_begun = False
        """Whether anything but space has passed."""

    def take(self, piece: str) -> str:
        """Take a piece of the answer's text, and return the text that may pass now."""
        text = super().take(piece)
        self._is_begun = self._is_begun or bool(text.strip())
        return text

    def _free_end(self) -> int:
        cursor = self._passed_end
        while True:
            if self._closer is not None:
                cursor, is_closed = self._end_of_closer(cursor)
                if not is_closed:
                    return cursor
            is_start = not self._is_begun and cursor == self._passed_end and self._text[cursor:].strip()
            bare = self._bare.match(self._text, cursor, partial=True) if is_start else None
            opener = bare or self._first_opener(cursor)
            if opener is None:
                return len(self._text)
            end = None if bare or opener.partial else self._end_of(opener)
            if end is None:
                self._is_held = len(self._text) - opener.start() > _LONGEST_DOUBT
                return opener.start()
            cursor = end

    def _end_of_closer(self, start: int) -> tuple[int, bool]:
        """Return where the open fence or thinking ends, or goes on to at least; and whether it ends."""
        closer = self._closer.search(self._text, start) if self._closer else None
        is_closed = closer is not None and closer.end() < len(self._text)  # else, its line may go on
        if closer is None:
            end = max(start, len(self._text) - _LONGEST_CLOSER)
        else:
            end = closer.end() if is_closed else closer.start()
        if is_closed:
            self._closer = None
        if self._is_thought:
            self._passed_end = end
            self._is_thought = not is_closed
        return end, is_closed

    def _end_of(self, opener: regex.Match[str]) -> int | None:
        """Return the end of what begins no call; None if it begins one, or may."""
        kind = opener.lastgroup or ""
        if silence_end := self._end_of_silence(opener.start()):
            return silence_end
        if kind in ("thinking", "closer", "silent") and self._is_mention(opener):
            return opener.end()
        if opener["around"] or opener["field"]:
            kind = "tag"
        elif formats_number(kind) is not None:
            kind = "json"
        elif kind == "closer" and not shows_thinking(opener[0]):
            kind = "leftover"
        readers = {
            "code": self._end_of_code,
            "fence": self._end_of_fence,
            "json": self._end_of_format,
            "leftover": self._end_of_leftover,
            "tag": self._end_of_tag,
        }
        if kind in readers:
            return readers[kind](opener)
        # With a name behind it, `>>>` opens a call.
        is_text = kind in ("html", "escaped", "indented", "quote")
        return None if not is_text or ">>>".startswith(self._text[opener.start() :]) else opener.end()

    def _end_of_silence(self, start: int) -> int | None:
        """Leave out what is thought or says nothing, and return its end; None if it begins no answer."""
        if self._is_begun or self._text[self._passed_end : start].strip():
            return None
        if _HEADER.match(self._text, start, partial=True):
            return None
        opener = ANY_OPENER.match(self._text, start)
        if opener is not None:
            self._closer = re.compile(thinking_at(self._text, start).closer)
            self._is_thought = True
        silent = opener or SILENT_TOKEN.match(self._text, start)
        if silent is None:
            return None
        self._passed_end = silent.end()
        return silent.end()

    def _end_of_tag(self, tag: regex.Match[str]) -> int | None:
        """Return the end of a tag of an output field, or one that may stand around calls; None if it does."""
        # `<answer>` may be both. Any other tag stands around a call, unless a sentence names it.
        if tag["field"] or tag[0] in PLAIN_TAGS:
            content = self._text[tag.end() :].lstrip()[:1]
            may_hold_call = tag[0] in self._grammar.opening_tags and content in ("", "<", "[", "{", "]")
            return None if may_hold_call else tag.end()
        is_whole = tag[0].endswith((">", "]"))
        may_be_call = not is_whole or self._head.match(self._text, tag.start(), partial=True)
        return None if may_be_call or not self._is_mention(tag) else tag.end()

    def _is_mention(self, tag: regex.Match[str]) -> bool:
        """Return whether a sentence only names a tag, as its next word shows."""
        on_both_sides = tag.lastgroup == "thinking"
        if not is_mention(self._text, *tag.span(), on_both_sides=on_both_sides):
            return False
        return _NEXT_WORD.match(self._text, tag.end()) is not None

    def _may_begin(self, start: int) -> bool:
        """Return whether a call, or whatever is held, may begin at a position."""
        opener = self._openers.match(self._text, start, partial=True)
        return opener is not None and (opener.partial or self._end_of(opener) is None)

    def _end_of_format(self, opener: regex.Match[str]) -> int | None:
        """Return the end of the opener of a format or of JSON; None if what follows may make it a call."""
        start, end = opener.span()
        if self._head.match(self._text, start, partial=True):
            return None
        number = formats_number(opener.lastgroup)
        if number is None or self._sure.match(self._text, start, partial=True) is None:
            return end
        # Whether a sentence only names an opener is known when its next word has ended.
        has_next_word = _NEXT_WORD.match(self._text, end) is not None
        rows = self._grammar.formats[number]
        is_name = has_next_word and is_named(self._text, opener, rows, self._grammar, self._tools)
        return end if is_name else None

    def _end_of_leftover(self, tag: regex.Match[str]) -> int | None:
        """Return the end of a closing tag; None if it may hang behind the answer, or before a call."""
        next_start = space(self._text, tag.end())
        if next_start == len(self._text) or self._may_begin(next_start):
            return None
        is_next = self._behind.match(self._text, next_start, partial=True) is not None
        return None if is_next else tag.end()

    def _end_of_code(self, opener: regex.Match[str]) -> int | None:
        """Return the end of inline code, or of backticks that open none; None if they may."""
        line = self._text.find("\n", opener.end())
        line_end = line if line >= 0 else len(self._text)
        closer = run_of(len(opener[0])).search(self._text, opener.end(), line_end)
        if closer is not None and closer.end() < len(self._text):  # the run may go on
            return closer.end()
        return opener.end() if line >= 0 else None

    def _end_of_fence(self, opener: regex.Match[str]) -> int | None:
        """Return where the content of a fence begins that is a quotation; None if it may hold calls."""
        start = opener.start()
        fence = fence_at(Scan(self._text), start)
        if fence is None:
            return self._end_of_code(opener)
        if self._text.find("\n", start) < 0 or fence.info in CALL_LANGUAGES:
            return None
        if self._is_asked or not (self._is_begun or self._text[self._passed_end : start].strip()):
            content_start = space(self._text, fence.content_start)
            if self._bare.match(self._text, content_start, partial=True) or self._may_begin(content_start):
                return None
        self._closer = closing(opener[0])[1]
        return fence.content_start


def _either(words: Iterable[str]) -> str:
    """Return a pattern of any of the words."""
    return "|".join(map(re.escape, words)) or r"(?!)"
