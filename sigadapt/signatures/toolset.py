"""Toolset: a named source of tools that is asked once a request, before it leaves (rule 4).

A toolset is a value: `filtered`, `prefixed` and the others give a new one, which makes one more change
(`toolsets/`) to the tools of the old. Giving tools is a generator of `Waiting`s, pure but for what its
source does, so that only `resolve` and `aresolve` know whether anybody waits.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, isawaitable, signature
from itertools import groupby
from typing import Any, TypeAlias, TypeVar, cast

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.decls import ToolDecl, ToolDecls, is_iterable
from sigadapt.signatures.sources import is_function, is_source
from sigadapt.signatures.toolsets import mcp_listing
from sigadapt.signatures.toolsets.change import Change
from sigadapt.signatures.toolsets.combined import Origin, combined
from sigadapt.signatures.toolsets.context import RequestContext
from sigadapt.signatures.toolsets.filtered import filtered
from sigadapt.signatures.toolsets.picked import picked
from sigadapt.signatures.toolsets.prefixed import prefixed
from sigadapt.signatures.toolsets.renamed import renamed
from sigadapt.signatures.toolsets.waiting import Waiting, named

_T = TypeVar("_T")
Steps: TypeAlias = Generator[Waiting, Any, _T]

_OUTSIDE = RequestContext()
_MOST_NESTED = 16  # as ToolDecls, which refuses what is deeper
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True, eq=False)
class Toolset:
    """Tools under one name, decided when a request is made.

    Args:
        name: for errors, which name it.
        source: anything ToolDecls takes; other toolsets; a live MCP session or server; or a function of the
            request, sync or async, whose only required parameter is called `context` and gets a
            RequestContext. A function that is itself the tool stands in a list: `Toolset("time", [now])`.
        changes: what is done to the tools, in order; the methods add to it.

    Raises:
        InvalidToolDecl: `invalid_toolset`, for a name or a source that is none.

    Example:
        >>> def tools(context):
        ...     yield {"name": "read"}
        ...     if context.inputs.get("admin"):
        ...         yield {"name": "write"}
        >>> files = Toolset("files", tools).prefixed("fs_")
        >>> [decl.name for decl in files.resolve(RequestContext(inputs={"admin": True}))]
        ['fs_read', 'fs_write']
    """

    name: str
    source: object
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not self.name.strip():
            raise InvalidToolDecl(f"{self.name!r} is no name for a toolset", code="invalid_toolset")
        if is_function(self.source):
            _check_takes_context(self.name, cast("Callable[..., Any]", self.source))
        if isinstance(self.source, Iterator):  # it would be used up by the first request
            object.__setattr__(self, "source", tuple(cast("Iterator[object]", self.source)))

    def filtered(self, predicate: Callable[[RequestContext, ToolDecl], bool]) -> "Toolset":
        """Only the tools for which `predicate(context, decl)` is true."""
        return self._changed(filtered(predicate))

    def named(self, *names: str) -> "Toolset":
        """Only the tools of these names, in this order; a name that is not there is an error."""
        return self._changed(picked(names))

    def prefixed(self, prefix: str) -> "Toolset":
        """Every name with a prefix, which is put before it as it is: `"fs_"`."""
        return self._changed(prefixed(prefix))

    def renamed(self, names: Mapping[str, str]) -> "Toolset":
        """Some tools under new names, by their old ones; an old name that is not there is an error."""
        return self._changed(renamed(dict(names)))

    def prepared(self, function: Change) -> "Toolset":
        """The tools that `function(context, decls)` makes of these; it may be async."""
        return self._changed(function)

    def combined(self, *others: "Toolset", name: str | None = None) -> "Toolset":
        """These tools and those of other toolsets, in order; a tool of two of them is an error."""
        members = (self, *others)
        return Toolset(name or "+".join(member.name for member in members), members)

    def _changed(self, change: Change) -> "Toolset":
        return replace(self, changes=(*self.changes, change))

    def resolve(self, context: RequestContext = _OUTSIDE) -> ToolDecls:
        """The tools for a request.

        Raises:
            InvalidToolDecl: naming the toolset; `async_toolset` if it has to be awaited.
        """
        return resolve(self, context)

    async def aresolve(self, context: RequestContext = _OUTSIDE) -> ToolDecls:
        """The tools for a request, awaited.

        Raises:
            InvalidToolDecl: naming the toolset.
        """
        return await aresolve(self, context)

    def steps(self, context: RequestContext) -> Steps[ToolDecls]:
        """The tools for a request, as a generator of what is to be awaited."""
        source = self._begun(lambda: _begin(self.source, context))
        decls = yield from self._settled(source, context)
        for change in self.changes:
            changed = self._begun(lambda change=change, decls=decls: change(context, decls))
            decls = yield from self._settled(changed, context)
        return decls

    def _begun(self, begin: Callable[[], object]) -> object:
        try:
            return begin()
        except Exception as error:
            raise named(error, self.name) from error

    def _settled(self, sources: object, context: RequestContext) -> Steps[ToolDecls]:
        if isawaitable(sources):
            sources = yield Waiting(self.name, sources)
        try:
            return (yield from resolving(sources, context))
        except Exception as error:
            raise named(error, self.name) from error

    def __repr__(self) -> str:
        return f"Toolset({self.name!r})"


def resolve(value: object, context: RequestContext = _OUTSIDE) -> ToolDecls:
    """What a ToolDecls field was given, as declarations: toolsets in it give their tools for this request.

    Args:
        value: a toolset, or anything ToolDecls takes, with toolsets anywhere in its lists.
        context: the request.

    Raises:
        InvalidToolDecl: as ToolDecls; naming the toolset where one is concerned; `async_toolset` where one
            has to be awaited.

    Example:
        >>> clock = Toolset("clock", [{"name": "now"}])
        >>> [decl.name for decl in resolve([clock, {"name": "search"}])]
        ['now', 'search']
    """
    try:
        waiting = next(steps := resolving(value, context))
    except StopIteration as done:
        return done.value
    steps.close()
    raise waiting.refused()


async def aresolve(value: object, context: RequestContext = _OUTSIDE) -> ToolDecls:
    """The same, awaiting what toolsets wait for."""
    steps = resolving(value, context)
    outcome = None
    while True:
        try:
            waiting = steps.send(outcome)
        except StopIteration as done:
            return done.value
        outcome = await waiting.outcome()


def resolving(value: object, context: RequestContext) -> Steps[ToolDecls]:
    """The same as a generator, for a caller that has steps of its own: yields what is to be awaited."""
    if isinstance(value, Toolset):
        return (yield from value.steps(context))
    if type(value) is ToolDecls:
        return value
    origins: list[Origin] = []
    for is_toolset, items in groupby(_flat(value), lambda item: isinstance(item, Toolset)):
        if not is_toolset:
            origins.append(Origin(None, ToolDecls(list(items))))
            continue
        for item in cast("Iterable[Toolset]", items):
            decls = yield from item.steps(context)
            origins.append(Origin(item.name, decls))
    return combined(origins)


def _begin(source: object, context: RequestContext) -> object:
    if mcp_listing.reads(source):
        return mcp_listing.listed(source)
    return cast("Callable[..., Any]", source)(context) if is_function(source) else source


def _flat(value: object, levels: int = _MOST_NESTED) -> Iterator[object]:
    """The toolsets in a value, and what else stands in its lists, in order."""
    if levels and _holds_others(value):
        for item in cast("Iterable[object]", value):
            yield from _flat(item, levels - 1)
    else:
        yield value


def _holds_others(value: object) -> bool:
    return isinstance(value, (list, tuple)) or (is_iterable(value) and not is_source(value))


def _check_takes_context(toolset: str, function: Callable[..., Any]) -> None:
    """Refuse a function that is a tool and not a function of the request: it would be run (rule 1)."""
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):  # Python cannot tell
        parameters = []
    asked = [p for p in parameters if p.default is p.empty and p.kind not in _VARIADIC]
    if [p.name for p in asked] != ["context"] or asked[0].kind not in _POSITIONAL:
        raise InvalidToolDecl(
            f"a function as the source of toolset {toolset!r} takes the request's `context` and nothing else",
            code="invalid_toolset",
            fix=f"If it is a tool, put it into a list: Toolset({toolset!r}, [function]).",
        )
