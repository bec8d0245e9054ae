"""Google Gemini's generateContent, on the Gemini API and on Vertex AI.

Sources: Google's API types (GenerateContentResponse, Part, FunctionCall, FinishReason) and recorded answers.

Only `functionCall` parts are calls; Google ran `executableCode` and `toolCall` parts itself. Reasoning is the
text of the parts marked `thought`. A blocked prompt gives an answer without candidates; it is read as one
candidate that ended with `content_filter`. An answer with calls ends with a plain STOP. In a stream, a call
comes whole in one part. On Vertex AI it may come leaf by leaf (`partialArgs`), until a part lacks
`willContinue` or the answer ends.

Servers that bend the format are read too: a part with a list of calls is several parts with one call each.

A turn goes back with all of its parts: code that Google ran and its result, calls of Google's own tools and
their results, images and files that the model made.
"""

import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from sigadapt.providers.gemini_arguments import whole_arguments
from sigadapt.providers.gemini_over_litellm import lost, merges
from sigadapt.providers.provider import (
    ALL_CHOICES,
    ANY,
    NO_SUBSET,
    ChatFields,
    CutOff,
    Malformed,
    OwnResult,
    OwnTurn,
    Provider,
    RawCall,
    Reading,
    Route,
)
from sigadapt.providers.reading import (
    an_object,
    called,
    cut_last,
    ends_in,
    in_paragraphs,
    is_text,
    joined,
    kept,
    member,
    more_than,
    objects,
    one_call_each,
    other,
    parts_of,
    said,
    state,
    word,
)
from sigadapt.providers.result_blocks import chat_block
from sigadapt.providers.writing import arguments_of, in_order, name_of, with_turns
from sigadapt.schemas.json_values import Json, as_unicode, is_object

NAME = "gemini"

_FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR",
         "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION", "LANGUAGE"),
        "content_filter",
    ),
    **dict.fromkeys(("OTHER", "IMAGE_OTHER", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"), "error"),
}  # fmt: skip
# Gemini withholds such a call and describes it in `finishMessage`: "Malformed function call: print(...".
# https://ai.google.dev/api/generate-content#FinishReason
_MALFORMED = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
_TEXT_PART = {"text", "thought", "thoughtSignature"}
_SAID = frozenset(("type", *_TEXT_PART))  # `type` is that of a text among the parts (`parts_of`)
_CALLED = frozenset(("functionCall", "thoughtSignature"))
_CALL_FIELDS = frozenset(("id", "name", "args", "partialArgs", "willContinue"))


def is_body(body: Json) -> bool:
    """Return whether a body is a generateContent response."""
    return "candidates" in body or "promptFeedback" in body


def read(body: Json) -> list[Reading]:
    """Return one Reading per candidate."""
    readings = [_candidate(candidate) for candidate in objects(body.get("candidates"))]
    feedback = an_object(body.get("promptFeedback"))
    if not readings and is_text(feedback.get("blockReason")):
        why = f"the prompt was blocked: {feedback.get('blockReasonMessage') or feedback['blockReason']}"
        return [Reading(None, None, [], "content_filter", finish_message=why)]
    return readings


def _candidate(candidate: Json) -> Reading:
    parts = _parts(candidate)
    reason, message = candidate.get("finishReason"), candidate.get("finishMessage")
    finish = word(reason, _FINISH)
    calls = [_call(part["functionCall"], finish) for part in parts if _is_call(part)]
    if ends_in(parts, _is_call):
        calls = cut_last(calls, finish)
    why = message if is_text(message) else word(reason, {}) if finish in ("content_filter", "error") else None
    # A call that Gemini did not expect may be there as well: it is judged like any other.
    if finish in _MALFORMED and (not calls or finish == "MALFORMED_FUNCTION_CALL"):
        calls.append((None, None, Malformed(why or finish)))
    text = in_paragraphs(None if part.get("thought") else part.get("text") for part in parts)
    thinking = joined(part.get("text") for part in parts if part.get("thought"))
    return Reading(text, thinking, calls, finish, state(NAME, map(_item, parts)), why)


def _parts(candidate: Json) -> list[Json]:
    """Return the parts of a candidate, with at most one call in each."""
    content = candidate.get("content")
    parts = parts_of(content.get("parts") if is_object(content) else content)
    return one_call_each(parts, "functionCall", lambda text: {"args": text})


def _item(part: Json) -> Json:
    signed = _signed(part.get("thoughtSignature"))
    if _is_call(part):
        item, more = called(signed), more_than(part, _CALLED) if part.keys() - _CALLED else ""
        call: Json = part["functionCall"]
        if call.keys() - _CALL_FIELDS:
            more = ", ".join(filter(None, (more, more_than(call, _CALL_FIELDS))))
        return kept(item, more, {**part, "functionCall": _without_arguments(call)}) if more else item
    if part.keys() <= _SAID:
        return said("thinking" if part.get("thought") else "text", part.get("text"), signed)
    more = more_than(part, _SAID)
    if "text" not in part:
        return other(more, part)
    return kept(said("thinking" if part.get("thought") else "text", part["text"], signed), more, part)


def _without_arguments(call: Json) -> Json:
    return {key: value for key, value in call.items() if key not in _CALL_FIELDS}


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

    Example:
        >>> function = {"name": "now", "description": "The time.", "parameters": {"type": "object"}}
        >>> tools([{"type": "function", "function": function}])[0]["functionDeclarations"][0][
        ...     "parametersJsonSchema"
        ... ]
        {'type': 'object'}
    """
    # `parametersJsonSchema` takes JSON Schema; `parameters` takes only Gemini's own subset of it. Source:
    # Google's FunctionDeclaration reference.
    declarations = [
        {
            "name": function["name"],
            "description": function["description"],
            "parametersJsonSchema": function["parameters"],
            **{key: value for key, value in tool.items() if key not in ("type", "function")},
        }
        for tool in given
        if (function := tool.get("function"))
    ]
    own = [tool for tool in given if "function" not in tool]
    return [{"functionDeclarations": declarations}, *own] if declarations else own


def own_turn(state: Json, calls: Sequence[Json]) -> list[Json]:
    """Return a turn as parts, in the order in which Gemini sent them.

    Example:
        >>> code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
        >>> call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        >>> items = [{"type": "other", "wire": code}, {"type": "call", "id": "c1"}]
        >>> [list(part)[0] for part in own_turn({"dialect": "gemini", "items": items}, [call])]
        ['executableCode', 'functionCall']
    """
    parts = (_own_part(item, call) for item, call in in_order(state["items"], calls))
    return [part for part in parts if part]


def _own_part(item: Json, call: Json | None) -> Json:
    part = an_object(item.get("wire"))
    if "continuation" in item:
        part = {"thoughtSignature": item["continuation"][2]["value"], **part}
    if call is not None:
        named = {"id": call["id"], "name": name_of(call), "args": arguments_of(call)}
        return {**part, "functionCall": {**an_object(part.get("functionCall")), **named}}
    if item["type"] == "other" or "wire" in item or not (item["text"] or part):
        return part
    thought = {"thought": True} if item["type"] == "thinking" else {}
    return {"text": as_unicode(item["text"]), **thought, **part}


def put_turns(body: Mapping[str, Any], turns: Sequence[OwnTurn]) -> Json:
    """Return the `contents` of a request with turns of the model in Gemini's own parts.

    Example:
        >>> call = {"functionCall": {"name": "now", "args": {}, "id": "c1"}}
        >>> parts = [{"executableCode": {"language": "PYTHON", "code": "print(1)"}}, call]
        >>> body = {"contents": [{"role": "model", "parts": [call]}]}
        >>> put_turns(body, [OwnTurn(0, 1, parts)])["contents"][0]["parts"] == parts
        True
    """

    def put(content: Json, turn: OwnTurn) -> Json:
        return {**content, "parts": turn.blocks}

    return {"contents": with_turns(body["contents"], turns, _calls_in, put)}


def _calls_in(content: Json) -> int:
    return sum(map(_is_call, content["parts"])) if content.get("role") == "model" else 0


_OLDER = re.compile(r"gemini-([12](\.\d+)?|exp|(pro|flash)(?!-(lite-)?latest$))(-|$)")
_IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_DUMMY = "skip_thought_signature_validator"


def _since_3(model: str) -> bool:
    """Return whether a model is of Gemini's third series or a later one."""
    name = model.rpartition("/")[2].lower()
    return name.startswith("gemini-") and not _OLDER.match(name)


def result_part(part: Json, model: str) -> Json | None:
    """Return a part of a result as a part of its `functionResponse`; None if that cannot hold it.

    Example:
        >>> image = {"type": "image", "mime_type": "image/png", "data": "aGk="}
        >>> result_part(image, "gemini-3-pro-preview"), result_part(image, "gemini-2.5-pro")
        ({'inlineData': {'mimeType': 'image/png', 'data': 'aGk='}}, None)
    """
    # Source: Google's function calling guide ("Multimodal function responses": since Gemini 3; PNG, JPEG,
    # WebP, PDF and plain text, inline) and the FunctionResponsePart reference, read 2026-11-21.
    has_place = "data" in part and part["mime_type"] in _IN_RESULTS and _since_3(model)
    return content_part(part, model) if has_place else None


def content_part(part: Json, model: str) -> Json | None:  # noqa: ARG001
    """Return an image, a file or audio as a part beside the results; None for text."""
    # A text beside the results would begin a new turn of the user.
    if part["type"] not in ("image", "audio", "file"):
        return None
    if "data" in part:
        return {"inlineData": {"mimeType": part["mime_type"], "data": part["data"]}}
    uri: str = part.get("url") or part["file_id"]
    mime = part.get("mime_type") or mimetypes.guess_type(uri)[0]
    return {"fileData": {**({"mimeType": mime} if mime else {}), "fileUri": uri}}


def stand_in(state: Json | None, model: str) -> Json | None:
    """Return what stands in for the missing signature of a turn's first call; None if it is not needed.

    Example:
        >>> stand_in(None, "gemini-3-pro-preview"), stand_in(None, "gemini-2.5-pro")
        ({'thoughtSignature': 'skip_thought_signature_validator'}, None)
    """
    # Source: Google's "Thought Signatures" guide, FAQ (for calls that another model made, either of two dummy
    # signatures) and parallel function calls (the signature is on the first call), read 2026-11-21. Gemini 3
    # refuses the calls of the running turn otherwise.
    if not _since_3(model):
        return None
    items = objects((state or {}).get("items")) if (state or {}).get("dialect") == NAME else []
    first = [item for item in items if item.get("type") == "call"][:1]
    is_signed = any(
        "continuation" in call or "thoughtSignature" in an_object(call.get("wire")) for call in first
    )
    return None if is_signed else {"thoughtSignature": _DUMMY}


def put_calls(body: Mapping[str, Any], calls: Sequence[tuple[int, Json]]) -> Json:
    """Return the `contents` of a request with fields added to the parts of some calls.

    Example:
        >>> body = {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "now"}}]}]}
        >>> put_calls(body, [(0, {"thoughtSignature": "c2ln"})])["contents"][0]["parts"][0]
        {'thoughtSignature': 'c2ln', 'functionCall': {'name': 'now'}}
    """
    fields, place = dict(calls), count()
    contents = [
        {
            **content,
            "parts": [
                {**fields.get(next(place), {}), **part} if _is_call(part) else part
                for part in content["parts"]
            ],
        }
        for content in body["contents"]
    ]
    return {"contents": contents}


def put_results(body: Mapping[str, Any], results: Sequence[OwnResult | None]) -> Json:
    """Return the `contents` of a request with each tool result as an object; lm15 writes results as text.

    Example:
        >>> part = {"functionResponse": {"name": "now", "response": {"result": '{"hour":12}'}}}
        >>> body = {"contents": [{"role": "user", "parts": [part]}]}
        >>> sent = put_results(body, [OwnResult(response={"hour": 12})])
        >>> sent["contents"][0]["parts"][0]["functionResponse"]["response"]
        {'hour': 12}
    """
    # Source: Google's FunctionResponse reference. `response` is an object; it may have the keys `output` and
    # `error`, or any others. `parts` are the images and files that belong to it.
    rest = iter(results)
    return {"contents": [_with_results(content, rest) for content in body["contents"]]}


def _with_results(content: Json, results: Iterator[OwnResult | None]) -> Json:
    parts: list[Json] = []
    after: list[Json] = []
    for part in content["parts"]:
        result = next(results, None) if "functionResponse" in part else None
        if result is not None:
            own = {"parts": [*result.blocks]} if result.blocks else {}
            response = {**part["functionResponse"], "response": result.response, **own}
            part = {**part, "functionResponse": response}  # noqa: PLW2901
            after += result.after
        parts.append(part)
    return {**content, "parts": [*parts, *after]}


def _chat_part(part: Json, model: str) -> Json | None:
    """Return a part as LiteLLM takes it in a tool message; None if Gemini's results cannot hold it."""
    return None if result_part(part, model) is None else chat_block(part, model)


def choice(chosen: Json, parallel: bool | None = None) -> Json | None:  # noqa: ARG001, FBT001
    """Return a choice whose calls Gemini checks, as fields of the body; None for any other.

    Example:
        >>> choice({"type": "allowed_tools", "allowed_tools": {"mode": "validated", "tools": []}})
        {'toolConfig': {'functionCallingConfig': {'mode': 'VALIDATED'}}}
    """
    # Source: Google's FunctionCallingConfig reference, and google-genai 3.4; read on 2026-11-21.
    allowed = an_object(chosen.get("allowed_tools"))
    if allowed.get("mode") != "validated":
        return None
    names = [tool["function"]["name"] for tool in allowed["tools"] if "function" in tool]
    config = {"mode": "VALIDATED", **({"allowedFunctionNames": names} if names else {})}
    return {"toolConfig": {"functionCallingConfig": config}}


_ROUTE = Route(
    NAME,
    "lm15",
    adapter="GeminiLM",
    takes=frozenset({NAME}),
    choices=ALL_CHOICES | {"validated"},
    parallel=False,
    formats_beside_tools=False,
    marks_failed_results=True,
    results_as_objects=True,
    in_results=result_part,
    in_questions=content_part,
    stand_in=stand_in,
    tools_in_own_words=True,
    names=r"[a-zA-Z_][a-zA-Z0-9_.:-]*",  # Source: Google's FunctionDeclaration reference
    # Source: the same, and `FunctionDeclaration` of google-genai 3.4; read on 2026-11-21.
    fields=frozenset({"behavior", "response", "responseJsonSchema"}),
    result_schema="responseJsonSchema",
)

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    tools=tools,
    own_turn=own_turn,
    put_turns=put_turns,
    put_results=put_results,
    put_calls=put_calls,
    choice=choice,
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
            in_results=_chat_part,
            in_questions=chat_block,
            tools_in_own_words=False,
            losses=lost,
            fields=frozenset[str](),  # LiteLLM takes name, description and parameters (measured on 1.106)
            result_schema="",
            merges=merges,
            ids=ANY,  # LiteLLM takes its signatures off again
        ),
    ),
)
