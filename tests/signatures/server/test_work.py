"""What server tools left in an answer: read from recorded answers, from answers by hand, and from noise."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import CORPUS, json_values
from tables import table

import sigadapt
from sigadapt import Files, Sources, choice_from_response
from sigadapt.response import choice_from_stream
from sigadapt.server_tools import Source

MADE = sorted(Path(CORPUS, "made").glob("*.jsonl.gz")) if CORPUS else []
STATUSES = {"ok": "completed", "failed": "failed", "pending": "pending"}


def rows() -> list[Any]:
    return [
        pytest.param(row, id=row["id"])
        for path in MADE
        for line in gzip.open(path, "rt", encoding="utf-8")
        for row in (json.loads(line),)
    ]


@pytest.mark.skipif(not MADE, reason="SIGADAPT_CORPUS names no corpus of recorded answers")
@pytest.mark.parametrize("row", rows())
def test_recorded_answers(row: dict[str, Any]) -> None:
    """server-tools: Recorded answers give calls, sources and files."""
    read = choice_from_stream if row["stream"] else choice_from_response
    choice, expected = read(row["response"]), row["expected"]
    calls: list[Any] = expected["calls"] or []
    for wanted, call in zip(calls, choice.server_calls, strict=False):
        assert call.kind in wanted["kind"]  # one word, or several
        assert wanted["status"] in (None, *[key for key, word in STATUSES.items() if word == call.status])
        assert wanted["id"] in (None, call.id)
    if expected["calls"] is not None:
        assert len(choice.server_calls) == len(expected["calls"])
    found = {source.url: source for source in choice.sources}
    for wanted in expected["sources"]:
        if wanted["url"]:
            assert wanted["title"] in (None, found[wanted["url"]].title)
            assert wanted["cited"] in (None, found[wanted["url"]].cited)
    assert len(choice.files) == len(expected["files"])
    assert [file["id"] for file in expected["files"] if "id" in file] == [f.id for f in choice.files if f.id]


def anthropic(*content: Any) -> dict[str, Any]:
    return {"type": "message", "stop_reason": "end_turn", "content": list(content)}


def responses(*output: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(output)}


def gemini(candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"finishReason": "STOP", "content": {"parts": []}, **candidate}]}


def chat(message: Any, **body: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "So.", **message}, "finish_reason": "stop"}], **body}


CALLS: dict[str, tuple[dict[str, Any], list[Any]]] = table(__file__, "CALLS")


@pytest.mark.parametrize("name", CALLS)
def test_calls_by_hand(name: str) -> None:
    """server-tools: Recorded answers give calls, sources and files."""
    body, expected = CALLS[name]
    (call,) = choice_from_response(body).server_calls
    assert [call.kind, call.status, call.input] == expected


KEYS = st.sampled_from(
    str.split("""
    type id name input tool_use_id content url title citations cited_text file_id action sources results
    annotations outputs result arguments error output executableCode codeExecutionResult toolCall toolResponse
    inlineData fileData groundingMetadata groundingChunks groundingSupports groundingChunkIndices web
    webSearchQueries urlContextMetadata urlMetadata executed_tools search_results images image_url
    """)
)
WORDS = st.sampled_from(
    str.split("""
    server_tool_use web_search_tool_result web_search_result text message output_text url_citation
    web_search_call mcp_call image_generation_call code_interpreter_call container_file_citation
    """)
)
BLOCKS = st.recursive(
    WORDS | json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(KEYS, BLOCKS, max_size=6), min_size=1, max_size=4), BLOCKS)
def test_noise(blocks: list[Any], beside: Any) -> None:
    """server-tools: A strange block never raises."""
    text = {"type": "text", "text": "So."}
    for body in (
        anthropic(text, *blocks),
        responses({"type": "message", "content": [text]}, *blocks),
        gemini({"content": {"parts": [text, *blocks]}, "groundingMetadata": beside, **blocks[0]}),
        chat(
            {**blocks[0], "annotations": beside, "executed_tools": blocks, "images": blocks}, citations=beside
        ),
    ):
        choice = choice_from_response(body)
        Sources.model_validate_json(choice.sources.model_dump_json())
        Files.model_validate_json(choice.files.model_dump_json())


def test_sources_print_as_footnotes() -> None:
    """server-tools: Fields of type Sources and Files take them."""
    sources = Sources((Source(url="https://a.test/\u202e", title="A"), Source(id="file_1")))
    assert str(sources) == "[1] A, https://a.test/\\u202e\n[2] file_1"
    assert (len(sources), sources[1].quote, bool(sigadapt.Sources())) == (2, None, False)
