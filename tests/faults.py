"""The table of faults, faults.json: calls that models get wrong, and good ones that look it.

Each row has the calls of an answer as names and the text of their arguments, its finish reason, and the code
of each call, null for a good one. A text of arguments is a list of [text, times] where it repeats itself.
Native calls, calls in words of each form, and agents under sigadapt's adapter and DSPy's run the same rows.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


def get_weather(city: str, days: int = 3) -> str:
    """Weather for a city."""
    raise AssertionError(f"a tool was executed: {city}, {days}")


def now() -> str:
    """The time."""
    raise AssertionError("a tool was executed")


class Fault(NamedTuple):
    """Calls of an answer, as names and the text of their arguments, the finish reason, and the codes."""

    calls: Sequence[tuple[str, str]]
    finish: str | None = None
    codes: Sequence[str | None] = ()

    @property
    def is_cut(self) -> bool:
        return self.finish is not None


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else "".join(text * times for text, times in arguments)


FAULTS = {
    row["name"]: Fault([(name, _text(text)) for name, text in row["calls"]], row.get("finish"), row["codes"])
    for row in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
}
