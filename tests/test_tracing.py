"""Spans of OpenTelemetry's GenAI conventions, of real agents over the loopback provider and the real SDK."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dspy
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from processes import run_python
from support import May, serving, start

import sigadapt
from sigadapt import InputNeeded, ToolCall, ToolCalls, ToolDecl, ToolDecls, ToolResult
from sigadapt.testing import Answer, Call, Failure
from sigadapt.tracing import instrument

ROOT = Path(__file__).resolve().parent.parent


WIRES = {
    "openai": ("gpt-4o-mini", "openai"),
    "responses": ("gpt-5", "openai"),
    "anthropic": ("claude-sonnet-4-6", "anthropic"),
    "gemini": ("gemini-2.5-flash", "gcp.gemini"),
}


class Clerk(dspy.Signature):
    """Help the customer."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


def stock(title: str) -> str:
    """How many there are."""
    if title == "Nowhere":
        raise LookupError("no shelf QUINCE holds it")
    return f"7 of {title} MEDLAR."


STOCK = Answer(calls=[Call("stock", {"title": "Emma"}, "s1")], usage=(100, 7))
SUBMIT = Answer(calls=[Call("submit", {"answer": "DAMSON"})], usage=(200, 9))


class Seen:
    """A provider of spans, and those that ended on it."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._memory = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self._memory.get_finished_spans(), key=lambda span: span.start_time or 0)

    def of(self, operation: str) -> list[ReadableSpan]:
        spans = [span for span in self.spans if value(span, "gen_ai.operation.name") == operation]
        return [span for span in spans if span.name != "execute_tool submit"]

    def line(self, span: ReadableSpan) -> list[str]:
        """The names of a span and of those that it stands in, outermost first."""
        outer = [each for each in self.spans if span.parent and place_of(each)[1] == span.parent.span_id]
        return [*(self.line(outer[0]) if outer else ()), span.name]

    @property
    def lines(self) -> list[str]:
        return [" > ".join(self.line(span)) for span in self.spans]

    @property
    def failures(self) -> dict[str, Any]:
        failed = [span for span in self.spans if span.status.status_code is trace.StatusCode.ERROR]
        assert all((span in failed) == (value(span, "error.type") is not None) for span in self.spans)
        return {span.name: value(span, "error.type") for span in failed}

    @property
    def words(self) -> str:
        return "\n".join(span.to_json() for span in self.spans)


def value(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


def place_of(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


@contextmanager
def traced(**options: Any) -> Generator[Seen]:
    seen = Seen()
    with instrument(seen.provider, **options):
        yield seen


def play(*script: Any, wire: str = "openai", **options: Any) -> Any:
    return serving(script, wire, **options)


def own(tools: Any, signature: Any = "question -> answer", **options: Any) -> Any:
    return sigadapt.ReAct(signature, tools=tools, **options)


def dspys(tools: Any, signature: Any = "question -> answer") -> Any:
    declared: list[Any] = [*ToolDecls(tools)]
    return dspy.ReActV2(signature, tools=declared)


AGENTS = pytest.mark.parametrize("agent_of", [own, dspys], ids=["sigadapt", "dspy"])


@AGENTS
@pytest.mark.parametrize("way", ["sync", "async", "streamed", "streamed later"])
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_an_agent_is_a_trace(agent_of: Callable[..., Any], way: str, wire: str) -> None:
    """tracing: An agent's requests and calls stand in its span."""
    with play(STOCK, SUBMIT, wire=wire) as net, traced() as seen:
        model = WIRES[wire][0]
        assert start(agent_of([stock], Clerk), way, question="q").answer == "DAMSON"
    agent = "invoke_agent Clerk"
    inner = [f"{agent} > chat {model}", f"{agent} > execute_tool stock", f"{agent} > chat {model}"]
    assert seen.lines == [agent, *inner]
    assert [value(span, "gen_ai.usage.input_tokens") for span in seen.of("chat")] == [100, 200]
    assert [value(span, "gen_ai.usage.output_tokens") for span in seen.of("chat")] == [7, 9]
    is_streamed = way.startswith("streamed")
    assert {value(span, "gen_ai.request.stream") for span in seen.of("chat")} == {is_streamed or None}
    assert seen.failures == {}
    assert len(net.received) == 2


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_that_is_a_tool(way: str) -> None:
    """tracing: An agent that is a tool stands in the span of its call."""

    def sum_up(text: str) -> str:
        """Sum up."""
        made: Any = dspy.Predict("text -> summary")(text=text)
        return made.summary

    clerk = ToolDecl.of(own([sum_up], Clerk), name="clerk", description="Ask the clerk.")
    text = Answer(text="[[ ## summary ## ]]\nshort\n\n[[ ## completed ## ]]", usage=(3, 2))
    ask = Answer(calls=[Call("clerk", {"question": "Emma?"})])
    look = Answer(calls=[Call("sum_up", {"text": "long"})])
    with play(ask, look, text, SUBMIT, SUBMIT), traced() as seen:
        start(own([clerk]), way, question="q")
    tool = "invoke_agent > execute_tool clerk > invoke_agent Clerk > execute_tool sum_up"
    assert f"{tool} > chat gpt-4o-mini" in seen.lines
    assert [len(seen.line(span)) for span in seen.of("chat")] == [2, 4, 5, 4, 2]
    inmost = next(span for span in seen.of("chat") if len(seen.line(span)) == 5)
    assert value(inmost, "gen_ai.usage.input_tokens") == 3
    assert list(value(inmost, "gen_ai.response.finish_reasons")) == ["stop"]


RUNS: dict[str, Callable[[ToolCalls, list[Any]], Any]] = {
    "run": lambda calls, tools: calls.run(tools),
    "arun": lambda calls, tools: asyncio.run(calls.arun(tools)),
    "execute": lambda calls, tools: [call.execute(tools) for call in calls],
}


@pytest.mark.parametrize("name", RUNS)
def test_calls_have_their_own_spans(name: str) -> None:
    """tracing: Calls side by side each have their own span."""
    calls = ToolCalls(tool_calls=[ToolCall(id=f"c{n}", name="shelf", args={"number": n}) for n in (1, 2, 3)])
    with traced() as seen:
        tracer = seen.provider.get_tracer("user")
        gate = threading.Barrier(1 if name == "execute" else 3, timeout=10)

        def shelf(number: int) -> str:
            """Look at a shelf."""
            with tracer.start_as_current_span(f"own {number}"):
                gate.wait()
            return "x"

        with tracer.start_as_current_span("job") as job:
            RUNS[name](calls, [shelf])
            assert trace.get_current_span() is job
    assert sorted(line for line in seen.lines if "own" in line) == [
        f"job > execute_tool shelf > own {number}" for number in (1, 2, 3)
    ]
    assert {value(span, "gen_ai.tool.call.id") for span in seen.of("execute_tool")} == {"c1", "c2", "c3"}


def test_an_async_tool_that_runs_alone() -> None:
    """tracing: Calls side by side each have their own span."""

    async def find(title: str) -> str:
        """Find."""
        await asyncio.sleep(0)
        return stock(title)

    async def run() -> None:
        for title in ("Emma", "Nowhere"):
            with suppress(LookupError):
                await ToolCall(id=title, name="find", args={"title": title}).execute([find])

    with traced() as seen:
        asyncio.run(run())
    assert [value(span, "error.type") for span in seen.of("execute_tool")] == [None, "LookupError"]


def test_a_request_of_dspys_own_code_is_a_span() -> None:
    """tracing: Each request of an adapter has a span."""
    text = Answer(text="[[ ## summary ## ]]\nshort\n\n[[ ## completed ## ]]")
    with play(text, text, Failure(429, "QUINCE")), traced() as seen:
        program = dspy.Predict("text -> summary")
        start(program, "sync", text="long")
        start(program, "async", text="longer")
        with pytest.raises(Exception, match="QUINCE"):
            start(program, "sync", text="longest")
    assert [len(seen.line(span)) for span in seen.of("chat")] == [1, 1, 1]
    assert [value(span, "error.type") is None for span in seen.spans] == [True, True, False]
    assert "QUINCE" not in seen.words


def test_a_change_is_an_event() -> None:
    """tracing: A change is an event of its request."""
    tool = ToolDecl.of(stock, name="shop.stock")
    for content in (False, True):
        with play(Answer(calls=[Call("shop.stock", {"title": "Emma"})])), traced(content=content) as seen:
            dspy.Predict(May)(question="q", tools=[tool]).calls.run([tool])
        [request, call] = seen.spans
        [event] = request.events
        assert event.name == "sigadapt.change"
        assert event.attributes is not None
        assert event.attributes["what"] == "renamed"
        assert str(event.attributes["where"]).startswith("/tools/0")
        assert ("why" in event.attributes) == content
        assert call.name == "execute_tool shop.stock"


BAD = {
    "schema_mismatch": Call("stock", {"title": ["QUINCE"]}),
    "unknown_tool": Call("lend", {"title": "QUINCE"}),
    "invalid_json": Call("stock", '{"title" QUINCE'),
}


@pytest.mark.parametrize("code", BAD)
def test_a_bad_call_is_told_at_its_request(code: str) -> None:
    """tracing: A bad call is told where it came."""
    with play(Answer(calls=[BAD[code]])), traced() as seen, pytest.raises(sigadapt.ToolCallParseError):
        dspy.Predict(May)(question="q", tools=[stock])
    assert seen.failures == {"chat gpt-4o-mini": code}
    for agent_of in (own, dspys):
        with play(Answer(calls=[BAD[code]]), SUBMIT), traced() as seen:
            agent_of([stock], Clerk)(question="q")
        assert seen.failures == {"chat gpt-4o-mini": code}
        assert "QUINCE" not in seen.words


ENDS = {
    "filtered": Answer(text="QUINCE", finish="content_filter"),
    "refused": Answer(text="QUINCE", finish="refusal"),
    "cut_off": Answer(text="[[ ## answer ## ]]\nQUINCE", finish="length"),
    "empty": Answer(text=""),
}


@pytest.mark.parametrize("code", ENDS)
def test_an_answer_that_is_none_is_told(code: str) -> None:
    """tracing: A bad call is told where it came."""
    wire = "anthropic" if code == "refused" else "openai"
    with play(ENDS[code], wire=wire), traced() as seen, pytest.raises(sigadapt.SigadaptError) as caught:
        dspy.Predict(May)(question="q", tools=[stock])
    assert caught.value.code == code
    assert [*seen.failures.values()] == [code]
    assert "QUINCE" not in seen.words


def test_what_is_no_provider_is_refused() -> None:
    """tracing: A tracer that fails costs no answer"""
    with pytest.raises(sigadapt.errors.InvalidOption) as caught:
        instrument(7)  # pyright: ignore[reportArgumentType]
    assert caught.value.field == "tracer_provider"


def refusing(title: str) -> ToolResult:
    """Refuse."""
    return ToolResult(call_id="", name="stock", value="QUINCE", is_error=True)


def test_a_tool_that_returns_a_failure() -> None:
    """tracing: A tool that fails has the type of its exception."""
    tool = ToolDecl.of(refusing, name="stock")
    calls = ToolCalls(tool_calls=[ToolCall(id="c1", name="stock", args={"title": "Emma"})])
    with traced() as seen:
        calls.run([tool])
    assert seen.failures == {"execute_tool stock": "tool_error"}


def test_a_limit_fails_the_agent() -> None:
    """tracing: A tool that fails has the type of its exception."""
    with play(STOCK, STOCK), traced() as seen, pytest.raises(sigadapt.LimitExceeded) as caught:
        own([stock], Clerk, limits=sigadapt.Limits(requests=1))(question="q")
    assert seen.failures["invoke_agent Clerk"] == caught.value.code


@AGENTS
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_run_that_waits(agent_of: Callable[..., Any], way: str) -> None:
    """tracing: To wait is no failure."""
    tool = ToolDecl.of(stock, requires_confirmation=True)
    with play(STOCK, SUBMIT, confirm="raise"):
        with traced() as first, pytest.raises(InputNeeded) as caught:
            start(agent_of([tool], Clerk), way, question="q")
        error = InputNeeded.model_validate_json(caught.value.model_dump_json())
        decisions = {request.id: True for request in error.requests}
        with traced() as seen:
            start(agent_of([tool], Clerk), way, history=error.resume([tool], decisions))
    assert first.failures == seen.failures == {}
    assert first.lines == ["invoke_agent Clerk", "invoke_agent Clerk > chat gpt-4o-mini"]
    [call] = seen.of("execute_tool")
    assert value(call, "gen_ai.tool.call.id") == "s1"
    links = [(link.context.trace_id, link.context.span_id) for link in call.links]
    assert links == [place_of(first.of("invoke_agent")[0])]
    assert [span.links for span in seen.spans if span is not call] == [()] * 2


def test_a_tool_that_asks() -> None:
    """tracing: To wait is no failure."""

    def send(text: str, context: sigadapt.ToolContext) -> str:
        """Send."""
        return f"{text} to {context.ask('To whom?')}"

    script = Answer(calls=[Call("send", {"text": "Hi"}, "s1")])
    for agent_of in (own, dspys):
        with play(script, SUBMIT), traced() as seen, pytest.raises(InputNeeded) as caught:
            agent_of([send])(question="q")
        assert seen.failures == {}
        with traced() as resumed:
            caught.value.resume([send], {request.id: "Ada" for request in caught.value.requests})
        assert resumed.failures == {}
        assert len(resumed.of("execute_tool")[0].links) == 1


def test_an_answer_that_waits_links_to_its_request() -> None:
    """tracing: To wait is no failure."""
    tool = ToolDecl.of(stock, requires_confirmation=True)
    with play(STOCK, confirm="raise"), traced() as first, pytest.raises(InputNeeded) as caught:
        dspy.Predict(May)(question="q", tools=[tool])
    with traced() as seen:
        caught.value.resume([tool], {request.id: True for request in caught.value.requests})
    [call] = seen.spans
    assert [link.context.span_id for link in call.links] == [place_of(first.spans[0])[1]]
    assert first.failures == {}


def test_a_run_that_nobody_traced_has_no_link() -> None:
    """tracing: To wait is no failure."""
    tool = ToolDecl.of(stock, requires_confirmation=True)
    with play(STOCK, confirm="raise"), pytest.raises(InputNeeded) as caught:
        own([tool])(question="q")
    assert caught.value.trace == ""
    with traced() as seen:
        caught.value.resume([tool], {request.id: True for request in caught.value.requests})
    assert [span.links for span in seen.spans] == [()]


WORDS = ("QUINCE", "MEDLAR", "SLOEBERRY", "DAMSON", "GREENGAGE")


def run_with_words(wire: str, *, content: bool) -> Seen:
    """A run with words of its own in all that is said."""
    calls = [Call("stock", {"title": "SLOEBERRY"}), Call("stock", {"title": "Nowhere"})]
    first = Answer(text="Let me DAMSON.", reasoning="I think GREENGAGE.", calls=calls)
    with traced(content=content) as seen, play(first, SUBMIT, wire=wire):
        own([stock])(question="What of QUINCE?")
    return seen


@pytest.mark.parametrize("wire", WIRES)
def test_no_word_is_told(wire: str) -> None:
    """tracing: No word is in a span by default."""
    words = run_with_words(wire, content=False).words
    assert [word for word in WORDS if word in words] == []


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_content_is_told_if_it_is_asked_for(wire: str) -> None:
    """tracing: Content holds no secret."""
    seen = run_with_words(wire, content=True)
    last = seen.of("chat")[-1]
    messages = json.loads(value(last, "gen_ai.input.messages"))
    [answer] = json.loads(value(seen.of("chat")[0], "gen_ai.output.messages"))
    assert {part["type"] for message in messages for part in message["parts"]} >= {
        "text",
        "tool_call",
        "tool_call_response",
    }
    assert [part["arguments"] for part in answer["parts"] if part["type"] == "tool_call"] == [
        {"title": "SLOEBERRY"},
        {"title": "Nowhere"},
    ]
    tools = json.loads(value(last, "gen_ai.tool.definitions"))
    assert [(tool["type"], tool["name"]) for tool in tools] == [("function", "stock"), ("function", "submit")]
    call = next(span for span in seen.of("execute_tool") if span.status.is_ok)
    assert json.loads(value(call, "gen_ai.tool.call.arguments")) == {"title": "SLOEBERRY"}
    assert value(call, "gen_ai.tool.call.result") == "7 of SLOEBERRY MEDLAR."


KEYS = {"looks like a key": "sk-quince-5f2c9b7e41d84a60b3aa", "is the model's": "no word of a key"}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_is_in_no_span(key: str) -> None:
    """tracing: Content holds no secret."""

    def leak(word: str) -> str:
        """Leak."""
        if word == "fail":
            raise RuntimeError(f"the key is {key}")
        return f"the key is {key}"

    calls = [Call("leak", {"word": key}), Call("leak", {"word": "fail"})]
    script = Answer(calls=calls), Answer(calls=[Call("submit", {"answer": key})])
    with play(*script, api_key=key) as net, traced(content=True) as seen:
        agent = own([leak])
        agent.set_lm(dspy.settings.lm)
        with dspy.context(lm=dspy.LM(**net.lm_options("openai"))):  # which the agent does not ask
            assert agent(question=f"Is it {key}?").answer == key
    assert key not in seen.words
    assert value(seen.of("execute_tool")[0], "gen_ai.tool.call.arguments") == '{"word":"***"}'


class Raises(SpanProcessor):
    """A processor that fails."""

    def __init__(self, place: str) -> None:
        self._place = place

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self._place == "start":
            raise RuntimeError("a processor that fails")

    def on_end(self, span: ReadableSpan) -> None:
        if self._place == "end":
            raise RuntimeError("a processor that fails")


@pytest.mark.parametrize("place", ["start", "end"])
def test_a_processor_that_raises_costs_nothing(place: str) -> None:
    """tracing: A tracer that fails costs no answer."""
    provider = TracerProvider()
    provider.add_span_processor(Raises(place))
    with play(STOCK, SUBMIT), instrument(provider):
        assert own([stock])(question="q").answer == "DAMSON"


def run_once() -> None:
    with play(STOCK, SUBMIT):
        own([stock])(question="q")


def test_a_block_is_traced_alone() -> None:
    """tracing: Tracing ends."""
    outer, inner = Seen(), Seen()
    with instrument(outer.provider):
        with suppress(ZeroDivisionError), instrument(inner.provider):
            run_once()
            raise ZeroDivisionError
        run_once()
        thread = threading.Thread(target=run_once)  # a thread of the program's own has no part in the block
        thread.start()
        thread.join(30)
    run_once()
    assert [len(seen.spans) for seen in (outer, inner)] == [4, 4]


def functions_called(work: Callable[[], Any]) -> list[str]:
    """The files of the functions that a program calls for tracing."""
    files: list[str] = []

    def look(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename.replace("\\", "/")
        if event == "call" and (
            "/opentelemetry/" in name or "/sigadapt/tracing/" in name or "tracer" in name
        ):
            files.append(name)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return files


def test_no_function_runs_where_nobody_traces() -> None:
    """tracing: Nobody traces."""
    calls = ToolCalls(tool_calls=[ToolCall(id="c1", name="stock", args={"title": "Emma"})])
    with play(STOCK, STOCK, STOCK):
        program = dspy.Predict(May)
        program(question="q", tools=[stock])
        assert functions_called(lambda: program(question="q", tools=[stock])) == []
        assert functions_called(lambda: calls.run([stock], parallel=False)) == []
        with traced() as seen:
            program(question="q", tools=[stock])
    assert len(seen.spans) == 1


ALONE = """
import sys, dspy, sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)

def stock(title: str) -> int:
    "How many there are."
    return 7

look, submit = Call("stock", {"title": "Emma"}), Call("submit", {"answer": "seven"})
script = [Answer(calls=[look]), Answer(calls=[submit])]
with LoopbackProvider(script) as net:
    with dspy.context(lm=dspy.LM(**net.lm_options("openai")), adapter=sigadapt.ChatAdapter()):
        print(sigadapt.ReAct("question -> answer", tools=[stock])(question="q").answer)
print([name for name in sys.modules if name.split(".")[0] == "opentelemetry"])
sys.meta_path.insert(0, Missing())
try:
    sigadapt.tracing.instrument()
except sigadapt.errors.InvalidOption as error:
    print(error.code)
"""


@pytest.mark.slow
def test_nothing_is_imported_where_nobody_traces() -> None:
    """tracing: Nobody traces."""
    done = run_python("-c", ALONE, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-3:] == ["seven", "[]", "missing_extra"]
