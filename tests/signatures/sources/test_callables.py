# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false
# (parameters without a type are among what is tested)
"""Python callables of every kind as tools."""

import dataclasses
import datetime as dt
import enum
import functools
import gc
import math
import weakref
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import dspy
import pydantic
import pytest
from internals import checking as schema
from pydantic import Field
from support import Must, lm_of
from typing_extensions import TypedDict

import sigadapt
from sigadapt import ToolCalls, ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl
from sigadapt.testing import Answer, Call, LoopbackProvider


def facts(source: Callable[..., Any]) -> ToolDecl:
    told = ToolDecl.of(source)
    schema.check(told.parameters, tool="f")
    return told


def properties(source: Callable[..., Any]) -> dict[str, Any]:
    return facts(source).parameters["properties"]


def problems(source: Callable[..., Any]) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(source)
    assert caught.value.code == "underivable"
    return caught.value


class Node(pydantic.BaseModel):
    """A node."""

    value: int
    children: list["Node"] = []


class Kind(enum.Enum):
    CODE = "code"
    TEXT = "text"


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


class Span(NamedTuple):
    start: int
    end: int = 0


class Extra(TypedDict, total=False):
    note: str


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


def test_a_signature_becomes_a_schema():
    """tool-declarations: A function's parameters become a schema."""

    def search(query: str, limit: int = 10, *, deep: bool = False, hint=None) -> list[str]:
        """Search the index."""
        raise AssertionError

    told = facts(search)
    assert (told.name, told.description, told.func) == ("search", "Search the index.", search)
    assert told.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "deep": {"type": "boolean", "default": False},
            "hint": {"default": None},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert told.returns == {"type": "array", "items": {"type": "string"}}


def test_a_field_that_a_dataclass_sets_by_itself_is_not_offered():
    """tool-declarations: A field that a dataclass sets by itself is not offered."""

    class Order(pydantic.BaseModel):
        boxes: list[Counted]

    def pack(boxes: list[Counted], order: Order) -> Counted:
        raise AssertionError

    told = facts(pack)
    for declared in (told.parameters, facts(Order).parameters):
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
    assert facts(search).parameters["required"] == ["query", "size"]


def test_the_docstring_describes_what_the_annotation_does_not():
    """tool-declarations: The docstring describes the tool and its parameters."""

    def search(query: Annotated[str, Field(description="from the field")], limit: int = 1) -> int:
        """Search the index.

        All of it.

        Args:
            query: from the docstring
            limit: at most so many

        Returns:
            how many there were

        Raises:
            ValueError: never
        """
        raise AssertionError

    told = facts(search)
    assert told.description == "Search the index.\n\nAll of it."
    assert told.parameters["properties"]["query"]["description"] == "from the field"
    assert told.parameters["properties"]["limit"]["description"] == "at most so many"
    assert told.returns == {"type": "integer", "description": "how many there were"}


def test_variadic_parameters_are_left_out():
    """tool-declarations: Variadic parameters are not declared."""

    def closed(a: int, *rest: int): ...
    def opened(a: int, **rest: int): ...

    assert set(properties(closed)) == set(properties(opened)) == {"a"}
    assert facts(closed).parameters["additionalProperties"] is False
    assert "additionalProperties" not in facts(opened).parameters


def test_a_recursive_type_stays_recursive():
    """tool-declarations: A recursive type stays recursive."""

    def plant(root: Node, others: "list[Node] | None" = None): ...

    told = facts(plant).parameters
    assert told["properties"]["root"] == {"$ref": "#/$defs/Node"}
    validator = schema.check(told, tool="plant").validator
    args: dict[str, Any] = {"root": {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}}
    assert validator.is_valid(args)
    args["root"]["children"][0]["children"][0]["value"] = "x"
    assert not validator.is_valid(args)


def test_every_kind_of_type():
    def f(  # noqa: PLR0917
        kind: Kind,
        word: Literal["a", "b"],
        box: Box,
        span: Span,
        extra: Extra,
        when: dt.datetime,
        either: int | str,
        pair: tuple[int, str],
        several: set[int],
        tree: dict[str, list[float]],
        anything,
    ): ...

    told = facts(f).parameters
    assert told["properties"] == {
        "kind": {"$ref": "#/$defs/Kind"},
        "word": {"enum": ["a", "b"], "type": "string"},
        "box": {"$ref": "#/$defs/Box"},
        "span": {"$ref": "#/$defs/Span"},
        "extra": {"$ref": "#/$defs/Extra"},
        "when": {"type": "string", "format": "date-time"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        "several": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "tree": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}},
        "anything": {},
    }
    assert told["$defs"]["Kind"] == {"enum": ["code", "text"], "type": "string"}
    assert told["$defs"]["Box"]["required"] == ["width"]
    assert "title" not in str(told)


def test_defaults_are_told_as_json_or_not_at_all():
    def f(  # noqa: PLR0917
        kind: Kind = Kind.CODE,
        box: Box = Box(1),  # noqa: B008
        span: Span = Span(1),  # noqa: B008
        when: dt.date = dt.date(2024, 5, 1),
        words: frozenset[str] = frozenset(("b", "c", "a")),
        limit: float = math.inf,
        marker: Any = object(),  # noqa: B008
    ): ...

    told = properties(f)
    assert told["kind"]["default"] == "code"
    assert told["box"]["default"] == {"width": 1, "label": ""}
    assert told["span"]["default"] == [1, 0]
    assert told["when"]["default"] == "2024-05-01"
    assert told["words"]["default"] == ["a", "b", "c"]
    assert "default" not in told["limit"]
    assert told["marker"] == {}
    assert "required" not in facts(f).parameters


def test_methods_and_objects_ask_for_what_is_not_bound():
    desk = Desk()
    sources = (desk.book, desk.find, Desk.open_all, Desk.ring, desk.book_three, desk)
    assert [(facts(source).name, list(properties(source))) for source in sources] == [
        ("book", ["room", "note"]),
        ("find", ["size"]),
        ("open_all", ["floor"]),
        ("ring", ["times"]),
        ("book", ["note"]),
        ("Desk", ["question"]),
    ]
    assert facts(desk).description == "Ask at the desk."
    assert facts(desk.find).returns == {"type": "array", "items": {"type": "integer"}}


def test_a_partial_keeps_what_it_holds_to_itself():
    def fetch(url: str, key: str, depth: int = 1):
        """Fetch."""

    bound = functools.partial(functools.partial(fetch, "http://localhost"), key="secret")
    told = facts(bound)
    assert (told.name, told.description, list(told.parameters["properties"])) == (
        "fetch",
        "Fetch.",
        ["depth"],
    )
    assert "secret" not in str(told.parameters)
    named = functools.partial(Desk(), question="x")
    functools.update_wrapper(named, fetch)
    assert (facts(named).name, facts(named).description) == ("fetch", "Fetch.")


def test_wrapped_functions_speak_for_what_they_wrap():
    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any: ...

        return wrapper

    class Wrapper:
        def __init__(self, function: Callable[..., Any]) -> None:
            functools.update_wrapper(self, function)

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def f(a: int, b: "Node | None" = None) -> int:
        """F."""
        raise AssertionError

    expected = facts(f)
    for decorate in (plain, Wrapper, functools.lru_cache, pydantic.validate_call):
        told = facts(decorate(f))
        assert told == expected, decorate


def test_annotations_in_quotes_are_resolved():
    def f(a: "Annotated[int, Field(ge=1)]", b: "list['Node']", c: "int | None" = None): ...

    told = properties(f)
    assert told["a"] == {"type": "integer", "minimum": 1}
    assert told["b"]["items"] == {"$ref": "#/$defs/Node"}
    assert told["c"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}


def test_all_problems_are_raised_at_once():
    def f(a, /, b: Callable[[], int], c: "Nothing", d: Annotated[int, Field(alias="e")], g: type): ...  # pyright: ignore[reportUndefinedVariable]  # noqa: F821

    error = problems(f)
    assert error.tool == f"{__name__}.test_all_problems_are_raised_at_once.<locals>.f"
    for name in "abcdg":
        assert f"'{name}'" in error.reason
    assert "parameters=" in str(error)


@pytest.mark.parametrize("source", [Desk.book, len, min])
def test_what_cannot_be_called_by_name_is_refused(source: Callable[..., Any]):
    assert problems(source).fix


def test_positional_arguments_alone_are_refused():
    """A model passes arguments by name, so the tool would always run without them."""

    def f(*cities: str): ...

    assert "cities" in problems(f).reason


def test_a_result_without_a_schema_is_no_problem():
    def f() -> Callable[[], int]:
        raise AssertionError

    def g() -> "Nothing":  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
        raise AssertionError

    assert facts(f).returns is facts(g).returns is None


def test_a_result_is_described_as_it_is_written_out():
    def f() -> Node:
        raise AssertionError

    returns = facts(f).returns or {}
    assert returns["$ref"] == "#/$defs/Node"
    assert returns["$defs"]["Node"]["properties"]["value"] == {"type": "integer"}
    assert "title" not in str(returns)


def test_a_given_schema_replaces_the_derived_one():
    def f(a, /):
        """F.

        Args:
            a: an a
        """

    given = {"type": "object"}
    told = ToolDecl.of(f, parameters=given)
    assert (told.parameters, told.description) == (given, "F.")


def test_classes_and_modules_are_not_callables_here():
    for source in (Desk, 5, list[int], int | None):
        with pytest.raises(InvalidToolDecl) as caught:
            ToolDecl.of(source)
        assert caught.value.code == "unknown_source"
    assert [*ToolDecl.of(dspy.Predict("a -> b"), name="f").parameters["properties"]] == ["a"]


def test_each_reading_has_a_schema_of_its_own():
    def f(a: list[int]): ...

    first = facts(f)
    first.parameters["properties"].clear()
    assert properties(f) == {"a": {"type": "array", "items": {"type": "integer"}}}


def test_a_changed_docstring_or_name_is_seen():
    def f(a: int): ...

    assert facts(f).description == ""
    f.__doc__, f.__name__ = "New.", "g"
    assert (facts(f).description, facts(f).name) == ("New.", "g")


def test_what_was_derived_does_not_keep_the_function_alive():
    def f(a: Node, b: Annotated[int, Field(ge=1)] = 1): ...

    facts(f)
    watched = weakref.ref(f)
    del f
    gc.collect()
    assert watched() is None


def test_nothing_is_called():
    """tool-declarations: Nothing declared is ever called."""

    ran: list[str] = []

    def f(a: int = 1) -> int:
        ran.append("function")
        return a

    class Tool:
        def method(self, a: int) -> None:
            ran.append("method")

        def __call__(self, a: int) -> None:
            ran.append("object")

    async def later(a: int) -> None:
        ran.append("coroutine function")

    def ask(args: Any) -> bool:
        ran.append("confirmation")
        return True

    method = functools.partial(Tool().method, a=1)
    sources = [f, Tool(), later, method, dspy.Tool(f, name="g"), dspy.Predict("a -> b")]
    decls = ToolDecls(
        [ToolDecl.of(each, name=f"t{n}", requires_confirmation=ask) for n, each in enumerate(sources)]
    )
    assert len(decls.to_openai()) == len(sources)
    calls = ToolCalls([{"name": "t0", "args": {"a": 2}}]).validated(decls)
    calls[0].bind(decls)
    with (
        LoopbackProvider([Answer(calls=[Call("t0", {"a": 1})])]) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
    ):
        dspy.Predict(Must)(question="q", tools=decls)
    assert ran == []
