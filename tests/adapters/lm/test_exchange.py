"""One request and its answer between lm15 and a provider, over HTTP: nothing of either is lost."""

import asyncio
import json
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import LMError
from support import May, get_weather, lm_of

import sigadapt
from sigadapt import ToolDecls
from sigadapt.adapters.lm.exchange import exchanging
from sigadapt.adapters.lm.routes import route_of
from sigadapt.providers.provider import NO_WORDS, Words
from sigadapt.testing import Answer, LoopbackProvider

lm15 = dspy.lm15
PARIS = '{"city":"Paris"}'


def chat(*calls: Any, content: Any = None) -> bytes:
    message = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    ).encode()


def call(arguments: str, name: str = "get_weather", id: str = "t1") -> dict[str, Any]:  # noqa: A002
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asked(
    body: bytes, wire: str = "openai", engine: str = "auto", *, is_async: bool = False
) -> tuple[Any, Any]:
    """The prediction of one answer, and the model."""
    adapter = sigadapt.ChatAdapter(on_invalid="keep", tool_calling="native")
    with LoopbackProvider(lambda _: body) as provider:
        lm = lm_of(provider, wire, engine, cache=False, num_retries=0)
        with dspy.context(lm=lm, adapter=adapter):
            predict = dspy.Predict(May)
            given: Any = {"question": "weather?", "tools": ToolDecls([get_weather])}
            out = asyncio.run(predict.acall(**given)) if is_async else predict(**given)
        assert len(provider.received) == 1
    return out, lm


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (call('{"city":"Rome","days":NaN}', id="t2"), "invalid_json"),
        (call('{"city":"Rome","days":1e999}', id="t2"), "invalid_json"),
        (call("{}", name="", id="t2"), "missing_name"),
    ],
    ids=["NaN", "1e999", "no name"],
)
def test_a_call_that_lm15_refuses_costs_no_good_call(
    bad: Any, code: str, engine: str, is_async: bool
) -> None:
    """response-choice: A call that DSPy's reader refuses costs no good call."""
    out, lm = asked(chat(call(PARIS), bad, content="Let me look."), engine=engine, is_async=is_async)
    assert [each.id for each in out.calls] == ["t1"]
    assert [(each.id, each.code) for each in out.calls.invalid] == [("t2", code)]
    assert out.calls.text == "Let me look."
    assert lm.history[-1]["usage"]["total_tokens"] == 12


def test_a_hundred_thousand_brackets_cost_no_good_call() -> None:
    """response-choice: A call that DSPy's reader refuses costs no good call."""
    out, _ = asked(chat(call(PARIS), call("[" * 100_000, id="t2"), content="Let me look."))
    assert [each.id for each in out.calls] == ["t1"]
    assert [each.code for each in out.calls.invalid] == ["invalid_json"]


def test_a_body_that_holds_no_answer_stays_an_error() -> None:
    """response-choice: A body without an answer stays the error it was."""
    with pytest.raises(LMError):
        asked(b'{"error": {"message": "overloaded"}}')


def test_a_key_twice_in_a_whole_answer_makes_a_bad_call() -> None:
    """response-choice: A key twice in a whole answer."""
    body = (
        b'{"id":"m","type":"message","role":"assistant","model":"c","stop_reason":"tool_use","usage":{"input_tokens":1,'
        b'"output_tokens":1},"content":[{"type":"tool_use","id":"t1","name":"get_weather","input":'
        b'{"city":"Rome","city":"Paris"}}]}'
    )
    out, lm = asked(body, "anthropic")
    assert [bad.code for bad in out.calls.invalid] == ["duplicate_key"]
    assert '"city":"Rome","city":"Paris"' in out.calls.invalid[0].arguments
    assert lm.history[-1]["usage"]["completion_tokens"] == 1


def test_words_leave_in_the_places_of_lm15s() -> None:
    with LoopbackProvider([Answer(text="Hi.")]) as provider:
        lm: Any = lm_of(provider, cache=False)
        request = lm15.Request(model=lm.model, messages=(lm15.Message.user("Hi"),))
        words = Words(fields={"tool_choice": {"type": "web_search"}})
        model: Any = exchanging(lm, request, route_of(lm, {}), words, is_async=False)
        assert model(request).text == "Hi."
        plain: Any = exchanging(lm, request, route_of(lm, {}), NO_WORDS, is_async=False)
        plain(request)
        lm(request)
    bodies = [received.body for received in provider.received]
    assert [body.pop("tool_choice", None) for body in bodies] == [{"type": "web_search"}, None, None]
    assert bodies[0] == bodies[1] == bodies[2]
