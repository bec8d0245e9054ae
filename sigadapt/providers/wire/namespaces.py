"""Namespaces of OpenAI's tool search: a thousand deferred functions as groups of at most ten.

A model of Responses reads the name and the description of a namespace, and of a deferred function that stands
by itself. "We recommend fewer than 10 functions per namespace":
https://developers.openai.com/api/docs/guides/tools-tool-search
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from typing import TypeAlias

from sigadapt.providers.wire.values import name_in
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.tool_index import words

MOST = 10
_LONGEST_LABEL = 48
_Named: TypeAlias = tuple[list[str], str, Json]
"""A tool with its name, and the words of it."""


def is_single(tool: Json) -> bool:
    """Return whether a canonical tool is deferred and in no namespace."""
    return bool(tool.get("defer_loading")) and "namespace" not in tool


def in_namespaces(tools: Sequence[Json]) -> list[Json]:
    """Return canonical tools with the single ones last, in namespaces by the words their names begin with."""
    sent = [tool for tool in tools if not is_single(tool)]
    taken = {*map(name_in, tools), *(tool["namespace"]["name"] for tool in sent if tool.get("namespace"))}
    named = [(words(str(name_in(tool))), str(name_in(tool)), tool) for tool in tools if is_single(tool)]
    for run in _runs(sorted(named, key=lambda each: each[:2]), 0):
        first, last = run[0][0], run[-1][0]
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
        label = "_".join(word for word, _ in pairs) or "_to_".join([*first[:1], *last[:1]])
        label = label[:_LONGEST_LABEL] or "tools"
        numbered = (label, *(f"{label}_{number}" for number in range(2, len(tools) + 3)))
        name = next(each for each in numbered if each not in taken)
        taken.add(name)
        space = {"name": name, "description": f"Functions: {', '.join(own for _, own, _ in run)}."}
        sent += ({**tool, "namespace": space} for _, _, tool in run)
    return sent


def _runs(named: Sequence[_Named], depth: int) -> Iterator[list[_Named]]:
    """Yield the neighbours that become a namespace; those that begin alike stay together if they fit."""
    run: list[_Named] = []
    for word, group in groupby(named, lambda each: each[0][depth : depth + 1]):
        alike = list(group)
        if len(run) + len(alike) > MOST and run:
            yield run
            run = []
        if len(alike) <= MOST:
            run += alike
        elif word:
            yield from _runs(alike, depth + 1)
        else:
            yield from (alike[at : at + MOST] for at in range(0, len(alike), MOST))
    if run:
        yield run
