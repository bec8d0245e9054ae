"""`sigadapt show`: the requests are those that the real clients send, and nothing leaves."""

import json
import os
import re
import shutil
import sys
from typing import Any, cast

import dspy
import pytest
from commands import programs
from tables import table

import sigadapt
from sigadapt.commands import main
from sigadapt.testing import WIRES, Answer, LoopbackProvider

ASSIST, TOOLS = "commands.programs:Assist", "commands.programs:TOOLS"


def document(capsys: Any, *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["show", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("wire", list(WIRES))
def test_the_request_is_the_one_that_a_program_sends(wire: str, capsys: Any) -> None:
    """command-line: The shown request is the one that the provider would get."""
    inputs = {"question": "Weather in Rome?", "days": 2, "tools": programs.TOOLS}
    with LoopbackProvider([Answer(text="Sunny.")]) as provider:
        lm = dspy.LM(**provider.lm_options(wire))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            dspy.Predict(programs.Assist)(**inputs)
    (received,) = provider.received
    row = WIRES[wire]
    changes = cast("list[Any]", lm.history[-1].get("changes") or [])
    options = [word for key, value in row.options.items() for word in (f"--{key.replace('_', '-')}", value)]
    words = [ASSIST, "-t", TOOLS, "-m", row.model, *options]
    words += ["-i", "question=Weather in Rome?", "-i", "days=2"]
    (sent,) = document(capsys, *words)["requests"]
    assert sent["body"] == received.body
    assert sent["path"] == received.path
    assert sent["changes"] == [change._asdict() for change in changes]


@pytest.mark.litellm
def test_each_wire_is_shown_without_a_key_or_a_network(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """command-line: Every wire is shown without a key."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    found = document(capsys, ASSIST, "--tools", TOOLS)
    assert [request["model"] for request in found["requests"]] == [row.model for row in WIRES.values()]
    assert found["placeholders"] == ["question", "days"]
    assert found["tools"] == ["get_weather", "files.read"]
    assert all(request["error"] is None for request in found["requests"])


def test_changes_that_differ_in_their_tool_alone_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """command-line: What was renamed, lowered or dropped is told with its reason."""
    places = [*("--tools", "commands.programs:TWO_WITH_META"), "-m", "openai/gpt-4o-mini"]
    assert main(["show", ASSIST, *places]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "_meta" in line and "dropped" in line]
    assert line.startswith("  dropped /tools/*/_meta (2 times): ")


@pytest.mark.parametrize(
    ("words", "dotted"),
    [
        (["gemini/gemini-2.5-flash"], "files.read"),
        (["bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"], "files_read_601e4eb6"),
        (["anthropic/claude-sonnet-4-6"], "files_read_601e4eb6"),
        (["openai/gpt-5", "--model-type", "responses"], "files_read_601e4eb6"),
        (["openai/gpt-4o-mini"], "files_read_601e4eb6"),
    ],
)
@pytest.mark.litellm
def test_tools_are_weighed_one_by_one_in_each_form(words: list[str], dotted: str, capsys: Any) -> None:
    """command-line: Each part is weighed in bytes and tokens."""
    (request,) = document(capsys, ASSIST, "--tools", TOOLS, "--model", *words)["requests"]
    parts = [weight["part"] for weight in request["weights"]]
    assert [part for part in parts if part.startswith("tool")] == ["tool get_weather", f"tool {dotted}"]


def test_of_many_tools_the_largest_are_weighed(capsys: pytest.CaptureFixture[str]) -> None:
    """command-line: Each part is weighed in bytes and tokens."""
    assert main(["show", ASSIST, "--tools", "commands.programs:MANY", "-m", "openai/gpt-4o-mini"]) == 0
    shown = capsys.readouterr().out
    assert "9 tools; the largest are:" in shown
    assert re.findall(r"  tool tool_(\d)$", shown, re.MULTILINE) == ["8", "7", "6"]


@pytest.mark.parametrize("name", ["DECLS", "TOOLSET", "LISTED", "get_weather", "DOTTED"])
def test_tools_come_in_many_forms(name: str, capsys: Any) -> None:
    """command-line: Tools come from modules and from MCP servers."""
    words = [ASSIST, "--tools", f"commands.programs:{name}", "-m", "openai/gpt-4o-mini"]
    (request,) = document(capsys, *words)["requests"]
    assert request["body"]["tools"]


SERVER = """
try:
    from mcp.server import MCPServer
except ImportError:  # version 1
    from mcp.server.fastmcp import FastMCP as MCPServer
server = MCPServer("s")
@server.tool()
def add(a: int, b: int) -> int:
    "Add."
    raise AssertionError
server.run()
"""


def test_the_tools_of_an_mcp_server_are_shown(capsys: Any, tmp_path: Any) -> None:
    """command-line: Tools come from modules and from MCP servers."""
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    words = [ASSIST, "--mcp", f"{sys.executable} {tmp_path / 'server.py'}", "-m", "openai/gpt-4o-mini"]
    found = document(capsys, *words)
    assert found["tools"] == ["add"]


@pytest.mark.parametrize("command", ["false", "no-such-command", "", "echo hello"])
def test_a_command_that_is_no_mcp_server_is_one_sentence(command: str, capsys: Any) -> None:
    """command-line: An error is one line, and never a traceback."""
    if command and shutil.which(command.split(maxsplit=1)[0]) is None and command != "no-such-command":
        pytest.skip(f"there is no {command}")
    assert main(["show", ASSIST, "--mcp", command]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sigadapt show: field 'mcp': ")


def test_a_module_is_shown(capsys: Any) -> None:
    """command-line: A program's first request is shown."""
    found = document(capsys, "commands.programs:PROGRAM", "-t", TOOLS, "-m", "openai/gpt-4o-mini")
    assert found["signature"] == "Assist"


def test_a_module_that_runs_in_a_loop_alone_is_shown(capsys: Any) -> None:
    """command-line: A program's first request is shown."""
    found = document(capsys, "commands.programs:ASYNC", "-m", "openai/gpt-4o-mini", "--input", "query=so")
    [request] = found["requests"]
    assert (found["signature"], found["placeholders"], request["error"]) == ("Async", [], None)
    assert "Well, so?" in str(request["body"])


CLAUDE = ["-m", "anthropic/claude-sonnet-4-6"]
SEARCH = ["-t", "commands.programs:SEARCH"]


@pytest.mark.parametrize("words", [["question -> answer", "--react"], ["commands.programs:OfDSPy"]])
def test_a_tool_that_the_provider_runs_is_said_to_be_left_out(words: list[str], capsys: Any) -> None:
    """command-line: The shown request is the one that the provider would get."""
    words = [*words, "-t", TOOLS, *SEARCH, *CLAUDE]
    found = document(capsys, *words)
    assert "web_search" not in json.dumps(found["requests"][0]["body"])
    assert (found["tools"], found["left_out"]) == (["get_weather", "files.read"], ["web_search_20250305"])
    assert main(["show", *words]) == 0
    told = "Left out, because only functions can be given here: web_search_20250305"
    assert told in capsys.readouterr().out.splitlines()


def test_long_bodies_are_cut_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    """command-line: A long body is cut on request, and says what was cut."""
    words = [ASSIST, "-t", TOOLS, "-m", "openai/gpt-4o-mini", "-i", f"question={'x' * 500}"]
    (request,) = document(capsys, *words)["requests"]
    main(["show", *words])
    whole = capsys.readouterr().out
    main(["show", *words, "--short"])
    shown = capsys.readouterr().out
    assert len(shown) < len(whole)
    assert '"… and 1 more"' in shown
    for row in request["body"]["messages"]:
        text = json.dumps(row["content"][:60], ensure_ascii=False)[:-1]
        assert f'{text}… ({len(row["content"])} characters)"' in shown


@pytest.mark.parametrize(("words", "told"), table(__file__, "NOT_SHOWN"))
def test_what_cannot_be_shown_is_one_sentence(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line: An error is one line, and never a traceback."""
    assert main(["show", *words]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("sigadapt show: ")
    assert told in line
    assert captured.out == ""


def test_a_servers_token_is_not_shown(capsys: Any) -> None:
    """server-tools: A token is in the body alone."""
    assert main(["show", ASSIST, "--tools", "commands.programs:SERVERS"]) == 0
    shown = capsys.readouterr().out
    assert '"authorization_token": "***"' in shown
    assert programs.TOKEN not in shown
    assert main(["show", "--tools", "commands.programs:SERVERS"]) == 0
    assert programs.TOKEN not in capsys.readouterr().out
