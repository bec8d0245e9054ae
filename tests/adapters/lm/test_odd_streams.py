"""Streams that DSPy's reader cannot read, over HTTP: each is read as `choice_from_stream` reads its text."""

import json
from typing import Any

import dspy
import pytest
from asking import ask
from dspy import LMError
from dspy.streaming import StreamListener
from dspy.utils.exceptions import LMProviderError
from internals import stream_recorder
from support import PARIS as PARIS_CALL
from support import ROME, May, get_weather, lm_of, place_or_id
from wire_bodies import claude
from wire_bodies import responses as responses_body

import sigadapt
from sigadapt import ToolDecls
from sigadapt.errors import UnreadableResponse
from sigadapt.response import choice_from_stream
from sigadapt.testing import Answer, LoopbackProvider, Received

pytestmark = pytest.mark.usefixtures("closed_streams")

Json = dict[str, Any]
Events = list[Json]
Block = tuple[Json, Events]
LONG = "x" * 200_000
PARIS = '{"city":"Paris"}'


def sse(events: Events, *, named: bool = False, done: bool = False) -> bytes:
    """The text of a stream."""
    texts = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ]
    return "".join([*texts, "data: [DONE]\n\n" if done else ""]).encode()


def messages(*blocks: Block) -> bytes:
    """A Messages stream of blocks, each with its deltas."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    events: Events = [{"type": "message_start", "message": {**claude(), "stop_reason": None}}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage})
    return sse([*events, {"type": "message_stop"}], named=True)


def piece(text: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": text}


def said(text: str) -> Block:
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]


USE: Block = (
    {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}},
    [piece('{"city":'), piece('"Paris"}')],
)


def ran(kind: str, name: str, result: str, **more: Any) -> list[Block]:
    """A tool that Claude ran itself, and its result."""
    called: Json = {"type": kind, "id": "srvtoolu_1", "name": name, "input": {}, **more}
    answered: Json = {"type": result, "tool_use_id": "srvtoolu_1", "content": []}
    return [(called, [piece('{"query":'), piece('"q"}')]), (answered, [])]


def chat(*deltas: dict[str, Any]) -> bytes:
    """A chat stream."""
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events: Events = [{**base, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    last: Json = {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return sse([*events, last], done=True)


def call(arguments: str, name: str = "get_weather", index: int = 0) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"t{index + 1}", "type": "function", "function": function}]}


def custom(index: int, **fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "type": "custom", **fields}]}


def responses(*items: dict[str, Any], between: Events | None = None) -> bytes:
    """A Responses stream of items."""
    response = responses_body(status="in_progress")
    events: Events = [{"type": "response.created", "response": response}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    whole = {**response, "status": "completed", "output": list(items), "usage": usage}
    return sse([*events, *(between or []), {"type": "response.completed", "response": whole}], named=True)


FUNCTION_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "t1",
    "name": "get_weather",
    "arguments": PARIS,
}
CUSTOM_CALL = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "call_id": "c2",
    "name": "code",
    "input": "print(1)",
}
PIECES: Events = [
    {"type": f"response.custom_tool_call_input.{kind}", "output_index": 1, "item_id": "ctc_1", **more}
    for kind, more in (("delta", {"delta": "pr"}), ("done", {"input": "print(1)"}))
]
MCP_CALL = {"id": "mcp_1", "type": "mcp_call", "name": "list", "arguments": "{}", "server_label": "s"}
THOUGHT: Json = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": LONG}


def gemini(*parts: list[dict[str, Any]]) -> bytes:
    """A Gemini stream, one event for each list of parts."""
    events: Events = [{"candidates": [{"content": {"role": "model", "parts": each}}]} for each in parts]
    return sse([*events, {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}])


GEMINI_CALL = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}

CODE = custom(1, id="c2", custom={"name": "code", "input": "print"}), custom(1, custom={"input": "(1)"})
NAMELESS = {
    "tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": {"arguments": '{"city":'}}]
}
NAMED = {"tool_calls": [{"index": 0, "function": {"name": "get_weather", "arguments": '"Paris"}'}}]}
NO_ID = {"tool_calls": [{"index": 0, "id": "", "function": {"name": "get_weather", "arguments": PARIS}}]}
SEARCH = ran("server_tool_use", "web_search", "web_search_tool_result")
LISTING = ran("mcp_tool_use", "list", "mcp_tool_result", server_name="s")
HM = messages(said("Hm."), USE)
NEWS = HM.replace(b"event: message_delta", b'data: {"type":"news","index":[]}\n\nevent: x')
NO_INDEX = HM.replace(b'"content_block_stop", "index": 1', b'"content_block_stop", "index": {}')
NO_COUNT = chat({"content": "Hm."}, call(PARIS)).replace(
    b'"tool_calls"}]', b'"tool_calls"}], "usage": {"prompt_tokens": -1}'
)
PYTHON = {"executableCode": {"language": "PYTHON", "code": "1"}}
NO_OBJECT = {"functionCall": {"name": "get_weather", "args": [1]}}
NATIVE: dict[str, tuple[str, bytes]] = {
    "server_tool_use": ("anthropic", messages(*SEARCH, said("Cited."), USE)),
    "server_tool_use alone": ("anthropic", messages(*SEARCH, said("Cited."))),
    "mcp_tool_use": ("anthropic", messages(*LISTING, said("Ok."), USE)),
    "an unknown event": ("anthropic", NEWS),
    "an event that is no object": ("anthropic", b"data: [1]\n\n" + HM),
    "an index that is none": ("anthropic", NO_INDEX),
    "a long Messages event": ("anthropic", messages(said(LONG), USE)),
    "a custom call": ("openai", chat(call(PARIS), *CODE)),
    "a custom call alone": ("openai", chat(custom(0, id="c2", custom={"name": "code", "input": "print(1)"}))),
    "a call without a name": ("openai", chat(call(PARIS), call("{}", name="", index=1))),
    "a name that comes late": ("openai", chat(NAMELESS, NAMED)),
    "100,000 brackets": ("openai", chat({"content": "Hm."}, call(PARIS), call("[" * 100_000, index=1))),
    "1e999": ("openai", chat({"content": "Hm."}, call(PARIS), call('{"city":"Rome","days":1e999}', index=1))),
    "NaN": ("openai", chat(call(PARIS), call('{"city":"Rome","days":NaN}', index=1))),
    "90 objects deep": ("openai", chat(call(PARIS), call('{"a":' * 90 + "1" + "}" * 90, index=1))),
    "900 objects deep": ("openai", chat(call(PARIS), call('{"a":' * 900 + "1" + "}" * 900, index=1))),
    "half of a surrogate pair": ("openai", chat(call(PARIS), call('{"city":"\\ud800"}', index=1))),
    "half of a pair in the text": ("openai", chat({"content": "Hm \ud800."}, call(PARIS))),
    "an empty id": ("openai", chat(NO_ID)),
    "a long number": ("openai", chat(call(PARIS), call('{"days":' + "9" * 5000 + "}", index=1))),
    "a long chat event": ("openai", chat({"content": LONG}, call(PARIS))),
    "usage that is nonsense": ("openai", NO_COUNT),
    "custom_tool_call": ("responses", responses(FUNCTION_CALL, CUSTOM_CALL)),
    "custom_tool_call_input": ("responses", responses(FUNCTION_CALL, CUSTOM_CALL, between=PIECES)),
    "mcp_call": ("responses", responses(MCP_CALL, FUNCTION_CALL)),
    "a long Responses event": ("responses", responses(THOUGHT, FUNCTION_CALL)),
    "executableCode": ("gemini", gemini([PYTHON], [{"text": "Hm."}], [GEMINI_CALL])),
    "a long Gemini event": ("gemini", gemini([{"text": LONG}], [GEMINI_CALL])),
    "args that are no object": ("gemini", gemini([NO_OBJECT], [GEMINI_CALL])),
}
"""Streams by what is odd about them: the wire, and the text."""


def streamed(wire: str, text: bytes, engine: str = "auto", *, is_async: bool = False) -> Any:
    """What comes of a stream to which somebody listens."""
    listeners = [StreamListener("answer")]
    return ask(wire, text, engine, is_streamed=True, is_async=is_async, listeners=listeners, num_retries=2)


def called(calls: Any) -> list[Any]:
    """What calls are, good and bad in their order."""
    every = [*calls, *calls.invalid] if calls is not None else []
    return [
        (each.index, place_or_id(each), each.name, each.arguments, getattr(each, "code", None))
        for each in sorted(every, key=lambda each: each.index)
    ]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("case", list(NATIVE))
def test_a_stream_is_read_from_its_recording(case: str, is_async: bool) -> None:
    """
    streaming: A stream that DSPy's reader cannot read is read from its recording
    streaming: A custom call streams as any other
    """
    wire, text = NATIVE[case]
    want = choice_from_stream(text)
    got = streamed(wire, text, is_async=is_async)
    assert want.tool_calls is not None or want.text is not None
    if want.tool_calls is None:
        assert got.answer == want.text
        return
    # Arguments: what is checked against declarations keeps its place and its text.
    assert [each[:4] for each in called(got.calls)] == [each[:4] for each in called(want.tool_calls)]
    assert got.calls.text == want.text


OVER_LITELLM = [
    case
    for case, (wire, _) in NATIVE.items()
    if wire != "responses" and case != "an event that is no object"  # LiteLLM gives up on that one
]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("case", OVER_LITELLM)
def test_a_stream_over_litellm_is_read_from_its_chunks(case: str, is_async: bool) -> None:
    """streaming: A stream over LiteLLM is read from its chunks."""
    wire, text = NATIVE[case]
    want = choice_from_stream(text)
    got = streamed(wire, text, "litellm", is_async=is_async)
    if want.tool_calls is None:
        assert got.answer == want.text
        return
    if wire == "gemini":  # LiteLLM makes the ids, and writes the arguments as text
        assert [each[2] for each in called(got.calls)] == [each[2] for each in called(want.tool_calls)]
        assert [each.args for each in got.calls] == [each.args for each in want.tool_calls]
    else:
        assert [each[:4] for each in called(got.calls)] == [each[:4] for each in called(want.tool_calls)]
    assert got.calls.text == want.text


@pytest.mark.parametrize("is_async", [False, True])
def test_responses_over_litellm_come_whole(is_async: bool) -> None:
    """streaming: Responses over LiteLLM come whole."""

    def answer(received: Received) -> Answer:
        assert not received.stream
        return Answer(text="Let me look.", calls=[PARIS_CALL, ROME])

    want, got = (
        ask("responses", answer, "litellm", is_streamed=is_streamed, is_async=is_async)
        for is_streamed in (False, True)
    )
    assert [each.args for each in got.calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert called(got.calls) == called(want.calls)
    assert got.calls.text == want.calls.text == "Let me look."


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("case", ["custom_tool_call", "a long Responses event"])
def test_an_answer_that_lm15_streams_to_cut_it_is_whole(case: str, is_async: bool) -> None:
    """streaming: An unstreamed answer that DSPy's reader streams is whole."""
    _, text = NATIVE[case]
    want = choice_from_stream(text)

    def answer(received: Received) -> bytes:
        assert received.stream
        return text

    got = ask("responses", answer, is_async=is_async, stop=["END"])
    assert [each[:4] for each in called(got.calls)] == [each[:4] for each in called(want.tool_calls)]
    assert got.calls.text == want.text


def test_an_event_over_the_limit_is_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """streaming: An event beyond the limit is refused."""
    monkeypatch.setattr(stream_recorder, "LONGEST", 100_000)
    error = streamed("openai", NATIVE["a long chat event"][1])
    assert isinstance(error, LMProviderError)
    assert "an event of the stream is longer than" in str(error)


def test_text_that_is_no_json_is_not_asked_for_again() -> None:
    """streaming: Text that is not JSON is an error that says so."""
    broken = NATIVE["a long chat event"][1].replace(b'"object"', b"object", 1)
    for text in (broken, broken.replace(b"tool_calls", b"x")):
        assert isinstance(streamed("openai", text), UnreadableResponse)


def test_a_listener_hears_the_calls_that_have_names() -> None:
    """streaming: Listeners hear the calls that have a name."""
    _, text = NATIVE["1e999"]
    adapter = sigadapt.ChatAdapter(on_invalid="keep", tool_calling="native")
    with (
        LoopbackProvider(lambda _: text) as provider,
        dspy.context(lm=lm_of(provider, cache=False), adapter=adapter),
    ):
        program: Any = dspy.streamify(dspy.Predict(May), async_streaming=False)
        chunks = list(program(question="q", tools=ToolDecls([get_weather])))
    assert not any("no JSON" in str(chunk) for chunk in chunks)
    assert any("1e999" in str(chunk) for chunk in chunks[:-1])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("length", [10, 70_000], ids=["short", "long"])
def test_an_event_of_several_data_lines(end: str, length: int) -> None:
    """streaming: A stream that DSPy's reader cannot read is read from its recording."""
    lines = [
        *(
            'data: {"choices": [{"index": 0,',
            f'data:  "delta": {{"content": "{"x" * length}"}}}}]}}',
            ": hm",
            "",
        ),
        *('data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}', "", "data: [DONE]", ""),
    ]
    assert streamed("openai", "".join(f"{line}{end}" for line in lines).encode()).answer == "x" * length


def test_an_event_nested_too_deep_is_an_error() -> None:
    """response-choice: JSON nested too deep is an error"""
    deep = {"functionCall": {"name": "get_weather", "args": {"city": "@"}}}
    text = gemini([{"text": "Hm."}], [GEMINI_CALL], [deep]).replace(b'"@"', b"[" * 50_000 + b"]" * 50_000)
    assert isinstance(streamed("gemini", text), UnreadableResponse | LMError)
