"""The linter of declarations, as functions and as the command."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands.test_show import SERVER
from internals import ROUTE_NAMES, checked, main

import sigadapt
from sigadapt import RequestContext, ToolDecls, Toolset


def described(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    raise AssertionError


async def found(tools: object) -> list[dict[str, Any]]:
    return (await checked(tools))["findings"]


async def test_a_good_tool_has_no_errors():
    """tool-check: What is wrong with declarations is reported for each provider."""
    (caveat,) = await found([described])
    assert (caveat["level"], caveat["wires"]) == ("note", ["litellm/gemini"])
    assert "LiteLLM may leave out parts" in caveat["why"]


async def test_a_tool_that_goes_everywhere_whole_has_no_findings():
    assert await found([{"name": "now", "description": "The time."}]) == []


async def test_names_that_a_provider_would_refuse_are_notes():
    """tool-check: What is wrong with declarations is reported for each provider."""
    (long,) = await found([{"name": "x" * 70, "description": "X."}])
    assert (long["level"], set(long["wires"])) == ("note", set(ROUTE_NAMES))
    (dotted,) = await found({"name": "a.b", "description": "X."})
    assert "renamed" in dotted["why"]
    assert "gemini" not in dotted["wires"]
    assert {"openai-chat", "anthropic", "litellm/bedrock-converse"} <= set(dotted["wires"])


async def test_what_is_not_described_is_found():
    """tool-check: What is wrong with declarations is reported for each provider."""

    def f(a: int, b: str) -> None: ...

    error, note, _ = await found(f)
    assert (error["level"], error["tool"], error["wires"]) == ("error", "f", [])
    assert (note["level"], note["why"]) == ("note", "parameters without a description: a, b")


async def test_every_refused_declaration_is_told():
    """tool-check: Every refused declaration is told."""
    bad = [{"name": f"f{n}", "parameters": {"type": "dict"}} for n in range(3)]
    findings = await found([described, *bad, 5])
    refused = [finding["tool"] for finding in findings if finding["level"] == "error"]
    assert refused == ["f0", "f1", "f2", None]
    report = await checked([described, *bad])
    assert [tool["name"] for tool in report["tools"]] == ["described"]
    (duplicate,) = await found([described, described])
    assert "declared 2 times" in duplicate["why"]
    (both,) = await found([described, Toolset("t", [described])])
    assert "toolset 't'" in both["why"]


async def test_strict_tools_that_cannot_be_are_errors():
    """tool-check: What is wrong with declarations is reported for each provider."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string", "description": "A."}}}
    findings = await found({"name": "f", "description": "F.", "parameters": schema, "strict": True})
    errors = {wire for finding in findings if finding["level"] == "error" for wire in finding["wires"]}
    assert {"openai-chat", "openai-responses"} <= errors
    assert "anthropic" not in errors


async def test_toolsets_are_asked():
    async def tools(context: RequestContext) -> list[Any]:
        return [described]

    report = await checked([Toolset("t", tools).prefixed("x_")])
    assert [tool["name"] for tool in report["tools"]] == ["x_described"]


REPORTED = [ToolDecls([described, {"name": "a.b"}]), {"name": "g", "parameters": 5}]


def test_the_report_tells_every_tool_and_its_size(capsys: pytest.CaptureFixture[str]):
    """tool-check: The size of every tool is told."""
    decls = ToolDecls(REPORTED[0])
    assert main(["check", f"{__name__}:REPORTED"]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"2 tools, {sum(decl.size for decl in decls)} bytes, fingerprint {decls.fingerprint()}"
    assert f"described: {decls['described'].size} bytes" in rest
    assert "  error: it has no description" in rest
    assert rest[-2] == "not declared:"
    assert "'g'" in rest[-1]


@pytest.mark.parametrize("place", ["nowhere:x", "json:nothing", "json", "", ":x"])
def test_a_place_that_is_none_is_refused(place: str, capsys: pytest.CaptureFixture[str]):
    assert main(["check", place]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ("def f():\n    '''Do it.'''\nTOOLS = [f]", 0, "1 tool,"),
        ("TOOLS = [{'name': 'f'}]", 1, "error: it has no description"),
        ("TOOLS = [5]", 1, "not declared"),
    ],
)
def test_the_exit_code_is_for_ci(
    body: str, *, code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    """tool-check: The exit code says whether anything is wrong."""
    name = f"tools_{code}_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(body, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["check", f"{name}:TOOLS"]) == code
    assert told in capsys.readouterr().out


def test_the_command_refuses_a_place_that_is_none(capsys: pytest.CaptureFixture[str]):
    """tool-check: The exit code says whether anything is wrong."""
    assert main(["check", "nowhere:TOOLS"]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_runs_from_a_shell(tmp_path: Path):
    (tmp_path / "mine.py").write_text("TOOLS = [{'name': 'f', 'description': 'F.'}]", encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(sigadapt.__file__).parents[1])}
    command = [sys.executable, "-m", "sigadapt", "check", "mine:TOOLS"]
    out = subprocess.check_output(command, text=True, cwd=tmp_path, env=env)  # noqa: S603
    assert out.startswith("1 tool,")


DOTTED = {"name": "a.b", "description": "X."}


@pytest.mark.parametrize(
    ("words", "wires"),
    [
        (["--wire", "anthropic"], ["anthropic", "litellm/anthropic"]),
        (["--wire", "openai", "--engine", "native"], ["openai-chat", "openai-responses"]),
        (["--wire", "gemini", "--engine", "native"], []),
    ],
)
def test_only_what_is_asked_for_is_checked(words: list[str], wires: list[str], capsys: Any):
    """tool-check: Only the providers and engines asked for are checked."""
    assert main(["check", f"{__name__}:DOTTED", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [finding["wires"] for finding in document["findings"]] == ([wires] if wires else [])
    assert main(["check", f"{__name__}:DOTTED", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["routes"] == list(ROUTE_NAMES)


@pytest.mark.parametrize(("provider", "engine"), [("telegraph", None), ("bedrock", "native")])
def test_a_provider_without_a_route_is_refused(provider: str, engine: str | None, capsys: Any):
    """tool-check: Only the providers and engines asked for are checked."""
    words = ["--provider", provider, *(["--engine", engine] if engine else [])]
    assert main(["check", f"{__name__}:DOTTED", *words]) == 2
    assert f"'{provider}' is not a provider" in capsys.readouterr().err


def test_the_command_checks_for_one_provider(tmp_path: Path, monkeypatch: Any, capsys: Any):
    """tool-check: Only the providers and engines asked for are checked."""
    (tmp_path / "dotted_tools.py").write_text("TOOLS = [{'name': 'a.b', 'description': 'X.'}]", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["check", "dotted_tools:TOOLS", "--provider", "gemini", "--engine", "native"]) == 0
    assert "note" not in capsys.readouterr().out
    assert main(["check", "dotted_tools:TOOLS", "--provider", "anthropic", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert document["routes"] == ["anthropic", "litellm/anthropic"]
    (finding,) = document["findings"]
    assert finding["wires"] == ["anthropic", "litellm/anthropic"]
    assert main(["check", "dotted_tools:TOOLS", "--provider", "telegraph"]) == 2
    assert "Use one of anthropic" in capsys.readouterr().err


def test_the_result_of_list_tools_is_checked(capsys: Any):
    """command-line: Tools come from modules and from MCP servers."""
    assert main(["check", "commands.programs:LISTED", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in document["tools"]] == ["now"]
    assert [finding["why"] for finding in document["findings"]] == ["it has no description"]


@pytest.mark.slow
def test_the_tools_of_an_mcp_server_are_checked(tmp_path: Path, capsys: Any):
    """command-line: Tools come from modules and from MCP servers."""
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    command = f"{sys.executable} {tmp_path / 'server.py'}"
    assert main(["check", "--mcp", command]) == 0
    assert "add: " in capsys.readouterr().out
    assert main(["check", "commands.programs:LISTED", "--mcp", command]) == 1
    assert capsys.readouterr().out.startswith("2 tools")


def test_something_must_be_named_to_be_checked(capsys: Any):
    """command-line: An error is one line, and never a traceback."""
    assert main(["check"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "there are no tools to check" in line
