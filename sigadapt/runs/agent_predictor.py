"""The predictor of `sigadapt.ReAct`: DSPy's, but it does not take the state of a `dspy.ReAct`.

Both agents keep their state under the name `react`. DSPy loads what is there, whatever fields it has: the
instructions would ask for fields that this agent lacks, and its fields would get descriptions of others.
"""

from typing import Any

import dspy

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import is_mapping, is_sequence

_NEXT_TOOL = ("next_tool_name", "next_tool_args")
"""Outputs of `dspy.ReAct`, and of no other agent."""


class Predict(dspy.Predict):
    """The predictor of `sigadapt.ReAct`. Tracers show its name, so it has that of DSPy's."""

    def load_state(self, state: Any, **options: Any) -> Any:
        """Load what `dump_state` gave.

        Raises:
            InvalidOption: for the state of a `dspy.ReAct`, before anything is loaded.
        """
        signature: Any = self.signature
        if any(name not in signature.fields and _has_field(state, name) for name in _NEXT_TOOL):
            raise InvalidOption(
                "this is the state of a dspy.ReAct, whose predictor has other fields than this agent's",
                field="state",
                fix="Optimize this agent itself, or give it the instructions that are yours, by "
                "agent.react.signature.with_instructions(...). Then save it again.",
            )
        return super().load_state(state, **options)


def _has_field(state: Any, name: str) -> bool:
    """Return whether the signature or an example of a saved predictor has a field."""
    if not is_mapping(state):
        return False
    signature: Any = state.get("signature")
    fields: Any = signature.get("fields") if is_mapping(signature) else None
    prefixes = [field.get("prefix") for field in fields if is_mapping(field)] if is_sequence(fields) else []
    if any(_name_of(prefix) == name for prefix in prefixes):
        return True
    demos: Any = state.get("demos")
    return is_sequence(demos) and any(name in demo for demo in demos)


def _name_of(prefix: Any) -> str:
    """Return the name of a field whose prefix is DSPy's own."""
    return str(prefix).rstrip(":").replace(" ", "_").lower()
