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

from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources import callables, docstrings
from sigadapt.signatures.sources.fingerprint import DeclaredCache
from sigadapt.signatures.sources.raw_decl import RawDecl
from sigadapt.signatures.sources.runnable import Runnable, by_name, is_open, said, types_to_bind
from sigadapt.signatures.tool_results.failures import plain_failures

_Args: TypeAlias = dict[str, dict[str, Any]]
_REQUIRED = " (Required)"
_BY_DSPY: DeclaredCache[tuple[_Args, str]] = DeclaredCache()
"""The arguments and the description that DSPy derives from a function."""


class DeclaredTool(dspy.Tool):
    """A `dspy.Tool` of a declaration, which `ToolDecl.to_dspy` makes."""

    _raw: RawDecl

    def __init__(self, raw: RawDecl, function: Callable[..., Any]) -> None:
        schema: Json = raw.parameters
        definitions: Json = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        properties: dict[str, Any] = schema.get("properties") or {}
        args: _Args = {
            name: deepcopy({**part, **definitions} if isinstance(part, dict) else definitions)
            for name, part in properties.items()
        }
        func = by_name(function)
        types = types_to_bind(raw)
        arg_types = {name: types.get(name, Any) for name in args}
        super().__init__(func, str(raw.name), str(raw.description or ""), args, arg_types)
        self._raw = raw

    def _parse_function(self, func: Any, arg_desc: Any = None) -> None:
        # DSPy would derive a schema here, and fail for functions that it cannot read.
        self.has_kwargs = not self.args or is_open(func)

    @property
    def raw(self) -> RawDecl:
        """What the declaration says."""
        return self._raw

    def __call__(self, **kwargs: Any) -> Any:
        """Run the function, as `dspy.Tool` does, and return what an MCP result says."""
        with plain_failures():
            return said(super().__call__(**kwargs))

    async def acall(self, **kwargs: Any) -> Any:
        """Run the function, awaited."""
        with plain_failures():
            return said(await super().acall(**kwargs))


def accepts(source: object) -> TypeGuard[dspy.Tool]:
    """Return whether the source is a `dspy.Tool`."""
    return isinstance(source, dspy.Tool)


def describe(source: dspy.Tool, parameters: Json | None) -> list[RawDecl]:
    """Describe a `dspy.Tool`. Neither it nor its function is called (nothing is executed)."""
    tool: Any = source
    func = tool.func
    args: _Args = source.args or {}
    own_name = None if source.name == "<lambda>" else source.name  # which nobody gave it
    if parameters is not None:
        return [RawDecl(own_name, source.desc, parameters, func=func)]
    if isinstance(source, DeclaredTool):
        return [source.raw]
    if isinstance(func, Runnable):
        raw_decl = func.raw
        description = raw_decl.description if source.desc == func.__doc__ else source.desc
        return [raw_decl._replace(name=own_name, description=description)]
    descriptions = source.arg_desc or {}
    if (args_and_doc := _BY_DSPY.get(func)) is None:
        by_dspy = dspy.Tool(func)
        args_and_doc = by_dspy.args or {}, by_dspy.desc or ""
        _BY_DSPY.put(func, args_and_doc)
    derived_args, doc = args_and_doc
    for name in descriptions.keys() & derived_args.keys():
        derived_args = {**derived_args, name: {**derived_args[name], "description": descriptions[name]}}
    if args != derived_args:
        required = [name for name, schema in args.items() if "default" not in schema]
        if source.has_kwargs and args and args.keys() == descriptions.keys():  # made of a JSON Schema by DSPy
            required = [name for name in args if descriptions[name].endswith(_REQUIRED)]
        schema = {"type": "object", "properties": args, "required": required}
        return [RawDecl(own_name, source.desc, schema, func=func)]
    [raw] = callables.describe(func, None)
    for name in descriptions.keys() & raw.parameters["properties"].keys():
        raw.parameters["properties"][name]["description"] = descriptions[name]
    description = source.desc
    if description == doc:  # the raw docstring, sections and all
        description = docstrings.parse(inspect.cleandoc(doc)).description
    return [raw._replace(name=own_name, description=description)]
