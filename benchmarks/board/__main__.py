"""Let several libraries read the same recorded answers, and write their section of docs/measured.md.

The answers are recorded exchanges of real providers (`SIGADAPT_CORPUS`, folder `wire`). A server on this
machine sends each one again, byte for byte, to each library's own client. What a library gives to the program
is compared with what a separate reader found when the recordings were built.
"""

import argparse
import gzip
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from jsonschema import Draft202012Validator

from benchmarks import measured
from benchmarks.board import ours, readers
from benchmarks.board.readers import Read
from benchmarks.tree import ROOT, stamp
from sigadapt.testing import LoopbackProvider, Received, Reply

# The name that the loopback provider has for a wire of the recordings.
WIRES = {
    "openai-chat": "openai",
    "openai-responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
ORDER = (*ours.READERS, *readers.READERS)
LIBRARIES = ("pydantic-ai-slim", "langchain-core", "openai", "anthropic", "google-genai")
CLASSES = ("as recorded", "text lost beside calls", "text lost, no calls", "misread", "raised")
SECTION = """## Recorded answers, read by several libraries

{stamp} The others: {versions}.

`python3 tasks.py evidence board` writes this section. {count} answers that real providers sent, {streams}
of them streamed, are sent again, byte for byte, to each library's own client. A separate reader says what
is right: which calls, with which arguments and ids, and which text. In {sound} of the answers, each call
fits the schema of its tool, or there is no call:

{totals}
Read as recorded, by wire:

{by_wire}
In the other {unsound} answers, the model wrote a call that doesn't fit the schema of its own request.
*Refused* means that reading the answer raises, or marks the call. In its agents, pydantic-ai checks the call
later.

{misfits}
Another library reads these as recorded, and sigadapt doesn't:

{better}
sigadapt refuses an answer that ended at its token limit, or that its provider hadn't finished. The error
carries what there is. DSPy's `dspy.ToolCalls`, here the only output, have no place for text.
Bedrock, Cohere and Mistral are left out, because not every library reads them with the same client.
"""


class Verdict(NamedTuple):
    """What a reader made of an answer."""

    reader: str
    name: str
    wire: str
    id: str
    is_sound: bool
    error: str | None


def verdict(expected: Read, found: Read) -> str:
    """Put what was read into its class."""
    if "error" in found:
        return "raised"
    if len(found["calls"]) != len(expected["calls"]):
        return "misread"
    for call, right in zip(found["calls"], expected["calls"], strict=True):
        has_right_id = right["id"] is None or call["id"] == right["id"]
        if call["name"] != right["name"] or call["args"] != right["args"] or not has_right_id:
            return "misread"
    texts = ["".join((each["text"] or "").split()) for each in (found, expected)]
    if texts[0] == texts[1]:
        return "as recorded"
    return "text lost beside calls" if expected["calls"] else "text lost, no calls"


def exchanges(corpus: Path, count: int | None) -> list[dict[str, Any]]:
    """Return the recorded exchanges of the four wires."""
    found: list[dict[str, Any]] = []
    for wire in WIRES:
        lines = gzip.decompress((corpus / "wire" / f"{wire}.jsonl.gz").read_bytes()).decode().split("\n")
        rows = [json.loads(line) for line in lines if line]
        found += [row for row in rows if is_whole(row)][:count]
    return found


def is_whole(row: dict[str, Any]) -> bool:
    """Return whether each library has a client for an answer, and its calls are of declared functions."""
    if "mistral" in row["host"]:  # pydantic-ai and LangChain read it with clients of its own
        return False
    declared = {tool["name"] for tool in row["expected"]["tools"]}
    return all(call["name"] in declared for call in row["expected"]["calls"])


def is_sound(row: dict[str, Any]) -> bool:
    """Return whether each call of an answer fits the schema of its tool."""
    schemas = {tool["name"]: tool["parameters"] or {} for tool in row["expected"]["tools"]}
    return all(
        Draft202012Validator(_lower(schemas[call["name"]])).is_valid(call["args"])
        for call in row["expected"]["calls"]
    )


def _lower(schema: Any) -> Any:
    """Return a schema with JSON Schema's names of types; Gemini's are the same in capitals."""
    if isinstance(schema, list):
        return [_lower(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _lower(value)
        for key, value in schema.items()
    }


class Worker:
    """The process of the other libraries."""

    def __init__(self, python: str) -> None:
        """Start it."""
        command = [python, "-m", "benchmarks.board.readers"]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)

    def read(self, task: dict[str, Any]) -> Read:
        """Let a reader do a task."""
        tasks = cast("IO[str]", self._process.stdin)
        tasks.write(json.dumps(task) + "\n")
        tasks.flush()
        return json.loads(cast("IO[str]", self._process.stdout).readline())


def measure(rows: list[dict[str, Any]], worker: Worker) -> list[Verdict]:
    """Let every reader read every answer."""
    verdicts: list[Verdict] = []
    sent: list[bytes] = []

    def script(_: Received) -> Reply:
        return sent[-1]

    with LoopbackProvider(script) as provider:
        for row in rows:
            body = row["response"]
            sent.append(body.encode() if isinstance(body, str) else json.dumps(body).encode())
            wire = WIRES[row["dialect"]]
            options = provider.lm_options(wire)
            task = {
                "wire": row["dialect"],
                "stream": row["stream"],
                "tools": row["expected"]["tools"],
                "model": options["model"].rpartition("/")[2],
                "url": provider.url,
                "base": provider.base_url(wire),
            }
            for reader in ORDER:
                if reader in ours.READERS:
                    found = readers.outcome(ours.READERS[reader], {**task, "lm": options})
                else:
                    found = worker.read({**task, "reader": reader})
                name = verdict(row["expected"], found)
                error = found.get("error")
                verdicts.append(Verdict(reader, name, row["dialect"], row["id"], is_sound(row), error))
    return verdicts


def table(head: list[str], rows: list[list[object]]) -> str:
    """Write a table; all columns but the first are numbers or words."""
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def totals(verdicts: list[Verdict]) -> str:
    """Count the classes for each reader."""
    counts = Counter((each.reader, each.name) for each in verdicts)
    return table(["", *CLASSES], [[reader, *(counts[reader, name] for name in CLASSES)] for reader in ORDER])


def section(rows: list[dict[str, Any]], verdicts: list[Verdict], versions: str) -> str:
    """Return the section of the page."""
    sound = [each for each in verdicts if each.is_sound]
    misfits = [each for each in verdicts if not each.is_sound]
    refused = Counter((each.reader, each.name == "raised") for each in misfits)
    by_wire: list[list[object]] = []
    for wire in WIRES:
        read = Counter(each.reader for each in sound if each.wire == wire and each.name == "as recorded")
        total = sum(each.wire == wire and each.reader == ORDER[0] for each in sound)
        by_wire.append([f"{wire}, {total}", *(read[reader] for reader in ORDER)])
    return SECTION.format(
        stamp=stamp("dspy"),
        versions=versions,
        count=len(rows),
        streams=sum(row["stream"] for row in rows),
        sound=len(sound) // len(ORDER),
        unsound=len(misfits) // len(ORDER),
        totals=totals(sound),
        by_wire=table(["", *ORDER], by_wire),
        misfits=table(
            ["", "refused", "returned"],
            [[reader, refused[reader, True], refused[reader, False]] for reader in ORDER],
        ),
        better=_better(sound),
    )


def _better(sound: list[Verdict]) -> str:
    """List the answers that another library reads as recorded, and sigadapt does not."""
    readers_of: dict[str, list[str]] = {}
    for each in sound:
        if each.name == "as recorded":
            readers_of.setdefault(each.id, []).append(each.reader)
    rows: list[list[object]] = []
    for each in sound:
        others = readers_of.get(each.id, [])
        if each.reader == "sigadapt" and each.name != "as recorded" and others:
            came = _short(each.error) if each.error else each.name
            rows.append([f"`{each.id}`", each.wire, came, ", ".join(others)])
    return table(["recording", "wire", "sigadapt", "read by"], rows) if rows else "None.\n"


def _short(error: str) -> str:
    return " ".join(error.replace("|", "/").split())[:120]


def versions_of(python: str) -> str:
    """Return the versions of the other libraries."""
    code = (
        f"from importlib.metadata import version as v; print(', '.join(n + ' ' + v(n) for n in {LIBRARIES}))"
    )
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(prog="benchmarks.board", description=str(__doc__).partition("\n")[0])
    parser.add_argument("python", help="the Python of the environment that has the other libraries")
    parser.add_argument("--count", type=int, help="how many answers of each wire, for a try; writes nothing")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    corpus = Path(os.environ["SIGADAPT_CORPUS"])
    rows = exchanges(corpus, given.count)
    verdicts = measure(rows, Worker(given.python))
    text = section(rows, verdicts, versions_of(given.python))
    if given.count:
        sys.stdout.write(text)
    else:
        measured.write("board", text)


if __name__ == "__main__":
    main()
