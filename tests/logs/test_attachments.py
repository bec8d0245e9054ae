"""Images and files of results, which most wires carry in a message of the user, read back from a request."""

from typing import Any

import dspy
import pytest
from support import lm_of, serving

import sigadapt
from sigadapt.logs import conversation_from_request
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

PNG = "data:image/png;base64,iVBORw0KGgo="
JPEG = "data:image/jpeg;base64,/9j/4AAQ"


def shot(place: str) -> list[Any]:
    """Take a picture, with words on both sides."""
    return [f"{place} from above:", dspy.Image(PNG), "and from below:", dspy.Image(JPEG), "That's all."]


def plan(place: str) -> dict[str, Any]:
    """A plan as JSON that holds a picture."""
    return {"place": place, "drawing": dspy.Image(JPEG)}


def look(place: str) -> str:
    """Look up a fact."""
    return f"A fact about {place}."


def reply(received: Received) -> Answer:
    """Three calls, then one, then the answer."""
    count = sum(map(str(received.body).count, ("tool_use_id", "tool_call_id", "function_call_output")))
    count += str(received.body).count("'functionResponse'")
    if not count:
        return Answer(calls=[Call(tool, {"place": tool}) for tool in ("look", "shot", "plan")])
    return Answer(
        calls=[Call("look", {"place": "there"})] if count == 3 else [Call("submit", {"answer": "ok"})]
    )


def requests(wire: str) -> tuple[Received, ...]:
    """The requests of an agent that is asked two questions."""
    with serving(reply, wire) as provider:
        agent = sigadapt.ReAct("question -> answer", tools=[shot, plan, look])
        for question in ("Where?", "Why?"):
            agent(question=question)
        return provider.received


def sent_again(body: Any, wire: str) -> Any:
    conversation = conversation_from_request(body)
    with LoopbackProvider([Answer(text="ok")]) as provider, dspy.context(lm=lm_of(provider, wire)):
        conversation.program()(**conversation.inputs())
        return provider.received[0].body


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini"])
def test_images_of_results_are_read_into_their_results(wire: str) -> None:
    """logs: What follows the results is part of them."""
    bodies = [received.body for received in requests(wire)]
    first, second, third = map(conversation_from_request, bodies[:3])
    assert second.question == first.question == third.question
    assert second.history is None or not second.history.messages
    assert second.results is not None
    [(_, words), (_, pictures), (_, drawing)] = second.results.rounds[0].pairs
    assert words.value == "A fact about look."
    kinds = [part["type"] for part in pictures.value if part["type"] != "text"]
    assert (kinds, [part["type"] for part in drawing.value if part["type"] == "image"]) == (
        ["image", "image"],
        ["image"],
    )
    for body in bodies[1:3]:
        again = sent_again(body, wire)
        conversation = "input" if wire == "responses" else "contents" if wire == "gemini" else "messages"
        assert again[conversation] == body[conversation]


def test_a_label_that_names_no_result_is_what_the_user_wrote() -> None:
    """logs: What follows the results is part of them."""
    body: Any = requests("openai")[1].body
    label = {"type": "text", "text": "Attachment 1: image 1 of result 9 (shot)"}
    picture = {"type": "image_url", "image_url": {"url": PNG}}
    content = [label, picture, {"type": "text", "text": "Look."}]
    conversation: Any = conversation_from_request(
        {**body, "messages": [*body["messages"], {"role": "user", "content": content}]}
    )
    assert [part.get("text", part["type"]) for part in conversation.question] == [
        label["text"],
        "image",
        "Look.",
    ]
