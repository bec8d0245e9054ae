"""Fingerprints: a source that changes is declared anew; what can change unseen is read each time."""

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Optional, TypeVar

import annotated_types
import mcp.types
import pydantic
import pytest
import typing_extensions
from internals import DeclaredCache

from sigadapt import ToolDecls


class Item(pydantic.BaseModel):
    a: int


def made(annotation: Any = int, default: Any = 1) -> Any:
    def now(a: Any, *, b: Any = default) -> None:
        """Tell the time."""

    now.__annotations__["a"] = annotation
    return now


def other(a: float) -> None: ...


def set_part(name: str, value: Any) -> Callable[[Any], None]:
    return lambda function: setattr(function, name, value)


def kept(function: Any) -> DeclaredCache[str]:
    cache = DeclaredCache[str]()
    cache.put(function, "value", cache.fingerprint(function))
    return cache


CHANGES: dict[str, Callable[[Any], object]] = {
    "name": set_part("__name__", "later"),
    "doc": set_part("__doc__", "Tell the time again."),
    "no doc": set_part("__doc__", None),
    "defaults": set_part("__defaults__", (1,)),
    "keyword defaults": set_part("__kwdefaults__", {"b": 2}),
    "keyword default": lambda function: function.__kwdefaults__.update(b=True),
    "keyword default of another name": lambda function: function.__kwdefaults__.update(c=1),
    "no keyword defaults": set_part("__kwdefaults__", None),
    "annotations": set_part("__annotations__", {"a": str}),
    "annotation": lambda function: function.__annotations__.update(a=str),
    "a further annotation": lambda function: function.__annotations__.update(b=str),
    "no annotation": lambda function: function.__annotations__.clear(),
    "attribute": set_part("__signature__", None),
    "code": set_part("__code__", other.__code__),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_function_that_was_changed_has_another_fingerprint(change: Callable[[Any], object]):
    """tool-declarations: A source that changed in place is declared as it is now."""
    function = made()
    cache = kept(function)
    assert cache.get(function) == "value"
    change(function)
    assert cache.get(function) is None


FIXED = [int, list[int], dict[str, list[int]], int | None, Any, Literal["a", 1]]
OLD = [Optional[int], typing.List[int]]  # noqa: UP006, UP045  (they have classes of their own)
QUOTED = ["int", "list[int]", "dict[str, Any] | None"]


@pytest.mark.parametrize("annotation", [*FIXED, *OLD, *QUOTED], ids=repr)
def test_functions_of_types_that_nobody_can_change_are_kept(annotation: Any):
    """call-cost: Tools that say the same are looked at and not read."""
    function = made(annotation)
    assert kept(function).get(function) == "value"


class Unit(Enum):
    C = "c"


@dataclasses.dataclass
class Span:
    start: str
    days: int = 1


class Filter(typing_extensions.TypedDict):
    kind: str


class Nested(pydantic.BaseModel):
    items: list[Item]
    filter: Filter | None = None


KNOWN = [
    *(Sequence[str], Mapping[str, Item], Iterable[int], tuple[int, ...]),
    *(Item, Nested, Unit, Span, Filter, date, list[Item], list["int"], NewType("UserId", int)),
    *(
        Annotated[int, pydantic.Field(ge=1)],
        Annotated[str, "The city."],
        Annotated[int, annotated_types.Ge(1)],
    ),
    *("Item", "list['int']", "typing.Any", "Annotated[int, pydantic.Field(ge=1)]", "Literal['a', 1]"),
]


@pytest.mark.parametrize("annotation", KNOWN, ids=lambda each: str(each)[:40])
def test_functions_of_known_kinds_of_types_are_kept(annotation: Any):
    """call-cost: Tools that say the same are looked at and not read."""
    function = made(annotation)
    assert kept(function).get(function) == "value"


class Hooked(pydantic.BaseModel):
    a: int

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return handler(schema)


class Computed(pydantic.BaseModel):
    @pydantic.computed_field
    @property
    def b(self) -> int:
        return 1


class HasCallable(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_extra=lambda schema: None)


class Plain:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(int)


class Hook:
    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return handler(schema)


UNKNOWABLE = [
    *(Hooked, Computed, HasCallable, Plain, TypeVar("_T"), "absent", "1 +"),
    *(Annotated[int, Hook()], Annotated[int, pydantic.Field(json_schema_extra=lambda schema: None)]),
]


@pytest.mark.parametrize("annotation", UNKNOWABLE, ids=lambda each: type(each).__name__)
def test_functions_of_types_that_can_change_unseen_are_read_each_time(annotation: Any):
    function = made(annotation)
    assert kept(function).get(function) is None


@pytest.mark.parametrize("default", [{1}, Item(a=1), Item, len], ids=["set", "model", "class", "function"])
def test_functions_of_defaults_that_can_change_unseen_are_read_each_time(default: Any):
    function = made(default=default)
    assert kept(function).get(function) is None


@pytest.mark.parametrize(
    "default", [[1], {"a": [1]}, (1,), Unit.C, date(2020, 1, 1), pydantic.Field(1)], ids=repr
)
def test_functions_of_defaults_that_are_known_are_kept(default: Any):
    """call-cost: Tools that say the same are looked at and not read."""
    function = made(default=default)
    assert kept(function).get(function) == "value"


def mcp_tool(**parts: Any) -> Any:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
    return mcp.types.Tool.model_validate({"name": "then", "inputSchema": schema, **parts})


def schema_of(tool: Any) -> Any:
    return getattr(tool, "input_schema", None) or tool.inputSchema


TOOLS: dict[str, Callable[[Any], object]] = {
    "name": set_part("name", "later"),
    "description": set_part("description", "Tell the time."),
    "inside the schema": lambda tool: schema_of(tool)["properties"].update(b={}),
    "another type of the same value": lambda tool: schema_of(tool)["properties"]["a"].update(default=True),
    "an equal number": lambda tool: schema_of(tool)["properties"]["a"].update(default=1.0),
    "inside an annotation": lambda tool: setattr(tool.annotations, "title", "Later"),
}


@pytest.mark.parametrize("change", TOOLS.values(), ids=TOOLS)
def test_an_mcp_tool_that_was_changed_is_declared_as_it_is_now(change: Callable[[Any], object]):
    """tool-declarations: A source that changed in place is declared as it is now."""
    tool = mcp_tool(annotations={"title": "Now"})
    before = ToolDecls([tool])
    assert ToolDecls([tool]) == before
    change(tool)
    fresh = tool.model_copy(deep=True)
    assert ToolDecls([tool]).to_openai() == ToolDecls([fresh]).to_openai()
    assert ToolDecls([tool]).tools[0].extras == ToolDecls([fresh]).tools[0].extras


@pytest.mark.parametrize("part", ["parameters", "returns", "extras"])
def test_a_part_of_a_declaration_is_a_copy(part: str):
    """tool-declarations: What is sent and what calls are checked by are one snapshot."""
    (decl,) = ToolDecls([mcp_tool(annotations={"title": "Now"}, outputSchema={"type": "object"})])
    before, sent = getattr(decl, part), decl.to_openai()
    getattr(decl, part)["edited"] = True
    assert getattr(decl, part) == before
    assert decl.to_openai() == sent
