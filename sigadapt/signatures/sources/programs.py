"""DSPy signatures and modules as tools (agent as tool): inputs are parameters, outputs are the result.

a. A signature class is described by its fields. `func` is a `dspy.Predict` of it, for the caller.
b. A module whose `forward` has named parameters is described by that method, like any function. Any other
   module, such as DSPy's own, is described by its attribute `signature`, or the signature of its only
   predictor. `func` is the module.
c. The name is the class's; for modules of DSPy and sigadapt, the signature's. A signature made from a string,
   or extended by its module as in `ChainOfThought`, has no name: `ToolDecl.of(module, name=...)` gives one.
"""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from types import MethodType
from typing import Annotated, Any, TypeGuard, cast

import dspy
from pydantic.fields import FieldInfo

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, is_object
from sigadapt.schemas.checking import check
from sigadapt.signatures.sources import callables
from sigadapt.signatures.sources.annotations import UNDERIVABLE, Schemas, jsonable, schema_of, schemas_of
from sigadapt.signatures.sources.dicts import Fields

_NAMELESS = "StringSignature"  # DSPy's name for a signature made from a string


def accepts(source: object) -> TypeGuard[dspy.Module | type[dspy.Signature]]:
    """Return whether the source is a DSPy signature class or a module instance."""
    return isinstance(source, dspy.Module) or _is_signature(source)


def describe(source: dspy.Module | type[dspy.Signature], parameters: Json | None) -> list[Fields]:
    """Describe a signature or a module as a tool."""
    if _is_signature(source):
        return [{**_of_signature(source, parameters), "func": cast("Any", dspy.Predict)(source)}]
    module = cast("dspy.Module", source)
    kind = type(module)
    if (forward := _forward(module)) is not None:
        [tool] = callables.describe(forward, parameters)
    elif (signature := _signature(module)) is not None:
        tool = _of_signature(signature, parameters)
    elif parameters is not None:
        tool = {"parameters": parameters}
    else:
        raise InvalidToolDecl(
            "its forward names no parameters, and it has no signature of its own",
            code="underivable",
            tool=kind.__qualname__,
            fix="Name the parameters of forward, or give its schema: ToolDecl.of(module, parameters=...).",
        )
    if not _is_dspys(kind):
        own_doc = inspect.cleandoc(vars(kind).get("__doc__") or "")
        tool |= {"name": kind.__name__, "description": own_doc or tool.get("description")}
    return [{**tool, "func": module}]


def types_of(program: dspy.Module | type[dspy.Signature]) -> callables.Types:
    """Return the annotations of the inputs."""
    signature = program
    if not _is_signature(program):
        module = cast("dspy.Module", program)
        if (forward := _forward(module)) is not None:
            return callables.types_of(forward)
        signature = _signature(module)
    if not _is_signature(signature):
        return callables.Types({})
    return callables.Types(_types(signature.input_fields))


def _is_signature(source: object) -> TypeGuard[type[dspy.Signature]]:
    return issubclass(type(source), type) and issubclass(cast("type", source), dspy.Signature)


def _is_dspys(kind: Any) -> bool:
    return kind.__module__.partition(".")[0] in ("dspy", "sigadapt")  # whose ReAct is DSPy's


def _forward(module: dspy.Module) -> MethodType | None:
    """Return the module's own `forward` if it has named parameters, else None."""
    kind = type(module)  # DSPy logs a warning for `module.forward`
    function: Any = getattr(kind, "forward", None) or getattr(kind, "aforward", None)
    if not callable(function) or _is_dspys(function):
        return None
    forward = MethodType(function, module)
    kinds = {parameter.kind for parameter in inspect.signature(forward).parameters.values()}
    return forward if kinds - {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} else None


def _signature(module: dspy.Module) -> type[dspy.Signature] | None:
    signature = getattr(module, "signature", None)
    if _is_signature(signature):
        return signature
    predictors: list[Any] = module.predictors()
    return predictors[0].signature if len(predictors) == 1 else None


def _of_signature(signature: type[dspy.Signature], parameters: Json | None) -> Fields:
    name = None if signature.__name__ == _NAMELESS else signature.__name__
    if parameters is not None:
        return {"name": name, "description": signature.instructions, "parameters": parameters}
    where = f"{signature.__module__}.{signature.__qualname__}"
    schemas = schemas_of(_types(signature.input_fields))
    if schemas.problems:
        fix = "Change its input fields, or give its schema: ToolDecl.of(signature, parameters=...)."
        raise InvalidToolDecl("; ".join(schemas.problems), code="underivable", tool=where, fix=fix)
    schema = _object(schemas, signature.input_fields, is_open=False)
    check(schema, tool=where)
    returns = _returns(signature.output_fields)
    return {"name": name, "description": signature.instructions, "parameters": schema, "returns": returns}


def _returns(fields: Mapping[str, FieldInfo]) -> Json | None:
    properties: dict[str, Json] = {}
    defs: Json = {}
    for name, annotation in _types(fields).items():
        try:
            properties[name] = schema_of(annotation, "serialization")
        except UNDERIVABLE:
            return None  # a result's schema is optional; only arguments must have one
        for key, definition in properties[name].pop("$defs", {}).items():
            if defs.setdefault(key, definition) != definition:
                return None  # two types with the same name, so `$defs` cannot hold both
    return _object(Schemas(properties, defs, [], used_pydantic=True), fields, is_open=True)


def _types(fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for name, field in fields.items():
        types[name] = field.annotation
        if field.metadata:
            types[name] = Annotated[(field.annotation, *field.metadata)]
    return types


def _object(schemas: Schemas, fields: Mapping[str, FieldInfo], *, is_open: bool) -> Json:
    """Return the schema of an object, with what the fields say beside their types."""
    for name, schema in schemas.properties.items():
        field = fields[name]
        extra = fields[name].json_schema_extra
        description = extra.get("desc") if is_object(extra) else None
        if description and description != f"${{{name}}}":  # DSPy's default description
            schema["description"] = description
        if not field.is_required() and field.default_factory is None:
            with suppress(ValueError):
                schema["default"] = jsonable(field.default)
    required = [name for name, field in fields.items() if field.is_required()]
    return schemas.as_object(required, is_open=is_open)
