"""Real conversations: gold beside the benchmark's own verdicts, and two models in known places."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import dspy
import pytest

from sigadapt.logs import adopt, compare, replay
from sigadapt.testing import Answer, Call, LoopbackProvider, Received, Reply

FOLDER = Path(os.environ.get("SIGADAPT_CORPUS", ""), "talks")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="SIGADAPT_CORPUS names no folder with conversations"),
]


def read(name: str) -> list[Any]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def talks() -> list[Any]:
    """The conversations with the tools that they declare."""
    tools, systems = read("tools.json.gz")[0], read("systems.json.gz")[0]
    return [
        {**talk, "tools": tools.get(talk["tools"]), "system": systems.get(talk["system"])}
        for talk in read("talks.jsonl.gz")
    ]


def lines_of(talk: Any) -> list[Any]:
    """A line for each answer after the first question."""
    keys = ("role", "content", "tool_calls", "tool_call_id")
    messages = [{key: each[key] for key in keys if key in each} for each in talk["messages"]]
    head = [{"role": "system", "content": talk["system"]}] if talk["system"] else []
    lines: list[Any] = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant" and any(each["role"] == "user" for each in messages[:number]):
            request = {"model": "m", "messages": [*head, *messages[:number]], "tools": talk["tools"] or []}
            lines.append({"request": request, "response": {"choices": [{"message": message}]}})
    return lines


def test_gold_beside_the_verdicts() -> None:
    """logs: The gold of a row is the call that was right"""
    counts: Counter[tuple[bool, str]] = Counter()
    for talk in talks():
        lines = lines_of(talk)
        if not lines:
            continue
        adopted = adopt(lines)
        assert adopted.conversations == 1, talk["id"]
        assert not adopted.unread
        counts[talk["passed"], "talks"] += 1
        answers = [line["response"]["choices"][0]["message"] for line in lines]
        counts[talk["passed"], "answers"] += sum(bool(answer.get("tool_calls")) for answer in answers)
        counts[talk["passed"], "gold"] += sum(row.confirmed for row in adopted.rows)
        for failure in adopted.failures:
            counts[talk["passed"], failure["code"]] += failure["count"]
    shares: dict[bool, list[float]] = {}
    for verdict in (True, False):
        answers = counts[verdict, "answers"]
        shares[verdict] = [counts[verdict, key] / answers for key in ("gold", "tool_failed")]
    print({key: [f"{share:.3f}" for share in both] for key, both in shares.items()}, counts)  # noqa: T201
    assert min(shares[True][0], shares[False][0]) > 0.8
    assert shares[False][1] > 2 * shares[True][1]


KINDS = ("other arguments", "words", "unknown tool", "bad arguments")
CODES = {
    "other arguments": ("other_arguments",),
    "words": ("none",),
    "unknown tool": ("unknown_tool",),
    "bad arguments": ("schema_mismatch",),
}


def calls_in(message: Any) -> list[Call]:
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [Call(function["name"], json.loads(function["arguments"])) for function in functions]


def chosen_talks() -> dict[str, Any]:
    """Conversations with a first question of their own, and calls with an argument in words, by that."""
    chosen: dict[str, Any] = {}
    for talk in talks():
        asked = next((each["content"] for each in talk["messages"] if each["role"] == "user"), None)
        calls = [call for each in talk["messages"] for call in calls_in(each)]
        has_text = any(isinstance(value, str) for call in calls for value in call.object.values())
        if talk["tools"] and asked and asked not in chosen and 2 <= len(calls) <= 12 and has_text:
            chosen[asked] = talk
    return dict([*chosen.items()][::10][:40])


def test_two_models_in_known_places() -> None:
    """logs: Where a model leaves the record is said by code"""
    chosen = chosen_talks()
    adopted = adopt([line for talk in chosen.values() for line in lines_of(talk)])
    assert adopted.conversations == len(chosen) == 40
    planted: dict[str, tuple[int, str]] = {}

    def place(received: Received) -> tuple[str, int, list[Any]]:
        messages = received.body["messages"]
        asked = next(each["content"] for each in messages if each["role"] == "user")
        first = next(question for question in chosen if asked.startswith(question))
        answers = [each for each in chosen[first]["messages"] if each["role"] == "assistant"]
        return first, sum(each["role"] == "assistant" for each in messages), answers

    def follow(received: Received) -> Reply:
        _, number, answers = place(received)
        answer = answers[min(number, len(answers) - 1)]
        calls = calls_in(answer)
        return Answer(text=answer["content"] or (None if calls else "."), calls=calls)

    def err(received: Received) -> Reply:
        first, number, answers = place(received)
        if planted.get(first, (-1, ""))[0] != number:
            return follow(received)
        [call, *_] = calls_in(answers[number])
        kind = planted[first][1]
        if kind == "words":
            return Answer(text="I would rather not.")
        if kind == "unknown tool":
            return Answer(calls=[Call("no_such_tool", {})])
        if kind == "bad arguments":
            return Answer(calls=[Call(call.name, {"nonsense": 1})])
        name = next(name for name, value in call.object.items() if isinstance(value, str))
        return Answer(calls=[Call(call.name, {**call.object, name: "elsewhere"})])

    for number, (first, talk) in enumerate(chosen.items()):
        answers = [each for each in talk["messages"] if each["role"] == "assistant"]
        begun = next(n for n, each in enumerate(talk["messages"]) if each["role"] == "user")
        skipped = sum(each["role"] == "assistant" for each in talk["messages"][:begun])
        kind = KINDS[number // 2 % len(KINDS)]
        for index, answer in enumerate(answers):
            calls = calls_in(answer)
            has_text = len(calls) == 1 and any(isinstance(value, str) for value in calls[0].object.values())
            if number % 2 == 0 and index >= skipped and has_text and calls[0].name != "calculate":
                planted[first] = index, kind
                break
    wanted = Counter(CODES[kind][0] for _, kind in planted.values())
    with LoopbackProvider(follow) as follows, LoopbackProvider(err) as errs:
        models = {
            name: dspy.LM(**provider.lm_options("openai"))
            for name, provider in (("follows", follows), ("errs", errs))
        }
        runs = [replay(adopted, lm, name=name) for name, lm in models.items()]
        comparison = compare(adopted, models)
    assert runs[0].left == []
    assert Counter(departure.code for departure in runs[1].left) == wanted
    assert len(runs[1].left) == len(planted) >= 18
    first_model, second_model = comparison.models
    assert 0 < first_model.same_call - second_model.same_call <= len(planted)
    print(adopted, *runs, comparison, sep="\n")  # noqa: T201
