"""What a call costs in work and memory, counted and never timed, and that concurrent calls do not meet."""

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import dspy
import pytest
from dspy.clients import capabilities
from internals import plan, routes, tool_decl
from internals import select_backend as dspys_select_backend
from support import May, Must

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolDecls, ToolResults
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

lm15 = dspy.lm15
THREADS = 32
TASKS = 64  # lm15 opens at most 100 connections


def echo(text: str) -> str:
    """Say it again."""
    return text


class Ask(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls = dspy.OutputField()


class GoOn(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    history: dspy.History = dspy.InputField()
    results: ToolResults | None = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls = dspy.OutputField()


class Engine:
    """An engine that answers at once and keeps what it was asked."""

    supports_function_calling, supports_reasoning, supports_response_schema = True, True, False
    supported_params = ("tools",)

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def complete(self, request: Any) -> Any:
        self.asked.append(request)
        call = lm15.ToolCallPart(id="call_1", name=request.tools[0].name, input={"text": "x"})
        return lm15.Response(
            id="r",
            model=request.model,
            message=lm15.Message.assistant((call,)),
            finish_reason="tool_call",
            usage=lm15.Usage(),
        )


def quiet(engine: Any) -> Any:
    """DSPy's context in which nothing remembers a call: neither history nor trace."""
    lm = dspy.LM("openai/x", engine=engine, cache=False)
    adapter = sigadapt.ChatAdapter(tool_calling="native")
    return dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None)


def collect() -> None:
    for _ in range(2):  # a class that another one held is only found by the second pass
        gc.collect()


def built(run: Callable[[], object]) -> int:
    """How many signature classes a run builds; a class is in cycles, so it stays until it is collected."""
    collect()
    gc.disable()
    try:
        before = len(dspy.Signature.__subclasses__())
        run()
        return len(dspy.Signature.__subclasses__()) - before
    finally:
        gc.enable()


def test_what_does_not_change_is_compiled_once() -> None:
    """call-cost: What does not change from call to call is compiled once."""
    fresh: Any = Ask.with_instructions("Answer with the tools.")
    engine, decls, predict = Engine(), ToolDecls(echo), dspy.Predict(fresh)
    with quiet(engine):
        assert built(lambda: predict(question="1", tools=decls)) > 0
        assert built(lambda: predict(question="2", tools=decls)) == 0
    first, second = engine.asked
    assert all(one is other for one, other in zip(first.tools, second.tools, strict=True))
    assert first.system == second.system == "Answer with the tools."


def called_and_dropped(number: int, kind: Any = Ask) -> Any:
    signature: Any = kind.with_instructions(f"Answer {number}.")
    dspy.Predict(signature)(question="?", tools=ToolDecls(echo))
    return weakref.ref(signature)


def test_a_signature_is_forgotten_with_its_last_user() -> None:
    """call-cost: Caches are bounded and weak."""
    collect()
    before = len(plan._PLANS)  # pyright: ignore[reportPrivateUsage]
    with quiet(Engine()):
        known = [called_and_dropped(number) for number in range(50)]
    collect()
    assert [reference for reference in known if reference() is not None] == []
    after = len(plan._PLANS)  # pyright: ignore[reportPrivateUsage]
    assert after == before


class Think(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    thoughts: dspy.Reasoning = dspy.OutputField()
    calls: ToolCalls = dspy.OutputField()


def test_a_native_type_of_dspys_builds_its_signature_once() -> None:
    """call-cost: What does not change from call to call is compiled once.

    call-cost: Caches are bounded and weak.
    """
    engine = Engine()
    with quiet(engine):
        known = called_and_dropped(0, Think)
        collect()
        assert known() is None
        predict = dspy.Predict(Think)
        assert built(lambda: predict(question="1", tools=ToolDecls(echo))) > 0
        assert built(lambda: predict(question="2", tools=ToolDecls(echo))) == 0
    assert [request.config.reasoning is None for request in engine.asked] == [False] * 3
    assert "thoughts" not in engine.asked[-1].system


def test_an_adapter_is_forgotten_with_its_last_user() -> None:
    """call-cost: Caches are bounded and weak."""
    adapter = sigadapt.ChatAdapter()
    adapter.format(Ask, [], {"question": "?"})
    known = weakref.ref(adapter)
    del adapter
    collect()
    assert known() is None


def work(run: Callable[[], object]) -> int:
    """How many functions a run calls, Python's own included."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    run()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


class DspysAsk(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


class HandOver(dspy.Adapter):
    """The least that an adapter can do: hand a finished request to the LM."""

    def __init__(self, tools: ToolDecls) -> None:
        super().__init__()
        body = {"model": "x", "messages": [{"role": "user", "content": "?"}], "tools": tools.to_openai()}
        self.tools = lm15.request_from_openai_chat(body).tools

    def __call__(self, lm: Any, *_arguments: Any, **_options: Any) -> list[dict[str, Any]]:
        lm(lm15.Request(model=lm.model, messages=(lm15.Message.user("?"),), tools=self.tools))
        return [{"calls": None}]


@pytest.mark.parametrize("count", [1, 10])
def test_a_call_takes_a_fraction_of_the_work_of_dspys_adapter(count: int) -> None:
    functions = [function_named(f"tool_{number}") for number in range(count)]
    tools = ToolDecls(functions)

    def work_of(adapter: Any, signature: Any, tools: Any) -> int:
        predict = dspy.Predict(signature)
        with quiet(Engine()), dspy.context(adapter=adapter):
            return work(lambda: predict(question="?", tools=tools))

    floor = work_of(HandOver(tools), Ask, tools)
    ours = work_of(sigadapt.ChatAdapter(tool_calling="native"), Ask, tools)
    theirs = work_of(
        dspy.ChatAdapter(use_native_function_calling=True), DspysAsk, [dspy.Tool(each) for each in functions]
    )
    assert 0 < ours - floor <= 0.25 * (theirs - floor)


def function_named(name: str) -> Callable[..., str]:
    def function(text: str, days: int = 3, units: str = "metric") -> str:
        """Say the weather of a city."""
        return f"{text}, {days} days, {units}"

    function.__name__ = name
    return function


def history(turns: int) -> dspy.History:
    return dspy.History(messages=[event(number) for number in range(turns)])


def event(number: int) -> dict[str, Any]:
    calls = ToolCalls(tool_calls=[ToolCall(id=f"call_{number}", name="echo", args={"text": "x"})])
    return {"question": f"{number}?", "calls": calls, "results": ToolResults.of(calls, ["x"])}


def test_a_streamed_call_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """call-cost: Work grows in line with turns and tools."""
    checked: list[str] = []
    flaw_of = ToolDecls.flaw_of

    def counted(decls: ToolDecls, name: str, *arguments: Any) -> Any:
        checked.append(name)
        return flaw_of(decls, name, *arguments)

    monkeypatch.setattr(ToolDecls, "flaw_of", counted)
    calls = [Call("echo", {"text": str(number)}) for number in range(12)]
    with LoopbackProvider([Answer(calls=calls)]) as provider:
        lm = dspy.LM(**cast("Any", {**provider.lm_options("openai"), "cache": False}))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            listeners = [sigadapt.listeners.CallListener("calls")]
            streaming: Any = dspy.streamify
            program = streaming(dspy.Predict(May), stream_listeners=listeners, async_streaming=False)
            *chunks, prediction = program(question="?", tools=ToolDecls(echo))
    assert len(prediction.calls) == len(chunks) == len(calls)
    assert len(checked) <= 2 * len(calls), "once while it streams, and once in the whole answer"


@pytest.mark.parametrize("engine", ["own", "native"])
def test_work_grows_in_line_with_turns(engine: str) -> None:
    """call-cost: Work grows in line with turns and tools."""

    def of(turns: int) -> int:
        given = {"question": "?", "tools": ToolDecls(echo), "history": history(turns)}
        adapter, lm = sigadapt.ChatAdapter(tool_calling="native"), dspy.LM("openai/x", engine=Engine())
        if engine == "own":
            return work(lambda: adapter.format(GoOn, [], given))
        return work(lambda: adapter(lm, {"cache": False}, GoOn, [], given))

    few, many, more = of(50), of(100), of(200)
    assert more - many <= 2.2 * (many - few)


def test_work_grows_in_line_with_tools() -> None:
    """call-cost: Work grows in line with turns and tools."""

    def of(count: int) -> int:
        def declare_and_ask() -> None:
            decls = ToolDecls([{"name": f"tool_{number}"} for number in range(count)])
            dspy.Predict(Ask)(question="?", tools=decls)

        with quiet(Engine()):
            return work(declare_and_ask)

    few, many, more = of(50), of(100), of(200)
    assert more - many <= 2.2 * (many - few)


class Meeting:
    """A script whose answers wait until as many requests as expected are there, and echo the question."""

    def __init__(self, expected: int) -> None:
        self.expected, self.here = expected, 0
        self.everybody = asyncio.Event()

    async def reply(self, received: Received) -> Answer:
        self.here += 1
        if self.here == self.expected:
            self.everybody.set()
        await asyncio.wait_for(self.everybody.wait(), timeout=600)
        question = received.body["messages"][-1]["content"].rpartition("\n")[2]
        return Answer(calls=[Call("echo", {"text": question})])

    def __call__(self, received: Received) -> Awaitable[Answer]:
        return self.reply(received)


def text_of(prediction: Any) -> str:
    return prediction.calls[0].args["text"]


def test_threads_through_one_adapter_do_not_meet() -> None:
    """call-cost: No lock is held over a model call.

    call-cost: Each answer comes back to its own question.
    """
    adapter, decls, predict = sigadapt.ChatAdapter(), ToolDecls(echo), dspy.Predict(Ask)
    with LoopbackProvider(Meeting(THREADS)) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        ready = threading.Barrier(THREADS)

        def ask(number: int) -> str:
            ready.wait(60)
            with dspy.context(lm=lm, adapter=adapter):
                return text_of(predict(question=f"question {number}", tools=decls))

        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(ask, range(THREADS))) == [f"question {n}" for n in range(THREADS)]


async def test_tasks_through_one_adapter_do_not_meet() -> None:
    """call-cost: No lock is held over a model call.

    call-cost: Each answer comes back to its own question.
    """
    adapter, decls, predict = sigadapt.ChatAdapter(), ToolDecls(echo), dspy.Predict(Ask)
    with LoopbackProvider(Meeting(TASKS)) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))

        async def ask(number: int) -> str:
            return text_of(await predict.acall(question=f"question {number}", tools=decls))

        with dspy.context(lm=lm, adapter=adapter):
            said = await asyncio.gather(*(ask(number) for number in range(TASKS)))
    assert said == [f"question {number}" for number in range(TASKS)]


def names_sent(tools: list[Any], engine: Engine) -> list[tuple[str, str, Any]]:
    with quiet(engine):
        dspy.Predict(Ask)(question="?", tools=tools)
    return [(tool.name, tool.description, tool.parameters) for tool in engine.asked[-1].tools]


def test_a_list_given_again_is_declared_as_it_is_now() -> None:
    """call-cost: What has changed is declared anew."""
    engine = Engine()

    def changing(text: str) -> str:
        """Before."""
        return text

    schema: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools: list[Any] = [changing, {"name": "other", "parameters": schema}]
    before = names_sent(tools, engine)
    changing.__doc__ = "After."
    schema["properties"]["text"]["maxLength"] = 3
    after = names_sent(tools, engine)
    assert [name for name, _, _ in before] == [name for name, _, _ in after] == ["changing", "other"]
    assert after[0][1] == "After."
    assert after[1][2]["properties"]["text"] == {"type": "string", "maxLength": 3}
    changing.__name__ = "renamed"
    assert names_sent(tools, engine)[0][0] == "renamed"


def test_a_prompt_cache_reaches_the_request() -> None:
    """request-shaping: A prompt cache that was asked for reaches the provider."""
    engine, wanted = Engine(), lm15.CacheConfig(mode="auto")
    with quiet(engine), dspy.context(lm=dspy.LM("openai/x", engine=engine, cache=False, prompt_cache=wanted)):
        dspy.Predict(Ask)(question="?", tools=[echo])
    assert engine.asked[-1].config.cache == wanted
    with quiet(engine):
        dspy.Predict(Ask)(question="?", tools=[echo], config={"prompt_cache": wanted})
        assert engine.asked[-1].config.cache == wanted
        dspy.Predict(Ask)(question="?", tools=[echo])
        assert engine.asked[-1].config.cache is None


def test_what_dspy_knows_of_a_model_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """call-cost: What does not change from call to call is compiled once."""
    lm: Any = dspy.LM("openai/gpt-4o-mini", api_key="x")
    asked: list[Any] = []
    select: Any = dspys_select_backend

    def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return select(*arguments)

    monkeypatch.setattr(routes, "select_backend", counted)
    assert [routes.route_of(lm, {}).wire for _ in range(3)] == ["openai-chat"] * 3
    assert [routes.calls_functions(lm, routes.facts_of(lm, {})) for _ in range(3)] == [True] * 3
    assert len(asked) == 1
    assert routes.route_of(lm, {"custom_llm_provider": "anthropic"}).client == "litellm"
    lm.model = "anthropic/claude-sonnet-4-6"
    assert routes.route_of(lm, {}).wire == "anthropic"
    lm.model = "openai/gpt-4o-mini"
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9")
    assert routes.route_of(lm, {}).client == "litellm"


def test_a_model_that_may_answer_as_it_likes_is_asked_each_time() -> None:
    class Changing(dspy.LM):
        known = False

        @property
        def supports_function_calling(self) -> bool:
            return self.known

    lm: Any = Changing("openai/x")
    assert routes.calls_functions(lm, routes.facts_of(lm, {})) is False
    lm.known = True
    assert routes.calls_functions(lm, routes.facts_of(lm, {})) is True


@pytest.mark.parametrize(
    ("adapter", "signature", "options", "planned"),
    [
        (sigadapt.ChatAdapter, Must, {}, [True, False]),
        (sigadapt.ChatAdapter, May, {}, [True, False]),
        (sigadapt.ChatAdapter, May, {"tool_calling": "native"}, [False, False]),
        (
            sigadapt.JSONAdapter,
            May,
            {"tool_calling": "native"},
            [True, True],
        ),  # its form depends on the model
        (sigadapt.JSONAdapter, Must, {"tool_calling": "native"}, [False, False]),
        (sigadapt.ChatAdapter, Think, {"tool_calling": "native"}, [True, True]),
    ],
)
def test_dspy_plans_capabilities_only_where_they_are_asked_for(
    adapter: Any, signature: Any, options: Any, planned: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """call-cost: What does not change from call to call is compiled once."""
    entered: list[bool] = []
    scope = cast("Any", capabilities).planning_scope

    def noted(*arguments: Any) -> Any:
        entered[-1] = True
        return scope(*arguments)

    monkeypatch.setattr(capabilities, "planning_scope", noted)
    with LoopbackProvider([Answer(calls=[Call("echo", {"text": "x"})])]) as provider:
        lm = dspy.LM(**provider.lm_options("openai", cache=False))
        with dspy.context(lm=lm, adapter=adapter(**options)):
            for _ in planned:
                entered.append(False)
                dspy.Predict(signature)(question="?", tools=[echo])
    assert entered == planned


def test_a_list_given_again_is_made_once() -> None:
    """call-cost: Tools that say the same are looked at and not read."""
    engine, tools = Engine(), [echo, *many(3)]
    with quiet(engine):
        for _ in range(3):
            dspy.Predict(Ask)(question="?", tools=list(tools))
    first, second, third = (request.tools for request in engine.asked)
    assert [tool.name for tool in first] == [tool.__name__ for tool in tools]
    assert all(one is other is another for one, other, another in zip(first, second, third, strict=True))


def many(count: int) -> list[Any]:
    def tool(number: int) -> Any:
        def made(text: str, times: int = 1) -> str:
            """Say it often."""
            return text * times

        made.__name__ = f"echo_{number}"
        return made

    return [tool(number) for number in range(count)]


def test_tools_that_were_dropped_are_forgotten() -> None:
    """call-cost: Caches are bounded and weak."""
    engine, tools = Engine(), many(20)
    known = [weakref.ref(tool) for tool in tools]
    with quiet(engine):
        for number in range(19):  # each is the first of a list that the next one follows
            dspy.Predict(Ask)(question="?", tools=tools[number : number + 2])
    collect()
    before = len(tool_decl._DECLARED)  # pyright: ignore[reportPrivateUsage]
    engine.asked.clear()
    del tools
    collect()
    assert [reference for reference in known if reference() is not None] == []
    assert before - len(tool_decl._DECLARED) == 20  # pyright: ignore[reportPrivateUsage]


def test_settings_that_were_sent_are_sent_again_as_they_are() -> None:
    """request-shaping: Generation settings reach the provider."""
    engine = Engine()
    with quiet(engine):
        for temperature in (1, 1.0, 0.5, 1):
            dspy.Predict(Ask)(question="?", tools=[echo], config={"temperature": temperature, "top_p": 0.5})
    sent = [request.config.temperature for request in engine.asked]
    assert sent == [1, 1.0, 0.5, 1]
