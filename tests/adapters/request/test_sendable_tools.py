"""What a declaration says beside its function leaves in the wire's own place, or is on record."""

import copy
import importlib
from collections.abc import Callable
from typing import Any

import mcp.types
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import WIRES, changes_of, members, send
from support import ENGINES, json_values
from tables import table

from sigadapt import ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl

Json = dict[str, Any]

SCHEMA: Json = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
SHAPES: dict[str, Callable[[Json], Json]] = {
    "chat": lambda fields: {
        "type": "function",
        "function": {"name": "f", "description": "F.", "parameters": SCHEMA},
        **fields,
    },
    "chat, within": lambda fields: {
        "type": "function",
        "function": {"name": "f", "description": "F.", "parameters": SCHEMA, **fields},
    },
    "responses": lambda fields: {
        "type": "function",
        "name": "f",
        "description": "F.",
        "parameters": SCHEMA,
        **fields,
    },
    "anthropic": lambda fields: {"name": "f", "description": "F.", "input_schema": SCHEMA, **fields},
    "mcp": lambda fields: {"name": "f", "description": "F.", "inputSchema": SCHEMA, **fields},
    "bedrock": lambda fields: {
        "toolSpec": {"name": "f", "description": "F.", "inputSchema": {"json": SCHEMA}, **fields}
    },
    "gemini": lambda fields: {
        "functionDeclarations": [{"name": "f", "description": "F.", "parametersJsonSchema": SCHEMA, **fields}]
    },
    "bare": lambda fields: {"name": "f", "description": "F.", "parameters": SCHEMA, **fields},
}
KNOWN: Json = {
    "cache_control": {"type": "ephemeral"},
    "defer_loading": True,
    "allowed_callers": ["code_execution_20260120"],
    "input_examples": [{"q": "x"}],
    "eager_input_streaming": True,
    "output_schema": {"type": "string"},
    "behavior": "BLOCKING",
    "_meta": {"a": 1},
    "nobody_knows_yet": 1,
}

FOR_CLIENTS = ("title", "annotations", "execution", "icons")


extras = st.dictionaries(
    st.text(min_size=1).filter(lambda key: key not in ("type", "function", "custom")), json_values, max_size=4
)
ELSEWHERE = ("outputSchema", "responseJsonSchema", "response_json_schema")
"""What leaves under another name."""


@settings(max_examples=share(60))
@given(extras, st.sampled_from(WIRES[:4]))
def test_any_declared_extra_field_leaves_or_is_recorded(fields: Json, wire: str):
    """request-shaping: A declared field leaves or is recorded."""
    sent = send(wire, tools=ToolDecls([ToolDecl("f", extras=fields)]))
    [tool] = sent.body["tools"]
    [tool] = tool.get("functionDeclarations", [tool])
    dropped = {
        change.where.removeprefix("/tools/0/").replace("~1", "/").replace("~0", "~")
        for change in sent.changes
        if change.what == "dropped"
    }
    held = {key for key in fields if tool.get(key, tool) == fields[key]}
    assert dropped | held >= fields.keys() - {*FOR_CLIENTS, *ELSEWHERE}
    assert dropped.isdisjoint(tool)


SEARCHES: dict[str, Json] = {
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    "responses": {"type": "tool_search"},
}
CLAUDE = ("cache_control", "defer_loading", "allowed_callers", "input_examples", "eager_input_streaming")
RESPONSES = {"defer_loading": True, "allowed_callers": ["direct"], "output_schema": {"type": "string"}}
TAKEN = [
    *((wire, engine, {key: KNOWN[key]}) for wire in ("anthropic",) for engine in ENGINES for key in CLAUDE),
    *(("responses", engine, {key: value}) for engine in ENGINES for key, value in RESPONSES.items()),
    *(
        ("gemini", "auto", fields)
        for fields in (
            {"behavior": "NON_BLOCKING"},
            {"responseJsonSchema": {"type": "string"}},
            {"response": {"type": "STRING"}},
        )
    ),
]


@pytest.mark.parametrize(("wire", "engine", "fields"), TAKEN, ids=str)
def test_a_field_that_a_wire_has_is_on_it(wire: str, engine: str, fields: Json):
    """request-shaping: A declared field leaves or is recorded."""
    shape = SHAPES["gemini" if wire == "gemini" else "anthropic"]
    search = [SEARCHES[wire]] if "defer_loading" in fields else []
    sent = send(wire, engine, tools=[shape(fields), *search])
    changes, tools = sent.changes, sent.body["tools"]
    tool = tools[-1 if wire == "responses" else 0]
    tool = tool["functionDeclarations"][0] if wire == "gemini" else tool
    word = {"gemini": "parametersJsonSchema", "anthropic": "input_schema"}.get(wire, "parameters")
    beside = {"type": tool["type"]} if "type" in tool else {}
    if search and wire == "responses":
        [tool] = tool["tools"]
        beside = {"type": "function"}
        changes = [change for change in changes if "namespaces" not in change.why]
    assert tool == {"name": "f", "description": "F.", word: SCHEMA, **beside, **fields}
    assert not changes


def test_an_mcp_tool_says_what_its_result_is():
    """request-shaping: A declared field leaves or is recorded."""
    tool = mcp.types.Tool.model_validate(
        {
            "name": "f",
            "inputSchema": SCHEMA,
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            "_meta": {"a": 1},
        }
    )
    responses, gemini, claude = (send(wire, tools=[tool]) for wire in ("responses", "gemini", "anthropic"))
    assert responses.body["tools"][0]["output_schema"] == {"type": "object"}
    assert members(gemini.body["tools"], "responseJsonSchema") == [{"type": "object"}]
    wheres = [change.where for change in claude.changes]
    assert sorted(wheres) == ["/tools/0/_meta", "/tools/0/outputSchema"], "annotations are for clients"


def test_plain_tools_stay_what_they_are():
    """request-shaping: Tools travel as declared where nothing else is said."""
    for wire in WIRES[:4]:
        sent = send(wire, tools=[{"name": "f", "parameters": SCHEMA}])
        words = ("parameters", "input_schema", "parametersJsonSchema")
        assert [each for word in words for each in members(sent.body["tools"], word)] == [SCHEMA]
        assert sent.changes == []


def test_a_field_said_twice_with_two_values_is_refused():
    """tool-declarations: Something that declares no tool is refused."""
    with pytest.raises(InvalidToolDecl, match="'x' twice"):
        ToolDecl.of({"type": "function", "x": 1, "function": {"name": "f", "x": 2}})
    assert ToolDecl.of({"type": "function", "x": 1, "function": {"name": "f", "x": 1}}).extras == {"x": 1}


@pytest.mark.parametrize("key", ["type", "function", "custom"])
def test_extras_do_not_take_the_declaration_s_place(key: str):
    """tool-declarations: Further fields are kept as written."""
    with pytest.raises(InvalidToolDecl, match=key) as caught:
        ToolDecl("f", extras={key: 1})
    assert caught.value.code == "invalid_field"


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_strict_is_sent_as_it_was_said(wire: str, strict: bool):
    """request-shaping: A strict flag goes out only on request."""
    closed = {**SCHEMA, "additionalProperties": False}
    sent = send(wire, tools=[{"name": "f", "parameters": closed, "strict": strict}])
    assert (members(sent.body["tools"], "strict"), sent.changes) == ([strict], [])


STRICTLY: list[tuple[Json, str | None]] = table(__file__, "STRICTLY")


@pytest.mark.parametrize(("schema", "refused"), STRICTLY)
def test_each_provider_s_strict_mode_has_its_own_rules(schema: Json, refused: str | None):
    """request-shaping: A schema that strict mode cannot take is refused."""
    tools = [{"name": "f", "parameters": schema, "strict": True}]
    if refused is None:
        [tool] = send("anthropic", tools=tools).body["tools"]
        assert tool["input_schema"]["additionalProperties"] is False
        return
    with pytest.raises(InvalidToolDecl) as caught:
        send("anthropic", tools=tools)
    assert caught.value.code == "not_strict"
    assert (caught.value.path or "").endswith(refused)


ROOT: Json = {
    "type": "object",
    "title": "F",
    "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/B"}},
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"B": {"type": "string"}},
    "anyOf": [{"required": ["a"]}],
    "not": {"required": ["z"]},
    "minProperties": 1,
    "dependentRequired": {"a": ["b"]},
}


def schema_sent(client: str) -> Json:
    """The root that LiteLLM makes of `ROOT`."""
    tool = {"type": "function", "function": {"name": "f", "parameters": copy.deepcopy(ROOT)}}
    if client == "anthropic":
        made: Any = litellm_module("llms.anthropic.chat.transformation").AnthropicConfig()
        return made._map_tool_helper(tool)[0]["input_schema"]
    if client == "bedrock":
        made = litellm_module("litellm_core_utils.prompt_templates.factory")
        return made._bedrock_tools_pt([tool], model="anthropic.claude-3")[0]["toolSpec"]["inputSchema"][
            "json"
        ]
    made = litellm_module("llms.azure.chat.gpt_transformation").AzureOpenAIConfig()
    body: Json = made.transform_request("m", [], {"tools": [tool]}, {}, {})
    return body["tools"][0]["function"]["parameters"]


def litellm_module(name: str) -> Any:
    return importlib.import_module(f"litellm.{name}")


@pytest.mark.parametrize("client", ["anthropic", "bedrock", "azure"])
def test_keywords_at_the_root_of_a_schema(client: str):
    """tool-check: Keywords that are lost at a schema's root are told."""
    model = {"bedrock": "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"}.get(client, f"{client}/m")
    tools = [{"name": "f", "parameters": ROOT}]
    lost = [key for key in ROOT if key not in schema_sent(client) and key != "title"]
    if client == "bedrock":
        lost.remove("$defs")  # LiteLLM writes what they define in the place of each reference
    (change,) = changes_of(model, tools=tools)
    assert (change.where, change.what) == ("/tools/0/function/parameters", "lowered")
    assert f"leaves out {', '.join(lost)} at the root" in change.why
    assert not send("anthropic", tools=tools).changes
