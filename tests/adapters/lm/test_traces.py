"""What callbacks, OpenInference and MLflow see of a call, beside what they see under DSPy's own adapter."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from dspy.utils.dummies import DummyLM
from openinference.instrumentation.dspy import DSPyInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from processes import run_python
from support import ENGINES, May, Must, get_weather, lm_of
from traced_program import ANSWER, CHANGE, CODE, QUESTION, RESULT, TEXT, run

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

HERE = Path(__file__).parent
GOOD, BAD = Call("get_weather", {"city": "Paris"}), Call("get_weather", {"city": 42})


OPENINFERENCE = DSPyInstrumentor.__module__
MODULE = sys.modules.pop(OPENINFERENCE)  # the other tests of this process run without it


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor: Any = DSPyInstrumentor()
    wrapped: list[Any] = [dspy.Adapter, dspy.Module, dspy.Predict, dspy.LM, dspy.Tool, DummyLM, dspy.Retrieve]
    wrapped += [*dspy.Predict.__subclasses__(), dspy.ColBERTv2]
    before: list[tuple[Any, dict[str, Any]]] = [(each, dict(each.__dict__)) for each in wrapped]
    monkeypatch.setitem(sys.modules, OPENINFERENCE, MODULE)
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()  # which takes off DSPy's own decorators too
    for each, held in before:
        now: dict[str, Any] = dict(each.__dict__)
        for name in [name for name, value in now.items() if held.get(name, each) is not value]:
            setattr(each, name, held[name]) if name in held else delattr(each, name)


def named(exporter: InMemorySpanExporter, name: str) -> list[dict[str, Any]]:
    """The attributes of the spans whose names begin so."""
    return [
        dict(span.attributes or {}) for span in exporter.get_finished_spans() if span.name.startswith(name)
    ]


def names(exporter: InMemorySpanExporter) -> list[str]:
    return [span.name for span in exporter.get_finished_spans()]


@pytest.mark.parametrize("engine", ENGINES)
def test_openinference_shows_the_whole_conversation(spans: InMemorySpanExporter, engine: str):
    """adapter-plug-in: OpenInference shows messages, tools, calls, results, codes and changes."""
    assert run("ours", engine).answer == ANSWER
    first, second, third = named(spans, "LM.__call__")
    assert first["llm.input_messages.1.message.content"].endswith(QUESTION)
    tools = [json.loads(first[f"llm.tools.{number}.tool.json_schema"]) for number in (0, 1)]
    assert [tool["function"]["name"] for tool in tools] == ["add", "submit"]
    assert [tool["function"] for tool in json.loads(first["llm.invocation_parameters"])["tools"]] == [
        tool["function"] for tool in tools
    ]
    said = "llm.output_messages.0.message"
    assert first[f"{said}.content"] == TEXT
    assert first[f"{said}.tool_calls.0.tool_call.function.name"] == "add"
    assert json.loads(first[f"{said}.tool_calls.0.tool_call.function.arguments"]) == {"a": "one", "b": 2}
    told = "llm.input_messages.2.message.tool_calls.0.tool_call"
    assert (second[f"{told}.id"], second[f"{told}.function.name"]) == (
        first[f"{said}.tool_calls.0.tool_call.id"],
        "add",
    )
    assert second["llm.input_messages.3.message.tool_call_id"] == second[f"{told}.id"]
    assert "do not fit" in second["llm.input_messages.3.message.content"]
    assert CHANGE in second["sigadapt.changes"]
    assert RESULT in third["llm.input_messages.5.message.content"]
    assert CODE in named(spans, "ChatAdapter.__call__")[0]["output.value"]


def test_openinference_shows_no_less_than_under_dspys_adapter(spans: InMemorySpanExporter):
    """adapter-plug-in: Traces show no less than under DSPy's adapter."""
    shown: dict[str, list[Any]] = {}
    for which in ("theirs", "ours"):
        run(which)
        shown[which] = [(span.name, dict(span.attributes or {})) for span in spans.get_finished_spans()]
        spans.clear()
    kinds = {which: [name for name, _ in found] for which, found in shown.items()}
    ran_bad = kinds["theirs"].index("add.__call__")  # DSPy runs the tool with the bad call, which fails
    assert [name for n, name in enumerate(kinds["theirs"]) if n != ran_bad] == kinds["ours"]
    theirs, ours = ([keys for name, keys in shown[which] if name == "LM.__call__"] for which in shown)
    for before, now in zip(theirs, ours, strict=True):
        # the last message of DSPy's adapter, a user's, is nobody's
        missing = {key for key in before if "input_messages" not in key} - now.keys()
        assert missing == set()
        roles = [now[key] for key in sorted(now) if key.endswith(".message.role")]
        assert [before[key] for key in sorted(before) if key.endswith(".message.role")][: len(roles)]


async def test_openinference_shows_what_is_awaited_and_streamed(spans: InMemorySpanExporter):
    """adapter-plug-in: OpenInference shows messages, tools, calls, results, codes and changes."""
    with (
        LoopbackProvider([Answer(calls=[GOOD])]) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
    ):
        await dspy.Predict(Must).acall(question="?", tools=[get_weather])
        streamed: Any = dspy.streamify(dspy.Predict(Must))
        _ = [item async for item in streamed(question="??", tools=[get_weather])]
    assert [name for name in names(spans) if "dapter" in name] == [
        "ChatAdapter.acall",
        "ChatAdapter.__call__",
    ]
    assert len(named(spans, "LM.")) == 2
    for attributes in named(spans, "LM."):
        call = "llm.output_messages.0.message.tool_calls.0.tool_call.function"
        assert attributes[f"{call}.name"] == "get_weather"
        assert json.loads(attributes[f"{call}.arguments"]) == {"city": "Paris"}


def test_a_span_shows_what_was_raised_and_cut_off(spans: InMemorySpanExporter):
    """adapter-plug-in: OpenInference shows messages, tools, calls, results, codes and changes."""
    cut = Answer(calls=[Call("get_weather", '{"city": "Par')], finish="length")
    with (
        LoopbackProvider([cut]) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
        pytest.raises(sigadapt.ToolCallParseError),
    ):
        dspy.Predict(Must)(question="?", tools=[get_weather])
    (model,) = named(spans, "LM.__call__")
    assert model["llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments"] == '{"city": "Par'
    (adapter,) = [span for span in spans.get_finished_spans() if span.name == "ChatAdapter.__call__"]
    assert "truncated" in str([dict(event.attributes or {}) for event in adapter.events])


def test_connection_settings_stay_out_of_spans(spans: InMemorySpanExporter):
    """adapter-plug-in: OpenInference shows messages, tools, calls, results, codes and changes."""
    with (
        LoopbackProvider([Answer(calls=[GOOD])]) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
    ):
        dspy.Predict(Must)(question="?", tools=[get_weather], config={"api_key": "a-secret"})
    (model,) = named(spans, "LM.__call__")
    assert "a-secret" not in str(model)
    assert "api_key" not in str(model)


@pytest.mark.slow
def test_mlflow_shows_no_less_than_under_dspys_adapter():
    """adapter-plug-in: MLflow shows messages, tools, calls, results, codes and changes.

    adapter-plug-in: Traces show no less than under DSPy's adapter.
    """
    done = run_python(HERE / "mlflow_spans.py", check=True)
    theirs, ours = json.loads(done.stdout).values()
    kinds = [sorted({span["name"] for span in found}) for found in (theirs, ours)]
    assert kinds[0] == kinds[1]
    first, second, third = (span for span in ours if span["name"] == "LM.__call__")
    before = next(span for span in theirs if span["name"] == "LM.__call__")
    assert before["in"].keys() <= first["in"].keys()
    assert [tool["function"]["name"] for tool in first["in"]["tools"]] == ["add", "submit"]
    assert [row["role"] for row in second["in"]["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["in"]["changes"][0]["what"] == CHANGE
    assert RESULT in third["in"]["messages"][-1]["content"]
    assert TEXT in json.dumps(first["out"])
    parses = [span for span in ours if span["name"] == "ChatAdapter.parse"]
    assert [call["name"] for span in parses for call in span["out"]["tool_calls"]["tool_calls"]] == [
        "add", "add", "submit",
    ]  # fmt: skip
    assert parses[0]["out"]["tool_calls"]["tool_calls"][0]["code"] == CODE
    assert [span["out"] for span in ours if span["name"] == "Tool.add"] == [f"{RESULT}, of 1 and 222"]


class Recorder(BaseCallback):
    """Keeps what a callback is given."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.seen.append(("lm", inputs))

    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        assert isinstance(instance, dspy.Adapter)
        self.seen.append(("parse", inputs))

    def on_adapter_parse_end(
        self, call_id: str, outputs: Any, exception: BaseException | None = None
    ) -> None:
        self.seen.append(("parsed", exception or outputs))


def seen(answers: list[Answer], program: Any, *, on_adapter: bool = False, **options: Any) -> list[Any]:
    recorder = Recorder()
    given: dict[str, Any] = {"callbacks": [recorder]} if on_adapter else {}
    with (
        LoopbackProvider(answers) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter(**given, **options)),
        dspy.context(callbacks=[] if on_adapter else [recorder]),
        contextlib.suppress(sigadapt.SigadaptError),
    ):
        dspy.Predict(program)(question="?", tools=[get_weather])
    return recorder.seen


def test_callbacks_get_messages_and_tools():
    """adapter-plug-in: DSPy's callbacks get what was sent and what came."""
    (_, given), (_, asked), (_, values) = seen([Answer(calls=[GOOD], text="Hm.")], Must)
    assert [row["role"] for row in given["messages"]] == ["system", "user"]
    assert given["kwargs"]["tools"][0]["function"]["name"] == "get_weather"
    assert given["prompt"] is None
    assert asked["completion"] == "Hm."
    assert values["calls"][0].args == {"city": "Paris"}


@pytest.mark.parametrize("on_adapter", [False, True])
def test_a_callback_sees_the_code_of_a_refused_call(on_adapter: bool):
    """adapter-plug-in: DSPy's callbacks get what was sent and what came."""
    events = seen([Answer(calls=[BAD])], Must, on_adapter=on_adapter)
    assert events[-1][0] == "parsed"
    assert events[-1][1].code == "schema_mismatch"


def test_a_text_that_is_parsed_has_one_parse_event():
    """adapter-plug-in: DSPy's callbacks fire."""
    text = "[[ ## answer ## ]]\nSunny.\n\n[[ ## completed ## ]]"
    events = seen([Answer(text=text)], May)
    assert [name for name, _ in events] == ["lm", "parse", "parsed"]
    assert events[-1][1] == {"answer": "Sunny."}


def test_a_failed_parse_has_one_event_each():
    """adapter-plug-in: DSPy's callbacks fire."""
    plain = seen([Answer(text="Sunny.")], May)
    assert [name for name, _ in plain] == ["lm", "parse", "parsed"]
    assert plain[-1][1]["answer"] == "Sunny."
