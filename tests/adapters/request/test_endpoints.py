"""What an OpenAI-like server or a gateway wants back goes to that server alone; elsewhere it is on record."""

import json
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from support import Talk, get_weather, lm_of
from wire_bodies import chat, ollama

import sigadapt
from sigadapt import ToolCalls, ToolResults
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]

CALL: Json = {
    "id": "t1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
}
SIGNED = "call_1__thought__" + "CiQB" * 50
THINKING: Json = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
DETAILS: Json = {"type": "reasoning.text", "text": "Hm.", "signature": "EqQB"}


class Server:
    """One server, which answers each request with the body that is put into `answer`."""

    def __init__(self, provider: LoopbackProvider) -> None:
        self.provider, self.answer = provider, chat({"content": "Done."})

    def ask(
        self, body: Json, model: str = "openai/m", engine: str = "auto", **given: Any
    ) -> tuple[Any, list[str]]:
        """The prediction of one call, and the reasons of the changes that it made."""
        self.answer = body
        options: Any = {"tool_calling": "native", **given.pop("options", {})}
        wire = "ollama" if model.startswith("ollama") else "openai"
        lm: Any = lm_of(self.provider, wire, engine, model=model, cache=False, num_retries=0)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(**options)):
            out = dspy.Predict(Talk)(question="?", tools=[get_weather], **given)
        return out, [change.why for entry in lm.history for change in entry.get("changes") or ()]

    def goes_on(self, calls: ToolCalls, **given: Any) -> tuple[Json, list[str]]:
        """The model's turn in the request that goes on with calls, and the reasons of the changes."""
        done = (
            ollama(content="Done.")
            if given.get("model", "").startswith("ollama")
            else chat({"content": "Done."})
        )
        saved = ToolCalls.model_validate_json(calls.model_dump_json())
        _, changes = self.ask(done, results=ToolResults.of(saved, ["18 C"]), **given)
        rows = self.provider.received[-1].body["messages"]
        return next(row for row in rows if row["role"] == "assistant"), changes


@pytest.fixture
def server() -> Iterator[Server]:
    with LoopbackProvider(lambda _: json.dumps(held.answer).encode()) as provider:
        held = Server(provider)
        yield held


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
def test_what_a_gateway_carries_goes_back_to_it(server: Server, name: str, engine: str) -> None:
    """conversations: What a gateway carries goes back to that gateway alone."""
    sent, fields = GATEWAYS[name]
    out, _ = server.ask(chat({"content": None, "tool_calls": [CALL], **sent}), engine=engine)
    turn, changes = server.goes_on(out.calls, engine=engine)
    assert {key: turn.get(key) for key in fields} == fields
    if (name, engine) == ("a signature in an id", "litellm"):  # LiteLLM takes it off itself
        assert any("signature" in why for why in changes)
    else:
        assert [call["id"] for call in turn["tool_calls"]] == [sent.get("tool_calls", [CALL])[0]["id"]]
        assert changes == []
    if "beside" in name:
        assert turn["tool_calls"][0]["provider_specific_fields"] == {"thought_signature": "CiQB"}


@pytest.mark.parametrize("model", ["hosted_vllm/m", "ollama_chat/llama3.1", "openrouter/m"])
def test_reasoning_stays_with_its_server(server: Server, model: str) -> None:
    """conversations: Reasoning is not another server's own."""
    out, _ = server.ask(chat({"content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]}))
    turn, changes = server.goes_on(out.calls, model=model)
    assert not any(key.startswith(("reasoning", "thinking")) for key in turn)
    assert any("reasoning" in why for why in changes)


def test_the_saved_state_holds_no_secret(server: Server) -> None:
    """conversations: What a gateway carries goes back to that gateway alone."""
    server.answer = chat({"content": None, "thinking_blocks": [THINKING], "tool_calls": [CALL]})
    given: Any = server.provider.lm_options("openai", model="openai/m", cache=False)
    address = str(given["api_base"]).replace("http://", "http://user:secret@")
    options: Any = {**given, "api_base": address, "engine": "litellm"}
    lm = dspy.LM(**options)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
        out: Any = dspy.Predict(Talk)(question="?", tools=[get_weather])
    saved = out.calls.model_dump_json()
    assert "openai@127.0.0.1" in saved
    assert not [word for word in ("secret", "user:") if word in saved]
