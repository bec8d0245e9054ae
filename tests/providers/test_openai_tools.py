"""OpenAI's namespaces: every deferred function in one of at most ten."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Ask, lm_of

import sigadapt
from sigadapt import ToolDecls, Toolset
from sigadapt.testing import Answer, LoopbackProvider

Json = dict[str, Any]
names = st.lists(st.text("abAB_-1", min_size=1, max_size=6), unique=True, max_size=60)


SEARCH = {"type": "tool_search"}


@pytest.fixture(scope="module")
def sent() -> Iterator[Callable[[ToolDecls], list[Json]]]:
    """What arrives of declared tools."""
    with LoopbackProvider(lambda _: Answer(text="{}")) as provider:
        lm = lm_of(provider, "responses", cache=False)

        def send(decls: ToolDecls) -> list[Json]:
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
                dspy.Predict(Ask)(question="Hm?", tools=decls)
            return provider.received[-1].body["tools"]

        yield send


def spaces_of(tools: list[Json]) -> dict[str, list[str]]:
    """The names of the functions in each namespace."""
    return {
        tool["name"]: [each["name"] for each in tool["tools"]]
        for tool in tools
        if tool["type"] == "namespace"
    }


def deferred_of(names: list[str], loaded: list[str]) -> ToolDecls:
    decls = Toolset("t", [{"name": name} for name in [*names, *loaded]]).deferred(*loaded).resolve()
    return ToolDecls([*decls.entries, SEARCH])


@given(deferred=names, loaded=names)
def test_each_function_stands_in_one_namespace(
    sent: Callable[[ToolDecls], list[Json]], deferred: list[str], loaded: list[str]
):
    """tool-search: OpenAI's deferred functions stand in namespaces."""
    loaded = [name for name in loaded if name not in deferred]
    decls = deferred_of(deferred, loaded)
    before = json.dumps(decls.to_openai())
    grouped = sent(decls)
    assert json.dumps(decls.to_openai()) == before
    assert grouped == sent(deferred_of(deferred, loaded))
    spaces = spaces_of(grouped)
    assert sorted(name for space in spaces.values() for name in space) == sorted(deferred)
    assert all(len(space) <= 10 for space in spaces.values())
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in spaces)
    assert not spaces.keys() & {*deferred, *loaded}
    told = {tool["name"]: tool["description"] for tool in grouped if tool["type"] == "namespace"}
    assert all(", ".join(space) in told[name] for name, space in spaces.items())
