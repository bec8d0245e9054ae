"""What `**kwargs` takes: the keys of a TypedDict that it unpacks, or any key with a value of its type."""

import datetime as dt
import functools
import typing
from collections.abc import Callable
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import Field
from typing_extensions import NotRequired, Required, TypedDict, Unpack

from sigadapt import ToolCall, ToolCalls, ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl


class Guest(pydantic.BaseModel):
    name: str


class Total(TypedDict):
    city: str
    since: NotRequired[dt.date]


class Partly(Total, total=False):
    limit: Annotated[int, Field(ge=1, description="At most.")]
    sort: Required[str]
    guests: "list[Guest]"


class Quoted(TypedDict, total=False):
    limit: "int"
    sort: "Required[str]"


class QuotedTotal(TypedDict):
    limit: "NotRequired[int]"
    sort: "str"


class Empty(TypedDict):
    pass


UNPACKS: dict[str, Any] = {"typing_extensions": Unpack, "typing": getattr(typing, "Unpack", Unpack)}
KEYS: dict[str, tuple[Any, list[str]]] = {
    "total": (Total, ["city"]),
    "partly": (Partly, ["city", "sort"]),
    "in quotes": (Quoted, ["sort"]),
    "total, in quotes": (QuotedTotal, ["sort"]),
    "empty": (Empty, []),
}
VALUES: dict[str, tuple[Any, Any]] = {
    "city": ("Paris", "Paris"),
    "since": ("2026-01-02", dt.date(2026, 1, 2)),
    "limit": (3, 3),
    "sort": ("name", "name"),
    "guests": ([{"name": "Ada"}], [Guest(name="Ada")]),
}


def taking(annotation: Any) -> Callable[..., Any]:
    def search(q: str, **options: Any) -> Any:
        """Search.

        Args:
            q: what for
            sort: the order
        """
        return {"q": q, **options}

    search.__annotations__["options"] = annotation
    return search


@pytest.mark.parametrize("home", UNPACKS)
@pytest.mark.parametrize("name", KEYS)
def test_the_keys_of_an_unpacked_typed_dict_are_parameters(name: str, home: str) -> None:
    """tool-declarations: The keys of an unpacked TypedDict are parameters."""
    kind, required = KEYS[name]
    decl = ToolDecl.of(taking(UNPACKS[home][kind]))
    hints = typing.get_type_hints(kind)
    assert [*decl.parameters["properties"]] == ["q", *hints]
    assert sorted(decl.parameters["required"]) == sorted(["q", *required])
    assert decl.parameters["additionalProperties"] is False
    if "sort" in hints:
        assert decl.parameters["properties"]["sort"] == {"type": "string", "description": "the order"}


@pytest.mark.parametrize("name", KEYS)
def test_they_are_checked_and_bound_as_others(name: str) -> None:
    """tool-declarations: The keys of an unpacked TypedDict are parameters."""
    kind, required = KEYS[name]
    decls = ToolDecls([taking(Unpack[kind])])
    args = {key: VALUES[key][0] for key in typing.get_type_hints(kind)}

    def flaws(**given: Any) -> list[str | None]:
        call = ToolCall(id="1", name="search", args={"q": "x", **given})
        return [bad.code for bad in ToolCalls([call]).validated(decls).invalid]

    call = ToolCall(id="1", name="search", args={"q": "x", **args})
    assert call.execute(decls) == {"q": "x", **{key: VALUES[key][1] for key in args}}
    assert flaws(**args) == flaws(**{key: args[key] for key in required}) == []
    assert flaws(**args, other=1) == ["schema_mismatch"]
    for key in args:
        assert flaws(**{**args, key: {}}) == ["schema_mismatch"]
    for key in required:
        assert flaws(**{other: args[other] for other in args if other != key}) == ["schema_mismatch"]


def test_a_constraint_of_a_key_is_kept() -> None:
    """tool-declarations: The keys of an unpacked TypedDict are parameters."""
    schema = ToolDecl.of(taking(Unpack[Partly])).parameters
    assert schema["properties"]["limit"] == {"type": "integer", "minimum": 1, "description": "At most."}
    assert schema["properties"]["guests"]["items"] == {"$ref": "#/$defs/Guest"}


def test_what_a_partial_sets_is_left_out() -> None:
    """tool-declarations: The keys of an unpacked TypedDict are parameters."""
    decl = ToolDecl.of(functools.partial(taking(Unpack[Total]), city="Rome"))
    assert [*decl.parameters["properties"]] == ["q", "since"]
    assert decl.parameters["required"] == ["q"]


OTHERS: dict[str, tuple[Any, Any, Any]] = {
    "int": (int, {"type": "integer"}, 1),
    "a model": (Guest, {"$ref": "#/$defs/Guest"}, {"name": "Ada"}),
    "a date": (dt.date, {"type": "string", "format": "date"}, "2026-01-02"),
    "Any": (Any, None, [1]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_arguments_have_the_type_of_kwargs(name: str) -> None:
    """tool-declarations: Other arguments have the type of kwargs."""
    kind, schema, value = OTHERS[name]
    decls = ToolDecls([taking(kind)])
    assert decls["search"].parameters.get("additionalProperties") == schema
    assert [*decls["search"].parameters["properties"]] == ["q"]
    call = ToolCall(id="1", name="search", args={"q": "x", "n": value})
    assert call.execute(decls) == {"q": "x", "n": pydantic.TypeAdapter(kind).validate_python(value)}
    bad = ToolCall(id="1", name="search", args={"q": "x", "n": {"no": 1}})
    flaws = [flaw.code for flaw in ToolCalls([bad]).validated(decls).invalid]
    assert flaws == ([] if kind is Any else ["schema_mismatch"])


@pytest.mark.parametrize("kind", [Unpack[tuple[int]], object.__new__])
def test_a_type_of_kwargs_without_a_schema_is_refused(kind: Any) -> None:
    """tool-declarations: Other arguments have the type of kwargs."""
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(taking(kind))
    assert caught.value.code == "underivable"
