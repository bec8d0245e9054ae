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


class _BothForms:
    """A tool with a sync and an async function."""

    def __init__(self, function: Callable[..., Any], coroutine: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.acall = coroutine

    def __call__(self, **arguments: Any) -> Any:
        return self._function(**arguments)


class _Invocation:
    """A tool of a class of its own, which has no function to call: LangChain invokes it."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool
        self.__name__: str = tool.name

    def __call__(self, **arguments: Any) -> Any:
        return self._tool.invoke(self._input(arguments))

    async def acall(self, **arguments: Any) -> Any:
        return await self._tool.ainvoke(self._input(arguments))

    def _input(self, arguments: Json) -> Json:
        if self._tool.response_format != "content_and_artifact":
            return arguments
        # For a call, LangChain returns a ToolMessage, which has the artifact too.
        return {"type": "tool_call", "id": "", "name": self._tool.name, "args": arguments}


def _function_of(source: Any) -> Callable[..., Any]:
    """Return what runs a tool."""
    forms = [getattr(source, name, None) for name in ("func", "coroutine")]
    functions: list[Callable[..., Any]] = [form for form in forms if form is not None]
    if source.response_format == "content_and_artifact":
        functions = [_with_message(function) for function in functions]
    if not functions:
        return _Invocation(source)
    return functions[0] if len(functions) == 1 else _BothForms(*functions)


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
    extras = getattr(source, "extras", None)
    raw = RawDecl(source.name, source.description, extras=extras, func=_function_of(source))
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
