"""Outcomes that no other test told from their opposite: a change of the code once passed the whole suite."""

from typing import Any

import dspy
import pytest
from support import Talk, get_weather, lm_of

import sigadapt
from sigadapt import ToolCalls, ToolDecl, choice_from_response
from sigadapt.response import choice_from_text
from sigadapt.testing import Answer, LoopbackProvider

PARIS = {"id": "t1", "name": "get_weather", "args": {"city": "Paris"}}


def body(wire: str, events: list[Any] | None = None, **options: Any) -> dict[str, Any]:
    with LoopbackProvider([Answer(text="Done.")]) as provider:
        adapter = sigadapt.ChatAdapter(**options)
        with dspy.context(lm=lm_of(provider, wire, cache=False), adapter=adapter):
            history = dspy.History(messages=events or [])
            dspy.Predict(Talk)(question="next?", tools=[get_weather], history=history)
    return provider.received[0].body


def test_a_strict_function_is_a_function() -> None:
    """request-shaping: A strict flag goes out only on request."""

    def plain(city: str) -> str:
        """Weather for a city."""
        raise AssertionError

    seen: list[Any] = []

    class Sees:
        def before_request(self, request: Any, context: Any) -> None:
            seen.extend(request["tools"])

    with LoopbackProvider([Answer(text="Done.")]) as provider:
        adapter = sigadapt.ChatAdapter(strict=True, hooks=[Sees()])
        with dspy.context(lm=lm_of(provider, "openai", cache=False), adapter=adapter):
            dspy.Predict(Talk)(question="?", tools=[plain], history=None)
    for tool in (*seen, *provider.received[0].body["tools"]):
        assert (tool["type"], tool["function"]["strict"]) == ("function", True)


@pytest.mark.parametrize("is_error", [False, True])
def test_a_healed_result_fails_only_if_it_failed(is_error: bool) -> None:
    """conversations: A call without a result is healed."""
    result = dspy.ToolCallResults.ToolCallResult(
        call_id="t1", name="get_weather", value="no route", is_error=is_error
    )
    calls = ToolCalls([PARIS]).model_copy(
        update={"tool_call_results": dspy.ToolCallResults(tool_call_results=[result])}
    )
    sent = body("anthropic", [{"question": "?", "calls": calls}, {"answer": "Sorry."}], orphans="heal")
    [block] = [
        block
        for row in sent["messages"]
        if isinstance(row["content"], list)
        for block in row["content"]
        if block["type"] == "tool_result"
    ]
    assert bool(block.get("is_error")) is is_error


@pytest.mark.parametrize(
    "text",
    [
        '{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
        '{"function": "get_weather", "arguments": {"city": "Paris"}}',
        '{"type": "function", "function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}',
        '{"function": {}}',
        '{"function": {"arguments": {"city": "Paris"}}}',
        '{"function": null}',
        '{"function": ["get_weather"]}',
        '[{"function": {"name": 7}}]',
    ],
)
def test_an_object_keyed_function_is_read_or_left(text: str) -> None:
    """text-calls: Calls in a text are typed calls."""
    calls = choice_from_text(text, [get_weather]).tool_calls
    good = calls is not None and [call.args for call in calls] == [{"city": "Paris"}]
    assert good == ('"Paris"' in text.replace("\\", "") and "get_weather" in text)


def test_an_id_inside_of_an_id_is_relative_to_it() -> None:
    """tool-declarations: A remote reference is refused and never fetched."""
    parameters: dict[str, Any] = {
        "$id": "https://tools.test/root/",
        "type": "object",
        "properties": {"n": {"$ref": "inner/deep"}},
        "$defs": {"inner": {"$id": "inner/", "$defs": {"deep": {"$id": "deep", "type": "integer"}}}},
    }
    decl = ToolDecl.of({"name": "f", "parameters": parameters})
    assert decl.flaw_of({"n": 1}) is None
    assert decl.flaw_of({"n": "x"}) is not None


@pytest.mark.parametrize("kind", ["integer", "boolean", "array"])
def test_a_written_null_of_a_nullable_argument_is_null(kind: str) -> None:
    """text-calls: The schema types what the format does not."""
    schema = {"type": "object", "properties": {"n": {"type": kind, "nullable": True}}}
    text = "<tool_call>\n<function=f>\n<parameter=n>\nnull\n</parameter>\n</function>\n</tool_call>"
    calls = choice_from_text(text, [{"name": "f", "parameters": schema}]).tool_calls
    assert calls is not None
    assert [call.args for call in calls] == [{"n": None}]


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00"])
def test_half_a_surrogate_pair_is_on_record(half: str) -> None:
    """conversations: A text with half of a surrogate pair is read with U+FFFD."""
    function = {"name": "f", "arguments": f'{{"a": "x{half}y"}}'}
    message = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    choice = choice_from_response({"choices": [{"finish_reason": "tool_calls", "message": message}]})
    assert choice.tool_calls is not None
    [call] = choice.tool_calls
    assert (call.args, "unicode" in call.altered) == ({"a": "x\ufffdy"}, True)
    whole = function["arguments"].replace(half, "\\ud83d\\ude00")
    function["arguments"] = whole
    choice = choice_from_response({"choices": [{"finish_reason": "tool_calls", "message": message}]})
    assert choice.tool_calls is not None
    assert (choice.tool_calls[0].args, choice.tool_calls[0].altered) == ({"a": "x\U0001f600y"}, ())
