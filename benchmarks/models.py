"""A real model: a public benchmark's questions through DSPy's adapter and sigadapt's, in every mode.

`python3 tasks.py models` builds a small server and runs this against it; `SIGADAPT_CORPUS` names the
questions. The page says which model and how small it is: its figures say what a mode costs and loses, not
what a good model would do with it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy
import litellm
from sigadapt.adapters.calling.prompted import writers

import sigadapt
from sigadapt import ToolCalls, ToolDecls

PAGE = Path(__file__).parent.parent / ".models" / "models.md"
FIRST = object()
MOST = 120  # tokens of an answer; a call of these questions is shorter
# Two threads that wait for each other are slow on a busy machine.
THREADS = ("--n_threads", "1", "--n_threads_batch", "1")
KINDS = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}  # the benchmark's words


class Theirs(dspy.Signature):
    """Answer the question with a call of one of the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


class Ours(dspy.Signature):
    """Answer the question with a call of one of the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    tool_calls: ToolCalls | None = dspy.OutputField()


class Question(NamedTuple):
    """One question, its tools, and the right call."""

    text: str
    tools: list[dict[str, Any]]
    right: dict[str, dict[str, list[Any]]]


class Way(NamedTuple):
    """One way to ask."""

    name: str
    adapter: Callable[[], Any]
    ours: bool
    choice: Any = None  # a `tool_choice`; FIRST names the first tool


class Outcome(NamedTuple):
    """What came of one question asked in one way."""

    way: str
    question: int
    parsed: bool
    tool: bool
    arguments: bool
    error: str
    tokens: int


def questions(corpus: Path, most: int) -> list[Question]:
    """The benchmark's simple and multiple questions, taken in turn."""
    named = ("BFCL_v4_simple_python", "BFCL_v4_multiple")
    by_kind = [list(_questions(corpus / "bfcl", name)) for name in named]
    return [each for pair in zip(*by_kind, strict=False) for each in pair][:most]


def _questions(folder: Path, name: str) -> Iterator[Question]:
    rows = [json.loads(line) for line in (folder / f"{name}.json").read_text().splitlines() if line]
    answers = (folder / "possible_answer" / f"{name}.json").read_text().splitlines()
    right = {row["id"]: row["ground_truth"][0] for row in map(json.loads, filter(None, answers))}
    for row in rows:
        tools = [{**tool, "parameters": _schema(tool["parameters"])} for tool in row["function"]]
        yield Question(row["question"][0][-1]["content"], tools, right[row["id"]])


def _schema(value: Any) -> Any:
    """A schema in the benchmark's words as JSON Schema."""
    if isinstance(value, list):
        return [_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _schema(item) for key, item in value.items() if key != "optional"}
    if isinstance(made.get("type"), str):
        made["type"] = KINDS.get(made["type"], made["type"])
    return made


def known() -> None:
    """Let DSPy's adapter call tools natively: it asks a catalogue that does not know the model."""
    litellm.register_model(
        {"openai/smollm2": {"litellm_provider": "openai", "mode": "chat", "supports_function_calling": True}}
    )


def ways() -> list[Way]:
    """All ways to ask, DSPy's first."""
    return [
        Way("DSPy, text", lambda: dspy.ChatAdapter(use_native_function_calling=False), ours=False),
        Way("DSPy, native", lambda: dspy.ChatAdapter(use_native_function_calling=True), ours=False),
        Way("sigadapt, native", lambda: _adapter(tool_calling="native"), ours=True),
        Way("sigadapt, native, recover", lambda: _adapter(tool_calling="native", recover=True), ours=True),
        Way(
            "sigadapt, native, `auto` sent",
            lambda: _adapter(tool_calling="native"),
            ours=True,
            choice="auto",
        ),
        Way(
            "sigadapt, native, first tool named",
            lambda: _adapter(tool_calling="native"),
            ours=True,
            choice=FIRST,
        ),
        *[
            Way(
                f"sigadapt, prompted, {form}",
                lambda form=form: _adapter(tool_calling="prompted", call_format=form),
                ours=True,
            )
            for form in writers()
        ],
        Way(
            "sigadapt, prompted, hermes, a call required",
            lambda: _adapter(tool_calling="prompted"),
            ours=True,
            choice="required",
        ),
    ]


def _adapter(**options: Any) -> Any:
    return sigadapt.ChatAdapter(on_invalid="keep", use_json_adapter_fallback=False, **options)


def ask(way: Way, lm: dspy.LM, at: int, question: Question) -> Outcome:
    """Ask one question in one way."""
    before, error = len(lm.history), ""
    name, args = None, dict[str, Any]()
    try:
        name, args = _call(way, lm, question)
    except Exception as raised:  # noqa: BLE001  (an answer that gives the program an error is what is counted)
        error = type(raised).__name__
    tokens = sum(entry["usage"].get("prompt_tokens", 0) for entry in lm.history[before:])
    is_right = name in question.right
    fits = is_right and _fits(args, question.right[str(name)])
    return Outcome(way.name, at, name is not None, is_right, fits, error, tokens)


def _call(way: Way, lm: dspy.LM, question: Question) -> tuple[str | None, dict[str, Any]]:
    with dspy.context(lm=lm, adapter=way.adapter()):
        if way.ours:
            tools, choice = ToolDecls(question.tools), way.choice
            if choice is FIRST:
                choice = {"type": "function", "function": {"name": question.tools[0]["name"]}}
            config = {"tool_choice": choice} if choice else {}
            out = dspy.Predict(Ours)(question=question.text, tools=tools, config=config)
        else:
            tools = [_dspys(tool) for tool in question.tools]
            out = dspy.Predict(Theirs)(question=question.text, tools=tools)
    calls = out.tool_calls.tool_calls if out.tool_calls is not None else []
    return (calls[0].name, calls[0].args) if calls else (None, {})


def _dspys(tool: dict[str, Any]) -> dspy.Tool:
    def never(**given: Any) -> None:
        raise AssertionError(given)

    args = tool["parameters"].get("properties", {})
    return dspy.Tool(never, name=tool["name"], desc=tool["description"], args=args)


def _fits(args: dict[str, Any], right: dict[str, list[Any]]) -> bool:
    """Whether arguments are among the benchmark's; an empty text there means that one may be left out."""
    if not args.keys() <= right.keys():
        return False
    return all(_is_among(args[key], values) if key in args else "" in values for key, values in right.items())


def _is_among(value: Any, values: list[Any]) -> bool:
    return any(_same(value, each) for each in values)


def _same(value: Any, right: Any) -> bool:
    if isinstance(value, str) and isinstance(right, str):
        return _bare(value) == _bare(right)
    if isinstance(value, list) and isinstance(right, list):
        return len(value) == len(right) and all(map(_same, value, right))
    if isinstance(value, dict) and isinstance(right, dict):
        return _fits(value, right)
    return value == right and isinstance(value, bool) == isinstance(right, bool)


def _bare(text: str) -> str:
    return "".join(each for each in text.casefold() if each.isalnum())


@contextmanager
def serving(python: str, model: str, port: int) -> Iterator[str]:
    """A server of the model on this machine, until the block ends."""
    arguments = [
        "--model",
        model,
        "--port",
        str(port),
        "--n_ctx",
        "4096",
        *THREADS,
        "--chat_format",
        "chatml-function-calling",
    ]
    process = subprocess.Popen(
        [python, "-m", "llama_cpp.server", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(120):
            try:
                urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=2).close()
                break
            except (URLError, OSError):
                time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


HEAD = """# A real model

Written by `python3 tasks.py models`, which builds a server. It takes some minutes for ten questions on two
cores, and goes on where it was stopped; this page holds the {asked} questions that were asked in every way
so far.

The model is SmolLM2-135M-Instruct: 135 million parameters, about a thousandth of what people deploy. The
table says what a mode costs and loses, not what a good model does with it. The questions are those of a
public benchmark (Berkeley Function-Calling Leaderboard v4, simple and multiple in turn), with one right
call each; temperature 0, at most {most} tokens. The server is llama-cpp-python's with `--chat_format
chatml-function-calling`, which ignores tools where no `tool_choice` is sent.

"Parsed" counts answers that gave the program a call; "right" those with the right tool, and with the right
tool and arguments. An error is an exception that the program gets: under sigadapt, a required call that did
not come.

This model is too small to choose a form of prompted calls by: it writes a Python function in place of a
call, whatever form it is asked for, and other words of the prompt changed that in one answer of fourteen.
The default form is Hermes', because most open models were trained on it and it costs about as many tokens
as the others.

| way to ask | parsed | right tool | right arguments | errors | prompt tokens |
| --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    """Ask, and write the page; what is recorded already is not asked again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable, help="a Python with llama_cpp.server")
    parser.add_argument("--model", required=True, help="the model's file")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--only", default="", help="words of the ways to ask, by commas")
    parser.add_argument("--record", type=Path, required=True, help="a file of JSON lines to go on with")
    given = parser.parse_args()
    asked = questions(Path(os.environ["SIGADAPT_CORPUS"]), given.questions)
    chosen = [way for way in ways() if any(word in way.name for word in given.only.split(","))]
    outcomes = recorded(given.record)
    known()
    done = {(each.way, each.question) for each in outcomes}
    with serving(given.python, given.model, 8431) as url, given.record.open("a") as record:
        for at, question in enumerate(asked):
            for way in chosen:
                if (way.name, at) in done:
                    continue
                outcomes.append(ask(way, model(url), at, question))
                record.write(json.dumps(outcomes[-1]._asdict()) + "\n")
                record.flush()
    PAGE.write_text(page(outcomes))


def model(url: str) -> dspy.LM:
    """The model, without a memory of earlier answers; LiteLLM sends `max_tokens`, the only limit it knows."""
    limits = {"temperature": 0, "max_tokens": MOST}
    return dspy.LM("openai/smollm2", engine="litellm", api_base=url, api_key="none", cache=False, **limits)


def recorded(path: Path) -> list[Outcome]:
    """The outcomes that a file holds."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Outcome(**json.loads(line)) for line in lines]


def page(outcomes: Sequence[Outcome]) -> str:
    """The page: the questions that were asked in every way, one row a way."""
    by_way: dict[str, dict[int, Outcome]] = {}
    for each in outcomes:
        by_way.setdefault(each.way, {})[each.question] = each
    common = set.intersection(*(set(answers) for answers in by_way.values()))
    rows = [_row(name, [answers[at] for at in sorted(common)]) for name, answers in by_way.items()]
    return HEAD.format(asked=len(common), most=MOST) + "\n".join(rows) + "\n"


def _row(name: str, got: Sequence[Outcome]) -> str:
    counts = (sum(bool(each[place]) for each in got) for place in (2, 3, 4, 5))
    shares = " | ".join(f"{count / len(got):.1%}" for count in counts)
    return f"| {name} | {shares} | {sum(each.tokens for each in got) / len(got):.0f} |"


if __name__ == "__main__":
    main()
