"""Tool names under an alias: reversible, unique and the same everywhere (rule 10)."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import LITELLM, NATIVE

from sigadapt import ToolCall, ToolCalls
from sigadapt.adapters.request.aliases import aliases, names_in, renamed
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.response.typed_calls import with_declared_names
from sigadapt.providers.provider import Route
from sigadapt.signatures.calls import InvalidToolCall

PLAIN = "[a-zA-Z0-9_-]+"
PROFILES = [*NATIVE.values(), *LITELLM.values()]

names = st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=8, unique=True)


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


@given(names, st.sampled_from(PROFILES))
def test_aliases_fit_and_never_collide(given_names: list[str], profile: Route):
    """request-shaping: No two names share an alias."""
    table = aliases(given_names, profile.names, profile.longest_name)
    sent = [table.get(name, name) for name in given_names]
    assert len(set(sent)) == len(given_names)
    assert all(re.fullmatch(profile.names, name) and len(name) <= profile.longest_name for name in sent)


@given(names, names)
def test_an_alias_does_not_depend_on_its_company(some: list[str], others: list[str]):
    """request-shaping: A name has the same alias in every turn."""
    alone = {name: aliases([name], PLAIN, 64).get(name) for name in some}
    together = aliases([*others, *some], PLAIN, 64)
    assert {name: together.get(name) for name in some} == alone


@pytest.mark.parametrize(
    "odd", ["files.read", "read files", "läs_fil", "日本", "x" * 65, "", "9.lives", "\ud800", "a\n"]
)
def test_what_a_provider_refuses_gets_an_alias(odd: str):
    """request-shaping: A name that a provider would refuse goes out under an alias."""
    (alias,) = aliases([odd], PLAIN, 64).values()
    assert re.fullmatch("[a-zA-Z][a-zA-Z0-9_-]{0,63}", alias)


def test_a_name_that_fits_is_left_alone():
    """request-shaping: A name that a provider takes goes out as it is."""
    assert aliases(["search", "read-file_2", "x" * 64], PLAIN, 64) == {}
    assert aliases(["files.read"], NATIVE["gemini"].names, 64) == {}


def test_a_declared_name_that_looks_like_an_alias_keeps_its_own():
    """request-shaping: No two names share an alias."""
    (taken,) = aliases(["files.read"], PLAIN, 64).values()
    table = aliases(["files.read", taken], PLAIN, 64)
    assert taken not in table
    assert table["files.read"] != taken


@given(names)
def test_names_are_changed_everywhere(given_names: list[str]):
    """request-shaping: Declarations, choice, history and results share the alias."""
    request: Request = {
        "model": "m",
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": f"call_{number}", "function": {"name": name, "arguments": "{}"}}
                    for number, name in enumerate(given_names)
                ],
            },
            *(
                {"role": "tool", "tool_call_id": f"call_{number}", "name": name, "content": ""}
                for number, name in enumerate(given_names)
            ),
        ],
        "tools": [tool(name) for name in given_names],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [tool(name) for name in given_names]},
        },
    }
    before = repr(request)
    table = aliases(names_in(request), PLAIN, 64)
    changed: Any = renamed(request, table)
    expected = [table.get(name, name) for name in given_names]
    said, *results = changed["messages"]
    assert [call["function"]["name"] for call in said["tool_calls"]] == expected
    assert [row["name"] for row in results] == expected
    assert [one["function"]["name"] for one in changed["tools"]] == expected
    chosen = changed["tool_choice"]["allowed_tools"]["tools"]
    assert [one["function"]["name"] for one in chosen] == expected
    assert repr(request) == before, "the given request is not changed"


@given(names)
def test_names_come_back(given_names: list[str]):
    """request-shaping: A call by an alias comes back under the declared name."""
    table = aliases(given_names, PLAIN, 64)
    flaw: Any = {"arguments": "{", "code": "invalid_json", "message": "is no JSON"}
    sent = [table.get(name, name) for name in given_names]
    calls = ToolCalls(
        tool_calls=[ToolCall(id=f"call_{n}", name=name, args={}) for n, name in enumerate(sent)],
        invalid=tuple(
            InvalidToolCall(id=f"bad_{n}", name=name, index=n, **flaw) for n, name in enumerate(sent)
        ),
    )
    back = with_declared_names(calls, table)
    assert [call.name for call in back] == given_names
    assert [call.name for call in back.invalid] == given_names


def test_calls_without_aliases_come_back_as_they_are():
    """Calls are copied only where a name in them may change."""
    calls = ToolCalls([ToolCall(id="call_1", name="a", args={})])
    assert with_declared_names(calls, {}) is calls
