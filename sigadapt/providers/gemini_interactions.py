"""Gemini's Interactions, whole and streamed: reading only, because DSPy's engines do not send this wire yet.

Sources: Google's "Interactions API" and "Streaming interactions" guides, and the types of google-genai 3.4
(`Interaction`, `Step`, `StepDelta`), read on 2026-11-22.

Calls are the `function_call` steps that no `function_result` step answers. All other steps of tools
(`google_search_call`, `code_execution_call`, `mcp_server_tool_call`, ...) were run by Google and stay in
`Choice.raw`. Text is the text of `model_output` steps, reasoning the summaries of `thought` steps. A streamed
step ends with its `step.stop`, or with an interaction that says that it ended.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.providers.provider import CutOff, JsonText, Provider, RawCall, Reading
from sigadapt.providers.stream_parts import Blocks
from sigadapt.providers.wire.ends import details_in, finish_word, mark_last_cut_off
from sigadapt.providers.wire.turn_state import Described, state
from sigadapt.providers.wire.values import (
    an_object,
    content_parts,
    decoded,
    in_paragraphs,
    is_text,
    joined,
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
_UNENDED = frozenset(("in_progress", "queued"))


class _Step:
    """A streamed step, as far as it has arrived."""

    def __init__(self) -> None:
        self.start: Json = {}
        self.contents: dict[str, list[Json]] = {"content": [], "summary": []}
        self.arguments: list[Any] = []
        self.signature: list[Any] = []
        self.ended = False

    def add(self, delta: Json) -> None:
        kind = kind_of(delta)
        if kind == "arguments_delta":
            self.arguments.append(delta.get("arguments"))
        elif kind == "thought_signature":
            self.signature.append(delta.get("signature"))
        elif kind == "thought_summary":
            self.contents["summary"] += content_parts(delta.get("content"))
        elif kind == "text":
            self.contents["content"].append(delta)

    def whole(self, *, ended: bool) -> Json:
        step = dict(self.start)
        for key, pieces in self.contents.items():
            if pieces:
                before = content_parts(step.get(key))
                step[key] = [{"type": "text", "text": text_of([*before, *pieces]) or ""}]
        if self.signature:
            step["signature"] = joined([step.get("signature"), *self.signature])
        if kind_of(step) == "function_call":
            sent: Any = JsonText(json_text(self.arguments)) if self.arguments else step.get("arguments")
            step["arguments"] = sent if ended or self.ended else CutOff(sent)
        return step


class GeminiInteractions(Provider):
    """Interactions."""

    name = NAME

    def is_body(self, body: Json) -> bool:
        """Return whether a body is an interaction."""
        return body.get("object") == "interaction" or ("steps" in body and "status" in body)

    # {"object": "interaction", "status": "requires_action", "steps": [
    #   {"type": "thought", "signature": "CiQB...", "summary": [{"type": "text", "text": "Paris."}]},
    #   {"type": "model_output", "content": [{"type": "text", "text": "Let me look."}]},
    #   {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Paris"}}]}
    # https://ai.google.dev/gemini-api/docs/interactions
    def read(self, body: Json) -> list[Reading]:
        """Return the one Reading of an interaction."""
        steps = objects(body.get("steps"))
        answered = [step.get("call_id") for step in steps if kind_of(step) == "function_result"]
        waiting = [step for step in steps if self.is_call(step) and step.get("id") not in answered]
        finish = finish_word(body.get("status"), _FINISH)
        calls: list[RawCall] = [
            (step.get("id"), step.get("name"), decoded(step.get("arguments"))) for step in waiting
        ]
        if waiting and steps[-1] is waiting[-1]:
            calls = mark_last_cut_off(calls, "length" if finish in _UNENDED else finish)
        text = in_paragraphs(
            text_of(step.get("content")) if kind_of(step) == "model_output" else None for step in steps
        )
        thinking = joined(text_of(step.get("summary")) for step in steps if kind_of(step) == "thought")
        why = next(filter(None, map(details_in, objects(body.get("errors")))), None)
        return [Reading(text, thinking, calls, finish, state(NAME, map(_describe, steps)), why)]

    def without_calls(self, body: Json) -> Json:
        """Return an interaction without its calls."""
        return {**body, "steps": [step for step in objects(body.get("steps")) if not self.is_call(step)]}

    def is_event(self, event: Json) -> bool:
        """Return whether an event belongs to a streamed interaction."""
        kind = event.get("event_type")
        return isinstance(kind, str) and kind.startswith(("interaction.", "step."))

    # {"event_type": "step.start", "index": 0, "step": {"type": "function_call", "id": "c1", "name": "f"}}
    # {"event_type": "step.delta", "index": 0, "delta": {"type": "arguments_delta", "arguments": "{\"ci"}}
    # {"event_type": "step.stop", "index": 0}
    # {"event_type": "interaction.completed", "interaction": {"status": "requires_action", ...}}
    # https://ai.google.dev/gemini-api/docs/interactions/streaming
    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the interaction that a stream's events make."""
        body: Json = {"object": "interaction", "status": None}
        steps = Blocks(_Step)
        for event in events:
            kind, index = event.get("event_type"), event.get("index")
            if kind == "step.start":
                steps.open(index).start = an_object(event.get("step"))
            elif kind == "step.delta":
                steps.at(index).add(an_object(event.get("delta")))
            elif kind == "step.stop":
                steps.at(index).ended = True
            else:  # the interaction itself, or its status
                body.update(an_object(event.get("interaction")))
                body["status"] = event.get("status") or body["status"]
        ended = str(body["status"]) in _FINISH
        if not (ended and objects(body.get("steps"))):
            body["steps"] = [step.whole(ended=ended) for step in steps.all]
        return body if ended else {**body, "status": None}

    def is_call(self, block: Json) -> bool:
        """Return whether a step is a call."""
        return kind_of(block) == "function_call"

    def is_thinking(self, block: Json) -> bool:
        """Return whether a step is a thought."""
        return kind_of(block) == "thought"

    def extras(self, state: Json, *, in_chat: bool = False) -> Iterable[str]:
        """Yield names of the steps that only this wire takes."""
        yield from filter(None, (_describe(step).more for step in state["blocks"]))
        yield from state.get("lost", ())


def _describe(step: Json) -> Described:
    kind = kind_of(step)
    if kind == "function_call":
        return Described("call", "", {key: step[key] for key in step if key != "arguments"})
    if kind == "model_output":
        return Described("text" if is_text(text_of(step.get("content"))) else "", "", step)
    if kind == "thought":
        return Described(kind, "reasoning" if is_text(step.get("signature")) else "", step)
    return Described(kind, kind or "a step without a type", step)


PROVIDER = GeminiInteractions()
