"""Which Python values are JSON (`fault_in`), how to write them, and how to read a key that stands twice.

`compact` writes a value for a request. `json_like`, `cut`, `listed`, `pointer` and `closest` write parts of
error messages. Where `decode` reads JSON that a model wrote, an object with a repeated key becomes a
`RepeatedKeys`, and so does each object around it: decoders keep the last value, and a call would run with
arguments that look like good ones (nothing silent). `check_decoded` refuses it as arguments.
"""

import json
import math
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import orjson

from sigadapt.errors import InvalidOption

Json: TypeAlias = dict[str, Any]
"""A JSON object."""
Keys: TypeAlias = tuple[Any, ...]
"""The keys and indices that lead to a place in a value."""

ARGUMENT_LEVELS = 200
"""How many objects and arrays may be around a value in a call's arguments. It is the limit of jiter."""
SCHEMA_LEVELS = 100
"""How many objects and arrays may be around a value in a schema."""

_LONGEST_SHOWN = 120
_LONGEST_WORD = 200
_LONGEST_POINTER = 500
_MOST_BITS = 14_000  # of an integer: Python writes at most 4,300 digits


class RepeatedKeys(dict[str, Any]):
    """A JSON object with a key twice, or around such an object. Of a repeated key it has the last value."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def object_of(pairs: list[tuple[str, Any]]) -> Json:
    """Return the object that pairs make: a `RepeatedKeys` if a key occurs twice in it or in a value."""
    members = dict(pairs)
    if len(members) < len(pairs):
        return RepeatedKeys(pairs)
    pending = list(members.values())
    while pending:
        value = pending.pop()
        if isinstance(value, RepeatedKeys):
            return RepeatedKeys(pairs)
        if is_array(value):
            pending.extend(value)
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=object_of)


def decode(text: str) -> Any:
    """Decode a text that is one JSON value, with white space around it; ValueError if it is none."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def is_object(value: object) -> TypeGuard[Json]:
    """Say whether a decoded JSON value is an object."""
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


def equal_json(left: Any, right: Any) -> bool:
    """Say whether two values are the same JSON: 1 is 1.0 and key order is free, but 1 is not true."""
    pending = [(left, right)]
    while pending:
        first, second = pending.pop()
        if is_object(first) and is_object(second):
            if first.keys() != second.keys():
                return False
            pending += [(value, second[key]) for key, value in first.items()]
        elif is_sequence(first) and is_sequence(second):
            if len(first) != len(second):
                return False
            pending += zip(first, second, strict=True)
        elif first != second or isinstance(first, bool) != isinstance(second, bool):
            return False
    return True


def pointer(keys: Iterable[object]) -> str:
    """Write keys as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def short_pointer(keys: Iterable[object]) -> str:
    """Write keys as a JSON Pointer; if it is too long to read, that of the innermost readable part."""
    path = pointer(keys)
    while len(path) > _LONGEST_POINTER:
        path = path.rpartition("/")[0]
    return path


class Fault(NamedTuple):
    """Why a Python value is not a JSON value: the reason, and the JSON Pointer of the place."""

    reason: str
    path: str


def fault_in(value: object, *, levels: int, most: int | None = None) -> Fault | None:
    """Find where a value is no JSON, has more levels around it than `levels`, or exceeds `most` values."""
    pending: list[tuple[Any, Keys]] = [(value, ())]
    count = 1
    while pending:
        item, path = pending.pop()
        reason = _fault_of(item)
        members: Iterable[tuple[Any, Any]] = ()
        if is_object(item) or is_array(item):
            if item and len(path) >= levels:  # an empty one is a value like a number
                reason = f"nested deeper than {levels} levels"
            members = item.items() if is_object(item) else enumerate(item)
            count += len(item)
        if reason is None and most is not None and count > most:
            reason = f"more than {most} values"
        if reason is not None:
            return Fault(reason, pointer(path))
        for key, member in members:  # the most frequent values have no fault
            if member is None or member is True or (type(member) is str and member.isascii()):
                continue
            pending.append((member, (*path, key)))
    return None


def _fault_of(item: Any) -> str | None:
    """Return why a value is no JSON by itself, or by its keys."""
    if item is None or is_array(item):
        return None
    if is_object(item):
        return _fault_of_keys([*item])
    if isinstance(item, str):
        return None if is_unicode(item) else "half of a surrogate pair"
    if isinstance(item, float):
        return None if math.isfinite(item) else f"{item} is not a JSON number"
    if isinstance(item, int):
        return "an integer of more than 4,300 digits" if is_large_integer(item) else None
    return f"a Python {type(item).__name__} is not a JSON value"


def is_large_integer(value: object) -> TypeGuard[int]:
    """Say whether a value is an integer of more digits than Python writes as text or reads from it."""
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def _fault_of_keys(keys: list[object]) -> str | None:
    for key in keys:
        if not isinstance(key, str):
            return f"the key {cut(repr(key))} is not a string"
        if not is_unicode(key):
            return "a key with half of a surrogate pair"
    return None


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON and UTF-8 cannot hold."""
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
    with suppress(TypeError):  # for halves, and for what is no JSON
        orjson.dumps(value)
        return value
    with suppress(RecursionError):  # deeper than any JSON that is read
        if is_array(value):
            return [without_halves(item) for item in value]
        if is_object(value):
            return {without_halves(key): without_halves(item) for key, item in value.items()}
    return value


def compact(value: Any) -> str:
    """Write a value as compact JSON text. Keys keep their order; NaN becomes null."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer over 64 bits, or half of a surrogate pair
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def short_hash(text: str) -> str:
    """Return 22 letters and digits of a text's SHA-256: every provider takes them in an id."""
    return b64encode(sha256(text.encode("utf-8", "surrogatepass")).digest(), altchars=b"az")[:22].decode()


def cut(text: str, *, from_end: bool = False) -> str:
    """Cut text to a readable length for a message. Empty text becomes `(nothing)`."""
    if len(text) <= _LONGEST_SHOWN:
        return text or "(nothing)"
    excerpt = f"…{text[-_LONGEST_SHOWN:]}" if from_end else f"{text[:_LONGEST_SHOWN]}…"
    return f"{excerpt} ({len(text)} characters)"


def listed(items: Iterable[str], most: int, separator: str = "; ") -> str:
    """Join the first `most` items, and count the others: `a, b, and 1 more`."""
    texts = list(items)
    if len(texts) > most:
        texts[most:] = [f"and {len(texts) - most} more"]
    return separator.join(texts)


def type_of(value: object) -> str:
    """Return the type of a value with its article, as a message names it: `an int`, `a list`, `None`."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def closest(word: str, words: Iterable[str], *, at_least: float = 0.6) -> str | None:
    """Return the known word most similar to a misspelt one; None if none is similar."""
    import difflib  # only errors need it, and it costs every import a millisecond

    matches = difflib.get_close_matches(word[:_LONGEST_WORD], words, n=1, cutoff=at_least)
    return matches[0] if matches else None


def json_like(value: Any) -> str:
    """Write any value as JSON-like text: every pair of a `RepeatedKeys`, and `"..."` for one in itself."""
    # Without recursion, because a value may be nested too deep for it. By `id`, the objects and arrays that
    # are open: their members that are still to be written, each after its comma and key, and their end.
    pieces: list[str] = []
    open_containers: dict[int, tuple[Iterator[tuple[str, Any]], str]] = {0: (iter([("", value)]), "")}
    while open_containers:
        members, closing = next(reversed(open_containers.values()))
        member = next(members, None)
        if member is None:
            pieces.append(closing)
            open_containers.popitem()
            continue
        prefix, item = member
        pieces.append(prefix)
        if id(item) in open_containers:
            pieces.append('"..."')
        elif is_object(item):
            pieces.append("{")
            pairs = item.pairs if isinstance(item, RepeatedKeys) else item.items()
            to_write = ((f"{',' * (n > 0)}{_scalar(key)}:", child) for n, (key, child) in enumerate(pairs))
            open_containers[id(item)] = to_write, "}"
        elif is_array(item):
            pieces.append("[")
            items = (("," * (n > 0), child) for n, child in enumerate(item))
            open_containers[id(item)] = items, "]"
        else:
            pieces.append(_scalar(item))
    return "".join(pieces)


def _scalar(item: Any) -> str:
    if is_large_integer(item):
        return hex(item)
    if item is None or isinstance(item, (str, int, float)):
        return json.dumps(item, ensure_ascii=False)
    return json.dumps(repr(item), ensure_ascii=False)


def refuse_unknown(function: str, names: Iterable[str], options: Sequence[str]) -> None:
    """Refuse the first name that is no option of a function or class."""
    for name in names:
        if name in options:
            continue
        near = closest(name, options)
        fix = f"Did you mean {near!r}?" if near else f"It takes {', '.join(options)}."
        raise InvalidOption(f"{function} has no such option", field=name, fix=fix)
