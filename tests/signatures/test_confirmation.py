"""Calls that a person must agree to: asked for, answered, and saved in between."""

import asyncio
import json
import pickle
from typing import Any, cast

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import REQUEST, Turn
from support import json_values

from sigadapt import (
    Confirmation,
    InvalidToolCall,
    InvalidToolDecl,
    SigadaptError,
    ToolCall,
    ToolCalls,
    ToolDecl,
    ToolDecls,
    ToolResults,
    Toolset,
)
from sigadapt.errors import InvalidHistory, InvalidOption


def over_ten(args: dict[str, Any]) -> bool:
    return args["eur"] > 10


def with_hint(args: dict[str, Any]) -> Confirmation | bool:
    return Confirmation(f"Pay {args['eur']} euros?", {"iban": "DE00"}) if args["eur"] else False


def pay(eur: float) -> None:
    raise AssertionError


def declared(requires: Any) -> ToolDecls:
    return ToolDecls([ToolDecl.of(pay, requires_confirmation=requires), {"name": "look"}])


TURN = Turn(text="I pay.", reasoning="hm", state={"dialect": "anthropic", "items": [{"signature": "s=="}]})


def calls(*euros: float) -> ToolCalls:
    made = [
        ToolCall(
            id=f"toolu_{n}",
            name="pay",
            args={"eur": eur},
            arguments=f'{{ "eur":{eur} }}',
            index=n,
            altered=("repaired",),
            turn=TURN,
        )
        for n, eur in enumerate(euros)
    ]
    look = ToolCall(id="toolu_x", name="look", args={}, index=len(made), turn=TURN)
    bad = InvalidToolCall(
        id="toolu_z", name="pay", arguments="{", index=9, code="invalid_json", message="not JSON"
    )
    return ToolCalls(tool_calls=[*made, look], invalid=(bad,), turn=TURN)


@pytest.mark.parametrize(
    ("requires", "ids"),
    [
        (False, []),
        (True, ["toolu_0", "toolu_1", "toolu_2"]),
        (over_ten, ["toolu_2"]),
        (with_hint, ["toolu_1", "toolu_2"]),
    ],
)
def test_only_calls_that_need_it_await_confirmation(requires: Any, ids: list[str]):
    """confirmation: Calls of a tool that requires it await confirmation.

    confirmation: A function of the arguments decides.
    """
    awaiting = calls(0, 5, 20).awaiting_confirmation(declared(requires))
    assert [request.id for request in awaiting] == [f"confirm_{call_id}" for call_id in ids]
    assert bool(awaiting) is bool(ids)
    assert {request.name for request in awaiting} <= {REQUEST}


def test_hint_and_payload_are_told():
    """confirmation: A function of the arguments decides."""
    (request,) = calls(20).awaiting_confirmation(declared(with_hint))
    assert (request.args["hint"], request.args["payload"]) == ("Pay 20 euros?", {"iban": "DE00"})
    (plain,) = calls(20).awaiting_confirmation(declared(True))
    assert (plain.args["hint"], plain.args["payload"]) == ("Run pay?", None)


def test_yes_gives_the_original_call():
    """confirmation: A yes gives the original call exactly as it was."""
    original = calls(20)
    (request,) = original.awaiting_confirmation(declared(True))
    given_back = request.approved()
    assert given_back == original[0]
    assert (given_back.arguments, given_back.altered, given_back.turn) == (
        '{ "eur":20 }',
        ("repaired",),
        TURN,
    )


def test_a_request_survives_a_restart():
    """confirmation: A request survives a restart."""
    original = calls(20, 30)
    awaiting = original.awaiting_confirmation(declared(True))
    loaded = ToolCalls.model_validate_json(awaiting.model_dump_json())
    assert [request.approved() for request in loaded] == original.tool_calls[:2]
    assert pickle.loads(pickle.dumps(awaiting[0])).approved() == original[0]  # noqa: S301
    rebuilt = ToolCall(id="confirm", name=REQUEST, args=json.loads(awaiting[1].arguments))
    assert rebuilt.approved() == original[1]


def test_no_gives_a_failed_result():
    """confirmation: A no gives a failed result."""
    original = calls(20)
    (request,) = original.awaiting_confirmation(declared(True))
    result = request.rejected()
    assert (result.call_id, result.name, result.is_error) == ("toolu_0", "pay", True)
    assert "rejected" in result.value
    assert request.rejected("Too expensive.").value == "Too expensive."
    values = {"toolu_0": result, "toolu_x": "seen"}
    assert next(iter(ToolResults.of(original, values))) == result


@pytest.mark.parametrize(
    "request_",
    [
        ToolCall(id="c", name="pay", args={"call": {"id": "x", "name": "pay", "args": {}}}),
        ToolCall(id="c", name=REQUEST, args={}),
        ToolCall(id="c", name=REQUEST, args={"call": {"name": "pay"}}),
    ],
)
def test_what_wraps_no_call_is_refused(request_: ToolCall):
    """confirmation: What wraps no call is refused."""
    for answer in (ToolCall.approved, ToolCall.rejected):
        with pytest.raises(InvalidHistory) as caught:
            answer(request_)
        assert caught.value.code == "no_confirmation"


async def later(args: dict[str, Any]) -> bool:
    return False


def raises(args: dict[str, Any]) -> bool:
    return args["usd"]


def no_json(args: dict[str, Any]) -> Confirmation:
    return Confirmation("?", object())


def forgetful(args: dict[str, Any]) -> None:
    return None


@pytest.mark.parametrize("requires", [raises, no_json, forgetful, later])
def test_a_function_that_gives_no_answer_is_an_error(requires: Any):
    """confirmation: A function that gives no answer is an error."""
    with pytest.raises(InvalidToolDecl) as caught:
        calls(20).awaiting_confirmation(declared(requires))
    assert (caught.value.code, caught.value.tool) == ("confirmation_failed", "pay")


def test_a_function_cannot_change_the_call():
    def clears(args: dict[str, Any]) -> bool:
        args.clear()
        return True

    made = calls(20)
    assert made.awaiting_confirmation(declared(clears))[0].approved() == made[0]
    assert made[0].args == {"eur": 20}


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3), st.text(min_size=1), st.text())
def test_any_call_comes_back_as_it_was(args: dict[str, Any], call_id: str, arguments: str):
    """confirmation: A yes gives the original call exactly as it was."""
    call = ToolCall(id=call_id, name="any", args=args, arguments=arguments, turn=TURN)
    decls = ToolDecls({"name": "any", "requires_confirmation": True})
    awaiting = ToolCalls(tool_calls=[call]).awaiting_confirmation(decls)
    assert ToolCalls.model_validate_json(awaiting.model_dump_json())[0].approved() == call


def send(to: str, amount: int = 1000) -> str:
    """Send."""
    return f"sent {amount} to {to}"


def over_hundred(args: dict[str, Any]) -> bool:
    return args["amount"] > 100


def test_tools_of_any_form_are_asked_for():
    """confirmation: The tools have any form that ToolDecls takes."""
    decl = ToolDecl.of(send, requires_confirmation=True)
    toolset = Toolset("t", [decl])
    made = ToolCalls([{"name": "send", "args": {"to": "x"}}])
    for tools in (decl, [decl], (decl,), ToolDecls(decl), toolset, [toolset]):
        assert len(made.awaiting_confirmation(tools)) == 1


def test_a_call_of_a_tool_that_is_not_declared_is_asked_for():
    """confirmation: The tools have any form that ToolDecls takes."""
    (request,) = ToolCalls([{"name": "rm", "args": {}}]).awaiting_confirmation([send])
    assert request.args["hint"] == "Run rm? It is not among the declared tools."


def test_who_decides_sees_defaults():
    """confirmation: Who decides sees the arguments with their defaults."""
    seen: list[Any] = []

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        seen.append(args)
        return True

    decls = ToolDecls(ToolDecl.of(send, requires_confirmation=over_hundred))
    (request,) = ToolCalls([{"name": "send", "args": {"to": "x"}}]).awaiting_confirmation(decls)
    assert request.args["call"]["args"] == {"to": "x", "amount": 1000}
    assert request.approved().args == {"to": "x", "amount": 1000}
    assert decls.confirmed_by(ask)["send"].to_dspy()(to="x") == "sent 1000 to x"
    assert seen == [{"to": "x", "amount": 1000}]


def test_what_was_edited_runs_or_nothing_does():
    """confirmation: What was edited runs, or nothing does."""
    decls = ToolDecls(ToolDecl.of(send, requires_confirmation=True))
    (request,) = ToolCalls([{"name": "send", "args": {"to": "x"}}]).awaiting_confirmation(decls)
    edited = json.loads(request.model_dump_json())
    edited["args"]["call"]["args"]["amount"] = 5
    assert ToolCall.model_validate(edited).approved().args == {"to": "x", "amount": 5}

    def confirmed(amount: Any) -> Any:
        def ask(name: str, args: dict[str, Any], hint: str) -> bool:
            args["amount"] = amount
            return True

        return decls.confirmed_by(ask)["send"].to_dspy()

    assert confirmed(5)(to="x") == "sent 5 to x"
    with pytest.raises(PermissionError, match="The user changed the arguments"):
        confirmed("a lot")(to="x")


async def test_who_decides_later_edits_too():
    """confirmation: What was edited runs, or nothing does."""

    async def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        args["amount"] = 7
        return True

    def in_future(name: str, args: dict[str, Any], hint: str) -> Any:
        return asyncio.ensure_future(ask(name, args, hint))

    decls = ToolDecls(ToolDecl.of(send, requires_confirmation=True))
    for each in (ask, in_future):
        assert await decls.confirmed_by(each)["send"].to_dspy().acall(to="x") == "sent 7 to x"


class Rule(list[Any]):
    """A rule that is false, as it has no items."""

    def __call__(self, args: dict[str, Any]) -> bool:
        return True


def test_a_false_object_that_decides_still_decides():
    """confirmation: A false object that decides still decides."""
    for decl in (
        ToolDecl.of({"name": "pay"}, requires_confirmation=Rule()),
        ToolDecl("pay", requires_confirmation=Rule()),
    ):
        assert len(ToolCalls([{"name": "pay", "args": {}}]).awaiting_confirmation(decl)) == 1
        assert (
            ToolDecls.model_validate_json(ToolDecls(decl).model_dump_json())["pay"].requires_confirmation
            is True
        )


def test_a_future_is_no_answer():
    """confirmation: A function that gives no answer is an error."""
    loop = asyncio.new_event_loop()

    def pending(args: dict[str, Any]) -> Any:
        return loop.create_future()

    decl = ToolDecl("pay", requires_confirmation=pending)
    with pytest.raises(InvalidToolDecl, match="expected a boolean or a Confirmation, got a"):
        ToolCalls([{"name": "pay", "args": {}}]).awaiting_confirmation(decl)
    loop.close()


def test_the_name_of_a_request_is_reserved():
    """confirmation: The name of a request is reserved."""
    for declare in (lambda: ToolDecls([{"name": REQUEST}]), lambda: ToolDecl.of(send, name=REQUEST)):
        with pytest.raises(InvalidToolDecl, match="reserved"):
            declare()
    (renamed,) = Toolset("t", [send]).renamed({"send": "other"}).resolve()
    assert renamed.name == "other"
    with pytest.raises(InvalidToolDecl, match="reserved"):
        Toolset("t", [send]).renamed({"send": REQUEST}).resolve()


def test_a_request_that_a_model_sent_is_none():
    """confirmation: What wraps no call is refused."""
    wrapped: dict[str, Any] = {"call": {"id": "x", "name": "pay", "args": {}}}
    sent = ToolCall(id="c", name=REQUEST, args=wrapped, arguments=json.dumps(wrapped))
    with pytest.raises(InvalidHistory):
        sent.approved()


def agent(tools: Any) -> Any:
    return cast("Any", dspy).ReActV2("question -> answer", tools=tools)


def agrees(name: str, args: dict[str, Any], hint: str) -> bool:
    return True


def test_an_agent_refuses_a_tool_with_nobody_to_ask():
    """confirmation: An agent refuses a tool with nobody to ask."""
    decls = ToolDecls(ToolDecl.of(send, requires_confirmation=True))
    for make in (lambda: agent(decls), lambda: agent([*decls]), lambda: agent(decls.to_dspy())):
        with pytest.raises(InvalidToolDecl, match="confirmed_by") as caught:
            make()
        assert (caught.value.code, caught.value.tool) == ("nobody_to_ask", "send")
    agent(decls.confirmed_by(agrees))
    agent(decls.confirmed_by(agrees).to_dspy())


def wipe() -> None:
    raise AssertionError


def test_a_call_runs_declared_functions_alone():
    """confirmation: A call runs declared functions alone."""
    call = ToolCall(id="c", name="wipe", args={})
    for tools in (None, [send], {"send": send}):
        with pytest.raises(SigadaptError):
            call.execute(tools)
    pays = ToolCall(id="c", name="send", args={"to": "x"})
    for tools in ([send], {"send": send}, ToolDecls(send), [dspy.Tool(send)]):
        assert pays.execute(tools) == "sent 1000 to x"
    with pytest.raises(SigadaptError, match="confirmed_by"):
        pays.execute([ToolDecl.of(send, requires_confirmation=True)])
    with pytest.raises(SigadaptError, match="do not fit"):
        ToolCall(id="c", name="send", args={"to": 1}).execute([send])


def test_who_cannot_be_asked_is_refused_at_once():
    with pytest.raises(InvalidOption, match="a bool cannot be asked"):
        declared(True).confirmed_by(cast("Any", True))


def test_an_approved_call_is_told_how_to_run():
    call = ToolCall(id="c1", name="pay", args={"eur": 5})
    with pytest.raises(InvalidToolDecl, match=r"func\(\*\*call\.bind\(decls\)\)"):
        call.execute(declared(True))
