"""What an agent submits, as text: the real dspy.LM over loopback HTTP."""

import dataclasses
from typing import Any, Literal

import dspy
import pytest
from agents import of, serving, watch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import WIRES

from sigadapt import ToolCalls, ToolDecl, ToolDecls, events, ui
from sigadapt.testing import Answer, Call

pytestmark = pytest.mark.usefixtures("closed_streams")

HARD = (
    'She said "no\\yes",\n\tthen: \u00e9 \U0001f600 {"title": "x"} [[ ## title ## ]] </title> \\u0041 \u4e66'
)
VALUES = {"title": "Tides", "pages": 12, "body": HARD, "note": None, "tags": ["a"], "kind": "long"}


class Report(dspy.Signature):
    """Report."""

    question: str = dspy.InputField()
    title: str = dspy.OutputField()
    pages: int = dspy.OutputField()
    body: str = dspy.OutputField()
    note: str | None = dspy.OutputField()
    tags: list[str] = dspy.OutputField()
    kind: Literal["short", "long"] = dspy.OutputField()


ANSWER: Any = "question -> answer"
TITLE: Any = "question -> title"
AGENT: Any = vars(dspy)["ReActV2"]  # which is not typed as a class


def find(city: str) -> str:
    """Find a city."""
    return f"{city} lies in Europe."


ROME = Call("find", {"city": "Rome"})


def submit(**values: Any) -> Call:
    return Call("submit", values)


def run(answers: Any, signature: Any = Report, wire: str = "openai", **options: Any) -> list[Any]:
    """The events of an agent whose model gives these answers."""
    with serving(answers, wire, **options):
        return watch(dspy.ReActV2(signature, tools=[find]))


def texts(found: list[Any], *, by_step: bool = False) -> dict[Any, str]:
    """The text of each output. A piece that is no Unicode cannot be encoded."""
    joined: dict[Any, str] = {}
    for event in found:
        if isinstance(event, events.TextDelta):
            event.text.encode()
            key: Any = (event.step, event.field) if by_step else event.field
            joined[key] = joined.get(key, "") + event.text
    return joined


def calls(found: list[Any]) -> list[str | None]:
    """The names in all events of calls and results."""
    names: list[str | None] = [event.name for event in found if isinstance(event, events.CallDelta)]
    names += [event.call.name for event in found if isinstance(event, events.CallReady)]
    return names + [event.result.name for event in found if isinstance(event, events.ResultReady)]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("order", [1, -1])
def test_outputs(wire: str, order: int) -> None:
    """watching-runs: An agent's answer is text."""
    values = dict([*VALUES.items()][::order])
    found = run([Answer(calls=[ROME]), Answer(calls=[submit(**values)], chunk=5)], wire=wire)
    assert texts(found) == {"title": "Tides", "body": HARD}
    assert {event.step for event in found if isinstance(event, events.TextDelta)} == {2}
    assert set(calls(found)) == {"find"}
    assert dict(found[-1].prediction).items() >= VALUES.items()
    if wire in {"openai", "responses", "anthropic"}:
        assert sum(isinstance(event, events.TextDelta) for event in found) > 10


def test_a_run_that_waits() -> None:
    """watching-runs: An agent's answer is text.

    watching-runs: A run that waits ends in Confirm and Failed.
    """
    tool: Any = ToolDecl.of(find, requires_confirmation=True)
    with serving([Answer(calls=[ROME, submit(answer="Early.")])], confirm="raise"):
        found = watch(dspy.ReActV2(ANSWER, tools=[tool]))
    assert set(calls(found)) == {"find"}
    assert [type(event).__name__ for event in found[-2:]] == ["Confirm", "Failed"]
    [request], [ready] = found[-2].requests, of(events.CallReady, found)
    assert request.call.id == ready.call.id


def note(title: str) -> str:
    """Write a note."""
    return title


class Notes(dspy.Signature):
    """Answer, or use the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    title: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class Planned(AGENT):  # pyright: ignore[reportUntypedBaseClass]
    """An agent that asks another predictor, with a tool named submit, before it begins."""

    def __init__(self) -> None:
        super().__init__(TITLE, tools=[find])
        self.plan = dspy.Predict(Notes)

    def forward(self, **inputs: Any) -> Any:
        self.plan(**inputs, tools=[dspy.Tool(note, name="submit")])
        agent: Any = super()
        return agent.forward(**inputs)


def test_a_tool_named_submit() -> None:
    """watching-runs: Only the agent's own submit is text."""
    own, agents = Answer(calls=[submit(title="form")]), Answer(calls=[submit(title="Tides")])
    with serving([own, own, agents]):
        tool = dspy.Tool(note, name="submit")
        found = watch(dspy.Predict(Notes), question="?", tools=[tool])
        planned = watch(Planned())
    assert (texts(found), set(calls(found))) == ({}, {"submit"})
    assert texts(planned, by_step=True) == {(2, "title"): "Tides"}
    assert {event.step for event in planned if isinstance(event, events.CallReady)} == {1}


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (submit(title="Draft"), {"title": "Draft"}),
        (submit(**{**VALUES, "title": "Draft", "pages": "many"}), {"title": "Draft", "body": HARD}),
        (submit(title=5), {}),
        (submit(title={"title": "no"}, x=[{"body": "no"}]), {}),
        (Call("submit", '{"title": "Draft"'), {"title": "Draft"}),
        (Call("submit", '{"title": "D\\$aft and more of it"'), {"title": "D"}),
        (Call("submit", '["title"]'), {}),
    ],
)
@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
def test_refused(refused: Call, text: Any, writer: Any) -> None:
    """watching-runs: A refused answer is replaced."""
    found = run([Answer(calls=[refused]), Answer(calls=[submit(**VALUES)])])
    by_step = texts(found, by_step=True)
    assert {field: text for (step, field), text in by_step.items() if step == 2} == {
        "title": "Tides",
        "body": HARD,
    }
    assert {field: text for (step, field), text in by_step.items() if step == 1} == text
    assert calls(found) == []
    assert '"submit"' not in "".join(writer(found))


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([[submit(title="A"), submit(title="A")]], "A"),
        ([[submit(title="A"), submit(title="A and B")]], "A and B"),
        ([[submit(title="A"), submit(title="B")]], "AB"),
        ([[submit(title="A", pages=1), submit(title="A")]], "A"),
        ([[submit(title="A", pages="many")], [submit(title="A")]], "A"),
        ([[Call("submit", '{"title": "A and')], [submit(title="A and B")]], "A and B"),
    ],
)
def test_several_in_one_step(answers: Any, text: str) -> None:
    """watching-runs: An answer of one step comes once."""
    script = [Answer(calls=turn) for turn in answers]
    found = run(script, TITLE, on_invalid="reask")
    assert texts(found, by_step=True) == {(1, "title"): text}
    assert calls(found) == []
    assert text.endswith(found[-1].prediction.title)


class Rewrites:
    """A hook that answers in other words than the model has streamed."""

    def after_choice(self, choice: Any, context: Any) -> Any:
        calls = [call.model_copy(update={"args": {"title": "no"}}) for call in choice.tool_calls]
        return dataclasses.replace(choice, tool_calls=ToolCalls(calls))


def test_a_call_that_a_hook_changed() -> None:
    """watching-runs: An answer of one step comes once."""
    found = run([Answer(calls=[submit(title="yes")])], TITLE, hooks=[Rewrites()])
    assert texts(found) == {"title": "yes"}  # a page cannot unread it
    assert found[-1].prediction.title == "no"


TEXT = st.text(
    st.sampled_from(["a", "é", "😀", "\ud83d", "\ude00", " ", "\n", "[", "#", "<", '"', "\\", "{", ",", ":"])
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    st.fixed_dictionaries({"title": TEXT, "body": TEXT}), st.integers(1, 9), st.sampled_from(WIRES), st.data()
)
@pytest.mark.litellm
def test_any_text(fields: dict[str, str], chunk: int, wire: str, data: Any) -> None:
    """watching-runs: An agent's answer is text."""
    values = {
        name: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for name, text in fields.items()
    }
    order = data.draw(st.permutations([*VALUES]))
    whole = {**VALUES, **values}
    found = run([Answer(calls=[submit(**{name: whole[name] for name in order})], chunk=chunk)], wire=wire)
    assert texts(found) == {name: text for name, text in values.items() if text}
    assert found[-1].prediction.title == values["title"]
