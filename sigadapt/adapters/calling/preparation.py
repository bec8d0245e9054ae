"""Make the Request of a call, and find every error that can be found before it is sent.

The last is the budget of a request's tools (`max_tool_bytes`), in bytes of the JSON that the model reads. A
deferred tool does not count until it joins. Of a namespace, its name and its description count.
"""

from typing import Any

import dspy

from sigadapt.adapters.calling.agent_steps import refuse_unasked
from sigadapt.adapters.calling.agent_words import with_words
from sigadapt.adapters.calling.call_record import AdapterCall, CallRecord, RequestRecord
from sigadapt.adapters.calling.calling import calling_of
from sigadapt.adapters.lm.routes import controls_of, model_of, route_of, with_replayed_reasoning
from sigadapt.adapters.plan import Plan, without_native_fields
from sigadapt.adapters.request.canonical import Change, build_request
from sigadapt.adapters.request.orphans import heal, with_lost_ids
from sigadapt.adapters.request.prompt import with_instructions, with_last_question, with_tool_names
from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import compact, listed
from sigadapt.providers.wire.openai_tools import in_namespaces
from sigadapt.providers.wire.values import name_in
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.tool_decls import ToolDecls, known_decls, made_once
from sigadapt.signatures.toolset import RequestContext, resolving
from sigadapt.signatures.transcript import read
from sigadapt.text.calls_field import Layout


def prepare(call: AdapterCall) -> Steps[CallRecord]:
    """Make the canonical Request of a call."""
    adapter = call.adapter
    options = call.adapter.options
    plan = call.plan
    tools = call.inputs.get(plan.tools)
    # `type`, because `isinstance(value, ToolDecls)` is true for whatever the field accepts.
    decls = tools if type(tools) is ToolDecls else known_decls(tools)
    if decls is None or not decls.tools:
        decls = yield from _declare(call, decls)
    if plan.defers_bad_calls and not options.confirm:
        refuse_unasked(tools, decls)
    if plan.native_fields:
        plan = without_native_fields(plan, adapter.native_response_types, call.lm, call.settings)
    layout = Layout(plan.calls, adapter.field_marker, plan.others)
    calling = calling_of(call.lm, call.settings, call.facts, options, layout)
    model = model_of(call.lm)
    controls, generation = controls_of(call.lm, call.settings)
    route = route_of(call.lm, call.settings, generation, call.facts)
    if options.replay_reasoning is not None:
        route = with_replayed_reasoning(route, options.replay_reasoning, model)
    form = adapter.response_format(call.lm, plan.text_signature) if call.plan.texts else None
    if form is not None:
        generation.setdefault("response_format", form)
    inputs, repairs = _with_whole_history(call, plan)
    repairs = (*(Change("/tools", "dropped", reason) for reason in decls.left_out), *repairs)
    decls, unlike = adapter.tools_on(route, decls)
    messages, naming = _messages_of(call, plan, inputs, decls)
    repairs = (*repairs, *unlike, *naming)
    request = build_request(model, messages, decls, options, generation)
    return CallRecord(
        call=call,
        plan=plan,
        decls=decls,
        route=route,
        controls=controls,
        calling=calling,
        canonical=request,
        repairs=repairs,
        streamed_field=plan.calls,
        is_recorded=adapter.is_recorded,
        breaks_tokens=route.templated and options.control_tokens == "break",
        bridges_results=options.bridge_results,
    )


def _with_whole_history(call: AdapterCall, plan: Plan) -> tuple[dict[str, Any], tuple[Change, ...]]:
    """Return the inputs with a history that can be sent, and what was changed in it."""
    inputs = call.inputs
    repairs: tuple[Change, ...] = ()
    field = plan.history_fields.history
    if field is not None:
        inputs, repairs = with_lost_ids(plan.history_fields, inputs)
        for demo in call.demos:
            if demo.get(field) is not None and read(dspy.History, demo[field], field).messages:
                why = f"a demonstration is sent without the conversation before it ({field!r})"
                repairs = (*repairs, Change("/messages", "dropped", why))
    if call.turn is not None:
        inputs, words = with_words(call.turn.agent, call.adapter, plan, inputs)
        repairs = (*repairs, *words)
    if call.adapter.options.orphans == "heal":
        inputs, healings = heal(plan, inputs)
        repairs = (*repairs, *healings)
    return inputs, repairs


def _messages_of(
    call: AdapterCall, plan: Plan, inputs: dict[str, Any], decls: ToolDecls
) -> tuple[list[dict[str, Any]], tuple[Change, ...]]:
    """Return the messages of a call; those of an agent name the tools of this request."""
    messages = call.adapter.messages(plan.text_signature, call.demos, inputs)
    if decls.have_instructions:
        messages = with_instructions(messages, decls)
    if not plan.defers_bad_calls:  # it is no agent of DSPy's
        return messages, ()
    if call.turn is not None:
        messages = with_last_question(messages, call.turn.agent.signature)
    return with_tool_names(messages, call.inputs.get(plan.tools), decls)


def _declare(call: AdapterCall, decls: ToolDecls | None) -> Steps[ToolDecls]:
    """Return the declarations of a call, for which toolsets may have to be awaited."""
    plan = call.plan
    tools = call.inputs.get(call.plan.tools)
    if decls is None:
        if tools is None and plan.tools_required:
            fix = f"Pass {plan.tools}=[...]."
            raise InvalidToolDecl("no tools were given", code="missing_tools", field=plan.tools, fix=fix)
        context = RequestContext(call.signature, _inputs_so_far(call), call.settings)
        decls = yield from resolving(() if tools is None else tools, context)
    if not decls.tools and plan.calls_required:
        raise InvalidToolDecl(
            f"{plan.calls!r} requires a call, but no tool is declared",
            code="missing_tools",
            field=plan.tools,
            fix=f"Declare a tool, or make {plan.calls!r} optional with `ToolCalls | None`.",
        )
    return decls


def _inputs_so_far(call: AdapterCall) -> dict[str, Any]:
    """Return the inputs of a call, and those of the conversation that it does not repeat.

    An agent sends its inputs in the first request of a question. Later ones have them in the history.
    """
    field = call.plan.history_fields.history
    history = call.inputs.get(field or "")
    if history is None:
        return call.inputs
    names = call.plan.text_signature.input_fields
    inputs: dict[str, Any] = {}
    for event in read(dspy.History, history, field).messages:
        inputs.update({name: value for name, value in event.items() if name in names and value is not None})
    return {**inputs, **call.inputs}


_MOST_NAMES = 5
_FIX = (
    "Choose tools for each request with Toolset.retrieved, defer them with Toolset.deferred, shorten the "
    "largest, or raise max_tool_bytes."
)


def refuse_large(record: RequestRecord, most: int, field: str) -> None:
    """Refuse a request whose tools are larger than a budget, and name the largest."""
    route = record.route
    tools = record.request.get("tools") or record.offered_tools or []

    def bytes_by_name() -> dict[str, int]:
        read = [tool for tool in tools if not tool.get("defer_loading")]
        if route.search and route.search.namespaces and len(read) < len(tools):
            spaces = [tool["namespace"] for tool in in_namespaces(tools) if "namespace" in tool]
            read += {space["name"]: space for space in spaces}.values()
        return {str(name_in(tool) or tool.get("type")): len(compact(tool).encode()) for tool in read}

    sizes = made_once(tools, "sizes", bytes_by_name)
    total = sum(sizes.values())
    if total <= most:
        return
    names = {alias: name for name, alias in record.names.items()}
    largest = sorted(sizes, key=lambda name: -sizes[name])
    lines = (f"{names.get(name, name)!r} {sizes[name]:,}" for name in largest)
    has = "tool has" if len(sizes) == 1 else "tools have"
    raise InvalidToolDecl(
        f"the request's {len(sizes):,} {has} {total:,} bytes, and max_tool_bytes is {most:,}. The largest: "
        f"{listed(lines, _MOST_NAMES, ', ')}",
        code="over_tool_budget",
        field=field,
        tool=names.get(largest[0], largest[0]),
        fix=_FIX,
    )
