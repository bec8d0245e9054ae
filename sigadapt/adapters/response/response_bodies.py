"""Turn any Response (a dict, an SDK's object, DSPy's legacy output) into its plain body."""

import base64
from typing import Any

import pydantic

from sigadapt.errors import UnreadableResponse
from sigadapt.providers.wire.raw_calls import JsonText
from sigadapt.providers.wire.values import join_texts
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, is_array, is_object


def body_of(response: Any) -> Json:
    """Return the body of a response, or of an event of a stream, as plain dicts and lists."""
    if is_object(response):
        return response
    if isinstance(response, pydantic.BaseModel):
        # By alias, because google-genai's objects use the names of the wire format only as aliases.
        return _as_sent(response.model_dump(by_alias=True, exclude_unset=True, warnings=False))
    if isinstance(response, str):
        return {"text": response}
    raise UnreadableResponse(
        f"expected a model response, got a {type(response).__name__}",
        fix="Pass the body as a dict, or the response object of an SDK or of DSPy.",
    )


def _as_sent(body: Json) -> Json:
    """Return a new dump with its bytes (google-genai's signatures) as base64 text, as they were sent."""
    pending: list[Any] = [body]
    while pending:
        item: Any = pending.pop()
        members: Any = item.items() if is_object(item) else enumerate(item)
        for key, value in list(members):
            if isinstance(value, bytes):
                item[key] = base64.b64encode(value).decode()
            elif isinstance(value, (dict, list)):
                pending.append(value)
    return body


def chat_body(output: Json) -> Json:
    """Return DSPy's legacy output as a chat completion."""
    calls = output.get("tool_calls")
    # Beside dicts, DSPy's legacy output has the call objects of LiteLLM.
    if is_array(calls):
        calls = [*calls]
        for number, call in enumerate(calls):
            if isinstance(call, pydantic.BaseModel):
                calls[number] = body_of(call)
    reasoning = output.get("reasoning_content")
    message = {"content": output.get("text"), "reasoning_content": reasoning, "tool_calls": calls}
    return {"choices": [{"message": message}]}


def body_of_parts(response: Any, finish: str | None) -> Json:
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
    thinking = join_texts(part.text for part in parts if part.type == "thinking")
    message = {"content": text_of_parts(parts), "reasoning_content": thinking, "tool_calls": calls}
    finish = finish or response.finish_reason
    if finish == "tool_call":
        finish = "tool_calls"
    return {"choices": [{"message": message, "finish_reason": finish}]}


def text_of_parts(parts: Any) -> str | None:
    """Return the text in the parts of an lm15 message; None if they have no text."""
    return join_texts([part.text for part in parts if part.type in {"text", "refusal"}])


def _arguments(value: Json) -> Any:
    text = value.get("partial_json")
    if len(value) == 1 and isinstance(text, str) and not isinstance(parse_arguments(text), dict):
        return JsonText(text)
    return value
