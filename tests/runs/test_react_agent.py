"""sigadapt.ReAct beside DSPy's agent: the same requests, and what stands between them."""

import asyncio
import json
from typing import Any

import dspy
import pytest
from agents import DSPY_AGENT, Shop, looks, orders, serving, submits, turn
from hypothesis import given, settings
from hypothesis import strategies as st

import sigadapt
from sigadapt import ReAct, RequestContext, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidOption, InvalidSignature, InvalidToolDecl
from sigadapt.server_tools import WebSearch
from sigadapt.testing import Answer, Call

WIRES = ("openai", "responses", "anthropic", "gemini")
SCRIPTS: dict[str, Any] = {
    "two rounds": [turn(looks()), turn(orders()), submits()],
    "two calls at once": [turn(looks("A"), looks("B")), submits()],
    "calls that fail": [
        turn(looks("Nowhere")),
        turn(Call("burn", {}), Call("stock", {"title": 1})),
        submits(),
    ],
    "a call beside submit": [turn(orders(), Call("submit", {"answer": "Both."}))],
    "a submit that lacks the answer": [turn(Call("submit", {})), submits()],
}


def run(program: Any, how: str = "sync", **inputs: Any) -> Any:
    return program(**inputs) if how == "sync" else asyncio.run(program.acall(**inputs))


def last_of(events: Any) -> Any:
    return [*events][-1]


def sent(kind: Any, script: Any, wire: str, how: str = "sync", **options: Any) -> tuple[Any, ...]:
    """Return the requests of an agent, its answer, and what ran."""
    shop = Shop()
    program = kind("question -> answer", tools=ToolDecls(shop.tools), **options)
    with serving(script, wire) as net:
        out = run(program, how, question="Two of Emma?")
    bodies = [json.dumps(received.body) for received in net.received]
    return bodies, out.answer, out.termination_reason, sorted(shop.ran, key=str)


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("script", SCRIPTS)
def test_same_requests(script: str, wire: str, how: str) -> None:
    """agent-runs: The agent asks as DSPy's does."""
    ours = sent(ReAct, SCRIPTS[script], wire, how)
    assert ours == sent(DSPY_AGENT, SCRIPTS[script], wire, how)


CALLS = st.sampled_from([looks(), looks("Nowhere"), orders(), Call("burn", {}), Call("stock", {"title": 3})])


@settings(max_examples=30, deadline=None)
@given(rounds=st.lists(st.lists(CALLS, min_size=1, max_size=4), max_size=4), max_iters=st.integers(1, 5))
def test_same_requests_of_any_run(rounds: list[list[Call]], max_iters: int) -> None:
    """agent-runs: The agent asks as DSPy's does."""
    script = [*(turn(*calls) for calls in rounds[:max_iters]), submits()]
    ours = sent(ReAct, script, "openai", max_iters=max_iters)
    assert ours == sent(DSPY_AGENT, script, "openai", max_iters=max_iters)


def test_toolsets_of_one_name() -> None:
    """agent-runs: Toolsets of one name are all declared."""
    shop = Shop()
    files = Toolset("files", [shop.stock])
    tools: list[Any] = [files.prefixed("a_"), files.prefixed("b_"), Toolset("files", [shop.order])]
    tools += [Toolset("find", [ToolDecl.of(shop.stock, name="other")]), Toolset("submit", [WebSearch()])]
    tools.append(ToolDecl.of(shop.stock, name="find"))
    agent = ReAct("question -> answer", tools=tools)
    calls = [Call(name, {"title": "Emma"}) for name in ("a_stock", "b_stock", "other", "find")]
    with serving([Answer(calls=calls), submits()], "responses") as net:
        assert agent(question="q").answer == "Done."
        body = net.received[0].body
    assert {tool.get("name", tool["type"]) for tool in body["tools"]} == {
        "a_stock", "b_stock", "order", "other", "find", "submit", "web_search"
    }  # fmt: skip
    assert [name for name, *_ in shop.ran] == ["stock"] * 4


def test_async_toolset() -> None:
    """agent-runs: A toolset is resolved for each request of an agent."""
    shop = Shop()

    async def tools(context: RequestContext) -> list[Any]:
        return shop.tools

    agent = ReAct("question -> answer", tools=[Toolset("shop", tools), WebSearch()])
    with serving([turn(looks()), submits()], "responses") as net:
        assert run(agent, "async", question="q").answer == "Done."
        assert last_of(sigadapt.stream_sync(agent, question="q")).prediction.answer == "Done."
        with pytest.raises(InvalidToolDecl) as caught:
            agent(question="q")
    assert caught.value.code == "async_toolset"
    assert [tool["type"] for tool in net.received[0].body["tools"]] == [
        "function", "function", "web_search", "function"
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["sync", "async"])
def test_branches(how: str) -> None:
    """agent-runs: A history that is given stays as it is."""
    agent = ReAct("question -> answer", tools=Shop().tools)
    with serving([turn(looks()), submits("First."), submits("Second."), submits("Third.")]) as net:
        first = run(agent, how, question="Q1?")
        before = first.history.model_dump_json()
        second = run(agent, how, question="Q2?", history=first.history)
        third = run(agent, how, question="Q3?", history=json.loads(before))
    assert (second.answer, third.answer) == ("Second.", "Third.")
    assert first.history.model_dump_json() == before
    assert "Q2?" not in json.dumps(net.received[-1].body)


class Desk(dspy.Module):
    """An agent inside of a module."""

    def __init__(self, tools: list[Any]) -> None:
        super().__init__()
        self.inner = ReAct("question -> answer", tools=tools)

    def forward(self, question: str) -> Any:
        return self.inner(question=question)

    async def aforward(self, question: str) -> Any:
        return await self.inner.acall(question=question)


FOREIGN: dict[str, Any] = {
    "none": lambda: None,
    "ChatAdapter": dspy.ChatAdapter,
    "native ChatAdapter": lambda: dspy.ChatAdapter(use_native_function_calling=True),
    "JSONAdapter": dspy.JSONAdapter,
    "XMLAdapter": dspy.XMLAdapter,
    "TwoStepAdapter": lambda: dspy.TwoStepAdapter(dspy.LM("openai/x")),
}


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("name", FOREIGN)
def test_under_dspys_adapter(name: str, is_nested: bool, how: str) -> None:
    """agent-runs: An agent under DSPy's own adapter is refused."""
    shop = Shop()
    with dspy.context(adapter=None):  # making it is no mistake
        agent = Desk(shop.tools) if is_nested else ReAct("question -> answer", tools=shop.tools)
    cut_off = Answer(calls=[Call("order", '{"title": "Emma')], finish="length")
    with serving([cut_off, submits(), submits()]) as net:
        with dspy.context(adapter=FOREIGN[name]()), pytest.raises(InvalidSignature) as caught:
            run(agent, how, question="q")
        assert caught.value.code == "forgotten_adapter"
        assert "adapter=sigadapt." in str(caught.value)
        assert not net.received
        assert not shop.ran
    with serving([submits()]):
        assert run(agent, how, question="q").answer == "Done."


def test_refused() -> None:
    """agent-runs: The agent asks as DSPy's does."""
    wrong_limits: Any = 3
    with pytest.raises(InvalidOption, match="limits"):
        ReAct("question -> answer", tools=[], limits=wrong_limits)
    with pytest.raises(ValueError, match="reserved"):
        ReAct("history -> answer", tools=[])
    with pytest.raises(ValueError, match="submit"):
        ReAct("question -> answer", tools=[ToolDecl.of(Shop().stock, name="submit")])
    with pytest.raises(InvalidToolDecl) as caught:
        ReAct("question -> answer", tools=[{"name": "stock"}])
    assert caught.value.code == "no_function"
    of_toolset: Any = ReAct("question -> answer", tools=[Toolset("shop", [])]).tools["shop"]
    with pytest.raises(InvalidToolDecl, match="toolset"):
        asyncio.run(of_toolset.acall())


def test_prompted() -> None:
    """agent-runs: An agent's calls run side by side."""
    script = [Answer(text='<tool_call>{"name": "stock", "arguments": {"title": "Emma"}}</tool_call>')]
    script.append(Answer(text='<tool_call>{"name": "submit", "arguments": {"answer": "Seven."}}</tool_call>'))
    with serving(script, tool_calling="prompted"), sigadapt.Run() as its_run:
        out = ReAct("question -> answer", tools=Shop().tools)(question="q")
    assert out.answer == "Seven."
    assert its_run.rounds[0].results[0].value == "7 of Emma."
