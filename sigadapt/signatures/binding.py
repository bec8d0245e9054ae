"""Arguments as typed Python values, ready for `func(**bound)`. Nothing is called here (rule 1).

The rules:

 a. Arguments are checked against their declaration first; then each one that was sent is validated from JSON
    by its parameter's type, in pydantic's lax mode, because a JSON Schema takes `1.0` for an integer.
 b. What was not sent stays out, so that Python's own default applies. A default that stands in a pydantic
    `Field` is filled in, because Python would pass the `Field` itself.
 c. A pydantic model's fields come out under the names they were sent by, which its constructor takes.
 d. An argument whose parameter has no usable type, or that no parameter names, stays as it was sent, and so
    do all arguments of a declaration without a Python object.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MethodType
from typing import Any, TypeAlias, cast

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from typing_extensions import NotRequired, TypedDict

from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.caches import WeakCache
from sigadapt.schemas.json_values import Json, compact, cut, listed, pointer
from sigadapt.signatures.sources import callables, models, programs
from sigadapt.signatures.sources.annotations import UNDERIVABLE
from sigadapt.signatures.tool_decl import ToolDecl

_Validator: TypeAlias = "pydantic.TypeAdapter[Json]"

_MOST_ERRORS = 8
_LONGEST_PATH = 500
_MOST_JUDGED = 40_000
"""How often pydantic may judge parts of a call: a second's work, where every alternative fails."""

_OF_ALTERNATIVES = ("literal_error", "missing", "extra_forbidden", "enum")
_VALIDATORS: WeakCache[dict[bool, _Validator]] = WeakCache()
"""The validator of a callable's arguments, by whether it was given as a bound method."""


def bound_arguments(decl: ToolDecl, args: Json) -> "Json | Flaw":
    """Turn arguments into the Python values that the declared callable's types say.

    Args:
        decl: the declaration.
        args: the arguments; they fit its schema.

    Returns:
        The arguments by keyword: models, dataclasses, enums, dates and the like where the parameter says so.
        Or a Flaw `schema_mismatch`, with the path of the first misfit.

    Example:
        >>> import datetime
        >>> def remind(at: datetime.time) -> None: ...
        >>> bound_arguments(ToolDecl.of(remind), {"at": "07:30:00"})
        {'at': datetime.time(7, 30)}
    """
    if decl.func is None:
        return dict(args)
    if decl.judgements(args, _MOST_JUDGED) > _MOST_JUDGED:
        reason = "alternatives are nested too deep for pydantic, unless their union has a discriminator"
        return Flaw("schema_mismatch", f"the arguments of {decl.name} could not be bound: {reason}")
    try:
        return _typed(decl.func, args)
    except pydantic.ValidationError as error:
        return _flaw(error, decl.name, args)


def _typed(func: Callable[..., Any], args: Json) -> Json:
    if models.accepts(func):
        return _model_arguments(func, args)
    return _validator_of(func).validate_json(compact(args))


def _model_arguments(model: type[pydantic.BaseModel], args: Json) -> Json:
    made = model.model_validate_json(compact(args))
    if issubclass(model, pydantic.RootModel):
        return dict(args)  # the constructor makes the typed object of them
    fields = {key: name for name, field in model.model_fields.items() for key in _keywords(name, field)}
    typed = {key: getattr(made, name) for key, name in fields.items() if name in made.model_fields_set}
    return {key: typed.get(key, value) for key, value in (args | (made.model_extra or {})).items()}


def _keywords(name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, pydantic.AliasChoices) else [alias]
    return [name, *(choice for choice in choices if isinstance(choice, str))]


def _validator_of(func: Callable[..., Any]) -> _Validator:
    is_bound = isinstance(func, MethodType)
    known = _VALIDATORS.of(func.__func__ if is_bound else func, dict)
    if is_bound not in known:
        known[is_bound] = _compiled(_types_of(func))
    return known[is_bound]


def _types_of(func: Callable[..., Any]) -> dict[str, Any]:
    return programs.types_of(func) if programs.accepts(func) else callables.types_of(func)


def _compiled(types: Mapping[str, Any]) -> _Validator:
    try:
        return _of(types)
    except UNDERIVABLE:
        return _of({name: annotation for name, annotation in types.items() if _is_usable(annotation)})


def _of(types: Mapping[str, Any]) -> _Validator:
    fields = {name: NotRequired[annotation] for name, annotation in types.items()}
    arguments: Any = TypedDict("arguments", fields)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    arguments.__pydantic_config__ = pydantic.ConfigDict(extra="allow")
    return pydantic.TypeAdapter(arguments)


def _is_usable(annotation: Any) -> bool:
    try:
        _of({"value": annotation})
    except UNDERIVABLE:
        return False
    return True


def _flaw(error: pydantic.ValidationError, tool: str, args: Json) -> Flaw:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    details.sort(key=_is_of_an_alternative)
    reasons = listed(dict.fromkeys(_describe(detail, args) for detail in details), _MOST_ERRORS)
    return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {reasons}", _pointer(details[0], args))


def _is_of_an_alternative(detail: ErrorDetails) -> bool:
    """Whether an error may be of an alternative that was not meant: arguments that bind fit their schema."""
    return detail["type"] in _OF_ALTERNATIVES or detail["type"].endswith("_type")


def _describe(detail: ErrorDetails, args: Json) -> str:
    where, reason = _pointer(detail, args), cut(detail["msg"])
    return f"{where}: {reason}" if where else reason


def _pointer(detail: ErrorDetails, args: Json) -> str:
    whole = pointer(_places(detail["loc"], args))
    while len(whole) > _LONGEST_PATH:
        whole = whole.rpartition("/")[0]
    return whole


def _places(location: tuple[int | str, ...], value: Any) -> Iterator[int | str]:
    """The steps of pydantic's location that lead into the arguments; it also names types tried on the way."""
    for step in location:
        if isinstance(value, dict) and step in value:
            value = cast("Json", value)[cast("str", step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[step]
        else:
            continue
        yield step
