"""ToolFunction: the function of a tool, called with its context, and with the hooks around it.

The order of one call, whose hooks stand in a row:

 a. A person has agreed already, if the tool requires it (`guards.py`, `ToolCalls.run`).
 b. Each `before_tool` sees the call as the one before left it. The first that gives a value ends the asking,
    and nothing runs.
 c. Arguments that hooks changed are checked as the model's are. Arguments that nobody has agreed to stop the
    call again, so nothing runs that nobody was shown.
 d. The function runs. If it fails, the first `on_tool_error` that recovers gives the value.
 e. The value, wherever it came from, passes every `after_tool`, each with what the one before returned. A
    failure passes none.
 f. A hook that raises fails the call: nothing runs after a failed `before_tool`, and the model never reads a
    result that a failed `after_tool` was to change, or the failure that a failed `on_tool_error` was to hide.
"""

import asyncio
import logging
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from inspect import isawaitable
from typing import Any, NamedTuple, NoReturn

import dspy
from pydantic_core import to_jsonable_python

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, cut, equal_json
from sigadapt.schemas.arguments import Flaw
from sigadapt.signatures.awaiting import Steps, arun, start
from sigadapt.signatures.binding import function_arguments, types_of_function
from sigadapt.signatures.calls.tool_call import ToolCall, copy_of_call, mark_approved
from sigadapt.signatures.confirmation import REJECTED, Confirmation, pin_of, question_for
from sigadapt.signatures.sources.runnable import by_name
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_functions.hooks import HookError, methods_of
from sigadapt.signatures.tool_functions.open_call import (
    Need,
    OpenCall,
    TakesCall,
    need_of,
    result_hint,
    start_hook,
    stop_in,
    take_open_call,
)
from sigadapt.signatures.tool_functions.tool_context import ToolContext, cannot_wait
from sigadapt.signatures.tool_results.function_calls import (
    arun_function,
    is_async,
    read_outcome,
    start_function,
    takes_context_first,
    with_first,
    with_timeout,
)
from sigadapt.signatures.tool_results.tool_result import ToolResult, failure_in

_LOG = logging.getLogger("sigadapt")


class FunctionStep(NamedTuple):
    """Something to call, sync or async, before the steps go on."""

    function: Callable[..., Any]
    arguments: Json
    may_block: bool = False  # whether async code runs it in a thread
    timeout: float | None = None

    def now(self) -> Any:
        """Call it; what it returns may be awaitable."""
        return with_timeout(start_function(self.function, self.arguments, self.timeout), self.timeout)

    async def later(self) -> Any:
        """Call it without blocking the loop."""
        if self.may_block:
            return await arun_function(self.function, self.arguments, self.timeout)
        value = self.function(**self.arguments)
        return await value if isawaitable(value) else value


class _HookValue(NamedTuple):
    """The value of a call that a hook gave, which may be None in no other way."""

    value: Any


def function_of(decl: ToolDecl, func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return what runs a call of a tool: its function, by name, with its context and its hooks.

    Args:
        decl: the declaration.
        func: the function, if not that of the declaration.

    Raises:
        InvalidToolDecl: `no_function`, for a tool without one that is not external.
    """
    own = decl.func if func is None else func
    if decl.external:
        return ToolFunction(decl, _wait_elsewhere, None)
    if own is None:
        own = decl.function  # which raises
    if takes_context_first(own):
        return _kind_of(own)(decl, own, None)
    plain = by_name(own)
    context_name = types_of_function(own).context
    if context_name is None and not decl.hooks:
        return plain
    return _kind_of(own)(decl, plain, context_name)


def _kind_of(own: Callable[..., Any]) -> "type[ToolFunction]":
    return _AsyncToolFunction if is_async(own) else ToolFunction


def _wait_elsewhere(**_: Any) -> NoReturn:
    raise NotImplementedError  # a ToolFunction stops before it would call this


class ToolFunction(TakesCall):
    """The function of a tool, with its context and hooks.

    Args:
        decl: the declaration.
        func: the function, which takes all by name.
        context_name: its parameter for the context, if it has one.
    """

    def __init__(self, decl: ToolDecl, func: Callable[..., Any], context_name: str | None) -> None:
        super().__init__(func, without=context_name)
        self._decl = decl
        self._context_name = context_name

    def __call__(self, /, **arguments: Any) -> Any:
        """Run the tool; what it returns may be awaitable."""
        return start(self._steps(arguments))

    async def acall(self, /, **arguments: Any) -> Any:
        """Run the tool without blocking the event loop."""
        return await arun(self._steps(arguments))

    def _steps(self, arguments: Json) -> Steps[Any]:
        call = take_open_call() or call_by_hand(self._decl, arguments)
        call.call = self._copy_of(call)  # the record says what the model sent, whatever a hook does
        context = ToolContext[Any].of_call(call)
        value = yield from self._value(call, context, arguments)
        return (yield from self._after(call, context, value))

    def _copy_of(self, call: OpenCall) -> ToolCall:
        """Return the call for hooks, which may edit it, and run it again if a person agreed to it."""
        copy = copy_of_call(call.call)
        if call.decision is not None:
            mark_approved(copy, pin_of(self._decl))
        return copy

    def _value(self, call: OpenCall, context: ToolContext, arguments: Json) -> Steps[Any]:
        """Return the value of the call: from elsewhere, of a hook, or of the function."""
        if call.source is not None:
            call.end()
            return (yield FunctionStep(call.source, {}, may_block=True))
        before = yield from self._before(call, context)
        if isinstance(before, _HookValue):
            return before.value
        return (yield from self._run(call, context, arguments if before is None else before))

    def _before(self, call: OpenCall, context: ToolContext) -> Steps["_HookValue | Json | None"]:
        """Return the value that a hook gives, or the arguments that hooks changed; None if none does."""
        agreed_call = call.call
        call.agreed_args = deepcopy(agreed_call.args)
        shown_call = self._copy_of(call)
        try:
            for hook in methods_of(self._decl.hooks, "before_tool"):
                call.call = shown_call
                answer = yield from _ask_hook(call, hook, "before_tool", (shown_call, context))
                if isinstance(answer, dspy.ToolCalls.ToolCall):
                    update = {"name": answer.name, "args": deepcopy(dict(answer.args or {}))}
                    shown_call = shown_call.model_copy(update=update)  # which the next hook may edit
                elif answer is not None:
                    return _HookValue(answer)
                if shown_call.name != agreed_call.name:
                    name = cut(repr(shown_call.name))
                    raise ValueError(f"its before_tool hook gave a call of another tool, {name}")
        finally:
            call.call = agreed_call
        if equal_json(shown_call.args, agreed_call.args):
            return None
        return (yield from self._changed_arguments(call, shown_call.args))

    def _run(self, call: OpenCall, context: ToolContext, arguments: Json) -> Steps[Any]:
        """Return what the function returns, or the value of a hook that recovers."""
        if self._decl.external:
            call.wait([Need("result", result_hint(self._decl.name), args=call.changed_args)])
        try:
            function = with_first(self._func, context) if takes_context_first(self._func) else self._func
            value = yield FunctionStep(function, self._with_context(arguments, context), may_block=True)
        except Exception as error:
            call.end()
            recovery = yield from self._recover(call, context, error)
            if recovery is None:
                raise
            return recovery.value
        except asyncio.CancelledError as error:
            if methods_of(self._decl.hooks, "after_tool"):
                read_outcome(error, _refuse_unread)
            raise
        except BaseException as error:
            stop = stop_in(error)  # of a tool that asked in a task group
            if stop is None:
                raise
            raise stop from None
        call.end()
        if need_of(value, self._decl.name) is not None:
            return value
        error = failure_in(value)
        if error is None:
            return value
        recovery = yield from self._recover(call, context, error)
        return value if recovery is None else recovery.value

    def _with_context(self, arguments: Json, context: ToolContext) -> Json:
        name = self._context_name
        if name is None:
            return arguments
        if name in arguments:  # as Python says of an argument that a function does not take
            raise TypeError(f"{self._decl.name}() got an unexpected keyword argument {name!r}")
        return {**arguments, name: context}

    def _recover(self, call: OpenCall, context: ToolContext, error: Exception) -> Steps["_HookValue | None"]:
        """Return the value that a hook gives in place of a failure; None if none does.

        Raises:
            HookError: if one fails, which may have been there to hide the failure.
        """
        for hook in methods_of(self._decl.hooks, "on_tool_error"):
            given = (self._call_that_ran(call), error, context)
            try:
                answer = yield from _ask_hook(call, hook, "on_tool_error", given)
            except HookError:
                _LOG.error("what the hook did not get over", exc_info=error)  # nothing else says it any more
                raise
            if answer is not None:
                return _HookValue(answer)
        return None

    def _after(self, call: OpenCall, context: ToolContext, value: Any) -> Steps[Any]:
        """Return a value as the hooks leave it, one after the other."""
        result = value
        if call.source is not None and isinstance(value, ToolResult):
            result = value.value
        for hook in methods_of(self._decl.hooks, "after_tool"):
            if need_of(value, self._decl.name) is not None or failure_in(value) is not None:
                return value
            answer = yield from _ask_hook(
                call, hook, "after_tool", (self._call_that_ran(call), result, context)
            )
            if answer is not None:
                value = result = answer
        return value

    def _call_that_ran(self, call: OpenCall) -> ToolCall:
        """Return the call with the arguments that `before_tool` left: a hook that repeats it runs these."""
        if call.changed_args is None:
            return call.call
        changed = call.call.model_copy(update={"args": deepcopy(call.changed_args)})
        if call.decision is not None:  # a person agreed to the change, too
            mark_approved(changed, pin_of(self._decl))
        return changed

    def _changed_arguments(self, call: OpenCall, changed_args: Json) -> Steps[Json]:
        """Return the arguments that hooks changed, as the function takes them."""
        args = yield from self._agreed_arguments(call, changed_args)
        values = function_arguments(self._decl, args)
        if not isinstance(values, Flaw):
            call.changed_args = args
            return values
        raise ValueError(f"its before_tool hook changed the arguments: {values.message}")

    def _agreed_arguments(self, call: OpenCall, args: Json) -> Steps[Json]:
        """Return changed arguments if no person has to agree to them any more; else ask, or stop the call."""
        visible, question = question_for(self._decl, args)
        was_decided = call.decision is not None
        if question is None and not was_decided:
            return args
        if was_decided and equal_json(visible, call.agreed_args):
            return args
        for change in call.progress.changes:
            # A default may be another one each time. Then the person saw that of the first time.
            sent = {name: visible[name] for name in args}
            if change.keys() == visible.keys() and equal_json(sent, {name: change[name] for name in args}):
                call.decision = call.decision or True
                return change
        hint, payload = question or Confirmation(f"Run {self._decl.name}?")
        need = Need("approval", hint, payload=payload, args=visible)
        if call.agree is None:
            call.wait([need])
        verdict = yield FunctionStep(call.agree, {"need": need}, may_block=True)
        if verdict is not True:
            raise PermissionError(REJECTED)
        changes = (*call.progress.changes, deepcopy(visible))
        call.progress = call.progress.model_copy(update={"changes": changes})
        call.decision = call.decision or True
        return visible


class _AsyncToolFunction(ToolFunction):
    """The same around an async function, for callers that ask what a function is before they call it."""

    async def __call__(self, /, **arguments: Any) -> Any:
        """Run the tool."""
        return await self.acall(**arguments)


def call_by_hand(decl: ToolDecl, arguments: Json) -> OpenCall:
    """Return the call of a tool that is run without one: by hand, or by `dspy.ReAct`."""
    args = to_jsonable_python(arguments, fallback=str, inf_nan_mode="strings", bytes_mode="base64")
    call = ToolCall(id="", name=decl.name, args=args)
    return OpenCall(call, refusal=cannot_wait_here)


def cannot_wait_here(tool: str) -> InvalidToolDecl:
    """Make the error of a call that waits, where nobody could go on with it."""
    return cannot_wait("whatever runs it cannot go on with its call later", tool)


def _refuse_unread(_: Any) -> None:
    raise HookError("after_tool", RuntimeError("the run ended before it"))


def _ask_hook(call: OpenCall, hook: Callable[..., Any], name: str, given: tuple[Any, ...]) -> Steps[Any]:
    """Return what a hook answers.

    Raises:
        HookError: if it raises.
    """
    try:
        return (yield FunctionStep(partial(start_hook, call, hook, given), {}))
    except Exception as error:  # noqa: BLE001  (whatever the hook raises fails the call)
        _LOG.exception("the hook %s of %s (%s) failed", name, call.call.name, call.call.id)
        raise HookError(name, error) from None
