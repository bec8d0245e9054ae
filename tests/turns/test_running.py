"""The calls of a turn, run with the decisions of a person: in order, side by side, in time, or not at all."""

import asyncio
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy
import pydantic
import pytest
from combinations import Ran, server, session_of
from internals import function_calls

from sigadapt import (
    InvalidToolCall,
    ToolCall,
    ToolCalls,
    ToolDecl,
    ToolDecls,
    ToolResult,
    ToolResults,
    Toolset,
)
from sigadapt.errors import InvalidHistory, InvalidOption, InvalidToolDecl, SigadaptError

RAN: list[Any] = []


def pay(to: str, eur: int = 10) -> str:
    RAN.append((to, eur))
    return f"Paid {eur} EUR to {to}"


def look(city: str) -> str:
    RAN.append(city)
    if city == "Atlantis":
        raise LookupError("There is no such city.") from ValueError("password=not-a-real-one")
    return f"Sunny in {city}"


def tools_of(requires: bool | Callable[[Any], bool] = True) -> ToolDecls:
    return ToolDecls([ToolDecl.of(pay, requires_confirmation=requires), look])


def turn(*calls: tuple[str, dict[str, Any]]) -> ToolCalls:
    RAN.clear()
    return ToolCalls([{"id": f"c{n}", "name": name, "args": args} for n, (name, args) in enumerate(calls)])


PAYS = ("pay", {"to": "Ada"})
HOW = pytest.mark.parametrize("how", ["run", "arun"])


def run(how: str, calls: ToolCalls, *given: Any, **options: Any) -> list[ToolResult]:
    results = calls.run(*given, **options) if how == "run" else asyncio.run(calls.arun(*given, **options))
    assert isinstance(results, ToolResults)
    assert [result.call_id for result in results] == [call.id for call in calls.in_order()]
    return list(results)


def told(results: list[ToolResult]) -> list[tuple[Any, bool]]:
    return [(result.value, result.is_error) for result in results]


@HOW
def test_each_call_runs_once_and_in_order(how: str):
    """tool-call-outputs: The calls of a turn run in order."""
    got = run(how, turn(("look", {"city": "Rome"}), PAYS, ("look", {"city": "Oslo"})), tools_of(False))
    assert told(got) == [("Sunny in Rome", False), ("Paid 10 EUR to Ada", False), ("Sunny in Oslo", False)]
    assert RAN == ["Rome", ("Ada", 10), "Oslo"]


DECIDED: list[tuple[Callable[[ToolCall], Any], tuple[str, bool], list[Any]]] = [
    (lambda _: True, ("Paid 10 EUR to Ada", False), [("Ada", 10)]),
    (lambda _: False, ("The user rejected this call. It was not run.", True), []),
    (lambda _: "", ("The user rejected this call. It was not run.", True), []),
    (lambda _: "Not before Monday.", ("Not before Monday.", True), []),
    (lambda request: request.approved(), ("Paid 10 EUR to Ada", False), [("Ada", 10)]),
    (
        lambda _: ToolCall(id="c0", name="pay", args={"to": "Bob", "eur": 5}),
        ("Paid 5 EUR to Bob", False),
        [("Bob", 5)],
    ),
]


@HOW
@pytest.mark.parametrize(("decide", "value", "ran"), DECIDED)
def test_what_was_decided_is_done(how: str, decide: Any, value: Any, ran: Any):
    """tool-call-outputs: What was decided is done."""
    calls = turn(PAYS)
    [request] = calls.awaiting_confirmation(tools_of())
    assert told(run(how, calls, tools_of(), {request.id: decide(request)})) == [value]
    assert ran == RAN


UNDECIDED: list[tuple[Callable[[ToolCall], Any], type[SigadaptError], str]] = [
    (lambda _: None, InvalidHistory, "undecided"),
    (lambda _: {}, InvalidHistory, "undecided"),
    (lambda r: {r.id: True, "confirm_other": True}, InvalidHistory, "unknown_decision"),
    (lambda r: {r.call.id: True}, InvalidHistory, "unknown_decision"),
    (lambda r: {r.id: 1}, InvalidOption, "invalid_decision"),
    (lambda r: {r.id: None}, InvalidOption, "invalid_decision"),
    (lambda r: {r.id: {"approved": True}}, InvalidOption, "invalid_decision"),
    (lambda r: [r.id], InvalidOption, "invalid_decision"),
    (lambda r: {r.id: r}, InvalidOption, "invalid_decision"),
    (
        lambda r: {r.id: ToolCall(id="c0", name="pay", args={"to": "Ada"})},
        InvalidOption,
        "invalid_decision",
    ),
    (
        lambda r: {r.id: ToolCall(id="c1", name="look", args={"city": "Rome"})},
        InvalidOption,
        "invalid_decision",
    ),
    (lambda r: {r.id: ToolCall(id="c1", name="pay", args={"to": 3})}, InvalidOption, "invalid_decision"),
]


@HOW
@pytest.mark.parametrize(("decide", "kind", "code"), UNDECIDED)
def test_nothing_runs_before_everything_is_decided(how: str, decide: Any, kind: Any, code: str):
    """tool-call-outputs: Nothing runs before everything is decided."""
    calls = turn(("look", {"city": "Rome"}), PAYS)
    [request] = calls.awaiting_confirmation(tools_of())
    with pytest.raises(kind) as caught:
        run(how, calls, tools_of(), decide(request))
    assert caught.value.code == code
    assert not RAN


def test_a_decision_that_is_needed_no_more_is_still_known():
    """tool-call-outputs: What was decided is done."""
    calls = turn(PAYS)
    [request] = calls.awaiting_confirmation(tools_of())
    assert told(run("run", calls, tools_of(False), {request.id: False}))[0][1]
    assert told(run("run", calls, tools_of(lambda args: args["eur"] > 10))) == [("Paid 10 EUR to Ada", False)]


def test_a_default_that_is_another_one_each_time_is_decided_by_the_call_that_was_shown():
    """tool-call-outputs: What was decided is done."""
    numbers = iter(range(100))

    def order(to: list[str], number: int = pydantic.Field(default_factory=lambda: next(numbers))) -> str:
        return f"{number} for {', '.join(to)}"

    decls = ToolDecls([ToolDecl.of(order, requires_confirmation=True)])
    calls = turn(("order", {"to": ["Ada", "Bo"]}))
    [request] = ToolCalls.model_validate_json(calls.awaiting_confirmation(decls).model_dump_json())
    shown = f"{request.call.args['number']} for Ada, Bo"
    assert told(run("run", calls, decls, {request.id: request.call})) == [(shown, False)]
    with pytest.raises(InvalidHistory):
        run("run", calls, decls, {request.id: True})
    for others in (["Ada"], ["Ada", "Bo", "Eve"], ["Ada", "Eve"]):
        with pytest.raises(InvalidHistory):
            run("run", turn(("order", {"to": others})), decls, {request.id: request.call})


def test_a_function_that_asks_first_asks_unless_somebody_decided():
    """tool-call-outputs: What was decided is done."""
    asked: list[Any] = []

    def ask(name: str, args: Any, hint: str) -> bool:
        asked.append(args)
        return False

    calls, decls = turn(PAYS), tools_of().confirmed_by(ask)
    [request] = calls.awaiting_confirmation(decls)
    assert told(run("run", calls, decls))[0][1]
    assert told(run("run", calls, decls, {request.id: True})) == [("Paid 10 EUR to Ada", False)]
    assert request.approved().execute(decls) == "Paid 10 EUR to Ada"
    assert len(asked) == 1


def test_a_tool_that_the_program_runs_itself_stops_the_turn():
    """tool-call-outputs: Nothing runs before everything is decided."""
    for tools in ([look, {"name": "pay"}], [look, {"type": "bash_20250124", "name": "pay"}]):
        with pytest.raises(InvalidToolDecl) as caught:
            turn(("look", {"city": "Rome"}), PAYS).run(tools)
        assert (caught.value.code, RAN) == ("no_function", [])


async def test_run_waits_for_async_functions_inside_of_a_loop():
    """tool-call-outputs: Async functions run from sync code."""

    async def fetch() -> str:
        return "page"

    def lazy() -> Any:
        return fetch()

    partial: Any = functools.partial(fetch)
    for tool in (fetch, partial, lazy):
        calls = turn(("look", {"city": "Rome"}), ("fetch", {}))
        results = list(calls.run([look, ToolDecl.of(tool, name="fetch")]))
        assert [result.value for result in results] == ["Sunny in Rome", "page"]
        in_thread = await asyncio.to_thread(calls.run, [look, ToolDecl.of(tool, name="fetch")])
        assert [result.value for result in in_thread] == ["Sunny in Rome", "page"]


@pytest.mark.parametrize("timeout", [0, -1, True, "1", float("nan"), float("inf")])
def test_a_time_limit_is_a_number_of_seconds(timeout: Any):
    """tool-call-outputs: A time limit is that of each call."""
    with pytest.raises(InvalidOption):
        turn(PAYS).run(tools_of(False), timeout=timeout)
    assert not RAN


async def test_what_is_cancelled_ends_its_tools():
    """tool-call-outputs: The calls of a turn run side by side."""
    begun, ended = asyncio.Event(), list[int]()

    async def fetch(n: int) -> str:
        begun.set()
        try:
            await asyncio.sleep(20)
        finally:
            ended.append(n)
        return "page"

    task = asyncio.ensure_future(turn(("fetch", {"n": 1}), ("fetch", {"n": 2})).arun([fetch]))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [1, 2]


@HOW
@pytest.mark.parametrize("timeout", [None, 20])
def test_a_tool_sees_the_callers_settings(how: str, timeout: Any):
    """tool-call-outputs: A tool sees the settings of its caller."""

    def who() -> str:
        settings: Any = dspy.settings
        return settings.lm.model

    with dspy.context(lm=dspy.LM("openai/of-the-caller", api_key="none")):
        assert told(run(how, turn(("who", {})), [who], timeout=timeout)) == [("openai/of-the-caller", False)]


def test_a_bad_call_of_an_agents_loop_is_one_here_too():
    """tool-call-outputs: A call that fails is a failed result."""
    bad = InvalidToolCall(
        id="b", name="look", arguments="{", index=9, code="invalid_json", message="not JSON"
    )
    made = turn(("look", {"city": "Rome"})).model_copy(update={"invalid": (bad,)}).handed_on()
    assert [result.is_error for result in run("run", made, tools_of())] == [False, True]


def test_a_keyboard_interrupt_ends_the_turn():
    def stop() -> str:
        raise KeyboardInterrupt

    for timeout in (None, 20):
        with pytest.raises(KeyboardInterrupt):
            turn(("stop", {})).run([stop], timeout=timeout)


@pytest.mark.parametrize("how", ["run", "arun", "tool", "atool"])
async def test_the_time_in_which_a_person_decides_is_not_the_tools(how: str):
    """tool-call-outputs: A time limit is that of each call."""

    def pay(to: str) -> str:
        return f"Paid {to}."

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        time.sleep(0.3)
        return True

    decl = ToolDecl.of(pay, requires_confirmation=True, timeout=0.15)
    decls = ToolDecls([decl]).confirmed_by(ask)
    calls = turn(("pay", {"to": "Ada"}))
    tool: Any = decls["pay"].to_dspy()
    if how == "run":
        [result] = calls.run(decls)
    elif how == "arun":
        [result] = await calls.arun(decls)
    else:
        assert (tool(to="Ada") if how == "tool" else await tool.acall(to="Ada")) == "Paid Ada."
        return
    assert result.value == "Paid Ada."


async def test_arun_awaits_a_toolset() -> None:
    """tool-call-outputs: A toolset is awaited."""
    booked = Ran()
    calls = ToolCalls([{"name": "book", "args": {"city": "Rome", "nights": 2}}])
    toolset: Any = Toolset("hotel", server(booked))
    for tools in (toolset, [toolset], [toolset.named("book")]):
        assert not next(iter(await calls.arun(tools))).is_error
    assert len(booked) == 3


def test_a_tool_that_cancels_itself_fails() -> None:
    """tool-call-outputs: Any exception of a tool is a failed result."""

    async def fail() -> str:
        raise asyncio.CancelledError

    for how in ("run", "arun"):
        assert told(run(how, turn(("fail", {})), [fail])) == [("CancelledError: it cancelled itself", True)]


async def test_a_loop_that_waits_for_threads_of_others_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """tool-call-outputs: A session's tools run on the session's loop."""
    monkeypatch.setattr(function_calls, "_PATIENCE", 0.2)
    booked = Ran()
    async with session_of(booked) as session:
        decls = await Toolset("hotel", session).aresolve()
        tool: Any = decls.to_dspy()[0]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tool, city="Rome", nights=2)
            with pytest.raises(InvalidOption, match="await"):
                waiting.result()  # which blocks this loop
        await asyncio.sleep(0.1)
    assert booked == []
