"""What a hook does to a call and to its failure, in an agent and in `run`: nothing leaks."""

import logging
from typing import Any

import pytest
from asking import Call, agent_of, one, serving, submits, turn, waiting

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls

PAY = Call("pay", {"to": "Ada", "eur": 500})
KINDS = pytest.mark.parametrize("kind", ["ReAct", "ReActV2"])


class Shop:
    """What was paid, and what the hooks saw."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[int] = []
        self.seen: list[Any] = []

        def pay(to: str, eur: int) -> str:
            """Pay."""
            self.paid.append(eur)
            return f"Paid {eur} EUR to {to}."

        self.tools = ToolDecls([ToolDecl.of(pay, **options)])


class Clamp:
    """A hook that changes the arguments where they are, as those of other frameworks do."""

    def __init__(self, by: str) -> None:
        self.by = by

    def before_tool(self, call: ToolCall, context: ToolContext) -> None:
        args = context.call.args if self.by == "context" else call.args
        args["eur"] = min(args["eur"], 100)


class Spoil:
    """A hook that writes into the call once it has run."""

    def after_tool(self, call: ToolCall, result: Any, context: ToolContext) -> None:
        call.args["to"] = "Eve"
        context.call.args["eur"] = 0


@KINDS
@pytest.mark.parametrize("by", ["call", "context"])
def test_arguments_that_a_hook_changes_in_place(kind: str, by: str) -> None:
    """tool-context: Arguments are changed in place."""
    shop = Shop()
    agent = agent_of(kind, shop.tools.with_hooks(Clamp(by), Spoil()))
    with serving(turn(PAY), submits()):
        out = agent(question="Pay.")
    assert shop.paid == [100]
    [paid, _] = sigadapt.rounds(out)
    assert paid.calls[0].args == {"to": "Ada", "eur": 500}
    assert paid.results[0].value == "Paid 100 EUR to Ada."


def test_each_hook_sees_what_the_hook_before_it_changed() -> None:
    """tool-context: Arguments are changed in place."""
    shop = Shop()

    class See:
        def before_tool(self, call: ToolCall, context: ToolContext) -> None:
            shop.seen.append((call.args["eur"], context.call.args["eur"]))

    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 500}}])
    calls.run(shop.tools.with_hooks(See(), Clamp("call"), See()))
    assert shop.seen == [(500, 500), (100, 100)]
    assert calls[0].args == {"to": "Ada", "eur": 500}


@pytest.mark.parametrize("value", ["much", None, {1}], ids=["a type", "null", "no JSON"])
def test_what_does_not_fit_in_place_is_refused(value: Any) -> None:
    """tool-context: Changed arguments are checked."""
    shop = Shop()

    class Break:
        def before_tool(self, call: ToolCall, context: ToolContext) -> None:
            call.args["eur"] = value

    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 500}}])
    [result] = calls.run(shop.tools.with_hooks(Break()))
    assert (result.is_error, shop.paid) == (True, [])
    assert "its before_tool hook changed the arguments" in result.value


def test_a_change_in_place_of_an_approved_call_is_shown() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    shop = Shop(requires_confirmation=True)
    tools = shop.tools.with_hooks(Clamp("call"))
    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 500}}])
    [request] = calls.awaiting_confirmation(tools)
    error = waiting(lambda: calls.run(tools, {request.id: True}))
    assert shop.paid == []
    assert one(error).call.args == {"to": "Ada", "eur": 100}
    error.results_of(tools, {one(error).id: True})
    assert shop.paid == [100]


def failing(name: str) -> str:
    """Look a card up."""
    raise ValueError("db password=hunter2")


class Sanitise:
    """A hook that raises a message of its own."""

    def on_tool_error(self, call: ToolCall, error: Exception, context: ToolContext) -> None:
        raise RuntimeError("The card service is down.") from None


class Crash:
    """A hook with a mistake."""

    def on_tool_error(self, call: ToolCall, error: Exception, context: ToolContext) -> Any:
        return error.args[1].replace("hunter2", "***")


class Later:
    """A hook that would recover."""

    def on_tool_error(self, call: ToolCall, error: Exception, context: ToolContext) -> str:
        return f"recovered from {error}"


@KINDS
@pytest.mark.parametrize(
    ("hook", "failure"), [(Sanitise(), "RuntimeError"), (Crash(), "IndexError")], ids=["raises", "crashes"]
)
def test_a_broken_hook_hides_the_failure(
    kind: str, hook: Any, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    """tool-context: A hook that raises leaks nothing."""
    agent = agent_of(kind, ToolDecls([failing]).with_hooks(hook, Later()))
    with serving(turn(Call("failing", {"name": "Ada"})), submits()) as net, caplog.at_level(logging.ERROR):
        agent(question="q")
    [row] = [row for row in net.received[-1].body["messages"] if row["role"] == "tool"]
    assert row["content"] == f"ERROR: HookError: its on_tool_error hook failed ({failure})"
    assert "hunter2" in caplog.text  # who reads the log needs both


class Retry:
    """A hook that runs a call again, as that of the guide."""

    def __init__(self, tools: Any) -> None:
        self.tools = tools

    def on_tool_error(self, call: ToolCall, error: Exception, context: ToolContext) -> Any:
        return call.execute(self.tools) if isinstance(error, ConnectionError) else None


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
    tools = ToolDecls(own).with_hooks(Retry(own))
    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 500}}])
    with serving(turn(PAY), submits()):
        if asked == "now":
            agent_of("ReAct", tools.confirmed_by(ask))(question="Pay.")
        elif asked == "later":
            error = waiting(lambda: agent_of("ReAct", tools)(question="Pay."))
            error.resume(tools, decided(one(error)))
        else:
            [request] = calls.awaiting_confirmation(tools)
            calls.run(tools, decided(request))
    assert paid == [5 if edit else 500]


def test_a_call_that_nobody_approved_is_not_run_again() -> None:
    """tool-context: A hook runs an approved call again."""
    shop = Shop(requires_confirmation=True)

    def fail(to: str, eur: int) -> str:
        """Pay."""
        raise ConnectionError("reset")

    tools = ToolDecls([ToolDecl.of(fail, name="pay")]).with_hooks(Retry(shop.tools))
    with serving(turn(PAY), submits()):
        out = agent_of("ReAct", tools)(question="Pay.")
    [paid, _] = sigadapt.rounds(out)
    assert (paid.results[0].is_error, shop.paid) == (True, [])
