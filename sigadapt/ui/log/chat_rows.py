"""Write an event of a chat as JSON that can be read again, whatever a program has put out."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pydantic
from pydantic_core import from_json, to_json

from sigadapt.schemas.json_values import is_large_integer, is_mapping, without_halves

_DEEPEST = 100
_COLLECTIONS = (Mapping, list, tuple, set, frozenset)


def text_of(row: Any) -> str:
    """Return an event as JSON. What JSON cannot hold or give back becomes a text in its place."""
    try:
        return _json_text(row)
    except ValueError:  # such as bytes, or what is nested deeper than JSON is read
        return _json_text(storable(row))


def _json_text(row: Any) -> str:
    data = to_json(row, fallback=str, inf_nan_mode="null")
    from_json(data)
    return data.decode()


def storable(value: Any, depth: int = 0) -> Any:
    """Return a value that JSON can hold and give back; models stay, with members that are."""
    if isinstance(value, pydantic.BaseModel):
        members = {name: storable(getattr(value, name), depth + 1) for name in type(value).model_fields}
        return value.model_copy(update=members)
    if isinstance(value, _COLLECTIONS):
        return _storable_members(value, depth)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if is_large_integer(value):
        return f"a number of {value.bit_length()} bits"
    return without_halves(value) if isinstance(value, str) else value


def _storable_members(collection: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return f"a {type(collection).__name__} that is nested too deep"
    if is_mapping(collection):
        return {storable(str(key)): storable(member, depth + 1) for key, member in collection.items()}
    members = [storable(member, depth + 1) for member in collection]
    return tuple(members) if isinstance(collection, tuple) else members
