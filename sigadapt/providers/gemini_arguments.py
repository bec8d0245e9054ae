"""Build the arguments object of a Gemini call from `partialArgs`, which stream it leaf by leaf.

Source: Google's API types (FunctionCall.partialArgs, PartialArg). Each entry names a leaf by a JSON path (RFC
9535, `$.foo.bar[0].data`) and holds a string, number, boolean or null; a string may come in several entries.
"""

import re
from collections.abc import Sequence
from typing import Any, cast

from sigadapt.providers.provider import JsonText
from sigadapt.schemas.json_values import Json, RepeatedKeys, spelled

_STEP = re.compile(
    r"""\.([^.\[\]]+)            # .name
      | \[(\d{1,9})\]            # [0]
      | \['((?:[^'\\]|\\.)*)'\]  # ['name']
      | \["((?:[^"\\]|\\.)*)"\]  # ["name"]
    """,
    re.VERBOSE,
)


def whole_arguments(partials: Sequence[Json]) -> Any:
    """Return the arguments object that streamed leaves make.

    Example:
        >>> whole_arguments(
        ...     [
        ...         {"jsonPath": "$.city", "stringValue": "Par", "willContinue": True},
        ...         {"jsonPath": "$.city", "stringValue": "is"},
        ...         {"jsonPath": "$.days[0]", "numberValue": 3},
        ...     ]
        ... )
        {'city': 'Paris', 'days': [3]}
    """
    leaves: dict[str, Any] = {}
    if any(type(partial) is RepeatedKeys for partial in partials):
        return JsonText(spelled(list(partials)))
    for partial in partials:
        path, text = partial.get("jsonPath"), partial.get("stringValue")
        if not isinstance(path, str):
            return list(partials)
        if isinstance(text, str) and isinstance(leaves.get(path, []), list):
            leaves.setdefault(path, []).append(text)
        elif path in leaves:
            return list(partials)
        else:
            leaves[path] = _scalar(partial)
    root: Json = {}
    for path, leaf in leaves.items():
        steps = _steps(path)
        value = "".join(cast("list[str]", leaf)) if isinstance(leaf, list) else leaf
        if not steps or not _placed(root, steps, value):
            return list(partials)
    return root


def _scalar(partial: Json) -> Any:
    for key in ("numberValue", "boolValue"):
        if partial.get(key) is not None:
            return partial[key]
    return None


def _steps(path: str) -> list[str | int]:
    """Return the steps of a JSON path; an empty list if it is not a path to a member."""
    steps: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return []
        name, index, single, double = match.groups()
        quoted = single if single is not None else double
        steps.append(int(index) if index else name if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        at = match.end()
    return steps


def _placed(root: Any, steps: list[str | int], value: Any) -> bool:
    """Put a value at its place and create what is missing on the way; return whether the place was free."""
    at = root
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        made: Any = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(at, dict) and isinstance(step, str):
            members = cast("Json", at)
            is_free = step not in members
            at = members.setdefault(step, made)
        elif isinstance(at, list) and isinstance(step, int) and step <= len(cast("list[Any]", at)):
            items = cast("list[Any]", at)
            is_free = step == len(items)
            items += [made] if is_free else []
            at = items[step]
        else:
            return False
        if following is None and not is_free:
            return False
    return True
