"""Custom tools: declared, called with free text, answered and sent back, over both engines."""

import json
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from sending import ROUTES, members, send
from support import ENGINES, Turns, lm_of
from wire_bodies import chat, responses

import sigadapt
from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolDecl, ToolDecls, ToolResults
from sigadapt.errors import InvalidToolDecl
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]

GRAMMAR = {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}
FLAT: Json = {"type": "custom", "name": "run", "description": "Run code.", "format": GRAMMAR}
CODE = 'print("ä")\n{'
WIRES = [(wire, engine) for wire in ("openai", "responses") for engine in ENGINES]


def in_chat(text: str, name: str = "run", *, is_cut: bool = False) -> Json:
    call = {"id": "c1", "type": "custom", "custom": {"name": name, "input": text}}
    return chat({"content": None, "tool_calls": [call]}, "length" if is_cut else "tool_calls")


def in_responses(text: str, name: str = "run", *, is_cut: bool = False) -> Json:
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c1", "name": name, "input": text}
    why: Json = (
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}} if is_cut else {}
    )
    return responses(item, **why)


ANSWERS: dict[str, Callable[..., Json]] = {"openai": in_chat, "responses": in_responses}


def ask(provider: LoopbackProvider, wire: str, engine: str, **inputs: Any) -> Any:
    options: Json = {"on_invalid": "keep", **inputs.pop("options", {})}
    lm = lm_of(provider, wire, engine)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native", **options)):
        return dspy.Predict(Turns)(question="Go.", **{"tools": [FLAT], **inputs})


def test_a_custom_tool_may_say_nothing_of_its_form():
    """tool-declarations: A custom tool is declared in both of OpenAI's shapes."""
    bare = {"type": "custom", "name": "run"}
    assert ToolDecl.of(bare).to_openai() == {"type": "custom", "custom": {"name": "run"}}
    text = ToolDecl("run", format={"type": "text"})
    assert text.to_openai()["custom"]["format"] == {"type": "text"}
    assert ToolDecl.of(bare) != ToolDecl("run")


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": {"type": "object", "required": ["a"]}},
        {"format": {"syntax": "lark"}},
        {"format": "text"},
    ],
)
def test_a_custom_tool_that_contradicts_itself_is_refused(fields: Json):
    """tool-declarations: A custom tool takes text alone."""
    whole: Json = {"format": {}, **fields}
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl("run", **whole)
    assert caught.value.code == "invalid_field"


@pytest.mark.parametrize(("wire", "engine"), WIRES)
@pytest.mark.parametrize("text", ["", " ", "{}", '{"input": 1}', "null", '"x"'])
def test_any_text_is_a_good_call(wire: str, engine: str, text: str):
    """tool-call-outputs: A custom tool is called with text."""
    with LoopbackProvider([ANSWERS[wire](text)]) as provider:
        out = ask(provider, wire, engine)
        assert [(call.args, call.arguments, call.is_custom) for call in out.calls] == [
            ({"input": text}, text, True)
        ]
        ask(provider, wire, engine, results=ToolResults.of(out.calls, ["ok"]))
    assert text in json.dumps(provider.received[1].body, ensure_ascii=False) or '\\"' in json.dumps(text)


@pytest.mark.parametrize(("wire", "engine"), WIRES)
def test_a_custom_call_of_an_undeclared_tool_keeps_its_text(wire: str, engine: str):
    """tool-call-outputs: A custom call of an undeclared tool is bad."""
    with LoopbackProvider([ANSWERS[wire](CODE, name="other")]) as provider:
        out = ask(provider, wire, engine)
    assert [(bad.code, bad.name, bad.arguments) for bad in out.calls.invalid] == [
        ("unknown_tool", "other", CODE)
    ]


@pytest.mark.parametrize(("wire", "engine"), WIRES)
def test_a_bad_custom_call_is_asked_again_in_its_own_form(wire: str, engine: str):
    """tool-call-outputs: The text of a custom call that was cut off is kept."""
    cut, whole = ANSWERS[wire]("print(", is_cut=True), ANSWERS[wire]("print(1)")
    with LoopbackProvider([cut, whole]) as provider:
        out = ask(provider, wire, engine, options={"on_invalid": "reask"})
    assert [call.args for call in out.calls] == [{"input": "print(1)"}]
    again = json.dumps(provider.received[1].body)
    assert '"input": "print("' in again
    assert '"arguments"' not in again


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
def test_a_custom_call_of_the_past_goes_everywhere(wire: str, engine: str):
    """request-shaping: A custom call goes to another provider as a function's."""
    calls = ToolCalls([ToolCall(id="c1", name="run", args={"input": CODE}, arguments=CODE)])
    sent = send(wire, engine, results=ToolResults.of(calls, ["ok"]))
    if wire in ("openai", "responses"):
        assert (CODE in members(sent.body, "input"), sent.changes) == (True, [])
        return
    texts = [json.loads(each) for each in members(sent.body, "arguments") if isinstance(each, str)]
    parts = [
        *members(sent.body, "input"),
        *members(sent.body, "args"),
        *members(sent.body, "arguments"),
        *texts,
    ]
    assert {"input": CODE} in parts
    assert ("/messages/2/tool_calls/0", "lowered") in sent.whats


def run(input: str) -> str:  # noqa: A002
    """Run code."""
    raise AssertionError("a tool was executed")


def test_binding_validating_and_confirming():
    """tool-call-outputs: A custom tool is called with text."""
    decls = ToolDecls([ToolDecl("run", format={}, func=run, requires_confirmation=True)])
    call = ToolCall(id="c1", name="run", args={"input": CODE}, arguments=CODE)
    assert call.bind(decls) == {"input": CODE}
    calls = ToolCalls([call])
    assert calls.validated(decls) is calls
    [request] = calls.awaiting_confirmation(decls)
    assert request.approved() == call
    assert request.approved().is_custom
    bad = ToolCalls([ToolCall(id="c1", name="run", args={"code": CODE})]).validated(decls).invalid
    assert [(type(one), one.code) for one in bad] == [(InvalidToolCall, "schema_mismatch")]


def test_a_call_in_the_shape_of_chat_completions_is_read():
    """tool-call-outputs: A custom tool is called with text."""
    [call] = ToolCalls([{"id": "c1", "type": "custom", "custom": {"name": "run", "input": CODE}}])
    assert (call.id, call.name, call.args, call.arguments) == ("c1", "run", {"input": CODE}, CODE)


def test_a_stream_that_breaks_off_keeps_the_text() -> None:
    """tool-call-outputs: The text of a custom call that was cut off is kept."""
    pieces = [
        {"id": "c1", "type": "custom", "custom": {"name": "run", "input": "print"}},
        {"custom": {"input": "("}},
    ]
    deltas = [{"choices": [{"delta": {"tool_calls": [{"index": 0, **each}]}}]} for each in pieces]
    calls = sigadapt.response.choice_from_stream(deltas).tool_calls
    assert calls is not None
    assert [(bad.code, bad.name, bad.arguments) for bad in calls.invalid] == [("truncated", "run", "print(")]
