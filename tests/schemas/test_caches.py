"""The two kinds of cache: a value goes with its object, or when the budget is spent; threads share both."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import BoundedCache, WeakCache


class Thing:
    """An object that can be referred to weakly, and equals every other of its kind."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def never() -> Any:
    raise AssertionError("a value was made again")


@pytest.mark.parametrize("key", [1, "text", (1,), [1], {}], ids=lambda key: type(key).__name__)
def test_what_cannot_be_referred_to_weakly_is_made_each_time(key: object) -> None:
    """call-cost: Caches are bounded and weak."""
    cache: WeakCache[int] = WeakCache()
    made = iter(range(2))
    assert [cache.of(key, lambda: next(made)) for _ in range(2)] == [0, 1]
    assert (cache.get(key), len(cache)) == (None, 0)


def test_an_error_in_making_leaves_nothing() -> None:
    cache: WeakCache[int] = WeakCache()
    thing = Thing()
    with pytest.raises(AssertionError):
        cache.of(thing, never)
    assert len(cache) == 0


# Steps of which some name one of four objects
steps = st.lists(st.tuples(st.sampled_from(["put", "of", "get", "drop"]), st.integers(0, 3)), max_size=40)


@given(steps)
def test_any_use_is_that_of_a_table_by_identity(done: list[tuple[str, int]]) -> None:
    """call-cost: Caches are bounded and weak."""
    cache: WeakCache[int] = WeakCache()
    things: list[Any] = [Thing() for _ in range(4)]
    known: dict[int, int] = {}
    for at, (step, number) in enumerate(done):
        if step == "put":
            cache.put(things[number], at)
            known[number] = at
        elif step == "of":
            assert cache.of(things[number], lambda at=at: at) == known.setdefault(number, at)
        elif step == "get":
            assert cache.get(things[number]) == known.get(number)
        else:
            things[number] = Thing()  # the one before has no other user
            known.pop(number, None)
        assert len(cache) == len(known)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12)), max_size=40), st.integers(0, 20))
def test_the_oldest_go_first_and_the_budget_holds(put: list[tuple[int, int]], budget: int) -> None:
    """call-cost: Caches are bounded and weak."""
    cache: BoundedCache[int, object] = BoundedCache(budget)
    known: dict[int, tuple[object, int]] = {}
    for key, weight in put:
        value = object()
        cache.put(key, value, weight=weight)
        if weight <= budget:
            known.setdefault(key, (value, weight))
        while sum(each for _, each in known.values()) > budget:
            del known[next(iter(known))]
        assert cache.weight == sum(each for _, each in known.values()) <= budget
        assert [cache.get(number) for number in range(6)] == [
            known[number][0] if number in known else None for number in range(6)
        ]
