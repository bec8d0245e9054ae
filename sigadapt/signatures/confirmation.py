"""Find out from a tool's declaration whether a person must agree to a call before the program runs the tool.

Source of the idea: tool confirmation in Google's Agent Development Kit.
"""

import json
from copy import deepcopy
from inspect import iscoroutine
from typing import Any, NamedTuple

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, short_hash, type_of
from sigadapt.schemas.checking import check_json
from sigadapt.schemas.with_defaults import with_defaults
from sigadapt.signatures.binding import with_own_defaults
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_functions.open_call import CallProgress
from sigadapt.signatures.tool_results.tool_result import message_of

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


def visible_args(decl: ToolDecl, args: Json) -> Json:
    """Return a call's arguments with those that have defaults."""
    return with_own_defaults(decl, deepcopy(with_defaults(args, decl.parameters)))


def question_for(decl: ToolDecl, args: Json) -> tuple[Json, Confirmation | None]:
    """Return a call's arguments as who decides sees them, and the question; None if it needs no yes."""
    visible = visible_args(decl, args)  # as the policy and the function see them
    answer: object = decl.requires_confirmation
    if callable(answer):
        reason = "its requires_confirmation function failed: "
        try:
            answer = answer(deepcopy(visible))
            if isinstance(answer, Confirmation):
                check_json(answer.payload, tool=decl.name)
        except Exception as error:
            reason += message_of(error)
            raise InvalidToolDecl(reason, code="confirmation_failed", tool=decl.name) from error
        if iscoroutine(answer):
            answer.close()
        if not isinstance(answer, (bool, Confirmation)):  # a guess may cost money
            reason += f"expected a boolean or a Confirmation, got {type_of(answer)}"
            raise InvalidToolDecl(reason, code="confirmation_failed", tool=decl.name)
    if isinstance(answer, Confirmation):
        return visible, answer
    return visible, Confirmation(f"Run {decl.name}?") if answer else None


def request_id(call_id: str, name: str, args: Json, request_hash: str | None = None) -> str:
    """Return the id of a request: the same for the same call in every process, and another for any other.

    Servers use ids of calls again. `request_hash` (`Turn`) tells equal calls of two turns apart.
    """

    def as_integer(digits: str) -> int | float:
        # JavaScript or a database may have made 18 of 18.0.
        number = float(digits)
        return int(number) if number.is_integer() else number

    identity = [call_id, name, args] if request_hash is None else [call_id, name, args, request_hash]
    stored = json.loads(json.dumps(identity), parse_float=as_integer)
    return f"confirm_{short_hash(json.dumps(stored, sort_keys=True))}"


def with_approval(progress: CallProgress, pin: str | None, args: Json, *, is_edited: bool) -> CallProgress:
    """Return what was decided about a call, with the yes to these arguments.

    Args:
        progress: what was decided before.
        pin: `pin_of` the tool; None for one that is not declared.
        args: the arguments.
        is_edited: whether the person changed them.
    """
    agreed_args = deepcopy(args)  # a hook or a tool may edit those of the call
    return progress.model_copy(update={"approved": agreed_args, "is_edited": is_edited, "pin": pin})


def pin_of(decl: ToolDecl) -> str:
    """Return a hash of the tool that a person agrees to: its declaration as a request has it, keys sorted."""
    declaration = decl.to_openai()
    if decl.instructions:
        declaration["instructions"] = decl.instructions
    return short_hash(json.dumps(declaration, sort_keys=True))
