"""Refuse a keyword argument that a function does not have, and suggest the one that it resembles."""

from collections.abc import Iterable, Sequence

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import closest


def refuse_unknown(function: str, names: Iterable[str], options: Sequence[str]) -> None:
    """Refuse the first name that is no option of a function or class."""
    for name in names:
        if name in options:
            continue
        near = closest(name, options)
        fix = f"Did you mean {near!r}?" if near else f"It takes {', '.join(options)}."
        raise InvalidOption(f"{function} has no such option", field=name, fix=fix)
