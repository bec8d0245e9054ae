"""Tools that a conversation adds or takes away: the new list is sent, on record."""

import json
from typing import Any

import dspy
import pytest
from support import Talk, get_weather, lm_of

import sigadapt
from sigadapt import ToolCalls, ToolResults
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]
ANEW = "the tools changed in this conversation; they are sent anew, and the provider's cache begins anew"
THOUGHT: Json = {"type": "thinking", "thinking": "Weather.", "signature": "c2ln"}  # the provider's state
CALL: Json = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}}
DONE: Json = {"type": "text", "text": "Done."}


def query(sql: str) -> str:
    """Run a query."""
    raise AssertionError("a tool was executed")


def claude(*blocks: Json) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
    return json.dumps({**head, "content": [*blocks], "stop_reason": stop}).encode()


def second_request(tools: list[Any], **options: Any) -> tuple[list[str], list[str]]:
    """The names of the tools of a conversation's second request, and the changes on record."""
    bodies = [claude(THOUGHT, CALL), claude(DONE)]
    with LoopbackProvider(lambda _: bodies.pop(0)) as provider:
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


@pytest.mark.parametrize("tools", [[get_weather, query], [query]], ids=["added", "replaced"])
def test_a_changed_list_is_sent_anew_on_record(tools: list[Any]):
    """conversations: Tools that change are sent anew, on record."""
    assert second_request(tools) == ([tool.__name__ for tool in tools], [ANEW])


def test_the_same_tools_are_no_change():
    """conversations: Tools that change are sent anew, on record."""
    assert second_request([get_weather]) == (["get_weather"], [])


def test_a_prompt_has_no_list_that_changes():
    """conversations: Tools that change are sent anew, on record."""
    names, changes = second_request([get_weather, query], tool_calling="prompted")
    assert not names
    assert ANEW not in changes
