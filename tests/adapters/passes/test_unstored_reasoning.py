"""`store=False` on OpenAI's Responses: reasoning goes back encrypted, or stays behind, on record."""

import itertools
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from support import start

import sigadapt
from sigadapt.testing import Answer, Call, Failure, LoopbackProvider, Received


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"Sunny in {city}"


ENCRYPTED = "reasoning.encrypted_content"
AGENTS: dict[str, Callable[..., Any]] = {"sigadapt.ReAct": sigadapt.ReAct, "dspy.ReActV2": dspy.ReActV2}


def forgetful(*, encrypts: bool = True) -> Callable[[Received], Any]:
    """A provider that keeps a reasoning item only where it may, and calls a tool in each other answer."""
    kept = set[str]()

    def answer(received: Received) -> Any:
        items: list[Any] = received.body["input"]
        for item in items:
            unknown = item.get("type") == "reasoning" and item["id"] not in kept
            if unknown and not item.get("encrypted_content"):
                return Failure(404, f"Item with id '{item['id']}' not found.")
        if received.body.get("store") is not False:
            kept.update(f"rs_{n}" for n in range(100))
        asked = encrypts and ENCRYPTED in received.body.get("include", ())
        results = [item for item in items if item.get("type") == "function_call_output"]
        call = (
            Call("submit", {"answer": "done"}) if len(results) % 2 else Call("get_weather", {"city": "Rome"})
        )
        return Answer(reasoning="Hm.", signature="c2ln" if asked else None, calls=[call])

    return answer


def reasoning_in(body: Any) -> list[Any]:
    return [item for item in body["input"] if item.get("type") == "reasoning"]


def agent_of(which: str) -> Any:
    return AGENTS[which]("question -> answer", tools=[get_weather])


CELLS = [*itertools.product(AGENTS, ("lm15", "litellm"), ("sync", "async", "streamed"), (True, False))]


@pytest.mark.parametrize(("which", "engine", "way", "encrypts"), CELLS)
def test_two_questions_go_through(which: str, engine: str, way: str, encrypts: bool):
    """conversations: Reasoning that was not stored goes back encrypted."""
    program = agent_of(which)
    with LoopbackProvider(forgetful(encrypts=encrypts)) as provider:
        lm: Any = dspy.LM(**provider.lm_options("responses", engine=engine, store=False))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            first = start(program, way, question="one")
            second = start(program, way, question="two", history=first.history)
    assert (first.answer, second.answer, len(provider.received)) == ("done", "done", 4)
    sent = [reasoning_in(received.body) for received in provider.received]
    assert [len(items) for items in sent] == ([0, 1, 2, 3] if encrypts else [0, 0, 0, 0])
    assert all(received.body["include"] == [ENCRYPTED] for received in provider.received)
    why = "goes back encrypted" if encrypts else "stays behind"
    assert all(any(why in change.why for change in entry["changes"]) for entry in lm.history[1:])


def sent_by(models: list[dict[str, Any]]) -> tuple[list[Any], Any]:
    """The bodies of one run over several models, a question each, with one history."""
    program, history = agent_of("sigadapt.ReAct"), None
    lm: Any = None
    with LoopbackProvider(forgetful()) as provider:
        for number, options in enumerate(models):
            lm = dspy.LM(**provider.lm_options("responses", **options))
            more = {} if history is None else {"history": history}
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
                out = program(question=str(number), **more)
            history = dspy.History.model_validate_json(out.history.model_dump_json())
    return [received.body for received in provider.received], lm


UNKNOWN = {"model": "openai/my-own", "store": False}


def test_nothing_changes_where_items_are_stored():
    """conversations: Reasoning that was stored goes back by its id."""
    for options in ({}, {"store": True}):
        bodies, lm = sent_by([options])
        assert [len(reasoning_in(body)) for body in bodies] == [0, 1]
        assert [body.get("include") for body in bodies] == [None, None]
        assert not lm.history[-1].get("changes")


def test_what_was_not_stored_stays_behind_later_too():
    """conversations: Reasoning that was not stored and is not encrypted stays behind."""
    bodies, lm = sent_by([UNKNOWN, {"store": True}])
    assert [body.get("include") for body in bodies] == [None] * 4
    assert [len(reasoning_in(body)) for body in bodies] == [0, 0, 0, 1]
    assert any("stays behind" in change.why for change in lm.history[-1]["changes"])
