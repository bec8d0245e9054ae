"""Fewer tools for the model to read: those that a search finds for a request, or that a model asks for.

What is found for a request keeps the order of its declaration, so that the same tools are the same bytes to a
provider's cache. Tools that the conversation has called stay, because their calls are sent again, and a model
may call them again. So do tools that a provider runs itself.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias

import pydantic

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import closest, cut, is_iterable, is_mapping, is_object, is_sequence
from sigadapt.signatures.provider_tools import NativeTool
from sigadapt.signatures.tool_decl import ToolDecl, ToolSearch, deferred
from sigadapt.signatures.tool_decls import ToolDecls

Entries: TypeAlias = list[ToolDecl | NativeTool]
_LISTS = ("rounds", "messages", "tool_calls", "invalid")


class Retrieval(NamedTuple):
    """A change of a toolset to the tools that a search finds, and those that always stay.

    Called, it returns what the search returns, which may have to be awaited; `tools_of` gives the tools.
    """

    search: Callable[[Any, ToolDecls], object]

    def __call__(self, context: Any, decls: ToolDecls) -> object:
        """Return what the search returns."""
        return self.search(context, decls)

    def tools_of(self, context: Any, decls: ToolDecls, answer: object) -> Entries:
        """Return the tools that were found, and those that stay."""
        names = {*called_in(context.inputs), *known_names(answer, decls)}
        return [entry for entry in decls.entries if not isinstance(entry, ToolDecl) or entry.name in names]


class Deferral:
    """A change of a toolset: all tools but the `loaded` ones are deferred until a search finds them."""

    def __init__(self, names: AbstractSet[str], search: ToolSearch) -> None:
        self._names = names
        self._search = search
        self._last: tuple[list[Any], ToolDecls] | None = None

    def __call__(self, _: Any, decls: ToolDecls) -> ToolDecls:
        """Return the tools; those of the last time for the same ones, which have their index already."""
        for name in sorted(self._names):
            known_tool(name, decls)
        identities = [
            getattr(entry, "text", entry) for entry in decls.entries
        ]  # one text is of one declaration
        if self._last is None or self._last[0] != identities:
            entries: Entries = []
            for entry in decls.entries:
                if isinstance(entry, ToolDecl) and entry.name not in self._names:
                    entries.append(deferred(entry, self._search))
                else:
                    entries.append(entry)
            self._last = identities, ToolDecls(entries)
        return self._last[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return Deferral, (self._names, self._search)


def known_names(answer: object, decls: ToolDecls) -> list[str]:
    """Return the names of tools that a search returned, or raise the error that says what it returned."""
    names: list[Any] = [answer]
    # A text is iterable too, and its letters would be looked up as names.
    if is_iterable(answer) and not isinstance(answer, (str, bytes)) and not is_mapping(answer):
        names = [*answer]
    for name in names:
        if not isinstance(name, str) or name is answer:
            raise InvalidToolDecl(
                f"expected names of tools from the search, got {cut(repr(name))}",
                code="invalid_search",
                fix="Return the names of tools: [decl.name for ...].",
            )
        known_tool(name, decls)
    return list(dict.fromkeys(names))


def known_tool(name: str, decls: ToolDecls) -> ToolDecl:
    """Return the tool of a name."""
    if name in decls:
        return decls[name]
    names = [decl.name for decl in decls]
    near = closest(name, names)
    fix = f"Did you mean {near!r}?" if near else f"Known tools: {cut(', '.join(map(repr, names)) or 'none')}."
    raise InvalidToolDecl("there is no tool with this name", code="unknown_tool", tool=name, fix=fix)


def called_in(value: Any, *, are_calls: bool = False) -> Iterator[str]:
    """Yield the names of the tools that the earlier turns in a value called, also if it is saved as JSON."""
    if isinstance(value, pydantic.BaseModel):
        value = vars(value)
    if is_sequence(value):
        for item in value:
            yield from called_in(item, are_calls=are_calls)
    elif is_mapping(value) and are_calls:
        function = value.get("function")  # in a message of OpenAI's
        name = value.get("name") or (function.get("name") if is_object(function) else None)
        if name:
            yield str(name)
    elif is_mapping(value):
        for key, item in value.items():
            if key in _LISTS or not is_sequence(item):  # other lists may be long, and hold no turns
                # An agent has a field of this name, whose value has the list.
                are_calls = key in ("tool_calls", "invalid") and is_sequence(item)
                yield from called_in(item, are_calls=are_calls)
