"""What an agent's model reads of a plain history, and what it says without a call."""

import json
import logging
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from agents import DSPY_AGENT, Shop, looks, serving, settings_of_dspy, submits, turn
from support import ADAPTERS, WIRES, start

import sigadapt
from sigadapt import ToolCalls
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.events import TextDelta
from sigadapt.testing import Answer, Call, Failure, LoopbackProvider, Received

KINDS: dict[str, Any] = {"sigadapt.ReAct": sigadapt.ReAct, "dspy.ReActV2": DSPY_AGENT}
ONE, TWO = "question -> answer", "question -> answer, score: int"
STOCK = ToolCalls([{"id": "c1", "name": "stock", "args": {"title": "Emma"}}])
LIVED = STOCK.run([Shop().stock])
SUBMITTED = ToolCalls([{"id": "s1", "name": "submit", "args": {"answer": "Seven."}}])

Q1: dict[str, Any] = {"question": "Q1"}
BERLIN = {**Q1, "answer": "Berlin"}
SEVEN = {"results": LIVED, "answer": "Seven."}
OF_SUBMIT = sigadapt.ToolResults.of(SUBMITTED, [{"answer": "Seven."}])

PLAIN: dict[str, tuple[list[dict[str, Any]], list[list[str]], list[str]]] = {
    "an answer": ([BERLIN], [["Berlin"]], []),
    "three answers": (
        [{"question": f"Q{n}", "answer": f"A{n}"} for n in (1, 2, 3)],
        [["A1"], ["A2"], ["A3"]],
        [],
    ),
    "two outputs": ([{**BERLIN, "score": 7041}], [["Berlin", "7041"]], []),
    "one of two outputs": ([{**Q1, "score": 7041}], [["7041"]], []),
    "a question alone": ([Q1], [], []),
    "an empty answer": ([{**Q1, "answer": ""}], [], []),
    "nothing": ([], [], []),
    "results, then words": ([{**Q1, "calls": STOCK}, SEVEN], [["Seven."]], []),
    "results and words of one turn": ([{**Q1, "tool_calls": STOCK, **SEVEN}], [["Seven."]], []),
    "words beside calls whose results come later": (
        [{**Q1, "calls": STOCK, "answer": "Let me look."}, SEVEN],
        [["Let me look."], ["Seven."]],
        [],
    ),
    "a saved thought": ([{**BERLIN, "next_thought": {"content": "Hm."}}], [["Hm.", "Berlin"]], []),
    "what was submitted": ([{**Q1, "tool_calls": SUBMITTED, **SEVEN, "results": OF_SUBMIT}], [], []),
    "a prediction's items": (
        [{**BERLIN, "history": {"messages": []}, "termination_reason": "submit"}],
        [["Berlin"]],
        ["history", "termination_reason"],
    ),
    "another program's values": (
        [{**BERLIN, "mood": "CHEERFUL", "trajectory": {"thought_0": "Hm"}}],
        [["Berlin"]],
        ["mood", "trajectory"],
    ),
    "calls twice": ([{**Q1, "calls": STOCK, "more": SUBMITTED, "results": LIVED}], [], ["more"]),
}
"""Histories: what the assistant says in them, by parts of each text, and what is on record."""


def said(body: Any) -> list[str]:
    """The words of the assistant in a request, on any wire."""
    texts: list[str] = []
    for row in body.get("messages") or body.get("contents") or body["input"]:
        content = row.get("parts") or row.get("content")
        parts: list[Any] = [{"text": content}] if isinstance(content, str) else content or []
        if row.get("role") in ("assistant", "model"):
            texts.append("\n".join(part["text"] for part in parts if part.get("text")))
    return [text for text in texts if text]


def changes_of(net: Any) -> list[Any]:
    """What is on record of the requests so far."""
    assert net.received
    entries: Any = settings_of_dspy.lm.history
    return [change for entry in entries for change in entry.get("changes") or ()]


def submitted(signature: str) -> dict[str, Any]:
    return {"answer": "Done.", "score": 1} if signature == TWO else {"answer": "Done."}


@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_history(name: str, kind: str, how: str) -> None:
    """agent-runs: A plain history is sent."""
    events, words, dropped = PLAIN[name]
    signature = TWO if "output" in name else ONE
    with serving([turn(Call("submit", submitted(signature)))]) as net:
        agent = KINDS[kind](signature, tools=Shop().tools)
        start(agent, how, question="Now?", history=dspy.History(messages=events))
        changes = changes_of(net)
    texts = said(net.received[0].body)
    assert len(texts) == len(words)
    assert all(part in text for text, parts in zip(texts, words, strict=True) for part in parts)
    assert not any("None" in text or "content" in text for text in texts)
    assert name == "a saved thought" or not any("next_thought" in text for text in texts)
    assert [change.what for change in changes] == ["dropped"] * bool(dropped)
    assert all(f"'{each}' of event 0" in changes[0].why for each in dropped)


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_form_of_an_old_answer(kind: str, wire: str, adapter: Any, mode: str) -> None:
    """agent-runs: A plain history is sent."""
    text = '<tool_call>\n{"name": "submit", "arguments": {"answer": "Done.", "score": 1}}\n</tool_call>'
    script = [Answer(text=text) if mode == "prompted" else turn(Call("submit", submitted(TWO)))] * 2
    history = dspy.History(messages=[{"question": "Q1", "answer": "Berlin", "score": 7041}])
    with serving(script, wire) as net, dspy.context(adapter=adapter(tool_calling=mode)):
        form: Any = adapter()
        make: Any = dspy.Signature
        expected: Any = form.format_assistant_message_content(make(TWO), history.messages[0])
        KINDS[kind](TWO, tools=Shop().tools)(question="Now?", history=history)
    assert [each.strip() for each in said(net.received[0].body)] == [expected.strip()]


def test_a_key_that_is_nearly_an_output_is_refused() -> None:
    """agent-runs: A plain history is sent."""
    agent = sigadapt.ReAct(ONE, tools=Shop().tools)
    with serving([submits()]) as net, pytest.raises(InvalidHistory, match="Did you mean 'answer'"):
        agent(question="q", history={"messages": [{"question": "Q1", "anwser": "Berlin"}]})
    assert not net.received


def test_a_plain_history_is_healed() -> None:
    """agent-runs: A plain history is sent."""
    events = [{"answer": "lost"}, {"question": "Q1", "answer": "Berlin"}, {"question": "Q2", "calls": STOCK}]
    with serving([submits()], orphans="heal") as net:
        sigadapt.ReAct(ONE, tools=Shop().tools)(question="Now?", history={"messages": events})
        reasons = " ".join(change.why for change in changes_of(net))
    assert said(net.received[0].body)[0] == "Berlin"
    assert "'lost' is dropped" in reasons
    assert "gets a failed result" in reasons
    assert "never answered" not in reasons


def forced(request: Received) -> bool:
    """Whether a request makes the model submit."""
    body: Any = request.body
    config: Any = body.get("toolConfig") or {}
    choice: Any = body.get("tool_choice", config.get("functionCallingConfig"))
    names: list[Any] = [tool.get("function", tool).get("name") for tool in body["tools"]]
    return "submit" in json.dumps(choice) or choice == "required" or names == ["submit"]


def wordy(text: str, **outputs: Any) -> Callable[[Received], Answer]:
    """A model that never calls before it must."""
    return lambda request: turn(Call("submit", outputs)) if forced(request) else Answer(text=text, chunk=4)


CHAT = "[[ ## answer ## ]]\nHello.\n\n[[ ## completed ## ]]"
THOUGHT = "[[ ## next_thought ## ]]\nLet me think."
TEXTS: dict[str, tuple[Any, str, str | None]] = {
    "plain": (sigadapt.ChatAdapter, "Hello.", "Hello."),
    "with space": (sigadapt.ChatAdapter, " \n Hello.\n\n", "Hello."),
    "marked": (sigadapt.ChatAdapter, CHAT, "Hello."),
    "thought and answer": (sigadapt.ChatAdapter, f"{THOUGHT}\n\n{CHAT}", "Hello."),
    "an end mark alone": (sigadapt.ChatAdapter, "Hello.\n\n[[ ## completed ## ]]", "Hello."),
    "a thought alone": (sigadapt.ChatAdapter, THOUGHT, None),
    "JSON under ChatAdapter": (sigadapt.ChatAdapter, '{"answer": "Hello."}', "Hello."),
    "plain under JSONAdapter": (sigadapt.JSONAdapter, "Hello.", "Hello."),
    "JSON": (sigadapt.JSONAdapter, '{"answer": "Hello."}', "Hello."),
    "XML": (sigadapt.adapters.XMLAdapter, "<answer>\nHello.\n</answer>", "Hello."),
    "another JSON": (sigadapt.ChatAdapter, '{"city": "Rome"}', '{"city": "Rome"}'),
}
"""What a model says without a call, under an adapter: the answer, or None if it has to submit."""


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
@pytest.mark.parametrize("name", TEXTS)
def test_words_without_a_call(name: str, how: str, wire: str, caplog: pytest.LogCaptureFixture) -> None:
    """agent-runs: Words without a call are the answer."""
    make, text, expected = TEXTS[name]
    logging.getLogger("dspy").propagate = True
    for signature in (ONE, "question -> answer: str | None"):
        agent = sigadapt.ReAct(signature, tools=Shop().tools)
        with serving(wordy(text, answer="Done."), wire) as net, dspy.context(adapter=make()):
            caplog.clear()
            out = start(agent, how, question="q")
            again = agent(question="And?", history=json.loads(out.history.model_dump_json()))
        ending = ("Done.", "forced_submit") if expected is None else (expected, "text")
        assert (out.answer, out.termination_reason) == (again.answer, again.termination_reason) == ending
        assert len(net.received) == 2 * (1 + (expected is None))
        assert not [row for row in caplog.records if "loop" in row.message]
        assert said(net.received[-1].body)[0].strip() == text.strip()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", TEXTS)
def test_words_stream_as_the_answer(name: str, wire: str) -> None:
    """watching-runs: Words of an agent stream as what it answers."""
    make, text, expected = TEXTS[name]
    agent = sigadapt.ReAct(ONE, tools=Shop().tools)

    def model(request: Received) -> Answer:
        is_first = request.number == 1
        return turn(looks(), text="Let me look.") if is_first else wordy(text, answer="Done.")(request)

    with serving(model, wire), dspy.context(adapter=make()):
        events: list[Any] = [*sigadapt.stream_sync(agent, question="q")]
    deltas = [each for each in events if isinstance(each, TextDelta)]
    answer = "".join(each.text for each in deltas if each.field == "answer")
    assert answer == events[-1].prediction.answer == (expected or "Done.")
    assert "".join(each.text for each in deltas if each.step == 1) == "Let me look."
    assert all(each.field is None for each in deltas if each.step == 1)
    if name == "plain":
        assert len([each for each in deltas if each.field == "answer"]) > 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
def test_other_outputs_keep_the_words(how: str, wire: str) -> None:
    """agent-runs: Words that are no answer stay in the round."""
    agent = sigadapt.ReAct(TWO, tools=Shop().tools)
    with serving(wordy("I would say seven.", answer="Seven.", score=3), wire) as net:
        out = start(agent, how, question="q")
        again = agent(question="And?", history=json.loads(out.history.model_dump_json()))
    assert (out.score, out.termination_reason, again.score) == (3, "forced_submit", 3)
    [last] = sigadapt.rounds(out)
    assert (last.text, [call.name for call in last.calls]) == ("I would say seven.", ["submit"])
    assert len(out.history.messages) == 1
    first, second = net.received[1].body, net.received[2].body
    assert said(first) == ["I would say seven."]
    assert said(second)[0] == "I would say seven."
    rows = first.get("messages") or first.get("contents") or first["input"]
    assert rows[-1]["role"] == "user"  # providers want somebody to answer
    assert "`answer`, `score`" in json.dumps(rows[-1])


def test_an_option_that_is_none() -> None:
    """agent-runs: Words without a call are the answer."""
    wrong: Any = "yes"
    with pytest.raises(InvalidOption, match="text_answer"):
        sigadapt.ReAct(ONE, tools=[], text_answer=wrong)


THINKING: dict[str, Any] = {"type": "enabled", "budget_tokens": 1024}
ROUTES: dict[str, dict[str, Any]] = {
    "a budget": {"thinking": THINKING},
    "adaptive": {"thinking": {"type": "adaptive"}},
    "over LiteLLM": {"thinking": THINKING, "engine": "litellm"},
    "effort": {"reasoning_effort": "high"},
    "off": {"thinking": {"type": "disabled"}},
}


@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ROUTES)
def test_a_forced_submit_while_the_model_thinks(name: str, kind: str, how: str) -> None:
    """agent-runs: A submit is not forced while Claude thinks."""

    def model(request: Received) -> Any:
        body: Any = request.body
        thinks = (body.get("thinking") or {}).get("type") not in (None, "disabled")
        is_forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
        if thinks and is_forced:
            return Failure(400, "Thinking may not be enabled when tool_choice forces tool use.")
        if is_forced or [tool["name"] for tool in body["tools"]] == ["submit"]:
            return submits("Seven.")
        return turn(looks(f"T{request.number}"))

    with LoopbackProvider(model) as net:
        lm = dspy.LM(**net.lm_options("anthropic"), **ROUTES[name], max_tokens=9000)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            out = start(KINDS[kind](ONE, tools=Shop().tools, max_iters=2), how, question="q")
            changes = changes_of(net)
    assert (out.answer, out.termination_reason, len(net.received)) == ("Seven.", "forced_submit", 3)
    is_lowered = name in ("a budget", "adaptive", "over LiteLLM")
    lowered = [change for change in changes if change.where == "/tool_choice"]
    assert [change.what for change in lowered] == ["lowered"] * is_lowered
