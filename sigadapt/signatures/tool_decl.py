"""ToolDecl: one tool as a model sees it.

A declaration is checked when it is made (rule 4) and cannot be changed. Its schema is the object its author
gave, not a copy: changing that object afterwards changes what is declared, unchecked. The dicts around the
schema that `to_openai` returns are new ones on every call, so a caller may edit those.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.check import Checked, check, check_json, flaw_in, judgements_in, misfitting
from sigadapt.schemas.json_values import Json, compact, cut
from sigadapt.signatures.sources import describe_source, unknown_source
from sigadapt.signatures.sources.dicts import decode, is_json_text
from sigadapt.signatures.sources.raw_decl import RawDecl

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
        raw = describe_source(decode(source) if is_json_text(source) else source, parameters)
        if raw is None:
            raise unknown_source(source)
        if len(raw) != 1:
            raise InvalidToolDecl(f"{len(raw)} tools, not one", code="unknown_source", fix="Use ToolDecls.")
        derived = raw[0].derived and "returns" not in given
        return declare(raw[0]._replace(**given, derived=derived))

    def to_openai(self) -> Json:
        """The declaration as OpenAI's chat completions take it; `strict` only where it was asked for.

        Returns:
            New dicts around this declaration's own schema.

        Example:
            >>> ToolDecl("now", "The time.", strict=False).to_openai()["function"]["strict"]
            False
        """
        function: Json = {
            "name": self.name,
            "description": self.model_description,
            "parameters": self.parameters,
        }
        if self.strict is not None:
            function["strict"] = self.strict
        return {"type": "function", "function": function}

    @property
    def model_description(self) -> str:
        """The description as the model sees it: with a note, where the tool is long-running.

        Example:
            >>> print(ToolDecl("build", "Build it.", long_running=True).model_description.partition(";")[0])
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
        return misfitting(args, self._validator)

    def judgements(self, args: Json, most: int) -> int:
        """Count how often a reader without memory judges the arguments and their parts, up to `most`.

        Zero where it is certain to be fewer.
        """
        return judgements_in(args, self._validator, most)

    @cached_property
    def _validator(self) -> Checked:
        return check(self.parameters, tool=self.name)

    def __hash__(self) -> int:
        return hash((self.name, self.description))

    def __deepcopy__(self, memo: dict[int, Any]) -> "ToolDecl":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ToolDecl.of, (saved(self),)  # as JSON has it: without functions


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


def declare(raw: RawDecl) -> ToolDecl:
    """Make the declaration that a source describes.

    Raises:
        InvalidToolDecl: as ToolDecl.
    """
    fields = raw._asdict()
    if fields["description"] is None:
        fields["description"] = ""
    if not fields.pop("derived") or fields["extras"] is not None:
        return ToolDecl(**fields)
    decl = object.__new__(ToolDecl)  # not __init__: a derived schema was checked when it was derived
    decl.__dict__.update(fields)
    _check_fields(decl)
    return decl


def saved(decl: ToolDecl) -> Json:
    """Write the declaration in the bare shape that `sources/dicts.py` reads, without what is at its default.

    Example:
        >>> saved(ToolDecl("now", "The time.", {"type": "object"}))
        {'name': 'now', 'description': 'The time.', 'parameters': {'type': 'object'}}
    """
    kept: Json = {"name": decl.name, "description": decl.description, "parameters": decl.parameters}
    for key in ("returns", "strict", "extras"):
        if getattr(decl, key) is not None:
            kept[key] = getattr(decl, key)
    for key in ("long_running", "requires_confirmation"):
        if getattr(decl, key):
            kept[key] = True
    return kept


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
            _refuse_field(decl, f"its {key} cannot be {cut(repr(value))} ({type(value).__name__})")
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
