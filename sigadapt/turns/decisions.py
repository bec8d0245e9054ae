"""Read what was decided about a run that waits: approvals, answers and results, each checked by its request.

To decline needs no tool: a rejected call, an unanswered question and a result that does not come end the call
by the request that was asked. Every other decision runs what the person was shown, so the tool must be
declared as it was then. A tool that is as it was may catch the `Declined` of its own question.

The requests of a run are saved beside its calls, because a person may see them long before the run goes on.
Others may write to a store: `check_shown` checks that a request shows the call that would run.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sigadapt.errors import Declined, InputNeeded, InvalidHistory
from sigadapt.json_values import Json, cut, equal_json, is_object, listed, type_of
from sigadapt.schemas.checking import check_json
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.calls.input_requests import has_all, pin_of_call
from sigadapt.signatures.calls.tool_call import id_of_request
from sigadapt.signatures.confirmation import REJECTED, pin_of, with_approval
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.open_call import NO_PROGRESS, CallProgress, QuestionReply, task_poll
from sigadapt.signatures.tool_results.plain_values import check_value_schema, flaw_of_value
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.turns.jobs import (
    Decision,
    Earlier,
    changed_tool,
    check_decision,
    invalid_decision,
    is_decision,
    mapping_of,
    refuse_other_call,
    unknown_decision,
)

_LOG = logging.getLogger("sigadapt")
_MOST_NAMED = 8


@dataclass
class TurnDecisions:
    """What was decided, by the ids of the calls."""

    approvals: dict[str, Decision] = field(default_factory=dict[str, Decision])  # by request.id
    results: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    told: frozenset[str] = frozenset()  # the calls that had their results before the turn waited
    progress: dict[str, CallProgress] = field(default_factory=dict[str, CallProgress])
    open_requests: dict[str, list[ToolCall]] = field(default_factory=dict[str, list[ToolCall]])
    sources: dict[str, Any] = field(default_factory=dict[str, Any])  # of results that come from elsewhere
    request_ids: list[str] = field(default_factory=list[str])
    open_approvals: list[ToolCall] = field(default_factory=list[ToolCall])  # requests that need a decision

    def earlier(self, *, partial: bool) -> Earlier:
        """Return what the turn has brought so far, for the jobs of its calls."""
        return Earlier(
            self.results,
            self.progress,
            self.open_requests,
            self.sources,
            self.request_ids,
            may_wait=partial,
            told=self.told,
        )

    def update(self, call_id: str, **changes: Any) -> None:
        """Change what is known of a call that waits."""
        progress = self.progress.get(call_id, NO_PROGRESS)
        self.progress[call_id] = progress.model_copy(update=changes)


def read_decisions(
    error: InputNeeded, decls: ToolDecls, decisions: object, *, partial: bool
) -> TurnDecisions:
    """Return what was decided about a run that waits.

    Raises:
        InvalidHistory: `undecided`, `unknown_decision`, `changed_tool`.
        InvalidOption: `invalid_decision`.
    """
    by_request = mapping_of(decisions)
    results = {result.call_id: result for result in error.results}
    turn_decisions = TurnDecisions(results=results, told=frozenset(results), progress=dict(error.progress))
    undecided_requests: list[ToolCall] = []
    open_approvals: list[ToolCall] = []
    for request in error.requests:
        if request.call.id in turn_decisions.told:  # an interrupted `resume` ran it
            continue
        if request.id in by_request:
            _take(turn_decisions, request, by_request[request.id], decls)
        elif _is_plain_approval(request):
            open_approvals.append(request)
        elif not _polls(turn_decisions, request, decls):
            undecided_requests.append(request)
    if undecided_requests and not partial:
        raise missing_decisions(undecided_requests)
    if partial:
        undecided_requests += open_approvals
    else:
        turn_decisions.open_approvals = open_approvals
    for request in undecided_requests:
        turn_decisions.open_requests.setdefault(request.call.id, []).append(request)
    turn_decisions.request_ids = [request.id for request in error.requests]
    for key in by_request.keys() - turn_decisions.request_ids:
        if not is_decision(by_request[key]):
            raise unknown_decision(key, [*error.calls], decls, turn_decisions.request_ids)
        turn_decisions.approvals[key] = by_request[key]
    return turn_decisions


def _is_plain_approval(request: ToolCall) -> bool:
    """Return whether a request follows from the call and the tool alone, without the tool being run."""
    return request.kind == "approval" and not request.args.get("changed")


def _take(turn_decisions: TurnDecisions, request: ToolCall, decision: Any, decls: ToolDecls) -> None:
    """Take the decision about one request."""
    call = request.call
    rejection = rejection_in(request, decision)
    if rejection is not None:
        turn_decisions.results[call.id] = ToolResult.failed(call, rejection)
        return
    if request.kind == "approval":
        check_decision(decision)
    elif is_no(request, decision) and not _has_same_tool(request, decls):
        turn_decisions.results[call.id] = ToolResult.failed(call, decision.reason)
        return
    _refuse_changed(request, decls)
    if _is_plain_approval(request):
        turn_decisions.approvals[request.id] = decision
    elif request.kind == "approval":
        _take_changed_call(turn_decisions, request, decision, decls)
    elif request.kind == "answer":
        _take_answer(turn_decisions, request, decision)
    else:
        turn_decisions.sources[call.id] = _source_of(call, decision)


def rejection_in(request: ToolCall, decision: object) -> str | None:
    """Return why a person rejected a call; None for any other decision."""
    is_no = decision is False or isinstance(decision, str)
    return str(decision or REJECTED) if is_no and request.kind == "approval" else None


def is_no(request: ToolCall, decision: object) -> bool:
    """Return whether a decision ends a call: it is rejected, or gets no answer or no result."""
    if request.kind == "approval":
        return rejection_in(request, decision) is not None
    return isinstance(decision, Declined)


def _take_changed_call(
    turn_decisions: TurnDecisions, request: ToolCall, decision: "bool | ToolCall", decls: ToolDecls
) -> None:
    """Take the decision about arguments that a hook changed."""
    call = request.call
    progress = turn_decisions.progress.get(call.id, NO_PROGRESS)
    if not isinstance(decision, ToolCall):
        turn_decisions.update(call.id, changes=(*progress.changes, call.args))
        return
    refuse_other_call(call, decision)
    flaw = decls.flaw_of(call.name, decision.args)
    if flaw is not None:
        raise invalid_decision(f"the edited call does not fit: {flaw.message}", None, call.name)
    turn_decisions.update(call.id, changes=())
    turn_decisions.progress[call.id] = with_approval(
        turn_decisions.progress[call.id], pin_of(decls[call.name]), decision.args, is_edited=True
    )


def _take_answer(turn_decisions: TurnDecisions, request: ToolCall, decision: Any) -> None:
    """Take the answer to a question of a tool or of an MCP server."""
    call = request.call
    question = str(request.args.get("question") or "")
    position = request.args.get("position", 0)
    if isinstance(decision, Declined):
        reply = QuestionReply(question=question, position=position, declined=decision.reason)
    else:
        fix = f"Answer {request.hint!r} with a value that fits request.schema, or with sigadapt.Declined()."
        try:
            check_json(decision, tool=call.name)
        except Exception as error:
            raise invalid_decision(f"an answer is no JSON value: {error}", fix, call.name) from error
        flaw = flaw_of_value(decision, request.schema or {}, call.name)
        if flaw is not None:
            raise invalid_decision(
                f"the answer {cut(repr(decision))} does not fit: {flaw.message}", fix, call.name
            )
        reply = QuestionReply(question=question, position=position, value=decision)
    progress = turn_decisions.progress.get(call.id, NO_PROGRESS)
    member = request.args.get("member")
    if member is None:
        turn_decisions.update(call.id, replies=(*progress.replies, reply))
    else:
        replies = {**(progress.server_replies or {}), str(member): reply}
        turn_decisions.update(call.id, server_replies=replies)


def _source_of(call: ToolCall, decision: Any) -> Any:
    """Return the result of a call as a ToolResult, or what gives its value."""
    if isinstance(decision, Declined):
        return ToolResult.failed(call, decision.reason)
    if not isinstance(decision, ToolResult):
        return lambda: decision
    if (decision.call_id, decision.name) == (call.id, call.name):
        return decision if decision.is_error else lambda: decision
    raise invalid_decision(
        f"the result of call {cut(repr(call.id))} of {cut(repr(call.name))} is of the call "
        f"{cut(repr(decision.call_id))} of {cut(repr(decision.name))}",
        "Give the value of this call, or a ToolResult with its id and name.",
        call.name,
    )


def _polls(turn_decisions: TurnDecisions, request: ToolCall, decls: ToolDecls) -> bool:
    """Ask the MCP server for the result of a task, once, if this request is for one."""
    call = request.call
    if request.kind != "result" or call.name not in decls:
        return False
    poll = task_poll(decls[call.name].func, call.name, request.pending)
    if poll is None:
        return False
    _refuse_changed(request, decls)
    turn_decisions.sources[call.id] = poll
    return True


def _refuse_changed(request: ToolCall, decls: ToolDecls) -> None:
    """Refuse a decision about a tool that is missing or declared otherwise than when the person was asked."""
    if _has_same_tool(request, decls):
        return
    name = request.call.name
    change = "is declared otherwise than when it was asked about" if name in decls else "is not declared"
    raise changed_tool(f"there is a decision about {request.id!r}, and", name, change)


def _has_same_tool(request: ToolCall, decls: ToolDecls) -> bool:
    """Return whether the tool is what the person was asked about; one of a provider's own has no pin."""
    pin = request.args.get("pin")
    return pin is None or pin == pin_of_call(request.call, decls)


def missing_decisions(requests: list[ToolCall]) -> InvalidHistory:
    """Make the error of requests that have no decision."""
    names = listed((f"{request.id} ({cut(request.hint)})" for request in requests), _MOST_NAMED, ", ")
    return InvalidHistory(
        f"there is no decision about {names}",
        code="undecided",
        tool=requests[0].call.name,
        fix="Give decisions by request.id, or leave them open: resume(tools, decisions, partial=True).",
    )


def check_shown(
    request: ToolCall, calls: Mapping[str, ToolCall], progress: Mapping[str, CallProgress]
) -> None:
    """Refuse a request that shows another call than the one that would run.

    Args:
        request: the request.
        calls: the calls of its turn, by id.
        progress: what was decided about each, by its id.

    Raises:
        ValueError: for any other call, and for a question with a schema that no answer can be checked by.
        InvalidHistory: `no_confirmation`, for a call that is no request.
    """
    shown = request.call
    call = calls.get(shown.id)
    if call is None or call.name != shown.name:
        raise ValueError(f"the request {cut(repr(request.id))} shows a call that is none of the turn's")
    approved = progress.get(call.id, NO_PROGRESS).approved
    args = call.args if approved is None else approved
    if not _shows(request, args):
        raise ValueError(f"the request {cut(repr(request.id))} shows other arguments than its call has")
    if request.kind != "answer":
        return
    schema: object = request.args.get("schema")
    if not is_object(schema):
        raise ValueError(f"the schema of an answer is {type_of(schema)}")
    check_value_schema(schema, shown.name)


def _shows(request: ToolCall, args: Json) -> bool:
    """Return whether a request shows the call that runs with these arguments."""
    is_changed = request.args.get("changed") is True  # by a hook, which makes the same change again
    if equal_json(request.call.args, args) or (is_changed and request.kind != "approval"):
        return True
    if request.kind != "approval":
        return False
    # It shows defaults, too, or what a hook made of the call. Its id is a hash of what was shown at first.
    is_as_asked = request.id == id_of_request(request.call, request.call.args)
    return is_as_asked and (is_changed or has_all(request.call.args, args))
