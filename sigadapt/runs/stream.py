"""Watch a whole run as one stream of typed events: `stream` in a loop, `stream_sync` anywhere else.

a. An async program runs as a task of the caller's loop. One whose tools are all sync, or that has no
   `aforward`, runs in a worker thread, so that nothing in it blocks the loop. DSPy waits for `send` in a loop
   there, which must outlive the program, so it is the loop of a second thread, not the caller's.
b. The program runs in a copy of the caller's context, taken when `stream` is called.
c. Whoever leaves cancels a task at once. A thread ends at its next chunk, predictor, request or tool.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, NoReturn

import anyio
import anyio.to_thread
import dspy

from sigadapt.adapters.tool_adapter import ToolAdapter
from sigadapt.dspy_boundary.internals import settings
from sigadapt.errors import InvalidOption
from sigadapt.runs.events import Ended, Event, Failed
from sigadapt.runs.watching import Watch
from sigadapt.schemas.json_values import is_array, is_mapping
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
    if _blocks(program):
        cancel = _start_thread(program, inputs, context, watch, partial(set_here, over))
    else:
        watch.loop_thread = home
        # Not `with dspy.context(...)` here: around a `yield`, the consumer would be in it.
        task: asyncio.Task[None] = context.run(loop.create_task, _run(program.acall, inputs, watch))
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
    cancel = _start_thread(program, inputs, context, watch, over.set)
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


async def _run(call: Callable[..., Awaitable[Any]], inputs: dict[str, Any], watch: Watch) -> None:
    """Run the program, watched, and emit how it ended. Its settings are those of this task alone."""
    # A stream inside of a tool has its own Watch, and the outer one sees the tool.
    callbacks: list[Any] = [each for each in settings.callbacks or () if not isinstance(each, Watch)]
    try:
        with settings.context(send_stream=watch, stream_listeners=[], callbacks=[*callbacks, watch]):
            prediction = await call(**inputs)
    except BaseException as error:  # noqa: BLE001  (raised where somebody reads the events)
        if not watch.is_left:
            watch.end(error=error)
    else:
        watch.end(prediction)


def _start_thread(
    program: Any, inputs: dict[str, Any], context: Context, watch: Watch, over: Callable[[], None]
) -> Callable[[], None]:
    """Run a program in a thread with a loop, and return what ends it there as soon as can be."""
    blocks = _blocks(program)
    started: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

    async def in_worker(**inputs: Any) -> Any:
        return await anyio.to_thread.run_sync(partial(program, **inputs), limiter=anyio.CapacityLimiter(1))

    async def main() -> None:
        started.put((asyncio.get_running_loop(), asyncio.current_task()))
        watch.loop_thread = None if blocks else threading.get_ident()
        await _run(in_worker if blocks else program.acall, inputs, watch)

    def work() -> None:
        try:
            context.run(asyncio.run, main())
        finally:
            over()

    threading.Thread(target=work, name=f"stream of {type(program).__name__}", daemon=True).start()
    loop, task = started.get()

    def cancel() -> None:
        if not blocks:
            with suppress(RuntimeError):  # the loop is closed, and the program over
                loop.call_soon_threadsafe(task.cancel)

    return cancel


def _blocks(program: dspy.Module) -> bool:
    """Return whether to run a program in a thread: it is sync, or all its tools are."""
    if not hasattr(type(program), "aforward"):
        return True
    functions: list[Any] = []
    for _, module in program.named_sub_modules():
        value: Any = getattr(module, "tools", None)
        tools: list[Any] = [*value.values()] if is_mapping(value) else value if is_array(value) else []
        names = {"submit", "finish"}  # the agents' own
        functions += [tool.func for tool in tools if isinstance(tool, dspy.Tool) and tool.name not in names]
    return bool(functions) and hasattr(type(program), "forward") and not any(map(is_async, functions))
