"""The contract of a text format: how calls look that a model writes into its text, and how they are read.

A format is a row (`TextFormat`) of the table in `formats.py`: tags, an example, and a body. The bodies are
the few ways in which calls are written (`bodies/`); `reader.py` goes through a text and asks the rows whose
opener it meets. Rules for the `read` of every body:

 a. It returns None where its surface is not there; what stands there stays text. Only declared tools are
    called (`ToolTable.name_of`), so prose about other tools stays prose.
 b. Arguments are a str of JSON as it was written, or decoded values; whether they are good is decided later
    (`typed_calls.py`). Nothing is repaired to JSON. A call that the text ends in is a `CutOff` with its text.
 c. It is linear: each place is looked at a bounded number of times (`Scan.charge`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, compact, is_object
from sigadapt.text.scan import Scan

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
    """Return what was read with the mark that closes it; None if anything but the text's end follows."""
    end = scan.space(span.end)
    if end < len(scan.text) and not scan.text.startswith(mark, end):
        return None
    return span._replace(end=min(end + len(mark), len(scan.text)))


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

    def with_undeclared(self) -> "ToolTable":
        """Return the same tools, beside which any name is one."""
        tools = copy(self)
        tools.undeclared = True
        return tools

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


class Body(Protocol):
    """One way to write a call."""

    @property
    def head(self) -> str:
        """What every call begins with, as a pattern whose group `name` names the tool, if it has one."""
        ...

    # Text that goes on in another way than the head isn't read, and leaves the gate.
    @property
    def read(self) -> Read:
        """What reads calls where the opener matched; it gives None if there is no such call."""
        ...


@dataclass(frozen=True)
class Rule:
    """A body of one format alone: a function."""

    head: str
    read: Read


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
