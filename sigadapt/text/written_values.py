"""Values that a model wrote as text: Python literals, and untyped text that a schema types.

Nothing is evaluated (nothing is executed): `literal_at` is a parser of its own, bounded in depth (bounded).
`value_of` turns the raw text of a parameter into a value of the type that the schema declares:

 a. null, true and false count in any case, numbers and JSON as JSON writes them; arrays and objects may also
    be Python literals.
 b. Where several types are declared, the first of null, boolean, integer, number, array, object that the text
    is counts, and string last.
 c. Text that is none of the declared types stays text, for validation to refuse. Nothing is guessed.
 d. Without a declared type, an array or an object is read and everything else stays text.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from sigadapt.schemas.json_values import Json, compact, decode, is_array, is_object, object_of
from sigadapt.schemas.subschemas import target_of

_LEVELS = 100
_MOST_DIGITS = 4_000
_SCHEMAS = 200  # how many schemas are looked at for the types of one value
_SPACE = re.compile(r"\s*")
# Python's numbers; JSON's; and what servers take for one where a value can be no text, as 007.
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])")
_DIGITS = re.compile(r"[+-]?(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PAIR = re.compile(r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_OCTAL = re.compile(r"0[0-7]{1,2}")
_CHARACTER_NAME = re.compile(r"N\{(?P<name>[^{}\n]{0,100})\}")
_WORD = re.compile(r"(?:[Tt]rue|[Ff]alse|None|null)\b")
_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}
_ESCAPES = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "0": "\0",
    "\n": "",
    "/": "/",
}
_HEX = {"x": 2, "u": 4, "U": 8}
NO_TEXT: Json = {"type": ["null", "boolean", "number", "array", "object"]}
"""The schema of a value that a format writes without the marks of a string."""
# In Python a closing quote is followed by one of these. A quote before anything else is part of the text:
# models write shell commands with quotes inside and do not escape them.
_AFTER_STRING = re.compile(r"\s*(?:[,)\]}:]|\Z)")
_EXPRESSION = re.compile(r"\s*(?:[+%*]|\.\w+\()|\s+['\"]")
_PARTS = {quote: re.compile(rf"(?s)[^\\{quote[0]}]+") for quote in ("'", '"')}


class NoLiteral(ValueError):
    """A text that is no literal, and the place up to which it was looked at."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.place = place


def literal_at(text: str, at: int, level: int = 0, *, is_strict: bool = False) -> tuple[Any, int]:
    """Return the Python literal at a place, and the place behind it; ValueError if there is none."""
    # Tuples and sets become lists, and keys of dicts strings, since arguments are JSON. The constants of JSON
    # count too. Unless `is_strict`, a string ends at the first quote behind which Python could go on: models
    # forget to escape the quotes in it.
    at = space(text, at)
    if level > _LEVELS:
        raise NoLiteral("nested too deep", at)
    char = text[at : at + 1]
    if char in ("'", '"') and char:
        return _string(text, at, is_strict=is_strict)
    if close := {"[": "]", "(": ")", "{": "}"}.get(char):
        return _bracketed(text, at + 1, close, level + 1, is_strict=is_strict)
    number = _NUMBER.match(text, at)
    if number is not None:
        return _number(number[0]), number.end()
    word = _WORD.match(text, at)
    if word is None:
        raise NoLiteral("not a literal", at)
    return _CONSTANTS[word[0].lower()], word.end()


def space(text: str, at: int) -> int:
    """Return the place behind white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _number(digits: str) -> Any:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("too many digits")
    plain = digits.replace("_", "")
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def _string(text: str, at: int, *, is_strict: bool) -> tuple[str, int]:
    quote = text[at]
    if text.startswith(quote * 3, at):
        end = text.find(quote * 3, at + 3)
        if end < 0:
            raise NoLiteral("unterminated", len(text))
        return text[at + 3 : end], end + 3
    parts = list[str]()
    place = at + 1
    plain = _PARTS[quote]
    while place < len(text):
        run = plain.match(text, place)
        if run is not None:
            parts.append(run[0])
            place = run.end()
        elif text[place] == "\\":
            part, place = _escape(text, place + 1)
            parts.append(part)
        elif is_strict or _AFTER_STRING.match(text, place + 1):
            return "".join(parts), place + 1
        elif _EXPRESSION.match(text, place + 1):
            raise NoLiteral("an expression", place)
        else:
            parts.append(quote)
            place += 1
    raise NoLiteral("unterminated", len(text))


def _escape(text: str, at: int) -> tuple[str, int]:
    char = text[at : at + 1]
    if char in _HEX:
        pair = _PAIR.match(text, at)
        if pair is not None:  # JSON writes characters beyond 16 bits as two
            return json.loads(f'"\\{pair[0]}"'), pair.end()
        digits = text[at + 1 : at + 1 + _HEX[char]]
        try:
            return chr(int(digits, 16)), at + 1 + _HEX[char]
        except (ValueError, OverflowError):
            return "\\" + char, at + 1
    if text.startswith("N{", at):
        return _named_character(text, at)
    if octal := _OCTAL.match(text, at):
        char = chr(int(octal[0], 8))
        at = octal.end() - 1
    else:
        char = _ESCAPES.get(char, "\\" + char)
    return char, at + 1


def _named_character(text: str, at: int) -> tuple[str, int]:
    """Return the character that an escape names, such as EM DASH; NoLiteral if none has the name."""
    escape = _CHARACTER_NAME.match(text, at)
    try:
        return unicodedata.lookup(escape["name"] if escape else ""), escape.end() if escape else at
    except KeyError:
        raise NoLiteral("no character has this name", at) from None


def _bracketed(text: str, at: int, close: str, level: int, *, is_strict: bool) -> tuple[Any, int]:
    """Read what stands between brackets: an object, or a list of what is no pair of a key and a value."""
    items = list[Any]()
    pairs = list[tuple[str, Any]]()
    at = space(text, at)
    while not text.startswith(close, at):
        item, at = literal_at(text, at, level, is_strict=is_strict)
        at = space(text, at)
        if close != "}" or items or not (pairs or text.startswith(":", at)):
            items.append(item)
        elif isinstance(item, (list, dict)) or not text.startswith(":", at):
            raise NoLiteral("not a key", at)
        else:
            value, at = literal_at(text, at + 1, level, is_strict=is_strict)
            pairs.append((item if isinstance(item, str) else json.dumps(item), value))
            at = space(text, at)
        if text.startswith(",", at):
            at = space(text, at + 1)
        elif not text.startswith(close, at):
            raise NoLiteral("expected a comma", at)
    return (items if items or close != "}" else object_of(pairs)), at + 1


def types_of(schema: Any, root: Json) -> set[str]:
    """Return the JSON types that a schema allows, as far as it names them; an empty set for any type."""
    types = set[str]()
    for here in _parts(schema, root):
        kind = here.get("type")
        types.update(word for word in (kind if is_array(kind) else [kind]) if isinstance(word, str))
        if here.get("nullable") is True:
            types.add("null")
        if "type" not in here and isinstance(here.get("enum", here.get("const")), (list, str)):
            values: Any = here.get("enum", [here.get("const")])
            types.update(_KINDS.get(type(value), "null") for value in values)
    return types


_KINDS: dict[Any, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _parts(schema: Any, root: Json) -> Iterator[Json]:
    """Yield a schema and those that it combines or refers to."""
    pending = [schema]
    for _ in range(_SCHEMAS):
        here = pending.pop() if pending else None
        if is_object(here):
            for keyword in ("anyOf", "oneOf", "allOf"):
                pending.extend(here[keyword] if is_array(here.get(keyword)) else ())
            if isinstance(here.get("$ref"), str):
                pending.append(target_of(here["$ref"], root))
            yield here


def property_of(schema: Any, key: str, root: Json) -> Any:
    """Return the schema of a property; None if it is not declared."""
    others: Any = None
    for here in _parts(schema, root):
        properties = here.get("properties")
        others = here.get("additionalProperties")
        if is_object(properties) and key in properties:
            return properties[key]
    return others if is_object(others) else None


def value_of(raw: str, schema: Any, root: Json) -> Any:
    """Return the value that a raw text is by its schema; the text itself where it is none."""
    types = types_of(schema, root)
    word = raw.strip()
    if types == {"string"}:
        return raw
    if _is_constant(word.lower(), types):
        return _CONSTANTS[word.lower()]
    pattern = _JSON_NUMBER if "string" in types else _DIGITS  # where it may be text, +33 and 1_000 are
    is_number = types & {"integer", "number"} and len(word) <= _MOST_DIGITS and pattern.fullmatch(word)
    number = _number(word) if is_number else None
    if number is not None and number - number == 0 and ("number" in types or number == int(number)):
        return number if "number" in types else int(number)
    kinds: tuple[type, ...] = tuple(kind for kind in (list, dict) if not types or _KINDS[kind] in types)
    if not kinds or word[:1] not in ("[", "{"):
        return raw
    end = len(word)
    try:
        value: Any = decode(word)
    except ValueError:
        try:
            value, end = literal_at(word, 0)
        except ValueError:
            return raw
    return value if end == len(word) and isinstance(value, kinds) else raw


def written(key: str, value: Any, schema: Json, marks: Iterable[str]) -> str | None:
    """Return an argument as text that `value_of` reads back as the same value; None if there is none."""
    text = value if isinstance(value, str) else compact(value)
    if any(mark in text for mark in marks) or not re.fullmatch(r"[\w.-]{1,100}", key):
        return None
    back = value_of(text, property_of(schema, key, schema), schema)
    return text if type(back) is type(value) and compact(back) == compact(value) else None


def _is_constant(word: str, types: set[str]) -> bool:
    """Return whether a word is a constant for a value of these types, and not text."""
    if word in ("true", "false"):
        return "boolean" in types
    if word == "null":
        return "null" in types or (bool(types) and "string" not in types)
    return word == "none" and "null" in types and "string" not in types
