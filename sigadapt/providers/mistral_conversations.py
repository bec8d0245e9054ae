"""Mistral's Conversations, whole and streamed: reading only, because DSPy's engines do not send this wire.

Sources: Mistral's API reference ("Conversations") and the types of its SDK (`ConversationResponse`,
`ConversationEvents`), read on 2026-11-22.

Calls are the `function.call` entries that no `function.result` answers. Mistral itself runs the tools of
`tool.execution` entries, and hands over to another agent in `agent.handoff`; both stay in `Choice.raw`. Text
is the text of `message.output` entries, reasoning that of their `thinking` chunks. The format has no finish
reason: an answer ends for its calls if it has any. A stream ends with `conversation.response.done`.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.json_values import Json
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.reading import Part, Reading, text_part, without_answered_call
from sigadapt.providers.wire.values import (
    JsonText,
    content_parts,
    join_texts,
    json_text,
    kind_of,
    objects,
    usual_arguments,
)
from sigadapt.schemas.arguments import CutOff

NAME = "mistral-conversations"

_EVENTS = ("conversation.response.", "message.output.", "function.call.", "tool.execution.", "agent.handoff.")


def _whole_entry(pieces: list[Json], *, ended: bool) -> Json:
    """Return the entry that the events of one place make."""
    entry = {**pieces[-1], **pieces[0]}
    kind = kind_of(entry)
    entry["type"] = ".".join(kind.split(".")[:2])  # without `delta`, `started` or `done`
    if kind.startswith("function.call"):
        text = JsonText(json_text(piece.get("arguments") for piece in pieces)) or None
        entry["arguments"] = text if ended else CutOff(text)
    elif kind.startswith("message.output"):
        contents: list[Any] = [piece.get("content") for piece in pieces]
        entry["content"] = [part for content in contents for part in content_parts(content)]
    return entry


class MistralConversations(Provider):
    """Conversations."""

    name = NAME
    telemetry = "mistral_ai"

    def is_body(self, body: Json) -> bool:
        return body.get("object") == "conversation.response"

    # {"object": "conversation.response", "conversation_id": "conv_1", "usage": {...}, "outputs": [
    #   {"type": "tool.execution", "name": "web_search", "arguments": "{\"query\": \"...\"}", "id": "tool_1"},
    #   {"type": "message.output", "content": [{"type": "text", "text": "Let me look."}], ...},
    #   {"type": "function.call", "id": "fc_1", "tool_call_id": "c1", "name": "get_weather",
    #    "arguments": "{\"city\": \"Paris\"}"}]}
    # https://docs.mistral.ai/api/#tag/beta.conversations
    def read(self, body: Json) -> list[Reading]:
        entries = objects(body.get("outputs"))
        result_ids = [entry.get("tool_call_id") for entry in entries if kind_of(entry) == "function.result"]
        parts = [without_answered_call(self.part_of(entry), result_ids) for entry in entries]
        # Mistral gives no finish reason. Only a stream can break off: `assemble` says whether it ended.
        finish = "stop" if all(part.call is None for part in parts) else "tool_calls"
        if not body.get("ended", True):
            finish = None
        return [self.candidate(parts, finish)]

    # {"usage": {"prompt_tokens": 188, "completion_tokens": 55, "connector_tokens": 7112,
    #   "total_tokens": 7355}}
    read_counts = "prompt_tokens", "connector_tokens"
    written_counts = ("completion_tokens",)

    def is_event(self, event: Json) -> bool:
        return kind_of(event).startswith(_EVENTS)

    # {"type": "conversation.response.started", "conversation_id": "conv_1"}
    # {"type": "message.output.delta", "output_index": 0, "content_index": 0, "content": "Let me "}
    # {"type": "function.call.delta", "output_index": 1, "tool_call_id": "c1", "name": "get_weather",
    #  "arguments": "{\"city\""}
    # {"type": "conversation.response.done", "usage": {...}}
    def assemble(self, events: Iterable[Json]) -> Json:
        body: Json = {"object": "conversation.response", "ended": False}
        entries: dict[Any, list[Json]] = {}
        for event in events:
            kind = kind_of(event)
            if kind == "conversation.response.done":
                body |= {**event, "object": body["object"], "ended": True}
            elif kind == "conversation.response.error":
                body["error"] = event
            elif not kind.startswith("conversation."):
                place = str(event.get("output_index")), str(event.get("id")), kind.partition(".")[0]
                entries.setdefault(place, []).append(event)
        body["outputs"] = [_whole_entry(pieces, ended=body["ended"]) for pieces in entries.values()]
        return body

    def part_of(self, block: Json) -> Part:
        kind = kind_of(block)
        if kind == "function.call":
            arguments = usual_arguments(block.get("arguments"), block)
            call = block.get("tool_call_id"), block.get("name"), arguments
            return Part("call", "", {key: block[key] for key in block if key != "arguments"}, call=call)
        contents = content_parts(block.get("content"))
        thoughts = [part.get("thinking") for part in contents if kind_of(part) == "thinking"]
        thinking = join_texts(piece.get("text") for each in thoughts for piece in content_parts(each))
        if kind == "message.output":
            text = join_texts([part.get("text") for part in contents])
            return text_part(block, text, thinking=thinking)
        return Part(kind, kind or "an entry without a type", block, thinking=thinking)


PROVIDER = MistralConversations()
