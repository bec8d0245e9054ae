"""What is measured: signatures on both sides, tools, an engine that answers at once, and provider bodies."""

import json
from collections.abc import Callable
from typing import Any

import dspy
from dspy import lm15

from sigadapt import ToolCalls, ToolDecls

ARGUMENTS: dict[str, Any] = {"city": "Paris", "days": 3}


class Theirs(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


class Ours(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    tool_calls: ToolCalls = dspy.OutputField()


def tool(number: int) -> Callable[..., str]:
    """A function to declare, no two alike."""

    def weather(city: str, days: int = 3, units: str = "metric") -> str:
        """Weather for a city."""
        return f"{city} {days} {units}"

    weather.__name__ = f"tool_{number}"
    return weather


def functions(count: int) -> list[Callable[..., str]]:
    """So many of them."""
    return [tool(number) for number in range(count)]


def held(count: int) -> list[Callable[..., str]]:
    """So many that this module holds, as a program's modules hold its tools."""
    return [globals().setdefault(f"tool_{number}", tool(number)) for number in range(count)]


def completion(*calls: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    """A chat completion as OpenAI sends it, with one call for each set of arguments."""
    made = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": f"tool_{number}", "arguments": json.dumps(arguments)},
        }
        for number, arguments in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": [], "tool_calls": made}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_763_000_000,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99},
        "service_tier": "default",
        "system_fingerprint": "fp_1",
    }


def answer_with(call: lm15.ToolCallPart, request: lm15.Request, body: dict[str, Any]) -> lm15.Response:
    """Return what lm15 makes of an answer that is one call."""
    return lm15.Response(
        id="r",
        model=request.model,
        message=lm15.Message.assistant((call,)),
        finish_reason="tool_call",
        usage=lm15.Usage(),
        provider_data=body,
    )


class Free:
    """An engine for dspy.LM that answers at once with one call, so that only the program takes time."""

    supports_function_calling, supports_response_schema = True, False
    supported_params = ("tools", "tool_choice")
    body = completion(ARGUMENTS)

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The same answer to everything."""
        call = lm15.ToolCallPart(id="call_0", name="tool_0", input=ARGUMENTS)
        return answer_with(call, request, self.body)


class Floor(dspy.Adapter):
    """The least that any adapter can do: hand a ready request to the language model."""

    def __init__(self, tools: list[dict[str, Any]]) -> None:
        super().__init__()
        asked = {"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": tools}
        self.tools = lm15.request_from_openai_chat(asked).tools

    def __call__(self, lm: Any, *_: Any, **__: Any) -> list[dict[str, Any]]:
        """Send the question, read nothing."""
        lm(lm15.Request(model=lm.model, messages=(lm15.Message.user("q"),), tools=self.tools))
        return [{"tool_calls": None}]


def free_model() -> dspy.LM:
    """A dspy.LM on the engine that answers at once."""
    return dspy.LM("openai/x", engine=Free(), cache=False)


def predicting(adapter: dspy.Adapter, signature: Any, **inputs: Any) -> Callable[[], object]:
    """A call of a program under an adapter, with nothing that remembers calls."""
    predict, lm = dspy.Predict(signature), free_model()

    def call() -> object:
        with dspy.context(
            lm=lm, adapter=adapter, disable_history=True, trace=None, warn_on_type_mismatch=False
        ):
            return predict(**inputs)

    return call
