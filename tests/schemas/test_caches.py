"""The two kinds of cache: a value goes with its object, or when the budget is spent; threads share both."""

import contextlib
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


# By an object


def test_a_value_is_made_once_for_an_object_and_not_for_its_equal() -> None:
    """call-cost: What does not change from call to call is compiled once."""
    cache: WeakCache[str] = WeakCache()
    one, other = Thing(), Thing()
    assert one == other
    assert cache.get(one) is None
    assert cache.of(one, lambda: "one") == cache.of(one, never) == cache.get(one) == "one"
    assert cache.get(other) is None
    assert cache.of(other, lambda: "other") == "other"
    cache.put(one, "new")
    assert (cache.get(one), cache.get(other), len(cache)) == ("new", "other", 2)


def test_a_value_goes_with_its_object() -> None:
    """call-cost: Caches are bounded and weak."""
    cache: WeakCache[int] = WeakCache()
    kept = Thing()
    cache.put(kept, 0)
    for number in range(100):
        cache.put(Thing(), number)  # many of which get the number of one that has gone
    gc.collect()
    assert len(cache) == 1
    assert cache.get(kept) == 0


def test_an_object_that_is_put_again_is_forgotten_with_its_last_user() -> None:
    """call-cost: Caches are bounded and weak."""
    cache: WeakCache[int] = WeakCache()
    thing = Thing()
    for number in range(3):
        cache.put(thing, number)
    assert (cache.get(thing), len(cache)) == (2, 1)
    del thing
    gc.collect()
    assert len(cache) == 0


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


# By a key


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


# On threads

THREADS = 8


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What so many threads do, all of them started before one goes on."""
    ready = threading.Barrier(THREADS)

    def run(number: int) -> Any:
        ready.wait(60)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_threads_share_a_weak_cache() -> None:
    """call-cost: Each answer comes back to its own question."""
    cache: WeakCache[int] = WeakCache()
    shared = [Thing() for _ in range(50)]

    def work(_: int) -> bool:
        own = [Thing() for _ in range(200)]
        of_own = [cache.of(thing, lambda n=n: n) for n, thing in enumerate(own)]
        of_all = [cache.of(thing, lambda n=n: n) for n, thing in enumerate(shared)]
        return of_own == list(range(200)) and of_all == list(range(50))

    assert at_once(work) == [True] * THREADS
    gc.collect()
    assert len(cache) == len(shared)


def test_threads_share_a_bounded_cache() -> None:
    """call-cost: Caches are bounded and weak."""
    cache: BoundedCache[int, str] = BoundedCache(100)

    def work(number: int) -> bool:
        right = True
        for count in range(2_000):
            key = (number * 7 + count) % 60
            cache.put(key, str(key), weight=10)
            right = right and cache.get(key) in (str(key), None)
        return right

    assert at_once(work) == [True] * THREADS
    kept = [key for key in range(60) if cache.get(key) is not None]
    assert cache.weight == 10 * len(kept) <= 100


def test_a_key_that_two_threads_put_at_once_weighs_once() -> None:
    """call-cost: Caches are bounded and weak."""
    meeting = threading.Barrier(THREADS)

    class Key:
        """All threads look for it before one of them puts it, if they can."""

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Key)

        def __hash__(self) -> int:
            with contextlib.suppress(threading.BrokenBarrierError):
                meeting.wait(0.1)
            return 1

    cache: BoundedCache[Key, int] = BoundedCache(1_000)
    at_once(lambda number: cache.put(Key(), number, weight=10))
    assert cache.weight == 10
