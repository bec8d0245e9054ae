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
class Improved:
    """What came of it: the texts that changed, each step, and the held-out rows before and after."""

    texts: dict[str, str]
    steps: list[Json] = field(default_factory=list[Json])
    before: list[Reply] = field(default_factory=list[Reply])
    after: list[Reply] = field(default_factory=list[Reply])
    requests: int = 0

    def document(self) -> Json:
        """Return the counts of held-out rows, the requests and the texts as JSON."""
        pairs = zip(self.before, self.after, strict=True)
        right = [(one.outcome == "same_call", two.outcome == "same_call") for one, two in pairs]
        return {
            "rows": len(right),
            "before": sum(one for one, _ in right),
            "after": sum(two for _, two in right),
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
) -> Improved:
    """Rewrite texts until no failure points at one that may help, or the budget of requests is spent."""
    result = Improved(dict(texts))
    heldout = heldout[: budget // 4]  # which are asked twice: half of the budget at most
    remaining = budget - 2 * len(heldout)
    # Spread over the log, and so few that asking each of them once takes a third of what is left.
    rows = train[:: max(1, -(-3 * len(train) // max(1, remaining)))]

    def ask_all(some: Iterable[Json], texts_now: Mapping[str, str]) -> list[Reply]:
        decls = with_texts(tools, texts_now)
        with ThreadPoolExecutor(4) as pool:
            answers = [*pool.map(partial(ask, Talk(decls), lm, tools=decls), some)]
        result.requests += sum(each.requests for each in answers)
        return answers

    result.before = result.after = ask_all(heldout, result.texts)
    now = ask_all(rows, result.texts)
    attempts: Counter[str] = Counter()
    targets = {decl.name for decl in tools}
    targets |= {f"{decl.name}.{key}" for decl in tools for key in decl.parameters.get("properties") or ()}
    while True:
        guilty = [_guilty(row, each, tools) & targets for row, each in zip(rows, now, strict=True)]
        counts = Counter(name for names in guilty for name in sorted(names) if attempts[name] < _MOST_TRIES)
        cost = 1 + len(rows) + len(heldout)
        if not counts or result.requests + cost > budget:
            break
        name = min(counts, key=lambda name: (attempts[name], -counts[name], name))
        attempts[name] += 1
        places = [place for place, names in enumerate(guilty) if name in names]
        held = ToolTexts(with_texts(tools, result.texts), [name])[name]
        step: Json = {"text": name, "before": held, "rows": len(places), "kept": False}
        result.steps.append(step)
        text, why = _rewritten(name, held, tools, [(rows[n], now[n]) for n in places], reflection)
        result.requests += 1
        step |= {"now": text, "why": why}
        if not why:
            trial = {**result.texts, name: text}
            others = [place for place in range(len(rows)) if place not in places]
            new = dict(zip(places, ask_all([rows[n] for n in places], trial), strict=True))
            if sum(_credit(rows[n], new[n]) - _credit(rows[n], now[n]) for n in places) <= 0:
                step["why"] = "its rows gain nothing"
                continue
            new |= dict(zip(others, ask_all([rows[n] for n in others], trial), strict=True))
            if worse := [n for n in new if _credit(rows[n], new[n]) < _credit(rows[n], now[n])]:
                step["why"] = f"{len(worse)} rows get worse"
            else:
                step["kept"] = True
                result.texts = trial
                now = [new[n] for n in range(len(rows))]
                attempts.clear()  # a better text may make another one useful
                attempts[name] = 1
    if result.texts != dict(texts):
        result.after = ask_all(heldout, result.texts)
        _refuse_worse(result, texts)
    return result


def _refuse_worse(result: Improved, texts: Mapping[str, str]) -> None:
    """Go back to the texts before where a held-out row gets worse."""
    if result.document()["worse"]:
        result.steps.append({"text": "all", "kept": False, "why": "a held-out row gets worse"})
        result.texts = dict(texts)
        result.after = result.before


def _guilty(row: Json, answer: Reply, tools: ToolDecls) -> set[str]:
    """Return the names of the texts that a row's failure points at."""
    if answer.outcome in ("same_call", "error"):
        return set()
    wrong = [call for call in answer.calls if call not in row["calls"]]
    names: set[str] = set()
    for gold in row["calls"]:
        if gold in answer.calls:
            continue
        same = next((call for call in wrong if call["name"] == gold["name"]), None)
        if same is None:
            names |= {gold["name"], *(str(call["name"]) for call in wrong)}
            continue
        for key in gold["args"].keys() | same["args"].keys():
            if not equal_json(gold["args"].get(key, ...), same["args"].get(key, ...)):
                names.add(f"{gold['name']}.{key}")
    return names


def _credit(row: Json, answer: Reply) -> float:
    """Return how far a row is right, from 0 to 1."""
    if answer.outcome == "same_call":
        return 1.0
    calls = ToolCalls([call for call in answer.calls if call["name"]])
    return min(0.99, Credit().score(compare(row["calls"], calls)))


def _rewritten(
    name: str, now: str, tools: ToolDecls, failures: list[tuple[Json, Reply]], reflection: Any
) -> tuple[str, str]:
    """Return a new text, and why it cannot be used if so."""
    examples = [
        {"question": row["question"], "expected": row["calls"], "made": answer.calls or answer.outcome}
        for row, answer in failures[:_MOST_SHOWN]
    ]
    tool = tools[split_name(name, tools)[0]]
    plain: Any = dspy.ChatAdapter(use_json_adapter_fallback=False)
    try:
        with dspy.context(lm=reflection, adapter=plain):
            rewrite: Any = dspy.Predict(Rewrite)
            inputs = {"tool": compact(tool.to_openai()["function"]), "failures": compact(examples)}
            text = str(rewrite(describes=name, now=now, **inputs).text).strip()
    except Exception as error:  # noqa: BLE001  (one reflection must not end the run)
        return "", f"no text came: {type(error).__name__}"
    if not text or text == now:
        return text, "the text is as it was"
    if len(text) > _LONGEST:
        return text, f"the text is longer than {_LONGEST} characters"
    return text, "the text holds a secret" if MASK in text or any(secrets_in({"text": text})) else ""
