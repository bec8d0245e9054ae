"""Rewrite descriptions of tools by failure: one text at a time, kept if its rows gain and no row gets worse.

A failed row points at texts: a wrong argument at its parameter's, a wrong tool at the tool's and at that of
the tool that was called. After each text that is kept, failures are counted anew. The held-out rows are asked
before and after, and a result that makes one of them worse is dropped as a whole.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dspy

from sigadapt.logs.compare import Reply, ask
from sigadapt.logs.talk import Talk
from sigadapt.metrics import Credit, compare
from sigadapt.schemas.json_values import Json, compact, equal_json
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.tool_texts import ToolTexts, split_name, with_texts
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


@dataclass
class Improvement:
    """What came of it: the texts that changed, each step, and the held-out rows before and after."""

    texts: dict[str, str]
    steps: list[Json] = field(default_factory=list[Json])
    old_replies: list[Reply] = field(default_factory=list[Reply])
    new_replies: list[Reply] = field(default_factory=list[Reply])
    requests: int = 0

    def document(self) -> Json:
        """Return the counts of held-out rows, the requests and the texts as JSON."""
        right: list[tuple[bool, bool]] = []
        for old, new in zip(self.old_replies, self.new_replies, strict=True):
            right.append((old.outcome == "same_call", new.outcome == "same_call"))
        return {
            "rows": len(right),
            "before": sum(was_right for was_right, _ in right),
            "after": sum(is_right for _, is_right in right),
            "better": right.count((False, True)),
            "worse": right.count((True, False)),
            "requests": self.requests,
            "texts": self.texts,
        }


def improve(
    tools: ToolDecls,
    train: list[Json],
    heldout: list[Json],
    *,
    lm: Any,
    reflection: Any,
    budget: int,
    texts: Mapping[str, str],
) -> Improvement:
    """Rewrite texts until no failure points at one that may help, or the budget of requests is spent."""
    heldout = heldout[: budget // 4]  # which are asked twice: half of the budget at most
    remaining = budget - 2 * len(heldout)
    # Spread over the log, and so few that asking each of them once takes a third of what is left.
    rows = train[:: max(1, -(-3 * len(train) // max(1, remaining)))]
    run = _Improvement(tools, rows, lm, reflection, texts)
    result = run.result
    result.old_replies = result.new_replies = run.ask_all(heldout, result.texts)
    run.replies = run.ask_all(rows, result.texts)
    cost = 1 + len(rows) + len(heldout)
    while (target := run.next_target()) is not None and result.requests + cost <= budget:
        run.try_rewrite(target)
    if result.texts != dict(texts):
        result.new_replies = run.ask_all(heldout, result.texts)
    if result.document()["worse"]:  # back to the texts before
        result.steps.append({"text": "all", "kept": False, "why": "a held-out row gets worse"})
        result.texts = dict(texts)
        result.new_replies = result.old_replies
    return result


class _Improvement:
    """The rows, their replies with the texts so far, and how often each text was tried."""

    def __init__(
        self, tools: ToolDecls, rows: list[Json], lm: Any, reflection: Any, texts: Mapping[str, str]
    ) -> None:
        self.result = Improvement(dict(texts))
        self.replies: list[Reply] = []
        self._tools = tools
        self._rows = rows
        self._lm = lm
        self._reflection = reflection
        self._attempts: Counter[str] = Counter()
        self._targets = _text_names(tools)

    def ask_all(self, rows: Iterable[Json], texts: Mapping[str, str]) -> list[Reply]:
        """Ask the model about each row, with declarations that have these texts."""
        decls = with_texts(self._tools, texts)
        with ThreadPoolExecutor(4) as pool:
            replies = [*pool.map(partial(ask, Talk(decls), self._lm, tools=decls), rows)]
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

    def _replies_with(self, texts: Mapping[str, str], numbers: list[int]) -> dict[int, Reply]:
        replies = self.ask_all([self._rows[n] for n in numbers], texts)
        return dict(zip(numbers, replies, strict=True))

    def _gain(self, number: int, reply: Reply) -> float:
        """Return how much better a new reply to a row is than the one so far."""
        row = self._rows[number]
        return _credit(row, reply) - _credit(row, self.replies[number])


def _text_names(tools: ToolDecls) -> set[str]:
    """Return the names of the texts that may be rewritten: of tools and of their parameters."""
    names: set[str] = set()
    for decl in tools:
        names.add(decl.name)
        names |= {f"{decl.name}.{key}" for key in decl.parameters.get("properties") or ()}
    return names


def _guilty(row: Json, reply: Reply, tools: ToolDecls) -> set[str]:
    """Return the names of the texts that a row's failure points at."""
    if reply.outcome in ("same_call", "error"):
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


def _credit(row: Json, reply: Reply) -> float:
    """Return how far a row is right, from 0 to 1."""
    if reply.outcome == "same_call":
        return 1.0
    calls = ToolCalls([call for call in reply.calls if call["name"]])
    return min(0.99, Credit().score(compare(row["calls"], calls)))


def _new_text(
    name: str, old_text: str, tools: ToolDecls, failures: list[tuple[Json, Reply]], reflection: Any
) -> tuple[str, str]:
    """Return a new text, and why it cannot be used if so."""
    examples: list[Json] = []
    for row, reply in failures[:_MOST_SHOWN]:
        actual = reply.calls or reply.outcome
        examples.append({"question": row["question"], "expected": row["calls"], "made": actual})
    tool = tools[split_name(name, tools)[0]]
    inputs = {"tool": compact(tool.to_openai()["function"]), "failures": compact(examples)}
    plain: Any = dspy.ChatAdapter(use_json_adapter_fallback=False)
    try:
        with dspy.context(lm=reflection, adapter=plain):
            rewrite: Any = dspy.Predict(Rewrite)
            text = str(rewrite(describes=name, now=old_text, **inputs).text).strip()
    except Exception as error:  # noqa: BLE001  (one reflection must not end the run)
        return "", f"no text came: {type(error).__name__}"
    if not text or text == old_text:
        return text, "the text is as it was"
    if len(text) > _LONGEST:
        return text, f"the text is longer than {_LONGEST} characters"
    if MASK in text or any(secrets_in({"text": text})):
        return text, "the text holds a secret"
    return text, ""
