"""Watch a whole run as one stream of typed events: `stream` in a loop, `stream_sync` anywhere else.

a. In `stream`, an async program runs as a task of the caller's loop. One whose tools are all sync, or that
   has no `aforward`, runs in a thread, so that nothing in it blocks the loop.
b. In `stream_sync`, a program runs in a thread, and needs no event loop. One with async tools, or that has no
   `forward`, runs in a loop in that thread.
c. The program runs in a copy of the caller's context, taken when `stream` is called.
d. Whoever leaves cancels a task at once. A thread ends at its next chunk, predictor, request or tool.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, NoReturn

import dspy

from sigadapt.adapters.tool_adapter import ToolAdapter
from sigadapt.dspy_boundary.internals import settings
from sigadapt.dspy_boundary.patches import install_for_streams
from sigadapt.errors import InvalidOption
from sigadapt.json_values import is_array, is_mapping
from sigadapt.runs.events import Ended, Event, Failed
from sigadapt.runs.watching import Watch
from sigadapt.signatures.tool_results.function_calls import is_async

_PATIENCE = 0.5
"""How many seconds the end of a stream waits for the end of a program that was left."""


class EventStream(AsyncIterator[Event]):
    """The events of a run, for `async for`. `aclose()` ends the run."""

    def __init__(self, events: AsyncGenerator[Event]) -> None:
        self._events = events

    async def __anext__(self) -> Event:
        return await anext(self._events)

    async def aclose(self) -> None:
        """Send no more requests, and begin no more tools."""
        await self._events.aclose()

    def __iter__(self) -> NoReturn:
        raise TypeError("a stream is read with `async for`; in sync code, use sigadapt.stream_sync(...)")


def stream(program: dspy.Module, /, **inputs: Any) -> EventStream:
    """Run a program, and yield what happens in it as it happens.

    Args:
        program: any DSPy module, also an agent, under an adapter of sigadapt.
        inputs: the inputs of the program.

    Returns:
        An async iterator of events (`sigadapt.events`). The last one is `Ended`, with the prediction,
        or `Failed`, whose error is raised next. A run that waits for a person ends in `Confirm` and `Failed`.
        Once it is closed, no request is sent and no tool begins. Close it with `aclose()` if you
        leave it early and keep it.

    Raises:
        InvalidOption: at once, if the program is no module, or the adapter is not sigadapt's.

    Example:
        >>> import asyncio, dspy, sigadapt
        >>> from sigadapt.testing import Answer, LoopbackProvider
        >>> async def show(program, **inputs):
        ...     async for event in sigadapt.stream(program, **inputs):
        ...         print(type(event).__name__, event.step)
        >>> answer = Answer(text="[[ ## answer ## ]] Hi.", chunk=100)
        >>> with LoopbackProvider([answer]) as net:
        ...     lm = dspy.LM(**net.lm_options("openai"))
        ...     with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        ...         asyncio.run(show(dspy.Predict("question -> answer"), question="Hello?"))
        TextDelta 1
        Used 1
        Ended 1
    """
    _check(program, "stream")
    return EventStream(_events(program, inputs, copy_context()))


def stream_sync(program: dspy.Module, /, **inputs: Any) -> Iterator[Event]:
    """Run a program, and yield what happens in it: `stream` for scripts, Flask and Streamlit.

    Takes and yields the same as `stream`.

    Raises:
        InvalidOption: as `stream`; also where an event loop is running.

    Example:
        >>> import dspy, sigadapt
        >>> from sigadapt.testing import Answer, LoopbackProvider
        >>> with LoopbackProvider([Answer(text="[[ ## answer ## ]] Hi.")]) as net:
        ...     with dspy.context(lm=dspy.LM(**net.lm_options("openai")), adapter=sigadapt.ChatAdapter()):
        ...         *_, last = sigadapt.stream_sync(dspy.Predict("question -> answer"), question="Hello?")
        >>> last.prediction.answer
        'Hi.'
    """
    _check(program, "stream_sync")
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _events_now(program, inputs, copy_context())
    fix = "Use `async for event in sigadapt.stream(program, ...)`."
    raise InvalidOption("an event loop is running, which `stream_sync` would block", fix=fix)


def _check(program: Any, name: str) -> None:
    if not isinstance(program, dspy.Module):
        kind = type(program).__name__
        raise InvalidOption(f"{name} runs a DSPy module, not a {kind}", fix="Give `dspy.Predict(...)`.")
    adapter = settings.adapter
    if not isinstance(adapter, ToolAdapter):
        kind = "no adapter" if adapter is None else f"DSPy's {type(adapter).__name__}"
        reason = f"{name} needs an adapter of sigadapt, and this program would run under {kind}"
        fix = "dspy.configure(adapter=sigadapt.ChatAdapter())."
        raise InvalidOption(reason, field="adapter", fix=fix)


async def _events(program: Any, inputs: dict[str, Any], context: Context) -> AsyncGenerator[Event]:
    inbox: deque[Event] = deque()
    news = asyncio.Event()
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    home = threading.get_ident()

    def set_here(event: asyncio.Event) -> None:
        if threading.get_ident() == home:
            event.set()
        elif not event.is_set():
            with suppress(RuntimeError):  # the loop is closed, so nobody reads
                loop.call_soon_threadsafe(event.set)

    def deliver(event: Event) -> None:
        inbox.append(event)  # not by the loop's queue, which costs a tenth of a streamed call
        set_here(news)

    watch = Watch(deliver)
    if runs_in_thread(program):
        _start_thread(program, lambda: context.run(_run, program, inputs, watch), partial(set_here, over))
        cancel = _nothing
    else:
        # Not `with dspy.context(...)` here: around a `yield`, the consumer would be in it.
        task: asyncio.Task[None] = context.run(loop.create_task, _arun(program, inputs, watch))
        task.add_done_callback(lambda _: over.set())
        cancel = task.cancel
    try:
        while True:
            news.clear()
            while inbox:
                event = inbox.popleft()
                yield event
                if isinstance(event, Failed):
                    raise event.error
                if isinstance(event, Ended):
                    return
            await news.wait()
    finally:
        watch.is_left = True
        cancel()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(over.wait(), _PATIENCE)


def _events_now(program: Any, inputs: dict[str, Any], context: Context) -> Iterator[Event]:
    inbox: SimpleQueue[Event] = SimpleQueue()
    over = threading.Event()
    watch = Watch(inbox.put)
    if _can_run_sync(program):
        _start_thread(program, lambda: context.run(_run, program, inputs, watch), over.set)
        cancel = _nothing
    else:
        cancel = _start_loop(program, inputs, context, watch, over.set)
    try:
        while True:
            event = inbox.get()
            yield event
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Ended):
                return
    finally:
        watch.is_left = True
        cancel()
        over.wait(_PATIENCE)


@contextmanager
def _watched(watch: Watch) -> Generator[None]:
    """Let a watch get what happens, and the error that ends it; the settings are those of this run alone."""
    install_for_streams()
    # A stream inside of a tool has its own Watch, and the outer one sees the tool.
    callbacks: list[Any] = [each for each in settings.callbacks or () if not isinstance(each, Watch)]
    try:
        with settings.context(send_stream=watch, stream_listeners=[], callbacks=[*callbacks, watch]):
            yield
    except BaseException as error:  # noqa: BLE001  (raised to the reader of the events)
        if not watch.is_left:
            watch.end(error=error)


def _run(program: Any, inputs: dict[str, Any], watch: Watch) -> None:
    """Run the program in sync code, watched, and emit how it ended."""
    with _watched(watch):
        watch.end(program(**inputs))


async def _arun(program: Any, inputs: dict[str, Any], watch: Watch) -> None:
    """Run the program in async code, watched, and emit how it ended."""
    with _watched(watch):
        watch.end(await program.acall(**inputs))


def _nothing() -> None:
    """Cancel nothing: a thread ends by itself at its next chunk, predictor, request or tool."""


def _start_thread(program: Any, run: Callable[[], None], over: Callable[[], None]) -> None:
    def work() -> None:
        try:
            run()
        finally:
            over()

    threading.Thread(target=work, name=f"stream of {type(program).__name__}", daemon=True).start()


def _start_loop(
    program: Any, inputs: dict[str, Any], context: Context, watch: Watch, over: Callable[[], None]
) -> Callable[[], None]:
    """Run an async program in a thread with a loop, and return what cancels it there."""
    started: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

    async def main() -> None:
        started.put((asyncio.get_running_loop(), asyncio.current_task()))
        await _arun(program, inputs, watch)

    _start_thread(program, lambda: context.run(asyncio.run, main()), over)
    loop, task = started.get()

    def cancel() -> None:
        with suppress(RuntimeError):  # the loop is closed, and the program over
            loop.call_soon_threadsafe(task.cancel)

    return cancel


def runs_in_thread(program: dspy.Module) -> bool:
    """Return whether `stream` runs a program in a thread, since it would block a loop: rule a."""
    return not hasattr(type(program), "aforward") or (
        _can_run_sync(program) and bool(_tool_functions(program))
    )


def _can_run_sync(program: dspy.Module) -> bool:
    """Return whether a program can run in sync code: it has a `forward`, and no async tool."""
    if not hasattr(type(program), "aforward"):
        return True
    return hasattr(type(program), "forward") and not any(map(is_async, _tool_functions(program)))


def _tool_functions(program: dspy.Module) -> list[Any]:
    """Return the functions of the tools of a program's agents, but for the agents' own."""
    functions: list[Any] = []
    for _, module in program.named_sub_modules():
        value: Any = getattr(module, "tools", None)
        tools: Any = [*value.values()] if is_mapping(value) else value
        own_tools = [tool for tool in tools if isinstance(tool, dspy.Tool)] if is_array(tools) else []
        functions += [tool.func for tool in own_tools if tool.name not in ("submit", "finish")]
    return functions
