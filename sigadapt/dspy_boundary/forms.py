"""The forms in which DSPy's own half writes messages and reads answers, as this package has them.

DSPy 3.4 writes few-shot examples as chat messages, and its native types read an answer in an older form of
its own. Both change in DSPy 3.5, and both are here and nowhere else.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dspy import lm15
from dspy.signatures.signature import Signature

from sigadapt.dspy_boundary.internals import legacy_output


def demo_messages(
    format_demos: Callable[..., list[dict[str, Any]]], rest: type[Signature], demos: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return few-shot examples without calls as chat messages."""
    return format_demos(rest, demos)


def native_values(kinds: Mapping[str, Any], response: lm15.Response, reasoning: str | None) -> dict[str, Any]:
    """Return the values that DSPy's native types read from a Response and its log probabilities."""
    output = legacy_output(response, logprobs=response.logprobs is not None)
    if reasoning:
        output["reasoning_content"] = reasoning
    found = {name: kind.parse_lm_response(output) for name, kind in kinds.items()}
    values = {name: value for name, value in found.items() if value is not None}
    return values | ({"logprobs": output["logprobs"]} if "logprobs" in output else {})
