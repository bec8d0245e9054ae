"""A turn's provider state on LiteLLM's route, where it rides on fields of the chat messages.

dspy's LiteLLM engine writes OpenAI chat messages from lm15's types, which have no place for those fields.
This engine is dspy's own, and puts them onto the messages it wrote: `thinking_blocks` for Claude, and
whatever LiteLLM itself handed out as `provider_specific_fields`.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import orjson
from dspy import lm15

from sigadapt.adapters import litellm_streams
from sigadapt.adapters.profiles import Profile

Row = dict[str, Any]


def fields_of(row: Row, profile: Profile) -> Row | None:
    """The fields that an assistant message gets back; None where its turn has no state for this wire.

    Example:
        >>> from sigadapt.adapters.profiles import LITELLM
        >>> from sigadapt.signatures.calls import Turn
        >>> signed = ["anthropic", "thinking_signature", {"signature": "c2ln"}]
        >>> item = {"type": "thinking", "text": "Hm.", "continuation": signed}
        >>> turn = Turn(state={"dialect": "anthropic", "items": [item]})
        >>> fields_of({"turn": turn}, LITELLM["anthropic"])
        {'thinking_blocks': [{'type': 'thinking', 'thinking': 'Hm.', 'signature': 'c2ln'}]}
    """
    turn = row.get("turn")
    if profile.replays != "litellm" or turn is None or turn.state is None:
        return None
    fields: Row = {}
    calls: dict[str, Row] = {}
    for item in turn.state["items"] if profile.takes(turn.state) else ():
        sent: list[Any] = item.get("continuation") or ["", "", {}]
        provider, kind, data = sent
        if provider == "anthropic":
            fields.setdefault("thinking_blocks", []).append(_thinking_block(item["text"], kind, data))
        elif provider == "gemini" and item["type"] == "call":
            calls[item["id"]] = {"provider_specific_fields": {"thought_signature": data["value"]}}
        elif provider == "gemini" and item["type"] == "text":
            fields["provider_specific_fields"] = {"thought_signatures": [data["value"]]}
        elif provider == "openai-chat" and profile.replays_reasoning_content:
            fields["reasoning_content"] = item["text"]
    if calls:
        fields["calls"] = calls
    return fields or None


def _thinking_block(text: str, kind: str, data: Row) -> Row:
    if kind == "redacted_thinking":
        return {"type": "redacted_thinking", **data}
    return {"type": "thinking", "thinking": text, **data}


def fingerprint(fields: Sequence[Row | None]) -> str:
    """A short name of what is put back, for DSPy's cache, whose key is the request without it."""
    return hashlib.sha256(orjson.dumps(list(fields))).hexdigest()[:16]


def _put_back(data: Row, fields: Sequence[Row | None]) -> Row:
    for message, extra in zip(data["messages"], fields, strict=True):
        if extra is not None:
            message.update({key: value for key, value in extra.items() if key != "calls"})
            for call in message.get("tool_calls", ()):
                call.update(extra.get("calls", {}).get(call["id"], {}))
    return data


class _PuttingBack:
    """What either engine does to a request's messages: they get `fields` put back, one entry a message."""

    def __init__(self, fields: Sequence[Row | None], **options: Any) -> None:
        cast("Any", super()).__init__(**options)
        self._fields = fields

    def _arguments(self, request: lm15.Request, *, streaming: bool = False) -> Row:
        data = cast("Any", super())._arguments(request, streaming=streaming)  # noqa: SLF001  (dspy's own hook)
        return _put_back(data, self._fields)


class Engine(_PuttingBack, litellm_streams.Engine):
    """DSPy's LiteLLM engine for one request, whose messages get `fields` put back."""


class AsyncEngine(_PuttingBack, litellm_streams.AsyncEngine):
    """The same, awaited."""
