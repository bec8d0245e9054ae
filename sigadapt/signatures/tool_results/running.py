"""Run the calls of one turn with the declared functions, as the program and the person who decides say.

`ToolCalls.run` and `arun` share every step but the wait: `jobs_of` checks everything before anything runs,
`side_by_side.py` runs it, and `_results` makes a result of each outcome. No adapter comes here (nothing is
executed): the program does.
"""

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import settings
from sigadapt.errors import ConfirmationNeeded, InvalidHistory, InvalidOption, UnboundToolCall
from sigadapt.schemas.json_values import (
    Json,
    cut,
    equal_json,
    is_array,
    is_mapping,
    is_object,
    listed,
    type_of,
)
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.calls.tool_call import (
    function_of_call,
    id_of_request,
    in_agreement,
    mark_approved,
    with_watcher,
)
from sigadapt.signatures.calls.tool_calls import question_about
from sigadapt.signatures.confirmation import REJECTED, Confirmation, waits_inside
from sigadapt.signatures.sources.runnable import asking_of
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.content import json_of
from sigadapt.signatures.tool_results.failures import message_of
from sigadapt.signatures.tool_results.function_calls import (
    LateError,
    Outcome,
    async_entry,
    is_async,
    is_timeout,
    least,
    refuse_blocked,
    sync_entry,
)
from sigadapt.signatures.tool_results.pairing import failed_result, result_of
from sigadapt.signatures.tool_results.result_check import unfit_error
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.side_by_side import TurnCall, arun_turn, run_turn
from sigadapt.signatures.tool_results.tool_output import edit_note
from sigadapt.signatures.tool_results.tool_result import ToolResult

_LOG = logging.getLogger("sigadapt")
_MOST_NAMED = 8

Decision: TypeAlias = bool | str | ToolCall


class Job(NamedTuple):
    """One call of the turn: the function that runs it, or the result that it has already."""

    call: ToolCall | InvalidToolCall
    result: ToolResult | None = None  # known already: of a bad or a rejected call
    function: Callable[..., Any] = dict  # what to run otherwise
    arguments: Mapping[str, Any] = {}
    edit: ToolCall | None = None  # what a person made of the call
    timeout: float | None = None  # in seconds
    sequential: bool = False
    decl: ToolDecl | None = None


def run(
    calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: float | None, *, parallel: bool = True
) -> ToolResults:
    """Run the calls of one turn from sync code."""
    return run_jobs(calls, jobs_of(calls, decls, decisions, timeout), parallel=parallel)


async def arun(
    calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: float | None, *, parallel: bool = True
) -> ToolResults:
    """Run the calls of one turn from async code."""
    return await arun_jobs(calls, jobs_of(calls, decls, decisions, timeout), parallel=parallel)


def run_jobs(calls: ToolCalls, jobs: list[Job], *, parallel: bool = True) -> ToolResults:
    """Run what was checked, from sync code."""
    to_run = [job for job in jobs if job.result is None]
    for job in to_run:
        refuse_blocked(job.function, job.call.name or "")
    turn = [_turn_call(job, sync_entry) for job in to_run]
    with _counting_calls(len(to_run)) as begun:
        outcomes = run_turn(turn, parallel=parallel, on_begin=begun.add)
    return _results(calls, jobs, outcomes)


async def arun_jobs(calls: ToolCalls, jobs: list[Job], *, parallel: bool = True) -> ToolResults:
    """Run what was checked, from async code."""
    to_run = [job for job in jobs if job.result is None]
    turn = [_turn_call(job, async_entry) for job in to_run]
    with _counting_calls(len(to_run)) as begun:
        outcomes = await arun_turn(turn, parallel=parallel, on_begin=begun.add)
    return _results(calls, jobs, outcomes)


@contextmanager
def _counting_calls(count: int) -> Generator[set[int]]:
    """Count calls in the open run before one of them begins, or raise why they may not run.

    Yields:
        A set for the positions of the calls that begin. The others are not counted in the end.
    """
    ledger = current_ledger()
    begun: set[int] = set()
    if ledger is None or not count:
        yield begun
        return
    ledger.check_calls(count)
    ledger.count_calls(count)
    try:
        yield begun
    finally:
        ledger.count_calls(len(begun) - count)


def _turn_call(job: Job, entry_of: Callable[[Any], Callable[..., Any]]) -> TurnCall:
    entry = entry_of(job.function)
    waits = is_async(entry)
    ledger = current_ledger()
    left = None if ledger is None else ledger.seconds_left()
    return TurnCall(
        partial(_in_turn(job, entry), **job.arguments),
        is_async=waits,
        timeout=least(job.timeout, left),
        sequential=job.sequential,
    )


def jobs_of(calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: Any) -> list[Job]:
    """Say what to do with each call, or raise the first reason to run nothing."""
    check_timeout(timeout)
    by_request = decisions_of(decisions)
    good = [call for call in calls if not isinstance(call, RefusedToolCall)]
    questions = {call.id: question_about(call, decls) for call in good}
    requests = _requests(good, questions, by_request)
    unknown = by_request.keys() - requests.values()
    if unknown:
        asking = {requests[call_id]: None for call_id, (_, question) in questions.items() if question}
        raise _unknown_decision(min(unknown, key=str), good, decls, [*asking])
    jobs: list[Job] = []
    for call in calls.in_order():
        if isinstance(call, (InvalidToolCall, RefusedToolCall)):
            jobs.append(Job(call, failed_result(call)))
        else:
            decision = by_request.get(requests[call.id])
            job = _job(call, decls, *questions[call.id], decision)
            jobs.append(job._replace(timeout=least(job.timeout, timeout)))
    return jobs


def check_timeout(timeout: Any) -> None:
    """Refuse a timeout that no thread can wait for."""
    if timeout is None:
        return
    if not is_timeout(timeout):
        raise InvalidOption("a timeout is a number of seconds above 0", field="timeout")


def refuse_swapped(tools: object, decisions: object, method: str) -> None:
    """Refuse decisions that are given as tools, as in `run(decisions, tools)`."""
    are_decisions = is_mapping(tools) and tools and all(map(_is_decision, tools.values()))
    are_tools = decisions is not None and not is_mapping(decisions) and not _is_decision(decisions)
    if are_decisions and (are_tools or decisions is None):
        raise InvalidOption(
            "the decisions are given as the tools",
            code="invalid_decision",
            field="tools",
            fix=f"Swap them: {method}(tools, decisions).",
        )


def decisions_of(decisions: object) -> Mapping[str, Decision]:
    """Return decisions by the ids of their requests, or refuse what is none."""
    if decisions is None:
        return {}
    fix = "Map request.id to True, to False or a reason to reject it, or to the edited ToolCall."
    if not is_mapping(decisions):
        kind = type_of(decisions)
        reason = f"expected a mapping by request.id, such as {{request.id: True}}, got {kind}"
        raise InvalidOption(reason, code="invalid_decision", field="decisions", fix=fix)
    for decision in decisions.values():
        if not _is_decision(decision):
            reason = f"{cut(repr(decision))} ({type_of(decision)}) does not decide about a call"
            raise InvalidOption(reason, code="invalid_decision", field="decisions", fix=fix)
    return decisions


def _is_decision(value: object) -> bool:
    return isinstance(value, (bool, str, ToolCall))


def _requests(
    calls: list[ToolCall],
    questions: Mapping[str, tuple[Json, Confirmation | None]],
    decisions: Mapping[str, Decision],
) -> dict[str, str]:
    """Return the id of each call's request, by the id of the call."""
    # A default may be another one each time, such as a new id. Then the call that was shown says what it was.
    edits = {edit.id: (key, edit) for key, edit in decisions.items() if isinstance(edit, ToolCall)}
    requests: dict[str, str] = {}
    for call in calls:
        args, _ = questions[call.id]
        requests[call.id] = id_of_request(call, args)
        key, edit = edits.get(call.id, ("", call))
        edited_call = edit.model_copy(update={"turn": call.turn})
        is_of_request = edit.name == call.name and id_of_request(edited_call, edit.args) == key
        if is_of_request and _has_all(edit.args, call.args):
            requests[call.id] = key
    return requests


def _has_all(decided: Any, sent: Any) -> bool:
    """Return whether what a person saw is what the model sent, perhaps with defaults."""
    if is_object(decided) and is_object(sent):
        return all(key in decided and _has_all(decided[key], value) for key, value in sent.items())
    if is_array(decided) and is_array(sent):
        return len(decided) == len(sent) and all(map(_has_all, decided, sent))
    return equal_json(decided, sent)


def _unknown_decision(
    key: str, calls: list[ToolCall], decls: ToolDecls, requests: list[str]
) -> InvalidHistory:
    """Make the error of a decision about no request of the turn, with the requests that are undecided."""
    missing = sorted({call.name for call in calls if call.name not in decls})
    if missing:
        return changed_tool(f"there is a decision about {cut(repr(key))}, and", missing[0], "is not declared")
    return InvalidHistory(
        f"there is a decision about {cut(repr(key))}, which is no request of this turn",
        code="unknown_decision",
        fix="Give decisions by request.id, with the requests of calls.awaiting_confirmation(decls). "
        f"The ids of this turn's requests: {listed(map(repr, requests), _MOST_NAMED, ', ') or 'none'}.",
    )


def changed_tool(decision: str, tool: str, change: str) -> InvalidHistory:
    """Make the error of a decision about a tool that is no longer what the person was asked about."""
    return InvalidHistory(
        f"{decision} the tool {cut(repr(tool))} {change}",
        code="changed_tool",
        tool=tool,
        fix="Nothing ran, and the decision stays good: declare the tool as it was, or ask again.",
    )


def _job(call: ToolCall, decls: ToolDecls, args: Json, question: Confirmation | None, decision: Any) -> Job:
    edit = decision if isinstance(decision, ToolCall) else None
    if edit is not None:
        _refuse_other_call(call, edit)
    if decision is False or isinstance(decision, str):
        return Job(call, ToolResult.failed(call, decision or REJECTED))
    if decision is not None and call.name not in decls:
        raise changed_tool("there is a decision about a call, and", call.name, "is not declared")
    asks_itself = any(asking_of(decl.func) for decl in decls if decl.name == call.name)
    if decision is None and question and call.name in decls and not asks_itself:
        raise InvalidHistory(
            f"call {cut(repr(call.id))} requires confirmation, and nobody decided: {cut(question.hint)}",
            code="undecided",
            tool=call.name,
            fix="Give decisions by request.id, with the requests of calls.awaiting_confirmation(decls).",
        )
    update = {"args": args} if decision is True else {}
    approval = in_agreement((edit or call).model_copy(update=update))
    if decision is not None or not asks_itself:
        mark_approved(approval)
    try:
        arguments = approval.bind(decls)
    except UnboundToolCall as error:
        if edit is None:
            return Job(call, failed_result(error.call))
        reason = f"the edited call does not fit: {error.reason}"
        raise InvalidOption(reason, code="invalid_decision", field="decisions", tool=call.name) from error
    if edit is not None and equal_json(edit.args, args):
        edit = None
    function = function_of_call(approval, decls)
    decl = decls[call.name]
    # A function that asks first keeps the limit itself, once a person has answered.
    timeout = None if asking_of(function) else decl.timeout
    return Job(call, None, function, arguments, edit, timeout, decl.sequential, decl)


def _refuse_other_call(call: ToolCall, edit: ToolCall) -> None:
    if (edit.id, edit.name) == (call.id, call.name):
        return
    raise InvalidOption(
        f"the decision about call {cut(repr(call.id))} of {cut(repr(call.name))} is the call "
        f"{cut(repr(edit.id))} of {cut(repr(edit.name))}",
        code="invalid_decision",
        field="decisions",
        fix="Give the same call with other arguments.",
    )


def _in_turn(job: Job, entry: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call's function as the run around it watches it."""
    return with_watcher(job.call, entry) if isinstance(job.call, ToolCall) else entry


def _results(calls: ToolCalls, jobs: list[Job], outcomes: list[Outcome]) -> ToolResults:
    left = iter(outcomes)
    results: list[ToolResult] = []
    for job in jobs:
        result = job.result
        if result is None:
            result = _result(job, next(left))
        if job.edit is not None:
            result = result.model_copy(update={"note": edit_note(job.edit.args)})
        results.append(result)
    return ToolResults(rounds=(Round(calls=calls, results=tuple(results)),))


def _result(job: Job, outcome: Outcome) -> ToolResult:
    """Return what a call gave, or why it failed, without a traceback and the errors that led to it."""
    error = outcome.error
    if error is None:
        try:
            result = result_of(job.call, outcome.value)
        except Exception as unsendable:  # noqa: BLE001  (the other calls have run, and keep their results)
            _LOG.exception("the result of %s cannot be sent", job.call.name)
            error = unsendable
        else:
            value = json_of(result.value) if result.is_content else result.value
            error = None if result.is_error else unfit_error(job.decl, value)
            if error is None:
                return result
    if isinstance(error, ConfirmationNeeded):
        error = waits_inside(job.call.name)
    result = ToolResult.failed(job.call, message_of(error))
    if isinstance(error, LateError):
        emit_result = getattr(settings.send_stream, "emit_result", None)  # of a run that is watched
        if emit_result is not None:
            emit_result(job.call.id, result)
    return result
