"""Fences of calls behind words, as real support agents wrote them, beside Python's own parser."""

import ast
import os
import re
from collections import defaultdict
from typing import Any

import pytest

from benchmarks.logs import read
from sigadapt import ToolDecls
from sigadapt.response import choice_from_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("SIGADAPT_CORPUS" not in os.environ, reason="the answers are of the corpus"),
]
LAST_FENCE = re.compile(r"\S\s*\n```tool_code\n([^`]*?)\n?```\s*\Z")


def python_calls(code: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls in a text, as Python's parser reads them."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for statement in ast.parse(code).body:
        assert isinstance(statement, ast.Expr)
        call = statement.value
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        calls.append((call.func.id, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}))
    return calls


def test_every_fence_that_ends_an_answer_is_calls() -> None:
    """text-calls: A fence of calls ends an answer"""
    # The benchmark's own reader cuts a text at its first closing bracket, in 4 of the 61.
    names: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    answers: list[tuple[tuple[str, str], str]] = []
    for answer in read("answers.jsonl.gz"):
        raw = answer["raw"]
        message = raw["choices"][0]["message"] if "choices" in raw else raw.get("message", {})
        world = answer["source"], answer["domain"]
        names[world] |= {name for name, _ in answer["read"]["calls"]}
        if answer["read"]["calls"] and not message.get("tool_calls"):
            answers.append((world, message.get("content") or ""))
    count = 0
    for world, text in answers:
        fence = LAST_FENCE.search(text)
        if fence is None or text.count("```") != 2:
            continue
        count += 1
        tools = ToolDecls([{"name": name, "parameters": {"type": "object"}} for name in sorted(names[world])])
        calls = choice_from_text(text, tools).tool_calls or ()
        assert [(call.name, call.args) for call in calls] == python_calls(fence[1]), text
    assert count > 50
