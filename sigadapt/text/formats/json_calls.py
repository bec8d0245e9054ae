"""Calls as JSON objects behind a marker: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` and kin.

One grammar with thirty markers. Behind the marker stands one object, several (with a comma, a semicolon or a
line between), or a list of them, in a code fence or not. The object names the tool (`name`, `tool_name`,
`function`) and its arguments (`arguments`, `parameters`, `args`), in any order, or is `{NAME: {...}}`. JSON
ends where its braces end, so a closing tag inside of a string closes nothing. A missing closing tag is no
fault: the object says that it is whole.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sigadapt.schemas.arguments import CutOff, Flaw, Unread
from sigadapt.schemas.json_values import RepeatedKeys, cut, is_object
from sigadapt.text.contract import MOST_CALLS, Calls, TextCall, TextFormat, Tools, writer
from sigadapt.text.quotations import without_closers
from sigadapt.text.scan import COMMENT, Members, Scan

NAMES = ("name", "tool_name", "function_name", "function", "tool")
ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")
IDS = ("id", "tool_call_id")
_FENCE = re.compile(r"\s*```[\w-]*[ \t\r]*\n?")
_SINGLE = re.compile(r"\{\s*'")
_STRAY = re.compile(r"\s*[\]}]+(?=\s*</)")
# Each run of blanks begins behind a character that is none: runs side by side cost their length squared.
_OTHER = re.compile(r"\s*(?:[\]}]+\s*)?(?:[,;]\s*)?[{\[]")
OBJECT = r"[\[\s]*\{\s*[\"']"
"""How one object, several or a list begin."""
_GAP = 40  # characters between two objects
_OBJECT = re.compile(r'\{\s*"(?:name|tool_name|function)"\s*:\s*"([^"\\\n]{1,128})"')


def read(scan: Scan, at: int, tools: Tools, *, marker: re.Pattern[str], keyed: bool = False) -> Calls | None:
    """Read the calls behind a marker."""
    opener = marker.match(scan.text, at)
    if opener is None:
        return None
    begin = scan.gap(opener.end())
    fence = _FENCE.match(scan.text, begin)
    place = fence.end() if fence else begin
    opening = scan.text[at : opener.end()].strip()
    calls = read_body(scan, place, tools, stops=(opening, "\n```"), keyed=keyed)
    if calls is None:
        return None
    if fence and scan.text.startswith("```", closing := scan.space(calls.end)):
        return calls._replace(end=closing + 3)
    if stray := _STRAY.match(scan.text, calls.end):
        return calls._replace(end=stray.end())
    closing = scan.find(f"</{opening[1:]}", calls.end) if _OTHER.match(scan.text, calls.end) else -1
    if closing < 0 or 0 <= scan.find(opening, calls.end) < closing:
        return calls
    raw = scan.text[place if len(calls.calls) == 1 else calls.end : closing]  # an object that is no call
    return Calls([*calls.calls[:-1], calls.calls[-1]._replace(arguments=raw.strip())], closing, calls.between)


def read_body(
    scan: Scan, at: int, tools: Tools, *, stops: Sequence[str], keyed: bool = False
) -> Calls | None:
    """Read one object, several or a list; None if no call of a declared tool is among them."""
    calls = list[TextCall]()
    others = list[str]()
    end = place = scan.space(at)
    while scan.text.startswith(("{", "["), place) and len(calls) <= MOST_CALLS:
        if scan.text[place] == "[":
            place = scan.space(place + 1)
            continue
        members = scan.members_at(place)
        call = call_of(scan, members, tools, keyed=keyed)
        if members.end is None:
            other = _python_object(scan, place, tools) or _broken(scan, members, tools, stops, keyed=keyed)
            if other is None:
                break
            call, end = other
        elif call is None and not _looks_like_call(members):
            break
        else:
            end = members.end
        if call is None:
            others.append(scan.text[place:end])
        else:
            calls.append(call)
        place = scan.gap(end)
        while scan.text.startswith(("]", ",", ";"), place):
            end = place + 1 if scan.text[place] == "]" else end
            place = scan.gap(place + 1)
    return Calls(calls, end, "\n".join(others)) if calls else None


def call_of(
    scan: Scan, members: Members, tools: Tools, *, keyed: bool = False, whole: bool = False
) -> TextCall | None:
    """Return the call that a JSON object is; None if it is none, or of no declared tool."""
    # `keyed`: the tool's name is a key, and the arguments are its value. `whole`: the object must be a call
    # and nothing else, with arguments that are an object.
    fields = members.fields
    if keyed:
        pairs = ((tools.name_of(key), field) for key, field in fields.items() if isinstance(field[0], dict))
        return next((TextCall(name, scan.text[field[1] : field[2]]) for name, field in pairs if name), None)
    function = fields.get("function")
    if function is not None and isinstance(function[0], dict):
        call = call_of(scan, scan.members_at(function[1]), tools, whole=whole)
        return _twice(scan, members, call) if call and members.repeats else call
    name_key, name = _name_in(fields, tools)
    args_key = next((key for key in ARGUMENTS if key in fields), None)
    call_id = next((fields[key][0] for key in IDS if key in fields and isinstance(fields[key][0], str)), None)
    if args_key is None:
        return None if name is None or whole or members.broken else TextCall(name, None, call_id or None)
    value, begin, end = fields[args_key]
    call = TextCall(name, value if isinstance(value, str) else scan.text[begin:end], call_id or None)
    if name is None:  # markup of prompted calling says that it is a call
        return call._replace(name="") if tools.undeclared and not whole else None
    is_sole = fields.keys() <= {name_key, args_key, "type", *IDS}
    is_object_text = isinstance(value, str) and value.startswith("{")
    is_whole = is_sole and (is_object_text or is_object(value))
    properties: Any = tools.schema_of(name).get("properties")
    is_declaration = is_object(value) and value.get("type") == "object" and is_object(value.get("properties"))
    is_declaration = is_declaration and not (is_object(properties) and "properties" in properties)
    if is_declaration or (whole and not is_whole):  # the model repeats the schema, or says more than a call
        return None
    others = [key for key in (*NAMES, *ARGUMENTS) if key in fields and key not in (name_key, args_key)]
    doubles = any(key in ARGUMENTS or tools.name_of(fields[key][0]) for key in others)
    return _twice(scan, members, call) if members.repeats or doubles else call


def _twice(scan: Scan, members: Members, call: TextCall) -> TextCall:
    """Return a call whose object says its name or its arguments twice as a bad one: neither wins."""
    raw = scan.text[members.begin : members.end or members.broken[1] if members.broken else None]
    return call._replace(arguments=Unread(raw, Flaw("duplicate_key", f"a key occurs twice: {cut(raw)}")))


def _name_in(fields: Mapping[str, tuple[Any, int, int]], tools: Tools) -> tuple[str | None, str | None]:
    """Return the key that names a tool, and the tool; None for each that is not there."""
    key = next((key for key in NAMES if key in fields and isinstance(fields[key][0], str)), None)
    return key, tools.name_of(fields[key][0]) if key else None


def _looks_like_call(members: Members) -> bool:
    """Return whether an object has the form of a call, of whatever tool."""
    fields = members.fields
    if any(isinstance(fields[key][0], str) for key in NAMES if key in fields):
        return not fields.keys().isdisjoint(ARGUMENTS)
    return [type(value) for value, _, _ in fields.values()] == [dict]


def _broken(
    scan: Scan, members: Members, tools: Tools, stops: Sequence[str], *, keyed: bool
) -> tuple[TextCall, int] | None:
    """Return a call whose object is broken or cut off, and the place behind it."""
    # The name must have been read, unless markup of prompted calling says that this is a call. The arguments
    # are what stands from their beginning to the closing tag, the next opening one, or the text's end, where
    # the call was cut off.
    at = members.begin
    if members.broken and members.broken[0] == "function" and scan.text.startswith("{", members.broken[1]):
        members = scan.members_at(members.broken[1])
    call = call_of(scan, members, tools)
    if call is not None and call.arguments is not None:  # whole arguments in an object that lacks its end
        end = max(end for _, _, end in members.fields.values())
        place = scan.space(end)
        may_follow = ("<", "[", "]", "}", ",", ";", "{", "```", *(stop.strip() for stop in stops if stop))
        if place == len(scan.text) or scan.text.startswith(may_follow, place):  # no JSON and no prose
            return call, end
    _, name = _name_in(members.fields, tools)
    if name is None and members.broken and keyed:
        name = tools.name_of(members.broken[0])
    if name is None and not tools.undeclared:
        return None
    args_key = next((key for key in ARGUMENTS if key in members.fields), None)
    begin = members.broken[1] if members.broken and (keyed or members.broken[0] in ARGUMENTS) else at
    begin = members.fields[args_key][1] if args_key else begin
    closing = (f"</{stop[1:]}" for stop in stops if stop.startswith("<") and not stop.startswith("<|"))
    end = scan.earliest((*closing, *(stop for stop in stops if stop), "<|tool_call_end|>"), begin)
    following = _next_object(scan, begin, end, tools)
    raw = scan.text[begin:following].rstrip()
    raw = without_closers(raw if following == end else raw.rstrip(",;"))
    return TextCall(name or "", raw if following < len(scan.text) else CutOff(raw)), following


def _next_object(scan: Scan, at: int, end: int, tools: Tools) -> int:
    """Return where the next call of a declared tool begins, before a place; else that place."""
    scan.charge((end - at) // 8)
    for call in _OBJECT.finditer(scan.text, at, end):
        before = scan.text[max(at, call.start() - _GAP) : call.start()]
        if call[1] in tools.schemas and ("\n" in before or before.rstrip().endswith((",", ";"))):
            return call.start()
    return end


def _python_object(scan: Scan, at: int, tools: Tools) -> tuple[TextCall, int] | None:
    """Read a call whose object is a Python dict, with single quotes."""
    is_python = _SINGLE.match(scan.text, at) is not None
    if not is_python and scan.call_format:
        return None  # the prompt asked for JSON
    try:
        value, end = scan.literal_at(at, is_strict=not is_python)
    except ValueError:
        return None
    fields = value if is_object(value) else {}
    name = next((tools.name_of(fields[key]) for key in NAMES if key in fields), None)
    args = next((fields[key] for key in ARGUMENTS if key in fields), None)
    arguments = fields if isinstance(fields, RepeatedKeys) else args
    return (TextCall(name, arguments), end) if name is not None else None


_CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
_PARAMETERS = '{"name": "get_weather", "parameters": {"city": "Paris"}}'


def _format(
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
    """Return the row of calls between two tags. A marker is what else than the opening tag may begin one."""
    marker = marker or re.escape(opening)
    row = {"example": f"{opening}{call}{closing}", "after": (closing,) if closing else (), **row}
    row["head"] = rf"(?:{marker})(?:\s*{COMMENT})*(?:\s*```[\w-]*)?{OBJECT}"
    return TextFormat(name, marker, partial(read, marker=re.compile(marker), keyed=keyed), reads=reads, **row)


FORMATS: tuple[TextFormat, ...] = (
    _format(
        "hermes",
        "<tool_call>",
        call=f"\n{_CALL}\n</tool_call>",
        before=("<response>",),
        after=("</tool_call>", "</response>"),
        reads="One object, several, or a list, also Python dicts; the closing tag may be missing.",
        write=writer("<tool_call>\n{json}\n</tool_call>"),
    ),
    _format(
        "llama3-json",
        "<|python_tag|>",
        marker=r"<\|python_tag\|>|<\|python_start\|>",
        call=_PARAMETERS,
        after=("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
        reads="Objects with `;` or a line between. Without the tag it is `plain-json`.",
        write=writer("{json}", separator="; ", begin="<|python_tag|>", arguments="parameters"),
    ),
    _format(
        "mistral-json",
        "[TOOL_CALLS]",
        call=f" [{_CALL}]",
        reads="The list; where the server drops the marker, it is `plain-json`.",
        write=writer("{json}", separator=", ", begin="[TOOL_CALLS] [", end="]"),
    ),
    _format(
        "dots",
        "<dots_function_call>",
        "</dots_function_call>",
        before=("<dots_function_call>",),
    ),
    _format(
        "longcat",
        "<longcat_tool_call>",
        "</longcat_tool_call>",
    ),
    _format(
        "granite",
        "<|tool_call|>",
        call=f" [{_CALL}]",
        after=("<|/tool_call|>", "<|end_of_text|>"),
    ),
    _format(
        "granite-20b-fc",
        "<function_call>",
        call=f" {_CALL}",
        after=("</function_call>", "<|endoftext|>"),
    ),
    _format(
        "phi4-mini",
        "functools",
        marker=r"\bfunctools(?=\s*\[)",
        call=f"[{_CALL}]",
    ),
    _format(
        "tool-calls-list",
        "<tool_calls>",
        "</tool_calls>",
        call=f"[{_CALL}]",
        before=("<tool_calls>", "<answer>"),
        after=("</tool_calls>", "</answer>"),
        reads="A list, or one object a line.",
    ),
    _format(
        "internlm2",
        "<|action_start|><|plugin|>",
        "<|action_end|>",
        marker=r"<\|action_start\|>\s*<\|plugin\|>",
        call=_PARAMETERS,
    ),
    _format(
        "nemotron-v2",
        "<TOOLCALL>",
        "</TOOLCALL>",
        call=f"[{_CALL}]",
    ),
    _format(
        "cohere-actions",
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        call='[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}]',
    ),
    _format(
        "command-r-plus",
        "Action: ",
        marker=r"\bAction:\s*(?=```)",
        call='```json\n[{"tool_name": "get_weather", "parameters": {"city": "Paris"}}]\n```',
    ),
    _format(
        "inkling",
        "<|content_invoke_tool_json|>",
        "<|end_message|>",
        call='{"name": "get_weather", "args": {"city": "Paris"}}',
        before=("<|message_model|>",),
    ),
    _format(
        "apertus",
        "<|tools_prefix|>",
        "<|tools_suffix|>",
        call='[{"get_weather": {"city": "Paris"}}]',
        reads="A list of objects whose key is the tool's name.",
        keyed=True,
    ),
    _format(
        "gigachat3",
        "<|function_call|>",
        marker=r"<\|function_call\|>|\bfunction call\s*<\|role_sep\|>",
        before=("<|message_sep|>",),
        after=("</s>",),
    ),
    _format(
        "lmstudio",
        "[TOOL_REQUEST]",
        "[END_TOOL_REQUEST]",
    ),
    _format(
        "lfm2-json",
        "<|tool_call_start|>",
        "<|tool_call_end|>",
        call=f"[{_CALL}]",
    ),
)
