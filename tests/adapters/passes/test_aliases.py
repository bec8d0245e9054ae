"""Tool names under an alias: reversible, unique and the same everywhere (names travel)."""

import re

import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import ROUTES, history, names_of, send

from sigadapt import ToolCalls, ToolResults
from sigadapt.testing import Answer, Call, Received

TAKEN = {"gemini": "[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"}
"""What a name may be, but on other wires."""
# A declaration refuses a blank name.
names = st.lists(st.text(min_size=1, max_size=90).filter(str.strip), min_size=1, max_size=8, unique=True)


def aliases(given_names: list[str], wire: str = "openai", engine: str = "auto") -> dict[str, str]:
    """The names that tools are sent under."""
    sent = names_of(send(wire, engine, tools=[{"name": name} for name in given_names]).body)
    return dict(zip(given_names, sent, strict=True))


def call_each(received: Received) -> Answer:
    """Call every tool that arrived, on a wire of texts also with what is no JSON."""
    arrived = names_of(received.body)
    bad = [Call(name, "{") for name in arrived] if received.wire in ("openai", "responses") else []
    return Answer(calls=[*(Call(name, {}) for name in arrived), *bad])


@settings(max_examples=share(60))
@given(names, st.sampled_from(ROUTES))
def test_names_travel_and_come_back(given_names: list[str], route: tuple[str, str]):
    """
    request-shaping: No two names share an alias
    request-shaping: A call by an alias comes back under the declared name
    """
    sent = send(*route, call_each, tools=[{"name": name} for name in given_names])
    arrived = names_of(sent.body)
    assert len({*arrived}) == len(given_names)
    assert all(re.fullmatch(TAKEN.get(route[0], "[a-zA-Z0-9_-]{1,64}"), name) for name in arrived)
    assert [call.name for call in sent.out.calls] == given_names
    assert [call.name for call in sent.out.calls.invalid] in ([], given_names)


@settings(max_examples=share(30))
@given(names, names)
def test_an_alias_does_not_depend_on_its_company(some: list[str], others: list[str]):
    """request-shaping: A name has the same alias in every turn."""
    alone, together = aliases(some), aliases(list(dict.fromkeys([*others, *some])))
    assert {name: together[name] for name in some} == alone


@pytest.mark.parametrize("odd", ["files.read", "read files", "läs_fil", "日本", "x" * 65, "9.lives", "a\n"])
def test_what_a_provider_refuses_gets_an_alias(odd: str):
    """request-shaping: A name that a provider would refuse goes out under an alias."""
    assert re.fullmatch("[a-zA-Z][a-zA-Z0-9_-]{0,63}", aliases([odd])[odd])


def test_an_alias_that_is_taken_gets_more_digits():
    """request-shaping: No two names share an alias."""
    first, second = "files_read_601e4eb6", "files_read_601e4eb608f9175e"
    longest = "files_read_601e4eb608f9175e1b03c438fd2f0833"
    for taken, alias in (([], first), ([first], second), ([first, second], longest)):
        assert aliases(["files.read", *taken])["files.read"] == alias


def test_a_name_in_a_conversation_without_tools_goes_out_under_its_alias():
    """request-shaping: Declarations, choice, history and results share the alias."""
    calls = ToolCalls([{"id": "c", "name": "files.read", "args": {}}])
    event = {"question": "q", "calls": calls, "results": ToolResults.of(calls, ["x"]), "answer": "a"}
    sent = send(tools=[], history=history(event))
    [said] = [row for row in sent.body["messages"] if row.get("tool_calls")]
    assert said["tool_calls"][0]["function"]["name"] == "files_read_601e4eb6"
    assert sent.whats == [], "no tool of the request is renamed"
