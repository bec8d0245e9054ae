"""improve: rewrite descriptions of tools by failure, one text at a time; keep what gains without a loss.

A failed row points at texts: a wrong argument at its parameter's, a wrong tool at the tool's and at that of
the tool that was called. After each text that is kept, failures are counted anew. The held-out rows are asked
before and after, and a result that makes one of them worse is dropped as a whole.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import dspy
from rich.console import RenderableType

from sigadapt.errors import InvalidOption
from sigadapt.logs.adoption.adopted import Adopted
from sigadapt.logs.agreement import (
    SKIPPED,
    AdoptedLog,
    Model,
    ModelReply,
    adopted_of,
    answer_of,
    ask,
    model_of,
    sign_test,
)
from sigadapt.logs.attempts import attempt
from sigadapt.logs.final_words import is_submit_decl
from sigadapt.logs.tables import Report, progress, table_of
from sigadapt.metrics import Credit, compare
from sigadapt.schemas.json_values import Json, compact, equal_json
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.tool_texts import ToolTexts, split_name, texts_of, with_texts
from sigadapt.trust.echoes import MASK
from sigadapt.trust.masking import secrets_in

_LONGEST = 600  # characters of a text
_MOST_SHOWN = 8  # failures in a reflection
_MOST_TRIES = 3  # for one text


class Rewrite(dspy.Signature):
    """Rewrite one text of a tool's declaration, so that a model that reads it makes the expected calls.

    Say what holds in general. Do not repeat values of the failures. Write one or two sentences.
    """

    describes: str = dspy.InputField(desc="the tool, or the parameter of a tool, that the text describes")
    now: str = dspy.InputField(desc="the text as it is now")
    tool: str = dspy.InputField(desc="the declaration of the tool")
    failures: str = dspy.InputField(desc="questions, with the expected call and the one that was made")
    text: str = dspy.OutputField(desc="the new text")


@dataclass(repr=False)
class Improved(Report):
    """What came of rewriting texts, over held-out rows. It prints as tables.

    Args:
        texts: the texts that changed, by the name of a tool or of a parameter (`find_events.city`).
        steps: each text that was tried: `text`, `before`, `now`, `rows`, `kept` and `why`.
        requests: how many requests it took.
        made_for: the fingerprint of the tools that the texts are for.
        model: the name of the model that read them.
    """

    texts: dict[str, str]
    steps: list[Json] = field(default_factory=list[Json])
    requests: int = 0
    made_for: str = ""
    model: str = ""
    old_replies: list[ModelReply] = field(default_factory=list[ModelReply])
    new_replies: list[ModelReply] = field(default_factory=list[ModelReply])

    def _right(self) -> list[tuple[bool, bool]]:
        """Return for each held-out row whether the model made the recorded call before, and after."""
        pairs = zip(self.old_replies, self.new_replies, strict=True)
        return [(old.outcome == "same_call", new.outcome == "same_call") for old, new in pairs]

    @property
    def rows(self) -> int:
        """How many held-out rows were asked."""
        return len(self.old_replies)

    @property
    def before(self) -> int:
        """In how many of them the model made the recorded calls before."""
        return sum(was_right for was_right, _ in self._right())

    @property
    def after(self) -> int:
        """In how many of them it does now."""
        return sum(is_right for _, is_right in self._right())

    @property
    def better(self) -> int:
        """How many of them got right."""
        return self._right().count((False, True))

    @property
    def worse(self) -> int:
        """How many of them got wrong: always 0, because such texts are dropped."""
        return self._right().count((True, False))

    def document(self) -> Json:
        """Return the counts of held-out rows, the requests and the texts as JSON."""
        names = ("rows", "before", "after", "better", "worse", "requests", "texts")
        return {name: getattr(self, name) for name in names}

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the file that `ToolDecls.with_texts` and `ToolTexts.load` take, for a person to review.

        Args:
            path: the path of the file.

        Returns:
            The path.
        """
        document = self.document()
        measures = {key: value for key, value in document.items() if key != "texts"} | {"model": self.model}
        measures["p"] = sign_test(self.better, self.worse)
        text_file = {"format": 1, "texts": self.texts, "made_for": self.made_for, "measured": measures}
        file = Path(path)
        file.write_text(json.dumps(text_file, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return file

    def tables(self) -> Sequence[RenderableType]:
        """Return the counts, the texts that were tried, and those that changed."""
        names = ("rows", "before", "after", "better", "worse", "requests")
        rows = [(name, getattr(self, name)) for name in names]
        tables: list[RenderableType] = [
            table_of("Held-out rows: the same call as recorded", ("", "count"), rows)
        ]
        if self.steps:
            step_rows: list[list[object]] = []
            for step in self.steps:
                outcome = "kept" if step["kept"] else f"undone: {step['why']}"
                step_rows.append([*(step.get(key, "") for key in ("text", "before", "now", "rows")), outcome])
            heads = ("text", "before", "now", "rows", "")
            tables.append(table_of("Texts, in the order in which they were tried", heads, step_rows))
        if self.texts:
            tables.append(table_of("Texts that changed", ("text", "now"), self.texts.items()))
        return tables


def improve(
    adopted: AdoptedLog,
    model: Model,
    *,
    reflection_model: Model | None = None,
    budget: int = 200,
    texts: Any = None,
) -> Improved:
    """Rewrite texts of tools until no failure points at one that may help, or the budget is spent.

    It learns from `train`, and asks `heldout` before and after. A result that makes a held-out row worse is
    dropped.

    Args:
        adopted: an Adopted, or the folder of one.
        model: the language model that reads the texts, or its name as `dspy.LM` takes it.
        reflection_model: the one that writes them; None for the same.
        budget: the most requests, reflections included.
        texts: what to begin with: a file of an earlier run, or its path.

    Returns:
        An Improved.

    Raises:
        InvalidOption: if there are no rows to learn from, what is given is no model, or the texts are of
            other tools.
    """
    log = adopted_of(adopted)
    if not log.train:
        raise InvalidOption("there are no rows to learn from", field="adopted", fix="Adopt a log with calls.")
    if not hasattr(log.program, "tools"):
        fix = "Keep `self.tools = TOOLS` in program.py, and use it in forward."
        raise InvalidOption("the program has no `tools` whose texts could change", field="adopted", fix=fix)
    lm = model_of(model)
    reflection = lm if reflection_model is None else model_of(reflection_model)
    start = {} if texts is None else texts_of(texts, log.tools)
    heldout = log.heldout[: budget // 4]  # which are asked twice: half of the budget at most
    remaining = budget - 2 * len(heldout)
    # Spread over the log, and so few that asking each of them once takes a third of what is left.
    rows = log.train[:: max(1, -(-3 * len(log.train) // max(1, remaining)))]
    run = _Improvement(log, rows, lm, reflection, start)
    result = run.result
    result.made_for = log.tools.fingerprint()
    result.model = str(lm.model)
    result.old_replies = result.new_replies = run.ask_all(heldout, result.texts)
    run.replies = run.ask_all(rows, result.texts)
    cost = 1 + len(rows) + len(heldout)
    while (target := run.next_target()) is not None and result.requests + cost <= budget:
        run.try_rewrite(target)
    if result.texts != dict(start):
        result.new_replies = run.ask_all(heldout, result.texts)
    if result.worse:  # back to the texts before
        result.steps.append({"text": "all", "kept": False, "why": "a held-out row gets worse"})
        result.texts = dict(start)
        result.new_replies = result.old_replies
    return result


class _Improvement:
    """The rows, their replies with the texts so far, and how often each text was tried."""

    def __init__(
        self,
        adopted: Adopted,
        rows: list[dspy.Example],
        lm: Any,
        reflection: Any,
        texts: Mapping[str, str],
    ) -> None:
        self.result = Improved(dict(texts))
        self.replies: list[ModelReply] = []
        self._program: Any = adopted.program
        self._tools = adopted.tools
        self._rows = rows
        self._lm = lm
        self._reflection = reflection
        self._attempts: Counter[str] = Counter()
        self._targets = _text_names(adopted.tools)

    def ask_all(self, rows: Iterable[dspy.Example], texts: Mapping[str, str]) -> list[ModelReply]:
        """Ask the model about each row, with declarations that have these texts."""
        program = copy(self._program)
        program.tools = with_texts(self._tools, texts)
        some_rows = [*rows]
        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(partial(ask, program, self._lm, tools=program.tools), some_rows)
            replies = [*progress(answers, "Asking", len(some_rows))]
        self.result.requests += sum(reply.requests for reply in replies)
        return replies

    def next_target(self) -> str | None:
        """Return the text that was tried least and that the most failures point at; None without any."""
        counts: Counter[str] = Counter()
        for names in self._guilty_texts():
            counts.update(name for name in sorted(names) if self._attempts[name] < _MOST_TRIES)
        if not counts:
            return None
        return min(counts, key=lambda name: (self._attempts[name], -counts[name], name))

    def _guilty_texts(self) -> list[set[str]]:
        """Return for each row the texts that its failure points at."""
        pairs = zip(self._rows, self.replies, strict=True)
        return [_guilty(row, reply, self._tools) & self._targets for row, reply in pairs]

    def try_rewrite(self, name: str) -> None:
        """Rewrite a text, and keep it if its rows gain and no row gets worse."""
        self._attempts[name] += 1
        guilty_rows = [n for n, names in enumerate(self._guilty_texts()) if name in names]
        old_text = ToolTexts(with_texts(self._tools, self.result.texts), [name])[name]
        step: Json = {"text": name, "before": old_text, "rows": len(guilty_rows), "kept": False}
        self.result.steps.append(step)
        failures = [(self._rows[n], self.replies[n]) for n in guilty_rows]
        text, reason = _new_text(name, old_text, self._tools, failures, self._reflection)
        self.result.requests += 1
        step |= {"now": text, "why": reason}
        if reason:
            return
        texts = {**self.result.texts, name: text}
        replies = self._replies_with(texts, guilty_rows)
        if sum(self._gain(n, replies[n]) for n in guilty_rows) <= 0:
            step["why"] = "its rows gain nothing"
            return
        other_rows = [n for n in range(len(self._rows)) if n not in guilty_rows]
        replies |= self._replies_with(texts, other_rows)
        if worse_rows := [n for n in replies if self._gain(n, replies[n]) < 0]:
            step["why"] = f"{len(worse_rows)} rows get worse"
            return
        step["kept"] = True
        self.result.texts = texts
        self.replies = [replies[n] for n in range(len(self._rows))]
        self._attempts.clear()  # a better text may make another one useful
        self._attempts[name] = 1

    def _replies_with(self, texts: Mapping[str, str], numbers: list[int]) -> dict[int, ModelReply]:
        replies = self.ask_all([self._rows[n] for n in numbers], texts)
        return dict(zip(numbers, replies, strict=True))

    def _gain(self, number: int, reply: ModelReply) -> float:
        """Return how much better a new reply to a row is than the one so far."""
        row = self._rows[number]
        return _credit(row, reply) - _credit(row, self.replies[number])


def _text_names(tools: ToolDecls) -> set[str]:
    """Return the names of the texts that may be rewritten: of tools and of their parameters."""
    names: set[str] = set()
    for decl in tools:
        if is_submit_decl(decl):  # DSPy's own text
            continue
        names.add(decl.name)
        names |= {f"{decl.name}.{key}" for key in decl.parameters.get("properties") or ()}
    return names


def _guilty(row: Any, reply: ModelReply, tools: ToolDecls) -> set[str]:
    """Return the names of the texts that a row's failure points at."""
    if reply.outcome in ("same_call", "error", SKIPPED):
        return set()
    wrong = [call for call in reply.calls if call not in row["calls"]]
    names: set[str] = set()
    for gold in row["calls"]:
        if gold in reply.calls:
            continue
        wrong_call = next((call for call in wrong if call["name"] == gold["name"]), None)
        if wrong_call is None:
            names |= {gold["name"], *(str(call["name"]) for call in wrong)}
            continue
        for key in gold["args"].keys() | wrong_call["args"].keys():
            if not equal_json(gold["args"].get(key, ...), wrong_call["args"].get(key, ...)):
                names.add(f"{gold['name']}.{key}")
    return names


def _credit(row: dspy.Example, reply: ModelReply) -> float:
    """Return how far a row is right, from 0 to 1."""
    if reply.outcome == "same_call":
        return 1.0
    calls = ToolCalls([call for call in reply.calls if call["name"]])
    return min(0.99, Credit().score(compare(row["calls"], calls)))


def _new_text(
    name: str,
    old_text: str,
    tools: ToolDecls,
    failures: list[tuple[dspy.Example, ModelReply]],
    reflection: Any,
) -> tuple[str, str]:
    """Return a new text, and why it cannot be used if so."""
    examples: list[Json] = []
    for row, reply in failures[:_MOST_SHOWN]:
        actual = reply.calls or reply.outcome
        examples.append({"question": row["question"], "expected": row["calls"], "made": actual})
    tool = tools[split_name(name, tools)[0]]
    inputs = {"tool": compact(tool.to_openai()["function"]), "failures": compact(examples)}
    plain: Any = dspy.ChatAdapter(use_json_adapter_fallback=False)
    inputs |= {"describes": name, "now": old_text}
    with dspy.context(adapter=plain):
        prediction = attempt(partial(answer_of, dspy.Predict(Rewrite), reflection, inputs))
    if isinstance(prediction, Exception):
        return "", f"no text came: {type(prediction).__name__}"
    text = str(prediction.text).strip()
    if not text or text == old_text:
        return text, "the text is as it was"
    if len(text) > _LONGEST:
        return text, f"the text is longer than {_LONGEST} characters"
    if MASK in text or any(secrets_in({"text": text})):
        return text, "the text holds a secret"
    return text, ""
