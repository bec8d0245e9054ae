"""What the parts of a request's body weigh, in bytes and tokens, whatever the provider's format."""

from collections.abc import Callable, Iterator
from typing import Any

from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.json_values import Json, compact, is_array, is_object

_TOOLS = ("tools", "toolConfig")
_MESSAGES = ("messages", "input", "contents")
_LEAST = 40  # bytes of a field that has a row of its own


def weights(body: Json, count: Callable[[str], int]) -> list[Json]:
    """Return what each tool, message and long field weigh, in bytes and tokens; small fields are one part."""
    heavy: list[Json] = []
    small: Json = {}
    for key, value in body.items():
        rows = [_weight(name, part, count) for name, part in _parts_of(key, value)]
        # Gemini's `toolConfig` holds settings only, so it has no row of a tool.
        if not rows or (rows[0]["part"] == key and rows[0]["bytes"] < _LEAST):
            small[key] = value
        else:
            heavy += rows
    if small:
        heavy.append(_weight(", ".join(small), small, count))
    return heavy


def _parts_of(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a field, each with its name; each tool alone, also out of one that holds several."""
    if key in _TOOLS and value is not None:
        for tool in _tools_in(value):
            yield f"tool {_name_of(tool)}", tool
    elif key in _MESSAGES and is_array(value):
        for number, row in enumerate(objects(value), 1):
            yield f"message {number}, {row.get('role') or row.get('type') or '?'}", row
    else:
        yield key, value


def _tools_in(value: Any) -> Iterator[Json]:
    """Yield the tools of a body's field: each of several functions that one entry declares."""
    entries = value.get("tools") if is_object(value) else value
    for entry in objects(entries):
        functions = objects(entry.get("functionDeclarations") or entry.get("function_declarations"))
        yield from functions or [entry]


def _name_of(tool: Json) -> Any:
    declaration = an_object(tool.get("function")) or an_object(tool.get("toolSpec")) or tool
    return declaration.get("name") or declaration.get("type") or next(iter(declaration), "?")


def _weight(name: str, value: Any, count: Callable[[str], int]) -> Json:
    text = compact(value)
    return {"part": name, "bytes": len(text.encode(errors="replace")), "tokens": count(text)}
