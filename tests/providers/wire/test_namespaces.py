"""OpenAI's namespaces: every deferred function in one of at most ten."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from internals import in_namespaces

from sigadapt import ToolDecls, Toolset

Json = dict[str, Any]
names = st.lists(st.text("abAB_-1", min_size=1, max_size=6), unique=True, max_size=60)


def spaces_of(tools: list[Json]) -> dict[str, list[str]]:
    spaces: dict[str, list[str]] = {}
    for tool in tools:
        if "namespace" in tool:
            spaces.setdefault(tool["namespace"]["name"], []).append(tool["function"]["name"])
    return spaces


@given(names, names)
def test_each_function_stands_in_one_namespace(deferred: list[str], loaded: list[str]):
    """tool-search: OpenAI's deferred functions stand in namespaces."""
    loaded = [name for name in loaded if name not in deferred]
    decls = Toolset("t", [{"name": name} for name in [*deferred, *loaded]]).deferred(*loaded).resolve()
    tools = decls.to_openai()
    before = json.dumps(tools)
    grouped = in_namespaces(tools)
    assert json.dumps(tools) == before
    assert grouped == in_namespaces(tools)
    spaces = spaces_of(grouped)
    assert sorted(name for space in spaces.values() for name in space) == sorted(deferred)
    assert all(len(space) <= 10 for space in spaces.values())
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in spaces)
    assert not spaces.keys() & {*deferred, *loaded}
    told = {
        tool["namespace"]["name"]: tool["namespace"]["description"] for tool in grouped if "namespace" in tool
    }
    assert all(", ".join(space) in told[name] for name, space in spaces.items())


def test_names_that_begin_alike_stand_together():
    """tool-search: OpenAI's deferred functions stand in namespaces."""
    many = [f"crm_{act}_{thing}" for act in ("find", "get") for thing in "abcdefg"]
    decls = Toolset("t", [{"name": name} for name in [*many, "now"]]).deferred().resolve()
    spaces = spaces_of(in_namespaces(decls.to_openai()))
    assert {name: len(space) for name, space in spaces.items()} == {"crm": 10, "crm_to_now": 5}


def test_a_namespace_of_the_user_s_stays():
    """tool-search: OpenAI's deferred functions stand in namespaces."""
    late = {"type": "function", "name": "f", "parameters": {"type": "object"}, "defer_loading": True}
    mine = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [late]}
    other: Json = {"name": "crm_find", "defer_loading": True, "input_schema": {}}
    tools = ToolDecls([mine, other]).to_openai()
    grouped = in_namespaces(tools)
    assert grouped[0] == tools[0]
    assert grouped[1]["namespace"]["name"] == "crm_find_2"
