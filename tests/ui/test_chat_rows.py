"""Events as JSON: what it cannot hold or give back becomes text, and everything else stays."""

from collections.abc import Callable
from typing import Any

import pydantic
import pytest
from pydantic_core import from_json

from sigadapt.ui.log.chat_rows import storable, text_of


class Point(pydantic.BaseModel):
    place: Any


def nested(depth: int, value: Any, kind: Callable[[Any], Any]) -> Any:
    for _ in range(depth):
        value = kind(value)
    return value


KINDS: dict[str, Callable[[Any], Any]] = {
    "list": lambda value: [value],
    "tuple": lambda value: (value,),
    "dict": lambda value: {"a": value},
}


def test_what_json_cannot_hold_is_kept_as_what_it_says() -> None:
    given = {1: b"\x00\xff", "a\ud800": "b\ud800", "c": (1, None), "d": {2}, "e": Point(place=[b"f"])}
    assert storable(given) == {
        "1": "AP8=",
        "a\ufffd": "b\ufffd",
        "c": (1, None),
        "d": [2],
        "e": Point(place=["Zg=="]),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_deeper_than_json_is_read_becomes_a_text(kind: str) -> None:
    make = KINDS[kind]
    fits = nested(101, 7, make)
    assert storable(fits) == fits
    assert storable(nested(103, 7, make)) == nested(101, f"a {kind} that is nested too deep", make)
    models = nested(200, 7, lambda value: Point(place=make(value)))
    text = storable(models).model_dump_json()
    assert f"a {kind} that is nested too deep" in text


def test_a_number_that_cannot_be_read_again_becomes_a_text() -> None:
    assert from_json(text_of({"n": 10**5000, "m": [1, b"\xff"]})) == {
        "n": "a number of 16610 bits",
        "m": [1, "/w=="],
    }
