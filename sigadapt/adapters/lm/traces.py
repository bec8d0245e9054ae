"""Show a call to what watches DSPy: its history, its callbacks, and tracers, which use these.

They were made for DSPy's own adapters, which call the language model with chat messages and parse every text.
Here a model is called with a typed Request, and calls need no parsing. So three things are put where watchers
look for them, the first two only while somebody watches:

 a. The model's event has the chat messages, the tools and the changes as inputs (`show_to_watchers`).
 b. An answer without a text to parse has a parse event all the same, with its calls or error (`report`).
 c. An entry of DSPy's history has chat messages, the tools and the settings, and `changes`, what was changed
    for the provider, beside lm15's own `adaptations` (`complete_history`). DSPy's own entry of a typed
    request has no tools, and calls in lm15's words, which `dspy.inspect_history` does not print. Python's
    `logging` gets the changes under `sigadapt`, at INFO, and never an argument of a call.
"""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from itertools import chain
from typing import Any, cast

import dspy
from dspy import BaseLM, lm15
from dspy.utils import callback

from sigadapt.adapters.calling.call_record import RequestRecord
from sigadapt.json_values import listed
from sigadapt.signatures.awaiting import Outcome, Steps
from sigadapt.signatures.tool_decls import made_once

_LOG = logging.getLogger("sigadapt")
_MOST_LOGGED = 8
_MOST_LOOKED_AT = 256  # entries of other calls, made meanwhile on other threads
_CHAT_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_NOBODY: AbstractContextManager[None] = nullcontext()
_settings: Any = dspy.settings
_context = cast("Any", dspy.context)


def watches(instance: Any) -> bool:
    """Return whether callbacks are registered, with DSPy or on an adapter or a model."""
    return bool(_settings.get("callbacks") or getattr(instance, "callbacks", None))


def show_to_watchers(lm: Any, record: RequestRecord) -> AbstractContextManager[Any]:
    """Return the context in which to call a model, so that its event shows what was sent."""
    if not watches(lm):
        return _NOBODY
    return _context(callbacks=[_Callback(record), *_settings.get("callbacks", [])])


class _Callback(callback.BaseCallback):
    """Comes before all other callbacks of one request, and gives them its inputs in chat form."""

    def __init__(self, record: RequestRecord) -> None:
        self._record = record

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Put messages, tools and changes into the inputs."""
        body: dict[str, Any] = dict(self._record.request)
        messages = chat_messages(body["messages"])
        # A copy: the declarations of later requests share the tools, and a callback may change what it gets.
        rest = deepcopy({key: value for key, value in body.items() if key not in ("model", "messages")})
        changes = [change._asdict() for change in self._record.changes]
        inputs.update(prompt=None, messages=messages, kwargs={**rest, **inputs.get("kwargs", {})})
        if changes:
            inputs["changes"] = changes


def report(
    adapter: Any, signature: Any, text: str | None, flow: Steps[dict[str, Any]], parses: type[Any]
) -> Steps[dict[str, Any]]:
    """Run the end of a call, with a parse event for it unless the adapter parses a text meanwhile."""
    outcome = Outcome()
    has_parsed = False
    while True:
        try:
            step: Any = outcome.resume(flow)
        except StopIteration as done:
            return done.value if has_parsed else _parse_event(adapter, signature, text, done.value)
        except Exception as error:
            if has_parsed:
                raise
            return _parse_event(adapter, signature, text, error)
        has_parsed = has_parsed or isinstance(step, parses)
        try:
            outcome = Outcome((yield step))
        except Exception as error:  # noqa: BLE001  (raised inside the flow, which may handle it)
            outcome = Outcome(error=error)


def _parse_event(adapter: Any, signature: Any, text: str | None, outcome: Any) -> Any:
    """Call the callbacks as DSPy does for `parse`, which returns the values or raises the error."""

    def parse(instance: Any, signature: Any, completion: str) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return callback.with_callbacks(parse)(adapter, signature, text or "")


def complete_history(lm: BaseLM, request: lm15.Request, record: RequestRecord, count: int) -> None:
    """Complete the entries that DSPy wrote for a request into the model's history."""
    history: list[Any] = lm.history
    if record.changes and _LOG.isEnabledFor(logging.INFO):
        # The history has the rest: in a long run, each request changes what all earlier turns need.
        summary = listed((f"{change.where} {change.what}" for change in record.changes), _MOST_LOGGED, ", ")
        _LOG.info("%s: changed for the provider: %s", request.model, summary)
    body: dict[str, Any] = dict(record.request)
    rows: list[dict[str, Any]] = body.pop("messages")
    del body["model"]
    if "tools" in body:  # a copy for all entries: who changes it changes no declaration
        tools: Sequence[Any] = body["tools"]
        body["tools"] = made_once(tools, "history", lambda: deepcopy(tools))
    for entry in history[: -_MOST_LOOKED_AT - 1 : -1]:
        if entry.get("request") is not request:
            continue
        if record.changes:
            entry["changes"] = record.changes
        entry["kwargs"] = body | entry["kwargs"]
        if "tool_call_id" in chain.from_iterable(rows):  # a key of a result's row
            entry["messages"] = chat_messages(rows)
        count -= 1
        if not count:
            return


def chat_messages(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a canonical Request without what only sigadapt reads, such as provider state."""
    return [
        {key: value for key, value in row.items() if key in _CHAT_KEYS or (key == "is_error" and value)}
        if row["role"] in ("tool", "assistant")
        else row
        for row in rows
    ]
