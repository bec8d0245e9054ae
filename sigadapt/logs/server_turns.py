"""Requests that name an earlier answer in the place of what was said: the log's own answer fills them in.

With `previous_response_id`, OpenAI keeps the conversation, and a request holds only what is new. Where the
log holds the answer of that id, the request gets the turns before it, as if a client had kept them. The
instructions are each request's own, as OpenAI has it. Without that answer, the request stays as it is. Of a
very long conversation, a request gets the last items, so that work grows with the log; it keeps the id, which
its conversation then has on record.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from sigadapt.adapters.response.stream_events import events_of
from sigadapt.errors import SigadaptError
from sigadapt.logs.forms.form import RawExchange
from sigadapt.providers.wire.values import an_object
from sigadapt.schemas.json_values import Json, is_array, is_object

_REFERENCE = "previous_response_id"
_MOST_ITEMS = 200  # before a request
_Row = TypeVar("_Row")


class _Turns(NamedTuple):
    """What was said up to an answer and in it."""

    items: list[Any]
    is_whole: bool  # whether these are all


class ServerTurns(Generic[_Row]):
    """The answers of a log by their ids, and the requests whose answer before has not come yet."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turns] = {}
        """By the id of an answer, what was said up to it and in it."""
        self._waiting: dict[str, list[tuple[_Row, RawExchange]]] = defaultdict(list)
        """By the id of the answer before, the exchanges that continue it."""

    def join(self, row: _Row, raw: RawExchange) -> Iterator[tuple[_Row, RawExchange]]:
        """Yield an exchange with the turns before it, and all that waited for its answer."""
        reference = _reference_of(raw.request)
        if reference is not None and reference not in self._turns:
            self._waiting[reference].append((row, raw))
            return
        ready = [(row, raw)]
        while ready:
            row, raw = ready.pop()
            whole = self._whole(raw)
            answer_id = self._keep(whole)
            if answer_id is not None:
                ready += self._waiting.pop(answer_id, [])
            yield row, _with_ids(whole, _reference_of(raw.request), answer_id)

    def rest(self) -> Iterator[tuple[_Row, RawExchange]]:
        """Yield the exchanges whose answer before is not in the log."""
        for reference, exchanges in self._waiting.items():
            for row, raw in exchanges:
                yield row, _with_ids(raw, reference, None)

    def _whole(self, raw: RawExchange) -> RawExchange:
        reference = _reference_of(raw.request)
        if reference is None:
            return raw
        turns = self._turns[reference]
        request: Json = {**raw.request, "input": [*turns.items, *_items_of(raw.request.get("input"))]}
        if turns.is_whole:
            del request[_REFERENCE]
        return raw._replace(request=request)

    def _keep(self, raw: RawExchange) -> str | None:
        """Keep what was said up to an answer of the Responses API, and return the answer's id."""
        if not is_object(raw.request) or "input" not in raw.request:
            return None
        answer = _answer_of(raw.response)
        answer_id = answer.get("id")
        output = answer.get("output")
        if not isinstance(answer_id, str) or not is_array(output):
            return None
        items = [*_items_of(raw.request["input"]), *output]
        is_whole = _REFERENCE not in raw.request and len(items) <= _MOST_ITEMS
        self._turns[answer_id] = _Turns(items[-_MOST_ITEMS:], is_whole)
        return answer_id


def _with_ids(raw: RawExchange, *ids: str | None) -> RawExchange:
    """Return an exchange with the ids of its conversation's answers."""
    return raw._replace(answer_ids=tuple(filter(None, ids)))


def _reference_of(request: Any) -> str | None:
    reference = request.get(_REFERENCE) if is_object(request) else None
    return reference if isinstance(reference, str) else None


def _items_of(given: Any) -> list[Any]:
    """Return the input of a request as items."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if is_array(given) else []


def _answer_of(response: Any) -> Json:
    """Return the body of an answer, also of a streamed one, whose last event holds it."""
    if is_object(response):
        return response
    with suppress(SigadaptError, ValueError, TypeError):
        for event in reversed(events_of(response)):
            body = an_object(an_object(event).get("response"))
            if "output" in body:
                return body
    return {}
