"""Tool names under an alias: reversible, unique and the same everywhere (names travel)."""

import re
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Request, Route, Turn, lower
from support import LITELLM, NATIVE, Ask, lm_of

import sigadapt
from sigadapt import Change, ToolDecls
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

CHAT, ANTHROPIC = NATIVE["openai-chat"], NATIVE["anthropic"]
PROFILES = [*NATIVE.values(), *LITELLM.values()]

names = st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=8, unique=True)


def with_longest(name: int) -> Route:
    """A route whose names are so long at most."""
    return CHAT._replace(names=CHAT.names._replace(longest=name))


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def aliases(given_names: list[str], route: Route = CHAT) -> dict[str, str]:
    """The aliases under which a route sends tools."""
    rows = [{"role": "user", "content": "Hi."}]
    return dict(lower({"model": "m", "messages": rows, "tools": [*map(tool, given_names)]}, route).names)


@given(names, st.sampled_from(PROFILES))
def test_aliases_fit_and_never_collide(given_names: list[str], profile: Route):
    """request-shaping: No two names share an alias."""
    table = aliases(given_names, profile)
    sent = [table.get(name, name) for name in given_names]
    assert len(set(sent)) == len(given_names)
    assert all(re.fullmatch(profile.names.pattern, name) for name in sent)
    assert max(map(len, sent), default=0) <= profile.names.longest


@given(names, names)
def test_an_alias_does_not_depend_on_its_company(some: list[str], others: list[str]):
    """request-shaping: A name has the same alias in every turn."""
    alone = {name: aliases([name]).get(name) for name in some}
    together = aliases([*others, *some])
    assert {name: together.get(name) for name in some} == alone


@pytest.mark.parametrize(
    "odd", ["files.read", "read files", "läs_fil", "日本", "x" * 65, "", "9.lives", "\ud800", "a\n"]
)
def test_what_a_provider_refuses_gets_an_alias(odd: str):
    """request-shaping: A name that a provider would refuse goes out under an alias."""
    (alias,) = aliases([odd]).values()
    assert re.fullmatch("[a-zA-Z][a-zA-Z0-9_-]{0,63}", alias)


def test_an_alias_that_is_taken_gets_more_digits_and_then_a_number():
    """request-shaping: No two names share an alias."""
    first, second, third = "files_read_601e4eb6", "files_read_601e4eb608f9175e", "fil_601e4eb6"
    assert aliases(["files.read", first]) == {"files.read": second}
    longer = aliases(["files.read", first, second])
    assert longer == {"files.read": "files_read_601e4eb608f9175e1b03c438fd2f0833"}
    assert aliases(["files.read", third], with_longest(12)) == {"files.read": "fil_75cc366a"}
    assert aliases(["files.read", "files_rea_601e4eb6"], with_longest(18)) == {
        "files.read": "f_601e4eb608f9175e"
    }
    assert aliases(["files.read", "files_re_601e4eb6"], with_longest(17)) == {
        "files.read": "files_re_75cc366a"
    }


def made(call_id: str, name: str = "f") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def with_sendable_ids(request: Request) -> tuple[Request, list[Change]]:
    """A request as it goes to Anthropic, and the changes of ids."""
    sent = lower(request, ANTHROPIC)
    return sent.request, [change for change in sent.changes if change.where.endswith("/id")]


def conversation(*turns: list[str]) -> Request:
    """A conversation in which each turn makes calls with the given ids, and each call has its result."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hi."}]
    for ids in turns:
        turn = Turn(text="So.", state={"dialect": "openai-chat", "blocks": [], "ids": ids})
        messages.append(
            {"role": "assistant", "content": "So.", "tool_calls": [*map(made, ids)], "turn": turn}
        )
        messages += ({"role": "tool", "tool_call_id": each, "name": "f", "content": each} for each in ids)
    return {"model": "m", "messages": messages}


def ids_of(request: Request) -> list[list[str]]:
    """The ids of each message: of a turn's calls and state, or of a result."""
    found: list[list[str]] = []
    for row in request["messages"][1:]:
        if row["role"] == "tool":
            found.append([row["tool_call_id"]])
            continue
        found.append([call["id"] for call in row["tool_calls"]])
        assert row["turn"].state["ids"] == found[-1]
    return found


def test_an_id_twice_in_one_turn_goes_to_its_results_in_order():
    """conversations: An id that comes again in a later turn goes out under an alias."""
    changed, found = with_sendable_ids(conversation(["a", "a"]))
    second = found[0].why.split("'")[-2]
    assert ids_of(changed) == [["a", second], ["a"], [second]]
    request = conversation(["a", "a"])
    request["messages"].append({"role": "tool", "tool_call_id": "a", "name": "f", "content": "more"})
    request["messages"].append({"role": "tool", "tool_call_id": "unknown", "name": "f", "content": "?"})
    assert ids_of(with_sendable_ids(request)[0])[-2:] == [[second], ["unknown"]]


@given(names)
def test_names_are_changed_everywhere(given_names: list[str]):
    """request-shaping: Declarations, choice, history and results share the alias."""
    request: Request = {
        "model": "m",
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [made(f"call_{number}", name) for number, name in enumerate(given_names)],
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
    sent = lower(request, CHAT)
    changed: Any = sent.request
    table = sent.names
    expected = [table.get(name, name) for name in given_names]
    said, *results = changed["messages"]
    assert [call["function"]["name"] for call in said["tool_calls"]] == expected
    assert [row["name"] for row in results] == expected
    assert [one["function"]["name"] for one in changed["tools"]] == expected
    chosen = changed["tool_choice"]["allowed_tools"]["tools"]
    assert [one["function"]["name"] for one in chosen] == expected
    assert repr(request) == before, "the given request is not changed"


def call_each(received: Received) -> Answer:
    """Call every tool that arrived, with arguments and with what is no JSON."""
    arrived = [each["function"]["name"] for each in received.body["tools"]]
    good, bad = [Call(name, {}) for name in arrived], [Call(name, "{") for name in arrived]
    return Answer(calls=[*good, *bad])


@given(names.filter(lambda some: all(map(str.strip, some))))  # a declaration refuses a blank name
def test_names_come_back(given_names: list[str]):
    """request-shaping: A call by an alias comes back under the declared name."""
    decls = ToolDecls([{"name": name} for name in given_names])
    adapter = sigadapt.ChatAdapter(on_invalid="keep", tool_calling="native")
    with LoopbackProvider(call_each) as provider, dspy.context(lm=lm_of(provider), adapter=adapter):
        out: Any = dspy.Predict(Ask)(question="Hm?", tools=decls)
    assert [call.name for call in out.calls] == given_names
    assert [call.name for call in out.calls.invalid] == given_names
