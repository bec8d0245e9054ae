"""Find out from a tool's declaration whether a person must agree to a call before the program runs the tool.

`ToolCalls.awaiting_confirmation` wraps each such call in a request, which a program can save and answer in
another process. Source of the idea: tool confirmation in Google's Agent Development Kit.
"""

from copy import deepcopy
from inspect import iscoroutine
from typing import Any, NamedTuple, cast

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.checking.schema import check_json
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.tool_decl import ToolDecl

REQUEST = "sigadapt_request_confirmation"
"""The tool name of a request for confirmation. Models never see it."""

REJECTED = "The user rejected this call. It was not run."
"""The result of a call that a person said no to, as the model reads it."""


class Confirmation(NamedTuple):
    """A question for a person. A `requires_confirmation` function may return it in place of True.

    Args:
        hint: the question to the person.
        payload: a JSON value for the program that asks, such as details to show.

    Example:
        >>> Confirmation("Pay 5 EUR?", {"eur": 5}).hint
        'Pay 5 EUR?'
    """

    hint: str
    payload: Any = None


def confirmation_for(decl: ToolDecl, args: Json) -> Confirmation | None:
    """Return the question to ask a person before a call is run; None if the call needs no confirmation.

    Args:
        decl: the tool's declaration. If its `requires_confirmation` is a function, that is called with a copy
            of the arguments, and returns a boolean or a Confirmation.
        args: the call's arguments.

    Raises:
        InvalidToolDecl: `confirmation_failed`, if that function raises or returns anything else.

    Example:
        >>> confirmation_for(ToolDecl("pay", requires_confirmation=True), {"eur": 5}).hint
        'Run pay?'
    """
    answer: object = decl.requires_confirmation
    if callable(answer):
        answer = _answer(decl, args)
    if isinstance(answer, Confirmation):
        return answer
    return Confirmation(f"Run {decl.name}?") if answer else None


def _answer(decl: ToolDecl, args: Json) -> bool | Confirmation:
    """Call the declaration's function. An unclear answer is an error, because a guess may cost money."""
    try:
        answer = cast("Any", decl.requires_confirmation)(deepcopy(args))
        if isinstance(answer, Confirmation):
            check_json(answer.payload, tool=decl.name)
    except Exception as error:
        raise _failed(decl, str(error) or type(error).__name__) from error
    if iscoroutine(answer):
        answer.close()
    if not isinstance(answer, (bool, Confirmation)):
        raise _failed(decl, f"expected a boolean or a Confirmation, got a {type(answer).__name__}")
    return answer


def _failed(decl: ToolDecl, why: str) -> InvalidToolDecl:
    reason = f"its requires_confirmation function failed: {why}"
    return InvalidToolDecl(reason, code="confirmation_failed", tool=decl.name)
