"""Make a conversation's history shorter without breaking it.

A history is cut only before a question. What follows a question up to the next one, a *turn*, stays or goes
as a whole: the calls, their results and the answer. Providers refuse half of it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import dspy

from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json
from sigadapt.signatures.transcript import going_on, read, rows_of

_EMPTY = '{"messages":[]}'


def trim_history(
    history: dspy.History | Mapping[str, Any],
    *,
    turns: int | None = None,
    characters: int | None = None,
    tokens: int | None = None,
    count: Callable[[str], int] | None = None,
    compacted: bool = False,
    signature: type[dspy.Signature] | None = None,
) -> dspy.History:
    """Return a shorter history: the latest whole turns that fit every limit.

    With `functools.partial`, it can process the history of DSPy's agents:
    `history_processor=partial(trim_history, turns=10, signature=...)` (DSPy's pull request 10217).

    Args:
        history: a `dspy.History`, or what its `model_dump` wrote. It is not changed.
        turns: the most turns to keep.
        characters: the most characters of the kept messages as JSON.
        tokens: the most tokens of the kept turns as JSON, by `count`.
        count: a function that returns the number of tokens in a string.
        compacted: whether to keep no turn before the latest one in which the provider compacted the
            conversation. Anthropic and OpenAI read nothing before it; other providers do.
        signature: the signature of the conversation, whose input fields say which event asks a question.
            Without it, only a field of the first event asks, and none that stands in an event without all
            of these: in doubt, a turn is longer.

    Returns:
        A new History. It begins with a question, and is empty if the latest turn is over a limit.

    Raises:
        InvalidOption: for a limit that is not an int of 0 or more, for no limit, and for `tokens` without
            `count`.
        InvalidHistory: `unreadable_history`, for what is not a history.

    Example:
        >>> asked = [{"question": f"Q{n}", "answer": f"A{n}"} for n in range(3)]
        >>> trim_history(dspy.History(messages=asked), turns=1).messages
        [{'question': 'Q2', 'answer': 'A2'}]
    """
    limits = {"turns": turns, "characters": characters, "tokens": tokens}
    for name, limit in limits.items():
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidOption(f"expected an int of 0 or more, got {limit!r}", field=name)
    if not compacted and all(limit is None for limit in limits.values()):
        fix = "Pass turns=..., characters=... or tokens=..."
        raise InvalidOption("no limit is given", field="turns", fix=fix)
    if tokens is not None and count is None:
        fix = "Pass count=, a function of a string."
        raise InvalidOption("tokens need a function that counts them", field="tokens", fix=fix)
    turns_left = _turns_within(turns_of(history, signature), limits, count, compacted=compacted)
    original = read(dspy.History, history, None)  # which has a summary too, from DSPy 3.5 on
    messages = [event for turn in turns_left for event in turn]
    return original.model_copy(update={"messages": messages})


def _turns_within(
    turns: list[list[Json]],
    limits: Mapping[str, int | None],
    count: Callable[[str], int] | None,
    *,
    compacted: bool,
) -> list[list[Json]]:
    """Return the latest turns that fit every limit, the first of them first."""
    is_measured = limits["characters"] is not None or limits["tokens"] is not None
    counts_tokens = limits["tokens"] is not None and count is not None
    latest: list[list[Json]] = []
    sizes = {"turns": 0, "characters": len(_EMPTY), "tokens": 0}
    for turn in reversed(turns):
        sizes["turns"] += 1
        if is_measured:
            text = dspy.History(messages=turn).model_dump_json()
            sizes["characters"] += len(text) - len(_EMPTY) + bool(latest)  # and a comma
            sizes["tokens"] += count(text) if counts_tokens and count is not None else 0
        if any(limit is not None and sizes[name] > limit for name, limit in limits.items()):
            break
        latest.append(turn)
        if compacted and _is_compacted(turn):
            break
    return latest[::-1]


def _is_compacted(turn: list[Json]) -> bool:
    """Return whether the provider put a summary of all that was said before into a turn."""
    for row in rows_of(turn):
        collections = [each_round.calls for each_round in row.rounds]
        if row.calls:
            collections.append(row.calls)
        for calls in collections:
            for item in (calls, *calls):
                state = item.turn.state or {}
                if any(block.get("type") == "compaction" for block in state.get("blocks", ())):
                    return True
    return False


def turns_of(
    history: dspy.History | Mapping[str, Any], signature: type[dspy.Signature] | None = None
) -> list[list[Json]]:
    """Return the turns of a history, each a question and what follows it; events before one are in none."""
    events: list[Json] = list(read(dspy.History, history, None).messages)
    rows = rows_of(events)
    continues = [*going_on(rows)]
    plain = [row.plain for row in rows]
    if signature is not None:
        asking = set(signature.input_fields)
    else:
        asking = _asking_fields(plain, continues)
        if not asking:  # one turn, as far as one can tell
            return [events] if events else []
    turns: list[list[Json]] = []
    for event, names, goes_on in zip(events, plain, continues, strict=True):
        if asking & names and not goes_on:
            turns.append([event])
        elif turns:
            turns[-1].append(event)
    return turns


def _asking_fields(plain: list[set[str]], continues: list[bool]) -> set[str]:
    """Return the fields of the first event that are in no event without all of them."""
    if not plain:
        return set()
    first = plain[0]
    asking = set(first)
    for names, goes_on in zip(plain, continues, strict=True):
        if goes_on or first - names:
            asking -= names
    return asking
