"""ToolCall, InvalidToolCall and ToolCalls: what they hold, and that nothing is lost out and back."""

import json
import pickle
from typing import Any

import dspy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import json_values, turn_of

from sigadapt import InvalidToolCall, ToolCall, ToolCalls, choice_from_response
from sigadapt.errors import InvalidHistory

turns = st.builds(
    turn_of,
    text=st.none() | st.text(),
    reasoning=st.none() | st.text(),
    state=st.none() | st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text())),
)


@st.composite
def collections(draw: st.DrawFn) -> ToolCalls:
    """Any ToolCalls an answer can give: good and bad calls in one provider order, one turn for all."""
    turn = draw(turns)
    args = st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans()))
    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    for index in range(draw(st.integers(0, 4))):
        name = draw(st.text(min_size=1))
        if draw(st.booleans()):
            call = {"id": f"call_{index}", "name": name, "args": draw(args), "index": index, "turn": turn}
            good.append(ToolCall.model_validate(call))
        else:
            bad.append(
                InvalidToolCall(
                    id=f"call_{index}",
                    name=draw(st.none() | st.just(name)),
                    arguments=draw(st.text()),
                    index=index,
                    code="invalid_json",
                    message="not JSON",
                    path=draw(st.none() | st.just("/a")),
                )
            )
    return ToolCalls(tool_calls=good, invalid=tuple(bad), turn=turn)


@given(collections())
def test_calls_survive_json_and_pickle(calls: ToolCalls) -> None:
    """tool-call-outputs: Calls survive JSON and pickle.
    tool-call-outputs: A call taken alone keeps its turn.

    tool-call-outputs: A collection is over its good calls.
    """
    assert ToolCalls.model_validate_json(calls.model_dump_json()) == calls
    assert ToolCalls.model_validate(json.loads(json.dumps(calls.model_dump()))) == calls
    assert pickle.loads(pickle.dumps(calls)) == calls  # noqa: S301  (our own bytes)
    for call in calls:
        assert ToolCall.model_validate_json(call.model_dump_json()) == call
        assert call.turn == calls.turn
    assert len(calls) == len(calls.tool_calls) == len(list(calls))
    assert bool(calls) is bool(calls.tool_calls or calls.invalid)
    assert [calls[n] for n in range(len(calls))] == calls.tool_calls


def test_dspy_takes_the_calls_as_its_own() -> None:
    """tool-call-outputs: DSPy's modules take the calls as they are."""
    turn = turn_of(text="Let me look.", state={"signature": "abc"})
    calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="now", args={})], turn=turn)
    assert isinstance(calls, dspy.ToolCalls)
    assert dspy.ToolCalls.model_validate(calls) is calls
    results = dspy.ToolCallResults.from_tool_calls_and_values(calls, ["noon"])
    assert results.tool_call_results[0].call_id == "call_1"
    # What ReActV2 does: a new collection of the same single calls.
    rebuilt = dspy.ToolCalls(tool_calls=list(calls))
    assert isinstance(rebuilt.tool_calls[0], ToolCall)
    assert ToolCalls.model_validate(rebuilt) == calls


@pytest.mark.parametrize("odd", [3, "f", [3], [None]])
def test_what_is_not_a_call_is_refused(odd: Any):
    """tool-call-outputs: What is no call is refused."""
    with pytest.raises(InvalidHistory, match="Give ToolCalls") as caught:
        ToolCalls(odd)
    assert caught.value.code == "unreadable_history"
    for saved in (odd, None, {"name": "f"}, {"tool_calls": odd}):
        with pytest.raises(pydantic.ValidationError):
            ToolCalls.model_validate(saved)


FORMS: list[Any] = [
    ToolCall(id="call_1", name="f", args={"a": 1}),
    dspy.ToolCalls.ToolCall(id="call_1", name="f", args={"a": 1}),
    {"id": "call_1", "name": "f", "args": {"a": 1}},
    {"name": "f", "args": {"a": 1}},
    {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_calls_are_taken_in_any_form(form: Any):
    """tool-call-outputs: ToolCalls takes calls in any form."""
    one = ToolCall(id="call_1", name="f", args={"a": 1})
    for several in (form, [form], (form,), iter([form])):
        calls = ToolCalls(several)
        assert list(calls) == [one]
        assert calls.invalid == ()
        assert ToolCalls.model_validate_json(calls.model_dump_json()) == calls
    assert ToolCalls(ToolCalls(form)) == ToolCalls(form)
    assert len(ToolCalls([])) == len(ToolCalls(())) == 0


def test_calls_without_usable_arguments_are_bad_ones():
    """tool-call-outputs: ToolCalls takes calls in any form."""
    nameless = {"function": {"arguments": "{}"}}
    broken = {"id": "b", "function": {"name": "f", "arguments": '{"a":'}}
    calls = ToolCalls([broken, {"name": "g", "args": {}}, nameless])
    assert [call.name for call in calls] == ["g"]
    assert [(bad.id, bad.code, bad.index) for bad in calls.invalid] == [
        ("b", "invalid_json", 0),
        ("call_3", "missing_name", 2),
    ]
    assert ToolCalls(calls.in_order()).invalid == calls.invalid


def test_calls_read_as_they_would_be_written():
    """tool-call-outputs: A call is shown as it would be written."""
    calls = ToolCalls(
        [{"name": "get_weather", "args": {"city": "Paris", "days": 2}}, {"name": "now", "args": {}}]
    )
    assert str(calls) == "get_weather(city='Paris', days=2), now()"
    assert repr(calls) == f"ToolCalls([{calls}])"
    assert repr(calls[0]) == str(calls[0]) == "get_weather(city='Paris', days=2)"
    bad = ToolCalls([{"function": {"name": "f", "arguments": "{"}}])
    assert str(bad) == "<invalid_json: f({)>"
    long = ToolCalls([{"name": "f", "args": {"text": "x" * 10_000}}])
    assert len(str(long)) < 300


def test_a_collection_has_the_turn_of_its_calls_unless_it_has_its_own() -> None:
    """tool-call-outputs: A call taken alone keeps its turn."""
    call = ToolCall(id="c", name="f", args={}, turn=turn_of(text="said"))
    for fields, text in (({}, "said"), ({"turn": turn_of(text="its own")}, "its own")):
        assert ToolCalls.model_validate({"tool_calls": [call], **fields}).turn.text == text


ARGS = {"a": 1, "b": {"c": [1.5, True, None]}}
TEXT = '{ "b": {"c": [1.5, true, null]},  "a": 1 }'


def theirs(call_id: str | None = "c1", name: str = "add", args: Any = ARGS) -> dspy.ToolCalls:
    return dspy.ToolCalls(tool_calls=[dspy.ToolCalls.ToolCall(id=call_id, name=name, args=args)])


def written(call_id: str | None = "c1", name: str = "add", args: Any = ARGS) -> ToolCalls:
    return ToolCalls([{"name": name, "args": args, **({"id": call_id} if call_id else {})}])


def in_chat_form(call_id: str | None = "c1", name: str = "add", args: str = TEXT) -> ToolCalls:
    return ToolCalls(
        [{"function": {"name": name, "arguments": args}, **({"id": call_id} if call_id else {})}]
    )


def sent(text: str | None = "I add.", arguments: str = TEXT) -> Any:
    function = {"name": "add", "arguments": arguments}
    message = {"content": text, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    return choice_from_response(body).tool_calls


SAME: list[Any] = [theirs(), theirs(None), written(), written(None), in_chat_form(), in_chat_form(None)]
OTHER: list[Any] = [
    *(make(call_id="c2") for make in (theirs, written, in_chat_form)),
    *(make(name="sum") for make in (theirs, written, in_chat_form)),
    *(make(args={**ARGS, "a": 2}) for make in (theirs, written)),
    *(make(args={**ARGS, "a": True}) for make in (theirs, written)),
    *(make(args={"a": 1}) for make in (theirs, written)),
    ToolCalls([]),
    dspy.ToolCalls(tool_calls=[]),
    ToolCalls([*written(), *written("c2")]),
    ToolCalls([*written(), {"id": "x", "function": {"name": "add", "arguments": "{"}}]),
    [ToolCall(id="c1", name="add", args=ARGS)],
    None,
]


@pytest.mark.parametrize("gold", SAME, ids=range(len(SAME)))
@pytest.mark.parametrize("got", [sent(), written(), sent(None)], ids=["sent", "written", "sent without text"])
def test_calls_that_say_the_same_are_equal(gold: Any, got: Any):
    """tool-call-outputs: Calls that say the same are equal in both directions."""
    assert gold == got
    assert got == gold
    assert not gold != got  # noqa: SIM202  (both operators)
    assert gold.tool_calls[0] == got[0]
    assert got[0] == gold.tool_calls[0]


@pytest.mark.parametrize("gold", OTHER, ids=range(len(OTHER)))
@pytest.mark.parametrize("got", [sent(), written()], ids=["sent", "written"])
def test_calls_that_differ_are_not_equal(gold: Any, got: Any):
    """tool-call-outputs: Calls that differ are not equal."""
    assert gold != got
    assert got != gold
    assert not gold == got  # noqa: SIM201  (both operators)


def test_what_models_sent_is_compared_whole():
    """tool-call-outputs: Calls that a model sent are equal only as a whole."""
    assert sent() == sent()
    assert sent() == ToolCalls.model_validate_json(sent().model_dump_json())
    assert sent() != sent(text="You add.")
    assert sent() != sent(arguments='{"a":1,"b":{"c":[1.5,true,null]}}')
    moved = sent()[0].model_copy(update={"turn": turn_of(text="Elsewhere.")})
    assert moved != sent()[0]


@given(st.text(min_size=1), st.dictionaries(st.text(), json_values))
def test_any_call_equals_dspys_of_the_same_content(name: str, args: dict[str, Any]):
    assert theirs("c1", name, args) == written("c1", name, args)
    assert written(None, name, args) == theirs("c1", name, args)
