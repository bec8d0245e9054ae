"""Output fields of DSPy's types that a provider fills natively: reasoning, citations, and users' own.

DSPy's hooks of its types turn the feature on in the settings, and read the value from the Response.
"""

from typing import Any, NamedTuple

from dspy import BaseLM
from dspy.adapters.types.citation import Citations
from dspy.adapters.types.reasoning import Reasoning
from dspy.signatures.signature import Signature

from sigadapt.adapters.plan import Plan, reduce, without
from sigadapt.dspy_boundary import contract

_DSPYS_OWN = (Reasoning, Citations)  # they only delete their field, or leave it


class _CachedDelete(NamedTuple):
    """Stands in for a signature whose only used method is `delete`, and builds each smaller one only once."""

    signature: type[Signature]

    def delete(self, name: str) -> "_CachedDelete":
        return _CachedDelete(without(self.signature, name))


def without_native_fields(plan: Plan, kinds: list[Any], lm: BaseLM, settings: dict[str, Any]) -> Plan:
    """Return the Plan without the fields of these kinds that the model fills natively."""
    signature: type[Signature] = plan.text_signature
    for name, kind in plan.native_fields:
        if kind in kinds:
            whole: Any = _CachedDelete(signature) if kind in _DSPYS_OWN else signature
            smaller: Any = kind.adapt_to_native_lm_feature(whole, name, lm, settings)
            signature = smaller.signature if type(smaller) is _CachedDelete else smaller
    return plan if signature is plan.text_signature else reduce(plan, signature)


def native_values(plan: Plan, kinds: list[Any], response: Any, reasoning: str | None) -> dict[str, Any]:
    """Return the values that native types read from the Response, and log probabilities if asked for."""
    if response is None or isinstance(response, (str, dict)):  # of a hook, or of a text-completion model
        return {}
    native = {name: kind for name, kind in plan.native_fields if kind in kinds}
    return contract.native_values(native, response, reasoning)
