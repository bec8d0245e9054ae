"""Calls as tags with one tag a parameter, or a pair of tags a key and a value.

    <function=NAME><parameter=KEY>VALUE</parameter></function>
        Qwen3-Coder, Seed, MiniMax M2, `<invoke>`, DSML, Step 3, Kimi K3
    <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>
        GLM 4.5 to 5, Ling 3, Laguna, Hunyuan V3, LongCat

One grammar with other tags (`Tags`). It looks like XML and is not: nothing is escaped, and a value runs to
the closing tag after which the next parameter or the call's end stands. Values are text, typed by the
declared schema (`written_values.value_of`); DSML, Kimi K3 and K2 Horizon say which are text.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sigadapt.json_values import Json, is_object, object_of
from sigadapt.schemas.arguments import CutOff
from sigadapt.text.bodies.objects import OBJECT, ObjectReader
from sigadapt.text.contract import (
    MOST_PARAMETERS,
    Body,
    CallSpan,
    CallsToWrite,
    Scan,
    TextCall,
    ToolTable,
    Writer,
    as_written,
)
from sigadapt.text.written_values import property_of, text_of_value, value_of

_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)
_FIRST_BREAK = re.compile(r"\A\r?\n")
_LAST_LINE = re.compile(r"\r?\n([ \t]*)\Z")
QUOTED = r"""(?P<q>["'])(?P<{}>[^\n<>]{{0,200}}?)(?P=q)"""
_KIND = re.compile(r"(?:\b(?:string|type)=[\"']|_type\b[^<>]*>)(\w+)")
_ATTRIBUTE = re.compile(r"\s+(?P<key>[\w.-]{1,100})=(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s<>]+)")
_PER_TAG = 64  # characters that a closing tag costs which closes nothing


class Tags(NamedTuple):
    """Tags around parameters. `{}` in a closing tag is the group `prefix` of the tag that opens the call."""

    call: re.Pattern[str]  # what opens a call, with the group `name`
    parameter: re.Pattern[str]  # what opens a parameter, with the group `key`
    parameter_end: str
    call_end: str  # empty where nothing closes a call
    goes_on: re.Pattern[str]  # after a parameter: the next one, a closing tag, the next call or the end
    breaks: bool = False  # whether a line break before the closing tag is always markup
    # What opens a key that has tags of its own, as GLM writes it. Line breaks then belong to the value, and
    # the call may lack its closing tag if every declared parameter is there.
    pairs: str = ""
    tag_end: str = ">"

    @property
    def body(self) -> Body:
        """The body of a call in these tags."""
        if not self.pairs:
            return Body(self.call.pattern, self.read)
        head = rf"{self.call.pattern}(?:\s*<|[ \t\r]*\n|\s+[\w.-]{{1,100}}=)"
        return Body(rf"{head}|{re.escape(self.call_end.replace('/', ''))}{OBJECT}", self.read)

    def read(self, scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
        """Read one call. Models that write a key in tags of its own write JSON, too."""
        opening = self.call.match(scan.text, start)
        if opening is not None:
            name = tools.name_of(opening["name"])
            return TagReader(scan, self, opening, tools.schema_of(name)).call(name) if name else None
        opener = self.call_end.replace("/", "")
        if not self.pairs or not scan.text.startswith(opener, start):
            return None
        return ObjectReader(scan, tools).sequence(start + len(opener), (opener,))


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


class TagReader:
    """Reads what one opening tag begins: a call, or parameters alone. All its tags have the same prefix."""

    def __init__(self, scan: Scan, tags: Tags, opening: re.Match[str], schema: Json) -> None:
        self.scan = scan
        self.text = scan.text
        self.tags = tags
        self.opening = opening
        self.schema = schema
        self.prefix = opening.groupdict().get("prefix")
        mark = self.prefix or ""
        self.parameter_end = tags.parameter_end.replace("{}", mark)
        self.call_end = tags.call_end.replace("{}", mark)
        self.pairs = tags.pairs.replace("{}", mark)

    def call(self, name: str) -> CallSpan | None:
        """Read the call of a declared tool."""
        start = self.opening.end()
        cursor = self.scan.gap(start)
        if self.text.startswith("{", cursor) and not self.pairs:
            return self._json_arguments(name, cursor)
        args, cursor = self.parameters(start)
        end = self._call_end(cursor)
        has_other_key = args is None and end < len(self.text)
        if has_other_key or self.tags.parameter.match(self.text, cursor):
            return self._as_written(name, start, end)  # a key without a value, or with another prefix
        if self.text.startswith(self.call_end, cursor) and args is not None:
            return CallSpan([TextCall(name, args)], cursor + len(self.call_end))
        if args is None or self._is_cut_off(cursor, args):
            raw = self.text[self.opening.start() :].rstrip()
            return CallSpan([TextCall(name, CutOff(raw))], len(self.text))
        return self._unclosed_call(name, args, cursor, end)

    def _unclosed_call(self, name: str, args: Json, cursor: int, end: int) -> CallSpan | None:
        """Return a call that lacks its closing tag; None if nothing else closes it."""
        # Other markup closes it, or a line break that a tag without parameters ends in.
        start = self.opening.end()
        is_closed = self.text.startswith(self.call_end, end)
        begins_line = self.text.startswith(("\n", "\r\n"), start)
        by_line = begins_line and not self.pairs and not self.schema.get("required")
        begins_tag = self.text.startswith(("</", "<|", "<｜"), cursor)
        by_markup = begins_tag or self.tags.goes_on.match(self.text, cursor)
        if not (args or by_markup or by_line):
            return self._as_written(name, self.scan.space(start), end) if is_closed else None
        # Text before its end, or an element, is a part of it.
        if not by_markup and (is_closed or self.text.startswith("<", cursor)):
            return self._as_written(name, start, end)
        return CallSpan([TextCall(name, args)], cursor)

    def parameters(self, start: int) -> tuple[Json | None, int]:
        """Read parameters, and return them with where they end; None if one has no value, or no end."""
        raw: list[tuple[str, str, str]] = []
        cursor = start
        while self.pairs and (attribute := _ATTRIBUTE.match(self.text, cursor)):  # `NAME key=value`
            raw.append((attribute["key"], attribute["value"].strip("\"'"), ""))
            cursor = attribute.end()
        cursor = self.scan.gap(cursor)
        while (opener := self.tags.parameter.match(self.text, cursor)) and self._is_own(opener):
            end, tag_end = self._value_end(opener.end())
            if end is None or len(raw) >= MOST_PARAMETERS:
                return None, len(self.text)
            key = opener["key"].strip()
            value = self.text[opener.end() : end]
            if self._is_faulty(key, value, is_closed=tag_end > end):
                break
            raw.append((key, value, opener[0]))
            cursor = self.scan.gap(tag_end)
        if self.pairs and self.text.startswith(self.pairs, cursor):  # a key without its value
            return None, cursor
        pairs = [(key, self._value(text, tag, self._schema_of(key))) for key, text, tag in raw]
        args = object_of(pairs)
        members = args.get("arguments")
        if len(args) != 1 or not is_object(members) or self._schema_of("arguments") is not None:
            return args, cursor
        # Some models write all arguments as one, though the schema declares no such wrapper.
        if members and all(self._schema_of(key) is not None for key in members):
            args = members
        return args, cursor

    def _schema_of(self, key: str) -> Any:
        return property_of(self.schema, key, self.schema)

    def _is_own(self, tag: re.Match[str]) -> bool:
        return self.prefix is None or tag["prefix"] == self.prefix

    def _as_written(self, name: str, start: int, end: int) -> CallSpan:
        """Return a call that holds more than parameters, with all of it as its arguments."""
        call = as_written(self.scan, name, start, end)
        if self.text.startswith(self.call_end, end):
            end += len(self.call_end)
        return CallSpan([call], end)

    def _call_end(self, start: int) -> int:
        """Return where a call ends at the latest: at its closing tag, at the next call, or with the text."""
        end = self.scan.earliest((self.call_end,), start)
        following = self.scan.search(self.tags.call, start)
        return min(end, following.start()) if following else end

    def _is_cut_off(self, position: int, args: Json) -> bool:
        """Return whether the text ends in a call after its parameters."""
        ends_in_tag = self.text.startswith("<", position) and self.scan.find(self.tags.tag_end, position) < 0
        if not ends_in_tag and position < len(self.text):
            return False
        properties: Any = self.schema.get("properties")
        is_complete = bool(self.pairs and args) and is_object(properties) and set(args) >= set(properties)
        return not (is_complete and self.scan.ends_at(position))

    def _json_arguments(self, name: str, start: int) -> CallSpan:
        """Read arguments that are JSON where parameters would be."""
        try:
            _, end = self.scan.value_at(start)
        except ValueError:
            return self._as_written(name, start, self.scan.earliest((self.call_end,), start))
        next_start = self.scan.space(end)
        stop = self.scan.find(self.call_end, next_start)
        arguments = self.text[start:end]
        if stop == next_start:
            return CallSpan([TextCall(name, arguments)], stop + len(self.call_end))
        is_text = stop >= 0 and not self.text.startswith("<", next_start)
        if is_text and not self.tags.call.search(self.text, next_start, stop):
            return self._as_written(name, start, stop)
        return CallSpan([TextCall(name, arguments)], end)

    def _is_faulty(self, key: str, value: str, *, is_closed: bool) -> bool:
        """Return whether a key has no value, or two."""
        if not is_closed:
            return not value.strip() or value.rstrip().endswith(f"</{key}>")
        has_end = bool(self.pairs) and self.parameter_end in value
        return has_end and self.parameter_end.replace("/", "") in value and not self.tags.call.search(value)

    def _value_end(self, start: int) -> tuple[int | None, int]:
        """Return where a value ends, and where its closing tag does; None if the text ends in it."""
        first = self.scan.find(self.parameter_end, start)
        call_end = self.scan.find(self.call_end, start) if self.call_end else -1
        nested = self.scan.search(self.tags.call, start)
        holds_call = nested is not None and self._is_own(nested) and nested.start() < first
        if nested and holds_call and not 0 <= call_end < nested.start():
            return self._nested_end(start, first)
        if first < 0:
            end = tag_end = call_end if call_end >= 0 else len(self.text)
        elif holds_call and 0 <= call_end < first:
            return call_end, call_end
        else:
            end, tag_end = self._closing_tag(first)
        properties: Any = self.schema.get("properties")
        for opener in self.tags.parameter.finditer(self.text, start, end):  # the next one, if it is declared
            if self._is_own(opener) and (not properties or opener["key"].strip() in properties):
                return opener.start(), opener.start()
        return (end, tag_end) if first >= 0 or call_end >= 0 else (None, 0)

    def _nested_end(self, start: int, closer: int) -> tuple[int | None, int]:
        """Return where a value ends that holds such a call: where as many parameters close as open."""
        opens = 0
        closes = 0
        while closer >= 0:
            opens += sum(1 for _ in self.tags.parameter.finditer(self.text, start, closer))
            if opens <= closes:
                return closer, closer + len(self.parameter_end)
            closes += 1
            start = closer
            closer = self.scan.find(self.parameter_end, closer + 1)
            self.scan.charge(_PER_TAG)
        return None, 0

    def _closing_tag(self, first: int) -> tuple[int, int]:
        """Return where the closing tag begins after which markup goes on, and where it ends."""
        # One that is there twice closes once. Where markup goes on after none, the first closes.
        tag = self.parameter_end
        closer = first
        while closer >= 0:
            last = closer
            while self.text.startswith(tag, next_start := self.scan.space(last + len(tag))):
                last = next_start
            if self.tags.goes_on.match(self.text, self.scan.gap(next_start)):
                return closer, last + len(tag)
            if last > closer:  # its double is markup that goes on
                return closer, self.text.rindex(tag, closer, last) + len(tag)
            self.scan.charge(_PER_TAG)
            closer = self.scan.find(tag, last + 1)
        return first, first + len(tag)

    def _value(self, raw: str, tag: str, schema: Any) -> Any:
        """Return what the text of a parameter is by its schema, and by what its opening tag says."""
        kind = _KIND.search(tag)
        is_text = None if kind is None or kind[1] == "text" else kind[1] in ("true", "string")
        if self.pairs:
            return value_of(raw, schema, self.schema, is_text=is_text)
        text = _FIRST_BREAK.sub("", raw)  # the line break on each side belongs to the markup
        last_line = _LAST_LINE.search(text) if self.tags.breaks or len(text) < len(raw) else None
        if last_line is not None:
            text = text[: last_line.start()]
            lines = text.split("\n")
            indent = last_line[1]  # of the closing tag
            if all(line.startswith(indent) or not line.strip() for line in lines):
                text = "\n".join(line.removeprefix(indent) for line in lines)
        cdata = _CDATA.match(text)
        return value_of(cdata[1] if cdata else text, schema, self.schema, is_text=is_text)


_PREFIX = r"(?:[\w.]{1,32}:|[｜|](?:DSML|GCML)[｜|] ?)?"
INVOKE_OPENER = rf"<{_PREFIX}invoke\s"
INVOKE = tags(
    rf"<(?P<prefix>{_PREFIX})invoke\s[^<>]{{0,200}}?name={QUOTED.format('name')}[^<>]{{0,200}}>",
    rf"<(?P<prefix>{_PREFIX})parameter\s(?:[^<>]{{0,200}}?\s)??name={QUOTED.format('key')}[^<>]{{0,200}}>",
    "</{}parameter>",
    "</{}invoke>",
)
"""Claude's tags, which many write, each with a prefix of its own."""

PARAMETERS = INVOKE._replace(call=re.compile(r"(?!)"), call_end="")
"""Such parameters alone, where the call's name is elsewhere and nothing else closes it."""


def writer_of_tags(
    call: str, parameter: str, marks: tuple[str, ...], as_json: Callable[[str, Json], str]
) -> Writer:
    """Return what writes calls; a call with a value that cannot be told from markup is written as JSON."""

    def write(calls: CallsToWrite, schemas: Mapping[str, Json]) -> str:
        texts = list[str]()
        for name, args in calls:
            schema = schemas.get(name, {})
            values = [(key, text_of_value(key, value, schema, marks)) for key, value in args.items()]
            if any(text is None for _, text in values):
                texts.append(as_json(name, args))
            else:
                texts.append(call.format(name, "".join(parameter.format(*each) for each in values)))
        return "\n".join(texts)

    return write
