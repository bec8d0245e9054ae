"""Streaming through `dspy.streamify`: the real dspy.LM over loopback HTTP, both engines, sync and async."""

import gc
import json
import re
import threading
import weakref
from typing import Any, cast

import dspy
import pytest
from dspy.streaming import StreamListener
from support import MADE_ID, PARIS, ROME, May, Must, get_weather, lm_of, turn_of

import sigadapt
from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolDecls, ToolResults
from sigadapt.errors import InvalidOption
from sigadapt.listeners import CallListener, PartialCall
from sigadapt.testing import Answer, Call, LoopbackProvider

pytestmark = pytest.mark.usefixtures("closed_streams")

NATIVE = [(wire, "auto") for wire in ("openai", "responses", "anthropic", "gemini")]
ROUTES = [*NATIVE, *((wire, "litellm") for wire in ("openai", "anthropic", "gemini", "ollama"))]
SAID = "It is sunny today in Paris."
TEXTS = {
    sigadapt.ChatAdapter: f"[[ ## answer ## ]]\n{SAID}\n\n[[ ## completed ## ]]",
    sigadapt.JSONAdapter: json.dumps({"answer": SAID}),
    sigadapt.adapters.XMLAdapter: f"<answer>\n{SAID}\n</answer>",
}


class Plain(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


class Streamed:
    """What one streamed run gave: the chunks of each field, and the prediction."""

    def __init__(self) -> None:
        self.prediction: Any = None
        self.chunks: dict[str, list[Any]] = {}
        self.last: dict[str, list[bool]] = {}

    def take(self, item: Any) -> None:
        if isinstance(item, dspy.Prediction):
            self.prediction = item
        else:
            self.chunks.setdefault(item.signature_field_name, []).append(item.chunk)
            self.last.setdefault(item.signature_field_name, []).append(item.is_last_chunk)

    @property
    def text(self) -> str:
        return "".join(self.chunks.get("answer", []))

    @property
    def calls(self) -> list[ToolCall | InvalidToolCall]:
        whole = [chunk for chunk in self.chunks.get("calls", []) if isinstance(chunk, ToolCalls)]
        return [call for chunk in whole for call in chunk.in_order()]

    @property
    def partial(self) -> list[PartialCall]:
        return [chunk for chunk in self.chunks.get("calls", []) if isinstance(chunk, PartialCall)]


def given(signature: Any) -> dict[str, Any]:
    tools = {} if signature is Plain else {"tools": ToolDecls([get_weather])}
    return {"question": "weather?", **tools}


def stream(
    lm: dspy.LM,
    signature: Any = May,
    adapter: Any = None,
    *listeners: StreamListener,
    program: Any = None,
    **inputs: Any,
) -> Streamed:
    heard = listeners or [
        StreamListener(name) for name in ("answer", "calls") if name in signature.output_fields
    ]
    run = Streamed()
    with dspy.context(lm=lm, adapter=adapter or sigadapt.ChatAdapter(tool_calling="native")):
        streamed: Any = dspy.streamify(
            program or dspy.Predict(signature), stream_listeners=list(heard), async_streaming=False
        )
        for item in streamed(**given(signature) | inputs):
            run.take(item)
    return run


def ask(lm: dspy.LM, signature: Any = May, adapter: Any = None) -> Any:
    with dspy.context(lm=lm, adapter=adapter or sigadapt.ChatAdapter(tool_calling="native")):
        return dspy.Predict(signature)(**given(signature))


def both(
    script: list[Any], wire: str, engine: str, signature: Any = May, **options: Any
) -> tuple[Streamed, Any]:
    """The same script streamed and not."""
    adapter = sigadapt.ChatAdapter(tool_calling="native", **options)
    with LoopbackProvider(script) as provider:
        run = stream(lm_of(provider, wire, engine), signature, adapter)
    with LoopbackProvider(script) as provider:
        return run, ask(lm_of(provider, wire, engine), signature, adapter)


def same(streamed: Any, whole: Any) -> bool:
    """Equality but for the ids that LiteLLM makes up anew each time, and its spelling of arguments."""
    ids = not any(len(call.id) > 20 for call in whole.calls.in_order()) if whole.calls is not None else True
    return comparable(streamed, ids=ids) == comparable(whole, ids=ids)


def comparable(prediction: Any, *, ids: bool) -> Any:
    calls: ToolCalls | None = prediction.calls
    shown = [comparable_call(call, ids=ids) for call in calls.in_order()] if calls is not None else None
    said = None if calls is None else (calls.text, calls.reasoning)
    return prediction.toDict().get("answer"), shown, said


def comparable_call(call: ToolCall | InvalidToolCall, *, ids: bool) -> Any:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments
    code = None if isinstance(call, ToolCall) else call.code
    return call.id if ids else None, call.name, arguments, call.index, code


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
@pytest.mark.parametrize("adapter", TEXTS, ids=lambda kind: kind.__name__)
def test_a_text_field_streams(adapter: Any, wire: str, engine: str) -> None:
    """streaming: A listener on a text field works as under DSPy's adapters."""
    with LoopbackProvider([Answer(text=TEXTS[adapter], calls=[PARIS])]) as provider:
        run = stream(lm_of(provider, wire, engine), May, adapter(tool_calling="native"))
    assert run.text.strip().strip('"') == SAID  # DSPy streams a JSON value with its quotes
    assert len(run.chunks["answer"]) > 1
    assert run.prediction.answer == SAID
    assert [call.name for call in run.prediction.calls] == ["get_weather"]


@pytest.mark.parametrize("adapter", TEXTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_signature_without_tool_fields_streams_as_under_dspy(adapter: Any, engine: str) -> None:
    """streaming: A signature without tool fields streams as under DSPy's adapters."""
    theirs = getattr(dspy, adapter.__name__)
    runs: list[Streamed] = []
    for kind in (adapter, theirs):
        with LoopbackProvider([Answer(text=TEXTS[adapter])]) as provider:
            runs.append(stream(lm_of(provider, "openai", engine), Plain, kind()))
    ours, original = runs
    assert ours.chunks == original.chunks
    assert ours.last == original.last
    assert ours.prediction.answer == original.prediction.answer == SAID


ANSWERS = {
    "one": Answer(calls=[PARIS]),
    "parallel": Answer(calls=[PARIS, ROME, PARIS]),
    "text beside": Answer(text=TEXTS[sigadapt.ChatAdapter], calls=[PARIS]),
    "text only": Answer(text=TEXTS[sigadapt.ChatAdapter]),
    "plain text": Answer(text="Sunny."),
    "an undeclared tool": Answer(calls=[Call("rm_rf", {}), ROME]),
    "arguments refused": Answer(calls=[Call("get_weather", {"city": 42}), ROME]),
    "cut off after a call": Answer(calls=[PARIS, ROME], finish="length"),
}


@pytest.mark.parametrize(
    ("name", "wire", "engine"),
    # Claude's whole body does not show whether the last arguments were whole; its stream does.
    [
        (name, *route)
        for name in ANSWERS
        for route in ROUTES
        if (name, route[0]) != ("cut off after a call", "anthropic")
    ],
)
def test_the_prediction_is_the_unstreamed_one(name: str, wire: str, engine: str) -> None:
    """streaming: The prediction equals the unstreamed one."""
    run, whole = both([ANSWERS[name]], wire, engine, on_invalid="keep")
    assert same(run.prediction, whole)


@pytest.mark.parametrize(
    ("wire", "engine"),  # DSPy does not stream OpenAI responses over LiteLLM
    [("openai", "auto"), ("responses", "auto"), ("openai", "litellm")],
)
@pytest.mark.parametrize(
    ("arguments", "finish", "code"),
    [
        ('{"city": not', None, "invalid_json"),
        ('{"city": "Ro', "length", "truncated"),
        ("[1, 2]", None, "not_an_object"),
        ("null", None, "schema_mismatch"),  # which is no arguments
        ('{"city": "a", "city": "b"}', None, "duplicate_key"),
        ('{"value": [1]}', None, "schema_mismatch"),
        ('{"partial_json": "x"}', None, "schema_mismatch"),
        ("", None, "schema_mismatch"),
    ],
)
def test_bad_calls_are_the_unstreamed_ones(
    wire: str, engine: str, arguments: str, finish: str | None, code: str
) -> None:
    """streaming: A bad call keeps its text and its code."""
    script = [Answer(calls=[PARIS, Call("get_weather", arguments)], finish=finish)]
    run, whole = both(script, wire, engine, on_invalid="keep")
    assert same(run.prediction, whole)
    (bad,) = run.prediction.calls.invalid
    assert (bad.code, bad.arguments) == (code, arguments)
    assert run.calls[-1] == bad


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
def test_provider_state_survives_a_stream(wire: str, engine: str) -> None:
    """streaming: Provider state survives a stream."""
    answer = Answer(text=TEXTS[sigadapt.ChatAdapter], calls=[PARIS, ROME], reasoning="Hm.", signature="c2ln")
    run, whole = both([answer], wire, engine)
    assert same(run.prediction, whole)
    assert run.text == SAID
    if engine == "auto":  # each provider has a port of its own, which a turn's state names
        first, second = (
            re.sub(r"127\.0\.0\.1:\d+", "", answer.calls.model_dump_json())
            for answer in (run.prediction, whole)
        )
        assert first == second
    assert wire in ("openai", "ollama") or "c2ln" in run.prediction.calls.model_dump_json()


@pytest.mark.parametrize(
    ("wire", "engine"), [route for route in ROUTES if route[0] not in ("openai", "ollama")]
)
def test_the_next_turn_streams_with_the_state(wire: str, engine: str) -> None:
    """streaming: Provider state survives a stream."""

    class GoOn(May):
        results: ToolResults = dspy.InputField()

    said = Answer(calls=[PARIS], reasoning="Hm.", signature="c2ln")
    done = Answer(text=TEXTS[sigadapt.ChatAdapter], reasoning="So.", signature="ZG9uZQ==")
    with LoopbackProvider([said, done]) as provider:
        lm = lm_of(provider, wire, engine)
        results = ToolResults.of(stream(lm).prediction.calls, ["sunny"])
        run = stream(lm, GoOn, results=results)
        assert "c2ln" in json.dumps(provider.received[1].body)
    assert run.text == SAID
    assert run.prediction.answer == SAID


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_a_reask_streams_too(wire: str) -> None:
    """streaming: A reask streams into the same listener."""
    bad = Call("get_weather", '{"city": ')
    script = [Answer(calls=[PARIS, bad]), Answer(calls=[ROME])]
    adapter = sigadapt.ChatAdapter(on_invalid="reask", tool_calling="native")
    with LoopbackProvider(script) as provider:
        run = stream(lm_of(provider, wire), May, adapter)
    assert [call.args for call in run.prediction.calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert [isinstance(call, ToolCall) for call in run.calls] == [True, False, True]
    assert run.last["calls"] == [False, True, True]


def pieces(run: Streamed) -> tuple[set[Any], set[Any], set[Any]]:
    """The places and ids of the partial calls, of the whole ones, and of those in the prediction."""
    places: Any = [
        {(call.index, call.id) for call in calls} for calls in (run.partial, run.calls, run.prediction.calls)
    ]
    return places


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini"])
def test_the_index_of_a_call_counts_on_after_a_reask(wire: str) -> None:
    """
    streaming: The index of a call counts on after a reask
    conversations: Every piece of a streamed call has its id and place
    """
    script = [Answer(calls=[PARIS, Call("get_weather", {"city": 3})]), Answer(calls=[ROME])]
    with LoopbackProvider(script) as provider:
        listener = CallListener("calls", partial=True)
        run = stream(lm_of(provider, wire), May, sigadapt.ChatAdapter(on_invalid="reask"), listener)
    assert {part.index for part in run.partial} == {0, 1, 2}
    _, whole, last = pieces(run)
    assert last <= whole
    assert [index for index, _ in sorted(last)] == [0, 2]


@pytest.mark.parametrize("wire", ["openai", "gemini", "anthropic"])
def test_every_piece_of_a_streamed_call_has_its_id(wire: str) -> None:
    """conversations: Every piece of a streamed call has its id and place."""
    calls = [Call("get_weather", {"city": city}, id="") for city in ("Rome", "Oslo")]
    with LoopbackProvider([Answer(calls=calls)]) as provider:
        lm, listener = lm_of(provider, wire), CallListener("calls", partial=True)
        partial, whole, last = pieces(stream(lm, May, None, listener))
        other = pieces(stream(lm, May, None, CallListener("calls"), question="another question"))[2]
    assert partial == whole == last
    assert all(MADE_ID.fullmatch(made) for _, made in last)
    assert not {made for _, made in last} & {made for _, made in other}


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_a_call_made_again_is_streamed_once(wire: str) -> None:
    """tool-call-outputs: A call made again after a reask comes out once."""
    bad = Call("get_weather", '{"city": ')
    script = [Answer(calls=[PARIS, bad]), Answer(calls=[PARIS, ROME])]
    adapter = sigadapt.ChatAdapter(on_invalid="reask", tool_calling="native")
    with LoopbackProvider(script) as provider:
        run = stream(lm_of(provider, wire), May, adapter)
    cities = [call.args["city"] for call in run.calls if isinstance(call, ToolCall)]
    assert cities == [call.args["city"] for call in run.prediction.calls] == ["Paris", "Rome"]


def test_a_cached_stream_is_the_same_prediction() -> None:
    """streaming: A streamed answer from the cache is the same."""
    arguments = '{"city": "a", "city": "b"}'
    adapter = sigadapt.ChatAdapter(on_invalid="keep")
    with LoopbackProvider([Answer(calls=[Call("get_weather", arguments), ROME])]) as provider:
        lm = lm_of(provider, cache=True)
        first, again = (stream(lm, May, adapter) for _ in range(2))
        assert len(provider.received) == 1
    assert first.prediction.calls == again.prediction.calls
    assert first.prediction.calls.invalid[0].code == "duplicate_key"
    assert again.calls == first.calls


@pytest.mark.parametrize("signature", [May, Must])
@pytest.mark.parametrize(("wire", "engine"), ROUTES)
def test_each_call_comes_whole_and_once(signature: Any, wire: str, engine: str) -> None:
    """streaming: A listener on the calls field gets whole calls."""
    listener = StreamListener("calls")
    with LoopbackProvider([Answer(calls=[PARIS, ROME])]) as provider:
        run = stream(lm_of(provider, wire, engine), signature, None, listener)
    bare = [call.model_copy(update={"turn": turn_of()}) for call in run.prediction.calls]
    assert run.calls == bare
    assert all(len(chunk.in_order()) == 1 for chunk in run.chunks["calls"])
    assert run.last["calls"] == [False, True]


def test_a_call_is_sent_before_the_answer_ends() -> None:
    """streaming: A call is sent as soon as the answer has gone on."""
    with LoopbackProvider([Answer(calls=[PARIS, ROME], chunk=2)]) as provider:
        listeners = [CallListener("calls", partial=True)]
        run = stream(lm_of(provider), May, None, *listeners)
    order = [
        f"part {chunk.index}" if isinstance(chunk, PartialCall) else f"call {chunk[0].index}"
        for chunk in run.chunks["calls"]
    ]
    assert order.index("call 0") < order.index("part 1") + 2
    assert order[-1] == "call 1"


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
def test_partial_calls_only_for_whom_they_were_asked_for(wire: str, engine: str) -> None:
    """streaming: Partial calls come only where asked for, and marked."""
    with LoopbackProvider([Answer(calls=[PARIS, ROME])]) as provider:
        run = stream(lm_of(provider, wire, engine), May, None, CallListener("calls", partial=True))
    for call in cast("list[ToolCall]", run.calls):
        parts = [part for part in run.partial if part.index == call.index]
        assert [len(part.arguments) for part in parts] == sorted(len(part.arguments) for part in parts)
        assert json.loads(parts[-1].arguments) == call.args
        assert (parts[-1].id or call.id, parts[-1].name) == (call.id, call.name)
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        run = stream(lm_of(provider, wire, engine), May, None, CallListener("calls"))
    assert run.partial == []
    assert len(run.calls) == 1


def test_calls_are_listened_to_in_their_field_alone() -> None:
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider, pytest.raises(InvalidOption) as caught:
        stream(lm_of(provider), May, None, CallListener("answer"))
    assert "CallListener('calls')" in str(caught.value)


def test_streamed_calls_are_checked_and_named_as_declared() -> None:
    """streaming: Streamed calls are checked and named as the prediction's are."""

    def weather(city: str) -> str:
        """Weather."""
        raise AssertionError

    decls = ToolDecls([sigadapt.ToolDecl.of(weather, name="weather.get now")])
    listener = CallListener("calls", partial=True)

    def answer(received: Any) -> Answer:
        alias = received.body["tools"][0]["function"]["name"]
        assert alias != "weather.get now"
        return Answer(calls=[Call(alias, {"city": 42}), Call(alias, {"city": "Rome"})])

    with LoopbackProvider(answer) as provider:
        run = stream(lm_of(provider), May, sigadapt.ChatAdapter(on_invalid="keep"), listener, tools=decls)
    assert {call.name for call in run.calls} == {"weather.get now"}
    assert {part.name for part in run.partial} == {"weather.get now"}
    assert cast("Any", run.calls[0]).code == "schema_mismatch"


def sse(*fragments: dict[str, Any]) -> bytes:
    """A chat completion's stream of these `tool_calls` fragments, one a chunk."""
    deltas: list[Any] = [{"role": "assistant"}, *({"tool_calls": [one]} for one in fragments)]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"".join(f"data: {json.dumps({**head, 'choices': [each]})}\n\n".encode() for each in choices)


def fragment(arguments: str, index: int | None = None, id: str = "", name: str = "") -> dict[str, Any]:  # noqa: A002
    function = {"arguments": arguments, **({"name": name or "get_weather"} if id or name else {})}
    head: dict[str, Any] = {"index": index} if index is not None else {}
    return {**head, **({"id": id} if id else {}), "type": "function", "function": function}


PARTS = (('{"ci', "a"), ('{"city"', "b"), ('ty":"Paris"}', ""), (':"Rome"}', ""))
FRAGMENTS = {
    "interleaved": [fragment(text, n % 2, made) for n, (text, made) in enumerate(PARTS)],
    "without an index": [fragment(*PARTS[n][:1], None, PARTS[n][1]) for n in (0, 2, 1, 3)],
    "the same index": [fragment(PARTS[n][0], 0, PARTS[n][1]) for n in (0, 2, 1, 3)],
    "whole, without an id": [
        fragment(f'{{"city":"{city}"}}', 0, "", "get_weather") for city in ("Paris", "Rome")
    ],
}


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_are_never_merged(name: str, engine: str) -> None:
    """streaming: Fragments of two calls are never merged."""
    with LoopbackProvider([sse(*FRAGMENTS[name])]) as provider:
        run = stream(lm_of(provider, "openai", engine), May, sigadapt.ChatAdapter(on_invalid="keep"))
    calls = run.prediction.calls
    assert [(call.id, call.args["city"]) for call in calls] == [(calls[0].id, "Paris"), (calls[1].id, "Rome")]
    assert calls.invalid == ()
    assert run.calls == [call.model_copy(update={"turn": turn_of()}) for call in calls]


def test_a_call_that_goes_wrong_later_is_sent_again() -> None:
    """streaming: A call that later fragments spoil is sent again as a bad one."""
    cities = (("Paris", 0, "a"), ("Rome", 1, "b"), ("Oslo", 0, ""))
    spoilt = [fragment(f'{{"city":"{city}"}}', index, made) for city, index, made in cities]
    with LoopbackProvider([sse(*spoilt)]) as provider:
        run = stream(lm_of(provider), May, sigadapt.ChatAdapter(on_invalid="keep"))
    sent = [(call.id, isinstance(call, ToolCall)) for call in run.calls]
    assert sent == [("a", True), ("a", False), ("b", True)]
    assert [call.code for call in run.prediction.calls.invalid] == ["invalid_json"]


def test_a_stream_leaves_nothing_behind() -> None:
    """streaming: Concurrent streams do not mix."""
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        lm, listener = lm_of(provider), CallListener("calls", partial=True)
        stream(lm, May, None, listener)
        left = [weakref.ref(lm), weakref.ref(listener)]
        del lm, listener
    # The threads in which DSPy runs the program keep their last call until they have ended.
    for _ in range(1_000):
        gc.collect()
        if not any(each() for each in left):
            break
        threading.Event().wait(0.01)
    assert [each() for each in left] == [None, None]


def test_only_the_listened_predictor_is_heard() -> None:
    """streaming: A listener hears its own predictor alone."""

    class Two(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = dspy.Predict(May)
            self.second = dspy.Predict(Must)

        def forward(self, **inputs: Any) -> Any:
            self.first(**inputs)
            return self.second(**inputs)

    program = Two()
    listener = StreamListener("calls", predict=program.second, predict_name="second")
    with LoopbackProvider([Answer(calls=[PARIS]), Answer(calls=[ROME])]) as provider:
        run = stream(lm_of(provider), May, sigadapt.ChatAdapter(), listener, program=program)
    assert [call.args for call in cast("Any", run.calls)] == [{"city": "Rome"}]


def test_of_several_candidates_the_first_is_heard() -> None:
    """streaming: Of several candidates the first is heard."""
    with LoopbackProvider([Answer(calls=[PARIS]), Answer(calls=[ROME])]) as provider:
        config = {"n": 2, "temperature": 1.0}
        run = stream(lm_of(provider), May, sigadapt.ChatAdapter(), StreamListener("calls"), config=config)
    assert [call.args for call in cast("Any", run.calls)] == [{"city": "Paris"}]
    assert len(run.prediction.completions) == 2
