"""Texts of tools are rewritten by failure, and written to one file that is reviewed."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dspy
import pytest
from internals import main

from sigadapt import ToolDecls, ToolTexts
from sigadapt.errors import InvalidOption
from sigadapt.logs import adopt, improve
from sigadapt.testing import Answer, Call, LoopbackProvider, Received, Reply

TOWNS = {"Salem": "OR", "Reno": "NV", "Elko": "NV", "Aspen": "CO", "Tampa": "FL", "Lowell": "MA"}


def tool(name: str, description: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"name": name, "description": description, "parameters": schema}


TOOLS = [tool("weather", "Rain."), tool("events", "Concerts.")]


def row(town: str, name: str, question: str) -> dict[str, Any]:
    args = json.dumps({"city": f"{town}, {TOWNS[town]}"})
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": args}}
    answer = {"role": "assistant", "content": None, "tool_calls": [call]}
    tools = [{"type": "function", "function": each} for each in TOOLS]
    messages = [{"role": "user", "content": question}]
    request = {"model": "m", "messages": messages, "tools": tools}
    return {"request": request, "response": {"choices": [{"message": answer, "finish_reason": "tool_calls"}]}}


ROWS = [
    *(row(town, "weather", f"Rain in {town}?") for town in TOWNS),
    *(row(town, "events", f"Concerts in {town}?") for town in TOWNS),
]


def last_text(received: Received) -> str:
    return str(received.body["messages"][-1]["content"])


def world(received: Received) -> Reply:
    """A model that picks the tool whose description has the first word, and cities as their texts say."""
    if "tools" not in received.body:
        return Answer(text="[[ ## text ## ]]\nCity and state.")
    question = last_text(received)
    tools = [each["function"] for each in received.body["tools"]]
    word, town = question.split()[0], next(town for town in TOWNS if town in question)
    picked = next((each for each in tools if word in each["description"]), tools[0])
    text = picked["parameters"]["properties"]["city"].get("description", "")
    city = f"{town}, {TOWNS[town]}" if "state" in text else town
    return Answer(calls=[Call(picked["name"], {"city": city})])


def writes(text: str) -> Any:
    def reflect(received: Received) -> Reply:
        assert "tools" not in received.body
        return Answer(text=f"[[ ## text ## ]]\n{text}\n\n[[ ## completed ## ]]")

    return reflect


@pytest.fixture
def shop(tmp_path: Path, capsys: Any) -> Path:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    assert main(["adopt", str(log), "-o", str(tmp_path / "shop"), "--json"]) == 0
    capsys.readouterr()
    return tmp_path / "shop"


def improved(shop: Path, monkeypatch: Any, capsys: Any, reflect: Any, *words: str, model: Any = world) -> Any:
    """The document, the file and the providers of a run."""
    with ExitStack() as stack:
        providers = [stack.enter_context(LoopbackProvider(script)) for script in (model, reflect)]
        for name, provider in zip(("WORLD", "REFLECT"), providers, strict=True):
            lm = dspy.LM(**provider.lm_options("openai"))
            monkeypatch.setattr(f"logs.test_rewriting.{name}", lm, raising=False)
        names = ["--model", "logs.test_rewriting:WORLD", "--reflection-model", "logs.test_rewriting:REFLECT"]
        assert main(["improve", str(shop), *names, "--json", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    held = json.loads((shop / "tool_texts.json").read_text(encoding="utf-8"))
    assert document["requests"] == sum(len(provider.received) for provider in providers)
    return document, held, providers


def test_gain(shop: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: Held-out rows gain and none gets worse."""
    document, held, _ = improved(shop, monkeypatch, capsys, writes("City and state."))
    assert (document["rows"], document["before"], document["after"], document["worse"]) == (3, 0, 3, 0)
    assert set(held["texts"]) == {"weather.city", "events.city"}
    assert held["measured"]["after"] == 3
    assert 0 < held["measured"]["p"] < 1
    assert "City and state." in (shop / "report.html").read_text(encoding="utf-8")
    again, _, providers = improved(
        shop, monkeypatch, capsys, writes("Other."), "--texts", str(shop / "tool_texts.json")
    )
    assert again["texts"] == document["texts"]
    assert len(providers[1].received) == 0


def test_undone(shop: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: A text that makes a row worse is undone."""

    def draws(received: Received) -> Reply:
        """Both tools' rows are right but for the word `Rain`, which the new text of `events` takes."""
        question = last_text(received)
        tools = {each["function"]["name"]: each["function"]["description"] for each in received.body["tools"]}
        town = next(town for town in TOWNS if town in question)
        is_wrong = "Concerts" in question and "Rain" not in tools["events"]
        name = "weather" if is_wrong or ("Rain" in question and "Rain" not in tools["events"]) else "events"
        return Answer(calls=[Call(name, {"city": f"{town}, {TOWNS[town]}"})])

    document, held, _ = improved(shop, monkeypatch, capsys, writes("Rain too."), model=draws)
    assert (held["texts"], document["worse"], document["before"]) == ({}, 0, document["after"])
    assert "rows get worse" in (shop / "report.html").read_text(encoding="utf-8")


def test_held_out(shop: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: A result that makes a held-out row worse is dropped."""
    lines = (shop / "heldout.jsonl").read_text(encoding="utf-8").splitlines()
    held_out = [json.loads(line)["question"] for line in lines]

    def turns(received: Received) -> Reply:
        question, body = last_text(received), json.dumps(received.body["tools"])
        town = next(town for town in TOWNS if town in question)
        name = "weather" if "Rain" in question else "events"
        is_right = (question in held_out) != ("state" in body)
        return Answer(calls=[Call(name, {"city": f"{town}, {TOWNS[town]}" if is_right else town})])

    document, held, _ = improved(shop, monkeypatch, capsys, writes("City and state."), model=turns)
    assert (held["texts"], document["before"], document["after"]) == ({}, 3, 3)
    assert "a held-out row gets worse" in (shop / "report.html").read_text(encoding="utf-8")


def test_reflection(shop: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: A reflection names its text."""
    _, _, (_, reflecting) = improved(shop, monkeypatch, capsys, writes("City and state."))
    asked = [last_text(received) for received in reflecting.received]
    assert {text.split("## describes ## ]]\n")[1].split()[0] for text in asked} == {
        "weather.city",
        "events.city",
    }
    assert all("## now ## ]]" in text and '"expected"' in text for text in asked)


BAD = ("", "x" * 700, "Use Bearer FAKEtoken0FAKEtoken0.", "***")


@pytest.mark.parametrize("text", BAD)
def test_unusable(text: str, shop: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: A text that cannot be used is undone."""
    document, held, _ = improved(shop, monkeypatch, capsys, writes(text))
    assert (held["texts"], document["before"], document["after"]) == ({}, 0, 0)
    report = (shop / "report.html").read_text(encoding="utf-8")
    assert any(why in report for why in ("no text came", "as it was", "longer than", "a secret"))


@pytest.mark.parametrize("budget", [4, 9, 20, 33])
def test_budget(budget: int, shop: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: The budget bounds all requests."""
    document, _, _ = improved(shop, monkeypatch, capsys, writes("City and state."), "--budget", str(budget))
    assert 0 < document["requests"] <= budget
    assert document["worse"] == 0


def test_table(shop: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: Held-out rows gain and none gets worse."""
    with LoopbackProvider(world) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        monkeypatch.setattr("logs.test_rewriting.WORLD", lm, raising=False)
        words = ["improve", str(shop), "--model", "logs.test_rewriting:WORLD", "-o", str(shop / "t.json")]
        assert main([*words, "--budget", "12"]) == 0
        assert "Written:" in capsys.readouterr().out
    (shop / "train.jsonl").write_text("", encoding="utf-8")
    assert main(words) == 2
    assert "no rows" in capsys.readouterr().err


def test_file(tmp_path: Path) -> None:
    """logs: A file of texts loads where its tools are."""
    decls = ToolDecls(TOOLS)
    held = {
        "format": 1,
        "texts": {"weather": "The weather.", "events.city": "City and state."},
        "made_for": decls.fingerprint(),
        "measured": {},
    }
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(held), encoding="utf-8")
    for file in (held, path, str(path)):
        new = decls.with_texts(file)
        assert new["weather"].description == "The weather."
        assert new["events"].parameters["properties"]["city"]["description"] == "City and state."
        assert new["events"].description == "Concerts."
    texts = ToolTexts(TOOLS, ["weather", "events.city"])
    texts.load(path)
    assert texts().fingerprint() == decls.with_texts(path).fingerprint()
    drifted = [*TOOLS[:1], tool("events", "Concerts and plays.")]
    with pytest.raises(InvalidOption, match="made for other tools") as raised:
        ToolDecls(drifted).with_texts(path)
    assert raised.value.code == "other_tools"
    wrongs: list[Any] = [{}, {"format": 2, "texts": {}}, {"format": 1, "texts": {"weather": 1}}, []]
    for wrong in wrongs:
        with pytest.raises(InvalidOption, match="no texts"):
            decls.with_texts(wrong)
    with pytest.raises(InvalidOption, match="nobody"):
        decls.with_texts({**held, "texts": {"nobody": "x"}})


def test_in_python(tmp_path: Path) -> None:
    """logs: Texts are improved in Python as in the shell"""
    adopted = adopt(map(json.dumps, ROWS))
    with LoopbackProvider(world) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        improved = improve(adopted, lm, budget=100)
        assert (improved.rows, improved.before, improved.after, improved.worse) == (3, 0, 3, 0)
        assert improved.requests == len(provider.received)
        adopted.save(tmp_path)
        again = improve(tmp_path, lm, texts=improved.save(tmp_path / "texts.json"))
    assert again.texts == improved.texts
    assert adopted.tools.with_texts(tmp_path / "texts.json")["weather"].parameters != {}
    assert "weather.city" in str(improved)
    adopted.program = dspy.Predict("question -> calls")
    with pytest.raises(InvalidOption, match="no `tools`"):
        improve(adopted, lm)
    adopted.train = []
    with pytest.raises(InvalidOption, match="no rows to learn from"):
        improve(adopted, lm)
