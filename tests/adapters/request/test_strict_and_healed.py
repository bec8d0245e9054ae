"""What a request says of a strict tool, and of a result that was healed."""

from typing import Any

import dspy
import pytest
from support import Talk, get_weather, lm_of

import sigadapt
from sigadapt import ToolCalls
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
