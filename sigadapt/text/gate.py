"""Hold back streamed text that may be a call, until it is known.

Where calls are read from an answer's text, a listener must not see their markup. Text passes as it comes, up
to the first place where an opener stands, or may come to stand because the text ends in one. What begins
there is read as a whole answer is, at the end of a line or of a tag, and passes if it is no call. What is
still held when the answer ends passes as far as the finished reading says it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import regex  # unlike `re`, it says where a match may begin that the text ends in

from sigadapt.schemas.arguments import CutOff, Unread
from sigadapt.schemas.json_values import Json
from sigadapt.text.contract import Tools
from sigadapt.text.faulty_calls import block_head
from sigadapt.text.formats import FORMATS
from sigadapt.text.formats.bare_json import HEAD
from sigadapt.text.formats.json_calls import OBJECT
from sigadapt.text.layout import NO_LAYOUT, Layout
from sigadapt.text.openers import CALL_LANGUAGES, grammar_of, opened
from sigadapt.text.quotations import ENDS, closing, fence_at, is_open, run_of
from sigadapt.text.reader import BYTE_ORDER_MARK, read_text
from sigadapt.text.scan import COMMENT, Scan
from sigadapt.text.thinking import CLOSER, OPENER, SILENT, is_mention
from sigadapt.text.written_values import space

_ENDS = frozenset("\n>]}▷")
"""Characters that end a line, a tag or a value."""
_SEEN = 8
"""How much of what has passed is kept: whether markup begins depends on what stands before it."""
_GROWTH = 8
_SHORT = 2_000
"""Beyond this size, a text is read again only when it has grown by an eighth, so that the work is linear."""
_LONGEST_TAG = 64
_NOTHING = ("[]", "</", "<|", "<｜", "[/")
"""What may follow an opening tag around nothing, which is taken away."""
_MOST_TAGS = 8
"""How many tags around a call are looked past."""
_SILENT = re.compile(SILENT)
# Whether a sentence goes on behind it is not known yet.
_SILENT_END = re.compile(rf"(?:{SILENT}|{CLOSER})[ \t]*\Z")
_MARK = "§"
_COMMENT = regex.compile(COMMENT)
_PRINT = "print("
_FENCE_SIGNS = "`~"
# Trying every opener at every character is slow. All begin with one of these.
_BEGINS = r"(?=[<\[{,&`~>◁\]fAH\n])"
# The mark of an output field; what else may begin a call or stand around one.
_FIELD = r"\[\[ ## (?:{0}) ## \]\]|[{{,]\s*[\"'](?:{0})[\"']|</?(?:{0})>"
_CALL = r"\bAction:\s*`*\Z|\[\s*\{\s*\"(?:name|tool_name|function|type|tool)\""
_WORD_BEHIND = re.compile(r"[ \t]*\S")
_NO_CALLS = r"(?!\s*:\s*(?:null|(?:\{\s*\"tool_calls\"\s*:\s*)?\[\s*\]))"
# A call without markup: a bracket, Harmony without its special tokens, or the name of a tool, which a model
# may write in other ways (`Tools.name_of`).
_BARE = (
    r"\s*+(?:</think(?:ing)?>\s*+)?(?!{field})(?:{json}|to=|(?:assistant)?(?:analysis[A-Z]|commentary\s+to=)"
    r"|(?:{tools})(?:\[(?:ARGS|CALL_ID)\]|(?:\n\s*)?\{{)"
    r"|(?:\[\s*)?['\"]?(?:{spelled})\s*\(\s*(?:\)|\*\*\{{|(?:[\w-]|\\_)++\s*=(?!=)))"
)
_SIGN = re.compile(r"[^a-zA-Z0-9-]")
_ANY_NAME = r"(?:[\w.-]|\\_)++"


class _Quotation(NamedTuple):
    """The fence around a place: what may close it, if one is open."""

    closer: re.Pattern[str] | None = None
    is_doubtful: bool = False  # whether what was passed, such as long JSON, may go on and hold the next fence


class TextGate:
    """The text of one answer while it streams, which is then read as `how` says (`Calling.reads`)."""

    def __init__(self, schemas: Mapping[str, Json], fields: Collection[str], **how: Any) -> None:
        self._schemas = schemas
        self._how = how
        layout: Layout = how.get("layout", NO_LAYOUT)
        grammar = grammar_of(FORMATS)
        self._tags = grammar.before
        self._after = grammar.after
        self._tools = Tools(schemas, undeclared=bool(how.get("undeclared")))
        heads = [each.head or each.opener for formats in grammar.formats for each in formats]
        self._heads = [*map(regex.compile, heads)]
        self._begins = regex.compile("|".join((*heads, OPENER, CLOSER, SILENT)))
        call_format = str(how.get("call_format", ""))
        self._json = OBJECT if call_format == "plain-json" else HEAD
        self._faulty = regex.compile(f"{block_head(call_format, schemas)}|{self._json}")
        self._is_asked = any(each.name == call_format for each in grammar.fences)
        self._quotation = self._around = _Quotation()
        """What stands around the place up to which the text has passed, and around the one looked at."""
        names = {*fields} - {layout.field}
        field = rf"(?P<field>{_FIELD.format(_either(names))}|\[\[ ## \w+ ## \]\])"
        tags = _either(tag for tag in grammar.before if tag.strip("</>") not in names)
        call = rf"(?P<call>{_CALL}|{tags}|(?:{_FIELD.format(layout.field or '(?!)')}){_NO_CALLS})"
        self._openers = regex.compile(f"{_BEGINS}(?:{call}|{field}|{grammar.openers})")
        self._markup = regex.compile(grammar.openers)
        spelling = _ANY_NAME
        if not how.get("undeclared"):
            names = "|".join(_SIGN.sub(r"\\\\?[^a-zA-Z0-9-]", name) for name in schemas) or "(?!)"
            spelling = rf"(?:functions\.)?(?:{names})(?:\.call)?"
        start = {"field": field, "tools": _either(schemas), "spelled": spelling, "json": self._json}
        self._bare = regex.compile(_BARE.format(**start))
        self._pieces = list[str]()
        self._output = list[str]()
        self._near = ""
        self._begin = 0
        """The end of the text, and the place in it up to which it has passed."""
        self._waiting = list[str]()
        """Pieces that are not in `_near` yet, because nothing in them could settle what is held."""
        self._length = self._next_reading = 0
        self._is_begun = self._lacks = False
        """Whether anything but space has passed; whether what passed lacks something, such as a thinking."""

    def take(self, piece: str) -> str:
        """Take a piece of the answer's text, and return the text that may pass now."""
        piece = piece.removeprefix(BYTE_ORDER_MARK) if not self._length else piece
        self._pieces.append(piece)
        self._waiting.append(piece)
        self._length += len(piece)
        can_end = not _ENDS.isdisjoint(piece)
        if len(self._near) - self._begin > _SHORT and not (can_end and self._length >= self._next_reading):
            return ""
        self._near += "".join(self._waiting)
        self._waiting.clear()
        passing = self._up_to_markup()
        if self._begin < len(self._near) and can_end and self._length >= self._next_reading:
            self._next_reading = self._length + self._length // _GROWTH * (self._length > _SHORT)
            passing += self._as_read()
        return passing

    def remaining(self, answer: str | None) -> str:
        """Return what has not passed of the answer's text, as it is finally read."""
        final = (answer or "").removeprefix(BYTE_ORDER_MARK)
        before = "".join(self._output)
        for bare in (str, str.lstrip, str.strip):  # the reading takes space away that has passed
            if bare(final).startswith(bare(before)):
                return bare(final)[len(bare(before)) :]
        # What passed was thought, as a closing tag shows now, or a reading took space out of its middle.
        words = "".join(before.split())
        if not words or not "".join(final.split()).startswith(words):
            return f"\n{final}"
        return final[[each.end() for each in re.finditer(r"\S", final)][len(words) - 1] :]

    def _up_to_markup(self) -> str:
        place = self._first_opener(self._behind_text)
        text = self._near[self._begin : place]
        if not self._is_begun and text.strip() and self._bare.match(self._near, self._begin, partial=True):
            return ""
        return self._pass(text, place)

    def _behind_quotation(self, place: int) -> int:
        """Return the place behind the fence that is open, or up to which it goes on at least."""
        end = self._around.closer.search(self._near, place) if self._around.closer else None
        if end is None:  # what closes the fence may come in pieces
            return max(place, len(self._near.rstrip(_FENCE_SIGNS)))
        if end.end() == len(self._near):  # the line may go on
            return end.start()
        line = self._near[self._near.rfind("\n", 0, end.start()) + 1 : end.start()]
        self._around = _Quotation(is_doubtful=bool(line.strip()))
        return end.end()

    def _first_opener(self, behind: Callable[[regex.Match[str]], int | None]) -> int:
        """Return the first place where an opener may stand, past those behind which `behind` leads."""
        place = self._begin
        self._around = self._quotation
        if self._around.closer is not None:
            place = self._behind_quotation(place)
        while self._around.closer is None:
            opener = self._openers.search(self._near, place, partial=True)
            if opener is None:
                return len(self._near)
            after = None if opener.partial else behind(opener)
            if after is None:
                return opener.start()
            place = after
        return place

    def _behind_text(self, opener: regex.Match[str]) -> int | None:
        """Return the place behind what is no markup; None if it is or may become some."""
        kind = opener.lastgroup
        at = opener.start()
        end = opener.end()
        if opener["field"]:  # a tag such as `<answer>` may stand around a call, too, which takes it away
            holds = self._near[end:].lstrip()[:1] if opener[0] in self._tags else "text"
            return None if holds in ("", "<", "[", "{") else end
        if kind in ("code", "fence"):
            return self._behind_code(opener) if kind == "code" else self._behind_fence(opener)
        if kind in ("json", "html", "escaped"):
            return self._behind_element(kind, opener)
        if kind == "call" or opened(kind) is not None:
            is_field = kind == "call" and opener[0] not in self._tags
            is_bare = opener[0] in ("{", "[")
            after = None if is_field or self._may_be_call(at) else end
            return self._behind_element("json", opener) if after is not None and is_bare else after
        if kind in ("thinking", "closer", "silent"):
            is_said = kind == "thinking" and (self._is_begun or self._near[self._begin : at].strip())
            is_known = _WORD_BEHIND.match(self._near, end) is not None
            return end if is_said and is_known and is_mention(self._near, at, end, both=True) else None
        line = self._near.find("\n", at)
        is_quote = kind == "quote" and not self._near.startswith(">>>", at)
        return line if is_quote and line >= 0 else None

    def _may_be_call(self, at: int) -> bool:
        """Return whether a call, or tags around one, begin at a place, or may come to."""
        for _ in range(_MOST_TAGS):
            token = self._markup.match(self._near, at, partial=True)
            if self._begins_call(at, token):
                return True
            tag = next((tag for tag in self._tags if self._near.startswith(tag, at)), "")
            if token is None and not tag:
                return False
            at = self._behind_comments(at + len(tag) if tag or token is None else token.end())
            if at < len(self._near) and not self._near.startswith(_NOTHING, at) and not tag:
                return False
            if not tag or self._near.startswith(_NOTHING, at):
                return True
        return True

    def _behind_comments(self, at: int) -> int:
        """Return the place behind white space and comments, the last of which may go on."""
        at = space(self._near, at)
        while (comment := _COMMENT.match(self._near, at, partial=True)) is not None:
            if comment.partial:
                return len(self._near)
            at = space(self._near, comment.end())
        return at

    def _begins_call(self, at: int, token: regex.Match[str] | None) -> bool:
        """Return whether the text from a place on may begin a call, a thinking or a silent token."""
        if at == len(self._near) or self._faulty.match(self._near, at, partial=True):
            return True
        if token is not None and (token.partial or token.lastgroup in ("thinking", "silent")):
            return True
        begin = self._begins.match(self._near, at, partial=True)
        if begin is None or begin.end() == len(self._near):
            return begin is not None
        for head in filter(None, (each.match(self._near, at, partial=True) for each in self._heads)):
            name = None if head.end() == len(self._near) else head.groupdict().get("name")
            if name is None or self._tools.name_of(name.removesuffix(".call")) is not None:
                return True
        return False

    def _behind_no_call(self, opener: regex.Match[str]) -> int | None:
        """Return the place behind what is no call; None if it is or may become one."""
        kind = opener.lastgroup
        at = opener.start()
        end = opener.end()
        behind = self._behind_text(opener)
        if behind is not None or kind == "code" or opener["field"]:
            return behind
        if kind == "fence":
            fence = fence_at(Scan(self._near), at)
            if fence is None or fence.end == len(self._near) or self._around.is_doubtful:
                return None
            self._around = _Quotation(is_doubtful=not self._near.startswith("\n", fence.close))
            return fence.end
        if kind == "call" or opened(kind) is not None:
            return None
        return self._behind_element(kind, opener) or max(end, at + 1)

    def _behind_element(self, kind: str | None, opener: regex.Match[str]) -> int | None:
        """Return the place behind a quotation that is not a fence; None while it is short and open."""
        at, end = opener.span()
        behind = ENDS[kind](Scan(self._near), at, end) if kind in ENDS else end
        if behind < len(self._near):
            return behind
        if len(self._near) - at <= _LONGEST_TAG:
            return None
        self._around = _Quotation(is_doubtful=True)  # fences in it are none
        return end

    def _behind_code(self, opener: regex.Match[str]) -> int | None:
        """Return the place behind inline code, or behind backticks that open none; None if they may."""
        line = self._near.find("\n", opener.start())
        end = line if line >= 0 else len(self._near)
        close = run_of(len(opener[0])).search(self._near, opener.end(), end)
        if close is not None and close.end() < len(self._near):  # the run may go on
            return close.end()
        return opener.end() if line >= 0 else None

    def _behind_fence(self, opener: regex.Match[str]) -> int | None:
        """Return the place behind a fence, or the text's end while it is open; None if it may hold calls."""
        at = opener.start()
        scan = Scan(self._near)
        if self._around.is_doubtful or self._near.find("\n", at) < 0:
            return None
        fence = fence_at(scan, at)
        if fence is None:
            return self._behind_code(opener)
        begin = scan.space(fence.inner)
        is_beside = self._is_begun or bool(self._near[self._begin : at].strip())
        if is_beside and fence.info in CALL_LANGUAGES and self._may_hold_calls(begin):
            return None
        if begin == len(self._near) or self._is_asked or not is_beside:
            token = self._openers.match(self._near, begin, partial=True)
            is_call = fence.info.startswith("tool") or begin == len(self._near)
            is_call = is_call or self._bare.match(self._near, begin, partial=True) is not None
            if is_call or (token is not None and (token.partial or self._behind_text(token) is None)):
                return None
        self._around = _Quotation(closing(opener[0])[1])
        return self._behind_quotation(fence.inner)

    def _may_hold_calls(self, begin: int) -> bool:
        """Return whether the content of a fence may begin with a call, printed or not."""
        printed = self._near[begin : begin + len(_PRINT)]
        return _PRINT.startswith(printed) or self._bare.match(self._near, begin, partial=True) is not None

    def _as_read(self) -> str:
        """Read the text before the next call, and pass what it says if nothing in it is still open."""
        place = self._first_opener(self._behind_no_call)
        text = "".join(self._pieces)[: self._length - len(self._near) + place]
        if place == self._begin or _SILENT_END.search(text, max(0, len(text) - _LONGEST_TAG)):
            return ""
        reading = read_text(text, self._schemas, **self._how)
        if any(isinstance(call.arguments, (CutOff, Unread)) for _, call in reading.calls):
            return ""
        visible = text
        if reading.text != text:
            # With a mark behind it, a reading shows whether it is still said, and the space before it.
            with_mark = read_text(f"{text}{_MARK}", self._schemas, **self._how)
            if not (with_mark.text or "").endswith(_MARK) or len(with_mark.calls) < len(reading.calls):
                return ""
            visible = (with_mark.text or "")[:-1]
            self._lacks = True
        before = "".join(self._output)
        if not visible.startswith(before):
            visible = visible.lstrip()
            before = before.lstrip()
        news = visible[len(before) :]
        is_json = not self._is_begun and news.lstrip()[:1] in ("[", "{")
        is_half = is_json and is_open(news.lstrip(), 0)
        tokens = _SILENT.finditer(text, len(text) - len(news))
        if (
            not visible.startswith(before)
            or is_half
            or any(_is_in_json(text, each.start()) for each in tokens)
        ):
            return ""
        if self._is_begun or is_json or not text.endswith(news):
            return self._pass(news, place)
        self._around = _Quotation()
        self._settle(place - len(news))
        return self._up_to_markup()

    def _pass(self, text: str, place: int) -> str:
        """Pass a text, after which the answer is settled up to a place."""
        if not self._is_begun:
            text = text.lstrip() if self._lacks else text
            self._is_begun = bool(text.strip())
        self._settle(place)
        self._output.append(text)
        return text

    def _settle(self, place: int) -> None:
        cut = max(place - _SEEN, 0)
        self._near = self._near[cut:]
        self._begin = place - cut
        self._quotation = self._around


def _is_in_json(text: str, at: int) -> bool:
    """Return whether JSON that is still open where the text ends holds a place."""
    # Such a token is a part of a string, unless what began like JSON never ends.
    for _ in range(_MOST_TAGS):
        at = max(text.rfind("{", 0, at), text.rfind("[", 0, at))
        if at < 0 or is_open(text, at):
            return at >= 0
    return False


def _either(words: Iterable[str]) -> str:
    """Return a pattern of any of the words."""
    return "|".join(map(re.escape, words)) or r"(?!)"
