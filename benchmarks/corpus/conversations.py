"""The corpus of recorded conversations: requests that a client sent, with their answers.

Payloads are cut, and keys and addresses are taken out.
"""

import json
import re
from collections.abc import Generator, Iterable
from typing import Any

from benchmarks.corpus.cassettes import Recorded

WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse")
NOT_ASKED = ("model", "stream", "stream_options")  # two requests that differ in these ask the same
LONGEST = 60_000  # characters of a request and its answer
LONGEST_TEXT = 20_000  # characters of a string without white space, such as an image in Base64
REGISTRY = re.compile(r"\bpypi\.[a-z.]*org\b")
SECRET = re.compile(
    r"gh[pousr]_[A-Za-z0-9_]{16,}|sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{12,}|Bearer [A-Za-z0-9._-]{10,}"
)


def conversations(recordings: Iterable[Recorded]) -> Generator[dict[str, Any]]:
    """Yield a row for each request, each request once."""
    seen: set[str] = set()
    for each in recordings:
        if each.wire not in WIRES or not isinstance(each.request, dict) or not each.response:
            continue
        request = _cleaned(each.request)
        response = _cleaned(each.response)
        asked = {key: value for key, value in request.items() if key not in NOT_ASKED}
        mark = json.dumps([each.wire, asked], sort_keys=True)
        if mark in seen:
            continue
        seen.add(mark)
        if not each.is_ours or len(json.dumps([request, response])) > LONGEST:
            continue
        yield {
            "id": each.id,
            "wire": each.wire,
            "host": each.host,
            "model": request.get("model"),
            "stream": each.is_stream,
            "request": request,
            "response": response,
        }


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT and not re.search(r"\s", value[:2000]):
            head, comma, payload = value.partition(",")
            value = head + comma + payload[:64] if value.startswith("data:") else value[:64]
        return REGISTRY.sub("registry.example", SECRET.sub("redacted", value))
    return value
