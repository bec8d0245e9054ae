"""Recorded traffic of any framework, and what a DSPy program can be made of it."""

from sigadapt.logs.conversation import Conversation, conversation_from_request

__all__ = ["Conversation", "conversation_from_request"]
