"""Custom tools, whose calls are free text: give each call the form that the route takes.

A bad call of a declared custom tool gets that form too. Where there are no custom tools, a call becomes that
of a function, whose argument `input` is the text.
"""

from typing import Any

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Request
from sigadapt.providers.wire.values import named_part
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import compact
from sigadapt.signatures.tool_decls import made_once

PARAMETERS = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The parameters of a custom tool that is described as a function."""


def write_custom_calls(request: Request, record: RequestRecord) -> Request:
    """Write the calls of custom tools as the route takes them."""
    tools = request.get("tools", ())
    names = made_once(tools, "custom", lambda: {each["custom"]["name"] for each in tools if "custom" in each})
    calls = (call for row in request["messages"] for call in row.get("tool_calls") or ())
    if not names and not any("custom" in call for call in calls):
        return request
    rows = list(request["messages"])
    for number, row in enumerate(rows):
        if row.get("tool_calls"):
            rows[number] = _with_calls(row, number, names, record)
    return {**request, "messages": rows}


def _with_calls(row: dict[str, Any], number: int, names: set[str], record: RequestRecord) -> dict[str, Any]:
    calls: list[dict[str, Any]] = []
    for place, call in enumerate(row["tool_calls"]):
        form = _form_of(call, names, takes_custom=record.route.tools.custom)
        if form is not call and "function" in form:
            why = "this route has no custom tools; the text is sent as the argument 'input'"
            record.note(f"/messages/{number}/tool_calls/{place}", "lowered", why)
        calls.append(form)
    return {**row, "tool_calls": calls}


def _form_of(call: dict[str, Any], names: set[str], *, takes_custom: bool) -> dict[str, Any]:
    part = named_part(call)
    if "custom" in call and not takes_custom:
        function = {"name": part["name"], "arguments": compact({"input": part["input"]})}
        return {"id": call["id"], "type": "function", "function": function}
    if "function" not in call or part["name"] not in names:
        return call
    if isinstance(parse_arguments(part["arguments"]), dict):
        return call
    custom = {"name": part["name"], "input": part["arguments"]}
    return {"id": call["id"], "type": "custom", "custom": custom}
