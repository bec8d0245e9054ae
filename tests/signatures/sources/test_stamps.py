"""Stamps: whatever changes in a source, its stamp is no longer its own."""

import gc
import typing
import weakref
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import mcp.types
import pydantic
import pytest

from sigadapt import ToolDecls
from sigadapt.signatures.sources.stamps import is_unchanged, stamp_of


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


FUNCTIONS: dict[str, Callable[[Any], object]] = {
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


@pytest.mark.parametrize("change", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_that_was_changed_has_another_stamp(change: Callable[[Any], object]):
    """tool-declarations: A source that changed in place is declared as it is now."""
    function = made()
    stamp = stamp_of(function)
    assert stamp is not None
    assert is_unchanged(function, stamp)
    change(function)
    assert not is_unchanged(function, stamp)


FIXED = [int, list[int], dict[str, list[int]], int | None, Any, Literal["a", 1]]
OLD = [Optional[int], typing.List[int]]  # noqa: UP006, UP045  (they have classes of their own)
QUOTED = ["int", "list[int]", "dict[str, Any] | None"]


@pytest.mark.parametrize("annotation", [*FIXED, *OLD, *QUOTED], ids=repr)
def test_types_that_nobody_can_change_have_a_stamp(annotation: Any):
    assert stamp_of(made(annotation)) is not None


OPEN = [
    Item,
    list[Item],
    "Item",
    "list['int']",
    "typing.Any",
    Annotated[int, pydantic.Field(ge=1)],
    list["int"],
]


@pytest.mark.parametrize("annotation", OPEN, ids=repr)
def test_types_that_can_change_have_none(annotation: Any):
    assert stamp_of(made(annotation)) is None


@pytest.mark.parametrize("default", [[1], {}, (1,), Item, pydantic.Field(1)], ids=repr)
def test_defaults_that_can_change_have_none(default: Any):
    assert stamp_of(made(default=default)) is None


def test_a_name_in_a_quoted_annotation_is_looked_up_again(monkeypatch: pytest.MonkeyPatch):
    """tool-declarations: A source that changed in place is declared as it is now."""
    function = made("int")
    stamp = stamp_of(function)
    assert stamp is not None
    monkeypatch.setitem(globals(), "int", str)
    assert not is_unchanged(function, stamp)


class Clock:
    def now(self, zone: str = "UTC") -> str:
        """Tell the time."""
        return zone

    def bare(self, zone: str) -> str:
        return zone


def test_a_method_and_its_function_have_different_stamps():
    one, another = Clock(), Clock()
    stamp = stamp_of(one.now)
    assert stamp is not None
    assert is_unchanged(another.now, stamp)
    assert not is_unchanged(Clock.now, stamp)
    function = made()
    assert stamp_of(function) is not None
    assert not is_unchanged(function.__get__(one), stamp_of(function) or stamp)
    assert [decl.func for decl in ToolDecls([another.now])] == [another.now]


def test_a_method_whose_docstring_may_be_inherited_has_none():
    assert stamp_of(Clock().bare) is None


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
def test_an_mcp_tool_that_was_changed_has_another_stamp(change: Callable[[Any], object]):
    """tool-declarations: A source that changed in place is declared as it is now."""
    tool = mcp_tool(annotations={"title": "Now"})
    stamp = stamp_of(tool)
    assert stamp is not None
    assert is_unchanged(tool, stamp)
    before = ToolDecls([tool])
    assert ToolDecls([tool]) == before
    change(tool)
    assert not is_unchanged(tool, stamp)
    fresh = tool.model_copy(deep=True)
    assert ToolDecls([tool]).to_openai() == ToolDecls([fresh]).to_openai()
    assert ToolDecls([tool]).tools[0].extras == ToolDecls([fresh]).tools[0].extras


def test_mcp_tools_that_are_not_plain_data_have_none():
    class Own(mcp.types.Tool):
        pass

    class Odd(dict[str, Any]):
        pass

    assert stamp_of(Own.model_validate(mcp_tool().model_dump(by_alias=True))) is None
    tool = mcp_tool()
    schema_of(tool)["properties"] = Odd()
    assert stamp_of(tool) is None


def test_a_declaration_made_again_is_its_own():
    """call-cost: Tools that say the same are looked at and not read."""
    function, tool = made(), mcp_tool(annotations={"title": "Now"}, outputSchema={"type": "object"})
    ToolDecls([function, tool])
    one, another = ToolDecls([function, tool]), ToolDecls([function, tool])
    assert one == another
    assert one.tools[0].func is function
    assert one.tools[1].func is None
    for first, second in zip(one, another, strict=True):
        assert first is not second
        first.parameters["edited"] = True
        assert "edited" not in second.parameters
        assert "edited" not in first.to_openai()["function"]["parameters"]
    for part in (one.tools[1].extras, one.tools[1].returns):
        assert part is not None
        part["edited"] = True
    assert ToolDecls([function, tool]) == ToolDecls([function, tool])
    assert "edited" not in str(ToolDecls([tool]).entries)
    with pytest.raises(AttributeError):
        one.tools[0].nothing  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # noqa: B018


def test_a_stamp_keeps_nothing_alive():
    """call-cost: Caches are bounded and weak."""
    function, tool = made(), mcp_tool()
    known, stamps = [weakref.ref(function), weakref.ref(tool)], [stamp_of(function), stamp_of(tool)]
    ToolDecls([function, tool]).canonical  # noqa: B018
    del function, tool
    gc.collect()
    assert [reference() for reference in known] == [None, None]
    assert None not in stamps
