"""Namespaces of OpenAI's tool search: a thousand deferred functions as groups of at most ten.

A model of Responses reads the name and the description of a namespace, and of a deferred function that stands
by itself. "We recommend fewer than 10 functions per namespace":
https://developers.openai.com/api/docs/guides/tools-tool-search
"""

from collections.abc import Sequence
from itertools import takewhile

from sigadapt.providers.wire.values import name_in
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.tool_index import words

MOST = 10
_LONGEST_LABEL = 48


def is_single(tool: Json) -> bool:
    """Return whether a canonical tool is deferred and in no namespace."""
    return bool(tool.get("defer_loading")) and "namespace" not in tool


def in_namespaces(tools: Sequence[Json]) -> list[Json]:
    """Return canonical tools with the single ones last, in namespaces by the words their names begin with."""
    entries = [tool for tool in tools if not is_single(tool)]
    names = {*map(name_in, tools), *(tool["namespace"]["name"] for tool in entries if tool.get("namespace"))}
    singles = [(words(str(name_in(tool))), str(name_in(tool)), tool) for tool in tools if is_single(tool)]
    runs: list[list[tuple[list[str], str, Json]]] = []
    for each in sorted(singles, key=lambda each: each[:2]):
        goes_on = bool(runs) and (each[0][:1] == runs[-1][-1][0][:1] or len(runs[-1]) < MOST // 2)
        if not goes_on or len(runs[-1]) == MOST:
            runs.append([])
        runs[-1].append(each)
    for run in runs:
        first = run[0][0]
        last = run[-1][0]
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
        label = "_".join(word for word, _ in pairs) or "_to_".join([*first[:1], *last[:1]])
        label = label[:_LONGEST_LABEL] or "tools"
        candidates = (label, *(f"{label}_{number}" for number in range(2, len(tools) + 3)))
        name = next(each for each in candidates if each not in names)
        names.add(name)
        space = {"name": name, "description": f"Functions: {', '.join(function for _, function, _ in run)}."}
        entries += ({**tool, "namespace": space} for _, _, tool in run)
    return entries
