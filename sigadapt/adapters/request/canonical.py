"""The canonical Request: one dict in OpenAI's chat format, the same for every provider.

    {"model": ..., "messages": [...], "tools": [{"type": "function", "function": {...}}],
     "tool_choice": ..., "parallel_tool_calls": ..., "temperature": ..., ...}

`messages` are OpenAI chat messages with three more keys, for which that format has no place:

    is_error   on a tool message: whether the tool failed
    result     on a tool message: the ToolResult
    turn       on an assistant message: the `signatures.calls.Turn` that it replays

A Request that was made fit for its route may have these as well:

    blocks     on a tool message: the provider's blocks inside the result; None for text alone
    after      on a tool message: the provider's blocks that follow the results of the turn
    stand_in   on an assistant message: the fields of its first call that stand in for missing state

The folder `lm/` turns a Request into the provider's own format.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from sigadapt.adapters.options import Options, ToolChoice
from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import cut
from sigadapt.signatures.tool_decls import ToolDecls


class _Always(TypedDict):
    model: str
    messages: list[dict[str, Any]]


class Request(_Always, total=False):
    """A canonical Request. Generation settings (`temperature`, `max_tokens`, ...) are additional keys."""

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
    """Make a canonical Request of messages, declarations and generation settings.

    Args:
        model: the language model's name, as in `dspy.LM`.
        messages: the conversation as OpenAI chat messages.
        decls: the declared tools; sent exactly as written.
        options: the adapter's options.
        generation: `temperature` and the like. `tool_choice` and `parallel_tool_calls` in it come before the
            adapter's options.

    Returns:
        The Request; without the key `tools` if no tool is declared.

    Raises:
        InvalidOption: for a tool choice that is none, that names an undeclared tool, or that is `required`
            without tools (rule 4).

    Example:
        >>> decls = ToolDecls([{"name": "now"}])
        >>> request = build_request("m", [], decls, Options(tool_choice="required"), {"temperature": 0})
        >>> request["tool_choice"], request["tools"][0]["function"]["name"], list(request)[0]
        ('required', 'now', 'temperature')
    """
    request: dict[str, Any] = {**generation, "model": model, "messages": messages}
    asked = request.pop("tool_choice", None)
    choice = options.tool_choice if asked is None else asked
    parallel = request.pop("parallel_tool_calls", options.parallel_tool_calls)
    if decls.entries:
        # A hook may change what it is given: new tools cost more than the ones that all requests share.
        hooks = options.hooks
        is_changeable = bool(hooks) and any(hasattr(hook, "before_request") for hook in hooks)
        tools = decls.to_openai() if is_changeable else decls.canonical
        request["tools"] = _strict(tools) if options.strict else tools
    if choice is not None:
        request["tool_choice"] = canonical_choice(choice, decls)
    if parallel is not None and decls.entries:
        request["parallel_tool_calls"] = parallel
    return cast("Request", request)


def _strict(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools with `strict` set to True, except where the declaration has its own `strict`."""
    return [
        {**tool, "function": {**tool["function"], "strict": tool["function"].get("strict", True)}}
        if "function" in tool
        else tool
        for tool in tools
    ]


def canonical_choice(choice: ToolChoice, decls: ToolDecls) -> str | dict[str, Any]:
    """Return a tool choice in OpenAI's form, checked against the declarations.

    Source: OpenAI's chat completions reference (`tool_choice`, `allowed_tools`).

    Raises:
        InvalidOption: for an undeclared tool, for `required` without tools, and for any other value that is
            not a tool choice.

    Example:
        >>> decls = ToolDecls([{"name": "search", "parameters": {"type": "object", "properties": {}}}])
        >>> canonical_choice("search", decls)
        {'type': 'function', 'function': {'name': 'search'}}
        >>> canonical_choice("required", decls)
        'required'
    """
    if isinstance(choice, str) and choice in _MODES:
        if not decls and choice == "required":
            raise InvalidOption("tool_choice is 'required', but no tool is declared", field="tool_choice")
        return choice
    names = _chosen_names(choice)
    for name in names:
        if name not in decls:
            raise InvalidOption(
                f"the tool {name!r} is not declared",
                field="tool_choice",
                tool=name,
                fix=f"Declared tools: {', '.join(decl.name for decl in decls) or 'none'}.",
            )
    functions = [{"type": "function", "function": {"name": name}} for name in names]
    if len(functions) == 1:
        return functions[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": functions}}


def _chosen_names(choice: object) -> Sequence[str]:
    """Return the names in a tool choice that is not a mode: a name, several, or OpenAI's object with one."""
    if isinstance(choice, str):
        return [choice]
    given = cast("Any", choice)
    if isinstance(choice, Mapping):
        named = given.get("function")
        names: list[Any] = [cast("Any", named).get("name") if isinstance(named, Mapping) else None]
    else:
        names = list(given) if isinstance(choice, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidOption(
            f"expected a tool choice, got {cut(repr(given))}",
            field="tool_choice",
            fix="Use 'auto', 'required', 'none', a tool's name, or a list of names.",
        )
    return list(dict.fromkeys(names))
