"""Paused turns, tools in a provider's own words that the program runs, mixtures of tools, and reasoning."""

import asyncio
import json
from typing import Any

import dspy
import pytest
from support import get_weather, lm_of

import sigadapt
from sigadapt import ToolCalls, ToolDecls, ToolResults, choice_from_response
from sigadapt.errors import UnusableAnswer
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]


class Ask(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class Wire:
    """A model that answers with the given bodies, one after the other, and keeps what it was sent."""

    def __init__(self, provider: LoopbackProvider, wire: str, answers: list[bytes], **lm: Any) -> None:
        self.provider, self.answers = provider, answers
        self.lm: Any = lm_of(provider, wire, cache=False, num_retries=0, **lm)

    def ask(
        self, *bodies: Json, tools: Any, is_async: bool = False, options: Json | None = None, **inputs: Any
    ) -> Any:
        self.answers[:] = [json.dumps(body).encode() for body in bodies]
        given_options: Any = {"tool_calling": "native", "on_invalid": "keep", **(options or {})}
        adapter = sigadapt.ChatAdapter(**given_options)
        with dspy.context(lm=self.lm, adapter=adapter):
            predict, given = dspy.Predict(Ask), {"question": "?", "tools": ToolDecls(tools), **inputs}
            return asyncio.run(predict.acall(**given)) if is_async else predict(**given)

    @property
    def sent(self) -> list[Json]:
        return [request.body for request in self.provider.received]

    @property
    def changes(self) -> list[str]:
        return [change.why for entry in self.lm.history for change in entry.get("changes") or ()]


@pytest.fixture
def wired() -> Any:
    opened: list[LoopbackProvider] = []

    def wire(name: str, **lm: Any) -> Wire:
        answers: list[bytes] = []
        provider = LoopbackProvider(lambda _: answers.pop(0) if len(answers) > 1 else answers[0])
        opened.append(provider.__enter__())
        return Wire(provider, name, answers, **lm)

    yield wire
    for provider in opened:
        provider.__exit__(None, None, None)


def claude(*blocks: Json, stop: str = "tool_use") -> Json:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    return {**head, "content": [*blocks], "stop_reason": stop}


def responses(*items: Json) -> Json:
    head = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return {**head, "output": [*items]}


def chat(message: Json) -> Json:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


# ---- paused turns ----

WEB: Json = {"type": "web_search_20250305", "name": "web_search"}
LOOK: Json = {"type": "text", "text": "Let me look."}
SEARCH: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
SUNNY: Json = {"type": "text", "text": "Sunny."}
USE: Json = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}}
PAUSED = claude(LOOK, SEARCH, stop="pause_turn")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_paused_turn_goes_back_as_it_came(wired: Any, is_async: bool) -> None:
    """conversations: A paused turn goes on."""
    wire = wired("anthropic")
    again = claude(FOUND, SEARCH, stop="pause_turn")
    out = wire.ask(
        PAUSED, again, claude(FOUND, SUNNY, stop="end_turn"), tools=[get_weather, WEB], is_async=is_async
    )
    assert out.answer == "Let me look.\n\nSunny."
    first, second, third = wire.sent
    assert first["tools"] == second["tools"] == third["tools"]
    assert second["messages"][:-1] == third["messages"][:-1] == first["messages"]
    assert second["messages"][-1] == {"role": "assistant", "content": [LOOK, SEARCH]}
    assert third["messages"][-1] == {"role": "assistant", "content": [LOOK, SEARCH, FOUND, SEARCH]}
    assert [why for why in wire.changes if "paused" in why][-1].endswith("(2)")


def test_a_call_after_a_pause_keeps_every_block(wired: Any) -> None:
    """conversations: A paused turn goes on."""
    wire = wired("anthropic")
    out = wire.ask(PAUSED, claude(FOUND, USE), tools=[get_weather, WEB])
    calls = ToolCalls.model_validate_json(out.calls.model_dump_json())
    wire.ask(
        claude(SUNNY, stop="end_turn"), tools=[get_weather, WEB], results=ToolResults.of(calls, ["18 C"])
    )
    assert wire.sent[-1]["messages"][-2]["content"] == [LOOK, SEARCH, FOUND, USE]


def streamed(stop: str, *blocks: Json) -> bytes:
    head: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    events: list[Json] = [{"type": "message_start", "message": {**head, "usage": {"input_tokens": 1}}}]
    for index, block in enumerate(blocks):
        text, sent = block.get("text"), block.get("input")
        start: Json = {**block, **({"text": ""} if text else {}), **({"input": {}} if sent else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        pieces = [{"type": "text_delta", "text": each} for each in (text or "").partition(" ") if each]
        pieces += [{"type": "input_json_delta", "partial_json": json.dumps(sent)}] if sent else []
        events += [{"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()


@pytest.mark.parametrize("has_call", [False, True])
def test_the_parts_of_a_paused_turn_stream_as_one(has_call: bool) -> None:
    """conversations: A paused turn goes on."""
    rest = [FOUND, SUNNY, *([USE] if has_call else [])]
    answers = [streamed("pause_turn", LOOK, SEARCH), streamed("tool_use" if has_call else "end_turn", *rest)]
    listeners: list[Any] = [dspy.streaming.StreamListener("answer"), sigadapt.listeners.CallListener("calls")]
    with LoopbackProvider(lambda _: answers.pop(0)) as provider:
        lm = lm_of(provider, "anthropic", cache=False)
        adapter = sigadapt.ChatAdapter(tool_calling="native")
        with dspy.context(lm=lm, adapter=adapter, track_usage=True):
            program: Any = dspy.streamify(
                dspy.Predict(Ask), async_streaming=False, stream_listeners=listeners
            )
            *chunks, out = program(question="?", tools=ToolDecls([get_weather, WEB]))
    texts = [chunk for chunk in chunks if chunk.signature_field_name == "answer"]
    assert "".join(chunk.chunk for chunk in texts) == "Let me look.\n\nSunny."
    assert [chunk.is_last_chunk for chunk in texts].count(True) == 1
    assert texts[-1].is_last_chunk
    calls = [chunk.chunk for chunk in chunks if chunk.signature_field_name == "calls"]
    assert [call.args for each in calls for call in each] == [{"city": "Paris"}] * has_call
    assert next(iter(out.get_lm_usage().values()))["completion_tokens"] == 10


def test_the_usage_of_a_paused_turn_adds_up(wired: Any) -> None:
    """conversations: A paused turn goes on."""
    wire = wired("anthropic")
    with dspy.context(track_usage=True):
        out = wire.ask(PAUSED, claude(FOUND, SUNNY, stop="end_turn"), tools=[get_weather, WEB])
    assert next(iter(out.get_lm_usage().values()))["total_tokens"] == 4
    assert [entry["usage"]["total_tokens"] for entry in wire.lm.history] == [2, 2]


@pytest.mark.parametrize("max_pauses", [0, 2])
def test_a_turn_that_pauses_for_ever_ends(wired: Any, max_pauses: int) -> None:
    """conversations: A turn that pauses for ever ends in an error."""
    wire = wired("anthropic")
    with pytest.raises(UnusableAnswer) as caught:
        wire.ask(PAUSED, tools=[get_weather, WEB], options={"max_pauses": max_pauses})
    assert caught.value.code == "paused"
    assert len(wire.sent) == max_pauses + 1
    assert "Let me look." in (caught.value.choice.text or "")


# ---- tools that the program runs ----

CLAUDE_TOOLS: list[tuple[Json, Json]] = [
    ({"type": "bash_20250124", "name": "bash"}, {"command": "ls"}),
    ({"type": "memory_20250818", "name": "memory"}, {"command": "view", "path": "/memories"}),
    ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, {"command": "view"}),
    ({"type": "computer_20251124", "name": "computer"}, {"action": "screenshot"}),
]


@pytest.mark.parametrize(("tool", "args"), CLAUDE_TOOLS, ids=[tool["name"] for tool, _ in CLAUDE_TOOLS])
def test_claudes_client_tools(wired: Any, tool: Json, args: Json) -> None:
    """toolsets: A call of a client tool in a provider's own words."""
    wire, use = wired("anthropic"), {"type": "tool_use", "id": "t1", "name": tool["name"], "input": args}
    out = wire.ask(claude(use), tools=[get_weather, tool])
    (call,) = out.calls
    assert (call.name, call.args) == (tool["name"], args)
    assert call.bind(ToolDecls([tool])) == args
    wire.ask(
        claude(SUNNY, stop="end_turn"), tools=[get_weather, tool], results=ToolResults.of(out.calls, ["ok"])
    )
    *_, turn, results = wire.sent[-1]["messages"]
    assert turn["content"] == [use]
    assert results["content"] == [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    undeclared = wire.ask(claude(use), tools=[get_weather])
    assert [bad.code for bad in undeclared.calls.invalid] == ["unknown_tool"]


SHOT = dspy.Image(url="data:image/png;base64,iVBORw0KGgo=")
EXITED: Json = {"stdout": "ok", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
OPENAI_TOOLS: dict[str, tuple[Json, Json, Json, Any, Json]] = {
    "shell": (
        {"type": "shell", "environment": {"type": "local"}},
        {
            "type": "shell_call",
            "id": "i",
            "call_id": "c1",
            "action": {"commands": ["ls"], "max_output_length": 9},
        },
        {"commands": ["ls"], "max_output_length": 9},
        "ok",
        {"type": "shell_call_output", "call_id": "c1", "output": [EXITED], "max_output_length": 9},
    ),
    "local_shell": (
        {"type": "local_shell"},
        {
            "type": "local_shell_call",
            "id": "i",
            "call_id": "c1",
            "action": {"type": "exec", "command": ["ls"]},
        },
        {"type": "exec", "command": ["ls"]},
        "ok",
        {"type": "local_shell_call_output", "id": "c1", "output": "ok"},
    ),
    "apply_patch": (
        {"type": "apply_patch"},
        {
            "type": "apply_patch_call",
            "id": "i",
            "call_id": "c1",
            "operation": {"type": "delete_file", "path": "a"},
        },
        {"type": "delete_file", "path": "a"},
        "ok",
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "ok"},
    ),
    "tool_search": (
        {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
        {
            "type": "tool_search_call",
            "id": "i",
            "call_id": "c1",
            "execution": "client",
            "arguments": {"q": "w"},
        },
        {"q": "w"},
        {"tools": [{"type": "function", "name": "f", "parameters": {}}]},
        {
            "type": "tool_search_output",
            "call_id": "c1",
            "execution": "client",
            "status": "completed",
            "tools": [{"type": "function", "name": "f", "parameters": {}}],
        },
    ),
    "computer_use_preview": (
        {"type": "computer_use_preview", "environment": "browser"},
        {"type": "computer_call", "id": "i", "call_id": "c1", "action": {"type": "screenshot"}},
        {"type": "screenshot"},
        SHOT,
        {
            "type": "computer_call_output",
            "call_id": "c1",
            "output": {"type": "computer_screenshot", "image_url": SHOT.url},
        },
    ),
    "computer": (
        {"type": "computer"},
        {"type": "computer_call", "id": "i", "call_id": "c1", "actions": [{"type": "wait"}]},
        {"actions": [{"type": "wait"}]},
        SHOT,
        {
            "type": "computer_call_output",
            "call_id": "c1",
            "output": {"type": "computer_screenshot", "image_url": SHOT.url},
        },
    ),
}


@pytest.mark.parametrize("name", OPENAI_TOOLS)
def test_openais_client_tools(wired: Any, name: str) -> None:
    """toolsets: A call of a client tool in a provider's own words."""
    tool, item, args, value, output = OPENAI_TOOLS[name]
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


def test_a_failed_client_tool_says_so(wired: Any) -> None:
    """toolsets: A call of a client tool in a provider's own words."""
    for name, part in (("shell", '"exit_code": 1'), ("apply_patch", '"status": "failed"')):
        tool, item, *_ = OPENAI_TOOLS[name]
        wire = wired("responses")
        out = wire.ask(responses(item), tools=[get_weather, tool])
        wire.ask(responses(item), tools=[tool], results=ToolResults.of(out.calls, ["no"], errors=[True]))
        assert part in json.dumps(wire.sent[-1]["input"][-1])


MCP: Json = {"type": "mcp", "server_label": "x", "server_url": "https://x.test"}
APPROVAL: Json = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "name": "delete",
    "arguments": '{"id":1}',
    "server_label": "x",
}


@pytest.mark.parametrize(
    ("value", "failed", "approve"),
    [
        (True, False, True),
        ({"approve": True}, False, True),
        ("yes", False, False),
        (1, False, False),
        (True, True, False),
        (None, False, False),
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


FUNCTION_CALL: Json = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "t1",
    "name": "get_weather",
    "arguments": '{"city":"Paris"}',
    "status": "completed",
}


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


def test_a_shell_with_its_output_was_run_by_openai(wired: Any) -> None:
    """toolsets: What a provider ran itself is no call."""
    shell: Json = {"type": "shell_call", "call_id": "s1", "action": {"commands": ["ls"]}}
    output: Json = {"type": "shell_call_output", "call_id": "s1", "output": []}
    items = [shell, output, FUNCTION_CALL]
    wire = wired("responses")
    out = wire.ask(responses(*items), tools=[get_weather])
    assert [call.name for call in out.calls] == ["get_weather"]
    done: Json = {"type": "message", "content": [{"type": "output_text", "text": "Done."}]}
    wire.ask(responses(done), tools=[get_weather], results=ToolResults.of(out.calls, ["18 C"]))
    *_, first, second, third, result = wire.sent[-1]["input"]
    assert [first, second, third] == items
    assert result["call_id"] == "t1"


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


# ---- tools beside tools ----


MIXTURES: list[tuple[str, list[Any], str | None]] = [
    ("gemini/gemini-3-pro-preview", [get_weather, {"googleSearch": {}}], "VALIDATED"),
    ("gemini/gemini-3-pro-preview", [get_weather], None),
    ("gemini/gemini-3-pro-preview", [{"googleSearch": {}}], None),
    ("gemini/gemini-2.5-pro", [get_weather, {"googleSearch": {}}], None),
]


@pytest.mark.parametrize(("model", "tools", "mode"), MIXTURES)
def test_geminis_mixtures_have_their_setting(wired: Any, model: str, tools: Any, mode: str | None) -> None:
    """request-shaping: Gemini's own tools beside functions."""
    body = {"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]}
    wire = wired("gemini", model=model)
    wire.ask(body, tools=tools)
    config = wire.sent[0].get("toolConfig", {})
    assert config.get("includeServerSideToolInvocations", False) is (mode is not None)
    assert config.get("functionCallingConfig", {}).get("mode") == mode
    assert any("includeServerSideToolInvocations" in why for why in wire.changes) is (mode is not None)


def test_a_forced_choice_stays_with_the_setting(wired: Any) -> None:
    """request-shaping: Gemini's own tools beside functions."""
    call = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}
    body = {"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}
    wire = wired("gemini", model="gemini/gemini-3-pro-preview")
    wire.ask(body, tools=[get_weather, {"googleSearch": {}}], options={"tool_choice": "required"})
    config = wire.sent[0]["toolConfig"]
    assert (config["includeServerSideToolInvocations"], config["functionCallingConfig"]["mode"]) == (
        True,
        "ANY",
    )


# ---- reasoning of OpenAI-like servers ----

CALL: Json = {
    "id": "t1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
}


@pytest.mark.parametrize("came", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize(
    "asked", [None, False, "reasoning", "reasoning_content", {"openai/qwen": "reasoning"}]
)
def test_reasoning_goes_back_where_it_is_wanted(wired: Any, came: str, asked: Any) -> None:
    """conversations: Reasoning goes back in the field that the user names."""
    wire = wired("openai", model="openai/qwen")
    options = {"replay_reasoning": asked}
    out = wire.ask(
        chat({"content": None, came: "Hm.", "tool_calls": [CALL]}), tools=[get_weather], options=options
    )
    assert out.calls.reasoning == "Hm."
    results = ToolResults.of(out.calls, ["18 C"])
    wire.ask(chat({"content": "Done."}), tools=[get_weather], results=results, options=options)
    turn = next(row for row in wire.sent[-1]["messages"] if row["role"] == "assistant")
    field: Any = {None: came, False: None}.get(asked, asked) if type(asked) is not dict else "reasoning"
    assert {key: turn[key] for key in turn if key.startswith("reasoning")} == (
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


# ---- small ----


def test_a_call_in_two_forms_is_one() -> None:
    """response-choice: A call that comes in two forms is one."""
    choice = choice_from_response(chat({"tool_calls": [CALL], "function_call": CALL["function"]}))
    assert choice.tool_calls is not None
    assert [call.args for call in choice.tool_calls] == [{"city": "Paris"}]
    other = {"name": "get_weather", "arguments": '{"city":"Rome"}'}
    both = choice_from_response(chat({"tool_calls": [CALL], "function_call": other}))
    assert both.tool_calls is not None
    assert len(both.tool_calls) == 2
