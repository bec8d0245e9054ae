"""Any provider's request read back, and sent again."""

import base64
import gzip
import json
import os
from pathlib import Path
from typing import Any

import dspy
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

import sigadapt
from sigadapt import InvalidToolCall, ToolCalls, ToolDecls, ToolResults
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.logs import Conversation, conversation_from_request
from sigadapt.testing import Answer, LoopbackProvider

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
DECL = {"name": "get_weather", "description": "Weather.", "parameters": SCHEMA}
PNG = base64.b64encode(b"\x89PNG not really").decode()
CORPUS = os.environ.get("SIGADAPT_CORPUS", "")
NATIVE = ("openai", "responses", "anthropic", "gemini")


def function(name: str, args: object, call_id: str | None) -> dict[str, Any]:
    arguments: object = json.dumps(args) if args is None else args
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(*messages: dict[str, Any], **beside: Any) -> dict[str, Any]:
    tools = [{"type": "function", "function": DECL}]
    return {"model": "m", "tools": tools, "messages": list(messages), **beside}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(call_id: str, arguments: Any = "{}", content: str | None = None) -> dict[str, Any]:
    call = function("get_weather", arguments, call_id)
    return {"role": "assistant", "content": content, "tool_calls": [call]}


REQUESTS: dict[str, dict[str, Any]] = table(__file__, "REQUESTS")


def said(conversation: Conversation) -> list[Any]:
    """The calls and results of the turn under way, and whether each result is a failure."""
    return [
        (call.id, call.name, getattr(call, "args", None), result.value, result.is_error)
        for each in (conversation.results or ToolResults()).rounds
        for call, result in each.pairs
    ]


def sent_again(
    conversation: Conversation, wire: str = "openai", changes: list[Any] | None = None, **inputs: Any
) -> dict[str, Any]:
    """What leaves for a conversation; `changes` gets what is on record of it."""
    with LoopbackProvider([Answer(text="ok")]) as provider:
        lm: Any = dspy.LM(**provider.lm_options(wire))
        with dspy.context(lm=lm):
            conversation.program()(**{**conversation.inputs(), **inputs})
    if changes is not None:
        changes += [each for entry in lm.history for each in entry.get("changes") or ()]
    return dict(provider.received[0].body)


@pytest.mark.parametrize("wire", REQUESTS)
@pytest.mark.parametrize("to", NATIVE)
def test_a_conversation_moves(wire: str, to: str) -> None:
    """logs: A request of each wire is one conversation.

    logs: Nothing is added to a recorded conversation.
    """
    conversation = conversation_from_request(REQUESTS[wire])
    assert conversation.wire == wire
    body = sent_again(conversation, to)
    again = conversation_from_request(body)
    assert again.inputs() == conversation.inputs()
    assert again.tools.fingerprint() == conversation.tools.fingerprint()
    assert "##" not in json.dumps(body)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=9).map(
    lambda text: f"a{text}z"
)
VALUES = TEXTS | st.integers() | st.dictionaries(TEXTS, TEXTS)
CALLS = st.lists(st.tuples(TEXTS, VALUES, st.booleans()), min_size=1, max_size=3)
ROUNDS = st.lists(CALLS, max_size=3)
TURNS = st.lists(st.tuples(TEXTS, ROUNDS, TEXTS), max_size=3)


def written(turns: list[Any], number: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for question, rounds, answer in turns:
        results = ToolResults()
        for group in rounds:
            calls: list[Any] = []
            for city, _, _ in group:
                number[0] += 1
                calls.append({"id": f"c{number[0]}", "name": "get_weather", "args": {"city": city}})
            values = [value for _, value, _ in group]
            results += ToolResults.of(ToolCalls(calls), values, errors=[failed for *_, failed in group])
        rows.append({"question": question, "answer": answer} | ({"results": results} if rounds else {}))
    return rows


@pytest.mark.parametrize("wire", NATIVE)
@settings(deadline=None, max_examples=share(20))
@given(turns=TURNS, last=st.tuples(TEXTS, ROUNDS), system=st.none() | TEXTS)
def test_round_trip(wire: str, turns: list[Any], last: tuple[Any, Any], system: str | None) -> None:
    """logs: What sigadapt sent is read back."""
    number = [0]
    history = dspy.History(messages=written(turns, number))
    (under_way,) = written([(*last, "")], number)
    results = under_way.get("results")
    first = Conversation(wire, ToolDecls([DECL]), system, history, last[0], results)
    body = sent_again(first, wire)
    again = conversation_from_request(body)
    assert (again.system, again.question) == (system, last[0])
    pairs = [(row.get("question"), row.get("answer")) for row in again.history.messages]
    assert pairs == [(question, answer) for question, _, answer in turns]
    assert [call[:3] for call in said(again)] == [call[:3] for call in said(first)]
    body_again = sent_again(again, wire)
    assert (body_again.get("messages"), body_again.get("input"), body_again.get("contents")) == (
        body.get("messages"),
        body.get("input"),
        body.get("contents"),
    )


@pytest.mark.skipif(not CORPUS, reason="needs the recorded requests")
@pytest.mark.parametrize(
    "wire", ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"]
)
def test_corpus(wire: str) -> None:
    """logs: Recorded requests are read and sent again."""
    with gzip.open(Path(CORPUS) / "logs" / f"{wire}.jsonl.gz", "rt", encoding="utf-8") as lines:
        bodies = [json.loads(line)["request"] for line in lines]
    read, differ = [conversation_from_request(body) for body in bodies], list[Any]()
    own = {"openai-chat": "openai", "openai-responses": "responses"}.get(wire, wire)
    for conversation in read[:: 5 if own in NATIVE else 1]:
        assert conversation.wire == wire or not said(conversation)
        if own in NATIVE and not any("the server keeps" in change.why for change in conversation.changes):
            again = conversation_from_request(sent_again(conversation, own))
            same = (again.system, again.question) == (conversation.system, conversation.question)
            calls = [call[1:4:2] for call in said(again)] == [call[1:4:2] for call in said(conversation)]
            differ += [] if same and calls else [conversation]
    assert len(differ) <= len(read) / 50


def test_turns() -> None:
    """logs: A turn begins where the user speaks."""
    call = {"role": "assistant", "tool_calls": [function("get_weather", "{}", "c1")]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "18 C"}
    body = chat(
        user("a"), user("b"), call, result, user("c"), {"role": "assistant", "content": "d"}, user("e")
    )
    conversation = conversation_from_request(body)
    first, second = conversation.history.messages
    assert (first["question"], "answer" in first, len(first["results"])) == ("a\n\nb", False, 1)
    assert (second, conversation.question) == ({"question": "c", "answer": "d"}, "e")
    ends = conversation_from_request(chat(user("a"), {"role": "assistant", "content": "The answer is"}))
    assert (ends.question, ends.history.messages) == (None, [{"question": "a", "answer": "The answer is"}])
    assert sent_again(ends)["messages"][-1] == {"role": "assistant", "content": "The answer is"}


def test_unanswered() -> None:
    """logs: A call that nobody answered stays."""
    call = {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [function("get_weather", "{}", "c1")],
    }
    conversation = conversation_from_request(chat(user("a"), call, user("b")))
    (row,) = conversation.history.messages
    assert (row["calls"][0].id, row["calls"].text, "results" in row) == ("c1", "Let me look.", False)
    assert [change.what for change in conversation.changes] == ["healed"]
    sent = sent_again(conversation)["messages"]
    assert [row["role"] for row in sent] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("code", "name", "arguments", "instead"),
    [
        ("invalid_json", "get_weather", '{"city": "Ro', "no arguments"),
        ("not_an_object", "get_weather", "[1]", "no arguments"),
        ("missing_name", None, "{}", "the name 'unnamed'"),
    ],
)
def test_bad_call(code: str, name: Any, arguments: str, instead: str) -> None:
    """logs: A bad call of a request stays as it was sent."""
    call = {"role": "assistant", "tool_calls": [function(name, arguments, "c1")]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "ERROR: cut off"}
    conversation = conversation_from_request(chat(user("?"), call, result))
    assert conversation.results is not None
    ((bad, answered),) = conversation.results.rounds[0].pairs
    assert isinstance(bad, InvalidToolCall)
    assert (bad.code, bad.arguments, answered.is_error) == (code, arguments, True)
    (change,) = conversation.changes
    assert (change.where, change.what) == ("/calls/c1", "lowered")
    assert arguments in change.why
    assert change.why.endswith(f"call 'c1' has {instead}")
    (sent,) = sent_again(conversation)["messages"][1]["tool_calls"]
    assert sent["function"] == {"name": name or "unnamed", "arguments": "{}"}


def test_on_record() -> None:
    """logs: What has no neutral form is on record."""
    body: dict[str, Any] = table(__file__, "ON_RECORD")
    conversation = conversation_from_request(body)
    assert [change.what for change in conversation.changes] == ["lowered", "lowered"]
    assert conversation.question == [
        {"type": "instructions", "value": "Be kind."},
        {"type": "text", "text": "More."},
    ]
    sent = sent_again(conversation, "anthropic")["messages"]
    own = [{**row, "content": row["content"]} for row in body["messages"] if row["role"] != "system"]
    assert sent[:4] == own[:4]
    other = json.dumps(sent_again(conversation)["messages"])
    assert not any(word in other for word in ("EqQB", "container_upload", "search_result"))
    assert "Sunny." in other


def later_instructions(*before: Any) -> dict[str, Any]:
    """A request of OpenAI's with instructions after these messages."""
    rows: list[Any] = [user("Hi."), *before, {"role": "system", "content": "The user is a guest."}]
    return {"model": "m", "messages": [{"role": "system", "content": "Help."}, *rows, user("Who am I?")]}


CALLED: list[Any] = table(__file__, "CALLED")


@pytest.mark.parametrize("before", [[], [{"role": "assistant", "content": "Hello."}], CALLED])
def test_instructions_inside_of_the_conversation(before: list[Any]) -> None:
    """logs: Instructions inside of the conversation go out in their place"""
    body = later_instructions(*before)
    conversation = conversation_from_request(body)
    assert conversation.changes == ()
    for ended in (body, {**body, "messages": body["messages"][:-1]}):
        conversation = conversation_from_request(ended)
        sent = sent_again(conversation)["messages"]
        assert [(row["role"], row["content"]) for row in sent] == [
            (row["role"], row["content"]) for row in ended["messages"]
        ]
    for wire in ("anthropic", "gemini"):
        changes: list[Any] = []
        assert "The user is a guest." in json.dumps(sent_again(conversation, wire, changes=changes))
        (change,) = [each for each in changes if "instructions" in each.why]
        assert change.what == "lowered"
    saved = json.loads(conversation.history.model_dump_json())
    assert sent_again(conversation, history=saved)["messages"] == sent


UNSAID: list[tuple[str, dict[str, Any], str, str]] = table(__file__, "UNSAID")


@pytest.mark.parametrize(("_", "body", "place", "word"), UNSAID, ids=[row[0] for row in UNSAID])
def test_what_is_left_out_is_on_record(_: str, body: dict[str, Any], place: str, word: str) -> None:
    """logs: What a message holds beside its content is on record"""
    changes = conversation_from_request(body).changes
    (change,) = [each for each in changes if "no result" not in each.why]
    assert (change.where, change.what, word in change.why) == (place, "dropped", True), change


def test_what_says_nothing_is_not_on_record() -> None:
    rows: list[Any] = table(__file__, "NOTHING")
    assert conversation_from_request({"model": "m", "messages": rows}).changes == ()


def test_media() -> None:
    """logs: What has no neutral form is on record."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    body = {
        "model": "claude",
        "max_tokens": 9,
        "messages": [user([{"type": "text", "text": "What?"}, image])],
    }
    conversation = conversation_from_request(body)
    assert isinstance(conversation.question, list)
    assert sent_again(conversation, "anthropic")["messages"] == body["messages"]
    (message,) = sent_again(conversation)["messages"]
    assert message["content"][1]["image_url"]["url"].endswith(PNG)
    (item,) = sent_again(conversation, "responses")["input"]
    assert [part["type"] for part in item["content"]] == ["input_text", "input_image"]
    (content,) = sent_again(conversation, "gemini")["contents"]
    assert content["parts"][1]["inlineData"]["data"] == PNG
    sound = {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}}
    heard = conversation_from_request(chat(user([sound])))
    with pytest.raises(InvalidHistory, match="audio"):
        sent_again(heard, "anthropic")


@pytest.mark.parametrize("content", ["half \ud83d", [{"type": "text", "text": "half \ud83d"}]])
def test_half_a_character_can_be_saved(content: Any) -> None:
    """logs: What has no neutral form is on record."""
    conversation = conversation_from_request(
        chat(user(content), {"role": "assistant", "content": "ok"}, user(content))
    )
    assert conversation.question == "half \ufffd"
    assert "half \ufffd" in conversation.history.model_dump_json()
    assert [change.where for change in conversation.changes] == ["/question"] * 2


def test_settings() -> None:
    """logs: Settings hold no key."""
    body = chat(user("?"), temperature=0.3, api_key="sk-fake-000111222", strange={"token": "x" * 20})
    body["tool_choice"] = {"type": "function", "function": {"name": "get_weather"}}
    conversation = conversation_from_request(body)
    wanted = {"model": "m", "temperature": 0.3, "tool_choice": "get_weather"}
    assert conversation.settings == wanted
    assert {change.where for change in conversation.changes} == {"/api_key", "/strange"}
    assert "sk-fake" not in repr(conversation)


NONE: list[Any] = table(__file__, "NONE")


@pytest.mark.parametrize("body", NONE)
def test_no_request(body: Any) -> None:
    """logs: What is no request of a chat is refused."""
    with pytest.raises(InvalidHistory, match="request of a chat") as raised:
        conversation_from_request(body)
    assert raised.value.code == "unreadable_request"
    with pytest.raises(sigadapt.errors.InvalidOption):
        conversation_from_request({"messages": []}, wire="nobody")


async def test_async() -> None:
    """logs: Nothing is added to a recorded conversation."""
    conversation = conversation_from_request(chat(user("?")))
    with (
        LoopbackProvider([Answer(text="ok")]) as provider,
        dspy.context(lm=dspy.LM(**provider.lm_options("openai"))),
    ):
        assert (await conversation.program().acall(**conversation.inputs())).answer == "ok"


LATER: dict[str, Any] = table(__file__, "LATER")


@pytest.mark.parametrize("wire", ["anthropic", "openai", "responses", "gemini"])
def test_a_deferred_tool_loses_no_field_that_it_never_had(wire: str) -> None:
    """logs: A tool that was deferred loses nothing."""
    conversation = conversation_from_request(LATER)
    changes: list[Any] = []
    body = sent_again(conversation, wire, changes=changes)
    assert not any("namespace" in str(each) for each in changes)
    if wire == "anthropic":
        assert [*conversation.changes, *changes] == []
        [later] = [tool for tool in body["tools"] if tool["name"] == "later"]
        assert later["defer_loading"] is True


def test_an_unknown_wire_is_told_with_those_that_are_known() -> None:
    """logs: What is no request of a chat is refused."""
    aurora = {"model": "aurora-1", "dialogue": [{"speaker": "human", "says": "Weather?"}]}
    with pytest.raises(InvalidHistory) as caught:
        conversation_from_request(aurora)
    assert all(each in str(caught.value) for each in ("dialogue", "openai-chat", "anthropic", "gemini"))
    assert "cohere" not in str(caught.value)  # whose requests are not read
    with pytest.raises(InvalidOption) as unknown:
        conversation_from_request(aurora, wire="x")
    assert (unknown.value.field, "anthropic" in str(unknown.value)) == ("wire", True)
    nothing = conversation_from_request({"model": "m", "messages": [{"role": "assistant", "content": "Hi."}]})
    with LoopbackProvider([Answer(text="ok")]) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        with dspy.context(lm=lm), pytest.raises(InvalidHistory, match="nothing to say"):
            nothing.program()(question=None)
