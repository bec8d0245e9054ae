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
from typing import Any, NamedTuple

from sigadapt.schemas.arguments import Flaw, Unread
from sigadapt.text import quotations, thinking
from sigadapt.text.contract import MOST_CALLS, Calls, TextCall, TextFormat, Tools
from sigadapt.text.faulty_calls import begins_block, read_faulty
from sigadapt.text.formats import FORMATS, calls_field, harmony
from sigadapt.text.formats.bare_json import announces_example, shows_call
from sigadapt.text.layout import NO_LAYOUT, Layout
from sigadapt.text.openers import CALL_LANGUAGES, Grammar, grammar_of, opened
from sigadapt.text.scan import COMMENT, Scan, Spent

BYTE_ORDER_MARK = "\ufeff"
"""What some servers put before an answer: no part of what begins there."""
_DEEPEST = 2  # readings inside of readings: of a fence that is the whole answer, of a calls field's value
_BEFORE = 160  # characters before a call that are searched for the beginning of its sentence
_SENTENCE_END = re.compile(r"[.!?]\s")
_SENTENCE_GOES_ON = re.compile(r"[,;)]?[^\S\n]{0,3}[a-z]")
_CUT_MARKUP = re.compile(r"[<\[\]})`][^\s\"']{0,40}\s*\Z|\Z")
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
    if text.startswith(BYTE_ORDER_MARK):
        how: dict[str, Any] = {"undeclared": undeclared, "call_format": call_format, "layout": layout}
        reading = read_text(text[1:], schemas, formats, starts_in_reasoning=starts_in_reasoning, **how)
        return reading._replace(text=text) if reading.text == text[1:] else reading
    scan = Scan(text, frozenset(each.name for each in formats or ()), call_format)
    grammar = grammar_of(FORMATS if formats is None else tuple(formats))
    reader = _Reader(scan, Tools(schemas, undeclared=undeclared), grammar, layout)
    reader.run(starts_in_reasoning=starts_in_reasoning)
    if reader.calls_were_thoughts and not starts_in_reasoning:
        reader = reader.another(text)
        reader.run(starts_in_reasoning=True)
    return reader.result()


class _Reader:
    """One way through a text."""

    def __init__(self, scan: Scan, tools: Tools, grammar: Grammar, layout: Layout, depth: int = 0) -> None:
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
        place = 0
        try:
            if starts_in_reasoning:
                opener = thinking.ANY_OPENER.match(self.text, self.scan.space(0))
                place = self._think(opener.end() if opener else 0, thinking.ANY_CLOSER)
            place = self._start(place)
            while not self.calls_were_thoughts:
                token = self.grammar.token.search(self.text, place)
                field = self.scan.search(field_opener, place)
                if field is not None and (token is None or field.start() <= token.start()):
                    end = self._field(field)
                    if end is not None or token is None or field.start() < token.start():
                        place = end or field.end()
                        continue
                if token is None:
                    break
                place = self._token(token)
        except Spent as spent:
            self._say(place)
            flaw = Flaw("malformed_call", str(spent))
            self.calls.append(("", TextCall(None, Unread(self.text[self.done :], flaw))))
            self.done = len(self.text)
        self._say(len(self.text))

    def result(self) -> TextReading:
        """Return what was read."""
        answer = "".join(self.texts)
        if self.has_markup:
            answer = answer.strip()
            if self.calls and answer in ("</think>", "</thinking>"):
                answer = ""
        thoughts = thinking.without_half_a_tag("".join(self.thoughts)).strip()
        return TextReading(answer or None, thoughts or None, self.calls)

    def _say(self, end: int) -> None:
        """Take the text up to a place as said, or as thought while a thinking is open."""
        if self.done < end:
            (self.thoughts if self.open_thought else self.texts).append(self.text[self.done : end])
            self.has_said = self.has_said or (not self.open_thought and self.scan.space(self.done) < end)
            self.done = end

    def _skip(self, end: int) -> int:
        self.has_markup = True
        self.done = max(end, self.done)
        return self.done

    def _is_at_start(self, place: int) -> bool:
        """Return whether nothing was said before a place since the beginning, a thinking or a call."""
        return not (self.open_thought or self.has_said) and self.scan.space(self.done) >= place

    def _token(self, token: re.Match[str]) -> int:
        """Read what begins at an opener, and return the place behind it."""
        kind = token.lastgroup or ""
        number = opened(token.lastgroup)
        if number is not None:
            return self._format(token, self.grammar.formats[number])
        if kind == "indented" and self._is_at_start(token.start()):
            return token.start() + 1  # calls that begin an answer, or follow others, may be indented
        if kind in quotations.ENDS:
            return quotations.ENDS[kind](self.scan, token.start(), token.end())
        others = {"fence": self._fence, "silent": self._silent, "closer": self._closer}
        return others.get(kind, self._opener)(token)

    # Thinking

    def _think(self, begin: int, closer: re.Pattern[str]) -> int:
        """Read a thinking whose words begin at a place, and return the place behind it."""
        self._skip(begin)
        close = self.scan.search(closer, begin)
        if close is None:
            self.open_thought = True
            return begin
        self.thoughts.append(self.text[begin : close.start()])
        return self._start(self._skip(close.end()))

    def _opener(self, token: re.Match[str]) -> int:
        kind = thinking.opened_at(self.text, token.start())
        is_at_start = self._is_at_start(token.start())
        if self.open_thought or not (kind.anywhere or is_at_start):
            return token.end()
        if not is_at_start and thinking.is_mention(self.text, token.start(), token.end(), both=True):
            return token.end()
        self._say(token.start())
        return self._think(token.end(), re.compile(kind.closer))

    def _closer(self, token: re.Match[str]) -> int:
        """Read on behind a closing tag that nothing opened: the prompt may have opened the thinking."""
        if self.open_thought or thinking.is_mention(self.text, token.start(), token.end()):
            return token.end()
        shows = thinking.shows(token[0])
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
        if thinking.is_mention(self.text, token.start(), token.end()):
            return token.end()
        self._say(token.start())
        return self._start(self._skip(token.end()))

    # Calls

    def _start(self, place: int) -> int:
        """Read calls without markup where what is said begins, and return the place behind."""
        if not self._is_at_start(place):
            return place
        if place == 0 and (headless := harmony.read_headless(self.scan, self.tools)):
            thoughts, calls, place = headless
            self.thoughts += thoughts
            self.calls += [("harmony", call) for call in calls]
            self._skip(place)
        begin = self.scan.content_start = self.scan.space(place)
        behind = None if self.calls else self._bare(begin)
        if behind or not self.text.startswith(("{", "["), begin):
            return behind or place
        if self.layout.is_json and (field := calls_field.opener_of(self.layout).match(self.text, begin)):
            behind = self._field(field)
        behind = behind or self._faulty(begin, self.grammar.bare)
        return behind or max(place, quotations.json_end(self.scan, begin, begin))

    def _calls_at(self, begin: int, formats: Sequence[TextFormat]) -> tuple[str, Calls] | None:
        """Return the first format that reads calls at a place, by name, and those calls."""
        for each in formats:
            if (each.bare and self.open_thought) or not self.grammar.heads[each.name].match(self.text, begin):
                continue
            calls = each.read(self.scan, begin, self.tools)
            if calls is not None:
                return each.name, calls
        return None

    def _bare(self, begin: int) -> int | None:
        """Read calls without markup at a place, and return the place behind; None if there are none."""
        read = self._calls_at(begin, self.grammar.bare)
        return self._take_calls(*read, self._around(begin, read[1].end)) if read else None

    def _format(self, token: re.Match[str], formats: Sequence[TextFormat]) -> int:
        """Read calls at their opener, and return the place behind it, or behind what else stands there."""
        begin = token.start()
        is_bare = any(each.bare for each in formats)
        read = self._calls_at(begin, formats)
        if read is not None:
            around = self._around(begin, read[1].end)
            is_value = around[0] == self.value_start and self.layout.has_calls(self.text)
            is_markup = next(not each.bare for each in formats if each.name == read[0])
            if is_value or self._is_quoted(*around) or (is_markup and self._is_mention(*around)):
                return max(around[1], token.end())
            return self._take_calls(*read, around)
        if behind := self._faulty(begin, formats):
            return behind
        if is_bare:
            return quotations.json_end(self.scan, begin, token.end())
        if opener := thinking.ANY_OPENER.match(self.text, begin):
            return self._opener(opener)
        silent = thinking.SILENT_TOKEN.match(self.text, begin)
        return self._silent(silent) if silent else self._empty(token)

    def _faulty(self, begin: int, formats: Sequence[TextFormat]) -> int | None:
        """Read a faulty call in the format that the prompt asked for, and return the place behind it."""
        name = self.scan.call_format
        is_asked = any(each.name == name for each in formats) or begins_block(self.scan, begin)
        calls = read_faulty(self.scan, begin, self.tools) if is_asked and not self.open_thought else None
        around = self._around(begin, calls.end) if calls else (begin, begin)
        return None if calls is None or self._is_quoted(*around) else self._take_calls(name, calls, around)

    def _field(self, opener: re.Match[str]) -> int | None:
        """Read the calls field, and return the place behind it; None if what stands there is text."""
        begin = opener.start()
        if begin < self.element_end:
            return None
        if not self.layout.is_json and opener["name"] != self.layout.field:
            self.value_start = self.scan.space(opener.end())
            self.element_end = self.scan.find(f"</{opener['name']}>", begin) if self.layout.is_xml else 0
            return None
        calls = calls_field.read(self.scan, opener, self.layout, self._calls_in)
        return self._take_calls(calls_field.NAME, calls, (begin, calls.end)) if calls else None

    def _calls_in(self, text: str) -> list[TextCall]:
        reader = self.another(text, self.depth + 1)
        reader.layout = NO_LAYOUT
        reader.tools = Tools(self.tools.schemas, undeclared=True)
        reader.run()
        return [call for _, call in reader.calls]

    def _fence(self, token: re.Match[str]) -> int:
        begin = token.start()
        fence = quotations.fence_at(self.scan, token.start())
        if fence is None:
            return quotations.ENDS["code"](self.scan, begin, token.end())
        names = (*self.scan.formats, self.scan.call_format)
        if read := self._calls_at(begin, [each for each in self.grammar.fences if each.name in names]):
            return self._take_calls(*read, self._around(begin, read[1].end))
        behind = self._faulty(begin, self.grammar.fences)
        is_answer = begin == self.scan.content_start and not self.calls and self.depth < _DEEPEST
        if behind is None and is_answer:
            behind = self._whole_answer(begin)
        return behind or self._last_fences(begin) or fence.end

    def _last_fences(self, begin: int) -> int | None:
        """Read fences of calls that follow words and end the answer; None if they are anything else."""
        if self.calls or self.open_thought or self.depth >= _DEEPEST or begin < self.text_fences_end:
            return None
        line = self.text[self.text.rfind("\n", 0, begin) + 1 : begin]
        if line.strip() or shows_call(self.text, begin):
            return None
        calls = list[tuple[str, TextCall]]()
        place = begin
        while place < len(self.text):
            read = self._call_fence(place)
            if read is None:
                self.text_fences_end = place
                return None
            name, span = read
            calls += [(name, call) for call in span.calls]
            place = self._behind_silent(span.end)
        if self._is_quoted(begin, len(self.text)):
            return None
        self._say(begin)
        self._skip(len(self.text))
        self._take(calls)
        return len(self.text)

    def _call_fence(self, begin: int) -> tuple[str, Calls] | None:
        """Return the format and the calls of a fence in a call language; None if it is no such fence."""
        fence = quotations.fence_at(self.scan, begin)
        if fence is None or fence.info not in CALL_LANGUAGES:
            return None
        read = self._calls_at(begin, self.grammar.fences)
        return None if read is None or read[1].between else read

    def _behind_silent(self, place: int) -> int:
        """Return the place behind white space and tokens that say nothing."""
        place = self.scan.space(place)
        while silent := thinking.SILENT_TOKEN.match(self.text, place):
            place = self.scan.space(silent.end())
        return place

    def _whole_answer(self, begin: int) -> int | None:
        """Read fences that are the whole answer and hold calls alone; None if they do not."""
        texts = list[str]()
        calls = list[tuple[str, TextCall]]()
        place = begin
        while place < len(self.text):
            fence = quotations.fence_at(self.scan, place)
            if fence is None:
                return None
            if read := self._calls_at(place, self.grammar.fences):
                calls += [(read[0], call) for call in read[1].calls]
                place = read[1].end
            else:
                reader = self.another(self.text[fence.inner : fence.close], self.depth + 1)
                reader.run()
                has_said = reader.has_said or "".join(reader.texts).strip()
                if not reader.has_markup or (has_said and not reader.layout.is_json):
                    return None
                texts += reader.texts
                calls += reader.calls
                place = fence.end
            place = self._behind_silent(place)
        self.texts += texts
        self._skip(len(self.text))
        self._take(calls)
        return len(self.text)

    def _empty(self, token: re.Match[str]) -> int:
        """Take away tags around nothing or an empty list, and an opening tag that the text ends in."""
        if not token[0].startswith(("<", "[")) or "=" in token[0]:
            return token.end()
        behind = self.scan.space(token.end())
        if self.text.startswith("[]", behind):
            behind = self.scan.space(behind + 2)
        closing = self.grammar.after.match(self.text, behind)
        is_named = closing is None and thinking.is_mention(self.text, token.start(), token.end())
        if is_named or (closing is None and behind < len(self.text)):
            return token.end()
        self._say(token.start())
        return self._skip(closing.end() if closing else behind)

    def _is_quoted(self, low: int, high: int) -> bool:
        """Return whether quotation marks or backticks stand directly around a call and its tags."""
        if _CUT_MARKUP.match(self.text, self.scan.space(high)):
            high = len(self.text)  # an answer that was cut off may end in a quotation
        run = _BACKTICKS.search(self.text, max(0, low - 34), low)
        if run is not None:
            behind = high + self.text.startswith(" ", high)
            end = behind + len(run[1])
            closes = self.text.startswith(run[1], behind) and not self.text.startswith("`", end)
            return closes or high == len(self.text)
        return quotations.is_in_marks(self.text, self.done, low, high)

    def _is_mention(self, low: int, high: int) -> bool:
        """Return whether a sentence about calls goes on behind a call: it shows one, and makes none."""
        if not _SENTENCE_GOES_ON.match(self.text, min(self.scan.space(high), high + 3)):
            return False
        begin = max(self.done, low - _BEFORE)
        begin = max(begin, self.text.rfind("\n", begin, low) + 1)
        return announces_example(_SENTENCE_END.split(self.text[begin:low])[-1])

    def _around(self, begin: int, end: int) -> tuple[int, int]:
        """Return where the tags around a call begin and end."""
        low = begin
        while True:
            bare = self._before_space(low)
            if comment := _COMMENT_BEFORE.search(self.text, max(self.done, bare - _LONGEST_COMMENT), bare):
                bare = self._before_space(comment.start())
            tag = next((tag for tag in self.grammar.before if self.text.endswith(tag, self.done, bare)), None)
            if tag is None or self.layout.is_element(tag):
                break
            low = bare - len(tag)
        high = end
        while closing := self.grammar.after.match(self.text, self.scan.gap(high)):
            if self.layout.is_element(closing[0]):
                break
            high = closing.end()
        return low, high

    def _before_space(self, place: int) -> int:
        """Return where the white space before a place begins."""
        while place > self.done and self.text[place - 1].isspace():
            place -= 1
        return place

    def _take_calls(self, name: str, span: Calls, around: tuple[int, int]) -> int:
        """Take calls that were read, and return the place behind them."""
        self._say(around[0])
        self.open_thought = self.has_said = False
        if span.between:
            self.texts.append(span.between)
        self._take([(name, call) for call in span.calls])
        return self._skip(around[1])

    def _take(self, calls: list[tuple[str, TextCall]]) -> None:
        room = MOST_CALLS - len(self.calls)
        self.calls += calls[:room]
        if len(calls) > room:
            raise Spent(f"the text holds more calls than the {MOST_CALLS:,} that are read")
