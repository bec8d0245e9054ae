"""What real providers refuse in a conversation, by wire: `refusal(wire, body, issued)` says why, or None.

Sources: the error messages that the providers give. Each rule quotes its own in the reason.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
DUMMY = "skip_thought_signature_validator"  # what Google documents for calls that another model made


def refusal(wire: str, body: Json, issued: Mapping[str, str | None]) -> str | None:
    """Why the provider answers this body with 400; `issued` has each signature it gave, with its thought."""
    try:
        _RULES[wire](body, issued)
    except ValueError as error:
        return str(error)
    return None


def refuse_if(condition: object, why: str) -> None:
    if condition:
        raise ValueError(why)


def _chat(body: Json, _: Mapping[str, str | None]) -> None:
    rows = [row for row in body["messages"] if row["role"] not in ("system", "developer")]
    _begins_with_user(rows)
    waiting: list[str] = []
    before = ""
    for row in rows:
        if row["role"] == "tool":
            refuse_if(
                row["tool_call_id"] not in waiting,
                "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
            )
            waiting.remove(row["tool_call_id"])
        else:
            refuse_if(
                waiting, "'tool_calls' must be followed by tool messages responding to each 'tool_call_id'"
            )
            refuse_if(row["role"] == before == "assistant", "two assistant messages in a row")
            waiting = [call["id"] for call in row.get("tool_calls") or ()]
            refuse_if(len(set(waiting)) < len(waiting), "Duplicate value for 'tool_call_id'")
            refuse_if(any(len(call_id) > 40 for call_id in waiting), "string too long: expected 40")
            refuse_if(not waiting and not row.get("content"), "expected a string, got null")
        before = row["role"]
    refuse_if(waiting, "'tool_calls' must be followed by tool messages responding to each 'tool_call_id'")
    refuse_if(rows[-1]["role"] == "assistant", "the last message is the assistant's")


def _ollama(body: Json, _: Mapping[str, str | None]) -> None:
    # Ollama pairs by name and place; its templates want the user first.
    rows = [row for row in body["messages"] if row["role"] != "system"]
    _begins_with_user(rows)
    waiting: list[str] = []
    for row in rows:
        if row["role"] == "tool":
            refuse_if(not waiting, "a tool message without a call")
            name = row.get("tool_name") or row.get("name")
            expected = waiting.pop(0)
            refuse_if(name is not None and name != expected, f"a result of {name} for a call of {expected}")
        else:
            refuse_if(waiting, "a call without a tool message")
            waiting = [call["function"]["name"] for call in row.get("tool_calls") or ()]
    refuse_if(waiting, "a call without a tool message")


def _responses(body: Json, issued: Mapping[str, str | None]) -> None:
    items = [item for item in body["input"] if item.get("role") not in ("system", "developer")]
    _begins_with_user(items)
    waiting: set[str] = set()
    seen: set[str] = set()
    for number, item in enumerate(items):
        kind = item.get("type", "message")
        refuse_if(item.get("id") in seen, f"Duplicate item found with id {item.get('id')}")
        if "id" in item:
            seen.add(item["id"])
        if kind == "function_call":
            refuse_if(item["call_id"] in waiting, "Duplicate call_id")
            waiting.add(item["call_id"])
        elif kind == "function_call_output":
            refuse_if(item["call_id"] not in waiting, "No tool call found for function call output")
            waiting.remove(item["call_id"])
        elif kind == "message":
            refuse_if(waiting and item["role"] == "user", f"No tool output found for function call {waiting}")
        elif kind == "reasoning":
            refuse_if(item["encrypted_content"] not in issued, "The encrypted content could not be verified")
            then: Json = items[number + 1] if number + 1 < len(items) else {}
            follows = then and then.get("role") != "user" and not then.get("type", "").endswith("_output")
            refuse_if(
                not follows, "Item of type 'reasoning' was provided without its required following item"
            )
    refuse_if(waiting, f"No tool output found for function call {waiting}")


def _anthropic(body: Json, issued: Mapping[str, str | None]) -> None:
    # Messages in a row of one role are taken as one.
    rows: list[tuple[str, list[Json]]] = []
    for row in body["messages"]:
        text: list[Json] = [{"type": "text", "text": row["content"]}]
        blocks = text if isinstance(row["content"], str) else row["content"]
        if rows and rows[-1][0] == row["role"]:
            rows[-1][1].extend(blocks)
        else:
            rows.append((row["role"], list(blocks)))
    refuse_if(rows[0][0] != "user", "messages: first message must use the 'user' role")
    waiting: list[str] = []
    ids: set[str] = set()
    for role, blocks in rows:
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        refuse_if(role == "assistant" and results, "tool_result blocks can only be in user messages")
        refuse_if(
            {block["type"] for block in blocks[: len(results)]} - {"tool_result"},
            "`tool_use` ids were found without `tool_result` blocks immediately after",
        )
        refuse_if(set(results) - set(waiting), "unexpected `tool_use_id` found in `tool_result` blocks")
        refuse_if(len(set(results)) < len(results), "each tool_use must have a single result")
        refuse_if(set(waiting) - set(results), "`tool_use` ids were found without `tool_result` blocks")
        waiting = []
        for block in blocks:
            if block["type"] == "tool_use":
                refuse_if(block["id"] in ids, "`tool_use` ids must be unique")
                refuse_if(not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), "String should match pattern")
                refuse_if(not isinstance(block["input"], dict), "Input should be a valid dictionary")
                ids.add(block["id"])
                waiting.append(block["id"])
            elif block["type"] == "text":
                refuse_if(not block["text"].strip(), "text content blocks must be non-empty")
            elif block["type"] == "thinking":
                known = issued.get(block["signature"], block) == block["thinking"]
                refuse_if(not known, "Invalid `signature` in `thinking` block")
    refuse_if(waiting, "`tool_use` ids were found without `tool_result` blocks immediately after")
    paused = rows[-1][1][-1]["type"] == "server_tool_use"
    refuse_if(rows[-1][0] == "assistant" and not paused, "the model does not support assistant prefill")


def _gemini(body: Json, issued: Mapping[str, str | None]) -> None:
    contents = body["contents"]
    refuse_if(contents[0]["role"] != "user", "contents must begin with the role user")
    asked = max(
        number for number, row in enumerate(contents) if row["role"] == "user" and "text" in row["parts"][0]
    )
    calls: list[Json] = []
    for number, row in enumerate(contents):
        parts = row["parts"]
        refuse_if(not parts, "contents.parts must not be empty")
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        refuse_if(
            results and not calls, "function response turn comes immediately after a function call turn"
        )
        refuse_if(
            len(results) != len(calls),
            "number of function response parts is equal to the number of function call parts",
        )
        names = [result["name"] for result in results]
        refuse_if(names != [call["name"] for call in calls], "a response of another function")
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        refuse_if(
            calls and (number == 0 or contents[number - 1]["role"] != "user"),
            "function call turn comes immediately after a user turn or after a function response turn",
        )
        signed = [part.get("thoughtSignature") for part in parts if "functionCall" in part]
        refuse_if(
            "gemini-3" in str(body.get("model", "")) and number > asked and calls and not signed[0],
            "Function call is missing a thought_signature",
        )
        for part in parts:
            own = part.get("thoughtSignature", DUMMY)
            refuse_if(own != DUMMY and own not in issued, "Thought signature is not valid")
    refuse_if(calls, "a function call without its response")


def _begins_with_user(rows: list[Json]) -> None:
    refuse_if(rows[0].get("role") != "user", "the first message must be the user's")


_RULES: dict[str, Callable[[Json, Mapping[str, str | None]], None]] = {
    "openai": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
