"""Show on one screen what you declare, what leaves, what comes back, and what a faulty answer becomes.

The demo runs on the embedded loopback provider, which knows the answers to its questions. It needs no key and
no network. One of its answers is faulty; DSPy's adapter and sigadapt's both get it. If a model is given, the
sound questions go to that model instead.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Annotated, Any

import dspy
import typer

from sigadapt import ChatAdapter, ToolCallParseError, ToolCalls, ToolDecls
from sigadapt.commands.terminal import (
    CODE,
    WIRE_NAMES,
    AsJson,
    EngineOption,
    calls_document,
    emit,
    layout,
    quiet,
    say,
    waiting,
)
from sigadapt.display import printable
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json
from sigadapt.testing import Answer, Call, LoopbackProvider, Received


class Assist(dspy.Signature):
    """Answer the question, with tools where they help."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class AssistOfDSPy(dspy.Signature):
    """The same for DSPy's adapter, which knows its own types of fields."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city."""
    raise NotImplementedError  # never called: nothing is executed


ANSWERS = {
    "What will the weather be in Paris and in Rome?": Answer(
        text="Let me look.",
        calls=[Call("get_weather", {"city": "Paris"}), Call("get_weather", {"city": "Rome", "days": 2})],
    ),
    "What is seven times six?": Answer(text="Forty-two."),
}
FAULTY_QUESTION = "And in Oslo?"
CUT_OFF = Answer(calls=[Call("get_weather", '{"city": "Osl')], finish="length")
WRONG_TYPE = Answer(calls=[Call("get_weather", {"city": 42})])
_OF_TEXT = frozenset({"openai", "responses"})  # wires whose calls can be cut off: they are text


def policy(request: Received) -> Answer:
    """Return the answer to the question that the request holds."""
    text = json.dumps(request.body, ensure_ascii=False)
    answers = {**ANSWERS, FAULTY_QUESTION: CUT_OFF if request.wire in _OF_TEXT else WRONG_TYPE}
    return next(answer for question, answer in answers.items() if question in text)


def on_loopback(wire: str, engine: str) -> Json:
    """Return the demo's document, with the answers of the embedded provider."""
    settings = {} if engine == "auto" else {"engine": engine}
    with LoopbackProvider(policy) as provider:
        lm = dspy.LM(**provider.lm_options(wire, **settings))
        document = on_model(lm, f"{lm.model}, engine {lm.engine}, embedded provider")
        request = provider.received[0]
        faulty_answer = CUT_OFF if wire in _OF_TEXT else WRONG_TYPE
        faulty_call = faulty_answer.calls[0]
        return {
            **document,
            "path": request.path,
            "tools": request.body["tools"],
            "sent": f"{faulty_call.name}({faulty_call.text})",
            "faulty": {
                "dspy.ChatAdapter": _ask(lm, AssistOfDSPy, FAULTY_QUESTION),
                "sigadapt.ChatAdapter": _ask(lm, Assist, FAULTY_QUESTION),
            },
        }


def on_model(lm: dspy.LM, model: str) -> Json:
    """Return the demo's document, with a model's answers to the sound questions."""
    return {
        "where": model,
        "path": None,
        "tools": ToolDecls([get_weather]).to_openai(),
        "asked": [{"question": question, **_ask(lm, Assist, question)} for question in ANSWERS],
        "sent": None,
        "faulty": {},
    }


def _ask(lm: dspy.LM, signature: Any, question: str) -> Json:
    """Return what the program gets for a question: its outputs, or the code and message of an error."""
    tools: list[Any] = [get_weather]
    # `auto` depends on what DSPy knows of a model; the demo sends tools on every wire.
    adapter: Any = ChatAdapter(tool_calling="native")
    if signature is AssistOfDSPy:
        tools = [dspy.Tool(get_weather)]
        adapter = dspy.ChatAdapter(use_native_function_calling=True)
    with dspy.context(lm=lm, adapter=adapter):
        try:
            answer: Any = dspy.Predict(signature)(question=question, tools=tools)
        except ToolCallParseError as error:
            calls = error.choice.tool_calls or ToolCalls()
            bad = calls.invalid[0]
            return {"error": {"code": bad.code, "message": bad.message}}
        except Exception as error:  # what DSPy's adapter raises is shown
            if signature is Assist:  # a model that does not answer
                raise
            return {"error": {"code": type(error).__name__, "message": str(error).partition("\n")[0]}}
    if signature is AssistOfDSPy:
        return {"calls": [{"name": c.name, "args": c.args} for c in answer.calls.tool_calls]}
    text = None if answer.calls is None else answer.calls.text
    return {"answer": answer.answer, "text": text, **calls_document(answer.calls)}


def lines(demo: Json) -> Iterator[tuple[str, str | None]]:
    """Yield the demo's lines, each with its style."""
    yield f"sigadapt demo: {demo['where']}", "bold"
    declares = [line for line in inspect.getsource(Assist).splitlines() if line]
    request = f"POST {demo['path']}" if demo["path"] else "the request"
    sections = {
        "You declare, with tools=[get_weather]:": declares,
        f"What leaves, the tools of {request}:": layout(demo["tools"], 74).splitlines(),
    }
    for head, code in sections.items():
        yield "", None
        yield head, "bold"
        yield from ((f"    {line}", CODE) for line in code)
    yield "", None
    yield "What comes back:", "bold"
    for question in demo["asked"]:
        yield from ((line, None) for line in _answer_lines(question))
    if demo["faulty"]:
        yield from _faulty_lines(demo)


def _answer_lines(question: Json) -> Iterator[str]:
    yield f"    > {question['question']}"
    if question["calls"] and question["text"]:
        yield f"        text    {question['text']}"
    for call in ToolCalls(question["calls"]):
        call_id = call.id if len(call.id) < 20 else f"{call.id[:12]}…"
        yield f"        call    {call}  id={call_id}"
    if question["answer"]:
        yield f"        answer  {question['answer']}"


def _faulty_lines(demo: Json) -> Iterator[tuple[str, str | None]]:
    flaw = "a number for a string" if demo["sent"].endswith("})") else "cut off"
    yield "", None
    yield f"What a faulty answer becomes, {flaw}: {demo['sent']}", "bold"
    for adapter, result in demo["faulty"].items():
        if "error" in result:
            yield f"    {adapter:22}an error, {result['error']['code']}", "green"
            yield f"        {printable(result['error']['message'])}", None
        else:
            good = ", ".join(map(str, ToolCalls(result["calls"]))) or "none"
            yield f"    {adapter:22}a good call, {good}", "red"


def demo(
    wire: Annotated[
        str,
        typer.Option(
            help=f"The wire of the embedded provider: {', '.join(WIRE_NAMES)}.",
            autocompletion=lambda: list(WIRE_NAMES),
        ),
    ] = "openai-chat",
    engine: EngineOption = "auto",
    model: Annotated[
        str | None, typer.Option(help="Ask a real provider instead, such as openai/gpt-4o-mini (your key).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the whole flow on one screen.

    It shows what you declare, what is sent, what comes back, and what a faulty answer becomes.
    """
    quiet()
    loopback = WIRE_NAMES.get(wire, wire)
    if loopback not in WIRE_NAMES.values():
        reason = f"{wire!r} is not one of {', '.join(WIRE_NAMES)}"
        raise InvalidOption(reason, field="wire")
    with waiting(f"asking {model or 'the embedded provider'} ..."):
        if model:  # its key is in the environment
            document = on_model(dspy.LM(model, engine=engine), f"{model}, engine {engine}")
        else:
            document = on_loopback(loopback, engine)
    if as_json:
        emit("demo", **document)
        return
    for line, style in lines(document):
        say(line, style)
