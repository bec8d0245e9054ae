"""Find where a text that is still being written may turn out to be a call, a thinking or other markup.

What stands before this place is said to the user, whatever follows.
"""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

import re
from collections.abc import Callable, Collection

import jiter

from sigadapt.text.openers import WORDS, Grammar, opened

_LONGEST = 64
"""No opener is longer, up to the first character that settles it."""
_FIELD = re.compile(r'\[\[ ## |\{\s*"([^"\\]*)"|</?(\w+)>')
_HALF_FIELD = re.compile(r'\[(?:\[(?: (?:#(?:# ?)?)?)?)?\Z|\{\s*(?:"[^"\\]*)?\Z')
_PROSE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[,.!?:;]?\s+[^\s(\[{<]|[^\x00-\x7f]")
_ONLY_CLOSED = re.compile(r"</think(?:ing)?>\s*\Z")


def unsettled(grammar: Grammar, text: str, place: int, *, fields: Collection[str] = ()) -> int:
    """Return the first place behind which a text may be markup; the text's length if there is none."""
    return _first_held(grammar, text, place, lambda at: _behind(grammar, text, at, fields))


def next_opener(grammar: Grammar, text: str, place: int) -> int:
    """Return the first place behind which an opener of a call stands, or may come to stand."""
    # What stands before it may be thinking, a token that says nothing, or code, which a reading tells.
    return _first_held(grammar, text, place, lambda at: _behind_no_call(grammar, text, at))


def _first_held(grammar: Grammar, text: str, place: int, behind: Callable[[int], int | None]) -> int:
    """Return the first place where a token may begin and `behind` does not say where to go on."""
    while True:
        first = grammar.first.search(text, place)
        if first is None:
            return len(text) - _half_a_word(text)
        following = behind(first.start())
        if following is None:
            return first.start()
        place = following


def begins_as_text(text: str) -> bool:
    """Return whether a text begins as no call without markup does."""
    # Such a call begins with the name of a tool or a bracket; the end of a thinking may stand before it.
    begun = text.lstrip()
    if _ONLY_CLOSED.match(begun) or (begun[:1] in ("[", "{") and not _FIELD.match(begun)):
        return False
    return not (begun[:1].isalpha() or begun[:1] == "_") or _PROSE.match(begun) is not None


def is_half_json(text: str) -> bool:
    """Return whether a text is JSON so far, but not whole."""
    if not text.startswith(("{", "[")):
        return False
    content = text.encode("utf-8", "replace")
    try:
        jiter.from_json(content, partial_mode=True)
    except ValueError:
        return False
    try:
        jiter.from_json(content)
    except ValueError:
        return True
    return False


def _behind(grammar: Grammar, text: str, at: int, fields: Collection[str]) -> int | None:
    """Return the place behind what is no markup; None if it is or may become some."""
    field = _FIELD.match(text, at)
    if field is not None and (field[0] == "[[ ## " or (field[1] or field[2]) in fields):
        # A tag such as `<answer>` may stand around a call, too, which takes it away.
        inside = text[field.end() :].lstrip()[:1] if field[0] in grammar.before else "text"
        return None if inside in ("", "<", "[", "{") else field.end()
    if _HALF_FIELD.match(text, at):
        return None
    token = grammar.tokens[text[at]].match(text, at)
    if token is None:
        return at + 1 if _is_settled(grammar, text, at) else None
    if token.lastgroup == "code" or (token.lastgroup == "quote" and token.end() < len(text)):
        return token.end()
    return None


def _behind_no_call(grammar: Grammar, text: str, at: int) -> int | None:
    """Return the place behind what opens no call; None if it does or may come to."""
    token = grammar.tokens[text[at]].match(text, at)
    if token is None:
        return at + 1 if _is_settled(grammar, text, at) else None
    return None if opened(token) is not None else max(token.end(), at + 1)


def _is_settled(grammar: Grammar, text: str, at: int) -> bool:
    """Return whether what begins at a place can neither become an opener nor stand around a call."""
    if text[at] == "`":
        return "\n" in text[at:]  # the rest of the line may be code
    seen = text[at : at + _LONGEST]
    if seen.startswith(("<|", "<｜")) or any(seen[: len(tag)] == tag[: len(seen)] for tag in grammar.before):
        return False
    return len(seen) == _LONGEST or seen[1:2] in _NEVER or not _ENDS.isdisjoint(seen[1:])


_ENDS = frozenset("\n>]")
_NEVER = frozenset(" 0123456789=-(")


def _half_a_word(text: str) -> int:
    """Return how much of a text's end may begin one of the openers that are words."""
    end = text[-max(map(len, WORDS)) :]
    sizes = (size for word in WORDS for size in range(1, len(word)) if end.endswith(word[:size]))
    return max(sizes, default=0)
