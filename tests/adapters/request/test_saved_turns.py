"""Saved turns: what a model may have sent is saved and sent again, and what nobody sent is refused."""

import copy
import itertools
import json
import pickle
from typing import Any

import dspy
import pytest
from budgets import share
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_places import places, put, take_out
from sending import ROUTES, rows, send
from support import ENGINES, Talk, turn_of
from wire_bodies import said_text, serving
from wire_matrix import COLUMNS, REASONING, declared

import sigadapt
from sigadapt import (
    SigadaptError,
    ToolCall,
    ToolCalls,
    ToolDecls,
    ToolResult,
    ToolResults,
    choice_from_response,
)
from sigadapt.errors import InvalidHistory


def ask(lm: Any, **inputs: Any) -> Any:
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
        return dspy.Predict(Talk)(tools=ToolDecls([declared("get_weather")]), **inputs)


texts = st.text(st.sampled_from('aé\ud83d\ude00😀"\\$'), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(values)
def test_any_json_value_can_be_written(value: Any):
    """conversations: A text with half of a surrogate pair is read with U+FFFD."""
    whole = ToolResult(call_id="c", name="f", value=value).value
    assert json.loads(json.dumps(whole, ensure_ascii=False).encode()) == whole
    assert ToolResult(call_id="c", name="f", value=whole).value == whole


@st.composite
def halved(draw: st.DrawFn) -> ToolResults:
    """A turn as it is read, with half a pair anywhere in it, and its results."""
    name = f"f{draw(texts)}"
    args, bad = draw(st.dictionaries(texts, values, max_size=2)), draw(texts)
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": draw(texts), "signature": "s"},
        {"type": "text", "text": draw(texts), "citations": [draw(values)]},
        {"type": "tool_use", "id": f"a{draw(texts)}", "name": name, "input": args},
        {"type": "tool_use", "id": f"b{draw(texts)}", "name": name, "input": bad},
    ]
    calls = choice_from_response({"type": "message", "role": "assistant", "content": content}).tool_calls
    assert calls is not None
    assert (len(calls), len(calls.invalid)) == (1, 1)
    return ToolResults.of(calls, [draw(values)])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(halved())
def test_a_turn_with_half_a_pair_is_saved(results: ToolResults):
    """conversations: A text with half of a surrogate pair is read with U+FFFD."""
    calls = results.rounds[0].calls
    for kind, value in (
        (ToolCalls, calls),
        (ToolResults, results),
        (ToolCall, calls[0]),
        (type(calls.turn), calls.turn),
    ):
        assert kind.model_validate_json(value.model_dump_json()) == value
        assert kind.model_validate(json.loads(json.dumps(value.model_dump()))) == value
        assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301  (our own bytes)
    event = {"question": "q", "calls": calls, "results": results}
    saved = dspy.History.model_validate_json(dspy.History(messages=[event]).model_dump_json()).messages[0]
    assert ToolResults.model_validate(saved["results"]) == results


HALF = "half \ud83d"


@pytest.mark.parametrize("column", COLUMNS)
def test_half_a_pair_is_sent_as_it_was_read(column: str):
    """conversations: A text with half of a surrogate pair is read with U+FFFD."""
    call = ToolCall(id="c\ud83d", name="get_weather", args={"city": "Paris"}, turn=turn_of(text=HALF))
    calls = ToolCalls([call])
    for value in (HALF, {"a": HALF}, [HALF]):
        event = {"question": "q", "calls": calls, "results": ToolResults.of(calls, [value])}
        with serving(column, said_text(COLUMNS[column].form)) as served:
            lm = served.lm()
            ask(lm, history=dspy.History(messages=[event]))
        assert json.dumps(served.sent[0], ensure_ascii=False).count("half \ufffd") == 2
        changes: Any = lm.history[-1].get("changes", ())
        assert [each.what for each in changes if "/content" in each.where] == ["lowered"]


@st.composite
def mutations(draw: st.DrawFn, saved: Any) -> Any:
    """The same with one part of it taken out, or replaced by what does not belong there."""
    changed = copy.deepcopy(saved)
    place = draw(st.sampled_from([*places(changed)]))
    if draw(st.booleans()):
        take_out(changed, place)
    else:
        put(changed, place, draw(st.sampled_from([None, 5, "x", "", [], {}, "\ud83d", [1, 2], {"a": 1}])))
    return changed


def heard(column: str) -> Any:
    """What was saved of a turn with reasoning, its calls and its results."""
    with serving(column, REASONING.cells[column].heard) as served:
        calls = ask(served.lm(), question="Weather?").calls
    results = ToolResults.of(calls, ["sunny"] * len(calls))
    return json.loads(
        json.dumps({"question": "q", "calls": calls.model_dump(), "results": results.model_dump()})
    )


@pytest.mark.slow
@pytest.mark.parametrize("column", ["openai", "responses", "anthropic", "gemini", "anthropic-litellm"])
def test_any_saved_turn_is_read_or_refused(column: str):
    """conversations: A saved turn is read, or refused with the reason."""
    saved = heard(column)

    @settings(max_examples=share(150))
    @given(mutations(saved), st.sampled_from(ROUTES))
    def holds(event: Any, route: tuple[str, str]) -> None:
        try:
            body = send(*route, history={"messages": [event]}, question=None).body
        except SigadaptError as error:
            assert error.code  # noqa: PT017  (any other error fails the test)
        else:
            made = [call["id"] for row in rows(body) for call in row.get("tool_calls") or () if "id" in call]
            answered = [row["tool_call_id"] for row in rows(body) if row.get("role") == "tool"]
            assert made == answered or route[0] == "ollama"

    holds()


STATES: list[Any] = [
    {},
    {"blocks": []},
    {"dialect": "anthropic"},
    {"dialect": 5, "blocks": []},
    {"dialect": "anthropic", "items": []},
    {"dialect": "anthropic", "blocks": {}},
    {"dialect": "anthropic", "blocks": [5]},
    {"dialect": "anthropic", "blocks": [], "ids": [5]},
    {"dialect": "anthropic", "blocks": [], "ids": "c"},
    {"dialect": "anthropic", "blocks": [], "lost": [5]},
    {"dialect": "anthropic", "blocks": [], "fields": 5},
]
WRONG: dict[str, Any] = {"dialect": "anthropic", "blocks": [{}], "ids": ["c"]}
CASES: list[Any] = [(WRONG, "auto"), *itertools.product(STATES, ENGINES)]


@pytest.mark.parametrize(("state", "engine"), CASES, ids=ascii)
def test_a_state_that_is_none_is_refused(state: Any, engine: str):
    """conversations: A saved turn is read, or refused with the reason."""
    calls = ToolCalls([ToolCall(id="c", name="get_weather", args={}, turn=turn_of(state=state))])
    with pytest.raises(InvalidHistory) as caught:
        send("anthropic", engine, results=ToolResults.of(calls, ["x"]))
    assert caught.value.code == "unreadable_state"
    assert caught.value.fix
