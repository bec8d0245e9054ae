"""The tracer of the page on production hears of sigadapt's requests, in a process of its own."""

import os
import re
from pathlib import Path

import pytest
from processes import run_python

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "production.md"
PROGRAM = """
import dspy, sigadapt
from sigadapt.testing import Answer, LoopbackProvider
{tracer}
lm = dspy.LM(**LoopbackProvider([Answer(text="[[ ## answer ## ]]\\nSunny.")]).start().lm_options("openai"))
dspy.configure(lm=lm, adapter=sigadapt.ChatAdapter())
dspy.Predict("question -> answer")(question="And in a week?")
from mlflow.dspy.callback import MlflowCallback
assert any(isinstance(each, MlflowCallback) for each in dspy.settings.callbacks)
"""


@pytest.mark.slow
def test_the_tracer_of_the_page_runs() -> None:
    """adapter-plug-in: MLflow shows messages, tools, calls, results, codes and changes."""
    (tracer,) = re.findall(
        r"<!-- not run: [^>]*-->\n\n```python\n(.+?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    program = PROGRAM.format(tracer=tracer.replace("http://localhost:5000", "http://127.0.0.1:9"))
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    done = run_python("-c", program, env={**os.environ, **quiet})
    assert done.returncode == 0, done.stderr[-2000:]
