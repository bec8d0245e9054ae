"""Tools that a conversation adds or takes away are declared where they change, so that the cache stays."""

import json
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from support import Talk, get_weather, lm_of

import sigadapt
from sigadapt import ToolCalls, ToolResults
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]
OPUS, GPT = "anthropic/claude-opus-5", "openai/gpt-5"
BETA = "inline-tools-2026-09-15"


def query(sql: str) -> str:
    """Run a query."""
    raise AssertionError("a tool was executed")


def pay(amount: int) -> str:
    """Pay."""
    raise AssertionError("a tool was executed")


def claude(*blocks: Json) -> Json:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    return {**head, "content": [*blocks], "stop_reason": stop}


def responses(*items: Json) -> Json:
    head = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return {**head, "output": [*items]}


OTHER: Json = {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}
DONE: Json = {"type": "text", "text": "Done."}


def use(number: int, name: str = "get_weather", **args: Any) -> Json:
    return {"type": "tool_use", "id": f"t{number}", "name": name, "input": args or {"city": "Paris"}}


def function_call(number: int) -> Json:
    head = {"type": "function_call", "id": f"fc_{number}", "call_id": f"t{number}", "status": "completed"}
    return {**head, "name": "get_weather", "arguments": '{"city":"Paris"}'}


class Talking:
    """One conversation, which remembers its rounds and what was sent."""

    def __init__(self, provider: LoopbackProvider) -> None:
        self.provider, self.body = provider, claude(DONE)
        self.results: ToolResults | None = None

    def ask(self, body: Json, tools: list[Any], model: str = OPUS, **options: Any) -> Any:
        self.body = body
        wire = "anthropic" if model.startswith("anthropic") else "responses"
        given: Any = {"tool_calling": "native", "on_invalid": "keep", **options}
        lm: Any = lm_of(self.provider, wire, model=model, cache=False, num_retries=0)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(**given)):
            out: Any = dspy.Predict(Talk)(question="?", tools=tools, results=self.results)
        self.changes = [change.why for entry in lm.history for change in entry.get("changes") or ()]
        if out.calls:
            calls = ToolCalls.model_validate_json(out.calls.model_dump_json())
            results = ToolResults.of(calls, ["18 C"] * len(calls))
            rounds = (*self.results.rounds, *results.rounds) if self.results else results.rounds
            self.results = ToolResults(rounds=rounds)
        return out

    @property
    def sent(self) -> list[Json]:
        return [request.body for request in self.provider.received]


@pytest.fixture
def talking() -> Iterator[Talking]:
    with LoopbackProvider(lambda _: json.dumps(talk.body).encode()) as provider:
        talk = Talking(provider)
        yield talk


def names(tools: Any) -> list[str]:
    return [tool["name"] for tool in tools]


def test_claude_is_told_where_the_tools_changed(talking: Talking) -> None:
    """conversations: Tools that change are declared where they change."""
    talking.ask(claude(use(1)), [get_weather, pay])
    talking.ask(claude(use(2)), [get_weather, pay, query])
    out = talking.ask(claude(use(3), use(4, "query", sql="x"), use(5, "pay", amount=1)), [get_weather, query])
    assert [call.name for call in out.calls] == ["get_weather", "query"]
    assert [(call.name, call.code) for call in out.calls.invalid] == [("pay", "unknown_tool")]
    first, second, third = talking.sent
    assert first["tools"] == second["tools"] == third["tools"]
    added, removed = second["messages"][-1], third["messages"][-1]
    (addition,) = added["content"]
    assert (added["role"], addition["type"], addition["tool"]["type"]) == (
        "system",
        "tool_addition",
        "tool_definition",
    )
    assert addition["tool"]["definition"]["name"] == "query"
    assert removed == {
        "role": "system",
        "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "pay"}}],
    }
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert third["messages"][: len(second["messages"])] == second["messages"]
    headers = [request.headers for request in talking.provider.received]
    assert [BETA in str(each).lower() for each in headers] == [False, True, True]
    assert any("cache stays" in why for why in talking.changes)


def test_openai_is_told_of_added_tools(talking: Talking) -> None:
    """conversations: Tools that change are declared where they change."""
    talking.ask(responses(function_call(1)), [get_weather], GPT)
    talking.ask(responses(function_call(2)), [get_weather, query], GPT)
    first, second = talking.sent
    assert first["tools"] == second["tools"]
    assert second["input"][: len(first["input"])] == first["input"]
    item = second["input"][-1]
    assert (item["type"], item["role"], names(item["tools"])) == ("additional_tools", "developer", ["query"])
    talking.ask(responses(function_call(3)), [query], GPT)  # no item takes a tool away
    assert names(talking.sent[-1]["tools"]) == ["query"]
    assert any("anew" in why for why in talking.changes)


@pytest.mark.parametrize(
    ("model", "tools"),
    [
        ("anthropic/claude-sonnet-4-6", [get_weather, query]),
        ("anthropic/claude-sonnet-5", [get_weather, query]),
        (OPUS, [OTHER, query]),
    ],
    ids=["an older model", "a model without them", "a tool with another schema"],
)
def test_elsewhere_the_list_is_sent_anew(talking: Talking, model: str, tools: list[Any]) -> None:
    """conversations: Tools that change are declared where they change."""
    talking.ask(claude(use(1)), [get_weather])
    talking.ask(claude(DONE), tools, model)
    assert names(talking.sent[-1]["tools"]) == ["get_weather", "query"]
    assert [row["role"] for row in talking.sent[-1]["messages"]] == ["user", "assistant", "user"]
    assert any("anew" in why for why in talking.changes)


def test_a_compatible_server_gets_the_list_anew(talking: Talking) -> None:
    """conversations: Tools that change are declared where they change."""
    talking.ask(responses(function_call(1)), [get_weather], "openai/gpt-oss-20b")
    talking.ask(responses(function_call(2)), [get_weather, query], "openai/gpt-oss-20b")
    assert names(talking.sent[-1]["tools"]) == ["get_weather", "query"]
    assert all(item.get("type") != "additional_tools" for item in talking.sent[-1]["input"])


def test_the_same_tools_change_nothing(talking: Talking) -> None:
    """conversations: Tools that change are declared where they change."""
    talking.ask(claude(use(1)), [get_weather, query])
    out = talking.ask(claude(use(2)), [get_weather, query])
    assert [row["role"] for row in talking.sent[-1]["messages"]] == ["user", "assistant", "user"]
    assert talking.changes == []
    assert "Weather for a city" not in out.calls.model_dump_json()  # the first turn has the definitions


def test_names_that_travel_change_with_their_tools(talking: Talking) -> None:
    """conversations: Tools that change are declared where they change."""
    dotted: Json = {"name": "db.query", "parameters": {"type": "object", "properties": {}}}
    talking.ask(claude(use(1)), [get_weather, dotted])
    talking.ask(claude(use(2)), [get_weather, {**dotted, "name": "db.drop"}])
    gone, new = talking.sent[-1]["messages"][-1]["content"]
    assert gone["tool"]["name"] == talking.sent[0]["tools"][1]["name"] != "db.query"
    assert new["tool"]["definition"]["name"].startswith("db_drop")


def test_a_saved_turn_with_something_else_is_sent_anew(talking: Talking) -> None:
    """conversations: Tools that change are declared where they change."""
    out = talking.ask(claude(use(1)), [get_weather])
    for offered in ("[1]", "[{}]", '[{"name": 3}]', "[", "0123"):
        turn = out.calls.turn.model_copy(update={"offered": offered})
        calls = [call.model_copy(update={"turn": turn}) for call in out.calls]
        talking.results = ToolResults.of(ToolCalls(tool_calls=calls, turn=turn), ["18 C"])
        talking.ask(claude(DONE), [get_weather, query])
        assert names(talking.sent[-1]["tools"]) == ["get_weather", "query"]
