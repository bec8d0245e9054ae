"""Runs that end early, wherever that is: what is kept, and that an agent goes on from it."""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any

import dspy
import pytest
from agents import AGENTS, DSPY_AGENT, Shop, looks, orders, read_back, saved, serving, submits, turn, waiting
from hypothesis import given, settings
from hypothesis import strategies as st

import sigadapt
from sigadapt import Run, ToolContext, ToolDecl, ToolDecls, Toolset, run_of
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call, Failure

WIRES = ("openai", "responses", "anthropic", "gemini")
QUESTION = "Order two of Emma."
ORDERED = "Ordered 2 of Emma."
NOT_RUN = "This call was not run: the run ended before it began."
CANCELLED = "This call was cancelled when the run ended. It is not known whether it had an effect."
NO_RESULT = "There is no result: the run ended while this call ran. It may still be running."

ENDS: dict[str, Any] = {
    "an error of the provider": Failure(400),
    "a content filter": Answer(text="Sorry, the", finish="content_filter"),
    "thinking that used up the answer": Answer(text="", finish="length"),
}


def agent_of(tools: Any, kind: Any = sigadapt.ReAct) -> Any:
    return kind("question -> answer", tools=tools)


def refused(program: Any, how: str = "sync", **inputs: Any) -> BaseException:
    """Return the error that leaves a program."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011  (any, Ctrl-C and cancellation too)
        _ = program(**inputs) if how == "sync" else asyncio.run(program.acall(**inputs))
    return caught.value


def goes_on(history: dspy.History, wire: str = "openai", results: int = 1) -> None:
    """Check that a new agent ends from a history, and that its request has all of it, once."""
    shop = Shop()
    with serving([submits("It is ordered.")], wire) as net:
        out = agent_of(shop.tools)(history=read_back(history))
    assert out.answer == "It is ordered."
    assert shop.ran == []
    body = json.dumps(net.received[0].body)
    assert body.count(QUESTION) == 1
    assert ORDERED in body
    assert len(sigadapt.rounds(history)[0].results) >= results


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    for _ in range(1_000):
        if is_so():
            return
        threading.Event().wait(0.01)


def pairs(run: Run) -> list[tuple[str, bool, Any]]:
    return [(call.name or "", r.is_error, r.value) for each in run.rounds for call, r in each.pairs]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("how", ["sync", "async"])
def test_ends_in_the_second_round(how: str, end: str) -> None:
    """agent-runs: An error carries its run."""
    shop = Shop()
    with serving([turn(orders()), ENDS[end]]):
        error = refused(agent_of(shop.tools), how, question=QUESTION)
    with serving([turn(orders()), ENDS[end]]):
        plain = refused(agent_of(Shop().tools, DSPY_AGENT), how, question=QUESTION)
    assert type(error) is type(plain)
    assert getattr(error, "run", None) is run_of(error)
    goes_on(run_of(error).history)
    assert shop.ran == [("order", "Emma", 2)]


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire(wire: str) -> None:
    """agent-runs: A run goes on and runs nothing twice."""
    shop = Shop()
    thoughts: dict[str, Any] = {}
    if wire != "openai":
        thoughts = {"reasoning": "Hm.", "signature": "c2lnbmVk"}
    script = [turn(orders(), looks("Nowhere"), **thoughts), turn(looks(), **thoughts), Failure(400)]
    with serving(script, wire), pytest.raises(dspy.utils.exceptions.LMError), Run() as run:
        agent_of(shop.tools, DSPY_AGENT)(question=QUESTION)
    assert len(run.rounds) == 2
    goes_on(run.history, wire, results=2)


@pytest.mark.parametrize("kind", AGENTS)
def test_first_request_fails(kind: Any) -> None:
    """agent-runs: The question of a failed first request is kept."""
    with serving([Failure(400)]), pytest.raises(dspy.utils.exceptions.LMError), Run() as run:
        agent_of(Shop().tools, kind)(question=QUESTION)
    assert run.history.messages == [{"question": QUESTION}]
    with serving([submits()]) as net:
        assert agent_of(Shop().tools)(history=read_back(run.history)).answer == "Done."
    assert json.dumps(net.received[0].body).count(QUESTION) == 1


def slow_tool(began: threading.Event) -> Any:
    async def fetch(title: str) -> str:
        """Fetch slowly."""
        began.set()
        await asyncio.sleep(30)
        return title

    return fetch


async def cancel_when(began: threading.Event, program: Any, others: Any = lambda: True) -> BaseException:
    task = asyncio.ensure_future(program.acall(question=QUESTION))
    while not (began.is_set() and others()):  # noqa: ASYNC110  (other threads say so)
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


@pytest.mark.parametrize("kind", AGENTS)
def test_cancelled_beside_a_result(kind: Any) -> None:
    """agent-runs: A call that was left has a failed result."""
    shop = Shop()
    began = threading.Event()
    tools = [*shop.tools, slow_tool(began)]
    script = [turn(orders(), Call("fetch", {"title": "x"}), looks())]
    with serving(script), Run() as run:
        error = asyncio.run(cancel_when(began, agent_of(tools, kind), lambda: bool(shop.ran)))
    assert isinstance(error, asyncio.CancelledError)
    order, fetch, look = pairs(run)
    assert order == ("order", False, ORDERED)
    assert fetch == ("fetch", True, CANCELLED)
    # DSPy's agent runs a turn's calls one by one.
    assert look[1:] == ((False, "7 of Emma.") if kind is sigadapt.ReAct else (True, NOT_RUN))
    goes_on(run.history, results=3)


@pytest.mark.parametrize("kind", AGENTS)
def test_a_tool_that_cannot_run_here(kind: Any) -> None:
    """agent-runs: An error carries its run."""
    from mcp.client import Client  # noqa: PLC0415
    from mcp.server.mcpserver import MCPServer  # noqa: PLC0415

    server = MCPServer("titles")
    shop = Shop()

    @server.tool()
    async def find(title: str) -> str:
        """Find a title."""
        return title

    async def main() -> Run:
        async with Client(server) as session:
            found = await Toolset("titles", session).aresolve()
            with pytest.raises(InvalidOption) as caught, Run() as run:
                agent_of(ToolDecls([*found, *shop.tools]), kind)(question=QUESTION)
            assert caught.value.code == "blocked_loop"
            return run

    with serving([turn(orders()), turn(Call("find", {"title": "x"})), submits()]):
        run = asyncio.run(main())
    order, find_result = pairs(run)
    assert order == ("order", False, ORDERED)
    assert find_result[1]
    goes_on(run.history)


@pytest.mark.parametrize("kind", AGENTS)
def test_a_result_in_the_moment_of_the_cancel(kind: Any) -> None:
    """agent-runs: A call that ends in the moment of a cancel keeps its result."""
    tasks: list[Any] = []

    async def pay(to: str) -> str:
        """Pay."""
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(tasks[0].cancel)
        return f"Paid {to}."

    async def main() -> None:
        tasks.append(asyncio.ensure_future(agent_of(ToolDecls([pay]), kind).acall(question=QUESTION)))
        await tasks[0]

    with serving([turn(Call("pay", {"to": "Eve"}))]), pytest.raises(asyncio.CancelledError), Run() as run:
        asyncio.run(main())
    assert pairs(run) == [("pay", False, "Paid Eve.")]


def test_one_by_one() -> None:
    """agent-runs: A call that was left has a failed result."""
    shop = Shop()
    began = threading.Event()
    fetch = ToolDecl.of(slow_tool(began), sequential=True)
    script = [turn(orders(), Call("fetch", {"title": "x"}), looks())]
    with serving(script), Run() as run:
        asyncio.run(cancel_when(began, agent_of(ToolDecls([*shop.tools, fetch]))))
    assert [result for _, _, result in pairs(run)] == [ORDERED, CANCELLED, NOT_RUN]
    assert shop.ran == [("order", "Emma", 2)]


@pytest.mark.parametrize("has_context", [False, True])
@pytest.mark.parametrize("kind", AGENTS)
def test_a_thread_that_ends_later(kind: Any, *, has_context: bool) -> None:
    """agent-runs: A thread that ends later keeps its result."""
    began = threading.Event()
    may_end = threading.Event()

    def pay(to: str, context: ToolContext | None = None) -> str:
        """Pay."""
        began.set()
        may_end.wait(10)
        return f"Paid {to}."

    if not has_context:
        pay = partial(pay, context=None)
    with serving([turn(Call("pay", {"to": "Eve"}))]), Run() as run:
        asyncio.run(cancel_when(began, agent_of(ToolDecls([pay]), kind)))
    assert pairs(run) == [("pay", True, NO_RESULT)]
    may_end.set()
    until(lambda: not pairs(run)[0][1])
    assert pairs(run) == [("pay", False, "Paid Eve.")]


def test_ctrl_c() -> None:
    """agent-runs: A call that was left has a failed result."""
    shop = Shop()

    def stop(title: str) -> str:
        """Stop."""
        until(lambda: bool(shop.ran))
        raise KeyboardInterrupt

    script = [turn(orders(), Call("stop", {"title": "x"}))]
    with serving(script) as net:
        error = refused(agent_of([*shop.tools, stop]), question=QUESTION)
    assert isinstance(error, KeyboardInterrupt)
    assert len(net.received) == 1
    until(lambda: not pairs(run_of(error))[0][1])  # the order's own thread writes its result
    assert pairs(run_of(error)) == [("order", False, ORDERED), ("stop", True, NO_RESULT)]
    goes_on(run_of(error).history, results=2)


@pytest.mark.parametrize("kind", AGENTS)
def test_ctrl_c_in_a_nested_agent(kind: Any) -> None:
    """agent-runs: An error carries its run."""

    def stop(title: str) -> str:
        """Stop."""
        raise KeyboardInterrupt

    def script(request: Any) -> Answer:
        is_outer = any(tool["function"]["name"] == "research" for tool in request.body["tools"])
        return turn(Call("research", {"question": "x"}) if is_outer else Call("stop", {"title": "x"}))

    research = ToolDecl.of(agent_of([stop]), name="research", description="Find out.")
    with serving(script), pytest.raises(KeyboardInterrupt) as caught, Run():  # DSPy's has no run of its own
        agent_of(ToolDecls([research]), kind)(question=QUESTION)
    error = caught.value
    assert run_of(error).history.messages[0]["question"] == QUESTION
    assert pairs(run_of(error)) == [("research", True, NO_RESULT)]


def test_at_every_moment() -> None:
    """agent-runs: A run goes on and runs nothing twice."""
    histories: list[str] = []
    runs: list[Run] = []

    def look(title: str) -> str:
        """Look."""
        histories.append(runs[0].history.model_dump_json())
        return title

    script = [turn(orders()), turn(Call("look", {"title": "x"})), submits()]
    with serving(script), Run() as run:
        runs.append(run)
        agent_of([*Shop().tools, look])(question=QUESTION)
    assert QUESTION in histories[0]
    assert ORDERED in histories[0]
    assert NO_RESULT in histories[0]


def test_an_approval_is_no_result() -> None:
    """agent-runs: A call that was left has a failed result."""
    shop = Shop()
    tools = ToolDecls([ToolDecl.of(shop.order, requires_confirmation=True), shop.stock])
    with serving([turn(looks()), turn(orders(), looks())], confirm="raise"):
        error = refused(agent_of(tools), question=QUESTION)
    assert isinstance(error, sigadapt.InputNeeded)
    assert [result for _, _, result in pairs(run_of(error))] == ["7 of Emma.", NOT_RUN, NOT_RUN]
    history = error.resume(tools, {error.requests[0].id: True})
    assert shop.ran == [("stock", "Emma"), ("order", "Emma", 2), ("stock", "Emma")]
    goes_on(history)


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("where", ["a run that has ended", "the open run", "a run inside of it"])
def test_usage_of_a_resumed_run(where: str, *, is_saved: bool) -> None:
    """agent-runs: A resumed run goes on counting."""
    tools = ToolDecls([ToolDecl.of(Shop().order, requires_confirmation=True)])
    agent = agent_of(tools)
    script = [turn(orders(), usage=(100, 5)), submits(usage=(200, 6))]
    with ExitStack() as first, serving(script, confirm="raise"):
        run = first.enter_context(Run())
        error: Any = waiting(lambda: agent(question=QUESTION))
        error = saved(error) if is_saved else error
        if where == "a run that has ended":
            first.close()
        with nullcontext(run) if where == "the open run" else Run() as inner:
            agent(history=error.resume(tools, {error.requests[0].id: True}))
    assert (inner.usage.requests, inner.usage.input_tokens, inner.usage.tool_calls) == (2, 300, 1)
    assert where == "a run that has ended" or run.usage.requests == 2


@settings(max_examples=25, deadline=None)
@given(
    rounds=st.lists(st.lists(st.sampled_from(["A", "B", "Nowhere"]), min_size=1, max_size=3), max_size=3),
    kind=st.sampled_from(AGENTS),
    how=st.sampled_from(["sync", "async"]),
)
def test_any_run_goes_on(rounds: list[list[str]], kind: Any, how: str) -> None:
    """agent-runs: A run goes on and runs nothing twice."""
    shop = Shop()
    script = [turn(orders()), *(turn(*map(looks, titles)) for titles in rounds), Failure(400)]
    with serving(script), Run() as run:
        refused(agent_of(shop.tools, kind), how, question=QUESTION)
    assert len(run.rounds) == 1 + len(rounds)
    assert sorted(shop.ran[1:]) == sorted(("stock", title) for titles in rounds for title in titles)
    goes_on(run.history)


def test_a_later_run_of_the_same_history() -> None:
    """agent-runs: A run goes on and runs nothing twice."""
    history = dspy.History(messages=[])
    agent = agent_of(Shop().tools, DSPY_AGENT)
    with serving([turn(orders()), Failure(400)]), pytest.raises(dspy.utils.exceptions.LMError), Run() as run:
        agent(question=QUESTION, history=history)
    before = run.history.model_dump_json()
    with serving([submits()]):
        agent(question="And?", history=history)
    assert run.history.model_dump_json() == before


@pytest.mark.parametrize("kind", AGENTS)
def test_saved_at_each_event(kind: Any) -> None:
    """agent-runs: A run goes on and runs nothing twice."""
    shop = Shop()
    early: list[str] = []
    script = [turn(orders(), looks(), looks("Ivanhoe")), turn(looks("Nowhere")), submits()]
    with serving(script), Run() as run:
        for event in sigadapt.stream_sync(agent_of(ToolDecls(shop.tools), kind), question=QUESTION):
            if isinstance(event, sigadapt.events.ResultReady):
                kept = {call.id: result for each in run.rounds for call, result in each.pairs}
                early += [event.call_id for _ in "x" if kept[event.call_id].value in (NOT_RUN, NO_RESULT)]
    assert early == []
