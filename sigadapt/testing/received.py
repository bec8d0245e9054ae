"""What a loopback provider was sent: one request, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived.

    Args:
        number: its place in the order of arrival, from 1.
        wire: the name of the wire it came over, a key of `WIRES`.
        path: the path with its query, such as `/v1/chat/completions`.
        headers: names in lower case; one value a name.
        body: the JSON object sent.
        model: the model asked for, from the body or the path.
        stream: whether a stream was asked for.
    """

    number: int
    wire: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    model: str
    stream: bool
