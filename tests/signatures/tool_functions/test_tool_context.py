"""A parameter of the type ToolContext, in every form of a function and in every way of running."""

import asyncio
import functools
from collections.abc import Callable
from typing import Annotated, Any, Generic, Optional, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signatures.tool_functions.served_tools import serving, submits

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl
from sigadapt.testing import Answer, Call

T = TypeVar("T")
FIND = ToolCalls([{"id": "c1", "name": "find", "args": {"city": "Rome"}}])


def seen(context: Any, city: str) -> str:
    return f"{context.call.id} {context.call.name} {city}"


class Shop:
    def find(self, city: str, context: ToolContext) -> str:
        return seen(context, city)


class CallableShop:
    def __call__(self, city: str, context: ToolContext) -> str:
        return seen(context, city)


class GenericShop(Generic[T]):
    def find(self, city: str, context: ToolContext[T]) -> str:
        return seen(context, city)


def last(city: str, context: ToolContext) -> str:
    return seen(context, city)


def first(context: ToolContext, city: str) -> str:
    return seen(context, city)


def by_position(context: ToolContext, /, city: str) -> str:
    return seen(context, city)


def by_keyword(city: str, *, context: ToolContext) -> str:
    return seen(context, city)


def optional(city: str, context: Optional[ToolContext] = None) -> str:  # noqa: UP045  (that form too)
    return seen(context, city)


def or_none(city: str, context: ToolContext | None = None) -> str:
    return seen(context, city)


def annotated(city: str, context: Annotated[ToolContext[dict[str, int]], "of the run"]) -> str:
    return seen(context, city)


def quoted(city: str, context: "ToolContext[Shop]") -> str:
    return seen(context, city)


def part(prefix: str, city: str, context: ToolContext) -> str:
    return prefix + seen(context, city)


async def later(city: str, context: ToolContext) -> str:
    await asyncio.sleep(0)
    return seen(context, city)


def behind_decorator() -> Callable[..., Any]:
    @functools.wraps(last)
    def wrapper(*args: Any, **keywords: Any) -> str:
        return last(*args, **keywords)

    return wrapper


FORMS: dict[str, Any] = {
    "last": last,
    "first": first,
    "by position": by_position,
    "by keyword": by_keyword,
    "optional": optional,
    "or None": or_none,
    "annotated": annotated,
    "quoted": quoted,
    "a method": Shop().find,
    "a callable object": CallableShop(),
    "of a generic class": GenericShop[int]().find,
    "a partial": functools.partial(part, ""),
    "async": later,
    "behind a decorator": behind_decorator(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_context_is_no_part_of_the_schema(form: str) -> None:
    """tool-context: A context is no part of the schema."""

    def plain(city: str) -> str: ...

    tools = ToolDecls([ToolDecl.of(FORMS[form], name="find")])
    assert tools["find"].parameters == ToolDecl.of(plain).parameters
    for results in (FIND.run(tools), asyncio.run(FIND.arun(tools))):
        [result] = results
        assert (result.value, result.is_error) == ("c1 find Rome", False)
    agent_tool = tools["find"].to_dspy()
    assert list(agent_tool.args or {}) == ["city"]


def test_two_contexts_are_told() -> None:
    def find(city: str, one: ToolContext, two: ToolContext) -> str: ...

    with pytest.raises(InvalidToolDecl, match="2 parameters of the type ToolContext"):
        ToolDecl.of(find)


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
    )
)
def test_a_model_cannot_fill_the_context(value: Any) -> None:
    """tool-context: A model cannot fill the context."""
    contexts: list[Any] = []

    def find(city: str, context: ToolContext | None = None, **others: Any) -> str:
        contexts.append(context)
        return city

    [result] = ToolCalls([{"name": "find", "args": {"city": "Rome", "context": value}}]).run([find])
    assert result.is_error
    assert "unexpected keyword argument 'context'" in result.value
    assert contexts == []


def test_a_decision_is_known() -> None:
    """tool-context: A context knows the decision."""
    decisions: list[Any] = []

    def pay(to: str, eur: int, context: ToolContext) -> str:
        """Pay."""
        decisions.append((context.decision, context.call.args["eur"]))
        return "paid"

    tools = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
    calls = ToolCalls([{"id": "c1", "name": "pay", "args": {"to": "Ada", "eur": 9}}])
    [request] = calls.awaiting_confirmation(tools)
    edit = ToolCall(id="c1", name="pay", args={"to": "Ada", "eur": 4})
    calls.run([pay])
    calls.run(tools, {request.id: True})
    calls.run(tools, {request.id: edit})
    calls.run(tools.confirmed_by(lambda name, args, hint: True))
    request.approved().execute(tools)
    assert decisions == [(None, 9), (True, 9), (edit, 4), (True, 9), (True, 9)]


def test_progress_is_an_event() -> None:
    """tool-context: A tool says how far it has come."""

    def load(rows: int, context: ToolContext) -> str:
        """Load."""
        context.progress("half", 0.5)
        context.progress("nearly")
        return "loaded"

    calls = ToolCalls([{"name": "load", "args": {"rows": 2}}])
    assert [result.value for result in calls.run([load])] == ["loaded"]
    agent = sigadapt.ReAct("question -> answer", [load])
    with serving(Answer(calls=[Call("load", {"rows": 2}, id="c1")]), submits()):
        events = list(sigadapt.stream_sync(agent, question="q"))
    kinds = [type(event).__name__ for event in events]
    progress = [event for event in events if isinstance(event, sigadapt.events.Progress)]
    assert [(each.call_id, each.message, each.fraction) for each in progress] == [
        ("c1", "half", 0.5),
        ("c1", "nearly", None),
    ]
    assert kinds.index("Progress") < kinds.index("ResultReady")
