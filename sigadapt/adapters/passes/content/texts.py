"""The texts of messages: what no request can hold, and instructions inside of a conversation."""

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.passes.content.questions import HALVES
from sigadapt.adapters.request.canonical import Request
from sigadapt.schemas.json_values import as_unicode, is_unicode

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
