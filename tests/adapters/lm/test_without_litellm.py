"""sigadapt without LiteLLM: what DSPy's own engine asks works, the rest says what to install."""

import json
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import sys
sys.modules["litellm"] = None  # importing it raises ImportError, as where it is not installed
import asyncio, json
import dspy, sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

class Ask(dspy.Signature):
    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: sigadapt.ToolCalls | None = dspy.OutputField()

def now(): "The time."

async def streamed(program):
    listener = sigadapt.listeners.CallListener("calls")
    stream = dspy.streamify(program, stream_listeners=[listener])(question="?", tools=[now])
    return [str(item.chunk) async for item in stream if not isinstance(item, dspy.Prediction)]

told = {}
with LoopbackProvider([Answer(calls=[Call("now")])]) as provider:
    for wire, engine in (*((w, "auto") for w in ("openai", "responses", "anthropic", "gemini")),
                         ("openai", "litellm"), ("ollama", "litellm")):
        for tool_calling in ("auto", "native"):
            lm = dspy.LM(**provider.lm_options(wire, engine=engine))
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling=tool_calling)):
                said = []
                for run in (
                    lambda: str(dspy.Predict(Ask)(question="?", tools=[now]).calls),
                    lambda: str(asyncio.run(dspy.Predict(Ask).acall(question="?", tools=[now])).calls),
                    lambda: "".join(asyncio.run(streamed(dspy.Predict(Ask)))),
                ):
                    try:
                        said.append(run())
                    except sigadapt.errors.InvalidOption as error:
                        said.append(f"{error.code}: {error}")
                told[f"{wire} {engine} {tool_calling}"] = said
    requests = len(provider.received)
print(json.dumps([told, requests, [name for name in sys.modules if name.startswith("litellm.")]]))
"""


@pytest.fixture(scope="module")
def without_litellm() -> Any:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_dspys_own_engine_needs_no_litellm(without_litellm: Any) -> None:
    """adapter-plug-in: The native engine works without LiteLLM."""
    told, requests, imported = without_litellm
    native = {route: said for route, said in told.items() if " auto " in route}
    assert native
    assert [said for said in native.values() if said != ["now()"] * 3] == []
    assert (requests, imported) == (3 * len(native), [])


def test_a_model_over_litellm_names_the_extra(without_litellm: Any) -> None:
    """adapter-plug-in: A missing LiteLLM is an error that names the extra."""
    told, _, _ = without_litellm
    refused = {route: said for route, said in told.items() if " litellm " in route}
    assert refused
    for said in refused.values():
        assert all(text.startswith("missing_extra") and "sigadapt[litellm]" in text for text in said)
