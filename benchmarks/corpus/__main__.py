"""Build the recordings behind the measured pages from local clones of public repositories.

`python3 tasks.py corpus CLONES OUT` reads clones in the folder CLONES and writes to the folder OUT, which
SIGADAPT_CORPUS can then name. Every file is checked against the digest of the one that the pages were
measured with.
"""

import argparse
import gzip
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from benchmarks.corpus import clones, leaderboard
from benchmarks.corpus.cassettes import recorded
from benchmarks.corpus.clones import BFCL_RESULT, GORILLA, PYDANTIC_AI, Clone, Source
from benchmarks.corpus.conversations import conversations
from benchmarks.corpus.exchanges import exchanges

DIGESTS = Path(__file__).with_name("digests.txt")
Files = Generator[tuple[str, bytes]]


def recordings(pydantic_ai: Clone) -> Files:
    """Yield the exchanges and the conversations, a file for each wire."""
    found = [*recorded(pydantic_ai)]
    for folder, key, rows in (("wire", "dialect", exchanges(found)), ("logs", "wire", conversations(found))):
        by_wire: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            by_wire[row[key]].append(row)
        for wire, of_wire in by_wire.items():
            yield f"{folder}/{wire}.jsonl.gz", _json_lines(of_wire)


def questions(gorilla: Clone) -> Files:
    """Yield the leaderboard's questions."""
    yield from leaderboard.question_files(gorilla)
    asked = leaderboard.questions(gorilla)
    yield "answers/questions.json.gz", json.dumps(asked, ensure_ascii=False).encode()


def answers(results: Clone) -> Files:
    """Yield what public models answered."""
    yield "answers/answers.jsonl.gz", _json_lines(leaderboard.answers(results))


BUILDS: tuple[tuple[Source, Callable[[Clone], Files]], ...] = (
    (PYDANTIC_AI, recordings),
    (GORILLA, questions),
    (BFCL_RESULT, answers),
)


def build(folder: Path, out: Path) -> list[str]:
    """Write every file and return the names of those that differ from their digest."""
    expected = dict(line.split() for line in DIGESTS.read_text(encoding="utf-8").splitlines())
    made = [make(Clone(source, folder)) for source, make in BUILDS]
    differing: list[str] = []
    for files in made:
        for name, content in files:
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
            is_same = hashlib.sha256(content).hexdigest()[:16] == expected.pop(name, None)
            print(f"{name}: {len(content):,} bytes, {'the same' if is_same else 'DIFFERENT'}", flush=True)
            if not is_same:
                differing.append(name)
    return [*differing, *expected]


def _json_lines(rows: Iterable[Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _sources() -> str:
    lines = [
        "OUT may be new or hold other files. Files of the same name are replaced, and others stay.",
        "The recordings are built in less than half a minute. benchmarks/corpus/digests.txt has a digest of",
        "each file. If a file differs from its digest, the last line names it, and the exit status is 1.",
        "",
        "clone these into CLONES:",
        "",
    ]
    for source in clones.SOURCES:
        lines += [f"  {source.remedy}", f"    at {source.commit} ({source.licence})"]
    lines += [
        "",
        "The recordings keep their licences. Don't commit them: docs/measured.md.",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Build the corpus, or say what to clone."""
    parser = argparse.ArgumentParser(
        prog="tasks.py corpus",
        description=str(__doc__).partition("\n")[0],
        epilog=_sources(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("clones", type=Path, metavar="CLONES", help="the folder of the clones")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write to")
    options = parser.parse_args(arguments)
    lacking = [remedy for source in clones.SOURCES if (remedy := clones.remedy(source, options.clones))]
    if lacking:
        print("first run: " + " && ".join(lacking), file=sys.stderr)
        return 1
    differing = build(options.clones, options.out)
    if differing:
        print(f"other than recorded: {', '.join(differing)}", file=sys.stderr)
        return 1
    print(f"All files are as they were measured. Set SIGADAPT_CORPUS={options.out.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
