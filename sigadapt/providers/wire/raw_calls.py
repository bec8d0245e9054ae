"""Calls as they came, before anything judges them: `RawCall`, and what its arguments may be."""

from typing import Any, NamedTuple, TypeAlias

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import json_like

RawCall: TypeAlias = tuple[Any, Any, Any]
"""A call as the provider sent it: `(id, name, arguments)`, each of any type.

A str as arguments is JSON text. Any other value is already decoded. A `CutOff` wraps either. None means that
the provider sent no arguments.
"""


class MalformedCall(NamedTuple):
    """What a provider reports about a call that it could not read itself, in its own words."""

    message: str


class JsonText(str):
    """Arguments as JSON text (no JSON string) in an assembled body whose wire sends decoded values."""

    __slots__ = ()


class FreeText(str):
    """The input of a custom tool's call. It is any text, even an empty one, and never read as JSON."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> Any:
        """Return the input as a provider sent it; what is not a text, as compact JSON."""
        if type(value) is CutOff:
            return CutOff(cls.of(value.sent))
        if value is None:
            return cls()
        return cls(value) if isinstance(value, str) else cls(json_like(value))
