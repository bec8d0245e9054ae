"""Tool choices in any provider's words, and choices of tools that the provider runs."""

from typing import Any

import dspy
import pytest
from internals import canonical_choice
from support import Ask, lm_of

import sigadapt
from sigadapt import ToolDecls
from sigadapt.errors import InvalidOption, MissingToolCalls
from sigadapt.testing import Answer, LoopbackProvider

Json = dict[str, Any]

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
HOSTED = {"type": "web_search"}
SERVER = {"type": "mcp", "server_label": "wiki", "server_url": "https://example.com"}
RUN = {"type": "custom", "name": "run"}
DECLS = ToolDecls([{"name": "one"}, {"name": "two"}, RUN, SEARCH, HOSTED, SERVER])


def function(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def several(mode: str, *tools: Json) -> Json:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


CUSTOM = {"type": "custom", "custom": {"name": "run"}}
WORDS: list[tuple[Any, Any]] = [
    ("one", function("one")),
    ("run", CUSTOM),
    (["one", "run"], several("required", function("one"), CUSTOM)),
    (function("one"), function("one")),
    ({"type": "function", "name": "one"}, function("one")),
    ({"type": "custom", "name": "run"}, CUSTOM),
    (CUSTOM, CUSTOM),
    ({"type": "tool", "name": "one"}, function("one")),
    ({"type": "tool", "name": "web_search"}, SEARCH),
    ({"type": "auto"}, "auto"),
    ({"type": "any"}, "required"),
    ({"type": "none"}, "none"),
    ({"auto": {}}, "auto"),
    ({"any": {}}, "required"),
    ({"tool": {"name": "two"}}, function("two")),
    (HOSTED, HOSTED),
    ({"type": "mcp", "server_label": "wiki"}, {"type": "mcp", "server_label": "wiki"}),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "one"}, HOSTED]},
        several("auto", function("one"), HOSTED),
    ),
    (
        several("required", function("one"), function("two")),
        several("required", function("one"), function("two")),
    ),
    ({"mode": "ANY"}, "required"),
    ({"functionCallingConfig": {"mode": "NONE"}}, "none"),
    ({"function_calling_config": {"mode": "ANY", "allowed_function_names": ["one"]}}, function("one")),
    (
        {"mode": "ANY", "allowedFunctionNames": ["one", "two"]},
        several("required", function("one"), function("two")),
    ),
    ({"mode": "VALIDATED"}, several("validated")),
]


@pytest.mark.parametrize(("choice", "canonical"), WORDS, ids=str)
def test_a_choice_in_any_provider_s_words(choice: Any, canonical: Any):
    """request-shaping: A tool choice may be written as a provider documents it."""
    assert canonical_choice(choice, DECLS) == canonical


WRONG: list[Any] = [
    {"type": "computer_use"},
    {"type": "tool", "name": "three"},
    {"type": "custom", "name": "three"},
    {"type": "function"},
    {"type": "allowed_tools", "mode": "auto", "tools": []},
    {"type": "allowed_tools", "mode": "any", "tools": [function("one")]},
    {"type": "allowed_tools", "mode": "auto", "tools": ["one"]},
    {"mode": "SOMETIMES"},
    {"mode": "ANY", "allowedFunctionNames": [3]},
    {"mode": 3},
    {},
    "web_fetch",
]


@pytest.mark.parametrize("choice", WRONG, ids=str)
def test_a_choice_that_cannot_hold_is_refused(choice: Any):
    """request-shaping: A tool choice that cannot hold is refused."""
    with pytest.raises(InvalidOption) as caught:
        canonical_choice(choice, DECLS)
    assert caught.value.field == "tool_choice"


def sent(wire: str, engine: str, tools: Any, choice: Any, **options: Any) -> tuple[Json, Any]:
    with LoopbackProvider([Answer(text="Hi.")]) as provider:
        lm: Any = lm_of(provider, wire, engine)
        adapter = sigadapt.ChatAdapter(tool_calling="native", tool_choice=choice, **options)
        with dspy.context(lm=lm, adapter=adapter):
            dspy.Predict(Ask)(question="Hm?", tools=tools)
    return provider.received[0].body, lm.history[-1].get("changes") or ()


TOOLS: Json = {"responses": [{"name": "one"}, HOSTED], "anthropic": [{"name": "one"}, SEARCH]}
NAMED: Json = {"responses": HOSTED, "anthropic": {"type": "tool", "name": "web_search"}}


@pytest.mark.parametrize(
    ("wire", "engine"), [("responses", "auto"), ("responses", "litellm"), ("anthropic", "auto")]
)
@pytest.mark.parametrize("word", ["web_search", "as documented"])
def test_a_tool_that_the_provider_runs_is_chosen(wire: str, engine: str, word: str):
    """request-shaping: A tool that the provider runs may be chosen."""
    body, changes = sent(wire, engine, TOOLS[wire], "web_search" if word == "web_search" else NAMED[wire])
    assert body["tool_choice"] == NAMED[wire]
    assert not changes


def test_a_choice_with_one_call_at_a_time():
    """request-shaping: A tool that the provider runs may be chosen."""
    body, _ = sent("anthropic", "auto", TOOLS["anthropic"], "web_search", parallel_tool_calls=False)
    assert body["tool_choice"] == {"type": "tool", "name": "web_search", "disable_parallel_tool_use": True}
    tools = [{"name": "one"}, SEARCH]
    body, _ = sent("anthropic", "auto", tools, {"type": "any", "disable_parallel_tool_use": True})
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    body, _ = sent("responses", "auto", TOOLS["responses"], HOSTED, parallel_tool_calls=False)
    assert (body["tool_choice"], body["parallel_tool_calls"]) == (HOSTED, False)
    some = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "one"}, HOSTED]}
    body, _ = sent("responses", "auto", [{"name": "one"}, HOSTED], some)
    assert body["tool_choice"] == some


def test_gemini_checks_calls_where_it_is_asked_to():
    """request-shaping: A tool choice travels in the provider's form."""
    tools = [{"name": "one"}, {"name": "two"}]
    body, changes = sent("gemini", "auto", tools, {"mode": "VALIDATED", "allowedFunctionNames": ["one"]})
    config = {"mode": "VALIDATED", "allowedFunctionNames": ["one"]}
    assert (body["toolConfig"], changes) == ({"functionCallingConfig": config}, ())
    body, changes = sent("openai", "auto", tools, {"mode": "VALIDATED"})
    assert body["tool_choice"] == "auto"
    assert [(change.where, change.what) for change in changes] == [("/tool_choice", "lowered")]


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("choice", ["required", "one", ["one", "two"]])
def test_words_for_a_forced_call(mode: Any, choice: Any):
    """tool-call-outputs: An answer that breaks the tool choice is told in every mode."""
    adapter = sigadapt.ChatAdapter(tool_calling=mode, tool_choice=choice)
    tools = [{"name": "one"}, {"name": "two"}]
    with (
        LoopbackProvider([Answer(text="No.")]) as provider,
        dspy.context(lm=lm_of(provider), adapter=adapter),
        pytest.raises(MissingToolCalls, match="did not obey") as caught,
    ):
        dspy.Predict(Ask)(question="q", tools=tools)
    assert caught.value.choice.text == "No."
