"""Turn a canonical Request into an `lm15.Request`, which dspy.LM takes. Sends nothing.

Tools and texts stay unchanged. The Route says what the provider needs beyond lm15's own translation. Earlier
turns of the model and the results of their calls leave as native rows (`native_rows.py`). Their parts in
lm15's types are for DSPy's history and cache, and for an engine that the user made.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple, cast

from dspy import lm15

from sigadapt.adapters.lm.native_rows import NativeRows, name_of_tool, native_rows
from sigadapt.adapters.lm.over_litellm.settings import litellm_only
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.tool_choice import form_of
from sigadapt.errors import InvalidOption
from sigadapt.providers import CHAT, provider_of
from sigadapt.providers.provider import Route
from sigadapt.providers.result_blocks import text_in
from sigadapt.providers.wire.values import named_part
from sigadapt.providers.writing import arguments_of
from sigadapt.schemas.json_values import Json, as_unicode
from sigadapt.signatures.tool_decls import CanonicalTools


class Lm15Request(NamedTuple):
    """A Request in lm15's types, and the rows that replace those lm15 would write."""

    request: lm15.Request
    native: NativeRows


def to_lm15(request: Request, route: Route, settings: Mapping[str, Json] | None = None) -> Lm15Request:
    """Return the canonical Request in lm15's types, and its turns and results as native rows.

    Raises:
        InvalidOption: for a generation setting that lm15 has no place for.
    """
    system, messages = _split_system(request["messages"])
    changes: list[Json] = [row["late"] for row in messages if "late" in row]
    tools = _tools(_without_late(request.get("tools") or (), changes), route)
    alone, config = _config(request, route)
    groups = list(_groups(messages))
    typed = lm15.Request(
        model=request["model"],
        system=system,
        messages=tuple(_message(group, route) for group in groups),
        tools=tools.typed,
        config=_with(config, {} if tools.native is None else {"tools": tools.native}),
    )
    chosen = _choice_fields(request, route) or {}
    needed = {key: {**chosen.get(key, {}), **setting} for key, setting in (settings or {}).items()}
    fields = {**chosen, **needed, **alone}
    native = native_rows(groups, route, fields or None, request.get("tools") if changes else ())
    return Lm15Request(typed, native)


def _without_late(tools: Sequence[Json], changes: Sequence[Json]) -> Sequence[Json]:
    """Return the tools of the conversation's beginning; rows of it add the others."""
    root = {each["name"] for each in changes[0]["root"]} if changes else set[str]()
    return [tool for tool in tools if name_of_tool(tool) in root] if changes else tools


def _with(config: lm15.Config, native: dict[str, Any]) -> lm15.Config:
    """Return the config with native parts of the body, as `extensions`."""
    return replace(config, extensions={**(config.extensions or {}), **native}) if native else config


def _split_system(rows: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
    if rows and rows[0]["role"] == "system" and isinstance(rows[0]["content"], str):
        return rows[0]["content"] or None, rows[1:]
    return None, rows


def _groups(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages as lm15 has them: the results of a turn are one."""
    for is_result, group in groupby(rows, lambda row: row["role"] == "tool"):
        if is_result:
            yield list(group)
        else:
            yield from ([row] for row in group)


def _message(group: list[dict[str, Any]], route: Route) -> lm15.Message:
    row = group[0]
    if row["role"] == "tool":
        return lm15.Message(role="tool", parts=tuple(_result(each, route) for each in group))
    if row["role"] == "assistant":
        said = [lm15.TextPart(text=as_unicode(row["content"]))] if row.get("content") else []
        parts = (*said, *map(_call, row.get("tool_calls", ())))
        return lm15.Message(role="assistant", parts=parts or (lm15.TextPart(text=""),))
    if row["role"] == "user" and isinstance(row["content"], str):
        return lm15.Message.user(row["content"])
    if "late" in row:
        return lm15.Message(role="developer", parts=(lm15.TextPart(text=row["content"]),))
    # lm15's own reader takes content blocks (images, files, ...) and later system messages.
    return lm15.request_from_openai_chat(
        {"model": "any", "messages": [{"role": "user", "content": ""}, row]}
    ).messages[1]


def _call(call: dict[str, Any]) -> lm15.ToolCallPart:
    return lm15.ToolCallPart(id=call["id"], name=named_part(call)["name"], input=arguments_of(call))


def _result(row: dict[str, Any], route: Route) -> lm15.ToolResultPart:
    # An engine that the user made gets images and files as lm15's parts; elsewhere the native rows have them.
    failed, text = row["is_error"], as_unicode(row["content"])
    if failed and not route.marks_failed_results:
        failed, text = False, f"ERROR: {text}"
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


class _Tools(NamedTuple):
    """Tools in lm15's types (`typed`), and as the provider's own JSON if these types cannot hold them."""

    typed: tuple[lm15.FunctionTool, ...]
    native: list[dict[str, Any]] | None


_NO_TOOLS = _Tools((), None)


def _tools(tools: Sequence[dict[str, Any]], route: Route) -> _Tools:
    if not tools:
        return _NO_TOOLS
    if type(tools) is not CanonicalTools:
        return _made_tools(list(tools), route)
    key = route.client, route.dialect
    known = tools.kept.get(key)
    if known is None:
        known = tools.kept[key] = _made_tools(list(tools), route)
    return known


def _made_tools(tools: list[dict[str, Any]], route: Route) -> _Tools:
    functions = [tool["function"] for tool in tools if "function" in tool]
    typed = tuple(
        lm15.FunctionTool(
            name=function["name"], description=function.get("description"), parameters=function["parameters"]
        )
        for function in functions
    )
    have_places = all(len(tool) == 2 and "strict" not in tool.get("function", ("strict",)) for tool in tools)
    if have_places and not route.native_tools:
        return _Tools(typed, None)
    provider = None if route.as_chat else provider_of(route.dialect)
    return _Tools(typed, provider.tools(tools) if provider else tools)


_NOT_CONFIG = frozenset({"model", "messages", "tools", "tool_choice", "parallel_tool_calls"})


_WITHOUT_CONFIG = frozenset({"model", "messages", "tools"})
_DEFAULT = lm15.Config()


def _config(request: Request, route: Route) -> tuple[dict[str, Any], lm15.Config]:
    """Return the settings that only LiteLLM takes, and the others as lm15's Config."""
    if request.keys() <= _WITHOUT_CONFIG:
        return {}, _DEFAULT
    generation = {key: value for key, value in request.items() if key not in _NOT_CONFIG}
    alone = litellm_only(generation) if generation and route.client == "litellm" else {}
    held = {key: value for key, value in generation.items() if key not in alone} if alone else generation
    config = _generation_config(held) if held else _DEFAULT
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


def _choice_fields(request: Request, route: Route) -> dict[str, Any] | None:
    """Return a tool choice that lm15 has no form for, as fields of the body; None for any other."""
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or _is_of_functions(choice):
        return None
    provider = CHAT if route.as_chat else provider_of(route.dialect)
    return provider.tool_choice(choice, parallel=request.get("parallel_tool_calls")) if provider else None


def _is_of_functions(choice: dict[str, Any]) -> bool:
    if form_of(choice) == "validated":
        return False
    chosen = choice["allowed_tools"]["tools"] if choice["type"] == "allowed_tools" else [choice]
    return all(each["type"] == "function" for each in chosen)


def _tool_choice(choice: str | dict[str, Any] | None, *, parallel: bool | None) -> lm15.ToolChoice | None:
    if choice is None:
        return None if parallel is None else lm15.ToolChoice(mode="auto", parallel=parallel)
    if isinstance(choice, str):
        return lm15.ToolChoice(mode=cast("Any", choice), parallel=None if choice == "none" else parallel)
    if not _is_of_functions(choice):
        return None if parallel is None else lm15.ToolChoice(mode="auto", parallel=parallel)
    if choice["type"] == "function":
        return lm15.ToolChoice(mode="required", allowed=(choice["function"]["name"],), parallel=parallel)
    allowed = choice["allowed_tools"]
    names = tuple(tool["function"]["name"] for tool in allowed["tools"])
    return lm15.ToolChoice(mode=allowed["mode"], allowed=names, parallel=parallel)
