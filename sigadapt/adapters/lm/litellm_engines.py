"""Subclasses of DSPy's LiteLLM engines that keep requests and answers whole.

They set what the provider's file wrote in the arguments for LiteLLM, as chat messages unless LiteLLM passes
them on, and keep the body of an answer that lm15 or LiteLLM refuses because of one call that its types cannot
hold. If LiteLLM refuses it, that body is the one that LiteLLM logs (`logger_fn`) before it reads it.
"""

import copy
import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, cast

import pydantic
from dspy import BaseLM, lm15
from dspy.clients.engines.litellm_engine import AsyncLiteLLMEngine, LiteLLMEngine

from sigadapt.adapters.lm.errors_in_answers import refuse_error, refuse_rate_limit_behind
from sigadapt.adapters.lm.exchange import is_empty, json_in, response_with_raw_body
from sigadapt.adapters.lm.litellm_chunks import Chunks, first_choice, with_cut_call, with_native_end
from sigadapt.adapters.lm.routes import NOTHING, facts_of
from sigadapt.adapters.lm.stream_recorder import with_own_id
from sigadapt.adapters.lm.to_lm15 import WireBody
from sigadapt.adapters.response.choice import provider_of_body
from sigadapt.adapters.response.response_bodies import BODY, body_of
from sigadapt.dspy_boundary.contract import plain
from sigadapt.dspy_boundary.internals import (
    aclosing,
    closing,
    engine_over_litellm,
    get_litellm,
    litellm_errors,
    with_engine,
)
from sigadapt.json_values import Json
from sigadapt.providers.provider import Provider


def over_litellm(
    lm: BaseLM, request: lm15.Request, additions: "LitellmAdditions", *, is_async: bool
) -> BaseLM:
    """Return a copy of the model for one request, whose engines are these, and which shares its history."""
    facts = facts_of(lm, NOTHING).values
    options = facts.get("litellm engine")
    if options is None:
        engine = engine_over_litellm(lm, request, is_async=is_async)
        if not isinstance(engine, (LiteLLMEngine, AsyncLiteLLMEngine)):
            return lm  # the user's own class of model
        parent: Any = engine
        options = {"model_type": parent.model_type, "wire_model": parent.wire_model, **parent.client_options}
        if not parent.wire_model:
            facts["litellm engine"] = options
        # Otherwise the user declared the provider, whose credential may be new for each request.
    return with_engine(lm, (AsyncEngine if is_async else Engine)(additions, **options))


class LitellmAdditions(NamedTuple):
    """What these engines add to the request that DSPy's write."""

    body: WireBody
    wire: Provider  # the provider that LiteLLM asks
    limit: str  # the name that the user's settings give the limit of an answer's tokens


class _WithAdditions:
    """The half that both engines share."""

    def __init__(self, additions: LitellmAdditions, **options: Any) -> None:
        cast("Any", super()).__init__(**options)
        self._additions = additions
        self._provider = additions.body.provider
        self._bodies: list[str] = []

    def _arguments(self, request: lm15.Request, *, streaming: bool = False) -> Json:
        # Overrides DSPy's own method, the only place where the messages can be changed.
        body = self._additions.body
        data = cast("Any", super())._arguments(body.stub(request), streaming=streaming)
        if not streaming and "logger_fn" not in data:
            self._bodies = []
            data["logger_fn"] = self._hear
        if "max_completion_tokens" in data:  # lm15's name, which a server that knows the older one ignores
            data[self._additions.limit] = data.pop("max_completion_tokens")
        arguments = body.set_in(data)
        for key in (body.provider.rows_key, *body.fields):
            if key in arguments:  # LiteLLM changes messages and schemas in place
                arguments[key] = copy.deepcopy(arguments[key])
        return arguments

    def _hear(self, details: Json) -> None:
        """Keep the provider's body, which LiteLLM logs before it reads it."""
        if details.get("log_event_type") == "post_api_call":
            self._bodies.append(str(details.get("original_response")))

    def _rescue(self, request: lm15.Request, error: Exception) -> lm15.Response:
        """Return the provider's answer, if LiteLLM got one and could not read it; else raise the error."""
        parse = cast("Any", super())._response
        for text in self._bodies:
            provider = provider_of_body(json_in(text))
            if provider is None:
                refuse_error(json_in(text), self._additions.wire, error)
            else:
                response = response_with_raw_body(provider, text, lambda body: parse(body, request))
                if response is not None:
                    return response
        refuse_rate_limit_behind(error)
        raise error

    def _response(self, raw: Any, request: lm15.Request) -> lm15.Response:
        # Overrides DSPy's own method, the only place where the body is at hand.
        parse = cast("Any", super())._response
        try:
            response: lm15.Response = parse(raw, request)
            body = response.provider_data or {}
            if "output" in body and isinstance(raw, pydantic.BaseModel):
                # LiteLLM puts a null into every field that OpenAI left out, which OpenAI refuses when the
                # items go back.
                body = {**body, "output": body_of(raw)["output"]}
        except Exception:
            text = json.dumps(plain(raw))
            fallback = response_with_raw_body(self._provider, text, lambda body: parse(body, request))
            if fallback is None:
                raise
            return fallback
        if is_empty(response):
            refuse_error(plain(raw), self._provider)
        for text in self._bodies[-1:]:
            if "native_finish_reason" in text:
                body = with_native_end(body, first_choice(json_in(text)))
        return replace(response, provider_data=with_cut_call(body, self._additions.wire))


def _events(response: lm15.Response, provider: Provider) -> list[Any]:
    """Return a whole answer as a stream: DSPy does not stream OpenAI's Responses over LiteLLM."""
    data: Json = response.provider_data or {}
    body = json_in(data[BODY]) if BODY in data else data
    try:
        return [with_own_id(event, body, provider.id_key) for event in lm15.response_to_events(response)]
    except TypeError:  # a part that lm15 has no event for; the answer is read from `provider_data`
        start = lm15.StreamStartEvent(id=response.id, model=response.model)
        end = lm15.StreamEndEvent(
            finish_reason=response.finish_reason, usage=response.usage, provider_data=response.provider_data
        )
        return [start, end]


@contextmanager
def _reading(request: lm15.Request) -> Generator[None]:
    """The context in which to ask LiteLLM for a chunk; suppresses the error of a stream that just ended."""
    with litellm_errors(model=request.model):
        try:
            yield
        except Exception as error:
            # LiteLLM says so for some providers from 1.109 on. Its own error would lose what the provider
            # said until then; `Chunks.ends` raises one that has it.
            if "Stream ended before a finish_reason" not in str(error):
                refuse_rate_limit_behind(error)
                raise


class Engine(_WithAdditions, LiteLLMEngine):
    """DSPy's sync LiteLLM engine, with these additions."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send the request and return the whole answer."""
        try:
            return super().complete(request)
        except Exception as error:  # raised again if there is no answer
            return self._rescue(request, error)

    def stream(self, request: lm15.Request) -> Generator[Any, Any, None]:
        """Yield the events of one streamed answer."""
        if self.model_type == "responses":
            yield from _events(self.complete(request), self._provider)
            return
        data = self._arguments(request, streaming=True)
        litellm = get_litellm()
        chunks = Chunks(request, self._additions.wire)
        with litellm_errors(model=request.model):
            source = chunks.listen_to(litellm.completion(**data))
        with closing(source):
            stream = iter(source)
            while True:
                chunk = None
                with _reading(request):
                    chunk = next(stream, None)
                if chunk is None:
                    break
                yield from chunks.events(chunk)
        yield from chunks.ends(litellm, source)


class AsyncEngine(_WithAdditions, AsyncLiteLLMEngine):
    """DSPy's async LiteLLM engine, with these additions."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Send the request and return the whole answer."""
        try:
            return await super().complete(request)
        except Exception as error:  # raised again if there is no answer
            return self._rescue(request, error)

    async def stream(self, request: lm15.Request) -> AsyncGenerator[Any, Any]:
        """Yield the events of one streamed answer."""
        if self.model_type == "responses":
            for event in _events(await self.complete(request), self._provider):
                yield event
            return
        data = self._arguments(request, streaming=True)
        litellm = get_litellm()
        chunks = Chunks(request, self._additions.wire)
        with litellm_errors(model=request.model):
            source = chunks.listen_to(await litellm.acompletion(**data))
        async with aclosing(source):
            stream = source.__aiter__()
            while True:
                chunk = None
                with _reading(request):
                    chunk = await anext(stream, None)
                if chunk is None:
                    break
                for event in chunks.events(chunk):
                    yield event
        for event in chunks.ends(litellm, source):
            yield event


def token_counter() -> tuple[str, Callable[[str], int]]:
    """Return how tokens are counted, in words, and what counts them."""
    # LiteLLM ships one encoding of OpenAI's, `cl100k_base`, as a file. Other models cut text otherwise, so it
    # is an estimate for them, and good for comparing the parts of a request. If the encoding cannot be had,
    # tokens are estimated as a quarter of the bytes.
    try:
        from litellm.litellm_core_utils.default_encoding import encoding  # a heavy import
    except Exception:  # its file may be missing, and it would be downloaded
        return "estimated as a quarter of the bytes", lambda text: (len(text.encode()) + 3) // 4
    how = f"counted with {encoding.name} (tiktoken), an estimate for models with other tokens"
    return how, lambda text: len(encoding.encode(text, disallowed_special=()))
