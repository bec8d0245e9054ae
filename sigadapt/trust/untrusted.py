"""Read a conversation that came from a browser: whoever sent it may have written any of it.

`sign` gives a server marks for what it made, which a client keeps and sends back; without the secret nobody
can make one. Trust belongs to the place that a value came from, so the endpoint checks it with a function.
An adapter serves histories of both kinds.
"""

from collections.abc import Collection, Mapping
from secrets import token_bytes
from typing import Any

import dspy
import jiter
from dspy.signatures.signature import Signature

from sigadapt.adapters.plan import plan_of
from sigadapt.dspy_boundary.contract import TYPE_MARKER
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.json_values import compact, cut, equal_json
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.calls import RefusedToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_results.results import Round, ToolResults, result_text
from sigadapt.signatures.transcript import collection_in, read, rounds_in
from sigadapt.trust.signing import Secrets, as_a_browser_reads, name_of, says_args, unsigned_parts

_FIX = "Sign what the server made with sigadapt.trust.sign, and let the client send the signatures back."


def untrusted_history(
    history: str | bytes | Mapping[str, Any],
    signature: type[Signature],
    *,
    secret: Secrets | None = None,
    signatures: Collection[str] = (),
    context: str | None = None,
    events: int = 200,
    characters: int = 200_000,
) -> dspy.History:
    """Return a history that a client sent, with what a client may say in it and nothing else.

    Args:
        history: what `History.model_dump_json()` or `model_dump()` wrote, as the client sent it.
        signature: the signature of the conversation; of an agent's, `agent.react.signature` with its outputs.
        secret: the secret that calls and results were signed with, or a list of them. Without one, a history
            with calls or results is refused, because it's unknown whether they were made.
        signatures: what `sign` gave for the calls and results in the history.
        context: as for `sign`.
        events: the most events.
        characters: the most characters of the history as JSON.

    Returns:
        A new History. It leaves out the provider state, shown reasoning and approvals (`altered`) of its
        turns, and results in the calls of a round, which has its own. A number in arguments that a browser
        rounded is as the model wrote it. What the model is said to have answered is the client's word.

    Raises:
        InvalidHistory: `untrusted_history`, for a call or a result that is not signed, for a history over a
            limit, for a key that is no field, and for text that DSPy would take for an image or a file;
            `unreadable_history`, for what is not a history.
        InvalidOption: for what is no signature.

    Example:
        >>> saved = '{"messages": [{"question": "Hi?", "answer": "Hello.", "role": "admin"}]}'
        >>> untrusted_history(saved, dspy.Signature("question -> answer"))
        Traceback (most recent call last):
        sigadapt.errors.InvalidHistory: event 0 has 'role', which is not a field of the conversation.
    """
    if not hasattr(signature, "output_fields"):
        fix = "Give a class, such as dspy.Signature('question -> answer')."
        raise InvalidOption(f"{cut(repr(signature))} is no signature", field="signature", fix=fix)
    rows = _rows(history, characters)
    if len(rows) > events:
        raise _refusal(f"the history has {len(rows):,} events, and at most {events:,} are taken")
    plan = plan_of(signature)
    inputs = {plan.tools, plan.history_fields.history} if plan else set[str | None]()
    _check_fields(rows, {*signature.fields} - inputs)
    results = plan and plan.history_fields.results
    messages = [{key: _without_state(key, value, results) for key, value in event.items()} for event in rows]
    clean = dspy.History(messages=messages)
    _check_signatures(clean, signatures, secret, context)
    return clean


def _rows(history: str | bytes | Mapping[str, Any], characters: int) -> list[dict[str, Any]]:
    """Return the events of a history that a client sent, if it is not too long."""
    text = history if isinstance(history, (str, bytes)) else result_text(history)
    if len(text) > characters:
        raise _refusal(f"the history has {len(text):,} characters, and at most {characters:,} are taken")
    try:
        content = text.encode() if isinstance(text, str) else text
        value = jiter.from_json(content, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise InvalidHistory(f"it is not JSON: {cut(str(error))}", code="unreadable_history") from error
    return read(dspy.History, value, None).messages


def _check_fields(rows: list[dict[str, Any]], fields: set[str]) -> None:
    """Refuse a key that is no field of the conversation, and text that DSPy would take for media."""
    for number, event in enumerate(rows):
        for key, value in event.items():
            if key not in fields:
                reason = f"event {number} has {cut(repr(key))}, which is not a field of the conversation"
                raise _refusal(reason)
            if TYPE_MARKER in compact(value):
                raise _refusal(f"{key!r} of event {number} has the marks of an image or a file")


def _check_signatures(
    history: dspy.History, signatures: Collection[str], secret: Secrets | None, context: str | None
) -> None:
    """Refuse calls and results that this server did not sign."""
    if secret is None:  # nothing is signed
        signatures = ()
        secret = token_bytes()
    try:
        subject = next(unsigned_parts(history, signatures, secret, context), None)
    except InvalidHistory as error:
        if error.code != "not_signable":
            raise
        raise _refusal(error.reason) from error
    if subject is not None:
        raise _refusal(f"it has calls or results that this server did not sign: {name_of(subject)}", fix=_FIX)


def _without_state(key: str, value: Any, results: str | None) -> Any:
    """Return the value of an event's field, and calls and results without what a client must not say."""
    calls = collection_in({key: value})
    if calls is not None:
        return _plain_calls(calls)
    rounds: list[Round] = []
    for turn in rounds_in({key: value}, results):
        # A round holds its results itself. Calls may bring them too, for a reader that looks there.
        plain_calls = _plain_calls(turn.calls, keeps_results=False)
        rounds.append(Round(calls=plain_calls, results=turn.results))
    return ToolResults(rounds=tuple(rounds)) if rounds else value


def _plain_calls(original: ToolCalls, *, keeps_results: bool = True) -> ToolCalls:
    """Return calls without state, and with arguments as their text has them where a browser rounded."""
    turn = Turn(text=original.text)
    calls = [_plain_call(call.model_copy(update={"turn": turn})) for call in original]
    results = original.tool_call_results if keeps_results else None
    fields = {"tool_calls": calls, "turn": turn, "invalid": original.invalid, "tool_call_results": results}
    return ToolCalls.model_validate(fields)


def _plain_call(call: ToolCall) -> ToolCall:
    if isinstance(call, RefusedToolCall):  # whose arguments are no object
        return call
    args = parse_arguments(call.arguments)
    if isinstance(args, dict) and equal_json(as_a_browser_reads(args), as_a_browser_reads(call.args)):
        call = call.model_copy(update={"args": args})
    if says_args(call):  # else what was altered is signed
        call = call.model_copy(update={"altered": ()})
    return call


def _refusal(reason: str, fix: str | None = None) -> InvalidHistory:
    return InvalidHistory(reason, code="untrusted_history", fix=fix)
