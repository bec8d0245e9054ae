"""A rate limit that a provider reports with HTTP status 200 is DSPy's own error, and is asked once."""

import json
from typing import Any

import dspy
import pytest
from asking import ask
from support import ENGINES

Json = dict[str, Any]


def chat(content: str | None, finish: str | None = "error", key: str = "message", **more: Any) -> Json:
    choice = {"index": 0, "finish_reason": finish, key: {"role": "assistant", "content": content}, **more}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def sse(*events: Json) -> bytes:
    named = ((f"event: {event['type']}\n" if "type" in event else "", event) for event in events)
    return "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in named).encode()


ROUTER: Json = {"code": 429, "message": "Slow down."}
OPENAI: Json = {"code": "rate_limit_exceeded", "message": "Slow down."}
CLAUDE: Json = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
GOOGLE: Json = {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}
RESPONSE: Json = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": []}
FAILED: Json = {**RESPONSE, "status": "failed", "error": OPENAI}
BEGUN: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}

AT_END = {"error": ROUTER, **chat("", key="delta")}
IN_CHOICE = sse(chat("", None, "delta"), chat("", key="delta", error=ROUTER))
BEHIND = sse(chat("Half", None, "delta"), AT_END)
STARTED = {"type": "message_start", "message": BEGUN}
LIMITS: dict[str, tuple[str, Json, bytes]] = {
    "in the body": ("openai", {"error": ROUTER}, sse({"error": ROUTER})),
    "in the body as a text": ("openai", {"error": {**ROUTER, "code": "429"}}, sse({"error": ROUTER})),
    "in the choice": ("openai", chat("", error=ROUTER), IN_CHOICE),
    "beside the choice": ("openai", chat(None, error=ROUTER), sse(AT_END)),
    "behind half a text": ("openai", chat("Half", error=ROUTER), BEHIND),
    "a failed response": ("responses", FAILED, sse({"type": "response.failed", "response": FAILED})),
    "an error of Responses": ("responses", {"error": OPENAI}, sse({"type": "error", **OPENAI})),
    "Anthropic's": ("anthropic", CLAUDE, sse(STARTED, CLAUDE)),
    "Google's": ("gemini", GOOGLE, sse(GOOGLE)),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LIMITS)
def test_a_rate_limit_in_an_answer_is_dspys_error(name: str, engine: str, stream: bool) -> None:
    """tool-call-outputs: A rate limit inside of an answer is DSPy's rate-limit error."""
    wire, body, events = LIMITS[name]
    if (name, engine, stream) == ("Anthropic's", "litellm", True):
        pytest.skip("LiteLLM gives every error of Anthropic's streams status 500")
    assert type(ask(wire, events if stream else body, engine, is_streamed=stream)) is dspy.LMRateLimitError
