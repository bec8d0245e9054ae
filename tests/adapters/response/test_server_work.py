"""What server tools left: in output fields, as an answer, in a stream, and back at the provider."""

import base64
from typing import Any

import dspy
import pytest
from support import ENGINES, Turns, lm_of
from wire_bodies import chat, claude, gemini, responses

import sigadapt
from sigadapt import Files, Sources, ToolCalls, ToolResults
from sigadapt.errors import InvalidSignature, UnusableAnswer
from sigadapt.response import choice_from_stream
from sigadapt.testing import Answer, LoopbackProvider

PNG = base64.b64encode(b"\x89PNG" + bytes(20)).decode()
TEXT = "[[ ## answer ## ]]\nIt is 18 C."
USE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
PAGE = {"type": "web_search_result", "url": "https://a.test/", "title": "A", "encrypted_content": "x"}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]}
CITATION = {
    "type": "web_search_result_location",
    "url": "https://a.test/",
    "title": "A",
    "cited_text": "18 C",
}
CITED = {"type": "text", "text": TEXT, "citations": [CITATION]}
IMAGE = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "t1",
    "name": "get_weather",
    "arguments": '{"city":"Paris"}',
}


def get_weather(city: str) -> str:
    """Weather for a city."""
    return city


class Question(Turns):
    """Answer."""

    sources: Sources = dspy.OutputField()
    files: Files | None = dspy.OutputField()


Strict: Any = Question.with_updated_fields("answer", type_=str)


NOTE = {"type": "url_citation", "url_citation": {"url": "https://a.test/", "title": "A"}}
GROUND = {
    "webSearchQueries": ["q"],
    "groundingChunks": [{"web": {"uri": "https://a.test/", "title": "A"}}],
    "groundingSupports": [{"groundingChunkIndices": [0], "segment": {"text": "18 C"}}],
}
URL = {"type": "url_citation", "url": "https://a.test/", "title": "A"}
PART = {"type": "output_text", "text": TEXT, "annotations": [URL]}
SAID = {"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [PART]}
ANSWERS = {
    "anthropic": claude(USE, FOUND, CITED),
    "responses": responses(SAID),
    "gemini": gemini({"text": TEXT}, groundingMetadata=GROUND),
    "openai": chat({"content": TEXT, "annotations": [NOTE]}),
}


def ask(
    provider: LoopbackProvider,
    wire: str,
    signature: Any = Question,
    engine: str = "auto",
    adapter: Any = None,
    **inputs: Any,
) -> Any:
    adapter = adapter or sigadapt.ChatAdapter(tool_calling="native")
    with dspy.context(lm=lm_of(provider, wire, engine), adapter=adapter):
        return dspy.Predict(signature)(question="q", **{"tools": [get_weather], **inputs})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wire", ANSWERS)
def test_sources(engine: str, wire: str) -> None:
    """server-tools: Fields of type Sources and Files take them."""
    with LoopbackProvider([ANSWERS[wire]]) as provider:
        out = ask(provider, wire, engine=engine)
        assert "## sources ##" not in str(provider.received[0].body)
    assert out.answer == "It is 18 C."
    assert [(each.url, each.title, each.cited) for each in out.sources] == [("https://a.test/", "A", True)]
    assert not out.files


def test_annotations_of_a_stream_without_its_items() -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    place = {"output_index": 0, "content_index": 0}
    text = {"type": "response.output_text.delta", **place, "delta": "18 C"}
    note = {"type": "response.output_text.annotation.added", **place, "annotation": URL}
    end: Any = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    choice = choice_from_stream([text, note, end])
    assert choice.text == "18 C"
    assert [(source.url, source.cited) for source in choice.sources] == [("https://a.test/", True)]


@pytest.mark.parametrize("engine", ENGINES)
def test_files_alone(engine: str) -> None:
    """server-tools: An answer of files alone is an answer."""
    with LoopbackProvider([responses(IMAGE)]) as provider:
        out = ask(provider, "responses", engine=engine)
        assert len(provider.received) == 1
    assert (out.answer, out.calls) == (None, ToolCalls())
    assert [file.content() for file in out.files] == [base64.b64decode(PNG)]


def test_a_required_text() -> None:
    """server-tools: A required text is told once."""
    with LoopbackProvider([responses(IMAGE)]) as provider:
        with pytest.raises(UnusableAnswer) as caught:
            ask(provider, "responses", Strict)
        assert len(provider.received) == 1
    assert caught.value.code == "empty"
    assert len(caught.value.choice.files) == 1


def test_without_a_tools_field() -> None:
    """server-tools: Such fields need a tools field."""
    made: Any = dspy.Signature
    signature = made({"question": (str, dspy.InputField()), "found": (Sources, dspy.OutputField())}, "Find.")
    with LoopbackProvider([Answer(text=TEXT)]) as provider:
        with pytest.raises(InvalidSignature, match="no tools field"):
            ask(provider, "openai", signature)
        assert not provider.received


def test_a_paused_turn() -> None:
    """server-tools: A paused turn is read as one."""
    script = [claude(USE, stop="pause_turn"), claude(FOUND, CITED)]
    hook = Keep()
    with LoopbackProvider(script) as provider:
        out = ask(provider, "anthropic", adapter=sigadapt.ChatAdapter(tool_calling="native", hooks=[hook]))
    assert [(call.id, call.status) for call in hook.choice.server_calls] == [("srvtoolu_1", "completed")]
    assert [source.cited for source in out.sources] == [True]


def test_gemini_goes_on_too() -> None:
    """conversations: A paused turn goes on"""
    first, second = (
        gemini({"text": text}, finish=end) for text, end in (("A", "CONTINUATION"), ("B", "STOP"))
    )
    with LoopbackProvider([first, second]) as provider:
        assert ask(provider, "gemini").answer == "AB"
        assert provider.received[1].body["contents"][-1] == {"role": "model", "parts": [{"text": "A"}]}


class Keep:
    """Keeps the choice."""

    choice: Any = None

    def after_choice(self, choice: Any, context: Any) -> None:
        self.choice = choice


STREAMED = {
    "anthropic": (claude(USE, FOUND, CITED), {"ServerCall": 1, "SourceReady": 1, "FileReady": 0}),
    "responses": (responses(IMAGE, SAID), {"ServerCall": 1, "SourceReady": 1, "FileReady": 1}),
    "gemini": (
        gemini({"text": TEXT}, groundingMetadata=GROUND),
        {"ServerCall": 1, "SourceReady": 1, "FileReady": 0},
    ),
}


@pytest.mark.parametrize("wire", STREAMED)
def test_events(wire: str) -> None:
    """server-tools: They are told while a run streams."""
    body, expected = STREAMED[wire]
    adapter = sigadapt.ChatAdapter(tool_calling="native")
    with LoopbackProvider([body]) as provider, dspy.context(lm=lm_of(provider, wire), adapter=adapter):
        program = dspy.Predict(Question)
        events = list(sigadapt.stream_sync(program, question="q", tools=[get_weather]))
    names = [type(event).__name__ for event in events]
    assert {name: names.count(name) for name in expected} == expected
    assert names[-1] == "Ended"


def test_a_saved_turn() -> None:
    """server-tools: A saved turn holds a file once."""
    with LoopbackProvider([responses(IMAGE, CALL), Answer(text=TEXT)]) as provider:
        out = ask(provider, "responses")
        saved = out.calls.model_dump_json()
        calls = ToolCalls.model_validate_json(saved)
        ask(provider, "responses", results=ToolResults.of(calls, ["18 C"]))
        (_, second) = provider.received
    assert saved.count(PNG) == 1
    assert [item["id"] for item in second.body["input"] if item.get("type") == IMAGE["type"]] == ["ig_1"]
