"""Conversations: any sequence of turns survives JSON, goes to any provider, and never leaves unpaired."""

import contextlib
import datetime as dt
import enum
import json
import pickle
from typing import Any

import dspy
import pydantic
import pytest
from budgets import share
from dspy.adapters import utils
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sending import WIRES, history, members, send
from support import ENGINES, Talk, turn_of
from wire_bodies import part, said_text, serving
from wire_matrix import COLUMNS, REASONING, declared

import sigadapt
from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolDecls, ToolResult, ToolResults

TOOLS = ToolDecls([declared("get_weather")])


def ask(lm: Any, **inputs: Any) -> Any:
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
        return dspy.Predict(Talk)(tools=inputs.pop("tools", TOOLS), **inputs)


words = st.text(min_size=1, max_size=20).filter(str.strip)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.text(max_size=8), json_values, max_size=3)
signature = st.text("abcdefgh", min_size=4, max_size=8)


@st.composite
def states(draw: Any, ids: list[str]) -> dict[str, Any] | None:
    """A provider's state for a turn with these calls, as the readers make it."""
    token = draw(signature)
    thought = draw(words)
    kind = draw(st.sampled_from(["none", "anthropic", "gemini", "openai-responses"]))
    if kind == "none":
        return None
    table: dict[str, list[Any]] = {
        "gemini": [{"functionCall": {}, "thoughtSignature": token}, *[{"functionCall": {}}] * (len(ids) - 1)],
        "anthropic": [
            {"type": "thinking", "thinking": thought, "signature": token},
            *[{"type": "tool_use"}] * len(ids),
        ],
        "openai-responses": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": token},
            *[{"type": "function_call"}] * len(ids),
        ],
    }
    return {"dialect": kind, "blocks": table[kind], "ids": ids}


@st.composite
def rounds(draw: Any, number: int) -> ToolResults:
    """A turn of calls, good and kept bad ones, and what they gave."""
    ids = [f"call_{number}_{place}" for place in range(draw(st.integers(1, 3)))]
    turn = turn_of(text=draw(st.none() | words), reasoning=draw(st.none() | words), state=draw(states(ids)))
    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    for place, call_id in enumerate(ids):
        if place and draw(st.integers(0, 4)) == 0:
            flaw: Any = {"code": "invalid_json", "message": "is no JSON", "arguments": draw(words)}
            bad.append(InvalidToolCall(id=call_id, name="get_weather", index=place, **flaw))
        else:
            good.append(
                ToolCall(id=call_id, name="get_weather", args=draw(arguments), index=place, turn=turn)
            )
    calls = ToolCalls(tool_calls=good, invalid=tuple(bad), turn=turn)
    values = [draw(json_values) for _ in good]
    return ToolResults.of(calls, values, errors=[draw(st.booleans()) for _ in good])


@st.composite
def histories(draw: Any) -> list[dict[str, Any]]:
    """Events: a question with a text answer, or a question with calls and their results."""
    events: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 4))):
        event: dict[str, Any] = {"question": draw(words)} if draw(st.booleans()) or number == 0 else {}
        if draw(st.booleans()):
            results = draw(rounds(number))
            event |= {"calls": results.rounds[0].calls, "results": results}
        elif event:
            event["answer"] = draw(words)
        if event:
            events.append(event)
    return events


@pytest.mark.slow
@settings(max_examples=share(150), suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.sampled_from(WIRES))
def test_any_conversation_survives_json(events: list[dict[str, Any]], wire: str):
    """conversations: Any sequence of turns survives JSON and gives the same request."""
    pickled = pickle.loads(pickle.dumps(events))  # noqa: S301  (its own bytes)
    first, loaded, copied = (
        send(wire, history=each, tools=TOOLS, options={"orphans": "heal"})
        for each in (history(*events), history(*events, saved=True), history(*pickled))
    )
    assert first.body == loaded.body == copied.body
    assert first.whats == loaded.whats == copied.whats


OBJECTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"value": {"a": 1}}, {"a": 1}),
    ({"value": {"a": 1}, "is_error": True}, {"error": {"a": 1}}),
    ({"value": {"a": 1}, "is_mcp": True}, {"output": {"a": 1}}),
    *(({"value": value}, {"result": value}) for value in ("", "{}", None, [1], 12, '{"a":1}')),
]


@pytest.mark.parametrize(("result", "expected"), OBJECTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_result_is_an_object_for_gemini(engine: str, result: dict[str, Any], expected: dict[str, Any]):
    """toolsets: A result that is no object becomes one."""
    results = [ToolResult.model_validate({"call_id": "c", "name": "f", **result})]
    calls = ToolCalls([{"id": "c", "name": "f", "args": {}}])
    body = send("gemini", engine, results=ToolResults.of(calls, results)).body
    assert members(body["contents"], "response") == [expected]


@settings(max_examples=share(100))
@given(rounds(0))
def test_calls_and_results_survive_json(results: ToolResults):
    """conversations: Any sequence of turns survives JSON and gives the same request."""
    calls = results.rounds[0].calls
    assert ToolCalls.model_validate_json(calls.model_dump_json()) == calls
    assert ToolResults.model_validate_json(results.model_dump_json()) == results


def test_what_react_rebuilds_keeps_the_turn():
    """conversations: What must survive rides on each call."""
    turn = turn_of(text="Let me look.", state={"dialect": "anthropic", "blocks": []})
    call = ToolCall(id="call_1", name="get_weather", args={}, turn=turn)
    rebuilt = dspy.ToolCalls(tool_calls=[call])
    assert ToolCalls.model_validate(rebuilt).turn == turn


ODD_NAMES = ["files.read", "read files", "x" * 80, "läs_fil", "files_read", "files/read", "9lives", "日本"]


@pytest.mark.parametrize("column", COLUMNS)
def test_names_travel_through_a_conversation(column: str):
    """
    conversations: Names are aliased on the way out and restored on the way in
    request-shaping: Declarations, choice, history and results share the alias
    """
    form = COLUMNS[column].form
    tools = ToolDecls([declared(name) for name in ODD_NAMES])
    calls = ToolCalls(
        tool_calls=[
            ToolCall(id=f"call_{number}", name=name, args={"city": "Paris"}, index=number)
            for number, name in enumerate(ODD_NAMES)
        ]
    )
    # On the other wires, a choice of one tool leaves out the others.
    chosen = {"tool_choice": ODD_NAMES[0]} if form in ("responses", "anthropic", "gemini") else {}
    event = {"question": "Read.", "calls": calls, "results": ToolResults.of(calls, ["ok"] * len(calls))}
    forced = contextlib.suppress(sigadapt.errors.MissingToolCalls)
    with serving(column, said_text(form)) as served, forced:
        ask(served.lm(), history=history(event), tools=tools, config=chosen)
    sent = names_of(form, served.sent[0])
    assert len(set(sent)) == len(ODD_NAMES)
    text = json.dumps(part("said", form, served.sent[0]))
    assert all(f'"{name}"' in text for name in sent)
    choices = {key: value for key, value in part("tools", form, served.sent[0]).items() if key != "tools"}
    assert not chosen or f'"{sent[0]}"' in json.dumps(choices)
    with serving(column, heard_call(form, sent[0])) as served:
        out = ask(served.lm(), question="Read.", tools=tools)
    assert [call.name for call in out.calls] == [ODD_NAMES[0]]


def heard_call(form: str, name: str) -> Any:
    """A turn that calls a tool by the name it went out under."""
    said = json.dumps(REASONING.cells[{"chat": "openai"}.get(form, form)].heard)
    return json.loads(said.replace("get_weather", name))


def names_of(form: str, sent: dict[str, Any]) -> list[str]:
    if form == "gemini":
        (tools,) = sent["tools"]
        return [tool["name"] for tool in tools.get("functionDeclarations") or tools["function_declarations"]]
    if form == "bedrock":
        return [tool["toolSpec"]["name"] for tool in sent["toolConfig"]["tools"]]
    return [tool.get("function", tool)["name"] for tool in sent["tools"]]


class Note(pydantic.BaseModel):
    when: dt.date


class Level(enum.Enum):
    HIGH = "high"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.dates()
    | st.uuids()
    # DSPy's encoder leaves these to pydantic as well
    | st.just(Note(when=dt.date(2026, 1, 2)))
    | st.just(Level.HIGH),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=6,
)


def said(value: Any) -> str:
    """The text of a result, as it is sent."""
    calls = ToolCalls([{"id": "c", "name": "f", "args": {}}])
    return send(results=ToolResults.of(calls, [value]), options={"control_tokens": "keep"}).body["messages"][
        -1
    ]["content"]


@example(value=6.103515625e-05)
@settings(max_examples=share(100))
@given(value=values)
def test_a_value_is_the_text_that_dspy_makes_of_it(value: Any) -> None:
    """conversations: A value is sent as text or compact JSON."""
    try:
        plain = value if isinstance(value, str) else utils.serialize_for_json(value)
    except Exception as error:  # noqa: BLE001  (whatever DSPy refuses)
        with pytest.raises(type(error)):
            said(value)
        return
    text = said(value)
    if isinstance(plain, str):
        assert text == plain
    else:  # numbers may be written otherwise
        assert compact(json.loads(text)) == compact(plain)
        assert text.count(" ") == compact(plain).count(" ")


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@settings(max_examples=share(30))
@given(words=st.sets(st.text(), max_size=8))
def test_the_members_of_a_set_have_one_order(words: set[str]) -> None:
    """conversations: A value is sent as text or compact JSON."""
    assert said({"tags": words}) == compact({"tags": sorted(words, key=repr)})
