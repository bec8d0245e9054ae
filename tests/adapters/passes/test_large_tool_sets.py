"""Large tool sets: a search for each request, deferred tools, and a budget that names the largest."""

import json
import pickle
from typing import Any

import cloudpickle
import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sending import history, send

import sigadapt
from sigadapt import RequestContext, ToolCall, ToolCalls, ToolDecls, ToolResults, Toolset
from sigadapt.errors import InvalidOption, InvalidToolDecl

TOOLS = [{"name": f"tool_{n}", "description": f"Does {n}. " + "x" * n} for n in range(40)]
WEB: dict[str, Any] = {"type": "web_search", "search_context_size": "low"}


OPENAIS = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "function": {"name": "tool_5", "arguments": "{}"}}],
}


def named(context: RequestContext, decls: ToolDecls) -> list[str]:
    """The tools that the question names."""
    return [decl.name for decl in decls if decl.name in context.inputs["question"].split()]


def test_tools_of_earlier_turns_and_native_tools_stay():
    """toolsets: What the conversation has called stays declared."""
    calls = ToolCalls([ToolCall(id="c1", name="tool_1", args={})])
    earlier = ToolCalls([ToolCall(id="c2", name="tool_2", args={})])
    saved = {"question": "q", "calls": calls.model_dump(mode="json")}
    event = {"question": "q", "calls": earlier, "results": ToolResults.of(earlier, ["2"])}
    dspys = {"question": "q", "calls": dspy.ToolCalls.from_dict_list([{"name": "tool_4", "args": {}}])}
    toolset = Toolset("many", [*TOOLS, WEB]).retrieved(named)
    for inputs, names in [
        ({"results": ToolResults.of(calls, ["1"])}, ["tool_1"]),
        ({"history": history(event)}, ["tool_2"]),
        ({"history": history(event, saved, dspys)}, ["tool_1", "tool_2", "tool_4"]),
        ({"history": history(event, saved=True)}, ["tool_2"]),
        ({"history": history(dspys, event, saved=True)}, ["tool_2", "tool_4"]),
        ({"results": ToolResults.of(earlier, ["2"]).model_dump(mode="json")}, ["tool_2"]),
        ({"results": ToolResults.of(earlier, ["2"]).model_dump()}, ["tool_2"]),
        ({"history": history(event, saved).model_dump()}, ["tool_1", "tool_2"]),
        ({"history": history(event).model_dump(mode="json")}, ["tool_2"]),
        ({"message": {"rounds": [None, {}, {"calls": 7}, {"calls": {"tool_calls": 1}}]}}, []),
        ({"message": OPENAIS}, ["tool_5"]),
        ({"message": {"tool_calls": [None, 7, {}, {"function": 1}]}, "other": {"tool_calls": "no"}}, []),
        ({}, []),
    ]:
        decls = toolset.resolve(RequestContext(inputs={"question": "tool_9", **inputs}))
        assert [decl.name for decl in decls] == [*names, "tool_9"]
        assert decls.to_openai()[-1] == WEB


@pytest.mark.parametrize("found", ["tool_1", None, 7, [7], {"tool_1": 1}, b"tool_1"])
def test_what_is_no_names_is_refused(found: Any):
    """toolsets: A search that finds something else is an error."""
    toolset = Toolset("many", TOOLS).retrieved(lambda _, __: found)
    with pytest.raises(InvalidToolDecl, match="in toolset 'many': expected names of tools") as caught:
        toolset.resolve()
    assert (caught.value.code, bool(caught.value.fix)) == ("invalid_search", True)


def test_a_name_that_no_tool_has_is_refused():
    """toolsets: A search that finds something else is an error."""
    for toolset in (
        Toolset("many", TOOLS).retrieved(lambda _, __: ["tool_100"]),
        Toolset("many", TOOLS).deferred("tool_100"),
    ):
        with pytest.raises(InvalidToolDecl, match="no tool with this name") as caught:
            toolset.resolve()
        assert (caught.value.code, caught.value.tool) == ("unknown_tool", "tool_100")


@given(st.lists(st.sampled_from([tool["name"] for tool in TOOLS])))
def test_the_same_tools_give_the_same_request(names: list[str]):
    """toolsets: A search chooses the tools of a request."""
    decls = Toolset("many", TOOLS).retrieved(lambda _, __: iter(names)).resolve()
    same = Toolset("many", TOOLS).retrieved(lambda _, __: sorted(names, reverse=True)).resolve()
    assert decls.fingerprint() == same.fingerprint()
    assert {decl.name for decl in decls} == set(names)


def test_an_alias_is_named_as_it_was_declared():
    """request-shaping: A budget of bytes refuses a large tool set."""
    refused = pytest.raises(InvalidToolDecl, match=r"'crm\.find all'")
    with refused as caught:
        send(tools=[{"name": "crm.find all"}], options={"max_tool_bytes": 10})
    assert caught.value.tool == "crm.find all"


@pytest.mark.parametrize("value", [0, -1, 1.5, "100", True])
def test_a_budget_is_a_number_of_bytes(value: Any):
    """request-shaping: A budget of bytes refuses a large tool set."""
    with pytest.raises(InvalidOption) as caught:
        sigadapt.ChatAdapter(max_tool_bytes=value)
    assert caught.value.field == "max_tool_bytes"


def test_a_retrieved_toolset_is_pickled():
    """toolsets: A toolset is pickled, or says why not."""
    for toolset in (Toolset("many", TOOLS).retrieved(named), Toolset("many", TOOLS).deferred("tool_1")):
        context = RequestContext(inputs={"question": "tool_9"})
        for pickler in (pickle, cloudpickle):
            back = pickle.loads(pickler.dumps(toolset))  # noqa: S301
            assert json.dumps(back.resolve(context).to_openai()) == json.dumps(
                toolset.resolve(context).to_openai()
            )
