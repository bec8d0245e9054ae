"""ToolDecl: the declaration of one tool, as a model sees it: a checked, immutable snapshot of its source.

Its schema is kept as text (one snapshot). What is sent and what calls are checked by are both made of that
text, so neither changes when somebody edits the author's schema or what a declaration returned.
"""

import pickle
import weakref
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from types import CodeType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Union, cast, get_args, get_origin, get_type_hints

import dspy
import jiter
from typing_extensions import Unpack

from sigadapt.display import Displayable, rendered_decl
from sigadapt.dspy_boundary.patches import TOOLS, install
from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, compact, cut, is_unicode, refuse_unknown
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import Schema, check, check_json
from sigadapt.signatures.saved_model import Immutable
from sigadapt.signatures.sources import describe_source, unknown_source
from sigadapt.signatures.sources.dicts import DECL_FIELDS, DeclFields, Fields, decode, is_json_text
from sigadapt.signatures.sources.dspy_tools import DeclaredTool
from sigadapt.signatures.sources.fingerprint import DeclaredCache, fingerprint_of
from sigadapt.signatures.sources.runnable import Description, Runnable
from sigadapt.signatures.tool_results.function_calls import is_timeout
from sigadapt.signatures.tool_results.plain_values import refuse_uncheckable

REQUEST = "sigadapt_request_confirmation"
"""The tool name of a request for confirmation. Models never see it, and no tool may have it."""

_STARTS_ONLY = "This call only starts the work; its result comes later. Do not repeat the call meanwhile."


_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
_INPUT_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""What the arguments of a custom tool's call fit: its text, under the key that sigadapt gives it."""


class DeclarationText:
    """The JSON text of a declaration by part, with what is made of it; one for each snapshot of a source."""

    __slots__ = ("__weakref__", "last_list", "parts", "schema")

    def __init__(self, parts: dict[str, bytes], schema: Schema) -> None:
        self.parts = parts
        self.schema = schema  # the compiled `parameters`
        self.last_list: tuple[tuple[weakref.ref[DeclarationText], ...], Any] | None = None
        """The tools after this one in the last list that it was the first of, and that list as it is sent."""

    def part(self, name: str) -> Any:
        """Return a part as a new object."""
        return jiter.from_json(self.parts[name])


@dataclass(frozen=True, eq=False)
class ToolSearch(Immutable):
    """How deferred tools are found: by a function of a query and the tools, or by the adapter."""

    function: Callable[..., Any] | None = None
    most: int = 8  # searches that are answered in one call

    def __reduce__(self) -> tuple[Any, ...]:
        # An object of its own in a pickle, so that the tools of one search have one search there, too.
        return from_pickles, (ToolSearch, {"most": self.most}, {"function": by_value(self.function)})


def _nothing() -> Any:
    return None  # not as a plain default, which `__getattr__` would not be asked for


@dataclass(frozen=True)
class ToolDecl(Displayable, Immutable, Runnable):
    """The declaration of one tool.

    DSPy accepts it in place of a function, such as in `dspy.ReActV2(tools=[...])`.

    Args:
        name: the name, kept as given. If a provider would refuse it, it is sent as an alias (names travel).
        description: what the tool is for.
        parameters: the arguments' JSON Schema, which describes an object. A missing or empty one declares a
            tool without arguments and becomes `{"type": "object", "properties": {}}`.
        returns: the result's JSON Schema; None if unknown.
        strict: whether to ask for the provider's strict mode; None leaves the flag out (strict on request).
        long_running: whether a call only starts work whose result comes later. The model reads this in a note
            at the end of the description.
        requires_confirmation: whether a person must approve each call; or a function of the arguments that
            returns a boolean or a Confirmation. A function is saved as True, and pickled as `LostFunction`
            describes.
        extras: any other fields of the source, unchanged: `cache_control`, `defer_loading`, MCP annotations.
            In a request they are next to `function`. If the provider has a place for one, it is sent there;
            otherwise it is dropped, with a `Change`.
        format: the form of a custom tool's text, as in OpenAI's Responses: `{"type": "text"}` or a grammar;
            `{}` if the tool does not say. None for a function. A custom tool is called with free text and
            has no `parameters`: its call's `args` are `{"input": text}`.
        search: how a deferred tool is found, as `Toolset.deferred` sets it. It is not saved as JSON.
        timeout: the most seconds that a call is waited for; None for no limit. It is the program's own: no
            provider is sent it, and it is not saved as JSON.
        sequential: whether the calls of a turn with this tool run one by one. It is the program's own, too.
        instructions: what the model is told beside the description while the tool is offered. sigadapt's
            adapters add it to the system text, once for all tools that have the same.
        check_result: whether a result that does not fit `returns` is a failed one. It is the program's own.
        hooks: objects around each call, as `ToolDecls.with_hooks` sets them. They are the program's own.
        external: whether the result of a call comes from elsewhere, such as a page or a queue: nothing runs
            here, and the run waits for the result (`InputNeeded`).
        func: the Python object behind the tool. No adapter calls it: the program does, or its agent. It is
            never compared or saved as JSON; for pickle, see `LostFunction`.

    Raises:
        InvalidToolDecl: `missing_name`, `invalid_field`, `invalid_schema` or `remote_ref`.

    Example:
        >>> decl = ToolDecl("now", "The time.")
        >>> decl.to_openai()["function"]["parameters"]
        {'type': 'object', 'properties': {}}
    """

    name: str
    description: str = ""
    parameters: Json = field(default_factory=_nothing)
    returns: Json | None = field(default_factory=_nothing)
    strict: bool | None = None
    long_running: bool = False
    requires_confirmation: bool | Callable[[dict[str, Any]], Any] = False
    extras: Json | None = field(default_factory=_nothing)
    format: Json | None = field(default_factory=_nothing)
    func: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    search: "ToolSearch | None" = field(default=None, compare=False, repr=False)
    timeout: float | None = field(default=None, compare=False, repr=False)
    sequential: bool = field(default=False, compare=False, repr=False)
    instructions: str = ""
    check_result: bool = field(default=False, compare=False, repr=False)
    hooks: tuple[object, ...] = field(default=(), compare=False, repr=False)
    external: bool = False

    text: ClassVar[DeclarationText]
    """The declaration as JSON text, of each its own: it is no field."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a new copy of a part, such as `parameters`: whoever edits it edits no declaration."""
            text = self.__dict__.get("text")
            if text is None or name not in text.parts:
                raise AttributeError(name)
            return text.part(name)

    def __post_init__(self) -> None:
        install(TOOLS)
        _check_fields(self)
        if self.format is not None:
            if self.parameters not in (None, {}, _NO_ARGUMENTS, _INPUT_SCHEMA):
                _refuse_field(self, "it has a format and parameters, but a custom tool takes text alone")
            if self.format and not isinstance(self.format.get("type"), str):
                _refuse_field(self, "its format has no type")
            self.__dict__["parameters"] = _INPUT_SCHEMA
        elif self.parameters in (None, {}):
            self.__dict__["parameters"] = _NO_ARGUMENTS
        checks = check(self.parameters, tool=self.name)
        for part in (self.returns, self.extras, self.format):
            check_json(part, tool=self.name)
        _keep_as_text(self, checks)

    @classmethod
    def of(cls, source: object, **overrides: Unpack[DeclFields]) -> "ToolDecl":
        """Declare one tool from a source.

        Args:
            source: a callable, a pydantic model class, a `dspy.Tool`, a DSPy signature or module, an MCP or
                LangChain tool, a dict in a provider's shape or its JSON text, or a ToolDecl.
            overrides: arguments of ToolDecl that are set in the place of the source's. With `parameters`, the
                source's own schema or signature is not read. None, and False for anything but `strict`, leave
                what the source says.

        Raises:
            InvalidToolDecl: as ToolDecl; `unknown_source` for a source that is not one tool; `underivable`
                for a signature without a JSON Schema.
            InvalidOption: for an argument of another name, with the name that it resembles.

        Example:
            >>> def book(room: int, note: str = "") -> bool:
            ...     '''Book a room.'''
            >>> ToolDecl.of(book, name="book_room").name
            'book_room'
        """
        unknown = {name: value for name, value in overrides.items() if name not in DECL_FIELDS}
        refuse_unknown("ToolDecl.of", unknown, DECL_FIELDS)
        own: dict[str, Any] = {
            name: value
            for name, value in overrides.items()
            if value is not None and (value is not False or name == "strict")
        }
        if isinstance(source, ToolDecl):
            return replace(source, **own) if own else source
        decoded_source = decode(source) if is_json_text(source) else source
        described = describe_source(decoded_source, own.get("parameters"))
        if described is None:
            raise unknown_source(source)
        if len(described) != 1:
            reason = f"expected a source of one tool, got one of {len(described)}"
            raise InvalidToolDecl(reason, code="unknown_source", fix="Use ToolDecls.")
        return declare({**described[0], **own})

    _rendering = rendered_decl

    def to_openai(self) -> Json:
        """Return the declaration in the shape of OpenAI's chat completions, with `extras` beside `function`.

        These are new dicts, which a caller may edit. `strict` is left out if None.

        Example:
            >>> ToolDecl("now", "The time.", strict=False).to_openai()["function"]["strict"]
            False
        """
        name = self.name
        description = self.model_description
        form = self.format
        strict = {} if self.strict is None else {"strict": self.strict}
        extras = self.extras or {}  # a new object each time
        if form is None:
            parameters = self.text.part("parameters")
            function = {"name": name, "description": description, "parameters": parameters, **strict}
            return {"type": "function", "function": function, **extras}
        custom: Json = {"name": name}
        if description:
            custom["description"] = description
        if form:
            grammar = {key: value for key, value in form.items() if key != "type"}
            custom["format"] = {"type": form["type"], "grammar": grammar} if grammar else form
        return {"type": "custom", "custom": custom, **strict, **extras}

    def to_dspy(self) -> dspy.Tool:
        """Return a `dspy.Tool` with this name, schema and function, for agents such as `dspy.ReActV2`.

        Under sigadapt's adapters it is declared as this declaration is. What an MCP tool answers comes as its
        content, and a ToolResult as its value. A failed one raises, and so does a returned exception.

        Raises:
            InvalidToolDecl: `no_function`, for a declaration without a function to run.

        Example:
            >>> def add(a: int, b: int) -> int:
            ...     return a + b
            >>> tool = ToolDecl.of(add, name="sum").to_dspy()
            >>> tool.name, tool(a=1, b=2)
            ('sum', 3)
        """
        return self._dspy_tool()(self)

    @staticmethod
    def _dspy_tool() -> type[Any]:
        """Return what `dspy.Tool(decl)` makes (`dspy_boundary/patches.py`)."""
        from sigadapt.signatures.tool_functions.agent_tool import (
            AgentTool,  # a door: tests/test_repository.py
        )

        return AgentTool

    @property
    def model_description(self) -> str:
        """The description as the model reads it: with a note if the tool is long-running.

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
        """The size of the declaration in a request: the bytes of `to_openai()` as compact JSON in UTF-8.

        Example:
            >>> ToolDecl("now").size
            109
        """
        return len(compact(self.to_openai()).encode())

    def flaw_of(self, args: Json) -> Flaw | None:
        """Check decoded arguments against the schema. Return None if they fit, else a Flaw `schema_mismatch`.

        Example:
            >>> ToolDecl("f", parameters={"type": "object", "required": ["a"]}).flaw_of({}).message
            'the arguments do not fit f: "a" is a required property'
        """
        return self.text.schema.flaw_of(args, self.name)

    def misfits(self, args: Json) -> frozenset[str]:
        """Return the names of arguments whose value does not fit. Missing and extra arguments are not named.

        Example:
            >>> integers = {"type": "object", "additionalProperties": {"type": "integer"}}
            >>> sorted(ToolDecl("f", parameters=integers).misfits({"a": 1, "b": "2"}))
            ['b']
        """
        return self.text.schema.misfits(args)

    def __hash__(self) -> int:
        return hash((self.name, self.description))

    def __reduce__(self) -> tuple[Any, ...]:
        functions: dict[str, bytes] = {}
        for key in ("func", "requires_confirmation"):
            if callable(function := getattr(self, key)):
                functions[key] = _by_value_or_lost(function, LostFunction(self.name, key))
        if self.hooks:
            functions["hooks"] = _by_value_or_lost(self.hooks, (LostHooks(self.name),))
        fields = {name: getattr(self, name) for name in _OWN if name not in ("func", "hooks")}
        return from_pickles, (_from_bare_form, {"source": bare_form(self), **fields}, functions)


ToolDecl.__doc__ = cast("Any", Description(ToolDecl.__doc__))


class LostFunction:
    """What stands for a function that pickle could not take; an error for who needs the function."""

    def __init__(self, tool: str, field: str) -> None:
        self.tool = tool
        self.field = field

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise the error that says why the function is not there, whatever the arguments."""
        raise InvalidToolDecl(
            f"its {self.field} is missing, because it could not be pickled",
            code="lost_function",
            tool=self.tool,
            fix="Declare the tool again where it is loaded.",
        )


class LostHooks:
    """What stands for hooks that pickle could not take: no call runs without them."""

    def __init__(self, tool: str) -> None:
        self.before_tool = LostFunction(tool, "hooks")


def by_value(value: object) -> bytes:
    """Pickle a value with cloudpickle, which also takes lambdas and what was made in a function."""
    import cloudpickle  # only who pickles needs it

    return cloudpickle.dumps(value)


def _by_value_or_lost(value: object, lost: object) -> bytes:
    try:
        return by_value(value)
    except Exception:  # noqa: BLE001  (whatever the classes of a program raise)
        return by_value(lost)


def from_pickles(make: Callable[..., Any], fields: dict[str, Any], pickles: dict[str, bytes]) -> Any:
    """Make an object of fields and of what `by_value` pickled."""
    return make(**fields, **{key: pickle.loads(each) for key, each in pickles.items()})  # noqa: S301  (inside a pickle)


def _from_bare_form(source: Json, **fields: Any) -> ToolDecl:
    return with_fields(ToolDecl.of(source), **fields)


def with_fields(decl: ToolDecl, **fields: Any) -> ToolDecl:
    """Return a copy of a declaration with other field values. Its schemas are not checked again."""
    copy = object.__new__(ToolDecl)
    text = DeclarationText(decl.text.parts, decl.text.schema)
    copy.__dict__.update({**decl.__dict__, "text": text, **fields})
    _check_fields(copy)
    return copy


def deferred(decl: ToolDecl, search: "ToolSearch") -> ToolDecl:
    """Return a copy of a declaration whose loading is deferred until a search finds it."""
    extras = {**(decl.extras or {}), "defer_loading": True}
    copy = with_fields(decl, search=search)
    copy.text.parts = {**decl.text.parts, "extras": compact(extras).encode()}
    copy.__dict__.pop("extras", None)
    return copy


_DECLARED: DeclaredCache[tuple[dict[str, Any], ...]] = DeclaredCache()
"""The fields of a source's declarations, without their functions."""


def known_declarations(sources: Sequence[object]) -> list[ToolDecl] | None:
    """Return the declarations of sources; None if one of them has changed since it was declared."""
    decls: list[ToolDecl] = []
    for source in sources:
        if isinstance(source, DeclaredTool):
            declaration = cast("ToolDecl | None", source.declaration)
            known = None if declaration is None else [declaration]
        else:
            known = _unchanged(source)
        if known is None:
            return None
        decls += known
    return decls


def _unchanged(source: object) -> list[ToolDecl] | None:
    declarations = _DECLARED.get(source)
    if declarations is None:
        return None
    function: Any = getattr(source, "func", None) if type(source) is dspy.Tool else source
    decls: list[ToolDecl] = []
    for members in declarations:
        decl = object.__new__(ToolDecl)
        decl.__dict__.update(members, func=function if callable(function) else None)
        decls.append(decl)
    return decls


def declarations_of(source: object) -> list[ToolDecl] | None:
    """Return the declarations of a source; None for a value that is no source."""
    known = known_declarations([source])
    if known is not None:
        return known
    fingerprint = fingerprint_of(source)  # before it is read: another thread may change it
    described = describe_source(source)
    if described is None:
        return None
    decls = [*map(declare, described)]
    without_functions = [{key: value for key, value in vars(decl).items() if key != "func"} for decl in decls]
    _DECLARED.put(source, tuple(without_functions), fingerprint)
    return decls


def declare(described: Fields) -> ToolDecl:
    """Make a declaration of what a source's file returned."""
    said: Fields = {"name": None}
    said |= {name: value for name, value in described.items() if value is not None}
    return ToolDecl(**said)


def _keep_as_text(decl: ToolDecl, schema: Schema) -> None:
    fields = decl.__dict__
    parts = {name: fields[name] for name in ("parameters", "returns", "extras", "format")}
    texts = {name: compact(part).encode() for name, part in parts.items() if part is not None}
    for name in texts:
        del fields[name]  # `__getattr__` reads it from the text
    fields["text"] = DeclarationText(texts, schema)


def bare_form(decl: ToolDecl) -> Json:
    """Return the declaration in the bare shape of `sources/dicts.py`, without fields at their default."""
    form: Json = {"name": decl.name, "description": decl.description}
    for name, default in _SAVED.items():
        value = getattr(decl, name)
        if value is not default and value != "":
            form[name] = True if callable(value) else value
    if decl.format is not None:
        del form["parameters"]  # which every custom tool has
    return form


def _kinds(hint: Any) -> tuple[type, ...]:
    """Return the types of values that a type hint allows."""
    hints = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(get_origin(each) or each for each in hints)


_HINTS = get_type_hints(ToolDecl)
_KINDS: dict[str, tuple[type, ...]] = {}
# A new field of a declaration is a line here and one in `sources/dicts.py`. With `compare=False` it is the
# program's own: it is neither sent nor saved as JSON.
_OWN: list[str] = []
_SAVED: dict[str, Any] = {}  # the others, with their default
for _field in fields(ToolDecl):
    if _field.name not in ("parameters", "timeout"):  # which have checks of their own
        _KINDS[_field.name] = _kinds(_HINTS[_field.name])
    if _field.compare:
        _SAVED[_field.name] = None if _field.default is MISSING else _field.default
    else:
        _OWN.append(_field.name)
_OWN_KEYS = ("type", "function", "custom")


def _check_fields(decl: ToolDecl) -> None:
    if decl.name in (None, "") or (type(decl.name) is str and not decl.name.strip()):
        fix = "Give it one: ToolDecl.of(source, name=...)."
        raise InvalidToolDecl(f"{_unnamed_tool(decl)} has no name", code="missing_name", fix=fix)
    if decl.name == REQUEST:
        reason = "its name is reserved for requests for confirmation"
        raise InvalidToolDecl(reason, code="invalid_field", tool=decl.name, fix="Rename it.")
    for key, kinds in _KINDS.items():
        value = getattr(decl, key)
        if not isinstance(value, kinds):
            fix = "To declare a function, use ToolDecl.of(function)." if key == "name" else None
            _refuse_field(decl, f"its {key} cannot be {cut(repr(value))} ({type(value).__name__})", fix)
        if isinstance(value, str) and not is_unicode(value):
            _refuse_field(decl, f"its {key} is not valid Unicode (surrogates not allowed)")
    for key in _OWN_KEYS:
        if key in (decl.extras or ()):
            _refuse_field(decl, f"its extras cannot hold {key!r}, which the declaration itself says")
    if decl.timeout is not None and not is_timeout(decl.timeout):
        _refuse_field(decl, f"its timeout is no number of seconds above 0: {cut(repr(decl.timeout))}")
    if decl.check_result:
        refuse_uncheckable(decl.returns, decl.name)


def _unnamed_tool(decl: ToolDecl) -> str:
    """Return what an error calls a tool without a name: a lambda's has the place where it is written."""
    code = getattr(decl.func, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name != "<lambda>":
        return "the tool"
    names = ", ".join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return f"the lambda of ({names}) at line {code.co_firstlineno} of {decl.func.__module__}"


def _refuse_field(decl: ToolDecl, reason: str, fix: str | None = None) -> NoReturn:
    raise InvalidToolDecl(reason, code="invalid_field", tool=ascii(decl.name)[1:-1], fix=fix)
