"""Conversation: any provider's recorded request, read back. The mirror of `choice_from_response`.

A provider's file reads its wire (`Provider.request`), and `history_rows.py` makes turns of what was said.
What has no neutral form is on record, whether it stays in a turn's state or is left out (nothing silent).
`Talk` is the program that sends a conversation again, on whatever wire the model has.
"""

import marshal
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.dspy_adapters import ChatAdapter
from sigadapt.adapters.request.canonical import Change, canonical_choice
from sigadapt.adapters.request.messages import assistant_message, read, result_message
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.json_values import Json, cut, is_array, is_object
from sigadapt.logs.history_rows import HistoryRows
from sigadapt.providers import PROVIDERS, provider_named
from sigadapt.providers.provider import Provider
from sigadapt.providers.route import Route
from sigadapt.providers.wire.recorded import INSTRUCTIONS, Recording
from sigadapt.providers.wire.values import named_part
from sigadapt.schemas.caches import BUDGET, BoundedCache
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.server_tools import NativeTool
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.content import text_of
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.trust.echoes import MASK
from sigadapt.trust.masking import Masking


class PlainAdapter(ChatAdapter):
    """Questions and answers as plain text, without instructions or markers of an adapter."""

    is_recorded = True
    parses_beside_calls = False

    def __init__(self, recorded_wire: str = "") -> None:
        super().__init__(on_invalid="keep", use_json_adapter_fallback=False)
        self._recorded_wire = recorded_wire

    def tools_on(self, route: Route, decls: ToolDecls) -> tuple[ToolDecls, tuple[Change, ...]]:
        """Return recorded tools for a route."""
        return _as_recorded(decls, self._recorded_wire, route)

    def holds_fields(self, signature: type[Signature], text: str) -> bool:
        """Return True, so that `parse` gets every text."""
        return True

    def parse(self, signature: type[Signature], completion: str) -> dict[str, Any]:
        """Return the whole text as the answer."""
        return {"answer": completion}

    def messages(
        self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the messages of a conversation: each row's question, its rounds, and its answer."""
        history = read(dspy.History, inputs.get("history") or {"messages": []}, "history")
        rows: list[dict[str, Any]] = []
        if inputs.get("system"):
            rows.append({"role": "system", "content": inputs["system"]})
        for event in (*demos, *history.messages, inputs):
            rows += _event_messages(event)
        if not rows:
            reason = "the conversation holds nothing to say to a model"
            raise InvalidHistory(reason, code="unreadable_history", fix="Give a question, or a history.")
        if len(rows) == 1 and inputs.get("system"):  # every provider requires a message to answer
            rows.append({"role": "user", "content": rows[-1]["content"]})
        return rows


def _as_recorded(decls: ToolDecls, wire: str, route: Route) -> tuple[ToolDecls, tuple[Change, ...]]:
    """Return recorded tools for a route: on their own wire as they are, on others without what is its own."""
    changes: list[Change] = []
    entries: list[Any] = []
    for number, each in enumerate(decls.entries):
        entry: Any = each
        extras: Json = getattr(entry, "extras", None) or {}
        is_deferred = bool(extras.get("defer_loading"))
        if wire == route.wire and is_deferred and route.search and route.search.namespaces:
            # Without a group, it was recorded in none, and is sent in none.
            entries.append(with_fields(entry, extras={"namespace": None, **extras}))
        elif wire != route.wire and isinstance(entry, NativeTool):
            why = f"{cut(entry.kind)} is a tool of the wire that it was recorded on"
            changes.append(Change(f"/tools/{number}", "dropped", why))
        elif wire != route.wire and is_deferred:
            why = "it was found by a search on the wire that it was recorded on, and is sent loaded"
            changes.append(Change(f"/tools/{number}", "lowered", why))
            fields = {key: part for key, part in extras.items() if key != "defer_loading"}
            entries.append(with_fields(entry, extras=fields))
        else:
            entries.append(entry)
    return ToolDecls(entries), tuple(changes)


def _event_messages(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of one row: its question, its rounds, and its answer."""
    question = event.get("question")
    if is_array(question):
        yield from _question_messages(question)
    elif question:
        yield {"role": "user", "content": question}
    results = event.get("results")
    rounds = [*read(ToolResults, results, "results").rounds] if results else []
    calls = event.get("calls")
    last_calls = ToolCalls() if calls is None else read(ToolCalls, calls, "calls")
    if last_calls:
        rounds.append(Round(calls=last_calls, results=tuple(map(unanswered, last_calls.in_order()))))
    for turn in rounds:
        yield assistant_message(turn.calls.in_order(), turn.calls.turn, turn.text)
        yield from map(result_message, turn.results)
    if event.get("answer") or (not last_calls and last_calls.turn.state is not None):
        yield assistant_message((), last_calls.turn, event.get("answer"))


def _question_messages(parts: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a question's parts: instructions in their place, and what the user said."""
    for is_instruction, group in groupby(parts, lambda part: part["type"] == INSTRUCTIONS):
        run = [*group]
        if is_instruction:
            for part in run:
                yield {"role": "system", "content": part["value"]}
        elif all(part["type"] == "text" for part in run):
            yield {"role": "user", "content": "\n\n".join(part["text"] for part in run)}
        else:
            yield {"role": "user", "content": text_of(run), "parts": run}


class PlainTurn(dspy.Signature):
    """Answer, or call tools."""

    question: Any = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    history: Any = dspy.InputField()
    results: Any = dspy.InputField()
    system: str | None = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


_LEFT_OUT = dict.fromkeys(PlainTurn.input_fields)


class Talk(dspy.Module):
    """Say a recorded conversation to a model, and get its answer or its calls. Nothing is run.

    Args:
        tools: the tools to declare, in any form that ToolDecls accepts.
        wire: the wire that they were recorded on, where they are declared as they are; elsewhere, they go
            without what is that wire's own.

    Example:
        >>> from sigadapt.testing import Answer, LoopbackProvider
        >>> with LoopbackProvider([Answer(text="Sunny.")]) as provider:
        ...     with dspy.context(lm=dspy.LM(**provider.lm_options("openai"))):
        ...         prediction = Talk([])(question="Weather?", system="Be brief.")
        >>> prediction.answer, [row["content"] for row in provider.received[0].body["messages"]]
        ('Sunny.', ['Be brief.', 'Weather?'])
    """

    def __init__(self, tools: object = (), wire: str = "") -> None:
        super().__init__()
        self.wire = wire
        self.tools = ToolDecls(tools)
        self.turn = dspy.Predict(PlainTurn)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Return a Prediction with `answer` and `calls`, good and bad.

        Args:
            inputs: `question`, `history`, `results` and `system`, as a Conversation has them or as they are
                saved; what is left out is None.
        """
        with dspy.context(adapter=PlainAdapter(self.wire)):
            return self.turn(**_LEFT_OUT | {"tools": self.tools} | inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Return the same as `forward`, awaited."""
        with dspy.context(adapter=PlainAdapter(self.wire)):
            return await self.turn.acall(**_LEFT_OUT | {"tools": self.tools} | inputs)


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
