"""A case of one wire: an answer as a whole body and as its stream, and what both must read as."""

import json
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sigadapt import Choice, choice_from_response
from sigadapt.response import choice_from_stream

Json = dict[str, Any]
Call = tuple[str, str, Json]  # id, name, arguments


# One answer on every wire: a thought, a text and a call.
SAID, THOUGHT = "Let me look.", "Weather is asked."
ZURICH: Json = {"city": "Zürich"}
ARGUMENTS = '{"city":"Zürich"}'
HALVES = ARGUMENTS[:9], ARGUMENTS[9:]


class Sample(NamedTuple):
    """That answer on one wire, whole and streamed, with the id `c1`."""

    dialect: str
    body: Json
    events: list[Json]


def samples() -> list[Sample]:
    """Return the sample of every provider's tests here."""
    modules = [import_module(path.stem) for path in sorted(Path(__file__).parent.glob("test_*.py"))]
    return [module.SAMPLE for module in modules if hasattr(module, "SAMPLE")]


class Case(NamedTuple):
    """`bad` are the codes of the bad calls, in order. `body` or `events` is None where the case has none."""

    name: str
    body: Json | None
    events: list[Json] | None = None
    text: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()
    bad: tuple[str, ...] = ()
    finish: str | None = None


def check(case: Case, choice: Choice) -> None:
    """The choice says what the case says, and every call's position is the provider's."""
    good = choice.tool_calls.tool_calls if choice.tool_calls is not None else []
    bad = choice.tool_calls.invalid if choice.tool_calls is not None else ()
    assert choice.text == case.text
    assert choice.reasoning == case.reasoning
    assert [(call.id, call.name, call.args) for call in good] == list(case.calls)
    assert [call.code for call in bad] == list(case.bad)
    assert choice.finish_reason == case.finish
    assert sorted(call.index for call in [*good, *bad]) == list(range(len(good) + len(bad)))
    assert (choice.tool_calls is None) == (not good and not bad)
    assert all(call.is_custom or json.loads(call.arguments or "{}") == call.args for call in good)
    for turn in [call.turn for call in good]:
        assert (turn.text, turn.reasoning) == (case.text, case.reasoning)


def server_sent(events: Iterable[Json], *, end: str = "\n") -> str:
    """Events as server-sent events text, with the comments and names that providers add."""
    lines = [": keep-alive", ""]
    for event in events:
        name = event.get("type")
        lines += [f"event: {name}"] if isinstance(name, str) else []
        lines += [f"data: {json.dumps(event, ensure_ascii=False)}", ""]
    return end.join([*lines, ""])


def ndjson(events: Iterable[Json]) -> str:
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def json_array(events: Iterable[Json]) -> str:
    return "[" + ",\r\n".join(json.dumps(event, ensure_ascii=False, indent=1) for event in events) + "\n]\n"


def bytewise(text: str) -> list[bytes]:
    data = text.encode()
    return [data[n : n + 1] for n in range(len(data))]


def framings(events: list[Json]) -> list[Any]:
    """The same stream in every form it may be given in, with more behind its end where there is an end."""
    text = server_sent(events)
    done = f"{text}data: [DONE]\n\n"
    return [
        events,
        iter(events),
        text,
        "\ufeff" + server_sent(events, end="\r\n"),
        server_sent(events, end="\r").encode(),
        bytewise(done),
        [done + 'data: {"choices": [{"delta": {"content": "not read"}}]}\n\ndata: {"type"'],
        ndjson(events),
        json_array(events),
        bytewise(json_array(events)),
    ]


def check_case(case: Case, forms: Callable[[list[Json]], list[Any]] = framings) -> None:
    """The case holds for the whole body, and for the stream however it is given."""
    if case.body is not None:
        check(case, choice_from_response(case.body))
    for stream in forms(case.events) if case.events is not None else []:
        check(case, choice_from_stream(stream))


def params(cases: Iterable[Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]
