"""A recorded request as a provider's file reads it: the mirror of what that file writes.

`Provider.request` fills a `Recording` with the turns, in order. What a model said is a `Reading`, as in an
answer. The parts of a question and of a result have the form of `tool_results/content.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from sigadapt.providers.provider import Reading
from sigadapt.providers.wire.turn_state import more_than
from sigadapt.providers.wire.values import content_parts, kind_of, text_of
from sigadapt.schemas.json_values import Json, is_array, pointer
from sigadapt.signatures.tool_results.dspy_media import Part

Where: TypeAlias = tuple[object, ...]
"""The steps from the body to a place in it."""

_TEXT = frozenset(("type", "text"))
MARKED = "ERROR: "


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
    """What a request on a wire holds. `part_of` reads a block of a question or a result; None for its own."""

    wire: str  # in whose words the request is
    part_of: Callable[[Json], Part | None]
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

    def instruct(self, content: Any, where: Where) -> None:
        """Add instructions; those inside of a conversation have no place in a signature."""
        if self.turns:
            self.lose(where, "instructions inside of a conversation have no neutral form, and are left out")
        elif text := text_of(content):
            self.system.append(text)

    def ask(self, content: Any, where: Where) -> None:
        """Add what the user said."""
        parts = list[Part]()
        for place, block in enumerate(content_parts(content)):
            parts.append(self._part(block))
            if parts[-1]["type"] == "text" and (more := more_than(block, _TEXT)):
                self.lose((*where, place), f"{more} of a text has no neutral form, and is left out")
        if parts:
            self.turns.append(Question(parts))

    def tell(self, call: tuple[Any, Any], content: Any, where: Where, *, failed: bool | None = False) -> None:
        """Add the result of the call with this id and name; `failed=None` if only its text can say so."""
        # A list is content blocks; anything else, an object too, is the value itself.
        parts = [*map(self._part, content_parts(content))] if is_array(content) else []
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

    def _part(self, block: Json) -> Part:
        """Return a block as a part; one without a neutral form as a block that its own wire alone gets."""
        text = block.get("text")
        if isinstance(text, str) and kind_of(block) in ("", "text"):
            return {"type": "text", "text": text}
        return self.part_of(block) or {"type": "block", "value": block, "wire": self.wire}
