"""Server tools, sent to each provider in its own words."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from support import ENGINES, Turns, lm_of

import sigadapt
from sigadapt.server_tools import CodeExecution, FileSearch, ImageGeneration, McpServer, WebFetch, WebSearch
from sigadapt.testing import Answer, Call, LoopbackProvider

TOKEN = "tok-of-a-test-1234"  # noqa: S105  (of no server)
MODELS = {"gemini": "gemini/gemini-3-flash-preview"}
DONE = Answer(text="[[ ## answer ## ]]\nSo.")


def get_weather(city: str) -> str:
    """Weather for a city."""
    return city


def my_search(query: str) -> str:
    """Search with my own engine."""
    return f"found {query}"


class Sent:
    """What a provider got, and what came of it."""

    def __init__(
        self,
        wire: str,
        *tools: Any,
        answer: Any = DONE,
        engine: str = "auto",
        record: Any = None,
        **options: Any,
    ) -> None:
        model = options.pop("model", MODELS.get(wire))
        with LoopbackProvider([answer], record=record) as provider:
            lm = lm_of(provider, wire, engine, **({"model": model} if model else {}))
            made: Any = sigadapt.ChatAdapter
            adapter = made(**{"tool_calling": "native", **options})
            with dspy.context(lm=lm, adapter=adapter):
                ask: Any = dspy.Predict(Turns)
                self.out = ask(question="q", tools=list(tools))
            (received,) = provider.received
        self.body, self.headers = received.body, received.headers
        self.tools: list[Any] = [
            tool for tool in self.body.get("tools", []) if "get_weather" not in str(tool)
        ]
        self.history: Any = lm.history
        self.changes: list[Any] = [change for entry in self.history for change in entry.get("changes") or ()]


DOMAINS: Any = {"allowed_domains": ["a.test"], "blocked_domains": ["b.test"]}
XS = {"allowed_domains": ["a.test"], "excluded_domains": ["b.test"]}
WORDS: list[tuple[str, str | None, Any, dict[str, Any]]] = [
    (
        "anthropic",
        None,
        WebSearch(**DOMAINS, max_uses=2),
        {"type": "web_search_20250305", "name": "web_search", **DOMAINS, "max_uses": 2},
    ),
    (
        "anthropic",
        None,
        WebFetch(max_uses=1),
        {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 1},
    ),
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
    (
        "openai",
        "openrouter/openai/gpt-5",
        WebSearch(**DOMAINS),
        {"type": "openrouter:web_search", "parameters": XS},
    ),
    ("openai", "openrouter/openai/gpt-5", ImageGeneration(), {"type": "openrouter:image_generation"}),
    ("openai", "groq/openai/gpt-oss-120b", WebSearch(), {"type": "browser_search"}),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("wire", "model", "tool", "words"), WORDS)
def test_words(engine: str, wire: str, model: str | None, tool: Any, words: dict[str, Any]) -> None:
    """server-tools: Each provider gets its own words."""
    if engine == "litellm" and wire == "gemini":
        pytest.skip("LiteLLM leaves out some, and writes another anew")
    sent = Sent(wire, get_weather, tool, engine=engine, **({"model": model} if model else {}))
    assert sent.tools == [words]
    assert not [change for change in sent.changes if tool.kind in change.why]
    assert "get_weather" in str(sent.body["tools"])


def test_lost_options() -> None:
    """server-tools: An option that a route lacks is on record."""
    sent = Sent("gemini", WebSearch(allowed_domains=["a.test"], max_uses=3))
    assert sent.tools == [{"googleSearch": {}}]
    assert [(change.where, change.what, change.why) for change in sent.changes] == [
        ("/tools/0/allowed_domains", "dropped", "WebSearch has no 'allowed_domains' on this route"),
        ("/tools/0/max_uses", "dropped", "WebSearch has no 'max_uses' on this route"),
    ]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_dropped(wire: str) -> None:
    """server-tools: Without a stand-in a missing tool is dropped on record."""
    sent = Sent(wire, FileSearch(["vs_1"]))
    assert "tools" not in sent.body
    assert "this route has no FileSearch" in str(sent.changes)


def test_gemini_over_litellm() -> None:
    """server-tools: A stand-in takes the place of a missing tool."""
    sent = Sent("gemini", get_weather, WebSearch(local=my_search), engine="litellm")
    assert "my_search" in str(sent.body["tools"])


def test_own_words_win() -> None:
    """server-tools: A provider's own words win."""
    raw = {"type": "web_search_20260209", "name": "web_search", "max_uses": 1}
    sent = Sent("anthropic", WebSearch(max_uses=9), raw)
    assert sent.tools == [raw]
    assert "the provider's own words" in str(sent.changes)


def test_options_of_one_provider() -> None:
    """server-tools: Options of one provider are merged into its entry."""
    options: Any = {
        "anthropic": {"type": "web_search_20260209"},
        "openrouter": {"parameters": {"max_results": 3}},
        "gemini": {"googleSearch": {"timeRangeFilter": {}}},
    }
    search = WebSearch(allowed_domains=["a.test"], options=options)
    assert Sent("anthropic", search).tools[0]["type"] == "web_search_20260209"
    assert Sent("openai", search, model="openrouter/x/y").tools[0]["parameters"] == {
        "allowed_domains": ["a.test"],
        "max_results": 3,
    }
    assert Sent("gemini", search).tools == [{"googleSearch": {"timeRangeFilter": {}}}]
    assert Sent("responses", search).tools == [
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
    sent = Sent(wire, get_weather, WebSearch(local=my_search), tool_choice=asked, answer=answer)
    assert sent.body["tool_choice"] == told


def test_a_choice_of_what_is_not_sent() -> None:
    """server-tools: A tool choice may name a server tool."""
    sent = Sent("openai", get_weather, WebSearch(), tool_choice="WebSearch")
    assert sent.body.get("tool_choice") in (None, "auto")
    assert "it names is not sent" in str(sent.changes)


def test_anthropics_servers() -> None:
    """server-tools: Anthropic gets servers, toolsets and a beta header."""
    servers = [
        McpServer("docs", "https://a.test/", token=TOKEN, allowed_tools=["read"]),
        McpServer("w", "https://b.test/"),
    ]
    sent = Sent("anthropic", get_weather, *servers)
    assert sent.body["mcp_servers"] == [
        {"type": "url", "name": "docs", "url": "https://a.test/", "authorization_token": TOKEN},
        {"type": "url", "name": "w", "url": "https://b.test/"},
    ]
    chosen = {"default_config": {"enabled": False}, "configs": {"read": {"enabled": True}}}
    assert sent.tools == [
        {"type": "mcp_toolset", "mcp_server_name": "docs", **chosen},
        {"type": "mcp_toolset", "mcp_server_name": "w"},
    ]
    assert sent.headers["anthropic-beta"].count("mcp-client") == 1


BETAS = [
    ({"type": "advisor_20260301", "name": "advisor", "model": "m"}, "advisor-tool-2026-03-01"),
    ({"type": "computer_20251124", "name": "computer"}, "computer-use-2025-11-24"),
    ({"type": "web_search_20250305", "name": "web_search"}, None),
]


@pytest.mark.parametrize(("tool", "header"), BETAS)
def test_anthropics_tools_get_the_header_that_they_need(tool: dict[str, Any], header: str | None) -> None:
    """server-tools: A tool that needs a beta header gets it"""
    assert Sent("anthropic", get_weather, tool).headers.get("anthropic-beta") == header


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wire", ["anthropic", "responses"])
def test_a_token(engine: str, wire: str, tmp_path: Path) -> None:
    """server-tools: A token is in the body alone."""
    if (wire, engine) == ("anthropic", "litellm"):
        pytest.skip("LiteLLM refuses MCP servers of Claude; they are dropped on record")
    record = tmp_path / "exchanges.jsonl"
    sent = Sent(wire, McpServer("docs", "https://a.test/", token=TOKEN), engine=engine, record=record)
    assert TOKEN in json.dumps(sent.body)
    assert TOKEN not in record.read_text("utf-8")
    assert TOKEN not in str(sent.changes) + str(sent.history) + repr(sent.out)
