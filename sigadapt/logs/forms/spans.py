"""Spans: of OpenTelemetry's conventions for GenAI, and of OpenInference, as SDKs and exporters write them.

A row is a span with `attributes`, an object or a list of keys and values; a line of the OTLP file exporter,
with `resourceSpans`; or a row of Phoenix, whose members begin with `attributes.`. Attributes have names with
dots (`llm.input_messages.0.message.role`), or are nested.

Sources: "Semantic conventions for generative client AI spans" and its JSON schemas of messages; the semantic
conventions of OpenInference (openinference-semantic-conventions 0.1.42); read on 2026-11-24.
"""

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
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.json_values import Json, compact, is_array, is_object

_PREFIX = "attributes."
_SETTINGS = ("model", "temperature", "top_p", "max_tokens", "seed")
_REASONS = {"tool_call": "tool_calls"}


def _is_span(row: Json) -> bool:
    if isinstance(row.get("attributes"), (dict, list)) or "resourceSpans" in row:
        return True
    return any(name.startswith(_PREFIX) for name in row)


def _exchanges(row: Json) -> Iterator[RawExchange]:
    if "resourceSpans" in row:
        yield from _of_exporter(row)
    else:
        yield _of_span(row)


def _of_exporter(row: Json) -> Iterator[RawExchange]:
    """Yield the exchanges of the file exporter's line; its other spans are passed over if it has any."""
    scopes = [scope for each in objects(row["resourceSpans"]) for scope in objects(each.get("scopeSpans"))]
    spans = [span for scope in scopes for span in objects(scope.get("spans"))]
    models = [span for span in spans if _calls_model(_attributes_of(span))]
    if not models:
        raise missing("an export of spans", "none of them has messages")
    for span in models:
        yield _of_span(span)


def _calls_model(attributes: Json) -> bool:
    conventions = an_object(attributes.get("gen_ai"))
    return any(key in conventions for key in ("input", "output")) or "llm" in attributes


def _of_span(row: Json) -> RawExchange:
    attributes = _attributes_of(row)
    conventions = an_object(attributes.get("gen_ai"))
    kind = an_object(an_object(attributes.get("openinference")).get("span")).get("kind")
    if kind is not None and kind != "LLM":
        raise missing(
            f"a span of OpenInference of the kind {kind}", "only spans of the kind LLM have messages"
        )
    if kind or "llm" in attributes:
        request, response = _of_openinference(attributes)
        name = an_object(attributes.get("session")).get("id")
    else:
        request, response = _of_conventions(conventions)
        name = an_object(conventions.get("conversation")).get("id")
    moment = first_of(row, "start_time", "startTimeUnixNano", "startTime")
    return RawExchange(request, response, text_or_none(name), seconds_of(moment))


def _attributes_of(row: Json) -> Json:
    """Return the attributes of a span, nested."""
    attributes: Any = row.get("attributes")
    if is_array(attributes):  # [{"key": "llm.model_name", "value": {"stringValue": "m"}}]
        pairs = {str(entry.get("key")): _plain(entry.get("value")) for entry in objects(attributes)}
        return _tree_of(pairs)
    if is_object(attributes):
        return _tree_of(attributes)
    named = {name[len(_PREFIX) :]: value for name, value in row.items() if name.startswith(_PREFIX)}
    return _tree_of(named)


def _plain(value: Any) -> Any:
    """Return a value of OTLP's JSON as plain JSON."""
    for kind, content in an_object(value).items():
        if kind == "arrayValue":
            return [_plain(entry) for entry in objects(an_object(content).get("values"))]
        if kind == "kvlistValue":
            entries = objects(an_object(content).get("values"))
            return {str(entry.get("key")): _plain(entry.get("value")) for entry in entries}
        return int(content) if kind == "intValue" else content
    return None


def _tree_of(value: Any) -> Any:
    """Return a value whose names with dots are nested objects, and objects of numbers arrays."""
    if is_array(value):
        return [_tree_of(entry) for entry in value]
    if not is_object(value):
        return value
    tree: Json = {}
    for path, content in value.items():
        *steps, last = path.split(".")
        branch = tree
        for step in steps:
            child = branch.setdefault(step, {})
            if not is_object(child):  # `llm.tools` may be a value, and `llm.tools.0` stand beside it
                child = branch[step] = {}
            branch = child
        child = _tree_of(content)
        if is_object(child) and is_object(branch.get(last)):
            child = {**branch[last], **child}
        branch[last] = child
    return _with_arrays(tree)


def _with_arrays(tree: Json) -> Any:
    branches = {key: _with_arrays(child) if is_object(child) else child for key, child in tree.items()}
    if not branches or not all(key.isdecimal() and len(key) < 8 for key in branches):
        return branches
    return [branches[key] for key in sorted(branches, key=int)]


# {"attributes": {"gen_ai.input.messages": "[{\"role\": \"user\", \"parts\": [{\"type\": \"text\",
#   \"content\": \"Weather?\"}]}]", "gen_ai.output.messages": ..., "gen_ai.tool.definitions": ...}}
# https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
def _of_conventions(conventions: Json) -> tuple[Json, Json]:
    """Return the request and the answer of a span of OpenTelemetry's conventions, as chat completions."""
    given = _entries(an_object(conventions.get("input")).get("messages"))
    answers = _entries(an_object(conventions.get("output")).get("messages"))
    if not given:
        raise missing("a span", "its messages are missing (gen_ai.input.messages or llm.input_messages)")
    if not answers:
        raise missing("a span of OpenTelemetry", "the answer is missing (gen_ai.output.messages)")
    instructions = _entries(conventions.get("system_instructions"))
    system = "\n\n".join(str(part.get("content")) for part in instructions)
    messages = [{"role": "system", "content": system}] if system else []
    for message in given:
        messages += _rows(message)
    request: Json = {"messages": messages}
    definitions = _entries(an_object(conventions.get("tool")).get("definitions"))
    if tools := [*_functions(definitions)]:
        request["tools"] = tools
    sent = an_object(conventions.get("request"))
    request |= {name: sent[name] for name in _SETTINGS if sent.get(name) is not None}
    choices: list[Json] = []
    for message in answers:
        reason = message.get("finish_reason")
        choices += [
            {"message": row, "finish_reason": _REASONS.get(str(reason), reason)} for row in _rows(message)
        ]
    return request, {"choices": choices}


def _entries(value: Any) -> list[Json]:
    return objects(decoded_text(value))


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
            calls.append(_call(part.get("id"), part.get("name"), arguments))
        elif kind == "text":
            content.append({"type": "text", "text": str(part.get("content") or "")})
        elif kind in ("blob", "uri"):
            address = part.get("uri") or f"data:{part.get('mime_type')};base64,{part.get('content')}"
            content.append({"type": "image_url", "image_url": {"url": address}})
    if content or calls:
        yield _row(message.get("role"), content, calls)


def _row(role: Any, content: list[Json], calls: list[Json]) -> Json:
    """Return a message of chat completions; content that is text alone is a text."""
    row: Json = {"role": role, "content": content}
    texts = [part.get("text") for part in content]
    if None not in texts:
        row["content"] = "".join(map(str, texts))
    if calls:
        row["tool_calls"] = calls
    return row


def _call(call_id: Any, name: Any, arguments: Any) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": _text_of(arguments)}}


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)


# {"attributes": {"openinference.span.kind": "LLM", "llm.model_name": "m",
#   "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Weather?",
#   "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "get_weather", ...,
#   "llm.tools.0.tool.json_schema": "{\"type\": \"function\", ...}", "llm.invocation_parameters": "{...}"}}
# https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
def _of_openinference(attributes: Json) -> tuple[Any, Any]:
    """Return the request and the answer of a span of OpenInference, as chat completions or as sent."""
    model = an_object(attributes.get("llm"))
    given = [_chat_row(entry) for entry in _entries(model.get("input_messages"))]
    answers = [_chat_row(entry) for entry in _entries(model.get("output_messages"))]
    if not given:
        return _as_sent(attributes)
    if not answers:
        raise missing("a span of OpenInference", "the answer is missing (llm.output_messages)")
    settings = an_object(decoded_text(model.get("invocation_parameters")))
    request: Json = {"model": model.get("model_name"), **settings, "messages": given}
    tools = [
        decoded_text(first_of(an_object(entry.get("tool")), "json_schema"))
        for entry in _entries(model.get("tools"))
    ]
    if tools := [tool for tool in tools if is_object(tool)]:
        request["tools"] = tools
    choices = [
        {"message": row, "finish_reason": "tool_calls" if row.get("tool_calls") else "stop"}
        for row in answers
    ]
    return request, {"choices": choices}


def _as_sent(attributes: Json) -> tuple[Any, Any]:
    """Return the bodies that an instrumentation keeps as `input.value` and `output.value`."""
    request = decoded_text(an_object(attributes.get("input")).get("value"))
    response = decoded_text(an_object(attributes.get("output")).get("value"))
    if not is_object(request) or not is_object(response):
        reason = "its messages are missing (llm.input_messages, or bodies as input.value and output.value)"
        raise missing("a span of OpenInference", reason)
    return request, response


def _chat_row(attribute: Json) -> Json:
    """Return a message of OpenInference as one of chat completions."""
    message = an_object(attribute.get("message")) or attribute
    content: list[Json] = []
    for entry in objects(message.get("contents")):
        part = an_object(entry.get("message_content")) or entry
        image = an_object(an_object(part.get("image")).get("image")) or an_object(part.get("image"))
        if part.get("type") == "text" or "text" in part:
            content.append({"type": "text", "text": str(part.get("text") or "")})
        elif "url" in image:
            content.append({"type": "image_url", "image_url": {"url": image["url"]}})
        else:
            content.append(part)
    if message.get("content") is not None and not content:
        content = [{"type": "text", "text": _text_of(message["content"])}]
    calls: list[Json] = []
    for entry in objects(message.get("tool_calls")):
        call = an_object(entry.get("tool_call")) or entry
        function = an_object(call.get("function"))
        arguments = function.get("arguments")
        calls.append(_call(call.get("id"), function.get("name"), {} if arguments is None else arguments))
    row = _row(message.get("role"), content, calls)
    row |= {name: message[name] for name in ("tool_call_id", "name") if message.get(name)}
    if message.get("function_call_name"):
        arguments = message.get("function_call_arguments_json") or "{}"
        row["function_call"] = {"name": message["function_call_name"], "arguments": _text_of(arguments)}
    return row


FORM = LogForm(_is_span, _exchanges)
