"""`sigadapt read`: bodies and streams of every wire, and text, come out as calls good and bad."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import bytes_of

from sigadapt.commands import main
from sigadapt.testing import WIRES, Answer, Call

TOOLS = "commands.programs:TOOLS"
GOOD = Answer(text="Let me look.", calls=[Call("get_weather", {"city": "Paris"})])
BAD = Answer(calls=[Call("get_weather", {"city": 42}), Call("get_weather", {"city": "Rome"})])
DIALECTS = {"openai": "openai-chat", "responses": "openai-responses"}


def read(content: bytes, *words: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the document that was printed, and the errors."""
    with (
        TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()) as errors,
    ):
        file = Path(folder, "answer")
        file.write_bytes(content)
        code = main(["read", str(file), "--json", *words])
    return code, json.loads(printed.getvalue() or "{}"), errors.getvalue()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", list(WIRES))
def test_the_wire_is_found_out(wire: str, *, stream: bool) -> None:
    """command-line: Bodies and streams of every wire are read."""
    code, found, _ = read(bytes_of(wire, GOOD, stream=stream))
    assert (code, found["kind"]) == (0, "stream" if stream else "body")
    assert found["wire"] == DIALECTS.get(wire, wire)
    (choice,) = found["choices"]
    assert choice["text"] == "Let me look."
    assert [(call["name"], call["args"]) for call in choice["calls"]] == [("get_weather", {"city": "Paris"})]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_may_begin_with_its_encoding(encoding: str, *, stream: bool) -> None:
    """command-line: Bodies and streams of every wire are read."""
    content = bytes_of("openai", GOOD, stream=stream)
    assert read(content.decode().encode(encoding)) == read(content)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", list(WIRES))
def test_calls_are_checked_against_tools_on_request(
    wire: str, *, stream: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line: Calls are checked against the tools that are given."""
    file = tmp_path / "answer"
    file.write_bytes(bytes_of(wire, BAD, stream=stream))
    assert main(["read", str(file)]) == 0
    assert "not checked against tools" in capsys.readouterr().out
    assert main(["read", str(file), "--tools", TOOLS]) == 1
    shown = capsys.readouterr().out
    assert "schema_mismatch" in shown
    assert "at /city" in shown
    assert "^^" in shown
    assert "Rome" in shown


def test_text_is_read_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """command-line: Text needs the tools."""
    text = b'Sure. <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["read", "-", "--tools", TOOLS, "--json"]) == 0
    (call,) = json.loads(capsys.readouterr().out)["choices"][0]["calls"]
    assert call["altered"] == ["recovered"]


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (b"", 2, "there is nothing to read"),
        (b"  \n", 2, "there is nothing to read"),
        (b'{"a": 1}', 2, "got an object with 'a'"),
        (b"[1, 2]", 2, "expected an answer in a known wire format"),
        (b"data: {}\n\n", 2, "expected an answer in a known wire format"),
        (b'{"choices": [', 2, "expected an answer in a known wire format"),
        (b'{"error": {"message": "overloaded"}}', 1, "the provider answered with an error: overloaded"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(content: bytes, code: int, told: str) -> None:
    """command-line: An error is one line, and never a traceback.

    command-line: The exit code says what happened.
    """
    found_code, _, errors = read(content)
    (line,) = errors.splitlines()
    assert (found_code, line.startswith("sigadapt read: ")) == (code, True)
    assert told in line


def test_a_file_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", "no-such-file"]) == 2
    assert "'no-such-file' cannot be read" in capsys.readouterr().err


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """command-line: An error is one line, and never a traceback."""
    code, found, told = read(content, "--tools", TOOLS)
    assert "unexpected" not in told
    if not found:
        assert code
        (line,) = told.splitlines()
        assert line.removeprefix("sigadapt read: ")
    else:
        assert found["kind"] in {"body", "stream", "text"}


ALIAS = "files_read_601e4eb6"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "ollama"])
def test_a_call_under_an_alias_has_its_declared_name(wire: str, *, stream: bool) -> None:
    """command-line: Calls are checked against the tools that are given."""
    said = Answer(calls=[Call(ALIAS, {"x": "a"}), Call(ALIAS, {"x": 1}), Call("nothing", {})])
    _, found, _ = read(bytes_of(wire, said, stream=stream), "--tools", TOOLS)
    (choice,) = found["choices"]
    assert [(call["name"], call["args"]) for call in choice["calls"]] == [("files.read", {"x": "a"})]
    bad = [(call["name"], call["code"]) for call in choice["invalid"]]
    assert bad == [("files.read", "schema_mismatch"), ("nothing", "unknown_tool")]


CALLS_IN_TEXT = [
    '[get_weather(city="Paris")]',
    '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    '[{"name": "get_weather", "arguments": {"city": "Paris"}}]',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
    '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}}]',
]


@pytest.mark.parametrize("text", CALLS_IN_TEXT)
def test_text_that_looks_like_json_is_text_if_it_calls_a_tool(text: str) -> None:
    """command-line: Text needs the tools."""
    code, found, told = read(text.encode())
    assert (code, found, "--tools" in told) == (2, {}, True)
    _, found, _ = read(text.encode(), "--tools", TOOLS)
    assert found["kind"] == "text"
    assert [call["args"] for choice in found["choices"] for call in choice["calls"]] == [{"city": "Paris"}]
    broken = text.replace("get_weather", "get_time")
    if broken.startswith(("[g", "[{", "{")):
        code, found, told = read(broken.encode(), "--tools", TOOLS)
        assert (code, found) == (2, {})
        assert told.startswith("sigadapt read: ")
