"""Calls that a person must agree to: asked for, answered, and saved in between."""

import asyncio
import copy
import dataclasses
import functools
import json
import math
import pickle
from typing import Annotated, Any, cast

import dspy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import json_values, turn_of
from tables import table

from sigadapt import (
    Confirmation,
    InvalidToolCall,
    SigadaptError,
    ToolCall,
    ToolCalls,
    ToolDecl,
    ToolDecls,
    ToolResults,
    Toolset,
)
from sigadapt.errors import InvalidHistory, InvalidToolDecl


def over_ten(args: dict[str, Any]) -> bool:
    return args["eur"] > 10


def with_hint(args: dict[str, Any]) -> Confirmation | bool:
    return Confirmation(f"Pay {args['eur']} euros?", {"iban": "DE00"}) if args["eur"] else False


def pay(eur: float) -> None:
    raise AssertionError


def declared(requires: Any) -> ToolDecls:
    return ToolDecls([ToolDecl.of(pay, requires_confirmation=requires), {"name": "look"}])


REQUEST = "sigadapt_request_confirmation"
TURN = turn_of(text="I pay.", reasoning="hm", state={"dialect": "anthropic", "items": [{"signature": "s=="}]})


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
    ("requires", "asked"),
    [
        (False, {}),
        (True, {0: ("Run pay?", None), 1: ("Run pay?", None), 2: ("Run pay?", None)}),
        (over_ten, {2: ("Run pay?", None)}),
        (with_hint, {1: ("Pay 5 euros?", {"iban": "DE00"}), 2: ("Pay 20 euros?", {"iban": "DE00"})}),
    ],
)
def test_only_calls_that_need_it_await_confirmation(requires: Any, asked: dict[int, Any]):
    """confirmation: Calls of a tool that requires it await confirmation.
    confirmation: A function of the arguments decides.
    """
    awaiting = calls(0, 5, 20).awaiting_confirmation(declared(requires))
    told = {each.call.id: (each.args["hint"], each.args["payload"]) for each in awaiting}
    assert told == {f"toolu_{n}": words for n, words in asked.items()}
    assert bool(awaiting) is bool(asked)
    assert {request.name for request in awaiting} <= {REQUEST}


def test_a_request_survives_a_restart():
    """confirmation: A request survives a restart."""
    original = calls(20, 30)
    awaiting = original.awaiting_confirmation(declared(True))
    loaded = ToolCalls.model_validate_json(awaiting.model_dump_json())
    assert [request.approved() for request in loaded] == original.tool_calls[:2]
    assert pickle.loads(pickle.dumps(awaiting[0])).approved() == original[0]  # noqa: S301
    rebuilt = ToolCall(id="confirm", name=REQUEST, args=json.loads(awaiting[1].arguments), turn=TURN)
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


WRAPPED: dict[str, Any] = {"call": {"id": "x", "name": "pay", "args": {}}}
FORGED: dict[str, Any] = {**WRAPPED, "kind": "answer", "hint": "?", "schema": {}}


@pytest.mark.parametrize(
    "request_",
    [
        ToolCall(id="c", name="pay", args=WRAPPED),
        ToolCall(id="c", name=REQUEST, args=WRAPPED, arguments=json.dumps(WRAPPED)),  # a model sent it
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


def test_a_model_makes_no_request():
    """confirmation: What wraps no call is refused."""
    made = ToolCalls([{"name": REQUEST, "args": FORGED}]).validated(declared(True))
    assert made.invalid[0].code == "unknown_tool"
    with pytest.raises(InvalidHistory):
        ToolCall(id="c", name=REQUEST, args=FORGED).approved()


async def later(args: dict[str, Any]) -> bool:
    return False


def raises(args: dict[str, Any]) -> bool:
    return args["usd"]


def no_json(args: dict[str, Any]) -> Confirmation:
    return Confirmation("?", object())


def forgetful(args: dict[str, Any]) -> None:
    return None


def pending(args: dict[str, Any]) -> Any:
    loop = asyncio.new_event_loop()
    loop.close()
    return loop.create_future()


ANSWER = "expected a boolean or a Confirmation, got a"


@pytest.mark.parametrize(
    ("requires", "words"),
    [(raises, None), (no_json, None), (forgetful, None), (later, None), (pending, ANSWER)],
)
def test_a_function_that_gives_no_answer_is_an_error(requires: Any, words: Any):
    """confirmation: A function that gives no answer is an error."""
    with pytest.raises(InvalidToolDecl, match=words) as caught:
        calls(20).awaiting_confirmation(declared(requires))
    assert (caught.value.code, caught.value.tool) == ("confirmation_failed", "pay")


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3), st.text(min_size=1))
def test_any_call_comes_back_as_it_was(args: dict[str, Any], call_id: str):
    """confirmation: A yes gives the original call exactly as it was."""
    sent = json.dumps(args, indent=1)
    call = ToolCall(id=call_id, name="any", args=args, arguments=sent, altered=("repaired",), turn=TURN)
    decls = ToolDecls({"name": "any", "requires_confirmation": True})
    awaiting = ToolCalls(tool_calls=[call]).awaiting_confirmation(decls)
    for request in (awaiting[0], ToolCalls.model_validate_json(awaiting.model_dump_json())[0]):
        given_back = request.approved()
        assert (given_back, given_back.arguments, given_back.altered) == (call, sent, ("repaired",))
        assert given_back.turn == TURN


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


def test_the_name_of_a_request_is_reserved():
    """confirmation: The name of a request is reserved."""
    for declare in (lambda: ToolDecls([{"name": REQUEST}]), lambda: ToolDecl.of(send, name=REQUEST)):
        with pytest.raises(InvalidToolDecl, match="reserved"):
            declare()
    (renamed,) = Toolset("t", [send]).renamed({"send": "other"}).resolve()
    assert renamed.name == "other"
    with pytest.raises(InvalidToolDecl, match="reserved"):
        Toolset("t", [send]).renamed({"send": REQUEST}).resolve()


def agent(tools: Any) -> Any:
    return cast("Any", dspy).ReActV2("question -> answer", tools=tools)


def agrees(name: str, args: dict[str, Any], hint: str) -> bool:
    return True


def test_an_agents_tool_refuses_with_nobody_to_ask(caplog: pytest.LogCaptureFixture):
    """confirmation: A tool refuses to run with nobody to ask."""
    decls = ToolDecls(ToolDecl.of(send, requires_confirmation=over_hundred))
    for tools in (agent(decls).tools, agent([*decls]).tools, {"send": decls.to_dspy()[0]}):
        assert tools["send"](to="Ada", amount=10) == "sent 10 to Ada"
        with pytest.raises(InvalidToolDecl, match="confirmed_by") as caught:
            tools["send"](to="Ada")
        assert (caught.value.code, caught.value.tool) == ("nobody_to_ask", "send")
    assert caplog.text.count("without asking anybody") == 3
    agent(decls.confirmed_by(agrees))
    agent(decls.confirmed_by(agrees).to_dspy())


def refuses(name: str, args: dict[str, Any], hint: str) -> bool:
    return False


def test_a_call_runs_declared_functions_alone():
    """confirmation: A call runs declared functions alone."""
    call = ToolCall(id="c", name="wipe", args={})
    for tools in (None, [send], {"send": send}):
        with pytest.raises(SigadaptError):
            call.execute(tools)
    pays = ToolCall(id="c", name="send", args={"to": "x"})
    for tools in ([send], {"send": send}, ToolDecls(send), [dspy.Tool(send)]):
        assert pays.execute(tools) == "sent 1000 to x"
    with pytest.raises(InvalidToolDecl, match=r"calls\.run\(decls, decisions\)") as caught:
        pays.execute([ToolDecl.of(send, requires_confirmation=True)])
    assert "confirmed_by" in str(caught.value)
    with pytest.raises(SigadaptError, match="do not fit"):
        ToolCall(id="c", name="send", args={"to": 1}).execute([send])


MODE = {"mode": {"type": "string", "default": "slow"}, "eur": {"type": "integer"}}


@pytest.mark.parametrize(("schema", "args", "shown"), table(__file__, "DEFAULTS"))
def test_a_default_is_shown_wherever_it_stands_and_runs(schema: Any, args: Any, shown: Any):
    """confirmation: A default behind a condition that holds is shown, and runs.
    confirmation: Who decides sees the arguments with their defaults.
    """
    seen: list[Any] = []
    ran: list[Any] = []

    def policy(args: dict[str, Any]) -> bool:
        seen.append(dict(args))
        args.clear()  # which changes nothing of the call
        return True

    def pay(**kwargs: Any) -> str:
        ran.append(kwargs)
        return "paid"

    parameters = {"type": "object", "properties": MODE, **schema}
    declared_pay = ToolDecl.of({"name": "pay", "parameters": parameters}, requires_confirmation=policy)
    decl = dataclasses.replace(declared_pay, func=pay)
    calls = ToolCalls([{"name": "pay", "args": args}])
    [request] = calls.awaiting_confirmation(decl)
    assert (request.call.args, seen) == (shown, [shown])
    [result] = calls.run(decl, {request.id: True})
    assert (ran, result.value) == ([shown], "paid")


class Limits(pydantic.BaseModel):
    eur: int = pydantic.Field(default_factory=lambda: 1000)


NO_KEY = pydantic.SecretStr("not-a-real-one")


def strange(  # noqa: PLR0917  (one argument for each kind of default)
    to: str,
    limits: Limits,
    eur: int = pydantic.Field(default_factory=lambda: 7),
    most: float = math.inf,
    mark: bytes = b"\xff",
    secret: pydantic.SecretStr = NO_KEY,
    note: str = None,  # type: ignore[assignment]  # noqa: RUF013  (as people write it)
) -> str:
    """Send."""
    return repr((to, limits.eur, eur, most, mark, secret.get_secret_value(), note))


SHOWN = {"to": "x", "limits": {"eur": 1000}, "eur": 7, "most": "inf", "mark": "b'\\xff'", "secret": "*" * 10}
RUN = ("x", 1000, 7, math.inf, b"\xff", "not-a-real-one", None)


def test_what_the_function_fills_in_is_shown_and_is_what_runs():
    """confirmation: What the function fills in is shown, and runs."""
    decls = ToolDecls([ToolDecl.of(strange, requires_confirmation=True)])
    made = ToolCalls([{"name": "strange", "args": {"to": "x", "limits": {}}}])
    [request] = ToolCalls.model_validate_json(made.awaiting_confirmation(decls).model_dump_json())
    assert request.call.args == {**SHOWN, "note": None}
    assert request.approved().execute(decls) == repr(RUN)
    [result] = made.run(decls, {request.id: True})
    assert result.value == repr(RUN)
    request.args["call"]["args"]["to"] = "y"
    edited = request.approved()  # confirmation: What was edited runs, or nothing does
    assert edited.execute(decls) == repr(("y", *RUN[1:]))
    assert json.loads(edited.arguments) == edited.args
    seen: list[Any] = []

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        seen.append(dict(args))
        args["to"] = "z"
        return True

    [tool] = decls.confirmed_by(ask).to_dspy()
    assert tool(to="x", limits={}) == repr(("z", *RUN[1:]))
    assert seen == [{**SHOWN, "note": None}]


class Hiding(pydantic.BaseModel):
    """A payment that JSON shows less of than it holds."""

    eur: int
    to: str = pydantic.Field(exclude=True)
    key: pydantic.SecretStr = pydantic.SecretStr("")

    @pydantic.field_serializer("eur")
    def _as_one(self, _: int) -> int:
        return 1


def test_an_agent_shows_what_runs_and_not_how_python_writes_it():
    """confirmation: An agent's tool shows the JSON that the model sent."""
    paid: list[Any] = []
    seen: list[Any] = []

    def send(by: Hiding) -> None:
        paid.append((by.eur, by.to, by.key.get_secret_value()))

    def policy(args: dict[str, Any]) -> bool:
        seen.append(args["by"])
        return True

    decl = ToolDecl.of(send, requires_confirmation=policy)
    [agreed] = ToolDecls([decl]).confirmed_by(lambda name, args, hint: True)
    sent = {"eur": 9000, "to": "Eve", "key": "from-the-model"}
    for tool in (agreed.to_dspy(), dspy.Tool(cast("Any", agreed))):
        tool(by=sent)
    assert seen == [sent, sent]
    assert paid == [(9000, "Eve", "from-the-model")] * 2
    with pytest.raises(InvalidToolDecl, match="more than JSON can show") as caught:
        # an agent of somebody's own gives Python values
        cast("Any", agreed.func)(by=Hiding(eur=9000, to="Eve", key=pydantic.SecretStr("x")))
    assert (caught.value.code, caught.value.tool) == ("confirmation_failed", "send")
    assert "Give the tool the arguments as JSON" in str(caught.value.fix)
    assert len(paid) == 2


def test_an_agent_runs_and_asks_nothing_that_does_not_fit():
    """confirmation: An agent's tool shows the JSON that the model sent."""

    def small(eur: int) -> int:
        assert eur < 100, "too much"
        return eur

    def send(eur: Annotated[int, pydantic.AfterValidator(small)]) -> int:
        return eur

    asked: list[Any] = []

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        asked.append(args)
        return True

    [tool] = ToolDecls([ToolDecl.of(send, requires_confirmation=True)]).confirmed_by(ask).to_dspy()
    with pytest.raises(ValueError, match="too much"):
        tool(eur=9000)
    assert asked == []
    assert tool(eur=9) == 9
    assert len(asked) == 1


def test_a_question_steers_no_terminal():
    """rendering: A question to a person steers no terminal."""

    def send(to: str) -> None:
        raise AssertionError

    def policy(args: dict[str, Any]) -> Confirmation:
        return Confirmation(f"Send it?\nTo {args['to']}")

    decls = ToolDecls([ToolDecl.of(send, requires_confirmation=policy)])
    args = {"to": "Eve\x1b[1A\x1b[2K\r\u202eadA 東京"}
    seen: list[str] = []

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        seen.append(hint)
        return False

    [request] = ToolCalls([{"name": "send", "args": args}]).awaiting_confirmation(decls)
    with pytest.raises(PermissionError):
        decls.confirmed_by(ask).to_dspy()[0](**args)
    assert request.call.args == args
    assert {request.hint, *seen} == {"Send it?\nTo Eve\\x1b[1A\\x1b[2K\\r\\u202eadA 東京"}


def test_defaults_that_have_no_hash_or_are_fields_are_filled_in_too():
    """confirmation: What the function fills in is shown, and runs."""

    def tag(tags: list[str] = ["x"], n: int = pydantic.Field(default=2)) -> str:  # noqa: B006  (as people write it)
        return f"{tags} {n}"

    assert ToolDecl.of(tag).to_dspy()() == "['x'] 2"

    def total(a: int = pydantic.Field(default=2), b: int = pydantic.Field(default_factory=lambda: 3)) -> int:
        return a + b

    assert ToolDecl.of(total).to_dspy()() == 5
    assert cast("Any", ToolDecl.of(total))(b=1) == 3


def test_a_request_has_an_id_of_its_own_call():
    """confirmation: An old button decides nothing new."""
    decls = ToolDecls([ToolDecl.of(send, requires_confirmation=True)])

    def request_of(**args: Any) -> ToolCall:
        [request] = ToolCalls([{"id": "c", "name": "send", "args": args}]).awaiting_confirmation(decls)
        return request

    first = request_of(to="Ada", amount=5)
    assert first.id == request_of(amount=5.0, to="Ada").id
    assert request_of(to="Ada").id == request_of(to="Ada", amount=1000).id
    assert len({first.id, request_of(to="Eve", amount=5).id, request_of(to="Ada", amount=9000).id}) == 3
    with pytest.raises(InvalidHistory) as caught:
        ToolCalls([{"id": "c", "name": "send", "args": {"to": "Eve"}}]).run(decls, {first.id: True})
    assert caught.value.code == "unknown_decision"


def test_an_approval_is_known_of_the_object_alone():
    """confirmation: An approval is never saved."""
    decls = ToolDecls([ToolDecl.of(send, requires_confirmation=True)])
    [request] = ToolCalls([{"name": "send", "args": {"to": "Ada"}}]).awaiting_confirmation(decls)
    approved = request.approved()
    assert approved.execute(decls) == "sent 1000 to Ada"
    copies = [
        ToolCall.model_validate_json(approved.model_dump_json()),
        pickle.loads(pickle.dumps(approved)),  # noqa: S301
        approved.model_copy(),
        copy.deepcopy(approved),
        request,
        request.call,
        *ToolCalls([approved.model_dump()]),
    ]
    approved.args["amount"] = 9000
    for each in [*copies, approved]:
        with pytest.raises(SigadaptError):
            each.execute(decls)


def test_requests_hold_the_words_of_their_turn_once():
    """confirmation: Requests of a long turn stay small."""
    turn = turn_of(text="T" * 10_000, state={"dialect": "anthropic", "items": ["s" * 10_000]})
    made: list[Any] = [{"id": f"c{number}", "name": "pay", "args": {}} for number in range(40)]
    decl = ToolDecl("pay", requires_confirmation=True)
    requests = ToolCalls(tool_calls=made, turn=turn).awaiting_confirmation(decl)
    assert len(requests.model_dump_json()) < 40_000
    assert {request.approved().turn.text for request in requests} == {turn.text}


def always(args: Any) -> bool:
    return True


@pytest.mark.parametrize("stricter", [True, always])
def test_a_policy_that_is_set_later_counts(stricter: Any):
    """confirmation: A policy that is set later counts."""
    asked: list[Any] = []

    def ask(name: str, args: Any, hint: str) -> bool:
        asked.append(args)
        return False

    lenient = ToolDecls([ToolDecl.of(send, requires_confirmation=over_hundred)]).confirmed_by(ask)
    for decl in (
        ToolDecl.of(lenient["send"], requires_confirmation=stricter),
        dataclasses.replace(lenient["send"], requires_confirmation=stricter),
    ):
        with pytest.raises(PermissionError):
            decl.to_dspy()(to="Ada", amount=5)
        with pytest.raises(PermissionError):
            ToolCall(id="c", name="send", args={"to": "Ada", "amount": 5}).execute([decl])
    assert len(asked) == 4


def test_no_decorator_copies_that_a_function_asks():
    """confirmation: No decorator copies that a function asks first."""
    asks = ToolDecls([ToolDecl.of(send, requires_confirmation=True)]).confirmed_by(agrees)["send"].func
    assert asks is not None

    @functools.wraps(asks)
    def logged(**args: Any) -> Any:
        return send(**args)

    tool = ToolDecl.of(logged, requires_confirmation=True).to_dspy()
    with pytest.raises(InvalidToolDecl, match="without asking anybody"):
        tool(to="Ada")


def test_a_confirmed_tool_that_was_pickled_still_asks():
    """confirmation: An agent's tool asks first."""
    decls = ToolDecls([ToolDecl.of(send, requires_confirmation=True)]).confirmed_by(refuses)
    loaded = pickle.loads(pickle.dumps(decls))  # noqa: S301
    with pytest.raises(PermissionError):
        loaded.to_dspy()[0](to="Ada")
