"""A rate limit that a provider reports with HTTP status 200 is DSPy's own error, and is asked once."""

import json
from typing import Any

import dspy
import pytest
from support import ENGINES, May, get_weather, lm_of

import sigadapt
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]


def chat(content: str | None, finish: str | None = "error", key: str = "message", **more: Any) -> Json:
    choice = {"index": 0, "finish_reason": finish, key: {"role": "assistant", "content": content}, **more}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def sse(*events: Json) -> bytes:
    named = ((f"event: {event['type']}\n" if "type" in event else "", event) for event in events)
    return "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in named).encode()


def whole(body: Json) -> bytes:
    return json.dumps(body).encode()


ROUTER: Json = {"code": 429, "message": "Slow down."}
OPENAI: Json = {"code": "rate_limit_exceeded", "message": "Slow down."}
CLAUDE: Json = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
GOOGLE: Json = {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}
RESPONSE: Json = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": []}
FAILED: Json = {**RESPONSE, "status": "failed", "error": OPENAI}
BEGUN: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}

LIMITS: dict[str, tuple[str, bytes, bytes]] = {
    "in the body": ("openai", whole({"error": ROUTER}), sse({"error": ROUTER})),
    "in the body as a text": ("openai", whole({"error": {**ROUTER, "code": "429"}}), sse({"error": ROUTER})),
    "in the choice": (
        "openai",
        whole(chat("", error=ROUTER)),
        sse(chat("", None, "delta"), chat("", key="delta", error=ROUTER)),
    ),
    "beside the choice": (
        "openai",
        whole(chat(None, error=ROUTER)),
        sse({"error": ROUTER, **chat("", key="delta")}),
    ),
    "behind half a text": (
        "openai",
        whole(chat("Half", error=ROUTER)),
        sse(chat("Half", None, "delta"), {"error": ROUTER, **chat("", key="delta")}),
    ),
    "a failed response": (
        "responses",
        whole(FAILED),
        sse({"type": "response.failed", "response": FAILED}),
    ),
    "an error of Responses": ("responses", whole({"error": OPENAI}), sse({"type": "error", **OPENAI})),
    "Anthropic's": ("anthropic", whole(CLAUDE), sse({"type": "message_start", "message": BEGUN}, CLAUDE)),
    "Google's": ("gemini", whole(GOOGLE), sse(GOOGLE)),
}


def ask(
    wire: str, body: bytes, *, engine: str = "auto", stream: bool = False, **changes: Any
) -> tuple[Any, int]:
    """The error that a program gets, and how many requests were sent."""
    with LoopbackProvider(lambda _: body) as provider:
        lm = lm_of(provider, wire, engine, **{"cache": False, "num_retries": 0, **changes})
        program: Any = dspy.Predict(May)
        if stream:
            program = dspy.streamify(program, async_streaming=False)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            try:
                out = program(question="?", tools=[get_weather])
                out = [*out][-1] if stream else out
            except (dspy.LMError, sigadapt.SigadaptError) as error:
                out = error
        return out, len(provider.received)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LIMITS)
def test_a_rate_limit_in_an_answer_is_dspys_error(name: str, engine: str, stream: bool) -> None:
    """tool-call-outputs: A rate limit inside of an answer is DSPy's rate-limit error."""
    wire, body, events = LIMITS[name]
    if (name, engine, stream) == ("Anthropic's", "litellm", True):
        pytest.skip("LiteLLM gives every error of Anthropic's streams status 500")
    error, requests = ask(wire, events if stream else body, engine=engine, stream=stream)
    assert (type(error), requests) == (dspy.LMRateLimitError, 1)
