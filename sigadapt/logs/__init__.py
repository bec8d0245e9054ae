"""Recorded traffic of any framework, and what a DSPy program can be made of it."""

from sigadapt.logs.adoption.adopted import Adopted, adopt, load
from sigadapt.logs.agreement import Comparison, compare
from sigadapt.logs.conversation import Conversation, conversation_from_request
from sigadapt.logs.reruns import Replayed, replay
from sigadapt.logs.rewriting import Improved, improve

__all__ = [
    "Adopted",
    "Comparison",
    "Conversation",
    "Improved",
    "Replayed",
    "adopt",
    "compare",
    "conversation_from_request",
    "improve",
    "load",
    "replay",
]
