"""All names of DSPy and lm15 that sigadapt uses although they are not public, each with its reason.

Other files import these names from here. `tests/dspy_boundary/test_internals.py` tests what those do that a
request stands on (measured on dspy 3.4.1), and `tests/runs` runs the agents' half. `tasks.py test --dspy X`
runs them on another DSPy.
"""

# pyright: reportPrivateUsage=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# DSPy does not annotate these names, or not for a strict type checker.

import asyncio
import contextvars
import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any, Protocol, TypeGuard

from dspy import lm15
from dspy.adapters.types.tool import Tool
from dspy.clients import (
    _litellm,
    backend_selection,
    call_context,
    capabilities,
    execution,
    model_metadata,
)
from dspy.clients.base_lm import BaseLM
from dspy.clients.engines import lifecycle, litellm_engine, streaming
from dspy.clients.engines import litellm_errors as _errors
from dspy.clients.lm import LM
from dspy.dsp.utils.settings import settings as _settings
from dspy.streaming import messages
from dspy.streaming.streaming_listener import StreamListener
from dspy.utils import callback, callback_context

from sigadapt.dspy_boundary.contract import ReActV2, prepared_call
from sigadapt.dspy_boundary.current_run import current_ledger, open_turn, tracer_here
from sigadapt.dspy_boundary.whole_answers import whole_answers

_execution: Any = execution
_engine_of: Callable[..., Any] = _execution._engine
_finalize: Callable[..., Any] = _execution.finalize
_account_failed_call: Callable[..., Any] = _execution._account_failed_call
_lm_module: Any = sys.modules[LM.__module__]
_messages_module: Any = messages
settings: Any = _settings  # `send_stream` is where DSPy sends the chunks of the running call, or None

# Connection settings, which are told from generation settings.
CLIENT_KEYS: set[str] = backend_selection.CLIENT_KEYS
# Makes DSPy ask for a model's capabilities once per adapter call, with the call's settings.
planned: Callable[[Callable[..., Any]], Any] = capabilities.with_capability_planning
# Selects the engine, provider and wire format of a model's requests.
select_backend: Callable[..., Any] = backend_selection.select_backend
# What DSPy's catalogue says of a model.
model_info: Callable[..., dict[str, Any]] = model_metadata.model_info

# A chunk of a streamed answer, as DSPy sends it to listeners, and what these get of it.
EngineChunk: type[Any] = streaming.EngineChunk
StreamResponse: Any = messages.StreamResponse
# The id of the module, model or tool that runs, which DSPy's callbacks are given too; also in its threads.
running_id: Any = callback_context.ACTIVE_CALL_ID

# With these DSPy's LiteLLM engines stream, and close a stream.
ChatStream: Any = litellm_engine._ChatStream
litellm_errors: Any = _errors.litellm_errors
closing: Any = lifecycle.closing_stream
aclosing: Any = lifecycle.aclosing_stream
get_litellm: Callable[[], Any] = partial(_litellm.get_litellm, feature="LiteLLM engine streaming")


def is_submit(function: object) -> bool:
    """Return whether a tool's function is the one by which `dspy.ReActV2` ends."""
    return getattr(function, "__qualname__", "").endswith("._make_submit_tool.<locals>.submit")


SUBMIT = "submit"
"""The name of that tool."""


# What DSPy wraps its own tools' methods in, so that callbacks hear of them.
with_callbacks: Callable[[Any], Any] = callback.with_callbacks


class OwnSignature:
    """The parameters of a module's class, as `__signature__`: DSPy's metaclass shows `(*args, **kwargs)`."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        if instance is not None:  # to call a module is something else
            raise AttributeError("__signature__")
        own = inspect.signature(owner.__init__)
        return own.replace(parameters=[*own.parameters.values()][1:], return_annotation=own.empty)


def make_tools_of(source: type[Any], kind: type[Tool]) -> None:
    """Let `dspy.Tool(value)` make a tool of this kind, if the value is such a source.

    DSPy's agents write `Tool(each)` for each of their tools. A function of a plain `dspy.Tool` does not learn
    whether the tool is called or awaited, so it could not run an async function in a sync program.
    """

    def new(cls: type[Any], *args: Any, **options: Any) -> Any:
        func: object = args[0] if args else options.get("func")
        if cls is Tool and isinstance(func, source):
            cls = kind
        return object.__new__(cls)

    patched: Any = Tool
    patched.__new__ = new


def send_to_stream(stream: Any, item: Any) -> None:
    """Send an item to a stream in sync code."""
    if is_direct(stream):
        _finish_now(stream.send(item))
    else:
        messages.sync_send_to_stream(stream, item)


def is_direct(stream: Any) -> bool:
    """Return whether a stream takes what it is sent without waiting, in any thread: it says `is_direct`."""
    return getattr(stream, "is_direct", False)


_SENDERS = ("send", "_send")
"""The coroutine functions of DSPy's by which sync code sends: a chunk, a status message."""


def _run_from_thread(
    run: Callable[..., Any], function: Callable[..., Any], *args: Any, **options: Any
) -> Any:
    """Run a coroutine function in sync code, without the loop that AnyIO's `run` needs."""
    if not is_direct(settings.send_stream):
        return run(function, *args, **options)
    running = function(*args)
    if getattr(function, "__name__", "") in _SENDERS:
        return _finish_now(running)
    # LiteLLM's stream for models that DSPy sends no typed request: it waits for the network, in a loop.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, running).result()


def _finish_now(running: Any) -> Any:
    """Run what never waits to its end."""
    try:
        running.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a stream that says `is_direct` waited")


def _anyios_run(function: Callable[..., Any], *args: Any) -> Any:
    from anyio import from_thread  # a tenth of the import's time; DSPy imports it late, too

    return from_thread.run(function, *args)


_WITHOUT_LOOP = SimpleNamespace(from_thread=SimpleNamespace(run=partial(_run_from_thread, _anyios_run)))


def send_without_loop() -> None:
    """Let DSPy send to a direct stream in sync code without a loop.

    It sends each chunk through the event loop of another thread, which costs more than all else that it does
    with a chunk. A direct stream needs neither.
    """
    senders = [each for each in (_execution, _lm_module, _messages_module) if hasattr(each, "anyio")]
    for module in senders:  # DSPy 3.4
        module.anyio = _WITHOUT_LOOP
    if senders:
        return
    from anyio import from_thread  # DSPy 3.5 imports it where it sends

    if getattr(from_thread.run, "func", None) is not _run_from_thread:
        from_thread.run = partial(_run_from_thread, from_thread.run)


def report_to_runs() -> None:
    """Let DSPy's models report to the run that is open; `runs/run.py` calls it once.

    Requests are counted where DSPy sends them: after the cache had no answer, once for all retries, also for
    signatures without tools. A callback could neither stop a request nor know whether the cache answered.
    """
    _execution._engine = _engine_for_call
    _execution.finalize = _counted_end
    _execution._account_failed_call = _counted_failure


def report_tools() -> None:
    """Let the tools that DSPy's agents run report to the agent's turn; `agent_turn.py` calls it once.

    So a run keeps what a tool returned at once, and the calls of a turn that waits do not begin.
    """
    Tool.__call__ = _in_turn(Tool.__call__)
    Tool.acall = _in_turn_later(Tool.acall)


def report_agents() -> None:
    """Let DSPy's agents, and so those that are made of them, report to a tracer; called once, as above."""
    ReActV2.forward = _in_span(ReActV2.forward)
    ReActV2.aforward = _in_span_later(ReActV2.aforward)


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
    """Return the context in which an agent runs."""
    tracer = tracer_here.get().tracer
    return nullcontext() if tracer is None else tracer.agent(agent)


def prepare_to_stream() -> None:
    """Let a stream have whole answers, and chunks without a loop; whoever streams calls it."""
    _execution._engine = _engine_for_call
    send_without_loop()


def _engine_for_call(lm: Any, call: Any, asynchronous: bool) -> Any:
    engine, *between, provider = _engine_of(lm, call, asynchronous)
    (request,) = between or [call.request]  # DSPy 3.4 has the request between
    ledger = current_ledger()
    if ledger is not None:
        ledger.begin_request(lm.model, partial(_has_price, lm, request, provider))
    if settings.send_stream is not None:
        engine = whole_answers(engine, lm, is_async=asynchronous)
    return engine, *between, provider


def _counted_end(lm: Any, call: Any, result: Any) -> Any:
    ledger = current_ledger()
    if ledger is not None and not result.cache_hit:
        ledger.count_answer(result.usage, result.cost)
    return _finalize(lm, call, result)


def _counted_failure(lm: Any, results: list[Any], error: BaseException) -> None:
    ledger = current_ledger()
    if ledger is not None:
        for result in results:
            ledger.count_answer(result.usage, result.cost)
    _account_failed_call(lm, results, error)


def _has_price(lm: Any, request: Any, provider: str | None) -> bool:
    """Return whether DSPy knows what a model costs."""
    if provider is not None:
        model = lm.model if request is None else request.model
        return "input_cost_per_token" in model_info(provider, capabilities.resolve(lm).model or model)
    if request is not None:  # DSPy prices no typed request over LiteLLM
        return False
    return "input_cost_per_token" in get_litellm().model_cost.get(lm.model.rpartition("/")[2], {})


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


def call_in_turn(name: str, arguments: dict[str, Any], start: Callable[[], Any]) -> Any:
    """Run the tool of an agent of DSPy's, and let the agent's turn keep its result."""
    turn = open_turn.get()
    return start() if turn is None else turn.run(name, arguments, start)


async def acall_in_turn(name: str, arguments: dict[str, Any], start: Callable[[], Any]) -> Any:
    """Do the same as `call_in_turn` in async code."""
    turn = open_turn.get()
    return await start() if turn is None else await turn.arun(name, arguments, start)


class Lm15Provider(Protocol):
    """What is used of an lm15 provider, which writes requests in one wire format and reads the answers.

    `complete` and `stream` give awaitables if it is async. It then has an `_inner` sync provider, which
    writes and reads for it.
    """

    transport: Any
    adaptations: Any
    api_key: Any
    complete: Callable[[lm15.Request], Any]
    stream: Callable[[lm15.Request], Any]
    parse_response: Callable[[Any, Any], lm15.Response]
    parse_stream_events: Callable[[Any, Any], Any]


_NOTHING_SHOWN = nullcontext(SimpleNamespace(emitted=False))


def shown_scope() -> Any:
    """Return a context whose `emitted` says whether a stream has shown output of what runs in it."""
    return _NOTHING_SHOWN if settings.send_stream is None else call_context.adapter_fallback_scope()


def is_lm15(response: object) -> TypeGuard[lm15.Response]:
    """Return whether a response is an lm15 Response, which is what DSPy's language models give."""
    return isinstance(response, lm15.Response)


def streaming_to(stream: Any) -> Any:
    """Return a context in which DSPy sends chunks to another stream."""
    return settings.context(send_stream=stream)


def listeners_of(field: str) -> list[StreamListener]:
    """Return the listeners to a field of the running predictor."""
    return [listener for listener in own_listeners() if listener.signature_field_name == field]


def own_listeners() -> list[StreamListener]:
    """Return the listeners to all fields of the running predictor."""
    running = settings.caller_predict
    return [listener for listener in all_listeners() if listener.predict is running]


def all_listeners() -> list[StreamListener]:
    """Return the listeners to all fields of all predictors; if there are none, the user gets the chunks."""
    return settings.stream_listeners or []


def native_engine(lm: BaseLM, request: lm15.Request, *, is_async: bool) -> Any:
    """Return the engine that DSPy would use for a request.

    Raises:
        dspy.utils.exceptions.LMError: if DSPy finds no engine.
    """
    engine, *_ = _engine_of(lm, prepared_call(lm, request, is_async=is_async), is_async)
    return engine


def engine_over_litellm(lm: BaseLM, request: lm15.Request, *, is_async: bool) -> Any:
    """Return the engine that DSPy would use for a request over LiteLLM, even if lm15 could be asked."""
    model: Any = lm
    if model.engine == "auto":
        model = copy.copy(lm)
        model._engine_spec = "litellm"
    return native_engine(model, request, is_async=is_async)


def with_engines_from(lm: BaseLM, engine_of: Callable[[dict[Any, Any], Any], Any]) -> BaseLM:
    """Return a copy of a model that shares all with it, but for its engines.

    `engine_of` returns the engine of a key; it also gets the engines that DSPy keeps for the model, by key.
    """
    model: Any = lm
    twin: Any
    if type(lm) is LM:  # its own `__copy__` does this, and then looks for slots, which it does not have
        twin = object.__new__(LM)
        twin.__dict__.update(lm.__dict__)
    else:
        twin = copy.copy(lm)
    twin.__dict__["_engine_store"] = SimpleNamespace(get=partial(engine_of, model._engine_store))
    return twin


def with_engine(lm: BaseLM, engine: Any) -> BaseLM:
    """Return a copy of a model that shares all with it, but has this engine, and with it the connection."""
    twin: Any = copy.copy(lm)
    twin._engine_spec = twin._async_engine_spec = engine
    twin.kwargs = {key: value for key, value in lm.kwargs.items() if key not in CLIENT_KEYS}
    return twin


def target_of(engine: Any, request: lm15.Request, *, streaming: bool) -> tuple[Lm15Provider, lm15.Request]:
    """Return the provider that a native engine uses, and the request in that provider's form."""
    return engine._target(request, streaming=streaming)


def with_methods(provider: Lm15Provider, wrappers: Mapping[str, Callable[..., Any]]) -> Any:
    """Return a copy of lm15's provider, whose wrapped methods get the old one as the first argument."""
    # Those of an async provider are methods of its inner one.
    twin: Any = copy.copy(provider)
    sync_provider = getattr(provider, "_inner", None)
    if sync_provider is not None:
        twin._inner = with_methods(sync_provider, wrappers)
        return twin
    for name, wrapper in wrappers.items():
        setattr(twin, name, partial(wrapper, getattr(provider, name)))
    return twin


def base_url_of(emit: Any) -> str:
    """Return the address of the server to which a method of lm15's provider writes a request."""
    return emit.__self__.base_url.rstrip("/")


def written_target(
    engine: Any, request: lm15.Request, wrappers: Mapping[str, Callable[..., Any]]
) -> tuple[Lm15Provider, lm15.Request, Any] | None:
    """Return a provider that has a request written already, the request, and what lm15 changed in it.

    None while DSPy streams, and if the provider's credential has to be fetched first.
    """
    if settings.send_stream is not None:
        return None
    provider, native_request = target_of(engine, request, streaming=False)
    writer: Any = getattr(provider, "_inner", None) or provider
    if callable(writer.api_key):  # which fetches the key
        return None
    twin = with_methods(provider, wrappers)
    writer = getattr(twin, "_inner", None) or twin
    write = writer._build
    texts = [write(native_request, stream=False, policy=twin.adaptations)]
    changes = texts[0][1]

    def written_once(*args: Any, **options: Any) -> Any:
        return texts.pop() if texts else write(*args, **options)

    writer._build = written_once  # the provider takes what is written when it is asked to write, once
    return twin, native_request, changes
