"""Find out from a tool's declaration whether a person must agree to a call before the program runs the tool.

Source of the idea: tool confirmation in Google's Agent Development Kit.
"""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import wraps
from inspect import isawaitable, iscoroutine
from typing import Any, NamedTuple, TypeAlias

from sigadapt.errors import InvalidOption, InvalidToolDecl
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import check_json
from sigadapt.schemas.json_values import Json, equal_json
from sigadapt.schemas.with_defaults import with_defaults
from sigadapt.signatures.binding import bound_arguments
from sigadapt.signatures.sources.annotations import jsonable
from sigadapt.signatures.sources.runnable import ASKS_FIRST, by_name
from sigadapt.signatures.tool_decl import ToolDecl, with_fields

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


def shown_arguments(decl: ToolDecl, args: Json) -> Json:
    """Return a copy of arguments as who decides sees them: with the defaults of what they leave out."""
    return deepcopy(with_defaults(args, decl.parameters))


def confirmation_for(decl: ToolDecl, args: Json) -> Confirmation | None:
    """Return the question to ask a person before a call is run; None if the call needs no confirmation."""
    answer: object = decl.requires_confirmation
    if callable(answer):
        reason = "its requires_confirmation function failed: "
        try:
            answer = answer(shown_arguments(decl, args))
            if isinstance(answer, Confirmation):
                check_json(answer.payload, tool=decl.name)
        except Exception as error:
            reason += f"{type(error).__name__}: {error}"
            raise InvalidToolDecl(reason, code="confirmation_failed", tool=decl.name) from error
        if iscoroutine(answer):
            answer.close()
        if not isinstance(answer, (bool, Confirmation)):  # a guess may cost money
            reason += f"expected a boolean or a Confirmation, got a {type(answer).__name__}"
            raise InvalidToolDecl(reason, code="confirmation_failed", tool=decl.name)
    if isinstance(answer, Confirmation):
        return answer
    return Confirmation(f"Run {decl.name}?") if answer else None


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
        asked = confirmation_for(decl, args)
        if asked is None:
            return func(**kwargs)
        shown = shown_arguments(decl, args)
        before = deepcopy(shown)

        def answered(agreed: object) -> Any:
            if agreed is not True:
                raise PermissionError(REJECTED)
            return func(**_agreed_arguments(decl, kwargs, before, shown))

        async def later(agreed: Awaitable[object]) -> Any:
            result = answered(await agreed)
            return await result if isawaitable(result) else result

        agreed: Any = ask(decl.name, shown, asked.hint)
        return later(agreed) if isawaitable(agreed) else answered(agreed)

    setattr(run, ASKS_FIRST, True)
    return with_fields(decl, func=run)


def _agreed_arguments(decl: ToolDecl, kwargs: Json, before: Json, shown: Json) -> Json:
    """Return what to run the function with: its arguments, or those that who decided made of them."""
    if equal_json(before, shown):
        return kwargs
    flaw = decl.flaw_of(shown)
    bound = bound_arguments(decl, shown) if flaw is None else flaw
    if isinstance(bound, Flaw):
        raise PermissionError(f"The user changed the arguments. It was not run: {bound.message}")
    return bound
