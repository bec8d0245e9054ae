"""Hooks around the model call: their order, what they may change, and what happens on errors."""

from typing import Any

import dspy
import pytest
from dspy.clients.errors import LMError
from dspy.utils.callback import BaseCallback
from sending import ROUTES, send
from support import PARIS, Ask

import sigadapt
from sigadapt import Choice, ToolCall, ToolCallParseError, ToolCalls, ToolResults
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call, Failure, LoopbackProvider

WEATHER = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def choice_of(city: str) -> Choice:
    call = ToolCall(id="hooked", name="get_weather", args={"city": city})
    return Choice(tool_calls=ToolCalls(tool_calls=[call]), finish_reason="tool_calls")


def adding(**settings: Any) -> Any:
    def changed(request: Any) -> Any:
        return {**request, **settings}

    return changed


CALLED = {"id": "t1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
CALLING: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALLED]}


def saying(*messages: Any) -> Any:
    def changed(request: Any) -> Any:
        return {**request, "messages": [*request["messages"], *messages]}

    return changed


class Hook:
    """A hook that notes what it is asked, and answers what it was told to."""

    def __init__(self, name: str, log: list[str], **answers: Any) -> None:
        self.name, self.log, self.answers = name, log, answers
        self.seen: dict[str, Any] = {}
        self.context: Any = None

    def _asked(self, method: str, given: Any, context: Any) -> Any:
        self.log.append(f"{self.name}.{method}")
        self.seen[method], self.context = given, context
        answer = self.answers.get(method)
        return answer(given) if callable(answer) else answer

    def before_request(self, request: Any, context: Any) -> Any:
        return self._asked("before_request", request, context)

    def after_choice(self, choice: Any, context: Any) -> Any:
        return self._asked("after_choice", choice, context)

    def on_error(self, error: Any, context: Any) -> Any:
        return self._asked("on_error", error, context)


class AsyncHook(Hook):
    """The same, awaited."""

    async def before_request(self, request: Any, context: Any) -> Any:
        return self._asked("before_request", request, context)

    async def after_choice(self, choice: Any, context: Any) -> Any:
        return self._asked("after_choice", choice, context)

    async def on_error(self, error: Any, context: Any) -> Any:
        return self._asked("on_error", error, context)


GIVEN: Any = {"question": "Weather?", "tools": [WEATHER]}


def under(provider: LoopbackProvider, hooks: Any, wire: str, options: Any) -> Any:
    lm = dspy.LM(**provider.lm_options(wire))
    return dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(hooks=list(hooks), **options))


def ask(script: Any, *hooks: Any, wire: str = "openai", **options: Any) -> Any:
    with LoopbackProvider(script) as provider, under(provider, hooks, wire, options):
        return dspy.Predict(Ask)(**GIVEN), provider.received


async def aask(script: Any, *hooks: Any) -> Any:
    with LoopbackProvider(script) as provider, under(provider, hooks, "openai", {}):
        return await dspy.Predict(Ask).acall(**GIVEN), provider.received


def cities(out: Any) -> list[str]:
    return [call.args["city"] for call in out.calls]


def test_hooks_are_asked_in_order():
    """request-shaping: Hooks are asked in order."""
    log: list[str] = []
    out, received = ask([Answer(calls=[PARIS])], Hook("a", log), Hook("b", log))
    assert log == ["a.before_request", "b.before_request", "a.after_choice", "b.after_choice"]
    assert cities(out) == ["Paris"]
    assert len(received) == 1


def test_a_hook_may_change_the_request():
    """request-shaping: A hook may change the request."""
    log: list[str] = []
    first = Hook("a", log, before_request=adding(temperature=0.5))
    second = Hook("b", log, before_request=adding(tool_choice="required"))
    _, (received,) = ask([Answer(calls=[PARIS])], first, second)
    assert second.seen["before_request"]["temperature"] == 0.5, "a change goes on to the next hook"
    assert "temperature" not in first.seen["before_request"]
    assert (received.body["temperature"], received.body["tool_choice"]) == (0.5, "required")


def test_a_hook_may_answer_without_the_model():
    """request-shaping: The first choice ends the asking."""
    log: list[str] = []
    first = Hook("a", log, before_request=choice_of("Rome"))
    out, received = ask([Answer(calls=[PARIS])], first, Hook("b", log))
    assert cities(out) == ["Rome"]
    assert received == ()
    assert "b.before_request" not in log


AFTER = [
    ("before_request", Answer(calls=[PARIS]), ["before_request"]),
    ("on_error", Failure(400, "no such model"), ["before_request", "on_error", "after_choice"]),
    (
        "on_error",
        Answer(calls=[Call("get_weather", {"city": 42})]),
        ["before_request", "after_choice", "on_error"],
    ),
    ("on_error", Answer(finish="content_filter"), ["before_request", "after_choice", "on_error"]),
]


@pytest.mark.parametrize(("method", "reply", "asked"), AFTER)
def test_after_choice_gets_the_final_answer_once(method: str, reply: Any, asked: list[str]):
    """request-shaping: after_choice gets the final answer once."""
    log: list[str] = []
    out, _ = ask([reply], Hook("a", log, **{method: choice_of("Rome")}))
    assert log == [f"a.{name}" for name in asked]
    assert cities(out) == ["Rome"]


def test_what_a_hook_answers_is_checked_like_the_models():
    """request-shaping: What a hook answers is checked as the model's answer is."""
    bad = ToolCalls(tool_calls=[ToolCall(id="x", name="rm_rf", args={})])
    with pytest.raises(ToolCallParseError) as caught:
        ask([Answer(calls=[PARIS])], Hook("a", [], before_request=Choice(tool_calls=bad)))
    assert caught.value.code == "unknown_tool"


def _calls(choice: Choice) -> list[Any]:
    assert choice.tool_calls is not None
    return choice.tool_calls.tool_calls


def _adds_a_dict(choice: Choice) -> None:
    _calls(choice).append({"name": "rm_rf", "args": {}})


def _adds_a_call(choice: Choice) -> None:
    _calls(choice).append(ToolCall(id="x", name="rm_rf", args={}))


def _changes_arguments(choice: Choice) -> None:
    _calls(choice)[0].args["city"] = 5


def _changes_a_name(choice: Choice) -> None:
    object.__setattr__(_calls(choice)[0], "name", "rm_rf")


def _puts_other_calls(choice: Choice) -> None:
    calls = ToolCalls([ToolCall(id="x", name="rm_rf", args={})])
    object.__setattr__(choice, "tool_calls", calls)


@pytest.mark.parametrize("returns", [False, True], ids=["returns nothing", "returns the choice"])
@pytest.mark.parametrize(
    ("change", "code", "good"),
    [
        (_adds_a_dict, "unknown_tool", 1),
        (_adds_a_call, "unknown_tool", 1),
        (_changes_arguments, "schema_mismatch", 0),
        (_changes_a_name, "unknown_tool", 0),
        (_puts_other_calls, "unknown_tool", 0),
    ],
)
def test_what_a_hook_changes_in_place_is_checked(change: Any, code: str, good: int, returns: bool):
    """request-shaping: What a hook changes in place is checked, too."""

    def changed(choice: Choice) -> Choice | None:
        change(choice)
        return choice if returns else None

    out, _ = ask([Answer(calls=[PARIS])], Hook("a", [], after_choice=changed), on_invalid="keep")
    assert [call.code for call in out.calls.invalid] == [code]
    assert len(out.calls) == good


@pytest.mark.parametrize("junk", [None, 7, "x", {}, [], {"name": 3}, {"name": "get_weather", "args": 3}])
def test_junk_that_a_hook_leaves_in_a_choice_is_refused(junk: Any):
    """request-shaping: What a hook changes in place is checked, too."""

    def left(choice: Choice) -> None:
        _calls(choice).append(junk)

    hook = Hook("a", [], after_choice=left)
    with pytest.raises(sigadapt.SigadaptError):
        ask([Answer(calls=[PARIS])], hook)


def test_an_unreadable_answer_reaches_the_hooks():
    """request-shaping: A hook may answer in place of an error."""
    hook = Hook("a", [], on_error=choice_of("Rome"))
    out, _ = ask([b"<html>"], hook)
    assert cities(out) == ["Rome"]
    with pytest.raises(LMError):
        ask([b"<html>"], Hook("a", []))


FAILED_RESULT = [("/messages/3/is_error", "lowered")]
"""What the second request of a reask changes for OpenAI, which has no flag for a failed result."""


@pytest.mark.parametrize("then", [[PARIS], [Call("get_weather", {"city": 5})]], ids=["good", "bad"])
def test_hooks_know_the_changes_of_the_request_that_was_answered(then: list[Call]):
    """request-shaping: Hooks know the model, the signature, the tools and the changes."""
    contexts: list[Any] = []

    class Noting:
        def after_choice(self, choice: Any, context: Any) -> None:
            contexts.append(context)

        def on_error(self, error: Any, context: Any) -> Choice:
            contexts.append(context)
            return choice_of("Rome")

    script = [Answer(calls=[Call("get_weather", {"city": 4})]), Answer(calls=then)]
    _, received = ask(script, Noting(), on_invalid="reask")
    assert len(received) == 2
    assert len(contexts) == 1 + (then != [PARIS])
    for context in contexts:
        assert [(change.where, change.what) for change in context.changes] == FAILED_RESULT
        assert context.signature is Ask


def test_changes_are_kept_on_the_history_entry(capsys: pytest.CaptureFixture[str]):
    """request-shaping: Changes are kept on the history entry and nothing is printed."""
    sent = send("ollama", "litellm", options={"parallel_tool_calls": False})
    assert sent.whats == [("/parallel_tool_calls", "dropped")]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


async def test_async_hooks_are_awaited():
    """request-shaping: Async hooks are awaited on async calls."""
    log: list[str] = []
    out, received = await aask(
        [Answer(calls=[PARIS])],
        AsyncHook("a", log, before_request=adding(temperature=0.5)),
        Hook("b", log),
        AsyncHook("c", log, after_choice=choice_of("Rome")),
    )
    assert cities(out) == ["Rome"]
    assert received[0].body["temperature"] == 0.5
    assert log == [f"{name}.{step}" for step in ("before_request", "after_choice") for name in "abc"]
    out, received = await aask([Failure(500)], AsyncHook("a", log, on_error=choice_of("Oslo")))
    assert cities(out) == ["Oslo"]


@pytest.mark.parametrize("method", ["before_request", "after_choice", "on_error"])
def test_an_async_hook_on_a_synchronous_call_is_refused(method: str):
    """request-shaping: An async hook on a synchronous call is refused."""

    async def late(*_: Any) -> None:
        raise AssertionError("never awaited")

    hook: Any = type("Late", (), {method: staticmethod(late)})()
    script = [Failure(400)] if method == "on_error" else [Answer(calls=[PARIS])]
    with pytest.raises(InvalidOption, match="async") as caught:
        ask(script, hook)
    assert caught.value.field == "hooks"


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("before_request", 5),
        ("before_request", {"model": "m"}),
        ("before_request", adding(messages=[])),
        ("before_request", adding(model="openai/other")),
        ("before_request", adding(tools="get_weather")),
        ("before_request", adding(tools=[None])),
        ("before_request", adding(messages=5)),
        ("before_request", saying({"content": "Hi."})),
        ("before_request", saying({"role": "alien", "content": "Hi."})),
        ("before_request", saying({"role": "user", "content": 5})),
        ("before_request", saying({"role": "system", "content": None})),
        ("before_request", saying({"role": "tool", "tool_call_id": "t1", "content": "18 C"})),
        ("before_request", saying(CALLING)),
        ("before_request", saying(CALLING, {"role": "user", "content": "Hi."})),
        ("before_request", saying(CALLING, {"role": "tool", "tool_call_id": ["t1"], "content": "18 C"})),
        ("before_request", saying({**CALLING, "tool_calls": [{"id": "t1"}]})),
        ("after_choice", "x"),
        ("on_error", {}),
    ],
)
def test_what_a_hook_may_not_answer_is_refused(method: str, answer: Any):
    """request-shaping: What a hook may not answer is refused."""
    script = [Failure(400)] if method == "on_error" else [Answer(calls=[PARIS])]
    with pytest.raises(InvalidOption, match=method):
        ask(script, Hook("a", [], **{method: answer}))


@pytest.mark.parametrize("choice", [Choice(text=5), Choice(tool_calls=[PARIS])])  # pyright: ignore[reportArgumentType]
@pytest.mark.parametrize("method", ["before_request", "after_choice", "on_error"])
def test_a_choice_of_other_types_is_refused(method: str, choice: Choice):
    """request-shaping: What a hook may not answer is refused."""
    script = [Failure(400)] if method == "on_error" else [Answer(calls=[PARIS])]
    with pytest.raises(InvalidOption, match="a hook made a Choice with"):
        ask(script, Hook("a", [], **{method: choice}))


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
def test_a_hook_may_add_a_call_and_its_result(wire: str, engine: str):
    """request-shaping: A hook may change the request."""
    told = {"role": "tool", "tool_call_id": "t1", "content": "18 C"}
    got = send(wire, engine, options={"hooks": [Hook("a", [], before_request=saying(CALLING, told))]})
    assert all(text in str(got.body) for text in ("get_weather", "Oslo", "18 C"))


def redacted(request: Any) -> Any:
    rows = [
        {**row, "content": (row["content"] or "").replace("secret", "***")} for row in request["messages"]
    ]
    return {**request, "messages": rows}


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
def test_what_a_hook_changes_in_texts_is_sent(wire: str, engine: str):
    """request-shaping: A hook may change the request."""
    call = Call("get_weather", {"city": "Paris"})
    first = send(wire, engine, Answer(text="secret", reasoning="Hm.", signature="U0lH", calls=[call]))
    results = ToolResults.of(first.out.calls, [{"weather": "secret"}])
    hooks = {"hooks": [Hook("a", [], before_request=redacted)]}
    got = send(wire, engine, question="secret", results=results, options=hooks)
    assert "secret" not in str(got.body)
    assert str(got.body).count("***") == 3


@pytest.mark.parametrize("hooks", [[object()], "hook", 5, [None]])
def test_what_is_no_hook_is_refused(hooks: Any):
    """request-shaping: What is no hook is refused when the adapter is made."""
    with pytest.raises(InvalidOption) as caught:
        sigadapt.ChatAdapter(hooks=hooks)
    assert caught.value.field == "hooks"


class Callbacks(BaseCallback):
    """Which of DSPy's callbacks fired."""

    def __init__(self) -> None:
        self.fired: list[str] = []

    def on_adapter_format_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.fired.append("format")

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.fired.append("lm")

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.fired.append("lm ended" if exception is None else "lm failed")

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.fired.append("module")


def test_dspys_callbacks_still_fire():
    """request-shaping: DSPy's callbacks fire beside hooks."""
    callbacks = Callbacks()
    with dspy.context(callbacks=[callbacks]):
        ask([Answer(calls=[PARIS])], Hook("a", []))
    assert callbacks.fired == ["module", "format", "lm", "lm ended"]


class Spoiling:
    """A hook that edits what it is given, in place."""

    def before_request(self, request: Any, context: Any) -> None:
        parameters = request["tools"][0]["function"]["parameters"]
        parameters["properties"].clear()
        parameters["required"].clear()
        request["tools"].append({"type": "web_search"})


@pytest.mark.parametrize("strict", [False, True])
def test_what_a_hook_edits_is_its_own(strict: bool):
    """call-cost: What has changed is declared anew."""
    decls = sigadapt.ToolDecls([WEATHER])
    before = decls.to_openai()
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        for hooks in ([Spoiling()], []):
            adapter = sigadapt.ChatAdapter(tool_calling="native", hooks=hooks, strict=strict)
            with dspy.context(lm=lm, adapter=adapter):
                dspy.Predict(Ask)(question="?", tools=decls)
    spoiled, clean = (request.body["tools"] for request in provider.received)
    assert spoiled[0]["function"]["parameters"]["properties"] == {}
    assert [tool["function"]["name"] for tool in clean] == ["get_weather"]
    assert clean[0]["function"]["parameters"]["properties"] == {"city": {"type": "string"}}
    assert decls.to_openai() == before


@pytest.mark.parametrize("tool_calling", ["native", "prompted"])
def test_a_tool_that_a_hook_took_out_is_not_called(tool_calling: Any):
    """request-shaping: A hook may change the request."""

    def without_first(request: Any) -> Any:
        return {**request, "tools": request["tools"][1:]}

    away = Hook("a", [], before_request=without_first)
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    answer = Answer(calls=[PARIS]) if tool_calling == "native" else Answer(text=text)
    options = {"hooks": [away], "tool_calling": tool_calling, "on_invalid": "raise"}
    with pytest.raises(ToolCallParseError) as caught:
        send(answer=answer, tools=[WEATHER, {"name": "now"}], options=options)
    assert (caught.value.code, caught.value.tool) == ("unknown_tool", "get_weather")
    assert "the request offers 'now'" in caught.value.reason
