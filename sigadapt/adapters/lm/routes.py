"""Find the Route that a language model's requests take, and whether DSPy knows it to call functions.

DSPy works both out on every call. Here they are remembered with the model, weakly, for as long as nothing has
changed that they follow from: its name, type and engine, which connection settings it has, and the two
environment variables that send a provider's requests elsewhere.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dspy
from dspy import BaseLM, lm15

from sigadapt.adapters.lm.dspy_internals import CLIENT_KEYS, select_backend
from sigadapt.adapters.lm.settings import model_of
from sigadapt.providers import ROUTES
from sigadapt.providers.provider import OWN_ENGINE, Route
from sigadapt.schemas.caches import WeakCache

_KNOWN: WeakCache[tuple[Any, dict[str, Any]]] = WeakCache()
"""What was worked out of a language model, after what it follows from."""


def route_of(lm: BaseLM, settings: Mapping[str, Any]) -> Route:
    """Return the Route of a language model, from the table of providers.

    Args:
        lm: the language model.
        settings: the call's keyword settings; connection settings among them may lead elsewhere.

    Returns:
        Its route; that of servers without a route of their own for an unknown server; `OWN_ENGINE` for an
        engine that the user made.

    Example:
        >>> route = route_of(dspy.LM("anthropic/claude-sonnet-4-6"), {})
        >>> route.dialect, route.door
        ('anthropic', 'lm15')
    """
    if not isinstance(getattr(lm, "engine", None), str):
        return OWN_ENGINE
    return _known(lm, settings, "route", lambda: _route_of(lm, settings))


def calls_functions(lm: BaseLM, settings: Mapping[str, Any]) -> bool:
    """Say whether DSPy knows that a language model supports function calling; arguments as `route_of`.

    Example:
        >>> calls_functions(dspy.LM("openai/gpt-4o-mini"), {})
        True
    """
    if not isinstance(getattr(lm, "engine", None), str):
        return lm.supports_function_calling
    return _known(lm, settings, "calls functions", lambda: lm.supports_function_calling)


def _known(lm: BaseLM, settings: Mapping[str, Any], what: str, work_out: Callable[[], Any]) -> Any:
    if type(lm) is not dspy.LM:  # a class of the user's own may answer as it likes
        return work_out()
    follows_from = _follows_from(lm, settings)
    known = _KNOWN.get(lm)
    if known is None or known[0] != follows_from:
        known = follows_from, dict[str, Any]()
        _KNOWN.put(lm, known)
    if what not in known[1]:
        known[1][what] = work_out()
    return known[1][what]


def _follows_from(lm: Any, settings: Mapping[str, Any]) -> tuple[Any, ...]:
    prefix = lm.model.partition("/")[0].upper()
    elsewhere = os.getenv(f"{prefix}_API_BASE"), os.getenv(f"{prefix}_BASE_URL")
    clients = [repr(held[key]) for held in (lm.kwargs, settings) for key in CLIENT_KEYS & held.keys()]
    return lm.model, lm.model_type, lm.engine, *elsewhere, *clients


def _route_of(lm: BaseLM, settings: Mapping[str, Any]) -> Route:
    selection: Any = select_backend(lm, settings)
    if not selection.native:
        return _over_litellm(lm)
    resolution: Any = selection.resolution
    route: Route = (
        _first(door="lm15", server=resolution.provider)
        or _first(door="lm15", adapter=resolution.adapter, server="")
        or _first(door="lm15")
    )
    return replace(route, replays_reasoning=True) if _wants_reasoning(resolution.compat) else route


def _wants_reasoning(compat: Any) -> bool:
    """Whether a server, by its policy or the name of one, wants its `reasoning_content` back."""
    if isinstance(compat, str):
        try:
            compat = lm15.OpenAIChatCompat.preset(compat)
        except ValueError:  # the name of another dialect's policy
            return False
    return getattr(compat, "thinking_replay", None) == "native"


def _over_litellm(lm: BaseLM) -> Route:
    prefix = model_of(lm).partition("/")[0]
    over = [route for route in ROUTES if route.door == "litellm"]
    if lm.model_type == "responses":
        return next(route for route in over if route.model_type == "responses")
    return next((route for route in over if prefix in route.prefixes), over[0])


def _first(**fields: str) -> Any:
    """Return the first route with these values; None if there is none."""
    return next((r for r in ROUTES if all(getattr(r, key) == value for key, value in fields.items())), None)
