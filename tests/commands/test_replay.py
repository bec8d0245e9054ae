"""`sigadapt replay`: a recorded answer reaches a signature byte for byte, streams as streams."""

import json
from pathlib import Path
from typing import Any, cast

import dspy
import pytest
from commands import programs
from internals import main

import sigadapt
from sigadapt.testing import WIRES, Answer, Call, Failure, LoopbackProvider, Reply

ASSIST, TOOLS = "commands.programs:Assist", "commands.programs:TOOLS"
GOOD = Answer(text="Let me look.", calls=[Call("get_weather", {"city": "Paris"})])
BAD = Answer(calls=[Call("get_weather", {"city": 42}), Call("get_weather", {"city": "Rome"})])
INPUTS: dict[str, Any] = {"question": "Weather?", "days": 1, "tools": programs.TOOLS}
GIVEN = ["-i", "question=Weather?", "-i", "days=1"]


def record(path: Path, wire: str, reply: Reply, *, stream: bool = False, **adapted: Any) -> Any:
    """Record one exchange; return what the program got."""
    with LoopbackProvider([reply], record=path) as provider:
        lm = dspy.LM(**provider.lm_options(wire))
        made = adapted.pop("adapter", sigadapt.ChatAdapter)
        adapter = made(**{"on_invalid": "keep", "tool_calling": "native", **adapted})
        with dspy.context(lm=lm, adapter=adapter):
            program: Any = dspy.Predict(programs.Assist)
            if stream:
                pieces = list(cast("Any", dspy.streamify(program, async_streaming=False))(**INPUTS))
                return pieces[-1]
            return program(**INPUTS)


def replay(capsys: Any, path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["replay", str(path), "--signature", ASSIST, "--tools", TOOLS, "--json", *words])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", list(WIRES))
def test_a_recorded_exchange_is_replayed(wire: str, *, stream: bool, tmp_path: Path, capsys: Any) -> None:
    """command-line: A recorded exchange gives what the program got."""
    path = tmp_path / "recording.jsonl"
    got = record(path, wire, BAD, stream=stream)
    code, found = replay(capsys, path, *GIVEN)
    assert code == 1
    (exchange,) = found["exchanges"]
    assert exchange["outputs"]["calls"] == str(got.calls)
    assert [call["args"] for call in exchange["answer"]["calls"]] == [{"city": "Rome"}]
    (bad,) = exchange["answer"]["invalid"]
    assert (bad["code"], bad["path"]) == ("schema_mismatch", "/city")
    assert exchange["request_differs_in"] == []
    assert found["placeholders"] == []


def test_a_good_exchange_is_a_success(tmp_path: Path, capsys: Any) -> None:
    """command-line: A recorded exchange gives what the program got."""
    path = tmp_path / "recording.jsonl"
    record(path, "openai", GOOD)
    record(path, "anthropic", GOOD)
    code, found = replay(capsys, path)
    assert code == 0
    assert [exchange["wire"] for exchange in found["exchanges"]] == ["openai-chat", "anthropic"]
    assert [exchange["ok"] for exchange in found["exchanges"]] == [True, True]
    assert found["placeholders"] == ["question", "days"]
    assert found["exchanges"][0]["request_differs_in"] == ["messages"]


def test_a_call_that_another_declaration_refuses_is_found(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "recording.jsonl"
    record(path, "openai", GOOD)
    code = main(["replay", str(path), "-s", ASSIST, "-t", "commands.programs:DOTTED"])
    assert code == 1
    shown = capsys.readouterr().out
    assert "unknown_tool" in shown
    assert "differs from the recorded one in: messages, tools" in shown


def test_a_recorded_failure_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """command-line: The exit code says what happened."""
    path = tmp_path / "recording.jsonl"
    with pytest.raises(Exception, match="slow down"):
        record(path, "openai", Failure(429, "slow down"))
    assert main(["replay", str(path), "-s", ASSIST, "-t", TOOLS]) == 1
    shown = capsys.readouterr().out
    assert "status 429" in shown
    assert "slow down" in shown


SAID = 'Look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", list(WIRES))
def test_a_prompted_recording_is_replayed_as_prompted(
    wire: str, *, stream: bool, tmp_path: Path, capsys: Any
) -> None:
    """command-line: A recorded exchange gives what the program got."""
    path = tmp_path / "recording.jsonl"
    got = record(path, wire, Answer(text=SAID), stream=stream, tool_calling="prompted")
    code, found = replay(capsys, path, *GIVEN)
    (exchange,) = found["exchanges"]
    assert [call["name"] for call in exchange["answer"]["calls"]] == ["get_weather"]
    assert exchange["outputs"] == {name: v if v is None else str(v) for name, v in got.items()}
    assert exchange["request_differs_in"] == []
    assert code == 0


ADAPTERS = {
    "json": sigadapt.JSONAdapter,
    "xml": sigadapt.adapters.XMLAdapter,
    "baml": sigadapt.adapters.BAMLAdapter,
}
ANSWERS = {
    "json": '{"answer": "Sunny."}',
    "xml": "<answer>Sunny.</answer>",
    "baml": '{"answer": "Sunny."}',
}


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini", "ollama"])
@pytest.mark.parametrize("adapter", ["json", "xml", "baml"])
def test_the_adapter_of_a_recording_is_found(
    adapter: str, wire: str, mode: str, tmp_path: Path, capsys: Any
) -> None:
    """command-line: A recorded exchange gives what the program got."""
    path = tmp_path / "recording.jsonl"
    got = record(path, wire, Answer(text=ANSWERS[adapter]), adapter=ADAPTERS[adapter], tool_calling=mode)
    assert got.answer == "Sunny."
    code, found = replay(capsys, path)
    (exchange,) = found["exchanges"]
    assert (code, exchange["adapter"], exchange["same_instructions"]) == (0, adapter, True)
    assert exchange["outputs"] == {"answer": "Sunny.", "calls": "no calls"}


def test_a_recording_of_another_program_is_a_finding(tmp_path: Path, capsys: Any) -> None:
    """command-line: The exit code says what happened."""
    path = tmp_path / "recording.jsonl"
    record(path, "openai", Answer(text=ANSWERS["json"]), adapter=sigadapt.JSONAdapter)
    words = ["replay", str(path), "-s", ASSIST, "-t", TOOLS]
    assert main([*words, "--adapter", "chat"]) == 1
    assert "the instructions are not the recorded ones" in capsys.readouterr().out
    assert main([*words, "--tool-calling", "prompted"]) == 1
    assert "the instructions are not the recorded ones" in capsys.readouterr().out
    assert main([*words, "--adapter", "json", "--tool-calling", "native"]) == 0
    assert "error:" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the recording is empty"),
        ("{}", "line 1 of the recording is not an exchange"),
        ("nonsense", "line 1 of the recording is not an exchange"),
    ],
)
def test_a_file_that_is_no_recording_is_one_sentence(
    content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line: An error is one line, and never a traceback."""
    (tmp_path / "f").write_text(content, "utf-8")
    assert main(["replay", str(tmp_path / "f"), "-s", ASSIST]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_an_unknown_wire_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "recording.jsonl"
    record(path, "openai", GOOD)
    path.write_text(path.read_text("utf-8").replace('"wire": "openai"', '"wire": "telegraph"'), "utf-8")
    assert main(["replay", str(path), "-s", ASSIST, "-t", TOOLS]) == 2
    assert "'telegraph' cannot be replayed" in capsys.readouterr().err


@pytest.mark.parametrize("request_", [{}, {"model": ""}, {"model": 5, "messages": 7}])
def test_a_request_without_a_model_is_one_sentence(
    request_: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line: An error is one line, and never a traceback."""
    path = tmp_path / "recording.jsonl"
    line = {"wire": "openai", "path": "/v1/chat/completions", "request": request_, "status": 200}
    path.write_text(json.dumps({**line, "content_type": "application/json", "response": "{}"}), "utf-8")
    assert main(["replay", str(path), "-s", ASSIST, "-t", TOOLS]) in (1, 2)
    told = capsys.readouterr()
    assert "unexpected" not in told.err + told.out


def test_what_was_masked_is_said(tmp_path: Path, capsys: Any) -> None:
    """command-line: A recorded exchange gives what the program got."""
    path = tmp_path / "recording.jsonl"
    record(path, "openai", GOOD)
    line = json.loads(path.read_text("utf-8"))
    assert line["masked"] == []
    path.write_text(json.dumps({**line, "masked": ["/request/metadata", "/response"]}), "utf-8")
    code, found = replay(capsys, path, *GIVEN)
    assert (code, found["exchanges"][0]["masked"]) == (0, ["/request/metadata", "/response"])
    main(["replay", str(path), "--signature", ASSIST, "--tools", TOOLS, *GIVEN])
    assert "Masked in the recording: /request/metadata, /response" in capsys.readouterr().out
