"""Hooks: a user's objects that can see and change the Request, the Choice or the error of a call.

A hook is an object with at least one of these methods. They may be async if the call is async:

    before_request(request, context) -> None, a changed Request, or a Choice that replaces the model's answer
    after_choice(choice, context)    -> None, or a Choice that replaces this one
    on_error(error, context)         -> None, or a Choice that replaces the error of a request or its answer

Hooks are called in order. The next hook gets the Request that the one before it changed; the first Choice
that a hook returns is used, and later hooks are not called. Calls that a hook changes in place are checked as
those of a Choice that it returns. `after_choice` gets the model's final answer, once: also what `on_error`
returns for a request that failed, but nothing that `before_request` returns, and nothing that replaces an
answer which it has seen. The design follows ADK-Go's model callbacks.
DSPy's own callbacks are called as usual.
"""

import inspect
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, cast

from dspy.signatures.signature import Signature

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.response.choice import Choice
from sigadapt.errors import InvalidOption, SigadaptError
from sigadapt.json_values import Json, cut, is_mapping, is_object, is_sequence
from sigadapt.providers.wire.values import an_object, name_in, named_part
from sigadapt.signatures.awaiting import Await, Steps
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import text_of_result
from sigadapt.signatures.tool_results.tool_result import ToolResult

METHODS = ("before_request", "after_choice", "on_error")
_ROLES = ("system", "developer", "user", "assistant", "tool")


class HookContext(NamedTuple):
    """What a hook can know about the call; read-only.

    Args:
        model: the language model's name.
        signature: the signature that was called.
        decls: the declared tools.
        changes: the differences between the canonical Request and what the provider gets; empty in
            `before_request`, where they are not known yet.
    """

    model: str
    signature: type[Signature]
    decls: ToolDecls
    changes: tuple[Change, ...] = ()


def check_hooks(hooks: Any) -> None:
    """Refuse `hooks` if it is not a list, or if an entry has none of a hook's methods."""
    if not is_sequence(hooks):
        raise InvalidOption(
            f"expected a list of hooks, got {hooks!r}", field="hooks", fix="Pass hooks=[hook]."
        )
    for hook in hooks:
        if isinstance(hook, type):
            raise InvalidOption(
                f"{hook.__qualname__} is a class, not an instance",
                field="hooks",
                fix=f"Pass {hook.__name__}().",
            )
        if not any(callable(getattr(hook, method, None)) for method in METHODS):
            raise InvalidOption(
                f"{hook!r} has no hook method", field="hooks", fix=f"Give it one of {', '.join(METHODS)}."
            )


def before_request(hooks: Any, request: Request, context: HookContext) -> Steps[Request | Choice]:
    """Call `before_request` of each hook; return the Request as they changed it, or the first Choice."""
    for hook in hooks:
        answer = yield from _ask(hook, "before_request", request, context)
        if isinstance(answer, Choice):
            return _readable(answer)
        if is_mapping(answer) and answer.get("messages") and "model" in answer:
            if answer["model"] != request["model"]:
                reason = "before_request named another model"
                fix = "Use dspy.context(lm=...) for the call."
                raise InvalidOption(reason, field="hooks", fix=fix)
            request = cast("Request", answer)
        elif answer is not None:
            kind = type(answer).__name__
            raise InvalidOption(f"before_request returned a {kind}, not a Request or a Choice", field="hooks")
    return _checked(request)


def _checked(request: Request) -> Request:
    """Return a Request that hooks may have changed, with its call's name on each result, or refuse it."""
    tools: Any = request.get("tools", ())
    messages: Any = request["messages"]
    if not is_sequence(tools) or not all(map(is_object, tools)):
        raise _unsendable("`tools` isn't a list of tools")
    rows: list[Any] = [*messages] if is_sequence(messages) else [messages]
    waiting: dict[str, str] = {}  # the names of the calls before a message that have no result yet
    for number, row in enumerate(rows):
        fault = _fault_of(row, waiting)
        if fault is not None:
            raise _unsendable(fault)
        if row["role"] == "tool":
            rows[number] = _with_result(row, waiting.pop(row["tool_call_id"]))
        else:
            waiting = {call["id"]: name_in(call) for call in row.get("tool_calls") or ()}
    if waiting:
        raise _unsendable(f"the call {next(iter(waiting))!r} has no result")
    return {**request, "messages": rows}


def _unsendable(fault: str) -> InvalidOption:
    reason = f"before_request left a request that cannot be sent: {fault}"
    fix = "Give messages and tools in the shape of OpenAI's chat completions."
    return InvalidOption(reason, field="hooks", fix=fix)


def _with_result(row: Json, name: str) -> Json:
    """Return a tool message with the result that its text is, where a hook wrote or changed the text."""
    whole = {"name": name, "is_error": False, **row}
    result: ToolResult | None = row.get("result")
    if result is not None and result.is_content:  # its images and files stay beside another text
        return whole
    if result is None or (text_of_result(result), result.is_error) != (row["content"], whole["is_error"]):
        values = {"call_id": row["tool_call_id"], "name": whole["name"], "value": row["content"]}
        whole["result"] = ToolResult(**values, is_error=whole["is_error"])
    return whole


def _fault_of(row: Any, waiting: Mapping[str, str]) -> str | None:
    """Return why a message cannot stand behind these calls; None if it can."""
    if not is_object(row) or row.get("role") not in _ROLES:
        return f"{cut(repr(row))} isn't a message"
    content = row.get("content")
    calls: Any = row.get("tool_calls") or ()
    if row["role"] == "tool":
        call_id = row.get("tool_call_id")
        if not (isinstance(call_id, str) and call_id in waiting and isinstance(content, str)):
            return f"the result of {cut(repr(call_id))} isn't a text, or follows no call with this id"
    elif waiting:
        return f"the call {next(iter(waiting))!r} has no result"
    elif not is_sequence(calls) or not all(map(_is_call, calls)):
        return f"a call in {cut(repr(calls))} has no id, name or arguments"
    elif not isinstance(content, (str, list)) and (content is not None or row["role"] != "assistant"):
        return f"{cut(repr(content))} is neither a text nor a list of parts"
    return None


def _is_call(call: Any) -> bool:
    if not is_object(call):
        return False
    part = an_object(named_part(call))
    texts = call.get("id"), part.get("name"), part.get("arguments", part.get("input"))
    return all(isinstance(text, str) for text in texts)


def first_choice(hooks: Any, method: str, subject: Any, context: HookContext) -> Steps[Choice | None]:
    """Call `after_choice` or `on_error` of each hook; return the first Choice that one returns, else None."""
    for hook in hooks:
        answer = yield from _ask(hook, method, subject, context)
        if isinstance(answer, Choice):
            return _readable(answer)
        if answer is not None:
            kind = type(answer).__name__
            raise InvalidOption(f"{method} returned a {kind}, not a Choice", field="hooks")
    return None


def _readable(choice: Any) -> Choice:
    """Return the Choice of a hook, or refuse one with something else in the place of a text or of calls."""
    texts = (choice.text, choice.reasoning, choice.finish_reason, choice.finish_message, choice.commentary)
    odd = [value for value in texts if not isinstance(value, str | None)]
    if not isinstance(choice.tool_calls, ToolCalls | None):
        odd.append(choice.tool_calls)
    for value in odd:
        reason = f"a hook made a Choice with {cut(repr(value))}, which is neither a text nor ToolCalls"
        raise InvalidOption(reason, field="hooks", fix='Give Choice("...", tool_calls=ToolCalls([...])).')
    return choice


class CallsBefore:
    """The calls of a Choice before hooks got it, to notice a hook that changes them in place."""

    def __init__(self, choice: Choice) -> None:
        self._calls = choice.tool_calls
        self._items = [] if self._calls is None else [*self._calls.in_order()]
        self._values = [deepcopy(_values_of(call)) for call in self._items]

    def with_other_calls(self, choice: Choice) -> Choice | None:
        """Return a Choice with calls that have to be checked; None if they are those from before."""
        calls = choice.tool_calls
        # A hook may have put other calls into the Choice, or changed the calls that were there.
        if calls is None or calls is not self._calls:
            return None if calls is self._calls else choice
        known = {id(call): values for call, values in zip(self._items, self._values, strict=True)}
        left: list[Any] = [*calls.tool_calls, *calls.invalid]
        items = [*left]
        for number, call in enumerate(left):
            if isinstance(call, ToolCall) and _values_of(call) != known.get(id(call)):
                # The text that the model wrote for the arguments is not what the hook left.
                items[number] = {"id": call.id, "name": call.name, "args": call.args}
        if len(left) == len(known) and all(new is call for new, call in zip(items, left, strict=True)):
            return None
        return replace(choice, tool_calls=rebuilt(items, calls))


def rebuilt(items: Sequence[Any], calls: ToolCalls) -> ToolCalls:
    """Return ToolCalls of what a hook left in the list of a turn's calls, or raise why it cannot be read."""
    try:
        return ToolCalls(items, turn=calls.turn)
    except (SigadaptError, ValueError, TypeError, RecursionError) as error:
        reason = f"a hook left something that is no call in `choice.tool_calls`: {error}"
        fix = "Return a Choice with ToolCalls([...]) of calls with a name and a dict of arguments."
        raise InvalidOption(reason, field="hooks", fix=fix) from error


def _values_of(call: Any) -> Any:
    if isinstance(call, ToolCall):
        return call.id, call.name, call.args
    return call if isinstance(call, InvalidToolCall) else None


def _ask(hook: Any, method: str, *arguments: Any) -> Steps[Any]:
    ask = getattr(hook, method, None)
    if ask is None:
        return None
    answer = ask(*arguments)
    if inspect.isawaitable(answer):
        reason = f"the hook's {method} is async, but the call is sync"
        fix = "Use the module's acall."
        answer = yield Await(answer, lambda: InvalidOption(reason, field="hooks", fix=fix))
    return answer
