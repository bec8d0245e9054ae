"""Lists of tools that were declared before, known by what they hold: for tools given anew with every call.

A program that writes `tools=[get_weather, {...}]` makes a new list each time. Declaring it again would cost
more than all else in a call. The rules:

 a. A list is known again only if each of its sources is the same in everything its declaration depends on.
    Whatever cannot be told to be the same, cheaply and for certain, is declared anew.
 b. Dicts are known by their content, exactly: `marshal` keeps apart what JSON would not (1, 1.0, True, NaN).
    What is kept was made from a copy, so that nobody changes it from outside.
 c. A function is known by itself, its name, docstring and defaults, and a `dspy.Tool` by its function and by
    what was said of it, if its arguments are what DSPy derives. A function that closes over variables, or has
    a default that is no plain data, is not kept: they may be one request's, and would be kept alive.
 d. At most `_MOST` lists are kept, of sources of at most `_LONGEST` bytes.
"""

import marshal
from collections.abc import Hashable, Sequence
from types import FunctionType
from typing import Any, cast

import dspy

from sigadapt.signatures.decls import ToolDecls
from sigadapt.signatures.sources import dspy_tools

_MOST = 64
_LONGEST = 65_536
_VERSION = 2  # of marshal's format; later ones depend on who else holds a value
_MADE: dict[tuple[Hashable, ...], ToolDecls] = {}


def remembered(sources: Sequence[Any]) -> ToolDecls | None:
    """The declarations of a list, made once; None for a list that cannot be known again.

    Args:
        sources: a list or tuple of sources.

    Raises:
        InvalidToolDecl: as ToolDecls, each time.

    Example:
        >>> remembered([{"name": "now"}]) is remembered([{"name": "now"}])
        True
        >>> remembered([object()]) is None
        True
    """
    tokens: list[Hashable] = []
    for source in sources:
        token = _token(source)
        if token is None:
            return None
        tokens.append(token)
    key = tuple(tokens)
    decls = _MADE.get(key)
    if decls is None:
        own = [
            marshal.loads(token) if type(token) is bytes else source  # noqa: S302  (what was dumped above)
            for token, source in zip(tokens, sources, strict=True)
        ]
        decls = ToolDecls(own)
        if len(_MADE) >= _MOST:
            _MADE.clear()
        _MADE[key] = decls
    return decls


def _token(source: Any) -> Hashable | None:
    kind = cast("type[Any]", type(source))
    if kind is dict:
        return _content(source)
    if kind is FunctionType:
        return _function(source)
    if kind is dspy.Tool and type(source.func) is FunctionType and dspy_tools.is_derived(source):
        function, described = _function(source.func), _content(source.arg_desc)
        if function is not None and described is not None:
            return (function, source.name, source.desc, described)
    return None


def _function(source: FunctionType) -> Hashable | None:
    defaults = _content((source.__defaults__, source.__kwdefaults__))
    if source.__closure__ or defaults is None:
        return None
    return (source, source.__name__, source.__doc__, defaults)


def _content(value: Any) -> bytes | None:
    try:
        content = marshal.dumps(value, _VERSION)
    except ValueError:  # it holds more than plain data, or is too deep
        return None
    return content if len(content) <= _LONGEST else None
