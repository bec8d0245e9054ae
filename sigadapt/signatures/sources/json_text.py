"""JSON text as a source of tools: a dict, or a list of dicts, in any shape that `wire_shapes.py` reads."""

from typing import Any, TypeGuard

import jiter

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.arguments import shown


def is_json_text(source: object) -> TypeGuard[str]:
    """Whether a value is text that can only be a JSON object or array.

    Example:
        >>> is_json_text(' [{"name": "f"}]'), is_json_text("search")
        (True, False)
    """
    return isinstance(source, str) and source.lstrip()[:1] in ("{", "[")


def decoded(text: str) -> Any:
    """The value that JSON text stands for.

    Raises:
        InvalidToolDecl: `invalid_json`, also for a key that is given twice.

    Example:
        >>> decoded('{"name": "f", "name": "g"}')
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: the text is no JSON (Detected duplicate key "name" at line 1 column \
22): {"name": "f", "name": "g"}.
    """
    try:
        return jiter.from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise InvalidToolDecl(f"the text is no JSON ({error}): {shown(text)}", code="invalid_json") from error
