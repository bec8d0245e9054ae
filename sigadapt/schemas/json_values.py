"""Which Python values are JSON (`fault_in`), and how to write them.

`compact` writes a value for a request. `json_like`, `cut`, `listed`, `pointer` and `closest` write parts of
error messages.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import orjson

Json: TypeAlias = dict[str, Any]
"""A JSON object."""

ARGUMENT_LEVELS = 200
"""How many objects and arrays may be around a value in a call's arguments. It is the limit of jiter."""

SCHEMA_LEVELS = 100
"""How many objects and arrays may be around a value in a schema."""

_LONGEST_SHOWN = 120
_LONGEST_WORD = 200
_LONGEST_POINTER = 500
_MOST_BITS = 14_000  # of an integer: Python writes at most 4,300 digits


class RepeatedKeys(dict[str, Any]):
    """A JSON object with a key twice, or around such an object. Of a repeated key it has the last value.

    Args:
        pairs: all keys and values, in the order they came.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def is_object(value: object) -> TypeGuard[Json]:
    """Say whether a decoded JSON value is an object.

    Example:
        >>> is_object({"a": 1}), is_object([1])
        (True, False)
    """
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Say whether a decoded JSON value is an array."""
    return isinstance(value, list)


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Say whether a value is a mapping, whose keys are taken for texts."""
    return isinstance(value, Mapping)


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Say whether a value can be looped over."""
    return isinstance(value, Iterable)


def is_sequence(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Say whether a Python value is written as a JSON array."""
    return isinstance(value, (list, tuple))


def equal_json(one: Any, other: Any) -> bool:
    """Say whether two values are the same JSON: 1 is 1.0 and key order is free, but 1 is not true.

    Example:
        >>> equal_json({"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}), equal_json([1], [True])
        (True, False)
    """
    pending = [(one, other)]
    while pending:
        left, right = pending.pop()
        if is_object(left) and is_object(right):
            if left.keys() != right.keys():
                return False
            pending += [(value, right[key]) for key, value in left.items()]
        elif is_sequence(left) and is_sequence(right):
            if len(left) != len(right):
                return False
            pending += zip(left, right, strict=True)
        elif left != right or isinstance(left, bool) != isinstance(right, bool):
            return False
    return True


class Path(NamedTuple):
    """A place in a value, linked to its parent, so that the pointer is written only for an error."""

    parent: "Path | None"
    key: object

    def pointer(self) -> str:
        """Write the place as a JSON Pointer (RFC 6901)."""
        keys: list[object] = []
        place: Path | None = self
        while place is not None:
            keys.append(place.key)
            place = place.parent
        return pointer(reversed(keys))


def pointer(keys: Iterable[object]) -> str:
    """Write keys as a JSON Pointer (RFC 6901).

    Example:
        >>> pointer(["properties", "a~b", 0])
        '/properties/a~0b/0'
    """
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def short_pointer(keys: Iterable[object]) -> str:
    """Write keys as a JSON Pointer; if it is too long to read, that of the innermost readable part."""
    whole = pointer(keys)
    while len(whole) > _LONGEST_POINTER:
        whole = whole.rpartition("/")[0]
    return whole


class Fault(NamedTuple):
    """Why a Python value is not a JSON value: the reason, and the JSON Pointer of the place."""

    reason: str
    path: str


def fault_in(value: object, *, levels: int, most: int | None = None) -> Fault | None:
    """Find the first place where a Python value is not JSON or exceeds a limit.

    Args:
        value: any value. One that contains itself exceeds `levels`.
        levels: how many objects and arrays may be around a value, the outermost included.
        most: how many values there may be in total; None sets no limit.

    Returns:
        None for a JSON value within the limits, else the Fault.

    Example:
        >>> fault_in({"a": [1, float("nan")]}, levels=5)
        Fault(reason='nan is not a JSON number', path='/a/1')
        >>> fault_in({"a": [1, None, "x"]}, levels=5)
    """
    pending: list[tuple[Any, Path | None, int]] = [(value, None, 1)]
    count = 1
    while pending:
        item, path, level = pending.pop()
        members = _members(item)
        if members is None:
            reason = _scalar_fault(item)
        elif item and level > levels:  # an empty one is a value like a number
            reason = f"nested deeper than {levels} levels"
        else:
            reason = _key_fault(item if is_object(item) else ())
        if reason:
            return Fault(reason, path.pointer() if path else "")
        for key, member in members or ():
            count += 1
            if not _is_plain(member):
                pending.append((member, Path(path, key), level + 1))
        if most is not None and count > most:
            return Fault(f"more than {most} values", path.pointer() if path else "")
    return None


def _is_plain(item: object) -> bool:
    if type(item) is str:
        return item.isascii()
    if type(item) is int:
        return item.bit_length() <= _MOST_BITS
    return item is None or type(item) is bool


def _members(item: object) -> Iterable[tuple[object, Any]] | None:
    if is_object(item):
        return item.items()
    return enumerate(item) if is_array(item) else None


def _key_fault(keys: Iterable[object]) -> str | None:
    for key in keys:
        if not isinstance(key, str):
            return f"the key {cut(repr(key))} is not a string"
        if not is_unicode(key):
            return "a key with half of a surrogate pair"
    return None


def _scalar_fault(item: Any) -> str | None:
    if isinstance(item, str):
        return None if is_unicode(item) else "half of a surrogate pair"
    if isinstance(item, float):
        return None if math.isfinite(item) else f"{item} is not a JSON number"
    if isinstance(item, int):
        return None if item.bit_length() <= _MOST_BITS else "an integer of more than 4,300 digits"
    return None if item is None else f"a Python {type(item).__name__} is not a JSON value"


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON and UTF-8 cannot hold."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode(text: str) -> str:
    """Return the text with a question mark in the place of each half of a surrogate pair."""
    return text if is_unicode(text) else text.encode("utf-8", "replace").decode()


def without_halves(value: Any) -> Any:
    """Return a JSON value with U+FFFD for each half of a surrogate pair; the same object if there is none."""
    if isinstance(value, str):
        if is_unicode(value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins two halves of one
    if is_object(value) or is_array(value):
        try:
            orjson.dumps(value)
        except TypeError:  # also for what is no JSON
            return _without_halves(value)
    return value


def _without_halves(value: Any) -> Any:
    try:
        if is_array(value):
            return [_without_halves(item) for item in value]
        if is_object(value):
            return {_without_halves(key): _without_halves(item) for key, item in value.items()}
    except RecursionError:  # deeper than any JSON that is read
        return value
    return without_halves(value) if isinstance(value, str) else value


def compact(value: Any) -> str:
    """Write a value as compact JSON text. Keys keep their order; NaN becomes null.

    Example:
        >>> compact({"city": "Zürich", "days": [1, 2]})
        '{"city":"Zürich","days":[1,2]}'
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer over 64 bits, or half of a surrogate pair
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def cut(text: str, *, from_end: bool = False) -> str:
    """Cut text to a readable length for a message. Empty text becomes `(nothing)`.

    Example:
        >>> cut("x" * 500).endswith("… (500 characters)")
        True
    """
    if len(text) <= _LONGEST_SHOWN:
        return text or "(nothing)"
    part = f"…{text[-_LONGEST_SHOWN:]}" if from_end else f"{text[:_LONGEST_SHOWN]}…"
    return f"{part} ({len(text)} characters)"


def listed(items: Iterable[str], most: int, separator: str = "; ") -> str:
    """Join the first `most` items, and count the rest.

    Example:
        >>> listed(["a", "b", "c"], 2, ", ")
        'a, b, and 1 more'
    """
    every = list(items)
    rest = [f"and {len(every) - most} more"] if len(every) > most else []
    return separator.join([*every[:most], *rest])


def closest(word: str, known: Iterable[str], *, at_least: float = 0.6) -> str | None:
    """Return the known word most similar to a misspelt one; None if none is similar.

    Example:
        >>> closest("serach", ["search", "fetch"])
        'search'
        >>> closest("x", ["search", "fetch"])
    """
    import difflib  # noqa: PLC0415  (only errors need it, and it costs every import a millisecond)

    return next(iter(difflib.get_close_matches(word[:_LONGEST_WORD], known, n=1, cutoff=at_least)), None)


def json_like(value: Any) -> str:
    r"""Write any value as JSON-like text, even if it is not JSON or is nested too deep for an encoder.

    Of a `RepeatedKeys` it writes every pair. A value inside itself is written as `"..."` there.

    Example:
        >>> json_like({"a": [float("nan"), b"x"]})
        '{"a":[NaN,"b\'x\'"]}'
    """
    pieces: list[str] = []
    pending: list[Any] = [value]
    around: dict[int, None] = {}
    while pending:
        item = pending.pop()
        if type(item) is _Verbatim:
            pieces.append(item)
        elif type(item) is _Closing:
            pieces.append(item)
            around.popitem()
        elif id(item) in around:
            pieces.append('"..."')
        elif is_object(item):
            around[id(item)] = None
            pairs = item.pairs if isinstance(item, RepeatedKeys) else item.items()
            members = [(f"{_scalar(key)}:", child) for key, child in pairs]
            pending.extend(reversed(_enclose("{", members, "}")))
        elif is_array(item):
            around[id(item)] = None
            pending.extend(reversed(_enclose("[", [("", child) for child in item], "]")))
        else:
            pieces.append(_scalar(item))
    return "".join(pieces)


class _Verbatim(str):
    __slots__ = ()


class _Closing(str):
    __slots__ = ()


def _enclose(opening: str, members: "list[tuple[str, Any]]", closing: str) -> list[Any]:
    parts: list[Any] = [_Verbatim(opening)]
    for n, (label, child) in enumerate(members):
        parts += [_Verbatim(("," if n else "") + label), child]
    return [*parts, _Closing(closing)]


def _scalar(item: Any) -> str:
    if isinstance(item, int) and item.bit_length() > _MOST_BITS:
        return hex(item)
    if item is None or isinstance(item, (str, int, float)):
        return json.dumps(item, ensure_ascii=False)
    return json.dumps(repr(item), ensure_ascii=False)
