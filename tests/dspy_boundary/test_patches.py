"""What is replaced in DSPy, in a process of its own: only what a program needs, and it can be taken out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "design.md"

PROLOGUE = """
import asyncio, dspy, sigadapt
from sigadapt.dspy_boundary import patches
from sigadapt.testing import Answer, Call, LoopbackProvider

def add(a: int, b: int) -> int:
    return a + b

def talk(signature, answers, adapter, **inputs):
    with LoopbackProvider(answers) as provider:
        lm = dspy.LM(**{**provider.lm_options("openai"), "cache": False})
        with dspy.context(lm=lm, adapter=adapter):
            return dspy.Predict(signature)(**inputs)

class Plain(dspy.Signature):
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()

PLAIN = [Answer(text="[[ ## answer ## ]]\\nyes\\n\\n[[ ## completed ## ]]")]
"""
EPILOGUE = """
for owner, name, _ in patches.in_place():
    print(f"{getattr(owner, '__module__', '')}.{owner.__name__}".strip(".").rsplit(".", 1)[-1] + "." + name)
"""

AGENT = """
with LoopbackProvider([Answer(calls=[Call("submit", {"answer": "yes"})])]) as provider:
    lm = dspy.LM(**{**provider.lm_options("openai"), "cache": False})
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        dspy.ReActV2(Plain, tools=[add])(question="?")
"""
STREAM = """
async def read():
    with LoopbackProvider(PLAIN) as provider:
        lm = dspy.LM(**{**provider.lm_options("openai"), "cache": False})
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            async for _ in sigadapt.stream(dspy.Predict(Plain), question="?"):
                pass

asyncio.run(read())
"""
TOOLS = {"Tool.__new__", "Tool.__call__", "Tool.acall"}
RUNS = {"execution._engine", "execution.finalize", "execution._account_failed_call"}
STREAMS = RUNS | {"execution.anyio", "lm.anyio", "messages.anyio"}
CASES = {
    "import": ("", set[str]()),
    "no tools": ("talk(Plain, PLAIN, sigadapt.ChatAdapter(), question='?')", set[str]()),
    "a declaration": ("sigadapt.ToolDecl.of(add)", TOOLS),
    "an agent": (AGENT, TOOLS),
    "a run": ("with sigadapt.Run(): pass", RUNS),
    "a stream": (STREAM, STREAMS),
    "traces": (
        "from sigadapt.tracing import instrument; instrument()",
        {"ReActV2.forward", "ReActV2.aforward"},
    ),
}
EVERY = """
sigadapt.ToolDecl.of(add)
with sigadapt.Run(): pass
from sigadapt.tracing import instrument; instrument()
"""


def printed_by(program: str) -> list[str]:
    done = subprocess.run(  # noqa: S603  (this Python, and the programs above)
        [sys.executable, "-W", "ignore", "-c", PROLOGUE + program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(("program", "names"), CASES.values(), ids=CASES)
def test_a_program_gets_what_it_needs(program: str, names: set[str]) -> None:
    """adapter-plug-in: DSPy is left as it is until something is needed."""
    assert set(printed_by(program + EPILOGUE)) == names


def test_the_page_lists_them() -> None:
    """adapter-plug-in: The page lists what is replaced."""
    section = PAGE.read_text(encoding="utf-8").partition("## What it replaces in DSPy")[2]
    listed = set(re.findall(r"`((?:Tool|ReActV2|execution|lm|messages)\.\w+)`", section))
    assert listed == set.union(*(names for _, names in CASES.values()))


def test_all_is_taken_out_and_put_in_again() -> None:
    """adapter-plug-in: Replacements are taken out."""
    program = """
before = {(owner, name): getattr(owner, name) for owner, name, _ in [
    *patches.TOOLS, *patches.TRACES, *patches.RUNS] if name != "__new__"}
"""
    program += EVERY
    program += """
patches.uninstall()
assert all(getattr(*place) is own for place, own in before.items())
assert not patches.in_place()
assert type(dspy.Tool(sigadapt.ToolDecl.of(add))) is not dspy.Tool  # a declaration puts it in again
patches.uninstall()
assert type(dspy.Tool(add)) is dspy.Tool and dspy.Tool(add)(a=1, b=2) == 3
print("as before")
"""
    assert printed_by(program) == ["as", "before"]
