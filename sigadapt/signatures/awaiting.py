"""One code path for sync and async callers: generators that yield what takes time.

They yield an `Await`, or another step with the methods `now` and `later`, such as a request. `arun` awaits
what is yielded. `run` calls `now`, and raises an error at the first `Await`, because a sync caller cannot
wait. `start` calls `now`, too, and leaves the rest to `arun` as soon as a step returns an awaitable. An error
of a step is raised inside of the steps, which may handle it; so is a cancellation, so that they leave their
contexts.
"""

from collections.abc import Awaitable, Callable, Generator
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


class Outcome(NamedTuple):
    """What something returned or raised. A future holds it whole, because futures refuse StopIteration."""

    value: Any = None
    error: BaseException | None = None

    @classmethod
    def of(cls, function: Callable[[], Any]) -> "Outcome":
        """Return what a function returns or raises now."""
        try:
            return cls(function())
        except BaseException as error:  # noqa: BLE001  (raised where the outcome is read)
            return cls(error=error)

    @classmethod
    async def awaited(cls, value: Awaitable[Any]) -> "Outcome":
        """Await a value, and return what it is or raises."""
        try:
            return cls(await value)
        except BaseException as error:  # noqa: BLE001  (likewise)
            return cls(error=error)

    def result(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value

    def resume(self, steps: Steps[Any]) -> Any:
        """Go on with steps that wait for this, and return the next one."""
        return steps.send(self.value) if self.error is None else steps.throw(self.error)


_START = Outcome()


def run(steps: Steps[_T]) -> _T:
    """Run steps for a caller that cannot await, and return their result."""
    outcome = _START
    while True:
        try:
            step = outcome.resume(steps)
        except StopIteration as done:
            return done.value
        if isinstance(step, Await):
            steps.close()
            raise step.refused()
        try:  # `Outcome.of`, without a function more on the way of every request
            outcome = Outcome(step.now())
        except BaseException as error:  # noqa: BLE001  (raised inside of the steps)
            outcome = Outcome(error=error)


def start(steps: Steps[_T]) -> "_T | Awaitable[_T]":
    """Run steps until one has to be awaited; return their result, or what awaits the rest."""
    outcome = _START
    while True:
        try:
            step = outcome.resume(steps)
        except StopIteration as done:
            return done.value
        outcome = Outcome.of(step.now)
        if isawaitable(outcome.value):
            return arun(steps, outcome.value)


async def arun(steps: Steps[_T], answer: "Awaitable[Any] | None" = None) -> _T:
    """Run steps for a caller that awaits, and return their result; `answer` is of a step that has begun."""
    outcome = _START if answer is None else await Outcome.awaited(answer)
    while True:
        try:
            step = outcome.resume(steps)
        except StopIteration as done:
            return done.value
        outcome = await Outcome.awaited(step.later())
