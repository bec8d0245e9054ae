"""The wire matrix as data: what each provider is sent and how its answer is read.

A row is a concern, a column a wire.

The rows are in wire_matrix.json. Every JSON value there was written by hand from the provider's reference,
and is compared exactly with what the real `dspy.LM` posts (`test_wire_matrix.py`). A page is made from the
same rows. Sources: the API references of OpenAI (chat completions, responses), Anthropic (messages), Google
(generateContent), Ollama (chat), and the service model of Bedrock's Converse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.types import CallToolResult
from pydantic import BeforeValidator, TypeAdapter

Scope = Literal["tools", "format", "said", "results"]
Json = Any


@dataclass(frozen=True)
class Column:
    """One wire over one of DSPy's engines.

    Args:
        title: its heading.
        form: the provider's format, which says how a body is taken apart.
        wire: the loopback provider's name for it; None where the test serves it by itself.
        lm: the `dspy.LM` arguments beyond the address.
    """

    title: str
    form: Literal["chat", "responses", "anthropic", "gemini", "ollama", "bedrock"]
    wire: str | None
    lm: Mapping[str, Any]


COLUMNS: Mapping[str, Column] = {
    "openai": Column("OpenAI chat", "chat", "openai", {}),
    "responses": Column("OpenAI responses", "responses", "responses", {}),
    "anthropic": Column("Anthropic", "anthropic", "anthropic", {}),
    "gemini": Column("Gemini", "gemini", "gemini", {}),
    "ollama": Column("Ollama, `/api/chat` (LiteLLM)", "ollama", "ollama", {}),
    "ollama-door": Column(
        "Ollama, OpenAI-compatible endpoint", "chat", "ollama", {"model": "ollama/llama3.1", "engine": "auto"}
    ),
    "bedrock": Column(
        "Bedrock Converse (LiteLLM)",
        "bedrock",
        None,
        {"model": "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"},
    ),
    "openai-litellm": Column("OpenAI chat (LiteLLM)", "chat", "openai", {"engine": "litellm"}),
    "responses-litellm": Column(
        "OpenAI responses (LiteLLM)", "responses", "responses", {"engine": "litellm"}
    ),
    "anthropic-litellm": Column("Anthropic (LiteLLM)", "anthropic", "anthropic", {"engine": "litellm"}),
    "gemini-litellm": Column("Gemini (LiteLLM)", "gemini", "gemini", {"engine": "litellm"}),
}


@dataclass(frozen=True)
class Cell:
    """What one wire carries for one row.

    Args:
        sent: the row's part of the request, exactly.
        heard: the model's turn in the provider's answer, for rows that begin with one.
        changes: what sigadapt recorded, as (where, what).
        adapted: the settings whose lowering lm15 recorded in the history entry's `adaptations`.
        note: what a reader of the page should know.
        known: why the cell does not hold today; the test expects it to fail.
        refused: what the error says where the request is refused before it is sent.
        absent: why the wire has nothing of the kind; the cell is not tried.
    """

    sent: Json = None
    heard: Json = None
    changes: tuple[tuple[str, str], ...] = ()
    adapted: tuple[str, ...] = ()
    note: str = ""
    known: str = ""
    refused: str = ""
    absent: str = ""


def value_of(value: Any) -> Any:
    """What a call gave; `{"CallToolResult": ...}` in the file is a result of the MCP SDK."""
    match value:
        case {"CallToolResult": result}:
            return CallToolResult.model_validate(result)
        case _:
            return value


@dataclass(frozen=True)
class Row:
    """One concern, for every column.

    Args:
        title: its heading.
        scope: the part of the request that is compared: `tools` all that is said of tools, `format` all that
            is said of the output's format, `said` the model's turn as it goes back, `results` what follows.
        about: one sentence for the page.
        options: the adapter's options.
        tools: the names of the declared tools.
        custom: a declaration to send in their place.
        values: what the calls gave, for rows with a second turn.
        errors: which of them failed.
        calls: the calls as read, as (name, args).
        text: the text beside them as read.
        reasoning: the thinking as read.
        fields: what the declarations say besides.
        cells: one a column.
    """

    title: str
    scope: Scope
    about: str
    cells: Mapping[str, Cell]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Sequence[str] = ("get_weather",)
    custom: Mapping[str, Any] | None = None
    values: Sequence[Annotated[Any, BeforeValidator(value_of)]] = ("sunny",)
    errors: Sequence[bool] = (False,)
    calls: Sequence[tuple[str, dict[str, Any]]] = (("get_weather", {"city": "Paris"}),)
    text: str | None = None
    reasoning: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def declared(name: str) -> dict[str, Any]:
    """A declaration as the user writes it."""
    return {"name": name, "description": "By city.", "parameters": SCHEMA}


def declared_in(row: Row) -> list[dict[str, Any]]:
    """The declarations of a row."""
    if row.custom is not None:
        return [dict(row.custom)]
    return [{**declared(name), **row.fields} for name in row.tools]


FILE = Path(__file__).with_suffix(".json")
ROWS = TypeAdapter(dict[str, Row]).validate_json(FILE.read_text(encoding="utf-8"))
REASONING, RESULT, FAILED = ROWS["reasoning"], ROWS["result"], ROWS["failed"]
