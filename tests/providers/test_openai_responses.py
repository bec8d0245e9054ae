"""OpenAI's Responses: client tools and listings. The answers are in tests/wires/openai-responses."""

import pytest
from wire_cases import Json

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream


def begun(item: Json, *deltas: Json) -> list[Json]:
    """The events of a stream that has begun an item."""
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    return [added, *({"output_index": 0, **delta} for delta in deltas)]


SHELL: Json = {"type": "shell_call", "call_id": "c1", "status": "in_progress", "action": {"commands": []}}


PATCH: Json = {"type": "update_file", "path": "a.py", "diff": ""}


COMMANDS: list[Json] = [
    {"type": "response.shell_call_command.added", "command_index": 0, "command": ""},
    {"type": "response.shell_call_command.delta", "command_index": 0, "delta": "ls"},
    {"type": "response.shell_call_command.delta", "command_index": 0, "delta": " -l"},
    {"type": "response.shell_call_command.done", "command_index": 1, "command": "pwd"},
]


DIFF = {"type": "response.apply_patch_call_operation_diff.delta", "delta": "*** Be"}


BEGUN = {
    "shell": begun(SHELL, *COMMANDS),
    "apply_patch": begun({**SHELL, "type": "apply_patch_call", "operation": PATCH}, DIFF),
    "computer": begun({**SHELL, "type": "computer_call", "actions": []}),
    "local_shell": begun({**SHELL, "type": "local_shell_call"}),
    "mcp_approval_request": begun({"type": "mcp_approval_request", "id": "m", "arguments": ""}),
}


@pytest.mark.parametrize("name", BEGUN)
def test_a_stream_cut_inside_of_an_item_leaves_no_good_call(name: str) -> None:
    """response-choice: A stream cut inside of a client tool's call leaves no good call"""
    calls = choice_from_stream(BEGUN[name]).tool_calls
    assert calls is not None
    assert [(call.name, call.code) for call in calls.invalid] == [(name, "truncated")]
    assert not calls.tool_calls


@pytest.mark.parametrize("error", [None, {"type": "http_error", "code": 503, "message": "closed"}])
def test_a_list_of_mcp_tools_that_failed_is_told(error: Json | None) -> None:
    """server-tools: A list of tools that failed is told"""
    listing: Json = {"type": "mcp_list_tools", "id": "l", "server_label": "bank", "tools": [], "error": error}
    choice = choice_from_response({"object": "response", "status": "completed", "output": [listing]})
    assert [(call.status, call.input) for call in choice.server_calls] == (
        [("failed", {"server_label": "bank"})] if error else []
    )
