"""The place of a flaw in a call's arguments, found in the text that the model sent."""

import json
from typing import Any, cast
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import excerpt_of, printable
from support import json_values
from tables import table


@pytest.mark.parametrize(("text", "code", "path", "marked"), table(__file__, "MARKED"))
def test_the_place_is_marked(text: str, code: str, path: str | None, marked: str) -> None:
    """rendering: The place of a flaw is marked."""
    excerpt = excerpt_of(text, code, path)
    assert excerpt is not None
    assert excerpt.marked == marked
    assert "".join(excerpt) == text


@pytest.mark.parametrize("text", ["[" * 99_999, "x" * 200_000, '{"a":' * 50_000, ""])
def test_hostile_arguments_end(text: str) -> None:
    """rendering: Hostile arguments are shown in bounded space."""
    for code in ("invalid_json", "duplicate_key", "schema_mismatch", "truncated"):
        excerpt = excerpt_of(text, code, "/a" if code == "schema_mismatch" else None)
        assert excerpt is None or len("".join(excerpt)) < 200


def pointers(value: Any, at: str = "") -> list[tuple[str, Any]]:
    members: Any = ()
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        members = enumerate(cast("list[Any]", value))
    found: list[tuple[str, Any]] = [(at, value)]
    for key, item in members:
        found += pointers(item, f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


@given(json_values, st.sampled_from([None, 0, 2]), st.data())
def test_every_value_is_found(value: Any, indent: int | None, data: st.DataObject) -> None:
    """rendering: The place of a flaw is marked."""
    text = json.dumps(value, indent=indent)
    path, part = data.draw(st.sampled_from(pointers(value)))
    excerpt = excerpt_of(text, "schema_mismatch", path)
    assert excerpt is not None
    if len(excerpt.marked) <= 30 and excerpt.marked == excerpt.marked.replace("\\n", ""):
        assert json.dumps(json.loads(excerpt.marked)) == json.dumps(part)


@given(st.text(max_size=60), st.sampled_from(["invalid_json", "duplicate_key", "not_an_object", "truncated"]))
def test_any_text_has_an_excerpt_or_none(text: str, code: str) -> None:
    """rendering: Hostile arguments are shown in bounded space."""
    excerpt = excerpt_of(text, code)
    assert excerpt is None or all(prints(ch) for part in excerpt for ch in part)


def prints(char: str) -> bool:
    """A joiner, which Persian and emoji need, and a space of any width print too."""
    return char.isprintable() or char in "\u200c\u200d" or category(char) == "Zs"


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_what_is_printed_prints(text: str) -> None:
    """rendering: No text form steers a terminal."""
    shown = printable(text)
    assert all(map(prints, shown))
    assert printable(shown) == shown
    assert shown == text or not all(map(prints, text))
