"""Leniency that was asked for: what it salvages, what it leaves alone, and that it always says so."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Flaw, parse_arguments, repair, unwrap, without_leaked_tokens
from tables import table

from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolDecls
from sigadapt.errors import CallCode

SCHEMA: dict[str, Any] = table(__file__, "SCHEMA")
DECLS = ToolDecls([{"name": "f", "parameters": SCHEMA}])


def bad(arguments: str, code: CallCode | None = None, name: str | None = "f") -> ToolCalls:
    flaw = parse_arguments(arguments)
    code = code or (flaw.code if isinstance(flaw, Flaw) else "schema_mismatch")
    call = InvalidToolCall(id="c", name=name, arguments=arguments, index=0, code=code, message="")
    return ToolCalls(tool_calls=[], invalid=(call,))


@pytest.mark.parametrize(("arguments", "args"), table(__file__, "REPAIRED"))
def test_broken_json_is_repaired_and_marked(arguments: str, args: dict[str, Any]) -> None:
    """asked-for-leniency: Repaired arguments are marked and keep their text."""
    (call,) = repair(bad(arguments))
    assert (call.args, call.arguments, call.altered) == (args, arguments, ("repaired",))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("not json", "invalid_json"),
        ("", "invalid_json"),
        ("[1,", "invalid_json"),
        ('{"city":"Par', "truncated"),
        ('{"city":"a","city":"b"}', "duplicate_key"),
        ("[1]", "not_an_object"),
        ('{"city":"Paris"}{"city":"Rome"}', "invalid_json"),
        ('{"city":"Paris"}\n```\n```json\n{"city":"Rome"}', "invalid_json"),
        ('{}{"city":"Paris"}', "invalid_json"),
        ('{"tags":[{"a":1}]}; {"tags":[]}', "invalid_json"),
        ("{'city':'Paris','city':'Rome'}", "invalid_json"),
        ("{city: Paris, city: Rome}", "invalid_json"),
        ('{"any":{"b":1,"b":2},}', "invalid_json"),
        ('{"city":"Paris","\\u0063ity":"Rome",}', "invalid_json"),
        ('{"city":"Paris","days":1,"days":100,}', "invalid_json"),
        ('{"a":' + "[" * 100_000, "invalid_json"),
    ],
)
def test_what_cannot_be_known_is_left_alone(arguments: str, code: CallCode) -> None:
    """asked-for-leniency: Nothing is invented for what was never sent."""
    calls = bad(arguments, code)
    assert repair(calls) == calls


@pytest.mark.parametrize("args", table(__file__, "KEPT"))
def test_what_fits_as_text_or_never_fits_stays(args: dict[str, Any]) -> None:
    """asked-for-leniency: A text stays a text where its schema takes one."""
    calls = ToolCalls(tool_calls=[ToolCall(id="c", name="f", args=args)])
    assert unwrap(calls, DECLS) == calls


def test_arguments_encoded_twice_are_unwrapped() -> None:
    """asked-for-leniency: Unwrapped arguments are marked and fit their schema."""
    twice = json.dumps('{"city":"Paris"}')
    (call,) = unwrap(bad(twice), DECLS)
    assert (call.args, call.arguments, call.altered) == ({"city": "Paris"}, twice, ("unwrapped",))
    assert unwrap(bad(json.dumps('{"days":"x"}')), DECLS).invalid


@given(st.text())
def test_repair_never_raises_and_never_invents_a_good_call_of_a_good_one(arguments: str) -> None:
    if isinstance(parse_arguments(arguments), Flaw):
        calls = repair(bad(arguments))
        assert len(calls) + len(calls.invalid) == 1
        assert all(call.altered == ("repaired",) and call.arguments == arguments for call in calls)


NAMES = ("f", "get_weather", "g<|x|>")


@pytest.mark.parametrize(("name", "cut"), table(__file__, "LEAKED"))
def test_a_leaked_token_is_cut(name: str, cut: str | None) -> None:
    """asked-for-leniency: A leaked token is cut from a name."""
    good = ToolCalls([ToolCall(id="c", name=name, args={})])
    for calls in (good, bad("{", name=name)):
        (call,) = without_leaked_tokens(calls, NAMES).in_order()
        is_cut = cut not in (None, name)
        assert call.name == (cut or name)
        assert call.altered == (("repaired",) if is_cut else ())
