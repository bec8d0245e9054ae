"""What a check may cost: schemas that multiply it are refused, and long texts where patterns are slow."""

from typing import Any

import pytest
from internals import Flaw
from internals import checking as schema

from sigadapt.errors import InvalidToolDecl

Json = dict[str, Any]


def of(part: Json, **more: Any) -> Json:
    return {"type": "object", "properties": {"a": part}, **more}


def flaw(parameters: Json, args: Json) -> Flaw | None:
    return schema.flaw_in(args, schema.check(parameters, tool="f"), "f")


def twice(keyword: str, below: Json) -> Json:
    """A schema that judges a part of its value by another one at least twice."""
    part = {"properties": {"a": below}}
    return {
        "allOf": {"allOf": [part, part]},
        "anyOf": {"anyOf": [{**part, "required": ["b"]}, part]},
        "oneOf": {"oneOf": [{**part, "required": ["b"]}, part]},
        "if": {"if": part, "then": part, "else": part},
        "patternProperties": {**part, "patternProperties": {"^a": below}},
        "dependentSchemas": {**part, "dependentSchemas": {"a": part}},
        "dependentSchemas and not": {"dependentSchemas": {"a": {"not": part}}, "not": part},
        "contains": {"items": below, "contains": below},
        "unevaluatedProperties": {"allOf": [part, below], "unevaluatedProperties": False},
    }[keyword]


KEYWORDS = (
    *("allOf", "anyOf", "oneOf", "if", "patternProperties"),
    *("dependentSchemas", "dependentSchemas and not", "contains", "unevaluatedProperties"),
)


def chain(keyword: str, levels: int, under: str = "$defs") -> Json:
    """Definitions that each judge a part by the next one twice; none is recursive."""
    defs = {f"D{n}": twice(keyword, {"$ref": f"#/{under}/D{n + 1}"}) for n in range(levels)}
    return of({"$ref": f"#/{under}/D0"}, **{under: {**defs, f"D{levels}": {"type": "string"}}})


def deep(levels: int, leaf: Any) -> Json:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_schemas_that_double_at_each_level_are_refused(keyword: str):
    """tool-declarations: A schema of hostile depth or size is refused."""
    schema.check(chain(keyword, 6), tool="f")
    with pytest.raises(InvalidToolDecl, match="times") as caught:
        schema.check(chain(keyword, 60), tool="f")
    assert caught.value.code == "invalid_schema"


def test_what_stands_under_a_foreign_keyword_counts_where_it_is_referred_to():
    """tool-declarations: A schema of hostile depth or size is refused."""
    with pytest.raises(InvalidToolDecl, match="times"):
        schema.check(chain("allOf", 60, under="x-own"), tool="f")
    with pytest.raises(InvalidToolDecl, match="is not a JSON Schema type"):
        schema.check(of({"$ref": "#/x-own"}, **{"x-own": {"type": "int"}}), tool="f")


def test_shared_and_recursive_definitions_cost_little():
    """tool-declarations: A recursive type stays recursive."""
    wide = {
        f"D{n}": {"properties": {key: {"$ref": f"#/$defs/D{n + 1}"} for key in "abcdefgh"}} for n in range(30)
    }
    schema.check(of({"$ref": "#/$defs/D0"}, **{"$defs": {**wide, "D30": {}}}), tool="f")
    tree = {"properties": {key: {"$ref": "#/$defs/T"} for key in "ab"}, "anyOf": [{"required": ["a"]}, {}]}
    assert flaw(of({"$ref": "#/$defs/T"}, **{"$defs": {"T": tree}}), {"a": {"b": {"a": {}}}}) is None


def test_unions_that_hold_each_other_cost_little():
    """tool-declarations: A recursive type stays recursive."""
    defs: Json = {}
    for union in range(8):  # as in a syntax tree: each kind of node holds nodes of every kind
        kinds = [{"$ref": f"#/$defs/U{other}"} for other in range(8)]
        defs[f"U{union}"] = {
            "anyOf": [
                {"properties": {"op": {"const": f"{union}.{n}"}, "a": {"anyOf": kinds}}, "required": ["op"]}
                for n in range(10)
            ]
        }
    tree = of({"$ref": "#/$defs/U0"}, **{"$defs": defs})
    good: Json = {"op": "0.9"}
    for level in range(20):
        good = {"op": f"{level % 8}.5", "a": good}
    assert flaw(tree, {"a": {"op": "0.1", "a": good}}) is None


LOOKS_AHEAD = r"^(?=.*\d)(?!0).+$"


@pytest.mark.parametrize(
    ("pattern", "good", "hostile"),
    [
        (r"^(?:(?=.*b)a)*b$", "a" * 1_000 + "b", "a" * 200_000 + "b"),
        (r"(?=.*b)b|c", "ab", "a" * 1_000_000),
        (r"^(?:(?=(?:(?=.*b)a)*)a)*b$", "a" * 100 + "b", "a" * 40_000 + "b"),
        (LOOKS_AHEAD, "a1" * 9_000, "a" * 100_000),
    ],
)
def test_texts_are_bounded_by_their_patterns(pattern: str, good: str, hostile: str):
    """tool-call-outputs: A check that cannot be finished does not fit."""
    assert flaw(of({"pattern": pattern}), {"a": good}) is None
    found = flaw(of({"pattern": pattern}), {"a": hostile})
    assert found is not None
    assert "could not be checked" in found.message


@pytest.mark.parametrize("pattern", [r"^[a-z0-9]{1,64}$", r"^\S+@\S+\.\S+$", r"^.{1,4000}$", r"^[^\x00]*$"])
def test_ordinary_patterns_take_long_texts(pattern: str):
    """tool-declarations: A pattern that would blow up ends in a verdict."""
    found = flaw(of({"pattern": pattern}), {"a": "x" * 40_000})
    assert found is None or "could not be checked" not in found.message


GIVES_UP = r"^(a|aa)+(?<!b)\1$"
NO_VERDICT = "a" * 60 + "!"


@pytest.mark.parametrize(
    "part",
    [
        {"not": {"pattern": GIVES_UP}},
        {"if": {"pattern": GIVES_UP}, "then": {"maxLength": 1}},
        {"oneOf": [{"pattern": GIVES_UP}, {"type": "string"}]},
        {"anyOf": [{"not": {"pattern": GIVES_UP}}, {"type": "null"}]},
    ],
)
def test_giving_up_on_a_pattern_never_counts_as_fitting(part: Json):
    """tool-call-outputs: A check that cannot be finished does not fit."""
    assert flaw(of(part), {"a": NO_VERDICT})
    assert flaw(of(part), {"a": "b"}) is None


def test_giving_up_on_the_pattern_of_a_key_never_counts_as_fitting():
    """tool-call-outputs: A check that cannot be finished does not fit."""
    keys = {"type": "object", "patternProperties": {GIVES_UP: False}}
    assert flaw(keys, {NO_VERDICT: 1})
    assert flaw(keys, {"b": 1}) is None
