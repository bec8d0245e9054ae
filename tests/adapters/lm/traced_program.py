"""A program whose traces are looked at: an agent's model makes a bad call beside a text, then a good one."""

from typing import Any, cast

import dspy

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

QUESTION, ANSWER, TEXT, RESULT = "1 and 222?", "three, in words", "Let me add.", "three hundred"
CODE, CHANGE = "schema_mismatch", "lowered"  # the failed result, which this wire has no flag for
SCRIPT = [
    Answer(calls=[Call("add", {"a": "one", "b": 2})], text=TEXT),
    Answer(calls=[Call("add", {"a": 1, "b": 222})]),
    Answer(calls=[Call("submit", {"answer": ANSWER})]),
]


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{RESULT}, of {a} and {b}"


def run(which: str, engine: str = "auto", **options: Any) -> Any:
    """Run the agent under DSPy's adapter (`theirs`) or sigadapt's (`ours`)."""
    theirs = dspy.ChatAdapter(use_native_function_calling=True)
    adapter = theirs if which == "theirs" else sigadapt.ChatAdapter(tool_calling="native", **options)
    with (
        LoopbackProvider(SCRIPT) as provider,
        dspy.context(lm=dspy.LM(**provider.lm_options("openai", engine=engine)), adapter=adapter),
    ):
        return cast("Any", dspy.ReActV2)("question -> answer", tools=[add])(question=QUESTION)
