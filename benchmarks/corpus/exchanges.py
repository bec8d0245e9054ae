"""The corpus of exchanges: recorded answers, each with what a reader of its own finds in it."""

import json
import re
from collections.abc import Generator, Iterable
from typing import Any

from benchmarks.corpus.answer_reader import UnreadableError, expected
from benchmarks.corpus.cassettes import Recorded

LONGEST = 120_000  # characters of a request and its answer
TOKEN = re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}")


def exchanges(recordings: Iterable[Recorded]) -> Generator[dict[str, Any]]:
    """Yield a row for each exchange with tools or calls, each exchange once."""
    seen: set[str] = set()
    for each in recordings:
        if not isinstance(each.request, dict) or not each.response:
            continue
        request = _without_tokens(each.request)
        response = _without_tokens(each.response)
        pair = json.dumps([request, response], sort_keys=True)
        if pair in seen or len(pair) > LONGEST:
            continue
        seen.add(pair)
        try:
            found = expected(each.wire, request, response)
        except UnreadableError:
            continue
        has_tools = found["calls"] or request.get("tools") or request.get("toolConfig")
        if not each.is_ours or not has_tools:
            continue
        yield {
            "id": each.id,
            "dialect": each.wire,
            "host": each.host,
            "status": each.status,
            "stream": each.is_stream,
            "request": request,
            "response": response,
            "expected": found,
        }


def _without_tokens(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_tokens(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_tokens(inner) for inner in value]
    return TOKEN.sub("ghp_redacted", value) if isinstance(value, str) else value
