"""Hooks around the calls of tools: what they may decide, and how they fail."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

import asyncio
import pickle
import threading
from typing import Any

import pytest
from asking import Call, serving, turn

import sigadapt
from sigadapt import InputNeeded, ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidOption

PAY = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 500}}])


class _Methods:
    """A hook of the functions that it is given."""

    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


Hook: Any = _Methods  # whatever methods it is given


class Shop:
    """What was paid, and the tool that pays."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[tuple[str, int, str]] = []

        def pay(to: str, eur: int, note: str = "invoice") -> str:
            """Pay."""
            self.paid.append((to, eur, note))
            if to == "nobody":
                raise ValueError("no such person")
            return f"Paid {eur} EUR to {to}."

        self.tools = ToolDecls([ToolDecl.of(pay, **options)])


def changing(**args: Any) -> Any:
    return Hook(before_tool=lambda call, context: call.model_copy(update={"args": {**call.args, **args}}))


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


def test_a_call_of_another_tool_is_refused() -> None:
    """tool-context: Changed arguments are checked."""
    shop = Shop()
    other = Hook(before_tool=lambda call, context: ToolCall(id="c1", name="fetch", args={}))
    [result] = PAY.run(shop.tools.with_hooks(other))
    assert (result.is_error, shop.paid) == (True, [])


def approve_all(error: InputNeeded, tools: ToolDecls) -> list[dict[str, Any]]:
    """Say yes to whatever is asked, and return the arguments that were shown."""
    shown: list[dict[str, Any]] = []
    for _ in range(4):
        loaded = InputNeeded.model_validate_json(error.model_dump_json())
        shown += [dict(request.call.args) for request in loaded.requests]
        try:
            loaded.resume(tools, {request.id: True for request in loaded.requests})
        except InputNeeded as again:
            error = again
        else:
            return shown
    raise AssertionError("it never ends")


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (True, [{"to": "Ada", "eur": 100, "note": "invoice"}]),
        (lambda args: args["eur"] > 50, [{"to": "Ada", "eur": 100, "note": "invoice"}]),
    ],
    ids=["always", "by a policy"],
)
def test_nothing_runs_that_nobody_was_shown(policy: Any, shown: list[Any]) -> None:
    """tool-context: Nothing runs that nobody was shown."""
    shop = Shop(requires_confirmation=policy)
    tools = shop.tools.with_hooks(changing(eur=100))
    [request] = PAY.awaiting_confirmation(tools)
    assert request.call.args["eur"] == 500
    with pytest.raises(InputNeeded) as waiting:
        PAY.run(tools, {request.id: True})
    assert shop.paid == []
    assert approve_all(waiting.value, tools) == shown
    assert shop.paid == [("Ada", 100, "invoice")]


def test_arguments_that_now_need_a_yes() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    shop = Shop(requires_confirmation=lambda args: args["eur"] > 50)
    tools = shop.tools.with_hooks(changing(eur=100))
    cheap = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 5}}])
    with pytest.raises(InputNeeded) as waiting:
        cheap.run(tools)
    [request] = waiting.value.requests
    assert (request.kind, request.call.args["eur"], shop.paid) == ("approval", 100, [])
    [result] = waiting.value.results_of(tools, {request.id: "Too much."})
    assert (result.value, result.is_error, shop.paid) == ("Too much.", True, [])
    [result] = waiting.value.results_of(tools, {request.id: True})
    assert shop.paid == [("Ada", 100, "invoice")]


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
    redact = Hook(after_tool=lambda call, result, context: "***")
    tools = ToolDecls([ToolDecl.of(function, name="fetch")]).with_hooks(redact)
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


def test_a_hook_repeats_what_a_person_agreed_to() -> None:
    """tool-context: Later hooks get the call as it ran."""
    failures = iter([ValueError("busy")])
    paid: list[int] = []

    def pay(to: str, eur: int) -> str:
        """Pay."""
        paid.append(eur)
        for failure in failures:
            raise failure
        return f"Paid {eur}."

    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
    retry = Hook(on_tool_error=lambda call, error, context: call.execute(tools))
    hooked = tools.with_hooks(changing(eur=100), retry)
    [request] = PAY.awaiting_confirmation(hooked)
    with pytest.raises(InputNeeded) as caught:
        PAY.run(hooked, {request.id: True})
    [change] = caught.value.requests
    [result] = caught.value.results_of(hooked, {change.id: True})
    assert (result.value, paid) == ("Paid 100.", [100, 100])


@pytest.mark.parametrize(
    "args", [{"eur": "much"}, {"to": None}, {"from": "Bob"}], ids=["a type", "null", "an unknown one"]
)
def test_changed_arguments_are_checked(args: dict[str, Any]) -> None:
    """tool-context: Changed arguments are checked."""
    shop = Shop()
    [result] = PAY.run(shop.tools.with_hooks(changing(**args)))
    assert result.is_error
    assert "its before_tool hook changed the arguments" in result.value
    assert shop.paid == []


def test_later_hooks_get_the_changed_call() -> None:
    """tool-context: Later hooks get the call as it ran."""
    shop = Shop()
    seen: list[Any] = []

    def after_tool(call: ToolCall, result: Any, context: ToolContext) -> Any:
        seen.append(call.args)
        return call.execute(shop.tools)  # once more

    hooks = [changing(eur=100), Hook(after_tool=after_tool)]
    PAY.run(shop.tools.with_hooks(*hooks))
    assert [eur for _, eur, _ in shop.paid] == [100, 100]
    assert [args["eur"] for args in seen] == [100]
    assert [call.args["eur"] for call in PAY] == [500]


def test_a_changed_call_is_edited() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    shop = Shop(requires_confirmation=True)
    capped = Hook(
        before_tool=lambda call, context: call.model_copy(
            update={"args": {**call.args, "eur": min(call.args["eur"], 100)}}
        )
    )
    tools = shop.tools.with_hooks(capped)
    [request] = PAY.awaiting_confirmation(tools)
    with pytest.raises(InputNeeded) as waiting:
        PAY.run(tools, {request.id: True})
    [changed] = waiting.value.requests
    edit = ToolCall(id="c1", name="pay", args={"to": "Ada", "eur": 20, "note": "less"})
    with pytest.raises(InvalidOption):
        waiting.value.results_of(tools, {changed.id: ToolCall(id="c1", name="pay", args={"to": "Ada"})})
    [result] = waiting.value.results_of(tools, {changed.id: edit})
    assert (shop.paid, "edited this call" in (result.note or "")) == ([("Ada", 20, "less")], True)


def test_a_result_from_elsewhere_passes_the_hooks() -> None:
    """tool-context: A result from elsewhere passes the hooks."""
    log: list[str] = []
    hook = Hook(
        before_tool=lambda call, context: log.append("before"),
        after_tool=lambda call, result, context: result.replace("Ada", "***"),
    )

    def train(model: str) -> Any:
        """Train."""
        log.append("train")
        return sigadapt.Pending(7)

    tools = ToolDecls([ToolDecl("ship", external=True), train]).with_hooks(hook)
    calls = ToolCalls([{"name": "ship", "args": {}}, {"name": "train", "args": {"model": "m"}}])
    with pytest.raises(InputNeeded) as waiting:
        calls.run(tools)
    decisions = {request.id: "for Ada" for request in waiting.value.requests}
    results = waiting.value.results_of(tools, decisions)
    assert [result.value for result in results] == ["for ***", "for ***"]
    assert sorted(log) == ["before", "before", "train"]
