"""Native rows: what of a request leaves as JSON that the provider's own file wrote, and how it gets there.

lm15's types cannot express a whole turn of a model, so it gets a placeholder instead of each such message,
one short text, and the provider's rows replace the row that lm15 wrote for it. DSPy never sees a placeholder:
its history, its callbacks, its cache and an engine of the user's own get lm15's parts.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Any, NamedTuple

import orjson
from dspy import lm15

from sigadapt.adapters.request.states import replaying, state_of
from sigadapt.providers import BY_WIRE, CHAT, provider_named
from sigadapt.providers.openai_chat import reasoning_in
from sigadapt.providers.provider import Provider, Result
from sigadapt.providers.route import Route
from sigadapt.providers.wire.recorded import MARKED
from sigadapt.providers.wire.values import name_in, objects
from sigadapt.schemas.json_values import Json, as_unicode, compact
from sigadapt.signatures.tool_results.results import result_object


class NativeRows(NamedTuple):
    """What replaces parts of the body that lm15 writes."""

    provider: Provider
    rows: tuple[list[Json] | None, ...] = ()  # of each message; None for one that lm15 writes
    fields: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    tokens: Mapping[str, str] = {}  # of MCP servers, by their names; nothing but the body ever holds them
    mark: str = ""  # begins its placeholders, and nobody can guess it: a user could type any other

    def fingerprint(self) -> str:
        """Return a short hash of what lm15's request lacks, for the key of DSPy's cache."""
        text = compact([self.rows, self.fields])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def placed_in(self, request: lm15.Request) -> lm15.Request:
        """Return a request with a placeholder for each message that has rows."""
        messages = [
            message if rows is None else lm15.Message.assistant(f"{self.mark}{place}")
            for place, (message, rows) in enumerate(zip(request.messages, self.rows, strict=True))
        ]
        return replace(request, messages=tuple(messages))

    def spliced(self, body: Json) -> Json:
        """Return the body that lm15 wrote with the rows in the places of their placeholders."""
        waiting = {f"{self.mark}{place}": rows for place, rows in enumerate(self.rows) if rows is not None}
        if waiting:
            key = self.provider.rows_key
            body = {**body, key: list(self._rows(body[key], waiting))}
        body = self.provider.with_fields(body, dict(self.fields))
        if self.tokens and self.provider.token is not None:
            key, label, member = self.provider.token
            servers = [
                {**each, member: self.tokens[each[label]]} if each.get(label) in self.tokens else each
                for each in objects(body.get(key))
            ]
            body = {**body, key: servers} if servers else body
        return body

    def _rows(self, messages: list[Json], waiting: dict[str, list[Json]]) -> Iterator[Json]:
        for row in messages:
            rows = waiting.get(_text_in(row))
            if rows is None:
                yield row
            else:
                yield from rows[:-1]
                yield from (self.provider.row_for(row, last) for last in rows[-1:])


def native_rows(
    groups: list[list[Json]], route: Route, fields: Json, tools: Iterable[Json], *, is_late: bool
) -> NativeRows:
    """Return the native rows of a request with these tools, which may change in the conversation (late)."""
    provider = CHAT if route.as_chat else BY_WIRE.get(route.wire, CHAT)
    if route.client == "engine":
        return NativeRows(provider)
    rows: list[list[Json] | None] = []
    turn: list[Json] = []
    turn_fields: Json = {}
    by_name = {name_in(tool): tool for tool in tools} if is_late else {}
    for group in groups:
        message = group[0]
        if message["role"] == "tool":
            names = [name_in(tool) for tool in tools if tool.get("defer_loading") is True]
            results = [_result(row, route)._replace(deferred=names) for row in group]
            rows.append(_sendable(provider.results(results, turn, route)))
        elif message["role"] == "assistant" and (message.get("tool_calls") or state_of(message) is not None):
            turn, turn_fields = _turn(provider, message, route)
            rows.append(_sendable(turn))
        elif "parts" in message:
            rows.append(_sendable([provider.question(message["blocks"])]))
        elif "late" in message:
            additions = [by_name[each["name"]] for each in message["late"]["added"]]
            removals = [each["name"] for each in message["late"]["removed"]]
            rows.append(_sendable([provider.tool_change(provider.tools(additions), removals)]))
        else:
            rows.append(None)
    headers = dict(provider.headers_of_late_tools) if by_name else {}
    for name, value in (each for key in fields for each in provider.headers_of_fields.get(key, {}).items()):
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    replacements = tuple(rows) if any(rows) else ()
    mark = f"sigadapt:{token_hex(16)}:" if replacements else ""
    return NativeRows(provider, replacements, {**turn_fields, **fields}, headers, mark=mark)


def _turn(provider: Provider, message: Json, route: Route) -> tuple[list[Json], Json]:
    """Return the rows of a turn, and the fields of the body that its results need."""
    state = state_of(message)
    if state is None:
        return provider.turn(message, None, route), {}
    if not route.replays(state):
        reasoning = reasoning_in(state) if route.turns.reasoning_of_others else None
        return provider.turn(message, reasoning, route), {}
    with replaying(message["turn"]):
        if state["dialect"] == provider.name:
            return provider.turn(message, state, route), provider.fields(state)
        (row,) = provider.turn(message, None, route)
        of_state = provider_named(state["dialect"])
        return [of_state.chat_message(row, state)], {}


def _result(row: Json, route: Route) -> Result:
    has_mark = row["is_error"] and not route.results.marks_failed and not route.results.as_objects
    text = f"{MARKED}{row['content']}" if has_mark else row["content"]
    failed = row["is_error"] and route.results.marks_failed
    value = result_object(row["result"]) if route.results.as_objects else {}
    blocks = row.get("blocks") or None
    after = row.get("after", ())
    content = row["result"].value if row.get("result") is not None else row["content"]
    return Result(
        row["tool_call_id"], row["name"], text, failed, value, blocks, after, content, row["is_error"]
    )


def _sendable(rows: list[Json]) -> list[Json]:
    """Return rows without half of a surrogate pair, which no request can hold."""
    text = compact(rows)
    return rows if text.isascii() or as_unicode(text) is text else orjson.loads(as_unicode(text))


def _text_in(row: Json) -> str:
    """Return the text of a row that holds one text alone."""
    content: Any = row.get("content", row.get("parts"))
    blocks = objects(content)
    if len(blocks) == 1:
        content = blocks[0].get("text")
    return content if isinstance(content, str) else ""
