"""Conversation: any provider's recorded request, read back. The mirror of `choice_from_response`.

A provider's file reads its wire (`Provider.request`); here, what was said becomes turns. Rules:

 a. A turn begins where the user speaks after the model or after results, or first.
 b. A result answers the latest unanswered call of its id; without an id, the first one of its name.
 c. What the model said without a result or an answer in between is one turn of the model.
 d. A turn under way that ends with the model stands in the history: nobody has asked since.
 e. What has no neutral form is on record, whether it stays in a turn's state or is left out (nothing silent).
 f. Instructions inside of the conversation are parts of the question beside them, of the type `instructions`;
    after results, they begin a turn of their own. So they go out in their place again.
"""

import marshal
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

import dspy

from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.request.tool_choice import canonical_choice
from sigadapt.adapters.response.typed_calls import typed_calls
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.logs.attachments import with_attachments
from sigadapt.logs.talk import Talk
from sigadapt.logs.unanswered import UnansweredCalls
from sigadapt.providers import CHAT, PROVIDERS, provider_named
from sigadapt.providers.provider import Provider, Reading
from sigadapt.providers.wire.recorded import Question, RecordedResult, Recording
from sigadapt.providers.wire.values import in_paragraphs, join_texts, named_part
from sigadapt.schemas.caches import BUDGET, BoundedCache
from sigadapt.schemas.json_values import Json, cut, is_object, pointer
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult
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
    history_rows = _HistoryRows(provider, recording)
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


# The requests of a log declare the same tools again and again.
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


_Turn: TypeAlias = tuple[ToolCalls, dict[str, RecordedResult]]
"""What the model said at once, and the results of its calls by their ids."""


class _HistoryRows:
    """What was said, on its way to rows of a history."""

    def __init__(self, provider: Provider, recording: Recording) -> None:
        self._provider = provider
        self._sent_ids: dict[str, Any] = {}  # by the ids that the calls have here
        self._first_number = 1  # of the ids that are made here; all before it are taken
        self._turn_count = 0  # of the model
        self._unanswered = UnansweredCalls()
        self.changes: list[Change] = []
        spans: list[tuple[list[Json], list[_Turn]]] = []
        for kind, group in groupby(with_attachments(recording.turns), type):
            items: list[Any] = [*group]
            if kind is Question or not spans:
                spans.append(([], []))
            parts, turns = spans[-1]
            if kind is Question:
                for question in items:
                    parts += question.parts
            elif kind is RecordedResult:
                for result in items:
                    self._answer(result)
            else:
                turns.append((self._said_at_once(items), {}))
                self._turn_count += 1
                calls, answers = turns[-1]
                self._unanswered.begin_turn()
                for call in calls.in_order():  # for the results that follow
                    self._unanswered.add(call, self._sent_ids[call.id], answers)
        self.rows = [self._row(parts, turns) for parts, turns in spans]

    def _said_at_once(self, readings: list[Reading]) -> ToolCalls:
        """Return what the model said between two others, its calls typed."""
        reading = readings[0] if len(readings) == 1 else self._one_reading(readings)
        sent_ids = [sent_id for sent_id, _, _ in reading.calls]
        is_new = all(isinstance(sent_id, str) and sent_id not in self._sent_ids for sent_id in sent_ids)
        earlier_ids = () if is_new else self._sent_ids
        calls = typed_calls(reading, self._id_maker(sent_ids), earlier_ids)
        if calls is None:
            turn = Turn(text=reading.text, reasoning=reading.reasoning, state=reading.state)
            calls = ToolCalls(turn=turn)
        for sent_id, call in zip(sent_ids, calls.in_order(), strict=True):
            self._sent_ids[call.id] = sent_id
        if reading.state is not None and (names := dict.fromkeys(self._provider.extras(reading.state))):
            reason = f"{', '.join(names)} has no neutral form, and stays in the turn's state for its own wire"
            self.changes.append(Change(f"/said/{self._turn_count}", "lowered", reason))
        return calls

    def _one_reading(self, readings: list[Reading]) -> Reading:
        """Return several readings as one."""
        texts: list[str | None] = []
        calls: list[Any] = []
        blocks: list[Json] = []
        state: Json | None = None
        for reading in readings:
            if state is None and reading.state is not None and texts:
                blocks += self._provider.plain_blocks(in_paragraphs(texts), len(calls))
            state = reading.state or state
            if reading.state:
                blocks += reading.state["blocks"]
            elif state is not None:
                blocks += self._provider.plain_blocks(reading.text, len(reading.calls))
            if texts:
                texts.append(None)
            texts.append(reading.text)
            calls += reading.calls
        if state is not None and self._provider is not CHAT:  # whose state is one message
            state = {**state, "blocks": blocks}
        reasoning = join_texts([reading.reasoning for reading in readings])
        return readings[-1]._replace(text=in_paragraphs(texts), reasoning=reasoning, calls=calls, state=state)

    def _id_maker(self, sent_ids: list[Any]) -> Callable[[int], str]:
        """Return a function that makes the next free `call_<n>` for the call at an index of a turn."""
        # `unique_ids` makes the same, but begins at 1 in every turn.
        turn_ids = {sent_id for sent_id in sent_ids if isinstance(sent_id, str)}
        while f"call_{self._first_number}" in self._sent_ids:
            self._first_number += 1
        latest = self._first_number - 1

        def id_for(index: int) -> str:
            nonlocal latest
            latest = max(latest, index) + 1
            while f"call_{latest}" in self._sent_ids or f"call_{latest}" in turn_ids:
                latest += 1
            return f"call_{latest}"

        return id_for

    def _answer(self, result: RecordedResult) -> None:
        """Pair a result with its call."""
        if self._unanswered.answer(result):
            return
        reason = f"a result of call {cut(repr(result.id or result.name))}, which no model made, is left out"
        self.changes.append(Change(pointer(result.where), "dropped", reason))

    def _row(self, parts: list[Json], turns: list[_Turn]) -> Json:
        """Return the row of a question and what the model said to it."""
        row: Json = {}
        if parts:
            is_text = all(part["type"] == "text" for part in parts)
            row["question"] = "\n\n".join(part["text"] for part in parts) if is_text else parts
        rounds: list[Round] = []
        for number, (calls, answers) in enumerate(turns):
            unanswered_ids = [call.id for call in calls.in_order() if call.id not in answers]
            for call_id in unanswered_ids:
                reason = f"call {cut(repr(call_id))} has no result; sent again, it gets a failed one"
                self.changes.append(Change(f"/calls/{call_id}", "healed", reason))
            is_last = number == len(turns) - 1
            if calls and (answers or not is_last):
                results = tuple(_result(call, answers.get(call.id)) for call in calls.in_order())
                rounds.append(Round(calls=calls, results=results))
            elif calls:
                row["calls"] = calls
            elif is_last:
                row["answer"] = calls.text
                if calls.turn.state is not None:
                    row["calls"] = calls
            else:
                text = cut(calls.text or "")
                reason = f"what the model said before a result of no call is left out: {text}"
                self.changes.append(Change(f"/said/{len(rounds)}", "dropped", reason))
        if rounds:
            row["results"] = ToolResults(rounds=tuple(rounds))
        return row


def _result(call: ToolCall | InvalidToolCall, recorded: RecordedResult | None) -> ToolResult:
    if recorded is None:
        return unanswered(call)
    name = call.name or "unnamed"
    if recorded.parts is None:
        return ToolResult(call_id=call.id, name=name, is_error=recorded.failed, value=recorded.value)
    return ToolResult(
        call_id=call.id, name=name, is_error=recorded.failed, value=recorded.parts, is_content=True
    )
