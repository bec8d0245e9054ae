"""Who is asked before a tool runs, what they are shown, and what comes of an answer that is none."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from datetime import date
from inspect import signature
from typing import Any, get_type_hints

import pytest
from signatures.tool_functions.served_tools import Call, agent_of, changing, serving, submits, turn

from sigadapt import Confirmation, ToolCalls, ToolContext, ToolDecl, ToolDecls
from sigadapt.errors import InvalidOption


class Till:
    """What was paid, and the tool that pays."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[tuple[str, int]] = []

        def pay(to: str, eur: int = 5) -> str:
            """Pay."""
            self.paid.append((to, eur))
            return f"Paid {to}."

        self.tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=options.get("policy", True))])


PAY = ToolCalls([{"name": "pay", "args": {"to": "Ada"}}])
RAISES = changing(lambda args: {"eur": 500})


def later(ask: Callable[..., Any], way: Any = True) -> Callable[..., Any]:
    """The same answer now, from an async function, or from a function that returns something to await."""

    async def asks(*shown: Any) -> Any:
        return ask(*shown)

    def asking(*shown: Any) -> Any:
        return asks(*shown)

    return {False: ask, True: asks}.get(way, asking)


def ran(tool: ToolDecl, *, is_async: bool, **args: Any) -> Any:
    """Run a tool as an agent of DSPy's runs it."""
    made = tool.to_dspy()
    return asyncio.run(made.acall(**args)) if is_async else made(**args)


@pytest.mark.parametrize("ask", [None, "yes", True, 7])
def test_only_a_function_can_be_asked(ask: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        Till().tools.confirmed_by(ask)
    assert caught.value.field == "ask"
    assert "Give confirmed_by a function" in str(caught.value.fix)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("answer", [False, True])
def test_a_person_is_shown_the_tool_the_arguments_and_the_question(answer: bool, is_async: bool) -> None:
    """confirmation: Who decides sees the arguments with their defaults."""
    till = Till(policy=lambda args: Confirmation(f"Pay {args['to']}?"))
    shown: list[Any] = []

    def ask(*given: Any) -> bool:
        shown.append(given)
        return answer

    tools = till.tools.confirmed_by(later(ask, is_async))
    if answer:
        assert ran(tools["pay"], is_async=is_async, to="Ada") == "Paid Ada."
    else:
        with pytest.raises(PermissionError, match="The user rejected this call"):
            ran(tools["pay"], is_async=is_async, to="Ada")
    assert shown == [("pay", {"to": "Ada", "eur": 5}, "Pay Ada?")]
    assert till.paid == [("Ada", 5)] * answer


def fails(*_: Any) -> Any:
    raise KeyError("no such window")


NO_ANSWERS: dict[str, tuple[Callable[..., Any], str]] = {
    "a text": (lambda *_: "yes", "expected True or False, got a str"),
    "a number": (lambda *_: 1, "expected True or False, got an int"),
    "nothing": (lambda *_: None, "expected True or False, got None"),
    "an error": (fails, "KeyError: 'no such window'"),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", NO_ANSWERS)
def test_an_answer_that_is_none_runs_nothing_and_is_told(
    name: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """confirmation: Who asks answers yes or no."""
    till = Till()
    ask, words = NO_ANSWERS[name]
    tools = till.tools.confirmed_by(later(ask, is_async))
    with caplog.at_level(logging.ERROR, "sigadapt"), pytest.raises(InvalidOption) as caught:
        ran(tools["pay"], is_async=is_async, to="Ada")
    error = caught.value
    assert (error.code, error.field, till.paid) == ("invalid_decision", "ask", [])
    assert f"`ask` gave no answer about 'pay': {words}" in str(error)
    assert "Return True to run the call" in str(error.fix)
    assert caplog.messages == [str(error)]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("policy", [True, lambda args: False], ids=["asked", "not asked"])
def test_a_tool_that_asks_keeps_its_timeout(policy: Any, is_async: bool) -> None:
    """tool-call-outputs: A tool has a time limit of its own."""
    ended = threading.Event()

    def pay() -> str:
        """Pay, some time."""
        ended.wait(20)
        return "paid"

    async def pay_later() -> str:
        """Pay, some time."""
        await asyncio.Event().wait()
        return "paid"

    paying = pay_later if is_async else pay
    decl = ToolDecl.of(paying, name="pay", requires_confirmation=policy, timeout=0.05)
    [tool] = ToolDecls([decl]).confirmed_by(later(lambda *_: True, is_async)).tools
    with pytest.raises(TimeoutError):
        ran(tool, is_async=is_async)
    ended.set()


@pytest.mark.parametrize("answers", [True, False])
def test_two_who_are_asked_must_both_agree(answers: bool) -> None:
    till = Till()
    asked: list[str] = []

    def ask_of(name: str) -> Callable[..., bool]:
        def ask(*_: Any) -> bool:
            asked.append(name)
            return answers

        return ask

    tools = till.tools.confirmed_by(ask_of("first")).confirmed_by(ask_of("second"))
    [result] = PAY.run(tools)
    assert (result.is_error, asked) == (not answers, ["second", "first"] if answers else ["second"])
    assert till.paid == [("Ada", 5)] * answers
    asked.clear()
    [request] = PAY.awaiting_confirmation(tools)
    assert (request.approved().execute(tools), asked) == ("Paid Ada.", [])


def test_a_function_that_asks_looks_like_the_one_behind_it() -> None:
    """confirmation: An agent's tool asks first."""

    def pay(due: "date") -> str:
        """Pay."""
        raise AssertionError

    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)]).confirmed_by(lambda *_: True)
    asks: Any = tools["pay"].func
    assert (asks.__name__, asks.__doc__, signature(asks)) == ("pay", "Pay.", signature(pay))
    assert get_type_hints(asks) == {"due": date, "return": str}


def test_both_who_are_asked_see_the_call_before_its_hooks() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    till = Till()
    shown: list[Any] = []

    def ask_of(name: str) -> Callable[..., bool]:
        def ask(tool: str, args: dict[str, Any], hint: str) -> bool:
            shown.append((name, args["eur"]))
            return True

        return ask

    tools = till.tools.confirmed_by(ask_of("first")).with_hooks(RAISES).confirmed_by(ask_of("second"))
    PAY.run(tools)
    assert shown == [("second", 5), ("first", 5), ("first", 500)]
    assert till.paid == [("Ada", 500)]


def test_a_default_that_json_shows_in_part_can_be_given_as_it_is() -> None:
    """confirmation: What the function fills in is shown, and runs."""
    paid: list[date] = []
    today = date(2026, 11, 24)

    def pay(due: date, sent: date = today) -> str:
        """Pay."""
        paid.extend((due, sent))
        return "paid"

    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)]).confirmed_by(lambda *_: True)
    assert tools["pay"].func(due=today, sent=today) == "paid"  # pyright: ignore[reportOptionalCall]
    assert paid == [today, today]


def test_a_tool_that_needs_no_yes_knows_its_call_in_an_agent() -> None:
    """tool-context: Each call has its own context."""
    seen: list[Any] = []

    def pay(eur: int, context: ToolContext) -> str:
        """Pay."""
        seen.append(context.call.id)
        return "paid"

    tools = [ToolDecl.of(pay, requires_confirmation=lambda args: args["eur"] > 100)]
    with serving(turn(Call("pay", {"eur": 5}, id="call_of_the_model")), submits()):
        agent_of("ReActV2", tools)(question="Pay.")
    assert seen == ["call_of_the_model"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("asks_later", [False, True, "awaitable"])
@pytest.mark.parametrize("edit", [{}, {"eur": 3}], ids=["as sent", "edited"])
def test_a_tool_and_the_model_see_what_was_agreed(edit: Any, asks_later: Any, is_async: bool) -> None:
    """tool-call-outputs: The model reads that a person edited a call."""
    seen: list[Any] = []

    def pay(eur: int, context: ToolContext) -> str:
        """Pay."""
        decision: Any = context.decision
        seen.append((eur, context.call.args, json.loads(context.call.arguments or "null")))
        seen.append(getattr(decision, "args", decision))
        return "paid"

    async def pay_later(eur: int, context: ToolContext) -> str:
        """Pay."""
        return pay(eur, context)

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        args.update(edit)
        return True

    decl = ToolDecl.of(pay_later if is_async else pay, name="pay", requires_confirmation=True)
    tools = ToolDecls([decl]).confirmed_by(later(ask, asks_later))
    [result] = ToolCalls([{"name": "pay", "args": {"eur": 5}}]).run(tools)
    agreed = {"eur": 5} | edit
    assert (result.value, result.is_error) == ("paid", False)
    assert seen == [(agreed["eur"], agreed, agreed), agreed if edit else True]
    assert (result.note is not None) == bool(edit)


@pytest.mark.parametrize("answer", [True, False])
def test_arguments_that_a_hook_makes_worth_a_question_are_shown(answer: bool) -> None:
    """tool-context: Nothing runs that nobody was shown."""
    till = Till(policy=lambda args: args["eur"] > 100 and Confirmation(f"Pay\n{args['eur']} EUR?"))
    shown: list[Any] = []

    def ask(*given: Any) -> bool:
        shown.append(given)
        return answer

    [result] = PAY.run(till.tools.confirmed_by(ask).with_hooks(RAISES))
    assert shown == [("pay", {"to": "Ada", "eur": 500}, "Pay\n500 EUR?")]
    assert (till.paid, result.is_error) == ([("Ada", 500)] * answer, not answer)


def test_only_a_function_that_needs_a_yes_is_guarded() -> None:

    def find(city: str) -> str:
        """Find."""
        return city

    decls = ToolDecls([ToolDecl("ship", requires_confirmation=True), find])
    tools = decls.confirmed_by(lambda *_: False)
    assert (tools["ship"].func, tools["find"].func) == (None, find)


def test_a_function_without_a_signature_can_ask() -> None:
    """confirmation: An agent's tool asks first."""
    tools = ToolDecls([ToolDecl("made", func=dict, requires_confirmation=True)])
    [result] = ToolCalls([{"name": "made", "args": {}}]).run(tools.confirmed_by(lambda *_: False))
    assert (result.is_error, "rejected" in str(result.value)) == (True, True)


@pytest.mark.parametrize("edit", [{"eur": "much"}, {"eur": "7"}, {"eur": None}, {"from": "Bob"}])
def test_an_edit_that_does_not_fit_runs_nothing(edit: dict[str, Any]) -> None:
    """confirmation: What was edited runs, or nothing does."""
    till = Till()

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        args.update(edit)
        return True

    [result] = PAY.run(till.tools.confirmed_by(ask))
    assert (result.is_error, till.paid) == (True, [])
    assert "The user changed the arguments. It was not run" in result.value
