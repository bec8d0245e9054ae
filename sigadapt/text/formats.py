"""The table of text formats: calls that models write into their text, each a row over one of the bodies.

A format is chosen by its surface and never by the name of a model, because gateways and users rename models
and any server may show any of these. A new form of a known kind is a row here, and nothing else.
"""

import re
from collections.abc import Iterable
from typing import Any

from sigadapt.errors import InvalidOption
from sigadapt.json_values import closest, compact
from sigadapt.text.bodies import tags
from sigadapt.text.bodies.named import BARE_NAME, BRACKETED, HARMONY, HARMONY_OPENER, TO_TOOL, name_and_object
from sigadapt.text.bodies.nested import ELEMENTS, TOKEN, braces
from sigadapt.text.bodies.objects import BARE_OPENER, FENCED_OBJECTS, PLAIN_OBJECTS, objects
from sigadapt.text.bodies.pythonic import BARE_KEYWORDS, FENCED_KEYWORDS, keywords, write_keywords
from sigadapt.text.contract import TextFormat, call_json, writer
from sigadapt.text.openers import FENCE_OPENER

_CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
_PARAMETERS = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
_NEVER = r"(?!)"
_PYTHON = 'get_weather(city="Paris")'


def _objects(
    name: str,
    opening: str,
    closing: str = "",
    *,
    marker: str | None = None,
    call: str = _CALL,
    keyed: bool = False,
    reads: str = "One object, several, or a list; the closing tag may be missing.",
    **row: Any,
) -> TextFormat:
    """Return the row of JSON between two tags; `marker`: what may begin it, if not the opening tag alone."""
    marker = marker or re.escape(opening)
    row.setdefault("example", f"{opening}{call}{closing}")
    row.setdefault("closing_tags", (closing,) if closing else ())
    return TextFormat(name, marker, objects(marker, keyed=keyed), reads=reads, **row)


def _pairs(name: str, call: str, key: str, value: str, *, after: str = "", **row: Any) -> TextFormat:
    """Return the row of `<call>NAME<key>KEY</key><value>VALUE</value></call>`."""
    example = f"<{call}>get_weather\n<{key}>city</{key}>\n<{value}>Paris</{value}>\n</{call}>"
    reads = "With line breaks or without; values that lost a tag; `NAME key=value`."
    row.setdefault("closing_tags", (f"</{call}>",))
    body = tags.pairs(call, key, value, after=after).body
    return TextFormat(name, re.escape(f"<{call}>"), body, example, reads=reads, **row)


def _named(
    name: str,
    opener: str,
    head: str,
    *,
    tail: str = "",
    stops: tuple[str, ...] = (),
    reads: str = "Several calls; lost tags around them.",
    **row: Any,
) -> TextFormat:
    return TextFormat(name, opener, name_and_object(head, tail=tail, stops=stops), reads=reads, **row)


def _braces(name: str, call: str, call_end: str, string: str, **row: Any) -> TextFormat:
    example = f"{call}call:get_weather{{city:{string}Paris{string}}}{call_end}"
    reads = "Lost markers of strings, JSON's quotes, several calls in one pair."
    return TextFormat(name, re.escape(call), braces(call, call_end, string), example, reads=reads, **row)


def _keywords(
    name: str, marker: str, *, reads: str = "With brackets or without, also JSON.", **row: Any
) -> TextFormat:
    return TextFormat(name, marker, keywords(marker), reads=reads, **row)


_FUNCTION_CALL = "<tool_call>\n<function={}>\n{}</function>\n</tool_call>"
_SPACED = r"(?:\s|Ġ)*"
_ELEMENT = r"<\|open\|>{}[^<>|]{{0,200}}?{}=\"(?P<{}>[^\"\n]{{1,200}})\"[^<>|]{{0,200}}<\|sep\|>"
_WRAPS = (
    *(f"<{prefix}function_calls>" for prefix in ("", "antml:", "atem:")),
    *("<minimax:tool_call>", "<tool_calls>", "<dots_function_call>"),
    *(
        f"<{bar}{maker}{bar}{gap}{word}>"
        for maker in ("DSML", "GCML")
        for bar in "｜|"
        for gap in ("", " ")
        for word in ("function_calls", "tool_calls", "calls", "toolcalls", "tool")
    ),
)
_DEEP_BEGIN = "(?:<[｜|]tool▁call▁begin[｜|]>|<｜tool_call_begin｜>)"
_DEEP_SEP = "(?:<[｜|]tool▁sep[｜|]>|<｜tool_sep｜>)"
# R1 also writes its tokens with plain underscores.
_DEEP_WRAPS = tuple(
    f"<{bar}tool{low}{word}{low}{edge}{bar}>"
    for bar, low in ("｜▁", "|▁", "｜_")
    for word, edge in (("calls", "begin"), ("calls", "end"), ("call", "end"))
)
_DEEP: dict[str, Any] = {
    "opening_tags": tuple(tag for tag in _DEEP_WRAPS if "begin" in tag),
    "closing_tags": (
        *(tag for tag in _DEEP_WRAPS if "end" in tag),
        "<｜end▁of▁sentence｜>",
        "<|end▁of▁sentence|>",
    ),
    "stops": tuple(tag for tag in _DEEP_WRAPS if "end" in tag),
}
_PLAMO = "<|plamo:{}:plamo|>"

FORMATS: tuple[TextFormat, ...] = (
    _objects(
        "hermes",
        "<tool_call>",
        call=f"\n{_CALL}\n</tool_call>",
        opening_tags=("<response>",),
        closing_tags=("</tool_call>", "</response>"),
        reads="One object, several, or a list, also Python dicts; the closing tag may be missing.",
        write=writer("<tool_call>\n{json}\n</tool_call>"),
    ),
    _objects(
        "llama3-json",
        "<|python_tag|>",
        marker=r"<\|python_tag\|>|<\|python_start\|>",
        call=_PARAMETERS,
        closing_tags=("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
        reads="Objects with `;` or a line between. Without the tag it is `plain-json`.",
        write=writer("{json}", separator="; ", prefix="<|python_tag|>", arguments="parameters"),
    ),
    _objects(
        "mistral-json",
        "[TOOL_CALLS]",
        call=f" [{_CALL}]",
        reads="The list; where the server drops the marker, it is `plain-json`.",
        write=writer("{json}", separator=", ", prefix="[TOOL_CALLS] [", suffix="]"),
    ),
    _objects(
        "dots",
        "<dots_function_call>",
        "</dots_function_call>",
        opening_tags=("<dots_function_call>",),
    ),
    _objects(
        "longcat",
        "<longcat_tool_call>",
        "</longcat_tool_call>",
    ),
    _objects(
        "granite",
        "<|tool_call|>",
        call=f" [{_CALL}]",
        closing_tags=("<|/tool_call|>", "<|end_of_text|>"),
    ),
    _objects(
        "granite-20b-fc",
        "<function_call>",
        call=f" {_CALL}",
        closing_tags=("</function_call>", "<|endoftext|>"),
    ),
    _objects(
        "phi4-mini",
        "functools",
        marker=r"\bfunctools(?=\s*\[)",
        call=f"[{_CALL}]",
        sure=r"functools(?=\s*\[\s*(?:\{|\Z))",
    ),
    _objects(
        "tool-calls-list",
        "<tool_calls>",
        "</tool_calls>",
        call=f"[{_CALL}]",
        opening_tags=("<tool_calls>", "<answer>"),
        closing_tags=("</tool_calls>", "</answer>"),
        reads="A list, or one object a line.",
    ),
    _objects(
        "internlm2",
        "<|action_start|><|plugin|>",
        "<|action_end|>",
        marker=r"<\|action_start\|>\s*<\|plugin\|>",
        call=_PARAMETERS,
    ),
    _objects(
        "nemotron-v2",
        "<TOOLCALL>",
        "</TOOLCALL>",
        call=f"[{_CALL}]",
    ),
    _objects("pangu", "[unused11]", "[unused12]", call=f"[{_CALL}]"),
    _objects("nemotron-mini", "<toolcall>", "</toolcall>"),
    _objects(
        "cohere-actions",
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        call='[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}]',
    ),
    _objects(
        "command-r-plus",
        "Action: ",
        marker=r"\bAction:\s*(?=```)",
        call='```json\n[{"tool_name": "get_weather", "parameters": {"city": "Paris"}}]\n```',
        sure=_NEVER,
    ),
    _objects(
        "inkling",
        "<|content_invoke_tool_json|>",
        "<|end_message|>",
        call='{"name": "get_weather", "args": {"city": "Paris"}}',
        opening_tags=("<|message_model|>",),
    ),
    _objects(
        "apertus",
        "<|tools_prefix|>",
        "<|tools_suffix|>",
        call='[{"get_weather": {"city": "Paris"}}]',
        reads="A list of objects whose key is the tool's name.",
        keyed=True,
    ),
    _objects(
        "gigachat3",
        "<|function_call|>",
        marker=r"<\|function_call\|>|\bfunction call\s*<\|role_sep\|>",
        opening_tags=("<|message_sep|>",),
        closing_tags=("</s>",),
    ),
    _objects(
        "lmstudio",
        "[TOOL_REQUEST]",
        "[END_TOOL_REQUEST]",
    ),
    _objects(
        "lfm2-json",
        "<|tool_call_start|>",
        "<|tool_call_end|>",
        call=f"[{_CALL}]",
    ),
    TextFormat(
        "qwen3-coder-xml",
        r"<function=",
        tags.tags(
            r"<function=(?P<name>[^<>\n{]{1,200})>?",
            r"<parameter=(?P<key>[^>\n]{1,200})>?",
            "</parameter>",
            "</function>",
            breaks=True,
        ).body,
        example="<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n"
        "</tool_call>",
        reads="Without the tags around, with JSON instead of parameters, and parameters that are not closed.",
        opening_tags=("<tool_call>", "<seed:tool_call>"),
        closing_tags=("</function>", "</tool_call>", "</seed:tool_call>"),
        write=tags.writer_of_tags(
            _FUNCTION_CALL,
            "<parameter={}>\n{}\n</parameter>\n",
            ("</parameter>", "</function>", "<parameter", "<![CDATA["),
            lambda name, args: _FUNCTION_CALL.format(name, compact(args) + "\n"),
        ),
    ),
    TextFormat(
        "invoke",
        tags.INVOKE_OPENER,
        tags.INVOKE.body,
        example='<minimax:tool_call><invoke name="get_weather"><parameter name="city">Paris</parameter>'
        "</invoke></minimax:tool_call>",
        reads="Any prefix of the tags (`｜DSML｜`, `steptml:`, `atem:`), with or without tags around.",
        opening_tags=(*_WRAPS, "<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "function<｜tool_sep｜>"),
        closing_tags=(
            *(f"</{tag[1:]}" for tag in _WRAPS),
            *("<｜tool_call_end｜>", "<｜tool_calls_end｜>"),
        ),
    ),
    TextFormat(
        "minicpm5-xml",
        rf"<function{_SPACED}name=",
        tags.tags(
            rf"<function{_SPACED}name={tags.QUOTED.format('name')}\s*>",
            rf"<param{_SPACED}name={tags.QUOTED.format('key')}\s*>",
            "</param>",
            "</function>",
        ).body,
        example='<function name="get_weather"><param name="city">Paris</param></function>',
        reads="Values in CDATA, and tags whose space a tokenizer lost.",
        opening_tags=("<function name=",),
        closing_tags=("</function>",),
    ),
    TextFormat(
        "kimi-k3",
        r"<\|open\|>call\b",
        tags.tags(
            _ELEMENT.format("call", "tool", "name") + r"(?:\s*<\|open\|>json[^<>|]{0,200}<\|sep\|>)?",
            _ELEMENT.format("argument", "key", "key"),
            "<|close|>argument<|sep|>",
            "<|close|>call<|sep|>",
            tag_end="<|sep|>",
        ).body,
        example='<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>",
        reads="Arguments one by one, or one JSON object.",
        opening_tags=("<|open|>tools<|sep|>", '<|open|>call index="1"<|sep|><|close|>call<|sep|>'),
        closing_tags=(
            "<|close|>json<|sep|>",
            "<|close|>call<|sep|>",
            "<|close|>tools<|sep|>",
            "<|close|>message<|sep|>",
        ),
    ),
    TextFormat(
        "solar-open2",
        r"<\|tool_call:start\|>",
        tags.tags(
            r"<\|tool_call:start\|>\s*(?P<name>[^\s<>]{1,128})",
            r"<\|tool_arg:start\|>(?P<key>[^<>]{1,200})<\|tool_arg:value\|>",
            "<|tool_arg:end|>",
            "<|tool_call:end|>",
            tag_end="<|tool_arg:value|>",
        ).body,
        example="<|tool_call:start|>get_weather\n"
        "<|tool_arg:start|>city<|tool_arg:value|>Paris<|tool_arg:end|>\n<|tool_call:end|>",
        closing_tags=("<|tool_call:end|>",),
        reads="Lost tags around the call; a parameter or a call that is not closed.",
    ),
    _pairs(
        "glm-4.5",
        *("tool_call", "arg_key", "arg_value"),
        opening_tags=("<tool_calls>",),
        closing_tags=("</tool_call>", "</tool_calls>", "<|role_end|>"),
        write=tags.writer_of_tags(
            "<tool_call>{}\n{}</tool_call>",
            "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n",
            ("arg_value>", "arg_key>", "tool_call>"),
            lambda name, args: f"<tool_call>\n{call_json(name, args)}\n</tool_call>",  # as Hermes
        ),
    ),
    TextFormat(
        "hunyuan-suffix",
        r"<tool_call:\w{2,16}>",
        tags.pairs("tool_call", "arg_key", "arg_value", has_suffix=True).body,
        "<tool_calls:6f1e><tool_call:6f1e>get_weather\n<arg_key:6f1e>city</arg_key:6f1e>\n"
        "<arg_value:6f1e>Paris</arg_value:6f1e>\n</tool_call:6f1e></tool_calls:6f1e>",
        "Any suffix of two or more letters and digits, the same in each tag.",
    ),
    _pairs("iquest", "iquest_tool_call", "arg_key", "arg_value"),
    _pairs("iquest-coder", "iquestcoder_tool_call", "arg_key", "arg_value"),
    _pairs(
        "k2-horizon",
        *("ifm|tool_call", "ifm|arg_key", "ifm|arg_value"),
        after=r"(?=[ \t\r]*\n)",  # on one line it is another template's, which K2's server refuses
        opening_tags=("<ifm|tool_calls>",),
        closing_tags=("</ifm|tool_call>", "</ifm|tool_calls>"),
    ),
    _pairs(
        "longcat-pairs",
        *("longcat_tool_call", "longcat_arg_key", "longcat_arg_value"),
    ),
    TextFormat(
        "minimax-m3",
        rf"{re.escape(TOKEN)}<invoke ",
        ELEMENTS,
        f'{TOKEN}<tool_call>\n{TOKEN}<invoke name="get_weather">{TOKEN}<city>Paris{TOKEN}</city>'
        f"{TOKEN}</invoke>\n{TOKEN}</tool_call>",
        "Nested elements, as objects or lists by the schema.",
        opening_tags=(f"{TOKEN}<tool_call>",),
        closing_tags=(f"{TOKEN}</tool_call>",),
    ),
    _braces(
        "gemma4",
        *("<|tool_call>", "<tool_call|>", '<|"|>'),
        closing_tags=("<tool_call|>", "<|tool_response>"),
    ),
    _braces(
        "functiongemma",
        *("<start_function_call>", "<end_function_call>", "<escape>"),
        closing_tags=("<end_function_call>", "<start_function_response>"),
    ),
    _named(
        "mistral-args",
        r"\[TOOL_CALLS\]",
        r"(?:\[TOOL_CALLS\])?\s*(?P<name>[\w.:/-]{1,128})"
        r"(?:\s*\[CALL_ID\](?P<id>\w{1,64}))?(?:\s*\[ARGS\]|(?=\s*\{))",
        stops=("[TOOL_CALLS]",),
        example='[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}',
        reads="With or without `[ARGS]` and `[CALL_ID]`; the marker may be missing before the next call.",
        write=writer("[TOOL_CALLS]{name}[ARGS]{args}", separator=""),
    ),
    TextFormat(
        "mistral-bare",
        r"(?!)",  # it is tried where the answer begins, and nowhere else
        BARE_NAME,
        'get_weather[ARGS]{"city": "Paris"}',
        "Only where it is the whole answer.",
        bare=True,
    ),
    _named(
        "deepseek-v3",
        _DEEP_BEGIN,
        rf"{_DEEP_BEGIN}\s*function\s*{_DEEP_SEP}(?P<name>[^\n`<:]{{1,128}}?)\s*```(?:json)?",
        tail=r"\s*```",
        example="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        '```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        **_DEEP,
    ),
    _named(
        "deepseek-v3.1",
        _DEEP_BEGIN,
        # Step 3 writes `<steptml:invoke ...>` behind them.
        rf"{_DEEP_BEGIN}\s*(?P<name>[^\s`<][^\n`<]{{0,127}}?)\s*{_DEEP_SEP}(?!\s*{tags.INVOKE_OPENER})",
        example="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        write=writer(
            "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{args}<｜tool▁call▁end｜>",
            separator="",
            prefix="<｜tool▁calls▁begin｜>",
            suffix="<｜tool▁calls▁end｜>",
        ),
        **_DEEP,
    ),
    _named(
        "kimi-k2",
        r"<\|tool_call_begin\|>",
        r"<\|tool_call_begin\|>\s*(?P<id>(?:functions\.)?(?P<name>[^<\s]{1,128}?)(?::\d+)?)\s*"
        r"<\|tool_call_argument_begin\|>",
        stops=("<|tool_call_end|>", "<|tool_call_begin|>", "<|tool_calls_section_end|>"),
        opening_tags=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
        closing_tags=("<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
        example="<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        reads="Ids with and without `functions.`, also without the section's tags. The id is kept.",
        write=writer(
            "<|tool_call_begin|>functions.{name}:{n}<|tool_call_argument_begin|>{args}<|tool_call_end|>",
            separator="",
            prefix="<|tool_calls_section_begin|>",
            suffix="<|tool_calls_section_end|>",
        ),
    ),
    _named(
        "functionary-v3.2",
        r">>>",
        r">>>(?P<name>[\w.-]{1,128})\r?\n(?=\s*\{)",
        stops=(">>>",),
        example='>>>get_weather\n{"city": "Paris"}',
        sure=_NEVER,
    ),
    _named(
        "plamo3",
        re.escape(_PLAMO.format("begin_tool_name")),
        rf"{re.escape(_PLAMO.format('begin_tool_name'))}(?P<name>[^<]{{1,128}})"
        rf"{re.escape(_PLAMO.format('end_tool_name'))}\s*{re.escape(_PLAMO.format('begin_tool_arguments'))}"
        r"(?:<\|plamo:constrain\|>json)?(?:<\|plamo:msg\|>)?",
        stops=(_PLAMO.format("end_tool_arguments"),),
        opening_tags=(_PLAMO.format("begin_tool_requests"), _PLAMO.format("begin_tool_request")),
        closing_tags=(
            *(_PLAMO.format(f"end_tool_{word}") for word in ("arguments", "request", "requests")),
            "<|plamo:tag|>",
        ),
        example="<|plamo:begin_tool_name:plamo|>get_weather<|plamo:end_tool_name:plamo|>"
        '<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"city": "Paris"}'
        "<|plamo:end_tool_arguments:plamo|>",
    ),
    TextFormat(
        "bracket-calling",
        r"\[Calling tool:",
        BRACKETED,
        '[Calling tool: get_weather({"city": "Paris"})]',
        "Unless an example is announced.",
        sure=_NEVER,
    ),
    TextFormat(
        "pythonic",
        BARE_OPENER,
        BARE_KEYWORDS,
        f"[{_PYTHON}]",
        "A list at the beginning of a line, or calls that are the whole answer.",
        bare=True,
        write=write_keywords,
    ),
    _keywords(
        "llama4-pythonic",
        r"<\|python_tag\|>|<\|python_start\|>",
        example=f"<|python_start|>[{_PYTHON}]<|python_end|>",
        closing_tags=("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
    ),
    _keywords(
        "lfm2-pythonic",
        r"<\|tool_call_start\|>",
        example=f"<|tool_call_start|>[{_PYTHON}]<|tool_call_end|>",
        closing_tags=("<|tool_call_end|>",),
    ),
    _keywords(
        "olmo3-pythonic",
        r"<function_calls>",
        example=f"<function_calls>{_PYTHON}</function_calls>",
        closing_tags=("</function_calls>",),
        reads="One call a line.",
    ),
    TextFormat(
        "gemma3-tool-code",
        FENCE_OPENER,
        FENCED_KEYWORDS,
        f"```tool_code\n{_PYTHON}\n```",
        "A fence that says `tool_code` and is or ends the answer; if named, any. One of Python is code.",
    ),
    TextFormat(
        "plain-json",
        BARE_OPENER,
        PLAIN_OBJECTS,
        _CALL,
        "Objects on their own, with `;` or a line between, or a list. Other JSON is an answer.",
        closing_tags=("</tool_call>", "<|eot_id|>", "<|eom_id|>"),
        write=writer("{json}"),
        bare=True,
    ),
    TextFormat(
        "fenced-json",
        FENCE_OPENER,
        FENCED_OBJECTS,
        f"```json\n{_CALL}\n```",
        "A fence that is the whole answer; if named, any.",
        write=writer("{json}", prefix="```json\n", suffix="\n```"),
        bare=True,
    ),
    TextFormat(
        "harmony",
        HARMONY_OPENER,
        HARMONY,
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Paris"}<|call|>',
        "The recipient in the role or in the channel; messages whose special tokens the server dropped.",
        closing_tags=("<|call|>", "<|end|>", "<|return|>", "<|eom|>"),
        sure=TO_TOOL,
    ),
)
"""All formats. Where several have the same opener, the first that reads what stands behind it takes it."""

_BY_NAME = {text_format.name: text_format for text_format in FORMATS}


def formats_named(formats: Iterable[object]) -> tuple[TextFormat, ...]:
    """Return the formats that a caller named, in the table's order; InvalidOption for an unknown name."""
    names = [formats] if isinstance(formats, str) else list(formats)
    for name in names:
        if not isinstance(name, str) or name not in _BY_NAME:
            near = closest(str(name), list(_BY_NAME))
            fix = f"Use one of {', '.join(_BY_NAME)}." if near is None else f"Did you mean {near!r}?"
            raise InvalidOption(f"{name!r} is not a known text format", field="formats", fix=fix)
    return tuple(text_format for text_format in FORMATS if text_format.name in names)
