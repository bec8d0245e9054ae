"""Turn a canonical Request into an `lm15.Request`, which dspy.LM takes. Sends nothing.

Tools and texts stay unchanged. The Route says what the provider needs beyond lm15's own translation. An
earlier turn of the model goes back to the same provider in its original order and with its provider state;
another provider gets only its text and calls (the same conversation).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import orjson
from dspy import lm15

from sigadapt.adapters.lm.over_litellm.settings import litellm_only
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.states import replaying, state_of
from sigadapt.adapters.request.tool_choice import form_of
from sigadapt.errors import InvalidOption
from sigadapt.providers import CHAT, provider_of
from sigadapt.providers.provider import NO_WORDS, OwnResult, OwnTurn, Provider, Route, Words
from sigadapt.providers.result_blocks import text_in
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.caches import BoundedCache
from sigadapt.schemas.json_values import Json, as_unicode, compact, is_unicode
from sigadapt.signatures.tool_decls import CanonicalTools
from sigadapt.signatures.tool_results.results import result_object


class Written(NamedTuple):
    """A Request in lm15's types, and the parts of it that these cannot hold."""

    request: lm15.Request
    words: Words = NO_WORDS


def to_lm15(request: Request, route: Route) -> Written:
    """Return the canonical Request in lm15's types, and its parts in the provider's own words.

    Raises:
        InvalidOption: for a generation setting that lm15 has no place for.
    """
    system, messages = _split_system(request["messages"])
    tools = _tools(request.get("tools") or (), route)
    alone, config = _config(request, route)
    typed = lm15.Request(
        model=request["model"],
        system=system,
        messages=tuple(_messages(messages, route)),
        tools=tools.typed,
        config=_with(config, {} if tools.worded is None else {"tools": tools.worded}),
    )
    fields = _choice_fields(request, route)
    return Written(typed, _words(messages, route, {**(fields or {}), **alone} if alone else fields))


def _with(config: lm15.Config, words: dict[str, Any]) -> lm15.Config:
    """Return the config with parts of the body in the provider's own words, as `extensions`."""
    return replace(config, extensions={**(config.extensions or {}), **words}) if words else config


def _words(rows: list[dict[str, Any]], route: Route, fields: dict[str, Any] | None) -> Words:
    """Return the turns, results and calls that lm15's types cannot hold, and the fields of the body."""
    turns: list[OwnTurn] = []
    results: list[OwnResult | None] = []
    signed: list[tuple[int, Json]] = []
    texts: dict[str, str] = {}
    calls = 0
    for row in rows:
        if row["role"] == "assistant":
            if _goes_back_whole(row, route):
                turns.append(_own_turn(row, route, calls))
            if "stand_in" in row and not route.as_chat:
                signed.append((calls, row["stand_in"]))
            made = row.get("tool_calls", ())
            texts.update(
                (each["id"], as_unicode(each["custom"]["input"])) for each in made if "custom" in each
            )
            calls += len(made)
        elif row["role"] == "tool":
            results.append(_own_result(row, route))
    if not (turns or signed or texts or fields or any(results)):
        return NO_WORDS
    replaced = tuple(results) if any(results) else ()
    return Words(tuple(turns), replaced, fields, tuple(signed), texts or None)


def _goes_back_whole(row: dict[str, Any], route: Route) -> bool:
    """Return whether a turn has blocks that only its own provider's words can say."""
    state = state_of(row)
    if state is None or route.as_chat or state["dialect"] != route.dialect or not row.get("tool_calls"):
        return False
    return "fields" in state or any("wire" in item for item in state["items"])


def _own_turn(row: dict[str, Any], route: Route, at: int) -> OwnTurn:
    provider = cast("Provider", provider_of(route.dialect))
    state = row["turn"].state
    with replaying(row["turn"]):
        blocks = provider.own_turn(state, row["tool_calls"])
    return OwnTurn(at, len(row["tool_calls"]), blocks, state.get("fields"))


def _own_result(row: dict[str, Any], route: Route) -> OwnResult | None:
    """Return a result in the provider's own words; None if lm15's types hold it."""
    as_object = route.results_as_objects and not route.as_chat
    if not as_object and not row.get("blocks") and not row.get("after"):
        return None
    blocks = row.get("blocks")
    if blocks and route.door == "engine":  # lm15's types go to the engine as they are
        return None
    if blocks and route.results_as_objects and route.as_chat:
        blocks = [{"type": "text", "text": compact(result_object(row["result"]))}, *blocks]
    made: list[Any] = [blocks, result_object(row["result"]) if as_object else None, row.get("after", ())]
    return OwnResult(*(made if is_unicode(row["content"]) else orjson.loads(as_unicode(compact(made)))))


def _split_system(rows: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
    if rows and rows[0]["role"] == "system" and isinstance(rows[0]["content"], str):
        return rows[0]["content"] or None, rows[1:]
    return None, rows


def _messages(rows: list[dict[str, Any]], route: Route) -> Iterator[lm15.Message]:
    results: list[lm15.ToolResultPart] = []
    for row in rows:
        if row["role"] == "tool":
            results.append(_result(row, route))
            continue
        if results:
            yield lm15.Message(role="tool", parts=tuple(results))
            results = []
        yield _message(row, route)
    if results:
        yield lm15.Message(role="tool", parts=tuple(results))


def _message(row: dict[str, Any], route: Route) -> lm15.Message:
    if row["role"] == "assistant":
        parts = tuple(_said(row, route)) or (lm15.TextPart(text=""),)
        return lm15.Message(role="assistant", parts=parts)
    if row["role"] == "user" and isinstance(row["content"], str):
        return lm15.Message.user(row["content"])
    # lm15's own reader takes content blocks (images, files, ...) and later system messages.
    return lm15.request_from_openai_chat(
        {"model": "any", "messages": [{"role": "user", "content": ""}, row]}
    ).messages[1]


def _said(row: dict[str, Any], route: Route) -> Iterator[Any]:
    """Yield the parts of an assistant turn: for the same provider in its order, with its provider state."""
    calls = {call["id"]: call for call in row.get("tool_calls", ())}
    if _goes_back_whole(row, route):  # these parts are replaced by the turn in the provider's own words
        yield from (_call(call, ()) for call in calls.values())
        return
    state = state_of(row)
    if state is not None and not route.as_chat and state["dialect"] in route.takes:
        with replaying(row["turn"]):
            parts = [part for item in state["items"] for part in _replayed(item, calls, route)]
        yield from parts
    elif row.get("content"):
        yield lm15.TextPart(text=as_unicode(row["content"]))
    yield from (_call(call, ()) for call in calls.values())


def _replayed(item: dict[str, Any], calls: dict[str, dict[str, Any]], route: Route) -> Iterator[Any]:
    sent = item.get("continuation")
    kept = sent is not None and (sent[1] != "reasoning_content" or route.replays_reasoning)
    state = (lm15.ContinuationState(provider=sent[0], kind=sent[1], data=sent[2]),) if sent and kept else ()
    if item["type"] == "call":
        if item["id"] in calls:
            yield _call(calls.pop(item["id"]), state)
    elif item["type"] == "text":
        if item["text"] or state:
            yield lm15.TextPart(text=as_unicode(item["text"]), continuation=state)
    elif kept:
        yield lm15.ThinkingPart(text=as_unicode(item["text"]), continuation=state)


def _call(call: dict[str, Any], state: tuple[lm15.ContinuationState, ...]) -> lm15.ToolCallPart:
    if "custom" in call:
        text: dict[str, Any] = {"input": as_unicode(call["custom"]["input"])}
        return lm15.ToolCallPart(id=call["id"], name=call["custom"]["name"], input=text, continuation=state)
    function = call["function"]
    args = parse_arguments(function["arguments"])
    # lm15 sends only objects back. The call's result describes arguments that are not one (one bad call).
    sent = args if isinstance(args, dict) else {}
    return lm15.ToolCallPart(id=call["id"], name=function["name"], input=sent, continuation=state)


def _result(row: dict[str, Any], route: Route) -> lm15.ToolResultPart:
    failed, text = row["is_error"], as_unicode(row["content"])
    if route.door == "engine" and row.get("blocks"):
        parts = tuple(_content_part(part) for part in row["blocks"])
        return lm15.ToolResultPart(
            id=row["tool_call_id"], name=row.get("name"), content=parts, is_error=failed
        )
    if route.results_as_objects and route.as_chat:  # LiteLLM sends JSON text of an object as that object
        failed, text = False, as_unicode(compact(result_object(row["result"])))
    elif failed and not route.marks_failed_results:
        failed, text = False, f"ERROR: {text}"
    return lm15.ToolResultPart(
        id=row["tool_call_id"], name=row.get("name"), content=(lm15.TextPart(text=text),), is_error=failed
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
    """Tools in lm15's types (`typed`), and in the provider's own words if these types cannot hold them."""

    typed: tuple[lm15.FunctionTool, ...]
    worded: list[dict[str, Any]] | None


_NO_TOOLS = _Tools((), None)


def _tools(tools: Sequence[dict[str, Any]], route: Route) -> _Tools:
    if not tools:
        return _NO_TOOLS
    if type(tools) is not CanonicalTools:
        return _made_tools(list(tools), route)
    key = route.door, route.dialect
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
    if have_places and not route.tools_in_own_words:
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
    alone = litellm_only(generation) if generation and route.door == "litellm" else {}
    held = {key: value for key, value in generation.items() if key not in alone} if alone else generation
    config = _generation_config(held) if held else _DEFAULT
    choice = _tool_choice(request.get("tool_choice"), request.get("parallel_tool_calls"))
    return alone, config if choice is None else replace(config, tool_choice=choice)


_CONFIGS: BoundedCache[str, lm15.Config] = BoundedCache(256 * 1024)
"""What lm15 makes of generation settings that are plain values, by these settings as text."""
_PLAIN = frozenset({str, int, float, bool})
_CONFIG_WEIGHS = 1_000  # bytes, beside the text


def _generation_config(generation: dict[str, Any]) -> lm15.Config:
    if not _PLAIN.issuperset(map(type, generation.values())):
        return _lm15s_config(generation)
    key = repr(generation)
    config = _CONFIGS.get(key)
    if config is None:
        config = _lm15s_config(generation)
        if config.extensions is None:  # a dict, which others could change
            _CONFIGS.put(key, config, weight=_CONFIG_WEIGHS + len(key))
    return config


def _lm15s_config(generation: dict[str, Any]) -> lm15.Config:
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
    """Return a tool choice that lm15 has no form for, in the provider's own words; None for any other."""
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or _is_of_functions(choice):
        return None
    provider = CHAT if route.as_chat else provider_of(route.dialect)
    return provider.choice(choice, request.get("parallel_tool_calls")) if provider else None


def _is_of_functions(choice: dict[str, Any]) -> bool:
    if form_of(choice) == "validated":
        return False
    chosen = choice["allowed_tools"]["tools"] if choice["type"] == "allowed_tools" else [choice]
    return all(each["type"] == "function" for each in chosen)


def _tool_choice(choice: str | dict[str, Any] | None, parallel: bool | None) -> lm15.ToolChoice | None:  # noqa: FBT001
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
