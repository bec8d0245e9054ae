"""The content of messages: texts that no request can hold, and images, files and audio."""

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.content.question_content import HALVES, shows_content, with_questions
from sigadapt.adapters.request.content.result_content import with_content
from sigadapt.schemas.json_values import as_unicode, is_unicode

LATE_INSTRUCTIONS = (
    "the wire has no role for instructions inside of a conversation, so they go out as words of the user"
)


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
            record.note(f"/messages/{number}", "lowered", LATE_INSTRUCTIONS)
    return request


def write_questions(request: Request, record: RequestRecord) -> Request:
    """Write what questions hold beside text."""
    if not any(map(shows_content, request["messages"])):
        return request
    written, changes = with_questions(request, record.route)
    record.extend(changes)
    return written


def write_results(request: Request, record: RequestRecord) -> Request:
    """Write what results, and questions of a recorded conversation, hold beside text."""
    if not any(row["role"] == "tool" or "parts" in row for row in request["messages"]):
        return request
    written, changes = with_content(request, record.route)
    record.extend(changes)
    return written
