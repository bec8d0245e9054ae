"""`bind` beside `pydantic.TypeAdapter`: generated signatures and arguments, and every known difference."""

import contextlib
import dataclasses
import datetime as dt
import enum
import inspect
import json
import typing
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter
from pydantic_core import to_jsonable_python
from support import json_values
from typing_extensions import NotRequired, TypedDict

from sigadapt import ToolCall, ToolDecl, ToolDecls
from sigadapt.errors import UnboundToolCall

Kind: TypeAlias = tuple[Any, st.SearchStrategy[Any]]
"""An annotation, and JSON values for it."""


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def doubled(value: int) -> int:
    return value * 2


def stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


numbers = st.integers(-(10**6), 10**6)
texts = st.text('abc é"\\', max_size=5)


LEAVES: list[Kind] = [
    (int, numbers | numbers.map(float)),
    (float, numbers | st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (str, texts),
    (Any, st.none() | numbers | texts | st.lists(numbers, max_size=2)),
    (type(None), st.none()),
    (bytes, texts),
    (Decimal, st.decimals(-100, 100, places=2).map(str) | st.floats(-100, 100)),
    (uuid.UUID, st.uuids().map(to_jsonable_python)),
    (Path, texts.map(lambda text: f"/tmp/{text}")),  # noqa: S108  (no file is opened)
    (dt.datetime, st.datetimes(timezones=st.just(dt.timezone.utc)).map(to_jsonable_python)),
    (dt.date, st.dates().map(to_jsonable_python)),
    (dt.time, st.times(timezones=st.just(dt.timezone.utc)).map(to_jsonable_python)),
    (dt.timedelta, st.timedeltas(dt.timedelta(0), dt.timedelta(days=9)).map(to_jsonable_python)),
    (Color, st.sampled_from(["red", "blue"])),
    (Level, st.sampled_from([1, 2])),
    (Literal["a", 1, True], st.sampled_from(["a", 1, True])),
    (Annotated[int, Field(ge=0, le=9)], st.integers(0, 9)),
    (Annotated[str, Field(max_length=5, description="short")], texts),
    (Annotated[int, pydantic.AfterValidator(doubled)], numbers),
    (Annotated[str, pydantic.BeforeValidator(stripped)], texts),
]


@dataclasses.dataclass(kw_only=True)
class Counted:
    """Has fields that `__init__` does not take or takes alone, and an attribute that is no field."""

    level: Level
    days: list[dt.date]
    total: int = dataclasses.field(init=False, default=0)
    rest: list[int] = dataclasses.field(init=False, default_factory=list[int])
    seen: int = dataclasses.field(init=False)
    seed: dataclasses.InitVar[int] = 5
    is_admin = False

    def __post_init__(self, seed: int) -> None:
        self.seen = seed * 2

    def allowed(self) -> bool:
        return self.is_admin


class Typed(TypedDict):
    counted: Counted
    price: Decimal
    maybe: NotRequired[Color]


class Row(NamedTuple):
    when: dt.datetime
    typed: Typed


class Model(pydantic.BaseModel):
    rows: dict[str, Row]
    count: int = Field(1, alias="theCount")

    @pydantic.field_validator("count")
    @classmethod
    def _counted(cls, count: int) -> int:
        return count + 1

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _as_is(cls, value: Any) -> Any:
        return value


def objects(optional: dict[str, st.SearchStrategy[Any]], **fields: st.SearchStrategy[Any]) -> Any:
    """Objects with these fields, and often with an attribute or a method's name that is no field."""
    extra = {"is_admin": st.just(value=True), "allowed": numbers, "__class__": texts, **optional}
    return st.fixed_dictionaries(fields, optional=extra)


DAYS = st.lists(st.dates().map(to_jsonable_python), max_size=2)
COUNTS = {"total": numbers, "rest": st.lists(numbers), "seen": numbers, "seed": numbers}
COUNTED = objects(COUNTS, level=st.sampled_from([1, 2]), days=DAYS)
TYPED = objects({"maybe": st.just("red")}, counted=COUNTED, price=st.floats(-100, 100))
ROWS = st.tuples(st.datetimes(timezones=st.just(dt.timezone.utc)).map(to_jsonable_python), TYPED).map(list)
MODELS = objects({"theCount": numbers, "count": numbers}, rows=st.dictionaries(texts, ROWS, max_size=2))
NESTED: list[Kind] = [
    (Counted, COUNTED),
    (list[Counted], st.lists(COUNTED, max_size=2)),
    (Typed | None, st.none() | TYPED),
    (tuple[Row, ...], st.lists(ROWS, max_size=2)),
    (tuple[Typed, int], st.tuples(TYPED, numbers).map(list)),
    (dict[str, Model], st.dictionaries(texts, MODELS, max_size=2)),
    (Model | Counted, MODELS | COUNTED),
    (int | str | list[Color], numbers | texts | st.lists(st.just("blue"), max_size=2)),
]
kinds_of_values = st.sampled_from([*LEAVES, *NESTED])


class Case(NamedTuple):
    """A function and the arguments for one call of it."""

    func: Callable[..., Any]
    types: dict[str, Any]
    args: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn, *, fitting: bool) -> Case:
    kinds = {f"p{n}": kind for n, kind in enumerate(draw(st.lists(kinds_of_values, min_size=1, max_size=4)))}

    def func(**given: Any) -> dict[str, Any]:
        return given

    taking: Any = func
    optional = draw(st.sets(st.sampled_from(sorted(kinds))))
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY if name in optional else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            annotation=annotation,
            default=None if name in optional else inspect.Parameter.empty,
        )
        for name, (annotation, _) in kinds.items()
    ]
    parameters.sort(key=lambda parameter: parameter.kind)
    taking.__signature__ = inspect.Signature(parameters)
    sent = [name for name in kinds if name not in optional or draw(st.booleans())]
    args = {name: draw(kinds[name][1] if fitting else kinds[name][1] | json_values) for name in sent}
    return Case(func, {name: annotation for name, (annotation, _) in kinds.items()}, args)


def made_of(value: Any) -> Any:
    """A value with all that it holds and the types of it; of an object also what is no field."""
    held, kind = value, cast("type[Any]", type(value))
    if issubclass(kind, dict):
        return kind, {key: made_of(item) for key, item in held.items()}
    if issubclass(kind, (list, tuple)):
        return kind, [made_of(item) for item in held]
    if dataclasses.is_dataclass(kind) or issubclass(kind, pydantic.BaseModel):
        return kind, made_of(held.__dict__)
    return kind, held


def by_pydantic(case: Case) -> dict[str, Any] | set[str]:
    """The arguments as pydantic makes them, each alone, or the names of those that it refuses."""
    made: dict[str, Any] = {}
    for name, value in case.args.items():
        with contextlib.suppress(pydantic.ValidationError):
            made[name] = TypeAdapter[Any](case.types[name]).validate_json(json.dumps(value))
    return made if made.keys() == case.args.keys() else case.args.keys() - made.keys()


def by_bind(decls: ToolDecls, args: dict[str, Any]) -> dict[str, Any] | UnboundToolCall:
    """The arguments as `bind` makes them, or its error."""
    [decl] = decls
    try:
        return ToolCall(id="c", name=decl.name, args=args).bind(decls)
    except UnboundToolCall as error:
        return error


# Building pydantic types takes its time. Tests never time anything.
SETTINGS = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@SETTINGS
@given(cases(fitting=True))
def test_bind_gives_what_pydantic_gives_for_each_annotation(case: Case) -> None:
    """tool-call-outputs: Binding is pydantic's validation of each annotation."""
    decls = ToolDecls(case.func)
    assert decls.flaw_of("func", case.args) is None
    bound = ToolCall(id="c", name="func", args=case.args).bind(decls)
    assert made_of(case.func(**bound)) == made_of(by_pydantic(case))


@SETTINGS
@given(cases(fitting=False))
def test_what_the_schema_or_pydantic_refuses_raises(case: Case) -> None:
    """tool-call-outputs: Arguments that do not bind are a tagged bad call."""
    decls = ToolDecls(case.func)
    flaw = decls.flaw_of("func", case.args)
    expected = by_pydantic(case)
    bound = by_bind(decls, case.args)
    if isinstance(bound, UnboundToolCall):
        assert bound.code == "schema_mismatch"
        assert flaw or str(bound.path).split("/")[1] in expected
    elif flaw is not None:  # the function fills the same value in by itself, so it needs not fit the schema
        defaults = {name: each.default for name, each in inspect.signature(case.func).parameters.items()}
        others = {name: value for name, value in case.args.items() if value != defaults[name]}
        assert decls.flaw_of("func", others) is None
    else:
        assert made_of(case.func(**bound)) == made_of(expected)


# What bind gives otherwise than TypeAdapter(annotation).validate_json, and why.


class Strange:
    """A type that pydantic does not know."""


class Doubling(pydantic.BaseModel):
    on: dt.date
    n: Annotated[int, pydantic.AfterValidator(doubled)]


def whole(n: int) -> None: ...
def strange(n: Strange) -> None: ...
def filled(n: int = Field(default=3)) -> None: ...
def defaulted(n: Annotated[int, Field(default=3)] = 5) -> None: ...


class Difference(NamedTuple):
    """One call whose argument `n` bind gives otherwise than pydantic."""

    reason: str
    source: Callable[..., Any]
    args: dict[str, Any]
    bound: dict[str, Any] | None
    by_pydantic: Any


NOTHING = "nothing: it refuses the type, or gets no argument"

DIFFERENCES = [
    Difference("The schema is checked first, and it takes no text for a number.", whole, {"n": "2"}, None, 2),
    Difference("A type that pydantic does not know has no adapter.", strange, {"n": 1}, {"n": 1}, NOTHING),
    Difference("Python would pass the Field itself, so its default is bound.", filled, {}, {"n": 3}, NOTHING),
    Difference("Python passes its own default, so nothing is bound.", defaulted, {}, {}, NOTHING),
    Difference(
        "A model's constructor runs its validators, so they have not run on what it gets.",
        Doubling,
        {"on": "2026-01-02", "n": 3},
        {"on": dt.date(2026, 1, 2), "n": 3},
        6,
    ),
]


@pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: case.reason)
def test_each_difference_from_pydantic_has_a_reason(case: Difference) -> None:
    """tool-call-outputs: Binding is pydantic's validation of each annotation."""
    decls = ToolDecls(ToolDecl.of(case.source, name="f", parameters=loose(case.source)))
    annotation = typing.get_type_hints(case.source, include_extras=True)["n"]
    try:
        expected = TypeAdapter[Any](annotation).validate_json(json.dumps(case.args["n"]))
    except (KeyError, pydantic.PydanticUserError):
        expected = NOTHING
    bound = by_bind(decls, case.args)
    assert (expected, None if isinstance(bound, UnboundToolCall) else bound) == (case.by_pydantic, case.bound)


def loose(source: Callable[..., Any]) -> dict[str, Any] | None:
    return {"type": "object"} if source is strange else None
