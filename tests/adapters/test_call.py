"""One call with tool fields, end to end: the real dspy.LM over loopback HTTP, on both engines, sync and
async."""

import asyncio
import json
import logging
import warnings
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from asking import ask as asked
from dspy.experimental import Citations
from dspy.utils.callback import BaseCallback
from sending import ROUTES
from support import ADAPTERS, ENGINES, PARIS, ROME, Ask, May, Must, lm_of

import sigadapt
from sigadapt import ToolCallParseError, ToolCalls, ToolDecls
from sigadapt.errors import InvalidOption, InvalidToolDecl, MissingToolCalls, UnusableAnswer
from sigadapt.testing import Answer, Call, LoopbackProvider


class Theirs(dspy.Signature):
    """Answer with DSPy's own tool types."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


ran: list[str] = []


def get_weather(city: str, days: int = 3) -> str:
    """Weather for a city."""
    ran.append(city)
    return "sunny"


@pytest.fixture(autouse=True)
def _nothing_is_executed() -> Any:
    """tool-call-outputs: Nothing in an answer is executed."""
    ran.clear()
    yield
    assert ran == []


def ask(
    provider: LoopbackProvider,
    signature: Any = Must,
    *,
    adapter: Any = None,
    engine: str = "auto",
    wire: str = "openai",
    config: dict[str, Any] | None = None,
    tools: Any = (get_weather,),
    **lm_options: Any,
) -> Any:
    lm = lm_of(provider, wire, engine, **lm_options)
    with dspy.context(lm=lm, adapter=adapter or sigadapt.ChatAdapter()):
        return dspy.Predict(signature)(question="weather?", tools=list(tools), config=config or {})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_calls_come_back_typed(adapter: Callable[[], Any], engine: str) -> None:
    """adapter-plug-in: All adapters give the same calls.

    request-shaping: Declared tools are sent exactly as written.
    request-shaping: Both engines send the same tools.
    tool-call-outputs: Text beside calls is kept.
    tool-call-outputs: Outputs that the text does not hold are None on a turn with calls.
    """
    with LoopbackProvider([Answer(text="Let me look.", calls=[PARIS, ROME])]) as provider:
        out = ask(provider, May, adapter=adapter(), engine=engine)
    assert [(call.name, call.args, call.index) for call in out.calls] == [
        ("get_weather", {"city": "Paris"}, 0),
        ("get_weather", {"city": "Rome"}, 1),
    ]
    assert out.calls.text == "Let me look."
    assert out.answer is None
    (sent,) = provider.received
    function = sent.body["tools"][0]["function"]
    assert function["name"] == "get_weather"
    assert function["parameters"] == ToolDecls(get_weather)["get_weather"].parameters


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_calls_are_the_same_on_every_route(wire: str, engine: str, is_streamed: bool) -> None:
    """adapter-plug-in: Every wire and engine gives the same calls."""
    answer = Answer(calls=[Call("get_weather", {"city": "Zürich", "days": 2})])
    [call] = asked(wire, answer, engine, is_streamed=is_streamed).calls
    assert (call.name, call.arguments, bool(call.id)) == ("get_weather", '{"city":"Zürich","days":2}', True)


async def test_async_is_the_same() -> None:
    """adapter-plug-in: Sync and async give the same outputs."""
    with LoopbackProvider([Answer(text="Let me look.", calls=[PARIS])]) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            awaited = await dspy.Predict(May).acall(question="weather?", tools=[get_weather])
            direct = await asyncio.to_thread(dspy.Predict(May), question="weather?", tools=[get_weather])
    assert awaited.calls == direct.calls
    assert provider.received[0].body == provider.received[1].body


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_prompt_says_only_what_is_true(adapter: Callable[[], Any]) -> None:
    """request-shaping: Tool fields are not in the prompt.

    request-shaping: Without text outputs no text format is asked for.
    """
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        ask(provider, Must, adapter=adapter())
    system, user = (message["content"] for message in provider.received[0].body["messages"])
    for text in (system, user):
        assert "tools" not in text.replace("Answer with the tools.", "")
        assert "calls" not in text
        assert "output field" not in text.lower()
        assert "get_weather" not in text
    assert "Answer with the tools." in system
    assert "question" in user
    assert "weather?" in user


@pytest.mark.parametrize(
    ("adapter", "text"),
    [
        (sigadapt.ChatAdapter, "[[ ## answer ## ]]\nSunny.\n\n[[ ## completed ## ]]"),
        (sigadapt.JSONAdapter, '{"answer": "Sunny."}'),
        (sigadapt.adapters.XMLAdapter, "<answer>Sunny.</answer>"),
        *((adapter, "Sunny.") for adapter in ADAPTERS),
    ],
)
def test_a_text_answer_fills_the_text_output(adapter: Callable[[], Any], text: str) -> None:
    """
    tool-call-outputs: Marked text fills its fields
    tool-call-outputs: Unmarked text fills the single text output
    tool-call-outputs: An answer without calls is an empty ToolCalls in every signature
    """
    with LoopbackProvider([Answer(text=text)]) as provider:
        out = ask(provider, May, adapter=adapter())
    assert (out.answer, out.calls, out.calls.text, len(provider.received)) == ("Sunny.", ToolCalls(), text, 1)
    assert (bool(out.calls), list(out.calls), str(out.calls)) == (False, [], "no calls")


class Days(dspy.Signature):
    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str = dspy.OutputField()
    days: list[int] = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("calls", [[], [PARIS]], ids=["alone", "beside calls"])
@pytest.mark.parametrize(
    "text", [' {"days": [1, 2], "answer": "Sunny."}\n', "{'answer': 'Sunny.', 'days': [1, 2]}"]
)
def test_json_of_the_output_fields_fills_them(adapter: Callable[[], Any], calls: Any, text: str) -> None:
    """tool-call-outputs: A JSON object of exactly the output fields is read."""
    with LoopbackProvider([Answer(text=text, calls=calls)]) as provider:
        out = ask(provider, Days, adapter=adapter())
        assert len(provider.received) == 1
    assert (out.answer, out.days, len(out.calls)) == ("Sunny.", [1, 2], len(calls))


@pytest.mark.parametrize(
    "text",
    [
        "{'answer': 'x', 'answer': 'y'}",
        "{'more': 1}",
        "{'answer': f(x)}",
        '{"answer": "x", "more": 1}',
        '{"more": 1}',
        '{"answer": "x"} Bye.',
        '{"answer": "x',
    ],
)
def test_other_json_is_the_answer(text: str) -> None:
    """tool-call-outputs: A JSON object of exactly the output fields is read."""
    with LoopbackProvider([Answer(text=text)]) as provider:
        out = ask(provider, May, adapter=sigadapt.ChatAdapter())
    assert out.answer == text


def test_plain_text_with_nowhere_to_go_is_an_error() -> None:
    """tool-call-outputs: Unmarked text for several outputs is an error."""
    with (
        LoopbackProvider([Answer(text="It is sunny.")]) as provider,
        pytest.raises(dspy.utils.exceptions.AdapterParseError) as caught,
    ):
        ask(provider, Days, adapter=sigadapt.ChatAdapter(use_json_adapter_fallback=False))
    assert "It is sunny." in str(caught.value)


def test_words_without_calls_go_back() -> None:
    """
    tool-call-outputs: Text with no output for it stays on the calls
    tool-call-outputs: Words of an answer without calls go back
    """

    class Asked(Ask):
        history: dspy.History = dspy.InputField()

    empty = dspy.History(messages=[])
    with (
        LoopbackProvider(lambda _: Answer(text="It is sunny.")) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
    ):
        program = dspy.Predict(Asked)
        out: Any = program(question="weather?", history=empty, tools=[get_weather])
        assert (list(out.calls), out.calls.text, str(out.calls)) == ([], "It is sunny.", "no calls")
        for calls in (out.calls, json.loads(out.calls.model_dump_json())):
            history = dspy.History(messages=[{"question": "weather?", "calls": calls}])
            program(question="more?", history=history, tools=[get_weather])
            said = [m["content"] for m in provider.received[-1].body["messages"] if m["role"] == "assistant"]
            assert said == ["It is sunny."]


def test_a_required_call_that_is_missing_is_an_error_with_the_text() -> None:
    """tool-call-outputs: A required calls field without a call raises."""
    with (
        LoopbackProvider([Answer(text="It is sunny.")]) as provider,
        pytest.raises(MissingToolCalls) as caught,
    ):
        ask(provider)
    assert caught.value.field == "calls"
    assert caught.value.code == "missing_tool_calls"
    assert caught.value.choice.text == "It is sunny."
    assert len(provider.received) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bad_call_raises_with_the_whole_choice(engine: str) -> None:
    """tool-call-outputs: A bad call raises with the whole choice.

    tool-call-outputs: A bad call asks no other adapter.
    """
    calls = [PARIS, Call("get_weather", '{"city":'), Call("get_weather", {"city": 42}), Call("rm_rf", {})]
    with (
        LoopbackProvider([Answer(text="Hm.", calls=calls)]) as provider,
        pytest.raises(ToolCallParseError) as caught,
    ):
        ask(provider, engine=engine)
    choice = caught.value.choice
    assert isinstance(caught.value, dspy.utils.exceptions.AdapterParseError)
    assert choice.text == "Hm."
    assert choice.tool_calls is not None
    assert [call.args for call in choice.tool_calls] == [{"city": "Paris"}]
    assert [call.code for call in choice.tool_calls.invalid] == [
        "invalid_json",
        "schema_mismatch",
        "unknown_tool",
    ]
    assert len(provider.received) == 1, "a bad call must not cost a second request"


@pytest.mark.parametrize("engine", ENGINES)
def test_keep_returns_bad_calls_beside_the_good(engine: str) -> None:
    """tool-call-outputs: Kept bad calls come out beside the good ones."""
    calls = [Call("get_weather", "not json"), PARIS]
    with LoopbackProvider([Answer(calls=calls)]) as provider:
        out = ask(provider, adapter=sigadapt.ChatAdapter(on_invalid="keep"), engine=engine)
    assert [call.index for call in out.calls] == [1]
    assert [(call.index, call.arguments) for call in out.calls.invalid] == [(0, "not json")]


def test_dspys_own_field_types_work() -> None:
    """request-shaping: DSPy's own tool fields are taken.

    tool-call-outputs: A dspy.ToolCalls field stays lenient.
    """
    with LoopbackProvider([Answer(calls=[PARIS]), Answer(text="No tool.")]) as provider:
        tools = [dspy.Tool(get_weather)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            out = ask(provider, Theirs, tools=tools)
            silent = ask(provider, Theirs, tools=tools)
    assert out.tool_calls.tool_calls[0].args == {"city": "Paris"}
    assert isinstance(out.tool_calls, dspy.ToolCalls)
    assert not silent.tool_calls


@pytest.mark.parametrize(
    "tools",
    [
        ToolDecls(get_weather),
        [get_weather],
        get_weather,
        dspy.Tool(get_weather),
        ToolDecls(get_weather).to_openai(),
    ],
    ids=["ToolDecls", "list", "callable", "dspy.Tool", "dicts"],
)
def test_no_documented_form_of_tools_warns(tools: Any, caplog: pytest.LogCaptureFixture) -> None:
    """request-shaping: A tools field takes a collection, a list or one source.

    request-shaping: No documented form of input makes DSPy warn.
    """
    with (
        LoopbackProvider([Answer(calls=[PARIS])]) as provider,
        caplog.at_level(logging.WARNING),
        dspy.context(lm=dspy.LM(**provider.lm_options("openai")), adapter=sigadapt.ChatAdapter()),
    ):
        out = dspy.Predict(Must)(question="weather?", tools=tools)
    assert out.calls[0].name == "get_weather"
    assert caplog.records == []


@pytest.mark.parametrize("cache", [True, False])
def test_n_gives_n_candidates(cache: bool) -> None:
    """request-shaping: n candidates are n answers.

    request-shaping: Cached candidates stay distinct.
    """
    cities = iter(f"City {n}" for n in range(1000))
    with LoopbackProvider(lambda _: Answer(calls=[Call("get_weather", {"city": next(cities)})])) as provider:
        out = ask(provider, config={"n": 3, "temperature": 1.0}, cache=cache, model="openai/gpt-4o-mini")
    assert [calls[0].args["city"] for calls in out.completions.calls] == ["City 0", "City 1", "City 2"]
    assert len(provider.received) == 3


def test_the_cache_answers_the_second_time() -> None:
    """adapter-plug-in: A cached answer gives the same calls."""
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        first = ask(provider, cache=True, temperature=0.123)
        second = ask(provider, cache=True, temperature=0.123)
    assert first.calls == second.calls
    assert len(provider.received) == 1


def test_a_setting_with_no_place_is_refused_by_name() -> None:
    """request-shaping: A setting that cannot be sent is refused."""
    with (
        LoopbackProvider([Answer(calls=[PARIS])]) as provider,
        pytest.raises(InvalidOption, match="no_such_setting"),
    ):
        ask(provider, engine="lm15", config={"no_such_setting": 1})
    assert provider.received == ()


@pytest.mark.parametrize(
    "choice",
    [
        *("get_wether", ["get_weather", "nope"], {"type": "tool"}),
        *(3, True, "", [], (), [3], [["get_weather"]], {"get_weather"}, b"auto"),
    ],
    ids=repr,
)
def test_a_tool_choice_of_no_declared_tool_is_refused(choice: Any) -> None:
    """request-shaping: A tool choice that cannot hold is refused."""
    given: list[Any] = [
        {"config": {"tool_choice": choice}},
        {"adapter": sigadapt.ChatAdapter(tool_choice=choice)},
    ]
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        for options in given:
            with pytest.raises(InvalidOption) as caught:
                ask(provider, **options)
            assert caught.value.field == "tool_choice"
    assert provider.received == ()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "tools",
    [
        [get_weather, get_weather],
        [{"name": "x", "parameters": {"type": "dict"}}],
        [{"parameters": {}}],
        [{"name": "x", "parameters": {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}}],
        [],
    ],
)
def test_a_bad_declaration_leaves_no_request(engine: str, tools: Any) -> None:
    """request-shaping: A bad declaration stops the call before any request.

    request-shaping: A required call without tools is refused.
    """
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider, pytest.raises(InvalidToolDecl):
        ask(provider, tools=tools, engine=engine)
    assert provider.received == ()


def test_history_and_usage_are_recorded() -> None:
    """adapter-plug-in: History and usage are recorded."""
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(), track_usage=True):
            out = dspy.Predict(Must)(question="weather?", tools=[get_weather], config={"api_key": "other"})
    history = cast("list[Any]", lm.history)
    assert len(history) == 1
    entry = history[0]
    assert [message["role"] for message in entry["messages"]] == ["system", "user"]
    assert entry["outputs"][0]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert cast("Any", out).get_lm_usage()[lm.model]["total_tokens"] > 0
    assert provider.received[0].headers["authorization"] == "Bearer other"


def test_parallel_calls_do_not_mix() -> None:
    """adapter-plug-in: Parallel calls and contexts stay apart."""

    def weather_of_the_question(received: Any) -> Answer:
        question = received.body["messages"][-1]["content"].split()[-1]
        return Answer(calls=[Call("get_weather", {"city": question})])

    with LoopbackProvider(weather_of_the_question) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            predict = dspy.Predict(Must)
            cities = [f"City{n}" for n in range(20)]
            pairs: Any = [(predict, {"question": city, "tools": [get_weather]}) for city in cities]
            outs: Any = dspy.Parallel(num_threads=8, disable_progress_bar=True)(pairs)
    assert [out.calls[0].args["city"] for out in outs] == cities


def test_reasoning_fields_are_filled_natively() -> None:
    """adapter-plug-in: DSPy's native types work beside tools."""

    class Think(Must):
        thought: dspy.Reasoning = dspy.OutputField()

    with LoopbackProvider([Answer(reasoning="Weather is needed.", calls=[PARIS])]) as provider:
        lm = dspy.LM(**provider.lm_options("anthropic", max_tokens=4000))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            out = dspy.Predict(Think)(question="weather?", tools=[get_weather])
    assert out.thought.content == "Weather is needed."
    assert out.calls.reasoning == "Weather is needed."
    assert "thinking" in provider.received[0].body


def test_checking_can_be_turned_off() -> None:
    """tool-call-outputs: Checking can be turned off."""
    with LoopbackProvider([Answer(calls=[Call("get_weather", {"city": 42}), Call("rm_rf", {})])]) as provider:
        out = ask(provider, adapter=sigadapt.ChatAdapter(validate_args=False))
    assert [call.name for call in out.calls] == ["get_weather", "rm_rf"]


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_an_answer_in_text_that_does_not_parse_falls_back_as_dspys_does(mode: str) -> None:
    """adapter-plug-in: An answer in text falls back as DSPy's does."""

    class Count(Ask):
        number: int = dspy.OutputField()

    with LoopbackProvider([Answer(text="There are three."), Answer(text='{"number": 3}')]) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            predict, inputs = dspy.Predict(Count), {"question": "how many?", "tools": [get_weather]}
            out = await predict.acall(**inputs) if mode == "async" else predict(**inputs)
    assert out.number == 3
    assert [bool(sent.body.get("tools")) for sent in provider.received] == [True, True]


def test_without_text_outputs_nothing_falls_back() -> None:
    """adapter-plug-in: Without text outputs nothing falls back."""
    with LoopbackProvider([Answer(text="")]) as provider:
        with pytest.raises(UnusableAnswer, match="neither text nor a tool call"):
            ask(provider, Ask)
        assert len(provider.received) == 1


def test_an_adapter_is_dspys_adapter_of_the_same_name() -> None:
    """adapter-plug-in: An adapter is DSPy's adapter of the same name."""
    for adapter in ADAPTERS:
        theirs = getattr(dspy, adapter.__name__)
        assert isinstance(adapter(), theirs)
        assert isinstance(adapter(), dspy.ChatAdapter)


def test_dspys_own_parameters_are_taken() -> None:
    """adapter-plug-in: DSPy's own parameters are taken."""
    recorder = BaseCallback()
    adapter = sigadapt.ChatAdapter([recorder], True, [dspy.Reasoning], False, True)
    assert adapter.callbacks == [recorder]
    assert adapter.native_response_types == [dspy.Reasoning]
    assert (adapter.use_native_function_calling, adapter.use_json_adapter_fallback) == (True, False)
    assert (adapter.parallel_tool_calls, adapter.options.parallel_tool_calls) == (True, True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("closed_streams")
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_an_empty_answer_is_paid_once(engine: str, is_streamed: bool) -> None:
    """adapter-plug-in: An empty answer is paid once."""
    error = asked("openai", Answer(text=""), engine, is_streamed=is_streamed, is_async=True)
    assert isinstance(error, UnusableAnswer)
    assert (error.code, error.choice.finish_reason) == ("empty", "stop")


def test_citations_of_a_web_search_do_not_cost_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    """adapter-plug-in: A native type that does not fit what came is None."""

    class Cited(May):
        sources: Citations = dspy.OutputField()  # pyright: ignore[reportGeneralTypeIssues]

    cited = {"type": "web_search_result_location", "url": "https://a.example", "cited_text": "Sunny."}
    text = {"type": "text", "text": "[[ ## answer ## ]]\nSunny.", "citations": [cited]}
    body = {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [text]}
    with LoopbackProvider([{**body, "id": "m", "model": "m", "usage": {}}]) as provider:
        lm = dspy.LM(**provider.lm_options("anthropic"))
        adapter = sigadapt.ChatAdapter(native_response_types=[Citations])
        with dspy.context(lm=lm, adapter=adapter), caplog.at_level("INFO", "sigadapt"):
            out = dspy.Predict(Cited)(question="weather?", tools=[get_weather])
    assert (out.answer, out.sources, len(provider.received)) == ("Sunny.", None, 1)
    assert "sources stays None" in caplog.text
