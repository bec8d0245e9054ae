"""What a library does in a case: one class for each library, driven step by step by `worker.py`."""

from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.shop import Shop


class Cannot(Exception):
    """The library documents no way to do this."""


@dataclass
class Setup:
    """What a case asks of a program."""

    url: str
    wire: str = "openai"
    tools: list[str] = field(default_factory=lambda: ["order", "stock"])
    confirm: list[str] = field(default_factory=list[str])
    timeouts: dict[str, float] = field(default_factory=dict[str, float])
    sequential: list[str] = field(default_factory=list[str])
    limits: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Outcome:
    """What a program sees after a step."""

    answer: str | None = None
    waiting: list[str] = field(default_factory=list[str])
    mark: str = ""
    usage: tuple[int, int, int] | None = None
    pieces: list[str] = field(default_factory=list[str])


class Library:
    """A program of a library: how it asks, what it keeps, and how it goes on."""

    def __init__(self, setup: Setup, shop: Shop) -> None:
        self.setup = setup
        self.shop = shop
        self.prepare()

    def prepare(self) -> None:
        """Make the agent."""

    def arguments(self, step: str, value: Any) -> dict[str, Any]:
        """Return what the next run is called with; raise `Cannot` where there is no way."""
        raise NotImplementedError

    def call(self, arguments: dict[str, Any]) -> Outcome:
        """Run it from a sync program."""
        raise NotImplementedError

    async def acall(self, arguments: dict[str, Any]) -> Outcome:
        """Run it from an async program."""
        raise NotImplementedError

    async def stream(self, arguments: dict[str, Any]) -> Outcome:
        """Run it, with the pieces of its answer."""
        raise NotImplementedError

    def failed(self, error: BaseException) -> None:
        """Take from an error what the library documents that it carries."""

    def reload(self) -> None:
        """Write what is kept as text, and read it into a new agent."""
        raise Cannot("keeps nothing to save")
