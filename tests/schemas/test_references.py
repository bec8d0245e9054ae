"""References inside a schema: where they lead, and what following them costs."""

from typing import Any

import pytest
from tables import table

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl


def declared(**parameters: Any) -> ToolDecl:
    return ToolDecl("f", parameters={"type": "object", **parameters})


def refusal(parameters: dict[str, Any]) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        declared(**parameters)
    return caught.value


@pytest.mark.parametrize(
    "address", ["file:///etc/hostname", "other.json", "//example.com/x", "urn:a:b", "x#/$defs/a"]
)
def test_every_other_document_is_remote(address: str):
    """tool-declarations: A remote reference is refused and never fetched."""
    assert refusal({"properties": {"a": {"$ref": address}}, "$defs": {"a": {}}}).code == "remote_ref"


@pytest.mark.parametrize(("target", "defs"), table(__file__, "FOLLOWED"))
def test_references_inside_the_document_are_followed(target: str, defs: dict[str, Any]):
    decl = declared(properties={"a": {"$ref": target}}, **{"$defs": defs})
    assert decl.flaw_of({"a": 1}) is None
    assert decl.flaw_of({"a": "x"})


@pytest.mark.parametrize(
    "target", ["#/$defs/none", "#none", "#/required/x", "#/required/0/x", "#/required/7"]
)
def test_references_to_nothing_are_refused(target: str):
    """tool-declarations: An invalid schema is refused with its place."""
    error = refusal({"required": ["a"], "properties": {"a": {"$ref": target}}})
    assert (error.code, error.path) == ("invalid_schema", "/properties/a/$ref")


@pytest.mark.parametrize(
    "parameters",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
    ],
)
def test_a_schema_that_never_ends_is_refused(parameters: dict[str, Any]):
    assert "without end" in refusal(parameters).reason


def test_recursion_into_parts_and_shared_definitions_are_fine():
    """tool-declarations: A recursive type stays recursive."""
    shared: dict[str, Any] = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}
    node = {"type": "object", "properties": dict.fromkeys("abcdefgh", shared)}
    decl = declared(properties={"root": shared}, **{"$defs": {"node": node}})
    assert decl.flaw_of({"root": {"a": {"b": None}}}) is None
    assert decl.flaw_of({"root": {"a": {"b": 1}}})


def test_kinds_that_all_refer_to_each_other_are_fine():
    """tool-declarations: A recursive type stays recursive."""
    # A syntax tree: what is recursive counts once, or twelve kinds would be over the bound.
    any_kind: dict[str, Any] = {"anyOf": [{"$ref": f"#/$defs/k{n}"} for n in range(30)]}
    kind: dict[str, Any] = {"type": "object", "properties": {"left": any_kind, "right": any_kind}}
    declared(properties={"root": any_kind}, **{"$defs": {f"k{n}": kind for n in range(30)}})


def test_an_id_inside_of_an_id_is_relative_to_it() -> None:
    """tool-declarations: A remote reference is refused and never fetched."""
    deep = {"$id": "deep", "type": "integer"}
    defs = {"inner": {"$id": "inner/", "$defs": {"deep": deep}}}
    of_root = {"$id": "https://tools.test/root/", "$defs": defs}
    decl = declared(properties={"n": {"$ref": "inner/deep"}}, **of_root)
    assert decl.flaw_of({"n": 1}) is None
    assert decl.flaw_of({"n": "x"}) is not None
