"""README's program runs as it stands, against a loopback provider in OpenAI's place."""

import re
from pathlib import Path
from typing import Any

import dspy
import pytest

from sigadapt.testing import Answer, Call, LoopbackProvider

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_program_of_the_readme_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = BLOCKS
    before: dict[str, Any] = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
    answer = Answer(calls=[Call("get_weather", {"city": "Paris", "days": 2})])
    with LoopbackProvider([answer]) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "none needed")
        monkeypatch.setenv("OPENAI_API_BASE", provider.base_url("openai"))
        try:
            exec(compile(program, str(README), "exec"), {"__name__": "readme"})  # noqa: S102  (our own README)
        finally:
            dspy.configure(**before)
    assert capsys.readouterr().out == "get_weather(city='Paris', days=2)\n"
