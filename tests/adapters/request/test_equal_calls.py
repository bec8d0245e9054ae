"""Two equal calls of one turn, on a route that would merge them, and LiteLLM's text door to Ollama."""

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ENGINES, PARIS, ROME, May, get_weather, lm_of

import sigadapt
from sigadapt import ToolDecls, ToolResults
from sigadapt.adapters.request.equal_calls import without_equal_calls
from sigadapt.testing import Answer, LoopbackProvider


class Turn(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: sigadapt.ToolCalls | None = dspy.OutputField()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", ["gemini/gemini-2.5-flash", "gemini/gemini-3-pro-preview"])
def test_two_equal_calls_arrive_as_two(model: str, engine: str) -> None:
    """conversations: Two equal calls of a turn arrive as two."""
    answers = [Answer(calls=[PARIS, ROME, PARIS]), Answer(text="Done.")]
    with LoopbackProvider(answers) as provider:
        lm: Any = lm_of(provider, "gemini", engine, cache=False, model=model)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            tools: Any = ToolDecls([get_weather])
            out: Any = dspy.Predict(Turn)(question="q", tools=tools)
            results = ToolResults.of(out.calls, ["one", "two", "three"])
            dspy.Predict(Turn)(question="q", tools=tools, results=results)
        rows = provider.received[-1].body["contents"]
    parts = [part for row in rows for part in row["parts"]]
    sent = [part.get("functionCall", part.get("function_call")) for part in parts]
    came = [part.get("functionResponse", part.get("function_response")) for part in parts]
    args = [each["args"] for each in sent if each]
    assert sorted(each["city"] for each in args) == ["Paris", "Paris", "Rome"]
    assert len([each for each in came if each]) == 3
    apart = engine == "litellm" and "2.5" in model
    changes = lm.history[-1].get("changes", ())
    assert any("merges equal calls" in change.why for change in changes) == apart


def row(names: list[str], start: int) -> dict[str, Any]:
    calls = [
        {"id": f"c{start + n}", "function": {"name": name, "arguments": "{}"}} for n, name in enumerate(names)
    ]
    return {"role": "assistant", "content": "Hm.", "tool_calls": calls}


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=3))
def test_each_call_and_result_is_sent_once(turns: list[list[str]]) -> None:
    rows: list[dict[str, Any]] = []
    for names in turns:
        turn = row(names, 10 * len(rows))
        rows += [turn, *({"role": "tool", "tool_call_id": call["id"]} for call in turn["tool_calls"])]
        rows.append({"role": "user", "content": "And?"})
    made = list(rows)
    for place, end, new in reversed(list(without_equal_calls(rows))):
        made[place:end] = new
    for turn in made:
        names = [call["function"]["name"] for call in turn.get("tool_calls", ())]
        assert len(set(names)) == len(names)
    for key in ("tool_calls", "tool_call_id"):
        before = [each[key] for each in rows if key in each]
        after = [each[key] for each in made if key in each]
        flat = [
            sorted(str(c) for each in side for c in (each if key == "tool_calls" else [each]))
            for side in (before, after)
        ]
        assert flat[0] == flat[1]


@pytest.mark.parametrize("options", [{"engine": "litellm"}, {"num_ctx": 4096}], ids=str)
def test_ollama_takes_tools_over_its_chat_door(options: dict[str, Any]) -> None:
    """adapter-plug-in: Ollama's text door is asked as the one with tools."""
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        given: Any = {**provider.lm_options("ollama"), "model": "ollama/llama3.1", "cache": False, **options}
        lm: Any = dspy.LM(**given)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            out: Any = dspy.Predict(May)(question="q", tools=ToolDecls([get_weather]))
        (received,) = provider.received
    assert received.path == "/api/chat"
    assert received.body["tools"][0]["function"]["name"] == "get_weather"
    assert out.calls[0].args == {"city": "Paris"}
    assert [change.where for change in lm.history[-1]["changes"]] == ["/model"]
