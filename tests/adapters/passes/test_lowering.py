"""The canonical request made fit for a wire, and the record of every change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import ROUTES, Request, Route, canonical_choice, lower
from support import LITELLM, NATIVE, NATIVE_OLLAMA

from sigadapt import ToolDecls
from sigadapt.errors import InvalidOption

PROFILES = {
    **{f"native-{name}": profile for name, profile in NATIVE.items()},
    **{f"litellm-{name}": profile for name, profile in LITELLM.items()},
    "native-ollama": NATIVE_OLLAMA,
}
EMPTY: Any = {"type": "object", "properties": {}}
DECLS = ToolDecls([{"name": name, "parameters": EMPTY} for name in ("one", "two", "three")])
CHOICES = {"auto": "auto", "required": "required", "none": "none", "named": "two", "subset": ["one", "two"]}


def request(**more: Any) -> Request:
    rows = [{"role": "user", "content": "Hi."}]
    made: Any = {"model": "m", "messages": rows, "tools": DECLS.to_openai(), **more}
    return made


def chosen(form: str) -> Request:
    return request(tool_choice=canonical_choice(CHOICES[form], DECLS))


def whats(sent: Any) -> list[tuple[str, str]]:
    assert all(isinstance(change.why, str) and change.why for change in sent.changes), "each says why"
    return [(change.where, change.what) for change in sent.changes]


def names(sent: Any) -> list[str]:
    return [tool["function"]["name"] for tool in sent.request.get("tools", ())]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("form", CHOICES)
def test_a_choice_without_tools_never_leaves(form: str, profile: Route):
    """request-shaping: Without declared tools the request has none."""
    without: Any = chosen(form)
    del without["tools"]
    bares: Any = [without, {**without, "tools": []}]
    for bare in bares:
        if form in ("auto", "none"):
            sent = lower(bare, profile)
            assert "tool_choice" not in sent.request
            assert whats(sent) == [("/tool_choice", "dropped")]
            continue
        with pytest.raises(InvalidOption, match="no tool") as caught:  # as a hook may leave it
            lower(bare, profile)
        assert caught.value.field == "tool_choice"


@pytest.mark.parametrize("form", ["required", "named", "subset"])
def test_a_forced_choice_with_thinking_on_never_leaves(form: str):
    """request-shaping: What a provider refuses in combination is refused."""
    thinking: Any = {**chosen(form), "reasoning_effort": "low"}
    for profile in PROFILES.values():
        if profile.choices.forces_with_thinking:
            lower(thinking, profile)
            continue
        with pytest.raises(InvalidOption, match="thinking is on") as caught:
            lower(thinking, profile)
        assert caught.value.field == "tool_choice"
        assert "reasoning_effort=None" in str(caught.value.fix)


@given(st.sampled_from(sorted(CHOICES)), st.sampled_from(sorted(PROFILES)), st.booleans())
def test_lowering_twice_changes_nothing_more(form: str, key: str, parallel: bool):
    """What was lowered fits its wire."""
    profile = PROFILES[key]
    profile = profile._replace(results=profile.results._replace(marks_failed=True))
    once = lower({**chosen(form), "parallel_tool_calls": parallel}, profile)
    twice = lower(once.request, profile)
    assert twice.changes == ()
    assert twice.request == once.request


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
    tools = ToolDecls([{"name": "f", "parameters": schema}]).to_openai()
    for key, told in (("litellm-gemini", is_told), ("native-gemini", False), ("litellm-anthropic", False)):
        sent = lower(request(tools=tools), PROFILES[key])
        assert [change.what for change in sent.changes] == ["lowered"] * told
        assert all("engine='lm15'" in change.why for change in sent.changes)
    own = lower(request(tools=[{"googleSearch": {}}]), PROFILES["litellm-gemini"])
    assert len(own.changes) == 1


def test_tools_in_ollamas_prompt_are_on_record():
    """adapter-plug-in: Tools in a prompt that LiteLLM writes are on record."""
    (route,) = (route for route in ROUTES if "ollama" in route.models.prefixes)
    (change,) = lower(request(), route).changes
    assert "ollama_chat/" in change.why


def test_equal_calls_over_litellm_are_on_record():
    """conversations: Two equal calls of a turn arrive as two."""
    function = {"name": "one", "arguments": "{}"}
    calls = [{"id": each, "type": "function", "function": function} for each in "ab"]
    rows = [{"role": "assistant", "content": None, "tool_calls": calls}]
    for key, told in (("litellm-gemini", 1), ("native-gemini", 0)):
        changes = lower(request(model="gemini/gemini-2.5-pro", messages=rows), PROFILES[key]).changes
        assert len(changes) == told


def said_and_done(call_id: str, name: str = "one") -> list[dict[str, Any]]:
    function = {"name": name, "arguments": "{}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]},
        {"role": "tool", "tool_call_id": call_id, "name": name, "content": "", "is_error": False},
    ]


def test_a_name_in_a_conversation_without_tools_goes_out_under_its_alias():
    """request-shaping: Declarations, choice, history and results share the alias."""
    rows = said_and_done("c", "files.read")
    bare: Any = {"model": "m", "messages": rows}
    sent = lower(bare, PROFILES["native-openai-chat"])
    alias = sent.names["files.read"]
    assert sent.request["messages"][0]["tool_calls"][0]["function"]["name"] == alias
    assert sent.request["messages"][1]["name"] == alias
    assert whats(sent) == [], "no tool of the request is renamed"


def test_half_a_surrogate_pair_is_recorded_in_every_text_and_replaced_in_questions():
    """conversations: A question has half of a surrogate pair."""
    contents = ["rule \ud83d", "whole", "Z\ud83d?", "no \udf27", ["\ud83d"]]
    roles = ["system", "user", "user", "assistant", "user"]
    rows = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
    sent = lower(request(messages=rows), PROFILES["native-openai-chat"])
    places = ["0/content", "2/content", "3/content", "4/content/0"]
    assert whats(sent) == [(f"/messages/{place}", "lowered") for place in places]
    done = sent.request["messages"]
    assert [row["content"] for row in done] == ["rule ?", "whole", "Z??", "no \udf27", ["\ud83d"]]
    assert (done[1], done[3]) == (rows[1], rows[3])
    said = [{"role": "assistant", "content": "no \udf27"}]
    assert lower(request(messages=said), PROFILES["native-openai-chat"]).request["messages"] == said
