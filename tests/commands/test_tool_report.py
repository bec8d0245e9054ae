"""The linter of declarations, as functions and as the command."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.test_show import SERVER
from processes import run_python
from support import LITELLM, NATIVE

import sigadapt
from sigadapt import RequestContext, ToolDecls, Toolset
from sigadapt.commands import main


def described(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    raise AssertionError


def f(a: int, b: str) -> None: ...


async def asked(context: RequestContext) -> list[Any]:
    return [described]


LONG = {"name": "x" * 70, "description": "X."}
NOW = {"name": "now", "description": "The time."}
OPTIONAL: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string", "description": "A."}}}
STRICT = {"name": "f", "description": "F.", "parameters": OPTIONAL, "strict": True}
BAD: list[Any] = [{"name": f"f{n}", "parameters": {"type": "dict"}} for n in range(3)]
MIXED, TWICE, BOTH = [described, *BAD, 5], [described, described], [described, Toolset("t", [described])]
TOOLSET = Toolset("t", asked).prefixed("x_")


@pytest.fixture
def checked(capsys: Any) -> Callable[[str], dict[str, Any]]:
    """What the command reports of tools of this module."""

    def check(name: str) -> dict[str, Any]:
        code = main(["show", "--tools", f"{__name__}:{name}", "--json"])
        document = json.loads(capsys.readouterr().out)
        assert code == (not document["ok"])
        return document

    return check


@pytest.fixture
def found(checked: Callable[[str], dict[str, Any]]) -> Callable[[str], list[dict[str, Any]]]:
    return lambda name: checked(name)["findings"]


def test_a_good_tool_has_no_errors(found: Any):
    """tool-check: What is wrong with declarations is reported for each provider."""
    (caveat,) = found("described")
    assert (caveat["level"], caveat["wires"]) == ("note", ["litellm/gemini"])
    assert "LiteLLM may leave out parts" in caveat["why"]


def test_a_tool_that_goes_everywhere_whole_has_no_findings(found: Any):
    assert found("NOW") == []


def test_names_that_a_provider_would_refuse_are_notes(checked: Any, found: Any):
    """tool-check: What is wrong with declarations is reported for each provider."""
    document = checked("LONG")
    (long,) = document["findings"]
    assert (long["level"], set(long["wires"])) == ("note", set(document["routes"]))
    (dotted,) = found("DOTTED")
    assert "renamed" in dotted["why"]
    assert "gemini" not in dotted["wires"]
    assert {"openai-chat", "anthropic", "litellm/bedrock-converse"} <= set(dotted["wires"])


def test_what_is_not_described_is_found(found: Any):
    """tool-check: What is wrong with declarations is reported for each provider."""
    error, note, _ = found("f")
    assert (error["level"], error["tool"], error["wires"]) == ("error", "f", [])
    assert (note["level"], note["why"]) == ("note", "parameters without a description: a, b")


def test_every_refused_declaration_is_told(checked: Any, found: Any):
    """tool-check: Every refused declaration is told."""
    report = checked("MIXED")
    refused = [finding["tool"] for finding in report["findings"] if finding["level"] == "error"]
    assert refused == ["f0", "f1", "f2", None]
    assert [tool["name"] for tool in report["tools"]] == ["described"]
    (duplicate,) = found("TWICE")
    assert "declared 2 times" in duplicate["why"]
    (both,) = found("BOTH")
    assert "toolset 't'" in both["why"]


def test_strict_tools_that_cannot_be_are_errors(found: Any):
    """tool-check: What is wrong with declarations is reported for each provider."""
    errors = {wire for finding in found("STRICT") if finding["level"] == "error" for wire in finding["wires"]}
    assert {"openai-chat", "openai-responses"} <= errors
    assert "anthropic" not in errors


def test_toolsets_are_asked(checked: Any):
    report = checked("TOOLSET")
    assert [tool["name"] for tool in report["tools"]] == ["x_described"]


REPORTED = [ToolDecls([described, {"name": "a.b"}]), {"name": "g", "parameters": 5}]


def test_the_report_tells_every_tool_and_its_size(capsys: pytest.CaptureFixture[str]):
    """tool-check: The size of every tool is told."""
    decls = ToolDecls(REPORTED[0])
    assert main(["show", "--tools", f"{__name__}:REPORTED"]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"2 tools, {sum(decl.size for decl in decls)} bytes, fingerprint {decls.fingerprint()}"
    assert f"described: {decls['described'].size} bytes" in rest
    assert "  error: it has no description" in rest
    assert rest[-2] == "not declared:"
    assert "'g'" in rest[-1]


@pytest.mark.parametrize("place", ["nowhere:x", "json:nothing", "json", "", ":x"])
def test_a_place_that_is_none_is_refused(place: str, capsys: pytest.CaptureFixture[str]):
    assert main(["show", "--tools", place]) == 2
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
    assert main(["show", "--tools", f"{name}:TOOLS"]) == code
    assert told in capsys.readouterr().out


def test_the_command_refuses_a_place_that_is_none(capsys: pytest.CaptureFixture[str]):
    """tool-check: The exit code says whether anything is wrong."""
    assert main(["show", "--tools", "nowhere:TOOLS"]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_runs_from_a_shell(tmp_path: Path):
    (tmp_path / "mine.py").write_text("TOOLS = [{'name': 'f', 'description': 'F.'}]", encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(sigadapt.__file__).parents[1])}
    done = run_python("-m", "sigadapt", "show", "--tools", "mine:TOOLS", cwd=tmp_path, env=env, check=True)
    assert done.stdout.startswith("1 tool,")


DOTTED = {"name": "a.b", "description": "X."}


def test_all_routes_are_checked(checked: Any):
    """tool-check: What is wrong with declarations is reported for each provider."""
    routes = checked("DOTTED")["routes"]
    assert {*NATIVE, *(f"litellm/{wire}" for wire in LITELLM)} <= {*routes}
    assert len({*routes}) == len(routes)


def test_the_result_of_list_tools_is_checked(capsys: Any):
    """command-line: Tools come from modules and from MCP servers."""
    assert main(["show", "--tools", "commands.programs:LISTED", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in document["tools"]] == ["now"]
    assert [finding["why"] for finding in document["findings"]] == ["it has no description"]


@pytest.mark.slow
def test_the_tools_of_an_mcp_server_are_checked(tmp_path: Path, capsys: Any):
    """command-line: Tools come from modules and from MCP servers."""
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    command = f"{sys.executable} {tmp_path / 'server.py'}"
    assert main(["show", "--mcp", command]) == 0
    assert "add: " in capsys.readouterr().out
    assert main(["show", "--tools", "commands.programs:LISTED", "--mcp", command]) == 1
    assert capsys.readouterr().out.startswith("2 tools")


def test_something_must_be_named_to_be_checked(capsys: Any):
    """command-line: An error is one line, and never a traceback."""
    assert main(["show"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "there is nothing to show" in line
