"""Gemini's Interactions, whole and streamed: reading only, because DSPy's engines do not send this wire yet.

Sources: Google's "Interactions API" and "Streaming interactions" guides, and the types of google-genai 3.4
(`Interaction`, `Step`, `StepDelta`), read on 2026-11-22.

Calls are the `function_call` steps that no `function_result` step answers. All other steps of tools
(`google_search_call`, `code_execution_call`, `mcp_server_tool_call`, ...) were run by Google and stay in
`Choice.raw`. Text is the text of `model_output` steps, reasoning the summaries of `thought` steps. A streamed
step ends with its `step.stop`, or with an interaction that says that it ended.
"""

from collections.abc import Iterable

from sigadapt.providers.provider import JsonText, Provider, RawCall, Reading
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in, sum_in
from sigadapt.providers.wire.ends import UNENDED, details_in, finish_word, mark_last_cut_off
from sigadapt.providers.wire.stream_parts import Block, Blocks
from sigadapt.providers.wire.turn_state import TurnBlock, state
from sigadapt.providers.wire.values import (
    an_object,
    content_parts,
    decoded,
    in_paragraphs,
    is_text,
    join_texts,
    json_text,
    kind_of,
    objects,
    text_of,
)
from sigadapt.schemas.json_values import Json

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
        waiting = [step for step in steps if self.is_call(step) and step.get("id") not in result_ids]
        finish = finish_word(body.get("status"), _FINISH)
        calls: list[RawCall] = [
            (step.get("id"), step.get("name"), decoded(step.get("arguments"))) for step in waiting
        ]
        # A limit cuts the last step alone; a call before it is whole.
        if waiting and steps[-1] is waiting[-1]:
            last_finish = "length" if finish in UNENDED else finish
            calls = mark_last_cut_off(calls, last_finish)
        texts = [text_of(step.get("content")) if kind_of(step) == "model_output" else None for step in steps]
        text = in_paragraphs(texts)
        thinking = join_texts(text_of(step.get("summary")) for step in steps if kind_of(step) == "thought")
        why = next(filter(None, map(details_in, objects(body.get("errors")))), None)
        return [Reading(text, thinking, calls, finish, state(NAME, map(self.describe, steps)), why)]

    # {"usage": {"total_input_tokens": 19, "total_tool_use_tokens": 0, "total_cached_tokens": 0,
    #   "total_output_tokens": 11, "total_thought_tokens": 206, "total_tokens": 236}}
    # https://ai.google.dev/api/interactions-api
    def usage(self, body: Json) -> AnswerUsage | None:
        counts = an_object(body.get("usage"))
        read = sum_in(counts, "total_input_tokens", "total_tool_use_tokens")
        written = sum_in(counts, "total_output_tokens", "total_thought_tokens")
        return answer_usage(
            counts, read=read, written=written, cached=count_in(counts, "total_cached_tokens")
        )

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
                steps.open(index, an_object(event.get("step")))
            elif kind == "step.delta":
                steps.at(index).deltas.append(an_object(event.get("delta")))
            elif kind == "step.stop":
                steps.at(index).ended = True
            else:  # the interaction itself, or its status
                body.update(an_object(event.get("interaction")))
                body["status"] = event.get("status") or body["status"]
        ended = str(body["status"]) in _FINISH
        if not (ended and objects(body.get("steps"))):
            body["steps"] = [_whole_step(step, ended=ended) for step in steps.all]
        return body if ended else {**body, "status": None}

    def is_call(self, block: Json) -> bool:
        return kind_of(block) == "function_call"

    def describe(self, block: Json) -> TurnBlock:
        kind = kind_of(block)
        if kind == "function_call":
            return TurnBlock("call", "", {key: block[key] for key in block if key != "arguments"})
        if kind == "model_output":
            block_kind = "text" if is_text(text_of(block.get("content"))) else ""
            return TurnBlock(block_kind, "", block)
        if kind == "thought":
            more = "reasoning" if is_text(block.get("signature")) else ""
            return TurnBlock(kind, more, block)
        return TurnBlock(kind, kind or "a step without a type", block)


PROVIDER = GeminiInteractions()
