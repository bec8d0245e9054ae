"""Hooks around the calls of tools: what they may decide, what of it is shown, and how they fail."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

import asyncio
import logging
import pickle
import threading
from typing import Any

import pytest
from signatures.tool_functions.served_tools import (
    Call,
    Hook,
    agent_of,
    changing,
    one,
    serving,
    submits,
    turn,
    waiting,
)

import sigadapt
from sigadapt import Pending, ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls, ToolResult, Toolset
from sigadapt.errors import InvalidOption

ARGS: dict[str, Any] = {"to": "Ada", "eur": 500}
PAY = ToolCalls([{"id": "c1", "name": "pay", "args": ARGS}])
KINDS = pytest.mark.parametrize("kind", ["ReAct", "ReActV2"])
FEWER = changing(lambda args: {"eur": 100})


class Shop:
    """What was paid, and the tool that pays."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[tuple[str, int, list[str]]] = []

        def pay(to: str, eur: int, items: list[str] = []) -> str:  # noqa: B006  (as people write it)
            """Pay."""
            self.paid.append((to, eur, items))
            return f"Paid {eur} EUR to {to}."

        self.tools = ToolDecls([ToolDecl.of(pay, **options)])


def clamp(by: str) -> Any:
    """A hook that changes the arguments where they are, as those of other frameworks do."""

    def before_tool(call: ToolCall, context: ToolContext) -> None:
        args = context.call.args if by == "context" else call.args
        args["eur"] = min(args["eur"], 100)
        args.get("items", []).append("yacht")

    return Hook(before_tool=before_tool)


def test_the_first_answer_decides() -> None:
    """tool-context: The first hook that answers decides."""
    asked: list[str] = []

    def hook(name: str, value: Any) -> Any:
        def before_tool(call: ToolCall, context: ToolContext) -> Any:
            asked.append(name)
            return value

        return Hook(before_tool=before_tool)

    shop = Shop()
    [result] = PAY.run(shop.tools.with_hooks(hook("a", None), hook("b", 0)).with_hooks(hook("c", "C")))
    assert (result.value, asked, shop.paid) == (0, ["a", "b"], [])


def spoil(call: ToolCall, result: Any, context: ToolContext) -> None:
    call.args["to"] = "Eve"
    context.call.args["eur"] = 0


@KINDS
@pytest.mark.parametrize("by", ["call", "context"])
def test_arguments_that_a_hook_changes_in_place(kind: str, by: str) -> None:
    """tool-context: Arguments are changed in place."""
    shop = Shop()
    agent = agent_of(kind, shop.tools.with_hooks(clamp(by), Hook(after_tool=spoil)))
    with serving(turn(Call("pay", ARGS)), submits()):
        out = agent(question="Pay.")
    assert shop.paid == [("Ada", 100, [])]
    [paid, _] = sigadapt.rounds(out)
    assert (paid.calls[0].args, paid.results[0].value) == (ARGS, "Paid 100 EUR to Ada.")


@pytest.mark.parametrize("hook", [clamp("call"), FEWER], ids=["in place", "another call"])
def test_each_hook_sees_what_the_hook_before_it_changed(hook: Any) -> None:
    """tool-context: Later hooks get the call as it ran."""
    shop, seen = Shop(), list[Any]()

    def see(call: ToolCall, context: ToolContext) -> None:
        seen.append((call.args["eur"], context.call.args["eur"]))

    def again(call: ToolCall, result: Any, context: ToolContext) -> Any:
        seen.append(call.args["eur"])
        return call.execute(shop.tools)

    looks = Hook(before_tool=see)
    PAY.run(shop.tools.with_hooks(looks, hook, looks, Hook(after_tool=again)))
    assert seen == [(500, 500), (100, 100), 100]
    assert [eur for _, eur, _ in shop.paid] == [100, 100]
    assert PAY[0].args == ARGS


def in_place(**args: Any) -> Any:
    return Hook(before_tool=lambda call, context: call.args.update(args))


UNFIT = {
    "a type": changing(lambda _: {"eur": "much"}),
    "null": changing(lambda _: {"to": None}),
    "an unknown one": changing(lambda _: {"from": "Bob"}),
    "a type in place": in_place(eur="much"),
    "null in place": in_place(eur=None),
    "no JSON in place": in_place(eur={1}),
}


@pytest.mark.parametrize("case", UNFIT)
def test_changed_arguments_are_checked(case: str) -> None:
    """tool-context: Changed arguments are checked."""
    shop = Shop()
    [result] = PAY.run(shop.tools.with_hooks(UNFIT[case]))
    assert (result.is_error, shop.paid) == (True, [])
    assert "its before_tool hook changed the arguments" in result.value


def test_a_call_of_another_tool_is_refused() -> None:
    """tool-context: Changed arguments are checked."""
    shop = Shop()
    other = Hook(before_tool=lambda call, context: ToolCall(id="c1", name="fetch", args={}))
    [result] = PAY.run(shop.tools.with_hooks(other))
    assert (result.is_error, shop.paid) == (True, [])


@pytest.mark.parametrize("policy", [True, lambda args: args["eur"] > 50], ids=["always", "by a policy"])
@pytest.mark.parametrize("way", ["another call", "call", "context"])
def test_nothing_runs_that_nobody_was_shown(way: str, policy: Any) -> None:
    """tool-context: Nothing runs that nobody was shown."""
    shop = Shop(requires_confirmation=policy)
    tools = shop.tools.with_hooks(FEWER if way == "another call" else clamp(way))
    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {**ARGS, "items": ["tea"]}}])
    [request] = calls.awaiting_confirmation(tools)
    assert request.call.args["eur"] == 500
    error = waiting(lambda: calls.run(tools, {request.id: True}))
    items = ["tea"] if way == "another call" else ["tea", "yacht"]
    assert (one(error).call.args, shop.paid) == ({"to": "Ada", "eur": 100, "items": items}, [])
    error.results_of(tools, {one(error).id: True})
    assert shop.paid == [("Ada", 100, items)]


def test_arguments_that_now_need_a_yes() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    shop = Shop(requires_confirmation=lambda args: args["eur"] > 50)
    tools = shop.tools.with_hooks(FEWER)
    cheap = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 5}}])
    error = waiting(lambda: cheap.run(tools))
    assert (one(error).kind, one(error).call.args["eur"], shop.paid) == ("approval", 100, [])
    [result] = error.results_of(tools, {one(error).id: "Too much."})
    assert (result.value, result.is_error, shop.paid) == ("Too much.", True, [])
    error.results_of(tools, {one(error).id: True})
    assert shop.paid == [("Ada", 100, [])]


SECRET = "card 4000123"  # noqa: S105


@pytest.mark.parametrize("method", ["before_tool", "after_tool", "on_tool_error"])
def test_a_hook_that_raises_leaks_nothing(method: str, caplog: pytest.LogCaptureFixture) -> None:
    """tool-context: A hook that raises leaks nothing."""
    ran: list[str] = []

    def fetch(name: str) -> str:
        """Fetch."""
        ran.append(name)
        if method == "on_tool_error":
            raise LookupError("not there")
        return SECRET

    def broken(call: ToolCall, *_: Any) -> Any:
        if call.id == "c1":
            raise RuntimeError(SECRET)

    tools = ToolDecls([fetch]).with_hooks(Hook(**{method: broken}))
    calls = ToolCalls([{"id": f"c{n}", "name": "fetch", "args": {"name": str(n)}} for n in (1, 2)])
    for results in (list(calls.run(tools)), list(asyncio.run(calls.arun(tools)))):
        assert results[0].is_error
        assert SECRET not in str(results[0].value)
        assert results[1].is_error == (method == "on_tool_error")
    assert ("1" in ran) == (method != "before_tool")
    assert SECRET in caplog.text  # for who wrote the hook


def sanitise(call: ToolCall, error: Exception, context: ToolContext) -> None:
    raise RuntimeError("The card service is down.") from None


BROKEN = {"RuntimeError": sanitise, "IndexError": lambda call, error, context: error.args[1]}


@KINDS
@pytest.mark.parametrize("failure", BROKEN)
def test_a_broken_hook_hides_the_failure(kind: str, failure: str, caplog: pytest.LogCaptureFixture) -> None:
    """tool-context: A hook that raises leaks nothing."""

    def failing(name: str) -> str:
        """Look a card up."""
        raise ValueError(SECRET)

    recovers = Hook(on_tool_error=lambda call, error, context: f"recovered from {error}")
    agent = agent_of(kind, ToolDecls([failing]).with_hooks(Hook(on_tool_error=BROKEN[failure]), recovers))
    with serving(turn(Call("failing", {"name": "Ada"})), submits()) as net, caplog.at_level(logging.ERROR):
        agent(question="q")
    [row] = [row for row in net.received[-1].body["messages"] if row["role"] == "tool"]
    assert row["content"] == f"ERROR: HookError: its on_tool_error hook failed ({failure})"
    assert SECRET in caplog.text  # who reads the log needs both


@pytest.mark.parametrize("is_async", [False, True], ids=["a thread", "a task"])
def test_a_cancelled_run_keeps_no_unseen_result(is_async: bool) -> None:
    """tool-context: A hook that raises leaks nothing."""
    began, go_on = threading.Event(), threading.Event()

    def fetch() -> str:
        """Fetch."""
        began.set()
        go_on.wait(5)
        return SECRET

    async def fetch_later() -> str:
        """Fetch."""
        began.set()
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            return SECRET
        return ""

    function: Any = fetch_later if is_async else fetch
    tools = ToolDecls([ToolDecl.of(function, name="fetch")]).with_hooks(Redact())
    agent = sigadapt.ReAct("question -> answer", tools)

    async def cancel(run: sigadapt.Run) -> None:
        task = asyncio.create_task(agent.acall(question="q"))
        while not began.is_set():  # noqa: ASYNC110  (a thread sets it)
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.sleep(0.2)
        assert SECRET not in str(run.history.messages)

    with serving(turn(Call("fetch", {}))), sigadapt.Run() as run:
        asyncio.run(cancel(run))


class Redact:
    """A hook that can be pickled."""

    def after_tool(self, call: ToolCall, result: Any, context: ToolContext) -> Any:
        return "***"


def fetch() -> str:
    """Fetch."""
    return SECRET


def test_hooks_are_pickled_or_missed() -> None:
    """tool-context: Hooks are pickled or missed."""
    calls = ToolCalls([{"name": "fetch", "args": {}}])
    tools = ToolDecls([fetch])
    [result] = calls.run(pickle.loads(pickle.dumps(tools.with_hooks(Redact()))))  # noqa: S301
    assert result.value == "***"
    unpicklable = Hook(after_tool=Redact().after_tool, lock=threading.Lock())
    [result] = calls.run(pickle.loads(pickle.dumps(tools.with_hooks(unpicklable))))  # noqa: S301
    assert (result.is_error, SECRET in str(result.value)) == (True, False)


@pytest.mark.parametrize(
    "hook", [Redact, object(), 3, None], ids=["a class", "no method", "a number", "None"]
)
def test_what_is_no_hook_is_refused(hook: Any) -> None:
    for source in (Shop().tools, Toolset("shop", [*Shop().tools])):
        with pytest.raises(InvalidOption) as caught:
            source.with_hooks(hook)
        assert caught.value.field == "hooks"


def test_a_hook_cannot_ask_once_the_tool_has_run() -> None:
    shop = Shop()
    late = Hook(after_tool=lambda call, result, context: context.ask("Really?", bool))
    [result] = PAY.run(shop.tools.with_hooks(late))
    assert (result.is_error, len(shop.paid)) == (True, 1)
    assert "after_tool hook failed (InvalidToolDecl)" in result.value


@pytest.mark.parametrize("edit", [False, True], ids=["as it is", "edited"])
@pytest.mark.parametrize("asked", ["now", "later", "in run"])
def test_an_approved_call_is_run_again(asked: str, *, edit: bool) -> None:
    """tool-context: A hook runs an approved call again."""
    paid: list[int] = []
    failures = [ConnectionError("reset")]

    def pay(to: str, eur: int, note: str = "invoice") -> str:
        """Pay."""
        if failures:
            raise failures.pop()
        paid.append(eur)
        return f"Paid {eur} EUR for {note}."

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        if edit:
            args["eur"] = 5
        return True

    def decided(request: Any) -> dict[str, Any]:
        edited_call = request.call.model_copy(update={"args": {**request.call.args, "eur": 5}})
        return {request.id: edited_call if edit else True}

    own = [ToolDecl.of(pay, requires_confirmation=True)]
    retry = Hook(on_tool_error=lambda call, error, context: call.execute(own))
    tools = ToolDecls(own).with_hooks(retry)
    with serving(turn(Call("pay", ARGS)), submits()):
        if asked == "now":
            agent_of("ReAct", tools.confirmed_by(ask))(question="Pay.")
        elif asked == "later":
            error = waiting(lambda: agent_of("ReAct", tools)(question="Pay."))
            error.resume(tools, decided(one(error)))
        else:
            PAY.run(tools, decided(*PAY.awaiting_confirmation(tools)))
    assert paid == [5 if edit else 500]


def test_a_hook_repeats_what_a_person_agreed_to() -> None:
    """tool-context: Later hooks get the call as it ran."""
    shop = Shop(requires_confirmation=True)
    twice = Hook(after_tool=lambda call, result, context: call.execute(shop.tools))
    tools = shop.tools.with_hooks(FEWER, twice)
    [request] = PAY.awaiting_confirmation(tools)
    error = waiting(lambda: PAY.run(tools, {request.id: True}))
    error.results_of(tools, {one(error).id: True})
    assert [eur for _, eur, _ in shop.paid] == [100, 100]


def test_a_call_that_nobody_approved_is_not_run_again() -> None:
    """tool-context: A hook runs an approved call again."""
    shop = Shop(requires_confirmation=True)

    def fail(to: str, eur: int) -> str:
        """Pay."""
        raise ConnectionError("reset")

    retry = Hook(on_tool_error=lambda call, error, context: call.execute(shop.tools))
    tools = ToolDecls([ToolDecl.of(fail, name="pay")]).with_hooks(retry)
    [result] = PAY.run(tools)
    assert (result.is_error, shop.paid) == (True, [])


@pytest.mark.parametrize("form", ["value", "result"])
def test_a_result_from_elsewhere_passes_the_hooks(form: str) -> None:
    """tool-context: A result from elsewhere passes the hooks."""
    log: list[str] = []
    hook = Hook(
        before_tool=lambda call, context: log.append("before"),
        after_tool=lambda call, result, context: result.replace("Ada", "***"),
    )

    def train(model: str) -> Any:
        """Train."""
        log.append("train")
        return Pending(7)

    tools = ToolDecls([ToolDecl("ship", external=True), train]).with_hooks(hook)
    calls = ToolCalls([{"name": "ship", "args": {}}, {"name": "train", "args": {"model": "m"}}])
    error = waiting(lambda: calls.run(tools))
    decisions: dict[str, Any] = {}
    for request in error.requests:
        result = ToolResult(call_id=request.call.id, name=request.call.name, value="for Ada")
        decisions[request.id] = result if form == "result" else "for Ada"
    results = error.results_of(tools, decisions)
    assert [result.value for result in results] == ["for ***", "for ***"]
    assert sorted(log) == ["before", "before", "train"]
