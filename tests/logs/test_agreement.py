"""Models are compared on the rows of a log."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dspy
import pytest
from internals import main
from logs.adoption.test_adopted import asks, said, talk
from logs.made_logs import WEATHER, log, model, user, weather_log
from logs.made_logs import asks as events_of

from sigadapt import ToolCalls
from sigadapt.errors import InvalidOption
from sigadapt.logs import adopt, agreement
from sigadapt.logs import compare as compare_models
from sigadapt.logs.adoption.folder import rows_in
from sigadapt.logs.agreement import OUTCOMES, outcome_of, replies_in, sign_test
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
            monkeypatch.setattr(f"logs.test_agreement.LM{number}", lm, raising=False)
            names += ["--model", f"logs.test_agreement:LM{number}"]
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
        monkeypatch.setattr("logs.test_agreement.MIXED", lm, raising=False)
        assert main(["compare", str(folder), "--model", "logs.test_agreement:MIXED"]) == 0
    told = capsys.readouterr().out
    assert "Agreement with what was recorded" in told
    assert "weather: schema_mismatch /city" in told
    assert 'In weather, /city is "Elsewhere"' in told


def test_refused(folder: Path, tmp_path: Path, capsys: Any) -> None:
    """logs: Tools and models that cannot be used are refused."""
    words = ["compare", str(folder), "--model", "logs.test_agreement:CITIES"]
    assert main(words) == 2
    assert "not a dspy.LM" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), "--model", "openai/x"]) == 2
    assert "program.py" in capsys.readouterr().err
    for name in ("train", "heldout", "silences"):
        (folder / f"{name}.jsonl").write_text("", encoding="utf-8")
    assert main(["compare", str(folder), "--model", "openai/x"]) == 2
    assert "no rows" in capsys.readouterr().err


def test_saved_rows_of_another_shape_are_left_out(tmp_path: Path) -> None:
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
    rows, bad_lines = rows_in(path)
    assert rows == [{"question": "a\u2028b"}, {"row": "k"}, {"row": 5, "asked": 5}]
    assert bad_lines == 5
    reply = agreement.ModelReply("same_call", calls=({"name": "f", "args": {}},), tokens=(1, 2))
    entry = {"row": "k", "asked": json.loads(json.dumps(asdict(reply)))}
    assert replies_in([*rows, entry]) == {"k": reply}


def agreeing(received: Received) -> Reply:
    text = json.dumps(received.body["messages"])
    city = (
        next((city for city in CITIES if city in text), "") or text.rpartition("Weather in ")[2].split("?")[0]
    )
    return Answer(calls=[Call("get_weather", {"city": city})])


CUSTOM = {
    "type": "custom",
    "custom": {"name": "python", "description": "Run it.", "format": {"type": "text"}},
}


def lm_of(provider: LoopbackProvider, wire: str = "openai") -> Any:
    return dspy.LM(**provider.lm_options(wire))


def test_in_python(tmp_path: Path) -> None:
    """logs: Models are compared in Python as in the shell"""
    adopted = adopt(weather_log())
    adopted.save(tmp_path)
    with LoopbackProvider(agreeing) as provider:
        lm = lm_of(provider)
        for log_or_folder in (adopted, tmp_path, str(tmp_path)):
            comparison = compare_models(log_or_folder, [lm, lm])
            names = [each.model for each in comparison.models]
            assert names == [lm.model, f"{lm.model} (2)"]
            assert [each.same_call for each in comparison.models] == [8, 8]
        comparison = compare_models(adopted, {"old": lm})
        assert comparison.models[0].model == "old"
    assert [path.name for path in tmp_path.glob("asked-*")] == []
    for text in (str(comparison), comparison._repr_html_()):
        assert "same call" in text
        assert "accura" not in text.lower()
    wrongs: list[Any] = [[], [7], {"x": 7}, 7, None]
    for wrong in wrongs:
        with pytest.raises(InvalidOption):
            compare_models(adopted, wrong)


def test_an_error_is_said_once() -> None:
    """logs: Each row has one outcome."""
    adopted = adopt(weather_log())
    with LoopbackProvider([Failure(401, "no such key")]) as provider:
        comparison = compare_models(adopted, lm_of(provider))
    assert (comparison.models[0].error, comparison.models[0].rows) == (8, 8)
    assert str(comparison).count("no such key") == 1


def test_a_row_that_a_wire_cannot_take() -> None:
    """logs: A row that a wire cannot take is skipped"""
    call = {"id": "p1", "type": "custom", "custom": {"name": "python", "input": "2**9"}}
    request = {"messages": [{"role": "user", "content": "Compute."}], "tools": [CUSTOM, WEATHER]}
    answer = {"content": None, "tool_calls": [call]}
    line = {"request": request, "response": {"choices": [{"message": answer}]}}
    adopted = adopt([*weather_log(), line])
    assert len(adopted.rows) == 9
    with LoopbackProvider(agreeing) as provider:
        [on_openai] = compare_models(adopted, lm_of(provider)).models
        [elsewhere] = compare_models(adopted, lm_of(provider, "anthropic")).models
    assert (on_openai.rows, on_openai.skipped, on_openai.same_call) == (9, 0, 8)
    assert (elsewhere.rows, elsewhere.skipped, elsewhere.same_call, elsewhere.error) == (8, 1, 8, 0)
    assert any("custom tools" in reply.why for reply in elsewhere.replies)


def test_a_forced_call_that_does_not_come() -> None:
    """logs: Each row has one outcome."""
    events = events_of("Weather in Lima?", "get_weather", {"city": "Lima"})
    adopted = adopt(log(events, tool_choice="required"))
    with LoopbackProvider([Answer(text="I would rather not.")]) as provider:
        [model_row] = compare_models(adopted, lm_of(provider)).models
        assert provider.received[0].body["tool_choice"] == "required"
    assert (model_row.none, model_row.error) == (1, 0)
    assert adopt(log([user("Hi."), model("Hello.")])).rows == []
