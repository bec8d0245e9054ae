"""The request that asks again after bad calls, in the same conversation (rule 5).

The assistant turn goes back as it was. Each bad call gets a failed result that says what is wrong with it, by
code, path and reason. The good calls are kept, answered with a note, and not asked for again. Arguments that
are not an object cannot be replayed (lm15 refuses them, some providers take objects only): such a call goes
back with none, and its result quotes what was sent.
"""

from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.messages import assistant_message, result_message
from sigadapt.signatures.calls import ToolCall, ToolCalls
from sigadapt.signatures.results import complaint
from sigadapt.signatures.tool_result import ToolResult

_ACCEPTED = "This call is accepted. Do not repeat it."


def asking_again(request: Request, calls: ToolCalls) -> Request:
    """Return the request that goes on after an answer with bad calls.

    Args:
        request: the request whose answer it was.
        calls: the answer's calls, good and bad.

    Returns:
        A new request: the same conversation, the turn that made the calls, and a result for each of them.
    """
    results = [
        ToolResult(call_id=call.id, name=call.name, value=_ACCEPTED)
        if isinstance(call, ToolCall)
        else ToolResult(call_id=call.id, name=call.name or "", value=complaint(call), is_error=True)
        for call in calls.in_order()
    ]
    turn = assistant_message(calls.in_order(), calls.turn, calls.text)
    again: Request = {**request, "messages": [*request["messages"], turn, *map(result_message, results)]}
    return again
