"""What declarations cost in a request: the same bytes every time, and how many."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from sigadapt import ToolDecl, ToolDecls

CODE = """
from typing import Literal
import pydantic
from sigadapt import ToolDecls

class Point(pydantic.BaseModel):
    x: float
    tags: set[Literal["a", "b", "c"]] = {"a", "b", "c"}

def f(point: Point, tags: frozenset[str] = frozenset({"x", "y", "z"})) -> int:
    '''Do it.'''

print(ToolDecls([f, Point, {"type": "web_search"}]).fingerprint())
"""


def test_a_fingerprint_is_the_same_in_every_process(capsys: pytest.CaptureFixture[str]):
    """tool-declarations: The same declarations have the same fingerprint in every process."""
    exec(CODE, {"__name__": "here"})  # noqa: S102  (this process, whose seed is a third one)
    seen = {capsys.readouterr().out.strip()}
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", CODE]
        seen.add(subprocess.check_output(command, text=True, env=env).strip())  # noqa: S603
    assert len(seen) == 1
    assert len(seen.pop()) == 64


A, B = {"name": "a", "description": "A."}, {"name": "b", "description": "B."}


@pytest.mark.parametrize(
    "other",
    [
        [B, A],
        [A],
        [A, B, {"type": "web_search"}],
        [A, {**B, "description": "b."}],
        [A, {**B, "strict": True}],
        [A, {**B, "long_running": True}],
        [A, {**B, "parameters": {"type": "object", "properties": {"x": {}}}}],
    ],
)
def test_other_bytes_have_another_fingerprint(other: list[Any]):
    """tool-declarations: The same declarations have the same fingerprint in every process."""
    assert ToolDecls(other).fingerprint() != ToolDecls([A, B]).fingerprint()


@pytest.mark.parametrize("text", ["", "plain", "Zürich 東京"])
def test_a_size_is_the_bytes_of_compact_json(text: str):
    """tool-declarations: The size of a declaration is known."""
    decl = ToolDecl("f", text, {"type": "object", "properties": {"ü": {"type": "string"}}})
    sent = json.dumps(decl.to_openai(), ensure_ascii=False, separators=(",", ":"))
    assert decl.size == len(sent.encode())


@pytest.mark.parametrize("description", ["Build it.", ""])
def test_a_long_running_tool_says_so(description: str):
    """tool-declarations: A long-running tool tells the model so."""
    decl = ToolDecl("build", description, long_running=True)
    told = decl.to_openai()["function"]["description"]
    assert told.startswith(description)
    assert "result comes later" in told
    assert "Do not repeat the call" in told
    assert decl.description == description
    assert ToolDecls.model_validate_json(ToolDecls(decl).model_dump_json())["build"] == decl
