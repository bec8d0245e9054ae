"""Events of a history and the ids in it: what was saved of a turn gives the request that the turn sent."""

import functools
import json
import operator
from collections.abc import Sequence
from typing import Any

import pytest
from budgets import share
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from provider_rules import refusal
from sending import ROUTES, Json, history, rows, send
from support import turn_of

from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolResult, ToolResults
from sigadapt.errors import InvalidHistory


def calls_of(*cities: str, ids: Sequence[str] = ("call_0", "call_1")) -> ToolCalls:
    """What a server says that counts every turn's calls from 0."""
    made = zip(ids, cities, strict=False)
    return ToolCalls([ToolCall(id=each, name="get_weather", args={"city": city}) for each, city in made])


def sent(*events: Json, **inputs: Any) -> Any:
    given: Any = {"question": None, **inputs}
    return send(history=history(*events), **given).body["messages"]


def told(rows: list[Any]) -> list[str]:
    """The conversation in short: who says what."""
    short: list[str] = []
    cities: dict[str, str] = {}
    for row in rows:
        if row["role"] == "tool":
            short.append(f"{cities[row['tool_call_id']]} gave {row['content']}")
        elif row.get("tool_calls"):
            cities = {
                c["id"]: json.loads(c["function"]["arguments"]).get("city", "?") for c in row["tool_calls"]
            }
            short.append(f"calls {', '.join(cities.values())}")
        elif row["role"] != "system":
            short.append(row["role"])
    return short


ONE, TWO = calls_of("Paris"), calls_of("Rome")
R_ONE, R_TWO = ToolResults.of(ONE, ["18 C"]), ToolResults.of(TWO, ["25 C"])
ASKED, FIRST = ["user"], ["calls Paris", "Paris gave 18 C"]
SECOND, ANSWERED = ["calls Rome", "Rome gave 25 C"], ["assistant"]
Q: dict[str, Any] = {"question": "Weather?"}
BAD = {
    "id": "call_9",
    "name": "get_weather",
    "arguments": "{",
    "index": 0,
    "code": "invalid_json",
    "message": "cut",
}
KEPT = {"tool_calls": [], "invalid": [BAD]}
TOLD = ["calls ?", "? gave ERROR: invalid_json: cut\nYou sent: {"]
BOTH = {**Q, "results": R_ONE + R_TWO}
EVENTS: dict[str, tuple[list[Json], list[str]]] = {
    "a continuing turn": (
        [{**Q, "results": R_ONE, "answer": "18.", "calls": None}],
        [*ASKED, *FIRST, *ANSWERED],
    ),
    "results alone": ([Q, {"results": R_ONE}], [*ASKED, *FIRST]),
    "a whole run, each turn as inputs and outputs": (
        [
            {**Q, "answer": None, "calls": ONE},
            {"results": R_ONE, "calls": TWO},
            {"results": R_TWO, "answer": "Both."},
        ],
        [*ASKED, *FIRST, *SECOND, *ANSWERED],
    ),
    "the same with the question in each": (
        [{**Q, "calls": ONE}, {**Q, "results": R_ONE, "calls": TWO}, {**Q, "results": R_TWO, "answer": "B."}],
        [*ASKED, *FIRST, *ASKED, *SECOND, *ASKED, *ANSWERED],
    ),
    "results, and a bad call alone": ([{**Q, "results": R_ONE, "calls": KEPT}], [*ASKED, *FIRST, *TOLD]),
    "results of two turns": ([{**BOTH, "answer": "Both."}], [*ASKED, *FIRST, *SECOND, *ANSWERED]),
    "results of two turns, the last with its calls": ([{**BOTH, "calls": TWO}], [*ASKED, *FIRST, *SECOND]),
    "the same call in each turn": (
        [{**Q, "calls": ONE}, {"results": R_ONE, "calls": ONE}, {"results": R_ONE, "answer": "Still 18."}],
        [*ASKED, *FIRST, *FIRST, *ANSWERED],
    ),
    "the same call twice": ([{**Q, "results": R_ONE + R_ONE, "calls": ONE}], [*ASKED, *FIRST, *FIRST]),
    "an input of rounds": ([{**Q, "score": {"rounds": 3, "won": 2}, "answer": "Yes."}], [*ASKED, *ANSWERED]),
}


@pytest.mark.parametrize(("events", "expected"), EVENTS.values(), ids=EVENTS)
def test_an_event_sends_what_its_turn_sent(events: list[Json], expected: list[str]):
    """conversations: An event of a continuing turn sends its round."""
    rows = sent(*events)
    assert told(rows) == expected
    assert sent(*history(*events, saved=True).messages) == rows


def test_the_request_answers_the_last_calls_of_a_history():
    """conversations: An event of a continuing turn sends its round."""
    assert told(sent({**Q, "results": R_ONE, "calls": TWO}, results=R_TWO)) == [*ASKED, *FIRST, *SECOND]


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
        sent({**Q, **event})
    assert caught.value.code == "unreadable_history"


def test_a_demonstration_goes_without_its_history_on_record() -> None:
    """evaluation: A demonstration is sent as a turn with calls."""
    before = history({**Q, "answer": "18."})
    got = send(demos=[{**Q, "history": before, "answer": "25."}], question="?")
    assert "18." not in str(got.body)
    assert got.whats == [("/messages", "dropped")]
    assert send(demos=[{**Q, "history": history(), "answer": "25."}], question="?").whats == []


def test_an_example_of_a_continuing_turn_sends_its_round():
    """conversations: An event of a continuing turn sends its round."""
    demos = [{**Q, "results": R_ONE, "answer": "18."}, {**Q, "results": R_ONE, "calls": TWO}]
    rows = sent(demos=demos, question="?")
    assert told(rows)[:-2] == [*ASKED, *FIRST, *ANSWERED, *ASKED, *FIRST, "calls Rome"]
    made = [call["id"] for row in rows for call in row.get("tool_calls") or ()]
    assert len({*made}) == 3, "an example's ids are its own"


@pytest.mark.parametrize("calls", ["get_weather(Paris)", [{"name": "get_weather", "arg": {}}], 5], ids=str)
def test_an_example_whose_calls_are_none_is_refused(calls: Any):
    with pytest.raises(InvalidHistory, match="cannot be read") as caught:
        sent(demos=[{**Q, "calls": calls}])
    assert (caught.value.code, caught.value.field) == ("unreadable_history", "calls")


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
        typed = ToolCalls(calls, turn=turn_of(text=f"turn {number}"))
        values = [f"value {number}.{place}" for place in range(len(typed))]
        late = draw(st.permutations(list(zip(typed, values, strict=True))))
        results = [ToolResult(call_id=c.id, name=c.name, value=value) for c, value in late]
        made.append((ToolResults.of(typed, results), values))
    return made


@settings(max_examples=share(100), suppress_health_check=[HealthCheck.too_slow])
@given(turns(), st.sampled_from(ROUTES), st.booleans())
def test_any_ids_go_out_unique_and_come_back_paired(
    rounds: list[tuple[ToolResults, list[str]]], route: tuple[str, str], as_events: bool
):
    """
    conversations: An id that comes again in a later turn goes out under an alias
    conversations: Ids are mapped to what a provider accepts
    """
    every = [results for results, _ in rounds]
    before = [each.model_dump_json() for each in every]
    events = [{**Q, "results": each, "answer": "So."} for each in every] if as_events else []
    results = None if as_events else functools.reduce(operator.add, every)
    sent = send(*route, history=history(*events), results=results, **Q)
    body = sent.body
    if route[1] == "auto":
        assert refusal(route[0], body, {}) is None
    text = json.dumps(body)
    places = [text.index(value) for _, values in rounds for value in values]
    assert places == sorted(places)
    if route[0] == "openai":
        ids = [call["id"] for row in rows(body) for call in row.get("tool_calls") or ()]
        given_ids = [call.id for each in every for call in each.rounds[0].calls.in_order()]
        renamed = [change for change in sent.changes if change.where.endswith("/id")]
        assert len(renamed) == sum(new != old for new, old in zip(ids, given_ids, strict=True)), "on record"
    assert [each.model_dump_json() for each in every] == before, "the given results are not changed"
