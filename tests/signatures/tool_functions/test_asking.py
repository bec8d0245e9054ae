"""Tools that ask a person, and turns of which some calls wait."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

import asyncio
import copy
import math
import pickle
import random
from collections import Counter
from datetime import date
from enum import Enum
from threading import Lock
from typing import Any

import dspy
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from signatures.tool_functions.served_tools import (
    Call,
    Hook,
    agent_of,
    one,
    saved,
    serving,
    submits,
    turn,
    waiting,
)

import sigadapt
from sigadapt import Declined, InputNeeded, ToolCalls, ToolContext, ToolDecl, ToolDecls, ToolResult
from sigadapt.errors import InvalidHistory, InvalidOption, InvalidToolDecl
from sigadapt.trust import is_signed, sign


class Clerk:
    """What was done, how often each function began, and its tools."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.begun: list[str] = []

        def send(text: str, context: ToolContext) -> str:
            """Send a letter."""
            self.begun.append("send")
            to = context.ask("To whom?")
            self.done.append(("send", text, to))
            return f"Sent to {to}."

        def look(city: str) -> str:
            """Look."""
            self.begun.append("look")
            self.done.append(("look", city))
            return f"{city} is fine."

        def fail() -> str:
            """Fail."""
            self.begun.append("fail")
            raise ValueError("no luck")

        self.tools = ToolDecls([send, look, fail])


def made(*calls: tuple[str, dict[str, Any]]) -> ToolCalls:
    return ToolCalls([{"id": f"c{n}", "name": name, "args": args} for n, (name, args) in enumerate(calls, 1)])


LETTER = made(("send", {"text": "hi"}))


@pytest.mark.parametrize("how", ["run", "arun"])
def test_a_question_stops_the_call_and_nothing_else(how: str) -> None:
    """tool-context: A question stops the call, and nothing else."""
    clerk = Clerk()
    calls = made(("look", {"city": "Rome"}), ("send", {"text": "a"}), ("fail", {}), ("rm_rf", {}))
    calls = calls.validated(clerk.tools)

    def go() -> Any:
        return calls.run(clerk.tools) if how == "run" else asyncio.run(calls.arun(clerk.tools))

    error = waiting(go)
    assert [(result.call_id, result.is_error) for result in error.results] == [
        ("c1", False),
        ("c3", True),
        ("c4", True),
    ]
    results = error.results_of(clerk.tools, {one(error).id: "Ada"})
    assert [result.value for result in results][:2] == ["Rome is fine.", "Sent to Ada."]
    assert Counter(clerk.begun) == {"look": 1, "fail": 1, "send": 2}


def test_an_answer_is_for_its_question_alone() -> None:
    """tool-context: An answer is for its question alone."""
    rows = [3]
    deleted: list[Any] = []

    def delete(table: str, context: ToolContext) -> str:
        """Delete."""
        if len(rows) > 1:
            context.ask("Are you sure?", bool)
        if context.ask(f"Delete {rows[0]} rows?", bool):
            deleted.append(rows[0])
        return "deleted"

    calls = made(("delete", {"table": "t"}))
    error = waiting(lambda: calls.run([delete]))
    rows[0] = 3000
    again = waiting(lambda: error.results_of([delete], {one(error).id: True}))
    assert (one(again).hint, deleted) == ("Delete 3000 rows?", [])
    rows.append(1)  # now another question comes first
    first = waiting(lambda: again.results_of([delete], {one(again).id: True}))
    assert (one(first).hint, deleted) == ("Are you sure?", [])
    second = waiting(lambda: first.results_of([delete], {one(first).id: True}))
    assert (one(second).hint, deleted) == ("Delete 3000 rows?", [])
    second.results_of([delete], {one(second).id: True})
    assert deleted == [3000]


class Color(Enum):
    RED = "red"


class Address(pydantic.BaseModel):
    street: str
    number: int = pydantic.Field(gt=0)


@pytest.mark.parametrize(
    ("kind", "answer", "value", "unfit"),
    [
        (str, "", "", 3),
        (bool, False, False, "no"),
        (int, 3, 3, 3.5),
        (date, "2026-11-24", date(2026, 11, 24), 3),
        (Color, "red", Color.RED, "blue"),
        (Address, {"street": "Elm", "number": 4}, Address(street="Elm", number=4), {"street": "Elm"}),
        (list[Address], [], [], [{"street": "Elm", "number": 0}]),
        (int | None, None, None, "x"),
    ],
)
def test_an_answer_is_checked_first(kind: Any, answer: Any, value: Any, unfit: Any) -> None:
    """tool-context: An answer is checked before anything runs."""
    answers: list[Any] = []

    def tool(context: ToolContext) -> str:
        """Ask."""
        answers.append("began")
        answers.append(context.ask("Which?", kind))
        return "ok"

    calls = made(("tool", {}))
    error = waiting(lambda: calls.run([tool]))
    for decisions, code in (
        ({one(error).id: unfit}, "invalid_decision"),
        ({one(error).id: object()}, "invalid_decision"),
        ({one(error).id: float("nan")}, "invalid_decision"),
        ({one(error).id: answer, "answer_of_yesterday": {"a": 1}}, "unknown_decision"),
        ({one(error).id: answer, "answer_of_yesterday": True}, "unknown_decision"),
        ({}, "undecided"),
        (["Ada"], "invalid_decision"),
    ):
        with pytest.raises((InvalidOption, InvalidHistory)) as caught:
            error.results_of([tool], decisions)  # pyright: ignore[reportArgumentType]
        assert caught.value.code == code
    assert answers == ["began"]
    error.results_of([tool], {one(error).id: answer})
    assert answers[-1] == value
    assert type(answers[-1]) is type(value)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("question", {"question": " "}),
        ("type", {"type": object()}),
        ("payload", {"payload": {"eur": math.nan}}),
        ("payload", {"payload": [object()]}),
    ],
)
def test_what_cannot_be_asked_names_its_argument(field: str, arguments: Any) -> None:
    """tool-context: An answer is checked before anything runs."""

    def confirm(context: ToolContext) -> str:
        """Ask."""
        return str(context.ask(**{"question": "Well?", **arguments}))

    [result] = ToolCalls([{"name": "confirm", "args": {}}]).run([confirm])
    assert result.is_error
    assert str(result.value).startswith(f"InvalidOption: field '{field}'")


def test_what_only_the_type_refuses_is_asked_again() -> None:
    """tool-context: An answer is checked before anything runs."""

    class Port(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("an even one")
            return number

    def tool(context: ToolContext) -> int:
        """Ask."""
        return context.ask("Which port?", Port).number

    error = waiting(lambda: made(("tool", {})).run([tool]))
    again = waiting(lambda: error.results_of([tool], {one(error).id: {"number": 81}}))
    assert one(again).hint.startswith("Which port?\n\nThe last answer does not fit: ")
    assert one(again).id != one(error).id
    [result] = again.results_of([tool], {one(again).id: {"number": 80}})
    assert result.value == 80


def test_a_person_may_decline() -> None:
    """tool-context: A person may decline."""

    def book(context: ToolContext) -> str:
        """Catch it."""
        where = context.ask("Where?")
        try:
            return f"{where}, {context.ask('When?')}"
        except Declined as declined:
            return f"{where}, {declined.reason}"

    clerk = Clerk()
    tools = ToolDecls([*clerk.tools, book])
    error = waiting(lambda: made(("book", {}), ("send", {"text": "x"})).run(tools))
    where, whom = error.requests
    decisions = {where.id: "Rome", whom.id: Declined("It is Friday.")}
    error = waiting(lambda: error.results_of(tools, decisions))
    caught, failed = error.results_of(tools, {one(error).id: Declined("I do not know yet.")})
    assert (caught.value, caught.is_error) == ("Rome, I do not know yet.", False)
    assert (failed.value, failed.is_error) == ("Declined: It is Friday.", True)
    assert clerk.done == []


def test_calls_in_sequence_wait() -> None:
    """tool-context: Calls in sequence wait for the one before."""
    clerk = Clerk()
    calls = made(("look", {"city": "Rome"}), ("send", {"text": "a"}), ("look", {"city": "Oslo"}))
    in_sequence = ToolDecls([ToolDecl.of(decl, sequential=decl.name == "fail") for decl in clerk.tools])
    error = waiting(lambda: calls.run(clerk.tools, parallel=False))
    assert clerk.done == [("look", "Rome")]
    assert [result.call_id for result in error.results] == ["c1"]
    results = error.results_of(clerk.tools, {one(error).id: "Ada"})
    assert clerk.done == [("look", "Rome"), ("send", "a", "Ada"), ("look", "Oslo")]
    assert [result.call_id for result in results] == ["c1", "c2", "c3"]
    clerk.done.clear()
    error = waiting(
        lambda: made(("fail", {}), ("send", {"text": "b"}), ("look", {"city": "Bonn"})).run(in_sequence)
    )
    assert clerk.done == []
    with pytest.raises(InputNeeded) as still_waiting:
        error.results_of(in_sequence, {}, partial=True)
    assert clerk.done == []
    still_waiting.value.results_of(in_sequence, {one(error).id: "Bob"})
    assert clerk.done == [("send", "b", "Bob"), ("look", "Bonn")]


@pytest.mark.parametrize("kind", ["ReAct", "ReActV2"])
@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
def test_both_agents_stop(kind: str, how: str) -> None:
    """tool-context: Both agents stop for a question."""
    clerk = Clerk()
    agent = agent_of(kind, clerk.tools)

    def go(**inputs: Any) -> Any:
        if how == "sync":
            return agent(**inputs)
        if how == "async":
            return asyncio.run(agent.acall(**inputs))
        last: Any = list(sigadapt.stream_sync(agent, **inputs))[-1]
        return last.prediction

    calls = turn(Call("look", {"city": "Rome"}), Call("send", {"text": "a"}), Call("look", {"city": "Oslo"}))
    with serving(turn(Call("look", {"city": "Bonn"})), calls, submits("never")) as net:
        error = waiting(lambda: go(question="Write."))
        assert len(net.received) == 2
    history = error.resume(clerk.tools, {one(error).id: "Ada"})
    assert Counter(clerk.done) == {
        ("look", "Bonn"): 1,
        ("look", "Rome"): 1,
        ("look", "Oslo"): 1,
        ("send", "a", "Ada"): 1,
    }
    with serving(submits("Written.")) as net:
        assert go(history=history).answer == "Written."
        body = str(net.received[0].body)
    assert (body.count("Sent to Ada."), body.count("Oslo is fine."), body.count("Write.")) == (1, 1, 1)


def test_plain_functions_of_dspys_agent_do_not_begin_after_a_question() -> None:
    """tool-context: Both agents stop for a question."""
    clerk = Clerk()

    def plain(city: str) -> str:
        """A function that DSPy's agent makes its own tool of."""
        clerk.done.append(("plain", city))
        return city

    react: Any = dspy.ReActV2
    agent = react("question -> answer", tools=[clerk.tools["send"], plain])
    script = turn(Call("send", {"text": "a"}), Call("plain", {"city": "Rome"}))
    history = dspy.History(messages=[])
    with serving(script, submits()):
        error = waiting(lambda: agent(question="q", history=history))
    assert (clerk.done, history.messages) == ([], [])
    error.resume([*clerk.tools, plain], {one(error).id: "Ada"})
    assert clerk.done == [("send", "a", "Ada"), ("plain", "Rome")]


def test_a_question_where_nobody_can_answer(caplog: pytest.LogCaptureFixture) -> None:
    """tool-context: A question is refused where nobody can answer."""
    clerk = Clerk()
    with pytest.raises(InvalidToolDecl) as caught:
        clerk.tools["send"].to_dspy()(text="x")
    assert caught.value.code == "nobody_to_ask"
    script = turn(Call("send", {"text": "a"}), Call("submit", {"answer": "early"}))
    with serving(script), sigadapt.Run() as run:
        assert agent_of("ReActV2", clerk.tools)(question="q").answer == "early"
    [result, _] = run.rounds[0].results
    assert "the call of `submit` beside it ends the run" in str(result.value)
    inner = agent_of("ReAct", clerk.tools)
    aide = ToolDecl.of(inner, name="aide", description="Aid.")
    steps = (
        turn(Call("aide", {"question": "x"})),
        turn(Call("send", {"text": "b"})),
        submits("in vain"),
        submits("end"),
    )
    with serving(*steps), pytest.warns(UserWarning, match="cannot wait"):
        assert agent_of("ReAct", [aide])(question="q").answer == "end"

    def loop(text: str) -> str:
        """Run calls by hand inside of a tool."""
        made(("send", {"text": text})).run(clerk.tools)
        return "sent"

    caplog.clear()
    with pytest.warns(UserWarning, match="^tool 'loop': a program"):
        [result] = made(("loop", {"text": "x"})).run([loop])
    assert result.is_error
    assert any(message.startswith("tool 'loop': a program") for message in caplog.messages)
    assert clerk.done == []


def test_the_state_of_a_run_is_kept() -> None:
    """tool-context: A turn that waits keeps the state of its run."""
    states: list[Any] = []

    def tool(context: ToolContext) -> str:
        """Ask."""
        context.state.setdefault("steps", []).append(1)
        context.ask("Go on?", bool)
        states.append(dict(context.state))
        return "ok"

    with sigadapt.Run(state={"user": "Ada"}):
        error = waiting(lambda: made(("tool", {})).run([tool]))
    error.results_of([tool], {one(error).id: True})
    with sigadapt.Run(state={"tab": 2}) as run:
        error.results_of([tool], {one(error).id: True})
    assert states[0]["user"] == states[1]["user"] == "Ada"
    assert run.state["tab"] == 2
    lock = Lock()  # which can be neither copied nor saved
    with pytest.raises(InputNeeded) as caught, sigadapt.Run(state={"lock": lock}):
        made(("tool", {})).run([tool])
    with sigadapt.Run() as run:
        caught.value.results_of([tool], {one(caught.value).id: True})
    assert run.state["lock"] is lock
    with pytest.raises(InvalidHistory):
        saved(caught.value)


def test_a_saved_state_does_not_change_with_the_run() -> None:
    """tool-context: A turn that waits keeps the state of its run."""

    def tool(context: ToolContext) -> None:
        """Ask."""
        context.state["steps"] = [*context.state.get("steps", []), 1]
        context.ask("One?", int)
        context.ask("Two?", int)

    with sigadapt.Run(state={"cart": []}) as run:
        with pytest.raises(InputNeeded) as caught:
            made(("tool", {})).run([tool])
        run.state["cart"].append("later")
    error = caught.value
    for _ in range(2):
        assert error.state == {"cart": [], "steps": [1]}
        with pytest.raises(InputNeeded):
            error.resume([tool], {one(error).id: 1})
    assert error.state == {"cart": [], "steps": [1]}


def test_an_external_tool() -> None:
    """tool-context: An external tool waits for its result."""
    schema = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
    fits = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    ship = ToolDecl("ship", parameters=schema, returns=fits, external=True, check_result=True)
    restored = ToolDecls.model_validate_json(ToolDecls([ship]).model_dump_json())
    assert restored["ship"].external
    assert ship.to_openai() == ToolDecl("ship", parameters=schema).to_openai()
    calls = made(("ship", {"item": "lamp"}))
    seen: list[Any] = []
    tools = ToolDecls([ship]).with_hooks(Hook(after_tool=lambda call, result, context: seen.append(result)))
    error = waiting(lambda: calls.run(tools))
    assert (one(error).kind, one(error).call.args) == ("result", {"item": "lamp"})

    def result_of(value: Any, *, is_error: bool = False) -> ToolResult:
        return ToolResult(call_id="c1", name="ship", value=value, is_error=is_error)

    for decision, told in (
        (Declined("No lorry."), "No lorry."),
        (result_of("The lorry broke down.", is_error=True), "The lorry broke down."),
        ({"at": 3}, None),
        (result_of({"at": 3}), None),
    ):
        [result] = error.results_of(tools, {one(error).id: decision})
        assert (result.is_error, result.value) == (True, told or result.value)
        assert (seen == []) == (told is not None)
    for decision in ({"at": "noon"}, result_of({"at": "noon"})):
        [result] = error.results_of(tools, {one(error).id: decision})
        assert (result.is_error, result.value) == (False, {"at": "noon"})
    with pytest.raises(InputNeeded):
        calls[0].execute([ship])


def test_a_pending_result() -> None:
    """tool-context: A pending result keeps its handle."""
    begun: list[str] = []

    def train(model: str) -> Any:
        """Train."""
        begun.append(model)
        return sigadapt.Pending({"job": 17})

    async def train_later(model: str) -> Any:
        """Train."""
        return train(model)

    for function in (train, train_later):
        tools = ToolDecls([ToolDecl.of(function, name="train")])
        for kind in ("ReAct", "ReActV2"):
            begun.clear()
            with serving(turn(Call("train", {"model": "m"})), submits()):
                error = waiting(
                    lambda kind=kind, tools=tools: asyncio.run(agent_of(kind, tools).acall(question="q"))
                )
            assert one(error).pending == {"job": 17}
            history = error.resume(tools, {one(error).id: 0.2})
            assert sigadapt.rounds(history)[0].results[0].value == 0.2
            assert begun == ["m"]
    with pytest.raises(InvalidToolDecl):
        made(("train", {"model": "m"}))[0].execute({"train": lambda model: sigadapt.Pending(object())})


def test_a_streamed_run_that_waits_emits_each_call_once() -> None:
    clerk = Clerk()
    for kind in ("ReAct", "ReActV2"):
        events: list[Any] = []

        def go(kind: str = kind, events: list[Any] = events) -> None:
            for event in sigadapt.stream_sync(agent_of(kind, clerk.tools), question="q"):
                events.append(event)  # noqa: PERF402  (those before the error, too)

        with serving(turn(Call("look", {"city": "Rome"}), Call("send", {"text": "a"})), submits()):
            waiting(go)
        names = [type(event).__name__ for event in events]
        assert names.count("CallReady") == 2
        assert names.count("ResultReady") == 1
        assert names[-2:] == ["Confirm", "Failed"]


def test_a_run_that_waits_is_pickled_and_copied() -> None:
    clerk = Clerk()
    error = waiting(lambda: LETTER.run(clerk.tools))
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301
        assert again.id == error.id
        [result] = again.results_of(clerk.tools, {one(again).id: "Ada"})
        assert result.value == "Sent to Ada."


class Bank:
    """Tools whose every effect is counted by the id of its call."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.answers: dict[str, list[Any]] = {}

        def do(asks: int, context: ToolContext, fails: bool = False) -> str:
            """Ask so many times, and do it."""
            answers = [context.ask(f"Question {n}?", int) for n in range(asks)]
            self.effects[context.call.id] += 1
            self.answers[context.call.id] = answers
            if fails:
                raise ValueError("it failed")
            return f"{context.call.id} {answers}"

        def start(context: ToolContext) -> Any:
            """Start."""
            self.effects[context.call.id] += 1
            return sigadapt.Pending(context.call.id)

        pay = ToolDecl.of(do, name="pay", requires_confirmation=True)
        self.tools = ToolDecls([do, pay, start, ToolDecl("ship", external=True)])


CALLS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["do", "pay"]),
            st.fixed_dictionaries({"asks": st.integers(0, 3), "fails": st.booleans()}),
        ),
        st.tuples(st.sampled_from(["start", "ship"]), st.just({})),
    ),
    min_size=1,
    max_size=6,
)


class Person:
    """Decides about some requests at random, and knows what it said."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.rejected: set[str] = set()
        self.answers: dict[str, list[int]] = {}

    def decide(self, error: InputNeeded) -> dict[str, Any]:
        requests = [*error.requests]
        some = [request for request in requests if self._chance.random() < 0.5]
        return {request.id: self._decision(request) for request in some or requests[:1]}

    def _decision(self, request: Any) -> Any:
        call_id = request.call.id
        if request.kind == "result":
            return f"result of {call_id}"
        if request.kind == "answer":
            answer = self._chance.randrange(100)
            self.answers.setdefault(call_id, []).append(answer)
            return answer
        if self._chance.random() < 0.8:
            return True
        self.rejected.add(call_id)
        return False


def finish(error: InputNeeded, person: Person, tools: ToolDecls, *, in_loop: bool) -> Any:
    """Save, load and decide until nothing waits."""
    run_id = error.id
    while True:
        loaded = saved(error)
        assert loaded.model_dump_json() == error.model_dump_json()
        assert loaded.id == run_id
        decisions = person.decide(loaded)
        try:
            if in_loop:
                return asyncio.run(loaded.aresults_of(tools, decisions, partial=True))
            return loaded.results_of(tools, decisions, partial=True)
        except InputNeeded as again:
            error = again


@settings(max_examples=100, deadline=None)
@given(CALLS, st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_some_decisions_come_later(
    plan: list[tuple[str, dict[str, Any]]], chance: random.Random, parallel: bool, in_loop: bool
) -> None:
    """tool-context: Some decisions may come later."""
    bank = Bank()
    person = Person(chance)
    calls = made(*plan)
    error = InputNeeded(calls, calls.awaiting_confirmation(bank.tools), dspy.History(messages=[]))
    error.one_by_one = not parallel
    results: Any = None
    if not error.requests:
        try:
            results = calls.run(bank.tools, parallel=parallel)
        except InputNeeded as first:
            error = first
    if error.requests:
        results = finish(error, person, bank.tools, in_loop=in_loop)
    assert [result.call_id for result in results] == [call.id for call in calls]
    for call, result in zip(calls, results, strict=True):
        assert bank.effects[call.id] == (call.name != "ship" and call.id not in person.rejected)
        if call.id in person.rejected:
            assert result.is_error
        elif call.name in ("do", "pay"):
            assert bank.answers[call.id] == person.answers.get(call.id, [])
            assert result.is_error == call.args["fails"]
        else:
            assert result.value == f"result of {call.id}"


def test_a_signed_half_turn() -> None:
    clerk = Clerk()
    calls = made(("look", {"city": "Rome"}), ("send", {"text": "hello"}))
    with sigadapt.Run(state={"tenant": "one"}):
        error = waiting(lambda: calls.run(clerk.tools, parallel=False))
    marks = sign(error, "a secret of the server")
    text = error.model_dump_json()
    for old, new in (
        ("To whom?", "To which bank?"),
        ("hello", "hallo"),
        ("Rome is fine.", "Rome burns."),
        ('"one"', '"two"'),
        ('"one_by_one":true', '"one_by_one":false'),
        (error.id, error.id[:-1] + ("0" if error.id[-1] != "0" else "1")),
    ):
        assert old in text
        changed = InputNeeded.model_validate_json(text.replace(old, new))
        assert not is_signed(changed, marks, "a secret of the server")
    assert is_signed(saved(error), marks, "a secret of the server")
