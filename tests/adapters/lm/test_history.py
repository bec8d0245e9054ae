"""What DSPy's history holds of a conversation with tools, and what is logged."""

import io
import json
import logging
from typing import Any, cast

import dspy
import pytest
from support import ENGINES, Must, get_weather, lm_of

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

TASK: Any = cast("Any", dspy.Signature)("question -> answer")
SCRIPT = [
    Answer(text="I add.", calls=[Call("add", {"a": 1, "b": 2}), Call("add", {"a": "x", "b": 2})]),
    Answer(calls=[Call("submit", {"answer": "3"})]),
]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def run(adapter: Any, engine: str, wire: str = "openai") -> dspy.LM:
    with LoopbackProvider(SCRIPT) as provider:
        lm = lm_of(provider, wire, engine)
        with dspy.context(lm=lm, adapter=adapter):
            dspy.ReActV2(TASK, tools=[add])(question="1+2")
    return lm


def printed(lm: dspy.LM) -> str:
    out = io.StringIO()
    lm.inspect_history(n=1, file=out)
    return out.getvalue()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini"])
def test_the_history_shows_tools_calls_and_results(engine: str, wire: str):
    """adapter-plug-in: The history shows tools, calls and results."""
    ours, theirs = (
        run(adapter, engine, wire)
        for adapter in (
            sigadapt.ChatAdapter(tool_calling="native"),
            dspy.ChatAdapter(use_native_function_calling=True),
        )
    )
    text, other = printed(ours), printed(theirs)
    for line in (
        'add: {"a": 1, "b": 2}',
        'add: {"a": "x", "b": 2}',
        'submit: {"answer": "3"}',
        "Tool message:\n\n3",
    ):
        assert line in text.replace("Tool message:\n3", "Tool message:\n\n3")
        assert line in other.replace("Tool message:\n3", "Tool message:\n\n3")
    assert "I add." in text
    mine, his = (cast("Any", lm).history[-1] for lm in (ours, theirs))
    names = [tool["function"]["name"] for tool in mine["kwargs"]["tools"]]
    assert names == [tool["function"]["name"] for tool in his["kwargs"]["tools"]]
    json.dumps(mine["messages"])
    roles = [message["role"] for message in mine["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    assert mine is dspy.clients.base_lm.GLOBAL_HISTORY[-3]


def test_logging_is_quiet(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture):
    """adapter-plug-in: Logging is quiet and holds no arguments."""
    assert any(isinstance(each, logging.NullHandler) for each in logging.getLogger("sigadapt").handlers)
    secret = Answer(
        calls=[Call("get.weather", {"town": "a secret"}), Call("get.weather", {"city": "a secret"})]
    )
    tool = {"name": "get.weather", "parameters": {"type": "object", "required": ["city"]}}
    with (
        caplog.at_level(logging.INFO, logger="sigadapt"),
        LoopbackProvider([secret]) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter(on_invalid="keep")),
    ):
        dspy.Predict(Must)(question="?", tools=[tool])
    messages = [record.getMessage() for record in caplog.records if record.name == "sigadapt"]
    assert any("1 of 2 calls" in each for each in messages), messages
    assert any("renamed" in each for each in messages), messages
    assert "a secret" not in "".join(messages)
    assert capfd.readouterr().err == ""


def test_every_candidate_has_them_and_history_may_be_off():
    """adapter-plug-in: The history shows tools, calls and results."""
    calls = Answer(calls=[Call("get_weather", {"city": "Paris"})])
    with LoopbackProvider([calls]) as provider:
        lm: Any = lm_of(provider)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            config = {"n": 3, "temperature": 0.5}
            dspy.Predict(Must)(question="?", tools=[get_weather], config=config)
            assert [entry["kwargs"]["temperature"] for entry in lm.history] == [0.5] * 3
            assert all(entry["kwargs"]["tools"] for entry in lm.history)
            with dspy.context(disable_history=True):
                dspy.Predict(Must)(question="??", tools=[get_weather])
    assert len(lm.history) == 3
