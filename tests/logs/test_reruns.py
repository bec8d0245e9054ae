"""Whole recorded conversations on another model, and where it leaves the record."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from internals import main
from logs.made_logs import CLOCK, WEATHER, log, model, result, turns, user

from sigadapt.errors import InvalidOption
from sigadapt.logs import Adopted, adopt, replay
from sigadapt.logs.reruns import Departure
from sigadapt.testing import Answer, Call, Failure, LoopbackProvider, Received, Reply

TAGS = ("Ulm", "Bern", "Gent")
TALKS = [line for tag in TAGS for line in log(turns(3, tag))]
ADOPTED = adopt(TALKS)


def follow(received: Received) -> Reply:
    """Answer as the record has it: call for the latest question, then say what the tool said."""
    last = received.body["messages"][-1]
    if last["role"] == "tool":
        return Answer(text="My own words.")
    tag, _, day = last["content"].partition(": weather on day ")
    return Answer(calls=[Call("get_weather", {"city": f"{tag}{day[:-1]}"})])


def err(place: str, reply: Reply) -> Any:
    """A model that answers otherwise where a text is the last question."""

    def script(received: Received) -> Reply:
        last = received.body["messages"][-1]
        return reply if last["role"] == "user" and last["content"].startswith(place) else follow(received)

    return script


def replayed(script: Any, adopted: Adopted = ADOPTED, **options: Any) -> tuple[Any, LoopbackProvider]:
    with LoopbackProvider(script) as provider:
        return replay(adopted, dspy.LM(**provider.lm_options("openai")), **options), provider


@pytest.mark.parametrize("match", ["strict", "by-call"])
def test_a_model_that_follows(match: Any) -> None:
    """logs: A model that calls as recorded follows every conversation"""
    run, provider = replayed(follow, match=match)
    assert (run.conversations, run.followed, run.left) == (3, 1.0, [])
    longest = max((received.body["messages"] for received in provider.received), key=len)
    said = [(message["role"], message["content"]) for message in longest if message["role"] != "assistant"]
    tag = str(said[0][1]).partition(":")[0]
    expected: list[Any] = []
    for day in range(3):
        expected += [("user", f"{tag}: weather on day {day}?"), ("tool", f"{day} C")]
    assert said == expected
    assert [message["content"] for message in longest if message["content"] == "My own words."] != []


CASES: dict[str, tuple[Reply, str]] = {
    "other arguments": (Answer(calls=[Call("get_weather", {"city": "x"})]), "other_arguments"),
    "an unknown tool": (Answer(calls=[Call("get_wether", {})]), "unknown_tool"),
    "a call that does not fit": (Answer(calls=[Call("get_weather", {"city": 7})]), "schema_mismatch"),
    "words": (Answer(text="I would rather not."), "none"),
    "an error": (Failure(400, "no"), "error"),
    "a second call": (
        Answer(calls=[Call("get_weather", {"city": "Bern1"}), Call("get_weather", {"city": "Ulm0"})]),
        "other_tool",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_where_a_model_leaves(case: str) -> None:
    """logs: Where a model leaves the record is said by code"""
    reply, code = CASES[case]
    run, _ = replayed(err("Bern: weather on day 1", reply))
    assert run.followed == pytest.approx(2 / 3)
    [departure] = run.left
    assert isinstance(departure, Departure)
    assert (departure.turn, departure.code) == (2, code)
    assert departure.expected == [{"name": "get_weather", "args": {"city": "Bern1"}}]
    assert departure.conversation in {row.conversation for row in ADOPTED.rows}
    for text in (str(run), run._repr_html_()):
        assert code in text
        assert "accura" not in text.lower()


def test_a_call_instead_of_words() -> None:
    """logs: Where a model leaves the record is said by code"""

    def chatty(received: Received) -> Reply:
        return (
            Answer(calls=[Call("get_weather", {"city": "again"})])
            if is_answered(received)
            else follow(received)
        )

    def is_answered(received: Received) -> bool:
        return received.body["messages"][-1]["role"] == "tool"

    run, _ = replayed(chatty)
    assert [departure.code for departure in run.left] == ["called_anyway"] * 3
    assert run.left[0].expected == "words"


TRIP = log(
    [
        user("Weather in Lima and Oslo, and the time?"),
        model(None, ("a", "get_weather", {"city": "Lima"})),
        result("a", "18 C"),
        model(None, ("b", "get_weather", {"city": "Oslo"})),
        result("b", "1 C"),
        model(None, ("c", "get_time", {"city": "Oslo"})),
        result("c", "10:00"),
        model("18 C, 1 C, 10:00."),
    ],
    [WEATHER, CLOCK],
)
ORDERS = {
    "swapped": [("get_weather", "Oslo"), ("get_weather", "Lima"), ("get_time", "Oslo")],
    "twice": [
        ("get_weather", "Lima"),
        ("get_weather", "Lima"),
        ("get_weather", "Oslo"),
        ("get_time", "Oslo"),
    ],
    "short": [("get_weather", "Lima"), ("get_time", "Oslo")],
}


def in_order(order: list[tuple[str, str]]) -> Any:
    def script(received: Received) -> Reply:
        done = sum(message["role"] == "tool" for message in received.body["messages"])
        if done == len(order):
            return Answer(text="18 C, 1 C, 10:00.")
        name, city = order[done]
        return Answer(calls=[Call(name, {"city": city})])

    return script


def test_calls_in_another_order() -> None:
    """logs: By call, a turn's calls come in any order"""
    adopted = adopt(TRIP)
    run, provider = replayed(in_order(ORDERS["swapped"]), adopted, match="by-call")
    assert run.followed == 1
    last = provider.received[-1].body["messages"]
    assert [message["content"] for message in last if message["role"] == "tool"] == ["1 C", "18 C", "10:00"]
    assert replayed(in_order(ORDERS["twice"]), adopted, match="by-call")[0].followed == 1
    [departure] = replayed(in_order(ORDERS["short"]), adopted, match="by-call")[0].left
    assert (departure.code, departure.expected) == (
        "none",
        [{"name": "get_weather", "args": {"city": "Oslo"}}],
    )
    [departure] = replayed(in_order(ORDERS["swapped"]), adopted)[0].left
    assert departure.came == [{"name": "get_weather", "args": {"city": "Oslo"}}]

    def endless(received: Received) -> Reply:
        return Answer(calls=[Call("get_weather", {"city": "Lima"})])

    [departure] = replayed(endless, adopted, match="by-call")[0].left
    assert departure.code == "called_anyway"


def test_a_mistake_of_the_record_is_not_expected() -> None:
    """logs: A model that calls as recorded follows every conversation"""
    events = [
        user("Weather in Lima?"),
        model(None, ("a", "get_wether", {})),
        result("a", "no such tool"),
        model(None, ("b", "get_weather", {"city": "Lima"})),
        result("b", "18 C"),
        model("18 C."),
    ]
    adopted = adopt(log(events))
    for match in ("strict", "by-call"):
        run, _ = replayed(in_order([("get_weather", "Lima")]), adopted, match=match)
        assert run.followed == 1


def test_the_command(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """logs: Conversations are replayed in the shell as in Python"""
    ADOPTED.save(tmp_path)
    with LoopbackProvider(err("Ulm: weather on day 2", Answer(text="No."))) as provider:
        monkeypatch.setattr("logs.test_reruns.LM", dspy.LM(**provider.lm_options("openai")), raising=False)
        words = ["rerun", str(tmp_path), "--model", "logs.test_reruns:LM"]
        assert main([*words, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert main([*words, "--by-call"]) == 0
        told = capsys.readouterr().out
    [run] = document["models"]
    assert (document["command"], run["conversations"], run["followed"]) == ("rerun", 3, 2)
    [departure] = run["left"]
    assert {*departure} == {"conversation", "turn", "expected", "came", "code"}
    assert departure["came"] == "No."
    assert "Where it left the record" in told
    assert main(["rerun", str(tmp_path / "none"), "--model", "openai/x"]) == 2


def test_what_cannot_be_replayed() -> None:
    """logs: Conversations are replayed in the shell as in Python"""
    lm: Any = dspy.LM("openai/x", api_key="x")
    wrong: Any = "any"
    with pytest.raises(InvalidOption, match="'strict' or 'by-call'"):
        replay(ADOPTED, lm, match=wrong)
    with pytest.raises(InvalidOption, match="no conversations"):
        replay(Adopted(program=dspy.Module(), tools=ADOPTED.tools), lm)


def test_calls_that_failed_in_words_of_your_own_need_not_be_made_again() -> None:
    """logs: By call, a turn's calls come in any order"""
    events = [user("Ulm: weather on day 1?"), model(None, ("c1", "get_weather", {"city": "ulm"}))]
    events += [result("c1", "NOPE"), model("So:", ("c2", "get_weather", {"city": "Ulm1"}))]
    adopted = adopt(log([*events, result("c2", "18 C"), model("18 C.")]), failed="NOPE")
    assert replayed(follow, adopted, match="by-call")[0].followed == 0
    assert replayed(follow, adopted, match="by-call", failed="NOPE")[0].followed == 1
