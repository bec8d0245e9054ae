"""DSPy's optimizers over programs with tool fields, saved and loaded in a new process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dspy
import pytest
from optimized import OPTIMIZERS, PROGRAMS, conversation, examples, metric_of, model, path_of
from processes import run_python

import sigadapt
from sigadapt.testing import LoopbackProvider

pytestmark = pytest.mark.slow

EVERY = [(kind, optimizer) for kind in PROGRAMS for optimizer in OPTIMIZERS]


class Optimized(NamedTuple):
    """A program after an optimizer, its scores before and after, and its next conversation."""

    program: Any
    before: float
    after: float
    conversation: list[Any]


@pytest.fixture(scope="module")
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider(model) as provider:
        yield provider


@pytest.fixture(scope="module")
def optimized(provider: LoopbackProvider) -> dict[tuple[str, str], Optimized]:
    lm = dspy.LM(**provider.lm_options("openai"))
    found: dict[tuple[str, str], Optimized] = {}
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        for kind, optimizer in EVERY:
            metric, devset = metric_of(kind), examples(kind)
            score: Any = dspy.Evaluate(devset=devset, metric=metric, num_threads=1)
            before = score(PROGRAMS[kind]()).score
            program = OPTIMIZERS[optimizer](PROGRAMS[kind](), metric, devset, lm)
            after = score(program).score
            found[kind, optimizer] = Optimized(program, before, after, conversation(provider, program, kind))
    return found


@pytest.fixture(scope="module")
def loaded(optimized: dict[Any, Optimized], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The conversations of all programs, in both forms, in one new process."""
    folder = tmp_path_factory.mktemp("programs")
    for (kind, optimizer), found in optimized.items():
        found.program.save(path_of(folder, kind, optimizer, "state"))
        found.program.save(path_of(folder, kind, optimizer, "whole"), save_program=True)
    script = Path(__file__).with_name("optimized.py")
    done = run_python(script, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("kind", "optimizer"), EVERY)
def test_an_optimizer_makes_a_program_better(kind: str, optimizer: str, optimized: dict[Any, Optimized]):
    """evaluation: Every optimizer takes a program with tool fields."""
    found = optimized[kind, optimizer]
    assert (found.before, found.after) == (60, 100)


@pytest.mark.parametrize("form", ["state", "whole"])
@pytest.mark.parametrize(("kind", "optimizer"), EVERY)
def test_a_loaded_program_has_the_same_conversation(
    kind: str, optimizer: str, form: str, optimized: dict[Any, Optimized], loaded: dict[str, Any]
):
    """evaluation: A saved program has the same conversation in a new process."""
    name = path_of(Path(), kind, optimizer, form).name
    assert loaded[name] == optimized[kind, optimizer].conversation


@pytest.mark.parametrize("kind", PROGRAMS)
def test_demonstrations_are_turns_with_calls(kind: str, optimized: dict[Any, Optimized]):
    """evaluation: A demonstration is sent as a turn with calls."""
    (body, *_) = optimized[kind, "few shot"].conversation
    turns = [message for message in body["messages"] if message.get("tool_calls")]
    names = [call["function"]["name"] for turn in turns for call in turn["tool_calls"]]
    assert len(turns) >= 2
    assert set(names) <= {"get_weather", "submit"}
    assert "<function" not in json.dumps(body)


def test_a_reflection_reads_what_was_wrong_with_a_call(provider: LoopbackProvider, optimized: Any):
    """evaluation: A failed answer is told with its calls."""
    asked = [json.dumps(r.body["messages"]) for r in provider.received if "tools" not in r.body]
    reflections = [text for text in asked if "current_instruction" in text and "(ToolCalls)" in text]
    wrong = [text for text in reflections if "town" in text]
    assert wrong
    assert all("schema_mismatch" in text and "was unexpected" in text for text in wrong)
    assert all("Weather for a city." in text for text in reflections)
    assert not any("InvalidToolCall" in text for text in reflections)  # what no model writes


def test_a_program_that_raised_scores_nothing():
    """evaluation: A program that raised has made no calls."""
    gold = dspy.Example(calls=None)
    exact = sigadapt.metrics.ExactMatch()
    assert (exact(gold, dspy.Prediction(calls=None)), exact(gold, None)) == (True, False)
    asked: Any = exact(gold, None, None, "pick", [])
    assert (asked.score, asked.feedback) == (0.0, "The program failed, so it made no calls.")
