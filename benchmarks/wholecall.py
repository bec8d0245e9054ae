"""What a reader's own program pays: the whole call over HTTP, in processor time, beside other libraries.

Each side asks the same question with the same function as its tool, over its own connection, of the same
provider, which runs in a process of its own. It is processor time, because a call waits for its provider most
of the time, and no library changes that. A library that is not installed is left out and named.
"""

import importlib
import json
import random
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import dspy

import sigadapt
from benchmarks.measure import Table, micro, take_turns, times
from benchmarks.provider import provider
from sigadapt import ToolCalls, ToolDecls
from sigadapt.testing import Answer, Call, Received

Program: TypeAlias = Callable[[], Any]
Maker: TypeAlias = Callable[[dict[str, Any]], Program]

QUESTION = "What will the weather be in Paris?"
MESSAGES = [{"role": "user", "content": QUESTION}]
WIRES = ("openai", "responses", "anthropic", "gemini")
_FEWEST, _A_SECOND = 5, 30  # rounds
_ROW = 40  # calls of one library that follow each other without another's between them


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city.

    Args:
        city: The city's name.
        days: How many days ahead.
    """
    return f"{city} {days}"


def answer(_: Received) -> Answer:
    """One call of the tool."""
    return Answer(calls=[Call("get_weather", {"city": "Paris", "days": 3})])


class Ours(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class Theirs(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str = dspy.OutputField()  # with `| None` on either, DSPy's adapter refuses a good call
    calls: dspy.ToolCalls = dspy.OutputField()


def _of_dspy(adapter: dspy.Adapter, signature: Any, tools: Any, options: dict[str, Any]) -> Program:
    lm, predict = dspy.LM(**{**options, "cache": False}), dspy.Predict(signature)

    def call() -> Any:
        with dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None):
            return predict(question=QUESTION, tools=tools).calls.tool_calls[0].args

    return call


def _sigadapt(options: dict[str, Any]) -> Program:
    return _of_dspy(sigadapt.ChatAdapter(), Ours, [get_weather], options)


def _dspy(options: dict[str, Any]) -> Program:
    adapter = dspy.ChatAdapter(use_native_function_calling=True)
    return _of_dspy(adapter, Theirs, [dspy.Tool(get_weather)], options)


def _module(name: str) -> Any:
    return importlib.import_module(name)  # of a library that may not be installed


def openai_sdk(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The completions of the OpenAI SDK, and what to ask them."""
    client = _module("openai").OpenAI(base_url=options["api_base"], api_key="x", max_retries=0)
    tools = ToolDecls(get_weather).to_openai()
    return client.chat.completions, {"model": "gpt-4o-mini", "messages": MESSAGES, "tools": tools}


def _openai(options: dict[str, Any]) -> Program:
    completions, asked = openai_sdk(options)

    def call() -> Any:
        reply = completions.create(**asked)
        return json.loads(reply.choices[0].message.tool_calls[0].function.arguments)

    return call


def anthropic_sdk(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The messages of the Anthropic SDK, and what to ask them."""
    client = _module("anthropic").Anthropic(base_url=options["api_base"], api_key="x", max_retries=0)
    function = ToolDecls(get_weather).to_openai()[0]["function"]
    tool = {"name": "get_weather", "description": function["description"]}
    tool["input_schema"] = function["parameters"]
    return client.messages, {"model": "claude", "max_tokens": 1000, "messages": MESSAGES, "tools": [tool]}


def _anthropic(options: dict[str, Any]) -> Program:
    messages, asked = anthropic_sdk(options)

    def call() -> Any:
        return messages.create(**asked).content[0].input

    return call


def langchain_model(options: dict[str, Any]) -> Any:
    """A model of LangChain that has the tool."""
    kind = _module("langchain_openai").ChatOpenAI
    model = kind(model="gpt-4o-mini", base_url=options["api_base"], api_key="x", max_retries=0)
    return model.bind_tools([get_weather])


def _langchain(options: dict[str, Any]) -> Program:
    bound = langchain_model(options)

    def call() -> Any:
        return bound.invoke(QUESTION).tool_calls[0]["args"]

    return call


def litellm_completion(options: dict[str, Any]) -> Callable[..., Any]:
    """LiteLLM's completion of the question, with the tool."""
    address = {"model": options["model"], "api_base": options["api_base"], "api_key": "x"}
    asked = {"messages": MESSAGES, "tools": ToolDecls(get_weather).to_openai(), "num_retries": 0}
    return partial(_module("litellm").completion, **address, **asked)


def _litellm(options: dict[str, Any]) -> Program:
    complete = litellm_completion(options)

    def call() -> Any:
        return json.loads(complete().choices[0].message.tool_calls[0].function.arguments)

    return call


def pydantic_agent(options: dict[str, Any]) -> Any:
    """An agent of pydantic-ai that leaves the tool to its caller."""
    ai = _module("pydantic_ai")
    provider = _module("pydantic_ai.providers.openai").OpenAIProvider
    model = _module("pydantic_ai.models.openai").OpenAIChatModel(
        "gpt-4o-mini", provider=provider(base_url=options["api_base"], api_key="x")
    )
    function = ToolDecls(get_weather).to_openai()[0]["function"]
    tool = ai.ToolDefinition(
        name=function["name"],
        description=function["description"],
        parameters_json_schema=function["parameters"],
    )
    outputs = [str, ai.DeferredToolRequests]
    return ai.Agent(model, output_type=outputs, toolsets=[ai.ExternalToolset([tool])])


def _pydantic_ai(options: dict[str, Any]) -> Program:
    agent = pydantic_agent(options)

    def call() -> Any:  # a tool that is not run here ends the run with the call, as in the other programs
        return agent.run_sync(QUESTION).output.calls[0].args_as_dict()

    return call


OTHERS: dict[str, dict[str, Maker]] = {
    "openai": {
        "OpenAI SDK": _openai,
        "LangChain": _langchain,
        "LiteLLM": _litellm,
        "pydantic-ai": _pydantic_ai,
    },
    "anthropic": {"Anthropic SDK": _anthropic, "LiteLLM": _litellm},
}
MISSING = {"anthropic": " LangChain and pydantic-ai are measured on OpenAI's wire only."}
"""What the table of a wire says of the libraries that it lacks."""


def tables(seconds: float) -> Iterator[Table]:
    """The comparison with DSPy's adapter on each wire, and with the other libraries on two."""
    rounds = int(seconds * _A_SECOND) or _FEWEST
    with provider(answer) as options:
        rows: list[list[str]] = []
        for wire in WIRES:
            ours, theirs = processor_times([_sigadapt(options[wire]), _dspy(options[wire])], rounds)
            rows.append([wire, times(ours / theirs), micro(ours), micro(theirs)])
        told = (
            "README's first program over HTTP, connection and DSPy's own work included. The function is "
            "passed in a list with each call."
        )
        head = ("", "ratio to DSPy's adapter", "sigadapt", "DSPy's adapter")
        yield Table("A whole call, in processor time", told, head, rows)
        for wire in OTHERS:
            yield _beside_others(wire, options[wire], rounds)


def _beside_others(wire: str, options: dict[str, Any], rounds: int) -> Table:
    own = {"sigadapt": _sigadapt(options), "DSPy's adapter": _dspy(options)}
    told = (
        "Beside libraries without signatures and typed outputs, each as its documentation shows. In turn, "
        f"they alternate call by call; in a row, each makes {_ROW} calls before the next begins."
    )
    told += MISSING.get(wire, "")
    others = {name: if_installed(make, options) for name, make in OTHERS[wire].items()}
    return compared(f"A whole call beside other libraries: {wire}", told, own, others, rounds)


def compared(
    title: str, told: str, own: Mapping[str, Program], others: Mapping[str, Program | None], rounds: int
) -> Table:
    """The table of what a call of each side costs, in turn and many in a row, over sigadapt's."""
    sides = {**own, **{name: call for name, call in others.items() if call is not None}}
    missing = (f" {name} is left out, because it is not installed." for name in others if name not in sides)
    in_turn = processor_times([*sides.values()], rounds)
    in_a_row = processor_times([*sides.values()], max(rounds // 10, _FEWEST), in_a_row=_ROW)
    ours = [*sides].index("sigadapt")
    rows = [
        [name, times(one / in_turn[ours]), micro(one), times(many / in_a_row[ours]), micro(many)]
        for name, one, many in zip(sides, in_turn, in_a_row, strict=True)
    ]
    head = ("", "times sigadapt's", "in turn", "times sigadapt's", f"{_ROW} in a row")
    return Table(title, told + "".join(missing), head, rows)


def if_installed(make: Maker, options: dict[str, Any]) -> Program | None:
    """The program of a library; None if the library is not installed."""
    try:
        return make(options)
    except ModuleNotFoundError:
        return None


def processor_times(calls: list[Program], rounds: int, *, in_a_row: int = 1) -> list[float]:
    """The median seconds of processor time of each call, after two calls to get ready."""
    for call in [*calls, *calls]:
        if call() != {"city": "Paris", "days": 3}:
            raise AssertionError(call)
    taken: list[list[float]] = [[] for _ in calls]
    order, drawn = [*zip(calls, taken, strict=True)], random.Random(0)  # noqa: S311  (no secret)
    for _ in range(rounds):
        take_turns(order, drawn, in_a_row)
    return [statistics.median(seconds) for seconds in taken]
