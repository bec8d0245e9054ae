"""1,000 tools in a request: all of them, those that a search finds, or deferred. Writes the guide's table.

python -m benchmarks.large_tool_sets
"""

import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy
import litellm
import orjson

import sigadapt
from benchmarks.measure import Table, medians
from benchmarks.provider import provider
from sigadapt import RequestContext, ToolCalls, ToolDecls, Toolset
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "large_tool_sets.md"
START, END = "<!-- measured: python3 tasks.py scale -->", "<!-- end of what is measured -->"
FOUND = 20
ACTS = ("create", "read", "update", "delete", "list", "find", "export", "import", "archive", "restore")
THINGS = (
    "invoice",
    "customer",
    "order",
    "product",
    "ticket",
    "contract",
    "shipment",
    "employee",
    "meeting",
    "project",
)
PLACES = (
    "store",
    "warehouse",
    "office",
    "branch",
    "region",
    "team",
    "supplier",
    "portal",
    "archive",
    "factory",
)
QUESTION = "Which invoice of the warehouse in Paris was archived last?"


class Ask(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls | None = dspy.OutputField()


def tool(act: str, thing: str, place: str) -> dict[str, Any]:
    """One tool of a business: four parameters, each with a description."""
    told = {
        "id": f"The {thing}'s number.",
        "note": f"Why to {act} the {thing}.",
        "since": "A date, as in 2026-11-21.",
        "limit": f"How many {thing}s at most.",
    }
    properties: dict[str, Any] = {
        name: {"type": "string", "description": text} for name, text in told.items()
    }
    properties["limit"] |= {"type": "integer", "minimum": 1}
    schema = {"type": "object", "properties": properties, "required": ["id"]}
    return {
        "name": f"{act}_{place}_{thing}",
        "description": f"{act.title()} a {thing} of a {place}.",
        "parameters": schema,
    }


TOOLS = [tool(act, thing, place) for act in ACTS for thing in THINGS for place in PLACES]


class WordIndex:
    """The tools that share the most words with the question."""

    def __init__(self, decls: ToolDecls) -> None:
        self.names: defaultdict[str, list[str]] = defaultdict(list)
        for decl in decls:
            for word in words(f"{decl.name} {decl.description}"):
                self.names[word].append(decl.name)

    def __call__(self, context: RequestContext, _: ToolDecls) -> list[str]:
        """The names of the `FOUND` best."""
        asked = words(context.inputs["question"])
        votes = Counter(name for word in sorted(asked) for name in self.names.get(word, ()))
        return [name for name, _ in votes.most_common(FOUND)]


def words(text: str) -> set[str]:
    """The words of a text, without an ending of the past tense."""
    return {re.sub(r"d$", "", word) for word in re.findall(r"[a-z]+", text.lower())}


def ways() -> dict[str, Any]:
    """The tools field's value, by the way in which 1,000 tools are given."""
    decls = ToolDecls(TOOLS)
    many = Toolset("business", decls)
    return {
        "all, as a list of dicts": TOOLS,
        "all, one `ToolDecls`": decls,
        f"`retrieved`, {FOUND} found": many.retrieved(WordIndex(decls)),
        "`deferred`, resolved once": many.deferred().resolve(),
    }


def answer(_: Received) -> Answer:
    """What the provider says."""
    return Answer(calls=[Call("archive_warehouse_invoice", {"id": "7"})])


def calling(lm: dspy.LM, tools: Any) -> Callable[[], object]:
    """A call of the program, with nothing that remembers calls."""
    predict, adapter = dspy.Predict(Ask), sigadapt.ChatAdapter()

    def call() -> object:
        with dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None):
            return predict(question=QUESTION, tools=tools).calls[0]

    return call


def weights() -> dict[str, tuple[int, int]]:
    """The bytes of the request, and the tokens of the tools that the model reads, by way."""
    found: dict[str, tuple[int, int]] = {}
    for way, tools in ways().items():
        with LoopbackProvider(answer) as running:
            calling(dspy.LM(**running.lm_options("anthropic")), tools)()
        body = running.received[0].body
        read = [each for each in body["tools"] if not each.get("defer_loading")]
        tokens = len(litellm.encode(model="gpt-4o", text=orjson.dumps(read).decode()))
        found[way] = len(orjson.dumps(body)), tokens
    return found


def tables(seconds: float) -> Iterator[Table]:
    """The measurements."""
    weighed = weights()
    with provider(answer) as lms:
        calls = [calling(dspy.LM(**lms["anthropic"]), tools) for tools in ways().values()]
        times = medians(calls, seconds)
    rows = [
        [way, f"{size:,}", f"{tokens:,}", f"{1000 * time:.1f}"]
        for (way, (size, tokens)), time in zip(weighed.items(), times, strict=True)
    ]
    told = (
        "1,000 tools with four parameters each, on Anthropic's wire. *Tokens read* are those of the tools "
        "the model sees before it searches, by GPT-4o's tokenizer; each provider counts its own way. The "
        "time is one HTTP call to a provider in another process, parsing included."
    )
    yield Table("What one call costs", told, ("tools", "bytes sent", "tokens read", "ms a call"), rows)


def main() -> None:
    """Write the tables into the guide."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    from benchmarks import tool_search  # noqa: PLC0415  (which has these tools)

    measured = "\n".join(table.markdown() for table in (*tool_search.tables(), *tables(20)))
    PAGE.write_text(f"{before}{START}\n\n{measured}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
