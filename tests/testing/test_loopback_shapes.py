"""The loopback provider's bodies and events beside recorded ones: no field that no real provider sends."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from support import CORPUS, PARIS, ROME, recorded

from sigadapt.testing import WIRES, Answer, Received

DIALECTS = {
    "openai": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
FULL = Answer(text="Let me look at it.", calls=[PARIS, ROME], reasoning="Two cities.", signature="c2ln")
ANSWERS = [FULL, Answer(text="Sunny."), Answer(text="It is", finish="length"), Answer(signature="c2ln")]
# What a caller or a model may put here is nobody's format.
FREE = {"arguments", "args", "input", "parameters", "tools", "metadata", "instructions"}
# Nobody recorded these: the first three are in OpenAI's API reference, the last is DeepSeek's.
UNRECORDED = (
    "<response>.incomplete_details.reason",
    "<response.incomplete>",
    "<response.reasoning_summary_",
    "<chat.completion.chunk>.choices[].delta.reasoning_content",
)


def fields(value: Any, path: str = "") -> Iterator[str]:
    """Every field in a body: its path from the body, or from the nearest object that says its type."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from fields(item, f"{path}[]")
    elif isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        kind = known.get("type") or known.get("object")
        start = f"<{kind}>" if isinstance(kind, str) else path
        for name, inner in known.items():
            here = f"{start}.{name}"
            yield here
            if name not in FREE:
                yield from fields(inner, here)


def events_of(text: str) -> Iterator[Any]:
    lines = (line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:"))
    return (json.loads(line) for line in lines if line.startswith("{"))


def known(wire: str) -> set[str]:
    """Every field that recorded answers of a wire have, whole or streamed."""
    seen: set[str] = set()
    for row in recorded(Path(str(CORPUS)) / "wire" / f"{DIALECTS[wire]}.jsonl.gz"):
        if row["status"] == 200:
            bodies: Iterable[Any] = events_of(row["response"]) if row["stream"] else [row["response"]]
            seen.update(path for body in bodies for path in fields(body))
    return seen


def request(wire: str, *, stream: bool) -> Received:
    body = {"model": "m", "stream": stream, "stream_options": {"include_usage": True}}
    return Received(number=1, wire=wire, path="", headers={}, body=body, model="m", stream=stream)


def unknown(wire: str, bodies: Iterable[Any]) -> set[str]:
    """The fields of these bodies that no recorded answer has."""
    ours = {path for body in bodies for path in fields(body)}
    return {path for path in ours - known(wire) if not path.startswith(UNRECORDED)}


@pytest.mark.skipif(CORPUS is None, reason="SIGADAPT_CORPUS names no corpus of recorded exchanges")
@pytest.mark.parametrize("wire", DIALECTS)
class TestRecorded:
    """loopback-provider: Bodies have the shape of recorded ones."""

    def test_a_whole_body_has_no_other_fields(self, wire: str):
        form, asked = WIRES[wire].format, request(wire, stream=False)
        assert unknown(wire, (form.render(answer, asked) for answer in ANSWERS)) == set()
