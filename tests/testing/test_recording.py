"""What a loopback provider records is what passed, and holds no key."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError
from urllib.parse import quote, quote_plus
from urllib.request import Request, urlopen

import dspy
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Masking
from support import json_values

from sigadapt.testing import (
    WIRES,
    Answer,
    Call,
    Exchange,
    Failure,
    LoopbackError,
    LoopbackProvider,
    Received,
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


ODD = 'sk-"Grüße"/1'


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "ollama"])
def test_a_key_that_a_provider_repeats_is_not_recorded(wire: str, tmp_path: Path) -> None:
    """
    loopback-provider: A key that comes back is not recorded
    loopback-provider: A real provider's answers are passed on and recorded
    """
    path = tmp_path / "recording.jsonl"
    echo = Failure(401, "Incorrect API key provided: sk-secret.")
    with (
        LoopbackProvider([echo]) as real,
        LoopbackProvider(forwarding(real.url), record=path) as between,
        pytest.raises(dspy.LMError),
    ):
        ask(between, wire)
    (exchange,) = exchanges_in(path.read_text("utf-8"))
    assert exchange.status == 401
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
    masked = exchange.without(Masking(received.headers, received.path).secrets)
    assert masked.request == {"***": ["a *** b", "***"], "kept": body["kept"], "n": 1.0}
    assert masked.response == b'\xff["***"]["***"]******'
    assert masked.masked == ("/path", "/request", "/request/***/0", "/request/***/1", "/response")
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
    masking = Masking(received.headers, received.path)
    exchange = Exchange("openai", "/v1/x", masking.request(body), 200, "text/plain", response.encode())
    masked = exchange.without(masking.secrets)
    assert json.loads(masked.response) == ["***"] * 4
    assert masked.request["mcp_servers"][0]["url"] == "https://x.test/***"
    assert "pasted" not in masked.line()


KEY = "AbC/dEf+gHi=JkLmNoP=="
ENCODINGS: dict[str, Any] = {
    "plain": KEY,
    "percent": quote(KEY, safe=""),
    "percent, small letters": re.sub("%..", lambda found: found[0].lower(), quote(KEY, safe="")),
    "percent twice": quote(quote(KEY, safe=""), safe=""),
    "JSON": KEY.replace("=", "\\u003d").replace("/", "\\/"),
    "JSON in JSON": KEY.replace("+", "\\\\u002B"),
    "HTML": KEY.replace("=", "&#61;").replace("/", "&#x2F;"),
    "HTML twice": KEY.replace("=", "&amp;#061;"),
    "base64": b64encode(KEY.encode()).decode(),
    "base64 behind a name": b64encode(f"user:{KEY}".encode()).decode(),
    "base64 for addresses": urlsafe_b64encode(f"u:{KEY}".encode()).decode().rstrip("="),
    "hexadecimal": KEY.encode().hex().upper(),
}


@pytest.mark.parametrize("form", ENCODINGS)
def test_an_encoded_key_that_comes_back_is_not_recorded(form: str) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    text = ENCODINGS[form]
    exchange = Exchange("openai", "/v1", {}, 401, "text/plain", f"Bad key: <{text}>!".encode())
    masked = exchange.without([KEY]).response.decode()
    assert "***" in masked
    assert max(map(len, masked.partition("<")[2].split("***"))) < 8


def hosted(url: str) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [],
        "tools": [{"type": "mcp", "server_label": "crm", "server_url": url}],
    }


def said(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": [message]}


HIDDEN = "sk-hidden/q7 x2"
PLACES: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "a query without a name": (f"?{quote(HIDDEN, safe='')}", {}, {}),
    "a second query": (f"?alt=sse;key={quote(HIDDEN, safe='')}", {}, {}),
    "quotes of a header": ("", {"authorization": f'Digest username="me", response="{HIDDEN}"'}, {}),
    "JSON in a header": ("", {"x-login": json.dumps({"key": HIDDEN})}, {}),
    "a path": ("", {}, hosted(f"https://x.test/s/{quote(HIDDEN, safe='')}/sse")),
    "an address without a scheme": ("", {}, hosted(f"x.test/{quote(HIDDEN, safe='')}")),
    "an address's fragment": ("", {}, hosted(f"https://x.test/#{quote(HIDDEN, safe='')}")),
    "arguments": (
        "",
        {},
        said({"tool_calls": [{"function": {"arguments": json.dumps({"api_key": HIDDEN})}}]}),
    ),
    "a result": ("", {}, said({"content": json.dumps([{"rows": [{"password": HIDDEN}]}])})),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_key_is_found_in_every_place(place: str) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    query, headers, body = PLACES[place]
    echo = json.dumps(
        {"error": [HIDDEN, quote(HIDDEN, safe=""), quote_plus(HIDDEN), {HIDDEN: HIDDEN}]}
    ).encode()
    path = f"/v1/chat/completions{query}"
    masking = Masking(headers, path)
    request = masking.request(body or said({HIDDEN: {"a": HIDDEN}}))
    exchange = Exchange("openai", path, request, 401, "application/json", echo, tuple(masking.places))
    masked = exchange.without(masking.secrets)
    assert json.loads(masked.response) == {"error": ["***", "***", "***", {"***": "***"}]}
    assert "q7" not in masked.line()
    assert bool(query) == ("/path" in masked.masked)


@pytest.mark.parametrize("key", ["EY%Mhn,jq<>", "(abc)d,ef'", '"quoted-key"', "q{ab}cdef;x="])
@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_key_is_masked_with_its_brackets(scheme: str, key: str) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    masking = Masking({"authorization": scheme + key}, "/v1")
    echo = json.dumps([key, f"<{key}>"]).encode()
    exchange = Exchange("openai", "/v1", {}, 401, "application/json", echo).without(masking.secrets)
    assert json.loads(exchange.response) == ["***", "<***>"]


def test_a_key_that_holds_the_loopback_key_is_one(tmp_path: Path) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    reply = Failure(401, "No: loopback-of-ours-99, loopback")
    exchange = recorded(tmp_path / "r", {"Authorization": "Bearer loopback-of-ours-99"}, BODY, reply=reply)
    assert b"No: ***, loopback" in exchange.response


def recorded(path: Path, headers: dict[str, str], body: dict[str, Any], **options: Any) -> Exchange:
    """Post a body; return what is recorded of it."""
    with LoopbackProvider([options.pop("reply", SAID)], record=path, **options) as provider:
        request = Request(  # noqa: S310
            f"{provider.url}/v1/chat/completions?key=AIza-in-query", json.dumps(body).encode(), headers
        )
        with suppress(HTTPError):
            urlopen(request).close()  # noqa: S310
    (exchange,) = exchanges_in(path.read_text("utf-8"))
    return exchange


HOSTED: dict[str, Any] = {
    "type": "mcp",
    "server_label": "crm",
    "require_approval": "never",
    "env": {"GITHUB": "Zq9xKey4"},
}
HOSTED.update(
    {"server_url": "https://crm.test/s/Zq9xKey1/mcp?profile=Zq9xKey2", "headers": {"X-Any": "Zq9xKey3"}}
)
PARAMETERS = {"type": "object", "properties": {"password": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "log_in", "parameters": PARAMETERS}}
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "seed": 7,
    "debug": True,
}
BODY.update({"tools": [FUNCTION, HOSTED], "user": "Zq9xKey6", "metadata": {"user": "Zq9xKey5", "pin": 1234}})


def test_what_is_not_known_to_be_harmless_is_masked(tmp_path: Path) -> None:
    """loopback-provider: What is not known to be harmless is masked."""
    path = tmp_path / "recording.jsonl"
    reply = Failure(401, "No: Zq9xKey1 Zq9xKey2 Zq9xKey3 Zq9xKey4 Zq9xKey5 Zq9xKey6 Zq9xKey7 in-query")
    exchange = recorded(path, {"X-Tenant": "Zq9xKey7"}, BODY, reply=reply)
    assert "Zq9x" not in path.read_text("utf-8")
    assert exchange.request == {
        **BODY,
        "tools": [FUNCTION, {**HOSTED, "server_url": "https://crm.test/***", "headers": "***", "env": "***"}],
        "metadata": "***",
        "user": "***",
    }
    inside = ("server_url", "headers", "env")
    places = ["/path", *(f"/request/tools/1/{name}" for name in inside)]
    assert sorted(exchange.masked) == sorted([*places, "/request/metadata", "/request/user", "/response"])


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://crm.test/Zq9xKey1", "https://crm.test/***"),
        ("https://crm.test:8443/Zq9xKey1", "https://crm.test:8443/***"),
        ("https://crm.test:8443/", "https://crm.test:8443/"),
        ("https://crm.test:no/Zq9xKey1", "***"),
        ("https://[crm.test/Zq9xKey1", "***"),
        ("Zq9xKey1", "***"),
    ],
)
def test_an_address_is_masked_but_for_its_host(url: str, kept: str, tmp_path: Path) -> None:
    """loopback-provider: What is not known to be harmless is masked."""
    exchange = recorded(tmp_path / "recording.jsonl", {}, {**BODY, "tools": [{**HOSTED, "server_url": url}]})
    assert exchange.request["tools"][0]["server_url"] == kept
    assert ("/request/tools/0/server_url" in exchange.masked) == (kept != url)


def test_a_secret_of_digits_leaves_json(tmp_path: Path) -> None:
    """loopback-provider: A key that comes back is not recorded."""
    body = {**BODY, "seed": 123456789, "logit_bias": {"1": 5123456789}}
    exchange = recorded(tmp_path / "r", {"x-budget": "123456789"}, body)
    assert (exchange.status, exchange.request["seed"]) == (200, 999999999)
    assert exchange.request["logit_bias"] == {"1": 5999999999}
    assert json.loads(exchange.response)


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


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503, 529])
def test_a_replayed_status_is_the_recorded_one(status: int) -> None:
    """loopback-provider: A recording is read back byte for byte."""
    body = b'{"error": {"message": "No."}}'
    exchange = Exchange("openai", "/v1/chat/completions", {}, status, "application/json", body)
    with LoopbackProvider([exchange.reply]) as provider:
        answer = httpx.post(
            f"{provider.base_url('openai')}/chat/completions", json={"model": "m", "messages": []}
        )
    assert (answer.status_code, answer.content) == (status, body)


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
    with LoopbackProvider([SAID]) as real, LoopbackProvider(forwarding(real.url), record=path) as between:
        response = ask(between, wire)
        headers = real.received[0].headers
    assert response.message.parts[0].text == "Grüße."
    assert response.tool_calls[0].input == {"a": 1}
    if wire != "ollama":  # which has no keys
        assert "sk-secret" in " ".join(headers.values())
    assert "secret" not in path.read_text("utf-8")
