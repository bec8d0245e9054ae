"""README's programs run as they stand, against a loopback provider in OpenAI's place."""

import re
from pathlib import Path
from typing import Any

import dspy
import pytest

from sigadapt.testing import Answer, Call, LoopbackProvider

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


FIRST, WITHOUT_A_KEY, AGENT = BLOCKS
SCRIPTS = {
    "get_weather(city='Paris', days=2)": [Answer(calls=[Call("get_weather", {"city": "Paris", "days": 2})])],
    "Run pay? pay(to='Bob', eur=500)\nBob is paid.": [
        Answer(calls=[Call("pay", {"to": "Bob", "eur": 500})]),
        Answer(calls=[Call("submit", {"answer": "Bob is paid."})]),
    ],
}
"""What each program prints, and the answers of its model."""


@pytest.mark.parametrize(("program", "printed"), [*zip((FIRST, AGENT), SCRIPTS, strict=True)])
def test_a_program_of_the_readme_runs(
    program: str, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = SCRIPTS[printed]
    before: dict[str, Any] = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
    with LoopbackProvider(answers) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "none needed")
        monkeypatch.setenv("OPENAI_API_BASE", provider.base_url("openai"))
        try:
            exec(compile(program, str(README), "exec"), {"__name__": "readme"})  # noqa: S102  (our own README)
        finally:
            dspy.configure(**before)
    assert printed in capsys.readouterr().out


def test_the_first_program_runs_without_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    *lines, _, _ = FIRST.splitlines()
    program = "\n".join([*lines, WITHOUT_A_KEY])
    before: dict[str, Any] = {"lm": dspy.settings.lm, "adapter": dspy.settings.adapter}
    try:
        exec(compile(program, str(README), "exec"), {"__name__": "readme"})  # noqa: S102  (our own README)
    finally:
        dspy.configure(**before)
    assert capsys.readouterr().out == "get_weather(city='Paris', days=2)\n"
