"""Logs of DSPy's agents, whose last answer is a call of their own `submit`."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest
from logs.made_logs import WEATHER, log, model, result, tool, user

import sigadapt
from sigadapt.logs import Adopted, adopt, compare, improve, load, replay
from sigadapt.testing import Answer, Call, LoopbackProvider

CITIES = ["Lima", "Oslo", "Bonn"]
WEATHER_OF = "18 C in "
SUBMIT = tool("submit", "Submit the final outputs for the task.", answer="string")
OWN_SUBMIT = tool("submit", "Send the form.", answer="string")


def weather(city: str) -> str:
    """Weather of a city."""
    return f"{WEATHER_OF}{city}"


def submits(words: Any, **beside: Any) -> Answer:
    return Answer(calls=[Call("submit", {"answer": words})], **beside)


def scripted(end: Callable[[], Answer]) -> Callable[[Any], Answer]:
    """A model that asks for the weather of each city that was named, and then ends."""

    def answer(received: Any) -> Answer:
        body = json.dumps(received.body)
        for city in CITIES:
            if f"in {city}?" in body and f"{WEATHER_OF}{city}" not in body:
                return Answer(calls=[Call("weather", {"city": city})])
        return end()

    return answer


@contextmanager
def lm_of(script: Any, wire: str = "openai", record: Path | None = None) -> Generator[dspy.LM]:
    with LoopbackProvider(script, record=record) as provider:
        yield dspy.LM(**provider.lm_options(wire))


def recorded(record: Path, wire: str, agent_type: Any, *, is_one_talk: bool) -> Adopted:
    """Adopt what an agent did about each city, in one conversation or in one of its own each."""
    script = scripted(lambda: submits("It is sunny."))
    with lm_of(script, wire, record) as lm, dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        agent = agent_type("question -> answer", tools=[weather])
        history = None
        for city in CITIES:
            earlier = {"history": history} if history else {}
            prediction = agent(question=f"Weather in {city}?", **earlier)
            history = prediction.history if is_one_talk else None
    return adopt(record)


ENDS = {
    "submits": lambda: submits("It's sunny."),
    "says": lambda: Answer(text="It's sunny."),
}


@pytest.mark.parametrize("agent_type", [sigadapt.ReAct, dspy.ReActV2])
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_final_words_are_silences(wire: str, agent_type: Any, tmp_path: Path) -> None:
    """logs: An agent's `submit` is its final words"""
    adopted = recorded(tmp_path / "log.jsonl", wire, agent_type, is_one_talk=False)
    assert sorted(row.calls[0]["args"]["city"] for row in adopted.rows) == sorted(CITIES)
    assert [len(row.calls) for row in adopted.rows] == [1, 1, 1]
    assert (len(adopted.silences), adopted.failures) == (3, [])
    for end in ENDS.values():
        with lm_of(scripted(end), wire) as lm:
            [agreement] = compare(adopted, lm).models
            assert (agreement.rows, agreement.same_call, agreement.called_anyway) == (3, 3, 0)
            assert replay(adopted, lm).followed == 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("match", ["strict", "by-call"])
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_talk_with_an_agent_is_replayed(wire: str, match: Any, end: str, tmp_path: Path) -> None:
    """logs: An agent's conversation is replayed whatever its words are"""
    adopted = recorded(tmp_path / "log.jsonl", wire, sigadapt.ReAct, is_one_talk=True)
    assert (len(adopted.rows), len(adopted.silences), adopted.conversations) == (3, 3, 1)
    bodies: list[str] = []
    script = scripted(ENDS[end])

    def answer(received: Any) -> Answer:
        bodies.append(json.dumps(received.body))
        return script(received)

    with lm_of(answer, wire) as lm:
        replayed = replay(adopted, lm, match=match)
    assert (replayed.conversations, replayed.followed) == (1, 1)
    assert len(bodies) == 6
    assert bodies[-1].count("It's sunny.") == (
        4 if end == "submits" else 2
    )  # the call and its result, of two turns
    assert "It is sunny." not in "".join(bodies)


def test_where_a_model_leaves_an_agents_log(tmp_path: Path) -> None:
    """logs: An agent's conversation is replayed whatever its words are"""
    adopted = recorded(tmp_path / "log.jsonl", "openai", sigadapt.ReAct, is_one_talk=False)
    cases = [
        (lambda received: submits("It's sunny."), "none", "It's sunny."),
        (
            lambda received: Answer(calls=[Call("submit", {"answer": "a", "b": "c"})]),
            "none",
            '{"answer":"a","b":"c"}',
        ),
        (scripted(lambda: submits(5)), "schema_mismatch", [{"name": "submit", "args": {"answer": 5}}]),
    ]
    for script, code, came in cases:
        with lm_of(script) as lm:
            [first, *_] = replay(adopted, lm).left
            assert (first.code, first.came) == (code, came)
    with lm_of(lambda received: Answer(calls=[Call("weather", {"city": "Lima"})])) as lm:
        assert compare(adopted, lm).models[0].called_anyway == 3
    with lm_of(lambda received: submits(5)) as lm:
        [agreement] = compare(adopted, lm).models
        assert (agreement.bad_call, agreement.called_anyway) == (3, 0)


@pytest.mark.parametrize("match", ["strict", "by-call"])
def test_submit_beside_other_calls(match: Any) -> None:
    """logs: Beside other calls, an agent's `submit` is not compared"""
    weather_call = ("c1", "get_weather", {"city": "Lima"})
    both = model(None, weather_call, ("c2", "submit", {"answer": "Wait."}))
    one = [
        model(None, weather_call),
        result("c1", "18 C"),
        model(None, ("c2", "submit", {"answer": "18 C."})),
    ]
    ends = [result("c1", "18 C"), result("c2", "Wait."), user("Thanks."), model("Bye.")]
    logs = [
        log([user("Weather?"), both, *ends], [WEATHER, SUBMIT]),
        log([user("Weather?"), *one], [WEATHER, SUBMIT]),
    ]

    def both_at_once(received: Any) -> Answer:
        if "Thanks." in json.dumps(received.body):
            return Answer(text="Bye.")
        return Answer(calls=[Call("submit", {"answer": "Now."}), Call("get_weather", {"city": "Lima"})])

    def one_by_one(received: Any) -> Answer:
        if "Thanks." in json.dumps(received.body) or "18 C" in json.dumps(received.body):
            return submits("18 C.")
        return Answer(calls=[Call("get_weather", {"city": "Lima"})])

    for lines in logs:
        adopted = adopt(lines)
        [row] = adopted.rows
        assert (row.calls, row.why) == ([{"name": "get_weather", "args": {"city": "Lima"}}], "result")
        assert len(adopted.silences) == 1
        for script in (both_at_once, one_by_one):
            with lm_of(script) as lm:
                assert compare(adopted, lm).models[0].same_call == 1
                assert replay(adopted, lm, match=match).left == []


def test_a_bad_submit_is_a_failure() -> None:
    """logs: A bad `submit` is a failure and never gold"""
    events = [
        user("Weather?"),
        model(None, ("c1", "submit", {"answer": 5})),
        result("c1", "Error: answer is no string"),
        model(None, ("c2", "submit", {"answer": "18 C."})),
    ]
    adopted = adopt(log(events, [WEATHER, SUBMIT]))
    assert (adopted.rows, len(adopted.silences)) == ([], 1)
    assert adopted.failures == [{"code": "schema_mismatch", "tool": "submit", "path": "/answer", "count": 1}]


def test_a_tool_of_your_own_named_submit() -> None:
    """logs: A tool of your own named `submit` is a tool"""
    events = [user("Send 5"), model(None, ("c1", "submit", {"answer": "5"}))]
    adopted = adopt(log(events, [OWN_SUBMIT]))
    assert [row.calls for row in adopted.rows] == [[{"name": "submit", "args": {"answer": "5"}}]]
    with lm_of(lambda received: submits("6")) as lm:
        assert compare(adopted, lm).models[0].other_arguments == 1


def test_the_program_of_an_agents_log(tmp_path: Path) -> None:
    """logs: The program declares `submit` and has no stub of it"""
    adopted = recorded(tmp_path / "log.jsonl", "openai", sigadapt.ReAct, is_one_talk=False)
    adopted.save(tmp_path / "folder")
    text = (tmp_path / "folder" / "program.py").read_text()
    assert "def weather(" in text
    assert "def submit(" not in text
    loaded = load(tmp_path / "folder")
    bodies: list[Any] = []

    def answer(received: Any) -> Answer:
        bodies.append(received.body)
        return submits("Hello.")

    with lm_of(answer) as lm, dspy.context(lm=lm):
        loaded.program(**loaded.rows[0].inputs())
    assert [each["function"]["name"] for each in bodies[0]["tools"]] == ["weather", "submit"]


def test_no_text_of_submit_is_rewritten() -> None:
    """logs: The program declares `submit` and has no stub of it"""
    lines: list[Any] = []
    for city in CITIES:
        events = [user(f"Weather in {city}?"), model(None, (f"c{city}", "get_weather", {"city": city}))]
        lines += log(events, [WEATHER, SUBMIT])
    with lm_of(lambda received: submits(5)) as lm, lm_of(lambda received: Answer(text="Better.")) as writer:
        improved = improve(adopt(lines), lm, reflection_model=writer)
    assert "submit" not in json.dumps(improved.document())
