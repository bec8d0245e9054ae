"""What LiteLLM puts elsewhere, or does not send back: refusals and reasoning."""

from typing import Any

import dspy
import pytest
from support import ENGINES, May, Turns, get_weather, lm_of
from wire_bodies import chat

import sigadapt
from sigadapt import ToolDecls, ToolResults
from sigadapt.testing import LoopbackProvider

CALL = {"id": "t1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_refusals_text_is_kept(engine: str) -> None:
    """response-choice: A refusal's text is kept over LiteLLM."""
    with LoopbackProvider([chat({"content": None, "refusal": "I will not."})]) as provider:
        with (
            dspy.context(
                lm=lm_of(provider, engine=engine, cache=False),
                adapter=sigadapt.ChatAdapter(tool_calling="native"),
            ),
            pytest.raises(sigadapt.errors.UnusableAnswer, match="I will not") as caught,
        ):
            dspy.Predict(May)(question="q", tools=ToolDecls([get_weather]))
        assert len(provider.received) == 1
    assert caught.value.code == "refused"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", ["openai/m", "deepseek/m"])
def test_reasoning_content_is_replayed_or_on_record(model: str, engine: str) -> None:
    """conversations: Plain reasoning is replayed or on record."""
    thought = chat({"content": None, "reasoning_content": "Let me think.", "tool_calls": [CALL]})
    with LoopbackProvider([thought, chat({"content": "Done."})]) as provider:
        adapter = sigadapt.ChatAdapter(tool_calling="native")
        first = lm_of(provider, engine=engine, model=model, cache=False)
        second: Any = lm_of(provider, engine=engine, model=model, cache=False)
        tools: Any = ToolDecls([get_weather])
        with dspy.context(lm=first, adapter=adapter):
            out: Any = dspy.Predict(Turns)(question="q", tools=tools)
        with dspy.context(lm=second, adapter=adapter):
            dspy.Predict(Turns)(question="q", tools=tools, results=ToolResults.of(out.calls, ["Sunny."]))
        rows = provider.received[-1].body["messages"]
    (said,) = [row for row in rows if row["role"] == "assistant"]
    changes = [change.where for change in second.history[-1].get("changes", ())]
    assert (said.get("reasoning_content"), changes) == ("Let me think.", [])
