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
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.providers.provider import Provider, Result, Role
from sigadapt.providers.route import (
    ALL_CHOICES,
    ANY,
    NO_SUBSET,
    ChoiceRules,
    DocumentedMembers,
    IdentifierRules,
    ResultRules,
    Route,
    RouteModels,
    ToolRules,
    TurnRules,
)
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in, sum_in
from sigadapt.providers.wire.content_blocks import as_written, chat_block, part_of_question, text_of_file
from sigadapt.providers.wire.reading import Part, Reading, finish_word, text_part, with_reported_call
from sigadapt.providers.wire.recorded import Recording
from sigadapt.providers.wire.stream_parts import whole_arguments
from sigadapt.providers.wire.values import (
    ARGUMENT_NAMES,
    RawCall,
    an_object,
    content_parts,
    decoded,
    is_text,
    join_texts,
    kind_of,
    member_names,
    more_than,
    named_part,
    objects,
    one_call_each,
    usual_arguments,
)
from sigadapt.providers.wire.writing import (
    arguments_of,
    blocks_with_calls,
    functions_chosen,
    plain_text,
    written_text,
)
from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.subschemas import subschemas
from sigadapt.signatures.server_tools import Findings
from sigadapt.signatures.tool_results.tool_output import part_of_bytes

NAME = "gemini"

_FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "pause",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR",
         "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION", "LANGUAGE"),
        "content_filter",
    ),
    **dict.fromkeys(("OTHER", "IMAGE_OTHER", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"), "error"),
}  # fmt: skip
_TEXT_PART = {"text", "thought", "thoughtSignature"}
_SAID = frozenset(("type", *_TEXT_PART))  # `type` is that of a text among the parts (`content_parts`)
_CALLED = frozenset(("functionCall", "thoughtSignature"))
_CALL_FIELDS = frozenset(("id", "name"))
_SAFE = str.maketrans("-_", "+/")  # Google's SDK writes the base64 of addresses
_MEDIA = frozenset(("inlineData", "fileData"))
_CONTENT = frozenset(("role", "parts"))
_BODY = frozenset(("candidates", "promptFeedback", "prompt_feedback"))
_INPUT = frozenset(("partialArgs", "willContinue", *ARGUMENT_NAMES))
_PAYLOADS = frozenset(("response", *ARGUMENT_NAMES))  # whose names are those of tools
_LEVELS = 12  # of a body, which hold names of Google's


_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE", "validated": "VALIDATED"}
_SETTINGS = {"maxOutputTokens": "max_tokens", "topP": "top_p", "topK": "top_k", "stopSequences": "stop"}


def _is_call(part: Json) -> bool:
    return isinstance(part.get("functionCall"), dict)


# google-genai's own dict: {"candidates": [{"finish_reason": <FinishReason.STOP: 'STOP'>, "content": {
#   "parts": [{"text": None, "function_call": {"name": ..., "args": {...}}, "thought_signature": b"..."}]}}]}
def _as_on_wire(value: Any, levels: int = _LEVELS) -> Any:
    """Return a value of the wire as it was sent, where an SDK wrote other names, nulls, enums or bytes."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Enum):
        return value.value
    if is_array(value) and levels:
        return [_as_on_wire(item, levels - 1) for item in value]
    if not is_object(value) or not levels:
        return value
    return {
        re.sub("_([a-z])", lambda it: it[1].upper(), key): item
        if key in _PAYLOADS
        else _as_on_wire(item, levels - 1)
        for key, item in value.items()
        if item is not None
    }


# {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo..."}}
# {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/lCdaVNyHtjU"}}
# https://ai.google.dev/api/caching#Part
def _part(block: Json) -> Json | None:
    """Return an image, a file or audio of a question or a result as a part; None for any other part."""
    if block.get("type") == "json":
        return block
    file = an_object(block.get("inlineData") or block.get("fileData"))
    mime = file.get("mimeType")
    place = "data" if "inlineData" in block else "fileUri"
    if not is_text(file.get(place)) or not isinstance(mime, (str, type(None))) or more_than(block, _MEDIA):
        return None
    if place == "data":
        return part_of_bytes(mime, file["data"].translate(_SAFE), None)
    # Gemini has one part for all media; the MIME type alone tells an image from a document.
    family = str(mime).partition("/")[0]
    kind = family if family in ("image", "audio") else "file"
    part: Json = {"type": kind, "url": file[place]}
    if is_text(mime):
        part["mime_type"] = mime
    return part


def _parts(candidate: Json) -> list[Json]:
    """Return the parts of a candidate, with at most one call in each."""
    content = candidate.get("content")
    if is_object(content):
        content = content.get("parts")
    parts = content_parts(content)
    return one_call_each(parts, "functionCall", "args")


def _with_parts(candidate: Json, parts: list[Json]) -> Json:
    return {**candidate, "content": {"role": "model", "parts": parts}}


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(filter(None, names))


# {"name": "final_result", "args": {"name": "Ada Lovelace", "address": {"city": "London", ...}}}
def _call(call: Json) -> RawCall:
    partials = call.get("partialArgs")
    arguments = decoded(call.get("args"))
    if partials:
        # Google documents no call with both `args` and `partialArgs`: keep both, as a bad call.
        arguments = [arguments, partials] if arguments else whole_arguments(objects(partials))
    return (call.get("id"), call.get("name"), usual_arguments(arguments, call))


def _unended(part: Part, block: Json) -> Part:
    """Return a part of an answer that nothing ended: a call that was to go on is cut off."""
    if part.call is None or not block["functionCall"].get("willContinue"):
        return part
    call_id, name, arguments = part.call
    return part._replace(call=(call_id, name, CutOff(arguments)))


def _whole_parts(parts: list[Json]) -> list[Json]:
    """Return streamed parts with each run of pieces of one text or of one call joined."""
    runs: list[list[Json]] = []
    for part in parts:
        if set(part) <= {"text", "thought"} and not part.get("text"):
            continue  # the last event of a stream has an empty text and the finish reason
        if runs and _continues(part, runs[-1][0], runs[-1][-1]):
            runs[-1].append(part)
        else:
            runs.append([part])
    wholes: list[Json] = []
    for run in runs:
        whole = _merge(run)
        if len(run) == 1:
            whole = run[0]
        elif _is_call(run[0]):
            chunks: list[Json] = [part["functionCall"] for part in run]
            partials = [partial for chunk in chunks for partial in objects(chunk.get("partialArgs"))]
            goes_on = bool(chunks[-1].get("willContinue"))
            whole["functionCall"] = {**_merge(chunks), "partialArgs": partials, "willContinue": goes_on}
        else:
            whole["text"] = join_texts(part.get("text") for part in run) or ""
        wholes.append(whole)
    return wholes


def _continues(part: Json, first: Json, last: Json) -> bool:
    """Return whether a part continues the text or the call that has this first and this last piece."""
    if _is_call(part) and _is_call(first):
        call = part["functionCall"]
        first_call = first["functionCall"]
        if not (first_call.get("willContinue") or first_call.get("partialArgs")):
            return False
        is_same = all(not call.get(key) or call[key] == first_call.get(key) for key in ("id", "name"))
        return is_same and (bool(last["functionCall"].get("willContinue")) or not any(call.values()))
    are_texts = set(part) | set(first) <= _TEXT_PART and not last.get("thoughtSignature")
    return are_texts and bool(part.get("thought")) == bool(first.get("thought"))


def _merge(pieces: Sequence[Json]) -> Json:
    """Return the members of all pieces, of one that several have the last that is not empty."""
    whole: Json = {}
    for piece in pieces:
        for key, value in piece.items():
            before = whole.get(key)
            if is_object(before) and is_object(value) and key not in _PAYLOADS:
                whole[key] = {**before, **{name: part for name, part in value.items() if part}}
            elif value or not before:
                whole[key] = value
    return whole


def _beside(part: Json) -> Json:
    return an_object(part.get("provider_specific_fields"))


# Source: `Tool` of google-genai 3.4, and the page of each on ai.google.dev; read on 2026-11-23.
_SERVER_TOOLS: Mapping[str, Mapping[str, Json]] = {
    "": {
        "WebSearch": {"googleSearch": {}},
        "WebFetch": {"urlContext": {}},
        "CodeExecution": {"codeExecution": {}},
        "FileSearch": {"fileSearch": {"fileSearchStoreNames": "$stores"}},
    }
}
_RAN = {"executableCode": "codeExecutionResult", "toolCall": "toolResponse"}
"""The parts for calls that Google ran, and those for their results."""


# {"executableCode": {"code": "print(1)"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}
# {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["weather"]}}}
# {"groundingMetadata": {"webSearchQueries": ["weather"], "groundingSupports": [
#   {"groundingChunkIndices": [0]}], "groundingChunks": [{"web": {"uri": ..., "title": ...}}]}}
# {"urlContextMetadata": {"urlMetadata": [{"retrievedUrl": ..., "urlRetrievalStatus": ...}]}}
# https://ai.google.dev/api/generate-content#GroundingMetadata
def find(findings: Findings, candidate: Json, parts: Iterable[Json] = ()) -> None:
    """Find what Google's own tools left in a candidate; its searches come as metadata alone."""
    parts = [part for part in parts if not part.get("thought")]
    for number, part in enumerate(parts):
        _find_calls(findings, part, parts[number:])
        file = an_object(part.get("inlineData") or part.get("fileData"))
        if file:
            findings.file(file.get("data") or file.get("fileUri"), file.get("mimeType"))
    recorded = {call.kind for call in findings.calls}  # the searches that came as parts, too
    _find_searches(findings, an_object(candidate.get("groundingMetadata")), recorded)
    pages = an_object(candidate.get("urlContextMetadata"))
    for page in objects(pages.get("urlMetadata")):
        url = page.get("retrievedUrl")
        is_read = str(page.get("urlRetrievalStatus")).endswith("SUCCESS")
        if is_read:
            findings.source(url, None)
        if "web_fetch" not in recorded:
            status = "done" if is_read else "failed"
            findings.call("url_context", None, status, {"url": url})


def _find_calls(findings: Findings, part: Json, following: Sequence[Json]) -> None:
    """Find the calls in a part; `following` are this part and those after it, which hold the result."""
    for call_key, result_key in _RAN.items():
        if call_key not in part:
            continue
        call = an_object(part[call_key])
        results = [an_object(other[result_key]) for other in following if result_key in other]
        own_results = [result for result in results if result.get("id") == call.get("id")]
        status = own_results[0].get("outcome", "done") if own_results else "pending"
        code = {key: call[key] for key in ("code", "language") if key in call}
        arguments = call.get("args") or code
        findings.call(call.get("toolType", "code_execution"), call.get("id"), status, arguments)


def _find_searches(findings: Findings, ground: Json, recorded: Collection[str | None]) -> None:
    """Find the pages of searches, and the searches themselves where no part holds them."""
    citations: list[Any] = []
    for support in objects(ground.get("groundingSupports")):
        numbers = support.get("groundingChunkIndices")
        if is_array(numbers):
            citations += numbers
    chunks = objects(ground.get("groundingChunks"))
    for number, chunk in enumerate(chunks):
        page = an_object(next(iter(chunk.values()), None))
        url = page.get("uri") or page.get("sourceUri")
        title = page.get("title")
        findings.source(url, title, page.get("text"), page.get("documentName"), cited=number in citations)
    queries = ground.get("webSearchQueries") or ground.get("imageSearchQueries")
    if queries and "web_search" not in recorded:
        findings.call("web_search", None, "done", {"queries": queries})
    if any("retrievedContext" in chunk for chunk in chunks) and "file_search" not in recorded:
        findings.call("file_search", None, "done", {})


_MEMBERS = DocumentedMembers(
    body=member_names("""
        model contents systemInstruction system_instruction generationConfig generation_config
        safetySettings safety_settings tool_config cachedContent cached_content
    """),
    conversation="contents",
    tool_lists=member_names("tools toolConfig"),
    tool_groups=member_names("functionDeclarations function_declarations"),
    tool=member_names("""
        name description parameters parametersJsonSchema parameters_json_schema response behavior
        google_search googleSearch googleSearchRetrieval google_search_retrieval codeExecution
        code_execution urlContext url_context fileSearch file_search functionCallingConfig
        retrievalConfig
    """),
)
"""What its references document of a request and of tools."""


class Gemini(Provider):
    """Google's generateContent."""

    name = NAME
    telemetry = "gcp.gemini"
    members = _MEMBERS
    rows_key = "contents"
    server_tools = _SERVER_TOOLS
    arguments_as_objects = True

    def is_body(self, body: Json) -> bool:
        return not _BODY.isdisjoint(body)

    # {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
    #   {"text": "They want Paris.", "thought": true},
    #   {"functionCall": {"name": "get_weather", "args": {...}}, "thoughtSignature": "CiQB..."}]}}]}
    # A thought is marked, a signature is on any part: https://ai.google.dev/gemini-api/docs/thinking
    def read(self, body: Json) -> list[Reading]:
        body = _as_on_wire(body)
        readings = [self._candidate(candidate) for candidate in objects(body.get("candidates"))]
        feedback = an_object(body.get("promptFeedback"))
        if not readings and is_text(feedback.get("blockReason")):
            why = f"the prompt was blocked: {feedback.get('blockReasonMessage') or feedback['blockReason']}"
            return [Reading(None, None, [], "content_filter", finish_message=why)]
        return readings

    def _candidate(self, candidate: Json) -> Reading:
        blocks = _parts(candidate)
        parts = [*map(self.part_of, blocks)]
        reason = candidate.get("finishReason")
        message = candidate.get("finishMessage")
        finish = finish_word(reason, _FINISH)
        if finish is None:
            parts = [*map(_unended, parts, blocks)]
        why = message if is_text(message) else None
        if why is None and finish in ("content_filter", "error"):  # the provider's word says more than ours
            why = finish_word(reason, {})
        reading = self.candidate(parts, finish, why)
        # Gemini describes a call that it withholds in `finishMessage`: "Malformed function call: print(...".
        # https://ai.google.dev/api/generate-content#FinishReason
        calls = with_reported_call(reading.calls, finish, why)
        findings = Findings()
        if reading.state is not None or "groundingMetadata" in candidate or "urlContextMetadata" in candidate:
            find(findings, candidate, blocks)
        return reading._replace(calls=calls, work=findings.work())

    def without_calls(self, body: Json) -> Json:
        candidates = [
            _with_parts(candidate, [part for part in _parts(candidate) if not _is_call(part)])
            for candidate in objects(body.get("candidates"))
        ]
        return {**body, "candidates": candidates}

    # {"candidates": [{"content": {"parts": [{"functionCall": {"name": "get_weather", "willContinue": true,
    #   "partialArgs": [{"jsonPath": "$.city", "stringValue": "Par", "willContinue": true}]}}]}}]}
    # https://docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
    def assemble(self, events: Iterable[Json]) -> Json:
        bodies = [*map(_as_on_wire, events)]
        body = _merge(bodies)
        candidates: dict[int, list[Json]] = {}
        for event in bodies:
            for candidate in objects(event.get("candidates")):
                index = candidate.get("index")
                # An answer with one candidate may leave its index out.
                slot = index if isinstance(index, int) else 0
                candidates.setdefault(slot, []).append(candidate)
        if candidates:
            body["candidates"] = []
            for _, pieces in sorted(candidates.items()):
                parts = _whole_parts([part for piece in pieces for part in _parts(piece)])
                body["candidates"].append(_with_parts(_merge(pieces), parts))
        return body

    # {"usageMetadata": {"promptTokenCount": 32, "toolUsePromptTokenCount": 4610, "candidatesTokenCount": 20,
    #   "thoughtsTokenCount": 37, "cachedContentTokenCount": 0, "totalTokenCount": 4699}}
    # https://ai.google.dev/api/generate-content#UsageMetadata
    def usage(self, body: Json) -> AnswerUsage | None:
        counts = an_object(_as_on_wire(_as_on_wire(body, 1).get("usageMetadata")))
        read = sum_in(counts, "promptTokenCount", "toolUsePromptTokenCount")
        written = sum_in(counts, "candidatesTokenCount", "thoughtsTokenCount")
        if read is not None:
            written = written or 0  # Google leaves out a member that is 0
        cached = count_in(counts, "cachedContentTokenCount")
        return answer_usage(counts, read=read, written=written, cached=cached)

    # {"role": "assistant", "content": "Hi.", "provider_specific_fields": {"thought_signatures": ["CiQB..."]},
    #   "tool_calls": [{"id": "call_1", "provider_specific_fields": {"thought_signature": "CiQB..."}, ...}]}
    # https://docs.litellm.ai/docs/providers/gemini
    def state_from_chat(self, message: Json, text: str | None) -> Json | None:
        """Return a turn's state from a chat message in which LiteLLM put it, and the message's text."""
        signatures = [_beside(call).get("thought_signature") for call in objects(message.get("tool_calls"))]
        calls: list[Json] = []
        for signature in signatures:
            signature_field = {"thoughtSignature": signature} if is_text(signature) else {}
            calls.append({"functionCall": {}, **signature_field})
        texts: list[Json] = [{"text": text}] if text else []
        if not any(map(is_text, signatures)):
            first = next(iter(_beside(message).get("thought_signatures") or ()), None)
            if not is_text(first):
                return None
            texts = [{"text": text or "", "thoughtSignature": first}]
        return {"dialect": NAME, "blocks": [*texts, *calls]}

    def is_request(self, body: Json) -> bool:
        return isinstance(body.get("contents"), (str, list, dict))

    # {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [{"role": "user", "parts": [
    #   {"text": "Weather?"}]}], "tools": [{"functionDeclarations": [...]}], "generationConfig": {...}}
    # https://ai.google.dev/api/generate-content#request-body
    def request(self, body: Json) -> Recording:
        record = Recording(NAME, _part)
        body = _as_on_wire(body, 1)
        config = _as_on_wire(an_object(body.get("generationConfig")), 1)
        record.tools = [*objects(body.get("tools"))]
        left_out = ("contents", "tools", "generationConfig", "systemInstruction", "toolConfig")
        record.set({**body, **config}, _SETTINGS, left_out)
        record.set({"tool_choice": body.get("toolConfig") or None}, {})
        instructions = body.get("systemInstruction")
        instruction_parts = instructions.get("parts") if is_object(instructions) else instructions
        record.instruct(instruction_parts, ("systemInstruction",))
        for place, content in enumerate(content_parts(body["contents"])):
            where = ("contents", place, "parts")
            is_part = content.keys().isdisjoint(
                ("parts", "role")
            )  # a text or a part alone, as the SDK takes it
            turn = {"parts": [content]} if is_part else content
            record.lose_members(turn, _CONTENT, ("contents", place))
            parts = _parts(_as_on_wire({"content": turn}))
            if content.get("role") == "model":
                record.turns += self.read({"candidates": [{"content": {"parts": parts}}]})
                continue
            for at, part in enumerate(parts):
                # {"functionResponse": {"id": "search_call_1", "name": "search_tools",
                #   "response": {"return_value": "Found one matching tool."}}}
                result = an_object(part.get("functionResponse"))
                if not result:
                    record.ask(part, (*where, at))
                    continue
                value = result.get("response")
                is_error = is_object(value) and value.keys() == {"error"}
                # An object stays as it is, so that it is sent as it was.
                if is_object(value) and value.keys() in ({"error"}, {"result"}):
                    inner = next(iter(value.values()))
                    value = inner if is_error or not is_object(inner) else value
                call = (result.get("id"), result.get("name"))
                json_part = {"type": "json", "value": value}
                media = [json_part, *objects(result.get("parts"))]
                record.tell(call, media, (*where, at), failed=is_error)
        return record

    # {"role": "model", "parts": [{"functionCall": {"id": "call_1", "name": "get_weather",
    #   "args": {"city": "Paris"}}, "thoughtSignature": "CiQB..."}]}
    # Gemini 3 refuses the running turn without them: https://ai.google.dev/gemini-api/docs/thought-signatures
    def turn(self, message: Json, state: Json | None, route: Route) -> list[Json]:
        # A thought without a signature is a summary for the reader. It goes back where Google's own tools
        # ran between the thoughts, so that their order stays.
        blocks = state["blocks"] if state is not None else ()
        keeps_summaries = any(
            part.kind == "other" or {*part.more.split(", ")} - {"", "reasoning", "a signature"}
            for part in map(self.part_of, blocks)
        )
        parts: list[Json] = []
        for part, _, call in blocks_with_calls(self, message, state):
            if call is not None:
                fields = {"id": call["id"], "name": named_part(call)["name"], "args": arguments_of(call)}
                stand_in: Json = {} if any(map(_is_call, parts)) else message.get("stand_in", {})
                function = {**an_object(part.get("functionCall")), **fields}
                parts.append({**stand_in, **part, "functionCall": function})
            elif not part.keys() <= _SAID or part.get("thoughtSignature"):
                parts.append(part)
            elif part.get("text") and (keeps_summaries or not part.get("thought")):
                parts.append({key: part[key] for key in part if key != "type"})
        return [{"role": "model", "parts": parts}]

    # {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "name": "get_weather",
    #   "response": {"result": "18 C"}}}]}
    # `response` is an object: https://ai.google.dev/api/caching#FunctionResponse
    def results(self, results: Sequence[Result], turn: Sequence[Json], route: Route) -> list[Json]:
        parts: list[Json] = []
        for result in results:
            response: Json = {"name": result.name, "response": result.value, "id": result.id}
            if result.blocks:
                response["parts"] = [*result.blocks]
            parts.append({"functionResponse": response})
        return [{"role": "user", "parts": [*parts, *(part for result in results for part in result.after)]}]

    # {"role": "user", "parts": [{"text": "Weather?"}]}
    def message(self, role: Role, content: str | Sequence[Json], route: Route) -> Json:
        if role == "developer":  # instructions inside of a conversation have no role of their own
            return self.message("user", f"[developer]\n{plain_text(content)}", route)
        parts = [{"text": content}] if isinstance(content, str) else [*content]
        return {"role": "model" if role == "assistant" else "user", "parts": parts}

    def fields(self, request: Mapping[str, Any], route: Route) -> Json:
        """Return the tools, and in `toolConfig` the choice and the setting that mixed tools need."""
        fields = super().fields(request, route)
        if self.settings_for(request):
            choice = self.tool_choice(request.get("tool_choice") or "auto")
            calling = an_object(an_object(choice.get("toolConfig")).get("functionCallingConfig"))
            if calling.get("mode") in (None, "AUTO"):
                # AUTO is refused with the setting; VALIDATED, too, leaves the choice to the model.
                calling = {**calling, "mode": "VALIDATED"}
            fields["toolConfig"] = {**fields["toolConfig"], "functionCallingConfig": calling}
        return fields

    # {"toolConfig": {"includeServerSideToolInvocations": true,
    #   "functionCallingConfig": {"mode": "VALIDATED"}}}
    # https://ai.google.dev/gemini-api/docs/generate-content/tool-combination
    # Since Gemini 3, on every turn, not on Vertex AI.
    def settings_for(self, request: Mapping[str, Any]) -> Json:
        """Return the setting that Gemini asks for where its own tools stand beside functions."""
        tools = request.get("tools") or ()
        model = request["model"]
        is_mixed = any("function" in tool for tool in tools) and any("function" not in tool for tool in tools)
        if not is_mixed or not model.startswith("gemini/") or not _since_3(model):
            return {}
        return {"toolConfig": {"includeServerSideToolInvocations": True}}

    def chat_message(self, message: Json, state: Json) -> Json:
        """Return a chat message with the signatures in `provider_specific_fields`, which LiteLLM sends on."""
        fields = {
            call["id"]: {"provider_specific_fields": {"thought_signature": part["thoughtSignature"]}}
            for part, _, call in blocks_with_calls(self, message, state)
            if call is not None and is_text(part.get("thoughtSignature"))
        }
        calls = [{**call, **fields.get(call["id"], {})} for call in message.get("tool_calls") or ()]
        texts = [
            part["thoughtSignature"]
            for part in state["blocks"]
            if is_text(part.get("thoughtSignature")) and "text" in part and not part.get("thought")
        ]
        beside = {"provider_specific_fields": {"thought_signatures": texts[-1:]}} if texts else {}
        return {**message, **beside, "tool_calls": calls}

    def plain_blocks(self, text: str | None, calls: int) -> list[Json]:
        texts = [{"text": text}] if text else []
        return [*texts, *({"functionCall": {}} for _ in range(calls))]

    def part_of(self, block: Json) -> Part:
        signature = "a signature" if is_text(block.get("thoughtSignature")) else ""
        text = block.get("text")
        is_thought = bool(block.get("thought"))
        said = None if is_thought else text
        thinking = text if is_thought else None
        if _is_call(block):
            call: Json = block["functionCall"]
            function = {key: call[key] for key in call if key not in _INPUT}
            more = _join_names((more_than(block, _CALLED), more_than(function, _CALL_FIELDS), signature))
            fields = {**block, "functionCall": function}
            return Part("call", more, fields, {"functionCall": {}}, said, thinking, _call(call))
        more = more_than(block, _SAID)
        if "text" not in block and block.keys() - _SAID:
            return Part("other", more, block)
        if is_thought:
            more = _join_names((more, "reasoning" if signature else ""))
            return Part("thinking", more, block, thinking=text)
        return text_part(block, text, _join_names((more, signature)), {"text": text})

    def extras(self, state: Json, *, in_chat: bool = False) -> Iterator[str]:
        for more in super().extras(state, in_chat=in_chat):
            yield from (name for name in more.split(", ") if not (in_chat and name == "a signature"))

    # {"functionDeclarations": [{"name": "get_weather", "description": "...", "parametersJsonSchema": {...}}]}
    # `parametersJsonSchema` takes JSON Schema; `parameters` takes only Gemini's own subset of it:
    # https://ai.google.dev/api/caching#FunctionDeclaration
    def tools(self, tools: list[Json]) -> list[Json]:
        declarations = [
            {
                "name": function["name"],
                "description": function["description"],
                "parametersJsonSchema": function["parameters"],
                **{key: value for key, value in tool.items() if key not in ("type", "function")},
            }
            for tool in tools
            if (function := tool.get("function"))
        ]
        others = [tool for tool in tools if "function" not in tool]
        return [{"functionDeclarations": declarations}, *others] if declarations else others

    # {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}}}
    # https://ai.google.dev/api/caching#FunctionCallingConfig
    def tool_choice(self, choice: str | Json | None, *, parallel: bool | None = None) -> Json:
        if choice is None:
            return {}
        functions = functions_chosen(choice)
        if functions is not None:
            mode, names = functions
        else:
            subset = an_object(an_object(choice).get("allowed_tools"))
            if subset.get("mode") != "validated":
                return {}
            mode = "validated"
            names = [tool["function"]["name"] for tool in subset["tools"] if "function" in tool]
        # A list of functions is refused with AUTO.
        config: Json = {"mode": "VALIDATED" if names and mode == "auto" else _MODES[mode]}
        if names:
            config["allowedFunctionNames"] = names
        return {"toolConfig": {"functionCallingConfig": config}}


_OLDER = re.compile(r"gemini-([12](\.\d+)?|exp|(pro|flash)(?!-(lite-)?latest$))(-|$)")
_IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_DUMMY = "skip_thought_signature_validator"


def _since_3(model: str) -> bool:
    """Return whether a model is of Gemini's third series or a later one."""
    name = model.rpartition("/")[2].lower()
    return name.startswith("gemini-") and not _OLDER.match(name)


def result_part(part: Json, model: str) -> Json | None:
    """Return a part of a result as a part of its `functionResponse`; None if that cannot hold it."""
    # Source: Google's function calling guide ("Multimodal function responses": since Gemini 3; PNG, JPEG,
    # WebP, PDF and plain text, inline) and the FunctionResponsePart reference, read 2026-11-21.
    has_place = "data" in part and part["mime_type"] in _IN_RESULTS and _since_3(model)
    return content_part(part, model) if has_place else None


def content_part(part: Json, model: str) -> Json | None:
    """Return an image, a file or audio as a part beside the results; None for text."""
    # A text beside the results would begin a new turn of the user.
    if part["type"] not in ("image", "audio", "file"):
        return None
    if "data" in part:
        return {"inlineData": {"mimeType": part["mime_type"], "data": part["data"]}}
    uri: str = part.get("url") or part["file_id"]
    mime = part.get("mime_type") or mimetypes.guess_type(uri)[0]
    mime_type = {"mimeType": mime} if mime else {}
    return {"fileData": {**mime_type, "fileUri": uri}}


def question_part(block: Json, model: str) -> Json | None:
    """Return a block of a question, which DSPy writes as chat messages have it, as a part; else None."""
    part = part_of_question(block)
    text = text_of_file(block) if kind_of(block) == "document" else None
    if part is None:
        return None
    if text is not None or part["type"] == "text":
        return {"text": part["text"] if text is None else text}
    written = content_part(part, model)
    if written is not None and "fileData" in written:  # lm15 names a type where an address says none
        default = "image/png" if part["type"] == "image" else "application/pdf"
        return {"fileData": {"mimeType": default, **written["fileData"]}}
    return written


def _chat_question_block(block: Json, model: str) -> Json | None:
    """Return a block of a question as LiteLLM takes it; None if that does not reach Gemini."""
    # `_gemini_convert_messages_with_history` of litellm 1.106 leaves out all other kinds, and names of files.
    kind = kind_of(block)
    part = part_of_question(block)
    if kind == "document":
        text = text_of_file(block)
        shown = part if text is None else {"type": "text", "text": text}
        return None if shown is None else chat_block(shown, model)
    if kind == "file" and part is not None:
        file = {key: value for key, value in block["file"].items() if key != "filename"}
        return {**block, "file": file}
    return as_written(block, model) if kind in ("text", "image_url", "input_audio") else None


def stand_in(state: Json | None, model: str) -> Json | None:
    """Return what stands in for the missing signature of a turn's first call; None if it is not needed."""
    # Source: Google's "Thought Signatures" guide, FAQ (for calls that another model made, either of two dummy
    # signatures) and parallel function calls (the signature is on the first call), read 2026-11-21. Gemini 3
    # refuses the calls of the running turn otherwise.
    if not _since_3(model):
        return None
    blocks = objects((state or {}).get("blocks")) if (state or {}).get("dialect") == NAME else []
    is_signed = any("thoughtSignature" in part for part in [*filter(_is_call, blocks)][:1])
    return None if is_signed else {"thoughtSignature": _DUMMY}


def _chat_part(part: Json, model: str) -> Json | None:
    """Return a part as LiteLLM takes it in a tool message; None if Gemini's results cannot hold it."""
    return None if result_part(part, model) is None else chat_block(part, model)


_ROUTE = Route(
    NAME,
    "lm15",
    models=RouteModels(adapter="GeminiLM"),
    turns=TurnRules(takes=frozenset({NAME}), stand_in=stand_in, takes_instructions=False),
    results=ResultRules(
        marks_failed=True,
        as_objects=True,
        inside=result_part,
        behind=content_part,
        # Source: the guides on images, audio, video and documents of ai.google.dev; read on 2026-11-28.
        images=r"image/(png|jpe?g|webp|hei[cf])",
        files=r"application/pdf|text/.+|video/.+",
    ),
    choices=ChoiceRules(forms=ALL_CHOICES | {"validated"}, parallel=False, formats_beside_tools=False),
    tools=ToolRules(
        native=True,
        # Sources: Google's FunctionDeclaration reference, and `FunctionDeclaration` of google-genai 3.4; read
        # on 2026-11-21.
        fields=frozenset({"behavior", "response", "responseJsonSchema"}),
        result_schema="responseJsonSchema",
    ),
    names=IdentifierRules(r"[a-zA-Z_][a-zA-Z0-9_.:-]*", 64),  # Source: the same reference
    question_block=question_part,
)

# The keywords of Gemini's `Schema` in LiteLLM, which leaves out any other (measured on 1.106).
_KEPT_BY_LITELLM = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "default", "items", "minItems"),
        *("maxItems", "enum", "properties", "propertyOrdering", "required", "minProperties"),
        *("maxProperties", "minimum", "maximum", "minLength"),
        *("maxLength", "pattern", "example", "anyOf"),
    }
)


def _caveat(request: Json) -> str:
    """Return what LiteLLM loses without a word: parts of schemas, one of two equal calls of a turn."""
    tools = request.get("tools", ())
    schemas = [tool["function"]["parameters"] for tool in tools if "function" in tool]
    keeps_tools = len(schemas) == len(tools) and all(
        place.schema.keys() <= _KEPT_BY_LITELLM for schema in schemas for place in subschemas(schema)
    )
    turns = [message.get("tool_calls") or () for message in request["messages"]]
    keeps_calls = all(len({written_text(call) for call in calls}) == len(calls) for calls in turns)
    if keeps_tools and keeps_calls:
        return ""
    loss = "one of two equal calls" if keeps_tools else "parts of these tools"
    way = "dspy.LM('gemini/...', engine='lm15')"
    return f"LiteLLM may leave out {loss} on the way to Gemini; the native engine sends all: {way}"


PROVIDER = Gemini(
    _ROUTE,
    _ROUTE._replace(
        client="litellm",
        as_chat=True,
        models=RouteModels(prefixes=frozenset({NAME, "vertex_ai"})),
        turns=_ROUTE.turns._replace(writes_arguments=True),
        # LiteLLM downloads what a URL leads to, and fails at the id of a file.
        results=_ROUTE.results._replace(inside=_chat_part, behind=chat_block, sources=frozenset({"data"})),
        choices=_ROUTE.choices._replace(forms=NO_SUBSET),
        # LiteLLM takes name, description and parameters, and leaves these server tools out beside functions,
        # without a word (measured on 1.106).
        tools=ToolRules(lost_server_tools=frozenset({"WebSearch", "WebFetch", "FileSearch"})),
        ids=_ROUTE.ids._replace(pattern=ANY),  # LiteLLM takes its signatures off again
        question_block=_chat_question_block,
        caveat=_caveat,
    ),
)
