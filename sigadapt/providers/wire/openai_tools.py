"""OpenAI's own forms of tools: those that the program runs, and namespaces of deferred functions.

Calls of tools in OpenAI's own words that the program runs, and the items that answer them:

| tool | item of a call | item of its result |
|---|---|---|
| `shell` (local) | `shell_call` | `shell_call_output` |
| `local_shell` | `local_shell_call` | `local_shell_call_output` |
| `apply_patch` | `apply_patch_call` | `apply_patch_call_output` |
| `computer`, `computer_use_preview` | `computer_call` | `computer_call_output` |
| `tool_search` with `execution: client` | `tool_search_call` | `tool_search_output` |
| `mcp`, for an approval | `mcp_approval_request` | `mcp_approval_response` |

A call has the name of its tool's type; the name of an approval is `mcp_approval_request`. Its arguments are
what OpenAI documents: an action, an operation, or what an approval is asked for. Items of tools that OpenAI
ran itself (a shell in a container, a search of its own) are no calls. Nor are xAI's searches, which come as
calls of custom tools. Sources: the types of OpenAI's SDK 2.54, and xAI's guide to `x_search`; read on
2026-11-22.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.providers.provider import Result
from sigadapt.providers.wire.values import RawCall, an_object, is_text, kind_of, name_in, objects
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.fewer_tools import words

APPROVAL = "mcp_approval_request"
ANSWERED = "answered"
"""The key that marks a call in a state whose output stands in the same answer. It is not sent."""
_NAMES = {
    "shell_call": "shell",
    "local_shell_call": "local_shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "tool_search_call": "tool_search",
    APPROVAL: APPROVAL,
}
_XAI_OWN = frozenset(
    ("x_user_search", "x_keyword_search", "x_semantic_search", "x_thread_fetch", "view_x_video", "view_image")
)


def is_client_call(item: Json) -> bool:
    """Return whether an item is a call that the program has to run or to answer."""
    kind = kind_of(item)
    if item.get(ANSWERED):
        return False
    if kind == "shell_call":
        # {"environment": {"type": "container_reference", "container_id": "cntr_1"}}: OpenAI ran it
        return an_object(item.get("environment")).get("type") in (None, "local")
    return kind in _NAMES and (kind != "tool_search_call" or item.get("execution") == "client")


def with_answered_marked(items: Sequence[Json]) -> list[Json]:
    """Return the items of an answer; calls that OpenAI itself answered there are marked as such."""
    # A shell that OpenAI ran may come without its environment.
    outputs = {str(item.get("call_id")) for item in items if kind_of(item).endswith("_call_output")}
    marked_items = [*items]
    for number, item in enumerate(items):
        if kind_of(item) in _NAMES and str(item.get("call_id")) in outputs:
            marked_items[number] = {**item, ANSWERED: True}
    return marked_items


def ran_by_xai(item: Json) -> bool:
    """Return whether a call of a custom tool is a step of a search that xAI ran itself."""
    # {"type": "custom_tool_call", "call_id": "xs_1", "name": "x_keyword_search", "input": "{...}"}
    return str(item.get("name")) in _XAI_OWN or str(item.get("call_id")).startswith("xs_")


# {"type": "response.shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": "ls"}
# {"type": "response.shell_call_command.done", "output_index": 0, "command_index": 0, "command": "ls -l"}
# {"type": "response.apply_patch_call_operation_diff.delta", "output_index": 0, "delta": "*** Be"}
# https://developers.openai.com/api/reference/resources/responses/streaming-events
def with_streamed_parts(item: Json, deltas: Sequence[Json]) -> Json:
    """Return the item of a call with the commands, or the patch, that the events of a stream held."""
    commands: dict[str, str] = {}
    diff = ""
    for event in deltas:
        kind = kind_of(event)
        if kind.startswith("response.shell_call_command."):
            place = str(event.get("command_index"))
            whole = event.get("command")
            commands[place] = str(whole or commands.get(place, "") + str(event.get("delta") or ""))
        elif kind.startswith("response.apply_patch_call_operation_diff."):
            whole = event.get("diff")
            diff = str(whole or diff + str(event.get("delta") or ""))
    if commands:
        item = {**item, "action": {**an_object(item.get("action")), "commands": [*commands.values()]}}
    return {**item, "operation": {**an_object(item.get("operation")), "diff": diff}} if diff else item


# {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"], "timeout_ms": 1000}}
# {"type": "apply_patch_call", "call_id": "call_1", "operation": {"type": "create_file", "path": "a", ...}}
# {"type": "computer_call", "call_id": "call_1", "action": {"type": "click", "x": 1, "y": 2, ...}}
# {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}", "server_label": "crm"}
def client_call(item: Json) -> RawCall:
    """Return the id, name and arguments of an item for which `is_client_call` holds."""
    kind = kind_of(item)
    if kind == APPROVAL:
        args = parse_arguments(str(item.get("arguments")))
        arguments = args if is_object(args) else item.get("arguments")
        fields: Json = {key: item[key] for key in ("server_label", "name") if key in item}
        return (item.get("id"), _NAMES[kind], {**fields, "arguments": arguments})
    if kind == "computer_call":
        # The `computer` of newer models sends several actions at once.
        several = is_array(item.get("actions"))
        action: Any = {"actions": item["actions"]} if several else item.get("action")
        checks = objects(item.get("pending_safety_checks"))
        if checks and is_object(action):
            action = {**action, "pending_safety_checks": checks}
        return (item.get("call_id"), "computer" if several else "computer_use_preview", action)
    key = {"apply_patch_call": "operation", "tool_search_call": "arguments"}.get(kind, "action")
    return (item.get("call_id"), _NAMES[kind], item.get(key))


def client_output(result: Result, call: Json) -> Json | None:
    """Return the item that answers the item of a call; None if it is no call of such a tool."""
    if not is_client_call(call):
        return None
    kind = kind_of(call)
    answer: Json = {"type": f"{kind}_output", "call_id": result.id}
    if kind == "shell_call":
        answer |= _shell_output(result, call)
    elif kind == "local_shell_call":
        answer = {"type": answer["type"], "id": result.id, "output": result.text}
    elif kind == "apply_patch_call":
        answer |= {"status": "failed" if result.failed else "completed", "output": result.text}
    elif kind == "tool_search_call":
        answer |= {"type": "tool_search_output", "execution": "client", "status": "completed"}
        answer["tools"] = objects(an_object(result.given).get("tools", result.given))
    elif kind == "computer_call":
        answer |= _computer_output(result)
    else:
        answer = _approval(result, call)
    return answer


def _shell_output(result: Result, call: Json) -> Json:
    output: Sequence[Json] = objects(result.given)
    if not is_array(result.given) or any("outcome" not in an_object(part) for part in result.given):
        # A result that is not in OpenAI's form is what one command wrote.
        outcome = {"type": "exit", "exit_code": int(result.failed)}
        stdout, stderr = ("", result.text) if result.failed else (result.text, "")
        output = [{"stdout": stdout, "stderr": stderr, "outcome": outcome}]
    fields: Json = {"output": an_object(result.given).get("output") or output}
    limit = an_object(call.get("action")).get("max_output_length")
    if limit is not None:  # the output repeats the limit of its call
        fields["max_output_length"] = limit
    return fields


def _computer_output(result: Result) -> Json:
    given = an_object(result.given)
    images = [block for block in result.blocks or () if kind_of(block) == "input_image"]
    # Without an image, the text is its address, or the program gives the output as OpenAI documents it.
    if not images:
        screenshot = {"type": "computer_screenshot", "image_url": result.text}
        return {"output": given.get("output") or screenshot}
    image = {key: images[0][key] for key in ("image_url", "file_id") if key in images[0]}
    fields: Json = {"output": {"type": "computer_screenshot", **image}}
    if "acknowledged_safety_checks" in given:
        fields["acknowledged_safety_checks"] = given["acknowledged_safety_checks"]
    return fields


def _approval(result: Result, call: Json) -> Json:
    given = an_object(result.given)
    # Approvals fail closed: anything but a clear yes is a no.
    approve = not result.failed and (result.given is True or given.get("approve") is True)
    reason = given.get("reason")
    if not given and not approve:
        reason = result.text
    answer = {"type": "mcp_approval_response", "approval_request_id": call.get("id"), "approve": approve}
    if is_text(reason):
        answer["reason"] = reason
    return answer


# Namespaces: a thousand deferred functions as groups of at most ten. A model of Responses reads the name and
# the description of a namespace, and of a deferred function that stands by itself. "We recommend fewer than
# 10 functions per namespace": https://developers.openai.com/api/docs/guides/tools-tool-search

MOST = 10
_LONGEST_LABEL = 48


def is_single(tool: Json) -> bool:
    """Return whether a canonical tool is deferred and in no namespace."""
    return bool(tool.get("defer_loading")) and "namespace" not in tool


def in_namespaces(tools: Sequence[Json]) -> list[Json]:
    """Return canonical tools with the single ones last, in namespaces by the words their names begin with."""
    entries = [tool for tool in tools if not is_single(tool)]
    names = {*map(name_in, tools), *(tool["namespace"]["name"] for tool in entries if tool.get("namespace"))}
    singles = [(words(str(name_in(tool))), str(name_in(tool)), tool) for tool in tools if is_single(tool)]
    runs: list[list[tuple[list[str], str, Json]]] = []
    for each in sorted(singles, key=lambda each: each[:2]):
        goes_on = bool(runs) and (each[0][:1] == runs[-1][-1][0][:1] or len(runs[-1]) < MOST // 2)
        if not goes_on or len(runs[-1]) == MOST:
            runs.append([])
        runs[-1].append(each)
    for run in runs:
        first = run[0][0]
        last = run[-1][0]
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
        label = "_".join(word for word, _ in pairs) or "_to_".join([*first[:1], *last[:1]])
        label = label[:_LONGEST_LABEL] or "tools"
        candidates = (label, *(f"{label}_{number}" for number in range(2, len(tools) + 3)))
        name = next(each for each in candidates if each not in names)
        names.add(name)
        space = {"name": name, "description": f"Functions: {', '.join(function for _, function, _ in run)}."}
        entries += ({**tool, "namespace": space} for _, _, tool in run)
    return entries
