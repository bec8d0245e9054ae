"""Python callables as tools: functions, methods, partials and objects with `__call__`, sync or async.

The details:

 a. A parameter without a default is required.
 b. Bound parameters are left out: `self`, `cls`, and those that a `functools.partial` sets. A call could
    override a partial's keywords, but its author chose them, and they may be secrets.
 c. `*args` and `**kwargs` are left out. With `**kwargs`, the schema allows additional properties. Alone and
    without annotations, they are a problem.
 d. A parameter's description is its `Field`'s, else its docstring's. The tool's description is the docstring
    without the sections on parameters, result and exceptions.
 e. A default is written as JSON. One without a JSON form is left out; its parameter is still optional.
 f. A parameter without an annotation takes any value, which is logged once for each function.
 g. A parameter is a problem if it cannot be passed by name, or if its type has no JSON Schema. One error
    lists all problems of a signature, with the callable's qualified name.
"""

import functools
import inspect
import logging
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType, GenericAlias, MethodType
from typing import Annotated, Any, NamedTuple, NoReturn, TypeAlias, TypeGuard, cast, get_args, get_origin

import dspy
from pydantic.fields import FieldInfo

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.checking import check
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources import docstrings
from sigadapt.signatures.sources.annotations import UNDERIVABLE, jsonable, schema_of, schemas_of
from sigadapt.signatures.sources.raw_decl import RawDecl, Uncallable

_Function: TypeAlias = Callable[..., Any]
_LOG = logging.getLogger("sigadapt")
_WARNED: set[str] = set()
"""The functions of which a warning was logged, by their qualified names: a function may be declared often."""

_DECLARES_NOTHING = (
    "it takes {} alone, which says nothing of its arguments; a decorator keeps those of its function with "
    "functools.wraps"
)


class Types(NamedTuple):
    """What a callable's signature says of its arguments.

    Args:
        named: the annotation of each parameter, by name.
        filled: the parameters whose default is a pydantic `Field`: Python would pass the `Field` itself.
        others: the annotation of `**kwargs`; `Any` if there is none.
    """

    named: dict[str, Any]
    filled: frozenset[str] = frozenset()
    others: Any = Any


class _Signature(NamedTuple):
    parameters: dict[str, inspect.Parameter]
    untyped: list[str]
    open: bool
    returns: Any
    filled: frozenset[str]
    others: Any


def accepts(source: object) -> bool:
    """Return whether the source is a callable that is neither a type nor a DSPy module (`programs.py`)."""
    if type(source) is FunctionType:
        return True
    refused = (type, dspy.Module, Uncallable)
    return callable(source) and not isinstance(source, refused) and get_origin(source) is None


def describe(source: _Function, parameters: Json | None) -> list[RawDecl]:
    """Describe a callable as a tool. It is never called (nothing is executed).

    Raises:
        InvalidToolDecl: `underivable`, with all problems of the signature.
    """
    docs = docstrings.parse(_doc_of(source))
    raw = RawDecl(_name_of(source), docs.description, parameters, func=source)
    if parameters is not None:
        return [raw]
    where = _qualified_name(source)
    problems: list[str] = []
    signature = _signature_of(_function_called(source), where, problems)
    schemas = schemas_of({name: p.annotation for name, p in signature.parameters.items()})
    problems += [f"'{name}' has no JSON Schema ({why})" for name, why in schemas.problems.items()]
    if problems:
        _refuse(problems, where)
    if signature.untyped and where not in _WARNED:
        _WARNED.add(where)
        named = ", ".join(map(repr, signature.untyped))
        _LOG.warning("%s: %s without an annotation: a model may send any value there", where, named)
    for name, schema in schemas.properties.items():
        default, description = signature.parameters[name].default, docs.parameters.get(name)
        if default is not inspect.Parameter.empty:
            with suppress(ValueError):  # (e)
                schema["default"] = jsonable(default)
        if description and "description" not in schema:
            schema["description"] = description
    required = [name for name, p in signature.parameters.items() if p.default is p.empty]
    schema: Json = {
        "type": "object",
        "properties": schemas.properties,
        **({"required": required} if required else {}),
        **({} if signature.open else {"additionalProperties": False}),
        **({"$defs": schemas.defs} if schemas.defs else {}),
    }
    if schemas.used_pydantic:  # a type's own hooks can say anything
        check(schema, tool=where)
    return [raw._replace(parameters=schema, returns=_returns(signature.returns, docs.returns), derived=True)]


def types_of(source: _Function) -> Types:
    """Return the annotations of the parameters. Parameters with a problem (g) are left out."""
    try:
        signature = _signature_of(_function_called(source), _qualified_name(source), [])
    except InvalidToolDecl:
        return Types({})
    named = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return Types(named, signature.filled, signature.others)


def _returns(annotation: Any, description: str | None) -> Json | None:
    if annotation is inspect.Parameter.empty:
        return None
    try:
        schema = schema_of(annotation, "serialization")
    except UNDERIVABLE:
        return None  # a result's schema is optional; only arguments must have one
    return {"description": description, **schema} if description else schema


def _signature_of(called: _Function, where: str, problems: list[str]) -> _Signature:
    try:
        signature = inspect.signature(called)
    except (ValueError, TypeError, NameError) as error:
        _refuse([f"Python cannot read its signature ({error})"], where)
    bound: Mapping[str, Any] = called.keywords if _is_partial(called) else {}
    every = [p for name, p in signature.parameters.items() if name not in bound]
    named = [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    hints = _hints(called, {p.name: p.annotation for p in named}, problems)
    annotated = signature.return_annotation is not signature.empty
    result = _hints(called, {"return": signature.return_annotation}, []) if annotated else {}
    open_ = [p for p in every if p.kind is p.VAR_KEYWORD]
    others = _hints(called, {p.name: p.annotation for p in open_ if p.annotation is not p.empty}, [])
    if every and not named and not bound and not others:
        problems.append(_DECLARES_NOTHING.format(", ".join(map(str, every))))
    found = {p.name: _problem_of(p, hints.get(p.name), called) for p in named}
    problems += [problem for problem in found.values() if problem]
    return _Signature(
        {p.name: _with_field(p, hints[p.name]) for p in named if p.name in hints and not found[p.name]},
        [p.name for p in named if p.annotation is p.empty],
        bool(open_),
        result.get("return", signature.empty),
        frozenset(p.name for p in named if isinstance(p.default, FieldInfo)),
        next(iter(others.values()), Any),
    )


def _hints(called: _Function, annotations: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return annotations as types, also those written in quotes; `Any` for a missing one."""
    function = _function_of(called)

    def holder() -> None: ...

    holder.__annotations__ = {k: Any if v is inspect.Parameter.empty else v for k, v in annotations.items()}
    setattr(holder, "__type_params__", getattr(function, "__type_params__", ()))  # noqa: B010  (new in 3.12)
    names = getattr(function, "__globals__", {})
    hints: dict[str, Any]
    try:
        hints = typing.get_type_hints(holder, names, include_extras=True)
        return {name: _without_quotes(hint, names) for name, hint in hints.items()}
    except Exception as error:  # noqa: BLE001  (an annotation in quotes is an expression and may raise anything)
        if len(annotations) == 1:
            problems += [f"the annotation of '{name}' cannot be resolved ({error})" for name in annotations]
            return {}
    hints = {}
    for name, annotation in annotations.items():
        hints |= _hints(called, {name: annotation}, problems)
    return hints


def _without_quotes(hint: Any, names: dict[str, Any]) -> Any:
    """Resolve quoted names inside a hint such as `list["Node"]`, which Python 3.10 leaves as text."""
    if type(hint) is str:
        return typing.get_type_hints(type("_", (), {"__annotations__": {"hint": hint}}), names)["hint"]
    args = get_args(hint) if type(cast("object", hint)) is GenericAlias else ()
    if not any(type(arg) in (str, GenericAlias) for arg in args):
        return hint
    return get_origin(hint)[tuple(_without_quotes(arg, names) for arg in args)]


def _with_field(parameter: inspect.Parameter, annotation: Any) -> inspect.Parameter:
    field = parameter.default
    if not isinstance(field, FieldInfo):
        return parameter.replace(annotation=annotation)
    default = inspect.Parameter.empty if field.is_required() else field.default
    return parameter.replace(annotation=Annotated[annotation, field], default=default)


def _problem_of(parameter: inspect.Parameter, annotation: Any, called: _Function) -> str | None:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return f"'{parameter.name}' is positional-only, but a model passes arguments by name"
    holder = called.__qualname__.rpartition(".")[0] if type(called) is FunctionType else ""
    if parameter.name == "self" and holder and not holder.endswith("<locals>"):
        return "it is a method without an object; use the bound method instead"
    fields = [parameter.default, *(get_args(annotation) if get_origin(annotation) is Annotated else ())]
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


def _function_of(called: _Function) -> object:
    while _is_partial(called):
        called = called.func
    function = inspect.unwrap(_function_called(called))
    return getattr(function, "__func__", function)


def _is_partial(source: object) -> "TypeGuard[functools.partial[Any]]":
    return isinstance(source, functools.partial)


def _doc_of(source: _Function) -> str | None:
    if _is_partial(source):
        return vars(source).get("__doc__") or _doc_of(source.func)  # not `functools.partial`'s docstring
    called = _function_called(source)
    return inspect.getdoc(called) or (inspect.getdoc(source) if called is not source else None)


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
