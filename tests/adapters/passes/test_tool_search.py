"""Tools that the model searches for: deferred declarations, namespaces, and calls that another tool makes."""

import json
from typing import Any

import pytest
from internals import Request, lower
from support import LITELLM, NATIVE, NATIVE_OLLAMA

from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl

Json = dict[str, Any]

PARAMETERS: Json = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
ORDERS: Json = {"type": "function", "name": "list_orders", "description": "L.", "parameters": PARAMETERS}
DEFERRED: Json = {**ORDERS, "defer_loading": True}
NOTE: Json = {"type": "custom", "name": "note", "description": "N."}
CRM: Json = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [DEFERRED, NOTE]}
SEARCH: Json = {"type": "tool_search"}
CLAUDES: Json = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


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
