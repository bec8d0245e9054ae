"""Events of a history and the ids in it: what was saved of a turn gives the request that the turn sent."""

import json
from collections.abc import Sequence
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Request, Route, Turn, lower, messages_of, plan_of, to_lm15
from support import LITELLM, NATIVE, Talk

import sigadapt
from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolResult, ToolResults
from sigadapt.errors import InvalidHistory

ADAPTER = sigadapt.ChatAdapter(tool_calling="native")


def get_weather(city: str) -> str:
    """Weather for a city."""
    raise AssertionError("a tool was executed")


def calls_of(*cities: str, ids: Sequence[str] = ("call_0", "call_1")) -> ToolCalls:
    """What a server says that counts every turn's calls from 0."""
    made = zip(ids, cities, strict=False)
    return ToolCalls([ToolCall(id=each, name="get_weather", args={"city": city}) for each, city in made])


def rows_of(*events: dict[str, Any], demos: Sequence[dict[str, Any]] = (), **inputs: Any) -> list[Any]:
    plan = plan_of(Talk)
    assert plan is not None
    given_inputs: dict[str, Any] = {"history": dspy.History(messages=list(events)), **inputs}
    return messages_of(ADAPTER, plan.text_signature, list(demos), given_inputs)


def city_in(arguments: str) -> str:
    return json.loads(arguments)["city"] if len(arguments) > 1 else "?"


def told(rows: list[Any]) -> list[str]:
    """The conversation in short: who says what."""
    short: list[str] = []
    for row in rows:
        if row["role"] == "tool":
            short.append(f"{row['tool_call_id']} gave {row['content']}")
        elif row.get("tool_calls"):
            made = (f"{c['id']} {city_in(c['function']['arguments'])}" for c in row["tool_calls"])
            short.append(f"calls {', '.join(made)}")
        elif row["role"] != "system":
            short.append(row["role"])
    return short


ONE, TWO = calls_of("Paris"), calls_of("Rome")
R_ONE, R_TWO = ToolResults.of(ONE, ["18 C"]), ToolResults.of(TWO, ["25 C"])
ASKED, FIRST = ["user"], ["calls call_0 Paris", "call_0 gave 18 C"]
SECOND, ANSWERED = ["calls call_0 Rome", "call_0 gave 25 C"], ["assistant"]
Q: dict[str, Any] = {"question": "Weather?"}
BAD = {
    "id": "call_9",
    "name": "get_weather",
    "arguments": "{",
    "index": 0,
    "code": "invalid_json",
    "message": "cut",
}

EVENTS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], list[str]]] = {
    "a continuing turn": (
        [{**Q, "results": R_ONE, "answer": "18.", "calls": None}],
        {},
        [*ASKED, *FIRST, *ANSWERED],
    ),
    "results alone": ([Q, {"results": R_ONE}], {}, [*ASKED, *FIRST]),
    "a turn that goes on, answered by the request": (
        [{**Q, "results": R_ONE, "calls": TWO}],
        {"results": R_TWO},
        [*ASKED, *FIRST, *SECOND],
    ),
    "a whole run, each turn as inputs and outputs": (
        [
            {**Q, "answer": None, "calls": ONE},
            {"results": R_ONE, "answer": None, "calls": TWO},
            {"results": R_TWO, "answer": "Both.", "calls": None},
        ],
        {},
        [*ASKED, *FIRST, *SECOND, *ANSWERED],
    ),
    "the same with the question in each": (
        [{**Q, "calls": ONE}, {**Q, "results": R_ONE, "calls": TWO}, {**Q, "results": R_TWO, "answer": "B."}],
        {},
        [*ASKED, *FIRST, *ASKED, *SECOND, *ASKED, *ANSWERED],
    ),
    "results, and a bad call alone": (
        [{**Q, "results": R_ONE, "calls": {"tool_calls": [], "invalid": [BAD]}}],
        {},
        [*ASKED, *FIRST, "calls call_9 ?", "call_9 gave invalid_json: cut\nYou sent: {"],
    ),
    "results of two turns": (
        [{**Q, "results": R_ONE + R_TWO, "answer": "Both."}],
        {},
        [*ASKED, *FIRST, *SECOND, *ANSWERED],
    ),
    "results of two turns, the last with its calls": (
        [{**Q, "results": R_ONE + R_TWO, "calls": TWO}],
        {},
        [*ASKED, *FIRST, *SECOND],
    ),
    "the same call in each turn": (
        [{**Q, "calls": ONE}, {"results": R_ONE, "calls": ONE}, {"results": R_ONE, "answer": "Still 18."}],
        {},
        [*ASKED, *FIRST, *FIRST, *ANSWERED],
    ),
    "the same call twice, both results with the second": (
        [{**Q, "results": R_ONE + R_ONE, "calls": ONE}],
        {},
        [*ASKED, *FIRST, *FIRST],
    ),
    "an input that has rounds of its own": (
        [{**Q, "score": {"rounds": 3, "won": 2}, "answer": "Yes."}],
        {},
        [*ASKED, *ANSWERED],
    ),
}


@pytest.mark.parametrize(("events", "inputs", "expected"), EVENTS.values(), ids=EVENTS)
def test_an_event_sends_what_its_turn_sent(
    events: list[dict[str, Any]], inputs: dict[str, Any], expected: list[str]
):
    """conversations: An event of a continuing turn sends its round."""
    rows = rows_of(*events, **inputs)
    assert told(rows) == expected
    saved = dspy.History.model_validate_json(dspy.History(messages=events).model_dump_json())
    assert rows_of(*saved.messages, **inputs) == rows


UNREADABLE: list[Any] = [
    {"results": {"rounds": 3}},
    {"results": {"rounds": [{}]}},
    {"results": {"rounds": [{"calls": {}, "results": []}]}},
    {"results": 5},
    {"calls": {"tool_calls": [{"id": 3, "name": "f", "args": {}}]}},
    {"calls": {"tool_calls": 3}},
    {"calls": [{"name": "get_weather", "args": {"city": "Paris"}}], "answer": "Sunny."},
    {"calls": {"tool_calls": [], "invalid": 5}},
    {"calls": {"tool_calls": [{"name": "f", "args": {}}], "turn": 5}},
    {"calls": {"tool_calls": [{"name": "f", "args": {}}], "tool_call_results": 5}},
]


@pytest.mark.parametrize("event", UNREADABLE, ids=str)
def test_what_cannot_be_read_of_a_history_is_refused(event: dict[str, Any]):
    """conversations: A saved turn is read, or refused with the reason."""
    with pytest.raises(InvalidHistory) as caught:
        rows_of({**Q, **event})
    assert caught.value.code == "unreadable_history"


def test_an_example_of_a_continuing_turn_sends_its_round():
    """conversations: An event of a continuing turn sends its round."""
    rows = rows_of(demos=[{**Q, "results": R_ONE, "answer": "18."}, {**Q, "results": R_ONE, "calls": TWO}])
    assert told(rows)[:-1] == [
        *["user", "calls demo_0_0 Paris", "demo_0_0 gave 18 C", "assistant"],
        *["user", "calls demo_1_0 Paris", "demo_1_0 gave 18 C"],
        "calls demo_1_1 Rome",
    ]


@pytest.mark.parametrize("calls", ["get_weather(Paris)", [{"name": "get_weather", "arg": {}}], 5], ids=str)
def test_an_example_whose_calls_are_none_is_refused(calls: Any):
    with pytest.raises(InvalidHistory, match="cannot be read") as caught:
        rows_of(demos=[{**Q, "calls": calls}])
    assert (caught.value.code, caught.value.field) == ("unreadable_history", "calls")


# ---- ids ----


def request_of(rows: list[Any]) -> Request:
    return {"model": "m", "messages": rows}


def ids_out(rows: list[Any]) -> list[str]:
    return [call["id"] for row in rows for call in row.get("tool_calls") or ()]


NATURAL = st.sampled_from(
    ["call_0", "call_1", "call_2", "", "demo_0_0", "call_0_00bdcdb7", "x" * 80, "a b", "ü"]
)


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[ToolResults, list[str]]]:
    """Rounds of calls with any ids, unique in a turn as ToolCalls makes them, and their values."""
    made: list[tuple[ToolResults, list[str]]] = []
    for number in range(draw(st.integers(1, 5))):
        own = draw(st.lists(NATURAL | st.text(max_size=3), min_size=1, max_size=3))
        flaw: Any = {"code": "invalid_json", "message": "no JSON", "arguments": "{"}
        calls: list[Any] = []
        for place, call_id in enumerate(own):
            if call_id and draw(st.integers(0, 4)) == 0:
                calls.append(InvalidToolCall(id=call_id, name="get_weather", index=place, **flaw))
            else:
                calls.append({"id": call_id, "name": "get_weather", "args": {}, "index": place})
        typed = ToolCalls(calls)
        ids = [call.id for call in typed.in_order()]
        blocks = [{"type": "tool_use"} for _ in ids]
        state = {"dialect": "anthropic", "blocks": blocks, "ids": ids}
        turn = Turn(text=f"turn {number}", state=state)
        typed = ToolCalls(
            tool_calls=[call.model_copy(update={"turn": turn}) for call in typed],
            invalid=typed.invalid,
            turn=turn,
        )
        values = [f"value {number}.{place}" for place in range(len(typed))]
        late = draw(st.permutations(list(zip(typed, values, strict=True))))
        results = [ToolResult(call_id=c.id, name=c.name, value=value) for c, value in late]
        made.append((ToolResults.of(typed, results), values))
    return made


@given(turns(), st.sampled_from([*NATIVE.values(), *LITELLM.values()]), st.booleans())
def test_any_ids_go_out_unique_and_come_back_paired(
    rounds: list[tuple[ToolResults, list[str]]], route: Route, as_events: bool
):
    """conversations: An id that comes again in a later turn goes out under an alias."""
    every = [results for results, _ in rounds]
    if as_events:
        rows = rows_of(*({**Q, "results": each} for each in every))
    else:
        joined = every[0]
        for each in every[1:]:
            joined += each
        rows = rows_of(**Q, results=joined)
    before = json.dumps(rows, default=str)
    sent = lower(request_of(rows), route)
    out = sent.request["messages"]
    ids = ids_out(out)
    assert len(set(ids)) == len(ids)
    assert all(len(each) <= route.ids.longest for each in ids)
    waiting: list[str] = []
    for row, given_row in zip(out, rows, strict=True):
        if row["role"] == "tool":
            assert row["tool_call_id"] == waiting.pop(0), "each result right after the turn with its call"
            assert row["result"] is given_row["result"]
        else:
            assert waiting == []
        if row.get("tool_calls"):
            waiting = [call["id"] for call in row["tool_calls"]]
            assert row["turn"].state["ids"] == waiting
    original, values = ids_out(rows), [value for _, given_values in rounds for value in given_values]
    back = dict(zip(ids, original, strict=True))
    assert [back[row["tool_call_id"]] for row in out if row["role"] == "tool"] == [
        row["tool_call_id"] for row in rows if row["role"] == "tool"
    ]
    assert [row["content"] for row in out if row["role"] == "tool" and not row["is_error"]] == values
    changed = [change for change in sent.changes if change.where.endswith("/id")]
    assert len(changed) == sum(new != old for new, old in back.items()), "on record"
    assert json.dumps(rows, default=str) == before, "the given request is not changed"
    assert to_lm15(sent.request, route).body.rows
