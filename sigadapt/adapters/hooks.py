"""Hooks around a model call: what they are given, and in which order they are asked.

A hook is an object with any of these methods, plain or async (async ones only on async calls):

    before_request(request, context) -> None, a changed Request, or a Choice that answers without the model
    after_choice(choice, context)    -> None, or a Choice in its place
    on_error(error, context)         -> None, or a Choice in place of the error

They are asked in order. A changed request goes on to the next hook; the first Choice wins and ends the
asking. The model is ADK-Go's model callbacks. DSPy's own callbacks fire as ever.
"""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from dspy.signatures.signature import Signature

from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.lowering import Change
from sigadapt.adapters.response.choice import Choice
from sigadapt.errors import InvalidOption
from sigadapt.signatures.awaiting import Await, Steps
from sigadapt.signatures.tool_decls import ToolDecls

METHODS = ("before_request", "after_choice", "on_error")


class HookContext(NamedTuple):
    """What a hook may know of the call; read-only.

    Args:
        model: the language model's name.
        signature: the signature called.
        decls: the declared tools.
        changes: what differs between the canonical request and what the provider gets; known once it is sent.
    """

    model: str
    signature: type[Signature]
    decls: ToolDecls
    changes: tuple[Change, ...] = ()


def check_hooks(hooks: Any) -> None:
    """Raise InvalidOption for what has none of a hook's methods."""
    if not isinstance(hooks, (tuple, list)):
        raise InvalidOption(f"{hooks!r} is not a list of hooks", field="hooks", fix="Pass hooks=[hook].")
    for hook in cast("list[Any]", hooks):
        if not any(callable(getattr(hook, method, None)) for method in METHODS):
            raise InvalidOption(
                f"{hook!r} has no hook method", field="hooks", fix=f"Give it one of {', '.join(METHODS)}."
            )


def before_request(hooks: Any, request: Request, context: HookContext) -> Steps[Request | Choice]:
    """Return the request as the hooks leave it, or the first Choice that one answers with."""
    for hook in hooks:
        answer = yield from _asked(hook, "before_request", request, context)
        if isinstance(answer, Choice):
            return answer
        if answer is not None:
            request = _checked_request(answer)
    return request


def after_choice(hooks: Any, choice: Choice, context: HookContext) -> Steps[Choice]:
    """Return the choice, or the first one that a hook gives in its place."""
    for hook in hooks:
        answer = yield from _asked(hook, "after_choice", choice, context)
        if answer is not None:
            return _checked_choice(answer, "after_choice")
    return choice


def on_error(hooks: Any, error: Exception, context: HookContext) -> Steps[Choice | None]:
    """Return the first Choice that a hook gives in the error's place."""
    for hook in hooks:
        answer = yield from _asked(hook, "on_error", error, context)
        if answer is not None:
            return _checked_choice(answer, "on_error")
    return None


def _asked(hook: Any, method: str, *arguments: Any) -> Steps[Any]:
    ask = getattr(hook, method, None)
    if ask is None:
        return None
    answer = ask(*arguments)
    if inspect.isawaitable(answer):
        answer = yield Await(answer, lambda: _async_hook(method))
    return answer


def _async_hook(method: str) -> InvalidOption:
    return InvalidOption(
        f"the hook's {method} is async, and this call is not",
        field="hooks",
        fix="Use the module's acall, or make the hook synchronous.",
    )


def _checked_request(answer: Any) -> Request:
    if isinstance(answer, Mapping) and "messages" in answer and "model" in answer:
        return cast("Request", answer)
    kind = type(cast("object", answer)).__name__
    raise InvalidOption(f"before_request returned a {kind}, neither a Request nor a Choice", field="hooks")


def _checked_choice(answer: Any, method: str) -> Choice:
    if isinstance(answer, Choice):
        return answer
    raise InvalidOption(f"{method} returned a {type(answer).__name__}, not a Choice", field="hooks")
