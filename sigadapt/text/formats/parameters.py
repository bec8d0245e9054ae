"""Calls as tags with one tag a parameter, or a pair of tags a key and a value.

    <function=NAME><parameter=KEY>VALUE</parameter></function>
        Qwen3-Coder, Seed, MiniMax M2, `<invoke>`, DSML, Step 3, Kimi K3
    <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>
        GLM 4.5 to 5, Ling 3, Laguna, Hunyuan V3, LongCat

One grammar with other tags (`Tags`). It looks like XML and is not: nothing is escaped, and a value runs to
the closing tag behind which the next parameter or the call's end stands. Values are text, typed by the
declared schema (`written_values.value_of`); DSML and Kimi K3 say which values are text.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, compact, is_object, object_of
from sigadapt.text.contract import (
    MOST_PARAMETERS,
    Calls,
    CallsToWrite,
    TextCall,
    TextFormat,
    Tools,
    Writer,
    as_written,
    call_json,
)
from sigadapt.text.formats.json_calls import OBJECT, read_body
from sigadapt.text.scan import Scan
from sigadapt.text.written_values import NO_TEXT, property_of, value_of, written

_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)
_FIRST_BREAK = re.compile(r"\A\r?\n")
_LAST_BREAK = re.compile(r"\r?\n\Z")
_QUOTED = r"""(?P<q>["'])(?P<{}>[^\n<>]{{0,200}}?)(?P=q)"""
_KIND = re.compile(r"""\b(string|type)=["'](\w+)["']""")
_ATTRIBUTE = re.compile(r"\s+(?P<key>[\w.-]{1,100})=(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s<>]+)")
_PER_TAG = 64  # characters that a closing tag costs which closes nothing


class Tags(NamedTuple):
    """The tags of one family member."""

    parameter: re.Pattern[str]  # what opens a parameter, with the group `key`
    parameter_end: str
    call_end: str  # empty where nothing closes a call
    goes_on: re.Pattern[str]  # behind a parameter: the next one, a closing tag, the next call or the end
    call: re.Pattern[str] | None = None  # what opens a call, with the group `name`, unless that is elsewhere
    breaks: bool = False  # whether a line break before the closing tag is always markup
    # What opens a key that has tags of its own, as GLM writes it. Line breaks then belong to the value, and
    # the call may lack its closing tag if every declared parameter is there.
    pairs: str = ""
    prefix: str | None = None  # what the group `prefix` of an opening tag must be, if tags have one
    tag_end: str = ">"

    def opens(self, tag: re.Match[str] | None) -> bool:
        """Return whether an opening tag is there, and one of these tags."""
        return tag is not None and (self.prefix is None or tag["prefix"] == self.prefix)


def _goes_on(opener: str) -> re.Pattern[str]:
    return re.compile(rf"{opener}|<[/|]|<tool_call>|\Z")


def read(scan: Scan, at: int, tools: Tools, *, head: re.Pattern[str], tags: Tags | None) -> Calls | None:
    """Read one call. Without tags, they are those of `<invoke>` with the prefix that the head has."""
    opening = head.match(scan.text, at)
    name = tools.name_of(opening["name"]) if opening else None
    if opening is None or name is None:
        return None
    mine = tags or _invoke(opening["prefix"])
    place = scan.gap(opening.end())
    if scan.text.startswith("{", place) and not mine.pairs:
        return _json_body(scan, place, name, mine)
    schema = tools.schema_of(name)
    args, place, whole = parameters_at(scan, opening.end(), schema, mine)
    following = scan.search(mine.call, place) if mine.call else None
    end = min(scan.earliest((mine.call_end,), place), following.start() if following else len(scan.text))
    properties: Any = schema.get("properties")
    is_complete = bool(mine.pairs and args) and is_object(properties) and set(args) >= set(properties)
    is_part = bool(mine.pairs) and whole is None and end < len(scan.text)  # a key that is none
    is_part = is_part or mine.parameter.match(scan.text, place) is not None  # with another prefix
    is_half = scan.text.startswith("<", place) and scan.find(mine.tag_end, place) < 0  # a tag that is cut off
    is_open = (is_half or place == len(scan.text)) and not (is_complete and scan.ends_at(place))
    if (whole is None and not is_part) or (is_open and not is_part):
        return Calls([TextCall(name, CutOff(scan.text[at:].rstrip()))], len(scan.text))
    if scan.text.startswith(mine.call_end, place) and not is_part:
        return Calls([TextCall(name, args)], place + len(mine.call_end))
    # It is not closed here: other markup closes it, or a line break that a tag without parameters ends in.
    begins_line = scan.text.startswith(("\n", "\r\n"), opening.end())
    by_line = not mine.pairs and begins_line and not schema.get("required")
    by_markup = scan.text.startswith(("</", "<|", "<｜"), place) or mine.goes_on.match(scan.text, place)
    if not by_markup and (args or by_line):  # what stands before its end, or an element, is a part of it
        is_part = is_part or scan.text.startswith(mine.call_end, end) or scan.text.startswith("<", place)
    if is_part:
        behind = end + len(mine.call_end) * scan.text.startswith(mine.call_end, end)
        return Calls([as_written(scan, name, opening.end(), end)], behind)
    return Calls([TextCall(name, args)], place) if args or by_markup or by_line else None


def _read_pairs(scan: Scan, at: int, tools: Tools, *, head: re.Pattern[str], tags: Tags) -> Calls | None:
    """Read one call in pairs of tags, or as JSON, as these models write it too."""
    if head.match(scan.text, at):
        return read(scan, at, tools, head=head, tags=tags)
    opener = tags.call_end.replace("/", "")
    return read_body(scan, at + len(opener), tools, stops=(opener,))


def _json_body(scan: Scan, at: int, name: str, tags: Tags) -> Calls | None:
    """Read arguments that stand as JSON where parameters would."""
    try:
        _, end = scan.value_at(at)
    except ValueError:
        end = scan.earliest((tags.call_end,), at)
        return Calls([as_written(scan, name, at, end)], min(end + len(tags.call_end), len(scan.text)))
    behind = scan.space(end)
    if scan.text.startswith(tags.call_end, behind):
        return Calls([TextCall(name, scan.text[at:end])], behind + len(tags.call_end))
    stop = scan.find(tags.call_end, behind)
    is_open = stop >= 0 and not scan.text.startswith("<", behind)
    if is_open and tags.call is not None and not tags.call.search(scan.text, behind, stop):
        return Calls([as_written(scan, name, at, stop)], stop + len(tags.call_end))
    return Calls([TextCall(name, scan.text[at:end])], end)


def parameters_at(scan: Scan, at: int, schema: Json, tags: Tags) -> tuple[Json, int, bool | None]:
    """Read parameters, and return them with the place behind and whether the last was closed."""
    # The last value is None if the text ends in a parameter.
    raw: list[tuple[str, str, str]] = []
    while tags.pairs and (attribute := _ATTRIBUTE.match(scan.text, at)):  # `NAME key=value`
        raw.append((attribute["key"], attribute["value"].strip("\"'"), ""))
        at = attribute.end()
    place = scan.gap(at)
    is_closed = True
    while (opener := tags.parameter.match(scan.text, place)) and tags.opens(opener):
        end, behind = _value_end(scan, opener.end(), schema, tags)
        if end is None or len(raw) >= MOST_PARAMETERS:
            return {}, len(scan.text), None
        raw.append((opener["key"].strip(), scan.text[opener.end() : end], opener[0]))
        place = scan.gap(behind)
        is_closed = behind > end
    is_half = tags.pairs and scan.text.startswith(tags.pairs, place)
    pairs = [
        (key, _value(value, tag, property_of(schema, key, schema), schema, tags)) for key, value, tag in raw
    ]
    args = object_of(pairs)
    inner = args.get("arguments")
    if len(args) == 1 and is_object(inner) and inner:  # a wrapper that is not declared, and what is
        names = ("arguments", *inner)
        are_declared = [property_of(schema, key, schema) is not None for key in names]
        args = inner if not are_declared[0] and all(are_declared[1:]) else args
    return args, place, None if is_half else is_closed


def _value_end(scan: Scan, at: int, schema: Json, tags: Tags) -> tuple[int | None, int]:
    """Return where a value ends, and the place behind its closing tag; None if the text ends in it."""
    first = scan.find(tags.parameter_end, at)
    other = scan.find(tags.call_end, at) if tags.call_end else -1
    inner = scan.search(tags.call, at) if tags.call else None
    begin = inner.start() if inner and tags.opens(inner) else len(scan.text)
    if begin < first and not 0 <= other < begin:
        return _nested_end(scan, at, first, tags)
    if first < 0:
        stop = _next_parameter(scan, at, len(scan.text) if other < 0 else other, schema, tags)
        if stop is not None:
            return stop, stop
        return (other, other) if other >= 0 else (None, 0)
    if 0 <= other < first and (tags.call is None or begin < first):
        return other, other
    end, behind = _closing_tag(scan, first, tags)
    stop = _next_parameter(scan, at, end, schema, tags)
    return (stop, stop) if stop is not None else (end, behind)


def _nested_end(scan: Scan, at: int, first: int, tags: Tags) -> tuple[int | None, int]:
    """Return where a value ends that holds such a call: where as many parameters close as open."""
    place = first
    opens = 0
    since = at
    for closes in itertools.count():
        opens += sum(1 for _ in tags.parameter.finditer(scan.text, since, max(place, since)))
        if place < 0 or opens <= closes:
            break
        since = place
        place = scan.find(tags.parameter_end, place + 1)
        scan.charge(_PER_TAG)
    return (place, place + len(tags.parameter_end)) if place >= 0 else (None, 0)


def _closing_tag(scan: Scan, first: int, tags: Tags) -> tuple[int, int]:
    """Return where the closing tag stands behind which markup goes on, and the place behind it."""
    # One that stands twice closes once. Where markup goes on behind none, the first closes.
    place = first
    while place >= 0:
        last = place
        while scan.text.startswith(tags.parameter_end, again := scan.space(last + len(tags.parameter_end))):
            last = again
        if tags.goes_on.match(scan.text, scan.gap(again)):
            return place, last + len(tags.parameter_end)
        if last > place:  # its double is markup that goes on
            return place, scan.text.rindex(tags.parameter_end, place, last) + len(tags.parameter_end)
        scan.charge(_PER_TAG)
        place = scan.find(tags.parameter_end, last + 1)
    return first, first + len(tags.parameter_end)


def _next_parameter(scan: Scan, at: int, end: int, schema: Json, tags: Tags) -> int | None:
    """Return where the next parameter, a declared one, opens before a value was closed."""
    for opener in tags.parameter.finditer(scan.text, at, end):
        properties: Any = schema.get("properties")
        if tags.opens(opener) and (not properties or opener["key"].strip() in properties):
            return opener.start()
    return None


def _value(raw: str, opener: str, schema: Any, root: Json, tags: Tags) -> Any:
    if tags.pairs:
        return value_of(raw, schema, root)
    text = _FIRST_BREAK.sub("", raw)  # the line break on each side belongs to the markup
    text = _LAST_BREAK.sub("", text) if tags.breaks or len(text) < len(raw) else text
    cdata = _CDATA.match(text)
    text = cdata[1] if cdata else text
    flag = _KIND.search(opener)
    if flag is None or flag[2] == "text" or schema is not None:  # the schema corrects a wrong flag
        return value_of(text, schema, root)
    is_text = flag[2] == ("true" if flag[0].startswith("string") else "string")
    return text if is_text else value_of(text, NO_TEXT, root)


# Qwen3-Coder's tags, shared by many.
_FUNCTION_HEAD = re.compile(r"<function=(?P<name>[^<>\n{]{1,200})>?")
_FUNCTION_CALL = "<tool_call>\n<function={}>\n{}</function>\n</tool_call>"
_FUNCTION = Tags(
    re.compile(r"<parameter=(?P<key>[^>\n]{1,200})>?"),
    "</parameter>",
    "</function>",
    _goes_on("<parameter="),
    _FUNCTION_HEAD,
    breaks=True,
)


_PREFIX = r"(?:[\w.]{1,32}:|[｜|]DSML[｜|] ?)?"
_INVOKE = re.compile(
    rf"<(?P<prefix>{_PREFIX})invoke\s[^<>]{{0,200}}?name={_QUOTED.format('name')}[^<>]{{0,200}}>"
)
_NAMED = r"parameter\s(?:[^<>]{0,200}?\s)??name="
_PARAMETER = re.compile(rf"<(?P<prefix>{_PREFIX}){_NAMED}{_QUOTED.format('key')}[^<>]{{0,200}}>")
_AFTER_PARAMETER = _goes_on(rf"<{_PREFIX}{_NAMED}")


def _invoke(prefix: str) -> Tags:
    """Return the tags whose names have a prefix, such as `steptml:`. Nothing is compiled."""
    ends = f"</{prefix}parameter>", f"</{prefix}invoke>"
    return Tags(_PARAMETER, *ends, _AFTER_PARAMETER, _INVOKE, prefix=prefix)


def parameter_tags(prefix: str) -> Tags:
    """Return the tags of parameters whose names have a prefix, where the call's name stands elsewhere."""
    return _invoke(prefix)._replace(call_end="", call=None)


_SPACED = r"(?:\s|Ġ)*"
_NAMED_HEAD = re.compile(rf"<function{_SPACED}name={_QUOTED.format('name')}\s*>")
_NAMED_FUNCTION = Tags(
    re.compile(rf"<param{_SPACED}name={_QUOTED.format('key')}\s*>"),
    "</param>",
    "</function>",
    _goes_on(rf"<param{_SPACED}name="),
    _NAMED_HEAD,
)
_ELEMENT = r"<\|open\|>{}[^<>|]{{0,200}}?{}=\"(?P<{}>[^\"\n]{{1,200}})\"[^<>|]{{0,200}}<\|sep\|>"
_KIMI_K3_HEAD = re.compile(
    _ELEMENT.format("call", "tool", "name") + r"(?:\s*<\|open\|>json[^<>|]{0,200}<\|sep\|>)?"
)
_KIMI_K3 = Tags(
    re.compile(_ELEMENT.format("argument", "key", "key")),
    "<|close|>argument<|sep|>",
    "<|close|>call<|sep|>",
    _goes_on(r"<\|open\|>argument"),
    _KIMI_K3_HEAD,
    tag_end="<|sep|>",
)


def _writer(call: str, parameter: str, marks: tuple[str, ...], as_json: Callable[[str, Json], str]) -> Writer:
    """Return what writes calls; a call with a value that cannot be told from markup is written as JSON."""

    def write(calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
        texts: list[str] = []
        for name, args in calls:
            values = {key: written(key, value, schemas.get(name, {}), marks) for key, value in args.items()}
            body = "".join(parameter.format(key, value) for key, value in values.items())
            texts.append(as_json(name, args) if None in values.values() else call.format(name, body))
        return "\n".join(texts)

    return write


def _format(
    name: str,
    opener: str,
    head: re.Pattern[str],
    tags: Tags | None,
    *,
    reads: str = "Lost tags around the call; a parameter or a call that is not closed.",
    **row: Any,
) -> TextFormat:
    reader = partial(read, head=head, tags=tags)
    return TextFormat(name, opener, reader, reads=reads, head=head.pattern, **row)


def _pairs_format(name: str, call: str, key: str, value: str, **row: Any) -> TextFormat:
    """Return the format `<call>NAME<key>KEY</key><value>VALUE</value></call>`."""
    head = re.compile(rf"<{call}>\s*(?P<name>[^\s<>{{}}\[\]]{{1,128}})(?:\s*<tool_sep>)?")
    tags = Tags(
        re.compile(rf"<{key}>(?P<key>[^<>]{{0,200}})</{key}>\s*(?:<{value}>)?"),
        f"</{value}>",
        f"</{call}>",
        re.compile(rf"<{key}>|</?{call}>|\Z"),
        head,
        pairs=f"<{key}>",
    )
    example = f"<{call}>get_weather\n<{key}>city</{key}>\n<{value}>Paris</{value}>\n</{call}>"
    reads = "With line breaks or without; values that lost a tag; `NAME key=value`."
    reader = partial(_read_pairs, head=head, tags=tags)
    row["head"] = rf"{head.pattern}(?:\s*<|[ \t\r]*\n|\s+[\w.-]{{1,100}}=)|<{call}>{OBJECT}"
    return TextFormat(name, f"<{call}>", reader, example, reads=reads, **row)


_WRAPS = (
    *(f"<{prefix}function_calls>" for prefix in ("", "antml:", "atem:")),
    *("<minimax:tool_call>", "<tool_calls>", "<dots_function_call>"),
    *(
        f"<{bar}DSML{bar}{gap}{word}>"
        for bar in "｜|"
        for gap in ("", " ")
        for word in ("function_calls", "tool_calls", "calls", "toolcalls", "tool")
    ),
)

FORMATS: tuple[TextFormat, ...] = (
    _format(
        "qwen3-coder-xml",
        r"<function=",
        _FUNCTION_HEAD,
        _FUNCTION,
        example="<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n"
        "</tool_call>",
        reads="Without the tags around, with JSON instead of parameters, and parameters that are not closed.",
        before=("<tool_call>", "<seed:tool_call>"),
        after=("</function>", "</tool_call>", "</seed:tool_call>"),
        write=_writer(
            _FUNCTION_CALL,
            "<parameter={}>\n{}\n</parameter>\n",
            ("</parameter>", "</function>", "<parameter", "<![CDATA["),
            lambda name, args: _FUNCTION_CALL.format(name, compact(args) + "\n"),
        ),
    ),
    _format(
        "invoke",
        rf"<{_PREFIX}invoke\s",
        _INVOKE,
        None,
        example='<minimax:tool_call><invoke name="get_weather"><parameter name="city">Paris</parameter>'
        "</invoke></minimax:tool_call>",
        reads="Any prefix of the tags (`｜DSML｜`, `steptml:`, `atem:`), with or without tags around.",
        before=(*_WRAPS, "<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "function<｜tool_sep｜>"),
        after=(
            *(f"</{tag[1:]}" for tag in _WRAPS),
            *("<｜tool_call_end｜>", "<｜tool_calls_end｜>"),
        ),
    ),
    _format(
        "minicpm5-xml",
        rf"<function{_SPACED}name=",
        _NAMED_HEAD,
        _NAMED_FUNCTION,
        example='<function name="get_weather"><param name="city">Paris</param></function>',
        reads="Values in CDATA, and tags whose space a tokenizer lost.",
        before=("<function name=",),
        after=("</function>",),
    ),
    _format(
        "kimi-k3",
        r"<\|open\|>call\b",
        _KIMI_K3_HEAD,
        _KIMI_K3,
        example='<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>",
        reads="Arguments one by one, or one JSON object.",
        before=("<|open|>tools<|sep|>", '<|open|>call index="1"<|sep|><|close|>call<|sep|>'),
        after=(
            "<|close|>json<|sep|>",
            "<|close|>call<|sep|>",
            "<|close|>tools<|sep|>",
            "<|close|>message<|sep|>",
        ),
    ),
    _pairs_format(
        "glm-4.5",
        *("tool_call", "arg_key", "arg_value"),
        before=("<tool_calls>",),
        after=("</tool_call>", "</tool_calls>", "<|role_end|>"),
        write=_writer(
            "<tool_call>{}\n{}</tool_call>",
            "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n",
            ("arg_value>", "arg_key>", "tool_call>"),
            lambda name, args: f"<tool_call>\n{call_json(name, args)}\n</tool_call>",  # as Hermes
        ),
    ),
    _pairs_format(
        "longcat-pairs",
        *("longcat_tool_call", "longcat_arg_key", "longcat_arg_value"),
        after=("</longcat_tool_call>",),
    ),
)
