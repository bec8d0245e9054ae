"""OpenAI Responses, and compatible servers.

Sources: OpenAI's API reference (the response object, its output items, the streaming events) and recorded
answers of OpenAI, DeepSeek and Bedrock's compatible API.

Calls are `function_call` items and `custom_tool_call` items, whose arguments are free text; the id is the
`call_id`. All other items (web, file and tool search, code interpreter, MCP, computer, shell and patch calls)
stay in `Choice.raw`: the provider ran them, or they are not functions of the caller. Reasoning is the content
of the `reasoning` items, else their summary. A stream ends with the whole response; the events before it are
used only if that response is missing or empty.

An answer whose status says that it did not end is cut off in its last call, with or without a reason.

A turn goes back with all of its items, ids included: OpenAI refuses a reasoning item without the item that
followed it. A result repeats the `caller` of its call, and is a `custom_tool_call_output` if the call is
custom (source: the types of OpenAI's SDK, version 2.54).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigadapt.providers.provider import (
    ALL_CHOICES,
    NO_SUBSET,
    CutOff,
    FreeText,
    OwnResult,
    OwnTurn,
    Provider,
    RawCall,
    Reading,
    Route,
)
from sigadapt.providers.reading import (
    an_object,
    called,
    cut_last,
    details_in,
    ends_in,
    in_paragraphs,
    is_text,
    joined,
    json_text,
    kept,
    kind_of,
    more_than,
    objects,
    parts_of,
    said,
    state,
    text_of,
    word,
)
from sigadapt.providers.result_blocks import data_uri, file_name, text_in
from sigadapt.providers.stream_parts import Blocks
from sigadapt.providers.writing import in_order, name_of, text_of_arguments, written_text
from sigadapt.schemas.json_values import Json, as_unicode, is_object

NAME = "openai-responses"

_FINISH = {
    "completed": "stop",
    "failed": "error",
    "cancelled": "error",
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
_MESSAGE_FIELDS = frozenset(("type", "id", "role", "status", "content"))
_PART_FIELDS = frozenset(("type", "text", "logprobs"))
_CALL_FIELDS = frozenset(("type", "id", "call_id", "name", "status", "arguments"))
_OWN_KINDS = frozenset(("message", "reasoning", "function_call", "custom_tool_call"))
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
    if not calls and any(map(_refuses, items)):
        finish = "refusal"
    why = details_in(body.get("error")) or (word(body.get("status"), {}) if finish == "error" else None)
    text, commentary = _texts(items)
    thinking = joined(_thinking(item) for item in items if item.get("type") == "reasoning")
    return [Reading(text, thinking, calls, finish, state(NAME, _items(items)), why, commentary)]


def _texts(items: list[Json]) -> tuple[str | None, str | None]:
    """Return the answer and the commentary.

    Without a final message, commentary is all that the model said, and so it is the answer.
    """
    # Newer models give a message a `phase`, "commentary" or "final_answer".
    # https://platform.openai.com/docs/api-reference/responses/object
    texts = [(_phase(item), _text(item) if kind_of(item) == "message" else None) for item in items]
    commentary = in_paragraphs(text if phase == "commentary" else None for phase, text in texts)
    answer = in_paragraphs(text if phase != "commentary" else None for phase, text in texts)
    return (answer, commentary) if answer else (commentary, None)


def _phase(item: Json) -> Any:
    return item.get("phase")


def _text(item: Json) -> str | None:
    return joined(part.get("text") or part.get("refusal") for part in parts_of(item.get("content")))


def _refuses(item: Json) -> bool:
    return any(part.get("type") == "refusal" for part in parts_of(item.get("content")))


def _item(item: Json) -> Json:
    """Return an item of the output; text beside the messages, or a message without a type, as a message."""
    kind = kind_of(item)
    if kind in _PARTS:
        return {"type": "message", "content": [item]}
    return {"type": "message", **item} if not kind and "content" in item else item


def _items(items: list[Json]) -> list[Json]:
    """Return the state items, each with its output item unless lm15 sends the turn as it was without them."""
    known: list[Json] = []
    names: list[str] = []
    is_plain = True
    for item in items:
        state_item, name = _described(item)
        # lm15 writes one message, then the calls.
        if name is not None or (state_item["type"] == "text" and known and known[-1]["type"] == "call"):
            is_plain = False
        known.append(state_item)
        names.append(name or "")
    return known if is_plain else [*map(kept, known, names, map(_sent, items))]


def _described(item: Json) -> tuple[Json, str | None]:
    """Return the state item of an output item, and what it holds beyond that; None if lm15 can send it."""
    kind = kind_of(item)
    if kind == "function_call":
        return called(), None if item.keys() <= _CALL_FIELDS else more_than(item, _CALL_FIELDS) or None
    if kind == "message":
        return _message(item)
    if kind == "reasoning":
        return _reasoning(item)
    return (called() if _is_call(item) else {"type": "other"}), kind


def _message(item: Json) -> tuple[Json, str | None]:
    parts = parts_of(item.get("content"))
    text = said("text", joined([part.get("text") or part.get("refusal") for part in parts]))
    names = [] if item.keys() <= _MESSAGE_FIELDS else [more_than(item, _MESSAGE_FIELDS)]
    names += [
        more_than(part, _PART_FIELDS) for part in parts if part.get("annotations") or part.get("refusal")
    ]
    return text, ", ".join(dict.fromkeys(filter(None, names))) if names else None


def _reasoning(item: Json) -> tuple[Json, str | None]:
    known = {key: item[key] for key in ("id", "encrypted_content") if is_text(item.get(key))}
    summary = "\n".join(str(part.get("text")) for part in objects(item.get("summary")))
    return said("thinking", summary, ["openai", "reasoning_item", known]), ""


def _sent(item: Json) -> Json:
    """Return an output item as an input item: a call's arguments come from the call itself."""
    # Nulls, and what OpenAI's SDK adds to its objects, are left out, because the API refuses them.
    kind = kind_of(item)
    if kind not in _OWN_KINDS:
        return {key: value for key, value in item.items() if key != "status" or value is not None}
    left_out = (_ARGUMENTS.get(kind), "parsed_arguments")
    sent = {key: value for key, value in item.items() if value is not None and key not in left_out}
    if kind == "message" and any("parsed" in part for part in objects(sent.get("content"))):
        sent["content"] = [
            {key: part[key] for key in part if key != "parsed"} for part in parts_of(sent["content"])
        ]
    return sent


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
    """Return a canonical tool choice as fields of the body.

    Example:
        >>> choice({"type": "custom", "custom": {"name": "run"}}), choice({"type": "web_search"})
        ({'tool_choice': {'type': 'custom', 'name': 'run'}}, {'tool_choice': {'type': 'web_search'}})
    """
    # The provider's own tools are named by their type.
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

    Example:
        >>> tools([{"type": "function", "function": {"name": "now"}}])
        [{'type': 'function', 'name': 'now'}]
    """
    # Neighbours with the same `namespace` become one.
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


def own_turn(state: Json, calls: Sequence[Json]) -> list[Json]:
    """Return a turn as input items, in the order in which OpenAI sent them.

    Example:
        >>> search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
        >>> call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        >>> items = [{"type": "other", "wire": search}, {"type": "call", "id": "c1"}]
        >>> [item["type"] for item in own_turn({"dialect": NAME, "items": items}, [call])]
        ['web_search_call', 'function_call']
    """
    items = (_own_item(item, call) for item, call in in_order(state["items"], calls))
    return [item for item in items if item]


def _own_item(item: Json, call: Json | None) -> Json:
    sent = an_object(item.get("wire"))
    if call is not None:
        named = {"call_id": call["id"], "name": name_of(call)}
        if sent.get("type") == "custom_tool_call":
            return {**sent, **named, "input": written_text(call)}
        return {"type": "function_call", **sent, **named, "arguments": text_of_arguments(call)}
    if sent or item["type"] == "other":
        return sent
    text = as_unicode(item["text"])
    if item["type"] == "text":
        return {"role": "assistant", "content": text} if text else {}
    if "continuation" not in item:
        return {}
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", **item["continuation"][2], "summary": summary}


def put_turns(body: Mapping[str, Any], turns: Sequence[OwnTurn]) -> Json:
    """Return the `input` of a request with turns of the model as OpenAI's own items.

    Example:
        >>> call = {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"}
        >>> items = [{"type": "web_search_call", "id": "ws_1", "status": "completed"}, call]
        >>> put_turns({"input": [call]}, [OwnTurn(0, 1, items)])["input"] == items
        True
    """
    waiting = {turn.at: turn for turn in turns}
    own = {item["call_id"]: item for turn in turns for item in turn.blocks if _is_call(item)}
    items: list[Json] = []
    at = replaced = 0
    for item in body["input"]:
        if _is_call(item):
            if at in waiting:
                items += waiting[at].blocks
                replaced = at + waiting[at].calls
            items += [item] if at >= replaced else []
            at += 1
        else:
            items.append(_answering(item, own) if kind_of(item) == "function_call_output" else item)
    return {"input": items}


def _answering(output: Json, calls: Mapping[str, Json]) -> Json:
    """Return a result in the form that its call asks for."""
    call = calls.get(output["call_id"], {})
    caller = {"caller": call["caller"]} if call.get("caller") else {}
    kind = {"type": "custom_tool_call_output"} if call.get("type") == "custom_tool_call" else {}
    return {**output, **kind, **caller}


_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def result_block(part: Json, model: str) -> Json | None:  # noqa: ARG001
    """Return a part of a result as a content block of its output; None for audio, which it cannot hold.

    Example:
        >>> result_block({"type": "image", "mime_type": "image/png", "data": "aGk="}, "gpt-5")
        {'type': 'input_image', 'image_url': 'data:image/png;base64,aGk='}
    """
    # Source: OpenAI's Responses reference, `function_call_output.output` (a text, or a list of `input_text`,
    # `input_image` and `input_file`), read 2026-11-21.
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
    in_results=result_block,
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
    own_turn=own_turn,
    put_turns=put_turns,
    put_results=put_results,
    put_texts=put_texts,
    choice=choice,
    without_calls=without_calls,
    routes=(
        _ROUTE,
        replace(_ROUTE, door="litellm", model_type="responses", choices=NO_SUBSET | {"own", "custom"}),
    ),
)
