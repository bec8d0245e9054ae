"""Send a Request: the only place that calls a language model (Request -> dspy.LM -> Response).

It calls `lm(dspy.lm15.Request)`, because `lm(messages=..., tools=...)` is deprecated for DSPy 3.5 and loses
parts of the answer. A typed request has one candidate, so n candidates are n requests.
"""

from dataclasses import replace
from typing import Any, NamedTuple, cast

from dspy import BaseLM, lm15

from sigadapt.adapters.lm.call_tap import CallTap, Subscribe, nobody
from sigadapt.adapters.lm.dspy_internals import stream_now, streaming_to, sync_send_to_stream
from sigadapt.adapters.lm.history import complete
from sigadapt.adapters.lm.litellm_engines import fields_of, fingerprint, with_fields
from sigadapt.adapters.lm.settings import Controls
from sigadapt.adapters.lm.stream_recorder import kept_whole, unended_is_said, with_calls
from sigadapt.adapters.lm.to_lm15 import to_lm15
from sigadapt.adapters.request.lowering import Lowered
from sigadapt.providers.provider import Route


class _Ready(NamedTuple):
    lm: BaseLM
    request: lm15.Request
    executions: list[tuple[dict[str, Any], Subscribe]]


def send(
    lm: BaseLM, sent: Lowered, route: Route, controls: Controls, subscribe: Subscribe = nobody
) -> list[lm15.Response]:
    """Send a Request through the language model, once per candidate.

    Args:
        lm: the language model.
        sent: the Request, made fit for the route.
        route: the route.
        controls: how it is sent.
        subscribe: returns the listeners to the calls of the first candidate.

    Returns:
        One Response per candidate.

    Raises:
        InvalidOption: for a generation setting that lm15 has no place for, with lm15's reason.
        dspy.utils.exceptions.LMError: if the language model raises it.
    """
    ready = _ready(lm, sent, route, controls, subscribe)
    responses = [_ask(ready, keywords, listener) for keywords, listener in ready.executions]
    complete(cast("Any", lm.history), ready.request, sent, len(responses))
    return responses


async def asend(
    lm: BaseLM, sent: Lowered, route: Route, controls: Controls, subscribe: Subscribe = nobody
) -> list[lm15.Response]:
    """Send a Request as `send` does, but await the answers."""
    ready = _ready(lm, sent, route, controls, subscribe)
    responses = [await _aask(ready, keywords, listener) for keywords, listener in ready.executions]
    complete(cast("Any", lm.history), ready.request, sent, len(responses))
    return responses


def _ask(ready: _Ready, keywords: dict[str, Any], subscribe: Subscribe) -> lm15.Response:
    stream = stream_now()
    if stream is None:
        return cast("Any", ready.lm)(ready.request, **keywords)
    tap = CallTap(stream, subscribe())
    with streaming_to(tap), unended_is_said(tap.calls):
        lm: Any = kept_whole(ready.lm, ready.request, is_async=False)
        response = with_calls(lm(ready.request, **keywords), tap.calls())
    for item in tap.rest(response):
        sync_send_to_stream(stream, item)
    return response


async def _aask(ready: _Ready, keywords: dict[str, Any], subscribe: Subscribe) -> lm15.Response:
    stream = stream_now()
    if stream is None:
        return await cast("Any", ready.lm).acall(ready.request, **keywords)
    tap = CallTap(stream, subscribe())
    with streaming_to(tap), unended_is_said(tap.calls):
        lm: Any = kept_whole(ready.lm, ready.request, is_async=True)
        response = with_calls(await lm.acall(ready.request, **keywords), tap.calls())
    for item in tap.rest(response):
        await stream.send(item)
    return response


def _ready(lm: BaseLM, sent: Lowered, route: Route, controls: Controls, subscribe: Subscribe) -> _Ready:
    """Return the model to call, the request in lm15's types, and the keywords of each candidate."""
    typed = to_lm15(sent.request, route)
    if controls.prompt_cache is not None:
        typed = replace(typed, config=replace(typed.config, cache=controls.prompt_cache))
    if controls.client:
        lm = _copied(lm, controls.client)
    if route.as_chat:
        fields = [fields_of(row, route) for row in sent.request["messages"]]
        if any(fields):
            lm = with_fields(lm, fields)
            # DSPy's cache key is made of the request, which lacks these fields.
            controls = controls._replace(rollout_id=f"{controls.rollout_id or ''}~{fingerprint(fields)}")
    listeners = [subscribe, *[nobody] * (controls.candidates - 1)]
    return _Ready(lm, typed, list(zip(controls.executions(), listeners, strict=True)))


def _copied(lm: BaseLM, changes: dict[str, Any]) -> BaseLM:
    """Return a copy of the model that shares its history."""
    copied = lm.copy(**changes)
    copied.history = lm.history
    return copied
