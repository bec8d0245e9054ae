"""Python types to JSON Schema, and the two ways of judging a value by them."""

from collections.abc import Callable
from typing import Annotated

import pydantic
from internals import annotations
from pydantic import Field


class Leaf(pydantic.BaseModel):
    size: Annotated[int, Field(ge=0)] = 1
    name: str | None = None


def test_types_without_a_schema_are_told_by_name():
    derived = annotations.schemas_of(
        {"a": int, "b": Callable[[], int], "c": Leaf, "d": type, "e": ["no type"]}
    )
    assert [problem[:24] for problem in derived.problems] == [f"'{n}' has no JSON Schema (" for n in "bde"]
