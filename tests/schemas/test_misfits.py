"""What a bad call is told: the place and the reason, found in bounded work."""

from typing import Any

import pytest
from tables import table

from sigadapt import ToolDecl

Json = dict[str, Any]


def alternative(op: str, **properties: Any) -> Json:
    return {
        "type": "object",
        "properties": {"op": {"const": op}, **properties},
        "required": ["op", *properties],
    }


EXPRESSION: Json = {"$ref": "#/$defs/Expression"}
ALTERNATIVES = [
    alternative("and", args={"type": "array", "items": EXPRESSION}),
    alternative("or", args={"type": "array", "items": EXPRESSION}),
    alternative("not", arg=EXPRESSION),
    alternative("eq", field={"type": "string"}, value={"type": "string"}),
]


def filters(keyword: str = "anyOf") -> Json:
    return {
        "type": "object",
        "properties": {"where": EXPRESSION},
        "$defs": {"Expression": {keyword: ALTERNATIVES}},
    }


def nested(depth: int, leaf: Any = 5) -> Json:
    where: Json = {"op": "eq", "field": "a", "value": leaf}
    for level in range(depth):
        where = {"op": ("and", "or")[level % 2], "args": [where]}
    return {"where": where}


def told(parameters: Json, args: Json) -> tuple[str | None, str]:
    found = ToolDecl("f", parameters=parameters).flaw_of(args)
    assert found is not None
    assert found.code == "schema_mismatch"
    return found.path, found.message.removeprefix("the arguments do not fit f: ")


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize("depth", [0, 1, 12, 60])
def test_one_wrong_leaf_is_told_at_its_place(depth: int, keyword: str):
    """tool-call-outputs: The place of a wrong leaf is told at any depth."""
    path, message = told(filters(keyword), nested(depth))
    assert path == "/where" + "/args/0" * depth + "/value"
    assert message == f'{path}: 5 is not of type "string"'
    assert ToolDecl("f", parameters=filters(keyword)).misfits(nested(depth)) == {"where"}


def test_a_place_out_of_sight_is_told_by_the_innermost_around_it():
    """tool-call-outputs: What is told of a bad call has a readable length."""
    path, message = told(filters(), nested(98))
    assert path is not None
    assert path.startswith("/where/args/0/args")
    assert ToolDecl("f", parameters=filters()).misfits(nested(98)) == {"where"}
    assert len(path) <= 500
    assert len(message) < 700
    deep: Any = 1
    for _ in range(150):
        deep = {"k" * 5_000: deep}
    path, message = told({"type": "object", "additionalProperties": {"$ref": "#"}}, deep)
    assert path == ""
    assert len(message) < 700


CASES: list[tuple[Json, Any, list[str | int], str]] = table(__file__, "CASES")


@pytest.mark.parametrize(("part", "value", "keys", "words"), CASES)
def test_every_keyword_has_its_place_and_reason(part: Json, value: Any, keys: list[Any], words: str):
    """tool-call-outputs: Calls are checked against the declarations."""
    path, message = told({"type": "object", "properties": {"p": part}}, {"p": value})
    assert path == "/".join(map(str, ["/p", *keys]))
    assert words in message


# All that is told of a value at `/p`, in its order
WHOLE: list[tuple[Json, Any, str]] = table(__file__, "WHOLE")


@pytest.mark.parametrize(("part", "value", "words"), WHOLE)
def test_every_misfit_is_told_once_in_its_order(part: Json, value: Any, words: str):
    """tool-call-outputs: Calls are checked against the declarations."""
    assert told({"type": "object", "properties": {"p": part}}, {"p": value})[1] == words


def test_schemas_of_older_drafts_are_told_of_too():
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}},
        "dependencies": {"a": ["b"], "b": {"required": ["c"]}},
    }
    assert told(old, {"a": ["x", "y"], "b": 1, "c": 1})[0] == "/a/1"
    assert '"b"' in told(old, {"a": []})[1]
    assert '"c"' in told(old, {"b": 1})[1]
    misfits = '/a/0: 1 is not of type "string"; "b" is a required property'
    assert told(old, {"a": [1]})[1] == misfits
