"""Keep the order of an object's keys beside the object, for storage that keeps JSON by value.

PostgreSQL's `jsonb` gives an object back with its keys in another order. A request written from it begins
with other bytes than the one before, and the provider's prompt cache misses. So the JSON text is saved too.
"""

from typing import Any

import jiter
import orjson

from sigadapt.schemas.json_values import equal_json


def order_of(value: Any) -> str | None:
    """Return the JSON text of a value that has keys; None for any other value, or one that is not JSON."""
    if value is None or isinstance(value, (str, int, float)):
        return None
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return None


def in_order_of(value: Any, text: object) -> Any:
    """Return a value with its keys in the order of a text of the same value; of any other text, unchanged."""
    # A value that somebody changed in storage is not what the text says any more, and the value counts.
    if not isinstance(text, str):
        return value
    try:
        ordered = jiter.from_json(text.encode())  # orjson reads an integer over 64 bits as a double
    except ValueError:
        return value
    return ordered if equal_json(value, ordered) else value
