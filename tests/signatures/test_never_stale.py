"""A declaration is what its source says now: sources that change between calls, but not the types in them.

The machine changes sources at random and holds after every step that what is sent is what a fresh reading of
the same source gives, and that calls are checked by exactly that.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Annotated, Any

import dspy
import mcp.types
import pydantic
import pytest
import typing_extensions
from budgets import share
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl


def other(c: float) -> None:
    """Do something else."""


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any: ...

    return run


class World:
    """Types, functions of them, and tools in every form; each change is made in place."""

    def __init__(self) -> None:
        class Spot(pydantic.BaseModel):
            lat: float = pydantic.Field(0.0, ge=-90, json_schema_extra={"unit": "degrees"})

        class City(pydantic.BaseModel):
            """A city."""

            name: str = pydantic.Field(description="Its name.")
            spot: Spot | None = None

        class Unit(Enum):
            C = "c"
            F = "f"

        @dataclasses.dataclass
        class Span:
            start: str
            days: int = 1

        class Filter(typing_extensions.TypedDict):
            kind: str

        self.limit = pydantic.Field(ge=1, description="At most.")

        def search(  # noqa: PLR0917
            city: City,
            cities: list[City],
            unit: Unit = Unit.C,
            span: Span | None = None,
            only: Filter | None = None,
            limit: Annotated[int, self.limit] = 3,
            *,
            tags: list[str] = [],  # noqa: B006
            page: int = pydantic.Field(1, ge=1),
        ) -> str: ...  # pyright: ignore[reportReturnType]

        def find(city: City, unit: Unit = Unit.C, only: Filter | None = None) -> list[Span]: ...  # pyright: ignore[reportReturnType]

        def plain(a: int = 1, *, b: str = "x") -> None:
            """Do it."""

        def own(a: int = 0) -> int:
            return a

        self.types: Any = SimpleNamespace(spot=Spot, city=City, unit=Unit, span=Span, filter=Filter)
        self.search: Any = search
        self.plain: Any = plain
        self.tool: Any = dspy.Tool(find)
        self.author_tool: Any = dspy.Tool(own, name="own", desc="Own.", args={"a": {"type": "integer"}})
        self.data: dict[str, Any] = {
            "name": "data",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}},
        }
        schema = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
        row = {"name": "then", "inputSchema": schema, "annotations": {"title": "Now"}}
        self.mcp: Any = mcp.types.Tool.model_validate(row)
        self.wrapped = decorated(search)
        self.partial = functools.partial(search, limit=2)

    def sources(self) -> list[Any]:
        of_functions = [self.plain, self.search, self.wrapped, self.partial]
        return [*of_functions, self.tool, self.author_tool, self.data, self.mcp]


def in_schema(world: World) -> Any:
    return getattr(world.mcp, "input_schema", None) or world.mcp.inputSchema


def new_code(function: Any, source: Any) -> None:
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = source.__code__


ONLY = inspect.Signature([inspect.Parameter("only", inspect.Parameter.KEYWORD_ONLY, annotation=int)])


def renew(model: Any, **description: str) -> None:
    for name, text in description.items():
        model.model_fields[name].description = text
    model.model_rebuild(force=True)


WORLD_CHANGES: dict[str, Callable[[World, str], object]] = {
    "a field described and its model rebuilt": lambda w, text: renew(w.types.city, name=text),
    "an inner model rebuilt": lambda w, text: renew(w.types.spot, lat=text),
    "a field described, not rebuilt": lambda w, text: setattr(
        w.types.city.model_fields["name"], "description", text
    ),
    "a model rebuilt": lambda w, text: w.types.city.model_rebuild(force=True),
    "a default in place": lambda w, text: w.search.__kwdefaults__["tags"].append(text),
    "a tool's description": lambda w, text: setattr(w.tool, "desc", text),
    "a tool's name": lambda w, text: setattr(w.tool, "name", f"tool_{len(text)}"),
    "a tool's argument": lambda w, text: w.author_tool.args["a"].update(description=text),
    "another argument": lambda w, text: w.author_tool.args.update({text or "b": {"type": "string"}}),
    "a tool's function": lambda w, text: setattr(w.author_tool, "func", decorated(renew)),
    "a dict's description": lambda w, text: w.data.update(description=text),
    "a dict's default": lambda w, text: w.data["parameters"]["properties"]["a"].update(default=True),
    "a dict's equal default": lambda w, text: w.data["parameters"]["properties"]["a"].update(default=1.0),
    "a function's name": lambda w, text: setattr(w.plain, "__name__", f"plain_{len(text)}"),
    "a function's docstring": lambda w, text: setattr(w.plain, "__doc__", f"Do it.\n\nArgs:\n    a: {text}"),
    "no docstring": lambda w, text: setattr(w.plain, "__doc__", None),
    "no default": lambda w, text: setattr(w.plain, "__defaults__", None),
    "another default": lambda w, text: setattr(w.plain, "__defaults__", (len(text),)),
    "an equal default": lambda w, text: setattr(w.plain, "__defaults__", (True,)),
    "a list as a default": lambda w, text: setattr(w.plain, "__defaults__", ([text],)),
    "a list that is a default": lambda w, text: [
        each.append(text) for each in w.plain.__defaults__ or () if isinstance(each, list)
    ],
    "a keyword's default": lambda w, text: setattr(w.plain, "__kwdefaults__", {"b": text}),
    "no keyword's default": lambda w, text: setattr(w.plain, "__kwdefaults__", None),
    "an annotation": lambda w, text: w.plain.__annotations__.update(a="list[int]", c=str),
    "all annotations": lambda w, text: setattr(w.plain, "__annotations__", {"a": str, "b": int, "c": bool}),
    "no annotation": lambda w, text: w.plain.__annotations__.clear(),
    "a function's code": lambda w, text: new_code(w.plain, other),
    "a function's signature": lambda w, text: setattr(w.plain, "__signature__", ONLY),
    "no signature": lambda w, text: w.plain.__dict__.pop("__signature__", None),
    "an MCP tool's name": lambda w, text: setattr(w.mcp, "name", f"then_{len(text)}"),
    "an MCP tool's description": lambda w, text: setattr(w.mcp, "description", text),
    "an MCP tool's schema": lambda w, text: in_schema(w)["properties"].update({text: {}}),
    "an MCP tool's equal default": lambda w, text: in_schema(w)["properties"]["a"].update(default=1.0),
    "an MCP tool's annotation": lambda w, text: setattr(w.mcp.annotations, "title", text),
    "the wrapped docstring": lambda w, text: setattr(w.search, "__doc__", text),
    "a wrapper's docstring": lambda w, text: setattr(w.wrapped, "__doc__", text),
    "a partial's keyword": lambda w, text: setattr(w, "partial", functools.partial(w.search, span=None)),
}


ARGS: list[dict[str, Any]] = [{}, {"a": 1}, {"a": "x"}, {"city": "x"}, {"c": 1.5}, {"only": 1}, {"only": "x"}]


def declared(source: Any) -> Any:
    """What is sent of a source, and which arguments fit it."""
    try:
        decls = ToolDecls([source])
        assert decls.to_openai() == decls.canonical
        return decls.to_openai(), decls[0].extras, [decls[0].flaw_of(args) is None for args in ARGS]
    except InvalidToolDecl as error:
        return str(error)


Change = Callable[[World, str], object]


def changed(*changes: tuple[Change, str]) -> World:
    """A world of which nothing was read before the changes."""
    world = World()
    for change, text in changes:
        change(world, text)
    return world


def declared_by(world: World) -> list[Any]:
    return [declared(source) for source in world.sources()]


@pytest.mark.parametrize("change", WORLD_CHANGES.values(), ids=WORLD_CHANGES)
def test_what_changed_between_two_calls_is_declared_as_it_is_now(change: Change):
    """tool-declarations: A source that changed in place is declared as it is now."""
    world, done = World(), list[tuple[Change, str]]()
    for text in ("New.", "Newer.", "New."):
        assert declared_by(world) == declared_by(world)
        change(world, text)
        done.append((change, text))
        assert declared_by(world) == declared_by(changed(*done))


class ChangingWorld(RuleBasedStateMachine):
    """Any changes in any order, declared at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.done = World(), list[tuple[Change, str]]()

    @rule(change=st.sampled_from([*WORLD_CHANGES.values()]), text=st.sampled_from(["One.", "Two.", ""]))
    def change(self, change: Change, text: str) -> None:
        change(self.world, text)
        self.done.append((change, text))

    @rule()
    def declare(self) -> None:
        assert declared_by(self.world) == declared_by(changed(*self.done))


TestChangingWorld = ChangingWorld.TestCase
TestChangingWorld.settings = settings(max_examples=share(60), stateful_step_count=20)
