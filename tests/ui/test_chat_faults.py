"""Chats: what programs, stores and pages do wrong at the worst moment pays nothing twice.

A payment is in the chat once, whatever fails after it.
"""

import asyncio
import datetime as dt
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import dspy
import pydantic
import pytest
from chat_pages import SAID, agent_of, bank, message, page_of, replies_body, submit

import sigadapt
from sigadapt import Pending, ToolContext, ui
from sigadapt.testing import Answer, Call, Failure
from sigadapt.ui.log import chat_log
from sigadapt.ui.log.chat_log import LeaseWatch

FORMS = ("ai_sdk", "ag_ui")
each_form = pytest.mark.parametrize("form", FORMS)
AGENTS: list[Any] = [sigadapt.ReAct, dspy.ReActV2]
PAID: list[str] = []


@pytest.fixture(autouse=True)
def nobody_is_paid() -> None:
    PAID.clear()


def pay(to: str) -> str:
    """Pay somebody."""
    PAID.append(to)
    return f"Paid {to}."


class Faulty:
    """A store that fails at some of its appends: before or after it has written."""

    def __init__(self, store: ui.ChatStore, fails_at: Callable[[int], bool], *, has_written: bool) -> None:
        self.store = store
        self.fails_at = fails_at
        self.has_written = has_written
        self.appends = 0

    def append(self, chat_id: str, owner: str, number: int, events: Sequence[str]) -> bool:
        """Append, or fail."""
        self.appends += 1
        if self.fails_at(self.appends):
            if self.has_written:
                self.store.append(chat_id, owner, number, events)
            raise OSError("the store is down")
        return self.store.append(chat_id, owner, number, events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Append again at once."""
    monkeypatch.setattr(chat_log, "_PAUSES", (0, 0))


# The place of a turn in the history.


def test_the_same_words_twice_are_two_turns(tmp_path: Path) -> None:
    """chats: A turn is its own"""
    with bank(tmp_path) as desk:
        desk.say("ai_sdk", "send")
        [first] = desk.requests()
        desk.reply("ai_sdk", {first["id"]: True})
        desk.say("ai_sdk", "send")
        states = [state for _, state, _ in desk.calls()]
        assert states == ["output-available", "approval-requested"]
        [second] = desk.requests()
        desk.reply("ai_sdk", {second["id"]: False})
        assert [state for _, state, _ in desk.calls()] == ["output-available", "output-denied"]
        desk.script = [Failure(400, "no")]
        desk.say("ai_sdk", "send")
        assert len(desk.calls()) == 2
        assert desk.texts()[-1] == "send"
        assert desk.paid == ["Ada 75"]


Events = list[dict[str, Any]]
SHORTENS: dict[str, tuple[Callable[[Events], Events], list[str], int]] = {
    "keeps all": (lambda events: events, ["1 EUR", "2 EUR"], 3),
    "forgets all": (lambda events: [], [], 1),
    "sums up the last": (
        lambda events: [*events[:-1], *({"question": "pay", "answer": "in short"} for _ in events[-1:])],
        ["in short"],
        3,
    ),
}


class Shortens(dspy.Module):
    """A program whose agent reads another history than the chat has."""

    def __init__(self, shorten: Callable[[Events], Events]) -> None:
        super().__init__()
        self.agent, self.shorten = sigadapt.ReAct("question -> answer", tools=[]), shorten

    def forward(self, question: str, history: dspy.History) -> Any:
        return self.agent(question=question, history=dspy.History(messages=self.shorten(history.messages)))


@pytest.mark.parametrize("name", SHORTENS)
def test_a_turn_begins_with_its_message_though_the_program_changed_earlier_ones(
    name: str, tmp_path: Path
) -> None:
    """chats: A turn is its own"""
    shorten, told, turns = SHORTENS[name]
    answers = [submit(f"{number} EUR") for number in (1, 2, 3)]
    with page_of(lambda: Shortens(shorten), answers, tmp_path) as page:
        for _ in answers:
            page.chats = page.new_chats()
            page.say("ai_sdk", "pay")
        assert page.texts() == ["pay", "1 EUR", "pay", "2 EUR", "pay", "3 EUR"]
        rows = page.provider.received[-1].body["messages"]
        assert [text for text in ("1 EUR", "2 EUR", "in short") if text in str(rows)] == told
        assert [row["role"] for row in rows].count("user") == turns


# A store that fails.


@pytest.mark.parametrize("has_written", [False, True])
@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.usefixtures("no_pauses")
def test_an_append_that_fails_once_loses_nothing(number: int, has_written: bool, tmp_path: Path) -> None:
    """chats: A store fails"""
    with bank(tmp_path) as desk:
        store = Faulty(desk.chats.store, lambda count: count == number, has_written=has_written)
        desk.chats = desk.new_chats(store)
        desk.say("ai_sdk", "send")
        [request] = desk.requests()
        desk.reply("ai_sdk", {request["id"]: True})
        assert desk.paid == ["Ada 75"]
        assert desk.calls() == [("send", "output-available", SAID)]


@each_form
@pytest.mark.usefixtures("no_pauses")
def test_a_store_that_is_down_after_a_payment_puts_no_decision_back(form: str, tmp_path: Path) -> None:
    """chats: A store fails"""
    with bank(tmp_path) as desk:
        desk.say(form, "Hello")
        desk.say(form, "send")
        [request] = desk.requests()
        is_back: list[bool] = []
        store = Faulty(desk.chats.store, lambda _: bool(desk.paid) and not is_back, has_written=False)
        desk.chats = desk.new_chats(store, lease=0.4)
        rows = desk.reply(form, {request["id"]: True})
        assert "rror" in str(rows[-1]) + str(rows[-2])
        is_back.append(True)
        time.sleep(0.5)
        desk.reply(form, {request["id"]: True})
        assert desk.paid == ["Ada 75"]
        assert [(name, state) for name, state, _ in desk.calls()] == [("send", "output-error")]
        desk.say(form, "Hello again")
        assert desk.texts()[-1] == "Hello."


@pytest.mark.parametrize("kind", ["ReAct", "ReActV2"])
def test_a_call_is_in_the_log_before_it_begins(kind: str, tmp_path: Path) -> None:
    """chats: A process dies"""
    found: list[list[str]] = []

    def charge(to: str) -> str:
        """Charge somebody, and see what a process that dies now would leave."""
        found.append([text for _, text in page.chats.store.read("c1", "ada")])
        return f"Charged {to}."

    agents: dict[str, Any] = {"ReAct": sigadapt.ReAct, "ReActV2": dspy.ReActV2}
    agent = agent_of(dspy.Tool(charge), kind=agents[kind])
    answers = [Answer(calls=[Call("charge", {"to": name})]) for name in ("Ada", "Bob")]
    with page_of(agent, [*answers, submit("Done.")], tmp_path) as page:
        page.say("ai_sdk", "Go.")
        for number, (names, texts) in enumerate(zip((["Ada"], ["Ada", "Bob"]), found, strict=True)):
            page.die(*texts, chat=f"dead{number}")
            messages = page.chats.messages(f"dead{number}", "ada")
            parts = [part for row in messages for part in row["parts"] if "toolCallId" in part]
            assert [part["input"]["to"] for part in parts] == names
            assert parts[-1]["state"] == "output-error"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="where there is no /proc, beats alone tell")
def test_a_process_that_ended_is_no_more_before_anybody_has_waited_for_it() -> None:
    """chats: A process dies"""
    lines = "from sigadapt.ui.log.chat_log import beat_of; print(beat_of(1, 60), flush=True); input()"
    python = [sys.executable, "-c", lines]
    child = subprocess.Popen(python, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  (our own)
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdout, child.stdin as stdin:
        beat = child.stdout.readline().decode()
        assert LeaseWatch().is_alive(1, beat, 60)
        stdin.close()
        child.stdout.read()  # ends with the process, which is a zombie until somebody waits for it
        for _ in range(1_000):
            if not LeaseWatch().is_alive(1, beat, 60):
                break
            time.sleep(0.01)
        assert not LeaseWatch().is_alive(1, beat, 60)
        assert child.returncode is None
    child.wait()


def test_a_run_that_another_process_has_ended_begins_no_tool(tmp_path: Path) -> None:
    """chats: A process dies"""

    def ended(received: Any) -> Answer:
        store = page.chats.store
        number, _ = store.beat("c1", "ada")
        assert store.append("c1", "ada", number, ['{"type":"ended","how":"lost"}'])
        return Answer(calls=[Call("pay", {"to": "Ada"})])

    answers: Any = ended
    with page_of(agent_of(pay), answers, tmp_path) as page:
        rows = page.say("ai_sdk", "Go.")
        assert [row for row in rows if row["type"] == "error"]
        assert PAID == []


# Pages that do two things at once.


def test_a_result_from_elsewhere_and_an_answer_at_the_same_time(tmp_path: Path) -> None:
    """chats: A result comes from elsewhere"""

    def order(title: str) -> Any:
        """Order a book."""
        return Pending(f"order-{title}")

    def ask(context: ToolContext) -> str:
        """Ask."""
        return f"It is {context.ask('How much?', int)}."

    calls = [Call("order", {"title": "Emma"}), Call("ask")]
    agent = agent_of(order, ask)
    with page_of(agent, [Answer(calls=calls), submit("Done.")], tmp_path) as page:
        page.say("ai_sdk", "Go.")
        ids = {entry["reason"]: entry["id"] for entry in page.requests()}

        async def both() -> bool:
            async def answer() -> None:
                async for _ in page.chats.ai_sdk(replies_body("ai_sdk", {ids["input_required"]: 7}), "ada"):
                    pass

            delivered, _ = await asyncio.gather(
                page.chats.deliver("c1", "ada", "order-Emma", "Here."), answer()
            )
            return delivered

        assert asyncio.run(asyncio.wait_for(both(), 20))
        assert [output for _, _, output in page.calls()] == ["Here.", "It is 7."]
        assert page.texts() == ["Go.", "Done."]


# Ids, values and outputs.


@each_form
def test_the_id_of_a_bad_call_that_was_asked_again_takes_no_result(form: str, tmp_path: Path) -> None:
    """watching-runs: Each call has an id of its own on a page"""
    answers = [
        Answer(calls=[Call("pay", {"too": "Ada"}, id="x1")]),
        Answer(calls=[Call("pay", {"to": "Ada"}, id="x1"), Call("pay", {"to": "Bob"}, id="x2")]),
        Answer(calls=[Call("pay", {"to": "Cy"}, id="x1")]),
        submit("Done."),
    ]
    agent = agent_of(pay)
    adapter = sigadapt.ChatAdapter(confirm="raise", on_invalid="reask")
    with page_of(agent, answers, tmp_path, adapter) as page:
        rows = page.say(form, "Go.")
        results = {
            row["toolCallId"]: row.get("output", row.get("content"))
            for row in rows
            if row["type"] in {"tool-output-available", "tool-output-error", "TOOL_CALL_RESULT"}
        }
        assert results["x2"] == "Paid Bob."
        assert results["x1-2"] == "Paid Cy."
        assert page.calls()[-1][2] == "Paid Cy."
        assert "ToolError" not in str(rows)


@each_form
@pytest.mark.parametrize("kind", AGENTS)
def test_a_submit_beside_a_call_that_waits_is_no_call_of_the_page(
    form: str, kind: Any, tmp_path: Path
) -> None:
    """watching-runs: Each call has an id of its own on a page"""
    asked = sigadapt.ToolDecl.of(pay, requires_confirmation=True)
    early = Call("submit", {"answer": "Early."})
    answers = [Answer(calls=[Call("pay", {"to": "Ada"}), early]), submit("Done.")]
    with page_of(agent_of(asked, kind=kind), answers, tmp_path) as page:
        rows = page.say(form, "Go.")
        [request] = page.requests()
        rows += page.reply(form, {request["id"]: True})
        begun = {row["toolCallId"] for row in rows if row["type"] in {"tool-input-start", "TOOL_CALL_START"}}
        assert {row["toolCallId"] for row in rows if "toolCallId" in row} == begun
        assert PAID == ["Ada"]
        assert [name for name, _, _ in page.calls()] == ["pay"]
        assert "not taken" in page.sent


def deep() -> Any:
    """A value deeper than JSON is read."""
    value: list[Any] = []
    for _ in range(300):
        value = [value]
    return value


@each_form
def test_values_that_json_does_not_have_break_no_page(form: str, tmp_path: Path) -> None:
    """chats: JSON cannot hold a value"""

    def odd(context: ToolContext) -> float:
        """A number that JSON does not have."""
        context.progress("half", math.nan)
        return math.inf

    answers = [Answer(calls=[Call("odd"), Call("deep")]), submit("Done."), submit("Again.")]
    with page_of(agent_of(odd, deep), answers, tmp_path) as page:
        rows = page.say(form, "Go.")
        assert "RROR" not in str(rows)
        page.say(form, "And?")
        assert page.texts() == ["Go.", "Done.", "And?", "Again."]
        json.dumps(page.chats.messages("c1", "ada"), allow_nan=False)


ODD_RESULTS = {
    "no number": lambda: [math.nan, math.inf],
    "a date": lambda: dt.date(2026, 1, 2),
    "a decimal": lambda: Decimal("1.10"),
    "bytes": lambda: b"\xff",
    "half a character": lambda: "a\ud800",
    "a model": lambda: Point(place=[math.nan, dt.date(2026, 1, 2)]),
}


@each_form
@pytest.mark.parametrize("name", ODD_RESULTS)
def test_a_result_is_on_the_page_as_it_is_after_a_reload(name: str, form: Any, tmp_path: Path) -> None:
    """chats: JSON cannot hold a value"""

    def odd(n: float = math.nan) -> Any:
        """Anything."""
        return ODD_RESULTS[name]()

    answers = [Answer(calls=[Call("odd", id="c1")]), submit("Done.")]
    with page_of(agent_of(odd), answers, tmp_path) as page:
        shown = [row for row in page.say(form, "Go.") if row.get("toolCallId") == "c1"]
        page.chats = page.new_chats()
        messages = page.chats.messages("c1", "ada", form)
        if form == "ag_ui":
            assert shown[-1]["content"] == messages[2]["content"]
            return
        part = messages[1]["parts"][0]
        assert (shown[-2]["input"], shown[-1]["output"]) == (part["input"], part["output"])


@each_form
@pytest.mark.parametrize("first", ["pay", "ask"])
def test_a_call_that_came_twice_says_so_and_leaves_the_others_theirs(
    form: str, first: str, tmp_path: Path
) -> None:
    """watching-runs: Each call has an id of its own on a page"""

    def ask(to: str, context: ToolContext) -> str:
        """Ask somebody."""
        return f"{to}: {context.ask('Well?')}"

    twice = Call(first, {"to": "Ada"}, id="x1")
    answers = [Answer(calls=[twice, twice, Call("pay", {"to": "Bob"}, id="x2")]), submit("Done.")]
    with page_of(agent_of(pay, ask), answers, tmp_path) as page:
        rows = page.say(form, "Go.")
        for request in page.requests():
            rows += page.reply(form, {request["id"]: "Yes."})
        results = {
            row["toolCallId"]: row.get("output", row.get("content", row.get("errorText")))
            for row in rows
            if row["type"] in {"tool-output-available", "tool-input-error", "TOOL_CALL_RESULT"}
        }
        repeated = "The model sent this call twice. It is run once."
        expected = "Paid Ada." if first == "pay" else "Ada: Yes."
        assert [*results.values()].count(repeated) == 1
        assert (results["x1"], results["x2"]) == (expected, "Paid Bob.")
        after = {output for name, _, output in page.calls() if name != "ask" or output != "Yes."}
        assert after == {*results.values()}


def test_a_run_that_cannot_be_kept_waiting_ends(tmp_path: Path) -> None:
    """chats: JSON cannot hold a value"""

    def order(context: ToolContext) -> Any:
        """Order a book."""
        context.state["object"] = object()
        return Pending("order")

    answers = [Answer(calls=[Call("order")]), submit("Done.")]
    with page_of(agent_of(order), answers, tmp_path) as page:
        assert "error" in [row["type"] for row in page.say("ai_sdk", "Go.")]
        page.say("ai_sdk", "And?")
        assert page.texts() == ["Go.", "And?", "Done."]


class Point(pydantic.BaseModel):
    """A model that JSON may not hold."""

    place: Any


class Says(dspy.Module):
    """A program that puts out anything, and into its history."""

    def __init__(self, value: Any, read: list[Any]) -> None:
        super().__init__()
        self.value, self.read = value, read

    def forward(self, question: str, history: dspy.History) -> dspy.Prediction:
        self.read.append(history.messages)
        messages = [*history.messages, {"question": question, "more": self.value}]
        return dspy.Prediction(
            answer=f"Fine: {question}", more=self.value, history=dspy.History(messages=messages)
        )


ODD_OUTPUTS: dict[str, tuple[Any, str]] = {
    "bytes": (b"\xff", '"/w=="'),
    "no number": (math.nan, "null"),
    "an object": (object(), '"<object object'),
    "deep": (deep(), '"a list that is nested too deep"'),
    "half a character": ({(1, 2): "\ud800", 3: b"\x00\xff"}, r'{"(1, 2)": "\ufffd", "3": "AP8="}'),
    "collections": ((None, {2}), "[null, [2]]"),
    "a model": (Point(place=[b"\xff"]), '{"place": ["/w=="]}'),
    "a deep model": (Point(place=deep()), '"a list that is nested too deep"'),
    "digits": ([10**5000, 7], '["a number of 16610 bits", 7]'),
}


@pytest.mark.parametrize("name", ODD_OUTPUTS)
def test_any_output_leaves_a_chat_that_goes_on(name: str, tmp_path: Path) -> None:
    """chats: JSON cannot hold a value"""
    value, kept = ODD_OUTPUTS[name]
    read: list[Any] = []
    with page_of(lambda: Says(value, read), [], tmp_path) as page:
        page.say("ai_sdk", "One")
        page.chats = page.new_chats()
        page.say("ai_sdk", "Two")
        assert page.texts() == ["One", "Fine: One", "Two", "Fine: Two"]
        assert kept in json.dumps(read[1])


# Programs of several agents, and of none.


class Two(dspy.Module):
    """Two agents: the first takes the message, the second checks it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = sigadapt.ReAct("question -> answer", tools=[pay])
        self.second = sigadapt.ReAct("question -> answer", tools=[pay])

    def forward(self, question: str, history: dspy.History) -> dspy.Prediction:
        prediction: Any = self.first(question=question, history=history)
        return self.second(question=f"Check: {prediction.answer}")


def test_calls_of_every_agent_are_in_the_chat(tmp_path: Path) -> None:
    """chats: Every call is in the chat"""
    answers = [
        *(Answer(calls=[Call("pay", {"to": "Ada"})]), submit("Paid.")),
        *(Answer(calls=[Call("pay", {"to": "Bob"}, id="b")]), submit("Checked.")),
        *(submit("Yes."), submit("Sure.")),
    ]
    with page_of(Two, answers, tmp_path) as page:
        body = message("ai_sdk", "Go.")
        page.post("ai_sdk", body)
        assert [output for _, _, output in page.calls()] == ["Paid Ada.", "Paid Bob."]
        assert page.texts() == ["Go.", "Checked."]
        page.post("ai_sdk", {**body, "trigger": "regenerate-message"})
        assert PAID == ["Ada", "Bob"]
        page.say("ai_sdk", "Did you?")
        assert "Paid Ada." in str(page.provider.received[-2].body)


@pytest.mark.dspy_3_4
def test_a_program_without_a_history_does_not_run_its_tools_again(tmp_path: Path) -> None:
    """chats: Every call is in the chat"""
    fields = ("next_thought", "next_tool_name", "next_tool_args")

    def step(*values: str) -> Answer:
        return Answer(
            text="\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in zip(fields, values, strict=True))
        )

    answers = [
        *(step("I pay.", "pay", '{"to": "Ada"}'), step("Done.", "finish", "{}")),
        Answer(text="[[ ## reasoning ## ]]\nSo.\n[[ ## answer ## ]]\nDone."),
    ]
    with page_of(agent_of(pay, kind=dspy.ReAct), answers, tmp_path) as page:
        body = message("ai_sdk", "Go.")
        page.post("ai_sdk", body)
        assert page.calls()[0][1:] == ("output-available", "Paid Ada.")
        rows = page.post("ai_sdk", {**body, "trigger": "regenerate-message"})
        assert "Tools ran behind this place" in str(rows)
        assert PAID == ["Ada"]
