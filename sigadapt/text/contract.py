"""The contract of a text format: how calls look that a model writes into its text, and how they are read.

A format's file holds pure functions and rows (`TextFormat`). The table is `__init__.py`; `reader.py` goes
through a text and asks the formats whose opener it meets. Rules for every `read`:

 a. It returns None where its surface is not there; what stands there stays text. Only declared tools are
    called (`Tools.name_of`), so prose about other tools stays prose.
 b. Arguments are a str of JSON as it was written, or decoded values; whether they are good is decided later
    (`typed_calls.py`). Nothing is repaired to JSON. A call that the text ends in is a `CutOff` with its text.
 c. It is linear: each place is looked at a bounded number of times (`Scan.charge`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sigadapt.schemas.json_values import Json
from sigadapt.text.scan import Scan

MOST_CALLS = 1_000
"""How many calls of one text are read (bounded). The markup of any further ones stays text."""


MOST_PARAMETERS = 1_000
"""How many parameters of one call are read. One with more is taken for cut off."""


class TextCall(NamedTuple):
    """One call that was read: the fields of a `RawCall`, by name."""

    name: Any
    arguments: Any
    id: Any = None


class Found(NamedTuple):
    """What stands at a place of the text.

    Args:
        calls: the calls, in order.
        end: the place behind them.
        kept: what of the text in between is no call and stays text.
    """

    calls: list[TextCall]
    end: int
    kept: str = ""


def _alias(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


class Tools:
    """The declared tools: which written name means which tool, and the schema of its arguments.

    Args:
        schemas: the schemas of arguments by the names of the tools.
        undeclared: whether a name that is not declared counts too, where markup says that it is a call.
    """

    def __init__(self, schemas: Mapping[str, Json], *, undeclared: bool = False) -> None:
        self._schemas = schemas
        self._undeclared = undeclared
        self._by_alias: dict[str, str] = {}
        """By a name that a provider takes for one with dots or spaces: the only tool with that alias."""
        aliases = [_alias(name) for name in schemas]
        for name, alias in zip(schemas, aliases, strict=True):
            if alias not in schemas and aliases.count(alias) == 1:
                self._by_alias[alias] = name

    @property
    def takes_undeclared(self) -> bool:
        """Whether markup with a name that is not declared, or without one, is a call too."""
        return self._undeclared

    def with_undeclared(self) -> "Tools":
        """Return the same tools, with every name in markup as a call."""
        return Tools(self._schemas, undeclared=True)

    def name_of(self, written: Any) -> str | None:
        """Return the tool that a written name means; None for no tool."""
        if not isinstance(written, str):
            return None
        bare = written.strip()
        short = bare.removeprefix("functions.")
        # Models escape names for Markdown: `get\_weather`.
        for name in (written, bare, bare.strip("\"'"), short, f"functions.{bare}", bare.replace("\\_", "_")):
            if name in self._schemas:
                return name
        plain = bare.replace("\\_", "_")
        if _alias(plain) in self._schemas:
            return _alias(plain)
        if plain in self._by_alias:
            return self._by_alias[plain]
        return bare or None if self._undeclared else None

    def schema_of(self, name: str) -> Json:
        """Return the schema of a tool's arguments."""
        return self._schemas.get(name, {})

    def declares(self, name: str) -> bool:
        """Return whether a name is declared exactly so."""
        return name in self._schemas


CallsToWrite: TypeAlias = Sequence[tuple[str, Json]]
"""Calls to write: names and arguments, in order."""

Read: TypeAlias = Callable[[Scan, int, Tools], Found | None]
"""Reads what stands at a place where the opener matched; None if it is not this format."""

Writer: TypeAlias = Callable[[CallsToWrite, Mapping[str, Json]], str]
"""Writes calls in the format. The schemas tell how an untyped value would be read back."""


class TextFormat(NamedTuple):
    """One row of the table.

    Args:
        name: how `formats=` names it.
        opener: a regular expression without groups for what a call begins with.
        read: reads calls at a place where the opener matched.
        example: a call of `get_weather` for Paris in this format.
        models: which models write it.
        servers: which servers have a parser for it, or show it where they have none on.
        reads: what beside the example is read, in a sentence for the documentation.
        before: tags around calls that say nothing by themselves, before them.
        after: such tags behind calls.
        bare: whether the opener is no markup, so that prose may hold it too.
        write: writes calls; None if nobody has to.
    """

    name: str
    opener: str
    read: Read
    example: str
    models: str
    servers: str
    reads: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    bare: bool = False
    write: Writer | None = None
