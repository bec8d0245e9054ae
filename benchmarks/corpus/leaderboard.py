"""Questions of the Berkeley Function-Calling Leaderboard, and what public models answered.

Questions and right calls are gorilla's, the answers and their scores BFCL-Result's of 2024-08-11. Of the
models whose answers are text, every second one is taken, in the order of their names; of the categories,
the four that this project does not keep for blind tests.
"""

import json
from collections import defaultdict
from collections.abc import Generator
from typing import Any

from benchmarks.corpus.clones import Clone

DATA = "berkeley-function-call-leaderboard/bfcl_eval/data"
RESULTS = "2024-08-11"
CATEGORIES = ("live_simple", "multiple", "parallel", "simple_python")
# A kind of question in the results of 2024-08-11, and the name that its questions have today.
KINDS = {
    "simple": "simple_python",
    "multiple_function": "multiple",
    "parallel_function": "parallel",
    "parallel_multiple_function": "parallel_multiple",
    "relevance": "irrelevance",
}
# The benchmark's words for types, and JSON Schema's; `any` is no constraint.
TYPES = {
    "dict": "object",
    "float": "number",
    "Number": "number",
    "tuple": "array",
    "Boolean": "boolean",
    "String": "string",
}
KEPT = ("type", "properties", "items", "required", "enum", "description")


def question_files(gorilla: Clone) -> Generator[tuple[str, bytes]]:
    """Yield the question files that stay as they are, with their right calls."""
    for category in CATEGORIES:
        for path in (f"BFCL_v4_{category}.json", f"possible_answer/BFCL_v4_{category}.json"):
            yield f"bfcl/{path}", gorilla.read(f"{DATA}/{path}")


def questions(gorilla: Clone) -> dict[str, Any]:
    """Return the questions by kind and number, with their tools and right calls."""
    found: dict[str, Any] = {}
    for kind, category in KINDS.items():
        asked = json_lines(gorilla.read(f"{DATA}/BFCL_v4_{category}.json"))
        right: list[Any] = [{"ground_truth": []}] * len(asked)
        if kind != "relevance":
            right = json_lines(gorilla.read(f"{DATA}/possible_answer/BFCL_v4_{category}.json"))
        for number, (row, answer) in enumerate(zip(asked, right, strict=True)):
            functions = row["function"]
            found[f"{kind}/{number}"] = {
                "question": row["question"][0][-1]["content"],
                "tools": [_tool(function) for function in functions],
                "gold": answer["ground_truth"],
            }
    return found


def answers(results: Clone) -> Generator[dict[str, Any]]:
    """Yield what each model answered and which answers the leaderboard's own decoder got right."""
    paths = set(results.paths())
    models = sorted({path.split("/")[2] for path in paths if path.startswith(f"{RESULTS}/result/")})
    written = [model for model in models if _writes_text(results, paths, model)]
    for model in written[::2]:
        texts = _texts(results, paths, model)
        counts: dict[str, list[int]] = {}
        wrong: dict[str, set[int]] = defaultdict(set)
        for kind in KINDS:
            path = f"{RESULTS}/score/{model}/{kind}_score.json"
            if path not in paths:
                continue
            head, *faulty = json_lines(results.read(path))
            counts[kind] = [head["correct_count"], head["total_count"]]
            wrong[kind] = {row["id"] - 1 for row in faulty}
        right = [key for key in texts if _is_scored_right(key, counts, wrong)]
        yield {"model": model, "scored": counts, "right": right, "answers": texts}


def _is_scored_right(key: str, counts: dict[str, list[int]], wrong: dict[str, set[int]]) -> bool:
    kind, _, number = key.partition("/")
    return kind in counts and int(number) not in wrong[kind]


def _writes_text(results: Clone, paths: set[str], model: str) -> bool:
    """Return whether at least 90 % of a model's answers, and 1,100 of them, are text."""
    total = 0
    for kind in KINDS:
        path = _result_path(model, kind)
        total += len(json_lines(results.read(path))) if path in paths else 0
    texts = len(_texts(results, paths, model))
    return texts >= 1_100 and texts >= 0.9 * total


def _texts(results: Clone, paths: set[str], model: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind in KINDS:
        path = _result_path(model, kind)
        if path not in paths:
            continue
        for number, row in enumerate(json_lines(results.read(path))):
            if isinstance(row["result"], str):
                found[f"{kind}/{number}"] = row["result"]
    return found


def _result_path(model: str, kind: str) -> str:
    return f"{RESULTS}/result/{model}/gorilla_openfunctions_v1_test_{kind}_result.json"


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function["description"],
        "parameters": _schema(function["parameters"]),
    }


def _schema(schema: Any) -> Any:
    """Return a schema with JSON Schema's words for types, and no other words than those kept."""
    if not isinstance(schema, dict):
        return schema
    written: dict[str, Any] = {}
    for key, value in schema.items():
        if key not in KEPT:
            continue
        if key == "type":
            if value != "any":
                written[key] = TYPES.get(value, value)
        elif key == "properties":
            written[key] = {name: _schema(inner) for name, inner in value.items()}
        elif key == "items":
            written[key] = _schema(value)
        else:
            written[key] = value
    return written


def json_lines(content: bytes) -> list[Any]:
    """Return the JSON values of a file, one a line."""
    return [json.loads(line) for line in content.decode().splitlines() if line.strip()]
