"""The calls field of a prompted answer, as DSPy's text mode asks for it. It is one format among the others.

    [[ ## calls ## ]]           {"calls": {...}, ...}           <calls>{...}</calls>

The value is what `dspy.ToolCalls` takes: an object with `tool_calls`, a list of calls, or one call, each as
DSPy or as a provider writes it. If it is not such JSON, it is read as markup around calls is (fences,
Python's quotes, prose around, broken arguments). If even that finds no call, the value is a call without a
name: something was called, and it's unknown what.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sigadapt.json_values import Json, RepeatedKeys, compact, decode, is_array, is_object, json_like
from sigadapt.schemas.arguments import CutOff
from sigadapt.text.bodies.objects import LABELS
from sigadapt.text.contract import CallSpan, Scan, TextCall

NAME = "calls-field"
_FENCE = re.compile(r"```[\w-]*[ \t\r]*\n?\s*")
_HEADER = re.compile(r"^[ \t]*(?=\[\[ ## \w+ ## \]\])", re.MULTILINE)
_NOTHING = re.compile(r"\W*(?:(?:none|null|n/?a|nothing|no (?:tool )?calls?)\W*)?\Z", re.IGNORECASE)
_LONGEST_NOTHING = 40
_WRAPPER = re.compile(r"""\A[^{\[]*(?:```[\w-]*\s*)?\{\s*["']tool_calls["']\s*:\s*""")
_CALL_OPENER = "<tool_call>\n"
_CALL_CLOSER = "\n</tool_call>"
"""Tags after which a call follows: the value of a calls field is as sure a sign."""
_NEVER = re.compile(r"(?!)")
_OBJECT = re.compile(r"\{(?=\s*[\"'])")

_KEYS = ({"name"}, {"name", "args"}, {"name", "arguments"})

CallsIn = Callable[[str], Sequence[TextCall]]
"""Reads the calls of a text on its own."""


class Layout(NamedTuple):
    """The name of the calls field, what marks a field (`{}` is its name), and the names of the others."""

    field: str = ""  # the calls field
    marker: str = ""  # how the text marks an output field
    other_fields: tuple[str, ...] = ()  # the text's other output fields

    @property
    def is_json(self) -> bool:
        """Whether the fields are keys of one object."""
        return self.marker.startswith('"')

    def is_element(self, tag: str) -> bool:
        """Return whether a tag marks an output field, so that it belongs to the text."""
        return self.is_xml and tag.strip("</>") in (self.field, *self.other_fields)

    def has_calls(self, text: str) -> bool:
        """Return whether a text has the mark of the calls field."""
        return self.marker.format(self.field) in text

    @property
    def is_xml(self) -> bool:
        """Whether the fields are elements."""
        return self.marker.startswith("<")


NO_LAYOUT = Layout()


def opener_of(layout: Layout) -> re.Pattern[str]:
    """Return what an output field begins with; its group `name` names it."""
    if not layout.field or not layout.marker:
        return _NEVER
    if layout.is_json:
        return _OBJECT
    names = "|".join(map(re.escape, (layout.field, *layout.other_fields)))
    if layout.is_xml:
        return re.compile(rf"<(?P<name>{names})>")
    marker = re.escape(layout.marker).replace(r"\{\}", rf"(?P<name>{names})")
    return re.compile(rf"^[ \t]*{marker}", re.MULTILINE)


def read(scan: Scan, opener: re.Match[str], layout: Layout, calls_in: CallsIn) -> CallSpan | None:
    """Read the calls field that begins at an opener; None if what stands there is text."""
    if layout.is_json:
        return _of_object(scan, opener.start(), layout, calls_in)
    raw_start = scan.space(opener.end())
    fence = _FENCE.match(scan.text, raw_start)
    json_start = fence.end() if fence else raw_start
    try:
        value, value_end = scan.value_at(json_start)
    except ValueError:
        value = None
        value_end = raw_start
    if layout.is_xml:
        closing = f"</{layout.field}>"
        raw_end = scan.find(closing, value_end)
        # A tag that nothing closes is only named, unless its value begins at once.
        begins_value = value is not None or scan.text.startswith(("[", "{"), raw_start)
        if raw_end < 0 and not begins_value:
            return None
        field_end = raw_end + len(closing)
    else:
        header = scan.search(_HEADER, value_end)
        raw_end = header.start() if header else -1
        field_end = raw_end
    if raw_end < 0:
        return CallSpan(_calls(scan.text[raw_start:].strip(), calls_in, is_cut=True), len(scan.text))
    return CallSpan(_calls(scan.text[raw_start:raw_end].strip(), calls_in, is_cut=False), field_end)


def _of_object(scan: Scan, start: int, layout: Layout, calls_in: CallsIn) -> CallSpan | None:
    """Read the object whose keys are the output fields; what remains is the object without the calls."""
    members = scan.members_at(start)
    end = members.end
    keys = {*members.fields}
    fields: Any = None
    if end is None and not members.fields:
        with suppress(ValueError):  # in Python's quotes
            fields, end = scan.literal_at(start, is_strict=True)
            keys = {*fields} if is_object(fields) else keys
    if not keys <= {layout.field, *layout.other_fields}:
        return None
    if end is None:
        return _of_cut_object(scan, start, layout, calls_in)
    if layout.field not in keys:
        return None
    if members.end is not None:
        fields = decode(scan.text[start:end])
    pairs: list[tuple[str, Any]] = fields.pairs if isinstance(fields, RepeatedKeys) else list(fields.items())
    calls = list[TextCall]()
    other_values: Json = {}
    for key, value in pairs:
        if key != layout.field:
            other_values[key] = value
            continue
        raw = value if isinstance(value, str) else json_like(value)
        calls += _calls(raw, calls_in, is_cut=False)
    text_between = compact(other_values) if other_values else ""
    return CallSpan(calls, end, text_between)


def _of_cut_object(scan: Scan, start: int, layout: Layout, calls_in: CallsIn) -> CallSpan | None:
    """Read an object that the text ends in: the fields before the calls are whole, so they stay as text."""
    key = re.compile(rf'"{re.escape(layout.field)}"\s*:').search(scan.text, start)
    if key is None:
        return None
    other_members = scan.text[start : key.start()].rstrip(", \t\r\n")
    other_fields = "" if other_members == "{" else f"{other_members}}}"
    calls = _calls(scan.text[key.end() :].strip(), calls_in, is_cut=True)
    return CallSpan(calls, len(scan.text), other_fields)


def _calls(value: str, calls_in: CallsIn, *, is_cut: bool) -> list[TextCall]:
    with suppress(ValueError):
        calls = _calls_of(decode(value))
        if calls is not None:
            return calls
    # Some models write a word where they make no call.
    if len(value) <= _LONGEST_NOTHING and _NOTHING.match(value):
        return []
    start = 0
    if wrapper := _WRAPPER.match(value):
        start = wrapper.end()
    elif bracket := re.search(r"[{\[]", value):
        start = bracket.start()
    markup = _CALL_OPENER + value[start:]
    if not is_cut:
        markup += _CALL_CLOSER
    calls = calls_in(markup)
    if calls:
        return list(calls)
    arguments = CutOff(value) if is_cut else value
    return [TextCall(None, arguments)]


def _calls_of(value: Any) -> list[TextCall] | None:
    """Return the calls in a value of the field, as DSPy or a provider writes them; None if it has others."""
    if is_object(value) and "tool_calls" in value:
        value = value["tool_calls"]
        if value is None:
            return []
    if is_object(value):
        value = [value]
    if not is_array(value):
        return None
    calls = list[TextCall]()
    for item in value:
        call: Json = item if is_object(item) else {}
        function = call.get("function")
        inner: Json = function if is_object(function) else {}
        body = call | inner
        keys = body.keys() - {*LABELS, *(("type", "function") if inner else ())}
        is_twice = any(isinstance(each, RepeatedKeys) for each in (call, inner)) or call.keys() & inner.keys()
        if is_twice or keys not in _KEYS:
            return None
        arguments = body.get("args", body.get("arguments"))
        calls.append(TextCall(body["name"], arguments, call.get("id") or call.get("call_id")))
    return calls
