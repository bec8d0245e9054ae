"""A chat as the store keeps it: whose turn an event is, and what dead runs and refused replies leave."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pydantic
import pytest
from chat_pages import bank, message

from sigadapt import InputNeeded, ToolCalls, ToolDecl, ToolResult
from sigadapt.testing import Answer, Call
from sigadapt.ui.chat import UNKNOWN_OUTCOME, Chat, ChatTurn, RunUnderWay, storable
from sigadapt.ui.page_requests import Message

each_form = pytest.mark.parametrize("form", ["ai_sdk", "ag_ui"])


def sends(*names: str) -> Answer:
    return Answer(calls=[Call("send", {"to": name}, id=f"call_{name}") for name in names])


def submits(answer: str) -> Answer:
    return Answer(calls=[Call("submit", {"answer": answer})])


@each_form
def test_a_refused_reply_leaves_every_decision_open(form: str, tmp_path: Path) -> None:
    """chats: A decision counts once"""
    asks = Call("ask_and_send", {"to": "Cy"})
    script = [Answer(calls=[*sends("Ada", "Bob").calls, asks]), submits("Done.")]
    with bank(tmp_path, script) as desk:
        desk.say(form, "Go.")
        ada, bob = [request["id"] for request in desk.requests()]
        desk.reply(form, {ada: True})
        [question] = [request["id"] for request in desk.requests() if request["id"] != bob]
        refused = desk.reply(form, {ada: True, bob: False, question: "many"})
        assert "InvalidOption" in str(refused)
        assert (desk.paid, len(desk.requests())) == (["Ada 75"], 2)
        desk.reply(form, {ada: True, bob: True, question: 7})
        assert desk.paid == ["Ada 75", "Bob 75"]
        assert {state for _, state, _ in desk.calls()} == {"output-available"}
        assert desk.texts() == ["Go.", "Done."]


@pytest.mark.parametrize("text", ["Hello", "Hi"])
def test_another_answer_to_an_earlier_message_loses_no_turn(text: str, tmp_path: Path) -> None:
    """chats: Another answer to the last message"""
    with bank(tmp_path) as desk:
        first: Any = message("ai_sdk", "Hello")
        desk.post("ai_sdk", first)
        desk.say("ai_sdk", "And now?")
        before, asked = desk.texts(), desk.asked
        again: Any = {**first, "trigger": "regenerate-message"}
        again["messages"][0]["parts"][0]["text"] = text
        desk.post("ai_sdk", again)
        is_known = text == "Hello"
        assert desk.texts()[:4] == before
        assert (desk.asked == asked) == is_known


def test_a_history_that_was_shortened_gives_no_other_answer() -> None:
    """chats: Another answer to the last message"""
    turn = ChatTurn(message_id="m", text="Hi", events=[{"question": "Hi", "answer": "Hello."}])
    asked = Message("m", "Hi")
    assert Chat().begin_again(asked, 30) is None
    assert Chat(turns=[turn], shortened=turn.events).begin_again(asked, 30) is None
    assert Chat(turns=[turn]).begin_again(asked, 30) is not None


def waits(events: list[Any]) -> InputNeeded:
    calls = ToolCalls([{"name": "send", "args": {}}])
    request = calls.awaiting_confirmation([ToolDecl("send", requires_confirmation=True)])
    return InputNeeded(calls, request, dspy.History(messages=events))


ENDS: dict[str, Callable[[Chat, list[Any]], None]] = {
    "goes on": lambda chat, events: chat.go_on(events, "question"),
    "ends": lambda chat, events: chat.end_turn(events, "question"),
    "waits": lambda chat, events: chat.wait(waits(events), None, {}, "question"),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_turn_begins_with_its_message_though_the_program_changed_earlier_ones(how: str) -> None:
    """chats: A turn is its own"""
    texts = ("one", "two")
    turns = [ChatTurn(message_id=text, text=text, events=[{"question": text}]) for text in texts]
    chat = Chat(turns=[*turns, ChatTurn(message_id="m", text="three")])
    last = [{"question": "three", "calls": "some"}, {"answer": "3"}]
    events = [{"question": "two", "answer": "in short"}, *last]
    ENDS[how](chat, events)
    assert [turn.events for turn in chat.turns] == [*(turn.events for turn in turns), last]
    assert chat.history().messages == chat.shortened == events


def test_a_turn_of_the_words_of_the_one_before_keeps_its_events() -> None:
    """chats: A turn is its own"""
    earlier = [{"question": "pay", "answer": "paid once"}]
    last = [{"question": "pay", "answer": "paid twice"}]
    for events in (last, [*earlier, *last], [{"question": "pay", "answer": "in short"}, *last]):
        turns = [ChatTurn(message_id="1", text="pay", events=earlier), ChatTurn(message_id="2", text="pay")]
        chat = Chat(turns=turns)
        chat.end_turn(events, "question")
        assert [turn.events for turn in chat.turns] == [earlier, last]


def kept(desk: Any) -> tuple[int, Chat]:
    version, text = desk.chats.store.load("c1", "ada")
    return version, Chat.model_validate_json(text)


def test_a_message_whose_process_died_stays_in_the_history(tmp_path: Path) -> None:
    """chats: A process dies"""
    with bank(tmp_path) as desk:
        desk.say("ai_sdk", "Hi")
        desk.say("ai_sdk", "Hello")
        version, chat = kept(desk)
        chat.begin_message(Message("lost", "Are you there?"), lease=-1)
        assert desk.chats.store.save("c1", "ada", version, chat.model_dump_json())
        desk.say("ai_sdk", "Once more")
        assert desk.texts()[2:] == ["Hello", "Hello.", "Are you there?", "Once more", "Hello."]
        sent = str(desk.provider.received[-1].body["messages"])
        places = [sent.index(text) for text in ("Hello.", "Are you there?", "Once more")]
        assert places == sorted(places)
        assert sent.count("Are you there?") == 1


def test_a_program_whose_process_died_leaves_what_it_had_done() -> None:
    """chats: A process dies"""
    chat = Chat(turns=[ChatTurn(message_id="1", text="one", events=[{"question": "one"}])])
    chat.begin_message(Message("2", "two"), lease=-1)
    events = [{"question": "one"}, {"question": "two", "calls": "some"}]
    chat.go_on(events, "question")
    chat.recover("question")
    assert (chat.run, chat.history().messages) == (None, events)


def test_a_call_before_the_one_that_waits_is_shown_once(tmp_path: Path) -> None:
    """chats: A page waits for a person"""
    with bank(tmp_path, [Answer(calls=[Call("balance")]), sends("Ada"), submits("Done.")]) as desk:
        desk.say("ai_sdk", "Go.")
        states = [(name, state) for name, state, _ in desk.calls()]
        assert states == [("balance", "output-available"), ("send", "approval-requested")]
        _, chat = kept(desk)
        assert [call.name for call in chat.turns[-1].other_calls] == []


def test_each_call_of_a_turn_that_died_says_what_is_known_of_it(tmp_path: Path) -> None:
    """chats: A process dies"""
    names = ("Ada", "Bob", "Cy", "Dan", "Eve")
    with bank(tmp_path, [sends(*names), submits("Done.")]) as desk:
        desk.say("ai_sdk", "Go.")
        ids = {request["toolCallId"][5:]: request["id"] for request in desk.requests()}
        version, chat = kept(desk)
        run = RunUnderWay(id="dead", until=0)
        run.decided = {ids["Ada"]: None, ids["Bob"]: "Not today.", ids["Dan"]: "", ids["Eve"]: None}
        run.results = [ToolResult(call_id="call_Eve", name="send", value="Sent.")]
        chat.run = run
        assert desk.chats.store.save("c1", "ada", version, chat.model_dump_json())
        desk.say("ai_sdk", "And?")
        rows = desk.provider.received[-1].body["messages"]
        told = {row["tool_call_id"][5:]: row["content"] for row in rows if row["role"] == "tool"}
    assert {name: told[name] for name in ("Ada", "Bob", "Eve")} == {
        "Ada": f"ERROR: {UNKNOWN_OUTCOME}",
        "Bob": "ERROR: Not today.",
        "Eve": "Sent.",
    }
    assert "it had no decision" in told["Cy"]
    assert "The user rejected this call" in told["Dan"]
    assert desk.paid == []


def test_a_result_is_for_the_call_of_its_id_on_the_page(tmp_path: Path) -> None:
    """watching-runs: Each call has an id of its own on a page"""
    order = Answer(calls=[Call("order", {"title": "Emma"}, id="x1")])
    with bank(tmp_path, [order, submits("First."), order, submits("Second.")]) as desk:
        for page_id, answer in (("x1", "First."), ("x1-2", "Second.")):
            desk.say("ai_sdk", "Order.")
            [request] = desk.requests()
            assert request["toolCallId"] == page_id
            if page_id != "x1":
                desk.reply("ai_sdk", {"x1": "The first book again."})
                assert desk.requests() == [request]
            desk.reply("ai_sdk", {page_id: f"{answer} book."})
            assert desk.texts()[-1] == answer
        assert [output for _, _, output in desk.calls()] == ["First. book.", "Second. book."]


class Point(pydantic.BaseModel):
    place: Any


def nested(depth: int, value: Any, kind: Callable[[Any], Any]) -> Any:
    for _ in range(depth):
        value = kind(value)
    return value


KINDS: dict[str, Callable[[Any], Any]] = {
    "list": lambda value: [value],
    "tuple": lambda value: (value,),
    "dict": lambda value: {"a": value},
}


def test_what_json_cannot_hold_is_kept_as_what_it_says() -> None:
    given = {1: b"\x00\xff", "a\ud800": "b\ud800", "c": (1, None), "d": {2}, "e": Point(place=[b"f"])}
    assert storable(given) == {
        "1": "AP8=",
        "a\ufffd": "b\ufffd",
        "c": (1, None),
        "d": [2],
        "e": Point(place=["Zg=="]),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_deeper_than_json_is_read_becomes_a_text(kind: str) -> None:
    make = KINDS[kind]
    fits = nested(101, 7, make)
    assert storable(fits) == fits
    assert storable(nested(103, 7, make)) == nested(101, f"a {kind} that is nested too deep", make)
    models = nested(200, 7, lambda value: Point(place=make(value)))
    text = storable(models).model_dump_json()
    assert f"a {kind} that is nested too deep" in text


def test_results_and_a_shortened_history_are_made_storable_too() -> None:
    run = RunUnderWay(id="r", until=0, results=[ToolResult(call_id="c", name="f", value=b"\x00\xff")])
    chat = Chat(turns=[], shortened=[{"question": b"\x00\xff"}], run=run)
    chat.make_storable()
    assert (chat.shortened, [result.value for result in run.results]) == ([{"question": "AP8="}], ["AP8="])
