"""The canonical request made fit for a wire, and the record of every change."""

from typing import Any

import pytest
from sending import ROUTES, WIRES, changes_of, history, members, send

from sigadapt import ToolCalls, ToolResults
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call

EMPTY: Any = {"type": "object", "properties": {}}
TOOLS = [{"name": name, "parameters": EMPTY} for name in ("one", "two", "three")]
FORCED = ["required", "two", ["one", "two"]]


class NoTools:
    """A hook that leaves no tools."""

    def before_request(self, request: Any, context: Any) -> Any:
        return {**request, "tools": []}


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
@pytest.mark.parametrize("choice", ["auto", "none", *FORCED], ids=str)
def test_a_choice_without_tools_never_leaves(choice: Any, wire: str, engine: str):
    """request-shaping: Without declared tools the request has none."""
    options = {"tool_choice": choice, "hooks": [NoTools()]}
    if choice in FORCED:
        with pytest.raises(InvalidOption, match="no tool") as caught:
            send(wire, engine, tools=TOOLS, options=options)
        assert caught.value.field == "tool_choice"
        return
    sent = send(wire, engine, tools=TOOLS, options=options)
    assert not {"tool_choice", "toolConfig", "tool_config"} & {*sent.body}
    assert sent.whats == [("/tool_choice", "dropped")]


@pytest.mark.parametrize(("wire", "engine"), [route for route in ROUTES if route != ("openai", "litellm")])
@pytest.mark.parametrize("choice", FORCED, ids=str)
def test_a_forced_choice_with_thinking_on_never_leaves(choice: Any, wire: str, engine: str):
    """request-shaping: What a provider refuses in combination is refused."""
    how: Any = {"tools": TOOLS, "lm": {"reasoning_effort": "low"}, "options": {"tool_choice": choice}}
    answer = Answer(calls=[Call("two", {})])
    if wire != "anthropic":
        send(wire, engine, answer, **how)
        return
    with pytest.raises(InvalidOption, match="thinking is on") as caught:
        send(wire, engine, answer, **how)
    assert (caught.value.field, "reasoning_effort=None" in str(caught.value.fix)) == ("tool_choice", True)


@pytest.mark.parametrize(
    ("schema", "is_told"),
    [
        (EMPTY, False),
        ({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}, True),
        ({"type": "object", "additionalProperties": False}, True),
    ],
)
def test_tools_that_litellm_may_trim_are_on_record(schema: Any, is_told: bool):
    """request-shaping: Tools that LiteLLM may trim are on record."""
    tools = [{"name": "f", "parameters": schema}]
    for route, told in (
        (("gemini", "litellm"), is_told),
        (("gemini", "auto"), False),
        (("anthropic", "litellm"), False),
    ):
        changes = send(*route, tools=tools).changes
        assert [change.what for change in changes] == ["lowered"] * told
        assert all("engine='lm15'" in change.why for change in changes)
    assert len(send("gemini", "litellm", tools=[{"googleSearch": {}}]).changes) == 1


def test_tools_in_ollamas_prompt_are_on_record():
    """adapter-plug-in: Tools in a prompt that LiteLLM writes are on record."""
    [change] = changes_of("ollama/llama3.1", tools=TOOLS)
    assert "ollama_chat/" in change.why


@pytest.mark.parametrize(("engine", "told"), [("litellm", 1), ("auto", 0)])
def test_equal_calls_over_litellm_are_on_record(engine: str, told: int):
    """conversations: Two equal calls of a turn arrive as two."""
    calls = ToolCalls([{"id": each, "name": "one", "args": {}} for each in "ab"])
    sent = send("gemini", engine, tools=TOOLS, results=ToolResults.of(calls, [1, 2]))
    assert len([change for change in sent.changes if "equal calls" in change.why]) == told
    assert (
        len(members(sent.body["contents"], "functionResponse") + members(sent.body, "function_response")) == 2
    )


@pytest.mark.parametrize("wire", WIRES[:4])
def test_half_a_surrogate_pair_is_on_record_wherever_it_is_said(wire: str):
    """conversations: A question has half of a surrogate pair."""
    sent = send(wire, question="Z\ud83d?", history=history({"question": "whole", "answer": "no \udf27"}))
    assert sent.whats == [("/messages/2/content", "lowered"), ("/messages/3/content", "lowered")]
    assert not [half for half in ("\ud83d", "\udf27") if half in str(sent.body)]
