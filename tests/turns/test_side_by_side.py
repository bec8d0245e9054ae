"""The calls of a turn, side by side and one by one: outcomes in order, and what may begin when."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigadapt.signatures.awaiting import Outcome
from sigadapt.turns import side_by_side
from sigadapt.turns.side_by_side import TurnCall, arun_turn, run_turn

HOWS = ("sync", "async", "in a loop")
WAIT = 20


class Stop(BaseException):
    """Leaves a turn."""


def run(how: str, calls: list[TurnCall], **options: Any) -> list[Outcome]:
    """Run a turn from sync code, from async code, or from sync code that a loop runs, as in a notebook."""

    async def awaited() -> list[Outcome]:
        return await arun_turn(calls, **options)

    async def in_a_loop() -> list[Outcome]:
        return run_turn(calls, **options)

    if how == "sync":
        return run_turn(calls, **options)
    return asyncio.run(awaited() if how == "async" else in_a_loop())


def blocking(value: Any) -> TurnCall:
    return TurnCall(lambda: value)


def on_a_loop(value: Any) -> TurnCall:
    async def give() -> Any:
        await asyncio.sleep(0)
        return value

    return TurnCall(give, is_async=True)


def wrapped(value: Any) -> TurnCall:
    return on_a_loop(value)._replace(is_async=False)


def failing(value: Any) -> TurnCall:
    def fail() -> Any:
        raise LookupError(value)

    return TurnCall(fail)


def failing_later(value: Any) -> TurnCall:
    async def fail() -> Any:
        await asyncio.sleep(0)
        raise LookupError(value)

    return TurnCall(fail, is_async=True)


def stopping(_: Any) -> TurnCall:
    def stop() -> Any:
        raise StopIteration(1)

    return TurnCall(stop)


def late(_: Any) -> TurnCall:
    return TurnCall(lambda: time.sleep(0.2), timeout=0.01)


def late_on_a_loop(_: Any) -> TurnCall:
    return TurnCall(lambda: asyncio.sleep(WAIT), is_async=True, timeout=0.01)


def cancelling_itself(_: Any) -> TurnCall:
    async def cancel() -> None:
        raise asyncio.CancelledError

    return TurnCall(cancel, is_async=True)


KINDS: dict[str, tuple[Callable[[Any], TurnCall], str]] = {
    "blocking": (blocking, ""),
    "async": (on_a_loop, ""),
    "hidden async": (wrapped, ""),
    "failing": (failing, "LookupError"),
    "failing later": (failing_later, "LookupError"),
    "StopIteration": (stopping, "StopIteration"),
    "late": (late, "TimeoutError"),
    "late on a loop": (late_on_a_loop, "TimeoutError"),
    "cancelling itself": (cancelling_itself, "CancelledError"),
}


@settings(max_examples=60, deadline=None)
@given(
    how=st.sampled_from(HOWS),
    kinds=st.lists(st.tuples(st.sampled_from([*KINDS]), st.booleans()), max_size=6),
    parallel=st.booleans(),
)
def test_any_turn(how: str, kinds: list[tuple[str, bool]], *, parallel: bool) -> None:
    """tool-call-outputs: The calls of a turn run side by side."""
    begun: list[int] = []
    ended: dict[int, Outcome] = {}

    def end(n: int, outcome: Outcome) -> None:
        assert n not in ended
        ended[n] = outcome

    calls: list[TurnCall] = []
    for n, (kind, sequential) in enumerate(kinds):
        calls.append(KINDS[kind][0](n)._replace(sequential=sequential))
    outcomes = run(how, calls, parallel=parallel, on_begin=begun.append, on_end=end)
    assert sorted(begun) == [*range(len(kinds))]
    if not parallel or any(sequential for _, sequential in kinds):
        assert begun == sorted(begun)
    assert [ended[n] for n in range(len(kinds))] == outcomes
    for n, (kind, _) in enumerate(kinds):
        error = outcomes[n].error
        assert ("" if error is None else type(error).__name__) == KINDS[kind][1]
        assert error is not None or outcomes[n].value == n


@settings(max_examples=40, deadline=None)
@given(
    how=st.sampled_from(HOWS),
    before=st.lists(st.sampled_from([*KINDS]), max_size=3),
    after=st.lists(st.sampled_from([*KINDS]), max_size=3),
    is_async=st.booleans(),
    parallel=st.booleans(),
)
def test_nothing_begins_after_leaving(
    how: str, before: list[str], after: list[str], *, is_async: bool, parallel: bool
) -> None:
    """tool-call-outputs: What leaves a turn ends it."""

    def leave() -> Any:
        raise Stop

    async def leave_later() -> Any:
        raise Stop

    begun: list[int] = []
    calls = [KINDS[kind][0](n) for n, kind in enumerate(before)]
    calls.append(TurnCall(leave_later, is_async=True) if is_async else TurnCall(leave))
    calls += [KINDS[kind][0](n) for n, kind in enumerate(after)]
    with pytest.raises(Stop):
        run(how, calls, parallel=parallel, on_begin=begun.append)
    count = len(begun)
    if not parallel:
        assert count == len(before) + 1
    time.sleep(0.005)
    assert len(begun) == count


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("is_sequential", [False, True])
def test_one_by_one(how: str, *, is_sequential: bool) -> None:
    """tool-call-outputs: A sequential tool runs its turn one by one."""
    running = threading.Lock()

    def alone() -> str:
        assert running.acquire(blocking=False)
        time.sleep(0.005)
        running.release()
        return threading.current_thread().name

    async def alone_later() -> None:
        assert running.acquire(blocking=False)
        await asyncio.sleep(0.005)
        running.release()

    calls = [TurnCall(alone), TurnCall(alone_later, is_async=True), TurnCall(alone, sequential=is_sequential)]
    outcomes = run(how, calls, parallel=is_sequential)
    assert [outcome.error for outcome in outcomes] == [None, None, None]
    if how != "async":
        assert outcomes[0].value == threading.current_thread().name


@pytest.mark.parametrize("how", HOWS)
def test_what_a_callback_raises_leaves(how: str) -> None:
    """tool-call-outputs: What leaves a turn ends it."""
    ran: list[int] = []

    def refuse(n: int) -> None:
        raise Stop(n)

    with pytest.raises(Stop):
        run(how, [TurnCall(lambda: ran.append(1)), TurnCall(lambda: ran.append(2))], on_begin=refuse)
    assert ran == []


@pytest.mark.parametrize("how", HOWS)
def test_a_thread_that_cannot_start(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """tool-call-outputs: What leaves a turn ends it."""
    in_thread = side_by_side.in_thread

    def refuse(function: Any) -> Any:
        if getattr(function, "__name__", "") == "start":
            raise RuntimeError("can't start new thread")
        return in_thread(function)

    monkeypatch.setattr(side_by_side, "in_thread", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        run(how, [blocking(1), blocking(2)])


@pytest.mark.parametrize("how", HOWS)
def test_no_thread_and_no_loop_is_left(how: str) -> None:
    """tool-call-outputs: A turn of many calls has few threads."""
    before = threading.active_count()
    for _ in range(20):
        run(how, [blocking(1), on_a_loop(2), wrapped(3)])
    for _ in range(500):
        if threading.active_count() <= before:
            break
        time.sleep(0.01)
    assert threading.active_count() <= before
