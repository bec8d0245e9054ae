"""Which texts of a run a page shows while they stream: those of the program's own answer, and of its agent.

A field of an inner predictor may hold what no customer is to read. Whether it is one is known when the
program has put out something, so what might be one is not written before. The outputs are.
"""

import dspy

from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.runs.events import Event, Origin, ReasoningDelta, TextDelta

_OWN_ANSWER = (dspy.Predict, dspy.ChainOfThought)
"""Programs that put out what their predictor does, as it is."""


class ShownTexts:
    """The choice for one run.

    Args:
        program: the program.
        message: the user's text.
        show: fields that are shown, whichever predictor puts them out.
    """

    def __init__(self, program: dspy.Module, message: str, show: frozenset[str]) -> None:
        self._is_own_answer = isinstance(program, _OWN_ANSWER)
        modules = [module for _, module in program.named_sub_modules()]
        self._has_one_agent = len([module for module in modules if isinstance(module, ReActV2)]) == 1
        self._message = message
        self.fields = show
        """Those that are shown whatever the program puts out."""

    def shows(self, event: Event) -> bool:
        """Return whether the page shows an event while it comes."""
        if not isinstance(event, (TextDelta, ReasoningDelta)) or event.origin is None:
            return True
        if isinstance(event, TextDelta) and event.field in self.fields:
            return True
        return self._is_own_answer or self._is_of_agent(event.origin)

    def _is_of_agent(self, origin: Origin) -> bool:
        """Return whether a step is of the agent that got the message, or goes on with it."""
        if origin.agent is None:
            return origin.has_calls
        if self._has_one_agent or not origin.texts:
            return True
        return any(self._message in text for text in origin.texts)
