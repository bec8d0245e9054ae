"""Turn a canonical Request into an `lm15.Request`, which dspy.LM takes. Sends nothing.

Its messages and tools are for DSPy's history, callbacks and cache, and for an engine that the user made:
lm15's types cannot hold a whole turn of a model. On any other route, the provider's file writes what is sent
of them. Inside of the engine, lm15 gets one stub message instead of the conversation and one stub tool
instead of the tools. It writes the settings, and `WireBody` sets the rest in their body once, when it is
sent. Nothing is searched in that body: its last rows are the stubs.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from dspy import lm15

from sigadapt.adapters.lm.routes import litellm_only
from sigadapt.adapters.passes.questions import shows_content
from sigadapt.adapters.passes.states import replaying, state_of
from sigadapt.adapters.request.canonical import Request
from sigadapt.dspy_boundary import contract
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, as_unicode, compact, is_unicode
from sigadapt.providers import BY_WIRE, CHAT
from sigadapt.providers.provider import Provider, Result
from sigadapt.providers.route import OWN_ENGINE, Route
from sigadapt.providers.wire.content_blocks import part_of_question, text_in
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.providers.wire.values import kind_of, name_in, named_part, objects
from sigadapt.providers.wire.writing import arguments_of, functions_chosen
from sigadapt.signatures.tool_decls import made_once
from sigadapt.signatures.tool_results.results import result_object

NO_TOKENS: Mapping[str, str] = MappingProxyType({})
_OF_TURNS = frozenset({"turn", "tool_calls", "tool_call_id", "parts"})
"""Keys of messages that lm15's types do not hold whole."""


_STUB_TEXT = "-"
_STUB_TOOLS = (lm15.FunctionTool(name="stub"),)
_OF_STUBS = frozenset(("tools", "tool_choice", "parallel_tool_calls", "toolConfig"))
"""The members of a body that lm15 writes of the stub tool and its choice."""

_MARKS = frozenset(("cache_control", "prompt_cache_breakpoint"))
"""The members of a block by which lm15 marks where the part ends that a provider caches (`CacheConfig`)."""


class WireBody:
    """What replaces the stubs in the body that lm15 writes.

    Args:
        groups: the messages of the conversation; the results of a turn are one.
        alone: members of the body that only LiteLLM takes.
        cache: the user's setting for the provider's cache of prompts, a `dspy.lm15.CacheConfig`.
        tokens: of MCP servers, by their names; only the body ever holds them.
    """

    def __init__(
        self,
        request: Request,
        groups: Sequence[list[Json]],
        route: Route,
        *,
        alone: Json,
        cache: Any,
        tokens: Mapping[str, str],
    ) -> None:
        self.provider = writer_of(route)
        self._request = request
        self._groups = groups
        self._route = route
        self._alone = alone
        self._tokens = tokens
        # A `CacheConfig` may name a message by its number, which lm15 has to find.
        self._has_outline = cache is not None and cache.prefix_until_index is not None

    @cached_property
    def rows(self) -> list[list[Json]]:
        """The rows of each message."""
        rows = [*_rows_of_each(self._groups, self.provider, self._request, self._route)]
        try:
            orjson.dumps(rows)
        except TypeError:  # an integer over 64 bits, or half of a surrogate pair, which no request can hold
            text = compact(rows)
            return rows if is_unicode(text) else orjson.loads(as_unicode(text))
        return rows

    @cached_property
    def fields(self) -> Json:
        """The other members of the body: the tools, the choice, and what only LiteLLM takes."""
        return {**self.provider.fields(self._request, self._route), **self._alone}

    @cached_property
    def headers(self) -> dict[str, str]:
        """The headers that these members ask for."""
        headers: dict[str, str] = {}
        types = [kind_of(tool) for tool in objects(self.fields.get("tools"))]
        asked = [self.provider.headers_of_fields.get(key, {}) for key in self.fields]
        asked += [self.provider.headers_of_tools.get(kind, {}) for kind in dict.fromkeys(types)]
        for each in asked:
            for name, value in each.items():
                headers[name] = f"{headers[name]},{value}" if name in headers else value
        return headers

    def fingerprint(self) -> str:
        """Return a short hash of what lm15's request lacks, for the key of DSPy's cache."""
        text = compact([self.rows, self.fields])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def stub(self, request: lm15.Request) -> lm15.Request:
        """Return the request that lm15 gets, with the same settings."""
        config = request.config
        if config.tool_choice is not None and config.tool_choice.allowed:
            config = replace(config, tool_choice=replace(config.tool_choice, allowed=()))
        messages: Sequence[lm15.Message] = (lm15.Message.user(_STUB_TEXT),)
        if self._has_outline:
            messages = [*map(_stub_for, request.messages, self._groups)]
        tools = _STUB_TOOLS if "tools" in self.fields else ()
        return replace(request, messages=tuple(messages), tools=tools, config=config)

    def bytes_with(self, settings: bytes) -> bytes:
        """Return the body as bytes, given the bytes that lm15 wrote; those of unchanged tools are reused."""
        body = self.set_in(orjson.loads(settings))
        try:
            if "tools" in body and not self._tokens:
                tools = self._request.get("tools", ())
                key = "bytes", self.provider.name
                body["tools"] = orjson.Fragment(made_once(tools, key, lambda: orjson.dumps(body["tools"])))
            return orjson.dumps(body)
        except TypeError:  # an integer over 64 bits
            return compact(self.set_in(orjson.loads(settings))).encode()

    def set_in(self, settings: Json) -> Json:
        """Return the body with the settings that lm15 wrote, and everything else instead of the stubs."""
        fields = self.fields
        if "tools" not in settings:  # lm15 left out the stub, because the server takes none beside a setting
            fields = {key: part for key, part in fields.items() if key != "tools"}
        body = {key: part for key, part in settings.items() if key in fields or key not in _OF_STUBS} | fields
        key = self.provider.rows_key
        written: list[Json] = settings[key]
        messages = self.rows if self._has_outline else [[*chain.from_iterable(self.rows)]]
        stubs = written[-len(messages) :]  # fewer, if lm15 left out what Gemini has in a stored cache
        marked = map(self._with_marks, messages[-len(stubs) :], stubs)
        body[key] = [*written[: -len(stubs)], *chain.from_iterable(marked)]
        if self.provider.path:  # a wire that DSPy's engine does not speak
            body = self.provider.body(body)
        return self._with_tokens(body)

    def _with_marks(self, rows: list[Json], stub: Json) -> list[Json]:
        """Return rows with the marks that lm15 put on their stub, on the last block."""
        written: Any = stub.get("content")
        if not rows or not written or written.__class__ is not list or _MARKS.isdisjoint(written[-1]):
            return rows
        content: Any = rows[-1].get("content")
        blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks or self.provider.is_thinking(blocks[-1]):  # thinking takes no mark
            return rows
        marks = {key: written[-1][key] for key in written[-1] if key in _MARKS and key not in blocks[-1]}
        return [*rows[:-1], {**rows[-1], "content": [*blocks[:-1], {**blocks[-1], **marks}]}]

    def _with_tokens(self, body: Json) -> Json:
        """Return the body with the tokens of its MCP servers."""
        if not self._tokens or self.provider.token is None:
            return body
        key, label, member = self.provider.token
        servers: list[Json] = []
        for server in objects(body.get(key)):
            token = self._tokens.get(server.get(label, ""))
            servers.append(server if token is None else {**server, member: token})
        return {**body, key: servers} if servers else body


def writer_of(route: Route) -> Provider:
    """Return the provider whose file writes the requests of a route."""
    return CHAT if route.as_chat else BY_WIRE.get(route.wire, CHAT)


def _stub_for(message: lm15.Message, group: list[Json]) -> lm15.Message:
    """Return the stub of one message, which OpenAI's wires mark only if it is a question or instructions."""
    is_markable = message.role in ("user", "developer") and "parts" not in group[0]
    text = lm15.TextPart(text=_STUB_TEXT)
    return replace(message, parts=(text,)) if is_markable else lm15.Message.assistant(text)


def _rows_of_each(
    groups: Sequence[list[Json]], provider: Provider, request: Request, route: Route
) -> Iterator[list[Json]]:
    """Yield the rows of each message of a conversation."""
    tools: Sequence[Json] = request.get("tools") or ()
    deferred = [name_in(tool) for tool in tools if tool.get("defer_loading") is True]
    turn: list[Json] = []
    for group in groups:
        message = group[0]
        role = message["role"]
        if role == "tool":
            results = [_result(row, route)._replace(deferred=deferred) for row in group]
            yield provider.results(results, turn, route)
        elif role == "assistant" and (message.get("tool_calls") or state_of(message) is not None):
            turn = _turn(provider, message, route)
            yield turn
        elif role == "assistant":
            yield [provider.message("assistant", as_unicode(message["content"] or ""), route)]
        else:
            content = message["blocks"] if "parts" in message else message["content"]
            yield [provider.message("user" if role == "user" else "developer", content, route)]


def _turn(provider: Provider, message: Json, route: Route) -> list[Json]:
    """Return the rows of a turn of the model."""
    state = state_of(message)
    if state is None:
        return provider.turn(message, None, route)
    if not route.replays(state):
        reasoning = provider.reasoning_in(state) if route.turns.reasoning_of_others else None
        return provider.turn(message, reasoning, route)
    with replaying(message["turn"]):
        return provider.turn(message, state, route)


def _result(row: Json, route: Route) -> Result:
    has_mark = row["is_error"] and not route.results.marks_failed and not route.results.as_objects
    result: Any = row.get("result")
    return Result(
        row["tool_call_id"],
        row["name"],
        text=f"{MARKED}{row['content']}" if has_mark else row["content"],
        is_error=row["is_error"] and route.results.marks_failed,
        value=result_object(result) if route.results.as_objects else {},
        blocks=row.get("blocks") or None,
        after=row.get("after", ()),
        given=row["content"] if result is None else result.value,
        failed=row["is_error"],
    )


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
        return lm15.Message(role="tool", parts=tuple(_result_part(each, route) for each in group))
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


def _result_part(row: dict[str, Any], route: Route) -> lm15.ToolResultPart:
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
