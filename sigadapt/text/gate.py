"""Hold back streamed text that may be a call, until it is known.

Where calls are read from an answer's text, a listener must not see their markup. Text passes as it comes, up
to the first place where an opener stands or may come to stand (`_held_from`). What begins there is read as a
whole answer is, at the end of a line or of a tag, and passes if it is no call. What is still held when the
answer ends passes as far as the finished reading says it.
"""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

import re
from collections.abc import Collection, Mapping
from typing import Any

import jiter

from sigadapt.schemas.arguments import CutOff, Unread
from sigadapt.schemas.json_values import Json
from sigadapt.text.formats import FORMATS
from sigadapt.text.layout import NO_LAYOUT, Layout
from sigadapt.text.openers import grammar_of, opened
from sigadapt.text.quotations import fence_at, run_of
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
_LONGEST = 64
"""No opener is longer, up to the first character that settles it."""
_WORDS = ("functools", "function call", "Action:", "Here are my reasoning steps:\n")
_FIRST = re.compile(
    "|".join([r"[<\[{`~>◁\]]|\n(?=[ \t]*(?:\n[ \t]*|[ \t])\Z|[ \t]*\n(?: {4}| {0,3}\t))", *_WORDS])
)
_HALF_FIELD = re.compile(r'\[(?:\[(?: (?:#(?:# ?)?)?)?)?\Z|\{\s*(?:"[^"\\]*)?\Z')
_FIELD = re.compile(r'\[\[ ## (\w*)|\{\s*"([^"\\]*)"|</?(\w+)>')
_BARE = re.compile(r"(?P<name>[\w.:-]+)(?P<behind>\s*(?:\((?!\w+\s*[^\w\s=])|[{\[:])|\n|\Z)?")
# Harmony without its special tokens, as far as its first header is there.
_HEADLESS = re.compile(r"to=|(?:assistant)?(?:analysis(?=[A-Z]|\Z)|commentary\s+to=)")
_HEADLESS_WORDS = ("to=", "assistantanalysis", "analysis", "assistantcommentary to=", "commentary to=")
_FENCED_CALL = re.compile(r"[`~]+(?:[^\n]*\Z|[^\n]*\n\s*(?:\Z|[{\[<]|[\w.-]+(?:\(|\Z)))")
_ONLY_CLOSED = re.compile(r"</think(?:ing)?>\s*\Z")
_MARK = "§"
_LISTED_CALL = re.compile(r'\[\s*\{\s*"(?:name|tool_name|function|type|tool)"')
_SILENT_END = re.compile(
    rf"(?:{SILENT}|{CLOSER})[ \t]*\Z"
)  # whether a sentence goes on behind it is not known yet
_SETTLING = frozenset(" 0123456789=-(")


class TextGate:
    """The text of one answer while it streams.

    Args:
        schemas: the schemas of arguments by the names of the declared tools.
        fields: the names of the output fields.
        how: how the finished answer is read (`Calling.reads`).
    """

    def __init__(self, schemas: Mapping[str, Json], fields: Collection[str], **how: Any) -> None:
        self._grammar = grammar_of(FORMATS)
        self._schemas, self._how = schemas, how
        self._layout: Layout = how.get("layout", NO_LAYOUT)
        self._fields = {*fields} - {self._layout.field}
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
        place = _behind_same_words(final, passed)
        return final[place:] if place is not None else f"\n{final}"

    def _up_to_markup(self) -> str:
        place = self._held_from(self._settled)
        text = self._near[self._settled : place]
        if not self._is_begun and text.strip() and not self._begins_as_text(text):
            return ""
        return self._pass(text, place)

    def _held_from(self, place: int) -> int:
        """Return the first place from which a text may be markup; its length if there is none."""
        text = self._near
        while first := _FIRST.search(text, place):
            behind = self._behind(first.start())
            if behind is None:
                return first.start()
            place = behind
        end = text[-max(map(len, _WORDS)) :]
        halves = (size for word in _WORDS for size in range(1, len(word)) if end.endswith(word[:size]))
        return len(text) - max(halves, default=0)

    def _behind(self, at: int) -> int | None:
        """Return the place behind what is no markup; None if it is or may become some."""
        text = self._near
        behind = self._behind_field(at)
        if behind is not None or _HALF_FIELD.match(text, at):
            return behind
        token = self._grammar.token.match(text, at)
        if token is None:
            return at + 1 if self._is_settled(at) else None
        if token.lastgroup == "code":
            return self._behind_code(token)
        line = text.find("\n", at)
        is_quote = token.lastgroup == "quote" and line >= 0 and not text.startswith(">>>", at)
        return line if is_quote else None

    def _behind_code(self, opener: re.Match[str]) -> int | None:
        """Return the place behind inline code, or behind backticks that open none; None if they may."""
        line = self._near.find("\n", opener.start())
        close = run_of(len(opener[0])).search(
            self._near, opener.end(), line if line >= 0 else len(self._near)
        )
        if close is not None and close.end() < len(self._near):  # the run may go on
            return close.end()
        return opener.end() if line >= 0 else None

    def _behind_field(self, at: int) -> int | None:
        """Return the place behind the mark of an output field; None if there is none, or it holds markup."""
        text, field = self._near, _FIELD.match(self._near, at)
        if field is None:
            return None
        name, following = field[1] or field[2] or field[3], text[field.end() : field.end() + 1]
        if name in self._fields and (field[1] is None or following):
            # A tag such as `<answer>` may stand around a call, too, which takes it away.
            inside = text[field.end() :].lstrip()[:1] if field[0] in self._grammar.before else "text"
            return None if inside in ("", "<", "[", "{") else field.end()
        is_header = field[1] is not None and following == " "
        return field.end() if is_header and name != self._layout.field else None

    def _is_settled(self, at: int) -> bool:
        """Return whether what begins at a place can neither become an opener nor stand around a call."""
        text = self._near
        if text[at] == "\n":
            return bool(text[at + 1 :].strip(" \t\n"))
        if _LISTED_CALL.match(text, at):
            return False
        seen = text[at : at + _LONGEST]
        if seen.startswith(("<|", "<｜")) or any(
            seen[: len(tag)] == tag[: len(seen)] for tag in self._grammar.before
        ):
            return False
        return len(seen) == _LONGEST or seen[1:2] in _SETTLING or not _ENDS.isdisjoint(seen[1:])

    def _begins_as_text(self, text: str) -> bool:
        """Return whether a text begins as no call without markup does."""
        # Such a call begins with the name of a tool or a bracket; the end of a thinking may stand before it.
        begun = text.lstrip()
        if _ONLY_CLOSED.match(begun):
            return False
        if begun[:1] in ("[", "{"):
            return _FIELD.match(begun) is not None
        if _HEADLESS.match(begun) or any(word.startswith(begun) for word in _HEADLESS_WORDS):
            return False
        bare = _BARE.match(begun)
        if bare is None or bare["behind"] is None:
            return True
        name, is_whole = bare["name"], bare["behind"] != ""
        names = (
            (name.removesuffix(".call"),)
            if is_whole
            else tuple(n for n in self._schemas if n.startswith(name))
        )
        return not (self._how.get("undeclared") or any(each in self._schemas for each in names))

    def _as_read(self) -> str:
        """Read the text before the next call, and pass what it says if nothing in it is still open."""
        place = self._next_call()
        text = "".join(self._pieces)[: self._length - len(self._near) + place]
        is_open = place == self._settled or _SILENT_END.search(text, max(0, len(text) - _LONGEST))
        if is_open or _is_half_json(self._near[self._settled : place]):
            return ""
        reading = self._read(text)
        if any(isinstance(call.arguments, (CutOff, Unread)) for _, call in reading.calls):
            return ""
        said = text
        if reading.text != text:
            # With a mark behind it, a reading shows whether it is still said, and the space before it.
            marked = self._read(f"{text}{_MARK}").text or ""
            if not marked.endswith(_MARK):
                return ""
            said, self._lacks = marked[:-1], True
        passed = "".join(self._passed)
        if not said.startswith(passed):
            said, passed = said.lstrip(), passed.lstrip()
        if not said.startswith(passed):
            return ""
        news = said[len(passed) :]
        if self._is_begun or news.lstrip()[:1] in ("[", "{") or not text.endswith(news):
            return self._pass(news, place)
        self._settle(place - len(news))
        return self._up_to_markup()

    def _next_call(self) -> int:
        """Return the first place from which an opener of a call stands, or may come to stand."""
        place, text = self._settled, self._near
        while first := _FIRST.search(text, place):
            at = first.start()
            token = self._grammar.token.match(text, at)
            if opened(token) is not None if token else not self._is_settled(at):
                return at
            if token and token.lastgroup == "code" and self._behind_code(token) is None:
                return at
            if token and token[0][0] == "`" and token.end() == len(text):
                return at  # the run may go on
            if token and token.lastgroup == "fence" and _FENCED_CALL.match(text, at):
                fence = fence_at(Scan(text), at)
                if fence is not None and fence.end == len(text):
                    return at
            place = max(token.end() if token else 0, at + 1)
        return len(text)

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


def _behind_same_words(final: str, passed: str) -> int | None:
    """Return the place in a text behind all words of another one that it begins with; None if it does not."""
    words = iter(re.finditer(r"\S", final))
    place = 0
    for char in passed:
        if char.isspace():
            continue
        match = next(words, None)
        if match is None or match[0] != char:
            return None
        place = match.end()
    return place


def _is_half_json(text: str) -> bool:
    """Return whether a text is JSON so far, but not whole."""
    if not text.startswith(("{", "[")):
        return False
    content = text.encode("utf-8", "replace")
    try:
        jiter.from_json(content, partial_mode=True)
    except ValueError:
        return False
    try:
        jiter.from_json(content)
    except ValueError:
        return True
    return False
