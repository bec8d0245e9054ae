"""Decode JSON that is nested deeper than a decoder goes.

A decoder refuses a whole body because of one value in it with 100,000 brackets. Here what is below a level
becomes its own text, as a JSON string. The level is far below what arguments may have, so `check_decoded`
refuses the value as arguments, and its text is kept (nothing silent, no network).
"""

import json
import re
from collections.abc import Iterator

from sigadapt.schemas.json_values import ARGUMENT_LEVELS

_LEVELS = ARGUMENT_LEVELS + 50
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def without_depths(text: str, levels: int = _LEVELS) -> str:
    """Return JSON text in which a value below a level is a string with the value's text."""
    pieces: list[str] = []
    done = 0
    for start, end in _below(text, levels):
        pieces += text[done:start], json.dumps(text[start:end])
        done = end
    return "".join([*pieces, text[done:]])


def _below(text: str, levels: int) -> Iterator[tuple[int, int]]:
    """Yield the places of values whose level is below the given one."""
    level, start = 0, 0
    for token in _TOKEN.finditer(text):
        bracket = token.group()
        if bracket in "[{":
            level += 1
            if level == levels + 1:
                start = token.start()
        elif bracket in "]}":
            if level == levels + 1:
                yield start, token.end()
            level -= 1
