"""Words in one block of an answer and a marked output in the next, streamed: over loopback HTTP."""

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest
from support import lm_of

import sigadapt
from sigadapt import ToolCalls, ToolDecls, ui
from sigadapt.adapters import XMLAdapter
from sigadapt.events import TextDelta
from sigadapt.testing import LoopbackProvider

pytestmark = pytest.mark.usefixtures("closed_streams")

Json = dict[str, Any]
WORDS = "Let me look."
BODIES: dict[Any, str] = {
    sigadapt.ChatAdapter: "[[ ## answer ## ]]\nIt is 5.\n\n[[ ## completed ## ]]",
    sigadapt.JSONAdapter: '{"answer": "It is 5."}',
    XMLAdapter: "<answer>\nIt is 5.\n</answer>",
}
SEARCH: list[Json] = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
]


class Ask(dspy.Signature):
    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class Desk(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict(Ask)

    def forward(self, question: str) -> Any:
        return self.ask(question=question, tools=ToolDecls([look]))


def look(what: str) -> str:
    """Look something up."""
    return what


def sse(events: list[Json]) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def pieces(text: str) -> list[str]:
    return [text[start : start + 9] for start in range(0, len(text), 9)]


def anthropic(first: str, second: str) -> bytes:
    """Two texts, and a search between them."""
    body: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": None}
    start: Json = {**body, "content": [], "usage": {"input_tokens": 3, "output_tokens": 5}}
    events: list[Json] = [{"type": "message_start", "message": start}]
    blocks = [{"type": "text", "text": first}, *SEARCH, {"type": "text", "text": second}]
    for index, block in enumerate(blocks):
        begun = {**block, "text": ""} if "text" in block else block
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        for piece in pieces(block.get("text", "")):
            delta = {"type": "text_delta", "text": piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
    return sse([*events, end, {"type": "message_stop"}])


def responses(first: str, second: str) -> bytes:
    """A message of commentary, and the answer."""
    messages: list[Json] = [
        {"type": "message", "id": f"msg_{phase}", "role": "assistant", "status": "completed", "phase": phase}
        | {"content": [{"type": "output_text", "text": text, "annotations": []}]}
        for text, phase in ((first, "commentary"), (second, "final_answer"))
    ]
    body: Json = {"id": "r", "object": "response", "created_at": 1, "model": "m", "error": None}
    created: Json = {**body, "status": "in_progress", "output": []}
    events: list[Json] = [{"type": "response.created", "response": created}]
    for index, message in enumerate(messages):
        part = message["content"][0]
        place = {"item_id": message["id"], "output_index": index, "content_index": 0}
        begun: Json = {**message, "content": []}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        delta = {"type": "response.output_text.delta", **place}
        events += [{**delta, "delta": piece} for piece in pieces(part["text"])]
        events.append({"type": "response.output_text.done", **place, "text": part["text"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": message})
    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    whole = {**body, "status": "completed", "output": messages, "usage": usage}
    events.append({"type": "response.completed", "response": whole})
    return sse([{**event, "sequence_number": number} for number, event in enumerate(events)])


WIRES = {"anthropic": anthropic, "responses": responses}


@contextmanager
def answering(wire: str, adapter: Any) -> Generator[None]:
    script = [WIRES[wire](WORDS, BODIES[adapter])]
    with LoopbackProvider(script) as net, dspy.context(lm=lm_of(net, wire), adapter=adapter()):
        yield


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("adapter", BODIES, ids=lambda kind: kind.__name__)
def test_the_output_begins_anew(wire: str, adapter: Any) -> None:
    """watching-runs: A field begins anew behind words."""
    with answering(wire, adapter):
        events: list[Any] = [*sigadapt.stream_sync(Desk(), question="How much?")]
    texts = [event for event in events if isinstance(event, TextDelta) and event.field == "answer"]
    start = max(number for number, event in enumerate(texts) if event.is_anew)
    assert "".join(event.text for event in texts[start:]) == events[-1].prediction.answer == "It is 5."
    assert "".join(event.text for event in texts[:start]) == WORDS


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("adapter", BODIES, ids=lambda kind: kind.__name__)
def test_a_page_shows_both_once(wire: str, adapter: Any, tmp_path: Path) -> None:
    """watching-runs: A field begins anew behind words."""
    chats = ui.Chats(Desk(), str(tmp_path / "chats.db"), field="question")
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How much?"}]}

    async def post() -> list[str]:
        return [text async for text in chats.ai_sdk({"id": "c1", "messages": [message]}, owner="ada")]

    with answering(wire, adapter):
        texts = asyncio.run(post())
    rows = [json.loads(text.removeprefix("data: ")) for text in texts if "[DONE]" not in text]
    shown: dict[str, str] = {}
    for row in rows:
        if row["type"] == "text-delta":
            shown[row["id"]] = shown.get(row["id"], "") + row["delta"]
    assert [*shown.values()] == [WORDS, "It is 5."]
    parts = chats.messages("c1", owner="ada")[-1]["parts"]
    assert [part["text"] for part in parts if part["type"] == "text"] == [WORDS, "It is 5."]
