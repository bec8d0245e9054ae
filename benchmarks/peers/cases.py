"""The scripted runs: what is asked, what the model answers, and which class a run has, decided by code."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sigadapt.testing import Answer, Call, Failure, Received, Reply

CLASSES = ("right", "told", "lost", "silent", "cannot")
WIRES = ("openai", "anthropic", "gemini", "responses")
QUESTION = "Order two of Emma."
DONE = "Both copies of Emma are on their way."


@dataclass
class Facts:
    """What was seen: each step's outcome, what ran, and the requests of each step."""

    steps: list[dict[str, Any]]
    requests: list[list[Received]]
    hung: bool = False

    @property
    def ran(self) -> list[dict[str, Any]]:
        """Every call that began to run."""
        return self.steps[-1]["ran"]

    def count(self, name: str) -> int:
        """How often a tool began to run."""
        return sum(entry["name"] == name for entry in self.ran)

    def text(self, step: int, number: int = -1) -> str:
        """A request of a step, as text."""
        return json.dumps(self.requests[step][number].body) if self.requests[step] else ""

    @property
    def last(self) -> dict[str, Any]:
        """The last step's outcome."""
        return self.steps[-1]


Script = Callable[[int, int, Received], Reply]
"""From the step, the number of the request in it and the request, to the reply."""


@dataclass
class Case:
    """A run: its name, the right behaviour in a line, the setup, the steps, the script and the check."""

    group: str
    name: str
    right: str
    steps: Sequence[tuple[str, str, Any]]
    script: Script
    check: Callable[[Facts], str]
    setup: dict[str, Any] = field(default_factory=dict[str, Any])


def order(title: str = "Emma", copies: Any = 2) -> Call:
    """A call of `order`."""
    return Call("order", {"title": title, "copies": copies})


def stock(title: str = "Emma") -> Call:
    """A call of `stock`."""
    return Call("stock", {"title": title})


def calls(*made: Call, **more: Any) -> Answer:
    """A turn of calls."""
    return Answer(calls=list(made), **more)


def done(request: Received, text: str = DONE, finish: str | None = None, **more: Any) -> Reply:
    """The last answer: by `submit` where the request offers it, else as text."""
    if not offers_submit(request):
        return Answer(text=text, finish=finish, **more)
    arguments: Any = {"answer": text}
    if finish and request.wire in {"openai", "responses"}:
        arguments = json.dumps(arguments)[:-2]
    if finish and request.wire not in {"openai", "responses"}:
        return Answer(text=text, finish=finish, **more)
    return calls(Call("submit", arguments), finish=finish, **more)


def offers_submit(request: Received) -> bool:
    """Whether the program ends its run by calling `submit`."""
    return '"submit"' in json.dumps(request.body.get("tools"))


def rounds(*turns: Any, then: str = DONE) -> Script:
    """A script of the turns of the first step, then the last answer; later steps get the last answer."""

    def script(step: int, number: int, request: Received) -> Reply:
        if step == 0 and number < len(turns):
            turn = turns[number]
            return turn(request) if callable(turn) else turn
        return done(request, then)

    return script


def stays(*turns: Any) -> Script:
    """The same, where the last turn of the first step repeats."""

    def script(step: int, number: int, request: Received) -> Reply:
        if step:
            return done(request)
        turn = turns[min(number, len(turns) - 1)]
        return turn(request) if callable(turn) else turn

    return script


# Checks


def model_reads(*words: str, runs_order: int = 1) -> Callable[[Facts], str]:
    """The run ends with its answer, the model has read these words, and the order ran so often."""

    def check(facts: Facts) -> str:
        if facts.count("order") > runs_order:
            return "silent"
        first = facts.steps[0]
        if first["answer"] == DONE and facts.count("order") == runs_order:
            read = facts.text(0).lower()
            return "right" if all(word.lower() in read for word in words) else "silent"
        if first["answer"]:
            return "silent"
        return kept(facts)

    return check


def kept(facts: Facts) -> str:
    """A run that failed: told where an error leaves and the next step goes on, running nothing twice."""
    first = facts.steps[0]
    if not first["error"] and not first["mark"]:
        return "silent"
    last = facts.last
    orders = facts.count("order")
    if orders > 1:
        return "lost"
    went_on = last["answer"] == DONE and last is not first
    question = QUESTION in facts.text(-1)
    result = "Ordered 2 of Emma" in facts.text(-1) or not orders
    return "told" if went_on and question and result else "lost"


def goes_on(facts: Facts) -> str:
    """An error leaves, and the next step ends with everything that was done before, once."""
    if not facts.steps[0]["error"]:
        return "silent"
    verdict = kept(facts)
    body = facts.text(-1)
    return "right" if verdict == "told" and body.count(QUESTION) == 1 else verdict


def cut_is_told(*words: str) -> Callable[[Facts], str]:
    """Half an answer is no answer: an error, or a field of the result, says so."""

    def check(facts: Facts) -> str:
        first = facts.steps[0]
        if first["answer"] == DONE:
            return "right"
        seen = f"{first['error']} {first['mark']}".lower()
        if first["error"]:
            told = any(word in seen for word in words)
            return kept(facts) if told or facts.count("order") else "told"
        return "told" if any(word in seen for word in words) else "silent"

    return check


def never_runs(name: str = "order") -> Callable[[Facts], str]:
    """A call that cannot be meant does not run; the model or the program is told."""

    def check(facts: Facts) -> str:
        first = facts.steps[0]
        if facts.count(name):
            return "silent"
        if first["error"]:
            return "told"
        read = facts.text(0).lower()
        if first["answer"] != DONE and any(word in first["mark"] for word in ("invalid", "length")):
            return "told"
        told = any(
            word in read for word in ("error", "invalid", "retry", "unknown", "not found", "fix", "valid")
        )
        return "right" if first["answer"] == DONE and told and len(facts.requests[0]) > 1 else "silent"

    return check


def stops(requests: int | None = None, runs: int | None = None, word: str = "") -> Callable[[Facts], str]:
    """The limit holds, an error names it, and the run can go on without running anything twice."""

    def check(facts: Facts) -> str:
        first = facts.steps[0]
        began = first["ran"]
        if not first["error"] and not first["mark"]:
            return "silent"
        is_late = requests is not None and len(facts.requests[0]) > requests
        if runs is not None and len(began) > runs:
            is_late = True
        last = facts.last
        repeated = facts.count("order") > 1
        went_on = last["answer"] == DONE and QUESTION in facts.text(-1) and not repeated
        if not went_on:
            return "lost"
        return "right" if first["error"] and not is_late else "told"

    return check


def overlap(name: str, results: Sequence[str]) -> Callable[[Facts], str]:
    """The calls ran at the same time, and their results stand in the order of the calls."""

    def check(facts: Facts) -> str:
        if facts.steps[0]["answer"] != DONE:
            return "lost" if facts.steps[0]["error"] else "silent"
        spans = [entry for entry in facts.ran if entry["name"] == name and entry["ended"]]
        body = facts.text(0)
        places = [body.find(result) for result in results]
        if -1 in places or places != sorted(places):
            return "silent"
        together = max(entry["began"] for entry in spans) < min(entry["ended"] for entry in spans)
        return "right" if together else "cannot"

    return check


def approval(runs: list[list[Any]], *words: str) -> Callable[[Facts], str]:
    """Nothing runs before the decision; afterwards exactly this has run, and the model has read it."""

    def check(facts: Facts) -> str:
        before = [entry for entry in facts.steps[0]["ran"] if entry["name"] == "order"]
        if before:
            return "silent"
        if not facts.steps[0]["waiting"]:
            return "lost" if facts.steps[0]["error"] else "silent"
        ran = [[e["args"]["title"], e["args"]["copies"]] for e in facts.ran if e["name"] == "order"]
        if ran != runs:
            return "silent" if len(ran) >= len(runs) else "lost"
        if facts.count("stock") > 1:
            return "lost"
        if facts.last["answer"] != DONE:
            return "lost" if facts.last["error"] else "silent"
        return "right" if all(word in facts.text(-1) for word in words) else "silent"

    return check


def conversation(has: Sequence[str], lacks: Sequence[str] = (), step: int = -1) -> Callable[[Facts], str]:
    """The request of a step has these words and lacks those, and its answer came."""

    def check(facts: Facts) -> str:
        outcome = facts.steps[step]
        body = facts.text(step, 0)
        if outcome["error"] or not outcome["answer"]:
            return "lost"
        if any(word in body for word in lacks):
            return "silent"
        return "right" if all(body.count(word) == 1 for word in has) else "silent"

    return check


ASK = ("ask", "sync", QUESTION)
AASK = ("ask", "async", QUESTION)
GO_ON = ("go_on", "sync", None)
FAIL_AND_GO_ON = (ASK, GO_ON)


def cases() -> list[Case]:
    """Every case, in the order of the page."""
    return [
        *tool_cases(), *answer_cases(), *limit_cases(), *approval_cases(), *turn_cases(),
        *branch_cases(), *error_cases(), *provider_cases(), *stream_cases(),
    ]  # fmt: skip


def tool_cases() -> list[Case]:
    """Tools that fail, and calls that cannot be meant."""
    group = "tools that fail"
    refused = "The function doesn't run, and the model or the program is told."
    retry = "The model reads the error, and the run goes on."
    found = [
        Case(group, "a tool raises after an order", retry, FAIL_AND_GO_ON, rounds(calls(order()), calls(stock("Nowhere"))), model_reads("no such title")),
        Case(group, "a tool raises beside an order", "Both results reach the model.", FAIL_AND_GO_ON, rounds(calls(order(), stock("Nowhere"))), model_reads("no such title", "Ordered 2")),
        Case(group, "a tool raises beside an order, async", "Both results reach the model.", (AASK, ("go_on", "async", None)), rounds(calls(order(), stock("Nowhere"))), model_reads("no such title", "Ordered 2")),
        Case(group, "a tool raises StopIteration", retry, FAIL_AND_GO_ON, rounds(calls(order()), calls(Call("ends", {"title": "Emma"}))), model_reads("Ordered 2"), {"tools": ["order", "ends"]}),
        Case(group, "an unknown tool beside an order", "The order runs; the model reads that there is no such tool.", FAIL_AND_GO_ON, rounds(calls(order(), Call("burn", {"title": "Emma"}))), model_reads("burn", "Ordered 2")),
        Case(group, "an async tool in a sync program", "The tool runs.", (ASK,), rounds(calls(Call("later", {"title": "Emma"}))), tool_ran, {"tools": ["later"]}),
        Case(group, "a blocking tool in an async program", "The event loop goes on meanwhile.", (("ask", "ticking", QUESTION),), rounds(calls(Call("slow", {"title": "Emma"}))), loop_is_free, {"tools": ["slow"]}),
    ]  # fmt: skip
    faulty = {
        "a wrong type": order(copies="a few"),
        "a missing argument": Call("order", {"title": "Emma"}),
        "arguments that aren't JSON": Call("order", '{"title": "Emma", copies: 2}'),
        "a key twice": Call("order", '{"title": "Emma", "copies": 2, "copies": 200}'),
        "an array of arguments": Call("order", '["Emma", 2]'),
        "a fraction of a copy": order(copies=2.5),
        "an integer as text": order(copies="2 or 20"),
    }
    for name, call in faulty.items():
        found.append(Case(group, name, refused, (ASK,), rounds(calls(call)), never_runs()))
    return found


def tool_ran(facts: Facts) -> str:
    """The model reads the tool's result, or an error."""
    first = facts.steps[0]
    body = facts.text(0)
    if first["answer"] == DONE and "later Emma" in body:
        return "right"
    return "told" if first["error"] or "rror" in body else "silent"


def loop_is_free(facts: Facts) -> str:
    """Ticks fell into the time of the blocking tool."""
    if facts.steps[0]["answer"] != DONE:
        return "lost"
    (entry,) = facts.ran
    inside = [tick for tick in facts.last["ticks"] if entry["began"] < tick < entry["ended"]]
    return "right" if len(inside) > 4 else "silent"


def answer_cases() -> list[Case]:
    """Answers that are cut off, empty, refused or filtered."""
    group = "cut answers"
    told = "An error or a field of the result says so; what was done is kept."
    again = "The run isn't taken as ended; what was done is kept."
    half = "Both copies of Em"
    words = ("length", "max_tokens", "cut", "limit", "filter", "refus", "incomplete", "empty")
    refusal = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, "refusal": "I can't help with that."}}], "id": "x", "object": "chat.completion", "created": 1, "model": "gpt-4o", "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}  # fmt: skip
    null = {**refusal, "choices": [{"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": None}}]}  # fmt: skip
    ends = {
        "the answer is cut off by its limit": lambda request: done(request, half, "length"),
        "the answer is filtered": lambda request: Answer(text=half, finish="content_filter"),
        "thinking that ate the answer": null,
        "a refusal": refusal,
        "an empty answer": Answer(text=""),
        "calls are announced and none comes": Answer(text="", finish="tool_calls"),
        "a body that isn't JSON": b"<html>bad gateway</html>",
    }
    found: list[Case] = []
    for name, end in ends.items():
        found.append(Case(group, name, told, FAIL_AND_GO_ON, rounds(end), cut_is_told(*words)))
        found.append(
            Case(
                group,
                f"{name}, after an order",
                again,
                FAIL_AND_GO_ON,
                rounds(calls(order()), end),
                cut_is_told(*words),
            )
        )
    cut = calls(Call("order", '{"title": "Emma", "copies": 2'), finish="length")
    found.append(
        Case(
            group,
            "a call is cut off by its limit",
            "It doesn't run, and somebody is told.",
            (ASK,),
            rounds(cut),
            never_runs(),
        )
    )
    return found  # fmt: skip


def limit_cases() -> list[Case]:
    """Limits of a run."""
    group = "limits"
    one = Answer(calls=[order()], usage=(1000, 50))
    more = Answer(calls=[stock()], usage=(1000, 50))
    right = "The limit holds, an error says so, and the run goes on without running anything twice."
    return [
        Case(group, "requests", right, FAIL_AND_GO_ON, stays(one, more), stops(requests=2), {"limits": {"requests": 2}}),
        Case(group, "requests, async", right, (AASK, ("go_on", "async", None)), stays(one, more), stops(requests=2), {"limits": {"requests": 2}}),
        Case(group, "tokens", right, FAIL_AND_GO_ON, stays(one, more), stops(requests=2), {"limits": {"total_tokens": 2000}}),
        Case(group, "tool calls", right, FAIL_AND_GO_ON, stays(one, calls(stock("A"), stock("B"))), stops(runs=2), {"limits": {"tool_calls": 2}}),
        Case(group, "seconds", right, FAIL_AND_GO_ON, stays(calls(Call("slow", {"title": "Emma"}))), stops(requests=1), {"limits": {"seconds": 0.2}, "tools": ["slow"]}),
        Case(group, "not reached", "The run ends.", (ASK,), rounds(calls(order())), model_reads("Ordered 2"), {"limits": {"requests": 5}}),
        Case(group, "what a run used", "Requests and tokens are those of the provider.", (ASK,), rounds(one), usage_is(2, 1010, 55)),
    ]  # fmt: skip


def usage_is(*counts: int) -> Callable[[Facts], str]:
    """The library gives these counts."""

    def check(facts: Facts) -> str:
        used = facts.steps[0]["usage"]
        if used is None:
            return "cannot"
        return "right" if tuple(used) == counts else "silent"

    return check


def approval_cases() -> list[Case]:
    """A person decides about calls."""
    group = "approvals"
    one = rounds(calls(order()))
    two = rounds(calls(stock(), order()))
    pair = rounds(calls(order("Emma"), order("Emma")))
    needs = {"confirm": ["order"]}
    yes = ("decide", "sync", {"order": True})
    return [
        Case(group, "yes", "It runs once, after the yes.", (ASK, yes), one, approval([["Emma", 2]], "Ordered 2"), needs),
        Case(group, "yes, async", "It runs once, after the yes.", (AASK, ("decide", "async", {"order": True})), one, approval([["Emma", 2]], "Ordered 2"), needs),
        Case(group, "no, with a reason", "It doesn't run; the model reads the reason.", (ASK, ("decide", "sync", {"order": "Too dear today."})), one, approval([], "Too dear today."), needs),
        Case(group, "yes, with other arguments", "What the person wrote runs.", (ASK, ("decide", "sync", {"order": {"title": "Emma", "copies": 1}})), one, approval([["Emma", 1]], "Ordered 1"), needs),
        Case(group, "beside a call that needs none", "The other call runs once.", (ASK, yes), two, approval([["Emma", 2]], "Ordered 2", "7 of Emma"), needs),
        Case(group, "two at once", "Both run, once each.", (ASK, yes), pair, approval([["Emma", 2], ["Emma", 2]], "Ordered 2"), needs),
        Case(group, "saved as text between", "It runs once, after the yes.", (ASK, ("reload", "", None), yes), one, approval([["Emma", 2]], "Ordered 2"), needs),
        Case(group, "the request after the yes fails", "It goes on; the order ran once.", (ASK, yes, GO_ON), failing_after_yes, after_yes, needs),
        Case(group, "what was saved is decided twice", "The order runs once.", (ASK, yes, yes), one, decided_twice, needs),
        Case(group, "a bad call isn't shown to the person", "The model is told; nobody is asked.", (ASK,), rounds(calls(Call("order", {"title": "Emma"}))), never_asked, needs),
    ]  # fmt: skip


def failing_after_yes(step: int, number: int, request: Received) -> Reply:
    """A script in which the request after the decision fails."""
    if step == 0:
        return calls(order())
    return Failure(400) if step == 1 else done(request)


def after_yes(facts: Facts) -> str:
    """The order ran once, and the run ended."""
    if not facts.steps[0]["waiting"]:
        return "silent"
    if facts.count("order") != 1:
        return "lost"
    ended = facts.last["answer"] == DONE and "Ordered 2" in facts.text(-1)
    return "right" if ended else "lost"


def decided_twice(facts: Facts) -> str:
    """The order ran once."""
    if facts.count("order") == 1:
        return "told" if facts.last["error"] else "right"
    return "silent" if facts.count("order") else "lost"


def never_asked(facts: Facts) -> str:
    """Nobody was asked, nothing ran."""
    if facts.count("order") or facts.steps[0]["waiting"]:
        return "silent"
    return "right" if facts.steps[0]["answer"] == DONE else "told"


def turn_cases() -> list[Case]:
    """The calls of a turn."""
    group = "parallel tools"
    slow = calls(*(Call("slow", {"title": title}) for title in "ABC"))
    later = calls(*(Call("later", {"title": title}) for title in "ABC"))
    limited = calls(order(), Call("slow", {"title": "A"}))
    right = "They run at the same time; results stand in the order of the calls."
    cancel = "What ended is kept; the run goes on and runs nothing twice."
    return [
        Case(group, "blocking tools, sync", right, (ASK,), rounds(slow), overlap("slow", ["slow A", "slow B", "slow C"]), {"tools": ["slow"]}),
        Case(group, "blocking tools, async", right, (AASK,), rounds(slow), overlap("slow", ["slow A", "slow B", "slow C"]), {"tools": ["slow"]}),
        Case(group, "async tools, async", right, (AASK,), rounds(later), overlap("later", ["later A", "later B", "later C"]), {"tools": ["later"]}),
        Case(group, "a tool's time limit", "It fails for the model; the other result is kept.", (ASK,), rounds(limited), model_reads("Ordered 2", "time"), {"tools": ["order", "slow"], "timeouts": {"slow": 0.1}}),
        Case(group, "a tool's time limit, async", "It fails for the model; the other result is kept.", (AASK,), rounds(calls(order(), Call("later", {"title": "A"}))), model_reads("Ordered 2", "time"), {"tools": ["order", "later"], "timeouts": {"later": 0.1}}),
        Case(group, "a sequential tool", "Its turn runs one by one.", (ASK,), rounds(slow), one_by_one, {"tools": ["slow"], "sequential": ["slow"]}),
        Case(group, "cancelled beside an order that ended", cancel, (("ask", "cancel later", QUESTION), ("go_on", "async", None)), rounds(calls(order(), Call("later", {"title": "A"}))), goes_on, {"tools": ["order", "later"]}),
        Case(group, "cancelled in the second round", cancel, (("ask", "cancel later", QUESTION), ("go_on", "async", None)), rounds(calls(order()), calls(Call("later", {"title": "A"}))), goes_on, {"tools": ["order", "later"]}),
    ]  # fmt: skip


def one_by_one(facts: Facts) -> str:
    """No call began before the one before it ended."""
    if facts.steps[0]["answer"] != DONE:
        return "lost"
    pairs = zip(facts.ran, facts.ran[1:], strict=False)
    return "right" if all(before["ended"] <= after["began"] for before, after in pairs) else "silent"


def branch_cases() -> list[Case]:
    """Conversations and their branches."""
    group = "conversations"
    first = rounds(calls(order()))
    follow = ("follow", "sync", "How long?")
    return [
        Case(group, "a second question", "The request has the first question, its call and the second.", (ASK, follow), first, conversation((QUESTION, "How long?", "Ordered 2 of Emma"))),
        Case(group, "two questions after one answer", "The second branch doesn't see the first.", (ASK, ("branch", "sync", "How long?"), ("branch", "sync", "How much?")), first, conversation((QUESTION, "How much?", "Ordered 2 of Emma"), ("How long?",))),
        Case(group, "a branch that failed", "The next branch doesn't see it.", (ASK, ("branch", "sync", "How long?"), ("branch", "sync", "How much?")), failing_branch, conversation((QUESTION, "How much?"), ("How long?",))),
        Case(group, "saved as text between", "Nothing is missing.", (ASK, ("reload", "", None), follow), first, conversation((QUESTION, "How long?", "Ordered 2 of Emma"))),
        Case(group, "three questions", "Each stands in the last request once.", (ASK, follow, ("follow", "sync", "How much?")), first, conversation((QUESTION, "How long?", "How much?"))),
    ]  # fmt: skip


def failing_branch(step: int, number: int, request: Received) -> Reply:
    """A script in which the first branch fails."""
    if step == 0 and number == 0:
        return calls(order())
    return Failure(400) if step == 1 else done(request)


def error_cases() -> list[Case]:
    """Going on after an error."""
    group = "after an error"
    right = "The run goes on from where it was and runs nothing twice."
    found: list[Case] = []
    for status in (400, 429, 500):
        found.append(
            Case(
                group,
                f"a {status} in round two",
                right,
                FAIL_AND_GO_ON,
                stays(calls(order()), Failure(status)),
                goes_on,
            )
        )
    found.append(
        Case(
            group,
            "a 500 in round two, async",
            right,
            (AASK, ("go_on", "async", None)),
            stays(calls(order()), Failure(500)),
            goes_on,
        )
    )
    found.append(
        Case(
            group,
            "a 500 in round three",
            right,
            FAIL_AND_GO_ON,
            stays(calls(order()), calls(stock()), Failure(500)),
            goes_on,
        )
    )
    found.append(
        Case(
            group,
            "a 500 in round one",
            "The question isn't lost.",
            FAIL_AND_GO_ON,
            stays(Failure(500)),
            goes_on,
        )
    )
    found.append(
        Case(
            group,
            "a 500 in round two, saved as text",
            right,
            (ASK, ("reload", "", None), GO_ON),
            stays(calls(order()), Failure(500)),
            goes_on,
        )
    )
    return found  # fmt: skip


def provider_cases() -> list[Case]:
    """The same on other wires."""
    group = "other providers"
    found: list[Case] = []
    signed = {"reasoning": "Hm.", "signature": "c2lnbmVk"}
    for wire in WIRES[1:]:
        setup = {"wire": wire}
        found.append(
            Case(
                group,
                f"{wire}: two calls at once",
                "Both results reach the model.",
                (ASK,),
                rounds(calls(order(), stock())),
                model_reads("Ordered 2", "7 of Emma"),
                setup,
            )
        )
        found.append(
            Case(
                group,
                f"{wire}: a 500 in round two",
                "It goes on and runs nothing twice.",
                FAIL_AND_GO_ON,
                stays(calls(order()), Failure(500)),
                goes_on,
                setup,
            )
        )
        found.append(
            Case(
                group,
                f"{wire}: cut off by its limit",
                "An error or a field of the result says so.",
                FAIL_AND_GO_ON,
                rounds(calls(order()), lambda request: done(request, "Both cop", "length")),
                cut_is_told("length", "max", "limit", "cut", "incomplete"),
                setup,
            )
        )
        found.append(
            Case(
                group,
                f"{wire}: signed thinking",
                "The signature goes back unchanged.",
                (ASK,),
                rounds(calls(order(), **signed)),
                model_reads("c2lnbmVk", "Ordered 2"),
                setup,
            )
        )
    return found  # fmt: skip


def stream_cases() -> list[Case]:
    """The answer as it is written."""
    group = "streaming"
    streamed = ("ask", "streamed", QUESTION)
    return [
        Case(group, "the answer comes in pieces", "The pieces are the answer.", (streamed,), rounds(), pieces_are_answer),
        Case(group, "after a tool ran", "The pieces are the answer.", (streamed,), rounds(calls(order())), pieces_are_answer),
        Case(group, "a 500 in round two", "It goes on and runs nothing twice.", (streamed, ("go_on", "async", None)), stays(calls(order()), Failure(500)), goes_on),
        Case(group, "cut off by its limit", "An error or a field of the result says so.", (streamed, GO_ON), rounds(lambda request: done(request, "Both copies of Em", "length")), cut_is_told("length", "max", "limit", "cut", "incomplete")),
    ]  # fmt: skip


def pieces_are_answer(facts: Facts) -> str:
    """There were several pieces, which make the answer."""
    first = facts.steps[0]
    if first["error"]:
        return "lost"
    if len(first["pieces"]) < 2:
        return "cannot"
    return "right" if "".join(first["pieces"]) == DONE else "silent"
