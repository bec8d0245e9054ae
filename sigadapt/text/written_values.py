"""Values that a model wrote as text: Python literals, and untyped text that a schema types.

Nothing is evaluated (nothing is executed): `literal_at` is a parser of its own, bounded in depth (bounded).
`value_of` turns the raw text of a parameter into a value of the type that the schema declares:

 a. null, true and false count in any case, numbers and JSON as JSON writes them; arrays and objects may also
    be Python literals.
 b. Where several types are declared, the first of null, boolean, integer, number, array, object that the text
    is counts, and string last.
 c. Text that is none of the declared types stays text, for validation to refuse. Nothing is guessed.
 d. Without a declared type, an array or an object is read and everything else stays text.
 e. Where a format says whether a value is text, this counts unless the declared types contradict it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from sigadapt.json_values import Json, compact, decode, is_array, is_object, object_of
from sigadapt.schemas.subschemas import target_of

_LEVELS = 100
_MOST_DIGITS = 4_000
_SCHEMAS = 200  # how many schemas are looked at for the types of one value
_SPACE = re.compile(r"\s*")
# Python's numbers; JSON's; and what servers take for one where a value can be no text, as 007.
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])")
_DIGITS = re.compile(r"[+-]?(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# Python's escapes, and JSON's: it writes characters beyond 16 bits as two.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}"
    r"|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4}|N\{[^{}\n]{0,100}\}?|0[0-7]{0,2}|[\\'\"ntrbf\n])"
)
_WORD = re.compile(r"(?:[Tt]rue|[Ff]alse|None|null)\b")
_CONSTANTS = {"true": True, "false": False, "none": None, "null": None}
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_NO_TEXT = {"null", "boolean", "number", "array", "object"}
# In Python a closing quote is followed by one of these. A quote before anything else is part of the text:
# models write shell commands with quotes inside and do not escape them.
_AFTER_STRING = re.compile(r"\s*(?:[,)\]}:]|\Z)")
_EXPRESSION = re.compile(r"\s*(?:[+%*]|\.\w+\()|\s+['\"]")
_PLAIN_RUN = {quote: re.compile(rf"(?s)[^\\{quote[0]}]+") for quote in ("'", '"')}


class NoLiteral(ValueError):
    """A text that is no literal, and the position up to which it was looked at."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.position = position


def literal_at(text: str, start: int, level: int = 0, *, is_strict: bool = False) -> tuple[Any, int]:
    """Return the Python literal at a position, and where it ends; ValueError if there is none."""
    # Tuples and sets become lists, and keys of dicts strings, since arguments are JSON. The constants of JSON
    # count too. Unless `is_strict`, a string ends at the first quote after which Python could go on: models
    # forget to escape the quotes in it.
    start = space(text, start)
    if level > _LEVELS:
        raise NoLiteral("nested too deep", start)
    char = text[start : start + 1]
    if char in ("'", '"') and char:
        return _string(text, start, is_strict=is_strict)
    if closer := _CLOSERS.get(char):
        return _bracket_content(text, start + 1, closer, level + 1, is_strict=is_strict)
    number = _NUMBER.match(text, start)
    if number is not None:
        return _number(number[0]), number.end()
    word = _WORD.match(text, start)
    if word is None:
        raise NoLiteral("not a literal", start)
    return _CONSTANTS[word[0].lower()], word.end()


def space(text: str, start: int) -> int:
    """Return where the white space from a position on ends."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _number(digits: str) -> Any:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("too many digits")
    plain = digits.replace("_", "")
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def _string(text: str, start: int, *, is_strict: bool) -> tuple[str, int]:
    quote = text[start]
    if text.startswith(quote * 3, start):
        end = text.find(quote * 3, start + 3)
        if end < 0:
            raise NoLiteral("unterminated", len(text))
        return text[start + 3 : end], end + 3
    pieces = list[str]()
    cursor = start + 1
    plain = _PLAIN_RUN[quote]
    while cursor < len(text):
        run = plain.match(text, cursor)
        if run is not None:
            pieces.append(run[0])
            cursor = run.end()
        elif text[cursor] == "\\":
            character, cursor = _escape(text, cursor)
            pieces.append(character)
        elif is_strict or _AFTER_STRING.match(text, cursor + 1):
            return "".join(pieces), cursor + 1
        elif _EXPRESSION.match(text, cursor + 1):
            raise NoLiteral("an expression", cursor)
        else:
            pieces.append(quote)
            cursor += 1
    raise NoLiteral("unterminated", len(text))


def _escape(text: str, start: int) -> tuple[str, int]:
    """Return the character that an escape writes, and where the escape ends."""
    escape = _ESCAPE.match(text, start)
    if escape is None:  # none of Python's: the backslash stays, but for JSON's `\\/`
        return text[start : start + 2].replace("\\/", "/"), start + 2
    try:
        characters = escape[0].encode().decode("unicode_escape")
    except UnicodeError:
        raise NoLiteral("no character has this name", start) from None
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"), escape.end()


def _bracket_content(text: str, start: int, closer: str, level: int, *, is_strict: bool) -> tuple[Any, int]:
    """Read what brackets hold: an object, or a list of what is no pair of a key and a value."""
    items = list[Any]()
    pairs = list[tuple[str, Any]]()
    cursor = space(text, start)
    while not text.startswith(closer, cursor):
        item, cursor = literal_at(text, cursor, level, is_strict=is_strict)
        cursor = space(text, cursor)
        may_be_key = closer == "}" and not items
        if not may_be_key or not (pairs or text.startswith(":", cursor)):
            items.append(item)
        elif isinstance(item, (list, dict)) or not text.startswith(":", cursor):
            raise NoLiteral("not a key", cursor)
        else:
            key = item if isinstance(item, str) else json.dumps(item)
            value, cursor = literal_at(text, cursor + 1, level, is_strict=is_strict)
            pairs.append((key, value))
            cursor = space(text, cursor)
        if text.startswith(",", cursor):
            cursor = space(text, cursor + 1)
        elif not text.startswith(closer, cursor):
            raise NoLiteral("expected a comma", cursor)
    if items or closer != "}":
        return items, cursor + 1
    return object_of(pairs), cursor + 1


def types_of(schema: Any, root: Json) -> set[str]:
    """Return the JSON types that a schema allows, as far as it names them; an empty set for any type."""
    types = set[str]()
    for subschema in _subschemas(schema, root):
        declared = subschema.get("type")
        names = declared if is_array(declared) else [declared]
        types.update(name for name in names if isinstance(name, str))
        if subschema.get("nullable") is True:
            types.add("null")
        if "type" not in subschema:
            types.update(_types_of_constants(subschema))
    return types


def _types_of_constants(subschema: Json) -> Iterator[str]:
    """Yield the types of what a schema without a type enumerates."""
    if not isinstance(subschema.get("enum", subschema.get("const")), (list, str)):
        return
    constants: Any = subschema.get("enum", [subschema.get("const")])
    for constant in constants:
        yield _TYPE_NAMES.get(type(constant), "null")


_TYPE_NAMES: dict[Any, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _subschemas(schema: Any, root: Json) -> Iterator[Json]:
    """Yield a schema and those that it combines or refers to."""
    pending = [schema]
    for _ in range(_SCHEMAS):
        subschema = pending.pop() if pending else None
        if not is_object(subschema):
            continue
        for keyword in ("anyOf", "oneOf", "allOf"):
            branches = subschema.get(keyword)
            if is_array(branches):
                pending.extend(branches)
        if isinstance(subschema.get("$ref"), str):
            pending.append(target_of(subschema["$ref"], root))
        yield subschema


def property_of(schema: Any, key: str, root: Json) -> Any:
    """Return the schema of a property; None if it is not declared."""
    additional: Any = None
    for subschema in _subschemas(schema, root):
        properties = subschema.get("properties")
        additional = subschema.get("additionalProperties")
        if is_object(properties) and key in properties:
            return properties[key]
    return additional if is_object(additional) else None


def value_of(raw: str, schema: Any, root: Json, *, is_text: bool | None = None) -> Any:
    """Return the value that a raw text is by its schema and its format; the text itself where it is none."""
    types = types_of(schema, root)
    if types == {"string"} or (is_text and (not types or "string" in types)):
        return raw
    if is_text is False:
        types = types or _NO_TEXT
    word = raw.strip()
    if _is_constant(word.lower(), types):
        return _CONSTANTS[word.lower()]
    number = _number_of(word, types)
    if number is not None:
        return number
    return _collection_of(raw, word, types)


def _number_of(word: str, types: set[str]) -> int | float | None:
    """Return the number that a word is where these types allow one."""
    if len(word) > _MOST_DIGITS or types.isdisjoint(("integer", "number")):
        return None
    pattern = _JSON_NUMBER if "string" in types else _DIGITS  # where it may be text, +33 and 1_000 are
    if not pattern.fullmatch(word):
        return None
    number = _number(word)
    is_finite = number - number == 0
    if not is_finite:
        return None
    if "number" in types:
        return number
    return int(number) if number == int(number) else None


def _collection_of(raw: str, word: str, types: set[str]) -> Any:
    """Return the array or object that a word is where these types allow it; else the raw text."""
    kinds: tuple[type, ...] = tuple(kind for kind in (list, dict) if not types or _TYPE_NAMES[kind] in types)
    if not kinds or word[:1] not in ("[", "{"):
        return raw
    try:
        value: Any = decode(word)
    except ValueError:
        try:
            value, end = literal_at(word, 0)
        except ValueError:
            return raw
        if end != len(word):
            return raw
    return value if isinstance(value, kinds) else raw


def text_of_value(key: str, value: Any, schema: Json, marks: Iterable[str]) -> str | None:
    """Return an argument as text that `value_of` reads back as the same value; None if there is none."""
    text = value if isinstance(value, str) else compact(value)
    if any(mark in text for mark in marks) or not re.fullmatch(r"[\w.-]{1,100}", key):
        return None
    read_back = value_of(text, property_of(schema, key, schema), schema)
    is_same = type(read_back) is type(value) and compact(read_back) == compact(value)
    return text if is_same else None


def _is_constant(word: str, types: set[str]) -> bool:
    """Return whether a word is a constant for a value of these types, and not text."""
    if word in ("true", "false"):
        return "boolean" in types
    if word == "null":
        return "null" in types or (bool(types) and "string" not in types)
    return word == "none" and "null" in types and "string" not in types
