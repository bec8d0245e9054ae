"""MLflow: traces as `Trace.to_json` writes them, with the spans of models in them.

A span's inputs and outputs are JSON texts in its attributes. Its autologs keep the arguments of the client's
method, which are a request's body, and the answer's body. Of models that call each other, as those of
google-genai do, the innermost span counts.

Sources: `mlflow/entities/trace.py` and `span.py` of mlflow-tracing 3.17, and traces that its autologs of
OpenAI, Anthropic, google-genai and DSPy wrote.
"""

import re
from collections.abc import Iterator
from typing import Any

from sigadapt.logs.forms.form import (
    LogForm,
    RawExchange,
    decoded_text,
    first_of,
    missing,
    seconds_of,
    text_or_none,
)
from sigadapt.providers import PROVIDERS
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.json_values import Json, is_array, is_object

_NAME = "a trace of MLflow"
_MODELS = ("CHAT_MODEL", "LLM")
_OF_CLIENTS = frozenset(("extra_body", "extra_headers", "extra_query", "timeout"))
"""Arguments of a client's method that are no members of the body."""
_GEMINI_NAMES = ("system_instruction", "tools", "tool_config", "safety_settings", "cached_content")
_VALUES = frozenset(("parameters_json_schema", "response_json_schema", "args", "response"))
"""Members whose values have names of their own."""
_OF_CONFIG = frozenset(
    ("http_options", "should_return_http_response", "automatic_function_calling", "labels")
)


def _is_trace(row: Json) -> bool:
    return bool(_spans_of(row)) or (is_object(row.get("info")) and is_object(row.get("data")))


def _spans_of(row: Json) -> list[Json]:
    spans = first_of(an_object(decoded_text(row.get("data"))), "spans") or row.get("spans")
    return [span for span in objects(decoded_text(spans)) if "attributes" in span]


def _exchanges(row: Json) -> Iterator[RawExchange]:
    chosen: list[tuple[Json, Json]] = []
    for span in _spans_of(row):
        attributes = {name: _attribute(value) for name, value in an_object(span.get("attributes")).items()}
        request = _request_of(attributes)
        if attributes.get("mlflow.spanType") in _MODELS and request is not None:
            chosen.append((span, {**attributes, "request": request}))
    if not chosen:
        raise missing(_NAME, "none of its spans is of a model and has messages as its inputs")
    callers = {first_of(span, "parent_span_id", "parent_id") for span, _ in chosen}
    for span, attributes in chosen:
        if (span.get("span_id") or an_object(span.get("context")).get("span_id")) in callers:
            continue
        response = _response_of(attributes.get("mlflow.spanOutputs"))
        moment = seconds_of(first_of(span, "start_time_unix_nano", "start_time"))
        yield RawExchange(attributes["request"], response, _session_of(row), moment)


def _attribute(value: Any) -> Any:
    """Return an attribute, which is a JSON text, also one of a text."""
    if isinstance(value, str) and value[:1] == '"':
        return decoded_text(value[1:-1])
    return decoded_text(value)


def _session_of(row: Json) -> str | None:
    info = an_object(row.get("info"))
    metadata = an_object(first_of(info, "trace_metadata", "request_metadata"))
    return text_or_none(metadata.get("mlflow.trace.session"))


def _request_of(attributes: Json) -> Json | None:
    """Return the request in a span's inputs; None if they hold none."""
    inputs = an_object(attributes.get("mlflow.spanInputs"))
    request = {name: value for name, value in inputs.items() if name not in _OF_CLIENTS and value is not None}
    if is_object(request.get("config")):  # of google-genai
        request |= _of_gemini(request.pop("config"))
        request = _wire_form(request)
    request.setdefault("model", attributes.get("mlflow.llm.model") or attributes.get("model") or "")
    if not any(provider.is_request(request) for provider in PROVIDERS):
        return None
    tools = attributes.get("mlflow.chat.tools")
    if "tools" not in request and is_array(tools) and "messages" in request:
        request["tools"] = tools
    return request


def _of_gemini(config: Json) -> Json:
    """Return the config of google-genai as members of the body."""
    members = {name: value for name, value in config.items() if value is not None and name not in _OF_CONFIG}
    body: Json = {name: members.pop(name) for name in _GEMINI_NAMES if name in members}
    if isinstance(body.get("system_instruction"), str):
        body["system_instruction"] = {"parts": [{"text": body["system_instruction"]}]}
    return {**body, "generationConfig": members} if members else body


def _wire_form(value: Any) -> Any:
    """Return a value of google-genai as it was sent: in camel case, without members that were not set."""
    if is_array(value):
        return [_wire_form(entry) for entry in value]
    if not is_object(value):
        return value
    members: Json = {}
    for name, member in value.items():
        if member is not None:
            wire_name = re.sub("_([a-z])", lambda match: match[1].upper(), name)
            members[wire_name] = member if name in _VALUES else _wire_form(member)
    return members


def _response_of(outputs: Any) -> Any:
    if is_array(outputs) and outputs:  # DSPy's, a text or an object for each answer
        outputs = outputs[0]
    if outputs is None:
        raise missing(_NAME, "the span of its model has no outputs: the answer is missing")
    if is_object(outputs) and is_object(outputs.get("provider_data")):  # DSPy's typed answer
        return outputs["provider_data"]
    if is_object(outputs) and "sdk_http_response" in outputs:  # of google-genai
        return _wire_form(outputs)
    return {"text": outputs} if isinstance(outputs, str) else outputs


FORM = LogForm(_is_trace, _exchanges)
