"""What a format says is read back as it was, whatever the tools, the arguments and the text beside."""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

import json
import string
from typing import Any

import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from support import json_values
from text_cases import WRITERS

from sigadapt import Choice
from sigadapt.response import choice_from_text

Json = dict[str, Any]

no_surrogates = st.characters(exclude_categories=["Cs"])
names = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=20).filter(
    lambda name: name.strip(".-") == name
)
plain_keys = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=8)
any_keys = plain_keys | st.text(no_surrogates, max_size=6)
MARKUP = [
    *("</parameter>", "</function>", "<parameter=a>", "</tool_call>", "</arg_value>", "<arg_key>", "```"),
    *("\n", "}", '"', "<think>", "</think>", "[TOOL_CALLS]", "<tool_call>", "null", "true", "42", "'", "`"),
    *("\\", "<![CDATA["),
]
markup = st.sampled_from(MARKUP)
texts = st.lists(markup | st.text(no_surrogates, max_size=6), max_size=4).map("".join)
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "integer": st.integers(),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(texts | st.integers(), max_size=3),
    "object": st.dictionaries(any_keys, texts | st.none(), max_size=3),
}


@st.composite
def turns(draw: st.DrawFn) -> tuple[dict[str, Json], list[tuple[str, Json]]]:
    """Declared tools, and valid calls of them."""
    schemas: dict[str, Json] = {}
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        keys = draw(st.lists(any_keys, max_size=4, unique=True))
        kinds = st.lists(st.sampled_from(sorted(TYPES)), max_size=2, unique=True)
        schemas[name] = {"type": "object", "properties": {key: _schema(draw(kinds)) for key in keys}}
    calls: list[tuple[str, Json]] = []
    for name in draw(st.lists(st.sampled_from(sorted(schemas)), min_size=1, max_size=3)):
        args = {key: draw(_values(schema)) for key, schema in schemas[name]["properties"].items()}
        calls.append((name, args))
    return schemas, calls


def _schema(kinds: list[str]) -> Json:
    return {} if not kinds else {"type": kinds[0] if len(kinds) == 1 else kinds}


def _values(schema: Json) -> st.SearchStrategy[Any]:
    kinds = schema.get("type")
    if kinds is None:
        return json_values.filter(lambda value: "\ud800" not in str(value)) | texts
    return st.one_of([TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)])


plain_texts = st.text(
    st.characters(
        categories=["L", "N", "P", "Zs"], exclude_characters="<>[]{}`\"'|◁▷“”‘’«»", include_characters="\n"
    ),
    max_size=60,
).filter(lambda text: text == text.strip())


def said(choice: Choice) -> list[tuple[str, str]]:
    assert choice.tool_calls is None or choice.tool_calls.invalid == ()
    return [(call.name, json.dumps(call.args)) for call in choice.tool_calls or ()]


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=share(30))
@given(turn=turns(), text=plain_texts)
def test_what_is_said_is_read_back(
    name: str, turn: tuple[dict[str, Json], list[tuple[str, Json]]], text: str
) -> None:
    """text-calls: What a format says is read back as it was."""
    schemas, calls = turn
    write = WRITERS[name]
    assert write([], schemas) == ""
    written = f"{text}\n\n{write(calls, schemas)}" if text else write(calls, schemas)
    tools = [{"name": tool, "parameters": schema} for tool, schema in schemas.items()]
    choice = choice_from_text(written, tools, formats=[name])
    assert said(choice) == [(tool, json.dumps(args)) for tool, args in calls]
    assert choice.text == (text or None)
