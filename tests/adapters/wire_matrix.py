"""The wire matrix as data: what each provider is sent and how its answer is read.

A row is a concern, a column a wire.

Every JSON value here was written by hand from the provider's reference and is compared exactly with what the
real `dspy.LM` posts (`test_wire_matrix.py`). The site has a page made from the same rows. Sources: the API
references of OpenAI (chat completions, responses), Anthropic (messages), Google (generateContent), Ollama
(chat), and the service model of Bedrock's Converse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp.types import CallToolResult

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
        "Ollama, OpenAI-compatible door", "chat", "ollama", {"model": "ollama/llama3.1", "engine": "auto"}
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
    values: Sequence[Any] = ("sunny",)
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


# ---- the parts that rows share, one function a shape ----


def _chat_tool(name: str) -> Json:
    return {
        "type": "function",
        "function": {"name": name, "description": "By city.", "parameters": SCHEMA},
    }


def _responses_tool(name: str) -> Json:
    return {"type": "function", "name": name, "description": "By city.", "parameters": SCHEMA}


def _anthropic_tool(name: str) -> Json:
    return {"name": name, "description": "By city.", "input_schema": SCHEMA}


def _anthropic_litellm_tool(name: str) -> Json:
    return {"type": "custom", "name": name, "description": "By city.", "input_schema": SCHEMA}


def _gemini_tool(name: str) -> Json:
    return {"name": name, "description": "By city.", "parametersJsonSchema": SCHEMA}


def _gemini_litellm_tool(name: str) -> Json:
    return {"name": name, "description": "By city.", "parameters": SCHEMA}


def _bedrock_tool(name: str) -> Json:
    return {"toolSpec": {"name": name, "description": "By city.", "inputSchema": {"json": SCHEMA}}}


def _chat_tools(*names: str) -> Json:
    return {"tools": [_chat_tool(name) for name in names]}


def _responses_tools(*names: str) -> Json:
    return {"tools": [_responses_tool(name) for name in names]}


def _anthropic_tools(*names: str) -> Json:
    return {"tools": [_anthropic_tool(name) for name in names]}


def _anthropic_litellm_tools(*names: str) -> Json:
    return {"tools": [_anthropic_litellm_tool(name) for name in names]}


def _gemini_tools(*names: str) -> Json:
    return {"tools": [{"functionDeclarations": [_gemini_tool(name) for name in names]}]}


def _gemini_litellm_tools(*names: str) -> Json:
    return {"tools": [{"function_declarations": [_gemini_litellm_tool(name) for name in names]}]}


def _bedrock_tools(*names: str, choice: Json = None) -> Json:
    config: dict[str, Any] = {"tools": [_bedrock_tool(name) for name in names]}
    return {"toolConfig": config if choice is None else {**config, "toolChoice": choice}}


def _gemini_mode(**config: Any) -> Json:
    return {"toolConfig": {"functionCallingConfig": config}}


BOTH = ("get_weather", "get_time")
THREE = (*BOTH, "get_news")

_NO_CHOICE = (("/tool_choice", "dropped"),)
_NARROWED = (("/tools", "lowered"),)
_NARROWED_FREE = (*_NARROWED, *_NO_CHOICE)
_FAILED = (("/messages/3/is_error", "lowered"),)

# ---- tools ----

DEFINITION = Row(
    "Tool definition",
    "tools",
    "A declared tool, its schema as written.",
    {
        "openai": Cell(_chat_tools("get_weather")),
        "responses": Cell(_responses_tools("get_weather")),
        "anthropic": Cell(_anthropic_tools("get_weather")),
        "gemini": Cell(_gemini_tools("get_weather")),
        "ollama": Cell(_chat_tools("get_weather")),
        "ollama-door": Cell(_chat_tools("get_weather")),
        "bedrock": Cell(_bedrock_tools("get_weather")),
        "openai-litellm": Cell(_chat_tools("get_weather")),
        "responses-litellm": Cell(_responses_tools("get_weather")),
        "anthropic-litellm": Cell(_anthropic_litellm_tools("get_weather")),
        "gemini-litellm": Cell(_gemini_litellm_tools("get_weather")),
    },
)

CHOICE_AUTO = Row(
    "Tool choice: auto",
    "tools",
    "`tool_choice='auto'`: the model decides.",
    {
        "openai": Cell({**_chat_tools(*BOTH), "tool_choice": "auto"}),
        "responses": Cell({**_responses_tools(*BOTH), "tool_choice": "auto"}),
        "anthropic": Cell({**_anthropic_tools(*BOTH), "tool_choice": {"type": "auto"}}),
        "gemini": Cell({**_gemini_tools(*BOTH), **_gemini_mode(mode="AUTO")}),
        "ollama": Cell(_chat_tools(*BOTH), changes=_NO_CHOICE),
        "ollama-door": Cell(_chat_tools(*BOTH), changes=_NO_CHOICE),
        "bedrock": Cell(_bedrock_tools(*BOTH, choice={"auto": {}})),
        "openai-litellm": Cell({**_chat_tools(*BOTH), "tool_choice": "auto"}),
        "responses-litellm": Cell({**_responses_tools(*BOTH), "tool_choice": "auto"}),
        "anthropic-litellm": Cell({**_anthropic_litellm_tools(*BOTH), "tool_choice": {"type": "auto"}}),
        "gemini-litellm": Cell({**_gemini_litellm_tools(*BOTH), **_gemini_mode(mode="AUTO")}),
    },
    options={"tool_choice": "auto"},
    tools=BOTH,
)

CHOICE_REQUIRED = Row(
    "Tool choice: required",
    "tools",
    "`tool_choice='required'`: some tool must be called.",
    {
        "openai": Cell({**_chat_tools(*BOTH), "tool_choice": "required"}),
        "responses": Cell({**_responses_tools(*BOTH), "tool_choice": "required"}),
        "anthropic": Cell({**_anthropic_tools(*BOTH), "tool_choice": {"type": "any"}}),
        "gemini": Cell({**_gemini_tools(*BOTH), **_gemini_mode(mode="ANY")}),
        "ollama": Cell(_chat_tools(*BOTH), changes=_NO_CHOICE),
        "ollama-door": Cell(_chat_tools(*BOTH), changes=_NO_CHOICE),
        "bedrock": Cell(_bedrock_tools(*BOTH, choice={"any": {}})),
        "openai-litellm": Cell({**_chat_tools(*BOTH), "tool_choice": "required"}),
        "responses-litellm": Cell({**_responses_tools(*BOTH), "tool_choice": "required"}),
        "anthropic-litellm": Cell({**_anthropic_litellm_tools(*BOTH), "tool_choice": {"type": "any"}}),
        "gemini-litellm": Cell({**_gemini_litellm_tools(*BOTH), **_gemini_mode(mode="ANY")}),
    },
    options={"tool_choice": "required"},
    tools=BOTH,
)

CHOICE_NONE = Row(
    "Tool choice: none",
    "tools",
    "`tool_choice='none'`: no tool may be called.",
    {
        "openai": Cell({**_chat_tools(*BOTH), "tool_choice": "none"}),
        "responses": Cell({**_responses_tools(*BOTH), "tool_choice": "none"}),
        "anthropic": Cell({**_anthropic_tools(*BOTH), "tool_choice": {"type": "none"}}),
        "gemini": Cell({**_gemini_tools(*BOTH), **_gemini_mode(mode="NONE")}),
        "ollama": Cell({}, changes=_NARROWED),
        "ollama-door": Cell({}, changes=_NARROWED),
        "bedrock": Cell(
            {},
            changes=_NARROWED,
        ),
        "openai-litellm": Cell({**_chat_tools(*BOTH), "tool_choice": "none"}),
        "responses-litellm": Cell({**_responses_tools(*BOTH), "tool_choice": "none"}),
        "anthropic-litellm": Cell({**_anthropic_litellm_tools(*BOTH), "tool_choice": {"type": "none"}}),
        "gemini-litellm": Cell({**_gemini_litellm_tools(*BOTH), **_gemini_mode(mode="NONE")}),
    },
    options={"tool_choice": "none"},
    tools=BOTH,
)

CHOICE_NAMED = Row(
    "Tool choice: one name",
    "tools",
    "`tool_choice='get_time'`: this tool must be called.",
    {
        "openai": Cell(
            {
                **_chat_tools(*BOTH),
                "tool_choice": {"type": "function", "function": {"name": "get_time"}},
            }
        ),
        "responses": Cell(
            {**_responses_tools(*BOTH), "tool_choice": {"type": "function", "name": "get_time"}}
        ),
        "anthropic": Cell({**_anthropic_tools(*BOTH), "tool_choice": {"type": "tool", "name": "get_time"}}),
        "gemini": Cell(
            {**_gemini_tools(*BOTH), **_gemini_mode(mode="ANY", allowedFunctionNames=["get_time"])}
        ),
        "ollama": Cell(_chat_tools("get_time"), changes=_NARROWED_FREE),
        "ollama-door": Cell(_chat_tools("get_time"), changes=_NARROWED_FREE),
        "bedrock": Cell(_bedrock_tools(*BOTH, choice={"tool": {"name": "get_time"}})),
        "openai-litellm": Cell(
            {
                **_chat_tools(*BOTH),
                "tool_choice": {"type": "function", "function": {"name": "get_time"}},
            }
        ),
        "responses-litellm": Cell(
            {**_responses_tools(*BOTH), "tool_choice": {"type": "function", "name": "get_time"}}
        ),
        "anthropic-litellm": Cell(
            {**_anthropic_litellm_tools(*BOTH), "tool_choice": {"type": "tool", "name": "get_time"}}
        ),
        "gemini-litellm": Cell(
            {
                **_gemini_litellm_tools(*BOTH),
                **_gemini_mode(mode="ANY", allowed_function_names=["get_time"]),
            }
        ),
    },
    options={"tool_choice": "get_time"},
    tools=BOTH,
)

CHOICE_SUBSET = Row(
    "Tool choice: several names",
    "tools",
    "`tool_choice=['get_weather', 'get_time']`: one of these must be called.",
    {
        "openai": Cell(
            {
                **_chat_tools(*THREE),
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "required",
                        "tools": [
                            {"type": "function", "function": {"name": "get_weather"}},
                            {"type": "function", "function": {"name": "get_time"}},
                        ],
                    },
                },
            }
        ),
        "responses": Cell(
            {
                **_responses_tools(*THREE),
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "required",
                    "tools": [
                        {"type": "function", "name": "get_weather"},
                        {"type": "function", "name": "get_time"},
                    ],
                },
            }
        ),
        "anthropic": Cell(
            {**_anthropic_tools(*BOTH), "tool_choice": {"type": "any"}},
            changes=_NARROWED,
        ),
        "gemini": Cell(
            {
                **_gemini_tools(*THREE),
                **_gemini_mode(mode="ANY", allowedFunctionNames=["get_weather", "get_time"]),
            }
        ),
        "ollama": Cell(_chat_tools(*BOTH), changes=_NARROWED_FREE),
        "ollama-door": Cell(_chat_tools(*BOTH), changes=_NARROWED_FREE),
        "bedrock": Cell(_bedrock_tools(*BOTH, choice={"any": {}}), changes=_NARROWED),
        "openai-litellm": Cell({**_chat_tools(*BOTH), "tool_choice": "required"}, changes=_NARROWED),
        "responses-litellm": Cell({**_responses_tools(*BOTH), "tool_choice": "required"}, changes=_NARROWED),
        "anthropic-litellm": Cell(
            {**_anthropic_litellm_tools(*BOTH), "tool_choice": {"type": "any"}}, changes=_NARROWED
        ),
        "gemini-litellm": Cell(
            {**_gemini_litellm_tools(*BOTH), **_gemini_mode(mode="ANY")}, changes=_NARROWED
        ),
    },
    options={"tool_choice": ["get_weather", "get_time"]},
    tools=THREE,
)

_NO_PARALLEL = (("/parallel_tool_calls", "dropped"),)

_FIELDS = {
    "cache_control": {"type": "ephemeral"},
    "behavior": "BLOCKING",
    "outputSchema": {"type": "string"},
}


def _dropped(*fields: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"/tools/0/{name}", "dropped") for name in fields)


def _with_fields(tools: Json, **fields: Any) -> Json:
    """The one tool of a request with more fields."""
    [tool] = tools["tools"]
    return {"tools": [{**tool, **fields}]}


_CLAUDES = {"cache_control": _FIELDS["cache_control"]}
_NO_CLAUDES = _dropped("behavior", "outputSchema")
_NO_RESPONSES = _dropped("cache_control", "behavior")
_RESPONSES = {"output_schema": {"type": "string"}}

DECLARED_FIELDS = Row(
    "Declared fields",
    "tools",
    "What a declaration says besides: `cache_control`, `behavior` and `outputSchema`.",
    {
        "openai": Cell(_chat_tools("get_weather"), changes=_dropped(*_FIELDS)),
        "responses": Cell(_with_fields(_responses_tools("get_weather"), **_RESPONSES), changes=_NO_RESPONSES),
        "anthropic": Cell(_with_fields(_anthropic_tools("get_weather"), **_CLAUDES), changes=_NO_CLAUDES),
        "gemini": Cell(
            {
                "tools": [
                    {
                        "functionDeclarations": [
                            {
                                **_gemini_tool("get_weather"),
                                "behavior": "BLOCKING",
                                "responseJsonSchema": {"type": "string"},
                            }
                        ]
                    }
                ]
            },
            changes=_dropped("cache_control"),
        ),
        "ollama": Cell(_chat_tools("get_weather"), changes=_dropped(*_FIELDS)),
        "ollama-door": Cell(_chat_tools("get_weather"), changes=_dropped(*_FIELDS)),
        "bedrock": Cell(
            {
                "toolConfig": {
                    "tools": [_bedrock_tool("get_weather"), {"cachePoint": {"type": "default"}}],
                }
            },
            changes=_dropped("behavior", "outputSchema"),
        ),
        "openai-litellm": Cell(_chat_tools("get_weather"), changes=_dropped(*_FIELDS)),
        "responses-litellm": Cell(
            _with_fields(_responses_tools("get_weather"), **_RESPONSES), changes=_NO_RESPONSES
        ),
        "anthropic-litellm": Cell(
            _with_fields(_anthropic_litellm_tools("get_weather"), **_CLAUDES), changes=_NO_CLAUDES
        ),
        "gemini-litellm": Cell(_gemini_litellm_tools("get_weather"), changes=_dropped(*_FIELDS)),
    },
    fields=_FIELDS,
)

_CLOSED = {**SCHEMA, "additionalProperties": False}
_NOT_STRICT = (("/tools/0/function/strict", "dropped"),)
_STRICT_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "By city.",
        "parameters": _CLOSED,
        "strict": True,
    },
}
_STRICT_RESPONSES = {
    "type": "function",
    "name": "get_weather",
    "description": "By city.",
    "parameters": _CLOSED,
    "strict": True,
}
_CLOSING = (("/tools/0/function/parameters", "lowered"),)

STRICT = Row(
    "Strict mode",
    "tools",
    "`strict` in a declaration: the provider holds the arguments to the schema, whose objects are closed.",
    {
        "openai": Cell({"tools": [_STRICT_TOOL]}, changes=_CLOSING),
        "responses": Cell({"tools": [_STRICT_RESPONSES]}, changes=_CLOSING),
        "anthropic": Cell(
            {
                "tools": [
                    {
                        "name": "get_weather",
                        "description": "By city.",
                        "input_schema": _CLOSED,
                        "strict": True,
                    }
                ]
            },
            changes=_CLOSING,
        ),
        "gemini": Cell(_gemini_tools("get_weather"), changes=_NOT_STRICT),
        "ollama": Cell(_chat_tools("get_weather"), changes=_NOT_STRICT),
        "ollama-door": Cell(_chat_tools("get_weather"), changes=_NOT_STRICT),
        "bedrock": Cell(_bedrock_tools("get_weather"), changes=_NOT_STRICT),
        "openai-litellm": Cell({"tools": [_STRICT_TOOL]}, changes=_CLOSING),
        "responses-litellm": Cell({"tools": [_STRICT_RESPONSES]}, changes=_CLOSING),
        "anthropic-litellm": Cell(_anthropic_litellm_tools("get_weather"), changes=_NOT_STRICT),
        "gemini-litellm": Cell(_gemini_litellm_tools("get_weather"), changes=_NOT_STRICT),
    },
    fields={"strict": True},
)

ONE_AT_A_TIME = Row(
    "One call at a time",
    "tools",
    "`parallel_tool_calls=False`: at most one call an answer.",
    {
        "openai": Cell(
            {**_chat_tools("get_weather"), "tool_choice": "auto", "parallel_tool_calls": False},
            note="lm15 has no such setting without a choice, and `auto` is the default.",
        ),
        "responses": Cell(
            {**_responses_tools("get_weather"), "tool_choice": "auto", "parallel_tool_calls": False}
        ),
        "anthropic": Cell(
            {
                **_anthropic_tools("get_weather"),
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            }
        ),
        "gemini": Cell(_gemini_tools("get_weather"), changes=_NO_PARALLEL),
        "ollama": Cell(_chat_tools("get_weather"), changes=_NO_PARALLEL),
        "ollama-door": Cell(_chat_tools("get_weather"), changes=_NO_PARALLEL),
        "bedrock": Cell(_bedrock_tools("get_weather"), changes=_NO_PARALLEL),
        "openai-litellm": Cell(
            {**_chat_tools("get_weather"), "tool_choice": "auto", "parallel_tool_calls": False}
        ),
        "responses-litellm": Cell(
            {**_responses_tools("get_weather"), "tool_choice": "auto", "parallel_tool_calls": False}
        ),
        "anthropic-litellm": Cell(
            {
                **_anthropic_litellm_tools("get_weather"),
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            }
        ),
        "gemini-litellm": Cell(_gemini_litellm_tools("get_weather"), changes=_NO_PARALLEL),
    },
    options={"parallel_tool_calls": False},
)

# ---- the model's turn, as it is read and as it goes back ----

_CHAT_PARIS = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
}
_CHAT_ROME = {
    "id": "call_2",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
}
_RESPONSES_PARIS_HEARD = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city":"Paris"}',
    "status": "completed",
}
_RESPONSES_ROME_HEARD = {
    "type": "function_call",
    "id": "fc_2",
    "call_id": "call_2",
    "name": "get_weather",
    "arguments": '{"city":"Rome"}',
    "status": "completed",
}
_RESPONSES_PARIS = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city":"Paris"}',
}
_RESPONSES_ROME = {
    "type": "function_call",
    "call_id": "call_2",
    "name": "get_weather",
    "arguments": '{"city":"Rome"}',
}
_NONE: list[Json] = []
_RESPONSES_TEXT_HEARD: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Let me look.", "annotations": _NONE}],
}
_RESPONSES_TEXT = {
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Let me look."}],
}
_ANTHROPIC_PARIS = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}}
_ANTHROPIC_ROME = {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {"city": "Rome"}}
_GEMINI_PARIS = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}
_GEMINI_ROME = {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}}
_GEMINI_PARIS_SENT = {"functionCall": {"id": "call_1", "name": "get_weather", "args": {"city": "Paris"}}}
_GEMINI_ROME_SENT = {"functionCall": {"id": "call_2", "name": "get_weather", "args": {"city": "Rome"}}}
_GEMINI_LITELLM_PARIS = {"function_call": {"name": "get_weather", "args": {"city": "Paris"}}}
_GEMINI_LITELLM_ROME = {"function_call": {"name": "get_weather", "args": {"city": "Rome"}}}
_OLLAMA_PARIS_HEARD = {"id": "call_1", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
_OLLAMA_ROME_HEARD = {"id": "call_2", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
_OLLAMA_PARIS = {"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
_OLLAMA_ROME = {"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
_BEDROCK_PARIS = {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Paris"}}}
_BEDROCK_ROME = {"toolUse": {"toolUseId": "tooluse_2", "name": "get_weather", "input": {"city": "Rome"}}}


def _assistant(content: Json, *calls: Json) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def _without_content(*calls: Json) -> Json:
    return {"role": "assistant", "tool_calls": list(calls)}


def _claude(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def _model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def _ollama(content: str, *calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": content, "images": [], "tool_calls": list(calls), **more}


CALL = Row(
    "Call",
    "said",
    "A call, as the provider makes it and as it goes back on the next turn.",
    {
        "openai": Cell([_assistant(None, _CHAT_PARIS)], heard=_assistant(None, _CHAT_PARIS)),
        "responses": Cell([_RESPONSES_PARIS], heard=[_RESPONSES_PARIS_HEARD]),
        "anthropic": Cell([_claude(_ANTHROPIC_PARIS)], heard=[_ANTHROPIC_PARIS]),
        "gemini": Cell(
            [_model(_GEMINI_PARIS_SENT)],
            heard=[_GEMINI_PARIS],
            note="Gemini 2.5 gives no id; a synthesised one goes back.",
        ),
        "ollama": Cell(
            [_ollama("", _OLLAMA_PARIS)],
            heard={"content": "", "tool_calls": [_OLLAMA_PARIS_HEARD]},
            note="LiteLLM leaves ids out of calls and writes an empty list of images.",
        ),
        "ollama-door": Cell([_assistant(None, _CHAT_PARIS)], heard=_assistant(None, _CHAT_PARIS)),
        "bedrock": Cell([_claude(_BEDROCK_PARIS)], heard=[_BEDROCK_PARIS]),
        "openai-litellm": Cell([_without_content(_CHAT_PARIS)], heard=_assistant(None, _CHAT_PARIS)),
        "responses-litellm": Cell([_RESPONSES_PARIS], heard=[_RESPONSES_PARIS_HEARD]),
        "anthropic-litellm": Cell([_claude(_ANTHROPIC_PARIS)], heard=[_ANTHROPIC_PARIS]),
        "gemini-litellm": Cell(
            [_model(_GEMINI_LITELLM_PARIS)], heard=[_GEMINI_PARIS], note="LiteLLM leaves ids out."
        ),
    },
)

PARALLEL = Row(
    "Parallel calls",
    "said",
    "Several calls of one answer stay one turn, in order.",
    {
        "openai": Cell(
            [_assistant(None, _CHAT_PARIS, _CHAT_ROME)], heard=_assistant(None, _CHAT_PARIS, _CHAT_ROME)
        ),
        "responses": Cell(
            [_RESPONSES_PARIS, _RESPONSES_ROME], heard=[_RESPONSES_PARIS_HEARD, _RESPONSES_ROME_HEARD]
        ),
        "anthropic": Cell(
            [_claude(_ANTHROPIC_PARIS, _ANTHROPIC_ROME)], heard=[_ANTHROPIC_PARIS, _ANTHROPIC_ROME]
        ),
        "gemini": Cell([_model(_GEMINI_PARIS_SENT, _GEMINI_ROME_SENT)], heard=[_GEMINI_PARIS, _GEMINI_ROME]),
        "ollama": Cell(
            [_ollama("", _OLLAMA_PARIS, _OLLAMA_ROME)],
            heard={"content": "", "tool_calls": [_OLLAMA_PARIS_HEARD, _OLLAMA_ROME_HEARD]},
        ),
        "ollama-door": Cell(
            [_assistant(None, _CHAT_PARIS, _CHAT_ROME)], heard=_assistant(None, _CHAT_PARIS, _CHAT_ROME)
        ),
        "bedrock": Cell([_claude(_BEDROCK_PARIS, _BEDROCK_ROME)], heard=[_BEDROCK_PARIS, _BEDROCK_ROME]),
        "openai-litellm": Cell(
            [_without_content(_CHAT_PARIS, _CHAT_ROME)],
            heard=_assistant(None, _CHAT_PARIS, _CHAT_ROME),
        ),
        "responses-litellm": Cell(
            [_RESPONSES_PARIS, _RESPONSES_ROME], heard=[_RESPONSES_PARIS_HEARD, _RESPONSES_ROME_HEARD]
        ),
        "anthropic-litellm": Cell(
            [_claude(_ANTHROPIC_PARIS, _ANTHROPIC_ROME)], heard=[_ANTHROPIC_PARIS, _ANTHROPIC_ROME]
        ),
        "gemini-litellm": Cell(
            [_model(_GEMINI_LITELLM_PARIS, _GEMINI_LITELLM_ROME)], heard=[_GEMINI_PARIS, _GEMINI_ROME]
        ),
    },
    calls=(("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})),
    values=("sunny", "rainy"),
    errors=(False, False),
)

_LOOK = {"type": "text", "text": "Let me look."}

TEXT_BESIDE = Row(
    "Text beside a call",
    "said",
    "What the model says beside a call is kept, and goes back before the call.",
    {
        "openai": Cell(
            [_assistant("Let me look.", _CHAT_PARIS)], heard=_assistant("Let me look.", _CHAT_PARIS)
        ),
        "responses": Cell(
            [_RESPONSES_TEXT, _RESPONSES_PARIS], heard=[_RESPONSES_TEXT_HEARD, _RESPONSES_PARIS_HEARD]
        ),
        "anthropic": Cell([_claude(_LOOK, _ANTHROPIC_PARIS)], heard=[_LOOK, _ANTHROPIC_PARIS]),
        "gemini": Cell(
            [_model({"text": "Let me look."}, _GEMINI_PARIS_SENT)],
            heard=[{"text": "Let me look."}, _GEMINI_PARIS],
        ),
        "ollama": Cell(
            [_ollama("Let me look.", _OLLAMA_PARIS)],
            heard={"content": "Let me look.", "tool_calls": [_OLLAMA_PARIS_HEARD]},
        ),
        "ollama-door": Cell(
            [_assistant("Let me look.", _CHAT_PARIS)], heard=_assistant("Let me look.", _CHAT_PARIS)
        ),
        "bedrock": Cell(
            [_claude({"text": "Let me look."}, _BEDROCK_PARIS)],
            heard=[{"text": "Let me look."}, _BEDROCK_PARIS],
        ),
        "openai-litellm": Cell(
            [_assistant("Let me look.", _CHAT_PARIS)],
            heard=_assistant("Let me look.", _CHAT_PARIS),
        ),
        "responses-litellm": Cell(
            [_RESPONSES_TEXT, _RESPONSES_PARIS], heard=[_RESPONSES_TEXT_HEARD, _RESPONSES_PARIS_HEARD]
        ),
        "anthropic-litellm": Cell([_claude(_LOOK, _ANTHROPIC_PARIS)], heard=[_LOOK, _ANTHROPIC_PARIS]),
        "gemini-litellm": Cell(
            [_model({"text": "Let me look."}, _GEMINI_LITELLM_PARIS)],
            heard=[{"text": "Let me look."}, _GEMINI_PARIS],
        ),
    },
    text="Let me look.",
)

_THOUGHT = {"type": "thinking", "thinking": "Paris it is.", "signature": "c2ln"}
_ENCRYPTED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Paris it is."}],
    "encrypted_content": "c2ln",
}
_SHOWN = {"role": "assistant", "content": None, "reasoning_content": "Paris it is."}
_SIGNED = {**_GEMINI_PARIS, "thoughtSignature": "c2ln"}
_BEDROCK_THOUGHT = {
    "reasoningContent": {"reasoningText": {"text": "Paris it is.", "signature": "c2ln"}},
}

REASONING = Row(
    "Reasoning replay",
    "said",
    "What a provider signed or encrypted goes back to it, in its place before the call.",
    {
        "openai": Cell(
            [{**_SHOWN, "tool_calls": [_CHAT_PARIS]}],
            heard={**_SHOWN, "tool_calls": [_CHAT_PARIS]},
            note="OpenAI's own chat wire shows no reasoning. A compatible server gets its own back, in the "
            "field it came in; for any other server, the record says that it stayed behind.",
        ),
        "responses": Cell([_ENCRYPTED, _RESPONSES_PARIS_HEARD], heard=[_ENCRYPTED, _RESPONSES_PARIS_HEARD]),
        "anthropic": Cell([_claude(_THOUGHT, _ANTHROPIC_PARIS)], heard=[_THOUGHT, _ANTHROPIC_PARIS]),
        "gemini": Cell(
            [_model({**_GEMINI_PARIS_SENT, "thoughtSignature": "c2ln"})],
            heard=[{"text": "Paris it is.", "thought": True}, _SIGNED],
            note="The signature carries the thought; its summary is not sent back.",
        ),
        "ollama": Cell(
            [_ollama("", _OLLAMA_PARIS, thinking="Paris it is.")],
            heard={"content": "", "thinking": "Paris it is.", "tool_calls": [_OLLAMA_PARIS_HEARD]},
        ),
        "ollama-door": Cell(
            [{**_SHOWN, "tool_calls": [_CHAT_PARIS]}],
            heard={**_SHOWN, "tool_calls": [_CHAT_PARIS]},
        ),
        "bedrock": Cell(
            [_claude(_BEDROCK_THOUGHT, _BEDROCK_PARIS)], heard=[_BEDROCK_THOUGHT, _BEDROCK_PARIS]
        ),
        "openai-litellm": Cell(
            [{**_without_content(_CHAT_PARIS), "reasoning_content": "Paris it is."}],
            heard={**_SHOWN, "tool_calls": [_CHAT_PARIS]},
        ),
        "responses-litellm": Cell(
            [_ENCRYPTED, _RESPONSES_PARIS_HEARD], heard=[_ENCRYPTED, _RESPONSES_PARIS_HEARD]
        ),
        "anthropic-litellm": Cell([_claude(_THOUGHT, _ANTHROPIC_PARIS)], heard=[_THOUGHT, _ANTHROPIC_PARIS]),
        "gemini-litellm": Cell(
            [_model({**_GEMINI_LITELLM_PARIS, "thoughtSignature": "c2ln"})],
            heard=[{"text": "Paris it is.", "thought": True}, _SIGNED],
        ),
    },
    reasoning="Paris it is.",
)

# ---- results ----


def _tool_result(call_id: str, content: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def _function_response(call_id: str, response: Json) -> Json:
    return {"functionResponse": {"id": call_id, "name": "get_weather", "response": response}}


def _function_response_litellm(response: Json) -> Json:
    return {"function_response": {"name": "get_weather", "response": response}}


def _bedrock_result(call_id: str, text: str) -> Json:
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}


def _results(
    title: str, about: str, values: Sequence[Any], texts: Sequence[str], objects: Sequence[Json]
) -> Row:
    """A row of two results, as text for most providers and as objects for Gemini."""
    chat = [{"role": "tool", "tool_call_id": f"call_{n}", "content": text} for n, text in enumerate(texts, 1)]
    responses = [
        {"type": "function_call_output", "call_id": f"call_{n}", "output": text}
        for n, text in enumerate(texts, 1)
    ]
    blocks = [_tool_result(f"toolu_{n}", text) for n, text in enumerate(texts, 1)]
    gemini = [_function_response(f"call_{n}", value) for n, value in enumerate(objects, 1)]
    bedrock = [_bedrock_result(f"tooluse_{n}", text) for n, text in enumerate(texts, 1)]
    said_in_chat = _assistant(None, _CHAT_PARIS, _CHAT_ROME)
    said_in_responses = [_RESPONSES_PARIS_HEARD, _RESPONSES_ROME_HEARD]
    said_by_claude, said_by_gemini = [_ANTHROPIC_PARIS, _ANTHROPIC_ROME], [_GEMINI_PARIS, _GEMINI_ROME]
    return Row(
        title,
        "results",
        about,
        {
            "openai": Cell(chat, heard=said_in_chat),
            "responses": Cell(responses, heard=said_in_responses),
            "anthropic": Cell([{"role": "user", "content": blocks}], heard=said_by_claude),
            "gemini": Cell([{"role": "user", "parts": gemini}], heard=said_by_gemini),
            "ollama": Cell(
                [{**row, "images": []} for row in chat],
                heard={"content": "", "tool_calls": [_OLLAMA_PARIS_HEARD, _OLLAMA_ROME_HEARD]},
                note="LiteLLM sends no `tool_name`, so results are told apart by order.",
            ),
            "ollama-door": Cell(chat, heard=said_in_chat),
            "bedrock": Cell([{"role": "user", "content": bedrock}], heard=[_BEDROCK_PARIS, _BEDROCK_ROME]),
            "openai-litellm": Cell(chat, heard=said_in_chat),
            "responses-litellm": Cell(responses, heard=said_in_responses),
            "anthropic-litellm": Cell([{"role": "user", "content": blocks}], heard=said_by_claude),
            "gemini-litellm": Cell(
                [{"role": "user", "parts": [_function_response_litellm(value) for value in objects]}],
                heard=said_by_gemini,
            ),
        },
        calls=(("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})),
        values=values,
        errors=(False, False),
    )


RESULT = _results(
    "Result",
    "One result a call, in the calls' order: text as text, anything else as JSON; nothing follows.",
    ("sunny", {"sky": "grey", "rain": 3}),
    ("sunny", '{"sky":"grey","rain":3}'),
    ({"result": "sunny"}, {"sky": "grey", "rain": 3}),
)

RESULT_OBJECT = _results(
    "Result as an object",
    "Gemini takes an object: a list goes under `result`, what an MCP server's result said under `output`.",
    (
        [1, 2],
        CallToolResult.model_validate({"content": [], "structuredContent": {"sky": "grey"}}),
    ),
    ("[1,2]", '{"sky":"grey"}'),
    ({"result": [1, 2]}, {"output": {"sky": "grey"}}),
)

FAILED = Row(
    "Failed result",
    "results",
    "A tool that failed: the provider's own flag where it has one, else `ERROR: ` before the reason.",
    {
        "openai": Cell(
            [{"role": "tool", "tool_call_id": "call_1", "content": "ERROR: backend down"}],
            heard=_assistant(None, _CHAT_PARIS),
            changes=_FAILED,
        ),
        "responses": Cell(
            [{"type": "function_call_output", "call_id": "call_1", "output": "ERROR: backend down"}],
            heard=[_RESPONSES_PARIS_HEARD],
            changes=_FAILED,
        ),
        "anthropic": Cell(
            [{"role": "user", "content": [{**_tool_result("toolu_1", "backend down"), "is_error": True}]}],
            heard=[_ANTHROPIC_PARIS],
        ),
        "gemini": Cell(
            [{"role": "user", "parts": [_function_response("call_1", {"error": "backend down"})]}],
            heard=[_GEMINI_PARIS],
        ),
        "ollama": Cell(
            [{"role": "tool", "tool_call_id": "call_1", "content": "ERROR: backend down", "images": []}],
            heard={"content": "", "tool_calls": [_OLLAMA_PARIS_HEARD]},
            changes=_FAILED,
        ),
        "ollama-door": Cell(
            [{"role": "tool", "tool_call_id": "call_1", "content": "ERROR: backend down"}],
            heard=_assistant(None, _CHAT_PARIS),
            changes=_FAILED,
        ),
        "bedrock": Cell(
            [{"role": "user", "content": [_bedrock_result("tooluse_1", "ERROR: backend down")]}],
            heard=[_BEDROCK_PARIS],
            changes=_FAILED,
            note="Converse has `status: error`; LiteLLM has no way to it.",
        ),
        "openai-litellm": Cell(
            [{"role": "tool", "tool_call_id": "call_1", "content": "ERROR: backend down"}],
            heard=_assistant(None, _CHAT_PARIS),
            changes=_FAILED,
        ),
        "responses-litellm": Cell(
            [{"type": "function_call_output", "call_id": "call_1", "output": "ERROR: backend down"}],
            heard=[_RESPONSES_PARIS_HEARD],
            changes=_FAILED,
        ),
        "anthropic-litellm": Cell(
            [{"role": "user", "content": [_tool_result("toolu_1", "ERROR: backend down")]}],
            heard=[_ANTHROPIC_PARIS],
            changes=_FAILED,
            note="LiteLLM has no way to `is_error`.",
        ),
        "gemini-litellm": Cell(
            [{"role": "user", "parts": [_function_response_litellm({"error": "backend down"})]}],
            heard=[_GEMINI_PARIS],
        ),
    },
    values=("backend down",),
    errors=(True,),
)

# ---- results that are not text ----

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_URI = f"data:image/png;base64,{PNG}"
_MOVED = (("/messages/3/content", "lowered"),)
_NAMED = "a shot\n[image 1, attachment 1 below]"
_SHOT = "Attachment 1: image 1 of result 1 (get_weather)"
_CHAT_SHOT = [
    {"role": "tool", "tool_call_id": "call_1", "content": _NAMED},
    {
        "role": "user",
        "content": [{"type": "text", "text": _SHOT}, {"type": "image_url", "image_url": {"url": _URI}}],
    },
]
_CLAUDE_SHOT = [
    {"type": "text", "text": "a shot"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
]
_OUTPUT_SHOT = [
    {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [{"type": "input_text", "text": "a shot"}, {"type": "input_image", "image_url": _URI}],
    }
]

IMAGE = Row(
    "Result with an image",
    "results",
    "Text and an image: inside the result where it can hold both, else right after the results.",
    {
        "openai": Cell(_CHAT_SHOT, heard=_assistant(None, _CHAT_PARIS), changes=_MOVED),
        "responses": Cell(_OUTPUT_SHOT, heard=[_RESPONSES_PARIS_HEARD]),
        "anthropic": Cell(
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_1", "content": _CLAUDE_SHOT},
                    ],
                }
            ],
            heard=[_ANTHROPIC_PARIS],
        ),
        "gemini": Cell(
            [
                {
                    "role": "user",
                    "parts": [
                        _function_response("call_1", {"output": _NAMED}),
                        {"inlineData": {"mimeType": "image/png", "data": PNG}},
                    ],
                }
            ],
            heard=[_GEMINI_PARIS],
            changes=_MOVED,
            note="Since Gemini 3, the image is in `functionResponse.parts`.",
        ),
        "ollama": Cell(
            [
                {"role": "tool", "tool_call_id": "call_1", "content": _NAMED, "images": []},
                {"role": "user", "content": _SHOT, "images": [PNG]},
            ],
            heard={"content": "", "tool_calls": [_OLLAMA_PARIS_HEARD]},
            changes=_MOVED,
        ),
        "ollama-door": Cell(_CHAT_SHOT, heard=_assistant(None, _CHAT_PARIS), changes=_MOVED),
        "bedrock": Cell(
            [
                {
                    "role": "user",
                    "content": [
                        {
                            "toolResult": {
                                "toolUseId": "tooluse_1",
                                "content": [
                                    {"text": "a shot"},
                                    {"image": {"format": "png", "source": {"bytes": PNG}}},
                                ],
                            }
                        }
                    ],
                }
            ],
            heard=[_BEDROCK_PARIS],
        ),
        "openai-litellm": Cell(_CHAT_SHOT, heard=_assistant(None, _CHAT_PARIS), changes=_MOVED),
        "responses-litellm": Cell(_OUTPUT_SHOT, heard=[_RESPONSES_PARIS_HEARD]),
        "anthropic-litellm": Cell(
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_1", "content": _CLAUDE_SHOT},
                    ],
                }
            ],
            heard=[_ANTHROPIC_PARIS],
        ),
        "gemini-litellm": Cell(
            [
                {
                    "role": "user",
                    "parts": [_function_response_litellm({"output": _NAMED})],
                },
                {
                    "role": "user",
                    "parts": [{"text": _SHOT}, {"inline_data": {"mime_type": "image/png", "data": PNG}}],
                },
            ],
            heard=[_GEMINI_PARIS],
            changes=_MOVED,
        ),
    },
    values=(
        CallToolResult.model_validate(
            {
                "content": [
                    {"type": "text", "text": "a shot"},
                    {"type": "image", "data": PNG, "mimeType": "image/png"},
                ]
            }
        ),
    ),
)

# ---- structured output ----

ANSWER_SCHEMA = {
    "additionalProperties": False,
    "properties": {"answer": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Answer"}},
    "required": ["answer"],
    "title": "response",
    "type": "object",
}
_ANSWER_SCHEMA_TEXT = (
    '{"additionalProperties": false, "properties": {"answer": {"anyOf": [{"type": "string"}, '
    '{"type": "null"}], "title": "Answer"}}, "required": ["answer"], "title": "response", "type": "object"}'
)
_CHAT_FORMAT = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "response", "schema": ANSWER_SCHEMA},
    }
}
_RESPONSES_FORMAT = {"text": {"format": {"type": "json_schema", "name": "response", "schema": ANSWER_SCHEMA}}}

STRUCTURED = Row(
    "Structured output",
    "format",
    "`JSONAdapter` with a text output beside the calls: a schema with a name and no strict flag.",
    {
        "openai": Cell(_CHAT_FORMAT),
        "responses": Cell(_RESPONSES_FORMAT),
        "anthropic": Cell({"output_config": {"format": {"type": "json_schema", "schema": ANSWER_SCHEMA}}}),
        "gemini": Cell(
            {},
            changes=(("/response_format", "dropped"),),
            note="Gemini refuses a response format beside tools. Without tools: `responseMimeType` and "
            "`responseJsonSchema`.",
        ),
        "ollama": Cell(
            {},
            changes=(("/response_format", "dropped"),),
            note="Ollama makes no calls where it is held to a format. Without tools: `format`.",
        ),
        "ollama-door": Cell(
            {},
            changes=(("/response_format", "dropped"),),
        ),
        "bedrock": Cell(
            {
                "outputConfig": {
                    "textFormat": {
                        "type": "json_schema",
                        "structure": {
                            "jsonSchema": {
                                "name": "response",
                                "schema": _ANSWER_SCHEMA_TEXT,
                            }
                        },
                    }
                }
            }
        ),
        "openai-litellm": Cell(_CHAT_FORMAT),
        "responses-litellm": Cell(_RESPONSES_FORMAT),
        "anthropic-litellm": Cell(
            {"output_format": {"type": "json_schema", "schema": ANSWER_SCHEMA}},
            note="LiteLLM still writes the beta's field, and sends the beta's header.",
        ),
        "gemini-litellm": Cell({}, changes=(("/response_format", "dropped"),)),
    },
)

# ---- what is newer than plain functions ----

_GRAMMAR = {"syntax": "regex", "definition": "[a-z]+"}
_CUSTOM: Json = {
    "type": "custom",
    "name": "run",
    "description": "Run code.",
    "format": {"type": "grammar", **_GRAMMAR},
}
_CUSTOM_CHAT: Json = {
    "type": "custom",
    "custom": {
        "name": "run",
        "description": "Run code.",
        "format": {"type": "grammar", "grammar": _GRAMMAR},
    },
}
_NO_CUSTOM = "this route's provider has no custom tools"
_NOT_CUSTOM = Cell(absent="The wire has no custom tools.")
_OTHERS = (
    "anthropic",
    "gemini",
    "ollama",
    "ollama-door",
    "bedrock",
    "anthropic-litellm",
    "gemini-litellm",
)

CUSTOM_TOOL = Row(
    "Custom tool",
    "tools",
    "A tool that takes text in a grammar; refused before the request where the wire has no custom tools.",
    {
        "openai": Cell({"tools": [_CUSTOM_CHAT]}),
        "responses": Cell({"tools": [_CUSTOM]}),
        "openai-litellm": Cell({"tools": [_CUSTOM_CHAT]}),
        "responses-litellm": Cell({"tools": [_CUSTOM]}),
        **dict.fromkeys(_OTHERS, Cell(refused=_NO_CUSTOM)),
    },
    custom=_CUSTOM,
)

_CUSTOM_CALL_CHAT = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "abc"}}
_CUSTOM_CALL: Json = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "call_1",
    "name": "run",
    "input": "abc",
}
_CUSTOM_CALLED: Sequence[tuple[str, dict[str, Any]]] = (("run", {"input": "abc"}),)

CUSTOM_CALL = Row(
    "Custom call",
    "said",
    "A call of a custom tool: its text as written.",
    {
        "openai": Cell([_assistant(None, _CUSTOM_CALL_CHAT)], heard=_assistant(None, _CUSTOM_CALL_CHAT)),
        "responses": Cell([_CUSTOM_CALL], heard=[_CUSTOM_CALL]),
        "openai-litellm": Cell(
            [_without_content(_CUSTOM_CALL_CHAT)], heard=_assistant(None, _CUSTOM_CALL_CHAT)
        ),
        "responses-litellm": Cell([_CUSTOM_CALL], heard=[_CUSTOM_CALL]),
        **dict.fromkeys(_OTHERS, _NOT_CUSTOM),
    },
    custom=_CUSTOM,
    calls=_CUSTOM_CALLED,
)

_CUSTOM_OUTPUT = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "sunny"}
_CUSTOM_ROW = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}

CUSTOM_RESULT = Row(
    "Result of a custom call",
    "results",
    "The result in the form that belongs to a custom call.",
    {
        "openai": Cell([_CUSTOM_ROW], heard=_assistant(None, _CUSTOM_CALL_CHAT)),
        "responses": Cell([_CUSTOM_OUTPUT], heard=[_CUSTOM_CALL]),
        "openai-litellm": Cell([_CUSTOM_ROW], heard=_assistant(None, _CUSTOM_CALL_CHAT)),
        "responses-litellm": Cell([_CUSTOM_OUTPUT], heard=[_CUSTOM_CALL]),
        **dict.fromkeys(_OTHERS, _NOT_CUSTOM),
    },
    custom=_CUSTOM,
    calls=_CUSTOM_CALLED,
)

_SEARCH_USE: Json = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "weather"},
}
_SEARCH_FOUND: Json = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {"type": "web_search_result", "url": "https://e.org", "title": "t", "encrypted_content": "E"}
    ],
}
_SEARCHED_BY_CLAUDE = [_SEARCH_USE, _SEARCH_FOUND, _ANTHROPIC_PARIS]
_SEARCHED_BY_OPENAI: Json = [
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "weather"},
    },
    _RESPONSES_PARIS_HEARD,
]
_RAN_BY_GEMINI: Json = [
    {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    _GEMINI_PARIS,
]
_NO_SERVER_TOOLS = Cell(absent="The provider runs no tools in the middle of a turn.")

SERVER_TOOLS = Row(
    "Tools that the provider ran",
    "said",
    "A search or code that the provider ran itself goes back with its result, in its place.",
    {
        "openai": _NO_SERVER_TOOLS,
        "responses": Cell(_SEARCHED_BY_OPENAI, heard=_SEARCHED_BY_OPENAI),
        "anthropic": Cell([_claude(*_SEARCHED_BY_CLAUDE)], heard=_SEARCHED_BY_CLAUDE),
        "gemini": Cell([_model(*_RAN_BY_GEMINI[:2], _GEMINI_PARIS_SENT)], heard=_RAN_BY_GEMINI),
        "ollama": _NO_SERVER_TOOLS,
        "ollama-door": _NO_SERVER_TOOLS,
        "bedrock": _NO_SERVER_TOOLS,
        "openai-litellm": _NO_SERVER_TOOLS,
        "responses-litellm": Cell(_SEARCHED_BY_OPENAI, heard=_SEARCHED_BY_OPENAI),
        "anthropic-litellm": Cell(
            [_claude(_ANTHROPIC_PARIS)],
            heard=_SEARCHED_BY_CLAUDE,
            changes=(("/messages/2/turn/state", "dropped"),),
            note="LiteLLM has no place for these blocks in a chat message.",
        ),
        "gemini-litellm": Cell(
            [_model(_GEMINI_LITELLM_PARIS)],
            heard=_RAN_BY_GEMINI,
            note="LiteLLM drops code that Gemini ran before anybody sees it, so that no record says so.",
        ),
    },
)

ROWS: Mapping[str, Row] = {
    "definition": DEFINITION,
    "declared-fields": DECLARED_FIELDS,
    "strict": STRICT,
    "call": CALL,
    "parallel": PARALLEL,
    "result": RESULT,
    "result-object": RESULT_OBJECT,
    "failed": FAILED,
    "image": IMAGE,
    "auto": CHOICE_AUTO,
    "required": CHOICE_REQUIRED,
    "none": CHOICE_NONE,
    "named": CHOICE_NAMED,
    "subset": CHOICE_SUBSET,
    "one-at-a-time": ONE_AT_A_TIME,
    "structured": STRUCTURED,
    "text": TEXT_BESIDE,
    "reasoning": REASONING,
    "custom-tool": CUSTOM_TOOL,
    "custom-call": CUSTOM_CALL,
    "custom-result": CUSTOM_RESULT,
    "server-tools": SERVER_TOOLS,
}
