"""ReactV2's outcomes under sigadapt's adapter beside those under DSPy's, on the same scripted model."""

import asyncio
import json
from typing import Any, NamedTuple, cast

import dspy
import pytest
from support import lm_of

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

COLUMNS = [
    *(
        (wire, engine)
        for wire in ("openai", "responses", "anthropic", "gemini")
        for engine in ("auto", "litellm")
    ),
    ("ollama", "litellm"),
]


def add(a: int, b: int, note: str | None = None) -> int:
    """Add."""
    return a + b


def now() -> str:
    """The time."""
    return "noon"


def made(*calls: Call, **answer: Any) -> Answer:
    return Answer(calls=calls, **answer)


GOOD = made(Call("add", {"a": 1, "b": 2}))
SUBMIT = made(Call("submit", {"answer": "3"}))
GUESS = made(Call("submit", {"answer": "(a guess)"}))

OBJECTS: dict[str, list[Answer]] = {
    "good": [GOOD, SUBMIT],
    "wrong type": [made(Call("add", {"a": "one", "b": 2})), GOOD, SUBMIT],
    "missing argument": [made(Call("add", {"a": 1})), GOOD, SUBMIT],
    "extra argument": [made(Call("add", {"a": 1, "b": 2, "c": 3})), GOOD, SUBMIT],
    "null": [made(Call("add", {"a": None, "b": 2})), GOOD, SUBMIT],
    "optional text": [made(Call("add", {"a": 1, "b": 2, "note": 5})), GOOD, SUBMIT],
    "whole number with a point": [made(Call("add", {"a": 1.0, "b": 2})), SUBMIT],
    "unknown tool": [made(Call("sum", {"a": 1})), GOOD, SUBMIT],
    "good and bad": [made(Call("now"), Call("add", {"a": "one", "b": 2})), GOOD, SUBMIT],
    "bad three times": [
        made(Call("add", {"a": "one"})),
        made(Call("add", {"b": "two"})),
        made(Call("sum", {"b": 2})),
        GOOD,
        SUBMIT,
    ],
    "bad submit": [GOOD, made(Call("submit", {"reply": "3"})), SUBMIT],
    "submit of another type": [GOOD, made(Call("submit", {"answer": 3})), SUBMIT],
    "bad beside submit": [made(Call("add", {"a": "one", "b": 2}), Call("submit", {"answer": "3"}))],
    "text beside bad": [made(Call("add", {"a": "one", "b": 2}), text="I add."), GOOD, SUBMIT],
    "text alone": [Answer(text="Let me think."), SUBMIT],
    "nothing": [Answer(text=""), SUBMIT],
}
TEXTS: dict[str, list[Answer]] = {
    "not JSON": [made(Call("add", "{oops")), GOOD, SUBMIT],
    "not JSON for a tool without arguments": [made(Call("now", "{oops")), GOOD, SUBMIT],
    "cut off": [made(Call("add", '{"a": 1, "b'), finish="length"), GOOD, SUBMIT],
    "a list": [made(Call("add", "[1, 2]")), GOOD, SUBMIT],
    "null arguments": [made(Call("add", "null")), GOOD, SUBMIT],
    "text arguments": [made(Call("add", '"a"')), GOOD, SUBMIT],
    "a key twice": [made(Call("add", '{"a": 1, "a": 2, "b": 3}')), GOOD, SUBMIT],
    "submit not JSON": [GOOD, made(Call("submit", '{"answer": "3')), SUBMIT],
}


class Outcome(NamedTuple):
    """How a run ended: 2 for the answer, 1 for a guess, 0 for an error; and how many requests it took."""

    rank: int
    requests: int
    said: str


def run(adapter: Any, column: tuple[str, str], script: list[Answer], how: str = "sync") -> Outcome:
    def reply(received: Any) -> Answer:
        choice = received.body.get("tool_choice") or received.body.get("toolConfig") or "auto"
        forced = "submit" in json.dumps(choice)
        return GUESS if forced else script[min(len(provider.received), len(script)) - 1]

    with LoopbackProvider(reply) as provider, dspy.context(lm=lm_of(provider, *column), adapter=adapter):
        agent: Any = cast("Any", dspy.ReActV2)("question -> answer", tools=[add, now], max_iters=7)
        try:
            out = agent(question="1+2") if how == "sync" else asyncio.run(_later(agent, how))
        except Exception as error:  # noqa: BLE001  (an agent that gives up is an outcome)
            return Outcome(0, len(provider.received), repr(error))
        return Outcome(2 if out.answer == "3" else 1, len(provider.received), str(out))


async def _later(agent: Any, how: str) -> Any:
    if how == "async":
        return await agent.acall(question="1+2")
    items = [item async for item in cast("Any", dspy.streamify(agent))(question="1+2")]
    return items[-1]


def not_worse(column: tuple[str, str], scripts: dict[str, list[Answer]], how: str = "sync") -> list[Any]:
    """The conversations in which ours ends worse than DSPy's, or takes more than one request more."""
    worse: list[Any] = []
    for name, script in scripts.items():
        theirs = run(dspy.ChatAdapter(use_native_function_calling=True), column, script, how)
        ours = run(sigadapt.ChatAdapter(tool_calling="native"), column, script, how)
        if ours.rank < theirs.rank or ours.requests > theirs.requests + 1:
            worse.append((name, theirs, ours))
    return worse


@pytest.mark.parametrize("column", COLUMNS, ids="-".join)
def test_no_run_ends_worse_than_under_dspys_adapter(column: tuple[str, str]):
    """conversations: ReActV2 ends no worse than under DSPy's adapter."""
    texts = TEXTS if column[0] in ("openai", "responses") else {}
    assert not_worse(column, {**OBJECTS, **texts}) == []


@pytest.mark.parametrize(
    "column", [("openai", "auto"), ("openai", "litellm"), ("anthropic", "auto")], ids="-".join
)
@pytest.mark.parametrize("how", ["async", "streamed"])
def test_no_run_ends_worse_awaited_or_streamed(column: tuple[str, str], how: str):
    """conversations: ReActV2 ends no worse than under DSPy's adapter."""
    scripts = {**OBJECTS, **TEXTS}
    names = ("good", "wrong type", "unknown tool", "good and bad", "bad submit", "not JSON", "cut off")
    if column[0] == "anthropic" and how == "async":  # that wire carries objects, except in a stream
        names = names[:-2]
    assert not_worse(column, {name: scripts[name] for name in names}, how) == []
