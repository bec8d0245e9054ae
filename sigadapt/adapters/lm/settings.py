"""Split the settings of a call: how its Request is sent (`Controls`), and what belongs in it.

`lm.kwargs` mixes both, and DSPy does not merge them into a typed request.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dspy import BaseLM

from sigadapt.dspy_boundary.internals import CLIENT_KEYS
from sigadapt.errors import InvalidOption

_CONTROLS = frozenset({"cache", "rollout_id", "n", "num_generations", "prompt_cache"})


class Controls(NamedTuple):
    """How a Request is sent; these settings are not part of it.

    Args:
        client: connection settings given for this call only.
        candidates: how many answers to ask for.
        cache: whether DSPy may answer from its cache; None uses the language model's setting.
        rollout_id: a part of DSPy's cache key, so that equal calls can have different answers.
        prompt_cache: a `dspy.lm15.CacheConfig`, DSPy's setting for the provider's cache of prompts.
    """

    client: dict[str, Any]
    candidates: int
    cache: bool | None
    rollout_id: Any
    prompt_cache: Any

    def candidate(self, number: int) -> "Controls":
        """Return one candidate's controls; with its own rollout_id, so that it has its own cache entry."""
        if self.candidates == 1:
            return self
        base = self.rollout_id
        rollout = base if number == 0 else f"{'' if base is None else base}#{number}"
        return self._replace(candidates=1, rollout_id=rollout)

    def executions(self) -> list[dict[str, Any]]:
        """Return the keywords to pass beside the Request, one dict per candidate."""
        common: dict[str, Any] = {} if self.cache is None else {"cache": self.cache}
        if self.candidates == 1 and self.rollout_id is None:
            return [common]
        rollouts = [self.candidate(number).rollout_id for number in range(self.candidates)]
        return [common if rollout is None else {**common, "rollout_id": rollout} for rollout in rollouts]


def controls_of(lm: BaseLM, settings: Mapping[str, Any]) -> tuple[Controls, dict[str, Any]]:
    """Split a call's settings into controls and generation settings.

    Raises:
        InvalidOption: for an `n` that is not a positive integer.
    """
    merged = {**lm.kwargs, **settings}
    candidates = merged.get("n") or merged.get("num_generations") or 1
    if type(candidates) is not int or candidates < 1:
        raise InvalidOption(f"expected a positive int, got {candidates!r}", field="n")
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


def model_of(lm: Any) -> str:
    """Return the language model's name, as the Request has it."""
    return lm.model
