"""Tool declarations: ToolDecl, what one tool is, and ToolDecls, the collection a signature's field takes.

A declaration is checked when it is made (rule 4) and cannot be changed. Its schema is the object its author
gave, not a copy: changing that object afterwards changes what is declared, unchecked. The dicts around the
schema that `to_openai` returns are new ones on every call, so a caller may edit those.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import GenericAlias
from typing import TYPE_CHECKING, Any, NoReturn, cast

import jsonschema_rs
import pydantic
from pydantic_core import core_schema

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.arguments import Flaw, compact, shown
from sigadapt.signatures.native_tools import NativeTool, is_native
from sigadapt.signatures.near_miss import near_miss
from sigadapt.signatures.schema import check, check_json, compiled, flaw_in
from sigadapt.signatures.sources import is_source, read_source, unknown_source
from sigadapt.signatures.sources.facts import Facts
from sigadapt.signatures.sources.json_text import decoded, is_json_text
from sigadapt.signatures.subschemas import Json

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(pydantic.BaseModel)

_MOST_NESTED = 16
_MOST_NAMES_TOLD = 20
_END = object()
_STARTS_ONLY = "This call only starts the work; its result comes later. Do not repeat the call meanwhile."


def _no_arguments() -> Json:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True)
class ToolDecl:
    """One tool as a model is told of it.

    Args:
        name: the name, kept as given; what a provider would refuse travels under an alias (rule 10).
        description: what the tool is for.
        parameters: the arguments' JSON Schema, of an object. A missing or empty one declares a tool without
            arguments and becomes `{"type": "object", "properties": {}}`; any other is kept as it is.
        returns: the result's JSON Schema, where it is known.
        strict: whether a provider's strict mode is asked for; None says nothing (rule 9).
        long_running: whether the tool only starts something, whose result comes later. A note at the end of
            the description tells the model so.
        requires_confirmation: whether a person must agree to each call, or a function of the arguments that
            says so. Saved, a function becomes True.
        extras: what the source said beside the function, such as `cache_control` or MCP annotations.
        func: the Python object behind the tool, for the caller. Never called, saved or compared.

    Raises:
        InvalidToolDecl: `missing_name`, `invalid_field`, `invalid_schema` or `remote_ref`.

    Example:
        >>> decl = ToolDecl("now", "The time.")
        >>> decl.to_openai()["function"]["parameters"]
        {'type': 'object', 'properties': {}}
    """

    name: str
    description: str = ""
    parameters: Json = field(default_factory=_no_arguments)
    returns: Json | None = None
    strict: bool | None = None
    long_running: bool = False
    requires_confirmation: bool | Callable[..., Any] = False
    extras: Json | None = None
    func: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_fields(self)
        if self.parameters in (None, {}):
            object.__setattr__(self, "parameters", _no_arguments())
        self.__dict__["_validator"] = check(self.parameters, tool=self.name)
        for part in (self.returns, self.extras):
            check_json(part, tool=self.name)

    @classmethod
    def of(
        cls,
        source: object,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Json | None = None,
        returns: Json | None = None,
        strict: bool | None = None,
        long_running: bool = False,
        requires_confirmation: bool | Callable[..., Any] = False,
    ) -> "ToolDecl":
        """Declare the tool that a source is, with whatever is given in place of what the source says.

        Args:
            source: a callable, a pydantic model class, a `dspy.Tool`, a DSPy signature or module, an MCP or
                LangChain tool, a dict in a provider's shape or its JSON text, or a ToolDecl.
            name: see ToolDecl, for this and the others; each replaces what the source says.
            description: likewise.
            parameters: likewise; the source's own schema or signature is then not looked at.
            returns: likewise.
            strict: likewise.
            long_running: likewise, where true.
            requires_confirmation: likewise, where true.

        Raises:
            InvalidToolDecl: also `unknown_source`, and `underivable` for a signature without a JSON Schema.

        Example:
            >>> def book(room: int, note: str = "") -> bool:
            ...     '''Book a room.'''
            >>> ToolDecl.of(book, name="book_room").name
            'book_room'
        """
        given = {
            "name": name,
            "description": description,
            "parameters": parameters,
            "returns": returns,
            "strict": strict,
            "long_running": long_running or None,
            "requires_confirmation": requires_confirmation or None,
        }
        given = {key: value for key, value in given.items() if value is not None}
        if isinstance(source, ToolDecl):
            return replace(source, **given) if given else source
        facts = read_source(decoded(source) if is_json_text(source) else source, parameters)
        if facts is None:
            raise unknown_source(source)
        if len(facts) != 1:
            raise InvalidToolDecl(f"{len(facts)} tools, not one", code="unknown_source", fix="Use ToolDecls.")
        derived = facts[0].derived and "returns" not in given
        return _declared(facts[0]._replace(**given, derived=derived))

    def to_openai(self) -> Json:
        """The declaration as OpenAI's chat completions take it; `strict` only where it was asked for.

        Returns:
            New dicts around this declaration's own schema.

        Example:
            >>> ToolDecl("now", "The time.", strict=False).to_openai()["function"]["strict"]
            False
        """
        function: Json = {"name": self.name, "description": self.told, "parameters": self.parameters}
        if self.strict is not None:
            function["strict"] = self.strict
        return {"type": "function", "function": function}

    @property
    def told(self) -> str:
        """The description as the model sees it: with a note, where the tool is long-running.

        Example:
            >>> print(ToolDecl("build", "Build it.", long_running=True).told.partition(";")[0])
            Build it.
            <BLANKLINE>
            This call only starts the work
        """
        if not self.long_running:
            return self.description
        return f"{self.description}\n\n{_STARTS_ONLY}" if self.description else _STARTS_ONLY

    @property
    def size(self) -> int:
        """The bytes of the declaration in a request: of `to_openai()` as compact JSON in UTF-8.

        Example:
            >>> ToolDecl("now").size
            109
        """
        return len(compact(self.to_openai()).encode())

    def flaw_of(self, args: Json) -> Flaw | None:
        """Say what keeps arguments from fitting the schema: None, or a Flaw `schema_mismatch`."""
        return flaw_in(args, self._validator, self.name)

    def misfits(self, args: Json) -> frozenset[str]:
        """Name the arguments whose own value does not fit the schema; none for what is missing or too much.

        Example:
            >>> integers = {"type": "object", "additionalProperties": {"type": "integer"}}
            >>> sorted(ToolDecl("f", parameters=integers).misfits({"a": 1, "b": "2"}))
            ['b']
        """
        errors = self._validator.iter_errors(args)
        return frozenset(str(error.instance_path[0]) for error in errors if error.instance_path)

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        return compiled(self.parameters, tool=self.name)

    def __hash__(self) -> int:
        return hash((self.name, self.description))

    def __deepcopy__(self, memo: dict[int, Any]) -> "ToolDecl":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ToolDecl.of, (_saved(self),)  # as JSON has it: without functions


def altered(decl: ToolDecl, **fields: Any) -> ToolDecl:
    """The declaration with other values for fields that are no schema, so that none is checked again.

    Raises:
        InvalidToolDecl: `missing_name` or `invalid_field`.

    Example:
        >>> altered(ToolDecl("read"), name="fs_read").name
        'fs_read'
    """
    copy = object.__new__(ToolDecl)
    copy.__dict__.update(decl.__dict__, **fields)
    _check_fields(copy)
    return copy


def _declared(facts: Facts) -> ToolDecl:
    fields = facts._asdict()
    if fields["description"] is None:
        fields["description"] = ""
    if not fields.pop("derived") or fields["extras"] is not None:
        return ToolDecl(**fields)
    decl = object.__new__(ToolDecl)  # not __init__: a derived schema was checked when it was derived
    decl.__dict__.update(fields)
    _check_fields(decl)
    return decl


def _saved(decl: ToolDecl | NativeTool) -> Json:
    """The declaration in the bare shape that `wire_shapes.py` reads, without what is at its default."""
    if isinstance(decl, NativeTool):
        return decl.to_openai()
    saved: Json = {"name": decl.name, "description": decl.description, "parameters": decl.parameters}
    for key in ("returns", "strict", "extras"):
        if getattr(decl, key) is not None:
            saved[key] = getattr(decl, key)
    for key in ("long_running", "requires_confirmation"):
        if getattr(decl, key):
            saved[key] = True
    return saved


_FIELDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("name", str),
    ("description", str),
    ("returns", (dict, type(None))),
    ("strict", (bool, type(None))),
    ("long_running", bool),
    ("extras", (dict, type(None))),
)


def _check_fields(decl: ToolDecl) -> None:
    if decl.name in (None, "") or (type(decl.name) is str and not decl.name.strip()):
        raise InvalidToolDecl(
            "a tool has no name", code="missing_name", fix="Give it one: ToolDecl.of(source, name=...)."
        )
    for key, kinds in _FIELDS:
        value = getattr(decl, key)
        if not isinstance(value, kinds):
            _refuse_field(decl, f"its {key} cannot be {shown(repr(value))} ({type(value).__name__})")
        if isinstance(value, str) and not value.isascii():
            _check_text(decl, key, value)
    if not isinstance(decl.requires_confirmation, bool) and not callable(decl.requires_confirmation):
        _refuse_field(decl, "its requires_confirmation is neither true, false nor a function")


def _check_text(decl: ToolDecl, key: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        _refuse_field(decl, f"its {key} is no text ({error.reason})")


def _refuse_field(decl: ToolDecl, reason: str) -> NoReturn:
    raise InvalidToolDecl(reason, code="invalid_field", tool=ascii(decl.name)[1:-1])


class _TakesSources(ModelMetaclass):
    """What makes `isinstance(value, ToolDecls)` true for everything that a ToolDecls field takes.

    DSPy's Predict asks this of every input before any adapter runs and logs a warning where the answer is no.
    For a list of functions that would be a warning on every call, and there is no other hook. So the class
    says yes to itself, to a source, and to lists and other iterables of sources; and no to the rest, which it
    refuses as an input as well. Code that must know whether a value is a ToolDecls asks for its type, as this
    file does. Pydantic does not ask, because ToolDecls brings its own core schema.
    """

    def __instancecheck__(self, instance: Any) -> bool:
        return issubclass(type(instance), self) or _could_be_tools(instance, _MOST_NESTED)


def _could_be_tools(value: object, levels: int) -> bool:
    if issubclass(type(value), (ToolDecl, ToolDecls, NativeTool)) or is_source(value) or is_native(value):
        return True
    if isinstance(value, (list, tuple)):
        return levels > 0 and all(
            _could_be_tools(item, levels - 1) for item in cast("Iterable[object]", value)
        )
    # An iterator would be used up by a look inside, and text is as long as it is.
    return is_iterable(value) or is_json_text(value) or _is_toolset(value)


def is_iterable(value: object) -> bool:
    """Whether a value that is no source is one that may hold sources."""
    refused = (str, bytes, bytearray, Mapping, AbstractSet, type, GenericAlias, pydantic.BaseModel)
    return isinstance(value, Iterable) and not isinstance(value, refused)


def _is_toolset(value: object) -> bool:
    from sigadapt.signatures.toolset import Toolset  # noqa: PLC0415  (it gives a ToolDecls)

    return isinstance(value, Toolset)


class ToolDecls(pydantic.BaseModel, metaclass=_TakesSources):
    """The tools declared for a turn, in order. Immutable.

    A signature's input field of this type takes a ToolDecls, one source, or an iterable of sources; iterables
    may hold iterables and other ToolDecls. Saved, it is a list of dicts, which it takes back.

    It may hold toolsets too, and tools that the provider runs (`native_tools.py`). A signature's field asks a
    toolset with the request; made by itself, a ToolDecls asks it without one. Native tools stand in `entries`
    and in `to_openai`; `len`, iteration, names and validation are of functions alone.

    Args:
        sources: one source (see `ToolDecl.of`; a dict in Gemini's shape may declare several tools), or an
            iterable of them. A set is refused: it has no order, and the same tools are to give the same
            request.

    Raises:
        InvalidToolDecl: as ToolDecl and ToolDecl.of; `duplicate_name` for two tools of one name. It is this
            error in a pydantic model's field too, not a ValidationError.

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
        entries = tuple(_flat(sources))
        tools = tuple(entry for entry in entries if isinstance(entry, ToolDecl))
        if len({decl.name for decl in tools}) != len(tools):
            _refuse_duplicate(tools)
        # BaseModel's own constructor would validate and copy what was just made.
        object.__setattr__(self, "__dict__", {"tools": tools, "entries": entries})
        object.__setattr__(self, "__pydantic_fields_set__", {"tools", "entries"})
        object.__setattr__(self, "__pydantic_extra__", None)
        object.__setattr__(self, "__pydantic_private__", None)

    @cached_property
    def _by_name(self) -> dict[str, ToolDecl]:
        return {decl.name: decl for decl in self.tools}

    def __len__(self) -> int:
        return len(self.tools)

    def __iter__(self) -> Iterator[ToolDecl]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.tools)

    def __getitem__(self, name: str) -> ToolDecl:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def to_openai(self) -> list[Json]:
        """The declarations as `request["tools"]`, each as `ToolDecl.to_openai` has it; native ones as given.

        Example:
            >>> [tool["function"]["name"] for tool in ToolDecls([{"name": "now"}]).to_openai()]
            ['now']
        """
        return [entry.to_openai() for entry in self.entries]

    def fingerprint(self) -> str:
        """A text that is the same, in every process, if and only if the same bytes go out.

        Returns:
            The SHA-256 of `to_openai()` as compact JSON in UTF-8, in hexadecimal. Order counts, because a
            provider's prompt cache goes by the bytes.

        Example:
            >>> ToolDecls([{"name": "now"}]).fingerprint()[:8]
            '98e1bbb6'
        """
        return hashlib.sha256(compact(self.to_openai()).encode()).hexdigest()

    @cached_property
    def canonical(self) -> list[Json]:
        """`to_openai`, made once: for requests, which do not change it."""
        return self.to_openai()

    def flaw_of(self, name: str, args: Json) -> Flaw | None:
        """Say why a call of a tool by that name with those arguments cannot be used, without running it.

        Args:
            name: the name that the model gave.
            args: the decoded arguments.

        Returns:
            None for a good call; else a Flaw `unknown_tool`, which names what is declared, or
            `schema_mismatch`, which tells every error and the path of the first.

        Example:
            >>> ToolDecls([{"name": "search"}]).flaw_of("serach", {}).message
            "no tool 'serach' is declared, only 'search'. Did the model mean 'search'?"
        """
        decl = self._by_name.get(name)
        if decl is None:
            return Flaw("unknown_tool", _unknown(name, list(self._by_name)))
        return decl.flaw_of(args)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "ToolDecls":  # noqa: ARG002
        """The same object, which cannot change; with `update={"tools": ...}`, a new one of those."""
        return type(self)(update["tools"]) if update else self

    def __copy__(self) -> "ToolDecls":
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "ToolDecls":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entries,)

    def __eq__(self, other: object) -> bool:
        return issubclass(type(other), ToolDecls) and self.entries == cast("ToolDecls", other).entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        names = (repr(entry.name) if isinstance(entry, ToolDecl) else str(entry) for entry in self.entries)
        return f"ToolDecls([{', '.join(names)}])"

    __str__ = __repr__

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        dicts = core_schema.list_schema(core_schema.dict_schema(core_schema.str_schema()))
        return core_schema.no_info_plain_validator_function(
            lambda value: value if issubclass(type(value), cls) else cls(value),
            json_schema_input_schema=dicts,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda decls: [_saved(entry) for entry in decls.entries], return_schema=dicts
            ),
        )


def _flat(sources: object) -> Iterator[ToolDecl | NativeTool]:
    pending: list[Iterator[object]] = [iter((sources,))]
    while pending:
        item = next(pending[-1], _END)
        if item is _END:
            pending.pop()
        elif isinstance(item, (ToolDecl, NativeTool)):
            yield item
        elif issubclass(type(item), ToolDecls):
            yield from cast("ToolDecls", item).entries
        elif is_native(item):
            yield NativeTool(item)
        elif is_json_text(item):
            pending.append(iter((decoded(item),)))
        elif (facts := read_source(item)) is not None:
            yield from map(_declared, facts)
        elif not is_iterable(item):
            yield from _resolved(item)
        elif len(pending) > _MOST_NESTED:
            raise InvalidToolDecl(f"sources nested deeper than {_MOST_NESTED} levels", code="unknown_source")
        else:
            pending.append(iter(cast("Iterable[object]", item)))


def _resolved(item: object) -> tuple[ToolDecl | NativeTool, ...]:
    if not _is_toolset(item):
        raise unknown_source(item)
    return cast("Any", item).resolve().entries


def _refuse_duplicate(tools: tuple[ToolDecl, ...]) -> NoReturn:
    seen: set[str] = set()
    name = next(decl.name for decl in tools if decl.name in seen or seen.add(decl.name))
    count = sum(decl.name == name for decl in tools)
    fix = "Rename one: ToolDecl.of(source, name=...)."
    raise InvalidToolDecl(f"is declared {count} times", code="duplicate_name", tool=name, fix=fix)


def _unknown(name: str, declared: list[str]) -> str:
    if not declared:
        return f"no tool {shown(repr(name))} is declared, nor any other"
    told = ", ".join(repr(known) for known in declared[:_MOST_NAMES_TOLD])
    rest = f" and {len(declared) - _MOST_NAMES_TOLD} more" if len(declared) > _MOST_NAMES_TOLD else ""
    near = near_miss(name, declared)
    hint = f". Did the model mean {near!r}?" if near else ""
    return f"no tool {shown(repr(name))} is declared, only {told}{rest}{hint}"
