"""Hooks around a tool: objects whose methods see each call before it runs, its result, and its failure.

| method | gets | what it returns, unless None |
|---|---|---|
| `before_tool(call, context)` | the call | a ToolCall with other arguments, or the value of the call |
| `after_tool(call, result, context)` | the value of the call | the value in its place |
| `on_tool_error(call, error, context)` | the exception | the value of the call after all |

Each may be async. The hooks stand in a row, in the order in which they were given: each gets what the one
before it left. `tool_function.py` has the order of a call.

Source of the idea: the tool callbacks of Google's Agent Development Kit.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from sigadapt.errors import InvalidOption
from sigadapt.json_values import closest, type_of

METHODS = ("before_tool", "after_tool", "on_tool_error")
_ALIKE = 0.8


class BeforeTool(Protocol):
    """A hook that sees each call before it runs."""

    def before_tool(self, call: Any, context: Any, /) -> object:
        """Return a ToolCall with other arguments, the value of the call, or None."""
        ...


class AfterTool(Protocol):
    """A hook that sees the value of each call."""

    def after_tool(self, call: Any, result: Any, context: Any, /) -> object:
        """Return the value in the place of this one, or None."""
        ...


class OnToolError(Protocol):
    """A hook that sees why a call failed."""

    def on_tool_error(self, call: Any, error: Exception, context: Any, /) -> object:
        """Return the value of the call after all, or None."""
        ...


Hook: TypeAlias = BeforeTool | AfterTool | OnToolError
"""An object with any of the three methods."""


class HookError(RuntimeError):
    """A hook that failed. The model does not read its message, which may hold what the hook was to hide."""

    def __init__(self, method: str, error: BaseException) -> None:
        super().__init__(f"its {method} hook failed ({type(error).__name__})")


def check_hooks(hooks: Iterable[object]) -> None:
    """Refuse what is no hook.

    Raises:
        InvalidOption: for a class, for an object without any of the methods, and for a misspelt method,
            which nothing would ever call.
    """
    for hook in hooks:
        fix = "Give objects with any of the methods before_tool, after_tool and on_tool_error."
        if isinstance(hook, type):
            reason = f"the class {hook.__name__} is no hook, an object of it is"
            raise InvalidOption(reason, field="hooks", fix=f"Make one: {hook.__name__}().")
        if not any(callable(getattr(hook, name, None)) for name in METHODS):
            raise InvalidOption(f"{type_of(hook)} has no method of a hook", field="hooks", fix=fix)
        for name in dir(hook):
            near = (
                None if name.startswith("_") or name in METHODS else closest(name, METHODS, at_least=_ALIKE)
            )
            if near is not None and callable(getattr(hook, name, None)):
                reason = f"{type_of(hook)} has a method {name!r}, which nothing calls"
                raise InvalidOption(reason, field="hooks", fix=f"Did you mean {near!r}?")


def methods_of(hooks: Iterable[object], name: str) -> list[Callable[..., Any]]:
    """Return the methods of one name, in the order of the hooks."""
    methods = [getattr(hook, name, None) for hook in hooks]
    return [method for method in methods if callable(method)]
