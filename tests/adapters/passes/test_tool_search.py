"""Tools that the model searches for: deferred declarations, namespaces, and calls that another tool makes."""

import json
from typing import Any

import dspy
import pytest
from internals import Request, lower
from support import ENGINES, LITELLM, NATIVE, NATIVE_OLLAMA, Ask, lm_of

import sigadapt
from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]

PARAMETERS: Json = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
ORDERS: Json = {"type": "function", "name": "list_orders", "description": "L.", "parameters": PARAMETERS}
DEFERRED: Json = {**ORDERS, "defer_loading": True}
NOTE: Json = {"type": "custom", "name": "note", "description": "N."}
CRM: Json = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [DEFERRED, NOTE]}
SEARCH: Json = {"type": "tool_search"}
CLAUDES: Json = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
CLAUDE_ORDERS: Json = {
    "name": "list_orders",
    "description": "L.",
    "input_schema": PARAMETERS,
    "defer_loading": True,
}


def responses(*items: Json) -> Json:
    head = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    return {
        **head,
        "output": list(items),
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }


def ask(provider: LoopbackProvider, wire: str, engine: str, tools: Any) -> Any:
    lm: Any = lm_of(provider, wire, engine)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native", on_invalid="keep")):
        out = dspy.Predict(Ask)(question="Hm?", tools=tools)
    return out, lm.history[-1].get("changes") or ()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_namespace_is_declared_and_its_tools_are_called(engine: str):
    """tool-declarations: The tools of a namespace are declared."""
    found: list[Json] = [
        {
            "id": "ts_1",
            "type": "tool_search_call",
            "arguments": {},
            "execution": "server",
            "status": "completed",
        },
        {
            "id": "to_1",
            "type": "tool_search_output",
            "execution": "server",
            "status": "completed",
            "tools": [CRM],
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "c1",
            "name": "list_orders",
            "namespace": "crm",
            "arguments": '{"id":"7"}',
            "status": "completed",
        },
    ]
    with LoopbackProvider([responses(*found)]) as provider:
        out, changes = ask(provider, "responses", engine, [{"name": "now"}, CRM, SEARCH])
    _, namespace, search = provider.received[0].body["tools"]
    assert (namespace, search, changes) == (CRM, SEARCH, ())
    assert [(call.name, call.args) for call in out.calls] == [("list_orders", {"id": "7"})]
    assert not out.calls.invalid


def test_namespaces_keep_their_place_and_survive_json():
    """tool-declarations: The tools of a namespace are declared."""
    other = {**CRM, "name": "erp", "tools": [{**ORDERS, "name": "stock"}]}
    decls = ToolDecls([CRM, other, {"name": "now"}])
    assert [decl.name for decl in decls] == ["list_orders", "note", "stock", "now"]
    again = ToolDecls.model_validate_json(decls.model_dump_json())
    assert again == decls
    assert again.to_openai() == decls.to_openai()
    with pytest.raises(InvalidToolDecl, match="list_orders"):
        ToolDecls([CRM, {**CRM, "name": "erp"}])


@pytest.mark.parametrize("tools", [None, "x", [1], [{"type": "web_search"}], [{"name": "f"}]])
def test_a_namespace_of_something_else_is_refused(tools: Any):
    """tool-declarations: Something that declares no tool is refused."""
    with pytest.raises(InvalidToolDecl):
        ToolDecls([{**CRM, "tools": tools}])


@pytest.mark.parametrize("engine", ENGINES)
def test_claude_searches_for_deferred_tools(engine: str):
    """request-shaping: Deferred tools are searched for in the wire's own way."""
    with LoopbackProvider(
        [
            {
                "content": [{"type": "text", "text": "Hi."}],
                "type": "message",
                "stop_reason": "end_turn",
                **USAGE,
            }
        ]
    ) as provider:
        _, changes = ask(provider, "anthropic", engine, [CLAUDES, CLAUDE_ORDERS])
    search, orders = provider.received[0].body["tools"]
    assert (search, changes) == (CLAUDES, ())
    assert {key: orders[key] for key in CLAUDE_ORDERS} == CLAUDE_ORDERS


USAGE: Json = {"id": "m", "role": "assistant", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}


def test_a_call_that_another_tool_made_is_a_call():
    """request-shaping: Deferred tools are searched for in the wire's own way."""
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    use = {"type": "tool_use", "id": "t1", "name": "list_orders", "input": {"id": "7"}, "caller": caller}
    body = {"type": "message", "content": [use], "stop_reason": "tool_use", **USAGE}
    allowed = {**CLAUDE_ORDERS, "allowed_callers": ["code_execution_20260120"]}
    del allowed["defer_loading"]
    code = {"type": "code_execution_20260120", "name": "code_execution"}
    with LoopbackProvider([body]) as provider:
        out, changes = ask(provider, "anthropic", "auto", [allowed, code])
    assert [(call.id, call.args) for call in out.calls] == [("t1", {"id": "7"})]
    assert (provider.received[0].body["tools"], changes) == ([allowed, code], ())


def request(*tools: Any) -> Request:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": ToolDecls(tools).canonical,
    }


def wheres(sent: Any) -> list[tuple[str, str]]:
    return [(change.where, change.what) for change in sent.changes]


def test_a_search_of_another_provider_becomes_this_one_s():
    """request-shaping: Deferred tools are searched for in the wire's own way."""
    sent = lower(request(SEARCH, DEFERRED), NATIVE["anthropic"])
    assert sent.request.get("tools", [])[0] == {
        "type": "tool_search_tool_bm25_20251119",
        "name": "tool_search_tool_bm25",
    }
    assert wheres(sent) == [("/tools/0", "lowered")]
    sent = lower(request(CLAUDES, DEFERRED), NATIVE["openai-responses"])
    assert (sent.request.get("tools", [])[0], wheres(sent)) == (SEARCH, [("/tools/0", "lowered")])


PLAIN = [route for route in (*NATIVE.values(), *LITELLM.values(), NATIVE_OLLAMA) if not route.search]


@pytest.mark.parametrize("route", PLAIN, ids=lambda to: f"{to.client}-{to.wire}-{to.models.server}")
def test_where_there_is_no_search_a_declared_one_is_dropped(route: Any):
    """request-shaping: A search that a wire lacks is dropped."""
    sent = lower(request(SEARCH, {**ORDERS, "name": "list.orders"}), route)
    [tool] = sent.request.get("tools", [])
    assert tool["function"]["parameters"] == PARAMETERS
    assert ("/tools/0", "dropped") in wheres(sent)
    renamed = [where for where, what in wheres(sent) if what == "renamed"]
    assert renamed in ([], ["/tools/1/function/name"]), "a place is that of the request as declared"
    assert "tool_search" not in json.dumps(sent.request)


def test_a_namespace_elsewhere_is_its_tools():
    """request-shaping: A declared field leaves or is recorded."""
    sent = lower(request({**CRM, "tools": [ORDERS]}), NATIVE["anthropic"])
    assert [tool["function"]["name"] for tool in sent.request.get("tools", [])] == ["list_orders"]
    assert wheres(sent) == [("/tools/0/namespace", "dropped")]
