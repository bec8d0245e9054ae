"""What notebooks and terminals show of calls, declarations and answers."""

import html
import io
import json
import re
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from processes import run_python
from rich.cells import cell_len
from rich.console import Console
from signatures.tool_functions.served_tools import Call, serving, turn
from tables import table

import sigadapt
from sigadapt import Choice, ToolCallParseError, ToolCalls, ToolDecls, choice_from_response

TOOLS: list[Any] = table(__file__, "TOOLS")


def chat(*calls: tuple[str, str], text: str | None = None, finish: str = "tool_calls") -> dict[str, Any]:
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls, 1)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": made}
    return {"choices": [{"finish_reason": finish, "message": message}]}


def page_of(shown: Any) -> str:
    return shown._repr_html_()


def on_terminal(shown: Any, width: int = 80, **more: Any) -> str:
    file = io.StringIO()
    Console(file=file, width=width, **more).print(shown)
    return file.getvalue()


def words_of(thing: Any) -> str:
    """What a terminal shows, the spaces between words and cells as one."""
    assert page_of(thing).startswith('<div class="sigadapt">')
    return re.sub(r"[\s─]+", " ", on_terminal(thing, 100)).strip()


def test_single_calls_results_tools_and_changes_render() -> None:
    """rendering: Single calls, results, tools and changes render."""
    calls = calls_of(("get_weather", '{"city":"Paris"}'), ("get_weather", '{"city":42}'))
    results = sigadapt.ToolResults.of(calls, [LookupError("no such city")])
    assert "ToolCall: get_weather" in words_of(calls[0])
    assert "schema_mismatch get_weather" in words_of(calls.invalid[0])
    assert "ToolResults: 2 results, 2 failed" in words_of(results)
    assert "failed get_weather no such city" in words_of(results)
    weather = words_of(ToolDecls(TOOLS)["get_weather"])
    assert "description Weather forecast for a city." in weather
    assert "city string days? integer" in weather

    def unasked(context: sigadapt.RequestContext) -> Any:
        raise AssertionError(context)

    toolset = sigadapt.Toolset("weather", unasked).prefixed("w_")
    assert words_of(toolset) == "Toolset: weather source unasked then prefixed"
    change = sigadapt.Change("/tools/0", "dropped", "nobody has it")
    assert words_of(change) == "Change: dropped where /tools/0 why nobody has it"


def calls_of(*calls: tuple[str, str], **more: Any) -> ToolCalls:
    made = choice_from_response(chat(*calls, **more)).tool_calls
    assert made is not None
    return made.validated(ToolDecls(TOOLS))


MIXED = calls_of(
    ("get_weather", '{"city":"Paris"}'), ("get_weather", '{"city":42}'), ("rm", "{}"), text="Hm."
)
ERROR = ToolCallParseError("2 of 3 calls cannot be used", choice=Choice("Hm.", MIXED, None, "tool_calls"))
ALL = [MIXED, ToolDecls(TOOLS), ERROR.choice, ERROR, Choice("Sunny."), Choice(), ToolCalls([]), ToolDecls([])]


@pytest.mark.parametrize("shown", ALL, ids=lambda shown: type(shown).__name__)
def test_each_renders_in_notebooks_and_terminals(shown: Any) -> None:
    """rendering: Calls, declarations, choices and errors render."""
    page = page_of(shown)
    assert page.startswith('<div class="sigadapt">')
    assert type(shown).__name__ in page
    text = on_terminal(shown)
    assert type(shown).__name__ in text
    assert max(map(len, text.splitlines())) <= 80


LONG = "search_documents_by_keyword"
LONG_ID = "call_9f8e7d6c5b4a39281706f5e4"


def long_calls(arguments: str) -> ToolCalls:
    body = chat((LONG, arguments))
    body["choices"][0]["message"]["tool_calls"][0]["id"] = LONG_ID
    calls = choice_from_response(body).tool_calls
    assert calls is not None
    parameters = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    return calls.validated(ToolDecls([{"name": LONG, "parameters": parameters}]))


@example("annual report of the year 2019", 80)
@example("x" * 60, 60)
@example("東京の天気予報を教えて" * 3, 60)
@given(st.text("aé東… ", max_size=50), st.integers(60, 120))
def test_a_narrow_terminal_shows_the_place(keyword: str, width: int) -> None:
    """rendering: A narrow terminal loses neither the place nor the arguments."""
    arguments = json.dumps({"keyword": keyword, "limit": "twenty", "sort": "newest"}, ensure_ascii=False)
    lines = on_terminal(long_calls(arguments), width).splitlines()
    assert max(map(cell_len, lines)) <= width
    (carets,) = (line for line in lines if "^" in line)
    above = lines[lines.index(carets) - 1]
    place = above.index('"twenty"')
    assert carets.rstrip().endswith("^" * len('"twenty"'))
    assert carets.index("^") == cell_len(above[:place])
    assert "call_9f8e7" in "".join(lines)
    assert LONG_ID not in "".join(lines)


@given(st.text(alphabet="<>&\"'aé\u202e\n\x1b\ud800", min_size=1, max_size=20))
def test_everything_that_somebody_else_wrote_is_escaped(text: str) -> None:
    """rendering: Everything that somebody else wrote is escaped."""
    hostile = f"<b onload=x>{text}"
    sendable = hostile.replace("\ud800", "?")  # a declaration refuses half of a surrogate pair
    parameters = {"properties": dict.fromkeys([sendable], True)}
    shown: list[Any] = [
        calls_of((hostile, json.dumps({hostile: hostile})), text=hostile),
        calls_of(("get_weather", hostile), text=hostile),
        calls_of(("get_weather", json.dumps({"city": [hostile]})), text=hostile),
        ToolDecls([{"name": sendable, "description": sendable, "parameters": parameters}]),
        Choice(hostile, None, hostile, hostile),
        ToolCallParseError(hostile, choice=Choice(hostile)),
    ]
    for each in shown:
        page = page_of(each)
        assert "<b " not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
        page.encode()
        terminal = on_terminal(each)
        assert "\x1b" not in terminal
        assert "\u202e" not in terminal
        terminal.encode()


def test_a_thousand_calls_are_a_small_table() -> None:
    """rendering: Hostile arguments are shown in bounded space."""
    many = calls_of(*[("get_weather", json.dumps({"city": "x" * 10_000}))] * 1_000)
    page = page_of(many)
    assert "and 900 more" in page
    assert len(page) < 200_000
    properties = dict.fromkeys([f"p{n}" for n in range(500)], True)
    wide = ToolDecls([{"name": "f", "parameters": {"properties": properties}}])
    assert "and 488 more" in html.unescape(page_of(wide))


def test_nothing_of_it_is_a_field_or_is_sent() -> None:
    """rendering: What is rendered changes nothing that is sent."""
    assert repr(MIXED).startswith("ToolCalls([")
    assert str(ToolDecls(TOOLS)) == "ToolDecls(['get_weather', 'pay', <web_search_20250305>])"
    assert ToolCalls.model_validate_json(MIXED.model_dump_json()) == MIXED


def test_results_are_printed_beside_their_calls() -> None:
    """rendering: Calls and results are printed in a line each."""
    calls = sigadapt.ToolCalls([sigadapt.ToolCall(id=f"c{n}", name="add", args={"a": n}) for n in range(3)])
    results = sigadapt.ToolResults.of(calls, [{"sum": 0}, "1\x1b[2J", "x" * 1_000], errors=[None, "no", None])
    first, second, third = str(results).split("\n")
    assert [first, second] == ['add(a=0) -> {"sum":0}', "add(a=1) failed: no"]
    assert third.startswith("add(a=2) -> xxx")
    assert third.endswith("(1000 characters)")
    assert str(sigadapt.ToolResults()) == "no results"
    assert "\x1b" not in str(sigadapt.ToolResults.of(calls, ["\x1b[2J"] * 3))


def test_a_request_holds_no_table() -> None:
    """rendering: What is rendered changes nothing that is sent."""

    class Judge(dspy.Signature):
        """Judge the calls."""

        made: ToolCalls = dspy.InputField()
        tools: ToolDecls = dspy.InputField()
        calls: ToolCalls | None = dspy.OutputField()

    with serving(turn(Call("get_weather", {"city": "Rome"}))) as provider:
        dspy.Predict(Judge)(made=ToolCalls(list(MIXED)), tools=TOOLS[:1])
    sent = json.dumps(provider.received[0].body)
    assert "Paris" in sent
    assert "<div" not in sent


def test_rich_is_imported_only_to_print() -> None:
    """rendering: Rich is imported only to print."""
    code = (
        "import sys, dspy; before = set(sys.modules);"
        "import sigadapt; after = set(sys.modules) - before;"
        "sys.exit(any(name.split('.')[0] == 'rich' for name in after))"
    )
    assert run_python("-c", code).returncode == 0


def test_a_refused_call_is_bad_too() -> None:
    """rendering: A bad call is marked with code, path and place."""
    assert "ToolCalls: 3 calls, 2 bad" in page_of(MIXED.handed_on())
    assert "schema_mismatch" in page_of(MIXED.handed_on())
