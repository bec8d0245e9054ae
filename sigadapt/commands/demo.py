"""Show on one screen a signature with tools, the request that is sent and the calls that come back.

The demo runs on the embedded loopback provider, which knows the answers to three questions. It needs no key
and no network. If a model is given, the same questions go to that model instead.
"""

import inspect
import json
import logging
import os
import textwrap
from collections.abc import Iterator
from typing import Any

# Without these, LiteLLM and DSPy each download a price list when first used.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")

import dspy

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.testing import Answer, Call, LoopbackProvider, Received


class Assist(dspy.Signature):
    """Answer the question, with tools where they help."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city.

    Args:
        city: The city's name.
        days: How many days ahead.
    """
    raise NotImplementedError  # never run: sigadapt runs no tool, and neither does the demo (rule 1)


def get_time(zone: str) -> str:
    """Current time in a time zone, such as `Asia/Tokyo`."""
    raise NotImplementedError


ANSWERS = {
    "What will the weather be in Paris and in Rome?": Answer(
        text="Let me look.",
        calls=[Call("get_weather", {"city": "Paris"}), Call("get_weather", {"city": "Rome", "days": 2})],
    ),
    "How late is it in Tokyo?": Answer(calls=[Call("get_time", {"zone": "Asia/Tokyo"})]),
    "What is seven times six?": Answer(text="Forty-two."),
}


def policy(received: Received) -> Answer:
    """Return the answer to the question that the request holds."""
    asked = json.dumps(received.body, ensure_ascii=False)
    return next(answer for question, answer in ANSWERS.items() if question in asked)


def on_loopback(wire: str, engine: str) -> Iterator[str]:
    """Yield the demo's lines, on the embedded provider.

    Args:
        wire: a key of `sigadapt.testing.WIRES`.
        engine: the engine of `dspy.LM`: `auto` (the native one if it speaks this wire) or `litellm`.
    """
    changes: dict[str, Any] = {} if engine == "auto" else {"engine": engine}
    with LoopbackProvider(policy) as provider:
        lm = dspy.LM(**provider.lm_options(wire, **changes))
        yield from _heading(f"{lm.model} on the embedded {wire} provider, engine {lm.engine}")
        for number, question in enumerate(ANSWERS):
            lines = list(_asked(lm, question))
            sent = provider.received[-1]
            if number == 0:
                yield from _block(f"\nthe same on this wire, POST {sent.path}", {"tools": sent.body["tools"]})
            yield f"\n> {question}"
            yield from lines


def on_model(model: str, engine: str) -> Iterator[str]:
    """Yield the demo's lines, on a real provider with the key in its environment variable."""
    lm = dspy.LM(model, engine=engine)
    yield from _heading(f"{model}, engine {engine}")
    for question in ANSWERS:
        yield f"\n> {question}"
        yield from _asked(lm, question)


def _heading(where: str) -> Iterator[str]:
    yield f"sigadapt demo: {where}\n"
    yield inspect.getsource(Assist).rstrip()
    yield from _block(
        '\nrequest["tools"], whatever the provider', ToolDecls([get_weather, get_time]).to_openai()
    )


def _asked(lm: dspy.LM, question: str) -> Iterator[str]:
    # `auto` depends on what DSPy knows of a model; the demo sends tools on every wire.
    with dspy.context(lm=lm, adapter=ChatAdapter(tool_calling="native")):
        out: Any = dspy.Predict(Assist)(question=question, tools=[get_weather, get_time])
    for call in out.calls or ():
        arguments = ", ".join(f"{name}={value!r}" for name, value in call.args.items())
        yield f"  call      {call.name}({arguments})  id={call.id}"
    if out.calls and out.calls.text:
        yield f"  beside    {out.calls.text}"
    if out.answer:
        yield f"  answer    {out.answer}"


def _block(title: str, value: Any) -> Iterator[str]:
    yield f"{title}:"
    yield textwrap.indent(json.dumps(value, indent=2, ensure_ascii=False), "    ")


def quiet() -> None:
    """Keep LiteLLM's log, which is at INFO by default, off the terminal."""
    logging.getLogger("LiteLLM").setLevel(logging.WARNING)
