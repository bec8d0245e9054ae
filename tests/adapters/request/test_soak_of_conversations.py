"""Random conversations over HTTP with providers that refuse what real ones do: none is wedged or changed.

A conversation asks, calls, fails, pauses, moves to another provider, is cut, saved and loaded, and crashes
between any two steps. Every question, text, call, result and thought is a word of its own, so that the body
of each request tells what arrived, and in which order. `tasks.py nightly` runs 1,000 of them, and CI some.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import dspy
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from provider_rules import refusal
from support import WIRES, Talk, by_value, lm_of

import sigadapt
from sigadapt import Change, ToolCalls, ToolResults, trim_history
from sigadapt.errors import InvalidHistory
from sigadapt.testing import Answer, Call, Failure, LoopbackProvider, Received, Reply

COUNT = int(os.environ.get("SIGADAPT_TALKS", "25"))
MODELS = {"gemini": {"model": "gemini/gemini-3-pro-preview"}}  # which asks for the signatures of calls
CHAT = ("openai", "ollama")
SIGNS = ("responses", "anthropic", "gemini")
WORD = re.compile(r"[QTCRPB]\d+_")  # question, text, call, result, pause, bad call
THOUGHT = re.compile(r"H\d+_")
ROWS = ("messages", "contents", "input")
Event = dict[str, Any]


class Plan(NamedTuple):
    """What the provider does next, and whether the tools fail that it gets results of."""

    kind: str
    calls: int
    thinks: bool
    fails: bool


KINDS = st.sampled_from(["text", "call", "text and call", "bad call", "pause"])
PLANS = st.builds(Plan, KINDS, st.integers(1, 3), st.booleans(), st.booleans())
KEPT = st.sampled_from(["calls", "half", "question", "nothing"])
TROUBLES = st.sampled_from(
    ["", "", "fail", "crash", "move", "save_and_load", "cut", "lose_the_oldest_event", "change_tools"]
)


def look_up(word: str) -> str:
    """Look a word up."""
    raise AssertionError


def count(word: str) -> int:
    """Count the letters of a word."""
    raise AssertionError


class Provider:
    """All five providers at once: what they gave, what they were sent, and what they answer next."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.received: list[Received] = []
        self.issued: dict[str, dict[str, str | None]] = {wire: {} for wire in WIRES}

    def answer(self, received: Received) -> Reply:
        self.received.append(received)
        body = {**received.body, "model": received.model}
        why = refusal(received.wire, body, self.issued[received.wire])
        return self.replies.pop(0) if why is None else Failure(400, f"REFUSED: {why}")


PROVIDER = Provider()


@pytest.fixture(scope="module", autouse=True)
def loopback() -> Iterator[None]:
    with LoopbackProvider(PROVIDER.answer, keep=1) as provider:
        for wire in WIRES:
            LMS[wire] = lm_of(provider, wire, **MODELS.get(wire, {}))
        yield


LMS: dict[str, dspy.LM] = {}


def words_in(body: Any) -> list[str]:
    """The words of a conversation in the order of their first places, as a body has them."""
    rows = next(body[key] for key in ROWS if key in body)
    return list(dict.fromkeys(WORD.findall(json.dumps(rows))))


class Conversation(RuleBasedStateMachine):
    """conversations: No random conversation is wedged.

    One conversation, the program that leads it, and the words that have to arrive with each request."""

    @initialize(
        wire=st.sampled_from(WIRES),
        one_event=st.booleans(),
        mode=st.sampled_from(["native", "native", "prompted"]),
        adapter=st.sampled_from([sigadapt.ChatAdapter, sigadapt.JSONAdapter, sigadapt.adapters.XMLAdapter]),
    )
    def begin(self, wire: str, one_event: bool, adapter: Any, mode: str) -> None:
        self.wire, self.one_event, self.adapter, self.mode = wire, one_event, adapter, mode
        self.events: list[Event] = []
        self.tools: list[Any] = [look_up]
        self.words: list[list[str]] = []  # of each event
        self.question: str | None = None
        self.results: ToolResults | None = None  # of the running turn, if it is one event
        self.calls: ToolCalls | None = None  # that wait for results
        self.running: list[str] = []  # the words of the running turn
        self.thoughts: dict[str, str] = {}  # by word, the wire that signed it
        self.is_whole = True
        self.count = 0

    def word(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}_"

    def expected(self) -> list[str]:
        """The words of the conversation so far, the running turn's included."""
        return [word for words in (*self.words, self.running) for word in words]

    # What the provider does next

    def reply(self, plan: Plan) -> tuple[list[Reply], list[str]]:
        """What the provider answers, in one reply or two, and the words of it."""
        said: list[Reply] = []
        words: list[str] = []
        if plan.kind == "pause" and self.wire == "anthropic":
            words.append(self.word("P"))
            use: Event = {
                "type": "server_tool_use",
                "id": f"srvtoolu_{words[0]}",
                "name": "web_search",
                "input": {},
            }
            content: list[Event] = [{"type": "text", "text": words[0]}, use]
            head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
            usage = {"input_tokens": 1, "output_tokens": 1}
            said.append({**head, "content": content, "stop_reason": "pause_turn", "usage": usage})
        thought = self.word("H") if plan.thinks else None
        signature = None
        if thought is not None and self.wire in SIGNS:
            signature = base64.b64encode(f"{thought} of {self.wire}".encode()).decode()
            PROVIDER.issued[self.wire][signature] = thought
            self.thoughts[thought] = self.wire
        text = self.word("T") if plan.kind != "call" else None
        words += [text] if text else []
        made: list[Call] = []
        if plan.kind in ("call", "text and call", "bad call", "pause"):
            for number in range(plan.calls):
                is_bad = plan.kind == "bad call" and number == 0 and self.wire in ("openai", "responses")
                word = self.word("B" if is_bad else "C")
                made.append(Call("look_up", f'{{"word": "{word}"' if is_bad else {"word": word}))
                words += [] if is_bad else [word]
        if self.mode == "prompted" and made:
            forms = (f'{{"name": "{call.name}", "arguments": {call.text}}}' for call in made)
            tagged = (f"<tool_call>\n{form}\n</tool_call>" for form in forms)
            text, made = "\n".join([*([text] if text else []), *tagged]), []
        said.append(Answer(text=text, calls=made, reasoning=thought, signature=signature))
        return said, words

    # What the program does

    def send(self, plan: Plan) -> None:
        """Ask with what the running turn has, and keep what comes."""
        inputs: Event = {"question": self.question}
        if self.results is not None:
            inputs["results"] = self.results
        self.check_untold(inputs)
        replies, words = self.reply(plan)
        PROVIDER.replies = replies
        out = self.predict("heal", inputs)
        self.check_arrival(PROVIDER.received[0], self.expected())
        # The chat templates of open models refuse two questions in a row.
        roles = [row["role"] for row in PROVIDER.received[0].body.get("messages", ()) if self.wire in CHAT]
        assert ("user", "user") not in pairwise(roles)
        self.running += words
        self.calls = out.calls or None
        if self.one_event:
            if self.calls is None:
                self.add({**inputs, "answer": out.answer}, self.running)
                self.end_turn()
            return
        outputs = {"calls": self.calls} if self.calls else {"answer": out.answer}
        self.add({**inputs, **outputs}, self.running)
        self.question, self.results, self.running = None, None, []

    def add(self, event: Event, words: list[str]) -> None:
        self.events.append({name: value for name, value in event.items() if value is not None})
        self.words.append(words)

    def end_turn(self) -> None:
        self.question = self.results = self.calls = None
        self.running = []

    def predict(self, orphans: Any, inputs: Event) -> Any:
        PROVIDER.received.clear()
        lm = LMS[self.wire]
        lm.history.clear()
        adapter: Any = self.adapter(tool_calling=self.mode, orphans=orphans, on_invalid="keep")
        with dspy.context(lm=lm, adapter=adapter):
            history = dspy.History(messages=self.events)
            return dspy.Predict(Talk)(tools=self.tools, history=history, **inputs)

    def check_untold(self, inputs: Event) -> None:
        """A broken conversation is told before anything leaves, or accepted, with nothing changed."""
        PROVIDER.replies = [Answer(text="Unused.")]
        try:
            self.predict("raise", inputs)
        except InvalidHistory:
            if self.is_whole:
                raise
            assert not PROVIDER.received
            return
        self.check_arrival(PROVIDER.received[0], self.expected())

    def check_arrival(self, received: Received, expected: list[str]) -> None:
        """Every word arrived in its order, or is missing on record."""
        entries: list[Any] = LMS[self.wire].history
        record: list[Change] = [change for entry in entries for change in entry.get("changes", ())]
        healed = [change.why for change in record if change.what == "healed"]
        arrived = [word for word in words_in(received.body) if word[0] != "B"]
        missing = [word for word in expected if word not in arrived]
        assert arrived == [word for word in expected if word not in missing]
        # A record is of one call, result or answer, or names the words of a text.
        told = sum(max(1, len(WORD.findall(why))) for why in healed if "dropped" in why)
        assert told >= len([word for word in missing if word[0] != "Q"])
        assert not (self.is_whole and (missing or healed)), (missing, healed)
        body = json.dumps(received.body)
        for thought in THOUGHT.findall(body):
            signature = base64.b64encode(f"{thought} of {self.wire}".encode()).decode()
            assert self.wire not in SIGNS or signature in body

    @rule(trouble=TROUBLES, wire=st.sampled_from(WIRES), keep=KEPT, turns=st.integers(0, 3), plan=PLANS)
    def step(self, *, trouble: str, wire: str, keep: str, turns: int, plan: Plan) -> None:
        """Something happens to the conversation, or nothing; then it goes on."""
        # One rule, because hypothesis leaves out rules at random, and with them most of a conversation.
        if trouble == "move":
            self.wire = wire
        elif trouble == "cut":
            self.cut(turns)
        elif trouble == "crash":
            self.crash(keep)
        elif trouble:
            getattr(self, trouble)()
        if self.calls is None:
            self.question = self.word("Q")
            self.running = [self.question]
        else:
            words = [self.word("R") for _ in self.calls]
            values = [{"z": 1, "found": word} for word in words]
            results = ToolResults.of(self.calls, values, [plan.fails] * len(values))
            self.results = results if self.results is None else self.results + results
            self.running += words
        self.send(plan)

    def fail(self) -> None:
        """The provider fails while results are sent; the program tries again later, or never."""
        if self.calls is None:
            return
        PROVIDER.replies = [Failure(503, "overloaded")] * 2
        results = ToolResults.of(self.calls, ["lost"] * len(self.calls))
        with pytest.raises(dspy.utils.exceptions.LMError, match="overloaded"):
            self.predict("heal", {"question": self.question, "results": results})

    def crash(self, keep: str) -> None:
        """The program ends between calls and results, and its history has what was saved until then."""
        calls, words = self.calls, self.running
        if calls is None:
            return
        saved: Event = {"question": self.question, "results": self.results}
        if keep == "half" and len(calls) > 1:
            first = {"call_id": calls[0].id, "name": "look_up", "value": "half", "is_error": False}
            half = {"rounds": [{"calls": calls.model_dump(), "results": [first]}]}
            if self.one_event:
                saved = {"question": self.question, "calls": calls, "results": half}
                if self.results is not None:  # these were not saved yet
                    own = calls.model_dump_json()
                    words = [word for word in words if word[0] == "Q" or word in own]
                self.add(saved, words)
            else:
                self.add({"results": half}, [])
        elif self.one_event and keep == "question":
            self.add({"question": self.question}, words[:1])
        elif self.one_event and keep == "calls":
            self.add({**saved, "calls": calls}, words)
        self.is_whole = self.is_whole and keep == "nothing" and self.one_event
        self.end_turn()

    def change_tools(self) -> None:
        self.tools = [look_up] if len(self.tools) > 1 else [look_up, count]

    def save_and_load(self) -> None:
        text = dspy.History(messages=self.events).model_dump_json()
        self.events = list(dspy.History.model_validate(by_value(json.loads(text))).messages)
        if self.results is not None:
            saved = by_value(json.loads(self.results.model_dump_json()))
            self.results = ToolResults.model_validate(saved)
        if self.calls is not None:
            self.calls = ToolCalls.model_validate(by_value(json.loads(self.calls.model_dump_json())))

    def cut(self, turns: int) -> None:
        if self.is_whole and (self.one_event or self.calls is None):
            kept = trim_history(dspy.History(messages=self.events), turns=turns, signature=Talk).messages
            self.words = self.words[len(self.words) - len(kept) :]
            self.events = list(kept)

    def lose_the_oldest_event(self) -> None:
        if self.events:
            del self.events[0], self.words[0]
            self.is_whole = self.one_event and self.is_whole
            if not self.events and not self.one_event:
                self.end_turn()
                self.is_whole = True


TestConversation = pytest.mark.litellm(Conversation.TestCase)
TestConversation.settings = settings(
    max_examples=COUNT,
    stateful_step_count=8,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)
