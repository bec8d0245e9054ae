"""What an OpenAI-like server or a gateway wants back goes to that server alone; elsewhere it is on record."""

import pytest
from sending import Json, Server, serving_bodies
from support import lm_of
from wire_bodies import chat, ollama

from sigadapt import ToolCalls, ToolResults

CALL: Json = {
    "id": "t1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
}
SIGNED = "call_1__thought__" + "CiQB" * 50
THINKING: Json = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
DETAILS: Json = {"type": "reasoning.text", "text": "Hm.", "signature": "EqQB"}


def goes_on(
    server: Server, calls: ToolCalls, model: str | None = None, engine: str = "auto"
) -> tuple[Json, list[str]]:
    """The model's turn in the request that goes on with calls, and the reasons of the changes."""
    is_ollama = bool(model) and model.startswith("ollama")
    lm = lm_of(
        server.provider, "ollama" if is_ollama else "openai", engine, cache=False, model=model or "openai/m"
    )
    server.lm = lm
    saved = ToolCalls.model_validate_json(calls.model_dump_json())
    server.ask(
        ollama(content="Done.") if is_ollama else chat({"content": "Done."}),
        results=ToolResults.of(saved, ["18 C"]),
    )
    return next(row for row in server.sent[-1]["messages"] if row["role"] == "assistant"), server.changes


GATEWAYS: dict[str, tuple[Json, Json]] = {
    "thinking blocks": ({"thinking_blocks": [THINKING]}, {"thinking_blocks": [THINKING]}),
    "reasoning details": ({"reasoning_details": [DETAILS]}, {"reasoning_details": [DETAILS]}),
    "a signature in an id": ({"tool_calls": [{**CALL, "id": SIGNED}]}, {}),
    "a signature beside a call": (
        {"tool_calls": [{**CALL, "provider_specific_fields": {"thought_signature": "CiQB"}}]},
        {},
    ),
}


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("name", GATEWAYS)
def test_what_a_gateway_carries_goes_back_to_it(name: str, engine: str) -> None:
    """conversations: What a gateway carries goes back to that gateway alone."""
    sent, fields = GATEWAYS[name]
    with serving_bodies("openai", engine, model="openai/m") as server:
        out = server.ask(chat({"content": None, "tool_calls": [CALL], **sent}))
        turn, changes = goes_on(server, out.calls, engine=engine)
    assert {key: turn.get(key) for key in fields} == fields
    if (name, engine) == ("a signature in an id", "litellm"):  # LiteLLM takes it off itself
        assert any("signature" in why for why in changes)
    else:
        assert [call["id"] for call in turn["tool_calls"]] == [sent.get("tool_calls", [CALL])[0]["id"]]
        assert changes == []
    if "beside" in name:
        assert turn["tool_calls"][0]["provider_specific_fields"] == {"thought_signature": "CiQB"}


@pytest.mark.parametrize("model", ["hosted_vllm/m", "ollama_chat/llama3.1", "openrouter/m"])
def test_reasoning_stays_with_its_server(model: str) -> None:
    """conversations: Reasoning is not another server's own."""
    with serving_bodies("openai", model="openai/m") as server:
        out = server.ask(chat({"content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]}))
        turn, changes = goes_on(server, out.calls, model)
    assert not any(key.startswith(("reasoning", "thinking")) for key in turn)
    assert any("reasoning" in why for why in changes)


def test_the_saved_state_holds_no_secret() -> None:
    """conversations: What a gateway carries goes back to that gateway alone."""
    with serving_bodies("openai") as server:
        address = server.provider.base_url("openai").replace("http://", "http://user:secret@")
        server.lm = lm_of(server.provider, engine="litellm", model="openai/m", cache=False, api_base=address)
        out = server.ask(chat({"content": None, "thinking_blocks": [THINKING], "tool_calls": [CALL]}))
    saved = out.calls.model_dump_json()
    assert "openai@127.0.0.1" in saved
    assert not [word for word in ("secret", "user:") if word in saved]
