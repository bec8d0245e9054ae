"""Weigh the parts of a request's body in bytes and tokens, whatever the provider's format."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from sigadapt.schemas.json_values import Json, compact, is_array, is_object

_TURNS = ("messages", "input", "contents")
_LEAST = 40  # bytes of a field that has a row of its own


class Weight(NamedTuple):
    """What one part weighs.

    Args:
        part: the part's name, such as `tool get_weather`.
        bytes: its size as compact JSON in UTF-8.
        tokens: how many tokens that is.
    """

    part: str
    bytes: int
    tokens: int


def weights(body: Mapping[str, Any], count: Callable[[str], int]) -> list[Weight]:
    """Return what each tool, each message and each long field weigh; small fields are one part."""
    found: list[Weight] = []
    small: Json = {}
    for key, value in body.items():
        parts = list(_parts(key, value))
        found += [_weigh(name, part, count) for name, part in parts]
        if not parts:
            small[key] = value
    return [*found, _weigh(", ".join(small), small, count)] if small else found


def _weigh(name: str, part: Any, count: Callable[[str], int]) -> Weight:
    text = compact(part)
    return Weight(name, len(text.encode(errors="replace")), count(text))


def _parts(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if key in ("tools", "toolConfig"):
        yield from ((f"tool {_name_of(tool)}", tool) for tool in each_tool(value))
    elif key in _TURNS and is_array(value):
        for number, turn in enumerate(value, 1):
            yield f"message {number}, {turn.get('role') or turn.get('type') or '?'}", turn
    elif len(compact(value).encode(errors="replace")) >= _LEAST:
        yield key, value


def each_tool(value: Any) -> Iterator[Any]:
    """Yield each tool alone, out of the lists and objects that hold several."""
    tools: list[Any] = value.get("tools", []) if is_object(value) else value
    for tool in tools:
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        yield from declared or [tool]


def _name_of(tool: Json) -> str:
    inner: Json = tool.get("function") or tool.get("toolSpec") or tool
    return str(inner.get("name") or inner.get("type") or next(iter(inner), "?"))
