"""What a run keeps while it waits, in each way of waiting, running and being kept: its state, its order.

And the way out that each has: a person who declines needs no tool.
"""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pytest
from agents import AGENTS, saved, serving, submits, turn, waiting

import sigadapt
from sigadapt import Declined, InputNeeded, Pending, ToolCalls, ToolContext, ToolDecl, ToolDecls, WaitingRuns
from sigadapt.errors import InvalidHistory
from sigadapt.testing import Call


def add(book: str, context: ToolContext) -> str:
    """Add a book to the cart."""
    context.state.setdefault("cart", []).append(book)
    return f"{len(context.state['cart'])} in the cart"


def approved(context: ToolContext) -> str:
    """Order."""
    return f"ordered {context.state['cart']}"


def asked(context: ToolContext) -> str:
    """Order."""
    return f"ordered {context.state['cart']} to {context.ask('Where to?')}"


def pending() -> Pending:
    """Order."""
    return Pending({"job": 7})


def changed() -> str:
    """Order something else."""
    return "ordered anew"


WAITS: dict[str, tuple[Callable[[], ToolDecl], Any]] = {
    "an approval": (lambda: ToolDecl.of(approved, name="order", requires_confirmation=True), True),
    "a question": (lambda: ToolDecl.of(asked, name="order"), "Elm Street"),
    "a result": (lambda: ToolDecl.of(pending, name="order"), "ordered"),
    "an external tool": (lambda: ToolDecl("order", external=True), "ordered"),
}


def in_store(error: InputNeeded, folder: Any) -> InputNeeded:
    runs = WaitingRuns(folder / "runs.db")
    kept = runs.take(runs.put(error, "ada"), "ada")
    assert kept is not None
    return kept


KEPT: dict[str, Callable[[InputNeeded, Any], InputNeeded]] = {
    "as the object": lambda error, folder: error,
    "as JSON": lambda error, folder: saved(error),
    "in WaitingRuns": in_store,
}


@pytest.mark.parametrize(("wait", "keep"), itertools.product(WAITS, KEPT))
@pytest.mark.parametrize("agent", AGENTS)
def test_the_state_waits_with_its_run(agent: Any, wait: str, keep: str, tmp_path: Any) -> None:
    """tool-context: A turn that waits keeps the state of its run."""
    make, decision = WAITS[wait]
    tools = ToolDecls([add, make()])
    script = [turn(Call("add", {"book": "Emma"})), turn(Call("order", {})), submits()]
    with serving(script, confirm="raise"):
        program = agent("question -> answer", tools=[*tools])
        with sigadapt.Run(state={"user": "Ada"}):
            error = KEPT[keep](waiting(lambda: program(question="q")), tmp_path)
        with sigadapt.Run() as run:
            history = error.resume(tools, {error.requests[0].id: decision})
            assert program(history=history).answer == "Done."
    assert run.state == {"user": "Ada", "cart": ["Emma"]}
    assert "ordered" in history.model_dump_json()


def show(context: ToolContext) -> str:
    """Show the cart."""
    return f"the cart: {context.state.get('cart')}"


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_goes_on_outside_of_any_run(is_async: bool, keep: str, tmp_path: Any) -> None:
    """tool-context: A turn that waits keeps the state of its run."""
    make, decision = WAITS["an approval"]
    tools = ToolDecls([add, make(), show])
    looks_again = turn(Call("show", {}))
    script = [turn(Call("add", {"book": "Emma"})), turn(Call("order", {})), looks_again, submits()]
    program = sigadapt.ReAct("question -> answer", tools=tools, limits=sigadapt.Limits(requests=4))

    async def go_on(error: InputNeeded) -> Any:
        return await program.acall(history=await error.aresume(tools, {error.requests[0].id: decision}))

    with serving([*script, *script[2:]], confirm="raise") as provider:
        error = KEPT[keep](waiting(lambda: program(question="q")), tmp_path)
        if is_async:
            prediction = asyncio.run(go_on(error))
        else:
            prediction = program(history=error.resume(tools, {error.requests[0].id: decision}))
        assert prediction.answer == "Done."
        assert "the cart: ['Emma']" in prediction.history.model_dump_json()
        program(history=prediction.history, question="another")  # a run of its own, with limits of its own
    assert len(provider.received) == 6


NO_JSON: dict[str, Any] = {
    "an object": object(),
    "a set": {1, 2},
    "NaN": float("nan"),
    "a number as a key": {1: "a"},
    "a tuple": (1, 2),
    "bytes": b"x",
    "5,001 digits": 10**5000,
}


@pytest.mark.parametrize("name", NO_JSON)
def test_a_state_that_is_no_json_is_refused_when_it_is_saved(name: str) -> None:
    """tool-context: A state that is no plain JSON is refused by name when it is saved."""
    calls = ToolCalls([{"id": "c1", "name": "order", "args": {}}])
    with sigadapt.Run(state={"cart": [], "odd": NO_JSON[name]}):
        error = waiting(lambda: calls.run([ToolDecl.of(asked, name="order")]))
    with pytest.raises(InvalidHistory, match="state of the run") as caught:
        error.model_dump_json()
    assert (caught.value.code, str(caught.value.path).startswith("/odd")) == ("unreadable_history", True)


ORDERS = ("ReActV2", "a sequential tool", "parallel=False")


def chain(wait: str, ran: list[str], *, sequential: bool) -> ToolDecls:
    """Three tools, the first of which waits."""

    def first(context: ToolContext) -> Any:
        """First."""
        if wait == "a question":
            context.ask("Go on?")
        ran.append("first")
        return Pending(1) if wait == "a result" else "f"

    def second() -> str:
        """Second."""
        ran.append("second")
        return "s"

    options: dict[str, Any] = {"sequential": True} if sequential else {}
    return ToolDecls(
        [
            ToolDecl.of(first, requires_confirmation=wait == "an approval", **options),
            ToolDecl.of(second, **options),
        ]
    )


@pytest.mark.parametrize(
    ("wait", "order"), itertools.product(("an approval", "a question", "a result"), ORDERS)
)
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_turn_in_sequence_goes_on_in_sequence(wait: str, order: str, how: str) -> None:
    """tool-context: Calls in sequence wait for the one before."""
    ran: list[str] = []
    tools = chain(wait, ran, sequential=order == "a sequential tool")
    decision = {"an approval": True, "a question": "yes", "a result": "f"}[wait]
    made = [Call("first", {}), Call("second", {})]
    if order == "parallel=False" and wait != "an approval":
        calls = ToolCalls([{"id": f"c{n}", "name": call.name, "args": {}} for n, call in enumerate(made)])
        error = waiting(lambda: calls.run(tools, parallel=False))
    else:
        kind = sigadapt.ReAct if order == "a sequential tool" else AGENTS[1]
        with serving([turn(*made), submits()], confirm="raise"):
            error = waiting(lambda: kind("question -> answer", tools=[*tools])(question="q"))
    assert "second" not in ran
    error = saved(error)
    decisions = {error.requests[0].id: decision}
    results = (
        error.results_of(tools, decisions)
        if how == "sync"
        else asyncio.run(error.aresults_of(tools, decisions))
    )
    assert ran == ["first", "second"]
    assert [result.is_error for result in results] == [False, False]


TOOLS_LATER: dict[str, list[Any]] = {
    "declared anew": [ToolDecl.of(changed, name="order")],
    "gone": [add],
    "none at all": [],
}


@pytest.mark.parametrize(("wait", "later"), itertools.product(WAITS, TOOLS_LATER))
def test_declining_needs_no_tool(wait: str, later: str) -> None:
    """tool-context: Declining needs no tool.

    runs: A rejection needs no tool.
    """
    calls = ToolCalls([{"id": "c1", "name": "order", "args": {}}])
    tools = ToolDecls([WAITS[wait][0]()])
    if wait == "an approval":
        with serving([turn(Call("order", {}))], confirm="raise"):
            error = waiting(lambda: sigadapt.ReAct("question -> answer", tools=[*tools])(question="q"))
    else:
        with sigadapt.Run(state={"cart": []}):
            error = waiting(lambda: calls.run(tools))
    decision: Any = "Not now." if wait == "an approval" else Declined("Not now.")
    [result] = error.results_of(TOOLS_LATER[later], {error.requests[0].id: decision})
    assert (result.is_error, result.value) == (True, "Not now.")


def test_a_tool_that_is_as_it_was_may_catch_that_it_was_declined() -> None:
    """tool-context: A person may decline."""

    def order(context: ToolContext) -> str:
        """Order."""
        try:
            return context.ask("Where to?")
        except Declined as no:
            return f"kept: {no}"

    error = waiting(lambda: ToolCalls([{"id": "c1", "name": "order", "args": {}}]).run([order]))
    [result] = error.results_of([order], {error.requests[0].id: Declined("Not now.")})
    assert (result.is_error, result.value) == (False, "kept: Not now.")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each place of a JSON value, and what is there."""
    members: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        members = enumerate(cast("list[Any]", value))
    for key, member in members:
        yield (*at, key), member
        yield from places(member, (*at, key))


@pytest.mark.parametrize(
    ("old", "new"), [(9000, 5), ("Eve", "Ada"), ("pay", "look"), ({"to": "Eve", "eur": 9000}, {})]
)
def test_a_saved_run_shows_what_it_runs(old: Any, new: Any) -> None:
    """runs: A saved run shows what it runs."""
    paid: list[tuple[str, int]] = []

    def pay(to: str, eur: int = 120) -> str:
        """Pay."""
        paid.append((to, eur))
        return "paid"

    tools = [ToolDecl.of(pay, requires_confirmation=True)]
    with serving([turn(Call("pay", {"to": "Eve", "eur": 9000}))], confirm="raise"):
        text = waiting(
            lambda: sigadapt.ReAct("question -> answer", tools=tools)(question="q")
        ).model_dump_json()
    tried = 0
    for at, member in places(json.loads(text)):
        if member != old or type(member) is not type(old):
            continue
        tried += 1
        row = json.loads(text)
        holder = row
        for key in at[:-1]:
            holder = holder[key]
        holder[at[-1]] = new
        paid.clear()
        try:
            error = InputNeeded.model_validate_json(json.dumps(row))
            shown = [(request.call.name, request.call.args) for request in error.requests]
            error.results_of(tools, {request.id: True for request in error.requests})
        except sigadapt.SigadaptError:
            assert paid == []
            continue
        assert shown == [("pay", {"to": to, "eur": eur}) for to, eur in paid]
    assert tried


@pytest.mark.parametrize("schema", [-1, [[]], "string", True, {"type": "strnig"}])
def test_a_saved_question_has_a_schema(schema: Any) -> None:
    """runs: A saved run shows what it runs."""
    with sigadapt.Run(state={"cart": []}):
        calls = ToolCalls([{"id": "c1", "name": "order", "args": {}}])
        error = waiting(lambda: calls.run([ToolDecl.of(asked, name="order")]))
    row = json.loads(error.model_dump_json())
    row["requests"]["tool_calls"][0]["args"]["schema"] = schema
    with pytest.raises(InvalidHistory, match="no saved InputNeeded"):
        InputNeeded.model_validate_json(json.dumps(row))


def test_a_run_that_cannot_be_read_hides_no_other(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    """runs: A waiting run that cannot be read hides no other."""
    runs = WaitingRuns(tmp_path / "runs.db")
    calls = ToolCalls([{"id": "c1", "name": "order", "args": {}}])
    ids: list[str] = []
    for _ in range(2):
        with sigadapt.Run(state={"cart": ["SECRET"]}):
            ids.append(runs.put(waiting(lambda: calls.run([ToolDecl.of(asked, name="order")])), "ada"))
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        cut = "UPDATE sigadapt_waiting_runs SET run = substr(run, 1, 400) WHERE id = ?"
        connection.execute(cut, (json.dumps(ids[0]),))
    assert [run.id for run in runs.for_owner("ada")] == [ids[1]]
    assert ids[0] in caplog.text
    with pytest.raises(InvalidHistory) as caught:
        runs.get(ids[0], "ada")
    assert "SECRET" not in str(caught.value) + caplog.text
