"""Read a conversation that came from a browser: whoever sent it may have written any of it.

`sign` gives a server marks for what it made, which a client keeps and sends back; without the secret nobody
can make one. Trust belongs to the place that a value came from, so the endpoint checks it with a function.
An adapter serves histories of both kinds.
"""

import hashlib
import hmac
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import dspy
import orjson
from dspy.signatures.signature import Signature

from sigadapt.adapters.plan import plan_of
from sigadapt.adapters.request.messages import calls_in, collection_in, read, rounds_in
from sigadapt.dspy_boundary.internals import TYPE_MARKER
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import compact, cut, equal_json
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_results.results import Round, ToolResults, result_text
from sigadapt.signatures.tool_results.tool_result import ToolResult

_SHORTEST_SECRET = 16
_FIX = "Sign what the server made with sigadapt.sign, and let the client send the signatures back."


def sign(value: ToolCall | ToolCalls | ToolResults | dspy.History, secret: str | bytes) -> list[str]:
    """Return a signature for each call and result in a value, for a client to send back with it.

    Args:
        value: calls, results, a history, or one request for confirmation.
        secret: what only the server knows, at least 16 bytes. Put the user's or conversation's id into it:
            signatures are then of no use in another's.

    Returns:
        HMAC-SHA256 in hex, of a call's id, name and arguments, or of a result's call id, name and value.

    Raises:
        InvalidOption: for a short secret.

    Example:
        >>> calls = ToolCalls([{"id": "call_1", "name": "pay", "args": {"eur": 5}}])
        >>> [mark] = sign(calls, "a secret of the server")
        >>> dearer = ToolCalls([{"id": "call_1", "name": "pay", "args": {"eur": 500}}])
        >>> [is_signed(each, [mark], "a secret of the server") for each in (calls, dearer)]
        [True, False]
    """
    key = secret.encode() if isinstance(secret, str) else secret
    if len(key) < _SHORTEST_SECRET:
        raise InvalidOption(f"a secret has at least {_SHORTEST_SECRET} bytes", field="secret")
    texts = [json.dumps(part, sort_keys=True, ensure_ascii=False) for part in _parts_of(value)]
    return [hmac.new(key, text.encode(), hashlib.sha256).hexdigest() for text in texts]


def is_signed(
    value: ToolCall | ToolCalls | ToolResults | dspy.History,
    signatures: Collection[str],
    secret: str | bytes,
) -> bool:
    """Return whether every call and result in a value was signed with the secret.

    Check a request for confirmation with it before `approved()`, if the request came from a client.

    Args:
        value: as for `sign`.
        signatures: what the client sent; compared in constant time.
        secret: as for `sign`.
    """
    given = [str(each).encode(errors="replace") for each in signatures]
    return all(
        any(hmac.compare_digest(made.encode(), each) for each in given) for made in sign(value, secret)
    )


def untrusted_history(
    history: str | bytes | Mapping[str, Any],
    signature: type[Signature],
    *,
    secret: str | bytes | None = None,
    signatures: Collection[str] = (),
    events: int = 200,
    characters: int = 200_000,
) -> dspy.History:
    """Return a history that a client sent, with what a client may say in it and nothing else.

    Args:
        history: what `History.model_dump_json()` or `model_dump()` wrote, as the client sent it.
        signature: the signature of the conversation; of an agent's, `agent.react.signature` with its outputs.
        secret: the secret that calls and results were signed with. Without one, a history with calls or
            results is refused, because nobody knows whether they were made.
        signatures: what `sign` gave for the calls and results in the history.
        events: the most events.
        characters: the most characters of the history as JSON.

    Returns:
        A new History. Provider state, shown reasoning and approvals (`altered`) of its turns are left out.
        What the model is said to have answered is the client's word.

    Raises:
        InvalidHistory: `untrusted_history`, for a call or a result that is not signed, for a history over a
            limit, for a key that is no field, and for text that DSPy would take for an image or a file;
            `unreadable_history`, for what is not a history.

    Example:
        >>> saved = '{"messages": [{"question": "Hi?", "answer": "Hello.", "role": "admin"}]}'
        >>> untrusted_history(saved, dspy.Signature("question -> answer"))
        Traceback (most recent call last):
        sigadapt.errors.InvalidHistory: event 0 has 'role', which is not a field of the conversation.
    """
    text = history if isinstance(history, (str, bytes)) else compact(history)
    if len(text) > characters:
        raise _refusal(f"the history has {len(text):,} characters, and at most {characters:,} are taken")
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise InvalidHistory(f"it is not JSON: {cut(str(error))}", code="unreadable_history") from error
    given = read(dspy.History, value, None).messages
    if len(given) > events:
        raise _refusal(f"the history has {len(given):,} events, and at most {events:,} are taken")
    plan = plan_of(signature)
    inputs = {plan.tools, plan.history_fields.history} if plan else set[str | None]()
    for number, event in enumerate(given):
        for key, part in event.items():
            if key not in signature.fields or key in inputs:
                reason = f"event {number} has {cut(repr(key))}, which is not a field of the conversation"
                raise _refusal(reason)
            if TYPE_MARKER in compact(part):
                raise _refusal(f"{key!r} of event {number} has the marks of an image or a file")
    results = plan and plan.history_fields.results
    checked = [{key: _without_state(key, part, results) for key, part in event.items()} for event in given]
    clean = dspy.History(messages=checked)
    if any(True for _ in _parts_of(clean)) and (secret is None or not is_signed(clean, signatures, secret)):
        raise _refusal("it has calls or results that this server did not sign", fix=_FIX)
    return clean


def _parts_of(value: object) -> Iterator[list[Any]]:
    """Yield what is signed of each call and result in a value."""
    inside: list[Any] = []
    if isinstance(value, ToolCalls):
        results = value.tool_call_results
        inside = list(value.in_order())
        inside += read(dspy.ToolCallResults, results, None).tool_call_results if results else ()
    elif isinstance(value, ToolResults):
        inside = [part for each in value.rounds for part in (each.calls, *each.results)]
    elif isinstance(value, dspy.History):
        fields = [{key: part} for event in value.messages for key, part in event.items()]
        inside = [calls_in(field) for field in fields]
        inside += [ToolResults(rounds=tuple(rounds_in(field, None))) for field in fields]
    elif isinstance(value, (ToolResult, dspy.ToolCallResults.ToolCallResult)):
        told = value.value if isinstance(value.value, str) else orjson.loads(result_text(value.value))
        yield ["result", value.call_id, value.name, value.is_error, getattr(value, "is_mcp", False), told]
    elif isinstance(value, (InvalidToolCall, RefusedToolCall)):  # the model reads why as its result
        yield ["bad call", value.id, value.name, value.arguments, value.code, value.message, value.path]
    elif isinstance(value, ToolCall):
        yield ["call", value.id, value.name, value.args]
    for each in inside:
        yield from _parts_of(each)


def _without_state(key: str, value: Any, results: str | None) -> Any:
    """Return the value of an event's field, and calls and results without what a client must not say."""
    calls = collection_in({key: value})
    if calls is not None:
        return _plain_calls(calls)
    rounds = rounds_in({key: value}, results)
    plain = (Round(calls=_plain_calls(each.calls), results=each.results) for each in rounds)
    return ToolResults(rounds=tuple(plain)) if rounds else value


def _plain_calls(given: ToolCalls) -> ToolCalls:
    turn = Turn(text=given.text)
    for call in given:
        if isinstance(call, RefusedToolCall):  # whose arguments are no object
            continue
        sent = parse_arguments(call.arguments)
        if not call.is_custom and not (isinstance(sent, dict) and equal_json(sent, call.args)):
            raise _refusal(f"the text of the arguments of call {cut(repr(call.id))} says something else")
    calls = [call.model_copy(update={"turn": turn, "altered": ()}) for call in given]
    kept = {"invalid": given.invalid, "tool_call_results": given.tool_call_results}
    return ToolCalls.model_validate({"tool_calls": calls, "turn": turn, **kept})


def _refusal(reason: str, fix: str | None = None) -> InvalidHistory:
    return InvalidHistory(reason, code="untrusted_history", fix=fix)
