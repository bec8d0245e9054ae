"""What sigadapt replaces in DSPy: one list, which `install` puts in place and `uninstall` takes out.

A program gets a replacement when it first needs it: `TOOLS` with its first declaration, `RUNS` with its
first `Run`, those for streams with its first stream, and `TRACES` when it is traced. Each one does what DSPy
does while nothing of sigadapt's is open where it is called. The page "How it works" has the list.
"""

# pyright: reportPrivateUsage=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# DSPy does not annotate these names, or not for a strict type checker.

import asyncio
import contextvars
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple

from dspy.adapters.types.tool import Tool
from dspy.clients import capabilities, engines, execution
from dspy.clients.base_lm import BaseLM
from dspy.clients.lm import LM
from dspy.lm15 import response_to_events
from dspy.streaming import messages

from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.dspy_boundary.current_run import acall_in_turn, call_in_turn, current_ledger, tracer_here
from sigadapt.dspy_boundary.internals import get_litellm, model_info, settings


class Patch(NamedTuple):
    """A name of DSPy's that is replaced."""

    owner: Any  # the class or module that has it
    name: str
    replacement: Callable[[Any], Any]  # of what DSPy has there


_originals: dict[Patch, Any] = {}
_lock = Lock()


def _make(cls: type[Any], *_: Any, **__: Any) -> Any:
    return object.__new__(cls)


# What DSPy inherits: `Tool.__new__` alone. A class that has lost its own could not be made with arguments.
_INHERITED = staticmethod(_make)


def install(patches: Iterable[Patch]) -> None:
    """Put replacements in place, each once."""
    with _lock:
        for patch in patches:
            if patch in _originals:
                continue
            _originals[patch] = vars(patch.owner).get(patch.name, _INHERITED)
            setattr(patch.owner, patch.name, patch.replacement(getattr(patch.owner, patch.name)))


def in_place() -> list[Patch]:
    """Return the replacements that are in place, in the order in which they came."""
    return [*_originals]


def uninstall() -> None:
    """Take out all replacements: DSPy is as it was, until the next `install`."""
    with _lock:
        while _originals:
            patch, original = _originals.popitem()
            setattr(patch.owner, patch.name, original)


# TOOLS: `dspy.Tool(decl)`, which DSPy's agents write for each of their tools.


def _tool_of_declaration(_: Any) -> Any:
    """Let a declaration say of which class `dspy.Tool` makes its tool.

    A function of a plain `dspy.Tool` does not learn whether the tool is called or awaited, so it could not
    run an async function in a sync program.
    """

    def new(cls: type[Any], *args: Any, **options: Any) -> Any:
        function = args[0] if args else options.get("func")
        kind = getattr(type(function), "_dspy_tool", None) if cls is Tool else None
        if kind is not None:
            cls = kind()
        return object.__new__(cls)

    return new


# TOOLS: those that an agent of DSPy's runs. Its turn keeps what a tool returned at once, and the calls of a
# turn that waits do not begin.


def _in_turn(method: Any) -> Any:
    @wraps(method)
    def call(self: Any, **kwargs: Any) -> Any:
        return call_in_turn(self.name, kwargs, partial(method, self, **kwargs))

    return call


def _in_turn_later(method: Any) -> Any:
    @wraps(method)
    async def acall(self: Any, **kwargs: Any) -> Any:
        return await acall_in_turn(self.name, kwargs, partial(method, self, **kwargs))

    return acall


TOOLS = (
    Patch(Tool, "__new__", _tool_of_declaration),
    Patch(Tool, "__call__", _in_turn),
    Patch(Tool, "acall", _in_turn_later),
)


# TRACES: an agent of DSPy's, and so one that is made of it, is a span.


def _in_span(method: Any) -> Any:
    @wraps(method)
    def forward(self: Any, **inputs: Any) -> Any:
        with _span_of(self):
            return method(self, **inputs)

    return forward


def _in_span_later(method: Any) -> Any:
    @wraps(method)
    async def aforward(self: Any, **inputs: Any) -> Any:
        with _span_of(self):
            return await method(self, **inputs)

    return aforward


def _span_of(agent: Any) -> AbstractContextManager[None]:
    tracer = tracer_here.get().tracer
    return nullcontext() if tracer is None else tracer.agent(agent)


TRACES = (Patch(ReActV2, "forward", _in_span), Patch(ReActV2, "aforward", _in_span_later))


# RUNS: a run counts and refuses requests where DSPy sends them, after the cache had no answer, once for all
# retries, also for signatures without tools. A callback could neither stop a request nor know whether the
# cache answered.


def _engine_of(engine_of: Any) -> Any:
    def engine_for_call(lm: Any, call: Any, asynchronous: bool) -> Any:
        engine, *between, provider = engine_of(lm, call, asynchronous)
        (request,) = between or [call.request]  # DSPy 3.4 has the request between
        ledger = current_ledger()
        if ledger is not None:
            ledger.begin_request(lm.model, partial(_has_price, lm, request, provider))
        if settings.send_stream is not None:
            engine = _whole_answers(engine, lm, is_async=asynchronous)
        return engine, *between, provider

    return engine_for_call


def _has_price(lm: Any, request: Any, provider: str | None) -> bool:
    """Return whether DSPy knows what a model costs."""
    if provider is not None:
        model = lm.model if request is None else request.model
        return "input_cost_per_token" in model_info(provider, capabilities.resolve(lm).model or model)
    if request is not None:  # DSPy prices no typed request over LiteLLM
        return False
    return "input_cost_per_token" in get_litellm().model_cost.get(lm.model.rpartition("/")[2], {})


def _finalize(finalize: Any) -> Any:
    def counted_end(lm: Any, call: Any, result: Any) -> Any:
        if not result.cache_hit:
            _count(result)
        return finalize(lm, call, result)

    return counted_end


def _account_failed_call(account: Any) -> Any:
    def counted_failure(lm: Any, results: list[Any], error: BaseException) -> None:
        for result in results:
            _count(result)
        account(lm, results, error)

    return counted_failure


def _count(result: Any) -> None:
    """Tell what an answer used: the run that is open, and what watches it (`runs/watching.py`)."""
    ledger = current_ledger()
    if ledger is not None:
        ledger.count_answer(result.usage, result.cost)
    for callback in settings.callbacks or ():
        if hasattr(callback, "count_usage"):
            callback.count_usage(result.usage)


RUNS = (
    Patch(execution, "_engine", _engine_of),
    Patch(execution, "finalize", _finalize),
    Patch(execution, "_account_failed_call", _account_failed_call),
)


# STREAMS, half of it: a model that cannot stream. In DSPy 3.4, a `dspy.BaseLM` of the user's has a
# `forward`, and perhaps an `aforward`. In both versions, an engine of the user's may have no `stream`. DSPy
# refuses to stream what returns whole answers alone. A model that has no `aforward` runs its `forward` in a
# thread, because a stream awaits an async program.

_LEGACY: Any = getattr(engines, "LegacyEngine", ())  # DSPy 3.4: the engine of a `forward`
_ASYNC_LEGACY: Any = getattr(engines, "AsyncLegacyEngine", ())


def _whole_answers(engine: Any, lm: BaseLM, *, is_async: bool) -> Any:
    """Return the engine to stream with: another one, if this one cannot stream."""
    if isinstance(engine, _LEGACY) or not (is_async or hasattr(engine, "stream")):
        return _WholeAnswers(engine)
    if not isinstance(engine, _ASYNC_LEGACY):
        return engine if hasattr(engine, "stream") else _AsyncWholeAnswers(engine)
    model: Any = lm
    runs_forward = "aforward" not in vars(lm) and type(model).aforward is vars(BaseLM)["aforward"]
    if runs_forward and engine.lm is lm:
        return _AsyncWholeAnswers(_InThread(_LEGACY(lm, _implicit=True)))
    return _AsyncWholeAnswers(engine)


class _WholeAnswers:
    """A sync engine whose stream is the events of a whole answer. Everything but `stream` is DSPy's."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def stream(self, request: Any) -> Any:
        """Return the events of the whole answer."""
        return response_to_events(self._engine.complete(request))


class _AsyncWholeAnswers(_WholeAnswers):
    """An async engine."""

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """Yield the events of the whole answer."""
        for event in response_to_events(await self._engine.complete(request)):
            yield event


class _InThread:
    """An async engine that runs a sync one in a thread."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    async def complete(self, request: Any) -> Any:
        """Return the whole answer to a typed request."""
        return await asyncio.to_thread(self._engine.complete, request)

    async def complete_legacy(self, *args: Any, **options: Any) -> Any:
        """Return the whole answer to a request of DSPy's own adapters."""
        return await asyncio.to_thread(partial(self._engine.complete_legacy, *args, **options))

    async def aclose(self) -> None:
        """End the use of the model, which is its owner's to close."""
        self._engine.close()


# STREAMS, the other half: sync code sends to a direct stream without a loop. DSPy sends each chunk through
# the event loop of another thread, which costs more than all else that it does with a chunk.


def is_direct(stream: Any) -> bool:
    """Return whether a stream takes what it is sent without waiting, in any thread: it says `is_direct`."""
    return getattr(stream, "is_direct", False)


def send_to_stream(stream: Any, item: Any) -> None:
    """Send an item to a stream in sync code."""
    if is_direct(stream):
        _finish_now(stream.send(item))
    else:
        messages.sync_send_to_stream(stream, item)


def _finish_now(running: Any) -> Any:
    """Run what never waits to its end."""
    try:
        running.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a stream that says `is_direct` waited")


_SENDERS = ("send", "_send")
"""The coroutine functions of DSPy's by which sync code sends: a chunk, a status message."""


def _run_from_thread(run: Any) -> Any:
    def run_from_thread(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if not is_direct(settings.send_stream):
            return run(function, *args, **options)
        running = function(*args)
        if getattr(function, "__name__", "") in _SENDERS:
            return _finish_now(running)
        # LiteLLM's stream for models that DSPy sends no typed request: it waits for the network, in a loop.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, running).result()

    return run_from_thread


def _without_loop(anyio: Any) -> Any:
    def run(function: Callable[..., Any], *args: Any) -> Any:
        return anyio.from_thread.run(
            function, *args
        )  # DSPy imports AnyIO when it first asks for a part of it

    return SimpleNamespace(from_thread=SimpleNamespace(run=_run_from_thread(run)))


def _senders() -> tuple[Patch, ...]:
    """Return how DSPy sends from sync code: DSPy 3.4 in three modules, 3.5 by AnyIO's own function."""
    modules: list[Any] = [execution, sys.modules[LM.__module__], messages]
    patches = tuple(Patch(module, "anyio", _without_loop) for module in modules if hasattr(module, "anyio"))
    if patches:
        return patches
    from anyio import from_thread  # a tenth of the import's time; DSPy imports it late, too

    return (Patch(from_thread, "run", _run_from_thread),)


def install_for_streams() -> None:
    """Let a stream have whole answers, what they used, and chunks without a loop."""
    install((*RUNS, *_senders()))
