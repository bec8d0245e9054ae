"""OpenAI Responses, and compatible servers.

Sources: OpenAI's API reference (the response object, its output items, the streaming events) and recorded
answers of OpenAI, DeepSeek and Bedrock's compatible API.

Calls are `function_call` items and `custom_tool_call` items, whose arguments are free text; the id is the
`call_id`. All other items (web, file and tool search, code interpreter, MCP, computer, shell and patch calls)
stay in `Choice.raw`: the provider ran them, or they are not functions of the caller. Reasoning is the content
of the `reasoning` items, else their summary. A stream ends with the whole response; the events before it are
used only if that response is missing or empty.

An answer whose status says that it did not end is cut off in its last call, with or without a reason.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigadapt.providers.provider import NO_SUBSET, CutOff, OwnResult, Provider, RawCall, Reading, Route
from sigadapt.providers.reading import (
    an_object,
    called,
    cut_last,
    ends_in,
    is_text,
    joined,
    json_text,
    kind_of,
    objects,
    parts_of,
    said,
    state,
    text_of,
    word,
)
from sigadapt.providers.result_blocks import data_uri, file_name, text_in
from sigadapt.providers.stream_parts import Blocks
from sigadapt.schemas.json_values import Json, is_object

NAME = "openai-responses"

_FINISH = {
    "completed": "stop",
    "failed": "error",
    "max_output_tokens": "length",
}
_UNENDED = {"incomplete", "in_progress", "queued", "cancelled"}
_PARTS = {"text", "output_text", "refusal"}
_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
_ARGUMENT_DELTAS = {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
_TEXT_DELTAS = {  # the item's field, the part's type, the event's key for the part's position
    "response.output_text.delta": ("content", "output_text", "content_index"),
    "response.refusal.delta": ("content", "refusal", "content_index"),
    "response.reasoning_text.delta": ("content", "reasoning_text", "content_index"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text", "summary_index"),
}
_FINAL = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}


def is_body(body: Json) -> bool:
    """Return whether a body is a response object."""
    return body.get("object") == "response" or isinstance(body.get("output"), list)


def read(body: Json) -> list[Reading]:
    """Return the one Reading of a response object."""
    items = [_item(item) for item in parts_of(body.get("output"))]
    finish = _finish(body)
    calls = [_call(item) for item in items if _is_call(item)]
    if ends_in(items, _is_call):
        calls = cut_last(calls, "length" if word(body.get("status"), {}) in _UNENDED else finish)
    parts = [
        part for item in items if item.get("type") == "message" for part in parts_of(item.get("content"))
    ]
    text = joined(
        part.get("refusal") if part.get("type") == "refusal" else part.get("text") for part in parts
    )
    thinking = joined(_thinking(item) for item in items if item.get("type") == "reasoning")
    return [Reading(text, thinking, calls, finish, state(NAME, _items(items)))]


def _item(item: Json) -> Json:
    """Return an item of the output; text beside the messages, or a message without a type, as a message."""
    kind = kind_of(item)
    if kind in _PARTS:
        return {"type": "message", "content": [item]}
    return {"type": "message", **item} if not kind and "content" in item else item


def _items(items: list[Json]) -> Iterator[Json]:
    for item in items:
        if _is_call(item):
            yield called()
        elif item.get("type") == "message":
            parts = parts_of(item.get("content"))
            yield said("text", joined(part.get("text") or part.get("refusal") for part in parts))
        elif item.get("type") == "reasoning":
            kept = {key: item[key] for key in ("id", "encrypted_content") if is_text(item.get(key))}
            summary = "\n".join(str(part.get("text")) for part in objects(item.get("summary")))
            yield said("thinking", summary, ["openai", "reasoning_item", kept])


def _finish(body: Json) -> str | None:
    status = body.get("status")
    if status == "incomplete":
        details = body.get("incomplete_details")
        reason = details.get("reason") if is_object(details) else details
        return word(reason, _FINISH) or "incomplete"
    return word(status, _FINISH)


def _is_call(item: Json) -> bool:
    return kind_of(item) in _ARGUMENTS


def without_calls(body: Json) -> Json:
    """Return a response object without its calls."""
    return {**body, "output": [item for item in parts_of(body.get("output")) if not _is_call(item)]}


def _call(item: Json) -> RawCall:
    arguments = item.get(_ARGUMENTS[item["type"]])
    if word(item.get("status"), {}) in {"incomplete", "in_progress"}:
        arguments = CutOff(arguments)
    return (item.get("call_id"), item.get("name"), arguments)


def _thinking(item: Json) -> str | None:
    return text_of(parts_of(item.get("content"))) or text_of(parts_of(item.get("summary")))


def is_event(event: Json) -> bool:
    """Return whether an event belongs to a Responses stream."""
    return kind_of(event).startswith("response.")


class _Item:
    """A streamed output item, as far as it has arrived."""

    def __init__(self) -> None:
        self.item: Json = {}
        self.done = False
        self.arguments: list[Any] = []
        self.texts: dict[tuple[str, str, str], list[Any]] = defaultdict(list)

    def take(self, kind: str, event: Json) -> None:
        if kind == "response.output_item.done":
            self.item, self.done = an_object(event.get("item")), True
        elif kind in _ARGUMENT_DELTAS:
            self.arguments.append(event.get("delta"))
        elif kind in _TEXT_DELTAS:
            field, part, index = _TEXT_DELTAS[kind]
            self.texts[field, part, str(event.get(index))].append(event.get("delta"))

    def whole(self, *, ended: bool) -> Json:
        if self.done:
            return self.item
        item: Json = {"type": self._kind(), **self.item, "status": "completed" if ended else "in_progress"}
        key = _ARGUMENTS.get(kind_of(item))
        if key is not None:
            item[key] = json_text([item.get(key), *self.arguments])
        for (field, part, _), deltas in self.texts.items():
            whole = {"type": part, "refusal" if part == "refusal" else "text": joined(deltas)}
            item[field] = [*objects(item.get(field)), whole]
        return item

    def _kind(self) -> str:
        if self.arguments:
            return "function_call"
        return (
            "reasoning"
            if any(part.startswith(("reasoning", "summary")) for _, part, _ in self.texts)
            else "message"
        )


def assemble(events: Iterable[Json]) -> Json:
    """Return the response object that a stream's events make."""
    body: Json = {"object": "response"}
    items = Blocks(_Item)
    ended = False
    for event in events:
        kind, index = kind_of(event), event.get("output_index")
        if "response" in event:
            body.update(an_object(event["response"]))
            ended = ended or kind in _FINAL
        elif kind == "response.output_item.added":
            items.open(index).item = an_object(event.get("item"))
        elif index is not None:
            items.at(index).take(kind, event)
    if not ended:
        body["status"] = None
    if not (ended and objects(body.get("output"))):
        body["output"] = [item.whole(ended=ended) for item in items.all]
    return body


def tools(given: list[Json]) -> list[Json]:
    """Return canonical tools in the form of the Responses API; OpenAI's own tools stay unchanged.

    Example:
        >>> tools([{"type": "function", "function": {"name": "now"}}])
        [{'type': 'function', 'name': 'now'}]
    """
    return [{"type": "function", **tool["function"]} if "function" in tool else tool for tool in given]


_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def result_block(part: Json, model: str) -> Json | None:  # noqa: ARG001
    """Return a part of a result as a content block of its output; None for audio, which it cannot hold.

    Source: OpenAI's Responses reference, `function_call_output.output` (a text, or a list of `input_text`,
    `input_image` and `input_file`), read 2026-11-21.

    Example:
        >>> result_block({"type": "image", "mime_type": "image/png", "data": "aGk="}, "gpt-5")
        {'type': 'input_image', 'image_url': 'data:image/png;base64,aGk='}
    """
    text, kind = text_in(part), part["type"]
    if text is not None:
        return {"type": "input_text", "text": text}
    if kind == "audio":
        return None
    if "file_id" in part:
        return {"type": f"input_{kind}", "file_id": part["file_id"]}
    if kind == "image":
        return {"type": "input_image", "image_url": data_uri(part) if "data" in part else part["url"]}
    if "url" in part:
        return {"type": "input_file", "file_url": part["url"]}
    return {"type": "input_file", "filename": file_name(part), "file_data": data_uri(part)}


def put_results(body: Mapping[str, Any], results: Sequence[OwnResult | None]) -> Json:
    """Return the `input` of a request with content as the outputs of calls.

    Args:
        body: the request's body, as lm15 writes it.
        results: what replaces the outputs, in order.

    Example:
        >>> said = {"type": "input_text", "text": "A shot."}
        >>> body = {"input": [{"type": "function_call_output", "call_id": "c", "output": "[image 1]"}]}
        >>> put_results(body, [OwnResult([said])])["input"][0]["output"]
        [{'type': 'input_text', 'text': 'A shot.'}]
    """
    rest = iter(results)
    return {
        "input": [
            _with_output(item, next(rest, None)) if item.get("type") in _OUTPUTS else item
            for item in body["input"]
        ]
    }


def _with_output(item: Json, result: OwnResult | None) -> Json:
    return item if result is None or result.blocks is None else {**item, "output": [*result.blocks]}


_ROUTE = Route(
    NAME,
    "lm15",
    adapter="OpenAILM",
    takes=frozenset({NAME}),
    strict=True,
    in_results=result_block,
    longest_id=64,
)

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    tools=tools,
    put_results=put_results,
    without_calls=without_calls,
    routes=(_ROUTE, replace(_ROUTE, door="litellm", model_type="responses", choices=NO_SUBSET)),
)
