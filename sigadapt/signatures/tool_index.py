"""The index of a tool set that a search looks words up in: BM25 over names, descriptions and parameters.

The terms of BM25 are those of Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009). A name
counts twice, because queries of models repeat its words.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from sigadapt.schemas.json_values import Json, is_array, is_object

# k1 and b of BM25
_SATURATION = 1.5
_LENGTH = 0.5
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_EAST = "\u2e80-\u9fff\uac00-\ud7af"  # written without spaces: each character is a word
_WORD = re.compile(rf"[{_EAST}]|[^\W\d_{_EAST}]+|\d+")


class ToolIndex:
    """The words of tools, each given as a dict of name, description and parameters."""

    def __init__(self, tools: Iterable[Json]) -> None:
        texts = {tool["name"]: Counter(words(" ".join(_texts(tool)))) for tool in tools}
        self._names = list(texts)
        self._weights: defaultdict[str, dict[int, float]] = defaultdict(dict)
        holders = Counter(word for counts in texts.values() for word in counts)
        average = sum(counts.total() for counts in texts.values()) / max(len(texts), 1)
        for place, counts in enumerate(texts.values()):
            length = _SATURATION * (1 - _LENGTH + _LENGTH * counts.total() / average) if average else 0
            for word, count in counts.items():
                rarity = math.log(1 + (len(texts) - holders[word] + 0.5) / (holders[word] + 0.5))
                self._weights[word][place] = rarity * count * (_SATURATION + 1) / (count + length)

    def best(self, query: str, most: int) -> list[str]:
        """Return the names of the tools that fit a query best, the best first."""
        scores: Counter[int] = Counter()
        for word in dict.fromkeys(words(query)):
            scores.update(self._weights.get(word, {}))
        return [self._names[place] for place, _ in sorted(scores.items(), key=lambda s: (-s[1], s[0]))[:most]]


def words(text: str) -> list[str]:
    """Return the words of a text or a name in lower case, without the s of a plural."""
    matches = (word.lower() for word in _WORD.findall(_HUMP.sub(" ", text)))
    return [word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word for word in matches]


def _texts(tool: Json) -> Iterator[str]:
    yield from (tool["name"], tool["name"], tool.get("description") or "")
    pending: list[Any] = [tool.get("parameters")]
    while pending:
        part = pending.pop()
        if is_object(part):
            pending += part.values()
            yield from part["properties"] if is_object(part.get("properties")) else ()
            texts: list[Any] = [
                part.get("description"),
                *(part["enum"] if is_array(part.get("enum")) else ()),
            ]
            yield from (text for text in texts if isinstance(text, str))
        elif is_array(part):
            pending += part
