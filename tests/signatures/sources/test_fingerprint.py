"""Fingerprints: a source that changes is declared anew; what can change unseen is read each time."""

import dataclasses
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Optional

import annotated_types
import pydantic
import pytest
import typing_extensions

from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl


class Item(pydantic.BaseModel):
    a: int


def made(annotation: Any = int, default: Any = 1) -> Any:
    def now(a: Any, *, b: Any = default) -> None:
        """Tell the time."""

    now.__annotations__["a"] = annotation
    return now


class Unit(Enum):
    C = "c"


@dataclasses.dataclass
class Span:
    start: str
    days: int = 1


class Filter(typing_extensions.TypedDict):
    kind: str


class Closed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    a: int


class Nested(pydantic.BaseModel):
    items: list[Item]
    filter: Filter | None = None


def is_read_once(function: Any) -> bool:
    return ToolDecls([function])[0].text is ToolDecls([function])[0].text


FIXED = [int, list[int], dict[str, list[int]], int | None, Any, Literal["a", 1]]
OLD = [Optional[int], typing.List[int]]  # noqa: UP006, UP045  (they have classes of their own)
KNOWN = [
    *(*FIXED, *OLD, "int", "list[int]", "dict[str, Any] | None"),
    *(Sequence[str], Mapping[str, Item], Iterable[int], tuple[int, ...]),
    *(Item, Closed, Nested, Unit, Span, Filter, date, list[Item], list["int"], NewType("UserId", int)),
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
    assert is_read_once(made(annotation))


@pytest.mark.parametrize(
    "default", [[1], {"a": [1]}, {1}, (1,), Unit.C, date(2020, 1, 1), pydantic.Field(1)], ids=repr
)
def test_functions_of_defaults_that_are_known_are_kept(default: Any):
    """call-cost: Tools that say the same are looked at and not read."""
    assert is_read_once(made(default=default))


@pytest.mark.parametrize("annotation", ["absent", "1 +"])
def test_what_cannot_be_resolved_is_refused_each_time(annotation: str):
    function = made(annotation)
    for _ in range(2):
        with pytest.raises(InvalidToolDecl, match="cannot be resolved"):
            ToolDecls([function])


@pytest.mark.parametrize("default", [Item(a=1), Item, len], ids=["model", "class", "function"])
def test_functions_of_defaults_that_can_change_unseen_are_read_each_time(default: Any):
    assert not is_read_once(made(default=default))
