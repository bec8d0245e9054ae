"""Calls that a model wrote as the value of the calls field, as DSPy's text mode asks for them.

    [[ ## calls ## ]]           "calls": {...}           <calls>{...}</calls>

The value is what `dspy.ToolCalls` writes: an object with `tool_calls`, a list of calls, or one call.
"""

import re
from typing import Any

from sigadapt.providers.provider import RawCall, Reading
from sigadapt.providers.reading import objects
from sigadapt.schemas.json_values import compact, is_object
from sigadapt.schemas.repeated_keys import decode

_HEADER = r"\[\[ ## \w+ ## \]\]"


def with_calls_of_field(reading: Reading, field: str, marker: str) -> Reading:
    r"""Return a Reading with the calls of the calls field, and its text without that field.

    Args:
        reading: a candidate with text.
        field: the calls field.
        marker: how the adapter marks a field, with `{}` for its name.

    Example:
        >>> said = '[[ ## calls ## ]]\n[{"name": "now", "args": {}}]\n[[ ## answer ## ]]\nYes.'
        >>> read = with_calls_of_field(Reading(said, None, [], "stop"), "calls", "[[ ## {} ## ]]")
        >>> read.calls, read.text
        ([(None, 'now', {})], '[[ ## answer ## ]]\nYes.')
    """
    text = reading.text or ""
    name = marker.format(field)
    if not name or name not in text:
        return reading
    if marker.startswith('"'):
        return _of_object(reading, text, field)
    behind = rf"</{re.escape(field)}>|\Z" if marker.startswith("<") else rf"(?={_HEADER})|\Z"
    found = re.search(rf"{re.escape(name)}\s*(?P<value>.*?)\s*(?:{behind})", text, re.DOTALL)
    calls = None if found is None else _calls_in(found["value"])
    if found is None or calls is None:
        return reading
    rest = (text[: found.start()] + text[found.end() :]).strip()
    return reading._replace(text=rest or None, calls=calls)


def _of_object(reading: Reading, text: str, field: str) -> Reading:
    value = _decoded(text)
    if not is_object(value) or field not in value:
        return reading
    calls = _calls_of(value[field])
    if calls is None:
        return reading
    rest = {key: held for key, held in value.items() if key != field}
    return reading._replace(text=compact(rest) if rest else None, calls=calls)


def _calls_in(text: str) -> list[RawCall] | None:
    return _calls_of(_decoded(text))


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return None


def _calls_of(value: Any) -> list[RawCall] | None:
    """Return the calls in a value of the field; None if it is something else."""
    if is_object(value) and "tool_calls" in value:
        value = value["tool_calls"]
    calls = objects(value)
    if not calls or any("name" not in call for call in calls):
        return [] if value == [] else None
    return [(call.get("id"), call["name"], call.get("args", call.get("arguments"))) for call in calls]
