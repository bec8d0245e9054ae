"""Where what results hold leaves: in the result, after the results, as text, or not at all."""

import base64
import json
from typing import Any

import dspy
import pytest
from budgets import share
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sending import Engine, changes_of, history, send
from support import Turns, get_weather
from wire_bodies import Served, said_text, serving
from wire_matrix import COLUMNS, ROWS

import sigadapt
from sigadapt import ToolCalls, ToolResults

DATA = base64.b64encode(b"\x89PNG\r\n" * 3).decode()
SHOT = dspy.Image(f"data:image/png;base64,{DATA}")
PDF = dspy.File.from_bytes(b"%PDF", filename="a.pdf", mime_type="application/pdf")
CSV = dspy.File.from_bytes(b"a,b", filename="a.csv", mime_type="text/csv")
WAV = dspy.Audio(data="aGk=", audio_format="wav")
GEMINI_3 = {"model": "gemini/gemini-3-pro-preview"}


def asked(served: Served, results: Any, **changes: Any) -> tuple[Any, list[Any]]:
    """The second request of a conversation, and what is on record of it."""
    lm = served.lm(**changes)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
        dspy.Predict(Turns)(question="Weather?", tools=[get_weather], results=results)
    return served.sent[-1], list(lm.history[-1].get("changes") or ())


def turn_of(served: Served, **changes: Any) -> Any:
    with dspy.context(lm=served.lm(**changes), adapter=sigadapt.ChatAdapter(tool_calling="native")):
        out: Any = dspy.Predict(Turns)(question="Weather?", tools=[get_weather])
        return out.calls


def two_turns(column: str, values: Any, errors: Any = None, row: str = "failed", **changes: Any) -> Any:
    heard = ROWS[row].cells[column].heard
    with serving(column, heard, said_text(COLUMNS[column].form)) as served:
        calls = turn_of(served, **changes)
        return asked(served, ToolResults.of(calls, values, errors=errors), **changes)


def results_in(column: str, sent: dict[str, Any]) -> Any:
    """What follows the model's turn in a request."""
    rows = sent.get("messages") or sent.get("input") or sent["contents"]
    last = max(
        n
        for n, row in enumerate(rows)
        if row.get("role") in ("assistant", "model") or row.get("type") == "function_call"
    )
    return rows[last + 1 :]


def test_a_failed_result_keeps_its_flag_beside_an_image():
    """conversations: A failed result with an image stays a failure."""
    sent, changes = two_turns("anthropic", [["down", SHOT]], [True])
    [result, label, image] = results_in("anthropic", sent)[0]["content"]
    assert (result["is_error"], result["content"]) == (True, "down\n[image 1, attachment 1 below]")
    assert (label["type"], image["source"]["data"]) == ("text", DATA)
    assert [change.where for change in changes] == ["/messages/3/content"]
    sent, _ = two_turns("responses", [["down", SHOT]], [True])
    [output] = results_in("responses", sent)
    assert [part.get("text") for part in output["output"]] == ["ERROR: down", None]
    sent, _ = two_turns("responses", [SHOT], [True])
    [output] = results_in("responses", sent)
    assert [part.get("text") for part in output["output"]] == ["ERROR:", None]


@pytest.mark.parametrize("value", ["", " \n"])
def test_a_failed_result_without_a_text_has_one(value: str):
    """conversations: A failed result without a text goes out with one."""
    sent, changes = two_turns("anthropic", [value], [True])
    [result] = results_in("anthropic", sent)[0]["content"]
    assert result["is_error"] is True
    assert result["content"].strip()
    assert [change.where for change in changes] == ["/messages/3/content"]
    sent, _ = two_turns("anthropic", [value], [False])
    [result] = results_in("anthropic", sent)[0]["content"]
    assert result["content"] == value


def test_images_follow_all_results_of_the_turn():
    """conversations: What a result cannot hold follows the results."""
    sent, changes = two_turns("openai", [["one", SHOT], [SHOT, PDF]], row="parallel")
    first, second, user = results_in("openai", sent)
    assert first["content"] == "one\n[image 1, attachment 1 below]"
    assert second["content"] == "[image 1, attachment 2 below]\n[file 2: a.pdf, attachment 3 below]"
    assert [part.get("text") for part in user["content"]] == [
        "Attachment 1: image 1 of result 1 (get_weather)",
        None,
        "Attachment 2: image 1 of result 2 (get_weather)",
        None,
        "Attachment 3: file 2: a.pdf of result 2 (get_weather)",
        None,
    ]
    assert [change.where for change in changes] == ["/messages/3/content"] + 2 * ["/messages/4/content"]


def test_a_file_of_text_is_sent_as_text():
    """conversations: A file of text is sent as text where files have no place."""
    sent, changes = two_turns("openai", [CSV])
    assert [row["content"] for row in results_in("openai", sent)] == ["[file 1: a.csv]\na,b"]
    assert len(changes) == 1


def test_what_litellm_would_leave_out_is_told():
    """conversations: What no place takes becomes a short text, on record."""
    results = results_of(["a", SHOT])
    for model in ("deepseek/deepseek-chat", "heroku/claude", "cohere_chat/command-a"):
        assert [change for change in changes_of(model, results=results) if "image data" in change.why], model
    sent = send("openai", "litellm", results=results, lm={"model": "deepseek/deepseek-chat"})
    words = "[image 1 (image/png, 18 bytes) is left out: this provider takes none]"
    assert f"a\n{words}" in [row["content"] for row in sent.body["messages"] if row["role"] == "tool"]


def results_of(value: Any, call_id: str = "c") -> ToolResults:
    return ToolResults.of(ToolCalls([{"id": call_id, "name": "get_weather", "args": {}}]), [value])


def test_an_engine_of_ones_own_gets_types():
    """conversations: Content is inside the result where it has a place."""
    engine, results = Engine(), results_of(["a", SHOT, PDF, WAV, {"n": 1}])
    lm, adapter = dspy.LM("openai/x", engine=engine, cache=False), sigadapt.ChatAdapter(on_invalid="keep")
    with dspy.context(lm=lm, adapter=adapter):
        dspy.Predict(Turns)(question="?", tools=[get_weather], results=results)
    [part] = engine.asked[0].messages[-1].parts
    assert [each.type for each in part.content] == ["text", "image", "document", "audio", "text"]
    assert part.content[1].data == DATA


class Hiding:
    """A hook that changes the text of the last result."""

    def before_request(self, request: Any, context: Any) -> Any:
        *rows, last = request["messages"]
        return {**request, "messages": [*rows, {**last, "content": "gone"}]}


def test_a_hook_changes_the_text_of_a_result():
    """conversations: A result may hold images, files and audio."""
    sent = send("anthropic", results=results_of(["secret", SHOT]), options={"hooks": [Hiding()]})
    [result] = sent.body["messages"][-1]["content"]
    assert [block.get("text") for block in result["content"]] == ["gone", None]


URL, ID = "https://a.b/c.png", dspy.File.from_file_id("f1")
REFERENCES: list[tuple[str, Any, Any]] = [
    ("anthropic", dspy.Image(URL), {"type": "image", "source": {"type": "url", "url": URL}}),
    ("anthropic", ID, {"type": "document", "source": {"type": "file", "file_id": "f1"}}),
    ("responses", dspy.Image(URL), {"type": "input_image", "image_url": URL}),
    ("responses", ID, {"type": "input_file", "file_id": "f1"}),
    ("gemini", dspy.Image(URL), {"fileData": {"mimeType": "image/png", "fileUri": URL}}),
]


@pytest.mark.parametrize(("wire", "value", "block"), REFERENCES)
def test_a_result_may_refer_to_what_is_elsewhere(wire: str, value: Any, block: Any):
    """conversations: A result may hold images, files and audio."""
    assert json.dumps(block) in json.dumps(send(wire, results=results_of([value])).body)


texts = st.text("abc", min_size=1, max_size=5)
kinds = st.sampled_from(
    [(dspy.Image, "image/png"), (dspy.File, "application/pdf"), (dspy.File, "text/csv"), (dspy.Audio, "wav")]
)


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[Any, list[str], list[str]]:
    """A value, and the texts and base64 in it."""
    said, held, items = list[str](), list[str](), list[Any]()
    for number in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            said.append(f"{draw(texts)} {number}")
            items.append(said[-1])
            continue
        kind, form = draw(kinds)
        held.append(base64.b64encode(f"data {number} of {kind.__name__} in {form}".encode()).decode())
        made = (
            kind(data=held[-1], audio_format=form)
            if kind is dspy.Audio
            else kind(f"data:{form};base64,{held[-1]}")
        )
        items.append(made)
    value = {"all": items} if draw(st.booleans()) else items
    return value, said, held


@pytest.mark.parametrize("column", COLUMNS)
def test_any_mixture_leaves_whole_or_is_on_record(column: str):
    """conversations: Nothing that a result holds is lost."""
    heard = ROWS["failed"].cells[column].heard
    with serving(column, heard, *[said_text(COLUMNS[column].form)] * 60) as served:
        calls = turn_of(served)

        @settings(max_examples=share(20), suppress_health_check=[HealthCheck.too_slow])
        @given(mixtures(), st.booleans())
        def check(mixture: Any, failed: bool) -> None:
            value, said, held = mixture
            results = ToolResults.of(calls, [value], errors=[failed])
            sent, changes = asked(served, ToolResults.model_validate_json(results.model_dump_json()))
            body = json.dumps(sent)
            as_text = [base64.b64decode(each).decode() for each in held]
            found = [each in body or text in body for each, text in zip(held, as_text, strict=True)]
            assert body.count("is left out: this provider takes none]") == found.count(False)
            assert all(text in body for text in said)
            assert "CUSTOM-TYPE" not in body
            inside = json.dumps(results_in(column, sent)[0])
            pairs = zip(held, as_text, strict=True)
            outside = [each for each, text in pairs if each not in inside and text not in inside]
            assert len([change for change in changes if change.where.endswith("/content")]) >= len(outside)

        check()


def signatures_in(sent: dict[str, Any]) -> list[list[Any]]:
    """The signatures of the calls of each of the model's turns."""
    return [
        [
            part.get("thoughtSignature")
            for part in content["parts"]
            if {"functionCall", "function_call"} & set(part)
        ]
        for content in sent["contents"]
        if content["role"] == "model"
    ]


DUMMY = "skip_thought_signature_validator"


@pytest.mark.parametrize("column", ["gemini", "gemini-litellm"])
def test_an_unsigned_turn_is_signed_for_gemini_3(column: str):
    """conversations: An unsigned turn gets what the provider asks for."""
    dummy = DUMMY if column == "gemini" else base64.b64encode(DUMMY.encode()).decode()
    sent, changes = two_turns(column, ["sunny", "rainy"], row="parallel", **GEMINI_3)
    assert signatures_in(sent) == [[dummy, None]]
    [change] = [change for change in changes if change.where.startswith("/messages")]
    assert (change.where, change.what) == ("/messages/2/tool_calls/0", "lowered")
    assert DUMMY in change.why
    sent, changes = two_turns(column, ["sunny", "rainy"], row="parallel")  # an older model
    assert signatures_in(sent) == [[None, None]]
    assert [change for change in changes if change.where.startswith("/messages")] == []


def test_a_signed_turn_keeps_its_signature():
    """conversations: An unsigned turn gets what the provider asks for."""
    sent, changes = two_turns("gemini", ["sunny"], row="reasoning", **GEMINI_3)
    [[signature]] = signatures_in(sent)
    assert signature not in (None, DUMMY)
    assert changes == []


@pytest.mark.parametrize(
    ("engine", "signed", "where"), [("auto", [[None], [], [DUMMY]], [6]), ("litellm", None, [2, 6])]
)
def test_only_the_running_turn_is_signed(engine: str, signed: Any, where: list[int]):
    """conversations: An unsigned turn gets what the provider asks for."""
    event = {"question": "q", "results": results_of("sunny"), "answer": "a"}
    sent = send("gemini", engine, results=results_of("rain", "d"), history=history(event), lm=GEMINI_3)
    assert signed is None or signatures_in(sent.body) == signed
    places = [change.where for change in sent.changes if change.where.startswith("/messages")]
    assert places == [f"/messages/{place}/tool_calls/0" for place in where]
