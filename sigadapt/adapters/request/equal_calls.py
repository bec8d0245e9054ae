"""Two equal calls of one turn, on a route that would merge them.

LiteLLM leaves out a call that is equal to another one of the same turn on the way to some models, but not its
result. Such a turn is sent as several, each with calls that differ, and with their results.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from sigadapt.schemas.arguments import parse_arguments

Row = dict[str, Any]


def without_equal_calls(rows: list[Row]) -> Iterator[tuple[int, int, list[Row]]]:
    """Find the turns that have equal calls."""
    for place, row in enumerate(rows):
        groups = _groups(row.get("tool_calls") or ()) if row["role"] == "assistant" else []
        if len(groups) > 1:
            results = list(takewhile(lambda each: each["role"] == "tool", rows[place + 1 :]))
            made: list[Row] = []
            for number, calls in enumerate(groups):
                turn = row if number == 0 else {"role": "assistant", "content": None}
                ids = {call["id"] for call in calls}
                made.append({**turn, "tool_calls": calls})
                made += [result for result in results if result["tool_call_id"] in ids]
            yield place, place + 1 + len(results), made


def _groups(calls: Any) -> list[list[Row]]:
    """Return the calls in as few groups as possible, none with two equal calls."""
    groups: list[list[Row]] = []
    said: list[list[Any]] = []
    for call in calls:
        sent = _sent(call)
        number = next((n for n, earlier in enumerate(said) if sent not in earlier), len(groups))
        if number == len(groups):
            groups.append([])
            said.append([])
        groups[number].append(call)
        said[number].append(sent)
    return groups


def _sent(call: Row) -> tuple[Any, Any]:
    function = call["function"]
    arguments = parse_arguments(function["arguments"])
    return function["name"], arguments if isinstance(arguments, dict) else {}
