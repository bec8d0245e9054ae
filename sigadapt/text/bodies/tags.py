"""Calls as tags with one tag a parameter, or a pair of tags a key and a value.

    <function=NAME><parameter=KEY>VALUE</parameter></function>
        Qwen3-Coder, Seed, MiniMax M2, `<invoke>`, DSML, Step 3, Kimi K3
    <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>
        GLM 4.5 to 5, Ling 3, Laguna, Hunyuan V3, LongCat

One grammar with other tags (`Tags`). It looks like XML and is not: nothing is escaped, and a value runs to
the closing tag after which the next parameter or the call's end stands. Values are text, typed by the
declared schema (`written_values.value_of`); DSML and Kimi K3 say which values are text.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import Json, is_object, object_of
from sigadapt.text.bodies.objects import OBJECT, read_body
from sigadapt.text.contract import (
    MOST_PARAMETERS,
    CallSpan,
    CallsToWrite,
    Scan,
    TextCall,
    ToolTable,
    Writer,
    as_written,
)
from sigadapt.text.written_values import NO_TEXT, property_of, text_of_value, value_of

_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)
_FIRST_BREAK = re.compile(r"\A\r?\n")
_LAST_LINE = re.compile(r"\r?\n([ \t]*)\Z")
QUOTED = r"""(?P<q>["'])(?P<{}>[^\n<>]{{0,200}}?)(?P=q)"""
_KIND = re.compile(r"""\b(string|type)=["'](\w+)["']""")
_ATTRIBUTE = re.compile(r"\s+(?P<key>[\w.-]{1,100})=(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s<>]+)")
_PER_TAG = 64  # characters that a closing tag costs which closes nothing


class Tags(NamedTuple):
    """Tags around parameters. `{}` in a closing tag is the group `prefix` of the tag that opens the call."""

    call: re.Pattern[str] | None  # what opens a call, with the group `name`; None if that is elsewhere
    parameter: re.Pattern[str]  # what opens a parameter, with the group `key`
    parameter_end: str
    call_end: str  # empty where nothing closes a call
    goes_on: re.Pattern[str]  # after a parameter: the next one, a closing tag, the next call or the end
    breaks: bool = False  # whether a line break before the closing tag is always markup
    # What opens a key that has tags of its own, as GLM writes it. Line breaks then belong to the value, and
    # the call may lack its closing tag if every declared parameter is there.
    pairs: str = ""
    prefix: str | None = None  # what the group `prefix` of an opening tag must be, if tags have one
    tag_end: str = ">"

    @property
    def head(self) -> str:
        """What every call begins with."""
        pattern = self.call.pattern if self.call else ""
        if not self.pairs:
            return pattern
        return rf"{pattern}(?:\s*<|[ \t\r]*\n|\s+[\w.-]{{1,100}}=)|{re.escape(self._opener)}{OBJECT}"

    @property
    def _opener(self) -> str:
        return self.call_end.replace("/", "")

    def read(self, scan: Scan, start: int, tools: ToolTable, /) -> CallSpan | None:
        """Read one call. Models that write a key in tags of its own write JSON, too."""
        opening = self.call.match(scan.text, start) if self.call else None
        if opening is None:
            opener = self._opener
            is_json = self.pairs and scan.text.startswith(opener, start)
            return read_body(scan, start + len(opener), tools, stops=(opener,)) if is_json else None
        name = tools.name_of(opening["name"])
        return _call(scan, opening, name, tools, self.with_prefix(opening)) if name is not None else None

    def with_prefix(self, opening: re.Match[str]) -> "Tags":
        """Return the tags with the prefix of an opening one, such as `steptml:`."""
        prefix = opening.groupdict().get("prefix")
        if prefix is None:
            return self
        return self._replace(
            parameter_end=self.parameter_end.format(prefix),
            call_end=self.call_end.format(prefix),
            pairs=self.pairs.format(prefix),
            prefix=prefix,
        )

    def opens(self, tag: re.Match[str] | None) -> bool:
        """Return whether an opening tag is there, and one of these tags."""
        return tag is not None and (self.prefix is None or tag["prefix"] == self.prefix)


def tags(call: str, parameter: str, parameter_end: str, call_end: str, **more: Any) -> Tags:
    """Return the tags of one form, from patterns of what opens and from what closes."""
    goes_on = rf"{parameter}|<[/|]|<tool_call>|\Z"
    return Tags(re.compile(call), re.compile(parameter), parameter_end, call_end, re.compile(goes_on), **more)


def pairs(call: str, key: str, value: str, *, has_suffix: bool = False, after: str = "") -> Tags:
    """Return the tags of `<call>NAME<key>KEY</key><value>VALUE</value></call>`.

    `has_suffix`: a tokenizer adds one to the name of each tag, such as `<call:6f1e>`. `after`: a pattern of
    what must follow a tool's name.
    """
    call_tag, key_tag, value_tag = map(re.escape, (call, key, value))
    type_tag = key_tag.replace("key", "type")
    suffix = r"(?P<prefix>:\w{2,16})" if has_suffix else ""
    same = "(?P=prefix)" if has_suffix else ""
    mark = "{}" if has_suffix else ""
    typed = rf"(?:<{type_tag}{same}>\w*</{type_tag}{same}>\s*)?"
    return Tags(
        re.compile(
            rf"<{call_tag}{suffix}>\s*(?P<name>[^\s<>{{}}\[\]]{{1,128}})(?:\s*<tool_sep(?::\w{{2,16}})?>)?"
            + after
        ),
        re.compile(
            rf"<{key_tag}{suffix}>(?P<key>[^<>]{{0,200}})</{key_tag}{same}>\s*{typed}(?:<{value_tag}{same}>)?"
        ),
        f"</{value}{mark}>",
        f"</{call}{mark}>",
        re.compile(rf"<{key_tag}\b|</?{call_tag}\b|\Z"),
        pairs=f"<{key}{mark}>",
    )


def _call(scan: Scan, opening: re.Match[str], name: str, tools: ToolTable, tags: Tags) -> CallSpan | None:
    """Read the call of a declared tool behind its opening tag."""
    cursor = scan.gap(opening.end())
    if scan.text.startswith("{", cursor) and not tags.pairs:
        return _json_body(scan, cursor, name, tags)
    schema = tools.schema_of(name)
    args, cursor, is_closed = parameters_at(scan, opening.end(), schema, tags)
    end = _call_end(scan, cursor, tags)
    # A key that is none, or a parameter with another prefix: all of it belongs to the call.
    has_other_key = tags.pairs and is_closed is None and end < len(scan.text)
    if has_other_key or tags.parameter.match(scan.text, cursor):
        return _as_written(scan, name, opening.end(), end, tags)
    if is_closed is None or _is_cut_off(scan, cursor, args, schema, tags):
        return CallSpan([TextCall(name, CutOff(scan.text[opening.start() :].rstrip()))], len(scan.text))
    call = TextCall(name, args)
    if scan.text.startswith(tags.call_end, cursor):
        return CallSpan([call], cursor + len(tags.call_end))
    return _unclosed_call(scan, call, opening.end(), cursor, schema=schema, tags=tags)


def _unclosed_call(
    scan: Scan, call: TextCall, start: int, cursor: int, *, schema: Json, tags: Tags
) -> CallSpan | None:
    """Return a call that lacks its closing tag; None if nothing else closes it."""
    # Other markup closes it, or a line break that a tag without parameters ends in.
    begins_line = scan.text.startswith(("\n", "\r\n"), start)
    by_line = not tags.pairs and begins_line and not schema.get("required")
    by_markup = scan.text.startswith(("</", "<|", "<｜"), cursor) or tags.goes_on.match(scan.text, cursor)
    end = _call_end(scan, cursor, tags)
    if not (call.arguments or by_markup or by_line):
        is_closed = end < len(scan.text) and scan.text.startswith(tags.call_end, end)
        return _as_written(scan, call.name, scan.space(start), end, tags) if is_closed else None
    goes_on = scan.text.startswith(tags.call_end, end) or scan.text.startswith("<", cursor)
    if goes_on and not by_markup:  # text before its end, or an element, is a part of it
        return _as_written(scan, call.name, start, end, tags)
    return CallSpan([call], cursor)


def _as_written(scan: Scan, name: str, start: int, end: int, tags: Tags) -> CallSpan:
    """Return a call that holds more than parameters, with all of it as its arguments."""
    call = as_written(scan, name, start, end)
    if scan.text.startswith(tags.call_end, end):
        end += len(tags.call_end)
    return CallSpan([call], end)


def _call_end(scan: Scan, start: int, tags: Tags) -> int:
    """Return where a call ends at the latest: at its closing tag, at the next call, or with the text."""
    end = scan.earliest((tags.call_end,), start)
    following = scan.search(tags.call, start) if tags.call else None
    return min(end, following.start()) if following else end


def _is_cut_off(scan: Scan, position: int, args: Json, schema: Json, tags: Tags) -> bool:
    """Return whether the text ends in a call after its parameters."""
    if tags.call_end and scan.text.startswith(tags.call_end, position):
        return False
    is_partial_tag = scan.text.startswith("<", position) and scan.find(tags.tag_end, position) < 0
    if not is_partial_tag and position < len(scan.text):
        return False
    properties: Any = schema.get("properties")
    is_complete = bool(tags.pairs and args) and is_object(properties) and set(args) >= set(properties)
    return not (is_complete and scan.ends_at(position))


def _json_body(scan: Scan, start: int, name: str, tags: Tags) -> CallSpan | None:
    """Read arguments that are JSON where parameters would be."""
    try:
        _, end = scan.value_at(start)
    except ValueError:
        end = scan.earliest((tags.call_end,), start)
        call_end = min(end + len(tags.call_end), len(scan.text))
        return CallSpan([as_written(scan, name, start, end)], call_end)
    next_start = scan.space(end)
    if scan.text.startswith(tags.call_end, next_start):
        return CallSpan([TextCall(name, scan.text[start:end])], next_start + len(tags.call_end))
    stop = scan.find(tags.call_end, next_start)
    is_open = stop >= 0 and not scan.text.startswith("<", next_start)
    if is_open and tags.call is not None and not tags.call.search(scan.text, next_start, stop):
        return CallSpan([as_written(scan, name, start, stop)], stop + len(tags.call_end))
    return CallSpan([TextCall(name, scan.text[start:end])], end)


def parameters_at(scan: Scan, start: int, schema: Json, tags: Tags) -> tuple[Json, int, bool | None]:
    """Read parameters, and return them with where they end and whether the last was closed."""
    # The last value is None if the text ends in a parameter.
    raw: list[tuple[str, str, str]] = []
    cursor = start
    while tags.pairs and (attribute := _ATTRIBUTE.match(scan.text, cursor)):  # `NAME key=value`
        raw.append((attribute["key"], attribute["value"].strip("\"'"), ""))
        cursor = attribute.end()
    cursor = scan.gap(cursor)
    is_closed = True
    while (opener := tags.parameter.match(scan.text, cursor)) and tags.opens(opener):
        end, tag_end = _value_end(scan, opener.end(), schema, tags)
        if end is None or len(raw) >= MOST_PARAMETERS:
            return {}, len(scan.text), None
        key = opener["key"].strip()
        value = scan.text[opener.end() : end]
        if _is_faulty(key, value, tags, is_closed=tag_end > end):
            break
        raw.append((key, value, opener[0]))
        cursor = scan.gap(tag_end)
        is_closed = tag_end > end
    pairs = list[tuple[str, Any]]()
    for key, text, opening_tag in raw:
        value_schema = property_of(schema, key, schema)
        pairs.append((key, _value(text, opening_tag, value_schema, schema, tags)))
    args = _without_wrapper(object_of(pairs), schema)
    if tags.pairs and scan.text.startswith(tags.pairs, cursor):  # a key without its value
        return args, cursor, None
    return args, cursor, is_closed


def _is_faulty(key: str, value: str, tags: Tags, *, is_closed: bool) -> bool:
    """Return whether a key has no value, or two."""
    if not is_closed:
        return not value.strip() or value.rstrip().endswith(f"</{key}>")
    if not tags.pairs or tags.parameter_end not in value or (tags.call and tags.call.search(value)):
        return False
    return tags.parameter_end.replace("/", "") in value


def _without_wrapper(args: Json, schema: Json) -> Json:
    """Return the object in `arguments` where the schema declares its members, and no such wrapper."""
    members = args.get("arguments")
    if len(args) != 1 or not is_object(members) or not members:
        return args
    if property_of(schema, "arguments", schema) is not None:
        return args
    are_declared = all(property_of(schema, key, schema) is not None for key in members)
    return members if are_declared else args


def _value_end(scan: Scan, start: int, schema: Json, tags: Tags) -> tuple[int | None, int]:
    """Return where a value ends, and where its closing tag does; None if the text ends in it."""
    first = scan.find(tags.parameter_end, start)
    call_end = scan.find(tags.call_end, start) if tags.call_end else -1
    nested_call = scan.search(tags.call, start) if tags.call else None
    nested_start = len(scan.text)
    if nested_call and tags.opens(nested_call):
        nested_start = nested_call.start()
    if nested_start < first and not 0 <= call_end < nested_start:
        return _nested_end(scan, start, first, tags)
    if first < 0:
        limit = len(scan.text) if call_end < 0 else call_end
        stop = _next_parameter(scan, start, limit, schema, tags)
        if stop is not None:
            return stop, stop
        return (call_end, call_end) if call_end >= 0 else (None, 0)
    if 0 <= call_end < first and (tags.call is None or nested_start < first):
        return call_end, call_end
    end, tag_end = _closing_tag(scan, first, tags)
    stop = _next_parameter(scan, start, end, schema, tags)
    return (stop, stop) if stop is not None else (end, tag_end)


def _nested_end(scan: Scan, start: int, first: int, tags: Tags) -> tuple[int | None, int]:
    """Return where a value ends that holds such a call: where as many parameters close as open."""
    closer_start = first
    opens = 0
    counted_to = start
    for closes in itertools.count():
        opens += sum(1 for _ in tags.parameter.finditer(scan.text, counted_to, max(closer_start, counted_to)))
        if closer_start < 0 or opens <= closes:
            break
        counted_to = closer_start
        closer_start = scan.find(tags.parameter_end, closer_start + 1)
        scan.charge(_PER_TAG)
    return (closer_start, closer_start + len(tags.parameter_end)) if closer_start >= 0 else (None, 0)


def _closing_tag(scan: Scan, first: int, tags: Tags) -> tuple[int, int]:
    """Return where the closing tag begins after which markup goes on, and where it ends."""
    # One that is there twice closes once. Where markup goes on after none, the first closes.
    size = len(tags.parameter_end)
    closer_start = first
    while closer_start >= 0:
        last = closer_start
        while scan.text.startswith(tags.parameter_end, next_start := scan.space(last + size)):
            last = next_start
        if tags.goes_on.match(scan.text, scan.gap(next_start)):
            return closer_start, last + size
        if last > closer_start:  # its double is markup that goes on
            return closer_start, scan.text.rindex(tags.parameter_end, closer_start, last) + size
        scan.charge(_PER_TAG)
        closer_start = scan.find(tags.parameter_end, last + 1)
    return first, first + size


def _next_parameter(scan: Scan, start: int, end: int, schema: Json, tags: Tags) -> int | None:
    """Return where the next parameter, a declared one, opens before a value was closed."""
    for opener in tags.parameter.finditer(scan.text, start, end):
        properties: Any = schema.get("properties")
        if tags.opens(opener) and (not properties or opener["key"].strip() in properties):
            return opener.start()
    return None


def _without_indent(text: str, indent: str) -> str:
    """Return a value without the indentation of its closing tag, if all of it has that."""
    lines = text.split("\n")
    if not all(line.startswith(indent) or not line.strip() for line in lines):
        return text
    return "\n".join(line.removeprefix(indent) for line in lines)


def _value(raw: str, opener: str, schema: Any, root: Json, tags: Tags) -> Any:
    if tags.pairs:
        return value_of(raw, schema, root)
    text = _FIRST_BREAK.sub("", raw)  # the line break on each side belongs to the markup
    last_line = _LAST_LINE.search(text) if tags.breaks or len(text) < len(raw) else None
    if last_line is not None:
        text = _without_indent(text[: last_line.start()], last_line[1])
    cdata = _CDATA.match(text)
    text = cdata[1] if cdata else text
    flag = _KIND.search(opener)
    if flag is None or flag[2] == "text" or schema is not None:  # the schema corrects a wrong flag
        return value_of(text, schema, root)
    is_text = flag[2] == ("true" if flag[0].startswith("string") else "string")
    return text if is_text else value_of(text, NO_TEXT, root)


_PREFIX = r"(?:[\w.]{1,32}:|[｜|](?:DSML|GCML)[｜|] ?)?"
INVOKE_OPENER = rf"<{_PREFIX}invoke\s"
INVOKE = tags(
    rf"<(?P<prefix>{_PREFIX})invoke\s[^<>]{{0,200}}?name={QUOTED.format('name')}[^<>]{{0,200}}>",
    rf"<(?P<prefix>{_PREFIX})parameter\s(?:[^<>]{{0,200}}?\s)??name={QUOTED.format('key')}[^<>]{{0,200}}>",
    "</{}parameter>",
    "</{}invoke>",
)
"""Claude's tags, which many write, each with a prefix of its own."""


def parameter_tags(opening: re.Match[str]) -> Tags:
    """Return the tags of parameters with the prefix of an opening tag, where the call's name is elsewhere."""
    return INVOKE.with_prefix(opening)._replace(call_end="", call=None)


def writer_of_tags(
    call: str, parameter: str, marks: tuple[str, ...], as_json: Callable[[str, Json], str]
) -> Writer:
    """Return what writes calls; a call with a value that cannot be told from markup is written as JSON."""

    def as_tags(name: str, args: Json, schema: Json) -> str | None:
        body = ""
        for key, value in args.items():
            text = text_of_value(key, value, schema, marks)
            if text is None:
                return None
            body += parameter.format(key, text)
        return call.format(name, body)

    def write(calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
        texts = list[str]()
        for name, args in calls:
            text = as_tags(name, args, schemas.get(name, {}))
            texts.append(as_json(name, args) if text is None else text)
        return "\n".join(texts)

    return write
