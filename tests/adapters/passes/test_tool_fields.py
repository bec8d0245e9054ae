"""Tools that a conversation adds or takes away: the new list is sent, on record."""

from typing import Any

import dspy
from support import Talk, get_weather, lm_of
from wire_bodies import claude

import sigadapt
from sigadapt import ToolCalls, ToolResults
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]
THOUGHT: Json = {"type": "thinking", "thinking": "Weather.", "signature": "c2ln"}  # the provider's state
CALL: Json = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}}
DONE: Json = {"type": "text", "text": "Done."}


def second_request(tools: list[Any], **options: Any) -> tuple[list[str], list[str]]:
    """The names of the tools of a conversation's second request, and the changes on record."""
    with LoopbackProvider([claude(THOUGHT, CALL), claude(DONE)]) as provider:
        lm: Any = lm_of(provider, "anthropic", cache=False, num_retries=0)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            out: Any = dspy.Predict(Talk)(question="?", tools=[get_weather])
        calls = ToolCalls.model_validate_json(out.calls.model_dump_json())
        results = ToolResults.of(calls, ["18 C"])
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(**options)):
            dspy.Predict(Talk)(question="?", tools=tools, results=results)
    body = provider.received[-1].body
    return [tool["name"] for tool in body.get("tools", ())], [
        change.why for change in lm.history[-1].get("changes") or ()
    ]


def test_the_same_tools_are_no_change():
    """conversations: Tools that change are sent anew, on record."""
    assert second_request([get_weather]) == (["get_weather"], [])
