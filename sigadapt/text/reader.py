"""Read a text: calls of declared tools, thinking, and what is said to the user.

The text is gone through once. Where an opener of a format stands, the format reads; where it does not, the
opener is text. What is never a call, whatever stands in it: code fences and inline code, quoted lines,
markup in quotation marks or in a sentence that shows a call, JSON that is no call itself, and thinking that
was closed. Tags around a call that say nothing by themselves are taken away with it.
"""

# ruff: noqa: RUF001  (tokens of models hold full-width bars and other quotes)

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sigadapt.text import thinking
from sigadapt.text.contract import MOST_CALLS, Found, TextCall, TextFormat, Tools
from sigadapt.text.expected import read_expected
from sigadapt.text.formats import harmony
from sigadapt.text.formats.bare_json import announces_example
from sigadapt.text.openers import Grammar, grammar_of, opened
from sigadapt.text.scan import Scan, Spent

_MOST_TRIED = 10_000
"""At how many openers a call is looked for. What stands behind them stays text."""
_MOST_PLACES = 100_000
"""At how many places markup of any kind is looked for."""
_FENCE_END = re.compile(r"\n[ \t]*```[^\n]*")
_BEFORE = 160  # characters before a call that are searched for the beginning of its sentence
_SENTENCE_END = re.compile(r"[.!?]\s")
_SENTENCE_GOES_ON = re.compile(r"[^\S\n]*[,;)]?[^\S\n]*[a-z]")
_QUOTES = {'"': '"', "'": "'", "“": "”", "«": "»", "`": "`", "‘": "’"}


class TextReading(NamedTuple):
    """What a text says.

    Args:
        text: what is said to the user; None for nothing.
        reasoning: the thinking; None for none.
        calls: the calls, each with the name of its format.
    """

    text: str | None
    reasoning: str | None
    calls: list[tuple[str, TextCall]]


def read_text(
    text: str,
    schemas: Mapping[str, Any],
    formats: Sequence[TextFormat],
    *,
    starts_in_reasoning: bool = False,
    asked: bool = False,
    undeclared: bool = False,
    expected: str = "",
) -> TextReading:
    """Read a text."""
    grammar = grammar_of(tuple(formats))
    tools = Tools(schemas, undeclared=undeclared)
    if grammar.harmony and harmony.is_harmony(text):
        return _read_harmony(text, tools, grammar)
    names = frozenset(each.name for each in formats) if asked else frozenset[str]()
    reading = _Reading(text, tools, grammar, names, expected)
    reading.run(starts_in_reasoning=starts_in_reasoning)
    if reading.thought_of and not starts_in_reasoning:
        reading = _Reading(text, tools, grammar, names, expected)
        reading.run(starts_in_reasoning=True)
    return reading.result()


def _read_harmony(text: str, tools: Tools, grammar: Grammar) -> TextReading:
    said, thoughts, calls = list[str](), list[str](), list[tuple[str, TextCall]]()
    for message in harmony.messages(text, MOST_CALLS):
        call = harmony.call_of(message, tools) if len(calls) < MOST_CALLS else None
        if call is not None:
            calls.append((harmony.NAME, call))
        elif not message.body:
            continue
        elif message.channel == "analysis" and tools.name_of(message.to) is None:
            thoughts.append(message.body)
        else:
            inner = _Reading(message.body, tools, grammar, frozenset())
            inner.run(starts_in_reasoning=False)
            read = inner.result()
            said.append(read.text or "")
            calls.extend(read.calls)
    return TextReading("".join(said).strip() or None, "".join(thoughts).strip() or None, calls)


class _Reading:
    """One way through a text."""

    def __init__(
        self, text: str, tools: Tools, grammar: Grammar, asked: frozenset[str], expected: str = ""
    ) -> None:
        self.text, self.tools, self.grammar = text, tools, grammar
        self.scan = Scan(text)
        self.scan.asked, self.scan.expected = asked, expected
        self.said: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[tuple[str, TextCall]] = []
        self.done = 0
        """Up to here, everything is said, thought or called."""
        self.places = self.tried = 0
        self.spoken = False
        """Whether anything was said since the beginning or the last call."""
        self.may_think = True
        self.open_thought = False
        self.changed = False
        self.thought_of = False
        """Whether calls were read that a thinking holds, as its end shows now."""

    def run(self, *, starts_in_reasoning: bool) -> None:
        """Go through the text."""
        try:
            place = self._start_thinking() if starts_in_reasoning else 0
            place = self._at_start(place)
            while place < len(self.text) and len(self.calls) < MOST_CALLS:
                first = self.grammar.first.search(self.text, place)
                if first is None:
                    break
                self.places += 1
                if self.places > _MOST_PLACES:
                    break
                token = self.grammar.tokens[first[0][0]].match(self.text, first.start())
                place = self._token(token) if token else first.start() + 1
        except Spent:
            pass
        self._say(len(self.text))

    def result(self) -> TextReading:
        """Return what was read."""
        said = "".join(self.said)
        if self.changed:
            said = said.strip()
            if self.calls and said in ("</think>", "</thinking>"):
                said = ""
        thought = thinking.without_half_a_tag("".join(self.thoughts)).strip()
        return TextReading(said or None, thought or None, self.calls)

    def _say(self, end: int) -> None:
        """Take the text up to a place as said, or as thought while a thinking is open."""
        if self.done < end:
            (self.thoughts if self.open_thought else self.said).append(self.text[self.done : end])
            self.spoken = self.spoken or (not self.open_thought and self.scan.space(self.done) < end)
            self.done = end

    def _skip(self, end: int) -> int:
        self.changed = True
        self.done = max(end, self.done)
        return self.done

    # Thinking

    def _start_thinking(self) -> int:
        opener = thinking.ANY_OPENER.match(self.text, self.scan.space(0))
        return self._think(opener.end() if opener else 0, thinking.ANY_CLOSER)

    def _think(self, begin: int, closer: re.Pattern[str]) -> int:
        """Read a thinking whose words begin at a place, and return the place behind it."""
        self._try()
        self._skip(begin)
        close = closer.search(self.text, begin)
        self.may_think = False
        if close is None:
            self.open_thought = True
            return begin
        self.thoughts.append(self.text[begin : close.start()])
        return self._at_start(self._skip(close.end()))

    def _at_start(self, place: int) -> int:
        """Read calls without markup where what is said begins."""
        if self.open_thought or self.spoken or self.scan.space(self.done) < place:
            return place
        begin = self.scan.space(place)
        self.scan.content_start = begin
        behind = None if self.calls else self._bare_at(begin)
        if behind is not None:
            return behind
        if not self.text.startswith(("{", "["), begin):
            return place
        faulty = self._expected(begin, self.grammar.bare)
        if faulty is not None:
            return faulty
        behind = self._json(begin)
        return behind if behind > begin + 1 else place

    # Tokens

    def _token(self, token: re.Match[str]) -> int:
        number = opened(token)
        if number is not None:
            return self._opener(token, self.grammar.formats[number])
        kind = token.lastgroup or ""
        if kind == "fence":
            return self._fence(token)
        if kind in ("code", "quote"):
            return token.end()
        if kind == "silent":
            self._say(token.start())
            return self._skip(token.end())
        if kind == "json":
            return self._json(token.start())
        return self._thought(token, kind)

    def _thought(self, token: re.Match[str], kind: str) -> int:
        if self.open_thought:
            return token.end()
        if kind == "shown":
            return self._shown(token)
        if kind == "closed":
            return self._closed(token)
        late = not self.may_think or self.spoken or self.scan.space(self.done) < token.start()
        if kind == "plain" and late:
            return token.end()
        self._say(token.start())
        return self._think(token.end(), thinking.closer_of(self.text, token.start()))

    def _shown(self, token: re.Match[str]) -> int:
        """Take what stands before a closing token that nothing opened as thought."""
        self._try()
        if self.calls:
            self.thought_of = True
            return len(self.text)
        self._say(token.start())
        self.thoughts.extend(self.said)
        self.said, self.spoken = [], False
        return self._at_start(self._skip(token.end()))

    def _closed(self, token: re.Match[str]) -> int:
        """Read on behind a plain closing tag that nothing opened. Calls before it were thoughts."""
        if self.calls and not self.thoughts:
            self.thought_of = True
            return len(self.text)
        self._try()
        begin = self.scan.content_start = self.scan.space(token.end())
        behind = self._bare_at(begin)
        return token.end() if behind is None else behind

    def _bare_at(self, begin: int) -> int | None:
        """Read calls without markup at a place, and return the place behind; None if there are none."""
        for each in self.grammar.bare if begin < len(self.text) else ():
            found = each.read(self.scan, begin, self.tools)
            if found is not None:
                return self._called(each, found, self._around(begin, found.end))
        return None

    def _opener(self, token: re.Match[str], formats: Sequence[TextFormat]) -> int:
        self._try()
        for each in formats:
            if each.bare and self.open_thought:
                continue
            found = each.read(self.scan, token.start(), self.tools)
            if found is None:
                continue
            around = self._around(token.start(), found.end)
            if not each.bare and self._mentioned(*around):
                return around[1]
            if not self._quoted(*around):
                return self._called(each, found, around)
        place = self._expected(token.start(), formats)
        if place is not None:
            return place
        if self.text.startswith("```", token.start()):
            return self._fence(token)
        if self.text[token.start()] in "{[" and any(each.bare for each in formats):
            return self._json(token.start())
        return self._empty(token)

    def _expected(self, begin: int, formats: Sequence[TextFormat]) -> int | None:
        """Read a faulty call in the expected format, and return the place behind it."""
        each = next((each for each in formats if each.name == self.scan.expected), None)
        if each is None or self.open_thought:
            return None
        found = read_expected(self.scan, begin, self.tools)
        if found is None:
            return None
        around = self._around(begin, found.end)
        return None if self._quoted(*around) else self._called(each, found, around)

    def _try(self) -> None:
        self.tried += 1
        if self.tried > _MOST_TRIED:
            raise Spent

    def _empty(self, token: re.Match[str]) -> int:
        """Take away tags around nothing or an empty list, and an opening tag that the text ends in."""
        if not token[0].startswith(("<", "[")) or "=" in token[0]:
            return token.end()
        behind = self.scan.space(token.end())
        if self.text.startswith("[]", behind):
            behind = self.scan.space(behind + 2)
        closing = None if self.text.startswith("```", behind) else self.grammar.after.match(self.text, behind)
        if closing is None and behind < len(self.text):
            return token.end()
        self._say(token.start())
        return self._skip(closing.end() if closing else behind)

    def _quoted(self, low: int, high: int) -> bool:
        """Say whether quotation marks stand around a call and its tags."""
        return low > 0 and self.text[high : high + 1] == _QUOTES.get(self.text[low - 1], "none")

    def _mentioned(self, low: int, high: int) -> bool:
        """Say whether a sentence about calls goes on behind a call: it shows one, and makes none."""
        if not _SENTENCE_GOES_ON.match(self.text, high):
            return False
        begin = max(self.done, low - _BEFORE)
        begin = max(begin, self.text.rfind("\n", begin, low) + 1)
        return announces_example(_SENTENCE_END.split(self.text[begin:low])[-1])

    def _around(self, begin: int, end: int) -> tuple[int, int]:
        """Return where the tags around a call begin and end."""
        low, more = begin, True
        while more:
            more = False
            bare = low
            while bare > self.done and self.text[bare - 1].isspace():
                bare -= 1
            for tag in self.grammar.before:
                if self.text.endswith(tag, self.done, bare):
                    low, more = bare - len(tag), True
                    break
        closing = self.grammar.after.match(self.text, end)
        return low, closing.end() if closing else end

    def _called(self, each: TextFormat, found: Found, around: tuple[int, int]) -> int:
        self._say(around[0])
        self.open_thought = self.spoken = False
        if found.kept:
            self.said.append(found.kept)
        self.calls.extend((each.name, call) for call in found.calls)
        self.may_think = True
        return self._skip(around[1])

    def _fence(self, token: re.Match[str]) -> int:
        """Skip a code fence. One that is the whole answer and holds markup is taken away around it."""
        line = self.text.find("\n", token.end())
        inner = self.scan.space(line if line >= 0 else len(self.text))
        if token.start() <= self.scan.content_start and self._holds_markup(inner):
            self._say(token.start())
            return self._skip(inner)
        end = _FENCE_END.search(self.text, token.end())
        return end.end() if end else token.end()

    def _holds_markup(self, place: int) -> bool:
        tokens = self.grammar.tokens.get(self.text[place : place + 1])
        opener = tokens.match(self.text, place) if tokens else None
        if opener is None or opened(opener) is None or self.text[place] in "{[`":
            return False
        end = _FENCE_END.search(self.text, place)
        return not end or self.scan.ends_at(end.end())

    def _json(self, place: int) -> int:
        """Skip JSON that is no call: nothing in it is one."""
        try:
            value, end = self.scan.value_at(place)
        except ValueError:
            return place + 1
        return end if isinstance(value, (dict, list)) else place + 1
