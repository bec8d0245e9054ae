"""The canonical Request: one OpenAI-like dict for every provider.

    {"model": ..., "messages": [...], "tools": [{"type": "function", "function": {...}}],
     "tool_choice": ..., "parallel_tool_calls": ..., "temperature": ..., ...}

`messages` are OpenAI chat messages. Three keys go beyond that shape, because it has no place for them:
`is_error` and `result`, the ToolResult, on a tool message; and `turn` on an assistant message, the
`signatures.calls.Turn` that it replays. The provider's own shape is the business of `lm/`.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypedDict, cast

from sigadapt.adapters.options import Options, ToolChoice
from sigadapt.errors import InvalidOption
from sigadapt.signatures.tool_decls import ToolDecls


class _Always(TypedDict):
    model: str
    messages: list[dict[str, Any]]


class Request(_Always, total=False):
    """A canonical request; generation settings (`temperature`, `max_tokens`, ...) are further keys of it."""

    tools: list[dict[str, Any]]
    tool_choice: str | dict[str, Any]
    parallel_tool_calls: bool


_MODES = ("auto", "required", "none")


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

    Example:
        >>> decls = ToolDecls([{"name": "now"}])
        >>> request = build_request("m", [], decls, Options(tool_choice="required"), {"temperature": 0})
        >>> request["tool_choice"], request["tools"][0]["function"]["name"], list(request)[0]
        ('required', 'now', 'temperature')
    """
    request: dict[str, Any] = {**generation, "model": model, "messages": messages}
    choice = request.pop("tool_choice", None) or options.tool_choice
    parallel = request.pop("parallel_tool_calls", options.parallel_tool_calls)
    if decls.entries:
        tools = _strict(decls.canonical) if options.strict else decls.canonical
        request["tools"] = deepcopy(tools) if options.hooks else tools  # which may change them
    if choice is not None:
        request["tool_choice"] = canonical_choice(choice, decls)
    if parallel is not None and decls.entries:
        request["parallel_tool_calls"] = parallel
    return cast("Request", request)


def _strict(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools with strict mode asked for, where the declaration does not say otherwise."""
    return [
        {**tool, "function": {**tool["function"], "strict": tool["function"].get("strict", True)}}
        if "function" in tool
        else tool
        for tool in tools
    ]


def canonical_choice(choice: ToolChoice, decls: ToolDecls) -> str | dict[str, Any]:
    """Put a tool choice in OpenAI's form, checked against the declarations.

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
            f"{choice!r} is not a tool choice",
            field="tool_choice",
            fix="Use 'auto', 'required', 'none', a tool's name, or a list of names.",
        )
    return list(choice)
