"""What many tests need: routes by a short name, signatures, a tool, its calls, and recorded answers."""

import asyncio
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeGuard, cast

import dspy
import httpx
from hypothesis import strategies as st
from internals import ROUTES, Route

import sigadapt
from sigadapt import ToolCalls, ToolDecls, ToolResults
from sigadapt.testing import Answer, Call, LoopbackProvider


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def turn_of(**fields: Any) -> Any:
    """A turn of a model, as a program has it with its calls."""
    return ToolCalls.model_validate({"tool_calls": [], "turn": fields}).turn


IS_DSPY_3_5 = hasattr(dspy.BaseLM, "generate")
REACT_V2: Any = getattr(dspy, "ReActV2", None) or dspy.ReAct
"""DSPy's agent of native calls, which DSPy 3.5 has under its older name."""


def _first_routes(client: str) -> dict[str, Route]:
    found: dict[str, Route] = {}
    for route in ROUTES:
        if route.client == client:
            found.setdefault(route.wire, route)
    return found


NATIVE = _first_routes("lm15")
"""The routes that lm15 writes, by dialect."""

LITELLM = _first_routes("litellm")
"""The routes that LiteLLM writes, by dialect."""

ENGINES = ("auto", "litellm")
"""DSPy's two engines: lm15 where it speaks the model's wire, and LiteLLM always."""

WIRES = ("openai", "responses", "anthropic", "gemini", "ollama")
"""The wires that the loopback provider speaks with every client, by its names."""

ADAPTERS = (sigadapt.ChatAdapter, sigadapt.JSONAdapter, sigadapt.adapters.XMLAdapter)
"""The adapters that differ in the format of text alone."""


# Signatures. A test that counts what is made for a signature declares its own.


class Must(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls = dspy.OutputField()


class May(dspy.Signature):
    """Answer, or use the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class Turns(dspy.Signature):
    """Answer, or use the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    history: dspy.History | None = dspy.InputField(default=None)
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class Ask(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls | None = dspy.OutputField()


# A tool, and calls of it


class Talk(dspy.Signature):
    """Answer."""

    question: str | None = dspy.InputField(default=None)
    tools: ToolDecls = dspy.InputField()
    history: dspy.History | None = dspy.InputField(default=None)
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def get_weather(city: str, days: int = 3) -> str:
    """Weather for a city."""
    raise AssertionError("a tool was executed")


PARIS, ROME = Call("get_weather", {"city": "Paris"}), Call("get_weather", {"city": "Rome"})


def lm_of(provider: LoopbackProvider, wire: str = "openai", engine: str = "auto", **changes: Any) -> dspy.LM:
    """The language model that asks a provider over a wire; LiteLLM alone speaks Ollama's own."""
    options = {} if wire == "ollama" else {"engine": engine}
    return dspy.LM(**provider.lm_options(wire, **options, **changes))


def bytes_of(wire: str, answer: Answer, *, stream: bool = False) -> bytes:
    """What a provider sends over a wire for an answer."""
    paths = {"openai": "/chat/completions", "responses": "/responses", "anthropic": "/messages"}
    paths |= {
        "ollama": "/api/chat",
        "gemini": f"/models/m:{'streamG' if stream else 'g'}enerateContent{'?alt=sse' if stream else ''}",
    }
    with LoopbackProvider([answer]) as provider:
        url = provider.base_url(wire) + paths[wire]
        return httpx.post(url, json={"model": "m", "stream": stream, "messages": []}).content


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
"""Any JSON value."""


def by_value(value: Any) -> Any:
    """As a database that keeps JSON by value gives it back: with its keys in another order."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {key: by_value(held[key]) for key in sorted(held, key=lambda key: (len(key), key))}
    return [by_value(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


CORPUS = os.environ.get("SIGADAPT_CORPUS")
"""Where recorded answers of real providers lie; None where there are none."""

CORPUS_TEXTS = Path(CORPUS or "", "text")
"""The texts of servers' tests, which no recipe builds: often not there, even beside the recordings."""

RECORDINGS = sorted(Path(CORPUS, "wire").glob("*.jsonl.gz")) if CORPUS else []
"""The files of recorded answers, one a wire."""


def recorded(path: Path) -> list[dict[str, Any]]:
    """The answers in such a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


MADE_ID = re.compile(r"call_[A-Za-z0-9]{22}")


def place_or_id(call: Any) -> str:
    """The id of a call; for one that sigadapt made of the request, `call_` and the place from 1."""
    return f"call_{call.index + 1}" if MADE_ID.fullmatch(call.id) else call.id


def with_places(value: Any) -> Any:
    """A value with `call_1`, `call_2` and so on for the ids that sigadapt made, as they come up."""
    text = json.dumps(value)
    for number, made in enumerate(dict.fromkeys(MADE_ID.findall(text)), 1):
        text = text.replace(made, f"call_{number}")
    return json.loads(text)


def start(program: Any, way: str, **inputs: Any) -> Any:
    """Call a program in one of the ways "sync", "async", "streamed" and "streamed later"."""
    if way == "sync":
        return program(**inputs)
    if way == "async":
        return asyncio.run(program.acall(**inputs))
    if way == "streamed later":
        return asyncio.run(_last_of(sigadapt.stream(program, **inputs))).prediction
    last: Any = [*sigadapt.stream_sync(program, **inputs)][-1]
    return last.prediction


def work(run: Callable[[], object]) -> int:
    """How many functions a run calls, those in C included, which no clock disturbs."""
    count = 0

    def counted(_frame: Any, event: str, _what: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


async def _last_of(events: Any) -> Any:
    return [event async for event in events][-1]


@contextmanager
def serving(script: Any, wire: str = "openai", model: str | None = None, **options: Any) -> Generator[Any]:
    """Serve a scripted provider to everything inside; DSPy's cache answers only with `cache=True`."""
    own = {name: options.pop(name) for name in ("cache", "num_retries", "api_key") if name in options}
    with LoopbackProvider(script) as net:
        settings: dict[str, Any] = net.lm_options(wire) | {"cache": False} | own
        if model is not None:
            settings["model"] = model
        with dspy.context(lm=dspy.LM(**settings), adapter=sigadapt.ChatAdapter(**options)):
            yield net
