"""The typed calls of one model turn, good and bad."""

from sigadapt.signatures.calls.reading import unique_ids as unique_ids
from sigadapt.signatures.calls.tool_call import RefusedToolCall as RefusedToolCall
from sigadapt.signatures.calls.tool_call import ToolCall as ToolCall
from sigadapt.signatures.calls.tool_call import refused as refused
from sigadapt.signatures.calls.tool_calls import ToolCalls as ToolCalls
from sigadapt.signatures.calls.tool_calls import in_turn as in_turn
from sigadapt.signatures.calls.tool_calls import with_each as with_each
from sigadapt.signatures.calls.turn import NO_TURN as NO_TURN
from sigadapt.signatures.calls.turn import InvalidToolCall as InvalidToolCall
from sigadapt.signatures.calls.turn import Repeat as Repeat
from sigadapt.signatures.calls.turn import SearchRecord as SearchRecord
from sigadapt.signatures.calls.turn import Turn as Turn
