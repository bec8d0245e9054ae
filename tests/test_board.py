"""The board: how an answer that a library read is judged, and what the page lists."""

import importlib
from typing import Any

import pytest

BOARD: Any = importlib.import_module("benchmarks.board.__main__")
READERS: Any = importlib.import_module("benchmarks.board.readers")
OURS: Any = importlib.import_module("benchmarks.board.ours")
NOW: dict[str, Any] = {"id": "call_1", "name": "now", "args": {}}
TOOL: dict[str, Any] = {
    "name": "now",
    "description": "The time.",
    "parameters": {"type": "OBJECT", "properties": {}},
}


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ({"calls": [NOW], "text": "Let me  look."}, "as recorded"),
        ({"calls": [NOW], "text": None}, "text lost beside calls"),
        ({"calls": [], "text": "Let me look."}, "misread"),
        ({"calls": [{**NOW, "args": {"zone": "CET"}}], "text": "Let me look."}, "misread"),
        ({"calls": [{**NOW, "id": "call_2"}], "text": "Let me look."}, "misread"),
        ({"error": "ValueError: no"}, "raised"),
    ],
)
def test_what_was_read_has_a_class(found: dict[str, Any], name: str) -> None:
    """Readers stand side by side."""
    assert BOARD.verdict({"calls": [NOW], "text": "Let me look."}, found) == name


def test_a_lost_text_without_calls_has_its_own_class() -> None:
    """Readers stand side by side."""
    lost = BOARD.verdict({"calls": [], "text": "Noon."}, {"calls": [], "text": None})
    assert lost == "text lost, no calls"


def test_an_answer_is_judged_by_the_schema_of_its_request() -> None:
    """Readers stand side by side."""
    strict: dict[str, Any] = {
        **TOOL,
        "parameters": {"type": "OBJECT", "properties": {}, "additionalProperties": False},
    }
    rows: list[dict[str, Any]] = [
        {"expected": {"calls": [{**NOW, "args": args}], "tools": [strict]}} for args in ({}, {"zone": 1})
    ]
    assert [BOARD.is_sound(row) for row in rows] == [True, False]


def test_the_page_lists_what_another_reads() -> None:
    """Readers stand side by side."""
    rows = [{"dialect": "openai-chat", "stream": False}]
    verdicts = [
        BOARD.Verdict(reader, "as recorded", "openai-chat", "a#0", is_sound=True, error=None)
        for reader in BOARD.ORDER
        if reader != "sigadapt"
    ]
    verdicts.append(
        BOARD.Verdict("sigadapt", "raised", "openai-chat", "a#0", is_sound=True, error="UnusableAnswer: cut")
    )
    page = BOARD.page(rows, verdicts, "some 1.0")
    assert (
        "| `a#0` | openai-chat | UnusableAnswer: cut | DSPy's adapter, pydantic-ai, LangChain, the SDK |"
        in page
    )


def test_an_error_of_a_reader_is_an_outcome() -> None:
    """Readers stand side by side."""

    def reader(_: Any) -> Any:
        raise ValueError("no")

    assert READERS.outcome(reader, {}) == {"error": "ValueError: no"}


def test_sigadapt_and_dspy_read_over_http() -> None:
    """Readers stand side by side."""
    call = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
    body = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    with BOARD.LoopbackProvider([body, body]) as provider:
        lm = provider.lm_options("openai")
        tool: dict[str, Any] = {**TOOL, "parameters": {"type": "object", "properties": {}}}
        task: dict[str, Any] = {"wire": "openai-chat", "stream": False, "tools": [tool], "lm": lm}
        assert READERS.outcome(OURS.with_sigadapt, task) == {"calls": [NOW], "text": "Let me look."}
        theirs = READERS.outcome(OURS.with_dspy, task)
        assert [each["name"] for each in theirs["calls"]] == ["now"]
        assert theirs["text"] is None
