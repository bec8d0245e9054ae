"""Read the text outputs of an agent while the model writes them as a call of the agent's own `submit`.

DSPy's `ReActV2` ends by a call of `submit`, a tool that it adds. Its arguments are the agent's outputs, so a
reader of the run gets them as text, and no event of the call. Rules:

 a. The text of the first `submit` in an answer is emitted as it comes, decoded. What did not stream of it is
    emitted when the call is whole, if it goes on from what did.
 b. A further `submit` of one step is emitted when it is whole and good, unless it repeats the text.
 c. A bad `submit` is no event, either: its text may have streamed, and the model submits again. The text of
    the later step replaces that of the earlier one.
"""

from collections.abc import Mapping
from typing import Any

import dspy

from sigadapt.adapters.listeners import PartialCall
from sigadapt.dspy_boundary.internals import is_submit
from sigadapt.runs.field_texts import NOWHERE, JsonObjectText, Piece, text_fields
from sigadapt.schemas.json_values import is_sequence
from sigadapt.signatures.calls import ToolCall

AGENT: Any = dspy.ReActV2  # which is not typed as a class
SUBMIT = "submit"


class SubmitTexts:
    """The texts that the calls of `submit` in one step hold."""

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self._outputs = outputs
        self._names = text_fields(outputs)
        self._pieces: dict[tuple[str | None, str], list[str]] = {}  # by the call's id and the field
        self.begin_answer()

    def begin_answer(self) -> None:
        """Read another answer, such as that to a reask."""
        self._arguments = JsonObjectText(self._outputs, '"', NOWHERE)
        self._streamed_index: int | None = None  # of the call whose text is emitted as it comes
        self._unnamed: dict[int, list[PartialCall]] = {}

    def take(self, part: PartialCall) -> tuple[list[PartialCall], list[Piece]]:
        """Take a part of any call; return parts of other calls, and pieces of text, to emit now."""
        # A name may come in several parts or after the arguments: until it is known, nothing is emitted.
        parts = [*self._unnamed.pop(part.index, ()), part]
        arguments = "".join(each.arguments for each in parts)
        may_become_submit = not arguments and SUBMIT.startswith(part.name or "")
        if part.name is None or may_become_submit:
            self._unnamed[part.index] = parts
            return [], []
        if part.name != SUBMIT:
            return parts, []
        if self._streamed_index is None:
            self._streamed_index = part.index
        if part.index != self._streamed_index:
            return [], []
        pieces = self._arguments.take(arguments)
        self._record(part.id, pieces)
        return [], pieces

    def rest_of(self, call: ToolCall) -> list[Piece]:
        """Return what was not emitted of a whole call's text."""
        pieces: list[Piece] = []
        for name, value in (call.args or {}).items():
            if name not in self._names or not isinstance(value, str):
                continue
            text = self._text_of(call.id, name)
            if not text and self._is_repeated(name, value):
                continue
            if value.startswith(text) and value != text:
                pieces.append((name, value[len(text) :]))
        self._record(call.id, pieces)
        return pieces

    def _record(self, call_id: str | None, pieces: list[Piece]) -> None:
        for name, piece in pieces:
            self._pieces.setdefault((call_id, name or ""), []).append(piece)

    def _text_of(self, call_id: str | None, name: str) -> str:
        return "".join(self._pieces.get((call_id, name), ()))

    def _is_repeated(self, name: str, value: str) -> bool:
        return any(field == name and self._text_of(call_id, name) == value for call_id, field in self._pieces)


def submit_texts(agent: Any, predictor: dspy.Module, inputs: Mapping[str, Any]) -> SubmitTexts | None:
    """Return the reader of a predictor's calls of `submit`; None if it is not given the agent's own."""
    is_agents = predictor is agent.react or any(_holds_submit(value) for value in inputs.values())
    return SubmitTexts(agent.signature.output_fields) if is_agents else None


def _holds_submit(tools: object) -> bool:
    if not is_sequence(tools):
        return False
    return any(is_submit(getattr(tool, "func", None)) for tool in tools)
