"""A whole run as one stream: the real dspy.LM over loopback HTTP, sync and async programs."""

import asyncio
import json
import threading
import time
from typing import Any

import dspy
import pytest
from agents import of, serving, text_of, watch
from dspy.utils.callback import BaseCallback
from support import ADAPTERS, WIRES, May, Talk, lm_of

import sigadapt
from sigadapt import InvalidToolCall, ToolCallParseError, ToolDecl
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call, Failure

pytestmark = pytest.mark.usefixtures("closed_streams")

SAID = "It is sunny today in Paris, and it was yesterday."
ANSWER: Any = "question -> answer"
DONE = Answer(calls=[Call("submit", {"answer": "done"})])


def find(city: str) -> str:
    """Find a city."""
    if city == "Atlantis":
        raise LookupError("There is no such city.")
    return f"{city} lies in Europe."


async def find_later(city: str) -> str:
    """Find a city."""
    return find(city)


SYNC, ASYNC = dspy.Tool(find), dspy.Tool(find_later, name="find")


def play(script: Any, wire: str = "openai", cache: bool = False) -> Any:
    return serving(script, wire, cache=cache)


def kinds(events: list[Any]) -> list[str]:
    return [type(each).__name__ for each in events]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_text(wire: str, adapter: Any) -> None:
    """watching-runs: The pieces of a text are its output."""
    texts = {
        sigadapt.ChatAdapter: f"[[ ## answer ## ]]\n{SAID}\n\n[[ ## completed ## ]]",
        sigadapt.JSONAdapter: json.dumps({"answer": SAID}),
        sigadapt.adapters.XMLAdapter: f"<answer>\n{SAID}\n</answer>",
    }
    for program, inputs in ((dspy.Predict(May), {"tools": [find]}), (dspy.Predict(ANSWER), {})):
        with play([Answer(text=texts[adapter])], wire), dspy.context(adapter=adapter()):
            events = watch(program, question="?", **inputs)
        assert text_of(events) == SAID == events[-1].prediction.answer
        assert len(of(sigadapt.events.TextDelta, events)) > 2
        assert of(sigadapt.events.Used, events)[0].usage["total_tokens"] == 15


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("tool", [SYNC, ASYNC])
def test_agents(wire: str, tool: dspy.Tool) -> None:
    """watching-runs: An agent's calls come before their results, and these before the next step."""
    calls = [Call("find", {"city": "Rome"}), Call("find", {"city": "Atlantis"})]
    with play([Answer(calls=calls), DONE], wire):
        events = watch(dspy.ReActV2(ANSWER, tools=[tool]), question="?")
    told: list[Any] = [each for each in events if kinds([each])[0] in {"CallReady", "ResultReady"}]
    told_in_step = [(type(each).__name__, each.step) for each in told]
    assert told_in_step == [("CallReady", 1)] * 2 + [("ResultReady", 1)] * 2
    rome, atlantis = (each.result for each in of(sigadapt.events.ResultReady, events))
    assert (rome.value, rome.is_error, rome.call_id) == ("Rome lies in Europe.", False, told[0].call.id)
    assert (atlantis.value, atlantis.is_error) == ("LookupError: There is no such city.", True)
    assert events[-1].prediction.answer == text_of(events) == "done"


def test_bad_calls() -> None:
    """watching-runs: A bad call has its code and its result."""
    bad = [Call("find", {"city": 3}), Call("nowhere", {}), Call("find", {"city": "Rome"})]
    with play([Answer(calls=bad), DONE]):
        events = watch(dspy.ReActV2(ANSWER, tools=[find]), question="?")
    calls = [each.call for each in of(sigadapt.events.CallReady, events)][:3]
    assert [getattr(call, "code", None) for call in calls] == ["schema_mismatch", "unknown_tool", None]
    results = {each.call_id: each.result for each in of(sigadapt.events.ResultReady, events)}
    assert all(
        results[call.id].value.startswith(call.code) for call in calls if isinstance(call, InvalidToolCall)
    )


def test_the_cache() -> None:
    """watching-runs: An answer from the cache has the same events in larger pieces."""
    question = f"cached at {time.time_ns()}"
    answer = Answer(text=SAID, reasoning="Hm.", calls=[Call("find", {"city": "Rome"})])
    with play([answer], "anthropic", cache=True) as net:
        first, second = (watch(dspy.Predict(May), question=question, tools=[find]) for _ in range(2))
        assert len(net.received) == 1
    assert text_of(first) == text_of(second) == SAID
    assert kinds(second) == ["ReasoningDelta", "TextDelta", "CallReady", "Ended"]


def test_reasks() -> None:
    """watching-runs: A reask counts on."""
    script = [Answer(calls=[Call("find", {"city": city})]) for city in (3, "Rome")]
    with serving(script, on_invalid="reask"):
        events = watch(dspy.Predict(May), question="?", tools=[find])
    assert {each.step for each in events} == {1}
    assert {each.index for each in of(sigadapt.events.CallDelta, events)} == {0, 1}
    assert [each.call.index for each in of(sigadapt.events.CallReady, events)] == [0, 1]


def test_candidates() -> None:
    """watching-runs: Only the first candidate is told."""
    texts = [Answer(text=f"[[ ## answer ## ]]\n{text}") for text in ("One.", "Two.")]
    for program, inputs in ((dspy.Predict(May, n=2), {"tools": [find]}), (dspy.Predict(ANSWER, n=2), {})):
        with play(texts):
            events = watch(program, question="?", **inputs)
        assert text_of(events) == "One." == events[-1].prediction.answer


def research(question: str) -> str:
    """Research a question."""
    out: Any = dspy.Predict(ANSWER)(question="INNER")
    return out.answer


class Loop(dspy.Module):
    """A loop by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.turn: Any = dspy.Predict(Talk)

    def forward(self, question: str) -> Any:
        calls: Any = self.turn(question=question, tools=[research]).calls
        return self.turn(tools=[research], results=calls.run([research]))


def inner(received: Any) -> Answer:
    messages = received.body["messages"]
    if "INNER" in json.dumps(messages[-1]):
        return Answer(text="[[ ## answer ## ]]\nEurope.")
    if any(row["role"] == "tool" for row in messages):
        return Answer(text="All done.")
    return Answer(calls=[Call("research", {"question": "Where?"})])


def test_loops_by_hand() -> None:
    """watching-runs: The results of a loop by hand are told."""
    with play(inner):
        events = watch(Loop(), question="?")
    [ready], [result] = of(sigadapt.events.CallReady, events), of(sigadapt.events.ResultReady, events)
    assert (result.call_id, result.result.value) == (ready.call.id, "Europe.")
    within = [each for each in events if each.within is not None]
    assert text_of(within) == "Europe."
    assert {each.within for each in within} == {ready.call.id}
    assert text_of([each for each in events if each.within is None]) == "All done."


@pytest.mark.dspy_3_4
def test_react() -> None:
    """watching-runs: A tool without a typed call has one."""
    thought = (
        "[[ ## next_thought ## ]]\nHm.\n\n[[ ## next_tool_name ## ]]\n{}\n\n[[ ## next_tool_args ## ]]\n{}"
    )
    script = [thought.format("find", '{"city": "Rome"}'), thought.format("finish", "{}")]
    last = "[[ ## reasoning ## ]]\nSo.\n\n[[ ## answer ## ]]\nEurope."
    with play([Answer(text=text) for text in (*script, last)]):
        events = watch(dspy.ReAct(ANSWER, tools=[find]), question="?")
    ready, result = of(sigadapt.events.CallReady, events)[0], of(sigadapt.events.ResultReady, events)[0]
    assert (ready.call.name, dict(ready.call.args)) == ("find", {"city": "Rome"})
    assert (result.call_id, result.result.value) == (ready.call.id, "Rome lies in Europe.")
    assert {each.field for each in of(sigadapt.events.TextDelta, events)} == {
        "next_thought",
        "reasoning",
        "answer",
    }


@pytest.mark.parametrize("others", [[], [ASYNC]])
def test_agents_in_agents(others: list[Any]) -> None:
    """watching-runs: A program inside a tool has steps of its own."""

    def script(received: Any) -> Answer:
        text = json.dumps(received.body["messages"])
        is_answered = '"role": "tool"' in text
        if "OUTER" in text:
            return DONE if is_answered else Answer(calls=[Call("ask", {"question": "INNER"})])
        return DONE if is_answered else Answer(calls=[Call("find", {"city": "Rome"})])

    agent = dspy.ReActV2(ANSWER, tools=[SYNC])
    decl: Any = ToolDecl.of(agent, name="ask", description="Ask.")
    with play(script):
        events = watch(dspy.ReActV2(ANSWER, tools=[decl, *others]), question="OUTER")
    ask = next(each.call for each in of(sigadapt.events.CallReady, events) if each.call.name == "ask")
    inside = [each for each in events if each.within == ask.id]
    assert {each.step for each in inside} == {2, 3}
    assert [each.call.name for each in of(sigadapt.events.CallReady, inside)] == ["find"]
    assert text_of(inside) == "done"
    assert text_of([each for each in events if each.within is None]) == "done"
    assert {each.within for each in events} == {None, ask.id}
    assert events[-1].step == 4


class Several(dspy.Module):
    """One predictor, several times at once."""

    def __init__(self) -> None:
        super().__init__()
        self.say = dspy.Predict(ANSWER)

    def forward(self, **inputs: Any) -> Any:
        rows = [dspy.Example(question=f"number {n}").with_inputs("question") for n in range(3)]
        run = dspy.Parallel(num_threads=3, disable_progress_bar=True)
        return run([(self.say, row) for row in rows])


class SeveralLater(Several):
    async def aforward(self, **inputs: Any) -> Any:
        return await asyncio.gather(*(self.say.acall(question=f"number {n}") for n in range(3)))


def numbers(received: Any) -> Answer:
    [number] = [n for n in range(3) if f"number {n}" in json.dumps(received.body)]
    return Answer(text=f"[[ ## answer ## ]]\n{f'This is number {number}. ' * 5}", chunk=7)


@pytest.mark.parametrize("program", [Several(), SeveralLater()])
def test_side_by_side(program: dspy.Module) -> None:
    """watching-runs: Predictors that run side by side do not mix."""
    with play(numbers):
        events = watch(program, question="?")
    texts = {text_of([each for each in events if each.step == step]) for step in (1, 2, 3)}
    assert texts == {f"This is number {n}. " * 4 + f"This is number {n}." for n in range(3)}


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_sync_stream_has_one_thread(engine: str) -> None:
    """watching-runs: A sync stream has one thread."""
    threads: list[str] = []

    def find_with_program(city: str) -> str:
        """Find a city."""
        threads.append(threading.current_thread().name)
        threads.extend(thread.name for thread in threading.enumerate() if "AnyIO" in thread.name)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        prediction: Any = dspy.Predict(ANSWER)(question="Where is it?")
        return prediction.answer

    script = [
        Answer(text="Let me look.", calls=[Call("find_with_program", {"city": "Rome"})]),
        Answer(text=f"[[ ## answer ## ]]\n{SAID}", chunk=5),
        DONE,
    ]
    with play(script) as net, dspy.context(lm=lm_of(net, "openai", cache=False, engine=engine)):
        agent = dspy.ReActV2(ANSWER, tools=[find_with_program])
        events: list[Any] = [*sigadapt.stream_sync(agent, question="Where is Rome?")]
    assert threads == [f"stream of {type(agent).__name__}"]
    pieces = [event.text for event in events if type(event).__name__ == "TextDelta" and event.within]
    assert "".join(pieces) == SAID
    assert len(pieces) > 3


def test_two_streams() -> None:
    """watching-runs: Two streams at once do not mix."""

    async def both() -> Any:
        program = dspy.Predict(ANSWER)
        return await asyncio.gather(
            *(asyncio.to_thread(watch, program, question=f"number {n}") for n in (0, 1))
        )

    with play(numbers):
        for number, events in enumerate(asyncio.run(both())):
            assert text_of(events) == events[-1].prediction.answer
            assert f"number {number}" in text_of(events)


def test_errors() -> None:
    """watching-runs: The end of a run is Ended or Failed."""
    with play([Failure(401, "no such key")]):
        events = watch(dspy.Predict(May), question="?", tools=[find])
    assert kinds(events) == ["Failed"]
    assert "no such key" in str(events[0].error)
    with play([DONE]) as net:
        assert kinds(watch(dspy.Predict(May), question="?")) == ["Failed"]
        assert not net.received
    with play([Answer(calls=[Call("find", {"city": 3})])]):
        events = watch(dspy.Predict(May), question="?", tools=[find])
    assert kinds(events)[-3:] == ["CallReady", "Used", "Failed"]
    assert isinstance(events[-1].error, ToolCallParseError)
    with play([Answer(text="[[ ## answer ## ]]\nHi.")]):
        assert kinds(list(sigadapt.stream_sync(dspy.Predict(ANSWER), question="?")))[-1] == "Ended"


def test_refusals() -> None:
    """watching-runs: A stream that cannot be is refused before a request."""
    program: Any = dspy.Predict(ANSWER)

    async def in_a_loop() -> None:
        sigadapt.stream_sync(program, question="?")

    with play([DONE]) as net:
        with pytest.raises(InvalidOption, match=r"sigadapt\.stream\("):
            asyncio.run(in_a_loop())
        with pytest.raises(InvalidOption, match="not a function"):
            sigadapt.stream(find, city="Rome")  # pyright: ignore[reportArgumentType]
        for adapter in (dspy.ChatAdapter(), None):
            with dspy.context(adapter=adapter), pytest.raises(InvalidOption, match="adapter of sigadapt"):
                sigadapt.stream(program, question="?")
        assert not net.received


def no_thread_is_left(before: set[threading.Thread]) -> bool:
    for _ in range(50):
        names = {each.name for each in threading.enumerate() if each not in before}
        if not {name for name in names if "AnyIO" in name or "stream of" in name}:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("tool", [SYNC, ASYNC])
@pytest.mark.parametrize("how", ["aclose", "cancel", "forget"])
def test_leaving(tool: dspy.Tool, how: str) -> None:
    """watching-runs: Leaving early ends the program."""
    ran: list[str] = []

    def note(city: str) -> str:
        """Note a city."""
        ran.append(city)
        return city

    async def note_later(city: str) -> str:
        """Note a city."""
        return note(city)

    noting = dspy.Tool(note if tool is SYNC else note_later, name="find")

    async def until(events: Any) -> None:
        async for event in events:
            if isinstance(event, sigadapt.events.CallReady):
                if how == "cancel":
                    await asyncio.sleep(30)
                return

    async def leave() -> tuple[int, int]:
        events: Any = sigadapt.stream(dspy.ReActV2(ANSWER, tools=[noting]), question="?")
        if how == "cancel":
            task = asyncio.create_task(until(events))
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await until(events)
        if how == "forget":
            del events
            await asyncio.sleep(0.1)
        else:
            await events.aclose()
        before = len(ran), len(net.received)
        await asyncio.sleep(0.5)
        assert (len(ran), len(net.received)) == before
        return before

    def script(received: Any) -> Answer:
        time.sleep(0.05)
        return Answer(calls=[Call("find", {"city": f"{n}"}) for n in range(4)])

    threads = set(threading.enumerate())
    with play(script) as net:
        asyncio.run(asyncio.wait_for(leave(), 20))
    assert no_thread_is_left(threads)


@pytest.mark.parametrize("program", [dspy.Predict(ANSWER), Loop()])
def test_settings(program: dspy.Module) -> None:
    """watching-runs: The caller's settings stay the caller's."""
    heard: list[str] = []

    class Hears(BaseCallback):
        def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            heard.append(type(instance).__name__)

    async def settings() -> list[Any]:
        seen: list[Any] = []
        async for _ in sigadapt.stream(program, question="?"):
            seen += [dspy.settings.send_stream, dspy.settings.callbacks == [callback]]
        return seen

    callback = Hears()
    script = inner if isinstance(program, Loop) else [Answer(text="[[ ## answer ## ]]\nHi.")]
    with play(script), dspy.context(callbacks=[callback]):
        assert set(asyncio.run(settings())) == {None, True}
    assert heard[0] == type(program).__name__


@pytest.mark.parametrize("wire", WIRES)
def test_a_leaked_token_is_in_no_event(wire: str) -> None:
    """asked-for-leniency: A leaked token is cut from a name."""
    script = [Answer(calls=[Call("find<|channel|>commentary", {"city": "Rome"})]), DONE]
    with serving(script, wire, repair=True) as net:
        events = watch(dspy.ReActV2(ANSWER, tools=[ASYNC]), question="?")
    names = {each.name for each in of(sigadapt.events.CallDelta, events)}
    assert names <= {"find"}
    first, *_ = of(sigadapt.events.CallReady, events)
    assert first.call.altered == ("repaired",)
    assert "<|channel|>" not in json.dumps(net.received[1].body)


def sleeps() -> str:
    """Sleep."""
    time.sleep(0.3)
    return "paid"


async def sleeps_later() -> str:
    """Sleep."""
    await asyncio.sleep(0.3)
    return "paid"


class Impatient(dspy.Module):
    """A loop that does not wait for its tools, but for what they do later."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict(Talk)

    def forward(self, question: str) -> Any:
        ask: Any = self.ask
        tools = [sleeps, sleeps_later]
        out = ask(question=question, tools=tools)
        results = out.calls.run(tools, timeout=0.05)
        time.sleep(0.4)
        return ask(question=question, tools=tools, results=results)


def test_two_calls_alike() -> None:
    """watching-runs: Each of two calls alike has its own result."""
    second_ran = threading.Event()

    class Delay(BaseCallback):
        def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            if next(starts) == 0:  # the thread of the first call waits until the second has ended
                second_ran.wait(10)

    starts = iter(range(10))
    numbers = iter(range(10))

    def roll(sides: int) -> int:
        """Roll a die."""
        value = next(numbers)
        second_ran.set()
        return value

    script = [Answer(calls=[Call("roll", {"sides": 6}, "1"), Call("roll", {"sides": 6}, "2")]), DONE]
    for how in ("sync", "async"):
        agent = sigadapt.ReAct(ANSWER, tools=[roll])
        second_ran.clear()
        starts = iter(range(10))
        with play(script), dspy.context(callbacks=[Delay()]):
            stream: Any = sigadapt.stream_sync(agent, question="q")
            events = [*stream] if how == "sync" else watch(agent, question="q")
        by_event = {event.call_id: event.result.value for event in of(sigadapt.events.ResultReady, events)}
        first_round, *_ = sigadapt.rounds(events[-1].prediction)
        by_result = {result.call_id: result.value for result in first_round.results if result.name == "roll"}
        assert by_event == by_result
        assert len({*by_result.values()}) == 2


def test_a_call_that_is_late_has_the_result_that_the_model_reads() -> None:
    """watching-runs: A call that takes too long has the result that the model reads."""
    script = [Answer(calls=[Call("sleeps", {}), Call("sleeps_later", {})]), Answer(text="x")]
    with play(script) as provider:
        events = list(sigadapt.stream_sync(Impatient(), question="q"))
        read = str(provider.received[1].body)
    results = [event for event in events if isinstance(event, sigadapt.events.ResultReady)]
    assert [event.call_id for event in results] == ["call_1", "call_2"]
    assert all(event.result.is_error and "TimeoutError" in event.result.value for event in results)
    assert all(event.result.value in read for event in results)
