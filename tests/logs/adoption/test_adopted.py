"""A log of any framework becomes a program, rows with gold calls, and a table of failures."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from internals import main
from processes import run_python

from sigadapt import ToolResults
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.logs import Adopted, adopt, load
from sigadapt.metrics import F1
from sigadapt.testing import Answer, LoopbackProvider

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": SCHEMA}}
    for name in ("weather", "clock")
]


def call(name: str, args: Any, call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


def said(*calls: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def asks(name: str, args: Any, call_id: str) -> dict[str, Any]:
    return said(call(name, args, call_id))


DONE: tuple[dict[str, Any], str] = (said(text="."), "")


def pair(messages: list[Any], answer: dict[str, Any], **beside: Any) -> dict[str, Any]:
    request = {"model": "m", "messages": messages, "tools": beside.pop("tools", TOOLS)}
    finish = "tool_calls" if answer.get("tool_calls") else "stop"
    return {
        "request": request,
        "response": {"choices": [{"message": answer, "finish_reason": finish}]},
        **beside,
    }


def talk(question: str, *steps: tuple[dict[str, Any], str], **beside: Any) -> list[dict[str, Any]]:
    """The exchanges of a conversation: each step is what the model said, and the result of its first call."""
    messages: list[Any] = [{"role": "user", "content": question}]
    pairs: list[dict[str, Any]] = []
    for answer, value in steps:
        pairs.append(pair([*messages], answer, **beside))
        results = [
            {"role": "tool", "tool_call_id": each["id"], "content": value}
            for each in answer.get("tool_calls", ())
        ]
        messages += [answer, *results]
    return pairs


def found(pairs: list[dict[str, Any]]) -> Adopted:
    return adopt(map(json.dumps, pairs))


GOOD = talk("Weather in Rome?", (asks("weather", {"city": "Rome"}, "c1"), "18 C"), (said(text="18."), ""))
OSLO = talk("Weather in Oslo?", (asks("weather", {"city": "Oslo"}, "c2"), "5 C"), DONE)


def lite(each: dict[str, Any]) -> dict[str, Any]:
    request = each["request"]
    settings = {"tools": request["tools"]}
    return {
        "model": "m",
        "messages": request["messages"],
        "model_parameters": settings,
        "response": each["response"],
        "status": "success",
    }


def recording(each: dict[str, Any]) -> dict[str, Any]:
    return {
        **each,
        "status": 200,
        "content_type": "application/json",
        "response": json.dumps(each["response"]),
    }


def streamed(each: dict[str, Any]) -> dict[str, Any]:
    (choice,) = each["response"]["choices"]
    calls = [{**one, "index": n} for n, one in enumerate(choice["message"].get("tool_calls", ()))]
    delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}]}
    return {**each, "response": f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"}


def span(each: dict[str, Any], *, as_text: bool) -> dict[str, Any]:
    def parts(message: dict[str, Any]) -> list[Any]:
        if message["role"] == "tool":
            return [
                {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
            ]
        text = [{"type": "text", "content": message["content"]}] if message.get("content") else []
        return text + [
            {
                "type": "tool_call",
                "id": one["id"],
                "name": one["function"]["name"],
                "arguments": json.loads(one["function"]["arguments"]),
            }
            for one in message.get("tool_calls", ())
        ]

    request, answer = each["request"], each["response"]["choices"][0]["message"]
    values: dict[str, Any] = {
        "gen_ai.input.messages": [{"role": m["role"], "parts": parts(m)} for m in request["messages"]],
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": parts(answer), "finish_reason": "tool_call"}
        ],
        "gen_ai.tool.definitions": [{"type": "function", **tool["function"]} for tool in request["tools"]],
    }
    attributes = {key: json.dumps(value) if as_text else value for key, value in values.items()}
    return {"attributes": {**attributes, "gen_ai.request.model": "m"}, "status": {"status_code": "UNSET"}}


def spans(each: dict[str, Any]) -> dict[str, Any]:
    return span(each, as_text=True)


def plain_spans(each: dict[str, Any]) -> dict[str, Any]:
    return span(each, as_text=False)


@pytest.mark.parametrize("form", [lite, recording, streamed, spans, plain_spans])
def test_forms(form: Any) -> None:
    """logs: The same log in each form gives the same rows."""
    first, second = found([*GOOD, *OSLO]), found(list(map(form, [*GOOD, *OSLO])))
    assert list(map(dict, second.rows)) == list(map(dict, first.rows))
    assert second.tools.fingerprint() == first.tools.fingerprint()
    assert len(first.rows) == 2


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        "[]",
        "7",
        "{}",
        '{"request": [], "response": {}}',
        '{"status": 500, "request": {}, "response": ""}',
    ],
)
def test_unread(line: str, tmp_path: Path, capsys: Any) -> None:
    """logs: A line that cannot be read is counted."""
    log, folder = tmp_path / "log.jsonl", tmp_path / "out"
    log.write_text(f"{line}\n", encoding="utf-8")
    assert main(["adopt", str(log), "-o", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "no line holds a request" in told
    assert len(told.strip().splitlines()) == 1
    log.write_text("\n".join([line, *map(json.dumps, GOOD)]), encoding="utf-8")
    assert main(["adopt", str(log), "-o", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["command"], document["read"], document["unread"], document["rows"]) == ("adopt", 2, 1, 1)
    assert main(["adopt", str(log), "-o", str(folder)]) == 0
    assert "2 exchanges read, 1 line not" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {
        *("program.py", "train.jsonl", "heldout.jsonl", "silences.jsonl", "failures.json", "report.html")
    }


def gold(rows: list[Any]) -> list[Any]:
    return [([(each["name"], each["args"]) for each in row["calls"]], row["confirmed"]) for row in rows]


def test_gold() -> None:
    """logs: The gold of a row is the call that was right."""
    wrong, right = call("weather", {"city": "Rom"}, "c1"), call("weather", {"city": "Rome"}, "c2")
    rome = [("weather", {"city": "Rome"})]
    assert gold(found(GOOD).rows) == [(rome, True)]
    assert gold(found(GOOD[:1]).rows) == [(rome, False)]
    corrected = talk("?", (said(wrong), "ERROR: none"), (said(right), "18 C"), (said(text="18."), ""))
    assert gold(found(corrected).rows) == [(rome, True), (rome, True)]
    assert gold(found([corrected[0], corrected[2]]).rows) == [(rome, True)]
    assert found(corrected[:2]).rows[0]["results"] is not None
    failed = talk("?", (said(wrong), "ERROR: none"), (said(text="Sorry."), ""))
    assert (found(failed).rows, len(found(failed).silences)) == ([], 1)
    unfit = talk(
        "?",
        (asks("weather", {"zip": 1}, "c1"), "ERROR: no"),
        (said(right), "18 C"),
        DONE,
    )
    assert gold(found(unfit).rows) == [(rome, True), (rome, True)]
    two = talk(
        "?",
        (said(call("clock", {}, "c0"), wrong), "ERROR: none"),
        (said(right), "18 C"),
        DONE,
    )
    assert gold(found(two).rows)[1] == (rome, True)
    row = found(corrected).rows[1]
    assert next(iter(ToolResults.model_validate(row["results"]))).is_error


def test_failures() -> None:
    """logs: Failures are counted by code, tool and argument."""
    pairs = [
        *talk("a", (asks("wether", {}, "c1"), "")),
        *talk("b", (asks("weather", {"zip": 1}, "c1"), "")),
        *talk("c", (asks("weather", {"city": 1}, "c1"), "")),
        *talk("d", (asks("weather", {"city": 2}, "c1"), "")),
        *talk("e", (asks("clock", {}, "c1"), "ERROR: no"), DONE),
    ]
    table = found(pairs).failures
    assert [(each["code"], each["tool"], each["path"], each["count"]) for each in table] == [
        ("schema_mismatch", "weather", "/city", 2),
        ("schema_mismatch", "weather", "", 1),
        ("tool_failed", "clock", None, 1),
        ("unknown_tool", "wether", None, 1),
    ]


CITIES = [f"City{n}" for n in range(9)]
MANY = [
    each
    for city in CITIES
    for each in talk(
        city,
        (asks("weather", {"city": city}, "c1"), "ok"),
        (asks("clock", {}, "c2"), "ok"),
        DONE,
    )
]


def test_silences() -> None:
    """logs: Turns without a call are rows of their own."""
    bad = talk("?", (asks("nobody", {}, "c1"), ""))
    without = pair([{"role": "user", "content": "Hi."}], said(text="Hello."), tools=[])
    answered = talk("Hi.", (said(text="Hello."), ""))
    assert [row["question"] for row in found([*bad, *answered]).silences] == ["Hi."]
    assert found([without]).silences == []


def test_silences_are_scored(tmp_path: Path) -> None:
    """logs: Turns without a call are scored with the others."""
    adopted = found(talk("Hi.", (said(text="Hello."), "")))
    adopted.save(tmp_path)
    lines = (tmp_path / "silences.jsonl").read_text(encoding="utf-8")
    older = json.loads(lines)
    del older["calls"]
    (tmp_path / "silences.jsonl").write_text(json.dumps(older) + "\n", encoding="utf-8")
    for log in (adopted, load(tmp_path)):
        [silence] = log.silences
        calls = [{"name": "weather", "args": {}}]
        metric = F1(tools=adopted.tools)
        scores = [metric(silence, dspy.Prediction(calls=made)) for made in (None, [], calls)]
        assert scores == [1.0, 1.0, 0.0]


def test_drift() -> None:
    """logs: The newest declaration wins."""
    new = [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "parameters": {
                    "type": "object",
                    "properties": {"place": {"type": "string"}},
                    "required": ["place"],
                },
            },
        }
    ]
    later = pair([{"role": "user", "content": "?"}], asks("weather", {"place": "x"}, "c1"), tools=new)
    later["response"]["created"] = 9
    own = pair([{"role": "user", "content": "!"}], said(text="."), tools=[*new, {"type": "web_search"}])
    for pairs in ([*GOOD, later, own], [later, own, *GOOD]):
        log = found(pairs)
        assert (log.drifted, log.own_tools, len(log.rows)) == (1, 1, 2)
        assert list(log.tools["weather"].parameters["properties"]) == ["place"]


KEYS = (
    "sk-fake-FAKE0FAKE0FAKE0",
    "FAKEtoken0FAKEtoken0",
    "FAKEpassword0",
    "sk-proj-0FAKE0FAKE0FAKE0FAKE0",
    "FAKEsession00",
)


def test_secrets(tmp_path: Path, capsys: Any) -> None:
    """logs: No file holds a secret."""
    question = f"Authorization: Bearer {KEYS[1]} https://u:{KEYS[2]}@x.test/ {KEYS[3]}"
    args = {"city": f"Bearer {KEYS[1]}"}
    pairs = talk(
        question,
        (asks("weather", args, "c1"), json.dumps({"session_token": KEYS[4]})),
        (asks("clock", {}, "c2"), "ok"),
    )
    for each in pairs:
        each["request"] |= {"api_key": KEYS[0], "user": KEYS[0]}
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    assert main(["adopt", str(log), "-o", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 2
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()]
    assert [key for key in KEYS for text in texts if key in text] == []
    assert any("https://u:***@x.test/" in text for text in texts)


def test_the_program(tmp_path: Path, capsys: Any) -> None:
    """logs: The program of a log runs."""
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, MANY)), encoding="utf-8")
    assert main(["adopt", str(log), "-o", str(tmp_path), "--json"]) == 0
    capsys.readouterr()
    code = "import program, dspy; print(isinstance(program.program, dspy.Module), len(program.TOOLS))"
    ran = run_python("-c", code, cwd=tmp_path, check=True)
    assert ran.stdout.split() == ["True", "2"]
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    row = next(row for row in rows if row["results"])
    adopted = adopt(log)
    example = next(row for row in adopted.train if row.results)
    assert dict(example) == row
    with LoopbackProvider([Answer(text="ok")]) as provider:
        lm = dspy.LM(**provider.lm_options("anthropic"))
        with dspy.context(lm=lm):
            adopted.program(**example.inputs())
    sent = provider.received[0].body
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert [tool["name"] for tool in sent["tools"]] == ["weather", "clock"]


def test_python_as_the_shell(tmp_path: Path, capsys: Any) -> None:
    """logs: A log is adopted in Python as in the shell"""
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, [*MANY, "no exchange"])), encoding="utf-8")
    assert main(["adopt", str(log), "-o", str(tmp_path / "shell"), "--json"]) == 0
    capsys.readouterr()
    adopted = adopt([log])
    assert [path.name for path in adopted.save(tmp_path / "python")] == [
        *("program.py", "train.jsonl", "heldout.jsonl", "silences.jsonl", "failures.json", "report.html")
    ]
    for path in (tmp_path / "python").iterdir():
        assert path.read_bytes() == (tmp_path / "shell" / path.name).read_bytes()
    loaded = load(tmp_path / "python")
    for part in ("train", "heldout", "silences"):
        assert list(map(dict, getattr(loaded, part))) == list(map(dict, getattr(adopted, part)))
    assert loaded.tools.fingerprint() == adopted.tools.fingerprint()
    assert loaded.failures == adopted.failures
    [row] = adopted.heldout[:1]
    assert row.calls
    assert "calls" not in row.inputs()
    assert "question" in row.inputs()
    assert [unread.line for unread in adopted.unread] == [f"log.jsonl:{len(MANY) + 1}"]


def test_it_prints_as_tables() -> None:
    """logs: A log is adopted in Python as in the shell"""
    bad = talk("b", (asks("weather", {"zip": 1}, "c1"), ""))
    adopted = adopt([*map(json.dumps, [*MANY, *bad]), "{"])
    for text in (str(adopted), repr(adopted), adopted._repr_html_()):
        assert "schema_mismatch" in text
        assert "1 line not" in text
        assert "object at 0x" not in text


def test_a_folder_of_an_earlier_release(tmp_path: Path) -> None:
    """logs: A folder of an earlier release loads"""
    program = (
        "from sigadapt import ToolDecls\nfrom sigadapt.logs.talk import Talk\n"
        f"TOOLS = ToolDecls({TOOLS!r})\nprogram = Talk(TOOLS)\n"
    )
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    row = {"question": "Weather?", "history": None, "results": None, "system": "Be brief."}
    labels = {"conversation": "c", "calls": [{"name": "clock", "args": {}}], "confirmed": True}
    (tmp_path / "train.jsonl").write_text(json.dumps({**row, **labels}), encoding="utf-8")
    loaded = load(tmp_path)
    with (
        LoopbackProvider([Answer(text="ok")]) as provider,
        dspy.context(lm=dspy.LM(**provider.lm_options("openai"))),
    ):
        loaded.program(**loaded.train[0].inputs())
    assert [message["content"] for message in provider.received[0].body["messages"]] == [
        "Be brief.",
        "Weather?",
    ]
    (tmp_path / "program.py").unlink()
    with pytest.raises(InvalidOption, match=r"program\.py"):
        load(tmp_path)


def test_one_bad_line_costs_itself(tmp_path: Path) -> None:
    """logs: A bad line costs itself, and no earlier file"""
    lines = list(map(json.dumps, MANY))
    half = json.dumps(talk("half \ud800 of it", (asks("weather", {"city": "\ud800"}, "c1"), "ok"))[0])
    poison = [half, '{"request": NaN}', "[" * 5000, '{"request": ' + "9" * 5000, "null", lines[0][:90]]
    adopted = adopt([*lines[:3], *poison[:2], *lines[3:], {"request": 7}])
    assert {row.question for row in adopted.rows} >= {*CITIES}
    assert any("U+FFFD" in change.why for change in adopted.changes)
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\n".join([*map(str.encode, [*lines, *poison]), b'{"request": "\xff"}', b"\x00"]))
    adopt(log).save(tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(InvalidHistory, match="no line holds a request"):
        adopt(["{}", "[]"]).save(tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    sources: list[Any] = [tmp_path / "missing.jsonl", "missing.jsonl"]
    for source in sources:
        with pytest.raises(InvalidOption, match="cannot be read"):
            adopt(source)
    nothing: list[Any] = [5, None]
    for value in nothing:
        with pytest.raises(InvalidOption, match="expected files, lines or rows") as raised:
            adopt(value)
        assert raised.value.fix
        with pytest.raises(InvalidOption, match="expected the path") as raised:
            load(value)
        assert raised.value.fix


def test_what_rows_cannot_say() -> None:
    """logs: A row is its request"""
    pairs = talk("?", (asks("clock", {}, "c1"), "ok"))
    pairs[0]["request"] |= {"thinking": {"type": "enabled"}, "x_trace": "t-17"}
    wheres = [change.where for change in found(pairs).changes]
    assert "/thinking" in wheres
    assert "/x_trace" in wheres
