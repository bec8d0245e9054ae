"""`sigadapt show --compare`: where a provider's prompt cache ends, and why."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from commands import programs
from internals import main

import sigadapt
from sigadapt.testing import WIRES, Answer, LoopbackProvider

ASSIST, TOOLS = "commands.programs:Assist", "commands.programs:TOOLS"


Json = dict[str, Any]
Change = Callable[[Json], Json]


def tools(change: Callable[[list[Any]], list[Any]]) -> Change:
    return lambda body: {**body, "tools": change(body["tools"])}


def messages(change: Callable[[list[Any]], list[Any]]) -> Change:
    return lambda body: {**body, "messages": change(body["messages"])}


def tool_like(tool: Json, **words: str) -> Json:
    return {**tool, "function": {**tool["function"], **words}}


def other_description(tools: list[Json]) -> list[Json]:
    return [tools[0], tool_like(tools[1], description="Now.")]


def other_system(body: Json) -> Json:
    return {**body, "system": "a"}


QUESTIONS = [{"role": "user", "content": question} for question in ("a", "b")]
OPENAI, CLAUDE = "openai/gpt-4o-mini", "anthropic/claude-sonnet-4-6"


@pytest.mark.parametrize(
    ("model", "earlier", "place", "why"),
    [
        (OPENAI, messages(lambda rows: rows[:-1]), "", "begins with all"),
        (OPENAI, tools(lambda each: each[::-1]), "/tools/0/function/name", "another order"),
        (OPENAI, tools(lambda each: each[1:]), "/tools/0/function/name", "at the end"),
        (OPENAI, tools(lambda each: [*each, tool_like(each[1], name="c")]), "/tools/2", "has no tool here"),
        (
            OPENAI,
            tools(lambda each: [each[0], tool_like(each[1], name="c"), each[1]]),
            "/tools/1/function/name",
            "is gone",
        ),
        (OPENAI, tools(other_description), "/tools/1/function/description", "declaration"),
        (
            OPENAI,
            messages(lambda rows: [{"role": "system", "content": "Be short."}, *rows[1:]]),
            "/messages/0/content",
            "keep times",
        ),
        (
            OPENAI,
            messages(lambda rows: [rows[0], *QUESTIONS, *rows[1:]]),
            "/messages/1/content",
            "cut by 2 messages",
        ),
        (OPENAI, messages(lambda rows: [rows[0], QUESTIONS[0]]), "/messages/1/content", "saved turn"),
        (CLAUDE, other_system, "/system", "keep times"),
    ],
    ids=range(10),
)
def test_the_place_and_the_reason_are_told(
    model: str, earlier: Change, place: str, *, why: str, tmp_path: Path, capsys: Any
) -> None:
    """command-line: Two requests are compared."""
    words = ["show", ASSIST, "--tools", TOOLS, "--model", model, "--json"]
    assert main(words) == 0
    (request,) = json.loads(capsys.readouterr().out)["requests"]
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(earlier(request["body"])))
    assert main([*words, "--compare", str(saved)]) == 0
    (found,) = json.loads(capsys.readouterr().out)["compared"].values()
    assert found["place"] == place
    assert why in found["why"]
    assert (found["byte"] < found["of"]) is bool(place)
    assert place in ("", "/tools/2") or found["before"] != found["after"]


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
