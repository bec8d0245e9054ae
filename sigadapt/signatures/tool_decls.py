"""ToolDecls: the tools of a turn, and the type of a signature's tools field.

It accepts functions, dicts, MCP tools and so on, and makes a ToolDecl of each (`sources/`).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar, cast, runtime_checkable
from weakref import ref

import dspy
import pydantic
from dspy.adapters.types.base_type import Type
from pydantic_core import core_schema

from sigadapt.errors import InvalidSignature, InvalidToolDecl
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.json_values import (
    Json,
    closest,
    compact,
    cut,
    is_iterable,
    is_object,
    listed,
)
from sigadapt.signatures.confirmation import Ask, asking_first
from sigadapt.signatures.native_tools import NativeTool, is_native
from sigadapt.signatures.rendering import Rendered, Shown, rendered_decls
from sigadapt.signatures.sources import is_source, unknown_source
from sigadapt.signatures.sources.dicts import decode, is_json_text
from sigadapt.signatures.sources.runnable import SeveralTools
from sigadapt.signatures.tool_decl import (
    DeclarationText,
    ToolDecl,
    bare_form,
    declarations_of,
    known_declaration,
)

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(pydantic.BaseModel)

MOST_NESTED = 16
"""How many lists of sources may be within one another."""

_MOST_NAMES = 20
_END = object()
_STRICT = ("strict",)  # what a tool that is not a function counts as
_T = TypeVar("_T")


@runtime_checkable
class _Resolvable(Protocol):
    """A `Toolset`, which is defined above this file."""

    def resolve(self) -> "ToolDecls": ...

    async def aresolve(self) -> "ToolDecls": ...


class _TakesSources(ModelMetaclass):
    """Make `isinstance(value, ToolDecls)` true for every value that a ToolDecls field accepts.

    DSPy's Predict runs `isinstance` on every input before any adapter runs, and logs a warning if it is
    false. A list of functions would log one on every call, and DSPy has no other hook. So it is true for a
    ToolDecls, a source, and iterables of sources, and false for values that the field refuses.

    Code that must know whether a value really is a ToolDecls uses `type(value)`, as this file does. Pydantic
    does not use `isinstance`, because ToolDecls has its own core schema.
    """

    def __instancecheck__(self, instance: Any) -> bool:
        return issubclass(type(instance), self) or _could_be_tools(instance, MOST_NESTED)


def _could_be_tools(value: object, levels: int) -> bool:
    if isinstance(value, (list, tuple)):  # asked of each input of each call
        items = cast("list[object]", value)
        return levels > 0 and all(_could_be_tools(item, levels - 1) for item in items)
    if issubclass(type(value), (ToolDecl, ToolDecls, NativeTool)) or is_source(value) or is_native(value):
        return True
    # Not looked inside: that would use up an iterator, and JSON text may be long.
    return may_hold_sources(value) or is_json_text(value) or isinstance(value, _Resolvable)


def may_hold_sources(value: object) -> TypeGuard[Iterable[object]]:
    """Return whether a value may hold sources. Not for a value that is a source itself."""
    refused = (str, bytes, bytearray, Mapping, AbstractSet, type, GenericAlias, pydantic.BaseModel)
    return is_iterable(value) and not isinstance(value, refused) and not hasattr(value, "aresolve")


def _is_decls(value: object) -> TypeGuard["ToolDecls"]:
    return issubclass(type(value), ToolDecls)  # `isinstance` is wider, as `_TakesSources` says


class CanonicalTools(list[Json]):
    """The tools of a list as a request holds them, with what the floors above make of them. Not changed.

    The list of the same unchanged tools is the same object in each request. A copy is a plain list.
    """

    def __init__(self, tools: Iterable[Json]) -> None:
        super().__init__(tools)
        self.kept: dict[Any, Any] = {}
        """What `made_once` made of these tools alone, by a key that says what and for which route."""

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    @cached_property
    def is_plain(self) -> bool:
        """Whether every tool is plain."""
        return all(map(is_plain, self))


def is_plain(tool: Json) -> bool:
    """Return whether a tool is a function with name, description and parameters, which every wire takes."""
    return len(tool) == 2 and "strict" not in tool.get("function", _STRICT)


def made_once(tools: Sequence[Json], key: Any, make: Callable[[], _T]) -> _T:
    """Return what is made of tools alone, made once for the canonical tools of a ToolDecls."""
    kept = tools.kept if isinstance(tools, CanonicalTools) else {}
    if key not in kept:
        kept[key] = make()
    return kept[key]


class ToolDecls(Shown, Type, SeveralTools, metaclass=_TakesSources):
    """The tools declared for a turn, in order. Immutable.

    A signature's input field of this type accepts whatever `sources` may be. It is saved as a list of dicts,
    and accepts that list too.

    Native tools, which the provider runs itself (`native_tools.py`), are in `entries` and in `to_openai()`.
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
        decls = _before(sources)
        entries = tuple(_flat(sources)) if decls is None else decls
        tools = tuple([entry for entry in entries if isinstance(entry, ToolDecl)]) if decls is None else decls
        by_name = _fill(self, tools, entries)
        if len(by_name) != len(tools):
            names = [decl.name for decl in tools]
            name = next(name for n, name in enumerate(names) if name in names[:n])
            fix = "Rename one: ToolDecl.of(source, name=...)."
            reason = f"is declared {names.count(name)} times"
            raise InvalidToolDecl(reason, code="duplicate_name", tool=name, fix=fix)

    @classmethod
    def description(cls) -> str:
        """Return nothing, because a request holds the tools itself, or refuse DSPy's own adapter.

        Raises:
            InvalidSignature: `forgotten_adapter`, under DSPy's own adapter, with the line to add.
        """
        # DSPy's adapter would write `<function f at 0x7f...>` into the prompt and read no call. Before a
        # request it asks the type for nothing but this description.
        settings: Any = dspy.settings
        adapter = settings.adapter
        if not hasattr(adapter, "fills_tool_fields"):
            own = "ChatAdapter" if adapter is None else type(adapter).__name__
            ours = (
                own if own in ("ChatAdapter", "JSONAdapter", "XMLAdapter", "BAMLAdapter") else "ChatAdapter"
            )
            raise InvalidSignature(
                f"DSPy's own {own} cannot fill a field of type sigadapt.ToolDecls",
                code="forgotten_adapter",
                fix=f"Add `dspy.configure(adapter=sigadapt.{ours}())`.",
            )
        return ""

    def format(self) -> Any:
        """Return the tools as `to_openai` does."""
        return self.to_openai()

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
                call, and may be async. For any other answer the tool fails with `PermissionError`, and the
                model reads that the user rejected the call.

        Example:
            >>> pay = ToolDecl("pay", requires_confirmation=True, func=lambda eur: f"paid {eur}")
            >>> [tool] = ToolDecls([pay]).confirmed_by(lambda name, args, hint: False).to_dspy()
            >>> tool(eur=5)
            Traceback (most recent call last):
            PermissionError: The user rejected this call. It was not run.
        """
        entries = [asking_first(each, ask) if isinstance(each, ToolDecl) else each for each in self.entries]
        return ToolDecls(entries)

    def fingerprint(self) -> str:
        """Return a text that is the same, in every process, exactly when the tools in a request are the same.

        Returns:
            The SHA-256 of `to_openai()` as compact JSON in UTF-8, in hexadecimal. Order counts, because
            providers' prompt caches compare bytes.

        Example:
            >>> ToolDecls([{"name": "now"}]).fingerprint()[:8]
            '98e1bbb6'
        """
        return hashlib.sha256(compact(self.to_openai()).encode()).hexdigest()

    @cached_property
    def canonical(self) -> "CanonicalTools":
        """The result of `to_openai()`, made only once. Requests share it and must not change it."""
        if not self.tools or len(self.tools) != len(self.entries):
            return CanonicalTools(self.to_openai())
        known = _canonical(self.tools)
        if known is None:
            known = CanonicalTools(self.to_openai())
            self.tools[0].text.last_list = _others(self.tools), known
        return known

    def flaw_of(self, name: str, args: Json) -> Flaw | None:
        """Check a call against these declarations, without running anything.

        Args:
            name: the name that the model gave.
            args: the decoded arguments.

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
        if self.has_client_tool(name):
            return None
        return Flaw("unknown_tool", _unknown(name, list(by_name)))

    def has_client_tool(self, name: str) -> bool:
        """Return whether a tool in a provider's own words, which the program runs, is called by this name.

        Example:
            >>> ToolDecls([{"type": "bash_20250124", "name": "bash"}]).has_client_tool("bash")
            True
        """
        return any(name in entry.client_names for entry in self.entries if isinstance(entry, NativeTool))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "ToolDecls":
        """Return this object, which is immutable; with `update={"tools": ...}`, a new one of those tools.

        Example:
            >>> decls = ToolDecls([{"name": "now"}])
            >>> decls.model_copy(deep=True) is decls
            True
        """
        return type(self)(update["tools"]) if update else self

    def __copy__(self) -> "ToolDecls":
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "ToolDecls":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entries,)

    def __eq__(self, other: object) -> bool:
        return _is_decls(other) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        names = (repr(entry.name) if isinstance(entry, ToolDecl) else str(entry) for entry in self.entries)
        return f"ToolDecls([{', '.join(names)}])"

    __str__ = __repr__

    def _rendered(self) -> Rendered:
        return rendered_decls(self)

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


def decls_of(tools: object) -> ToolDecls:
    """Return the declarations of tools in any form that ToolDecls takes, or of functions by name.

    Raises:
        InvalidToolDecl: as ToolDecls.
    """
    if type(tools) is ToolDecls:
        return tools
    if is_object(tools) and tools and all(map(callable, tools.values())):
        return ToolDecls([ToolDecl.of(function, name=name) for name, function in tools.items()])
    return ToolDecls(tools)


def known_decls(sources: object) -> ToolDecls | None:
    """Return the current declarations of a list of functions or MCP tools that was declared before."""
    decls = _before(sources)
    canonical = None if decls is None else _canonical(decls)
    if canonical is None:
        return None
    known = object.__new__(ToolDecls)
    _fill(known, decls, decls)
    vars(known)["canonical"] = canonical
    return known


def _before(sources: object) -> tuple[ToolDecl, ...] | None:
    """Return a declaration of each source of a list, if all were declared before and none has changed."""
    if not sources or not isinstance(sources, (list, tuple)):
        return None
    decls: list[ToolDecl] = []
    for source in cast("list[object]", sources):
        decl = known_declaration(source)
        if decl is None:
            return None
        decls.append(decl)
    return tuple(decls)


def _canonical(decls: tuple[ToolDecl, ...]) -> CanonicalTools | None:
    """Return these tools as a request holds them, if the first was last followed by the same ones."""
    followed = decls[0].text.last_list
    if followed is None or followed[0] != _others(decls):
        return None
    return followed[1]


def _others(decls: tuple[ToolDecl, ...]) -> tuple[ref[DeclarationText], ...]:
    return tuple([ref(decl.text) for decl in decls[1:]])


# The setters of a pydantic model's slots; `object.__setattr__` would look each up by name.
_put_values, _put_fields_set, _put_extra, _put_private = (
    vars(pydantic.BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
_FIELDS = {"tools", "entries"}


def _fill(decls: ToolDecls, tools: Any, entries: Any) -> dict[str, ToolDecl]:
    """Set the fields, and return the tools by name."""
    # BaseModel's own constructor would validate and copy the declarations that are given.
    by_name = {decl.name: decl for decl in tools}
    _put_values(decls, {"tools": tools, "entries": entries, "by_name": by_name})
    _put_fields_set(decls, _FIELDS)
    _put_extra(decls, None)
    _put_private(decls, None)
    return by_name


def _flat(sources: object) -> Iterator[ToolDecl | NativeTool]:
    pending: list[Iterator[object]] = [iter((sources,))]
    while pending:
        item = next(pending[-1], _END)
        if item is _END:
            pending.pop()
        elif isinstance(item, (ToolDecl, NativeTool)):
            yield item
        elif _is_decls(item):
            yield from item.entries
        elif is_native(item):
            yield NativeTool(item)
        elif is_json_text(item):
            pending.append(iter((decode(item),)))
        elif (decls := declarations_of(item)) is not None:
            yield from decls
        elif not may_hold_sources(item):
            yield from _resolve(item)
        elif len(pending) > MOST_NESTED:
            raise InvalidToolDecl(f"sources nest deeper than {MOST_NESTED} levels", code="unknown_source")
        else:
            pending.append(iter(item))


def _resolve(item: object) -> tuple[ToolDecl | NativeTool, ...]:
    if not isinstance(item, _Resolvable):
        raise unknown_source(item)
    return item.resolve().entries


def _unknown(name: str, declared: list[str]) -> str:
    if not declared:
        return f"no tool {cut(repr(name))} is declared; this turn has no tools"
    names = listed(map(repr, declared), _MOST_NAMES, ", ")
    near = closest(name, declared)
    hint = f". Did the model mean {near!r}?" if near else ""
    return f"no tool {cut(repr(name))} is declared, only {names}{hint}"
