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
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from sigadapt.providers.provider import (
    NO_SUBSET,
    ChatFields,
    CutOff,
    JsonText,
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
    is_text,
    joined,
    json_text,
    objects,
    parts_of,
    said,
    state,
    text_of,
    word,
)
from sigadapt.providers.stream_parts import fold
from sigadapt.schemas.json_values import Json, is_object, spelled

NAME = "openai-chat"

_USUAL = ("tool_calls", "stop")  # canonical words of an answer that was not cut off
_FINISH = {
    "function_call": "tool_calls",
    "model_length": "length",  # Mistral: the model's context is full
}
_REASONED = frozenset(
    ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "provider_specific_fields")
)
_CALLS = frozenset(("tool_calls", "function_call"))
_OWN_IDS = ("srvtoolu_", "mcptoolu_")  # Anthropic's ids of server tools and of MCP tools
_HEAD = {"id", "type", "index"}
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
_LISTS = ("reasoning_details", "annotations")


def is_body(body: Json) -> bool:
    """Return whether a body is a chat completion."""
    return "choices" in body


StateFromChat: TypeAlias = Callable[[Json, str | None], Json | None]


def read(body: Json, carried: Sequence[StateFromChat] = ()) -> list[Reading]:
    """Return one Reading per entry of `choices`.

    Args:
        body: the chat completion.
        carried: the `state_from_chat` of each provider whose answers LiteLLM writes as chat completions.

    Example:
        >>> message = {"content": None, "tool_calls": [{"id": "c1", "function": {"name": "now"}}]}
        >>> read({"choices": [{"message": message, "finish_reason": "tool_calls"}]})[0].calls
        [('c1', 'now', None)]
    """
    return [_candidate(choice, carried) for choice in objects(body.get("choices"))]


def _candidate(choice: Json, carried: Sequence[StateFromChat]) -> Reading:
    message = an_object(choice.get("message")) or {"content": choice.get("message") or choice.get("text")}
    calls = [_call(call) for call in calls_of(message.get("tool_calls"))]
    if "function_call" in message:
        calls += _function_call(message["function_call"])
    text, thinking = message.get("content"), None
    if text and not isinstance(text, str):
        parts = parts_of(text)
        text, thinking = joined(map(_part_text, parts)), joined(map(_part_thinking, parts))
    if message.get("refusal"):
        text = joined([text, message["refusal"]])
    text = text or None if isinstance(text, str) else None
    finish = choice.get("finish_reason")
    if finish.__class__ is not str or finish not in _USUAL:
        finish = word(finish, _FINISH)
        calls = cut_last(calls, finish)
    if _REASONED.isdisjoint(message):
        return Reading(text, thinking, calls, finish)
    calls = [call for call in calls if not ran_itself(call[0])]
    refusal = an_object(message.get("provider_specific_fields")).get("refusal")
    if is_text(refusal) and not message.get("refusal"):  # where LiteLLM puts it
        text = joined([text, refusal])
    return Reading(text, _reasoning(message) or thinking, calls, finish, _state(message, text, carried))


def ran_itself(id: Any) -> bool:  # noqa: A002
    """Return whether a call with this id is one that Claude made of its own tools, and LiteLLM hands out.

    Example:
        >>> ran_itself("srvtoolu_01"), ran_itself("toolu_01"), ran_itself(None)
        (True, False, False)
    """
    return isinstance(id, str) and id.startswith(_OWN_IDS)


def _state(message: Json, text: str | None, carried: Sequence[StateFromChat]) -> Json | None:
    """Return the provider state that a chat message holds: another provider's, from LiteLLM, or our own."""
    for state_from_chat in carried:
        found = state_from_chat(message, text)
        if found is not None:
            return found
    if not is_text(message.get("reasoning_content")):
        return None
    # DeepSeek, Moonshot and Ollama want it back in the same field; their routes have `replays_reasoning`.
    thinking = said("thinking", message["reasoning_content"], [NAME, "reasoning_content", {}])
    calls = (called() for _ in calls_of(message.get("tool_calls")))
    return state(NAME, [thinking, said("text", text), *calls])


def state_to_chat(state: Json, route: Route) -> ChatFields:
    """Return a turn's state as `reasoning_content`, on routes whose server wants that field back."""
    if not route.replays_reasoning:
        return ChatFields({}, {})
    thinking = [item["text"] for item in state["items"] if "continuation" in item]
    return ChatFields({"reasoning_content": thinking[-1]} if thinking else {}, {})


def without_calls(body: Json) -> Json:
    """Return a chat completion without its calls."""
    choices = [
        {**choice, "message": {key: value for key, value in message.items() if key not in _CALLS}}
        for choice in objects(body.get("choices"))
        for message in [an_object(choice.get("message"))]
    ]
    return {**body, "choices": choices}


def _call(call: Json) -> RawCall:
    function: Any = call.get("function")
    try:
        return call.get("id"), function.get("name"), function.get("arguments")
    except AttributeError:  # no function; asking first would slow down the most common wire format
        usual = _usual(call)
    custom = usual.get("custom")
    if is_object(custom):
        return call.get("id"), custom.get("name"), custom.get("input")
    function = usual["function"]
    if function["name"] is None and function["arguments"] is None and call.keys() - _HEAD:
        return call.get("id"), None, JsonText(spelled(call))
    return call.get("id"), function["name"], function["arguments"]


def _usual(call: Json) -> Json:
    """Return a call, or a fragment of one, with its name and arguments in `function` or in `custom`.

    Some servers put them beside the id, or send `function` as JSON text.
    """
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


def _whole_function_call(fragments: list[Json], *, ended: bool) -> Json:
    name = next((fragment["name"] for fragment in fragments if fragment.get("name")), None)
    arguments = json_text(fragment.get("arguments") for fragment in fragments)
    return {"name": name, "arguments": arguments if ended or not name else CutOff(arguments)}


_ROUTE = Route(NAME, "lm15", adapter="OpenAIChatLM", takes=frozenset({NAME}), strict=True, longest_id=40)
_OVER_LITELLM = replace(_ROUTE, door="litellm", choices=NO_SUBSET, as_chat=True)

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    state_to_chat=state_to_chat,
    without_calls=without_calls,
    routes=(
        _ROUTE,
        _OVER_LITELLM,
        replace(_OVER_LITELLM, prefixes=frozenset({"deepseek", "moonshot"}), replays_reasoning=True),
    ),
)
"""The first route of each door also serves every server without a route of its own."""
