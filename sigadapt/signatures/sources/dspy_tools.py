"""`dspy.Tool` as a tool.

DSPy derives `args` from the function and loses details: constraints and descriptions in `Annotated`,
docstring sections, definitions that types share. So if `args` are those that DSPy derives, `callables.py`
describes the function instead. Other `args` are the author's; as in DSPy, an argument without a default is
then required. `dspy.Tool.from_mcp_tool` and `from_langchain` forget which arguments are required, but the
descriptions that they write still say `(Required)`.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard

import dspy

from sigadapt.dspy_boundary.contract import RefusableTool
from sigadapt.schemas.definitions import object_schema
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.sources import callables, docstrings
from sigadapt.signatures.sources.fields import Fields
from sigadapt.signatures.sources.fingerprint import DeclaredCache
from sigadapt.signatures.sources.runnable import Runnable, asking_of

_Args: TypeAlias = dict[str, Any]  # schemas; a program may have put anything there
_REQUIRED = " (Required)"
_BY_DSPY: DeclaredCache[tuple[_Args, str]] = DeclaredCache()
"""The arguments and the description that DSPy derives from a function."""


class DeclaredTool(RefusableTool):
    """A `dspy.Tool` of a declaration; `tool_functions/agent_tool.py` makes it and runs it."""

    _decl: Runnable

    @property
    def fields(self) -> Fields:
        """What the declaration says, under the name and the description of this tool."""
        return {**self._decl.fields, "name": self.name, "description": self.desc}

    @property
    def declaration(self) -> Runnable | None:
        """The declaration, if this tool was not changed since it was made of it."""
        decl: Any = self._decl
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
        description = docstrings.parse(inspect.cleandoc(doc)).description
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
    return {**object_schema(args), "required": required}
