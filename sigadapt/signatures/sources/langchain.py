"""LangChain tools as tools, with the arguments that LangChain shows a model: injected ones are left out."""

import sys
from typing import Any

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources import models
from sigadapt.signatures.sources.raw_decl import RawDecl


def accepts(source: object) -> bool:
    """Return whether the source is a LangChain tool. A tool exists only if LangChain is already imported."""
    module = sys.modules.get("langchain_core.tools.base")
    return isinstance(source, getattr(module, "BaseTool", ()))


def describe(source: Any, parameters: Json | None) -> list[RawDecl]:
    """Describe a LangChain tool. It is never run (nothing is executed)."""
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
