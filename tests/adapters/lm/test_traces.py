"""What callbacks and MLflow see of a call, beside what they see under DSPy's own adapter."""

import contextlib
import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from processes import run_python
from support import May, Must, get_weather, lm_of
from traced_program import CHANGE, CODE, RESULT, TEXT

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

HERE = Path(__file__).parent
GOOD, BAD = Call("get_weather", {"city": "Paris"}), Call("get_weather", {"city": 42})


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


@pytest.mark.parametrize("on_adapter", [False, True])
def test_a_callback_sees_the_code_of_a_refused_call(on_adapter: bool):
    """adapter-plug-in: DSPy's callbacks get what was sent and what came."""
    events = seen([Answer(calls=[BAD])], Must, on_adapter=on_adapter)
    assert events[-1][0] == "parsed"
    assert events[-1][1].code == "schema_mismatch"


def test_a_failed_parse_has_one_event_each():
    """adapter-plug-in: DSPy's callbacks fire."""
    plain = seen([Answer(text="Sunny.")], May)
    assert [name for name, _ in plain] == ["lm", "parse", "parsed"]
    assert plain[-1][1]["answer"] == "Sunny."
