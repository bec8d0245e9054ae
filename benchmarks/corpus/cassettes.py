"""Recorded exchanges of pydantic-ai's tests: bodies of requests and answers, by wire.

Its recordings (VCR cassettes) hold an exchange each or several. Half of the files are taken, chosen by a hash
of their paths; the other half is kept for blind tests and read by nobody who works on sigadapt.
"""

import base64
import hashlib
import json
from collections.abc import Generator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from benchmarks.corpus.clones import Clone

# The end of a request's path, and the wire that is spoken there.
WIRES = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic"),
    ("/converse", "bedrock-converse"),
    ("/converse-stream", "bedrock-converse"),
    ("/api/chat", "ollama"),
    ("/v2/chat", "cohere"),
)
LARGEST = 6_000_000  # bytes of a cassette; the few larger ones are images


class Recorded(NamedTuple):
    """One exchange of a cassette."""

    id: str
    wire: str
    path: str
    host: str
    status: int | None
    request: Any
    response: Any
    is_ours: bool

    @property
    def is_stream(self) -> bool:
        """Whether the answer came in pieces."""
        return not isinstance(self.response, dict)


def recorded(pydantic_ai: Clone) -> Generator[Recorded]:
    """Yield the exchanges of all cassettes in the order of their paths, those of the other half too."""
    paths = [path for path in pydantic_ai.paths() if "cassettes" in path and path.endswith(".yaml")]
    for path, content in pydantic_ai.read_all(paths):
        if len(content) > LARGEST:
            continue
        is_ours = hashlib.sha256(path.encode()).digest()[0] % 2 == 0
        cassette = yaml.load(content, yaml.CSafeLoader)
        for number, exchange in enumerate(cassette.get("interactions") or ()):
            request = exchange.get("request") or {}
            response = exchange.get("response") or {}
            address = urlsplit(str(request.get("uri", "")))
            wire = _wire(address.path)
            status = (response.get("status") or {}).get("code")
            if wire is None or status not in (200, None):
                continue
            yield Recorded(
                id=f"{path.partition('cassettes/')[2]}#{number}",
                wire=wire,
                path=address.path,
                host=address.hostname or "",
                status=status,
                request=_body(request),
                response=_body(response),
                is_ours=is_ours,
            )


def _wire(path: str) -> str | None:
    if "enerateContent" in path:
        return "gemini"
    return next((wire for ending, wire in WIRES if path.endswith(ending)), None)


def _body(message: dict[str, Any]) -> Any:
    body = message.get("parsed_body")
    if body is None:
        body = message.get("body")
    if isinstance(body, dict) and "base64_string" in body:
        body = base64.b64decode(body["base64_string"])
    elif isinstance(body, dict) and "string" in body:
        body = body["string"]
    if isinstance(body, bytes):
        try:
            body = body.decode()
        except UnicodeDecodeError:  # a stream of binary events
            return None
    if isinstance(body, str):
        try:
            return json.loads(body)
        except ValueError:
            return body
    return body
