"""Turn a canonical Request into an `lm15.Request`, which dspy.LM takes. Sends nothing.

Its messages and tools are for DSPy's history, callbacks and cache, and for an engine that the user made. On
any other route, the provider's file writes what is sent of them (`wire_body.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from dspy import lm15

from sigadapt.adapters.lm.routes import litellm_only
from sigadapt.adapters.lm.wire_body import WireBody
from sigadapt.adapters.passes.questions import shows_content
from sigadapt.adapters.request.canonical import Request
from sigadapt.dspy_boundary import contract
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, as_unicode
from sigadapt.providers.route import OWN_ENGINE, Route
from sigadapt.providers.wire.content_blocks import part_of_question, text_in
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.providers.wire.values import named_part
from sigadapt.providers.wire.writing import arguments_of, functions_chosen
from sigadapt.signatures.tool_decls import made_once

NO_TOKENS: Mapping[str, str] = MappingProxyType({})
_OF_TURNS = frozenset({"turn", "tool_calls", "tool_call_id", "parts"})
"""Keys of messages that lm15's types do not hold whole."""


class Outgoing(NamedTuple):
    """A request on its way to a model."""

    request: lm15.Request
    body: WireBody  # what the provider's file writes of it
    is_whole: bool  # whether lm15's request says all that the body does


def to_lm15(
    request: Request, route: Route, cache: Any = None, tokens: Mapping[str, str] = NO_TOKENS
) -> Outgoing:
    """Return the canonical Request in lm15's types, and what the provider's file writes of it.

    `cache` is the user's `dspy.lm15.CacheConfig`; `tokens` are those of MCP servers, by their names.
    """
    messages = request["messages"]
    system = None
    if messages and messages[0]["role"] == "system" and isinstance(messages[0]["content"], str):
        system = messages[0]["content"] or None
        messages = messages[1:]
    tools: Sequence[Json] = request.get("tools") or ()
    alone, config = _config(request, route)
    if cache is not None:
        config = replace(config, cache=cache)
    lm15_tools = _lm15_tools(tools)
    if route.client == "engine" and not lm15_tools.are_plain:
        config = replace(config, extensions={**(config.extensions or {}), "tools": [*tools]})
    groups = _groups(messages)
    lm15_request = lm15.Request(
        model=request["model"],
        system=system,
        messages=tuple(_message(group, route) for group in groups),
        tools=lm15_tools.functions,
        config=config,
    )
    names_functions = "tool_choice" not in request or functions_chosen(request["tool_choice"]) is not None
    is_plain_talk = _OF_TURNS.isdisjoint(chain.from_iterable(messages))
    is_whole = lm15_tools.are_plain and names_functions and is_plain_talk and not alone
    is_whole = is_whole and "include" not in request
    body = WireBody(request, groups, route, alone=alone, cache=cache, tokens=tokens)
    return Outgoing(lm15_request, body, is_whole)


def prompt_of(rows: list[dict[str, Any]]) -> Any:
    """Return the messages of a call as `format` of DSPy's adapters does: in 3.5, a `dspy.adapters.Prompt`."""
    if not contract.IS_TYPED:
        return rows
    has_system = bool(rows) and rows[0]["role"] == "system"
    groups = _groups(rows[has_system:])
    messages = [(_message([*map(_with_parts, group)], OWN_ENGINE), group) for group in groups]
    return contract.prompt_of(rows[0]["content"] if has_system else None, messages)


def _with_parts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the user with its content blocks as parts."""
    if row["role"] != "user" or isinstance(row["content"], str):
        return row
    blocks: list[Json] = row["content"]
    parts = [part_of_question(block) or {"type": "json", "value": block} for block in blocks]
    return {**row, "parts": parts, "blocks": parts}


def _groups(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the messages as lm15 has them: the results of a turn are one."""
    groups: list[list[dict[str, Any]]] = []
    for row in rows:
        if groups and row["role"] == groups[-1][0]["role"] == "tool":
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _message(group: list[dict[str, Any]], route: Route) -> lm15.Message:
    row = group[0]
    if row["role"] == "tool":
        return lm15.Message(role="tool", parts=tuple(_result(each, route) for each in group))
    if row["role"] == "assistant":
        text = [lm15.TextPart(text=as_unicode(row["content"]))] if row.get("content") else []
        parts = (*text, *map(_call, row.get("tool_calls", ())))
        return lm15.Message(role="assistant", parts=parts or (lm15.TextPart(text=""),))
    if "parts" in row and (route.client == "engine" or shows_content(row)):
        blocks = row["blocks"] if route.client == "engine" else row["parts"]
        return lm15.Message(role="user", parts=tuple(map(_content_part, blocks)))
    if row["role"] == "user" and isinstance(row["content"], str):
        return lm15.Message.user(row["content"])
    # lm15's own reader takes later system messages.
    return lm15.request_from_openai_chat(
        {"model": "any", "messages": [{"role": "user", "content": ""}, row]}
    ).messages[1]


def _call(call: dict[str, Any]) -> lm15.ToolCallPart:
    return lm15.ToolCallPart(id=call["id"], name=named_part(call)["name"], input=arguments_of(call))


def _result(row: dict[str, Any], route: Route) -> lm15.ToolResultPart:
    # An engine that the user made gets images and files as lm15's parts; elsewhere the native rows have them.
    failed = row["is_error"]
    text = as_unicode(row["content"])
    if failed and not route.results.marks_failed:
        failed = False
        text = f"{MARKED}{text}"
    blocks = row.get("blocks") if route.client == "engine" else None
    parts = [_content_part(part) for part in blocks] if blocks else [lm15.TextPart(text=text)]
    return lm15.ToolResultPart(
        id=row["tool_call_id"], name=row.get("name"), content=tuple(parts), is_error=failed
    )


_MEDIA: dict[str, Any] = {"image": lm15.ImagePart, "audio": lm15.AudioPart, "file": lm15.DocumentPart}


def _content_part(part: Json) -> Any:
    """Return a part of a result (`signatures/tool_results/content.py`) in lm15's types."""
    text = text_in(part)
    if text is not None:
        return lm15.TextPart(text=as_unicode(text))
    mime = {"media_type": part["mime_type"]} if "mime_type" in part else {}
    return _MEDIA[part["type"]](
        **mime, **{key: part[key] for key in ("data", "url", "file_id") if key in part}
    )


class _Lm15Tools(NamedTuple):
    """The functions among the tools of a request, in lm15's types."""

    functions: tuple[lm15.FunctionTool, ...]
    are_plain: bool  # whether these say all that the tools do


def _lm15_tools(tools: Sequence[Json]) -> _Lm15Tools:
    """Return tools in lm15's types, made once for tools that did not change."""

    def make() -> _Lm15Tools:
        functions = [tool["function"] for tool in tools if "function" in tool]
        typed = [
            lm15.FunctionTool(
                name=function["name"],
                description=function.get("description"),
                parameters=function["parameters"],
            )
            for function in functions
        ]
        are_plain = len(functions) == len(tools) and all(map(_says_no_more, tools))
        return _Lm15Tools(tuple(typed), are_plain)

    return made_once(tools, "lm15", make)


def _says_no_more(tool: Json) -> bool:
    """Return whether a function has only what lm15's type of a tool has."""
    return tool.keys() == {"type", "function"} and "strict" not in tool["function"]


_NOT_CONFIG = frozenset({"model", "messages", "tools", "tool_choice", "parallel_tool_calls"})
_DEFAULT = lm15.Config()


def _config(request: Request, route: Route) -> tuple[dict[str, Any], lm15.Config]:
    """Return the settings that only LiteLLM takes, and the others as lm15's Config."""
    alone = dict[str, Any]()
    config = _DEFAULT
    if request.keys() - _NOT_CONFIG:
        generation = {key: value for key, value in request.items() if key not in _NOT_CONFIG}
        alone = litellm_only(generation) if route.client == "litellm" else {}
        written = {"include"} if route.turns.encrypts is not None else set[str]()  # by the provider's file
        settings = {key: value for key, value in generation.items() if key not in {*alone, *written}}
        config = _generation_config(settings) if settings else _DEFAULT
    choice = _tool_choice(request.get("tool_choice"), parallel=request.get("parallel_tool_calls"))
    return alone, config if choice is None else replace(config, tool_choice=choice)


def _generation_config(generation: dict[str, Any]) -> lm15.Config:
    body = {**generation, "model": "any", "messages": [{"role": "user", "content": ""}]}
    try:
        return lm15.request_from_openai_chat(body).config
    except (lm15.LM15Error, TypeError, ValueError) as error:
        raise InvalidOption(
            f"lm15 cannot send a generation setting: {error}",
            field=getattr(error, "feature", None),
            fix="Remove it from the LM's keyword arguments or the call's config, or do as lm15 says. LiteLLM "
            "takes any setting: dspy.LM(..., engine='litellm').",
        ) from error


def _tool_choice(choice: str | Json | None, *, parallel: bool | None) -> lm15.ToolChoice | None:
    """Return a tool choice in lm15's type, which has no form for tools that are not functions."""
    if choice is None and parallel is None:
        return None
    functions = functions_chosen(choice)
    if functions is None and parallel is None:
        return None
    mode: Any
    mode, names = functions or ("auto", [])
    return lm15.ToolChoice(mode=mode, allowed=tuple(names), parallel=None if mode == "none" else parallel)
