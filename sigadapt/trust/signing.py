"""Sign what the server made, so that it can tell it from what a client wrote.

A mark is an HMAC of the canonical JSON of one part, and of what it belongs to: its kind, the context, and, of
a result, the call that it answers. All of it is one JSON object, so no part can be taken for another, and no
two can run together. The parts are calls, requests and results; turns with more than a text, such as
provider state, each with a call; and a whole run that waits.

JSON is written in one form only (RFC 8785), so that a hash survives storage and a browser's JSON. JavaScript
reads every number as a double: it writes 18.0 as 18, and 2**53 + 1 as another number. RFC 8785 covers the
first, and refuses the second, which is written here as a decimal text.
"""

import hashlib
import hmac
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import dspy
import rfc8785

from sigadapt.errors import InputNeeded, InvalidHistory, InvalidOption
from sigadapt.json_values import Json, cut, is_iterable, is_object, is_sequence, is_unicode
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.calls.tool_call import was_sent
from sigadapt.signatures.tool_decl import REQUEST
from sigadapt.signatures.tool_results.results import ToolResults, result_text
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.signatures.transcript import collection_in, read, rounds_in

Signable: TypeAlias = ToolCalls | ToolResults | dspy.History | ToolCall | InputNeeded
Secret: TypeAlias = str | bytes
Secrets: TypeAlias = Secret | Sequence[Secret]

_VERSION = "v1"  # of the form of marks; it is in what is hashed
_SHORTEST_SECRET = 16
_LARGEST = 2**53 - 1  # JavaScript's `Number.MAX_SAFE_INTEGER`
_RARE_FIELDS = ("altered", "note", "error_type")
"""Fields of a result that its mark covers only where they say something."""


class _SignedPart(NamedTuple):
    """What one mark covers, and the call, result, turn or run that it is of."""

    content: bytes  # the bytes that it covers
    subject: Any  # what it is of


def sign(value: Signable | Sequence[Signable], secret: Secrets, *, context: str | None = None) -> list[str]:
    """Return a signature for each part of a value, for a client to send back with it.

    Args:
        value: calls, results, a history, a request for confirmation, an InputNeeded, or a list of
            these.
        secret: what only the server knows, at least 16 bytes; or a list of secrets, of which the first signs.
        context: where the signatures count, such as `"user 1, conversation 7"`. They verify with the same
            context only. Without one, what was signed for one user or conversation verifies in every other.

    Returns:
        Marks, each a version (`v1:`) and HMAC-SHA256 in hex: one for each call and request, which
        covers its id, name and arguments; one for each result, which covers its call and everything that the
        result says; one for each call whose turn has provider state, shown reasoning or searches, which
        covers the turn; and one for an InputNeeded, which covers all that it saves. The text beside the
        calls of a turn without state, and the other fields of a history, are the client's word.

    Raises:
        InvalidHistory: `not_signable`, for anything else.
        InvalidOption: for a secret that is short or none, and for a context that is not a text.

    Example:
        >>> calls = ToolCalls([{"id": "call_1", "name": "pay", "args": {"eur": 5}}])
        >>> [mark] = sign(calls, "a secret of the server", context="user 7")
        >>> dearer = ToolCalls([{"id": "call_1", "name": "pay", "args": {"eur": 500}}])
        >>> for each, whose in ((calls, "user 7"), (dearer, "user 7"), (calls, "user 8")):
        ...     is_signed(each, [mark], "a secret of the server", context=whose)
        True
        False
        False
    """
    key = _keys(secret, context)[0]
    return [_mark(part, key) for part in _parts_of(value)]


def is_signed(
    value: Signable | Sequence[Signable],
    signatures: Collection[str],
    secret: Secrets,
    *,
    context: str | None = None,
) -> bool:
    """Return whether every part of a value was signed with the secret.

    Check a request for confirmation with it before `approved()`, if the request came from a client.

    Args:
        value: as for `sign`.
        signatures: what the client sent.
        secret: as for `sign`. Any secret of a list verifies, so that one can be replaced by another.
        context: as for `sign`.

    Raises:
        InvalidHistory: as `sign`.
        InvalidOption: as `sign`.
    """
    return next(unsigned_parts(value, signatures, secret, context), None) is None


def unsigned_parts(
    value: object, signatures: Collection[str], secret: Secrets, context: str | None
) -> Iterator[Any]:
    """Yield each call, request, result, turn and run in a value that has no signature."""
    # The marks of the server's own secrets are made of the data and looked up. A look-up says nothing about a
    # mark that is nearly right, because a set compares hashes first, and one look-up a part is all the work
    # that a client can cause, whatever it sends as signatures.
    marks: set[str] = set()
    if is_iterable(signatures):
        marks = {mark for mark in signatures if isinstance(mark, str)}
    keys = _keys(secret, context)
    for part in _parts_of(value):
        if not any(_mark(part, key) in marks for key in keys):
            yield part.subject


def _keys(secret: object, context: object) -> list[hmac.HMAC]:
    """Return each secret as an HMAC that has read the context."""
    secrets = secret if is_sequence(secret) else [secret]
    octets = list[bytes]()
    for text in secrets:
        key = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if not isinstance(key, bytes) or len(key) < _SHORTEST_SECRET:
            raise _short_secret()
        octets.append(key)
    if not octets:
        raise _short_secret()
    if context is not None and not (isinstance(context, str) and is_unicode(context)):
        raise InvalidOption(f"a context is a text, not {cut(repr(context))}", field="context")
    head = canonical({"sigadapt": _VERSION, "context": context}) + b"\n"
    return [hmac.new(key, head, hashlib.sha256) for key in octets]


def _short_secret() -> InvalidOption:
    return InvalidOption(f"a secret has at least {_SHORTEST_SECRET} bytes", field="secret")


def _mark(part: _SignedPart, key: hmac.HMAC) -> str:
    digest = key.copy()
    digest.update(part.content)
    return f"{_VERSION}:{digest.hexdigest()}"


def _parts_of(value: object, request_kind: str = "request") -> Iterator[_SignedPart]:
    """Yield the parts of a value that are signed."""
    # `request_kind` is the kind of a call with the name of requests. What a model wrote in a turn is none.
    # The one place that walks a conversation here.
    for item in value if is_sequence(value) else [value]:
        if isinstance(item, InputNeeded):
            event = dspy.History(messages=[item.event])  # which may hold the results of earlier turns
            yield from _parts_of(item.calls, "call")
            yield from _parts_of([item.requests, item.history, event])
            yield _run(item)
        elif isinstance(item, ToolCalls):
            yield from _turn(item, _results_inside(item), request_kind)
        elif isinstance(item, ToolResults):
            for turn in item.rounds:
                # Calls that an agent's history answered bring their results along.
                results = (*turn.results, *_results_inside(turn.calls))
                yield from _turn(turn.calls, results, "call")
        elif isinstance(item, dspy.History):
            for event in item.messages:
                yield from _event_parts(event)
        elif isinstance(item, ToolCall) and item.name == REQUEST:
            yield from _turn([item], (), request_kind)
        else:
            reason = f"a {type(item).__name__} cannot be signed"
            raise _not_signable(reason, "Give what the model made whole.")


def _event_parts(event: Json) -> Iterator[_SignedPart]:
    """Yield the parts of a history's event, field by field."""
    for name, value in event.items():
        field = {name: value}
        if (calls := collection_in(field)) is not None:
            yield from _parts_of(calls, "call")
        yield from _parts_of(ToolResults(rounds=tuple(rounds_in(field, None))))


def _results_inside(calls: ToolCalls) -> Sequence[Any]:
    """Return the results that calls hold themselves, as `dspy.ReActV2` writes them."""
    results = calls.tool_call_results
    return read(dspy.ToolCallResults, results, None).tool_call_results if results else ()


def _turn(calls: ToolCalls | list[ToolCall], results: Any, request_kind: str) -> Iterator[_SignedPart]:
    """Yield the parts of one turn. A result holds its call as a hash, so that no call is written twice."""
    turn_calls = calls.in_order() if isinstance(calls, ToolCalls) else calls
    collection_turn = calls.turn if isinstance(calls, ToolCalls) else None
    hashes: dict[str, str] = {}
    turns: list[tuple[str | None, Turn]] = []
    for call in turn_calls:
        content = _canonical(_call_content(call, request_kind))
        hashes[call.id] = hashlib.sha256(content).hexdigest()
        yield _SignedPart(content, call)
        turn = call.turn if isinstance(call, ToolCall) else collection_turn
        if turn is not None:
            turns.append((hashes[call.id], turn))
    if collection_turn is not None and all(turn != collection_turn for _, turn in turns):
        turns.append((None, collection_turn))
    yield from _turn_parts(turns)
    for result in results:
        yield _result_part(result, hashes)


def _result_part(result: Any, call_hashes: Mapping[str, str]) -> _SignedPart:
    if result.call_id not in call_hashes:
        reason = f"a result of call {cut(repr(result.call_id))} has no such call"
        raise _not_signable(reason, "Give it with its call.")
    # All fields, also those that are added one day: none may be left out of a signature by oversight.
    fields = dict(result) if isinstance(result, ToolResult) else result.model_dump(mode="json")
    for name in _RARE_FIELDS:
        if not fields.get(name):
            fields.pop(name, None)
    content = {"kind": "result", "call": call_hashes[result.call_id], "result": fields}
    return _SignedPart(_canonical(content), result)


def _turn_parts(turns: list[tuple[str | None, Turn]]) -> Iterator[_SignedPart]:
    """Yield a part for each call whose turn says more than a text, which goes out as the model's own."""
    # Each call has its own mark, so that a request verifies by itself. A turn may be long and have many
    # calls: it is hashed once.
    hashes: dict[int, str | None] = {}
    for call_hash, turn in turns:
        if id(turn) not in hashes:
            fields = _turn_fields(turn)
            is_plain = fields.keys() <= {"text"}
            hashes[id(turn)] = None if is_plain else hashlib.sha256(_canonical(fields)).hexdigest()
        turn_hash = hashes[id(turn)]
        if turn_hash is not None:
            yield _SignedPart(_canonical({"kind": "turn", "call": call_hash, "turn": turn_hash}), turn)


def _turn_fields(turn: Turn) -> Json:
    """Return what a turn holds, without what is empty."""
    # The state as a value: storage may change the order of its keys.
    fields: Json = turn.model_dump(exclude={"state", "before"})
    fields |= {"state": turn.state, "before": [*map(_turn_fields, turn.before)]}
    return {name: value for name, value in fields.items() if value}


def _run(error: InputNeeded) -> _SignedPart:
    """Return all of a run that waits, as it is saved, as one part."""
    try:
        record: Json = json.loads(error.model_dump_json())
    except InvalidHistory as fault:
        raise _not_signable(fault.reason, "Give inputs that JSON can hold.") from fault
    return _SignedPart(_canonical({"kind": "run", "run": record}), error)


def _call_content(call: ToolCall | InvalidToolCall, request_kind: str) -> Json:
    """Return what is signed of a call."""
    if isinstance(call, RefusedToolCall):
        call = call.as_invalid()
    if isinstance(call, InvalidToolCall):  # the model reads why as its result
        names = ("id", "name", "arguments", "code", "message", "path", "altered")
        return {"kind": "bad call", **{name: getattr(call, name) for name in names}}
    kind = request_kind if call.name == REQUEST and not was_sent(call) else "call"
    content: Json = {"kind": kind, "id": call.id, "name": call.name, "args": call.args}
    if not says_args(call):  # a custom tool's text, or one that was repaired
        content |= {"arguments": call.arguments, "altered": [*call.altered]}
    return content


def says_args(call: ToolCall) -> bool:
    """Return whether the text of a call's arguments says the same as its arguments."""
    args = parse_arguments(call.arguments)
    return isinstance(args, dict) and _canonical(args) == _canonical(call.args)


def _canonical(value: Any) -> bytes:
    try:
        return canonical(value)
    except (ValueError, TypeError, RecursionError) as error:
        reason = f"a part has no JSON form: {cut(str(error))}"
        raise _not_signable(reason, "Give text, or values that JSON holds.") from error


def _not_signable(reason: str, fix: str) -> InvalidHistory:
    return InvalidHistory(reason, code="not_signable", fix=fix)


def name_of(subject: Any) -> str:
    """Name what is not signed, and say if it may be the server's own, as a browser rounded it."""
    if isinstance(subject, (ToolCall, InvalidToolCall)):
        name = f"call {cut(repr(subject.id))} of {cut(repr(subject.name))}"
        value = getattr(subject, "args", None)
    elif isinstance(subject, Turn):
        name = "the provider state of a turn"
        value = subject.state
    elif isinstance(subject, InputNeeded):
        name = "a run that waits"
        value = None
    else:
        name = f"the result of call {cut(repr(subject.call_id))}"
        value = subject.value
    if isinstance(subject, RefusedToolCall) or not has_large_number(value):  # whose arguments are unreadable
        return name
    return f"{name}, in which a browser rounds a number over 2**53"


def canonical(value: Any) -> bytes:
    """Return the one text of a value that has a JSON form.

    Raises:
        ValueError, TypeError, RecursionError: for a value without a JSON form.
    """
    # What a value is after it was saved as JSON and loaded.
    plain = value if isinstance(value, str) else json.loads(result_text(value))
    return rfc8785.dumps(_within(plain))


def has_large_number(value: Any) -> bool:
    """Return whether a value of JSON holds a number that JavaScript may change."""
    if is_object(value):
        return any(map(has_large_number, value.values()))
    if is_sequence(value):
        return any(map(has_large_number, value))
    return isinstance(value, (int, float)) and abs(value) > _LARGEST


def as_a_browser_reads(value: Any) -> Any:
    """Return a value of JSON with every number as a double."""

    def as_double(digits: str) -> float | None:
        # What is too large, JavaScript reads as Infinity and writes as null.
        number = float(digits)
        return number if math.isfinite(number) else None

    return json.loads(json.dumps(value), parse_int=as_double)


def _within(value: Any) -> Any:
    """Return a value of JSON that RFC 8785 can write, and another one for another value."""
    if is_object(value):
        return {key: _within(member) for key, member in value.items()}
    if is_sequence(value):
        return [_within(item) for item in value]
    if isinstance(value, str) and value.startswith("\0"):  # so that no text is taken for a number
        return f"\0{value}"
    if isinstance(value, float) and not math.isfinite(value):  # saved as null
        return None
    if not isinstance(value, (int, float)) or abs(value) <= _LARGEST:
        return value
    digits = str(value) if isinstance(value, int) else rfc8785.dumps(value).decode()
    return f"\0{digits}"
