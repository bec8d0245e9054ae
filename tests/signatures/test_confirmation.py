"""Calls that a person must agree to: asked for, answered, and saved in between."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import json_values

from sigadapt import InvalidToolDecl, ToolCall, ToolCalls, ToolDecl, ToolDecls
from sigadapt.errors import InvalidHistory
from sigadapt.signatures.calls import InvalidToolCall, Turn
from sigadapt.signatures.confirmation import REQUEST, Confirmation
from sigadapt.signatures.tool_results.results import ToolResults


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
    stranger = ToolCall(id="toolu_y", name="rm", args={}, index=len(made) + 1, turn=TURN)
    bad = InvalidToolCall(
        id="toolu_z", name="pay", arguments="{", index=9, code="invalid_json", message="not JSON"
    )
    return ToolCalls(tool_calls=[*made, look, stranger], invalid=(bad,), turn=TURN)


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
    values = {"toolu_0": result, "toolu_x": "seen", "toolu_y": "x"}
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
