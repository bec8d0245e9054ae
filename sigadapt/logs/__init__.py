"""A recorded request, read back into a conversation that a program can send again."""

from sigadapt.logs.conversation import Conversation, conversation_from_request

__all__ = ["Conversation", "conversation_from_request"]
