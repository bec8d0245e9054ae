"""Bridges: what the model says between results and a question, for templates that want it."""

from typing import Any

import dspy
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


def conversation(engine: str, tool: Any = clock, *, questions: int = 2, **options: Any) -> Any:
    """An agent's conversation that begins with a call: the messages of each request, and the changes."""
    calls = [Answer(calls=[Call(tool.__name__, {"zone": "A"}, id="abcDEF001")])]
    answers = iter([*calls, *[Answer(calls=[Call("submit", {"answer": "ok"})])] * questions])
    with LoopbackProvider(lambda _: next(answers)) as provider:
        lm: Any = dspy.LM(**provider.lm_options("openai", model="openai/mistral-large-latest", engine=engine))
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
    bodies, _ = conversation("auto", picture, bridge_results=True)
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
