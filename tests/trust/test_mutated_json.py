"""What storage or a client gives back, changed anywhere, works or ends in an error of this package."""

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dspy
import pydantic
import pytest
from browser_json import JSON, places_in
from budgets import share
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import WIRES, Talk, lm_of, turn_of
from tables import table

import sigadapt
from sigadapt import (
    InputNeeded,
    SigadaptError,
    ToolCalls,
    ToolDecl,
    ToolDecls,
    ToolResults,
    trim_history,
)
from sigadapt.logs import conversation_from_request
from sigadapt.testing import Answer, Call, LoopbackProvider, exchanges_in
from sigadapt.trust import is_signed, sign, untrusted_history

SECRET = b"a secret of the server"


def look_up(q: str = "") -> str:
    """Look something up."""
    return "r"


def pay(to: str = "", eur: int = 1) -> str:
    """Pay somebody."""
    return "done"


TOOLS = ToolDecls([ToolDecl.of(pay, requires_confirmation=True), look_up])
SEARCH = {"id": "s", "name": "search_tools", "arguments": "{}", "index": 0, "query": "q", "found": ["a"]}
STATES: list[Any] = table(__file__, "STATES")
OTHERS: list[Any] = [*STATES, "c1", [1], ["x"], [[]], [{}], {"type": []}, {"rounds": 5}, 2**70, "{"]
ODD: Any = JSON | st.sampled_from(OTHERS)


def documents(path: Path) -> tuple[dict[str, ToolCalls], list[Any]]:
    """The calls of a turn on each wire, and the recorded exchanges of two requests."""
    turns: dict[str, ToolCalls] = {}
    for wire in WIRES:
        if wire == "ollama" and find_spec("litellm") is None:
            continue
        calls = [Call("look_up", {"q": "a"}), Call("pay", {"to": "Ada", "eur": 5})]
        with (
            LoopbackProvider([Answer(text="Hm.", calls=calls)], record=path) as provider,
            dspy.context(lm=lm_of(provider, wire), adapter=sigadapt.ChatAdapter()),
        ):
            turns[wire] = dspy.Predict(Talk)(question="q", tools=TOOLS).calls
            results = ToolResults.of(turns[wire], ["r", {"a": [1, 2.0]}])
            dspy.Predict(Talk)(question="q", tools=TOOLS, results=results)
    return turns, [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


TURNS, EXCHANGES = documents(Path(tempfile.mkdtemp()) / "recording.jsonl")


def histories() -> list[Any]:
    calls = ToolCalls([{"id": "c1", "name": "look_up", "args": {"q": "a"}}])
    values = dspy.ToolCallResults.from_tool_calls_and_values(calls.tool_calls, ["v"])  # pyright: ignore[reportArgumentType]
    agents = calls.model_copy(update={"tool_call_results": values})
    bad = {"id": "b", "name": "f", "arguments": "{", "index": 1, "code": "invalid_json", "message": "cut"}
    turn = turn_of(text="t", searches=[SEARCH], before=[{"searches": [SEARCH]}])
    content = {"tool_calls": [*calls], "invalid": [bad], "turn": turn}
    rows = [
        {"question": "q", "calls": agents, "answer": "A"},
        {
            "question": "q",
            "results": ToolResults.of(ToolCalls.model_validate(content), ["ok"]),
            "answer": "A",
        },
        {"question": "q", "results": ToolResults.of(calls, [[dspy.Image("data:image/png;base64,aGk=")]])},
    ]
    rows += [{"question": "q", "results": ToolResults.of(each, ["r", {"a": 1}])} for each in TURNS.values()]
    return [json.loads(dspy.History(messages=[row]).model_dump_json()) for row in rows]


@st.composite
def mutations(draw: Any, documents: list[Any]) -> Any:
    """A document with another value, or without a member, at some place; also within JSON in a text."""
    document = json.loads(json.dumps(draw(st.sampled_from(documents))))
    place = draw(st.sampled_from(places_in(document)))
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    text = holder[place[-1]]
    if isinstance(text, str) and text.startswith(("{", "[")) and draw(st.booleans()):
        inner: Any = None
        with suppress(ValueError):
            inner = json.loads(text)
        if places_in(inner):
            holder[place[-1]] = json.dumps(draw(mutations([inner])))
            return document
    if isinstance(holder, dict) and draw(st.integers(0, 5)) == 0:
        del holder[place[-1]]
    elif isinstance(holder, dict) and draw(st.integers(0, 5)) == 0:
        holder[draw(st.sampled_from(["turn", "state", "type", "endpoint", "tool_call_results"]))] = draw(ODD)
    else:
        holder[place[-1]] = draw(ODD)
    return document


def works(*doors: Callable[[], object]) -> None:
    """Try each of some doors, whose errors are this package's."""
    for door in doors:
        with suppress(SigadaptError):
            door()


SLOW = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=share(150))


@pytest.fixture(scope="module", params=["openai", "responses", "anthropic", "gemini"])
def lm(request: pytest.FixtureRequest) -> Any:
    text = "[[ ## answer ## ]]\nhi\n\n[[ ## completed ## ]]"
    with LoopbackProvider([Answer(text=text)]) as provider:
        yield lm_of(provider, request.param)


@SLOW
@given(mutations(histories()))
def test_a_history_is_read_or_refused(lm: Any, saved: Any) -> None:
    """conversations: What storage gives back is read or refused."""
    text = json.dumps(saved)
    works(lambda: untrusted_history(text, Talk, secret=SECRET).model_dump_json())
    try:
        history = dspy.History.model_validate_json(text)
    except (SigadaptError, pydantic.ValidationError):  # DSPy's own door
        return
    works(
        lambda: untrusted_history(
            text, Talk, secret=SECRET, signatures=sign(history, SECRET)
        ).model_dump_json(),
        lambda: str(sigadapt.rounds(history)),
        lambda: trim_history(history, characters=10_000, compacted=True).model_dump_json(),
        lambda: trim_history(saved, turns=1, signature=Talk),
    )
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        works(lambda: dspy.Predict(Talk)(question="next", tools=[look_up], history=history))


@SLOW
@given(mutations([json.loads(calls.model_dump_json()) for calls in TURNS.values()]))
def test_calls_are_read_or_refused(saved: Any) -> None:
    """conversations: What storage gives back is read or refused."""
    works(lambda: ToolCalls(saved))
    try:
        calls = ToolCalls.model_validate_json(json.dumps(saved))
    except (SigadaptError, pydantic.ValidationError):  # pydantic's own door
        return
    works(
        lambda: f"{calls}{calls!r}{calls.model_dump_json()}",
        lambda: sign(calls, SECRET),
        lambda: [(each.hint, each.call) for each in calls.awaiting_confirmation(TOOLS)],
        lambda: calls.run([look_up, pay]),
    )


@SLOW
@given(
    mutations(
        [json.loads(ToolResults.of(calls, ["r", {"a": 1}]).model_dump_json()) for calls in TURNS.values()]
    )
)
def test_results_are_read_or_refused(lm: Any, saved: Any) -> None:
    """conversations: What storage gives back is read or refused."""
    works(lambda: ToolResults(**saved))
    try:
        results = ToolResults.model_validate_json(json.dumps(saved))
    except (SigadaptError, pydantic.ValidationError):  # pydantic's own door
        return
    works(lambda: f"{results}{results!r}{results.model_dump_json()}", lambda: sign(results, SECRET))
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        works(lambda: dspy.Predict(Talk)(question="next", tools=[look_up], results=results))


def runs() -> list[Any]:
    event = {"question": "q", "n": 5}
    every = (
        InputNeeded(calls, calls.awaiting_confirmation(TOOLS), dspy.History(messages=[event]), event)
        for calls in TURNS.values()
    )
    return [json.loads(run.model_dump_json()) for run in every]


@SLOW
@given(mutations(runs()))
def test_a_run_that_waits_is_read_or_refused(saved: Any) -> None:
    """conversations: What storage gives back is read or refused."""
    try:
        run = InputNeeded.model_validate_json(json.dumps(saved))
    except SigadaptError:
        return
    works(
        lambda: f"{run}{run.model_dump_json()}",
        lambda: is_signed(run, [], SECRET),
        lambda: [(each.hint, each.call, each.approved(), each.rejected()) for each in run.requests],
        lambda: run.resume(TOOLS, {each.id: True for each in run.requests}),
    )


@SLOW
@given(mutations([exchange["request"] for exchange in EXCHANGES]))
def test_a_recorded_request_is_read_or_refused(lm: Any, body: Any) -> None:
    """logs: What is no request of a chat is refused."""
    try:
        conversation = conversation_from_request(body)
    except SigadaptError:
        return
    with dspy.context(lm=lm):
        works(lambda: conversation.program()(**conversation.inputs()))


@SLOW
@given(mutations(EXCHANGES))
def test_a_recording_is_read_or_refused(exchange: Any) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    works(lambda: [*exchanges_in(json.dumps(exchange))])
