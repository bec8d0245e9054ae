"""Runs that wait for a person, and go on: in an agent and in a Predict, in this process and in another."""

import asyncio
import json
import logging
import os
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import dspy
import pytest
from agents import FIND, PAY, Till, saved, serving, submits, waiting
from processes import run_python
from support import WIRES, Turns, start

import sigadapt
from sigadapt import Confirmation, InputNeeded, ToolCalls, ToolDecl, ToolDecls, rounds
from sigadapt.errors import InvalidHistory, InvalidOption, InvalidToolDecl
from sigadapt.testing import Answer, Call
from sigadapt.trust import is_signed, sign

SECRET = "a secret of the server"  # noqa: S105
DONE = submits("done")


def played(*script: Any, wire: str = "openai", confirm: Any = "raise", **options: Any) -> Any:
    answers = script[0] if callable(script[0]) else script
    return serving(answers, wire, confirm=confirm, **options)


def stopped(program: Any, *script: Any, wire: str = "openai", how: str = "sync", **inputs: Any) -> Any:
    """The error that a run ends in, after as many requests as the script has answers."""
    with played(*script, wire=wire) as provider:
        error = waiting(lambda: start(program, how, **inputs))
        assert len(provider.received) == len(script)
    return error


@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
def test_nothing_of_a_turn_runs_before_the_decision(how: str):
    """runs: Nothing of a turn runs before the decision.

    runs: A streamed run waits as well.
    """
    shop = Till()
    first, second = Answer(calls=[FIND]), Answer(text="I pay.", calls=[FIND, PAY, Call("find", {"city": 3})])
    error = stopped(shop.agent(), first, second, how=how, question="Pay Ada.")
    assert shop.ran == [("find", "Rome")]
    assert [call.name for call in error.calls] == ["find", "pay", "find"]
    [request] = error.requests
    assert dict(request.call.args) == {"to": "Ada", "eur": 500, "note": "invoice"}
    assert [event["question"] for event in error.history.messages] == ["Pay Ada."]
    assert not isinstance(error, ValueError)
    assert error.code == "input_needed"
    assert "pay(to='Ada', eur=500, note='invoice')" in str(error)


def over_1000(args: dict[str, Any]) -> bool | Confirmation:
    return args["eur"] > 1000 and Confirmation("Pay?")


def test_a_policy_or_somebody_who_is_asked_does_not_wait():
    """runs: What needs no yes does not wait."""
    shop = Till(over_1000)
    with played(Answer(calls=[PAY]), DONE):
        assert shop.agent()(question="Pay.").answer == "done"
    asked = Till()
    asked.tools = asked.tools.confirmed_by(lambda name, args, hint: False)
    with played(Answer(calls=[PAY]), DONE):
        assert asked.agent()(question="Pay.").answer == "done"
    assert (len(shop.ran), asked.ran) == (1, [])


@pytest.mark.parametrize("wire", ["openai", "ollama"])
def test_a_forced_submit_does_not_wait(wire: str):
    """runs: A forced submit does not wait."""
    shop = Till()
    forced = Answer(calls=[Call("submit", {"answer": "a guess"}), PAY])
    with played(Answer(calls=[FIND]), forced, wire=wire):
        out = shop.agent(max_iters=1)(question="Pay.")
    assert (out.answer, shop.ran) == ("a guess", [("find", "Rome")])


@pytest.mark.parametrize("form", ["declared", "plain"])
def test_inside_of_a_tool_nobody_waits(form: str, caplog: pytest.LogCaptureFixture):
    """runs: Inside of a tool nobody waits."""
    shop = Till()
    inner = shop.agent()

    def research(question: str) -> str:
        """Research."""
        return inner(question=question).answer

    tool: Any = research if form == "plain" else ToolDecl.of(inner, name="research", description="Research.")

    def script(received: Any) -> Answer:
        rows = received.body["messages"]
        if any(row["role"] == "tool" for row in rows):
            return DONE
        return Answer(calls=[PAY if "INNER" in json.dumps(rows) else Call("research", {"question": "INNER"})])

    with (
        played(script) as provider,
        caplog.at_level(logging.WARNING, "sigadapt"),
        pytest.warns(UserWarning, match="Mark the outer tool"),
    ):
        out = cast("Any", dspy).ReActV2("question -> answer", tools=[tool])(question="Research.")
    assert (out.answer, shop.ran) == ("done", [])
    assert "cannot wait for a person" in provider.received[-1].body["messages"][-1]["content"]
    assert "Mark the outer tool" in caplog.text
    with played(Answer(calls=[PAY])):
        [result] = ToolCalls([{"name": "research", "args": {"question": "INNER"}}]).run([tool])
    assert (result.is_error, shop.ran) == (True, [])


RESUMES = """
import json, sys
from agents import Till, serving, submits
from sigadapt import InputNeeded
till = Till()
error = InputNeeded.model_validate_json(sys.stdin.read())
with serving([submits("done")], "anthropic", confirm="raise") as net:
    out = till.agent()(history=error.resume(till.tools, {error.requests[0].id: True}))
print(json.dumps([out.answer, till.ran, net.received[0].body["messages"]]))
"""


def test_a_run_goes_on_in_another_process():
    """runs: A run goes on from JSON."""
    thinks: Any = {"reasoning": "Hm.", "signature": "c2lnbmVk"}
    answer = Answer(text="I pay.", calls=[PAY, FIND], **thinks)
    error = stopped(Till().agent(), answer, wire="anthropic", question="Pay Ada.")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    done = run_python("-c", RESUMES, stdin=error.model_dump_json(), env=env, check=True)
    answered, ran, (asked, made, results) = json.loads(done.stdout)
    assert (answered, ran) == ("done", [["pay", "Ada", 500, "invoice"], ["find", "Rome"]])
    assert "Pay Ada." in json.dumps(asked)
    assert made["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    told = ["Paid 500 EUR to Ada.", "Rome lies in Europe."]
    assert [block["content"] for block in results["content"]] == told


def test_an_error_is_the_same_after_json_and_pickle():
    """runs: A run goes on from JSON."""
    error = stopped(Till().agent(), Answer(text="I pay.", calls=[PAY]), question="Pay.")
    for again in (
        InputNeeded.model_validate_json(error.model_dump_json()),
        pickle.loads(pickle.dumps(error)),  # noqa: S301  (its own)
    ):
        assert (again.calls, again.requests[0].id) == (error.calls, error.requests[0].id)
        assert (str(again), again.history, again.field) == (str(error), error.history, error.field)


@pytest.mark.parametrize("given", ["own", "agent's"])
@pytest.mark.parametrize("wire", WIRES)
def test_every_call_of_the_turn_is_answered(wire: str, given: str):
    """runs: Every call of the turn is answered."""
    shop = Till()
    calls = [
        PAY,
        Call("find", {"city": 3}),
        Call("submit", {"answer": "early"}),
        Call("pay", {"to": "Bob", "eur": 1}),
    ]
    agent = shop.agent()
    error = stopped(agent, Answer(calls=calls), wire=wire, question="Pay.")
    one, two = error.requests
    tools = shop.tools if given == "own" else agent.tools.values()
    history = asyncio.run(error.aresume(tools, {one.id: "Too much.", two.id: True}))
    with played(DONE, wire=wire) as provider:
        out = agent(history=history)
        body = json.dumps(provider.received[0].body)
    told = [(call.name, str(result.value)[:9], result.is_error) for call, result in rounds(history)[0].pairs]
    assert told == [
        ("pay", "Too much.", True),
        ("find", "schema_mi", True),
        ("submit", "This was ", True),
        ("pay", "Paid 1 EU", False),
    ]
    assert out.answer == "done"
    assert shop.ran == [("pay", "Bob", 1, "invoice")]
    assert "submit again" in body


def test_two_waits_in_a_row_and_histories_that_stay():
    """runs: Two waits in a row.

    runs: A history of the caller stays as it is.
    """
    shop = Till()
    with played(Answer(calls=[FIND]), DONE):
        given = shop.agent()(question="Where is Rome?").history
    before = given.model_dump_json()
    error = stopped(shop.agent(), Answer(calls=[PAY]), question="Pay.", history=given)
    yes, no = (error.resume(shop.tools, {error.requests[0].id: decision}) for decision in (True, False))
    again = stopped(shop.agent(), Answer(calls=[Call("pay", {"to": "Bob", "eur": 7}, id="two")]), history=yes)
    assert given.model_dump_json() == before == error.history.model_dump_json()
    assert (len(yes.messages), len(no.messages), len(again.history.messages)) == (3, 3, 3)
    assert "Paid 500 EUR to Ada." in again.history.model_dump_json()


def test_a_conversation_with_a_results_field_goes_on():
    """runs: A conversation with a results field goes on."""
    shop = Till()
    predict = dspy.Predict(Turns)
    with played(Answer(calls=[FIND]), Answer(calls=[PAY])) as provider:
        calls: Any = cast("Any", predict)(question="Pay.", tools=shop.tools).calls
        with pytest.raises(InputNeeded) as caught:
            predict(question="Pay.", tools=shop.tools, results=calls.run(shop.tools))
    error = saved(caught.value)
    history = error.resume(shop.tools, {error.requests[0].id: True})
    history = dspy.History.model_validate_json(history.model_dump_json())
    with played(Answer(text="Ada is paid.")) as provider:
        assert predict(tools=shop.tools, history=history).answer == "Ada is paid."
        rows = provider.received[0].body["messages"][1:]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [row["content"] for row in rows if row["role"] == "tool"] == [
        "Rome lies in Europe.",
        "Paid 500 EUR to Ada.",
    ]


def test_a_run_that_waits_can_be_signed():
    """runs: A run that waits can be signed."""
    error = stopped(Till().agent(), Answer(calls=[FIND]), Answer(calls=[PAY]), question="Pay.")
    marks, text = sign(error, SECRET, context="user 7"), error.model_dump_json()
    again = InputNeeded.model_validate_json(text)
    assert is_signed(again, marks, SECRET, context="user 7")
    assert not is_signed(again, marks, SECRET, context="user 8")
    for old, new in (("Rome", "Oslo"), ("Ada", "Eve"), ("lies in Europe", "lies in Asia")):
        try:
            changed = InputNeeded.model_validate_json(text.replace(old, new))
        except InvalidHistory:  # its request shows another call
            continue
        assert not is_signed(changed, marks, SECRET, context="user 7")


@pytest.mark.parametrize("how", ["sync", "async"])
def test_an_agent_that_asks_nobody_is_refused_before_its_first_request(how: str):
    """confirmation: An agent refuses a tool with nobody to ask."""
    shop = Till()
    with played(Answer(calls=[PAY]), DONE, confirm=None) as provider:
        with pytest.raises(InvalidToolDecl, match="confirmed_by") as caught:
            start(shop.agent(), how, question="Pay.")
        assert (caught.value.code, caught.value.tool, provider.received) == ("nobody_to_ask", "pay", ())


@pytest.mark.parametrize(
    ("name", "value"), [("confirm", "perhaps"), ("confirm", True), ("tool_errors", None)]
)
def test_an_option_takes_what_it_knows(name: str, value: Any):
    """adapter-plug-in: A value that an option does not take is refused."""
    with pytest.raises(InvalidOption):
        sigadapt.ChatAdapter(**{name: value})


def of_calls(tools: ToolDecls, **place: Any) -> InputNeeded:
    """The error of two calls by hand that wait, saved and loaded."""
    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {}}, {"id": "c2", "name": "pay", "args": {}}])
    history = dspy.History(messages=[{"question": "Before."}])
    error = InputNeeded(calls, calls.awaiting_confirmation(tools), history, {"question": "Pay."}, **place)
    return saved(error)


def gone_on(door: str, error: Any, tools: ToolDecls, decisions: Any, **options: Any) -> list[Any]:
    """The results of a turn, by each way to go on with it."""
    outcome = getattr(error, door)(tools, decisions, **options)
    if door.startswith("a"):
        outcome = asyncio.run(outcome)
    return [*(outcome if door.endswith("results_of") else outcome.messages[-1]["results"])]


DOORS = ("resume", "aresume", "results_of", "aresults_of")


@pytest.mark.parametrize("door", DOORS)
def test_a_turn_that_goes_on_has_a_timeout(door: str):
    """runs: Every call of the turn is answered."""

    async def pay() -> str:
        """Pay, some time."""
        await asyncio.sleep(3)
        return "paid"

    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
    error = of_calls(tools, results_field="results")
    decisions = {error.requests[0].id: True, error.requests[1].id: False}
    results = gone_on(door, error, tools, decisions, timeout=0.05)
    assert [result.is_error for result in results] == [True, True]


@pytest.mark.parametrize("door", DOORS)
def test_what_is_left_of_a_turn_is_the_same_run(door: str):
    """tool-context: Some decisions may come later."""
    paid: list[str] = []

    def pay() -> str:
        """Pay."""
        paid.append("paid")
        return f"paid {len(paid)}"

    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
    error = of_calls(tools, field="asked", results_field="results")
    first, second = error.requests
    with sigadapt.Run() as run, pytest.raises(InputNeeded) as caught:
        gone_on(door, error, tools, {first.id: True}, partial=True)
    left = saved(caught.value)
    assert left.run is not None
    assert (left.run.usage.tool_calls, run.usage.tool_calls) == (1, 1)
    assert (left.id, left.calls, left.field, left.results_field) == (
        error.id,
        error.calls,
        "asked",
        "results",
    )
    assert (left.event, left.history.messages) == ({"question": "Pay."}, [{"question": "Before."}])
    assert [request.id for request in left.requests] == [second.id]
    with sigadapt.Run() as run:
        history = left.resume(tools, {second.id: True})
    assert run.usage.tool_calls == 2
    before, turn = history.messages
    assert (before, turn["question"], len(paid)) == ({"question": "Before."}, "Pay.", 2)
    assert [result.value for result in turn["results"]] == ["paid 1", "paid 2"]
    assert [call.id for call in turn["asked"]] == ["c1", "c2"]


@pytest.mark.parametrize("door", DOORS)
def test_calls_in_sequence_go_on_in_sequence(door: str):
    """tool-context: Calls in sequence wait for the one before."""
    running = threading.Lock()

    def pay() -> str:
        """Pay."""
        assert running.acquire(blocking=False)
        time.sleep(0.02)
        running.release()
        return "paid"

    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
    error = of_calls(tools, results_field="results")
    error.one_by_one = True
    error = saved(error)
    results = gone_on(door, error, tools, {request.id: True for request in error.requests})
    assert [result.value for result in results] == ["paid", "paid"]


@pytest.mark.parametrize("door", DOORS)
def test_calls_in_sequence_stay_in_sequence_if_some_wait_again(door: str):
    """tool-context: Some decisions may come later."""
    tools = ToolDecls([ToolDecl("pay", func=lambda: "paid", requires_confirmation=True)])
    for one_by_one in (True, False):
        error = of_calls(tools, results_field="results")
        error.one_by_one = one_by_one
        with pytest.raises(InputNeeded) as caught:
            gone_on(door, error, tools, {error.requests[0].id: True}, partial=True)
        assert caught.value.one_by_one == one_by_one


@pytest.mark.parametrize("door", ["aresume", "aresults_of"])
def test_calls_that_go_on_run_side_by_side(door: str):
    """runs: Every call of the turn is answered."""

    async def turn_of_two() -> Any:
        begun: list[str] = []
        both = asyncio.Event()

        async def pay() -> str:
            """Pay when the other call has begun, too."""
            begun.append("pay")
            if len(begun) > 1:
                both.set()
            await asyncio.wait_for(both.wait(), 20)
            return "paid"

        tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
        error = of_calls(tools, results_field="results")
        outcome = await getattr(error, door)(tools, {request.id: True for request in error.requests})
        return outcome if door == "aresults_of" else outcome.messages[-1]["results"]

    assert [result.value for result in asyncio.run(turn_of_two())] == ["paid", "paid"]


@pytest.mark.parametrize("door", DOORS)
def test_a_turn_of_rejected_calls_asks_no_toolset(door: str):
    """toolsets: A rejection asks no toolset."""

    def away(context: Any) -> list[Any]:
        raise ConnectionError("the server is away")

    error = of_calls(Till().tools, results_field="results")
    tools: Any = sigadapt.Toolset("shop", away)
    results = gone_on(door, error, tools, {request.id: False for request in error.requests})
    assert [result.is_error for result in results] == [True, True]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"calls": 7}', b"\xff"])
def test_a_text_that_is_no_run_is_told(text: Any):
    """runs: What is no saved run is refused."""
    with pytest.raises(InvalidHistory, match="it is no saved InputNeeded") as caught:
        InputNeeded.model_validate_json(text)
    assert caught.value.code == "unreadable_history"
    assert "model_dump_json" in str(caught.value.fix)
    assert "saved InputNeeded: None" not in str(caught.value)


def test_a_run_that_json_cannot_hold_is_told():
    """runs: What is no saved run is refused."""
    with_state = of_calls(Till().tools)
    with_state.state = {"lock": object()}
    with_event = InputNeeded(with_state.calls, with_state.requests, with_state.history, {"q": object()})
    for error in (with_state, with_event):
        with pytest.raises(InvalidHistory, match=r"cannot be saved: .*object") as caught:
            error.model_dump_json()
        assert caught.value.code == "unreadable_history"
        if error is with_state:
            assert (caught.value.path, "deps" in str(caught.value.fix)) == ("/lock", True)


@pytest.mark.parametrize("kind", [sigadapt.ReAct, cast("Any", dspy).ReActV2])
def test_a_run_with_odd_text_and_numbers_is_saved(kind: Any) -> None:
    """runs: Whatever a tool fails with, the run can be saved."""
    shop = Till()

    def read_file(city: str) -> str:
        """Read the file of a city."""
        raise ValueError(f"cannot read {os.fsdecode(bytes([99, 0xE9]))}.txt")

    tools = ToolDecls([*shop.tools.tools, read_file])
    read_it = Call("read_file", {"city": "Rome"}, id="one")
    with played(Answer(calls=[read_it]), Answer(calls=[PAY]), DONE) as provider:
        agent = kind("question, limit: float -> answer", tools=tools)
        with pytest.raises(InputNeeded) as caught:
            agent(question="Pay.", limit=float("inf"))
        error = saved(caught.value)
        agent(history=error.resume(tools, {error.requests[0].id: True}))
        rows = [received.body["messages"] for received in provider.received]
    assert rows[2][: len(rows[1])] == rows[1]
    assert rows[1][-1]["content"].endswith("cannot read c\ufffd.txt")
    assert rows[1][1]["content"].endswith("inf")
