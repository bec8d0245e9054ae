"""Asking over each column of the wire matrix: bodies put together, requests taken apart, and who serves."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import dspy
from internals import Response, Server
from wire_matrix import COLUMNS, Column

from sigadapt.testing import Answer, LoopbackProvider

TEXT = '{"answer": "Fine."}'
"""An answer without calls that every adapter can read."""

_TOOL_KEYS = ("tools", "tool_choice", "parallel_tool_calls")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_FORMAT_KEYS = ("response_format", "text", "output_config", "output_format", "format", "outputConfig")
_TURNS = {"chat": "messages", "responses": "input", "gemini": "contents"}


def said_text(form: str) -> Any:
    """A text answer, as the part of a body that `body` takes."""
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    said: dict[str, Any] = {
        "chat": {"role": "assistant", "content": TEXT},
        "ollama": {"role": "assistant", "content": TEXT},
        "responses": [{**item, "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}],
        "anthropic": [{"type": "text", "text": TEXT}],
        "gemini": [{"text": TEXT}],
        "bedrock": [{"text": TEXT}],
    }
    return said[form]


def chat(message: Mapping[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A body of chat completions around a message; `more` stands beside it."""
    finish = finish or ("tool_calls" if message.get("tool_calls") else "stop")
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}, **more}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def responses(*items: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    head = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": status}
    return {**head, "output": [*items], **more}


def claude(*blocks: Any, stop: str | None = None, **more: Any) -> dict[str, Any]:
    stop = stop or ("tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn")
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": stop}
    return {**head, "content": [*blocks], "usage": {"input_tokens": 1, "output_tokens": 1}, **more}


def gemini(*parts: Any, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    candidate = {"index": 0, "content": {"role": "model", "parts": [*parts]}, "finishReason": finish, **more}
    return {"candidates": [candidate], "modelVersion": "m"}


def ollama(**message: Any) -> dict[str, Any]:
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
    return {**head, "message": {"role": "assistant", **message}}


def body(form: str, heard: Any) -> dict[str, Any]:
    """The whole answer of a provider around the model's turn."""
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    if form == "chat":
        counted = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {**chat(heard), "usage": counted}
    if form == "responses":
        return {**responses(*heard), "usage": usage}
    if form == "anthropic":
        is_paused = isinstance(heard, dict)  # {"paused": the blocks so far}
        return claude(*heard["paused"], stop="pause_turn") if is_paused else claude(*heard)
    if form == "gemini":
        counted = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {**gemini(*heard), "usageMetadata": counted}
    if form == "ollama":
        return {**ollama(**heard), "prompt_eval_count": 1, "eval_count": 1}
    return {
        "output": {"message": {"role": "assistant", "content": heard}},
        "stopReason": "tool_use" if "toolUse" in json.dumps(heard) else "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    }


def turns(form: str, sent: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What follows the first user message of a request."""
    rows = sent[_TURNS.get(form, "messages")]
    first = next(number for number, row in enumerate(rows) if row.get("role") == "user")
    return rows[first + 1 :]


def is_result(row: Mapping[str, Any]) -> bool:
    """Whether a row of the conversation carries results."""
    if row.get("role") == "tool" or row.get("type") in _OUTPUTS:
        return True
    parts: Any = row.get("content") or row.get("parts")
    if row.get("role") != "user" or not isinstance(parts, list):
        return False
    return any(_carries_result(block) for block in cast("list[dict[str, Any]]", parts))


def is_attachment(row: Mapping[str, Any]) -> bool:
    """Whether a row carries what a result could not hold."""
    return row.get("role") == "user" and "Attachment 1: " in json.dumps(row)


def _carries_result(block: Mapping[str, Any]) -> bool:
    marks = ("toolResult", "functionResponse", "function_response")
    return block.get("type") == "tool_result" or any(mark in block for mark in marks)


def part(scope: str, form: str, sent: Mapping[str, Any]) -> Any:
    """The part of a request that a row's scope is about; see `wire_matrix.Row`."""
    if scope in ("said", "results"):
        rows = turns(form, sent)
        results = [row for row in rows if is_result(row) or is_attachment(row)]
        said = [row for row in rows if row not in results]
        assert rows == said + results, "nothing follows the results"
        return (
            [_in_ollamas_words(row) if form == "ollama" else row for row in said]
            if scope == "said"
            else results
        )
    if scope == "format":
        found = {key: sent[key] for key in _FORMAT_KEYS if key in sent}
        config = sent.get("generationConfig", {})
        return found | {key: config[key] for key in config if key != "candidate_count"}
    return {key: sent[key] for key in (*_TOOL_KEYS, "toolConfig") if key in sent}


def _in_ollamas_words(row: Mapping[str, Any]) -> Any:
    """A message without the ids of its calls: LiteLLM sends them from 1.109 on, Ollama has no such field."""
    calls = [{key: value for key, value in call.items() if key != "id"} for call in row.get("tool_calls", ())]
    return {**row, "tool_calls": calls} if calls else row


class Served:
    """Who answers over one column, what it was sent, and the language model that asks it."""

    def __init__(self, column: Column, url: str, options: Mapping[str, Any]) -> None:
        self.column = column
        self.url = url
        self._options = options
        self.sent: list[dict[str, Any]] = []

    def lm(self, **changes: Any) -> Any:
        """The language model of this column."""
        return dspy.LM(**{**self._options, **self.column.lm, **changes})


@contextmanager
def serving(key: str, *heard: Any) -> Generator[Served]:
    """A provider that answers over one column with these turns or answers, the last one repeating."""
    column = COLUMNS[key]
    bodies = [one if isinstance(one, Answer) else body(column.form, one) for one in heard]
    if column.wire is not None:
        script = iter(bodies[:-1])
        served: Served

        def answer(received: Any) -> Any:
            served.sent.append(received.body)
            return next(script, bodies[-1])

        with LoopbackProvider(answer) as provider:
            served = Served(column, provider.url, provider.lm_options(column.wire))
            yield served
        return
    with _bedrock(bodies) as (url, sent):
        # A key makes LiteLLM send a bearer token, for which nothing is signed.
        options = {"api_base": url, "api_key": "loopback", "cache": False, "num_retries": 0}
        served = Served(column, url, options)
        served.sent = sent
        yield served


@contextmanager
def _bedrock(bodies: list[Any]) -> Generator[tuple[str, list[dict[str, Any]]]]:
    sent: list[dict[str, Any]] = []
    script = iter(bodies[:-1])

    async def respond(_: str, path: str, __: Mapping[str, str], content: bytes) -> Response:
        assert path.startswith("/model/"), path
        assert path.endswith("/converse"), path
        sent.append(json.loads(content))
        return Response(200, "application/json", [json.dumps(next(script, bodies[-1])).encode()])

    server = Server(respond)
    try:
        yield server.url, sent
    finally:
        server.stop()
