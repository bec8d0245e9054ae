"""What templates of Mistral's models want: a bridge between results and a question, ids of nine signs."""

import re
from typing import Any

import dspy
import pytest
from support import Turns

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def clock(zone: str) -> str:
    """The time in a zone."""
    return f"nine in {zone}"


def picture(zone: str) -> Any:
    """A picture of a zone."""
    return [dspy.Image(f"data:image/png;base64,{PNG}"), "here"]


def conversation(
    tool: Any = clock,
    *ids: str,
    model: str = "openai/mistral-large-latest",
    engine: str = "auto",
    questions: int = 2,
    **options: Any,
) -> Any:
    """An agent's conversation that begins with calls: the messages of each request, and the changes."""
    calls = [Call(tool.__name__, {"zone": each}, id=each) for each in ids or ("abcDEF001",)]
    answers = iter([Answer(calls=calls), *[Answer(calls=[Call("submit", {"answer": "ok"})])] * questions])
    with LoopbackProvider(lambda _: next(answers)) as provider:
        lm: Any = dspy.LM(**provider.lm_options("openai", model=model, engine=engine))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(**options)):
            agent: Any = sigadapt.ReAct("question -> answer", tools=[tool])
            history = None
            for number in range(questions):
                history = agent(question=f"{number}?", **({"history": history} if history else {})).history
        changes = [change.why for entry in lm.history for change in entry.get("changes", ())]
        return [received.body["messages"] for received in provider.received], changes


def roles(messages: list[Any]) -> list[str]:
    return [message["role"] for message in messages]


def test_an_attachment_is_one_message_with_the_question() -> None:
    """conversations: A bridge stands between results and a question"""
    bodies, _ = conversation(picture, bridge_results=True)
    assert roles(bodies[1])[-3:] == ["tool", "assistant", "user"]
    assert [block["type"] for block in bodies[1][-1]["content"]][-1] == "image_url"


def test_results_with_an_attachment_and_a_question_are_one_message() -> None:
    """conversations: A bridge stands between results and a question"""
    answers = [Answer(calls=[Call("picture", {"zone": "A"}, id="abcDEF001")]), Answer(text="ok")]
    with LoopbackProvider(answers) as provider:
        lm: Any = dspy.LM(**provider.lm_options("openai", model="openai/mistral-large-latest"))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(bridge_results=True)):
            program: Any = dspy.Predict(Turns)
            calls = program(question="one", tools=[picture]).calls
            history = dspy.History(messages=[{"question": "one", "calls": calls}])
            program(question="two", history=history, results=calls.run([picture]), tools=[picture])
        messages = provider.received[1].body["messages"]
    assert roles(messages)[-4:] == ["assistant", "tool", "assistant", "user"]
    *_, attachment, question = messages[-1]["content"]
    assert attachment["type"] == "image_url"
    assert "two" in question["text"]


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


@pytest.mark.parametrize(("model", "engine", "is_strict"), MODELS)
def test_ids_have_nine_signs_on_mistrals_models(model: str, engine: str, *, is_strict: bool) -> None:
    """conversations: Mistral's models get ids of nine signs"""
    bodies, changes = conversation(clock, *GIVEN, model=model, engine=engine, questions=3)
    made = [[call["id"] for row in sent for call in row.get("tool_calls") or ()] for sent in bodies]
    assert made == [[row["tool_call_id"] for row in sent if row["role"] == "tool"] for sent in bodies]
    assert [ids[:2] for ids in made[2:]] == [made[1]] * (len(made) - 2)  # the same in each later request
    if not is_strict:
        assert made[1] == [*GIVEN]
        return
    assert all(NINE.fullmatch(each) for ids in made for each in ids)
    assert all(len({*ids}) == len(ids) for ids in made)
    assert any(f"the id '{GIVEN[0]}'" in why for why in changes)
