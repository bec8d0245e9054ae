"""Gemini's Interactions, whole and streamed: reading only, because DSPy's engines do not send this wire yet.

Sources: Google's "Interactions API" and "Streaming interactions" guides, and the types of google-genai 3.4
(`Interaction`, `Step`, `StepDelta`), read on 2026-11-22.

Calls are the `function_call` steps that no `function_result` step answers. All other steps of tools
(`google_search_call`, `code_execution_call`, `mcp_server_tool_call`, ...) were run by Google and stay in
`Choice.raw`. Text is the text of `model_output` steps, reasoning the summaries of `thought` steps. A streamed
step ends with its `step.stop`, or with an interaction that says that it ended.
"""

from collections.abc import Iterable

from sigadapt.json_values import Json
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.reading import (
    Part,
    Reading,
    details_in,
    finish_word,
    text_part,
    without_answered_call,
)
from sigadapt.providers.wire.stream_parts import Block, Blocks
from sigadapt.providers.wire.values import (
    JsonText,
    an_object,
    content_parts,
    decoded,
    is_text,
    join_texts,
    json_text,
    kind_of,
    objects,
    text_of,
    usual_arguments,
)

NAME = "gemini-interactions"

_FINISH = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "requires_continuation": "pause",
    "incomplete": "length",
    "budget_exceeded": "length",
    "failed": "error",
    "cancelled": "error",
}


def _whole_step(block: Block, *, ended: bool) -> Json:
    """Return the step that a streamed step makes."""
    step = dict(block.start)
    texts = [delta for delta in block.deltas if kind_of(delta) == "text"]
    summaries = [delta.get("content") for delta in block.deltas if kind_of(delta) == "thought_summary"]
    thoughts = [part for summary in summaries for part in content_parts(summary)]
    for key, pieces in (("content", texts), ("summary", thoughts)):
        if pieces:
            before = content_parts(step.get(key))
            step[key] = [{"type": "text", "text": text_of([*before, *pieces]) or ""}]
    if signature := block.pieces("signature"):
        step["signature"] = join_texts([step.get("signature"), *signature])
    if kind_of(step) == "function_call":
        pieces = block.pieces("arguments")
        arguments = JsonText(json_text(pieces)) if pieces else step.get("arguments")
        step["arguments"] = block.arguments(arguments, ended=ended)
    return step


class GeminiInteractions(Provider):
    """Interactions."""

    name = NAME
    telemetry = "gcp.gemini"

    def is_body(self, body: Json) -> bool:
        return body.get("object") == "interaction" or ("steps" in body and "status" in body)

    # {"object": "interaction", "status": "requires_action", "steps": [
    #   {"type": "thought", "signature": "CiQB...", "summary": [{"type": "text", "text": "Paris."}]},
    #   {"type": "model_output", "content": [{"type": "text", "text": "Let me look."}]},
    #   {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Paris"}}]}
    # https://ai.google.dev/gemini-api/docs/interactions
    def read(self, body: Json) -> list[Reading]:
        steps = objects(body.get("steps"))
        result_ids = [step.get("call_id") for step in steps if kind_of(step) == "function_result"]
        parts = [without_answered_call(self.part_of(step), result_ids) for step in steps]
        finish = finish_word(body.get("status"), _FINISH)
        why = next(filter(None, map(details_in, objects(body.get("errors")))), None)
        return [self.candidate(parts, finish, why)]

    # {"usage": {"total_input_tokens": 19, "total_tool_use_tokens": 0, "total_cached_tokens": 0,
    #   "total_output_tokens": 11, "total_thought_tokens": 206, "total_tokens": 236}}
    # https://ai.google.dev/api/interactions-api
    read_counts = "total_input_tokens", "total_tool_use_tokens"
    written_counts = "total_output_tokens", "total_thought_tokens"
    cached_count = "total_cached_tokens"

    def is_event(self, event: Json) -> bool:
        kind = event.get("event_type")
        return isinstance(kind, str) and kind.startswith(("interaction.", "step."))

    # {"event_type": "step.start", "index": 0, "step": {"type": "function_call", "id": "c1", "name": "f"}}
    # {"event_type": "step.delta", "index": 0, "delta": {"type": "arguments_delta", "arguments": "{\"ci"}}
    # {"event_type": "step.stop", "index": 0}
    # {"event_type": "interaction.completed", "interaction": {"status": "requires_action", ...}}
    # https://ai.google.dev/gemini-api/docs/interactions/streaming
    def assemble(self, events: Iterable[Json]) -> Json:
        body: Json = {"object": "interaction", "status": None}
        steps = Blocks()
        for event in events:
            kind = event.get("event_type")
            index = event.get("index")
            if kind == "step.start":
                steps.open(index, event.get("step"))
            elif kind == "step.delta":
                steps.add(index, event.get("delta"))
            elif kind == "step.stop":
                steps.at(index).ended = True
            else:  # the interaction itself, or its status
                body.update(an_object(event.get("interaction")))
                body["status"] = event.get("status") or body["status"]
        ended = str(body["status"]) in _FINISH
        if not (ended and objects(body.get("steps"))):
            body["steps"] = [_whole_step(step, ended=ended) for step in steps.all]
        return body if ended else {**body, "status": None}

    def part_of(self, block: Json) -> Part:
        kind = kind_of(block)
        if kind == "function_call":
            arguments = usual_arguments(decoded(block.get("arguments")), block)
            call = block.get("id"), block.get("name"), arguments
            return Part("call", "", {key: block[key] for key in block if key != "arguments"}, call=call)
        if kind == "model_output":
            return text_part(block, text_of(block.get("content")))
        if kind == "thought":
            more = "reasoning" if is_text(block.get("signature")) else ""
            return Part(kind, more, block, thinking=text_of(block.get("summary")))
        return Part(kind, kind or "a step without a type", block)


PROVIDER = GeminiInteractions()
