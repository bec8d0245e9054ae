"""A call's arguments as typed Python values, and what does not bind."""

import dataclasses
import datetime as dt
import enum
import json
import uuid
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import Field
from pydantic.alias_generators import to_camel

from sigadapt import InvalidToolCall, ToolCall, ToolDecls
from sigadapt.errors import UnboundToolCall


class Color(enum.Enum):
    RED = "red"


class Guest(pydantic.BaseModel):
    name: str
    born: dt.date | None = None


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


@dataclasses.dataclass
class Options:
    path: str
    is_admin = False

    def allowed(self) -> bool:
        return self.is_admin


@dataclasses.dataclass
class Order:
    options: Options
    total: int = dataclasses.field(init=False, default=0)
    seen: int = dataclasses.field(init=False)
    seed: dataclasses.InitVar[int] = 2

    def __post_init__(self, seed: int) -> None:
        self.seen = seed * 10


NO_FIELDS = {"path": "/x", "is_admin": True, "allowed": 1, "__class__": "x"}


def test_fields_that_init_does_not_take_and_takes_alone():
    """tool-call-outputs: A dataclass is made as its own constructor makes it.
    tool-call-outputs: No attribute that is no field.
    """

    def f(order: Order, *, others: list[Options | int] | None = None, **more: Any) -> None: ...

    made = bound(f, order={"options": NO_FIELDS, "more": 1}, others=[NO_FIELDS], more=NO_FIELDS)
    assert made["order"] == Order(Options("/x"))
    assert (type(made["order"]), made["order"].total, made["order"].seen) == (Order, 0, 20)
    for options in (made["order"].options, *made["others"]):
        assert (vars(options), options.allowed()) == ({"path": "/x"}, False)
    options: Any = {"path": "/x"}
    order = bound(f, order={"options": options, "seed": 3, "total": 9, "seen": 9})["order"]
    assert order == Order(Options("/x"), seed=3)
    assert vars(order).keys() == {"options", "total", "seen"}
    assert unbound(f, order={"options": options, "seed": "x"}).path == "/order/seed"


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


def test_a_root_model_gets_the_arguments_as_sent():
    """tool-call-outputs: A model's constructor makes what pydantic makes from the call."""

    class Days(pydantic.RootModel[dict[str, dt.date]]):
        pass

    args = {"a": "2026-01-02"}
    assert bound(Days, **args) == args
    assert Days(**bound(Days, **args)).root == {"a": dt.date(2026, 1, 2)}
