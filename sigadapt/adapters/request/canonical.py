"""The canonical Request: one dict in OpenAI's chat format, the same for every provider.

    {"model": ..., "messages": [...], "tools": [{"type": "function", "function": {...}}],
     "tool_choice": ..., "parallel_tool_calls": ..., "temperature": ..., ...}

A custom tool and its call have `"type": "custom"` and `custom` in the place of `function`. Other fields of a
tool, such as `cache_control`, stand beside `function`. A tool that the provider runs is kept as it was given.

`messages` are OpenAI chat messages with four more keys, for which that format has no place:

    is_error   on a tool message: whether the tool failed
    result     on a tool message: the ToolResult
    turn       on an assistant message: the `signatures.calls.Turn` that it replays
    search     on a tool message: the search for deferred tools that it answers (`Turn.searches`)

A Request that was made fit for its route may have these as well:

    blocks     on a tool message: the provider's blocks inside the result; None for text alone
               on a user message: the provider's blocks of the question
    after      on a tool message: the provider's blocks that follow the results of the turn
    parts      on a user message: what it holds beside text, as content (`passes/questions.py`)
    stand_in   on an assistant message: the fields of its first call that stand in for missing state

The folder `lm/` turns a Request into the provider's own format.

A tool choice, in sigadapt's words or in those of any provider, has one of these forms:

| canonical | means |
|---|---|
| `auto`, `required`, `none` | the modes |
| `{"type": "function", "function": {"name": ...}}` | this function; `custom` for a custom tool |
| `{"type": "allowed_tools", "allowed_tools": {"mode": ..., "tools": [...]}}` | one of several |
| `{"type": <type>, ...}` | the declared tool of this type, which the provider runs |

The mode of several is `auto`, `required`, or `validated`: the model may call one, and the provider checks the
arguments. Sources: the references of OpenAI (`tool_choice` of chat completions and Responses), Anthropic
(`tool_choice`), Google (`FunctionCallingConfig`) and Bedrock (`ToolChoice`); read on 2026-11-21.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypedDict

from sigadapt.adapters.options import Options
from sigadapt.display import Rendering
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, cut, is_mapping, is_object, is_sequence
from sigadapt.signatures.server_tools import NativeTool
from sigadapt.signatures.tool_decls import ToolDecls


class _Always(TypedDict):
    model: str
    messages: list[dict[str, Any]]


class Request(_Always, total=False):
    """A canonical Request. Generation settings (`temperature`, `max_tokens`, ...) are additional keys."""

    tools: list[dict[str, Any]]
    tool_choice: str | dict[str, Any]
    parallel_tool_calls: bool


class Change(NamedTuple):
    """One difference between the canonical Request and what the provider gets.

    Args:
        where: a JSON Pointer into the canonical Request.
        what: `renamed`, `lowered` (the same intent by other means), `dropped`, or `healed` (`orphans.py`).
        why: the reason, and what is sent instead.
    """

    where: str
    what: Literal["renamed", "lowered", "dropped", "healed"]
    why: str

    def _rendering(self) -> Rendering:
        return Rendering(f"Change: {self.what}", lines=[("where", self.where), ("why", self.why)])

    def _repr_html_(self) -> str:
        return self._rendering().html()

    def __rich__(self) -> Any:
        return self._rendering().rich()


def build_request(
    model: str,
    messages: list[dict[str, Any]],
    decls: ToolDecls,
    options: Options,
    generation: Mapping[str, Any],
) -> Request:
    """Make a canonical Request of messages, declarations and generation settings, with a checked choice."""
    if generation.get("tools"):
        raise InvalidOption(
            "a request's tools are those of the signature's tools field",
            field="tools",
            fix="Pass all tools in that field, including those that the provider runs.",
        )
    request: Any = {**generation, "model": model, "messages": messages}
    call_choice = request.pop("tool_choice", None)
    choice: Any = options.tool_choice if call_choice is None else call_choice
    parallel = request.pop("parallel_tool_calls", options.parallel_tool_calls)
    if parallel is None and choice and is_mapping(choice) and "disable_parallel_tool_use" in choice:
        parallel = not choice["disable_parallel_tool_use"]
    if decls.entries:
        # A hook may change what it is given: new tools cost more than the ones that all requests share.
        is_changeable = options.hooks and any(hasattr(hook, "before_request") for hook in options.hooks)
        tools = decls.to_openai() if is_changeable else decls.canonical
        request["tools"] = _strict(tools) if options.strict else tools
    if choice is not None:
        request["tool_choice"] = canonical_choice(choice, decls)
    if parallel is not None and decls.entries:
        request["parallel_tool_calls"] = parallel
    return request


def _strict(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools with `strict` set to True, except where the declaration has its own `strict`."""
    strict_tools = [*tools]
    for number, tool in enumerate(tools):
        if "function" in tool:
            function = tool["function"]
            strict_tools[number] = {**tool, "function": {**function, "strict": function.get("strict", True)}}
    return strict_tools


MODES = ("auto", "required", "none")

# OpenAI's words, Anthropic's `any`, and the capitals of Gemini's FunctionCallingConfig.
_MODE_WORDS = {
    **{mode: mode for mode in MODES},
    "any": "required",
    "AUTO": "auto",
    "ANY": "required",
    "NONE": "none",
    "VALIDATED": "validated",
}


def canonical_choice(choice: object, decls: ToolDecls) -> str | Json:
    """Return a tool choice in its canonical form, checked against the declarations."""
    if is_mapping(choice):
        return _object_choice(choice, decls)
    if choice == "required" and not decls:
        raise InvalidOption("tool_choice is 'required', but no tool is declared", field="tool_choice")
    if isinstance(choice, str) and choice in MODES:
        return choice
    names: list[Any] = list(choice) if is_sequence(choice) else [choice]
    entries = [named_choice(n, decls, choice) for place, n in enumerate(names) if n not in names[:place]]
    if not entries:
        raise not_a_choice(choice)
    return entries[0] if len(entries) == 1 else _several("required", entries)


def _object_choice(choice: Mapping[str, Any], decls: ToolDecls) -> str | Json:
    config = choice.get("functionCallingConfig") or choice.get("function_calling_config") or choice
    if is_mapping(config) and "mode" in config and "type" not in config:
        return _of_config(config, decls)
    # Bedrock's choices have no type: their only key says what they are, as in {"any": {}}.
    kind = choice.get("type") or next(iter(choice), None)
    inner = choice.get(kind) if isinstance(kind, str) else None
    fields = inner if is_mapping(inner) else choice
    if kind == "allowed_tools":
        return _subset_choice(fields, decls, choice)
    if isinstance(kind, str) and kind in _MODE_WORDS:
        return _MODE_WORDS[kind]
    if kind in ("function", "custom", "tool") and isinstance(fields.get("name"), str):
        return named_choice(fields["name"], decls, choice)
    for tool in _native_tools(decls):
        if tool.kind == kind:
            name = {"name": tool.spec["name"]} if "name" in tool.spec else {}
            return {"type": kind, **name, **choice}
    raise not_a_choice(choice)


def _subset_choice(fields: Mapping[str, Any], decls: ToolDecls, choice: Mapping[str, Any]) -> Json:
    """Return the canonical choice of one of several tools."""
    mode = fields.get("mode", "auto")
    tools = fields.get("tools")
    items: list[Any] = list(tools) if is_sequence(tools) else []
    choices = [_object_choice(tool, decls) for tool in items if is_mapping(tool)]
    entries = [entry for entry in choices if is_object(entry) and entry["type"] != "allowed_tools"]
    if mode not in ("auto", "required") or not entries or len(entries) != len(items):
        raise not_a_choice(choice)
    return _several(mode, entries)


def _of_config(config: Mapping[str, Any], decls: ToolDecls) -> str | Json:
    mode = _MODE_WORDS.get(config["mode"]) if isinstance(config["mode"], str) else None
    allowlist: Any = config.get("allowedFunctionNames") or config.get("allowed_function_names") or []
    names: list[Any] = list(allowlist) if is_sequence(allowlist) else [allowlist]
    if mode is None:
        raise not_a_choice(config)
    entries = [named_choice(name, decls, config) for name in names]
    if mode == "required" and len(entries) == 1:
        return entries[0]
    # `validated` is Gemini's alone and no mode of OpenAI's, so it needs the object even without names.
    return mode if not entries and mode != "validated" else _several(mode, entries)


def _several(mode: str, entries: list[Json]) -> Json:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": entries}}


def named_choice(name: object, decls: ToolDecls, choice: object) -> Json:
    """Return the canonical choice of one tool: a function, a custom tool, or one that the provider runs."""
    if not isinstance(name, str):
        raise not_a_choice(choice)
    if name in decls:
        kind = "function" if decls[name].format is None else "custom"
        return {"type": kind, kind: {"name": name}}
    natives = _native_tools(decls)
    # Several server tools may be of one kind (MCP servers), so the name is tried before the kind.
    by_name = [entry for entry in natives if entry.spec.get("name") == name]
    for tool in (*by_name, *(entry for entry in natives if entry.kind == name)):
        return {key: tool.spec[key] for key in ("type", "tool", "name", "server_label") if key in tool.spec}
    raise InvalidOption(
        f"the tool {cut(repr(name))} is not declared",
        field="tool_choice",
        tool=name,
        fix=f"Declared tools: {', '.join(decl.name for decl in decls) or 'none'}.",
    )


def _native_tools(decls: ToolDecls) -> list[NativeTool]:
    return [entry for entry in decls.entries if isinstance(entry, NativeTool)]


def not_a_choice(choice: object) -> InvalidOption:
    """Return the error for a value that is not a tool choice."""
    return InvalidOption(
        f"expected a tool choice, got {cut(repr(choice))}",
        field="tool_choice",
        fix="Use 'auto', 'required', 'none', a tool's name, or a list of names.",
    )


def form_of(choice: str | Json) -> str:
    """Return the form of a canonical tool choice, as `ChoiceRules.forms` names it."""
    if isinstance(choice, str):
        return choice
    if choice["type"] == "allowed_tools":
        return "validated" if choice["allowed_tools"]["mode"] == "validated" else "subset"
    return {"function": "named", "custom": "custom"}.get(choice["type"], "own")


def forces_call(choice: str | Json) -> bool:
    """Return whether a canonical tool choice forces a call that the program runs."""
    if isinstance(choice, str):
        return choice == "required"
    if choice["type"] == "allowed_tools":
        return choice["allowed_tools"]["mode"] == "required"
    return choice["type"] in ("function", "custom")
