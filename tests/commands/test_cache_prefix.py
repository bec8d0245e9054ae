"""`sigadapt show --compare`: where a provider's prompt cache ends, and why."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from commands import programs
from internals import divergence, main

import sigadapt
from sigadapt.testing import WIRES, Answer, LoopbackProvider

ASSIST, TOOLS = "commands.programs:Assist", "commands.programs:TOOLS"


def tool(name: str, description: str = "Do it.") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description}}


def body(*tools: Any, system: str = "Be short.", rows: Any = ("Hi?",)) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, *({"role": "user", "content": row} for row in rows)]
    return {"messages": messages, "model": "m", "tools": list(tools)}


A, B, C = tool("a"), tool("b"), tool("c")


@pytest.mark.parametrize(
    ("before", "after", "place", "why"),
    [
        (body(A, B), body(A, B, rows=("Hi?", "And?")), "", "begins with all"),
        (body(A, B), body(B, A), "/tools/0/function/name", "another order"),
        (body(A, B), body(C, A, B), "/tools/0/function/name", "at the end"),
        (body(A, B), body(A), "/tools/1", "has no tool here"),
        (body(A, B, C), body(A, C), "/tools/1/function/name", "is gone"),
        (body(A, B), body(A, tool("b", "Now.")), "/tools/1/function/description", "declaration"),
        (body(A), body(A, system="Today"), "/messages/0/content", "keep times"),
        (body(rows="abcd"), body(rows="cd"), "/messages/1/content", "cut by 2 messages"),
        (body(rows="abcd"), body(rows="abXd"), "/messages/3/content", "saved turn"),
        ({"system": "a", "messages": []}, {"system": "b", "messages": []}, "/system", "keep times"),
    ],
    ids=str,
)
def test_the_place_and_the_reason_are_told(before: Any, after: Any, place: str, why: str) -> None:
    """command-line: Two requests are compared."""
    found = divergence(before, after)
    assert found.place == place
    assert why in found.why
    assert (found.byte < found.of) is bool(place)
    assert place in ("", "/tools/1") or found.before != found.after


@pytest.mark.parametrize("wire", list(WIRES))
def test_a_request_that_goes_on_begins_with_the_earlier_one(wire: str, tmp_path: Path, capsys: Any) -> None:
    """command-line: Two requests are compared."""
    saved, row = tmp_path / "saved.jsonl", WIRES[wire]
    inputs: Any = {"question": "Weather in Rome?", "days": 2, "tools": programs.TOOLS}
    with LoopbackProvider([Answer(text="Sunny.")], record=saved) as provider:
        lm = dspy.LM(**provider.lm_options(wire))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            for _ in range(2):
                dspy.Predict(programs.Assist)(**inputs)
    options = [word for key, value in row.options.items() for word in (f"--{key.replace('_', '-')}", value)]
    words = ["show", ASSIST, "--tools", TOOLS, "--model", row.model, *options, "--compare", str(saved)]
    assert main([*words, "-i", "question=Weather in Rome?", "-i", "days=2", "--json"]) == 0
    (compared,) = json.loads(capsys.readouterr().out)["compared"].values()
    assert (compared["place"], compared["byte"]) == ("", compared["of"])
    assert main([*words, "-i", "question=Weather in Oslo?", "-i", "days=2"]) == 0
    printed = capsys.readouterr().out
    assert "Rome" in printed
    assert "Oslo" in printed
    assert "another way" in printed


def test_what_show_printed_is_compared_too(tmp_path: Path, capsys: Any) -> None:
    """command-line: Two requests are compared."""
    assert main(["show", ASSIST, "--tools", TOOLS, "--json"]) == 0
    saved = tmp_path / "saved.json"
    saved.write_text(capsys.readouterr().out)
    assert main(["show", ASSIST, "--tools", "commands.programs:DOTTED", "--compare", str(saved)]) == 0
    assert capsys.readouterr().out.count("A tool is gone.") == len(WIRES)
    saved.write_text("{}")
    assert main(["show", ASSIST, "--compare", str(saved)]) == 2
    assert "earlier request" in capsys.readouterr().err
