"""Run a tool's function, sync or async, from sync and async code alike.

A look at a function cannot tell for a wrapper, a partial or an object whether it is async. So what a call
returns decides, here and nowhere else:

 a. Sync code waits for an awaitable in an event loop of its own; in another thread, if this one runs a loop.
 b. Async code runs a sync function in a thread, so that the function does not block the loop. Functions that
    are known to be async (`is_async`) are called on the loop.
 c. What belongs to a loop, such as an MCP session, goes back to it (`on_loop`). If that loop waits for this
    very call, the call is refused, because it would wait forever.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent import futures
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import TIMEOUT_MAX, Lock, Thread
from typing import Any, cast

import dspy

from sigadapt.dspy_boundary.stream_relay import relayed_from_loop, relayed_from_thread
from sigadapt.errors import InvalidOption
from sigadapt.signatures.awaiting import Outcome

_BLOCKED: ContextVar[frozenset[asyncio.AbstractEventLoop]] = ContextVar("blocked_loops", default=frozenset())
"""The loops whose threads wait for the running call, so that nothing can run on them."""


turn_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("turn_loop", default=None)
"""The loop of the turn to which the running call belongs: what its function returned is awaited there."""


def is_timeout(value: object) -> bool:
    """Return whether a value is a number of seconds that a thread can wait for."""
    return isinstance(value, (int, float)) and value is not True and 0 < value <= TIMEOUT_MAX


def least(*limits: float | None) -> float | None:
    """Return the smallest of several limits, of which None is no limit."""
    return min((limit for limit in limits if limit is not None), default=None)


_OUTCOME = "__sigadapt_outcome__"
"""The attribute of a CancelledError that holds the outcome of a function that ended in that moment."""

_THREAD = "__sigadapt_thread__"
"""The attribute of a CancelledError that holds the future of a function whose thread runs on."""

_PATIENCE = 5.0
"""How many seconds a loop has to begin a call that belongs to it."""

HOME_LOOP = "__sigadapt_home_loop__"
"""The attribute of a function that holds the loop to which it goes back (c)."""


CONTEXT_FIRST = "__sigadapt_context_first__"
"""The attribute of a function of a library's tool, whose arguments may have any name: it takes the context of
its call by position, or None if it is called by hand."""


class LateError(TimeoutError):
    """A call took longer than it may."""

    def __init__(self, seconds: float, *, is_cancelled: bool) -> None:
        end = "It was cancelled." if is_cancelled else "It may still be running."
        super().__init__(f"there was no result after {seconds:g} seconds. {end}")


class _StopIteration(Exception):
    """A StopIteration of a function, of which Python makes a RuntimeError in coroutines and generators."""


# The model and DSPy's agents read the names of their types.
for _kind, _name in ((LateError, "TimeoutError"), (_StopIteration, "StopIteration")):
    _kind.__name__ = _kind.__qualname__ = _name
    _kind.__module__ = "builtins"


def run_function(
    function: Callable[..., Any], arguments: Mapping[str, Any], timeout: float | None = None
) -> Any:
    """Run a function from sync code; wait for what it returns."""
    value = start_function(function, arguments, timeout)
    return _wait(value, timeout) if inspect.isawaitable(value) else value


def start_function(
    function: Callable[..., Any], arguments: Mapping[str, Any], timeout: float | None = None
) -> Any:
    """Run a function from sync code; return what it returns, which may be awaitable."""
    entry = sync_entry(function)
    if timeout is None:
        return _ended(Outcome.of(partial(entry, **arguments)))
    with relayed_from_thread():
        future = in_thread(partial(entry, **arguments))
    if not futures.wait([future], timeout).done:
        raise LateError(timeout, is_cancelled=False)
    return _ended(future.result())


async def arun_function(
    function: Callable[..., Any], arguments: Mapping[str, Any], timeout: float | None = None
) -> Any:
    """Run a function from async code; await what it returns."""
    entry = async_entry(function)
    if is_async(entry):
        return await _wait_for(entry(**arguments), timeout)
    with relayed_from_loop():
        thread = in_thread(partial(entry, **arguments))
    future = asyncio.wrap_future(thread)
    try:
        await asyncio.wait({future}, timeout=timeout)
    except asyncio.CancelledError as error:
        setattr(error, _THREAD, thread)
        raise
    finally:
        is_late = not future.done()
        future.cancel()  # its thread may end after this loop
    if is_late:
        raise LateError(timeout or 0.0, is_cancelled=False)
    return await _wait_for(_ended(future.result()), timeout)


def _ended(outcome: Outcome) -> Any:
    """Return what a sync function returned, or raise what it raised: to cancel itself is to fail."""
    if isinstance(outcome.error, asyncio.CancelledError):  # the caller would take it for its own cancellation
        raise _cancelled_itself()
    if isinstance(outcome.error, StopIteration):
        raise _StopIteration(*outcome.error.args) from outcome.error
    return outcome.result()


def _cancelled_itself() -> futures.CancelledError:
    return futures.CancelledError("it cancelled itself")


def is_async(function: Any) -> bool:
    """Return whether a function is known to be async before it is called.

    What a decorator wraps does not tell: it may run an async function with `asyncio.run`.
    """
    inner: Any = function
    while isinstance(inner, partial):
        inner = cast("partial[Any]", inner).func
    kind = cast("type[Any]", type(inner))
    if issubclass(kind, dspy.Module):
        return not hasattr(kind, "forward")
    return any(map(inspect.iscoroutinefunction, (inner, inspect.getattr_static(kind, "__call__", None))))


def async_entry(function: Any) -> Callable[..., Any]:
    """Return what async code calls: a program's or an object's own `acall`, else the function."""
    if isinstance(function, dspy.Module) and not hasattr(type(function), "aforward"):
        return function
    return getattr(function, "acall", function)


def takes_context_first(function: object) -> bool:
    """Return whether a function takes the context of its call as its first argument, by position."""
    return getattr(function, CONTEXT_FIRST, False) is True


def with_first(function: Callable[..., Any], value: Any) -> Callable[..., Any]:
    """Return a function, and its async form if it has one, with its first argument given."""
    bound: Any = partial(function, value)
    async_form = getattr(function, "acall", None)
    if async_form is not None:
        bound.acall = partial(async_form, value)
    return bound


def sync_entry(function: Any) -> Callable[..., Any]:
    """Return what sync code calls: the `acall` of a program that has no `forward`, else the function."""
    if isinstance(function, dspy.Module) and not hasattr(type(function), "forward"):
        return cast("Any", function).acall
    return function


def in_thread(function: Callable[[], Any]) -> "futures.Future[Outcome]":
    """Start a function in a thread of its own, with the caller's context. No process waits for it."""
    future: futures.Future[Outcome] = futures.Future()
    future.set_running_or_notify_cancel()  # it would run on if somebody cancelled it
    context = copy_context()

    def work() -> None:
        future.set_result(Outcome.of(partial(context.run, function)))

    Thread(target=work, name="a tool of sigadapt", daemon=True).start()
    return future


async def on_loop(loop: asyncio.AbstractEventLoop, start: Callable[[], Awaitable[Any]], tool: str) -> Any:
    """Await what `start` returns on the loop that it belongs to; here, if that loop no longer runs.

    Raises:
        InvalidOption: `blocked_loop`, if the thread of that loop waits for this call.
    """
    if loop is asyncio.get_running_loop() or not loop.is_running():
        return await start()
    if loop in _BLOCKED.get():
        raise _blocked_loop(tool)
    here = asyncio.get_running_loop()
    begun = asyncio.Event()
    claim = Lock()  # whoever has it decides whether the call begins

    async def begin() -> Any:
        if not claim.acquire(blocking=False):
            return None
        here.call_soon_threadsafe(begun.set)
        return await start()

    running = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(begin(), loop))
    # Threads of others, such as those of `dspy.Evaluate`, do not show that the loop's thread waits for them.
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(begun.wait(), _PATIENCE)
    if claim.acquire(blocking=False):
        raise _blocked_loop(tool)
    return await running


def refuse_blocked(function: Any, tool: str) -> None:
    """Refuse a sync call of a function that needs the loop of this thread, before anything runs."""
    home = getattr(function, HOME_LOOP, None)
    if home is not None and home.is_running() and home in _blocked_here():
        raise _blocked_loop(tool)


def _blocked_loop(tool: str) -> InvalidOption:
    return InvalidOption(
        "its session runs on this event loop, which a sync call blocks",
        code="blocked_loop",
        tool=tool,
        fix="Await the call: `await program.acall(...)`, `await calls.arun(...)`.",
    )


def _blocked_here() -> frozenset[asyncio.AbstractEventLoop]:
    try:
        return _BLOCKED.get() | {asyncio.get_running_loop()}
    except RuntimeError:
        return _BLOCKED.get()


@contextmanager
def blocking_loop() -> Generator[None]:
    """Mark the loop that this thread runs, if any: it waits for what is started meanwhile."""
    token = _BLOCKED.set(_blocked_here())
    try:
        yield
    finally:
        _BLOCKED.reset(token)


def _wait(value: Awaitable[Any], timeout: float | None) -> Any:
    """Wait for an awaitable: on the loop of its turn, else on a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = turn_loop.get()
        if loop is None or not loop.is_running() or loop in _BLOCKED.get():
            with relayed_from_thread():
                return asyncio.run(_wait_for(value, timeout))
        return asyncio.run_coroutine_threadsafe(_wait_for(value, timeout), loop).result()
    with blocking_loop():
        future = in_thread(partial(asyncio.run, _wait_for(value, timeout)))
    return future.result().result()


def with_timeout(value: Any, timeout: float | None) -> Any:
    """Return a value, or what awaits it for as long as the timeout allows."""
    if timeout is None or not inspect.isawaitable(value):
        return value
    return _wait_for(value, timeout)


async def _wait_for(value: Any, timeout: float | None) -> Any:
    """Await a value, and what it gives in turn, each for as long as the timeout allows."""
    while inspect.isawaitable(value):
        task = asyncio.ensure_future(value)
        try:
            await asyncio.wait({task}, timeout=timeout)
            is_late = not task.done()
            await _end(task, timeout)
        except asyncio.CancelledError as error:  # of the caller
            await _end(task, timeout)
            outcome = Outcome.of(task.result)
            if task.done() and not task.cancelled():
                setattr(error, _OUTCOME, outcome)
            elif (thread := _thread_left_by(outcome.error)) is not None:
                setattr(error, _THREAD, thread)
            raise
        if is_late:
            raise LateError(timeout or 0.0, is_cancelled=not runs_on(Outcome.of(task.result).error))
        if task.cancelled():
            raise _cancelled_itself()
        value = task.result()
    return value


async def _end(task: "asyncio.Future[Any]", timeout: float | None) -> None:
    """Cancel a task that still runs. It may swallow that, so it is waited for as long as before."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=timeout)


def outcome_at_cancel(error: BaseException) -> Outcome | None:
    """Return the outcome of a function that had ended when its caller was cancelled and could not see it."""
    return getattr(error, _OUTCOME, None)


def on_thread_end(error: BaseException, take: Callable[[Outcome], None]) -> None:
    """If a function runs on in its thread after a cancellation, let `take` have its outcome then."""
    thread: futures.Future[Outcome] | None = getattr(error, _THREAD, None)
    if thread is not None:
        thread.add_done_callback(lambda ended: take(ended.result()))


def runs_on(error: BaseException | None) -> bool:
    """Return whether a function runs on in its thread after this cancellation."""
    return _thread_left_by(error) is not None


def _thread_left_by(error: BaseException | None) -> "futures.Future[Outcome] | None":
    while error is not None and not hasattr(error, _THREAD):
        error = error.__context__  # Python 3.10 raises another one out of a task
    return getattr(error, _THREAD, None)


def read_outcome(error: asyncio.CancelledError, read: Callable[[Any], Any]) -> None:
    """Replace the value that a function had returned, or returns later, by what is read of it."""
    outcome = outcome_at_cancel(error)
    if outcome is not None:
        setattr(error, _OUTCOME, _read(outcome, read))
    thread: futures.Future[Outcome] | None = getattr(error, _THREAD, None)
    if thread is not None:
        readable: futures.Future[Outcome] = futures.Future()
        setattr(error, _THREAD, readable)
        thread.add_done_callback(lambda ended: readable.set_result(_read(ended.result(), read)))


def _read(outcome: Outcome, read: Callable[[Any], Any]) -> Outcome:
    return outcome if outcome.error is not None else Outcome.of(partial(read, outcome.value))
