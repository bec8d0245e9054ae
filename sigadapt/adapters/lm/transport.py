"""Send a Request: the only place that sends one (Request -> dspy.LM -> Response).

It calls `lm(dspy.lm15.Request)`, because `lm(messages=..., tools=...)` is deprecated for DSPy 3.5 and loses
parts of the answer. A typed request has one candidate, so n candidates are n requests.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

from dspy import BaseLM

from sigadapt.adapters.calling.answers import read_choice, subscribe
from sigadapt.adapters.calling.call_record import CallRecord, RequestRecord
from sigadapt.adapters.listeners import CallTap
from sigadapt.adapters.lm.errors_in_answers import refuse_rate_limited
from sigadapt.adapters.lm.exchange import exchanging
from sigadapt.adapters.lm.litellm_engines import LitellmAdditions, over_litellm
from sigadapt.adapters.lm.routes import Controls
from sigadapt.adapters.lm.stream_recorder import with_partial_marked
from sigadapt.adapters.lm.to_lm15 import Outgoing, to_lm15
from sigadapt.adapters.lm.traces import complete_history, show_to_watchers
from sigadapt.adapters.outputs import fault_of
from sigadapt.adapters.passes.states import stores_nothing
from sigadapt.adapters.response.choice import CandidateAnswer
from sigadapt.dspy_boundary.current_run import RequestSpan, Tracer, tracer_here
from sigadapt.dspy_boundary.internals import settings, streaming_to
from sigadapt.dspy_boundary.patches import install_for_streams, send_to_stream
from sigadapt.providers import provider_named
from sigadapt.providers.route import Route
from sigadapt.signatures.awaiting import Steps

_NOT_PASSED = frozenset(("model", "messages", "n"))  # to a text-completion model


class _Ask(NamedTuple):
    """A step that asks for one candidate: with an lm15 Request, or the prompt of a text-completion model."""

    model: Callable[..., Any]
    sent: Any  # an lm15 Request, or a prompt
    keywords: dict[str, Any]  # those of `dspy.LM` beside it

    def now(self) -> Any:
        return self.model(is_async=False)(self.sent, **self.keywords)

    async def later(self) -> Any:
        return await self.model(is_async=True).acall(self.sent, **self.keywords)


class _Show(NamedTuple):
    """A step that sends an item to DSPy's stream."""

    stream: Any
    item: Any

    def now(self) -> None:
        send_to_stream(self.stream, self.item)

    async def later(self) -> None:
        await self.stream.send(self.item)


def send(record: CallRecord) -> Steps[list[CandidateAnswer]]:
    """Send a Request through the language model, and return the answer of each candidate."""
    lm = record.call.lm
    route = record.route
    controls = record.controls
    if lm.model_type == "text":  # DSPy ends every prompt of such a model with "BEGIN RESPONSE:" itself
        prompt = "\n\n".join(_text(row.get("blocks", row["content"])) for row in record.request["messages"])
        settings = {key: value for key, value in record.request.items() if key not in _NOT_PASSED} | {"n": 1}
        candidates: list[CandidateAnswer] = []
        for keywords in executions_of(controls):
            completing = _complete(_Ask(partial(_same_model, lm), prompt, {**settings, **keywords}))
            tracer = tracer_here.get().tracer
            if tracer is not None:
                completing = _in_span(tracer, record, len(candidates), completing)
            candidates.append((yield from completing))
        return candidates
    outgoing = to_lm15(record.request, route, controls.prompt_cache, record.tokens)
    request = outgoing.request
    if controls.client:
        lm, history = lm.copy(**controls.client), lm.history
        lm.history = history
    if not outgoing.is_whole and route.client != "engine":  # DSPy's cache key is made of lm15's request
        fingerprint = outgoing.body.fingerprint()
        controls = controls._replace(rollout_id=f"{controls.rollout_id or ''}~{fingerprint}")
    model = partial(_model, lm, outgoing, record, route)
    candidates = []
    is_stored = route.turns.encrypts is None or not stores_nothing(record.request)
    answer_of = partial(
        CandidateAnswer,
        endpoint=route.endpoint,
        provider=outgoing.body.provider if route.client == "lm15" else None,
        is_stored=is_stored,
    )
    tap_of: Callable[[Any], CallTap | None] = partial(subscribe, record)
    for keywords in executions_of(controls):
        asking = show_to_watchers(lm, record), _Ask(model, request, keywords)
        answering = _answer(*asking, answer_of, tap_of)
        tracer = tracer_here.get().tracer
        if tracer is not None:
            answering = _in_span(tracer, record, len(candidates), answering)
        answer = yield from answering
        tap_of = CallTap  # listeners get the first candidate
        if answer.reading.finish == "error":
            refuse_rate_limited(answer, request.model)
        candidates.append(answer)
    complete_history(lm, request, record, len(candidates))
    return candidates


def _complete(ask: _Ask) -> Steps[CandidateAnswer]:
    (text, *_) = yield ask
    return CandidateAnswer(text, is_completion=True)


def _answer(
    callbacks: AbstractContextManager[Any],
    ask: _Ask,
    answer_of: Callable[..., CandidateAnswer],
    tap_of: Callable[[Any], CallTap | None],
) -> Steps[CandidateAnswer]:
    stream = settings.send_stream
    has_stop = bool(ask.sent.config.stop)
    if stream is None:
        with callbacks:
            return answer_of((yield ask), has_stop=has_stop)
    install_for_streams()
    tap = tap_of(stream) or CallTap(stream)
    with streaming_to(tap), with_partial_marked(tap.calls), callbacks:
        answer = answer_of((yield ask), has_stop=has_stop)
    if tap.recorder is not None:
        answer.events = tap.recorder.events
    for item in tap.on_end(answer):
        yield _Show(tap.stream, item)
    return answer


def _in_span(
    tracer: Tracer, record: CallRecord, number: int, answering: Steps[CandidateAnswer]
) -> Steps[CandidateAnswer]:
    """Return the answer of one candidate, asked for in a span."""
    candidate = record if record.controls.candidates == 1 else record.for_candidate(number)
    with tracer.request(record) as span:
        answer = yield from answering
        answer.trace = tracer.position()
        _show_in_span(span, candidate, answer)
        return answer


def _show_in_span(span: RequestSpan, record: CallRecord, answer: CandidateAnswer) -> None:
    try:
        choice = read_choice(record, answer)
    except Exception as error:  # noqa: BLE001  (raised where the answer is read next)
        span.take(None, error)
    else:
        span.take(choice, fault_of(record.call.adapter, record.plan, choice))


def _same_model(lm: BaseLM, *, is_async: bool) -> BaseLM:
    return lm


def _model(lm: BaseLM, outgoing: Outgoing, record: RequestRecord, route: Route, *, is_async: bool) -> BaseLM:
    """Return the model to call for one attempt, with an engine that keeps the whole answer."""
    if route.client == "engine":
        return lm
    if route.client == "lm15":
        return exchanging(lm, outgoing.request, outgoing.body, is_async=is_async)
    wire = provider_named(route.wire)
    limit = "max_tokens" if "max_tokens" in record.request else "max_completion_tokens"
    additions = LitellmAdditions(outgoing.body, wire, limit)
    return over_litellm(lm, outgoing.request, additions, is_async=is_async)


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part["text"] for part in content)


def executions_of(controls: Controls) -> list[dict[str, Any]]:
    """Return the keywords to pass beside the Request, one dict per candidate."""
    common: dict[str, Any] = {} if controls.cache is None else {"cache": controls.cache}
    if controls.candidates == 1 and controls.rollout_id is None:
        return [common]
    rollouts = [controls.candidate(number).rollout_id for number in range(controls.candidates)]
    return [common if rollout is None else {**common, "rollout_id": rollout} for rollout in rollouts]
