"""The table of text formats: calls that models write into their text, by what they look like.

A format is chosen by its surface and never by the name of a model, because gateways and users rename models
and any server may show any of these. A new format is a row in the file of its family, or a new file and a
row here.
"""

from collections.abc import Iterable

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import closest
from sigadapt.text.contract import TextFormat
from sigadapt.text.formats import (
    bare_json,
    gemma,
    harmony,
    json_calls,
    named_json,
    nested_elements,
    parameters,
    pythonic,
)

FORMATS: tuple[TextFormat, ...] = (
    *json_calls.FORMATS,
    *parameters.FORMATS,
    *nested_elements.FORMATS,
    *gemma.FORMATS,
    *named_json.FORMATS,
    *pythonic.FORMATS,
    *bare_json.FORMATS,
    *harmony.FORMATS,
)
"""All formats. Where several have the same opener, the first that reads what stands behind it takes it."""

_BY_NAME = {text_format.name: text_format for text_format in FORMATS}


def formats_named(formats: Iterable[str]) -> tuple[TextFormat, ...]:
    """Return the formats that a caller named, in the table's order; InvalidOption for an unknown name."""
    names = [formats] if isinstance(formats, str) else list(formats)
    for name in names:
        if name not in _BY_NAME:
            near = closest(str(name), list(_BY_NAME))
            fix = f"Use one of {', '.join(_BY_NAME)}." if near is None else f"Did you mean {near!r}?"
            raise InvalidOption(f"{name!r} is not a known text format", field="formats", fix=fix)
    return tuple(text_format for text_format in FORMATS if text_format.name in names)
