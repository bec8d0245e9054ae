"""What was decided about a turn: applied to its own call alone, and refused in words that help."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Any

import pytest

from sigadapt import Declined, InputNeeded, ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls, ToolResult
from sigadapt.errors import InvalidHistory, InvalidOption, SigadaptError

PAY = ToolCalls([{"id": "c1", "name": "pay", "args": {"eur": 500}}])


class _Methods:
    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


Hook: Any = _Methods  # whatever methods it is given


def changing(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    return Hook(
        before_tool=lambda call, context: call.model_copy(update={"args": {**call.args, **change(call.args)}})
    )


class Till:
    """What was paid, and tools that wait in each of the ways."""

    def __init__(self) -> None:
        self.paid: list[tuple[int, str]] = []

        def pay(eur: int, note: str = "") -> str:
            """Pay."""
            self.paid.append((eur, note))
            return "paid"

        def send(context: ToolContext) -> str:
            """Send."""
            return context.ask("To whom?")

        self.pay = ToolDecl.of(pay, requires_confirmation=True)
        self.tools = ToolDecls([self.pay, send, ToolDecl("ship", external=True)])

    def waits(self, *names: str) -> InputNeeded:
        calls = ToolCalls([{"id": f"c_{name}", "name": name, "args": {}} for name in names])
        return stopped(lambda: calls.run(self.tools))


def stopped(run: Callable[[], Any]) -> InputNeeded:
    with pytest.raises(InputNeeded) as caught:
        run()
    return InputNeeded.model_validate_json(caught.value.model_dump_json())


def request_of(error: InputNeeded) -> Any:
    [request] = error.requests
    return request


def approved(error: InputNeeded, tools: ToolDecls, decision: Any = True) -> InputNeeded:
    """The error in which a turn waits again after a decision."""
    return stopped(lambda: error.results_of(tools, {request_of(error).id: decision}))


OTHERS = ToolResult(call_id="c_other", name="ship", value="x")
REFUSALS: dict[str, tuple[str, Any, list[str], str]] = {
    "unfit": ("send", 3, ["the answer 3 does not fit"], "Answer 'To whom?'"),
    "no JSON": ("send", float("nan"), ["an answer is no JSON value"], "Answer 'To whom?'"),
    "of another call": (
        "ship",
        OTHERS,
        ["'c_ship' of 'ship' is of the call 'c_other' of 'ship'"],
        "its id and name",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_decision_that_does_not_fit_is_refused_by_its_tool(case: str) -> None:
    """tool-context: An answer is checked before anything runs."""
    name, decision, words, fix = REFUSALS[case]
    till = Till()
    error = till.waits(name)
    with pytest.raises(InvalidOption) as caught:
        error.results_of(till.tools, {request_of(error).id: decision})
    refusal = caught.value
    assert (refusal.code, refusal.field, refusal.tool) == ("invalid_decision", "decisions", name)
    assert fix in str(refusal.fix)
    assert [word for word in words if word not in str(refusal)] == []


def test_what_nobody_decided_about_is_named() -> None:
    """tool-context: An answer is checked before anything runs."""
    till = Till()
    error = till.waits("send", "ship")
    send, ship = error.requests
    for tools in (till.tools, ToolDecls([])):
        with pytest.raises(InvalidHistory) as caught:
            error.results_of(tools)
        assert (caught.value.code, caught.value.tool) == ("undecided", "send")
        assert f"{send.id} (To whom?), {ship.id} (" in str(caught.value)
        assert "partial=True" in str(caught.value.fix)


def test_a_decision_about_a_changed_tool_names_what_was_decided() -> None:
    """runs: A decision about a changed tool is refused and stays good."""
    till = Till()
    error = till.waits("send")
    request = request_of(error)
    other = ToolDecl.of(till.tools["send"], description="Send it twice.")
    for tools, words in (([], "is not declared"), ([other], "is declared otherwise than when it was asked")):
        with pytest.raises(
            InvalidHistory, match=f"about '{request.id}', and the tool 'send' {words}"
        ) as caught:
            error.results_of(ToolDecls(tools), {request.id: "Ada"})
        assert (caught.value.code, caught.value.tool) == ("changed_tool", "send")


def priced(till: Till, *prices: int) -> ToolDecls:
    """The tool that pays, behind a hook that finds another price each time."""
    left = [*prices]
    return ToolDecls([till.pay]).with_hooks(changing(lambda args: {"eur": left.pop(0)}))


def test_every_change_of_a_hook_that_was_approved_stays_approved() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    till = Till()
    tools = priced(till, 100, 90, 100)
    [request] = PAY.awaiting_confirmation(tools)
    first = stopped(lambda: PAY.run(tools, {request.id: True}))
    second = approved(first, tools)
    assert [request_of(error).call.args["eur"] for error in (first, second)] == [100, 90]
    [result] = second.results_of(tools, {request_of(second).id: True})
    assert (result.value, till.paid) == ("paid", [(100, "")])


def test_an_edit_takes_back_what_was_approved_before_it() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    till = Till()
    tools = priced(till, 100, 90, 100)
    [request] = PAY.awaiting_confirmation(tools)
    second = approved(stopped(lambda: PAY.run(tools, {request.id: True})), tools)
    third = approved(second, tools, ToolCall(id="c1", name="pay", args={"eur": 20}))
    assert (request_of(third).call.args["eur"], till.paid) == (100, [])


@pytest.mark.parametrize("args", [{"eur": "much"}, {}, {"eur": 1, "to": "Bob"}])
def test_an_edit_of_a_changed_call_fits_its_tool_or_nothing_runs(args: dict[str, Any]) -> None:
    """confirmation: What was edited runs, or nothing does."""
    till = Till()
    tools = ToolDecls([till.pay]).with_hooks(changing(lambda args: {"eur": min(args["eur"], 100)}))
    [request] = PAY.awaiting_confirmation(tools)
    error = stopped(lambda: PAY.run(tools, {request.id: True}))
    with pytest.raises(InvalidOption, match="the edited call does not fit") as caught:
        error.results_of(
            tools, {request_of(error).id: ToolCall(id="c1", name="pay", args=args)}, partial=True
        )
    assert (caught.value.code, caught.value.field, caught.value.tool) == (
        "invalid_decision",
        "decisions",
        "pay",
    )
    assert till.paid == []


def test_an_edit_of_a_changed_call_is_for_the_tool_that_was_shown() -> None:
    """tool-context: A yes is for the tool that was shown."""
    ran: list[int] = []

    def pay(eur: int, context: ToolContext) -> str:
        """Pay."""
        context.ask("Sure?", bool)
        ran.append(eur)
        return "paid"

    def tools_of(description: str) -> ToolDecls:
        decl = ToolDecl.of(pay, description=description, requires_confirmation=True)
        return ToolDecls([decl]).with_hooks(changing(lambda args: {"eur": min(args["eur"], 100)}))

    tools = tools_of("Pay.")
    [request] = PAY.awaiting_confirmation(tools)
    error = stopped(lambda: PAY.run(tools, {request.id: True}))
    error = approved(error, tools, ToolCall(id="c1", name="pay", args={"eur": 20}))
    sure = request_of(error)
    assert (sure.kind, error.progress["c1"].pin is None) == ("answer", False)
    with pytest.raises(InvalidHistory) as caught:
        error.results_of(tools_of("Pay in thousands."), {sure.id: True})
    assert (caught.value.code, ran) == ("changed_tool", [])
    error.results_of(tools, {sure.id: True})
    assert ran == [20]


def test_a_question_that_is_declined_is_the_one_that_was_asked() -> None:
    """tool-context: A person may decline."""

    def book(context: ToolContext) -> str:
        """Book."""
        where = context.ask("Where?")
        try:
            return f"{where}, {context.ask('When?')}"
        except Declined as declined:
            return f"{where}, {declined.reason}"

    tools = ToolDecls([book])
    error = stopped(lambda: ToolCalls([{"name": "book", "args": {}}]).run(tools))
    error = approved(error, tools, "Rome")
    [result] = error.results_of(tools, {request_of(error).id: Declined("I do not know yet.")})
    assert (result.value, result.is_error) == ("Rome, I do not know yet.", False)


def test_a_result_from_elsewhere_that_failed_says_why() -> None:
    """tool-context: An external tool waits for its result."""
    seen: list[Any] = []
    hook = Hook(after_tool=lambda call, result, context: seen.append(result))
    tools = ToolDecls([ToolDecl("ship", external=True)]).with_hooks(hook)
    error = stopped(lambda: ToolCalls([{"id": "c1", "name": "ship", "args": {}}]).run(tools))
    failed = ToolResult(call_id="c1", name="ship", value="The lorry broke down.", is_error=True)
    for decision, words in ((Declined("No lorry."), "No lorry."), (failed, "The lorry broke down.")):
        [result] = error.results_of(tools, {request_of(error).id: decision})
        assert (result.value, result.is_error, seen) == (words, True, [])


def test_a_decision_about_a_change_is_a_decision() -> None:
    """tool-call-outputs: Nothing runs before everything is decided."""
    till = Till()
    tools = ToolDecls([till.pay]).with_hooks(changing(lambda args: {"eur": 100}))
    [request] = PAY.awaiting_confirmation(tools)
    error = stopped(lambda: PAY.run(tools, {request.id: True}))
    with pytest.raises(SigadaptError, match=r"7 \(an int\) does not decide about a call") as caught:
        error.results_of(tools, {request_of(error).id: 7})
    assert "Map request.id to True" in str(caught.value.fix)
    for decision, words in (
        (False, "The user rejected this call. It was not run."),
        ("Too much.", "Too much."),
    ):
        [result] = error.results_of(tools, {request_of(error).id: decision})
        assert (result.value, result.is_error, till.paid) == (words, True, [])


def test_a_call_that_needs_a_yes_by_now_goes_on_to_wait() -> None:
    """tool-context: Some decisions may come later."""
    till = Till()
    first = ToolDecl.of(till.tools["send"], sequential=True)
    freely = ToolDecls([first, till.pay.func])
    calls = ToolCalls([{"id": "c0", "name": "send", "args": {}}, *PAY.model_dump()["tool_calls"]])
    error = stopped(lambda: calls.run(freely))
    question = request_of(error)
    tools = ToolDecls([first, till.pay])
    with pytest.raises(InvalidHistory) as caught:
        error.results_of(tools, {question.id: "Ada"})
    assert (caught.value.code, caught.value.tool) == ("undecided", "pay")
    again = stopped(lambda: error.results_of(tools, {question.id: "Ada"}, partial=True))
    assert (request_of(again).kind, till.paid) == ("approval", [])
    sent, paid = again.results_of(tools, {request_of(again).id: True})
    assert (sent.value, paid.value, till.paid) == ("Ada", "paid", [(500, "")])


def test_a_result_of_an_undeclared_tool_is_still_to_come() -> None:
    """tool-context: An external tool waits for its result."""
    till = Till()
    error = till.waits("ship")
    with pytest.raises(InvalidHistory) as caught:
        error.results_of(ToolDecls([]))
    assert (caught.value.code, caught.value.tool) == ("undecided", "ship")
