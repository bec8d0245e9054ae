"""Read JSON in a text that a model wrote, without losing that an object has a key twice.

JSON decoders keep the last value of a repeated key and drop the others, so a call would run with arguments
that look like good ones (nothing silent). Here an object with a repeated key becomes a `RepeatedKeys`, and so
does each object around it: a dict like any other, with the last values, that also has all pairs.
`check_decoded` refuses it as arguments.
"""

import json
from typing import Any

from sigadapt.schemas.json_values import Json, RepeatedKeys, is_array


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
    """Decode a text that is one JSON value, with white space around it.

    Raises:
        ValueError: for text that is not JSON, or that is nested too deep.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
