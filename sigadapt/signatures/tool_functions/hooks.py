"""Hooks around a tool: objects whose methods see each call before it runs, its result, and its failure.

| method | gets | what it returns, unless None |
|---|---|---|
| `before_tool(call, context)` | the call | a ToolCall with other arguments, or the value of the call |
| `after_tool(call, result, context)` | what the function returned | the value in its place |
| `on_tool_error(call, error, context)` | the exception | the value of the call after all |

Each may be async. The first hook that returns something other than None decides.

Source of the idea: the tool callbacks of Google's Agent Development Kit.
"""

from collections.abc import Callable, Iterable
from typing import Any

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import type_of

METHODS = ("before_tool", "after_tool", "on_tool_error")


class HookError(RuntimeError):
    """A hook that failed. The model does not read its message, which may hold what the hook was to hide."""

    def __init__(self, method: str, error: BaseException) -> None:
        super().__init__(f"its {method} hook failed ({type(error).__name__})")


def check_hooks(hooks: Iterable[object]) -> None:
    """Refuse what is no hook.

    Raises:
        InvalidOption: for a class, and for an object without any of the methods.
    """
    for hook in hooks:
        fix = "Give objects with any of the methods before_tool, after_tool and on_tool_error."
        if isinstance(hook, type):
            reason = f"the class {hook.__name__} is no hook, an object of it is"
            raise InvalidOption(reason, field="hooks", fix=f"Make one: {hook.__name__}().")
        if not any(callable(getattr(hook, name, None)) for name in METHODS):
            raise InvalidOption(f"{type_of(hook)} has no method of a hook", field="hooks", fix=fix)


def methods_of(hooks: Iterable[object], name: str) -> list[Callable[..., Any]]:
    """Return the methods of one name, in the order of the hooks."""
    methods = [getattr(hook, name, None) for hook in hooks]
    return [method for method in methods if callable(method)]
