"""Conversation: any provider's recorded request, read back. The mirror of `choice_from_response`.

A provider's file reads its wire (`Provider.request`), and `history_rows.py` makes turns of what was said.
What has no neutral form is on record, whether it stays in a turn's state or is left out (nothing silent).
"""

import marshal
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import dspy

from sigadapt.adapters.request.canonical import Change, canonical_choice
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.logs.history_rows import HistoryRows
from sigadapt.logs.talk import Talk
from sigadapt.providers import PROVIDERS, provider_named
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.recorded import Recording
from sigadapt.providers.wire.values import named_part
from sigadapt.schemas.caches import BUDGET, BoundedCache
from sigadapt.schemas.json_values import Json, cut, is_object
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.trust.echoes import MASK
from sigadapt.trust.masking import Masking


@dataclass(frozen=True)
class Conversation:
    """A recorded request, whatever its provider.

    Args:
        wire: the name of its wire format, such as `anthropic`.
        tools: what it declares: functions as recorded, a provider's own tools as they are.
        system: the instructions before the first turn; None without any.
        history: a row for each earlier turn, with `question`, `results` and `answer`, as far as there are
            such; unanswered calls are in its `calls`.
        question: what the user said last: a text, or a list of parts (`tool_results/content.py`) if it holds
            images or files, or instructions stand beside it; None if nobody asked.
        results: the results of the turn under way; None if the request ends with the question.
        settings: what else the request set, in sigadapt's words (`max_tokens`, `tool_choice`). Never a key.
        changes: a `Change` for each thing that has no neutral form.
    """

    wire: str
    tools: ToolDecls
    system: str | None
    history: dspy.History
    question: str | list[Json] | None
    results: ToolResults | None
    settings: Json = field(default_factory=dict[str, Any])
    changes: tuple[Change, ...] = ()

    def inputs(self) -> dict[str, Any]:
        """Return what `program()` takes: `system`, `history`, `question` and `results`."""
        return {name: getattr(self, name) for name in ("system", "history", "question", "results")}

    def program(self) -> Talk:
        """Return a program that sends this conversation again, on whatever wire its model has.

        Example:
            >>> from sigadapt.testing import Answer, LoopbackProvider
            >>> body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
            >>> conversation = conversation_from_request(body)
            >>> with LoopbackProvider([Answer(text="Hello.")]) as provider:
            ...     with dspy.context(lm=dspy.LM(**provider.lm_options("anthropic"))):
            ...         prediction = conversation.program()(**conversation.inputs())
            >>> prediction.answer
            'Hello.'
        """
        return Talk(self.tools, self.wire)


def conversation_from_request(body: Any, *, wire: str | None = None) -> Conversation:
    """Read a request that somebody sent to a provider, under any framework.

    Args:
        body: the body, decoded.
        wire: the name of its wire format (such as `anthropic`); None to detect it.

    Raises:
        InvalidHistory: `unreadable_request`, for what is no request of a chat.
        InvalidToolDecl: for a declaration that no provider takes.
        InvalidOption: for an unknown wire, or one that only reads answers.

    Example:
        >>> body = {"system": "Be brief.", "messages": [{"role": "user", "content": "What time is it?"}]}
        >>> conversation = conversation_from_request(body)
        >>> conversation.wire, conversation.system, conversation.question
        ('anthropic', 'Be brief.', 'What time is it?')
    """
    provider = _provider_of(body, wire)
    recording: Recording = provider.request(body)
    if not recording.turns and not recording.system and not recording.losses:
        raise _unreadable("it holds no message")
    decls = _decls_of(recording.tools)
    history_rows = HistoryRows(provider, recording)
    rows = history_rows.rows
    under_way = dict[str, Any]()
    if rows and rows[-1].keys().isdisjoint(("answer", "calls")):
        under_way = rows.pop()
    changes = [Change(path, "dropped", reason) for path, reason in recording.losses.items()]
    settings = _settings(recording.settings, decls, changes)
    return Conversation(
        wire=provider.name,
        tools=decls,
        system="\n\n".join(recording.system) or None,
        history=dspy.History(messages=rows),
        question=under_way.get("question"),
        results=under_way.get("results"),
        settings=settings,
        changes=(*changes, *history_rows.changes),
    )


# Recorded requests declare the same tools again and again.
_DECLS: BoundedCache[bytes, ToolDecls] = BoundedCache(BUDGET)
_DECLS_WEIGH = 10  # bytes of memory for each byte of a list of tools
_VALUES_ALONE = 2  # marshal's format that writes equal values alike, whatever objects they share


def _decls_of(tools: list[Any]) -> ToolDecls:
    """Return the declarations of recorded tools."""
    try:
        key = marshal.dumps(tools, _VALUES_ALONE)
    except ValueError:  # nested too deep
        return ToolDecls(tools)
    decls = _DECLS.get(key)
    if decls is not None:
        return decls
    decls = ToolDecls(deepcopy(tools))  # whoever changes the body does not change these
    # A provider's own tool has a dict that its caller may change.
    if all(isinstance(entry, ToolDecl) for entry in decls.entries):
        _DECLS.put(key, decls, weight=len(key) * _DECLS_WEIGH)
    return decls


_READ_WIRES = [
    provider.name for provider in PROVIDERS if type(provider).is_request is not Provider.is_request
]


def _provider_of(body: Any, wire: str | None) -> Provider:
    if not is_object(body):
        raise _unreadable(f"it is a {type(body).__name__}, not an object")
    # The table begins with the wire that others resemble most.
    providers = reversed(PROVIDERS) if wire is None else (provider_named(wire, "wire"),)
    sender = next((provider for provider in providers if provider.is_request(body)), None)
    if sender is None:
        keys = ", ".join(repr(key) for key in list(body)[:12]) or "no keys"
        names = f"one of {wire}" if wire else f"a request on any known wire ({', '.join(_READ_WIRES)})"
        raise _unreadable(f"it is an object with {cut(keys)}, not {names}")
    return sender


def _unreadable(reason: str) -> InvalidHistory:
    fix = "Pass the whole decoded body that a client sent to a chat API."
    return InvalidHistory(f"expected a request of a chat; {reason}", code="unreadable_request", fix=fix)


def _settings(recording: Json, decls: ToolDecls, changes: list[Change]) -> Json:
    """Return the settings that are known to be harmless, the tool choice in sigadapt's words."""
    settings: Json = {}
    for key, value in Masking({}, "").request(recording).items():
        if key == "tool_choice":
            try:
                choice = canonical_choice(value, decls)
                is_function = is_object(choice) and choice["type"] == "function"
                settings[key] = named_part(choice)["name"] if is_function and is_object(choice) else choice
            except InvalidOption as error:
                changes.append(Change("/tool_choice", "dropped", error.reason))
        elif value == MASK:
            changes.append(Change(f"/{key}", "dropped", "it may hold a key"))
        else:
            settings[key] = value
    return settings
