"""Find the Route of a language model's requests, and whether DSPy knows that it supports function calling.

DSPy computes both on every call. Here they are cached weakly per model, until something that they depend on
changes: the model's name, type or engine, its connection settings, or one of the environment variables that
change a provider's server or its key.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, cast

import dspy
from dspy import BaseLM, lm15

from sigadapt.adapters.lm.dspy_internals import CLIENT_KEYS, model_info, select_backend
from sigadapt.adapters.lm.over_litellm.settings import litellm_only
from sigadapt.adapters.lm.settings import model_of
from sigadapt.errors import InvalidOption
from sigadapt.providers import ROUTES
from sigadapt.providers.provider import OWN_ENGINE, Route
from sigadapt.schemas.caches import WeakCache

NOTHING: Mapping[str, Any] = {}


class Known:
    """What is known of a language model with the settings of a call, worked out when it is needed.

    Args:
        follows_from: what it follows from.
        route: the route, if it is known.
    """

    __slots__ = ("calls_functions", "follows_from", "others", "route")

    def __init__(self, follows_from: tuple[Any, ...], route: Route | None = None) -> None:
        self.follows_from = follows_from
        self.route = route
        self.calls_functions: bool | None = None
        self.others: dict[str, Any] = {}

    def also(self, what: str, work_out: Callable[[], Any]) -> Any:
        """Return another part, by its name, worked out once."""
        if what not in self.others:
            self.others[what] = work_out()
        return self.others[what]


_KNOWN: WeakCache[Known] = WeakCache()
"""What is known, by language model."""


def known_of(lm: BaseLM, settings: Mapping[str, Any]) -> Known:
    """Return what is known of a language model, as it is now."""
    engine: Any = getattr(lm, "engine", None)
    if not isinstance(engine, str):
        return Known((), OWN_ENGINE)
    if type(lm) is not dspy.LM:  # a user's own class may give another answer each time
        return Known(())
    follows_from = _follows_from(lm, engine, settings)
    known = _KNOWN.get(lm)
    if known is None or known.follows_from != follows_from:
        known = Known(follows_from)
        _KNOWN.put(lm, known)
    return known


def route_of(
    lm: BaseLM,
    settings: Mapping[str, Any],
    generation: Mapping[str, Any] = NOTHING,
    known: Known | None = None,
) -> Route:
    """Return the Route of a language model, from the table of providers.

    Raises:
        InvalidOption: `missing_extra`, for a route over LiteLLM where that is not installed.
    """
    known = known or known_of(lm, settings)
    route = known.route
    if route is None:
        route = known.route = _route_of(lm, settings)
    if (
        generation
        and route.client == "lm15"
        and cast("Any", lm).engine == "auto"
        and litellm_only(generation)
    ):
        return known.also("over litellm", lambda: _instead(lm, settings, route))
    return route


def _instead(lm: BaseLM, settings: Mapping[str, Any], native: Route) -> Route:
    """Return the route over LiteLLM, which DSPy takes for every provider but one that the user declared."""
    return native if select_backend(lm, settings).resolution.declared else _over_litellm(lm)


def calls_functions(lm: BaseLM, settings: Mapping[str, Any], known: Known | None = None) -> bool:
    """Return whether DSPy knows that a language model supports function calling."""
    # Takes the same arguments as `route_of`.
    known = known or known_of(lm, settings)
    if known.calls_functions is None:
        known.calls_functions = lm.supports_function_calling
    return known.calls_functions


def is_completion(lm: BaseLM) -> bool:
    """Return whether a language model completes a text, so that it takes neither messages nor tools."""
    return lm.model_type == "text"


def is_known_without_functions(lm: BaseLM, settings: Mapping[str, Any], known: Known | None = None) -> bool:
    """Return whether DSPy's catalogue says that a model has no function calling; False if it says nothing."""
    # Takes the same arguments as `route_of`.
    known = known or known_of(lm, settings)
    return known.also("without functions", lambda: _is_without(lm, settings))


def _is_without(lm: BaseLM, settings: Mapping[str, Any]) -> bool:
    resolution: Any = select_backend(lm, settings).resolution
    if resolution is None:
        return False
    return model_info(resolution.provider, resolution.model).get("supports_function_calling") is False


def _follows_from(lm: Any, engine: str, settings: Mapping[str, Any]) -> tuple[Any, ...]:
    prefix = lm.model.partition("/")[0].upper()
    elsewhere = [os.getenv(f"{prefix}_{name}") for name in ("API_BASE", "BASE_URL", "API_KEY")]
    clients = [repr(held[key]) for held in (lm.kwargs, settings) for key in CLIENT_KEYS & held.keys()]
    return lm.model, lm.model_type, engine, *elsewhere, *clients


def _route_of(lm: BaseLM, settings: Mapping[str, Any]) -> Route:
    selection: Any = select_backend(lm, settings)
    if not selection.native:
        return _over_litellm(lm)
    resolution: Any = selection.resolution
    route: Route = (
        _first(client="lm15", server=resolution.provider)
        or _first(client="lm15", adapter=resolution.adapter, server="")
        or _first(client="lm15")
    )
    return (
        replace(route, replays_reasoning="reasoning_content")
        if _wants_reasoning(resolution.compat)
        else route
    )


def _wants_reasoning(compat: Any) -> bool:
    """Return whether a server wants its `reasoning_content` back, given lm15's policy or its name."""
    if isinstance(compat, str):
        try:
            compat = lm15.OpenAIChatCompat.preset(compat)
        except ValueError:  # a policy of another dialect
            return False
    return getattr(compat, "thinking_replay", None) == "native"


def _over_litellm(lm: BaseLM) -> Route:
    _require_litellm(model_of(lm))
    prefix = model_of(lm).partition("/")[0]
    over = [route for route in ROUTES if route.client == "litellm"]
    if lm.model_type == "responses":
        return next(route for route in over if route.model_type == "responses")
    return next((route for route in over if prefix in route.prefixes), over[0])


def _require_litellm(model: str) -> None:
    """Refuse a model that is asked over LiteLLM where LiteLLM is not installed (fail before the call).

    Raises:
        InvalidOption: `missing_extra`, with the extra that installs it.
    """
    if find_spec("litellm") is None:
        raise InvalidOption(
            f"{model} is asked over LiteLLM, which is not installed",
            code="missing_extra",
            field="engine",
            fix="Run `pip install 'sigadapt[litellm]'`, or use a model of a provider that DSPy asks itself.",
        )


def _first(**fields: str) -> Any:
    """Return the first route with these values; None if there is none."""
    return next((r for r in ROUTES if all(getattr(r, key) == value for key, value in fields.items())), None)
