"""Bridges from results to words of the user, for chat templates that want the model to speak between them.

    assistant (calls), tool, user  ->  assistant (calls), tool, assistant (BRIDGE), user

Mistral's templates refuse a user's message right behind results ("conversation roles must alternate"). An
attachment behind results is a user's message, too, and becomes one with the question that follows it.
"""

from typing import Any

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Request
from sigadapt.providers import CHAT
from sigadapt.schemas.json_values import Json

BRIDGE = "I have the results."
"""What the model says between results and a question; always the same, so that the prompt cache stays."""

_WHY = f"bridge_results=True: the assistant says {BRIDGE!r} between results and words of the user"
_ATTACHMENTS = "Attachments of the results above."  # for DSPy's history; the blocks are sent


def bridge_results(request: Request, record: RequestRecord) -> Request:
    """Put the model's words between results and what follows them, if the adapter's option says so."""
    is_chat = record.route.as_chat or record.route.wire == CHAT.name
    if not (record.bridges_results and is_chat):
        return request
    rows: list[Json] = []
    after: list[Json] = []  # the attachments of the results so far
    pending = [*request["messages"]]
    for number, row in enumerate(pending):
        if row["role"] == "tool":
            after += row.get("after", ())
            rows.append({**row, "after": ()})
            if number + 1 == len(pending) and after:
                record.note(f"/messages/{number}/content", "lowered", _WHY)
                rows += [_bridge(), _attachments(after, None)]
            continue
        follows_results = bool(rows) and rows[-1]["role"] == "tool"
        if follows_results and (after or row["role"] == "user"):
            record.note(f"/messages/{number}", "lowered", _WHY)
            rows.append(_bridge())
        if follows_results and after:
            is_question = row["role"] == "user"
            rows.append(_attachments(after, row if is_question else None))
            rows += [] if is_question else [row]
        else:
            rows.append(row)
        after = []
    return {**request, "messages": rows}


def _bridge() -> Json:
    return {"role": "assistant", "content": BRIDGE}


def _attachments(after: list[Json], question: Json | None) -> Json:
    """Return attachments as a message of the user, with the question behind them if there is one."""
    if question is None:
        return {"role": "user", "content": _ATTACHMENTS, "parts": [], "blocks": after}
    text: list[Any] = [{"type": "text", "text": question["content"]}]
    return {**question, "parts": question.get("parts", []), "blocks": [*after, *question.get("blocks", text)]}
