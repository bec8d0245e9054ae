"""A template's token that a server left in a name is cut off in a call, if the program asks for repairs."""

from typing import Any

import dspy
import pytest
from support import Must, get_weather, lm_of

import sigadapt
from sigadapt import ToolDecl
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

LEAK = "<|channel|>commentary"
DOTTED = ToolDecl.of(get_weather, name="weather.now")  # which has an alias
TOOLS = pytest.mark.parametrize(
    ("tool", "declared"),
    [(get_weather, "get_weather"), (DOTTED, "weather.now")],
    ids=["its own name", "an alias"],
)


def leaking(received: Received) -> Answer:
    """Call the tool by the name that it was sent under, with a token behind."""
    name = received.body["tools"][0]["function"]["name"]
    return Answer(calls=[Call(f"{name}{LEAK}", {"city": "Paris"})])


@TOOLS
def test_a_leaked_token_is_cut_in_a_call(tool: Any, declared: str) -> None:
    """asked-for-leniency: A leaked token is cut from a name."""
    kept: dict[bool, Any] = {}
    with LoopbackProvider(leaking) as provider:
        for repair in (True, False):
            adapter = sigadapt.ChatAdapter(repair=repair, on_invalid="keep", tool_calling="native")
            with dspy.context(lm=lm_of(provider, cache=False), adapter=adapter):
                kept[repair] = dspy.Predict(Must)(question="?", tools=[tool]).calls
    (call,) = kept[True]
    assert (call.name, call.args, call.altered) == (declared, {"city": "Paris"}, ("repaired",))
    assert [call.code for call in kept[False].invalid] == ["unknown_tool"]
    assert kept[False].invalid[0].name.endswith(LEAK)


@TOOLS
def test_a_leaked_token_is_cut_while_a_call_streams(tool: Any, declared: str) -> None:
    """asked-for-leniency: A leaked token is cut from a name."""
    adapter = sigadapt.ChatAdapter(repair=True, tool_calling="native")
    with (
        LoopbackProvider(leaking) as provider,
        dspy.context(lm=lm_of(provider, cache=False), adapter=adapter),
    ):
        events = [*sigadapt.stream_sync(dspy.Predict(Must), question="?", tools=[tool])]
    names = {event.name for event in events if isinstance(event, sigadapt.events.CallDelta)}
    assert names == {declared}
