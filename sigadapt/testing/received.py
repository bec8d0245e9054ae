"""A request to a loopback provider, parsed."""

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
        headers: the headers by name in lower case, one value for each name.
        body: the body, a JSON object.
        model: the requested model, from the body or the path.
        stream: whether the request asks for a stream.
    """

    number: int
    wire: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    model: str
    stream: bool
