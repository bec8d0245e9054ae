"""Mask a secret that a stream repeats in pieces, of which no single event holds it.

The texts in the same place of events are joined, whatever the wire: server-sent events, JSON lines, or an
array of JSON. If they hold a secret together, the first event gets all of their text, masked, and the others
get none of it. Other events stay byte for byte.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from sigadapt.json_values import is_array, is_object
from sigadapt.testing.answers import dumps
from sigadapt.trust.echoes import Echoes

_LINE = re.compile(r"(?P<field>(?:data:)?[ \t]*)(?P<json>[\[{].*)", re.DOTALL)
_LINE_END = re.compile(r"(\r\n|\r|\n)")
# What says of which message, block or call a piece is; a number that counts events is none of these.
_SERIES = ("type", "index", "output_index", "content_index", "summary_index", "item_id")


class _StreamedText(NamedTuple):
    """A text in an event: `holder[key]`."""

    event: int  # its number in the stream
    path: tuple[Any, ...]  # where it is in the event
    series: tuple[Any, ...]  # the same, and the marks on the way
    holder: Any
    key: Any


def without_pieces(text: str, echoes: Echoes) -> str:
    """Return a stream without the secrets that its events hold in pieces; any other text as it is."""
    lines = _LINE_END.split(text)
    events: dict[int, tuple[str, Any]] = {}
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        with suppress(ValueError, RecursionError):
            if match is not None:
                events[number] = match["field"], json.loads(match["json"])
    if not events:
        with suppress(ValueError, RecursionError):  # an array over several lines
            events[0] = "", json.loads(text)
            lines = [text]
    pieces = [piece for number, (_, event) in events.items() for piece in _pieces_of(number, event)]
    # In most streams, the place alone says what belongs together. A server may mix calls.
    changed = {*_mask(pieces, echoes, "series"), *_mask(pieces, echoes, "path")}
    for number in changed:
        field, event = events[number]
        lines[number] = field + dumps(event)
    return "".join(lines)


def _pieces_of(number: int, event: Any) -> Iterator[_StreamedText]:
    """Yield the texts in an event, in order."""
    pending: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = [(event, (), ())]
    while pending:
        holder, path, series = pending.pop()
        members: list[tuple[Any, Any]] = []
        if is_object(holder):
            marks = tuple(
                (name, holder[name]) for name in _SERIES if isinstance(holder.get(name), (str, int))
            )
            series = (*series, marks)
            members = [*holder.items()]
        elif is_array(holder):
            members = [*enumerate(holder)]
        for key, member in reversed(members):
            # An index says more than the position in this event.
            is_numbered = is_array(holder) and is_object(member) and "index" in member
            member_series = series if is_numbered else (*series, key)
            pending.append((member, (*path, key), member_series))
        for key, member in members:
            if isinstance(member, str):
                yield _StreamedText(number, (*path, key), (*series, key), holder, key)


def _mask(pieces: list[_StreamedText], echoes: Echoes, place: str) -> Iterator[int]:
    """Mask secrets in texts of one place, and yield the numbers of the events that change."""
    runs: dict[Any, list[_StreamedText]] = defaultdict(list)
    for piece in pieces:
        runs[getattr(piece, place)].append(piece)
    for run in runs.values():
        texts = [piece.holder[piece.key] for piece in run]
        masked = echoes.without_secrets("".join(texts))
        if masked == "".join(texts) or masked == "".join(map(echoes.without_secrets, texts)):
            continue  # what single events hold is masked as any other text
        for piece, new_text in zip(run, [masked, *[""] * len(run)], strict=False):
            piece.holder[piece.key] = new_text
            yield piece.event
