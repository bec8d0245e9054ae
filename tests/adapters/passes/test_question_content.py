"""Inputs beside tools: what DSPy's own adapter sends of every medium in every home, sigadapt sends."""

import base64
import functools
import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import dspy
import pydantic
import pytest
from dspy.adapters.types import document
from sending import Engine, send
from support import WIRES, get_weather

import sigadapt
from sigadapt import ToolCalls, ToolDecls, ToolResults
from sigadapt.errors import InvalidHistory
from sigadapt.testing import Answer, Call, LoopbackProvider

Document: Any = document.Document


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _pdf(number: int, **more: Any) -> dspy.File:
    return dspy.File(file_data=f"data:application/pdf;base64,{_base64(f'%PDF number {number}')}", **more)


MEDIA: dict[str, Callable[[int], Any]] = {
    "image": lambda n: dspy.Image(url=f"data:image/png;base64,{_base64(f'PNG number {n}')}"),
    "image at a URL": lambda n: dspy.Image(url=f"https://example.org/{n}.png"),
    "file": lambda n: _pdf(n, filename=f"report_{n}.pdf"),
    "file without a name": _pdf,
    "file by its id": lambda n: dspy.File(file_id=f"file-{n}{n}{n}"),
    "audio": lambda n: dspy.Audio(data=_base64(f"RIFF number {n}"), audio_format="wav"),
    "audio of another format": lambda n: dspy.Audio(data=_base64(f"fLaC number {n}"), audio_format="flac"),
    "document": lambda n: Document(data=f"The Earth, number {n}", title=f"Title {n}"),
    "PDF document": lambda n: Document(data=_base64(f"%PDF number {n}"), media_type="application/pdf"),
}


def data_in(medium: Any) -> str:
    """The text that a request with this medium holds."""
    values = {key: value for key, value in medium if isinstance(value, str)}
    text = next(values[key] for key in ("url", "file_data", "file_id", "data") if values.get(key))
    return text.rpartition(",")[2] if text.startswith("data:") else text


class Cell(NamedTuple):
    medium: str
    home: str
    wire: str
    engine: str


HOMES = ("question", "list", "model", "demo", "history", "second request")
RULES: tuple[tuple[str, Callable[[Cell], bool]], ...] = (
    ("lm15 does not speak Ollama's own wire", lambda c: c.wire == "ollama" and c.engine != "litellm"),
    (
        "LiteLLM downloads an image for Gemini",
        lambda c: c.wire == "gemini" and c.engine == "litellm" and "URL" in c.medium,
    ),
)
CELLS = [
    cell
    for cell in itertools.starmap(Cell, itertools.product(MEDIA, HOMES, WIRES, ("auto", "lm15", "litellm")))
    if not any(makes_no_sense(cell) for _, makes_no_sense in RULES)
]


def _inputs(cell: Cell) -> tuple[Any, Any, list[Any]]:
    """The type and the value of the field, and the media in it."""
    first, second = MEDIA[cell.medium](1), MEDIA[cell.medium](2)
    kind: Any = first.__class__
    if cell.home == "list":
        return list[kind], [first, second], [first, second]
    if cell.home == "model":
        fields: Any = {"title": (str, ...), "content": (kind, ...)}
        model: Any = pydantic.create_model("Folder", **fields)
        return model, model(title="Mine", content=first), [first]
    return kind, first, [first]


def _signature(cell: Cell, kind: Any, tools: Any, calls: Any, results: Any = None) -> Any:
    fields: dict[str, Any] = {"question": (str, dspy.InputField()), "m": (kind, dspy.InputField())}
    if cell.home == "history":
        fields["history"] = (dspy.History, dspy.InputField())
    fields["tools"] = (tools, dspy.InputField())
    if results is not None:
        fields["results"] = (results, dspy.InputField(default=None))
    signature: Any = dspy.Signature
    return signature({**fields, "calls": (calls, dspy.OutputField())}, "Look.")


def _asked(cell: Cell, adapter: Any, signature: Any, value: Any, tools: Any) -> Any:
    predict = dspy.Predict(signature)
    inputs = {"question": "What is it?", "m": value, "tools": tools}
    if cell.home in ("demo", "history"):
        plain: Any = MEDIA["image"](9) if cell.medium.startswith("image") else value
        inputs["m"] = plain
    if cell.home == "demo":
        predict.demos = [dspy.Example(question="Before?", m=value, calls=None)]
    if cell.home == "history":
        inputs["history"] = dspy.History(messages=[{"question": "Before?", "m": value}])
    with dspy.context(adapter=adapter):
        return predict(**inputs)


@functools.cache
def _provider() -> LoopbackProvider:
    return LoopbackProvider([Answer(calls=[Call("get_weather", {"city": "Paris"})])]).start()


def _sent(run: Callable[[], Any], cell: Cell) -> tuple[list[str], Exception | None]:
    """The bodies that a run sent, as text, and the error that ended it."""
    provider = _provider()
    before = len(provider.received)
    options = {} if cell.engine == "auto" else {"engine": cell.engine}
    error = None
    try:
        with dspy.context(lm=dspy.LM(**provider.lm_options(cell.wire, **options))):
            run()
    except Exception as raised:  # noqa: BLE001  (every error is an outcome)
        error = raised
    return [json.dumps(request.body) for request in provider.received[before:]], error


@functools.cache
def oracle(cell: Cell) -> str:
    """The first body of DSPy's own adapter; empty if it sends none, or a body without the media."""
    if cell.home == "second request":
        return oracle(cell._replace(home="question"))
    kind, value, media = _inputs(cell)
    signature = _signature(cell, kind, list[dspy.Tool], dspy.ToolCalls)
    adapter = dspy.ChatAdapter(use_native_function_calling=True, use_json_adapter_fallback=False)
    bodies, _ = _sent(lambda: _asked(cell, adapter, signature, value, [dspy.Tool(get_weather)]), cell)
    holds_media = bodies and all(data_in(medium) in bodies[0] for medium in media)
    return bodies[0] if holds_media else ""


def _ours(cell: Cell) -> tuple[list[str], Exception | None]:
    kind, value, _ = _inputs(cell)
    signature = _signature(cell, kind, ToolDecls, ToolCalls, ToolResults | None)

    def run() -> None:
        first = _asked(cell, sigadapt.ChatAdapter(), signature, value, [get_weather])
        if cell.home == "second request":
            results = first.calls.run([get_weather])
            with dspy.context(adapter=sigadapt.ChatAdapter()):
                dspy.Predict(signature)(question="What is it?", m=value, tools=[get_weather], results=results)

    return _sent(run, cell)


def is_clear(error: Exception) -> bool:
    """Whether an error is ours, or one of DSPy's that says what LiteLLM wants."""
    return getattr(error, "code", None) == "unsendable_content" or isinstance(error, dspy.LMError)


@pytest.mark.parametrize("medium", MEDIA)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.litellm
def test_what_dspy_sends_of_an_input_is_sent_beside_tools(medium: str, wire: str):
    """request-shaping: An input of DSPy's types goes out beside tools."""
    for cell in [cell for cell in CELLS if (cell.medium, cell.wire) == (medium, wire)]:
        expected, (bodies, error) = oracle(cell), _ours(cell)
        if error is not None:
            assert not expected, f"{cell}: DSPy's own adapter sends it, and here: {error!r}"
            assert not bodies, f"{cell}: the error came after a request"
            assert is_clear(error), f"{cell}: {error!r}"
            continue
        _, _, media = _inputs(cell)
        assert len(bodies) == 1 + (cell.home == "second request"), cell
        if any("is left out: this provider takes none]" in body for body in bodies):
            assert cell.home in ("demo", "history"), cell
            assert not expected, f"{cell}: DSPy's own adapter sends it"
            continue
        for body, each in itertools.product(bodies, media):
            assert data_in(each) in body, f"{cell}: {data_in(each)!r} is not sent"
        for name in [name for each in media if (name := getattr(each, "filename", None))]:
            assert name in bodies[0] or name not in expected, f"{cell}: the name {name!r} is lost"


def _blocks(wire: str, engine: str, medium: Any) -> tuple[list[Any], list[Any]]:
    """The content blocks of the question that is sent, and the changes on record."""
    provider = _provider()
    signature = _signature(Cell("", "question", wire, engine), type(medium), ToolDecls, ToolCalls)
    lm: Any = dspy.LM(**provider.lm_options(wire, **({} if engine == "auto" else {"engine": engine})))
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        dspy.Predict(signature)(question="What is it?", m=medium, tools=[get_weather])
    body: Any = provider.received[-1].body
    rows: Any = body.get("messages") or body.get("input") or body.get("contents")
    row = next(row for row in rows if row["role"] == "user")
    changes: list[Any] = [*lm.history[-1].get("changes", ())]
    return row.get("content", row.get("parts")), changes


NAMED = {
    ("openai", "auto"): {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:{}"}},
    ("openai", "litellm"): {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:{}"}},
    ("responses", "auto"): {"type": "input_file", "filename": "a.pdf", "file_data": "data:{}"},
    ("responses", "litellm"): {"type": "input_file", "filename": "a.pdf", "file_data": "data:{}"},
    ("anthropic", "auto"): "document",
    ("anthropic", "litellm"): "document",
}


@pytest.mark.parametrize(("wire", "engine"), NAMED)
def test_a_file_keeps_its_name_where_the_wire_has_a_place_for_it(wire: str, engine: str):
    """request-shaping: An input of DSPy's types goes out beside tools."""
    data = _base64("%PDF")
    file = dspy.File(file_data=f"data:application/pdf;base64,{data}", filename="a.pdf")
    blocks, changes = _blocks(wire, engine, file)
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    expected: Any = NAMED[wire, engine]
    if expected == "document":
        expected = {"type": "document", "source": source, "title": "a.pdf"}
    else:
        expected = json.loads(json.dumps(expected).replace("data:{}", f"data:application/pdf;base64,{data}"))
    assert expected in blocks
    assert changes == []


@pytest.mark.parametrize("engine", ["auto", "litellm"])
def test_a_name_that_gemini_has_no_place_for_is_on_record(engine: str):
    """request-shaping: What of an input does not arrive is on record."""
    _, changes = _blocks("gemini", engine, _pdf(1, filename="a.pdf"))
    assert [change.why for change in changes if "a.pdf" in change.why]


def test_an_engine_of_the_users_gets_lm15s_parts():
    """request-shaping: An input of DSPy's types goes out beside tools."""
    engine, signature = Engine(), _signature(Cell("", "question", "", ""), dspy.File, ToolDecls, ToolCalls)
    lm: Any = dspy.LM("openai/x", engine=engine, cache=False)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native", on_invalid="keep")):
        dspy.Predict(signature)(question="?", m=_pdf(1, filename="a.pdf"), tools=[get_weather])
    assert [part.type for part in engine.asked[0].messages[0].parts] == ["text", "document"]
    why = [change.why for change in lm.history[-1]["changes"]]
    assert why == ["this route can't carry the name of a file, a.pdf"]


class Asking:
    """A hook that asks with blocks of its own."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def before_request(self, request: Any, context: Any) -> Any:
        return {**request, "messages": [{"role": "user", "content": self.content}]}


STRANGE: list[list[Any]] = [
    [{"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}],
    [{"type": "file"}],
    [{"type": "input_audio", "input_audio": 3}],
    [{"type": "image_url", "image_url": None}],
    [{"type": "search_result"}],
    [{"type": None}],
    [3],
    [{}],
]


@pytest.mark.parametrize("content", STRANGE)
@pytest.mark.parametrize("wire", WIRES[:4])
def test_a_block_that_a_hook_wrote_is_sent_or_refused(wire: str, content: Any):
    """request-shaping: An input that nobody can send is refused before the request."""
    kind = content[0].get("type") if isinstance(content[0], dict) else None
    options = {"hooks": [Asking(content)]}
    if wire == "openai" and isinstance(content[0], dict) and kind != "file":
        assert send(wire, options=options).body["messages"][0]["content"] == content
        return
    with pytest.raises(InvalidHistory) as caught:
        send(wire, options=options)
    assert caught.value.code == "unsendable_content"


@pytest.mark.parametrize("wire", WIRES[:4])
def test_a_text_in_a_list_that_a_hook_wrote_is_a_block(wire: str):
    """request-shaping: An input of DSPy's types goes out beside tools."""
    assert "Look here." in json.dumps(send(wire, options={"hooks": [Asking(["Look here."])]}).body)
