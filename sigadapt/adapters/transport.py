"""The only file that knows how dspy.LM is called (Request -> dspy.LM -> Response).

It goes through the typed boundary, `lm(dspy.lm15.Request)`, because `lm(messages=..., tools=...)` is
deprecated for DSPy 3.5 and loses what a provider sent (DESIGN section 5). What that boundary asks of its
caller is done here: `lm.kwargs` are not merged into a Request, connection settings do not belong in one,
and `n` is refused, so n candidates are n requests.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from dspy import lm15
from dspy.clients import backend_selection, capabilities
from dspy.clients.backend_selection import CLIENT_KEYS
from dspy.clients.base_lm import BaseLM
from dspy.clients.call_context import adapter_fallback_scope as fallback_scope
from dspy.clients.call_result import legacy_output

from sigadapt.adapters import litellm_route, profiles, streaming
from sigadapt.adapters.litellm_route import fields_of, fingerprint
from sigadapt.adapters.lm15_request import to_lm15
from sigadapt.adapters.lowering import Lowered
from sigadapt.adapters.options import Options
from sigadapt.adapters.plan import Plan
from sigadapt.adapters.profiles import Profile
from sigadapt.adapters.request import Request
from sigadapt.adapters.streaming import Listening
from sigadapt.errors import InvalidOption

__all__ = [
    "Controls",
    "asend",
    "asks_capabilities",
    "controls_of",
    "fallback_scope",
    "legacy_output",
    "planned",
    "refuse_unsupported",
    "send",
]

planned: "Callable[[Callable[..., Any]], Any]" = cast("Any", capabilities).with_capability_planning
"""DSPy's decorator of adapter calls: capabilities are asked for once a call, with the call's settings."""

_CONTROLS = frozenset({"cache", "rollout_id", "n", "num_generations", "prompt_cache"})


class Controls(NamedTuple):
    """What governs the sending of a request without being part of it.

    `client` holds connection settings given for this call alone, `candidates` how many are wanted.
    """

    client: dict[str, Any]
    candidates: int
    cache: bool | None
    rollout_id: Any
    prompt_cache: lm15.CacheConfig | None

    def candidate(self, number: int) -> "Controls":
        """For one candidate alone: its own rollout_id, or the cache would give one answer n times."""
        if self.candidates == 1:
            return self
        base = self.rollout_id
        rollout = base if number == 0 else f"{'' if base is None else base}#{number}"
        return self._replace(candidates=1, rollout_id=rollout)


def controls_of(lm: BaseLM, settings: Mapping[str, Any]) -> tuple[Controls, dict[str, Any]]:
    """Split a call's settings, over the model's own, into how to send and what to generate.

    Args:
        lm: the language model; its `kwargs` are the defaults.
        settings: the call's keyword settings, as Predict's `config` gives them; None means unset.

    Returns:
        The controls, and the generation settings that belong in a request.
    """
    merged = {**lm.kwargs, **settings}
    candidates = merged.get("n") or merged.get("num_generations") or 1
    if type(candidates) is not int or candidates < 1:
        raise InvalidOption(f"{candidates!r} is not a positive integer", field="n")
    client: dict[str, Any] = {}
    generation: dict[str, Any] = {}
    for key, value in merged.items():
        if key in CLIENT_KEYS:
            if key in settings:
                client[key] = value
        elif value is not None and key not in _CONTROLS:
            generation[key] = value
    rollout_id, prompt_cache = merged.get("rollout_id"), merged.get("prompt_cache")
    return Controls(client, candidates, settings.get("cache"), rollout_id, prompt_cache), generation


def asks_capabilities(options: Options, plan: Plan) -> bool:
    """Whether a call depends on what DSPy knows of the model, which costs an async call a thread."""
    return options.tool_calling == "auto" or bool(plan.texts)


def refuse_unsupported(lm: BaseLM, options: Options) -> None:
    """Raise InvalidOption where this model cannot be sent tools natively (rule 4)."""
    if lm.model_type == "text":
        raise InvalidOption(
            f"{lm.model} is called as a text-completion model, whose wire has no tools",
            field="model_type",
            fix="Construct the LM with model_type='chat' or 'responses'.",
        )
    if options.tool_calling == "auto" and not lm.supports_function_calling:
        raise InvalidOption(
            f"DSPy does not know that {lm.model} supports function calling",
            field="tool_calling",
            fix="Pass tool_calling='native' to the adapter if it does.",
        )


def send(
    lm: BaseLM, sent: Lowered, profile: Profile, controls: Controls, watch: Listening
) -> list[lm15.Response]:
    """Send a request through the language model, once a candidate.

    Raises:
        InvalidOption: for a generation setting that lm15 has no place for, with lm15's reason.
        dspy.utils.exceptions.LMError: whatever the language model raises.
    """
    prepared = _prepared(lm, sent.request, profile, controls)
    responses = [
        streaming.send(prepared.lm, prepared.request, keywords, heard)
        for keywords, heard in _executions(prepared.controls, watch)
    ]
    _record(lm, prepared.request, sent)
    return responses


async def asend(
    lm: BaseLM, sent: Lowered, profile: Profile, controls: Controls, watch: Listening
) -> list[lm15.Response]:
    """The same, awaited."""
    prepared = _prepared(lm, sent.request, profile, controls)
    responses = [
        await streaming.asend(prepared.lm, prepared.request, keywords, heard)
        for keywords, heard in _executions(prepared.controls, watch)
    ]
    _record(lm, prepared.request, sent)
    return responses


def _record(lm: BaseLM, request: lm15.Request, sent: Lowered) -> None:
    """Keep the changes on the history entries of this request, beside lm15's own `adaptations`."""
    for entry in reversed(cast("list[dict[str, Any]]", lm.history) if sent.changes else []):
        if entry.get("request") is request:
            entry["changes"] = sent.changes


class _Prepared(NamedTuple):
    lm: BaseLM
    request: lm15.Request
    controls: Controls


def _prepared(lm: BaseLM, request: Request, profile: Profile, controls: Controls) -> _Prepared:
    typed = to_lm15(request, profile)
    if controls.prompt_cache is not None:
        typed = replace(typed, config=replace(typed.config, cache=controls.prompt_cache))
    if controls.client:
        lm = _copied(lm, **controls.client)
    if profile.replays == "litellm" and any(
        fields := [fields_of(row, profile) for row in request["messages"]]
    ):
        lm = _replaying(lm, fields)
        controls = controls._replace(rollout_id=f"{controls.rollout_id or ''}~{fingerprint(fields)}")
    return _Prepared(lm, typed, controls)


def _replaying(lm: BaseLM, fields: list[dict[str, Any] | None]) -> BaseLM:
    """The model with an engine of its own for this request; connection settings move to the engine."""
    client = {key: value for key, value in lm.kwargs.items() if key in CLIENT_KEYS}
    options = {"model_type": lm.model_type, **client}
    return _copied(
        lm,
        engine=litellm_route.Engine(fields, **options),
        async_engine=litellm_route.AsyncEngine(fields, **options),
        **dict.fromkeys(client),
    )


def _copied(lm: BaseLM, **changes: Any) -> BaseLM:
    """A copy that goes on writing the same history."""
    copied = lm.copy(**changes)
    copied.history = lm.history
    return copied


def _executions(controls: Controls, watch: Listening) -> list[tuple[dict[str, Any], Listening]]:
    """The keywords that go beside the request, once a candidate, and who listens: to the first alone."""
    common: dict[str, Any] = {} if controls.cache is None else {"cache": controls.cache}
    if controls.candidates == 1 and controls.rollout_id is None:
        return [(common, watch)]
    executions: list[tuple[dict[str, Any], Listening]] = []
    for number in range(controls.candidates):
        rollout = controls.candidate(number).rollout_id
        keywords = common if rollout is None else {**common, "rollout_id": rollout}
        executions.append((keywords, watch if number == 0 else _nobody))
    return executions


def _nobody() -> None:
    return None


def model_of(lm: BaseLM) -> str:
    """The language model's name, which a Request must bear."""
    return cast("Any", lm).model


def profile_of(lm: BaseLM) -> Profile:
    """The wire that a language model's requests go over, as DSPy will select it."""
    if not isinstance(getattr(lm, "engine", None), str):
        return profiles.ENGINE
    selection: Any = cast("Any", backend_selection).select_backend(lm)
    if selection.native:
        if selection.resolution.provider == "ollama":
            return profiles.NATIVE_OLLAMA
        profile = profiles.NATIVE[_LM15_DIALECTS.get(selection.resolution.adapter, "openai-chat")]
        wants = getattr(selection.resolution.compat, "thinking_replay", None) == "native"
        return replace(profile, replays_reasoning_content=True) if wants else profile
    if lm.model_type == "responses":
        return profiles.LITELLM["openai-responses"]
    prefix = model_of(lm).partition("/")[0]
    profile = profiles.LITELLM[profiles.LITELLM_DIALECTS.get(prefix, "openai-chat")]
    wants = prefix in profiles.LITELLM_REASONING
    return replace(profile, replays_reasoning_content=True) if wants else profile


_LM15_DIALECTS = {"OpenAILM": "openai-responses", "AnthropicLM": "anthropic", "GeminiLM": "gemini"}
