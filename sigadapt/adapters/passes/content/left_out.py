"""What a route cannot carry: the short text that stands in its place, and what is on record of it."""

from sigadapt.schemas.json_values import Json, compact, cut
from sigadapt.signatures.tool_results.content import name_of
from sigadapt.signatures.tool_results.tool_output import Part


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
