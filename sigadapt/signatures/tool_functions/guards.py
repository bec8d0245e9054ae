"""Functions of tools behind a question for a person, or behind the refusal to run without one."""

import logging
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

from sigadapt.dspy_boundary.contract import keeps_trajectory
from sigadapt.dspy_boundary.internals import innermost_module
from sigadapt.errors import InvalidOption, InvalidToolDecl, printable
from sigadapt.json_values import Json, compact, equal_json, type_of
from sigadapt.schemas.arguments import Flaw
from sigadapt.signatures.awaiting import Steps, start
from sigadapt.signatures.binding import function_arguments
from sigadapt.signatures.confirmation import REJECTED, pin_of, question_for, with_approval
from sigadapt.signatures.sources.annotations import jsonable
from sigadapt.signatures.sources.runnable import (
    ASKS_FIRST,
    FORGOTTEN,
    Asking,
    RefusedRun,
    asking_of,
    by_name,
    forgotten_adapter,
    nobody_to_ask,
)
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_decls import Ask
from sigadapt.signatures.tool_functions.open_call import (
    Need,
    OpenCall,
    TakesCall,
    call_for,
    open_call,
    take_open_call,
)
from sigadapt.signatures.tool_functions.tool_function import (
    FunctionStep,
    ToolFunction,
    call_by_hand,
    function_of,
)
from sigadapt.signatures.tool_results.function_calls import (
    start_function,
)
from sigadapt.signatures.tool_results.tool_output import NotedValue, edit_note
from sigadapt.signatures.tool_results.tool_result import message_of

_LOG = logging.getLogger("sigadapt")


class GuardedFunction(TakesCall):
    """A tool's function behind a question for a person.

    It is an object, and does not say what it wraps: `dspy.CodeAct` takes the source of a function, or of the
    function that it wraps, and runs that without the question.
    """

    def __init__(self, func: Any, run: Callable[..., Any]) -> None:
        super().__init__(func)
        self._run = run

    def __call__(self, /, **kwargs: Any) -> Any:
        """Ask, and run the function."""
        return self._run(**kwargs)


def agent_function(decl: ToolDecl) -> Callable[..., Any]:
    """Return what an agent runs for a tool that asks nobody itself: what needs no yes."""
    func = function_of(decl)
    if decl.requires_confirmation is False:
        return func

    def run(**kwargs: Any) -> Any:
        if question_for(decl, {name: jsonable(value) for name, value in kwargs.items()})[1] is None:
            call_for(func)
            return start_function(func, kwargs)
        module = innermost_module()
        error = None if module is None else forgotten_adapter(FORGOTTEN, decl.name)
        error = error or nobody_to_ask(decl.name)
        _LOG.error("%s", error)  # agents swallow what a tool raises
        if keeps_trajectory(module):
            return RefusedRun(error)
        raise error

    return GuardedFunction(func, run)


def waits_inside(tool: str | None) -> InvalidToolDecl:
    """Make the error of a program inside of a tool that has to wait for a person, and warn of it."""
    error = InvalidToolDecl(
        "a program inside of a tool cannot wait for a person, because the outer run continues",
        code="nobody_to_ask",
        tool=tool,
        fix="Mark the outer tool instead, ToolDecl.of(program, requires_confirmation=True), and give its "
        "program tools that need no yes, or that ask by `confirmed_by`.",
    )
    _LOG.warning("%s", error)
    warnings.warn(str(error), UserWarning, stacklevel=2)  # a script that configures no log sees it too
    return error


def asking_first(decl: ToolDecl, ask: Ask) -> ToolDecl:
    """Return the same declaration with a function that asks a person before it runs."""
    if not callable(ask):
        raise InvalidOption(
            f"{type_of(ask)} cannot be asked",
            field="ask",
            fix="Give confirmed_by a function of the tool's name, the arguments and the question.",
        )
    if decl.func is None or decl.requires_confirmation is False:
        return decl
    asking = asking_of(decl.func)
    func = function_of(decl) if asking is None else by_name(asking.again(decl))

    def ask_of(copy: ToolDecl) -> Any:
        return asking_first(with_fields(copy, func=decl.func), ask).func

    def run(**kwargs: Any) -> Any:
        return start(_ask_and_run(decl, func, ask, kwargs))

    guarded = GuardedFunction(func, run)
    function = decl.func if asking is None else asking.behind
    asks = Asking(guarded, decl.requires_confirmation, decl.hooks, function, ask_of)
    setattr(guarded, ASKS_FIRST, asks)
    return with_fields(decl, func=guarded)


def _ask_and_run(decl: ToolDecl, func: Callable[..., Any], ask: Ask, kwargs: Json) -> Steps[Any]:
    """Ask about a call if it needs a yes, and run it."""
    current = take_open_call() or call_by_hand(decl, kwargs)  # here: `ask` may be awaited in another context
    args = {name: jsonable(value) for name, value in kwargs.items()}
    visible, question = question_for(decl, args)
    arguments = _agreed_arguments(decl, kwargs, args, visible, visible)
    if question is None:
        _open(current, decl, func, ask)
        return (yield FunctionStep(func, arguments, may_block=True, timeout=decl.timeout))
    original = deepcopy(visible)
    try:
        hint = printable(question.hint, also="\n")
        verdict: object = yield FunctionStep(partial(ask, decl.name, visible, hint), {})
    except Exception as error:
        raise _asked_in_vain(decl, message_of(error)) from error
    if verdict is False:
        raise PermissionError(REJECTED)
    if verdict is not True:
        raise _asked_in_vain(decl, f"expected True or False, got {type_of(verdict)}")
    _open(current, decl, func, ask, visible)
    is_edited = not equal_json(original, visible)
    if is_edited:
        arguments = _agreed_arguments(decl, kwargs, args, original, visible)
    value = yield FunctionStep(func, arguments, may_block=True, timeout=decl.timeout)
    return NotedValue(value, edit_note(visible)) if is_edited else value


def _open(
    current: OpenCall, decl: ToolDecl, func: Callable[..., Any], ask: Ask, agreed: Json | None = None
) -> None:
    """Let a tool's context know of the yes, and its hooks ask about arguments that they change."""
    if agreed is not None:
        is_edited = not equal_json(current.call.args, {name: agreed.get(name) for name in current.call.args})
        update = {"args": agreed, "arguments": compact(agreed)}
        current.call = current.call.model_copy(update=update)
        current.decision = current.call if is_edited else True
        current.progress = with_approval(current.progress, pin_of(decl), agreed, is_edited=is_edited)

    def agree(need: Need) -> Any:
        return ask(decl.name, need.args or {}, printable(need.hint, also="\n"))

    current.agree = agree
    if isinstance(func, ToolFunction):
        open_call.set(current)


def _asked_in_vain(decl: ToolDecl, reason: str) -> InvalidOption:
    """Make the error of an `ask` that gave no answer, and log it: agents swallow what a tool raises."""
    error = InvalidOption(
        f"`ask` gave no answer about {decl.name!r}: {reason}",
        code="invalid_decision",
        field="ask",
        fix="Return True to run the call, False to reject it.",
    )
    _LOG.error("%s", error)
    return error


def _agreed_arguments(decl: ToolDecl, kwargs: Json, args: Json, shown: Json, answer: Json) -> Json:
    """Return what to run the function with: what who decides saw, or made of it."""
    values = function_arguments(decl, answer)
    if not equal_json(shown, answer):
        if isinstance(values, Flaw):
            raise PermissionError(f"The user changed the arguments. It was not run: {values.message}")
        return values
    if equal_json(kwargs, args):  # agents give what the model sent
        if not isinstance(values, Flaw):
            return values
        raise ValueError(values.message)  # as DSPy does for a tool that does not ask
    # A Python value may hold more than its JSON: what it excludes, a SecretStr, what a serializer changed.
    if isinstance(values, Flaw) or any(values.get(name, value) != value for name, value in kwargs.items()):
        raise InvalidToolDecl(
            "its arguments hold more than JSON can show, so nobody could agree to them",
            code="confirmation_failed",
            tool=decl.name,
            fix="Give the tool the arguments as JSON.",
        )
    return values
