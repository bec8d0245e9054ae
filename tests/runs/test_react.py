"""ReActV2 on every wire and both engines, and dspy.ReAct unchanged, under sigadapt's adapters."""

import json
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from support import ENGINES, start
from wire_bodies import part, serving
from wire_matrix import COLUMNS

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

PARIS, ROME = {"city": "Paris"}, {"city": "Rome"}
TASK: Any = cast("Any", dspy.Signature)("question -> answer")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SUBMIT = ("submit", {"answer": "mixed"})
ENDS = [("get_weather", False), ("get_weather", True), ("submit", False)]


def get_weather(city: str) -> str:
    """Weather for a city."""
    if city == "Rome":
        raise ValueError("backend down")
    return "sunny"


async def later(city: str) -> str:
    """Weather for a city."""
    return get_weather(city)


LATER = dspy.Tool(later, name="get_weather")


def heard(form: str, *calls: tuple[str, dict[str, Any]]) -> Any:
    """A turn of calls, which the loopback provider writes over each wire but Bedrock's."""
    if form != "bedrock":
        return Answer(calls=[Call(*call) for call in calls])
    return [
        {"toolUse": {"toolUseId": f"tooluse_{number}", "name": name, "input": args}}
        for number, (name, args) in enumerate(calls)
    ]


def agent(**options: Any) -> Any:
    return dspy.ReActV2(TASK, tools=[get_weather], **options)


def under(lm: Any, **options: Any) -> Any:
    return dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native", **options))


def results_of(prediction: Any) -> list[tuple[str, str, bool]]:
    """(name, value, is_error) of every result in the history."""
    return [
        (result.name, str(result.value).splitlines()[0], result.is_error)
        for event in prediction.history.messages
        for result in event["tool_calls"].tool_call_results.tool_call_results
    ]


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_conversation_on_every_wire(column: str, how: str):
    """conversations: ReActV2 runs on every wire.

    Parallel calls, one of which fails, and a submit: every call is answered once, in order.
    """
    form = COLUMNS[column].form
    first = heard(form, ("get_weather", PARIS), ("get_weather", ROME))
    with serving(column, first, heard(form, SUBMIT)) as served, under(served.lm()):
        program: Any = dspy.ReActV2(TASK, tools=[get_weather if how == "sync" else LATER])
        out = start(program, how, question="Where?")
    assert (out.answer, out.termination_reason) == ("mixed", "submit")
    assert [(name, failed) for name, _, failed in results_of(out)] == ENDS
    assert len(served.sent) == 2
    said, results = (json.dumps(part(scope, form, served.sent[1])) for scope in ("said", "results"))
    assert [said.count(city) for city in ("Paris", "Rome")] == [1, 1]
    assert results.index("sunny") < results.index("backend down")
    assert json.dumps(served.sent[1]).count("Where?") == 1


@pytest.mark.parametrize("column", COLUMNS)
def test_an_agent_sees_what_its_tool_saw(column: str):
    """conversations: A result may hold images, files and audio."""

    def get_weather(city: str) -> list[Any]:
        """Weather for a city."""
        return [f"The sky of {city}:", dspy.Image(f"data:image/png;base64,{PNG}")]

    form = COLUMNS[column].form
    first, last = heard(form, ("get_weather", PARIS)), heard(form, SUBMIT)
    with serving(column, first, last) as served, under(served.lm()):
        program: Any = dspy.ReActV2(TASK, tools=[get_weather])
        out = program(question="Where?")
        kept = dspy.History.model_validate_json(out.history.model_dump_json())
        program(question="Where?", history=kept)
    assert out.answer == "mixed"
    for sent in served.sent[1:]:
        assert PNG in json.dumps(sent)
        assert "CUSTOM-TYPE" not in json.dumps(sent)
        assert f'"{PNG}' in json.dumps(sent) or f"base64,{PNG}" in json.dumps(sent)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_submit_is_forced_in_the_end(column: str):
    """conversations: A forced submit asks for the one tool."""
    form = COLUMNS[column].form
    with (
        serving(column, heard(form, ("get_weather", PARIS)), heard(form, SUBMIT)) as served,
        under(served.lm()),
    ):
        out = agent(max_iters=1)(question="Where?")
    assert (out.answer, out.termination_reason) == ("mixed", "forced_submit")
    last = served.sent[-1]
    choice = last.get("tool_choice") or last.get("toolConfig")
    # Ollama takes no choice: there the one tool is all that is declared.
    assert "submit" in json.dumps(choice or last["tools"])
    assert choice is not None or "get_weather" not in json.dumps(last["tools"])


def run(script: Any, engine: str, *, wire: str = "openai", program: Any = None, **options: Any) -> Any:
    with (
        LoopbackProvider(script) as provider,
        under(dspy.LM(**provider.lm_options(wire, engine=engine)), **options),
    ):
        out = (program or agent())(question="Where?")
    return out, provider.received


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unchecked_unknown_tool_is_react_s_to_answer(engine: str):
    """conversations: An unknown tool is answered as a failed call."""
    script = [Answer(calls=[Call("rm_rf", PARIS)]), Answer(calls=[Call(*SUBMIT)])]
    out, _ = run(script, engine, validate_args=False)
    assert results_of(out)[0] == ("rm_rf", "Unknown tool: rm_rf", True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "options", [{}, {"on_invalid": "keep"}, {"on_invalid": "reask", "max_reasks": 0}], ids=repr
)
def test_a_bad_call_is_a_failed_result_of_the_loop(engine: str, options: dict[str, Any]):
    """conversations: A bad call fails in somebody's loop before its tool runs.

    The model gets its call as it was, and reads what is wrong with it.
    """
    script = [
        Answer(calls=[Call("get_weather", PARIS), Call("get_weather", {"town": "Rome"})], text="Two."),
        Answer(calls=[Call(*SUBMIT)]),
    ]
    out, received = run(script, engine, **options)
    assert (out.answer, out.termination_reason, len(received)) == ("mixed", "submit", 2)
    assert [(name, failed) for name, _, failed in results_of(out)] == ENDS
    *_, said, good, bad = received[1].body["messages"]
    assert said["content"] == "Two."
    assert [json.loads(call["function"]["arguments"]) for call in said["tool_calls"]] == [
        PARIS,
        {"town": "Rome"},
    ]
    assert good["content"] == "sunny"
    assert '"city" is a required property' in bad["content"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kept", [False, True], ids=["same", "json"])
def test_history_goes_on_in_a_second_run(engine: str, kept: bool):
    """conversations: A run continues from an earlier one's history, also from JSON."""
    script = [
        Answer(calls=[Call("get_weather", PARIS)]),
        Answer(calls=[Call(*SUBMIT)]),
        Answer(calls=[Call("submit", {"answer": "again"})]),
    ]
    with LoopbackProvider(script) as provider, under(dspy.LM(**provider.lm_options("openai", engine=engine))):
        program = agent()
        out = program(question="Where?")
        history = dspy.History.model_validate_json(out.history.model_dump_json()) if kept else out.history
        again = program(question="And now?", history=history)
    assert again.answer == "again"
    messages = provider.received[2].body["messages"]
    roles = ["system", "user", "assistant", "tool", "assistant", "tool", "user"]
    assert [message["role"] for message in messages] == roles
    assert "And now?" in messages[-1]["content"]


ADAPTERS: list[Callable[[], Any]] = [sigadapt.ChatAdapter, sigadapt.JSONAdapter, sigadapt.adapters.XMLAdapter]


@pytest.mark.parametrize("ours", ADAPTERS)
@pytest.mark.dspy_3_4
def test_react_v1_is_unchanged(ours: Callable[[], Any]):
    """conversations: dspy.ReAct sends what it sends under DSPy's adapter."""
    theirs = getattr(dspy, ours.__name__)  # pyright: ignore[reportUnknownArgumentType, reportAttributeAccessIssue]
    fields: dict[str, Any] = {"next_thought": "Look.", "next_tool_name": "finish", "next_tool_args": {}}
    done = {"reasoning": "Seen.", "answer": "mixed"}
    sent: list[Any] = []
    for adapter in (theirs, ours):
        words = adapter()
        script = [Answer(text=written(words, fields)), Answer(text=written(words, done))]
        with (
            LoopbackProvider(script) as provider,
            dspy.context(lm=dspy.LM(**provider.lm_options("openai")), adapter=words),
        ):
            out: Any = dspy.ReAct(TASK, tools=[get_weather])(question="Where?")
        assert out.answer == "mixed"
        sent.append([received.body for received in provider.received])
    assert sent[0] == sent[1]


def written(adapter: Any, fields: dict[str, Any]) -> str:
    if isinstance(adapter, dspy.JSONAdapter):
        return json.dumps(fields)
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    if isinstance(adapter, dspy.XMLAdapter):
        return "\n".join(f"<{name}>{text}</{name}>" for name, text in texts.items())
    marked = "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in texts.items())
    return f"{marked}\n\n[[ ## completed ## ]]"
