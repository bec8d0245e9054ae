"""Weigh the parts of a request's body in bytes and tokens, whatever the provider's format."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sigadapt.commands.request_parts import parts_of
from sigadapt.schemas.json_values import Json, compact

_LEAST = 40  # bytes of a field that has a row of its own


class Weight(NamedTuple):
    """What one part weighs: as compact JSON in UTF-8, and in tokens."""

    part: str
    bytes: int
    tokens: int


def weights(body: Json, count: Callable[[str], int]) -> list[Weight]:
    """Return what each tool, each message and each long field weigh; small fields are one part."""
    heavy: list[Weight] = []
    small: Json = {}
    for key, value in body.items():
        rows = [_weigh(part.name, part.value, count) for part in parts_of(body, [key])]
        # Gemini's `toolConfig` holds settings only, so it has no row of a tool.
        if not rows or (rows[0].part == key and rows[0].bytes < _LEAST):
            small[key] = value
        else:
            heavy += rows
    return [*heavy, _weigh(", ".join(small), small, count)] if small else heavy


def _weigh(name: str, value: Any, count: Callable[[str], int]) -> Weight:
    text = compact(value)
    return Weight(name, len(text.encode(errors="replace")), count(text))
