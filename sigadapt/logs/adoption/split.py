"""Which conversations are held out: about one of four, the same ones whatever the order of the lines.

Conversations with the same first question, or with a row in common, are held out together, so that a row is
never judged by what was seen in its twin.
"""

from collections import defaultdict
from collections.abc import Sequence

from sigadapt.logs.adoption.threads import Groups
from sigadapt.logs.adoption.transcript import hash_of
from sigadapt.schemas.json_values import Json, short_hash

_HELD_OUT = 4  # one conversation of so many
_INPUTS = ("question", "history", "results")


def held_out(rows: Sequence[Json], seed: int) -> frozenset[str]:
    """Return the ids of the conversations that are held out; none of a single one."""
    names = {row["conversation"] for row in rows}
    if len(names) < 2:
        return frozenset()
    families = _families(rows)
    if len(families) < 2:  # everybody begins with the same words, which give nothing away
        families = [[name] for name in names]
    families.sort(key=lambda family: short_hash(f"{seed} {min(family)}" if seed else min(family)))
    target = max(1, len(names) // _HELD_OUT)
    chosen: set[str] = set()
    for family in families:
        if len(chosen) + len(family) <= target:
            chosen.update(family)
    if not chosen:
        chosen.update(min(families, key=len))
    return frozenset(chosen)


def _families(rows: Sequence[Json]) -> list[list[str]]:
    """Return the conversations in families."""
    groups = Groups()
    for row in rows:
        name = f"c{row['conversation']}"
        groups.join(name, f"q{hash_of(_first_question(row))}")
        groups.join(name, f"r{hash_of([row.get(key) for key in _INPUTS])}")
    families: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        families[groups.root(f"c{row['conversation']}")].add(row["conversation"])
    return [sorted(family) for family in families.values()]


def _first_question(row: Json) -> object:
    history: Json = row.get("history") or {}
    events: list[Json] = history.get("messages") or [row]
    return events[0].get("question")
