"""LangChain tools as a source of tools: what LangChain would show a model, injected arguments left out."""

import sys
from typing import Any

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources import models
from sigadapt.signatures.sources.raw_decl import RawDecl


def accepts(source: object) -> bool:
    """Whether the source is a LangChain tool. LangChain is not imported: a tool exists only if it was."""
    module = sys.modules.get("langchain_core.tools.base")
    return isinstance(source, getattr(module, "BaseTool", ()))


def describe(source: Any, parameters: Json | None) -> list[RawDecl]:
    """Say what a LangChain tool is as a tool. It is never run.

    Args:
        source: a `langchain_core.tools.BaseTool`.
        parameters: a schema to use in place of its own.

    Raises:
        InvalidToolDecl: `underivable` where its arguments are no JSON Schema and no pydantic 2 model.
    """
    func = getattr(source, "func", None) or getattr(source, "coroutine", None)
    raw = RawDecl(source.name, source.description, extras=getattr(source, "extras", None), func=func)
    if parameters is not None:
        return [raw._replace(parameters=parameters)]
    if isinstance(source.args_schema, dict):
        return [raw._replace(parameters=source.args_schema)]
    model: object = source.tool_call_schema
    if not models.accepts(model):
        raise InvalidToolDecl(
            "its arguments are neither a JSON Schema nor a pydantic 2 model",
            code="underivable",
            tool=source.name,
            fix="Give `args_schema` as one of these.",
        )
    return [raw._replace(parameters=models.schema_of_model(model), derived=True)]
