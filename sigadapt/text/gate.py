"""Hold back streamed text that may be a call, until it is known.

Where calls are read from an answer's text, a listener must not see their markup. Text passes as it comes, up
to the first place where an opener stands, or may come to stand because the text ends in one. What begins
there is read as a whole answer is, at the end of a line or of a tag, and passes if it is no call. What is
still held when the answer ends passes as far as the finished reading says it.
"""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import regex  # unlike `re`, it says where a match may begin that the text ends in

from sigadapt.schemas.arguments import CutOff, Unread
from sigadapt.schemas.json_values import Json
from sigadapt.text.formats import FORMATS
from sigadapt.text.layout import NO_LAYOUT, Layout
from sigadapt.text.openers import grammar_of, opened
from sigadapt.text.quotations import fence_at, is_open, run_of
from sigadapt.text.reader import TextReading, read_text
from sigadapt.text.scan import Scan
from sigadapt.text.thinking import CLOSER, SILENT

_ENDS = frozenset("\n>]}▷")
"""Characters that end a line, a tag or a value."""
_SEEN = 8
"""How much of what has passed is kept: whether markup begins depends on what stands before it."""
_GROWTH = 8
_SHORT = 2_000
"""Beyond this size, a text is read again only when it has grown by an eighth, so that the work is linear."""
_LONGEST_TAG = 64
_FENCED_CALL = re.compile(r"[`~]+(?:[^\n]*\Z|[^\n]*\n\s*(?:\Z|[{\[<]|[\w.-]+(?:\(|\Z)))")
# Whether a sentence goes on behind it is not known yet.
_SILENT_END = re.compile(rf"(?:{SILENT}|{CLOSER})[ \t]*\Z")
_MARK = "§"
# Trying every opener at every character is slow. All begin with one of these.
_BEGINS = r"(?=[<\[{,&`~>◁\]fAH\n])"
# The mark of an output field; what else may begin a call or stand around one.
_FIELD = r"\[\[ ## (?:{0}) ## \]\]|[{{,]\s*\"(?:{0})\"|</?(?:{0})>"
_CALL = r"\bAction:\s*`*\Z|\[\s*\{\s*\"(?:name|tool_name|function|type|tool)\""
_NO_CALLS = r"(?!\s*:\s*(?:null|(?:\{\s*\"tool_calls\"\s*:)?\s*\[\s*\]))"
_UNKNOWN = r"(?P<call><[|｜])"  # a token of a model
# A call without markup: a bracket, Harmony without its special tokens, or the name of a tool, which a model
# may write in other ways (`Tools.name_of`).
_BARE = (
    r"\s*(?:</think(?:ing)?>\s*)?(?!{field})(?:[\[{{]|to=|(?:assistant)?(?:analysis[A-Z]|commentary\s+to=)"
    r"|(?:{tools})(?:\[(?:ARGS|CALL_ID)\]|(?:\n\s*)?\{{)"
    r"|['\"]?(?:{spelled})\s*\(\s*(?:\)|\*\*\{{|(?:[\w-]|\\_)++\s*=(?!=)))"
)
_SIGN = re.compile(r"[^a-zA-Z0-9-]")
_ANY_NAME = r"(?:[\w.-]|\\_)++"


class TextGate:
    """The text of one answer while it streams, which is then read as `how` says (`Calling.reads`)."""

    def __init__(self, schemas: Mapping[str, Json], fields: Collection[str], **how: Any) -> None:
        self._schemas, self._how = schemas, how
        layout: Layout = how.get("layout", NO_LAYOUT)
        grammar = grammar_of(FORMATS)
        self._tags = {*grammar.before}
        names = {*fields} - {layout.field}
        field = rf"(?P<field>{_FIELD.format(_either(names))}|\[\[ ## \w+ ## \]\])"
        tags = _either(tag for tag in grammar.before if tag.strip("</>") not in names)
        call = rf"(?P<call>{_CALL}|{tags}|(?:{_FIELD.format(layout.field or '(?!)')}){_NO_CALLS})"
        self._openers = regex.compile(f"{_BEGINS}(?:{call}|{field}|{grammar.openers}|{_UNKNOWN})")
        spelled = _ANY_NAME
        if not how.get("undeclared"):
            names = "|".join(_SIGN.sub(r"\\\\?[^a-zA-Z0-9-]", name) for name in schemas) or "(?!)"
            spelled = rf"(?:functions\.)?(?:{names})(?:\.call)?"
        self._bare = regex.compile(_BARE.format(field=field, tools=_either(schemas), spelled=spelled))
        self._pieces = list[str]()
        self._passed = list[str]()
        self._near, self._settled = "", 0
        """The end of the text, and the place in it up to which it has passed."""
        self._held = list[str]()
        """Pieces that are not in `_near` yet, because nothing in them could settle what is held."""
        self._length = self._next_reading = 0
        self._is_begun = self._lacks = False
        """Whether anything but space has passed; whether what passed lacks something, such as a thinking."""

    def take(self, piece: str) -> str:
        """Take a piece of the answer's text, and return the text that may pass now."""
        self._pieces.append(piece)
        self._held.append(piece)
        self._length += len(piece)
        can_end = not _ENDS.isdisjoint(piece)
        if len(self._near) - self._settled > _SHORT and not (can_end and self._length >= self._next_reading):
            return ""
        self._near += "".join(self._held)
        self._held.clear()
        passing = self._up_to_markup()
        if self._settled < len(self._near) and can_end and self._length >= self._next_reading:
            self._next_reading = self._length + self._length // _GROWTH * (self._length > _SHORT)
            passing += self._as_read()
        return passing

    def rest(self, said: str | None) -> str:
        """Return what has not passed of the answer's text, as it is finally read."""
        final, passed = said or "", "".join(self._passed)
        for bare in (str, str.lstrip, str.strip):  # the reading takes space away that has passed
            if bare(final).startswith(bare(passed)):
                return bare(final)[len(bare(passed)) :]
        # What passed was thought, as a closing tag shows now, or a reading took space out of its middle.
        words = "".join(passed.split())
        if not words or not "".join(final.split()).startswith(words):
            return f"\n{final}"
        return final[[each.end() for each in re.finditer(r"\S", final)][len(words) - 1] :]

    def _up_to_markup(self) -> str:
        place = self._first_opener(self._behind_text)
        text = self._near[self._settled : place]
        if not self._is_begun and text.strip() and self._bare.match(self._near, self._settled, partial=True):
            return ""
        return self._pass(text, place)

    def _first_opener(self, behind: Callable[[regex.Match[str]], int | None]) -> int:
        """Return the first place where an opener may stand, past those behind which `behind` leads."""
        place = self._settled
        while opener := self._openers.search(self._near, place, partial=True):
            after = None if opener.partial else behind(opener)
            if after is None:
                return opener.start()
            place = after
        return len(self._near)

    def _behind_text(self, opener: regex.Match[str]) -> int | None:
        """Return the place behind what is no markup; None if it is or may become some."""
        if opener["field"]:
            return self._behind_field(opener)
        if opener.lastgroup == "code":
            return self._behind_code(opener)
        line = self._near.find("\n", opener.start())
        is_quote = opener.lastgroup == "quote" and not self._near.startswith(">>>", opener.start())
        return line if is_quote and line >= 0 else None

    def _behind_no_call(self, opener: regex.Match[str]) -> int | None:
        """Return the place behind what is no call; None if it is or may become one."""
        kind, at, end = opener.lastgroup, opener.start(), opener.end()
        if kind == "call" or opened(kind) is not None or (opener[0][0] == "`" and end == len(self._near)):
            return None
        if opener["field"]:
            return self._behind_field(opener)
        if kind == "code":
            return self._behind_code(opener)
        if kind == "fence" and _FENCED_CALL.match(self._near, at):
            fence = fence_at(Scan(self._near), at)
            return None if fence is not None and fence.end == len(self._near) else end
        return max(end, at + 1)

    def _behind_code(self, opener: regex.Match[str]) -> int | None:
        """Return the place behind inline code, or behind backticks that open none; None if they may."""
        line = self._near.find("\n", opener.start())
        end = line if line >= 0 else len(self._near)
        close = run_of(len(opener[0])).search(self._near, opener.end(), end)
        if close is not None and close.end() < len(self._near):  # the run may go on
            return close.end()
        return opener.end() if line >= 0 else None

    def _behind_field(self, mark: regex.Match[str]) -> int | None:
        """Return the place behind the mark of an output field; None if it may hold a call."""
        # A tag such as `<answer>` may stand around a call, too, which takes it away.
        holds = self._near[mark.end() :].lstrip()[:1] if mark[0] in self._tags else "text"
        return None if holds in ("", "<", "[", "{") else mark.end()

    def _as_read(self) -> str:
        """Read the text before the next call, and pass what it says if nothing in it is still open."""
        place = self._first_opener(self._behind_no_call)
        text = "".join(self._pieces)[: self._length - len(self._near) + place]
        if place == self._settled or _SILENT_END.search(text, max(0, len(text) - _LONGEST_TAG)):
            return ""
        reading = self._read(text)
        if any(isinstance(call.arguments, (CutOff, Unread)) for _, call in reading.calls):
            return ""
        said = text
        if reading.text != text:
            # With a mark behind it, a reading shows whether it is still said, and the space before it.
            marked = self._read(f"{text}{_MARK}")
            if not (marked.text or "").endswith(_MARK) or len(marked.calls) < len(reading.calls):
                return ""
            said, self._lacks = (marked.text or "")[:-1], True
        passed = "".join(self._passed)
        if not said.startswith(passed):
            said, passed = said.lstrip(), passed.lstrip()
        news = said[len(passed) :]
        is_json = not self._is_begun and news.lstrip()[:1] in ("[", "{")
        if not said.startswith(passed) or (is_json and is_open(news.lstrip(), 0)):
            return ""
        if self._is_begun or is_json or not text.endswith(news):
            return self._pass(news, place)
        self._settle(place - len(news))
        return self._up_to_markup()

    def _pass(self, text: str, place: int) -> str:
        """Pass a text, after which the answer is settled up to a place."""
        if not self._is_begun:
            text = text.lstrip() if self._lacks else text
            self._is_begun = bool(text.strip())
        self._settle(place)
        self._passed.append(text)
        return text

    def _settle(self, place: int) -> None:
        cut = max(place - _SEEN, 0)
        self._near, self._settled = self._near[cut:], place - cut

    def _read(self, text: str) -> TextReading:
        return read_text(text, self._schemas, **self._how)


def _either(words: Iterable[str]) -> str:
    """Return a pattern of any of the words."""
    return "|".join(map(re.escape, words)) or r"(?!)"
