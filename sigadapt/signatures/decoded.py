"""A call's arguments that the provider sent decoded: an object or a reason, and the text to keep of them.

The counterpart of `signatures.arguments` for wires that carry objects (Anthropic, Gemini, Ollama, Bedrock),
and for SDK objects, which may hold what JSON cannot. The same rules hold, so that a call is judged alike on
every wire: only finite numbers, only text keys, at most 201 levels, nothing repaired.
"""

import json
import math
from typing import Any, NamedTuple, cast

from sigadapt.signatures.arguments import Flaw, compact, shown

_MOST_DEEP = 201  # levels of objects and arrays; what `parse_arguments` takes
_MOST_BITS = 14_000  # of an integer; Python writes no more than 4,300 digits


def judge(value: Any) -> "tuple[str, dict[str, Any] | Flaw]":
    """Decoded arguments as JSON text, and as the object they are, or the `Flaw` that says why they are none.

    Args:
        value: what the provider sent; None where it sent none, which is the empty object.

    Returns:
        The compact text (empty for none), and the object itself or the flaw. Never raises.

    Example:
        >>> judge({"city": "Paris"})
        ('{"city":"Paris"}', {'city': 'Paris'})
        >>> judge([1, 2])[1].code, judge({"a": float("nan")})[1].path
        ('not_an_object', '/a')
    """
    if value is None:
        return "", {}
    fault = _fault(value)
    if fault is not None:
        text = spelled(value)
        return text, Flaw("invalid_json", f"the arguments hold {fault.what}: {shown(text)}", fault.path)
    text = compact(value)
    if isinstance(value, dict):
        return text, cast("dict[str, Any]", value)
    return text, Flaw("not_an_object", f"the arguments are not an object: {shown(text)}")


class _Fault(NamedTuple):
    what: str
    path: str


class _Node(NamedTuple):
    """A value inside the arguments, and the way to it as a linked list: a path is spelled only if needed."""

    value: Any
    level: int
    key: Any = None
    parent: Any = None  # the _Node it is in

    @property
    def path(self) -> str:
        keys: list[str] = []
        node = self
        while node.parent is not None:
            keys.append(str(node.key).replace("~", "~0").replace("/", "~1"))
            node = node.parent
        return "".join(f"/{key}" for key in reversed(keys))


def _fault(value: Any) -> _Fault | None:
    pending = [_Node(value, 1)]
    while pending:
        node = pending.pop()
        what = _container_fault(node) if isinstance(node.value, (dict, list)) else _scalar_fault(node.value)
        if what is not None:
            return _Fault(what, node.path)
        pending.extend(_Node(child, node.level + 1, key, node) for key, child in _members(node.value))
    return None


def _container_fault(node: _Node) -> str | None:
    if node.level > _MOST_DEEP:
        return f"more than {_MOST_DEEP} levels"
    if isinstance(node.value, dict) and not all(
        _is_unicode(key) for key in cast("dict[Any, Any]", node.value)
    ):
        return "a key that is not text"
    return None


def _scalar_fault(item: Any) -> str | None:
    if isinstance(item, str):
        return None if _is_unicode(item) else "half of a surrogate pair"
    if isinstance(item, float):
        return None if math.isfinite(item) else f"{item}, which is no JSON number"
    if isinstance(item, int):
        return None if item.bit_length() <= _MOST_BITS else "an integer too long to write"
    return None if item is None else f"a {type(item).__name__}, which is no JSON value"


def _members(value: Any) -> "list[tuple[Any, Any]]":
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def _is_unicode(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def spelled(value: Any) -> str:
    r"""JSON-like text of any value, also of one that JSON cannot hold or that is too deep for an encoder.

    Example:
        >>> spelled({"a": [float("nan"), b"x"]})
        '{"a":[NaN,"b\'x\'"]}'
    """
    pieces: list[str] = []
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if type(item) is _Verbatim:
            pieces.append(item)
        elif isinstance(item, dict):
            members = [(f"{_scalar(key)}:", child) for key, child in cast("dict[Any, Any]", item).items()]
            pending.extend(reversed(_enclosed("{", members, "}")))
        elif isinstance(item, list):
            pending.extend(reversed(_enclosed("[", [("", child) for child in cast("list[Any]", item)], "]")))
        else:
            pieces.append(_scalar(item))
    return "".join(pieces)


class _Verbatim(str):
    __slots__ = ()


def _enclosed(opening: str, members: "list[tuple[str, Any]]", closing: str) -> list[Any]:
    parts: list[Any] = [_Verbatim(opening)]
    for n, (label, child) in enumerate(members):
        parts += [_Verbatim(("," if n else "") + label), child]
    return [*parts, _Verbatim(closing)]


def _scalar(item: Any) -> str:
    if isinstance(item, int) and item.bit_length() > _MOST_BITS:
        return hex(item)
    if item is None or isinstance(item, (str, int, float)):
        return json.dumps(item, ensure_ascii=False)
    return json.dumps(repr(item), ensure_ascii=False)
