"""The typed calls of one model turn, good and bad."""

from sigadapt.signatures.calls.invalid_call import InvalidToolCall
from sigadapt.signatures.calls.reading import unique_ids
from sigadapt.signatures.calls.refused_call import RefusedToolCall
from sigadapt.signatures.calls.tool_call import ToolCall, refused
from sigadapt.signatures.calls.tool_calls import ToolCalls
from sigadapt.signatures.calls.turn import NO_TURN, Repeat, Turn

__all__ = [
    "NO_TURN",
    "InvalidToolCall",
    "RefusedToolCall",
    "Repeat",
    "ToolCall",
    "ToolCalls",
    "Turn",
    "refused",
    "unique_ids",
]
