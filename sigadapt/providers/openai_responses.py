"""OpenAI Responses, and compatible servers.

Sources: OpenAI's API reference (the response object, its output items, the streaming events) and recorded
answers of OpenAI, DeepSeek and Bedrock's compatible API.

Calls are `function_call` items, `custom_tool_call` items, whose arguments are free text, and the items of
tools that the program runs (`wire/openai_tools.py`); the id is the `call_id`. All other items (web and file
search, code interpreter, MCP) stay in `Choice.raw`: the provider ran them. Reasoning is the content
of the `reasoning` items, else their summary. A stream ends with the whole response; the events before it are
used only if that response is missing or empty.

An answer whose status says that it did not end is cut off in its last call, with or without a reason.

A turn goes back with all of its items, ids included: OpenAI refuses a reasoning item without the item that
followed it. A result repeats the `caller` of its call, and is a `custom_tool_call_output` if the call is
custom (source: the types of OpenAI's SDK, version 2.54).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.providers.provider import Provider, Result, Role
from sigadapt.providers.route import (
    ALL_CHOICES,
    NO_SUBSET,
    UNSIGNED,
    ChoiceRules,
    DocumentedMembers,
    IdentifierRules,
    ResultRules,
    Route,
    RouteModels,
    SearchRules,
    ToolRules,
    TurnRules,
)
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in
from sigadapt.providers.wire.content_blocks import (
    OFFICE,
    PDF,
    PICTURES,
    TEXTS,
    data_uri,
    file_name,
    part_of_question,
    text_in,
    text_of_file,
)
from sigadapt.providers.wire.openai_tools import (
    ANSWERED,
    APPROVAL,
    client_call,
    client_output,
    in_namespaces,
    is_client_call,
    ran_by_xai,
    with_answered_marked,
    with_streamed_parts,
)
from sigadapt.providers.wire.reading import (
    CUTTING,
    UNENDED,
    Part,
    Reading,
    details_in,
    finish_word,
    text_part,
)
from sigadapt.providers.wire.recorded import Recording
from sigadapt.providers.wire.stream_parts import Block, Blocks
from sigadapt.providers.wire.values import (
    ARGUMENT_NAMES,
    FreeText,
    RawCall,
    an_object,
    content_parts,
    in_paragraphs,
    is_text,
    join_texts,
    json_text,
    kind_of,
    member_names,
    more_than,
    named_part,
    objects,
    text_of,
    usual_arguments,
)
from sigadapt.providers.wire.writing import (
    blocks_with_calls,
    functions_chosen,
    plain_text,
    text_of_arguments,
    written_text,
)
from sigadapt.schemas.arguments import CutOff
from sigadapt.signatures.server_tools import Findings, ServerWork
from sigadapt.signatures.tool_results.tool_output import part_at

NAME = "openai-responses"

_FINISH = {
    "completed": "stop",
    "failed": "error",
    "cancelled": "error",
    "max_output_tokens": "length",
}
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
_OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output"))
_TEXT_OUTPUTS = _OUTPUTS | {"local_shell_call_output", "apply_patch_call_output"}
_ENDS_OF_OUTPUTS = ("_output", "_approval_response")
_OTHERS = frozenset(("encoding_format", "dimensions", "voice"))
_OTHER_MODELS = re.compile("embed|moderation|tts|whisper", re.IGNORECASE)
_SEARCHING = re.compile(r"openai/gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)")
_REASONING = re.compile(r"(^|[/.])(o\d|codex|gpt-([5-9]|\d\d)(?!.*chat)|grok-([4-9]|\d\d))")
# Sources: the guide of each tool on developers.openai.com and the types of OpenAI's SDK 2.54; read on
# 2026-11-23.
_DOMAINS = {name: f"${name}" for name in ("allowed_domains", "blocked_domains")}
_MCP = {name: f"${name}" for name in ("server_label", "server_url", "allowed_tools")}
_SERVER_TOOLS: Mapping[str, Mapping[str, Json]] = {
    "": {
        "WebSearch": {"type": "web_search", "filters": _DOMAINS},
        "CodeExecution": {"type": "code_interpreter", "container": {"type": "auto"}},
        "FileSearch": {"type": "file_search", "vector_store_ids": "$stores"},
        "ImageGeneration": {"type": "image_generation"},
        "McpServer": {"type": "mcp", **_MCP},
    }
}
_INPUTS = ("queries", "code", "revised_prompt", "server_label")  # beside an item's action
_FINAL = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}


def _texts(parts: Sequence[Part]) -> tuple[str | None, str | None]:
    """Return the answer and the commentary, which is the answer where there is no final message."""
    # Newer models give a message a `phase`, "commentary" or "final_answer".
    # https://developers.openai.com/api/reference/resources/responses/methods/create
    texts: tuple[list[str | None], list[str | None]] = [], []
    for part in parts:
        is_beside = part.block.get("phase") == "commentary"
        # The None begins a paragraph in the other text, which this item interrupts.
        texts[is_beside].append(part.text)
        texts[not is_beside].append(None)
    answer, commentary = map(in_paragraphs, texts)
    return (answer, commentary) if answer else (commentary, None)


def _output_items(body: Json) -> list[Json]:
    """Return the items of an answer; text beside the messages, or a message without a type, as a message."""
    items: list[Json] = []
    for item in content_parts(body.get("output")):
        kind = kind_of(item)
        if kind in _PARTS:
            items.append({"type": "message", "content": [item]})
        elif not kind and "content" in item:
            items.append({"type": "message", **item})
        else:
            items.append(item)
    return with_answered_marked(items)


# {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
def _finish(status: str | None, details: object) -> str | None:
    """Return the finish reason of an answer with a status."""
    if status != "incomplete":
        return _FINISH.get(status or "", status)
    reason = finish_word(details.get("reason") if is_object(details) else details, _FINISH)
    return reason if reason in CUTTING else status  # whatever the reason, it is not whole


def _why(body: Json, finish: str | None) -> str | None:
    """Return what the provider says about the end of an answer."""
    if finish == "incomplete":
        return details_in(an_object(body.get("incomplete_details")).get("reason"))
    status = finish_word(body.get("status"), {})
    return details_in(body.get("error")) or (status if finish == "error" else None)


def _message_part(item: Json) -> Part:
    parts = content_parts(item.get("content"))
    notes = [part for part in parts if part.get("annotations") or part.get("refusal")]
    names = [more_than(item, _MESSAGE_FIELDS), *(more_than(part, _PART_FIELDS) for part in notes)]
    more = ", ".join(dict.fromkeys(filter(None, names)))
    plain = {"role": "assistant", "content": [{"type": "output_text", "text": text_of(parts) or ""}]}
    text = join_texts(part.get("text") or part.get("refusal") for part in parts)
    return text_part(item, text, more, plain)


def _call(item: Json) -> RawCall:
    if is_client_call(item):
        call_id, name, arguments = client_call(item)
    else:
        call_id, name = item.get("call_id"), item.get("name")
        arguments = usual_arguments(item.get(_ARGUMENTS[item["type"]]), item)
    if item["type"] == "custom_tool_call":
        arguments = FreeText.of(arguments)
    if finish_word(item.get("status"), {}) in UNENDED:
        arguments = CutOff(arguments)
    return (call_id, name, arguments)


def _without(item: Json, *keys: str) -> Json:
    return {key: value for key, value in item.items() if key not in keys}


def _without_id(item: Json) -> Json:
    """Return an item of the model without the id by which OpenAI would look for the reasoning before it."""
    kind = kind_of(item)
    if kind == "message":
        return _without(item, "id", "status")
    return _without(item, "id") if kind in ("function_call", "custom_tool_call") else item


def _input_item(item: Json) -> Json:
    """Return an output item as an input item."""
    # Nulls, and what OpenAI's SDK adds to its objects, are left out, because the API refuses them.
    kind = kind_of(item)
    if kind not in _OWN_KINDS:
        lost_keys = (ANSWERED, "status") if item.get("status") is None else (ANSWERED,)
        return _without(item, *lost_keys)
    fields = {key: value for key, value in item.items() if value is not None}
    if kind == "message" and any("parsed" in part for part in objects(fields.get("content"))):
        fields["content"] = [_without(part, "parsed") for part in content_parts(fields["content"])]
    return fields


def _whole_item(block: Block, *, ended: bool) -> Json:
    """Return the output item that a streamed item makes; its last event holds it whole."""
    if block.ended:
        return block.start
    arguments: list[Any] = []
    texts: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    notes: dict[str, list[Any]] = defaultdict(list)
    for event in block.deltas:
        if kind_of(event) in _ARGUMENT_DELTAS:
            arguments.append(event.get("delta"))
        elif kind_of(event) in _TEXT_DELTAS:
            field, part, index = _TEXT_DELTAS[kind_of(event)]
            texts[field, part, str(event.get(index))].append(event.get("delta"))
        elif kind_of(event) == "response.output_text.annotation.added":
            notes[str(event.get("content_index"))].append(event.get("annotation"))
    is_thought = any(part.startswith(("reasoning", "summary")) for _, part, _ in texts)
    kind = "reasoning" if is_thought else "message"
    if arguments:
        kind = "function_call"
    item: Json = {"type": kind, **block.start, "status": "completed" if ended else "in_progress"}
    item = with_streamed_parts(item, block.deltas)
    key = _ARGUMENTS.get(kind_of(item))
    if key is not None:
        item[key] = json_text([item.get(key), *arguments])
    for (field, part, index), deltas in texts.items():
        whole: Json = {"type": part, "refusal" if part == "refusal" else "text": join_texts(deltas)}
        if part == "output_text" and notes[index]:
            whole["annotations"] = notes[index]
        item[field] = [*objects(item.get(field)), whole]
    return item


# {"type": "url_citation", "start_index": 340, "end_index": 449, "title": "Iran and Israel ...", "url": ...}
# {"type": "container_file_citation", "container_id": "cntr_68cd...", "file_id": "cfile_68cd...",
#   "filename": "cfile_68cd....png", "start_index": 0, "end_index": 0}
def _find_citation(findings: Findings, note: Json) -> None:
    """Find the file or the page that an annotation of the text is about."""
    file_id = note.get("file_id")
    name = note.get("filename")
    if kind_of(note) in ("container_file_citation", "file_path"):
        findings.file(None, None, file_id, name)
    else:
        findings.source(note.get("url"), note.get("title") or name, None, file_id, cited=True)


def _find_call(findings: Findings, item: Json) -> None:
    """Find a call of a tool that OpenAI ran, and what it left."""
    action = an_object(item.get("action"))
    for page in (*objects(action.get("sources")), *objects(item.get("results"))):
        title = next((page[key] for key in ("title", "filename", "name") if page.get(key)), None)
        findings.source(page.get("url"), title, page.get("text"), page.get("file_id"))
    for output in objects(item.get("outputs")):
        if is_text(output.get("url")):
            findings.file(output["url"], "image/png")
    kind = kind_of(item)
    image = item.get("result")
    if kind == "image_generation_call" and is_text(image):
        findings.file(image, f"image/{item.get('output_format') or 'png'}")
    args = item.get("arguments", item.get("input"))
    if args is None:
        args = _without(action, "sources") | {key: item[key] for key in _INPUTS if item.get(key)}
    status = item.get("status") or "done"
    if item.get("error"):
        status = "failed"
    elif image or item.get("output") is not None:
        status = "done"
    name = item.get("name") or kind.removesuffix("_call")
    called = name if kind == "custom_tool_call" else kind
    findings.call(name, item.get("id"), status, args, called)


_MEMBERS = DocumentedMembers(
    body=member_names("""
        model input instructions stream stream_options temperature top_p max_output_tokens
        max_tool_calls top_logprobs text truncation background reasoning include tool_choice
        parallel_tool_calls previous_response_id store service_tier verbosity prompt prompt_cache_key
        prompt_cache_retention
    """),
    conversation="input",
    tool_lists=member_names("tools"),
    tool_groups=member_names("tools"),
    tool=member_names("""
        type name description parameters strict format output_schema defer_loading allowed_callers
        server_label server_description require_approval allowed_tools search_context_size user_location
        filters max_num_results ranking_options vector_store_ids container display_width display_height
        execution quality size background partial_images
    """),
)
"""What its references document of a request and of tools."""


def _record_result(record: Recording, item: Json, call_id: Any, number: int) -> None:
    """Record the answer to a call: its text, or for a tool of OpenAI's the fields that hold it."""
    content: Any = _without(item, "type", "id", "call_id", "status", "execution", "caller")
    if kind_of(item) in _TEXT_OUTPUTS:
        content = content.get("output", "")
    failed = item.get("status") == "failed" or None
    record.tell((call_id, None), content, ("input", number), failed=failed)


_BLOCK_FIELDS = frozenset(("type", "text", "image_url", "file_url", "file_data", "file_id", "filename"))


def _more_in(block: Json) -> str:
    """Return the names of what a content block holds beside its text or its file."""
    more = more_than(block, _BLOCK_FIELDS)
    return "" if more == "detail" and block["detail"] == "auto" else more


def _record_message(record: Recording, item: Json, number: int) -> None:
    where = ("input", number)
    role = item.get("role")
    if "content" in item:
        record.lose_members(item, _MESSAGE_FIELDS, where)
    if role in ("system", "developer") and "content" in item:
        record.instruct(item["content"], (*where, "content"))
    elif role == "user":
        record.ask(item.get("content"), (*where, "content"))
    else:
        record.lose(where, f"{kind_of(item) or role!r} has no neutral form, and is left out")


class OpenAIResponses(Provider):
    """OpenAI Responses."""

    name = NAME
    members = _MEMBERS
    server_policy = "OpenAIResponsesCompat"
    blocks_key = "output"
    rows_key = "input"
    id_key = "call_id"
    not_of_lm15 = "response.incomplete"
    marks_commentary = True
    token = "tools", "server_label", "authorization"
    server_tools = _SERVER_TOOLS

    def is_body(self, body: Json) -> bool:
        return body.get("object") == "response" or isinstance(body.get("output"), list)

    # {"object": "response", "status": "completed", "output": [
    #   {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA..."},
    #   {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Let me look."}]},
    #   {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather",
    #    "arguments": "{\"city\":\"Paris\"}"}]}
    # https://developers.openai.com/api/reference/resources/responses/methods/create
    def read(self, body: Json) -> list[Reading]:
        items = _output_items(body)
        finish = _finish(finish_word(body.get("status"), {}), body.get("incomplete_details"))
        error = body.get("error")
        parts = [*map(self.part_of, items)]
        reading = self.candidate(parts, finish, _why(body, finish))
        answer, commentary = _texts(parts)
        if reading.state is not None and body.get("store") is False:  # also where the account keeps nothing
            reading.state["stored"] = False
        contents = [content for item in items for content in content_parts(item.get("content"))]
        if not reading.calls and any(content.get("type") == "refusal" for content in contents):
            finish = "refusal"
        return [reading._replace(text=answer, commentary=commentary, finish=finish, error=error)]

    # {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search",
    #   "query": "weather", "sources": [{"type": "url", "url": "https://a.test/"}]}}
    # {"type": "image_generation_call", "output_format": "png", "result": "iVBO..."}
    # {"type": "output_text", "annotations": [{"type": "url_citation", "url": "https://a.test/"}]}
    # https://developers.openai.com/api/docs/guides/tools
    def work(self, blocks: Sequence[Json]) -> ServerWork:
        findings = Findings()
        for item in blocks:
            kind = kind_of(item)
            parts = objects(item.get("content")) if kind == "message" else ()
            for part in parts:
                for note in objects(part.get("annotations")):
                    _find_citation(findings, note)
            is_failed_listing = kind == "mcp_list_tools" and item.get("error")
            if is_failed_listing or (kind.endswith("_call") and not self.is_call(item)):
                _find_call(findings, item)
        return findings.work()

    def is_event(self, event: Json) -> bool:
        return kind_of(event).startswith("response.")

    def event_for_lm15(self, event: Json) -> tuple[Json, str]:
        details = an_object(an_object(event.get("response")).get("incomplete_details"))
        finish = "content_filter" if details.get("reason") == "content_filter" else "length"
        return {**event, "type": "response.completed"}, finish

    # {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", ...}}
    # {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"ci"}
    # {"type": "response.output_item.done", "output_index": 0, "item": {...}}
    # {"type": "response.completed", "response": {...}}
    # https://developers.openai.com/api/reference/resources/responses/streaming-events
    def assemble(self, events: Iterable[Json]) -> Json:
        body: Json = {"object": "response"}
        items = Blocks()
        ended = False
        for event in events:
            kind = kind_of(event)
            index = event.get("output_index")
            if "response" in event:
                # The first and the last event hold the response as it is then.
                body.update(an_object(event["response"]))
                ended = ended or kind in _FINAL
            elif kind == "response.output_item.added":
                items.open(index, event.get("item"))
            elif kind == "response.output_item.done":
                item = items.at(index)
                item.start = an_object(event.get("item"))
                item.ended = True
            elif index is not None:
                items.add(index, event)
        if not ended:
            body["status"] = None
        if not (ended and objects(body.get("output"))):
            body["output"] = [_whole_item(item, ended=ended) for item in items.all]
        return body

    # {"usage": {"input_tokens": 652, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 44,
    #   "output_tokens_details": {"reasoning_tokens": 19}, "total_tokens": 696}}
    # https://developers.openai.com/api/reference/resources/responses/methods/create
    def usage(self, body: Json) -> AnswerUsage | None:
        counts = an_object(body.get("usage"))
        # LiteLLM may hand out the counts of a chat.
        read = count_in(counts, "input_tokens", "prompt_tokens")
        written = count_in(counts, "output_tokens", "completion_tokens")
        cached = count_in(counts, "input_tokens_details.cached_tokens", "prompt_tokens_details.cached_tokens")
        return answer_usage(counts, read=read, written=written, cached=cached)

    def is_request(self, body: Json) -> bool:
        value = body.get("input", body.get("prompt"))
        if is_array(value):
            return all(map(is_object, value))
        # The input of an embedding, of a moderation or of speech is a text, too.
        is_other = not _OTHERS.isdisjoint(body) or _OTHER_MODELS.search(str(body.get("model")))
        return isinstance(value, (str, dict)) and "model" in body and not is_other

    # {"model": "gpt-5", "instructions": "Be brief.", "input": [{"role": "user", "content": "Weather?"},
    #   {"type": "function_call_output", "call_id": "call_1", "output": "18 C"}], "tools": [...]}
    # https://developers.openai.com/api/reference/resources/responses/methods/create
    def request(self, body: Json) -> Recording:
        record = Recording(NAME, _part, _more_in)
        record.tools = [*objects(body.get("tools"))]
        record.set(body, {"max_output_tokens": "max_tokens"}, ("input", "instructions", "tools"))
        for key in body.keys() & {"previous_response_id", "conversation", "prompt"}:
            record.lose((key,), "the server keeps what it refers to")
        record.instruct(body.get("instructions"), ("instructions",))
        value = body.get("input")
        items = [{"role": "user", "content": value}] if isinstance(value, str) else objects(value)
        run: list[Json] = []  # items of the model that follow one another
        calls = {str(item.get("call_id") or item.get("id")) for item in items if self.is_call(item)}
        for number, item in enumerate(items):
            call_id = item.get("call_id") or item.get("approval_request_id") or item.get("id")
            kind = kind_of(item)
            # What OpenAI ran itself has its output among the items of the model.
            is_answer = kind in _OUTPUTS or (kind.endswith(_ENDS_OF_OUTPUTS) and str(call_id) in calls)
            is_of_model = item.get("role") in (None, "assistant") and kind != "item_reference"
            if is_of_model and not is_answer:
                run.append(item)
                continue
            record.turns += self.read({"output": run}) if run else ()
            run = []
            if is_answer:
                _record_result(record, item, call_id, number)
            else:
                _record_message(record, item, number)
        record.turns += self.read({"output": run}) if run else ()
        return record

    # {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}
    def message(self, role: Role, content: str | Sequence[Json], route: Route) -> Json:
        kind = "output_text" if role == "assistant" else "input_text"
        if role == "developer":
            text = {"type": kind, "text": plain_text(content)}
            return {"role": route.turns.developer_role, "content": [text]}
        blocks = [{"type": kind, "text": content}] if isinstance(content, str) else [*content]
        return {"role": role, "content": blocks}

    # {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA..."}
    # {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{...}"}
    # Reasoning goes back with the item that followed it, or OpenAI refuses it:
    # https://developers.openai.com/api/docs/guides/reasoning#keeping-reasoning-items-in-context
    def turn(self, message: Json, state: Json | None, route: Route) -> list[Json]:
        items: list[Json] = []
        for block, _, call in blocks_with_calls(self, message, state):
            item = _input_item(block)
            if call is None:
                items += [item] if item else []
                continue
            if is_client_call(item):
                if kind_of(item) != APPROVAL:  # which has no `call_id`: its `id` answers for it
                    item["call_id"] = call["id"]
                items.append(item)
                continue
            fields = {"call_id": call["id"], "name": named_part(call)["name"]}
            if item.get("type") == "custom_tool_call" or "custom" in call:
                items.append({**item, "type": "custom_tool_call", **fields, "input": written_text(call)})
            else:
                arguments = text_of_arguments(call)
                items.append({"type": "function_call", **item, **fields, "arguments": arguments})
        return items

    # What was not stored is not found by its id, and what followed it is refused by its own id without it:
    # https://developers.openai.com/api/docs/guides/reasoning#encrypted-reasoning-items
    def unstored(self, state: Json) -> Json:
        blocks: list[Json] = state["blocks"]
        kept = [block for block in blocks if not self.is_thinking(block) or block.get("encrypted_content")]
        if len(kept) == len(blocks):
            return state
        return {**state, "blocks": [*map(_without_id, kept)]}

    # {"store": false, "include": ["reasoning.encrypted_content"]}
    # https://developers.openai.com/api/reference/resources/responses/methods/create
    def fields(self, request: Mapping[str, Any], route: Route) -> Json:
        fields = super().fields(request, route)
        return {**fields, "include": [*request["include"]]} if request.get("include") else fields

    # {"type": "function_call_output", "call_id": "call_1", "output": "18 C"}
    # https://developers.openai.com/api/docs/guides/function-calling#handling-function-calls
    def results(self, results: Sequence[Result], turn: Sequence[Json], route: Route) -> list[Json]:
        """Return the results of a turn as items; each repeats the `caller` of its call."""
        items = {item.get("call_id") or item.get("id"): item for item in turn if self.is_call(item)}
        calls = [(result, items.get(result.id, {})) for result in results]
        return [client_output(result, call) or _output(result, call) for result, call in calls]

    def plain_blocks(self, text: str | None, calls: int) -> list[Json]:
        content = [{"type": "output_text", "text": text}]
        messages = [{"role": "assistant", "content": content}] if text else []
        return [*messages, *({"type": "function_call"} for _ in range(calls))]

    def part_of(self, block: Json) -> Part:
        kind = kind_of(block)
        if kind == "message":
            return _message_part(block)
        if is_client_call(block):
            return Part("call", kind, block, call=_call(block))
        if kind == "function_call":
            fields = _without(block, "parsed_arguments", *ARGUMENT_NAMES)
            return Part("call", more_than(fields, _CALL_FIELDS), fields, {"type": kind}, call=_call(block))
        if kind == "custom_tool_call" and not ran_by_xai(block):
            return Part("call", kind, _without(block, *ARGUMENT_NAMES), {"type": kind}, call=_call(block))
        more = kind or "an item without a type"
        if kind != "reasoning":
            return Part(kind, more, block)
        thought = text_of(block.get("content")) or text_of(block.get("summary"))
        return Part("thinking", more, block, thinking=thought)

    # {"type": "function", "name": "get_weather", "description": "...", "parameters": {...}}
    # https://developers.openai.com/api/reference/resources/responses/methods/create
    def tools(self, tools: list[Json]) -> list[Json]:
        # Neighbours with the same `namespace` become one.
        entries: list[Json] = []
        searches = (tool for tool in tools if tool.get("type") == "tool_search")
        is_hosted = any(tool.get("execution") != "client" for tool in searches)
        for tool in in_namespaces(tools) if is_hosted else tools:
            kind = next((kind for kind in ("function", "custom") if kind in tool), None)
            if kind is None:
                entries.append(dict(tool))
                continue
            function = dict(tool[kind])
            namespace = tool.get("namespace")
            if "grammar" in an_object(function.get("format")):
                function["format"] = {"type": "grammar", **function["format"]["grammar"]}
            flat = {"type": kind, **function, **_without(tool, kind, "namespace")}
            if namespace is None:
                entries.append(flat)
            elif entries and {**entries[-1], "tools": []} == {"type": "namespace", **namespace, "tools": []}:
                entries[-1]["tools"].append(flat)
            else:
                entries.append({"type": "namespace", **namespace, "tools": [flat]})
        return entries

    # {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}
    # https://developers.openai.com/api/reference/resources/responses/methods/create
    def tool_choice(self, choice: str | Json | None, *, parallel: bool | None = None) -> Json:
        fields: Json = {}
        if choice is not None or parallel is not None:
            fields["tool_choice"] = "auto" if choice is None else _flat_choice(choice)
        if parallel is not None and choice != "none":
            fields["parallel_tool_calls"] = parallel
        return fields


def _output(result: Result, call: Json) -> Json:
    """Return a result in the form that its call asks for."""
    kind = "custom_tool_call_output" if call.get("type") == "custom_tool_call" else "function_call_output"
    output = result.text if result.blocks is None else [*result.blocks]
    caller = {"caller": call["caller"]} if call.get("caller") else {}
    return {"type": kind, "call_id": result.id, "output": output, **caller}


def _flat_choice(choice: str | Json) -> str | Json:
    """Return a canonical tool choice or an entry of one; the provider's own tools are named by their type."""
    if isinstance(choice, str):
        return choice
    kind = choice["type"]
    if kind in ("function", "custom"):
        return {"type": kind, **choice[kind]}
    if kind != "allowed_tools":
        return choice
    subset = choice["allowed_tools"]
    entries = [_flat_choice(tool) for tool in subset["tools"]]
    functions = functions_chosen(choice)
    if functions is not None and functions[0] == "required" and len(entries) == 1:
        return entries[0]
    return {"type": kind, "mode": subset["mode"], "tools": entries}


def result_block(part: Json, model: str) -> Json | None:
    """Return a part of a result as a content block of its output; None for audio, which it cannot hold."""
    # Source: OpenAI's Responses reference, `function_call_output.output` (a text, or a list of `input_text`,
    # `input_image` and `input_file`), read 2026-11-21.
    text = text_in(part)
    kind = part["type"]
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


def question_block(block: Json, model: str) -> Json | None:
    """Return a block of a question, which DSPy writes as chat messages have it; None if there is none."""
    part = part_of_question(block)
    kind = kind_of(block)
    if part is None:
        return block if kind.startswith("input_") and kind != "input_audio" else None
    if kind == "input_audio":  # `ResponseInputAudioParam` of OpenAI's SDK 2.54; lm15 writes other fields
        return block
    text = text_of_file(block) if kind == "document" else None
    if text is not None:
        return {"type": "input_text", "text": text}
    written = result_block(part, model)
    if written is None or kind != "image_url":
        return written
    detail = an_object(block.get("image_url")).get("detail")
    return {**written, "detail": detail} if isinstance(detail, str) else written


# {"type": "input_image", "image_url": "data:image/jpeg;base64,/9j/4AAQ...", "detail": "auto"}
# {"type": "input_file", "file_data": "data:application/pdf;base64,JVBE...", "filename": "filename.pdf"}
# {"type": "input_file", "file_id": "file-7qh8..."}
def _part(block: Json) -> Json | None:
    """Return a content block of a question or a result as a part; None for one of no known kind."""
    kind = kind_of(block)
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": str(block.get("text") or "")}
    name = {"name": block["filename"]} if isinstance(block.get("filename"), str) else {}
    media = {"input_image": "image", "input_file": "file"}.get(kind)
    if media is None:
        return None
    for key in ("image_url", "file_url", "file_data"):
        if isinstance(block.get(key), str):
            return {**part_at(media, block[key], name.get("name")), **name}
    file_id = block.get("file_id")
    return {"type": media, "file_id": file_id, **name} if isinstance(file_id, str) else None


def _searches(model: str) -> bool:
    """Return that gpt-5.4 and later search tools: "Tool search" on developers.openai.com, 2026-11-23."""
    return _SEARCHING.match(model) is not None


def _encrypts(model: str) -> bool:
    """Return that a model reasons; OpenAI refuses to encrypt what others do not have (read 2026-11-28)."""
    return _REASONING.search(model) is not None


_ROUTE = Route(
    NAME,
    "lm15",
    models=RouteModels(adapter="OpenAILM"),
    turns=TurnRules(takes=frozenset({NAME}), developer_role="developer", encrypts=_encrypts),
    # Source: the guides "Images and vision" and "File inputs" of developers.openai.com; read on 2026-11-28.
    results=ResultRules(inside=result_block, images=PICTURES, files=rf"{PDF}|{TEXTS}|{OFFICE}"),
    choices=ChoiceRules(forms=ALL_CHOICES | {"own", "custom"}),
    tools=ToolRules(
        # Sources: the guides "Function calling" and "Tool search" of developers.openai.com;
        # FunctionToolParam, CustomToolParam and NamespaceToolParam of OpenAI's SDK 2.54; read on 2026-11-21.
        fields=frozenset({"defer_loading", "allowed_callers", "output_schema", "namespace"}),
        result_schema="output_schema",
        strict=True,
        custom=True,
    ),
    search=SearchRules("tool_search", (("type", "tool_search"),), supports=_searches, namespaces=True),
    ids=IdentifierRules(UNSIGNED, 64),
    question_block=question_block,
)

PROVIDER = OpenAIResponses(
    _ROUTE,
    _ROUTE._replace(
        client="litellm",
        models=RouteModels(model_type="responses"),
        choices=ChoiceRules(forms=NO_SUBSET | {"own", "custom"}),
    ),
)
