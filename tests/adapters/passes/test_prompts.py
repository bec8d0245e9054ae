"""Tools, calls and results in words: the same outcomes as natively, over HTTP and back."""

import asyncio
from typing import Any

import dspy
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import send
from support import ADAPTERS, MADE_ID, May, Must, Turns, get_weather, json_values, lm_of, turn_of

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolDecls, ToolResults
from sigadapt.errors import MissingToolCalls
from sigadapt.testing import Answer, Call, LoopbackProvider


def hermes(arguments: str, name: str = "get_weather") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


IN_PARIS, IN_ROME = hermes('{"city": "Paris"}'), hermes('{"city": "Rome"}')


def ask(
    text: str, *, adapter: Any = None, signature: Any = May, finish: str | None = None, **inputs: Any
) -> Any:
    """The prediction of one answer in words, and the body that asked for it."""
    adapter = adapter or sigadapt.ChatAdapter(tool_calling="prompted", on_invalid="keep")
    answer = Answer(text=text) if finish is None else Answer(text=text, finish=finish)
    with LoopbackProvider([answer]) as provider:
        lm = lm_of(provider, cache=False)
        with dspy.context(lm=lm, adapter=adapter):
            out = dspy.Predict(signature)(question="weather?", tools=ToolDecls([get_weather]), **inputs)
    return out, provider.received[-1].body, lm


@pytest.mark.parametrize("kind", ADAPTERS)
def test_fields_beside_calls_are_parsed_from_what_remains(kind: Any) -> None:
    """prompted-calling: Fields beside a call."""
    fields = {
        sigadapt.ChatAdapter: "[[ ## answer ## ]]\nSoon.\n\n",
        sigadapt.JSONAdapter: '{"answer": "Soon."}\n',
        sigadapt.adapters.XMLAdapter: "<answer>Soon.</answer>\n",
    }
    out, _, _ = ask(fields[kind] + IN_PARIS, adapter=kind(tool_calling="prompted"))
    assert [call.args for call in out.calls] == [{"city": "Paris"}]
    assert out.answer == "Soon."


def test_a_turn_and_its_results_are_said_in_words() -> None:
    """prompted-calling: The turn and its results."""
    out, _, _ = ask(f"Look.\n{IN_PARIS}{IN_ROME}", signature=Turns)
    results = ToolResults.of(out.calls, ["18 C", "no such city"], errors=[None, True])
    done, body, lm = ask("[[ ## answer ## ]]\nMild.", signature=Turns, results=results)
    system, question, said, answered = body["messages"]
    assert [row["role"] for row in body["messages"]] == ["system", "user", "assistant", "user"]
    assert said["content"].startswith("Look.\n<tool_call>")
    assert said["content"].count("<tool_call>") == 2
    assert '{"name":"get_weather","content":"18 C"}' in answered["content"]
    assert '{"name":"get_weather","error":"no such city"}' in answered["content"]
    assert done.answer == "Mild."
    assert [change.where for change in lm.history[-1]["changes"]] == ["/tools"]
    assert question["content"]
    assert system["content"].count("<tools>") == 1


def test_a_conversation_may_change_its_mode_in_the_middle() -> None:
    """prompted-calling: The mode changes in the middle."""
    first, _, _ = ask(IN_PARIS, signature=Turns)
    with LoopbackProvider(
        [Answer(calls=[Call("get_weather", {"city": "Rome"}, id="c9")]), Answer(text="Mild.")]
    ) as net:
        lm = lm_of(net, cache=False)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            results = ToolResults.of(first.calls, ["18 C"])
            second: Any = dspy.Predict(Turns)(question="weather?", tools=[get_weather], results=results)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="prompted")):
            saved = ToolCalls.model_validate_json(second.calls.model_dump_json())
            both = results + ToolResults.of(saved, ["20 C"])
            last = dspy.Predict(Turns)(question="weather?", tools=[get_weather], results=both)
    native, words = (received.body["messages"] for received in net.received)
    assert [row["role"] for row in native] == ["system", "user", "assistant", "tool"]
    assert MADE_ID.fullmatch(native[2]["tool_calls"][0]["id"])
    assert [row["role"] for row in words] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert last.answer == "Mild."


def test_a_call_that_the_choice_does_not_allow_is_a_bad_one() -> None:
    """prompted-calling: A forced choice."""
    adapter = sigadapt.ChatAdapter(tool_calling="prompted", tool_choice="none", on_invalid="keep")
    out, _, _ = ask(IN_PARIS, adapter=adapter)
    assert [bad.code for bad in out.calls.invalid] == ["unknown_tool"]
    assert "the tool choice allows no tool" in out.calls.invalid[0].message


def test_a_tool_that_the_provider_runs_is_on_record_as_left_out() -> None:
    options = {"tool_calling": "prompted", "parallel_tool_calls": False}
    whats = send(tools=[get_weather, {"type": "web_search"}], options=options).whats
    assert whats == [("/tools", "lowered"), ("/tools/1", "dropped"), ("/parallel_tool_calls", "lowered")]


def test_a_native_answer_with_calls_in_its_text_is_read_where_asked() -> None:
    """prompted-calling: Calls leaked into a native answer's text."""
    leaked = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>"
    out, body, _ = ask(
        leaked, adapter=sigadapt.ChatAdapter(tool_calling="native", recover=True), signature=Must
    )
    assert [(call.args, call.altered) for call in out.calls] == [({"city": "Paris"}, ("recovered",))]
    assert "tools" in body
    with pytest.raises(MissingToolCalls) as caught:
        ask(leaked, adapter=sigadapt.ChatAdapter(tool_calling="native"), signature=Must)
    assert "looks like a qwen3-coder-xml call of 'get_weather'; recover=True reads it" in str(caught.value)


def test_a_text_completion_model_calls_tools() -> None:
    """prompted-calling: A text-completion model."""

    asked: list[str] = []

    class Completing(dspy.LM):
        def __call__(self, prompt: Any = None, **settings: Any) -> Any:
            asked.append(prompt)
            return [IN_PARIS]

        async def acall(self, prompt: Any = None, **settings: Any) -> Any:
            return self(prompt, **settings)

    lm: Any = Completing("openai/davinci", model_type="text", api_key="x")
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        out: Any = dspy.Predict(May)(question="weather?", tools=ToolDecls([get_weather]))
        again: Any = asyncio.run(dspy.Predict(May).acall(question="weather?", tools=ToolDecls([get_weather])))
    assert [call.args for call in [*out.calls, *again.calls]] == [{"city": "Paris"}] * 2
    assert "<tools>" in asked[0]
    assert asked[0].endswith("weather?")


names = st.sampled_from(["now", "get_weather", "files.read", "send-mail"])
plain = st.text(st.sampled_from("abc XYZ,.!?äé\n"), max_size=60).map(str.strip)
arguments = st.dictionaries(st.sampled_from(["city", "days", "a_b"]), json_values, max_size=3)


@settings(max_examples=share(60))
@given(st.lists(st.tuples(names, arguments), min_size=1, max_size=3), plain)
def test_a_turn_written_into_a_prompt_is_read_back_as_it_was(calls: list[Any], text: str) -> None:
    """prompted-calling: A turn written into a prompt is read back as it was."""
    made = [ToolCall(id=f"c{n}", name=name, args=args, index=n) for n, (name, args) in enumerate(calls)]
    how: Any = {"tools": [{"name": name} for name in dict(calls)], "options": {"tool_calling": "prompted"}}
    turn = ToolCalls(made, turn=turn_of(text=text or None))
    sent = send(results=ToolResults.of(turn, ["ok"] * len(made)), **how)
    [said] = [row["content"] for row in sent.body["messages"] if row["role"] == "assistant"]
    read = send(answer=Answer(text=said), **how).out.calls
    assert [(call.name, call.args) for call in read] == [(name, args) for name, args in calls]
    assert (read.text or "") == text
