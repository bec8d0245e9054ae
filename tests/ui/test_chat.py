"""A chat over its log: what refused replies, dead processes and rows that cannot be read leave."""

from pathlib import Path
from typing import Any

import pytest
from chat_pages import bank, message, submit

from sigadapt import ToolResult
from sigadapt.testing import Answer, Call

UNKNOWN = (
    "It is not known whether this ran: the process that ran it has ended. Check before you run it again."
)
each_form = pytest.mark.parametrize("form", ["ai_sdk", "ag_ui"])


def sends(*names: str) -> Answer:
    return Answer(calls=[Call("send", {"to": name}, id=f"call_{name}") for name in names])


@each_form
def test_a_refused_reply_leaves_every_decision_open(form: str, tmp_path: Path) -> None:
    """chats: A decision counts once"""
    asks = Call("ask_and_send", {"to": "Cy"})
    script = [Answer(calls=[*sends("Ada", "Bob").calls, asks]), submit("Done.")]
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


@pytest.mark.parametrize(
    ("text", "more"),
    [("Hello", {"trigger": "regenerate-message"}), ("Hi", {"trigger": "regenerate-message"}), ("Hi", {})],
)
def test_another_answer_cuts_the_chat_behind_its_message(
    text: str, more: dict[str, str], tmp_path: Path
) -> None:
    """chats: Another answer, or other words, cut the chat"""
    with bank(tmp_path) as desk:
        first: Any = message("ai_sdk", "Hello")
        desk.post("ai_sdk", {**first, "trigger": "regenerate-message"})  # which got lost before
        assert desk.texts() == ["Hello", "Hello."]
        desk.say("ai_sdk", "And now?")
        first["messages"][0]["parts"][0]["text"] = text
        desk.post("ai_sdk", {**first, **more})
        assert desk.texts() == [text, "Hello."]
        assert "And now?" not in str(desk.provider.received[-1].body)


def test_a_message_whose_process_died_stays_in_the_history(tmp_path: Path) -> None:
    """chats: A process dies"""
    with bank(tmp_path) as desk:
        desk.say("ai_sdk", "Hi")
        desk.say("ai_sdk", "Hello")
        desk.die({"type": "message", "id": "lost", "text": "Are you there?"})
        desk.say("ai_sdk", "Once more")
        assert desk.texts()[2:] == ["Hello", "Hello.", "Are you there?", "Once more", "Hello."]
        sent = str(desk.provider.received[-1].body["messages"])
        places = [sent.index(text) for text in ("Hello.", "Are you there?", "Once more")]
        assert places == sorted(places)
        assert sent.count("Are you there?") == 1


def test_a_call_before_the_one_that_waits_is_shown_once(tmp_path: Path) -> None:
    """chats: A page waits for a person"""
    with bank(tmp_path, [Answer(calls=[Call("balance")]), sends("Ada"), submit("Done.")]) as desk:
        desk.say("ai_sdk", "Go.")
        states = [(name, state) for name, state, _ in desk.calls()]
        assert states == [("balance", "output-available"), ("send", "approval-requested")]


def test_each_call_of_a_turn_that_died_says_what_is_known_of_it(tmp_path: Path) -> None:
    """chats: A process dies"""
    names = ("Ada", "Bob", "Cy", "Dan", "Eve")
    with bank(tmp_path, [sends(*names), submit("Done.")]) as desk:
        desk.say("ai_sdk", "Go.")
        ids = {request["toolCallId"][5:]: request["id"] for request in desk.requests()}
        decided = {ids["Ada"]: None, ids["Bob"]: "Not today.", ids["Dan"]: "", ids["Eve"]: None}
        sent = ToolResult(call_id="call_Eve", name="send", value="Sent.").model_dump()
        desk.die(
            {"type": "replies", "decided": decided}, {"type": "result", "page_id": "call_Eve", "result": sent}
        )
        desk.say("ai_sdk", "And?")
        rows = desk.provider.received[-1].body["messages"]
        told = {row["tool_call_id"][5:]: row["content"] for row in rows if row["role"] == "tool"}
    assert {name: told[name] for name in ("Ada", "Bob", "Eve")} == {
        "Ada": "ERROR: It is not known whether this ran: the process that ran it has ended. "
        "Check before you run it again.",
        "Bob": "ERROR: Not today.",
        "Eve": "Sent.",
    }
    assert "it had no decision" in told["Cy"]
    assert "The user rejected this call" in told["Dan"]
    assert desk.paid == []


def test_a_result_is_for_the_call_of_its_id_on_the_page(tmp_path: Path) -> None:
    """watching-runs: Each call has an id of its own on a page"""
    order = Answer(calls=[Call("order", {"title": "Emma"}, id="x1")])
    with bank(tmp_path, [order, submit("First."), order, submit("Second.")]) as desk:
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


UNREADABLE = {
    "no JSON": "{",
    "an unknown type": '{"type":"later"}',
    "no type": "{}",
    "a number too long": f'{{"type":"state","state":{{"n":{"9" * 5000}}}}}',
    "a level too deep": f'{{"type":"state","state":{{"n":{"[" * 300}{"]" * 300}}}}}',
    "a place that is not there": '{"type":"round","at":7,"event":{}}',
}


@pytest.mark.parametrize("row", UNREADABLE.values(), ids=UNREADABLE)
def test_a_row_that_cannot_be_read_costs_itself(
    row: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """chats: A row cannot be read"""
    with bank(tmp_path) as desk:
        desk.say("ai_sdk", "Hello")
        desk.write({"type": "message", "id": "m", "text": "Hi"}, row, {"type": "ended", "how": "error"})
        desk.say("ai_sdk", "And now?")
        assert desk.texts() == ["Hello", "Hello.", "Hi", "And now?", "Hello."]
        assert "cannot be read" in caplog.text


def test_a_waiting_run_that_cannot_be_read_frees_its_chat(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """chats: A row cannot be read"""
    with bank(tmp_path) as desk:
        waits: dict[str, Any] = {"type": "waits", "run": '{"calls":7}', "agent": None, "page_ids": {}}
        desk.write({"type": "message", "id": "m", "text": "Hi"}, waits)
        assert desk.requests() == []
        desk.say("ai_sdk", "Hello")
        assert desk.texts() == ["Hi", "Hello", "Hello."]
        assert "cannot be read" in caplog.text
