"""Every name of DSPy that is not public, tested by what it does.

When a new DSPy changes one of them, the test of that name fails here, and its message says what was lost.
"""

import asyncio
import copy
from collections.abc import Iterator
from threading import get_ident
from types import MemberDescriptorType
from typing import Any

import dspy
import pytest
from dspy.clients import call_context
from dspy.utils.callback import BaseCallback
from internals import contract, internals

from sigadapt.testing import Answer, LoopbackProvider

lm15 = dspy.lm15


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider([Answer(text="Hi.")]) as running:
        yield running


def lm_of(provider: LoopbackProvider, wire: str = "openai", **options: Any) -> Any:
    return dspy.LM(**provider.lm_options(wire, **options))


def request_of(lm: Any) -> Any:
    return lm15.Request(model=lm.model, messages=(lm15.Message.user("Hi"),))


def test_planned_asks_capabilities_once_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Counting(dspy.LM):
        @property
        def supports_function_calling(self) -> bool:
            asked.append("asked")
            return True

    class Adapter:
        @internals.planned
        def run(self, lm: Any, lm_kwargs: dict[str, Any]) -> tuple[bool, bool]:
            return lm.supports_function_calling, lm.supports_function_calling

    assert Adapter().run(Counting("openai/x"), {}) == (True, True), "the decorated method no longer runs"
    assert asked


def test_a_shown_scope_says_whether_a_stream_has_shown_anything() -> None:
    with internals.shown_scope() as progress:
        assert progress.emitted is False
    with internals.streaming_to(object()), internals.shown_scope() as progress:
        assert progress.emitted is False
        call_context.stream_emitted()
        assert progress.emitted is True


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini"])
def test_a_copy_of_a_provider_has_all_that_it_has(wire: str) -> None:
    with LoopbackProvider([Answer(text="Hi.")]) as running:
        lm = lm_of(running, wire)
        engine = internals.native_engine(lm, request_of(lm), is_async=False)
        provider, _ = internals.target_of(engine, request_of(lm), streaming=False)
    copied, expected = internals.with_methods(provider, {}), copy.copy(provider)
    assert type(copied) is type(provider)
    assert copied is not provider
    assert copied.__reduce_ex__(4)[2] == expected.__reduce_ex__(4)[2]


def test_a_model_has_no_slots_that_a_copy_would_have_to_look_for() -> None:
    slots = [
        name
        for kind in dspy.LM.__mro__
        for name, each in vars(kind).items()
        if isinstance(each, MemberDescriptorType)
    ]
    assert slots == []


def test_client_keys_are_connection_settings() -> None:
    assert {"api_key", "api_base", "timeout", "headers"} <= internals.CLIENT_KEYS
    assert {"temperature", "max_tokens", "tools"}.isdisjoint(internals.CLIENT_KEYS)


@pytest.mark.parametrize(
    ("model", "options", "native", "adapter"),
    [
        ("openai/gpt-4o-mini", {}, True, "OpenAIChatLM"),
        ("openai/gpt-5", {"model_type": "responses"}, True, "OpenAILM"),
        ("anthropic/claude-sonnet-4-6", {}, True, "AnthropicLM"),
        ("gemini/gemini-2.5-flash", {}, True, "GeminiLM"),
        ("openai/gpt-4o-mini", {"engine": "litellm"}, False, None),
        ("bedrock/anthropic.claude-sonnet-4-5", {}, False, None),
    ],
)
def test_a_backend_is_selected_offline(
    model: str, options: dict[str, Any], native: bool, adapter: str | None
) -> None:
    selection = internals.select_backend(dspy.LM(model, **options))
    assert selection.native is native
    assert getattr(selection.resolution, "adapter", None) == adapter


def test_ollama_is_known_as_a_server() -> None:
    assert internals.select_backend(dspy.LM("ollama/llama3.1")).resolution.provider == "ollama"


def test_a_server_that_wants_its_reasoning_back_says_so() -> None:
    compat = internals.select_backend(dspy.LM("deepseek/deepseek-reasoner", api_key="x")).resolution.compat
    assert lm15.OpenAIChatCompat.preset(compat).thinking_replay == "native"


def engines_of(provider: LoopbackProvider, *, is_async: bool) -> list[str]:
    lms = lm_of(provider), lm_of(provider, engine="litellm")
    engines = [internals.native_engine(lm, request_of(lm), is_async=is_async) for lm in lms]
    return [type(engine).__name__ for engine in engines]


def test_the_engine_is_the_one_that_dspy_would_use(provider: LoopbackProvider) -> None:
    assert engines_of(provider, is_async=False) == ["LM15Engine", "LiteLLMEngine"]


async def test_the_async_engine_is_the_one_that_dspy_would_use(provider: LoopbackProvider) -> None:
    assert engines_of(provider, is_async=True) == ["AsyncLM15Engine", "AsyncLiteLLMEngine"]


def test_litellm_can_be_asked_in_lm15s_place(provider: LoopbackProvider) -> None:
    for engine in ("auto", "litellm"):
        lm = lm_of(provider, engine=engine)
        made = internals.engine_over_litellm(lm, request_of(lm), is_async=False)
        assert type(made).__name__ == "LiteLLMEngine", "DSPy no longer selects an engine by `_engine_spec`"
        assert lm.engine == engine


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_copy_with_an_engine_asks_that_engine(provider: LoopbackProvider, is_async: bool) -> None:
    lm = lm_of(provider)
    copied: Any = internals.with_engine(
        lm, internals.engine_over_litellm(lm, request_of(lm), is_async=is_async)
    )
    response = await copied.acall(request_of(lm)) if is_async else copied(request_of(lm))
    assert response.text
    assert copied.history is lm.history, "a copy of a model no longer shares its history"
    assert lm.history
    assert lm.engine == "auto"
    assert "api_key" in lm.kwargs


def test_a_copy_takes_its_engine_from_a_function_and_shares_the_history(provider: LoopbackProvider) -> None:
    lm = lm_of(provider)
    asked: list[Any] = []
    engine = internals.native_engine(lm, request_of(lm), is_async=False)

    class Noting:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def complete(self, request: Any) -> Any:
            asked.append(request)
            return engine.complete(request)

    def engine_of(engines: dict[Any, Any], key: Any) -> Any:
        assert engines[key] is engine, "DSPy no longer keeps an engine by the key it asks with"
        return Noting()

    copied: Any = internals.with_engines_from(lm, engine_of)
    assert copied(request_of(lm)).text == "Hi."
    assert len(asked) == 1, "DSPy no longer looks its engines up in `_engine_store`"
    assert copied.history is lm.history
    assert lm(request_of(lm)).text == "Hi."
    assert len(asked) == 1, "the model itself is left as it was"


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_provider_sends_a_request_that_was_written_before(
    provider: LoopbackProvider, is_async: bool
) -> None:
    lm = lm_of(provider)
    engine = internals.native_engine(lm, request_of(lm), is_async=is_async)
    emitted: list[Any] = []

    def note(emit: Any, **given: Any) -> Any:
        emitted.append(given["payload"])
        return emit(**given)

    written = internals.written_target(engine, request_of(lm), {"_emit": note})
    assert written is not None, "`api_key` is no longer where lm15 keeps the credential"
    target, routed, changes = written
    assert changes == ()
    assert [payload["model"] for payload in emitted] == ["gpt-4o-mini"], "lm15 no longer emits by `_emit`"
    answer: Any = target.complete(routed)
    assert (await answer if is_async else answer).text == "Hi."
    assert len(emitted) == 1, "lm15 no longer writes by `_build`"
    again: Any = target.complete(routed)
    assert (await again if is_async else again).text == "Hi."
    assert len(emitted) == 2


async def test_a_native_engine_names_the_provider_it_streams_from(provider: LoopbackProvider) -> None:
    lm = lm_of(provider)
    engine = internals.native_engine(lm, request_of(lm), is_async=False)
    target, routed = internals.target_of(engine, request_of(lm), streaming=True)
    assert routed.model == "gpt-4o-mini"
    assert callable(target.parse_stream_events), "the provider no longer parses its events by this name"
    assert not hasattr(target, "_inner")
    engine = internals.native_engine(lm, request_of(lm), is_async=True)
    of_async: Any = internals.target_of(engine, request_of(lm), streaming=True)[0]
    assert callable(of_async._inner.parse_stream_events), "an async provider no longer has a sync one"


class Ask(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


def test_a_stream_can_be_stood_in_for(provider: LoopbackProvider) -> None:
    """`send_stream`, `streaming_to`, `listeners_of`, `EngineChunk` and `StreamResponse` together."""
    seen: list[Any] = []

    class Tap:
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __getattr__(self, name: str) -> Any:
            return getattr(self.stream, name)

        async def send(self, item: Any) -> None:
            seen.append(item)
            await self.stream.send(item)

    class Program(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.predict = dspy.Predict(Ask)

        def forward(self, question: str) -> Any:
            stream = internals.settings.send_stream
            assert stream is not None, "DSPy no longer keeps its stream under `settings.send_stream`"
            with internals.streaming_to(Tap(stream)):
                return self.predict(question=question)

    listener: Any = internals.StreamListener("answer")
    program: Any = dspy.streamify(Program(), stream_listeners=[listener], async_streaming=False)
    answer = Answer(text="[[ ## answer ## ]]\nYes.\n\n[[ ## completed ## ]]")
    with LoopbackProvider([answer]) as said, dspy.context(lm=lm_of(said), adapter=dspy.ChatAdapter()):
        given = list(program(question="?"))
    assert any(isinstance(item, internals.EngineChunk) for item in seen), "chunks have another type"
    chunks = [item for item in given if isinstance(item, internals.StreamResponse)]
    assert "".join(chunk.chunk for chunk in chunks).strip() == "Yes."
    assert internals.settings.send_stream is None


def test_listeners_are_those_of_the_running_predictor() -> None:
    predict = dspy.Predict(Ask)
    listener: Any = internals.StreamListener("answer", predict=predict)
    with dspy.context(stream_listeners=[listener], caller_predict=predict):
        assert internals.listeners_of("answer") == [listener]
        assert internals.listeners_of("question") == []
    with dspy.context(stream_listeners=[listener], caller_predict=dspy.Predict(Ask)):
        assert internals.listeners_of("answer") == []


async def test_a_sync_program_can_send_to_its_stream() -> None:
    sent: list[Any] = []

    class Stream:
        async def send(self, item: Any) -> None:
            sent.append(item)

    internals.send_to_stream(Stream(), "item")
    assert sent == ["item"]


def test_a_direct_stream_gets_the_chunks_of_a_sync_call_in_its_own_thread(provider: LoopbackProvider) -> None:
    threads: list[int] = []

    class Stream:
        is_direct = True

        async def send(self, item: Any) -> None:
            threads.append(get_ident())

    lm = lm_of(provider)
    internals.prepare_to_stream()
    with internals.streaming_to(Stream()):
        lm(request_of(lm))
        internals.send_to_stream(Stream(), "item")
    assert len(threads) > 1, "DSPy does not send its chunks by `anyio.from_thread.run` any more"
    assert set(threads) == {get_ident()}


def test_a_direct_stream_that_waits_is_an_error() -> None:
    class Stream:
        is_direct = True

        async def send(self, item: Any) -> None:
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waited"):
        internals.send_to_stream(Stream(), "item")


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_litellms_chunks_become_lm15s_events() -> None:
    stream = internals.ChatStream(lm15.Request(model="m", messages=(lm15.Message.user("Hi"),)))
    events = [event for each in ({"content": "Hi"}, {"content": "."}) for event in stream.feed(chunk(each))]
    assert [event.delta.text for event in events if event.type == "delta"] == ["Hi", "."]
    assert hasattr(stream, "chunks"), "the body is put together from `chunks`"


def test_litellms_errors_become_dspys() -> None:
    with pytest.raises(lm15.RateLimitError, match="slow down"), internals.litellm_errors(model="m"):
        raise internals.get_litellm().exceptions.RateLimitError("slow down", "openai", "m")


def test_streams_are_closed() -> None:
    closed: list[str] = []

    class Source:
        def close(self) -> None:
            closed.append("sync")

        async def aclose(self) -> None:
            closed.append("async")

    async def close_async() -> None:
        async with internals.aclosing(Source()):
            pass

    with internals.closing(Source()):
        pass
    asyncio.run(close_async())
    assert closed == ["sync", "async"]


def test_the_engines_write_their_messages_in_one_method(provider: LoopbackProvider) -> None:
    """`over_litellm/engines.py` overrides `_arguments`."""
    lm = lm_of(provider, engine="litellm")
    engine = internals.native_engine(lm, request_of(lm), is_async=False)
    assert engine._arguments(request_of(lm))["messages"] == [{"role": "user", "content": "Hi"}]


def test_the_function_by_which_an_agent_ends_is_known() -> None:
    agent: Any = contract.ReActV2("question -> answer", tools=[])

    def submit() -> None: ...

    assert internals.is_submit(agent.tools["submit"].func), "the agent makes its submit elsewhere"
    assert not internals.is_submit(submit)
    assert not internals.is_submit(None)


def test_what_runs_has_an_id_everywhere() -> None:
    """`runs/watching.py` knows by it what a callback and a chunk belong to, also in DSPy's threads."""
    parents: dict[str, str | None] = {}

    class Hears(BaseCallback):
        def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            parents[call_id] = internals.running_id.get()

        def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            parents[call_id] = internals.running_id.get()

    class Both(dspy.Module):
        def forward(self) -> Any:
            signature: Any = "question -> answer"
            rows: Any = [(dspy.Predict(signature), {"question": "Hi"})] * 2
            return dspy.Parallel(num_threads=2, disable_progress_bar=True)(rows)

    provider = LoopbackProvider([Answer(text="[[ ## answer ## ]]\nHi.")] * 2)
    with provider, dspy.context(lm=lm_of(provider), adapter=dspy.ChatAdapter(), callbacks=[Hears()]):
        Both()()
    assert len(parents) == 5
    assert [own for own, parent in parents.items() if parent not in parents] == [next(iter(parents))]


def test_a_tool_of_a_source_is_of_our_kind() -> None:
    class Source:
        """What a tool is made of."""

        def __call__(self, n: int) -> int:
            return n

    class Kind(dspy.Tool):
        """A tool of ours."""

    class Other(dspy.Tool):
        """A tool of a user's own class."""

    def plain(n: int) -> int:
        return n

    make: Any = dspy.Tool
    before = make.__new__
    internals.make_tools_of(Source, Kind)
    try:
        assert type(make(Source())) is Kind, "DSPy no longer makes tools with `Tool(value)`"
        assert type(make(func=Source())) is Kind
        assert type(make(plain)) is dspy.Tool
        other: Any = Other
        assert type(other(Source())) is Other
        assert type(copy.deepcopy(make(Source()))) is Kind
        assert make(plain).model_copy().name == "plain"
    finally:
        make.__new__ = before
