"""The calls field of a prompted answer, as DSPy's text mode asks for it. It is one format among the others.

    [[ ## calls ## ]]           {"calls": {...}, ...}           <calls>{...}</calls>

The value is what `dspy.ToolCalls` takes: an object with `tool_calls`, a list of calls, or one call, each as
DSPy or as a provider writes it. If it is not such JSON, it is read as markup around calls is (fences,
Python's quotes, prose around, broken arguments). If even that finds no call, the value is a call without a
name: something was called, and nobody knows what.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, RepeatedKeys, compact, decode, is_array, is_object, json_like
from sigadapt.text.contract import Calls, TextCall
from sigadapt.text.layout import Layout
from sigadapt.text.scan import Scan

NAME = "calls-field"
_FENCE = re.compile(r"```[\w-]*[ \t\r]*\n?\s*")
_HEADER = re.compile(r"^[ \t]*(?=\[\[ ## \w+ ## \]\])", re.MULTILINE)
_NOTHING = re.compile(r"\W*(?:(?:none|null|n/?a|nothing|no (?:tool )?calls?)\W*)?\Z", re.IGNORECASE)
_LONGEST_NOTHING = 40
_WRAPPER = re.compile(r"""\A[^{\[]*(?:```[\w-]*\s*)?\{\s*["']tool_calls["']\s*:\s*""")
_CALL_OPENER = "<tool_call>\n"
_CALL_CLOSER = "\n</tool_call>"
"""Where what stands behind is a call: the value of a calls field is as sure a sign."""
_NEVER = re.compile(r"(?!)")
_OBJECT = re.compile(r"\{(?=\s*[\"'])")

CallsIn = Callable[[str], Sequence[TextCall]]
"""Reads the calls of a text on its own."""


def opener_of(layout: Layout) -> re.Pattern[str]:
    """Return what an output field begins with; its group `name` names it."""
    if not layout.field or not layout.marker:
        return _NEVER
    if layout.is_json:
        return _OBJECT
    names = "|".join(map(re.escape, (layout.field, *layout.others)))
    if layout.is_xml:
        return re.compile(rf"<(?P<name>{names})>")
    marker = re.escape(layout.marker).replace(r"\{\}", rf"(?P<name>{names})")
    return re.compile(rf"^[ \t]*{marker}", re.MULTILINE)


def read(scan: Scan, opener: re.Match[str], layout: Layout, calls_in: CallsIn) -> Calls | None:
    """Read the calls field that begins at an opener; None if what stands there is text."""
    if layout.is_json:
        return _of_object(scan, opener.start(), layout, calls_in)
    begin = scan.space(opener.end())
    fence = _FENCE.match(scan.text, begin)
    try:
        value, behind = scan.value_at(fence.end() if fence else begin)
    except ValueError:
        value = None
        behind = begin
    if layout.is_xml:
        closing = f"</{layout.field}>"
        end = scan.find(closing, behind)
        # A tag that nothing closes is only named, unless its value begins at once.
        if end < 0 and value is None and scan.text[begin : begin + 1] not in ("[", "{"):
            return None
        after = end + len(closing)
    else:
        header = scan.search(_HEADER, behind)
        end = after = header.start() if header else -1
    raw = scan.text[begin : end if end >= 0 else len(scan.text)].strip()
    return Calls(_calls(raw, calls_in, is_cut=end < 0), after if end >= 0 else len(scan.text))


def _of_object(scan: Scan, at: int, layout: Layout, calls_in: CallsIn) -> Calls | None:
    """Read the object whose keys are the output fields; what remains is the object without the calls."""
    members = scan.members_at(at)
    end = 0
    keys = {*members.fields}
    value_of_field: Any = None
    if members.end is None and not members.fields:
        with suppress(ValueError):  # in Python's quotes
            value_of_field, end = scan.literal_at(at, is_strict=True)
            keys = {*value_of_field} if is_object(value_of_field) else keys
    if not keys <= {layout.field, *layout.others}:
        return None
    if members.end is None and not end:
        # The object is cut off: the fields before the calls are whole, so they stay as text.
        key = re.compile(rf'"{re.escape(layout.field)}"\s*:').search(scan.text, at)
        if key is None:
            return None
        before = scan.text[at : key.start()].rstrip(", \t\r\n")
        value = scan.text[key.end() :].strip()
        rest = "" if before == "{" else f"{before}}}"
        return Calls(_calls(value, calls_in, is_cut=True), len(scan.text), rest)
    if layout.field not in keys:
        return None
    value_of_field = value_of_field if end else decode(scan.text[at : members.end])
    pairs = value_of_field.pairs if isinstance(value_of_field, RepeatedKeys) else list(value_of_field.items())
    calls = list[TextCall]()
    for key, value in pairs:
        if key == layout.field:
            calls += _calls(value if isinstance(value, str) else json_like(value), calls_in, is_cut=False)
    rest = {key: value for key, value in pairs if key != layout.field}
    return Calls(calls, members.end or end, compact(rest) if rest else "")


def _calls(value: str, calls_in: CallsIn, *, is_cut: bool) -> list[TextCall]:
    with suppress(ValueError):
        calls = _calls_of(decode(value))
        if calls is not None:
            return calls
    # Some models write a word where they make no call.
    if len(value) <= _LONGEST_NOTHING and _NOTHING.match(value):
        return []
    wrapper = _WRAPPER.match(value)
    begin = re.search(r"[{\[]", value)
    inner = value[wrapper.end() if wrapper else begin.start() if begin else 0 :]
    read = calls_in(_CALL_OPENER + inner + ("" if is_cut else _CALL_CLOSER))
    return list(read) or [TextCall(None, CutOff(value) if is_cut else value)]


def _calls_of(value: Any) -> list[TextCall] | None:
    """Return the calls in a value of the field, as DSPy or a provider writes them; None if it has others."""
    if is_object(value) and "tool_calls" in value:
        value = value["tool_calls"]
        if value is None:
            return []
    items: list[Any] = [value] if is_object(value) else value if is_array(value) else [None]
    calls = list[TextCall]()
    for item in items:
        call: Json = item if is_object(item) else {}
        function = call.get("function")
        inner: Json = function if is_object(function) else call
        if "name" not in inner and "name" not in call:
            return None
        name = inner.get("name", call.get("name"))
        call_id = call.get("id") or call.get("call_id")
        calls.append(TextCall(name, inner.get("args", inner.get("arguments")), call_id))
    return calls
