"""Mask a secret that a stream repeats in pieces, of which no single event holds it.

The texts in the same place of events are joined, whatever the wire: server-sent events, JSON lines, or an
array of JSON. An event is written anew only if it holds such a piece, so other bytes stay as they are.
"""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

from sigadapt.schemas.json_values import is_array, is_object
from sigadapt.trust.echoes import MASK, Echoes, mask_of

_LINE = re.compile(r"(?P<field>(?:data:)?[ \t]*)(?P<json>[\[{].*)", re.DOTALL)
_LINE_END = re.compile(r"(\r\n|\r|\n)")
# What says of which message, block or call a piece is; a number that counts events is none of these.
_SERIES = ("type", "index", "output_index", "content_index", "summary_index", "item_id")
_STYLES: list[dict[str, Any]] = [
    {"separators": separators, "ensure_ascii": ascii_only}
    for separators in ((",", ":"), (", ", ": "))
    for ascii_only in (True, False)
]
_Step: TypeAlias = "str | int"
_Path: TypeAlias = tuple[Any, ...]


class _EventPiece(NamedTuple):
    """A text in an event, and the object or the array that holds it."""

    event: int  # its number in the stream
    path: _Path  # where its text is in the event
    series: _Path
    holder: Any
    text: str


_Edits: TypeAlias = dict[tuple[int, _Path], tuple[_EventPiece, dict[int, str]]]
"""What becomes of single characters of a piece, by its event and its path."""


def without_pieces(text: str, echoes: Echoes) -> str:
    """Return a stream without the secrets that its events hold in pieces; any other text as it is."""
    lines = _LINE_END.split(text)
    events: dict[int, tuple[str, str, Any]] = {}
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        with suppress(ValueError, RecursionError):
            if match is not None:
                events[number] = match["field"], match["json"], json.loads(match["json"])
    if not events:
        with suppress(ValueError, RecursionError):  # an array over several lines
            events[0] = "", text, json.loads(text)
            lines = [text]
    pieces = [piece for number, (_, _, event) in events.items() for piece in _pieces_of(number, event)]
    edits = _edits_of(pieces, echoes)
    for piece, characters in edits.values():
        new_text = "".join(characters.get(n, char) for n, char in enumerate(piece.text))
        piece.holder[piece.path[-1]] = new_text
    for number in {number for number, _ in edits}:
        field, written, event = events[number]
        lines[number] = field + json.dumps(event, **_style_of(written))
    return "".join(lines)


def _style_of(written: str) -> dict[str, Any]:
    """Return the options of `json.dumps` that write an event as it was written."""
    event = json.loads(written)
    return next((style for style in _STYLES if json.dumps(event, **style) == written), _STYLES[0])


def _pieces_of(number: int, event: Any) -> Iterator[_EventPiece]:
    """Yield the texts in an event, in order."""
    pending: list[tuple[Any, _Path, _Path]] = [(event, (), ())]
    while pending:
        holder, path, series = pending.pop()
        members: list[tuple[_Step, Any]] = []
        if is_object(holder):
            marks = tuple(
                (name, holder[name]) for name in _SERIES if isinstance(holder.get(name), (str, int))
            )
            series = (*series, marks)
            members = [*holder.items()]
        elif is_array(holder):
            members = [*enumerate(holder)]
        for key, member in reversed(members):
            if isinstance(member, str):
                continue
            # An index says more than the position in this event.
            is_numbered = is_array(holder) and is_object(member) and "index" in member
            member_series = series if is_numbered else (*series, key)
            pending.append((member, (*path, key), member_series))
        for key, member in members:
            if isinstance(member, str):
                yield _EventPiece(number, (*path, key), (*series, key), holder, member)


def _edits_of(pieces: list[_EventPiece], echoes: Echoes) -> _Edits:
    """Return what becomes of the pieces that hold a part of a secret."""
    runs: dict[tuple[str, _Path], list[_EventPiece]] = defaultdict(list)
    for piece in pieces:
        # In most streams, the place alone says what belongs together. A server may mix calls.
        runs["path", piece.path].append(piece)
        runs["series", piece.series].append(piece)
    edits: _Edits = {}
    for run in runs.values():
        if len(run) > 1:
            _note_edits(run, echoes, edits)
    return edits


def _note_edits(run: list[_EventPiece], echoes: Echoes, edits: _Edits) -> None:
    """Note what becomes of secrets that are in more than one of these pieces."""
    text = "".join(piece.text for piece in run)
    starts = [0, *accumulate(len(piece.text) for piece in run)]
    for start, end in echoes.spans(text):
        first = bisect_right(starts, start) - 1
        if end <= starts[first + 1]:
            continue  # one piece holds all of it, and is masked as any other text
        mask = mask_of(text[start:end])
        number = first
        for position in range(start, end):
            while position >= starts[number + 1]:
                number += 1
            piece = run[number]
            _, characters = edits.setdefault((piece.event, piece.path), (piece, {}))
            in_piece = position - starts[number]
            if mask != MASK:  # digits, one for each
                characters[in_piece] = mask[position - start]
            else:
                characters[in_piece] = MASK if position == start else ""
