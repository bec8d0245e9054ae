"""Record the exchanges of a loopback provider as JSON lines, read them back, and pass requests on.

A line holds `wire`, `path`, `request` (the body), `status`, `content_type`, `response` (the text of the body
or of the whole stream, byte for byte) and `masked`: JSON Pointers into the line. Headers are never written.
What is not known to be harmless, such as a server's token, is written as `***` (`masking.py`), also where it
comes back. What the messages say stays in it: read a recording before it goes into a bug report.

A stream may repeat a secret in pieces, of which no single event holds it. So the texts in the same place of
events are joined, whatever the wire: server-sent events, JSON lines, or an array of JSON. If they hold a
secret together, the first event gets all of their text, masked, and the others get none of it. Other events
stay byte for byte.
"""

import json
import os
import re
import stat
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp

from sigadapt.json_values import is_array, is_object, pointer
from sigadapt.schemas.subschemas import key_of
from sigadapt.testing.answers import Failure, LoopbackError, Received, Reply, Response, dumps
from sigadapt.trust.echoes import Echoes
from sigadapt.trust.masking import HARMLESS_QUERY, Masking, query_of

_OWNER_ALONE = 0o600
_OTHERS = 0o077
_NOT_FORWARDED = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})


class Exchange(NamedTuple):
    """One request and its response.

    Args:
        wire: the wire's name, a key of `WIRES`.
        path: the path, without what its query may hold of keys.
        request: the body of the request.
        status: the HTTP status of the response.
        content_type: its content type.
        response: its bytes, of the body or of the whole stream.
        masked: JSON Pointers to what is masked, such as `/request/tools/0/headers`.
    """

    wire: str
    path: str
    request: dict[str, Any]
    status: int
    content_type: str
    response: bytes
    masked: tuple[str, ...] = ()

    def line(self) -> str:
        """Return the exchange as a line of a recording."""
        text = self.response.decode("utf-8", "surrogateescape")
        url = urlsplit(self.path)
        query = urlencode([(name, value) for name, value in query_of(url.query) if name in HARMLESS_QUERY])
        path = url.path + (f"?{query}" if query else "")  # a key may stand in the query
        return json.dumps({**self._asdict(), "path": path, "response": text})

    def without(self, secrets: Iterable[str]) -> "Exchange":
        """Return the exchange with `***` in the place of each secret, also where it is encoded.

        Example:
            >>> echo = Exchange("openai", "/v1", {}, 401, "text/plain", b"Bad key: sk-12345")
            >>> echo.without(["sk-12345"])[-2:]
            (b'Bad key: ***', ('/response',))
        """
        echoes = Echoes(secrets)
        masked = dict.fromkeys(self.masked)
        response = self.response.decode("utf-8", "surrogateescape")
        harmless = without_pieces(response, echoes)
        if harmless != response:
            masked["/response"] = None
        path = echoes.hidden_in(self.path, ("path",), masked)
        request = echoes.hidden_in(self.request, ("request",), masked)
        content = echoes.hidden_in(harmless, ("response",), masked).encode("utf-8", "surrogateescape")
        # By steps: a secret with a slash is another text in a pointer.
        steps = [[echoes.without_secrets(key_of(step)) for step in path.split("/")[1:]] for path in masked]
        pointers = tuple(dict.fromkeys(map(pointer, steps)))
        return self._replace(path=path, request=request, response=content, masked=pointers)

    @property
    def reply(self) -> Reply:
        """The response as a reply of a script, which a client receives byte for byte."""
        return self.response if self.status == 200 else Failure(self.status, body=self.response)


def exchanges_in(lines: str | bytes | Iterable[str]) -> Iterator[Exchange]:
    """Read a recording.

    Args:
        lines: its text, or its lines.

    Raises:
        LoopbackError: `unreadable_recording`, for a line that is not an exchange.

    Example:
        >>> exchange = Exchange(
        ...     "openai", "/v1/chat/completions", {"model": "m"}, 200, "application/json", b"{}"
        ... )
        >>> next(exchanges_in(exchange.line())) == exchange
        True
    """
    if isinstance(lines, bytes):
        lines = lines.decode("utf-8", "replace")
    # A line feed alone ends a line: a JSON text may hold U+2028 and other characters that `splitlines` knows.
    if isinstance(lines, str):
        lines = lines.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        exchange = _exchange_in(line)
        if exchange is None:
            fix = "Record with LoopbackProvider(script, record=path)."
            reason = f"line {number} of the recording is not an exchange"
            raise LoopbackError(reason, code="unreadable_recording", fix=fix)
        yield exchange


_FIELDS = {"wire": str, "path": str, "request": dict, "status": int, "content_type": str, "response": str}


def _exchange_in(line: str) -> Exchange | None:
    with suppress(ValueError, RecursionError):  # no JSON, too deep, or half of a surrogate pair
        row: Any = json.loads(line)
        if is_object(row) and all(isinstance(row.get(name), kind) for name, kind in _FIELDS.items()):
            fields: dict[str, Any] = {name: row[name] for name in _FIELDS}
            fields["response"] = row["response"].encode("utf-8", "surrogateescape")
            masked: Any = row.get("masked")
            if is_array(masked):
                fields["masked"] = tuple(map(str, masked))
            return Exchange(**fields)
    return None


def record(path: Path, received: Received, response: Response) -> None:
    """Write a request and its response at the end of a recording, masked."""
    masking = Masking(received.headers, received.path)
    request = masking.request(received.body)
    body = b"".join(response.chunks)
    fields = received.wire, received.path, request, response.status, response.content_type, body
    exchange = Exchange(*fields, tuple(masking.places)).without(masking.secrets)
    # `Path.open` takes no opener.
    with open(path, "a", encoding="utf-8", newline="\n", opener=_private_opener) as file:
        file.write(f"{exchange.line()}\n")


def forwarding(url: str) -> Callable[[Received], Awaitable[Reply]]:
    """Return a script that asks a real provider, so that a loopback provider can record its answers.

    Args:
        url: what comes before the path that a client asks for, such as `https://api.openai.com`. The client's
            headers, its key among them, go to this address and nowhere else: a redirect is answered as it is.

    Example:
        >>> from sigadapt.testing import Answer, LoopbackProvider
        >>> import dspy
        >>> with (
        ...     LoopbackProvider([Answer(text="Hi.")]) as real,
        ...     LoopbackProvider(forwarding(real.url)) as between,
        ... ):
        ...     lm = dspy.LM(**between.lm_options("openai"))
        ...     text = lm(dspy.lm15.Request(model=lm.model, messages=(dspy.lm15.Message.user("Hi"),))).text
        >>> text
        'Hi.'
    """

    async def ask(received: Received) -> Reply:
        headers = {name: value for name, value in received.headers.items() if name not in _NOT_FORWARDED}
        async with (
            aiohttp.ClientSession(trust_env=True) as session,
            session.post(
                url.rstrip("/") + received.path, json=received.body, headers=headers, allow_redirects=False
            ) as answer,  # a redirect may lead to another address, and the headers hold the key
        ):
            content = await answer.read()
        return content if answer.status == 200 else Failure(answer.status, body=content)

    return ask


def _private_opener(path: str, flags: int) -> int:
    """Open a file for its owner alone, whatever the umask, and whatever its mode before.

    A file that another release or a checkout left readable loses that with the first line that is added: what
    is added is no less private than what a new file holds. Who wants to share a file gives away a copy.
    """
    descriptor = os.open(path, flags, _OWNER_ALONE)
    if not hasattr(os, "fchmod"):  # Windows before Python 3.13, where a user's files are the user's own
        return descriptor
    state = os.fstat(descriptor)
    # A device such as /dev/null, and a file of somebody else's, are not ours to change.
    is_own = stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid()
    mode = stat.S_IMODE(state.st_mode)
    private_mode = mode & ~_OTHERS | _OWNER_ALONE  # a umask may take the owner's rights, too
    if is_own and mode != private_mode:
        os.fchmod(descriptor, private_mode)
    return descriptor


_LINE = re.compile(r"(?P<field>(?:data:)?[ \t]*)(?P<json>[\[{].*)", re.DOTALL)
_LINE_END = re.compile(r"(\r\n|\r|\n)")
# What says of which message, block or call a piece is; a number that counts events is none of these.
_SERIES = ("type", "index", "output_index", "content_index", "summary_index", "item_id")


class _StreamedText(NamedTuple):
    """A text in an event: `holder[key]`."""

    event: int  # its number in the stream
    path: tuple[Any, ...]  # where it is in the event
    series: tuple[Any, ...]  # the same, and the marks on the way
    holder: Any
    key: Any


def without_pieces(text: str, echoes: Echoes) -> str:
    """Return a stream without the secrets that its events hold in pieces; any other text as it is."""
    lines = _LINE_END.split(text)
    events: dict[int, tuple[str, Any]] = {}
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        with suppress(ValueError, RecursionError):
            if match is not None:
                events[number] = match["field"], json.loads(match["json"])
    if not events:
        with suppress(ValueError, RecursionError):  # an array over several lines
            events[0] = "", json.loads(text)
            lines = [text]
    pieces = [piece for number, (_, event) in events.items() for piece in _pieces_of(number, event)]
    # In most streams, the place alone says what belongs together. A server may mix calls.
    changed = {*_mask(pieces, echoes, "series"), *_mask(pieces, echoes, "path")}
    for number in changed:
        field, event = events[number]
        lines[number] = field + dumps(event)
    return "".join(lines)


def _pieces_of(number: int, event: Any) -> Iterator[_StreamedText]:
    """Yield the texts in an event, in order."""
    pending: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = [(event, (), ())]
    while pending:
        holder, path, series = pending.pop()
        members: list[tuple[Any, Any]] = []
        if is_object(holder):
            marks = tuple(
                (name, holder[name]) for name in _SERIES if isinstance(holder.get(name), (str, int))
            )
            series = (*series, marks)
            members = [*holder.items()]
        elif is_array(holder):
            members = [*enumerate(holder)]
        for key, member in reversed(members):
            # An index says more than the position in this event.
            is_numbered = is_array(holder) and is_object(member) and "index" in member
            member_series = series if is_numbered else (*series, key)
            pending.append((member, (*path, key), member_series))
        for key, member in members:
            if isinstance(member, str):
                yield _StreamedText(number, (*path, key), (*series, key), holder, key)


def _mask(pieces: list[_StreamedText], echoes: Echoes, place: str) -> Iterator[int]:
    """Mask secrets in texts of one place, and yield the numbers of the events that change."""
    runs: dict[Any, list[_StreamedText]] = defaultdict(list)
    for piece in pieces:
        runs[getattr(piece, place)].append(piece)
    for run in runs.values():
        texts = [piece.holder[piece.key] for piece in run]
        text = "".join(texts)
        masked = echoes.without_secrets(text)
        if masked == text or masked == "".join(map(echoes.without_secrets, texts)):
            continue  # what single events hold is masked as any other text
        for piece, new_text in zip(run, [masked, *[""] * len(run)], strict=False):
            piece.holder[piece.key] = new_text
            yield piece.event
