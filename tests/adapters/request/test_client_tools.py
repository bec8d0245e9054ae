"""Paused turns, tools in a provider's own words that the program runs, mixtures of tools, and reasoning."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import dspy
import pytest
from provider_rules import refusal
from sending import WIRES, Server, send, serving_bodies
from support import ENGINES, get_weather
from wire_bodies import chat, claude, gemini, responses

import sigadapt
from sigadapt import ToolCalls, ToolResults, choice_from_response
from sigadapt.errors import UnusableAnswer

Json = dict[str, Any]


@pytest.fixture
def wired() -> Iterator[Callable[..., Server]]:
    with ExitStack() as opened:

        def serve(wire: str, **lm: Any) -> Server:
            return opened.enter_context(serving_bodies(wire, **lm))

        yield serve


WEB: Json = {"type": "web_search_20250305", "name": "web_search"}
LOOK: Json = {"type": "text", "text": "Let me look."}
SEARCH: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
SUNNY: Json = {"type": "text", "text": "Sunny."}
PAUSED = claude(LOOK, SEARCH, stop="pause_turn")


@pytest.mark.parametrize("max_pauses", [0, 2])
def test_a_turn_that_pauses_for_ever_ends(wired: Any, max_pauses: int) -> None:
    """conversations: A turn that pauses for ever ends in an error."""
    wire = wired("anthropic")
    with pytest.raises(UnusableAnswer) as caught:
        wire.ask(PAUSED, tools=[get_weather, WEB], options={"max_pauses": max_pauses})
    assert caught.value.code == "paused"
    assert len(wire.sent) == max_pauses + 1
    assert "Let me look." in (caught.value.choice.text or "")


SHOT = dspy.Image(url="data:image/png;base64,iVBORw0KGgo=")
EXITED: Json = {"stdout": "ok", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
EXEC, DELETE = {"type": "exec", "command": ["ls"]}, {"type": "delete_file", "path": "a"}
FOUND: Json = {"tools": [{"type": "function", "name": "f", "parameters": {}}]}
SEEN = {"output": {"type": "computer_screenshot", "image_url": SHOT.url}}
SHELL: Json = {"commands": ["ls"], "max_output_length": 9}
# By name: its declaration, what its call has, the arguments, what the program gives, and what is sent.
OPENAI_TOOLS: dict[str, tuple[Json, Json, Json, Any, Json]] = {
    "shell": (
        {"environment": {}},
        {"action": SHELL},
        SHELL,
        "ok",
        {"output": [EXITED], "max_output_length": 9},
    ),
    "local_shell": ({}, {"action": EXEC}, EXEC, "ok", {"output": "ok"}),
    "apply_patch": ({}, {"operation": DELETE}, DELETE, "ok", {"status": "completed", "output": "ok"}),
    "tool_search": (
        {"execution": "client", "parameters": {"type": "object"}},
        {"execution": "client", "arguments": {"q": "w"}},
        {"q": "w"},
        FOUND,
        {"execution": "client", "status": "completed", **FOUND},
    ),
    "computer_use_preview": ({}, {"action": {"type": "screenshot"}}, {"type": "screenshot"}, SHOT, SEEN),
    "computer": ({}, {"actions": [{"type": "wait"}]}, {"actions": [{"type": "wait"}]}, SHOT, SEEN),
}


@pytest.mark.parametrize("name", OPENAI_TOOLS)
def test_openais_client_tools(wired: Any, name: str) -> None:
    """toolsets: A call of a client tool in a provider's own words."""
    tool, item, args, value, output = OPENAI_TOOLS[name]
    kind = "computer" if "computer" in name else name
    tool, item = {"type": name, **tool}, {"type": f"{kind}_call", "id": "i", "call_id": "c1", **item}
    answered = f"{kind}_output" if kind == "tool_search" else f"{kind}_call_output"
    output = {"type": answered, "id" if name == "local_shell" else "call_id": "c1", **output}
    wire = wired("responses")
    out = wire.ask(responses(item), tools=[get_weather, tool])
    (call,) = out.calls
    assert (call.id, call.name, call.args) == ("c1", name, args)
    calls = ToolCalls.model_validate_json(out.calls.model_dump_json())
    wire.ask(responses(item), tools=[get_weather, tool], results=ToolResults.of(calls, [value]))
    assert tool in wire.sent[-1]["tools"]
    assert wire.sent[-1]["input"][-2:] == [item, output]
    undeclared = wire.ask(responses(item), tools=[get_weather])
    assert [bad.code for bad in undeclared.calls.invalid] == ["unknown_tool"]


BASH: Json = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls -l"}}
CLAUDES: Json = {"type": "bash_20250124", "name": "bash"}
COMMENTARY: Json = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
}
COMMENTARY["content"] = [{"type": "output_text", "text": "Let me look.", "annotations": []}]
LISTING: Json = {"type": "shell_call", "id": "i", "call_id": "c1", "action": {"commands": ["ls -l"]}}
OWN: dict[str, tuple[Json, Json]] = {
    "anthropic": (CLAUDES, claude({"type": "thinking", "thinking": "Hm.", "signature": "MARK"}, LOOK, BASH)),
    "responses": ({"type": "shell", "environment": {"type": "local"}}, responses(COMMENTARY, LISTING)),
}


@pytest.mark.parametrize(("source", "target"), [(a, b) for a in OWN for b in WIRES if a != b])
def test_a_call_in_a_provider_s_own_words_goes_to_another(wired: Any, source: str, target: str) -> None:
    """conversations: A conversation moves in the middle of a round."""
    tool, body = OWN[source]
    calls = wired(source).ask(body, tools=[get_weather, tool]).calls
    saved = ToolCalls.model_validate_json(calls.model_dump_json())
    there = send(target, results=ToolResults.of(saved, ["a.txt"]))
    assert refusal(target, there.body, {}) is None
    text = json.dumps(there.body)
    assert [text.count(word) for word in ("Let me look.", "ls -l", "a.txt", "MARK")] == [1, 1, 1, 0]
    assert source != "anthropic" or [why for why in there.changes if "reasoning" in why.why]
    home = wired(source)
    home.ask(body, tools=[get_weather, tool], results=ToolResults.of(saved, ["a.txt"]))
    assert [word for word in ("Let me look.", "ls -l", "a.txt") if word not in json.dumps(home.sent[0])] == []


MCP: Json = {"type": "mcp", "server_label": "x", "server_url": "https://x.test"}
APPROVAL: Json = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "delete", "server_label": "x"}
APPROVAL["arguments"] = '{"id":1}'


@pytest.mark.parametrize(
    ("value", "failed", "approve"),
    [
        *((True, False, True), ({"approve": True}, False, True), ("yes", False, False)),
        *((1, False, False), (True, True, False), (None, False, False)),
    ],
)
def test_an_approval_fails_closed(wired: Any, value: Any, failed: bool, approve: bool) -> None:
    """toolsets: An approval that a provider asks for."""
    wire = wired("responses")
    out = wire.ask(responses(APPROVAL), tools=[get_weather, MCP])
    (call,) = out.calls
    assert (call.id, call.name) == ("mcpr_1", "mcp_approval_request")
    assert call.args == {"server_label": "x", "name": "delete", "arguments": {"id": 1}}
    wire.ask(responses(APPROVAL), tools=[MCP], results=ToolResults.of(out.calls, [value], errors=[failed]))
    asked, answer = wire.sent[-1]["input"][-2:]
    assert asked == APPROVAL
    assert (answer["type"], answer["approval_request_id"]) == ("mcp_approval_response", "mcpr_1")
    assert answer["approve"] is approve


@pytest.mark.parametrize(
    "server",
    [
        {**MCP, "require_approval": "never"},
        sigadapt.server_tools.McpServer(
            "x", "https://x.test", options={"openai": {"require_approval": "never"}}
        ),
    ],
    ids=["a dict", "an McpServer"],
)
@pytest.mark.parametrize("args", ['{"id":1}', "no JSON", "", None, 3])
def test_an_approval_that_nobody_declared_is_a_bad_call_and_answered_with_no(
    wired: Any, server: Any, args: Any
) -> None:
    """toolsets: An approval of a server that is declared without approvals."""
    wire = wired("responses")
    question = {**APPROVAL, "arguments": args}
    calls = wire.ask(responses(question), tools=[get_weather, server]).calls
    [bad] = calls.invalid
    assert (len(calls), bad.code) == (0, "unknown_tool")
    assert "OpenAI asks for an approval" in bad.message
    results = calls.run([get_weather, server])
    assert [result.is_error for result in results] == [True]
    wire.ask(responses(question), tools=[get_weather, server], results=results)
    answer = wire.sent[-1]["input"][-1]
    assert (answer["type"], answer["approve"]) == ("mcp_approval_response", False)


def test_what_a_provider_ran_itself_is_no_call() -> None:
    """toolsets: What a provider ran itself is no call."""
    in_container = {"type": "container_reference", "container_id": "cntr_1"}
    items: list[Json] = [
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "environment": in_container},
        {"type": "shell_call_output", "call_id": "c1", "output": []},
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}},
        {"type": "custom_tool_call", "call_id": "xs_1", "name": "x_keyword_search", "input": "{}"},
    ]
    choice = choice_from_response(responses(*items))
    assert choice.tool_calls is None


def test_tool_references_reach_claude(wired: Any) -> None:
    """toolsets: A tool that a result refers to."""
    wire = wired("anthropic")
    find: Json = {"name": "find", "parameters": {"type": "object", "properties": {}}}
    out = wire.ask(claude({"type": "tool_use", "id": "t1", "name": "find", "input": {}}), tools=[find])
    found = [{"type": "tool_reference", "tool_name": "get_weather"}]
    late: Json = {"name": "get_weather", "input_schema": {"type": "object"}, "defer_loading": True}
    results = ToolResults.of(out.calls, [found])

    def sent(*tools: Json) -> Any:
        wire.ask(claude(SUNNY, stop="end_turn"), tools=[find, *tools], results=results)
        return wire.sent[-1]["messages"][-1]["content"][0]["content"]

    assert sent(late) == found
    for tools in ((), ({**late, "defer_loading": False},), ({**late, "name": "other"},)):
        assert json.loads(sent(*tools)) == found
    for more in (
        [{**found[0], "cache_control": {"type": "ephemeral"}}],
        [*found, "text"],
        [*found, *found, {}],
    ):
        results = ToolResults.of(out.calls, [more])
        assert json.loads(sent(late)) == more


def test_a_forced_choice_stays_with_the_setting(wired: Any) -> None:
    """request-shaping: Gemini's own tools beside functions."""
    call = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}
    wire = wired("gemini", model="gemini/gemini-3-pro-preview")
    wire.ask(gemini(call), tools=[get_weather, {"googleSearch": {}}], options={"tool_choice": "required"})
    config = wire.sent[0]["toolConfig"]
    assert (config["includeServerSideToolInvocations"], config["functionCallingConfig"]["mode"]) == (
        True,
        "ANY",
    )


CALL: Json = {
    "id": "t1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
}


@pytest.mark.parametrize(
    ("came", "how"),
    [
        ("reasoning", {"model": "openai/qwen"}),
        ("reasoning_content", {"model": "openai/qwen"}),
        *(("reasoning_content", {"model": "deepseek/m", "engine": engine}) for engine in ENGINES),
    ],
)
@pytest.mark.parametrize(
    "asked", [None, False, "reasoning", "reasoning_content", {"openai/qwen": "reasoning"}]
)
def test_reasoning_goes_back_where_it_is_wanted(wired: Any, came: str, how: Json, asked: Any) -> None:
    """
    conversations: Reasoning goes back in the field that the user names
    conversations: Plain reasoning is replayed or on record
    """
    wire = wired("openai", **how)
    if isinstance(asked, dict):
        asked = {how["model"]: "reasoning"}
    options = {"replay_reasoning": asked}
    out = wire.ask(
        chat({"content": None, came: "Hm.", "tool_calls": [CALL]}), tools=[get_weather], options=options
    )
    assert out.calls.reasoning == "Hm."
    results = ToolResults.of(out.calls, ["18 C"])
    wire.ask(chat({"content": "Done."}), tools=[get_weather], results=results, options=options)
    turn = next(row for row in wire.sent[-1]["messages"] if row["role"] == "assistant")
    field: Any = {None: came, False: None}.get(asked, asked) if type(asked) is not dict else "reasoning"
    assert {key: turn[key] for key in turn if key.startswith("reasoning") and turn[key]} == (
        {field: "Hm."} if field else {}
    )
    assert any("reasoning" in why for why in wire.changes) is (field is None)


def test_a_call_left_in_the_thinking_is_read_on_request(wired: Any) -> None:
    """asked-for-leniency: A call that a server left in its thinking."""
    text = 'Hm.\n</think>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    wire = wired("openai")
    out = wire.ask(
        chat({"content": "", "reasoning_content": text}), tools=[get_weather], options={"recover": True}
    )
    assert [(call.args, call.altered) for call in out.calls] == [({"city": "Paris"}, ("recovered",))]
    assert out.calls.reasoning.strip() == "Hm."


def test_a_call_in_two_forms_is_one() -> None:
    """response-choice: A call that comes in two forms is one."""
    choice = choice_from_response(chat({"tool_calls": [CALL], "function_call": CALL["function"]}))
    assert choice.tool_calls is not None
    assert [call.args for call in choice.tool_calls] == [{"city": "Paris"}]
    other = {"name": "get_weather", "arguments": '{"city":"Rome"}'}
    both = choice_from_response(chat({"tool_calls": [CALL], "function_call": other}))
    assert both.tool_calls is not None
    assert len(both.tool_calls) == 2


def test_the_same_tools_are_no_change(wired: Any) -> None:
    """conversations: Tools that change are sent anew, on record."""
    wire = wired("anthropic")
    thought: Json = {"type": "thinking", "thinking": "Weather.", "signature": "c2ln"}  # the provider's state
    use: Json = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}}
    calls = ToolCalls.model_validate_json(wire.ask(claude(thought, use)).calls.model_dump_json())
    wire.ask(claude(SUNNY), results=ToolResults.of(calls, ["18 C"]))
    assert ([tool["name"] for tool in wire.sent[-1]["tools"]], wire.changes) == (["get_weather"], [])
