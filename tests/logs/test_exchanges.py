"""Exchanges in a log: every form of a line, halves that are joined, and lines that hold none."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openinference.instrumentation import Message, Tool, ToolCall, ToolCallFunction, get_llm_attributes
from processes import run_python

from sigadapt.errors import InvalidOption
from sigadapt.logs import adopt
from sigadapt.logs.exchanges import LoggedExchange, UnreadLine, read_log

Json = dict[str, Any]
HERE = Path(__file__).parent

TOOL: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def pairs_of(city: str, call_id: str) -> list[Json]:
    """The two exchanges of a conversation with a call."""
    call = {"name": "get_weather", "arguments": json.dumps({"city": city}, separators=(",", ":"))}
    asked: list[Json] = [
        {"role": "system", "content": "Help."},
        {"role": "user", "content": f"Weather in {city}?"},
    ]
    answer: Json = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": call}],
    }
    result: Json = {"role": "tool", "tool_call_id": call_id, "content": "18 C"}
    end: Json = {"role": "assistant", "content": f"18 C in {city}."}
    return [pair(asked, answer, "tool_calls"), pair([*asked, answer, result], end, "stop")]


def pair(messages: list[Json], answer: Json, finish: str) -> Json:
    request = {"model": "m", "messages": messages, "tools": [TOOL]}
    return {"request": request, "response": {"choices": [{"message": answer, "finish_reason": finish}]}}


PAIRS = [*pairs_of("Lima", "c1"), *pairs_of("Oslo", "c2")]


def answer_in(row: Json) -> Json:
    return row["response"]["choices"][0]["message"]


def facts(exchange: LoggedExchange | UnreadLine) -> Any:
    """What an exchange says, without what differs from form to form."""
    assert isinstance(exchange, LoggedExchange), exchange
    talk, choice = exchange.conversation, exchange.choice
    calls = [(call.id, call.name, call.args) for call in choice.tool_calls or ()]
    saved = [each.model_dump_json() if each is not None else None for each in (talk.history, talk.results)]
    return talk.system, talk.question, saved, talk.tools.to_openai(), choice.text, calls


def chat(message: Json) -> Message:
    """A message in the words of OpenInference's own package."""
    made = Message(role=message["role"])
    if message.get("content"):
        made["content"] = message["content"]
    if "tool_call_id" in message:
        made["tool_call_id"] = message["tool_call_id"]
    if "tool_calls" in message:
        made["tool_calls"] = [
            ToolCall(id=call["id"], function=ToolCallFunction(**call["function"]))
            for call in message["tool_calls"]
        ]
    return made


def inference(row: Json) -> Json:
    request = row["request"]
    attributes: Json = dict(
        get_llm_attributes(
            model_name="m",
            invocation_parameters={"temperature": 0},
            input_messages=[*map(chat, request["messages"])],
            output_messages=[chat(answer_in(row))],
            tools=[Tool(json_schema=json.dumps(tool)) for tool in request["tools"]],
        )
    )
    return {
        "start_time": "2026-11-01T10:00:00.000000Z",
        "attributes": {"openinference.span.kind": "LLM", **attributes},
    }


def exported(row: Json) -> Json:
    """The same span as a line of OTLP's file exporter, among others."""
    attributes = [
        {"key": key, "value": {"stringValue": value}} for key, value in inference(row)["attributes"].items()
    ]
    tool = {
        "name": "tool",
        "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": "TOOL"}}],
    }
    spans = [tool, {"startTimeUnixNano": "1793527200000000000", "attributes": attributes}]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def phoenix(row: Json) -> Json:
    """The same span as a row of Phoenix, whose attributes are half nested."""
    flat = inference(row)["attributes"]
    messages = [
        {"message": {"role": "system", "content": "Help."}},
        *(
            {
                key.split(".", 3)[3]: value
                for key, value in flat.items()
                if key.startswith(f"llm.input_messages.{n}.")
            }
            for n in range(1, len(row["request"]["messages"]))
        ),
    ]
    rest = {f"attributes.{key}": value for key, value in flat.items() if "input_messages" not in key}
    return {"name": "ChatCompletion", "attributes.llm.input_messages": messages, **rest}


def as_sent(row: Json) -> Json:
    """A span whose instrumentation keeps the bodies."""
    values = {
        f"{side}.value": json.dumps(row[name])
        for side, name in (("input", "request"), ("output", "response"))
    }
    return {"attributes": {"openinference.span.kind": "LLM", **values}}


def langfuse(row: Json) -> Json:
    """An observation as Langfuse's API returns it."""
    request = row["request"]
    return {
        "id": "o", "traceId": "t", "type": "GENERATION", "name": "OpenAI-generation", "model": "m",
        "startTime": "2026-11-01T10:00:00.000Z", "sessionId": None, "level": "DEFAULT",
        "modelParameters": {"temperature": 1, "max_tokens": "Infinity"},
        "input": {"tools": request["tools"], "messages": request["messages"]}, "output": answer_in(row),
    }  # fmt: skip


def stored(row: Json) -> Json:
    """The same observation in an export to a blob storage."""
    one = langfuse(row)
    values = {name: json.dumps(one[name]) for name in ("input", "output")}
    parameters = json.dumps({"temperature": "0.5", "max_tokens": "Infinity"})
    return {
        "id": "o", "trace_id": "t", "type": "GENERATION", "start_time": "2026-11-01 10:00:00.000000",
        "provided_model_name": "m", "model_parameters": parameters, **values,
    }  # fmt: skip


def langchain(row: Json) -> Json:
    """An observation of LangChain's integration: its calls, and tools behind the messages."""

    def message(each: Json) -> Json:
        calls = [
            {
                "name": call["function"]["name"],
                "args": json.loads(call["function"]["arguments"]),
                "id": call["id"],
                "type": "tool_call",
            }
            for call in each.get("tool_calls", ())
        ]
        return {
            **each,
            "content": each["content"] or "",
            **({"tool_calls": calls} if calls else {}),
            "additional_kwargs": {},
        }

    tools = [{"role": "tool", "content": tool} for tool in row["request"]["tools"]]
    given = [*map(message, row["request"]["messages"]), *tools]
    return {**langfuse(row), "input": given, "output": message(answer_in(row))}


def langfuse_trace(row: Json) -> Json:
    observations: list[Json] = [{"type": "SPAN", "input": {}, "output": {}}, langfuse(row)]
    return {"id": "t", "sessionId": "s1", "observations": observations}


def mlflow_trace(row: Json) -> Json:
    """A trace as `Trace.to_json` of MLflow writes it, with the span of an agent around that of the model."""

    def span(name: str, parent: str | None, kind: str, inputs: Any, outputs: Any) -> Json:
        values = {"spanType": kind, "spanInputs": inputs, "spanOutputs": outputs}
        attributes = {f"mlflow.{key}": json.dumps(value) for key, value in values.items()}
        start = 1_793_527_200 * 10**9
        return {
            "span_id": name,
            "parent_span_id": parent,
            "name": name,
            "start_time_unix_nano": start,
            "attributes": attributes,
        }

    spans = [
        span("agent", None, "AGENT", {"x": 1}, "y"),
        span("chat", "agent", "CHAT_MODEL", row["request"], row["response"]),
    ]
    info = {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "s1"}}
    return {"info": info, "data": {"spans": spans}}


def batch(number: int, row: Json) -> Json:
    return {
        "custom_id": f"r{number}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": row["request"],
    }


def batch_answer(number: int, row: Json) -> Json:
    response = {"status_code": 200, "request_id": "x", "body": row["response"]}
    return {"id": f"b{number}", "custom_id": f"r{number}", "response": response, "error": None}


BATCH = [batch(n, row) for n, row in enumerate(PAIRS)]
BATCH_ANSWERS = [batch_answer(n, row) for n, row in enumerate(PAIRS)]
TUNING: list[Json] = [
    {"messages": [*row["request"]["messages"], answer_in(row)], "tools": [TOOL], "parallel_tool_calls": False}
    for row in PAIRS
]
FORMS: dict[str, list[Any]] = {
    "lines": [*map(json.dumps, PAIRS)],
    "an array": [json.dumps(PAIRS)],
    "an array over many lines": [json.dumps(PAIRS, indent=2)],
    "rows of their own": [{name: row[name]} for row in PAIRS for name in ("request", "response")],
    "bodies": [json.dumps(row[name]) for row in PAIRS for name in ("request", "response")],
    "fine-tuning": TUNING,
    "fine-tuning, whole conversations": TUNING[1::2],
    "a batch": [*BATCH, *BATCH_ANSWERS],
    "a batch, its output first": [*BATCH_ANSWERS[::-1], *BATCH],
    "Anthropic's batch": [
        *({"custom_id": f"r{n}", "params": row["request"]} for n, row in enumerate(PAIRS)),
        *(
            {"custom_id": f"r{n}", "result": {"type": "succeeded", "message": row["response"]}}
            for n, row in enumerate(PAIRS)
        ),
    ],
    "Gemini's batch": [
        {"key": f"r{n}", name: row[name]} for name in ("request", "response") for n, row in enumerate(PAIRS)
    ],
    "Bedrock's batch": [
        {"recordId": "1", "modelInput": row["request"], "modelOutput": row["response"]} for row in PAIRS
    ],
    "OpenInference": [*map(inference, PAIRS)],
    "OTLP": [*map(exported, PAIRS)],
    "Phoenix": [*map(phoenix, PAIRS)],
    "OpenInference, bodies": [*map(as_sent, PAIRS)],
    "Langfuse": [*map(langfuse, PAIRS)],
    "Langfuse, an export": [*map(stored, PAIRS)],
    "Langfuse, LangChain": [*map(langchain, PAIRS)],
    "Langfuse, traces": [*map(langfuse_trace, PAIRS)],
    "MLflow": [*map(mlflow_trace, PAIRS)],
    "MLflow, pretty": [json.dumps(mlflow_trace(row), indent=1) for row in PAIRS],
    "mixed": [PAIRS[0], inference(PAIRS[1]), json.dumps([langfuse(PAIRS[2])]), mlflow_trace(PAIRS[3])],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same_exchanges(form: str, tmp_path: Path) -> None:
    """logs: The same exchanges are read from each form"""
    want = sorted(map(str, map(facts, read_log(PAIRS))))
    assert sorted(map(str, map(facts, read_log(FORMS[form])))) == want
    if form == "MLflow, pretty":  # several values over many lines, which only a file of its own can hold
        return
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in FORMS[form]))
    assert sorted(map(str, map(facts, read_log([path])))) == want


def test_names_and_times() -> None:
    rows = [
        langfuse_trace(PAIRS[0]),
        mlflow_trace(PAIRS[0]),
        exported(PAIRS[0]),
        inference(PAIRS[0]),
        langfuse(PAIRS[0]),
    ]
    exchanges = [each for each in read_log(rows) if isinstance(each, LoggedExchange)]
    assert [each.name for each in exchanges] == ["s1", "s1", None, None, None]
    assert [each.time for each in exchanges] == [1_793_527_200.0] * 5
    settings = [each.conversation.settings for each in exchanges]
    assert settings[0] == {"model": "m", "temperature": 1}
    assert settings[3] == {"model": "m", "temperature": 0}
    (kept,) = read_log([stored(PAIRS[0])])
    assert isinstance(kept, LoggedExchange)
    assert kept.conversation.settings == {"model": "m", "temperature": 0.5}


def test_traces_of_mlflows_autologs() -> None:
    """logs: Traces that MLflow's autologs wrote are read"""
    done = run_python(HERE / "mlflow_traces.py", check=True)
    lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
    exchanges = [*read_log(lines)]
    for exchange in exchanges:
        _, question, _, tools, _, calls = facts(exchange)
        assert "Weather in Lima?" in question
        assert [tool["function"]["name"] for tool in tools] == ["get_weather"]
        assert [(name, args) for _, name, args in calls] == [("get_weather", {"city": "Lima"})]
    wires = [each.conversation.wire for each in exchanges if isinstance(each, LoggedExchange)]
    assert wires == ["openai-chat", "openai-responses", "anthropic", "gemini", "openai-chat"]
    assert [facts(each)[0] for each in exchanges[1:4]] == ["Help.", None, "Help."]


def reasons(*rows: Any) -> list[str]:
    return [read.reason for read in read_log(rows) if isinstance(read, UnreadLine)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (BATCH[0], ("batch's input", "response", "'r0'")),
        (BATCH_ANSWERS[0], ("batch's output", "request", "'r0'")),
        (
            {**BATCH_ANSWERS[0], "response": None, "error": {"code": "batch_expired"}},
            ("output", "batch_expired"),
        ),
        (
            {"custom_id": "r", "result": {"type": "errored", "error": {"type": "x"}}},
            ("batch's output", '"x"'),
        ),
        (
            {"messages": [{"role": "user", "content": "Hi."}], "tools": []},
            ("fine-tuning", "assistant", "missing"),
        ),
        (
            {"attributes": {"openinference.span.kind": "LLM", "llm.model_name": "m"}},
            ("OpenInference", "messages"),
        ),
        ({"attributes": {"openinference.span.kind": "TOOL"}}, ("OpenInference", "TOOL")),
        ({"attributes": {"http.method": "GET"}}, ("span", "messages")),
        ({"resourceSpans": []}, ("spans", "messages")),
        ({"type": "GENERATION", "input": "Hi.", "output": "Ho."}, ("Langfuse", "input", "messages")),
        ({**langfuse(PAIRS[0]), "output": None, "statusMessage": "late"}, ("Langfuse", "output", "late")),
        ({**langfuse(PAIRS[0]), "type": "SPAN"}, ("Langfuse", "SPAN")),
        ({"info": {}, "data": {"spans": []}}, ("MLflow", "messages")),
        ({"request": PAIRS[0]["request"]}, ("request", "response is missing")),
        ({"response": PAIRS[0]["response"]}, ("response", "request")),
        (PAIRS[0]["request"], ("request", "response is missing")),
        ({"prompt": "Hi.", "completion": "Ho."}, ("'prompt'", "request", "missing")),
        ({"request": 7, "response": {}}, ("request", "object")),
        ({}, ("no members",)),
    ],
)
def test_a_reason_names_the_form_and_what_is_missing(row: Json, words: tuple[str, ...]) -> None:
    """logs: The reason of an unread line names what it looks like and what is missing"""
    (reason,) = reasons(row)
    assert [word for word in words if word not in reason] == []


def test_a_request_that_failed_in_a_batch() -> None:
    """logs: A request and its answer on lines of their own are joined"""
    late = {**BATCH_ANSWERS[2], "response": {"status_code": 400, "body": {"error": {"message": "bad"}}}}
    reads = [*read_log([*BATCH, *BATCH_ANSWERS[:2], late, BATCH_ANSWERS[3]])]
    assert len([read for read in reads if isinstance(read, LoggedExchange)]) == 3
    assert all("bad" in read.reason for read in reads if isinstance(read, UnreadLine))
    # A request that was sent again, and answered twice.
    assert len([*read_log([BATCH[0], BATCH[0], late, BATCH_ANSWERS[0]])]) == 2


def test_two_requests_of_one_id_are_not_joined() -> None:
    """logs: Two different requests with one id are not joined"""
    other = {**BATCH[1], "custom_id": "r0"}
    reads = [*read_log([BATCH[0], other, BATCH_ANSWERS[0]])]
    assert all(isinstance(read, UnreadLine) and "2 different requests" in read.reason for read in reads)
    assert len(reads) == 3


def test_halves_of_two_files_are_not_joined(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text(json.dumps({"request": PAIRS[0]["request"]}))
    two.write_text(json.dumps({"response": PAIRS[0]["response"]}))
    first, second = read_log([one, two])
    assert isinstance(first, UnreadLine)
    assert isinstance(second, UnreadLine)
    assert (first.line, second.line) == ("one.jsonl:1", "two.jsonl:1")


def test_examples_of_fine_tuning() -> None:
    weighted = {
        **TUNING[1],
        "messages": [
            {**m, **({"weight": 0} if m["role"] == "assistant" else {})} for m in TUNING[1]["messages"]
        ],
    }
    weighted["messages"][-1]["weight"] = 1
    (only,) = read_log([weighted])
    assert isinstance(only, LoggedExchange)
    assert (only.choice.text, only.conversation.changes) == ("18 C in Lima.", ())
    gemini = {
        "systemInstruction": {"parts": [{"text": "Help."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Lima"}}}]},
        ],
    }
    (example,) = read_log([gemini])
    assert isinstance(example, LoggedExchange)
    assert [call.args for call in example.choice.tool_calls or ()] == [{"city": "Lima"}]


POISON = [
    "nothing",
    '{"request": {"temperature": NaN}}',
    '{"request": {"model": "m", "seed": ' + "9" * 5_000 + "}}",
    '{"request": ' + "[" * 5_000 + "]" * 5_000 + "}",
    json.dumps(PAIRS[0])[:200],
    '{"request": {"messages": [7, null]}, "response": {"choices": [null]}}',
    "null",
    "[]",
    '"x"',
    "17",
]


@pytest.mark.parametrize("line", POISON)
def test_a_bad_line_costs_itself(line: str, tmp_path: Path) -> None:
    """logs: A line that cannot be read costs that line alone"""
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([*map(json.dumps, PAIRS[:2]), line, *map(json.dumps, PAIRS[2:])]))
    reads = [*read_log([path])]
    assert [*map(facts, reads[:2]), *map(facts, reads[3:])] == [*map(facts, read_log(PAIRS))]
    assert isinstance(reads[2], UnreadLine)
    assert reads[2].line == "log.jsonl:3"


@pytest.mark.parametrize("where", ["question", "instructions", "name", "arguments"])
def test_half_of_a_surrogate_pair(where: str) -> None:
    """logs: Half of a surrogate pair in a line is replaced on record"""
    row = json.loads(json.dumps(PAIRS[0]))
    if where == "question":
        row["request"]["messages"][1]["content"] = "half \ud800 of it"
    elif where == "instructions":
        row["request"]["messages"][0]["content"] = "\udfff"
    elif where == "name":
        row["conversation"] = "\ud83d"
    else:
        answer_in(row)["tool_calls"][0]["function"]["arguments"] = '{"city": "\ud800"}'
    for line in (json.dumps(row), json.dumps(row, ensure_ascii=False), row):
        (read,) = read_log([line])
        assert isinstance(read, LoggedExchange)
        str(facts(read)).encode()
        str(read.name).encode()
        if where != "arguments":
            assert [change.what for change in read.conversation.changes] == ["lowered"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [
        json.dumps(PAIRS[0]).encode(),
        b'{"request": "\xff\xfe"}',
        b"\x00\x01",
        json.dumps(PAIRS[1]).encode(),
    ]
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    reads = [*read_log([path])]
    assert [isinstance(read, UnreadLine) for read in reads] == [False, True, True, False]


def test_a_reason_holds_no_secret() -> None:
    (reason,) = reasons('{"custom_id": "Bearer sk-abcdefghijklmnopqrstuvwxyz0123456789", "error": "x"}')
    assert "sk-abc" not in reason


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="cannot be read"):
        list(read_log([tmp_path / "nothing.jsonl"]))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([row for rows in FORMS.values() for row in rows if isinstance(row, dict)]), st.data())
def test_any_row_is_read_or_has_a_reason(row: Json, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(row)))
    changed = {**row, name: data.draw(VALUES)}
    assert all(isinstance(read, (LoggedExchange, UnreadLine)) for read in read_log([changed, PAIRS[0]]))


def test_answers_to_requests_that_were_sent_at_once_are_not_guessed() -> None:
    """logs: A request and its answer on lines of their own are joined"""
    halves = [half for row in PAIRS[:3] for half in (row["request"], row["response"])]
    requests = halves[::2]
    answers = halves[1::2]
    at_once = [*requests[:2], *answers[:2]]
    for rows, unread_count in (([*requests, *answers], 6), ([*at_once, requests[2], answers[2]], 4)):
        items = [*read_log(rows)]
        reasons = [each.reason for each in items if isinstance(each, UnreadLine)]
        assert len(reasons) == unread_count
        assert all("nothing says whose each is" in reason for reason in reasons)
        assert len(items) - unread_count == (len(rows) - unread_count) // 2
    # A request whose answer was lost is one half; the next one has its own.
    lost, exchange = sorted(read_log([requests[0], requests[1], answers[1]]), key=len)
    assert isinstance(lost, UnreadLine)
    assert isinstance(exchange, LoggedExchange)


def server_turns(count: int) -> list[Json]:
    """A conversation of the Responses API whose turns the server keeps: each request has what is new."""
    function = {"type": "function", **TOOL["function"]}
    lines: list[Json] = []
    for number in range(count):
        given: Any = "Weather?"
        if number:
            given = [{"type": "function_call_output", "call_id": f"call_{number - 1}", "output": "18 C"}]
        request = {"model": "m", "instructions": "Help.", "input": given, "tools": [function]}
        if number:
            request["previous_response_id"] = f"resp_{number - 1}"
        call = {"type": "function_call", "call_id": f"call_{number}", "name": "get_weather"}
        output = [{**call, "arguments": json.dumps({"city": f"C{number}"})}]
        response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": output}
        lines.append({"request": request, "response": response})
    return lines


def calls_before(exchange: Any) -> list[Any]:
    results = exchange.conversation.results
    rounds = () if results is None else results.rounds
    return [call.args["city"] for each in rounds for call in each.calls]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_turns_that_the_server_keeps_come_from_the_log(is_streamed: bool) -> None:
    """logs: A conversation that a server keeps is whole where the log holds it"""
    lines = server_turns(4)
    for line in lines if is_streamed else ():
        event = {"type": "response.completed", "response": line["response"]}
        line["response"] = f"event: response.completed\ndata: {json.dumps(event)}\n\n"
    for order in ([0, 1, 2, 3], [3, 1, 2, 0]):
        exchanges = [*read_log([lines[number] for number in order])]
        found = sorted(map(calls_before, exchanges), key=len)
        assert found == [[], ["C0"], ["C0", "C1"], ["C0", "C1", "C2"]]
        for each in exchanges:
            assert isinstance(each, LoggedExchange)
            assert each.conversation.changes == ()


def test_turns_that_the_log_lacks_are_on_record() -> None:
    """logs: A conversation that a server keeps is whole where the log holds it"""
    lines = server_turns(3)
    [exchange] = read_log(lines[2:])
    assert isinstance(exchange, LoggedExchange)
    assert "/previous_response_id" in [change.where for change in exchange.conversation.changes]
    circle = [{**line, "request": {**line["request"], "previous_response_id": "resp_1"}} for line in lines]
    assert len([*read_log(circle)]) == 3


def test_of_a_very_long_conversation_of_a_server_the_end_is_read() -> None:
    """logs: A conversation that a server keeps is whole where the log holds it"""
    exchanges = [*read_log(server_turns(120))]
    for number, exchange in enumerate(exchanges):
        assert isinstance(exchange, LoggedExchange)
        assert calls_before(exchange) == [f"C{n}" for n in range(max(0, number - 100), number)]
        assert bool(exchange.conversation.changes) == (number > 100)
    adopted = adopt(server_turns(120)[::-1])
    assert (adopted.conversations, len(adopted.rows)) == (1, 120)
    assert adopt(server_turns(8)[4:]).conversations == 1  # whose beginning the log lacks


def test_what_langfuse_itself_returns_is_read() -> None:
    """logs: The same exchanges are read from each form"""
    api: Any = pytest.importorskip("langfuse.api")
    observations: list[Any] = []
    for row in PAIRS:
        observation = api.ObservationV2(
            id="o",
            trace_id="t",
            project_id="p",
            type="GENERATION",
            start_time="2026-11-01T10:00:00.000Z",
            input=json.dumps(langfuse(row)["input"]),
            output=json.dumps(answer_in(row)),
            model_parameters={"max_tokens": "Infinity"},
        )
        observations.append(observation)
    page = api.ObservationsV2Response(data=observations, meta=api.ObservationsV2Meta())
    want = sorted(map(str, map(facts, read_log(PAIRS))))
    for rows in ([page.json()], [each.json() for each in observations]):
        assert sorted(map(str, map(facts, read_log(rows)))) == want


@pytest.mark.parametrize("source", [None, 5, b"{}", [{}]])
def test_what_is_no_source_is_refused(source: Any) -> None:
    """logs: A line that cannot be read costs that line alone"""
    with pytest.raises(InvalidOption, match="expected files, lines or rows"):
        list(read_log([source]))
