"""What a loopback provider records is what passed, and holds no key."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Received, secrets_of
from support import json_values

from sigadapt.testing import (
    WIRES,
    Answer,
    Call,
    Exchange,
    Failure,
    LoopbackError,
    LoopbackProvider,
    exchanges_in,
    forwarding,
)

SAID = Answer(text="Grüße.", calls=[Call("now", {"a": 1})])


def ask(provider: LoopbackProvider, wire: str) -> Any:
    lm = dspy.LM(**provider.lm_options(wire, api_key="sk-secret"))
    lm15: Any = cast("Any", dspy).lm15
    return cast("Any", lm)(lm15.Request(model=lm.model, messages=(lm15.Message.user("Hi"),)))


@pytest.mark.parametrize("wire", list(WIRES))
def test_each_exchange_is_recorded_without_its_key(wire: str, tmp_path: Path) -> None:
    """loopback-provider: Exchanges are recorded without keys."""
    path = tmp_path / "recording.jsonl"
    with LoopbackProvider([SAID], record=path) as provider:
        ask(provider, wire)
        ask(provider, wire)
        received = provider.received
    exchanges = list(exchanges_in(path.read_text("utf-8")))
    assert [exchange.wire for exchange in exchanges] == [wire, wire]
    assert [exchange.request for exchange in exchanges] == [each.body for each in received]
    assert "secret" not in path.read_text("utf-8")
    assert json.loads(exchanges[0].response)


def test_a_key_in_a_path_is_left_out() -> None:
    """loopback-provider: Exchanges are recorded without keys."""
    exchange = Exchange("gemini", "/v1beta/models/m:x?key=secret&alt=sse", {}, 200, "text/plain", b"")
    assert json.loads(exchange.line())["path"] == "/v1beta/models/m:x?alt=sse"


ODD = 'sk-"Grüße"/1'


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "ollama"])
def test_a_key_that_a_provider_repeats_is_not_recorded(wire: str, tmp_path: Path) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    path = tmp_path / "recording.jsonl"
    echo = Failure(401, "Incorrect API key provided: sk-secret.")
    with (
        LoopbackProvider([echo]) as real,
        LoopbackProvider(forwarding(real.url), record=path) as between,
        pytest.raises(dspy.LMError),
    ):
        ask(between, wire)
    (exchange,) = exchanges_in(path.read_text("utf-8"))
    assert b"Incorrect API key provided: ***." in exchange.response
    assert "secret" not in path.read_text("utf-8")


def test_a_key_is_not_recorded_wherever_it_stands() -> None:
    """loopback-provider: A key that comes back is not recorded."""
    headers = {
        "authorization": "Bearer sk-bearer1",
        "x-api-key": ODD,
        "cookie": "session=abcdefgh; b=1",
        "accept": "application/json",
        "api-key": "loopback",
        "x-goog-api-key": "EMPTY",
    }
    received = Received(1, "openai", "/v1/x?key=AIza-query&alt=sse", headers, {}, "m", False)
    body = {"sk-bearer1": ["a AIza-query b", ODD], "kept": "application/json loopback EMPTY", "n": 1.0}
    response = json.dumps([ODD]) + json.dumps([ODD], ensure_ascii=False) + quote(ODD, safe="") + "abcdefgh"
    exchange = Exchange("openai", received.path, body, 200, "text/plain", b"\xff" + response.encode())
    masked = exchange.without(secrets_of(received))
    assert masked.request == {"***": ["a *** b", "***"], "kept": body["kept"], "n": 1.0}
    assert masked.response == b'\xff["***"]["***"]******'
    assert exchange.without(()) == exchange


def test_keys_inside_of_texts_and_odd_headers_are_not_recorded() -> None:
    """loopback-provider: A key that comes back is not recorded."""
    odd = 'sk-"a/é+c=='
    headers = {"x-api-key": odd.encode("latin-1").decode("utf-8", "surrogateescape")}
    body = {
        "mcp_servers": [{"url": "https://user:pass-word1@x.test/mcp", "name": "x"}],
        "messages": [{"role": "user", "content": "curl -H 'Authorization: Bearer sk-pasted1' x"}],
    }
    received = Received(1, "openai", "/v1/x", headers, body, "m", False)
    response = json.dumps([odd, b64encode(odd.encode("latin-1")).decode(), "pass-word1", "sk-pasted1"])
    exchange = Exchange("openai", "/v1/x", body, 200, "text/plain", response.encode())
    masked = exchange.without(secrets_of(received))
    assert json.loads(masked.response) == ["***"] * 4
    assert masked.request["mcp_servers"][0]["url"] == "https://user:***@x.test/mcp"
    assert "pasted" not in masked.line()


@given(json_values, st.binary(), st.integers(100, 599))
def test_an_exchange_is_read_back_as_it_was(value: Any, response: bytes, status: int) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    exchange = Exchange("openai", "/v1/chat/completions", {"a": value}, status, "text/event-stream", response)
    assert list(exchanges_in(f"{exchange.line()}\n\n{exchange.line()}\n")) == [exchange, exchange]


@pytest.mark.parametrize("wire", list(WIRES))
@pytest.mark.parametrize("reply", [SAID, Failure(429, "slow down")])
def test_a_replayed_reply_is_the_same(wire: str, reply: Any, tmp_path: Path) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    first, second = tmp_path / "first", tmp_path / "second"
    for path, script in ((first, [reply]), (second, None)):
        replies = script or [exchange.reply for exchange in exchanges_in(first.read_text("utf-8"))]
        with LoopbackProvider(replies, record=path) as provider:
            try:
                ask(provider, wire)
            except dspy.LMError:
                assert isinstance(reply, Failure)
    (was,), (now,) = (list(exchanges_in(path.read_text("utf-8"))) for path in (first, second))
    assert (now.status, now.response) == (was.status, was.response)


@pytest.mark.parametrize("line", ["{}", "[]", "no", '{"wire": 1}', "\x00", '{"wire":"a","path":"b"}'])
def test_a_line_that_is_no_exchange_is_refused(line: str) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    with pytest.raises(LoopbackError, match="line 2") as caught:
        list(exchanges_in(["", line]))
    assert caught.value.code == "unreadable_recording"


@pytest.mark.parametrize("wire", list(WIRES))
def test_a_real_providers_answers_are_recorded(wire: str, tmp_path: Path) -> None:
    """loopback-provider: A real provider's answers are passed on and recorded."""
    path = tmp_path / "recording.jsonl"
    with (
        LoopbackProvider([SAID]) as real,
        LoopbackProvider(forwarding(real.url), record=path) as between,
    ):
        response = ask(between, wire)
        headers = real.received[0].headers
    assert response.message.parts[0].text == "Grüße."
    assert response.tool_calls[0].input == {"a": 1}
    if wire != "ollama":  # which has no keys
        assert "sk-secret" in " ".join(headers.values())
    assert "secret" not in path.read_text("utf-8")


def test_a_real_providers_refusal_is_passed_on(tmp_path: Path) -> None:
    """loopback-provider: A real provider's answers are passed on and recorded."""
    path = tmp_path / "recording.jsonl"
    with (
        LoopbackProvider([Failure(401, "bad key")]) as real,
        LoopbackProvider(forwarding(real.url), record=path) as between,
        pytest.raises(dspy.LMError, match="bad key"),
    ):
        ask(between, "openai")
    (exchange,) = exchanges_in(path.read_text("utf-8"))
    assert exchange.status == 401
