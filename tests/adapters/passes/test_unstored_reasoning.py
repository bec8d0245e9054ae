"""`store=False` on OpenAI's Responses: reasoning goes back encrypted, or stays behind, on record.

The provider of these tests keeps nothing where it is asked to, and refuses the id of what it did not keep.
"""

import itertools
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from internals import assistant_message, lower, to_lm15
from support import NATIVE, start

import sigadapt
from sigadapt import ToolCalls, ToolDecls
from sigadapt.response import choices_from_response
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


class Ask(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls | None = dspy.OutputField()


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


def test_what_was_stored_stays_behind_where_nothing_is():
    """conversations: Reasoning that was not stored and is not encrypted stays behind."""
    bodies, _ = sent_by([{}, {"store": False}])
    sent = reasoning_in(bodies[-1])
    assert [bool(item.get("encrypted_content")) for item in sent] == [True]
    calls = [item for item in bodies[-1]["input"] if item.get("type") == "function_call"]
    assert ["id" in call for call in calls] == [False, False, True], "which OpenAI would look up"


@pytest.mark.parametrize("engine", ["auto", "lm15", "litellm"])
def test_what_the_program_includes_is_sent_once(engine: str):
    """conversations: Reasoning that was not stored goes back encrypted."""
    given = ["message.output_text.logprobs", *([ENCRYPTED] if engine == "litellm" else [])]
    bodies, _ = sent_by([{"engine": engine, "store": False, "include": given}])
    assert [sorted(body["include"]) for body in bodies] == [["message.output_text.logprobs", ENCRYPTED]] * 2


def test_a_setting_inside_of_the_body_counts():
    """conversations: Reasoning that was not stored goes back encrypted."""
    bodies, _ = sent_by([{"engine": "litellm", "extra_body": {"store": False}}])
    assert [body["include"] for body in bodies] == [[ENCRYPTED]] * 2
    assert [len(reasoning_in(body)) for body in bodies] == [0, 1]


def test_a_model_that_reasons_by_its_settings_is_asked():
    """conversations: Reasoning that was not stored goes back encrypted."""
    bodies, _ = sent_by([{**UNKNOWN, "reasoning_effort": "low"}])
    assert [body["include"] for body in bodies] == [[ENCRYPTED]] * 2


@pytest.mark.parametrize("mode", ["native", "prompted"])
def test_other_wires_and_prompts_are_asked_nothing(mode: Any):
    """conversations: Reasoning that was stored goes back by its id."""
    wire = "openai" if mode == "native" else "responses"
    with LoopbackProvider([Answer(text="No.")]) as provider:
        lm = dspy.LM(**provider.lm_options(wire, store=False))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling=mode)):
            dspy.Predict(Ask)(question="?", tools=[get_weather])
    assert "include" not in provider.received[-1].body


def test_what_an_account_keeps_not_stays_behind():
    """conversations: Reasoning that was not stored and is not encrypted stays behind."""
    item: Any = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look", "arguments": "{}"}
    body: Any = {"object": "response", "status": "completed", "store": False, "output": [item, call]}
    [choice] = choices_from_response(body)
    assert choice.tool_calls is not None
    turn = choice.tool_calls.turn
    assert turn.state is not None
    assert turn.state["stored"] is False
    request: Any = {"model": "openai/gpt-5", "messages": [assistant_message(choice.tool_calls, turn, None)]}
    lowered = lower(request, NATIVE["openai-responses"])
    rows = to_lm15(lowered.request, NATIVE["openai-responses"]).body.rows
    assert [item["type"] for row in rows for item in row] == ["function_call"]
