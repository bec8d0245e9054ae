"""Bodies of pages: each is read, or refused with `invalid_body`, whatever stands in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from chat_pages import bank, message, replies_body
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sigadapt
from sigadapt import ui
from sigadapt.errors import InvalidOption

FORMS = ("ai_sdk", "ag_ui")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=12,
)
each_form = pytest.mark.parametrize("form", FORMS)
fixtures_stay = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[ui.Chats]:
    """Chats whose bodies are read, and never run."""
    with dspy.context(adapter=sigadapt.ChatAdapter(), lm=dspy.LM("openai/x")):
        yield ui.Chats(dspy.Predict("question -> answer"), tmp_path / "chats.db")


def user_row(text: Any, row_id: Any = "u") -> dict[str, Any]:
    return {"id": row_id, "role": "user", "content": text, "parts": text}


def assistant_row(*parts: Any, row_id: str = "m1") -> dict[str, Any]:
    return {"id": row_id, "role": "assistant", "parts": [*parts]}


def approval(request_id: str, *, approved: Any = True) -> dict[str, Any]:
    return {"state": "approval-responded", "approval": {"id": request_id, "approved": approved}}


def ai_sdk(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "messages": [*rows], **more}


def ag_ui(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"threadId": "c1", "runId": "r", "messages": [*rows], **more}


PARTS = [{"type": "text", "text": "a"}, "b", {"type": "x", "text": "c"}, {"type": "text", "text": "d\ud800"}]


@each_form
def test_a_message_is_read(form: str, tmp_path: Path) -> None:
    """chats: A body is read"""
    make = ai_sdk if form == "ai_sdk" else ag_ui
    with bank(tmp_path) as desk:
        desk.post(form, make(user_row(PARTS, "i" * 500)))
        assert desk.texts() == ["ad\ufffd", "Hello."]


def test_a_text_may_be_as_long_as_its_bound(chats: ui.Chats) -> None:
    """chats: A body is read"""
    chats.ag_ui(ag_ui(user_row("x" * 1_000_000)), "ada")


WORDS = user_row([{"type": "text", "text": "Hm?"}])


@pytest.mark.parametrize(
    ("is_words", "named", "decided"),
    [(False, "m1", "Ada"), (False, "m9", "Bob"), (True, "m1", "Ada"), (True, None, None)],
)
def test_the_message_that_the_body_names_holds_the_replies(
    is_words: bool, named: str | None, decided: str | None, tmp_path: Path
) -> None:
    """chats: A body is read"""
    with bank(tmp_path) as desk:
        desk.say("ai_sdk", "both")
        ada, bob = desk.requests()
        rows = [assistant_row({"type": "text", "text": "I try."}, "no part", approval(ada["id"]))]
        rows.append(WORDS if is_words else assistant_row(approval(bob["id"]), row_id="m2"))
        desk.post("ai_sdk", ai_sdk(*rows, messageId=named))
        left = [request["metadata"]["input"]["to"] for request in desk.requests()]
        assert [name for name in ("Ada", "Bob") if name not in left] == [decided] * bool(decided)


@given(body=JSON)
@each_form
@fixtures_stay
def test_any_body_is_read_or_refused(form: str, body: Any, chats: ui.Chats) -> None:
    """chats: A body that is none is refused"""
    _read_or_refuse(chats, form, body)


@given(body=st.data())
@each_form
@fixtures_stay
def test_any_changed_body_is_read_or_refused(form: str, body: st.DataObject, chats: ui.Chats) -> None:
    """chats: A body that is none is refused"""
    whole = body.draw(st.sampled_from([message(form, "Hello"), replies_body(form, {"a": True, "b": 1})]))
    changed = json.loads(json.dumps(whole))
    places = [changed, changed["messages"], *changed["messages"], *changed.get("resume", [])]
    place = body.draw(st.sampled_from([place for place in places if place]))
    keys: list[Any] = [*place] if isinstance(place, dict) else [*range(len(place))]
    place[body.draw(st.sampled_from(keys))] = body.draw(JSON)
    _read_or_refuse(chats, form, changed)


def _read_or_refuse(chats: ui.Chats, form: str, body: Any) -> None:
    try:
        getattr(chats, form)(body, "ada")
    except InvalidOption as refusal:
        assert (refusal.code, refusal.field) == ("invalid_body", "body")  # noqa: PT017


MAKERS = (("ai_sdk", ai_sdk), ("ag_ui", ag_ui))
NO_ANSWERS: list[Any] = ["true", 1, None, [], {"approved": True}]
GOOD, REPLY = user_row("Hi"), assistant_row(approval("a"))
REFUSED: list[tuple[str, Any, str]] = [
    *((form, [1], "the body is an object, not a list") for form in FORMS),
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
    *(
        ("ai_sdk", ai_sdk(assistant_row(approval("a", approved=value))), "approved is true or false")
        for value in NO_ANSWERS
    ),
    ("ai_sdk", ai_sdk(assistant_row(approval("a", approved=1))), "not 1 (an int)"),
    ("ag_ui", ag_ui(GOOD | {"role": "assistant"}), "the last message is not the user's"),
    ("ag_ui", ag_ui(resume="a"), "resume is an array, not a str"),
    ("ag_ui", ag_ui(resume=["a"]), "an entry of resume is an object, not a str"),
    ("ag_ui", ag_ui(resume=[{"interruptId": "a", "status": "maybe"}]), "not 'maybe'"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_refusal_says_what_the_page_sent(number: int, chats: ui.Chats) -> None:
    """chats: A body that is none is refused"""
    form, body, words = REFUSED[number]
    with pytest.raises(InvalidOption) as caught:
        getattr(chats, form)(body, "ada")
    assert words in str(caught.value)
    assert caught.value.code == "invalid_body"
    assert "protocol" in str(caught.value.fix)
