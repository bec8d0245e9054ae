"""Where and why arguments do not fit, once it is known that they do not: a walk of bounded work (bounded).

The validator could list every error of every alternative, which takes twice as long with each level of a
recursive schema. Here a value is judged once by a schema, whatever the number of ways to it. Where no
alternative fits, the one that was meant is followed down: the one whose type and tag the value has. What a
schema asserts by itself is still judged, and put into words, by the validator.

The verdict is never taken from this walk. It may know less than the validator (of `unevaluatedProperties` it
knows nothing) and then tells less.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import jsonschema_rs

from sigadapt.schemas.checking.effort import extent_of, repeats_of, steps_of
from sigadapt.schemas.json_values import Json, cut
from sigadapt.schemas.references import References

MAX_VISITS = 50_000
"""How many times a value may be judged by a schema in one walk."""

Compile: TypeAlias = Callable[[Json], jsonschema_rs.Validator]

_OWN = (
    frozenset(("type", "enum", "const", "format"))
    | frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
    | frozenset(("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"))
    | frozenset(("required", "minProperties", "maxProperties", "dependentRequired"))
)
_SAME = ("allOf", "anyOf", "oneOf")
_ONE_SAME = ("not", "if", "then", "else")
_BRANCHES = frozenset(("anyOf", "oneOf", "not", "if", "then", "else", "contains", "propertyNames"))
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_TAGS = ("const", "enum")
_KINDS = ("type", *_TAGS)
_LARGEST_SHOWN = 10_000  # values; to tell an error, the validator copies the value


class Misfit(NamedTuple):
    """One reason why a value does not fit: the keys to the place, the keyword, and a sentence."""

    keys: tuple[str | int, ...]
    keyword: str
    reason: str


class _Application(NamedTuple):
    """A schema that has to be asked: the keyword it stands under, and the part of the value it judges."""

    keyword: str
    schema: Any
    key: str | int | None
    part: Any


_Walk: TypeAlias = Generator[tuple[Any, Any], "list[Misfit]", "list[Misfit]"]


class Misfits:
    """A walk over one value that does not fit.

    Args:
        references: what the schemas refer to, as `check_references` gives it.
        compiled: compiles a schema, in the draft of the whole.
        most: how many misfits to find in a value.
        most_inside: how many to find in each part of it.
    """

    def __init__(
        self, references: References, compiled: Compile, *, most: int = 9, most_inside: int = 9
    ) -> None:
        self._references = references
        self._compiled = compiled
        self._most = most
        self._most_inside = most_inside
        self._known: dict[tuple[int, int], list[Misfit]] = {}
        self._own: dict[int, jsonschema_rs.Validator | None] = {}
        self._patterns: dict[str, jsonschema_rs.Validator] = {}
        self.visits = 0
        """How much has been done so far: judgements, and values copied for an error's words."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the walk ended before it had seen everything."""
        return self.visits > MAX_VISITS

    def of(self, schema: Json, value: Any) -> list[Misfit]:
        """Find what in a value does not fit a schema, in the value's order; what is found is certain."""
        found: list[Misfit] = []
        stack = [((id(schema), id(value)), self._judged(schema, value, found, self._most))]
        opened = {stack[0][0]}
        answer: list[Misfit] | None = None
        while stack and not self.is_exhausted:
            key, walk = stack[-1]
            try:
                asked, part = next(walk) if answer is None else walk.send(answer)
            except StopIteration as end:
                answer = self._known[key] = end.value
                opened.discard(key)
                stack.pop()
                continue
            self.visits += 1
            key = (id(asked), id(part))
            answer = _plain_verdict(asked, part) if not isinstance(asked, dict) else self._known.get(key)
            if answer is None and key in opened:
                answer = []
            elif answer is None:
                most = self._most if part is value else self._most_inside
                stack.append((key, self._judged(cast("Json", asked), part, [], most)))
                opened.add(key)
        return found

    def steps(self, schema: Json, value: Any, most: int, remembered: frozenset[int] | None = None) -> int:
        """Count the steps that a reader takes to judge a value and its parts, up to a little over `most`."""
        counts: dict[tuple[int, int], int] = {}
        again = 0
        pending: list[tuple[Any, Any, bool]] = [(schema, value, False)]
        while pending:
            asked, part, is_done = pending.pop()
            key = (id(asked), id(part))
            if is_done:
                counts[key] = self._count(cast("Json", asked), part, counts, follows=remembered is None)
                if counts[key] + again > most:
                    return most + 1
                if remembered and key[0] in remembered:
                    again += counts[key]
                    counts[key] = 1
            elif key not in counts and isinstance(asked, dict):
                self.visits += 1
                if self.is_exhausted:
                    return most + 1
                counts[key] = 1
                asked = cast("Json", asked)
                pending.append((asked, part, True))
                pending += [(one.schema, one.part, False) for one in self._applications(asked, part)]
        return counts[id(schema), id(value)] + again

    def _count(self, schema: Json, value: Any, counts: dict[tuple[int, int], int], *, follows: bool) -> int:
        several: dict[str, list[int]] = {}
        for one in self._applications(schema, value):
            several.setdefault(one.keyword, []).append(counts.get((id(one.schema), id(one.part)), 1))
        if follows and "discriminator" in schema:
            several["oneOf"] = [max(several.get("oneOf", [0]))]
        return steps_of(schema) + repeats_of(schema) * sum(map(sum, several.values()))

    def _judged(self, schema: Json, value: Any, found: list[Misfit], most: int) -> _Walk:
        branches: dict[str, list[tuple[str | int | None, list[Misfit]]]] = {}
        for one in self._applications(schema, value):
            answer = yield one.schema, one.part
            if one.keyword in _BRANCHES:
                branches.setdefault(one.keyword, []).append((one.key, answer))
            elif answer and len(found) < most:
                keys = () if one.key is None else (one.key,)
                found += [misfit._replace(keys=keys + misfit.keys) for misfit in answer[: most - len(found)]]
            if len(found) >= most:
                return found
        found += self._own_misfits(schema, value)
        found += _of_branches(schema, branches)
        del found[most:]
        return found

    def _applications(self, schema: Json, value: Any) -> Iterator[_Application]:
        for keyword in _REFERENCES:
            for target in self._references.get((id(schema), keyword), ())[:1]:
                yield _Application(keyword, target, None, value)
        for keyword in _SAME:
            for branch in _listed(schema.get(keyword)):
                yield _Application(keyword, branch, None, value)
        for keyword in _ONE_SAME:
            if keyword in schema:
                yield _Application(keyword, schema[keyword], None, value)
        if isinstance(value, dict):
            yield from self._of_object(schema, cast("Json", value))
        elif isinstance(value, list):
            yield from _of_array(schema, cast("list[Any]", value))

    def _of_object(self, schema: Json, value: Json) -> Iterator[_Application]:
        for keyword in ("dependentSchemas", "dependencies"):
            for key, dependent in _named(schema.get(keyword)).items():
                if key in value and not isinstance(dependent, list):
                    yield _Application(keyword, dependent, None, value)
        named, by_pattern = _named(schema.get("properties")), _named(schema.get("patternProperties"))
        for key, part in value.items():
            matching = [held for pattern, held in by_pattern.items() if self._matches(pattern, key)]
            if key in named:
                yield _Application("properties", named[key], key, part)
            for held in matching:
                yield _Application("patternProperties", held, key, part)
            if isinstance(schema.get("additionalProperties"), dict) and key not in named and not matching:
                yield _Application("additionalProperties", schema["additionalProperties"], key, part)
            if "propertyNames" in schema:
                yield _Application("propertyNames", schema["propertyNames"], key, key)

    def _matches(self, pattern: str, key: str) -> bool:
        self.visits += 1
        if pattern not in self._patterns:
            self._patterns[pattern] = self._compiled({"pattern": pattern})
        return self._patterns[pattern].is_valid(key)

    def _own_misfits(self, schema: Json, value: Any) -> list[Misfit]:
        key = id(schema)
        if key not in self._own:
            own = _own_assertions(schema)
            self._own[key] = self._compiled(own) if own else None
        validator = self._own[key]
        if validator is None or validator.is_valid(value):
            return []
        size = extent_of(value).values
        self.visits += size // 10
        if size > _LARGEST_SHOWN:
            return [self._unshown(schema, value)]
        errors = list(validator.iter_errors(value))
        self.visits += sum(len(error.message) for error in errors) // 1000
        return [Misfit((), error.kind.name, cut(error.message)) for error in errors]

    def _unshown(self, schema: Json, value: Any) -> Misfit:
        own = _own_assertions(schema)
        broken = [key for key in own if key in _OWN and not self._compiled({key: own[key]}).is_valid(value)]
        kind, words = "an object" if isinstance(value, dict) else "an array", ", ".join(broken or own)
        return Misfit((), next(iter(broken or own)), f"{kind} too large to show breaks {cut(words)}")


def _plain_verdict(schema: Any, value: Any) -> list[Misfit]:
    if schema is False:
        shown = value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
        return [Misfit((), "false", f"no value is allowed here, and {cut(repr(shown))} is one")]
    return []


def _own_assertions(schema: Json) -> Json:
    """What a schema says of a value by itself; its schemas of parts are replaced by `true`."""
    own = {key: value for key, value in schema.items() if key in _OWN}
    if schema.get("additionalProperties") is False:
        own["additionalProperties"] = False
        for keyword in ("properties", "patternProperties"):
            if keyword in schema:
                own[keyword] = dict.fromkeys(_named(schema[keyword]), True)
    if isinstance(schema.get("dependencies"), dict):
        named = _named(schema["dependencies"])
        own["dependencies"] = {key: names for key, names in named.items() if type(names) is list}
    return own


def _of_array(schema: Json, value: list[Any]) -> Iterator[_Application]:
    first = schema.get("prefixItems", schema.get("items"))
    prefix = _listed(first)
    rest = schema.get("additionalItems") if prefix and first is schema.get("items") else schema.get("items")
    for number, part in enumerate(value):
        if number < len(prefix):
            yield _Application("items", prefix[number], number, part)
        elif isinstance(rest, (dict, bool)):
            yield _Application("items", rest, number, part)
        if "contains" in schema:
            yield _Application("contains", schema["contains"], number, part)


def _of_branches(
    schema: Json, branches: dict[str, list[tuple[str | int | None, list[Misfit]]]]
) -> Iterator[Misfit]:
    answers = {keyword: [answer for _, answer in asked] for keyword, asked in branches.items()}
    if "if" in answers:
        for answer in answers.get("else" if answers["if"][0] else "then", ()):
            yield from answer
    if "not" in answers and not answers["not"][0]:
        yield Misfit((), "not", "fits what `not` rules out")
    for keyword in ("anyOf", "oneOf"):
        if keyword in answers:
            yield from _of_alternatives(answers[keyword], keyword)
    for key, answer in branches.get("propertyNames", ()):
        for misfit in answer:
            yield misfit._replace(keys=(), reason=f"the key {cut(repr(key))}: {cut(misfit.reason)}")
    if "contains" in schema:
        yield from _of_contains(schema, sum(not answer for answer in answers.get("contains", ())), answers)


def _of_contains(schema: Json, fitting: int, answers: dict[str, list[list[Misfit]]]) -> Iterator[Misfit]:
    least, most = schema.get("minContains", 1), schema.get("maxContains", fitting)
    if "contains" in answers and not least <= fitting <= most:
        yield Misfit((), "contains", f"{fitting} items are what it has to contain, not {least} to {most}")


def _of_alternatives(answers: Sequence[list[Misfit]], keyword: str) -> list[Misfit]:
    fitting = sum(not answer for answer in answers)
    if fitting > 1 and keyword == "oneOf":
        return [Misfit((), keyword, f"fits {fitting} alternatives, not one")]
    if fitting:
        return []
    ranked = sorted(answers, key=_distance)
    if len(ranked) == 1 or (_distance(ranked[0]) < _distance(ranked[1]) and not _distance(ranked[0])[0]):
        return ranked[0]
    firsts = ", ".join(cut(answer[0].reason) for answer in answers[:4])
    return [Misfit((), keyword, f"fits no alternative ({firsts})")]


def _distance(answer: Sequence[Misfit]) -> tuple[bool, int, int]:
    """How far a value is from an alternative: another kind of value, another tag, misfits."""
    is_another = any(not misfit.keys and misfit.keyword in _KINDS for misfit in answer)
    tags = sum(len(misfit.keys) == 1 and misfit.keyword in _TAGS for misfit in answer)
    return is_another, tags, len(answer)


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _named(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
