"""Decide what to do with each call of a turn before any of them runs: run it, answer it, or let it wait."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sigadapt.errors import InvalidHistory, InvalidOption, InvalidToolDecl, UnboundToolCall
from sigadapt.json_values import (
    ARGUMENT_LEVELS,
    Json,
    cut,
    equal_json,
    fault_in,
    is_mapping,
    is_object,
    json_like,
    listed,
    type_of,
)
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.calls.input_requests import has_all, pin_of_call, question_about, request_for
from sigadapt.signatures.calls.tool_call import id_of_request, in_agreement
from sigadapt.signatures.confirmation import REJECTED, Confirmation, with_approval
from sigadapt.signatures.sources.runnable import asking_of, own_limit
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.open_call import NO_PROGRESS, CallProgress, OpenCall
from sigadapt.signatures.tool_functions.tool_function import function_of
from sigadapt.signatures.tool_results.function_calls import is_timeout, least
from sigadapt.signatures.tool_results.pairing import failed_result
from sigadapt.signatures.tool_results.tool_result import ToolResult

_MOST_NAMED = 8

Decision: TypeAlias = bool | str | ToolCall

_Question: TypeAlias = tuple[Json, Confirmation | None]
"""The arguments of a call as who decides sees them, and what to ask; None if it needs no yes."""


class Job(NamedTuple):
    """One call of the turn: the function that runs it, the result that it has, or what it waits for."""

    call: ToolCall | InvalidToolCall
    result: ToolResult | None = None  # known already: of a bad or a rejected call
    requests: tuple[ToolCall, ...] = ()  # what is still to be decided
    function: Callable[..., Any] = dict  # what to run otherwise
    arguments: Mapping[str, Any] = {}
    edit: ToolCall | None = None  # what a person made of the call
    timeout: float | None = None  # in seconds
    sequential: bool = False
    decl: ToolDecl | None = None
    open_call: OpenCall | None = None  # what its context shows
    was_told: bool = False  # whether an earlier part of the run had the result

    @property
    def source(self) -> Callable[[], Any] | None:
        """What gives its result if that comes from elsewhere, so that no function runs."""
        return None if self.open_call is None else self.open_call.source


class Earlier(NamedTuple):
    """What a turn that waited has brought so far, by the ids of its calls."""

    results: Mapping[str, ToolResult] = {}
    progress: Mapping[str, CallProgress] = {}
    requests: Mapping[str, Sequence[ToolCall]] = {}  # those that stay open
    sources: Mapping[str, Any] = {}  # results from elsewhere: a ToolResult, or a function that gives it
    request_ids: Sequence[str] = ()  # of all that was asked
    may_wait: bool = False  # whether calls without a decision go on to wait
    told: Collection[str] = ()  # the calls of `results` that had theirs before the turn waited


_NOTHING_EARLIER = Earlier()


def jobs_of(
    calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: Any, earlier: Earlier = _NOTHING_EARLIER
) -> list[Job]:
    """Say what to do with each call, or raise the first reason to run nothing."""
    check_timeout(timeout)
    by_request = decisions_of(decisions)
    done = {*earlier.results, *earlier.requests, *earlier.sources}
    _refuse_changed_approvals(calls, decls, earlier)
    to_decide = [call for call in calls if not isinstance(call, RefusedToolCall) and call.id not in done]
    questions = {call.id: question_about(call, decls) for call in to_decide}
    request_ids = _request_ids(to_decide, questions, by_request)
    unknown = set(by_request)
    asking = dict.fromkeys(earlier.request_ids)
    for call in to_decide:
        question = questions[call.id]
        progress = earlier.progress.get(call.id)  # of a call that may have begun before its turn waited
        if progress is None or (progress.approved is None and question[1] is not None):
            unknown.discard(request_ids[call.id])
        if question[1] is not None:
            asking[request_ids[call.id]] = None
    if unknown:
        raise unknown_decision(min(unknown, key=str), to_decide, decls, [*asking])
    jobs: list[Job] = []
    for call in calls.in_order():
        if call.id in earlier.results:
            jobs.append(Job(call, earlier.results[call.id], was_told=call.id in earlier.told))
        elif isinstance(call, (InvalidToolCall, RefusedToolCall)):
            jobs.append(Job(call, failed_result(call)))
        elif call.id in earlier.requests:
            jobs.append(_waiting_job(call, earlier.requests[call.id], earlier))
        elif call.id in earlier.sources:
            jobs.append(_job_of_source(call, decls, earlier, timeout))
        else:
            decision = by_request.get(request_ids[call.id])
            job = _job(call, decls, questions[call.id], decision, earlier)
            jobs.append(job._replace(timeout=least(job.timeout, timeout)))
    # Jobs that have their results already are marked, too.
    one_by_one = {decl.name for decl in decls.tools if decl.sequential}
    return [job._replace(sequential=job.call.name in one_by_one) for job in jobs]


def _refuse_changed_approvals(calls: ToolCalls, decls: ToolDecls, earlier: Earlier) -> None:
    """Refuse to run a call that a person agreed to when its tool was another one."""
    for call in calls:
        pin = earlier.progress.get(call.id, NO_PROGRESS).pin
        if pin is None or call.id in earlier.results or call.id in earlier.requests:
            continue
        reason = f"a person agreed to call {cut(repr(call.id))}, and"
        if call.name not in decls:
            raise changed_tool(reason, call.name, "is not declared")
        if pin != pin_of_call(call, decls):
            raise changed_tool(reason, call.name, "is declared otherwise than when they agreed")


def _waiting_job(call: ToolCall, requests: Sequence[ToolCall], earlier: Earlier) -> Job:
    """Return the job of a call that goes on to wait."""
    state = OpenCall(call, earlier.progress.get(call.id, NO_PROGRESS))
    return Job(call, requests=tuple(requests), open_call=state)


def _job_of_source(call: ToolCall, decls: ToolDecls, earlier: Earlier, timeout: float | None) -> Job:
    """Return the job of a call whose result comes from elsewhere: its hooks see it."""
    source = earlier.sources[call.id]
    progress = earlier.progress.get(call.id, NO_PROGRESS)
    agreement = _agreement(call, call.args, None, progress)
    if isinstance(source, ToolResult):
        return Job(call, source, edit=agreement.edit)
    if call.name not in decls:
        raise changed_tool("there is a result of a call, and", call.name, "is not declared")
    decl = decls[call.name]
    decision = None
    if progress.approved is not None:
        decision = agreement.edit or True
    state = OpenCall(agreement.call, progress, decision)
    state.source = source
    function = function_of(decl, source) if decl.hooks else source
    return Job(
        call,
        function=function,
        edit=agreement.edit,
        timeout=least(decl.timeout, timeout),
        decl=decl,
        open_call=state,
    )


def check_timeout(timeout: Any) -> None:
    """Refuse a timeout that no thread can wait for."""
    if timeout is None:
        return
    if not is_timeout(timeout):
        raise InvalidOption("a timeout is a number of seconds above 0", field="timeout")


def refuse_swapped(tools: object, decisions: object, method: str) -> None:
    """Refuse decisions that are given as tools, as in `run(decisions, tools)`."""
    are_decisions = is_mapping(tools) and tools and all(map(is_decision, tools.values()))
    are_tools = decisions is not None and not is_mapping(decisions) and not is_decision(decisions)
    if are_decisions and (are_tools or decisions is None):
        raise InvalidOption(
            "the decisions are given as the tools",
            code="invalid_decision",
            field="tools",
            fix=f"Swap them: {method}(tools, decisions).",
        )


def decisions_of(decisions: object) -> Mapping[str, Decision]:
    """Return decisions by the ids of their requests, or refuse what is none."""
    by_request = mapping_of(decisions)
    for decision in by_request.values():
        check_decision(decision)
    return by_request


def mapping_of(decisions: object) -> Mapping[str, Any]:
    """Return what was decided by the ids of the requests."""
    if decisions is None:
        return {}
    if is_mapping(decisions):
        return decisions
    reason = f"expected a mapping by request.id, such as {{request.id: True}}, got {type_of(decisions)}"
    raise invalid_decision(reason, "Map request.id to what was decided.")


def invalid_decision(
    reason: str, fix: str | None, tool: str | None = None, path: str | None = None
) -> InvalidOption:
    """Make the error of what decides nothing."""
    return InvalidOption(reason, code="invalid_decision", field="decisions", tool=tool, path=path, fix=fix)


def check_decision(decision: object) -> None:
    """Refuse what does not decide about an approval, and an edited call that no JSON can hold."""
    if isinstance(decision, ToolCall):
        _check_edit(decision)
    elif not is_decision(decision):
        raise invalid_decision(
            f"{cut(json_like(decision))} ({type_of(decision)}) does not decide about a call",
            "Map request.id to True, to False or a reason to reject it, or to the edited ToolCall.",
        )


def _check_edit(edit: ToolCall) -> None:
    args: object = edit.args
    fault = fault_in(args, levels=ARGUMENT_LEVELS)
    if is_object(args) and fault is None:
        return
    raise invalid_decision(
        f"the arguments of the edited call are {fault.reason if fault else type_of(args)}, no JSON object",
        "Give the call with other arguments, as JSON.",
        edit.name,
        fault.path if fault else None,
    )


def is_decision(value: object) -> bool:
    """Return whether a value decides about an approval."""
    return isinstance(value, (bool, str, ToolCall))


def _request_ids(
    calls: list[ToolCall],
    questions: Mapping[str, _Question],
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
        if is_of_request and has_all(edit.args, call.args):
            requests[call.id] = key
    return requests


def unknown_decision(
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


def _job(call: ToolCall, decls: ToolDecls, question: _Question, decision: Any, earlier: Earlier) -> Job:
    """Return the job of a call: to run it, to wait for a person, or its result if the person rejected it."""
    if decision is False or isinstance(decision, str):
        return Job(call, ToolResult.failed(call, decision or REJECTED))
    if isinstance(decision, ToolCall):
        refuse_other_call(call, decision)
    if decision is not None and call.name not in decls:
        raise changed_tool("there is a decision about a call, and", call.name, "is not declared")
    progress = earlier.progress.get(call.id, NO_PROGRESS)
    is_agreed = decision is not None or progress.approved is not None
    asks_itself = call.name in decls and asking_of(decls[call.name].func) is not None
    args, confirmation = question
    if not is_agreed and confirmation is not None and call.name in decls and not asks_itself:
        if earlier.may_wait:
            return _waiting_job(call, [request_for(call, args, confirmation, decls)], earlier)
        raise _undecided_error(call, confirmation.hint)
    agreement = _agreement(call, args, decision, progress)
    if is_agreed:
        is_edited = agreement.edit is not None
        pin = pin_of_call(call, decls)
        progress = with_approval(progress, pin, agreement.call.args, is_edited=is_edited)
    verdict = (agreement.edit or True) if is_agreed else None
    return _job_of_agreement(call, decls, agreement, progress, verdict)


class _Agreement(NamedTuple):
    """A call as it runs, and what a person made of it, if that is another call."""

    call: ToolCall
    edit: ToolCall | None = None


def _agreement(
    call: ToolCall, args: Json, decision: "ToolCall | bool | None", earlier: CallProgress
) -> _Agreement:
    if earlier.approved is not None:  # before the call waited for something else
        agreed_call = in_agreement(call.model_copy(update={"args": earlier.approved}))
        return _Agreement(agreed_call, agreed_call if earlier.is_edited else None)
    if isinstance(decision, ToolCall):
        agreed_call = in_agreement(decision.model_copy())
        return _Agreement(agreed_call, None if equal_json(decision.args, args) else decision)
    update = {} if decision is None else {"args": args}
    return _Agreement(in_agreement(call.model_copy(update=update)))


def _job_of_agreement(
    call: ToolCall, decls: ToolDecls, agreement: _Agreement, progress: CallProgress, verdict: Any
) -> Job:
    try:
        arguments = agreement.call.bind(decls)
    except UnboundToolCall as error:
        if agreement.edit is None:
            return Job(call, failed_result(error.call))
        raise invalid_decision(f"the edited call does not fit: {error.reason}", None, call.name) from error
    decl = declared_tool(call, decls)
    asks_itself = verdict is None and asking_of(decl.func) is not None
    function = decl.function if asks_itself else own_function(decl)
    return Job(
        call,
        function=function,
        arguments=arguments,
        edit=agreement.edit,
        timeout=own_limit(function, decl.timeout),
        decl=decl,
        open_call=OpenCall(agreement.call, progress, verdict),
    )


def declared_tool(call: ToolCall, decls: ToolDecls) -> ToolDecl:
    """Return the declaration of the tool that runs a call.

    Raises:
        InvalidToolDecl: `no_function`, for a tool in a provider's own words.
    """
    if call.name in decls:
        return decls[call.name]
    raise InvalidToolDecl(
        "its program runs it, and it was declared without a function",
        code="no_function",
        tool=call.name,
        fix="Run it yourself, with the arguments of call.bind(decls).",
    )


def own_function(decl: ToolDecl) -> Callable[..., Any]:
    """Return what runs a call about which nobody has to be asked any more."""
    asking = asking_of(decl.func)
    return function_of(decl) if asking is None else function_of(decl, asking.behind)


def _undecided_error(call: ToolCall, hint: str) -> InvalidHistory:
    """Make the error of a call without a decision."""
    return InvalidHistory(
        f"call {cut(repr(call.id))} requires confirmation, but has no decision: {cut(hint)}",
        code="undecided",
        tool=call.name,
        fix="Give decisions by request.id, with the requests of calls.awaiting_confirmation(decls).",
    )


def refuse_other_call(call: ToolCall, edit: ToolCall) -> None:
    """Refuse an edited call that is of another call or tool than what was asked about."""
    if (edit.id, edit.name) == (call.id, call.name):
        return
    raise invalid_decision(
        f"the decision about call {cut(repr(call.id))} of {cut(repr(call.name))} is the call "
        f"{cut(repr(edit.id))} of {cut(repr(edit.name))}",
        "Give the same call with other arguments.",
    )
