"""One code path for sync and async callers: generators that yield what takes time.

They yield an `Await`, or another step with the methods `now` and `later`, such as a request. `arun` awaits
what is yielded. `run` calls `now`, and raises an error at the first `Await`, because a sync caller cannot
wait. `start` calls `now`, too, and leaves the rest to `arun` as soon as a step returns an awaitable. An error
of a step is raised inside of the steps, which may handle it; so is a cancellation, so that they leave their
contexts.
"""

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sigadapt.errors import SigadaptError

_T = TypeVar("_T")


class Await(NamedTuple):
    """Something to await before the steps go on."""

    value: Awaitable[Any]
    refusal: Callable[[], SigadaptError]

    def refused(self) -> SigadaptError:
        """Make the error. Close a coroutine, or Python would warn that it was never awaited."""
        if iscoroutine(self.value):
            self.value.close()
        return self.refusal()

    async def later(self) -> Any:
        """Await the value."""
        return await self.value


Steps: TypeAlias = Generator[Any, Any, _T]
"""A generator that returns a `_T`. It yields `Await`s, and steps with both `now()` and `async later()`."""


def run(steps: Steps[_T]) -> _T:
    """Run steps for a caller that cannot await, and return their result."""
    go_on: Callable[[], Any] = partial(next, steps)
    while True:
        try:
            step = go_on()
        except StopIteration as done:
            return done.value
        if isinstance(step, Await):
            steps.close()
            raise step.refused()
        try:
            go_on = partial(steps.send, step.now())
        except BaseException as error:  # noqa: BLE001  (raised inside of the steps)
            go_on = partial(steps.throw, error)


def start(steps: Steps[_T]) -> "_T | Awaitable[_T]":
    """Run steps until one has to be awaited; return their result, or what awaits the rest."""
    go_on: Callable[[], Any] = partial(next, steps)
    while True:
        try:
            step = go_on()
        except StopIteration as done:
            return done.value
        try:
            answer = step.now()
        except BaseException as error:  # noqa: BLE001  (raised inside of the steps)
            go_on = partial(steps.throw, error)
            continue
        if isawaitable(answer):
            return arun(steps, answer)
        go_on = partial(steps.send, answer)


async def arun(steps: Steps[_T], answer: "Awaitable[Any] | None" = None) -> _T:
    """Run steps for a caller that awaits, and return their result; `answer` is of a step that has begun."""
    go_on: Callable[[], Any] = partial(next, steps)
    while True:
        if answer is not None:
            try:
                go_on = partial(steps.send, await answer)
            except BaseException as error:  # noqa: BLE001  (raised inside of the steps)
                go_on = partial(steps.throw, error)
        try:
            answer = go_on().later()
        except StopIteration as done:
            return done.value
