"""The passes in their order, and the two looks that skip them: they skip nothing that has something to do."""

import itertools
from typing import Any

import dspy
import pytest
from support import LITELLM, NATIVE, Talk, get_weather, lm_of

import sigadapt
from sigadapt import ToolDecl, ToolDecls
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.passes import order
from sigadapt.server_tools import WebSearch
from sigadapt.testing import Answer, Call, LoopbackProvider

ROUTES = {f"native {name}": route for name, route in NATIVE.items()} | {
    f"litellm {name}": route for name, route in LITELLM.items()
}


def call_row(call_id: str) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": "{}"}
    return {"id": call_id, "type": "function", "function": function}


ROWS = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Caf\u00e9?"}]


LATER = [*ROWS, {"role": "user", "content": "And?"}]
LONG_ID = "c" * 2_000
TURN = [
    {"role": "assistant", "content": "Let me look.", "tool_calls": [call_row(LONG_ID)]},
    {"role": "tool", "tool_call_id": LONG_ID, "name": "get_weather", "content": "1 C"},
]
ROOT = {"type": "object", "properties": {"city": {"type": "string"}}, "not": {"required": ["days"]}}
PLAIN_ROWS: dict[str, list[Any]] = {
    "a question": ROWS[1:],
    "instructions and a question": ROWS,
    "instructions alone": ROWS[:1],
    "two questions": LATER,
    "ASCII": [{"role": "user", "content": "?"}],
}
OTHER_REQUESTS: dict[str, dict[str, Any]] = {
    "late instructions": {"messages": [*ROWS, {"role": "system", "content": "Be brief."}]},
    "half a character": {"messages": [{"role": "user", "content": "\ud800"}]},
    "blocks": {"messages": [{"role": "user", "content": [{"type": "text", "text": "?"}]}]},
    "parts": {"messages": [{"role": "user", "content": "?", "parts": [{"type": "text", "value": "?"}]}]},
    "a turn": {"messages": [*ROWS, *TURN]},
    "words of the model": {"messages": [*ROWS, {"role": "assistant", "content": "\ud800"}, ROWS[1]]},
    "a choice": {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
    "one call at a time": {"parallel_tool_calls": False},
    "a format": {"response_format": {"type": "json_object"}},
    "a dict of a tool": {"tools": [*ToolDecls([ToolDecl("get.weather")]).canonical]},
    "a name that few take": {"tools": ToolDecls([ToolDecl("get.weather")]).canonical},
    "a strict tool": {"tools": ToolDecls([ToolDecl("get_weather", strict=True)]).canonical},
    "a schema that few take": {"tools": ToolDecls([ToolDecl("get_weather", parameters=ROOT)]).canonical},
}


@pytest.mark.parametrize("kind", [*PLAIN_ROWS, *OTHER_REQUESTS])
@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_a_request_that_goes_as_it_is_would_pass_unchanged(route: Any, kind: str) -> None:
    """request-shaping: A plain request and a plain answer skip the passes."""
    request: Any = {"model": "m", "messages": ROWS, "tools": ToolDecls([get_weather]).canonical}
    request |= OTHER_REQUESTS.get(kind, {"messages": PLAIN_ROWS.get(kind)})
    sent = RequestRecord(canonical=request, request=request, route=route)
    if not vars(order)["_goes_as_it_is"](sent):
        return
    for write in order.REQUEST_PASSES:
        sent.request = write(sent.request, sent)
    assert sent.request == request
    assert sent.changes == ()


@pytest.mark.parametrize("rows", PLAIN_ROWS.values(), ids=PLAIN_ROWS)
@pytest.mark.parametrize("has_tools", [False, True])
def test_a_plain_request_skips_the_passes(
    monkeypatch: pytest.MonkeyPatch, rows: list[Any], has_tools: bool
) -> None:
    """request-shaping: A plain request and a plain answer skip the passes."""

    def refuse(request: Any, record: Any) -> Any:
        raise AssertionError("a pass looked at it")

    monkeypatch.setattr(order, "_ROUTE_PASSES", (refuse,))
    request: Any = {"model": "m", "messages": rows}
    if has_tools:
        request["tools"] = ToolDecls([get_weather]).canonical
    assert order.lower(request, NATIVE["openai-chat"]).request is request


def test_a_prompt_describes_plain_tools() -> None:
    """request-shaping: A plain request and a plain answer skip the passes."""
    with LoopbackProvider([Answer(text="Done.")]) as net:
        adapter = sigadapt.ChatAdapter(tool_calling="prompted")
        with dspy.context(lm=lm_of(net, "openai", cache=False), adapter=adapter):
            dspy.Predict(Talk)(question="?", tools=[get_weather])
    body = net.received[0].body
    assert "tools" not in body
    assert "get_weather" in str(body["messages"])


@pytest.mark.parametrize("name", ["get_weather", "get.weather", "weather:now", "9days", "w" * 100])
def test_tools_that_one_route_takes_are_looked_at_again_for_another(name: str) -> None:
    """request-shaping: A plain request and a plain answer skip the passes."""

    def tools(words: str) -> Any:
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
        return ToolDecls([ToolDecl(name, description=words, parameters=parameters)]).canonical

    def name_sent(tools: Any, route: Any) -> str:
        sent: Any = order.lower({"model": "m", "messages": ROWS, "tools": tools}, route).request
        return sent["tools"][0]["function"]["name"]

    for number, (first, second) in enumerate(itertools.permutations(ROUTES.values(), 2)):
        shared = tools(f"Weather {number}.")
        name_sent(shared, first)
        assert name_sent(shared, second) == name_sent(tools(f"Weather {number} of {second.names}."), second)


class TakesOut:
    """A hook that offers the model no tool that is named."""

    def before_request(self, request: Any, context: Any) -> Any:
        return {**request, "tools": [tool for tool in request["tools"] if "weather" not in str(tool)]}


PARIS = {"city": "Paris"}
WITH_OPTIONS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "a declared tool": ("get_weather", PARIS, {}),
    "an undeclared tool": ("nope", PARIS, {}),
    "unchecked": ("get_weather", {"city": 7}, {"validate_args": False}),
    "wrapped": ("get_weather", {"city": "Paris", "days": "3"}, {"unwrap": True}),
    "taken out": ("get_weather", PARIS, {"hooks": [TakesOut()]}),
    "not chosen": ("get_weather", PARIS, {"tool_choice": "get_time"}),
}


def get_time(city: str) -> str:
    """Time in a city."""
    return city


@pytest.mark.parametrize("kind", WITH_OPTIONS)
@pytest.mark.parametrize(
    ("wire", "engine"), [("anthropic", "auto"), ("openai", "auto"), ("gemini", "litellm")]
)
def test_calls_that_come_as_they_are_would_pass_unchanged(
    monkeypatch: pytest.MonkeyPatch, wire: str, engine: str, kind: str
) -> None:
    """request-shaping: A plain request and a plain answer skip the passes."""
    name, args, options = WITH_OPTIONS[kind]

    def ask() -> Any:
        with LoopbackProvider([Answer(text="Let me look.", calls=[Call(name, args)])]) as net:
            adapter = sigadapt.ChatAdapter(on_invalid="keep", **options)
            with dspy.context(lm=lm_of(net, wire, engine, cache=False), adapter=adapter):
                out: Any = dspy.Predict(Talk)(question="?", tools=[get_weather, get_time])
        # LiteLLM makes up the ids of Gemini's calls.
        good = [(call.name, call.args, call.arguments, call.altered) for call in out.calls]
        bad = [(call.name, call.arguments, call.code, call.altered) for call in out.calls.invalid]
        return out.answer, good, bad

    def passes(record: Any) -> bool:
        return False

    plain = ask()
    monkeypatch.setattr(order, "_comes_as_it_is", passes)
    assert ask() == plain


def test_a_plain_answer_skips_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """request-shaping: A plain request and a plain answer skip the passes."""
    monkeypatch.setattr(order, "ANSWER_PASSES", ())  # which alone check calls, if any pass sees them
    with LoopbackProvider([Answer(calls=[Call("get_weather", {"city": 7})])]) as net:
        adapter = sigadapt.ChatAdapter(on_invalid="keep")
        with dspy.context(lm=lm_of(net, "openai", cache=False), adapter=adapter):
            out: Any = dspy.Predict(Talk)(question="?", tools=[get_weather])
    assert [call.code for call in out.calls.invalid] == ["schema_mismatch"]


class Looks:
    """A hook that changes nothing."""

    def after_choice(self, choice: Any, context: Any) -> None: ...


def lookup(query: str) -> str:
    """Look it up."""
    return query


@pytest.mark.parametrize("mode", ["native", "prompted"])
def test_a_hook_that_changes_nothing_refuses_no_call_of_a_stand_in(mode: Any) -> None:
    """request-shaping: A hook that takes no tool out refuses no call."""
    call = Call("lookup", {"query": "q"})
    text = '<tool_call>\n{"name": "lookup", "arguments": {"query": "q"}}\n</tool_call>'
    answer = Answer(calls=[call]) if mode == "native" else Answer(text=text)
    with LoopbackProvider([answer]) as net:
        adapter = sigadapt.ChatAdapter(hooks=[Looks()], tool_calling=mode)
        with dspy.context(lm=lm_of(net, "openai", cache=False), adapter=adapter):
            out: Any = dspy.Predict(Talk)(question="?", tools=[WebSearch(local=lookup)])
    assert [each.name for each in out.calls] == ["lookup"]
