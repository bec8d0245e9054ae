"""Hooks in a row: what each gets of the ones before it, in every way of running the calls of a turn."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from agents import DSPY_AGENT, serving, submits, turn

import sigadapt
from sigadapt import InputNeeded, ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls
from sigadapt.errors import InvalidOption
from sigadapt.testing import Call

CARD = ("card", {"name": "Ada"})


def card(name: str) -> str:
    """Read a card."""
    return f"{name}: 4000123, ada@x.org"


def broken(name: str) -> str:
    """Fail."""
    raise ValueError(f"4000123 of {name} is locked")


class Mask:
    """Replaces a text in each value."""

    def __init__(self, old: str) -> None:
        self.old = old

    def after_tool(self, call: Any, result: str, context: Any) -> str:
        return result.replace(self.old, "***")


class Log(list[Any]):
    """What a hook in its place gets."""

    def before_tool(self, call: Any, context: Any) -> None:
        self.append(("before", call.args["name"]))

    def after_tool(self, call: Any, result: Any, context: Any) -> None:
        self.append(("after", result))


class Given:
    """Gives a value before the tool runs, or once it failed."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def before_tool(self, call: Any, context: Any) -> Any:
        return self.values.get("before")

    def on_tool_error(self, call: Any, error: Exception, context: Any) -> Any:
        return self.values.get("error")


class Named:
    """Changes the argument, by a call that it returns."""

    def __init__(self, change: Callable[[str], str]) -> None:
        self.change = change

    def before_tool(self, call: Any, context: Any) -> ToolCall:
        return ToolCall(id=call.id, name=call.name, args={"name": self.change(call.args["name"])})


def ran(how: str, tools: ToolDecls, call: tuple[str, Mapping[str, Any]]) -> str:
    """The one result of a turn, as the model reads it."""
    if how in ("run", "arun"):
        calls = ToolCalls([{"id": "c1", "name": call[0], "args": dict(call[1])}])
        results = calls.run(tools) if how == "run" else asyncio.run(calls.arun(tools))
        return ("ERROR: " if results[0].is_error else "") + str(results[0].value)
    kinds: dict[str, Any] = {"sigadapt.ReAct": sigadapt.ReAct, "dspy.ReActV2": DSPY_AGENT}
    with serving([turn(Call(*call)), submits()], confirm="raise") as provider:
        kinds[how]("question -> answer", tools=[*tools])(question="q")
        rows = [row for row in provider.received[-1].body["messages"] if row["role"] == "tool"]
    return rows[0]["content"]


WAYS = ("run", "arun", "sigadapt.ReAct", "dspy.ReActV2")
ROWS: dict[str, tuple[Callable[..., str], Callable[[Log], list[Any]], str, list[Any]]] = {
    "each gets the value of the one before": (
        card,
        lambda log: [Mask("4000123"), log, Mask("ada@x.org")],
        "Ada: ***, ***",
        [("before", "Ada"), ("after", "Ada: ***, ada@x.org")],
    ),
    "each gets the call of the one before": (
        card,
        lambda log: [Named(str.upper), Named("Dr. {}".format), log],
        "Dr. ADA: 4000123, ada@x.org",
        [("before", "Dr. ADA"), ("after", "Dr. ADA: 4000123, ada@x.org")],
    ),
    "a value in the place of running passes each": (
        broken,
        lambda log: [Given(before="4000123 kept"), log, Mask("4000123")],
        "*** kept",
        [("after", "4000123 kept")],
    ),
    "an empty text is a value": (broken, lambda log: [Given(before=""), log], "", [("after", "")]),
    "a value that recovers passes each": (
        broken,
        lambda log: [log, Given(error="4000123 anyway"), Mask("4000123")],
        "*** anyway",
        [("before", "Ada"), ("after", "4000123 anyway")],
    ),
    "a failure passes none": (
        broken,
        lambda log: [log, Mask("locked")],
        "ERROR: ValueError: 4000123 of Ada is locked",
        [("before", "Ada")],
    ),
}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", ROWS)
def test_hooks_stand_in_a_row(name: str, how: str) -> None:
    """tool-context: Hooks stand in a row."""
    function, hooks, value, seen = ROWS[name]
    log = Log()
    tools = ToolDecls([ToolDecl.of(function, name="card")]).with_hooks(*hooks(log))
    assert ran(how, tools, CARD) == value
    assert log == seen


class Again:
    """Runs a call once more if the network failed."""

    def __init__(self, tools: list[Any]) -> None:
        self.tools = tools

    def on_tool_error(self, call: Any, error: Exception, context: Any) -> Any:
        return call.execute(self.tools) if isinstance(error, ConnectionError) else None


def flaky(decisions: list[Any]) -> Callable[..., str]:
    faults = [ConnectionError("reset")]

    def note(name: str, context: ToolContext) -> str:
        """Note a name."""
        decisions.append(context.decision)
        if faults:
            raise faults.pop()
        return f"noted {name}"

    return note


def of_eve(args: dict[str, Any]) -> bool:
    return args["name"] == "Eve"


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("policy", [False, of_eve], ids=["never", "by a policy"])
def test_nobody_decided_about_a_call_that_runs_again(how: str, policy: Any) -> None:
    """tool-context: A context knows the decision."""
    decisions: list[Any] = []
    decl = ToolDecl.of(flaky(decisions), requires_confirmation=policy)
    if policy and "ReAct" in how:
        return  # an agent has to know whom to ask
    assert ran(how, ToolDecls([decl]).with_hooks(Again([decl])), ("note", {"name": "Ada"})) == "noted Ada"
    assert decisions == [None, None]


def test_a_yes_is_the_decision_of_each_attempt() -> None:
    """tool-context: A context knows the decision."""
    decisions: list[Any] = []
    decl = ToolDecl.of(flaky(decisions), requires_confirmation=True)
    tools = ToolDecls([decl]).with_hooks(Again([decl]))
    calls = ToolCalls([{"id": "c1", "name": "note", "args": {"name": "Ada"}}])
    [request] = calls.awaiting_confirmation(tools)
    assert [result.value for result in calls.run(tools, {request.id: True})] == ["noted Ada"]
    assert decisions == [True, True]


@pytest.mark.parametrize("how", WAYS)
def test_an_attempt_of_a_hook_may_wait(how: str) -> None:
    """tool-context: An attempt of a hook may wait."""
    faults = [ConnectionError("reset")]

    def pay(to: str, context: ToolContext) -> str:
        """Pay."""
        if faults:
            raise faults.pop()
        return f"paid {to} by {context.ask('How?')}"

    tools = ToolDecls([pay]).with_hooks(Again([pay]))
    with pytest.raises(InputNeeded) as waiting:
        ran(how, tools, ("pay", {"to": "Bob"}))
    error = InputNeeded.model_validate_json(waiting.value.model_dump_json())
    [result] = error.results_of(tools, {error.requests[0].id: "card"})
    assert result.value == "paid Bob by card"


def test_a_yes_is_no_yes_under_another_declaration() -> None:
    """tool-context: A hook runs an approved call again."""
    paid: list[int] = []

    def pay(eur: int) -> str:
        """Pay."""
        paid.append(eur)
        raise ConnectionError("reset")

    other = ToolDecl.of(pay, description="Pay twice.", requires_confirmation=True)
    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)]).with_hooks(Again([other]))
    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {"eur": 5}}])
    [request] = calls.awaiting_confirmation(tools)
    [result] = calls.run(tools, {request.id: True})
    assert (result.is_error, paid) == (True, [5])


@pytest.mark.parametrize("name", ["befor_tool", "after_tools", "on_tool_eror"])
def test_a_misspelt_method_is_refused(name: str) -> None:
    """tool-context: A misspelt hook is refused."""
    hook = Mask("x")
    setattr(hook, name, print)
    with pytest.raises(InvalidOption, match=f"{name}.*Did you mean"):
        ToolDecls([card]).with_hooks(hook)
