"""Turn a call's JSON arguments into typed Python values for `func(**bound)`. No tool is called.

a. Each argument is what pydantic makes from its JSON for the annotation alone, in lax mode, because JSON
   Schema accepts `1.0` as an integer. The caller checks arguments against the schema first.
b. A missing argument stays missing, so that Python's own default applies, unless that is a pydantic `Field`.
c. The keywords for a pydantic model, whose constructor validates again, are the first of these that it makes
   the same model from as pydantic makes from the JSON: the validated values; the values by annotation,
   without the model's validators; the arguments as sent. They keep the names that they were sent under.
d. An argument without a parameter or a usable type is copied as it was sent: the tool may change it.
"""

import copy
from collections.abc import Iterator
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import judgements_in
from sigadapt.schemas.json_values import Json, compact, cut, is_array, is_object, listed, short_pointer
from sigadapt.signatures.sources import callables, models, programs
from sigadapt.signatures.sources.annotations import UNDERIVABLE
from sigadapt.signatures.tool_decl import LostFunction, ToolDecl

_MOST_ERRORS = 8
_MOST_JUDGED = 40_000
"""How often pydantic may judge parts of a call. That is a second's work if every alternative fails."""

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
        bound = _model_arguments(decl.func, args)
    else:
        types = programs.types_of(decl.func) if programs.accepts(decl.func) else callables.types_of(decl.func)
        bound, errors = _by_annotation(types, args)
        for name in types.filled.difference(args):
            adapter = _adapter(types.named[name])
            default = adapter.get_default_value() if adapter else None
            if default:
                bound[name] = default.value
        bound = errors or bound
    return bound if isinstance(bound, dict) else _flaw(bound, decl.name, args)


def _by_annotation(types: callables.Types, args: Json) -> tuple[Json, list[ErrorDetails]]:
    """Return the arguments by their annotations, and the errors of those that stay as sent instead."""
    bound: Json = {}
    errors: list[ErrorDetails] = []
    for name, value in args.items():
        adapter = _adapter(types.named.get(name, types.others))
        try:
            bound[name] = adapter.validate_json(compact(value)) if adapter else copy.deepcopy(value)
        except pydantic.ValidationError as error:
            bound[name] = copy.deepcopy(value)
            errors += _details(error, name)
    return bound, errors


def _adapter(annotation: Any) -> "pydantic.TypeAdapter[Any] | None":
    if annotation is Any:
        return None
    try:
        return pydantic.TypeAdapter(annotation)
    except UNDERIVABLE:
        return None


def _model_arguments(model: type[pydantic.BaseModel], args: Json) -> "Json | list[ErrorDetails]":
    try:
        made = model.model_validate_json(compact(args))
    except pydantic.ValidationError as error:
        return _details(error)
    if issubclass(model, pydantic.RootModel):  # its constructor takes the value itself
        return copy.deepcopy(args)
    fields, extra = _fields_of(model), made.model_extra or {}
    given = {key: name for key, name in fields.items() if name in made.model_fields_set and key in args}
    validated = copy.deepcopy(args) | extra | {key: getattr(made, name) for key, name in given.items()}
    if _makes(validated, made):
        return validated
    types = callables.Types({key: model.model_fields[name].annotation for key, name in fields.items()})
    annotated = _by_annotation(types, args)[0] | extra
    return annotated if _makes(annotated, made) else copy.deepcopy(args)


def _makes(keywords: Json, made: pydantic.BaseModel) -> bool:
    try:
        again = type(made).model_validate(keywords)
        return _fields_given(again) == _fields_given(made)
    except Exception:  # noqa: BLE001  (a validator may raise anything for a value that it made itself)
        return False


def _fields_given(model: pydantic.BaseModel) -> tuple[Json, Json | None]:
    """Return what was given: defaults may differ each time, such as a new id or the time."""
    return {name: getattr(model, name) for name in model.model_fields_set}, model.model_extra


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
    placed = [(short_pointer(_places(detail["loc"], args)), cut(detail["msg"])) for detail in details]
    reasons = listed(dict.fromkeys(f"{at}: {why}" if at else why for at, why in placed), _MOST_ERRORS)
    return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {reasons}", placed[0][0])


def _places(location: tuple[int | str, ...], part: Any) -> Iterator[int | str]:
    """Yield the steps of pydantic's location that exist in the arguments. Others name types that it tried."""
    for step in location:
        known: Any = dict(enumerate(part)) if is_array(part) else part
        if is_object(known) and step in known:
            part = known[step]
            yield step
