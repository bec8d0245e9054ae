"""Talk: a DSPy program that says what it is given and nothing else, on whatever wire the model has."""

from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.request.messages import assistant_message, read, result_message
from sigadapt.errors import InvalidHistory
from sigadapt.schemas.json_values import is_array
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.content import text_of
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round, ToolResults


class PlainAdapter(ChatAdapter):
    """Questions and answers as plain text, without instructions or markers of an adapter."""

    parses_beside_calls = False

    def __init__(self, recorded_wire: str = "") -> None:
        super().__init__(on_invalid="keep", use_json_adapter_fallback=False)
        self.recorded_wire = recorded_wire

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
        rows = [{"role": "system", "content": inputs["system"]}] if inputs.get("system") else []
        for event in (*demos, *history.messages, inputs):
            question = event.get("question")
            results = event.get("results")
            calls = event.get("calls")
            if question or is_array(question):
                parts = {"parts": question} if is_array(question) else {}
                rows.append({"role": "user", "content": text_of(question) if parts else question, **parts})
            rounds = [*read(ToolResults, results, "results").rounds] if results else []
            last_calls = ToolCalls() if calls is None else read(ToolCalls, calls, "calls")
            if last_calls:
                rounds.append(Round(calls=last_calls, results=tuple(map(unanswered, last_calls.in_order()))))
            for each in rounds:
                rows.append(assistant_message(each.calls.in_order(), each.calls.turn, each.text))
                rows += map(result_message, each.results)
            if event.get("answer") or (not last_calls and last_calls.turn.state is not None):
                rows.append(assistant_message((), last_calls.turn, event.get("answer")))
        if not rows:
            reason = "the conversation holds nothing to say to a model"
            raise InvalidHistory(reason, code="unreadable_history", fix="Give a question, or a history.")
        if rows[-1]["role"] == "system":  # every provider requires a message to answer
            rows.append({"role": "user", "content": rows[-1]["content"]})
        return rows


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
        tools: the tools to declare, in any form that ToolDecls takes.
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
