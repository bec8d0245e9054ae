"""What a JSON value is, and how a value and a place in it are written for a message."""

import json
import math
from collections.abc import Iterator
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from internals import compact, fault_in, json_like
from support import json_values

# Python values, most of which JSON cannot hold somewhere
anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", b"x", (1,), math.nan, math.inf])
    | st.sampled_from([4_000, 5_000]).map(lambda digits: -(10**digits)),  # Python writes 4,300 of them
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from([1, None, "\udfff"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def resolved(value: Any, place: str) -> Any:
    """What a JSON Pointer leads to, read as RFC 6901 says."""
    held: Any = value
    for written in place.split("/")[1:]:
        key = written.replace("~1", "/").replace("~0", "~")
        held = held[key] if hasattr(held, "keys") else held[int(key)]
    return held


def holders(value: Any, level: int = 1) -> Iterator[tuple[int, Any]]:
    """Every object and array with its level, the outermost being the first."""
    members: list[Any] = []
    if isinstance(value, dict):
        members = list(cast("dict[Any, Any]", value).values())
    elif isinstance(value, list):
        members = cast("list[Any]", value)
    else:
        return
    yield level, value
    for member in members:
        yield from holders(member, level + 1)


def is_json(value: Any) -> bool:
    """Whether Python's encoder writes it as UTF-8 and reads the same from it."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        return repr(json.loads(text)) == repr(value)  # which tells 1 from true, and "1" from 1 as a key
    except (ValueError, TypeError):
        return False


@given(anything)
def test_a_fault_is_found_where_there_is_one(value: Any) -> None:
    """tool-declarations: An invalid schema is refused with its place."""
    fault = fault_in(value, levels=100)
    assert (fault is None) == is_json(value)
    if fault is not None:
        found = resolved(value, fault.path)
        assert fault_in(found, levels=100) == fault._replace(path=""), "the place alone has the same fault"


@given(json_values, st.integers(0, 6))
def test_levels_are_counted_from_the_outermost(value: Any, levels: int) -> None:
    """tool-declarations: A schema of hostile depth or size is refused."""
    deepest = max((level for level, holder in holders(value) if holder), default=0)
    fault = fault_in(value, levels=levels)
    assert (fault is None) == (deepest <= levels)
    if fault is not None:
        assert fault.reason == f"nested deeper than {levels} levels"
        assert fault.path.count("/") == levels


@given(json_values, st.integers(1, 30))
def test_values_are_counted_with_the_outermost(value: Any, most: int) -> None:
    """tool-declarations: A schema of hostile depth or size is refused."""
    count = 1 + sum(len(holder) for _, holder in holders(value))
    fault = fault_in(value, levels=1_000, most=most)
    assert (fault is None) == (count <= most)
    if fault is not None:
        assert fault.reason == f"more than {most} values"


@given(json_values)
def test_a_json_value_is_spelled_as_json(value: Any) -> None:
    assert json_like(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert json.loads(compact(value)) == value


@given(anything)
def test_any_value_is_spelled(value: Any) -> None:
    """response-choice: Any JSON gives a Choice or UnreadableResponse."""
    assert json_like(value)


def test_a_value_within_itself_is_spelled() -> None:
    both: dict[str, Any] = {"b": [1, {}], "same": (same := [2]), "again": same}
    both["b"][1]["back"] = both
    both["b"].append(both["b"])
    assert json_like(both) == '{"b":[1,{"back":"..."},"..."],"same":[2],"again":[2]}'
