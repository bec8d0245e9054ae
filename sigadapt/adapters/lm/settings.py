"""The settings of a call: what governs its sending, and what belongs in its request.

`lm.kwargs` mixes both, and DSPy does not merge them into a typed Request.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from dspy import BaseLM

from sigadapt.adapters.lm.dspy_internals import CLIENT_KEYS
from sigadapt.adapters.options import Options
from sigadapt.adapters.plan import Plan
from sigadapt.errors import InvalidOption

_CONTROLS = frozenset({"cache", "rollout_id", "n", "num_generations", "prompt_cache"})


class Controls(NamedTuple):
    """What governs the sending of a request without being part of it.

    Args:
        client: connection settings given for this call alone.
        candidates: how many answers are wanted.
        cache: whether DSPy may answer from its cache; None leaves it to the model.
        rollout_id: what keeps this call apart from equal ones in that cache.
        prompt_cache: DSPy's setting of the provider's own cache of prompts, a `dspy.lm15.CacheConfig`.
    """

    client: dict[str, Any]
    candidates: int
    cache: bool | None
    rollout_id: Any
    prompt_cache: Any

    def candidate(self, number: int) -> "Controls":
        """Return these for one candidate: its own rollout_id, or the cache would give one answer n times."""
        if self.candidates == 1:
            return self
        base = self.rollout_id
        rollout = base if number == 0 else f"{'' if base is None else base}#{number}"
        return self._replace(candidates=1, rollout_id=rollout)

    def executions(self) -> list[dict[str, Any]]:
        """Return the keywords that go beside the request, once for each candidate."""
        common: dict[str, Any] = {} if self.cache is None else {"cache": self.cache}
        if self.candidates == 1 and self.rollout_id is None:
            return [common]
        rollouts = [self.candidate(number).rollout_id for number in range(self.candidates)]
        return [common if rollout is None else {**common, "rollout_id": rollout} for rollout in rollouts]


def controls_of(lm: BaseLM, settings: Mapping[str, Any]) -> tuple[Controls, dict[str, Any]]:
    """Split a call's settings, over the model's own, into how to send and what to generate.

    Args:
        lm: the language model; its `kwargs` are the defaults.
        settings: the call's keyword settings, as Predict's `config` gives them; None means unset.

    Returns:
        The controls, and the generation settings that belong in a request.

    Raises:
        InvalidOption: for an `n` that is not a positive integer.

    Example:
        >>> import dspy
        >>> controls, generation = controls_of(dspy.LM("openai/x", temperature=0.5), {"n": 2})
        >>> controls.candidates, generation["temperature"]
        (2, 0.5)
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
    """Say whether a call depends on what DSPy knows of the model, which costs an async call a thread."""
    return options.tool_calling == "auto" or bool(plan.texts)


def refuse_unsupported(lm: BaseLM, options: Options, calls_functions: Callable[[], bool]) -> None:
    """Refuse a model that cannot be sent tools natively (rule 4).

    Args:
        lm: the language model.
        options: the adapter's options.
        calls_functions: says whether DSPy knows that the model supports function calling.

    Raises:
        InvalidOption: with the reason and what to do.
    """
    if lm.model_type == "text":
        raise InvalidOption(
            f"{model_of(lm)} is called as a text-completion model, whose wire has no tools",
            field="model_type",
            fix="Construct the LM with model_type='chat' or 'responses'.",
        )
    if options.tool_calling == "auto" and not calls_functions():
        raise InvalidOption(
            f"DSPy does not know that {model_of(lm)} supports function calling",
            field="tool_calling",
            fix="Pass tool_calling='native' to the adapter if it does.",
        )


def model_of(lm: BaseLM) -> str:
    """Return the language model's name, which a Request must have."""
    return cast("Any", lm).model
