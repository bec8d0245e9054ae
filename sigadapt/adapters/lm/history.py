"""Complete the history entries that DSPy writes for a Request, where DSPy's world looks for its parts.

DSPy's entry of a typed request has no tools, and its messages hold calls and results in lm15's words, which
`dspy.inspect_history` and tracers do not print. Here `messages` become chat messages, `kwargs` get the tools
and the settings, and `changes` what was changed for the provider, beside lm15's own `adaptations`.

Python's `logging` gets the same under `sigadapt`, at INFO, and never an argument of a call.
"""

import logging
from collections.abc import Sequence
from typing import Any

from dspy import lm15

from sigadapt.adapters.request.lowering import Lowered

_LOG = logging.getLogger("sigadapt")
_MOST_LOOKED_AT = 256  # entries of other calls, made meanwhile on other threads
_NOT_KWARGS = frozenset({"model", "messages"})
_SHOWN = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})


def complete(history: Sequence[Any], request: lm15.Request, sent: Lowered, count: int) -> None:
    """Complete the entries of a request."""
    if sent.changes and _LOG.isEnabledFor(logging.INFO):
        told = ", ".join(f"{change.where} {change.what}" for change in sent.changes)
        _LOG.info("%s: changed for the provider: %s", request.model, told)
    for entry in history[: -_MOST_LOOKED_AT - 1 : -1]:
        if entry.get("request") is request:
            _complete(entry, sent)
            count -= 1
            if count == 0:
                return


def _complete(entry: dict[str, Any], sent: Lowered) -> None:
    if sent.changes:
        entry["changes"] = sent.changes
    body: dict[str, Any] = dict(sent.request)
    entry["kwargs"] = {**{key: body[key] for key in body if key not in _NOT_KWARGS}, **entry["kwargs"]}
    rows: list[dict[str, Any]] = body["messages"]
    if any(row["role"] == "tool" for row in rows):
        entry["messages"] = chat_messages(rows)


def chat_messages(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a canonical Request without what only sigadapt reads, such as provider state."""
    return [_chat_message(row) for row in rows]


def _chat_message(row: dict[str, Any]) -> dict[str, Any]:
    if row["role"] not in ("tool", "assistant"):
        return row
    return {key: value for key, value in row.items() if key in _SHOWN or (key == "is_error" and value)}
