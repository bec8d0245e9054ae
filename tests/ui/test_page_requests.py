"""Bodies of pages: each is read, or refused with `invalid_body`, whatever stands in it."""

import json
from typing import Any

import pytest
from chat_pages import message, replies_body
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.errors import InvalidOption
from sigadapt.ui.page_requests import Approval, Message, PageOutput, Payload, Refusal, read_ag_ui, read_ai_sdk

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
