"""The answers in tests/wires: for each provider's format, bodies and streams with what they read as.

A file has a `body`, the `events` of its stream, or both, and what they are expected to say: `text`,
`reasoning`, `calls` as [id, name, arguments, and their text where it matters], the codes of `bad` calls, each
with its text where that matters, and the `finish` reason. What is left out is None or empty. `sample.json` is
the same answer in every format: a thought, a text and a call.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from sigadapt import Choice, InvalidToolCall, ToolCall, choice_from_response
from sigadapt.response import choice_from_stream

Json = dict[str, Any]

WIRES = Path(__file__).parent.parent / "wires"

# The answer of every `sample.json`.
SAID, THOUGHT = "Let me look.", "Weather is asked."
ZURICH: Json = {"city": "Zürich"}
ARGUMENTS = '{"city":"Zürich"}'


class Sample(NamedTuple):
    """An answer in one format, whole and streamed."""

    dialect: str
    body: Json
    events: list[Json]


def samples() -> list[Sample]:
    """Return the sample of every provider."""
    return [
        Sample(path.parent.name, case["body"], case["events"])
        for path in sorted(WIRES.glob("*/sample.json"))
        for case in [json.loads(path.read_text(encoding="utf-8"))]
    ]


def said(expected: list[Any], call: ToolCall | InvalidToolCall) -> list[Any]:
    """What a call says, with as much of it as the case expects."""
    if isinstance(call, InvalidToolCall):
        return [call.code, call.arguments][: len(expected)]
    return [call.id, call.name, call.args, call.arguments][: len(expected)]


def check(expect: Json, choice: Choice) -> None:
    """The choice says what is expected, and every call's position is the provider's."""
    good = choice.tool_calls.tool_calls if choice.tool_calls is not None else []
    bad = choice.tool_calls.invalid if choice.tool_calls is not None else ()
    calls: list[list[Any]] = [list(call) for call in expect.get("calls", ())]
    codes = [[code] if isinstance(code, str) else code for code in expect.get("bad", ())]
    assert choice.text == expect.get("text")
    assert choice.reasoning == expect.get("reasoning")
    assert [said(*pair) for pair in zip(calls, good, strict=True)] == calls
    assert [said(*pair) for pair in zip(codes, bad, strict=True)] == codes
    assert choice.finish_reason == expect.get("finish")
    assert sorted(call.index for call in [*good, *bad]) == list(range(len(good) + len(bad)))
    assert (choice.tool_calls is None) == (not good and not bad)
    assert all(call.is_custom or json.loads(call.arguments or "{}") == call.args for call in good)
    for turn in [call.turn for call in good]:
        assert (turn.text, turn.reasoning) == (choice.text, choice.reasoning)


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


def check_case(
    expect: Json,
    body: Json | None = None,
    events: list[Json] | None = None,
    forms: Callable[[list[Json]], list[Any]] = framings,
) -> None:
    """The case holds for the whole body, and for the stream however it is given."""
    if body is not None:
        choice = choice_from_response(body)
        check(expect, choice)
        assert choice.raw is body
    for stream in forms(events) if events is not None else []:
        check(expect, choice_from_stream(stream))
