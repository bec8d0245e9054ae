"""OpenAI Chat Completions, and the many compatible servers.

Sources: OpenAI's API reference (the chat completion object and its chunk). For what compatible servers add:
recorded answers of Mistral, DeepSeek, Groq, OpenRouter, Hugging Face, Cerebras, Snowflake and Ollama.

Reasoning is `reasoning_content` (DeepSeek, vLLM, LiteLLM), else `reasoning` (OpenRouter, Groq, Ollama), else
the texts of `reasoning_details` (OpenRouter, Snowflake), else Mistral's `thinking` content parts. A `custom`
tool call is a call whose arguments are free text instead of JSON. The deprecated `function_call` is a call
without an id. Legacy text completions have a `text` instead of a message.

LiteLLM writes Claude's server tools as calls. These are left out, as in `anthropic.py`.

Servers that bend the format are read too: calls as one object or as JSON text (`reading.calls_of`), a call
without `function` around its name and arguments, content as one part or with texts among its parts.

A turn goes back with what its server documents as wanted back: `reasoning_details` and file `annotations`
(OpenRouter), the id of an `audio` answer (OpenAI), `thinking` content parts (Mistral), and fields of a call
such as `extra_content` (Gemini's compatible API). So do `custom` calls.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from sigadapt.providers.provider import (
    ALL_CHOICES,
    NO_SUBSET,
    ChatFields,
    CutOff,
    FreeText,
    JsonText,
    Malformed,
    OwnTurn,
    Provider,
    RawCall,
    Reading,
    Route,
)
from sigadapt.providers.reading import (
    an_object,
    called,
    calls_of,
    cut_last,
    details_in,
    is_text,
    joined,
    json_text,
    kept,
    more_than,
    objects,
    other,
    parts_of,
    ran_itself,
    said,
    state,
    text_of,
    word,
)
from sigadapt.providers.result_blocks import chat_block, chat_text, put_in_chat
from sigadapt.providers.stream_parts import fold
from sigadapt.providers.writing import in_order, name_of, text_of_arguments, with_turns, written_text
from sigadapt.schemas.json_values import Json, as_unicode, is_array, is_object, spelled

NAME = "openai-chat"

_USUAL = ("tool_calls", "stop")  # canonical words of an answer that was not cut off
_FINISH = {
    "function_call": "tool_calls",
    "model_length": "length",  # Mistral: the model's context is full
    "insufficient_system_resource": "error",  # DeepSeek
    "abort": "error",  # vLLM
    "sensitive": "content_filter",  # Zhipu
    "network_error": "error",  # Zhipu
}
# What providers behind a gateway say, where its finish reason is only "stop".
_MALFORMED = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "malformed_tool_use"}
_NATIVE = {
    **{each: each for each in _MALFORMED},
    **dict.fromkeys(("MAX_TOKENS", "max_tokens", "max_output_tokens", "length"), "length"),
    **dict.fromkeys(
        ("error", "abort", "insufficient_system_resource", "OTHER", "MALFORMED_RESPONSE"), "error"
    ),
    **dict.fromkeys(("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "content_filter"), "content_filter"),
    "pause_turn": "pause",
    "refusal": "refusal",
}
_MORE = frozenset(
    (
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "thinking_blocks",
        "provider_specific_fields",
        "audio",
    )
)
_CALL_FIELDS = frozenset(("id", "type", "function", "index"))
_CALLS = frozenset(("tool_calls", "function_call"))
_HEAD = {"id", "type", "index"}
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
_LISTS = ("reasoning_details", "annotations")
_GROWING = ("text", "summary", "data", "thinking")


def is_body(body: Json) -> bool:
    """Return whether a body is a chat completion."""
    return "choices" in body


StateFromChat: TypeAlias = Callable[[Json, str | None], Json | None]


def read(body: Json, carried: Sequence[StateFromChat] = ()) -> list[Reading]:
    """Return one Reading per entry of `choices`.

    Example:
        >>> message = {"content": None, "tool_calls": [{"id": "c1", "function": {"name": "now"}}]}
        >>> read({"choices": [{"message": message, "finish_reason": "tool_calls"}]})[0].calls
        [('c1', 'now', None)]
    """
    choices: list[Any] = body.get("choices") or []
    if choices.__class__ is list and len(choices) == 1 and choices[0].__class__ is dict:
        return [_candidate(choices[0], carried)]  # spares most answers two lists
    return [_candidate(choice, carried) for choice in objects(choices)]


def _candidate(choice: Json, carried: Sequence[StateFromChat]) -> Reading:
    message = an_object(choice.get("message")) or {"content": choice.get("message") or choice.get("text")}
    calls: list[RawCall] = []
    holds_more = "annotations" in message and message["annotations"]
    for call in calls_of(message.get("tool_calls")):
        function: Any = call.get("function")
        if function.__class__ is dict and _CALL_FIELDS.issuperset(call):
            calls.append((call.get("id"), function.get("name"), function.get("arguments")))
        else:
            holds_more = True
            calls.append(_call(call))
    if "function_call" in message:
        calls += _function_call(message["function_call"])
    text, thinking = message.get("content"), None
    if text and not isinstance(text, str):
        parts = parts_of(text)
        text, thinking = joined(map(_part_text, parts)), joined(map(_part_thinking, parts))
        holds_more = holds_more or thinking
    # LiteLLM puts the refusal in `provider_specific_fields`.
    refusal = message.get("refusal") or an_object(message.get("provider_specific_fields")).get("refusal")
    if is_text(refusal):
        text = joined([text, refusal])
    text = text or None if isinstance(text, str) else None
    finish, why = choice.get("finish_reason"), None
    if finish.__class__ is not str or finish not in _USUAL:
        finish = word(finish, _FINISH)
        calls = cut_last(calls, finish)
    if is_text(refusal) and not calls:
        finish = "refusal"
    if "provider_specific_fields" in choice or "native_finish_reason" in choice or "error" in choice:
        finish, why = _native_end(choice, finish)
        calls = cut_last(calls, finish)
        if finish in _MALFORMED:
            calls.append((None, None, Malformed(why or finish)))
    if not holds_more and _MORE.isdisjoint(message):
        return Reading(text, thinking, calls, finish, None, why)
    calls = [call for call in calls if not ran_itself(call[0])]
    thinking = _reasoning(message) or thinking
    return Reading(text, thinking, calls, finish, _state(message, text, carried), why)


def _native_end(choice: Json, finish: str | None) -> tuple[str | None, str | None]:
    """Return the finish reason and its details; a gateway's word may hide the provider's."""
    # LiteLLM writes "stop" for words that it does not know, and keeps the provider's word in
    # `provider_specific_fields.native_finish_reason`.
    # OpenRouter, if a provider fails in the middle: {"finish_reason": "error", "error": {"message": "..."}}
    # https://openrouter.ai/docs/api-reference/errors
    beside = an_object(choice.get("provider_specific_fields"))
    error = choice.get("error") or beside.get("error")
    native = word(beside.get("native_finish_reason") or choice.get("native_finish_reason"), {})
    if error:
        return "error", details_in(error)
    if native in _NATIVE and finish != "content_filter":
        return _NATIVE[native], native
    return finish, None


def _state(message: Json, text: str | None, carried: Sequence[StateFromChat]) -> Json | None:
    """Return the provider state that a chat message holds: another provider's, from LiteLLM, or our own."""
    for state_from_chat in carried:
        found = state_from_chat(message, text)
        if found is not None:
            return found
    return state(NAME, _items(message, text))


def _items(message: Json, text: str | None) -> Iterator[Json]:
    if is_text(message.get("reasoning_content")):
        # DeepSeek, Moonshot and Ollama want it back in the same field; their routes have `replays_reasoning`.
        yield said("thinking", message["reasoning_content"], [NAME, "reasoning_content", {}])
    fields = dict(_wanted_back(message))
    if fields:
        yield other(", ".join(fields), fields)
    content, item = message.get("content"), said("text", text)
    has_thinking = is_array(content) and any("thinking" in part for part in objects(content))
    yield kept(item, "thinking", {"content": content}) if has_thinking else item
    for call in calls_of(message.get("tool_calls")):
        more = "" if call.keys() <= _CALL_FIELDS else more_than(call, _CALL_FIELDS)
        yield kept(called(), more, _without_arguments(call)) if more else called()


def _wanted_back(message: Json) -> Iterator[tuple[str, Any]]:
    """Yield the fields that the server wants back; LiteLLM puts them in `provider_specific_fields`."""
    beside = an_object(message.get("provider_specific_fields"))
    details = objects(message.get("reasoning_details") or beside.get("reasoning_details"))
    if details:
        yield "reasoning_details", details
    audio = an_object(message.get("audio")).get("id")
    if is_text(audio):
        yield "audio", {"id": audio}
    noted = objects(message.get("annotations") or beside.get("annotations"))
    files = [note for note in noted if note.get("type") == "file"]
    if files:
        yield "annotations", files


def _without_arguments(call: Json) -> Json:
    custom = {"custom": {"name": ""}} if is_object(call.get("custom")) else {}
    return {**{key: value for key, value in call.items() if key not in ("function", "index")}, **custom}


def own_turn(state: Json, calls: Sequence[Json]) -> list[Json]:
    """Return a turn as one chat message.

    Example:
        >>> details = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}
        >>> call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        >>> items = [{"type": "other", "wire": details}, {"type": "call", "id": "c1"}]
        >>> sorted(own_turn({"dialect": "openai-chat", "items": items}, [call])[0])
        ['content', 'reasoning_details', 'role', 'tool_calls']
    """
    message: Json = {"role": "assistant", "content": None}
    made: list[Json] = []
    for item, call in in_order(state["items"], calls):
        block = an_object(item.get("wire"))
        if call is not None:
            made.append(_own_call(call, block))
        elif item["type"] == "text":
            message["content"] = block.get("content") or as_unicode(item["text"]) or None
        elif item["type"] == "thinking":
            message["reasoning_content"] = as_unicode(item["text"])
        else:
            message.update(block)
    return [{**message, "tool_calls": made}]


def _own_call(call: Json, block: Json) -> Json:
    if "custom" in block:
        custom = {"name": name_of(call), "input": written_text(call)}
        return {**block, "id": call["id"], "type": "custom", "custom": custom}
    function = {"name": name_of(call), "arguments": text_of_arguments(call)}
    return {**block, "id": call["id"], "type": "function", "function": function}


def put_turns(body: Mapping[str, Any], turns: Sequence[OwnTurn]) -> Json:
    """Return the `messages` of a request with turns of the model as it wrote them.

    Example:
        >>> call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        >>> own = {"role": "assistant", "content": None, "audio": {"id": "a1"}, "tool_calls": [call]}
        >>> body = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
        >>> put_turns(body, [OwnTurn(0, 1, [own])])["messages"] == [own]
        True
    """
    # `reasoning_content` is sent only where lm15 writes it: most servers do not know it.

    def put(message: Json, turn: OwnTurn) -> Json:
        own = turn.blocks[0]
        return {**message, **{key: own[key] for key in own if key != "reasoning_content" or key in message}}

    return {"messages": with_turns(body["messages"], turns, _calls_in, put)}


def _calls_in(message: Json) -> int:
    return len(message.get("tool_calls") or ())


def state_to_chat(state: Json, route: Route) -> ChatFields:
    """Return a turn's state as fields of a chat message; `reasoning_content` if the route's server wants it.

    Example:
        >>> details = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}
        >>> items = [{"type": "other", "wire": details}]
        >>> state_to_chat({"dialect": "openai-chat", "items": items}, PROVIDER.routes[1]).message == details
        True
    """
    message: Json = {}
    calls: dict[str, Json] = {}
    for item in state["items"]:
        block = an_object(item.get("wire"))
        if item["type"] == "thinking" and route.replays_reasoning:
            message["reasoning_content"] = item["text"]
        elif item["type"] == "call" and "custom" not in block:
            calls[item["id"]] = {key: block[key] for key in block if key not in _CALL_FIELDS}
        elif item["type"] in ("text", "other"):
            message.update(block)
    return ChatFields(message, {call: fields for call, fields in calls.items() if fields})


def without_calls(body: Json) -> Json:
    """Return a chat completion without its calls."""
    choices = [
        {**choice, "message": {key: value for key, value in message.items() if key not in _CALLS}}
        for choice in objects(body.get("choices"))
        for message in [an_object(choice.get("message"))]
    ]
    return {**body, "choices": choices}


def put_texts(body: Mapping[str, Any], texts: Mapping[str, str]) -> Json:
    """Return the `messages` of a request with the calls of custom tools in their own form.

    Example:
        >>> call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        >>> body = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
        >>> put_texts(body, {"c1": "1 + 1"})["messages"][0]["tool_calls"]
        [{'id': 'c1', 'type': 'custom', 'custom': {'name': 'run', 'input': '1 + 1'}}]
    """
    messages = [
        {**message, "tool_calls": [_with_text(call, texts) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in body["messages"]
    ]
    return {"messages": messages}


def _with_text(call: Json, texts: Mapping[str, str]) -> Json:
    if call["id"] not in texts or "function" not in call:
        return call
    rest = {key: value for key, value in call.items() if key != "function"}
    return {
        **rest,
        "type": "custom",
        "custom": {"name": call["function"]["name"], "input": texts[call["id"]]},
    }


def choice(chosen: Json, parallel: bool | None) -> Json | None:  # noqa: ARG001, FBT001
    """Return a canonical tool choice as fields of the body; None for a tool that the provider runs itself."""
    return {"tool_choice": chosen} if chosen["type"] in ("custom", "allowed_tools") else None


def _call(call: Json) -> RawCall:
    function: Any = call.get("function")
    try:
        return call.get("id"), function.get("name"), function.get("arguments")
    except AttributeError:  # no function; asking first would slow down the most common wire format
        usual = _usual(call)
    custom = usual.get("custom")
    if is_object(custom):
        return call.get("id"), custom.get("name"), FreeText.of(custom.get("input"))
    function = usual["function"]
    if function["name"] is None and function["arguments"] is None and call.keys() - _HEAD:
        return call.get("id"), None, JsonText(spelled(call))
    return call.get("id"), function["name"], function["arguments"]


def _usual(call: Json) -> Json:
    """Return a call, or a fragment of one, with its name and arguments in `function` or in `custom`."""
    # Some servers put them beside the id, or send `function` as JSON text.
    function = call.get("function")
    if is_object(function) or is_object(call.get("custom")):
        return call
    found = calls_of(function, _only_arguments) if function else [call]
    inner = found[0] if len(found) == 1 else {"arguments": JsonText(spelled(function))}
    arguments = inner.get("arguments")
    sent = {"name": inner.get("name"), "arguments": inner.get("input") if arguments is None else arguments}
    return {**call, "function": sent}


def _only_arguments(text: JsonText) -> Json:
    return {"arguments": text}


def _function_call(value: Any) -> list[RawCall]:
    """Return the call in `function_call`; none if it is empty, as Snowflake sends it beside real calls."""
    found = [(None, call.get("name"), call.get("arguments")) for call in calls_of(value, _only_arguments)]
    return [call for call in found if call[1] or call[2]]


def _part_text(part: Json) -> Any:
    return part.get("refusal") if part.get("type") == "refusal" else part.get("text")


def _part_thinking(part: Json) -> Any:
    thinking = part.get("thinking")
    return thinking if isinstance(thinking, str) else joined(piece.get("text") for piece in objects(thinking))


def _reasoning(message: Json) -> str | None:
    shown = text_of(message.get("reasoning_content") or message.get("reasoning"))
    if shown is None and "reasoning_details" in message:
        return joined(
            part.get("text") or part.get("summary") for part in objects(message["reasoning_details"])
        )
    return shown


def is_event(event: Json) -> bool:
    """Return whether an event is a chat completion chunk."""
    return "choices" in event


def assemble(events: Iterable[Json]) -> Json:
    """Return the chat completion that a stream's chunks make."""
    body: Json = {}
    choices: dict[int, list[Json]] = {}
    for event in events:
        body.update(event)
        for choice in objects(event.get("choices")):
            index = choice.get("index")
            choices.setdefault(index if isinstance(index, int) else 0, []).append(choice)
    return {**body, "choices": [_whole_choice(chunks) for _, chunks in sorted(choices.items())]}


def _whole_choice(chunks: list[Json]) -> Json:
    whole: Json = {}
    fields: dict[str, list[Any]] = {}
    for chunk in chunks:
        whole.update({key: value for key, value in chunk.items() if value is not None})
        # Some servers answer a streaming request with the whole message instead of deltas.
        sent = chunk.get("delta") or chunk.get("message")
        delta = an_object(sent) or {"content": sent or chunk.get("text")}
        for key, value in delta.items():
            if value is not None:
                fields.setdefault(key, []).append(value)
    ended = is_text(whole.get("finish_reason"))
    message = {key: _whole_field(key, values) for key, values in fields.items()}
    if "reasoning_details" in message:
        message["reasoning_details"] = _joined(message["reasoning_details"], ("type", "index"))
    if is_array(message.get("content")):
        message["content"] = _joined(message["content"], ("type",))
    if "tool_calls" in fields:
        fragments = [_usual(call) for calls in fields["tool_calls"] for call in calls_of(calls)]
        message["tool_calls"] = fold(fragments, ended=ended)
    if "function_call" in fields:
        pieces = calls_of(fields["function_call"], _only_arguments)
        message["function_call"] = _whole_function_call(pieces, ended=ended)
    whole.pop("delta", None)
    return {**whole, "message": message}


def _whole_field(key: str, values: list[Any]) -> Any:
    if key in _TEXTS and all(isinstance(value, str) for value in values):
        return joined(values) or ""
    if key in _LISTS or key in _TEXTS:
        return [part for value in values for part in parts_of(value)]
    return values[-1]


def _joined(pieces: Any, same: Sequence[str]) -> list[Json]:
    """Return streamed parts with each run of pieces of one part joined."""
    parts: list[Json] = []
    for piece in objects(pieces):
        last = parts[-1] if parts else {}
        if all(key in piece and piece[key] == last.get(key) for key in same):
            parts[-1] = {**last, **{key: _longer(last.get(key), value, key) for key, value in piece.items()}}
        else:
            parts.append(piece)
    return parts


def _longer(before: Any, piece: Any, key: str) -> Any:
    """Return a field of a part after one more piece: texts and lists of texts grow, others are replaced."""
    if key in _GROWING and isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if key in _GROWING and is_array(before) and is_array(piece):
        return _joined([*before, *piece], ("type",))
    return before if piece is None else piece


def _whole_function_call(fragments: list[Json], *, ended: bool) -> Json:
    name = next((fragment["name"] for fragment in fragments if fragment.get("name")), None)
    arguments = json_text(fragment.get("arguments") for fragment in fragments)
    return {"name": name, "arguments": arguments if ended or not name else CutOff(arguments)}


# Sources: `FunctionDefinition` and `ChatCompletionCustomToolParam` of OpenAI's SDK 2.54; read on 2026-11-21.
# A function has no further field but `strict`, and many servers refuse a request with fields unknown to them.
_ROUTE = Route(
    NAME,
    "lm15",
    adapter="OpenAIChatLM",
    takes=frozenset({NAME}),
    strict=True,
    in_questions=chat_block,
    longest_id=40,
    choices=ALL_CHOICES | {"custom"},
    custom_tools=True,
)
_OVER_LITELLM = replace(_ROUTE, door="litellm", choices=NO_SUBSET, as_chat=True)
_TEXT_ONLY = replace(_OVER_LITELLM, in_questions=chat_text)
"""For providers to which LiteLLM sends only the texts of a user message, whatever else it holds."""

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    own_turn=own_turn,
    put_turns=put_turns,
    put_results=put_in_chat,
    state_to_chat=state_to_chat,
    put_texts=put_texts,
    choice=choice,
    without_calls=without_calls,
    routes=(
        _ROUTE,
        _OVER_LITELLM,
        replace(_OVER_LITELLM, prefixes=frozenset({"moonshot"}), replays_reasoning=True),
        replace(_TEXT_ONLY, prefixes=frozenset({"deepseek"}), replays_reasoning=True),
        replace(_TEXT_ONLY, prefixes=frozenset({"sambanova", "heroku", "docker_model_runner", "publicai"})),
    ),
)
"""The first route of each door also serves every server without a route of its own."""
