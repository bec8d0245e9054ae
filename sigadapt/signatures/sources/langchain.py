"""LangChain tools as tools, with the arguments that LangChain shows a model.

Of the arguments that it injects, `InjectedToolCallId` gets the id of the call. The others are of LangChain's
own agents, which nothing here can stand for, so a tool with one is refused where it is declared.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json
from sigadapt.signatures.sources import models
from sigadapt.signatures.sources.fields import Fields
from sigadapt.signatures.tool_results.function_calls import CONTEXT_FIRST, arun_function, sync_entry


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

    def __init__(self, tool: Any, call_id: str | None) -> None:
        self._tool = tool
        self._call_id = call_id  # the argument that takes the id of the call
        self.__name__: str = tool.name

    def __call__(self, **arguments: Any) -> Any:
        try:
            return self._tool.invoke(self._input(arguments))
        except NotImplementedError:
            base: Any = sys.modules["langchain_core.tools.base"].BaseTool
            if type(self._tool)._arun is base._arun:  # noqa: SLF001  (LangChain's own way to define one)
                raise
        return self._tool.ainvoke(self._input(arguments))  # its class has `_arun` alone

    async def acall(self, **arguments: Any) -> Any:
        return await self._tool.ainvoke(self._input(arguments))

    def _input(self, arguments: Json) -> Json:
        if self._tool.response_format != "content_and_artifact" and self._call_id is None:
            return arguments
        # For a call, LangChain returns a ToolMessage, which has the artifact too. It fills in the call's id
        # if the tool has a schema of its own; otherwise the arguments have it.
        call_id = arguments.get(self._call_id or "", "")
        return {"type": "tool_call", "id": call_id, "name": self._tool.name, "args": arguments}


class _WithCallId:
    """A tool that takes the id of its call.

    Args:
        function: what runs the tool.
        name: the argument that takes the id.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        functools.update_wrapper(self, function, updated=())
        setattr(self, CONTEXT_FIRST, True)
        self._function = function
        self._name = name

    def __call__(self, context: Any = None, /, **arguments: Any) -> Any:
        return sync_entry(self._function)(**self._with_id(context, arguments))

    async def acall(self, context: Any = None, /, **arguments: Any) -> Any:
        return await arun_function(self._function, self._with_id(context, arguments))

    def _with_id(self, context: Any, arguments: Json) -> Json:
        call_id = "" if context is None else context.call.id  # a model that writes one changes nothing
        return {**arguments, self._name: call_id}


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


def _function_of(source: Any) -> Callable[..., Any]:
    """Return what runs a tool."""
    forms = [getattr(source, name, None) for name in ("func", "coroutine")]
    functions: list[Callable[..., Any]] = [form for form in forms if form is not None]
    if source.response_format == "content_and_artifact":
        functions = [_with_message(function) for function in functions]
    call_id = _call_id_argument(source)
    function: Callable[..., Any] = _Invocation(source, call_id)
    if functions:
        function = functions[0] if len(functions) == 1 else _BothForms(*functions)
    return function if call_id is None else _WithCallId(function, call_id)


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


def describe(source: Any, parameters: Json | None) -> list[Fields]:
    """Describe a LangChain tool. It is never run (nothing is executed)."""
    extras = getattr(source, "extras", None)
    func = _function_of(source)
    tool = {"name": source.name, "description": source.description, "extras": extras, "func": func}
    if parameters is not None:
        return [{**tool, "parameters": parameters}]
    if isinstance(source.args_schema, dict):
        return [{**tool, "parameters": source.args_schema}]
    model: object = source.tool_call_schema
    if not models.accepts(model):
        raise InvalidToolDecl(
            "its arguments are neither a JSON Schema nor a pydantic 2 model",
            code="underivable",
            tool=source.name,
            fix="Give `args_schema` as one of these.",
        )
    return [{**tool, "parameters": models.schema_of_model(model)}]
