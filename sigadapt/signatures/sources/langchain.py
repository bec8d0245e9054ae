"""LangChain tools as tools, with the arguments that LangChain shows a model: injected ones are left out."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources import models
from sigadapt.signatures.sources.raw_decl import RawDecl


def accepts(source: object) -> bool:
    """Return whether the source is a LangChain tool. A tool exists only if LangChain is already imported."""
    module = sys.modules.get("langchain_core.tools.base")
    return isinstance(source, getattr(module, "BaseTool", ()))


def _with_message(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the content and the artifact of its tool as LangChain's `ToolMessage`."""
    messages: Any = sys.modules["langchain_core.messages"]  # loaded, because the tool is one of LangChain's

    def message(result: Any) -> Any:
        content, artifact = result
        return messages.ToolMessage(content=content, artifact=artifact, tool_call_id="")

    async def later(result: Any) -> Any:
        return message(await result)

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        return later(result) if inspect.isawaitable(result) else message(result)

    return run


def describe(source: Any, parameters: Json | None) -> list[RawDecl]:
    """Describe a LangChain tool. It is never run (nothing is executed)."""
    func = getattr(source, "func", None) or getattr(source, "coroutine", None)
    if func is not None and getattr(source, "response_format", None) == "content_and_artifact":
        func = _with_message(func)
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
