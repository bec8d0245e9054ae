"""The index of a tool set that a search looks words up in: BM25 over names, descriptions and parameters.

The terms of BM25 are those of Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009). A name
counts twice, because queries of models repeat its words.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sigadapt.schemas.json_values import Json, is_array, is_object

# k1 and b of BM25
_SATURATION = 1.5
_LENGTH = 0.5
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLURAL = re.compile(r"(?<=..[^s])s\Z")
_EAST = "\u2e80-\u9fff\uac00-\ud7af"  # written without spaces: each character is a word


class ToolIndex:
    """The words of tools, each given as a dict of name, description and parameters."""

    def __init__(self, tools: Iterable[Json]) -> None:
        texts = {tool["name"]: Counter(words(" ".join(_texts(tool)))) for tool in tools}
        self._names = list(texts)
        self._weights: defaultdict[str, dict[int, float]] = defaultdict(dict)
        holders = Counter(word for counts in texts.values() for word in counts)
        average = sum(counts.total() for counts in texts.values()) / max(len(texts), 1)
        for number, counts in enumerate(texts.values()):
            length = _SATURATION * (1 - _LENGTH + _LENGTH * counts.total() / average) if average else 0
            for word, count in counts.items():
                rarity = math.log(1 + (len(texts) - holders[word] + 0.5) / (holders[word] + 0.5))
                self._weights[word][number] = rarity * count * (_SATURATION + 1) / (count + length)

    def best(self, query: str, most: int) -> list[str]:
        """Return the names of the tools that fit a query best, the best first."""
        scores: Counter[int] = Counter()
        for word in dict.fromkeys(words(query)):
            scores.update(self._weights.get(word, {}))
        ranking = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [self._names[number] for number, _ in ranking[:most]]


def words(text: str) -> list[str]:
    """Return the words of a text or a name in lower case, without the s of a plural."""
    matches = (word.lower() for word in _word().findall(_HUMP.sub(" ", text)))
    return [_PLURAL.sub("", word) for word in matches]


@cache
def _word() -> re.Pattern[str]:
    """Compile the pattern of a word on first use: its ranges take longer than the import of ten files."""
    return re.compile(rf"[{_EAST}]|[^\W\d_{_EAST}]+|\d+")


def _texts(tool: Json) -> Iterator[str]:
    yield from (tool["name"], tool["name"], tool.get("description") or "")
    pending: list[Any] = [tool.get("parameters")]
    while pending:
        schema = pending.pop()
        if is_array(schema):
            pending += schema
        elif is_object(schema):
            pending += schema.values()
            yield from _texts_in(schema)


def _texts_in(schema: Json) -> Iterator[str]:
    """Yield the names of a schema's properties, its description and its values."""
    if is_object(schema.get("properties")):
        yield from schema["properties"]
    texts: list[Any] = [schema.get("description")]
    if is_array(schema.get("enum")):
        texts += schema["enum"]
    yield from (text for text in texts if isinstance(text, str))
