"""Read the text outputs of an agent while the model writes them as a call of the agent's own `submit`.

DSPy's `ReActV2` ends by a call of `submit`, a tool that it adds. Its arguments are the agent's outputs, so a
reader of the run gets them as text, and no event of the call. Rules:

 a. The text of a step's first `submit` is emitted as it comes, decoded. What did not stream of it is emitted
    when the call is whole, if it continues what did.
 b. A further `submit` of the same step, also after a reask, is emitted when it is whole and good: what
    continues the text before it, or all of it if it is another text.
 c. A bad `submit` has no event either. Its text may have streamed; that of a later step replaces it.
"""

from collections.abc import Mapping
from typing import Any

import dspy

from sigadapt.adapters.listeners import PartialCall
from sigadapt.dspy_boundary.internals import SUBMIT, is_submit
from sigadapt.runs.field_texts import NOWHERE, JsonObjectText, Piece, text_fields
from sigadapt.schemas.json_values import is_sequence
from sigadapt.signatures.calls import ToolCall


class SubmitTexts:
    """The texts that the calls of `submit` in one step hold."""

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self.other_calls: set[int] = set()  # the indexes of calls of other tools
        self._names = text_fields(outputs)
        self._arguments = JsonObjectText(outputs, '"', NOWHERE)
        self._streamed_index: int | None = None  # of the call whose text is emitted as it comes
        self._latest_id: str | None = None  # of the call whose text was emitted last
        self._ids: set[str | None] = set()  # of all whose text was emitted
        self._pieces: dict[str, list[str]] = {}  # of the text of each field
        self._unnamed: dict[int, list[PartialCall]] = {}

    def take(self, part: PartialCall) -> tuple[list[PartialCall], list[Piece]]:
        """Take a part of any call; return parts of other calls, and pieces of text, to emit now."""
        if part.index == self._streamed_index:
            return [], self._read(part.arguments)
        # A name may come in several parts or after the arguments: until it is known, nothing is emitted.
        parts = [*self._unnamed.pop(part.index, ()), part]
        arguments = "".join(each.arguments for each in parts)
        may_become_submit = not arguments and SUBMIT.startswith(part.name or "")
        if part.name is None or may_become_submit:
            self._unnamed[part.index] = parts
            return [], []
        if part.name != SUBMIT:
            self.other_calls.add(part.index)
            return parts, []
        if self._streamed_index is not None:
            return [], []
        self._streamed_index = part.index
        self._latest_id = part.id
        self._ids.add(part.id)
        return [], self._read(arguments)

    def _read(self, arguments: str) -> list[Piece]:
        pieces = self._arguments.take(arguments)
        for piece in pieces:
            self._pieces.setdefault(piece.field or "", []).append(piece.text)
        return pieces

    def rest_of(self, call: ToolCall) -> list[Piece]:
        """Return what was not emitted of a whole call's text."""
        is_new = call.id not in self._ids
        if not is_new and call.id != self._latest_id:
            return []
        self._ids.add(call.id)
        self._latest_id = call.id
        pieces: list[Piece] = []
        for name, value in (call.args or {}).items():
            if name not in self._names or not isinstance(value, str):
                continue
            text = "".join(self._pieces.get(name, ()))
            continues = value.startswith(text)
            if not continues and not is_new:
                continue  # a hook changed the call that streamed, and the reader cannot unread its text
            rest = value[len(text) :] if continues else value
            if rest:
                pieces.append(Piece(name, rest, is_anew=not continues))
                self._pieces[name] = [value]
        return pieces


def submit_texts(agent: Any, predictor: dspy.Module, inputs: Mapping[str, Any]) -> SubmitTexts | None:
    """Return the reader of a predictor's calls of `submit`; None if it is not given the agent's own."""
    is_agents = predictor is agent.react or any(_holds_submit(value) for value in inputs.values())
    return SubmitTexts(agent.signature.output_fields) if is_agents else None


def _holds_submit(tools: object) -> bool:
    if not is_sequence(tools):
        return False
    return any(is_submit(getattr(tool, "func", None)) for tool in tools)
