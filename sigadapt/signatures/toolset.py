"""Toolset: a named source of tools that is resolved for each request, before the request is sent.

A toolset is immutable: what changes its tools returns a new one. Resolving is a generator (`awaiting.py`), so
that `resolve` and `aresolve` share their code.
"""

import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, isawaitable, iscoroutine, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dspy.signatures.signature import Signature
from typing_extensions import Self

from sigadapt.display import Displayable, rendered_toolset
from sigadapt.errors import InvalidOption, InvalidToolDecl
from sigadapt.json_values import is_iterable
from sigadapt.signatures import mcp_servers
from sigadapt.signatures.awaiting import Await, Steps, arun, run
from sigadapt.signatures.fewer_tools import Deferral, Entries, Retrieval, known_tool
from sigadapt.signatures.saved_model import Immutable
from sigadapt.signatures.sources import is_function
from sigadapt.signatures.tool_decl import ToolDecl, ToolSearch, by_value, from_pickles, with_fields
from sigadapt.signatures.tool_decls import (
    ListsTools,
    ResolvableTools,
    Sources,
    ToolDecls,
    Values,
    flat,
    known_decls,
)
from sigadapt.signatures.tool_functions.hooks import Hook, check_hooks

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True)
class RequestContext:
    """The request that a toolset is resolved for. Read-only.

    Args:
        signature: the signature of the request; None outside a request, and when a waiting run resumes.
        inputs: the values of the signature's input fields, by name. What a request of a conversation does
            not repeat has its latest value there.
        settings: the generation settings of the request, such as `temperature`.

    Example:
        >>> RequestContext(inputs={"question": "why?"}).inputs["question"]
        'why?'
    """

    signature: type[Signature] | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for name in ("inputs", "settings"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        return RequestContext, (self.signature, dict(self.inputs), dict(self.settings))


_OUTSIDE = RequestContext()
_NO_TOOLS = ToolDecls()

Transform: TypeAlias = "Callable[[RequestContext, ToolDecls], object | Awaitable[object]]"
"""A function of the context and the tools so far. It returns what ToolDecls accepts; it may be async."""

if TYPE_CHECKING:
    Source: TypeAlias = Callable[[RequestContext], Sources | Awaitable[Sources]] | Values | ListsTools
    """What a toolset takes: what ToolDecls takes, a live session or server, or a function of the request."""
else:  # a user's error, a field of a Toolset, has pydantic read the fields of this dataclass
    Source = object

Search: TypeAlias = "Callable[[RequestContext, ToolDecls], Iterable[str] | Awaitable[Iterable[str]]]"
"""A function of the context and the tools. It returns names of tools; it may be async."""

FindTools: TypeAlias = "Callable[[str, ToolDecls], Iterable[str] | Awaitable[Iterable[str]]]"
"""A function of a model's query and the deferred tools. It returns names of tools; it may be async."""


@dataclass(frozen=True, eq=False)
class Toolset(Displayable, Immutable, ResolvableTools):
    """Tools under one name, decided when a request is made.

    Args:
        name: the toolset's name in error messages.
        source: anything that ToolDecls accepts; other toolsets; a live MCP session or server; or a function
            of the request. Such a function may be async. Its only required parameter is `context`, a
            RequestContext. If a function is itself a tool, put it into a list:
            `Toolset("time", [now])`.
        transforms: functions that change the tools, in order. The methods of this class add to them.
        instructions: whether the system text has the instructions of the MCP server that is the source.
        on_invalid: what becomes of a tool of an MCP server that cannot be declared. `raise` refuses the
            server; `drop` leaves the tool out, with a warning and a `Change` of each request that say why.

    Raises:
        InvalidOption: for another `on_invalid`.
        InvalidToolDecl: `invalid_toolset`, for a name that is not a string or is blank, or for a function
            without the parameter `context`; `not_picklable`, when it is pickled, for a source or a function
            that cannot be pickled.

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
    source: Source
    transforms: tuple[Transform, ...] = ()
    instructions: bool = False
    on_invalid: Literal["raise", "drop"] = "raise"

    def __new__(cls, *values: Any, **fields: Any) -> Self:
        """Refuse a toolset without a name, in words that say so."""
        if len(values) == 1 and "source" not in fields:
            given = "its name" if isinstance(values[0], str) else "its source"
            missing = "source" if isinstance(values[0], str) else "name"
            raise InvalidToolDecl(
                f"a toolset has a name and a source, and got {given} alone: the {missing} is missing",
                code="invalid_toolset",
                fix="Give both: Toolset('weather', [get_weather]).",
            )
        return object.__new__(cls)

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str) or not name.strip():
            raise InvalidToolDecl(
                f"expected a string as the name of a toolset, got {self.name!r}", code="invalid_toolset"
            )
        if is_function(self.source):
            try:
                parameters = signature(self.source).parameters.values()
            except (TypeError, ValueError):  # Python cannot read its signature
                parameters = ()
            without_default = [p for p in parameters if p.default is p.empty and p.kind not in _VARIADIC]
            # Any other function may be a tool, and would be called.
            if [p.name for p in without_default] != ["context"] or without_default[0].kind not in _POSITIONAL:
                raise InvalidToolDecl(
                    f"the source function of toolset {name!r} must have one required parameter, `context`",
                    code="invalid_toolset",
                    fix=f"If it is a tool, put it into a list: Toolset({name!r}, [function]).",
                )
        if self.on_invalid not in ("raise", "drop"):
            fix = "Give on_invalid='raise' or on_invalid='drop'."
            raise InvalidOption(f"it cannot be {self.on_invalid!r}", field="on_invalid", fix=fix)
        if self.instructions and not mcp_servers.accepts(self.source):
            raise InvalidToolDecl(
                f"toolset {name!r} has no MCP server whose instructions it could take",
                code="invalid_toolset",
                fix="Give the tools theirs: ToolDecl.of(function, instructions='...').",
            )
        if is_iterable(self.source) and isinstance(self.source, Iterator):  # a request would use it up
            object.__setattr__(self, "source", tuple(self.source))

    def filtered(self, predicate: Callable[[RequestContext, ToolDecl], bool]) -> "Toolset":
        """Keep the tools for which `predicate(context, decl)` is true, and all native tools.

        Example:
            >>> files = Toolset("files", [{"name": "read"}, {"name": "write"}])
            >>> [d.name for d in files.filtered(lambda context, decl: decl.name != "write").resolve()]
            ['read']
        """

        def filtered(context: RequestContext, decls: ToolDecls) -> Iterator[object]:
            for entry in decls.entries:
                keeps: object = not isinstance(entry, ToolDecl) or predicate(context, entry)
                if iscoroutine(keeps):  # which is always true, so the filter would keep every tool
                    keeps.close()
                    fix = "Use prepared(function)."
                    raise InvalidToolDecl("the filter is async", code="async_filter", fix=fix)
                if keeps:
                    yield entry

        return self.prepared(filtered)

    def retrieved(self, search: Search) -> "Toolset":
        """Keep the tools that a search finds for the request: those that `search(context, decls)` names.

        Native tools, and tools that the conversation has called, are always kept. The order does not change.

        Args:
            search: your retriever. It gets the RequestContext and the tools, and returns names. It may be
                async.

        Example:
            >>> def search(context, decls):
            ...     return [decl.name for decl in decls if decl.name in context.inputs["question"]]
            >>> files = Toolset("files", [{"name": "read"}, {"name": "write"}]).retrieved(search)
            >>> [decl.name for decl in files.resolve(RequestContext(inputs={"question": "read it"}))]
            ['read']
        """
        return self.prepared(Retrieval(search))

    def deferred(self, *loaded: str, search: "FindTools | None" = None, max_searches: int = 8) -> "Toolset":
        """Defer the loading of all tools but the `loaded` ones: the model searches for them.

        The provider's own search is used where it has one. Elsewhere the adapter declares `search_tools`, and
        answers it. The program sees only the calls that follow.

        Args:
            loaded: the names of the tools that every request declares.
            search: your own search, used with every provider. It gets the model's query and the deferred
                tools as ToolDecls, and returns names, the best first. It may be async.
            max_searches: how many searches of the model are answered in one call of the adapter.

        Raises:
            InvalidOption: for a search that is no function, or a bound that is no positive number.

        Example:
            >>> files = Toolset("files", [{"name": "read"}, {"name": "write"}]).deferred("read").resolve()
            >>> [tool.get("defer_loading", False) for tool in files.to_openai()]
            [False, True]
        """
        if search is not None and not callable(search):
            raise InvalidOption(f"expected a function of a query and tools, got {search!r}", field="search")
        if type(max_searches) is not int or max_searches < 1:
            raise InvalidOption(f"expected an int of 1 or more, got {max_searches!r}", field="max_searches")
        return self.prepared(Deferral(frozenset(loaded), ToolSearch(search, max_searches)))

    def named(self, *names: str) -> "Toolset":
        """Keep only the tools with these names, in this order. An unknown name is an error when resolved.

        Example:
            >>> letters = Toolset("letters", [{"name": "a"}, {"name": "b"}, {"name": "c"}])
            >>> [decl.name for decl in letters.named("c", "a").resolve()]
            ['c', 'a']
        """

        def named(_: RequestContext, decls: ToolDecls) -> Entries:
            return [known_tool(name, decls) for name in names]

        return self.prepared(named)

    def prefixed(self, prefix: str) -> "Toolset":
        """Put a prefix before every tool's name. The prefix includes its separator: `"fs_"`, not `"fs"`.

        Example:
            >>> [decl.name for decl in Toolset("files", [{"name": "read"}]).prefixed("fs_").resolve()]
            ['fs_read']
        """

        def prefixed(_: RequestContext, decls: ToolDecls) -> Entries:
            return _with_names({decl.name: prefix + decl.name for decl in decls}, decls)

        return self.prepared(prefixed)

    def renamed(self, names: Mapping[str, str]) -> "Toolset":
        """Rename tools. `names` maps old names to new ones. An unknown old name is an error when resolved.

        Example:
            >>> files = Toolset("files", [{"name": "read"}])
            >>> [decl.name for decl in files.renamed({"read": "open"}).resolve()]
            ['open']
        """
        new = dict(names)

        def with_names(_: RequestContext, decls: ToolDecls) -> Entries:
            for name in new:
                known_tool(name, decls)
            return _with_names(new, decls)

        return self.prepared(with_names)

    def prepared(self, function: Transform) -> "Toolset":
        """Replace the tools with the result of `function(context, decls)`, which may be async.

        Example:
            >>> files = Toolset("files", [{"name": "read"}, {"name": "write"}])
            >>> files = files.prepared(lambda context, decls: reversed(list(decls)))
            >>> [decl.name for decl in files.resolve()]
            ['write', 'read']
        """
        return replace(self, transforms=(*self.transforms, function))

    def with_hooks(self, *hooks: Hook) -> "Toolset":
        """Put hooks around the calls of whatever tools a request gets, as `ToolDecls.with_hooks` does.

        Raises:
            InvalidOption: as `ToolDecls.with_hooks`.

        Example:
            >>> class Log:
            ...     def before_tool(self, call, context):
            ...         print("calls", call.name)
            >>> def now() -> str:
            ...     return "12:00"
            >>> clock = Toolset("clock", [now]).with_hooks(Log())
            >>> from sigadapt import ToolCalls
            >>> [result] = ToolCalls([{"name": "now", "args": {}}]).run(clock)
            calls now
        """
        check_hooks(hooks)

        def with_hooks(_: RequestContext, decls: ToolDecls) -> ToolDecls:
            return decls.with_hooks(*hooks)

        return self.prepared(with_hooks)

    def combined(self, *others: "Toolset", name: str | None = None) -> "Toolset":
        """Join the tools of this and other toolsets, in order. A tool name in two of them is an error.

        Example:
            >>> files, web = Toolset("files", [{"name": "read"}]), Toolset("web", [{"name": "search"}])
            >>> both = files.combined(web)
            >>> both.name, [decl.name for decl in both.resolve()]
            ('files+web', ['read', 'search'])
        """
        members = (self, *others)
        return Toolset(name or "+".join(member.name for member in members), members)

    def resolve(self, context: RequestContext = _OUTSIDE) -> ToolDecls:
        """Return the tools for a request.

        Raises:
            InvalidToolDecl: the error names the toolset; `async_toolset` if it has to be awaited.

        Example:
            >>> [decl.name for decl in Toolset("files", [{"name": "read"}]).resolve()]
            ['read']
        """
        return run(self.steps(context))

    async def aresolve(self, context: RequestContext = _OUTSIDE) -> ToolDecls:
        """Return the tools for a request; await what is async.

        Raises:
            InvalidToolDecl: the error names the toolset.

        Example:
            >>> import asyncio
            >>> async def tools(context):
            ...     return [{"name": "read"}]
            >>> [decl.name for decl in asyncio.run(Toolset("files", tools).aresolve())]
            ['read']
        """
        return await arun(self.steps(context))

    def __iter__(self) -> Iterator[ToolDecl]:
        """Yield the tools outside of a request, for agents that keep a list: `ReActV2(tools=toolset)`.

        Raises:
            InvalidToolDecl: as `resolve`.
        """
        return iter(self.resolve())

    def steps(self, context: RequestContext) -> Steps[ToolDecls]:
        """Return the tools for a request, as steps for `run` or `arun`."""
        decls = _NO_TOOLS
        left_out: tuple[str, ...] = ()
        try:
            for stage in (self._tools, *self.transforms):
                source = stage(context, decls)
                if isawaitable(source):
                    source = yield Await(source, self._refusal)
                if isinstance(source, mcp_servers.Listing):
                    left_out = source.left_out
                    source = source.decls
                if isinstance(stage, Retrieval):
                    source = stage.tools_of(context, decls, source)
                decls = yield from resolving(source, context)
        except InvalidToolDecl as error:
            where = {name: getattr(error, name) for name in ("code", "field", "tool", "path", "fix")}
            raise InvalidToolDecl(f"in toolset {self.name!r}: {error.reason}", **where) from error
        except Exception as error:
            what = f"{error} ({type(error).__name__})" if str(error) else type(error).__name__
            reason = f"toolset {self.name!r} gives no tools: {what}"
            raise InvalidToolDecl(reason, code="toolset_failed") from error
        if not left_out:
            return decls
        reasons = [f"toolset {self.name!r} leaves out a tool: {reason}" for reason in left_out]
        warnings.warn("\n".join(reasons), UserWarning, stacklevel=2)
        return decls.without(*reasons)

    def _tools(self, context: RequestContext, _: ToolDecls) -> object:
        if mcp_servers.accepts(self.source):
            return mcp_servers.listed_tools(
                self.source, instructions=self.instructions, drops_invalid=self.on_invalid == "drop"
            )
        return self.source(context) if is_function(self.source) else self.source

    def _refusal(self) -> InvalidToolDecl:
        return InvalidToolDecl(
            f"toolset {self.name!r} has to be awaited",
            code="async_toolset",
            fix="Call the program with `await program.acall(...)`, while the session is open. Give the "
            "constructor of any agent but sigadapt.ReAct `await toolset.aresolve()`.",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        part = "its source"
        try:
            pickles = {"source": by_value(self.source)}
            part = "what is done to its tools"
            pickles["transforms"] = by_value(self.transforms)
        except Exception as error:
            raise InvalidToolDecl(
                f"toolset {self.name!r} cannot be pickled, because of {part}: {error}",
                code="not_picklable",
                fix="Open live sessions where the toolset is loaded.",
            ) from error
        return from_pickles, (
            Toolset,
            {"name": self.name, "instructions": self.instructions, "on_invalid": self.on_invalid},
            pickles,
        )

    _rendering = rendered_toolset

    def __repr__(self) -> str:
        return f"Toolset({self.name!r})"


def _with_names(names: Mapping[str, str], decls: ToolDecls) -> Entries:
    entries: Entries = []
    for entry in decls.entries:
        if isinstance(entry, ToolDecl):
            entries.append(with_fields(entry, name=names.get(entry.name, entry.name)))
        else:
            entries.append(entry)
    return entries


def resolving(value: object, context: RequestContext) -> Steps[ToolDecls]:
    """Return the declarations of a ToolDecls field's value, toolsets resolved."""
    if type(value) is ToolDecls:
        return value
    if isinstance(value, ResolvableTools):
        return (yield from value.steps(context))
    known = known_decls(value)
    if known is not None:
        return known
    entries: Entries = []
    left_out: list[str] = []
    origins: dict[str, str | None] = {}
    for item in [*flat(value)]:  # all are read before any toolset is asked
        if isinstance(item, ResolvableTools):
            decls: ToolDecls = yield from item.steps(context)
            tools = decls.entries
            left_out += decls.left_out
            origin = item.name
        else:
            tools = (item,)
            origin = None
        for name in [entry.name for entry in tools if isinstance(entry, ToolDecl)]:
            if name in origins and (origin or origins[name]):
                raise _duplicate_name(name, origins[name], origin)
            origins[name] = origin
        entries += tools
    return ToolDecls(entries).without(*left_out)


def _duplicate_name(name: str, first: str | None, second: str | None) -> InvalidToolDecl:
    """Make the error of a tool's name that two toolsets have, or a toolset and a tool beside it."""
    first_origin = f"toolset {first!r}" if first else "a tool given by itself"
    second_origin = f"toolset {second!r}" if second else "a tool given by itself"
    fix = f"Rename one of them: toolset.prefixed('{second or first}_')."
    reason = f"{first_origin} and {second_origin} both have it"
    return InvalidToolDecl(reason, code="duplicate_name", tool=name, fix=fix)
