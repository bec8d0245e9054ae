"""Read a text: calls of declared tools, thinking, and what is said to the user.

The text is gone through once, from opener to opener (`openers.py`), from the outside in:

 a. Thinking comes first: calls in a thinking that was closed are only thought of.
 b. What is quoted is no call, whatever it holds (`quotations.py`), and neither is JSON that is no call
    itself. A fence is no quotation if it is the whole answer and holds calls alone: many models call so. One
    that says `tool_code` may also follow words, if it ends the answer and they announce no example.
 c. A format reads where its opener stands. Where it reads nothing, the opener is text. Whatever stands inside
    of a call's value is that value. The calls field is a format like the others.
 d. Tags around a call that say nothing by themselves are taken away with it.
 e. A text that takes more work than its length allows, or holds more calls than are read, ends in a bad call
    that has the rest (bounded, nothing silent).
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sigadapt.json_values import cut
from sigadapt.schemas.arguments import Flaw, UnreadCall
from sigadapt.text import calls_field, quotations
from sigadapt.text.bodies.named import read_headless
from sigadapt.text.bodies.objects import FAULTY
from sigadapt.text.calls_field import NO_LAYOUT, Layout
from sigadapt.text.contract import (
    COMMENT,
    MOST_CALLS,
    NO_TOOL,
    CallSpan,
    Scan,
    TextCall,
    TextFormat,
    ToolTable,
    WorkLimitError,
)
from sigadapt.text.formats import FORMATS
from sigadapt.text.openers import (
    ANY_CLOSER,
    ANY_OPENER,
    CALL_LANGUAGES,
    SILENT_TOKEN,
    Grammar,
    UnknownCall,
    formats_number,
    grammar_of,
    shows_thinking,
    thinking_at,
    unknown_calls,
    without_partial_closer,
)
from sigadapt.text.quotations import announces_example, is_mention, shows_call
from sigadapt.text.written_values import space

BYTE_ORDER_MARK = "\ufeff"
"""What some servers put before an answer: no part of what begins there."""
_MOST_READINGS_DEEP = (
    2  # readings inside of readings: of a fence that is the whole answer, of a calls field's value
)
_SENTENCE_LENGTH = 160  # characters before a call that are searched for the beginning of its sentence
_SENTENCE_END = re.compile(r"[.!?]\s")
_SENTENCE_GOES_ON = re.compile(r"[,;)]?[^\S\n]{0,3}[a-z]")
_CUT_MARKUP = re.compile(r"[<\[\]})`][^\s\"']{0,40}\s*\Z|\Z")
_WORD = re.compile(r"[\w.-]+")
_OTHER = re.compile(r"[\w.-]+<(?![｜|])")  # the name of another tool
_BRACKET = re.compile(r"[{\[<=(]")
_NO_CALL = re.compile(rf"[^<>]{{0,100}}\"{NO_TOOL}\"")
_LIKE_CALL = re.compile(r"[{\[]|<(?!\|im_)|```|call\b|\w[\w.-]*\s*[\n({<\[]")
_CUT_NAME = re.compile(r"(?:name=)?[\"']?(?:functions\.)?([\w.:-]*)\Z")
_LONGEST_TAG = 80
_MOST_LEFTOVERS = 8  # tags behind an answer that are taken away (bounded)
PLAIN_TAGS = ("<answer>", "<response>")
_LONGEST_COMMENT = 207
_COMMENT_BEFORE = re.compile(rf"{COMMENT}\Z")
_BACKTICKS = re.compile(r"(`+) ?\Z")


class TextReading(NamedTuple):
    """What a text says to the user, the thinking, and the calls, each with the name of its format."""

    text: str | None
    reasoning: str | None
    calls: list[tuple[str, TextCall]]


def read_text(
    text: str,
    schemas: Mapping[str, Any],
    formats: Sequence[TextFormat] | None = None,
    *,
    starts_in_reasoning: bool = False,
    undeclared: bool = False,
    call_format: str = "",
    layout: Layout = NO_LAYOUT,
) -> TextReading:
    """Read what a model wrote, in all formats or in those that the caller named."""
    body = text.lstrip(BYTE_ORDER_MARK)
    scan = Scan(body, frozenset(row.name for row in formats or ()), call_format)
    grammar = grammar_of(FORMATS if formats is None else tuple(formats))
    reader = _Reader(scan, ToolTable(schemas, undeclared=undeclared), grammar, layout)
    reader.run(starts_in_reasoning=starts_in_reasoning)
    if reader.calls_were_thoughts and not starts_in_reasoning:
        reader = reader.another(body)
        reader.run(starts_in_reasoning=True)
    reading = reader.result()
    return reading._replace(text=text) if reading.text == body else reading


def is_named(
    text: str, token: Any, formats: Sequence[TextFormat], grammar: Grammar, tools: ToolTable
) -> bool:
    """Return whether a sentence only names the opener of a call: no declared tool follows it."""
    end = _sure_end(text, token.start(), formats, grammar) or token.end()
    is_whole_tag = text[end - 1] in ">]" or end > token.end()
    if not is_whole_tag:
        heads = (grammar.heads[row.name].match(text, token.start()) for row in formats)
        end = next((head.end() for head in heads if head), 0)
        return end > 0 and is_mention(text, token.start(), end)
    word = _WORD.match(text, space(text, end))
    if word and tools.name_of(word[0]) in tools.schemas:
        return False
    return is_mention(text, token.start(), end)


def _sure_end(text: str, start: int, formats: Sequence[TextFormat], grammar: Grammar) -> int | None:
    """Return the end of what can begin nothing but a call; None if an opener may be text."""
    sure = (grammar.sure[row.name].match(text, start) for row in formats)
    return max((each.end() for each in sure if each), default=None)


class _Reader:
    """One way through a text."""

    def __init__(
        self, scan: Scan, tools: ToolTable, grammar: Grammar, layout: Layout, depth: int = 0
    ) -> None:
        self.text = scan.text
        self.scan = scan
        self.tools = tools
        self.grammar = grammar
        self.layout = layout
        self.depth = depth
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[tuple[str, TextCall]] = []
        self.done = 0
        """Up to here, everything is said, thought or called."""
        self.has_said = False
        """Whether anything was said since the beginning or the last call."""
        self.open_thought = False
        self.has_markup = False
        self.element_end = 0
        """Where the element of another output field ends, which may hold calls but no calls field."""
        self.value_start = -1
        """Where another output's value begins: that value, if the calls stand in their own field."""
        self.text_fences_end = 0
        """Where fences of calls end that something follows, so that each of them is text."""
        self.calls_were_thoughts = False
        """Whether calls were read that a thinking holds, as its end shows now."""

    def another(self, text: str, depth: int = 0) -> "_Reader":
        """Return a reader of another text that reads the same formats."""
        scan = Scan(text, self.scan.formats, self.scan.call_format)
        return _Reader(scan, self.tools, self.grammar, self.layout, depth)

    def run(self, *, starts_in_reasoning: bool = False) -> None:
        """Go through the text."""
        field_opener = calls_field.opener_of(self.layout)
        cursor = 0
        try:
            if starts_in_reasoning:
                opener = ANY_OPENER.match(self.text, self.scan.space(0))
                words_start = opener.end() if opener else 0
                cursor = self._think(words_start, ANY_CLOSER)
            cursor = self._start(cursor)
            unknown = unknown_calls(self.scan, self.tools) if not self.scan.formats else iter(())
            next_unknown = next(unknown, None)
            while not self.calls_were_thoughts:
                token = self.grammar.token.search(self.text, cursor)
                while next_unknown is not None and next_unknown.start < cursor:
                    next_unknown = next(unknown, None)
                if next_unknown and (token is None or next_unknown.start < token.start()):
                    cursor = self._unknown_call(next_unknown)
                    continue
                field = self.scan.search(field_opener, cursor)
                if field is not None and (token is None or field.start() <= token.start()):
                    end = self._field(field)
                    if end is not None or token is None or field.start() < token.start():
                        cursor = end or field.end()
                        continue
                if token is None:
                    break
                cursor = self._token(token)
        except WorkLimitError as excess:
            self._say(cursor)
            flaw = Flaw("malformed_call", str(excess))
            self.calls.append(("", TextCall(None, UnreadCall(self.text[self.done :], flaw))))
            self.done = len(self.text)
        words = re.sub(r"<[^<>]*\Z", "", self.text).strip()
        if not self.calls and words in {*self.grammar.opening_tags} - {*PLAIN_TAGS}:
            self.texts = []
            self._take_calls("", self._bad_call(None, 0, len(self.text)), (0, len(self.text)))
        self._say(len(self.text))

    def result(self) -> TextReading:
        """Return what was read."""
        answer = self._without_leftovers("".join(self.texts))
        if self.has_markup:
            answer = answer.strip()
            if self.calls and answer in ("</think>", "</thinking>"):
                answer = ""
        thoughts = without_partial_closer("".join(self.thoughts)).strip()
        return TextReading(answer or None, thoughts or None, self.calls)

    def _without_leftovers(self, answer: str) -> str:
        """Return the answer without the tags of calls and thinking that hang behind it."""
        words = answer.rstrip()
        for _ in range(_MOST_LEFTOVERS):
            tag = self.grammar.leftover.search(words, max(0, len(words) - _LONGEST_TAG))
            if tag is None:
                break
            before = words[: tag.start()]
            openings = (tag[0].replace("/", ""), *self.grammar.opening_tags)
            is_paired = self.grammar.markup.search(before) or any(map(before.count, openings))
            if is_paired or self.layout.is_element(tag[0]) or is_mention(words, *tag.span()):
                break
            answer = words = words[: tag.start()].rstrip()
        return answer

    def _say(self, end: int) -> None:
        """Take the text up to a position as said, or as thought while a thinking is open."""
        if self.done >= end:
            return
        said = self.text[self.done : end]
        if self.open_thought:
            self.thoughts.append(said)
        else:
            self.texts.append(said)
            self.has_said = self.has_said or self.scan.space(self.done) < end
        self.done = end

    def _skip(self, end: int) -> int:
        self.has_markup = True
        self.done = max(end, self.done)
        return self.done

    def _is_at_start(self, end: int) -> bool:
        """Return whether nothing was said before a position since the beginning, a thinking or a call."""
        return not (self.open_thought or self.has_said) and self.scan.space(self.done) >= end

    def _token(self, token: re.Match[str]) -> int:
        """Read what begins at an opener, and return where it ends."""
        kind = token.lastgroup or ""
        number = formats_number(token.lastgroup)
        if number is not None:
            return self._format(token, self.grammar.formats[number])
        if kind == "indented" and self._is_at_start(token.start()):
            return token.start() + 1  # calls that begin an answer, or follow others, may be indented
        if kind in quotations.ENDS:
            return quotations.ENDS[kind](self.scan, token.start(), token.end())
        readers = {"fence": self._fence, "silent": self._silent, "closer": self._closer}
        return readers.get(kind, self._opener)(token)

    # Thinking

    def _think(self, start: int, closer: re.Pattern[str]) -> int:
        """Read a thinking whose words begin at a position, and return where it ends."""
        self._skip(start)
        close = self.scan.search(closer, start)
        if close is None:
            self.open_thought = True
            return start
        self.thoughts.append(self.text[start : close.start()])
        return self._start(self._skip(close.end()))

    def _opener(self, token: re.Match[str]) -> int:
        kind = thinking_at(self.text, token.start())
        is_at_start = self._is_at_start(token.start())
        if self.open_thought or not (kind.anywhere or is_at_start):
            return token.end()
        if not is_at_start and is_mention(self.text, token.start(), token.end(), on_both_sides=True):
            return token.end()
        self._say(token.start())
        return self._think(token.end(), re.compile(kind.closer))

    def _closer(self, token: re.Match[str]) -> int:
        """Read on after a closing tag that nothing opened: the prompt may have opened the thinking."""
        if self.open_thought or is_mention(self.text, token.start(), token.end()):
            return token.end()
        shows = shows_thinking(token[0])
        if self.calls and (shows or not self.thoughts):
            self.calls_were_thoughts = True
            return len(self.text)
        if shows:  # what stands before it is thought, whatever it looked like
            self._say(token.start())
            self.thoughts.extend(self.texts)
            self.texts = []
            self.has_said = False
            return self._start(self._skip(token.end()))
        begin = self.scan.content_start = self.scan.space(token.end())
        return self._bare(begin) or token.end()

    def _silent(self, token: re.Match[str]) -> int:
        """Leave out a token that says nothing, unless a sentence names it."""
        if is_mention(self.text, token.start(), token.end()):
            return token.end()
        self._say(token.start())
        return self._start(self._skip(token.end()))

    # Calls

    def _start(self, start: int) -> int:
        """Read calls without markup where what is said begins, and return where they end."""
        if not self._is_at_start(start):
            return start
        if start == 0 and (headless := read_headless(self.scan, self.tools)):
            thoughts, calls, start = headless
            self.thoughts += thoughts
            self.calls += [("harmony", call) for call in calls]
            self._skip(start)
        content_start = self.scan.content_start = self.scan.space(start)
        end = None if self.calls else self._bare(content_start)
        if end or not self.text.startswith(("{", "["), content_start):
            return end or start
        end = self._json_answer(content_start)
        return end or max(start, quotations.json_end(self.scan, content_start, content_start))

    def _json_answer(self, start: int) -> int | None:
        """Read the calls field, or a faulty call, of an answer that is JSON; None if it has neither."""
        if self.layout.is_json and (field := calls_field.opener_of(self.layout).match(self.text, start)):
            end = self._field(field)
            if end:
                return end
        return self._faulty_answer(start)

    def _calls_at(
        self, start: int, formats: Sequence[TextFormat], tools: ToolTable | None = None
    ) -> tuple[str, CallSpan] | None:
        """Return the first format that reads calls at a position, by name, and those calls."""
        for text_format in formats:
            if text_format.bare and self.open_thought:
                continue
            if not self.grammar.heads[text_format.name].match(self.text, start):
                continue
            span = text_format.body.read(self.scan, start, tools or self.tools)
            if span is not None:
                return text_format.name, span
        return None

    def _bare(self, start: int) -> int | None:
        """Read calls without markup at a position, and return where they end; None if there are none."""
        reading = self._calls_at(start, self.grammar.bare)
        if reading is None:
            return None
        name, span = reading
        return self._take_calls(name, span, self._around(start, span.end))

    def _format(self, token: re.Match[str], formats: Sequence[TextFormat]) -> int:
        """Read calls at their opener, and return where they, or whatever else begins there, end."""
        start = token.start()
        reading = self._calls_at(start, formats)
        if reading is not None:
            name, span = reading
            around = self._around(start, span.end)
            if self._is_text(name, around, formats):
                return max(around[1], token.end())
            return self._take_calls(name, span, around)
        if any(text_format.bare for text_format in formats):
            return self._faulty_answer(start) or quotations.json_end(self.scan, start, token.end())
        if end := self._faulty(token, formats):
            return end
        if opener := ANY_OPENER.match(self.text, start):
            return self._opener(opener)
        silent = SILENT_TOKEN.match(self.text, start)
        return self._silent(silent) if silent else self._empty(token)

    def _is_text(self, name: str, around: tuple[int, int], formats: Sequence[TextFormat]) -> bool:
        """Return whether a call that was read is another field's value, or is only quoted or shown."""
        if around[0] == self.value_start and self.layout.has_calls(self.text):
            return True
        if self._is_quoted(*around):
            return True
        is_markup = any(text_format.name == name and not text_format.bare for text_format in formats)
        return is_markup and self._is_mention(*around)

    def _faulty(self, token: re.Match[str], formats: Sequence[TextFormat]) -> int | None:
        """Read markup that can only be a call and is none of a declared tool; None if it is text."""
        start = token.start()
        end = _sure_end(self.text, start, formats, self.grammar)
        if end is None or self.open_thought or _NO_CALL.match(self.text, end):
            return None
        if is_named(self.text, token, formats, self.grammar, self.tools):
            return None
        tools = self.tools.with_undeclared()
        reading = self._calls_at(start, formats, tools)
        name, span = reading or (formats[0].name, self._unread_call(start, end, formats))
        if span is None:
            return None
        around = self._around(start, span.end)
        if self._is_quoted(*around) or self._is_mention(*around):
            return max(around[1], token.end())
        return self._take_calls(name, span, around)

    def _unread_call(self, start: int, end: int, rows: Sequence[TextFormat]) -> CallSpan | None:
        """Return the bad call that an opener begins with which nothing can be read; None if it is text."""
        closers = tuple(tag for row in rows for tag in row.closing_tags)
        stop = self.scan.earliest(closers, end)
        closer = next((tag for tag in closers if self.text.startswith(tag, stop)), "")
        inner = self.scan.search(self.grammar.markup, end)
        if inner and inner.start() < stop:
            if _sure_end(self.text, inner.start(), rows, self.grammar) is None:
                return None  # tags around other markup
            stop = inner.start()
            closer = ""
        content = self.text[end:stop].strip()
        words = [self.tools.name_of(word[0]) for word in _WORD.finditer(content[:_SENTENCE_LENGTH])]
        names = [name for name in words if name in self.tools.schemas]
        is_call = bool(names) and names[0] == words[0]
        if not is_call and closer:
            is_call = bool(names) or (_BRACKET.search(content) is not None and not _OTHER.match(content))
        elif not is_call:
            is_call = _LIKE_CALL.match(content) is not None
            is_last = not is_call and stop == len(self.text)
            part = _CUT_NAME.match(content) if is_last else None
            heads = ("name=", "call:", "functions.", *self.tools.schemas)
            if part and any(head.startswith(part[1]) for head in heads):
                is_call = bool(content)
                if not is_call and not self.calls:  # one that stands alone; to look around it costs time
                    is_call = self._is_at_start(self._around(start, end)[0])
        if not is_call or content == "[]":
            return None
        return self._bad_call(names[0] if names else None, start, stop + len(closer), rows)

    def _bad_call(self, name: str | None, start: int, end: int, rows: Sequence[TextFormat] = ()) -> CallSpan:
        """Return a part of the text as a bad call, which says what a call looks like there."""
        raw = self.text[start:end].strip()
        why = f"no call can be read in this markup: {cut(raw)}{self._shape(name, rows)}"
        return CallSpan([TextCall(name, UnreadCall(raw, Flaw("malformed_call", why)))], end)

    def _shape(self, name: str | None, rows: Sequence[TextFormat]) -> str:
        """Return what a call looks like in the format that was asked for, or in the first of these."""
        asked = (row for row in FORMATS if row.name == self.scan.call_format)
        row = next(chain(asked, rows), None)
        tool = name or next(iter(self.tools.schemas), "")
        if row is None or not tool:
            return ""
        return f"\nA call looks like this:\n{row.shape(tool, self.tools.schema_of(tool))}"

    def _unknown_call(self, call: UnknownCall) -> int:
        """Read markup of no known format that calls a declared tool, and return where it ends."""
        tag = f"<{call.name}>"
        if self.open_thought or self.layout.is_element(tag) or self._is_quoted(call.start, call.end):
            return call.start + 1
        if self._is_mention(call.start, call.end):
            return call.start + 1
        start = self._around(call.start, call.end)[0]
        raw = self.text[start : call.end].strip()
        why = f"{call.name!r} is called in markup of no known format: {cut(raw)}{self._shape(call.name, ())}"
        flaw = Flaw("unread_call", why)
        span = CallSpan([TextCall(call.name, UnreadCall(raw, flaw))], call.end)
        return self._take_calls("", span, (start, call.end))

    def _faulty_answer(self, start: int) -> int | None:
        """Read a faulty call without markup, for which the prompt asked, and return where it ends."""
        read = FAULTY.get(self.scan.call_format)
        span = read(self.scan, start, self.tools) if read and not self.open_thought else None
        if span is None:
            return None
        around = self._around(start, span.end)
        if self._is_quoted(*around):
            return None
        return self._take_calls(self.scan.call_format, span, around)

    def _field(self, opener: re.Match[str]) -> int | None:
        """Read the calls field, and return where it ends; None if it is text."""
        start = opener.start()
        if start < self.element_end:
            return None
        if not self.layout.is_json and opener["name"] != self.layout.field:
            self.value_start = self.scan.space(opener.end())
            self.element_end = self.scan.find(f"</{opener['name']}>", start) if self.layout.is_xml else 0
            return None
        span = calls_field.read(self.scan, opener, self.layout, self._calls_in)
        return self._take_calls(calls_field.NAME, span, (start, span.end)) if span else None

    def _calls_in(self, text: str) -> list[TextCall]:
        reader = self.another(text, self.depth + 1)
        reader.layout = NO_LAYOUT
        reader.tools = self.tools.with_undeclared()
        reader.run()
        return [call for _, call in reader.calls]

    def _fence(self, token: re.Match[str]) -> int:
        start = token.start()
        fence = quotations.fence_at(self.scan, start)
        if fence is None:
            return quotations.ENDS["code"](self.scan, start, token.end())
        names = (*self.scan.formats, self.scan.call_format)
        formats = [text_format for text_format in self.grammar.fences if text_format.name in names]
        if reading := self._calls_at(start, formats):
            name, span = reading
            return self._take_calls(name, span, self._around(start, span.end))
        return self._faulty_answer(start) or self._fences(start) or fence.end

    def _fences(self, start: int) -> int | None:
        """Read fences up to the answer's end that hold calls alone; None if they do not."""
        if (
            self.calls
            or self.open_thought
            or self.depth >= _MOST_READINGS_DEEP
            or start < self.text_fences_end
        ):
            return None
        is_answer = start == self.scan.content_start
        if not is_answer:  # words stand before them
            line = self.text[self.text.rfind("\n", 0, start) + 1 : start]
            if line.strip() or shows_call(self.text, start) or self._is_quoted(start, len(self.text)):
                return None
        texts = list[str]()
        calls = list[tuple[str, TextCall]]()
        cursor = start
        while cursor < len(self.text):
            fence = quotations.fence_at(self.scan, cursor)
            end = None
            if fence and (is_answer or fence.info in CALL_LANGUAGES):
                if reading := self._calls_at(cursor, self.grammar.fences):
                    name, span = reading
                    calls += [(name, call) for call in span.calls]
                    end = span.end
                elif is_answer and (inner := self._in_fence(fence)):
                    texts += inner.texts
                    calls += inner.calls
                    end = fence.end
            if end is None:
                self.text_fences_end = cursor
                return None
            cursor = self.scan.space(end)
            while silent := SILENT_TOKEN.match(self.text, cursor):
                cursor = self.scan.space(silent.end())
        self._say(start)
        self.texts += texts
        self._skip(len(self.text))
        self._take(calls)
        return len(self.text)

    def _in_fence(self, fence: quotations.Fence) -> "_Reader | None":
        """Return what read the markup in a fence; None if it holds anything else."""
        reader = self.another(self.text[fence.content_start : fence.content_end], self.depth + 1)
        reader.run()
        has_said = reader.has_said or "".join(reader.texts).strip()
        return reader if reader.has_markup and (not has_said or reader.layout.is_json) else None

    def _empty(self, token: re.Match[str]) -> int:
        """Take away tags around nothing or an empty list, and an opening tag that the text ends in."""
        if not token[0].startswith(("<", "[")) or "=" in token[0]:
            return token.end()
        content_end = self.scan.space(token.end())
        if self.text.startswith("[]", content_end):
            content_end = self.scan.space(content_end + 2)
        closing = self.grammar.closing_tags.match(self.text, content_end)
        if closing is not None:
            self._say(token.start())
            return self._skip(closing.end())
        if content_end < len(self.text) or is_mention(self.text, token.start(), token.end()):
            return token.end()
        self._say(token.start())
        return self._skip(content_end)

    def _is_quoted(self, start: int, end: int) -> bool:
        """Return whether quotation marks or backticks stand directly around a call and its tags."""
        if _CUT_MARKUP.match(self.text, self.scan.space(end)):
            end = len(self.text)  # an answer that was cut off may end in a quotation
        run = _BACKTICKS.search(self.text, max(0, start - 34), start)
        if run is None:
            return quotations.is_in_marks(self.text, self.done, start, end)
        if end == len(self.text):
            return True
        run_start = end + self.text.startswith(" ", end)
        run_end = run_start + len(run[1])
        return self.text.startswith(run[1], run_start) and not self.text.startswith("`", run_end)

    def _is_mention(self, start: int, end: int) -> bool:
        """Return whether a sentence about calls goes on after a call: it shows one, and makes none."""
        if not _SENTENCE_GOES_ON.match(self.text, min(self.scan.space(end), end + 3)):
            return False
        sentence_start = max(self.done, start - _SENTENCE_LENGTH)
        sentence_start = max(sentence_start, self.text.rfind("\n", sentence_start, start) + 1)
        return announces_example(_SENTENCE_END.split(self.text[sentence_start:start])[-1])

    def _around(self, start: int, end: int) -> tuple[int, int]:
        """Return where the tags around a call begin and end."""
        while (tag_start := self._tag_before(start)) is not None:
            start = tag_start
        while closing := self.grammar.closing_tags.match(self.text, self.scan.gap(end)):
            if self.layout.is_element(closing[0]):
                break
            end = closing.end()
        return start, end

    def _tag_before(self, end: int) -> int | None:
        """Return where the tag begins that ends before a position; None if there is none."""
        end = self._before_space(end)
        if comment := _COMMENT_BEFORE.search(self.text, max(self.done, end - _LONGEST_COMMENT), end):
            end = self._before_space(comment.start())
        for tag in self.grammar.opening_tags:
            if self.text.endswith(tag, self.done, end):
                return None if self.layout.is_element(tag) else end - len(tag)
        return None

    def _before_space(self, end: int) -> int:
        """Return where the white space before a position begins."""
        while end > self.done and self.text[end - 1].isspace():
            end -= 1
        return end

    def _take_calls(self, name: str, span: CallSpan, around: tuple[int, int]) -> int:
        """Take calls that were read, and return where they end."""
        self._say(around[0])
        self.open_thought = self.has_said = False
        if span.text_between:
            self.texts.append(span.text_between)
        self._take([(name, call) for call in span.calls])
        return self._skip(around[1])

    def _take(self, calls: list[tuple[str, TextCall]]) -> None:
        room = MOST_CALLS - len(self.calls)
        self.calls += calls[:room]
        if len(calls) > room:
            raise WorkLimitError(f"the text holds more calls than the {MOST_CALLS:,} that are read")
