"""Hostile answers and schemas: each ends in an error or a bad call, soon, and without a word in the logs."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import dspy
import pytest
from internals import repair, unwrap
from support import ENGINES, Must, get_weather, lm_of

import sigadapt
from sigadapt import ToolCallParseError, ToolCalls, ToolDecls, ToolResults, choice_from_response
from sigadapt.response import choice_from_stream
from sigadapt.testing import Answer, Call, LoopbackProvider

Json = dict[str, Any]
PACKAGE = str(Path(sigadapt.__file__).parent)

ANY: Json = {"type": "object"}
INTEGERS: Json = {"type": "object", "additionalProperties": {"type": "integer"}}


def decls(**schemas: Json) -> ToolDecls:
    return ToolDecls([{"name": name, "parameters": schema} for name, schema in schemas.items()])


def chat(*arguments: Any, name: str = "f", ids: Any = None, finish: str = "tool_calls") -> Json:
    calls = [
        {"id": f"c{n}" if ids is None else ids[n], "function": {"name": name, "arguments": sent}}
        for n, sent in enumerate(arguments)
    ]
    return {"choices": [{"message": {"tool_calls": calls}, "finish_reason": finish}]}


def anthropic(sent: Any) -> Json:
    use = {"type": "tool_use", "id": "c0", "name": "f", "input": sent}
    return {"type": "message", "stop_reason": "tool_use", "content": [use]}


def gemini(sent: Any) -> Json:
    part = {"functionCall": {"name": "f", "args": sent}}
    return {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}


def nested(levels: int, leaf: Any = 0) -> Any:
    value = leaf
    for _ in range(levels):
        value = {"a": value}
    return value


def calls_of(body: Json) -> ToolCalls:
    calls = choice_from_response(body).tool_calls
    assert calls is not None
    return calls


def survives_everything(calls: ToolCalls, tools: ToolDecls) -> ToolCalls:
    """The calls, checked, after all that is done to calls has been done to them."""
    salvaged = unwrap(repair(calls), tools).validated(tools)
    told = ToolResults.of(salvaged, [None] * len(salvaged))
    assert all(len(result.value) < 10_000 for result in told if result.is_error)
    assert ToolCalls.model_validate_json(calls.model_dump_json()) == calls
    assert repr(calls)
    return calls.validated(tools)


@pytest.mark.parametrize("levels", [250, 1_000, 100_000])
def test_hostile_depth_is_a_bad_call(levels: int) -> None:
    """response-choice: Hostile depth and size end in a tagged bad call."""
    text = '{"a":' * levels + "0" + "}" * levels
    for body in (chat(text), chat("[" * levels), chat('{"a":' + "[" * levels)):
        (call,) = survives_everything(calls_of(body), decls(f=ANY)).invalid
        assert call.code == "invalid_json"
        assert call.arguments == body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
        assert len(call.message) < 400
    for body in (anthropic(nested(levels)), gemini(nested(levels))):
        (call,) = survives_everything(calls_of(body), decls(f=ANY)).invalid
        assert (call.code, call.arguments) == ("invalid_json", text)
        assert len(call.message) < 400


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ('{"a":' + "9" * 4_000 + "}", True),
        ('{"a":-' + "9" * 30 + "}", True),
        ('{"a":' + "9" * 5_000 + "}", False),
        ('{"a":' + "9" * 1_000_000 + "}", False),
        ('{"a":1e400}', False),
        ('{"a":1e-400}', True),
        ('{"a":1E+999999999999}', False),
    ],
    ids=lambda value: str(value)[:12],
)
def test_huge_numbers_are_themselves_or_tagged(text: str, good: bool) -> None:
    """response-choice: Huge numbers are themselves or tagged."""
    calls = calls_of(chat(text))
    survives_everything(calls, decls(f=INTEGERS))
    if good:
        assert calls[0].args == json.loads(text)
    else:
        (call,) = calls.invalid
        assert (call.code, call.arguments) == ("invalid_json", text)


def lines(work: Callable[[], Any]) -> int:
    """How many lines of the package a piece of work runs through."""
    count = 0

    def local(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def called(frame: FrameType, *_: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def chunks(*pieces: tuple[int, str]) -> list[Json]:
    """A chat stream of pieces of arguments, of which a first one of each call has its name."""
    named, events = set[int](), list[Json]()
    for index, text in pieces:
        head = {} if index in named else {"id": f"c{index}", "function": {"name": "f", "arguments": text}}
        named.add(index)
        delta = {"index": index, "function": {"arguments": text}, **head}
        events.append({"choices": [{"delta": {"tool_calls": [delta]}}]})
    return [*events, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]


def chat_stream(count: int) -> list[Json]:
    return chunks((0, '{"a":['), *[(0, "1,")] * count, (0, "1]}"))


def many_calls_stream(count: int) -> list[Json]:
    return chunks(*((n, "{") for n in range(count)), *((n, "}") for n in range(count)))


def anthropic_stream(count: int) -> list[Json]:
    block: Json = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"a":'}
    return [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *[{"type": "content_block_delta", "index": 0, "delta": delta}] * count,
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
    ]


def gemini_stream(count: int) -> list[Json]:
    def event(*partials: Json, more: bool) -> Json:
        call = {"name": "f", "partialArgs": list(partials), "willContinue": more}
        return {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}

    leaves = [{"jsonPath": f"$.a[{n}].b", "numberValue": n} for n in range(count)]
    return [*(event(leaf, more=True) for leaf in leaves), event(more=False)]


def responses_stream(count: int) -> list[Json]:
    added = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":'}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        *[delta] * count,
        {"type": "response.completed", "response": {"status": "completed"}},
    ]


def sse(events: list[Json], ending: str = "\n\n") -> str:
    return "".join(f"data: {json.dumps(event)}{ending}" for event in events)


MANY: dict[str, Callable[[int], Callable[[], Any]]] = {
    "fragments of one call": lambda n: lambda: choice_from_stream(chat_stream(n)).tool_calls,
    "calls in turn": lambda n: lambda: choice_from_stream(many_calls_stream(n)).tool_calls,
    "pieces on Anthropic": lambda n: lambda: choice_from_stream(anthropic_stream(n)).tool_calls,
    "leaves on Gemini": lambda n: lambda: choice_from_stream(gemini_stream(n)).tool_calls,
    "pieces on OpenAI responses": lambda n: lambda: choice_from_stream(responses_stream(n)).tool_calls,
    "events as text": lambda n: lambda: choice_from_stream(sse(chat_stream(n))),
    "events as one array": lambda n: lambda: choice_from_stream(json.dumps(chat_stream(n))),
    "lines of one event": lambda n: lambda: choice_from_stream(sse(chat_stream(n), "\n")),
    "calls without an id": lambda n: lambda: calls_of(chat(*["{}"] * n, ids=[None] * n)),
    "calls with one id": lambda n: lambda: calls_of(chat(*["{}"] * n, ids=["c"] * n)),
    "ids that are taken": lambda n: (
        lambda: calls_of(chat(*["{}"] * 3 * n, ids=[f"call_{i}" for i in range(n, 3 * n)] + [None] * n))
    ),
    "bad calls": lambda n: lambda: calls_of(chat(*["{"] * n)).validated(decls(f=ANY)),
    "unknown tools": lambda n: lambda: calls_of(chat(*["{}"] * n, name="g")).validated(decls(f=ANY)),
    "arguments that do not fit": lambda n: (
        lambda: calls_of(chat(json.dumps({f"k{i}": "x" for i in range(n)}))).validated(decls(f=INTEGERS))
    ),
    "arguments to unwrap": lambda n: (
        lambda: unwrap(calls_of(chat(json.dumps({f"k{i}": "1" for i in range(n)}))), decls(f=INTEGERS))
    ),
    "arguments that stay wrapped": lambda n: (
        lambda: unwrap(calls_of(chat(json.dumps({f"k{i}": '"x"' for i in range(n)}))), decls(f=INTEGERS))
    ),
    "calls to repair": lambda n: lambda: repair(calls_of(chat(*["{'a': 1}"] * n))),
    "levels": lambda n: lambda: calls_of(anthropic(nested(300 + 10 * n))),
    "candidates": lambda n: (
        lambda: sigadapt.response.choices_from_response({"choices": [{"message": {"content": "x"}}] * n})
    ),
}


@pytest.mark.parametrize("make", MANY.values(), ids=MANY)
def test_work_grows_no_faster_than_the_answer(make: Callable[[int], Callable[[], Any]]) -> None:
    """response-choice: Work grows no faster than the answer."""
    make(10)()  # what is made once is made
    few, many = lines(make(100)), lines(make(400))
    assert many < 5 * few + 1_000


def ask(provider: LoopbackProvider, engine: str, **options: Any) -> Any:
    lm = lm_of(provider, engine=engine)
    adapter = sigadapt.ChatAdapter(tool_calling="native", **options)
    with dspy.context(lm=lm, adapter=adapter):
        return dspy.Predict(Must)(question="weather?", tools=[get_weather])


MARK = "".join(chr(97 + n % 26) for n in range(3_000))
FAULTY = [
    Call("get_weather", f'{{"city":"{MARK}'),
    Call("get_weather", {"city": [MARK]}),
    Call("get_weather", {"city": "x", MARK: MARK}),
    Call("get_weather", json.dumps(json.dumps({"city": MARK}))),
    Call("no_such_tool", {"city": MARK}),
]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What any logger writes at the level it has by default."""
    names = {name.partition(".")[0] for name in logging.root.manager.loggerDict}
    loggers = [logging.getLogger(name) for name in names | {"dspy", "sigadapt", "LiteLLM", "root"}]
    for logger in loggers:
        logger.addHandler(caplog.handler)
    yield caplog
    for logger in loggers:
        logger.removeHandler(caplog.handler)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", ["raise", "keep", "reask"])
def test_no_log_record_carries_whole_arguments(
    engine: str, policy: str, log: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """tool-call-outputs: No log record carries whole arguments."""
    logging.getLogger("dspy").warning("the records are seen")
    with LoopbackProvider([Answer(text="Hm.", calls=FAULTY)]) as provider:
        if policy == "keep":
            assert ask(provider, engine, on_invalid=policy).calls.invalid
        else:
            with pytest.raises(ToolCallParseError) as caught:
                ask(provider, engine, on_invalid=policy, repair=True, unwrap=True)
            assert MARK not in str(caught.value)
            assert len(str(caught.value)) < 5_000
    assert "the records are seen" in log.messages
    told = logging.Formatter()
    assert [record for record in log.records if MARK in told.format(record)] == []
    assert MARK not in "".join(capfd.readouterr())


PATTERNS = [r"^(a+)+$", r"^(a|aa)+$", r"^(a|a?)+b$", r"(x+x+)+y", r"^(a|aa)+(?<!b)\1$", r"^(?=(a+)+$)b"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_blows_up_ends_in_a_verdict(pattern: str) -> None:
    """tool-declarations: A pattern that would blow up ends in a verdict."""
    tools = decls(f={"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
    calls = calls_of(chat(json.dumps({"a": "a" * 5_000 + "!"}))).validated(tools)
    (bad,) = calls.invalid
    assert (bad.code, bad.path) == ("schema_mismatch", "/a")
