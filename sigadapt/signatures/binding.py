"""Turn a call's JSON arguments into typed Python values for `func(**bound)`. No tool is called.

a. Each argument is what pydantic makes from its JSON for the annotation alone, in lax mode, because JSON
   Schema accepts `1.0` as an integer. The caller checks arguments against the schema first.
b. A missing argument stays missing, so that Python's own default applies, unless that is a pydantic `Field`.
c. The keywords for a pydantic model, whose constructor validates again, are the first of these that it makes
   the same model from as pydantic makes from the JSON: the validated values; the values by annotation,
   without the model's validators; the arguments as sent. They keep the names that they were sent under.
d. An argument without a parameter or a usable type is copied as it was sent: the tool may change it.

Who approves a call is shown what the function fills in by itself. Such a value comes back here, and is left
out again if it is no JSON or does not fit: `note: str = None` has a default that no model may send.
"""

import copy
import re
from contextlib import suppress
from functools import partial
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from sigadapt.json_values import (
    Json,
    compact,
    cut,
    equal_json,
    is_array,
    is_object,
    listed,
    short_pointer,
)
from sigadapt.schemas.arguments import Flaw
from sigadapt.signatures.sources import callables, models, programs
from sigadapt.signatures.sources.annotations import UNDERIVABLE, jsonable
from sigadapt.signatures.sources.fingerprint import DeclaredCache
from sigadapt.signatures.tool_decl import LostFunction, ToolDecl

_MOST_ERRORS = 8
_MOST_JUDGED = 40_000
"""How often pydantic may judge parts of a call. That is a second's work if every alternative fails."""

_TYPES: DeclaredCache[callables.Types] = DeclaredCache()
"""The annotations of a function, for as long as the function stays as it is."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_OF_ALTERNATIVES = ("literal_error", "missing", "extra_forbidden", "enum")


def function_arguments(decl: ToolDecl, args: Json) -> "Json | Flaw":
    """Return what to call a tool's function with; a Flaw if the arguments fit neither schema nor types."""
    arguments = without_own_defaults(decl, args)
    return decl.flaw_of(arguments) or bound_arguments(decl, arguments)


def bound_arguments(decl: ToolDecl, args: Json) -> "Json | Flaw":
    """Turn arguments into Python values of the types that the declared callable's annotations name."""
    if decl.func is None:
        return copy.deepcopy(args)
    if isinstance(decl.func, LostFunction):
        decl.func()
    if decl.text.schema.judgements(args, _MOST_JUDGED) > _MOST_JUDGED:
        reason = "alternatives are nested too deep for pydantic, unless their union has a discriminator"
        return Flaw("schema_mismatch", f"the arguments of {decl.name} could not be bound: {reason}")
    if models.accepts(decl.func):
        values = _model_arguments(decl.func, args)
    else:
        types = types_of_function(decl.func)
        values, errors = _by_annotation(types, args)
        values |= _field_defaults(types, args)
        values = errors or values
    return values if isinstance(values, dict) else _flaw(values, decl.name, args)


def with_own_defaults(decl: ToolDecl, args: Json) -> Json:
    """Return arguments as who decides sees them: with what the function itself fills in, as JSON or text."""
    if decl.func is None or isinstance(decl.func, LostFunction):
        return args
    visible = {**args}
    types = types_of_function(decl.func)
    for name, value in args.items():
        if not is_object(value) and not is_array(value):
            continue
        adapter = _adapter_of(types, name)
        if adapter is not None:
            with suppress(ValueError):  # it does not fit, and so runs nothing
                visible[name] = _with_model_defaults(value, adapter.validate_json(compact(value)))
    visible |= {name: args[name] for name in decl.misfits(visible)}
    for name, default in _own_defaults(decl).items():
        if name not in visible:
            visible[name] = _as_shown(default)
    return visible


def without_own_defaults(decl: ToolDecl, args: Json) -> Json:
    """Return arguments without those that the function fills in by itself and that are shown alone."""
    unchanged: Json = {}
    for name, default in _own_defaults(decl).items():
        if name in args and equal_json(_as_shown(default), args[name]):
            unchanged[name] = default
    if not unchanged:
        return args
    misfits = decl.misfits(args)
    arguments = dict(args)
    for name, default in unchanged.items():
        if name in misfits or not equal_json(default, args[name]):
            del arguments[name]
    return arguments if len(arguments) < len(args) else args


def _own_defaults(decl: ToolDecl) -> Json:
    """Return what the function fills in by itself, of the arguments that its schema names."""
    if decl.func is None or isinstance(decl.func, LostFunction):
        return {}
    properties: Json = decl.parameters.get("properties") or {}
    if models.accepts(decl.func):
        return _model_defaults(decl.func, properties)
    types = types_of_function(decl.func)
    defaults = {name: default for name, default in types.defaults.items() if name not in types.filled}
    with suppress(Exception):
        defaults |= _field_defaults(types, {})
    return {name: default for name, default in defaults.items() if name in properties}


def _model_defaults(model: type[pydantic.BaseModel], properties: Json) -> Json:
    """Return the defaults of a model's fields that are among the properties."""
    defaults: Json = {}
    for key, name in _fields_of(model).items():
        field = model.model_fields[name]
        if key in properties and not field.is_required():
            with suppress(Exception):  # a factory that takes other fields, or fails: it shows nothing
                defaults[key] = field.get_default(call_default_factory=True)
    return defaults


def _field_defaults(types: callables.Types, args: Json) -> Json:
    """Return the values of the `Field`s that are defaults of arguments left out."""
    defaults: Json = {}
    for name in types.filled.difference(args):
        adapter = _adapter(types.named[name])
        default = adapter.get_default_value() if adapter else None
        if default:
            defaults[name] = default.value
    return defaults


def _as_shown(value: Any) -> Any:
    try:
        return jsonable(value)
    except ValueError:  # such as `inf` or bytes; an address in memory is another one each time
        return _ADDRESS.sub("", str(value))


def _with_model_defaults(value: Any, reading: Any) -> Any:
    """Return a JSON value with the defaults of the pydantic models that it is read as."""
    if isinstance(reading, pydantic.BaseModel) and is_object(value):
        return _members_with_defaults(value, reading)
    if is_array(value) and is_array(reading) and len(value) == len(reading):
        return [_with_model_defaults(item, read) for item, read in zip(value, reading, strict=True)]
    if is_object(value) and is_object(reading):
        return {key: _with_model_defaults(member, reading.get(key)) for key, member in value.items()}
    return value


def _members_with_defaults(value: Json, model: pydantic.BaseModel) -> Json:
    """Return a JSON object with the defaults of the model that it is read as."""
    keys: dict[str, list[str]] = {}
    for key, name in _fields_of(type(model)).items():
        keys.setdefault(name, []).append(key)
    members = {**value}
    for name, aliases in keys.items():
        key = next((key for key in aliases if key in value), aliases[0])
        read = getattr(model, name)
        members[key] = _with_model_defaults(value[key], read) if key in value else _as_shown(read)
    return members


def types_of_function(func: Any) -> callables.Types:
    """Return the annotations of what a declared function takes."""
    if models.accepts(func):
        fields = _fields_of(func).items()
        return callables.Types({key: func.model_fields[name].annotation for key, name in fields})
    if programs.accepts(func):
        return programs.types_of(func)
    return _TYPES.of(func, partial(callables.types_of, func))


def _by_annotation(types: callables.Types, args: Json) -> tuple[Json, list[ErrorDetails]]:
    """Return the arguments by their annotations, and the errors of those that stay as sent instead."""
    values: Json = {}
    errors: list[ErrorDetails] = []
    for name, value in args.items():
        adapter = _adapter_of(types, name)
        try:
            values[name] = adapter.validate_json(compact(value)) if adapter else copy.deepcopy(value)
        except pydantic.ValidationError as error:
            values[name] = copy.deepcopy(value)
            errors += _details(error, name)
    return values, errors


def _adapter_of(types: callables.Types, name: str) -> "pydantic.TypeAdapter[Any] | None":
    return _adapter(types.named.get(name, types.named.get(callables.OTHERS, Any)))


def _adapter(annotation: Any) -> "pydantic.TypeAdapter[Any] | None":
    if annotation is Any:
        return None
    try:
        return pydantic.TypeAdapter(annotation)
    except UNDERIVABLE:
        return None


def _model_arguments(model: type[pydantic.BaseModel], args: Json) -> "Json | list[ErrorDetails]":
    try:
        expected = model.model_validate_json(compact(args))
    except pydantic.ValidationError as error:
        return _details(error)
    if issubclass(model, pydantic.RootModel):  # its constructor takes the value itself
        return copy.deepcopy(args)
    extra = expected.model_extra or {}
    keywords = copy.deepcopy(args) | extra
    for key, name in _fields_of(model).items():
        if name in expected.model_fields_set and key in args:
            keywords[key] = getattr(expected, name)
    if _makes(keywords, expected):
        return keywords
    by_annotation = _by_annotation(types_of_function(model), args)[0] | extra
    return by_annotation if _makes(by_annotation, expected) else copy.deepcopy(args)


def _makes(keywords: Json, expected: pydantic.BaseModel) -> bool:
    """Return whether a model's constructor makes the same model of keywords."""
    try:
        actual = type(expected).model_validate(keywords)
        return _set_fields(actual) == _set_fields(expected) and actual.model_extra == expected.model_extra
    except Exception:  # noqa: BLE001  (a validator may raise anything for a value that it made itself)
        return False


def _set_fields(model: pydantic.BaseModel) -> Json:
    # What was given alone: defaults may differ each time, such as a new id or the time.
    return {name: getattr(model, name) for name in model.model_fields_set}


def _fields_of(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """Return the field for each keyword that the model's constructor accepts."""
    config = model.model_config
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    fields: dict[str, str] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        if alias is None or by_name:
            fields[name] = name
        choices = alias.choices if isinstance(alias, pydantic.AliasChoices) else [alias]
        for choice in choices:
            if isinstance(choice, str):
                fields[choice] = name
    return fields


def _details(error: pydantic.ValidationError, *path: str) -> list[ErrorDetails]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    for detail in details:
        detail["loc"] = (*path, *detail["loc"])
    return details


def _flaw(details: list[ErrorDetails], tool: str, args: Json) -> Flaw:
    # Errors that may be of an alternative that was not meant come last: arguments that bind fit their schema.
    details.sort(key=lambda detail: detail["type"] in _OF_ALTERNATIVES or detail["type"].endswith("_type"))
    paths = [short_pointer(_steps_in(args, detail["loc"])) for detail in details]
    problems: dict[str, None] = {}
    for path, detail in zip(paths, details, strict=True):
        message = cut(detail["msg"])
        problems[f"{path}: {message}" if path else message] = None
    reasons = listed(problems, _MOST_ERRORS)
    return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {reasons}", paths[0])


def _steps_in(args: Json, location: tuple[int | str, ...]) -> list[int | str]:
    """Return the keys of a pydantic location that are in arguments: it also names types that it tried."""
    value: Any = args
    steps: list[int | str] = []
    for step in location:
        members: Any = dict(enumerate(value)) if is_array(value) else value
        if is_object(members) and step in members:
            value = members[step]
            steps.append(step)
    return steps
