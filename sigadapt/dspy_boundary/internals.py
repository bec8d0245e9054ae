"""All names of DSPy and lm15 that sigadapt uses although they are not public, each with its reason.

Other files import these names from here. `tests/dspy_boundary/test_internals.py` tests what those do that a
request stands on (measured on dspy 3.4.1), and `tests/runs` runs the agents' half. `tasks.py test --dspy X`
runs them on another DSPy.
"""

# pyright: reportPrivateUsage=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# DSPy does not annotate these names, or not for a strict type checker.

import copy
import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol, TypeGuard

from dspy import lm15
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

from sigadapt.dspy_boundary.contract import prepared_call

_execution: Any = execution
_engine_of: Callable[..., Any] = _execution._engine  # not its replacement, which counts
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


def innermost_module() -> Any:
    """Return the innermost module of DSPy's that runs here; None outside of any."""
    modules: list[Any] = settings.caller_modules or [None]
    return modules[-1]


def refuse_left() -> None:
    """End the program, if the reader of the run's events has left: no other call begins."""
    refuse = getattr(settings.send_stream, "refuse_left", None)
    if refuse is not None:
        refuse()


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
