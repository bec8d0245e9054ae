"""Write what a program gets of faulty answers, with sigadapt and with DSPy's own adapter.

Every cell of the tables is measured: a loopback provider sends each answer to the real `dspy.LM`, over both
of its engines. `python3 tasks.py evidence arrives` writes the section into docs/measured.md, and prints the
tables of the endings and of the gateways, of which the page has the sums.
"""

import json
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy

import sigadapt
from benchmarks import measured
from benchmarks.tree import stamp
from sigadapt.testing import LoopbackProvider, Reply

ENGINES = {"native engine": "auto", "LiteLLM engine": "litellm"}
TEXT = "Let me look."
LONGEST = 80  # characters of a cell's value


class Ours(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    calls: sigadapt.ToolCalls = dspy.OutputField()


class OursOptional(dspy.Signature):
    """Answer, or use the tools."""

    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: sigadapt.ToolCalls | None = dspy.OutputField()


class Theirs(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


class TheirsOptional(dspy.Signature):
    """Answer, or use the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: dspy.ToolCalls | None = dspy.OutputField()


def get_weather(city: str, days: int = 3) -> str:
    """Weather for a city."""
    raise AssertionError(f"a tool was executed: {city}, {days}")


def now() -> str:
    """The time."""
    raise AssertionError("a tool was executed")


class Case(NamedTuple):
    """An answer, its fault, and whether it is sound: a program may act on all of it."""

    name: str
    sent: tuple[Any, ...]
    finish: str = "tool_calls"
    sound: bool = False
    text: str | None = None
    optional: bool = False

    def body(self) -> dict[str, Any]:
        """Return the answer as a chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.sent:
            message["tool_calls"] = list(self.sent)
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice], "usage": usage}

    def shown(self) -> str:
        """Return the fault and the arguments or text of the answer, as the table shows them."""
        arguments = [call["function"]["arguments"] for call in self.sent]
        if not self.sent or (self.text and len(arguments) == 1):
            return f"{self.name}: “{self.text}”"
        return f"{self.name}: " + ", ".join(code(text) if text else "nothing" for text in arguments)


def call(arguments: str, name: str = "get_weather", call_id: str | None = "call_1") -> dict[str, Any]:
    """Return a tool call of a chat completion."""
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else {"id": call_id, **made}


GOOD = call('{"city":"Paris"}')
# Those of the table of faults that the tests try, tests/faults.json.
SHOWN = (
    *("a good call", "no arguments, none needed", "an integer of 30 digits", "cut off inside a string"),
    *("cut off before the arguments", "an object left open", "not JSON", "Python in place of JSON"),
    *("text after the object", "an array", "a number", "encoded twice", "a key twice", "NaN", "a wrong type"),
    *("a parameter missing", "nothing, where a parameter is required", "null, where a parameter is required"),
    *("a tool that nobody declared", "good, cut short, good", "100,000 brackets"),
)


def shown_faults() -> Iterator[Case]:
    """Yield the rows of the table of faults that the page shows."""
    table = Path(__file__).resolve().parent.parent / "tests" / "faults.json"
    rows = {row["name"]: row for row in json.loads(table.read_text(encoding="utf-8"))}
    for name in SHOWN:
        row = rows[name]
        calls = [
            call(text_of(arguments), tool, f"call_{number}")
            for number, (tool, arguments) in enumerate(row["calls"], 1)
        ]
        yield Case(name, tuple(calls), row.get("finish", "tool_calls"), sound=not any(row["codes"]))


def text_of(arguments: Any) -> str:
    """Return the text of arguments, of which the table has what repeats itself as [text, times]."""
    return arguments if isinstance(arguments, str) else "".join(text * times for text, times in arguments)


CASES = (
    *shown_faults(),
    Case("a good call without an id", (call('{"city":"Paris"}', call_id=None),), sound=True),
    Case("text beside a good call", (GOOD,), sound=True, text=TEXT),
    Case("text and no call, where one is required", (), "stop", text=TEXT),
    Case("text and no call, where calls are optional", (), "stop", sound=True, text=TEXT, optional=True),
)


class Ending(NamedTuple):
    """An answer of any wire that ended without being one; `text` is what the model had said before."""

    name: str
    wire: str
    answer: dict[str, Any]
    text: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the answer as its provider sends it."""
        return self.answer


def chat(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    """Return a chat completion."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}, **more}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def response(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    """Return a response object."""
    head = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": status}
    return {**head, "output": list(items), **more}


def anthropic(text: str, stop: str, **more: Any) -> dict[str, Any]:
    """Return a Message."""
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": stop}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**head, "content": [{"type": "text", "text": text}], "usage": usage, **more}


def gemini(*parts: dict[str, Any], finish: str, **more: Any) -> dict[str, Any]:
    """Return a generateContent response."""
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": finish, **more}]}


def message(*parts: dict[str, Any], phase: str = "final_answer") -> dict[str, Any]:
    """Return a message item of a response object."""
    head = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "phase": phase}
    return {**head, "content": list(parts)}


HALF = "It is su"
CRASH = {"code": "server_error", "message": "The model crashed."}
SAYS = {"type": "output_text", "text": HALF, "annotations": []}
CALLS = {"type": "function_call", "id": "f", "call_id": "c", "name": "get_weather", "status": "completed"}
ENDINGS = (
    Ending("text cut by its limit", "openai", chat({"content": HALF}, "length"), HALF),
    Ending("nothing before the limit", "openai", chat({"content": ""}, "length")),
    Ending("filtered text", "openai", chat({"content": HALF}, "content_filter"), HALF),
    Ending("a refusal", "openai", chat({"content": None, "refusal": "I cannot."}), "I cannot."),
    Ending(
        "an answer that its router gave up",
        "openai",
        chat({"content": HALF}, "error", error={"code": 502, "message": "The upstream died."}),
        HALF,
    ),
    Ending("nothing but reasoning", "openai", chat({"content": "", "reasoning_content": "It is sunny."})),
    Ending(
        "a refusal",
        "responses",
        response(message({"type": "refusal", "refusal": "I cannot."})),
        "I cannot.",
    ),
    Ending(
        "a failed response with text",
        "responses",
        response(message(SAYS), status="failed", error=CRASH),
        HALF,
    ),
    Ending(
        "a cancelled response with a call",
        "responses",
        response({**CALLS, "arguments": '{"city":"Paris"}'}, status="cancelled"),
    ),
    Ending(
        "an incomplete response",
        "responses",
        response(message(SAYS), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        HALF,
    ),
    Ending("a refusal", "anthropic", anthropic(HALF, "refusal", stop_details={"category": "cyber"}), HALF),
    Ending("text cut by its limit", "anthropic", anthropic(HALF, "max_tokens"), HALF),
    Ending("a call that did not come", "anthropic", anthropic(HALF, "tool_use"), HALF),
    Ending("text stopped for safety", "gemini", gemini({"text": HALF}, finish="SAFETY"), HALF),
    Ending("text stopped for another reason", "gemini", gemini({"text": HALF}, finish="OTHER"), HALF),
    Ending(
        "a call that Gemini could not read",
        "gemini",
        gemini(finish="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: get_weather("),
    ),
)


class Odd(NamedTuple):
    """What a gateway may send in the place of an answer of the documented form."""

    name: str
    wire: str
    sent: bytes
    is_streamed: bool = False
    optional: bool = False
    text: str | None = None

    def body(self) -> bytes:
        """Return the answer."""
        return self.sent


def sse(*events: dict[str, Any], end: str = "\n") -> bytes:
    """Return events as the text of a stream."""
    names = [f"event: {event['type']}{end}" if "type" in event else "" for event in events]
    pairs = zip(names, events, strict=True)
    return "".join(f"{name}data: {json.dumps(event)}{end}{end}" for name, event in pairs).encode()


def piece(*fragments: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """Return an event of a chat stream with fragments of calls."""
    delta = {"tool_calls": list(fragments)} if fragments else {}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def fragment(text: str, name: str | None = None, call_id: str | None = None) -> dict[str, Any]:
    """Return a fragment of the first call of a chat stream."""
    named = {"arguments": text, **({"name": name} if name else {})}
    return {"index": 0, "function": named, **({"id": call_id, "type": "function"} if call_id else {})}


def opening(text: str, call_id: str) -> list[dict[str, Any]]:
    """Return the events with which Anthropic begins a message that calls a tool."""
    block = {"type": "tool_use", "id": call_id, "name": "get_weather", "input": {}}
    return [
        {"type": "message_start", "message": anthropic("", "") | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": text},
        },
    ]


def as_bytes(body: dict[str, Any]) -> bytes:
    """Return a body."""
    return json.dumps(body).encode()


WHOLE = Case("", (GOOD,)).body()
EVENTS = piece(fragment("", "get_weather", "call_1")), piece(fragment('{"city":"Paris"}'))
CALLED = piece(finish="tool_calls")
BEHIND = {"tool_calls": [GOOD], "images": [], "thinking_blocks": []}
STOPPED = [
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
SLOW = {"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}
HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
IDS = ["call_1", "call_2", "call_3"]
PIECES = [
    fragment('{"city"', "get_weather", IDS[0]),
    fragment(":", call_id=IDS[1]),
    fragment('"Paris"}', call_id=IDS[2]),
]
EMPTY = {**anthropic("", "end_turn"), "content": []}
GATEWAY = {"message": "no healthy upstream"}
LIMIT = {"native_finish_reason": "MAX_TOKENS"}
CLOSED = chat({"content": None, **BEHIND}, "tool_calls", provider_specific_fields=LIMIT)
AGAIN = [*opening('{"city":"Ro', "toolu_1"), *opening('{"city":"Paris"}', "toolu_2"), *STOPPED]
NAMED = [piece(fragment("", "get_", "call_1")), piece(fragment("", "weather")), EVENTS[1], CALLED]
ODD = (
    Odd("one body, where a stream was asked for", "openai", as_bytes(WHOLE), is_streamed=True),
    Odd("a stream, where a body was asked for", "openai", sse(*EVENTS, CALLED)),
    Odd("a stream whose lines end in CR alone", "openai", sse(*EVENTS, CALLED, end="\r"), is_streamed=True),
    Odd("the name of a tool in two pieces", "openai", sse(*NAMED), is_streamed=True),
    Odd(
        "each piece of a call with its own id",
        "openai",
        sse(*map(piece, PIECES), CALLED),
        is_streamed=True,
    ),
    Odd("a stream that a gateway began anew", "anthropic", sse(*AGAIN), is_streamed=True),
    Odd("a call cut by its limit, behind a proxy that closed it", "openai", as_bytes(CLOSED)),
    Odd("a rate limit with HTTP 200, streamed", "openai", as_bytes(SLOW), is_streamed=True, optional=True),
    Odd("a page of HTML with HTTP 200, streamed", "openai", HTML, is_streamed=True, optional=True),
    Odd("a gateway's message with HTTP 200", "openai", as_bytes(GATEWAY), optional=True),
    Odd("no choices", "openai", as_bytes({**WHOLE, "choices": []}), optional=True),
    Odd(
        "an empty answer", "anthropic", as_bytes({**anthropic("", "end_turn"), "content": []}), optional=True
    ),
)


class Outcome(NamedTuple):
    """What a program gets for an answer, and whether it got it without an error."""

    result: str
    accepted: bool


def ours(case: Case | Ending | Odd, engine: str) -> Outcome:
    """Return the outcome with sigadapt."""
    signature = OursOptional if isinstance(case, Ending) or case.optional else Ours
    return outcome(case, engine, sigadapt.ChatAdapter(), signature, [get_weather, now])


def theirs(case: Case | Ending | Odd, engine: str) -> Outcome:
    """Return the outcome with DSPy's adapter, native function calling on."""
    adapter = dspy.ChatAdapter(use_native_function_calling=True)
    signature = TheirsOptional if isinstance(case, Ending) or case.optional else Theirs
    return outcome(case, engine, adapter, signature, [dspy.Tool(get_weather), dspy.Tool(now)])


def outcome(
    case: Case | Ending | Odd, engine: str, adapter: Any, signature: Any, tools: Sequence[Any]
) -> Outcome:
    """Ask once over real HTTP and describe what the program gets."""
    answers: list[Reply] = [case.body()]
    with LoopbackProvider(answers) as provider:
        wire = "openai" if isinstance(case, Case) else case.wire
        lm = dspy.LM(**provider.lm_options(wire, engine=engine, num_retries=0))
        with dspy.context(lm=lm, adapter=adapter), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # DSPy's own adapter uses what DSPy deprecates
            try:
                program: Any = dspy.Predict(signature)
                if isinstance(case, Odd) and case.is_streamed:
                    program = dspy.streamify(program, async_streaming=False)
                given: Any = program(question="weather?", tools=list(tools))
                if not isinstance(given, dspy.Prediction):
                    *_, given = given
            except BaseException as error:  # noqa: BLE001  (the table shows it; a stream raises a group)
                result, accepted = raised(error), False
            else:
                result, accepted = returned(case, given), True
        count = len(provider.received)
    return Outcome(result + (f" ({count} requests)" if count > 1 else ""), accepted)


def raised(error: Any) -> str:
    """Describe an error by its class; one of sigadapt by the codes and the good calls that it holds."""
    while hasattr(error, "exceptions"):
        (error,) = error.exceptions
    if isinstance(error, dspy.LMRateLimitError):
        return f"{code('LMRateLimitError')}, with the provider's words"
    if isinstance(error, dspy.utils.exceptions.LMServerError):
        return f"{code('LMServerError')}, with the provider's words"
    if isinstance(error, sigadapt.errors.UnusableAnswer):
        text = f", the text in it: {kept(error.choice.text)}" if error.choice.text else ""
        return f"error {code(error.code)}{text}"
    if not isinstance(error, sigadapt.ToolCallParseError):
        kind = "LMError" if isinstance(error, dspy.utils.exceptions.LMError) else type(error).__name__
        return f"{code(kind)}, without the calls or the text"
    calls = error.choice.tool_calls
    if calls is None:
        return f"error {code(error.code)}, the text in it: {kept(error.choice.text)}"
    bad = ", ".join(code(one.code) + (f" at {code(one.path)}" if one.path else "") for one in calls.invalid)
    return f"error {bad}" + (f", the good calls in it: {listed(calls)}" if len(calls) else "")


def returned(case: Case | Ending | Odd, given: Any) -> str:
    """Describe the calls of a prediction, and whether the text was kept."""
    calls: list[Any] = given.calls.tool_calls if given.calls is not None else []
    result = listed(calls) if calls else "no call"
    if case.text is None:
        return result
    everything = f"{given} {getattr(given.calls, 'text', None)}"
    return f"{result}; text {'kept' if case.text in everything else '**lost**'}"


def listed(calls: Any) -> str:
    """Write calls as name and arguments."""
    return ", ".join(code(f"{one.name}({json.dumps(one.args)})") for one in calls)


def kept(text: str | None) -> str:
    """Write a text in quotes."""
    return f"“{text}”" if text else "none"


def code(text: str) -> str:
    """Write a text as a code span for a table cell, cut to a readable length."""
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}… ({len(text):,} characters)"
    return f"`{cut}`".replace("|", "\\|")


def rows() -> list[list[str]]:
    """Return the cells, one row for each case (answer, sigadapt, DSPy on each engine), then the sums."""
    table: list[list[str]] = []
    wrongly = [0] * (1 + len(ENGINES))
    for case in CASES:
        mine = [ours(case, engine) for engine in ENGINES.values()]
        alike = all(found.result == mine[0].result for found in mine)
        results = [f"{found.result} ({name})" for name, found in zip(ENGINES, mine, strict=True)]
        other = [theirs(case, engine) for engine in ENGINES.values()]
        table.append(
            [
                case.shown(),
                mine[0].result if alike else "; ".join(results),
                *(found.result for found in other),
            ]
        )
        if not case.sound:
            accepted = [any(found.accepted for found in mine), *(found.accepted for found in other)]
            wrongly = [count + yes for count, yes in zip(wrongly, accepted, strict=True)]
    faulty = sum(not case.sound for case in CASES)
    sums = [f"faulty answers returned as good ones, of {faulty}", *map(str, wrongly)]
    return [*table, [f"**{cell}**" for cell in sums]]


def odd_answers() -> list[list[str]]:
    """Return the cells of the third table: answer, sigadapt, DSPy's adapter."""
    ways = (ours, theirs)
    return [[f"{odd.name} ({odd.wire})", *(way(odd, "auto").result for way in ways)] for odd in ODD]


def endings() -> list[list[str]]:
    """Return the cells of the second table: answer, sigadapt, DSPy's adapter; then the sums."""
    table: list[list[str]] = []
    wrongly = [0, 0]
    for ending in ENDINGS:
        found = [way(ending, "auto") for way in (ours, theirs)]
        wrongly = [count + each.accepted for count, each in zip(wrongly, found, strict=True)]
        table.append([f"{ending.name} ({ending.wire})", *(each.result for each in found)])
    sums = [f"endings returned as good answers, of {len(ENDINGS)}", *map(str, wrongly)]
    return [*table, [f"**{cell}**" for cell in sums]]


def section(table: Sequence[Sequence[str]], ends: Sequence[Sequence[str]]) -> str:
    """Return the section of the page."""
    head = ["what arrives", "sigadapt, on both engines", *(f"DSPy's adapter, {name}" for name in ENGINES)]
    *_, ending = ends
    sums = [cell.strip("*") for cell in ending[1:]]
    notes = NOTES.format(endings=len(ENDINGS), ours=sums[0], theirs=sums[1])
    return f"{INTRODUCTION.format(stamp=stamp('dspy', 'litellm'))}\n{markdown(head, table)}{notes}"


def markdown(head: list[str], table: Sequence[Sequence[str]]) -> str:
    """Write a table."""
    lines = [head, ["---"] * len(head), *table]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


INTRODUCTION = """\
## What a program gets of a faulty answer

{stamp}

`python3 tasks.py evidence arrives` writes this section. A loopback provider sends each answer over HTTP
to the real `dspy.LM`. The faults are rows of tests/faults.json, which
the tests try on every wire. The tools are `get_weather(city: str, days: int = 3)` and `now()`. Both adapters
have their defaults, but for DSPy's `use_native_function_calling=True`. A faulty answer counts as returned
if the adapter raises no error, whatever happens when your program runs the call.
"""

NOTES = """
- The model didn't send `{{"value": …}}` or `{{"partial_json": …}}`: DSPy's native engine wraps what isn't
  an object.
- The texts are plain. DSPy's adapter reads only its own form, `[[ ## answer ## ]]`, if the signature has
  a field for it.
- Of {endings} answers that ended early (cut off, filtered, refused, failed), sigadapt returned {ours} as
  good ones and DSPy's adapter {theirs}.
- `duplicate_key` needs arguments that came as text. Whole answers of Anthropic and Bedrock, Gemini and
  Ollama are decoded objects: a JSON library has dropped one of the two values before any adapter can
  look.
- If a proxy closes the JSON of a call that a limit cut, and doesn't mention the limit, the call looks
  whole.
"""


def main() -> None:
    """Measure, write the section, and print the other tables."""
    logging.getLogger("dspy").setLevel(logging.ERROR)  # DSPy warns of answers that were cut off
    ends = endings()
    measured.write("arrives", section(rows(), ends))
    print(markdown(["how it ends", "sigadapt", "DSPy's adapter"], ends))
    print(markdown(["what the gateway sends", "sigadapt", "DSPy's adapter"], odd_answers()))


if __name__ == "__main__":
    main()
