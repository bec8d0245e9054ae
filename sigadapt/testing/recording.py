"""Record the exchanges of a loopback provider as JSON lines, read them back, and pass requests on.

A line holds `wire`, `path`, `request` (the body), `status`, `content_type` and `response` (the text of the
body or of the whole stream, byte for byte). Headers are never written, and neither is a key in a path. A key
in the body (`authorization`, `api_key`, a token), or one that a provider repeats, as in "Incorrect API key
provided: ...", is written as `***`. So a recording can go into a bug report. What the messages say is in it.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import aiohttp

from sigadapt.schemas.json_values import is_array, is_object
from sigadapt.testing.answers import Failure, LoopbackError, Reply
from sigadapt.testing.exchange import Response
from sigadapt.testing.script import Received

_NOT_FORWARDED = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})
_KEPT_QUERY = frozenset({"alt"})  # of a path's query; others may be keys
_SECRET = re.compile("auth|cookie|credential|key|password|secret|signature|token|^sig$", re.IGNORECASE)
_SECRET_MEMBER = re.compile(
    r"authorization|api[-_]?key|passw|secret|credential|cookie|^token$"
    r"|(?:access|auth|authorization|bearer|id|refresh|session)[-_]?token",
    re.IGNORECASE,
)  # of a body, whose `max_tokens`, `signature` and `prompt_cache_key` are no secrets
_SECRET_IN_TEXT = re.compile(r"://[^/\s:@]*:([^/\s@]+)@|\bBearer\s+([^\s\"',]+)")
_SHORTEST_SECRET = 8  # characters; what is shorter, such as `ollama` or `EMPTY`, is a word of the messages
LOOPBACK_KEY = "loopback"
"""The key that a loopback provider is asked with unless a test gives another; no secret."""


class Exchange(NamedTuple):
    """One request and its response.

    Args:
        wire: the wire's name, a key of `WIRES`.
        path: the path, without what its query may hold of keys.
        request: the body of the request.
        status: the HTTP status of the response.
        content_type: its content type.
        response: its bytes, of the body or of the whole stream.
    """

    wire: str
    path: str
    request: dict[str, Any]
    status: int
    content_type: str
    response: bytes

    def line(self) -> str:
        """Return the exchange as a line of a recording."""
        text = self.response.decode("utf-8", "surrogateescape")
        url = urlsplit(self.path)
        query = urlencode([(name, value) for name, value in parse_qsl(url.query) if name in _KEPT_QUERY])
        path = url.path + (f"?{query}" if query else "")  # a key may stand in the query
        return json.dumps({**self._asdict(), "path": path, "response": text})

    def without(self, secrets: Iterable[str]) -> "Exchange":
        """Return the exchange with `***` in the place of each secret, also where it is escaped.

        Example:
            >>> echo = Exchange("openai", "/v1", {}, 401, "text/plain", b"Bad key: sk-12345")
            >>> echo.without(["sk-12345"]).response
            b'Bad key: ***'
        """
        forms = {form for secret in secrets for form in _forms(secret)}
        if not forms:
            return self
        found = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))
        response = found.sub("***", self.response.decode("utf-8", "surrogateescape"))
        return self._replace(
            path=found.sub("***", self.path),
            request=json.loads(found.sub("***", json.dumps(self.request))),
            response=response.encode("utf-8", "surrogateescape"),
        )

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
    text = lines.decode("utf-8", "replace") if isinstance(lines, bytes) else lines
    for number, line in enumerate(text.splitlines() if isinstance(text, str) else text, 1):
        if not line.strip():
            continue
        exchange = _exchange_in(line)
        if exchange is None:
            fix = "Record with LoopbackProvider(script, record=path)."
            told = f"line {number} of the recording is not an exchange"
            raise LoopbackError(told, code="unreadable_recording", fix=fix)
        yield exchange


_FIELDS = {"wire": str, "path": str, "request": dict, "status": int, "content_type": str, "response": str}


def _exchange_in(line: str) -> Exchange | None:
    try:
        known: Any = json.loads(line)
        if not is_object(known) or not all(isinstance(known.get(f), kind) for f, kind in _FIELDS.items()):
            return None
        response = known["response"].encode("utf-8", "surrogateescape")
    except (ValueError, RecursionError):  # no JSON, too deep, or half of a surrogate pair
        return None
    return Exchange(**{**{name: known[name] for name in _FIELDS}, "response": response})


def record(path: Path, received: Received, response: Response) -> None:
    """Write a request and its response, without their secrets, at the end of a recording."""
    body = b"".join(response.chunks)
    told = received.wire, received.path, received.body, response.status, response.content_type, body
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{Exchange(*told).without(secrets_of(received)).line()}\n")


def secrets_of(received: Received) -> set[str]:
    """Return what may be a key or a part of one among the headers and in the path of a request."""
    named = [*received.headers.items(), *parse_qsl(urlsplit(received.path).query)]
    values = [value for name, value in named if _SECRET.search(name)] + list(_secret_members(received.body))
    words = {word for value in values for word in re.split(r"[\s,;]+", value)}
    words |= {word.partition("=")[2] for word in words}  # as in `session=...` of a cookie
    # Some write headers in Latin-1.
    words |= {word.encode("utf-8", "surrogateescape").decode("latin-1") for word in words}
    return {word for word in words if len(word) >= _SHORTEST_SECRET and word != LOOPBACK_KEY}


def _secret_members(body: Any) -> Iterator[str]:
    """Yield the texts in a body that stand under the name of a secret, or in an address, at any depth."""
    pending: list[tuple[str, Any]] = [("", body)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, str):
            if _SECRET_MEMBER.search(name):
                yield value
            yield from (secret for found in _SECRET_IN_TEXT.findall(value) for secret in found if secret)
        elif is_object(value):
            pending += value.items()
        elif is_array(value):
            pending += [(name, item) for item in value]


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as a text, an address, HTML, base64 and JSON write it, also JSON in a text of JSON."""
    octets = secret.encode("utf-8", "surrogateescape")  # a header may be no UTF-8
    yield from (secret, quote(octets, safe=""), escape(secret))
    yield from (encode(octets).decode() for encode in (b64encode, urlsafe_b64encode))
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield from (once, json.dumps(once, ensure_ascii=ascii_only)[1:-1], once.replace("/", "\\/"))


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
