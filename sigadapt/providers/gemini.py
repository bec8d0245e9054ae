"""Google Gemini's generateContent, on the Gemini API and on Vertex AI.

Sources: Google's API types (GenerateContentResponse, Part, FunctionCall, FinishReason) and recorded answers.

Only `functionCall` parts are calls; Google ran `executableCode` and `toolCall` parts itself. Reasoning is the
text of the parts marked `thought`. A blocked prompt gives an answer without candidates; it is read as one
candidate that ended with `content_filter`. An answer with calls ends with a plain STOP. In a stream, a call
comes whole in one part. On Vertex AI it may come leaf by leaf (`partialArgs`), until a part lacks
`willContinue` or the answer ends.

Servers that bend the format are read too: a part with a list of calls is several parts with one call each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigadapt.providers.gemini_arguments import whole_arguments
from sigadapt.providers.gemini_over_litellm import lost, merges
from sigadapt.providers.provider import NO_SUBSET, ChatFields, CutOff, Provider, RawCall, Reading, Route
from sigadapt.providers.reading import (
    an_object,
    called,
    cut_last,
    ends_in,
    is_text,
    joined,
    member,
    objects,
    one_call_each,
    parts_of,
    said,
    state,
    word,
)
from sigadapt.schemas.json_values import Json, is_object

NAME = "gemini"

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


def is_body(body: Json) -> bool:
    """Return whether a body is a generateContent response."""
    return "candidates" in body or "promptFeedback" in body


def read(body: Json) -> list[Reading]:
    """Return one Reading per candidate."""
    readings = [_candidate(candidate) for candidate in objects(body.get("candidates"))]
    if not readings and is_text(an_object(body.get("promptFeedback")).get("blockReason")):
        return [Reading(None, None, [], "content_filter")]
    return readings


def _candidate(candidate: Json) -> Reading:
    parts = _parts(candidate)
    finish = word(candidate.get("finishReason"), _FINISH)
    calls = [_call(part["functionCall"], finish) for part in parts if _is_call(part)]
    if ends_in(parts, _is_call):
        calls = cut_last(calls, finish)
    text = joined(part.get("text") for part in parts if not part.get("thought"))
    thinking = joined(part.get("text") for part in parts if part.get("thought"))
    return Reading(text, thinking, calls, finish, state(NAME, map(_item, parts)))


def _parts(candidate: Json) -> list[Json]:
    """Return the parts of a candidate, with at most one call in each."""
    content = candidate.get("content")
    parts = parts_of(content.get("parts") if is_object(content) else content)
    return one_call_each(parts, "functionCall", lambda text: {"args": text})


def _item(part: Json) -> Json:
    signed = _signed(part.get("thoughtSignature"))
    if _is_call(part):
        return called(signed)
    return said("thinking" if part.get("thought") else "text", part.get("text"), signed)


def _is_call(part: Json) -> bool:
    return isinstance(part.get("functionCall"), dict)


def without_calls(body: Json) -> Json:
    """Return a generateContent response without its calls."""
    candidates = [
        {
            **candidate,
            "content": {"role": "model", "parts": [p for p in _parts(candidate) if not _is_call(p)]},
        }
        for candidate in objects(body.get("candidates"))
    ]
    return {**body, "candidates": candidates}


def _call(call: Json, finish: str | None) -> RawCall:
    partials, sent = call.get("partialArgs"), member(call, "args")
    if partials:
        # Google documents no call with both `args` and `partialArgs`: keep both, as a bad call.
        sent = [sent, partials] if sent else whole_arguments(objects(partials))
    if call.get("willContinue") and finish is None:
        sent = CutOff(sent)
    return (call.get("id"), call.get("name"), sent)


def is_event(event: Json) -> bool:
    """Return whether an event belongs to a streamed generateContent response."""
    return is_body(event)


def assemble(events: Iterable[Json]) -> Json:
    """Return the generateContent response that a stream's events make."""
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
            parts.setdefault(slot, []).extend(_parts(candidate))
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
            continue  # the last event of a stream has an empty text and the finish reason
        if runs and _continues(part, runs[-1]):
            runs[-1].append(part)
        else:
            runs.append([part])
    return [_whole_part(run) for run in runs]


def _continues(part: Json, run: list[Json]) -> bool:
    """Return whether a part continues the text or the call of a run of parts."""
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


def _signed(signature: Any) -> list[Any] | None:
    """Return the continuation of a signed part; None for a part without a signature."""
    return [NAME, "thought_signature", {"value": signature}] if is_text(signature) else None


def state_from_chat(message: Json, text: str | None) -> Json | None:
    """Return a turn's state from a chat message; LiteLLM puts signatures in `provider_specific_fields`."""
    signed = [_signed(_own(call).get("thought_signature")) for call in objects(message.get("tool_calls"))]
    first = next(iter(_own(message).get("thought_signatures") or ()), None) if not any(signed) else None
    if not any(signed) and not is_text(first):
        return None
    return state(NAME, [said("text", text, _signed(first)), *map(called, signed)])


def _own(part: Json) -> Json:
    return an_object(part.get("provider_specific_fields"))


def state_to_chat(state: Json, route: Route) -> ChatFields:  # noqa: ARG001
    """Return a turn's state as `provider_specific_fields`, from which LiteLLM sends the signatures."""
    message: Json = {}
    calls: dict[str, Json] = {}
    for item in state["items"]:
        if "continuation" in item:
            signature = item["continuation"][2]["value"]
            if item["type"] == "call":
                calls[item["id"]] = {"provider_specific_fields": {"thought_signature": signature}}
            elif item["type"] == "text":
                message["provider_specific_fields"] = {"thought_signatures": [signature]}
    return ChatFields(message, calls)


def tools(given: list[Json]) -> list[Json]:
    """Return canonical tools in the form of generateContent; Gemini's own tools stay unchanged.

    `parametersJsonSchema` takes JSON Schema; `parameters` takes only Gemini's own subset of it. Source:
    Google's FunctionDeclaration reference.

    Example:
        >>> function = {"name": "now", "description": "The time.", "parameters": {"type": "object"}}
        >>> tools([{"type": "function", "function": function}])[0]["functionDeclarations"][0][
        ...     "parametersJsonSchema"
        ... ]
        {'type': 'object'}
    """
    declarations = [
        {
            "name": function["name"],
            "description": function["description"],
            "parametersJsonSchema": function["parameters"],
        }
        for function in (tool["function"] for tool in given if "function" in tool)
    ]
    own = [tool for tool in given if "function" not in tool]
    return [{"functionDeclarations": declarations}, *own] if declarations else own


def put_results(body: Mapping[str, Any], results: Sequence[Json]) -> Json:
    """Return the `contents` of a request with each tool result as an object; lm15 writes results as text.

    Source: Google's FunctionResponse reference. `response` is an object; it may have the keys `output` and
    `error`, or any others.

    Args:
        body: the request's body, as lm15 writes it.
        results: the results as objects, in the order of the `functionResponse` parts.

    Example:
        >>> part = {"functionResponse": {"name": "now", "response": {"result": '{"hour":12}'}}}
        >>> body = {"contents": [{"role": "user", "parts": [part]}]}
        >>> put_results(body, [{"hour": 12}])["contents"][0]["parts"][0]["functionResponse"]["response"]
        {'hour': 12}
    """
    rest = iter(results)
    contents = [
        {**content, "parts": [_with_result(part, rest) for part in content["parts"]]}
        for content in body["contents"]
    ]
    return {"contents": contents}


def _with_result(part: Json, results: Iterator[Json]) -> Json:
    if "functionResponse" not in part:
        return part
    return {**part, "functionResponse": {**part["functionResponse"], "response": next(results)}}


_ROUTE = Route(
    NAME,
    "lm15",
    adapter="GeminiLM",
    takes=frozenset({NAME}),
    parallel=False,
    formats_beside_tools=False,
    marks_failed_results=True,
    results_as_objects=True,
    tools_in_own_words=True,
    names=r"[a-zA-Z_][a-zA-Z0-9_.:-]*",  # Source: Google's FunctionDeclaration reference
)

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    tools=tools,
    put_results=put_results,
    state_from_chat=state_from_chat,
    state_to_chat=state_to_chat,
    without_calls=without_calls,
    arguments_as_objects=True,
    routes=(
        _ROUTE,
        replace(
            _ROUTE,
            door="litellm",
            prefixes=frozenset({NAME, "vertex_ai"}),
            as_chat=True,
            choices=NO_SUBSET,
            tools_in_own_words=False,
            losses=lost,
            merges=merges,
        ),
    ),
)
