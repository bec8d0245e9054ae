"""Ids of calls on Mistral's models, whose templates take nine letters and digits alone."""

import re
from typing import Any

import dspy
import pytest

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

NINE = re.compile(r"[a-zA-Z0-9]{9}")
# The model, the engine, and whether ids have to be of nine signs.
MODELS = [
    ("openai/mistral-large-latest", "auto", True),
    ("openai/devstral-small-2507", "auto", True),
    ("openai/Ministral-3-8B", "litellm", True),
    ("mistral/magistral-medium", "litellm", True),
    ("hosted_vllm/mistralai/Pixtral-12B", "litellm", True),
    ("openai/local-model", "auto", False),
    ("openai/astral-7b", "auto", False),
]
GIVEN = ("toolu_01AbCdEf", "toolu_02AbCdEf")


def clock(zone: str) -> str:
    """The time in a zone."""
    return f"nine in {zone}"


def conversation(model: str, engine: str, ids: tuple[str, str], questions: int = 3) -> Any:
    """The ids of calls and of results in each request of an agent's conversation, and the changes."""
    calls = [Call("clock", {"zone": each}, id=each) for each in ids]
    answers = iter([Answer(calls=calls), *[Answer(calls=[Call("submit", {"answer": "ok"})])] * questions])
    with LoopbackProvider(lambda _: next(answers)) as provider:
        lm: Any = dspy.LM(**provider.lm_options("openai", model=model, engine=engine))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            agent: Any = sigadapt.ReAct("question -> answer", tools=[clock])
            history = None
            for number in range(questions):
                history = agent(question=f"{number}?", **({"history": history} if history else {})).history
        changes = [change.why for entry in lm.history for change in entry.get("changes", ())]
        bodies = [received.body["messages"] for received in provider.received]
    made = [[call["id"] for row in rows for call in row.get("tool_calls") or ()] for rows in bodies]
    answered = [[row["tool_call_id"] for row in rows if row["role"] == "tool"] for rows in bodies]
    return made, answered, changes


@pytest.mark.parametrize(("model", "engine", "is_strict"), MODELS)
def test_ids_have_nine_signs_on_mistrals_models(model: str, engine: str, *, is_strict: bool) -> None:
    """conversations: Mistral's models get ids of nine signs"""
    made, answered, changes = conversation(model, engine, GIVEN)
    assert made == answered
    assert [ids[:2] for ids in made[2:]] == [made[1]] * (len(made) - 2)  # the same in each later request
    if not is_strict:
        assert made[1] == [*GIVEN]
        return
    assert all(NINE.fullmatch(each) for ids in made for each in ids)
    assert all(len({*ids}) == len(ids) for ids in made)
    assert any(f"the id '{GIVEN[0]}'" in why for why in changes)
