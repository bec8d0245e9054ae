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


class Part(NamedTuple):
    """A part of a request: what kind it is, its name, where it stands, and its JSON."""

    kind: Literal["tool", "instructions", "message", "field"]
    name: str
    place: str
    value: Any


def parts_of(body: Json, keys: Iterable[str]) -> Iterator[Part]:
    """Yield the parts of some keys of a body; each tool alone, out of the objects that hold several."""
    for key in keys:
        value = body.get(key)
        if key in TOOLS and value is not None:
            lists = objects(value.get("tools") if is_object(value) else value)
            tools: list[Json] = []
            for each in lists:
                several = each.get("functionDeclarations") or each.get("function_declarations")
                tools += objects(several) or [each]
            for number, tool in enumerate(tools):
                inner = an_object(tool.get("function")) or an_object(tool.get("toolSpec")) or tool
                name = inner.get("name") or inner.get("type") or next(iter(inner), "?")
                yield Part("tool", f"tool {name}", f"/{key}/{number}", tool)
        elif key in MESSAGES and is_array(value):
            for number, row in enumerate(objects(value)):
                role = row.get("role")
                kind = "instructions" if role in ("system", "developer") else "message"
                name = f"message {number + 1}, {role or row.get('type') or '?'}"
                yield Part(kind, name, f"/{key}/{number}", row)
        elif key in body:
            yield Part("instructions" if key in INSTRUCTIONS else "field", key, f"/{key}", value)


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
    return [*heavy, _weight(", ".join(small), small, count)] if small else heavy


def _weight(name: str, value: Any, count: Callable[[str], int]) -> Json:
    text = compact(value)
    return {"part": name, "bytes": len(text.encode(errors="replace")), "tokens": count(text)}
