"""Fuzz the readers of answers, whole and streamed, and the parser of arguments, guided by coverage (atheris).

    python3 tasks.py fuzz --seconds 60

The first byte of an input chooses what is read; the rest is a body, a stream or the text of arguments. It
starts from the loopback provider's answers on every wire, and half of the mutations work on the JSON instead
of on its bytes. What must hold for any input at all: no error but sigadapt's own, ids and positions unique,
and each good call the object that its text is. libFuzzer's own options are passed on (`-runs=1000`). An input
that broke a rule is kept in the directory it names; given as an argument, it is read again alone.
"""

# ruff: noqa: INP001, S101  (a script, in which a failed assertion is what is looked for)
# pyright: basic, reportAttributeAccessIssue=false, reportMissingModuleSource=false

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed; it has wheels for Linux on x86-64 alone.")

with atheris.instrument_imports(include=["sigadapt"]):
    from sigadapt import Choice, SigadaptError
    from sigadapt.response import choice_from_stream, choice_from_text, choices_from_response
    from sigadapt.schemas.arguments import parse_arguments
    from sigadapt.schemas.json_values import without_halves
    from sigadapt.testing import WIRES, Answer, Call, Received
    from sigadapt.text.formats import FORMATS
    from sigadapt.text.gate import TextGate

HOME = Path(tempfile.gettempdir(), "sigadapt-fuzz")
ANSWER = Answer(
    text="Let me look.",
    reasoning="Weather.",
    calls=[
        Call("get_weather", {"city": "Zürich", "deep": [1, {"a": None}]}, id="c1"),
        Call("now", "{}", id="c2"),
    ],
    signature="U0lH",
)
TOOLS = [{"name": "now"}, {"name": "get_weather"}]
FENCE = "`" * 12
LEAVES: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**30, "", "{}", '{"a":1}', '{"a":1', "null", "[1]", "\ud800", [], {}, [{}]),
    *("stop", "length", "max_tokens", "MAX_TOKENS", "tool_calls", "tool_use", "error", "c1", "call_1", "now"),
]  # fmt: skip


# What is read, and what must hold of it


def parser(data: bytes) -> None:
    """The text of arguments, of an answer that was cut off or not."""
    text = data.decode("utf-8", "surrogateescape")
    for cut_off in (False, True):
        args = parse_arguments(text, cut_off=cut_off)
        if isinstance(args, dict):
            assert args == strict(text)
        else:
            assert args.code in {"invalid_json", "truncated", "not_an_object", "duplicate_key"}
            assert len(args.message) < 500


def body(data: bytes) -> None:
    """A whole body, as an HTTP client decodes it."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return
    try:
        choices = choices_from_response(value)
    except SigadaptError:
        return
    for choice in choices:
        well_formed(choice)


def stream(data: bytes) -> None:
    """A stream, as bytes; the same in pieces is the same."""
    try:
        whole = choice_from_stream(data)
    except SigadaptError:
        return
    well_formed(whole)
    half = len(data) // 2
    assert choice_from_stream([data[:half], data[half:]]) == whole


def events(data: bytes) -> None:
    """A stream, as the events that an SDK decoded."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return
    try:
        well_formed(choice_from_stream(value))
    except SigadaptError:
        return


def markup(data: bytes) -> None:
    """A text that a model wrote: as it is, in a value, in a fence and in a thought; whole and streamed."""
    text = data.decode("utf-8", "replace")
    well_formed(choice_from_text(text, TOOLS))
    written = json.dumps({"name": "now", "arguments": {"zone": text}})
    calls = choice_from_text(f"<tool_call>\n{written}\n</tool_call>", TOOLS).tool_calls
    assert calls is not None
    assert [call.args for call in calls.in_order()] == [{"zone": text}]
    if FENCE not in text:
        assert choice_from_text(f"They write:\n{FENCE}\n{text}\n{FENCE}\nDone.", TOOLS).tool_calls is None
    if "</think" not in text:
        assert choice_from_text(f"<think>{text}</think>No.", TOOLS).tool_calls is None
    if "think" not in text.lower():
        said, size = choice_from_text(text, TOOLS).text or "", 1 + len(text) % 40
        gate = TextGate({"now": {}, "get_weather": {}}, ())
        shown = "".join(gate.take(text[at : at + size]) for at in range(0, len(text), size))
        assert said.startswith(shown) or "".join((shown + gate.remaining(said)).split()).endswith(
            "".join(said.split())
        )


def well_formed(choice: Choice) -> None:
    """Ids and positions unique, texts that are texts, and good calls that are what was sent."""
    assert choice.text is None or isinstance(choice.text, str)
    assert choice.finish_reason is None or isinstance(choice.finish_reason, str)
    calls = choice.tool_calls
    if calls is None:
        return
    every = calls.in_order()
    assert [call.index for call in every] == list(range(len(every)))
    assert len({call.id for call in every}) == len(every)
    for call in calls:
        assert call.name
        assert call.args == strict(call.arguments)
    for bad in calls.invalid:
        assert len(bad.message) < 2_000  # each control character is an escape


def strict(text: str) -> Any:
    """The object that a text is, by a parser other than the one under test; no text is the empty one."""
    value = json.loads(text, object_pairs_hook=once) if text.strip() else None
    return {} if value is None else without_halves(value)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are each there once."""
    assert len({key for key, _ in pairs}) == len(pairs), "a key twice"
    return dict(pairs)


TARGETS: tuple[Callable[[bytes], None], ...] = (parser, body, stream, events, markup)


def one_input(data: bytes) -> None:
    """What the fuzzer calls."""
    if data:
        TARGETS[data[0] % len(TARGETS)](data[1:])


# Where it starts, and how it goes on


def seeds() -> Iterator[bytes]:
    """One answer on every wire, whole and streamed, and texts of arguments."""
    for name, wire in WIRES.items():
        asked = Received(1, name, "", {}, {"messages": []}, "m", stream=False)
        yield b"\x01" + json.dumps(wire.format.render(ANSWER, asked)).encode()
        streamed = list(wire.format.stream(ANSWER, asked))
        yield b"\x02" + b"".join(wire.format.encode(streamed))
        yield b"\x03" + json.dumps(streamed).encode()
    use = {"toolUse": {"toolUseId": "t", "name": "now", "input": {"a": 1}}}
    yield b"\x01" + json.dumps({"output": {"message": {"content": [use]}}, "stopReason": "tool_use"}).encode()
    call = {"id": "c", "function": {"name": "now", "arguments": '{"a":1}'}}
    yield b"\x01" + json.dumps({"finish_reason": "TOOL_CALL", "message": {"tool_calls": [call]}}).encode()
    for each in FORMATS:
        yield b"\x04" + each.example.encode()
        for left, right in (
            "„“",
            "「」",
            ("« ", " »"),
            ("&lt;p&gt;", "&lt;/p&gt;"),
            ("Look:\n```\n", "\n```\nDone.\n"),
        ):
            yield (
                b"\x04"
                + f"They write {left}{each.example}{right} so.\n[1] A {{x}}, the <tool_call> tag.\n".encode()
            )
    for text in ('{"a": [1, -2.5e3, "x\\n", null]}', '{"a": 1, "a": 2}', '{"a": "', "null", "[1]"):
        yield b"\x00" + text.encode()


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Half of the time one value of the JSON changes, goes, or is there twice; else some bytes change."""
    rng = random.Random(seed)  # noqa: S311
    try:
        value = json.loads(data[1:]) if rng.random() < 0.5 else None
    except (ValueError, RecursionError):
        value = None
    found = list(containers(value))
    if found:
        alter(rng.choice(found), rng)
        changed = data[:1] + json.dumps(value).encode()
        if len(changed) <= most:
            return changed
    return atheris.Mutate(data, most)


def containers(value: Any) -> Iterator[Any]:
    """The objects and arrays of a value that hold anything, to a depth that no answer has."""
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if members(item) and depth < 50:
            yield item
            pending.extend((item[key], depth + 1) for key in members(item))


def members(value: Any) -> list[Any]:
    """The keys of an object, the positions of an array; none of anything else."""
    return list(value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ())


def alter(container: Any, rng: random.Random) -> None:
    """Change one member of an object or an array in place."""
    keys = members(container)
    key, other, way = rng.choice(keys), rng.choice(keys), rng.randrange(5)
    text: Any = container[key]
    if way == 0:
        del container[key]
    elif way == 1:
        container[key] = container[other]
    elif way == 2 and isinstance(container, list):
        container.insert(other, text)
    elif way == 3 and isinstance(text, str):
        cut = rng.randrange(len(text) + 1)
        odd = text[:cut] + rng.choice('{}[]",:\\') + text[cut:]
        container[key] = rng.choice([text[:cut], text[cut:], odd])
    else:
        container[key] = rng.choice(LEAVES)


def main() -> None:
    """Fuzz for as long as was asked, from the inputs of earlier runs and the seeds."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--seconds", type=int, default=60, help="how long (60)")
    known, rest = options.parse_known_args()
    found, corpus = HOME / "found", HOME / "corpus"
    for directory in (found, corpus):
        directory.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    inputs = [argument for argument in rest if not argument.startswith("-")] or [str(corpus)]
    flags = [argument for argument in rest if argument.startswith("-")]
    defaults = [
        f"-max_total_time={known.seconds}",
        f"-artifact_prefix={found}/",
        "-max_len=20000",
        "-timeout=10",
    ]
    atheris.Setup([sys.argv[0], *defaults, *flags, *inputs], one_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
