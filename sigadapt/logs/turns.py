"""Turns: what a program that `adopt` wrote sends for a row, which is the request that the row was made of.

Questions and answers are plain text, without an adapter's markers. The signature's instructions are the
system message, so that whatever changes them changes what is sent. Tools and settings are the row's own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.request.messages import read
from sigadapt.errors import InvalidOption
from sigadapt.logs.adoption.prompts import with_context
from sigadapt.logs.talk import PlainAdapter
from sigadapt.schemas.json_values import Json, closest, is_object, is_sequence
from sigadapt.schemas.unknown_options import refuse_unknown
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult

NO_INSTRUCTIONS = "Answer, or call tools."
"""What a signature says whose log has no instructions. It is not sent until somebody changes it."""

SENT_SETTINGS = frozenset(
    str.split("""
    frequency_penalty max_tokens parallel_tool_calls presence_penalty reasoning_effort response_format seed
    stop temperature tool_choice top_k top_p
    """)
)
"""The settings of a row that are sent to every provider; the others are one provider's own words."""

LABELS = ("calls", "conversation", "confirmed", "why")
"""What a row holds besides inputs."""

_NOT_SHOWN = "(the result is not part of this example)"


class TurnAdapter(PlainAdapter):
    """Sends a signature's instructions and a row as the plain messages of a conversation.

    Args:
        row: the inputs of the row: its `wire`, on which its tools are sent as they are, and its own
            `instructions`, which are sent instead of the signature's.
        context_first: whether a row's `context` comes before the instructions.
    """

    def __init__(self, row: Mapping[str, Any], *, context_first: bool = False) -> None:
        super().__init__(row.get("wire") or "")
        self.instructions: str | None = row.get("instructions")
        self.context_first = context_first

    def messages(
        self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the instructions, the examples and the turns of a row."""
        instructions = self.instructions
        if instructions is None:
            instructions = signature.instructions
            if instructions == NO_INSTRUCTIONS:
                instructions = ""
        system = with_context(instructions, inputs.get("context") or "", context_first=self.context_first)
        events: list[dict[str, Any]] = []
        for number, demo in enumerate(demos, 1):
            events += _demo_events(demo, number)
        return super().messages(signature, events, {**inputs, "system": system})


def _demo_events(demo: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the turns of an example; its calls have ids that no other call has, and no result."""
    events: list[dict[str, Any]] = []
    if demo.get("history"):
        events += read(dspy.History, demo["history"], "history").messages
    calls = read(ToolCalls, demo["calls"], "calls") if demo.get("calls") else ToolCalls()
    rounds = [*read(ToolResults, demo["results"], "results").rounds] if demo.get("results") else []
    if calls:
        shown = [
            {"id": f"example_{number}_{place}", "name": call.name, "args": call.args}
            for place, call in enumerate(calls, 1)
        ]
        shown_calls = ToolCalls(shown)
        results = [ToolResult(call_id=call.id, name=call.name, value=_NOT_SHOWN) for call in shown_calls]
        rounds.append(Round(calls=shown_calls, results=tuple(results)))
    last = {"question": demo.get("question"), "answer": demo.get("answer")}
    return [*events, {**last, "results": ToolResults(rounds=tuple(rounds))}]


def plain_turns(row: Mapping[str, Any], *, context_first: bool = False) -> Any:
    """Return the context in which a program sends a row as it was recorded."""
    return dspy.context(adapter=TurnAdapter(row, context_first=context_first))


def turn_inputs(row: Mapping[str, Any], tools: ToolDecls) -> dict[str, Any]:
    """Return the inputs of a signature for a row, with the row's own tools and settings.

    Args:
        row: the inputs of a row, as `adopt` writes them or an Example has them.
        tools: the declarations that the row's names are of.

    Raises:
        InvalidOption: `unknown_tool`, for a name that is none of these.
    """
    inputs: dict[str, Any] = {"question": row.get("question"), "tools": tools_of(row.get("tools"), tools)}
    if row.get("history"):
        inputs["history"] = read(dspy.History, row["history"], "history")
    if row.get("results"):
        inputs["results"] = read(ToolResults, row["results"], "results")
    if row.get("context"):
        inputs["context"] = row["context"]
    settings: Json = row.get("settings") or {}
    config = {name: value for name, value in settings.items() if name in SENT_SETTINGS}
    return {**inputs, "config": config} if config else inputs


def tools_of(entries: Any, tools: ToolDecls) -> Any:
    """Return the declarations of a row: of its names those in `tools`, and its own; all of these for None."""
    if entries is None:
        return tools
    if not is_sequence(entries) or not any(isinstance(entry, str) or is_object(entry) for entry in entries):
        return entries
    return ToolDecls([_tool_of(entry, tools) for entry in entries])


def _tool_of(entry: Any, tools: ToolDecls) -> Any:
    if not isinstance(entry, str) or entry in tools:
        return tools[entry] if isinstance(entry, str) else entry
    near = closest(entry, [decl.name for decl in tools])
    fix = "Add it to TOOLS in program.py, or take TOOLS from program_new.py."
    if near:
        fix = f"Did you mean {near!r}?"
    raise InvalidOption(f"a row names the tool {entry!r}, which is not declared", field="tools", fix=fix)


class TurnProgram(dspy.Module):
    """The program of an adopted log: an answer to a row, or calls of tools. Nothing is run.

    Args:
        signature: the signature of a turn; its instructions are sent.
        tools: the declarations that rows name.
        context_first: whether a row's `context` comes before the instructions.
    """

    def __init__(self, signature: type[Signature], tools: ToolDecls, *, context_first: bool = False) -> None:
        super().__init__()
        self.tools = tools
        self.context_first = context_first
        self.turn = dspy.Predict(signature)

    def forward(self, **row: Any) -> dspy.Prediction:
        """Return a Prediction with `answer` and `calls`, good and bad, for the inputs of a row."""
        refuse_unknown("the program of a log", row, _INPUTS)
        with plain_turns(row, context_first=self.context_first):
            return self.turn(**turn_inputs(row, self.tools))

    async def aforward(self, **row: Any) -> dspy.Prediction:
        """Return the same as `forward`, awaited."""
        refuse_unknown("the program of a log", row, _INPUTS)
        with plain_turns(row, context_first=self.context_first):
            return await self.turn.acall(**turn_inputs(row, self.tools))


FIELDS: dict[str, Any] = {
    "question": str | list[dict[str, Any]] | None,
    "history": dspy.History | None,
    "results": ToolResults | None,
    "context": str | None,
    "tools": ToolDecls,
}
"""The input fields that a turn may have, in their order."""

_INPUTS = (*FIELDS, "instructions", "settings", "wire", "system", *LABELS)
"""What a row may hold; `system` is of earlier releases."""


def turn_signature(instructions: str, fields: Iterable[str]) -> type[Signature]:
    """Return the signature of a turn with these input fields."""
    new_signature: Any = dspy.Signature
    typed_fields: dict[str, Any] = {name: (FIELDS[name], dspy.InputField()) for name in fields}
    typed_fields["answer"] = (str | None, dspy.OutputField())
    typed_fields["calls"] = (ToolCalls | None, dspy.OutputField())
    return new_signature(typed_fields, instructions or NO_INSTRUCTIONS, signature_name="Turn")
