"""Await: what code that does not wait by itself asks its caller to wait for.

Toolsets and hooks may be sync or async. Their steps are generators that yield an `Await` for each thing that
is async. Only who drives the generator knows whether anybody can wait.
"""

from collections.abc import Awaitable, Callable, Generator
from inspect import iscoroutine
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sigadapt.errors import SigadaptError

_T = TypeVar("_T")


class Await(NamedTuple):
    """Something to await before the steps go on.

    Args:
        value: the awaitable; the steps go on with what it gives, or with the error it raises.
        refusal: makes the error for a caller that cannot await.
    """

    value: Awaitable[Any]
    refusal: Callable[[], SigadaptError]

    def refused(self) -> SigadaptError:
        """Make the error; a coroutine is closed, or Python would warn that it was never awaited."""
        if iscoroutine(self.value):
            self.value.close()
        return self.refusal()

    async def later(self) -> Any:
        """Await the value."""
        return await self.value


Steps: TypeAlias = Generator[Any, Any, _T]
"""A generator that returns a `_T`. It yields `Await`s, and steps with both `now()` and `async later()`."""


def run(steps: Steps[_T]) -> _T:
    """Drive steps for a caller that cannot await.

    Raises:
        SigadaptError: the refusal of the first `Await`.

    Example:
        >>> def three():
        ...     yield from ()
        ...     return 3
        >>> run(three())
        3
    """
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
            resume, value = steps.send, step.now()
        except Exception as error:  # noqa: BLE001  (the steps decide what becomes of it)
            resume, value = steps.throw, error


async def arun(steps: Steps[_T]) -> _T:
    """Drive steps for a caller that awaits."""
    resume: Callable[[Any], Any] = steps.send
    value: Any = None
    while True:
        try:
            step: Any = resume(value)
        except StopIteration as done:
            return done.value
        try:
            resume, value = steps.send, await step.later()
        except Exception as error:  # noqa: BLE001
            resume, value = steps.throw, error
