"""The settings beside tools: tool choice, parallel calls, response format, and what some tools need.

A setting that the route does not take becomes one with the same intent, or is dropped, or refuses the call if
the program depends on it. A call that the tool choice does not allow is a bad call: no provider enforces the
choice of a prompt, and not every server enforces one of a request.
"""

from typing import Any

from sigadapt.adapters.calling.agent_steps import is_forced_submit
from sigadapt.adapters.calling.call_record import CallRecord, RequestRecord
from sigadapt.adapters.request.canonical import Request, form_of
from sigadapt.adapters.response.typed_calls import of_allowed_tools, of_chosen_tools
from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.errors import InvalidOption
from sigadapt.json_values import compact, is_object
from sigadapt.providers import BY_WIRE
from sigadapt.providers.wire.values import name_in
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decl import ToolDecl


def fit_tool_choice(request: Request, record: RequestRecord) -> Request:
    """Keep a tool choice that the route takes; lower, drop or refuse any other."""
    choice = request.get("tool_choice")
    if choice is None:
        return request
    route = record.route
    form = form_of(choice)
    forces = form not in ("auto", "none", "validated")
    if not request.get("tools") and route.client != "engine":  # providers refuse a choice without tools
        if forces:
            raise InvalidOption("it forces a call, but no tool is sent", field="tool_choice")
        record.note("/tool_choice", "dropped", "no tools are sent, so there is nothing to choose")
        return _without(request, "tool_choice")
    if forces and _thinks(request) and not route.choices.forces_with_thinking:
        if is_forced_submit(request, record.decls):
            return _with_submit_alone(request, record)
        raise InvalidOption(
            "this provider refuses a forced tool choice while thinking is on",
            field="tool_choice",
            fix="Use tool_choice='auto', or reasoning_effort=None (or no thinking=) for this call.",
        )
    return request if form in route.choices.forms else _lowered_choice(choice, form, request, record)


def _with_submit_alone(request: Request, record: RequestRecord) -> Request:
    """Offer `submit` alone of the functions, in the last request of an agent that cannot be forced."""
    why = "thinking is on, so this provider takes no forced choice; of the functions, only submit is sent"
    record.note("/tool_choice", "lowered", why)
    tools = [tool for tool in request.get("tools", ()) if "function" not in tool or name_in(tool) == SUBMIT]
    fields: Any = {**_without(request, "tool_choice"), "tools": tools}
    return fields


def _thinks(request: Request) -> bool:
    thinking: Any = request.get("thinking")  # a setting that only LiteLLM takes
    if is_object(thinking) and thinking.get("type") != "disabled":
        return True
    return request.get("reasoning_effort") not in (None, "none", "off")


def _lowered_choice(choice: Any, form: str, request: Request, record: RequestRecord) -> Request:
    """Lower or drop a choice that the route has no form for."""
    if form == "none":
        record.note("/tools", "lowered", "this route has no tool choice; no tools are sent")
        return _without(request, "tools", "tool_choice", "parallel_tool_calls")
    if form == "validated":
        why = "this route has no mode that checks calls; the model decides, and its calls are still checked"
        record.note("/tool_choice", "lowered", why)
        tools = choice["allowed_tools"]["tools"]
        new_choice: Any = "auto"
        if tools:
            new_choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}
        return fit_tool_choice({**request, "tool_choice": new_choice}, record)
    if not isinstance(choice, str) and form != "own":
        request = _with_chosen_tools(request, choice, record)
        if "required" in record.route.choices.forms:
            return request
    what = "cannot name a tool that the provider runs" if form == "own" else "has no tool choice"
    record.note("/tool_choice", "dropped", f"this route {what}; the model decides")
    return _without(request, "tool_choice")


def _with_chosen_tools(request: Request, choice: dict[str, Any], record: RequestRecord) -> Request:
    """Lower a choice that the route has no form for: send only the chosen tools."""
    subset = choice.get("allowed_tools", {"mode": "required", "tools": [choice]})
    names = [(each.get("type"), name_in(each)) for each in subset["tools"]]
    tools = [tool for tool in request.get("tools", ()) if (tool.get("type"), name_in(tool)) in names]
    record.note("/tools", "lowered", "this route has no such choice; only the chosen tools are sent")
    return {**request, "tools": tools, "tool_choice": subset["mode"]}


def drop_settings(request: Request, record: RequestRecord) -> Request:
    """Drop what the route does not take beside tools."""
    choices = record.route.choices
    if "parallel_tool_calls" in request and not choices.parallel:
        why = "this route has no such setting; the model decides"
        record.note("/parallel_tool_calls", "dropped", why)
        request = _without(request, "parallel_tool_calls")
    if "response_format" in request and request.get("tools") and not choices.formats_beside_tools:
        why = "this provider refuses a response format beside tools; the prompt describes the format"
        record.note("/response_format", "dropped", why)
        request = _without(request, "response_format")
    return request


def note_tool_settings(request: Request, record: RequestRecord) -> Request:
    """Record the fields of the body that the provider writes beside these tools."""
    provider = BY_WIRE.get(record.route.wire) if record.route.client == "lm15" else None
    settings = provider.settings_for(request) if provider is not None else {}
    if settings:
        why = f"these tools need a setting beside them, which is sent: {compact(settings)}"
        record.note("/tools", "lowered", why)
    return request


def note_caveat(request: Request, record: RequestRecord) -> Request:
    """Put on record what the client of the route may lose."""
    caveat = record.route.caveat(dict(request)) if record.route.caveat is not None else ""
    if caveat:
        record.note("", "lowered", caveat)
    return request


def refuse_unchosen_calls(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Make calls bad that the tool choice does not allow, or whose tools a hook has taken out."""
    choice = record.canonical.get("tool_choice")  # also one that the route has no form for
    if choice is not None:
        functions = {entry.name for entry in record.decls.entries if isinstance(entry, ToolDecl)}
        calls = of_chosen_tools(calls, choice, functions)
    options = record.call.adapter.options
    if options.hooks and options.validate_args:
        tools = record.canonical.get("tools", ())
        entries = [*tools, *(tool["local"] for tool in tools if "local" in tool)]
        names = [name_in(entry) for entry in entries]
        missing = {decl.name for decl in record.decls.tools}.difference(names)
        if missing:
            # What a tool of the provider's is called with has names of its own, and is no declared function.
            others = [call.name for call in calls if call.name not in missing]
            allowed = list(filter(None, dict.fromkeys((*names, *others))))
            calls = of_allowed_tools(calls, allowed, "the request offers")
    return calls


def _without(request: Request, *keys: str) -> Request:
    fields: Any = {key: value for key, value in request.items() if key not in keys}
    return fields
