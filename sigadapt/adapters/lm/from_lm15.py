"""Decide what to read of an lm15 Response: the provider's body that it keeps, or its message parts.

lm15 keeps the provider's body as `provider_data`. That body is read if it is complete, because lm15's message
parts hold decoded arguments, rewritten where they could not be decoded. A streamed answer keeps only its last
event, and a cached or custom one may keep nothing. Then the parts are read, as a chat completion.
"""

from collections.abc import Sequence
from typing import Any, TypeGuard

from dspy import lm15

from sigadapt.providers.provider import JsonText, Reading
from sigadapt.providers.reading import joined, ran_itself
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json


def is_lm15(response: object) -> TypeGuard[lm15.Response]:
    """Return whether a response is an lm15 Response."""
    return isinstance(response, lm15.Response)


def if_whole(reading: Reading, response: lm15.Response) -> Reading | None:
    """Return the Reading of `provider_data` if it holds the complete answer, else None."""
    # The last event of a streamed answer may look like a body (Gemini's does), but lacks calls or text.
    parts = response.message.parts
    names = [part.name for part in parts if part.type == "tool_call"]
    read = [name for _, name, _ in reading.calls]
    if read != names and not _is_part_of(_without_own(parts), read):
        return None
    text = _text(parts) if len(names) < len(parts) else None
    if text is not None and _squeezed(text) not in _squeezed(_all_text(reading)):
        return None
    return _cut(reading, text)


def _without_own(parts: Sequence[Any]) -> list[str]:
    """Return the names of the calls that the provider did not run itself."""
    return [part.name for part in parts if part.type == "tool_call" and not ran_itself(part.id)]


def _is_part_of(names: list[str], read: list[Any]) -> bool:
    """Return whether all names are among those that were read, in order: lm15 has no place for some calls."""
    # It writes a name as text that is none.
    rest = map(str, read)
    return all(name in rest for name in names)


def as_shown(reading: Reading, response: lm15.Response) -> Reading:
    """Return a Reading with its text cut where DSPy applied a stop sequence."""
    return _cut(reading, _text(response.message.parts))


def _cut(reading: Reading, text: str | None) -> Reading:
    return reading._replace(text=text) if text and (reading.text or "").startswith(text) else reading


def _all_text(reading: Reading) -> str:
    return f"{reading.commentary or ''}{reading.text or ''}"


def _squeezed(text: str) -> str:
    """Return a text without white space: lm15 joins blocks without the blank line that a Reading has."""
    return "".join(text.split())


def body_of_parts(response: lm15.Response, finish: str | None) -> Json:
    """Return the message parts of an lm15 Response as a chat completion."""
    # lm15 writes arguments that it could not decode as `{"partial_json": text}`; here they become that text
    # again. It writes arguments that are not an object as `{"value": ...}`, which looks like any other
    # object.
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
