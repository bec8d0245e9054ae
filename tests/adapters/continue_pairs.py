"""Continue saved conversations over every column: what `test_provider_pairs.py` runs in a new process.

Reads conversations as JSON by the column they were made on, writes what was sent and recorded by pair.
"""

import json
import sys
from typing import Any, cast

import dspy
from support import Talk
from wire_bodies import said_text, serving
from wire_matrix import COLUMNS, declared

import sigadapt
from sigadapt import ToolDecls, ToolResults


def ask(lm: Any, **inputs: Any) -> Any:
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
        return dspy.Predict(Talk)(tools=ToolDecls([declared("get_weather")]), **inputs)


def saved(column: str, heard: Any) -> str:
    """A conversation over a column as JSON: a turn with two calls, of which the second failed."""
    with serving(column, heard) as served:
        calls = ask(served.lm(), question="Weather?").calls
    results = ToolResults.of(calls, ["sunny", "backend down"], errors=[False, True])
    event = {"question": "Weather?", "calls": calls, "results": results}
    return dspy.History(messages=[event]).model_dump_json()


def stateless(value: Any) -> Any:
    """The same conversation without provider state."""
    if isinstance(value, list):
        return [stateless(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    row = cast("dict[str, Any]", value)
    return {key: None if key == "state" else stateless(item) for key, item in row.items()}


def continued(column: str, conversations: dict[str, str]) -> dict[str, Any]:
    """What leaves for a column of each conversation, and of each without its provider state."""
    with serving(column, said_text(COLUMNS[column].form)) as served:
        lm = served.lm()
        return {source: _both(served, lm, text) for source, text in conversations.items()}


def _both(served: Any, lm: Any, text: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in (("whole", json.loads(text)), ("bare", stateless(json.loads(text)))):
        ask(lm, history=dspy.History.model_validate(value))
        entry: Any = lm.history[-1]
        made[name] = {"sent": served.sent[-1], "changes": [*map(list, entry.get("changes") or ())]}
    return made


if __name__ == "__main__":
    everything: dict[str, str] = json.load(sys.stdin)
    json.dump({column: continued(column, everything) for column in COLUMNS}, sys.stdout)
