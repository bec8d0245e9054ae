"""One turn of each wire form with two calls and all kinds of provider state, told apart by marks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]

LOOK = "Let me look."
CITIES = ("Paris", "Rome")
NAME = "get_weather"
_NOTHING: list[Json] = []


class Heard(NamedTuple):
    """A turn as its wire has it, and the names of its pieces of state, by the words to find them by."""

    turn: Any
    marks: Mapping[str, str]


def _chat(**more: Any) -> Json:
    # Servers that speak this wire give ids that Anthropic refuses.
    calls = [
        {"id": f"call:{city}/1", "type": "function", "function": {"name": NAME, "arguments": _args(city)}}
        for city in CITIES
    ]
    return {"role": "assistant", "content": LOOK, "tool_calls": calls, **more}


def _args(city: str) -> str:
    return f'{{"city":"{city}"}}'


_DETAILS = [{"type": "reasoning.encrypted", "data": "MARKdetails", "id": "r1", "format": "f", "index": 0}]

_DONE = {"status": "completed"}
_SUMMARY = [{"type": "summary_text", "text": "Hm, MARKreasoning."}]
_SAID = [{"type": "output_text", "text": LOOK, "annotations": _NOTHING}]
_RESPONSES: list[Json] = [
    {
        "type": "reasoning",
        "id": "rs_MARKreasoning",
        "summary": _SUMMARY,
        "encrypted_content": "MARKreasoning",
    },
    {
        "type": "web_search_call",
        "id": "ws_MARKsearch",
        "action": {"type": "search", "query": "MARKsearch"},
        **_DONE,
    },
    {"type": "message", "id": "msg_MARKid", "role": "assistant", "content": _SAID, **_DONE},
    *(
        # An id that is longer than chat completions take.
        {"type": "function_call", "id": f"fc_MARKid{city}", "call_id": f"call_{city:x<55}", "name": NAME}
        | {"arguments": _args(city), **_DONE}
        for city in CITIES
    ),
]
_PAGE = {"type": "web_search_result", "url": "https://e.org", "title": "t", "encrypted_content": "MARKresult"}
_ANTHROPIC: list[Json] = [
    {"type": "thinking", "thinking": "Hm, MARKthinking.", "signature": "MARKthinking"},
    {"type": "redacted_thinking", "data": "MARKredacted"},
    {"type": "server_tool_use", "id": "srvtoolu_MARKuse", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_MARKuse", "content": [_PAGE]},
    {"type": "text", "text": LOOK},
    *({"type": "tool_use", "id": f"toolu_{city}", "name": NAME, "input": {"city": city}} for city in CITIES),
]
_CODE = {"language": "PYTHON", "code": "MARKcode", "id": "e1"}
_PARIS, _ROME = ({"id": f"g.{city}", "name": NAME, "args": {"city": city}} for city in CITIES)
_GEMINI: list[Json] = [
    {"executableCode": _CODE, "thoughtSignature": "MARKcode"},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "MARKoutput", "id": "e1"}},
    {"text": LOOK},
    {"functionCall": _PARIS, "thoughtSignature": "MARKsigned12"},
    {"functionCall": _ROME},
]
_BEDROCK: list[Json] = [
    {"reasoningContent": {"reasoningText": {"text": "Hm, MARKthinking.", "signature": "MARKthinking"}}},
    {"text": LOOK},
    *({"toolUse": {"toolUseId": f"use.{city}", "name": NAME, "input": {"city": city}}} for city in CITIES),
]

_OLLAMA: Json = {
    "content": LOOK,
    "thinking": "Hm, MARKthinking.",
    "tool_calls": [{"function": {"name": NAME, "arguments": {"city": city}}} for city in CITIES],
}

TURNS: Mapping[str, Heard] = {
    "chat": Heard(
        _chat(reasoning_content="Hm, MARKthinking.", reasoning_details=_DETAILS),
        {"MARKthinking": "reasoning", "MARKdetails": "reasoning_details"},
    ),
    "responses": Heard(_RESPONSES, {"MARKreasoning": "reasoning", "MARKsearch": "web_search_call"}),
    "anthropic": Heard(
        _ANTHROPIC,
        {"MARKthinking": "reasoning", "MARKredacted": "redacted_thinking"}
        | {"MARKuse": "server_tool_use", "MARKresult": "web_search_tool_result"},
    ),
    "gemini": Heard(
        _GEMINI,
        {"MARKcode": "executableCode", "MARKoutput": "codeExecutionResult", "MARKsigned12": "a signature"},
    ),
    "bedrock": Heard(_BEDROCK, {"MARKthinking": "reasoning"}),
    "ollama": Heard(_OLLAMA, {"MARKthinking": "reasoning"}),
}
"""By wire form."""

LOST_ON_ARRIVAL: Mapping[str, frozenset[str]] = {"gemini-litellm": frozenset({"MARKcode", "MARKoutput"})}
"""What LiteLLM keeps to itself of an answer, by column: nobody behind it can know of it."""
