"""Run the calls of one turn side by side or one by one, and return their outcomes in the order of the calls.

a. Functions that block run in worker threads, for which no process waits. Async functions run on one event
   loop, also from sync code. A function that returned an awaitable is awaited on that loop, too.
b. If `parallel` is False or a call is sequential, the calls run one by one. From sync code, a blocking
   function without a time limit then runs in the caller's thread, as in a turn of one call.
c. The first end of a call counts: what it returned or raised, or that it took too long. `on_end` gets it in
   the thread or the task of the call, so a result is not lost if the caller has left meanwhile.
d. A call may stop to wait (`CallStop`). Calls beside it end; one by one, later calls do not begin.
e. An exception that is no `Exception`, such as KeyboardInterrupt, leaves at once, in the caller. Async calls
   are then cancelled; worker threads run on. A call that has not begun by then never begins.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent import futures
from contextlib import suppress
from contextvars import copy_context
from threading import Lock
from typing import Any, NamedTuple

from sigadapt.dspy_boundary.stream_relay import relayed_from_loop, relayed_from_thread
from sigadapt.signatures.awaiting import Outcome
from sigadapt.signatures.tool_functions.open_call import CallStop, LaterCallStop, is_pending
from sigadapt.signatures.tool_results.function_calls import (
    LateError,
    blocking_loop,
    in_thread,
    outcome_at_cancel,
    runs_on,
    turn_loop,
)

_MOST_THREADS = 32
"""The most calls of a turn that block at once: a model may write hundreds, and each thread has a stack."""


class TurnCall(NamedTuple):
    """One call of a turn, ready to run."""

    start: Callable[[], Any]  # may return an awaitable
    is_async: bool = False  # whether `start` is known to return an awaitable without blocking
    timeout: float | None = None  # in seconds from its beginning
    sequential: bool = False


def run_turn(
    calls: Sequence[TurnCall],
    *,
    parallel: bool = True,
    on_begin: Callable[[int], None] | None = None,
    on_end: Callable[[int, Outcome], None] | None = None,
) -> list[Outcome]:
    """Run the calls of a turn from sync code.

    Args:
        calls: the calls, in order.
        parallel: whether they may run side by side.
        on_begin: called with a call's position right before it begins, in its thread or task and in its
            context. What it raises leaves, and the call does not begin.
        on_end: called once with a call's position and outcome for each call that began and ended or took too
            long. The error of the outcome may be a KeyboardInterrupt, or an asyncio.CancelledError if the
            call was cancelled with its turn.

    Returns:
        The outcome of each call, in order. Its error is an Exception, `LateError` for a call that was late,
        or a CallStop for a call that waits, `LaterCallStop` for a call that follows it.
    """
    runs = [_RunningCall(n, call, on_begin, on_end) for n, call in enumerate(calls)]
    with relayed_from_thread(), blocking_loop():
        loop = _TurnLoop()
        try:
            if _is_side_by_side(calls, parallel=parallel):
                loop.wait(_arun_side_by_side(runs))
            else:
                for run in _until_one_waits(runs):
                    copy_context().run(_run_here, run, loop)
                    run.raise_failure()
        finally:
            for run in runs:  # so that no call takes the end of the loop for its own cancellation
                run.is_cancelled = True
            loop.close()
    return [run.outcome for run in runs]


async def arun_turn(
    calls: Sequence[TurnCall],
    *,
    parallel: bool = True,
    on_begin: Callable[[int], None] | None = None,
    on_end: Callable[[int, Outcome], None] | None = None,
) -> list[Outcome]:
    """Run the calls of a turn as `run_turn` does, on the running loop.

    If it is cancelled, it cancels the async calls and waits for their end, and waits for no thread.
    """
    runs = [_RunningCall(n, call, on_begin, on_end) for n, call in enumerate(calls)]
    if _is_side_by_side(calls, parallel=parallel):
        await _arun_side_by_side(runs)
    else:
        for run in _until_one_waits(runs):
            await _arun_side_by_side([run])
    return [run.outcome for run in runs]


def _is_side_by_side(calls: Sequence[TurnCall], *, parallel: bool) -> bool:
    return parallel and len(calls) > 1 and not any(call.sequential for call in calls)


def _until_one_waits(runs: "list[_RunningCall]") -> "Iterator[_RunningCall]":
    """Yield calls one by one; the outcome of those after one that waits says that they did not begin."""
    has_stopped = False
    for run in runs:
        if has_stopped:
            run.outcome = Outcome(error=LaterCallStop())
            continue
        yield run
        value, error = run.outcome
        has_stopped = isinstance(error, CallStop) or is_pending(value)


class _RunningCall:
    """One call while it runs. Whoever ends it first says its outcome."""

    def __init__(
        self,
        n: int,
        call: TurnCall,
        on_begin: Callable[[int], None] | None,
        on_end: Callable[[int, Outcome], None] | None,
    ) -> None:
        self.call = call
        self.outcome = Outcome()
        self.failure: BaseException | None = None  # what leaves the turn
        self.is_cancelled = False  # with its turn, or because it took too long
        self.is_late = False
        self._n = n
        self._on_begin = on_begin
        self._on_end = on_end
        self._may_begin = True
        self._has_ended = False
        self._lock = Lock()

    def start(self) -> Any:
        """Begin the call here; return what is to be awaited of it, or None if it has ended."""
        with self._lock:
            if not self._may_begin:
                return None
            try:
                if self._on_begin is not None:
                    self._on_begin(self._n)
            except BaseException as error:  # noqa: BLE001  (raised in the caller)
                self.failure = error
                return None
        try:
            value = self.call.start()
        except BaseException as error:  # noqa: BLE001  (raised in the caller, or a failed result)
            self.end(_failed(error))
            return None
        if inspect.isawaitable(value):
            return value
        self.end(Outcome(value))
        return None

    async def finish(self, value: Any) -> None:
        """Await what the call returned, and what that gives in turn."""
        try:
            while inspect.isawaitable(value):
                value = await value
            outcome = Outcome(value)
        except asyncio.CancelledError as error:
            if self.is_late:
                self.end_late(is_cancelled=not runs_on(error))
            outcome = outcome_at_cancel(error)
            if outcome is None:
                outcome = Outcome(error=error) if self.is_cancelled else _failed(error)
        except BaseException as error:  # noqa: BLE001  (raised in the caller, or a failed result)
            outcome = _failed(error)
        if not self.is_late:
            self.end(outcome)

    def end(self, outcome: Outcome) -> None:
        """Take the outcome, if the call has none."""
        with self._lock:  # whoever comes second returns when the outcome is known to all
            if self._has_ended:
                return
            self._has_ended = True
            self.outcome = outcome
            if outcome.error is not None and not isinstance(outcome.error, (Exception, CallStop)):
                self.failure = outcome.error
            if self._on_end is None:
                return
            try:
                self._on_end(self._n, outcome)
            except BaseException as error:  # noqa: BLE001  (raised in the caller)
                self.failure = error

    def end_late(self, *, is_cancelled: bool) -> None:
        """End the call because it took too long."""
        self.is_cancelled = is_cancelled
        seconds = self.call.timeout or 0.0
        self.end(Outcome(error=LateError(seconds, is_cancelled=is_cancelled)))

    def leave(self) -> None:
        """See to it that the call does not begin any more."""
        with self._lock:
            self._may_begin = False

    def raise_failure(self) -> None:
        """Raise what leaves the turn."""
        if self.failure is not None:
            raise self.failure


def _failed(error: BaseException) -> Outcome:
    if isinstance(error, asyncio.CancelledError):  # the caller would take it for its own cancellation
        return Outcome(error=futures.CancelledError("it cancelled itself"))
    return Outcome(error=error)


def _run_here(run: _RunningCall, loop: "_TurnLoop") -> None:
    """Run a call from sync code, alone."""
    limit = run.call.timeout
    if run.call.is_async:
        loop.wait(_arun_on_loop(run))
        return
    if limit is None:
        value = run.start()
    else:
        future = in_thread(run.start)
        try:
            futures.wait([future], limit)
        finally:
            run.leave()
        if not future.done():
            run.end_late(is_cancelled=False)
            return
        value = future.result().result()
    if value is not None:
        loop.wait(_await_value(run, value))


async def _arun_side_by_side(runs: list[_RunningCall]) -> None:
    """Run calls side by side, until all have ended or one leaves."""
    threads = asyncio.Semaphore(_MOST_THREADS)
    tasks: dict[asyncio.Task[None], _RunningCall] = {}
    for run in runs:
        running = _arun_on_loop(run) if run.call.is_async else _arun_in_thread(run, threads)
        tasks[asyncio.create_task(running)] = run
    pending = {*tasks}
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                tasks[task].raise_failure()
                task.result()  # such as the error of a thread that cannot start
    finally:
        for task, run in tasks.items():
            run.leave()
            task.cancel()
        if pending:
            await asyncio.wait(pending)


async def _arun_on_loop(run: _RunningCall) -> None:
    value = run.start()
    if value is not None:
        await _await_value(run, value)


async def _arun_in_thread(run: _RunningCall, threads: asyncio.Semaphore) -> None:
    turn_loop.set(asyncio.get_running_loop())  # in the context of this task, which the thread copies
    async with threads:
        with relayed_from_loop():
            thread = in_thread(run.start)
        future = asyncio.wrap_future(thread)
        try:
            await asyncio.wait({future}, timeout=run.call.timeout)
        finally:
            run.leave()
            is_late = not future.done()
            future.cancel()  # its thread may end after this loop
    if is_late:
        run.end_late(is_cancelled=False)
        return
    value = future.result().result()
    if value is not None:
        await _await_value(run, value)


async def _await_value(run: _RunningCall, value: Any) -> None:
    """Await what a call returned, for as long as its limit allows."""
    task = asyncio.ensure_future(run.finish(value))
    limit = run.call.timeout
    try:
        await asyncio.wait({task}, timeout=limit)
        run.is_late = not task.done()
    finally:
        if not task.done():
            run.is_cancelled = True
            task.cancel()
            # It may swallow its cancellation: it is waited for as long as any call is, and no longer.
            await asyncio.wait({task}, timeout=limit)
    if run.is_late:
        run.end_late(is_cancelled=True)


class _TurnLoop:
    """One loop for all that a turn in sync code awaits: in another thread, if this one runs a loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._is_elsewhere = False
        else:
            self._is_elsewhere = True

    def wait(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Wait for a coroutine, in the context of the caller."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.new_event_loop()
            if self._is_elsewhere:
                in_thread(lambda: _serve(loop))
        if not self._is_elsewhere:
            loop.run_until_complete(coroutine)
            return
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            future.result()
        finally:
            future.cancel()  # if Ctrl-C ended the wait

    def close(self) -> None:
        """End what still runs on the loop."""
        if self._loop is None:
            return
        if self._is_elsewhere:
            with suppress(RuntimeError):  # a KeyboardInterrupt of a call has ended and closed it
                self._loop.call_soon_threadsafe(self._loop.stop)
        else:
            _close(self._loop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        _close(loop)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    # As `asyncio.run` does, but without a wait for the threads of `asyncio.to_thread`, which may run on.
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
