"""Langfuse: observations as its API and its exports write them, alone or inside of their trace.

The API writes names in camel case and values as JSON, also in pages of a list (`data`); exports to a blob
storage or a file write names in snake case, and may write values as JSON texts. A generation's `input` is
what an integration made of the request: messages, an object of messages and tools, or the request itself.
Its `output` is the model's message, its text, or the whole answer.

Sources: `langfuse/openai.py` and `langfuse/langchain/CallbackHandler.py` of langfuse-python; "Blob storage
export field reference" of Langfuse; read on 2026-11-24.
"""

from collections.abc import Iterator
from typing import Any

from sigadapt.logs.forms.form import (
    LogForm,
    RawExchange,
    answer_of,
    decoded_text,
    first_of,
    missing,
    seconds_of,
    text_or_none,
)
from sigadapt.providers import PROVIDERS
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.json_values import Json, compact, is_array, is_object

_NAME = "an observation of Langfuse"
_TYPES = ("GENERATION", "generation")
_PLACES = frozenset(("traceId", "trace_id", "observations", "modelParameters", "model_parameters"))
_UNSET = ("Infinity", "", None)


def _is_langfuse(row: Json) -> bool:
    if is_array(row.get("observations")) or _is_page(row):
        return True
    has_values = "input" in row and "output" in row
    return row.get("type") in _TYPES or (has_values and not _PLACES.isdisjoint(row))


def _is_page(row: Json) -> bool:
    """Return whether a row is a page of the API's list of observations."""
    entries = objects(row.get("data"))
    return bool(entries) and all("type" in entry and not _PLACES.isdisjoint(entry) for entry in entries)


def _exchanges(row: Json) -> Iterator[RawExchange]:
    entries = row.get("observations", row.get("data"))
    if not is_array(entries):
        yield _of_observation(row, row)
        return
    observations = [each for each in objects(entries) if each.get("type") in _TYPES]
    if not observations:
        raise missing("a trace of Langfuse", "none of its observations is a generation")
    for observation in observations:
        yield _of_observation(observation, row)


def _of_observation(row: Json, trace: Json) -> RawExchange:
    kind = row.get("type")
    if kind is not None and kind not in _TYPES:
        raise missing(f"{_NAME} of the type {kind}", "only generations have messages and an answer")
    request = _request_of(row)
    session = first_of(row, "sessionId", "session_id") or first_of(trace, "sessionId", "session_id")
    moment = first_of(row, "startTime", "start_time")
    return RawExchange(request, _response_of(row), text_or_none(session), seconds_of(moment))


def _request_of(row: Json) -> Json:
    given = decoded_text(row.get("input"))
    request: Json = {"messages": given} if is_array(given) else an_object(given)
    if not any(provider.is_request({"model": "", **request}) for provider in PROVIDERS):
        raise missing(_NAME, "its input holds no messages")
    model = first_of(row, "model", "provided_model_name", "providedModelName")
    settings = an_object(decoded_text(first_of(row, "modelParameters", "model_parameters")))
    settings = {name: _setting(value) for name, value in settings.items() if value not in _UNSET}
    request = {"model": model, **settings, **request}
    if "messages" in request:
        request |= _plain_messages(objects(request["messages"]))
    return request


def _setting(value: Any) -> Any:
    """Return a setting, which Langfuse may keep as text, as its value."""
    text = value if isinstance(value, str) else ""
    if text.replace(".", "", 1).isdecimal() and len(text) < 20:
        return float(text) if "." in text else int(text)
    return {"true": True, "false": False}.get(text, value)


def _plain_messages(messages: list[Json]) -> Json:
    """Return messages as those of chat completions, and the tools that stand among them."""
    # The integration of LangChain puts a tool's declaration behind the messages, as a message of the role
    # `tool`, and writes calls as LangChain has them.
    rows: list[Json] = []
    tools: list[Json] = []
    for message in messages:
        content: Any = message.get("content")
        if message.get("role") == "tool" and is_object(content) and "tool_call_id" not in message:
            tools.append(content)
        else:
            rows.append(_plain_message(message))
    return {"messages": rows, "tools": tools} if tools else {"messages": rows}


def _plain_message(message: Json) -> Json:
    plain = {name: value for name, value in message.items() if name != "additional_kwargs"}
    beside = an_object(message.get("additional_kwargs"))
    if beside.get("tool_calls"):
        plain["tool_calls"] = beside["tool_calls"]
    elif calls := objects(message.get("tool_calls")):
        plain["tool_calls"] = [_plain_call(call) for call in calls]
    return plain


def _plain_call(call: Json) -> Json:
    if "function" in call or "args" not in call:
        return call
    function = {"name": call.get("name"), "arguments": compact(call["args"])}
    return {"id": call.get("id"), "type": "function", "function": function}


def _response_of(row: Json) -> Json:
    output: Any = decoded_text(row.get("output"))
    if is_array(output) and len(output) == 1:
        output = output[0]
    if output is None or output == "":
        status = first_of(row, "statusMessage", "status_message")
        raise missing(_NAME, f"its output is missing{f' ({status})' if status else ''}")
    if isinstance(output, str):
        return answer_of({"content": output})
    if is_array(output):  # items of Responses
        return {"object": "response", "status": "completed", "output": output}
    message = _plain_message(an_object(output))
    if any(provider.is_body(message) for provider in PROVIDERS):
        return message
    if message.keys().isdisjoint(("content", "tool_calls", "function_call")):
        raise missing(_NAME, "its output is no message of a model")
    return answer_of(message)


FORM = LogForm(_is_langfuse, _exchanges)
