"""Read 24,800 recorded answers of 20 public models, judge them, and write their section of docs/measured.md.

The answers, the questions and the right calls are those of the Berkeley Function-Calling Leaderboard
(`SIGADAPT_CORPUS`, folder `answers`). How many are right as the benchmark's own decoder for a model reads
them stands in the data; how many are right as sigadapt reads them is counted here.
"""

import gzip
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import measured
from benchmarks.tree import stamp
from sigadapt import Choice, ToolCall, ToolDecls
from sigadapt.json_values import is_array, is_object
from sigadapt.response import choice_from_text

HEAD = """## Calls that public models write as text

{stamp}

`python3 tasks.py evidence answers` writes this section. It reads {answers:,} answers of {models} public
models to the Berkeley Function-Calling Leaderboard (results of 2024-08-11), of which 20,000 should
contain calls and 4,800 none. `choice_from_text(text, tools)` reads them with its defaults, and without
knowing the model. *Theirs* are the answers that are right by the leaderboard's own decoder for the model.

| model | correct calls of 1,000: theirs | ours | correct abstentions of 240: theirs | ours |
| --- | ---: | ---: | ---: | ---: |
"""
REST = """
{unread}

Of the {reach:,} answers that their decoders get right, sigadapt misses {missed:,}:

| why | answers |
| --- | ---: |
{rows}

A code fence with words beside it is a quotation, and a variable's name isn't a value. A decoder that
can't read a call counts the answer as an abstention. This measures reading, not how well a model calls
tools.
"""
_REASONS = {
    "quoted": "a fence with words beside it",
    "bad": "a bad call: a variable, an expression or broken arguments",
    "other": "other values or other calls",
    "none": "no call found",
}


class Tally(NamedTuple):
    """What came of one model's answers: right calls and silences, theirs and ours."""

    model: str
    their_calls: int
    calls: int
    their_silences: int
    silences: int


def flat(name: str) -> str:
    """Return a name as providers take it: with underscores in the place of dots and spaces."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def same(value: Any, right: Any) -> bool:
    """Return whether a value is a right one; texts are compared without case and punctuation."""
    if isinstance(value, str) and isinstance(right, str):
        bare = [re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"') for text in (value, right)]
        return bare[0] == bare[1]
    if isinstance(value, bool) or isinstance(right, bool):
        return value is right
    if is_array(value) and is_array(right):
        pairs = zip(value, right, strict=False)
        return len(value) == len(right) and all(_any_of(one, other) for one, other in pairs)
    if is_object(value) and is_object(right):
        return _has(value, right)
    return value == right


def _any_of(value: Any, right: Any) -> bool:
    several: list[Any] = right if is_array(right) and not is_array(value) else [right]
    return any(same(value, each) for each in several)


def _has(args: dict[str, Any], right: dict[str, Any]) -> bool:
    """Return whether arguments are right: each is one of the values listed, and only optional ones lack."""
    lists: dict[str, list[Any]] = {
        key: values if is_array(values) else [values] for key, values in right.items()
    }
    return all(
        key in lists and any(same(value, each) for each in lists[key]) for key, value in args.items()
    ) and all(key in args or "" in values for key, values in lists.items())


def is_right(calls: list[ToolCall], right: list[dict[str, Any]]) -> bool:
    """Return whether calls are the right ones, in any order."""
    left = list(calls)
    for each in right:
        ((name, args),) = each.items()
        fitting = next((c for c in left if flat(c.name) == flat(name) and _has(c.args, args)), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return not left


def reason(text: str, choice: Choice, calls: list[ToolCall]) -> str:
    """Return why an answer that their decoder reads rightly is not right here."""
    if "```" in text and not calls:
        return "quoted"
    if choice.tool_calls is not None and choice.tool_calls.invalid:
        return "bad"
    return "other" if calls else "none"


def measure(folder: Path) -> tuple[list[Tally], Counter[str]]:
    """Read every answer; return a tally for each model, and why answers were missed."""
    questions = json.loads(gzip.decompress((folder / "questions.json.gz").read_bytes()))
    decls: dict[tuple[str, bool], ToolDecls] = {}
    tallies, reasons = list[Tally](), Counter[str]()
    for line in gzip.decompress((folder / "answers.jsonl.gz").read_bytes()).decode().splitlines():
        model = json.loads(line)
        theirs, right = set(model["right"]), Counter[str]()
        for key, text in model["answers"].items():
            tools = questions[key]["tools"]
            # The leaderboard sends flat names where a provider takes no dots.
            is_dotted = any(tool["name"] in text for tool in tools)
            if (key, is_dotted) not in decls:
                named = tools if is_dotted else [{**tool, "name": flat(tool["name"])} for tool in tools]
                decls[key, is_dotted] = ToolDecls(named)
            choice = choice_from_text(text, decls[key, is_dotted])
            calls = list(choice.tool_calls or ())
            if key.startswith("relevance"):
                right["silences"] += not calls
            elif is_right(calls, questions[key]["gold"]):
                right["calls"] += 1
            elif key in theirs:
                reasons[reason(text, choice, calls)] += 1
            right["reach"] += key in theirs and not key.startswith("relevance")
        scored: dict[str, list[int]] = model["scored"]
        their_calls = sum(counts[0] for kind, counts in scored.items() if kind != "relevance")
        silent = scored.get("relevance", [0])[0]
        tallies.append(Tally(model["model"], their_calls, right["calls"], silent, right["silences"]))
        reasons["reach"] += right["reach"]
    return tallies, reasons


def unread(tallies: list[Tally]) -> str:
    """Say how much of the gain comes from models whose decoder reads hardly any of their calls."""
    failed = [each for each in tallies if each.their_calls * 3 < each.calls]
    gain = sum(each.calls - each.their_calls for each in tallies)
    of_failed = sum(each.calls - each.their_calls for each in failed)
    return (
        f"sigadapt reads {gain:,} more right calls. Of these, {of_failed:,} come from {len(failed)} models "
        "whose own decoder reads hardly any of their calls: "
        f"{' and '.join(each.model for each in failed)}. The other "
        f"{len(tallies) - len(failed)} models account for {gain - of_failed:,}."
    )


def section(tallies: list[Tally], reasons: Counter[str]) -> str:
    """Return the section of the page."""
    total = Tally("**all**", *(sum(column) for column in zip(*(each[1:] for each in tallies), strict=True)))
    rows = "".join(f"| {' | '.join(map(str, each))} |\n" for each in [*tallies, total])
    missed = {key: count for key, count in reasons.items() if key != "reach"}
    why = "\n".join(f"| {words} | {missed.get(key, 0):,} |" for key, words in _REASONS.items())
    head = HEAD.format(stamp=stamp("dspy"), answers=1_240 * len(tallies), models=len(tallies))
    sums = {
        "unread": unread(tallies),
        "missed": sum(missed.values()),
        "reach": reasons["reach"],
        "rows": why,
    }
    return head + rows + REST.format(**sums)


def main() -> None:
    """Measure, and write the section."""
    measured.write("answers", section(*measure(Path(os.environ["SIGADAPT_CORPUS"], "answers"))))


if __name__ == "__main__":
    main()
