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
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypedDict

from sigadapt.adapters.options import Options
from sigadapt.adapters.request.tool_choice import canonical_choice
from sigadapt.display.rendering import Rendering
from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import is_mapping
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
