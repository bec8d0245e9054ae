"""Google Gemini's generateContent, on the Gemini API and on Vertex AI.

Sources: Google's API types (GenerateContentResponse, Part, FunctionCall, FinishReason) and recorded answers.

Only `functionCall` parts are calls; `executableCode` and `toolCall` parts were run by Google. Reasoning
is the text of the parts marked `thought`. A blocked prompt is an answer without candidates, here one that
ended with `content_filter`. Gemini ends an answer with calls by a plain STOP. Streamed, a call comes
whole in one part, or on Vertex AI leaf by leaf (`partialArgs`) until `willContinue` is gone or the answer
ends.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.adapters.readers.partial_args import whole_arguments
from sigadapt.adapters.readers.reading import (
    CutOff,
    Json,
    RawCall,
    Reading,
    an_object,
    cut_last,
    decoded,
    ends_in,
    is_text,
    joined,
    objects,
    word,
)
from sigadapt.adapters.readers.replay import Item, called, gemini_signature, said, state

DIALECT = "gemini"

_FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR",
         "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION"),
        "content_filter",
    ),
}  # fmt: skip
_TEXT_PART = {"text", "thought", "thoughtSignature"}


def reads(body: Json) -> bool:
    """Whether a body is a generateContent response."""
    return "candidates" in body or "promptFeedback" in body


def read(body: Json) -> list[Reading]:
    """One reading a candidate."""
    readings = [_candidate(candidate) for candidate in objects(body.get("candidates"))]
    if not readings and is_text(an_object(body.get("promptFeedback")).get("blockReason")):
        return [Reading(None, None, [], "content_filter")]
    return readings


def _candidate(candidate: Json) -> Reading:
    parts = objects(an_object(candidate.get("content")).get("parts"))
    finish = word(candidate.get("finishReason"), _FINISH)
    calls = [_call(part["functionCall"], finish) for part in parts if _is_call(part)]
    if ends_in(parts, _is_call):
        calls = cut_last(calls, finish)
    text = joined(part.get("text") for part in parts if not part.get("thought"))
    thinking = joined(part.get("text") for part in parts if part.get("thought"))
    return Reading(text, thinking, calls, finish, state(DIALECT, map(_item, parts)))


def _item(part: Json) -> Item:
    signed = gemini_signature(part.get("thoughtSignature"))
    if _is_call(part):
        return called(signed)
    return said("thinking" if part.get("thought") else "text", part.get("text"), signed)


def _is_call(part: Json) -> bool:
    return isinstance(part.get("functionCall"), dict)


def _call(call: Json, finish: str | None) -> RawCall:
    partials, sent = call.get("partialArgs"), decoded(call.get("args"))
    if partials:
        # Google documents no call with both: then the pieces are kept, and the call is a bad one.
        sent = [sent, partials] if sent else whole_arguments(objects(partials))
    if call.get("willContinue") and finish is None:
        sent = CutOff(sent)
    return (call.get("id"), call.get("name"), sent)


def opens(event: Json) -> bool:
    """Whether an event is one of a streamed generateContent response."""
    return reads(event)


def join(events: Iterable[Json]) -> Json:
    """The generateContent response that the stream's events amount to."""
    body: Json = {}
    candidates: dict[int, Json] = {}
    parts: dict[int, list[Json]] = {}
    for event in events:
        body.update({key: value for key, value in event.items() if key != "candidates"})
        for candidate in objects(event.get("candidates")):
            index = candidate.get("index")
            slot = index if isinstance(index, int) else 0
            rest = {key: value for key, value in candidate.items() if key != "content" and value is not None}
            candidates.setdefault(slot, {}).update(rest)
            parts.setdefault(slot, []).extend(objects(an_object(candidate.get("content")).get("parts")))
    if candidates:
        body["candidates"] = [
            {**candidates[slot], "content": {"role": "model", "parts": _whole_parts(parts[slot])}}
            for slot in sorted(candidates)
        ]
    return body


def _whole_parts(parts: list[Json]) -> list[Json]:
    runs: list[list[Json]] = []
    for part in parts:
        if set(part) <= {"text", "thought"} and not part.get("text"):
            continue  # the text of a stream's last event, which only brings the finish reason
        if runs and _continues(part, runs[-1]):
            runs[-1].append(part)
        else:
            runs.append([part])
    return [_whole_part(run) for run in runs]


def _continues(part: Json, run: list[Json]) -> bool:
    """Whether a part goes on with the text, or with the call, that a run of parts began."""
    first, last = run[0], run[-1]
    if _is_call(part) and _is_call(first):
        call, open_call = part["functionCall"], first["functionCall"]
        if not (open_call.get("willContinue") or open_call.get("partialArgs")):
            return False
        return all(not call.get(key) or call[key] == open_call.get(key) for key in ("id", "name")) and (
            bool(last["functionCall"].get("willContinue")) or not any(call.values())
        )
    is_text_run = set(part) <= _TEXT_PART and set(first) <= _TEXT_PART
    return (
        is_text_run
        and bool(part.get("thought")) == bool(first.get("thought"))
        and not last.get("thoughtSignature")
    )


def _whole_part(run: list[Json]) -> Json:
    if len(run) == 1:
        return run[0]
    whole: Json = {}
    for part in run:
        whole.update({key: value for key, value in part.items() if value is not None})
    if _is_call(run[0]):
        whole["functionCall"] = _whole_call([part["functionCall"] for part in run])
    else:
        whole["text"] = joined(part.get("text") for part in run) or ""
    return whole


def _whole_call(chunks: list[Json]) -> Json:
    whole: Json = {}
    for chunk in chunks:
        whole.update({key: value for key, value in chunk.items() if value is not None})
    partials: list[Any] = [partial for chunk in chunks for partial in objects(chunk.get("partialArgs"))]
    return {**whole, "partialArgs": partials, "willContinue": bool(chunks[-1].get("willContinue"))}
