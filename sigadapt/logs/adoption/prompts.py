"""The instructions that most conversations of a log have in common, and what each row has besides.

The common text is the beginning of the instructions, or their end where a date or a name comes first. It is
cut where a line or a sentence ends. Of a row's instructions, the rest is its `context`; a row with another
text has that as its own `instructions`.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sigadapt.schemas.json_values import Json

_PARAGRAPH = "\n\n"
_BREAK = re.compile(r"(\n+|(?<=[.!?])[ \t]+)")


class CommonPrompt(NamedTuple):
    """Instructions that rows share."""

    text: str  # empty if the log has none in common
    context_first: bool = False  # whether what rows have besides comes before it

    def parts_of(self, system: str | None) -> Json:
        """Return what a row with these instructions needs: nothing, its `context`, or `instructions`."""
        system = system or ""
        if system.strip() == self.text:
            return {}
        if self.text and self.context_first and system.rstrip().endswith(self.text):
            rest = system.rstrip().removesuffix(self.text)
            if rest[-1:].isspace():
                return {"context": _without_break(rest, at_end=True)}
        elif self.text and not self.context_first and system.lstrip().startswith(self.text):
            rest = system.lstrip().removeprefix(self.text)
            if rest[:1].isspace():
                return {"context": _without_break(rest, at_end=False)}
        return {"instructions": system}


def with_context(text: str, context: str, *, context_first: bool) -> str:
    """Return instructions with a row's context: the mirror of `parts_of`."""
    if not text or not context:
        return text or context
    first = text
    second = context
    if context_first:
        first = context
        second = text
    touches = context[-1:].isspace() if context_first else context[:1].isspace()
    return f"{first}{second}" if touches else f"{first}{_PARAGRAPH}{second}"


def _without_break(rest: str, *, at_end: bool) -> str:
    """Return a rest without the blank line between it and the common text; `with_context` adds that."""
    if at_end:
        is_paragraph = rest.endswith(_PARAGRAPH) and not rest.removesuffix(_PARAGRAPH)[-1:].isspace()
        return rest.removesuffix(_PARAGRAPH) if is_paragraph else rest
    is_paragraph = rest.startswith(_PARAGRAPH) and not rest.removeprefix(_PARAGRAPH)[:1].isspace()
    return rest.removeprefix(_PARAGRAPH) if is_paragraph else rest


def common_prompt(rows: Iterable[Json]) -> CommonPrompt:
    """Return the instructions that most conversations of rows (`system`, `conversation`) have."""
    prompts: dict[str, set[str]] = defaultdict(set)
    conversations: set[str] = set()
    silent: set[str] = set()  # conversations without any instructions
    for row in rows:
        conversations.add(row["conversation"])
        text = (row["system"] or "").strip()
        if text:
            prompts[text].add(row["conversation"])
        else:
            silent.add(row["conversation"])
    least = min(2, len(conversations))
    beginning = _best(prompts, least, from_end=False)
    ending = _best(prompts, least, from_end=True)
    context_first = ending.score > beginning.score
    best = ending if context_first else beginning
    if best.conversations <= len(silent):
        return CommonPrompt("")
    return CommonPrompt(best.text, context_first)


class _Candidate(NamedTuple):
    text: str
    conversations: int

    @property
    def score(self) -> int:
        return len(self.text) * self.conversations


def _best(prompts: dict[str, set[str]], least: int, *, from_end: bool) -> _Candidate:
    """Return the beginning, or the end, of prompts that says the most to the most conversations."""
    best = _Candidate("", 0)
    # Level by level, the prompts that begin alike, as long as enough conversations have them.
    pending = [(0, "", {prompt: _segments(prompt, from_end=from_end) for prompt in prompts})]
    while pending:
        level, text, group = pending.pop()
        longer: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for prompt, segments in group.items():
            if level < len(segments):
                longer[segments[level]][prompt] = segments
        for segment, part in longer.items():
            count = len(set[str]().union(*(prompts[prompt] for prompt in part)))
            if count < least:
                continue
            longer_text = segment + text if from_end else text + segment
            pending.append((level + 1, longer_text, part))
            candidate = _Candidate(longer_text.strip(), count)
            # The text itself decides between two that score alike, whatever the order of the lines.
            is_better = (candidate.score, candidate.text) > (best.score, best.text)
            # Python cleans every docstring: the text must be the same afterwards.
            if is_better and inspect.cleandoc(f"{candidate.text}\n") == candidate.text:
                best = candidate
    return best


def _segments(prompt: str, *, from_end: bool) -> list[str]:
    """Return the pieces between a prompt's breaks, with the breaks; the last one first if asked so."""
    pieces = _BREAK.split(prompt)
    if from_end:
        pieces.reverse()
    return pieces
