"""One exchange as pure functions: parse a request to a `Received`, write a reply as a `Response`."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from sigadapt.schemas.json_values import is_object
from sigadapt.testing.answers import Answer, Failure, LoopbackError, Reply, dumps
from sigadapt.testing.script import Received
from sigadapt.testing.wires import WIRES
from sigadapt.testing.wires.wire import Wire

JSON = "application/json"


class Response(NamedTuple):
    """An HTTP response; the body of a stream has one chunk for each event."""

    status: int
    content_type: str
    chunks: list[bytes]


def read(number: int, wire: Wire, path: str, headers: Mapping[str, str], content: bytes) -> Received:
    """Parse a request; a LoopbackError says that its body is not a JSON object."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not is_object(body):
        raise LoopbackError(f"the body sent to {path} is not a JSON object", code="unreadable_request")
    match = wire.format.PATH.fullmatch(path)
    groups = match.groupdict() if match else {}
    return Received(
        number=number,
        wire=wire.name,
        path=path,
        headers={name.lower(): value for name, value in headers.items()},
        body=body,
        model=groups.get("model") or str(body.get("model", "")),
        stream=wire.format.streams(path, body),
    )


def write(reply: Reply, wire: Wire, request: Received) -> Response:
    """Write a reply in the wire's format, whole or streamed; a LoopbackError says that it cannot be."""
    form = wire.format
    if isinstance(reply, Answer):
        if request.stream:
            return Response(200, form.STREAM_TYPE, list(form.encode(form.stream(reply, request))))
        return _whole(200, form.render(reply, request))
    if isinstance(reply, Failure):
        body = form.failure(reply.status, reply.message) if reply.body is None else reply.body
        return _whole(reply.status, body)
    if isinstance(reply, bytes):
        content_type = form.STREAM_TYPE if request.stream else JSON
        return Response(200, content_type, [reply])
    if isinstance(reply, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (a script may be untyped)
        return _whole(200, reply)
    raise LoopbackError(f"a script replies with Answer, Failure, dict or bytes, not {type(reply).__name__}")


def refuse(error: Exception, wire: Wire | None) -> Response:
    """Write an error of the script or of the request, in the wire's error shape, for the client to see."""
    status = {"unknown_path": 404, "unreadable_request": 400}.get(getattr(error, "code", ""), 500)
    form = (wire or WIRES["openai"]).format
    return _whole(status, form.failure(status, f"loopback provider: {type(error).__name__}: {error}"))


def _whole(status: int, body: Mapping[str, Any] | bytes) -> Response:
    content = body if isinstance(body, bytes) else dumps(body).encode()
    return Response(status, JSON, [content])
