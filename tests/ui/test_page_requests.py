"""Bodies of pages: each is read, or refused with `invalid_body`, whatever stands in it."""

import json
from typing import Any

import pytest
from chat_pages import message, replies_body
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.errors import InvalidOption
from sigadapt.ui.page.page_requests import (
    Approval,
    Message,
    PageOutput,
    PageReply,
    PageRequest,
    Payload,
    Refusal,
    read_ag_ui,
    read_ai_sdk,
)

READERS = {"ai_sdk": read_ai_sdk, "ag_ui": read_ag_ui}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=12,
)


@pytest.mark.parametrize("form", READERS)
def test_a_message_is_read(form: str) -> None:
    """chats: A body is read"""
    body = message(form, "Hello \ud800")
    assert READERS[form](body).message == Message(body["messages"][-1]["id"], "Hello \ufffd")


def test_replies_are_read() -> None:
    """chats: A body is read"""
    body = replies_body("ai_sdk", {"a": True, "b": {"x": 1}})
    assert read_ai_sdk(body).replies == {"a": Approval(True), "b": PageOutput({"x": 1})}
    entries = [
        {"interruptId": "a", "status": "resolved", "payload": 7},
        {"interruptId": "b", "status": "cancelled"},
    ]
    request = read_ag_ui({"threadId": "c", "runId": "r", "messages": [], "resume": entries})
    assert request.replies == {"a": Payload(7), "b": Refusal()}


def test_the_message_that_the_body_names_holds_the_replies() -> None:
    """chats: A body is read"""
    body = replies_body("ai_sdk", {"a": False})
    body["messages"].append({"id": "u", "role": "user", "parts": [{"type": "text", "text": "Hm?"}]})
    assert read_ai_sdk(body).message == Message("u", "Hm?")
    assert read_ai_sdk({**body, "messageId": "page"}).replies == {"a": Approval(False)}


@pytest.mark.parametrize("approved", ["true", 1, None, [], {"approved": True}])
def test_a_yes_is_true_and_nothing_else(approved: Any) -> None:
    """chats: A body that is none is refused"""
    body = replies_body("ai_sdk", {"a": True})
    body["messages"][0]["parts"][0]["approval"]["approved"] = approved
    with pytest.raises(InvalidOption, match="approved is true or false") as caught:
        read_ai_sdk(body)
    assert caught.value.code == "invalid_body"


@given(body=JSON)
@pytest.mark.parametrize("form", READERS)
def test_any_body_is_read_or_refused(form: str, body: Any) -> None:
    """chats: A body that is none is refused"""
    _read_or_refuse(form, body)


@given(body=st.data())
@pytest.mark.parametrize("form", READERS)
def test_any_changed_body_is_read_or_refused(form: str, body: st.DataObject) -> None:
    """chats: A body that is none is refused"""
    whole = body.draw(st.sampled_from([message(form, "Hello"), replies_body(form, {"a": True, "b": 1})]))
    changed = json.loads(json.dumps(whole))
    places = [changed, changed["messages"], *changed["messages"], *changed.get("resume", [])]
    place = body.draw(st.sampled_from([place for place in places if place]))
    keys: list[Any] = [*place] if isinstance(place, dict) else [*range(len(place))]
    place[body.draw(st.sampled_from(keys))] = body.draw(JSON)
    _read_or_refuse(form, changed)


def _read_or_refuse(form: str, body: Any) -> None:
    error: InvalidOption | None = None
    try:
        request = READERS[form](body)
    except InvalidOption as refusal:
        error = refusal
    else:
        assert (request.message is None) == bool(request.replies)
    assert error is None or (error.code, error.field) == ("invalid_body", "body")


def user_row(text: Any, row_id: Any = "u") -> dict[str, Any]:
    return {"id": row_id, "role": "user", "content": text, "parts": text}


def assistant_row(*parts: Any, row_id: str = "m1") -> dict[str, Any]:
    return {"id": row_id, "role": "assistant", "parts": [*parts]}


def approval(request_id: str, *, approved: Any = True, **more: Any) -> dict[str, Any]:
    return {"state": "approval-responded", "approval": {"id": request_id, "approved": approved, **more}}


def ai_sdk(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c", "messages": [*rows], **more}


def ag_ui(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"threadId": "c", "runId": "r", "messages": [*rows], **more}


TEXTS = [{"type": "text", "text": "a"}, "b", {"type": "file", "text": "c"}, {"type": "text", "text": "d"}]


def test_all_that_a_reply_of_the_ai_sdk_says_is_read() -> None:
    """chats: A body is read"""
    parts = [
        {"type": "text", "text": "I try."},
        {"type": "reasoning", "text": "Hm."},
        "no part",
        {"toolCallId": "c1", **approval("a", approved=False, reason="Not today.")},
        {"toolCallId": "c2", "state": "output-error", "errorText": "I do not know."},
        {"toolCallId": "c3", "state": "output-error", "errorText": " "},
        {"toolCallId": "c4", "state": "input-available"},
    ]
    assert read_ai_sdk(ai_sdk(assistant_row(*parts))) == PageRequest(
        "c",
        replies={"a": Approval(False, "Not today."), "c2": Refusal("I do not know."), "c3": Refusal()},
        named=frozenset({"a"}),
        message_id="m1",
        shown_calls=frozenset({"c1", "c2", "c3", "c4"}),
        shown_texts=frozenset({"I try."}),
    )


def test_all_that_a_body_of_ag_ui_says_is_read() -> None:
    """chats: A body is read"""
    entries = [{"interruptId": key, "status": "resolved", "payload": key} for key in ("a", "b")]
    decided: dict[str, PageReply] = {"a": Payload("a"), "b": Payload("b")}
    assert read_ag_ui(ag_ui(resume=entries)) == PageRequest(
        "c", replies=decided, named=frozenset({"a", "b"}), run_id="r"
    )
    output = {"id": "t", "role": "tool", "toolCallId": "c1", "content": "18 C"}
    assert read_ag_ui(ag_ui(output)) == PageRequest(
        "c", replies={"c1": PageOutput("18 C")}, run_id="r", result_ids={"c1": "t"}
    )
    assert read_ag_ui(ag_ui(user_row(TEXTS))) == PageRequest("c", Message("u", "ad"), run_id="r")


def test_the_body_says_which_message_is_answered() -> None:
    """chats: A body is read"""
    first, second = assistant_row(approval("a")), assistant_row(approval("b"), row_id="m2")
    assert [*read_ai_sdk(ai_sdk(first, second, messageId="m1")).replies] == ["a"]
    assert [*read_ai_sdk(ai_sdk(first, second, messageId="m9")).replies] == ["b"]
    again = read_ai_sdk(ai_sdk(first, user_row(TEXTS), messageId="m1", trigger="regenerate-message"))
    assert (again.message, again.again, again.replies) == (Message("u", "ad"), True, {})


def test_an_id_and_a_text_may_be_as_long_as_their_bounds() -> None:
    """chats: A body is read"""
    row = user_row("x" * 1_000_000, "i" * 500)
    assert read_ag_ui(ag_ui(row)).message == Message("i" * 500, "x" * 1_000_000)
    assert [*read_ai_sdk(ai_sdk(assistant_row(approval("r" * 500), approval("r" * 501)))).replies] == [
        "r" * 500,
        "",
    ]


MAKERS = (("ai_sdk", ai_sdk), ("ag_ui", ag_ui))
GOOD, REPLY = user_row("Hi"), assistant_row(approval("a"))
REFUSED: list[tuple[str, Any, str]] = [
    *((form, [1], "the body is an object, not a list") for form in READERS),
    *(
        (form, make(GOOD) | {key: "x" * 501}, f"{key} is a text of 1 to 500 characters, not 'xxx")
        for form, make, key in (
            ("ai_sdk", ai_sdk, "id"),
            ("ag_ui", ag_ui, "threadId"),
            ("ag_ui", ag_ui, "runId"),
        )
    ),
    *((form, make(GOOD) | {"messages": {}}, "messages is an array, not a dict") for form, make in MAKERS),
    *((form, make(), "messages is empty") for form, make in MAKERS),
    *((form, make(5), "the last message is an object, not an int") for form, make in MAKERS),
    *(
        (
            form,
            make(user_row("Hi", row_id)),
            f"the last message's id is a text of 1 to 500 characters, not {row_id!r}",
        )
        for form, make in MAKERS
        for row_id in ("", "\ud800")
    ),
    *((form, make(user_row(5)), "the message is an array, not an int") for form, make in MAKERS),
    *((form, make(user_row("x" * 1_000_001)), "longer than 1,000,000 characters") for form, make in MAKERS),
    ("ai_sdk", ai_sdk(REPLY | {"role": "system"}), "the last message is neither"),
    ("ai_sdk", ai_sdk(REPLY, trigger="regenerate-message"), "the last message is neither"),
    ("ai_sdk", ai_sdk(REPLY | {"parts": None}), "parts is an array, not None"),
    ("ai_sdk", ai_sdk(REPLY | {"id": None}), "the last message's id is a text"),
    ("ai_sdk", ai_sdk(assistant_row()), "holds no reply"),
    ("ai_sdk", ai_sdk(assistant_row({"state": "approval-responded"})), "an approval is an object, not None"),
    ("ai_sdk", ai_sdk(assistant_row(approval("a", approved=1))), "not 1 (an int)"),
    ("ag_ui", ag_ui(resume="a"), "resume is an array, not a str"),
    ("ag_ui", ag_ui(resume=["a"]), "an entry of resume is an object, not a str"),
    ("ag_ui", ag_ui(resume=[{"interruptId": "a", "status": "maybe"}]), "not 'maybe'"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_refusal_says_what_the_page_sent(number: int) -> None:
    """chats: A body that is none is refused"""
    form, body, words = REFUSED[number]
    with pytest.raises(InvalidOption) as caught:
        READERS[form](body)
    assert words in str(caught.value)
    assert caught.value.fix is not None
    assert "protocol" in caught.value.fix
