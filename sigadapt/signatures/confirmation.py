"""Find out from a tool's declaration whether a person must agree to a call before the program runs the tool.

Source of the idea: tool confirmation in Google's Agent Development Kit.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import wraps
from inspect import isawaitable, iscoroutine
from typing import Any, NamedTuple, TypeAlias

from sigadapt.errors import InvalidOption, InvalidToolDecl, printable
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import check_json
from sigadapt.schemas.json_values import Json, equal_json, short_hash
from sigadapt.schemas.with_defaults import with_defaults
from sigadapt.signatures.binding import bound_arguments, with_own_defaults, without_own_defaults
from sigadapt.signatures.sources.annotations import jsonable
from sigadapt.signatures.sources.runnable import ASKS_FIRST, Asking, asking_of, by_name, nobody_to_ask
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_results.failures import message_of

_LOG = logging.getLogger("sigadapt")
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


def question_for(decl: ToolDecl, args: Json) -> tuple[Json, Confirmation | None]:
    """Return a call's arguments as who decides sees them, and the question; None if it needs no yes."""
    # The person, the policy and the function see the same values, those of defaults too.
    visible = with_own_defaults(decl, deepcopy(with_defaults(args, decl.parameters)))
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
            reason += f"expected a boolean or a Confirmation, got a {type(answer).__name__}"
            raise InvalidToolDecl(reason, code="confirmation_failed", tool=decl.name)
    if isinstance(answer, Confirmation):
        return visible, answer
    return visible, Confirmation(f"Run {decl.name}?") if answer else None


def request_id(call_id: str, name: str, args: Json) -> str:
    """Return the id of a request: the same for the same call in every process, and another for any other."""
    # JavaScript or a database may have made 18 of 18.0.
    whole = json.loads(
        json.dumps([call_id, name, args]),
        parse_float=lambda text: int(number) if (number := float(text)).is_integer() else number,
    )
    return f"confirm_{short_hash(json.dumps(whole, sort_keys=True))}"


def refusing(decl: ToolDecl) -> Callable[..., Any]:
    """Return the function of a tool, for an agent that can ask nobody: it runs what needs no yes."""
    func = by_name(decl.raw.function)

    @wraps(func)
    def run(**kwargs: Any) -> Any:
        if question_for(decl, {name: jsonable(value) for name, value in kwargs.items()})[1] is None:
            return func(**kwargs)
        error = nobody_to_ask(decl.name)
        _LOG.error("%s", error)  # agents swallow what a tool raises
        raise error

    return run


def waits_inside(tool: str | None) -> InvalidToolDecl:
    """Make the error of a program inside of a tool that has to wait for a person, and warn of it."""
    error = InvalidToolDecl(
        "a program inside of a tool cannot wait for a person, because the run around it goes on",
        code="nobody_to_ask",
        tool=tool,
        fix="Mark the outer tool instead, ToolDecl.of(program, requires_confirmation=True), and give its "
        "program tools that need no yes, or that ask by `confirmed_by`.",
    )
    _LOG.warning("%s", error)
    return error


Ask: TypeAlias = "Callable[[str, Json, str], bool | Awaitable[bool]]"
"""A function of a tool's name, the arguments and the question. It says whether to run it; may be async."""


def asking_first(decl: ToolDecl, ask: Ask) -> ToolDecl:
    """Return the same declaration with a function that asks a person before it runs."""
    if not callable(ask):
        raise InvalidOption(
            f"a {type(ask).__name__} cannot be asked",
            field="ask",
            fix="Give confirmed_by a function of the tool's name, the arguments and the question.",
        )
    if decl.func is None or decl.requires_confirmation is False:
        return decl
    func = by_name(decl.func)

    @wraps(func)
    def run(**kwargs: Any) -> Any:
        args = {name: jsonable(value) for name, value in kwargs.items()}
        visible, question = question_for(decl, args)
        as_sent = _agreed_arguments(decl, kwargs, args, visible, visible)
        if question is None:
            return func(**as_sent)
        before = deepcopy(visible)

        def answered(verdict: object) -> Any:
            if verdict is False:
                raise PermissionError(REJECTED)
            if verdict is not True:
                raise _asked_in_vain(decl, f"expected True or False, got a {type(verdict).__name__}")
            is_same = equal_json(before, visible)
            return func(**(as_sent if is_same else _agreed_arguments(decl, kwargs, args, before, visible)))

        async def later(answer: Awaitable[object]) -> Any:
            try:
                verdict = await answer
            except Exception as error:
                raise _asked_in_vain(decl, message_of(error)) from error
            result = answered(verdict)
            return await result if isawaitable(result) else result

        try:
            verdict: Any = ask(decl.name, visible, printable(question.hint, also="\n"))
        except Exception as error:
            raise _asked_in_vain(decl, message_of(error)) from error
        return later(verdict) if isawaitable(verdict) else answered(verdict)

    def again(copy: ToolDecl) -> Any:
        return asking_first(with_fields(copy, func=decl.func), ask).func

    inner = asking_of(decl.func)
    behind = decl.func if inner is None else inner.behind
    setattr(run, ASKS_FIRST, Asking(run, decl.requires_confirmation, behind, again))
    return with_fields(decl, func=run)


def _asked_in_vain(decl: ToolDecl, why: str) -> InvalidOption:
    """Make the error of an `ask` that gave no answer, and log it: agents swallow what a tool raises."""
    error = InvalidOption(
        f"`ask` gave no answer about {decl.name!r}: {why}",
        code="invalid_decision",
        field="ask",
        fix="Return True to run the call, False to reject it.",
    )
    _LOG.error("%s", error)
    return error


def _agreed_arguments(decl: ToolDecl, kwargs: Json, args: Json, before: Json, after: Json) -> Json:
    """Return what to run the function with: what who decides saw, or made of it."""
    arguments = without_own_defaults(decl, after)
    flaw = decl.flaw_of(arguments)
    values = bound_arguments(decl, arguments) if flaw is None else flaw
    if not equal_json(before, after):
        if isinstance(values, Flaw):
            raise PermissionError(f"The user changed the arguments. It was not run: {values.message}")
        return values
    if equal_json(kwargs, args):  # agents give what the model sent
        if not isinstance(values, Flaw):
            return values
        raise ValueError(values.message)  # as DSPy does for a tool that does not ask
    # A Python value may hold more than its JSON: what it excludes, a SecretStr, what a serializer changed.
    if isinstance(values, Flaw) or any(values.get(name, part) != part for name, part in kwargs.items()):
        raise InvalidToolDecl(
            "its arguments hold more than JSON can show, so nobody could agree to them",
            code="confirmation_failed",
            tool=decl.name,
            fix="Give the tool the arguments as JSON.",
        )
    return values
