"""The contract of a text format: the text that is read, how calls look in it, and how they are read.

A format is a row (`TextFormat`) of the table in `formats.py`: tags, an example, and a body. The bodies are
the few ways in which calls are written (`bodies/`); `reader.py` goes through a text and asks the rows whose
opener it meets. Rules for the `read` of every body:

 a. It returns None where its surface is not there; what stands there stays text. Only declared tools are
    called (`ToolTable.name_of`), so prose about other tools stays prose.
 b. Arguments are a str of JSON as it was written, or decoded values; whether they are good is decided later
    (`typed_calls.py`). Nothing is repaired to JSON. A call that the text ends in is a `CutOff` with its text.
 c. It is linear (bounded). Formats search for closing tags and decode JSON that may not be there, so
    `Scan.find` remembers what it found: a million openers cost one search. `Scan.charge` counts the
    characters that were read for nothing, and ends the reading when they are many times the text.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeAlias

from sigadapt.json_values import Json, compact, is_object
from sigadapt.schemas.arguments import CutOff
from sigadapt.text.written_values import NoLiteral, literal_at, space

# Models write line breaks into strings.
_DECODE = json.JSONDecoder(strict=False).raw_decode
_WORK_PER_CHARACTER = 16
_LEAST_WORK = 1_000_000
_DEEP_NESTING_COST = 50_000
_FIRST_PIECE = 2_000
_MARGIN = 16
COMMENT = r"<!--[^<>]{0,200}-->"
_COMMENTS = re.compile(rf"(?:\s*{COMMENT})+")


class WorkLimitError(Exception):
    """The budget of work is used up."""


class Members:
    """The members of a JSON object that was written at a position of a text."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end: int | None = None
        """The position after the object; None if it is broken."""
        self.fields: dict[str, tuple[Any, int, int]] = {}
        """By key, the decoded value and where its text begins and ends; of a repeated key, the last."""
        self.broken_member: tuple[str, int] | None = None
        """The key whose value is broken, and where that value begins."""
        self.has_repeated_key = False


class Scan:
    """A text, the formats that the caller named, and the one that the model was asked to write in."""

    def __init__(self, text: str, names: frozenset[str] = frozenset(), call_format: str = "") -> None:
        self.text = text
        self.formats = names
        self.call_format = call_format
        self.content_start = 0
        """Where what the model says to the user begins, after its thinking."""
        self._work_left = _WORK_PER_CHARACTER * len(text) + _LEAST_WORK
        self._positions: dict[str, tuple[int, int]] = {}
        self._matches: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}

    def charge(self, characters: int) -> None:
        """Count characters that were looked at. Raises WorkLimitError when they are too many."""
        self._work_left -= characters
        if self._work_left < 0:
            raise WorkLimitError("reading the text takes more work than its length allows")

    def find(self, needle: str, start: int) -> int:
        """Return the first position of a needle from `start` on; -1 if there is none."""
        searched_from, position = self._positions.get(needle, (len(self.text) + 1, -1))
        if searched_from <= start and (position < 0 or position >= start):
            return position
        position = self.text.find(needle, start)
        searched_to = position if position >= 0 else len(self.text)
        self.charge((searched_to - start) // 64)
        self._positions[needle] = (start, position)
        return position

    def search(self, pattern: re.Pattern[str], start: int) -> re.Match[str] | None:
        """Return the first match from `start` on. As with `find`, a text is gone through once a pattern."""
        searched_from, match = self._matches.get(pattern, (len(self.text) + 1, None))
        if searched_from <= start and (match is None or match.start() >= start):
            return match
        match = pattern.search(self.text, start)
        searched_to = match.start() if match else len(self.text)
        self.charge((searched_to - start) // 64)
        self._matches[pattern] = (start, match)
        return match

    def space(self, start: int) -> int:
        """Return where the white space from a position on ends."""
        return space(self.text, start)

    def gap(self, start: int) -> int:
        """Return where white space and comments end, which models write between tags."""
        comments = _COMMENTS.match(self.text, start)
        if comments is None:
            return self.space(start)
        return self.space(comments.end())

    def value_at(self, start: int) -> tuple[Any, int]:
        """Decode the JSON value at a position; ValueError if there is none."""
        # It is decoded from a piece of the text that grows as long as the value may go on: an error of the
        # decoder counts the lines before it, which would take as long as the text for each error.
        size = _FIRST_PIECE
        while True:
            piece = self.text[start : start + size]
            is_last_piece = start + size >= len(self.text)
            # What the decoder says near the end of a piece may change with the next piece.
            trusted_length = len(piece) + 1 if is_last_piece else len(piece) - _MARGIN
            self.charge(len(piece) // 32)
            try:
                value, length = _DECODE(piece)
            except RecursionError:
                self.charge(_DEEP_NESTING_COST)
                raise ValueError("nested too deep") from None
            except json.JSONDecodeError as error:
                is_open_string = not is_last_piece and error.msg.startswith("Unterminated string")
                if error.pos < trusted_length and not is_open_string:
                    self.charge(error.pos // 4 + 1)
                    raise
            else:
                if length < trusted_length:
                    return value, start + length
            size *= 16

    def literal_at(self, start: int, *, is_strict: bool = False) -> tuple[Any, int]:
        """Read the Python literal at a position; ValueError if there is none."""
        try:
            value, end = literal_at(self.text, start, is_strict=is_strict)
        except NoLiteral as error:
            self.charge((error.position - start) // 8 + 1)
            raise
        self.charge((end - start) // 8 + 1)
        return value, end

    def members_at(self, start: int) -> Members:
        """Read the JSON object whose brace is at a position, member by member."""
        members = Members(start)
        cursor = self.space(start + 1)
        if self.text.startswith("}", cursor):
            members.end = cursor + 1
        while members.end is None:
            try:
                key, cursor = self.value_at(cursor)
            except ValueError:
                break
            cursor = self.space(cursor)
            if not isinstance(key, str) or not self.text.startswith(":", cursor):
                break
            value_start = self.space(cursor + 1)
            try:
                value, value_end = self.value_at(value_start)
            except ValueError:
                members.broken_member = key, value_start
                break
            members.has_repeated_key = members.has_repeated_key or key in members.fields
            members.fields[key] = value, value_start, value_end
            cursor = self.space(value_end)
            if self.text.startswith("}", cursor):
                members.end = cursor + 1
            elif not self.text.startswith(",", cursor):
                break
            cursor = self.space(cursor + 1)
        return members

    def ends_at(self, end: int) -> bool:
        """Return whether nothing but white space follows a position."""
        return self.space(end) >= len(self.text)

    def earliest(self, needles: tuple[str, ...], start: int) -> int:
        """Return the first position of any needle; the text's end if there is none."""
        positions = [self.find(needle, start) for needle in needles]
        return min((position for position in positions if position >= 0), default=len(self.text))


MOST_CALLS = 1_000
"""How many calls of one text are read (bounded). The markup of any further ones stays text."""
MOST_PARAMETERS = 1_000
"""How many parameters of one call are read. One with more is taken for cut off."""

NO_TOOL = "no_function"
"""Granite's word for no call."""


class TextCall(NamedTuple):
    """One call that was read: the fields of a `RawCall`, by name."""

    name: Any  # as the text has it
    arguments: Any  # as the text has them
    id: Any = None  # if the format has one


class CallSpan(NamedTuple):
    """Calls at a place of the text, the place behind them, and what in between is no call and stays text."""

    calls: list[TextCall]
    end: int  # the first character after the markup
    text_between: str = ""  # prose inside of the markup


def with_closer(scan: Scan, span: CallSpan, mark: str) -> CallSpan | None:
    """Return what was read with the mark that closes it, or its beginning; None if anything else follows."""
    end = scan.space(span.end)
    rest = scan.text[end : end + len(mark)]
    return span._replace(end=end + len(rest)) if mark.startswith(rest) else None


def as_written(scan: Scan, name: str | None, start: int, end: int, call_id: str | None = None) -> TextCall:
    """Return a call whose arguments are what stands between two positions, cut off if the text ends there."""
    raw = scan.text[start:end].rstrip()
    if end >= len(scan.text):
        return TextCall(name, CutOff(raw), call_id)
    return TextCall(name, raw, call_id)


def _alias(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


class ToolTable:
    """The declared tools: which written name means which tool, and the schema of its arguments."""

    # `undeclared`: markup with a name that is not declared, or without one, is a call too.
    def __init__(self, schemas: Mapping[str, Json], *, undeclared: bool = False) -> None:
        self.schemas = schemas
        self.undeclared = undeclared
        aliases = [_alias(name) for name in schemas]
        # By a name that a provider takes for one with dots or spaces: the only tool with that alias.
        self._by_alias = {
            alias: name
            for name, alias in zip(schemas, aliases, strict=True)
            if alias not in schemas and aliases.count(alias) == 1
        }

    def with_undeclared(self) -> "ToolTable":
        """Return the table in which any name is a tool's."""
        table = copy(self)
        table.undeclared = True
        return table

    def name_of(self, word: Any) -> str | None:
        """Return the tool that a written name means; None for no tool."""
        if not isinstance(word, str):
            return None
        bare = word.strip()
        short = bare.removeprefix("functions.")
        # Models escape names for Markdown: `get\_weather`.
        plain = bare.replace("\\_", "_")
        spellings = (word, bare, bare.strip("\"'"), short, f"functions.{bare}", plain, _alias(plain))
        for name in spellings:
            if name in self.schemas:
                return name
        name = self._by_alias.get(plain)
        if name is None and self.undeclared and bare != NO_TOOL:
            return short or None
        return name

    def schema_of(self, name: str) -> Json:
        """Return the schema of a tool's arguments; that of any object for a tool that is not declared."""
        return self.schemas.get(name, {})


Read: TypeAlias = Callable[[Scan, int, ToolTable], CallSpan | None]
"""Reads the calls at a position."""
CallsToWrite: TypeAlias = Sequence[tuple[str, Json]]
"""Names and arguments, in order."""
Writer: TypeAlias = Callable[[CallsToWrite, Mapping[str, Json]], str]
"""Writes calls in the format. The schemas tell how an untyped value would be read back."""


def call_json(name: str, args: Json, *, arguments: str = "arguments") -> str:
    """Return a call as a JSON object."""
    return compact({"name": name, arguments: args})


def writer(
    call: str, *, separator: str = "\n", prefix: str = "", suffix: str = "", arguments: str = "arguments"
) -> Writer:
    """Return what writes calls by the template of one, of `{json}` or of `{name}`, `{args}` and `{n}`."""

    def write(calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
        if not calls:
            return ""
        texts = list[str]()
        for n, (name, args) in enumerate(calls):
            as_json = call_json(name, args, arguments=arguments)
            texts.append(call.format(json=as_json, name=name, args=compact(args), n=n))
        return f"{prefix}{separator.join(texts)}{suffix}"

    return write


class Body(NamedTuple):
    """One way to write a call."""

    # What every call begins with, as a pattern whose group `name` names the tool, if it has one. Text that
    # goes on in another way isn't read, and leaves the gate.
    head: str
    read: Read  # reads calls where the opener matched; it gives None if there is no such call


class TextFormat(NamedTuple):
    """One row of the table."""

    name: str  # as `formats=` and `call_format=` name it
    opener: str  # a regular expression without groups for what a call begins with
    body: Body  # how a call is written from the opener on
    example: str  # a call of `get_weather` for Paris
    reads: str  # what beside the example is read, in a sentence for the documentation
    opening_tags: tuple[str, ...] = ()  # tags before calls that say nothing by themselves
    closing_tags: tuple[str, ...] = ()  # such tags behind calls
    bare: bool = False  # whether the opener is no markup, so that prose may hold it too
    write: Writer | None = None
    sure: str = ""  # a pattern: where it matches, the opener can begin nothing but a call

    def shape(self, name: str, schema: Json) -> str:
        """Return what a call of a tool looks like, with one argument."""
        properties: Any = schema.get("properties")
        key = next(iter(properties), "city") if is_object(properties) else "city"
        words = {"get_weather": name, "city": key, "Paris": "..."}
        return re.sub("|".join(words), lambda word: words[word[0]], self.example)
