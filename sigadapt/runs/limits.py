"""What a run may use (`Limits`), in the units of what it has used (`providers/usage.py`)."""

from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

from sigadapt.errors import InvalidOption

_COUNTS = frozenset(("requests", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "failures"))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a run may use. What is None has no limit.

    Args:
        requests: requests to a model, those of tool searches and reasks included. An answer of DSPy's cache
            is none, and DSPy's retries are one.
        tool_calls: calls of tools that begin to run.
        input_tokens: tokens that the models read.
        output_tokens: tokens that the models wrote, thinking included.
        total_tokens: both.
        cost: US dollars, as DSPy knows the models' prices.
        seconds: the time since the run began. A tool is not waited for any longer.
        failures: turns of an agent in a row in which no call succeeded. Bad calls and a `submit` that does
            not fit are failures, a rejected call is none. The turns of an agent inside of a tool are its own.

    Raises:
        InvalidOption: for a limit that is no number, or below 0.

    Example:
        >>> Limits(requests=5, cost=0.25)
        Limits(requests=5, cost=0.25)
    """

    requests: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    failures: int | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value: Any = getattr(self, limit.name)
            if value is not None:
                _check(limit.name, value)

    def __repr__(self) -> str:
        given = [(limit.name, getattr(self, limit.name)) for limit in fields(self)]
        return f"Limits({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"


def check_limits(limits: object) -> None:
    """Refuse what is neither Limits nor None."""
    if limits is None or isinstance(limits, Limits):
        return
    fix = "Give sigadapt.Limits(requests=10)."
    raise InvalidOption(f"expected Limits, got {limits!r}", field="limits", fix=fix)


def _check(name: str, value: Any) -> None:
    kinds = (int,) if name in _COUNTS else (int, float)
    if type(value) in kinds and isfinite(value) and value >= 0:
        return
    noun = "an int" if name in _COUNTS else "a number"
    raise InvalidOption(f"expected {noun} of 0 or more as a limit, got {value!r}", field=name)
