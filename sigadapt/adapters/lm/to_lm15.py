"""Turn a canonical Request into an `lm15.Request`, which dspy.LM takes. Sends nothing.

Earlier turns and results leave as native rows (`native_rows.py`). Their parts in lm15's types are for DSPy's
history and cache, and for an engine that the user made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from dspy import lm15

from sigadapt.adapters.lm.native_rows import NativeRows, native_rows
from sigadapt.adapters.lm.over_litellm.settings import litellm_only
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.content.question_content import shows_content
from sigadapt.adapters.request.tool_choice import form_of
from sigadapt.errors import InvalidOption
from sigadapt.providers import BY_WIRE, CHAT
from sigadapt.providers.route import Route
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.providers.wire.result_blocks import text_in
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.providers.wire.writing import arguments_of
from sigadapt.schemas.json_values import Json, as_unicode, is_object
from sigadapt.signatures.tool_decls import CanonicalTools, is_plain

_OF_TURNS = frozenset({"turn", "tool_calls", "tool_call_id", "late", "parts"})
"""Keys of rows that lm15 does not write."""


def to_lm15(
    request: Request, route: Route, settings: Mapping[str, Json] | None = None
) -> tuple[lm15.Request, NativeRows]:
    """Return the canonical Request in lm15's types, and the rows and fields that replace what lm15 writes."""
    messages = request["messages"]
    system = None
    if messages and messages[0]["role"] == "system" and isinstance(messages[0]["content"], str):
        system = messages[0]["content"] or None
        messages = messages[1:]
    late = [row["late"] for row in messages if "late" in row]
    tools: Sequence[Json] = request.get("tools") or ()
    if late:  # rows of the conversation add the others
        root = {each["name"] for each in late[0]["root"]}
        tools = [tool for tool in tools if name_in(tool) in root]
    functions, native_tools = _tools(tools, route) if tools else ((), None)
    alone, config = _config(request, route)
    if native_tools is not None:
        config = replace(config, extensions={**(config.extensions or {}), "tools": native_tools})
    fields = {**(_choice_fields(request, route) or {}), **alone}
    for key, setting in (settings or {}).items():
        fields[key] = {**fields.get(key, {}), **setting} if is_object(setting) else setting
    groups = _groups(messages)
    lm15_request = lm15.Request(
        model=request["model"],
        system=system,
        messages=tuple(_message(group, route) for group in groups),
        tools=functions,
        config=config,
    )
    if not settings and _OF_TURNS.isdisjoint(chain.from_iterable(messages)):  # lm15 writes every row
        provider = CHAT if route.as_chat else BY_WIRE.get(route.wire, CHAT)
        return lm15_request, NativeRows(provider, fields=fields)
    tools = request.get("tools", ())
    return lm15_request, native_rows(groups, route, fields, tools, is_late=bool(late))


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
    if "late" in row:
        return lm15.Message(role="developer", parts=(lm15.TextPart(text=row["content"]),))
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


def _tools(tools: Sequence[Json], route: Route) -> tuple[tuple[lm15.FunctionTool, ...], list[Json] | None]:
    """Return tools in lm15's types, and as the provider's own JSON if these types cannot hold them."""
    key = route.client, route.wire
    cache = tools.memo if isinstance(tools, CanonicalTools) else {}
    if key not in cache:
        functions = [tool["function"] for tool in tools if "function" in tool]
        lm15_tools = tuple(
            lm15.FunctionTool(
                name=each["name"], description=each.get("description"), parameters=each["parameters"]
            )
            for each in functions
        )
        native_tools = None
        if route.tools.native or not all(map(is_plain, tools)):
            provider = None if route.as_chat else BY_WIRE.get(route.wire)
            native_tools = provider.tools(list(tools)) if provider else list(tools)
        cache[key] = lm15_tools, native_tools
    return cache[key]


_NOT_CONFIG = frozenset({"model", "messages", "tools", "tool_choice", "parallel_tool_calls"})
_DEFAULT = lm15.Config()


def _config(request: Request, route: Route) -> tuple[dict[str, Any], lm15.Config]:
    """Return the settings that only LiteLLM takes, and the others as lm15's Config."""
    alone = dict[str, Any]()
    config = _DEFAULT
    if request.keys() - _NOT_CONFIG:
        generation = {key: value for key, value in request.items() if key not in _NOT_CONFIG}
        alone = litellm_only(generation) if route.client == "litellm" else {}
        settings = {key: value for key, value in generation.items() if key not in alone}
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


def _choice_fields(request: Request, route: Route) -> dict[str, Any] | None:
    """Return a tool choice that lm15 has no form for, as fields of the body; None for any other."""
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or _is_of_functions(choice):
        return None
    provider = CHAT if route.as_chat else BY_WIRE.get(route.wire)
    return provider.tool_choice(choice, parallel=request.get("parallel_tool_calls")) if provider else None


def _is_of_functions(choice: dict[str, Any]) -> bool:
    if form_of(choice) == "validated":
        return False
    choices = choice["allowed_tools"]["tools"] if choice["type"] == "allowed_tools" else [choice]
    return all(each["type"] == "function" for each in choices)


def _tool_choice(choice: str | dict[str, Any] | None, *, parallel: bool | None) -> lm15.ToolChoice | None:
    mode: Any = "auto"
    names: tuple[str, ...] = ()
    if isinstance(choice, str):
        mode = choice
        parallel = None if choice == "none" else parallel
    elif choice is not None and _is_of_functions(choice):
        subset: Json = choice.get("allowed_tools") or {"mode": "required", "tools": [choice]}
        mode = subset["mode"]
        names = tuple(map(name_in, subset["tools"]))
    elif parallel is None:
        return None
    return lm15.ToolChoice(mode=mode, allowed=names, parallel=parallel)
