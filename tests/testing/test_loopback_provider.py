"""The loopback provider over plain HTTP: its script, its record, its errors and its end."""

import asyncio
import http.client
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sigadapt.testing import WIRES, Answer, Call, Failure, LoopbackError, LoopbackProvider, Received, Reply

ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
PATHS = {
    "openai": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
    "ollama": "/api/chat",
}
WHOLE = {**ASK, "stream": False}


def post(
    provider: LoopbackProvider,
    path: str = "/v1/chat/completions",
    body: object = WHOLE,
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """Status and body of one request on a connection of its own; the body as JSON where it is JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(provider.url).netloc, timeout=600)
    try:
        connection.request(method, path, content, headers or {})
        response = connection.getresponse()
        data = response.read()
    finally:
        connection.close()
    return response.status, json.loads(data) if response.getheader(
        "content-type"
    ) == "application/json" else data


def said(body: Any) -> Any:
    return body["choices"][0]["message"]["content"]


def numbered(request: Received) -> Answer:
    return Answer(text=f"{request.number} {request.model}")


@pytest.mark.parametrize(
    ("script", "texts"),
    [([Answer(text="one"), Answer(text="two")], ["one", "two", "two", "two"]), (numbered, ["1 m", "2 m"])],
)
def test_a_script_is_played_in_order_and_its_last_reply_repeats(script: Any, texts: list[str]):
    """
    loopback-provider: A script is played in order
    loopback-provider: A function answers
    """
    with LoopbackProvider(script) as provider:
        assert [said(post(provider)[1]) for _ in texts] == texts


def test_a_dict_is_sent_as_it_is():
    """loopback-provider: Odd bodies are sent as they are."""
    with LoopbackProvider([{"anything": [1, None]}]) as provider:
        assert post(provider) == (200, {"anything": [1, None]})


@pytest.mark.parametrize("wire", WIRES)
def test_a_failure_has_its_status_and_the_wires_error_shape(wire: str):
    """loopback-provider: A failure is sent in the wire's error shape."""
    shapes = {
        "openai": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None},
        "responses": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None},
        "anthropic": {"type": "rate_limit_error", "message": "slow down"},
        "gemini": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"},
        "ollama": "slow down",
    }
    with LoopbackProvider([Failure(429, "slow down")]) as provider:
        status, body = post(provider, PATHS[wire])
    assert status == 429
    assert body["error"] == shapes[wire]


def test_only_the_last_requests_are_kept_where_asked():
    """loopback-provider: What was sent is recorded."""
    with LoopbackProvider([Answer(text="Hi")], keep=2) as provider:
        for _ in range(5):
            post(provider)
    assert [request.number for request in provider.received] == [4, 5]


def test_the_error_of_the_block_stays_in_the_traceback():
    """loopback-provider: An error in the script reaches the test."""

    def block() -> None:
        with LoopbackProvider(lambda request: Answer(text=request.body["absent"])) as provider:
            raise ConnectionError(post(provider)[0])

    with pytest.raises(KeyError, match="absent") as caught:
        block()
    assert isinstance(caught.value.__context__, ConnectionError)
    assert caught.value.__context__.args == (500,)


def test_an_interrupt_is_not_replaced():
    """loopback-provider: An error in the script reaches the test."""

    def block() -> None:
        with LoopbackProvider(lambda _: 7) as provider:  # pyright: ignore[reportArgumentType]
            post(provider)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        block()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("value", [float("nan"), b"bytes", "half \ud83d"])
def test_what_no_wire_carries_is_a_fault_of_the_script(value: Any, stream: bool):
    """loopback-provider: An error in the script reaches the test."""
    script = [Answer(calls=[Call("f", {"value": value})])]
    failure = pytest.raises(LoopbackError, match="cannot be sent over openai")
    with failure as caught, LoopbackProvider(script) as provider:
        assert post(provider, body={**WHOLE, "stream": stream})[0] == 500
    assert caught.value.code == "invalid_script"


def test_a_function_that_raises_stop_iteration_is_answered():
    """loopback-provider: An error in the script reaches the test."""
    rest = iter([Answer(text="only one")])
    seen: list[int] = []
    with (
        pytest.raises(LoopbackError, match="StopIteration"),
        LoopbackProvider(lambda _: next(rest)) as provider,
    ):
        seen.extend(post(provider)[0] for _ in range(2))
    assert seen == [200, 500]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/completions"),
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/v1/messages"),
        ("POST", "/v1beta/models/m:streamGenerateContent"),
        ("POST", "/api/generate"),
    ],
)
def test_an_unknown_path_reaches_the_test(method: str, path: str):
    """loopback-provider: An unknown path reaches the test."""
    seen: list[tuple[int, Any]] = []
    with pytest.raises(LoopbackError) as caught, LoopbackProvider([Answer(text="Hi")]) as provider:
        seen.append(post(provider, path, method=method))
    status, body = seen[0]
    assert status == 404
    assert f"no wire serves {method} {path}" in body["error"]["message"]
    assert caught.value.code == "unknown_path"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_body_that_is_no_object_reaches_the_test(content: bytes):
    """loopback-provider: An unreadable request reaches the test."""
    with pytest.raises(LoopbackError) as caught, LoopbackProvider([Answer(text="Hi")]) as provider:
        assert post(provider, body=content)[0] == 400
    assert caught.value.code == "unreadable_request"


def test_a_wire_that_is_none_is_named_with_the_fix():
    """loopback-provider: An unknown wire is refused."""
    with (
        LoopbackProvider([Answer()]) as provider,
        pytest.raises(LoopbackError, match="Use one of openai, res"),
    ):
        provider.base_url("bedrock")


def test_a_running_provider_cannot_be_entered_again():
    with LoopbackProvider([Answer(text="Hi")]) as provider:
        with pytest.raises(LoopbackError, match="already running"):
            provider.__enter__()
        assert post(provider)[0] == 200


def test_there_is_no_address_outside_of_the_block():
    provider = LoopbackProvider([Answer()])
    with pytest.raises(LoopbackError, match="not running"):
        _ = provider.url
    with provider:
        assert provider.url.startswith("http://127.0.0.1:")
    with pytest.raises(LoopbackError, match="not running"):
        _ = provider.url


async def test_an_async_test_can_use_it():
    """loopback-provider: Requests are answered concurrently."""
    together = asyncio.Event()

    async def policy(request: Received) -> Reply:
        if request.number == 5:
            together.set()
        await together.wait()  # the first four wait for the fifth
        return Answer(text=str(request.number))

    with LoopbackProvider(policy) as provider:
        results = await asyncio.gather(*(asyncio.to_thread(post, provider) for _ in range(5)))
    assert {said(body) for _, body in results} == {"1", "2", "3", "4", "5"}


def _listening(port: int) -> set[str]:
    """The local addresses that listen on a port, of both families, as Linux tells them."""
    rows: Sequence[str] = [
        *Path("/proc/net/tcp").read_text().splitlines()[1:],
        *Path("/proc/net/tcp6").read_text().splitlines()[1:],
    ]
    local = [row.split()[1] for row in rows if row.split()[3] == "0A"]
    return {address.split(":")[0] for address in local if int(address.split(":")[1], 16) == port}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's table of sockets")
def test_only_loopback_is_bound():
    """loopback-provider: Only loopback is bound."""
    with LoopbackProvider([Answer()]) as provider:
        port = urlsplit(provider.url).port
        assert port is not None
        assert _listening(port) == {"0100007F"}, "127.0.0.1 and nothing else"
    assert _listening(port) == set()


def test_a_request_in_hand_does_not_hold_up_the_end():
    """loopback-provider: Nothing is left behind."""
    asked = threading.Event()
    ends: list[str] = []

    async def policy(_: Received) -> Reply:
        asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return Answer()

    def ask(provider: LoopbackProvider) -> None:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            post(provider)

    with LoopbackProvider(policy) as provider:
        client = threading.Thread(target=ask, args=(provider,))
        client.start()
        assert asked.wait(60)
    client.join(60)
    assert ends == ["cancelled"]


def test_tasks_of_an_async_function_are_ended():
    """loopback-provider: Nothing is left behind."""
    tasks: list[asyncio.Task[None]] = []

    async def policy(_: Received) -> Reply:
        tasks.append(asyncio.create_task(asyncio.sleep(60)))
        return Answer()

    with LoopbackProvider(policy) as provider:
        post(provider)
    assert [task.cancelled() for task in tasks] == [True]


def test_a_client_that_leaves_a_stream_is_no_problem():
    long = Answer(text="x" * 2_000_000, chunk=1000)
    with LoopbackProvider([long, Answer(text="Hi")]) as provider:
        connection = http.client.HTTPConnection(urlsplit(provider.url).netloc)
        connection.request("POST", "/v1/chat/completions", json.dumps({**ASK, "stream": True}))
        assert connection.getresponse().read(100)
        connection.close()
        assert said(post(provider)[1]) == "Hi"
    assert provider.problems == ()
