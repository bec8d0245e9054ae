"""Find the Route that a language model's requests take, with the engine that DSPy selects."""

from dataclasses import replace
from typing import Any

from dspy import BaseLM, lm15

from sigadapt.adapters.lm.dspy_internals import select_backend
from sigadapt.adapters.lm.settings import model_of
from sigadapt.providers import ROUTES
from sigadapt.providers.provider import OWN_ENGINE, Route


def route_of(lm: BaseLM) -> Route:
    """Return the Route of a language model, from the table of providers.

    Args:
        lm: the language model.

    Returns:
        Its route; that of servers without a route of their own for an unknown server; `OWN_ENGINE` for an
        engine that the user made.

    Example:
        >>> import dspy
        >>> route = route_of(dspy.LM("anthropic/claude-sonnet-4-6"))
        >>> route.dialect, route.door
        ('anthropic', 'lm15')
    """
    if not isinstance(getattr(lm, "engine", None), str):
        return OWN_ENGINE
    selection: Any = select_backend(lm)
    if not selection.native:
        return _over_litellm(lm)
    resolution = selection.resolution
    route = _first(door="lm15", server=resolution.provider) or _first(
        door="lm15", adapter=resolution.adapter, server=""
    )
    route = route or _first(door="lm15")
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
