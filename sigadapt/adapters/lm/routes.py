"""What a language model's settings decide: its route, its abilities, and how a Request is sent (`Controls`).

DSPy works out the route and the abilities on every call. Here they are kept weakly for each model, until
something that they depend on changes: the model's name, type or engine, its connection settings, or one of
the environment variables that change a provider's server or its key.
"""

import os
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import dspy
from dspy import BaseLM, lm15

from sigadapt.dspy_boundary.internals import CLIENT_KEYS, model_info, select_backend
from sigadapt.errors import InvalidOption
from sigadapt.providers import BY_WIRE, CHAT, ROUTES
from sigadapt.providers.route import OWN_ENGINE, IdentifierRules, ResultRules, Route
from sigadapt.providers.wire.content_blocks import only
from sigadapt.providers.wire.control_tokens import reads_template
from sigadapt.schemas.caches import WeakCache

NOTHING: Mapping[str, Any] = {}


class ModelFacts:
    """What is known of a language model with the settings of a call, worked out when it is needed."""

    def __init__(self, follows_from: tuple[Any, ...], **values: Any) -> None:
        self.follows_from = follows_from
        self.values = values

    def fact(self, what: str, work_out: Callable[[], Any]) -> Any:
        """Return a fact by its name, worked out once."""
        if what not in self.values:
            self.values[what] = work_out()
        return self.values[what]


_FACTS: WeakCache[ModelFacts] = WeakCache()  # the facts of a language model


def facts_of(lm: BaseLM, settings: Mapping[str, Any]) -> ModelFacts:
    """Return what is known of a language model, as it is now."""
    engine: Any = getattr(lm, "engine", None)
    if not isinstance(engine, str):
        return ModelFacts((), route=OWN_ENGINE)
    if type(lm) is not dspy.LM:  # a user's own class may give another answer each time
        return ModelFacts(())
    model: Any = lm
    prefix = model.model.partition("/")[0].upper()
    elsewhere = [*map(os.getenv, _address_variables(prefix)), os.getenv(f"{prefix}_API_KEY")]
    clients = [
        repr(kwargs[key]) for kwargs in (model.kwargs, settings) for key in CLIENT_KEYS & kwargs.keys()
    ]
    follows_from: tuple[Any, ...] = (model.model, model.model_type, engine, *elsewhere, *clients)
    facts = _FACTS.get(lm)
    if facts is None or facts.follows_from != follows_from:
        facts = ModelFacts(follows_from)
        _FACTS.put(lm, facts)
    return facts


def route_of(
    lm: BaseLM,
    settings: Mapping[str, Any],
    generation: Mapping[str, Any] = NOTHING,
    facts: ModelFacts | None = None,
) -> Route:
    """Return the Route of a language model, from the table of providers."""
    facts = facts or facts_of(lm, settings)
    route: Route = facts.fact("route", lambda: _route_of(lm, settings))
    if is_completion(lm):  # its prompt is one text
        return route._replace(results=ResultRules(), question_block=only("text"))
    may_change = generation and route.client == "lm15" and getattr(lm, "engine", None) == "auto"
    if may_change and litellm_only(generation):
        # DSPy takes the route over LiteLLM for every provider but one that the user declared.
        is_declared = facts.fact("declared", lambda: select_backend(lm, settings).resolution.declared)
        return route if is_declared else _over_litellm(lm)._replace(endpoint=route.endpoint)
    return route


def with_replayed_reasoning(
    route: Route, reasoning: str | Mapping[str, str] | Literal[False], model: str
) -> Route:
    """Return a Route with the field in which it takes reasoning of earlier turns, as the user set it."""
    if reasoning is False:
        return route._replace(turns=route.turns._replace(reasoning_field=None))
    field = reasoning if isinstance(reasoning, str) else reasoning.get(model)
    if not field or route.wire != CHAT.name:
        return route
    return route._replace(turns=route.turns._replace(reasoning_field=field, reasoning_of_others=True))


def is_completion(lm: BaseLM) -> bool:
    """Return whether a language model completes a text, so that it takes neither messages nor tools."""
    return lm.model_type == "text"


def calls_functions(lm: BaseLM, facts: ModelFacts) -> bool:
    """Return whether DSPy knows that a language model supports function calling."""
    return facts.fact("calls functions", lambda: lm.supports_function_calling)


def is_known_without_functions(lm: BaseLM, settings: Mapping[str, Any], facts: ModelFacts) -> bool:
    """Return whether DSPy's catalogue says that a model has no function calling; False if it says nothing."""

    def look_up() -> bool:
        resolution = select_backend(lm, settings).resolution
        if resolution is None:
            return False
        return model_info(resolution.provider, resolution.model).get("supports_function_calling") is False

    return facts.fact("without functions", look_up)


def _address_variables(prefix: str) -> tuple[str, str]:
    """Return the variables with the address of a provider's server, which DSPy leaves to LiteLLM."""
    return f"{prefix.upper()}_API_BASE", f"{prefix.upper()}_BASE_URL"


def _endpoint(lm: Any, settings: Mapping[str, Any]) -> str:
    """Return which server a model asks: the prefix of its name, and the host and port of its address."""
    prefix = model_of(lm).partition("/")[0]
    netloc = _address(lm, settings)
    return f"{prefix}@{netloc}" if netloc else prefix


def _address(lm: Any, settings: Mapping[str, Any]) -> str:
    """Return the host and the port of the address that a program gave for a model; empty for none."""
    prefix = model_of(lm).partition("/")[0]
    addresses = [options.get(key) for options in (settings, lm.kwargs) for key in ("api_base", "base_url")]
    defaults = map(os.getenv, _address_variables(prefix))
    return urlsplit(str(next(filter(None, [*addresses, *defaults]), ""))).netloc.rpartition("@")[2].lower()


# Mistral's chat templates refuse other ids, and so do its API and each server that has these templates:
# https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py
_MISTRALS = re.compile(r"(mis|minis|magis|devs|codes)tral|pixtral|voxtral", re.IGNORECASE)
_NINE_SIGNS = IdentifierRules(r"[a-zA-Z0-9]{9}", 9, own=False)


def _route_of(lm: BaseLM, settings: Mapping[str, Any]) -> Route:
    route = _route_to_server(lm, settings)
    prefix = model_of(lm).partition("/")[0]
    route = route._replace(templated=reads_template(route.wire, prefix, _address(lm, settings)))
    return route._replace(ids=_NINE_SIGNS) if _MISTRALS.search(model_of(lm)) else route


def _route_to_server(lm: BaseLM, settings: Mapping[str, Any]) -> Route:
    selection: Any = select_backend(lm, settings)
    resolution: Any = selection.resolution
    route: Route = (
        _over_litellm(lm)
        if not selection.native
        else _over_lm15(server=resolution.provider)
        or _over_lm15(adapter=resolution.adapter, server="")
        or _over_lm15()
    )
    if selection.native:
        route = _for_server(route, resolution)
    # One of many servers that speak an OpenAI-like wire.
    return route._replace(endpoint=_endpoint(lm, settings)) if CHAT.name in route.turns.takes else route


def _for_server(route: Route, resolution: Any) -> Route:
    """Return a route with what lm15 knows of the server that it leads to."""
    policy: Any = resolution.compat
    kind = BY_WIRE[route.wire].server_policy
    if isinstance(policy, str):
        if not kind:
            return route
        policy = getattr(lm15, kind).preset(policy)
    if hasattr(policy, "for_model"):
        policy = policy.for_model(resolution.model)
    turns = route.turns
    if getattr(policy, "thinking_replay", None) == "native":
        turns = turns._replace(reasoning_field="reasoning_content")
    if getattr(policy, "assistant_reasoning_content", None) == "include_empty":
        turns = turns._replace(empty_reasoning=True)
    role = getattr(policy, "instruction_role", None) or getattr(policy, "developer_role", None)
    if role in ("system", "developer"):
        turns = turns._replace(developer_role=role)
    choices = route.choices
    if getattr(policy, "parallel_tool_calls", None) == "reject":
        choices = choices._replace(parallel=False)
    if getattr(policy, "forced_tool_choice", None) == "reject":
        choices = choices._replace(forms=frozenset({"auto", "required"}))  # lm15 refuses `required`
    return route._replace(turns=turns, choices=choices)


def _over_litellm(lm: BaseLM) -> Route:
    prefix = model_of(lm).partition("/")[0]
    if find_spec("litellm") is None:
        elsewhere = [name for name in _address_variables(prefix) if os.getenv(name)]
        is_why = elsewhere and getattr(lm, "engine", None) == "auto"
        why = f", because {elsewhere[0]} is set" if is_why else ""
        other = "give `api_base` to the LM" if why else "use a model of a provider that DSPy asks itself"
        raise InvalidOption(
            f"{model_of(lm)} needs LiteLLM, which is not installed{why}",
            code="missing_extra",
            field="engine",
            fix=f"Install the extra `sigadapt[litellm]`, or {other}.",
        )
    over = [route for route in ROUTES if route.client == "litellm"]
    if lm.model_type == "responses":
        return next(route for route in over if route.models.model_type == "responses")
    return next((route for route in over if prefix in route.models.prefixes), over[0])


def _over_lm15(**models: str) -> Any:
    """Return the first route over lm15 that these models take; None if there is none."""
    over = (route for route in ROUTES if route.client == "lm15")
    return next((r for r in over if models.items() <= r.models._asdict().items()), None)


_CONTROLS = frozenset({"cache", "rollout_id", "n", "num_generations", "prompt_cache"})


class Controls(NamedTuple):
    """How a Request is sent; these settings are not part of it."""

    client: dict[str, Any]  # connection settings given for this call only
    candidates: int
    cache: bool | None  # whether DSPy may answer from its cache; None uses the language model's setting
    rollout_id: Any  # a part of DSPy's cache key, so that equal calls can have different answers
    prompt_cache: Any  # a `dspy.lm15.CacheConfig`, DSPy's setting for the provider's cache of prompts

    def candidate(self, number: int) -> "Controls":
        """Return one candidate's controls; with its own rollout_id, so that it has its own cache entry."""
        if self.candidates == 1:
            return self
        base = self.rollout_id
        rollout = base if number == 0 else f"{'' if base is None else base}#{number}"
        return self._replace(candidates=1, rollout_id=rollout)


def controls_of(lm: BaseLM, settings: Mapping[str, Any]) -> tuple[Controls, dict[str, Any]]:
    """Split a call's settings into controls and generation settings."""
    options = {**lm.kwargs, **settings}
    candidates = options.get("n") or options.get("num_generations") or 1
    if type(candidates) is not int or candidates < 1:
        raise InvalidOption(f"expected a positive int, got {candidates!r}", field="n")
    client: dict[str, Any] = {}
    generation: dict[str, Any] = {}
    for key, value in options.items():
        if key in CLIENT_KEYS:
            if key in settings:
                client[key] = value
        elif value is not None and key not in _CONTROLS:
            generation[key] = value
    rollout_id = options.get("rollout_id")
    prompt_cache = options.get("prompt_cache")
    return Controls(client, candidates, settings.get("cache"), rollout_id, prompt_cache), generation


def model_of(lm: Any) -> str:
    """Return the language model's name, as the Request has it."""
    return lm.model


_HELD = frozenset(
    {
        *("temperature", "max_tokens", "max_completion_tokens", "top_p", "stop", "seed"),
        *("response_format", "reasoning_effort", "frequency_penalty", "presence_penalty"),
    }
)
"""The usual settings, which lm15 takes. Others are tried."""


def litellm_only(generation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that only LiteLLM takes."""
    if generation.keys() <= _HELD:
        return {}
    return {key: value for key, value in generation.items() if key not in _HELD and not _is_held(key, value)}


def _is_held(key: str, value: Any) -> bool:
    try:
        lm15.request_from_openai_chat({"model": "any", "messages": _ANYTHING, key: value})
    except lm15.UnsupportedFeatureError:
        return False
    except (lm15.LM15Error, TypeError, ValueError):  # a wrong value, for which `to_lm15` raises lm15's reason
        return True
    return True


_ANYTHING = [{"role": "user", "content": ""}]
