"""`Choice.usage`: what a provider counted, of every wire, whole and streamed, and of recorded answers."""

import math
import pickle
from typing import Any

import anthropic.types
import dspy
import pytest
from dspy import lm15
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion
from support import ENGINES, May
from tables import table
from wire_bodies import chat
from wire_bodies import claude as claude_body
from wire_bodies import gemini as gemini_body
from wire_cases import samples

import sigadapt
from sigadapt import Choice, Usage, choice_from_response
from sigadapt.response import AnswerUsage, choice_from_stream, choice_from_text
from sigadapt.testing import Answer, LoopbackProvider

Json = dict[str, Any]

# A body's member and the usage object in it; what it says: tokens read, written, cached; and how a stream
# ends with it.
COUNTS: dict[str, tuple[Json, tuple[int, int, int | None]]] = table(__file__, "COUNTS")


def last_event(wire: str, counts: Json) -> Json:
    """Return the event of a stream that has the counts."""
    wrapped: dict[str, Json] = {
        "anthropic": {"type": "message_delta", "delta": {}, **counts},
        "openai-chat": {"choices": [], **counts},
        "openai-responses": {"type": "response.completed", "response": {"status": "completed", **counts}},
        "gemini-interactions": {"event_type": "interaction.completed", "interaction": counts},
        "mistral-conversations": {"type": "conversation.response.done", **counts},
        "bedrock-converse": {"metadata": counts},
        "cohere": {"type": "message-end", "delta": {"finish_reason": "COMPLETE", **counts}},
        "ollama": {"done": True, "message": {}, **counts},
        "gemini": {"candidates": [], **counts},
    }
    return wrapped[wire]


def figures(choice: Choice) -> tuple[int | None, int | None, int | None]:
    usage = choice.usage
    assert usage is not None
    return usage.input_tokens, usage.output_tokens, usage.cached_tokens


SAMPLES = list(samples())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.dialect)
def test_usage_of_every_wire(sample: Any) -> None:
    """response-choice: What the provider counted is the usage of the choice"""
    counts, expected = COUNTS[sample.dialect]
    bare = {key: value for key, value in sample.body.items() if key not in counts and "usage" not in key}
    if sample.dialect == "ollama":
        bare = {key: value for key, value in bare.items() if not key.endswith(("_count", "_duration"))}
    assert choice_from_response(bare).usage is None
    choice = choice_from_response({**bare, **counts})
    assert figures(choice) == tuple(expected)
    assert choice.usage is not None
    assert choice.usage.total_tokens == 100
    assert choice.usage.raw == next(iter(counts.values())) if "usage" in str(counts) else counts
    events = [event for event in sample.events if event.get("type") != "message_stop"]
    streamed = choice_from_stream([*events, last_event(sample.dialect, counts)])
    assert figures(streamed) == tuple(expected)
    assert pickle.loads(pickle.dumps(choice)).usage == choice.usage  # noqa: S301


def test_a_new_usage_is_a_usage() -> None:
    usage = AnswerUsage(input_tokens=90, output_tokens=10, raw={"a": 1})
    assert isinstance(usage, Usage)
    assert usage == AnswerUsage(input_tokens=90, output_tokens=10)
    assert (usage.requests, usage.tool_calls, usage.cost) == (1, 0, None)
    assert hash(usage)


COUNTED: Json = {"prompt_tokens": 90, "completion_tokens": 10}


@pytest.mark.parametrize(("price", "cost"), [(0.5, 0.5), (2, 2), (10**400, None), (float("nan"), None)])
def test_a_price_that_is_no_amount_is_none(price: Any, cost: float | None) -> None:
    """response-choice: What the provider counted is the usage of the choice"""
    usage = choice_from_response({**chat({"content": "Yes."}), "usage": {**COUNTED, "cost": price}}).usage
    assert usage is not None
    assert usage.cost == cost


def test_usage_of_sdk_objects() -> None:
    """response-choice: The usage of an SDK's object is that of its body"""
    body = {**chat({"content": "Yes."}), "usage": {**COUNTED, "total_tokens": 100}}
    counted = {"usageMetadata": {"promptTokenCount": 90, "candidatesTokenCount": 10}}
    gemini = google.GenerateContentResponse.model_validate({**gemini_body({"text": "Yes."}), **counted})
    said = claude_body({"type": "text", "text": "Yes."}, usage={"input_tokens": 90, "output_tokens": 10})
    claude = anthropic.types.Message.model_validate(said)
    litellm: Any = pytest.importorskip("litellm")
    answers: list[Any] = [ChatCompletion.model_validate(body), litellm.ModelResponse(**body), gemini, claude]
    for answer in answers:
        usage = choice_from_response(answer).usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens) == (90, 10)
        assert type(usage.raw) is dict


def test_usage_of_what_counts_nothing() -> None:
    """response-choice: What counted nothing has no usage"""
    message = lm15.Message.assistant((lm15.TextPart(text="Yes."),))
    bare = lm15.Response(id=None, model="m", message=message, finish_reason="stop", usage=lm15.Usage())
    answers: list[Any] = [bare, "Yes.", {"text": "Yes."}, {"choices": [{"message": {"content": "Yes."}}]}]
    for answer in answers:
        assert choice_from_response(answer).usage is None
    assert Choice("Yes.").usage is None
    for text in ("Yes.", '{"choices": [', "data: x", ""):
        assert choice_from_text(text, []).usage is None


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(data=st.data())
def test_any_counts_are_read(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(SAMPLES))
    counts, _ = COUNTS[sample.dialect]
    names: Json = {member: dict.fromkeys(value) for member, value in counts.items() if "usage" in member}
    junk: Json = {
        member: {name: data.draw(JUNK) for name in names.get(member, ())} or data.draw(JUNK)
        for member in counts
    }
    usage = choice_from_response({**sample.body, **junk}).usage
    assert usage is None or all(
        number is None or (type(number) in (int, float) and math.isfinite(number))
        for number in (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost)
    )


class ChoiceKeeper:
    """A hook that keeps the choices."""

    def __init__(self) -> None:
        self.choices: list[Choice] = []

    def after_choice(self, choice: Choice, context: Any) -> None:
        self.choices.append(choice)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini", "ollama"])
def test_usage_in_a_hook(wire: str, engine: str) -> None:
    """response-choice: A hook reads what the provider counted, whole and streamed"""
    keeper = ChoiceKeeper()
    answer = Answer(text="[[ ## answer ## ]]\nYes.\n\n[[ ## completed ## ]]", usage=(123, 45))
    with LoopbackProvider([answer, answer]) as net:
        options: Json = {**net.lm_options(wire), "engine": engine, "cache": False}
        lm = dspy.LM(**options)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(hooks=[keeper])), sigadapt.Run() as run:
            dspy.Predict(May)(question="Is it?", tools=[])
            list(sigadapt.stream_sync(dspy.Predict(May), question="Is it?", tools=[]))
    usages = [choice.usage for choice in keeper.choices]
    assert [(usage.input_tokens, usage.output_tokens) for usage in usages if usage] == [(123, 45)] * 2
    assert (run.usage.input_tokens, run.usage.output_tokens) == (246, 90)
