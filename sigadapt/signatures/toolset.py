"""Toolset: a named source of tools that is asked once a request, before it leaves (rule 4).

A toolset is a value. `filtered`, `named`, `prefixed`, `renamed` and `prepared` give a new toolset, which does
one more thing to the tools of the old one; `combined` joins several. What it gives is worked out in steps
(`awaiting.py`), so that one code serves `resolve` and `aresolve`.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, isawaitable, iscoroutine, signature
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

from dspy.signatures.signature import Signature

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import closest
from sigadapt.signatures import mcp_servers
from sigadapt.signatures.awaiting import Await, Steps, arun, run
from sigadapt.signatures.native_tools import NativeTool
from sigadapt.signatures.sources import is_function, is_source
from sigadapt.signatures.tool_decl import ToolDecl, altered, pickle_fault
from sigadapt.signatures.tool_decls import ToolDecls, is_iterable

_MOST_NESTED = 16  # as ToolDecls, which refuses what is deeper
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a toolset may know of the request that it gives tools for. Read-only.

    Args:
        signature: the signature that is asked; None outside a request.
        inputs: the values of its input fields.
        settings: the generation settings of this call (`temperature` and the like).

    Example:
        >>> RequestContext(inputs={"question": "why?"}).inputs["question"]
        'why?'
    """

    signature: type[Signature] | None = None
    inputs: Mapping[str, Any] = field(default_factory=_nothing)
    settings: Mapping[str, Any] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        for name in ("inputs", "settings"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


_OUTSIDE = RequestContext()

Transform: TypeAlias = "Callable[[RequestContext, ToolDecls], object | Awaitable[object]]"
"""Gets the request's context and the tools so far; gives what ToolDecls takes, or an awaitable of it."""


@dataclass(frozen=True, eq=False)
class Toolset:
    """Tools under one name, decided when a request is made.

    Args:
        name: for errors, which name it.
        source: anything ToolDecls takes; other toolsets; a live MCP session or server; or a function of the
            request, sync or async, whose only required parameter is called `context` and gets a
            RequestContext. A function that is itself the tool stands in a list: `Toolset("time", [now])`.
        transforms: what is done to the tools, in order; the methods add to it.

    Raises:
        InvalidToolDecl: `invalid_toolset`, for a name or a source that cannot be one. When it is pickled,
            `not_picklable` for a source or a function that pickle cannot take.

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
    transforms: tuple[Transform, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not self.name.strip():
            raise InvalidToolDecl(f"a toolset cannot be named {self.name!r}", code="invalid_toolset")
        if is_function(self.source):
            _check_takes_context(self.name, cast("Callable[..., Any]", self.source))
        if isinstance(self.source, Iterator):  # the first request would use it up
            object.__setattr__(self, "source", tuple(cast("Iterator[object]", self.source)))

    def filtered(self, predicate: Callable[[RequestContext, ToolDecl], bool]) -> "Toolset":
        """Keep the tools for which `predicate(context, decl)` is true, and all that the provider runs itself.

        Example:
            >>> files = Toolset("files", [{"name": "read"}, {"name": "write"}])
            >>> [d.name for d in files.filtered(lambda context, decl: decl.name != "write").resolve()]
            ['read']
        """
        return self.prepared(partial(_filtered, predicate))

    def named(self, *names: str) -> "Toolset":
        """Keep the tools of these names, in this order; a name that is not there is an error.

        Example:
            >>> letters = Toolset("letters", [{"name": "a"}, {"name": "b"}, {"name": "c"}])
            >>> [decl.name for decl in letters.named("c", "a").resolve()]
            ['c', 'a']
        """
        return self.prepared(partial(_chosen, names))

    def prefixed(self, prefix: str) -> "Toolset":
        """Put a prefix before every name, as it is given: `"fs_"`, not `"fs"`."""
        return self.prepared(partial(_prefixed, prefix))

    def renamed(self, names: Mapping[str, str]) -> "Toolset":
        """Give some tools new names, by their old ones; an old name that is not there is an error.

        Example:
            >>> files = Toolset("files", [{"name": "read"}])
            >>> [decl.name for decl in files.renamed({"read": "open"}).resolve()]
            ['open']
        """
        return self.prepared(partial(_with_names, dict(names)))

    def prepared(self, function: Transform) -> "Toolset":
        """Give the tools that `function(context, decls)` makes of these; it may be async."""
        return replace(self, transforms=(*self.transforms, function))

    def combined(self, *others: "Toolset", name: str | None = None) -> "Toolset":
        """Join these tools and those of other toolsets, in order; a tool of two of them is an error."""
        members = (self, *others)
        return Toolset(name or "+".join(member.name for member in members), members)

    def resolve(self, context: RequestContext = _OUTSIDE) -> ToolDecls:
        """Give the tools for a request.

        Raises:
            InvalidToolDecl: naming the toolset; `async_toolset` if it has to be awaited.
        """
        return run(self.steps(context))

    async def aresolve(self, context: RequestContext = _OUTSIDE) -> ToolDecls:
        """Give the tools for a request, awaited.

        Raises:
            InvalidToolDecl: naming the toolset.
        """
        return await arun(self.steps(context))

    def steps(self, context: RequestContext) -> Steps[ToolDecls]:
        """Give the tools for a request, in steps."""
        decls = yield from self._settled(lambda: _begin(self.source, context), context)
        for transform in self.transforms:
            decls = yield from self._settled(partial(transform, context, decls), context)
        return decls

    def _settled(self, begin: Callable[[], object], context: RequestContext) -> Steps[ToolDecls]:
        try:
            sources = begin()
            if isawaitable(sources):
                sources = yield Await(sources, self._refusal)
            return (yield from resolving(sources, context))
        except Exception as error:
            raise naming(error, self.name) from error

    def _refusal(self) -> InvalidToolDecl:
        return InvalidToolDecl(
            f"toolset {self.name!r} has to be awaited",
            code="async_toolset",
            fix="Use the async call (`await program.acall(...)`), or pass `await toolset.aresolve()`.",
        )

    def __copy__(self) -> "Toolset":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Toolset":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        parts = [
            ("its source", self.source),
            *(("what is done to its tools", each) for each in self.transforms),
        ]
        for what, part in parts:
            fault = pickle_fault(part)
            if fault is not None:
                raise InvalidToolDecl(
                    f"toolset {self.name!r} cannot be pickled, because of {what}: {fault}",
                    code="not_picklable",
                    fix="Use functions of a module's top level, and make live sessions where it is loaded.",
                ) from fault
        return Toolset, (self.name, self.source, self.transforms)

    def __repr__(self) -> str:
        return f"Toolset({self.name!r})"


Entries: TypeAlias = "list[ToolDecl | NativeTool]"


def _filtered(
    predicate: Callable[[RequestContext, ToolDecl], bool], context: RequestContext, decls: ToolDecls
) -> Entries:
    return [
        entry
        for entry in decls.entries
        if not isinstance(entry, ToolDecl) or _kept(predicate(context, entry))
    ]


def _chosen(names: tuple[str, ...], _: RequestContext, decls: ToolDecls) -> Entries:
    return [_known(name, decls) for name in names]


def _prefixed(prefix: str, _: RequestContext, decls: ToolDecls) -> Entries:
    return _renamed({decl.name: prefix + decl.name for decl in decls}, decls)


def _with_names(names: Mapping[str, str], _: RequestContext, decls: ToolDecls) -> Entries:
    for name in names:
        _known(name, decls)
    return _renamed(names, decls)


def _renamed(names: Mapping[str, str], decls: ToolDecls) -> Entries:
    return [
        altered(entry, name=names.get(entry.name, entry.name)) if isinstance(entry, ToolDecl) else entry
        for entry in decls.entries
    ]


def resolving(value: object, context: RequestContext) -> Steps[ToolDecls]:
    """Make declarations of what a ToolDecls field was given, in steps: toolsets give their tools.

    Args:
        value: a toolset, or anything ToolDecls takes, with toolsets anywhere in its lists.
        context: the request.

    Raises:
        InvalidToolDecl: as ToolDecls; naming the toolset where one is concerned.

    Example:
        >>> clock = Toolset("clock", [{"name": "now"}])
        >>> [decl.name for decl in run(resolving([clock, {"name": "search"}], RequestContext()))]
        ['now', 'search']
    """
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
    return joined(origins)


class Origin(NamedTuple):
    """Tools, and the name of the toolset that gave them; None for tools that were given as they are."""

    toolset: str | None
    decls: ToolDecls


def joined(origins: Iterable[Origin]) -> ToolDecls:
    """Put tools of several origins into one collection, in order.

    Raises:
        InvalidToolDecl: `duplicate_name`, naming the tool and where both come from.

    Example:
        >>> search = ToolDecls([{"name": "search"}])
        >>> joined([Origin("web", search), Origin("wiki", search)])
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'search': toolset 'web' and toolset 'wiki' both have it. \
Tell them apart: toolset.prefixed('wiki_').
    """
    known = list(origins)
    first: dict[str, Origin] = {}
    for origin in known:
        for decl in origin.decls:
            other = first.setdefault(decl.name, origin)
            if other is not origin:
                raise _duplicate(decl.name, other.toolset, origin.toolset)
    return known[0].decls if len(known) == 1 else ToolDecls([origin.decls for origin in known])


def naming(error: Exception, toolset: str) -> InvalidToolDecl:
    """Turn an error that happened in a toolset into one that names it.

    Example:
        >>> print(naming(ConnectionError("no route"), "crm"))
        toolset 'crm' gives no tools: no route (ConnectionError).
    """
    if isinstance(error, InvalidToolDecl):
        return InvalidToolDecl(
            f"in toolset {toolset!r}: {error.reason}",
            code=error.code,
            field=error.field,
            tool=error.tool,
            path=error.path,
            fix=error.fix,
        )
    what = f"{error} ({type(error).__name__})" if str(error) else type(error).__name__
    return InvalidToolDecl(f"toolset {toolset!r} gives no tools: {what}", code="toolset_failed")


def _begin(source: object, context: RequestContext) -> object:
    if mcp_servers.accepts(source):
        return mcp_servers.listed_tools(source)
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


def _kept(answer: object) -> bool:
    if iscoroutine(answer):  # true, whatever it would say
        answer.close()
        raise InvalidToolDecl("a filter cannot be async", code="async_filter", fix="Use prepared(function).")
    return bool(answer)


def _known(name: str, decls: ToolDecls) -> ToolDecl:
    if name in decls:
        return decls[name]
    known = [decl.name for decl in decls]
    near = closest(name, known)
    fix = f"Did you mean {near!r}?" if near else f"It has {', '.join(map(repr, known)) or 'none'}."
    raise InvalidToolDecl("there is no tool of that name", code="unknown_tool", tool=name, fix=fix)


def _duplicate(name: str, first: str | None, second: str | None) -> InvalidToolDecl:
    toolset = second or first
    if toolset is None:
        return InvalidToolDecl("is declared more than once", code="duplicate_name", tool=name)
    origins = [f"toolset {each!r}" if each else "a tool given by itself" for each in (first, second)]
    reason = f"{origins[0]} and {origins[1]} both have it"
    fix = f"Tell them apart: toolset.prefixed('{toolset}_')."
    return InvalidToolDecl(reason, code="duplicate_name", tool=name, fix=fix)


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
