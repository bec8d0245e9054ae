"""The settings of a call: what goes beside a request, what goes into it, and what a model cannot take."""

from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from support import May, get_weather, lm_of

import sigadapt
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

SAID = Answer(text="[[ ## answer ## ]]\nFine.")


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider(lambda _: SAID) as served:
        yield served


def ask(provider: LoopbackProvider, settings: Any, *, question: str = "?", **options: Any) -> list[Received]:
    """The requests that arrive of a call with these settings."""
    lm = lm_of(provider, api_key="own", temperature=0.5, max_tokens=100, stop=["x"], cache=True)
    before = len(provider.received)
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native", **options)):
        dspy.Predict(May)(question=question, tools=[get_weather], config=settings)
    return [*provider.received[before:]]


def test_what_governs_the_sending_is_no_part_of_the_request(provider: LoopbackProvider) -> None:
    """request-shaping: Generation settings reach the provider."""
    cache: Any = dspy.lm15.CacheConfig()
    settings = {"n": 1, "cache": False, "rollout_id": 7, "prompt_cache": cache, "temperature": 0.9}
    (sent,) = ask(provider, settings)
    assert {"cache", "rollout_id", "n", "prompt_cache", "api_key"} & set(sent.body) == set()
    assert (sent.body["temperature"], sent.body["stop"]) == (0.9, ["x"])
    assert (sent.body.get("max_tokens") or sent.body.get("max_completion_tokens")) == 100
    assert len(ask(provider, settings)) == 1, "which no cache answers"


def test_connection_settings_are_those_of_the_call_alone(provider: LoopbackProvider) -> None:
    """request-shaping: Connection settings stay out of the request."""
    (sent,) = ask(provider, {"cache": False})
    assert sent.headers["authorization"] == "Bearer own"
    with LoopbackProvider([SAID]) as other:
        assert ask(provider, {"api_key": "other", "api_base": other.base_url("openai"), "cache": False}) == []
    (elsewhere,) = other.received
    assert elsewhere.headers["authorization"] == "Bearer other"
    assert elsewhere.body == sent.body


def test_none_unsets(provider: LoopbackProvider) -> None:
    (sent,) = ask(provider, {"temperature": None, "cache": False})
    assert "temperature" not in sent.body


@pytest.mark.parametrize("name", ["n", "num_generations"])
@pytest.mark.parametrize("count", [0, None])
def test_no_number_of_answers_is_one(name: str, count: Any, provider: LoopbackProvider) -> None:
    assert len(ask(provider, {name: count, "cache": False})) == 1


@pytest.mark.parametrize("name", ["n", "num_generations"])
@pytest.mark.parametrize("count", [-1, 2.0, "2", True])
def test_a_number_of_answers_is_a_positive_integer(name: str, count: Any, provider: LoopbackProvider) -> None:
    with pytest.raises(InvalidOption) as caught:
        ask(provider, {name: count})
    assert caught.value.field == "n"
    assert provider.received == ()


def test_each_candidate_is_kept_apart_in_the_cache(provider: LoopbackProvider) -> None:
    """request-shaping: Cached candidates stay distinct."""
    calls: list[tuple[dict[str, Any], int]] = [
        ({}, 1),
        ({}, 0),
        ({"cache": True}, 0),
        ({"rollout_id": 3}, 1),
        ({"rollout_id": 3}, 0),
        ({"n": 3}, 2),  # the first is the only one of the first call
        ({"n": 3}, 0),
        ({"n": 2, "rollout_id": 3}, 1),
        ({"n": 2, "rollout_id": 3}, 0),
        ({"n": 2, "rollout_id": 3, "cache": False}, 2),
    ]
    for settings, arrive in calls:
        assert len(ask(provider, settings, question="Kept apart?")) == arrive, settings


def test_what_is_asked_again_stays_apart_too() -> None:
    """request-shaping: Cached candidates stay distinct."""

    def answer(received: Received) -> Answer:
        again = any(row["role"] == "tool" for row in received.body["messages"])
        return SAID if again else Answer(calls=[Call("get_weather", "{")])

    with LoopbackProvider(answer) as provider:
        for arrive in (4, 0):  # each of the two, and again for each
            sent = ask(provider, {"n": 2}, question="Again?", on_invalid="reask")
            assert len(sent) == arrive
