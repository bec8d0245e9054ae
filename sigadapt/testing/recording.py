"""Record the exchanges of a loopback provider as JSON lines, read them back, and pass requests on.

A line holds `wire`, `path`, `request` (the body), `status`, `content_type`, `response` (the text of the body
or of the whole stream, byte for byte) and `masked`: JSON Pointers into the line. Headers are never written.
What is not known to be harmless, such as a server's token, is written as `***` (`masking.py`), also where it
comes back. What the messages say stays in it: read a recording before it goes into a bug report.
"""

import json
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp

from sigadapt.json_values import is_array, is_object, pointer
from sigadapt.schemas.subschemas import key_of
from sigadapt.testing.answers import Failure, LoopbackError, Received, Reply
from sigadapt.testing.server import Response
from sigadapt.testing.stream_pieces import without_pieces
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
