"""Run every case over every library, and write the section of docs/measured.md.

python -m benchmarks.peers PEERS_PYTHON [--print] [LIBRARY ...]
"""

import json
import os
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import measured
from benchmarks.peers.cases import Case, cases
from benchmarks.peers.checks import Facts
from benchmarks.peers.page import section
from benchmarks.tree import ROOT, stamp
from sigadapt.testing import LoopbackProvider, Received, Reply

LIBRARIES = {
    "sigadapt": "sigadapt_runs",
    "DSPy": "dspy_runs",
    "pydantic-ai": "pydantic_ai_runs",
    "LangChain": "langchain_runs",
    "Agents SDK": "agents_sdk_runs",
}
OURS = ("sigadapt", "DSPy")
PACKAGES = (
    "pydantic-ai-slim",
    "langchain",
    "langgraph",
    "openai-agents",
    "openai",
    "anthropic",
    "google-genai",
)
SECONDS = 20.0
START_SECONDS = 90.0


class Hang(Exception):
    """A worker that does not answer."""


class Worker:
    """A process of a library, which answers lines with lines."""

    def __init__(self, python: str, module: str) -> None:
        command = [python, "-m", "benchmarks.peers.worker", module]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "x"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=ROOT, env=env
        )
        self.seconds = START_SECONDS

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """Send a command and return its facts."""
        commands: Any = self.process.stdin
        replies: Any = self.process.stdout
        commands.write(json.dumps(command).encode() + b"\n")
        commands.flush()
        ready, _, _ = select.select([replies], [], [], self.seconds)
        line = replies.readline() if ready else b""
        self.seconds = SECONDS
        if not line:
            self.process.kill()
            self.process.wait()
            raise Hang
        return json.loads(line)


def run(case: Case, worker: Worker) -> tuple[str, str]:
    """Return the class of a case, and the reason where a library cannot."""
    phase = {"step": 0, "number": 0}
    requests: list[list[Received]] = [[] for _ in case.steps]

    def script(received: Received) -> Reply:
        number = phase["number"]
        phase["number"] += 1
        requests[phase["step"]].append(received)
        if number > 12:
            phase["endless"] = 1
            raise RuntimeError("the run does not end")
        return case.script(phase["step"], number, received)

    provider = LoopbackProvider(script).start()
    facts: list[dict[str, Any]] = []
    try:
        opened = worker.ask({"open": {**case.setup, "url": provider.url}})
        if opened["cannot"]:
            return "cannot", opened["cannot"]
        for place, step in enumerate(case.steps):
            runs = [each for each, (kind, *_) in zip(facts, case.steps, strict=False) if kind != "reload"]
            if step[0] == "go_on" and not runs[-1]["error"]:
                break
            if step[0] == "decide" and not runs[0]["waiting"]:
                break
            phase.update(step=place, number=0)
            found = worker.ask({"step": step})
            if found["cannot"] and step[0] != "go_on":
                return "cannot", found["cannot"]
            facts.append(found)
    except Hang:
        return "lost", "hangs"
    finally:
        provider.__exit__(None, KeyboardInterrupt(), None)
    if "endless" in phase:
        return "lost", "asks again without end"
    seen = Facts(facts, requests[: len(facts)])
    verdict = case.check(seen)
    return verdict, " // ".join(
        (each["error"] or each["cannot"] or str(each["answer"]))[:150] for each in seen.steps
    )


def measure(library: str, python: str, chosen: list[Case]) -> list[tuple[str, str]]:
    """Return the class of every case for a library."""
    worker = Worker(python, LIBRARIES[library])
    found: list[tuple[str, str]] = []
    for case in chosen:
        if worker.process.poll() is not None:
            worker = Worker(python, LIBRARIES[library])
        found.append(run(case, worker))
    if worker.process.stdin and worker.process.poll() is None:
        worker.process.stdin.close()
        worker.process.wait(10)
    return found


def versions(python: str, *packages: str) -> str:
    """Return the versions of an environment."""
    code = (
        "import sys\nfrom importlib.metadata import distributions\n"
        "found = {d.name: d.version for d in distributions()}\n"
        "print(', '.join(f'{n} {found[n]}' for n in sys.argv[1:] if n in found))"
    )
    command = [python, "-c", code, *packages]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: list[str]) -> None:
    """Measure, and write or print."""
    python, *rest = arguments
    if not Path(python).is_file():
        sys.exit(f"peers: {python} is not there: `python3 tasks.py evidence peers` makes it")
    prints = "--print" in rest
    names = [name for name in rest if name != "--print"] or list(LIBRARIES)
    chosen = cases()
    found = {name: measure(name, sys.executable if name in OURS else python, chosen) for name in names}
    if prints:
        for place, case in enumerate(chosen):
            cells = [f"{name}={found[name][place][0]}" for name in names]
            print(f"{case.group}: {case.name}: {' '.join(cells)}")
            for name in names:
                if found[name][place][0] != "right":
                    print(f"      {name}: {found[name][place][1]!r}"[:420])
        for name in names:
            print(name, Counter(verdict for verdict, _ in found[name]))
        return
    text = section(found, chosen, stamp("dspy", "litellm"), versions(python, *PACKAGES))
    measured.write("peers", text)


if __name__ == "__main__":
    main(sys.argv[1:])
