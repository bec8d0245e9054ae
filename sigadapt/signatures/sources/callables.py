"""Python callables as tools: functions, methods, partials and objects with `__call__`, sync or async.

The details:

 a. A parameter without a default is required.
 b. Bound parameters are left out: `self`, `cls`, and those that a `functools.partial` sets. A call could
    override a partial's keywords, but its author chose them, and they may be secrets.
 c. `*args` and `**kwargs` are left out. With `**kwargs: T`, the schema allows additional properties of the
    type T; with `**kwargs: Unpack[T]`, the keys of the TypedDict T are parameters. `*args` and `**kwargs`
    alone and without annotations are a problem.
 d. A parameter's description is its `Field`'s, else its docstring's. The tool's description is the docstring
    without the sections on parameters, result and exceptions.
 e. A default is written as JSON. One without a JSON form is left out; its parameter is still optional.
 f. A parameter without an annotation takes any value. A warning says so, once for each function.
 g. A parameter of the type ToolContext is left out, with what the docstring says of it. What runs the tool
    fills it (`tool_functions/tool_function.py`).
 h. A parameter is a problem if it cannot be passed by name, or if its type has no JSON Schema. One error
    lists all problems of a signature, with the callable's qualified name.
"""

import functools
import inspect
import re
import typing
import warnings
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from types import FunctionType, GenericAlias, MappingProxyType, MethodType
from typing import Annotated, Any, NamedTuple, NoReturn, TypeAlias, TypeGuard, cast, get_args, get_origin

import dspy
from pydantic.fields import FieldInfo
from typing_extensions import NotRequired, Required, Unpack, get_type_hints, is_typeddict

from sigadapt.errors import InvalidToolDecl, UndeclaredTypeWarning
from sigadapt.json_values import Json
from sigadapt.schemas.checking import check
from sigadapt.signatures.sources.annotations import UNDERIVABLE, jsonable, schema_of, schemas_of
from sigadapt.signatures.sources.dicts import Fields
from sigadapt.signatures.sources.runnable import Uncallable
from sigadapt.signatures.tool_functions.tool_context import is_context

_Function: TypeAlias = Callable[..., Any]
_WARNED: set[str] = set()
"""The functions of which a warning was logged, by their qualified names: a function may be declared often."""

OTHERS = "**"
_UNRESOLVED = inspect.Parameter.empty
_UNPACKS = (Unpack, getattr(typing, "Unpack", Unpack))  # that of Python 3.11 is another


_TITLES = "Args|Arguments|Params|Parameters|Attributes|Returns|Yields|Raises|Exceptions"
_SECTIONS = {
    "GOOGLE": rf"(?:{_TITLES}):[ \t]*$",
    "NUMPYDOC": rf"(?:{_TITLES}|Other Parameters)[ \t]*\n[ \t]*-{{3,}}[ \t]*$",
    "REST": r":(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|yields?|raises?)\b[^:\n]*:",
    "EPYDOC": r"@(?:param|type|return|rtype|raise)\b[^:\n]*:",
}
_STYLE = re.compile(
    "|".join(rf"(?P<{style}>^[ \t]*{section})" for style, section in _SECTIONS.items()), re.MULTILINE
)
_FIELD = r".*(?:\n(?![ \t]*(?:[:@]\w|\.\. ))[ \t]*\S.*|(?:\n[ \t]*)+\n(?P=indent)[ \t]+\S.*)*"
_BODIES = {
    "GOOGLE": r"(?:\n[ \t]*$|\n(?P=indent)[ \t]+\S.*)*",
    "NUMPYDOC": r"(?:\n(?![ \t]*\S.*\n[ \t]*-{3,}[ \t]*$).*)*",
    "REST": _FIELD,
    "EPYDOC": _FIELD,
}
"""What belongs to a section after its title: all that is indented deeper, or all before the next title."""


class Types(NamedTuple):
    """What a callable's signature says: the annotation of each argument, of `**kwargs`, and so on.

    Of one of the `filled` arguments that a call leaves out, Python would pass a pydantic `Field` itself, or
    nothing.
    """

    named: dict[str, Any]  # the annotation of each argument, and that of `**kwargs` under `OTHERS`
    filled: frozenset[str] = frozenset()  # arguments whose default a `Field` has
    defaults: Mapping[str, Any] = MappingProxyType({})
    untyped: tuple[str, ...] = ()  # arguments without an annotation
    optional: AbstractSet[str] = frozenset()  # arguments without a default that may be left out
    returns: Any = inspect.Parameter.empty
    context: str | None = None  # the parameter that takes a ToolContext


def accepts(source: object) -> bool:
    """Return whether the source is a callable that is neither a type nor a DSPy module (`programs.py`)."""
    others = (type, dspy.Module, Uncallable)
    return callable(source) and not isinstance(source, others) and get_origin(source) is None


def describe(source: _Function, parameters: Json | None) -> list[Fields]:
    """Describe a callable as a tool. It is never called (nothing is executed)."""
    docs = parse_docstring(_doc_of(source))
    tool = {"name": _name_of(source), "description": docs.description, "func": source}
    if parameters is not None:
        return [{**tool, "parameters": parameters}]
    where = _qualified_name(source)
    problems: list[str] = []
    types = _read_signature(source, where, problems)
    schemas = schemas_of(types.named)
    if problems or schemas.problems:
        _refuse([*problems, *schemas.problems], where)
    if types.untyped and where not in _WARNED:
        _WARNED.add(where)
        names = ", ".join(map(repr, types.untyped))
        message = f"{where}: {names} without an annotation: a model may send any value there"
        warnings.warn(message, UndeclaredTypeWarning, stacklevel=2)
    others = schemas.properties.pop(OTHERS, None)
    for name, schema in schemas.properties.items():
        if name in types.defaults:
            with suppress(ValueError):  # (e)
                schema["default"] = jsonable(types.defaults[name])
        if name in docs.parameters and "description" not in schema:
            schema["description"] = docs.parameters[name]
    required = [n for n in types.named if n not in types.defaults and n not in types.optional]
    schema = schemas.as_object(required, is_open=others is not None)
    if others:
        schema["additionalProperties"] = others
    if schemas.used_pydantic:  # a type's own hooks can say anything
        check(schema, tool=where)
    returns = None
    if types.returns is not _UNRESOLVED:  # or missing
        with suppress(*UNDERIVABLE):  # a result's schema is optional; only arguments must have one
            returns = schema_of(types.returns, "serialization")
            returns = {"description": docs.returns, **returns} if docs.returns else returns
    return [{**tool, "parameters": schema, "returns": returns}]


def types_of(source: _Function) -> Types:
    """Return the annotations of the parameters, without those with a problem (h) and no `Field`."""
    try:
        return _read_signature(source, _qualified_name(source), [])
    except InvalidToolDecl:
        return Types({})


def _read_signature(source: _Function, where: str, problems: list[str]) -> Types:
    function = _function_called(source)
    signature = _signature_of(function, where)
    keywords: Mapping[str, Any] = function.keywords if _is_partial(function) else {}
    every = [p for name, p in signature.parameters.items() if name not in keywords]
    open_ = [p for p in every if p.kind is p.VAR_KEYWORD]
    parameters = [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if every and not parameters and not keywords and all(p.annotation is p.empty for p in open_):
        problems.append(
            f"it takes only {', '.join(map(str, every))}, so its arguments are unknown; "
            "if it's a decorator's, functools.wraps keeps those of the function"
        )
    types: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    contexts: list[inspect.Parameter] = []
    for parameter in parameters:
        hint = _hint(function, parameter.name, parameter.annotation, problems)
        if is_context(hint):
            contexts.append(parameter)
            continue
        problem = _problem_of(parameter, hint, function)
        if problem:
            problems.append(problem)
        if not problem or isinstance(parameter.default, FieldInfo):
            _add_parameter(parameter, hint, types, defaults)
    if len(contexts) > 1:
        problems.append(f"it has {len(contexts)} parameters of the type ToolContext, and one is filled")
    optional: set[str] = {OTHERS}
    for parameter in open_:  # at most one
        hint = _hint(function, parameter.name, parameter.annotation, [])
        keys = {OTHERS: Any if hint is _UNRESOLVED else hint}
        if get_origin(hint) in _UNPACKS and is_typeddict(get_args(hint)[0]):
            keys, optional = _keys_of(get_args(hint)[0])
        types |= {name: key for name, key in keys.items() if name not in keywords}
    returns = signature.return_annotation
    if returns is not signature.empty:
        returns = _hint(function, "return", returns, [])
    return Types(
        types,
        frozenset(
            p.name
            for p in parameters
            if isinstance(p.default, FieldInfo) or (p.default is p.empty and p.name in defaults)
        ),
        defaults,
        tuple(p.name for p in parameters if p.annotation is p.empty),
        optional,
        returns,
        contexts[0].name if contexts else None,
    )


def _keys_of(typed_dict: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the types of a TypedDict's keys, and the keys that may be left out."""
    keys = get_type_hints(typed_dict, include_extras=True)
    optional = {*typed_dict.__optional_keys__}
    for name, hint in keys.items():
        qualifier = get_origin(hint)
        if qualifier in (Required, NotRequired):  # in quotes, the class knows of neither
            (keys[name],) = get_args(hint)
            optional = optional | {name} if qualifier is NotRequired else optional - {name}
    return keys, optional


def _signature_of(function: _Function, where: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        _refuse([f"Python cannot read its signature ({error})"], where)


def _add_parameter(
    parameter: inspect.Parameter, hint: Any, types: dict[str, Any], defaults: dict[str, Any]
) -> None:
    """Add a parameter's type and its default, which pydantic's `Field` may hold, also one in `Annotated`."""
    default = parameter.default
    if hint is _UNRESOLVED:
        hint = Any
    if isinstance(default, FieldInfo):
        hint = Annotated[hint, default]
        default = parameter.empty if default.is_required() else default.default
    elif default is parameter.empty and get_origin(hint) is Annotated:
        for field in get_args(hint):
            if isinstance(field, FieldInfo) and not field.is_required():
                default = field.default
    types[parameter.name] = hint
    if default is not parameter.empty:
        defaults[parameter.name] = default


def _hint(owner: _Function, name: str, annotation: Any, problems: list[str]) -> Any:
    """Return an annotation as a type, also one that is written in quotes; `Any` for a missing one."""
    if annotation is inspect.Parameter.empty:
        return Any
    # Names in quotes are those of the module in which the innermost function is written.
    while _is_partial(owner):
        owner = owner.func
    function = inspect.unwrap(_function_called(owner))
    function = getattr(function, "__func__", function)

    def stand_in() -> None: ...

    holder: Any = stand_in
    holder.__annotations__ = {"hint": annotation}
    holder.__type_params__ = getattr(function, "__type_params__", ())  # which Python has since 3.12
    names = getattr(function, "__globals__", {})
    try:
        return _without_quotes(typing.get_type_hints(holder, names, include_extras=True)["hint"], names)
    except Exception as error:  # noqa: BLE001  (an annotation in quotes is an expression and may raise anything)
        problems.append(f"the annotation of '{name}' cannot be resolved ({error})")
        return _UNRESOLVED


def _without_quotes(hint: Any, names: dict[str, Any]) -> Any:
    """Resolve quoted names inside a hint such as `list["Node"]`, which Python 3.10 leaves as text."""
    if type(hint) is str:
        return typing.get_type_hints(type("_", (), {"__annotations__": {"hint": hint}}), names)["hint"]
    args = get_args(hint) if type(cast("object", hint)) is GenericAlias else ()
    if not any(type(arg) in (str, GenericAlias) for arg in args):
        return hint
    return get_origin(hint)[tuple(_without_quotes(arg, names) for arg in args)]


def _problem_of(parameter: inspect.Parameter, annotation: Any, function: _Function) -> str | None:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return f"'{parameter.name}' is positional-only, but a model passes arguments by name"
    holder = function.__qualname__.rpartition(".")[0] if type(function) is FunctionType else ""
    if parameter.name == "self" and holder and not holder.endswith("<locals>"):
        return "it is a method without an object; use the bound method instead"
    fields = [parameter.default]
    if get_origin(annotation) is Annotated:
        fields += get_args(annotation)
    if any(isinstance(field, FieldInfo) and (field.alias or field.validation_alias) for field in fields):
        return f"'{parameter.name}' has an alias, but Python accepts only the parameter's own name"
    return None


def _function_called(source: _Function) -> _Function:
    """Return the function that Python runs for a call of the source: of an object, its bound `__call__`."""
    if _is_partial(source) or isinstance(source, (FunctionType, MethodType)):
        return source
    if hasattr(source, "__wrapped__") or hasattr(source, "__signature__"):
        return source  # a decorator's object; inspect reads the signature of what it wraps
    call: object = source.__call__
    return call if isinstance(call, MethodType) else source


def _is_partial(source: object) -> "TypeGuard[functools.partial[Any]]":
    return isinstance(source, functools.partial)


def _doc_of(source: _Function) -> str | None:
    if _is_partial(source):
        return vars(source).get("__doc__") or _doc_of(source.func)  # not `functools.partial`'s docstring
    function = _function_called(source)
    return inspect.getdoc(function) or (inspect.getdoc(source) if function is not source else None)


def _name_of(source: _Function) -> str | None:
    if _is_partial(source) and "__name__" not in vars(source):
        return _name_of(source.func)
    name: str = getattr(source, "__name__", None) or type(source).__name__
    return None if name == "<lambda>" else name


def _qualified_name(source: _Function) -> str:
    if _is_partial(source):
        return _qualified_name(source.func)
    holder: Any = source if hasattr(source, "__qualname__") else type(source)
    return f"{getattr(holder, '__module__', 'builtins')}.{holder.__qualname__}"


def _refuse(problems: list[str], where: str) -> NoReturn:
    raise InvalidToolDecl(
        "; ".join(problems),
        code="underivable",
        tool=where,
        fix="Change its signature, or give its schema: ToolDecl.of(function, parameters=...).",
    )


class _Docs(NamedTuple):
    """The parts of a docstring."""

    description: str  # without the sections
    parameters: dict[str, str]  # their descriptions, by name
    returns: str | None  # the description of the result


def parse_docstring(text: str | None) -> _Docs:
    """Split a docstring (Google, NumPy, Sphinx or Epydoc style) into its parts."""
    match = _STYLE.search(text) if text else None
    if text is None or match is None:
        return _Docs((text or "").strip(), {}, None)
    import docstring_parser  # takes milliseconds, and most docstrings have no sections

    style = str(match.lastgroup)
    section = re.compile(rf"^(?P<indent>[ \t]*){_SECTIONS[style]}{_BODIES[style]}", re.MULTILINE)
    sections = "\n\n".join(each.group() for each in section.finditer(text))
    try:
        # The parser cleans the indentation again. Without the line break, it would outdent all but line one.
        docs = docstring_parser.parse("\n" + sections, docstring_parser.DocstringStyle[style])
    except docstring_parser.ParseError:
        return _Docs(text.strip(), {}, None)
    parameters: dict[str, str] = {}
    for parameter in docs.params:
        for name in parameter.arg_name.split(","):  # NumPy's `x, y : int`
            if parameter.description:
                parameters[name.strip()] = parameter.description.strip()
    returns = docs.returns.description if docs.returns else None
    description = re.sub(r"\n{3,}", "\n\n", section.sub("", text)).strip()  # with notes and examples
    return _Docs(description, parameters, returns)
