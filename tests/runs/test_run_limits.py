"""Limits: what stops a run, when, and what is kept of the turn that is not run."""

import time
from typing import Any

import dspy
import pytest
from agents import AGENTS, Shop, looks, orders, serving, submits, turn
from hypothesis import given
from hypothesis import strategies as st

import sigadapt
from sigadapt import Limits, Run, ToolDecl, ToolDecls, Toolset, Usage, run_of
from sigadapt.errors import InvalidOption, LimitExceeded
from sigadapt.testing import Answer, Call

HI = Answer(text="[[ ## answer ## ]]\nHi.\n\n[[ ## completed ## ]]", usage=(40, 4))
NOT_RUN = "This call was not run: the run ended before it began."
ask: Any = dspy.Predict("question -> answer")


def endless(_: Any) -> Answer:
    return turn(orders(), usage=(1_000, 50))


def limited(agent_of: Any, script: Any = endless, *, shop: Shop | None = None, **limits: Any) -> Any:
    """Run an agent until a limit stops it, and return the provider, the run, and the error."""
    tools = (shop or Shop()).tools
    with serving(script) as net, pytest.raises(LimitExceeded) as caught, Run(Limits(**limits)) as run:
        agent_of("question -> answer", tools=tools)(question="Order.")
    assert run.error is caught.value
    return net, run, caught.value


@pytest.mark.parametrize("agent_of", AGENTS)
@pytest.mark.parametrize(
    ("name", "most"),
    [("total_tokens", 2_000), ("input_tokens", 1_900), ("output_tokens", 90), ("cost", 3e-4)],
)
def test_tokens(agent_of: Any, name: str, most: float) -> None:
    """agent-runs: A turn that would pass a limit runs nothing."""
    shop = Shop()
    net, run, error = limited(agent_of, shop=shop, **{name: most})
    assert (error.code, error.limit, len(net.received), len(shop.ran)) == (name, most, 2, 1)
    assert error.used > most
    [first, second] = run.rounds
    assert not first.results[0].is_error
    assert (second.results[0].is_error, second.results[0].value) == (True, NOT_RUN)


def test_tool_calls_in_a_hand_written_loop() -> None:
    """agent-runs: A turn that would pass a limit runs nothing."""
    shop = Shop()
    calls = sigadapt.ToolCalls([{"name": "stock", "args": {"title": "A"}}] * 2)
    with Run(Limits(tool_calls=3)):
        calls.run(shop.tools)
        with pytest.raises(LimitExceeded):
            calls.run(shop.tools)
    assert len(shop.ran) == 2


@pytest.mark.parametrize("agent_of", AGENTS)
def test_submit_is_taken(agent_of: Any) -> None:
    """agent-runs: An answer that submits is taken."""
    with serving([submits(usage=(1_000, 50))]), Run(Limits(total_tokens=100, tool_calls=0)) as run:
        out = agent_of("question -> answer", tools=Shop().tools)(question="q")
    assert out.answer == "Done."
    assert (run.usage.total_tokens, run.usage.tool_calls) == (1_050, 0)


def test_calls_that_never_begin_are_not_counted() -> None:
    """agent-runs: A limit holds for agents that run side by side."""

    def stop(title: str) -> str:
        """Stop."""
        raise KeyboardInterrupt

    shop = Shop()
    tools = ToolDecls([ToolDecl.of(stop, sequential=True), shop.stock])
    script = [turn(looks(), Call("stop", {"title": "x"}), looks("B"))]
    with serving(script), pytest.raises(KeyboardInterrupt), Run() as run:
        sigadapt.ReAct("question -> answer", tools=tools)(question="q")
    assert (len(shop.ran), run.usage.tool_calls) == (1, 2)


def test_seconds() -> None:
    """agent-runs: A request that would pass a limit is not sent."""

    def slow(title: str) -> str:
        """Slow."""
        time.sleep(0.4)
        return title

    script = [turn(Call("slow", {"title": "A"})), submits()]
    with serving(script) as net, pytest.raises(LimitExceeded) as caught, Run(Limits(seconds=0.2)) as run:
        sigadapt.ReAct("question -> answer", tools=[slow])(question="q")
    assert (caught.value.code, caught.value.limit, len(net.received)) == ("seconds", 0.2, 1)
    assert "It may still be running" in str(run.rounds[0].results[0].value)


def test_searches_are_requests() -> None:
    """agent-runs: A request that would pass a limit is not sent."""

    def search(_: Any) -> Answer:
        return turn(Call("search_tools", {"query": "book"}))

    tools = Toolset("shop", Shop().tools).deferred()
    with serving(search) as net, pytest.raises(LimitExceeded), Run(Limits(requests=3)):
        sigadapt.ReAct("question -> answer", tools=tools)(question="q")
    assert len(net.received) == 3


def nested(agent_of: Any, inner: Any) -> Any:
    research = ToolDecl.of(inner, name="research", description="Find out.")
    return agent_of("question -> answer", tools=ToolDecls([research]))


def nested_script(request: Any) -> Answer:
    if any(tool["function"]["name"] == "research" for tool in request.body["tools"]):
        is_answered = request.body["messages"][-1]["role"] == "tool"
        return submits("outer") if is_answered else turn(Call("research", {"question": "INNER"}))
    return turn(looks(), looks("Ivanhoe"))


@pytest.mark.parametrize("agent_of", AGENTS)
@pytest.mark.parametrize(("limits", "sent"), [({"requests": 4}, 4), ({"tool_calls": 4}, 3)])
def test_nested_under_the_outer_limit(agent_of: Any, limits: dict[str, int], sent: int) -> None:
    """agent-runs: A nested agent is under both limits."""
    program = nested(agent_of, agent_of("question -> answer", tools=Shop().tools))
    with serving(nested_script) as net, pytest.raises(LimitExceeded) as caught, Run(Limits(**limits)) as run:
        program(question="OUTER?")
    assert caught.value.code == next(iter(limits))
    assert len(net.received) == sent
    assert run.history.messages[0]["question"] == "OUTER?"
    assert run_of(caught.value).history.messages[0]["question"] == "OUTER?"


@pytest.mark.parametrize(
    "limits",
    [{"requests": -1}, {"requests": 1.5}, {"tool_calls": True}, {"total_tokens": "many"}, {"seconds": "1"},
     {"cost": float("nan")}, {"seconds": float("inf")}],
)  # fmt: skip
def test_no_limits(limits: dict[str, Any]) -> None:
    """agent-runs: A limit that cannot be kept is refused."""
    with pytest.raises(InvalidOption) as caught:
        Limits(**limits)
    assert caught.value.field in limits


def test_unknown_price() -> None:
    """agent-runs: A limit that cannot be kept is refused."""
    with (
        serving([HI], model="openai/no-such-model-7") as net,
        pytest.raises(InvalidOption, match="no price"),
        Run(Limits(cost=1.0)),
    ):
        ask(question="1")
    assert not net.received


def test_unknown_tokens() -> None:
    """agent-runs: A limit that cannot be kept is refused."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": HI.text}}
    body = {"id": "1", "object": "chat.completion", "model": "m", "created": 1, "choices": [choice]}
    with serving([body]), Run(Limits(total_tokens=9_000)):
        ask(question="1")
        with pytest.raises(InvalidOption, match="total_tokens"):
            ask(question="2")


COUNTS = st.fixed_dictionaries(
    {},
    optional={
        "requests": st.integers(0, 9),
        "tool_calls": st.integers(0, 9),
        "input_tokens": st.none() | st.integers(0, 9),
        "output_tokens": st.none() | st.integers(0, 9),
        "cached_tokens": st.none() | st.integers(0, 9),
        "cost": st.none() | st.integers(0, 9),
    },
)


@given(st.lists(COUNTS, max_size=6))
def test_sums(counts: list[dict[str, Any]]) -> None:
    """agent-runs: A figure that an answer lacks is unknown."""
    usage = Usage()
    for each in counts:
        usage = usage.plus(each)
    for name in ("requests", "tool_calls", "input_tokens", "output_tokens", "cost"):
        figures = [each[name] for each in counts if name in each]
        assert getattr(usage, name) == (None if None in figures else sum(figures))
    cached = [each["cached_tokens"] for each in counts if each.get("cached_tokens") is not None]
    assert usage.cached_tokens == (sum(cached) if cached else None)


@pytest.mark.parametrize("on_invalid", ["reask", "keep"])
def test_a_reask_is_a_request(on_invalid: str) -> None:
    """agent-runs: A request that would pass a limit is not sent."""
    agent = sigadapt.ReAct("question -> answer", tools=Shop().tools, limits=Limits(requests=1))
    bad = turn(Call("stock", {"title": 3}))
    with serving([bad], on_invalid=on_invalid) as net, pytest.raises(LimitExceeded) as caught:
        agent(question="q")
    assert len(net.received) == 1
    assert run_of(caught.value).history.messages[0]["question"] == "q"


def locked(title: str) -> str:
    """Fail."""
    raise ValueError(f"the shelf of {title} is locked")


FAILURES: dict[str, tuple[Any, str]] = {
    "a tool that raises": (Call("locked", {"title": "Emma"}), "is locked"),
    "arguments that do not fit": (Call("locked", {"title": 7}), "/title"),
    "arguments that are no JSON": (Call("locked", '{"title": '), "JSON"),
    "an undeclared tool": (Call("vault", {}), "vault"),
    "a submit that does not fit": (Call("submit", {}), "answer"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("agent", AGENTS)
def test_failed_turns_in_a_row_end_a_run(name: str, agent: Any) -> None:
    """agent-runs: Failed turns in a row end a run."""
    call, last = FAILURES[name]
    tools = [*ToolDecls([locked])]
    refused = pytest.raises(LimitExceeded, match="failures")
    with serving([turn(call)] * 9) as net, refused as caught, Run(Limits(failures=3)):
        agent("question -> answer", tools=tools)(question="q")
    assert (caught.value.code, caught.value.used, caught.value.limit) == ("failures", 3, 3)
    assert last in str(caught.value)
    assert (len(net.received), len(run_of(caught.value).rounds)) == (3, 3)


def test_a_rejected_call_is_no_failure() -> None:
    """agent-runs: Failed turns in a row end a run."""
    shop = Shop()
    tools = ToolDecls([ToolDecl.of(shop.order, requires_confirmation=True)])
    with serving([turn(orders()), turn(orders()), turn(orders()), submits()], confirm="raise"):
        agent = sigadapt.ReAct("question -> answer", tools=tools)
        with Run(Limits(failures=1)):
            history = None
            for _ in range(3):
                with pytest.raises(sigadapt.InputNeeded) as caught:
                    agent(question="q") if history is None else agent(history=history)
                history = caught.value.resume(tools, {caught.value.requests[0].id: False})
            assert agent(history=history).answer == "Done."
    assert shop.ran == []


def beside_loop(agent_of: Any, inner: Any) -> Any:
    """Return an agent whose `forward` asks another one first, outside of its tools."""

    base: Any = agent_of
    agent: Any

    def forward(**inputs: Any) -> Any:
        inner(question="INNER")
        return base.forward(agent, **inputs)

    agent = base("question -> answer", tools=Shop().tools)
    agent.forward = forward
    return agent


def in_tool(agent_of: Any, inner: Any) -> Any:
    def research(question: str) -> str:
        """Find out."""
        return inner(question=question).answer

    return agent_of("question -> answer", tools=[research])


def in_thread_of_tool(agent_of: Any, inner: Any) -> Any:
    def research(question: str) -> str:
        """Find out."""
        example = dspy.Example(question=question).with_inputs("question")
        [found] = dspy.Parallel(num_threads=1, disable_progress_bar=True)([(inner, example)])
        return found.answer

    return agent_of("question -> answer", tools=[research])


@pytest.mark.parametrize("agent_of", AGENTS)
@pytest.mark.parametrize("place", [nested, in_tool, in_thread_of_tool, beside_loop])
def test_where_an_agent_runs(agent_of: Any, place: Any) -> None:
    """agent-runs: A nested agent is under both limits."""

    def script(request: Any) -> Answer:
        names = {tool["function"]["name"] for tool in request.body["tools"]}
        if request.body["messages"][-1]["role"] == "tool":
            return submits()
        return turn(Call("research", {"question": "INNER"}) if "research" in names else looks("Nowhere"))

    inner = agent_of("question -> answer", tools=Shop().tools)
    with serving(script), Run(Limits(failures=2)) as run:
        place(agent_of, inner)(question="OUTER")
    assert [event["question"] for event in run.history.messages if "question" in event] == ["OUTER"]


def test_an_agent_inside_of_a_tool_of_the_older_agent() -> None:
    """agent-runs: A nested agent is under both limits."""

    def script(request: Any) -> Answer:
        if request.body.get("tools"):
            is_answered = request.body["messages"][-1]["role"] == "tool"
            return submits() if is_answered else turn(looks())
        prompt = str(request.body["messages"])
        if "next_tool_name" not in prompt:
            return Answer(text="[[ ## reasoning ## ]]\nx\n\n[[ ## answer ## ]]\nHi.\n\n[[ ## completed ## ]]")
        name, args = ("finish", "{}") if "observation_0" in prompt else ("research", '{"question": "INNER"}')
        fields = {"next_thought": "x", "next_tool_name": name, "next_tool_args": args, "completed": ""}
        return Answer(text="\n\n".join(f"[[ ## {key} ## ]]\n{value}" for key, value in fields.items()))

    inner = sigadapt.ReAct("question -> answer", tools=Shop().tools)
    with serving(script), Run() as run:
        out = in_tool(dspy.ReAct, inner)(question="OUTER")
    assert (out.answer, run.usage.tool_calls, run.history.messages) == ("Hi.", 1, [])


@pytest.mark.parametrize("agent_of", AGENTS)
def test_failures_of_agents_side_by_side(agent_of: Any) -> None:
    """agent-runs: A limit holds for agents that run side by side."""

    def script(_: Any) -> Answer:
        return turn(looks("Nowhere"))

    agents = [agent_of("question -> answer", tools=Shop().tools) for _ in range(2)]
    example = dspy.Example(question="q").with_inputs("question")
    with serving(script) as net, Run(Limits(failures=3)):
        parallel = dspy.Parallel(num_threads=2, disable_progress_bar=True, provide_traceback=False)
        parallel([(agent, example) for agent in agents])
    assert len(net.received) == 6


@pytest.mark.parametrize("agent_of", AGENTS)
def test_a_refusal_is_of_its_turn(agent_of: Any) -> None:
    """agent-runs: A nested agent is under both limits."""

    def script(request: Any) -> Answer:
        names = {tool["function"]["name"] for tool in request.body["tools"]}
        if "research" in names:
            return turn(Call("research", {"question": "INNER"}), Call("submit", {"answer": "outer"}))
        return turn(*[looks()] * 5) if "INNER" in str(request.body) else submits("last")

    outer = nested(agent_of, agent_of("question -> answer", tools=Shop().tools))
    last = agent_of("question -> answer", tools=Shop().tools)
    with serving(script), Run(Limits(tool_calls=4)) as run:
        assert outer(question="OUTER").answer == "outer"
        assert last(question="LAST").answer == "last"
    assert run.usage.tool_calls == 1
