"""Texts with half of a surrogate pair, which models send and JSON in UTF-8 cannot hold, saved all the same.

| value | saved |
|---|---|
| a text with half a pair | `{"$half-pairs": <the text as JSON with escapes>}` |
| an object with such keys | `{"$half-pair-keys": <the keys likewise>, "values": [...]}` |

Every other value is saved as it is. What looks like these and holds no half of a pair was not made here, and
stays.
"""

import json
from typing import Any, TypeGuard, cast

import orjson

from sigadapt.schemas.json_values import is_unicode

_TEXT, _KEYS = "$half-pairs", "$half-pair-keys"


def savable(value: Any) -> Any:
    r"""Return the value with half pairs written so that any JSON encoder takes them.

    Example:
        >>> savable({"text": "Hi.\ud83d"})
        {'text': {'$half-pairs': '"Hi.\\ud83d"'}}
        >>> restored(savable({"a\ud83d": ["b"]})) == {"a\ud83d": ["b"]}
        True
    """
    try:
        orjson.dumps(value)
    except TypeError:  # also for what is no JSON, which is left to whoever saves it
        return _saved(value)
    return value


def _saved(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_unicode(value) else {_TEXT: json.dumps(value)}
    if type(value) in (list, tuple):
        return type(value)(map(_saved, value))
    if type(value) is not dict:
        return value
    known = cast("dict[Any, Any]", value)
    if all(not isinstance(key, str) or is_unicode(key) for key in known):
        return {key: _saved(member) for key, member in known.items()}
    return {_KEYS: json.dumps(list(known)), "values": [_saved(member) for member in known.values()]}


def restored(value: Any) -> Any:
    """Return a value as it was before `savable`; the same object where that changed nothing."""
    try:
        return _restored(value)
    except RecursionError:  # deeper than anything saved; who reads it says so
        return value


def _restored(value: Any) -> Any:
    if type(value) in (list, tuple):
        items = [_restored(item) for item in value]
        return value if all(map(_is, items, value)) else type(value)(items)
    if type(value) is not dict:
        return value
    known = cast("dict[Any, Any]", value)
    text = _decoded(known.get(_TEXT)) if len(known) == 1 else None
    if isinstance(text, str) and not is_unicode(text):
        return text
    keys = _decoded(known[_KEYS]) if known.keys() == {_KEYS, "values"} else None
    if _are_keys(keys) and isinstance(known["values"], list):
        values = _restored(known["values"])
        return dict(zip(keys, values, strict=True)) if len(keys) == len(values) else known
    members = [_restored(member) for member in known.values()]
    return known if all(map(_is, members, known.values())) else dict(zip(known, members, strict=True))


def _is(one: Any, other: Any) -> bool:
    return one is other


def _are_keys(keys: Any) -> "TypeGuard[list[str]]":
    if not isinstance(keys, list):
        return False
    texts = cast("list[Any]", keys)
    return all(isinstance(key, str) for key in texts) and not all(map(is_unicode, texts))


def _decoded(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
