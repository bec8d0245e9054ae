"""OpenAI Responses, whole and streamed."""

from typing import Any

import pytest
from wire_cases import ARGUMENTS, HALVES, SAID, THOUGHT, Case, Json, Sample, check_case, params

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream

FIELDS: Json = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "temperature": 1,
    "top_p": 1,
}

BODY: Json = {
    **FIELDS,
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": SAID, "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc",
            "call_id": "c1",
            "name": "get_weather",
            "arguments": ARGUMENTS,
            "status": "completed",
        },
    ],
}
SAMPLE = Sample(
    "openai-responses",
    BODY,
    [
        {"type": "response.created", "response": {**FIELDS, "status": "in_progress", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "reasoning", "id": "rs", "summary": []},
        },
        {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 0,
            "summary_index": 0,
            "delta": THOUGHT,
        },
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": SAID},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": HALVES[0]},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": HALVES[1]},
        {"type": "response.completed", "response": BODY},
    ],
)

PARIS = ("call_1", "get_weather", {"city": "Paris"})
ROME = ("call_2", "get_weather", {"city": "Rome"})


def response(*output: Json, status: str = "completed", **more: Any) -> Json:
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "model": "gpt-5",
        "incomplete_details": None,
        "output": list(output),
        "text": {"format": {"type": "text"}},
        **more,
    }


def call(arguments: Any, call_id: str = "call_1", status: str = "completed") -> Json:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "get_weather",
        "arguments": arguments,
        "status": status,
    }


def message(*parts: Json) -> Json:
    return {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "status": "completed",
        "content": list(parts),
    }


def said(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def reasoning(*summary: str, content: tuple[str, ...] = ()) -> Json:
    item: Json = {"type": "reasoning", "id": "rs", "encrypted_content": "ENC"}
    item["summary"] = [{"type": "summary_text", "text": text} for text in summary]
    item["content"] = [{"type": "reasoning_text", "text": text} for text in content]
    return item


def event(kind: str, index: int, **more: Any) -> Json:
    return {"type": f"response.{kind}", "output_index": index, "sequence_number": 1, **more}


def call_events(index: int, item: Json, *, done: bool = True) -> list[Json]:
    text: str = item["arguments"]
    half = len(text) // 2
    opened = {**item, "arguments": "", "status": "in_progress"}
    deltas = [
        event("function_call_arguments.delta", index, delta=piece) for piece in (text[:half], text[half:])
    ]
    ends = [
        event("function_call_arguments.done", index, arguments=text),
        event("output_item.done", index, item=item),
    ]
    return [event("output_item.added", index, item=opened), *deltas, *(ends if done else [])]


def text_events(index: int, *pieces: str, kind: str = "output_text", done: bool = True) -> list[Json]:
    opened = event("output_item.added", index, item={**message(), "status": "in_progress"})
    deltas = [event(f"{kind}.delta", index, content_index=0, delta=piece) for piece in pieces]
    whole = message(
        said("".join(pieces)) if kind == "output_text" else {"type": "refusal", "refusal": "".join(pieces)}
    )
    return [opened, *deltas, *([event("output_item.done", index, item=whole)] if done else [])]


def stream(*events: Json, final: Json | None = None, output: list[Json] | None = None) -> list[Json]:
    """A stream's events; the final one holds the whole response, or the output given."""
    started: list[Json] = [{"type": "response.created", "response": response(status="in_progress")}]
    if final is None:
        return [*started, *events]
    last = final if output is None else {**final, "output": output}
    return [*started, *events, {"type": f"response.{final['status']}", "response": last}]


CUT = {"incomplete_details": {"reason": "max_output_tokens"}}
TEXT = response(message(said("It is "), said("sunny.")))
BOTH = response(
    reasoning("Weather ", "is asked."),
    message(said("Let me look.")),
    call('{"city":"Paris"}'),
    call('{"city":"Rome"}', "call_2"),
)
BOTH_EVENTS = [
    event("output_item.added", 0, item=reasoning()),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="Weather "),
    event("reasoning_summary_text.delta", 0, summary_index=1, delta="is asked."),
    *text_events(1, "Let me ", "look.", done=False),
    *call_events(2, call('{"city":"Paris"}'), done=False),
    *call_events(3, call('{"city":"Rome"}', "call_2"), done=False),
]
HOSTED: list[Json] = [
    {
        "type": "web_search_call",
        "id": "ws",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    },
    {"type": "code_interpreter_call", "id": "ci", "code": "1", "status": "completed", "outputs": None},
    {
        "type": "mcp_call",
        "id": "mcp",
        "name": "lookup",
        "arguments": "{}",
        "server_label": "s",
        "output": "x",
    },
    {"type": "tool_search_call", "id": "ts", "call_id": None, "execution": "server", "arguments": {}},
    {"type": "hologram", "arguments": "{}"},
]

CASES = [
    Case(
        "text",
        TEXT,
        stream(*text_events(0, "It is "), *text_events(1, "sunny."), final=TEXT),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "reasoning, text and two calls",
        BOTH,
        stream(*BOTH_EVENTS, final=BOTH),
        text="Let me look.",
        reasoning="Weather is asked.",
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "a final response without its output",
        None,
        stream(*BOTH_EVENTS, final=BOTH, output=[]),
        text="Let me look.",
        reasoning="Weather is asked.",
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "reasoning shown whole",
        response(reasoning("In short.", content=("At ", "length.")), message(said("Hi."))),
        text="Hi.",
        reasoning="At length.",
        finish="stop",
    ),
    Case(
        "reasoning streamed whole",
        None,
        stream(
            event("reasoning_text.delta", 0, content_index=0, delta="At "),
            event("reasoning_text.delta", 0, content_index=0, delta="length."),
            final=response(),
            output=[],
        ),
        reasoning="At length.",
        finish="stop",
    ),
    Case(
        "a refusal",
        response(message({"type": "refusal", "refusal": "I cannot."})),
        stream(*text_events(0, "I ", "cannot.", kind="refusal", done=False), final=response(), output=[]),
        text="I cannot.",
        finish="refusal",
    ),
    Case(
        "no arguments",
        response(call("")),
        stream(*call_events(0, call("")), final=response(call(""))),
        calls=(("call_1", "get_weather", {}),),
        finish="tool_calls",
    ),
    Case(
        "what OpenAI ran itself, and what is no function",
        response(*HOSTED, message(said("Hi."))),
        text="Hi.",
        finish="stop",
    ),
    Case(
        "a custom tool's call",
        response(
            {"type": "custom_tool_call", "id": "ct", "call_id": "call_1", "name": "run", "input": '{"a": 1}'}
        ),
        stream(
            event(
                "output_item.added",
                0,
                item={"type": "custom_tool_call", "call_id": "call_1", "name": "run", "input": ""},
            ),
            event("custom_tool_call_input.delta", 0, delta='{"a": 1}'),
            final=response(),
            output=[],
        ),
        calls=(("call_1", "run", {"input": '{"a": 1}'}),),
        finish="tool_calls",
    ),
    Case(
        "cut off inside a call",
        response(
            call('{"city":"Paris"}'), call('{"city":"Ro', "call_2", "incomplete"), status="incomplete", **CUT
        ),
        stream(
            *call_events(0, call('{"city":"Paris"}')),
            *call_events(1, call('{"city":"Ro', "call_2"), done=False),
            final=response(
                call('{"city":"Paris"}'),
                call('{"city":"Ro', "call_2", "incomplete"),
                status="incomplete",
                **CUT,
            ),
        ),
        calls=(PARIS,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off before the arguments",
        response(call("", status="incomplete"), status="incomplete", **CUT),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off by the filter",
        response(message(said("It")), status="incomplete", incomplete_details={"reason": "content_filter"}),
        text="It",
        finish="content_filter",
    ),
    Case(
        "incomplete, and why is not said",
        response(message(said("It")), status="incomplete"),
        text="It",
        finish="incomplete",
    ),
    Case("still queued", response(status="queued"), finish="queued"),
    Case(
        "a stream that breaks off inside a call",
        None,
        stream(
            *text_events(0, "Let me ", "look.", done=False),
            *call_events(1, call('{"city":"Paris"}')),
            *call_events(2, call('{"city":', "call_2"), done=False),
        ),
        text="Let me look.",
        calls=(PARIS,),
        bad=("truncated",),
    ),
    Case(
        "a stream that breaks off before a call's arguments",
        None,
        stream(*call_events(0, call(""), done=False)),
        bad=("truncated",),
    ),
    Case(
        "deltas without an item",
        None,
        stream(
            event("output_text.delta", 0, content_index=0, delta="Hi."),
            event("function_call_arguments.delta", 1, delta="{}"),
        ),
        text="Hi.",
        bad=("missing_name",),
    ),
    Case(
        "a stream an error breaks into",
        None,
        [
            *stream(*text_events(0, "Let me")),
            {"type": "error", "code": "server_error", "message": "Sorry", "param": None},
        ],
        text="Let me",
        finish="error",
    ),
    Case(
        "a stream that failed",
        None,
        stream(
            *text_events(0, "Let me"),
            final=response(message(said("Let me")), status="failed", error={"code": "x", "message": "Sorry"}),
        ),
        text="Let me",
        finish="error",
    ),
]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: Case) -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    check_case(case)


def test_a_call_without_call_id_gets_one_that_is_not_the_items() -> None:
    """response-choice: A missing id is synthesised"""
    item = {key: value for key, value in call("{}").items() if key != "call_id"}
    choice = choice_from_response(response(item))
    assert choice.tool_calls is not None
    assert choice.tool_calls[0].id == "call_1"


def test_hosted_tools_stay_in_raw() -> None:
    """response-choice: Provider-executed blocks are no calls"""
    choice = choice_from_response(response(*HOSTED))
    assert choice.tool_calls is None
    assert choice.raw["output"] == HOSTED


ODD = [
    Case(
        "content as a text",
        response({**message(), "content": "It is sunny."}),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "content with texts in it",
        response({**message(), "content": ["It is ", said("sunny.")]}),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "text beside the messages",
        response(said("It is "), {"content": "sunny."}),
        text="It is sunny.",
        finish="stop",
    ),
    Case("output as a text", {**response(), "output": "It is sunny."}, text="It is sunny.", finish="stop"),
    Case(
        "output as one item",
        {**response(), "output": call('{"city":"Paris"}')},
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case(
        "a reason without an object",
        response(call('{"ci'), status="incomplete", incomplete_details="max_output_tokens"),
        bad=("truncated",),
        finish="length",
    ),
]


@pytest.mark.parametrize("case", params(ODD))
def test_odd_shape(case: Case) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    check_case(case)


ENDED = {"type": "response.incomplete", "response": response(call('{"ci'), status="incomplete")}
UNENDED = [
    Case(
        "no details",
        response(call('{"city":"Paris"}'), call('{"ci', "call_2"), status="incomplete"),
        [ENDED],
        calls=(PARIS,),
        bad=("truncated",),
        finish="incomplete",
    )._replace(events=None),
    Case("no details, streamed", None, [ENDED], bad=("truncated",), finish="incomplete"),
    Case(
        "no details, no arguments",
        response(call(""), status="incomplete"),
        bad=("truncated",),
        finish="incomplete",
    ),
    Case(
        "an unknown reason",
        response(call('{"ci'), status="incomplete", incomplete_details={"reason": "x"}),
        bad=("truncated",),
        finish="incomplete",
    ),
    Case("cancelled", response(call('{"ci'), status="cancelled"), bad=("truncated",), finish="error"),
    Case(
        "no details, text",
        response(message(said("It is")), status="incomplete"),
        text="It is",
        finish="incomplete",
    ),
]


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


@pytest.mark.parametrize(
    ("name", "field", "whole"),
    [("shell", "commands", ["ls -l", "pwd"]), ("apply_patch", "diff", "*** Be")],
)
def test_events_alone_hold_what_a_client_tool_is_called_with(name: str, field: str, whole: object) -> None:
    """response-choice: A stream cut inside of a client tool's call leaves no good call"""
    end = {"type": "response.completed", "response": {"object": "response", "status": "completed"}}
    calls = choice_from_stream([*BEGUN[name], end]).tool_calls
    assert calls is not None
    assert [(call.name, call.args[field]) for call in calls] == [(name, whole)]


@pytest.mark.parametrize("error", [None, {"type": "http_error", "code": 503, "message": "closed"}])
def test_a_list_of_mcp_tools_that_failed_is_told(error: Json | None) -> None:
    """server-tools: A list of tools that failed is told"""
    listing: Json = {"type": "mcp_list_tools", "id": "l", "server_label": "bank", "tools": [], "error": error}
    choice = choice_from_response(response(listing, message(said("Hi."))))
    assert [(call.status, call.input) for call in choice.server_calls] == (
        [("failed", {"server_label": "bank"})] if error else []
    )


@pytest.mark.parametrize("case", params(UNENDED))
def test_an_answer_that_did_not_end_is_cut_off(case: Case) -> None:
    """response-choice: A status without details cuts the last call off"""
    check_case(case)
