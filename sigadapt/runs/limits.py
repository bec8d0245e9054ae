"""What a run may use (`Limits`) and what it has used (`Usage`), in the same units."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any

from sigadapt.errors import InvalidOption

_COUNTS = frozenset(("requests", "tool_calls", "input_tokens", "output_tokens", "total_tokens"))


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


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a run has used so far. A figure is None if an answer came without it.

    Args:
        requests: requests that were sent to a model; DSPy's retries of one are one.
        tool_calls: calls that began to run; an agent's `submit` is none.
        input_tokens: tokens that the models read, cached ones included.
        output_tokens: tokens that the models wrote.
        cached_tokens: those of the tokens read that a provider had cached; None if no provider said so.
        cost: US dollars.

    Example:
        >>> Usage(requests=1, input_tokens=90, output_tokens=10).total_tokens
        100
    """

    requests: int = 0
    tool_calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cached_tokens: int | None = None
    cost: float | None = 0.0

    @property
    def total_tokens(self) -> int | None:
        """The tokens read and written; None if one of them is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def plus(self, counts: "Mapping[str, float | None]") -> "Usage":
        """Return this with more added to some figures; what is unknown of them stays unknown."""
        sums: dict[str, Any] = {}
        for name, more in counts.items():
            total = getattr(self, name)
            if name == "cached_tokens":
                sums[name] = total if more is None else (total or 0) + more
            else:
                sums[name] = None if total is None or more is None else total + more
        return replace(self, **sums)
