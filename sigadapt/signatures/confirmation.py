"""Calls that a person must agree to, as data: a virtual call that asks, and what the answer makes of it.

No model sees the virtual call and no model makes one. It wraps the original call, whole, in JSON arguments,
so that a program may save it, stop, and take the person's answer in another process. What comes back is
exactly the call as it was, or a failed result for the model that says it was rejected. The idea is that of
the Agent Development Kit's tool confirmation.
"""

from collections.abc import Iterator
from copy import deepcopy
from inspect import iscoroutine
from typing import Any, NamedTuple, cast

import pydantic

from sigadapt.errors import InvalidHistory, InvalidToolDecl
from sigadapt.signatures.calls import ToolCall, ToolCalls
from sigadapt.signatures.decls import ToolDecl, ToolDecls
from sigadapt.signatures.results import ToolResult
from sigadapt.signatures.schema import check_json

REQUEST = "sigadapt_request_confirmation"
"""The name of the virtual call."""

_REJECTED = "The user rejected this call. It was not run."


class Confirmation(NamedTuple):
    """What a `requires_confirmation` function may give in place of True.

    Args:
        hint: what the person is asked.
        payload: JSON for the program that asks, such as what to show.
    """

    hint: str
    payload: Any = None


def awaiting_confirmation(calls: ToolCalls, decls: ToolDecls) -> ToolCalls:
    """Wrap each call that a person must agree to; the others, bad ones included, are left out.

    Args:
        calls: the calls of a turn.
        decls: the tools that were declared for it. Where `requires_confirmation` is a function, it is asked
            with the arguments as a dict, and gives a boolean or a `Confirmation`.

    Returns:
        One call of `sigadapt_request_confirmation` for each, with the arguments `call`, `hint` and `payload`.
        Its id is the original's behind `confirm_`.

    Raises:
        InvalidToolDecl: `confirmation_failed`, where that function raises or gives anything else.

    Example:
        >>> pay = {"name": "pay", "requires_confirmation": True}
        >>> calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="pay", args={"eur": 5})])
        >>> request = awaiting_confirmation(calls, ToolDecls([pay]))[0]
        >>> request.id, request.args["hint"]
        ('confirm_call_1', 'Run pay?')
        >>> approved(request) == calls[0], rejected(request).is_error
        (True, True)
    """
    return ToolCalls(tool_calls=list(_requests(calls, decls)))


def approved(request: ToolCall) -> ToolCall:
    """The person's yes: the original call, exactly as it was.

    Args:
        request: what `awaiting_confirmation` gave, saved and loaded if need be; nothing that a model sent.

    Raises:
        InvalidHistory: `no_confirmation`, for a call that wraps none.
    """
    wrapped = request.args.get("call")
    if request.name != REQUEST or not isinstance(wrapped, dict):
        raise _no_request(request)
    try:
        return ToolCall.model_validate(wrapped)
    except pydantic.ValidationError as error:
        raise _no_request(request) from error


def rejected(request: ToolCall, reason: str = _REJECTED) -> ToolResult:
    """The person's no: a failed result of the original call, for `ToolResults.of`.

    Args:
        request: as for `approved`.
        reason: what the model is told.

    Raises:
        InvalidHistory: `no_confirmation`, for a call that wraps none.
    """
    call = approved(request)
    return ToolResult(call_id=call.id, name=call.name, value=reason, is_error=True)


def _requests(calls: ToolCalls, decls: ToolDecls) -> Iterator[ToolCall]:
    for call in calls:
        asked = _asked(call, decls[call.name]) if call.name in decls else None
        if asked is not None:
            args = {"call": call.model_dump(mode="json"), "hint": asked.hint, "payload": asked.payload}
            yield ToolCall.model_validate(
                {"id": f"confirm_{call.id}", "name": REQUEST, "args": args, "index": call.index}
            )


def _asked(call: ToolCall, decl: ToolDecl) -> Confirmation | None:
    answer: object = decl.requires_confirmation
    if callable(answer):
        answer = _answer(call, decl)
    if isinstance(answer, Confirmation):
        return answer
    return Confirmation(f"Run {call.name}?") if answer else None


def _answer(call: ToolCall, decl: ToolDecl) -> bool | Confirmation:
    """What the declaration's function says; anything unclear is an error, because a guess may cost money."""
    try:
        answer = cast("Any", decl.requires_confirmation)(deepcopy(call.args))
        if isinstance(answer, Confirmation):
            check_json(answer.payload, tool=decl.name)
    except Exception as error:
        raise _failed(decl, str(error) or type(error).__name__) from error
    if iscoroutine(answer):
        answer.close()
    if not isinstance(answer, (bool, Confirmation)):
        raise _failed(decl, f"it gave a {type(answer).__name__}")
    return answer


def _failed(decl: ToolDecl, why: str) -> InvalidToolDecl:
    reason = f"its requires_confirmation did not say whether to ask: {why}"
    return InvalidToolDecl(reason, code="confirmation_failed", tool=decl.name)


def _no_request(request: ToolCall) -> InvalidHistory:
    return InvalidHistory(
        f"call {request.id!r} of {request.name!r} wraps no call that awaits confirmation",
        code="no_confirmation",
        fix="Give what ToolCalls.awaiting_confirmation(decls) gave.",
    )
