"""DSPy's own adapter under a signature with sigadapt's fields."""

import asyncio
from typing import Any, cast

import dspy
import pytest
from dspy.adapters import utils
from support import Ask, May, Must, get_weather, lm_of

import sigadapt
from sigadapt import InputNeeded, SigadaptError, ToolCalls, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidSignature, InvalidToolDecl
from sigadapt.testing import Answer, Call, LoopbackProvider


class ToolsAlone(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls | None = dspy.InputField(default=None)
    answer: str = dspy.OutputField()


class Judge(dspy.Signature):
    """Say whether the calls answer the question."""

    question: str = dspy.InputField()
    calls: ToolCalls = dspy.InputField()
    good: bool = dspy.OutputField()


def called(program: Any, **inputs: Any) -> Any:
    return program(**inputs)


def awaited(program: Any, **inputs: Any) -> Any:
    return asyncio.run(program.acall(**inputs))


OWN: list[Any] = [
    None,
    dspy.ChatAdapter(),
    dspy.ChatAdapter(use_native_function_calling=True),
    dspy.JSONAdapter(),
    dspy.JSONAdapter(use_native_function_calling=False),
    dspy.XMLAdapter(),
    dspy.TwoStepAdapter(dspy.LM("openai/gpt-4o-mini")),
]


@pytest.mark.parametrize("signature", [Must, May, Ask, ToolsAlone])
@pytest.mark.parametrize("adapter", OWN, ids=lambda adapter: type(adapter).__name__)
@pytest.mark.parametrize("run", [called, awaited])
def test_dspys_own_adapter_is_refused_with_the_line_to_add(signature: Any, adapter: Any, run: Any):
    """adapter-plug-in: A forgotten adapter is said before the request."""
    with LoopbackProvider([Answer(text="hi")]) as provider:
        with dspy.context(lm=lm_of(provider), adapter=adapter), pytest.raises(InvalidSignature) as caught:
            run(dspy.Predict(signature), question="q", tools=[dspy.Tool(get_weather)])
        assert provider.received == ()
    assert caught.value.code == "forgotten_adapter"
    name = {"JSONAdapter": "JSONAdapter", "XMLAdapter": "adapters.XMLAdapter"}.get(type(adapter).__name__)
    assert f"dspy.configure(adapter=sigadapt.{name or 'ChatAdapter'}())" in str(caught.value)


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter(), sigadapt.ChatAdapter()])
def test_calls_as_an_input_are_text_for_any_adapter(adapter: Any):
    """adapter-plug-in: Calls as an input are taken by every adapter."""
    text = '{"good": true}' if isinstance(adapter, dspy.JSONAdapter) else "[[ ## good ## ]]\nTrue"
    with LoopbackProvider([Answer(text=text)]) as provider, dspy.context(lm=lm_of(provider), adapter=adapter):
        out = dspy.Predict(Judge)(question="q", calls=ToolCalls([{"name": "get_weather", "args": {}}]))
        assert out.good is True
        assert "get_weather" in str(provider.received[0].body)


def test_optimizers_describe_the_fields():
    """SIMBA, Refine and GEPA describe a program's signature so, outside of any call."""
    described: Any = cast("Any", utils).get_field_description_string
    with dspy.context(adapter=sigadapt.ChatAdapter()):
        assert "`tools`" in described(May.input_fields)
        assert "`calls`" in described(May.output_fields)
        # GEPA asks a plain ChatAdapter for the format of an answer that it says was wrong; nothing is sent.
        assert "`tools` (ToolDecls)" in str(dspy.ChatAdapter().format(May, [], {}))


# Agents whose tool requires confirmation, under an adapter that cannot stop for it.

PAID: list[int] = []
ADVICE = ("confirmed_by", "confirm=", "ChatAdapter", "calls.run")


def pay(eur: int) -> str:
    """Pay."""
    PAID.append(eur)
    return "paid"


MARKED = ToolDecls([ToolDecl.of(pay, requires_confirmation=True)])
FORMS: dict[str, Any] = {
    "declarations": MARKED,
    "a list": [*MARKED],
    "to_dspy()": MARKED.to_dspy(),
    "a toolset": Toolset("shop", MARKED),
}


def asyncified(program: Any, **inputs: Any) -> Any:
    return asyncio.run(cast("Any", dspy).asyncify(program)(**inputs))


def said(**fields: str) -> Answer:
    text = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items())
    return Answer(text=f"{text}[[ ## completed ## ]]")


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


@pytest.mark.parametrize("adapter", OWN, ids=lambda adapter: type(adapter).__name__)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("run", [called, awaited, asyncified])
def test_an_agent_fails_before_its_first_request(adapter: Any, form: str, run: Any):
    """adapter-plug-in: ReActV2 under a forgotten adapter fails before its first request."""
    with LoopbackProvider([Answer(calls=[Call("pay", {"eur": 5})])]) as provider:
        with dspy.context(lm=lm_of(provider), adapter=adapter):
            agent = cast("Any", dspy).ReActV2("question -> answer", tools=FORMS[form])
            with pytest.raises(InvalidSignature) as caught:
                run(agent, question="q")
        assert (caught.value.code, caught.value.tool) == ("forgotten_adapter", "pay")
        assert (provider.received, PAID) == ((), [])


@pytest.mark.parametrize("adapter", OWN[:4], ids=lambda adapter: type(adapter).__name__)
def test_an_agent_that_was_resumed_fails_too(adapter: Any):
    """adapter-plug-in: ReActV2 under a forgotten adapter fails before its first request."""
    with LoopbackProvider([Answer(calls=[Call("pay", {"eur": 5})])]) as provider:
        agent = cast("Any", dspy).ReActV2("question -> answer", tools=MARKED)
        ours = sigadapt.ChatAdapter(confirm="raise")
        with dspy.context(lm=lm_of(provider), adapter=ours), pytest.raises(InputNeeded) as waiting:
            agent(question="q")
        history = waiting.value.resume(MARKED, {waiting.value.requests[0].id: True})
        with dspy.context(lm=lm_of(provider), adapter=adapter), pytest.raises(InvalidSignature) as caught:
            agent(history=history)
        assert (caught.value.code, len(provider.received), PAID) == ("forgotten_adapter", 1, [5])


@pytest.mark.parametrize(
    ("adapter", "code"),
    [
        (None, "forgotten_adapter"),
        (dspy.ChatAdapter(), "forgotten_adapter"),
        (sigadapt.ChatAdapter(), "nobody_to_ask"),
        (sigadapt.ChatAdapter(confirm="raise"), "nobody_to_ask"),
    ],
    ids=["none", "DSPy's", "sigadapt's", "sigadapt's that waits"],
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("run", [called, awaited, asyncified])
@pytest.mark.parametrize("max_iters", [1, 5])
@pytest.mark.dspy_3_4
def test_dspys_react_fails_at_the_next_step(adapter: Any, code: str, form: str, run: Any, max_iters: int):
    """adapter-plug-in: ReAct under a forgotten adapter fails at the next step."""
    answer = said(next_thought="I pay.", next_tool_name="pay", next_tool_args='{"eur": 5}')
    with LoopbackProvider([answer]) as provider:
        with dspy.context(lm=lm_of(provider), adapter=adapter):
            react: Any = dspy.ReAct
            agent = react("question -> answer", tools=FORMS[form], max_iters=max_iters)
            with pytest.raises(SigadaptError) as caught:
                run(agent, question="q")
        assert (caught.value.code, caught.value.tool, PAID) == (code, "pay", [])
        assert not any(word in str(received.body) for received in provider.received for word in ADVICE)


def test_tools_that_ask_run_under_dspys_adapter():
    """adapter-plug-in: Tools that ask need no adapter of sigadapt."""
    asked: list[Any] = []

    def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        asked.append(args)
        return True

    script = [Answer(calls=[Call("pay", {"eur": 5})]), Answer(calls=[Call("submit", {"answer": "done"})])]
    for tools in (MARKED.confirmed_by(ask), ToolDecls([pay])):
        adapter = dspy.ChatAdapter(use_native_function_calling=True)
        with LoopbackProvider([*script]) as provider, dspy.context(lm=lm_of(provider), adapter=adapter):
            agent = cast("Any", dspy).ReActV2("question -> answer", tools=tools)
            assert agent(question="q").answer == "done"
    assert (asked, PAID) == ([{"eur": 5}], [5, 5])


def test_a_tool_that_is_shown_outside_of_a_program_is_shown():
    """A tool prints and formats anywhere but in a request that cannot ask."""
    [tool] = MARKED.to_dspy()
    assert "pay" in repr(tool)
    with pytest.raises(InvalidToolDecl, match="without asking"):
        tool(eur=5)


# `dspy.CodeAct` takes the source of a function into its interpreter.


def no_interpreter() -> Any:
    raise AssertionError("code was run")


@pytest.mark.parametrize("adapter", [None, sigadapt.ChatAdapter(), sigadapt.ChatAdapter(confirm="raise")])
@pytest.mark.parametrize("form", [*FORMS, "confirmed_by", "confirmed_by, to_dspy()"])
@pytest.mark.filterwarnings("ignore:CodeAct is deprecated")
def test_code_act_takes_no_tool_that_requires_confirmation(adapter: Any, form: str):
    """confirmation: A guarded tool has no source to take."""
    confirmed = MARKED.confirmed_by(lambda name, args, hint: True)
    forms = FORMS | {"confirmed_by": confirmed, "confirmed_by, to_dspy()": confirmed.to_dspy()}
    code_act: Any = cast("Any", dspy).CodeAct
    with dspy.context(adapter=adapter), pytest.raises(ValueError, match="only accepts functions"):
        code_act("question -> answer", tools=forms[form], interpreter_factory=no_interpreter)


@pytest.mark.filterwarnings("ignore:CodeAct is deprecated")
def test_code_act_takes_a_plain_function():
    """confirmation: A guarded tool has no source to take."""
    code_act: Any = cast("Any", dspy).CodeAct
    for tools in ([pay], ToolDecls([pay]), ToolDecls([pay]).to_dspy()):
        agent = code_act("question -> answer", tools=tools, interpreter_factory=no_interpreter)
        assert agent.tools["pay"].func is pay
