"""Values that a model wrote as text: literals as Python reads them, and text as its schema types it."""

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from support import json_values

from sigadapt.response import choice_from_text


def literal(written: str) -> Any:
    """Return the value of a call's argument that is written as a literal; ValueError if the call is none."""
    calls = choice_from_text(f"[f(a={written})]", [{"name": "f"}]).tool_calls
    if calls is None or calls.invalid:
        raise ValueError(written)
    return calls[0].args["a"]


def typed(raw: str, schema: dict[str, Any], **root: Any) -> Any:
    """Return the value of a call's parameter that is written as a text."""
    text = f"<function=f>\n<parameter=a>\n{raw}\n</parameter>\n</function>"
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}, **root}}
    calls = choice_from_text(text, [tool]).tool_calls
    assert calls
    return calls[0].args["a"]


@given(value=json_values)
def test_a_literal_reads_as_python_reads_it(value: Any) -> None:
    """text-calls: Nothing is evaluated."""
    written = repr(value)
    read = literal(written)
    assert read == ast.literal_eval(written)
    assert repr(read) == written


@given(value=json_values.filter(lambda value: "\\ud" not in json.dumps(value)))
def test_a_literal_may_be_json(value: Any) -> None:
    written = json.dumps(value)
    assert json.dumps(literal(written)) == written


@pytest.mark.parametrize(
    "written",
    [
        *("", "x", "os.system('a')", "[1", "[1 2]", "{'a'", "{'a': 1", "{'a': 1 'b': 2}", "'open", '"""open'),
        *(
            "f(1)",
            "{[1]: 2}",
            "'a' + 'b'",
            "'a'.join('b')",
            "-",
            "[" * 300,
            "1" * 5000,
            "lambda: 1",
            "__import__",
        ),
    ],
)
def test_what_is_no_literal_is_refused(written: str) -> None:
    """text-calls: Nothing is evaluated."""
    with pytest.raises(ValueError):  # noqa: PT011  (any)
        literal(written)


@pytest.mark.parametrize(
    ("raw", "schema", "value"),
    [
        ("42", {"type": "string"}, "42"),
        ("null", {"type": "string"}, "null"),
        ("null", {"type": ["string", "null"]}, None),
        ("None", {"type": ["integer", "null"]}, None),
        ("None", {"type": ["string", "null"]}, "None"),
        ("5.0", {"type": "integer"}, 5),
        ("4.5", {"type": "integer"}, "4.5"),
        ("1e999", {"type": "number"}, "1e999"),
        ("TRUE", {"type": "boolean"}, True),
        ("yes", {"type": "boolean"}, "yes"),
        ("7", {"type": ["string", "integer"]}, 7),
        ('{"a": 1}', {"type": ["string", "object"]}, {"a": 1}),
        ("{'a': True}", {"type": "object"}, {"a": True}),
        ("[1,", {"type": "array"}, "[1,"),
        ("[1]", {"type": "object"}, "[1]"),
        ("[1]", {}, [1]),
        ("1", {}, "1"),
        ("1", {"enum": [1, 2]}, 1),
        ("1", {"enum": ["1", "2"]}, "1"),
        ("3", {"$ref": "#/$defs/n"}, 3),
        ("3", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3),
        ("3", {"type": "integer", "nullable": True}, 3),
    ],
)
def test_text_is_typed_by_its_schema(raw: str, schema: dict[str, Any], value: Any) -> None:
    """text-calls: The schema types what the format does not."""
    read = typed(raw, schema, **{"$defs": {"n": {"type": "integer"}}})
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize(
    "written", [r"'a\N{EM DASH}b'", r"'\N{latin small letter e with acute}'", r"'\033[1m'", r"'\0'"]
)
def test_escapes_mean_what_python_means(written: str) -> None:
    """text-calls: Escapes mean what Python means."""
    assert literal(written) == ast.literal_eval(written)


@pytest.mark.parametrize("written", [r"'\N{NO SUCH CHARACTER}'", r"'\N{'", r"'\N{}'"])
def test_a_name_of_no_character_is_no_value(written: str) -> None:
    """text-calls: Escapes mean what Python means."""
    with pytest.raises(ValueError, match="N"):
        literal(written)
    assert literal(r"'C:\New'") == r"C:\New"
