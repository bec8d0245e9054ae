"""Run the calls of one turn with the declared functions, as the program and the person who decides say.

`ToolCalls.run` and `arun` share every step but the wait: `jobs_of` checks everything before anything runs,
and `results_of_jobs` makes a result of each outcome. No adapter comes here (nothing is executed): the program
does.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from threading import TIMEOUT_MAX
from typing import Any, NamedTuple, TypeAlias

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
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.failures import message_of
from sigadapt.signatures.tool_results.function_calls import (
    LateError,
    Outcome,
    arun_function,
    async_entry,
    is_async,
    refuse_blocked,
    run_function,
    sync_entry,
)
from sigadapt.signatures.tool_results.pairing import failed_result, result_of
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_output import edit_note
from sigadapt.signatures.tool_results.tool_result import ToolResult

_LOG = logging.getLogger("sigadapt")
_MOST_NAMED = 8

Decision: TypeAlias = bool | str | ToolCall


class Job(NamedTuple):
    """One call of the turn: the function that runs it, or the result that it has already."""

    call: ToolCall | InvalidToolCall
    result: ToolResult | None = None
    function: Callable[..., Any] = dict
    arguments: Mapping[str, Any] = {}
    edit: ToolCall | None = None  # what a person made of the call


def run(calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: float | None) -> ToolResults:
    """Run the calls of one turn, one after the other."""
    return run_jobs(calls, jobs_of(calls, decls, decisions, timeout), timeout)


async def arun(calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: float | None) -> ToolResults:
    """Run the calls of one turn: what is async side by side, and the rest one after the other in a thread."""
    return await arun_jobs(calls, jobs_of(calls, decls, decisions, timeout), timeout)


def run_jobs(calls: ToolCalls, jobs: list[Job], timeout: float | None) -> ToolResults:
    """Run what was checked, one after the other."""
    for job in jobs:
        refuse_blocked(job.function, job.call.name or "")
    outcomes: list[Outcome] = []
    for job in jobs:
        try:
            outcome = Outcome(job.result)
            if job.result is None:
                entry = _in_turn(job, sync_entry(job.function))
                outcome = Outcome(run_function(entry, job.arguments, timeout))
        except Exception as error:  # noqa: BLE001  (whatever a tool raises is its result)
            outcome = Outcome(error=error)
        outcomes.append(outcome)
    return _results(calls, jobs, outcomes, timeout)


async def arun_jobs(calls: ToolCalls, jobs: list[Job], timeout: float | None) -> ToolResults:
    """Run what was checked: async functions side by side, and the others one after the other in a thread."""
    outcomes = [Outcome(job.result) for job in jobs]

    async def go(places: list[int]) -> None:
        for place in places:
            job = jobs[place]
            try:
                entry = _in_turn(job, async_entry(job.function))
                outcomes[place] = Outcome(await arun_function(entry, job.arguments, timeout))
            except Exception as error:  # noqa: BLE001  (whatever a tool raises is its result)
                outcomes[place] = Outcome(error=error)

    side_by_side: list[list[int]] = []
    in_turn: list[int] = []
    for place, job in enumerate(jobs):
        if job.result is not None:
            continue
        if is_async(async_entry(job.function)):
            side_by_side.append([place])
        else:
            in_turn.append(place)
    tasks = [asyncio.ensure_future(go(places)) for places in [*side_by_side, in_turn]]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        # A task may swallow its cancellation: it is waited for as long as any call is, and no longer.
        await asyncio.wait(tasks, timeout=timeout)
    return _results(calls, jobs, outcomes, timeout)


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
            jobs.append(_job(call, decls, *questions[call.id], decision))
    return jobs


def check_timeout(timeout: Any) -> None:
    """Refuse a timeout that no thread can wait for."""
    if timeout is None:
        return
    is_number = isinstance(timeout, (int, float)) and timeout is not True
    if not (is_number and 0 < timeout <= TIMEOUT_MAX):
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
        shown = edit.model_copy(update={"turn": call.turn})
        is_shown = edit.name == call.name and id_of_request(shown, edit.args) == key
        if is_shown and _has_all(edit.args, call.args):
            requests[call.id] = key
    return requests


def _has_all(shown: Any, value: Any) -> bool:
    """Return whether what was shown is what the model sent, perhaps with defaults."""
    if is_object(shown) and is_object(value):
        return all(key in shown and _has_all(shown[key], part) for key, part in value.items())
    if is_array(shown) and is_array(value):
        return len(shown) == len(value) and all(map(_has_all, shown, value))
    return equal_json(shown, value)


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


def changed_tool(what: str, tool: str, how: str) -> InvalidHistory:
    """Make the error of a decision about a tool that is no longer what the person was asked about."""
    return InvalidHistory(
        f"{what} the tool {cut(repr(tool))} {how}",
        code="changed_tool",
        tool=tool,
        fix="Nothing ran, and the decision stays good: declare the tool as it was, or ask again.",
    )


def _job(call: ToolCall, decls: ToolDecls, args: Json, question: Confirmation | None, decision: Any) -> Job:
    is_edit = isinstance(decision, ToolCall)
    if is_edit and (decision.id, decision.name) != (call.id, call.name):
        raise InvalidOption(
            f"the decision about call {cut(repr(call.id))} of {cut(repr(call.name))} is the call "
            f"{cut(repr(decision.id))} of {cut(repr(decision.name))}",
            code="invalid_decision",
            field="decisions",
            fix="Give the same call with other arguments.",
        )
    if decision is False or isinstance(decision, str):
        return Job(call, ToolResult.failed(call, decision or REJECTED))
    if decision is not None and call.name not in decls:
        raise changed_tool("there is a decision about a call, and", call.name, "is not declared")
    decl = next((decl for decl in decls if decl.name == call.name), None)
    asking = asking_of(decl.func) if decl else None
    if decision is None and decl and question and not asking:
        raise InvalidHistory(
            f"call {cut(repr(call.id))} requires confirmation, and nobody decided: {cut(question.hint)}",
            code="undecided",
            tool=call.name,
            fix="Give decisions by request.id, with the requests of calls.awaiting_confirmation(decls).",
        )
    latest = decision if is_edit else call
    approval = in_agreement(latest.model_copy(update={"args": args} if decision is True else {}))
    if decision is not None or not asking:  # else the function asks by itself
        mark_approved(approval)
    try:
        arguments = approval.bind(decls)
    except UnboundToolCall as error:
        if is_edit:
            why = f"the edited call does not fit: {error.reason}"
            raise InvalidOption(why, code="invalid_decision", field="decisions", tool=call.name) from error
        return Job(call, failed_result(error.call))
    function = function_of_call(approval, decls)
    edit = latest if is_edit and not equal_json(latest.args, args) else None
    return Job(call, None, function, arguments, edit)


def _in_turn(job: Job, entry: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call's function as the run around it watches it."""
    return with_watcher(job.call, entry) if isinstance(job.call, ToolCall) else entry


def _results(
    calls: ToolCalls, jobs: list[Job], outcomes: list[Outcome], timeout: float | None
) -> ToolResults:
    results: list[ToolResult] = []
    for job, outcome in zip(jobs, outcomes, strict=True):
        result = job.result or _result(job, outcome, timeout)
        if job.edit is not None:
            result = result.model_copy(update={"note": edit_note(job.edit.args)})
        results.append(result)
    return ToolResults(rounds=(Round(calls=calls, results=tuple(results)),))


def _result(job: Job, outcome: Outcome, timeout: float | None) -> ToolResult:
    """Return what a call gave, or why it failed, without a traceback and the errors behind it."""
    error = outcome.error
    if error is None:
        try:
            return result_of(job.call, outcome.value)
        except Exception as unsendable:  # noqa: BLE001  (the other calls have run, and keep their results)
            _LOG.exception("the result of %s cannot be sent", job.call.name)
            error = unsendable
    if isinstance(error, ConfirmationNeeded):
        error = waits_inside(job.call.name)
    why = message_of(error)
    if isinstance(error, LateError):
        runs_on = "It was cancelled." if error.is_cancelled else "It may still be running."
        why = f"TimeoutError: there was no result after {timeout:g} seconds. {runs_on}"
    result = ToolResult.failed(job.call, why)
    emit_result = getattr(settings.send_stream, "emit_result", None)  # of a run that is watched
    if isinstance(error, LateError) and emit_result is not None:
        emit_result(job.call.id, result)
    return result
