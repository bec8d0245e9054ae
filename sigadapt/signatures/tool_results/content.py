"""Content: what a result holds beside text and JSON (images, files, audio), in order and as plain data.

| part | keys beside `type` |
|---|---|
| `text` | `text` |
| `json` | `value` |
| `image`, `audio`, `file` | one of `data` (base64, with `mime_type`), `url`, `file_id`; maybe `name` |
| `block` | `value`, a content block in the provider's own words, which the program asked for |

`[image 1]` or `[file 1: a.pdf]` in a text or in JSON names the first of these parts, whatever its type.

DSPy's own types and those of MCP and LangChain are read in `tool_output.py`.
"""

from collections.abc import Iterator
from typing import Any

import orjson
from dspy.adapters import utils
from dspy.adapters.types.base_type import Type

from sigadapt.dspy_boundary.contract import with_file_names
from sigadapt.json_values import compact, is_object, is_sequence
from sigadapt.signatures.tool_results.tool_output import (
    MEDIA,
    START,
    Part,
    output_of,
    parts_in_mark,
    parts_of_block,
    saved_parts,
)

PLAIN = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS

PLACED = MEDIA | {"block"}
"""The parts that a text only names."""

_MARK = START.encode()
_SOURCES = ("data", "url", "file_id")


def content_of(value: Any) -> list[Part] | None:
    """Return the content of a tool's value; None if the value is only text or JSON."""
    # Images, files and audio are DSPy's types (also as DSPy saves them, as marked text), content blocks of
    # the MCP SDK, and the results of MCP and LangChain. They may stand alone, in a list with texts, or
    # anywhere inside a value.
    if type(value) is str:
        return saved_parts(value) if value.startswith(START) else None
    try:
        if _MARK not in orjson.dumps(value, option=PLAIN):
            return None
    except TypeError:
        pass  # not plain JSON: it may hold anything
    output = output_of(value)
    content = _parts(value) if output is None else output.parts
    return content if any(map(_is_media, content)) else None


def as_content(value: Any) -> list[Part]:
    """Return a value without images, files and audio as content."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [] if value is None else [{"type": "json", "value": utils.serialize_for_json(value)}]


def is_content(value: Any) -> bool:
    """Return whether a value has the form of content, for values that were saved."""
    return is_sequence(value) and all(map(_is_part, value))


def refers(value: Any) -> bool:
    """Return whether content holds more than data: an address, the id of a file, a provider's block."""
    return is_content(value) and any(_is_media(part) and "data" not in part for part in value)


def text_of(content: list[Part]) -> str:
    """Return content as text, with each image, file or audio named in its place."""
    return "\n".join(_texts(content, 1))


def _texts(content: list[Part], number: int) -> Iterator[str]:
    for part in content:
        if _is_media(part):
            yield name_of(part, number)
            number += 1
        else:
            yield part["text"] if part["type"] == "text" else compact(part["value"])


def json_of(content: list[Part]) -> Any:
    """Return content as one JSON value: the JSON in it, else its text, else the names of what it holds."""
    plain_parts = [part for part in content if not _is_media(part)]
    keys = {"json": "value", "text": "text"}
    values: list[Any] = [part[keys[part["type"]]] for part in plain_parts]
    if not values:
        return text_of(content)
    if all(isinstance(value, str) for value in values):
        return "\n".join(values)
    return values[0] if len(values) == 1 else values


def name_of(part: Part, number: int) -> str:
    """Return how content names one of its images, files or audio, of which this is the `number`th."""
    name = f": {part['name']}" if part.get("name") else ""
    return f"[{part['type']} {number}{name}]"


def _is_media(part: Part) -> bool:
    return part["type"] in PLACED


def _is_part(value: Any) -> bool:
    if not is_object(value):
        return False
    kind = value.get("type")
    if kind == "text":
        return isinstance(value.get("text"), str)
    if kind == "json":
        return "value" in value
    if kind == "block":
        return is_object(value.get("value"))
    if kind not in MEDIA or not all(isinstance(field, str) for field in value.values()):
        return False
    sources = [key for key in _SOURCES if key in value]
    return len(sources) == 1 and ("mime_type" in value or sources != ["data"])


def _parts(value: Any) -> list[Part]:
    """Return a value as content: a list with media item by item, any other as JSON and the media in it."""
    items: list[Any] = [*value] if is_sequence(value) else [value]
    media_by_item = [_find_parts(item) for item in items]
    if not any(media_by_item):
        items = [value]
        media_by_item = [None]
    content: list[Part] = []
    for item, item_parts in zip(items, media_by_item, strict=True):
        if item_parts is not None:
            content += item_parts
        elif isinstance(item, str):
            content.append({"type": "text", "text": item})
        else:
            media: list[Part] = []
            json_value = _with_names(item, media, sum(map(_is_media, content)))
            content += [{"type": "json", "value": json_value}, *media]
    return content


def _find_parts(item: Any) -> list[Part] | None:
    """Return the parts that an item is by itself; None if it is a text or JSON, whatever it holds."""
    if isinstance(item, str):
        return saved_parts(item)
    if isinstance(item, Type):
        text = utils.serialize_for_json(with_file_names(item))
        return parts_in_mark(text) if isinstance(text, str) else None
    output = output_of(item)
    return parts_of_block(item) if output is None else output.parts


def _with_names(item: Any, media: list[Part], first_number: int) -> Any:
    """Return a value as JSON with the name of each image, file or audio in its place, and fill `media`."""

    def with_names(value: Any) -> Any:
        content = _find_parts(value)
        if content is not None:
            text = " ".join(_texts(content, first_number + len(media) + 1))
            media.extend(filter(_is_media, content))
            return text
        if type(value) in (list, tuple):
            return [with_names(item) for item in value]
        if is_object(value) and type(value) is dict:
            return {key: with_names(member) for key, member in value.items()}
        return value

    try:
        item = with_names(with_file_names(item))
    except RecursionError:  # deeper than any JSON, or a circle; DSPy makes a text of it
        media.clear()
    return with_names(utils.serialize_for_json(item))
