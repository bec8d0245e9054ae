"""Mask secrets that come back: in texts and JSON values, in any form in which servers and clients write it.

The cost grows with the text and with the secrets, and not with their product. A form is looked for only in a
text that holds four of its characters. Its pattern has its head alone, and what follows is compared in place:
a pattern of a long key, with each way to escape each of its characters, takes seconds to compile.
"""

import json
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Any

from sigadapt.json_values import is_array, is_object, pointer

MASK = "***"

_HEAD = 6  # units of a form that the pattern has by which its beginning is found
_STRIDE = 512  # characters that are compared at once
_SHORTEST_SAMPLE = 4
_LONGEST_SAMPLE = 8
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_DIGITS = re.compile(r"[\d.eE+-]*\d[\d.eE+-]*")
_NUMBER = re.compile(r"\d")
_PLAIN_RUN = re.compile(rf"[a-zA-Z0-9]{{{_SHORTEST_SAMPLE},}}")
_HEX_OF_PLAIN = "(?:3[0-9]|[46][1-9a-f]|[57][0-9a])"  # letters and digits, and few characters beside them
_ESCAPED_PLAIN = re.compile(
    rf"%(?:25)*{_HEX_OF_PLAIN}|\\u00{_HEX_OF_PLAIN}|#0*(?:[4-9]\d|1[012]\d);|#x0*{_HEX_OF_PLAIN};",
    re.IGNORECASE,
)
"""A letter or a digit that is escaped, which no usual encoder does."""
# A backslash may escape what follows it, so the two are found together.
_UNIT = re.compile(r"\\*[^\\]|\\+", re.DOTALL)
_ESCAPING = {"%": "25", "&": "amp;"}  # which begin their own escaped forms
_MOST_ESCAPES = 4
_NOTHING = re.compile("")
_Span = tuple[int, int]


class _Form:
    """One way to write a secret: units, each with its pattern, and a pattern of what may follow them."""

    def __init__(
        self, units: list[str], pattern_of: Callable[[str], str], tail: re.Pattern[str] = _NOTHING
    ) -> None:
        self._units = units
        self._pattern_of = pattern_of
        self._tail = tail
        self._head: re.Pattern[str] | None = None  # most forms are in no text
        self._runs: list[tuple[bool, list[str]]] = []

    @property
    def sample(self) -> str | None:
        """Characters that a text with this form holds as they are, unless it escapes letters or digits."""
        runs = _PLAIN_RUN.findall("".join(self._units))
        return max(runs, key=len)[:_LONGEST_SAMPLE].lower() if runs else None

    def find(self, text: str, start: int) -> _Span | None:
        """Return where the form first begins in a text, from a position on, and where it ends."""
        head = self._head or self._compile()
        while match := head.search(text, start):
            end = self._end(text, match.start())
            if end is not None:
                return match.start(), end
            start = match.start() + 1
        return None

    def _compile(self) -> re.Pattern[str]:
        """Return the pattern of the head, and set the runs of units that are compared after it."""
        for is_plain, run in groupby(self._units, _is_plain):
            units = [*run]
            if is_plain:
                units = ["".join(units)]
            self._runs.append((is_plain, units))
        self._head = re.compile("".join(map(self._pattern_of, self._units[:_HEAD])))
        return self._head

    def _end(self, text: str, start: int) -> int | None:
        """Return where the form that begins at a position ends; None if it does not go on to its end."""
        ends = {start}
        for is_plain, run in self._runs:
            ends_of = self._plain_ends if is_plain else self._unit_ends
            for unit in run:
                ends = {end for unit_start in ends for end in ends_of(unit, text, unit_start)}
            if not ends:
                return None
        tail = self._tail.match(text, max(ends))
        return tail and tail.end()

    def _plain_ends(self, literal: str, text: str, start: int) -> Iterator[int]:
        """Yield where characters end that are written as they are, or each in another way."""
        number = 0
        cursor = start
        while number < len(literal):
            length = _common_length(literal[number : number + _STRIDE], text, cursor)
            number += length
            cursor += length
            if length == _STRIDE or number == len(literal):
                continue
            escape_form = re.compile(self._pattern_of(literal[number])).match(text, cursor)
            if escape_form is None:
                return
            number += 1
            cursor = escape_form.end()
        yield cursor

    def _unit_ends(self, unit: str, text: str, start: int) -> Iterator[int]:
        """Yield where a unit may end whose escaped form begins as the unit itself."""
        match = re.compile(self._pattern_of(unit)).match(text, start)
        if match is None:
            return
        end = match.end()
        yield end
        escaping = _ESCAPING.get(unit[-1])
        for _ in range(_MOST_ESCAPES):  # `%252525` and `&amp;amp;`, as far as the secret does not hold it
            if escaping is None or not text.startswith(escaping, end):
                return
            end += len(escaping)
            yield end


def _is_plain(unit: str) -> bool:
    """Return whether no escaped form of a unit begins as the unit itself."""
    return len(unit) == 1 and unit not in _ESCAPING and unit != "\\"


def _common_length(literal: str, text: str, start: int) -> int:
    """Return how many characters of a literal are in a text at a position."""
    if text.startswith(literal, start):
        return len(literal)
    shortest = 0
    longest = len(literal)
    while longest - shortest > 1:  # the first `shortest` are the same, the first `longest` are not
        middle = (shortest + longest) // 2
        if text.startswith(literal[:middle], start):
            shortest = middle
        else:
            longest = middle
    return shortest


class Echoes:
    """Masks secrets in texts and JSON values."""

    def __init__(self, secrets: Iterable[str]) -> None:
        longest_first = sorted(secrets, key=len, reverse=True)
        self._forms = [form for secret in longest_first for form in _forms_of(secret)]
        self._numbers: dict[str | None, list[int]] = defaultdict(list)
        for number, form in enumerate(self._forms):
            self._numbers[form.sample].append(number)

    def spans(self, text: str) -> Iterator[_Span]:
        """Yield where secrets begin and end in a text."""
        forms = self._candidates(text)
        spans = [form.find(text, 0) for form in forms]
        while found_spans := [span for span in spans if span is not None]:
            first = min(found_spans, key=lambda span: span[0])  # of several, that of the longest secret
            yield first
            end = first[1]
            for number, span in enumerate(spans):
                if span is not None and span[0] < end:
                    spans[number] = forms[number].find(text, end)

    def _candidates(self, text: str) -> list[_Form]:
        """Return the forms that a text may hold, in order."""
        if not self._forms or _ESCAPED_PLAIN.search(text):
            return self._forms
        lower = text.lower()
        if len(self._numbers) < len(text):
            samples = {sample for sample in self._numbers if sample is not None and sample in lower}
        else:
            samples = self._numbers.keys() & _pieces_of(lower)
        numbers = [number for sample in (None, *samples) for number in self._numbers.get(sample, ())]
        return [self._forms[number] for number in sorted(numbers)]

    def without_secrets(self, text: str) -> str:
        """Return a text without secrets."""
        pieces: list[str] = []
        cursor = 0
        for start, end in self.spans(text):
            pieces += [text[cursor:start], mask_of(text[start:end])]
            cursor = end
        return "".join([*pieces, text[cursor:]]) if pieces else text

    def hidden_in(self, value: Any, path: tuple[str, ...], masked_paths: dict[str, None]) -> Any:
        """Return a JSON value without secrets, and note where they were."""
        if is_object(value):
            members = {self.without_secrets(key): (key, member) for key, member in value.items()}
            if members.keys() != value.keys():
                masked_paths[pointer(path)] = None
            for name, (key, member) in members.items():
                members[name] = self.hidden_in(member, (*path, key), masked_paths)
            return members
        if is_array(value):
            return [self.hidden_in(item, (*path, str(n)), masked_paths) for n, item in enumerate(value)]
        if value is None or isinstance(value, bool):
            return value
        text = value if isinstance(value, str) else json.dumps(value)
        masked = self.without_secrets(text)
        if masked == text:
            return value
        masked_paths[pointer(path)] = None
        return masked if isinstance(value, str) else json.loads(masked)


def _pieces_of(text: str) -> Iterator[str]:
    """Yield each piece of a text that is as long as a sample."""
    for length in range(_SHORTEST_SAMPLE, _LONGEST_SAMPLE + 1):
        for start in range(len(text)):
            yield text[start : start + length]


def _forms_of(secret: str) -> Iterator[_Form]:
    """Yield a secret as text, JSON, HTML, an address, base64 and hexadecimal digits write it."""
    octets = octets_of(secret)
    yield _Form(_UNIT.findall(secret), _unit_pattern)
    yield _Form([*octets.hex()], _hexadecimal)
    # It may follow other octets, as a password follows a name.
    for shift, unknown in enumerate((0, 2, 3)):
        digits = b64encode(bytes(shift) + octets).decode()
        certain = digits[unknown:].rstrip("=")
        if digits.endswith("="):  # the last character holds a part of what follows
            certain = certain[:-1]
        yield _Form([*certain], _base64, _BASE64_TAIL)


def mask_of(secret: str) -> str:
    """Return what is written in the place of a secret. Of digits, each is a 9: JSON wherever a number is."""
    return _NUMBER.sub("9", secret) if _DIGITS.fullmatch(secret) else MASK


def octets_of(text: str) -> bytes:
    """Return a text in UTF-8. A header may be none, and a body may hold half of a surrogate pair."""
    errors = "surrogatepass" if _HALF.search(text) else "surrogateescape"
    return text.encode("utf-8", errors)


def _unit_pattern(unit: str) -> str:
    """Return a pattern of a character with the backslashes before it, escaped or not."""
    count = len(unit) - len(unit.lstrip("\\"))
    backslashes = _character_pattern("\\", count) if count else ""
    return backslashes + "".join(map(_character_pattern, unit[count:]))


def _character_pattern(char: str, count: int = 1) -> str:
    """Return a pattern of a character as itself, or as JSON, HTML and addresses escape it, also twice."""
    if char == "\\":
        plain = rf"\\{{{count},{9 * count}}}"
    elif char in "\"'/":
        plain = rf"\\{{0,8}}{re.escape(char)}"
    else:
        plain = re.escape(char)
    return f"(?:{plain}|{_escape_pattern(char, count)})"


def _escape_pattern(char: str, count: int = 1) -> str:
    """Return a pattern of a character as JSON, HTML and addresses escape it."""
    octets = octets_of(char)
    units = char.encode("utf-16-be", "surrogatepass").hex()
    forms = [
        "".join(f"%(?:25){{0,3}}{octet:02x}" for octet in octets),
        "".join(rf"\\{{1,8}}u{units[start : start + 4]}" for start in range(0, len(units), 4)),
        f"&(?:amp;){{0,3}}#(?:0{{0,5}}{ord(char)}|x0{{0,5}}{ord(char):x});",
    ]
    if char == " ":  # in a form
        forms.append(r"\+")
    if (entity := escape(char)) != char:
        forms.append(f"&(?:amp;){{0,3}}{entity[1:]}")
    if count > 1:
        forms = [f"(?:{form}){{{count}}}" for form in forms]
    return f"(?i:{'|'.join(forms)})"


def _hexadecimal(digit: str) -> str:
    return f"(?i:{digit})"


def _base64(char: str) -> str:
    return _BASE64.get(char) or char


_BASE64 = {"+": f"(?:{_character_pattern('+')}|-)", "/": f"(?:{_character_pattern('/')}|_)"}
_BASE64_TAIL = re.compile(r"[\w+/-]?(?:=|%3[dD]|\\{1,8}u003[dD]){0,2}")
