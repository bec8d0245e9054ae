"""What was decided about a turn: applied to its own call alone, and refused in words that help."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from typing import Any

import pytest
from signatures.tool_functions.served_tools import changing, one, waiting

from sigadapt import InputNeeded, ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls, ToolResult
from sigadapt.errors import InvalidHistory, InvalidOption, SigadaptError

PAY = ToolCalls([{"id": "c1", "name": "pay", "args": {"eur": 500}}])


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
        return waiting(lambda: calls.run(self.tools))


def approved(error: InputNeeded, tools: ToolDecls, decision: Any = True) -> InputNeeded:
    """The error in which a turn waits again after a decision."""
    return waiting(lambda: error.results_of(tools, {one(error).id: decision}))


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
        error.results_of(till.tools, {one(error).id: decision})
    refusal = caught.value
    assert (refusal.code, refusal.field, refusal.tool) == ("invalid_decision", "decisions", name)
    assert fix in str(refusal.fix)
    assert [word for word in words if word not in str(refusal)] == []


def test_what_nobody_decided_about_is_named() -> None:
    """tool-context: An answer is checked before anything runs."""
    till = Till()
    for names in (("send", "ship"), ("ship",)):
        error = till.waits(*names)
        for tools in (till.tools, ToolDecls([])):
            with pytest.raises(InvalidHistory) as caught:
                error.results_of(tools)
            assert (caught.value.code, caught.value.tool) == ("undecided", names[0])
            assert [each.id for each in error.requests if f"{each.id} (" not in str(caught.value)] == []
            assert ("(To whom?)" in str(caught.value)) == ("send" in names)
            assert "partial=True" in str(caught.value.fix)


def test_a_decision_about_a_changed_tool_names_what_was_decided() -> None:
    """runs: A decision about a changed tool is refused and stays good."""
    till = Till()
    error = till.waits("send")
    request = one(error)
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


def test_every_change_of_a_hook_is_approved_until_an_edit() -> None:
    """tool-context: Nothing runs that nobody was shown."""
    for last in (True, ToolCall(id="c1", name="pay", args={"eur": 20})):
        till = Till()
        tools = priced(till, 100, 90, 100)
        [request] = PAY.awaiting_confirmation(tools)
        first = waiting(lambda tools=tools, request=request: PAY.run(tools, {request.id: True}))
        second = approved(first, tools)
        assert [one(error).call.args["eur"] for error in (first, second)] == [100, 90]
        if last is True:
            [result] = second.results_of(tools, {one(second).id: True})
            assert (result.value, till.paid) == ("paid", [(100, "")])
        else:  # what was approved before it is approved no more
            third = approved(second, tools, last)
            assert (one(third).call.args["eur"], till.paid) == (100, [])


@pytest.mark.parametrize("args", [{"eur": "much"}, {}, {"eur": 1, "to": "Bob"}])
def test_an_edit_of_a_changed_call_fits_its_tool_or_nothing_runs(args: dict[str, Any]) -> None:
    """confirmation: What was edited runs, or nothing does."""
    till = Till()
    tools = ToolDecls([till.pay]).with_hooks(changing(lambda args: {"eur": min(args["eur"], 100)}))
    [request] = PAY.awaiting_confirmation(tools)
    error = waiting(lambda: PAY.run(tools, {request.id: True}))
    with pytest.raises(InvalidOption, match="the edited call does not fit") as caught:
        error.results_of(tools, {one(error).id: ToolCall(id="c1", name="pay", args=args)}, partial=True)
    assert (caught.value.code, caught.value.field, caught.value.tool) == (
        "invalid_decision",
        "decisions",
        "pay",
    )
    assert till.paid == []
    edit = ToolCall(id="c1", name="pay", args={"eur": 20, "note": "less"})
    [result] = error.results_of(tools, {one(error).id: edit})
    assert (till.paid, "edited this call" in (result.note or "")) == ([(20, "less")], True)


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
    error = waiting(lambda: PAY.run(tools, {request.id: True}))
    error = approved(error, tools, ToolCall(id="c1", name="pay", args={"eur": 20}))
    sure = one(error)
    assert (sure.kind, error.progress["c1"].pin is None) == ("answer", False)
    with pytest.raises(InvalidHistory) as caught:
        error.results_of(tools_of("Pay in thousands."), {sure.id: True})
    assert (caught.value.code, ran) == ("changed_tool", [])
    error.results_of(tools, {sure.id: True})
    assert ran == [20]


def test_a_decision_about_a_change_is_a_decision() -> None:
    """tool-call-outputs: Nothing runs before everything is decided."""
    till = Till()
    tools = ToolDecls([till.pay]).with_hooks(changing(lambda args: {"eur": 100}))
    [request] = PAY.awaiting_confirmation(tools)
    error = waiting(lambda: PAY.run(tools, {request.id: True}))
    with pytest.raises(SigadaptError, match=r"7 \(an int\) does not decide about a call") as caught:
        error.results_of(tools, {one(error).id: 7})
    assert "Map request.id to True" in str(caught.value.fix)
    for decision, words in (
        (False, "The user rejected this call. It was not run."),
        ("Too much.", "Too much."),
    ):
        [result] = error.results_of(tools, {one(error).id: decision})
        assert (result.value, result.is_error, till.paid) == (words, True, [])


def test_a_call_that_needs_a_yes_by_now_goes_on_to_wait() -> None:
    """tool-context: Some decisions may come later."""
    till = Till()
    first = ToolDecl.of(till.tools["send"], sequential=True)
    freely = ToolDecls([first, till.pay.func])
    calls = ToolCalls([{"id": "c0", "name": "send", "args": {}}, *PAY.model_dump()["tool_calls"]])
    error = waiting(lambda: calls.run(freely))
    question = one(error)
    tools = ToolDecls([first, till.pay])
    with pytest.raises(InvalidHistory) as caught:
        error.results_of(tools, {question.id: "Ada"})
    assert (caught.value.code, caught.value.tool) == ("undecided", "pay")
    again = waiting(lambda: error.results_of(tools, {question.id: "Ada"}, partial=True))
    assert (one(again).kind, till.paid) == ("approval", [])
    sent, paid = again.results_of(tools, {one(again).id: True})
    assert (sent.value, paid.value, till.paid) == ("Ada", "paid", [(500, "")])
