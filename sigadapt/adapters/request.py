"""The canonical Request: one OpenAI-like dict for every provider (Plan -> Request).

    {"model": ..., "messages": [...], "tools": [{"type": "function", "function": {...}}],
     "tool_choice": ..., "parallel_tool_calls": ..., "temperature": ..., ...}

`messages` are OpenAI chat messages. Two keys go beyond that shape, because it has no place for them:
`is_error` on a tool message, and `turn` on an assistant message, the `signatures.calls.Turn` that it
replays. The provider's own shape is the business of lm15 and LiteLLM, behind `transport.py`.
"""

from collections.abc import Generator, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypedDict, cast

from dspy.signatures.signature import Signature

from sigadapt.adapters.memo import Memo
from sigadapt.adapters.options import Options, ToolChoice
from sigadapt.adapters.plan import Plan
from sigadapt.errors import InvalidOption, InvalidToolDecl
from sigadapt.signatures.decls import ToolDecls
from sigadapt.signatures.remembered import remembered
from sigadapt.signatures.toolset import resolving
from sigadapt.signatures.toolsets.context import RequestContext
from sigadapt.signatures.toolsets.waiting import Waiting


class _Always(TypedDict):
    model: str
    messages: list[dict[str, Any]]


class Request(_Always, total=False):
    """A canonical request; generation settings (`temperature`, `max_tokens`, ...) are further keys of it."""

    tools: list[dict[str, Any]]
    tool_choice: str | dict[str, Any]
    parallel_tool_calls: bool


_MODES = ("auto", "required", "none")


def decls_of(
    plan: Plan,
    signature: type[Signature],
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
    options: Options,
) -> Generator[Waiting, Any, ToolDecls]:
    """The declarations of this call, whatever form they were given in; toolsets that wait are yielded.

    Args:
        plan: the signature's plan.
        signature: the signature that is asked.
        inputs: the values of its input fields.
        settings: the generation settings of this call.
        options: the adapter's; its hooks see the declarations, so they get some of this call's own.

    Raises:
        InvalidToolDecl: for anything that declares no tool (rule 4), or none where a call is required.
    """
    given = inputs.get(plan.tools)
    if given is None and plan.tools_required:
        raise InvalidToolDecl(
            "no tools were given", code="missing_tools", field=plan.tools, fix=f"Pass {plan.tools}=[...]."
        )
    decls = given if type(given) is ToolDecls else None
    if type(given) in (list, tuple) and not options.hooks:
        decls = remembered(cast("Sequence[Any]", given))
    if decls is None:
        context = RequestContext(signature, inputs, settings)
        decls = yield from resolving(() if given is None else given, context)
    if not decls and plan.calls_required:
        raise InvalidToolDecl(
            f"no tool is declared and {plan.calls!r} requires a call",
            code="missing_tools",
            field=plan.tools,
            fix=f"Declare a tool, or make {plan.calls!r} optional with `ToolCalls | None`.",
        )
    return decls


def build_request(
    model: str,
    messages: list[dict[str, Any]],
    decls: ToolDecls,
    options: Options,
    generation: Mapping[str, Any],
) -> Request:
    """Put messages, declarations and generation settings into one canonical request.

    Args:
        model: the language model's name, as `dspy.LM` has it.
        messages: the conversation as OpenAI chat messages.
        decls: the declared tools; sent exactly as written.
        options: the adapter's options; a call's own `tool_choice` and `parallel_tool_calls` come first.
        generation: `temperature` and the like, the call's over the model's own defaults.

    Returns:
        The request. `tools` is absent where nothing is declared.

    Raises:
        InvalidOption: for a tool choice that names no declared tool, or any choice without tools (rule 4).
    """
    request: dict[str, Any] = {**generation, "model": model, "messages": messages}
    choice = request.pop("tool_choice", None) or options.tool_choice
    parallel = request.pop("parallel_tool_calls", options.parallel_tool_calls)
    if decls.entries:
        tools = _tools(decls, options)
        request["tools"] = deepcopy(tools) if options.hooks else tools  # which may change them
    if choice is not None:
        request["tool_choice"] = canonical_choice(choice, decls)
    if parallel is not None and decls.entries:
        request["parallel_tool_calls"] = parallel
    return cast("Request", request)


def _tools(decls: ToolDecls, options: Options) -> list[dict[str, Any]]:
    """The declarations as tools: the same list every time."""
    return _STRICT(decls.canonical) if options.strict else decls.canonical


def _strict(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    asked = deepcopy(tools)
    for tool in asked:
        if "function" in tool:
            tool["function"].setdefault("strict", True)
    return asked


_STRICT = Memo(_strict)


def with_known_tools(request: Request, decls: ToolDecls, options: Options) -> Request:
    """The request after the hooks, with the list of tools that is known already if they changed none."""
    known = _tools(decls, options)
    return {**request, "tools": known} if request.get("tools") == known else request


def canonical_choice(choice: ToolChoice, decls: ToolDecls) -> str | dict[str, Any]:
    """A tool choice in OpenAI's form, checked against the declarations.

    Source: the chat completions reference of OpenAI (`tool_choice`, `allowed_tools`).

    Example:
        >>> decls = ToolDecls([{"name": "search", "parameters": {"type": "object", "properties": {}}}])
        >>> canonical_choice("search", decls)
        {'type': 'function', 'function': {'name': 'search'}}
        >>> canonical_choice("required", decls)
        'required'
    """
    if isinstance(choice, str) and choice in _MODES:
        if not decls and choice == "required":
            raise InvalidOption("'required' was asked for and no tool is declared", field="tool_choice")
        return choice
    names = _chosen_names(choice)
    for name in names:
        if name not in decls:
            raise InvalidOption(
                f"no tool {name!r} is declared",
                field="tool_choice",
                tool=name,
                fix=f"Declared: {', '.join(decl.name for decl in decls) or 'none'}.",
            )
    functions = [{"type": "function", "function": {"name": name}} for name in names]
    if len(functions) == 1:
        return functions[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": functions}}


def _chosen_names(choice: ToolChoice) -> list[str]:
    if isinstance(choice, str):
        return [choice]
    if isinstance(choice, Mapping):
        named = choice.get("function")
        if isinstance(named, Mapping) and isinstance(
            name := cast("Mapping[str, Any]", named).get("name"), str
        ):
            return [name]
        raise InvalidOption(
            f"{choice!r} is no tool choice",
            field="tool_choice",
            fix="Use 'auto', 'required', 'none', a tool's name, or a list of names.",
        )
    return list(choice)
