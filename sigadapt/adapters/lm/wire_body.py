"""What the provider's file writes of a request: the conversation, the tools and the tool choice.

lm15's types cannot hold a whole turn of a model. DSPy gets the request in these types all the same, for its
history, its callbacks and its cache (`to_lm15.py`). Inside of the engine, lm15 gets one stub message instead
of the conversation and one stub tool instead of the tools. It writes the settings, and `WireBody` sets the
rest in their body once, when it is sent. Nothing is searched in that body: its last rows are the stubs.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

import orjson
from dspy import lm15

from sigadapt.adapters.passes.states import replaying, state_of
from sigadapt.adapters.request.canonical import Request
from sigadapt.json_values import Json, as_unicode, compact, is_unicode
from sigadapt.providers import BY_WIRE, CHAT
from sigadapt.providers.provider import Provider, Result
from sigadapt.providers.route import Route
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.providers.wire.values import kind_of, name_in, objects
from sigadapt.signatures.tool_decls import made_once
from sigadapt.signatures.tool_results.results import result_object

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
