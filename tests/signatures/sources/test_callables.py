# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# (parameters without a type are among what is tested)
"""Python callables of every kind as tools."""

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal

import dspy
import pydantic
import pytest
from pydantic import Field

from sigadapt import ToolCall, ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl


def properties(source: Callable[..., Any]) -> dict[str, Any]:
    return ToolDecl.of(source).parameters["properties"]


def problems(source: Callable[..., Any]) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(source)
    assert caught.value.code == "underivable"
    return caught.value


@dataclasses.dataclass
class Box:
    width: int
    label: str = ""


@dataclasses.dataclass
class Counted:
    of: Box
    count: int = dataclasses.field(default=0, init=False)
    seen: list[int] = dataclasses.field(default_factory=list[int], init=False)
    late: int = dataclasses.field(init=False)
    seed: dataclasses.InitVar[int] = 1


class Desk:
    """A desk."""

    def book(self, room: int, note: str = "") -> str:
        """Book a room."""
        raise AssertionError

    async def find(self, size: int) -> list[int]:
        """Find a room."""
        raise AssertionError

    @classmethod
    def open_all(cls, floor: int) -> None:
        """Open a floor."""

    @staticmethod
    def ring(times: int = 1) -> None:
        """Ring."""

    book_three = functools.partialmethod(book, room=3)

    def __call__(self, question: str) -> str:
        """Ask at the desk."""
        raise AssertionError


def test_a_field_that_a_dataclass_sets_by_itself_is_not_offered():
    """tool-declarations: A field that a dataclass sets by itself is not offered."""

    class Order(pydantic.BaseModel):
        boxes: list[Counted]

    def pack(boxes: list[Counted], order: Order) -> Counted:
        raise AssertionError

    told = ToolDecl.of(pack)
    for declared in (told.parameters, ToolDecl.of(Order).parameters):
        offered = declared["$defs"]["Counted"]
        assert list(offered["properties"]) == ["of", "seed"]
        assert offered["required"] == ["of"]
    assert told.returns is not None
    assert {"count", "seen"} <= set(told.returns["properties"]), "an output has them"


def test_constraints_and_descriptions_of_annotated_are_kept():
    """tool-declarations: Annotated constraints and descriptions are kept."""

    def search(
        query: Annotated[str, Field(min_length=1, description="what for")],
        limit: Annotated[int, Field(ge=1, le=9)] = 5,
        page: int = Field(1, ge=1, description="old style"),
        size: int = Field(description="no default"),
    ): ...

    assert properties(search) == {
        "query": {"type": "string", "minLength": 1, "description": "what for"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
        "page": {"type": "integer", "minimum": 1, "description": "old style", "default": 1},
        "size": {"type": "integer", "description": "no default"},
    }
    assert ToolDecl.of(search).parameters["required"] == ["query", "size"]


def test_a_default_in_annotated_is_one():
    """tool-declarations: Annotated constraints and descriptions are kept."""

    def search(
        limit: Annotated[int, Field(ge=1, default=5)],
        tags: Annotated[list[str], Field(default_factory=list[str])],
    ) -> tuple[int, list[str]]:
        return limit, tags

    assert "required" not in ToolDecl.of(search).parameters
    assert properties(search)["limit"]["default"] == 5
    assert ToolCall(id="c", name="search", args={}).execute([search]) == (5, [])
    assert ToolCall(id="c", name="search", args={"limit": 2}).execute([search]) == (2, [])


def test_variadic_parameters_are_left_out():
    """tool-declarations: Variadic parameters are not declared."""

    def closed(a: int, *rest: int): ...
    def opened(a: int, **rest: Any): ...

    assert set(properties(closed)) == set(properties(opened)) == {"a"}
    assert ToolDecl.of(closed).parameters["additionalProperties"] is False
    assert "additionalProperties" not in ToolDecl.of(opened).parameters


class Color(enum.Enum):
    RED = "red"


class Tone(str, enum.Enum):
    LOW = "low"


class Paint(pydantic.BaseModel):
    color: Literal[Color.RED]


NO_JSON: list[Any] = [
    *(Literal[Color.RED], Literal[Color.RED] | None, list[Literal[Color.RED]], Literal[Color.RED] | int),
    *(dict[str, Literal[Color.RED, "x"]], Paint, list[Paint] | None, Literal[b"x"]),
]
JSON: list[tuple[Any, Any, Any]] = [
    (Literal[Tone.LOW], "low", Tone.LOW),
    (Literal[1, True, "a"], True, True),
    (Color, "red", Color.RED),
]


@pytest.mark.parametrize("kind", NO_JSON, ids=repr)
def test_a_literal_that_no_json_is_is_refused(kind: Any):
    """tool-declarations: A Literal that no JSON is is refused."""

    def paint(color): ...

    paint.__annotations__ = {"color": kind}
    assert "no JSON is" in str(problems(paint))


@pytest.mark.parametrize(("kind", "sent", "value"), JSON, ids=repr)
def test_other_literals_and_enums_run(kind: Any, sent: Any, value: Any):
    """tool-declarations: A Literal that no JSON is is refused."""

    def paint(color: Any) -> Any:
        return color

    paint.__annotations__ = {"color": kind}
    call = ToolCall(id="1", name="paint", args={"color": sent})
    assert call.execute(ToolDecls([paint])) is value


def test_all_problems_are_raised_at_once():
    def f(
        a, /, b: Callable[[], int], c: int, d: Annotated[int, Field(alias="e")], g: type, *, h, fits: int
    ): ...

    f.__annotations__ |= {"c": "Nothing", "h": ["no type"]}
    error = problems(f)
    assert error.tool == f"{__name__}.test_all_problems_are_raised_at_once.<locals>.f"
    for name in "abcdgh":
        assert f"'{name}'" in error.reason
    assert "'fits'" not in error.reason
    assert "parameters=" in str(error)


@pytest.mark.parametrize("source", [Desk.book, len, min])
def test_what_cannot_be_called_by_name_is_refused(source: Callable[..., Any]):
    assert problems(source).fix


def test_a_result_without_a_schema_is_no_problem():
    def f() -> Callable[[], int]:
        raise AssertionError

    def g() -> "Nothing":  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
        raise AssertionError

    assert ToolDecl.of(f).returns is ToolDecl.of(g).returns is None


UNTYPED = '''
def bare(*args, **kwargs):
    """Do."""

def logged(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

class Thing:
    """Do."""
    def __call__(self, *args, **kwargs):
        """Do."""

find = lambda q, *, limit=3: q
'''
# As text, because it has no types, which this repository requires.
WRITTEN: dict[str, Any] = {"__name__": "written_by_a_user"}
exec(UNTYPED, WRITTEN)  # noqa: S102  (our own text)
bare, logged, Thing, find = (WRITTEN[name] for name in ("bare", "logged", "Thing", "find"))


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_what_says_something_is_taken():
    """tool-declarations: A function that declares nothing is refused by name."""
    assert ToolDecl.of(functools.wraps(add)(logged(add))).parameters["required"] == ["a", "b"]
    assert ToolDecl.of(bare, parameters={"type": "object"}).name == "bare"
    assert ToolDecl.of(functools.partial(add, a=1, b=2)).parameters["properties"] == {}


@pytest.mark.parametrize("tool", [find, dspy.Tool(find)], ids=["lambda", "Tool"])
def test_a_lambda_is_an_error_that_says_which(tool: Any):
    """tool-declarations: A lambda is refused with what it takes and where it stands."""
    with pytest.raises(
        InvalidToolDecl, match=r"the lambda of \(q, limit\) at line \d+ of written_by"
    ) as caught:
        ToolDecls([add, tool])
    assert caught.value.code == "missing_name"
    assert ToolDecl.of(tool, name="find").name == "find"
