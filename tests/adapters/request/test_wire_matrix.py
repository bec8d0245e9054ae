"""The wire matrix holds: exact wire JSON both ways, through the real dspy.LM, on every column.

request-shaping: Each wire gets its own form.
"""

import runpy
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import dspy
import pydantic
import pytest
import wire_matrix
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types
from ollama import Message
from ollama._types import ChatRequest
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from sending import history
from support import May, Talk, with_places
from wire_bodies import Served, part, said_text, serving
from wire_matrix import COLUMNS, ROWS, Cell, Row, declared_in

import sigadapt
from sigadapt import ToolDecls, ToolResults

TURNS = [key for key, row in ROWS.items() if row.scope in ("said", "results")]
SETTINGS = [key for key, row in ROWS.items() if row.scope in ("tools", "format")]


def cells(rows: list[str]) -> list[Any]:
    """Every cell of these rows; those known not to hold are expected to fail, and reported once they hold."""
    return [_cell(name, column) for name in rows for column in tried(name)]


def tried(name: str, *, refused: bool = False) -> list[str]:
    """The columns of a row that have something to send, or those that refuse it."""
    found = {column: ROWS[name].cells[column] for column in COLUMNS}
    return [key for key, cell in found.items() if not cell.absent and bool(cell.refused) is refused]


def _cell(name: str, column: str) -> Any:
    cell = ROWS[name].cells[column]
    marks = [pytest.mark.xfail(strict=True, reason=cell.known)] if cell.known else []
    return pytest.param(ROWS[name], column, cell, id=f"{name}-{column}", marks=marks)


def recorded(lm: Any) -> tuple[tuple[str, str], ...]:
    return tuple((change.where, change.what) for change in lm.history[-1].get("changes") or ())


def adapted(lm: Any) -> tuple[str, ...]:
    """What lm15 lowered by itself; a default token limit that Anthropic requires is no lowering."""
    return tuple(
        entry.field for entry in lm.history[-1].get("adaptations") or () if entry.field != "config.max_tokens"
    )


def ask(lm: Any, row: Row, signature: Any = Talk, **inputs: Any) -> Any:
    kind = sigadapt.JSONAdapter if row.scope == "format" else sigadapt.ChatAdapter
    tools = ToolDecls(declared_in(row))
    with dspy.context(lm=lm, adapter=kind(tool_calling="native", **row.options)):
        return dspy.Predict(signature)(tools=tools, **inputs)


def test_every_row_has_every_column():
    """A gap in the matrix would be a wire that nobody looked at."""
    assert all(set(row.cells) == set(COLUMNS) for row in ROWS.values())


def plain(value: Any) -> Any:
    """What a type checked, as JSON again: pydantic leaves iterables unread until they are asked."""
    if isinstance(value, pydantic.BaseModel):  # Anthropic's types take blocks of an answer too
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [plain(item) for item in cast("Iterable[Any]", value)]


@cache
def adapter_of(params: Any) -> Any:
    return pydantic.TypeAdapter(params)


def check_typed(params: Any, sent: dict[str, Any]) -> None:
    """A TypedDict of an SDK takes the body and knows every key of it: pydantic drops the others."""
    assert plain(adapter_of(params).validate_python(sent)) == sent


def check_openai(sent: dict[str, Any]) -> None:
    # The field of compatible servers, which get their own reasoning back in it.
    rows = [{key: row[key] for key in row if key != "reasoning_content"} for row in sent["messages"]]
    check_typed(CompletionCreateParamsNonStreaming, {**sent, "messages": rows})


def check_responses(sent: dict[str, Any]) -> None:
    # The SDK's types want what the API does not: `strict` said, and a message sent back as it was answered.
    tools = [
        {"strict": None, **tool} if tool["type"] == "function" else tool for tool in sent.get("tools", [])
    ]
    rows = [as_answered(row) if row.get("role") == "assistant" else row for row in sent["input"]]
    whole = {**sent, "input": rows, **({"tools": tools} if tools else {})}
    check_typed(ResponseCreateParamsNonStreaming, whole)


def as_answered(row: dict[str, Any]) -> dict[str, Any]:
    content: list[Any] = [{"annotations": [], **part} for part in row["content"]]
    return {"id": "msg_1", "type": "message", "status": "completed", **row, "content": content}


def check_anthropic(sent: dict[str, Any]) -> None:
    # LiteLLM still writes the beta's `output_format`, which the SDK no longer knows.
    known = {key: value for key, value in sent.items() if key != "output_format"}
    check_typed(MessageCreateParamsNonStreaming, known)


def check_gemini(sent: dict[str, Any]) -> None:
    """The SDK's models refuse what they do not know."""
    outside = {"contents", "systemInstruction", "system_instruction", "generationConfig"}
    for content in sent["contents"]:
        types.Content.model_validate(content)
    types.Content.model_validate(sent.get("systemInstruction") or sent["system_instruction"])
    types.GenerationConfig.model_validate(sent.get("generationConfig", {}))
    types.GenerateContentConfig.model_validate(
        {key: value for key, value in sent.items() if key not in outside}
    )


def check_ollama(sent: dict[str, Any]) -> None:
    """The SDK's models take what they do not know: the keys are compared after a dump."""
    read = ChatRequest.model_validate(sent)
    assert set(sent) == set(read.model_dump(exclude_unset=True)) <= set(ChatRequest.model_fields)
    unknown = {key for message in sent["messages"] for key in message if key not in Message.model_fields}
    assert unknown <= {"tool_call_id"}, "LiteLLM's, which Ollama's server knows and its SDK does not"


def check_bedrock(sent: dict[str, Any]) -> None:
    """The service model that botocore ships."""
    botocore = pytest.importorskip("botocore.session", reason="botocore is not installed")
    validate = pytest.importorskip("botocore.validate", reason="botocore is not installed")
    service = botocore.get_session().get_service_model("bedrock-runtime")
    shape = service.operation_model("Converse").input_shape
    report = validate.ParamValidator().validate({"modelId": "m", **sent}, shape)
    assert not report.has_errors(), report.generate_report()


CHECKS = {
    "chat": check_openai,
    "responses": check_responses,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
    "ollama": check_ollama,
    "bedrock": check_bedrock,
}


@pytest.mark.parametrize(("row", "column", "cell"), cells(SETTINGS))
def test_what_is_set_reaches_the_provider(row: Row, column: str, cell: Cell):
    """request-shaping: A tool choice travels in the provider's form.

    request-shaping: What a wire cannot take is recorded.
    request-shaping: A structured output has a schema name and no strict flag.
    request-shaping: The official SDKs' types take every request.
    """
    with serving(column, said_text(COLUMNS[column].form)) as served:
        lm = served.lm()
        with suppress(
            sigadapt.errors.MissingToolCalls
        ):  # of a choice that forces a call: the script has none
            ask(lm, row, May if row.scope == "format" else Talk, question="Weather?")
    assert part(row.scope, served.column.form, served.sent[0]) == cell.sent
    assert recorded(lm) == cell.changes
    assert adapted(lm) == cell.adapted
    CHECKS[served.column.form](served.sent[0])


@pytest.mark.parametrize(
    ("name", "column"), [(name, column) for name in ROWS for column in tried(name, refused=True)]
)
def test_what_a_wire_has_no_place_for_is_refused(name: str, column: str):
    """request-shaping: A custom tool is refused where the provider has none."""
    row = ROWS[name]
    refused = pytest.raises(sigadapt.SigadaptError, match=row.cells[column].refused)
    with serving(column, said_text(COLUMNS[column].form)) as served, refused as caught:
        ask(served.lm(), row, question="Weather?")
    assert caught.value.code == "not_portable"
    assert caught.value.fix
    assert served.sent == []


def two_turns(served: Served, row: Row) -> tuple[Any, ToolResults, Any]:
    lm = served.lm()
    calls = ask(lm, row, question="Weather?").calls
    results = ToolResults.of(calls, row.values, errors=row.errors)
    ask(lm, row, question="Weather?", results=results)
    return calls, results, lm


@pytest.mark.parametrize(("row", "column", "cell"), cells(TURNS))
def test_a_turn_goes_back_whole(row: Row, column: str, cell: Cell):
    """conversations: A turn goes back as it came.

    conversations: Results follow the calls they answer.
    conversations: Blocks that LiteLLM takes apart are on record.
    conversations: A failed result is marked in the provider's way.
    """
    with serving(column, cell.heard, said_text(COLUMNS[column].form)) as served:
        calls, _, lm = two_turns(served, row)
    assert [(call.name, call.args) for call in calls] == list(row.calls)
    assert (calls.text, calls.reasoning) == (row.text, row.reasoning)
    assert with_places(part(row.scope, served.column.form, served.sent[1])) == cell.sent
    assert recorded(lm) == cell.changes
    CHECKS[served.column.form](served.sent[1])


@pytest.mark.parametrize(("name", "column"), [(name, column) for name in TURNS for column in tried(name)])
def test_results_and_history_say_the_same(name: str, column: str):
    """conversations: Results as an input and results in a history give the same request."""
    row, heard = ROWS[name], ROWS[name].cells[column].heard
    with serving(column, heard, said_text(COLUMNS[column].form)) as served:
        calls, results, lm = two_turns(served, row)
        event = {"question": "Weather?", "calls": calls, "results": results}
        for saved in (False, True):
            ask(lm, row, history=history(event, saved=saved))
    assert served.sent[2] == served.sent[1]
    assert served.sent[3] == served.sent[1]


def test_the_page_shows_every_row_of_the_matrix():
    """The page of the docs is made from this matrix."""
    script = Path(__file__).resolve().parents[3] / "docs" / "make_wires.py"
    space: dict[str, Any] = runpy.run_path(str(script))
    page = space["page"](wire_matrix)
    assert [row.title for row in wire_matrix.ROWS.values() if f"## {row.title}\n" not in page] == []
