"""Make the Request that asks again after bad calls, in the same conversation (one bad call).

The assistant turn is sent back unchanged. Each bad call gets a failed result with the code, the path and the
reason of its error. Each good call is kept, and its result says not to repeat it. Arguments that are not an
object cannot be sent back, because lm15 and some providers accept only objects: such a call is sent back
without arguments, and its result quotes them.
"""

from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.messages import assistant_message, result_message
from sigadapt.signatures.calls import ToolCall, ToolCalls
from sigadapt.signatures.tool_results.pairing import complaint
from sigadapt.signatures.tool_results.tool_result import ToolResult

_ACCEPTED = "This call is accepted. Do not repeat it."


def asking_again(request: Request, calls: ToolCalls) -> Request:
    """Return the Request that asks again after an answer with bad calls."""
    results = [
        ToolResult(call_id=call.id, name=call.name, value=_ACCEPTED)
        if isinstance(call, ToolCall)
        else ToolResult(call_id=call.id, name=call.name or "", value=complaint(call), is_error=True)
        for call in calls.in_order()
    ]
    turn = assistant_message(calls.in_order(), calls.turn, calls.text)
    again: Request = {**request, "messages": [*request["messages"], turn, *map(result_message, results)]}
    return again
