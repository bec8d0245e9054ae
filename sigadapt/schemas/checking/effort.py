"""How much work judging arguments by a schema is, at most, known before any of it is done (bounded).

The validator stops at the first misfit, and remembers its verdicts where a recursive schema meets an object
or an array again. Three things can still make it slow. Each is counted in steps, a hundred million a second:

 a. Schemas that are not recursive and judge a part of a value twice at every level. A value is judged as
    often as there are ways through the schema to its place; `Effort.of_value` is the most there can be.
 b. Patterns. One without look-around and backreferences takes a step for each of its states and each
    character. One with them reads the text again for each character, and again for each level of look-around.
 c. Integers over 64 bits, which are compared digit by digit, and by `uniqueItems` each with each.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sigadapt.schemas.json_values import Json
from sigadapt.schemas.references import References
from sigadapt.schemas.subschemas import SAME_VALUE, Place, children

MAX_STEPS = 100_000_000
"""How many steps a check may take."""

MAX_JUDGED = 10**12
"""How many steps a schema may have one value take; only one that doubles at each level has more."""

_MAX_LOOKED_AT = 4_000_000_000  # characters that look-around may read; faster than steps
_ENDLESS = 10**15
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_UNEVALUATED_COSTS = 3  # measured: each level of them has the level below judged 2.7 times
_OF_WHOLE_OBJECTS = ("patternProperties", "unevaluatedProperties", "propertyNames")
_OF_WHOLE_ARRAYS = ("contains", "unevaluatedItems")
_SOME_MEMBERS = ("properties", "additionalProperties")
_SOME_ITEMS = ("items", "prefixItems", "additionalItems")
_ARE_COMPARED = ("enum", "const", "required", "dependentRequired")
_BEYOND_LINEAR = re.compile(r"\(\?(?:<?[=!])|\\[1-9]|\\k<")
_LOOK_AROUND = re.compile(r"\\.|\(\?<?[=!]|\(|\)|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
_ATOM = re.compile(r"\\.|\(|\)|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:(,)(\d*))?\}|.", re.DOTALL)


class Effort(NamedTuple):
    """What a check may cost.

    Args:
        of_value: the steps that a value may take.
        of_character: the steps that a character may take in patterns.
        unsteady: the patterns with look-around or backreferences.
        levels: how many times over such a pattern may read a text.
        unique: whether `uniqueItems` is asked for.
        recursive: whether a schema refers to one that holds it.
        free_bytes: how many bytes of JSON are within every bound, whatever they say.
    """

    of_value: int
    of_character: int
    unsteady: tuple[str, ...]
    levels: int
    unique: bool
    recursive: bool
    free_bytes: int


class Extent(NamedTuple):
    """How much there is to judge: values, characters, the longest text, large integers and their digits."""

    values: int
    characters: int
    longest: int
    large: int
    digits: int


def effort_of(places: Sequence[Place], references: References) -> Effort:
    """Bound what judging a value by a schema may cost."""
    graph = _Graph(places, references)
    of_value, of_character = graph.most(steps_of), graph.most(_pattern_steps)
    patterns = {pattern for place in places for pattern in _patterns(place.schema)}
    unsteady = tuple(sorted(pattern for pattern in patterns if _BEYOND_LINEAR.search(pattern)))
    levels = max((_look_around_levels(pattern) for pattern in unsteady), default=0)
    free = MAX_STEPS // (of_value + of_character)
    if unsteady:
        free = min(free, int((_MAX_LOOKED_AT / len(unsteady)) ** (1 / (levels + 1))))
    return Effort(
        of_value,
        of_character,
        unsteady,
        levels,
        any("uniqueItems" in place.schema for place in places),
        bool(graph.remembered),
        free,
    )


def remembered_in(places: Sequence[Place], references: References) -> frozenset[int]:
    """The `id` of each schema whose verdicts the validator remembers: what is referred to within itself."""
    return frozenset(_Graph(places, references).remembered)


def is_affordable(effort: Effort, extent: Extent, steps: int | None = None) -> bool:
    """Whether a check stays within the bounds."""
    steps = extent.values * effort.of_value if steps is None else steps
    steps += extent.characters * effort.of_character
    if extent.large:
        others = extent.large if effort.unique else 0
        steps += extent.large * (50 + extent.digits**2 // 400) * (effort.of_value + others)
    looked_at = len(effort.unsteady) * extent.characters * extent.longest**effort.levels
    return steps <= MAX_STEPS and looked_at <= _MAX_LOOKED_AT


def extent_of(value: object) -> Extent:
    """Count what is in a JSON value; keys are values, and texts, too."""
    pending: list[Any] = [value]
    values = characters = longest = large = digits = 0
    while pending:
        item = pending.pop()
        values += 1
        if isinstance(item, str):
            characters += len(item)
            longest = max(longest, len(item))
        elif isinstance(item, dict):
            for key, member in cast("dict[Any, Any]", item).items():
                pending += (key, member)
        elif isinstance(item, list):
            pending += cast("list[Any]", item)
        elif isinstance(item, int) and item.bit_length() > 63:
            large += 1
            digits = max(digits, item.bit_length() * 3 // 10 + 1)
    return Extent(values, characters, longest, large, digits)


class _Graph:
    """Which schema has which judge the same value, a member or an item of it.

    Attributes:
        remembered: the `id` of each schema that is referred to and leads back to itself. The validator keeps
            its verdicts, so that its own cost counts once a value, not once a reference.
    """

    def __init__(self, places: Sequence[Place], references: References) -> None:
        self._root = places[0].schema
        self._held = {id(place.schema): list(children(place.schema)) for place in places}
        self._targets: dict[int, list[Json]] = {}
        for (holder, _), targets in references.items():
            found = [cast("Json", target) for target in targets if isinstance(target, dict)]
            self._targets.setdefault(holder, []).extend(found)
        targeted = {id(target) for targets in self._targets.values() for target in targets}
        self.remembered = targeted & self._in_cycles() if targeted else targeted

    def _below(self, schema: Json) -> list[Json]:
        return [place.schema for place in self._held.get(id(schema), ())] + self._targets.get(id(schema), [])

    def _in_cycles(self) -> set[int]:
        """The schemas that lead back to themselves, by Tarjan's algorithm without recursion."""
        order: dict[int, int] = {}
        lowest: dict[int, int] = {}
        open_: list[int] = []
        cyclic: set[int] = set()
        closed: set[int] = set()
        pending = [self._root]
        while pending:
            schema = pending.pop()
            key = id(schema)
            if key not in order:
                order[key] = lowest[key] = len(order)
                open_.append(key)
                pending.append(schema)
                pending += [child for child in self._below(schema) if id(child) not in order]
                cyclic.update(key for child in self._below(schema) if child is schema)
            elif key not in closed:
                known = [id(child) for child in self._below(schema) if id(child) not in closed]
                lowest[key] = min([lowest[key], *(lowest[child] for child in known)])
                if lowest[key] == order[key]:
                    members = [open_.pop()]
                    while members[-1] != key:
                        members.append(open_.pop())
                    closed.update(members)
                    cyclic.update(members if len(members) > 1 else ())
        return cyclic

    def most(self, own: Callable[[Json], int]) -> int:
        """The most that the schemas on the way to any one value cost together."""
        known: dict[int, int] = {}
        pending: list[tuple[Json, bool]] = [(self._root, False)]
        opened: set[int] = set()
        while pending:
            schema, is_done = pending.pop()
            key = id(schema)
            if is_done:
                known[key] = min(_ENDLESS, own(schema) + self._cost_below(key, schema, known))
            elif key not in opened:
                opened.add(key)
                pending.append((schema, True))
                pending += [(child, False) for child in self._below(schema)]
        return min(_ENDLESS, known[id(self._root)] + sum(known[key] for key in self.remembered))

    def _cost_below(self, key: int, schema: Json, known: Mapping[int, int]) -> int:
        costs: dict[str, list[int]] = {}
        for place in self._held.get(key, ()):
            costs.setdefault(place.keyword, []).append(known.get(id(place.schema), 0))
        same = sum(sum(costs.get(keyword, ())) for keyword in SAME_VALUE)
        targets = [id(target) for target in self._targets.get(key, ())]
        same += sum(known.get(target, 0) for target in targets if target not in self.remembered)
        same *= repeats_of(schema)
        members = _largest(costs, _SOME_MEMBERS) + _total(costs, _OF_WHOLE_OBJECTS)
        items = _largest(costs, _SOME_ITEMS) + _total(costs, _OF_WHOLE_ARRAYS)
        return same + max(members, items)


def _largest(costs: Mapping[str, list[int]], keywords: Iterable[str]) -> int:
    return max((cost for keyword in keywords for cost in costs.get(keyword, ())), default=0)


def _total(costs: Mapping[str, list[int]], keywords: Iterable[str]) -> int:
    return sum(sum(costs.get(keyword, ())) for keyword in keywords)


def repeats_of(schema: Json) -> int:
    """How often a schema has its alternatives judge the same value."""
    return _UNEVALUATED_COSTS if any(keyword in schema for keyword in _UNEVALUATED) else 1


def steps_of(schema: Json) -> int:
    """The steps that a value takes by what a schema says of it by itself."""
    return 1 + sum(extent_of(schema[keyword]).values for keyword in _ARE_COMPARED if keyword in schema)


def _patterns(schema: Json) -> list[str]:
    found: list[Any] = [schema.get("pattern")]
    if isinstance(schema.get("patternProperties"), dict):
        found += cast("Json", schema["patternProperties"])
    return [pattern for pattern in found if isinstance(pattern, str)]


def _pattern_steps(schema: Json) -> int:
    return sum(_states_cost(pattern) for pattern in _patterns(schema))


def _states_cost(pattern: str) -> int:
    """The steps that a character takes where the engine must follow every state; measured."""
    states, is_nested = _states(pattern)
    return 1 + states // 2 + (states * states // 3000 if is_nested else 0)


def _states(pattern: str) -> tuple[int, bool]:
    """Estimate the states of a pattern's automaton; and say whether a counted repeat repeats another."""
    groups: list[list[int]] = [[0]]  # of each open group: the states of its parts
    counted: list[bool] = [False]
    is_nested = holds_counted = False
    for atom in _ATOM.finditer(pattern):
        text = atom[0]
        if text == "(":
            groups.append([0])
            counted.append(False)
            holds_counted = False
        elif text == ")" and len(groups) > 1:
            inner = sum(groups.pop())
            groups[-1].append(inner)
            holds_counted = counted.pop()
            counted[-1] = counted[-1] or holds_counted
        elif atom[1]:
            times = int(atom[3] or atom[1])
            groups[-1][-1] = min(_ENDLESS, groups[-1][-1] * max(1, times))
            is_nested = is_nested or holds_counted
            counted[-1] = True
        else:
            groups[-1].append(1)
            holds_counted = False
    return min(_ENDLESS, sum(sum(group) for group in groups)), is_nested


def _look_around_levels(pattern: str) -> int:
    """How deep look-around is nested; a backreference reads again as one level does."""
    levels, most = 0, 1
    groups: list[bool] = []
    for piece in _LOOK_AROUND.finditer(pattern):
        text = piece[0]
        if text == ")":
            levels -= bool(groups and groups.pop())
        elif text.startswith("("):
            groups.append(len(text) > 1)
            levels += groups[-1]
            most = max(most, levels)
    return most
