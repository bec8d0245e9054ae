"""Compare a request with an earlier one: where a provider's prompt cache ends, and why.

A provider reads a request in this order, whatever the order of the body's keys, and finds in its cache what
begins with the same bytes: tools, instructions, messages.
Source: https://platform.claude.com/docs/en/build-with-claude/prompt-caching#what-can-be-cached
"""

import json
from collections.abc import Iterator
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple

from sigadapt.commands.request_parts import MESSAGES, READING_ORDER, Part, parts_of
from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import Json, compact, is_array, is_object, pointer

_SHOWN = 30  # characters before and after the first one that differs


class Divergence(NamedTuple):
    """Where two requests part, why, and what each has there; `place` is empty if they do not."""

    byte: int
    of: int
    """The bytes of the earlier request's tools, instructions and messages; the first `byte` can be cached."""
    place: str
    why: str
    before: str = ""
    after: str = ""


def divergence(before: Json, after: Json) -> Divergence:
    """Return where a request parts from an earlier one."""
    old, new = [list(parts_of(body, READING_ORDER)) for body in (before, after)]
    sizes = [len(compact(part.value).encode(errors="replace")) for part in old]
    pairs = zip(old, new, strict=False)
    alike = (a.kind == b.kind and compact(a.value) == compact(b.value) for a, b in pairs)
    same = sum(takewhile(bool, alike))
    size = sum(sizes)
    byte = sum(sizes[:same])
    if same == len(old):
        return Divergence(byte, size, "", "This request begins with all of the earlier one.")
    first = old[same]
    if same == len(new) or new[same].kind != first.kind:
        why = f"It has no {first.kind} here, where the earlier request has one."
        return Divergence(byte, size, first.place, why, compact(first.value)[:_SHOWN])
    here = new[same]
    texts = compact(first.value), compact(here.value)
    begin = next(n for n, (a, b) in enumerate(zip_longest(*texts)) if a != b)
    excerpts = (text[max(begin - _SHOWN, 0) : begin + _SHOWN] for text in texts)
    place = here.place + pointer(_way_to_difference(first.value, here.value))
    byte += len(texts[0][:begin].encode())
    return Divergence(byte, size, place, _why(old[same:], new[same:], place), *excerpts)


def earlier_request(text: bytes, model: str) -> Json:
    """Return a request from a file: a body, a line of a recording, or what `sigadapt show --json` printed."""
    try:
        body: Any = json.loads(text.strip().rpartition(b"\n")[2] if b'\n{"wire"' in text else text)
    except ValueError as error:
        raise InvalidOption(f"the earlier request is not JSON: {error}", field="compare") from error
    if is_object(body) and is_array(body.get("requests")):
        body = next((each["body"] for each in body["requests"] if each["model"] == model), None)
    if is_object(body) and is_object(body.get("request")):
        body = body["request"]
    if not is_object(body) or not any(is_array(body.get(key)) for key in MESSAGES):
        fix = "Give a body, a recording, or what `sigadapt show --json` printed."
        raise InvalidOption(f"the file has no earlier request of {model}", field="compare", fix=fix)
    return body


def _way_to_difference(old: Any, new: Any) -> Iterator[str | int]:
    """Yield the keys that lead to the innermost value that differs."""
    if is_object(old) and is_object(new) and list(old) == list(new):
        pairs: Any = ((key, old[key], new[key]) for key in old)
    elif is_array(old) and is_array(new) and len(old) == len(new):
        pairs = zip(range(len(old)), old, new, strict=True)
    else:
        return
    key, a, b = next(each for each in pairs if compact(each[1]) != compact(each[2]))
    yield key
    yield from _way_to_difference(a, b)


def _why(old: list[Part], new: list[Part], place: str) -> str:
    before, after = ([compact(part.value) for part in parts] for parts in (old, new))
    kind = new[0].kind
    was = before[0]
    now = after[0]
    if "/cache_control" in place:
        why = "A cache mark moved, as its provider wants it."
    elif kind == "instructions":
        why = "The instructions differ: keep times, ids and inputs out of them."
    elif kind == "tool" and now in before and was in after:
        why = "The tools are in another order: declare them in the same one."
    elif kind == "tool" and was in after:
        why = "A tool was put before others: add it at the end."
    elif kind == "tool":
        why = "A tool is gone." if now in before else "The declaration of a tool differs."
    elif now in before:
        why = f"The history was cut by {before.index(now)} messages: cut rarely, and by many at once."
    else:
        why = "An earlier message is written in another way: did something change in a saved turn?"
    return why
