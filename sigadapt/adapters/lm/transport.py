"""Send a Request: the only place that sends one (Request -> dspy.LM -> Response).

It calls `lm(dspy.lm15.Request)`, because `lm(messages=..., tools=...)` is deprecated for DSPy 3.5 and loses
parts of the answer. A typed request has one candidate, so n candidates are n requests.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from dspy import BaseLM, lm15

from sigadapt.adapters.lm.completions import completion_prompt, completion_settings
from sigadapt.adapters.lm.errors_in_answers import refuse_rate_limited
from sigadapt.adapters.lm.exchange import exchanging
from sigadapt.adapters.lm.native_rows import NativeRows
from sigadapt.adapters.lm.over_litellm.engines import LitellmAdditions, over_litellm
from sigadapt.adapters.lm.routes import Controls
from sigadapt.adapters.lm.streams.call_tap import CallTap, Subscribe, nobody
from sigadapt.adapters.lm.streams.stream_recorder import with_partial_marked
from sigadapt.adapters.lm.to_lm15 import to_lm15
from sigadapt.adapters.lm.traces import complete_history, show_to_watchers
from sigadapt.adapters.request.lowering import Lowered
from sigadapt.adapters.response.choice import Answer
from sigadapt.dspy_boundary.internals import stream_now, streaming_to, sync_send_to_stream
from sigadapt.providers import CHAT, provider_named
from sigadapt.providers.provider import Route


class _Ready(NamedTuple):
    lm: BaseLM
    request: lm15.Request
    sent: Lowered
    executions: list[tuple[dict[str, Any], Subscribe]]
    route: Route
    native: NativeRows
    has_rows: bool

    def model(self, *, is_async: bool) -> Any:
        """Return the model to call for one attempt, with an engine that loses nothing."""
        if self.route.client == "engine":
            return self.lm
        if self.route.client == "lm15":
            native = self.native if self.has_rows else None
            return exchanging(self.lm, self.request, self.route, native, is_async=is_async)
        wire = provider_named(self.route.dialect)
        form = CHAT if self.route.as_chat else wire
        limit = "max_tokens" if "max_tokens" in self.sent.request else "max_completion_tokens"
        added = LitellmAdditions(form, self.native, wire, limit)
        return over_litellm(self.lm, self.request, added, is_async=is_async)


def send(
    lm: BaseLM, sent: Lowered, route: Route, controls: Controls, subscribe: Subscribe = nobody
) -> list[Answer]:
    """Send a Request through the language model, once per candidate.

    Raises:
        InvalidOption: for a generation setting that lm15 has no place for, with lm15's reason.
        dspy.utils.exceptions.LMError: if the language model raises it.
    """
    if lm.model_type == "text":
        prompt, settings = completion_prompt(sent.request), completion_settings(sent.request)
        model: Any = lm
        return [Answer(model(prompt, **settings, **each)[0]) for each in executions_of(controls)]
    ready = _ready(lm, sent, route, controls, subscribe)
    sent_as = ready.request.model
    answers = [_unless_limited(_ask(ready, *each), sent_as) for each in ready.executions]
    complete_history(lm, ready.request, sent, len(answers))
    return answers


async def asend(
    lm: BaseLM, sent: Lowered, route: Route, controls: Controls, subscribe: Subscribe = nobody
) -> list[Answer]:
    """Send a Request as `send` does, but await the answers."""
    if lm.model_type == "text":
        prompt, settings = completion_prompt(sent.request), completion_settings(sent.request)
        model: Any = lm
        return [
            Answer((await model.acall(prompt, **settings, **each))[0]) for each in executions_of(controls)
        ]
    ready = _ready(lm, sent, route, controls, subscribe)
    sent_as = ready.request.model
    answers = [_unless_limited(await _aask(ready, *each), sent_as) for each in ready.executions]
    complete_history(lm, ready.request, sent, len(answers))
    return answers


def _unless_limited(answer: Answer, model: str) -> Answer:
    """Return an answer, unless a rate limit ended it."""
    if answer.reading.finish == "error":
        refuse_rate_limited(answer, model)
    return answer


def _ask(ready: _Ready, keywords: dict[str, Any], subscribe: Subscribe) -> Answer:
    stream, lm = stream_now(), ready.model(is_async=False)
    if stream is None:
        with show_to_watchers(ready.lm, ready.sent):
            return Answer(lm(ready.request, **keywords), ready.route.endpoint)
    tap = CallTap(stream, subscribe())
    with streaming_to(tap), with_partial_marked(tap.calls), show_to_watchers(ready.lm, ready.sent):
        answer = Answer(lm(ready.request, **keywords), ready.route.endpoint)
    for item in tap.rest(answer):
        sync_send_to_stream(stream, item)
    return answer


async def _aask(ready: _Ready, keywords: dict[str, Any], subscribe: Subscribe) -> Answer:
    stream, lm = stream_now(), ready.model(is_async=True)
    if stream is None:
        with show_to_watchers(ready.lm, ready.sent):
            return Answer(await lm.acall(ready.request, **keywords), ready.route.endpoint)
    tap = CallTap(stream, subscribe())
    with streaming_to(tap), with_partial_marked(tap.calls), show_to_watchers(ready.lm, ready.sent):
        answer = Answer(await lm.acall(ready.request, **keywords), ready.route.endpoint)
    for item in tap.rest(answer):
        await stream.send(item)
    return answer


def _ready(lm: BaseLM, sent: Lowered, route: Route, controls: Controls, subscribe: Subscribe) -> _Ready:
    """Return the model to call, the request in lm15's types, and the keywords of each candidate."""
    typed, native = to_lm15(sent.request, route, sent.settings)
    has_rows = bool(native)
    if controls.prompt_cache is not None:
        typed = replace(typed, config=replace(typed.config, cache=controls.prompt_cache))
    if controls.client:
        lm = _copy(lm, controls.client)
    if has_rows:
        # DSPy's cache key is made of the request, which lacks these.
        controls = controls._replace(rollout_id=f"{controls.rollout_id or ''}~{native.fingerprint()}")
    listeners = [subscribe, *[nobody] * (controls.candidates - 1)]
    executions = list(zip(executions_of(controls), listeners, strict=True))
    return _Ready(lm, typed, sent, executions, route, native, has_rows)


def executions_of(controls: Controls) -> list[dict[str, Any]]:
    """Return the keywords to pass beside the Request, one dict per candidate."""
    common: dict[str, Any] = {} if controls.cache is None else {"cache": controls.cache}
    if controls.candidates == 1 and controls.rollout_id is None:
        return [common]
    rollouts = [controls.candidate(number).rollout_id for number in range(controls.candidates)]
    return [common if rollout is None else {**common, "rollout_id": rollout} for rollout in rollouts]


def _copy(lm: BaseLM, changes: dict[str, Any]) -> BaseLM:
    """Return a copy of the model that shares its history."""
    copied = lm.copy(**changes)
    copied.history = lm.history
    return copied
