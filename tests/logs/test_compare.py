"""Models are compared on the rows of a log."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dspy
import pytest
from internals import main
from logs.test_adopt import asks, said, talk

from sigadapt import ToolCalls
from sigadapt.commands.logs.compare import asked_before, rows_in
from sigadapt.logs import compare as agreement
from sigadapt.logs.compare import OUTCOMES, outcome_of, sign_test
from sigadapt.testing import Answer, Call, Failure, LoopbackProvider, Received, Reply

CITIES = [f"City{n}" for n in range(6)]
SILENT = talk("Hi.", (said(text="Hello."), ""))
ROWS = [each for city in CITIES for each in talk(city, (asks("weather", {"city": city}, "c1"), "ok"))]


def city_in(received: Received) -> str:
    text = json.dumps(received.body)
    return next((city for city in CITIES if city in text), "nowhere")


def same(received: Received) -> Reply:
    return Answer(calls=[Call("weather", {"city": city_in(received)})])


def mixed(received: Received) -> Reply:
    city = city_in(received)
    replies: list[Reply] = [
        Answer(calls=[Call("weather", {"city": city})]),
        Answer(calls=[Call("weather", {"city": "Elsewhere"})]),
        Answer(calls=[Call("clock", {})]),
        Answer(calls=[Call("weather", {"city": 7})]),
        Answer(text="I don't know."),
        Failure(400, body=b'{"error": {"message": "no"}}'),
    ]
    return replies[CITIES.index(city)] if city in CITIES else Answer(text="Hello.")


@pytest.fixture
def folder(tmp_path: Path, capsys: Any) -> Path:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, [*ROWS, *SILENT])), encoding="utf-8")
    assert main(["adopt", str(log), "-o", str(tmp_path / "shop"), "--json"]) == 0
    capsys.readouterr()
    return tmp_path / "shop"


def compared(folder: Path, capsys: Any, monkeypatch: Any, *scripts: Any, words: tuple[str, ...] = ()) -> Any:
    """Each model's document, and the providers."""
    names: list[str] = []
    with ExitStack() as stack:
        providers = [stack.enter_context(LoopbackProvider(script)) for script in scripts]
        for number, provider in enumerate(providers):
            lm = dspy.LM(**provider.lm_options(("openai", "anthropic")[number]))
            monkeypatch.setattr(f"logs.test_compare.LM{number}", lm, raising=False)
            names += ["--model", f"logs.test_compare:LM{number}"]
        assert main(["compare", str(folder), *names, "--json", *words]) == 0
    captured = capsys.readouterr()
    assert "requests at most" in captured.err
    assert "accura" not in captured.out.lower()
    return json.loads(captured.out), providers


def test_outcomes(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    """logs: Each row has one outcome."""
    document, providers = compared(folder, capsys, monkeypatch, same, mixed)
    first, second = document["models"]
    assert [first[name] for name in OUTCOMES] == [6, 0, 0, 0, 0, 0]
    assert [second[name] for name in OUTCOMES] == [1, 1, 1, 1, 1, 1]
    assert first["rows"] == second["rows"] == 6
    assert first["input_tokens"] > 0
    assert [len(provider.received) for provider in providers] == [7, 7]
    gold = [{"name": "weather", "args": {"city": "Rome"}}]
    told = outcome_of(gold, ToolCalls([{"name": "weather", "args": {"city": "Oslo"}}]))
    assert told == ("other_arguments", """In weather, /city is "Oslo", expected "Rome".""")
    assert outcome_of(gold, ToolCalls([*gold, *gold]))[0] == "other_tool"


def test_called_anyway(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    """logs: A call where none was needed counts."""
    document, _ = compared(folder, capsys, monkeypatch, same, mixed)
    assert [each["called_anyway"] for each in document["models"]] == [1, 0]


def test_goes_on(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    """logs: A comparison that was stopped goes on."""
    first, _ = compared(folder, capsys, monkeypatch, mixed)
    again, (provider,) = compared(folder, capsys, monkeypatch, mixed)
    assert again["models"] == first["models"]
    assert len(provider.received) == 1  # the row that had no answer
    _, (provider,) = compared(folder, capsys, monkeypatch, mixed, words=("--again",))
    assert len(provider.received) == 7


def test_sign_test(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    """logs: Two models are told apart by a sign test."""
    document, _ = compared(folder, capsys, monkeypatch, same, mixed)
    (test,) = document["sign_tests"]
    assert (test["first_alone"], test["second_alone"], test["p"]) == (4, 0, 0.125)
    assert sign_test(0, 0) == sign_test(5, 5) == 1.0
    assert sign_test(10, 0) == sign_test(0, 10) == pytest.approx(2 / 1024)


def test_table(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    """logs: Each row has one outcome."""
    with LoopbackProvider(mixed) as provider:
        lm = dspy.LM(**provider.lm_options("gemini"))
        monkeypatch.setattr("logs.test_compare.MIXED", lm, raising=False)
        assert main(["compare", str(folder), "--model", "logs.test_compare:MIXED"]) == 0
    told = capsys.readouterr().out
    assert "Agreement with what was recorded" in told
    assert "weather: schema_mismatch /city" in told
    assert 'In weather, /city is "Elsewhere", expected "City1".' in told


def test_refused(folder: Path, tmp_path: Path, capsys: Any) -> None:
    """logs: Tools and models that cannot be used are refused."""
    words = ["compare", str(folder), "--model", "logs.test_compare:CITIES"]
    assert main(words) == 2
    assert "not a dspy.LM" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), "--model", "openai/x"]) == 2
    assert "program.py" in capsys.readouterr().err
    for name in ("train", "heldout", "silences"):
        (folder / f"{name}.jsonl").write_text("", encoding="utf-8")
    assert main(["compare", str(folder), "--model", "openai/x"]) == 2
    assert "no rows" in capsys.readouterr().err


def test_saved_rows_of_another_shape_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """logs: A comparison that was stopped goes on."""
    path = tmp_path / "rows.jsonl"
    lines = [
        '{"question": "a\u2028b"}',
        '"text"',
        "5",
        "[]",
        "null",
        "{",
        '{"row": "k"}',
        '{"row": 5, "asked": 5}',
    ]
    path.write_text("\r\n".join(lines), encoding="utf-8")
    rows = rows_in(path)
    assert rows == [{"question": "a\u2028b"}, {"row": "k"}, {"row": 5, "asked": 5}]
    assert capsys.readouterr().err.count("is left out") == 5
    reply = agreement.Reply("same_call", calls=({"name": "f", "args": {}},), tokens=(1, 2))
    entry = {"row": "k", "asked": json.loads(json.dumps(asdict(reply)))}
    assert asked_before([*rows, entry]) == {"k": reply}
