"""Conversation: any provider's recorded request, read back. The mirror of `choice_from_response`.

A provider's file reads its wire (`Provider.request`); here, what was said becomes turns. Rules:

 a. A turn begins where the user speaks after the model or after results, or first.
 b. A result answers the latest unanswered call of its id; without an id, the first one of its name.
 c. What the model said without a result or an answer in between is one turn of the model.
 d. A turn under way that ends with the model stands in the history: nobody has asked since.
 e. What has no neutral form is on record, whether it stays in a turn's state or is left out (nothing silent).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

import dspy

from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.request.tool_choice import canonical_choice
from sigadapt.adapters.response.typed_calls import typed_calls
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.logs.talk import Talk
from sigadapt.logs.unanswered import UnansweredCalls
from sigadapt.providers import CHAT, PROVIDERS, provider_named
from sigadapt.providers.provider import Provider, Reading
from sigadapt.providers.wire.recorded import Question, RecordedResult, Recording
from sigadapt.providers.wire.values import in_paragraphs, join_texts, named_part
from sigadapt.schemas.json_values import Json, cut, is_object, pointer
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn
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
            such; calls that nobody answered stand in it as `calls`.
        question: what the user said last: a text, or a list of parts (`tool_results/content.py`) if it holds
            images or files; None if nobody asked.
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
    decls = ToolDecls(recording.tools)
    turns = _Turns(provider, recording)
    rows = turns.rows
    under_way = dict[str, Any]()
    if rows and rows[-1].keys().isdisjoint(("answer", "calls")):
        under_way = rows.pop()
    changes = [Change(where, "dropped", why) for where, why in recording.losses.items()]
    settings = _settings(recording.settings, decls, changes)
    return Conversation(
        wire=provider.name,
        tools=decls,
        system="\n\n".join(recording.system) or None,
        history=dspy.History(messages=rows),
        question=under_way.get("question"),
        results=under_way.get("results"),
        settings=settings,
        changes=(*changes, *turns.changes),
    )


_READ_WIRES = [each.name for each in PROVIDERS if type(each).is_request is not Provider.is_request]


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


def _unreadable(why: str) -> InvalidHistory:
    fix = "Pass the whole decoded body that a client sent to a chat API."
    return InvalidHistory(f"expected a request of a chat; {why}", code="unreadable_request", fix=fix)


def _settings(recording: Json, decls: ToolDecls, changes: list[Change]) -> Json:
    """Return the settings that are known to be harmless, the tool choice in sigadapt's words."""
    settings: Json = {}
    for key, value in Masking({}, "").request(recording).items():
        if key == "tool_choice":
            try:
                choice = canonical_choice(value, decls)
                is_named = is_object(choice) and choice["type"] == "function"
                settings[key] = named_part(choice)["name"] if is_object(choice) and is_named else choice
            except InvalidOption as error:
                changes.append(Change("/tool_choice", "dropped", error.reason))
        elif value == MASK:
            changes.append(Change(f"/{key}", "dropped", "nobody knows whether it holds a key"))
        else:
            settings[key] = value
    return settings


_Turn: TypeAlias = tuple[ToolCalls, dict[str, RecordedResult]]
"""What the model said at once, and the results of its calls by their ids."""


class _Turns:
    """What was said, on its way to rows of a history."""

    def __init__(self, provider: Provider, recording: Recording) -> None:
        self._provider = provider
        self._sent_ids: dict[str, Any] = {}  # by the ids that the calls have here
        self._first_number = 1  # of the ids that are made here; all before it are taken
        self._rounds: list[_Turn] = []
        self._unanswered = UnansweredCalls()
        self.changes: list[Change] = []
        turns: list[tuple[list[Json], list[_Turn]]] = []
        for kind, run in groupby(recording.turns, type):
            items: list[Any] = [*run]
            if kind is Question or not turns:
                turns.append(([], []))
            parts, answers = turns[-1]
            if kind is Question:
                parts += [part for question in items for part in question.parts]
            elif kind is RecordedResult:
                for result in items:
                    self._answer(result)
            else:
                answers.append((self._said_at_once(items), {}))
                self._rounds.append(answers[-1])
                self._expect_results(*answers[-1])
        self.rows = [self._row(parts, answers) for parts, answers in turns]

    def _said_at_once(self, readings: list[Reading]) -> ToolCalls:
        """Return what the model said between two others, its calls typed."""
        whole = readings[0] if len(readings) == 1 else self._joined(readings)
        ids = [original for original, _, _ in whole.calls]
        is_new = all(isinstance(each, str) and each not in self._sent_ids for each in ids)
        earlier_ids = () if is_new else self._sent_ids
        turn_calls = typed_calls(whole, self._id_maker(ids), earlier_ids)
        if turn_calls is None:
            turn_calls = ToolCalls(turn=Turn(text=whole.text, reasoning=whole.reasoning, state=whole.state))
        for (original, _, _), call in zip(whole.calls, turn_calls.in_order(), strict=True):
            self._sent_ids[call.id] = original
        if whole.state is not None and (names := dict.fromkeys(self._provider.extras(whole.state))):
            why = f"{', '.join(names)} has no neutral form, and stays in the turn's state for its own wire"
            self.changes.append(Change(f"/said/{len(self._rounds)}", "lowered", why))
        return turn_calls

    def _joined(self, readings: list[Reading]) -> Reading:
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
            texts += [None, reading.text] if texts else [reading.text]
            calls += reading.calls
        if state is not None and self._provider is not CHAT:  # whose state is one message
            state = {**state, "blocks": blocks}
        reasoning = join_texts([reading.reasoning for reading in readings])
        return readings[-1]._replace(text=in_paragraphs(texts), reasoning=reasoning, calls=calls, state=state)

    def _id_maker(self, originals: list[Any]) -> Callable[[int], str]:
        """Return a function that makes the next free `call_<n>` for the call at an index of a turn."""
        # `unique_ids` makes the same, but begins at 1 in every turn.
        taken = {each for each in originals if isinstance(each, str)}
        while f"call_{self._first_number}" in self._sent_ids:
            self._first_number += 1
        latest = self._first_number - 1

        def made_id(index: int) -> str:
            nonlocal latest
            latest = max(latest, index) + 1
            while f"call_{latest}" in self._sent_ids or f"call_{latest}" in taken:
                latest += 1
            return f"call_{latest}"

        return made_id

    def _expect_results(self, calls: ToolCalls, answers: dict[str, RecordedResult]) -> None:
        """Let the results that follow find the calls of a turn."""
        self._unanswered.begin_turn()
        for call in calls.in_order():
            self._unanswered.add(call, self._sent_ids[call.id], answers)

    def _answer(self, result: RecordedResult) -> None:
        """Pair a result with its call."""
        if self._unanswered.answer(result):
            return
        why = f"a result of call {cut(repr(result.id or result.name))}, which no model made, is left out"
        self.changes.append(Change(pointer(result.where), "dropped", why))

    def _row(self, parts: list[Json], turns: list[_Turn]) -> Json:
        row: Json = {}
        if parts:
            is_text = all(part["type"] == "text" for part in parts)
            row["question"] = "\n\n".join(part["text"] for part in parts) if is_text else parts
        rounds: list[Round] = []
        for calls, answers in turns:
            for call in calls.in_order():
                if call.id not in answers:
                    why = f"call {cut(repr(call.id))} has no result; sent again, it gets a failed one"
                    self.changes.append(Change(f"/calls/{call.id}", "healed", why))
            if calls is not turns[-1][0] and not calls:
                why = f"what the model said before a result of no call is left out: {cut(calls.text or '')}"
                self.changes.append(Change(f"/said/{len(rounds)}", "dropped", why))
            elif not calls:
                row["answer"] = calls.text
                row |= {"calls": calls} if calls.turn.state is not None else {}
            elif not answers and calls is turns[-1][0]:
                row["calls"] = calls
            else:
                results = tuple(_result(call, answers.get(call.id)) for call in calls.in_order())
                rounds.append(Round(calls=calls, results=results))
        return row | ({"results": ToolResults(rounds=tuple(rounds))} if rounds else {})


def _result(call: ToolCall | InvalidToolCall, each: RecordedResult | None) -> ToolResult:
    if each is None:
        return unanswered(call)
    content: Json = {"value": each.value} if each.parts is None else {"value": each.parts, "is_content": True}
    return ToolResult(call_id=call.id, name=call.name or "unnamed", is_error=each.failed, **content)
