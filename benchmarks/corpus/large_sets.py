"""The corpus of a large tool set: 1,000 tools of the leaderboard, and 400 questions with their right tool.

Which of the leaderboard's tools and questions were drawn is listed in `large_sets.txt`: a tool by its file,
line and place there, a question by its id.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from benchmarks.corpus.clones import Clone
from benchmarks.corpus.leaderboard import DATA, TYPES, json_lines

DRAWN = Path(__file__).with_suffix(".txt")
QUESTIONS = ("live_multiple", "simple_python", "multiple", "live_simple")


def large_set(gorilla: Clone) -> Generator[dict[str, Any]]:
    """Yield the tools, then the questions."""
    files: dict[str, list[Any]] = {}
    asked: dict[str, dict[str, Any]] = {}
    answered: dict[str, list[dict[str, Any]]] = {}
    for category in QUESTIONS:
        asked |= {row["id"]: row for row in json_lines(gorilla.read(f"{DATA}/BFCL_v4_{category}.json"))}
        answers = json_lines(gorilla.read(f"{DATA}/possible_answer/BFCL_v4_{category}.json"))
        answered |= {row["id"]: row["ground_truth"] for row in answers}
    schemas: dict[str, Any] = {}
    for line in DRAWN.read_text(encoding="utf-8").splitlines():
        file, *place = line.split()
        if not place:
            question = asked[line]
            yield _question(question, answered[line], schemas)
            continue
        if file not in files:
            files[file] = json_lines(gorilla.read(f"{DATA}/{file}.json"))
        row = files[file][int(place[0])]
        function = row["function"][int(place[1])] if "function" in row else row
        tool = {
            "name": function["name"],
            "description": function["description"],
            "parameters": _schema(function["parameters"]),
        }
        schemas[tool["name"]] = tool["parameters"]
        yield {"tool": tool}


def _question(row: dict[str, Any], answer: list[dict[str, Any]], schemas: dict[str, Any]) -> dict[str, Any]:
    ((name, options),) = answer[0].items()
    arguments = {key: _first(values) for key, values in options.items() if _first(values) != ""}
    return {
        "question": row["question"][0][-1]["content"],
        "gold": name,
        "args": arguments,
        "fits": Draft202012Validator(schemas[name]).is_valid(arguments),
        "id": row["id"],
    }


def _first(values: list[Any]) -> Any:
    """Return the first of several right values that says something."""
    value = next((value for value in values if value != ""), "")
    if not isinstance(value, list) or not value:
        return value
    if isinstance(value[0], dict):
        return {key: _first(inner) for key, inner in value[0].items()}
    return value[0]


def _schema(schema: Any) -> Any:
    """Return a schema with JSON Schema's words for types, and all its other words but `optional`."""
    if not isinstance(schema, dict):
        return schema
    written: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            if value != "any":
                written[key] = TYPES.get(value, value)
        elif key == "properties":
            written[key] = {name: _schema(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            written[key] = _schema(value)
        elif key != "optional":
            written[key] = value
    return written
