"""What a tool returned can be saved, and the model reads the same after loading."""

import asyncio
import collections
import dataclasses
import datetime as dt
import json
import pathlib
import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

import dspy
import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from signatures.tool_functions.served_tools import Call, serving, submits, turn
from support import WIRES, Turns, lm_of

import sigadapt
from sigadapt import (
    InputNeeded,
    ToolCall,
    ToolCalls,
    ToolDecl,
    ToolDecls,
    ToolResult,
    ToolResults,
    rounds,
)
from sigadapt.errors import InvalidHistory
from sigadapt.testing import Answer, LoopbackProvider

CALLS = ToolCalls([ToolCall(id="call_1", name="fetch", args={})])


class Row:
    def __str__(self) -> str:
        return "Row(city='Paris')"

    __repr__ = __str__


class Color(Enum):
    RED = "red"


class Thing:
    pass


@dataclasses.dataclass
class Point:
    x: Any


ALTERED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "bytes": (b"\x89PNG\xff", ("text",)),
    "object": (Row(), ("text",)),
    "object in a list": ([Row(), 1], ("text",)),
    "object in an object": ({"row": {"row": Row()}}, ("text",)),
    "half a pair": ("a\ud800b", ("unicode",)),
    "NaN": ({"x": float("nan")}, ("null",)),
    "infinite": (float("inf"), ("null",)),
    "NaN of a dataclass": (Point(float("nan")), ("null",)),
    "half a pair in a dataclass": (Point("\ud83d"), ("unicode",)),
    "NaN in a container of another class": (collections.OrderedDict(a=[float("nan")]), ("null",)),
    "a lambda": ([Row(), {"at": Row()}], ("text",)),
    "several": ({"a": float("nan"), "b": Row(), "c": "\ud800"}, ("null", "text", "unicode")),
}
PLAIN: dict[str, tuple[Any, Any]] = {
    "a dict of another class": (collections.defaultdict(list, a=[1]), {"a": [1]}),
    "a set": ({"b", "a"}, ["a", "b"]),
}
if pydantic.VERSION >= "2.14":  # earlier ones write no queue as a list, so its text is sent, on record
    PLAIN["a queue"] = (collections.deque([1, 2]), [1, 2])
SAME: dict[str, Any] = {
    "text": "text",
    "JSON": {"a": [1, 2.5, None, True, "€"]},
    "date": dt.date(2026, 11, 23),
    "decimal": Decimal("18.0"),
    "decimal in an object": {"price": Decimal("18.0")},
    "UUID": UUID(int=7),
    "enum": Color.RED,
    "null": None,
    "tuple": (1, 2),
}


def read(result: ToolResult) -> str:
    """A result as it is printed, which is as a model reads it."""
    return str(ToolResults.of(CALLS, {"call_1": result}))


def saved(result: ToolResult) -> ToolResult:
    return ToolResult.model_validate_json(result.model_dump_json())


@pytest.mark.parametrize("name", ALTERED)
def test_what_json_cannot_hold_is_altered(name: str) -> None:
    """tool-call-outputs: What JSON cannot hold is saved as the model read it."""
    value, reasons = ALTERED[name]
    [result] = ToolResults.of(CALLS, [value])
    assert result.altered == reasons
    assert saved(result).altered == reasons
    assert read(saved(result)) == read(result)


KEPT = {**PLAIN, **{name: (value, value) for name, value in SAME.items()}}


@pytest.mark.parametrize("name", KEPT)
def test_what_json_can_hold_stays(name: str) -> None:
    """tool-call-outputs: What JSON cannot hold is saved as the model read it."""
    value, plain = KEPT[name]
    [result] = ToolResults.of(CALLS, [value])
    assert result.altered == ()
    assert "altered" not in json.loads(result.model_dump_json())
    assert read(result) == read(saved(result)) == read(*ToolResults.of(CALLS, [plain]))
    assert name in PLAIN or result.value == value


@pytest.mark.parametrize("depth", [201, 1_000, 100_000])
def test_what_no_store_could_give_back_is_refused(depth: int) -> None:
    """tool-call-outputs: What no store could give back fails when it is made."""
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    for value in (circle, deep, {"a": deep}, 10**5000, [1, -(10**5000)]):
        with pytest.raises(InvalidHistory, match=r"nested deeper than 200|more than 4,300 digits"):
            ToolResults.of(CALLS, [value])


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.binary()
        | st.dates()
        | st.decimals(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_value_is_read_after_loading_as_before(value: Any) -> None:
    """tool-call-outputs: What JSON cannot hold is saved as the model read it."""
    [result] = ToolResults.of(CALLS, [value])
    assert read(saved(result)) == read(result)


class Size(int, Enum):
    BIG = 1


class Price(float):
    pass


class Book(pydantic.BaseModel):
    price: Decimal = Decimal("1.10")
    day: dt.date = dt.date(2026, 1, 1)


PATH = pathlib.PurePosixPath("a.txt")
SCALARS: list[Any] = [
    *(None, True, 0, -0.0, 1.5, 1e22, 10**30, "", "text", "1.10", "null", '{"a": 1}', "a\x00b", "a\ud800b"),
    *(b"hi", b"\xff", bytearray(b"hi"), Decimal("1.10"), Decimal("1E+2"), Price(1.5), Size.BIG, Color.RED),
    *(dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), dt.time(1, 2), dt.timedelta(1)),
    *(UUID(int=7), PATH, 1 + 2j, re.compile("a"), float("nan"), float("inf"), Row()),
    *(np.float64(1.5), np.int64(3), np.bool_(True), np.float64("nan"), np.array([1.5, 2.0])),
    *(Book(), Point(Decimal("1.10")), {"b", "a"}, frozenset((1,)), (1, 2), range(3), ValueError("no")),
]
HOMES: dict[str, Callable[[Any], Any]] = {
    "alone": lambda value: value,
    "in a list": lambda value: [value, 1],
    "in an object": lambda value: {"value": value},
    "in a dataclass": Point,
    "in a tuple in an object": lambda value: {"rows": (value, {"value": value})},
    "beside an image": lambda value: [value, dspy.Image(url="data:image/png;base64,iVBORw0KGgo=")],
    "a key": lambda value: {value: 1},
}


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("wire", WIRES)
def test_a_saved_result_is_sent_in_the_same_bytes(wire: str, home: str) -> None:
    """tool-call-outputs: What JSON cannot hold is saved as the model read it."""
    unlike: list[str] = []
    tool = ToolDecl.of(lambda: "", name="fetch")
    provider = LoopbackProvider(lambda _: Answer(text="Hi."), keep=2)
    adapter = sigadapt.ChatAdapter()
    with provider as net, dspy.context(lm=lm_of(net, wire), adapter=adapter):
        predict = dspy.Predict(Turns)
        for value in SCALARS:
            if home == "a key" and (type(value).__hash__ is None or isinstance(value, (frozenset, range))):
                continue
            [result] = ToolResults.of(CALLS, [HOMES[home](value)])
            for each in (result, saved(result)):
                predict(question="q", tools=[tool], results=ToolResults.of(CALLS, {"call_1": each}))
            live, loaded = (json.dumps(received.body) for received in net.received)
            if live != loaded:
                unlike.append(repr(value))
    assert unlike == []


HALF = "a\ud800"
ONE_KEY: list[dict[Any, int]] = [
    *({1: 0, "1": 1}, {True: 0, "true": 1}, {Color.RED: 0, "red": 1}, {HALF: 0, "a\ufffd": 1}),
    {dt.date(2026, 1, 1): 0, "2026-01-01": 1},
]


@pytest.mark.parametrize("members", ONE_KEY, ids=repr)
@pytest.mark.parametrize("home", ["alone", "in a list", "in a tuple in an object"])
def test_two_keys_that_are_one_in_json_are_refused(home: str, members: Any) -> None:
    """tool-call-outputs: Two keys that are one in JSON are refused."""
    with pytest.raises(InvalidHistory, match="two keys that are one in JSON") as caught:
        ToolResults.of(CALLS, [HOMES[home](members)])
    assert (caught.value.code, caught.value.tool) == ("unsendable_content", "fetch")
    [result] = CALLS.run([ToolDecl.of(lambda: HOMES[home](members), name="fetch")])
    assert result.is_error


class Broken:
    def __str__(self) -> str:
        raise ValueError("no")


class Deaf:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("kind", [Broken, Deaf])
@pytest.mark.parametrize("home", ["alone", "in a list", "in an object", "in a dataclass"])
def test_what_raises_when_it_is_written_is_refused_with_its_tool(home: str, kind: Any) -> None:
    """tool-call-outputs: A result without a text is a failed one."""
    with pytest.raises(InvalidHistory, match=r"cannot be written|no text of its own") as caught:
        ToolResults.of(CALLS, [HOMES[home](kind())])
    assert (caught.value.code, caught.value.tool) == ("unsendable_content", "fetch")


@pytest.mark.parametrize("value", [UUID(int=7), dt.date(2026, 1, 1), Color.RED, PATH])
def test_a_checked_result_is_checked_as_its_json(value: Any) -> None:
    """tool-call-outputs: What JSON cannot hold is saved as the model read it."""
    returns = {"type": "string"}
    tool = ToolDecl.of(lambda: value, name="fetch", returns=returns, check_result=True)
    [result] = CALLS.run([tool])
    assert not result.is_error
    assert read(result) == read(*ToolResults.of(CALLS, [value]))


@pytest.mark.parametrize(("structured", "is_error"), [({"result": "a"}, False), ({"result": 1}, True)])
def test_the_structured_content_of_a_server_is_checked(structured: Any, is_error: bool) -> None:
    """tool-declarations: A result that does not fit is a failed one."""
    types = pytest.importorskip("mcp.types")
    text = {"type": "text", "text": str(structured["result"])}
    answer = types.CallToolResult.model_validate({"content": [text], "structuredContent": structured})
    returns = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
    tool = ToolDecl.of(lambda: answer, name="fetch", returns=returns, check_result=True, parameters={})
    with serving(turn(Call("fetch", {})), submits()):
        out = cast("Any", dspy).ReActV2("question -> answer", tools=ToolDecls([tool]))(question="q")
    for result in (*CALLS.run([tool]), *rounds(out)[0].results):
        assert result.is_error is is_error


def generator() -> Any:
    yield "alpha"


@pytest.mark.parametrize(
    ("function", "word"),
    [(Thing, "Thing"), (lambda: [Thing()], "Thing"), (generator, "generator"), (lambda: Thing, "Thing")],
    ids=["object", "object in a list", "generator", "class"],
)
@pytest.mark.parametrize("home", ["run", "agent"])
def test_what_has_no_text_is_a_failed_result(function: Any, word: str, home: str) -> None:
    """tool-call-outputs: A result without a text is a failed one."""
    decl = ToolDecl("fetch", func=function)
    if home == "run":
        [result] = CALLS.run([decl])
    else:
        with serving(turn(Call("fetch", {})), submits()):
            out = cast("Any", dspy).ReActV2("question -> answer", tools=ToolDecls([decl]))(question="q")
        result = next(iter(rounds(out)[0].results))
    assert result.is_error
    assert word in str(result.value)
    assert "fetch" in str(result.value)
    assert " at 0x" not in str(result.value)


@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini", "responses"])
@pytest.mark.parametrize("name", ALTERED)
def test_a_run_that_waits_is_saved_with_what_was_read(wire: str, name: str) -> None:
    """tool-call-outputs: What JSON cannot hold is saved as the model read it."""
    value, _ = ALTERED[name]
    fetch = ToolDecl.of(lambda: value, name="fetch")
    pay = ToolDecl.of(lambda: "paid", name="pay", requires_confirmation=True)
    decls = ToolDecls([fetch, pay])
    script = (turn(Call("fetch", {})), turn(Call("pay", {})), submits())
    with serving(*script, wire=wire) as provider:
        agent: Any = cast("Any", dspy).ReActV2("question -> answer", tools=decls)
        with pytest.raises(InputNeeded) as caught:
            agent(question="q")
        error = InputNeeded.model_validate_json(caught.value.model_dump_json())
        history = error.resume(decls, {error.requests[0].id: True})
        assert agent(history=history).history.model_dump_json()
        bodies = [received.body for received in provider.received]
        changes: Any = cast("Any", dspy.settings).lm.history[1].get("changes", ())
    key = {"gemini": "contents", "responses": "input"}.get(wire, "messages")
    before, after = bodies[1][key], bodies[2][key]
    assert after[: len(before)] == before
    assert any("result holds" in change.why for change in changes)


def test_what_mcp_has_not_finished_is_no_good_result() -> None:
    """tool-call-outputs: A result that MCP has not finished is no good result."""
    types = pytest.importorskip("mcp.types")
    if not hasattr(types, "InputRequiredResult"):
        pytest.skip("this version of the SDK has no such results")
    asking = types.InputRequiredResult(
        result_type="input_required", input_requests={}, request_state="a state of the server"
    )
    times = {"created_at": "2026-11-23T00:00:00Z", "last_updated_at": "2026-11-23T00:00:00Z"}
    task = types.Task(task_id="t1", status="working", ttl=1, poll_interval=1, **times)
    working = types.CreateTaskResult(task=task)
    [run] = CALLS.run([ToolDecl.of(lambda: asking, name="fetch", parameters={})])
    [arun] = asyncio.run(CALLS.arun([ToolDecl.of(lambda: asking, name="fetch", parameters={})]))
    for result in (*ToolResults.of(CALLS, [asking]), *ToolResults.of(CALLS, [working]), run, arun):
        assert result.is_error
        assert "a state of the server" not in result.model_dump_json()
    with pytest.raises(InputNeeded) as waiting:
        CALLS.run([ToolDecl.of(lambda: working, name="fetch", parameters={})])
    [request] = waiting.value.requests
    assert (request.kind, request.pending) == ("result", {"mcp_task": "t1"})
    row = {"result_type": "input_required", "task": {"task_id": "t1"}}
    [data] = ToolResults.of(CALLS, [row])
    assert (data.value, data.is_error) == (row, False)
