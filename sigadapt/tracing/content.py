"""What was said, as the GenAI conventions write it, without secrets: for programs that ask for content."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pydantic_core import to_jsonable_python

from sigadapt.adapters.response.choice import Choice
from sigadapt.json_values import Json, compact, is_array, is_mapping, is_object
from sigadapt.schemas.arguments import CutOff
from sigadapt.trust.echoes import Echoes
from sigadapt.trust.masking import long_secrets_in


def text_of(value: Any, secrets: AbstractSet[str]) -> str:
    """Return a value as the text of an attribute: JSON, or a text as it is; without secrets."""
    plain = to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings")
    masked = Echoes(secrets | long_secrets_in(plain)).hidden_in(plain, (), {})
    return masked if isinstance(masked, str) else compact(masked)


def input_messages(rows: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the messages of a canonical Request."""
    return [{"role": row["role"], "parts": [*_parts_of(row)]} for row in rows]


def _parts_of(row: Mapping[str, Any]) -> list[Json]:
    content = row.get("blocks") or row.get("content")
    if row["role"] == "tool":
        return [{"type": "tool_call_response", "id": row.get("tool_call_id"), "response": content}]
    parts: list[Json] = []
    if isinstance(content, str):
        parts.append({"type": "text", "content": content})
    elif is_array(content):
        parts += [_part(block) for block in content if is_object(block)]
    calls: Sequence[Any] = row.get("tool_calls") or ()
    return parts + [_call_part(each.get("id"), each.get("function") or {}) for each in calls]


def _part(block: Json) -> Json:
    if block.get("type") == "text":
        return {"type": "text", "content": block.get("text")}
    return {"type": str(block.get("type"))}  # such as an image, whose data no span should hold


def _call_part(call_id: Any, function: Mapping[str, Any]) -> Json:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        arguments = _object_in(arguments)
    return {"type": "tool_call", "id": call_id, "name": function.get("name"), "arguments": arguments}


def _object_in(text: str) -> Any:
    from jiter import from_json

    try:
        return from_json(text.encode())
    except ValueError:
        return text


def output_messages(choice: Choice) -> list[Json]:
    """Return the answer of one candidate."""
    parts: list[Json] = []
    if choice.reasoning:
        parts.append({"type": "reasoning", "content": choice.reasoning})
    if choice.text:
        parts.append({"type": "text", "content": choice.text})
    for call in choice.tool_calls.in_order() if choice.tool_calls is not None else ():
        arguments: Any = getattr(call, "args", None)
        arguments = arguments.sent if isinstance(arguments, CutOff) else arguments
        parts.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
    return [{"role": "assistant", "parts": parts}]


def tool_definitions(tools: Sequence[Any]) -> list[Json]:
    """Return the tools of a canonical Request; of a provider's own, which may hold tokens, type and name."""
    return [_definition(tool) for tool in tools if is_mapping(tool)]


def _definition(tool: Mapping[str, Any]) -> Json:
    function = tool.get("function")
    if is_mapping(function):
        names = ("name", "description", "parameters")
        return {"type": "function", **{name: function[name] for name in names if name in function}}
    return {name: tool[name] for name in ("type", "name") if name in tool}
