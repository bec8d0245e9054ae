"""Turn a canonical Request into an `lm15.Request`, which dspy.LM takes. Sends nothing.

Tools and texts stay unchanged. The Route says what the provider needs beyond lm15's own translation. An
earlier turn of the model goes back to the same provider in its original order and with its provider state;
another provider gets only its text and calls (rule 8).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import orjson
from dspy import lm15

from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.states import replaying
from sigadapt.errors import InvalidOption
from sigadapt.providers import provider_of
from sigadapt.providers.provider import NO_WORDS, OwnTurn, Provider, Route, Words
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.caches import BoundedCache
from sigadapt.schemas.json_values import as_unicode, compact, is_unicode
from sigadapt.signatures.results import result_object
from sigadapt.signatures.tool_decls import CanonicalTools


class Written(NamedTuple):
    """A Request in lm15's types, and the parts of it that these cannot hold."""

    request: lm15.Request
    words: Words = NO_WORDS


def to_lm15(request: Request, route: Route) -> Written:
    """Return the canonical Request in lm15's types, and its parts in the provider's own words.

    Args:
        request: the Request, made fit for the route.
        route: the route.

    Raises:
        InvalidOption: for a generation setting that lm15 has no place for.

    Example:
        >>> request: Request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        >>> from sigadapt.providers import anthropic
        >>> to_lm15(request, anthropic.PROVIDER.routes[0]).request.messages[0].text
        'hi'
    """
    system, messages = _split_system(request["messages"])
    tools = _tools(request.get("tools") or (), route)
    typed = lm15.Request(
        model=request["model"],
        system=system,
        messages=tuple(_messages(messages, route)),
        tools=tools.typed,
        config=_with(_config(request), {} if tools.worded is None else {"tools": tools.worded}),
    )
    return Written(typed, _words(messages, route))


def _with(config: lm15.Config, words: dict[str, Any]) -> lm15.Config:
    """Return the config with parts of the body in the provider's own words, as `extensions`."""
    return replace(config, extensions={**(config.extensions or {}), **words}) if words else config


def _words(rows: list[dict[str, Any]], route: Route) -> Words:
    """Return the turns and results that lm15's types cannot hold."""
    turns: list[OwnTurn] = []
    results: list[Any] = []
    calls = 0
    for row in rows:
        if row["role"] == "assistant":
            if _goes_back_whole(row, route):
                turns.append(_own_turn(row, route, calls))
            calls += len(row.get("tool_calls", ()))
        elif row["role"] == "tool" and route.results_as_objects and not route.as_chat:
            results.append(_result_object(row))
    return Words(tuple(turns), tuple(results)) if turns or results else NO_WORDS


def _goes_back_whole(row: dict[str, Any], route: Route) -> bool:
    """Return whether a turn has blocks that only its own provider's words can say."""
    state = row["turn"].state if row.get("turn") else None
    if state is None or route.as_chat or state["dialect"] != route.dialect or not row.get("tool_calls"):
        return False
    return any("wire" in item for item in state["items"])


def _own_turn(row: dict[str, Any], route: Route, at: int) -> OwnTurn:
    provider = cast("Provider", provider_of(route.dialect))
    with replaying(row["turn"]):
        blocks = provider.own_turn(row["turn"].state, row["tool_calls"])
    return OwnTurn(at, len(row["tool_calls"]), blocks)


def _result_object(row: dict[str, Any]) -> dict[str, Any]:
    made = result_object(row["result"])
    return made if is_unicode(row["content"]) else orjson.loads(as_unicode(compact(made)))


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
    state = row["turn"].state if row.get("turn") else None
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
    function = call["function"]
    args = parse_arguments(function["arguments"])
    # lm15 sends only objects back. The call's result describes arguments that are not one (rule 5).
    sent = args if isinstance(args, dict) else {}
    return lm15.ToolCallPart(id=call["id"], name=function["name"], input=sent, continuation=state)


def _result(row: dict[str, Any], route: Route) -> lm15.ToolResultPart:
    failed, text = row["is_error"], as_unicode(row["content"])
    if route.results_as_objects and route.as_chat:  # LiteLLM sends JSON text of an object as that object
        failed, text = False, as_unicode(compact(result_object(row["result"])))
    elif failed and not route.marks_failed_results:
        failed, text = False, f"ERROR: {text}"
    return lm15.ToolResultPart(
        id=row["tool_call_id"], name=row.get("name"), content=(lm15.TextPart(text=text),), is_error=failed
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
    have_places = len(functions) == len(tools) and not any(function.get("strict") for function in functions)
    if have_places and not route.tools_in_own_words:
        return _Tools(typed, None)
    provider = None if route.as_chat else provider_of(route.dialect)
    return _Tools(typed, provider.tools(tools) if provider else tools)


_NOT_CONFIG = frozenset({"model", "messages", "tools", "tool_choice", "parallel_tool_calls"})


_DEFAULT = lm15.Config()


def _config(request: Request) -> lm15.Config:
    if request.keys() <= _NOT_CONFIG:
        config = _DEFAULT
    else:
        config = _generation_config({key: each for key, each in request.items() if key not in _NOT_CONFIG})
    if "tool_choice" not in request and "parallel_tool_calls" not in request:
        return config
    choice = _tool_choice(request.get("tool_choice"), request.get("parallel_tool_calls"))
    return config if choice is None else replace(config, tool_choice=choice)


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
            fix="Remove it from the LM's keyword arguments or the call's config, or do as lm15 says.",
        ) from error


def _tool_choice(choice: str | dict[str, Any] | None, parallel: bool | None) -> lm15.ToolChoice | None:  # noqa: FBT001
    if choice is None:
        return None if parallel is None else lm15.ToolChoice(mode="auto", parallel=parallel)
    if isinstance(choice, str):
        return lm15.ToolChoice(mode=cast("Any", choice), parallel=None if choice == "none" else parallel)
    if choice["type"] == "function":
        return lm15.ToolChoice(mode="required", allowed=(choice["function"]["name"],), parallel=parallel)
    allowed = choice["allowed_tools"]
    names = tuple(tool["function"]["name"] for tool in allowed["tools"])
    return lm15.ToolChoice(mode=allowed["mode"], allowed=names, parallel=parallel)
