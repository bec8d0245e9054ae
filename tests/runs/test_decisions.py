"""Decisions: about what was asked, about this turn, by the right name, and told to the model."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import dspy
import pydantic
import pytest
from agents import FIND, PAY, Till, submits
from support import WIRES, Talk, serving

import sigadapt
from sigadapt import InputNeeded, ToolCall, ToolCalls, ToolDecl, ToolDecls, ToolResults, Toolset, rounds
from sigadapt.errors import InvalidHistory, InvalidOption, InvalidToolDecl
from sigadapt.testing import Answer, Call

DONE = submits("done")


def resumed(how: str, error: InputNeeded, tools: Any, decisions: Any) -> dspy.History:
    if how == "resume":
        return error.resume(tools, decisions)
    return asyncio.run(error.aresume(tools, decisions))


def renamed(shop: Till) -> Any:
    return [ToolDecl.of(shop.pay, name="pay_out", requires_confirmation=True), shop.find]


def other_parameters(shop: Till) -> Any:
    def pay(to: str, amount: int) -> str:
        """Pay somebody."""
        return shop.pay(to, amount)

    return [ToolDecl.of(pay, requires_confirmation=True), shop.find]


def other_default(shop: Till) -> Any:
    def pay(to: str, eur: int, note: str = "gift") -> str:
        """Pay somebody."""
        return shop.pay(to, eur, note)

    return [ToolDecl.of(pay, requires_confirmation=True), shop.find]


def other_description(shop: Till) -> Any:
    return [ToolDecl.of(shop.pay, description="Pay twice.", requires_confirmation=True), shop.find]


CHANGES: dict[str, Callable[[Till], Any]] = {
    "missing": lambda shop: [shop.find],
    "renamed": renamed,
    "other parameters": other_parameters,
    "other default": other_default,
    "other description": other_description,
}


@pytest.mark.parametrize("how", ["resume", "aresume"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("edits", [False, True])
def test_a_decision_about_a_changed_tool_runs_nothing(how: str, change: str, *, edits: bool) -> None:
    """runs: A decision about a changed tool is refused and stays good."""
    shop = Till()
    error = shop.waits(FIND, PAY)
    [request] = error.requests
    decision: Any = request.call.model_copy(update={"args": {"to": "Ada", "eur": 5}}) if edits else True
    with pytest.raises(InvalidHistory) as caught:
        resumed(how, error, CHANGES[change](shop), {request.id: decision})
    assert (caught.value.code, caught.value.tool, shop.ran) == ("changed_tool", "pay", [])
    resumed(how, error, shop.tools, {request.id: decision})
    assert [name for name, *_ in shop.ran] == ["find", "pay"]


def test_tools_that_are_declared_again_are_the_same() -> None:
    """runs: A decision about a changed tool is refused and stays good."""
    shop = Till()
    error = shop.waits(PAY)
    pay, find = Till().tools
    for tools in ([find, {"name": "other"}, pay], Toolset("shop", [pay, find]), [ToolDecl.of(pay.func)]):
        error.resume(tools, {error.requests[0].id: True})


def test_run_refuses_a_decision_about_a_missing_tool() -> None:
    """tool-call-outputs: Nothing runs before everything is decided."""
    shop = Till()
    calls = ToolCalls(
        [{"name": "find", "args": {"city": "Rome"}}, {"name": "pay", "args": {"to": "A", "eur": 5}}]
    )
    [request] = calls.awaiting_confirmation(shop.tools)
    with pytest.raises(InvalidHistory) as caught:
        calls.run([shop.find], {request.id: True})
    assert (caught.value.code, shop.ran) == ("changed_tool", [])


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_belongs_to_its_turn(wire: str) -> None:
    """confirmation: A request belongs to its turn."""
    shop, answer = Till(), Answer(calls=[PAY])
    with serving([answer, answer, DONE], wire, confirm="raise"):
        agent = shop.agent()
        with pytest.raises(InputNeeded) as first:
            agent(question="Pay.")
        [old] = first.value.requests
        history = first.value.resume(shop.tools, {old.id: True})
        with pytest.raises(InputNeeded) as second:
            agent(history=history)
    assert old.id != second.value.requests[0].id
    with pytest.raises(InvalidHistory) as caught:
        second.value.resume(shop.tools, {old.id: True})
    assert (caught.value.code, len(shop.ran)) == ("unknown_decision", 1)


def test_the_same_conversation_has_the_same_requests() -> None:
    """confirmation: A request belongs to its turn."""
    ids = {Till().waits(PAY).requests[0].id for _ in range(3)}
    assert len(ids) == 1
    assert Till().waits(PAY, question="Pay now.").requests[0].id not in ids
    own = ToolCalls([{"id": "call_0", "name": "pay", "args": {"to": "Ada", "eur": 500}}])
    assert len({own.awaiting_confirmation(Till().tools)[0].id for _ in range(3)}) == 1


def test_calls_of_two_turns_by_hand_have_two_requests() -> None:
    """confirmation: A request belongs to its turn."""
    shop = Till()
    with serving([Answer(calls=[PAY])]):
        ask: Any = dspy.Predict(Talk)
        first = ask(question="Pay.", tools=shop.tools).calls
        [request] = first.awaiting_confirmation(shop.tools)
        results = first.run(shop.tools, {request.id: True})
        second = ask(question="Pay.", tools=shop.tools, results=results).calls
    [later] = ToolCalls.model_validate_json(second.model_dump_json()).awaiting_confirmation(shop.tools)
    assert later.id != request.id
    assert [each.id for each in second.awaiting_confirmation(shop.tools)] == [later.id]
    second.run(shop.tools, {later.id: later.call})
    assert len(shop.ran) == 2


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("home", ["agent", "hand"])
def test_the_model_reads_that_a_call_was_edited(wire: str, home: str) -> None:
    """tool-call-outputs: The model reads that a person edited a call."""
    shop, read = Till(), []
    for edits in (False, True):
        confirm: Any = "raise" if home == "agent" else None
        script = [Answer(calls=[PAY]), DONE if home == "agent" else Answer(text="[[ ## answer ## ]]\nok")]
        with serving(script, wire, confirm=confirm) as provider:
            _decide(shop, home, edits=edits)
            read.append(str(provider.received[1].body))
    assert [eur for _, _, eur, _ in shop.ran] == [500, 50]
    assert "edited" not in read[0]
    assert "A person edited this call" in read[1]
    assert "Paid 50 EUR to Ada." in read[1]


def _decide(shop: Till, home: str, *, edits: bool) -> None:
    def decision(request: ToolCall) -> Any:
        return request.call.model_copy(update={"args": {"to": "Ada", "eur": 50}}) if edits else request.call

    if home == "agent":
        agent = shop.agent()
        with pytest.raises(InputNeeded) as caught:
            agent(question="Pay.")
        [request] = caught.value.requests
        history = caught.value.resume(shop.tools, {request.id: decision(request)})
        assert [call.args["eur"] for call in rounds(history)[0].calls] == [500]  # as the model wrote it
        agent(history=history)
        return
    ask: Any = dspy.Predict(Talk)
    calls = ask(question="Pay.", tools=shop.tools).calls
    [request] = calls.awaiting_confirmation(shop.tools)
    results = calls.run(shop.tools, {request.id: decision(request)})
    [result] = results
    assert (result.value, result.note is None) == (f"Paid {50 if edits else 500} EUR to Ada.", not edits)
    assert ToolResults.model_validate_json(results.model_dump_json()) == results
    ask(question="Pay.", tools=shop.tools, results=results)


TOOLS = Till().tools
CALLS = ToolCalls([{"name": "pay", "args": {"to": "Ada", "eur": 5}}])
REQUEST = CALLS.awaiting_confirmation(TOOLS)[0].id
MISTAKES: dict[str, tuple[Any, Any, str]] = {
    "swapped": ({REQUEST: True}, TOOLS, r"run\(tools, decisions\)"),
    "swapped, a list": ({REQUEST: "no"}, [Till().pay], r"run\(tools, decisions\)"),
    "decisions alone": ({REQUEST: True}, None, r"run\(tools, decisions\)"),
    "a number": (TOOLS, {REQUEST: 1}, r"1 \(an int\) does not decide"),
    "nothing": (TOOLS, {REQUEST: None}, r"null \(None\) does not decide"),
    "yes for all": (TOOLS, True, r"\{request.id: True\}, got a bool"),
    "a list": (TOOLS, [True], r"\{request.id: True\}, got a list"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("how", ["run", "arun"])
def test_a_mistaken_decision_is_told_in_words_that_help(how: str, name: str) -> None:
    """tool-call-outputs: Nothing runs before everything is decided."""
    tools, decisions, words = MISTAKES[name]

    def run() -> object:
        return CALLS.run(tools, decisions) if how == "run" else asyncio.run(CALLS.arun(tools, decisions))

    with pytest.raises(InvalidOption, match=words) as caught:
        run()
    assert caught.value.code == "invalid_decision"


@pytest.mark.parametrize("door", ["resume", "aresume", "results_of", "aresults_of"])
def test_swapped_arguments_of_resume_are_told(door: str) -> None:
    """tool-call-outputs: Nothing runs before everything is decided."""
    error = Till().waits(PAY)
    decisions = {error.requests[0].id: True}

    def go_on(tools: Any, given: Any) -> None:
        outcome = getattr(error, door)(tools, given)
        if door.startswith("a"):
            asyncio.run(outcome)

    for given in (TOOLS, None):
        with pytest.raises(InvalidOption, match=rf"Swap them: {door}\(tools, decisions\)"):
            go_on(decisions, given)
    with pytest.raises(InvalidToolDecl) as caught:
        go_on(decisions, decisions)
    assert "Swap" not in str(caught.value)


def test_a_decision_by_the_tools_name_is_told_the_key() -> None:
    """tool-call-outputs: Nothing runs before everything is decided."""
    with pytest.raises(InvalidHistory, match=r"request\.id") as caught:
        CALLS.run(TOOLS, {"pay": True})
    assert caught.value.code == "unknown_decision"
    assert REQUEST in str(caught.value)


def test_a_nested_default_that_changes_can_be_approved() -> None:
    """confirmation: What was edited runs, or nothing does."""

    class Order(pydantic.BaseModel):
        amount: int = 1
        key: str = pydantic.Field(default_factory=lambda: uuid4().hex)

    keys: list[str] = []

    def order(order: Order) -> str:
        keys.append(order.key)
        return "ordered"

    decls = ToolDecls([ToolDecl.of(order, requires_confirmation=True)])
    calls = ToolCalls([{"name": "order", "args": {"order": {"amount": 2}}}])
    [request] = calls.awaiting_confirmation(decls)
    calls.run(decls, {request.id: request.call})
    assert keys == [request.call.args["order"]["key"]]


def test_storage_may_change_the_order_of_a_schema() -> None:
    """runs: A decision about a changed tool is refused and stays good."""
    shop = Till()
    error = shop.waits(PAY)
    pay = shop.tools["pay"]
    parameters = json.loads(json.dumps(pay.parameters, sort_keys=True))
    stored = ToolDecl.of(pay, parameters=dict(reversed(parameters.items())))
    error.resume([stored], {error.requests[0].id: True})
    assert len(shop.ran) == 1


def test_a_note_of_the_tool_stays_beside_that_of_the_decision() -> None:
    """tool-call-outputs: The model reads that a person edited a call."""

    def look(city: str) -> dict[str, str]:
        return {"note": city}

    decls = ToolDecls([ToolDecl.of(look, requires_confirmation=True)])
    script = [Answer(calls=[Call("look", {"city": "Rome"})]), Answer(text="[[ ## answer ## ]]\nok")]
    with serving(script, "gemini") as provider:
        ask: Any = dspy.Predict(Talk)
        calls = ask(question="q", tools=decls).calls
        [request] = calls.awaiting_confirmation(decls)
        edited = request.call.model_copy(update={"args": {"city": "Oslo"}})
        ask(question="q", tools=decls, results=calls.run(decls, {request.id: edited}))
        response = provider.received[1].body["contents"][-1]["parts"][0]["functionResponse"]["response"]
    assert response["result"] == {"note": "Oslo"}
    assert "edited" in response["note"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("way", ["call", "acall", "stream", "run"])
def test_the_model_reads_what_ask_edited(way: str, *, is_async: bool) -> None:
    """tool-call-outputs: The model reads that a person edited a call."""
    shop = Till()

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        args["eur"] = 5
        return True

    async def later(name: str, args: dict[str, Any], hint: str) -> bool:
        return ask(name, args, hint)

    tools = shop.tools.confirmed_by(later if is_async else ask)
    if way == "run":
        [result] = ToolCalls([{"name": "pay", "args": {"to": "Ada", "eur": 500}}]).run(tools)
        assert (result.value, shop.ran) == ("Paid 5 EUR to Ada.", [("pay", "Ada", 5, "invoice")])
        assert '"eur":5' in str(result.note)
        return
    with serving([Answer(calls=[PAY]), DONE]) as provider:
        agent: Any = cast("Any", dspy).ReActV2("question -> answer", tools=tools)
        if way == "call":
            agent(question="Pay.")
        elif way == "acall":
            asyncio.run(agent.acall(question="Pay."))
        else:
            events = list(sigadapt.stream_sync(agent, question="Pay."))
            [shown] = [event.result for event in events if isinstance(event, sigadapt.events.ResultReady)]
            assert (shown.value, shown.note is None) == ("Paid 5 EUR to Ada.", False)
        read = provider.received[1].body["messages"][-1]["content"]
    ran_with = '{"to":"Ada","eur":5,"note":"invoice"}'
    told = f"A person edited this call before it ran. It ran with {ran_with}."
    assert read == f"Paid 5 EUR to Ada.\n\n{told}"


UNDECIDED: dict[str, tuple[Callable[[Till], Any], Callable[[str], Any], str]] = {
    "nothing": (lambda shop: shop.tools, lambda request: {}, "undecided"),
    "nothing, of tools that ask nobody by now": (
        lambda shop: [shop.pay, shop.find],
        lambda request: {},
        "undecided",
    ),
    "another request": (
        lambda shop: shop.tools,
        lambda request: {request: True, "confirm_other": True},
        "unknown_decision",
    ),
    "one of two": (
        lambda shop: [ToolDecl.of(each, requires_confirmation=True) for each in (shop.pay, shop.find)],
        lambda request: {request: True},
        "undecided",
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_each_request_needs_a_decision(name: str) -> None:
    """runs: Each request needs a decision, whatever the tools say by now.

    runs: A decision is checked before anything runs.
    """
    tools, decisions, code = UNDECIDED[name]
    shop = Till()
    error = shop.waits(FIND, PAY)
    [request] = error.requests
    with pytest.raises(InvalidHistory) as caught:
        error.resume(tools(shop), decisions(request.id))
    with pytest.raises(InvalidHistory) as results:
        error.results_of(tools(shop), decisions(request.id) or None)
    assert (caught.value.code, results.value.code, shop.ran) == (code, code, [])
    error.resume(shop.tools, {request.id: True})
    assert [name for name, *_ in shop.ran] == ["find", "pay"]
