"""One request and its answer between lm15 and a provider, over HTTP: nothing of either is lost."""

import asyncio
import json
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import LMError
from support import May, get_weather, lm_of
from wire_bodies import chat, claude, gemini, ollama, responses

import sigadapt
from sigadapt import ToolDecls, choice_from_response
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]
PARIS = '{"city":"Paris"}'


def said(*calls: Any, content: Any = None) -> Json:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    return {**chat({"content": content, "tool_calls": [*calls]}, "tool_calls"), "usage": usage}


def call(arguments: str, name: str = "get_weather", id: str = "t1") -> dict[str, Any]:  # noqa: A002
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asked(
    body: Any, wire: str = "openai", engine: str = "auto", *, is_async: bool = False
) -> tuple[Any, Any]:
    """The prediction of one answer, and the model."""
    adapter = sigadapt.ChatAdapter(on_invalid="keep", tool_calling="native")
    with LoopbackProvider([body]) as provider:
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
    out, lm = asked(said(call(PARIS), bad, content="Let me look."), engine=engine, is_async=is_async)
    assert [each.id for each in out.calls] == ["t1"]
    assert [(each.id, each.code) for each in out.calls.invalid] == [("t2", code)]
    assert out.calls.text == "Let me look."
    assert lm.history[-1]["usage"]["total_tokens"] == 12


def in_ollama(*calls: Any) -> Json:
    return ollama(content="Let me look.", tool_calls=[{"function": each} for each in calls])


SAID = {"type": "text", "text": "Let me look."}
USE = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}}
BRACKETS = "[" * 100_000


ODD: list[tuple[str, Json]] = [
    ("openai", said(call(PARIS), call(BRACKETS, id="t2"), content="Let me look.")),
    ("openai", said(call(PARIS), {"id": "c2", "type": "custom", "custom": {"name": "code", "input": "1"}})),
    ("openai", said(call(PARIS), {"id": 7, "function": 3})),
    ("openai", said(call(PARIS), {"id": "t2", "type": "function", "function": None})),
    ("openai", said(call(PARIS), 5, None)),
    ("anthropic", claude(SAID, USE, {"type": "tool_use", "id": "t2", "name": None, "input": [1]})),
    ("anthropic", claude(SAID, USE, {"type": "tool_use", "id": "t2", "name": 5, "input": "text"})),
    ("anthropic", claude(SAID, USE, {"type": "tool_use", "id": "t2"})),
    ("anthropic", claude(SAID, USE, {"type": "news", "of": [1]})),
    ("gemini", gemini({"text": "Hm."}, {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}})),
    ("gemini", gemini({"text": "Hm."}, {"functionCall": {"args": [1]}})),
    ("gemini", gemini({"text": "Hm."}, {"functionCall": {"name": "get_weather", "args": [1]}})),
    ("gemini", gemini({"text": "Hm."}, {"functionCall": {"name": "get_weather"}}, {"news": 1})),
    ("ollama", in_ollama({"name": "get_weather", "arguments": {"city": "Paris"}}, {"arguments": [1]})),
    (
        "ollama",
        in_ollama({"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": None, "arguments": {}}),
    ),
    (
        "responses",
        responses(
            {"type": "function_call", "id": "f", "call_id": "t1", "name": "get_weather", "arguments": PARIS},
            {"type": "custom_tool_call", "id": "c", "call_id": "c2", "name": "code", "input": "print(1)"},
        ),
    ),
    ("responses", responses({"type": "function_call", "id": "f", "call_id": "t1", "name": "get_weather"})),
    ("responses", responses({"type": "function_call", "id": "f", "call_id": "t1", "arguments": BRACKETS})),
]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize(("wire", "body"), ODD, ids=map(str, range(len(ODD))))
def test_what_a_reader_before_us_refuses_is_read(wire: str, body: Json, engine: str, is_async: bool) -> None:
    """response-choice: What LiteLLM refuses is read from the provider's body."""
    want = choice_from_response(body) if BRACKETS not in str(body) else None
    out, _ = asked(body, wire, engine, is_async=is_async)
    good, bad = list(out.calls), list(out.calls.invalid)
    if want is None:
        assert len(bad) == 1
        assert [each.args for each in good] == ([{"city": "Paris"}] if wire != "responses" else [])
        return
    assert want.tool_calls is not None
    assert out.calls.text == want.text
    sent = [*want.tool_calls, *want.tool_calls.invalid]
    assert sorted((each.index, each.name or "") for each in [*good, *bad]) == sorted(
        (each.index, each.name or "") for each in sent
    )
    assert {"Paris"} >= {each.args["city"] for each in good}
    assert bool(good) == any('"Paris"' in each.arguments for each in want.tool_calls)


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_claudes_own_tools_are_no_calls(kind: str, engine: str) -> None:
    """response-choice: Claude's own tools over LiteLLM are no calls."""
    own = {"type": kind, "id": "srvtoolu_1", "name": "search", "input": {"query": "q"}}
    result: Any = {
        "type": f"{kind.partition('_')[0]}_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [],
    }
    out, lm = asked(claude(own, result, SAID, USE), "anthropic", engine)
    assert [each.id for each in out.calls] == ["t1"]
    assert not out.calls.invalid
    assert out.calls.text == "Let me look."
    entry: Any = lm.history[-1]
    if kind == "server_tool_use":  # LiteLLM itself leaves out the other kind
        assert "srvtoolu_1" in json.dumps(dict(entry["response"].provider_data))


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_body_nested_too_deep_is_an_error(engine: str) -> None:
    """response-choice: JSON nested too deep is an error"""
    body = claude(SAID, USE, {"type": "tool_use", "id": "t2", "name": "a", "input": "@"})
    with pytest.raises(LMError, match="recursion"):
        asked(json.dumps(body).replace('"@"', "[" * 100_000 + "]" * 100_000).encode(), "anthropic", engine)


def test_a_body_that_holds_no_answer_stays_an_error() -> None:
    """response-choice: A body without an answer stays the error it was."""
    with pytest.raises(LMError):
        asked(b'{"error": {"message": "overloaded"}}')
