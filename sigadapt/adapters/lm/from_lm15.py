"""An lm15 Response beside the provider's body it was made from: which to read, and how.

lm15 keeps the provider's body as `provider_data`, and that is what to read: lm15 makes the message parts of
it by decoding the arguments and rewriting those it cannot decode. But a streamed answer keeps only its last
event there, and a cached or custom one may keep nothing. Then the parts are all there is; they are put into
the shape of a chat completion.
"""

from typing import Any, TypeGuard

from dspy import lm15

from sigadapt.providers.provider import JsonText, Reading
from sigadapt.providers.reading import joined
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json


def is_lm15(response: object) -> TypeGuard[lm15.Response]:
    """Say whether a response is lm15's."""
    return isinstance(response, lm15.Response)


def if_whole(reading: Reading, response: lm15.Response) -> Reading | None:
    """Return the reading of `provider_data` if that is the whole answer, else None.

    Its text is cut where DSPy applied a stop sequence. The last event of a streamed answer may look like a
    body (Gemini's does), and lacks calls or text.
    """
    parts = response.message.parts
    names = [part.name for part in parts if part.type == "tool_call"]
    if [name for _, name, _ in reading.calls] != names:
        return None
    text = _text(parts) if len(names) < len(parts) else None
    return _cut(reading, text) if text is None or text in (reading.text or "") else None


def as_shown(reading: Reading, response: lm15.Response) -> Reading:
    """Return a body's reading with its text cut where DSPy applied a stop sequence."""
    return _cut(reading, _text(response.message.parts))


def _cut(reading: Reading, text: str | None) -> Reading:
    return reading._replace(text=text) if text and (reading.text or "").startswith(text) else reading


def body_of_parts(response: lm15.Response, finish: str | None) -> Json:
    """Return the chat completion that the message parts amount to.

    Arguments that lm15 could not decode, `{"partial_json": text}`, are that text again. What it wrote as
    `{"value": ...}` for arguments that are no object cannot be told from an object.

    Args:
        response: the response.
        finish: the provider's finish reason where its last event tells; lm15 writes `tool_call` over
            `length`.
    """
    parts = response.message.parts
    calls = [
        {"id": part.id, "function": {"name": part.name, "arguments": _arguments(part.input)}}
        for part in parts
        if part.type == "tool_call"
    ]
    thinking = joined(part.text for part in parts if part.type == "thinking")
    message = {"content": _text(parts), "reasoning_content": thinking, "tool_calls": calls}
    finish = finish or response.finish_reason
    return {
        "choices": [{"message": message, "finish_reason": "tool_calls" if finish == "tool_call" else finish}]
    }


def _text(parts: Any) -> str | None:
    return joined(part.text for part in parts if part.type in {"text", "refusal"})


def _arguments(sent: Json) -> Any:
    text = sent.get("partial_json")
    if len(sent) == 1 and isinstance(text, str) and not isinstance(parse_arguments(text), dict):
        return JsonText(text)
    return sent
