"""A model's own response template is a format: read whole, streamed, cut, and refused if it isn't covered."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.errors import InvalidOption
from sigadapt.response import ResponseTemplate, choice_from_text

TOOLS = [
    {"name": "get_weather", "parameters": {"properties": {"days": {"type": "integer"}}}},
    {"name": "now"},
]
SHAPE = {"function": {"name": "{name}", "arguments": "{content}"}}


def template(calls: Any, **more: Any) -> dict[str, Any]:
    fields = {
        "reasoning_content": {"open": "<muse>", "close": "</muse>"},
        "tool_calls": {"repeats": True, **calls},
        "content": {"close_pattern": r"\s*<stop>"},
    }
    return {"start_anchor": "<bot>", "fields": fields, **more}


OBJECT = template(
    {"open": "{{do", "close": "}}do", "content": "json", "transform": {"function": "{content}"}}
)
NAMED = template(
    {"open_pattern": r"\s*<do (?P<name>\w+)>", "close": "</do>", "content": "json", "transform": SHAPE}
)
TAGS = template(
    {
        "open_pattern": r"§(?P<name>\w+)",
        "close": "§§",
        "content": "xml-inline",
        "transform": SHAPE,
        "content_args": {"tag_pattern": r"<(?P<key>\w+)::(?P<value>.*?)::>"},
    }
)
MARKS = template(
    {
        "open_pattern": r"<use (?P<name>\w+)>",
        "close": ["</use>", "<halt>"],
        "content": "json",
        "content_args": {"unquoted_keys": True, "string_delims": [["<q>", "</q>"]]},
        "transform": SHAPE,
    }
)
LINES = template(
    {"open_pattern": r"<l (?P<name>\w+)>", "close": "</l>", "content": "kv-lines", "transform": SHAPE}
)
PYTHON = template(
    {"open": "<py>", "close": "</py>", "content": "python-call-list", "transform_each": True}
    | {"transform": {"function": {"name": "{name}", "arguments": "{arguments}"}}}
)
ARGS = {"city": "Paris", "days": 2}
CALLS = [
    (OBJECT, "{{do" + json.dumps({"name": "get_weather", "arguments": ARGS}) + "}}do"),
    (NAMED, f"<do get_weather>{json.dumps(ARGS)}</do>"),
    (TAGS, "§get_weather<city::Paris::><days::2::>§§"),
    (MARKS, "<use get_weather>{city:<q>Paris</q>,days:2}<halt>"),
    (LINES, "<l get_weather>city: Paris\ndays: 2</l>"),
    (PYTHON, '<py>[get_weather(city="Paris", days=2)]</py>'),
]


@pytest.mark.parametrize(("spec", "call"), CALLS)
def test_a_template_is_a_format(spec: Any, call: str) -> None:
    """text-calls: A model's own template is a format."""
    text = f"<muse>Hm.</muse>I look.{call}<stop>"
    choice = choice_from_text(text, TOOLS, formats=[ResponseTemplate(spec)])
    assert (choice.text, choice.reasoning) == ("I look.", "Hm.")
    assert choice.tool_calls is not None
    assert [(each.name, each.args) for each in choice.tool_calls] == [("get_weather", ARGS)]


@pytest.mark.parametrize(("spec", "call"), CALLS)
def test_a_cut_or_undeclared_call_is_bad(spec: Any, call: str) -> None:
    """text-calls: A model's own template is a format."""
    for text in (call[: len(call) * 2 // 3], call.replace("get_weather", "fly")):
        choice = choice_from_text(text, TOOLS, formats=[ResponseTemplate(spec)])
        assert choice.text is None
        assert choice.tool_calls is not None
        assert [len(choice.tool_calls), len(choice.tool_calls.invalid)] == [0, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"colour": 1},
        {"fields": {}},
        {"version": 2},
        {"fields": {"content": {}, "tool_calls": {"content": "json"}}},
        {"fields": {"tool_calls": {"open_pattern": "(", "content": "json"}}},
        {"fields": {"tool_calls": {"open_pattern": "(a+)+", "content": "json"}}},
        {"fields": {"tool_calls": {"open": "x", "content": "yaml"}}},
        {"fields": {"tool_calls": {"open": "x", "open_pattern": "x"}}},
        {"fields": {"tool_calls": {"open": "", "content": "json"}}},
        {"fields": {"tool_calls": {"open": 1, "content": "json"}}},
        {"fields": {"tool_calls": {"open": ["x", 1], "content": "json"}}},
        {"fields": {"tool_calls": {"open": "x", "content": ["json"]}}},
        {"fields": {"tool_calls": {"open": "x", "content": "json", "content_args": 1}}},
        {"fields": {"tool_calls": {"open": "x", "content": "json", "content_args": {"tag_pattern": 1}}}},
    ],
)
def test_what_is_not_covered_is_refused(change: Any) -> None:
    """text-calls: A template that isn't covered is refused."""
    with pytest.raises(InvalidOption):
        ResponseTemplate({**TAGS, **change})


@given(
    args=st.dictionaries(
        st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.text(), max_size=4
    )
)
def test_any_arguments_come_back(args: dict[str, Any]) -> None:
    """text-calls: A model's own template is a format."""
    text = f"<do now>{json.dumps(args)}</do>"
    choice = choice_from_text(text, TOOLS, formats=[ResponseTemplate(NAMED)])
    if "</do>" in json.dumps(args):
        return
    assert choice.tool_calls is not None
    assert choice.tool_calls[0].args == args
