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
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import judgements_in
from sigadapt.schemas.json_values import (
    Json,
    compact,
    cut,
    equal_json,
    is_array,
    is_object,
    listed,
    short_pointer,
)
from sigadapt.signatures.sources import callables, models, programs
from sigadapt.signatures.sources.annotations import UNDERIVABLE, jsonable
from sigadapt.signatures.tool_decl import LostFunction, ToolDecl

_MOST_ERRORS = 8
_MOST_JUDGED = 40_000
"""How often pydantic may judge parts of a call. That is a second's work if every alternative fails."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_OF_ALTERNATIVES = ("literal_error", "missing", "extra_forbidden", "enum")


def bound_arguments(decl: ToolDecl, args: Json) -> "Json | Flaw":
    """Turn arguments into Python values of the types that the declared callable's annotations name."""
    if decl.func is None:
        return copy.deepcopy(args)
    if isinstance(decl.func, LostFunction):
        decl.func()
    if judgements_in(args, decl.text.compiled(decl.name), _MOST_JUDGED) > _MOST_JUDGED:
        reason = "alternatives are nested too deep for pydantic, unless their union has a discriminator"
        return Flaw("schema_mismatch", f"the arguments of {decl.name} could not be bound: {reason}")
    if models.accepts(decl.func):
        values = _model_arguments(decl.func, args)
    else:
        types = _types_of(decl.func)
        values, errors = _by_annotation(types, args)
        values |= _filled(types, args)
        values = errors or values
    return values if isinstance(values, dict) else _flaw(values, decl.name, args)


def with_own_defaults(decl: ToolDecl, args: Json) -> Json:
    """Return arguments as who decides sees them: with what the function itself fills in, as JSON or text."""
    if decl.func is None or isinstance(decl.func, LostFunction):
        return args
    visible = {**args}
    types = _types_of(decl.func)
    for name, value in args.items():
        is_whole = is_object(value) or is_array(value)
        adapter = _adapter(types.named.get(name, types.others)) if is_whole else None
        with suppress(ValueError):  # it does not fit, and so runs nothing
            visible[name] = _completed(value, adapter.validate_json(compact(value))) if adapter else value
    visible |= {name: args[name] for name in decl.misfits(visible)}
    return visible | {name: _shown(part) for name, part in _own_defaults(decl).items() if name not in visible}


def without_own_defaults(decl: ToolDecl, args: Json) -> Json:
    """Return arguments without those that the function fills in by itself and that are shown alone."""
    defaults = {name: part for name, part in _own_defaults(decl).items() if name in args}
    same = {name: part for name, part in defaults.items() if equal_json(_shown(part), args[name])}
    misfits = decl.misfits(args) if same else frozenset(same)
    alone = {name for name, part in same.items() if name in misfits or not equal_json(part, args[name])}
    return {name: part for name, part in args.items() if name not in alone} if alone else args


def _own_defaults(decl: ToolDecl) -> Json:
    """Return what the function fills in by itself, of the arguments that its schema names."""
    if decl.func is None or isinstance(decl.func, LostFunction):
        return {}
    properties: Json = decl.parameters.get("properties") or {}
    if models.accepts(decl.func):
        values: Json = {}
        for key, name in _fields_of(decl.func).items():
            field = decl.func.model_fields[name]
            if key in properties and not field.is_required():
                with suppress(Exception):  # a factory that takes other fields, or fails: it shows nothing
                    values[key] = field.get_default(call_default_factory=True)
        return values
    types = _types_of(decl.func)
    values = {name: part for name, part in types.defaults.items() if name not in types.filled}
    with suppress(Exception):
        values |= _filled(types, {})
    return {name: part for name, part in values.items() if name in properties}


def _filled(types: callables.Types, args: Json) -> Json:
    """Return the values of the `Field`s that are defaults of arguments left out."""
    adapters = {name: _adapter(types.named[name]) for name in types.filled.difference(args)}
    defaults = {name: adapter.get_default_value() for name, adapter in adapters.items() if adapter}
    return {name: default.value for name, default in defaults.items() if default}


def _shown(value: Any) -> Any:
    try:
        return jsonable(value)
    except ValueError:  # such as `inf` or bytes; an address in memory is another one each time
        return _ADDRESS.sub("", str(value))


def _completed(value: Any, reading: Any) -> Any:
    """Return a JSON value with the defaults of the pydantic models that it is read as."""
    if isinstance(reading, pydantic.BaseModel) and is_object(value):
        keys: dict[str, list[str]] = {}
        for key, name in _fields_of(type(reading)).items():
            keys.setdefault(name, []).append(key)
        copied = {**value}
        for name, aliases in keys.items():
            key = next((key for key in aliases if key in value), aliases[0])
            part = getattr(reading, name)
            copied[key] = _completed(value[key], part) if key in value else _shown(part)
        return copied
    if is_array(value) and is_array(reading) and len(value) == len(reading):
        return [_completed(each, part) for each, part in zip(value, reading, strict=True)]
    if is_object(value) and is_object(reading):
        return {key: _completed(part, reading.get(key)) for key, part in value.items()}
    return value


def _types_of(func: Any) -> callables.Types:
    if models.accepts(func):
        fields = _fields_of(func).items()
        return callables.Types({key: func.model_fields[name].annotation for key, name in fields})
    return programs.types_of(func) if programs.accepts(func) else callables.types_of(func)


def _by_annotation(types: callables.Types, args: Json) -> tuple[Json, list[ErrorDetails]]:
    """Return the arguments by their annotations, and the errors of those that stay as sent instead."""
    values: Json = {}
    errors: list[ErrorDetails] = []
    for name, value in args.items():
        adapter = _adapter(types.named.get(name, types.others))
        try:
            values[name] = adapter.validate_json(compact(value)) if adapter else copy.deepcopy(value)
        except pydantic.ValidationError as error:
            values[name] = copy.deepcopy(value)
            errors += _details(error, name)
    return values, errors


def _adapter(annotation: Any) -> "pydantic.TypeAdapter[Any] | None":
    if annotation is Any:
        return None
    try:
        return pydantic.TypeAdapter(annotation)
    except UNDERIVABLE:
        return None


def _model_arguments(model: type[pydantic.BaseModel], args: Json) -> "Json | list[ErrorDetails]":
    try:
        whole = model.model_validate_json(compact(args))
    except pydantic.ValidationError as error:
        return _details(error)
    if issubclass(model, pydantic.RootModel):  # its constructor takes the value itself
        return copy.deepcopy(args)
    fields = _fields_of(model)
    extra = whole.model_extra or {}
    names = {key: name for key, name in fields.items() if name in whole.model_fields_set and key in args}
    keywords = copy.deepcopy(args) | extra | {key: getattr(whole, name) for key, name in names.items()}
    if _makes(keywords, whole):
        return keywords
    by_annotation = _by_annotation(_types_of(model), args)[0] | extra
    return by_annotation if _makes(by_annotation, whole) else copy.deepcopy(args)


def _makes(keywords: Json, whole: pydantic.BaseModel) -> bool:
    try:
        both = type(whole).model_validate(keywords), whole
        # What was given alone: defaults may differ each time, such as a new id or the time.
        again, before = ({name: getattr(each, name) for name in each.model_fields_set} for each in both)
        return again == before and both[0].model_extra == whole.model_extra
    except Exception:  # noqa: BLE001  (a validator may raise anything for a value that it made itself)
        return False


def _fields_of(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """Return the field for each keyword that the model's constructor accepts."""
    config = model.model_config
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    fields: dict[str, str] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, pydantic.AliasChoices) else [alias]
        keys = [choice for choice in choices if isinstance(choice, str)]
        fields |= dict.fromkeys([name, *keys] if alias is None or by_name else keys, name)
    return fields


def _details(error: pydantic.ValidationError, *place: str) -> list[ErrorDetails]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    for detail in details:
        detail["loc"] = (*place, *detail["loc"])
    return details


def _flaw(details: list[ErrorDetails], tool: str, args: Json) -> Flaw:
    # Errors that may be of an alternative that was not meant come last: arguments that bind fit their schema.
    details.sort(key=lambda detail: detail["type"] in _OF_ALTERNATIVES or detail["type"].endswith("_type"))
    problems: list[tuple[str, str]] = []
    for detail in details:
        part: Any = args
        steps: list[int | str] = []
        for step in detail["loc"]:  # pydantic's location also names types that it tried
            members: Any = dict(enumerate(part)) if is_array(part) else part
            if is_object(members) and step in members:
                part = members[step]
                steps.append(step)
        problems.append((short_pointer(steps), cut(detail["msg"])))
    reasons = listed(dict.fromkeys(f"{at}: {why}" if at else why for at, why in problems), _MOST_ERRORS)
    return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {reasons}", problems[0][0])
