"""What a check may cost: schemas that multiply it are refused, and long texts where patterns are slow."""

from typing import Any

import pytest

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl

Json = dict[str, Any]


def of(part: Json, **more: Any) -> Json:
    return {"type": "object", "properties": {"a": part}, **more}


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


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_schemas_that_double_at_each_level_are_refused(keyword: str):
    """tool-declarations: A schema of hostile depth or size is refused."""
    ToolDecl("f", parameters=chain(keyword, 6))
    with pytest.raises(InvalidToolDecl, match="times") as caught:
        ToolDecl("f", parameters=chain(keyword, 60))
    assert caught.value.code == "invalid_schema"


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
    decl = ToolDecl("f", parameters=of({"pattern": pattern}))
    assert decl.flaw_of({"a": good}) is None
    found = decl.flaw_of({"a": hostile})
    assert found is not None
    assert "could not be checked" in found.message
