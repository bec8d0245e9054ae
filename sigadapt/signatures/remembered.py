"""Lists of tools that were declared before, known by what they hold: for tools given anew with every call.

A program that writes `tools=[get_weather, {...}]` makes a new list each time. Declaring it again would cost
more than all else in a call. The rules:

 a. A list is known again only if each of its sources is known to be the same. Whatever cannot be told to be
    the same, cheaply and for certain, is declared anew.
 b. Dicts are known by their exact content: `marshal` keeps apart what JSON would not (1, 1.0, True, NaN).
    What is kept was made from a copy, so that nobody changes it from outside; who may change declarations
    (hooks, toolsets) is not given what is kept here.
 c. A function is known by itself, its name and its docstring, as `callables.py` knows it; a `dspy.Tool` by
    its function and by what was said of it, if its arguments are what DSPy derives. Only functions that
    their module holds are kept: others may hold on to what is one request's.
 d. At most `_MOST` lists are kept, of sources of at most `_LONGEST` bytes.
"""

import marshal
import sys
from collections.abc import Hashable, Sequence
from types import FunctionType
from typing import Any, cast

import dspy

from sigadapt.signatures.bounded import Bounded
from sigadapt.signatures.decls import ToolDecls
from sigadapt.signatures.sources import dspy_tools

_MOST = 64
_LONGEST = 65_536
_KNOWN = Bounded[tuple[Hashable, ...], ToolDecls](_MOST)


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
    keys: list[Hashable] = []
    for source in sources:
        key = _key_of(source)
        if key is None:
            return None
        keys.append(key)
    whole = tuple(keys)
    decls = _KNOWN.get(whole)
    if decls is None:
        own = [
            marshal.loads(key) if type(key) is bytes else source  # noqa: S302  (what was dumped above)
            for key, source in zip(keys, sources, strict=True)
        ]
        decls = ToolDecls(own)
        _KNOWN[whole] = decls
    return decls


def _key_of(source: Any) -> Hashable | None:
    kind = cast("type[Any]", type(source))
    if kind is dict:
        return _exact_bytes(source)
    if kind is FunctionType:
        return _function(source)
    if kind is dspy.Tool and type(source.func) is FunctionType and dspy_tools.is_derived(source):
        function, described = _function(source.func), _exact_bytes(source.arg_desc)
        if function is not None and described is not None:
            return (function, source.name, source.desc, described)
    return None


def _function(source: FunctionType) -> Hashable | None:
    module = sys.modules.get(source.__module__)
    documented = source.__doc__ is None or type(source.__doc__) is str  # anything can be put there
    if not documented or getattr(module, source.__name__, None) is not source:
        return None
    return (source, source.__name__, source.__doc__)


def _exact_bytes(value: Any) -> bytes | None:
    try:
        # With references (version 4), because parts that are shared many times over would fill the memory.
        content = marshal.dumps(value, 4)
    except ValueError:  # it holds more than plain data, or is too deep
        return None
    return content if len(content) <= _LONGEST else None
