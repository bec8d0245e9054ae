"""Calls of a program inside of a tool: they are not those of the agent around it, whatever their ids."""

import threading
from typing import Any, cast

import dspy
import pytest
from agents import AGENTS, DSPY_AGENT, Shop, serving, submits, turn

import sigadapt
from sigadapt import Run, ToolCalls, ToolDecl, ToolDecls
from sigadapt.events import CallReady, ResultReady
from sigadapt.testing import Answer, Call


class Pick(dspy.Signature):
    """Pick a tool."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls = dspy.OutputField()


def by_run(calls: ToolCalls, pay: Any) -> None:
    calls.run([pay])


def by_execute(calls: ToolCalls, pay: Any) -> None:
    calls[0].execute([pay])


def by_tool(calls: ToolCalls, pay: Any) -> None:
    dspy.Tool(pay)(**calls[0].args)


def by_declared_tool(calls: ToolCalls, pay: Any) -> None:
    ToolDecls([pay]).tools[0].to_dspy()(**calls[0].args)


@pytest.mark.parametrize("run_inside", [by_run, by_execute, by_tool, by_declared_tool])
def test_a_result_inside_of_a_tool_is_not_the_agents(run_inside: Any) -> None:
    """agent-runs: A call that was left has a failed result."""
    has_asked = threading.Event()
    paid: list[int] = []

    def pay(eur: int) -> str:
        """Pay."""
        if eur == 1_000:
            has_asked.wait(10)
        paid.append(eur)
        return f"Paid {eur}."

    def ask(question: str) -> str:
        """Ask."""
        run_inside(dspy.Predict(Pick)(question="INNER", tools=[pay]).calls, pay)
        return "Asked."

    def script(request: Any) -> Answer:
        names = {tool["function"]["name"] for tool in request.body["tools"]}
        if "ask" not in names:
            return turn(Call("pay", {"eur": 1}, id="functions.pay:0"))
        if request.body["messages"][-1]["role"] == "tool":
            return submits()
        return turn(
            Call("ask", {"question": "x"}, id="functions.ask:1"),
            Call("pay", {"eur": 1_000}, id="functions.pay:0"),
        )

    agent = sigadapt.ReAct("question -> answer", tools=[ask, pay])
    with serving(script), Run() as run:
        for event in sigadapt.stream_sync(agent, question="q"):
            if isinstance(event, ResultReady) and event.call_id == "functions.ask:1":
                pairs = [(call.name, result.is_error) for call, result in run.rounds[0].pairs]
                assert (pairs, paid) == ([("ask", False), ("pay", True)], [1])
                has_asked.set()
    assert [result.value for result in run.rounds[0].results] == ["Asked.", "Paid 1000."]


@pytest.mark.parametrize("agent_of", AGENTS)
def test_a_stream_inside_of_a_tool_has_its_own_results(agent_of: Any) -> None:
    """watching-runs: Each of two calls alike has its own result."""
    results: dict[str, Any] = {}

    def stock(title: str) -> str:
        """Stock inside."""
        return f"inner:{title}"

    def search(title: str) -> str:
        """Stock outside."""
        inner = DSPY_AGENT("question -> answer", tools=[stock])
        for event in sigadapt.stream_sync(inner, question="INNER"):
            if isinstance(event, ResultReady):
                results[event.call_id] = event.result.value
        return f"outer:{title}"

    search.__name__ = "stock"

    def script(request: Any) -> Answer:
        if request.body["messages"][-1]["role"] == "tool":
            return submits()
        if "Stock inside." in str(request.body["tools"]):
            return turn(
                Call("stock", {"title": "A"}, id="call_1"), Call("stock", {"title": "B"}, id="call_2")
            )
        return turn(Call("stock", {"title": "O"}, id="call_2"))

    with serving(script):
        agent_of("question -> answer", tools=[search])(question="q")
    assert results == {"call_1": "inner:A", "call_2": "inner:B"}


@pytest.mark.parametrize("is_tool", [True, False])
@pytest.mark.parametrize("agent_of", [*AGENTS, dspy.ReAct])
def test_a_tool_begun_by_hand_inside_of_a_tool_is_a_function(agent_of: Any, is_tool: bool) -> None:
    """agent-runs: A nested agent is under both limits."""
    counts: list[int] = []

    def research(question: str) -> str:
        """Find out."""
        inner = sigadapt.ReAct("question -> answer", tools=Shop().tools)
        return cast("str", inner(question=question).answer)

    def look(question: str) -> str:
        """Look."""
        with Run() as run:
            function: Any = dspy.Tool(research) if is_tool else research
            found: str = function(question=question)
        counts.append(len(run.rounds))
        return found

    def script(request: Any) -> Answer:
        names = {tool["function"]["name"] for tool in request.body.get("tools", ())}
        is_answered = request.body["messages"][-1]["role"] == "tool"
        if not names:
            return Answer(text=_text_of(str(request.body["messages"])))
        return turn(Call("look", {"question": "x"})) if "look" in names and not is_answered else submits()

    with serving(script):
        agent_of("question -> answer", tools=[look])(question="q")
    assert counts == [1]


def _text_of(prompt: str) -> str:
    """Return what a model writes that `dspy.ReAct` asks."""
    fields = {"reasoning": "x", "answer": "Hi."}
    if "next_tool_name" in prompt:
        name, args = ("finish", "{}") if "observation_0" in prompt else ("look", '{"question": "x"}')
        fields = {"next_thought": "x", "next_tool_name": name, "next_tool_args": args}
    return "\n\n".join(f"[[ ## {key} ## ]]\n{value}" for key, value in {**fields, "completed": ""}.items())


def test_a_predictor_that_a_tool_has_left_behind_holds_back_no_events() -> None:
    """watching-runs: A predictor that a tool left behind holds back no events."""
    is_told = threading.Event()

    def slow(question: str) -> str:
        """Ask."""
        return cast("str", dspy.Predict("question -> answer")(question=f"INNER {question}").answer)

    def look(question: str) -> str:
        """Look."""
        return "told" if is_told.wait(5) else "held back"

    def script(request: Any) -> Answer:
        if "INNER" in str(request.body):
            is_told.wait(10)
            return Answer(text="[[ ## answer ## ]]\nLate.\n\n[[ ## completed ## ]]")
        answered = sum(row["role"] == "tool" for row in request.body["messages"])
        return submits() if answered == 2 else turn(Call(("slow", "look")[answered], {"question": "x"}))

    agent = sigadapt.ReAct("question -> answer", tools=[ToolDecl.of(slow, timeout=0.05), look])
    results: list[Any] = []
    with serving(script):
        for event in sigadapt.stream_sync(agent, question="q"):
            if isinstance(event, CallReady) and event.call.name == "look":
                is_told.set()
            if isinstance(event, ResultReady):
                results.append(event.result.value)
    assert results[1:] == ["told"]
