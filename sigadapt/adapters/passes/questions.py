"""Questions with images, files or audio: write each of these in the blocks of the route's wire.

A question holds content blocks of a chat message, as DSPy's types write themselves. The provider's file says
which block of its wire carries one, so that lm15, which has no place for the name of a file or for audio in
a chat message, does not have to. A block that does not arrive refuses the request, because the model would
answer without what the user shows. If the question was answered before, by a model that took it, a short text
says in its place what it was, so that the conversation goes on. What arrives otherwise is recorded.

Halves of surrogate pairs, which no request can hold, and instructions inside of a conversation are here, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sigadapt.adapters.calling.call_record import RequestRecord
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.errors import InvalidHistory
from sigadapt.json_values import Json, as_unicode, compact, cut, is_object, is_unicode
from sigadapt.providers.route import Route
from sigadapt.providers.wire.content_blocks import part_of_question
from sigadapt.providers.wire.values import kind_of
from sigadapt.signatures.tool_results.content import MEDIA, name_of
from sigadapt.signatures.tool_results.tool_output import Part

HALVES = "half of a surrogate pair cannot be sent; a question mark is sent in its place"
_CLIENTS = {"lm15": "DSPy's native engine", "litellm": "LiteLLM", "engine": "a custom engine"}


def shows_content(row: dict[str, Any]) -> bool:
    """Return whether a message is a question that holds content blocks."""
    return row["role"] == "user" and isinstance(row["content"], list)


def is_answered(rows: Sequence[Mapping[str, Any]], number: int) -> bool:
    """Return whether the model said something behind a message."""
    return any(row["role"] == "assistant" for row in rows[number + 1 :])


def write_questions(request: Request, record: RequestRecord) -> Request:
    """Write the content blocks of questions for the route."""
    if not any(map(shows_content, request["messages"])):
        return request
    route = record.route
    changes: list[Change] = []
    rows = list(request["messages"])
    for number, row in enumerate(rows):
        if not shows_content(row):
            continue
        content = [_block(item, route) for item in row["content"]]
        parts = [part_of_question(block) or {"type": "json", "value": block} for block in content]
        blocks: list[Json] = []
        media = 0
        for place, (block, part) in enumerate(zip(content, parts, strict=True)):
            media += part["type"] in MEDIA
            written = route.question_block(block, request["model"])
            reason = "" if written is None else _loss(block, written)
            if written is None:
                if part["type"] not in MEDIA or not is_answered(rows, number):
                    raise _refusal(block, route)
                reason = loss_of(part)
                parts[place] = {"type": "text", "text": words_for(part, media)}
                written = route.question_block(parts[place], request["model"]) or parts[place]
            blocks.append(written)
            if reason:
                changes.append(Change(f"/messages/{number}/content/{place}", "lowered", reason))
        rows[number] = {**row, "parts": parts, "blocks": blocks}
    record.extend(changes)
    return {**request, "messages": rows}


def _block(item: Any, route: Route) -> Json:
    """Return an item of a question, which a hook may have written, as a content block."""
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if not is_object(item):
        raise _refusal({"type": type(item).__name__}, route)
    return item


def _refusal(block: Json, route: Route) -> InvalidHistory:
    part = part_of_question(block)
    kind = kind_of(block)
    if part is None and kind == "file":
        reason = "a question holds a file without data and without an id"
        fix = "Give file_data or file_id to dspy.File."
        return InvalidHistory(reason, code="unsendable_content", fix=fix)
    return unsendable(kind, "" if part is None else part.get("mime_type", ""), route)


def unsendable(kind: str, mime: str, route: Route) -> InvalidHistory:
    """Return the error of a question that holds what the route cannot carry."""
    what = f"{cut(kind)} data ({cut(mime)})" if mime else f"a block of type {cut(kind)}"
    reason = f"a question holds {what}, which {_CLIENTS[route.client]} cannot send to {route.wire}"
    fix = "Use a model or an engine that takes it, or give its content as text."
    return InvalidHistory(reason, code="unsendable_content", fix=fix)


def _loss(block: Json, written: Json) -> str:
    """Return what of a block does not arrive; empty if all of it does."""
    part = part_of_question(block)
    if part is None:
        return ""
    if part["type"] == "text":
        return "" if is_unicode(part["text"]) else HALVES
    if "text" in written:
        return "this route can't carry this file in a question; its text is sent"
    if kind_of(block) == "document" and kind_of(written) != "document":
        return "this route has no documents to cite; a file is sent"
    name = part.get("name")
    if name and compact(name) not in compact(written):
        return f"this route can't carry the name of a file, {cut(name)}"
    return ""


def words_for(part: Part, number: int) -> str:
    """Return what the model reads in the place of a part: what it was, its size, and why it is not here."""
    name = cut(name_of(part, number)[1:-1])
    return f"[{name} ({_what(part)}) is left out: this provider takes none]"


def loss_of(part: Part) -> str:
    """Return what is on record of a part that is left out."""
    return f"this route can't carry {part['type']} data ({_what(part)}); a text says so in its place"


def _what(part: Part) -> str:
    if "data" in part:
        return f"{cut(part['mime_type'])}, {_size(part['data'])} bytes"
    if part["type"] != "block":
        return f"at {cut(part['url'])}" if "url" in part else f"the file {cut(part['file_id'])}"
    block: Json = part["value"]
    kind = block.get("type") or next(iter(block), "a block")
    return f"{cut(str(kind))}, {len(compact(block))} characters"


def _size(data: str) -> int:
    """Return how many bytes base64 stands for."""
    return len(data.rstrip("=")) * 3 // 4


_LATE = "the wire has no role for instructions inside of a conversation, so they go out as words of the user"


def replace_halves(request: Request, record: RequestRecord) -> Request:
    """Replace half of a surrogate pair in a text, because no request can hold it."""
    # Here that is done in questions. In turns and results, whoever writes them for the provider does it.
    rows = [*request["messages"]]
    has_changed = False
    for number, row in enumerate(rows):
        text = row.get("content")
        if not isinstance(text, str) or is_unicode(text):
            continue
        record.note(f"/messages/{number}/content", "lowered", HALVES)
        if row["role"] in ("system", "user"):
            rows[number] = {**row, "content": as_unicode(text)}
            has_changed = True
    return {**request, "messages": rows} if has_changed else request


def note_late_instructions(request: Request, record: RequestRecord) -> Request:
    """Put on record that instructions inside of the conversation go out as words of the user."""
    if record.route.turns.takes_instructions:
        return request
    for number, row in enumerate(request["messages"]):
        if number and row["role"] == "system":
            record.note(f"/messages/{number}", "lowered", _LATE)
    return request
