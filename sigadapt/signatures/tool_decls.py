"""ToolDecls: the tools of a turn, and the type of a signature's tools field.

It accepts functions, dicts, MCP tools and so on, and makes a ToolDecl of each (`sources/`).
"""

import hashlib
from bisect import bisect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from types import FunctionType, GenericAlias
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar, cast
from weakref import ref

import dspy
import pydantic
from dspy.adapters.types.base_type import Type
from pydantic_core import core_schema

from sigadapt.display import Displayable, rendered_decls
from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, closest, compact, cut, is_iterable, is_object, listed
from sigadapt.schemas.arguments import Flaw
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.saved_model import Immutable, OwnMembers
from sigadapt.signatures.server_tools import MCP_APPROVAL, NativeTool, ServerTool, is_native, native_tool
from sigadapt.signatures.sources import is_source, unknown_source
from sigadapt.signatures.sources.dicts import decode, is_json_text
from sigadapt.signatures.sources.runnable import SeveralTools, forgotten_adapter
from sigadapt.signatures.tool_decl import (
    ToolDecl,
    bare_form,
    declarations_of,
    known_declarations,
    with_fields,
)
from sigadapt.signatures.tool_functions.hooks import Hook, check_hooks

_MOST_NESTED = 16
_MOST_NAMES = 20
_MOST_COMPARED = 100  # names that a bad call's is compared with
_T = TypeVar("_T")


Ask: TypeAlias = "Callable[[str, Json, str], bool | Awaitable[bool]]"
"""A function of a tool's name, the arguments and the question. It says whether to run it; may be async."""


class ListsTools(Protocol):
    """A live MCP session or client."""

    @property
    def list_tools(self) -> Callable[..., Any]:
        """What asks the server for its tools."""
        ...


class ResolvableTools(SeveralTools):
    """What a `Toolset` is, which is defined above this file."""

    name: str

    def resolve(self) -> "ToolDecls":
        """Return the tools outside of a request."""
        raise NotImplementedError

    async def aresolve(self) -> "ToolDecls":
        """Return the tools outside of a request; await what is async."""
        raise NotImplementedError

    def steps(self, context: Any) -> Steps["ToolDecls"]:
        """Return the tools for a request, as steps for `run` or `arun`."""
        raise NotImplementedError


class _TakesSources(OwnMembers):
    """Make `isinstance(value, ToolDecls)` true for every value that a ToolDecls field accepts.

    DSPy's Predict runs `isinstance` on every input before any adapter runs, and logs a warning if it is
    false. A list of functions would log one on every call, and DSPy has no other hook. So it is true for a
    ToolDecls, a source, and iterables of sources, and false for values that the field refuses.

    Code that must know whether a value really is a ToolDecls uses `type(value)`, as this file does. Pydantic
    does not use `isinstance`, because ToolDecls has its own core schema.
    """

    def __instancecheck__(self, instance: Any) -> bool:
        return issubclass(type(instance), self) or _could_be_tools(instance, _MOST_NESTED)


def _could_be_tools(value: object, levels: int) -> bool:
    if isinstance(value, (list, tuple)):  # asked of each input of each call, nearly always of functions
        others = [item for item in cast("list[object]", value) if type(item) is not FunctionType]
        return levels > 0 and all(_could_be_tools(item, levels - 1) for item in others)
    if issubclass(type(value), (ToolDecl, NativeTool, SeveralTools)) or is_source(value) or is_native(value):
        return True
    # Not looked inside: that would use up an iterator, and JSON text may be long.
    return _may_hold_sources(value) or is_json_text(value)


def _may_hold_sources(value: object) -> TypeGuard[Iterable[object]]:
    others = (str, bytes, bytearray, Mapping, AbstractSet, type, GenericAlias, pydantic.BaseModel)
    return is_iterable(value) and not isinstance(value, others)


def _is_decls(value: object) -> TypeGuard["ToolDecls"]:
    return issubclass(type(value), ToolDecls)  # `isinstance` is wider, as `_TakesSources` says


class CanonicalTools(list[Json]):
    """The tools of a list as a request holds them, with what the floors above make of them. Not changed.

    The list of the same unchanged tools is the same object in each request. A copy is a plain list.
    """

    def __init__(self, tools: Iterable[Json]) -> None:
        super().__init__(tools)
        self.memo: dict[Any, Any] = {}
        """What `made_once` made of these tools alone, by a key that says what and for which route."""

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def made_once(tools: Sequence[Json], key: Any, make: Callable[[], _T]) -> _T:
    """Return what is made of tools alone, made once for the canonical tools of a ToolDecls."""
    cache = tools.memo if isinstance(tools, CanonicalTools) else {}
    if key not in cache:
        cache[key] = make()
    return cache[key]


class ToolDecls(Displayable, Immutable, Type, SeveralTools, metaclass=_TakesSources):
    """The tools declared for a turn, in order. Immutable.

    A signature's input field of this type accepts whatever `sources` may be. It is saved as a list of dicts,
    and accepts that list too.

    Native tools, which the provider runs itself (`server_tools.py`), are in `entries` and in `to_openai()`.
    `len`, iteration, lookup by name and validation are about functions only.

    Args:
        sources: one source (see `ToolDecl.of`), a native tool, a Toolset, a ToolDecls, or an iterable of
            these; iterables may be nested. A dict in Gemini's shape may declare several tools. A Toolset is
            resolved here without a request; a signature's field resolves it with its request. A set is
            refused, because it has no order, and the same tools must give the same request.

    Raises:
        InvalidToolDecl: as ToolDecl and ToolDecl.of; `duplicate_name` for two tools with the same name. In a
            pydantic model's field too, it is this error, not a ValidationError.

    Example:
        >>> decls = ToolDecls([{"name": "now"}, {"name": "search", "parameters": {"type": "object"}}])
        >>> len(decls), decls["now"].description, "search" in decls
        (2, '', True)
        >>> ToolDecls.model_validate_json(decls.model_dump_json()) == decls
        True
    """

    model_config = pydantic.ConfigDict(frozen=True)

    tools: tuple[ToolDecl, ...]
    """The declarations, in order."""
    entries: tuple[ToolDecl | NativeTool, ...]
    """The declarations and the provider's own tools, in order."""

    def __init__(self, sources: object = (), /) -> None:
        entries: list[ToolDecl | NativeTool] = []
        for item in flat(sources):
            members = item.resolve().entries if isinstance(item, ResolvableTools) else (item,)
            entries += members
        servers = Counter(
            (each.kind, each.spec.get("server_label")) for each in entries if isinstance(each, ServerTool)
        )
        # Providers take one search, but several MCP servers, which differ in their label.
        for (kind, _), count in servers.items():
            if count > 1:
                raise InvalidToolDecl("is declared more than once", code="duplicate_name", tool=kind)
        # The stand-in of a server tool is a declaration too: what it is called with is checked and run.
        tools = [entry.stand_in if isinstance(entry, ServerTool) else entry for entry in entries]
        every = tuple(entries)
        decls = tuple([tool for tool in tools if isinstance(tool, ToolDecl)])
        _fill(self, decls if decls == every else every, decls)

    @classmethod
    def description(cls) -> str:
        """Return nothing, because a request holds the tools itself, or refuse DSPy's own adapter.

        Raises:
            InvalidSignature: `forgotten_adapter`, under DSPy's own adapter, with the line to add.
        """
        # DSPy's adapter would write `<function f at 0x7f...>` into the prompt and read no call. Before a
        # request it asks the type for nothing but this description.
        error = forgotten_adapter("{adapter} cannot fill a field of type sigadapt.ToolDecls")
        if error is not None:
            raise error
        return ""

    def __len__(self) -> int:
        return len(self.tools)

    def __iter__(self) -> Iterator[ToolDecl]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.tools)

    def __getitem__(self, name: str | int) -> ToolDecl:
        return self.tools[name] if isinstance(name, int) else self.__dict__["by_name"][name]

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__["by_name"]

    def to_openai(self) -> list[Json]:
        """Return the tools as `request["tools"]`: each as from `ToolDecl.to_openai`, native ones as given.

        Example:
            >>> [tool["function"]["name"] for tool in ToolDecls([{"name": "now"}]).to_openai()]
            ['now']
        """
        return [entry.to_openai() for entry in self.entries]

    format = to_openai
    """What DSPy asks a value of one of its own types for."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why tools of a server were left out (`Toolset(on_invalid="drop")`). It is not saved or compared."""
        return self.__dict__.get("_left_out", ())

    def without(self, *reasons: str) -> "ToolDecls":
        """Return the same tools, with the reasons why others were left out."""
        if not reasons:
            return self
        decls = ToolDecls(self)
        vars(decls).update(_left_out=reasons)
        return decls

    def to_dspy(self) -> list[dspy.Tool]:
        """Return the functions among the tools as `dspy.Tool`s, for agents: `ReActV2(tools=decls.to_dspy())`.

        Raises:
            InvalidToolDecl: `no_function`, as `ToolDecl.to_dspy`.

        Example:
            >>> [tool.name for tool in ToolDecls(ToolDecl("now", func=len)).to_dspy()]
            ['now']
        """
        return [decl.to_dspy() for decl in self.tools]

    def confirmed_by(self, ask: Ask) -> "ToolDecls":
        """Return the same tools, with functions that ask a person first where a tool requires confirmation.

        For agents such as `dspy.ReActV2`, which run every call themselves. A hand-written loop uses
        `ToolCalls.awaiting_confirmation`.

        Args:
            ask: a function of the tool's name, the arguments and the question. It returns True to run the
                call, and may be async. For False the tool fails with `PermissionError`, and the model reads
                that the user rejected the call. For any other answer it fails with `InvalidOption`.

        Example:
            >>> pay = ToolDecl("pay", requires_confirmation=True, func=lambda eur: f"paid {eur}")
            >>> [tool] = ToolDecls([pay]).confirmed_by(lambda name, args, hint: False).to_dspy()
            >>> tool(eur=5)
            Traceback (most recent call last):
            PermissionError: The user rejected this call. It was not run.
        """
        from sigadapt.signatures.tool_functions.guards import asking_first  # a door: tests/test_repository.py

        entries = [asking_first(each, ask) if isinstance(each, ToolDecl) else each for each in self.entries]
        return ToolDecls(entries)

    def with_hooks(self, *hooks: Hook) -> "ToolDecls":
        """Return the same tools with hooks around each call, however it is run.

        Args:
            hooks: objects with any of these methods, sync or async. They stand in a row, in this order.

                `before_tool(call, context)` sees the call as the hook before left it. It returns a ToolCall
                of the same name with other arguments, which are checked, or the value of the call: then no
                other `before_tool` is asked, and the tool does not run.
                `on_tool_error(call, error, context)` returns the value of a call that failed; the first that
                does so ends the asking.
                `after_tool(call, result, context)` gets the value, wherever it came from, as the hook before
                left it, and returns the value in its place.

        A hook that raises fails the call, and the model reads the type of its exception alone. Bad calls and
        rejected ones reach no hook, failed results reach no `after_tool`, and a call that takes longer than
        its `timeout` does not reach `on_tool_error`. A person approves a call as the model made it. If
        `before_tool` changes an approved call, the person is asked again.

        Raises:
            InvalidOption: for a class, or for an object without any of these methods.

        Example:
            >>> from sigadapt import ToolCalls
            >>> class Redact:
            ...     def after_tool(self, call, result, context):
            ...         return result.replace("4000123", "***")
            >>> def card(name: str) -> str:
            ...     return f"{name} pays by 4000123."
            >>> [result] = ToolCalls([{"name": "card", "args": {"name": "Ada"}}]).run(
            ...     ToolDecls([card]).with_hooks(Redact())
            ... )
            >>> result.value
            'Ada pays by ***.'
        """
        check_hooks(hooks)
        entries: list[ToolDecl | NativeTool] = []
        for entry in self.entries:
            is_decl = isinstance(entry, ToolDecl)
            entries.append(with_fields(entry, hooks=(*entry.hooks, *hooks)) if is_decl else entry)
        return ToolDecls(entries)

    def fingerprint(self) -> str:
        """Return a text that is the same, in every process, exactly when the tools in a request are the same.

        It is the SHA-256 of `to_openai()` as compact JSON. Order counts, because prompt caches compare bytes.

        Example:
            >>> ToolDecls([{"name": "now"}]).fingerprint()[:8]
            '98e1bbb6'
        """
        return hashlib.sha256(compact(self.to_openai()).encode()).hexdigest()

    @cached_property
    def canonical(self) -> "CanonicalTools":
        """The result of `to_openai()`, made only once. Requests share it and must not change it."""
        if not self.tools or self.tools is not self.entries:
            return CanonicalTools(self.to_openai())
        # The declarations of unchanged functions share their texts, and so the list of the same ones.
        first, *others = [decl.text for decl in self.tools]
        following = tuple(map(ref, others))
        latest = first.last_list  # read once, because another thread may set it
        if latest is None or latest[0] != following:
            latest = following, CanonicalTools(self.to_openai())
            first.last_list = latest
        return latest[1]

    @cached_property
    def may_ask(self) -> bool:
        """Whether a call of one of the tools may need confirmation."""
        return any(decl.requires_confirmation is not False for decl in self.tools)

    @cached_property
    def have_instructions(self) -> bool:
        """Whether one of the tools adds to the system text."""
        return any(decl.instructions for decl in self.tools)

    def flaw_of(self, name: str, args: Json) -> Flaw | None:
        """Check a call's name and decoded arguments against these declarations, without running anything.

        Returns:
            None for a valid call. Else a Flaw: `unknown_tool`, which lists the declared names, or
            `schema_mismatch`, which lists the errors and has the path of the first.

        Example:
            >>> ToolDecls([{"name": "search"}]).flaw_of("serach", {}).message
            "no tool 'serach' is declared, only 'search'. Did the model mean 'search'?"
        """
        by_name = self.__dict__["by_name"]
        decl = by_name.get(name)
        if decl is not None:
            return decl.flaw_of(args)
        if name in self._client_names:
            return None
        if name == MCP_APPROVAL:
            reason = "OpenAI asks for an approval, and no MCP server is declared with approvals"
            return Flaw("unknown_tool", f"{reason}; a failed result answers no")
        message = f"no tool {cut(repr(name))} is declared"
        if not by_name:
            return Flaw("unknown_tool", f"{message}; this turn has no tools")
        near = closest(name, self._near(name))
        hint = f". Did the model mean {near!r}?" if near else ""
        return Flaw("unknown_tool", f"{message}, only {self._names}{hint}")

    @cached_property
    def _names(self) -> str:
        return listed((repr(decl.name) for decl in self.tools), _MOST_NAMES, ", ")

    @cached_property
    def _sorted_names(self) -> tuple[list[str], list[str]]:
        names = [decl.name for decl in self.tools]
        return sorted(names), sorted(name[::-1] for name in names)

    def _near(self, name: str) -> list[str]:
        """Return a bounded number of names that begin or end alike: a bad call is not compared with all."""
        forward, backward = self._sorted_names
        if len(forward) <= 2 * _MOST_COMPARED:
            return forward
        at = bisect(forward, name)
        end = bisect(backward, name[::-1])
        half = _MOST_COMPARED // 2
        alike = forward[max(0, at - half) : at + half]
        return alike + [each[::-1] for each in backward[max(0, end - half) : end + half]]

    @cached_property
    def _client_names(self) -> frozenset[str]:
        native = (entry for entry in self.entries if isinstance(entry, NativeTool))
        return frozenset(name for entry in native for name in entry.client_names)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "ToolDecls":
        """Return this object, which is immutable; with `update={"tools": ...}`, a new one of those tools.

        Example:
            >>> decls = ToolDecls([{"name": "now"}])
            >>> decls.model_copy(deep=True) is decls
            True
        """
        return type(self)(update["tools"]) if update else self

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies, so that a pickle does not say which lists share a declaration: DSPy's optimizers choose
        # demonstrations by a hash of their pickles, and equal tools then have equal ones.
        entries = [with_fields(each) if isinstance(each, ToolDecl) else each for each in self.entries]
        return type(self), (tuple(entries),)

    def __eq__(self, other: object) -> bool:
        return _is_decls(other) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        names = (repr(entry.name) if isinstance(entry, ToolDecl) else str(entry) for entry in self.entries)
        return f"ToolDecls([{', '.join(names)}])"

    __str__ = __repr__

    _rendering = rendered_decls

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        dicts = core_schema.list_schema(core_schema.dict_schema(core_schema.str_schema()))
        return core_schema.no_info_plain_validator_function(
            lambda value: value if issubclass(type(value), cls) else cls(value),
            json_schema_input_schema=dicts,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda decls: [
                    bare_form(entry) if isinstance(entry, ToolDecl) else entry.to_openai()
                    for entry in decls.entries
                ],
                return_schema=dicts,
            ),
        )


Values: TypeAlias = pydantic.BaseModel | Mapping[str, Any] | Iterable[Any] | ToolDecl | ResolvableTools
Sources: TypeAlias = Callable[..., Any] | Values | NativeTool
"""What ToolDecls takes, for type checkers: they refuse what is certainly none, such as a number."""


def decls_of(tools: object) -> ToolDecls:
    """Return the declarations of tools in any form that ToolDecls accepts, or of functions by name."""
    if type(tools) is ToolDecls:
        return tools
    if is_object(tools) and tools and all(map(callable, tools.values())):
        return ToolDecls([ToolDecl.of(function, name=name) for name, function in tools.items()])
    return ToolDecls(tools)


async def awaited_decls(tools: object) -> ToolDecls:
    """Return the declarations of tools as `decls_of` does; await toolsets."""
    if type(tools) is ToolDecls or is_object(tools):
        return decls_of(tools)
    entries: list[object] = [*flat(tools)]
    for place, item in enumerate(entries):
        if isinstance(item, ResolvableTools):
            entries[place] = await item.aresolve()
    return ToolDecls(entries)


def known_decls(sources: object) -> ToolDecls | None:
    """Return the declarations of listed sources, if all are unchanged since the last time."""
    if not sources or not isinstance(sources, (list, tuple)):
        return None
    decls = known_declarations(cast("list[object]", sources))
    if decls is None:
        return None
    result = object.__new__(ToolDecls)
    tools = tuple(decls)
    _fill(result, tools, tools)
    return result


def _fill(decls: ToolDecls, entries: tuple[ToolDecl | NativeTool, ...], tools: tuple[ToolDecl, ...]) -> None:
    by_name = {decl.name: decl for decl in tools}
    if len(by_name) != len(tools):
        names = [decl.name for decl in tools]
        name, _ = Counter(names).most_common(1)[0]
        fix = "Rename one: ToolDecl.of(source, name=...)."
        reason = f"is declared {names.count(name)} times"
        raise InvalidToolDecl(reason, code="duplicate_name", tool=name, fix=fix)
    # BaseModel's own constructor would validate and copy the declarations that are given.
    put = object.__setattr__
    put(decls, "__dict__", {"tools": tools, "entries": entries, "by_name": by_name})
    put(decls, "__pydantic_fields_set__", {"tools", "entries"})
    put(decls, "__pydantic_extra__", None)
    put(decls, "__pydantic_private__", None)


def flat(value: object, levels: int = _MOST_NESTED) -> Iterator["ToolDecl | NativeTool | ResolvableTools"]:
    """Yield the tools of a source, or of sources in nested lists, in order. A toolset is one item."""
    if isinstance(value, (ToolDecl, NativeTool, ResolvableTools)):
        yield value
    elif _is_decls(value):
        yield from value.entries
    elif is_native(value):
        yield native_tool(value)
    elif (decls := declarations_of(value)) is not None:
        yield from decls
    elif is_json_text(value):
        yield from flat(decode(value), levels)
    elif not _may_hold_sources(value):
        raise unknown_source(value)
    elif not levels:
        raise InvalidToolDecl(f"sources nest deeper than {_MOST_NESTED} levels", code="unknown_source")
    else:
        for item in value:
            yield from flat(item, levels - 1)
