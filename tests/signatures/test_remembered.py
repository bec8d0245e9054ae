"""A list of tools is known again by what it holds, and by nothing less."""

import gc
import weakref
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigadapt
from sigadapt import ToolCalls, ToolDecls, Toolset
from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures import remembered as module
from sigadapt.signatures.remembered import remembered
from sigadapt.testing import Answer, Call, LoopbackProvider


def now(zone: str = "UTC") -> str:
    """The time."""
    return zone


def later(zone: str = "UTC") -> str:
    """The time."""
    return zone


DICT: dict[str, Any] = {"name": "n", "parameters": {"type": "object", "properties": {"a": {"default": 1}}}}


def declared(sources: Any) -> ToolDecls:
    known = remembered(sources)
    return ToolDecls(sources) if known is None else known


@pytest.mark.parametrize(
    "make",
    [lambda: [now], lambda: (now, later), lambda: [deepcopy(DICT)], lambda: [dspy.Tool(now), deepcopy(DICT)]],
)
def test_the_same_tools_are_declared_once(make: Callable[[], Any]) -> None:
    """call-cost: What does not change from call to call is compiled once."""
    first, second = declared(make()), declared(make())
    assert first is second
    assert first == ToolDecls(make())


@pytest.mark.parametrize("value", [1.0, True, "1", None, [1], {"a": 1}])
def test_whatever_differs_is_declared_anew(value: Any) -> None:
    """call-cost: What has changed is declared anew."""
    one, other = deepcopy(DICT), deepcopy(DICT)
    other["parameters"]["properties"]["a"]["default"] = value
    told = repr(declared([other]).to_openai()[0]["function"]["parameters"]["properties"]["a"]["default"])
    assert repr(declared([one]).to_openai()[0]["function"]["parameters"]["properties"]["a"]["default"]) == "1"
    assert told == repr(value)


def test_what_was_given_may_be_changed() -> None:
    """call-cost: What has changed is declared anew."""
    given = deepcopy(DICT)
    declared([given])
    given["description"] = "New."
    assert declared([given])["n"].description == "New."
    assert declared([deepcopy(DICT)])["n"].description == ""
    given["parameters"]["properties"]["a"]["default"] = float("nan")
    with pytest.raises(InvalidToolDecl, match="nan is not a JSON number"):
        declared([given])


def test_a_function_may_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """call-cost: What has changed is declared anew."""
    declared([later])
    monkeypatch.setattr(later, "__doc__", "After.")
    assert declared([later])["later"].description == "After."
    monkeypatch.setattr(later, "__doc__", ["no", "text"])
    assert declared([later])["later"].description == ""
    monkeypatch.setattr(later, "__name__", "renamed")
    assert [decl.name for decl in declared([later])] == ["renamed"]


def test_a_tool_of_dspys_may_be_changed() -> None:
    """call-cost: What has changed is declared anew."""
    tool = dspy.Tool(now)
    declared([tool])
    tool.desc = "Now."
    tool.args = {"zone": {"type": "integer"}}
    (decl,) = declared([tool])
    assert (decl.description, decl.parameters["properties"]) == ("Now.", {"zone": {"type": "integer"}})


def test_what_may_be_one_requests_is_not_kept_alive() -> None:
    """call-cost: Caches are bounded and weak."""

    class Session:
        pass

    def handler() -> Any:
        session = Session()

        def closing(text: str) -> str:
            return f"{session}{text}"

        def holding(text: str) -> str:
            return text

        holding.session = session  # pyright: ignore[reportFunctionMemberAccess]
        assert remembered([closing]) is None
        assert remembered([holding]) is None
        assert remembered([dspy.Tool(holding)]) is None
        return weakref.ref(session)

    known = handler()
    gc.collect()
    assert known() is None


def test_parts_shared_many_times_over_are_refused_at_once() -> None:
    """call-cost: Caches are bounded and weak."""
    part: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        part = {"anyOf": [part, part]}
    sources = [{"name": "f", "parameters": {"type": "object", "properties": {"a": part}}}]
    with pytest.raises(InvalidToolDecl, match="more than 100000 values"):
        declared(sources)


class Ask(dspy.Signature):
    """Ask."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls = dspy.OutputField()


def test_what_one_request_changes_is_not_seen_by_another() -> None:
    """call-cost: What has changed is declared anew."""

    class Hook:
        def before_request(self, request: Any, context: Any) -> None:
            context.decls["now"].parameters["properties"]["zone"]["enum"] = ["changed"]
            request["tools"][0]["function"]["parameters"]["properties"]["zone"]["enum"] = ["changed"]

    def change(context: Any, decls: ToolDecls) -> ToolDecls:
        decls["now"].parameters["properties"]["zone"]["enum"] = ["changed"]
        return decls

    with LoopbackProvider([Answer(calls=[Call("now", {"zone": "changed"})])]) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        for hooks, tools in (
            ([], [now]),
            ([Hook()], [now]),
            ([], [Toolset("t", [now]).prepared(change)]),
            ([], [now]),
        ):
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(hooks=hooks)):
                dspy.Predict(Ask)(question="?", tools=tools)
    sent = [request.body["tools"][0]["function"]["parameters"]["properties"] for request in provider.received]
    changed = [properties["zone"].get("enum") for properties in sent]
    assert changed == [None, ["changed"], ["changed"], None]


def test_what_is_kept_is_bounded() -> None:
    """call-cost: Caches are bounded and weak."""
    for number in range(200):
        declared([{"name": f"tool_{number}"}])
    assert len(module._KNOWN) <= 64  # pyright: ignore[reportPrivateUsage]
    assert remembered([{"name": "n", "description": "x" * 70_000}]) is None


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["name", "description", "parameters", "x"]), plain), max_size=2)
)
def test_a_remembered_list_is_the_list_declared(sources: list[Any]) -> None:
    """call-cost: What has changed is declared anew."""
    expected = outcome(lambda: ToolDecls(deepcopy(sources)))
    assert [outcome(lambda: declared(deepcopy(sources))) for _ in range(2)] == [expected] * 2


def outcome(declare: Callable[[], ToolDecls]) -> Any:
    try:
        return declare().to_openai()
    except InvalidToolDecl as refused:
        return refused.code, refused.path
