"""What was used, in the same figures for a run and for an answer: `Usage`, and `AnswerUsage`.

Each provider's file says which members of a body are which figures (`Provider.usage`), with the functions
here. The figures mean what they mean in `Run.usage`, where DSPy counts them: cached tokens are among those
read, thinking is among those written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from sys import float_info
from typing import Any

from sigadapt.json_values import Json, is_object


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


@dataclass(frozen=True, kw_only=True)
class AnswerUsage(Usage):
    """What a provider counted for one answer. A figure is None if the provider did not give it.

    Args:
        requests: 1.
        tool_calls: 0, because no call has run yet.
        input_tokens: tokens that the model read, cached ones included.
        output_tokens: tokens that the model wrote, thinking included.
        cached_tokens: those of the tokens read that the provider had cached.
        cost: US dollars, where the server or LiteLLM names a price (OpenRouter does).
        raw: the provider's own usage object, unchanged. It does not count when two usages are compared.

    Example:
        >>> AnswerUsage(input_tokens=90, output_tokens=10, raw={"prompt_tokens": 90}).total_tokens
        100
    """

    requests: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    raw: Json = field(default_factory=dict[str, Any], repr=False, compare=False)


def answer_usage(
    raw: Json,
    *,
    read: int | None,
    written: int | None,
    cached: int | None = None,
    cost: float | None = None,
) -> AnswerUsage | None:
    """Return the usage of an answer; None if nothing was counted."""
    if read is None and written is None:
        return None
    return AnswerUsage(input_tokens=read, output_tokens=written, cached_tokens=cached, cost=cost, raw=raw)


def count_in(counts: Json, *paths: str) -> int | None:
    """Return the first count that one of some members holds (`prompt_tokens_details.cached_tokens`)."""
    for path in paths:
        value: Any = counts
        for name in path.split("."):
            value = value.get(name) if is_object(value) else None
        if type(value) is int:
            return value
        if type(value) is float and isfinite(value):  # Cohere's counts are floats
            return int(value)
    return None


def sum_in(counts: Json, *paths: str) -> int | None:
    """Return the sum of the counts that some members hold; None if none of them holds one."""
    numbers = [number for path in paths if (number := count_in(counts, path)) is not None]
    return sum(numbers) if numbers else None


def price_in(counts: Json, name: str) -> float | None:
    """Return the price that a member holds."""
    value: Any = counts.get(name)
    # `isfinite` raises for an int that no float holds.
    return value if type(value) in (int, float) and abs(value) <= float_info.max else None
