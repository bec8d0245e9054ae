"""Adopt real and long logs, measure what comes of it, and write docs/logs_measured.md.

    python -m benchmarks.logs

The conversations are those of tau-bench and tau2-bench (`SIGADAPT_CORPUS`, folder `talks`), each with the
benchmark's own verdict. Two scripted models are asked with them: one follows the record, and one errs in
places that are known.
"""

import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy

from benchmarks.tree import stamp
from sigadapt.logs import Adopted, Comparison, Replayed, adopt, compare, replay
from sigadapt.testing import Answer, Call, LoopbackProvider, Received, Reply

PAGE = Path(__file__).parent.parent / "docs" / "logs_measured.md"
KINDS = {
    "other arguments": "other_arguments",
    "words": "none",
    "unknown tool": "unknown_tool",
    "bad arguments": "schema_mismatch",
}
"""How a scripted model errs, and the code that `replay` has for it."""

HEAD = """# Logs, measured

{stamp}

`python3 tasks.py logs` writes this page in about two minutes. The guide
[From logs to a program](guides/logs.md) explains terms such as *gold*. The first two parts need the
conversations of [the recordings](corpus.md). The last part makes its own log.

## What gold is worth

{talks} conversations of {models} models with simulated customers (tau-bench and tau2-bench), logged request
by request. In {adopted} of them, the model answers a customer. Each of these is adopted as one conversation,
and no line is unread. The benchmark's verdict says whether the customer got what the task demands.

| verdict | conversations | answers with calls | confirmed gold | corrected | failed calls | in 100 answers |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{verdicts}

So `confirmed` means that a tool accepted the call, not that the call was wise: a conversation that fails has
as many confirmed calls as one that passes. What failing conversations have more of is failed calls. Of the
conversations with a failed call, {with_failure}% passed; of those without, {without_failure}%.

## Two models on the same conversations

{chosen} of these conversations with {rows} rows. One scripted model follows the record. The other errs once
in {planted} conversations, in known places.

| | follows | errs |
| --- | ---: | ---: |
{models_table}

Where an answer held a call that failed beside a good one, only the good one is gold. The model that
follows makes both again, so `compare` counts another tool.

`replay` finds every place, under its code:

| how it errs | places | found by `replay` | code |
| --- | ---: | ---: | --- |
{places}

## Times

Invented requests with tools, of about 4 KB with their answers, ten to a conversation. Processor time on one
core.

| requests | size of the log, MB | seconds to adopt | seconds for 1,000 |
| ---: | ---: | ---: | ---: |
{times}

One request of 1 MB, with its answer: {large:.1f} seconds.
"""


class Verdict(NamedTuple):
    """What adopting gave for the conversations of one verdict."""

    conversations: int
    answers: int
    confirmed: int
    corrected: int
    failed: int
    with_failure: int  # conversations


class TwoModels(NamedTuple):
    """What adopting, comparing and replaying gave with the model that follows and the one that errs."""

    adopted: Adopted
    comparison: Comparison
    runs: list[Replayed]
    planted: dict[str, tuple[int, str]]  # by the first question: the number of the answer, and how it errs


def read(name: str) -> list[Any]:
    """Return the lines of a file of the corpus."""
    path = Path(os.environ["SIGADAPT_CORPUS"], "talks", name)
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def talks() -> list[Any]:
    """Return the conversations with the tools and instructions that they had."""
    tools, systems = read("tools.json.gz")[0], read("systems.json.gz")[0]
    return [
        {**talk, "tools": tools.get(talk["tools"]), "system": systems.get(talk["system"])}
        for talk in read("talks.jsonl.gz")
    ]


def lines_of(talk: Any) -> list[Any]:
    """Return a line for each answer after the first question, as an application logs them."""
    keys = ("role", "content", "tool_calls", "tool_call_id")
    messages = [{key: each[key] for key in keys if key in each} for each in talk["messages"]]
    head = [{"role": "system", "content": talk["system"]}] if talk["system"] else []
    lines: list[Any] = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant" and any(each["role"] == "user" for each in messages[:number]):
            request = {"model": "m", "messages": [*head, *messages[:number]], "tools": talk["tools"] or []}
            lines.append({"request": request, "response": {"choices": [{"message": message}]}})
    return lines


def verdicts(conversations: Sequence[Any]) -> dict[bool, Verdict]:
    """Return what adopting each conversation alone gives, by the benchmark's verdict on it."""
    counts: Counter[tuple[bool, str]] = Counter()
    for talk in conversations:
        lines = lines_of(talk)
        if not lines:
            continue
        adopted = adopt(lines)
        if adopted.conversations != 1 or adopted.unread:
            raise ValueError(f"{talk['id']}: {adopted.counts()}")
        passed = bool(talk["passed"])
        answers = [line["response"]["choices"][0]["message"] for line in lines]
        failed = sum(each["count"] for each in adopted.failures if each["code"] == "tool_failed")
        counts[passed, "conversations"] += 1
        counts[passed, "answers"] += sum(bool(answer.get("tool_calls")) for answer in answers)
        whys: list[str] = [row.why for row in adopted.rows]
        reasons = Counter(whys)
        counts[passed, "confirmed"] += reasons["result"] + reasons["corrected"]
        counts[passed, "corrected"] += reasons["corrected"]
        counts[passed, "failed"] += failed
        counts[passed, "with_failure"] += failed > 0
    return {passed: Verdict(*(counts[passed, name] for name in Verdict._fields)) for passed in (True, False)}


def calls_in(message: Any) -> list[Call]:
    """Return the calls of a message of chat completions."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [Call(function["name"], json.loads(function["arguments"])) for function in functions]


def chosen_talks(conversations: Sequence[Any]) -> dict[str, Any]:
    """Return 40 conversations with calls that have an argument in words, by their first questions."""
    chosen: dict[str, Any] = {}
    for talk in conversations:
        question = next((each["content"] for each in talk["messages"] if each["role"] == "user"), None)
        calls = [call for each in talk["messages"] for call in calls_in(each)]
        has_text = any(isinstance(value, str) for call in calls for value in call.object.values())
        if talk["tools"] and question and question not in chosen and 2 <= len(calls) <= 12 and has_text:
            chosen[question] = talk
    return dict([*chosen.items()][::10][:40])


class Scripted:
    """A model that says what the record has, and errs in some places."""

    def __init__(self, chosen: dict[str, Any], planted: dict[str, tuple[int, str]]) -> None:
        self._chosen = chosen
        self._planted = planted

    def __call__(self, received: Received) -> Reply:
        """Return the answer that the record has after this request, or an error in its place."""
        messages = received.body["messages"]
        question = next(each["content"] for each in messages if each["role"] == "user")
        first = next(first for first in self._chosen if question.startswith(first))
        answers = [each for each in self._chosen[first]["messages"] if each["role"] == "assistant"]
        number = sum(each["role"] == "assistant" for each in messages)
        if self._planted.get(first, (-1, ""))[0] == number:
            return _wrong_answer(calls_in(answers[number])[0], self._planted[first][1])
        answer = answers[min(number, len(answers) - 1)]
        calls = calls_in(answer)
        return Answer(text=answer["content"] or (None if calls else "."), calls=calls)


def _wrong_answer(call: Call, kind: str) -> Answer:
    if kind == "words":
        return Answer(text="I would rather not.")
    if kind == "unknown tool":
        return Answer(calls=[Call("no_such_tool", {})])
    if kind == "bad arguments":
        return Answer(calls=[Call(call.name, {"nonsense": 1})])
    name = next(name for name, value in call.object.items() if isinstance(value, str))
    return Answer(calls=[Call(call.name, {**call.object, name: "elsewhere"})])


def planted_in(chosen: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Return the place of an error in every second conversation: its answer, and how the model errs there."""
    planted: dict[str, tuple[int, str]] = {}
    for number, (question, talk) in enumerate([*chosen.items()]):
        messages = talk["messages"]
        first_question = next(n for n, each in enumerate(messages) if each["role"] == "user")
        skipped = sum(each["role"] == "assistant" for each in messages[:first_question])
        answers = [each for each in messages if each["role"] == "assistant"]
        for index, answer in enumerate(answers):
            calls = calls_in(answer)
            has_text = len(calls) == 1 and any(isinstance(value, str) for value in calls[0].object.values())
            if number % 2 == 0 and index >= skipped and has_text and calls[0].name != "calculate":
                planted[question] = index, [*KINDS][number // 2 % len(KINDS)]
                break
    return planted


def two_models(conversations: Sequence[Any]) -> TwoModels:
    """Adopt some conversations, and compare and replay them with two scripted models."""
    chosen = chosen_talks(conversations)
    adopted = adopt([line for talk in chosen.values() for line in lines_of(talk)])
    planted = planted_in(chosen)
    with (
        LoopbackProvider(Scripted(chosen, {})) as follows,
        LoopbackProvider(Scripted(chosen, planted)) as errs,
    ):
        models = {
            name: dspy.LM(**provider.lm_options("openai"))
            for name, provider in (("follows", follows), ("errs", errs))
        }
        runs = [replay(adopted, lm, name=name) for name, lm in models.items()]
        return TwoModels(adopted, compare(adopted, models), runs, planted)


TOOL = {
    "type": "function",
    "function": {
        "name": "find_order",
        "description": "Find an order.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
    },
}


def invented_log(requests: int, size: int = 4_000) -> list[str]:
    """Return lines of about a size: conversations of ten requests, each with a call and its result."""
    lines: list[str] = []
    for number in range(requests // 10):
        filler = "Please be quick about it. " * (size // 38)
        messages: list[Any] = [{"role": "system", "content": filler}]
        for turn in range(5):
            call_id = f"call_{number}aB{turn}xY"
            function = {"name": "find_order", "arguments": json.dumps({"number": number * 10 + turn})}
            call = {"id": call_id, "type": "function", "function": function}
            messages.append({"role": "user", "content": f"Where is order {number * 10 + turn}?"})
            for answer in ({"content": None, "tool_calls": [call]}, {"content": f"It is at stop {turn}."}):
                message = {"role": "assistant", **answer}
                request = {"model": "m", "messages": [*messages], "tools": [TOOL]}
                line = {"request": request, "response": {"choices": [{"message": message}]}}
                lines.append(json.dumps(line))
                messages.append(message)
                if answer["content"] is None:
                    messages.append({"role": "tool", "tool_call_id": call_id, "content": "on its way"})
    return lines


def large_request(size: int = 1_000_000) -> str:
    """Return one line with a request of about a size: one long conversation."""
    count = size // 300
    messages: list[Any] = []
    for number in range(count):
        function = {"name": "find_order", "arguments": json.dumps({"number": number})}
        call = {"id": f"call_{number}aBxY", "type": "function", "function": function}
        messages.append({"role": "user", "content": f"Where is order {number}?"})
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "on its way"})
        messages.append({"role": "assistant", "content": f"It is at stop {number}."})
    messages.append({"role": "user", "content": "And now?"})
    request = {"model": "m", "messages": messages, "tools": [TOOL]}
    answer = {"role": "assistant", "content": "Done."}
    return json.dumps({"request": request, "response": {"choices": [{"message": answer}]}})


def seconds_of(lines: Sequence[str]) -> float:
    """Return the processor seconds that adopting takes."""
    start = time.process_time()
    adopt(lines)
    return time.process_time() - start


def _percent(part: int, whole: int) -> int:
    return round(100 * part / whole)


def page() -> str:
    """Return the page."""
    conversations = talks()
    by_verdict = verdicts(conversations)
    verdict_rows = [
        f"| {word} | {each.conversations} | {each.answers:,} | {_percent(each.confirmed, each.answers)}% "
        f"| {each.corrected} | {each.failed} "
        f"| {100 * each.failed / each.answers:.1f} |"
        for word, each in (("passed", by_verdict[True]), ("failed", by_verdict[False]))
    ]
    passed, failed = by_verdict[True], by_verdict[False]
    count = passed.conversations + failed.conversations
    with_failure = passed.with_failure + failed.with_failure
    two = two_models(conversations)
    documents = [each.document() for each in two.comparison.models]
    model_rows = [f"| conversations followed | {' | '.join(f'{run.followed:.0%}' for run in two.runs)} |"]
    for name in ("same_call", "other_arguments", "other_tool", "bad_call", "none", "called_anyway"):
        cells = " | ".join(str(document[name]) for document in documents)
        model_rows.append(f"| rows: {name.replace('_', ' ')} | {cells} |")
    found = Counter(departure.code for departure in two.runs[1].left)
    planted = Counter(kind for _, kind in two.planted.values())
    place_rows = [f"| {kind} | {planted[kind]} | {found[code]} | `{code}` |" for kind, code in KINDS.items()]
    time_rows: list[str] = []
    for size in (1_000, 2_500, 5_000, 10_000):
        lines = invented_log(size)
        seconds = seconds_of(lines)
        megabytes = sum(map(len, lines)) / 1e6
        time_rows.append(f"| {size:,} | {megabytes:.0f} | {seconds:.1f} | {1000 * seconds / size:.2f} |")
    return HEAD.format(
        stamp=stamp("dspy"),
        talks=len(conversations),
        models=len({talk["model"] for talk in conversations}),
        adopted=count,
        verdicts="\n".join(verdict_rows),
        with_failure=_percent(passed.with_failure, with_failure),
        without_failure=_percent(passed.conversations - passed.with_failure, count - with_failure),
        chosen=two.adopted.conversations,
        rows=len(two.adopted.rows),
        planted=len(two.planted),
        models_table="\n".join(model_rows),
        places="\n".join(place_rows),
        times="\n".join(time_rows),
        large=seconds_of([large_request()]),
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
