"""A secret in the pieces of a stream is masked, on every wire; a stream without one stays as it is."""

import json
import re
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.testing import WIRES, Answer, Call, LoopbackProvider, exchanges_in
from sigadapt.testing.recording import without_pieces
from sigadapt.trust.echoes import Echoes

TOKEN = "Tok3n-ABCDEFGH-987654321"  # noqa: S105
PATHS = {
    "openai": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}
BODY: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}


def streamed(wire: str, answer: Answer, path: Path) -> bytes:
    """What a client gets of a streamed answer that is recorded."""
    body: dict[str, Any] = {**BODY, "contents": [], "input": "x"}
    with LoopbackProvider([answer], record=path) as provider:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.post(provider.url + PATHS[wire], json=body, headers=headers).content


def said(response: bytes) -> str:
    """All texts of the events, one after the other."""
    texts: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            walk([*cast("dict[str, Any]", value).values()])
        elif isinstance(value, list):
            for part in cast("list[Any]", value):
                walk(part)

    for line in response.decode().split("\n"):
        if found := re.match(r"(?:data: )?(\{.*)", line):
            walk(json.loads(found[1]))
    return "".join(texts)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_a_key_in_pieces_is_masked(wire: str, chunk: int, tmp_path: Path) -> None:
    """loopback-provider: A key that a stream repeats in pieces is not recorded."""
    path = tmp_path / "recording.jsonl"
    call = Call("find", {"city": "Rome", "key": TOKEN})
    streamed(
        wire,
        Answer(text=f"Your token is {TOKEN}.", reasoning=f"Hm, {TOKEN}.", calls=[call], chunk=chunk),
        path,
    )
    [exchange] = exchanges_in(path.read_bytes())
    assert "/response" in exchange.masked
    assert TOKEN not in path.read_text("utf-8")
    for size in (6, 12):
        assert TOKEN[-size:] not in said(exchange.response)
    for line in exchange.response.decode().split("\n"):
        if line.startswith("data: {"):
            json.loads(line[6:])


@pytest.mark.parametrize("wire", PATHS)
def test_a_stream_without_a_key_is_recorded_byte_for_byte(wire: str, tmp_path: Path) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    path = tmp_path / "recording.jsonl"
    answer = Answer(text="It is warm, é.", calls=[Call("find", {"n": 1.50})], chunk=2)
    content = streamed(wire, answer, path)
    [exchange] = exchanges_in(path.read_bytes())
    assert exchange.response == content
    with LoopbackProvider([exchange.reply]) as provider:
        assert httpx.post(provider.url + PATHS[wire], json=BODY).content == content


def test_calls_that_a_server_mixes_are_masked() -> None:
    """loopback-provider: A key that a stream repeats in pieces is not recorded."""
    echoes = Echoes(["secret-key-1"])
    rows = [
        {"calls": [{"index": n % 2, "arguments": part}]}
        for n, part in enumerate(["s", "x", "e", "y", "c", "z", "ret-key-1", "w"])
    ]
    text = "".join(f"data: {json.dumps(row)}\r\n\r\n" for row in rows)
    parts = [
        json.loads(line[6:])["calls"][0]["arguments"]
        for line in without_pieces(text, echoes).split("\r\n\r\n")[:-1]
    ]
    assert parts == ["***", "x", "", "y", "", "z", "", "w"]


@given(st.text('secrt-key1 9\\"', max_size=40), st.integers(1, 5))
def test_what_is_masked_in_pieces_is_what_is_masked_whole(text: str, size: int) -> None:
    """loopback-provider: A key that a stream repeats in pieces is not recorded."""
    echoes = Echoes(["secret-key-1", "99999999"])
    whole = f"{text}secret-key-1 {text}"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    stream = "".join(f"{json.dumps({'text': piece})}\n" for piece in pieces)
    lines = without_pieces(stream, echoes).split("\n")[:-1]
    joined = "".join(json.loads(line)["text"] for line in lines)
    assert echoes.without_secrets(joined) == echoes.without_secrets(whole)


@given(st.text())
def test_any_other_text_stays(text: str) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    assert without_pieces(text, Echoes(["secret-key-1"])) == text
