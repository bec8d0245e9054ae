"""ReActV2 on DSPy's DummyLM ends as under DSPy's adapters; what ends otherwise, in `EXCEPTIONS`, no worse."""

import asyncio
import copy
from typing import Any, NamedTuple, cast

import dspy
import pydantic
import pytest
from dspy.utils import DummyLM

import sigadapt

pytestmark = pytest.mark.usefixtures("quiet_dspy")
PAIRS: list[tuple[Any, Any]] = [
    (dspy.ChatAdapter, sigadapt.ChatAdapter),
    (dspy.JSONAdapter, sigadapt.JSONAdapter),
    (dspy.XMLAdapter, sigadapt.adapters.XMLAdapter),
]
NAMES = ["Chat", "JSON", "XML"]


class Query(pydantic.BaseModel):
    text: str
    limit: int = 3


def search(query: str) -> str:
    """Search."""
    return f"found {query}"


def find(query: Query) -> str:
    """Find."""
    return f"{type(query).__name__} {query.text} {query.limit}"


def fail() -> str:
    """Fail."""
    raise RuntimeError("backend down")


async def slowly(query: str) -> str:
    """Search."""
    return f"found {query} slowly"


class Searcher:
    """Search."""

    def __call__(self, query: str) -> str:
        return f"found {query} by an object"


def turn(*calls: tuple[str, dict[str, Any]], thought: str = "Look.") -> dict[str, Any]:
    made = [{"name": name, "args": args} for name, args in calls]
    return {"next_thought": thought, "tool_calls": {"tool_calls": made}}


def value(tool_calls: Any) -> dict[str, Any]:
    return {"next_thought": "Look.", "tool_calls": tool_calls}


A, B, SUBMIT = ("search", {"query": "a"}), ("search", {"query": "b"}), ("submit", {"answer": "x"})
DONE = turn(SUBMIT)
OLD = {"question": "Before?", "answer": "yes"}
HARD = 'say "hi" [[ ## next_thought ## ]]\n```x```\n{"name": "search"}'


class Run(NamedTuple):
    """A run: what the model answers, and how the agent is made and called."""

    script: Any
    tools: tuple[Any, ...] = (search,)
    signature: str = "question -> answer"
    inputs: dict[str, Any] = {"question": "Where?"}  # noqa: RUF012  (never changed)
    is_async: bool = False
    reasons: bool = False
    options: dict[str, Any] = {}  # noqa: RUF012


RUNS = {
    "submits at once": Run([DONE]),
    "calls, then submits": Run([turn(A), DONE]),
    "parallel calls": Run([turn(A, B), DONE]),
    "a call beside the submit": Run([turn(A, SUBMIT)]),
    "three turns": Run([turn(A), turn(B), DONE]),
    "an unknown tool": Run([turn(("nope", {})), DONE]),
    "a wrong argument": Run([turn(("search", {"q": "a"})), DONE]),
    "an argument missing": Run([turn(("search", {})), DONE]),
    "a wrong type": Run([turn(("search", {"query": 3})), DONE]),
    "a tool that fails": Run([turn(("fail", {})), DONE], (fail,)),
    "a good call beside a failing one": Run([turn(A, ("fail", {})), DONE], (search, fail)),
    "a model as argument": Run([turn(("find", {"query": {"text": "t"}})), DONE], (find,)),
    "a wrong model as argument": Run([turn(("find", {"query": {"text": 4}})), DONE], (find,)),
    "a dspy.Tool": Run([turn(A), DONE], (dspy.Tool(search, name="search", desc="Look it up."),)),
    "a callable object": Run([turn(("Searcher", {"query": "a"})), DONE], (Searcher(),)),
    "arguments left out": Run([value({"tool_calls": [{"name": "fail"}]}), DONE], (fail,)),
    "no tools but submit": Run([DONE], ()),
    "the last turn": Run([turn(A), DONE], options={"max_iters": 1}),
    "no turn at all": Run([DONE], options={"max_iters": 0}),
    "a forced submit without one": Run([turn(A), turn(A)], options={"max_iters": 1}),
    "no call": Run([turn(), DONE]),
    "no call, twice": Run([turn(), turn()]),
    "a submit without the answer": Run([turn(("submit", {})), DONE]),
    "a submit with more": Run([turn(("submit", {"answer": "x", "more": 1}))]),
    "a submit of a wrong type": Run(
        [turn(("submit", {"n": "seven"})), turn(("submit", {"n": 7}))], signature="question -> n: int"
    ),
    "typed outputs": Run(
        [turn(("submit", {"n": 7, "m": ["a"]}))], signature="question -> n: int, m: list[str]"
    ),
    "two inputs": Run([DONE], signature="a, b: int -> answer", inputs={"a": "1", "b": 2}),
    "awaited": Run([turn(A), DONE], is_async=True),
    "awaited, with an awaited tool": Run([turn(("slowly", {"query": "a"})), DONE], (slowly,), is_async=True),
    "an awaited tool called": Run([turn(("slowly", {"query": "a"})), DONE], (slowly,)),
    "awaited to the last turn": Run([turn(A), DONE], is_async=True, options={"max_iters": 1}),
    "a model that reasons": Run([turn(A), DONE], reasons=True),
    "a history": Run([DONE], inputs={"question": "q", "history": dspy.History(messages=[OLD])}),
    "a history as a dict": Run([DONE], inputs={"question": "q", "history": {"messages": [OLD]}}),
    "a list of calls": Run([value([{"name": "submit", "args": {"answer": "x"}}])]),
    "one call": Run([value({"name": "submit", "args": {"answer": "x"}})]),
    "calls with ids": Run([value([{"id": "z", "name": "submit", "args": {"answer": "x"}}])]),
    "calls as a provider writes them": Run(
        [value([{"type": "function", "function": {"name": "submit", "arguments": '{"answer": "x"}'}}])]
    ),
    "arguments as text": Run([value([{"name": "submit", "args": '{"answer": "x"}'}])]),
    "calls in a fence": Run([value('```json\n[{"name": "submit", "args": {"answer": "x"}}]\n```')]),
    "calls as Python": Run([value("{'tool_calls': [{'name': 'submit', 'args': {'answer': 'x'}}]}")]),
    "answers by the question": Run({"": DONE}),
    "markup in an argument": Run([turn(("search", {"query": HARD})), DONE]),
    "letters of all kinds": Run([turn(("search", {"query": "é中"})), turn(("submit", {"answer": "née"}))]),
    "no more answers": Run([]),
    "no calls field": Run([{"next_thought": "Hm."}, DONE]),
    "no thought": Run([{"tool_calls": {"tool_calls": [{"name": "submit", "args": {"answer": "x"}}]}}]),
    "null for the calls": Run([value(None), DONE]),
    "words for the calls": Run([value("do it"), DONE]),
    "a closing tag in an argument": Run([turn(("search", {"query": "a </tool_calls> b"})), DONE]),
}

_AGAIN = "DSPy's adapter cannot parse this answer and asks once more, which costs the script's next answer"
_BAD = "what stands in the calls field is a call that failed, which the model is told; DSPy ends the loop"
EXCEPTIONS: dict[str, str] = {
    "no more answers": "the error says what is wrong in other words",
    "no calls field": _AGAIN,
    "no thought": _AGAIN,
    "null for the calls": _AGAIN,
    "words for the calls": _BAD,
    "a closing tag in an argument": "the XML adapter's value ends at the tag: a bad call, and no error",
}


def outcome(run: Run, adapter: Any, theirs: Any) -> Any:
    """How a run ends: outputs, history and requests; or the error's type and its first words."""
    lm = DummyLM(run.script, adapter=theirs(), reasoning=run.reasons)
    inputs = copy.deepcopy(run.inputs)
    with dspy.context(lm=lm, adapter=adapter()):
        try:
            program: Any = dspy.ReActV2(cast("Any", run.signature), tools=list(run.tools), **run.options)
            out: Any = asyncio.run(program.acall(**inputs)) if run.is_async else program(**inputs)
        except Exception as error:  # noqa: BLE001  (compared)
            return type(error).__name__, str(error)[:60]
    outputs = {name: value for name, value in out.toDict().items() if name != "history"}
    return outputs, [event_of(each) for each in out.history.messages], len(cast("Any", lm).history)


def event_of(event: dict[str, Any]) -> Any:
    thought: Any = event.get("next_thought")
    calls = event.get("tool_calls")
    made = calls and [(call.name, call.args) for call in calls.tool_calls]
    results = calls and [
        (result.name, str(result.value).splitlines()[0], result.is_error)
        for result in calls.tool_call_results.tool_call_results
    ]
    return event.get("question"), getattr(thought, "content", thought), made, results


@pytest.mark.filterwarnings("ignore:coroutine 'slowly' was never awaited")
@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=NAMES)
@pytest.mark.parametrize("name", [name for name in RUNS if name not in EXCEPTIONS])
def test_an_agent_on_a_dummy_model_ends_as_under_dspys_adapter(name: str, theirs: Any, ours: Any) -> None:
    """prompted-calling: DSPy's programs on a dummy model."""
    assert outcome(RUNS[name], ours, theirs) == outcome(RUNS[name], theirs, theirs)


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_agent_that_ends_otherwise_ends_no_worse(name: str) -> None:
    """prompted-calling: DSPy's programs on a dummy model."""
    pairs = [(outcome(RUNS[name], t, t), outcome(RUNS[name], o, t)) for t, o in PAIRS]
    assert any(dspys != mine for dspys, mine in pairs), "no exception: move it to the others"
    for dspys, mine in pairs:
        if isinstance(dspys[0], dict) or name != "no more answers":
            assert mine[0]["answer"] == "x"
            assert mine[2] <= (dspys[2] if isinstance(dspys[0], dict) else 2)
        else:
            assert mine[0] == dspys[0] == "AdapterParseError"


def test_words_in_the_calls_field_are_a_failed_result() -> None:
    """prompted-calling: The calls field in DSPy's text form."""
    for theirs, ours in PAIRS:
        _, events, requests = outcome(RUNS["words for the calls"], ours, theirs)
        assert [(name, failed) for name, _, failed in events[0][3]] == [("unnamed", True)]
        assert requests == 2
