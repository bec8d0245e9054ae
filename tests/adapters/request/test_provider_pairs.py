"""A conversation begun over each column is continued in a new process over every other one, and its own."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from continue_pairs import saved
from pair_turns import CITIES, LOOK, LOST_ON_ARRIVAL, TURNS
from processes import run_python
from test_wire_matrix import CHECKS
from wire_bodies import part
from wire_matrix import COLUMNS, FAILED, RESULT

pytestmark = pytest.mark.slow

PAIRS = [(source, target) for source in COLUMNS for target in COLUMNS]
TAKES = {
    "chat": {"chat", "ollama"},
    "ollama": {"chat", "ollama"},
    "responses": {"responses"},
    "anthropic": {"anthropic", "bedrock"},
    "bedrock": {"anthropic", "bedrock"},
    "gemini": {"gemini"},
}
"""Whose provider state a form may carry: servers of one format, and Claude on two platforms."""
IDS = {
    "chat": r"[\s\S]{1,40}",
    "responses": r"[\s\S]{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "bedrock": r"[a-zA-Z0-9_.:-]{1,64}",
    "gemini": r"[\s\S]{1,1000}",
}
"""What an id may be: OpenAI's error messages, Anthropic's pattern, Bedrock's service model."""
WITHOUT_IDS = {"gemini-litellm", "ollama"}
"""Where LiteLLM leaves ids out of calls, so that results are told apart by order."""
ID_KEYS = ("call_id", "tool_call_id", "tool_use_id", "toolUseId", "id")
CALL_KEYS = ("toolUse", "functionCall", "function_call", "functionResponse", "toolResult")


@pytest.fixture(scope="module")
def begun(made_once: Any) -> dict[str, str]:
    """The saved conversations, by the column they were made on."""
    return made_once("begun", begin)


def begin() -> dict[str, str]:
    """Begin a conversation over each column."""
    return {column: saved(column, TURNS[COLUMNS[column].form].turn) for column in COLUMNS}


@pytest.fixture(scope="module")
def went_on(begun: dict[str, str], made_once: Any) -> dict[str, Any]:
    """What a new process sent of each conversation over each column, and what it recorded."""
    return made_once("went_on", lambda: go_on(begun))


def go_on(begun: dict[str, str]) -> dict[str, Any]:
    """Continue every conversation in a new process."""
    script = Path(__file__).parents[1] / "continue_pairs.py"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = run_python("-W", "ignore", script, stdin=json.dumps(begun), env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def calls_in(form: str, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of the model's turn, in order."""
    if form == "responses":
        return [row for row in said if row.get("type") == "function_call"]
    (row,) = said
    key = next(key for key in ("tool_calls", "content", "parts") if isinstance(row.get(key), list))
    return [
        block
        for block in row[key]
        if block.get("type") == "tool_use" or not {"function", *CALL_KEYS}.isdisjoint(block)
    ]


def results_in(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results, each as one block, in order."""
    return [
        block
        for row in rows
        for block in ((row.get("parts") or row["content"]) if row.get("role") == "user" else [row])
    ]


def id_in(block: dict[str, Any]) -> Any:
    """The id that pairs a call with its result; an item of Responses has another one besides."""
    inside = next((block[key] for key in CALL_KEYS if key in block), block)
    return next((inside[key] for key in ID_KEYS if key in inside), None)


def without_ids(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    row = cast("dict[str, Any]", value)
    return {key: without_ids(item) for key, item in row.items() if key not in ID_KEYS}


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_calls_and_results_arrive_in_pairs(source: str, target: str, begun: Any, went_on: Any) -> None:
    """
    conversations: A saved conversation goes on over another route
    conversations: A history of one provider is taken by every other
    """
    form, made = COLUMNS[target].form, went_on[target][source]["whole"]
    said, rows = (part(scope, form, made["sent"]) for scope in ("said", "results"))
    calls, results = calls_in(form, said), results_in(rows)
    assert [city in json.dumps(call) for call, city in zip(calls, CITIES, strict=True)] == [True, True]
    assert json.dumps(said).count(LOOK) == 1
    expected = results_in([RESULT.cells[target].sent[0]])[:1] + results_in(FAILED.cells[target].sent)
    assert [*map(without_ids, results)] == [*map(without_ids, expected)]
    # Where state goes, `test_own_turns.py` checks its blocks; the SDKs do not know those of every server.
    CHECKS[form](went_on[target][source]["bare"]["sent"])
    if target in WITHOUT_IDS:
        return
    ids = [id_in(call) for call in calls]
    assert ids == [id_in(result) for result in results]
    assert len({*ids}) == len(ids)
    assert all(re.fullmatch(IDS[form], each) for each in ids), ids
    given = [call["id"] for call in json.loads(begun[source])["messages"][0]["calls"]["tool_calls"]]
    renamed = [where for where, what, _ in made["changes"] if what == "renamed"]
    assert len(renamed) == sum(new != old for new, old in zip(ids, given, strict=True))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_state_goes_to_its_own_provider_or_is_on_record(
    source: str, target: str, begun: Any, went_on: Any
) -> None:
    """conversations: A saved conversation goes on over another route.

    conversations: Foreign state stays behind and is recorded.
    """
    form, made = COLUMNS[source].form, went_on[target][source]
    whole, bare = made["whole"], made["bare"]
    body = json.dumps(whole["sent"])
    recorded = [why for where, what, why in whole["changes"] if what == "dropped" or where == ""]
    marks = TURNS[form].marks
    here = {mark for mark in marks if mark in begun[source]}
    assert here, "the turn came with provider state"
    for mark, name in marks.items():
        named = re.compile(rf"\b{name}(_content)?\b")
        on_record = any(named.search(why) for why in recorded)
        if mark in LOST_ON_ARRIVAL.get(source, ()):
            assert mark not in body + begun[source]
        else:
            assert (mark in body) is not on_record, (mark, recorded)
    if form not in TAKES[COLUMNS[target].form]:
        assert "MARK" not in body
        assert whole["sent"] == bare["sent"], "as if there had been no state"
        assert recorded


def test_a_turn_goes_back_to_its_own_route_whole(went_on: Any) -> None:
    """conversations: A turn goes back as it came."""
    # An OpenAI-like server, as LiteLLM makes Ollama one, has another port in the other process.
    for column in ("responses", "anthropic", "gemini", "responses-litellm", "bedrock"):
        made = went_on[column][column]["whole"]
        assert not [why for _, what, why in made["changes"] if what == "dropped"], column
        body = json.dumps(made["sent"])
        assert all(mark in body for mark in TURNS[COLUMNS[column].form].marks), column
