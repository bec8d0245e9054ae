"""Six questions over 1,000 tools in one conversation: what each way sends, and breaks of the prefix.

The model is a script that knows which tool answers: it calls a tool that it can see, and else searches for it
with the question. A provider's own search is not asked, so its model calls the deferred tool at once.

python -m benchmarks.tool_search
"""

import gzip
import importlib
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy
import litellm

import sigadapt
from benchmarks.large_tool_sets import TOOLS
from benchmarks.measure import Table
from sigadapt import RequestContext, ToolCalls, ToolDecls, ToolResults, Toolset
from sigadapt.signatures.tool_index import ToolIndex
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

Json = dict[str, Any]
QUESTIONS = {
    "archive_warehouse_invoice": "Archive the last invoice of the warehouse in Paris.",
    "find_store_customer": "Find the customer of the store who bought a kettle.",
    "export_region_contract": "Export the contracts of the region to a file.",
    "create_office_meeting": "Set up, that is create, a meeting at the office on Monday.",
    "restore_portal_ticket": "Restore the ticket that vanished from the portal.",
    "update_team_project": "Update the project of the team, because it is late.",
}
DONE = Answer(text="[[ ## answer ## ]]\nDone.\n\n[[ ## completed ## ]]")
FOUND = 5
ROUTES: dict[str, tuple[str, str | None, str]] = {
    "OpenAI chat": ("openai", None, "native"),
    "OpenAI chat, prompted": ("openai", None, "prompted"),
    "OpenAI Responses": ("responses", "openai/gpt-5.5", "native"),
    "Anthropic": ("anthropic", "anthropic/claude-haiku-4-5", "native"),
    "Anthropic, your search": ("anthropic", "anthropic/claude-opus-4-8", "native"),
    "Gemini": ("gemini", None, "native"),
    "Ollama": ("ollama", None, "native"),
}
CORPUS = Path(os.environ.get("SIGADAPT_CORPUS", ""), "bfcl", "large.jsonl.gz")


class Ask(dspy.Signature):
    """Answer with the tools."""

    history: dspy.History = dspy.InputField()
    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def rows_of(body: Json) -> list[Json]:
    """The messages of a request."""
    return body.get("messages") or body.get("contents") or body["input"]


class Model:
    """The scripted model of one question."""

    def __init__(self, gold: str, question: str) -> None:
        self.gold, self.question, self.is_done = gold, question, False

    def __call__(self, received: Received) -> Answer:
        """Say what it says to a request."""
        body = received.body
        if self.is_done:
            return DONE
        declared = json.dumps([body.get("tools"), body.get("system"), rows_of(body)[:1]])
        said = json.dumps(rows_of(body)[1:])
        is_shown = f'"{self.gold}' in declared.replace("\\", "")
        is_found = f'"{self.gold}"' in said.replace("\\", "")
        if is_shown or (is_found and "call_tool" not in declared):
            return self.call(body, self.gold, {"id": "7"})
        if is_found:
            return self.call(body, "call_tool", {"name": self.gold, "arguments": {"id": "7"}})
        field = {"queries": [self.question]} if '"queries"' in declared else {"query": self.question}
        return self.call(body, "search_tools", field)

    def call(self, body: Json, name: str, args: Json) -> Answer:
        """Call a tool, in the text where the request has no tools."""
        self.is_done = name != "search_tools"
        if body.get("tools"):
            return Answer(calls=[Call(name, args)])
        call = json.dumps({"name": name, "arguments": args})
        return Answer(text=f"<tool_call>\n{call}\n</tool_call>")


def talk(tools: Any, wire: str, model: str | None, mode: Any) -> list[Json]:
    """The requests of six questions in one conversation."""
    bodies, events = list[Json](), list[Json]()
    for gold, question in QUESTIONS.items():
        with LoopbackProvider(Model(gold, question)) as provider:
            lm = dspy.LM(**provider.lm_options(wire, **({"model": model} if model else {})))
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling=mode)):
                results, out = ToolResults(), None
                while out is None or out.calls:
                    history = dspy.History(messages=events)
                    out = dspy.Predict(Ask)(question=question, tools=tools, history=history, results=results)
                    if out.calls:
                        results += ToolResults.of(out.calls, ["ok"])
            events.append({"question": question, "results": results, "answer": out.answer})
            if [result.name for result in results] != [gold]:
                raise RuntimeError(f"{gold} was not called")
            bodies += [received.body for received in provider.received]
    return bodies


def by_pydantic_ai() -> list[Json]:
    """The same with pydantic-ai's tool search, over OpenAI's chat completions."""
    ai: Any = importlib.import_module("pydantic_ai")
    openai: Any = importlib.import_module("pydantic_ai.models.openai")
    providers: Any = importlib.import_module("pydantic_ai.providers.openai")

    def tool(declared: Json) -> Any:
        def run(**_: object) -> str:
            return "ok"

        made = ai.Tool.from_schema(run, declared["name"], declared["description"], declared["parameters"])
        made.defer_loading = True
        return made

    bodies, history = list[Json](), list[Any]()
    for gold, question in QUESTIONS.items():
        with LoopbackProvider(Model(gold, question)) as running:
            provider = providers.OpenAIProvider(
                base_url=running.lm_options("openai")["api_base"], api_key="x"
            )
            agent = ai.Agent(
                openai.OpenAIChatModel("gpt-4o-mini", provider=provider),
                instructions="Answer with the tools.",
                tools=list(map(tool, TOOLS)),
            )
            history = agent.run_sync(question, message_history=history).all_messages()
            bodies += [received.body for received in running.received]
    return bodies


def prompt_of(body: Json) -> str:
    """What the model reads, in the order in which providers keep it: tools, instructions, messages."""
    listed: list[Json] = body.get("tools") or []
    listed = [each for tool in listed for each in tool.get("functionDeclarations", [tool])]
    tools: list[Json] = []
    for tool in listed:
        if tool.get("type") == "namespace":
            tools.append({key: part for key, part in tool.items() if key != "tools"})
        elif not tool.get("defer_loading"):
            tools.append(tool)
    system = body.get("system") or body.get("systemInstruction") or body.get("instructions") or ""
    parts = [*tools, system, *rows_of(body)]
    text = "\n".join(json.dumps(part, ensure_ascii=False) for part in parts)
    return re.sub(r'(, )?"cache_control": \{"type": "ephemeral"\}', "", text)


def tokens(text: str) -> int:
    """The tokens of a text, by GPT-4o's tokenizer."""
    return len(litellm.encode(model="gpt-4o", text=text))


def weighed(bodies: list[Json]) -> list[str]:
    """Requests, tokens of the first and in the mean, tokens behind the common prefix, and breaks."""
    prompts = [prompt_of(body) for body in bodies]
    uncached, breaks = tokens(prompts[0]), 0
    for before, after in pairwise(prompts):
        pairs = enumerate(zip(before, after, strict=False))
        common = next((place for place, (one, two) in pairs if one != two), min(len(before), len(after)))
        uncached += tokens(after[common:])
        breaks += common < len(before.rstrip('"}] '))
    mean = sum(map(tokens, prompts)) // len(prompts)
    numbers = len(prompts), tokens(prompts[0]), mean, uncached
    return [*(f"{number:,}" for number in numbers), f"{breaks} of {len(prompts) - 1}"]


def search(query: str, tools: ToolDecls) -> list[str]:
    """A search of one's own."""
    return ToolIndex([tool["function"] for tool in tools.to_openai()]).best(query, FOUND)


def retrieved(context: RequestContext, decls: ToolDecls) -> list[str]:
    """The same, for each request."""
    return search(context.inputs["question"], decls)


def talks() -> Iterator[tuple[str, Callable[[], list[Json]]]]:
    """The ways, by name."""
    decls = ToolDecls(TOOLS)
    many = Toolset("business", decls)
    for route, how in ROUTES.items():
        options: Json = {"search": search} if "your search" in route else {}
        tools = many.deferred(**options)
        yield f"`deferred`, {route}", lambda how=how, tools=tools: talk(tools, *how)
    chat = ROUTES["OpenAI chat"]
    yield f"`retrieved`, {FOUND} found, OpenAI chat", lambda: talk(many.retrieved(retrieved), *chat)
    yield "all tools, OpenAI chat", lambda: talk(decls, *chat)
    yield "pydantic-ai's tool search, OpenAI chat", by_pydantic_ai


def tables() -> Iterator[Table]:
    """The measurements."""
    told = (
        "Six questions over 1,000 tools, in one conversation with a scripted model. Tokens are GPT-4o's, "
        "over the JSON the model reads: tools, instructions and messages, but neither deferred tools nor "
        "what a provider's own search shows. *Uncached* counts, over all requests, the tokens after the part "
        "a request shares with the one before. A *break* is a request that doesn't begin with the whole one "
        "before."
    )
    head = ("way", "requests", "tokens, first", "tokens, mean", "uncached in all", "breaks")
    yield Table("What six questions cost", told, head, [[way, *weighed(bodies())] for way, bodies in talks()])
    if CORPUS.is_file():
        with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
            rows: list[Json] = [json.loads(line) for line in lines]
        index = ToolIndex(row["tool"] for row in rows if "tool" in row)
        asked = [(row["question"], row["gold"]) for row in rows if "question" in row]
        rates = [
            [
                f"{most}",
                f"{100 * sum(gold in index.best(text, most) for text, gold in asked) / len(asked):.1f} %",
            ]
            for most in (1, 5, 10, 20)
        ]
        told = (
            f"How often the adapter's own search has the right function among the first. The queries are "
            f"{len(asked):,} questions of the Berkeley Function-Calling Leaderboard, over 1,000 of its "
            "functions. A model writes better queries than these."
        )
        yield Table("What the search finds", told, ("among the first", "found"), rates)
