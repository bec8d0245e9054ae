"""Server tools, sent to each provider in its own words."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from sending import DONE, Sent, send
from support import ENGINES, Turns, lm_of

import sigadapt
from sigadapt.server_tools import CodeExecution, FileSearch, ImageGeneration, McpServer, WebFetch, WebSearch
from sigadapt.testing import Answer, Call, LoopbackProvider

TOKEN = "tok-of-a-test-1234"  # noqa: S105  (of no server)
MODELS = {"gemini": "gemini/gemini-3-flash-preview"}


def get_weather(city: str) -> str:
    """Weather for a city."""
    return city


def my_search(query: str) -> str:
    """Search with my own engine."""
    return f"found {query}"


def ask(
    wire: str, *tools: Any, answer: Any = DONE, engine: str = "auto", model: str | None = None, **options: Any
) -> Sent:
    chosen = model or MODELS.get(wire)
    lm = {"model": chosen} if chosen else {}
    return send(wire, engine, answer, signature=Turns, tools=list(tools), lm=lm, options=options)


def told(sent: Sent) -> list[Any]:
    """The tools that arrived, but for the function beside them."""
    return [tool for tool in sent.body.get("tools", []) if "get_weather" not in str(tool)]


DOMAINS: Any = {"allowed_domains": ["a.test"], "blocked_domains": ["b.test"]}
XS = {"allowed_domains": ["a.test"], "excluded_domains": ["b.test"]}
SEARCH = {"type": "web_search_20250305", "name": "web_search", **DOMAINS, "max_uses": 2}
FETCH = {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 1}
ROUTED = {"type": "openrouter:web_search", "parameters": XS}
WORDS: list[tuple[str, str | None, Any, dict[str, Any]]] = [
    ("anthropic", None, WebSearch(**DOMAINS, max_uses=2), SEARCH),
    ("anthropic", None, WebFetch(max_uses=1), FETCH),
    ("anthropic", None, CodeExecution(), {"type": "code_execution_20250825", "name": "code_execution"}),
    ("responses", None, WebSearch(**DOMAINS), {"type": "web_search", "filters": DOMAINS}),
    ("responses", None, WebSearch(), {"type": "web_search"}),
    ("responses", None, CodeExecution(), {"type": "code_interpreter", "container": {"type": "auto"}}),
    ("responses", None, FileSearch(["vs_1"]), {"type": "file_search", "vector_store_ids": ["vs_1"]}),
    ("responses", None, ImageGeneration(), {"type": "image_generation"}),
    ("gemini", None, WebSearch(), {"googleSearch": {}}),
    ("gemini", None, WebFetch(), {"urlContext": {}}),
    ("gemini", None, CodeExecution(), {"codeExecution": {}}),
    ("gemini", None, FileSearch(["s"]), {"fileSearch": {"fileSearchStoreNames": ["s"]}}),
    ("openai", "openrouter/openai/gpt-5", WebSearch(**DOMAINS), ROUTED),
    ("openai", "openrouter/openai/gpt-5", ImageGeneration(), {"type": "openrouter:image_generation"}),
    ("openai", "groq/openai/gpt-oss-120b", WebSearch(), {"type": "browser_search"}),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("wire", "model", "tool", "words"), WORDS)
def test_words(engine: str, wire: str, model: str | None, tool: Any, words: dict[str, Any]) -> None:
    """server-tools: Each provider gets its own words."""
    if engine == "litellm" and wire == "gemini":
        pytest.skip("LiteLLM leaves out some, and writes another anew")
    sent = ask(wire, get_weather, tool, engine=engine, **({"model": model} if model else {}))
    assert told(sent) == [words]
    assert not [change for change in sent.changes if tool.kind in change.why]
    assert "get_weather" in str(sent.body["tools"])


def test_lost_options() -> None:
    """server-tools: An option that a route lacks is on record."""
    sent = ask("gemini", WebSearch(allowed_domains=["a.test"], max_uses=3))
    assert told(sent) == [{"googleSearch": {}}]
    assert [(change.where, change.what, change.why) for change in sent.changes] == [
        ("/tools/0/allowed_domains", "dropped", "WebSearch has no 'allowed_domains' on this route"),
        ("/tools/0/max_uses", "dropped", "WebSearch has no 'max_uses' on this route"),
    ]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_dropped(wire: str) -> None:
    """server-tools: Without a stand-in a missing tool is dropped on record."""
    sent = ask(wire, FileSearch(["vs_1"]))
    assert "tools" not in sent.body
    assert "this route has no FileSearch" in str(sent.changes)


def test_gemini_over_litellm() -> None:
    """server-tools: A stand-in takes the place of a missing tool."""
    sent = ask("gemini", get_weather, WebSearch(local=my_search), engine="litellm")
    assert "my_search" in str(sent.body["tools"])


def test_own_words_win() -> None:
    """server-tools: A provider's own words win."""
    raw = {"type": "web_search_20260209", "name": "web_search", "max_uses": 1}
    sent = ask("anthropic", WebSearch(max_uses=9), raw)
    assert told(sent) == [raw]
    assert "the provider's own words" in str(sent.changes)


def test_options_of_one_provider() -> None:
    """server-tools: Options of one provider are merged into its entry."""
    options: Any = {
        "anthropic": {"type": "web_search_20260209"},
        "openrouter": {"parameters": {"max_results": 3}},
        "gemini": {"googleSearch": {"timeRangeFilter": {}}},
    }
    search = WebSearch(allowed_domains=["a.test"], options=options)
    assert told(ask("anthropic", search))[0]["type"] == "web_search_20260209"
    assert told(ask("openai", search, model="openrouter/x/y"))[0]["parameters"] == {
        "allowed_domains": ["a.test"],
        "max_results": 3,
    }
    assert told(ask("gemini", search)) == [{"googleSearch": {"timeRangeFilter": {}}}]
    assert told(ask("responses", search)) == [
        {"type": "web_search", "filters": {"allowed_domains": ["a.test"]}}
    ]


CHOICES = [
    ("anthropic", "WebSearch", {"type": "tool", "name": "web_search"}),
    ("anthropic", "my_search", {"type": "tool", "name": "web_search"}),
    ("responses", "WebSearch", {"type": "web_search"}),
    ("openai", "WebSearch", {"type": "function", "function": {"name": "my_search"}}),
]


@pytest.mark.parametrize(("wire", "asked", "told"), CHOICES)
def test_tool_choices(wire: str, asked: str, told: Any) -> None:
    """server-tools: A tool choice may name a server tool."""
    answer = Answer(calls=[Call("my_search", {"query": "x"})]) if wire == "openai" else DONE
    sent = ask(wire, get_weather, WebSearch(local=my_search), tool_choice=asked, answer=answer)
    assert sent.body["tool_choice"] == told


def test_a_choice_of_what_is_not_sent() -> None:
    """server-tools: A tool choice may name a server tool."""
    sent = ask("openai", get_weather, WebSearch(), tool_choice="WebSearch")
    assert sent.body.get("tool_choice") in (None, "auto")
    assert "it names is not sent" in str(sent.changes)


def test_anthropics_servers() -> None:
    """server-tools: Anthropic gets servers, toolsets and a beta header."""
    servers = [
        McpServer("docs", "https://a.test/", token=TOKEN, allowed_tools=["read"]),
        McpServer("w", "https://b.test/"),
    ]
    sent = ask("anthropic", get_weather, *servers)
    assert sent.body["mcp_servers"] == [
        {"type": "url", "name": "docs", "url": "https://a.test/", "authorization_token": TOKEN},
        {"type": "url", "name": "w", "url": "https://b.test/"},
    ]
    chosen = {"default_config": {"enabled": False}, "configs": {"read": {"enabled": True}}}
    assert told(sent) == [
        {"type": "mcp_toolset", "mcp_server_name": "docs", **chosen},
        {"type": "mcp_toolset", "mcp_server_name": "w"},
    ]
    assert sent.received[0].headers["anthropic-beta"].count("mcp-client") == 1


BETAS = [
    ({"type": "advisor_20260301", "name": "advisor", "model": "m"}, "advisor-tool-2026-03-01"),
    ({"type": "computer_20251124", "name": "computer"}, "computer-use-2025-11-24"),
    ({"type": "web_search_20250305", "name": "web_search"}, None),
]


@pytest.mark.parametrize(("tool", "header"), BETAS)
def test_anthropics_tools_get_the_header_that_they_need(tool: dict[str, Any], header: str | None) -> None:
    """server-tools: A tool that needs a beta header gets it"""
    assert ask("anthropic", get_weather, tool).received[0].headers.get("anthropic-beta") == header


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wire", ["anthropic", "responses"])
def test_a_token(engine: str, wire: str, tmp_path: Path) -> None:
    """server-tools: A token is in the body alone."""
    if (wire, engine) == ("anthropic", "litellm"):
        pytest.skip("LiteLLM refuses MCP servers of Claude; they are dropped on record")
    record = tmp_path / "exchanges.jsonl"
    server = McpServer("docs", "https://a.test/", token=TOKEN)
    with LoopbackProvider([DONE], record=record) as provider:
        lm: Any = lm_of(provider, wire, engine)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            out = dspy.Predict(Turns)(question="q", tools=[server])
    assert TOKEN in json.dumps(provider.received[0].body)
    assert TOKEN not in record.read_text("utf-8")
    assert TOKEN not in str(lm.history) + repr(out)
