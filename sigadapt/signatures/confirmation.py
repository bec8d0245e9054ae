"""Whether a person must agree to a call: asked of its declaration, before anything is run.

`calls.py` makes a virtual call of the question, which a program may save and answer in another process. The
idea is that of the Agent Development Kit's tool confirmation.
"""

from copy import deepcopy
from inspect import iscoroutine
from typing import Any, NamedTuple, cast

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.check import check_json
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.tool_decl import ToolDecl

REQUEST = "sigadapt_request_confirmation"
"""The name of the virtual call. No model sees it, and no model makes one."""

REJECTED = "The user rejected this call. It was not run."
"""What the model is told of a call that a person said no to."""


class Confirmation(NamedTuple):
    """What a `requires_confirmation` function may give in place of True.

    Args:
        hint: what the person is asked.
        payload: JSON for the program that asks, such as what to show.

    Example:
        >>> Confirmation("Pay 5 EUR?", {"eur": 5}).hint
        'Pay 5 EUR?'
    """

    hint: str
    payload: Any = None


def confirmation_for(decl: ToolDecl, args: Json) -> Confirmation | None:
    """Say what a person must be asked before a call is run; None where nobody needs to be.

    Args:
        decl: the tool's declaration. Where its `requires_confirmation` is a function, it is asked with a copy
            of the arguments, and gives a boolean or a `Confirmation`.
        args: the call's arguments.

    Raises:
        InvalidToolDecl: `confirmation_failed`, where that function raises or gives anything else.

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
    """What the declaration's function says; anything unclear is an error, because a guess may cost money."""
    try:
        answer = cast("Any", decl.requires_confirmation)(deepcopy(args))
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
