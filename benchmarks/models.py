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

import sigadapt
from sigadapt import ToolCalls, ToolDecls
from sigadapt.adapters.calling.prompted import sayable

PAGE = Path(__file__).parent.parent / "docs" / "models.md"
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
    config: Any = None


class Score(NamedTuple):
    """What came of all questions asked in one way."""

    asked: int
    parsed: int
    tool: int
    arguments: int
    errors: int
    tokens: float


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


def ways() -> list[Way]:
    """All ways to ask, DSPy's first."""
    forced = {"tool_choice": "required"}
    return [
        Way("DSPy, text", lambda: dspy.ChatAdapter(use_native_function_calling=False), ours=False),
        Way("DSPy, native", lambda: dspy.ChatAdapter(use_native_function_calling=True), ours=False),
        Way("sigadapt, native", lambda: _adapter(tool_calling="native"), ours=True),
        Way("sigadapt, native, recover", lambda: _adapter(tool_calling="native", recover=True), ours=True),
        *[
            Way(
                f"sigadapt, prompted, {form}",
                lambda form=form: _adapter(tool_calling="prompted", call_format=form),
                ours=True,
            )
            for form in sayable()
        ],
        Way(
            "sigadapt, prompted, hermes, a call required",
            lambda: _adapter(tool_calling="prompted"),
            ours=True,
            config=forced,
        ),
    ]


def _adapter(**options: Any) -> Any:
    return sigadapt.ChatAdapter(on_invalid="keep", use_json_adapter_fallback=False, **options)


def score(way: Way, lm: dspy.LM, asked: Sequence[Question]) -> Score:
    """Ask all questions in one way."""
    parsed = tool = arguments = errors = tokens = 0
    for question in asked:
        before = len(lm.history)
        try:
            name, args = _call(way, lm, question)
        except Exception:  # noqa: BLE001  (an answer that gives the program an error is what is counted)
            name, args, errors = None, {}, errors + 1
        tokens += sum(entry["usage"].get("prompt_tokens", 0) for entry in lm.history[before:])
        parsed += name is not None
        tool += name in question.right
        arguments += name in question.right and _fits(args, question.right[str(name)])
    return Score(len(asked), parsed, tool, arguments, errors, tokens / len(asked))


def _call(way: Way, lm: dspy.LM, question: Question) -> tuple[str | None, dict[str, Any]]:
    with dspy.context(lm=lm, adapter=way.adapter()):
        if way.ours:
            out = dspy.Predict(Ours)(
                question=question.text, tools=ToolDecls(question.tools), config=dict(way.config or {})
            )
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

Written by `python3 tasks.py models`, which builds a server; the questions took {minutes:.0f} minutes here.

The model is SmolLM2-135M-Instruct: 135 million parameters, about a thousandth of what people deploy. Two
cores can run it. The table says what a mode costs and loses, not what a good model does with it. It asks
{asked} questions of a public benchmark (Berkeley Function-Calling Leaderboard v4, simple and multiple), with
one right call each; temperature 0, at most 200 tokens. The server is llama.cpp's (`llama_cpp.server`) with
`--chat_format chatml-function-calling`, which ignores tools where no `tool_choice` is sent.

"Parsed" counts answers that gave the program a call; "right" those with the right tool, and with the right
tool and arguments. An error is an exception that the program gets.

| way to ask | parsed | right tool | right arguments | errors | prompt tokens |
| --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    """Ask, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable, help="a Python with llama_cpp.server")
    parser.add_argument("--model", required=True, help="the model's file")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--only", default="", help="words of the ways to ask, by commas")
    parser.add_argument("--print", action="store_true", dest="prints", help="print, and write no page")
    given = parser.parse_args()
    asked = questions(Path(os.environ["SIGADAPT_CORPUS"]), given.questions)
    started, rows = time.monotonic(), list[str]()
    with serving(given.python, given.model, 8431) as url:
        for way in ways():
            if given.only and not any(word in way.name for word in given.only.split(",")):
                continue
            lm = dspy.LM(
                "openai/smollm2", api_base=url, api_key="none", cache=False, temperature=0, max_tokens=200
            )
            got = score(way, lm, asked)
            shares = " | ".join(
                f"{count / got.asked:.0%}" for count in (got.parsed, got.tool, got.arguments, got.errors)
            )
            rows.append(f"| {way.name} | {shares} | {got.tokens:.0f} |")
            print(rows[-1], flush=True)
    if not given.prints:
        minutes = (time.monotonic() - started) / 60
        PAGE.write_text(HEAD.format(asked=len(asked), minutes=minutes) + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
