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

from sigadapt.schemas.arguments import CutOff, UnreadCall
from sigadapt.schemas.json_values import Json
from sigadapt.text.bare import HEAD
from sigadapt.text.bodies.objects import OBJECT
from sigadapt.text.contract import ToolTable
from sigadapt.text.formats import FORMATS
from sigadapt.text.layout import NO_LAYOUT, Layout
from sigadapt.text.openers import CALL_LANGUAGES, LEFTOVER, formats_number, grammar_of
from sigadapt.text.quotations import ENDS, closing, fence_at, is_open, run_of
from sigadapt.text.reader import BYTE_ORDER_MARK, is_named, read_text
from sigadapt.text.scan import COMMENT, Scan
from sigadapt.text.thinking import CLOSER, SILENT, is_mention
from sigadapt.text.unknown_markup import pattern_of
from sigadapt.text.written_values import space

_ENDS = frozenset("\n>]}▷")
"""Characters that end a line, a tag or a value."""
_CONTEXT_KEPT = 8
"""How much of what has passed is kept: whether markup begins depends on what comes before it."""
_GROWTH = 8
_SHORT = 2_000
"""Beyond this size, a text is read again only when it has grown by an eighth, so that the work is linear."""
_LONGEST_TAG = 64
_AFTER_EMPTY_TAG = ("[]", "</", "<|", "<｜", "[/")
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
_UNKNOWN = ("tag", "attribute", "word")
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
_ANY_NAME = r"(?:[\w.-]|\\_)++"


class _Quotation(NamedTuple):
    """The fence around a place: what may close it, if one is open."""

    closer: re.Pattern[str] | None = None
    is_doubtful: bool = False  # whether what was passed, such as long JSON, may go on and hold the next fence


class FormatsGate:
    """The text of one answer in formats that the caller named: held from an opener to its end."""

    def __init__(self, openers: Iterable[str]) -> None:
        self._openers = regex.compile("|".join(filter(None, openers)) or r"(?!)", regex.DOTALL)
        self._text = ""
        self._passed_end = 0
        self._is_held = False

    def take(self, piece: str) -> str:
        """Take a piece of the answer's text, and return the text that may pass now."""
        self._text += piece
        if self._is_held:
            return ""
        opener = self._openers.search(self._text, self._passed_end, partial=True)
        self._is_held = opener is not None and not opener.partial
        end = opener.start() if opener else len(self._text)
        text = self._text[self._passed_end : end]
        self._passed_end = end
        return text

    def remaining(self, answer: str | None) -> str:
        """Return what has not passed of the answer's text, as it is finally read."""
        final = (answer or "").lstrip()
        passed = self._text[: self._passed_end].strip()
        return final.removeprefix(passed) if final.startswith(passed) else f"\n{final}"


class TextGate:
    """The text of one answer while it streams, which is then read as `how` says (`Calling.reads`)."""

    def __init__(self, schemas: Mapping[str, Json], fields: Collection[str], **how: Any) -> None:
        self._schemas = schemas
        self._reading_options = how
        layout: Layout = how.get("layout", NO_LAYOUT)
        call_format = str(how.get("call_format", ""))
        is_undeclared = bool(how.get("undeclared"))
        grammar = grammar_of(FORMATS)
        self._opening_tags = grammar.opening_tags
        self._closing_tags = grammar.closing_tags
        self._tools = ToolTable(schemas, undeclared=is_undeclared)
        self._json = OBJECT if call_format == "plain-json" else HEAD
        self._grammar = grammar
        marked = [row for row in FORMATS if not row.bare]
        heads = (row.body.head or row.opener for row in FORMATS if row not in grammar.fences)
        self._head = regex.compile("|".join((self._json, *heads)))
        self._sure = regex.compile("|".join(row.sure or row.opener for row in marked))
        self._is_asked = any(text_format.name == call_format for text_format in grammar.fences)
        other_fields = {*fields} - {layout.field}
        field_mark = rf"(?P<field>{_FIELD.format(_either(other_fields))}|\[\[ ## \w+ ## \]\])"
        tags = _either(tag for tag in grammar.opening_tags if tag.strip("</>") not in other_fields)
        calls_field = _FIELD.format(layout.field or "(?!)")
        call_start = rf"(?P<call>{_CALL}|{tags}|(?:{calls_field}){_NO_CALLS})"
        leftover = rf"{LEFTOVER}|{grammar.closing_tags.pattern}"
        self._behind = regex.compile(rf"{leftover}|{SILENT}")
        openers = f"{call_start}|{field_mark}|(?P<leftover>{leftover})|{grammar.openers}"
        self._openers = regex.compile(f"{_BEGINS}(?:{openers}|{pattern_of(_either(schemas))})")
        self._markup = regex.compile(grammar.openers)
        spelling = _ANY_NAME
        if not is_undeclared:
            spellings = "|".join(_SIGN.sub(r"\\\\?[^a-zA-Z0-9-]", name) for name in schemas)
            spelling = rf"(?:functions\.)?(?:{spellings or '(?!)'})(?:\.call)?"
        bare = _BARE.format(field=field_mark, tools=_either(schemas), spelled=spelling, json=self._json)
        self._bare = regex.compile(bare)
        self._quotation = _Quotation()
        """What stands around the position up to which the text has passed."""
        self._around = self._quotation
        """What stands around the position that is looked at."""
        self._pieces = list[str]()
        self._output = list[str]()
        self._tail = ""
        """The end of the text, of which something may still be held."""
        self._passed_end = 0
        """The position in `_tail` up to which the text has passed."""
        self._waiting = list[str]()
        """Pieces that are not in `_tail` yet, because nothing in them could settle what is held."""
        self._length = 0
        self._next_reading = 0
        self._is_begun = False
        """Whether anything but space has passed."""
        self._lacks_text = False
        """Whether what passed lacks something, such as a thinking."""

    def take(self, piece: str) -> str:
        """Take a piece of the answer's text, and return the text that may pass now."""
        piece = piece.removeprefix(BYTE_ORDER_MARK) if not self._length else piece
        self._pieces.append(piece)
        self._waiting.append(piece)
        self._length += len(piece)
        can_end = not _ENDS.isdisjoint(piece)
        if len(self._tail) - self._passed_end > _SHORT and not (
            can_end and self._length >= self._next_reading
        ):
            return ""
        self._tail += "".join(self._waiting)
        self._waiting.clear()
        passing = self._up_to_markup()
        if self._passed_end < len(self._tail) and can_end and self._length >= self._next_reading:
            self._next_reading = self._length + self._length // _GROWTH * (self._length > _SHORT)
            passing += self._as_read()
        return passing

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

    def _up_to_markup(self) -> str:
        opener_start = self._first_opener(self._end_of_text)
        text = self._tail[self._passed_end : opener_start]
        if (
            not self._is_begun
            and text.strip()
            and self._bare.match(self._tail, self._passed_end, partial=True)
        ):
            return ""
        return self._pass(text, opener_start)

    def _end_of_quotation(self, start: int) -> int:
        """Return the end of the fence that is open, or up to where it goes on at least."""
        closer = self._around.closer.search(self._tail, start) if self._around.closer else None
        if closer is None:  # what closes the fence may come in pieces
            return max(start, len(self._tail.rstrip(_FENCE_SIGNS)))
        if closer.end() == len(self._tail):  # the line may go on
            return closer.start()
        line = self._tail[self._tail.rfind("\n", 0, closer.start()) + 1 : closer.start()]
        self._around = _Quotation(is_doubtful=bool(line.strip()))
        return closer.end()

    def _first_opener(self, end_of: Callable[[regex.Match[str]], int | None]) -> int:
        """Return the first position where an opener may be, past those that `end_of` knows an end of."""
        cursor = self._passed_end
        self._around = self._quotation
        if self._around.closer is not None:
            cursor = self._end_of_quotation(cursor)
        while self._around.closer is None:
            opener = self._openers.search(self._tail, cursor, partial=True)
            if opener is None:
                return len(self._tail)
            end = None if opener.partial else end_of(opener)
            if end is None:
                return opener.start()
            cursor = end
        return cursor

    def _end_of_text(self, opener: regex.Match[str]) -> int | None:
        """Return the end of what is no markup; None if it is or may become some."""
        kind = opener.lastgroup
        if kind == "leftover":
            start = space(self._tail, opener.end())
            is_last = start == len(self._tail) or self._behind.match(self._tail, start, partial=True)
            # Before a call that ends the answer, it is what the text ends in.
            following = self._openers.match(self._tail, start, partial=True)
            is_before_call = following and (following.partial or self._may_be_call(start))
            return None if is_last or is_before_call else opener.end()
        if opener["field"]:
            # A tag such as `<answer>` may stand around a call, too, which takes it away.
            content = self._tail[opener.end() :].lstrip()[:1]
            may_hold_call = opener[0] in self._opening_tags and content in ("", "<", "[", "{")
            return None if may_hold_call else opener.end()
        if kind == "call" or formats_number(kind) is not None:
            return self._end_of_refused_call(opener)
        if kind in ("json", "html", "escaped"):
            return self._end_of_element(kind, opener)
        readers = {
            "code": self._end_of_code,
            "fence": self._end_of_fence,
            "thinking": self._end_of_mention,
        }
        end_of = readers.get(kind or "")
        if end_of is not None:
            return end_of(opener)
        # A quoted line ends with the line; `>>>` begins a doctest.
        line_end = self._tail.find("\n", opener.start())
        is_quote = kind == "quote" and not self._tail.startswith(">>>", opener.start())
        return line_end if is_quote and line_end >= 0 else None

    def _end_of_refused_call(self, opener: regex.Match[str]) -> int | None:
        """Return the end of an opener that begins no call; None if it begins one, or may."""
        is_field = opener.lastgroup == "call" and opener[0] not in self._opening_tags
        if is_field or self._may_be_call(opener.start()):
            return None
        if opener[0] in ("{", "["):
            return self._end_of_element("json", opener)
        return opener.end()

    def _end_of_mention(self, opener: regex.Match[str]) -> int | None:
        """Return the end of a thinking's tag that a sentence only names; None if it may be one."""
        start, end = opener.span()
        if not self._is_begun and not self._tail[self._passed_end : start].strip():
            return None
        has_next_word = _NEXT_WORD.match(self._tail, end) is not None
        return end if has_next_word and is_mention(self._tail, start, end, on_both_sides=True) else None

    def _may_be_call(self, start: int) -> bool:
        """Return whether a call, or tags around one, begin at a position, or may come to."""
        for _ in range(_MOST_TAGS):
            token = self._markup.match(self._tail, start, partial=True)
            if self._begins_call(start, token):
                return True
            tag = next((tag for tag in self._opening_tags if self._tail.startswith(tag, start)), "")
            if tag:
                start = self._end_of_comments(start + len(tag))
                if self._tail.startswith(_AFTER_EMPTY_TAG, start):
                    return True
                continue
            if token is None:
                return False
            start = self._end_of_comments(token.end())
            return start == len(self._tail) or self._tail.startswith(_AFTER_EMPTY_TAG, start)
        return True

    def _end_of_comments(self, start: int) -> int:
        """Return where white space and comments end, the last of which may go on."""
        start = space(self._tail, start)
        while (comment := _COMMENT.match(self._tail, start, partial=True)) is not None:
            if comment.partial:
                return len(self._tail)
            start = space(self._tail, comment.end())
        return start

    def _begins_call(self, start: int, token: regex.Match[str] | None) -> bool:
        """Return whether the text from a position on may begin a call, a thinking or a silent token."""
        if start == len(self._tail) or self._head.match(self._tail, start, partial=True):
            return True
        if token is not None and (token.partial or token.lastgroup in ("thinking", "silent")):
            return True
        sure = self._sure.match(self._tail, start, partial=True)
        if sure is None or token is None:
            return sure is not None
        # Whether a sentence only names an opener is known when its next word has ended.
        number = formats_number(token.lastgroup)
        rows = self._grammar.formats[number] if number is not None else ()
        has_next_word = _NEXT_WORD.match(self._tail, token.end()) is not None
        return not (has_next_word and is_named(self._tail, token, rows, self._grammar, self._tools))

    def _end_of_no_call(self, opener: regex.Match[str]) -> int | None:
        """Return the end of what is no call; None if it is or may become one."""
        kind = opener.lastgroup
        text_end = self._end_of_text(opener)
        if text_end is not None or kind in ("code", "leftover") or opener["field"]:
            return text_end
        if kind == "fence":
            fence = fence_at(Scan(self._tail), opener.start())
            if fence is None or fence.end == len(self._tail) or self._around.is_doubtful:
                return None
            is_doubtful = not self._tail.startswith("\n", fence.content_end)
            self._around = _Quotation(is_doubtful=is_doubtful)
            return fence.end
        # A name behind `>>>` makes it the opener of a call.
        may_open_call = kind == "quote" and ">>>".startswith(self._tail[opener.start() :])
        if may_open_call or kind == "call" or formats_number(kind) is not None:
            return None
        if kind in _UNKNOWN:
            return opener.end()
        return self._end_of_element(kind, opener) or max(opener.end(), opener.start() + 1)

    def _end_of_element(self, kind: str | None, opener: regex.Match[str]) -> int | None:
        """Return the end of a quotation that is not a fence; None while it is short and open."""
        start, end = opener.span()
        element_end = ENDS[kind](Scan(self._tail), start, end) if kind in ENDS else end
        if element_end < len(self._tail):
            return element_end
        if len(self._tail) - start <= _LONGEST_TAG:
            return None
        self._around = _Quotation(is_doubtful=True)  # fences in it are none
        return end

    def _end_of_code(self, opener: regex.Match[str]) -> int | None:
        """Return the end of inline code, or of backticks that open none; None if they may."""
        line = self._tail.find("\n", opener.start())
        line_end = line if line >= 0 else len(self._tail)
        closer = run_of(len(opener[0])).search(self._tail, opener.end(), line_end)
        if closer is not None and closer.end() < len(self._tail):  # the run may go on
            return closer.end()
        return opener.end() if line >= 0 else None

    def _end_of_fence(self, opener: regex.Match[str]) -> int | None:
        """Return the end of a fence, or the text's end while it is open; None if it may hold calls."""
        start = opener.start()
        if self._around.is_doubtful or self._tail.find("\n", start) < 0:
            return None
        fence = fence_at(Scan(self._tail), start)
        if fence is None:
            return self._end_of_code(opener)
        content_start = space(self._tail, fence.content_start)
        follows_words = self._is_begun or bool(self._tail[self._passed_end : start].strip())
        if follows_words and fence.info in CALL_LANGUAGES:
            printed = self._tail[content_start : content_start + len(_PRINT)]
            bare = self._bare.match(self._tail, content_start, partial=True)
            if _PRINT.startswith(printed) or bare is not None:
                return None
        is_open = content_start == len(self._tail)
        if (is_open or self._is_asked or not follows_words) and self._may_be_answer(
            fence.info, content_start
        ):
            return None
        self._around = _Quotation(closing(opener[0])[1])
        return self._end_of_quotation(fence.content_start)

    def _may_be_answer(self, info: str, start: int) -> bool:
        """Return whether a fence that may be the whole answer may hold a call."""
        token = self._openers.match(self._tail, start, partial=True)
        if info.startswith("tool") or start == len(self._tail):
            return True
        if self._bare.match(self._tail, start, partial=True) is not None:
            return True
        return token is not None and (token.partial or self._end_of_text(token) is None)

    def _as_read(self) -> str:
        """Read the text before the next call, and pass what it says if nothing in it is still open."""
        opener_start = self._first_opener(self._end_of_no_call)
        text = "".join(self._pieces)[: self._length - len(self._tail) + opener_start]
        if opener_start == self._passed_end or _SILENT_END.search(text, max(0, len(text) - _LONGEST_TAG)):
            return ""
        news = self._news(text)
        if news is None:
            return ""
        is_json = not self._is_begun and news.lstrip()[:1] in ("[", "{")
        if is_json and is_open(news.lstrip(), 0):
            return ""
        tokens = _SILENT.finditer(text, len(text) - len(news))
        if any(_is_in_json(text, token.start()) for token in tokens):
            return ""
        if self._is_begun or is_json or not text.endswith(news):
            return self._pass(news, opener_start)
        self._around = _Quotation()
        self._settle(opener_start - len(news))
        return self._up_to_markup()

    def _news(self, text: str) -> str | None:
        """Return what a text says to the user that has not passed; None while that is not known."""
        visible = self._visible(text)
        if visible is None:
            return None
        passed = "".join(self._output)
        if visible.startswith(passed):
            return visible[len(passed) :]
        visible = visible.lstrip()
        passed = passed.lstrip()
        return visible[len(passed) :] if visible.startswith(passed) else None

    def _visible(self, text: str) -> str | None:
        """Return what a text says to the user; None while that is not known."""
        reading = read_text(text, self._schemas, **self._reading_options)
        if any(isinstance(call.arguments, (CutOff, UnreadCall)) for _, call in reading.calls):
            return None
        if reading.text == text:
            return text
        # With a mark after it, a reading shows whether it is still said, and the space before it.
        with_mark = read_text(f"{text}{_MARK}", self._schemas, **self._reading_options)
        said = with_mark.text or ""
        if not said.endswith(_MARK) or len(with_mark.calls) < len(reading.calls):
            return None
        self._lacks_text = True
        return said.removesuffix(_MARK)

    def _pass(self, text: str, end: int) -> str:
        """Pass a text, after which the answer is settled up to a position."""
        if not self._is_begun:
            text = text.lstrip() if self._lacks_text else text
            self._is_begun = bool(text.strip())
        self._settle(end)
        self._output.append(text)
        return text

    def _settle(self, end: int) -> None:
        cut = max(end - _CONTEXT_KEPT, 0)
        self._tail = self._tail[cut:]
        self._passed_end = end - cut
        self._quotation = self._around


def _is_in_json(text: str, position: int) -> bool:
    """Return whether JSON that is still open where the text ends holds a position."""
    # Such a token is a part of a string, unless what began like JSON never ends.
    for _ in range(_MOST_TAGS):
        position = max(text.rfind("{", 0, position), text.rfind("[", 0, position))
        if position < 0 or is_open(text, position):
            return position >= 0
    return False


def _either(words: Iterable[str]) -> str:
    """Return a pattern of any of the words."""
    return "|".join(map(re.escape, words)) or r"(?!)"
