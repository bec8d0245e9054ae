"""`dspy.Tool` as a tool.

DSPy derives `args` from the function and loses details: constraints and descriptions in `Annotated`,
docstring sections, definitions that types share. So if `args` are those that DSPy derives, `callables.py`
describes the function instead. Other `args` are the author's; as in DSPy, an argument without a default is
then required. `dspy.Tool.from_mcp_tool` and `from_langchain` forget which arguments are required, but the
descriptions that they write still say `(Required)`.
"""

import inspect
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias, TypeGuard

import dspy

from sigadapt.dspy_boundary.contract import RefusableTool
from sigadapt.json_values import Json, compact, is_object
from sigadapt.schemas.subschemas import subschemas
from sigadapt.signatures.sources import callables
from sigadapt.signatures.sources.dicts import Fields
from sigadapt.signatures.sources.fingerprint import DeclaredCache
from sigadapt.signatures.sources.runnable import Runnable, asking_of

_Args: TypeAlias = dict[str, Any]  # schemas; a program may have put anything there
_REQUIRED = " (Required)"
_BY_DSPY: DeclaredCache[tuple[_Args, str]] = DeclaredCache()
"""The arguments and the description that DSPy derives from a function."""


_DEFINITIONS = ("$defs", "definitions")


class DeclaredTool(RefusableTool):
    """A `dspy.Tool` of a declaration; `tool_functions/agent_tool.py` makes it and runs it."""

    _decl: Any  # its ToolDecl

    @property
    def fields(self) -> Fields:
        """What the declaration says, under the name and the description of this tool."""
        return {**self._decl.fields, "name": self.name, "description": self.desc}

    @property
    def declaration(self) -> Runnable | None:
        """The declaration, if this tool was not changed since it was made of it."""
        decl = self._decl
        asking = asking_of(decl.func)
        if asking is not None and not asking.is_of(decl):
            return None
        is_same = self.name == decl.name and self.desc == decl.description
        return decl if is_same else None


def accepts(source: object) -> TypeGuard[dspy.Tool]:
    """Return whether the source is a `dspy.Tool`."""
    return isinstance(source, dspy.Tool)


def describe(source: dspy.Tool, parameters: Json | None) -> list[Fields]:
    """Describe a `dspy.Tool`. Neither it nor its function is called (nothing is executed)."""
    tool: Any = source
    func = tool.func
    args: _Args = source.args or {}
    own_name = None if source.name == "<lambda>" else source.name  # which nobody gave it
    if parameters is not None:
        return [{"name": own_name, "description": source.desc, "parameters": parameters, "func": func}]
    if isinstance(source, DeclaredTool):
        return [source.fields]
    if isinstance(func, Runnable):
        fields = func.fields
        description = fields["description"] if source.desc == func.__doc__ else source.desc
        return [{**fields, "name": own_name, "description": description}]
    descriptions = source.arg_desc or {}
    derived_args, doc = _read_by_dspy(func)
    for name in descriptions.keys() & derived_args.keys():
        derived_args = {**derived_args, name: {**derived_args[name], "description": descriptions[name]}}
    if args != derived_args:
        schema = _schema_of(source, args)
        return [{"name": own_name, "description": source.desc, "parameters": schema, "func": func}]
    [tool] = callables.describe(func, None)
    properties: Json = tool["parameters"]["properties"]
    for name in descriptions.keys() & properties.keys():
        properties[name]["description"] = descriptions[name]
    description = source.desc
    if description == doc:  # the raw docstring, sections and all
        description = callables.parse_docstring(inspect.cleandoc(doc)).description
    return [{**tool, "name": own_name, "description": description}]


def _read_by_dspy(func: Callable[..., Any]) -> tuple[_Args, str]:
    """Return the arguments and the docstring that `dspy.Tool` reads of a function, to notice changed ones."""

    def read() -> tuple[_Args, str]:
        by_dspy = dspy.Tool(func)
        return by_dspy.args or {}, by_dspy.desc or ""

    return _BY_DSPY.of(func, read)


def _schema_of(source: dspy.Tool, args: _Args) -> Json:
    """Return the schema of arguments that are not those of the tool's function."""
    # DSPy's agents make `submit` so, of the types of their outputs.
    descriptions = source.arg_desc or {}
    required = [name for name, schema in args.items() if not (is_object(schema) and "default" in schema)]
    # DSPy says in the description alone which arguments of such a schema are required.
    if source.has_kwargs and args and args.keys() == descriptions.keys():  # made of a JSON Schema by DSPy
        required = [name for name in args if descriptions[name].endswith(_REQUIRED)]
    # DSPy keeps a schema for each argument, whose references count from there (`#/$defs/Item`).
    schema: Json = {"type": "object", "properties": {}}
    for name, argument in args.items():
        schema["properties"][name] = _with_definitions_moved(argument, schema)
    return {**schema, "required": required}


def _with_definitions_moved(argument: Any, schema: Json) -> Any:
    """Return an argument's schema without its definitions, which it adds to the schema of all."""
    if not is_object(argument) or "$id" in argument:  # with an `$id`, references count from the argument
        return argument
    for keyword in _DEFINITIONS:
        if is_object(argument.get(keyword)) and f'"#/{keyword}/' in compact(argument):
            argument = deepcopy(argument)
            definitions = argument[keyword]
            suffix = _free_suffix(definitions, schema.get(keyword, {}))
            _add_to_references(suffix, argument, keyword)
            del argument[keyword]
            new_definitions = {f"{name}{suffix}": value for name, value in definitions.items()}
            schema[keyword] = {**schema.get(keyword, {}), **new_definitions}
    return argument


def _free_suffix(definitions: Json, others: Json) -> str:
    """Return what tells definitions from others of the same names; nothing if these are equal."""
    if all(compact(others.get(name, value)) == compact(value) for name, value in definitions.items()):
        return ""
    number = 2
    while any(f"{name}_{number}" in others for name in definitions):
        number += 1
    return f"_{number}"


def _add_to_references(suffix: str, argument: Json, keyword: str) -> None:
    start = f"#/{keyword}/"
    for place in subschemas(argument):
        reference = place.schema.get("$ref")
        if isinstance(reference, str) and reference.startswith(start):
            name, slash, rest = reference.removeprefix(start).partition("/")
            place.schema["$ref"] = f"{start}{name}{suffix}{slash}{rest}"
