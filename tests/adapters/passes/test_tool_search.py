"""Tools that the model searches for: deferred declarations, namespaces, and calls that another tool makes."""

import json
from typing import Any

import pytest
from sending import ROUTES, names_of, send

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


def test_a_search_of_another_provider_becomes_this_one_s():
    """request-shaping: Deferred tools are searched for in the wire's own way."""
    sent = send("anthropic", tools=[SEARCH, DEFERRED], lm={"model": "anthropic/claude-opus-4-8"})
    own = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    assert (sent.body["tools"][0], sent.whats) == (own, [("/tools/0", "lowered")])
    sent = send("responses", tools=[CLAUDES, DEFERRED], lm={"model": "openai/gpt-5.4"})
    assert SEARCH in sent.body["tools"]
    assert ("/tools/0", "lowered") in sent.whats


@pytest.mark.parametrize(
    ("wire", "engine"), [route for route in ROUTES if route[0] in ("openai", "gemini", "ollama")]
)
def test_where_there_is_no_search_a_declared_one_is_dropped(wire: str, engine: str):
    """request-shaping: A search that a wire lacks is dropped."""
    sent = send(wire, engine, tools=[SEARCH, {**ORDERS, "name": "list.orders"}])
    assert len(names_of(sent.body)) == 1
    assert ("/tools/0", "dropped") in sent.whats
    renamed = [where for where, what in sent.whats if what == "renamed"]
    assert renamed in ([], ["/tools/1/function/name"]), "a place is that of the request as declared"
    assert "tool_search" not in json.dumps(sent.body)
