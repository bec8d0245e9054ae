"""Exchanges in lines of a log: a request and its answer, whatever wrote the line.

| form | a line has |
|---|---|
| pairs, a loopback provider's recordings | `request`, and `response`: a body, its text, or that of a stream |
| LiteLLM's standard logging payload | `messages`, `response`, `model_parameters` |
| a span of OpenTelemetry's conventions for GenAI | `attributes` with `gen_ai.input.messages` |

Sources: `StandardLoggingPayload` of litellm 1.106; "Semantic conventions for generative client AI spans" and
its JSON schemas of messages, read on 2026-11-23. Secrets of a request are masked before it is read.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from sigadapt.adapters.response.choice import Choice, choice_from_response, choice_from_stream
from sigadapt.errors import InvalidHistory
from sigadapt.logs.conversation import Conversation, conversation_from_request
from sigadapt.providers.wire.values import objects
from sigadapt.schemas.json_values import Json, compact, is_object
from sigadapt.trust.masking import Masking

_SUCCEEDED = ("200", "success")


class LoggedExchange(NamedTuple):
    """A recorded request and its answer."""

    conversation: Conversation
    choice: Choice
    name: str | None  # of the conversation, if the log has one
    time: float  # when it was, in the log's own clock; 0 if it does not say
    secrets: frozenset[str]  # of the request


def exchange_in(line: str) -> LoggedExchange:
    """Read a line; a SigadaptError or a ValueError says why it is no exchange."""
    row: Any = json.loads(line)
    status = row.get("status") if is_object(row) else "no object"
    if status is not None and str(status) not in _SUCCEEDED and not is_object(status):
        raise InvalidHistory(f"it holds no exchange that succeeded ({status})", code="unreadable_request")
    request, response = _request_and_response(row)
    if not is_object(request):
        raise InvalidHistory("its request is no object", code="unreadable_request")
    masking = Masking({}, "")
    conversation = conversation_from_request(masking.request(request))
    if isinstance(response, str):
        with suppress(ValueError):
            response = json.loads(response)
    read: Any = choice_from_response if is_object(response) else choice_from_stream
    choice = read(response)
    answer: Json = response if is_object(response) else {}
    times = (row.get("startTime"), answer.get("created"), answer.get("created_at"))
    return LoggedExchange(
        conversation,
        choice,
        name=_name_in(row),
        time=next((float(time) for time in times if isinstance(time, (int, float))), 0.0),
        secrets=frozenset(masking.secrets),
    )


def _request_and_response(row: Json) -> tuple[Any, Any]:
    attributes = row.get("attributes")
    if is_object(attributes):
        return _of_span(attributes)
    request = row.get("request")
    if request is None:
        settings: Json = row.get("model_parameters") or {}
        request = {"model": row.get("model"), **settings, "messages": row.get("messages")}
    return request, row.get("response")


def _name_in(row: Json) -> str | None:
    """Return the id that a line gives its conversation."""
    attributes: Any = row.get("attributes") or {}
    name = row.get("conversation") or attributes.get("gen_ai.conversation.id")
    return None if name is None else str(name)


# {"attributes": {"gen_ai.input.messages": "[{\"role\": \"user\", \"parts\": [{\"type\": \"text\",
#   \"content\": \"Weather?\"}]}]", "gen_ai.output.messages": ..., "gen_ai.tool.definitions": ...}}
# https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
def _of_span(attributes: Json) -> tuple[Json, Json]:
    """Return a span's request and answer as those of chat completions."""

    def objects_in(name: str) -> list[Json]:
        value = attributes.get(f"gen_ai.{name}")
        if isinstance(value, str):
            value = json.loads(value)
        return objects(value)

    system = "\n\n".join(str(part.get("content")) for part in objects_in("system_instructions"))
    messages = [{"role": "system", "content": system}] if system else []
    for message in objects_in("input.messages"):
        messages += _rows(message)
    request: Json = {"messages": messages}
    if tools := [*_functions(objects_in("tool.definitions"))]:
        request["tools"] = tools
    for name in ("model", "temperature", "top_p", "max_tokens", "seed"):
        if (value := attributes.get(f"gen_ai.request.{name}")) is not None:
            request[name] = value
    choices: list[Json] = []
    for message in objects_in("output.messages"):
        reason = message.get("finish_reason")
        if reason == "tool_call":
            reason = "tool_calls"
        choices += [{"message": row, "finish_reason": reason} for row in _rows(message)]
    return request, {"choices": choices}


def _functions(definitions: list[Json]) -> Iterator[Json]:
    """Yield a span's definitions of tools as those of chat completions; those without a type are none."""
    for definition in definitions:
        function = dict(definition.get("function") or definition)
        if function.pop("type", 1):
            yield {"type": "function", "function": function}


def _rows(message: Json) -> Iterator[Json]:
    """Yield a span's message as messages of chat completions."""
    content: list[Json] = []
    calls: list[Json] = []
    for part in objects(message.get("parts")):
        kind = part.get("type")
        if kind == "tool_call_response":
            response = part.get("response", part.get("result"))
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": _text_of(response)}
        elif kind == "tool_call":
            arguments = part.get("arguments")
            if arguments is None:
                arguments = {}
            function = {"name": part.get("name"), "arguments": _text_of(arguments)}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
        elif kind == "text":
            content.append({"type": "text", "text": str(part.get("content") or "")})
        elif kind in ("blob", "uri"):
            address = part.get("uri") or f"data:{part.get('mime_type')};base64,{part.get('content')}"
            content.append({"type": "image_url", "image_url": {"url": address}})
    if not content and not calls:
        return
    row: Json = {"role": message.get("role"), "content": content}
    texts = [part.get("text") for part in content]
    if None not in texts:
        row["content"] = "".join(map(str, texts))
    if calls:
        row["tool_calls"] = calls
    yield row


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)
