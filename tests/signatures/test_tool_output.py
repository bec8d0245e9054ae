"""What MCP and LangChain tools hand back, given by a program and by an agent's tool."""

import base64
from typing import Any

import mcp.types as mcp
import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from signatures.tool_functions.asking import Call, agent_of, serving, submits, turn

import sigadapt
from sigadapt import ToolDecls, ToolResult

PNG = base64.b64encode(b"\x89PNG").decode()
IMAGE = {"type": "image", "mime_type": "image/png", "data": PNG}


def given(value: Any) -> tuple[Any, bool]:
    """The value and the failed flag of a result that a program gives."""
    result = ToolResult(call_id="c", name="look", value=value)
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    return result.value, result.is_error


@pytest.mark.parametrize(
    ("structured", "text", "value"),
    [
        ({"result": "18 C"}, "18 C", "18 C"),
        ({"content": "18 C"}, "18 C", "18 C"),
        ({"result": 7}, "7", "7"),
        ({"result": 7}, "seven", [{"result": 7}, "seven"]),
        ({"total": 2, "rows": ["Ada"]}, "2 rows", [{"total": 2, "rows": ["Ada"]}, "2 rows"]),
    ],
)
def test_a_servers_own_text_stands_for_what_was_wrapped(structured: Any, text: str, value: Any) -> None:
    """conversations: A server's own text stands for what its SDK wrapped."""
    block = {"type": "text", "text": text}
    result = mcp.CallToolResult.model_validate({"content": [block], "structuredContent": structured})
    assert given(result) == (value, False)
    decl = sigadapt.ToolDecl.of(lambda: result, name="look")
    assert ToolDecls([decl]).to_dspy()[0]() == value


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("18 C", "18 C"),
        ([{"type": "text", "text": "18 C", "id": "lc_1"}], "18 C"),
        (["Here:", {"type": "image", "base64": PNG, "mime_type": "image/png"}], None),
        ([{"type": "text", "text": "Here:"}, {"type": "image", "data": PNG, "mime_type": "image/png"}], None),
        (["Here:", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}], None),
    ],
)
@pytest.mark.parametrize("status", ["success", "error"])
def test_a_langchain_message_is_its_content(content: Any, value: Any, status: Any) -> None:
    """conversations: A LangChain message is read as its content."""
    message = ToolMessage(content=content, tool_call_id="c", name="look", status=status, artifact={"raw": 1})
    whole = [{"type": "text", "text": "Here:"}, IMAGE] if value is None else value
    assert given(message) == (whole, status == "error")


def test_an_address_in_a_langchain_message_is_named_and_not_fetched() -> None:
    """conversations: A LangChain message is read as its content."""
    block = {"type": "image", "url": "https://evil.example/x.png"}
    assert given(ToolMessage(content=[block], tool_call_id="c")) == (block, False)


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
