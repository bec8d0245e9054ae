"""Show on one screen what you declare, what leaves, what comes back, and what a faulty answer becomes.

The demo runs on the embedded loopback provider, which knows the answers to its questions. It needs no key and
no network. One of its answers is faulty; DSPy's adapter and sigadapt's both get it. If a model is given, the
sound questions go to that model instead.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import dspy
import typer

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.commands.arguments import WIRE_NAMES, EngineOption
from sigadapt.commands.printing import CODE, AsJson, calls_document, emit, layout, quiet, say, waiting
from sigadapt.errors import InvalidOption, ToolCallParseError
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.places import printable
from sigadapt.signatures.tool_decls import ToolDecls
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


class Asked(NamedTuple):
    """A question, and what the program got: the outputs, or the error's code and sentence."""

    question: str
    out: Any = None
    code: str | None = None
    error: str | None = None


class Demo(NamedTuple):
    """What the demo found.

    Args:
        where: which model was asked, and through which engine.
        leaves: the path of the request and the tools in its body; None for a real provider.
        asked: the sound questions.
        sent: the faulty call as it was sent; None for a real provider.
        faulty: what each adapter made of it, by the adapter's name.
    """

    where: str
    leaves: tuple[str, Any] | None
    asked: list[Asked]
    sent: str | None = None
    faulty: dict[str, Asked] | None = None


def policy(received: Received) -> Answer:
    """Return the answer to the question that the request holds."""
    asked = json.dumps(received.body, ensure_ascii=False)
    faulty = CUT_OFF if received.wire in _OF_TEXT else WRONG_TYPE
    known = {**ANSWERS, FAULTY_QUESTION: faulty}
    return next(answer for question, answer in known.items() if question in asked)


def on_loopback(wire: str, engine: str) -> Demo:
    """Return what the demo finds on the embedded provider."""
    changes: dict[str, Any] = {} if engine == "auto" else {"engine": engine}
    with LoopbackProvider(policy) as provider:
        lm = dspy.LM(**provider.lm_options(wire, **changes))
        # `auto` depends on what DSPy knows of a model; the demo sends tools on every wire.
        ours = ChatAdapter(tool_calling="native")
        asked = [_ask(lm, ours, Assist, question) for question in ANSWERS]
        sent = provider.received[0]
        where = f"{lm.model}, engine {lm.engine}, embedded provider"
        call = (CUT_OFF if wire in _OF_TEXT else WRONG_TYPE).calls[0]
        theirs = dspy.ChatAdapter(use_native_function_calling=True)
        faulty = {
            "dspy.ChatAdapter": _ask(lm, theirs, AssistOfDSPy, FAULTY_QUESTION),
            "sigadapt.ChatAdapter": _ask(lm, ours, Assist, FAULTY_QUESTION),
        }
        return Demo(where, (sent.path, sent.body["tools"]), asked, f"{call.name}({call.text})", faulty)


def on_model(model: str, engine: str) -> Demo:
    """Return what the demo finds on a real provider, with the key in its environment variable."""
    lm = dspy.LM(model, engine=engine)
    ours = ChatAdapter(tool_calling="native")
    return Demo(f"{model}, engine {engine}", None, [_ask(lm, ours, Assist, question) for question in ANSWERS])


def _ask(lm: dspy.LM, adapter: Any, signature: Any, question: str) -> Asked:
    tools: list[Any] = [get_weather] if signature is Assist else [dspy.Tool(get_weather)]
    with dspy.context(lm=lm, adapter=adapter):
        try:
            return Asked(question, dspy.Predict(signature)(question=question, tools=tools))
        except ToolCallParseError as error:
            bad = error.choice.tool_calls.invalid[0]
            return Asked(question, code=bad.code, error=bad.message)
        except Exception as error:  # what DSPy's adapter raises is shown
            if signature is Assist:  # a model that does not answer
                raise
            return Asked(question, code=type(error).__name__, error=str(error).partition("\n")[0])


def lines(demo: Demo) -> Iterator[tuple[str, str | None]]:
    """Yield the demo's lines, each with its style."""
    yield f"sigadapt demo: {demo.where}", "bold"
    path, tools = demo.leaves or ("", ToolDecls([get_weather]).to_openai())
    declares = [line for line in inspect.getsource(Assist).splitlines() if line]
    leaves = f"What leaves, the tools of {f'POST {path}' if path else 'the request'}:"
    for head, code in (
        ("You declare, with tools=[get_weather]:", declares),
        (leaves, layout(tools, 74).splitlines()),
    ):
        yield "", None
        yield head, "bold"
        yield from ((f"    {line}", CODE) for line in code)
    yield "", None
    yield "What comes back:", "bold"
    for asked in demo.asked:
        calls = asked.out.calls
        yield f"    > {asked.question}", None
        if calls and calls.text:
            yield f"        text    {calls.text}", None
        for call in calls or ():
            call_id = call.id if len(call.id) < 20 else f"{call.id[:12]}…"
            yield f"        call    {call}  id={call_id}", None
        if asked.out.answer:
            yield f"        answer  {asked.out.answer}", None
    if demo.faulty is None or demo.sent is None:
        return
    how = "a number for a text" if demo.sent.endswith("})") else "cut off"
    yield "", None
    yield f"What a faulty answer becomes, {how}: {demo.sent}", "bold"
    for adapter, asked in demo.faulty.items():
        if asked.code is None:
            good = ", ".join(map(str, ToolCalls(asked.out.calls or []))) or "none"
            yield f"    {adapter:22}a good call, {good}", "red"
        else:
            yield f"    {adapter:22}an error, {asked.code}", "green"
            yield f"        {printable(asked.error or '')}", None


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
        shown = on_model(model, engine) if model else on_loopback(loopback, engine)
    if as_json:
        emit("demo", **_document(shown))
        return
    for line, style in lines(shown):
        say(line, style)


def _document(shown: Demo) -> dict[str, Any]:
    path, tools = shown.leaves or (None, ToolDecls([get_weather]).to_openai())
    asked = [{"question": each.question, **_outputs(each)} for each in shown.asked]
    faulty = {adapter: _outputs(each) for adapter, each in (shown.faulty or {}).items()}
    document = {"where": shown.where, "path": path, "tools": tools, "asked": asked}
    return {**document, "sent": shown.sent, "faulty": faulty}


def _outputs(asked: Asked) -> dict[str, Any]:
    if asked.code is not None:
        return {"error": {"code": asked.code, "message": asked.error}}
    calls = asked.out.calls
    if calls is None or isinstance(calls, ToolCalls):
        return {"answer": asked.out.answer, "text": calls and calls.text, **calls_document(calls)}
    return {"calls": [{"name": c.name, "args": c.args} for c in calls.tool_calls]}
