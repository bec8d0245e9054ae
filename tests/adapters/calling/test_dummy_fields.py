"""DSPy's own tool fields on DummyLM have the outputs of DSPy's adapters, but for `EXCEPTIONS`."""

import asyncio
from typing import Any, NamedTuple

import dspy
import pytest
from dspy.utils import DummyLM
from test_dummy_agents import NAMES, PAIRS, find, search

from sigadapt.errors import InvalidHistory, InvalidSignature

ONE = "question, tool: dspy.Tool -> calls: dspy.ToolCalls"
MANY = "question, tools: list[dspy.Tool] -> answer, calls: dspy.ToolCalls"
OPTIONAL = "question, tools: list[dspy.Tool] -> answer: str | None, calls: dspy.ToolCalls | None"
TYPED = "question, tools: list[dspy.Tool] -> number: int, names: list[str], calls: dspy.ToolCalls"
GOING = "question, history: dspy.History, tools: list[dspy.Tool] -> answer, calls: dspy.ToolCalls"
NO_CALLS, NO_TOOLS = "question, tools: list[dspy.Tool] -> answer", "question -> calls: dspy.ToolCalls"


class Defaults(dspy.Signature):
    """Answer, or use the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str = dspy.OutputField(default="none")
    calls: dspy.ToolCalls | None = dspy.OutputField(default=None)


TOOLS = {"question": "Where?", "tools": [dspy.Tool(search), dspy.Tool(find)]}
CALL: Any = {"name": "search", "args": {"query": "a"}}
CALLS = {"tool_calls": [CALL]}
EARLIER = dspy.ToolCalls(tool_calls=[dspy.ToolCalls.ToolCall(id="i", name="search", args={"query": "z"})])
ANSWERED = EARLIER.model_copy(
    update={"tool_call_results": dspy.ToolCallResults.from_tool_calls_and_values(EARLIER, ["r"])}
)


class Ask(NamedTuple):
    """A prediction: what the model answers, and what it is asked."""

    answers: Any
    signature: Any = MANY
    inputs: Any = TOOLS
    demos: Any = ()
    options: Any = None
    config: Any = None
    is_async: bool = False
    follows: bool = False
    reasons: bool = False
    times: int = 1


def said(calls: Any, **more: Any) -> Ask:
    """An answer that a retry of DSPy's adapter gets again."""
    return Ask([{"answer": "x", "calls": calls}] * 2, **more)


def going(**event: Any) -> Ask:
    history = dspy.History(messages=[{"question": "Before?", "answer": "o", **event}])
    return said(CALLS, signature=GOING, inputs={**TOOLS, "history": history})


ASKS = {
    "one tool": Ask([{"calls": CALLS}], ONE, {"question": "q", "tool": dspy.Tool(search)}),
    "one tool, awaited": Ask(
        [{"calls": CALLS}], ONE, {"question": "q", "tool": dspy.Tool(search)}, is_async=True
    ),
    "one tool for a list": said(CALLS, inputs={"question": "q", "tools": dspy.Tool(search)}),
    "many tools": said(CALLS),
    "awaited": said(CALLS, is_async=True),
    "two calls": said({"tool_calls": [CALL, {"name": "find", "args": {"query": {"text": "t"}}}]}),
    "no calls": said({"tool_calls": []}),
    "no tools": said({"tool_calls": []}, inputs={"question": "q", "tools": []}),
    "calls before the answer": Ask([{"calls": CALLS, "answer": "x"}]),
    "both, where both are optional": said(CALLS, signature=OPTIONAL),
    "null, where calls are optional": said(None, signature=OPTIONAL),
    "the default of the calls": Ask([{"answer": "x"}], Defaults),
    "the default of the answer": Ask([{"calls": CALLS}], Defaults),
    "typed fields beside": Ask([{"number": 3, "names": ["a", "b"], "calls": CALLS}], TYPED),
    "a list": said([CALL]),
    "an object": said(CALL),
    "arguments": said([{"name": "search", "arguments": {"query": "a"}}]),
    "a provider's list": said(
        [{"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"query":"a"}'}}]
    ),
    "a provider's calls": said({"tool_calls": [{"function": {"name": "search", "arguments": CALL["args"]}}]}),
    "a provider's object": said({"function": {"name": "search", "arguments": CALL["args"]}}),
    "arguments as text": said([{"name": "search", "args": '{"query":"a"}'}]),
    "arguments that are a list": said([{"name": "search", "args": [1]}]),
    "arguments that are null": said([{"name": "search", "args": None}]),
    "an unknown tool": said([{"name": "nope", "args": {}}]),
    "a wrong type": said([{"name": "search", "args": {"query": 3}}]),
    "Python's quotes": said("{'tool_calls': [{'name': 'search', 'args': {'query': 'a'}}]}"),
    "a fence": said('```json\n{"tool_calls": [{"name": "search", "args": {"query": "a"}}]}\n```'),
    "words around": said('Sure: {"tool_calls": [{"name": "search", "args": {"query": "a"}}]}'),
    "a comma too many": said('{"tool_calls": [{"name": "search", "args": {"query": "a"}},]}'),
    "many lines": said('{\n "tool_calls": [\n  {"name": "search",\n   "args": {"query": "a"}}\n ]\n}'),
    "JSON in the answer": Ask([{"answer": '{"name": "search", "args": {"query": "no"}}', "calls": CALLS}]),
    "a call in the answer": Ask(
        [
            {
                "answer": '<tool_call>{"name": "search", "arguments": {"query": "no"}}</tool_call>',
                "calls": CALLS,
            }
        ]
    ),
    "a header in the answer": Ask([{"answer": "see [[ ## calls ## ]] there", "calls": CALLS}]),
    "a demonstration": said(
        CALLS, demos=[dspy.Example(question="d", tools=[dspy.Tool(search)], answer="a", calls=EARLIER)]
    ),
    "half a demonstration": said(CALLS, demos=[dspy.Example(question="d", answer="a")]),
    "an example to follow": Ask(
        [{"answer": "red"}],
        "question -> answer",
        {"question": "What color?"},
        [dspy.Example(question="What color?", answer="blue")],
        follows=True,
    ),
    "a history": going(),
    "a history with results": going(calls=ANSWERED),
    "no calls field": Ask([{"answer": "x"}], NO_CALLS),
    "native calling on": said(CALLS, options={"use_native_function_calling": True}),
    "native calling off": said(CALLS, options={"use_native_function_calling": False}),
    "parallel calls": said(CALLS, options={"parallel_tool_calls": True}),
    "a forced choice": said(CALLS, config={"tool_choice": "required"}),
    "a forced choice, not obeyed": said({"tool_calls": []}, config={"tool_choice": "required"}),
    "two candidates": said(CALLS, config={"n": 2, "temperature": 1.0}),
    "a model that reasons": said(CALLS, reasons=True),
    "answers by the question": Ask({"Where": {"answer": "x", "calls": CALLS}}),
    "one after the other": Ask(
        [{"answer": "x", "calls": CALLS}, {"answer": "y", "calls": {"tool_calls": []}}], times=2
    ),
    "the answer alone": Ask([{"answer": "x"}] * 2),
    "the calls alone": Ask([{"calls": CALLS}] * 2),
    "a call without a name": said([{"args": {}}]),
    "a call whose name is null": said([{"name": None, "args": {}}]),
    "words for calls": said("do it"),
    "an answer without fields": Ask({"never": {"answer": "x"}}),
    "arguments cut short": said([{"name": "search", "args": '{"query":"a'}]),
    "calls cut short": said('{"tool_calls": [{"name": "search", "args": {"query": "a'),
    "calls in an example to follow": said(
        CALLS,
        inputs={"question": "What color?", "tools": [dspy.Tool(search)]},
        demos=[dspy.Example(question="What color?", tools=[dspy.Tool(search)], answer="blue", calls=EARLIER)],
        follows=True,
    ),
    "a history without results": going(calls=EARLIER),
    "no tools field": Ask([{"calls": CALLS}], NO_TOOLS, {"question": "q"}),
}

_RAISES = "DSPy's adapter asks once more and then raises; here it is an output, or a call that fails"
_REPAIR = "DSPy's adapter closes what was cut off and calls with it; here that needs repair=True"
EXCEPTIONS: dict[str, tuple[Any, str]] = {
    "the answer alone": (("x", []), _RAISES),
    "the calls alone": ((None, [("search", {"query": "a"})]), _RAISES),
    "a call without a name": (("x", [("unnamed", {})]), _RAISES),
    "a call whose name is null": (("x", [("unnamed", {})]), _RAISES),
    "words for calls": (("x", [("unnamed", {})]), _RAISES),
    "an answer without fields": (("No more responses", []), "text is the only text field's value"),
    "arguments cut short": (("x", [("search", {})]), _REPAIR),
    "calls cut short": (("x", [("search", {})]), _REPAIR),
    "calls in an example to follow": (
        dspy.utils.exceptions.DSPyError,
        "a demonstration's calls are a turn with results, in which DummyLM does not find the fields",
    ),
    "a history without results": (InvalidHistory, "a provider refuses a call without its result"),
    "no tools field": (InvalidSignature, "a calls field without tools gets no calls natively"),
}


def outputs(ask: Ask, adapter: Any, theirs: Any) -> Any:
    """Each prediction's values; or the error."""
    lm = DummyLM(ask.answers, adapter=theirs(), follow_examples=ask.follows, reasoning=ask.reasons)
    with dspy.context(lm=lm, adapter=adapter(**(ask.options or {}))):
        predict: Any = dspy.Predict(ask.signature)
        predict.demos = list(ask.demos)
        inputs = ask.inputs | ({"config": ask.config} if ask.config else {})
        try:
            made = [
                asyncio.run(predict.acall(**inputs)) if ask.is_async else predict(**inputs)
                for _ in range(ask.times)
            ]
        except Exception as error:  # noqa: BLE001  (compared)
            return error
    return [{name: shown(value) for name, value in each.items()} for each in made]


def shown(value: Any) -> Any:
    return (
        [(call.name, call.args) for call in value.tool_calls] if isinstance(value, dspy.ToolCalls) else value
    )


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=NAMES)
@pytest.mark.parametrize("name", [name for name in ASKS if name not in EXCEPTIONS])
def test_dspys_fields_have_the_values_of_dspys_adapter(name: str, theirs: Any, ours: Any) -> None:
    """prompted-calling: DSPy's programs on a dummy model."""
    dspys, mine = (outputs(ASKS[name], adapter, theirs) for adapter in (theirs, ours))
    if ASKS[name].follows and theirs is not dspy.ChatAdapter:  # DummyLM looks for Chat's headers alone
        assert type(mine) is type(dspys)
    else:
        assert isinstance(dspys, list)
        assert mine == dspys


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=NAMES)
@pytest.mark.parametrize("name", EXCEPTIONS)
def test_what_comes_out_otherwise_is_named(name: str, theirs: Any, ours: Any) -> None:
    """prompted-calling: DSPy's programs on a dummy model."""
    expected, _ = EXCEPTIONS[name]
    mine = outputs(ASKS[name], ours, theirs)
    if isinstance(expected, type):
        assert isinstance(mine, expected)
    else:
        assert [(each["answer"], each["calls"]) for each in mine] == [expected]
