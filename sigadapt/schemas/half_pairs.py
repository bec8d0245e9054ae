r"""Texts with half of a surrogate pair, which models send and JSON in UTF-8 cannot hold, saved all the same.

| value | saved |
|---|---|
| a text with half a pair | `{"$code-points": [...]}` |
| an object with such keys | `{"$keys": [<each key's code points>], "values": [...]}` |

Every other value is saved as it is. What looks like these and holds no half of a pair was not made here, and
stays. JSON's own escapes would not do: two halves in a row would be read as one character.
"""

from operator import is_
from typing import Any, cast

import orjson

from sigadapt.schemas.json_values import is_unicode

_TEXT, _KEYS, _VALUES = "$code-points", "$keys", "values"


def savable(value: Any) -> Any:
    """Return the value with half pairs written so that any JSON encoder takes them."""
    try:
        orjson.dumps(value)
    except TypeError:  # also for what is no JSON, which is left to whoever saves it
        return _saved(value)
    return value


def _saved(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_unicode(value) else {_TEXT: [*map(ord, value)]}
    if type(value) in (list, tuple):
        return type(value)(map(_saved, value))
    if type(value) is not dict:
        return value
    known = cast("dict[Any, Any]", value)
    if not all(isinstance(key, str) for key in known) or all(map(is_unicode, known)):
        return {key: _saved(member) for key, member in known.items()}
    return {_KEYS: [[*map(ord, key)] for key in known], _VALUES: [*map(_saved, known.values())]}


def restored(value: Any) -> Any:
    """Return a value as it was before `savable`; the same object where that changed nothing."""
    try:
        return _restored(value)
    except RecursionError:  # deeper than anything saved; who reads it says so
        return value


def _restored(value: Any) -> Any:
    if type(value) in (list, tuple):
        items = [_restored(item) for item in value]
        return value if all(map(is_, items, value)) else type(value)(items)
    if type(value) is not dict:
        return value
    known = cast("dict[Any, Any]", value)
    if known.keys() == {_TEXT}:
        text = _text(known[_TEXT])
        return known if text is None or is_unicode(text) else text
    if known.keys() == {_KEYS, _VALUES} and (keys := _keys(known[_KEYS], known[_VALUES])):
        return dict(zip(keys, map(_restored, known[_VALUES]), strict=True))
    members = [_restored(member) for member in known.values()]
    return known if all(map(is_, members, known.values())) else dict(zip(known, members, strict=True))


def _keys(points: Any, values: Any) -> list[str] | None:
    """The keys that were written as code points; None where these were not."""
    if not isinstance(points, list) or not isinstance(values, list):
        return None
    keys = [key for each in cast("list[Any]", points) if (key := _text(each)) is not None]
    lengths = {len(cast("list[Any]", points)), len(cast("list[Any]", values)), len(keys)}
    return None if len(lengths) > 1 or all(map(is_unicode, keys)) else keys


def _text(points: Any) -> str | None:
    try:
        return "".join(map(chr, cast("list[int]", points))) if isinstance(points, list) else None
    except (TypeError, ValueError, OverflowError):  # no code points
        return None
