"""The linter of declarations, as functions and as the command."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sigadapt import ToolDecls, Toolset
from sigadapt.commands import main


def described(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    raise AssertionError


OPTIONAL: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string", "description": "A."}}}
STRICT = {"name": "f", "description": "F.", "parameters": OPTIONAL, "strict": True}
BAD: list[Any] = [{"name": f"f{n}", "parameters": {"type": "dict"}} for n in range(3)]
MIXED, TWICE, BOTH = [described, *BAD, 5], [described, described], [described, Toolset("t", [described])]


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
    """tool-check: The exit code says whether anything is wrong."""
    assert main(["show", "--tools", place]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert place.partition(":")[0] in captured.err
