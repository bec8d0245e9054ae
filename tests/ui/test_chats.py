"""Chats: whatever a page sends, how often, and when it leaves, a chat ends in a defined state."""

import asyncio
from pathlib import Path
from typing import Any

import dspy
import pytest
from chat_pages import SAID, agent_of, bank, message, page_of, replies_body, submit, text_of

from sigadapt import Limits, ToolContext, ui
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call, Failure

FORMS = ("ai_sdk", "ag_ui")
each_form = pytest.mark.parametrize("form", FORMS)


@each_form
@pytest.mark.parametrize("wire", ["responses", "anthropic", "gemini", "ollama"])
def test_a_payment_waits_on_every_wire(form: str, wire: str, tmp_path: Path) -> None:
    """chats: A page waits for a person"""
    with bank(tmp_path, [Answer(calls=[Call("send", {"to": "Ada"})]), submit("Done.")], wire) as desk:
        desk.say(form, "Hello")
        [request] = desk.requests()
        desk.reply(form, {request["id"]: True})
        assert desk.paid == ["Ada 75"]
        assert desk.texts() == ["Hello", "Done."]


@each_form
def test_a_payment_waits_and_is_made_once(form: str, tmp_path: Path) -> None:
    """chats: A page waits for a person"""
    with bank(tmp_path) as desk:
        rows = desk.say(form, "send")
        assert desk.paid == []
        [request] = desk.requests()
        assert request["metadata"]["input"] == {"to": "Ada", "eur": 75}
        assert request["message"] == "Send to Ada?"
        assert request["id"] in str(rows)
        desk.reply(form, {request["id"]: True})
        assert desk.paid == ["Ada 75"]
        assert desk.calls() == [("send", "output-available", SAID)]
        assert desk.texts() == ["send", "I try.", SAID]
        asked = desk.asked
        again = desk.reply(form, {request["id"]: True})
        assert SAID in str(again)
        assert (desk.paid, desk.asked) == (["Ada 75"], asked)


@each_form
def test_a_rejection_says_why_on_the_page_and_to_the_model(form: str, tmp_path: Path) -> None:
    """chats: A page waits for a person"""
    with bank(tmp_path) as desk:
        desk.say(form, "send")
        [request] = desk.requests()
        body = replies_body(form, {request["id"]: False})
        if form == "ai_sdk":
            body["messages"][0]["parts"][0]["approval"]["reason"] = "Not today."
        else:
            body["resume"][0]["payload"]["reason"] = "Not today."
        rows = desk.post(form, body)
        assert desk.paid == []
        assert "Not today." in str(desk.provider.received[-1].body)
        assert desk.calls() == [("send", "output-denied", None)]
        if form == "ai_sdk":
            assert {"type": "tool-output-denied", "toolCallId": "call_1"} in rows


@each_form
def test_one_of_two_may_be_decided_later(form: str, tmp_path: Path) -> None:
    """chats: Some decisions may come later"""
    with bank(tmp_path) as desk:
        desk.say(form, "both")
        one, two = [request["id"] for request in desk.requests()]
        desk.reply(form, {one: True})
        assert [request["id"] for request in desk.requests()] == [two]
        desk.reply(form, {one: True, two: False})
        assert desk.paid == ["Ada 75"]
        assert [state for _, state, _ in desk.calls()] == ["output-available", "output-denied"]


@each_form
def test_a_request_that_was_never_made_decides_nothing(form: str, tmp_path: Path) -> None:
    """chats: An unknown id decides nothing"""
    with bank(tmp_path) as desk:
        desk.say(form, "send")
        [request] = desk.requests()
        desk.reply(form, {request["id"]: True, "confirm_other": True})
        assert desk.paid == []
        assert desk.requests() == [request]
        desk.reply(form, {request["id"]: True})
        assert desk.paid == ["Ada 75"]


@each_form
def test_a_question_of_a_tool_is_answered_on_the_page(form: str, tmp_path: Path) -> None:
    """chats: A tool asks on the page"""
    with bank(tmp_path) as desk:
        rows = desk.say(form, "how much")
        [request] = desk.requests()
        assert request["responseSchema"] == {"type": "integer"}
        assert request["message"] == "How much?"
        if form == "ai_sdk":
            [ask] = [row for row in rows if row.get("toolName") == "ask"]
            assert ask["toolCallId"] == request["id"]
            assert ask["input"] == {"question": "How much?", "schema": {"type": "integer"}}
        wrong = desk.reply(form, {request["id"]: "many"})
        assert "InvalidOption" in str(wrong)
        assert desk.requests() == [request]
        desk.reply(form, {request["id"]: 7})
        assert ("ask_and_send", "output-available", "Sent 7 EUR to Ada.") in desk.calls()
        assert desk.calls().count(("balance", "output-available", "620 EUR")) == 1


@each_form
@pytest.mark.parametrize("why", ["I do not know.", None])
def test_a_question_can_be_declined(form: str, why: str | None, tmp_path: Path) -> None:
    """chats: A tool asks on the page"""
    with bank(tmp_path) as desk:
        desk.say(form, "how much")
        [request] = desk.requests()
        part = {"toolCallId": request["id"], "state": "output-error", "errorText": why or " "}
        body: Any = {"id": "c1", "messages": [{"id": "m", "role": "assistant", "parts": [part]}]}
        if form == "ag_ui":
            entry = {"interruptId": request["id"], "status": "cancelled"}
            body = {"threadId": "c1", "runId": "r", "messages": [], "resume": [entry]}
        desk.post(form, body)
        [told] = [str(output) for _, _, output in desk.calls() if "Nothing was sent" in str(output)]
        assert form == "ag_ui" or ("I do not know." in told) == bool(why)


@pytest.mark.parametrize("by", ["request", "handle"])
def test_a_result_comes_from_elsewhere(by: str, tmp_path: Path) -> None:
    """chats: A result comes from elsewhere"""
    with bank(tmp_path) as desk:
        desk.say("ai_sdk", "order")
        [request] = desk.requests()
        key = request["id"] if by == "request" else "order-Emma"
        assert not asyncio.run(desk.chats.deliver("c1", "bob", key, "Mine."))
        assert not asyncio.run(desk.chats.deliver("c1", "ada", "order-Other", "No."))
        assert asyncio.run(desk.chats.deliver("c1", "ada", key, "It is in the mail."))
        assert not asyncio.run(desk.chats.deliver("c1", "ada", key, "It is in the mail."))
        assert desk.calls() == [("order", "output-available", "It is in the mail.")]
        assert desk.texts()[-1] == "It is in the mail."


@each_form
def test_a_page_brings_a_result(form: str, tmp_path: Path) -> None:
    """chats: A result comes from elsewhere"""
    with bank(tmp_path) as desk:
        desk.say(form, "order")
        [request] = desk.requests()
        if form == "ai_sdk":
            desk.reply(form, {request["toolCallId"]: "Here it is."})
        else:
            row = {"id": "t", "role": "tool", "toolCallId": request["toolCallId"], "content": "Here it is."}
            desk.post(form, {"threadId": "c1", "runId": "r", "messages": [row]})
        assert desk.calls() == [("order", "output-available", "Here it is.")]


@each_form
def test_a_message_to_a_chat_that_waits_is_refused(form: str, tmp_path: Path) -> None:
    """chats: A message to a chat that waits is refused"""
    with bank(tmp_path) as desk:
        desk.say(form, "send")
        [request] = desk.requests()
        asked = desk.asked
        rows = desk.say(form, "Hello")
        assert "This chat waits for a decision." in str(rows)
        assert request["id"] in str(rows)
        assert desk.asked == asked
        assert desk.texts() == ["send", "I try."]


@each_form
def test_the_same_message_twice_is_one(form: str, tmp_path: Path) -> None:
    """chats: The same message twice is one"""
    with bank(tmp_path) as desk:
        body = message(form, "Hello")
        desk.post(form, body)
        rows = desk.post(form, body)
        assert "Hello." in str(rows)
        assert desk.asked == 1
        assert desk.texts() == ["Hello", "Hello."]


def test_another_answer_is_given_unless_tools_ran(tmp_path: Path) -> None:
    """chats: Another answer, or other words, cut the chat"""
    with bank(tmp_path) as desk:
        body = message("ai_sdk", "Hello")
        desk.post("ai_sdk", body)
        desk.post("ai_sdk", {**body, "trigger": "regenerate-message", "messageId": "a"})
        assert desk.asked == 2
        assert desk.texts() == ["Hello", "Hello."]
        body = message("ai_sdk", "whoami")
        desk.post("ai_sdk", body)
        asked = desk.asked
        rows = desk.post("ai_sdk", {**body, "trigger": "regenerate-message", "messageId": "a"})
        assert desk.asked == asked
        assert "Tools ran behind this place" in str(rows)
        assert desk.calls() == [("whoami", "output-available", "None 1")]


def test_a_process_that_died_is_told_and_the_chat_goes_on(tmp_path: Path) -> None:
    """chats: A process dies"""
    with bank(tmp_path) as desk:
        desk.say("ai_sdk", "send")
        [request] = desk.requests()
        desk.die({"type": "replies", "decided": {request["id"]: None}})
        assert desk.calls() == [("send", "output-error", "ToolError")]
        desk.reply("ai_sdk", {request["id"]: True})
        assert desk.paid == []
        desk.say("ai_sdk", "Hello")
        assert "It is not known whether this ran" in desk.sent
        assert desk.texts()[-1] == "Hello."


def test_a_run_without_an_answer_leaves_its_message(tmp_path: Path) -> None:
    """chats: A run fails"""
    with bank(tmp_path) as desk:
        desk.script = [Failure(400, "a secret")]
        rows = desk.say("ai_sdk", "Hello")
        assert "a secret" not in str(rows)
        assert [row for row in rows if row["type"] == "error"]
        assert desk.texts() == ["Hello"]


def test_deps_state_and_limits_are_of_the_chat(tmp_path: Path) -> None:
    """chats: Tools know the owner and the state of the chat"""

    def deps(owner: str) -> str:
        return f"is {owner}"

    with bank(tmp_path, deps=deps, state={"count": 4}, limits=Limits(requests=2)) as desk:
        desk.say("ai_sdk", "whoami")
        desk.say("ai_sdk", "whoami")
        assert [output for _, _, output in desk.calls()] == ["is ada 5", "is ada 6"]
        assert "state" not in desk.chats.messages("c1", "ada")[0]
        desk.script = [Answer(calls=[Call("balance")])] * 3
        assert "LimitExceeded" in str(desk.say("ai_sdk", "Hello"))


def test_a_state_that_is_no_json_is_told(tmp_path: Path) -> None:
    """chats: Tools know the owner and the state of the chat"""

    def keep(context: ToolContext) -> str:
        """Keep an object."""
        context.state["object"] = object()
        return "kept"

    with page_of(agent_of(keep), [Answer(calls=[Call("keep")]), submit("Done.")], tmp_path) as page:
        assert "InvalidOption" in str(page.say("ai_sdk", "Go"))
        assert "kept" in str(page.chats.messages("c1", "ada"))


def test_deps_that_fail_leave_the_chat_as_it_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """chats: Tools know the owner and the state of the chat"""

    def deps(owner: str) -> str:
        raise KeyError(owner)

    with bank(tmp_path, deps=deps) as desk:
        assert "KeyError" in str(desk.say("ai_sdk", "Hello"))
        assert desk.texts() == []
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [True]


def test_an_async_program_runs_on_when_its_page_has_left(tmp_path: Path) -> None:
    """chats: A page leaves"""

    async def slow(context: ToolContext) -> str:
        """Take a while."""
        await asyncio.sleep(0.2)
        return f"slow {context.call.name}"

    async def leave_and_wait(chats: ui.Chats) -> None:
        stream: Any = chats.ai_sdk(message("ai_sdk", "go"), "ada")
        async for _ in stream:
            await stream.aclose()
            break
        for _ in range(100):
            await asyncio.sleep(0.05)
            if "slow slow" in str(chats.messages("c1", "ada")):
                return

    with page_of(agent_of(slow), [Answer(calls=[Call("slow")]), submit("Done.")], tmp_path) as page:
        asyncio.run(leave_and_wait(page.chats))
        assert "slow slow" in str(page.chats.messages("c1", "ada"))


class Guard(dspy.Module):
    """A program without a signature, which replaces what its model says."""

    def __init__(self) -> None:
        super().__init__()
        self.draft = dspy.Predict("question, history: dspy.History -> answer")

    def forward(self, question: str, history: dspy.History) -> dspy.Prediction:
        prediction: Any = self.draft(question=question, history=history)
        draft: str = prediction.answer
        return dspy.Prediction(answer=draft.replace("secret", "[hidden]"))


def test_what_was_output_is_what_is_kept(tmp_path: Path) -> None:
    """chats: The page shows what was output"""
    with page_of(Guard, [text_of("a secret"), text_of("b")], tmp_path) as page:
        assert "a [hidden]" in str(page.say("ai_sdk", "What?"))
        page.say("ai_sdk", "And?")
        assert page.texts() == ["What?", "a [hidden]", "And?", "b"]
        assert "a [hidden]" in str(page.provider.received[-1].body)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"program": 7}, "program"),
        ({"lease": 0}, "lease"),
        ({"lease": True}, "lease"),
        ({"field": "nothing"}, "field"),
        ({"state": [1]}, "state"),
        ({"state": "x"}, "state"),
        ({"state": {"at": object()}}, "state"),
        ({"state": {1: 2}}, "state"),
        ({"error_text": "x"}, "error_text"),
        *(({"store": store}, "store") for store in (None, 7, b"x", ui.ChatStore, ":memory:", "a\0b")),
    ],
)
def test_what_cannot_serve_is_refused(options: dict[str, Any], field: str, tmp_path: Path) -> None:
    """chats: What cannot serve is refused"""
    program = options.pop("program", dspy.Predict("question -> answer"))
    store = options.pop("store", tmp_path / "c.db")
    with pytest.raises(InvalidOption) as caught:
        ui.Chats(program, store, **options)
    assert caught.value.field == field


def test_an_owner_is_a_text_and_a_form_is_known(tmp_path: Path) -> None:
    """chats: What cannot serve is refused"""
    chats = ui.Chats(dspy.Predict("question -> answer"), tmp_path / "c.db")
    for call in (
        lambda: chats.messages("c1", 7),  # pyright: ignore[reportArgumentType]
        lambda: chats.messages("c1", "ada", form="html"),  # pyright: ignore[reportArgumentType]
        lambda: chats.messages("c1", "ada", form=["ag_ui"]),  # pyright: ignore[reportArgumentType]
        lambda: chats.ai_sdk(message("ai_sdk", "x"), None),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(InvalidOption):
            call()
    assert chats.messages("\ud800", "ada") == []


UNREADABLE = [{"approved": "yes"}, {}, None, {"approve": True}, True, [1]]
OTHER_ARGUMENTS = {"approved": True, "editedArgs": {"eur": 1}}


@pytest.mark.parametrize(
    ("payload", "why"),
    [*((payload, "true or false") for payload in UNREADABLE), (OTHER_ARGUMENTS, "and nothing else")],
)
def test_a_payload_that_approves_nothing_says_why(payload: Any, why: str, tmp_path: Path) -> None:
    """chats: A decision that cannot be read is refused"""
    with bank(tmp_path) as desk:
        desk.say("ag_ui", "send")
        [request] = desk.requests()
        entry = {"interruptId": request["id"], "status": "resolved", "payload": payload}
        rows = desk.post("ag_ui", {"threadId": "c1", "runId": "r9", "messages": [], "resume": [entry]})
        assert why in str(rows)
        assert desk.paid == []
        assert desk.requests() == [request]
        desk.post("ag_ui", replies_body("ag_ui", {request["id"]: True}))
        assert len(desk.paid) == 1
