"""A body where a stream was asked for, a stream where a body was, and what else gateways send, over HTTP."""

import json
from typing import Any

import dspy
import pytest
from asking import ask, encoded, events, whole
from support import PARIS, ROME

from sigadapt.response import choice_from_stream
from sigadapt.testing import Answer

pytestmark = pytest.mark.usefixtures("closed_streams")

Json = dict[str, Any]
NATIVE = ("openai", "responses", "anthropic", "gemini")
ANSWER = Answer(text="Let me look.", calls=[PARIS])
SLOW: dict[str, Json] = {
    "openai": {"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}},
    "responses": {
        "object": "response",
        "id": "r",
        "model": "m",
        "output": [],
        "status": "failed",
        "error": {"code": "rate_limit_exceeded", "message": "Slow down."},
    },
    "anthropic": {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}},
    "gemini": {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}},
}


def sse(wire: str, sent: list[Json], end: str = "\n") -> bytes:
    return b"".join(encoded(wire, sent)).replace(b"\n", end.encode())


def said(out: Any) -> tuple[list[Json], str]:
    return [call.args for call in out.calls], out.calls.text


@pytest.mark.parametrize("wire", NATIVE)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\n\n "])
def test_a_body_in_the_place_of_a_stream(wire: str, mark: bytes) -> None:
    """streaming: A body in the place of a stream is the answer."""
    assert said(ask(wire, mark + json.dumps(whole(wire, ANSWER)).encode(), is_streamed=True)) == (
        [{"city": "Paris"}],
        "Let me look.",
    )


@pytest.mark.parametrize("wire", NATIVE)
def test_an_error_in_the_place_of_a_stream(wire: str) -> None:
    """streaming: A body in the place of a stream is the answer."""
    slow, page = (
        ask(wire, json.dumps(SLOW[wire]).encode(), is_streamed=True),
        ask(wire, b"<html>\r\n502 Bad Gateway\r\n</html>", is_streamed=True),
    )
    assert isinstance(slow, dspy.LMRateLimitError)
    assert "Slow down." in str(slow)
    assert isinstance(page, dspy.LMError)
    assert "502 Bad Gateway" in str(page)


@pytest.mark.parametrize("wire", NATIVE)
@pytest.mark.parametrize("body", [{"message": "no healthy upstream"}, {"detail": "no healthy upstream"}])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_gateways_message_is_told_once(wire: str, body: Json, is_streamed: bool) -> None:
    """streaming: A body in the place of a stream is the answer."""
    error = ask(wire, json.dumps(body).encode(), is_streamed=is_streamed)
    assert isinstance(error, dspy.LMError)
    assert "no healthy upstream" in str(error)


@pytest.mark.parametrize("wire", NATIVE)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_stream_in_the_place_of_a_body(wire: str, end: str) -> None:
    """streaming: A stream in the place of a body is the answer."""
    out = ask(wire, sse(wire, events(wire, ANSWER), end))
    assert said(out) == ([{"city": "Paris"}], "Let me look.")


@pytest.mark.parametrize("length", range(1, 9))
def test_a_gateway_that_tries_again_begins_anew(length: int) -> None:
    """streaming: A gateway that tries again begins the message anew."""
    first = events("anthropic", Answer(calls=[PARIS]))
    sent = [*first[: min(length, len(first) - 2)], *events("anthropic", Answer(calls=[ROME]))]
    for read in (
        ask("anthropic", sse("anthropic", sent), is_streamed=True).calls,
        choice_from_stream(sent).tool_calls,
    ):
        assert [call.args for call in read or ()] == [{"city": "Rome"}]


def fragment(text: str, name: str | None = None, call_id: str | None = None, index: int = 0) -> Json:
    function = {"arguments": text, **({"name": name} if name else {})}
    call = {"index": index, "function": function, **({"id": call_id} if call_id else {})}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


END: Json = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize(
    ("fragments", "want"),
    [
        (
            [fragment("", "get_", "a"), fragment("", "weather"), fragment('{"city":"Paris"}')],
            [("a", "get_weather", '{"city":"Paris"}')],
        ),
        (
            [
                fragment('{"city"', "get_weather", "a"),
                fragment(":", call_id="b"),
                fragment('"Paris"}', call_id="c"),
            ],
            [("a", "get_weather", '{"city":"Paris"}')],
        ),
        (
            [fragment("{}", "now", "a"), fragment("{}", None, "b")],
            [("a", "now", "{}"), ("b", None, "{}")],
        ),
        (
            [fragment("", "now", "a"), fragment("", "later", "b"), fragment("{}")],
            [("a", "now", ""), ("b", "later", "{}")],
        ),
    ],
)  # fmt: skip
def test_a_name_in_pieces_and_an_id_for_each_piece(fragments: list[Json], want: list[Any]) -> None:
    """streaming: A name in pieces and an id for each piece make one call."""
    calls = choice_from_stream([*fragments, END]).tool_calls
    assert calls is not None
    assert [(call.id, call.name, call.arguments) for call in calls.in_order()] == want


CUT_CALL = {
    "index": 0,
    "id": "a",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Par"}'},
}
ENDINGS: dict[str, Json] = {  # of a choice with a finish reason
    "of the choice": {"native_finish_reason": "{}"},
    "beside the choice": {"provider_specific_fields": {"native_finish_reason": "{}"}},
    "beside the message": {"message": {"provider_specific_fields": {"native_finish_reason": "{}"}}},
    "as the finish reason": {"finish_reason": "{}"},
}


def ended(ending: str, native: str, *, is_streamed: bool) -> bytes:
    """An answer with one call, and the provider's own word for its end where this ending has it."""
    told: Json = json.loads(json.dumps(ENDINGS[ending]).replace("{}", native))
    beside = told.pop("message", {})
    choice = {"index": 0, "finish_reason": "tool_calls", **told}
    message = {"role": "assistant", "content": None, "tool_calls": [CUT_CALL]}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    if not is_streamed:
        return json.dumps({**head, "choices": [{**choice, "message": {**message, **beside}}]}).encode()
    chunks = [{"index": 0, "delta": message, "finish_reason": None}, {**choice, "delta": beside}]
    return sse("openai", [{**head, "object": "chat.completion.chunk", "choices": [each]} for each in chunks])


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("native", ["MAX_TOKENS", "max_tokens", "STOP", "tool_use"])
def test_where_a_gateway_tells_of_a_limit(native: str, ending: str, engine: str, is_streamed: bool) -> None:
    """response-choice: A cut call behind a proxy is truncated."""
    out = ask(
        "openai", ended(ending, native, is_streamed=is_streamed), is_streamed=is_streamed, engine=engine
    )
    is_cut = native.lower() == "max_tokens"
    assert [bad.code for bad in out.calls.invalid] == (["truncated"] if is_cut else [])
    assert [call.args for call in out.calls] == ([] if is_cut else [{"city": "Par"}])
