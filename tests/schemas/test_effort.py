"""What a check may cost: counted before it starts, and refused where it is too much."""

from collections.abc import Callable
from typing import Any

import pytest

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import schema
from sigadapt.schemas.checking.effort import MAX_JUDGED, MAX_STEPS, Effort, extent_of, is_affordable
from sigadapt.schemas.json_values import Json


def of(part: Json, **more: Any) -> Json:
    return {"type": "object", "properties": {"a": part}, **more}


def effort(parameters: Json) -> Effort:
    return schema.check(parameters, tool="f").effort


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
    assert effort(chain(keyword, 6)).of_value >= 2**6
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
    assert effort(of({"$ref": "#/$defs/D0"}, **{"$defs": {**wide, "D30": {}}})).of_value < 200
    tree = {"properties": {key: {"$ref": "#/$defs/T"} for key in "ab"}, "anyOf": [{"required": ["a"]}, {}]}
    told = effort(of({"$ref": "#/$defs/T"}, **{"$defs": {"T": tree}}))
    assert told.recursive
    assert told.of_value < 20


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
    assert effort(tree).of_value < 2_000
    assert effort(tree).of_character == 0
    good: Json = {"op": "0.9"}
    for level in range(20):
        good = {"op": f"{level % 8}.5", "a": good}
    assert flaw(tree, {"a": {"op": "0.1", "a": good}}) is None


def test_a_check_that_would_take_too_long_does_not_fit():
    """tool-call-outputs: A check that cannot be finished does not fit."""
    doubling = chain("allOf", 30)
    assert MAX_STEPS < effort(doubling).of_value < MAX_JUDGED
    assert flaw(doubling, deep(10, {})) is None
    assert flaw(doubling, {**deep(10, {}), **{f"k{n}": n for n in range(3_000)}}) is None
    found = flaw(doubling, deep(31, "x"))
    assert found is not None
    assert found.path is None
    assert found.message == "the arguments of f could not be checked: it would take too long"


def test_references_are_resolved_once_to_count_the_steps(monkeypatch: pytest.MonkeyPatch):
    """tool-call-outputs: A check that cannot be finished does not fit."""
    compiled = schema.check(chain("allOf", 30), tool="f")
    resolved: list[Any] = []
    monkeypatch.setattr(schema, "check_references", counting(schema.check_references, resolved))
    assert schema.flaw_in({**deep(10, {}), **{f"k{n}": n for n in range(3_000)}}, compiled, "f") is None
    assert len(resolved) == 1


def counting(function: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    def counted(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return function(*given, **named)

    return counted


@pytest.mark.parametrize(
    ("part", "few", "many"),
    [
        ({"items": {"enum": [{"k": n} for n in range(30_000)]}}, 100, 100_000),
        ({"items": {"allOf": [{"minimum": -n} for n in range(9_000)]}}, 100, 100_000),
        ({"items": {"required": [f"k{n}" for n in range(30_000)]}}, 0, 100_000),
    ],
)
def test_wide_schemas_are_bounded_by_what_they_judge(part: Json, few: int, many: int):
    """tool-call-outputs: A check that cannot be finished does not fit."""
    item = {"k": 1} if "enum" in part["items"] else 1
    assert flaw(of(part), {"a": [item] * few}) is None
    found = flaw(of(part), {"a": [item] * many})
    assert found is not None
    assert "could not be checked" in found.message


def test_unique_items_are_bounded_by_their_digits():
    """tool-call-outputs: A check that cannot be finished does not fit."""
    unique = of({"uniqueItems": True})
    assert flaw(unique, {"a": list(range(100_000))}) is None
    assert flaw(unique, {"a": [{"k": n} for n in range(100_000)]}) is None
    assert flaw(unique, {"a": [*range(100_000), 5]})
    large = [2**70 + n for n in range(200)]
    assert flaw(unique, {"a": large}) is None
    repeated = flaw(unique, {"a": [*large, 2**70]})
    assert repeated is not None
    assert repeated.path == "/a"
    for items in ([2**70 + n for n in range(20_000)], [10**4_000 + n for n in range(1_000)]):
        found = flaw(unique, {"a": items})
        assert found is not None
        assert "could not be checked" in found.message
    assert flaw(of({}), {"a": [2**70 + n for n in range(20_000)]}) is None


LOOKS_AHEAD = r"^(?=.*\d)(?!0).+$"


@pytest.mark.parametrize(
    ("pattern", "good", "hostile"),
    [
        (r"^(?:(?=.*b)a)*b$", "a" * 1_000 + "b", "a" * 200_000 + "b"),
        (r"(?=.*b)b|c", "ab", "a" * 1_000_000),
        (r"^(?:(?=(?:(?=.*b)a)*)a)*b$", "a" * 100 + "b", "a" * 4_000 + "b"),
        (r"(?:x{1,100}){1,100}y", "xy", "x" * 100_000),
        (LOOKS_AHEAD, "a1" * 10_000, "a" * 100_000),
    ],
)
def test_texts_are_bounded_by_their_patterns(pattern: str, good: str, hostile: str):
    """tool-declarations: A pattern that would blow up ends in a verdict."""
    assert flaw(of({"pattern": pattern}), {"a": good}) is None
    found = flaw(of({"pattern": pattern}), {"a": hostile})
    assert found is not None
    assert "could not be checked" in found.message


def test_ordinary_patterns_take_long_texts():
    """tool-declarations: A pattern that would blow up ends in a verdict."""
    for pattern in (r"^[a-z0-9]{1,64}$", r"^\S+@\S+\.\S+$", r"^.{1,4000}$", r"^[^\x00]*$"):
        told = effort(of({"pattern": pattern}))
        assert is_affordable(told, extent_of({"a": "x" * 40_000})), pattern


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


def test_the_bound_costs_no_walk_where_arguments_are_small():
    """call-cost: What does not change from call to call is compiled once."""
    told = effort(of({"type": "string"}))
    assert told.free_bytes > 1_000_000
    assert told.of_value * told.free_bytes <= MAX_STEPS
