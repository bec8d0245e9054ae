"""Turns that wait more than once, or for something else than before: what holds from stop to stop."""

import asyncio
from typing import Any

import dspy
import pytest
from signatures.tool_functions.served_tools import (
    Call,
    agent_of,
    changing,
    one,
    saved,
    serving,
    submits,
    turn,
    waiting,
)
from support import REACT_V2

import sigadapt
from sigadapt import (
    InputNeeded,
    Limits,
    Pending,
    Run,
    ToolCall,
    ToolCalls,
    ToolContext,
    ToolDecl,
    ToolDecls,
    run_of,
)
from sigadapt.errors import InvalidHistory, InvalidToolDecl

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}


def ask_name(context: ToolContext) -> str:
    """Ask for a name."""
    return context.ask("Which name?")


def ask_in_steps(context: ToolContext) -> str:
    """Ask twice, and keep how often it began."""
    first = context.ask("First?")
    context.state["first"] = first
    return first + context.ask("Second?")


def values_of(results: Any) -> list[Any]:
    return [result.value for result in results]


def test_a_tool_changed_after_its_approval() -> None:
    """tool-context: A yes is for the tool that was shown."""
    ran: list[Any] = []

    def pay(eur: int) -> str:
        """Pay."""
        ran.append(eur)
        return "paid"

    approved_pay = ToolDecl.of(pay, requires_confirmation=True)
    tools = [ToolDecl.of(ask_name, sequential=True), approved_pay]
    calls = ToolCalls([{"name": "ask_name", "args": {}}, {"name": "pay", "args": {"eur": 5}}])
    [request] = calls.awaiting_confirmation(tools)
    error = waiting(lambda: calls.run(tools, {request.id: True}))
    assert one(error).kind == "answer"
    dearer = ToolDecl.of(approved_pay, description="Pay in thousands.")
    for changed in ([tools[0], dearer], [tools[0]]):
        with pytest.raises(InvalidHistory) as caught:
            error.results_of(changed, {one(error).id: "Ada"})
        assert caught.value.code == "changed_tool"
    assert ran == []
    assert values_of(error.results_of(tools, {one(error).id: "Ada"})) == ["Ada", "paid"]


def test_an_open_approval_keeps_its_tool() -> None:
    """tool-context: A yes is for the tool that was shown."""

    def pay(eur: int) -> str:
        """Pay."""
        return "paid"

    def tools_of(description: str) -> list[Any]:
        pay_decl = ToolDecl.of(pay, description=description, requires_confirmation=True)
        return [pay_decl, ToolDecl.of(ask_name)]

    with serving(turn(Call("pay", {"eur": 5}), Call("ask_name", {}))):
        agent = agent_of("ReAct", tools_of("Pay."))
        error = waiting(lambda: agent(question="q"))
    [approval] = error.requests
    changed = tools_of("Pay in thousands.")
    error = waiting(lambda: error.resume(changed, {}, partial=True))
    assert [request.kind for request in error.requests] == ["approval", "answer"]
    with pytest.raises(InvalidHistory) as caught:
        error.resume(changed, {approval.id: True}, partial=True)
    assert caught.value.code == "changed_tool"


def test_a_call_that_has_begun_is_decided_about_no_more() -> None:
    """tool-context: An answer is checked before anything runs."""
    ran: list[int] = []

    def pay(eur: int, context: ToolContext) -> str:
        """Pay."""
        context.ask("Sure?", bool)
        ran.append(eur)
        return "paid"

    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {"eur": 5}}])
    approved_pay = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
    [approval] = calls.awaiting_confirmation(approved_pay)
    dearer = ToolCall(id="c1", name="pay", args={"eur": 500})
    asked_once = waiting(lambda: calls.run(approved_pay, {approval.id: True}))
    never_asked = waiting(lambda: calls.run([pay]))
    for error, tools in ((asked_once, approved_pay), (never_asked, [pay])):
        for decision in (dearer, True, False, "no"):
            with pytest.raises(InvalidHistory, match=one(error).id) as caught:
                error.results_of(tools, {one(error).id: True, approval.id: decision})
            assert caught.value.code == "unknown_decision"
    assert ran == []


def test_usage_and_state_are_carried_once() -> None:
    """tool-context: A turn that waits keeps the state of its run."""
    with serving(turn(Call("ask_in_steps", {})), submits()):
        agent = agent_of("ReAct", [ask_in_steps])
        error = waiting(lambda: agent(question="q"))
        with Run(Limits(requests=2)) as run:
            for _ in range(3):
                with pytest.raises(InvalidHistory):
                    error.resume([ask_in_steps], {})
            with pytest.raises(InputNeeded) as caught:
                error.resume([ask_in_steps], {one(error).id: "a"})
            assert run_of(caught.value).history == run_of(error).history
            again = saved(caught.value)
            assert (again.state, run_of(again).usage.requests) == ({"first": "a"}, 1)
            agent(history=again.resume([ask_in_steps], {one(again).id: "b"}))
        assert (run.usage.requests, run.usage.tool_calls, run.state) == (2, 1, {"first": "a"})


def test_answers_to_questions_asked_at_once_in_any_order() -> None:
    """tool-context: Some decisions may come later."""
    anyio = pytest.importorskip("anyio")

    async def ask_both(context: ToolContext) -> str:
        """Ask two things at once."""
        answers: dict[int, str] = {}

        async def ask(number: int) -> None:
            answers[number] = context.ask(f"Number {number}?")

        async with anyio.create_task_group() as group:
            group.start_soon(ask, 1)
            group.start_soon(ask, 2)
        return f"{answers[1]}, {answers[2]}"

    for kind in ("ReAct", "ReActV2"):
        with serving(turn(Call("ask_both", {})), submits()):
            agent = agent_of(kind, [ask_both])
            error = waiting(lambda agent=agent: asyncio.run(agent.acall(question="q")))
        assert "Number 1?" in [request.hint for request in error.requests]
    calls = ToolCalls([{"name": "ask_both", "args": {}}])
    error = waiting(lambda: asyncio.run(calls.arun([ask_both])))
    by_hint = {request.hint: request.id for request in error.requests}
    if len(by_hint) < 2:
        pytest.skip("this event loop cancels the second question first")
    second = {by_hint["Number 2?"]: "two"}
    error = waiting(lambda: asyncio.run(error.aresults_of([ask_both], second, partial=True)))
    assert one(error).id == by_hint["Number 1?"]
    results = asyncio.run(error.aresults_of([ask_both], {one(error).id: "one"}))
    assert values_of(results) == ["one, two"]


def test_a_result_from_elsewhere_counts_once() -> None:
    """tool-context: A result from elsewhere counts once."""

    def train(model: str) -> str:
        """Train."""
        return Pending({"job": 1})  # pyright: ignore[reportReturnType]

    calls = ToolCalls([{"name": "train", "args": {"model": "m"}}])
    with Run(Limits(tool_calls=1)) as run:
        with pytest.raises(InputNeeded) as caught:
            calls.run([train])
        assert run.usage.tool_calls == 0
        error = saved(caught.value)
        assert values_of(error.results_of([train], {one(error).id: 0.2})) == [0.2]
        assert run.usage.tool_calls == 1


@pytest.mark.parametrize("ends", ["external", "pending"])
def test_an_edit_is_told_where_the_result_comes_later(ends: str) -> None:
    """tool-context: A yes lasts until its call has ended."""
    seen: list[Any] = []

    class Sees:
        def after_tool(self, call: ToolCall, result: Any, context: ToolContext) -> None:
            seen.append((call.args, context.decision))

    def job(n: int) -> str:
        """Work."""
        return Pending(n)  # pyright: ignore[reportReturnType]

    decl = ToolDecl.of(job, requires_confirmation=True)
    if ends == "external":
        decl = ToolDecl("job", "Work.", NUMBER, external=True, requires_confirmation=True)
    tools = ToolDecls([decl]).with_hooks(Sees())
    calls = ToolCalls([{"id": "c1", "name": "job", "args": {"n": 1}}])
    [approval] = calls.awaiting_confirmation(tools)
    edited = ToolCall(id="c1", name="job", args={"n": 2})
    error = waiting(lambda: calls.run(tools, {approval.id: edited}))
    assert one(error).call.args == {"n": 2}
    for _ in range(2):  # no result yet
        error = waiting(lambda error=error: error.results_of(tools, {one(error).id: Pending(3)}))
        assert one(error).call.args == {"n": 2}
    for decision in ("done", sigadapt.Declined("It broke.")):
        [result] = error.results_of(tools, {one(error).id: decision})
        assert '{"n":2}' in (result.note or "")
    assert seen == [({"n": 2}, edited)]


def test_an_external_call_is_shown_as_a_hook_changed_it() -> None:
    """tool-context: An external tool waits for its result."""

    doubles = changing(lambda args: {"n": args["n"] * 2})
    tools = ToolDecls([ToolDecl("job", "Work.", NUMBER, external=True)]).with_hooks(doubles)
    error = waiting(lambda: ToolCalls([{"name": "job", "args": {"n": 4}}]).run(tools))
    assert str(one(error).call) == "job(n=8)"
    assert one(error).call.arguments == '{"n":8}'
    assert values_of(error.results_of(tools, {one(error).id: "done"})) == ["done"]


@pytest.mark.parametrize("how", ["run", "arun"])
def test_arguments_of_any_name_reach_a_tool_with_a_context(how: str) -> None:
    """tool-context: A context is no part of the schema."""

    async def keep(*, context: ToolContext | None = None, **arguments: Any) -> dict[str, Any]:
        """Keep."""
        return arguments

    names = ("self", "call", "function", "error", "decl")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    decl = ToolDecl.of(keep, parameters=schema)
    args = dict.fromkeys(names, "x")
    calls = ToolCalls([{"name": "keep", "args": args}])
    results = calls.run([decl]) if how == "run" else asyncio.run(calls.arun([decl]))
    assert values_of(results) == [args]


@pytest.mark.parametrize("parallel", [True, False])
def test_a_handle_that_is_no_json_value_fails_its_call_alone(parallel: bool) -> None:
    """tool-context: A pending result keeps its handle."""

    def train() -> str:
        """Train."""
        return Pending(object())  # pyright: ignore[reportReturnType]

    def look() -> str:
        """Look."""
        return "seen"

    calls = ToolCalls([{"name": name, "args": {}} for name in ("look", "train", "look")])
    results = calls.run([train, look], parallel=parallel)
    assert [result.is_error for result in results] == [False, True, False]


def pay_and_ask(eur: int, context: ToolContext) -> str:
    """Pay, and ask first."""
    reason = context.ask("What for?")
    return f"{eur} for {reason}"


def test_an_approved_call_that_is_run_alone_and_asks() -> None:
    """tool-context: A yes lasts until its call has ended."""
    tools = ToolDecls([ToolDecl.of(pay_and_ask, requires_confirmation=True)])
    calls = ToolCalls([{"name": "pay_and_ask", "args": {"eur": 5}}])
    [approval] = calls.awaiting_confirmation(tools)
    error = waiting(lambda: approval.approved().execute(tools))
    assert values_of(error.results_of(tools, {one(error).id: "tea"})) == ["5 for tea"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("kind", ["run", "ReAct", "ReActV2"])
def test_who_agreed_at_once_is_not_asked_again(kind: str, is_async: bool) -> None:
    """tool-context: A yes lasts until its call has ended."""
    shown: list[int] = []

    def agree(name: str, args: dict[str, Any], hint: str) -> bool:
        shown.append(args["eur"])
        args["eur"] += 1
        return True

    async def agree_later(name: str, args: dict[str, Any], hint: str) -> bool:
        return agree(name, args, hint)

    decl = ToolDecl.of(pay_and_ask, requires_confirmation=True)
    tools = ToolDecls([decl]).confirmed_by(agree_later if is_async else agree)
    if kind == "run":
        calls = ToolCalls([{"name": "pay_and_ask", "args": {"eur": 5}}])
        error = waiting(lambda: asyncio.run(calls.arun(tools)))
    else:
        with serving(turn(Call("pay_and_ask", {"eur": 5}))):
            agent = agent_of(kind, tools)
            error = waiting(lambda: asyncio.run(agent.acall(question="q")))
    assert str(one(error).call) == "pay_and_ask(eur=6)"
    [result] = asyncio.run(error.aresults_of(tools, {one(error).id: "tea"}))
    assert (result.value, shown) == ("6 for tea", [5])
    assert '{"eur":6}' in (result.note or "")


def test_who_agreed_to_a_hooks_change_is_not_asked_again() -> None:
    """tool-context: A yes lasts until its call has ended."""
    shown: list[int] = []

    def agree(name: str, args: dict[str, Any], hint: str) -> bool:
        shown.append(args["eur"])
        return True

    decls = ToolDecls([ToolDecl.of(pay_and_ask, requires_confirmation=True)])
    tools = decls.with_hooks(changing(lambda args: {"eur": 50})).confirmed_by(agree)
    error = waiting(lambda: ToolCalls([{"name": "pay_and_ask", "args": {"eur": 5}}]).run(tools))
    assert values_of(error.results_of(tools, {one(error).id: "tea"})) == ["50 for tea"]
    assert shown == [5, 50]


@pytest.mark.parametrize("form", ["function", "dspy.Tool"])
def test_a_pending_result_of_a_tool_of_dspys(form: str) -> None:
    """tool-context: A pending result keeps its handle."""

    def train(model: str = "m") -> str:
        """Train."""
        return Pending({"job": 1})  # pyright: ignore[reportReturnType]

    react: Any = REACT_V2
    agent = react("question -> answer", tools=[train if form == "function" else dspy.Tool(train)])
    with serving(turn(Call("train", {})), submits("trained")):
        error = waiting(lambda: agent(question="q"))
        assert one(error).pending == {"job": 1}
        assert agent(history=error.resume([train], {one(error).id: 0.2})).answer == "trained"


def test_a_context_in_a_tool_of_dspys_is_told() -> None:
    """tool-context: A context is no part of the schema."""
    react: Any = REACT_V2
    with pytest.raises(InvalidToolDecl, match=r"ToolDecls\(\[function\]\)"):
        dspy.Tool(ask_name)
    with pytest.raises(InvalidToolDecl, match=r"ToolDecls\(\[function\]\)"):
        react("question -> answer", tools=[ask_name])
