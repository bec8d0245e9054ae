r"""A model's own `response_template`, as transformers reads it: a format that comes with the model.

    {"start_anchor": "<bot>", "fields": {
        "tool_calls": {"open_pattern": "<use (?P<name>\\w+)>", "close": "</use>", "content": "json",
                       "transform": {"function": {"name": "{name}", "arguments": "{content}"}}},
        "reasoning_content": {"open": "<think>", "close": "</think>"},
        "content": {"close_pattern": "\\s*<stop>"}}}

The template says what opens and closes the calls, how they are written between, and where a call's name and
its arguments are then. Its patterns are a stranger's: a repetition inside of a repetition is refused, and a
region has a bounded length (bounded).
https://huggingface.co/docs/transformers/main/chat_response_parsing
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, cut, decode, is_array, is_object, json_like, object_of
from sigadapt.schemas.arguments import CutOff, Flaw, UnreadCall
from sigadapt.text.bodies.objects import LABELS
from sigadapt.text.bodies.pythonic import calls_at
from sigadapt.text.contract import Body, CallSpan, Scan, TextCall, TextFormat, ToolTable
from sigadapt.text.written_values import property_of, value_of

_KEYS = {"version", "defaults", "start_anchor", "start_anchor_pattern", "fields"}
_FIELD_KEYS = {
    *("open", "open_pattern", "close", "close_pattern", "content", "content_args"),
    *("repeats", "join", "optional", "transform", "transform_each"),
}
# By parser: the arguments that it takes here.
_PARSERS: dict[str, set[str]] = {
    "text": {"strip"},
    "json": {"unquoted_keys", "string_delims"},
    "xml-inline": {"tag_pattern"},
    "kv-lines": {"line_sep", "kv_sep"},
    "python-call-list": set(),
}
# The signs of a regular expression: escaped ones, classes, groups and repetitions.
_SIGN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\]){0,200}\]|[()]|[*+]|\{\d*(?:,\d*)?\}", re.DOTALL)
_LONGEST_REGION = 200_000
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_][\w-]*)(?=\s*:)")
_PLACE = re.compile(r"\{(\w+(?:\.\w+)*)\}")


class ResponseTemplate:
    """A model's `response_template`: what `tokenizer_config.json` has under this key, as a format.

    Args:
        template: the template, as decoded JSON.

    Raises:
        InvalidOption: for a template that transformers refuses, and for what isn't read here: parsers of
            calls other than `text`, `json`, `xml-inline`, `kv-lines` and `python-call-list`, further settings
            of these, and patterns with a repetition inside of a repetition.

    Example:
        >>> from sigadapt.response import ResponseTemplate, choice_from_text
        >>> function = {"function": "{content}"}
        >>> calls = {"open": "<do>", "close": "</do>", "content": "json", "transform": function}
        >>> template = ResponseTemplate({"start_anchor": "<bot>", "fields": {"tool_calls": calls}})
        >>> text = '<do>{"name": "now", "arguments": {}}</do>'
        >>> choice_from_text(text, [{"name": "now"}], formats=[template]).tool_calls
        ToolCalls([now()])
    """

    def __init__(self, template: Mapping[str, Any]) -> None:
        fields = _checked_fields(template)
        calls = fields.get("tool_calls", {})
        self._thinking = fields.get("reasoning_content") or fields.get("thinking") or {}
        self._content = fields.get("content", {})
        opener = _pattern(calls, "open") or r"(?!)"
        self.row = TextFormat("response-template", opener, Body(opener, _Region(opener, calls).read), "", "")

    @property
    def marks(self) -> list[str]:
        """Patterns of all that begins or ends what isn't said to the user."""
        fields = (self._thinking, self._content)
        return [self.row.opener, *(_pattern(field, edge) for field in fields for edge in ("open", "close"))]

    def parts(self, text: str, *, starts_in_reasoning: bool) -> tuple[str | None, str]:
        """Return the thinking that begins a text, and the rest without the marks around an answer."""
        opener = re.compile(rf"\s*(?:{_pattern(self._thinking, 'open') or '(?!)'})", re.DOTALL).match(text)
        thinking = None
        if opener or starts_in_reasoning:
            start = opener.end() if opener else 0
            close = re.compile(_pattern(self._thinking, "close") or r"\Z", re.DOTALL).search(text, start)
            end = close.start() if close else len(text)
            thinking = text[start:end].strip() or None
            text = text[close.end() :] if close else ""
        for name, place in (("open", r"\A(?:{})"), ("close", r"(?:{})\s*\Z")):
            if mark := _pattern(self._content, name):
                text = re.sub(place.format(mark), "", text, flags=re.DOTALL)
        return thinking, text


def _refuse(reason: str) -> InvalidOption:
    fix = "Pass the `response_template` of the model's tokenizer_config.json as it is."
    return InvalidOption(f"the response template is not read: {reason}", field="formats", fix=fix)


def _checked_fields(template: Any) -> dict[str, Json]:
    """Return the fields of a template; InvalidOption if it isn't one that is read."""
    if not is_object(template) or not template.keys() <= _KEYS:
        raise _refuse(f"it is an object with the keys {', '.join(sorted(_KEYS))}")
    if template.get("version", 1) != 1:
        raise _refuse(f"version {template['version']!r} is unknown")
    if "start_anchor" not in template and "start_anchor_pattern" not in template:
        raise _refuse("it has no start anchor")
    fields: Any = template.get("fields")
    if not is_object(fields) or not fields:
        raise _refuse("it has no fields")
    for name, field in fields.items():
        _check_field(name, field)
    if sum(not _pattern(field, "open") for field in fields.values()) > 1:
        raise _refuse("more than one field has no opener")
    return fields


def _check_field(name: str, field: Any) -> None:
    if not is_object(field) or not field.keys() <= _FIELD_KEYS:
        raise _refuse(f"the field {name!r} has other keys than {', '.join(sorted(_FIELD_KEYS))}")
    for edge in ("open", "close"):
        texts = field.get(edge, "-")
        if edge in field and f"{edge}_pattern" in field:
            raise _refuse(f"the field {name!r} has both {edge} and {edge}_pattern")
        options = [texts] if isinstance(texts, str) else texts
        if not (is_array(options) and options and all(text and isinstance(text, str) for text in options)):
            raise _refuse(f"{edge} of the field {name!r} is empty, or no text")
        _check_pattern(_pattern(field, edge))
    parser = field.get("content", "text")
    args: Any = field.get("content_args", {})
    if not isinstance(parser, str) or not is_object(args):
        raise _refuse(f"the content of the field {name!r} is no text with an object of arguments")
    if name == "tool_calls" and (parser not in _PARSERS or not args.keys() <= _PARSERS[parser]):
        raise _refuse(f"its calls need the parser {parser!r} with {list(args)}")
    _check_pattern(args.get("tag_pattern", ""))


def _check_pattern(pattern: Any) -> None:
    try:
        re.compile(pattern, re.DOTALL)
    except (re.error, TypeError) as error:
        raise _refuse(f"{pattern!r} is no regular expression: {error}") from None
    if _repeats_repetition(pattern):
        raise _refuse(f"{pattern!r} has a repetition inside of a repetition")


def _repeats_repetition(pattern: str) -> bool:
    """Return whether a pattern repeats a group that holds a repetition."""
    levels = [False]  # by open group: whether it holds one
    has_closed_one = False
    for sign in _SIGN.findall(pattern):
        if sign == ")" and len(levels) > 1:
            has_closed_one = levels.pop()
            levels[-1] = levels[-1] or has_closed_one
            continue
        if sign == "(":
            levels.append(False)
        elif sign[0] in "*+{":
            if has_closed_one:
                return True
            levels[-1] = True
        has_closed_one = False
    return False


def _pattern(field: Json, edge: str) -> str:
    """Return a delimiter as a pattern; empty if the field has none."""
    texts: Any = field.get(edge)
    if texts is None:
        return str(field.get(f"{edge}_pattern", "")).removeprefix(r"\s*")
    options = [texts] if isinstance(texts, str) else sorted(texts, key=len, reverse=True)
    return "|".join(map(re.escape, options))


class _Region:
    """The body of calls between the delimiters of a template."""

    def __init__(self, head: str, field: Json) -> None:
        self.head = head
        self.field = field

    def read(self, scan: Scan, start: int, tools: ToolTable) -> CallSpan | None:
        """Read what stands in the region that opens at a position."""
        opener = re.compile(self.head, re.DOTALL).match(scan.text, start)
        if opener is None:
            return None
        close = scan.search(re.compile(_pattern(self.field, "close") or r"\Z", re.DOTALL), opener.end())
        end = close.end() if close else len(scan.text)
        raw = scan.text[opener.end() : close.start() if close else end]
        names = {key: value for key, value in opener.groupdict().items() if value is not None}
        name = tools.name_of(names.get("name"))
        if "name" in names and name is None:
            return None
        scan.charge(len(raw))
        if close is None or len(raw) > _LONGEST_REGION:
            arguments = CutOff(raw) if name else _unread_call(scan.text[start:])
            return CallSpan([TextCall(name, arguments)], len(scan.text))
        try:
            calls = self._calls(raw, names, tools)
        except ValueError:
            return CallSpan([TextCall(name, raw if name else _unread_call(scan.text[start:end]))], end)
        if not calls or any(call.name is None for call in calls):
            return None
        return CallSpan(calls, end)

    def _calls(self, raw: str, names: Json, tools: ToolTable) -> list[TextCall]:
        """Return the calls of a region's text; ValueError if it isn't what its parser reads."""
        content = self._content(raw)
        each = bool(self.field.get("transform_each")) and is_array(content)
        calls = list[TextCall]()
        for item in content if each else [content]:
            scope = {**names, "content": item, **(item if each and is_object(item) else {})}
            transform = self.field.get("transform", "{content}")
            message: Any = _fill_in(transform, scope)
            for entry in message if is_array(message) else [message]:
                call: Json = entry if is_object(entry) else {}
                function = call.get("function", call)
                body: Json = function if is_object(function) else {}
                calls.append(self._call(body, call.get("id"), tools))
        return calls

    def _call(self, body: Json, call_id: Any, tools: ToolTable) -> TextCall:
        name = tools.name_of(body.get("name"))
        arguments: Any = body.get("arguments", body.get("parameters"))
        if body.keys() - {"name", "arguments", "parameters", "type", *LABELS}:
            arguments = _unread_call(json_like(body))
        if name and is_object(arguments) and self.field.get("content") in ("xml-inline", "kv-lines"):
            schema = tools.schema_of(name)
            pairs = getattr(arguments, "pairs", None) or list(arguments.items())
            arguments = object_of(
                [(key, value_of(text, property_of(schema, key, schema), schema)) for key, text in pairs]
            )
        return TextCall(name, arguments, call_id if isinstance(call_id, str) else None)

    def _content(self, raw: str) -> Any:
        args: Json = self.field.get("content_args", {})
        parser = self.field.get("content", "text")
        if parser == "json":
            return decode(_as_json(raw, args))
        if parser == "xml-inline":
            tags = re.compile(args["tag_pattern"], re.DOTALL).finditer(raw)
            return object_of([(tag["key"], tag["value"]) for tag in tags])
        if parser == "kv-lines":
            mark = args.get("kv_sep", ":")
            lines = (line.partition(mark) for line in raw.split(args.get("line_sep", "\n")) if mark in line)
            return object_of([(key.strip(), value.strip()) for key, _, value in lines])
        if parser == "python-call-list":
            calls = calls_at(Scan(raw.strip()), 0, ToolTable({}, undeclared=True))
            if calls is None:
                raise ValueError("no calls")
            return [{"name": call.name, "arguments": call.arguments} for call in calls[0]]
        return raw.strip()


def _unread_call(raw: str) -> UnreadCall:
    return UnreadCall(
        raw, Flaw("malformed_call", f"no call can be read by the response template: {cut(raw)}")
    )


def _as_json(raw: str, args: Json) -> str:
    """Return JSON in which keys have no quotes, and strings have marks of their own, as JSON."""
    marks: list[tuple[str, str]] = args.get("string_delims") or []
    either = "|".join(rf"{re.escape(begin)}(.*?){re.escape(end)}" for begin, end in marks) or r"(?!)"
    pieces = list[str]()
    cursor = 0
    for string in re.finditer(either, raw, re.DOTALL):
        pieces += [_with_keys(raw[cursor : string.start()], args), json.dumps(string[string.lastindex or 0])]
        cursor = string.end()
    return "".join((*pieces, _with_keys(raw[cursor:], args)))


def _with_keys(text: str, args: Json) -> str:
    return _BARE_KEY.sub(r'\1"\2"', text) if args.get("unquoted_keys") else text


def _fill_in(transform: Any, scope: Json) -> Any:
    """Return a transform with what its places stand for."""
    if is_object(transform):
        return {key: _fill_in(value, scope) for key, value in transform.items()}
    if is_array(transform):
        return [_fill_in(value, scope) for value in transform]
    place = _PLACE.fullmatch(transform) if isinstance(transform, str) else None
    if place is None:
        return transform
    value: Any = scope
    for key in place[1].split("."):
        value = value.get(key) if is_object(value) else None
    return value
