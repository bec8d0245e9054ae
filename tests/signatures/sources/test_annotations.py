"""Python types to JSON Schema, and the two ways of judging a value by them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import (  # noqa: UP035  (both spellings of a type have to work)
    Annotated,
    Any,
    Dict,
    Generic,
    List,
    Literal,
    NamedTuple,
    Optional,
    TypeVar,
    Union,
    cast,
)

import pydantic
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import annotations
from internals import checking as schema
from pydantic import Field
from typing_extensions import TypedDict

from sigadapt import ToolDecl

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    ONE = 1


class Leaf(pydantic.BaseModel):
    size: Annotated[int, Field(ge=0)] = 1
    name: str | None = None


class Tree(pydantic.BaseModel):
    leaves: list[Leaf]
    trees: list["Tree"] = []


class Holder(pydantic.BaseModel, Generic[T]):
    held: T


@dataclass
class Point:
    x: float
    y: float = 0.0


class Pair(NamedTuple):
    a: int
    b: str = "x"


class Record(TypedDict, total=False):
    k: int


OLD_SPELLINGS: list[Any] = [Optional[int], Union[None, str], List[int], Dict[str, int]]  # noqa: UP006, UP007, UP045
PLAIN: list[Any] = [
    *(str, int, float, bool, None, Any, object, list, dict),
    *(list[int], list[list[str]], list[Any], dict[str, int], dict[str, Any], dict[str, list[float]]),
    *(int | None, None | str, list[int | None], list[str] | None, dict[str, bool | None]),
    *(Literal["a"], Literal["a", "b"], Literal["a", "b"] | None, list[Literal["x"]]),
    *OLD_SPELLINGS,
]
OTHERS: list[Any] = [
    *(int | str, int | str | None, Any | None, Literal[1, "a"], Literal[True], Literal["a"] | None | int),
    *(set[int], frozenset[str], tuple[int, str], tuple[int, ...], dict[int, str]),
    *(
        Annotated[int, Field(ge=1, lt=9)],
        Annotated[str, Field(pattern="^a")],
        Annotated[list[int], Field(max_length=2)],
    ),
    *(Colour, Leaf, Tree, Point, Pair, Record, list[Tree], dict[str, Point], Leaf | None, Holder[int]),
]


def by_pydantic(annotation: Any) -> dict[str, Any]:
    return pydantic.TypeAdapter(annotation).json_schema()


@pytest.mark.parametrize("annotation", PLAIN, ids=str)
def test_the_table_says_what_pydantic_says(annotation: Any):
    """tool-declarations: A function's parameters become a schema."""
    assert annotations.plain_schema(annotation) == by_pydantic(annotation)


@pytest.mark.parametrize("annotation", OTHERS, ids=str)
def test_the_table_leaves_the_rest_to_pydantic(annotation: Any):
    assert annotations.plain_schema(annotation) is None


@pytest.mark.parametrize("annotation", [*PLAIN, *OTHERS], ids=str)
def test_titles_that_repeat_a_name_are_left_out(annotation: Any):
    """tool-declarations: A function's parameters become a schema."""
    derived = annotations.schemas_of({"a": annotation})
    schema.check({"type": "object", "properties": derived.properties, "$defs": derived.defs}, tool="f")
    assert "title" not in json.dumps([derived.properties, derived.defs])


def test_types_without_a_schema_are_told_by_name():
    derived = annotations.schemas_of(
        {"a": int, "b": Callable[[], int], "c": Leaf, "d": type, "e": ["no type"]}
    )
    assert [problem[:24] for problem in derived.problems] == [f"'{n}' has no JSON Schema (" for n in "bde"]


# The rest compares two judges of the same arguments: the derived schema, and pydantic on the signature.

POOL: list[Any] = [*PLAIN, *OTHERS]
SCHEMA_IS_LOOSER: list[Any] = [dict[int, str]]
"""Pydantic wants keys that are numbers, and its schema does not say so. Formats: see the last test."""
SCHEMA_IS_STRICTER: list[Any] = [
    *(set[int], frozenset[str]),  # pydantic drops a repeated item, `uniqueItems` refuses it
    *(Literal[1, "a"], Literal[True], Colour),  # True is 1 in Python and not in JSON
    Pair,  # pydantic takes an object for it too, the schema describes the array
]
numbers = st.integers(-2, 12) | st.sampled_from([0.5, 3.0, 2**70])
texts = st.sampled_from(["", "a", "b", "x", "red", "1"])
leaves = st.none() | st.booleans() | numbers | texts
keys = st.sampled_from(["a", "b", "k", "x", "y", "size", "name", "leaves", "trees", "held", "1"])
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)


def instances(annotation: Any) -> st.SearchStrategy[Any]:
    """JSON that often fits the type, and often only nearly does."""
    known: dict[str, st.SearchStrategy[Any]] = {
        str(Leaf): st.fixed_dictionaries({}, optional={"size": numbers, "name": texts | st.none()}),
        str(Tree): st.fixed_dictionaries({"leaves": st.lists(st.just({"size": 1}), max_size=2)}),
        str(Point): st.fixed_dictionaries({"x": numbers}, optional={"y": numbers}),
        str(Pair): st.tuples(numbers, texts).map(list) | st.tuples(numbers).map(list),
        str(Record): st.fixed_dictionaries({}, optional={"k": numbers}),
        str(tuple[int, str]): st.tuples(numbers, texts).map(list),
        str(Holder[int]): st.fixed_dictionaries({"held": numbers}),
    }
    return known.get(str(annotation), st.lists(leaves, max_size=3) | leaves) | anything


class Call(NamedTuple):
    types: dict[str, Any]
    function: Callable[..., Any]
    args: dict[str, Any]


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """A function of a generated signature, and arguments for it by name."""
    names = draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=3, unique=True))
    types = {name: draw(st.sampled_from(POOL)) for name in names}
    optional = {name: draw(st.booleans()) for name in names}
    head = ", ".join(f"{name}: types['{name}']" + (" = None" if optional[name] else "") for name in names)
    space: dict[str, Any] = {"types": types}
    exec(f"def f(*, {head}): return True", space)  # noqa: S102  (the signature is what is tested)
    given_names = [name for name in names if not optional[name] or draw(st.booleans())]
    args = {name: draw(instances(types[name])) for name in given_names}
    if draw(st.integers(0, 9)) == 0:
        args["unknown"] = 1
    return Call(types, space["f"], args)


def judged_by_pydantic(function: Callable[..., Any], args: dict[str, Any], *, strict: bool) -> bool:
    adapter = pydantic.TypeAdapter[Any](cast("Any", function))
    try:
        adapter.validate_json(json.dumps(args), strict=strict)
    except pydantic.ValidationError:
        return False
    return True


def judged_by_schema(function: Callable[..., Any], args: dict[str, Any]) -> bool:
    told = ToolDecl.of(function)
    return schema.check(told.parameters, tool="f").validator.is_valid(args)


def among(types: dict[str, Any], excused: list[Any]) -> bool:
    return any(annotation in excused for annotation in types.values())


@pytest.mark.slow
@settings(max_examples=share(1000))
@given(calls())
def test_the_schema_and_pydantic_agree(call: Call):
    """tool-declarations: A function's parameters become a schema."""
    accepted = judged_by_schema(call.function, call.args)
    if accepted and not among(call.types, SCHEMA_IS_LOOSER):
        assert judged_by_pydantic(call.function, call.args, strict=False)
    if not accepted and not among(call.types, SCHEMA_IS_STRICTER):
        assert not judged_by_pydantic(call.function, call.args, strict=True)
