"""Calls as a name and pairs of key and value in tags: GLM 4.5 to 5, Ling 3, Laguna, Hunyuan V3, LongCat.

    <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>

with line breaks between the tags or without. Values are text, typed by the declared schema. Tags around
values that were lost are tolerated. A call without a closing tag was cut off, unless another one begins or
every declared parameter was given.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.schemas.repeated_keys import object_of
from sigadapt.schemas.written_values import property_of, value_of, written
from sigadapt.text.contract import MOST_PARAMETERS, CallsToWrite, Found, TextCall, TextFormat, Tools
from sigadapt.text.formats.json_calls import call_json, read_body
from sigadapt.text.scan import Scan

_ATTRIBUTE = re.compile(r"\s+([\w.-]{1,100})=(\"[^\"\n]*\"|'[^'\n]*'|[^\s<>]+)")


class Pair(NamedTuple):
    """The tags of one family member: each opens with `<TAG>` and closes with `</TAG>`."""

    call: str
    key: str
    value: str


def read(scan: Scan, at: int, tools: Tools, *, pair: Pair, head: re.Pattern[str]) -> Found | None:
    """Read one call."""
    found = head.match(scan.text, at)
    opening = f"<{pair.call}>"
    if found is None:  # JSON, as these models write it too
        return read_body(scan, at + len(opening), tools, stops=(opening,))
    name = tools.name_of(found["name"])
    if name is None:
        return None
    written, place = _pairs_at(scan, found.end(), pair)
    if written is None:
        return Found([TextCall(name, CutOff(scan.text[at:].rstrip()))], len(scan.text))
    schema = tools.schema_of(name)
    pairs = [(key, value_of(value, property_of(schema, key, schema), schema)) for key, value in written]
    args = object_of(pairs)
    if scan.text.startswith(f"</{pair.call}>", place):
        return Found([TextCall(name, args)], place + len(pair.call) + 3)
    is_half_tag = scan.text.startswith("<", place) and scan.find(">", place) < 0
    declared: Any = schema.get("properties")
    has_all = bool(args) and is_object(declared) and set(args) >= set(declared)  # only the tag is missing
    if is_half_tag or (place == len(scan.text) and not has_all):
        return Found([TextCall(name, CutOff(scan.text[at:].rstrip()))], place)
    return Found([TextCall(name, args)], place) if written or scan.text.startswith("<", place) else None


def _pairs_at(scan: Scan, at: int, pair: Pair) -> tuple[list[tuple[str, str]] | None, int]:
    """Return a call's values by their keys as text, and the place behind; None if the text ends in one."""
    written: list[tuple[str, str]] = []
    while attribute := _ATTRIBUTE.match(scan.text, at):
        written.append((attribute[1], attribute[2].strip("\"'")))
        at = attribute.end()
    place, count = scan.space(at), 0
    while scan.text.startswith(f"<{pair.key}>", place):
        key, value, place = _pair_at(scan, place, pair)
        count += 1
        if value is None or count > MOST_PARAMETERS:
            return None, len(scan.text)
        written.append((key, value))
        place = scan.space(place)
    return written, place


def _pair_at(scan: Scan, at: int, pair: Pair) -> tuple[str, str | None, int]:
    """Return a key, its value and the place behind; the value is None if the text ends in it."""
    begin = at + len(pair.key) + 2
    key_end = scan.find(f"</{pair.key}>", begin)
    if key_end < 0:
        return "", None, len(scan.text)
    key = scan.text[begin:key_end].strip()
    place = scan.space(key_end + len(pair.key) + 3)
    if scan.text.startswith(f"<{pair.value}>", place):
        place += len(pair.value) + 2
    end = _value_end(scan, place, pair)
    if end is None:
        return key, None, len(scan.text)
    close = f"</{pair.value}>"
    behind = end + len(close) if scan.text.startswith(close, end) else end
    return key, scan.text[place:end], behind


def _value_end(scan: Scan, at: int, pair: Pair) -> int | None:
    close, done = scan.find(f"</{pair.value}>", at), scan.find(f"</{pair.call}>", at)
    stop = _next_pair(scan, at, close if close >= 0 else len(scan.text), pair)
    if stop is not None and (close < 0 or stop < close):
        return stop
    if 0 <= done < close and 0 <= scan.find(f"<{pair.call}>", done) < close:
        return done
    while close >= 0:
        behind = scan.space(close + len(pair.value) + 3)
        goes_on = (f"<{pair.key}>", f"</{pair.call}>", f"<{pair.call}>")
        if behind == len(scan.text) or scan.text.startswith(goes_on, behind):
            return close
        following = scan.find(f"</{pair.value}>", close + 1)
        if following < 0 or 0 <= done < following:
            return close
        close = following
    return done if done >= 0 else None


def _next_pair(scan: Scan, at: int, end: int, pair: Pair) -> int | None:
    """Return where the next pair begins before a value was closed."""
    place = scan.find(f"<{pair.key}>", at)
    tried = 0
    while 0 <= place < end and tried < 100:
        key_end = scan.find(f"</{pair.key}>", place)
        if 0 <= key_end < end:
            behind = scan.space(key_end + len(pair.key) + 3)
            if scan.text.startswith(f"<{pair.value}>", behind):
                return place
        place, tried = scan.find(f"<{pair.key}>", place + 1), tried + 1
    return None


def _write(pair: Pair, calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
    texts: list[str] = []
    for name, args in calls:
        schema = schemas.get(name, {})
        marks = (f"{pair.value}>", f"{pair.key}>", f"{pair.call}>")
        values = {key: written(key, value, schema, marks) for key, value in args.items()}
        if any(value is None for value in values.values()):  # Hermes' form has the same tag
            texts.append(f"<{pair.call}>\n{call_json(name, args)}\n</{pair.call}>")
            continue
        pairs = "".join(
            f"<{pair.key}>{key}</{pair.key}>\n<{pair.value}>{value}</{pair.value}>\n"
            for key, value in values.items()
        )
        texts.append(f"<{pair.call}>{name}\n{pairs}</{pair.call}>")
    return "\n".join(texts)


def write_glm(calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
    """Write calls as GLM 4.5 does; as Hermes does where a value cannot be written so."""
    return _write(_GLM, calls, schemas)


def _format(name: str, pair: Pair, **more: Any) -> TextFormat:
    opener = f"<{re.escape(pair.call)}>"
    head = re.compile(rf"{opener}\s*(?P<name>[^\s<>{{}}\[\]]{{1,128}})(?:\s*<tool_sep>)?")

    def reads(scan: Scan, at: int, tools: Tools) -> Found | None:
        return read(scan, at, tools, pair=pair, head=head)

    return TextFormat(name, opener, reads, **more)


_GLM = Pair("tool_call", "arg_key", "arg_value")
_READS = "With line breaks or without; values that lost a tag; `NAME key=value`."

FORMATS: tuple[TextFormat, ...] = (
    _format(
        "glm-4.5",
        _GLM,
        example="<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
        models="GLM 4.5, 4.6, 4.7, 5; Ling 3; Laguna; Spark 2.5; Hunyuan V3",
        servers="vLLM `glm45`, `glm47`, `ling3`, `poolside_v1`, `hy_v3`; Ollama; llama.cpp; mlx-lm; SGLang",
        reads=_READS,
        before=("<tool_calls>",),
        after=("</tool_call>", "</tool_calls>", "<|role_end|>"),
        write=write_glm,
    ),
    _format(
        "longcat-pairs",
        Pair("longcat_tool_call", "longcat_arg_key", "longcat_arg_value"),
        example="<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n"
        "<longcat_arg_value>Paris</longcat_arg_value>\n</longcat_tool_call>",
        models="LongCat",
        servers="vLLM `longcat`; mlx-lm",
        reads=_READS,
        after=("</longcat_tool_call>",),
    ),
)
