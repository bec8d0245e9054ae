"""Fewer tools for the model to read: those that a search finds for a request, and the rest deferred.

What is found keeps the order of its declaration, so that the same tools are the same bytes to a provider's
cache. Tools that the conversation has called stay, because their calls are sent again, and a model may call
them again. So do tools that a provider runs itself.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias

import dspy

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, closest, cut, is_iterable, is_mapping, is_object, is_sequence
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.native_tools import NativeTool
from sigadapt.signatures.tool_decl import ToolDecl, with_extras
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import ToolResults

Entries: TypeAlias = list[ToolDecl | NativeTool]
_SEARCH = "tool_search"


class Retrieved(NamedTuple):
    """A change of a toolset to the tools that a search finds, and those that always stay.

    Called, it returns what the search returns, which may have to be awaited; `kept` makes the tools of that.
    """

    search: Callable[[Any, ToolDecls], object]

    def __call__(self, context: Any, decls: ToolDecls) -> object:
        """Return what the search returns."""
        return self.search(context, decls)

    def kept(self, context: Any, decls: ToolDecls, found: Any) -> Entries:
        """Return the tools that were found, and those that stay."""
        names = set(called_in(context.inputs))
        several = is_iterable(found) and not isinstance(found, (str, bytes, Mapping))
        for name in found if several else [found]:
            if not several or not isinstance(name, str):
                raise InvalidToolDecl(
                    f"expected names of tools from the search, got {cut(repr(name))}",
                    code="invalid_search",
                    fix="Return the names of tools: [decl.name for ...].",
                )
            names.add(known_tool(name, decls).name)
        return [entry for entry in decls.entries if not isinstance(entry, ToolDecl) or entry.name in names]


def deferred(loaded: AbstractSet[str], _: Any, decls: ToolDecls) -> Entries:
    """Return the tools with all but the `loaded` ones deferred, and a search for them if there is none."""
    for name in sorted(loaded):
        known_tool(name, decls)
    entries: Entries = [
        with_extras(entry, defer_loading=True)
        if isinstance(entry, ToolDecl) and entry.name not in loaded
        else entry
        for entry in decls.entries
    ]
    searches = (e for e in entries if isinstance(e, NativeTool) and e.kind.startswith(_SEARCH))
    return entries if next(searches, None) else [NativeTool({"type": _SEARCH}), *entries]


def known_tool(name: str, decls: ToolDecls) -> ToolDecl:
    """Return the tool of a name."""
    if name in decls:
        return decls[name]
    known = [decl.name for decl in decls]
    near = closest(name, known)
    fix = f"Did you mean {near!r}?" if near else f"Known tools: {cut(', '.join(map(repr, known)) or 'none')}."
    raise InvalidToolDecl("there is no tool with this name", code="unknown_tool", tool=name, fix=fix)


def called_in(inputs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that the earlier turns among a signature's inputs called."""
    for value in inputs.values():
        if isinstance(value, ToolResults):
            for turn in value.rounds:
                yield from called_in({"calls": turn.calls})
        elif isinstance(value, ToolCalls):
            yield from (call.name for call in value.in_order() if call.name)
        elif isinstance(value, dspy.ToolCalls):
            yield from (call.name for call in value.tool_calls)
        elif isinstance(value, dspy.History):
            yield from called_in({"messages": {"messages": value.messages}})
        elif is_mapping(value):  # what was saved as JSON, or a message of OpenAI's
            for turn in _objects(value.get("rounds")):
                yield from called_in({"calls": turn.get("calls")})
            for event in _objects(value.get("messages")):
                yield from called_in(event)
            for call in (*_objects(value.get("tool_calls")), *_objects(value.get("invalid"))):
                function = call.get("function")
                yield str(call.get("name") or (function.get("name") if is_object(function) else None))


def _objects(value: object) -> Iterator[Json]:
    return filter(is_object, value if is_sequence(value) else ())
