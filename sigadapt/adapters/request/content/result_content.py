"""Results with images, files or audio: decide for each of these where the route can send it.

 a. Inside the result, if the provider's results can hold it.
 b. As text inside the result, if it is a file of text.
 c. After the last result of the turn, with its name in the result: `[image 1, attachment 1 below]`.
 d. Otherwise the request is refused, because the model would answer without what the tool found.

A block in the words of one wire, as logs hold it, is left out on every other one. All but the first are
recorded. What a user showed in a recorded question is placed here, too.
"""

from typing import Any

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.errors import InvalidHistory
from sigadapt.providers import CHAT
from sigadapt.providers.route import Route
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.providers.wire.result_blocks import decoded_text, text_in
from sigadapt.schemas.json_values import Json, compact, cut
from sigadapt.signatures.tool_results.content import PLACED, Part, name_of, text_of


def with_content(request: Request, route: Route) -> tuple[Request, list[Change]]:
    """Put what the results hold into its places; return also where it is sent otherwise, and why."""
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
        if "parts" in row and "blocks" not in row:
            blocks, reasons = _question(row["parts"], route, request["model"])
            changes += (Change(f"/messages/{number}/content", "dropped", why) for why in reasons)
            rows[number] = {**row, "blocks": blocks}
    return {**request, "messages": rows}, changes


def _question(parts: list[Part], route: Route, model: str) -> tuple[list[Json], list[str]]:
    """Return what the user said as the provider's blocks, and why some of it is left out."""
    blocks: list[Json] = []
    reasons: list[str] = []
    for part in parts:
        if why := _why_foreign(part, route):
            reasons.append(why)
            continue
        if part["type"] == "block":
            block = part["value"]
        else:
            block = route.results.behind(part, model) or route.results.inside(part, model)
        text = text_in(part) if part["type"] != "block" else None
        if block is None and text is None:
            raise InvalidHistory(
                f"the question holds {part['type']} data ({cut(part.get('mime_type', 'by its address'))}), "
                "which cannot be sent on this route",
                code="unsendable_content",
                fix="Give it as text, or use a model that accepts it.",
            )
        if block is None:
            block = {"text": text}
        blocks.append(block)
    return blocks, reasons


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


_ALTERED = {
    "null": "the result holds NaN or an infinite number, which JSON lacks; null is sent",
    "text": "the result holds what JSON cannot hold; its text is sent",
    "unicode": "the result holds half of a surrogate pair; U+FFFD is sent",
}

_PICTURE = {"type": "image", "mime_type": "image/png", "data": ""}
"""What every route whose results hold blocks has a block for."""


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
            self._parts += self._placed(part, number) if part["type"] in PLACED else [part]

    def row(self) -> dict[str, Any]:
        """Return the tool message."""
        result = self._row["result"].model_copy(update={"value": self._parts})
        content = {"result": result, "blocks": self._blocks(), "after": self._after}
        return {**self._row, "content": text_of(self._parts), **content}

    def _placed(self, part: Part, number: int) -> list[Part]:
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
        self._follow(part, label["text"])
        why = f"this route can't carry {part['type']} data in {where}; it is sent after the results"
        self.changes.append(why)
        if self._route.results.as_objects and is_named:
            return []
        return [{"type": "text", "text": f"{label['text'][:-1]}, attachment {self.below} below]"}]

    def _in_result(self, part: Part) -> Json | None:
        """Return the block of a part inside the result; the program's own, if results hold blocks at all."""
        if part["type"] != "block":
            return self._route.results.inside(part, self._model)
        return part["value"] if self._route.results.inside(_PICTURE, self._model) else None

    def _follow(self, part: Part, name: str) -> None:
        block = None if part["type"] == "block" else self._route.results.behind(part, self._model)
        if block is None:
            kind = cut(part.get("mime_type") or next(iter({"url", "file_id", "data", "value"} & part.keys())))
            raise InvalidHistory(
                f"the result of call {cut(repr(self._row['tool_call_id']))} holds {part['type']} data "
                f"({kind}), which cannot be sent on this route",
                code="unsendable_content",
                tool=self._row["name"],
                fix="Give the result as text, or use a model that accepts it.",
            )
        self.below += 1
        result = f"result {self._place} ({self._row['name']})"
        # The model has to know which result a picture below belongs to.
        label = {"type": "text", "text": f"Attachment {self.below}: {name[1:-1]} of {result}"}
        heading = self._route.results.behind(label, self._model)
        self._after += [block] if heading is None else [heading, block]

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
