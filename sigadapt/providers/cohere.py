"""Cohere's chat API, version 2.

Sources: Cohere's API reference (v2 chat, its stream events) and recorded answers.

Reasoning is `message.tool_plan`, the plan that the model writes before its calls, and the `thinking` content
parts; neither is an answer to the user. A streamed call ends with its `tool-call-end`, or with `message-end`.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.json_values import Json
from sigadapt.providers.provider import Provider
from sigadapt.providers.route import (
    NO_SUBSET,
    ChoiceRules,
    DocumentedMembers,
    Route,
    RouteModels,
)
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in
from sigadapt.providers.wire.reading import Reading, finish_word, mark_last_cut_off
from sigadapt.providers.wire.stream_parts import Block, Blocks
from sigadapt.providers.wire.values import (
    an_object,
    calls_of,
    chat_call,
    content_parts,
    is_text,
    join_texts,
    json_text,
    kind_of,
    member_names,
    usual_call,
)

NAME = "cohere"

_FINISH = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_calls",
    "MAX_TOKENS": "length",
    "ERROR": "error",
    "TIMEOUT": "error",
    "ERROR_TOXIC": "content_filter",
    "ERROR_LIMIT": "length",
}
_EVENTS = {
    "message-start", "message-end", "content-start", "content-delta", "content-end",
    "tool-plan-delta", "tool-call-start", "tool-call-delta", "tool-call-end",
}  # fmt: skip


def _whole_call(block: Block, *, ended: bool) -> Json:
    """Return the call that a streamed call makes."""
    fragments = [usual_call(fragment) for fragment in block.deltas] or [{}]
    functions = [an_object(fragment.get("function")) for fragment in fragments]
    text = json_text(function.get("arguments") for function in functions)
    return {
        **fragments[0],
        "function": {**functions[0], "arguments": block.arguments(text or None, ended=ended)},
    }


_MEMBERS = DocumentedMembers(
    body=member_names("""
        model messages documents preamble stream temperature p k seed max_tokens stop_sequences
        frequency_penalty presence_penalty logprobs response_format safety_mode strict_tools
        citation_options tool_choice thinking
    """),
    tool_lists=member_names("tools"),
    tool_groups=member_names("function"),
    tool=member_names("type name description parameters"),
)
"""What its references document of a request and of tools."""


class Cohere(Provider):
    """Cohere's chat API."""

    name = NAME
    telemetry = "cohere"
    members = _MEMBERS

    def is_body(self, body: Json) -> bool:
        return "finish_reason" in body and "message" in body

    # {"finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_plan": "I will look.",
    #   "tool_calls": [{"id": "get_weather_1", "type": "function", "function": {"name": "get_weather",
    #   "arguments": "{\"city\":\"Paris\"}"}}]}}
    # https://docs.cohere.com/reference/chat
    def read(self, body: Json) -> list[Reading]:
        message = an_object(body.get("message"))
        parts = content_parts(message.get("content"))
        finish = finish_word(body.get("finish_reason"), _FINISH)
        calls = [chat_call(call) for call in calls_of(message.get("tool_calls"))]
        text = join_texts(part.get("text") for part in parts)
        thinking = join_texts([message.get("tool_plan"), *(part.get("thinking") for part in parts)])
        return [Reading(text, thinking, mark_last_cut_off(calls, finish), finish)]

    # {"usage": {"billed_units": {"input_tokens": 41, "output_tokens": 25}, "cached_tokens": 144,
    #   "tokens": {"input_tokens": 1441, "output_tokens": 54}}}
    # https://docs.cohere.com/reference/chat
    def usage(self, body: Json) -> AnswerUsage | None:
        counts = an_object(body.get("usage"))
        read = count_in(counts, "tokens.input_tokens", "billed_units.input_tokens")
        written = count_in(counts, "tokens.output_tokens", "billed_units.output_tokens")
        return answer_usage(counts, read=read, written=written, cached=count_in(counts, "cached_tokens"))

    def is_event(self, event: Json) -> bool:
        return kind_of(event) in _EVENTS

    # {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {"id": "c1", ...}}}}
    # {"type": "tool-call-delta", "index": 0,
    #  "delta": {"message": {"tool_calls": {"function": {"arguments": "{"}}}}}
    # https://docs.cohere.com/docs/streaming
    def assemble(self, events: Iterable[Json]) -> Json:
        body: Json = {"finish_reason": None}
        plan: list[Any] = []
        parts = Blocks()
        calls = Blocks()
        for event in events:
            kind = kind_of(event)
            index = event.get("index")
            delta = an_object(event.get("delta"))
            message = an_object(delta.get("message"))
            if kind == "message-start":
                body["id"] = event.get("id")
            elif kind == "tool-plan-delta":
                plan.append(message.get("tool_plan"))
            elif kind in {"content-start", "content-delta"}:
                part = parts.open(index, {}) if kind == "content-start" else parts.at(index)
                part.deltas += content_parts(message.get("content"))
            elif kind in {"tool-call-start", "tool-call-delta"}:
                for fragment in calls_of(message.get("tool_calls")) or [{}]:
                    call = calls.open(index, {}) if kind == "tool-call-start" else calls.at(index)
                    call.deltas.append(fragment)
            elif kind == "tool-call-end":
                calls.at(index).ended = True
            elif kind == "message-end":
                body.update(delta)
        ended = is_text(body.get("finish_reason"))
        message = {
            "role": "assistant",
            "tool_plan": join_texts(plan),
            "content": [
                {
                    "type": next((piece["type"] for piece in part.deltas if "type" in piece), "text"),
                    **{key: join_texts(part.pieces(key)) for key in ("text", "thinking")},
                }
                for part in parts.all
            ],
            "tool_calls": [_whole_call(call, ended=ended) for call in calls.all],
        }
        return {**body, "message": message}


PROVIDER = Cohere(
    Route(
        NAME,
        "litellm",
        as_chat=True,
        models=RouteModels(prefixes=frozenset({NAME, "cohere_chat"})),
        choices=ChoiceRules(forms=NO_SUBSET, parallel=False),
    )
)
