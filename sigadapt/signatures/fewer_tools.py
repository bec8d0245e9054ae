"""Fewer tools for the model to read: those that a search finds for a request, or that a model asks for.

What is found for a request keeps the order of its declaration, so that the same tools are the same bytes to a
provider's cache. Tools that the conversation has called stay, because their calls are sent again, and a model
may call them again. So do tools that a provider runs itself.

The index that such a search looks words up in is BM25 over names, descriptions and parameters. Its terms are
those of Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009). A name counts twice, because
queries of models repeat its words.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import pydantic

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import (
    Json,
    closest,
    cut,
    is_array,
    is_iterable,
    is_mapping,
    is_object,
    is_sequence,
)
from sigadapt.signatures.server_tools import NativeTool
from sigadapt.signatures.tool_decl import ToolDecl, ToolSearch, deferred
from sigadapt.signatures.tool_decls import ToolDecls

Entries: TypeAlias = list[ToolDecl | NativeTool]
_LISTS = ("rounds", "messages", "tool_calls", "invalid")


class Retrieval(NamedTuple):
    """A change of a toolset to the tools that a search finds, and those that always stay.

    Called, it returns what the search returns, which may have to be awaited; `tools_of` gives the tools.
    """

    search: Callable[[Any, ToolDecls], object]

    def __call__(self, context: Any, decls: ToolDecls) -> object:
        """Return what the search returns."""
        return self.search(context, decls)

    def tools_of(self, context: Any, decls: ToolDecls, answer: object) -> Entries:
        """Return the tools that were found, and those that stay."""
        names = {*called_in(context.inputs), *known_names(answer, decls)}
        return [entry for entry in decls.entries if not isinstance(entry, ToolDecl) or entry.name in names]


class Deferral:
    """A change of a toolset: all tools but the `loaded` ones are deferred until a search finds them."""

    def __init__(self, names: AbstractSet[str], search: ToolSearch) -> None:
        self._names = names
        self._search = search
        self._last: tuple[list[Any], ToolDecls] | None = None

    def __call__(self, _: Any, decls: ToolDecls) -> ToolDecls:
        """Return the tools; those of the last time for the same ones, which have their index already."""
        for name in sorted(self._names):
            known_tool(name, decls)
        identities = [
            getattr(entry, "text", entry) for entry in decls.entries
        ]  # one text is of one declaration
        if self._last is None or self._last[0] != identities:
            entries: Entries = []
            for entry in decls.entries:
                if isinstance(entry, ToolDecl) and entry.name not in self._names:
                    entries.append(deferred(entry, self._search))
                else:
                    entries.append(entry)
            self._last = identities, ToolDecls(entries)
        return self._last[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return Deferral, (self._names, self._search)


def known_names(answer: object, decls: ToolDecls) -> list[str]:
    """Return the names of tools that a search returned, or raise the error that says what it returned."""
    names: list[Any] = [answer]
    # A text is iterable too, and its letters would be looked up as names.
    if is_iterable(answer) and not isinstance(answer, (str, bytes)) and not is_mapping(answer):
        names = [*answer]
    for name in names:
        if not isinstance(name, str) or name is answer:
            raise InvalidToolDecl(
                f"expected names of tools from the search, got {cut(repr(name))}",
                code="invalid_search",
                fix="Return the names of tools: [decl.name for ...].",
            )
        known_tool(name, decls)
    return list(dict.fromkeys(names))


def known_tool(name: str, decls: ToolDecls) -> ToolDecl:
    """Return the tool of a name."""
    if name in decls:
        return decls[name]
    names = [decl.name for decl in decls]
    near = closest(name, names)
    fix = f"Did you mean {near!r}?" if near else f"Known tools: {cut(', '.join(map(repr, names)) or 'none')}."
    raise InvalidToolDecl("there is no tool with this name", code="unknown_tool", tool=name, fix=fix)


def called_in(value: Any, *, are_calls: bool = False) -> Iterator[str]:
    """Yield the names of the tools that the earlier turns in a value called, also if it is saved as JSON."""
    if isinstance(value, pydantic.BaseModel):
        value = vars(value)
    if is_sequence(value):
        for item in value:
            yield from called_in(item, are_calls=are_calls)
    elif is_mapping(value) and are_calls:
        function = value.get("function")  # in a message of OpenAI's
        name = value.get("name") or (function.get("name") if is_object(function) else None)
        if name:
            yield str(name)
    elif is_mapping(value):
        for key, item in value.items():
            if key in _LISTS or not is_sequence(item):  # other lists may be long, and hold no turns
                # An agent has a field of this name, whose value has the list.
                are_calls = key in ("tool_calls", "invalid") and is_sequence(item)
                yield from called_in(item, are_calls=are_calls)


# k1 and b of BM25
_SATURATION = 1.5
_LENGTH = 0.5
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLURAL = re.compile(r"(?<=..[^s])s\Z")
# Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean are written without spaces: each character is a word.
_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af"


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
    text = _HUMP.sub(" ", text).casefold()
    if not text.isascii():  # one form of each letter, without the marks that no letter holds
        signs = unicodedata.normalize("NFKC", text)
        text = "".join(sign for sign in signs if not unicodedata.category(sign).startswith("M"))
    return [_PLURAL.sub("", word) for word in _word().findall(text)]


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
