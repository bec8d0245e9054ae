"""The jobs of every library: each runs against a script and is checked, and its lines are counted."""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers.jobs.shared import FOLLOW_UPS
from benchmarks.peers.scripts import DONE, Script, calls, order, rounds, stays, stock
from benchmarks.tree import ROOT
from sigadapt.testing import Call, Failure, LoopbackProvider, Received, Reply

FOLDER = Path(__file__).parent
MODULES = {
    "sigadapt": "sigadapt",
    "DSPy": "dspy",
    "pydantic-ai": "pydantic_ai",
    "LangChain": "langchain",
    "Agents SDK": "agents_sdk",
}
JOBS = {
    "limited": "a run with a limit of tokens, which says what it used",
    "continued": "a run that failed goes on, without running anything twice",
    "side_by_side": "the tools of a turn side by side, one with a time limit",
    "branches": "two questions that branch from one answer",
    "streamed": "the answer as text, while it is written",
    "approved": "an approval: stop, decide, go on",
}
SHARED = "shared by the jobs"
SECONDS = 60
TOGETHER = 0.25
LIMIT_PASSED = stays(calls(order(), usage=(3_000, 10)))

Facts = dict[str, Any]


def script_of(job: str) -> Script:
    """Return what the model answers in a job."""
    turns: dict[str, list[Reply]] = {
        "limited": [calls(order(), usage=(100, 10))],
        "continued": [calls(order()), Failure(400)],
        "side_by_side": [calls(stock("A"), stock("B"), Call("fetch", {"title": "C"}))],
    }
    return rounds(*turns.get(job, [calls(order())]))


def play(python: str, module: str, job: str, script: Script) -> tuple[Facts, list[Received]]:
    """Run a job in a process of its own, and return what came of it and the requests."""
    received: list[Received] = []

    def answer(request: Received) -> Reply:
        received.append(request)
        return script(0, len(received) - 1, request)

    with LoopbackProvider(answer) as provider, tempfile.TemporaryDirectory() as folder:
        address = f"{provider.url}/v1"
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": address,
            "OPENAI_API_BASE": address,
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "DSPY_CACHEDIR": folder,
        }
        command = [python, "-m", "benchmarks.peers.jobs.run", module, job]
        done_process = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    if done_process.returncode:
        raise RuntimeError(done_process.stderr)
    return json.loads(done_process.stdout.splitlines()[-1]), received


def count(facts: Facts, name: str) -> int:
    """Return how many calls of a tool began."""
    return sum(began == name for began, _ in facts["began"])


def is_limited(facts: Facts, received: list[Received]) -> bool:
    """Whether the answer and the tokens came."""
    return facts["result"] == [DONE, 125] and len(received) == 2


def is_continued(facts: Facts, received: list[Received]) -> bool:
    """Whether the answer came, from a request with the result of the one order."""
    body = json.dumps(received[-1].body)
    return facts["result"] == DONE and count(facts, "order") == 1 and "Ordered 2 of Emma" in body


def is_side_by_side(facts: Facts, received: list[Received]) -> bool:
    """Whether the calls began together, and the model read two results and a failure."""
    times = [at for _, at in facts["began"]]
    body = json.dumps(received[-1].body)
    read = "7 of A" in body and "7 of B" in body and "Fetched" not in body
    return facts["result"] == DONE and len(times) == 3 and max(times) - min(times) < TOGETHER and read


def is_branched(facts: Facts, received: list[Received]) -> bool:
    """Whether each branch has the first answer, and not the other branch."""
    first, second = (json.dumps(request.body) for request in received[-2:])
    ended = facts["result"] == [DONE, DONE] and count(facts, "order") == 1
    apart = FOLLOW_UPS[0] in first and FOLLOW_UPS[1] in second and FOLLOW_UPS[0] not in second
    return ended and apart and "Ordered 2 of Emma" in first and "Ordered 2 of Emma" in second


def is_streamed(facts: Facts, received: list[Received]) -> bool:
    """Whether several pieces came that make the answer."""
    pieces = facts["result"] or []
    return "".join(pieces) == DONE and len(pieces) > 2 and len(received) == 2


def is_approved(facts: Facts, received: list[Received]) -> bool:
    """Whether the order ran once, after the one question."""
    names = [name.split(" ")[0] for name, _ in facts["began"]]
    return facts["result"] == DONE and names == ["asked", "order"] and len(received) == 2


CHECKS: dict[str, Callable[[Facts, list[Received]], bool]] = {
    "limited": is_limited,
    "continued": is_continued,
    "side_by_side": is_side_by_side,
    "branches": is_branched,
    "streamed": is_streamed,
    "approved": is_approved,
}


def problems(library: str, python: str) -> list[str]:
    """Return which jobs of a library don't do what they say."""
    module = MODULES[library]
    found: list[str] = []
    for job in JOBS:
        if job not in lines_of(path_of(library)):
            continue
        facts, received = play(python, module, job, script_of(job))
        if not CHECKS[job](facts, received):
            found.append(f"{library}: {job}: {facts}")
        if job != "limited":
            continue
        facts, received = play(python, module, job, LIMIT_PASSED)
        if not facts["error"] or len(received) > 2:
            found.append(f"{library}: {job}: the limit does not hold: {facts}")
    return found


def path_of(library: str) -> Path:
    """Return the file of a library's jobs."""
    return FOLDER / f"{MODULES[library]}.py"


def code_of(path: Path) -> dict[str, list[str]]:
    """Return the lines with code of each job and of what the jobs share, without imports and docstrings."""
    text = path.read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom) or is_docstring(node):
            continue
        name = getattr(node, "name", SHARED)
        if name not in JOBS:
            name = SHARED
        found.setdefault(name, []).extend(code_lines(node, text.splitlines()))
    return found


def lines_of(path: Path) -> dict[str, int]:
    """Return how many lines with code each job has, its `def` line too, and what the jobs share."""
    return {name: len(lines) for name, lines in code_of(path).items()}


def code_lines(node: ast.stmt, text: list[str]) -> list[str]:
    """Return the lines of a statement that have code."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    start = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    docstrings: set[int] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.stmt) and is_docstring(inner):
            docstrings.update(range(inner.lineno, last_line(inner) + 1))
    numbers = range(start, last_line(node) + 1)
    return [text[number - 1] for number in numbers if text[number - 1].strip() and number not in docstrings]


def last_line(node: ast.stmt) -> int:
    """Return the number of a statement's last line."""
    return node.end_lineno or node.lineno


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a text alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def main(peers: str) -> None:
    """Print the lines, and what doesn't hold."""
    for library in MODULES:
        lines = lines_of(path_of(library))
        python = sys.executable if library in ("sigadapt", "DSPy") else peers
        print(library, lines, sum(lines.values()), *problems(library, python), sep="\n  ")


if __name__ == "__main__":
    main(*sys.argv[1:])
