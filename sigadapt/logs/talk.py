"""Talk: a DSPy program that says what it is given and nothing else, on whatever wire the model has."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.request.messages import assistant_message, read, result_message
from sigadapt.errors import InvalidHistory
from sigadapt.providers.route import Route
from sigadapt.providers.wire.recorded import INSTRUCTIONS
from sigadapt.schemas.json_values import Json, cut, is_array
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.provider_tools import NativeTool
from sigadapt.signatures.tool_decl import with_fields
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.content import text_of
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round, ToolResults


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
