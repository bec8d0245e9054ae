"""Real answers, cut and altered at many places: nothing is invented, nothing is lost, nothing else is raised.

Cut, an answer has no good call that the whole one has not. Altered, each good call is the object of its text.
Where an answer is large, a budget of characters says how many positions are tried, the same on every run.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from asking import events, whole
from budgets import share
from support import RECORDINGS, recorded
from wire_cases import samples

from sigadapt import Choice, SigadaptError, ToolCalls
from sigadapt.response import choice_from_stream
from sigadapt.testing import WIRES, Answer, Call

Json = dict[str, Any]

SEED = 20_261_120
BUDGET = share(1_500_000)
"""The characters read of one answer in one way: fewer than all positions of a large one take."""

tried: Counter[str] = Counter()


@pytest.fixture(autouse=True, scope="module")
def _report(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    plugins: Any = request.config.pluginmanager
    told = ", ".join(f"{count:,} {what}" for what, count in tried.items())
    with plugins.get_plugin("capturemanager").global_and_fixture_disabled():
        line = f"\n{Path(__file__).name}: {sum(tried.values()):,} inputs tried: {told}"
        plugins.get_plugin("terminalreporter").write_line(line)


class Sample(NamedTuple):
    """One answer: a body, or the events of a stream."""

    name: str
    dialect: str
    body: Json | None
    events: list[Json]

    def __str__(self) -> str:
        return self.name


ARGS: list[Json] = [
    {"city": "Zürich", "days": 120, "deep": {"a": [1, {"b": 'quote " and \\'}], "n": -1.5e3}},
    {},
    {"text": "two words, }]", "flag": True, "none": None},
]
CALLS = [Call(f"tool_{n}", args) for n, args in enumerate(ARGS)]
ANSWER = Answer(text="Let me look.", reasoning="Weather.", calls=CALLS)
DIALECTS = {"openai": "openai-chat", "responses": "openai-responses"}


def own() -> Iterator[Sample]:
    for name in WIRES:
        dialect = DIALECTS.get(name, name)
        yield Sample(f"{name} body", dialect, whole(name, ANSWER), [])
        yield Sample(f"{name} stream", dialect, None, events(name, ANSWER))
    for sample in samples():
        if sample.dialect not in (*DIALECTS.values(), *WIRES):
            # Mistral's whole answers cannot say that a limit ended them.
            body = None if sample.dialect == "mistral-conversations" else sample.body
            yield Sample(f"{sample.dialect} body", sample.dialect, body, [])
            yield Sample(f"{sample.dialect} stream", sample.dialect, None, sample.events)


def sample_of(row: Json) -> Sample:
    if row["stream"]:
        return Sample(row["id"], row["dialect"], None, events_in(row["response"]))
    return Sample(row["id"], row["dialect"], row["response"], [])


def events_in(text: str) -> list[Json]:
    """The events of a recorded stream: server-sent, a line each, or one array."""
    if text.lstrip().startswith("["):
        return json.loads(text)
    lines = (line.removeprefix("data:").strip() for line in text.splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


SAMPLES = [*own(), *(sample_of(row) for path in RECORDINGS for row in recorded(path))]
STREAMS = [sample for sample in SAMPLES if sample.events]


def at(value: Any, *way: str | int) -> Any:
    """What stands at a place, None where there is no such place."""
    try:
        for key in way:
            value = value[key]
    except (LookupError, TypeError):
        return None
    return value


PIECES: dict[str, Callable[[Json], list[tuple[Any, str]]]] = {
    "openai-chat": lambda event: [
        (at(call, "function"), "arguments")
        for choice in cast("list[Json]", event.get("choices") or [])
        for call in cast("list[Json]", at(choice, "delta", "tool_calls") or [])
    ],
    "openai-responses": lambda event: (
        [(event, "delta")] if event.get("type") == "response.function_call_arguments.delta" else []
    ),
    "anthropic": lambda event: [(event.get("delta"), "partial_json")],
    "bedrock-converse": lambda event: [(at(event, "contentBlockDelta", "delta", "toolUse"), "input")],
    "cohere": lambda event: [(at(event, "delta", "message", "tool_calls", "function"), "arguments")],
    "gemini-interactions": lambda event: [(event.get("delta"), "arguments")],
    "mistral-conversations": lambda event: (
        [(event, "arguments")] if event["type"] == "function.call.delta" else []
    ),
}


def every(choice: Choice) -> list[Any]:
    calls = choice.tool_calls
    return calls.in_order() if calls is not None else []


def good(choice: Choice) -> list[tuple[str, Json]]:
    return [(call.name, call.args) for call in choice.tool_calls or ()]


def read(reader: Callable[[Any], Choice], thing: Any, what: str) -> Choice | None:
    """The choice, well formed; None where there is none. No error but sigadapt's own gets past this."""
    tried[what] += 1
    try:
        choice = reader(thing)
    except SigadaptError:
        return None
    calls = every(choice)
    assert [call.index for call in calls] == list(range(len(calls)))
    assert len({call.id for call in calls}) == len(calls)
    assert all(isinstance(call.arguments, str) for call in calls)
    return choice


def is_what_its_text_is(calls: ToolCalls | None) -> bool:
    """Whether each good call is the object that its text is, by another parser than the one under test."""
    return all(call.args == strict(call.arguments) for call in calls or ())


def strict(text: str) -> Any:
    return json.loads(text, object_pairs_hook=once, parse_constant=refused) if text.strip() else {}


def once(pairs: list[tuple[str, Any]]) -> Json:
    assert len({key for key, _ in pairs}) == len(pairs), "a key twice"
    return dict(pairs)


def refused(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")


def seeded() -> random.Random:
    return random.Random(SEED)  # noqa: S311  (for the same positions on every run)


def positions(count: int, cost: int, rng: random.Random) -> Sequence[int]:
    """All of `count` positions where reading them costs no more than the budget, else a sample of them."""
    most = max(8, BUDGET // max(cost, 1))
    return range(count) if count <= most else sorted(rng.sample(range(count), most))


def size(thing: Any) -> int:
    return len(json.dumps(thing))


def altered(text: str, cost: int, rng: random.Random) -> Iterator[str]:
    """A text with one character replaced, taken out, put in or doubled, at many places."""
    for place in positions(len(text) + 1, cost, rng):
        odd = rng.choice('{}[]",:\\ 0-.eNu\x00\x7f\ud800é𝄞')
        before, here, after = text[:place], text[place : place + 1], text[place + 1 :]
        ways = [f"{before}{odd}{after}", f"{before}{after}", f"{before}{odd}{here}{after}", before + text]
        yield rng.choice(ways)


def test_a_stream_cut_between_its_events_invents_and_loses_nothing() -> None:
    """response-choice: A cut answer holds no call that the whole one does not.

    response-choice: A cut or altered answer loses no text.
    """
    rng = seeded()
    for sample in STREAMS:
        whole = choice_from_stream(sample.events)
        for end in positions(len(sample.events) + 1, size(sample.events) // 2, rng):
            check_cut(sample, sample.events[:end], whole, "streams cut at an event")


class Piece(NamedTuple):
    """A piece of argument text in a stream: the number of its event, where it stands, and what it says."""

    number: int
    place: tuple[Json, str]
    text: str


def argument_pieces(events: list[Json], dialect: str) -> Iterator[Piece]:
    calls: set[Any] = set()
    for number, event in enumerate(events):
        if at(event, "content_block", "type") == "tool_use":
            calls.add(event["index"])
        if dialect == "anthropic" and event.get("index") not in calls:
            continue  # a tool that the provider runs has pieces of the same kind
        for holder, key in PIECES.get(dialect, lambda _: [])(event):
            if isinstance(text := at(holder, key), str):
                yield Piece(number, (holder, key), text)


def check_cut(sample: Sample, events: list[Json], whole: Choice, what: str) -> None:
    choice = read(choice_from_stream, events, what)
    sent = "".join(piece.text for piece in argument_pieces(events, sample.dialect))
    if choice is None:
        assert not sent
        return
    calls = every(choice)
    assert all(call in good(whole) for call in good(choice)), (sample.name, len(events))
    for call, entire in zip(calls, every(whole), strict=False):
        assert entire.arguments.startswith(call.arguments), (sample.name, len(events))
    if sent:
        assert "".join(call.arguments for call in calls) == sent, (sample.name, len(events))


def sse(events: list[Json]) -> bytes:
    return "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events).encode()


def test_a_stream_altered_anywhere_raises_nothing_else() -> None:
    """response-choice: Any JSON gives a Choice or UnreadableResponse."""
    rng = seeded()
    for sample in STREAMS:
        stream = sse(sample.events)
        for place in positions(len(stream), 2 * len(stream), rng):
            odd = bytes([rng.choice(b'{}[]",:\\ \n\r0-.eNu\x00\xff\xc3')])
            for changed in (stream[:place] + odd + stream[place + 1 :], stream[:place] + stream[place + 1 :]):
                choice = read(choice_from_stream, changed, "streams altered at a byte")
                assert choice is None or is_what_its_text_is(choice.tool_calls), (sample.name, place)
