"""What the model reads of a tool that failed, in DSPy's agents, and what a program as a tool tells."""

import asyncio
import builtins
import json
import sys
from typing import Any, cast

import dspy
import pytest
from agents import serving
from hypothesis import given
from hypothesis import strategies as st

from sigadapt import ToolCall, ToolCalls, ToolDecl, ToolDecls, ToolResults
from sigadapt.testing import Answer, Call

LEAKS = ("Traceback", ".py", "password", "site-packages")


class Closed(Exception):
    """An error of the program's own."""


def fail() -> str:
    """Fail."""
    try:
        raise ValueError("password=not-a-real-one")  # noqa: TRY301
    except ValueError as error:
        raise Closed("the shop is closed") from error


def reads(tools: Any, wire: str = "openai", how: str = "sync", **options: Any) -> str:
    """The request after the tool failed."""
    script = [Answer(calls=[Call("fail", {})]), Answer(calls=[Call("submit", {"answer": "done"})])]
    with serving(script, wire, **options) as provider:
        agent = cast("Any", dspy).ReActV2("question -> answer", tools=tools)
        out = agent(question="?") if how == "sync" else asyncio.run(agent.acall(question="?"))
        assert out.answer == "done"
        return json.dumps(provider.received[1].body)


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini", "ollama"])
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("form", ["plain", "declared", "dspy.Tool"])
def test_the_model_reads_the_message_alone(wire: str, how: str, form: str):
    """runs: The model reads the message alone."""
    tools: Any = {"plain": [fail], "declared": ToolDecls([fail]), "dspy.Tool": [dspy.Tool(fail)]}
    body = reads(tools[form], wire, how)
    assert "Closed: the shop is closed" in body
    assert [word for word in LEAKS if word in body] == []


def told_of(error: BaseException, behind: BaseException | None = None) -> str:
    """What the model reads of a tool that raises an error, with another one behind it."""

    def fail() -> str:
        """Fail."""
        try:
            if behind is not None:
                raise behind
        finally:
            raise error

    [result] = [row for row in json.loads(reads([fail]))["messages"] if row["role"] == "tool"]
    return result["content"].removeprefix("ERROR: ")


PROGRAM = 'cmd failed:\nTraceback (most recent call last):\n  File "x", line 1\nOops: 1'


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(), "PermissionError"),
        (KeyError("k"), "KeyError: 'k'"),
        (Closed("a: b"), "Closed: a: b"),
        (ValueError("first\n\n  second\n    third\nlast"), "ValueError: first\n\n  second\n    third\nlast"),
        (ValueError("\nbegins with a line"), "ValueError: \nbegins with a line"),
        (RuntimeError(PROGRAM), f"RuntimeError: {PROGRAM}"),
        (json.JSONDecodeError("why", "{", 1), "JSONDecodeError: why: line 1 column 2 (char 1)"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("behind", [None, ValueError("password"), ValueError(PROGRAM)])
def test_a_message_arrives_whole(error: Exception, told: str, behind: Exception | None):
    """runs: A message arrives whole."""
    assert told_of(error, behind) == told


@given(st.text(), st.text())
def test_any_message_is_read_back(message: str, behind: str):
    """runs: A message arrives whole."""
    written = told_of(Closed(message), ValueError(f"password {behind}"))
    told = f"Closed: {message}".rstrip() if message.strip() else "Closed"
    # A server of open models gets control tokens with a joiner in them (`test_control_tokens.py`).
    assert written.replace("\u200d", "") == told.replace("\u200d", "")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 has groups")
def test_a_group_of_exceptions():
    """runs: The model reads the message alone."""
    kind: Any = vars(builtins)["ExceptionGroup"]
    group = kind("two\nfailed", [ValueError("password"), kind("more", [KeyError("password")])])
    for behind in (None, ValueError("password"), kind("first", [ValueError("password")])):
        assert told_of(group, behind) == "ExceptionGroup: two\nfailed (2 sub-exceptions)"
        assert told_of(Closed("after"), group) == "Closed: after"


def step(name: str) -> Answer:
    fields = {"next_thought": "Hm.", "next_tool_name": name, "next_tool_args": "{}"}
    return Answer(text="".join(f"[[ ## {key} ## ]]\n{text}\n\n" for key, text in fields.items()))


@pytest.mark.parametrize("form", ["decls", "to_dspy"])
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.dspy_3_4
def test_declared_tools_in_react(form: str, how: str):
    """runs: Declared tools in dspy.ReAct."""
    decls = ToolDecls([fail])
    done = Answer(text="[[ ## reasoning ## ]]\nHm.\n\n[[ ## answer ## ]]\ndone\n\n[[ ## completed ## ]]")
    for options, leaks in (({}, False), ({"tool_errors": "traceback"}, True)):
        with serving([step("fail"), step("finish"), done], **options):
            tools: Any = [*decls] if form == "decls" else decls.to_dspy()
            agent = cast("Any", dspy).ReAct("question -> answer", tools=tools)
            out = agent(question="?") if how == "sync" else asyncio.run(agent.acall(question="?"))
        told = out.trajectory["observation_0"]
        assert any(word in told for word in LEAKS) == leaks
        if not leaks:
            assert told == "Execution error in fail: \nClosed: the shop is closed"
    with pytest.raises(Closed) as caught:
        decls.to_dspy()[0]()
    assert caught.value.__cause__ is not None


def test_a_program_as_a_tool_tells_its_outputs():
    """runs: A program as a tool tells its outputs."""
    inner = cast("Any", dspy).ReActV2("question -> answer", tools=[fail])
    decl = ToolDecl.of(inner, name="research", description="Research.")
    call = ToolCall(id="call_1", name="research", args={"question": "?"})
    script = [Answer(calls=[Call("submit", {"answer": "Europe"})])] * 3
    with serving(script):
        assert call.execute([decl]) == {"answer": "Europe"}
        [result] = ToolCalls([call]).run([decl])
        [given_by_hand] = ToolResults.of(ToolCalls([call]), [inner(question="?")])
        assert result.value == given_by_hand.value == {"answer": "Europe"}
    steps = dspy.Prediction(answer="Europe", trajectory={"tool_name_0": "find"})
    [of_react] = ToolResults.of(ToolCalls([call]), [steps])
    assert of_react.value == {"answer": "Europe"}
    agent = cast("Any", dspy).ReActV2("question -> answer", tools=[decl])

    def play(received: Any) -> Answer:
        rows = json.dumps(received.body["messages"])
        if '"role": "tool"' in rows:
            return Answer(calls=[Call("submit", {"answer": "outer"})])
        is_outer = "Outer" in rows
        return Answer(
            calls=[Call("research", {"question": "?"}) if is_outer else Call("submit", {"answer": "Europe"})]
        )

    with serving(play) as provider:
        assert agent(question="Outer").answer == "outer"
        assert provider.received[-1].body["messages"][-1]["content"] == '{"answer":"Europe"}'
