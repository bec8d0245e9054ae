"""Results with images, files or audio: decide for each of these where the route can send it.

 a. Inside the result, if the provider's results can hold it.
 b. As text inside the result, if it is a file of text.
 c. After the last result of the turn, with its name in the result: `[image 1, attachment 1 below]`.
 d. Nowhere: a short text says in its place what it was (`words_for`), so that one result does not end the
    run and each later request with it. The history keeps the result whole.

A block in the words of one wire, as logs hold it, is left out on every other one. All but the first are
recorded. What a user showed in a recorded question is placed here, too.

Chat templates such as Mistral's refuse words of the user right behind results ("conversation roles must
alternate"). If the adapter's option says so, the model speaks between them:

    assistant (calls), tool, user  ->  assistant (calls), tool, assistant (BRIDGE), user
"""

from typing import Any, Literal

from sigadapt.adapters.calling.call_record import RequestRecord
from sigadapt.adapters.passes.questions import is_answered, loss_of, unsendable, words_for
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.json_values import Json, compact, cut, is_array, is_object
from sigadapt.providers import CHAT
from sigadapt.providers.route import Route
from sigadapt.providers.wire.content_blocks import decoded_text, text_in
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.signatures.tool_results.content import PLACED, Part, name_of, text_of


def write_results(request: Request, record: RequestRecord) -> Request:
    """Write what results, and questions of a recorded conversation, hold beside text."""
    if not any(row["role"] == "tool" or "parts" in row for row in request["messages"]):
        return request
    route = record.route
    rows = list(request["messages"])
    changes: list[Change] = []
    place = below = 0  # the result's place in its turn, and how many attachments follow the turn's results
    for number, row in enumerate(rows):
        place = place + 1 if row["role"] == "tool" else 0
        below = below if place > 1 else 0
        if place and row.get("result") is not None and row["result"].altered:
            why = "; ".join(_ALTERED[reason] for reason in row["result"].altered)
            changes.append(Change(f"/messages/{number}/content", "lowered", why))
        if place and row.get("result") is not None and row["result"].is_content:
            placing = _Placing(row, route, request["model"], place, below)
            changes += (Change(f"/messages/{number}/content", "lowered", why) for why in placing.changes)
            below = placing.below
            rows[number] = placing.row()
        if place and route.results.text_failures and row["is_error"] and not rows[number]["content"].strip():
            rows[number] = {**rows[number], "content": SILENT_FAILURE}
            changes.append(Change(f"/messages/{number}/content", "lowered", _SILENT))
        if "parts" in row and "blocks" not in row:
            blocks, losses = _question(
                row["parts"], route, request["model"], answered=is_answered(rows, number)
            )
            changes += (Change(f"/messages/{number}/content", what, why) for what, why in losses)
            rows[number] = {**row, "blocks": blocks}
    record.extend(changes)
    return {**request, "messages": rows}


def _question(
    parts: list[Part], route: Route, model: str, *, answered: bool
) -> tuple[list[Json], list[tuple[Literal["dropped", "lowered"], str]]]:
    """Return what the user said as the provider's blocks, and why some of it is left out."""
    blocks: list[Json] = []
    losses: list[tuple[Literal["dropped", "lowered"], str]] = []
    number = 0
    for part in parts:
        number += part["type"] in PLACED
        if why := _why_foreign(part, route):
            losses.append(("dropped", why))
            continue
        block = part["value"] if part["type"] == "block" else _block_of_question(part, route, model)
        if block is None:
            if not answered:
                raise unsendable(part["type"], part.get("mime_type", ""), route)
            losses.append(("lowered", loss_of(part)))
            block = _block_of_question({"type": "text", "text": words_for(part, number)}, route, model)
        blocks.append(block or {"text": words_for(part, number)})
    return blocks, losses


def _block_of_question(part: Part, route: Route, model: str) -> Json | None:
    """Return a part as a block of a question; None if there is none."""
    block = route.results.block_behind(part, model) or route.results.block_inside(part, model)
    text = text_in(part)
    return {"text": text} if block is None and text is not None else block


def _why_foreign(part: Part, route: Route) -> str:
    """Return why a block in the words of another wire than the route's, as logs hold it, is left out."""
    wire = CHAT.name if route.as_chat else route.wire
    if part["type"] != "block" or part.get("wire", wire) == wire:
        return ""
    kind = part["value"].get("type") or next(iter(part["value"]), "a block")
    return f"{cut(str(kind))} is a block of {part['wire']}, which this route has no form for"


def _parts_of(row: dict[str, Any]) -> list[Part]:
    """Return the content of a result; with the text that a hook wrote, if one did."""
    parts: list[Part] = row["result"].value
    if row["content"] == text_of(parts):
        return parts
    return [{"type": "text", "text": row["content"]}, *(part for part in parts if part["type"] in PLACED)]


SILENT_FAILURE = "The call failed without a message."
"""What the model reads of a failed result without a text, which Anthropic refuses."""

_SILENT = "this route can't carry a failed result without a text; a text says so in its place"
_ALTERED = {
    "null": "the result holds NaN or an infinite number, which JSON lacks; null is sent",
    "text": "the result holds what JSON cannot hold; its text is sent",
    "unicode": "the result holds half of a surrogate pair; U+FFFD is sent",
}


class _Placing:
    """One result, whose parts are put into their places."""

    def __init__(self, row: dict[str, Any], route: Route, model: str, place: int, below: int) -> None:
        self.below = below
        self._place = place
        self.changes: list[str] = []
        self._row = row
        self._route = route
        self._model = model
        self._parts: list[Part] = []
        self._after: list[Json] = []
        number = 0
        for part in _parts_of(row):
            number += part["type"] in PLACED
            self._parts += self._places_of(part, number) if part["type"] in PLACED else [part]

    def row(self) -> dict[str, Any]:
        """Return the tool message."""
        result = self._row["result"].model_copy(update={"value": self._parts})
        content = {"result": result, "blocks": self._blocks(), "after": self._after}
        return {**self._row, "content": text_of(self._parts), **content}

    def _places_of(self, part: Part, number: int) -> list[Part]:
        """Return a part that stays in the result, or the text in its place, or nothing if JSON names it."""
        text_only = self._row["is_error"] and self._route.results.text_failures
        if why := _why_foreign(part, self._route):
            self.changes.append(why)
            return []
        block = None if text_only else self._in_result(part)
        label = {"type": "text", "text": name_of(part, number)}
        texts = [compact(part["value"]) for part in self._parts if part["type"] == "json"]
        is_named = any(label["text"] in text for text in texts)
        if block is not None:
            says_name = is_named or "name" not in part or part["name"] in compact(block)
            return [part] if says_name else [label, part]
        where = "a failed result" if text_only else "a result"
        text = decoded_text(part)
        if text is not None:
            self.changes.append(f"this route can't carry this file in {where}; its text is sent")
            return [{"type": "text", "text": f"{label['text']}\n{text}"}]
        if not self._follows(part, label["text"]):
            self.changes.append(loss_of(part))
            return self._in_words(words_for(part, number), label["text"] if is_named else "")
        why = f"this route can't carry {part['type']} data in {where}; it is sent after the results"
        self.changes.append(why)
        if self._route.results.as_objects and is_named:
            return []
        return [{"type": "text", "text": f"{label['text'][:-1]}, attachment {self.below} below]"}]

    def _in_words(self, words: str, name: str) -> list[Part]:
        """Return the text in the place of a part; nothing if it takes the place of a name in JSON."""
        for place, part in enumerate(self._parts):
            if name and part["type"] == "json" and name in compact(part["value"]):
                self._parts[place] = {**part, "value": _with_words(part["value"], name, words)}
                return []
        return [{"type": "text", "text": words}]

    def _in_result(self, part: Part) -> Json | None:
        """Return the block of a part inside the result; None if it has no place there."""
        return self._route.results.block_inside(part, self._model)

    def _follows(self, part: Part, name: str) -> bool:
        """Put the block of a part behind the results, and return whether there is one."""
        block = self._route.results.block_behind(part, self._model)
        if block is None:
            return False
        self.below += 1
        result = f"result {self._place} ({self._row['name']})"
        # The model has to know which result a picture below belongs to.
        label = {"type": "text", "text": f"Attachment {self.below}: {name[1:-1]} of {result}"}
        heading = self._route.results.block_behind(label, self._model)
        self._after += [block] if heading is None else [heading, block]
        return True

    def _blocks(self) -> list[Json] | None:
        """Return the blocks inside the result; None if it holds only text."""
        if not any(part["type"] in PLACED for part in self._parts):
            return None
        parts = self._parts
        if self._row["is_error"] and not self._route.results.marks_failed:
            first = text_in(parts[0])
            mark = {"type": "text", "text": MARKED.strip() if first is None else f"{MARKED}{first}"}
            parts = [mark, *parts[first is not None :]]
        blocks = (self._in_result(part) for part in parts)
        return [block for block in blocks if block is not None]


def _with_words(value: Any, name: str, words: str) -> Any:
    """Return JSON with words in the place of a name that one of its texts holds."""
    if isinstance(value, str):
        return value.replace(name, words, 1)
    if is_array(value):
        return [_with_words(item, name, words) for item in value]
    if is_object(value):
        return {key: _with_words(member, name, words) for key, member in value.items()}
    return value


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
