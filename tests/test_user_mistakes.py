"""Mistakes that a new user makes, each told before a request leaves."""

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import dspy
import pytest
from support import ADAPTERS, Turns, serving

import sigadapt
from sigadapt import (
    InvalidToolCall,
    SigadaptError,
    ToolCall,
    ToolCalls,
    ToolDecl,
    ToolDecls,
    ToolResult,
    ToolResults,
    Toolset,
)
from sigadapt.errors import UndeclaredTypeWarning
from sigadapt.testing import Answer


class Hook:
    def before_request(self, request: Any, context: Any) -> Any:
        return request


class NotATool:
    """Not a tool."""

    def __call__(self, city: str) -> str:
        return city


def get_weather(city: str) -> str:
    """Weather for a city."""
    return "18 C"


async def later() -> str:
    return "18 C"


def with_field(name: str, kind: Any, *, output: bool = False) -> Any:
    """`Turns` with another type of a field."""
    field = dspy.OutputField() if output else dspy.InputField()
    return Turns.delete(name).append(name, field, kind)


class Session:
    async def list_tools(self) -> None: ...

    async def call_tool(self) -> None: ...


def visit(*cities: str) -> None:
    """Visit cities."""


NOTHING: Any = None
MADE = ToolCalls([{"id": "c1", "name": "get_weather", "args": {"city": "Paris"}}])


def history(**event: Any) -> dict[str, Any]:
    return {"history": dspy.History(messages=[event])}


Mistake = tuple[Callable[[], dict[str, Any]], str]

INPUTS: dict[str, Mistake] = {
    "results that are calls": (lambda: {"results": MADE}, "ToolResults.of(calls, values)"),
    "results that are values": (lambda: {"results": ["18 C"]}, "ToolResults.of(calls, values)"),
    "results that are values by call id": (
        lambda: {"results": {"c1": "18 C"}},
        "ToolResults.of(calls, values)",
    ),
    "results that are one result": (
        lambda: {"results": ToolResult(call_id="c1", name="get_weather", value="x")},
        "ToolResults.of(calls, values)",
    ),
    "a history of chat messages": (lambda: history(role="user", content="Hi"), "'role'"),
    "a history with a misspelt output": (lambda: history(question="Hi", anser="x"), "'answer'"),
    "a history with a misspelt input": (lambda: history(qestion="Hi", answer="x"), "'question'"),
    "a history with capitals": (lambda: history(Question="Hi", answer="x"), "'question'"),
    "a history of another program": (
        lambda: history(ask="Hi", reply="x"),
        "none of its keys is a field ('ask', 'reply')",
    ),
    "a history that is a list": (lambda: {"history": [{"question": "Hi"}]}, "Give History"),
    "an adapter's option": (lambda: {"config": {"on_invalid": "keep"}}, "ChatAdapter(on_invalid=...)"),
    "tools as a setting": (lambda: {"config": {"tools": [{"type": "function"}]}}, "tools field"),
    "no tools": (lambda: {"tools": None}, "tools=[...]"),
    "a tool's name": (lambda: {"tools": "get_weather"}, "Give a function"),
    "a tool's result": (lambda: {"tools": [get_weather("Paris")]}, "Give a function"),
    "an MCP session": (lambda: {"tools": [Session()]}, "Toolset(name, session)"),
    "a tool of *args": (lambda: {"tools": [visit]}, "*cities"),
    "a tool's class": (lambda: {"tools": [NotATool]}, "is not a tool"),
    "a module's class": (lambda: {"tools": [dspy.Predict]}, "Give an instance"),
    "a lambda": (lambda: {"tools": [lambda: 1]}, "ToolDecl.of(source, name=...)"),
    "functions by name": (lambda: {"tools": {"get_weather": get_weather}}, "Give a function"),
    "a method of no object": (lambda: {"tools": [NotATool.__call__]}, "use the bound method"),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(("given", "words"), INPUTS.values(), ids=list(INPUTS))
def test_an_input_in_the_wrong_form(given: Any, words: str, adapter: Any) -> None:
    """adapter-plug-in: A mistake is told before a request."""
    words = words.replace("ChatAdapter", adapter.__name__)
    with serving([Answer(text="ok")]) as provider, dspy.context(adapter=adapter()):
        with pytest.raises(SigadaptError) as caught:
            dspy.Predict(Turns)(**{"question": "q", "tools": [get_weather], **given()})
        assert words in str(caught.value)
        assert provider.received == ()


VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "a coroutine": (later, "await"),
    "a coroutine in a list": (lambda: [later()], "await"),
    "a future": (lambda: asyncio.new_event_loop().create_future(), "await"),
    "a call that nobody ran": (lambda: MADE[0], "call.execute(decls)"),
    "a generator": (lambda: (n for n in range(3)), "a list"),
    "a function": (lambda: get_weather, "str(value)"),
    "an object": (object, "str(value)"),
    "an exception's class": (lambda: ValueError, "str(value)"),
}


@pytest.mark.parametrize(("value", "words"), VALUES.values(), ids=list(VALUES))
def test_a_value_that_cannot_be_sent(value: Any, words: str) -> None:
    """adapter-plug-in: A mistake is told before a request."""
    given = value()
    with pytest.raises(SigadaptError, match="get_weather") as caught:
        ToolResults.of(MADE, [given])
    assert words in str(caught.value)
    for each in [given, *(cast("list[Any]", given) if isinstance(given, list) else [])]:
        if inspect.iscoroutine(each):
            each.close()


FIELDS: dict[str, tuple[Any, str]] = {
    "a list of declarations": (lambda: with_field("tools", list[ToolDecl]), "`sigadapt.ToolDecls`"),
    "one declaration": (lambda: with_field("tools", ToolDecl), "`sigadapt.ToolDecls`"),
    "a list of calls": (lambda: with_field("calls", list[ToolCall], output=True), "`sigadapt.ToolCalls`"),
    "one call": (lambda: with_field("calls", ToolCall | None, output=True), "`sigadapt.ToolCalls`"),
    "a list of results": (lambda: with_field("results", list[ToolResult]), "`sigadapt.ToolResults`"),
    "calls by name": (lambda: with_field("calls", dict[str, ToolCall], output=True), "no calls field"),
    "a toolset": (lambda: with_field("tools", Toolset), "no tools field"),
    "tools as an output": (lambda: with_field("tools", ToolDecls, output=True), "input field"),
    "results as an output": (lambda: with_field("results", ToolResults, output=True), "input field"),
}


@pytest.mark.parametrize(("signature", "words"), FIELDS.values(), ids=list(FIELDS))
def test_a_field_that_no_adapter_fills(signature: Any, words: str) -> None:
    """adapter-plug-in: A mistake is told before a request."""
    with serving([Answer(text="ok")]) as provider:
        with pytest.raises(sigadapt.errors.InvalidSignature) as caught:
            dspy.Predict(signature())(question="q", tools=[get_weather])
        assert words in str(caught.value)
        assert "sigadapt.signatures" not in str(caught.value)
        assert provider.received == ()


def test_classes_in_the_place_of_instances() -> None:
    """adapter-plug-in: A mistake is told before a request."""
    for hooks, words in (([Hook], "Hook()"), (Hook(), "hooks=[hook]"), ([print], "before_request")):
        with pytest.raises(sigadapt.errors.InvalidOption, match=re.escape(words)):
            sigadapt.ChatAdapter(hooks=cast("Any", hooks))
    with (
        serving([Answer(text="ok")]),
        dspy.context(adapter=sigadapt.ChatAdapter),
        pytest.raises(sigadapt.errors.InvalidOption, match=r"ChatAdapter\(\)"),
    ):
        dspy.Predict(Turns)(question="q", tools=[get_weather])


UNREADABLE: Any = InvalidToolCall

CALLED: dict[str, Callable[[], Any]] = {
    "ToolCalls of a number": lambda: ToolCalls(3),
    "ToolCalls of None": lambda: ToolCalls(None),
    "ToolCalls of no call": lambda: ToolCalls({"a": 1}),
    "ToolCalls of an unknown keyword": lambda: ToolCalls(calls=[]),
    "ToolCall of text": lambda: ToolCall(id="1", name="f", args=cast("Any", "{}")),
    "ToolCall without an id": lambda: ToolCall(name="f", args={}),
    "InvalidToolCall of an id": lambda: UNREADABLE(id="1"),
    "ToolResult of a number": lambda: ToolResult(call_id=cast("Any", 1), name="f", value="x"),
    "ToolResult of content that is none": lambda: ToolResult(
        call_id="1", name="f", value="x", is_content=True
    ),
    "ToolResults of no calls": lambda: ToolResults.of(cast("Any", None), ["x"]),
    "ToolResults of a text": lambda: ToolResults.of(MADE, "x"),
    "ToolResults of a set": lambda: ToolResults.of(MADE, cast("Any", {"x"})),
    "ToolResults of too many": lambda: ToolResults.of(MADE, ["x", "y"]),
    "ToolResults and a number": lambda: ToolResults() + cast("Any", 1),
    "bind of None": lambda: MADE[0].bind(NOTHING),
    "bind of a name": lambda: MADE[0].bind("get_weather"),
    "validated by None": lambda: MADE.validated(NOTHING),
    "awaiting confirmation of None": lambda: MADE.awaiting_confirmation(NOTHING),
    "execute of nothing": MADE[0].execute,
    "execute without a function": lambda: MADE[0].execute([{"name": "get_weather"}]),
    "execute of what the program runs": lambda: ToolCall(id="1", name="bash", args={}).execute(
        [{"type": "bash_20250124", "name": "bash"}]
    ),
    "a descriptor as a tool": lambda: ToolDecls([str.upper]),
    "a confirmation of 1": lambda: ToolDecl.of(get_weather, requires_confirmation=cast("Any", 1)),
    "a reserved name": lambda: ToolDecls([{"name": "sigadapt_request_confirmation"}]),
    "a tool as a source of tools": lambda: Toolset("t", cast("Any", get_weather)),
    "an approval of another call": MADE[0].approved,
}


@pytest.mark.parametrize("call", CALLED.values(), ids=list(CALLED))
def test_errors_of_public_functions(call: Any) -> None:
    """adapter-plug-in: Every error of a public function is this package's."""
    with pytest.raises(SigadaptError):
        call()


@pytest.mark.parametrize(
    "tools",
    [get_weather, [get_weather], (get_weather,), {"get_weather": get_weather}, dspy.Tool(get_weather)],
)
def test_tools_in_any_form(tools: Any) -> None:
    """tool-call-outputs: ToolCalls takes calls in any form."""
    assert MADE[0].bind(tools) == {"city": "Paris"}
    assert not MADE.validated(tools).invalid
    assert MADE[0].execute(tools) == "18 C"


def test_a_function_without_annotations_is_warned_of_once() -> None:
    """adapter-plug-in: A parameter without an annotation is a warning, once."""

    namespace: dict[str, Any] = {"__name__": f"made_{uuid4().hex}"}  # which no other run has warned of
    exec("def untyped(a, b: int, c=1): 'Untyped.'", namespace)  # noqa: S102  (typed code has no such function)
    with pytest.warns(UndeclaredTypeWarning) as warned:
        declared = [ToolDecls([namespace["untyped"]])["untyped"] for _ in range(3)]
    assert [decl.parameters["properties"]["a"] for decl in declared] == [{}, {}, {}]
    (warning,) = warned
    assert "untyped: 'a', 'c' without an annotation" in str(warning.message)


KEYWORDS: dict[str, tuple[Callable[[], Any], str]] = {
    "requires_confirm": (
        lambda: cast("Any", ToolDecl).of(get_weather, requires_confirm=True),
        "requires_confirmation",
    ),
    "descripton": (lambda: cast("Any", ToolDecl).of(get_weather, descripton="x"), "'description'"),
    "nothing near": (lambda: cast("Any", ToolDecl).of(get_weather, zzz=1), "It takes name, description"),
    "a toolset without a name": (lambda: cast("Any", Toolset)([get_weather]), "the name is missing"),
    "a function without a name": (lambda: cast("Any", Toolset)(get_weather), "the name is missing"),
    "a toolset without a source": (lambda: cast("Any", Toolset)("weather"), "the source is missing"),
}


@pytest.mark.parametrize(("make", "words"), KEYWORDS.values(), ids=list(KEYWORDS))
def test_a_keyword_that_resembles_another_is_suggested(make: Any, words: str) -> None:
    """adapter-plug-in: A keyword that resembles another is suggested."""
    with pytest.raises(SigadaptError, match=words):
        make()


def test_a_stream_that_is_read_with_for_names_stream_sync() -> None:
    """adapter-plug-in: A keyword that resembles another is suggested."""
    with dspy.context(adapter=sigadapt.ChatAdapter()):
        events: Any = sigadapt.stream(dspy.Predict("question -> answer"), question="q")
        with pytest.raises(TypeError, match="stream_sync"):
            iter(events)
