"""A call's arguments as typed Python values, and what does not bind."""

import dataclasses
import datetime as dt
import enum
import functools
import json
import pickle
import uuid
import warnings
from collections.abc import Callable
from decimal import Decimal
from types import MethodType
from typing import Annotated, Any, Literal

import dspy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from sigadapt import InvalidToolCall, SigadaptError, ToolCall, ToolDecl, ToolDecls
from sigadapt.errors import UnboundToolCall


class Color(enum.Enum):
    RED = "red"


class Guest(pydantic.BaseModel):
    name: str
    born: dt.date | None = None


@dataclasses.dataclass
class Room:
    number: int
    color: Color = Color.RED


def call(name: str, **args: Any) -> ToolCall:
    return ToolCall(id="call_1", name=name, args=args, index=3)


def bound(source: object, **args: Any) -> Any:
    decls = ToolDecls(source)
    return call(next(iter(decls)).name, **args).bind(decls)


def unbound(source: object, **args: Any) -> InvalidToolCall:
    """The call that the error carries, which is raised for arguments that do not bind."""
    with pytest.raises(UnboundToolCall) as caught:
        bound(source, **args)
    assert isinstance(caught.value.call, InvalidToolCall)
    return caught.value.call


def book(
    *,
    guest: Guest,
    room: Room,
    at: dt.datetime,
    price: Decimal,
    colors: list[Color],
    nights: Annotated[int, Field(ge=1)] = 1,
    mode: Literal["a", "b"] = "a",
) -> None:
    raise AssertionError


TYPED: dict[str, Any] = {
    "guest": {"name": "Ada", "born": "1815-12-10"},
    "room": {"number": 7},
    "at": "2026-01-02T03:04:05Z",
    "price": "1.10",
    "colors": ["red"],
    "nights": 2.0,
}


def test_arguments_become_what_the_parameters_say():
    """tool-call-outputs: Bound arguments are typed Python values."""
    at = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)
    made = bound(book, **TYPED)
    assert made == {
        "guest": Guest(name="Ada", born=dt.date(1815, 12, 10)),
        "room": Room(7),
        "at": at,
        "price": Decimal("1.10"),
        "colors": [Color.RED],
        "nights": 2,
    }
    assert type(made["nights"]) is int


def test_what_was_not_sent_stays_out_but_a_default_in_a_field_is_filled_in():
    def f(a: int, b: int = 2, c: int = Field(default=3, ge=0), *, d: str = "d") -> tuple[Any, ...]:
        return a, b, c, d

    args = bound(f, a=1)
    assert args == {"a": 1, "c": 3}
    assert f(**args) == (1, 2, 3, "d")


def test_a_field_is_filled_in_where_the_author_gave_the_schema():
    three: Any = Field(default=3)

    def f(a: Any = three, b: int = Field(default=4)) -> Any:
        return a + b

    f.__annotations__["a"] = "NoSuchType"
    decl = ToolDecl.of(f, parameters={"properties": {"a": {}, "b": {}}})
    assert call("f").bind(decl) == {"a": 3, "b": 4}


class Shop:
    def sell(self, item: Color, *rest: int, **more: int) -> tuple[object, ...]:
        return self, item, rest, more

    @classmethod
    def close(cls, at: dt.time) -> dt.time:
        return at

    def __call__(self, on: dt.date) -> dt.date:
        return on

    async def order(self, color: Color) -> Color:
        return color


@pytest.mark.parametrize(
    ("source", "args", "expected"),
    [
        (Shop().sell, {"item": "red", "n": 5}, {"item": Color.RED, "n": 5}),
        (Shop.close, {"at": "07:30:00"}, {"at": dt.time(7, 30)}),
        (Shop(), {"on": "2026-01-02"}, {"on": dt.date(2026, 1, 2)}),
        (Shop().order, {"color": "red"}, {"color": Color.RED}),
        (functools.partial(book, room=Room(1), price=Decimal(1)), None, None),
        (dspy.Tool(Shop().order, name="order"), {"color": "red"}, {"color": Color.RED}),
    ],
    ids=["method", "classmethod", "object", "async", "partial", "dspy.Tool"],
)
def test_every_kind_of_callable_binds(
    source: Callable[..., Any], args: dict[str, Any] | None, expected: dict[str, Any] | None
):
    if args is None:
        args = {key: value for key, value in TYPED.items() if key not in ("room", "price")}
        expected = {key: value for key, value in bound(book, **TYPED).items() if key in args}
    assert bound(source, **args) == expected


def test_a_method_and_its_function_do_not_share_a_validator():
    def f(it: Color) -> Color:
        return it

    method = MethodType(f, Color.RED)
    with_self = ToolDecl.of(method, name="g", parameters={"type": "object"})
    assert call("g", it="red").bind(ToolDecls(with_self)) == {"it": "red"}
    assert bound(f, it="red") == {"it": Color.RED}


class Visit(pydantic.BaseModel):
    """A visit."""

    guest: Guest
    on: dt.date = Field(alias="date")
    color: Color | None = Field(None, validation_alias=pydantic.AliasChoices("colour", "color"))


def test_a_model_s_fields_come_out_under_the_names_its_constructor_takes():
    """tool-call-outputs: Bound arguments are typed Python values."""
    made = bound(Visit, guest={"name": "Ada"}, date="2026-01-02", colour="red")
    assert made == {"guest": Guest(name="Ada"), "date": dt.date(2026, 1, 2), "colour": Color.RED}
    assert Visit(**made) == Visit.model_validate_json(
        '{"guest": {"name": "Ada"}, "date": "2026-01-02", "colour": "red"}'
    )


def test_a_model_that_takes_anything_keeps_it():
    class Open(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")

        at: dt.date
        __pydantic_extra__: dict[str, dt.date]  # pyright: ignore[reportIncompatibleVariableOverride]

    assert bound(Open, at="2026-01-02", b="2026-01-03") == {
        "at": dt.date(2026, 1, 2),
        "b": dt.date(2026, 1, 3),
    }


class Ask(dspy.Signature):
    """Answer."""

    when: dt.date = dspy.InputField()
    answer: str = dspy.OutputField()


class Program(dspy.Module):
    """Answer twice."""

    def forward(self, color: Color) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    "source", [Ask, dspy.Predict(Ask), ToolDecl.of(dspy.ChainOfThought(Ask), name="ask")]
)
def test_programs_bind_by_their_inputs(source: object):
    """tool-call-outputs: Bound arguments are typed Python values."""
    assert bound(source, when="2026-01-02") == {"when": dt.date(2026, 1, 2)}


def test_a_module_binds_by_its_forward():
    assert bound(Program(), color="red") == {"color": Color.RED}


@pytest.mark.parametrize(
    ("tool", "args", "code", "path"),
    [
        ("bok", {}, "unknown_tool", None),
        ("book", {**TYPED, "nights": "2"}, "schema_mismatch", "/nights"),
        ("book", {**TYPED, "at": "yesterday"}, "schema_mismatch", "/at"),
        ("book", {**TYPED, "guest": {"name": "Ada", "born": "x"}}, "schema_mismatch", "/guest/born"),
        ("book", {**TYPED, "extra": 1}, "schema_mismatch", ""),
        ("book", {}, "schema_mismatch", ""),
    ],
)
def test_what_does_not_bind_is_a_tagged_bad_call(
    tool: str, args: dict[str, Any], code: str, path: str | None
):
    """tool-call-outputs: Arguments that do not bind are a tagged bad call."""
    sent = call(tool, **args)
    with pytest.raises(UnboundToolCall) as caught:
        sent.bind(ToolDecls(book))
    error = caught.value
    bad = error.call
    assert isinstance(error, SigadaptError)
    assert isinstance(bad, InvalidToolCall)
    assert (error.code, error.path, error.tool) == (bad.code, bad.path, bad.name) == (code, path, tool)
    assert error.reason == bad.message
    assert (bad.id, bad.name, bad.arguments, bad.index) == (sent.id, sent.name, sent.arguments, sent.index)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  (its own pickle)
    assert (str(again), again.call) == (str(error), bad)


def test_every_error_of_a_call_is_told():
    """tool-call-outputs: Arguments that do not bind are a tagged bad call."""
    bad = unbound(book, **{**TYPED, "at": "never", "guest": {"name": "Ada", "born": "no day"}})
    assert "/at: " in bad.message
    assert "/guest/born: " in bad.message


def test_a_validator_s_own_refusal_is_a_tagged_bad_call():
    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def _even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("it is odd")
            return n

    bad = unbound(Even, n=3)
    assert (bad.code, bad.path) == ("schema_mismatch", "/n")
    assert "it is odd" in bad.message


class And(pydantic.BaseModel):
    op: Literal["and"]
    args: "list[Untagged]"


class Or(pydantic.BaseModel):
    op: Literal["or"]
    args: "list[Untagged]"


class Eq(pydantic.BaseModel):
    op: Literal["eq"]
    value: str

    @pydantic.field_validator("value")
    @classmethod
    def _good(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("it is bad")
        return value


Untagged = And | Or | Eq


class All(pydantic.BaseModel):
    op: Literal["all"]
    args: "list[Tagged]"


class Some(pydantic.BaseModel):
    op: Literal["some"]
    args: "list[Tagged]"


Tagged = Annotated[All | Some | Eq, Field(discriminator="op")]
And.model_rebuild()
Or.model_rebuild()
All.model_rebuild()
Some.model_rebuild()


def search(where: Untagged) -> None: ...


def find(where: Tagged) -> None: ...


def condition(depth: int, value: str, ops: tuple[str, str] = ("and", "or")) -> dict[str, Any]:
    where: dict[str, Any] = {"op": "eq", "value": value}
    for level in range(depth):
        where = {"op": ops[level % 2], "args": [where]}
    return where


def test_what_pydantic_alone_refuses_is_told_first():
    """tool-call-outputs: Binding ends soon."""
    bad = unbound(search, where=condition(6, "bad"))
    assert bad.path == "/where" + "/args/0" * 6 + "/value"
    assert bad.message.count("it is bad") == 1
    assert len(bad.message) < 2_000


@pytest.mark.parametrize("depth", [24, 90])
@pytest.mark.parametrize("value", ["good", "bad"])
def test_alternatives_that_pydantic_would_try_without_end_do_not_bind(depth: int, value: str):
    """tool-call-outputs: Binding ends soon."""
    assert bound(search, where=condition(8, "good"))["where"].op == "or"
    bad = unbound(search, where=condition(depth, value))
    assert (bad.code, bad.path) == ("schema_mismatch", None)
    assert "discriminator" in bad.message


def test_alternatives_with_a_discriminator_bind_at_any_depth():
    """tool-call-outputs: Binding ends soon."""
    ops = ("all", "some")
    assert bound(find, where=condition(40, "good", ops))["where"].op == "some"
    assert unbound(find, where=condition(40, "bad", ops)).path == "/where" + "/args/0" * 40 + "/value"


def anything(**_: Any) -> None: ...


def by_position(at: dt.date, /) -> None: ...


@pytest.mark.parametrize(
    "source",
    [
        {"name": "f", "parameters": {"type": "object"}},
        ToolDecl.of(anything, name="f", parameters={"type": "object"}),
        ToolDecl.of(by_position, name="f", parameters={"type": "object"}),
        ToolDecl.of(print, name="f", parameters={"type": "object"}),
    ],
    ids=["dict", "untyped", "positional-only", "built-in"],
)
def test_without_python_types_the_arguments_stay_as_they_are(source: object):
    args = {"at": "2026-01-02", "big": 10**30}
    made = call("f", **args).bind(ToolDecls(source))
    assert made == args


def test_a_type_that_pydantic_does_not_know_leaves_its_argument_alone():
    class Strange:
        pass

    def f(a: Strange, b: Color) -> None: ...

    decls = ToolDecls(ToolDecl.of(f, parameters={"type": "object"}))
    assert call("f", a=1, b="red").bind(decls) == {"a": 1, "b": Color.RED}


@dataclasses.dataclass
class Options:
    path: str
    is_admin = False

    def allowed(self) -> bool:
        return self.is_admin


class Place(TypedDict):
    options: Options


@dataclasses.dataclass
class Order:
    options: Options
    total: int = dataclasses.field(init=False, default=0)
    seen: int = dataclasses.field(init=False)
    seed: dataclasses.InitVar[int] = 2

    def __post_init__(self, seed: int) -> None:
        self.seen = seed * 10


NO_FIELDS = {"path": "/x", "is_admin": True, "allowed": 1, "__class__": "x"}


@pytest.mark.parametrize(
    ("annotation", "sent", "place"),
    [
        (Options, NO_FIELDS, []),
        (list[Options], [NO_FIELDS], [0]),
        (Order, {"options": NO_FIELDS, "more": 1}, ["options"]),
        (Place, {"options": NO_FIELDS}, ["options"]),
        (Options | int, NO_FIELDS, []),
    ],
)
def test_an_object_has_no_attribute_that_is_no_field(annotation: Any, sent: Any, place: list[Any]):
    """tool-call-outputs: No attribute that is no field."""

    def f(it: Any, **more: Any) -> None: ...

    f.__annotations__["it"] = annotation
    options = bound(f, it=sent, other=NO_FIELDS)["it"]
    for step in place:
        options = vars(options)[step] if isinstance(options, Order) else options[step]
    assert vars(options) == {"path": "/x"}
    assert options.allowed() is False


def test_a_typed_dict_has_its_own_keys_alone():
    """tool-call-outputs: No attribute that is no field."""

    def f(place: Place, more: list[Place]) -> None: ...

    place = {"options": {"path": "/x"}, "is_admin": True}
    made = {"options": Options("/x")}
    assert bound(f, place=place, more=[place]) == {"place": made, "more": [made]}


def test_fields_that_init_does_not_take_and_takes_alone():
    """tool-call-outputs: A dataclass is made as its own constructor makes it."""

    def f(order: Order) -> None: ...

    options: Any = {"path": "/x"}
    made = bound(f, order={"options": options})["order"]
    assert made == Order(Options("/x"))
    assert (type(made), made.total, made.seen) == (Order, 0, 20)
    made = bound(f, order={"options": options, "seed": 3, "total": 9, "seen": 9})["order"]
    assert made == Order(Options("/x"), seed=3)
    assert vars(made).keys() == {"options", "total", "seen"}
    assert unbound(f, order={"options": options, "seed": "x"}).path == "/order/seed"


def test_what_kwargs_say_holds_for_each_argument_without_a_parameter():
    """tool-call-outputs: Binding is pydantic's validation of each annotation."""

    def f(a: int, **colors: Color) -> None: ...

    assert bound(f, a=1, b="red") == {"a": 1, "b": Color.RED}
    assert unbound(f, a=1, b="green").path == "/b"


class Noted(pydantic.BaseModel):
    """A model whose validators tell by the result how often they ran, and what they got."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel)

    unit_price: int
    on_day: dt.date
    day_before: dt.date
    made_by: uuid.UUID = Field(default_factory=uuid.uuid4)
    comment: str = ""

    @pydantic.field_validator("unit_price")
    @classmethod
    def _with_tax(cls, price: int) -> int:
        return price * 2

    @pydantic.field_validator("day_before", mode="before")
    @classmethod
    def _from_text(cls, day: str) -> dt.date:
        return dt.date.fromisoformat(day) - dt.timedelta(days=1)

    @pydantic.field_validator("comment")
    @classmethod
    def _stripped(cls, comment: str) -> str:
        return comment.strip()


NOTED: dict[str, Any] = {"unitPrice": 5, "onDay": "2026-01-02", "dayBefore": "2026-01-02", "comment": " x "}


def test_a_model_as_the_tool_runs_its_validators_once():
    """tool-call-outputs: A model's constructor makes what pydantic makes from the call."""
    expected = Noted.model_validate_json(json.dumps(NOTED)).model_dump(exclude={"made_by"})
    made = Noted(**bound(Noted, **NOTED))
    assert made.model_dump(exclude={"made_by"}) == expected
    assert (made.unit_price, made.day_before, made.comment) == (10, dt.date(2026, 1, 1), "x")


@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        ((), NOTED),
        (("dayBefore",), {"unitPrice": 5, "onDay": dt.date(2026, 1, 2), "comment": " x "}),
        (("dayBefore", "unitPrice"), {"onDay": dt.date(2026, 1, 2), "comment": "x"}),
    ],
    ids=["as sent", "by annotation", "validated"],
)
def test_a_model_gets_the_first_keywords_that_make_the_same(
    left_out: tuple[str, ...], expected: dict[str, Any]
):
    """tool-call-outputs: A model's constructor makes what pydantic makes from the call."""

    class Partly(Noted):
        unit_price: int = 1
        day_before: dt.date = dt.date(2026, 1, 1)

    args = {key: value for key, value in NOTED.items() if key not in left_out}
    assert bound(Partly, **args) == expected


class Aliased(pydantic.BaseModel):
    on: dt.date = Field(dt.date(2026, 1, 1), alias="date")
    deep: dt.date = Field(dt.date(2026, 1, 1), validation_alias=pydantic.AliasPath("days", 0))


class Named(Aliased):
    model_config = pydantic.ConfigDict(populate_by_name=True)


@pytest.mark.parametrize(
    ("model", "args", "expected"),
    [
        (Aliased, {"date": "2026-01-02"}, {"date": dt.date(2026, 1, 2)}),
        (Aliased, {"date": "2026-01-02", "on": "x"}, {"date": dt.date(2026, 1, 2), "on": "x"}),
        (Aliased, {"days": ["2026-01-02"]}, {"days": ["2026-01-02"]}),
        (Named, {"on": "2026-01-02"}, {"on": dt.date(2026, 1, 2)}),
    ],
)
def test_a_model_s_fields_go_by_the_keys_that_pydantic_reads(
    model: type[Aliased], args: dict[str, Any], expected: dict[str, Any]
):
    """tool-call-outputs: A model's constructor makes what pydantic makes from the call."""
    decl = ToolDecl.of(model, name="m", parameters={"type": "object"})
    made = call("m", **args).bind(ToolDecls(decl))
    assert made == expected
    assert model(**made) == model.model_validate_json(json.dumps(args))


def test_a_model_that_checks_types_strictly_gets_them():
    """tool-call-outputs: A model's constructor makes what pydantic makes from the call."""

    class Strictly(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True)

        on: dt.date
        ids: tuple[uuid.UUID, ...]

    one = uuid.UUID(int=1)
    made = bound(Strictly, on="2026-01-02", ids=[str(one)])
    assert made == {"on": dt.date(2026, 1, 2), "ids": (one,)}
    assert Strictly(**made).ids == (one,)


def test_a_root_model_gets_the_arguments_as_sent():
    """tool-call-outputs: A model's constructor makes what pydantic makes from the call."""

    class Days(pydantic.RootModel[dict[str, dt.date]]):
        pass

    args = {"a": "2026-01-02"}
    assert bound(Days, **args) == args
    assert Days(**bound(Days, **args)).root == {"a": dt.date(2026, 1, 2)}


def test_a_model_in_a_parameter_is_as_pydantic_makes_it():
    """tool-call-outputs: Binding is pydantic's validation of each annotation."""

    def f(noted: Noted) -> None: ...

    made = bound(f, noted=NOTED)["noted"]
    assert made == Noted.model_validate_json(json.dumps(NOTED | {"madeBy": str(made.made_by)})).model_copy()
    assert made.unit_price == 10


def untyped(it: Any) -> None: ...


@pytest.mark.parametrize("source", [{"name": "f"}, untyped, anything])
def test_a_tool_that_changes_its_argument_leaves_the_call_as_sent(source: Any):
    """tool-call-outputs: Bound arguments are typed Python values."""
    sent = ToolCall(id="c", name="f", args={"it": [{"a": [1]}]})
    made = sent.bind(ToolDecls(ToolDecl.of(source, name="f", parameters={"type": "object"})))
    assert made == sent.args
    made["it"][0]["a"].append(2)
    assert sent.args == {"it": [{"a": [1]}]}


@pytest.mark.parametrize("source", [book, {"name": "book", "parameters": {"required": ["a"]}}])
def test_a_misfit_never_reaches_the_tool(source: Any):
    """tool-call-outputs: Arguments that do not bind are a tagged bad call."""
    ran: list[object] = []
    with pytest.raises(UnboundToolCall):
        ran.append(dict(**call("book", at=1).bind(ToolDecls(source))))
    assert ran == []


def test_an_annotation_that_changes_in_place_binds_as_it_is_now():
    """tool-call-outputs: Binding is pydantic's validation of each annotation."""

    def f(a: int, b: Color | None = None, c: int = Field(default=3)) -> None: ...

    assert bound(f, a=1, b="red") == {"a": 1, "b": Color.RED, "c": 3}
    f.__annotations__["a"] = str
    decl = ToolDecl.of(f, parameters={"type": "object"})
    assert call("f", a="x", b="red").bind(ToolDecls(decl)) == {"a": "x", "b": Color.RED, "c": 3}


def test_a_class_that_changes_in_place_binds_as_it_is_now():
    """tool-call-outputs: Binding is pydantic's validation of each annotation."""

    class Changing(pydantic.BaseModel):
        n: int = 0

    def f(it: Changing) -> None: ...

    assert bound(f, it={"n": 1})["it"].n == 1
    Changing.model_fields["n"].annotation = str
    Changing.model_rebuild(force=True)
    assert bound(f, it={"n": "x"})["it"].n == "x"


def test_binding_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bound(book, **TYPED)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=8,
        ),
    )
)
def test_any_arguments_bind_or_are_tagged(args: dict[str, Any]):
    """tool-call-outputs: Arguments that do not bind are a tagged bad call."""

    def f(
        a: int = 0, b: list[Guest] | None = None, c: dict[str, dt.date] | str = "", d: Any = None
    ) -> None: ...

    try:
        made = bound(f, **args)
    except UnboundToolCall as error:
        made = error
    if isinstance(made, UnboundToolCall):
        assert made.code == "schema_mismatch"
    else:
        assert made.keys() == args.keys()
        f(**made)
