"""LangChain tools as tools, with the arguments that LangChain shows a model.

LangChain runs them: by a tool's schema it reads the arguments, fills in defaults, and hands a function a date
or a model. Of the arguments that it injects, `InjectedToolCallId` gets the id of the call. The others are of
LangChain's own agents, which nothing here can stand for, so a tool with one is refused where it is declared.
"""

import sys
from typing import Any

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json
from sigadapt.signatures.sources import models
from sigadapt.signatures.sources.dicts import Fields
from sigadapt.signatures.tool_results.function_calls import CONTEXT_FIRST
from sigadapt.signatures.tool_results.tool_output import is_a

_SINGLE = ("langchain_core.tools.simple",)
# Source: `_format_tool_to_openai_function` of langchain-core 1.8 (`utils/function_calling.py`).
_SINGLE_INPUT: Json = {"type": "object", "properties": {"__arg1": {"type": "string"}}, "required": ["__arg1"]}
"""The arguments of LangChain's `Tool`, whose function takes one text by position."""


def accepts(source: object) -> bool:
    """Return whether the source is a LangChain tool. A tool exists only if LangChain is already imported."""
    module = sys.modules.get("langchain_core.tools.base")
    return isinstance(source, getattr(module, "BaseTool", ()))


class _Invocation:
    """What runs a tool: LangChain itself, which reads arguments by the tool's schema, and injects some.

    Args:
        tool: the tool.
        call_id: the argument that takes the id of the call, if there is one.
    """

    def __init__(self, tool: Any, call_id: str | None) -> None:
        setattr(self, CONTEXT_FIRST, True)
        self.__name__: str = tool.name
        self._tool = tool
        self._call_id = call_id

    def __call__(self, context: Any = None, /, **arguments: Any) -> Any:
        has_function = hasattr(self._tool, "func")
        if has_function and self._tool.func is None:  # it has a coroutine alone
            return self._tool.ainvoke(self._input(context, arguments))
        try:
            return self._tool.invoke(self._input(context, arguments))
        except NotImplementedError:
            if has_function or not _has_async_form(self._tool):
                raise
        return self._tool.ainvoke(self._input(context, arguments))  # its class has `_arun` alone

    def _input(self, context: Any, arguments: Json) -> Json:
        tool = self._tool
        if tool.response_format == "content" and self._call_id is None and not tool.handle_tool_error:
            return arguments
        # For a call, LangChain returns a ToolMessage, which has the artifact and whether the tool failed. It
        # fills in the call's id if the tool has a schema of its own; otherwise the arguments have it.
        call_id = "" if context is None else context.call.id
        if self._call_id is not None:  # a model that writes one changes nothing
            arguments = {**arguments, self._call_id: call_id}
        return {"type": "tool_call", "id": call_id, "name": tool.name, "args": arguments}


class _AsyncInvocation(_Invocation):
    """The same of a tool with an async form; any other blocks, and async code runs it in a thread."""

    async def acall(self, context: Any = None, /, **arguments: Any) -> Any:
        return await self._tool.ainvoke(self._input(context, arguments))


def _has_async_form(tool: Any) -> bool:
    if hasattr(tool, "coroutine"):
        return tool.coroutine is not None
    base: Any = sys.modules["langchain_core.tools.base"].BaseTool
    return type(tool)._arun is not base._arun  # noqa: SLF001  (LangChain's own way to define one)


def _call_id_argument(source: Any) -> str | None:
    """Return the argument of a tool that takes the id of its call; None without one.

    Raises:
        InvalidToolDecl: `injected_argument`, for any other argument that LangChain injects.
    """
    if isinstance(source.args_schema, dict):
        return None
    fields: Json = getattr(source.get_input_schema(), "model_fields", {})
    shown: Json = getattr(source.tool_call_schema, "model_fields", {})
    call_id: Any = sys.modules["langchain_core.tools.base"].InjectedToolCallId
    found: str | None = None
    for name in fields.keys() - shown.keys():
        kinds = [mark if isinstance(mark, type) else type(mark) for mark in fields[name].metadata]
        if any(issubclass(kind, call_id) for kind in kinds):
            found = name
        elif fields[name].is_required():  # otherwise its default stands for what nobody injects
            raise InvalidToolDecl(
                f"its argument {name!r} is injected by LangChain's own agents",
                code="injected_argument",
                tool=source.name,
                fix=f"Declare a function that calls it, with {name} from `sigadapt.ToolContext`.",
            )
    return found


def describe(source: Any, parameters: Json | None) -> list[Fields]:
    """Describe a LangChain tool. It is never run (nothing is executed)."""
    extras = getattr(source, "extras", None)
    kind = _AsyncInvocation if _has_async_form(source) else _Invocation
    func = kind(source, _call_id_argument(source))
    tool = {"name": source.name, "description": source.description, "extras": extras, "func": func}
    if parameters is not None:
        return [{**tool, "parameters": parameters}]
    if isinstance(source.args_schema, dict):
        return [{**tool, "parameters": source.args_schema}]
    if source.args_schema is None and is_a("Tool", source, _SINGLE):
        return [{**tool, "parameters": _SINGLE_INPUT}]
    model: object = source.tool_call_schema
    if not models.accepts(model):
        raise InvalidToolDecl(
            "its arguments are neither a JSON Schema nor a pydantic 2 model",
            code="underivable",
            tool=source.name,
            fix="Give `args_schema` as one of these.",
        )
    return [{**tool, "parameters": models.schema_of_model(model)}]
