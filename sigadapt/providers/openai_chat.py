"""OpenAI Chat Completions, and the many compatible servers.

Sources: OpenAI's API reference (the chat completion object and its chunk). For what compatible servers add:
recorded answers of Mistral, DeepSeek, Groq, OpenRouter, Hugging Face, Cerebras, Snowflake and Ollama.

Reasoning is `reasoning_content` (DeepSeek, vLLM, LiteLLM), else `reasoning` (OpenRouter, Groq, Ollama), else
the texts of `reasoning_details` (OpenRouter, Snowflake), else Mistral's `thinking` content parts. A `custom`
tool call is a call whose arguments are free text instead of JSON. The deprecated `function_call` is a call
without an id. Legacy text completions have a `text` instead of a message.

LiteLLM writes Claude's server tools as calls. These are left out, as in `anthropic.py`.

Servers that bend the format are read too: calls as one object or as JSON text (`calls_of`), a call
without `function` around its name and arguments, content as one part or with texts among its parts.

A turn goes back with what its server documents as wanted back: `reasoning_details` and file `annotations`
(OpenRouter), the id of an `audio` answer (OpenAI), `thinking` content parts (Mistral), and fields of a call
such as `extra_content` (Gemini's compatible API). So do `custom` calls.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sigadapt.json_values import Json, compact, is_array, is_object
from sigadapt.providers import anthropic, gemini
from sigadapt.providers.provider import Provider, Result, Role
from sigadapt.providers.route import (
    ALL_CHOICES,
    NO_SUBSET,
    SIGNED_ID,
    UNSIGNED,
    ChoiceRules,
    DocumentedMembers,
    IdentifierRules,
    ResultRules,
    Route,
    RouteModels,
    ToolRules,
    TurnRules,
)
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in, price_in
from sigadapt.providers.wire.content_blocks import (
    PDF,
    PICTURES,
    as_written,
    chat_block,
    chat_text,
    named_chat_block,
    only,
)
from sigadapt.providers.wire.reading import (
    CUTTING,
    MALFORMED_CALLS,
    Part,
    Reading,
    details_in,
    finish_word,
    mark_last_cut_off,
    state_of,
    with_reported_call,
)
from sigadapt.providers.wire.recorded import PLAIN_MESSAGE, Recording
from sigadapt.providers.wire.stream_parts import fold
from sigadapt.providers.wire.values import (
    ARGUMENT_NAMES,
    RawCall,
    an_object,
    calls_of,
    chat_call,
    content_parts,
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
    usual_call,
)
from sigadapt.providers.wire.writing import functions_chosen, text_of_arguments, written_text
from sigadapt.schemas.arguments import CutOff, parse_arguments
from sigadapt.signatures.server_tools import NO_WORK, Findings, ServerWork
from sigadapt.signatures.tool_results.tool_output import part_of_chat

NAME = "openai-chat"

_FINISH = {
    "function_call": "tool_calls",
    "model_length": "length",  # Mistral: the model's context is full
    "insufficient_system_resource": "error",  # DeepSeek
    "abort": "error",  # vLLM
    "sensitive": "content_filter",  # Zhipu
    "network_error": "error",  # Zhipu
}
_USUAL = frozenset(("stop", "tool_calls", "length", "content_filter"))
# What providers behind a gateway say, where its finish reason is only "stop".
_NATIVE = {
    **{each: each for each in MALFORMED_CALLS},
    **dict.fromkeys(("MAX_TOKENS", "max_tokens", "max_output_tokens", "length"), "length"),
    **dict.fromkeys(
        ("error", "abort", "insufficient_system_resource", "OTHER", "MALFORMED_RESPONSE"), "error"
    ),
    **dict.fromkeys(("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "content_filter"), "content_filter"),
    "pause_turn": "pause",
    "refusal": "refusal",
}
_MORE = frozenset(
    ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "provider_specific_fields")
) | frozenset(("audio", "annotations"))
"""Fields of a message that a state may hold."""
_OF_LITELLM = frozenset(("images", "thinking_blocks", "citations"))
_LIMITS_OF_OBJECTS = frozenset(("MAX_TOKENS", "max_tokens", "model_context_window_exceeded"))
"""What providers that send arguments as objects say about a limit."""
_OF_GATEWAYS = frozenset(("provider_specific_fields", "native_finish_reason", "error"))
_INSIDE = frozenset(("function", "custom", "index", "name", *ARGUMENT_NAMES))
"""The members of a call that the next request writes anew."""
_CALL_FIELDS = _INSIDE | {"id", "type"}
_REASONING = ("reasoning_content", "reasoning")
_WANTED_BACK = frozenset(("reasoning_details", "audio", "annotations", "content"))
_TEXTS = ("content", "refusal", *_REASONING)
# Sources: "Server tools" on openrouter.ai; "Browser search" and "Code execution" on console.groq.com; read on
# 2026-11-23. Other servers have none that is documented.
_SEARCHED = {"allowed_domains": "$allowed_domains", "excluded_domains": "$blocked_domains"}
_FETCHED = {name: f"${name}" for name in ("allowed_domains", "blocked_domains", "max_uses")}
_SERVER_TOOLS: Mapping[str, Mapping[str, Json]] = {
    "openrouter/": {
        "WebSearch": {"type": "openrouter:web_search", "parameters": _SEARCHED},
        "WebFetch": {"type": "openrouter:web_fetch", "parameters": _FETCHED},
        "ImageGeneration": {"type": "openrouter:image_generation"},
    },
    "groq/openai/gpt-oss": {
        "WebSearch": {"type": "browser_search"},
        "CodeExecution": {"type": "code_interpreter"},
    },
}
_LISTS = ("reasoning_details", "annotations", "images", "executed_tools")
_WORK = frozenset(("annotations", "images", "executed_tools", "provider_specific_fields"))
_WORK_BESIDE = frozenset(("citations", "search_results", "vertex_ai_grounding_metadata"))
"""Fields of a message, and of the body, in which server tools leave something."""
_SAME_PART = {"reasoning_details": ("type", "index"), "executed_tools": ("index",), "content": ("type",)}
"""The members in which pieces of one part of a list agree."""
_GROWING = ("text", "summary", "data", "thinking")
_SETTINGS = {"max_completion_tokens": "max_tokens", "function_call": "tool_choice"}
"""sigadapt's names for settings of a request."""


_MEMBERS_OF_ROLES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("system", "developer", "user"), PLAIN_MESSAGE),
    **dict.fromkeys(("tool", "function"), PLAIN_MESSAGE | {"tool_call_id", "name"}),
    "assistant": PLAIN_MESSAGE | {"refusal", "tool_calls", "function_call"} | _MORE,
}
"""The members of a recorded message that are read."""
_FIELDS_OF_BLOCKS = {
    "image_url": frozenset(("url",)),
    "input_audio": frozenset(("data", "format")),
    "file": frozenset(("filename", "file_data", "file_id")),
}


def _more_in(block: Json) -> str:
    """Return the names of what a block of a message holds beside its text, image, audio or file."""
    kind = kind_of(block) or "text"
    content = an_object(block.get(kind))
    if content.get("detail") == "auto":  # which is what OpenAI does without it
        content = {name: value for name, value in content.items() if name != "detail"}
    beside = more_than(block, frozenset(("type", kind)))
    inside = more_than(content, _FIELDS_OF_BLOCKS.get(kind, frozenset()))
    return ", ".join(filter(None, (beside, inside)))


def _candidate(choice: Json, body: Json) -> Reading:
    # The documented forms are looked for here first, and what servers send instead of them elsewhere.
    if choice.get("delta") and not choice.get("message"):  # a chunk, as a stream that broke off behind it
        choice = _whole_choice([choice])
    message: Any = choice.get("message")
    if not message or message.__class__ is not dict:
        message = an_object(message) or {"content": message or choice.get("text")}
    raw_calls: Any = message.get("tool_calls") or ()
    if raw_calls.__class__ is not list or not all(map(_is_documented, raw_calls)):
        raw_calls = calls_of(raw_calls)
    calls = _with_old_call([*map(_call_of, raw_calls)], message)
    text = message.get("content")
    parts: list[Json] = []
    if text is not None and (not text or not isinstance(text, str)):
        parts = content_parts(text)
        text = join_texts(part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts)
    refusal = _refusal(message)
    refuses = False
    if refusal:
        text = join_texts([text, refusal])
        refuses = is_text(refusal) and not calls
    finish, why, error = _end(choice, message, refuses=refuses)
    if calls and finish in CUTTING:
        if _closes_calls(message, choice):
            calls[-1] = _closed_call(*calls[-1])
        calls = mark_last_cut_off(calls, finish)
    if finish in MALFORMED_CALLS:
        calls = with_reported_call(calls, finish, why)
    work = NO_WORK
    if not _WORK_BESIDE.isdisjoint(body) or any(map(message.get, _WORK & message.keys())):
        work = _work(message, body)
    has_more = parts or any(map(message.get, _MORE & message.keys())) or any(map(_more_of, raw_calls))
    if not has_more:
        return Reading(text, None, calls, finish, None, why, None, error, work=work)
    thinking = _thinking(message, parts)
    calls = [call for call in calls if not anthropic.ran_itself(call[0])]
    return Reading(text, thinking, calls, finish, _state(message, text), why, None, error, work=work)


def _is_documented(call: Any) -> bool:
    return call.__class__ is dict and call.get("function").__class__ is dict


def _call_of(call: Json) -> RawCall:
    function: Any = call.get("function")
    if function.__class__ is dict and function.get("name") and function.get("arguments"):
        return call.get("id"), function["name"], function["arguments"]
    return chat_call(call)


# {"content": "Sure! Let me check that for you!", "function_call": {"name": "", "arguments": ""},
#   "tool_calls": null}
def _with_old_call(calls: list[RawCall], message: Json) -> list[RawCall]:
    """Return the calls and the deprecated `function_call`."""
    # Some servers send the same call in both forms, or an empty one beside real calls (Snowflake).
    if "function_call" not in message:
        return calls
    for old in calls_of(message["function_call"]):
        call = old.get("name"), usual_arguments(old.get("arguments"), old)
        if any(call) and call not in [each[1:] for each in calls]:
            calls.append((None, *call))
    return calls


# {"content": null, "provider_specific_fields": {"refusal": null}, "tool_calls": [...]}
def _refusal(message: Json) -> Any:
    """Return the model's refusal; LiteLLM has a place of its own for it."""
    if message.get("refusal") or "provider_specific_fields" not in message:
        return message.get("refusal")
    return an_object(message["provider_specific_fields"]).get("refusal")


def _end(choice: Json, message: Json, *, refuses: bool) -> tuple[str | None, str | None, Any]:
    """Return the finish reason, its details and the error that ended the answer."""
    finish = choice.get("finish_reason")
    if refuses:
        finish = "refusal"
    elif type(finish) is not str or finish not in _USUAL:
        finish = finish_word(finish, _FINISH)
    is_behind_gateway = not _OF_GATEWAYS.isdisjoint(choice) or "provider_specific_fields" in message
    if finish in _NATIVE or is_behind_gateway:
        return _native_end(message, choice, finish)
    return finish, None, None


def _closed_call(call_id: Any, name: Any, arguments: Any) -> RawCall:
    """Return a call that was cut off, although its arguments are whole JSON."""
    whole = parse_arguments(arguments) if isinstance(arguments, str) else arguments
    return call_id, name, CutOff(whole) if is_object(whole) else arguments


# {"reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0,
#   "text": "They want Paris.", "signature": "EvAB..."}]}
# https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
# {"content": [{"type": "thinking", "closed": true, "thinking": [{"type": "text", "text": "The user ..."}]}]}
# https://docs.mistral.ai/studio-api/conversations/reasoning
def _thinking(message: Json, parts: Sequence[Json]) -> str | None:
    """Return the reasoning, from the first place that holds any."""
    text = text_of(message.get("reasoning_content") or message.get("reasoning"))
    if text:
        return text
    details = objects(message.get("reasoning_details"))
    text = join_texts(part.get("text") or part.get("summary") for part in details)
    if text:
        return text
    thoughts: list[str | None] = []
    for part in parts:
        pieces: Any = part.get("thinking")
        thoughts.append(pieces if isinstance(pieces, str) else join_texts(map(_text_in, objects(pieces))))
    return join_texts(thoughts)


def _text_in(piece: Json) -> Any:
    return piece.get("text")


# {"annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.test/", "title": "Weather"}}]}
# {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO..."}}]}
# {"executed_tools": [{"type": "search", "arguments": "{...}", "output": "...", "search_results": {...}}]}
# https://openrouter.ai/docs/guides/features/server-tools, https://console.groq.com/docs/compound
def _work(message: Json, body: Json) -> ServerWork:
    """Return what the tools of a server, or of the provider behind a gateway, left in an answer."""
    beside = an_object(message.get("provider_specific_fields"))
    findings = Findings()
    results = objects(body.get("search_results"))  # Perplexity's, with `citations` beside them
    for ran in objects(message.get("executed_tools")):
        status = "pending" if ran.get("output") is None else "done"
        findings.call(ran.get("type"), ran.get("id"), status, ran.get("arguments"))
        results += objects(an_object(ran.get("search_results")).get("results"))
    for each in results:
        findings.source(each.get("url"), each.get("title"), each.get("content") or each.get("snippet"))
    for note in objects(message.get("annotations") or beside.get("annotations")):
        if note.get("type") == "url_citation":
            citation = an_object(note.get("url_citation")) or note
            findings.source(citation.get("url"), citation.get("title"), citation.get("content"), cited=True)
    for address in body["citations"] if is_array(body.get("citations")) else ():
        findings.source(address, None, cited=True)
    for image in objects(message.get("images") or beside.get("images")):
        findings.file(an_object(image.get("image_url")).get("url"), "image/png")
    # LiteLLM's places for the blocks of Claude and the metadata of Gemini.
    for ground in objects(body.get("vertex_ai_grounding_metadata")):
        gemini.find(findings, {"groundingMetadata": ground})
    parts: list[Any] = beside["citations"] if is_array(beside.get("citations")) else []
    calls = map(chat_call, anthropic.ran_in_chat(message))
    blocks: list[Json] = [
        *(
            {"type": "server_tool_use", "id": call_id, "name": name, "input": arguments}
            for call_id, name, arguments in calls
        ),
        *(block for key in ("web_search_results", "tool_results") for block in objects(beside.get(key))),
        {"type": "text", "citations": [each for part in parts for each in objects(part)]},
    ]
    anthropic.find(findings, blocks)
    return findings.work()


def _closes_calls(message: Json, choice: Json) -> bool:
    """Return whether a gateway wrote the arguments, which came as an object: a cut one may look whole."""
    # LiteLLM's proxy, for Gemini: {"tool_calls": [...], "images": [], "thinking_blocks": []}, and for Claude:
    # {..., "provider_specific_fields": {"citations": null, "thinking_blocks": null}}.
    # Measured on litellm[proxy] 1.106. Gateways that hand on the provider's own word do the same.
    beside = an_object(message.get("provider_specific_fields"))
    return (
        not _OF_LITELLM.isdisjoint(message)
        or not _OF_LITELLM.isdisjoint(beside)
        or not _LIMITS_OF_OBJECTS.isdisjoint(_native_words(message, choice))
    )


def _native_places(message: Json, choice: Json) -> list[Json]:
    """Return where a gateway hands on what the provider says of the end, the likeliest first."""
    beside = [an_object(each.get("provider_specific_fields")) for each in (choice, message)]
    return [beside[0], choice, beside[1]]


def _native_words(message: Json, choice: Json) -> list[str]:
    """Return the provider's own words for the end; a gateway may also hand one on as its finish reason."""
    words = [place.get("native_finish_reason") for place in _native_places(message, choice)]
    return [word for each in (*words, choice.get("finish_reason")) if (word := finish_word(each, {}))]


# {"finish_reason": "stop", "native_finish_reason": "end_turn", "message": {...}}
def _native_end(message: Json, choice: Json, finish: str | None) -> tuple[str | None, str | None, Any]:
    """Return the finish reason, its details and the error; a gateway's word may hide the provider's."""
    # LiteLLM writes "stop" for words that it does not know, and keeps the provider's word in
    # `provider_specific_fields.native_finish_reason`.
    # OpenRouter, if a provider fails in the middle: {"finish_reason": "error", "error": {"message": "..."}}
    # https://openrouter.ai/docs/api/reference/errors-and-debugging
    error = next((place["error"] for place in _native_places({}, choice) if place.get("error")), None)
    if error:
        return "error", details_in(error), error
    native = next((word for word in _native_words(message, choice) if word in _NATIVE), None)
    if native is not None and finish != "content_filter":
        return _NATIVE[native], None if native == finish else native, None
    return finish, None, None


def _state(message: Json, text: str | None) -> Json | None:
    """Return the provider state that a chat message holds: another provider's, from LiteLLM, or our own."""
    for provider in _STATES_IN_CHAT.values():
        of_other = provider.state_from_chat(message, text)
        if of_other is not None:
            return of_other
    # What its server wants back; LiteLLM puts it in `provider_specific_fields`. DeepSeek, Moonshot and Ollama
    # want their reasoning back, in the field that it came in.
    field = next((field for field in _REASONING if is_text(message.get(field))), None)
    fields: Json = {} if field is None else {field: message[field]}
    beside = an_object(message.get("provider_specific_fields"))
    if details := objects(message.get("reasoning_details") or beside.get("reasoning_details")):
        fields["reasoning_details"] = details
    if is_text(audio := an_object(message.get("audio")).get("id")):
        fields["audio"] = {"id": audio}
    notes = objects(message.get("annotations") or beside.get("annotations"))
    if files := [note for note in notes if note.get("type") == "file"]:
        fields["annotations"] = files
    if is_array(content := message.get("content")) and any("thinking" in part for part in objects(content)):
        fields["content"] = content
    items = calls_of(message.get("tool_calls"))
    calls = [{key: call[key] for key in call if key not in _INSIDE} for call in items]
    names = [*fields, *(name for call in calls if (name := _more_of(call)))]
    part = Part("message", ", ".join(names), {**fields, "tool_calls": calls})
    return state_of(NAME, [part]) if names else None


def _more_of(call: Json) -> str:
    if SIGNED_ID in str(call.get("id")):  # of Gemini, behind LiteLLM's proxy
        return "a signature"
    return "" if call.keys() <= _CALL_FIELDS else more_than(call, _CALL_FIELDS)


def _whole_choice(chunks: list[Json]) -> Json:
    whole: Json = {}
    fields: dict[str, list[Any]] = {}
    for chunk in chunks:
        whole.update({key: value for key, value in chunk.items() if value is not None})
    for chunk in chunks:
        # Some servers answer a streaming request with the whole message instead of deltas.
        content = chunk.get("delta") or chunk.get("message")
        delta = an_object(content) or {"content": content or chunk.get("text")}
        for key, value in delta.items():
            if value is not None:
                fields.setdefault(key, []).append(value)
    ended = is_text(whole.get("finish_reason"))
    message = {key: _whole_field(key, pieces) for key, pieces in fields.items()}
    if "tool_calls" in fields:
        fragments = [usual_call(call) for calls in fields["tool_calls"] for call in calls_of(calls)]
        message["tool_calls"] = fold(fragments, ended=ended)
    if "function_call" in fields:
        message["function_call"] = _whole_old_call(calls_of(fields["function_call"]), ended=ended)
    whole.pop("delta", None)
    return {**whole, "message": message}


def _whole_field(key: str, pieces: list[Any]) -> Any:
    """Return a field of a message from its pieces: texts and lists grow, of anything else the last counts."""
    if key in _TEXTS and all(isinstance(piece, str) for piece in pieces):
        return join_texts(pieces) or ""
    if key not in _LISTS and key not in _TEXTS:
        return pieces[-1]
    parts = [part for piece in pieces for part in content_parts(piece)]
    return _join_parts(parts, _SAME_PART[key]) if key in _SAME_PART else parts


def _whole_old_call(pieces: list[Json], *, ended: bool) -> Json:
    name = next((piece["name"] for piece in pieces if piece.get("name")), None)
    text = json_text(usual_arguments(piece.get("arguments"), piece) for piece in pieces)
    return {"name": name, "arguments": text if ended or not name else CutOff(text)}


def _join_parts(pieces: Any, same: Sequence[str]) -> list[Json]:
    """Return streamed parts with each run of pieces of one part joined."""
    parts: list[Json] = []
    for piece in objects(pieces):
        last = parts[-1] if parts else {}
        if not all(key in piece and piece[key] == last.get(key) for key in same):
            parts.append(piece)
            continue
        parts[-1] = {**last}
        for key, value in piece.items():  # texts and lists of texts grow, others are replaced
            before = last.get(key)
            if key in _GROWING and isinstance(before, str) and isinstance(value, str):
                parts[-1][key] = before + value
            elif key in _GROWING and is_array(before) and is_array(value):
                parts[-1][key] = _join_parts([*before, *value], ("type",))
            else:
                parts[-1][key] = before if value is None else value
    return parts


def _written_call(call: Json) -> Json:
    """Return a call of a canonical Request as its turn has it."""
    name = named_part(call)["name"]
    if "custom" in call:
        return {"id": call["id"], "type": "custom", "custom": {"name": name, "input": written_text(call)}}
    function = {"name": name, "arguments": text_of_arguments(call)}
    return {"id": call["id"], "type": "function", "function": function}


def _with_state_for_litellm(row: Json, state: Json) -> Json:
    """Return a chat message with another provider's state, where LiteLLM looks for it."""
    provider = _STATES_IN_CHAT.get(state["dialect"])
    return row if provider is None else provider.chat_message(row, state)


_STATES_IN_CHAT = {each.name: each for each in (anthropic.PROVIDER, gemini.PROVIDER)}
"""The providers whose state LiteLLM reads from chat messages, and writes into them."""


_MEMBERS = DocumentedMembers(
    body=member_names("""
        model messages n stream stream_options stop seed temperature top_p max_tokens
        max_completion_tokens frequency_penalty presence_penalty logit_bias logprobs top_logprobs
        response_format modalities audio prediction verbosity store service_tier reasoning_effort
        tool_choice parallel_tool_calls function_call web_search_options prompt prompt_cache_key
        prompt_cache_retention top_k min_p repetition_penalty reasoning include_reasoning thinking
        cache_control chat_template_kwargs
    """),
    tool_lists=member_names("tools functions"),
    tool_groups=member_names("function custom functions"),
    tool=member_names("type name description parameters strict format returns cache_control"),
)
"""What its references document of a request and of tools."""


class OpenAIChat(Provider):
    """Chat completions. LiteLLM writes every answer as one, which may hold the state of another provider."""

    name = NAME
    members = _MEMBERS
    server_policy = "OpenAIChatCompat"
    server_tools = _SERVER_TOOLS

    def is_body(self, body: Json) -> bool:
        return "choices" in body

    # {"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
    #   "reasoning_content": "They want Paris.", "tool_calls": [{"id": "call_1", "type": "function",
    #   "function": {"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}}]}}]}
    # https://developers.openai.com/api/reference/resources/chat/subresources/completions/methods/create
    def read(self, body: Json) -> list[Reading]:
        return [_candidate(choice, body) for choice in objects(body.get("choices"))]

    def ran_itself(self, call_id: Any) -> bool:
        return anthropic.ran_itself(call_id)  # a gateway may have asked Claude

    def reasoning_in(self, state: Json) -> Json | None:
        block = an_object(next(iter(state["blocks"]), None)) if state["dialect"] == NAME else {}
        reasoning = {field: block[field] for field in _REASONING if field in block}
        return {"dialect": NAME, "blocks": [reasoning]} if reasoning else None

    def without_calls(self, body: Json) -> Json:
        bare = {"tool_calls": None, "function_call": None}
        choices = [
            {**choice, "message": {**an_object(choice.get("message")), **bare}}
            for choice in objects(body.get("choices"))
        ]
        return {**body, "choices": choices}

    # {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
    #   "function": {"name": "get_weather", "arguments": ""}}]}}]}
    # {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{\"ci"}}]}}]}
    # https://developers.openai.com/api/reference/resources/chat/subresources/completions/streaming-events
    def assemble(self, events: Iterable[Json]) -> Json:
        body: Json = {}
        choices: dict[int, list[Json]] = {}
        for event in events:
            counts = event.get("usage") or body.get("usage")
            body.update(event)
            body["usage"] = counts  # most chunks have null there, in some servers' streams those at the end
            for choice in objects(event.get("choices")):
                index = choice.get("index")
                choices.setdefault(index if isinstance(index, int) else 0, []).append(choice)
        return {**body, "choices": [_whole_choice(chunks) for _, chunks in sorted(choices.items())]}

    # {"usage": {"prompt_tokens": 304, "completion_tokens": 49, "total_tokens": 353, "cost": 0.0076,
    #   "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 23}}}
    # In a stream, Groq has it in the last chunk's `x_groq`. DeepSeek and Moonshot count cached tokens in
    # members of their own; `cost` is OpenRouter's.
    # https://developers.openai.com/api/reference/resources/chat/subresources/completions/methods/create
    def usage(self, body: Json) -> AnswerUsage | None:
        counts = an_object(body.get("usage")) or an_object(an_object(body.get("x_groq")).get("usage"))
        read = count_in(counts, "prompt_tokens")
        written = count_in(counts, "completion_tokens")
        thinking = count_in(counts, "completion_tokens_details.reasoning_tokens")
        if read is not None and written is not None and thinking:
            # xAI counts the thinking beside what was written, others count it among that.
            total = count_in(counts, "total_tokens")
            written += thinking if total == read + written + thinking else 0
        cached = count_in(
            counts, "prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"
        )
        return answer_usage(counts, read=read, written=written, cached=cached, cost=price_in(counts, "cost"))

    def is_request(self, body: Json) -> bool:
        return is_array(body.get("messages"))

    # {"model": "gpt-5", "messages": [{"role": "user", "content": "Weather?"}], "tools": [...]}
    # https://developers.openai.com/api/reference/resources/chat/subresources/completions/methods/create
    def request(self, body: Json) -> Recording:
        record = Recording(NAME, part_of_chat, _more_in)
        record.tools = [*objects(body.get("tools"))]
        record.tools += [{"type": "function", "function": each} for each in objects(body.get("functions"))]
        record.set(body, _SETTINGS, ("messages", "tools", "functions"))
        for place, message in enumerate(objects(body["messages"])):
            where = ("messages", place)
            role = message.get("role")
            content = message.get("content")
            record.lose_members(message, _MEMBERS_OF_ROLES.get(str(role), frozenset(message)), where)
            if role in ("system", "developer"):
                record.instruct(content, (*where, "content"))
            elif role == "user":
                record.ask(content, (*where, "content"))
            elif role == "assistant":
                record.turns += self.read({"choices": [{"message": message}]})
            elif role in ("tool", "function"):
                call = message.get("tool_call_id"), message.get("name")
                record.tell(call, content, where, failed=None)
            else:
                record.lose(where, f"a message of the role {role!r} has no neutral form, and is left out")
        return record

    # {"role": "user", "content": "Weather?"}
    # DeepSeek wants `reasoning_content` in each message of the model, an empty one too.
    def message(self, role: Role, content: str | Sequence[Json], route: Route) -> Json:
        if role == "assistant" and route.turns.empty_reasoning:
            return {"role": role, "content": content, "reasoning_content": ""}
        word = route.turns.developer_role if role == "developer" else role
        return {"role": word, "content": content if isinstance(content, str) else [*content]}

    # {"role": "assistant", "content": "Let me look.", "tool_calls": [{"id": "call_1", "type": "function",
    #   "function": {"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}}]}
    def turn(self, message: Json, state: Json | None, route: Route) -> list[Json]:
        if state is not None and state["dialect"] != NAME:
            return [_with_state_for_litellm(self._turn(message, {}, {}, route), state)]
        block: Json = state["blocks"][0] if state is not None and state["blocks"] else {}
        ids: Sequence[str] = state.get("ids", ()) if state is not None else ()
        saved_calls = dict(zip(ids, objects(block.get("tool_calls")), strict=False))
        return [self._turn(message, block, saved_calls, route)]

    def _turn(self, message: Json, block: Json, saved_calls: Mapping[str, Json], route: Route) -> Json:
        """Return a turn, with what its server sent beside the text and beside each call."""
        row = self.message("assistant", message.get("content") or "", route)
        row["content"] = row["content"] or None
        field = next((field for field in _REASONING if block.get(field)), None)
        if field is not None and route.turns.reasoning_field is not None:
            row[route.turns.reasoning_field or field] = block[field]
        row |= {key: block[key] for key in block if key in _WANTED_BACK}
        calls = message.get("tool_calls") or ()
        if calls:
            row["tool_calls"] = [{**saved_calls.get(call["id"], {}), **_written_call(call)} for call in calls]
        return row

    # {"role": "tool", "tool_call_id": "call_1", "content": "18 C"}
    # A tool message takes text alone, so an image follows the results in a message of the user:
    # https://developers.openai.com/api/reference/resources/chat/subresources/completions/methods/create
    def results(self, results: Sequence[Result], turn: Sequence[Json], route: Route) -> list[Json]:
        rows: list[Json] = []
        for result in results:
            content: Any = result.text
            if route.results.as_objects:  # LiteLLM sends JSON text of an object as that object
                content = compact(result.value)
            if result.blocks is not None:
                texts = [{"type": "text", "text": content}] if route.results.as_objects else []
                content = [*texts, *result.blocks]
            rows.append({"role": "tool", "tool_call_id": result.id, "content": content})
        after = [block for result in results for block in result.after]
        return [*rows, {"role": "user", "content": after}] if after else rows

    def extras(self, state: Json, *, in_chat: bool = False) -> Iterator[str]:
        for block in state["blocks"]:
            yield from ("reasoning" if key in _REASONING else key for key in block if key != "tool_calls")
            yield from filter(None, map(_more_of, objects(block.get("tool_calls"))))
        yield from state.get("lost", ())

    # {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
    #   {"type": "function", "function": {"name": "get_weather"}}]}}, "parallel_tool_calls": false}
    def tool_choice(self, choice: str | Json | None, *, parallel: bool | None = None) -> Json:
        fields: Json = {}
        mode, names = functions_chosen(choice) or ("", [])
        if names:
            entries = [{"type": "function", "function": {"name": name}} for name in names]
            several = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": entries}}
            fields["tool_choice"] = entries[0] if mode == "required" and len(entries) == 1 else several
        elif choice is not None or parallel is not None:
            fields["tool_choice"] = "auto" if choice is None else choice
        if parallel is not None and choice != "none":
            fields["parallel_tool_calls"] = parallel
        return fields


# Sources: `FunctionDefinition` and `ChatCompletionCustomToolParam` of OpenAI's SDK 2.54; read on 2026-11-21.
# A function has no further field but `strict`, and many servers refuse a request with fields unknown to them.
_ROUTE = Route(
    NAME,
    "lm15",
    models=RouteModels(adapter="OpenAIChatLM"),
    turns=TurnRules(takes=frozenset({NAME})),
    # Source: the guides "Images and vision" and "File inputs" of developers.openai.com (of files, PDF alone);
    # read on 2026-11-28. Servers like it take no more, as far as they say.
    results=ResultRules(behind=chat_block, images=PICTURES, files=PDF),
    choices=ChoiceRules(forms=ALL_CHOICES | {"custom"}),
    tools=ToolRules(strict=True, custom=True),
    ids=IdentifierRules(UNSIGNED, 40),
    question_block=named_chat_block,
)
_OVER_LITELLM = _ROUTE._replace(
    client="litellm",
    as_chat=True,
    models=RouteModels(),
    choices=ChoiceRules(NO_SUBSET),
    question_block=as_written,
)
_TEXT_ONLY = _OVER_LITELLM._replace(results=ResultRules(behind=chat_text), question_block=only("text"))
"""For providers to which LiteLLM sends only the texts of a user message, whatever else it holds."""
_WITH_REASONING = _ROUTE.turns._replace(reasoning_field="reasoning_content")

_TO_AZURE = _ROUTE.tools._replace(root_pattern=r"(?!(anyOf|oneOf|allOf|not|enum|const)$).+")
"""What litellm 1.106 leaves of a schema's root for Azure, in `gpt_transformation.py`."""

# The first route of each client also serves every server without a route of its own.
PROVIDER = OpenAIChat(
    _ROUTE,
    # xAI ignores a choice among several functions, as lm15 measured.
    _ROUTE._replace(
        models=RouteModels(server="xai"), choices=_ROUTE.choices._replace(forms=NO_SUBSET | {"custom"})
    ),
    _OVER_LITELLM,
    _OVER_LITELLM._replace(models=RouteModels(prefixes=frozenset({"azure"})), tools=_TO_AZURE),
    _OVER_LITELLM._replace(models=RouteModels(prefixes=frozenset({"moonshot"})), turns=_WITH_REASONING),
    _TEXT_ONLY._replace(models=RouteModels(prefixes=frozenset({"deepseek"})), turns=_WITH_REASONING),
    _TEXT_ONLY._replace(
        models=RouteModels(prefixes=frozenset({"sambanova", "heroku", "docker_model_runner", "publicai"}))
    ),
)
