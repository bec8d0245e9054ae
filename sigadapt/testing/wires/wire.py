"""One row of the table of wires: a format, and how `dspy.LM` is brought to speak it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sigadapt.testing.answers import Answer
from sigadapt.testing.received import Received
from sigadapt.testing.wires.framing import Event


class Format(Protocol):
    """A module of pure functions over one provider's format.

    `PATH` matches the paths it serves, query included, and may have a group `model`; `STREAM_TYPE` is the
    content type of its streams.
    """

    PATH: re.Pattern[str]
    STREAM_TYPE: str

    def streams(self, path: str, body: Mapping[str, Any]) -> bool:
        """Whether the request asks for a stream."""
        ...

    def render(self, answer: Answer, request: Received) -> dict[str, Any]:
        """Render an answer as a whole body."""
        ...

    def stream(self, answer: Answer, request: Received) -> Iterable[Event]:
        """Render the same answer as a stream's events."""
        ...

    def encode(self, events: Iterable[Event]) -> Iterator[bytes]:
        """Put the events on the wire."""
        ...

    def failure(self, status: int, message: str) -> dict[str, Any]:
        """Render an error in the provider's error shape."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """A wire format and the `dspy.LM` settings that reach it (measured on dspy 3.4.1, litellm 1.106).

    Args:
        name: its name, as in `base_url(name)`.
        format: the module that renders it.
        model: a model string for `dspy.LM`.
        suffix: what follows the provider's address in `dspy.LM(api_base=...)`.
        options: the other arguments `dspy.LM` needs to speak this wire.
    """

    name: str
    format: Format
    model: str
    suffix: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
