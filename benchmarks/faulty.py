"""Faulty answers and endings, each as its provider would send it: four wires, whole and streamed.

docs/measured.md has what a program gets for these; here each is written for every wire that can carry it.
Where a wire carries arguments as an object, the raw text stands in the object's place, if it is a JSON value.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from sigadapt.testing import WIRES, Answer, Call, Received
from sigadapt.testing.answers import dumps

FOUR = ("openai", "responses", "anthropic", "gemini")
NO_TEXT_OF_ARGUMENTS = {("anthropic", False), ("gemini", False), ("gemini", True)}
TEXT, HALF = "Let me look.", "It is su"
Expected = tuple[tuple[str, dict[str, Any]], ...]  # names and arguments that should reach functions


Events: TypeAlias = list[dict[str, Any]]  # of a stream; a whole answer is one
Edit: TypeAlias = Callable[[str, Events, bool], "Events | None"]


class Sent(NamedTuple):
    """One cell: an answer on a wire, whole or streamed."""

    row: "Row"
    wire: str
    streamed: bool
    reply: bytes


@dataclass(frozen=True)
class Row:
    """A fault or an ending.

    Args:
        name: as the page shows it.
        answer: the answer that holds it.
        names: a pattern; an error that it is found in names the fault.
        good: the calls that are right, and should reach a function.
        lenient: what a reader that repairs the answer may make of it.
        text: what the model said, which a program should be able to read.
        sound: whether nothing is wrong.
        edit: writes the fault into the body, or the events; None for a wire that has no form for it.
    """

    name: str
    answer: Answer
    names: str = ""
    good: Expected = ()
    lenient: Expected = ()
    text: str | None = None
    sound: bool = False
    edit: Edit | None = None
    texts: tuple[str, ...] = field(default=())  # raw arguments, in the order of the calls


PARIS, ROME = {"city": "Paris"}, {"city": "Rome"}
TO_PARIS, TO_ROME = ("get_weather", PARIS), ("get_weather", ROME)
_JSON = r"(?<!partial_)json|pars|decod|expecting|EOF|delimiter"
_OBJECT = rf"object|dict|mapping|{_JSON}"
_CUT = r"length|truncat|\bcut|token|limit|incomplete|max_output"
_NEEDED = r"city"
_EMPTY = r"empty|no (answer|text|output|content|response)|nothing|without"


def fault(name: str, text: str, names: str, tool: str = "get_weather", **more: Any) -> Row:
    """An answer of one call, with these arguments."""
    finish = more.pop("finish", None)
    return Row(name, Answer(calls=[Call(tool, "{}")], finish=finish), names, texts=(text,), **more)


def _refusal(wire: str, events: Events, streamed: bool) -> Events | None:
    """Write the text as a refusal, where the wire has a field of its own for one."""
    if wire == "openai":
        for event in events:
            for choice in event["choices"]:
                said = choice.get("delta" if streamed else "message")
                if said.get("content"):
                    said.update(refusal=said["content"], content=None)
        return events
    if wire == "responses":
        texts = json.dumps(events)
        for old, new in (
            ("response.output_text", "response.refusal"),
            ('"type": "output_text", "text"', '"type": "refusal", "refusal"'),
        ):
            texts = texts.replace(old, new)
        events = json.loads(texts)
        for event in events:
            if event.get("type") == "response.refusal.done":
                event["refusal"] = event.pop("text")
        return events
    return None


def _failed(wire: str, events: Events, streamed: bool) -> Events | None:
    """Let the provider give up in the middle of its text, in the words that its wire has for that."""
    crash = {"code": "server_error", "message": "The model crashed."}
    if wire == "openai":
        choice = next(e for e in reversed(events) if e["choices"])["choices"][0]
        choice.update(finish_reason="error", error={**crash, "code": 502})
        return events
    if wire == "responses":
        if streamed:
            events[-1]["type"] = "response.failed"
        body = events[-1]["response"] if streamed else events[-1]
        body.update(status="failed", error=crash, incomplete_details=None)
        return events
    if wire == "anthropic" and streamed:
        error = {"type": "overloaded_error", "message": "The model crashed."}
        return [*events[:-3], {"type": "error", "error": error}]
    return None


def _given_up(wire: str, events: Events, streamed: bool) -> Events | None:
    """Cancel a response that holds a whole call."""
    if wire != "responses":
        return None
    if streamed:
        events[-1]["type"] = "response.cancelled"
    (events[-1]["response"] if streamed else events[-1]).update(status="cancelled", incomplete_details=None)
    return events


def _malformed(wire: str, events: Events, streamed: bool) -> Events | None:
    """Let Gemini say that it could not read its own call."""
    if wire != "gemini":
        return None
    said = {"content": {"role": "model", "parts": []}, "index": 0, "finishReason": "MALFORMED_FUNCTION_CALL"}
    message = {"finishMessage": "Malformed function call: get_weather("}
    return [{**events[-1], "candidates": [{**said, **message}]}]


def _called_off(wire: str, events: Events, streamed: bool) -> Events | None:
    """Keep the announcement of a call, where a wire has one."""
    return events if wire in {"openai", "anthropic"} else None


def _breaks(wire: str, events: Events, streamed: bool) -> Events | None:
    """Let the connection close before the end of a stream."""
    if not streamed:
        return None
    if wire == "gemini":
        for event in events:
            event["candidates"][0].pop("finishReason", None)
        return events
    texts = [place for place, event in enumerate(events) if HALF in json.dumps(event)]
    return events[: texts[0] + 1] if texts else events[: -{"openai": 1, "responses": 4, "anthropic": 3}[wire]]


ROWS = (
    fault("a good call", '{"city":"Paris"}', "", good=(TO_PARIS,), sound=True),
    fault("no arguments, and none needed", "{}", "", "now", good=(("now", {}),), sound=True),
    fault("an integer of 30 digits", '{"city":"P","days":' + "123456789" * 3 + "123}", "", sound=True,
          good=(("get_weather", {"city": "P", "days": int("123456789" * 3 + "123")}),)),
    fault("cut off inside a string, at its limit", '{"city":"Par', _CUT, finish="length"),
    fault("cut off before the arguments, at its limit", "", _CUT, "now", finish="length"),
    fault("an object left open", '{"city":"Paris"', _JSON, lenient=(TO_PARIS,)),
    fault("not JSON", "not json", _JSON),
    fault("Python instead of JSON", "{'city': 'Paris'}", _JSON, lenient=(TO_PARIS,)),
    fault("text after the object", '{"city":"Paris"} and more', _JSON, lenient=(TO_PARIS,)),
    fault("an array", "[1,2]", _OBJECT),
    fault("a number", "42", _OBJECT),
    fault("an object encoded twice", json.dumps('{"city":"Paris"}'), _OBJECT, lenient=(TO_PARIS,)),
    fault("a key twice", '{"city":"Paris","city":"Rome"}', r"twice|duplicate|repeated"),
    fault("NaN for a number", '{"city":"Paris","days":NaN}', rf"nan|days|{_JSON}"),
    fault("a wrong type", '{"city":42}', _NEEDED),
    fault("a required parameter missing", "{}", _NEEDED),
    fault("nothing, where a parameter is required", "", rf"{_NEEDED}|{_JSON}|empty"),
    fault("`null`, where a parameter is required", "null", rf"{_NEEDED}|{_OBJECT}|null|None"),
    fault("an undeclared argument", '{"city":"Paris","unit":"C"}', r"unit", lenient=(TO_PARIS,)),
    fault("an undeclared tool", "{}", r"rm_rf", "rm_rf"),
    Row("good, bad, good", Answer(calls=[Call("get_weather", "{}")] * 3), _JSON, good=(TO_PARIS, TO_ROME),
        texts=('{"city":"Paris"}', '{"city":', '{"city":"Rome"}')),
    Row("good, of a wrong type, good", Answer(calls=[Call("get_weather", "{}")] * 3), _NEEDED,
        good=(TO_PARIS, TO_ROME), texts=('{"city":"Paris"}', '{"city":42}', '{"city":"Rome"}')),
    Row("100,000 brackets", Answer(calls=[Call("get_weather", "{}")], chunk=4000),
        rf"{_OBJECT}|recurs|depth|nest", texts=("[" * 100_000,)),
    Row("text beside a good call", Answer(text=TEXT, calls=[Call("get_weather", "{}")]), "", (TO_PARIS,),
        text=TEXT, sound=True, texts=('{"city":"Paris"}',)),
    Row("text and no call, where calls are optional", Answer(text=f"[[ ## answer ## ]]\n{TEXT}"), text=TEXT,
        sound=True),
    Row("text cut by its limit", Answer(text=HALF, finish="length"), _CUT),
    Row("nothing before the limit", Answer(finish="length"), _CUT),
    Row("filtered text", Answer(text=HALF, finish="content_filter"), r"filter|safety|refus"),
    Row("a refusal", Answer(text="I cannot."), r"refus|I cannot", edit=_refusal),
    Row("the provider fails inside its text", Answer(text=HALF), r"crash|502|overload", edit=_failed),
    Row("cancelled, with a whole call", Answer(calls=[Call("get_weather", "{}")], finish="length"),
        r"cancel", texts=('{"city":"Paris"}',), edit=_given_up),
    Row("a call that was announced and did not come", Answer(text=HALF, finish="tool_calls"),
        r"call", edit=_called_off),
    Row("a call that the provider could not read", Answer(text=HALF), r"malformed", edit=_malformed),
    Row("nothing but reasoning", Answer(reasoning="It is sunny."), rf"reasoning|thinking|{_EMPTY}"),
    Row("an empty answer", Answer(), _EMPTY),
    Row("a stream that ends inside its text", Answer(text="It is su, and more", chunk=8),
        rf"\bend|clos|broke|connection|stream|{_CUT}", edit=_breaks),
    Row("a stream that ends inside a call", Answer(calls=[Call("get_weather", "{}")], chunk=8),
        rf"\bend|clos|broke|connection|stream|{_CUT}|{_JSON}", texts=('{"city":"Par',), edit=_breaks),
)  # fmt: skip


def cells() -> Iterator[Sent]:
    """Yield every answer on every wire that can carry it."""
    for row in ROWS:
        for wire in FOUR:
            for streamed in (False, True):
                reply = _written(row, wire, streamed)
                if reply is not None:
                    yield Sent(row, wire, streamed, reply)


def _written(row: Row, wire: str, streamed: bool) -> bytes | None:
    """Write one answer; None if the wire cannot carry it."""
    form, is_object = WIRES[wire].format, (wire, streamed) in NO_TEXT_OF_ARGUMENTS
    if is_object and not all(map(_is_value, row.texts)):
        return None
    marks = [f"raw{number}" for number, _ in enumerate(row.texts)]
    calls = [
        Call(call.name, {mark: 0} if is_object else text)
        for call, mark, text in zip(row.answer.calls, marks, row.texts, strict=True)
    ]
    said = {name: getattr(row.answer, name) for name in ("text", "reasoning", "finish", "chunk")}
    answer, asked = Answer(calls=calls, **said), _asked(wire, streamed)
    written = [*form.stream(answer, asked)] if streamed else [form.render(answer, asked)]
    events: Events | None = json.loads(json.dumps(written))
    if row.edit is not None:
        events = row.edit(wire, events or [], streamed)
    if events is None:
        return None
    reply = b"".join(form.encode(events)) if streamed else dumps(events[0]).encode()
    if row.edit is _breaks:
        reply = reply.removesuffix(b"data: [DONE]\n\n")
    for mark, text in zip(marks, row.texts, strict=True):
        reply = reply.replace(dumps({mark: 0}).encode(), text.encode())
    return reply


def _is_value(text: str) -> bool:
    """Whether a text is a JSON value, which can stand where a wire has an object."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _asked(wire: str, streamed: bool) -> Received:
    body: Mapping[str, Any] = {"model": WIRES[wire].model, "stream": streamed}
    return Received(1, wire, "/", {}, dict(body), WIRES[wire].model.rpartition("/")[2], streamed)
