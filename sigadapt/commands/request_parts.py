"""The parts of a request's body and what they weigh, whatever the provider's format."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.json_values import Json, compact, is_array, is_object

TOOLS = ("tools", "toolConfig")
INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")
MESSAGES = ("messages", "input", "contents")
READING_ORDER = (*TOOLS, *INSTRUCTIONS, *MESSAGES)
"""The keys in the order in which a provider reads them, whatever the order of the body's keys."""
_LEAST = 40  # bytes of a field that has a row of its own among the weights


class RequestPart(NamedTuple):
    """A part of a request: what kind it is, its name, and its JSON."""

    kind: Literal["tool", "instructions", "message", "field"]
    name: str  # what the table calls it
    value: Any


def parts_of(body: Json, keys: Iterable[str]) -> Iterator[RequestPart]:
    """Yield the parts of some keys of a body; each tool alone, out of the objects that hold several."""
    for key in keys:
        value = body.get(key)
        if key in TOOLS and value is not None:
            for tool in _tools_in(value):
                yield RequestPart("tool", f"tool {_name_of(tool)}", tool)
        elif key in MESSAGES and is_array(value):
            for number, row in enumerate(objects(value), 1):
                role = row.get("role")
                kind = "instructions" if role in ("system", "developer") else "message"
                yield RequestPart(kind, f"message {number}, {role or row.get('type') or '?'}", row)
        elif key in INSTRUCTIONS and key in body:
            yield RequestPart("instructions", key, value)
        elif key in body:
            yield RequestPart("field", key, value)


def _tools_in(value: Any) -> Iterator[Json]:
    """Yield the tools of a body's field: each of several functions that one entry declares."""
    entries = value.get("tools") if is_object(value) else value
    for entry in objects(entries):
        functions = objects(entry.get("functionDeclarations") or entry.get("function_declarations"))
        yield from functions or [entry]


def _name_of(tool: Json) -> Any:
    declaration = an_object(tool.get("function")) or an_object(tool.get("toolSpec")) or tool
    return declaration.get("name") or declaration.get("type") or next(iter(declaration), "?")


def weights(body: Json, count: Callable[[str], int]) -> list[Json]:
    """Return what each tool, message and long field weigh, in bytes and tokens; small fields are one part."""
    heavy: list[Json] = []
    small: Json = {}
    for key, value in body.items():
        rows = [_weight(part.name, part.value, count) for part in parts_of(body, [key])]
        # Gemini's `toolConfig` holds settings only, so it has no row of a tool.
        if not rows or (rows[0]["part"] == key and rows[0]["bytes"] < _LEAST):
            small[key] = value
        else:
            heavy += rows
    if small:
        heavy.append(_weight(", ".join(small), small, count))
    return heavy


def _weight(name: str, value: Any, count: Callable[[str], int]) -> Json:
    text = compact(value)
    return {"part": name, "bytes": len(text.encode(errors="replace")), "tokens": count(text)}
