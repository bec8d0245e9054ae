"""The places in a JSON value, and a value put there: for tests that alter what was sent or saved."""

from collections.abc import Iterator
from typing import Any

from support import is_array, is_object

Place = tuple[Any, ...]


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    """The paths to all members of a value, however deep."""
    members: Any = value.items() if is_object(value) else enumerate(value) if is_array(value) else ()
    for key, member in members:
        yield (*above, key)
        yield from places(member, (*above, key))


def put(value: Any, place: Place, member: Any) -> None:
    """Put a member there, in the place of what it had."""
    _holder(value, place)[place[-1]] = member


def take_out(value: Any, place: Place) -> None:
    del _holder(value, place)[place[-1]]


def _holder(value: Any, place: Place) -> Any:
    for key in place[:-1]:
        value = value[key]
    return value
