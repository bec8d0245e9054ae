"""Server-sent events of a run; with `SIGADAPT_NPM`, as the clients of the AI SDK and AG-UI read them."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import HANGS
from tables import table

import sigadapt
from sigadapt import InvalidToolCall, ToolCall, ToolResult, ui
from sigadapt.events import (
    CallDelta,
    CallReady,
    Confirm,
    Ended,
    Failed,
    FileReady,
    ReasoningDelta,
    ResultReady,
    ServerCall,
    SourceReady,
    TextDelta,
    Used,
)
from sigadapt.server_tools import File, ServerToolCall, Source

NPM = os.environ.get("SIGADAPT_NPM")
"""A folder with the npm packages `ai` and `@ag-ui/core`; `python3 tasks.py ui` makes one."""

CALL = ToolCall(id="c1", name="find", args={"city": "Rome"})
BAD = InvalidToolCall(id="c2", name="find", arguments="{", index=1, code="invalid_json", message="It ends.")
ASKED = SimpleNamespace(id="confirm_1", call=CALL, hint="Run find?")
WAITS = sigadapt.InputNeeded(
    sigadapt.ToolCalls([CALL]),
    sigadapt.ToolCalls([CALL]).awaiting_confirmation([{"name": "find", "requires_confirmation": True}]),
    dspy.History(messages=[{"question": "a secret"}]),
    {},
    "calls",
    None,
)


def deltas(*pieces: str) -> list[Any]:
    return [CallDelta(0, "c1", "find", piece, step=1) for piece in pieces]


def ended(**outputs: Any) -> Any:
    return Ended(dspy.Prediction(**outputs), step=2)


READY = CallReady(CALL, step=1)
RUNS: dict[str, list[Any]] = {
    "an answer": [
        ReasoningDelta("Hm.", step=1),
        TextDelta("It is ", "answer", step=1),
        TextDelta("sunny.", "answer", step=1),
        Used({"total_tokens": 3}, step=1),
        ended(answer="It is sunny."),
    ],
    "an agent": [
        *deltas("", '{"city":', '"Rome"}'),
        READY,
        TextDelta("inside", "answer", step=2, within="c1"),
        ResultReady("c1", ToolResult(call_id="c1", name="find", value={"x": None}), step=2),
        ended(answer="Europe.", history=dspy.History(messages=[]), termination_reason="submit"),
    ],
    "a failure": [
        READY,
        ResultReady("c1", ToolResult(call_id="c1", name="find", value="No.", is_error=True), step=1),
        ended(answer=None),
    ],
    "a bad call": [CallReady(BAD, step=1), ended(answer="Sorry.")],
    "a wait": [READY, Confirm([ASKED], step=1), Failed(WAITS, step=1)],
    "an error": [TextDelta("It", "answer", step=1), *deltas('{"ci'), Failed(ValueError("a secret"), step=1)],
    "what a provider ran": [
        ServerCall(ServerToolCall(kind="web_search", name="s", id="s1", input={"q": "x"}), step=1),
        ServerCall(ServerToolCall(kind="web_fetch", name="f", status="failed"), step=1),
        ServerCall(ServerToolCall(kind="code_execution", name="c", status="pending"), step=1),
        SourceReady(Source(url="https://example.com"), step=1),
        SourceReady(Source(id="file_1", title="ai.pdf"), step=1),
        FileReady(File(media_type="image/png", data="aGk="), step=1),
        FileReady(File(id="file_2", name="a.csv"), step=1),
        ended(answer="So."),
    ],
}


def rows(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def read(form: str, text: str, folder: Path) -> dict[str, Any]:
    """What the official client makes of a text."""
    node = shutil.which("node")
    if NPM is None or node is None:
        pytest.skip("`python3 tasks.py ui` runs this")
    file = folder / "events.txt"
    file.write_text(text, encoding="utf-8")
    script = Path(__file__).with_name("read_ui.mjs")
    done = subprocess.run(  # noqa: S603
        [node, str(script), NPM, form, str(file)], capture_output=True, text=True, check=True, timeout=HANGS
    )
    return json.loads(done.stdout)


def test_an_answer_for_the_ai_sdk() -> None:
    """watching-runs: The official clients read every run."""
    text = "".join(ui.ai_sdk(RUNS["an answer"], message_id="m"))
    assert rows(text) == table(__file__, "ANSWER")
    assert text.endswith("data: [DONE]\n\n")


def test_every_part_of_a_call_names_its_tool_for_the_ai_sdk() -> None:
    """watching-runs: The official clients read every run."""
    nameless = InvalidToolCall(
        id="c3", name=None, arguments="{", index=2, code="missing_name", message="It has none."
    )
    bad = [CallReady(call, step=1) for call in (BAD, nameless)]
    written = rows("".join(ui.ai_sdk([*deltas("{"), READY, *bad, *RUNS["what a provider ran"]])))
    named = [(row["type"], row["toolCallId"], row["toolName"]) for row in written if "toolName" in row]
    assert named == [
        ("tool-input-start", "c1", "find"),
        ("tool-input-available", "c1", "find"),
        ("tool-input-start", "c2", "find"),
        ("tool-input-error", "c2", "find"),
        ("tool-input-start", "c3", "unnamed"),
        ("tool-input-error", "c3", "unnamed"),
        ("tool-input-available", "s1", "s"),
        ("tool-input-available", "server-2", "f"),
        ("tool-input-available", "server-3", "c"),
    ]


@pytest.mark.parametrize(("writer", "count"), [(ui.ai_sdk, 1), (ui.ag_ui, 1)])
def test_what_is_submitted(writer: Any, count: int) -> None:
    """watching-runs: What an agent submits is a text."""
    text = "".join(writer(RUNS["an agent"]))
    assert text.count("Europe.") == count
    assert "inside" not in text
    assert '"submit"' not in text


@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
def test_errors(writer: Any) -> None:
    """watching-runs: An error tells a page its type alone."""
    for name in ("an error", "a wait"):
        text = "".join(writer(RUNS[name]))
        assert ("ValueError" in text) == (name == "an error")
        assert "secret" not in text
    assert "a secret" in "".join(writer(RUNS["an error"], error_text=str))

    def breaks() -> Iterator[Any]:
        yield RUNS["an answer"][1]
        raise OSError("a secret")

    async def breaks_later() -> AsyncIterator[Any]:
        for event in breaks():
            yield event

    async def written() -> str:
        return "".join([piece async for piece in writer(breaks_later())])

    for text in ("".join(writer(breaks())), asyncio.run(written())):
        assert "OSError" in text
        assert "secret" not in text


def test_a_page_that_leaves_ends_the_run() -> None:
    """watching-runs: Leaving early ends the program."""
    closed: list[bool] = []

    async def events() -> AsyncIterator[Any]:
        try:
            while True:
                yield RUNS["an answer"][1]
        finally:
            closed.append(True)

    async def leave() -> None:
        written: Any = ui.ai_sdk(events())
        for _ in range(5):
            await anext(written)
        await written.aclose()
        assert closed == [True]

    asyncio.run(leave())


@pytest.mark.parametrize("name", RUNS)
def test_the_ai_sdk_reads(name: str, tmp_path: Path) -> None:
    """watching-runs: The official clients read every run."""
    client = read("ai_sdk", "".join(ui.ai_sdk(RUNS[name])), tmp_path)
    states = {part.get("toolCallId"): part["state"] for part in client["parts"] if "toolCallId" in part}
    wanted = table(__file__, "WANTED")
    assert client["bad"] == []
    assert states == wanted.get(name, {})
    texts = {"an answer": "It is sunny.", "an agent": "Europe.", "a bad call": "Sorry."}
    if name in texts:
        assert (
            "".join(part.get("text", "") for part in client["parts"] if part["type"] == "text") == texts[name]
        )


@pytest.mark.parametrize("name", RUNS)
def test_ag_ui_reads(name: str, tmp_path: Path) -> None:
    """watching-runs: The official clients read every run."""
    written = rows("".join(ui.ag_ui(RUNS[name], thread_id="t", run_id="r")))
    kinds = [row["type"] for row in written]
    assert kinds[0] == "RUN_STARTED"
    assert kinds[-1] == ("RUN_ERROR" if name == "an error" else "RUN_FINISHED")
    assert kinds.count("TOOL_CALL_START") == kinds.count("TOOL_CALL_END")
    assert kinds.count("TEXT_MESSAGE_START") == kinds.count("TEXT_MESSAGE_END")
    if name == "a wait":
        [interrupt] = written[-1]["outcome"]["interrupts"]
        assert (interrupt["id"], interrupt["toolCallId"]) == ("confirm_1", "c1")
    client = read("ag_ui", "".join(ui.ag_ui(RUNS[name])), tmp_path)
    assert client == {"bad": [], "types": kinds}


@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
@pytest.mark.parametrize(
    "value", [float("nan"), "half \ud83d", {1: object()}, b"\xff", [dspy.Prediction(a=1)]]
)
def test_any_result_is_written(writer: Any, value: Any) -> None:
    """watching-runs: The official clients read every run."""
    result = ToolResult.model_construct(call_id="c1", name="find", value=value, is_error=False)
    written = rows("".join(writer([READY, ResultReady("c1", result, step=1), ended(answer="")])))
    assert any(row["type"] in {"tool-output-available", "TOOL_CALL_RESULT"} for row in written)


LINKS: dict[str | None, bool] = {
    **dict.fromkeys(("javascript:alert(1)", "java\nscript:x", "//evil.example", "https://", None), False),
    **dict.fromkeys(("data:text/html,x", "ftp://a.example"), False),
    "HTTPS://a.example/x?q=javascript:1": True,
}


@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
@pytest.mark.parametrize("url", LINKS)
def test_what_a_browser_could_run_is_no_link(url: str | None, writer: Any) -> None:
    """watching-runs: A page links to web pages alone"""
    shown = (Source(url=url, title="t"), File(url=url, name="f", media_type="image/png"))
    for event in (SourceReady(shown[0], step=1), FileReady(shown[1], step=1)):
        written = str(rows("".join(writer([event]))))
        assert (url is not None and repr(url) in written) == LINKS[url]


FILES = {
    ("QQ==", "image/png"): ("image/png", True),
    ("QQ==", "image/svg+xml"): ("application/octet-stream", True),
    ("QQ==", "text/html"): ("application/octet-stream", True),
    ("<b>", "image/png"): ("image/png", False),
}


@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
@pytest.mark.parametrize(("data", "kind"), FILES)
def test_a_file_has_a_type_that_no_browser_runs(data: str, kind: str, writer: Any) -> None:
    """watching-runs: A page links to web pages alone"""
    file = File(data=data, name="f", media_type=kind)
    written = str(rows("".join(writer([FileReady(file, step=1)]))))
    shown, is_shown = FILES[data, kind]
    assert (data in written, shown in written) == (is_shown, True)
    assert shown == kind or kind not in written


def fails(error: BaseException) -> str:
    raise ZeroDivisionError


def is_silent(error: BaseException) -> str:
    return ""


@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
@pytest.mark.parametrize("error_text", [fails, is_silent])
def test_a_text_of_an_error_that_fails_costs_nothing(error_text: Any, writer: Any) -> None:
    """watching-runs: An error is written by its type"""
    written = "".join(writer(RUNS["an error"], error_text=error_text))
    assert ("ValueError" in written, "secret" in written) == (True, False)


@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        ("ConnectionError: postgres://me:secret@db", "ConnectionError", "ConnectionError"),
        ("ConnectionError: postgres://me:secret@db", None, "ToolError"),
        ("secret", None, "ToolError"),
        ({"error": "secret"}, None, "ToolError"),
    ],
)
def test_a_failed_tool_is_written_by_its_type(
    value: object, kind: str | None, words: str, writer: Any
) -> None:
    """watching-runs: An error is written by its type"""
    result = ToolResult(call_id="c1", name="find", value=value, is_error=True, error_type=kind)
    written = "".join(writer([READY, ResultReady("c1", result, step=1)]))
    assert (words in written, "secret" in written) == (True, False)


@given(ids=st.lists(st.sampled_from(["x", "x-2", "x-3", "y"])))
@pytest.mark.parametrize("writer", [ui.ai_sdk, ui.ag_ui])
def test_no_two_calls_have_one_id(ids: list[str], writer: Any) -> None:
    """watching-runs: Each call has an id of its own on a page"""
    calls = [ToolCall(id=call_id, name="find", args={}, index=n) for n, call_id in enumerate(ids)]
    events: list[Any] = []
    for step, call in enumerate(calls):
        result = ToolResult(call_id=call.id, name="find", value=f"of {step}")
        ready = ResultReady(call.id, result, step=step)
        events += [CallReady(call, step=step), ready]
    written = rows("".join(writer(events)))
    shown = [
        row["toolCallId"] for row in written if row["type"] in {"tool-input-available", "TOOL_CALL_START"}
    ]
    assert len({*shown}) == len(shown) == len(ids)
    ends = [row for row in written if row["type"] in {"tool-output-available", "TOOL_CALL_RESULT"}]
    assert [(row["toolCallId"], row.get("output", row.get("content"))) for row in ends] == [
        (page_id, f"of {n}") for n, page_id in enumerate(shown)
    ]


@pytest.mark.parametrize("form", ["ai_sdk", "ag_ui"])
def test_a_page_shows_what_will_run(form: str) -> None:
    """watching-runs: A page shows what will run"""

    def pay(to: str, eur: int = 1_000_000) -> str:
        """Pay somebody."""
        return f"{to} {eur}"

    call = ToolCall(id="c1", name="pay", args={"to": "Eve"})

    def policy(args: dict[str, Any]) -> sigadapt.Confirmation:
        return sigadapt.Confirmation(f"Pay {args['eur']}?")

    tools = [sigadapt.ToolDecl.of(pay, requires_confirmation=policy)]
    requests = sigadapt.ToolCalls([call]).awaiting_confirmation(tools)
    waits = [Confirm([*requests]), Failed(WAITS)]
    shown = str(rows("".join(getattr(ui, form)([CallReady(call), *waits]))))
    assert "'eur': 1000000" in shown
    assert "Pay 1000000?" in shown


@pytest.mark.parametrize("form", ["ai_sdk", "ag_ui"])
@pytest.mark.parametrize(
    ("streamed", "output", "deltas_of_page"),
    [
        ("Sunny.", "Sunny.", ["Sunny."]),
        ("Sunny.", "Sunny. Ask again.", ["Sunny.", " Ask again."]),
        ("a secret", "I must not say.", ["a secret", "I must not say."]),
        ("", "Rainy.", ["Rainy."]),
        ("one\r\ntwo\u2028three", "one\ntwo\nthree", ["one\r\ntwo\u2028three"]),
        ("one\r\n", "one\ntwo", ["one\r\n", "\ntwo"]),
        ("", "one\r\ntwo", ["one\r\ntwo"]),
    ],
)
def test_a_page_reads_what_was_output(
    form: str, streamed: str, output: str, deltas_of_page: list[str]
) -> None:
    """watching-runs: A page reads what was output"""
    events = [TextDelta(streamed, "answer", step=1), ended(answer=output)]
    assert [
        row["delta"] for row in rows("".join(getattr(ui, form)(events))) if "delta" in row
    ] == deltas_of_page
