"""A run that is resumed is a run: what it did is kept, counted and known, also if it is interrupted."""

import asyncio
from contextlib import nullcontext
from typing import Any

import agents
import pytest
from agents import saved, submits, turn, waiting

import sigadapt
from sigadapt import InputNeeded, Limits, Run, ToolContext, ToolDecl, run_of
from sigadapt.errors import LimitExceeded
from sigadapt.testing import Answer, Call


def serving(*script: Answer) -> Any:
    return agents.serving([*script], confirm="raise")


class Shop:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.is_slow = True
        self.tools = [ToolDecl.of(where, sequential=True), self.pay, self.ship]

    def pay(self, to: str) -> str:
        """Pay."""
        self.paid.append(to)
        return f"Paid {to}."

    async def ship(self) -> str:
        """Ship."""
        if self.is_slow:
            await asyncio.sleep(30)
        return "Shipped."


def where(context: ToolContext) -> str:
    """Ask for the address."""
    return context.ask("Where?")


TURN = turn(Call("where", {}), Call("pay", {"to": "Bob"}), Call("ship", {}))


def replies_to(error: InputNeeded, reply: Any = "Elm") -> dict[str, Any]:
    return {request.id: reply for request in error.requests}


CANCELLED = "This call was cancelled when the run ended. It is not known whether it had an effect."


async def interrupted(error: InputNeeded, tools: Any, reply: Any = "Elm") -> BaseException:
    with pytest.raises(asyncio.TimeoutError) as caught:
        await asyncio.wait_for(error.aresume(tools, replies_to(error, reply)), 1)
    return caught.value


def values_of(history: Any) -> list[tuple[str, str]]:
    return [(result.name, str(result.value)) for result in sigadapt.rounds(history)[0].results]


@pytest.mark.parametrize("is_saved", [True, False])
def test_an_interrupted_resume_keeps_its_results(is_saved: bool) -> None:
    """agent-runs: A resume that is interrupted keeps its results."""
    shop = Shop()
    with serving(TURN, submits()):
        agent = sigadapt.ReAct("question -> answer", tools=shop.tools)
        error = waiting(lambda: agent(question="Pay Bob."))
        if is_saved:
            error = saved(error)
        with Run() as run:
            fault = asyncio.run(interrupted(error, shop.tools))
        where, pay, ship = values_of(run.history)
        assert (where, pay) == (("where", "Elm"), ("pay", "Paid Bob."))
        assert "cancelled" in ship[1]
        assert run_of(fault).history.messages == run.history.messages
        assert agent(history=run.history).answer == "Done."
    assert shop.paid == ["Bob"]


def test_an_interrupted_resume_has_its_results_in_the_order_of_the_calls() -> None:
    """agent-runs: A resume that is interrupted keeps its results."""

    async def ship() -> str:
        """Ship."""
        await asyncio.sleep(30)
        return "Shipped."

    def pay(to: str) -> str:
        """Pay."""
        return "Paid."

    tools = [ToolDecl.of(tool, requires_confirmation=True) for tool in (ship, pay)]
    with serving(turn(Call("ship", {}), Call("pay", {"to": "Bob"}))):
        agent = sigadapt.ReAct("question -> answer", tools=tools)
        error = waiting(lambda: agent(question="q"))
        asyncio.run(interrupted(error, tools, reply=True))
    ended = [(result.name, result.value) for result in error.results]
    assert ended == [("ship", CANCELLED), ("pay", "Paid.")]


def test_an_interrupted_resume_can_be_repeated() -> None:
    """agent-runs: A resume that is interrupted keeps its results."""
    shop = Shop()
    with serving(TURN, submits()):
        agent = sigadapt.ReAct("question -> answer", tools=shop.tools)
        error = waiting(lambda: agent(question="Pay Bob."))
        asyncio.run(interrupted(error, shop.tools))
        shop.is_slow = False
        loaded = saved(error)
        history = loaded.resume(shop.tools, replies_to(loaded))
    *ended, (name, text) = values_of(history)
    assert ended == [("where", "Elm"), ("pay", "Paid Bob.")]
    assert (name, "not known" in text) == ("ship", True)  # it had begun: it does not run again
    assert shop.paid == ["Bob"]


def test_a_keyboard_interrupt_in_a_resumed_tool() -> None:
    """agent-runs: A resume that is interrupted keeps its results."""
    paid: list[str] = []

    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "Paid."

    def stop() -> str:
        """Stop."""
        raise KeyboardInterrupt

    tools = [ToolDecl.of(pay, requires_confirmation=True, sequential=True), stop]
    with serving(turn(Call("pay", {"to": "Bob"}), Call("stop", {}))):
        agent = sigadapt.ReAct("question -> answer", tools=tools)
        error = waiting(lambda: agent(question="q"))
        with pytest.raises(KeyboardInterrupt) as caught:
            error.resume(tools, replies_to(error, True))
    assert values_of(run_of(caught.value).history)[0] == ("pay", "Paid.")
    assert paid == ["Bob"]


def test_limits_count_across_waits() -> None:
    """agent-runs: A run that waits more than once goes on counting."""

    def serve(limits: Limits | None, own_limits: Limits | None) -> int:
        agent = sigadapt.ReAct("question -> answer", tools=[where], limits=own_limits)
        script = [turn(Call("where", {}, id=f"call_{number}")) for number in range(6)]
        with serving(*script):
            error = waiting(lambda: agent(question="q"))
            for leg in range(1, 6):
                loaded = saved(error)
                assert loaded.run is not None
                assert loaded.run.usage.requests == leg
                try:
                    with Run(limits):
                        agent(history=loaded.resume([where], replies_to(loaded)))
                except InputNeeded as again:
                    error = again
                except LimitExceeded:
                    return leg
        raise AssertionError("no limit stopped it")

    assert serve(Limits(requests=3), None) == 3
    assert serve(None, Limits(requests=2)) == 2


def test_another_agent_counts_for_itself() -> None:
    """agent-runs: A run that waits more than once goes on counting."""
    shop = Shop()
    shop.is_slow = False
    with serving(TURN, submits(), submits()):
        agent = sigadapt.ReAct("question -> answer", tools=shop.tools)
        error = waiting(lambda: agent(question="q"))
        with Run() as run:
            history = error.resume(shop.tools, replies_to(error))
            other = sigadapt.ReAct("question -> answer", tools=shop.tools, limits=Limits(requests=1))
            assert other(question="Another.").answer == "Done."
            assert agent(history=history).answer == "Done."
    assert (run.usage.requests, run.usage.tool_calls) == (3, 3)


def test_an_agent_inside_of_a_resumed_tool_is_nested() -> None:
    """agent-runs: A tool of a resumed turn is inside of its agent."""
    paid: list[str] = []

    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "Paid."

    inner = sigadapt.ReAct("task -> answer", tools=[pay, where])

    def script(request: Any) -> Answer:
        names = {tool["function"]["name"] for tool in request.body["tools"]}
        results = [message for message in request.body["messages"] if message["role"] == "tool"]
        if results:
            return submits()
        if "research" in names:
            return turn(Call("research", {"task": "t"}))
        return turn(Call("pay", {"to": "Bob"}), Call("where", {}))

    tools = [ToolDecl.of(inner, name="research", description="Research.", requires_confirmation=True)]
    with agents.serving(script, confirm="raise"):
        agent = sigadapt.ReAct("question -> answer", tools=tools)
        error = waiting(lambda: agent(question="q"))
        with Run() as run:
            history = error.resume(tools, replies_to(error, True))
            assert [[*event] for event in run.history.messages] == [["question", "tool_calls"]]
        assert agent(history=history).answer == "Done."
    assert "Done." in values_of(history)[0][1]
    assert paid == ["Bob"]


def test_the_state_of_an_open_run_is_the_newer_one() -> None:
    """agent-runs: A resume inside of the run that is still open leaves its state."""

    def order(context: ToolContext) -> str:
        """Order."""
        return f"{context.ask('Where?')}, approved by {context.state['approver']}"

    with serving(turn(Call("order", {}))), Run(state={"approver": None}) as run:
        agent = sigadapt.ReAct("question -> answer", tools=[order])
        error = waiting(lambda: agent(question="q"))
        run.state["approver"] = "Ann"
        history = error.resume([order], replies_to(error))
    assert values_of(history) == [("order", "Elm, approved by Ann")]
    assert run.state == {"approver": "Ann"}


@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("is_saved", [True, False])
def test_an_interrupted_resume_keeps_its_state_and_goes_on_counting(is_saved: bool, is_inside: bool) -> None:
    """agent-runs: A resume that is interrupted keeps its results."""
    is_slow = True

    def pay(to: str, context: ToolContext) -> str:
        """Pay."""
        context.state["paid"] = [to]
        return "Paid."

    async def ship(context: ToolContext) -> str:
        """Ship."""
        if is_slow:
            await asyncio.sleep(30)
        return f"Shipped to {context.state['paid']}."

    tools = [ToolDecl.of(pay, requires_confirmation=True), ship]
    around = Run()
    with serving(turn(Call("pay", {"to": "Bob"}), Call("ship", {}))), around if is_inside else nullcontext():
        agent = sigadapt.ReAct("question -> answer", tools=tools)
        error = waiting(lambda: agent(question="q"))
        asyncio.run(interrupted(error, tools, reply=True))
        if is_saved:
            error = saved(error)
        is_slow = False
        with Run() as run:
            history = error.resume(tools, replies_to(error, True))
    assert values_of(history) == [("pay", "Paid."), ("ship", CANCELLED)]
    assert run.state == {"paid": ["Bob"]}
    assert (error.state, error.run and error.run.usage.tool_calls) == ({"paid": ["Bob"]}, 2)
    for each in (run, around) if is_inside else (run,):
        assert (each.usage.requests, each.usage.tool_calls) == (1, 2)
