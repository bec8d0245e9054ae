"""The page on observability runs whole in a process of its own, with the blocks that change DSPy for it."""

import os
import re
from pathlib import Path

import pytest
from processes import run_python

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guides" / "observability.md"
AFTER = """
ask(question="And in a week?", tools=[weather])
from mlflow.dspy.callback import MlflowCallback
assert any(isinstance(each, MlflowCallback) for each in dspy.settings.callbacks)
"""


@pytest.mark.slow
def test_the_tracers_of_the_page_run() -> None:
    """adapter-plug-in: MLflow shows messages, tools, calls, results, codes and changes."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.+?)^```", text, re.MULTILINE | re.DOTALL)
    program = "\n".join([*blocks, AFTER])
    program = program.replace("http://localhost:5000", "http://127.0.0.1:9")  # where nobody listens
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    done = run_python("-c", program, env={**os.environ, **quiet})
    assert done.returncode == 0, done.stderr[-2000:]
