"""Calls that a model wrote as the value of the calls field, as DSPy's text mode asks for them.

    [[ ## calls ## ]]           "calls": {...}           <calls>{...}</calls>

The value is what `dspy.ToolCalls` takes: an object with `tool_calls`, a list of calls, or one call, each as
DSPy or as a provider writes it. A value that is not such JSON is read as markup around calls is (fences,
Python's quotes, prose around, broken arguments). If even that finds no call, the value is a call without a
name: something was called, and nobody knows what.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sigadapt.adapters.response.text_choice import text_read
from sigadapt.providers.provider import CutOff, RawCall, Reading
from sigadapt.providers.reading import objects
from sigadapt.schemas.json_values import Json, compact, is_array, is_object, spelled
from sigadapt.schemas.repeated_keys import decode

_HEADER = r"\[\[ ## \w+ ## \]\]"
_NOTHING = re.compile(r"\W*(?:none|null|n/?a|nothing|no (?:tool )?calls?)?\W*\Z", re.IGNORECASE)
_LONGEST_NOTHING = 40
_WRAPPER = re.compile(r"""\A[^{\[]*(?:```[\w-]*\s*)?\{\s*["']tool_calls["']\s*:\s*""")
_OPENER = "<tool_call>\n"
"""Where what stands behind is a call: the value of a calls field is as sure a sign."""


class _Field(NamedTuple):
    """The value of the calls field, and the text without the field. `is_cut`: the text ends in the value."""

    value: str
    rest: str
    is_cut: bool


def with_calls_of_field(
    reading: Reading, field: str, marker: str, schemas: Callable[[], Mapping[str, Json]] = dict
) -> Reading:
    """Return a Reading with the calls of the calls field, and its text without that field."""
    text = reading.text or ""
    if not marker or marker.format(field) not in text:
        return reading
    if marker.startswith('"'):
        value = _decoded(text)
        if is_object(value):
            return _of_object(reading, value, field, schemas)
    found = _in_json(text, field) if marker.startswith('"') else _marked(text, field, marker)
    if found is None:
        return reading
    calls = _calls_in(found, schemas)
    return reading._replace(text=found.rest.strip() or None, calls=calls)


def _marked(text: str, field: str, marker: str) -> _Field | None:
    """Return the field that a header on a line of its own, or an element, marks."""
    name = re.escape(marker.format(field))
    is_element = marker.startswith("<")
    before = "" if is_element else r"^[ \t]*"
    behind = rf"</{re.escape(field)}>" if is_element else rf"^[ \t]*(?={_HEADER})"
    found = re.search(rf"{before}{name}(?P<value>.*?)(?P<end>{behind}|\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        return None
    rest = text[: found.start()] + text[found.end() :]
    return _Field(found["value"].strip(), rest, is_cut=not found["end"] and found.end() == len(text))


def _in_json(text: str, field: str) -> _Field | None:
    """Return the field of an object that is not JSON: all that stands behind its key."""
    found = re.search(rf'"{re.escape(field)}"\s*:', text)
    if found is None:
        return None
    before = text[: found.start()].rstrip(", \t\r\n")
    return _Field(text[found.end() :].strip(), "" if before == "{" else f"{before}}}", is_cut=True)


def _of_object(
    reading: Reading, value: Json, field: str, schemas: Callable[[], Mapping[str, Json]]
) -> Reading:
    if field not in value:
        return reading
    held = value[field]
    written = held if isinstance(held, str) else spelled(held)
    calls = _calls_in(_Field(written.strip(), "", is_cut=False), schemas)
    rest = {key: each for key, each in value.items() if key != field}
    return reading._replace(text=compact(rest) if rest else None, calls=calls)


def _calls_in(found: _Field, schemas: Callable[[], Mapping[str, Json]]) -> list[RawCall]:
    calls = _calls_of(_decoded(found.value))
    if calls is not None:
        return calls
    if len(found.value) <= _LONGEST_NOTHING and _NOTHING.match(found.value):
        return []
    end = "" if found.is_cut else "\n</tool_call>"
    wrapper = _WRAPPER.match(found.value)
    inner = found.value[wrapper.end() if wrapper else _begin(found.value) :]
    read = text_read(f"{_OPENER}{inner}{end}", schemas(), undeclared=True)
    if read.calls:
        return [(call.id, call.name, call.arguments) for _, call in read.calls]
    return [(None, None, CutOff(found.value) if found.is_cut else found.value)]


def _begin(value: str) -> int:
    """Return where JSON begins in a value, or 0."""
    found = re.search(r"[{\[]", value)
    return found.start() if found else 0


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
    if not calls or (is_array(value) and len(calls) < len(value)):
        return [] if value == [] else None
    read = [_call_of(call) for call in calls]
    return None if any(call is None for call in read) else [call for call in read if call is not None]


def _call_of(call: Json) -> RawCall | None:
    """Return one call as DSPy or a provider writes it; None if it is something else."""
    function = call.get("function")
    inner: Json = function if is_object(function) else call
    if "name" not in inner and "name" not in call:
        return None
    call_id = call.get("id") or call.get("call_id")
    return call_id, inner.get("name", call.get("name")), inner.get("args", inner.get("arguments"))
