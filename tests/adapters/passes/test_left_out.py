"""Results that a route cannot carry: the run goes on, and a text says what the model does not see."""

import base64
import itertools
import json
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from support import Talk, Turns, get_weather, start
from wire_bodies import said_text, serving
from wire_matrix import COLUMNS

import sigadapt
from sigadapt import ToolCalls, ToolResults
from sigadapt.testing import Answer, Call, LoopbackProvider

mcp_types = pytest.importorskip("mcp.types")


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def file(mime: str, name: str) -> dspy.File:
    return dspy.File(file_data=f"data:{mime};base64,{coded(f'{mime} of {name}')}", filename=name)


def image(kind: str) -> dspy.Image:
    return dspy.Image(url=f"data:image/{kind};base64,{coded(f'an image in {kind}')}")


def of_mcp(block: Any) -> Any:
    return mcp_types.CallToolResult(content=[block])


def blob(mime: str | None) -> Any:
    data = coded(f"a resource of {mime}")
    resource = mcp_types.BlobResourceContents(uri="file:///a.bin", blob=data, mimeType=mime)
    return mcp_types.EmbeddedResource(type="resource", resource=resource)


WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA: dict[str, tuple[Any, str]] = {
    "wav": (dspy.Audio(data=coded("a wave"), audio_format="wav"), "a wave"),
    "flac": (dspy.Audio(data=coded("a flac"), audio_format="flac"), "a flac"),
    "mcp audio": (
        of_mcp(mcp_types.AudioContent(type="audio", data=coded("a voice"), mimeType="audio/wav")),
        "a voice",
    ),
    "png": (image("png"), "an image in png"),
    "gif": (image("gif"), "an image in gif"),
    "tiff": (image("tiff"), "an image in tiff"),
    "mcp tiff": (
        of_mcp(mcp_types.ImageContent(type="image", data=coded("a scan"), mimeType="image/tiff")),
        "a scan",
    ),
    "image at a URL": (dspy.Image("https://example.org/a.png"), "https://example.org/a.png"),
    "pdf": (file("application/pdf", "a.pdf"), "application/pdf of a.pdf"),
    "zip": (file("application/zip", "a.zip"), "application/zip of a.zip"),
    "docx": (file(WORD, "a.docx"), f"{WORD} of a.docx"),
    "csv": (file("text/csv", "a.csv"), "text/csv of a.csv"),
    "file by its id": (dspy.File(file_id="file-17"), "file-17"),
    "mcp blob": (of_mcp(blob(None)), "a resource of None"),
    "mcp video": (of_mcp(blob("video/mp4")), "a resource of video/mp4"),
}
"""By its name: what a tool gives, and the text of its data, or its address."""

_OPENAI = {"flac", "mcp blob", "mcp tiff", "mcp video", "tiff", "zip"}
_NO_AUDIO = {"flac", "mcp audio", "wav"}
_DATA_ALONE = {"file by its id", "image at a URL"}
_CLAUDE = _OPENAI | _NO_AUDIO | {"docx"}
_OLLAMA = _CLAUDE | _DATA_ALONE | {"pdf"}
_GEMINI = {"docx", "gif", "mcp blob", "mcp tiff", "tiff", "zip"}
LEFT_OUT: dict[str, set[str]] = {
    "openai": _OPENAI | {"docx"},
    "openai-litellm": _OPENAI | {"docx"},
    "responses": _OPENAI | _NO_AUDIO,
    "responses-litellm": _OPENAI | _NO_AUDIO,
    "anthropic": _CLAUDE,
    "anthropic-litellm": _CLAUDE,
    "gemini": _GEMINI,
    "gemini-litellm": _GEMINI | _DATA_ALONE | {"flac"},
    "ollama": _OLLAMA,
    "ollama-door": _OLLAMA,
    "bedrock": _OPENAI | _NO_AUDIO | _DATA_ALONE,
}
"""What native results on a route cannot carry, by the column of the matrix of wires."""

HOMES: dict[str, Callable[[Any], Any]] = {
    "list": lambda medium: ["SPOKEN", medium],
    "json": lambda medium: {"said": "SPOKEN", "all": [{"it": medium}]},
}


def sent(served: Any, results: Any, mode: Any, **changes: Any) -> tuple[str, list[Any]]:
    lm = served.lm(**changes)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling=mode)):
        dspy.Predict(Turns)(question="Weather?", tools=[get_weather], results=results)
    return json.dumps(served.sent[-1]), list(lm.history[-1].get("changes") or ())


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("column", COLUMNS)
def test_every_medium_is_sent_or_told(column: str, mode: str):
    """conversations: What no place takes becomes a short text, on record."""
    cells = [*itertools.product(MEDIA, HOMES, (False, True))]
    told = set[str]()
    with serving(column, *[said_text(COLUMNS[column].form)] * len(cells)) as served:
        for name, home, failed in cells:
            value, data = MEDIA[name]
            forms = (data, coded(data))
            calls = ToolCalls([{"id": "call_12345", "name": "get_weather", "args": {"city": "Paris"}}])
            results = ToolResults.of(calls, [HOMES[home](value)], errors=[failed])
            loaded = ToolResults.model_validate_json(results.model_dump_json())
            body, changes = sent(served, loaded, mode)
            assert "SPOKEN" in body, (name, home)
            assert any(form in loaded.model_dump_json() for form in forms), "the history keeps it whole"
            if "is left out" not in body:
                assert any(form in body for form in forms), (name, home)
                continue
            told.add(name)
            assert body.count("is left out: this provider takes none]") == 1, (name, home, body)
            assert [each for each in changes if "a text says so in its place" in each.why], (name, home)
    if mode == "native":
        assert told == LEFT_OUT[column]


def agent_with(medium: Any) -> Any:
    """An agent with one tool, which gives a medium."""

    def look() -> Any:
        """Look."""
        return ["SPOKEN", medium]

    return sigadapt.ReAct("question -> answer", tools=[look])


ASKED = [Answer(calls=[Call("look", {})]), Answer(calls=[Call("submit", {"answer": "done"})])]


def run(
    wire: str, program: Any, answers: list[Answer] = ASKED, way: str = "sync", **inputs: Any
) -> tuple[Any, list[str], list[Any]]:
    """A run's prediction, its bodies, and the changes on record of its last request."""
    with LoopbackProvider(answers) as provider:
        lm: Any = dspy.LM(**provider.lm_options(wire))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            out = start(program, way, **inputs)
        changes = [*(lm.history[-1].get("changes") or ())]
        return out, [json.dumps(each.body) for each in provider.received], changes


def test_a_route_that_takes_it_gets_it_later():
    """conversations: A route that takes it gets it later."""
    value, said = MEDIA["wav"]
    program = agent_with(value)
    first, bodies, changes = run("anthropic", program, question="one")
    assert "[audio 1 (audio/wav, 6 bytes) is left out: this provider takes none]" in bodies[1]
    assert [each.what for each in changes] == ["lowered"]
    loaded = dspy.History.model_validate_json(first.history.model_dump_json())
    second, bodies, _ = run("anthropic", program, ASKED[1:], question="two", history=loaded)
    assert (second.answer, "is left out" in bodies[0]) == ("done", True)
    third, bodies, _ = run("openai", program, ASKED[1:], question="three", history=second.history)
    assert (third.answer, coded(said) in bodies[0], "is left out" in bodies[0]) == ("done", True, False)


@pytest.mark.parametrize("name", ["zip", "mcp tiff"])
@pytest.mark.parametrize("way", ["sync", "async", "streamed"])
def test_every_way_of_running_goes_on(way: str, name: str):
    """conversations: What no place takes becomes a short text, on record."""
    out, bodies, changes = run("anthropic", agent_with(MEDIA[name][0]), way=way, question="one")
    assert (out.answer, "is left out" in bodies[1], len(changes)) == ("done", True, 1)


class Hear(Talk):
    """Listen."""

    sound: dspy.Audio | None = dspy.InputField(default=None)


@pytest.mark.parametrize("engine", ["lm15", "litellm"])
def test_a_question_that_was_answered_ends_no_chat(engine: str):
    """request-shaping: What an answered question showed is told where it cannot be sent."""
    sound, said = MEDIA["wav"]
    turn = {"question": "What is it?", "sound": sound, "answer": "A bell."}
    with LoopbackProvider([Answer(text="[[ ## answer ## ]]\nAgain.")]) as provider:
        lm: Any = dspy.LM(**provider.lm_options("anthropic", engine=engine))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            history = dspy.History(messages=[turn])
            out = dspy.Predict(Hear)(question="And now?", history=history, tools=[get_weather])
    body = json.dumps(provider.received[-1].body)
    assert (out.answer, coded(said) in body) == ("Again.", False)
    assert "[audio 1 (audio/wav, 6 bytes) is left out: this provider takes none]" in body
    assert [each for each in lm.history[-1]["changes"] if "audio data" in each.why]
