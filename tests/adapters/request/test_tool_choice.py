"""Tool choices in any provider's words, and choices of tools that the provider runs."""

from typing import Any

import pytest
from sending import send

from sigadapt.errors import InvalidOption, MissingToolCalls
from sigadapt.testing import Answer, Call

Json = dict[str, Any]

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
HOSTED = {"type": "web_search"}
SERVER = {"type": "mcp", "server_label": "wiki", "server_url": "https://example.com"}
RUN = {"type": "custom", "name": "run"}
TOOLS: list[Json] = [{"name": "one"}, {"name": "two"}, RUN]
SERVERS: list[Json] = [{"name": "one"}, HOSTED, SERVER]


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
    ({"type": "auto"}, "auto"),
    ({"type": "any"}, "required"),
    ({"type": "none"}, "none"),
    ({"auto": {}}, "auto"),
    ({"any": {}}, "required"),
    ({"tool": {"name": "two"}}, function("two")),
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
    ({"mode": "VALIDATED"}, "auto"),
]


@pytest.mark.parametrize(("choice", "canonical"), WORDS, ids=str)
def test_a_choice_in_any_provider_s_words(choice: Any, canonical: Any):
    """request-shaping: A tool choice may be written as a provider documents it."""
    answer = Answer(calls=[Call(name, "{}") for name in ("one", "two", "run")])
    assert (
        send("openai", "auto", answer, tools=TOOLS, options={"tool_choice": choice}).body["tool_choice"]
        == canonical
    )


SOME = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "one"}, HOSTED]}


@pytest.mark.parametrize("choice", [HOSTED, {"type": "mcp", "server_label": "wiki"}, SOME], ids=str)
def test_a_choice_of_a_server_s_tools_goes_out_as_documented(choice: Any):
    """request-shaping: A tool choice may be written as a provider documents it."""
    assert send("responses", tools=SERVERS, options={"tool_choice": choice}).body["tool_choice"] == choice


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
        send(tools=[*TOOLS, *SERVERS[1:]], options={"tool_choice": choice})
    assert caught.value.field == "tool_choice"


RUN_THERE: Json = {"responses": [{"name": "one"}, HOSTED], "anthropic": [{"name": "one"}, SEARCH]}
NAMED: Json = {"responses": HOSTED, "anthropic": {"type": "tool", "name": "web_search"}}


@pytest.mark.parametrize(
    ("wire", "engine"), [("responses", "auto"), ("responses", "litellm"), ("anthropic", "auto")]
)
@pytest.mark.parametrize("word", ["web_search", "as documented"])
def test_a_tool_that_the_provider_runs_is_chosen(wire: str, engine: str, word: str):
    """request-shaping: A tool that the provider runs may be chosen."""
    choice = word if word == "web_search" else NAMED[wire]
    sent = send(wire, engine, tools=RUN_THERE[wire], options={"tool_choice": choice})
    assert (sent.body["tool_choice"], sent.changes) == (NAMED[wire], [])


def test_a_choice_with_one_call_at_a_time():
    """request-shaping: A tool that the provider runs may be chosen."""

    def sent(wire: str, choice: Any, **options: Any) -> Json:
        return send(wire, tools=RUN_THERE[wire], options={"tool_choice": choice, **options}).body

    body = sent("anthropic", "web_search", parallel_tool_calls=False)
    assert body["tool_choice"] == {"type": "tool", "name": "web_search", "disable_parallel_tool_use": True}
    choice = {"type": "any", "disable_parallel_tool_use": True}
    assert sent("anthropic", choice)["tool_choice"] == choice
    body = sent("responses", HOSTED, parallel_tool_calls=False)
    assert (body["tool_choice"], body["parallel_tool_calls"]) == (HOSTED, False)


def test_gemini_checks_calls_where_it_is_asked_to():
    """request-shaping: A tool choice travels in the provider's form."""
    config = {"mode": "VALIDATED", "allowedFunctionNames": ["one"]}
    sent = send("gemini", tools=TOOLS[:2], options={"tool_choice": config})
    assert (sent.body["toolConfig"], sent.changes) == ({"functionCallingConfig": config}, [])
    assert send(tools=TOOLS[:2], options={"tool_choice": {"mode": "VALIDATED"}}).whats == [
        ("/tool_choice", "lowered")
    ]


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("choice", ["required", "one", ["one", "two"]])
def test_words_for_a_forced_call(mode: Any, choice: Any):
    """tool-call-outputs: An answer that breaks the tool choice is told in every mode."""
    options = {"tool_calling": mode, "tool_choice": choice}
    with pytest.raises(MissingToolCalls, match="did not obey") as caught:
        send(answer=Answer(text="No."), tools=TOOLS[:2], options=options)
    assert caught.value.choice.text == "No."


@pytest.mark.parametrize(
    "choice", ["none", "one", ["one"], {"mode": "VALIDATED", "allowedFunctionNames": ["one"]}]
)
@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini", "ollama"])
def test_a_call_that_the_choice_leaves_out_is_bad_on_every_route(wire: str, choice: Any):
    """tool-call-outputs: An answer that breaks the tool choice is told in every mode."""
    options = {"tool_choice": choice, "on_invalid": "keep"}
    calls = send(wire, answer=Answer(calls=[Call("two")]), tools=TOOLS[:2], options=options).out.calls
    assert (list(calls), [bad.code for bad in calls.invalid]) == ([], ["unknown_tool"])
