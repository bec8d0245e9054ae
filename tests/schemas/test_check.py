"""JSON Schemas that may be declared, and arguments judged by them."""

import json
from typing import Any, cast

import jsonschema
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import Flaw
from internals import checking as schema

from sigadapt.errors import InvalidToolDecl


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def refusal(parameters: Any) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        schema.check(parameters, tool="f")
    assert caught.value.tool == "f"
    return caught.value


def flaw(parameters: Any, args: dict[str, Any]) -> Flaw | None:
    return schema.flaw_in(args, schema.check(parameters, tool="f"), "f")


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object"},
        {"properties": {}},
        {"required": ["a"]},
        {"anyOf": [{"type": "object"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}},
        {"type": "object", "$schema": "https://example.com/of-my-own", "x-note": {"type": "dict"}},
        of(type={"type": "string"}, default={"type": "string", "default": {"type": "dict"}}),
    ],
)
def test_object_schemas_are_taken_unchanged(parameters: dict[str, Any]):
    """tool-declarations: A dict schema passes through unchanged."""
    before = json.dumps(parameters)
    schema.check(parameters, tool="f")
    assert json.dumps(parameters) == before


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        (None, ""),
        ([], ""),
        (True, ""),
        ({"description": "x"}, ""),
        ({"type": "string"}, "/type"),
        ({"type": ["object", "null"]}, "/type"),
    ],
)
def test_other_schemas_are_refused(parameters: Any, path: str):
    """tool-declarations: A schema that is no object schema is refused."""
    error = refusal(parameters)
    assert (error.code, error.path) == ("invalid_schema", path)


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        (of(a={"minimum": "x"}), "/properties/a/minimum"),
        (of(a={"items": [{"type": "string"}]}), "/properties/a/items"),
        (of(**{"b/c": {"required": "x"}}), "/properties/b~1c/required"),
        (of(a={"pattern": "("}), "/properties/a/pattern"),
        (of(a={"enum": [{1: 2}]}), "/properties/a/enum/0"),
        (of(a={"default": float("nan")}), "/properties/a/default"),
        (of(a={"enum": ("x",)}), "/properties/a/enum"),
    ],
)
def test_invalid_schemas_are_refused_with_their_place(parameters: Any, path: str):
    """tool-declarations: An invalid schema is refused with its place."""
    error = refusal(parameters)
    assert (error.code, error.path) == ("invalid_schema", path)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("dict", "Use 'object'."),
        ("float", "Use 'number'."),
        ("int", "Use 'integer'."),
        ("STRING", "Use 'string'."),
        ("bool", "Use 'boolean'."),
        ("tuple", "Use 'array'."),
        ("None", "Use 'null'."),
        ("any", "Leave `type` out to allow any value."),
        ("strin", "Use 'string'."),
        ("frob", "Use one of object, string, integer, number, boolean, array, null."),
    ],
)
def test_type_words_get_a_hint(word: str, hint: str):
    """tool-declarations: A type word that is not JSON Schema's is refused with a hint."""
    error = refusal(of(a={"anyOf": [{"type": ["null", word]}]}))
    assert (error.code, error.path, error.fix) == ("invalid_schema", "/properties/a/anyOf/0/type", hint)


def test_an_older_draft_is_judged_by_its_own_rules():
    tuples = {"$schema": "http://json-schema.org/draft-07/schema#", **of(t={"items": [{"type": "string"}]})}
    found = flaw(tuples, {"t": [1]})
    assert found is not None
    assert found.path == "/t/0"


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = of(a=inner)
    return inner


def doubling(levels: int) -> dict[str, Any]:
    """One Python object used twice at every level: small in memory, exponential as JSON."""
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = of(a=inner, b=inner)
    return inner


def test_hostile_depth_and_size_end_in_an_error():
    """tool-declarations: An invalid schema is refused with its place."""
    cyclic = of()
    cyclic["properties"]["a"] = cyclic
    for parameters in (nested(5000), doubling(45), cyclic, of(a={"enum": list(range(200_000))})):
        assert refusal(parameters).code == "invalid_schema"
    many = of(**{f"p{n}": {"pattern": f"a{{0,1000}}{n}"} for n in range(schema.MAX_PATTERNS + 1)})
    assert "patterns" in refusal(many).reason
    assert "large" in refusal(of(a={"pattern": "((a{1000}){1000}){1000}"})).reason


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(a+)+$", "a" * 100_000 + "!"),
        (r"^(a|aa)+(?<!b)\1$", "a" * 60 + "!"),
        (r"(x+x+)+(?!z)y", "x" * 2000),
    ],
)
def test_a_hostile_pattern_gives_up(pattern: str, text: str):
    found = flaw(of(a={"pattern": pattern}), {"a": text})
    assert found is not None
    assert (found.code, found.path) == ("schema_mismatch", "/a")


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [(r"^(?=.*\d)(?!0).+$", "a1", "01"), (r"^(.)\1$", "aa", "ab"), (r"^\d{4}-\d\d$", "2024-01", "24-1")],
)
def test_patterns_with_lookaround_and_backreferences_work(pattern: str, good: str, bad: str):
    assert flaw(of(a={"pattern": pattern}), {"a": good}) is None
    assert flaw(of(a={"pattern": pattern}), {"a": bad})


def test_a_flaw_tells_every_error_and_the_path_of_the_first():
    """tool-call-outputs: Calls are checked against the declarations."""
    parameters = {**of(n={"type": ["integer", "null"]}, m={"anyOf": [{"type": "integer"}, {"const": "x"}]})}
    parameters |= {"required": ["k"], "additionalProperties": False}
    found = flaw(parameters, {"n": "x", "m": "y", "z": 1})
    assert found is not None
    assert found.code == "schema_mismatch"
    assert found.path == "/n"
    for part in (
        "/n: ",
        "/m: fits no alternative",
        '"y" is not of type "integer"',
        "'z'",
        '"k" is a required',
    ):
        assert part in found.message


def test_a_flaw_message_is_bounded():
    args = {f"p{n}": "x" * 10_000 for n in range(1000)}
    found = flaw({"type": "object", "additionalProperties": {"type": "integer"}}, args)
    assert found is not None
    assert found.message.endswith("; and more")
    assert len(found.message) < 2000


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize("odd", [deep(300), deep(100_000), {"a": object()}, {"a": {1: 2}}, {"a": {1, 2}}])
def test_arguments_that_are_no_json_do_not_fit(odd: dict[str, Any]):
    found = flaw(of(a={"$ref": "#"}), odd)
    assert found is not None
    assert found.code == "schema_mismatch"
    assert "not JSON" in found.message


def test_half_a_surrogate_pair_is_no_json():
    assert refusal(of(a={"description": "\ud800"})).code == "invalid_schema"
    found = flaw(of(a={"maxLength": 0}, b={"type": "integer"}), {"a": "\ud800", "b": "x"})
    assert found is not None
    assert "not JSON" in found.message


@pytest.mark.parametrize("number", [10**400, -(2**63), 2**64, 1.0, 1e15])
def test_integers_of_any_size_and_integral_floats_are_integers(number: float):
    assert flaw(of(a={"type": "integer"}), {"a": number}) is None
    assert flaw(of(a={"type": "integer", "maximum": -(10**30)}), {"a": number})


def test_format_is_not_asserted():
    assert flaw(of(a={"type": "string", "format": "date"}), {"a": "no date"}) is None


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0])
    | st.text("ab", max_size=3)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
)
words = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def some(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    named = st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    keywords = {
        "type": words | st.lists(words, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$", "a+"]),
        "properties": named,
        "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        "additionalProperties": inner | st.booleans(),
        "propertyNames": inner,
        "minProperties": st.integers(0, 2),
        "items": inner | st.booleans(),
        "prefixItems": several,
        "contains": inner,
        "uniqueItems": st.booleans(),
        "maxItems": st.integers(0, 2),
        "anyOf": several,
        "allOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
    }
    return st.fixed_dictionaries({}, optional=keywords)


def is_unclear(parameters: dict[str, Any], args: dict[str, Any]) -> bool:
    """Where `uniqueItems` meets 1 and true, python-jsonschema itself is not consistent."""
    return "uniqueItems" in json.dumps(parameters) and "true" in json.dumps(args) + json.dumps(parameters)


@settings(max_examples=share(400))
@given(
    st.recursive(st.just({}), some, max_leaves=8), st.dictionaries(st.sampled_from("ab"), values, max_size=2)
)
def test_arguments_are_judged_as_jsonschema_judges_them(part: dict[str, Any], args: dict[str, Any]):
    """tool-call-outputs: Calls are checked against the declarations."""
    parameters = {"type": "object", "allOf": [part]}
    expected = jsonschema.Draft202012Validator(parameters).is_valid(args)
    if not is_unclear(parameters, args):
        assert (flaw(parameters, args) is None) == expected


@settings(max_examples=share(300))
@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "$ref", "items", "anyOf", "$id", "pattern"]), values
    )
)
def test_any_json_is_a_schema_or_an_error(parameters: dict[str, Any]):
    """tool-declarations: An invalid schema is refused with its place."""
    try:
        validator = schema.check(parameters, tool="f")
    except InvalidToolDecl as error:
        assert error.code in ("invalid_schema", "remote_ref")  # noqa: PT017  (either outcome is right)
    else:
        schema.flaw_in({"a": 1}, validator, "f")


def test_a_schema_that_was_good_is_checked_again_when_it_has_changed() -> None:
    """call-cost: What does not change from call to call is compiled once."""
    one: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    same = json.loads(json.dumps(one))
    assert schema.check(one, tool="f") is schema.check(same, tool="g")
    one["properties"]["n"]["type"] = "int"
    with pytest.raises(InvalidToolDecl, match=r"tool 'f'.*'int' is not a JSON Schema type"):
        schema.check(one, tool="f")
    same["properties"]["n"]["default"] = float("nan")  # which compact JSON would write as null
    with pytest.raises(InvalidToolDecl, match="nan is not a JSON number"):
        schema.check(same, tool="g")


def test_good_schemas_are_kept_in_bounds() -> None:
    """call-cost: Caches are bounded and weak."""
    kept: Any = vars(schema)["_VALIDATORS"]
    for number in range(2_000):
        schema.check({"type": "object", "title": f"{number}", "description": "x" * 500}, tool="f")
    assert 0 < kept.weight <= 4 * 1024 * 1024
    schema.check({"type": "object", "description": "y" * 20_000}, tool="f")
    texts = cast("dict[str, Any]", vars(kept)["_entries"])
    assert max(map(len, texts)) <= 16_384
