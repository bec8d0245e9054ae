"""Put the files of a recorded result back into it, where the request has them in a message of the user.

Most wires have no place for an image in a result. sigadapt then sends it after the results of the turn
(`adapters/passes/results.py`). Read as what a person said, it would begin another question.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.recorded import Question, RecordedResult
from sigadapt.schemas.json_values import compact
from sigadapt.signatures.tool_results.content import PLACED, Part, as_content

# "Attachment 1: image 1 of result 2 (shot)" is a text before each file; Ollama has one text for all files.
_LABEL = re.compile(r"Attachment (\d{1,9}): (.{1,300}?) of result (\d{1,9}) \([^()]{0,200}\)")
# A result names its files, `[image 1, attachment 1 below]`, or `[image 1]` in JSON. Gemini has no labels.
_NAME = re.compile(rf"\[(?:{'|'.join(sorted(PLACED))}) \d{{1,9}}(?:[:,] [^\[\]]{{0,300}})?\]")

_Turn: TypeAlias = Question | Reading | RecordedResult


class _Place(NamedTuple):
    """Where a file belongs."""

    result: int  # the index among the turn's results
    name: str  # the text that stands for the file
    label: str = ""


def with_attachments(recorded: Iterable[_Turn]) -> list[_Turn]:
    """Return the turns of a recording, each result with its files."""
    turns: list[_Turn] = []
    results: list[RecordedResult] = []  # those at the end of the turns
    for kind, group in groupby(recorded, type):
        items: list[Any] = [*group]
        if kind is Question and results:
            parts = _other_parts([part for question in items for part in question.parts], results)
            items = [Question(parts)] if parts else []
        turns += results
        results = []
        if kind is RecordedResult:
            results = items
        else:
            turns += items
    return turns + results


def _other_parts(parts: list[Part], results: list[RecordedResult]) -> list[Part]:
    """Put each file that belongs to a result into it, and return the other parts."""
    others: list[Part] = []
    labeled: deque[_Place] = deque()
    unlabeled = deque(_named_places(results))
    for part in parts:
        is_file = part["type"] in PLACED
        labels: list[_Place] = []
        if part["type"] == "text":
            labels = [*_labels_in(part["text"], len(results))]
            unlabeled.clear()  # files without labels follow the results at once
        if labels:
            labeled += labels
        elif is_file and (labeled or unlabeled):
            place = (labeled or unlabeled).popleft()
            results[place.result] = _with_file(results[place.result], part, place.name)
        else:
            others.append(part)
    return [*({"type": "text", "text": place.label} for place in labeled), *others]


def _labels_in(text: str, count: int) -> Iterator[_Place]:
    """Yield the places that a text labels, if it holds nothing but labels of so many results."""
    labels = [*_LABEL.finditer(text)]
    if "".join(label[0] for label in labels) != text:
        return
    if not all(0 < int(label[3]) <= count for label in labels):
        return
    for label in labels:
        yield _Place(int(label[3]) - 1, f"[{label[2]}, attachment {label[1]} below]", label[0])


def _named_places(results: list[RecordedResult]) -> Iterator[_Place]:
    """Yield the places of the files that results name and do not hold."""
    for index, result in enumerate(results):
        if result.parts is None:
            text = result.value if isinstance(result.value, str) else compact(result.value)
            for name in _NAME.findall(text):
                yield _Place(index, name)


def _with_file(result: RecordedResult, file: Part, name: str) -> RecordedResult:
    """Return a result with a file: in its text where the file is named, else at the end."""
    parts = as_content(result.value) if result.parts is None else result.parts
    for n, part in enumerate(parts):
        if part["type"] == "text" and name in part["text"]:
            before, _, after = part["text"].partition(name)
            texts_before = as_content(before.removesuffix("\n") or None)
            texts_after = as_content(after.removeprefix("\n") or None)
            return result._replace(parts=[*parts[:n], *texts_before, file, *texts_after, *parts[n + 1 :]])
    return result._replace(parts=[*parts, file])
