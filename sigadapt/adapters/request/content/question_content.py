"""Questions with images, files or audio: write each of these in the blocks of the route's wire.

A question holds content blocks of a chat message, as DSPy's types write themselves. The provider's file says
which block of its wire carries one, so that lm15, which has no place for the name of a file or for audio in
a chat message, does not have to. A block that does not arrive refuses the request, because the model would
answer without what the user showed. What arrives otherwise is recorded.
"""

from typing import Any

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.errors import InvalidHistory
from sigadapt.providers.route import Route
from sigadapt.providers.wire.questions import part_of_question
from sigadapt.providers.wire.values import kind_of
from sigadapt.schemas.json_values import Json, compact, cut, is_object, is_unicode

HALVES = "half of a surrogate pair cannot be sent; a question mark is sent in its place"
_CLIENTS = {"lm15": "DSPy's native engine", "litellm": "LiteLLM", "engine": "a custom engine"}


def shows_content(row: dict[str, Any]) -> bool:
    """Return whether a message is a question that holds content blocks."""
    return row["role"] == "user" and isinstance(row["content"], list)


def with_questions(request: Request, route: Route) -> tuple[Request, list[Change]]:
    """Write the content blocks of questions for the route; return also what of them arrives otherwise."""
    changes: list[Change] = []
    rows = list(request["messages"])
    for number, row in enumerate(rows):
        if not shows_content(row):
            continue
        content = [_block(item, route) for item in row["content"]]
        blocks: list[Json] = []
        for place, block in enumerate(content):
            written = route.question_block(block, request["model"])
            if written is None:
                raise _unsendable(block, route)
            blocks.append(written)
            reason = _loss(block, written)
            if reason:
                changes.append(Change(f"/messages/{number}/content/{place}", "lowered", reason))
        parts = [part_of_question(block) or {"type": "json", "value": block} for block in content]
        rows[number] = {**row, "parts": parts, "blocks": blocks}
    return {**request, "messages": rows}, changes


def _block(item: Any, route: Route) -> Json:
    """Return an item of a question, which a hook may have written, as a content block."""
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if not is_object(item):
        raise _unsendable({"type": type(item).__name__}, route)
    return item


def _unsendable(block: Json, route: Route) -> InvalidHistory:
    part = part_of_question(block)
    kind = kind_of(block)
    fix = "Use a model or an engine that takes it, or give its content as text."
    if part is None and kind == "file":
        reason = "a question holds a file without data and without an id"
        fix = "Give file_data or file_id to dspy.File."
    else:
        mime = "" if part is None else part.get("mime_type", "")
        what = f"{cut(kind)} data ({cut(mime)})" if mime else f"a block of type {cut(kind)}"
        reason = f"a question holds {what}, which {_CLIENTS[route.client]} cannot send to {route.wire}"
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
