"""One code path for sync and async callers: generators that yield what takes time.

They yield an `Await`, or another step with the methods `now` and `later`, such as a request. `arun` awaits
what is yielded. `run` calls `now`, and raises an error at the first `Await`, because a sync caller cannot
wait.
"""

from collections.abc import Awaitable, Callable, Generator
from inspect import iscoroutine
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
    resume: Callable[[Any], Any] = steps.send
    value: Any = None
    while True:
        try:
            step: Any = resume(value)
        except StopIteration as done:
            return done.value
        if isinstance(step, Await):
            steps.close()
            raise step.refused()
        try:
            resume = steps.send
            value = step.now()
        except BaseException as error:  # noqa: BLE001  (raised inside the steps, which may handle it)
            resume = steps.throw
            value = error


async def arun(steps: Steps[_T]) -> _T:
    """Run steps for a caller that awaits, and return their result."""
    resume: Callable[[Any], Any] = steps.send
    value: Any = None
    while True:
        try:
            step: Any = resume(value)
        except StopIteration as done:
            return done.value
        try:
            resume = steps.send
            value = await step.later()
        except BaseException as error:  # noqa: BLE001  (a cancelled call leaves the contexts of its steps)
            resume = steps.throw
            value = error
