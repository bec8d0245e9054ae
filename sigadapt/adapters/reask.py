"""Asking again after bad calls, as one conversation (rule 5).

The assistant turn goes back as it was. Each bad call gets a failed result that says what is wrong with it, by
code, path and reason. The good calls are kept, answered with a note, and not asked for again. Arguments that
are no object cannot be replayed (lm15 refuses them, some providers take objects only): such a call goes back
with none, and its result quotes what was sent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from sigadapt.adapters.choice import Choice
from sigadapt.adapters.conversation import assistant_message, result_message
from sigadapt.adapters.request import Request
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.results import complaint

C = TypeVar("C", ToolCall, InvalidToolCall)
_ACCEPTED = "This call is accepted. Do not repeat it."


def continued(request: Request, calls: ToolCalls) -> Request:
    """The request that goes on after an answer with bad calls.

    Args:
        request: the request whose answer it was.
        calls: the answer's calls, good and bad.

    Returns:
        A new request: the same conversation, the turn that made the calls, and a result for each of them.
    """
    results = [
        result_message(call.id, call.name, _ACCEPTED)
        if isinstance(call, ToolCall)
        else result_message(call.id, call.name, complaint(call), failed=True)
        for call in calls.in_order()
    ]
    messages = [*request["messages"], assistant_message(calls.in_order(), calls.turn, calls.text), *results]
    again: Request = {**request, "messages": messages}
    return again


def further(calls: Iterable[C], before: int) -> list[C]:
    """Calls of a later answer, numbered on from those of the answers before it."""
    return [call.model_copy(update={"index": call.index + before}) if before else call for call in calls]


def merged(kept: Sequence[ToolCall], choice: Choice, before: int) -> Choice:
    """The last answer's choice with the good calls of the `before` calls that came in answers before it."""
    if not kept:
        return choice
    turn = Turn(text=choice.text, reasoning=choice.reasoning)
    latest = choice.tool_calls if choice.tool_calls is not None else ToolCalls(tool_calls=[], turn=turn)
    good, bad = further(latest, before), further(latest.invalid, before)
    calls = latest.model_copy(update={"tool_calls": [*kept, *good], "invalid": tuple(bad)})
    return replace(choice, tool_calls=calls)
