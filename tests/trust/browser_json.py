"""JSON as a browser reads and writes it, and values to try it with."""

import json
import re
from decimal import Decimal
from typing import Any, cast

from hypothesis import strategies as st


def number(value: float) -> str:
    """A number as JavaScript writes it."""
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:
        return re.sub(r"\.0+$", "", f"{Decimal(repr(value)):f}")
    digits, power = repr(value).split("e")
    return f"{digits}e{int(power):+d}"


def browser(text: str) -> str:
    """What JSON.stringify(JSON.parse(text)) gives."""

    def write(value: Any) -> str:
        if isinstance(value, dict):
            held = cast("dict[str, Any]", value)
            keys = sorted((key for key in held if re.fullmatch("0|[1-9][0-9]{0,8}", key)), key=int)
            keys += [key for key in held if key not in keys]
            return "{" + ",".join(f"{json.dumps(key)}:{write(held[key])}" for key in keys) + "}"
        if isinstance(value, list):
            return f"[{','.join(map(write, cast('list[Any]', value)))}]"
        return number(value) if type(value) is float else json.dumps(value, ensure_ascii=False)

    return write(json.loads(text, parse_int=float))


def places_in(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, but for the value itself."""
    members: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        members = [*cast("dict[str, Any]", value).items()]
    elif isinstance(value, list):
        members = [*enumerate(cast("list[Any]", value))]
    return [each for key, part in members for each in ((*place, key), *places_in(part, (*place, key)))]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3) | st.just("1"), inner, max_size=4)
    ),
    max_leaves=12,
)
