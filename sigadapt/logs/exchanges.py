"""Exchanges in a log: requests and their answers, whatever wrote its lines.

`forms/` is the table of forms that a line may have. Rules:

 a. A log is read row by row. A row is a line; an entry of an array, which a line or a whole file holds; or a
    file that is one JSON object.
 b. A line that cannot be read costs that line alone, and has a reason without a secret.
 c. A request and its answer on rows of their own are joined by their id, wherever they are. Without an id,
    the answer follows the request in the same file. Two different requests of one id are not joined, and
    neither are several requests with several answers after them, because nothing says which answer is whose
    (nothing silent).
 d. Half of a surrogate pair, which no file can hold, is read as U+FFFD, on record. NaN and infinity are no
    JSON.
 e. Secrets of a request are masked before it is read.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.response.choice import Choice, choice_from_response, choice_from_stream
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.logs.attempts import attempt
from sigadapt.logs.conversation import Conversation, conversation_from_request
from sigadapt.logs.forms import batches, pairs, raw_exchanges
from sigadapt.logs.forms.form import RawExchange, seconds_of, value_in
from sigadapt.logs.server_turns import ServerTurns
from sigadapt.schemas.json_values import Json, compact, cut, is_array, is_object, is_unicode, without_halves
from sigadapt.signatures.places import printable
from sigadapt.trust.echoes import Echoes
from sigadapt.trust.masking import Masking, secrets_in

LogSource: TypeAlias = "str | PathLike[str] | Json"
"""A file, a line of a log (a text that begins with `{` or `[`), or a row."""


class LoggedExchange(NamedTuple):
    """A recorded request and its answer."""

    conversation: Conversation
    choice: Choice
    name: str | None  # of the conversation, if the log has one
    time: float  # when it was, in the log's own clock; 0 if it does not say
    secrets: frozenset[str]  # of the request
    answer_ids: tuple[str, ...] = ()  # of answers of the same conversation, which a server keeps


class UnreadLine(NamedTuple):
    """A line that holds no exchange: where it is (`log.jsonl:4`, or the number of a line), and why."""

    line: str
    reason: str


class _LogRow(NamedTuple):
    """A row of a log: the number of its source, its place there, and its value or why it has none."""

    source: int
    line: str
    value: Any = None
    error: Exception | None = None


def read_log(sources: Iterable[LogSource]) -> Iterator[LoggedExchange | UnreadLine]:
    """Yield the exchanges of a log, and what could not be read of it.

    Args:
        sources: files, lines or rows.

    Raises:
        InvalidOption: for a file that cannot be opened.

    Example:
        >>> request = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
        >>> answer = {"choices": [{"message": {"content": "Hello."}}]}
        >>> exchange, unread = read_log([{"request": request, "response": answer}, '{"prompt": "Hi."}'])
        >>> exchange.conversation.question, exchange.choice.text, unread.line
        ('Hi.', 'Hello.', '2')
    """
    halves = _Halves()
    turns = ServerTurns[_LogRow]()
    digests = set[str]()
    for row in _rows(sources):
        if row.error is not None:
            yield _unread_line(row, row.error)
            continue
        raws = attempt(partial(_raw_exchanges_in, row))
        if isinstance(raws, Exception):
            yield _unread_line(row, raws)
            continue
        for raw in raws:
            if raw.digest is not None and raw.digest in digests:
                continue
            if raw.digest is not None:
                digests.add(raw.digest)
            for half_place, half in halves.join(row, raw):
                for place, whole in turns.join(half_place, half):
                    yield _read(place, whole)
    for half_place, half in halves.rest():
        for place, whole in turns.join(half_place, half):
            yield _read(place, whole)
    for place, whole in turns.rest():
        yield _read(place, whole)


def _rows(sources: Iterable[LogSource]) -> Iterator[_LogRow]:
    for number, source in enumerate(sources, 1):
        # Lines and rows that are given as such follow one another, as in one file.
        if is_object(source):
            yield _LogRow(0, str(number), source if _is_sayable(source) else _with_whole_characters(source))
        elif isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
            yield from (row._replace(line=str(number)) for row in _rows_in(source, 0, ""))
        elif not isinstance(source, (str, PathLike)):
            sort = type(source).__name__
            raise InvalidOption(f"expected files, lines or rows, got {sort}", field="lines_or_paths")
        else:
            path = Path(source)
            try:
                content = path.read_bytes()
            except OSError as error:
                reason = f"{cut(str(source))!r} cannot be read: {error.strerror}"
                fix = "Give files, or lines that begin with { or [."
                if path.is_dir():
                    fix = 'Give its files, such as sorted(Path("logs").glob("*.jsonl")).'
                raise InvalidOption(reason, field="lines_or_paths", fix=fix) from None
            text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
            yield from _rows_in(text, number, f"{path.name}:")


def _rows_in(text: str, source: int, prefix: str) -> Iterator[_LogRow]:
    """Yield the rows of a text: of its lines, or of the one value that it is."""
    # A line feed alone ends a line: a JSON text may hold U+2028 and other characters that `splitlines` knows.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1 and not _is_json(lines[0][1]) and _is_json(text):
        lines = [(lines[0][0], text)]
    for number, line in lines:
        place = f"{prefix}{number}"
        value = attempt(partial(_line_value, line))
        if isinstance(value, Exception):
            yield _LogRow(source, place, error=value)
        elif is_array(value) and value:
            for entry_number, entry in enumerate(value, 1):
                yield _LogRow(source, f"{place}, entry {entry_number}", entry)
        else:
            yield _LogRow(source, place, value)


def _line_value(line: str) -> Any:
    """Return the value of a line, without halves of surrogate pairs."""
    value = value_in(line)
    may_hold_half = not is_unicode(line) or "\\ud" in line or "\\uD" in line
    return _with_whole_characters(value) if may_hold_half else value


def _is_json(text: str) -> bool:
    try:
        value_in(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_sayable(value: Any) -> bool:
    """Return whether no text in a value has half of a surrogate pair."""
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


class _MendedRow(dict[str, Any]):
    """A row that held half of a surrogate pair."""


def _with_whole_characters(value: Any) -> Any:
    """Return a value without halves of surrogate pairs; a row that had any as `_MendedRow`."""
    if is_array(value):
        return [_with_whole_characters(entry) for entry in value]
    if not is_object(value):
        return without_halves(value)
    mended = without_halves(value)
    return value if compact(mended) == compact(value) else _MendedRow(mended)


def _raw_exchanges_in(row: _LogRow) -> list[RawExchange]:
    if is_object(row.value):
        return raw_exchanges(row.value)
    reason = f"it holds no exchange, but a {type(row.value).__name__}: an object with a request is missing"
    raise InvalidHistory(reason, code="unreadable_request")


class _Halves:
    """Requests and answers that are still to be joined."""

    def __init__(self) -> None:
        self._requests: list[tuple[_LogRow, RawExchange]] = []
        """Requests without an id that follow one another."""
        self._answers: list[tuple[_LogRow, RawExchange]] = []
        """The answers that follow these."""
        self._by_key: dict[str, list[tuple[_LogRow, RawExchange]]] = {}

    def join(self, row: _LogRow, raw: RawExchange) -> Iterator[tuple[_LogRow, RawExchange]]:
        """Yield what is whole now, and the halves that nothing can follow any more."""
        is_next_answer = raw.key is None and raw.request is None and raw.response is not None
        if self._answers and not is_next_answer:
            yield from self._in_order()
        if self._requests and self._requests[0][0].source != row.source:
            yield from self._in_order()
        is_whole = raw.request is not None and raw.response is not None
        is_unusable = raw.request is not None and not is_object(raw.request)
        if is_whole or is_unusable:
            yield row, raw
        elif raw.key is not None:
            self._by_key.setdefault(raw.key, []).append((row, raw))
        elif raw.request is not None:
            self._requests.append((row, raw))
        elif is_next_answer and self._requests:
            self._answers.append((row, raw))
        else:
            yield row, raw

    def rest(self) -> Iterator[tuple[_LogRow, RawExchange]]:
        """Yield what is joined by its id, and the halves that are left."""
        yield from self._in_order()
        for halves in self._by_key.values():
            yield from _joined_by_key(halves)

    def _in_order(self) -> Iterator[tuple[_LogRow, RawExchange]]:
        """Yield the latest request with the answer after it, and the halves beside them."""
        requests = self._requests
        answers = self._answers
        self._requests = []
        self._answers = []
        if len(requests) > 1 and len(answers) > 1:  # sent at once: each answer may be any request's
            counts = f"{len(requests)} requests are before {len(answers)} answers"
            for row, raw in (*requests, *answers):
                yield row, raw._replace(failure=f"{counts}, and nothing says whose each is")
            return
        if answers:
            _, asked = requests.pop()
            row, answer = answers[0]
            name = asked.name or answer.name
            time = asked.time or answer.time
            answers[0] = row, asked._replace(response=answer.response, name=name, time=time)
        yield from requests
        yield from answers


def _joined_by_key(halves: list[tuple[_LogRow, RawExchange]]) -> Iterator[tuple[_LogRow, RawExchange]]:
    """Yield the exchanges of one id, and the halves that have no other half, or more than one."""
    asked = {compact(raw.request): raw for _, raw in halves if raw.request is not None}
    answers = [(row, raw) for row, raw in halves if raw.response is not None]
    if len(asked) > 1:
        reason = f", because {len(asked)} different requests have this id"
        yield from ((row, raw._replace(failure=reason)) for row, raw in halves)
        return
    request = next(iter(asked.values()), None)
    failures = [raw.failure for _, raw in halves if raw.failure is not None]
    if request is not None:
        for row, raw in answers:
            yield row, raw._replace(request=request.request)
    for row, raw in halves:
        if raw.failure is not None or (request is None and raw.response is not None):
            yield row, raw
        elif raw.request is not None and not answers:
            yield row, raw._replace(failure=next(iter(failures), None))


def _read(row: _LogRow, raw: RawExchange) -> LoggedExchange | UnreadLine:
    """Return an exchange, or why it is none."""
    exchange = attempt(partial(_exchange_of, raw))
    if isinstance(exchange, Exception):
        return _unread_line(row, exchange)
    if not isinstance(row.value, _MendedRow):
        return exchange
    change = Change("", "lowered", "half of a surrogate pair is read as U+FFFD")
    changes = (*exchange.conversation.changes, change)
    return exchange._replace(conversation=replace(exchange.conversation, changes=changes))


def _unread_line(row: _LogRow, error: Exception) -> UnreadLine:
    sentence = " ".join(str(error).split()) or type(error).__name__
    return UnreadLine(row.line, printable(Echoes(secrets_in({"": sentence})).hidden(sentence)))


def _exchange_of(raw: RawExchange) -> LoggedExchange:
    request = raw.request
    response: Any = raw.response
    if request is not None and not is_object(request):
        raise InvalidHistory("its request is no object", code="unreadable_request")
    if request is None or response is None:
        reason = pairs.reason_alone(raw) if raw.key is None else batches.reason_alone(raw)
        raise InvalidHistory(reason, code="unreadable_request")
    masking = Masking({}, "")
    conversation = conversation_from_request(masking.request(request))
    if isinstance(response, str):
        with suppress(ValueError):
            response = json.loads(response)
    read: Any = choice_from_response if is_object(response) else choice_from_stream
    choice = read(response)
    answer: Json = response if is_object(response) else {}
    moments = [seconds_of(moment) for moment in (raw.time, answer.get("created"), answer.get("created_at"))]
    return LoggedExchange(
        conversation,
        choice,
        name=raw.name,
        time=next(filter(None, moments), 0.0),
        secrets=frozenset(masking.secrets),
        answer_ids=raw.answer_ids,
    )
