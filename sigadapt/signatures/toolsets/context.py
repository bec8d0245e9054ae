"""What a toolset may know of the request that it gives tools for. Read-only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dspy.signatures.signature import Signature


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request before it leaves, as a toolset sees it.

    Args:
        signature: the signature that is asked; None outside a request.
        inputs: the values of its input fields.
        settings: the generation settings of this call (`temperature` and the like).

    Example:
        >>> RequestContext(inputs={"question": "why?"}).inputs["question"]
        'why?'
    """

    signature: type[Signature] | None = None
    inputs: Mapping[str, Any] = field(default_factory=_nothing)
    settings: Mapping[str, Any] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        for name in ("inputs", "settings"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
