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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sigadapt.providers.provider import (
    ALL_CHOICES,
    NO_SUBSET,
    CutOff,
    FreeText,
    Provider,
    RawCall,
    Reading,
    Route,
)
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
    if item["type"] == "custom_tool_call":
        arguments = FreeText.of(arguments)
    if word(item.get("status"), {}) in {"incomplete", "in_progress"}:
        arguments = CutOff(arguments)
    return (item.get("call_id"), item.get("name"), arguments)


def _thinking(item: Json) -> str | None:
    return text_of(parts_of(item.get("content"))) or text_of(parts_of(item.get("summary")))


def put_texts(body: Mapping[str, Any], texts: Mapping[str, str]) -> Json:
    """Return the `input` of a request with the calls of custom tools, and their results, in their own form.

    Args:
        body: the request's body, as lm15 writes it.
        texts: the input of each of these calls, by call id.

    Example:
        >>> call = {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"}
        >>> put_texts({"input": [call]}, {"c1": "1 + 1"})
        {'input': [{'type': 'custom_tool_call', 'call_id': 'c1', 'name': 'run', 'input': '1 + 1'}]}
    """
    return {"input": [_with_text(item, texts) for item in body["input"]]}


def _with_text(item: Json, texts: Mapping[str, str]) -> Json:
    if item.get("call_id") not in texts:
        return item
    if item["type"] == "function_call_output":
        return {**item, "type": "custom_tool_call_output"}
    if item["type"] != "function_call":
        return item
    rest = {key: value for key, value in item.items() if key not in ("arguments", "status")}
    return {**rest, "type": "custom_tool_call", "input": texts[item["call_id"]]}


def choice(chosen: Json, parallel: bool | None = None) -> Json:  # noqa: ARG001, FBT001
    """Return a canonical tool choice as fields of the body. The provider's own tools are named by their type.

    Example:
        >>> choice({"type": "custom", "custom": {"name": "run"}}), choice({"type": "web_search"})
        ({'tool_choice': {'type': 'custom', 'name': 'run'}}, {'tool_choice': {'type': 'web_search'}})
    """
    if chosen["type"] == "allowed_tools":
        allowed = chosen["allowed_tools"]
        flat = {
            "type": "allowed_tools",
            "mode": allowed["mode"],
            "tools": list(map(_flat_choice, allowed["tools"])),
        }
        return {"tool_choice": flat}
    return {"tool_choice": _flat_choice(chosen)}


def _flat_choice(chosen: Json) -> Json:
    kind = chosen["type"]
    return {"type": kind, **chosen[kind]} if kind in ("function", "custom") else chosen


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

    Neighbours with the same `namespace` become one.

    Example:
        >>> tools([{"type": "function", "function": {"name": "now"}}])
        [{'type': 'function', 'name': 'now'}]
    """
    sent: list[Json] = []
    for tool in given:
        said = dict(tool)
        namespace = said.pop("namespace", None) if "function" in tool or "custom" in tool else None
        flat = _flat(said)
        if namespace is None:
            sent.append(flat)
        elif sent and _is_of(sent[-1], namespace):
            sent[-1]["tools"].append(flat)
        else:
            sent.append({"type": "namespace", **namespace, "tools": [flat]})
    return sent


def _flat(tool: Json) -> Json:
    """Return a function or a custom tool with its fields side by side, as Responses has them."""
    kind = next((kind for kind in ("function", "custom") if kind in tool), None)
    if kind is None:
        return tool
    function = dict(tool.pop(kind))
    if "grammar" in an_object(function.get("format")):
        function["format"] = {"type": "grammar", **function["format"]["grammar"]}
    return {"type": kind, **function, **tool}


def _is_of(tool: Json, namespace: Json) -> bool:
    """Return whether a tool is the group of this namespace."""
    return {"type": "namespace", **namespace} == {key: tool[key] for key in tool if key != "tools"}


_ROUTE = Route(
    NAME,
    "lm15",
    adapter="OpenAILM",
    takes=frozenset({NAME}),
    strict=True,
    longest_id=64,
    # Sources: the guides "Function calling" and "Tool search" of developers.openai.com; FunctionToolParam,
    # CustomToolParam and NamespaceToolParam of OpenAI's SDK 2.54; read on 2026-11-21.
    fields=frozenset({"defer_loading", "allowed_callers", "output_schema", "namespace"}),
    result_schema="output_schema",
    custom_tools=True,
    choices=ALL_CHOICES | {"own", "custom"},
    search="tool_search",
    search_tool=(("type", "tool_search"),),
)

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    tools=tools,
    put_texts=put_texts,
    choice=choice,
    without_calls=without_calls,
    routes=(
        _ROUTE,
        replace(_ROUTE, door="litellm", model_type="responses", choices=NO_SUBSET | {"own", "custom"}),
    ),
)
