"""A recorded request as a provider's file reads it: the mirror of what that file writes.

`Provider.request` fills a `Recording` with the turns, in order. What a model said is a `Reading`, as in an
answer. The parts of a question and of a result have the form of `tool_results/content.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from sigadapt.json_values import Json, is_array, pointer
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.values import content_parts, is_text, kind_of, more_than, text_of
from sigadapt.signatures.tool_results.tool_output import Part

Where: TypeAlias = tuple[object, ...]
"""The steps from the body to a place in it."""

_TEXT = frozenset(("type", "text"))
PLAIN_MESSAGE = frozenset(("role", "content"))
MARKED = "ERROR: "
INSTRUCTIONS = "instructions"
"""The type of a part of a question for instructions inside of the conversation; `value` is the text."""


def _more_than_text(block: Json) -> str:
    return more_than(block, _TEXT) if is_text(block.get("text")) else ""


class Question(NamedTuple):
    """What the user said at once."""

    parts: list[Part]


class RecordedResult(NamedTuple):
    """The result of a call; `parts` if it is more than a text or JSON."""

    id: Any  # of the call that it answers
    name: Any  # of the tool
    value: Any
    failed: bool
    parts: list[Part] | None
    where: Where  # the steps to it in the body


@dataclass
class Recording:
    """What a request on a wire holds."""

    wire: str  # in whose words the request is
    part_of: Callable[[Json], Part | None]  # reads a block of a question or a result; None for its own
    more_in: Callable[[Json], str] = _more_than_text  # names what a block holds and its part does not
    tools: list[Any] = field(default_factory=list[Any])
    system: list[str] = field(default_factory=list[str])
    turns: list[Question | Reading | RecordedResult] = field(
        default_factory=list["Question | Reading | RecordedResult"]
    )
    settings: Json = field(default_factory=dict[str, Any])
    losses: dict[str, str] = field(default_factory=dict[str, str])  # what has no neutral form

    def set(self, values: Mapping[str, Any], names: Mapping[str, str], without: Iterable[str] = ()) -> None:
        """Add settings, under sigadapt's names where the provider has others."""
        left_out = {*without}
        self.settings |= {
            names.get(key, key): value
            for key, value in values.items()
            if key not in left_out and value is not None
        }

    def lose(self, where: Where, why: str) -> None:
        """Record what has no neutral form and is left out."""
        self.losses[pointer(where)] = why

    def lose_members(self, block: Json, known: frozenset[str], where: Where) -> None:
        """Record the members of a message or a block that hold something and are not known."""
        if block.keys() <= known:
            return
        for name, value in block.items():
            if value and name not in known:
                self.lose((*where, name), f"{name!r} has no neutral form, and is left out")

    def instruct(self, content: Any, where: Where) -> None:
        """Add instructions; those inside of a conversation stand in their place, among the questions."""
        for place, block in enumerate(content_parts(content)):
            if more := more_than(block, _TEXT):
                self.lose((*where, place), f"{more} of instructions has no neutral form, and is left out")
        text = text_of(content)
        if text and self.turns:
            self.turns.append(Question([{"type": INSTRUCTIONS, "value": text}]))
        elif text:
            self.system.append(text)

    def ask(self, content: Any, where: Where) -> None:
        """Add what the user said."""
        parts = self._parts(content, where)
        if parts:
            self.turns.append(Question(parts))

    def tell(self, call: tuple[Any, Any], content: Any, where: Where, *, failed: bool | None = False) -> None:
        """Add the result of the call with this id and name; `failed=None` if only its text can say so."""
        # A list is content blocks; anything else, an object too, is the value itself.
        parts = self._parts(content, where) if is_array(content) else []
        kinds = {part["type"] for part in parts}
        value = content
        if is_array(content) and kinds <= {"text"}:
            value = "".join([part["text"] for part in parts])
            parts = []
        elif kinds == {"json"} and len(parts) == 1:
            value = parts[0]["value"]
            parts = []
        if failed is None:
            failed = isinstance(value, str) and value.startswith(MARKED)
            value = value[len(MARKED) :] if failed else value
        self.turns.append(RecordedResult(*call, value, failed, parts or None, where))

    def _parts(self, content: Any, where: Where) -> list[Part]:
        """Return content as parts; what no part holds of a block is on record."""
        parts = list[Part]()
        for place, block in enumerate(content_parts(content)):
            part = self._part(block)
            parts.append(part)
            if part["type"] != "block" and (more := self.more_in(block)):
                kind = "a text" if part["type"] == "text" else f"{kind_of(block)!r}"
                block_place = (*where, place) if is_array(content) else where
                self.lose(block_place, f"{more} of {kind} has no neutral form, and is left out")
        return parts

    def _part(self, block: Json) -> Part:
        """Return a block as a part; one without a neutral form as a block that its own wire alone gets."""
        text = block.get("text")
        if isinstance(text, str) and kind_of(block) in ("", "text"):
            return {"type": "text", "text": text}
        return self.part_of(block) or {"type": "block", "value": block, "wire": self.wire}
