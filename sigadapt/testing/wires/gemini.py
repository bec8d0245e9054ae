"""Gemini's generateContent and streamGenerateContent (with alt=sse).

Source: the Gemini API reference, "GenerateContentResponse", and google.rpc.Code for the status words. A call
is one object, in a stream too; parallel calls share one event. With calls the finish reason is STOP.
Calls have no id.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sigadapt.testing.answers import Answer, Received
from sigadapt.testing.wires.wire import SSE, Event, sse

PATH = re.compile(
    r"(/v1|/v1beta|/v1alpha)?/models/(?P<model>[^:/?]+)"
    r":(generateContent(\?.*)?|streamGenerateContent\?(.*&)?alt=sse(&.*)?)"
)
STREAM_TYPE = SSE

_FINISH_REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

encode = sse


def streams(path: str, body: Mapping[str, Any]) -> bool:
    return ":streamGenerateContent" in path


def render(answer: Answer, request: Received) -> dict[str, Any]:
    return _body([*_texts(answer, _in_one_piece), *_calls(answer)], answer, request)


def stream(answer: Answer, request: Received) -> Iterable[Event]:
    events = [[part] for part in _texts(answer, answer.pieces)]
    if calls := [*_calls(answer)]:
        events.append(calls)
    if not events:
        events = [[{"text": ""}]]
    for number, content in enumerate(events, 1):
        yield _body(content, answer, request, is_last=number == len(events))


def failure(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "UNKNOWN")}}


def _in_one_piece(text: str | None) -> Iterable[str]:
    return () if text is None else (text,)


def _texts(answer: Answer, split: Callable[[str | None], Iterable[str]]) -> Iterator[dict[str, Any]]:
    for text in split(answer.reasoning):
        yield {"text": text, "thought": True}
    # Gemini signs the first call, or the first text of an answer without calls.
    signature = {} if answer.calls else _signature(answer)
    for text in split(answer.text):
        yield {"text": text, **signature}
        signature = {}


def _calls(answer: Answer) -> Iterator[dict[str, Any]]:
    signature = _signature(answer)
    for call in answer.calls:
        function: dict[str, Any] = {"name": call.name, "args": call.object}
        if call.id is not None:
            function = {"id": call.id, **function}
        yield {"functionCall": function, **signature}
        signature = {}


def _signature(answer: Answer) -> dict[str, str]:
    return {} if answer.signature is None else {"thoughtSignature": answer.signature}


def _body(
    content: list[dict[str, Any]], answer: Answer, request: Received, *, is_last: bool = True
) -> dict[str, Any]:
    input_tokens, output_tokens = answer.usage
    candidate: dict[str, Any] = {"content": {"parts": content, "role": "model"}, "index": 0}
    if is_last:
        candidate["finishReason"] = _FINISH_REASONS.get(answer.reason, answer.reason)
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input_tokens,
            "candidatesTokenCount": output_tokens,
            "totalTokenCount": input_tokens + output_tokens,
        },
        "modelVersion": request.model,
        "responseId": f"response-{request.number}",
    }
