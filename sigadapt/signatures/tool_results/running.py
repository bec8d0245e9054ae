"""Run the calls of one turn with the declared functions, as the program and the person who decides say.

`ToolCalls.run` and `arun` share every step but the wait: `_jobs` checks everything before anything runs, and
`_results` makes a result of each outcome. No adapter comes here (nothing is executed): the program does.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent import futures
from contextvars import copy_context
from functools import partial
from threading import TIMEOUT_MAX, Thread
from typing import Any, NamedTuple

from sigadapt.errors import ConfirmationNeeded, InvalidHistory, InvalidOption, UnboundToolCall
from sigadapt.schemas.json_values import Json, cut, equal_json, is_mapping
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.calls.tool_call import function_of_call, heard, in_agreement, mark_approved
from sigadapt.signatures.calls.tool_calls import question_about
from sigadapt.signatures.confirmation import REJECTED, Confirmation, request_id, waits_inside
from sigadapt.signatures.sources.runnable import asking_of, is_async
from sigadapt.signatures.tool_decls import ToolDecls, decls_of
from sigadapt.signatures.tool_results.failures import message_of
from sigadapt.signatures.tool_results.pairing import failed_result, result_of
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult

_LOG = logging.getLogger("sigadapt")


class _Job(NamedTuple):
    """One call of the turn: the function that runs it, or the result that stands already."""

    call: ToolCall | InvalidToolCall
    result: ToolResult | None = None
    function: Callable[[], Any] = bool
    is_async: bool = False


class _LateError(Exception):
    """A call took longer than it may."""


def run(calls: ToolCalls, tools: object, decisions: object, timeout: float | None) -> ToolResults:
    """Run the calls of one turn, one after the other."""
    jobs = _jobs(calls, tools, decisions, timeout)
    is_in_loop = True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        is_in_loop = False
    for job in jobs:
        if is_in_loop and job.is_async:
            raise _needs_arun(job.call)
    outcomes: list[Any] = []
    for job in jobs:
        outcome: Any = job.result
        try:
            if job.result is None and timeout is None:
                outcome = job.function()
            elif job.result is None:
                future = _in_thread(job.function)
                is_done = futures.wait([future], timeout).done
                outcome = future.result() if is_done else _LateError()
            if inspect.isawaitable(outcome) and not is_in_loop:
                outcome = asyncio.run(_awaited(outcome, timeout))
        except Exception as error:  # noqa: BLE001  (whatever a tool raises is its result)
            outcome = error
        if inspect.iscoroutine(outcome):
            outcome.close()
        if inspect.isawaitable(outcome):
            raise _needs_arun(job.call)
        outcomes.append(outcome)
    return _results(calls, jobs, outcomes, timeout)


async def arun(calls: ToolCalls, tools: object, decisions: object, timeout: float | None) -> ToolResults:
    """Run the calls of one turn: what is async side by side, and the rest one after the other in a thread."""
    jobs = _jobs(calls, tools, decisions, timeout)
    outcomes: list[Any] = [job.result for job in jobs]

    async def go(places: list[int]) -> None:
        for place in places:
            job = jobs[place]
            try:
                value = job.function() if job.is_async else asyncio.wrap_future(_in_thread(job.function))
                while inspect.isawaitable(value):
                    value = await _awaited(value, timeout)
                outcomes[place] = value
            except Exception as error:  # noqa: BLE001  (whatever a tool raises is its result)
                outcomes[place] = error

    waiting = [place for place, job in enumerate(jobs) if job.result is None]
    side_by_side = [[place] for place in waiting if jobs[place].is_async]
    in_turn = [place for place in waiting if not jobs[place].is_async]
    tasks = [asyncio.ensure_future(go(places)) for places in [*side_by_side, in_turn]]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        # A task may swallow its cancellation: it is waited for as long as any call is, and no longer.
        await asyncio.wait(tasks, timeout=timeout)
    return _results(calls, jobs, outcomes, timeout)


def _jobs(calls: ToolCalls, tools: object, decisions: object, timeout: Any) -> list[_Job]:
    """Say what to do with each call, or raise the first reason to run nothing."""
    is_number = isinstance(timeout, (int, float)) and timeout is not True
    if timeout is not None and not (is_number and 0 < timeout <= TIMEOUT_MAX):  # the most that a thread waits
        raise InvalidOption("a timeout is a number of seconds above 0", field="timeout")
    by_id: object = {} if decisions is None else decisions
    strange: list[object] = [by_id]
    if is_mapping(by_id):
        strange = [each for each in by_id.values() if not isinstance(each, (bool, str, ToolCall))]
    if strange or not is_mapping(by_id):
        raise InvalidOption(
            f"a {type(strange[0]).__name__} is no decision",
            code="invalid_decision",
            field="decisions",
            fix="Map request.id to True, to False or a reason to reject it, or to the edited ToolCall.",
        )
    decls = decls_of(tools)
    good = [call for call in calls if not isinstance(call, RefusedToolCall)]
    questions = [question_about(call, decls) for call in good]
    ids = [request_id(call.id, call.name, args) for call, (args, _) in zip(good, questions, strict=True)]
    # A default may be another one each time, such as a new id. Then the call that was shown says what it was.
    edits = {each.id: (key, each) for key, each in by_id.items() if isinstance(each, ToolCall)}
    for place, call in enumerate(good):
        key, edit = edits.get(call.id, ("", call))
        is_shown = request_id(edit.id, edit.name, edit.args) == key and edit.name == call.name
        if is_shown and equal_json({**edit.args, **call.args}, edit.args):
            ids[place] = key
    unknown = by_id.keys() - {*ids}
    if unknown:
        raise InvalidHistory(
            f"there is a decision about {cut(repr(min(unknown, key=str)))}, which is no request of this turn",
            code="unknown_decision",
            fix="Ask again, with the requests of calls.awaiting_confirmation(decls).",
        )
    jobs = {
        call.id: _job(call, decls, args, question, by_id.get(request_key))
        for call, (args, question), request_key in zip(good, questions, ids, strict=True)
    }
    return [
        _Job(call, failed_result(call))
        if isinstance(call, (InvalidToolCall, RefusedToolCall))
        else jobs[call.id]
        for call in calls.in_order()
    ]


def _job(call: ToolCall, decls: ToolDecls, args: Json, question: Confirmation | None, decision: Any) -> _Job:
    if isinstance(decision, ToolCall) and (decision.id, decision.name) != (call.id, call.name):
        raise InvalidOption(
            f"the decision about call {cut(repr(call.id))} of {cut(repr(call.name))} is the call "
            f"{cut(repr(decision.id))} of {cut(repr(decision.name))}",
            code="invalid_decision",
            field="decisions",
            fix="Give the same call with other arguments.",
        )
    if decision is False or isinstance(decision, str):
        return _Job(call, ToolResult.failed(call, decision or REJECTED))
    decl = next((decl for decl in decls if decl.name == call.name), None)
    asking = asking_of(decl.func) if decl else None
    if decision is None and decl and question and not asking:
        raise InvalidHistory(
            f"call {cut(repr(call.id))} requires confirmation, and nobody decided: {cut(question.hint)}",
            code="undecided",
            tool=call.name,
            fix="Give decisions by request.id, with the requests of calls.awaiting_confirmation(decls).",
        )
    latest = decision if isinstance(decision, ToolCall) else call
    approval = in_agreement(latest.model_copy(update={"args": args} if decision is True else {}))
    if decision is not None or not asking:  # else the function asks by itself
        mark_approved(approval)
    try:
        arguments = approval.bind(decls)
    except UnboundToolCall as error:
        if latest is decision:
            why = f"the edited call does not fit: {error.reason}"
            raise InvalidOption(why, code="invalid_decision", field="decisions", tool=call.name) from error
        return _Job(call, failed_result(error.call))
    function = heard(approval, function_of_call(approval, decls))
    return _Job(call, None, partial(function, **arguments), decl is not None and is_async(decl.func))


def _needs_arun(call: ToolCall | InvalidToolCall) -> InvalidOption:
    return InvalidOption(
        "its function is async, and an event loop is running, which `run` cannot wait in",
        tool=call.name,
        fix="Use `await calls.arun(decls, decisions)`, or `await error.aresume(...)` of a run that waits.",
    )


def _in_thread(function: Callable[[], Any]) -> "futures.Future[Any]":
    """Start a function in a thread of its own, with the caller's context. No process waits for it."""
    future: futures.Future[Any] = futures.Future()
    future.set_running_or_notify_cancel()  # nobody can cancel it: it would run on
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001  (raised where somebody waits)
            future.set_exception(error)

    Thread(target=work, daemon=True).start()
    return future


async def _awaited(value: Awaitable[Any], timeout: float | None) -> Any:
    task = asyncio.ensure_future(value)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
    finally:  # also if the caller is cancelled
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=timeout)
    if not done:
        raise _LateError
    return asyncio.CancelledError("it cancelled itself") if task.cancelled() else task.result()


def _results(calls: ToolCalls, jobs: list[_Job], outcomes: list[Any], timeout: float | None) -> ToolResults:
    results: list[ToolResult] = []
    for job, outcome in zip(jobs, outcomes, strict=True):
        result = outcome
        if job.result is None and not isinstance(outcome, BaseException):
            try:
                result = result_of(job.call, outcome)
            except Exception as error:  # noqa: BLE001  (the other calls have run, and keep their results)
                _LOG.exception("the result of %s cannot be sent", job.call.name)
                result = error
        if isinstance(result, BaseException):  # of which the model reads no traceback, and no error behind it
            is_inside = isinstance(result, ConfirmationNeeded)
            why = message_of(waits_inside(job.call.name) if is_inside else result)
            if isinstance(result, _LateError):
                runs_on = "It was cancelled." if job.is_async else "It may still be running."
                why = f"TimeoutError: there was no result after {timeout:g} seconds. {runs_on}"
            result = ToolResult.failed(job.call, why)
        results.append(result)
    return ToolResults(rounds=(Round(calls=calls, results=tuple(results)),))
