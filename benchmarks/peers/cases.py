"""The scripted runs: what is asked, what the model answers, what is right, and the check that decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.peers.checks import (
    Check,
    after_yes,
    approval,
    conversation,
    cut_is_told,
    decided_twice,
    goes_on,
    loop_is_free,
    model_reads,
    never_asked,
    never_runs,
    one_by_one,
    overlap,
    pieces_are_answer,
    stops,
    tool_ran,
    usage_is,
)
from benchmarks.peers.scripts import (
    QUESTION,
    Script,
    body_without_text,
    calls,
    done,
    failing_after_yes,
    failing_branch,
    order,
    rounds,
    stays,
    stock,
)
from sigadapt.testing import Answer, Call, Failure

WIRES = ("openai", "anthropic", "gemini", "responses")


@dataclass
class Case:
    """A run: its name, the right behaviour in a line, the setup, the steps, the script and the check."""

    group: str
    name: str
    right: str
    steps: Sequence[tuple[str, str, Any]]
    script: Script
    check: Check
    setup: dict[str, Any] = field(default_factory=dict[str, Any])


ASK = ("ask", "sync", QUESTION)
AASK = ("ask", "async", QUESTION)
GO_ON = ("go_on", "sync", None)
FAIL_AND_GO_ON = (ASK, GO_ON)


def cases() -> list[Case]:
    """Every case, in the order of the page."""
    return [
        *tool_cases(),
        *answer_cases(),
        *limit_cases(),
        *approval_cases(),
        *turn_cases(),
        *branch_cases(),
        *error_cases(),
        *provider_cases(),
        *stream_cases(),
    ]


def tool_cases() -> list[Case]:
    """Tools that fail, and calls that cannot be meant."""
    case = partial(Case, "tools that fail")
    refused = "The function doesn't run, and the model or the program is told."
    retry = "The model reads the error, and the run goes on."
    found = [
        case(
            "a tool raises after an order",
            retry,
            FAIL_AND_GO_ON,
            rounds(calls(order()), calls(stock("Nowhere"))),
            model_reads("no such title"),
        ),
        case(
            "a tool raises beside an order",
            "Both results reach the model.",
            FAIL_AND_GO_ON,
            rounds(calls(order(), stock("Nowhere"))),
            model_reads("no such title", "Ordered 2"),
        ),
        case(
            "a tool raises beside an order, async",
            "Both results reach the model.",
            (AASK, ("go_on", "async", None)),
            rounds(calls(order(), stock("Nowhere"))),
            model_reads("no such title", "Ordered 2"),
        ),
        case(
            "a tool raises StopIteration",
            retry,
            FAIL_AND_GO_ON,
            rounds(calls(order()), calls(Call("ends", {"title": "Emma"}))),
            model_reads("Ordered 2"),
            {"tools": ["order", "ends"]},
        ),
        case(
            "an unknown tool beside an order",
            "The order runs; the model reads that there is no such tool.",
            FAIL_AND_GO_ON,
            rounds(calls(order(), Call("burn", {"title": "Emma"}))),
            model_reads("burn", "Ordered 2"),
        ),
        case(
            "an async tool in a sync program",
            "The tool runs.",
            (ASK,),
            rounds(calls(Call("later", {"title": "Emma"}))),
            tool_ran,
            {"tools": ["later"]},
        ),
        case(
            "a blocking tool in an async program",
            "The event loop goes on meanwhile.",
            (("ask", "ticking", QUESTION),),
            rounds(calls(Call("slow", {"title": "Emma"}))),
            loop_is_free,
            {"tools": ["slow"]},
        ),
    ]
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
        found.append(case(name, refused, (ASK,), rounds(calls(call)), never_runs()))
    return found


def answer_cases() -> list[Case]:
    """Answers that are cut off, empty, refused or filtered."""
    case = partial(Case, "cut answers")
    told = "An error or a field of the result says so; what was done is kept."
    again = "The run isn't taken as ended; what was done is kept."
    half = "Both copies of Em"
    words = ("length", "max_tokens", "cut", "limit", "filter", "refus", "incomplete", "empty")
    refusal = body_without_text("stop", "I can't help with that.")
    null = body_without_text("length")
    ends = {
        "the answer is cut off by its limit": lambda request: done(request, half, "length"),
        "the answer is filtered": Answer(text=half, finish="content_filter"),
        "thinking that ate the answer": null,
        "a refusal": refusal,
        "an empty answer": Answer(text=""),
        "calls are announced and none comes": Answer(text="", finish="tool_calls"),
        "a body that isn't JSON": b"<html>bad gateway</html>",
    }
    found: list[Case] = []
    for name, end in ends.items():
        found.append(case(name, told, FAIL_AND_GO_ON, rounds(end), cut_is_told(*words)))
        found.append(
            case(
                f"{name}, after an order",
                again,
                FAIL_AND_GO_ON,
                rounds(calls(order()), end),
                cut_is_told(*words),
            )
        )
    cut = calls(Call("order", '{"title": "Emma", "copies": 2'), finish="length")
    found.append(
        case(
            "a call is cut off by its limit",
            "It doesn't run, and somebody is told.",
            (ASK,),
            rounds(cut),
            never_runs(),
        )
    )
    return found


def limit_cases() -> list[Case]:
    """Limits of a run."""
    case = partial(Case, "limits")
    one = Answer(calls=[order()], usage=(1000, 50))
    more = Answer(calls=[stock()], usage=(1000, 50))
    right = "The limit holds, an error says so, and the run goes on without running anything twice."
    return [
        case(
            "requests",
            right,
            FAIL_AND_GO_ON,
            stays(one, more),
            stops(requests=2),
            {"limits": {"requests": 2}},
        ),
        case(
            "requests, async",
            right,
            (AASK, ("go_on", "async", None)),
            stays(one, more),
            stops(requests=2),
            {"limits": {"requests": 2}},
        ),
        case(
            "tokens",
            right,
            FAIL_AND_GO_ON,
            stays(one, more),
            stops(requests=2),
            {"limits": {"total_tokens": 2000}},
        ),
        case(
            "tool calls",
            right,
            FAIL_AND_GO_ON,
            stays(one, calls(stock("A"), stock("B"))),
            stops(runs=2),
            {"limits": {"tool_calls": 2}},
        ),
        case(
            "seconds",
            right,
            FAIL_AND_GO_ON,
            stays(calls(Call("slow", {"title": "Emma"}))),
            stops(requests=1),
            {"limits": {"seconds": 0.2}, "tools": ["slow"]},
        ),
        case(
            "not reached",
            "The run ends.",
            (ASK,),
            rounds(calls(order())),
            model_reads("Ordered 2"),
            {"limits": {"requests": 5}},
        ),
        case(
            "what a run used",
            "Requests and tokens are those of the provider.",
            (ASK,),
            rounds(one),
            usage_is(2, 1010, 55),
        ),
    ]


def approval_cases() -> list[Case]:
    """A person decides about calls."""
    case = partial(Case, "approvals")
    one = rounds(calls(order()))
    two = rounds(calls(stock(), order()))
    pair = rounds(calls(order("Emma"), order("Emma")))
    needs = {"confirm": ["order"]}
    yes = ("decide", "sync", {"order": True})
    return [
        case(
            "yes",
            "It runs once, after the yes.",
            (ASK, yes),
            one,
            approval([["Emma", 2]], "Ordered 2"),
            needs,
        ),
        case(
            "yes, async",
            "It runs once, after the yes.",
            (AASK, ("decide", "async", {"order": True})),
            one,
            approval([["Emma", 2]], "Ordered 2"),
            needs,
        ),
        case(
            "no, with a reason",
            "It doesn't run; the model reads the reason.",
            (ASK, ("decide", "sync", {"order": "Too dear today."})),
            one,
            approval([], "Too dear today."),
            needs,
        ),
        case(
            "yes, with other arguments",
            "What the person wrote runs.",
            (ASK, ("decide", "sync", {"order": {"title": "Emma", "copies": 1}})),
            one,
            approval([["Emma", 1]], "Ordered 1"),
            needs,
        ),
        case(
            "beside a call that needs none",
            "The other call runs once.",
            (ASK, yes),
            two,
            approval([["Emma", 2]], "Ordered 2", "7 of Emma"),
            needs,
        ),
        case(
            "two at once",
            "Both run, once each.",
            (ASK, yes),
            pair,
            approval([["Emma", 2], ["Emma", 2]], "Ordered 2"),
            needs,
        ),
        case(
            "saved as text between",
            "It runs once, after the yes.",
            (ASK, ("reload", "", None), yes),
            one,
            approval([["Emma", 2]], "Ordered 2"),
            needs,
        ),
        case(
            "the request after the yes fails",
            "It goes on; the order ran once.",
            (ASK, yes, GO_ON),
            failing_after_yes,
            after_yes,
            needs,
        ),
        case(
            "what was saved is decided twice",
            "The order runs once.",
            (ASK, yes, yes),
            one,
            decided_twice,
            needs,
        ),
        case(
            "a bad call isn't shown to the person",
            "The model reads the error; no one is asked.",
            (ASK, yes),
            rounds(calls(Call("order", {"title": "Emma"}))),
            never_asked,
            needs,
        ),
    ]


def turn_cases() -> list[Case]:
    """The calls of a turn."""
    case = partial(Case, "parallel tools")
    slow = calls(*(Call("slow", {"title": title}) for title in "ABC"))
    later = calls(*(Call("later", {"title": title}) for title in "ABC"))
    limited = calls(order(), Call("slow", {"title": "A"}))
    right = "They run at the same time; results stand in the order of the calls."
    cancel = "What ended is kept; the run goes on and runs nothing twice."
    return [
        case(
            "blocking tools, sync",
            right,
            (ASK,),
            rounds(slow),
            overlap("slow", ["slow A", "slow B", "slow C"]),
            {"tools": ["slow"]},
        ),
        case(
            "blocking tools, async",
            right,
            (AASK,),
            rounds(slow),
            overlap("slow", ["slow A", "slow B", "slow C"]),
            {"tools": ["slow"]},
        ),
        case(
            "async tools, async",
            right,
            (AASK,),
            rounds(later),
            overlap("later", ["later A", "later B", "later C"]),
            {"tools": ["later"]},
        ),
        case(
            "a tool's time limit",
            "It fails for the model; the other result is kept.",
            (ASK,),
            rounds(limited),
            model_reads("Ordered 2", "time"),
            {"tools": ["order", "slow"], "timeouts": {"slow": 0.1}},
        ),
        case(
            "a tool's time limit, async",
            "It fails for the model; the other result is kept.",
            (AASK,),
            rounds(calls(order(), Call("later", {"title": "A"}))),
            model_reads("Ordered 2", "time"),
            {"tools": ["order", "later"], "timeouts": {"later": 0.1}},
        ),
        case(
            "a sequential tool",
            "Its turn runs one by one.",
            (ASK,),
            rounds(slow),
            one_by_one,
            {"tools": ["slow"], "sequential": ["slow"]},
        ),
        case(
            "cancelled beside an order that ended",
            cancel,
            (("ask", "cancel later", QUESTION), ("go_on", "async", None)),
            rounds(calls(order(), Call("later", {"title": "A"}))),
            goes_on,
            {"tools": ["order", "later"]},
        ),
        case(
            "cancelled in the second round",
            cancel,
            (("ask", "cancel later", QUESTION), ("go_on", "async", None)),
            rounds(calls(order()), calls(Call("later", {"title": "A"}))),
            goes_on,
            {"tools": ["order", "later"]},
        ),
    ]


def branch_cases() -> list[Case]:
    """Conversations and their branches."""
    case = partial(Case, "conversations")
    first = rounds(calls(order()))
    follow = ("follow", "sync", "How long?")
    return [
        case(
            "a second question",
            "The request has the first question, its call and the second.",
            (ASK, follow),
            first,
            conversation((QUESTION, "How long?", "Ordered 2 of Emma")),
        ),
        case(
            "two questions after one answer",
            "The second branch doesn't see the first.",
            (ASK, ("branch", "sync", "How long?"), ("branch", "sync", "How much?")),
            first,
            conversation((QUESTION, "How much?", "Ordered 2 of Emma"), ("How long?",)),
        ),
        case(
            "a branch that failed",
            "The next branch doesn't see it.",
            (ASK, ("branch", "sync", "How long?"), ("branch", "sync", "How much?")),
            failing_branch,
            conversation((QUESTION, "How much?"), ("How long?",)),
        ),
        case(
            "saved as text between",
            "Nothing is missing.",
            (ASK, ("reload", "", None), follow),
            first,
            conversation((QUESTION, "How long?", "Ordered 2 of Emma")),
        ),
        case(
            "three questions",
            "Each is in the last request once.",
            (ASK, follow, ("follow", "sync", "How much?")),
            first,
            conversation((QUESTION, "How long?", "How much?")),
        ),
    ]


def error_cases() -> list[Case]:
    """Going on after an error."""
    case = partial(Case, "after an error")
    right = "The run goes on from where it was and runs nothing twice."
    found = [
        case(
            f"a {status} in round two",
            right,
            FAIL_AND_GO_ON,
            stays(calls(order()), Failure(status)),
            goes_on,
        )
        for status in (400, 429, 500)
    ]
    found.append(
        case(
            "a 500 in round two, async",
            right,
            (AASK, ("go_on", "async", None)),
            stays(calls(order()), Failure(500)),
            goes_on,
        )
    )
    found.append(
        case(
            "a 500 in round three",
            right,
            FAIL_AND_GO_ON,
            stays(calls(order()), calls(stock()), Failure(500)),
            goes_on,
        )
    )
    found.append(
        case(
            "a 500 in round one",
            "The question isn't lost.",
            FAIL_AND_GO_ON,
            stays(Failure(500)),
            goes_on,
        )
    )
    found.append(
        case(
            "a 500 in round two, saved as text",
            right,
            (ASK, ("reload", "", None), GO_ON),
            stays(calls(order()), Failure(500)),
            goes_on,
        )
    )
    return found


def provider_cases() -> list[Case]:
    """The same on other wires."""
    case = partial(Case, "other providers")
    found: list[Case] = []
    signed = {"reasoning": "Hm.", "signature": "c2lnbmVk"}
    for wire in WIRES[1:]:
        setup = {"wire": wire}
        found.append(
            case(
                f"{wire}: two calls at once",
                "Both results reach the model.",
                (ASK,),
                rounds(calls(order(), stock())),
                model_reads("Ordered 2", "7 of Emma"),
                setup,
            )
        )
        found.append(
            case(
                f"{wire}: a 500 in round two",
                "It goes on and runs nothing twice.",
                FAIL_AND_GO_ON,
                stays(calls(order()), Failure(500)),
                goes_on,
                setup,
            )
        )
        found.append(
            case(
                f"{wire}: cut off by its limit",
                "An error or a field of the result says so.",
                FAIL_AND_GO_ON,
                rounds(calls(order()), lambda request: done(request, "Both cop", "length")),
                cut_is_told("length", "max", "limit", "cut", "incomplete"),
                setup,
            )
        )
        found.append(
            case(
                f"{wire}: signed thinking",
                "The signature goes back unchanged.",
                (ASK,),
                rounds(calls(order(), **signed)),
                model_reads("c2lnbmVk", "Ordered 2"),
                setup,
            )
        )
    return found


def stream_cases() -> list[Case]:
    """The answer as it is written."""
    case = partial(Case, "streaming")
    streamed = ("ask", "streamed", QUESTION)
    return [
        case(
            "the answer comes in pieces",
            "The pieces are the answer.",
            (streamed,),
            rounds(),
            pieces_are_answer,
        ),
        case(
            "after a tool ran",
            "The pieces are the answer.",
            (streamed,),
            rounds(calls(order())),
            pieces_are_answer,
        ),
        case(
            "a 500 in round two",
            "It goes on and runs nothing twice.",
            (streamed, ("go_on", "async", None)),
            stays(calls(order()), Failure(500)),
            goes_on,
        ),
        case(
            "cut off by its limit",
            "An error or a field of the result says so.",
            (streamed, GO_ON),
            rounds(lambda request: done(request, "Both copies of Em", "length")),
            cut_is_told("length", "max", "limit", "cut", "incomplete"),
        ),
    ]
