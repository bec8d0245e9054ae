"""Results with images, files and audio: what they are kept as, saved as, and said as."""

import base64
import pickle
from typing import Any, cast

import dspy
import mcp.types
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from signatures.tool_functions.served_tools import Call, agent_of, serving, submits, turn
from support import Talk, json_values
from tables import table

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolDecls, ToolResult, ToolResults
from sigadapt.errors import InvalidHistory
from sigadapt.testing import Answer, LoopbackProvider

CALLS = ToolCalls([ToolCall(id="c", name="look", args={})])
SHOT = dspy.Image("data:image/png;base64,aGk=")
PDF = dspy.File.from_bytes(b"%PDF", filename="a.pdf", mime_type="application/pdf")
WAV = dspy.Audio(data="aGk=", audio_format="wav")
SHOT_PART = {"type": "image", "mime_type": "image/png", "data": "aGk="}
PDF_PART = {"type": "file", "mime_type": "application/pdf", "data": "JVBERg==", "name": "a.pdf"}
WAV_PART = {"type": "audio", "mime_type": "audio/wav", "data": "aGk="}
LINK: dict[str, Any] = {"type": "resource_link", "uri": "https://a.b/c", "name": "c"}
LINK_PART = {"type": "json", "value": LINK}


def mcp_result(*content: dict[str, Any], structured: Any = None, failed: bool = False) -> Any:
    given = {"content": content, "structuredContent": structured, "isError": failed}
    return mcp.types.CallToolResult.model_validate(given)


def text_of(result: ToolResult) -> str:
    """A result as it is printed."""
    return str(ToolResults.of(CALLS, {"c": result})).partition(" -> ")[2]


def response_of(value: Any) -> Any:
    """A result as a model gets it whose results are objects with images beside them."""
    with LoopbackProvider([Answer(text="[[ ## answer ## ]]\nFine.")]) as provider:
        lm = dspy.LM(**provider.lm_options("gemini", model="gemini/gemini-3-pro-preview"))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            results = ToolResults.of(CALLS, [value])
            dspy.Predict(Talk)(question="?", tools=[{"name": "look"}], results=results)
    return provider.received[0].body["contents"][-1]["parts"][0]["functionResponse"]["response"]


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


class Page(pydantic.BaseModel):
    title: str
    shot: dspy.Image


MANY = mcp_result(
    text("a shot"),
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a.md", "mimeType": "text/markdown", "text": "# A"}},
    {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "aGk="}},
    {"type": "resource_link", "uri": "https://a.b/c", "name": "c"},
    structured={"n": 1},
)
FORMS: list[tuple[Any, list[dict[str, Any]]]] = [
    (SHOT, [SHOT_PART]),
    (str(SHOT), [SHOT_PART]),
    (PDF, [PDF_PART]),
    (WAV, [WAV_PART]),
    (dspy.Image("https://a.b/c.png"), [{"type": "image", "url": "https://a.b/c.png"}]),
    (dspy.File.from_file_id("file_1"), [{"type": "file", "file_id": "file_1"}]),
    (dspy.File.from_bytes(b"hi", mime_type="image/png"), [SHOT_PART]),
    (["a shot", SHOT, {"n": 1}], [text("a shot"), SHOT_PART, {"type": "json", "value": {"n": 1}}]),
    ((SHOT, PDF), [SHOT_PART, PDF_PART]),
    (
        {"n": [SHOT], "f": PDF},
        [{"type": "json", "value": {"n": ["[image 1]"], "f": "[file 2: a.pdf]"}}, SHOT_PART, PDF_PART],
    ),
    (Page(title="A", shot=SHOT), [{"type": "json", "value": {"title": "A", "shot": "[image 1]"}}, SHOT_PART]),
    (
        [mcp.types.ImageContent.model_validate({"type": "image", "data": "aGk=", "mimeType": "image/png"})],
        [SHOT_PART],
    ),
    (
        MANY,
        [
            {"type": "json", "value": {"n": 1}},
            text("a shot"),
            SHOT_PART,
            WAV_PART,
            text("file:///a.md:\n# A"),
            {"type": "file", "mime_type": "application/pdf", "data": "aGk=", "name": "file:///b"},
            LINK_PART,
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "parts"), FORMS, ids=[str(number) for number in range(len(FORMS))])
def test_images_files_and_audio_are_kept_as_plain_data(value: Any, parts: list[Any]):
    """conversations: A result may hold images, files and audio.
    conversations: A result with content survives JSON and pickle.
    """
    result = ToolResult(call_id="c", name="look", value=value)
    assert result.is_content
    assert result.value == parts
    assert [*ToolResults.of(CALLS, [value])] == [result]
    assert [*ToolResults.of(CALLS, {"c": result})] == [result]
    results = ToolResults.of(CALLS, [value], errors=[True])
    assert ToolResults.model_validate_json(results.model_dump_json()) == results
    assert ToolResults.model_validate(results.model_dump()) == results
    assert pickle.loads(pickle.dumps(results)) == results  # noqa: S301  (its own)
    saved = next(iter(results)).model_dump()
    assert [*ToolResults.of(CALLS, [ToolResult.model_validate(saved)])] == [*results]
    [given] = ToolResults.of(CALLS, [saved])  # a tool may have returned it
    assert (given == next(iter(results))) is not ("'url'" in str(saved) or "'file_id'" in str(saved))


media = st.sampled_from([SHOT, PDF, WAV])
mixtures = st.recursive(
    json_values | media,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(count(member) for member in cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        return sum(count(item) for item in cast("list[Any]", value))
    return isinstance(value, dspy.Type)


@given(mixtures)
def test_any_mixture_is_kept_and_saved(value: Any):
    """conversations: A result with content survives JSON and pickle."""
    result = ToolResult(call_id="c", name="look", value=value)
    assert result.is_content == bool(count(value))
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    if result.is_content:
        assert sum(part["type"] in ("image", "file", "audio") for part in result.value) == count(value)
        assert "CUSTOM-TYPE" not in text_of(result)


@given(json_values)
def test_json_is_no_content(value: Any):
    """conversations: A value is sent as text or compact JSON."""
    assert not ToolResult(call_id="c", name="look", value=value).is_content


def test_a_circle_is_no_content():
    circle: list[Any] = [SHOT]
    circle.append({"again": circle})
    assert ToolResult(call_id="c", name="look", value=circle).is_content


@pytest.mark.parametrize("said", ["{}", "[1]", "[", '[{"type": "text"}]', '[{"type": "file", "file": {}}]'])
def test_a_text_with_the_marks_of_a_type_is_read_or_stays_text(said: str):
    start, end = str(SHOT).split("[")[0], str(SHOT).split("]")[-1]
    result = ToolResult(call_id="c", name="look", value=f"{start}{said}{end}")
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    assert isinstance(result.value, str) or text_of(result)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (mcp_result(text("noon")), "noon"),
        (mcp_result(text("a"), text("b")), "a\nb"),
        (mcp_result(text('{"n":1}'), structured={"n": 1}), {"n": 1}),
        (mcp_result(text("noon"), structured="noon"), "noon"),
        (mcp_result(text("1"), text("2"), structured={"result": [1, 2]}), {"result": [1, 2]}),
        (mcp_result(text("It is noon."), structured={"n": 1}), [{"n": 1}, "It is noon."]),
        (mcp_result(structured={}), {}),
        (mcp_result(text("see"), LINK), ["see", LINK]),
    ],
    ids=str,
)
def test_an_mcp_result_loses_nothing(given: Any, value: Any):
    """conversations: An MCP result says everything once."""
    result = ToolResult(call_id="c", name="look", value=given)
    assert (result.value, result.is_mcp, result.is_error) == (value, True, False)


def test_a_failed_mcp_result_with_an_image_is_failed():
    """conversations: A failed MCP result is a failed result."""
    failed = mcp_result(text("down"), {"type": "image", "data": "aGk=", "mimeType": "image/png"}, failed=True)
    [result] = ToolResults.of(CALLS, [failed])
    assert (result.is_error, result.value) == (True, [text("down"), SHOT_PART])
    assert response_of(failed) == {"error": "down"}


@pytest.mark.parametrize(
    "value",
    ["a", {}, [1], [{"type": "image"}], [{"type": "image", "data": "a"}], [{"type": "image", "url": 1}],
     [{"type": "text"}], [{"type": "json"}], [{"type": "video", "url": "a"}],
     [{"type": "file", "url": "a", "file_id": "b"}]],
    ids=str,
)  # fmt: skip
def test_content_made_up_is_refused(value: Any):
    """conversations: A saved turn is read, or refused with the reason."""
    made_up = {"call_id": "c", "name": "look", "value": value, "is_content": True}
    with pytest.raises(pydantic.ValidationError, match="not content"):
        ToolResult.model_validate(made_up)
    with pytest.raises(InvalidHistory, match="marked as content, but is not"):
        ToolResults.of(CALLS, [made_up])


PNG = base64.b64encode(b"\x89PNG").decode()
IMAGE = {"type": "image", "mime_type": "image/png", "data": PNG}


def kept(value: Any) -> tuple[Any, bool]:
    """The value and the failed flag of a result that a program gives."""
    result = ToolResult(call_id="c", name="look", value=value)
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    return result.value, result.is_error


@pytest.mark.parametrize(("structured", "text", "value"), table(__file__, "WRAPPED"))
def test_a_servers_own_text_stands_for_what_was_wrapped(structured: Any, text: str, value: Any) -> None:
    """conversations: A server's own text stands for what its SDK wrapped."""
    block = {"type": "text", "text": text}
    result = mcp.types.CallToolResult.model_validate({"content": [block], "structuredContent": structured})
    assert kept(result) == (value, False)
    decl = sigadapt.ToolDecl.of(lambda: result, name="look")
    assert ToolDecls([decl]).to_dspy()[0]() == value


@pytest.mark.parametrize(("content", "value"), table(__file__, "MESSAGES"))
@pytest.mark.parametrize("status", ["success", "error"])
def test_a_langchain_message_is_its_content(content: Any, value: Any, status: Any) -> None:
    """conversations: A LangChain message is read as its content."""
    message = ToolMessage(content=content, tool_call_id="c", name="look", status=status, artifact={"raw": 1})
    whole = [{"type": "text", "text": "Here:"}, IMAGE] if value is None else value
    assert kept(message) == (whole, status == "error")


def test_an_address_in_a_langchain_message_is_named_and_not_fetched() -> None:
    """conversations: A LangChain message is read as its content."""
    block = {"type": "image", "url": "https://evil.example/x.png"}
    assert kept(ToolMessage(content=[block], tool_call_id="c")) == (block, False)


def test_an_agent_gets_the_content_and_not_the_artifact() -> None:
    """conversations: A LangChain message is read as its content."""

    @tool(response_format="content_and_artifact")
    def look(city: str) -> Any:
        """Look."""
        return [
            {"type": "text", "text": city},
            {"type": "image", "base64": PNG, "mime_type": "image/png"},
        ], {}

    with serving(turn(Call("look", {"city": "Rome"})), submits(), wire="anthropic") as provider:
        agent_of("ReActV2", [look])(question="q")
        (result,) = provider.received[1].body["messages"][-1]["content"]
    kinds = [block["type"] for block in result["content"]]
    assert (kinds, result["content"][1]["source"]["data"]) == (["text", "image"], PNG)
