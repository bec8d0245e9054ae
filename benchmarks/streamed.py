"""What a streamed whole call costs over HTTP, in processor time, beside other libraries.

Each side streams the same answer, a text of 200 characters and then a call, to its end. sigadapt and DSPy's
adapter stream through `dspy.streamify`, once with nobody listening and once with a listener to the text. A
library that is not installed is left out and named.
"""

import importlib
import json
from collections.abc import Iterator
from typing import Any

import dspy

import sigadapt
from benchmarks.measure import Table
from benchmarks.provider import provider
from benchmarks.wholecall import (
    MESSAGES,
    MISSING,
    QUESTION,
    Maker,
    Ours,
    Program,
    Theirs,
    anthropic_sdk,
    compared,
    get_weather,
    if_installed,
    langchain_model,
    litellm_completion,
    openai_sdk,
    pydantic_agent,
)
from sigadapt.testing import Answer, Call, Received

ARGUMENTS = {"city": "Paris", "days": 3}
_FEWEST, _A_SECOND = 5, 15  # rounds


def answer(_: Received) -> Answer:
    """Text, and one call of the tool."""
    text = "Let me look that up for you, it will take a moment. " * 4
    return Answer(text=text, calls=[Call("get_weather", ARGUMENTS)])


def _of_dspy(
    adapter: dspy.Adapter, signature: Any, tools: Any, options: dict[str, Any], *, listens: bool
) -> Any:
    lm = dspy.LM(**{**options, "cache": False})

    def call() -> Any:
        listeners = [dspy.streaming.StreamListener("answer", allow_reuse=True)] if listens else []
        with dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None):
            streaming: Any = dspy.streamify
            program = streaming(dspy.Predict(signature), stream_listeners=listeners, async_streaming=False)
            *_, prediction = program(question=QUESTION, tools=tools)
            return prediction.calls.tool_calls[0].args

    return call


def _sigadapt(options: dict[str, Any], *, listens: bool) -> Program:
    adapter = sigadapt.ChatAdapter(tool_calling="native")
    return _of_dspy(adapter, Ours, [get_weather], options, listens=listens)


def _dspy(options: dict[str, Any], *, listens: bool) -> Program:
    adapter = dspy.ChatAdapter(use_native_function_calling=True)
    return _of_dspy(adapter, Theirs, [dspy.Tool(get_weather)], options, listens=listens)


def _openai(options: dict[str, Any]) -> Program:
    completions, asked = openai_sdk(options)

    def call() -> Any:
        with completions.stream(**asked) as stream:
            reply = stream.get_final_completion()
        return sigadapt.choice_from_response(reply).tool_calls.tool_calls[0].args

    return call


def _langchain(options: dict[str, Any]) -> Program:
    bound = langchain_model(options)

    def call() -> Any:
        whole: Any = None
        for chunk in bound.stream(QUESTION):
            whole = chunk if whole is None else whole + chunk
        return whole.tool_calls[0]["args"]

    return call


def _litellm(options: dict[str, Any]) -> Program:
    litellm: Any = importlib.import_module("litellm")
    complete = litellm_completion(options)

    def call() -> Any:
        stream = complete(stream=True)
        chunks = [*stream]
        # Read to its end: if the garbage collector closes it instead, httpcore can deadlock.
        for _ in stream.completion_stream or ():
            pass
        whole = litellm.stream_chunk_builder(chunks, messages=MESSAGES)
        return json.loads(whole.choices[0].message.tool_calls[0].function.arguments)

    return call


def _pydantic_ai(options: dict[str, Any]) -> Program:
    agent = pydantic_agent(options)

    def call() -> Any:
        with agent.run_stream_sync(QUESTION) as stream:
            return stream.get_output().calls[0].args_as_dict()

    return call


def _anthropic(options: dict[str, Any]) -> Program:
    messages, asked = anthropic_sdk(options)

    def call() -> Any:
        with messages.stream(**asked) as stream:
            return stream.get_final_message().content[-1].input

    return call


OTHERS: dict[str, dict[str, Maker]] = {
    "openai": {
        "OpenAI SDK": _openai,
        "LangChain": _langchain,
        "LiteLLM": _litellm,
        "pydantic-ai": _pydantic_ai,
    },
    "anthropic": {"Anthropic SDK": _anthropic, "LiteLLM": _litellm},
}


def tables(seconds: float) -> Iterator[Table]:
    """One table a wire: a streamed call with and without a listener, beside other libraries."""
    rounds = int(seconds * _A_SECOND) or _FEWEST
    told = (
        "An answer of text and a call, streamed to its end, connection included. Two rows have a listener "
        "to the text; the others run without a listener."
    )
    with provider(answer) as options:
        for wire, makers in OTHERS.items():
            own = {
                "sigadapt": _sigadapt(options[wire], listens=False),
                "DSPy's adapter": _dspy(options[wire], listens=False),
                "sigadapt, with a listener": _sigadapt(options[wire], listens=True),
                "DSPy's adapter, with a listener": _dspy(options[wire], listens=True),
            }
            others = {name: if_installed(make, options[wire]) for name, make in makers.items()}
            yield compared(f"A streamed call: {wire}", told + MISSING.get(wire, ""), own, others, rounds)
